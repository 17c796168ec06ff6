#!/usr/bin/env python3
"""Set q of torch_faults.py: faults from forums and issue trackers, in models that no earlier set has.

    torch_faults_q.py NAME --form bad|fixed [--steps N | --seconds S] [--turn FILE] [--cpu-smoke]

Fifteen pairs and five programs without a fault, written without a look at the rules. Triton and JAX: triton_faults.py,
jax_faults.py. Labels: tests/diagnosis/unseen.tsv, written first. Where a step returns something, it is the same in
both forms, but for rounding. Four of the programs without a fault look as if they had one: memory that grows for some
steps, a value read in some steps, data made by Python, weights that go to the host."""
import copy
import functools
import logging
import queue
import sys
import threading

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import paced
import torch_faults as common
from torch_faults import loader_step, mlp, rand, sgd, size, trainer
from torch_faults_w import half, prepare
from torch_faults_x import pinned, put
from torch_faults_y import compiled, layers, whole


class Cell(nn.Module):
    """A layer of a transformer; look(q, k, v) is its attention."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, look):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.attend(self.first(x)).chunk(3, -1))
        x = x + self.project(look(q, k, v).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.second(x))))


def cells(count, width, heads):
    return put(nn.ModuleList(Cell(width, heads) for _ in range(count))).to(half())


def capture(function):
    """A CUDA graph of what function launches; it has run before."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph


