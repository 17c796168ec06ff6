#!/usr/bin/env python3
"""What recording costs a step of data-parallel training, and whether every rank is there: the workload allreduce bare and
under `perfkit run`, in turns.

    bench/ranks.py PERFKIT ALLREDUCE [--ranks 2] [--rounds 8] [--launcher 'torchrun --no-python --nproc-per-node 2'] [-- OPTION...]

OPTION... are those of the workload (`--preset seed --backend cuda --variant overlap`). A round's figure is the median step of its
slowest rank. Prints the quotients of the rounds with the confidence interval of their median (pairs.py), and for each capture
whether it is complete and what each rank did; status 1 when a capture is not, or lacks a rank or an operation.
"""
import argparse
import json
import os
import shlex
import sqlite3
import statistics
import subprocess
import sys
import tempfile

from pairs import interval, order, quotients

OPERATIONS = """SELECT p.rank, count(*), sum(r.payload) FROM range r JOIN string n ON n.id = r.name JOIN string d ON d.id = r.domain
JOIN thread t ON t.id = r.thread JOIN process p ON p.id = t.process
WHERE (d.value = 'NCCL' AND n.value LIKE 'ncclAllReduce%') OR (d.value = 'perfkit.collective' AND n.value = 'all_reduce')
GROUP BY 1 ORDER BY 1"""
KERNELS = """SELECT p.rank, count(*) FROM kernel k JOIN stream s ON s.id = k.stream JOIN process p ON p.id = s.process GROUP BY 1 ORDER BY 1"""


def run(command, name):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name}: {shlex.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    report = json.loads(done.stdout[done.stdout.index("{"):])
    row = report["results"][0]
    if "skipped" in row:
        sys.exit(f"{row['variant']}: not available: {row['skipped']}")
    return report, row


def look(perfkit, capture, ranks, steps, row):
    """What a capture says of the ranks, and whether that is all."""
    report = subprocess.run([perfkit, "report", "--format", "json", capture], capture_output=True, text=True, check=True).stdout
    db = sqlite3.connect(f"file:{capture}?mode=ro", uri=True)
    operations, kernels = db.execute(OPERATIONS).fetchall(), db.execute(KERNELS).fetchall()
    db.close()
    said = {"complete": json.loads(report)["trust"]["complete"], "operations": operations, "kernels": kernels}
    wanted = [(rank, steps * row["all_reduces"]) for rank in range(ranks)]
    said["whole"] = said["complete"] is True and [o[:2] for o in operations] == wanted and len({k[1] for k in kernels}) <= 1
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("perfkit")
    parser.add_argument("allreduce")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--launcher", default="", help="starts the ranks in place of the workload; must start --ranks of them")
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    asked = parser.parse_args(sys.argv[1:split])
    options = sys.argv[split + 1:] or ["--variant", "host-overlap"]
    launcher = shlex.split(asked.launcher)
    program = [*launcher, os.path.abspath(asked.allreduce), *options, "--json", *([] if launcher else ["--ranks", str(asked.ranks)])]
    rounds, whole = [], True
    with tempfile.TemporaryDirectory() as folder:
        capture = os.path.join(folder, "ranks.sqlite")
        commands = {"bare": program, "perfkit": [asked.perfkit, "run", "-q", "-f", "-o", capture, "--", *program]}
        for turn in range(asked.rounds):
            figures = {}
            for name in order(list(commands), turn):
                report, row = run(commands[name], name)
                figures[name] = max(rank["wall_ns"] for rank in row["ranks"])
                if name == "perfkit":
                    steps = report["warmup"] + 2 * report["iterations"]  # measured without and with the device's events
                    said = look(asked.perfkit, capture, asked.ranks, steps, row)
                    whole &= said["whole"]
            rounds.append(figures)
            print(json.dumps({"round": turn, "step_ms": {name: round(ns / 1e6, 4) for name, ns in figures.items()}, **said}), flush=True)
    ratios = quotients(rounds, "perfkit", "bare")
    sure = interval(ratios)
    print(json.dumps({"ranks": asked.ranks, "options": options, "step_ms": {name: round(statistics.median(r[name] for r in rounds) / 1e6, 4)
                                                                          for name in rounds[0]},
                      "overhead_percent": round(100 * (statistics.median(ratios) - 1), 2),
                      "interval_percent": [round(100 * (r - 1), 2) for r in sure[:2]] if sure else None, "every_rank_whole": whole}))
    sys.exit(0 if whole else 1)


if __name__ == "__main__":
    main()
