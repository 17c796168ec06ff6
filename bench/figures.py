#!/usr/bin/env python3
"""The figures of docs/lab/performance.md, measured on this machine.

    bench/figures.py BUILD_FOLDER [--rounds N] [--json FILE] [--only NAME,...]

Configurations that are compared run interleaved, round by round; the table gives medians over the
rounds, the spread, and the median of the differences within a round. Needs only python3. What a
CUDA program pays is measured by bench/overhead.
"""
import argparse
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("build")
parser.add_argument("--rounds", type=int, default=9)
parser.add_argument("--json")
parser.add_argument("--only", default="")
args = parser.parse_args()
BIN = os.path.join(args.build, "bin")
PERFKIT = os.path.join(BIN, "perfkit")
scratch = tempfile.mkdtemp(prefix="perfkit-figures-")
results = []


def out(*command, **environment):
    done = subprocess.run(command, env={**os.environ, **environment}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def under_perfkit(*command, options=(), **environment):
    return out(PERFKIT, "run", "-q", "-f", "-o", os.path.join(scratch, "x.sqlite"), *options, "--",
               *command, **environment)


def note(name, values, unit, target=None, **more):
    row = {"name": name, "median": statistics.median(values), "min": min(values),
           "max": max(values), "rounds": len(values), "unit": unit, **more}
    if target:
        row["target"] = target
    results.append(row)
    print(f"{name:<58} {row['median']:>9.2f} {unit:<18} ({row['min']:.2f} .. {row['max']:.2f})"
          + (f"   target {target}" if target else ""), flush=True)


def spool():
    for threads in (1, 2):
        runs = [json.loads(out(f"{BIN}/bench_spool_rate", str(threads), "20"))
                for _ in range(min(args.rounds, 5))]
        note(f"spool, {threads} thread(s), 48-byte records",
             [r["million_per_second_per_thread"] for r in runs], "M records/s/thread", ">= 20")


def ingest():
    for manner in ("cuda", "opencl", "graph"):
        runs = [json.loads(out(f"{BIN}/bench_ingest_rate", manner, "1"))
                for _ in range(min(args.rounds, 5))]
        note(f"ingest, {manner} manner", [r["million_events_per_second"] for r in runs],
             "M events/s", ">= 1.5")
        note(f"capture file, {manner} manner", [r["bytes_per_event"] for r in runs],
             "bytes/event", None if manner == "graph" else "<= 20")


def opencl():
    if not os.path.exists(f"{BIN}/bench_opencl_launch"):
        print("opencl: no bench_opencl_launch in the build")
        return
    total = lambda text: float(re.search(r"total ([0-9.]+)", text).group(1))
    for device, items in (("basic", 64), ("basic", 4096), ("pthread", 64)):
        command = (f"{BIN}/bench_opencl_launch", "--items", str(items), "--launches", "100000")
        bare, floor, ours = [], [], []
        for _ in range(args.rounds):
            bare.append(total(out(*command, POCL_DEVICES=device)))
            floor.append(total(out(*command, "--profile", "1", POCL_DEVICES=device)))
            ours.append(total(under_perfkit(*command, POCL_DEVICES=device)))
        name = f"OpenCL launch, PoCL {device}, {items} items"
        note(f"{name}: bare", bare, "ns")
        note(f"{name}: profiling, event, harvest (floor)", [f - b for f, b in zip(floor, bare)],
             "ns added")
        note(f"{name}: perfkit", [o - b for o, b in zip(ours, bare)], "ns added",
             "< 20 % of a 2 us launch")
        note(f"{name}: perfkit's own part", [o - f for o, f in zip(ours, floor)], "ns", "< 200")


def stacks():
    if not os.path.exists(f"{BIN}/bench_stacks"):
        return
    runs = [out(f"{BIN}/bench_stacks").splitlines() for _ in range(min(args.rounds, 5))]
    for lines in zip(*runs):
        depth = [json.loads(line) for line in lines]
        for key, what in (("rules", "by known rules"), ("first", "by new rules"),
                          ("asking", "by known rules, asking whether its modules are there"),
                          ("glibc", "by backtrace(3)"), ("pointers", "by rbp alone")):
            note(f"call stack of {depth[0]['depth']} frames, {what}", [d[key + "_ns"] for d in depth],
                 "ns")
        note(f"call stack of {depth[0]['taken_depth']} frames, with its number",
             [d["taken_ns"] for d in depth], "ns")
    if not os.path.exists(f"{BIN}/bench_opencl_launch"):
        return
    user = lambda text: float(re.search(r"user ([0-9.]+)", text).group(1))
    command = (f"{BIN}/bench_opencl_launch", "--launches", "200000")
    bare, plain, launch, tenth = [], [], [], []
    for _ in range(args.rounds):
        bare.append(user(out(*command, POCL_DEVICES="basic")))
        for where, options in ((plain, ()), (launch, ("--stacks=launch",)),
                               (tenth, ("--stacks=launch:10",))):
            where.append(user(under_perfkit(*command, options=options, POCL_DEVICES="basic")))
    note("OpenCL launch, processor time: bare", bare, "ns")
    note("OpenCL launch, processor time: perfkit", [a - b for a, b in zip(plain, bare)], "ns added")
    note("... and --stacks=launch", [a - b for a, b in zip(launch, plain)], "ns added")
    note("... and --stacks=launch:10", [a - b for a, b in zip(tenth, plain)], "ns added")


def nvtx():
    bare, ours = [], []
    for _ in range(args.rounds):
        bare.append(json.loads(out(f"{BIN}/bench_nvtx_push")))
        ours.append(json.loads(under_perfkit(f"{BIN}/bench_nvtx_push")))
    for key, what in (("range_ns", "with a fixed name"), ("work_ns", "with declared work")):
        note(f"NVTX push and pop {what}: bare", [run[key] for run in bare], "ns")
        note(f"NVTX push and pop {what}: perfkit", [run[key] for run in ours], "ns")


def after_exit():
    if not os.path.exists(f"{BIN}/bench_opencl_launch"):
        return
    seconds = []
    for _ in range(min(args.rounds, 5)):
        # the shell prints the clock when the program has ended; perfkit returns when the file is whole
        text = under_perfkit("sh", "-c", f"{BIN}/bench_opencl_launch --launches 500000 >/dev/null; "
                             "exec cut -d' ' -f1 /proc/uptime", POCL_DEVICES="basic")
        with open("/proc/uptime", encoding="ascii") as uptime:
            seconds.append(float(uptime.read().split()[0]) - float(text.strip().splitlines()[-1]))
    note("from the program's exit to a finished file, 1 M events", seconds, "s", "< 0.3")


def children():
    if not os.path.exists(f"{BIN}/bench_children"):
        return
    bare, ours = [], []
    command = ("sh", "-c", "i=0; while [ $i -lt 2000 ]; do /bin/true; i=$((i+1)); done")
    for _ in range(min(args.rounds, 5)):
        for where, runner in ((bare, out), (ours, under_perfkit)):
            begun = time.monotonic()
            runner(*command)
            where.append((time.monotonic() - begun) * 1000 / 2000)
    note("short child (fork + exec /bin/true): bare", bare, "ms")
    note("short child: perfkit", [o - b for o, b in zip(ours, bare)], "ms added", "<= 1")


SECTIONS = {f.__name__: f for f in (spool, ingest, opencl, stacks, nvtx, after_exit, children)}
machine = f"{os.cpu_count()} processors, {platform.system()} {platform.release()}"
with open("/proc/cpuinfo", encoding="ascii") as cpuinfo:
    model = re.search(r"model name\s*: (.*)", cpuinfo.read())
machine = (model.group(1) + ", " if model else "") + machine
print(f"{machine}, {datetime.date.today()}, load {os.getloadavg()[0]:.1f}")
for name, section in SECTIONS.items():
    if not args.only or name in args.only.split(","):
        section()
if args.json:
    with open(args.json, "w", encoding="utf-8") as file:
        json.dump({"machine": machine, "date": str(datetime.date.today()), "figures": results}, file,
                  indent=1)
