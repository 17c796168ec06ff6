#!/usr/bin/env python3
"""Writes the first corpus: one input a record type, with plausible fields, and a few in company."""
import os
import struct
import sys

out = sys.argv[1]
TYPES = {  # name: (number, size of the struct)
    "string": (2, 24), "config": (3, 64), "device": (4, 112), "context": (5, 24), "stream": (6, 40),
    "name": (7, 24), "module": (8, 40), "clock": (9, 40), "health": (10, 24), "call": (11, 48),
    "kernel": (12, 64), "transfer": (13, 72), "memset": (14, 72), "done": (15, 48), "sync": (16, 48),
    "alloc": (17, 64), "free": (18, 40), "push": (19, 48), "pop": (20, 24), "start": (21, 48),
    "end": (22, 24), "mark": (23, 48), "work": (24, 32), "node": (25, 32),
    "counter_device": (34, 40), "counter": (35, 40), "burst": (36, 40), "sample": (37, 216),
}
DEFINITIONS = {number for number in range(1, 11)} | {34, 35}


def record(name, flags=0, aux=1, body=b""):
    number, size = TYPES[name]
    return struct.pack("<HBBI", size, number, flags, aux) + body.ljust(size - 8, b"\1")[: size - 8]


def save(name, definitions, events):
    with open(os.path.join(out, name), "wb") as file:
        file.write(b"\0" + struct.pack("<H", len(definitions)) + definitions + events)


text = record("string", 0, 1, struct.pack("<II", 8, 0) + b"_Z1kPfii")
more = record("string", 1, 2, struct.pack("<II", 8, 0) + b"abcdefgh")
base = text + record("config", 31, 3) + record("device", 1, 4) + record("context", 0, 5) + record(
    "stream", 0, 6, struct.pack("<QIIIIiI", 7, 3, 5, 4, 8, 0, 1)) + record(
    "clock", 0, 8, struct.pack("<QQQII", 1000, 2000, 1, 4, 1))
for name in TYPES:
    if TYPES[name][0] in DEFINITIONS:
        save("define_" + name, base + record(name), b"")
    else:
        save("event_" + name, base, record(name) * 2)
call = lambda c, e=1: record("call", 3, 0, struct.pack("<QQQIiIBBH", c, 10, 20, 1, 0, 0, e, 1, 0))
kernel = lambda c, f=3: record("kernel", f, 6, struct.pack("<QQQQQIIQ", c, 5, 6, 7, 9, 3, 0, 0))
done = lambda c: record("done", 2, 6, struct.pack("<QQQQQ", c, 5, 6, 7, 9))
save("launch", base, call(1) + kernel(1) + done(1) + call(2) + kernel(2, 2) + kernel(3, 2) + call(3))
save("graph", base, call(1, 2) + record("kernel", 0, 6, struct.pack("<QQQQQIIQ", 1, 0, 0, 3, 4, 3, 1, 9)))
save("ranges", base, record("push") + record("work") + record("push", 3, 1) + record("pop") * 3)
save("memory", base, record("alloc", 3) + record("free", 3) + record("free", 3) + record("alloc", 3))
sampled = base + record("counter_device", 0, 9) + record(
    "counter", 1, 9, struct.pack("<dIIIIII", 64.0, 0, 1, 1, 1, 2, 0))
save("counters", sampled, record("sample", 0, 9, struct.pack("<QQ2d", 50, 70, 1e6, -2.5)) * 2 +
     record("burst", 3, 9, struct.pack("<QQIIQ", 50, 70, 2, 1, 9)) +
     record("sample", 0, 9, struct.pack("<QQ2d", 70, 50, float("nan"), float("inf"))))
save("partial", base + more, call(9))
save("threads", base, struct.pack("<HBBI", 8, 1, 0, 77) + call(1) + kernel(1, 2))
