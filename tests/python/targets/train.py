"""A model, trained by the stand-in of PyTorch. argv: what else to do."""
import json
import os
import sys
import threading
import time
import _thread

before = dict(path=list(sys.path), modules=sorted(sys.modules), argv=sys.argv[1:])

import torch


class Layer(torch.nn.Module):
    def forward(self):
        torch.add()  # line of Layer.add
        if "fail" in sys.argv and not failed:
            failed.append(1)
            raise ValueError


class Block(torch.nn.Module):
    def __init__(self):
        self.first = Layer()
        self.second = Layer()

    def forward(self):
        self.first()
        self.second()
        torch.mul()  # line of Block.mul


class Model(torch.nn.Module):
    def __init__(self):
        self.block = Block()

    def forward(self):
        self.block()


failed = []
model = Model()


def step():
    try:
        model()
    except ValueError:
        pass
    torch.backward()


def main():
    if "profile" in sys.argv:
        with torch.autograd.profiler.profile():
            step()
        print("profiled")
    if "emit" in sys.argv:  # the program's own NVTX ranges
        with torch.autograd.profiler.emit_nvtx(enabled="disabled" not in sys.argv):
            step()
    if "emit-elsewhere" in sys.argv:  # the same in another thread, while this one goes on
        entered, leave = threading.Event(), threading.Event()

        def emit():
            with torch.autograd.profiler.emit_nvtx():
                entered.set()
                leave.wait()
                torch.mul()
        thread = threading.Thread(target=emit)
        thread.start()
        entered.wait()
        step()
        leave.set()
        thread.join()
    if "handed" in sys.argv:  # another thread ends it, inside of an operator of its own
        for _ in range(100):  # more than are noted
            torch._C._cpu.collective_end(torch._C._cpu.collective_begin(b"kept", 0))
            handed = torch._C._cpu.collective_begin(b"handed", 0)

            def end():
                torch._C._cpu.operator_begin(b"outer", -1, 0)
                torch._C._cpu.collective_end(handed)
                torch._C._cpu.operator_begin(b"inner", -1, 0)
                torch._C._cpu.operator_end()
                torch._C._cpu.operator_end()
            thread = threading.Thread(target=end)
            thread.start()
            thread.join()
    if "interrupt" in sys.argv:  # while the modules in it are named
        class Interrupted(Layer):
            def named_modules(self, prefix=""):
                raise KeyboardInterrupt
        try:
            Interrupted()()
        except KeyboardInterrupt:
            print("interrupted")
    if "collective" in sys.argv:  # another thread ends it
        for _ in range(3):
            work = torch._C._cpu.collective_begin(b"gloo:all_reduce", 1)
            thread = threading.Thread(target=torch._C._cpu.collective_end, args=(work,))
            thread.start()
            thread.join()
    if "compile" in sys.argv:
        torch._C._dynamo.eval_frame.set_eval_frame("compiler")
        Block()()
        assert torch._C._dynamo.eval_frame.set_eval_frame(None) == "compiler"
    if "recompile" in sys.argv:
        from torch import _dynamo
        handler = _dynamo.callback.callback_handler
        handler.begin()
        handler.begin()  # of a function inside
        handler.end()
        handler.end()
        _dynamo.reset()
        handler.begin("0/1")
        thread = threading.Thread(target=handler.end, args=("0/1",))
        thread.start()
        thread.join()
        handler.end()  # that did not begin
    if "collect" in sys.argv:
        import gc
        gc.collect()
        gc.collect(0)
    if "replace" in sys.argv:  # a module at an address that another one had
        for kind in (Layer, Block) * 8:
            kind()()
    if "twice" in sys.argv:  # another thread counts from 0, too
        thread = threading.Thread(target=model)
        thread.start()
        thread.join()
    for _ in range(2):
        step()
    if "thread" in sys.argv:
        thread = threading.Thread(target=torch.add)
        thread.start()
        thread.join()
        done = _thread.allocate_lock()  # one that module `threading` knows nothing of, by its module
        done.acquire()
        _thread.start_new_thread(lambda: (model(), done.release()), ())
        done.acquire()
        time.sleep(0.1)  # it ends by itself
    if "tell" in sys.argv:
        print(json.dumps(before))
        print(type(torch.__loader__).__name__, sorted(vars(torch.__loader__)), torch.__spec__.name,
              *[finder.name for finder in sys.meta_path if "erfkit" in str(finder)])


main()
