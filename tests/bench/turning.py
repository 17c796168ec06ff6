#!/usr/bin/env python3
"""A stand-in for bench_cuda_launch on a machine without a GPU: it opens the fake libcuda and writes
API records through the fake libcupti, in turns. `turning.py die` ends in its second round."""
import ctypes
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
import turns  # noqa: E402


class Api(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint32), ("cbid", ctypes.c_uint32), ("start", ctypes.c_uint64),
                ("end", ctypes.c_uint64), ("process", ctypes.c_uint32),
                ("thread", ctypes.c_uint32), ("correlation", ctypes.c_uint32),
                ("result", ctypes.c_uint32)]


RUNTIME, MALLOC = 5, 20
CALLS = 200


def load():
    ctypes.CDLL("libcuda.so.1").cuInit(0)
    try:
        return ctypes.CDLL("libcupti.so.13", mode=os.RTLD_NOLOAD | os.RTLD_NOW).fake_cupti_record
    except OSError:
        return None  # bare: nobody loaded it


def main():
    record, rounds = load(), []

    def one_round():
        if "die" in sys.argv and len(rounds) == 1 and record:
            os._exit(7)
        begun = time.monotonic_ns()
        for i in range(CALLS):
            call = Api(RUNTIME, MALLOC, time.monotonic_ns(), time.monotonic_ns(), os.getpid(),
                       os.getpid(), len(rounds) * CALLS + i + 1, 0)
            if record:
                record(ctypes.byref(call), ctypes.c_size_t(ctypes.sizeof(call)))
        rounds.append(1)
        return {"mode": "fake", "ns_per_call": (time.monotonic_ns() - begun) / CALLS}
    turns.play(one_round, lambda count: {"operations": count * CALLS, "peak_kib": 1000,
                                         "gpu_used_bytes": 0})


main()
