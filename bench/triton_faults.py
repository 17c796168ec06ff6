#!/usr/bin/env python3
"""Programs with Triton kernels of their own: five with a planted fault and the same without it, and two without.

    triton_faults.py NAME --form bad|fixed [--steps N | --seconds S] [--turn FILE] [--cpu-smoke]

Part of the sets w (torch_faults_w.py: tuned on since) and x (torch_faults_x.py: scored only). Labels: tests/diagnosis/unseen.tsv. Needs
PyTorch and Triton; --cpu-smoke uses Triton's interpreter."""
import os
import sys

if "--cpu-smoke" in sys.argv:  # read when Triton is imported
    os.environ["TRITON_INTERPRET"] = "1"

import torch
import triton
import triton.language as tl

import paced
import torch_faults as common
from torch_faults import rand, size
from torch_faults_w import prepare


@triton.jit
def sum_of_squares(x, sums, row_length, part_length, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    begin = part * part_length
    end = tl.minimum(begin + part_length, row_length)
    for at in range(begin, end, BLOCK):
        here = at + tl.arange(0, BLOCK)
        values = tl.load(x + row.to(tl.int64) * row_length + here, mask=here < end, other=0.0)
        total += values * values
    tl.store(sums + row * tl.num_programs(1) + part, tl.sum(total, axis=0))


def w_triton_grid(fixed):
    rows, length = size(12, 2), size(1 << 24)
    x, parts = rand(rows, length), size(256, 2) if fixed else 1
    sums = torch.empty(rows, parts, device=common.DEVICE)

    def step():  # the norm of each row: a program for a row, or for each part of it
        sum_of_squares[(rows, parts)](x, sums, length, triton.cdiv(length, parts), BLOCK=4096)
        return sums.sum(-1).sqrt_()
    return step


@triton.jit
def affine(x, out, scale, shift, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < count) * scale + shift, mask=at < count)


@triton.jit
def silu(x, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < count)
    tl.store(out + at, value / (1.0 + tl.exp(-value)), mask=at < count)


@triton.jit
def gate(x, other, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < count) * tl.load(other + at, mask=at < count)
    tl.store(out + at, value, mask=at < count)


@triton.jit
def gated(x, other, out, scale, shift, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < count) * scale + shift
    value = value / (1.0 + tl.exp(-value)) * tl.load(other + at, mask=at < count)
    tl.store(out + at, value, mask=at < count)


def w_triton_chain(fixed):
    count, block = size(1 << 26), 1024
    x, other = rand(count), rand(count)
    first, second, out = (torch.empty_like(x) for _ in range(3))
    grid = (triton.cdiv(count, block),)

    def step():
        if fixed:
            gated[grid](x, other, out, 1.1, 0.1, count, BLOCK=block)
        else:
            affine[grid](x, first, 1.1, 0.1, count, BLOCK=block)
            silu[grid](first, second, count, BLOCK=block)
            gate[grid](second, other, out, count, BLOCK=block)
        return out
    return step


@triton.jit
def normalise(x, out, weight, width, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * width + at, mask=at < width, other=0.0)
    scale = 1.0 / tl.sqrt(tl.sum(value * value, axis=0) / width + 1e-6)
    tl.store(out + row * width + at, value * scale * tl.load(weight + at, mask=at < width), mask=at < width)


def w_triton_pieces(fixed):
    pieces, rows, width = size(96, 3), 64, size(1000, 20)
    x, weight = rand(pieces, rows, width), rand(width)
    out, block = torch.empty_like(x), triton.next_power_of_2(width)

    def step():  # RMS norm of each user's request, or of all
        if fixed:
            normalise[(pieces * rows,)](x, out, weight, width, BLOCK=block)
        else:
            for i in range(pieces):
                normalise[(rows,)](x[i], out[i], weight, width, BLOCK=block)
        return out
    return step


@triton.jit
def softmax(x, out, width, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row.to(tl.int64) * width + at, mask=at < width, other=-float("inf"))
    value = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row.to(tl.int64) * width + at, value / tl.sum(value, axis=0), mask=at < width)


def w_triton_softmax(_):
    rows, width = size(49152, 4), size(4000, 20)
    x = rand(rows, width)
    out = torch.empty_like(x)

    def step():
        softmax[(rows,)](x, out, width, BLOCK=triton.next_power_of_2(width), num_warps=8)
        return out
    return step


def x_triton_tiny(fixed):
    count = size(1 << 27, 4096)
    x, block = rand(count), 1024 if fixed else 32
    out = torch.empty_like(x)

    def step():  # a program for each 32 elements
        silu[(triton.cdiv(count, block),)](x, out, count, BLOCK=block, num_warps=4 if fixed else 1)
        return out
    return step


@triton.jit
def add_up(x, sums, count, SHARED: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < count, other=0.0)
    total = tl.sum(value * value, axis=0)
    if SHARED:
        tl.atomic_add(sums, total)
    else:
        tl.store(sums + tl.program_id(0), total)


def x_triton_atomics(fixed):
    count, block = size(1 << 27, 4096), 256
    x, programs = rand(count), triton.cdiv(count, block)
    sums = torch.zeros(programs if fixed else 1, device=common.DEVICE)

    def step():  # the energy of a signal
        if not fixed:
            sums.zero_()
        add_up[(programs,)](x, sums, count, SHARED=not fixed, BLOCK=block)
        return sums.sum()
    return step


@triton.jit
def cross_entropy(x, truth, losses, width, BLOCK: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    value = tl.load(x + row * width + at, mask=at < width, other=-float("inf"))
    most = tl.max(value, axis=0)
    right = tl.load(x + row * width + tl.load(truth + row))
    tl.store(losses + row, tl.log(tl.sum(tl.exp(value - most), axis=0)) + most - right)


def x_triton_loss(_):
    rows, width = size(32768, 4), size(8000, 20)
    x, losses = rand(rows, width), torch.empty(rows, device=common.DEVICE)
    truth = torch.randint(0, width, (rows,), device=common.DEVICE)

    def step():
        cross_entropy[(rows,)](x, truth, losses, width, BLOCK=triton.next_power_of_2(width), num_warps=8)
        return losses
    return step


if __name__ == "__main__":
    sys.exit(paced.main(__doc__, {name: function for name, function in globals().items() if name[:2] in ("w_", "x_")},
                        prepare))
