#!/usr/bin/env python3
"""Programs with Triton kernels of their own: eleven with a planted fault and the same without it, and five without.

    triton_faults.py NAME --form bad|fixed [--steps N | --seconds S] [--turn FILE] [--cpu-smoke]

Part of the sets w (torch_faults_w.py: tuned on since), x, y, r and q (torch_faults_x.py, torch_faults_y.py,
torch_faults_r.py, torch_faults_q.py: scored only). Labels: tests/diagnosis/unseen.tsv. Needs PyTorch and Triton;
--cpu-smoke uses Triton's interpreter."""
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
from torch_faults_w import half, prepare


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


@triton.jit
def product(a, b, out, rows, columns, depth, part, PRECISION: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
            K: tl.constexpr):
    row = tl.program_id(0) * M + tl.arange(0, M)
    column = tl.program_id(1) * N + tl.arange(0, N)
    begin = tl.program_id(2) * part
    total = tl.zeros((M, N), dtype=tl.float32)
    for at in range(begin, begin + part, K):  # rows, columns and part are multiples of a tile's
        here = at + tl.arange(0, K)
        left = tl.load(a + row[:, None] * depth + here[None, :])
        right = tl.load(b + here[:, None] * columns + column[None, :])
        total = tl.dot(left, right, total, input_precision=PRECISION)
    whole = tl.program_id(2).to(tl.int64) * rows * columns
    tl.store(out + whole + row[:, None] * columns + column[None, :], total)


def multiply(a, b, out, tile, depth, precision="tf32"):
    rows, columns = out.shape[1:]
    grid = rows // tile, columns // tile, out.shape[0]
    product[grid](a, b, out, rows, columns, a.shape[1], a.shape[1] // out.shape[0], PRECISION=precision, M=tile, N=tile,
                  K=depth, num_warps=8, num_stages=3)


def y_triton_dot(fixed):
    rows, columns, depth, tile = size(8192, 64), size(8192, 64), size(4096, 64), size(128, 32)
    a, b = rand(rows, depth), rand(depth, columns)
    out = torch.empty(1, rows, columns, device=common.DEVICE)

    def step():  # numbers of 32 bits, with all of their bits or as tensor cores take them
        multiply(a, b, out, tile, size(32, 16), "tf32" if fixed else "ieee")
        return out
    return step


def y_triton_tail(fixed):
    width, part, tile = size(1536, 64), size(12288, 64), size(128, 32)
    a, b = rand(width, 11 * part).to(half()), rand(11 * part, width).to(half())
    out = torch.empty(11 if fixed else 1, width, width, device=common.DEVICE)

    def step():  # the gradient of a layer's weights: 144 tiles, for 132 multiprocessors, or eleven parts of each
        multiply(a, b, out, tile, size(64, 16))
        return out.sum(0) if fixed else out[0]
    return step


@triton.jit
def add_norm(x, other, both, out, weight, width, BLOCK: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64) * width, tl.arange(0, BLOCK)
    value = tl.load(x + row + at, mask=at < width, other=0.0).to(tl.float32)
    value += tl.load(other + row + at, mask=at < width, other=0.0).to(tl.float32)
    tl.store(both + row + at, value, mask=at < width)
    value = value * tl.rsqrt(tl.sum(value * value, axis=0) / width + 1e-6)
    tl.store(out + row + at, value * tl.load(weight + at, mask=at < width), mask=at < width)


def y_triton_norm(_):
    rows, width = size(1 << 18, 4), size(4096, 20)
    x, other, weight = rand(rows, width).to(half()), rand(rows, width).to(half()), rand(width)
    both, out = torch.empty_like(x), torch.empty_like(x)

    def step():  # what a layer adds, and the norm of it all, in one pass
        add_norm[(rows,)](x, other, both, out, weight, width, BLOCK=triton.next_power_of_2(width), num_warps=8)
        return out
    return step


@triton.jit
def quick_gelu(x, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < count).to(tl.float32)
    tl.store(out + at, value / (1.0 + tl.exp(-1.702 * value)), mask=at < count)


def r_triton_zeros(fixed):
    count, block = size(1 << 30, 4096), 4096
    x, room = torch.randn(count, device=common.DEVICE, dtype=half()), torch.empty_like if fixed else torch.zeros_like

    def step():  # all of the result is written
        out = room(x)
        quick_gelu[(triton.cdiv(count, block),)](x, out, count, BLOCK=block, num_warps=8)
        return out
    return step


@triton.jit
def standardise(x, out, width, BLOCK: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64) * width, tl.arange(0, BLOCK)
    value = tl.load(x + row + at, mask=at < width, other=0.0)
    value = tl.where(at < width, value - tl.sum(value, axis=0) / width, 0.0)
    scale = tl.rsqrt(tl.sum(value * value, axis=0) / width + 1e-5)
    tl.store(out + row + at, value * scale, mask=at < width)


def r_triton_wide(fixed):
    rows, width = size(24576, 4), size(32000, 50)
    x, warps = rand(rows, width), 32 if fixed else 4
    out = torch.empty_like(x)

    def step():  # long rows, each kept in the registers of one program: of 128 threads, if no one says how many
        standardise[(rows,)](x, out, width, BLOCK=triton.next_power_of_2(width), num_warps=warps)
        return out
    return step


