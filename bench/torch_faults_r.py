#!/usr/bin/env python3
"""Set r of torch_faults.py: more of the faults that users report, none of them in the words of an earlier set.

    torch_faults_r.py NAME --form bad|fixed [--steps N | --seconds S] [--turn FILE] [--cpu-smoke]

Thirteen pairs and five programs without a fault, scored only: no rule may be changed for what they show. Triton and
JAX: triton_faults.py, jax_faults.py. Labels: tests/diagnosis/unseen.tsv, written first. Where a step returns something,
it is the same in both forms, but for rounding. Some of the programs without a fault look as if they had one: one kernel
again and again, 64 bits, a value read in each step, another shape in each."""
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import paced
import torch_faults as common
from torch_faults import mlp, rand, sgd, size, trainer
from torch_faults_w import autocast, half, prepare
from torch_faults_x import put
from torch_faults_y import compiled, layers, whole


# ---- kernels that need not be, or could be others ----------------------------------------------------

class Places(nn.Module):
    """Of a diffusion model's middle: each place of a picture looks at all others."""

    def __init__(self, width, heads, sliced):
        super().__init__()
        self.heads, self.sliced = heads, sliced
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def slices(self, q, k, v):
        """A few heads at a time, as it saves memory where there is little of it."""
        parts, scale = [], q.shape[-1] ** -0.5
        for q, k, v in zip(*(t.flatten(0, 1).split(self.heads // 2) for t in (q, k, v))):
            empty = torch.empty(q.shape[0], q.shape[1], k.shape[1], device=q.device, dtype=q.dtype)
            scores = torch.baddbmm(empty, q, k.transpose(1, 2), beta=0, alpha=scale)
            parts.append(torch.bmm(scores.softmax(-1), v))
        return torch.cat(parts).unflatten(0, (-1, self.heads))

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.attend(self.first(x)).chunk(3, -1))
        seen = self.slices(q, k, v) if self.sliced else F.scaled_dot_product_attention(q, k, v)
        x = x + self.project(seen.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.second(x))))


def r_slices(fixed):
    width = size(512, 16)
    model = put(nn.Sequential(*(Places(width, size(8, 2), not fixed) for _ in range(4)))).to(half())
    x = rand(size(8, 2), size(64 * 64), width, dtype=torch.bfloat16)

    def step():
        with torch.no_grad():
            return model(x)
    return step


def r_head(fixed):
    torch.set_float32_matmul_precision("highest")  # PyTorch's own choice
    width, words = size(2048, 32), size(32000)
    embed, body = put(nn.Embedding(words, width)).to(half()), put(layers(4, width, size(16, 2), causal=True)).to(half())
    head, tokens = put(nn.Linear(width, words, bias=False)).to(half()), whole(words, size(8, 2), size(1025, 9))
    head = head if fixed else head.float()

    @torch.no_grad()
    def step():  # how likely texts are; the last product is kept in 32 bits, since scores should be exact
        y = body(embed(tokens[:, :-1]))
        scores = head(y if fixed else y.float()).float()
        return F.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
    return step


def snake(x, alpha):
    return x + (1.0 / (alpha + 1e-9)) * torch.sin(alpha * x) ** 2


class Voice(nn.Module):
    """Some layers of a vocoder."""

    def __init__(self, width, waves):
        super().__init__()
        self.waves = waves
        self.steps = nn.ModuleList(nn.Conv1d(width, width, 3, padding=n, dilation=n) for n in (1, 3, 5, 1, 3, 5))
        self.alphas = nn.ParameterList(nn.Parameter(torch.ones(1, width, 1)) for _ in self.steps)

    def forward(self, x):
        for step, alpha in zip(self.steps, self.alphas):
            x = x + step(self.waves(x, alpha))
        return x


def r_snake(fixed):
    width = size(512, 8)
    model = put(Voice(width, compiled(snake) if fixed else snake)).to(half())
    x = rand(size(16, 2), width, size(8192), dtype=torch.bfloat16)

    def step():
        with torch.no_grad():
            return model(x)
    return step


