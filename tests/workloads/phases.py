#!/usr/bin/env python3
"""The phases of a workload cover its time, so that a report can attribute all of it.

    phases.py PERFKIT PROGRAM BACKEND...

Captures the program on each backend and compares the union of its phases (NVTX ranges of the
default domain, but for those named after a variant, which only hold phases) with the time from the
first range to the end of the last. A machine that stops the program between two phases spoils a
measurement, so the best of a few counts. The capture must be complete."""
import json
import os
import sqlite3
import subprocess
import sys
import tempfile

COVERED = 0.98
TRIES = 5


def variants(program):
    listing = subprocess.run([program, "--list-variants"], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
    return {line.split()[0] for line in listing.splitlines() if line.strip()}


def union(intervals):
    """The time in any of the intervals, and the holes between them with their neighbours' names."""
    total, end, last, holes = 0, None, None, []
    for begin, stop, name in sorted(intervals):
        if end is not None and begin > end:
            holes.append((begin - end, last, name))
        if end is None or stop > end:
            total += stop - (begin if end is None else max(begin, end))
            end, last = stop, name
    return total, sorted(holes, reverse=True)


def coverage(capture, names):
    db = sqlite3.connect(f"file:{capture}?mode=ro", uri=True)
    rows = db.execute("""SELECT range.start, range.start + range.duration, string.value
                         FROM range JOIN string ON string.id = range.name
                         WHERE range.domain IS NULL AND range.duration IS NOT NULL""").fetchall()
    phases = [r for r in rows if r[2].split(", batch ")[0] not in names]
    covered, holes = union(phases)
    whole = max(r[1] for r in rows) - min(r[0] for r in rows)
    return covered / whole, holes


def run(perfkit, program, backend, folder):
    capture = os.path.join(folder, f"{backend}.sqlite")
    done = subprocess.run([perfkit, "run", "-q", "-f", "-o", capture, "--", program, "--preset",
                           "small", "--iterations", "2", "--backend", backend],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"FAILED: {backend}: {done.stderr}")
    report = subprocess.run([perfkit, "report", "--format", "json", capture], check=True,
                            stdout=subprocess.PIPE).stdout
    trust = json.loads(report)["trust"]
    if trust["complete"] is not True:
        sys.exit(f"FAILED: {backend}: the capture is not complete: {trust}")
    return capture


def main():
    perfkit, program, *backends = sys.argv[1:]
    names = variants(program)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for backend in backends:
            probe = subprocess.run([program, "--preset", "small", "--iterations", "1", "--variant",
                                    sorted(names)[0], "--backend", backend], text=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            if "no device for --backend" in probe.stderr:
                print(f"SKIP {backend}: {probe.stderr.strip()}")
                continue
            best, holes = 0, []
            for _ in range(TRIES):
                share, found = coverage(run(perfkit, program, backend, folder), names)
                if share > best:
                    best, holes = share, found
                if best >= COVERED:
                    break
            print(f"{backend}: phases cover {100 * best:.2f} % of the time")
            if best < COVERED:
                failed = True
                print(f"FAILED: {backend}: the longest holes: {holes[:5]}")
    sys.exit(1 if failed else 0)


main()
