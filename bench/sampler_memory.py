#!/usr/bin/env python3
"""Does sampling of counters take more and more memory? The resident memory of perfkit and its sampler
while a program keeps the GPU busy.

    bench/sampler_memory.py BUILD_FOLDER [--minutes M] [--json FILE] [-- COMMAND ...]

Read once a second; the first minute is left out. The slope is that of a line through means of 20 s,
which hardly depend on each other, with the upper end of its one-sided 95 % interval. Choose the GPU by
CUDA_VISIBLE_DEVICES. Exits with 77 where nothing can be sampled.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

WARM_UP_S, BLOCK_S = 60, 20
# Student's t, one-sided 95 %, by degrees of freedom; beyond the last row hardly less.
STUDENT = {1: 6.314, 2: 2.920, 3: 2.353, 4: 2.132, 5: 2.015, 6: 1.943, 8: 1.860, 10: 1.812, 15: 1.753,
           20: 1.725, 30: 1.697}


def student(freedom):
    return STUDENT[max(n for n in STUDENT if n <= freedom)]


def resident_mb(pid):
    try:
        with open("/proc/%d/statm" % pid) as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except (OSError, IndexError):
        return None


def child_called(parent, name):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as file:
                text = file.read()
        except OSError:
            continue
        if "(%s)" % name[:15] in text and int(text.rsplit(")", 1)[1].split()[1]) == parent:
            return int(pid)
    return None


def slope(times_s, values):
    """(slope per minute, its upper 95 % bound) of a least-squares line through means of blocks."""
    blocks = {}
    for t, v in zip(times_s, values):
        blocks.setdefault(int(t // BLOCK_S), []).append((t, v))
    points = [[sum(column) / len(block) for column in zip(*block)] for block in blocks.values()]
    n = len(points)
    if n < 3:
        return None, None
    mean_t, mean_v = (sum(column) / n for column in zip(*points))
    spread = sum((t - mean_t) ** 2 for t, _ in points)
    b = sum((t - mean_t) * (v - mean_v) for t, v in points) / spread
    rest = sum((v - mean_v - b * (t - mean_t)) ** 2 for t, v in points)
    error = (rest / (n - 2) / spread) ** 0.5
    return 60 * b, 60 * (b + student(n - 2) * error)


def watch(process, seconds):
    """[(s, MB of perfkit, MB of the sampler)] once a second."""
    begun, seen, sampler = time.monotonic(), [], None
    while process.poll() is None and time.monotonic() < begun + seconds + WARM_UP_S:
        sampler = sampler or child_called(process.pid, "perfkit_sampler")
        own, its = resident_mb(process.pid), sampler and resident_mb(sampler)
        if own is not None and its:
            seen.append((time.monotonic() - begun, own, its))
        time.sleep(1)
    return seen


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--json")
    parser.add_argument("command", nargs="*")
    args = parser.parse_args()
    seconds, bin_folder = 60 * args.minutes, os.path.join(args.build, "bin")
    command = args.command or [os.path.join(bin_folder, "bench_counter_kernels"), "copy",
                               str(seconds)]
    with tempfile.TemporaryDirectory(prefix="perfkit-memory-") as folder:
        process = subprocess.Popen(
            [os.path.join(bin_folder, "perfkit"), "run", "-q", "--counters=roofline", "-o",
             os.path.join(folder, "x.sqlite"), "--", *command],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seen = watch(process, seconds)
        process.wait()
    steady = [row for row in seen if row[0] >= min(WARM_UP_S, seconds / 4)]
    result = {"minutes": args.minutes, "readings": len(steady)}
    for name, at in (("perfkit", 1), ("sampler", 2)):
        values = [row[at] for row in steady]
        each, most = slope([row[0] for row in steady], values)
        if each is None:
            print("nothing was sampled, or not for long enough")
            return 77
        result[name] = {"mb": max(values), "mb_per_minute": each, "at_most": most}
        print("%s: %.1f MB resident, %+.3f MB/min, 95 %% sure below %+.3f" % (
            name, max(values), each, most))
    if args.json:
        with open(args.json, "w") as file:
            json.dump(dict(result, seen=seen), file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
