import itertools
import os
import threading
import _thread

from torch import _C
from torch.autograd import profiler
from torch.cuda import nvtx

local = threading.local()
operations = itertools.count(1)
nodes = []
device = None
if os.environ.get("FAKE_TORCH_DEVICE"):
    import sys
    sys.path.append(os.environ["FAKE_TORCH_DEVICE"])
    from device import Device
    sys.path.pop()
    device = Device()


def work():
    if device:
        device.cl.clEnqueueWriteBuffer(*device.arguments())


def ranged(name, sequence, body, state):
    if _C._cpu is None:
        return told(name, sequence, body, state)
    _C._cpu.set_profiler(3 if state else 0)
    _C._cpu.operator_begin(name.encode(), -1 if sequence is None else sequence, "Backward" in name)
    try:
        return told(name, sequence, body, state)
    finally:
        _C._cpu.operator_end()


def told(name, sequence, body, state):
    if state is None:
        return body()
    nvtx.range_push("%s%s, op_id = %d%s" % (
        name, "" if sequence is None else ", seq = %d" % sequence, next(operations),
        ", sizes = [[64, 32], [], [2]], input_op_ids = [(6,0), (0,0)]" if state.shapes else ""))
    try:
        return body()
    finally:
        nvtx.range_pop()


def forward(name):
    state = profiler.current()
    sequence = getattr(local, "sequence", 0)

    def kernel():
        work()
        nodes.append((name.capitalize() + "Backward0", sequence))
        local.sequence = sequence + 1

    ranged("aten::" + name, sequence,
           lambda: ranged("aten::%s_" % name, sequence, kernel, state), state)


def add():
    forward("add")


def mul():
    forward("mul")


def backward():
    """On a thread that is not Python's own, with the profiler's state of the caller."""
    state = profiler.current()
    done = threading.Lock()
    done.acquire()

    def engine():
        while nodes:
            name, sequence = nodes.pop()
            ranged("autograd::engine::evaluate_function: " + name, sequence,
                   lambda: ranged(name, sequence, work, state), state)
        done.release()
    _thread.start_new_thread(engine, ())
    done.acquire()
