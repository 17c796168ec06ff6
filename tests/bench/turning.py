#!/usr/bin/env python3
"""A stand-in for bench_cuda_launch on a machine without a GPU: it opens the fake libcuda and writes
API records through the fake libcupti, in turns. `turning.py die` ends in its second round."""
import ctypes
import json
import os
import sys
import time


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
    record = load()
    turns = os.environ["BENCH_TURNS"]
    out = open(turns + ".out", "w", encoding="utf-8")
    go = open(turns + ".go", "rb", buffering=0)
    print(json.dumps({"ready": True, "pid": os.getpid()}), file=out, flush=True)
    rounds = 0
    while go.read(1) == b"g":
        if "die" in sys.argv and rounds == 1 and record:
            os._exit(7)
        begun = time.monotonic_ns()
        for i in range(CALLS):
            call = Api(RUNTIME, MALLOC, time.monotonic_ns(), time.monotonic_ns(), os.getpid(),
                       os.getpid(), rounds * CALLS + i + 1, 0)
            if record:
                record(ctypes.byref(call), ctypes.c_size_t(ctypes.sizeof(call)))
        rounds += 1
        print(json.dumps({"mode": "fake", "round": rounds - 1,
                          "ns_per_call": (time.monotonic_ns() - begun) / CALLS}),
              file=out, flush=True)
    print(json.dumps({"end": True, "pid": os.getpid(), "operations": rounds * CALLS,
                      "peak_kib": 1000, "gpu_used_bytes": 0}), file=out, flush=True)


main()
