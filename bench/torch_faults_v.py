#!/usr/bin/env python3
"""Set v of torch_faults.py: 16 programs with one planted fault each and the same without it, and three without a fault.

    torch_faults_v.py NAME --form bad|fixed [--steps N | --seconds S] [--turn FILE] [--cpu-smoke]

They are scored only: no rule may be changed for what they show. The faults are those of PyTorch's performance
tuning guide and of common code (nanoGPT's attention without the fused call, the deep Q-learning tutorial's loops over
parameters, a gradient norm read tensor by tensor, ...); labels: tests/diagnosis/unseen.tsv. The device
limits the first half of the pairs, the host the second."""
import sys
import zlib

import torch
import torch.nn.functional as F
from torch import nn

import torch_faults as common
from torch_faults import loader_step, mlp, rand, sgd, size, trainer


def half():
    return torch.float32 if common.SMOKE else torch.bfloat16


# ---- limited by the device --------------------------------------------------------------------------

def v_huber(fixed):
    flow = rand(size(32, 1), 2, size(1024, 16), size(1024, 16)).requires_grad_()
    truth = rand(*flow.shape)

    def step():  # a robust loss of two fields of motion
        flow.grad = None
        if fixed:
            loss = F.smooth_l1_loss(flow, truth)
        else:
            error = torch.abs(flow - truth)
            loss = torch.where(error < 1.0, 0.5 * error ** 2, error - 0.5).mean()
        loss.backward()
    return step


