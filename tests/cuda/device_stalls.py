#!/usr/bin/env python3
"""What --stalls says of kernels with a known fault, on a GPU: the dominant reason and the line of each, and whether the
gain of the version without the fault lies within the bound of the finding.

    device_stalls.py BUILD [CAPTURE BARE]      CAPTURE, BARE: of cuda_stalls, recorded before with and without --stalls

Needs 11 of 12 right, the gain within the bound in 9 of 10 pairs, and a median of bound / gain of 2 at most. Of a
program that ends with cudaDeviceReset there are as many samples as without it.
"""
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import stall_marks

PERIOD = "--stalls=65536"  # these kernels run for milliseconds in all: the default period would give them few samples
LEAST_RIGHT, LEAST_WITHIN, MOST_MEDIAN = 11 / 12, 0.9, 2.0


def plain(name):
    return name.split("(")[0]


def report(perfkit, capture, *options):
    return json.loads(subprocess.check_output([perfkit, "report", "--format", "json", *options, capture]))


def bound_factor(perfkit, capture, folder, kernel):
    """What the finding about a kernel says, were it alone in the capture; None = there is none."""
    alone = os.path.join(folder, "alone.sqlite")
    shutil.copy(capture, alone)
    db = sqlite3.connect(alone)
    db.execute("DELETE FROM kernel WHERE config NOT IN (SELECT c.id FROM launch_config c JOIN string s ON "
               "s.id = c.demangled WHERE s.value = ?1 OR s.value LIKE ?1 || '(%')", (kernel,))
    db.execute("DELETE FROM rollup")
    db.commit()
    db.close()
    for row in report(perfkit, alone)["findings"]["rows"]:
        if row["rule"] == "stalled-kernel" and plain(row["seen"]).split(" ")[0] == kernel:
            return {number["name"]: number["value"] for number in row["numbers"]}["bound_factor"]
    return None


def record(perfkit, program, folder):
    captures = []
    for name, options in (("stalls", [PERIOD]), ("bare", [])):
        captures.append(os.path.join(folder, name + ".sqlite"))
        subprocess.check_call([perfkit, "run", "-q", "-f", "-o", captures[-1], *options, "--", program, "all", "10"])
    return captures


def short_samples(perfkit, program, folder, *end):
    """Samples of a program of some 0.1 s of kernels, and how long it ran."""
    capture = os.path.join(folder, "short.sqlite")
    begun = time.monotonic()
    subprocess.check_call([perfkit, "run", "-q", "-f", "-o", capture, PERIOD, "--", program,
                           "fma_chain,barriers,doubles", "20", *end], timeout=300)
    took = time.monotonic() - begun
    db = sqlite3.connect(capture)
    notes = [row[0] for row in db.execute("SELECT note FROM capture_health WHERE note LIKE '%stall reasons%'")]
    return db.execute("SELECT ifnull(sum(samples), 0) FROM stall_context").fetchone()[0], took, notes


def reset_keeps_samples(perfkit, program, folder):
    ends, reset = (short_samples(perfkit, program, folder, *end) for end in ((), ("reset",)))
    print("samples, seconds, notes: %s; with cudaDeviceReset at the end: %s" % (ends, reset))
    return ends[0] > 0 and abs(reset[0] / ends[0] - 1) < 0.1


def main():
    build = sys.argv[1]
    perfkit, program = (os.path.join(build, "bin", name) for name in ("perfkit", "cuda_stalls"))
    with tempfile.TemporaryDirectory() as folder:
        kept = True
        if sys.argv[2:]:
            stalls, bare = sys.argv[2:4]
        elif subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=False).returncode != 0:
            print("SKIP: no GPU")
            return 77
        else:
            stalls, bare = record(perfkit, program, folder)
            kept = reset_keeps_samples(perfkit, program, folder)
        lines, after = stall_marks.marks()
        rows = {plain(row["name"]): row for row in report(perfkit, stalls)["stalls"]["rows"]}
        times = {plain(row["name"]): row["median_ns"] for row in report(perfkit, bare)["kernels"]["rows"]}
        faulty = sorted(set(after.values()) & set(rows))
        wrong = [name for name in faulty if not stall_marks.right(rows[name], lines[name])]
        ratios = {}
        for fixed, name in after.items():
            factor = bound_factor(perfkit, stalls, folder, name) if name in rows and fixed in times else None
            if factor:
                ratios[name] = factor / (times[name] / times[fixed])
    within = [ratio for ratio in ratios.values() if ratio >= 0.98]
    median = statistics.median(ratios.values()) if ratios else float("nan")
    for name in faulty:
        print("%-16s %-18s line %s%s" % (name, rows[name]["reason"], rows[name]["line"],
                                         ", bound / gain %.2f" % ratios[name] if name in ratios else ""))
    print("right: %d of %d%s; gain within the bound: %d of %d; median of bound / gain: %.2f" % (
        len(faulty) - len(wrong), len(faulty), " (not %s)" % ", ".join(wrong) if wrong else "", len(within), len(ratios),
        median))
    good = kept and faulty and len(wrong) <= (1 - LEAST_RIGHT) * len(faulty) + 0.01 and \
        len(within) >= LEAST_WITHIN * len(ratios) and median <= MOST_MEDIAN
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
