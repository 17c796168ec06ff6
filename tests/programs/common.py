"""What the PyTorch programs here share. Each prints one line of JSON last: what it did. A launch that
the check counts is Counted.launch(): bitwise_not of an integer tensor, a kernel nothing else uses."""
import json
import os
import sys

try:
    import torch
except ImportError:
    print(json.dumps({"skip": "PyTorch is not installed"}))
    sys.exit(77)


def need_gpu():
    """Not called by programs that must not touch CUDA yet."""
    if not torch.cuda.is_available():
        print(json.dumps({"skip": "PyTorch sees no GPU"}))
        sys.exit(77)


class Counted:
    """Launches of a kernel that can be told from all others."""

    def __init__(self, device="cuda"):
        self.tensor = torch.zeros(1024, dtype=torch.int32, device=device)
        self.launches = 0

    def launch(self, times=1):
        for _ in range(times):
            self.tensor.bitwise_not_()
        self.launches += times


def done(**what):
    """Written at once, so that two ranks' lines do not mix."""
    sys.stdout.flush()
    os.write(1, (json.dumps(what, sort_keys=True) + "\n").encode())
