#!/usr/bin/env python3
"""Set w of torch_faults.py: the advice of PyTorch's own Performance Tuning Guide, each not followed and followed.

    torch_faults_w.py NAME --form bad|fixed [--steps N | --seconds S] [--turn FILE] [--cpu-smoke]

Thirteen pairs and two programs without a fault, scored once and tuned on since. Sizes are those of
common programs, chosen without a look at the rules, and for some of the guide's advice perfkit has no rule. Triton
and JAX: triton_faults.py, jax_faults.py. Labels: tests/diagnosis/unseen.tsv. Left out of the guide: several GPUs,
the CPU's settings, checkpoints (they cost time where memory suffices)."""
import contextlib
import io
import sys

import torch
import torch.nn.functional as F
from torch import nn

import paced
import torch_faults as common
from torch_faults import loader_step, mlp, rand, sgd, size, trainer

LENGTHS = 46  # of w_lengths, each longer than the one before; its steps take less than a second, 40 GB in all without the fix
STEPS = {"w_lengths": LENGTHS - 2 * paced.WARM_UP}


def autocast():
    return torch.autocast(common.DEVICE, torch.bfloat16)


def half():
    return torch.float32 if common.SMOKE else torch.bfloat16


# ---- data -------------------------------------------------------------------------------------------

class Table(torch.utils.data.Dataset):
    """Lines of a text file with 128 numbers each, read when they are needed."""

    def __init__(self):
        self.lines = [",".join("%.5f" % cell for cell in row) for row in torch.rand(1024, 128).tolist()]

    def __len__(self):
        return 1000000

    def __getitem__(self, i):
        return torch.tensor([float(cell) for cell in self.lines[i % len(self.lines)].split(",")])


class Columns(nn.Module):
    """A transformer over the columns of a table."""

    def __init__(self, columns, width):
        super().__init__()
        self.scale, self.shift = (nn.Parameter(torch.randn(columns, width)) for _ in range(2))
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 8, 2 * width, dropout=0.0, batch_first=True)
                                    for _ in range(2))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        x = x[..., None] * self.scale + self.shift
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


def w_workers(fixed):
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Table(), batch_size=size(512, 2), shuffle=True, num_workers=8 if fixed else 0,
                                         pin_memory=not common.SMOKE)
    return loader_step(loader, Columns(128, size(256, 16)).to(common.DEVICE), lambda m, x: m(x).square().mean())


class Volumes(torch.utils.data.Dataset):
    def __init__(self):
        self.scans = torch.randn(16, 1, *[size(96, 8)] * 3)

    def __len__(self):
        return 100000

    def __getitem__(self, i):
        return self.scans[i % len(self.scans)]


def w_pinned(fixed):
    torch.set_num_threads(1)
    rows = iter(torch.utils.data.DataLoader(Volumes(), batch_size=size(4, 2), num_workers=size(6, 1),
                                            pin_memory=fixed and not common.SMOKE))
    model = nn.Sequential(nn.Conv3d(1, 32, 3, 2, 1), nn.ReLU(), nn.Conv3d(32, 64, 3, 1, 1), nn.ReLU(),
                          nn.Conv3d(64, 64, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(),
                          nn.Linear(64, 2)).to(common.DEVICE)
    return trainer(model, sgd(model), lambda m: m(next(rows).to(common.DEVICE, non_blocking=fixed)).square().mean())


def w_device(fixed):
    pictures, rows = rand(size(64, 2), 3, size(128, 16), size(128, 16)), size(64, 2)
    width = size(192, 8)
    layers = [nn.Conv2d(3, width, 4, 4)]
    for _ in range(4):
        layers += [nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1)]
    model = nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 4, 4)).to(common.DEVICE)
    optimizer = sgd(model)

    def loss(m):  # of a diffusion model: the noise that was added, found again
        if fixed:
            noise, when = torch.randn(pictures.shape, device=common.DEVICE), torch.rand(rows, device=common.DEVICE)
        else:
            noise, when = torch.randn(pictures.shape).to(common.DEVICE), torch.rand(rows).to(common.DEVICE)
        when = when[:, None, None, None]
        return F.mse_loss(m(pictures * (1 - when) + noise * when), noise)
    return trainer(model, optimizer, loss)


