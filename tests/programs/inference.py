"""Answers REQUESTS requests of a small network, the last half by replaying a CUDA graph."""
import sys

from common import Counted, done, need_gpu, torch

REQUESTS = int(sys.argv[1]) if len(sys.argv) > 1 else 200


def main():
    need_gpu()
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(),
                                torch.nn.Linear(512, 64)).cuda().half().eval()
    request = torch.rand(8, 256, device="cuda", dtype=torch.half)
    counted, eager = Counted(), REQUESTS // 2
    nvtx = torch.cuda.nvtx
    with torch.inference_mode():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # as the manual says: warm up before the capture
            for _ in range(3):
                model(request)
        torch.cuda.current_stream().wait_stream(side)
        for _ in range(eager):
            nvtx.range_push("request")
            model(request)
            counted.launch()
            nvtx.range_pop()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(request)
            counted.tensor.bitwise_not_()
        for _ in range(REQUESTS - eager):
            nvtx.range_push("request")
            graph.replay()
            counted.launches += 1
            nvtx.range_pop()
        torch.cuda.synchronize()
    done(counted=counted.launches, graph_launches=REQUESTS - eager, launching_processes=1,
         ranges={"request": REQUESTS})


if __name__ == "__main__":
    main()
