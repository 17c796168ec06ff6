#!/usr/bin/env python3
"""Time, memory and error of `perfkit merge` on many captures, made of a real one.

    bench/merge.py PERFKIT CAPTURE [--files 1000] [--per-host 8] [--folder /tmp] [--keep]

A copy of CAPTURE for each rank. Ranks of a host share a clock; the clock of every host is hours off, drifts by up to 50 ppm,
and so does its wall clock. Every hundredth kernel becomes an all-reduce that ends at the same true moment on all ranks, give
or take 3 us. Prints what the merge took (and how long it waited for a core that other work had), whether every rank's kernels are
all there, and how far ends of the same all-reduce lie apart in the result. A capture of 100,000 events:

    perfkit run -o launches.sqlite -- build/release/bin/bench_opencl_launch --launches 100000
"""
import argparse
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time

NAME = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
JITTER_NS = 3000


def prepare(capture, path):
    """The copy that all others are made of: with all-reduces, and longer than a moment."""
    shutil.copy(capture, path)
    db = sqlite3.connect(path)
    for sql in ("ALTER TABLE process ADD COLUMN rank INTEGER", "ALTER TABLE process ADD COLUMN world_size INTEGER"):
        try:
            db.execute(sql)
        except sqlite3.OperationalError:
            pass
    string = db.execute("INSERT INTO string(value) VALUES(?)", (NAME,)).lastrowid
    config = db.execute("INSERT INTO launch_config(name, grid_x, grid_y, grid_z, block_x, block_y, block_z) "
                        "VALUES(?, 24, 1, 1, 512, 1, 1)", (string,)).lastrowid
    db.execute("UPDATE kernel SET config=? WHERE id % 100 = 0 AND start NOT NULL AND duration NOT NULL", (config,))
    rows = db.execute("SELECT id, start, duration FROM kernel WHERE config=?", (config,)).fetchall()
    events = sum(db.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0] for table in
                 ("kernel", "transfer", "memset", "sync", "api_call", "range", "marker", "allocation"))
    db.commit()
    db.close()
    return rows, events


def make_rank(base, path, rank, arguments, rows):
    host = rank // arguments.per_host
    clock = random.Random(host)
    own = random.Random(1_000_000 + rank)
    offset, drift = clock.randrange(10 ** 13), clock.uniform(-50e-6, 50e-6) if host else 0.0
    shutil.copy(base, path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA synchronous=OFF")
    db.execute("UPDATE capture SET boot_id=?, host=?, start_mono_ns=start_mono_ns+?, start_realtime_ns=start_realtime_ns+?",
               (f"boot {host}", f"node{host}", offset, clock.randrange(-10 ** 13, 10 ** 13)))
    db.execute("UPDATE process SET pid=pid+?, rank=?, world_size=?", (rank, rank, arguments.files))
    db.executemany("UPDATE kernel SET start=? WHERE id=?",
                   [(round((start + duration + own.randrange(-JITTER_NS, JITTER_NS)) * (1 + drift)) - duration, number)
                    for number, start, duration in rows])
    db.commit()
    db.close()


def waited_for_core(pid):
    """Seconds that the main thread of an ended process, not yet waited for, could have run and did not: others had the cores."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[1]) / 1e9


def merge(perfkit, files, out, *options):
    before = time.monotonic()
    child = subprocess.Popen([perfkit, "merge", *options, *files, "-o", out], stderr=subprocess.DEVNULL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    waited = waited_for_core(child.pid)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        raise SystemExit(f"perfkit merge failed with {status}")
    print(f"merge {' '.join(options)}: {time.monotonic() - before:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of CPU, "
          f"{waited:.1f} s waiting for a core, at most {used.ru_maxrss / 1024:.0f} MiB; {os.path.getsize(out) / 1e6:.0f} MB", flush=True)


def compare_counts(base, out, files):
    expected = tuple(sqlite3.connect(base).execute("SELECT count(*), sum(duration) FROM kernel").fetchone())
    db = sqlite3.connect(out)
    stream_rank = dict(db.execute("SELECT s.id, p.rank FROM stream s JOIN process p ON p.id=s.process"))
    seen = {}
    for stream, count, total in db.execute("SELECT stream, count(*), sum(duration) FROM kernel GROUP BY 1"):
        old = seen.get(stream_rank[stream], (0, 0))
        seen[stream_rank[stream]] = (old[0] + count, old[1] + total)
    wrong = [rank for rank in range(files) if seen.get(rank) != expected]
    print(f"kernels of each rank, count and sum: {'all the same as before' if not wrong else f'WRONG for {wrong}'}")


def compare_ends(out):
    """Distance of each rank's ends of all-reduces from those of rank 0."""
    db = sqlite3.connect(out)
    config = db.execute("SELECT c.id FROM launch_config c JOIN string s ON s.id=c.name WHERE s.value=?", (NAME,)).fetchone()[0]
    ranks = dict(db.execute("SELECT s.id, p.rank FROM stream s JOIN process p ON p.id=s.process"))
    ends = {}
    for stream, end in db.execute("SELECT stream, start + duration FROM kernel WHERE config=?", (config,)):
        ends.setdefault(ranks[stream], []).append(end)
    first = sorted(ends[0])
    errors = [statistics.median(b - a for a, b in zip(first, sorted(other))) for other in ends.values()]
    print(f"clocks: ranks are off by {statistics.median(map(abs, errors)) / 1e3:.2f} us (median), "
          f"{max(map(abs, errors)) / 1e3:.2f} us (worst)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("perfkit")
    parser.add_argument("capture")
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--per-host", type=int, default=8)
    parser.add_argument("--folder", default="/tmp")
    parser.add_argument("--keep", action="store_true")
    arguments = parser.parse_args()
    work = tempfile.mkdtemp(prefix="perfkit-merge-", dir=arguments.folder)
    try:
        base = os.path.join(work, "base.sqlite")
        rows, events = prepare(arguments.capture, base)
        files = [os.path.join(work, f"rank-{rank:05}.sqlite") for rank in range(arguments.files)]
        for rank, path in enumerate(files):
            make_rank(base, path, rank, arguments, rows)
        print(f"{len(files)} captures of {events:,} events, {os.path.getsize(base) / 1e6:.1f} MB each", flush=True)
        out = os.path.join(work, "merged.sqlite")
        merge(arguments.perfkit, files, out)
        compare_counts(base, out, len(files))
        compare_ends(out)
        merge(arguments.perfkit, files, os.path.join(work, "summary.sqlite"), "--summary")
    finally:
        if arguments.keep:
            print(work)
        else:
            shutil.rmtree(work)


if __name__ == "__main__":
    main()