def w_lengths(fixed):
    rows, width, words = size(32, 2), size(256, 16), size(256, 8)
    layers = []
    for _ in range(5):
        layers += [nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()]
    model = nn.Sequential(*layers, nn.Linear(width, words)).to(common.DEVICE)
    lengths = [size(256 + 64 * i, 4 + i) for i in range(LENGTHS)]  # a corpus that is sorted by length
    state = {"i": 0}

    def loss(m, length):
        return -F.log_softmax(m(torch.randn(rows, length, width, device=common.DEVICE)), -1)[..., 0].mean()

    def batch(m):
        state["i"] += 1
        return loss(m, lengths[(state["i"] - 1) % LENGTHS])
    if fixed:  # the longest first, without a step of the optimizer
        loss(model, lengths[-1]).backward()
        model.zero_grad(set_to_none=True)
    return trainer(model, sgd(model), batch)


# ---- gradients --------------------------------------------------------------------------------------

class Residual(nn.Module):
    def __init__(self, width, inner, kernel=3, bias=False):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(width, inner, 1, bias=bias), nn.BatchNorm2d(inner), nn.ReLU(inplace=True),
                                  nn.Conv2d(inner, inner, kernel, padding=kernel // 2, bias=bias), nn.BatchNorm2d(inner),
                                  nn.ReLU(inplace=True), nn.Conv2d(inner, width, 1, bias=bias), nn.BatchNorm2d(width))

    def forward(self, x):
        return F.relu(x + self.body(x), inplace=True)


def w_grad(fixed):
    model = nn.Sequential(nn.Conv2d(3, 128, 4, 4), *(Residual(128, 64) for _ in range(8)), nn.AdaptiveAvgPool2d(1),
                          nn.Flatten(), nn.Linear(128, 10)).to(common.DEVICE).eval()
    pictures, label = rand(8, 3, 64, 64), torch.randint(0, 10, (8,), device=common.DEVICE)
    right = torch.zeros((), device=common.DEVICE, dtype=torch.long)

    def step():  # a validation, picture by picture
        with torch.no_grad() if fixed else contextlib.nullcontext():
            for i in range(len(pictures)):
                scores = model(pictures[i:i + 1])
                right.add_((scores.argmax(-1) == label[i]).sum())
        return right
    return step


def w_zero(fixed):
    width = size(4096)
    model, x = mlp(*[width] * 9), rand(size(32, 2), width)
    optimizer = sgd(model)

    def step():
        optimizer.zero_grad(set_to_none=fixed)
        model(x).square().mean().backward()
        optimizer.step()
    return step


# ---- kernels ----------------------------------------------------------------------------------------

