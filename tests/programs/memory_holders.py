"""Holds, wastes and forgets GPU memory in known ways, and says at which of its lines: weights to the
end, activations of every step, 1 MiB that every step forgets, and one tensor that fits nowhere."""
import inspect
import sys

from common import done, need_gpu, torch

STEPS = 8
MIB = 1 << 20
WEIGHTS, ACTIVATIONS, FORGOTTEN, TOO_MUCH = 256 * MIB, 128 * MIB, MIB, 1 << 43


def weights():
    return torch.empty(WEIGHTS, dtype=torch.uint8, device="cuda")  # here: weights


def activations():
    return torch.empty(ACTIVATIONS, dtype=torch.uint8, device="cuda")  # here: activations


def forget(kept):
    kept.append(torch.empty(FORGOTTEN, dtype=torch.uint8, device="cuda"))  # here: forgotten


def too_much():
    return torch.empty(TOO_MUCH, dtype=torch.uint8, device="cuda")  # here: too_much


def step(kept):
    torch.cuda.nvtx.range_push("step")
    held = activations()
    forget(kept)
    held.zero_()
    torch.cuda.nvtx.range_pop()


def lines():
    """{what: line} of the marks in this file."""
    return {line.rpartition("# here: ")[2].strip(): number for number, line in
            enumerate(inspect.getsource(sys.modules[__name__]).splitlines(), 1) if "# here: " in line
            and "rpartition" not in line and "in line" not in line}


def main():
    need_gpu()
    kept, refused = [], False
    model = weights()
    for _ in range(STEPS):
        step(kept)
    try:
        too_much()
    except torch.cuda.OutOfMemoryError:
        refused = True
    torch.cuda.synchronize()
    done(steps=STEPS, refused=refused, lines=lines(), weights=WEIGHTS, activations=ACTIVATIONS,
         forgotten=FORGOTTEN, too_much=TOO_MUCH, alive=model.numel())


if __name__ == "__main__":
    main()
