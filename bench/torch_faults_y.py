#!/usr/bin/env python3
"""Set y of torch_faults.py: faults that users report in forums and issues, in models of common sizes, and without.

    torch_faults_y.py NAME --form bad|fixed [--steps N | --seconds S] [--turn FILE] [--cpu-smoke]

Twenty pairs and six programs without a fault, scored only: no rule may be changed for what they show. Most of the fixed
forms keep an H200 busy for 3 to 30 ms a step: what is wrong shows beside much true work, not alone. Triton and JAX:
triton_faults.py, jax_faults.py. Labels: tests/diagnosis/unseen.tsv, written first. Where a step returns something, it
is the same in both forms, but for rounding."""
import gc
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import paced
import torch_faults as common
from torch_faults import loader_step, mlp, rand, sgd, size, trainer
from torch_faults_w import Residual, autocast, half, prepare
from torch_faults_x import pinned, put


def compiled(function, **options):
    return function if common.SMOKE else torch.compile(function, **options)


def whole(high, *shape):
    return torch.randint(0, high, shape, device=common.DEVICE)


class Layer(nn.Module):
    """A layer of a transformer; copies: with the contiguous() of code that was once about another attention."""

    def __init__(self, width, heads, causal=False, copies=False):
        super().__init__()
        self.heads, self.causal, self.copies = heads, causal, copies
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.attend(self.first(x)).chunk(3, -1))
        if self.copies:
            q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2)
        if self.copies:
            y = y.contiguous()
        x = x + self.project(y.flatten(2))
        return x + self.down(F.gelu(self.up(self.second(x))))


def layers(count, width, heads, **options):
    return nn.Sequential(*(Layer(width, heads, **options) for _ in range(count)))


# ---- kernels that need not be, or could be others ----------------------------------------------------

class Reader(nn.Module):
    """Of a Perceiver: a few latents look at a long input."""

    def __init__(self, width, heads, weights):
        super().__init__()
        self.weights, self.attend = weights, nn.MultiheadAttention(width, heads, batch_first=True)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, latents, x):
        seen, _ = self.attend(self.first(latents), x, x, need_weights=self.weights)
        latents = latents + seen
        return latents + self.mix(self.second(latents))


def y_weights(fixed):
    width, rows = size(1024, 32), size(8, 2)
    model = put(nn.ModuleList(Reader(width, size(16, 2), not fixed) for _ in range(4))).to(half())
    x, begin = (rand(rows, n, width, dtype=torch.bfloat16) for n in (size(8192, 16), size(512, 4)))

    @torch.no_grad()
    def step():
        latents = begin
        for layer in model:
            latents = layer(latents, x)
        return latents
    return step


def focal(logits, truth):
    p = torch.sigmoid(logits)
    entropy = F.binary_cross_entropy_with_logits(logits, truth, reduction="none")
    right = p * truth + (1 - p) * (1 - truth)
    loss = entropy * (1 - right) ** 2
    return ((0.25 * truth + 0.75 * (1 - truth)) * loss).sum() / truth.sum()


def y_focal(fixed):
    shape = size(40, 2), size(76725), size(80, 3)  # pictures, anchors, classes
    logits, truth = rand(*shape).requires_grad_(), (torch.rand(*shape, device=common.DEVICE) < 0.01).float()
    one = compiled(focal) if fixed else focal

    def step():
        logits.grad = None
        loss = one(logits, truth)
        loss.backward()
        return loss.detach()
    return step


def y_gram(fixed):
    torch.set_float32_matmul_precision("high" if fixed else "highest")
    pictures, channels, places = size(32, 2), size(512), size(128 * 128)
    features, style = rand(pictures, channels, places).requires_grad_(), rand(pictures, channels, channels)

    def step():  # the style of pictures: which channels go together
        features.grad = None
        loss = F.mse_loss(features @ features.mT / places, style)
        loss.backward()
        return loss.detach()
    return step


