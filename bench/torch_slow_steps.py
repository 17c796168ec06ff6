#!/usr/bin/env python3
"""A PyTorch program that repeats a step, some of which are slow for a planted cause: what bench/slow_steps_real records.

    torch_slow_steps.py KIND|all|nothing SEED [STEPS]

Prints "planted STEP KIND" for each cause. With "all", each kind is planted once, in an order and at steps that depend on the
seed. A step is an NVTX range "step" and waits for its device. Needs PyTorch and a GPU; no data, no other package."""
import ctypes
import gc
import mmap
import os
import random
import sys
import threading
import time

import torch

MIB = 1 << 20
WARM_UP, APART = 30, 12  # steps


class Burner:
    """A process of a higher class, which takes the only processor that this thread may run on. It is forked before CUDA is
    used."""
    READY, ASKED, BURNS, NOT_ALLOWED = 1, 2, 3, 4

    def __init__(self, seconds):
        self.state, self.seconds = mmap.mmap(-1, 4096), seconds
        self.go, there = os.pipe()[::-1]
        if os.fork() == 0:
            os.close(self.go)
            try:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
                self.serve(there)
            except PermissionError:
                self.state[0] = self.NOT_ALLOWED
            os._exit(0)
        os.close(there)
        while not self.state[0]:
            time.sleep(0.001)

    def serve(self, there):
        self.state[0] = self.READY
        while word := os.read(there, 4):
            os.sched_setaffinity(0, {int.from_bytes(word, "little")})
            self.state[0] = self.BURNS
            until = time.monotonic() + self.seconds
            while time.monotonic() < until:
                pass

    def burn(self):
        before, cpu = os.sched_getaffinity(0), ctypes.CDLL(None).sched_getcpu()
        self.state[0] = self.ASKED
        os.sched_setaffinity(0, {cpu})
        os.write(self.go, cpu.to_bytes(4, "little"))
        while self.state[0] != self.BURNS:
            pass
        os.sched_setaffinity(0, before)


def processor_time():
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)


class Program:
    def __init__(self, seed):
        self.random, self.seed = random.Random(seed), seed
        self.extra_s, self.times = self.random.uniform(0.05, 0.08), self.random.choice((3, 4))
        self.burner = Burner(self.extra_s)
        width, layers = self.random.choice((768, 1024)), self.random.choice((6, 8, 10))
        self.model = torch.nn.Sequential(*(layer for _ in range(layers)
                                           for layer in (torch.nn.Linear(width, width), torch.nn.GELU()))).cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)
        self.rows = torch.randn(2048, width).pin_memory()
        self.large = torch.randn(256 * MIB // 4)
        self.there = self.large.cuda()
        self.square = torch.randn(4096, 4096, device="cuda")
        self.double = [torch.randn(12288, 12288, device="cuda", dtype=torch.float64) for _ in range(2)]
        self.side, self.lock = torch.cuda.Stream(), threading.Lock()
        self.objects = [[i, str(i)] for i in range(300000)]
        with open("/proc/self/maps", encoding="utf-8") as maps:
            self.runtime = ctypes.CDLL(next(line.split()[-1] for line in maps if "libcudart" in line))
        self.compile("warm_up")
        torch.mm(self.double[0][:64], self.double[0], out=self.double[1][:64])
        torch.relu_(self.square)
        self.there.add_(1)

    def step(self, plant):
        x = self.rows.cuda(non_blocking=True)
        loss = self.model(x).square().mean()
        if plant:
            plant()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        loss.item()
        torch.cuda.synchronize()

    def compile(self, name):
        source = 'extern "C" __global__ void %s(float *a) { a[threadIdx.x] = sinf(a[threadIdx.x] + %d); }' % (name, self.seed)
        torch.cuda._compile_kernel(source, name)(grid=(1, 1, 1), block=(32, 1, 1), args=[self.square])

    # ---- what is planted ----------------------------------------------------------------------------

    def slow_copy(self):
        for _ in range(self.times):
            self.there.copy_(self.large)

    def checkpoint(self):
        with torch.cuda.nvtx.range("checkpoint"):
            for _ in range(self.times):
                self.large.copy_(self.there)

    def extra_allocation(self):
        memory = ctypes.c_void_p()
        for _ in range(30 * self.times):
            self.runtime.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(64 * MIB))
            self.runtime.cudaFree(memory)

    def build(self):
        self.compile("scale_%d" % self.seed)

    def lock_queue(self):
        held = threading.Event()

        def hold():
            with self.lock:
                held.set()
                time.sleep(self.extra_s)
        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        with self.lock:
            thread.join()

    def write_log(self):
        begun = processor_time()
        with open("/dev/null", "w", encoding="utf-8") as log:
            while processor_time() - begun < self.extra_s:
                for i in range(100):
                    print(i, begun / 3, file=log)

    def touch_pages(self):
        begun = processor_time()
        while processor_time() - begun < self.extra_s:
            ctypes.memset(ctypes.create_string_buffer(32 * MIB), 1, 32 * MIB)

    def collect_garbage(self):
        for _ in range(self.times):
            gc.collect()

    def extra_launches(self):
        for _ in range(300 * self.times):
            torch.relu_(self.square)

    def slow_kernel(self):
        torch.mm(self.double[0], self.double[0], out=self.double[1])

    def preempted(self):
        self.burner.burn()

    def flush_cache(self):
        with torch.cuda.stream(self.side):
            for _ in range(100 * self.times):
                self.there.add_(1)


KINDS = {"slow_copy": Program.slow_copy, "checkpoint": Program.checkpoint, "extra_allocation": Program.extra_allocation,
         "build": Program.build, "lock": Program.lock_queue, "logging": Program.write_log, "page_faults": Program.touch_pages,
         "gc_pause": Program.collect_garbage, "extra_launches": Program.extra_launches, "slow_kernel": Program.slow_kernel,
         "preempted": Program.preempted, "cache_flush": Program.flush_cache}


def main():
    what, seed = sys.argv[1], int(sys.argv[2])
    kinds = {"all": list(KINDS), "nothing": []}.get(what, [what])
    program = Program(seed)
    if program.burner.state[0] == Burner.NOT_ALLOWED and "preempted" in kinds:
        kinds.remove("preempted")
    program.random.shuffle(kinds)
    plan = {WARM_UP + APART * i + program.random.randrange(APART // 2): kind for i, kind in enumerate(kinds)}
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else WARM_UP + APART * len(kinds) + 20
    def plant():
        try:
            KINDS[plan[step]](program)
            print("planted %d %s" % (step, plan[step]), flush=True)
        except Exception as why:  # this kind cannot be planted here
            print("%s: %s" % (plan[step], why), file=sys.stderr)

    for step in range(steps):
        with torch.cuda.nvtx.range("step"):
            program.step(plant if step in plan else None)


main()