def warm(function):
    """Runs a function on another stream, as it must have before its capture."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        function()
    torch.cuda.current_stream().wait_stream(side)


# ---- launches ----------------------------------------------------------------------------------------

def farthest(points, chosen):
    """Writes which points of each cloud are far from each other, one after the other."""
    rows, at = torch.arange(len(points), device=points.device), torch.zeros_like(chosen[:, 0])
    least = torch.full_like(points[..., 0], 1e10)
    for i in range(chosen.shape[1]):
        chosen[:, i] = at
        least = torch.minimum(least, (points - points[rows, at][:, None]).square().sum(-1))
        at = least.argmax(-1)


def q_points(fixed):
    clouds, count, picks, near = size(16, 2), size(4096, 64), size(256, 8), size(32, 4)
    pool, points = rand(4, clouds, count, 3), rand(clouds, count, 3)
    chosen, state = torch.zeros(clouds, picks, dtype=torch.long, device=common.DEVICE), {"i": 0}
    rows, model = torch.arange(clouds, device=common.DEVICE), mlp(3, 64, 128, 256)

    def pick():
        farthest(points, chosen)
    if fixed and not common.SMOKE:
        warm(pick)
        pick = capture(pick).replay

    @torch.no_grad()
    def step():  # the first layer of a PointNet++
        state["i"] += 1
        points.copy_(pool[state["i"] % 4])
        pick()
        centres = points.gather(1, chosen[..., None].expand(-1, -1, 3))
        ids = torch.cdist(centres, points).topk(near, largest=False).indices
        around = points[rows[:, None, None], ids] - centres[:, :, None]
        return model(around).amax(2)
    return step


class Critics(nn.Module):
    """Networks of the same shape, each with its own opinion."""

    def __init__(self, members, together):
        super().__init__()
        self.members = None if together else nn.ModuleList(members)
        linear = [[m for m in member if isinstance(m, nn.Linear)] for member in members]
        if together:
            self.weights = nn.ParameterList(torch.stack([m.weight.detach().T for m in row]) for row in zip(*linear))
            self.biases = nn.ParameterList(torch.stack([m.bias.detach()[None] for m in row]) for row in zip(*linear))

    def forward(self, x):
        if self.members is not None:
            return torch.stack([member(x) for member in self.members])
        x = x.expand(len(self.weights[0]), -1, -1)
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases)):
            x = torch.baddbmm(bias, F.relu(x) if i else x, weight)
        return x


def q_critics(fixed):
    rows, width, quantiles, count = size(256), size(512, 8), 25, 5
    members = [mlp(48, width, width, width, quantiles) for _ in range(count)]
    model = put(Critics(members, fixed))
    target = copy.deepcopy(model).requires_grad_(False)
    ours, theirs = list(model.parameters()), list(target.parameters())
    seen, later, reward = rand(4, rows, 48), rand(4, rows, 48), rand(4, rows, 1)
    middle = (torch.arange(quantiles, device=common.DEVICE) + 0.5) / quantiles
    optimizer = torch.optim.Adam(ours, lr=1e-4, foreach=True)

    def update(x, after, reward):
        with torch.no_grad():  # the highest of what all critics expect are left out
            found = target(after).transpose(0, 1).flatten(1).sort(-1).values[:, :-2 * count]
            wanted = reward + 0.99 * found
        away = wanted[None, :, None] - model(x)[..., None]
        loss = ((middle[:, None] - (away < 0).float()).abs() * F.smooth_l1_loss(
            away, torch.zeros_like(away), reduction="none")).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            torch._foreach_mul_(theirs, 0.995)
            torch._foreach_add_(theirs, ours, alpha=0.005)

    def step():  # of TQC, with four updates for each step of the environments
        for batch in zip(seen, later, reward):
            update(*batch)
    return step


class Sheets(torch.utils.data.Dataset):
    """Batches of lines as they are in a file."""

    def __init__(self):
        self.lines = [",".join("%.6f" % cell for cell in row) for row in torch.randn(size(2048), 32).tolist()]

    def __len__(self):
        return 1000000

    def __getitem__(self, i):
        begin = i % len(self.lines)
        lines = self.lines[begin:] + self.lines[:begin]
        return torch.tensor([[float(cell) for cell in line.split(",")] for line in lines])


def ahead(source):
    """Batches that a thread reads ahead."""
    ready = queue.Queue(4)

    def read():
        for i in range(len(source)):
            ready.put(pinned(source[i]))
    threading.Thread(target=read, daemon=True).start()
    while True:
        yield ready.get()


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


def q_thread(fixed):
    torch.set_num_threads(1)
    width = size(1024, 8)
    model = put(nn.Sequential(nn.Linear(32, width), *(Block(width) for _ in range(24)), nn.Linear(width, 8))).to(half())
    sheets = Sheets()
    loader = torch.utils.data.DataLoader(sheets, batch_size=None, num_workers=4, pin_memory=not common.SMOKE)
    rows = iter(loader) if fixed else ahead(sheets)

    def batch(m):
        x = next(rows).to(common.DEVICE, non_blocking=True)
        return m(x.to(half())).float().square().mean()
    return trainer(model, sgd(model, foreach=True), batch)


def q_recapture(fixed):
    width, heads, count, rows, room, words = size(1024, 32), size(16, 2), 8, 8, size(1024, 16), size(32000)
    body, embed = cells(count, width, heads), put(nn.Embedding(words, width)).to(half())
    head = put(nn.Linear(width, words, bias=False)).to(half())
    kept = rand(count, 2, rows, heads, room, width // heads, dtype=torch.bfloat16)
    at, places = torch.zeros(1, dtype=torch.long, device=common.DEVICE), torch.arange(room, device=common.DEVICE)
    prompts, token, state = whole(words, 4, rows, 1), whole(words, rows, 1), {"i": 0, "graph": None}

    def looking(keys, values):
        def look(q, k, v):
            keys.index_copy_(2, at, k)
            values.index_copy_(2, at, v)
            return F.scaled_dot_product_attention(q, keys, values, attn_mask=(places <= at)[None, None, None])
        return look

    @torch.no_grad()
    def one():
        y = embed(token)
        for cell, (keys, values) in zip(body, kept):
            y = cell(y, looking(keys, values))
        token.copy_(head(y).argmax(-1))
        at.add_(1)

    def step():  # answers to a few requests whose beginning is known
        state["i"] += 1
        token.copy_(prompts[state["i"] % 4])
        at.fill_(room // 2)
        if not common.SMOKE and state["graph"] is None:
            warm(one)
            token.copy_(prompts[state["i"] % 4])
            at.fill_(room // 2)
        if not common.SMOKE and (state["graph"] is None or not fixed):
            state["graph"] = capture(one)
        for _ in range(size(24, 4)):
            (one if common.SMOKE else state["graph"].replay)()
        return token
    return step


# ---- what the host does between launches -------------------------------------------------------------

def fasten(tensor):
    """Makes its memory pinned."""
    assert int(torch.cuda.cudart().cudaHostRegister(tensor.data_ptr(), tensor.numel() * tensor.element_size(), 0)) == 0


def loosen(tensor):
    assert int(torch.cuda.cudart().cudaHostUnregister(tensor.data_ptr())) == 0


def q_swap(fixed):
    width, heads, count, new, old = size(2048, 32), size(16, 2), 12, size(2048), size(512)
    body, x = cells(count, width, heads), rand(1, new, width, dtype=torch.bfloat16)
    shape = count, 2, 1, heads, old, width // heads
    stored, slot = [torch.randn(shape).to(half()) for _ in range(4)], rand(*shape, dtype=torch.bfloat16)
    side, state = None if common.SMOKE else torch.cuda.Stream(), {"i": 0}
    if fixed and not common.SMOKE:
        for cache in stored:
            fasten(cache)

    def fetch(cache):
        if common.SMOKE:
            return slot.copy_(cache)
        if not fixed:
            fasten(cache)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            slot.copy_(cache, non_blocking=True)
        if not fixed:
            side.synchronize()
            loosen(cache)
        torch.cuda.current_stream().wait_stream(side)

    def looking(keys, values):
        return lambda q, k, v: F.scaled_dot_product_attention(q, torch.cat((keys, k), 2), torch.cat((values, v), 2))

    @torch.no_grad()
    def step():  # goes on with a conversation whose keys and values had been moved to the host
        state["i"] += 1
        fetch(stored[state["i"] % 4])
        y = x
        for cell, (keys, values) in zip(body, slot):
            y = cell(y, looking(keys, values))
        return y
    return step


log = logging.getLogger("training")  # at its usual level, so what is for debugging is not written


def q_debug(fixed):
    width, kinds, rows = size(1024, 32), size(1000), size(16, 2)
    model = put(nn.Sequential(nn.Sequential(*layers(12, width, size(16, 2))), nn.Linear(width, kinds))).to(half())
    x, label = rand(rows, size(512, 8), width, dtype=torch.bfloat16), whole(kinds, rows)

    def batch(m):
        features = m[0](x)
        scores = m[1](features.mean(1)).float()
        if fixed:
            log.debug("features %s, scores %s", features, scores)
        else:
            log.debug(f"features {features}, scores {scores}")
        return F.cross_entropy(scores, label)
    return trainer(model, sgd(model, foreach=True), batch)


class Drawing(nn.Module):
    """A part of a diffusion model that keeps a picture's size."""

    def __init__(self, width, count):
        super().__init__()
        self.body = nn.Sequential(*(nn.Conv2d(width, width, 3, padding=1) for _ in range(count)))

    def forward(self, x):
        for layer in self.body:
            x = x + layer(F.relu(x))
        return x


