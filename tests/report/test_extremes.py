#!/usr/bin/env python3
"""Damaged and hand-made captures: one row more for every column of every table, like the first but for
that column, which holds an extreme or nothing. Every command ends by itself with an answer or an error (the
sanitizers look on), JSON stays JSON, and no length or number of bytes below zero is printed.

    test_extremes.py PERFKIT REPORT_TOOL SOURCE_FOLDER WORK_FOLDER
"""
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys

perfkit, tool, source, work = sys.argv[1:]
shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)
os.chdir(work)
ENVIRONMENT = {**os.environ, "NO_COLOR": "1", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
STATS = "cuda_api_sum,cuda_api_trace,cuda_gpu_kern_sum,cuda_gpu_mem_size_sum,cuda_api_gpu_sum,cuda_gpu_trace," \
        "cuda_kern_exec_trace,nvtx_sum,nvtx_pushpop_trace,nvtx_gpu_proj_sum,nvtx_kern_sum,um_sum"
FILES = ["--html", "page.html", "--chrome-trace", "trace.json", "--perfetto",
         "trace.pftrace", "--flamegraph", "stacks", "--speedscope", "stacks.json", "--pprof", "stacks.pb.gz", "--otlp", "stacks.otlp",
         "--prometheus", "totals.prom"]
COMMANDS = (["report", "--json", "bad.sqlite"], ["report", "--all", "bad.sqlite"],
            ["report", "--memory", "bad.sqlite"], ["report", "--stats", STATS, "bad.sqlite"],
            ["report", "--quiet", *FILES, "whole.sqlite", "bad.sqlite"], ["top", "--json", "-n", "1", "--view", "all", "bad.sqlite"],
            ["top", "--once", "bad.sqlite"], ["diff", "--json", "whole.sqlite", "bad.sqlite"],
            ["export", "-q", "-f", "bad.sqlite", "--format", "nsys", "nsys.sqlite"],
            ["merge", "-q", "-f", "bad.sqlite", "whole.sqlite", "-o", "merged.sqlite"])
# What may lie before another moment, or is itself a difference.
SIGNED = re.compile(r"lead|delay|offset|start|begin|time_ns$|at_ns|delta|change|saved|differ|first|last|end|net|"
                    r"growth|clock|mono|launch|source_ns|error_ns|gap|made")


def tables(db):
    for name, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        columns = [row[1] for row in db.execute('PRAGMA table_info("%s")' % name)]
        if db.execute('SELECT count(*) FROM "%s"' % name).fetchone()[0] and name != "capture":
            yield name, [column for column in columns if column != "id"]


def spoil(scene, value):
    shutil.copy("whole.sqlite", "bad.sqlite")
    db = sqlite3.connect("bad.sqlite")
    for table, columns in list(tables(db)):
        for column in columns:
            # What never began has no end either.
            spoilt = (column, "duration") if value is None and column == "start" else (column,)
            values = ", ".join("?1" if other in spoilt else '"%s"' % other for other in columns)
            db.execute('INSERT OR IGNORE INTO "%s"(%s) SELECT %s FROM "%s" ORDER BY rowid LIMIT 1' %
                       (table, ", ".join('"%s"' % other for other in columns), values, table), (value,))
    db.commit()
    db.close()


def refuse(constant):
    raise ValueError(constant)


def lengths(value, path=""):
    """Of all numbers of the report that are lengths or bytes, those below zero."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from lengths(inner, path + "." + key)
    elif isinstance(value, list):
        for inner in value:
            yield from lengths(inner, path)
    elif isinstance(value, (int, float)) and value < 0:
        key = path.rsplit(".", 1)[-1]
        if (key.endswith("_ns") or key.endswith("bytes")) and not SIGNED.search(path):
            yield path, value


def run(command):
    return subprocess.run([perfkit, *command], env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=300)


failed = 0
for scene in ("normal", "more", "counters", "host"):
    subprocess.run([tool, "make", os.path.join(source, scene + ".sql"), "whole.sqlite"], check=True)
    shutil.copy("whole.sqlite", "bad.sqlite")
    for command in COMMANDS:
        done = run(command)
        assert done.returncode in (0, 3), (command, done.stderr)  # merge tells that it is incomplete
    for value in (9223372036854775807, -5, "text", None):
        spoil(scene, value)
        for command in COMMANDS:
            done = run(command)
            error = done.stderr.decode("utf-8", "replace")
            what = None
            if done.returncode not in (0, 1, 2, 3) or "Sanitizer" in error or "runtime error" in error:
                what = "status %d\n%s" % (done.returncode, error)
            elif "--json" in command and done.returncode == 0:
                for line in [done.stdout] if command[0] != "top" else done.stdout.splitlines():
                    below = sorted(set(lengths(json.loads(line, parse_constant=refuse))))
                    if below:
                        what = "below zero: %s" % below
            if what:
                failed += 1
                print("FAIL %s with %r: %s: %s" % (scene, value, " ".join(command), what))
sys.exit(1 if failed else 0)
