#!/usr/bin/env python3
"""Programs whose host is the bottleneck, and two whose GPU is: what recording them costs.

    host_bound.py NAME [--seconds S] [--device cpu]     prints "step N ns, median M ns": the mean of an
                  [--turn FILE]                         iteration, and the median of 40 such means; FILE
                                                        is locked before the device is used: one at a time
    host_bound.py NAME --turns [--seconds S]            rounds of S seconds, in turns with others
    host_bound.py --list

Each iteration is an NVTX range "step". Nothing but the program's own work is in it: no clock is
read and nothing is synchronized, but where the program itself waits. Needs PyTorch; `jax` needs JAX.
"""
import argparse
import fcntl
import os
import statistics
import time

import turns

WARM_UP_STEPS = 30
PARTS = 40


def deep(torch, device):
    """60 linear layers on one sample."""
    layers = [torch.nn.Linear(256, 256) for _ in range(60)]
    model, sample = torch.nn.Sequential(*layers).to(device), torch.randn(1, 256, device=device)

    def step():
        with torch.no_grad():
            model(sample)
    return step


def lstm(torch, device):
    """An LSTM cell called 128 times from Python."""
    cell = torch.nn.LSTMCell(128, 128).to(device)
    words = torch.randn(128, 16, 128, device=device)

    def step():
        state = None
        with torch.no_grad():
            for word in words:
                state = cell(word, state)
    return step


def adamw(torch, device):
    """AdamW over 100 tensors, a kernel for each operation on each tensor."""
    tensors = [torch.nn.Parameter(torch.randn(64, 64, device=device)) for _ in range(100)]
    for tensor in tensors:
        tensor.grad = torch.randn_like(tensor)
    return torch.optim.AdamW(tensors, foreach=False).step


def copies(torch, device):
    """300 copies of 2 KiB to the device."""
    sources = [torch.randn(512) for _ in range(300)]
    if device == "cuda":
        sources = [source.pin_memory() for source in sources]
    targets = [torch.empty(512, device=device) for _ in sources]

    def step():
        for source, target in zip(sources, targets):
            target.copy_(source, non_blocking=True)
    return step


def products(torch, device):
    """256 products of 64 x 64 in a Python loop."""
    pairs = [torch.randn(2, 64, 64, device=device) for _ in range(256)]

    def step():
        for left, right in pairs:
            left @ right
    return step


def readback(torch, device):
    """30 small kernels and a scalar that the host waits for."""
    values = torch.randn(4096, device=device)

    def step():
        total = values
        for _ in range(30):
            total = total * 1.0001 + 0.5
        total.sum().item()
    return step


def graph(torch, device):
    """A CUDA graph of 60 linear layers, replayed."""
    run = deep(torch, device)
    if device == "cpu":
        return run
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        run()
    return captured.replay


def jax(torch, device):
    """A step of gradient descent that XLA compiled, 20 small layers."""
    import jax as jx
    weights = [jx.random.normal(jx.random.key(i), (64, 64)) * 0.1 for i in range(20)]
    sample = jx.random.normal(jx.random.key(99), (8, 64))

    def loss(weights):
        value = sample
        for weight in weights:
            value = jx.numpy.tanh(value @ weight)
        return (value ** 2).sum()
    update = jx.jit(lambda weights: [w - 1e-3 * g for w, g in zip(weights, jx.grad(loss)(weights))])
    state = [update(weights)]

    def step():
        state[0] = update(state[0])
        state[0][0].block_until_ready()
    return step


def gemm(torch, device):
    """Bound by the GPU: products of 4096 x 4096 in bfloat16."""
    size = 4096 if device == "cuda" else 64
    left, right = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in "ab")

    def step():
        for _ in range(10):
            left @ right
    return step


def train(torch, device):
    """Bound by the GPU: a training step of a perceptron."""
    width, batch = (4096, 8192) if device == "cuda" else (32, 8)
    kind = torch.bfloat16 if device == "cuda" else torch.float32
    model = torch.nn.Sequential(*(layer for _ in range(4) for layer in
                                  (torch.nn.Linear(width, width), torch.nn.GELU())))
    model = model.to(device, kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    sample = torch.randn(batch, width, device=device, dtype=kind)

    def step():
        optimizer.zero_grad()
        model(sample).square().mean().backward()
        optimizer.step()
    return step


PROGRAMS = {f.__name__: f for f in (deep, lstm, adamw, copies, products, readback, graph, jax, gemm,
                                    train)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("name", nargs="?", choices=PROGRAMS)
    parser.add_argument("--list", action="store_true", help="names and what each does")
    parser.add_argument("--seconds", type=float, default=8, help="about how long the steps take")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--turn", metavar="FILE", help="locked while it uses the device")
    parser.add_argument("--turns", action="store_true", help="turns.h")
    args = parser.parse_args()
    if args.list or not args.name:
        for name, program in PROGRAMS.items():
            print(f"{name:10} {program.__doc__}")
        return
    import torch
    if args.turn:
        fcntl.flock(os.open(args.turn, os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX)
    wait = torch.cuda.synchronize if args.device == "cuda" else lambda: None
    torch.manual_seed(1)
    step = PROGRAMS[args.name](torch, args.device)
    mark, unmark = torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop
    if args.device == "cpu":
        mark, unmark = lambda name: None, lambda: None

    def loop(steps, parts=None):
        """The mean time of an iteration; adds those of 40 parts to `parts`."""
        wait()
        begin = last = time.perf_counter_ns()
        for done in range(1, steps + 1):
            mark("step")
            step()
            unmark()
            if parts is not None and done % (steps // PARTS) == 0:
                now = time.perf_counter_ns()
                parts.append((now - last) / (steps // PARTS))
                last = now
        wait()
        return (time.perf_counter_ns() - begin) / steps
    loop(WARM_UP_STEPS)  # iterations, too: what a capture counts is all of them
    # How many: by the second of two short loops.
    loop(WARM_UP_STEPS)
    each = loop(WARM_UP_STEPS)
    if args.turns:
        steps = max(10, int(args.seconds * 1e9 / each))
        turns.play(lambda: {"ms_per_step": loop(steps) / 1e6},
                   lambda rounds: {"operations": rounds * steps})
        return
    steps = max(100, int(args.seconds * 1e9 / each))
    parts = []
    print(f"step {loop(steps, parts):.0f} ns, median {statistics.median(parts):.0f} ns ({steps} steps)")


if __name__ == "__main__":
    main()
