"""A rank of a data-parallel training. Two ranks share one GPU over gloo; with two GPUs each has its
own, over NCCL.

    python3 -m torch.distributed.run --standalone --nproc-per-node 2 ddp.py [STEPS]"""
import os
import sys

import torch.distributed as distributed
from common import Counted, done, need_gpu, torch

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 20


def main():
    need_gpu()
    rank = int(os.environ["RANK"])
    alone = torch.cuda.device_count() < 2
    torch.cuda.set_device(0 if alone else int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("gloo" if alone else "nccl")
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(128, 128).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    counted = Counted()
    for _ in range(STEPS):
        torch.cuda.nvtx.range_push("step")
        optimizer.zero_grad()
        model(torch.rand(32, 128, device="cuda")).square().mean().backward()
        optimizer.step()
        counted.launch()
        torch.cuda.nvtx.range_pop()
    torch.cuda.synchronize()
    distributed.barrier()
    distributed.destroy_process_group()
    if rank == 0:
        done(counted=2 * counted.launches, launching_processes=2, ranges={"step": 2 * STEPS})


if __name__ == "__main__":
    main()