def r_volumes(fixed):
    place, before, body = size(96, 8), 16, []
    for width in (size(64, 4), size(128, 4), size(256, 4)):
        body += [nn.Conv3d(before, width, 3, 2 if body else 1, 1), nn.ReLU(inplace=True),
                 nn.Conv3d(width, width, 3, padding=1), nn.ReLU(inplace=True)]
        before = width
    order = torch.channels_last_3d if fixed else torch.contiguous_format
    model = nn.Sequential(*body).to(common.DEVICE, half(), memory_format=order)
    x = rand(2, 16, place, place, place, dtype=torch.bfloat16).contiguous(memory_format=order)

    def step():  # what is in a volume, of whose places sixteen numbers are known
        with torch.no_grad():
            return model(x).mean((2, 3, 4))
    return step


def r_frozen(fixed):
    width, rows = size(768, 16), size(64, 2)
    body, head = put(layers(8, width, size(12, 2))).to(half()), put(nn.Linear(width, 100)).to(half())
    x, label = rand(rows, size(196, 4), width, dtype=torch.bfloat16), whole(100, rows)

    def batch(m):  # a new last layer for a network that stays as it is
        with torch.set_grad_enabled(not fixed):
            y = body(x).mean(1)
        return F.cross_entropy(m(y).float(), label)
    return trainer(head, sgd(head), batch)


# ---- many small things ------------------------------------------------------------------------------

def r_groups(fixed):
    width, rows = size(384, 12), size(64, 2)
    model = put(nn.Sequential(nn.Linear(size(768, 12), width), *layers(12, width, size(6, 2))))
    x = rand(rows, size(196, 4), size(768, 12))
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim == 1]
    if fixed:
        groups = [{"params": decayed, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]
    else:
        groups = [{"params": [p], "weight_decay": 0.05 if p.ndim > 1 else 0.0} for p in model.parameters()]

    def batch(m):
        with autocast():
            return m(x).float().square().mean()
    return trainer(model, torch.optim.AdamW(groups, lr=1e-5), batch)


def in_order(keep, add):
    """state = keep * state + add, along the second dimension."""
    state, found = torch.zeros_like(add[:, 0]), []
    for at in range(add.shape[1]):
        state = keep[:, at] * state + add[:, at]
        found.append(state)
    return torch.stack(found, 1)


def doubled(keep, add):
    """The same: each element knows of one, two, four, ... before it."""
    far = 1
    while far < add.shape[1]:
        add = torch.cat((add[:, :far], keep[:, far:] * add[:, :-far] + add[:, far:]), 1)
        keep = torch.cat((keep[:, :far], keep[:, far:] * keep[:, :-far]), 1)
        far *= 2
    return add


def r_scan(fixed):
    width = size(1024, 8)
    enter, leave = (put(nn.ModuleList(nn.Linear(a, b) for _ in range(2))).to(half())
                    for a, b in ((width, 4 * width), (2 * width, width)))
    x, scan = rand(size(8, 2), size(512, 8), width, dtype=torch.bfloat16), doubled if fixed else in_order

    @torch.no_grad()
    def step():  # a state space model
        y = x
        for one, other in zip(enter, leave):
            keep, add = one(y).float().chunk(2, -1)
            y = y + other(scan(torch.sigmoid(keep), add).to(half()))
        return y
    return step


def r_policy(fixed):
    rows, width, times = size(256, 2), size(512, 16), 16
    model = put(nn.Sequential(nn.Linear(16, width), *layers(4, width, size(8, 2)), nn.Linear(width, 16))).to(half())
    begin, noise = rand(rows, 16, 16), rand(times, rows, 16, 16)
    clear = np.cumprod(1 - np.linspace(1e-3, 0.2, times))
    before = np.append(1.0, clear[:-1])
    tables = [1 / np.sqrt(clear), np.sqrt(1 / clear - 1), np.sqrt(before) * (1 - clear / before) / (1 - clear),
              np.sqrt(clear / before) * (1 - before) / (1 - clear),
              np.sqrt((1 - clear / before) * (1 - before) / (1 - clear))]
    there = [torch.from_numpy(table).float().to(common.DEVICE) for table in tables]

    def at(which, time):
        table = there[which] if fixed else torch.from_numpy(tables[which]).to(common.DEVICE)
        return table[time].float()[:, None, None]

    @torch.no_grad()
    def step():  # what robots do next, by a diffusion model
        x = begin
        for i in reversed(range(times)):
            time, wrong = torch.full((rows,), i, device=common.DEVICE), model(x.to(half()))
            clean = (at(0, time) * x - at(1, time) * wrong).clamp(-1, 1)
            x = at(2, time) * clean + at(3, time) * x + at(4, time) * noise[i]
        return x
    return step


# ---- data -------------------------------------------------------------------------------------------

class Rows(torch.utils.data.Dataset):
    """A table that is in memory; an index is a row's, or those of many."""

    def __init__(self):
        self.cells, self.labels = torch.randn(size(500000), 128), torch.randint(0, 10, (size(500000),))

    def __len__(self):
        return len(self.cells)

    def __getitem__(self, index):
        return self.cells[index], self.labels[index]


def r_rows(fixed):
    table, rows = Rows(), size(4096)
    if fixed:
        some = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(table), rows, drop_last=True)
        options = {"sampler": some, "batch_size": None}
    else:
        options = {"batch_size": rows, "shuffle": True, "drop_last": True}
    loader = torch.utils.data.DataLoader(table, pin_memory=not common.SMOKE, **options)
    width, state = size(4096), {"rows": iter(loader)}
    model = mlp(128, *[width] * 6, 10, dtype=torch.bfloat16)

    def batch(m):
        found = next(state["rows"], None)
        if found is None:  # the next epoch
            state["rows"] = iter(loader)
            found = next(state["rows"])
        x, label = (t.to(common.DEVICE, non_blocking=True) for t in found)
        return F.cross_entropy(m(x.to(half())).float(), label)
    return trainer(model, sgd(model), batch)


