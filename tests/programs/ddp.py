"""A rank of a data-parallel training. Each has a GPU of its own, over NCCL; where there are fewer GPUs than ranks they
share them, over gloo.

    python3 -m torch.distributed.run --standalone --nproc-per-node 2 ddp.py [STEPS]
    python3 ddp.py [STEPS]            starts two ranks itself, which learn who they are after they have started"""
import os
import sys

import torch.distributed as distributed
import torch.multiprocessing
from common import Counted, done, need_gpu, torch

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 20
SPAWNED = 2


def train():
    rank, ranks, here = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    gpus = torch.cuda.device_count()
    torch.cuda.set_device(here % gpus)
    distributed.init_process_group("gloo" if gpus < ranks else "nccl")
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
        done(counted=ranks * counted.launches, launching_processes=ranks, ranges={"step": ranks * STEPS})


def spawned(rank):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(SPAWNED), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT="29517")
    train()


def main():
    need_gpu()
    if "RANK" in os.environ:
        train()
    else:
        torch.multiprocessing.spawn(spawned, nprocs=SPAWNED)


if __name__ == "__main__":
    main()
