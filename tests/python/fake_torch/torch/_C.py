import ctypes
import os

if os.environ.get("FAKE_TORCH_NVTX"):
    _nvtx = ctypes.CDLL(os.environ["FAKE_TORCH_NVTX"])
    _nvtx.client_push.argtypes = [ctypes.c_char_p]
_cpu = None
if os.environ.get("FAKE_TORCH_CPU"):  # without it no operator can be observed but by NVTX
    _cpu = ctypes.CDLL(os.environ["FAKE_TORCH_CPU"])
    _cpu.operator_begin.argtypes = [ctypes.c_char_p, ctypes.c_int64, ctypes.c_int]
    _cpu.collective_begin.restype, _cpu.collective_end.argtypes = ctypes.c_void_p, [ctypes.c_void_p]


class _dynamo:
    class eval_frame:
        callback = None  # of torch.compile: called for all code that runs

        @classmethod
        def set_eval_frame(cls, callback):
            before, cls.callback = cls.callback, callback
            return before
