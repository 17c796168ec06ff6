#!/usr/bin/env python3
"""A PyTorch program that repeats a step, some of which are slow for a planted cause: what bench/slow_steps_real records.

    torch_slow_steps.py [--opencl] KIND|all|nothing SEED [STEPS]

Prints "planted STEP KIND" for each cause. With "all", each kind is planted once, in an order and at steps that depend on the
seed. A step is a range "step" and waits for its device. Needs PyTorch and a GPU; no data, no other package. With --opencl:
the model is PyTorch's on the host, what the device does is OpenCL's; needs pyopencl and no GPU."""
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
    """What the host does wrong, whatever the device is."""

    def __init__(self, seed):
        self.random, self.seed = random.Random(seed), seed
        self.extra_s, self.times = self.random.uniform(0.05, 0.08), self.random.choice((3, 4))
        self.burner, self.lock = Burner(self.extra_s), threading.Lock()
        self.objects = [[i, str(i)] for i in range(300000)]

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

    def preempted(self):
        self.burner.burn()


class Cuda(Program):
    range = staticmethod(torch.cuda.nvtx.range)

    def __init__(self, seed):
        super().__init__(seed)
        width, layers = self.random.choice((768, 1024)), self.random.choice((6, 8, 10))
        self.model = torch.nn.Sequential(*(layer for _ in range(layers)
                                           for layer in (torch.nn.Linear(width, width), torch.nn.GELU()))).cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)
        self.rows = torch.randn(2048, width).pin_memory()
        self.large = torch.randn(256 * MIB // 4)
        self.there = self.large.cuda()
        self.square = torch.randn(4096, 4096, device="cuda")
        self.double = [torch.randn(12288, 12288, device="cuda", dtype=torch.float64) for _ in range(2)]
        self.side = torch.cuda.Stream()
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
        with self.range("checkpoint"):
            for _ in range(self.times):
                self.large.copy_(self.there)

    def extra_allocation(self):
        memory = ctypes.c_void_p()
        for _ in range(30 * self.times):
            self.runtime.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(64 * MIB))
            self.runtime.cudaFree(memory)

    def build(self):
        self.compile("scale_%d" % self.seed)

    def extra_launches(self):
        for _ in range(300 * self.times):
            torch.relu_(self.square)

    def slow_kernel(self):
        torch.mm(self.double[0], self.double[0], out=self.double[1])

    def flush_cache(self):
        with torch.cuda.stream(self.side):
            for _ in range(100 * self.times):
                self.there.add_(1)


SOURCE = """
kernel void relu(global float *a) { size_t i = get_global_id(0); a[i] = a[i] > 0 ? a[i] : 0; }
kernel void add(global float *a) { a[get_global_id(0)] += 1; }
kernel void repeat(global float *a, int times)
{ size_t i = get_global_id(0); float x = a[i]; for (int k = 0; k < times; k++) x = sin(x); a[i] = x; }
"""


class OpenCL(Program):
    """The step's kernel reads what the host's model needs, and takes about as long."""
    range = staticmethod(torch.profiler.record_function)

    def __init__(self, seed):
        super().__init__(seed)
        import numpy
        import pyopencl as cl
        torch.set_num_threads(1)
        self.cl, self.context = cl, cl.create_some_context(interactive=False)
        self.queue, self.side = (cl.CommandQueue(self.context) for _ in range(2))
        self.model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)
        self.rows = numpy.ones((64, 256), numpy.float32)
        self.large = numpy.ones(32 * MIB // 4, numpy.float32)
        flags = cl.mem_flags
        self.batch = cl.Buffer(self.context, flags.READ_WRITE, self.rows.nbytes)
        self.there = cl.Buffer(self.context, flags.READ_WRITE, self.large.nbytes)
        program = cl.Program(self.context, SOURCE).build()
        self.relu, self.add, self.repeat = program.relu, program.add, program.repeat
        for kernel, more in ((self.relu, ()), (self.add, ()), (self.repeat, (numpy.int32(10),))):
            kernel(self.queue, (self.rows.size,), None, self.batch, *more)
        self.usual, self.slow = numpy.int32(5), numpy.int32(1000)
        cl.enqueue_copy(self.queue, self.there, self.large)

    def step(self, plant):
        self.cl.enqueue_copy(self.queue, self.batch, self.rows)
        for _ in range(3):
            self.relu(self.queue, (self.rows.size,), None, self.batch)
        self.repeat(self.queue, (self.rows.size,), None, self.batch, self.usual)
        self.cl.enqueue_copy(self.queue, self.rows, self.batch)
        loss = self.model(torch.from_numpy(self.rows)).square().mean()
        if plant:
            plant()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.add(self.queue, (self.rows.size,), None, self.batch)
        self.queue.finish()

    def slow_copy(self):
        for _ in range(10 * self.times):
            self.cl.enqueue_copy(self.queue, self.there, self.large)

    def checkpoint(self):
        with self.range("checkpoint"):
            for _ in range(10 * self.times):
                self.cl.enqueue_copy(self.queue, self.large, self.there)

    def extra_allocation(self):
        for _ in range(4 * self.times):
            flags = self.cl.mem_flags
            self.cl.Buffer(self.context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=self.large).release()

    def build(self):
        for i in range(2 * self.times):
            self.cl.Program(self.context, SOURCE.replace("add", "scale_%d_%d" % (self.seed, i))).build(cache_dir=False)

    def extra_launches(self):
        for _ in range(10 * self.times):
            self.relu(self.queue, (self.large.size,), None, self.there)

    def slow_kernel(self):
        self.repeat(self.queue, (self.rows.size,), None, self.batch, self.slow)

    def flush_cache(self):
        for _ in range(10 * self.times):
            self.add(self.side, (self.large.size,), None, self.there)
        self.side.flush()


KINDS = {"slow_copy": "slow_copy", "checkpoint": "checkpoint", "extra_allocation": "extra_allocation", "build": "build",
         "lock": "lock_queue", "logging": "write_log", "page_faults": "touch_pages", "gc_pause": "collect_garbage",
         "extra_launches": "extra_launches", "slow_kernel": "slow_kernel", "preempted": "preempted", "cache_flush": "flush_cache"}


def main():
    words = [word for word in sys.argv[1:] if word != "--opencl"]
    what, seed = words[0], int(words[1])
    kinds = {"all": list(KINDS), "nothing": []}.get(what, [what])
    program = (Cuda if len(words) == len(sys.argv) - 1 else OpenCL)(seed)
    if program.burner.state[0] == Burner.NOT_ALLOWED and "preempted" in kinds:
        kinds.remove("preempted")
    program.random.shuffle(kinds)
    plan = {WARM_UP + APART * i + program.random.randrange(APART // 2): kind for i, kind in enumerate(kinds)}
    steps = int(words[2]) if len(words) > 2 else WARM_UP + APART * len(kinds) + 20

    def plant():
        try:
            getattr(program, KINDS[plan[step]])()
            print("planted %d %s" % (step, plan[step]), flush=True)
        except Exception as why:  # this kind cannot be planted here
            print("%s: %s" % (plan[step], why), file=sys.stderr)

    for step in range(steps):
        with program.range("step"):
            program.step(plant if step in plan else None)


main()
