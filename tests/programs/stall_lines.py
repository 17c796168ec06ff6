"""Kernels that are compiled while the program runs, by NVRTC (CuPy, where it is installed) and by Triton, each
waiting for memory at a marked line: for --stalls."""
import inspect
import json
import sys

from common import done, need_gpu, torch

try:
    import triton
    import triton.language as tl
except ImportError:
    print(json.dumps({"skip": "Triton is not installed"}))
    sys.exit(77)
try:
    import cupy
except ImportError:
    cupy = None

WORDS, STEPS, BLOCKS, BLOCK, LAUNCHES = 1 << 26, 500, 264, 128, 10
SOURCE = """extern "C" __global__ void perfkit_cupy_gather(const int *next, int *out, int steps)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < steps; i++)
        at = next[at]; // here
    out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}
"""


@triton.jit
def perfkit_triton_gather(next_word, out, steps, BLOCK: tl.constexpr):
    first = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = first
    for _ in range(steps):
        at = tl.load(next_word + at)  # here: triton
    tl.store(out + first, at)


def line_of(text, mark):
    return next(n for n, line in enumerate(text.splitlines(), 1) if line.endswith(mark))


def main():
    need_gpu()
    words = torch.arange(WORDS, dtype=torch.int64, device="cuda")
    next_word = ((words * 1664525 + 1013904223) % WORDS).to(torch.int32)  # one cycle through all
    out = torch.empty(BLOCKS * BLOCK, dtype=torch.int32, device="cuda")
    lines = {"perfkit_triton_gather": line_of(inspect.getsource(sys.modules[__name__]), "# here: triton")}
    for _ in range(LAUNCHES):
        perfkit_triton_gather[(BLOCKS,)](next_word, out, STEPS, BLOCK=BLOCK)
    torch.cuda.synchronize()
    if cupy:
        gather = cupy.RawKernel(SOURCE, "perfkit_cupy_gather", options=("-lineinfo",))
        for _ in range(LAUNCHES):
            gather((BLOCKS,), (BLOCK,), (cupy.asarray(next_word), cupy.asarray(out), cupy.int32(STEPS)))
        cupy.cuda.Device().synchronize()
        lines["perfkit_cupy_gather"] = line_of(SOURCE, "// here")
    done(kernels={f"^{name}$": LAUNCHES for name in lines}, lines=lines, launching_processes=1)


if __name__ == "__main__":
    main()