class Gated(nn.Module):
    """The larger half of a Llama's layer."""

    def __init__(self, width, inner):
        super().__init__()
        self.norm, self.gate = nn.LayerNorm(width), nn.Linear(width, inner, bias=False)
        self.up, self.down = nn.Linear(width, inner, bias=False), nn.Linear(inner, width, bias=False)

    def forward(self, x):
        y = self.norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def y_recast(fixed):
    width = size(4096, 32)
    model = put(nn.Sequential(*(Gated(width, size(11008, 64)) for _ in range(12))))
    model, x = model.to(half()) if fixed else model, rand(size(384, 4), width, dtype=torch.bfloat16)

    @torch.no_grad()
    def step():  # a server of a model as it was trained
        with torch.autocast(common.DEVICE, torch.bfloat16, enabled=not fixed and not common.SMOKE):
            return model(x)
    return step


def y_contiguous(fixed):
    width = size(1024, 32)
    model = put(layers(6, width, size(16, 2), copies=not fixed)).to(half())
    x = rand(size(64, 2), size(512, 8), width, dtype=torch.bfloat16)

    def step():
        with torch.no_grad():
            return model(x)
    return step


def y_gqa(fixed):
    rows, heads, groups, dim, length = size(16, 2), size(32, 4), size(8, 2), size(128, 8), size(16384, 8)
    width, each = heads * dim, heads // groups
    ask, project = (put(nn.ModuleList(nn.Linear(width, width) for _ in range(8))).to(half()) for _ in range(2))
    kept = [rand(2, rows, groups, length, dim, dtype=torch.bfloat16) for _ in ask]
    x = rand(rows, width, dtype=torch.bfloat16)

    def repeated(t):
        return t[:, :, None].expand(rows, groups, each, length, dim).reshape(rows, heads, length, dim)

    @torch.no_grad()
    def step():  # a token, of whose heads four share keys and values
        y = x
        for to_query, to_out, (keys, values) in zip(ask, project, kept):
            if fixed:
                seen = F.scaled_dot_product_attention(to_query(y).view(rows, groups, each, dim), keys, values)
            else:
                query = to_query(y).view(rows, heads, 1, dim)
                seen = F.scaled_dot_product_attention(query, repeated(keys), repeated(values))
            y = y + to_out(seen.reshape(rows, width))
        return y
    return step


def lion(weights, grads, means):
    """An optimizer as its paper has it."""
    for weight, grad, mean in zip(weights, grads, means):
        weight.mul_(1 - 1e-5)
        weight.add_(torch.sign(mean * 0.9 + grad * 0.1), alpha=-1e-5)
        mean.mul_(0.99).add_(grad * 0.01)


def y_lion(fixed):
    width = size(4096)
    model, x = mlp(*[width] * 9, act=nn.GELU), rand(size(2048), width)
    weights, update = list(model.parameters()), compiled(lion) if fixed else lion
    means = [torch.zeros_like(p) for p in weights]

    def step():
        model.zero_grad(set_to_none=True)
        loss = model(x).square().mean()
        loss.backward()
        with torch.no_grad():
            update(weights, [p.grad for p in weights], means)
        return loss.detach()
    return step


# ---- many small things ------------------------------------------------------------------------------

def y_views(fixed):
    width, rows, patch = size(1024, 32), size(24, 3), size(16, 4)
    cut, head = put(nn.Linear(3 * patch ** 2, width)).to(half()), put(nn.Linear(width, size(1000, 5))).to(half())
    body, views = put(layers(12, width, size(16, 2))).to(half()), rand(rows, 3, 14 * patch, 14 * patch).to(half())

    def scores(pictures):
        tiles = pictures.view(-1, 3, 14, patch, 14, patch).permute(0, 2, 4, 1, 3, 5).reshape(-1, 196, 3 * patch ** 2)
        return head(body(cut(tiles)).mean(1))

    @torch.no_grad()
    def step():  # what a picture shows, by the mean of what its crops show
        return torch.cat([scores(part) for part in views.split(rows if fixed else 1)]).float().softmax(-1).mean(0)
    return step