# ---- what the host waits for, and what it keeps -----------------------------------------------------

def area(boxes):
    return (boxes[..., 2:] - boxes[..., :2]).prod(-1)


def overlap(boxes, others):
    """Of each box with each other, as a share of both."""
    low = torch.maximum(boxes[..., :, None, :2], others[..., None, :, :2])
    high = torch.minimum(boxes[..., :, None, 2:], others[..., None, :, 2:])
    both = (high - low).clamp(min=0).prod(-1)
    return both / (area(boxes)[..., :, None] + area(others)[..., None, :] - both)


def boxes_at(places, sides):
    return torch.cat((places - sides / 2, places + sides / 2), -1)


def r_assign(fixed):
    pictures, place, width, classes, objects = size(16, 2), size(64, 8), size(256, 8), 20, 16
    model = [nn.Conv2d(32, width, 3, padding=1)]
    for _ in range(5):
        model += [nn.ReLU(inplace=True), nn.Conv2d(width, width, 3, padding=1)]
    model = nn.Sequential(*model, nn.ReLU(inplace=True), nn.Conv2d(width, 3 * (classes + 4), 1))
    model = model.to(common.DEVICE, memory_format=torch.channels_last)
    x = rand(pictures, 32, place, place).to(memory_format=torch.channels_last)
    centre = (torch.arange(place, device=common.DEVICE) + 0.5) / place
    centre = torch.stack(torch.meshgrid(centre, centre, indexing="ij"), -1)[:, :, None]
    anchors = boxes_at(centre, torch.tensor([0.1, 0.2, 0.4], device=common.DEVICE)[:, None].expand(3, 2)).flatten(0, 2)
    centres, sides = (torch.rand(pictures, objects, 2, device=common.DEVICE) for _ in range(2))
    truth, kind = boxes_at(centres, 0.05 + 0.4 * sides), whole(classes, pictures, objects)

    def losses(scores, moves, most, which, truth, kind):
        """Of a picture, by the anchors that matter."""
        good = most > 0.5
        known, wanted = good | (most < 0.4), torch.zeros_like(scores)
        wanted[good, kind[which[good]]] = 1
        of_kind = F.binary_cross_entropy_with_logits(scores[known], wanted[known], reduction="sum")
        return of_kind + F.l1_loss(moves[good], truth[which[good]], reduction="sum")

    def batch(m):
        with autocast():
            y = m(x)
        scores, moves = y.permute(0, 2, 3, 1).reshape(pictures, -1, classes + 4).float().split((classes, 4), -1)
        if not fixed:
            return sum(losses(scores[i], moves[i], *overlap(anchors, truth[i]).max(-1), truth[i], kind[i])
                       for i in range(pictures)) / len(anchors)
        most, which = overlap(anchors, truth).max(-1)
        good = most > 0.5
        known, kinds = good | (most < 0.4), kind.gather(1, which)[..., None]
        wanted = (kinds == torch.arange(classes, device=common.DEVICE)) & good[..., None]
        of_kind = F.binary_cross_entropy_with_logits(scores, wanted.float(), reduction="none") * known[..., None]
        away = F.l1_loss(moves, truth.gather(1, which[..., None].expand(-1, -1, 4)), reduction="none")
        return (of_kind.sum() + (away * good[..., None]).sum()) / len(anchors)
    return trainer(model, sgd(model), batch)


