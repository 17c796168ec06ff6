"""Launches a counted kernel from many kinds of places, and says at each of them where it is, as
Python itself has it: functions, generators, calls from C, other threads, autograd's threads (hooks,
functions of its own), modules, compiled extensions' callbacks. One launch a place, one after the other."""
import contextlib
import functools
import os
import sys
import threading

from common import done, need_gpu, torch

stacks = []  # of each launch, in their order: [[function, file, line], ...], innermost first


def qualified(code):
    return getattr(code, "co_qualname", code.co_name)


def launch(tensor):
    line = sys._getframe().f_lineno + 1
    tensor.bitwise_not_()
    frames, frame = [], sys._getframe()
    while frame:
        frames.append([qualified(frame.f_code), os.path.basename(frame.f_code.co_filename), frame.f_lineno])
        frame = frame.f_back
    frames[0][2] = line
    stacks.append(frames)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(context, x, tensor):
        launch(tensor)
        context.tensor = tensor
        return x * x

    @staticmethod
    def backward(context, gradient):
        launch(context.tensor)  # on a thread of autograd's
        return gradient, None


class Layer(torch.nn.Module):
    def __init__(self, tensor):
        super().__init__()
        self.tensor = tensor

    def forward(self, x):
        launch(self.tensor)
        return x + 1


def deeper(tensor, levels):
    if levels:
        deeper(tensor, levels - 1)
    else:
        launch(tensor)


def places(tensor):
    launch(tensor)
    (lambda: launch(tensor))()
    [launch(tensor) for _ in range(2)]
    deeper(tensor, 40)
    functools.partial(launch, tensor)()
    sorted([1], key=lambda _: launch(tensor) or 0)
    functools.reduce(lambda a, b: launch(tensor), [1, 2])

    def generator():
        yield launch(tensor)
        yield from (launch(tensor) for _ in range(1))
    list(generator())

    @contextlib.contextmanager
    def manager():
        launch(tensor)
        yield
        launch(tensor)
    with manager():
        exec(compile("\n\nlaunch(tensor)", "made.py", "exec"), {"launch": launch, "tensor": tensor})


def copies(tensor):
    """Counted by the witness alone."""
    there = tensor.cpu()
    deeper(there.cuda(), 3)
    list(map(lambda part: part.to("cuda"), [there[:8], there[8:]]))


def modules(tensor):
    model = torch.nn.Sequential(Layer(tensor), torch.nn.Sequential(Layer(tensor)))
    model.register_forward_hook(lambda *_: launch(tensor))
    model(torch.ones(4, device="cuda"))


def backward(tensor):
    x = torch.ones(4, device="cuda", requires_grad=True)
    x.register_hook(lambda gradient: launch(tensor))
    Square.apply(x, tensor).sum().backward()
    torch.utils.checkpoint.checkpoint(lambda y: (launch(tensor), y * 2)[1], x,
                                      use_reentrant=False).sum().backward()


def in_thread(function, *arguments):
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    thread.join()


def main():
    need_gpu()
    import torch.utils.checkpoint
    tensor = torch.zeros(1024, dtype=torch.int32, device="cuda")
    for act in (places, copies, modules, backward):
        act(tensor)
        in_thread(act, tensor)
    torch.cuda.synchronize()
    done(counted=len(stacks), stacks=stacks, launching_processes=1)


if __name__ == "__main__":
    main()
