#!/usr/bin/env python3
"""Kernels of cuBLAS and PyTorch, one after the other for a while, or so many in a row
(bench/counters.py runs it).

    torch_kernels.py NAME[,NAME...] [SECONDS]
    torch_kernels.py --ranges LAUNCHES NAME[,NAME...]
    torch_kernels.py --list

Prints a line of JSON for each: launches and seconds. What is not the kernel (filling memory, choosing
an algorithm) is done before. --ranges: RANGES times so many launches between cudaProfilerStart and
cudaProfilerStop, warmed up by as many before. Needs PyTorch; exits with 77 without a GPU.
"""
import json
import sys
import time

TURNS = 8  # calls between two looks at the clock
RANGES = 3


def matmul(torch, kind, size):
    a, b = (torch.randn(size, size, device="cuda").to(kind) for _ in range(2))
    out = torch.empty(size, size, device="cuda", dtype=kind)
    return lambda: torch.mm(a, b, out=out)


def rows(torch):
    return torch.randn(16384, 4096, device="cuda")


def softmax(torch):
    x = rows(torch)
    return lambda: torch.softmax(x, dim=-1)


def layer_norm(torch):
    x = rows(torch)
    return lambda: torch.nn.functional.layer_norm(x, x.shape[1:])


def add(torch):
    x, y = rows(torch), rows(torch)
    out = torch.empty_like(x)
    return lambda: torch.add(x, y, out=out)


def reduction(torch):
    x = rows(torch)
    out = torch.empty(x.shape[1], device="cuda")
    return lambda: torch.sum(x, dim=0, out=out)


def transposed_copy(torch):
    x = rows(torch)
    out = torch.empty(x.shape[1], x.shape[0], device="cuda")
    return lambda: out.copy_(x.t())


KERNELS = {
    "cublas_bf16": lambda torch: matmul(torch, torch.bfloat16, 4096),  # wgmma on Hopper
    "cublas_fp32": lambda torch: matmul(torch, torch.float32, 2048),
    "cublas_fp64": lambda torch: matmul(torch, torch.float64, 2048),
    "softmax": softmax,
    "layer_norm": layer_norm,
    "add": add,
    "reduction": reduction,
    "transposed_copy": transposed_copy,
}


def launch(torch, call):
    for _ in range(TURNS):
        call()
    torch.cuda.synchronize()


def play(torch, call, seconds):
    """(launches, seconds that they took)"""
    launches, begun = 0, time.monotonic()
    while time.monotonic() < begun + seconds:
        launch(torch, call)
        launches += TURNS
    return launches, time.monotonic() - begun


def play_ranges(torch, call, launches):
    """As play, of one range."""
    turns, begun = -(-launches // TURNS), 0.0
    for number in range(-1, RANGES):  # the first one is no range
        begun = time.monotonic()
        if number >= 0:
            torch.cuda.profiler.start()
        for _ in range(turns):
            launch(torch, call)
        if number >= 0:
            torch.cuda.profiler.stop()
    return turns * TURNS, time.monotonic() - begun


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(KERNELS))
        return 0
    try:
        import torch
    except ImportError:
        return 77
    if not torch.cuda.is_available():
        return 77
    ranges = sys.argv[1] == "--ranges"
    much = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0
    for name in (sys.argv[3] if ranges else sys.argv[1]).split(","):
        call = KERNELS[name](torch)
        launch(torch, call)
        launches, seconds = (play_ranges(torch, call, int(much)) if ranges
                             else play(torch, call, much))
        print(json.dumps({"kernel": name, "launches": launches, "seconds": seconds, "counts": {}}),
              flush=True)
        del call  # and its memory
    return 0


if __name__ == "__main__":
    sys.exit(main())
