#!/usr/bin/env python3
"""Set x of torch_faults.py: habits of common training and inference code, each with its fault and without.

    torch_faults_x.py NAME --form bad|fixed [--steps N | --seconds S] [--turn FILE] [--cpu-smoke]

Drawn from language models, diffusion, graphs, recommenders, speech and reinforcement learning, not from a tuning guide.
Twenty-one pairs and five programs without a fault, scored once before any rule was changed for them. Triton and
JAX: triton_faults.py, jax_faults.py. Labels: tests/diagnosis/unseen.tsv, written first. Where a step returns
something, it is the same in both forms, but for rounding."""
import math
import sys
import tempfile
import time

import torch
import torch.nn.functional as F
from torch import nn

import paced
import torch_faults as common
from torch_faults import loader_step, mlp, rand, sgd, size, trainer
from torch_faults_w import Block, Residual, autocast, half, prepare


def put(module):
    return module.to(common.DEVICE)


def pinned(tensor):
    return tensor if common.SMOKE else tensor.pin_memory()


def convolutions(width, count, before=3):
    layers = []
    for i in range(count):
        layers += [nn.Conv2d(width if i else before, width, 3, padding=1), nn.GroupNorm(4, width), nn.SiLU()]
    return nn.Sequential(*layers)


# ---- language models --------------------------------------------------------------------------------

def x_cache(fixed):
    rows, heads, begin, dim, tokens = size(64, 2), size(16, 2), size(1024, 8), 64, 64
    layers = put(nn.ModuleList(nn.Linear(heads * dim, 3 * heads * dim) for _ in range(4))).to(half())
    kept = [rand(2, rows, heads, begin + tokens, dim, dtype=torch.bfloat16) for _ in layers]
    x, state = rand(rows, heads * dim, dtype=torch.bfloat16), {"n": 0, "caches": []}

    @torch.no_grad()
    def step():  # one token; after so many the next text begins
        n, y = begin + state["n"] % tokens, x
        if n == begin:
            state["caches"] = [both[:, :, :, :begin] for both in kept]
        state["n"] += 1
        for i, layer in enumerate(layers):
            q, *new = (t.view(rows, heads, 1, dim) for t in layer(y).chunk(3, -1))
            if fixed:
                kept[i][:, :, :, n:n + 1] = torch.stack(new)
                keys, values = kept[i][:, :, :, :n + 1]
            else:
                state["caches"][i] = torch.cat((state["caches"][i], torch.stack(new)), 3)
                keys, values = state["caches"][i]
            y = y + F.scaled_dot_product_attention(q, keys, values).flatten(1)
        return y
    return step


def x_beam(fixed):
    beams, width, words, length = 4, size(512, 16), size(8000), size(8, 3)
    embed, cell, head = put(nn.Embedding(words, width)), put(nn.GRUCell(width, width)), put(nn.Linear(width, words))

    def together(tokens, hidden, scores):
        hidden = cell(embed(tokens), hidden)
        scores, at = (scores[:, None] + F.log_softmax(head(hidden), -1)).flatten().topk(beams)
        return at % words, hidden[torch.div(at, words, rounding_mode="floor")], scores

    def one_by_one(tokens, hidden, scores):
        after, found = [], []
        for i in range(beams):
            after.append(cell(embed(tokens[i:i + 1]), hidden[i:i + 1]))
            values, ids = F.log_softmax(head(after[i]), -1).topk(beams)
            found += [(scores[i].item() + value, i, word) for value, word in zip(values[0].tolist(), ids[0].tolist())]
        best = sorted(found, reverse=True)[:beams]
        return (torch.tensor([word for _, _, word in best], device=common.DEVICE),
                torch.cat([after[i] for _, i, _ in best]),
                torch.tensor([value for value, _, _ in best], device=common.DEVICE))

    @torch.no_grad()
    def step():
        tokens, hidden = torch.arange(beams, device=common.DEVICE), torch.zeros(beams, width, device=common.DEVICE)
        scores = torch.zeros(beams, device=common.DEVICE)
        for _ in range(length):
            tokens, hidden, scores = (together if fixed else one_by_one)(tokens, hidden, scores)
        return scores
    return step


