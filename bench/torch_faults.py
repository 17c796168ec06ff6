#!/usr/bin/env python3
"""Small PyTorch programs with one planted fault each, and the same without it: what findings are judged by.

    torch_faults.py NAME --form bad|fixed [--steps N | --seconds S] [--turn FILE] [--cpu-smoke]
    torch_faults.py --list

Sets with other models, sizes and code for each class of fault: rules may be tuned on t_ and s_ (scored first), u_
(torch_faults_u.py) and w_ (torch_faults_w.py, triton_faults.py, jax_faults.py), which were scored first, too; v_
(torch_faults_v.py) and q_ (torch_faults_q.py and the files of w_) are scored only, x_, y_ and r_ (likewise) were
scored first. What a report should say of them stands in tests/diagnosis/unseen.tsv; bench/unseen
records and judges them. Each iteration is an NVTX range "step"; the last line is "step N ns", the mean. --turn: a file
to lock before the first step, so that several programs start side by side and compute one after the other. Needs
PyTorch; no data, no other package."""
import argparse
import contextlib
import fcntl
import math
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

WARM_UP = 3
STEPS = {"t_product": 400, "s_product": 250, "t_fused": 400, "s_fused": 150}  # seconds at full power
SMOKE = False
DEVICE = "cuda"


def size(full, smoke=None):
    return (smoke or max(2, full // 256)) if SMOKE else full


def rand(*shape, dtype=torch.float32):
    return torch.randn(*shape, device=DEVICE).to(torch.float32 if SMOKE else dtype)


def mlp(*widths, act=nn.ReLU, dtype=torch.float32):
    layers = []
    for a, b in zip(widths, widths[1:]):
        layers += [nn.Linear(a, b, device=DEVICE, dtype=torch.float32 if SMOKE else dtype), act()]
    return nn.Sequential(*layers[:-1])


def trainer(model, optimizer, batch, after=lambda loss: None):
    """A training step; after(loss) is what the program does with its loss."""
    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = batch(model)
        loss.backward()
        optimizer.step()
        after(loss)
    return step


def sgd(model, **options):
    return torch.optim.SGD(model.parameters(), lr=1e-4, **options)


# ---- elementwise chains over 256 MiB ----------------------------------------------------------------

def t_chain(fixed):
    x = rand(size(8192), size(8192))

    def step():
        if fixed:
            return F.gelu(x, approximate="tanh")
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))
    return step


def s_chain(fixed):
    width = size(2048)
    x, weight, bias = rand(size(32768), width), rand(width), rand(width)

    def step():
        if fixed:
            return F.silu(F.layer_norm(x, (width,), weight, bias))
        centred = x - x.mean(-1, keepdim=True)
        y = centred / torch.sqrt(centred.pow(2).mean(-1, keepdim=True) + 1e-5) * weight + bias
        return y * torch.sigmoid(y)
    return step


# ---- attention with its scores in memory ------------------------------------------------------------

def t_attention(fixed):
    length, dim = size(2048, 16), 64
    q, k, v = (rand(8, size(16, 2), length, dim, dtype=torch.float16) for _ in range(3))
    mask = torch.ones(length, length, dtype=torch.bool, device=DEVICE).tril()

    def step():
        if fixed:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = q @ k.transpose(-2, -1) / math.sqrt(dim)
        return torch.softmax(scores.masked_fill(~mask, -1e4), -1) @ v
    return step


class Attention(nn.Module):
    def __init__(self, width, heads, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for t in self.qkv(x).chunk(3, -1))
        if self.fused:
            seen = F.scaled_dot_product_attention(q, k, v)
        else:
            seen = F.softmax(torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5, -1)
            seen = torch.einsum("bhij,bhjd->bhid", seen, v)
        return self.out(seen.transpose(1, 2).flatten(2))


def s_attention(fixed):
    width = size(768, 32)
    model = nn.Sequential(*(Attention(width, size(12, 2), fixed) for _ in range(2)))
    model = model.to(DEVICE, torch.float32 if SMOKE else torch.bfloat16)
    x = rand(size(4, 2), size(4096, 16), width, dtype=torch.bfloat16)
    return trainer(model, sgd(model), lambda m: m(x).square().mean())


