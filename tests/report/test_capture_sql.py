#!/usr/bin/env python3
"""What capture_sql.py writes makes the same capture again, as far as reports tell; and ranks_oracle.py on
fixtures of ranks, recorded ones among them.

    test_capture_sql.py PERFKIT REPORT_TOOL SOURCE_FOLDER WORK_FOLDER"""
import glob
import json
import os
import subprocess
import sys

perfkit, tool, source, work = sys.argv[1:5]
os.makedirs(work, exist_ok=True)
os.chdir(work)


def make(sql, capture):
    subprocess.run([tool, "make", sql, capture], check=True)


def report(capture, *words):
    told = json.loads(subprocess.run([perfkit, "report", capture, "--json", *words], check=True,
                                     stdout=subprocess.PIPE).stdout)
    for key in ("path", "file_bytes", "directory", "host", "boot_id", "kernel", "command"):
        del told["capture"][key]
    for table in ("ranks", "processes"):
        for row in told.get(table, {"rows": []})["rows"]:
            row.pop("host", None)
            row.pop("name", None)
    return told


for fixture in ("ranks", "normal", "more"):
    make(os.path.join(source, fixture + ".sql"), "before.sqlite")
    with open("again.sql", "wb") as out:
        subprocess.run([sys.executable, "-B", os.path.join(source, "capture_sql.py"), "before.sqlite"], check=True,
                       stdout=out)
    make("again.sql", "after.sqlite")
    for words in ((), ("--ranks",)):
        before, after = report("before.sqlite", *words), report("after.sqlite", *words)
        after["trust"]["clock_error_ns"] = before["trust"]["clock_error_ns"]
        assert before == after, (fixture, words, [key for key in before if before[key] != after[key]])
    print("ok", fixture)
recorded = sorted(glob.glob(os.path.join(source, "recorded_*.sql")))
for sql in [os.path.join(source, "ranks.sql")] + recorded:
    make(sql, "ranks.sqlite")
    subprocess.run([sys.executable, "-B", os.path.join(source, "ranks_oracle.py"), perfkit, "ranks.sqlite"], check=True)