def x_experts(fixed):
    experts, tokens, width, inner = size(64, 4), size(4096, 16), size(1024, 8), size(512, 8)
    up = rand(experts, width, inner, dtype=torch.bfloat16) / width ** 0.5
    down = rand(experts, inner, width, dtype=torch.bfloat16) / inner ** 0.5
    x, route = rand(tokens, width, dtype=torch.bfloat16), torch.randperm(tokens, device=common.DEVICE) % experts

    @torch.no_grad()
    def step():  # a router that gives all experts the same number of tokens
        out = torch.zeros_like(x)
        if fixed:
            order = torch.argsort(route)
            here = x[order].view(experts, tokens // experts, width)
            out[order] = torch.bmm(F.silu(torch.bmm(here, up)), down).view(tokens, width)
            return out
        for i in range(experts):
            mine = torch.where(route == i)[0]
            out.index_add_(0, mine, F.silu(x[mine] @ up[i]) @ down[i])
        return out
    return step


def x_lora(fixed):
    width, rank, scale = size(1024), 8, 0.5
    layers = [(rand(width, width) / width ** 0.5, rand(width, rank) / width ** 0.5, rand(rank, width)) for _ in range(24)]
    merged, x = [w + scale * (a @ b) for w, a, b in layers], rand(16, width)

    @torch.no_grad()
    def step():
        y = x
        for whole, (weight, a, b) in zip(merged, layers):
            y = torch.tanh(y @ whole if fixed else y @ weight + (y @ a) @ b * scale)
        return y
    return step


class Texts(torch.utils.data.Dataset):
    """Tokens of a text, each the longest piece that the vocabulary has."""

    def __init__(self):
        self.pieces = {a + b + c: i for i, (a, b, c) in enumerate(
            (a, b, c) for a in "abcdefghij" for b in ["", *"abcdefghij"] for c in ["", *"ab"])}

    def __len__(self):
        return 1000000

    def __getitem__(self, i):
        text = "".join("abcdefghij"[(i * 7 + k * k * 3 + k // 5) % 10] for k in range(size(2000, 400)))
        tokens, at = [], 0
        while len(tokens) < 128:
            length = next(n for n in (3, 2, 1) if text[at:at + n] in self.pieces)
            tokens.append(self.pieces[text[at:at + length]])
            at += length
        return torch.tensor(tokens)


def x_tokens(fixed):
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Texts(), batch_size=size(128, 2), num_workers=8 if fixed else 0,
                                         pin_memory=not common.SMOKE)
    width = size(512, 16)
    model = nn.Sequential(nn.Embedding(400, width), *(nn.TransformerEncoderLayer(
        width, 8, 4 * width, dropout=0.0, batch_first=True) for _ in range(4)))
    return loader_step(loader, put(model), lambda m, x: m(x).square().mean())


class Masked(nn.Module):
    """A block of an early GPT, with its mask made in each call or kept."""

    def __init__(self, width, heads, length, kept):
        super().__init__()
        self.heads, self.length, self.kept = heads, length, kept
        self.norm, self.attend, self.project = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("mask", self.triangle())

    def triangle(self):
        return torch.tril(torch.ones(self.length, self.length)).bool()

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.attend(self.norm(x)).chunk(3, -1))
        mask = self.mask if self.kept else self.triangle().to(x.device)
        return x + self.project(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2))


def x_mask(fixed):
    width, length = size(1024, 32), size(1024, 16)
    model = put(nn.Sequential(*(Masked(width, size(16, 2), length, fixed) for _ in range(6)))).to(half())
    x = rand(4, length, width, dtype=torch.bfloat16)
    return trainer(model, sgd(model), lambda m: m(x).float().square().mean())


def x_padding(fixed):
    width, longest, short = size(1024, 32), size(1024, 16), size(128, 4)
    model = put(nn.Sequential(*(Block(width, size(16, 2)) for _ in range(4)))).to(half())
    many, few = size(56, 3), size(8, 1)
    x = rand(many + few, longest, width, dtype=torch.bfloat16)

    @torch.no_grad()
    def step():  # causal: what a text is padded with changes nothing in it
        if fixed:
            return torch.cat((model(x[:many, :short]).flatten(0, 1), model(x[many:]).flatten(0, 1)))
        y = model(x)
        return torch.cat((y[:many, :short].flatten(0, 1), y[many:].flatten(0, 1)))
    return step


def rotated(x, weight, cos, sin):
    """RMS norm and rotary positions, as written out in many models."""
    wide = x.float()
    y = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * weight
    one, two = y.chunk(2, -1)
    return y * cos + torch.cat((-two, one), -1) * sin


def x_llama(fixed):
    length, dim = size(4096, 8), 128
    x, weight = rand(4, size(32, 2), length, dim, dtype=torch.bfloat16), rand(dim, dtype=torch.bfloat16)
    angle = rand(length, dim, dtype=torch.bfloat16)
    cos, sin, one = angle.cos(), angle.sin(), torch.compile(rotated) if fixed and not common.SMOKE else rotated

    def step():
        with torch.no_grad():
            return one(x, weight, cos, sin)
    return step


# ---- pictures and sound -----------------------------------------------------------------------------

def x_guidance(fixed):
    width, place = size(128, 8), size(64, 8)
    first, body, last = (put(m) for m in (nn.Conv2d(4, width, 3, padding=1), convolutions(width, 8, width),
                                          nn.Conv2d(width, 4, 3, padding=1)))
    noise, texts = rand(1, 4, place, place), rand(2, width, 1, 1)

    def denoise(x, text):
        return last(body(first(x) + text))

    @torch.no_grad()
    def step():  # with the text and without it
        if fixed:
            with_text, without = denoise(noise.expand(2, -1, -1, -1), texts).chunk(2)
        else:
            with_text, without = denoise(noise, texts[:1]), denoise(noise, texts[1:])
        return without + 7.5 * (with_text - without)
    return step


def x_speech(fixed):
    width, layers = size(256, 8), []
    for i, (kernel, stride) in enumerate(((10, 5), (3, 2), (3, 2), (3, 2), (2, 2))):
        layers += [nn.Conv1d(width if i else 1, width, kernel, stride), nn.GELU()]
    model, sound = put(nn.Sequential(*layers)), rand(size(24, 3), 1, size(8000, 400))

    @torch.no_grad()
    def step():
        return torch.cat([model(x) for x in sound.split(len(sound) if fixed else 1)])
    return step


def jitter(pictures, angle, light):
    """Turned and brightened pictures."""
    pictures = pictures.float() / 255
    turn = torch.stack((angle.cos(), -angle.sin(), angle * 0, angle.sin(), angle.cos(), angle * 0), -1).view(-1, 2, 3)
    grid = F.affine_grid(turn, list(pictures.shape), align_corners=False)
    return F.grid_sample(pictures, grid, align_corners=False) * light[:, None, None, None]


def x_jitter(fixed):
    torch.set_num_threads(1)
    rows, place = size(32, 2), size(160, 16)
    pictures = pinned(torch.randint(0, 256, (rows, 3, place, place), dtype=torch.uint8))
    model = put(nn.Sequential(convolutions(size(64, 8), 6), nn.AdaptiveAvgPool2d(1), nn.Flatten()))

    def loss(m):
        batch = pictures, torch.rand(rows) - 0.5, torch.rand(rows) + 0.5
        if fixed:
            x = jitter(*(t.to(common.DEVICE, non_blocking=True) for t in batch))
        else:
            x = jitter(*batch).to(common.DEVICE)
        return m(x).square().mean()
    return trainer(model, sgd(model), loss)


def x_metric(fixed):
    classes, rows, place = 21, size(16, 2), size(160, 16)
    model = put(nn.Sequential(convolutions(size(64, 8), 5), nn.Conv2d(size(64, 8), classes, 1)))
    x, truth = rand(rows, 3, place, place), torch.randint(0, classes, (rows, place, place))
    label = truth.to(common.DEVICE)
    counts = torch.zeros(classes * classes, device=common.DEVICE if fixed else "cpu")

    @torch.no_grad()
    def step():  # which class was taken for which, of a validation
        found = model(x).argmax(1)
        if fixed:
            pairs = (label * classes + found).float() + 0.5
            counts.add_(torch.histc(pairs, classes * classes, 0, classes * classes))
        else:
            counts.add_(torch.bincount((truth * classes + found.cpu()).flatten(), minlength=classes * classes))
        return counts
    return step


def x_timers(fixed):
    width = size(96, 8)
    model, spent = convolutions(width, 10), []
    model, x = put(model), rand(2, 3, size(48, 8), size(48, 8))
    wait = (lambda: None) if common.SMOKE else torch.cuda.synchronize

    @torch.no_grad()
    def step():  # timers of each layer that somebody left in
        y = x
        for layer in model:
            begun = time.perf_counter()
            y = layer(y)
            if not fixed:
                wait()
                spent.append(time.perf_counter() - begun)
        return y
    return step


def x_streams(fixed):
    length, rows = size(1 << 20), 8
    a, b = (rand(rows, length) for _ in range(2))
    sums = torch.empty_like(a), torch.empty_like(b)
    if common.SMOKE:
        return lambda: [torch.cumsum(x, -1, out=y) for x, y in zip((a, b), sums)][0]
    side, here = torch.cuda.Stream(), torch.cuda.current_stream()

    def step():  # two channels that have nothing to do with each other
        side.wait_stream(here)
        for _ in range(3):
            torch.cumsum(a, -1, out=sums[0])
            if not fixed:
                side.wait_stream(here)
            with torch.cuda.stream(side):
                torch.cumsum(b, -1, out=sums[1])
            if not fixed:
                here.wait_stream(side)
        here.wait_stream(side)
    return step


# ---- graphs, tables, games --------------------------------------------------------------------------

def x_relations(fixed):
    nodes, width, relations, edges = size(4096), size(64, 8), size(48, 3), size(512)
    weights = [rand(relations, width, width) / width ** 0.5 for _ in range(3)]
    x = rand(nodes, width)
    source, target = (torch.randint(0, nodes, (relations, edges), device=common.DEVICE) for _ in range(2))

    @torch.no_grad()
    def step():
        y = x
        for layer in weights:
            out = torch.zeros_like(y)
            if fixed:
                out.index_add_(0, target.flatten(), torch.bmm(y[source], layer).flatten(0, 1))
            else:
                for i in range(relations):
                    out.index_add_(0, target[i], y[source[i]] @ layer[i])
            y = torch.tanh(y + out)
        return y
    return step


def x_tables(fixed):
    tables, count, width, rows = 26, size(100000), 32, size(2048)
    weight = rand(tables * count, width)
    parts, starts = weight.split(count), torch.arange(tables, device=common.DEVICE) * count
    top, x = mlp(tables * width, size(256), size(64), 1), torch.randint(0, count, (rows, tables), device=common.DEVICE)

    @torch.no_grad()
    def step():
        if fixed:
            return top(F.embedding(x + starts, weight).flatten(1))
        return top(torch.cat([F.embedding(x[:, i], part) for i, part in enumerate(parts)], 1))
    return step


def x_sparse(fixed):
    count, width = size(2000000), 64
    model = put(nn.Sequential(nn.Embedding(count, width, sparse=fixed), nn.Linear(width, size(256)), nn.ReLU(),
                              nn.Linear(size(256), 1)))
    x = torch.randint(0, count, (size(8192),), device=common.DEVICE)
    return trainer(model, sgd(model, foreach=False), lambda m: m(x).square().mean())


def x_rollout(fixed):
    games, turns = 64, size(16, 3)
    policy, where = mlp(3, 64, 64, 1, act=nn.Tanh), common.DEVICE if fixed else "cpu"
    begin = torch.linspace(-3, 3, games, device=where)

    @torch.no_grad()
    def step():  # pendulums to be held upright
        angle, speed = begin, torch.zeros_like(begin)
        for _ in range(turns):
            seen = torch.stack((angle.cos(), angle.sin(), speed), -1).to(common.DEVICE)
            force = policy(seen)[:, 0].to(where)
            speed = (speed + 0.05 * (15 * angle.sin() + 3 * force)).clamp(-8, 8)
            angle = angle + 0.05 * speed
        return angle
    return step


# ---- training ---------------------------------------------------------------------------------------

def x_clip(fixed):
    model, x = mlp(*[size(512)] * 21, act=nn.GELU), rand(size(1024), size(512))
    optimizer, weights = sgd(model, foreach=True), list(model.parameters())

    @torch.no_grad()
    def clip():  # each gradient in proportion to its weights
        grads = [p.grad for p in weights]
        if fixed:
            long, most = (torch.stack(torch._foreach_norm(some)) for some in (grads, weights))
            torch._foreach_mul_(grads, list((0.01 * most.clamp(min=1e-3) / long).clamp(max=1).unbind()))
            return
        for weight, grad in zip(weights, grads):
            long, most = grad.norm().item(), max(weight.norm().item(), 1e-3)
            if long > 0.01 * most:
                grad.mul_(0.01 * most / long)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(x).square().mean()
        loss.backward()
        clip()
        optimizer.step()
        return loss.detach()
    return step


def x_save(fixed):
    model, x = mlp(*[size(1024)] * 9), rand(size(4096), size(1024))
    optimizer, state = sgd(model, momentum=0.9), {"i": 0}

    def save(_):
        state["i"] += 1
        if state["i"] % (100 if fixed else 2) == 0:
            with tempfile.TemporaryFile() as out:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, out)
    return trainer(model, optimizer, lambda m: m(x).square().mean(), save)