def y_penalty(fixed):
    width, place = size(512, 8), size(28, 4)
    model = nn.Sequential(*(Residual(width, width // 4) for _ in range(16)), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(width, 1000)).to(common.DEVICE, memory_format=torch.channels_last)
    x, label = rand(size(128, 2), width, place, place).to(memory_format=torch.channels_last), whole(1000, size(128, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True, weight_decay=2e-4 if fixed else 0)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with autocast():
            loss = F.cross_entropy(model(x).float(), label)
        total = loss
        if not fixed:
            for p in model.parameters():
                total = total + 1e-4 * (p ** 2).sum()
        total.backward()
        optimizer.step()
        return loss.detach()
    return step


def y_fields(fixed):
    fields, rows, count, width = size(64, 4), size(16384), size(20000), 64
    batches = [torch.randint(0, count, (fields, rows), dtype=torch.int32) for _ in range(4)]
    batches = [pinned(batch) if fixed else [field.clone() for field in batch] for batch in batches]
    table, starts = rand(fields * count, width).to(half()), torch.arange(fields, device=common.DEVICE)[:, None] * count
    model, state = mlp(fields * width, *[size(4096)] * 5, 1, dtype=torch.bfloat16), {"i": 0}

    @torch.no_grad()
    def step():  # advertisements are ranked; each of their properties is a tensor of its own
        state["i"] += 1
        batch = batches[state["i"] % len(batches)]
        if fixed:
            index = batch.to(common.DEVICE, non_blocking=True)
        else:
            index = torch.stack([field.to(common.DEVICE) for field in batch])
        return model(F.embedding((index + starts).T, table).flatten(1))
    return step


class Maker(nn.Module):
    """Of pictures, from noise."""

    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(128, 16 * width)
        self.rest = nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(width, width // 2, 4, 2, 1), nn.ReLU(),
                                  nn.ConvTranspose2d(width // 2, width // 4, 4, 2, 1), nn.ReLU(),
                                  nn.ConvTranspose2d(width // 4, 3, 8, 4, 2), nn.Tanh())

    def forward(self, noise):
        x = self.first(noise).unflatten(1, (-1, 4, 4))
        return self.rest(x.contiguous(memory_format=torch.channels_last))


def y_gan(fixed):
    width, rows = size(512, 8), size(64, 2)
    maker = Maker(width).to(common.DEVICE, memory_format=torch.channels_last)
    critic, before = [], 3
    for after in (width // 4, width // 2, width, width):
        critic, before = critic + [nn.Conv2d(before, after, 4, 2, 1), nn.LeakyReLU(0.2)], after
    critic = nn.Sequential(*critic, nn.Flatten(), nn.Linear(16 * width, 1))
    critic = critic.to(common.DEVICE, memory_format=torch.channels_last)
    real = rand(rows, 3, 64, 64).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(critic.parameters(), lr=1e-6, foreach=True)

    def step():  # five times for each of the other network; not if it is too good already
        for _ in range(5):
            with torch.no_grad():
                made = maker(torch.randn(rows, 128, device=common.DEVICE))
            of_made, of_real = critic(torch.cat((made, real))).chunk(2)
            loss = of_made.mean() - of_real.mean()
            if not fixed and loss.item() < -20:
                continue
            optimizer.zero_grad(set_to_none=True)
            (loss * (loss.detach() >= -20) if fixed else loss).backward()
            optimizer.step()
        return loss.detach()
    return step


# ---- data -------------------------------------------------------------------------------------------

class Slides(torch.utils.data.Dataset):
    """A small set of pictures that are in memory."""

    def __init__(self):
        self.pictures = torch.randn(size(768, 6), 3, size(128, 16), size(128, 16))

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, i):
        return self.pictures[i].flip(-1), i % 10


def y_epochs(fixed):
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Slides(), batch_size=size(64, 2), num_workers=size(6, 1), shuffle=True,
                                         pin_memory=not common.SMOKE, persistent_workers=fixed)
    width, state = size(384, 8), {"rows": iter(loader)}
    model = nn.Sequential(nn.Conv2d(3, width, 4, 4), *(Residual(width, width // 2) for _ in range(8)),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))
    model = model.to(common.DEVICE, memory_format=torch.channels_last)

    def batch(m):
        rows = next(state["rows"], None)
        if rows is None:  # the next epoch
            state["rows"] = iter(loader)
            rows = next(state["rows"])
        x, label = (t.to(common.DEVICE, non_blocking=True) for t in rows)
        with autocast():
            return F.cross_entropy(m(x.to(memory_format=torch.channels_last)).float(), label)
    return trainer(model, sgd(model, momentum=0.9, foreach=True), batch)


def rays_of(side, where):
    """The direction of each pixel of a camera."""
    place = torch.arange(side, dtype=torch.float32, device=where)
    x, y = torch.meshgrid(place, place, indexing="xy")
    return torch.stack(((x - side / 2) / side, (side / 2 - y) / side, -torch.ones_like(x)), -1).view(-1, 3)


def y_rays(fixed):
    side, rays, samples, width = size(1600), size(8192), size(64, 4), size(256, 8)
    there, colours = rays_of(side, common.DEVICE), torch.rand(rays, 3, device=common.DEVICE)
    depth = torch.linspace(0.1, 4, samples, device=common.DEVICE)[:, None]
    powers = 2.0 ** torch.arange(8, device=common.DEVICE)
    model = mlp(48, *[width] * 8, 4)

    def batch(m):  # a radiance field
        known = there if fixed else rays_of(side, "cpu").to(common.DEVICE)
        points = known[whole(side * side, rays), None] * depth
        angles = (points[..., None] * powers).flatten(-2)
        with autocast():
            found = m(torch.cat((angles.sin(), angles.cos()), -1)).float()
        dense = 1 - torch.exp(-F.softplus(found[..., 3]) * 0.06)
        clear = torch.cumprod(1 - dense + 1e-6, 1)
        seen = (torch.sigmoid(found[..., :3]) * (dense * clear)[..., None]).sum(1)
        return F.mse_loss(seen, colours)
    return trainer(model, torch.optim.Adam(model.parameters(), lr=1e-4, foreach=True), batch)


def y_index(fixed):
    width, texts, length = size(768, 16), size(256, 2), size(128, 4)
    model = put(nn.Sequential(*layers(6, width, size(12, 2)), nn.Linear(width, 128))).to(half())
    x, found, state = rand(texts, length, width, dtype=torch.bfloat16), [None] * 4, {"i": 0}
    if fixed:
        found = [pinned(torch.empty(texts, length, 128)) for _ in found]
    done = [None if common.SMOKE else torch.cuda.Event() for _ in found]

    @torch.no_grad()
    def step():  # a vector for each word, for an index; who writes it is some batches behind
        here, state["i"] = state["i"] % len(found), state["i"] + 1
        y = F.normalize(model(x).float(), dim=-1)
        if not fixed:
            found[here] = y.cpu()
        elif common.SMOKE:
            found[here].copy_(y)
        else:
            done[here].synchronize()
            found[here].copy_(y, non_blocking=True)
            done[here].record()
    return step


def y_video(fixed):
    clips, frames, place, width = size(64, 2), size(16, 2), size(224, 32), size(384, 16)
    pool = [pinned(torch.randint(0, 256, (clips, frames, 3, place, place), dtype=torch.uint8)) for _ in range(2)]
    cut, many = put(nn.Linear(2 * 3 * 16 * 16, width)).to(half()), place // 16
    body, state = put(layers(2, width, size(6, 2))).to(half()), {"i": 0}
    side = torch.cuda.Stream() if fixed and not common.SMOKE else None

    def load(i):
        if not side:
            return pool[i % len(pool)].to(common.DEVICE, non_blocking=True)
        with torch.cuda.stream(side):
            return pool[i % len(pool)].to(common.DEVICE, non_blocking=True)
    state["next"] = load(0)

    @torch.no_grad()
    def step():
        state["i"] += 1
        if side:
            torch.cuda.current_stream().wait_stream(side)
            now = state["next"]
            now.record_stream(torch.cuda.current_stream())
            state["next"] = load(state["i"])
        else:
            now = load(state["i"] - 1)
        x = (now.to(half()) / 255 - 0.5).view(clips, frames // 2, 2, 3, many, 16, many, 16)
        return body(cut(x.permute(0, 1, 4, 6, 2, 3, 5, 7).flatten(4).flatten(1, 3))).mean(1)
    return step


def y_negatives(fixed):
    items, rows, each, width = size(1000000), size(16384), 16, size(256, 8)
    popular = 1 / np.arange(1, items + 1) ** 0.75
    popular /= popular.sum()
    steps = torch.from_numpy(popular.cumsum()).to(common.DEVICE)
    features, users, bought = rand(items, width), rand(rows, width), whole(items, rows)
    tower = mlp(width, 4 * width, width)

    def batch(m):  # those that were not bought: the more popular, the more of them
        if fixed:
            drawn = torch.searchsorted(steps, torch.rand(rows * each, dtype=torch.float64, device=common.DEVICE))
            drawn = drawn.clamp_(max=items - 1)
        else:
            drawn = torch.from_numpy(np.random.choice(items, rows * each, p=popular)).to(common.DEVICE)
        among = m(features[torch.cat((bought, drawn))])
        good, others = (users * among[:rows]).sum(-1, keepdim=True), among[rows:].view(rows, each, width)
        scores = torch.cat((good, torch.bmm(others, users[..., None])[..., 0]), 1)
        return -F.log_softmax(scores, -1)[:, 0].mean()
    return trainer(tower, sgd(tower), batch)


# ---- what the host waits for, and what it keeps -----------------------------------------------------

def y_ohem(fixed):
    pictures, place, width, classes = size(8, 2), size(512, 16), size(128, 8), 21
    model = [nn.Conv2d(3, width, 3, 2, 1)]
    for _ in range(5):
        model += [nn.ReLU(), nn.Conv2d(width, width, 3, padding=1)]
    model = nn.Sequential(*model, nn.ReLU(), nn.Conv2d(width, classes, 1))
    model = model.to(common.DEVICE, memory_format=torch.channels_last)
    x, label = rand(pictures, 3, place, place), whole(classes, pictures, place, place)
    x, count, optimizer = x.to(memory_format=torch.channels_last), label.numel() // 16, sgd(model)

    def step():  # learns from the pixels that are the hardest
        optimizer.zero_grad(set_to_none=True)
        with autocast():
            y = F.interpolate(model(x), scale_factor=2, mode="bilinear")
        losses = F.cross_entropy(y.float(), label, reduction="none")
        if fixed:
            least = losses.detach().flatten().topk(count).values[-1]
        else:
            least = float(np.partition(losses.detach().cpu().numpy().ravel(), -count)[-count])
        loss = (losses * (losses >= least)).sum() / count
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step


def y_tiles(fixed):
    width, place, tiles = size(128, 8), size(256, 8), size(8, 2)
    model = [nn.Conv2d(3, width, 3, padding=1)]
    for _ in range(16):
        model += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU(inplace=True)]
    model = nn.Sequential(*model, nn.Conv2d(width, 12, 3, padding=1), nn.PixelShuffle(2))
    model = model.to(common.DEVICE, half(), memory_format=torch.channels_last)
    picture = rand(1, 3, place, tiles * place).to(half()).contiguous(memory_format=torch.channels_last)

    @torch.no_grad()
    def step():  # a picture of twice the size, tile by tile
        large = torch.empty(1, 3, 2 * place, 2 * tiles * place, device=common.DEVICE, dtype=half())
        for i in range(tiles):
            y = model(picture[..., i * place:(i + 1) * place])
            large[..., 2 * i * place:2 * (i + 1) * place] = y
            del y
            if not fixed:
                torch.cuda.empty_cache()
        if not fixed:
            gc.collect()
        return large
    return step


def y_shapes(fixed):
    width, rows, state = size(1536, 32), size(64, 2), {"i": 0}
    model = put(layers(2, width, size(24, 2), causal=True)).to(half())
    lengths = [size(128 + 8 * i, 4 + i) for i in range(48)]
    x = rand(rows, lengths[-1], width, dtype=torch.bfloat16)
    if not common.SMOKE:
        from torch import _dynamo
        _dynamo.config.recompile_limit = len(lengths)
    run = compiled(model, dynamic=fixed)

    @torch.no_grad()
    def step():  # texts, cut after the longest of each batch
        state["i"] += 1
        return run(x[:, :lengths[29 * state["i"] % len(lengths)]])
    return step


def y_snapshots(fixed):
    model, x = mlp(*[size(2048)] * 6), rand(size(8192), size(2048))
    kept, mean, state = [], [p.detach().clone() for p in model.parameters()], {"i": 0}

    @torch.no_grad()
    def keep(_):  # for the mean of all weights that there were
        state["i"] += 1
        if state["i"] % 4:
            return
        if not fixed:
            return kept.append([p.clone() for p in model.parameters()])
        for m, p in zip(mean, model.parameters()):
            m.lerp_(p, 4 / state["i"])
    return trainer(model, sgd(model), lambda m: m(x).square().mean(), keep)


# ---- programs without a fault -----------------------------------------------------------------------

class Language(nn.Module):
    def __init__(self, words, width, heads, count):
        super().__init__()
        self.embed, self.body = nn.Embedding(words, width), layers(count, width, heads, causal=True)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        with autocast():
            scores = self.head(self.body(self.embed(tokens[:, :-1])))
        return F.cross_entropy(scores.flatten(0, 1).float(), tokens[:, 1:].flatten())


def y_lm(_):
    words = size(32768)
    model, tokens = put(Language(words, size(2048, 32), size(16, 2), 4)), whole(words, size(6, 2), size(1025, 9))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **({} if common.SMOKE else {"fused": True}))
    run = compiled(model)
    return trainer(model, optimizer, lambda _: run(tokens))


def y_backbone(_):
    width = size(256, 8)
    model = nn.Sequential(nn.Conv2d(3, width, 4, 4), *(Residual(width, width // 2) for _ in range(8)),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, size(1000, 5))).eval()
    model = model.to(common.DEVICE, half(), memory_format=torch.channels_last)
    x = rand(size(128, 2), 3, size(224, 16), size(224, 16), dtype=torch.bfloat16).to(memory_format=torch.channels_last)
    run = compiled(model)

    def step():
        with torch.no_grad():
            return run(x)
    return step


def y_graph(_):
    nodes, edges, width = size(400000), size(4000000), size(256, 8)
    places = torch.stack((whole(nodes, edges), whole(nodes, edges)))
    weights = torch.full((edges,), nodes / edges, device=common.DEVICE)
    adjacent = torch.sparse_coo_tensor(places, weights, (nodes, nodes)).coalesce()
    adjacent = adjacent if common.SMOKE else adjacent.to_sparse_csr()
    steps, x = put(nn.ModuleList(nn.Linear(width, width) for _ in range(3))), rand(nodes, width)

    @torch.no_grad()
    def step():
        y = x
        for layer in steps:
            y = F.relu_(layer(adjacent @ y))
        return y
    return step


def y_search(_):
    table, queries = (rand(size(n), size(256), dtype=torch.bfloat16) for n in (1 << 20, 1024))

    def step():
        return (queries @ table.T).topk(100)
    return step


class Sounds(torch.utils.data.Dataset):
    def __init__(self):
        self.sounds = torch.randn(64, size(80000, 2048))

    def __len__(self):
        return 1000000

    def __getitem__(self, i):
        return self.sounds[i % len(self.sounds)]


class Listener(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.first, self.body = nn.Linear(256, width), layers(6, width, heads)
        self.register_buffer("window", torch.hann_window(512))

    def forward(self, x):
        x = torch.stft(x, 512, 256, window=self.window, return_complex=True)[:, 1:].abs().clamp(min=1e-5).log()
        x = self.first(x.transpose(1, 2))
        with autocast():
            return self.body(x).float().square().mean()


def y_listen(_):
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Sounds(), batch_size=size(64, 2), num_workers=size(6, 1),
                                         pin_memory=not common.SMOKE, prefetch_factor=4)
    return loader_step(loader, put(Listener(size(1024, 32), size(16, 2))), lambda m, x: m(x))


def y_dit(_):
    width, rows = size(1152, 32), size(32, 2)
    model = nn.Sequential(nn.Linear(16, width), *layers(6, width, size(16, 2)), nn.Linear(width, 16))
    model, begin = put(model).to(half()), rand(rows, 256, 16, dtype=torch.bfloat16)
    run = compiled(model)

    @torch.no_grad()
    def step():  # four steps of a sampler, with the text and without it
        x = begin
        for _ in range(4):
            one, other = run(torch.cat((x, x + 0.1))).chunk(2)
            x = 0.9 * x + 0.1 * torch.lerp(other, one, 4.0)
        return x
    return step


if __name__ == "__main__":
    sys.exit(paced.main(__doc__, {name: function for name, function in globals().items() if name.startswith("y_")},
                        prepare))