# ---- 32-bit products without TF32 -------------------------------------------------------------------

def t_tf32(fixed):
    torch.set_float32_matmul_precision("high" if fixed else "highest")
    model, x = mlp(size(4096), size(4096), size(4096)), rand(size(8192), size(4096))
    return trainer(model, sgd(model), lambda m: m(x).mean())


def s_tf32(fixed):
    torch.set_float32_matmul_precision("high" if fixed else "highest")
    a, b = rand(4, size(3072), size(6144)), rand(4, size(6144), size(3072))

    def step():
        with torch.no_grad():
            return torch.relu(torch.matmul(a, b)).sum(-1)
    return step


# ---- memory that grows ------------------------------------------------------------------------------

def t_leak(fixed):
    model, x, kept = mlp(size(1024), size(4096), size(1024)), rand(size(4096), size(1024)), []

    def step():  # an evaluation that keeps its losses, and so their graphs
        loss = F.mse_loss(model(x), x)
        kept.append(loss.detach().clone() if fixed else loss)
    return step


def s_leak(fixed):
    model = nn.Sequential(nn.Conv2d(16, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1),
                          nn.ReLU()).to(DEVICE)
    x, state = rand(size(32, 2), 16, size(128, 8), size(128, 8)), {"mean": torch.zeros((), device=DEVICE)}

    def step():  # a running mean with a history
        score = model(x).mean()
        state["mean"] = 0.9 * state["mean"] + 0.1 * (score.detach() if fixed else score)
    return step


# ---- optimizers -------------------------------------------------------------------------------------

def t_optimizer(fixed):
    model, x = mlp(*[size(512)] * 9), rand(size(256), size(512))
    kind = {"fused": True} if fixed and not SMOKE else {"foreach": False}
    return trainer(model, torch.optim.AdamW(model.parameters(), lr=1e-4, **kind),
                   lambda m: m(x).square().mean())


def s_optimizer(fixed):
    model = nn.ModuleList(nn.Embedding(size(2000), 64) for _ in range(20)).to(DEVICE)
    index = torch.randint(0, size(2000), (size(512),), device=DEVICE)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4, momentum=0.9, foreach=fixed)
    return trainer(model, optimizer, lambda m: torch.stack([e.weight.sum() for e in m]).mean()
                   + m[0](index).mean())


# ---- sizes that the host waits for ------------------------------------------------------------------

def t_nonzero(fixed):
    model, x = mlp(size(1024), size(2048), size(1024)), rand(size(2048), size(1024))
    mask = torch.rand(size(2048), device=DEVICE) > 0.3

    def loss(m):
        error = (m(x) - x).square().mean(-1)
        return (error * mask).sum() / mask.sum() if fixed else error[mask].mean()
    return trainer(model, sgd(model), loss)


def s_nonzero(fixed):
    count = size(200000)
    boxes, head = rand(count, 32), mlp(32, 64, 1)

    def step():
        with torch.no_grad():
            for _ in range(4):
                score = head(boxes).flatten()
                if fixed:
                    (F.relu(boxes) * (score > 0)[:, None]).sum()
                else:
                    F.relu(boxes[torch.nonzero(score > 0).flatten()]).sum()
    return step


# ---- a table that is uploaded again -----------------------------------------------------------------

def t_upload(fixed):
    table, index = torch.randn(size(262144), 64), torch.randint(0, size(262144), (8192,), device=DEVICE)
    model = mlp(64, size(1024), 64)
    there = table.to(DEVICE)

    def step():
        with torch.no_grad():
            rows = there if fixed else table.to(DEVICE)
            return model(F.embedding(index, rows))
    return step


def s_upload(fixed):
    length, width = size(4096), size(2048)
    angles = torch.outer(torch.arange(length).float(), torch.randn(width)).cos()
    there, x, layer = angles.to(DEVICE), rand(length, width), nn.Linear(width, width).to(DEVICE)

    def step():
        with torch.no_grad():
            return layer(x * (there if fixed else angles.cuda() if not SMOKE else angles))
    return step


# ---- recurrent cells in a loop ----------------------------------------------------------------------

