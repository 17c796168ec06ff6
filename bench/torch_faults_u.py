#!/usr/bin/env python3
"""Set u of torch_faults.py: other programs with faults of the same classes, and some without a fault.

    torch_faults_u.py NAME --form bad|fixed [--steps N | --seconds S] [--turn FILE] [--cpu-smoke]

They were scored first; rules may be tuned on them since. Labels: tests/diagnosis/unseen.tsv."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

import torch_faults as common
from torch_faults import loader_step, mlp, rand, sgd, size, trainer


def u_loss(fixed):
    rows, classes = size(8192, 4), size(32000, 16)
    logits, target = rand(rows, classes), torch.randint(0, classes, (rows,), device=common.DEVICE)

    def step():
        if fixed:
            return F.cross_entropy(logits, target)
        exps = (logits - logits.max(-1, keepdim=True).values).exp()
        probabilities = (exps / exps.sum(-1, keepdim=True)).clamp_min(1e-9)
        return -probabilities.log().gather(1, target[:, None]).mean()
    return step


def u_bias(fixed):
    heads, length, dim = size(64, 2), size(2048, 16), 96
    q, k, v = (rand(heads, length, dim, dtype=torch.bfloat16) for _ in range(3))
    slopes = -torch.arange(length, device=common.DEVICE).to(q.dtype).expand(heads, length, length) / 64

    def step():
        if fixed:
            return F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=slopes[None])
        scores = torch.baddbmm(slopes, q, k.mT, alpha=dim ** -0.5)
        return torch.bmm(scores.float().softmax(-1).to(v.dtype), v)
    return step


def u_conv(fixed):
    torch.backends.cudnn.allow_tf32 = fixed
    model = nn.Sequential(*(nn.Conv2d(256, 256, 3, padding=1) for _ in range(3))).to(common.DEVICE)
    x = rand(size(64, 1), 256, size(48, 8), size(48, 8))

    def step():
        with torch.no_grad():
            return model(x)
    return step


def u_history(fixed):
    model, outputs = nn.Sequential(nn.Linear(size(2048), size(8192)), nn.SiLU(), nn.Linear(size(8192), 100)), []
    model, x = model.to(common.DEVICE), rand(size(8192), size(2048))
    right, label = torch.zeros((), device=common.DEVICE), torch.randint(0, 100, (len(x),), device=common.DEVICE)

    def step():  # of a validation: what the whole epoch's metric is computed of
        with torch.set_grad_enabled(not fixed):
            scores = model(x)
        if fixed:
            right.add_((scores.argmax(-1) == label).sum())
        else:
            outputs.append(scores)
    return step


def u_average(fixed):
    model = nn.ModuleList(nn.Linear(size(256), size(256)) for _ in range(60)).to(common.DEVICE)
    now, mean = list(model.parameters()), [p.detach().clone() for p in model.parameters()]

    def step():  # a moving average of the weights
        with torch.no_grad():
            if fixed:
                return torch._foreach_lerp_(mean, now, 0.001)
            for m, p in zip(mean, now):
                m.mul_(0.999).add_(p, alpha=0.001)
    return step


def u_classes(fixed):
    rows, width, classes = size(65536), size(256), 10
    features, label = rand(rows, width), torch.randint(0, classes, (size(65536),), device=common.DEVICE)
    encoder = mlp(width, size(512), width)

    def step():  # the centre of each class
        with torch.no_grad():
            x = encoder(features)
            if fixed:
                centres = torch.zeros(classes, width, device=common.DEVICE).index_add_(0, label, x)
                return centres / torch.bincount(label, minlength=classes).clamp_min(1)[:, None]
            return torch.stack([x[label == c].mean(0) for c in range(classes)])
    return step


def u_offload(fixed):
    width = size(4096, 16)
    stored = [torch.randn(width, width) for _ in range(3)]  # layers that stay on the host
    there, x = [w.to(common.DEVICE) for w in stored], rand(size(2048), width)

    def step():
        with torch.no_grad():
            y = x
            for here, weight in zip(there, stored):
                y = torch.tanh(y @ (here if fixed else weight.to(common.DEVICE, non_blocking=True)))
            return y
    return step


def u_rnn(fixed):
    length, batch, width = 24, size(96, 2), size(320, 8)
    cells = nn.ModuleList(nn.RNNCell(width, width) for _ in range(2)).to(common.DEVICE)
    whole, x = nn.RNN(width, width, num_layers=2).to(common.DEVICE), rand(length, batch, width)

    def loss(_):
        if fixed:
            return whole(x)[0].square().mean()
        state, out = [torch.zeros(batch, width, device=common.DEVICE) for _ in cells], []
        for now in x:
            for i, cell in enumerate(cells):
                now = state[i] = cell(now, state[i])
            out.append(now)
        return torch.stack(out).square().mean()
    return trainer(whole if fixed else cells, sgd(whole if fixed else cells), loss)


def u_heads(fixed):
    heads, width, out = 40, size(192), size(64)
    x, weights = rand(size(256), heads, width), rand(heads, out, width)

    def step():
        if fixed:
            return torch.einsum("bhi,hoi->bho", x, weights)
        return torch.cat([F.linear(x[:, h], weights[h]) for h in range(heads)], -1)
    return step


class Crops(torch.utils.data.Dataset):
    def __init__(self):
        self.pictures = torch.randint(0, 255, (16, 3, 320, 320), dtype=torch.uint8)

    def __len__(self):
        return 50000

    def __getitem__(self, i):
        y, x = (i * 37) % 90, (i * 91) % 90
        crop = self.pictures[i % 16, :, y:y + 224, x:x + 224].float().div_(255)
        crop = crop.flip(-1) if i % 2 else crop
        for _ in range(size(10, 1)):  # a blur
            crop = F.avg_pool2d(crop[None], 3, 1, 1)[0]
        return (crop - 0.45) / 0.22


def u_crops(fixed):
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Crops(), batch_size=size(24, 2), num_workers=12 if fixed else 0,
                                         pin_memory=not common.SMOKE)
    model = nn.Sequential(nn.Conv2d(3, 256, 7, 4), nn.ReLU(), *(
        layer for _ in range(size(24, 1)) for layer in (nn.Conv2d(256, 256, 3, padding=1), nn.ReLU()))).to(common.DEVICE)
    return loader_step(loader, model, lambda m, x: m(x).square().mean())


def u_guard(fixed):
    model, x, bad = mlp(*[size(448)] * 6, act=nn.ELU), rand(size(768), size(448)), []
    optimizer = sgd(model, foreach=True)

    def step():  # gradients of four small batches, each looked at
        optimizer.zero_grad(set_to_none=True)
        for rows in x.chunk(4):
            loss = model(rows).abs().mean()
            if fixed:
                bad.append(loss.detach().isfinite())
            elif not torch.isfinite(loss):
                continue
            loss.backward()
        optimizer.step()
    return step


def u_encoder(_):
    width = size(2048, 32)
    model = nn.ModuleList(nn.TransformerEncoderLayer(width, 16, 4 * width, dropout=0.0, batch_first=True)
                          for _ in range(2)).to(common.DEVICE)
    x = rand(size(16, 2), size(1024, 16), width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=not common.SMOKE)

    def loss(layers):
        with torch.autocast(common.DEVICE, torch.bfloat16):
            y = x
            for layer in layers:
                y = layer(y)
        return y.float().square().mean()
    return trainer(model, optimizer, loss)


def u_graph(_):
    model, x = mlp(*[size(768)] * 13, dtype=torch.bfloat16), rand(size(4096), size(768), dtype=torch.bfloat16)
    if common.SMOKE:
        return lambda: model(x)
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.stream(side):
        model(x)
    torch.cuda.synchronize()
    with torch.no_grad(), torch.cuda.graph(graph):
        model(x)
    return graph.replay


def u_vision(_):
    dtype = torch.float32 if common.SMOKE else torch.bfloat16
    model = nn.Sequential(*(layer for _ in range(6) for layer in (nn.Conv2d(384, 384, 3, padding=1), nn.ReLU())))
    model = model.to(common.DEVICE, dtype, memory_format=torch.channels_last)
    x = rand(size(64, 1), 384, size(64, 8), size(64, 8), dtype=dtype).to(memory_format=torch.channels_last)

    def step():
        with torch.no_grad():
            return model(x)
    return step


def u_prefetch(_):
    layer, rows = nn.Linear(size(8192), size(8192)).to(common.DEVICE), size(4096)
    host = [torch.randn(rows, size(8192)) for _ in range(2)]
    if common.SMOKE:
        return lambda: layer(host[0])
    host, side = [x.pin_memory() for x in host], torch.cuda.Stream()
    state = {"next": host[0].to(common.DEVICE), "i": 0}

    def step():  # the next rows come while these are multiplied
        with torch.no_grad():
            torch.cuda.current_stream().wait_stream(side)
            now, state["i"] = state["next"], state["i"] + 1
            now.record_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                state["next"] = host[state["i"] % 2].to(common.DEVICE, non_blocking=True)
            return layer(layer(layer(now)))
    return step


if __name__ == "__main__":
    sys.exit(common.main({name: function for name, function in globals().items() if name[:2] == "u_"}))