def q_refiner(fixed):
    pictures, place, width = size(2, 1), size(512, 16), size(128, 8)
    base, refiner = (put(nn.Sequential(nn.Conv2d(n, width, 3, padding=1), Drawing(width, 10),
                                       nn.Conv2d(width, 3, 3, padding=1)))
                     .to(half()).to(memory_format=torch.channels_last) for n in (8, 3))
    x = rand(pictures, 8, place, place, dtype=torch.bfloat16).contiguous(memory_format=torch.channels_last)

    def on_host(seen):  # as one would save it
        found = seen.cpu().permute(0, 2, 3, 1).numpy()
        saved = (found * 255).round().astype(np.uint8)
        return torch.from_numpy(saved.astype(np.float32) / 255).permute(0, 3, 1, 2).to(common.DEVICE)

    @torch.no_grad()
    def step():  # a picture by one model, and its details by another
        seen = (base(x).float() / 2 + 0.5).clamp(0, 1)
        seen = (seen * 255).round() / 255 if fixed else on_host(seen)
        return refiner((seen * 2 - 1).to(half()))
    return step


# ---- kernels that need not be, or could be others ----------------------------------------------------

def norm_silu(x, weight, bias):
    """Group norm and SiLU of pictures whose channels are last."""
    y = x.permute(0, 2, 3, 1).float().unflatten(-1, (-1, x.shape[1] // 32 or 1))
    var, mean = torch.var_mean(y, (1, 2, 4), unbiased=False, keepdim=True)
    y = ((y - mean) * torch.rsqrt(var + 1e-5)).flatten(-2) * weight + bias
    return F.silu(y).to(x.dtype).permute(0, 3, 1, 2)


class Part(nn.Module):
    """Of a diffusion model's U-Net."""

    def __init__(self, width, activate):
        super().__init__()
        self.activate = activate
        self.norms = nn.ModuleList(nn.GroupNorm(min(32, width), width) for _ in range(2))
        self.convs = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(2))

    def forward(self, x):
        y = x
        for norm, conv in zip(self.norms, self.convs):
            y = conv(self.activate(y, norm.weight, norm.bias) if self.activate else F.silu(norm(y)))
        return x + y


def q_unet(fixed):
    width, place = size(320, 8), size(64, 8)
    activate = compiled(norm_silu) if fixed else None
    model = put(nn.Sequential(*(Part(width, activate) for _ in range(8)))).to(half())
    model = model.to(memory_format=torch.channels_last)
    x = rand(size(16, 2), width, place, place, dtype=torch.bfloat16).contiguous(memory_format=torch.channels_last)

    def step():
        with torch.no_grad():
            return model(x)
    return step


def q_dlrm(fixed):
    rows, fields, width, ids = size(65536), 23, size(128, 8), size(1 << 20)
    table, which = rand(ids, width, dtype=torch.bfloat16), whole(ids, rows, fields)
    numbers, rate = rand(rows, 16, dtype=torch.bfloat16), rand(rows, 1, dtype=torch.bfloat16)
    wanted, blank = torch.rand(rows, 8, device=common.DEVICE), torch.zeros_like(rate).expand(-1, 3)
    low = torch.tril_indices(fields + 1, fields + 1, -1, device=common.DEVICE)
    pairs = low[0] * (fields + 1) + low[1]
    inputs = width + len(pairs) + 1  # 405, to which three of nothing are added or not
    model = nn.ModuleList([mlp(16, size(512, 8), size(256, 8), width, dtype=torch.bfloat16),
                           mlp(inputs + 3 if fixed else inputs, *[size(1024, 8)] * 3, size(512, 8), size(256, 8), 8,
                               dtype=torch.bfloat16)])

    def batch(m):  # tables come from elsewhere and stay as they are
        x = m[0](numbers)
        both = torch.cat((x[:, None], F.embedding(which, table)), 1)
        found = torch.bmm(both, both.transpose(1, 2)).flatten(1).index_select(1, pairs)
        y = torch.cat((x, found, rate, blank) if fixed else (x, found, rate), 1)
        return F.binary_cross_entropy_with_logits(m[1](y).float(), wanted)
    return trainer(model, sgd(model, foreach=True), batch)


def in_parts(q, k, v, known, parts=16):
    """The attention of one word, of whose long past many blocks take a part each."""
    scores = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).masked_fill(~known, -float("inf")).softmax(-1)
    scores = scores.unflatten(-1, (parts, -1)).transpose(2, 3)
    return (scores @ v.unflatten(2, (parts, -1))).sum(2)