def t_cell(fixed):
    steps, batch, width = 32, size(64, 2), size(256, 8)
    cell = (nn.LSTM if fixed else nn.LSTMCell)(width, width).to(DEVICE)
    x = rand(steps, batch, width)

    def step():
        with torch.no_grad():
            if fixed:
                return cell(x)[0]
            h, c = torch.zeros(batch, width, device=DEVICE), torch.zeros(batch, width, device=DEVICE)
            for t in range(steps):
                h, c = cell(x[t], (h, c))
            return h
    return step


def s_cell(fixed):
    length, batch, width = 16, size(128, 2), size(192, 8)
    rnn = (nn.GRU if fixed else nn.GRUCell)(width, width).to(DEVICE)
    head, x = nn.Linear(width, 4).to(DEVICE), rand(length, batch, width)
    both = nn.ModuleList([rnn, head])

    def loss(_):
        if fixed:
            out = rnn(x)[0]
        else:
            state, rows = torch.zeros(batch, width, device=DEVICE), []
            for t in x.unbind(0):
                state = rnn(t, state)
                rows.append(state)
            out = torch.stack(rows)
        return head(out).square().mean()
    return trainer(both, sgd(both), loss)


# ---- products in a loop -----------------------------------------------------------------------------

def t_products(fixed):
    a, b = rand(64, size(128), size(128)), rand(64, size(128), size(128))

    def step():
        return torch.bmm(a, b) if fixed else torch.stack([a[i] @ b[i] for i in range(len(a))])
    return step


def s_products(fixed):
    experts, tokens = rand(48, size(256), size(512)), rand(48, size(96), size(256))

    def step():
        if fixed:
            return torch.relu(torch.einsum("eti,eio->eto", tokens, experts))
        return [torch.relu(torch.mm(rows, weight)) for rows, weight in zip(tokens, experts)]
    return step


# ---- data loaders -----------------------------------------------------------------------------------

class Signals(torch.utils.data.Dataset):
    def __len__(self):
        return 100000

    def __getitem__(self, i):
        x = torch.full((4096,), float(i))
        for k in range(size(16, 1)):
            x = torch.sin(x + k).sort().values
        return x[:1024]


class Lines(torch.utils.data.IterableDataset):
    def __iter__(self):
        for line in range(100000):
            words = [hash((line, k)) % 997 for k in range(size(2000, 8))]  # a tokenizer in Python
            yield torch.tensor([sum(words[k:k + 8]) % 5000 for k in range(128)])


def loader_step(loader, model, loss):
    rows, optimizer = iter(loader), sgd(model)
    return trainer(model, optimizer, lambda m: loss(m, next(rows).to(DEVICE, non_blocking=True)))


def t_loader(fixed):
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Signals(), batch_size=size(32, 2), num_workers=8 if fixed else 0,
                                         pin_memory=not SMOKE, prefetch_factor=4 if fixed else None)
    model = mlp(1024, size(16384), size(16384), 1024)
    return loader_step(loader, model, lambda m, x: m(x.repeat(size(128, 1), 1)).square().mean())


def s_loader(fixed):
    loader = torch.utils.data.DataLoader(Lines(), batch_size=size(64, 2), num_workers=8 if fixed else 0,
                                         pin_memory=not SMOKE)
    width = size(1024, 32)
    model = nn.Sequential(nn.Embedding(5000, width), *(
        nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True) for _ in range(4))).to(DEVICE)
    return loader_step(loader, model, lambda m, x: m(x).square().mean())


# ---- a number that is read at every step ------------------------------------------------------------

def t_item(fixed):
    model, x, seen = mlp(*[size(256)] * 9), rand(size(512), size(256)), []

    def after(loss):
        seen.append(loss.detach() if fixed else loss.item())
    return trainer(model, sgd(model, foreach=True), lambda m: m(x).square().mean(), after)


def s_item(fixed):
    model, x = mlp(*[size(384)] * 7, act=nn.Tanh), rand(size(1024), size(384))

    def step():
        with torch.no_grad():
            y = x
            for _ in range(6):  # iterates until it has converged
                last, y = y, model(y)
                if not fixed and float((y - last).norm()) < 1e-9:
                    break
    return step