def x_double(fixed):
    kind = torch.float32 if fixed else torch.float64  # what NumPy's arrays are, if nobody says otherwise
    model, x = mlp(*[size(2048)] * 6).to(kind), rand(size(8192), size(2048)).to(kind)
    return trainer(model, sgd(model), lambda m: m(x).square().mean())


# ---- programs without a fault -----------------------------------------------------------------------

def x_vision(_):
    width = size(384, 8)
    model = nn.Sequential(nn.Conv2d(3, width, 4, 4), *(Residual(width, width // 2) for _ in range(4)),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100))
    model = model.to(common.DEVICE, memory_format=torch.channels_last)
    x = rand(size(128, 2), 3, size(160, 16), size(160, 16)).to(memory_format=torch.channels_last)
    label = torch.randint(0, 100, (len(x),), device=common.DEVICE)

    def loss(m):
        with autocast():
            return F.cross_entropy(m(x).float(), label)
    return trainer(model, sgd(model, momentum=0.9, foreach=True), loss)


def x_ranking(_):
    rows, width, bag = size(16384), size(512, 8), 20
    table = put(nn.EmbeddingBag(size(200000), width, mode="sum")).to(half())
    top = mlp(width, *[size(4096)] * 4, 1, dtype=torch.bfloat16)
    x = torch.randint(0, table.num_embeddings, (rows, bag), device=common.DEVICE)

    def step():
        with torch.no_grad():
            return top(table(x))
    return step


def x_decoder(_):
    width, layers = size(3072, 32), 4
    model = put(nn.Sequential(*(nn.Sequential(Block(width, size(24, 2)), nn.LayerNorm(width), nn.Linear(width, 4 * width),
                                              nn.GELU(), nn.Linear(4 * width, width)) for _ in range(layers)))).to(half())
    x, run = rand(4, size(4096, 16), width, dtype=torch.bfloat16), model if common.SMOKE else torch.compile(model)

    def step():
        with torch.no_grad():
            return run(x)
    return step


def x_denoise(_):
    width, place = size(256, 8), size(64, 8)
    model = nn.Sequential(nn.Conv2d(4, width, 3, padding=1), *(Residual(width, width // 2) for _ in range(6)),
                          nn.Conv2d(width, 4, 3, padding=1))
    model = model.to(common.DEVICE, memory_format=torch.channels_last)
    x = rand(size(64, 2), 4, place, place).to(memory_format=torch.channels_last)

    def loss(m):
        noise, when = torch.randn_like(x), torch.rand(len(x), 1, 1, 1, device=common.DEVICE)
        with autocast():
            found = m(torch.cos(when * math.pi / 2) * x + torch.sin(when * math.pi / 2) * noise)
        return F.mse_loss(found.float(), noise)
    return trainer(model, torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True), loss)


class Clips(torch.utils.data.Dataset):
    def __init__(self):
        self.clips = torch.randn(64, size(256), size(512, 16))

    def __len__(self):
        return 1000000

    def __getitem__(self, i):
        return self.clips[i % len(self.clips)] * (1 + i % 7)


def x_feeder(_):
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Clips(), batch_size=size(32, 2), num_workers=size(6, 1),
                                         pin_memory=not common.SMOKE, prefetch_factor=4)
    width = size(512, 16)
    model = put(nn.Sequential(*(nn.TransformerEncoderLayer(width, 8, 8 * width, dropout=0.0, batch_first=True)
                                for _ in range(8))))
    return loader_step(loader, model, lambda m, x: m(x).square().mean())


if __name__ == "__main__":
    sys.exit(paced.main(__doc__, {name: function for name, function in globals().items() if name.startswith("x_")},
                        prepare))
