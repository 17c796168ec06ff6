"""Forks WORKERS workers before CUDA is up; each uses the GPU, and in the end the parent does too."""
import multiprocessing
import sys

from common import Counted, done, need_gpu, torch

WORKERS, LAUNCHES = 3, int(sys.argv[1]) if len(sys.argv) > 1 else 200


def work(results):
    counted = Counted()
    counted.launch(LAUNCHES)
    torch.cuda.synchronize()
    results.put(counted.launches)


def main():
    fork = multiprocessing.get_context("fork")
    results = fork.SimpleQueue()
    workers = [fork.Process(target=work, args=(results,)) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode != 0 for worker in workers):
        need_gpu()
        sys.exit(3)
    need_gpu()
    launches = sum(results.get() for _ in workers)
    counted = Counted()
    counted.launch(LAUNCHES)
    torch.cuda.synchronize()
    done(counted=launches + counted.launches, launching_processes=1 + WORKERS, processes=1 + WORKERS)


if __name__ == "__main__":
    main()
