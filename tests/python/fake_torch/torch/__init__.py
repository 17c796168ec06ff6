"""Stands for PyTorch where the hook of --pytorch meets it: a profiler whose state is a thread's own,
operators that push NVTX ranges with PyTorch's texts while it is on, autograd's sequence numbers and
its worker thread, modules with global hooks. FAKE_TORCH_NVTX: the library through which ranges are
pushed; without it this is a build without CUDA."""
import os

__version__ = "2.9.0+fake"

from torch import _C
from torch import autograd, cuda, nn
from torch.autograd import add, backward, mul
