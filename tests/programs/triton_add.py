"""Launches a Triton kernel LAUNCHES times: driver-API launches from a compiled stub."""
import json
import sys

from common import done, need_gpu, torch

try:
    import triton
    import triton.language as tl
except ImportError:
    print(json.dumps({"skip": "Triton is not installed"}))
    sys.exit(77)

LAUNCHES = int(sys.argv[1]) if len(sys.argv) > 1 else 300


@triton.jit
def perfkit_triton_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)


def main():
    need_gpu()
    n = 10000
    x, y = torch.ones(n, device="cuda"), torch.ones(n, device="cuda")
    out = torch.empty_like(x)
    for _ in range(LAUNCHES):
        perfkit_triton_add[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    torch.cuda.synchronize()
    done(kernels={"^perfkit_triton_add$": LAUNCHES}, right=bool((out == 2).all().item()),
         launching_processes=1)


if __name__ == "__main__":
    main()