class Causal(nn.Module):
    """A decoder's block; the mask is a buffer, the scores are a tensor unless it is fused."""

    def __init__(self, width, heads, length, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("mask", torch.tril(torch.ones(length, length))[None, None])

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = (t.view(rows, length, self.heads, width // self.heads).transpose(1, 2)
                   for t in self.attend(self.first(x)).split(width, dim=2))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * k.size(-1) ** -0.5
            scores = F.softmax(scores.masked_fill(self.mask == 0, float("-inf")), dim=-1)
            y = F.dropout(scores, 0.1) @ v
        x = x + self.project(y.transpose(1, 2).reshape(rows, length, width))
        return x + self.down(F.gelu(self.up(self.second(x))))


def v_gpt(fixed):
    length, width = size(1536, 16), size(1024, 32)
    model = nn.Sequential(*(Causal(width, size(16, 2), length, fixed) for _ in range(2))).to(common.DEVICE, half())
    x = rand(size(12, 2), length, width, dtype=torch.bfloat16)
    return trainer(model, sgd(model), lambda m: m(x).float().square().mean())


def v_precision(fixed):
    torch.set_float32_matmul_precision("high" if fixed else "highest")
    width = size(1536, 32)
    layers = (nn.TransformerEncoderLayer(width, size(24, 2), 4 * width, dropout=0.0, activation="gelu", batch_first=True)
              for _ in range(2))
    model, x = nn.Sequential(*layers).to(common.DEVICE), rand(size(16, 2), size(512, 16), width)
    return trainer(model, sgd(model), lambda m: m(x).square().mean())


def v_grid(fixed):
    x = rand(4, 32, size(512), size(512))
    weight, bias = rand(*x.shape[1:]), rand(*x.shape[1:])

    def step():  # each picture is one row to normalise: as many blocks as pictures
        with torch.no_grad():
            if not fixed:
                return F.layer_norm(x, x.shape[1:], weight, bias)
            variance, mean = torch.var_mean(x, dim=(1, 2, 3), unbiased=False, keepdim=True)
            return torch.addcmul(bias, (x - mean) * torch.rsqrt(variance + 1e-5), weight)
    return step


def v_growth(fixed):
    width = size(4096)
    model, x, features = mlp(size(2048), width, width, width, 64, act=nn.Tanh), rand(size(16384), size(2048)), []
    total = torch.zeros((), device=common.DEVICE)

    def hook(_, __, output):  # what a layer gives, for statistics at the end
        if fixed:
            total.add_(output.detach().abs().mean())
        else:
            features.append(output)
    model[2].register_forward_hook(hook)
    return lambda: model(x).logsumexp(-1).mean()


def v_batches(fixed):
    pool = [torch.randn(size(192, 2), 3, size(224, 16), size(224, 16)) for _ in range(4)]
    if fixed and not common.SMOKE:
        pool = [batch.pin_memory() for batch in pool]
    model = nn.Sequential(nn.Conv2d(3, 96, 8, 8), nn.GELU(), nn.Conv2d(96, 192, 3, padding=1), nn.GELU(),
                          nn.Conv2d(192, 192, 3, padding=1), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(192, 100)).to(common.DEVICE)
    state = {"i": 0}

    def loss(m):
        state["i"] += 1
        batch = pool[state["i"] % len(pool)]
        batch = batch.to(common.DEVICE, non_blocking=True) if fixed else batch.to(common.DEVICE)
        return m(batch).square().mean()
    return trainer(model, sgd(model), loss)


class Detector(nn.Module):
    def __init__(self, count, channels):
        super().__init__()
        self.head = nn.Linear(channels, 4)
        self.anchors = torch.rand(count, 4) + 0.5  # neither a parameter nor a buffer: stays on the host

    def forward(self, features):
        anchors = self.anchors.to(features.device)
        return anchors[:, :2] + self.head(features)[:, :2] * anchors[:, 2:]


def v_anchors(fixed):
    model, features = Detector(size(600000), 48).to(common.DEVICE), rand(size(600000), 48)
    if fixed:
        model.anchors = model.anchors.to(common.DEVICE)

    def step():
        with torch.no_grad():
            return model(features)
    return step


def v_cache(fixed):
    model, x = mlp(size(2048), size(8192), size(2048), act=nn.SiLU), rand(size(4096), size(2048))

    def after(_):  # "against running out of memory"
        if not fixed and not common.SMOKE:
            torch.cuda.empty_cache()
    return trainer(model, sgd(model), lambda m: m(x).square().mean(), after)


# ---- limited by the host ----------------------------------------------------------------------------

def v_dqn(fixed):
    widths = [size(384)] * 14
    policy, target = mlp(*widths), mlp(*widths)
    state, following, reward = rand(size(256), widths[0]), rand(size(256), widths[0]), rand(size(256))
    kind = {"fused": True} if fixed and not common.SMOKE else {"foreach": False}
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-4, amsgrad=True, **kind)
    mine, theirs = list(policy.parameters()), list(target.parameters())

    def step():
        with torch.no_grad():
            best = target(following).amax(-1) * 0.99 + reward
        loss = F.smooth_l1_loss(policy(state).amax(-1), best)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if fixed:
            torch.nn.utils.clip_grad_value_(mine, 1.0)
        else:
            for p in mine:
                p.grad.data.clamp_(-1, 1)
        optimizer.step()
        with torch.no_grad():
            if fixed:
                return torch._foreach_lerp_(theirs, mine, 0.005)
            for p, q in zip(theirs, mine):
                p.copy_(q * 0.005 + p * (1 - 0.005))
    return step


def v_repeat(fixed):
    graphs, width = size(2000), size(128)
    counts = torch.randint(4, 40, (graphs,), device=common.DEVICE)
    total = int(counts.sum())
    known = {"output_size": total} if fixed else {}
    nodes, layers = rand(total, width), nn.ModuleList(nn.Linear(width, width) for _ in range(3)).to(common.DEVICE)
    whose = torch.repeat_interleave(torch.arange(graphs, device=common.DEVICE), counts, output_size=total)

    def loss(_):  # a message to all nodes of a graph, and back
        x = nodes
        for layer in layers:
            pooled = torch.zeros(graphs, width, device=common.DEVICE).index_add_(0, whose, x)
            x = F.relu(layer(x + torch.repeat_interleave(pooled, counts, dim=0, **known)))
        return x.square().mean()
    return trainer(layers, sgd(layers, foreach=True), loss)


class Gates(nn.Module):
    """An LSTM as papers write it."""

    def __init__(self, width):
        super().__init__()
        self.of_input, self.of_state = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width, bias=False)

    def forward(self, x):
        h = c = torch.zeros_like(x[0])
        out = []
        for now in x:
            i, f, g, o = (self.of_input(now) + self.of_state(h)).chunk(4, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            out.append(h)
        return torch.stack(out)


def v_bilstm(fixed):
    length, batch, width = 20, size(48, 2), size(224, 8)
    if fixed:
        model = nn.LSTM(width, width, bidirectional=True).to(common.DEVICE)
    else:
        model = nn.ModuleList([Gates(width), Gates(width)]).to(common.DEVICE)
    x = rand(length, batch, width)

    def loss(m):
        if fixed:
            return m(x)[0].square().mean()
        return torch.cat([m[0](x), m[1](x.flip(0)).flip(0)], -1).square().mean()
    return trainer(model, sgd(model, foreach=True), loss)


def v_lora(fixed):
    requests, width, rank = 48, size(1024), 16
    down, up = rand(12, width, rank), rand(12, rank, width)
    which = [(7 * i) % 12 for i in range(requests)]  # an adapter for each request
    index = torch.tensor(which, device=common.DEVICE)
    base, x = nn.Linear(width, width).to(common.DEVICE), rand(requests, 8, width)

    def step():
        with torch.no_grad():
            y = base(x)
            if fixed:
                return y.baddbmm_(torch.bmm(x, down[index]), up[index])
            for i, adapter in enumerate(which):
                y[i] += x[i] @ down[adapter] @ up[adapter]
            return y
    return step


class Packed(torch.utils.data.Dataset):
    """Spectrograms that are stored compressed."""

    def __init__(self):
        wave = torch.arange(size(1 << 19, 1 << 12)) % 251
        self.stored = [zlib.compress((wave * (k + 3) % 256).to(torch.uint8).numpy().tobytes(), 6) for k in range(32)]

    def __len__(self):
        return 200000

    def __getitem__(self, i):
        raw = torch.frombuffer(bytearray(zlib.decompress(self.stored[i % 32])), dtype=torch.uint8)
        return torch.log1p(raw[:size(1 << 18, 1 << 11)].float()).view(-1, 64)[i % 8::8]


def v_packed(fixed):
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Packed(), batch_size=size(32, 2), num_workers=10 if fixed else 0,
                                         shuffle=True, pin_memory=not common.SMOKE, persistent_workers=fixed)
    width = size(2048, 32)
    model = nn.Sequential(nn.Linear(64, width), nn.SiLU(), nn.Linear(width, 4 * width), nn.SiLU(),
                          nn.Linear(4 * width, width), nn.SiLU(), nn.Linear(width, 32)).to(common.DEVICE)
    return loader_step(loader, model, lambda m, x: m(x).square().mean())


