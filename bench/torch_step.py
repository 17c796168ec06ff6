#!/usr/bin/env python3
"""A small GPT's training or inference step, in turns with others (turns.h).

    torch_step.py --calibrate FILE              find the batch for a step of 20 to 50 ms of the device, write it
    torch_step.py --batch FILE [--inference]    rounds of 10 steps; one line of JSON each

Needs PyTorch; no data, no other package. `--tiny --device cpu` is for tests.
"""
import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F
import turns

STEPS, WARM_UP = 10, 5
TARGET_MS, MOST_MS, MOST_BATCH = 25.0, 50.0, 512


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2)
                   for t in self.qkv(self.first(x)).chunk(3, dim=-1))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Gpt(torch.nn.Module):
    def __init__(self, layers, width, heads, words, length):
        super().__init__()
        self.words = torch.nn.Embedding(words, width)
        self.places = torch.nn.Parameter(torch.zeros(length, width))
        self.blocks = torch.nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.last = torch.nn.LayerNorm(width)
        self.head = torch.nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.places[:tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.last(x))


class Work:
    """The model and one step of it. A step ends with its loss on the host, as training loops that
    log do."""

    def __init__(self, args):
        torch.manual_seed(1)
        self.device = torch.device(args.device)
        self.inference = args.inference
        self.words, self.length = (100, 16) if args.tiny else (32000, 512)
        layers, width, heads = (2, 32, 2) if args.tiny else (12, 768, 12)
        kind = torch.float32 if args.fp32 or args.device == "cpu" else torch.bfloat16
        self.model = Gpt(layers, width, heads, self.words, self.length).to(self.device, kind)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)

    def tokens(self, batch):
        return torch.randint(0, self.words, (batch, self.length + 1), device=self.device)

    def step(self, tokens):
        if self.inference:
            with torch.inference_mode():
                return self.model(tokens[:, :-1])[:, -1].argmax(-1).sum().item()
        logits = self.model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item()

    def steps_ms(self, tokens, count):
        times = []
        for _ in range(count):
            begun = time.perf_counter()
            self.step(tokens)
            times.append((time.perf_counter() - begun) * 1000)
        return times


def calibrate(work, path):
    """Double the batch until a step takes 25 ms and the device is what takes them: twice the batch then takes 1.7 times as
    long at least. A step that then takes more than 50 ms is cut."""
    batch, half = 1, float("inf")
    while True:
        tokens = work.tokens(batch)
        work.steps_ms(tokens, 3)
        took = min(work.steps_ms(tokens, 5))
        if (took >= TARGET_MS and took >= 1.7 * half) or batch >= MOST_BATCH:
            break
        batch, half = batch * 2, took
    if took > MOST_MS and batch > 1:
        batch = max(1, int(batch * 35.0 / took))
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"batch": batch, "step_ms": took}, file)


def gpu_used(device):
    if device.type != "cuda":
        return 0
    free, total = torch.cuda.mem_get_info(device)
    return total - free


def play(work, batch):
    tokens = work.tokens(batch)
    work.steps_ms(tokens, WARM_UP)

    def one_round():
        times = work.steps_ms(tokens, STEPS)
        return {"mode": "inference" if work.inference else "training", "batch": batch,
                "ms_per_step": statistics.median(times), "steps_ms": times}
    turns.play(one_round, lambda rounds: {"operations": rounds * STEPS,
                                          "gpu_used_bytes": gpu_used(work.device)})


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calibrate", metavar="FILE")
    parser.add_argument("--batch", metavar="FILE", help="what --calibrate wrote, or a number")
    parser.add_argument("--inference", action="store_true")
    parser.add_argument("--fp32", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    work = Work(args)
    if args.calibrate:
        calibrate(work, args.calibrate)
        return
    batch = 8
    if args.batch and args.batch.isdigit():
        batch = int(args.batch)
    elif args.batch:
        with open(args.batch, encoding="utf-8") as file:
            batch = json.load(file)["batch"]
    play(work, batch)


main()
