"""CALLS products by cuBLAS and CALLS convolutions by cuDNN, a counted kernel after each."""
import sys

from common import Counted, done, need_gpu, torch

CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 100


def main():
    need_gpu()
    torch.manual_seed(1)
    a = torch.rand(512, 512, device="cuda", dtype=torch.half)
    pictures = torch.rand(8, 16, 64, 64, device="cuda")
    weights = torch.rand(32, 16, 3, 3, device="cuda")
    counted = Counted()
    for name, call in (("product", lambda: a @ a),
                       ("convolution", lambda: torch.nn.functional.conv2d(pictures, weights))):
        for _ in range(CALLS):
            torch.cuda.nvtx.range_push(name)
            call()
            torch.cuda.nvtx.range_pop()
            counted.launch()
    torch.cuda.synchronize()
    done(counted=counted.launches, ranges={"product": CALLS, "convolution": CALLS},
         at_least={"gemm|nvjet|cutlass|cublas|xmma": CALLS,
                   "conv|cudnn|fprop|implicit|xmma|winograd|nchw": CALLS}, launching_processes=1)


if __name__ == "__main__":
    main()
