import ctypes
import os

if os.environ.get("FAKE_TORCH_NVTX"):
    _nvtx = ctypes.CDLL(os.environ["FAKE_TORCH_NVTX"])
    _nvtx.client_push.argtypes = [ctypes.c_char_p]
