#!/usr/bin/env python3
"""What sampling the host costs: perfkit run with and without --cpu-sample, in turns.

    bench/cpu_sample.py BUILD_FOLDER [--rounds N] [--only NAME,...] [--json FILE]

A program that computes (a fixed amount of work, 30 frames deep), two threads that hand a byte to and fro
(two sleeps a round), and children that start and end. ns a round as the program itself tells them: time
that passed, and time of a processor, which other work on the machine hardly changes; what is added is told
of the latter. The sampler's own processor time and the capture's size beside it. Needs python3 and a kernel that lets this
user sample; exits with 77 otherwise.
"""
import argparse
import json
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile

PROGRAMS = {"compute": 30000, "switch": 50000, "children": 300}  # rounds
PLAIN = "perfkit run"
VARIANTS = {
    PLAIN: [],
    "100 Hz": ["--cpu-sample=100"],
    "199 Hz": ["--cpu-sample"],
    "1000 Hz": ["--cpu-sample=1000"],
    "1000 Hz, fp": ["--cpu-sample=1000", "--cpu-sample-stack=fp"],
    "1000 Hz, not blocked": ["--cpu-sample=1000", "--cpu-sample-blocked=off"],
}


def run(perfkit, work, program, options, folder):
    """(ns a round, processor ns a round, samples, sampler's seconds, bytes); None: nothing is sampled."""
    capture = os.path.join(folder, "bench.sqlite")
    done = subprocess.run([perfkit, "run", "-q", "-f", "-o", capture, *options, "--", work, program,
                           str(PROGRAMS[program])], capture_output=True, text=True, cwd=folder)
    if done.returncode != 0:
        sys.exit("%s: %s" % (program, done.stderr.strip()))
    if "nothing is sampled" in done.stderr:
        return None
    wall, cpu = map(float, done.stdout.split())
    db = sqlite3.connect(capture)
    samples = db.execute("SELECT count(*) FROM cpu_sample").fetchone()[0]
    notes = db.execute("SELECT note FROM capture_health WHERE item = 'cpu-sample note'").fetchall()
    db.close()
    used = [float(m.group(1)) for (note,) in notes for m in [re.search(r"used ([0-9.]+) s", note)] if m]
    return wall, cpu, samples, sum(used), os.path.getsize(capture)


def measure(arguments):
    perfkit = os.path.join(arguments.build, "bin", "perfkit")
    work = os.path.join(arguments.build, "bin", "bench_host_work")
    results = {}
    with tempfile.TemporaryDirectory(prefix="perfkit-bench-") as folder:
        for program in arguments.only:
            rounds = {name: [] for name in VARIANTS}
            for _ in range(arguments.rounds):
                for name, options in VARIANTS.items():
                    rounds[name].append(run(perfkit, work, program, options, folder))
                    if rounds[name][-1] is None:
                        print("the kernel does not let this user sample")
                        sys.exit(77)
            results[program] = rounds
    return results


def table(program, rounds):
    print("\n%s: %d rounds" % (program, PROGRAMS[program]))
    print("| | ns a round | processor ns | added (smallest .. largest) | share | samples | sampler, s "
          "| capture |")
    print("|---|---|---|---|---|---|---|---|")
    for name, runs in rounds.items():
        added = [a[1] - b[1] for a, b in zip(runs, rounds[PLAIN])]
        middle = [statistics.median(r[i] for r in runs) for i in range(5)]
        plain = statistics.median(r[1] for r in rounds[PLAIN])
        print("| %s | %.0f | %.0f | %.0f (%.0f .. %.0f) | %.1f %% | %d | %.2f | %.1f MiB |" % (
            name, middle[0], middle[1], statistics.median(added), min(added), max(added),
            100 * statistics.median(added) / plain, middle[2], middle[3], middle[4] / 2**20))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(PROGRAMS))
    parser.add_argument("--json")
    arguments = parser.parse_args()
    arguments.build = os.path.abspath(arguments.build)
    results = measure(arguments)
    for program, rounds in results.items():
        table(program, rounds)
    if arguments.json:
        with open(arguments.json, "w") as out:
            json.dump(results, out, indent=1)


if __name__ == "__main__":
    main()