def v_augment(fixed):
    pictures = torch.randint(0, 255, (4, size(96, 2), 3, size(256, 16), size(256, 16)), dtype=torch.uint8)
    if fixed and not common.SMOKE:
        pictures = pictures.pin_memory()
    model = nn.Sequential(nn.Conv2d(3, 64, 4, 4), nn.ReLU(), nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 20)).to(common.DEVICE)
    state = {"i": 0}

    def loss(m):  # mirrored, with other brightness, and normalised: on the host, or where the model is
        state["i"] += 1
        batch = pictures[state["i"] % 4]
        if fixed:
            batch = batch.to(common.DEVICE, non_blocking=True)
        batch = batch.flip(-1).float().mul_(0.9 + 0.01 * (state["i"] % 20)).clamp_(0, 255).div_(255)
        batch = batch.sub_(0.45).div_(0.226)
        return m(batch.to(common.DEVICE)).square().mean()
    return trainer(model, sgd(model), loss)


def v_gradnorm(fixed):
    model, x, history = mlp(*[size(320)] * 11, act=nn.LeakyReLU), rand(size(384), size(320)), []
    optimizer = sgd(model, momentum=0.9, foreach=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(x).square().mean().backward()
        if fixed:
            history.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9))
        else:
            total = 0.0
            for p in model.parameters():
                total += p.grad.data.norm(2).item() ** 2
            history.append(total ** 0.5)
        optimizer.step()
    return step


def v_sampling(fixed):
    rows, words, width = size(32, 2), size(32000, 64), size(512)
    embed, body = nn.Embedding(words, width).to(common.DEVICE), mlp(width, width, width, act=nn.GELU)
    head, state = nn.Linear(width, words).to(common.DEVICE), {"token": torch.zeros(rows, dtype=torch.long)}
    state["token"] = state["token"].to(common.DEVICE)

    def step():  # four tokens, each drawn from the ten likeliest
        with torch.no_grad():
            for _ in range(4):
                scores = head(body(embed(state["token"])))
                if not fixed:
                    scores = scores.cpu()
                best, index = scores.topk(10, dim=-1)
                drawn = (F.softmax(best, -1) / torch.empty_like(best).exponential_(1)).argmax(-1, keepdim=True)
                state["token"] = index.gather(1, drawn).flatten().to(common.DEVICE)
    return step


# ---- programs without a fault -----------------------------------------------------------------------

def v_prefill(_):
    width, heads = size(4096, 32), size(32, 2)
    layers = [[nn.Linear(width, n * width, bias=False).to(common.DEVICE, half()) for n in (3, 1)] for _ in range(3)]
    x = rand(size(8, 2), size(2048, 16), width, dtype=torch.bfloat16)

    def step():
        with torch.inference_mode():
            y = x
            for attend, project in layers:
                q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in attend(y).chunk(3, -1))
                y = project(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
            return y
    return step


def v_spectrum(_):
    fields = rand(size(96, 2), size(1024, 16), size(1024, 16))
    response = torch.fft.rfft2(rand(*fields.shape[1:]))

    def step():  # a filter with a large support
        return torch.fft.irfft2(torch.fft.rfft2(fields) * response)
    return step


class Noise(torch.utils.data.Dataset):
    def __init__(self):
        self.rows = torch.randn(64, 3, size(128, 16), size(128, 16))

    def __len__(self):
        return 1000000

    def __getitem__(self, i):
        return self.rows[i % 64]


def v_tuned(_):
    """A training as the tuning guide wants it."""
    torch.set_num_threads(1)
    torch.backends.cudnn.benchmark = True
    loader = torch.utils.data.DataLoader(Noise(), batch_size=size(128, 2), num_workers=size(8, 1),
                                         pin_memory=not common.SMOKE)
    layers = [nn.Conv2d(3, 256, 3, 2, 1, bias=False)]
    for _ in range(size(10, 1)):
        layers += [nn.BatchNorm2d(256), nn.ReLU(inplace=True), nn.Conv2d(256, 256, 3, padding=1, bias=False)]
    model = nn.Sequential(*layers).to(common.DEVICE).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, **({} if common.SMOKE else {"fused": True}))
    rows = iter(loader)

    def loss(m):
        batch = next(rows).to(common.DEVICE, non_blocking=True).to(memory_format=torch.channels_last)
        with torch.autocast(common.DEVICE, torch.bfloat16):
            return m(batch).float().square().mean()
    return trainer(model, optimizer, loss)


if __name__ == "__main__":
    sys.exit(common.main({name: function for name, function in globals().items() if name.startswith("v_")}))