@triton.jit
def quantise(x, out, scales, width, BLOCK: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    value = tl.load(x + row * width + at, mask=at < width, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(value), axis=0), 1e-6) / 127.0
    tl.store(scales + row, scale)
    tl.store(out + row * width + at, tl.floor(value / scale + 0.5).to(tl.int8), mask=at < width)


def r_triton_quant(_):
    rows, width = size(1 << 18, 4), size(8192, 20)
    x, scales = torch.randn(rows, width, device=common.DEVICE, dtype=half()), torch.empty(rows, device=common.DEVICE)
    out = torch.empty(rows, width, dtype=torch.int8, device=common.DEVICE)

    def step():  # each row in eight bits, with a scale of its own
        quantise[(rows,)](x, out, scales, width, BLOCK=triton.next_power_of_2(width), num_warps=8)
        return out
    return step


@triton.jit
def column_sums(x, sums, rows, width, part, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), dtype=tl.float32)
    begin = tl.program_id(1) * part
    end = tl.minimum(begin + part, rows)
    for at in range(begin, end, ROWS):
        row = at + tl.arange(0, ROWS)
        here = row[:, None].to(tl.int64) * width + column[None, :]
        value = tl.load(x + here, mask=(row < end)[:, None] & (column < width)[None, :], other=0.0)
        total += tl.sum(value.to(tl.float32), axis=0)
    tl.store(sums + tl.program_id(1) * width + column, total, mask=column < width)


def q_triton_columns(fixed):
    rows, inner, width = size(1 << 17, 128), size(1024, 16), size(4096, 16)
    x, change = rand(rows, inner).to(half()), rand(rows, width).to(half())
    weight, parts = rand(width, inner).to(half()) / width ** 0.5, 32 if fixed else 1
    high, across = (64, 64) if fixed else (1024, 2)
    sums = torch.empty(parts, width, device=common.DEVICE)

    def step():  # what a layer learns; its bias by tiles, or by programs that each go down two columns
        column_sums[(triton.cdiv(width, across), parts)](change, sums, rows, width, triton.cdiv(rows, parts), ROWS=high,
                                                         COLUMNS=across)
        return change @ weight, change.T @ x, sums.sum(0)
    return step


@triton.jit
def products(a, b, out, rows, columns, depth, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    across = columns // N
    for tile in range(tl.program_id(0), rows // M * across, tl.num_programs(0)):
        row = tile // across * M + tl.arange(0, M)
        column = tile % across * N + tl.arange(0, N)
        total = tl.zeros((M, N), dtype=tl.float32)
        for at in range(0, depth, K):  # all sizes are multiples of a tile's
            here = at + tl.arange(0, K)
            left = tl.load(a + row[:, None] * depth + here[None, :])
            right = tl.load(b + here[:, None] * columns + column[None, :])
            total = tl.dot(left, right, total)
        tl.store(out + row[:, None] * columns + column[None, :], total.to(out.dtype.element_ty))


def q_triton_persistent(fixed):
    rows, columns, depth, tile = size(8192, 64), size(8448, 96), size(4096, 64), size(128, 32)
    a, weights = rand(rows, depth).to(half()), [rand(depth, columns).to(half()) for _ in range(4)]
    out, programs = torch.empty(rows, columns, device=common.DEVICE, dtype=half()), 108  # as many as an A100 has
    if fixed:
        programs = 4 if common.SMOKE else torch.cuda.get_device_properties(0).multi_processor_count

    def step():  # some products, each by programs that stay and take tile after tile
        for weight in weights:
            products[(programs,)](a, weight, out, rows, columns, depth, M=tile, N=tile, K=size(64, 16), num_warps=8,
                                  num_stages=3)
        return out
    return step


@triton.jit
def rotate(x, cosines, sines, HEADS: tl.constexpr, HALF: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    head, at = tl.arange(0, HEADS)[:, None], tl.arange(0, HALF)[None, :]
    here = x + token * HEADS * 2 * HALF + head * 2 * HALF + at
    cosine, sine = tl.load(cosines + token * HALF + at), tl.load(sines + token * HALF + at)
    first, second = tl.load(here).to(tl.float32), tl.load(here + HALF).to(tl.float32)
    tl.store(here, first * cosine - second * sine)
    tl.store(here + HALF, second * cosine + first * sine)


def q_triton_rope(_):
    tokens, heads, part = size(1 << 16), size(32, 2), size(64, 8)
    queries = [torch.randn(tokens, heads, 2 * part, device=common.DEVICE, dtype=half()) for _ in range(8)]
    angles = torch.arange(tokens, device=common.DEVICE)[:, None] / 10000 ** (torch.arange(
        part, device=common.DEVICE) / part)
    cosines, sines = angles.cos(), angles.sin()

    def step():  # places of words, put into the queries of each layer where they are
        for query in queries:
            rotate[(tokens,)](query, cosines, sines, HEADS=heads, HALF=part, num_warps=4)
        return queries
    return step


if __name__ == "__main__":
    sys.exit(paced.main(__doc__, {name: function for name, function in globals().items()
                                  if name[:2] in ("w_", "x_", "y_", "r_", "q_")}, prepare))