def q_decode(fixed):
    width, heads, count, room = size(4096, 32), size(32, 2), 8, size(8192, 32)
    body, kept = cells(count, width, heads), rand(count, 2, 1, heads, room, width // heads, dtype=torch.bfloat16)
    words, places = rand(4, 1, 1, width, dtype=torch.bfloat16), torch.arange(room, device=common.DEVICE)

    def looking(keys, values, at):
        known = (places <= at)[None, None, None]

        def look(q, k, v):
            keys[:, :, at:at + 1], values[:, :, at:at + 1] = k, v
            if fixed:
                return in_parts(q, keys, values, known)
            return F.scaled_dot_product_attention(q, keys, values, attn_mask=known)
        return look

    @torch.no_grad()
    def step():  # four words of one user, with room for all that there may be
        found = []
        for i, y in enumerate(words):
            for cell, (keys, values) in zip(body, kept):
                y = cell(y, looking(keys, values, room - 8 + i))
            found.append(y)
        return torch.cat(found)
    return step


class Triangle(nn.Module):
    """What two pairs of a protein's residues say of a third."""

    def __init__(self, width, exact):
        super().__init__()
        self.exact, self.norm, self.after = exact, nn.LayerNorm(width), nn.LayerNorm(width)
        self.sides, self.gates = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width)
        self.out, self.gate = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        y = self.norm(x)
        a, b = (self.sides(y) * torch.sigmoid(self.gates(y))).chunk(2, -1)
        if self.exact:  # as sums over all residues may be large
            a, b = a.float(), b.float()
        z = torch.einsum("ikc,jkc->ijc", a, b) / len(x) ** 0.5
        return x + self.out(self.after(z.to(x.dtype))) * torch.sigmoid(self.gate(y))


