from torch.cuda import nvtx


def synchronize():
    raise SystemExit("CUDA was initialised")


is_available = current_device = init = synchronize
