from torch.cuda import memory, nvtx


def synchronize():
    raise SystemExit("CUDA was initialised")


def _lazy_call(function):
    """Run when the program initialises CUDA, which this one never does."""


is_available = current_device = init = synchronize