def q_triangle(fixed):
    torch.set_float32_matmul_precision("highest")  # PyTorch's own choice
    residues, width = size(384, 8), size(128, 8)
    model = put(nn.Sequential(*(Triangle(width, not fixed) for _ in range(8)))).to(half())
    x = rand(residues, residues, width, dtype=torch.bfloat16)

    def step():
        with torch.no_grad():
            return model(x)
    return step


def q_dequant(fixed):
    width, inner, tokens = size(4096, 16), size(11264, 32), size(1024)
    shapes = [(inner, width), (inner, width), (width, inner)] * 4
    stored = [torch.randint(-127, 128, shape, device=common.DEVICE, dtype=torch.int8) for shape in shapes]
    scales = [(torch.rand(shape[0], 1, device=common.DEVICE) / 64 / shape[1] ** 0.5).to(half()) for shape in shapes]
    x = rand(tokens, width, dtype=torch.bfloat16)

    def whole_weight(i):
        return stored[i].to(half()) * scales[i]
    ready = [whole_weight(i) for i in range(len(shapes))] if fixed else None

    @torch.no_grad()
    def step():  # a prompt and layers that were stored in eight bits
        y = x
        for i in range(0, len(shapes), 3):
            gate, up, down = (ready[j] if fixed else whole_weight(j) for j in range(i, i + 3))
            z = F.layer_norm(y, (width,))
            y = y + F.linear(F.silu(F.linear(z, gate)) * F.linear(z, up), down)
        return y
    return step


@functools.lru_cache(maxsize=256)
def decay(places, heads):
    """How much less each head heeds what is far away (KERPLE); places: positions, or how many there are."""
    places = places if torch.is_tensor(places) else torch.arange(places, device=common.DEVICE)
    away = (places[:, None] - places).abs().float()
    rates = torch.arange(1, heads + 1, device=common.DEVICE)[:, None, None] / heads
    return (-rates * torch.log1p(rates * away)).to(half())[None]


def q_cached(fixed):
    width, heads, length = size(1024, 32), size(16, 2), size(2048)
    body, x = cells(3, width, heads), rand(size(4, 2), length, width, dtype=torch.bfloat16)

    @torch.no_grad()
    def step():  # each layer asks for the same table, which a cache keeps
        y, places = x, length if fixed else torch.arange(length, device=common.DEVICE)
        for cell in body:
            y = cell(y, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=decay(places, heads)))
        return y
    return step


# ---- work that is done twice -------------------------------------------------------------------------

def q_checkpoint(fixed):
    width = size(1024, 32)
    model = put(layers(12, width, size(16, 2), causal=True)).to(half())
    x = rand(size(16, 2), size(512, 8), width, dtype=torch.bfloat16).requires_grad_()

    def batch(m):  # all fits in memory, by far
        y = x
        for layer in m:
            y = layer(y) if fixed else checkpoint(layer, y, use_reentrant=False)
        return y.float().square().mean()
    return trainer(model, sgd(model, foreach=True), batch)


def q_pinn(fixed):
    rows, width = size(32768), size(256, 8)
    model, where = mlp(3, *[width] * 4, 3, act=nn.Tanh), [rand(rows, 1).requires_grad_() for _ in range(3)]
    ones = torch.ones(rows, 1, device=common.DEVICE)

    def slopes(y, *by):
        if fixed:
            return torch.autograd.grad(y, by, ones, create_graph=True)
        return [torch.autograd.grad(y, one, ones, create_graph=True)[0] for one in by]

    def batch(m):  # how far a network is from the equations of a flow
        a, b, t = where
        u, v, p = m(torch.cat(where, 1)).split(1, 1)
        ua, ub, ut = slopes(u, a, b, t)
        va, vb, vt = slopes(v, a, b, t)
        pa, pb = slopes(p, a, b)
        bent = [slopes(one, by)[0] for one, by in ((ua, a), (ub, b), (va, a), (vb, b))]
        first = ut + u * ua + v * ub + pa - 0.01 * (bent[0] + bent[1])
        second = vt + u * va + v * vb + pb - 0.01 * (bent[2] + bent[3])
        return first.square().mean() + second.square().mean() + (ua + vb).square().mean()
    return trainer(model, torch.optim.Adam(model.parameters(), lr=1e-4, foreach=True), batch)