# ---- small batches ----------------------------------------------------------------------------------

def t_batch(fixed):
    model, rows = mlp(*[size(512)] * 9, act=nn.GELU), rand(12, size(512))

    def step():
        with torch.no_grad():
            for x in rows.split(12 if fixed else 1):
                model(x)
    return step


def s_batch(fixed):
    model = nn.Sequential(nn.Conv2d(3, 32, 3, 2), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.ReLU(),
                          nn.Conv2d(64, 128, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(128, 10)).to(DEVICE)
    pictures = rand(10, 3, 64, 64)

    def step():
        with torch.no_grad():
            return [model(x) for x in pictures.split(10 if fixed else 1)]
    return step


# ---- programs without a fault -----------------------------------------------------------------------

def t_product(_):
    a, b = (rand(size(12288), size(12288), dtype=torch.bfloat16) for _ in range(2))
    return lambda: a @ b


def s_product(_):
    layer = mlp(size(8192), size(24576), dtype=torch.bfloat16)
    x = rand(size(16384), size(8192), dtype=torch.bfloat16)

    def step():
        with torch.no_grad():
            return layer(x)
    return step


def t_fused(_):
    q, k, v = (rand(4, size(32, 2), size(4096, 16), 128, dtype=torch.bfloat16) for _ in range(3))
    return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)


def s_fused(_):
    q, k, v = (rand(2, size(24, 2), size(8192, 16), 64, dtype=torch.float16).requires_grad_()
               for _ in range(3))

    def step():
        F.scaled_dot_product_attention(q, k, v).sum().backward()
    return step


def one_row(width, layers):
    model = mlp(*[width] * (layers + 1), dtype=torch.bfloat16)
    x = rand(1, width, dtype=torch.bfloat16)

    def step():
        with torch.no_grad():
            return model(x)
    return step


def t_one(_):
    return one_row(size(16384), 8)


def s_one(_):
    return one_row(size(12288), 12)


def compiled(model, *shape):
    x = rand(*shape)
    run = model if SMOKE else torch.compile(model)
    return trainer(model, sgd(model, foreach=True), lambda _: run(x).square().mean())


def t_compiled(_):
    return compiled(mlp(*[size(4096)] * 4, act=nn.GELU), size(8192), size(4096))


def s_compiled(_):
    width = size(2048, 32)
    return compiled(nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width),
                                  nn.LayerNorm(width)).to(DEVICE), size(16384), width)


def programs():
    return {name: function for name, function in globals().items() if name[:2] in ("t_", "s_")}


def run(step, steps, seconds):
    """The mean ns of a step: of `steps`, or of as many as begin within `seconds`."""
    on_device = DEVICE == "cuda"
    mark = torch.cuda.nvtx.range if on_device else contextlib.nullcontext
    wait = torch.cuda.synchronize if on_device else lambda: None
    with mark("warmup"):
        for _ in range(WARM_UP):
            step()
        wait()
    begun, done = time.perf_counter_ns(), 0
    while time.perf_counter_ns() - begun < seconds * 1e9 if seconds else done < steps:
        with mark("step"):
            step()
        done += 1
    wait()
    return (time.perf_counter_ns() - begun) // done


def main(choices):
    global SMOKE, DEVICE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("name", nargs="?", choices=sorted(choices), metavar="NAME")
    parser.add_argument("--form", choices=("bad", "fixed"), default="bad")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seconds", type=float, help="in place of a number of steps")
    parser.add_argument("--turn", help="file to lock before the first step")
    parser.add_argument("--cpu-smoke", action="store_true", help="tiny, on the CPU: does it run?")
    parser.add_argument("--list", action="store_true", help="the names")
    args = parser.parse_args()
    if args.list or not args.name:
        print("\n".join(sorted(choices)))
        return 0
    if args.cpu_smoke:
        SMOKE, DEVICE = True, "cpu"
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    step = choices[args.name](args.form == "fixed")
    with open(args.turn, "w") if args.turn else contextlib.nullcontext() as turn:
        if turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
        print("step %d ns" % run(
            step, 2 if SMOKE else args.steps or STEPS.get(args.name, 24), 0 if SMOKE else args.seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main(programs()))