def w_bias(fixed):
    layers, width = [], size(128, 8)
    for before in [3] + [width] * 7:
        layers += [nn.Conv2d(before, width, 3, padding=1, bias=not fixed), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
    model = nn.Sequential(*layers).to(common.DEVICE, memory_format=torch.channels_last)
    x = rand(size(64, 2), 3, size(64, 8), size(64, 8)).to(memory_format=torch.channels_last)

    def loss(m):
        with autocast():
            return m(x).float().square().mean()
    return trainer(model, sgd(model, momentum=0.9), loss)


def advance(price, variance):
    """A time step of Heston's model of prices, of many paths at once."""
    dt = 1 / 252
    first = torch.randn_like(price)
    second = -0.7 * first + 0.714 * torch.randn_like(price)
    known = torch.clamp(variance, min=0.0)
    root = torch.sqrt(known * dt)
    price = price * torch.exp((0.03 - 0.5 * known) * dt + root * first)
    return price, variance + 1.5 * (0.04 - known) * dt + 0.3 * root * second


def w_fuse(fixed):
    paths = size(1 << 23)
    one = torch.compile(advance) if fixed and not common.SMOKE else advance

    def step():
        with torch.no_grad():
            price, variance = (torch.full((paths,), value, device=common.DEVICE) for value in (1.0, 0.04))
            for _ in range(12):
                price, variance = one(price, variance)
            return torch.relu(price - 1.0).mean()
    return step


class Mixer(nn.Module):
    def __init__(self, patches, width):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.across = nn.Sequential(nn.Linear(patches, 2 * patches), nn.GELU(), nn.Linear(2 * patches, patches))
        self.within = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.across(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        return x + self.within(self.norms[1](x))


def w_amp(fixed):
    torch.set_float32_matmul_precision("highest")  # PyTorch's default
    width = size(512, 16)
    model = nn.Sequential(*(Mixer(196, width) for _ in range(4))).to(common.DEVICE)
    x = rand(size(64, 2), 196, width)

    def loss(m):
        with autocast() if fixed else contextlib.nullcontext():
            y = m(x)
        return y.float().square().mean()
    return trainer(model, sgd(model), loss)


def w_vocab(fixed):
    words = size(50304 if fixed else 50257)  # GPT-2's, and the next multiple of 64
    model = nn.Sequential(nn.Linear(size(1024), size(1024)), nn.GELU(), nn.Linear(size(1024), words, bias=False))
    model, x = model.to(common.DEVICE, half()), rand(size(8192), size(1024), dtype=torch.bfloat16)
    target = torch.randint(0, size(50257), (size(8192),), device=common.DEVICE)
    return trainer(model, sgd(model), lambda m: F.cross_entropy(m(x), target))


def w_layout(fixed):
    layout = torch.channels_last if fixed else torch.contiguous_format
    model = nn.Sequential(*(Residual(size(256, 8), size(128, 4)) for _ in range(6)))
    model = model.to(common.DEVICE, memory_format=layout)
    x = rand(size(128, 2), size(256, 8), size(28, 8), size(28, 8)).to(memory_format=layout)

    def loss(m):
        with autocast():
            return m(x).float().square().mean()
    return trainer(model, sgd(model, momentum=0.9), loss)


# ---- the host ---------------------------------------------------------------------------------------

def w_sync(fixed):
    width, rows = size(1536), size(2048)
    model, x = mlp(size(1024), *[width] * 10, 100, act=nn.GELU), rand(rows, size(1024))
    label, optimizer, log = torch.randint(0, 100, (rows,), device=common.DEVICE), sgd(model), io.StringIO()
    state = {"i": 0, "right": torch.zeros((), device=common.DEVICE, dtype=torch.long) if fixed else 0}

    def step():
        optimizer.zero_grad(set_to_none=True)
        scores = model(x)
        loss = F.cross_entropy(scores, label)
        if not fixed and torch.isnan(loss):
            raise RuntimeError("the loss is not a number")
        loss.backward()
        optimizer.step()
        right = (scores.detach().argmax(-1) == label).sum()
        state["i"] += 1
        if fixed:
            state["right"] += right
        else:
            state["right"] += right.item()
        if not fixed or state["i"] % 100 == 0:
            print(loss.detach(), file=log)
    return step


class Token(nn.Module):
    """A decoder's block for one token, with the keys and values of those before in buffers."""

    def __init__(self, width, heads, length):
        super().__init__()
        self.heads, self.first, self.second = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, heads, length, width // heads))

    def forward(self, x, at, seen):
        q, k, v = (t.view(1, 1, self.heads, -1).transpose(1, 2) for t in self.attend(self.first(x)).chunk(3, -1))
        self.keys.index_copy_(2, at, k)
        self.values.index_copy_(2, at, v)
        y = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=seen)
        x = x + self.project(y.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.second(x))))


def w_graphs(fixed):
    width, length = size(768, 32), size(512, 8)
    layers = nn.ModuleList(Token(width, size(12, 2), length) for _ in range(12)).to(common.DEVICE, half())
    x, at = rand(1, 1, width, dtype=torch.bfloat16), torch.zeros(1, dtype=torch.long, device=common.DEVICE)
    places = torch.arange(length, device=common.DEVICE)

    @torch.no_grad()
    def token():
        y, seen = x, (places <= at)[None, None, None]
        for layer in layers:
            y = layer(y, at, seen)
        x.copy_(y / y.norm())
        at.add_(1).remainder_(length)
    if not fixed or common.SMOKE:
        return token
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        for _ in range(3):
            token()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        token()
    return graph.replay


# ---- programs without a fault -----------------------------------------------------------------------

def w_mlp(_):
    width = size(3072, 32)
    model = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(), nn.Dropout(0.1),
                          nn.Linear(2 * width, width)).to(common.DEVICE, half())
    x = rand(size(16384), width, dtype=torch.bfloat16)
    run = model if common.SMOKE else torch.compile(model)
    return trainer(model, sgd(model), lambda _: run(x).float().square().mean())


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.attend(self.norm(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.project(y.transpose(1, 2).flatten(2))


def w_block(_):
    width = size(2048, 32)
    model = Block(width, size(16, 2)).to(common.DEVICE, half())
    x = rand(size(6, 2), size(4096, 16), width, dtype=torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **({} if common.SMOKE else {"fused": True}))
    return trainer(model, optimizer, lambda m: m(x).float().square().mean())


def prepare(smoke):
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    if smoke:
        common.SMOKE, common.DEVICE = True, "cpu"
        return lambda name: contextlib.nullcontext(), lambda last: None
    return torch.cuda.nvtx.range, lambda last: torch.cuda.synchronize()


if __name__ == "__main__":
    sys.exit(paced.main(__doc__, {name: function for name, function in globals().items() if name.startswith("w_")},
                        prepare, STEPS))