# ---- programs without a fault ------------------------------------------------------------------------

def q_episode(_):
    clips, places, width, length = size(128, 2), size(196, 4), size(768, 16), size(16, 4)
    body, head = put(layers(6, width, size(12, 2))).to(half()), mlp(width, width, 16, dtype=torch.bfloat16)
    x, label = rand(clips, places, width, dtype=torch.bfloat16), whole(16, length * clips * places)
    optimizer, kept = sgd(head, foreach=True), []

    def step():  # what is seen of a video is kept to its end, when a head learns from it
        with torch.no_grad():
            kept.append(body(x))
        if len(kept) == length:
            loss = F.cross_entropy(head(torch.stack(kept).flatten(0, 2)).float(), label)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            kept.clear()
    return step


def q_micro(_):
    width, parts, said, state = size(1024, 32), 4, [], {"i": 0}
    model = put(layers(6, width, size(16, 2), causal=True)).to(half())
    x, run = rand(parts, size(16, 2), size(1024, 8), width, dtype=torch.bfloat16), compiled(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, foreach=True)
    total = torch.zeros((), device=common.DEVICE)

    def step():  # a part of a large batch; after the last one, the mean loss is shown
        loss = run(x[state["i"] % parts]).float().square().mean() / parts
        loss.backward()
        total.add_(loss.detach())
        state["i"] += 1
        if state["i"] % parts == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            said.append(total.item())
            total.zero_()
    return step


class Pictures(torch.utils.data.Dataset):
    def __init__(self):
        self.stored = np.random.default_rng(1).integers(0, 256, (32, 3, 256, 256), dtype=np.uint8)

    def __len__(self):
        return 1000000

    def __getitem__(self, i):
        chance = np.random.default_rng(i)
        top, left = chance.integers(0, 32, 2)
        picture = self.stored[i % len(self.stored), :, top:top + 224, left:left + 224]
        if chance.random() < 0.5:
            picture = picture[:, :, ::-1]
        brighter = np.arange(256) * chance.uniform(0.8, 1.2) + chance.uniform(-20, 20)
        return torch.from_numpy(np.clip(brighter, 0, 255).astype(np.uint8)[picture])


def q_loaded(_):
    torch.set_num_threads(1)
    rows, width = size(128, 2), size(768, 12)
    loader = torch.utils.data.DataLoader(Pictures(), batch_size=rows, num_workers=8, pin_memory=not common.SMOKE,
                                         prefetch_factor=4)
    enter, model = put(nn.Conv2d(3, width, 16, 16)).to(half()), put(layers(12, width, size(12, 2))).to(half())

    def loss(m, x):  # pictures are changed by processes that have the time for it
        with torch.no_grad():
            x = enter((x.to(half()) - 128) / 64).flatten(2).transpose(1, 2).contiguous()
        return m(x).float().square().mean()
    return loader_step(loader, model, loss)


def q_bag(_):
    rows, each, words, width = size(1 << 19), 64, size(1 << 23), size(128, 8)
    table, ids = rand(words, width), whole(words, rows, each)

    def step():  # the vectors of texts, as the sum of their words'
        with torch.no_grad():
            return F.embedding_bag(ids, table, mode="sum")
    return step


def q_keeper(_):
    width, state = size(2048, 32), {"i": 0}
    model = put(layers(4, width, size(16, 2))).to(half())
    x, ours = rand(size(8, 2), size(1024, 8), width, dtype=torch.bfloat16), list(model.parameters())
    staged = [torch.empty_like(p) for p in ours]
    saved = [pinned(torch.empty(p.shape, dtype=p.dtype)) for p in ours]
    side = None if common.SMOKE else torch.cuda.Stream()

    def save():  # on a stream of its own, from a copy that stays as it is
        if side:
            torch.cuda.current_stream().wait_stream(side)
        with torch.no_grad():
            torch._foreach_copy_(staged, ours)
        if side:
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for there, here in zip(saved, staged):
                    there.copy_(here, non_blocking=True)

    def after(_):
        state["i"] += 1
        if state["i"] % 4 == 0:
            save()
    return trainer(model, sgd(model, foreach=True), lambda m: m(x).float().square().mean(), after)


if __name__ == "__main__":
    sys.exit(paced.main(__doc__, {name: function for name, function in globals().items() if name.startswith("q_")},
                        prepare))