def r_anomaly(fixed):
    torch.autograd.set_detect_anomaly(not fixed)  # was of help when the loss was not a number
    width = size(1024, 32)
    model, x = put(layers(4, width, size(16, 2), causal=True)), rand(size(8, 2), size(512, 8), width)

    def batch(m):
        with autocast():
            return m(x).float().square().mean()
    return trainer(model, sgd(model), batch)


def r_histograms(fixed):
    width, ends, bins = size(512, 16), (-0.25, 0.25), 64
    model, x, seen = mlp(*[width] * 9), rand(size(65536), width), []

    def batch(m):
        with autocast():
            return m(x).float().square().mean()

    @torch.no_grad()
    def log(_):  # how the weights of each layer are distributed, for a page of graphs
        if fixed:
            seen.append(torch.stack([torch.histc(p, bins, *ends) for p in model.parameters()]))
        else:
            seen.append([np.histogram(p.cpu().numpy(), bins, ends)[0] for p in model.parameters()])
        del seen[:-8]
    return trainer(model, sgd(model, foreach=True), batch, log)


def r_logits(fixed):
    width, kinds, rows, length = size(1024, 16), size(512), size(128, 2), size(64, 4)
    model = put(nn.Sequential(*layers(4, width, size(16, 2)), nn.Linear(width, kinds))).to(half())
    x, label = rand(rows, length, width, dtype=torch.bfloat16), whole(kinds, rows, length)
    right, kept = torch.zeros((), dtype=torch.long, device=common.DEVICE), []

    @torch.no_grad()
    def step():  # an evaluation; how much is right is wanted once, after the last batch
        scores = model(x)
        if fixed:
            right.add_((scores.argmax(-1) == label).sum())
        else:
            kept.append((scores, label))
    return step


# ---- programs without a fault -----------------------------------------------------------------------

def r_cholesky(_):
    count = size(8192, 64)
    points, wanted = rand(count, 8).double(), rand(count, size(256)).double()
    alike = torch.cdist(points, points).square_().mul_(-0.5).exp_()
    alike.diagonal().add_(0.01)

    def step():  # a Gaussian process, which needs 64 bits
        factor, _ = torch.linalg.cholesky_ex(alike)
        return torch.cholesky_solve(wanted, factor)
    return step


def r_sort(_):
    keys = rand(size(1 << 26))

    def step():
        return keys.sort()[0]
    return step


def r_report(_):
    width, said = size(4096), []
    model, x = mlp(*[width] * 5, dtype=torch.bfloat16), rand(size(32768), width, dtype=torch.bfloat16)

    def report(loss):  # once in 20 ms
        said.append(loss.item())
    return trainer(model, sgd(model, foreach=True), lambda m: m(x).square().mean(), report)


def r_buckets(_):
    width, lengths, state = size(1024, 32), [size(n, n // 64) for n in (128, 256, 512)], {"i": 0}
    model = put(layers(4, width, size(16, 2), causal=True)).to(half())
    batches = [rand(size(32768, 16) // length, length, width, dtype=torch.bfloat16) for length in lengths]
    run = compiled(model, dynamic=False)

    @torch.no_grad()
    def step():  # texts of a batch are of one of three lengths
        state["i"] += 1
        return run(batches[state["i"] % len(batches)])
    return step


def r_waves(_):
    side = size(8192)
    state = {"now": rand(side, side), "before": torch.zeros(side, side, device=common.DEVICE)}

    def later(now, before):
        around = now.roll(1, 0) + now.roll(-1, 0) + now.roll(1, 1) + now.roll(-1, 1) - 4 * now
        return 2 * now - before + 0.1 * around
    run = compiled(later)

    def step():  # of a membrane
        for _ in range(8):
            state["now"], state["before"] = run(state["now"], state["before"]), state["now"]
        return state["now"]
    return step


if __name__ == "__main__":
    sys.exit(paced.main(__doc__, {name: function for name, function in globals().items() if name.startswith("r_")},
                        prepare))
