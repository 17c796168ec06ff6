#!/usr/bin/env python3
"""--plots: every figure of captures with and without data and with hostile names, as gnuplot draws them.

    test_plots.py PERFKIT REPORT_TOOL SOURCE_FOLDER WORK_FOLDER
"""
import bisect
import json
import os
import random
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import xml.dom.minidom

perfkit, tool, source, work = sys.argv[1:]
shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)
os.chdir(work)
FIGURES = ["utilisation", "kernel-time", "kernel-durations", "transfers", "memory", "roofline"]


def run(*words, **options):
    return subprocess.run([perfkit, "report", *words], capture_output=True, text=True, check=False, **options)


def make(fixture):
    subprocess.run([tool, "make", os.path.join(source, fixture + ".sql"), fixture + ".sqlite"], check=True)
    return fixture + ".sqlite"


def texts(name):
    """All text of an SVG, which must be one document."""
    document = xml.dom.minidom.parse(name)
    assert not document.getElementsByTagName("script"), name
    found = []
    for node in document.getElementsByTagName("text"):
        walk = [node]
        while walk:
            part = walk.pop()
            if part.nodeType == part.TEXT_NODE:
                found.append(part.data)
            walk.extend(part.childNodes)
    return "\n".join(found)


def has_data(capture):
    """Which figures have something to draw, by other ways than theirs."""
    report = json.loads(run(capture, "--json").stdout)
    kernels = any(row["count"] for row in report["kernels"]["rows"])
    database = sqlite3.connect(capture)
    moved = database.execute("SELECT count(*) FROM transfer WHERE bytes > 0 AND duration > 0").fetchone()[0]
    database.close()
    placed = [row for row in report["roofline"]["rows"]
              if row["flop_per_s"] and (row["dram_flop_per_byte"] or row["l2_flop_per_byte"])]
    return {"utilisation": bool(report["devices"]["rows"]), "kernel-time": kernels,
            "kernel-durations": kernels, "transfers": moved > 0,
            "memory": bool(report["memory"]["all"]["peak_bytes"]), "roofline": bool(placed)}


# Without gnuplot: what to install, and nothing left behind.
empty = make("empty")
missing = run(empty, "--plots", "none", env={**os.environ, "PATH": "/nowhere"})
assert missing.returncode == 1 and "gnuplot-nox" in missing.stderr, missing
assert not os.path.exists("none")
# Not into a file, not to standard output, not where there is no folder to make it in.
open("file", "w", encoding="utf-8").close()
for words in ((empty, "--plots", "-"), (empty, "--plots", "no/such"), (empty, "--plots", "file")):
    refused = run(*words)
    assert refused.returncode in (1, 2) and refused.stderr.startswith("perfkit report: "), refused


def memory_rows(capture):
    """The rows (time, mean, most) that gnuplot gets for the figure of memory, in ns and bytes."""
    os.makedirs("stand-in", exist_ok=True)
    with open("stand-in/gnuplot", "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\ntee -a script\n")
    os.chmod("stand-in/gnuplot", 0o755)
    path = os.path.abspath("stand-in") + ":" + os.environ["PATH"]
    assert run(capture, "--plots", "kept", env={**os.environ, "PATH": path}).returncode == 0
    with open("script", encoding="utf-8") as file:
        script = file.read()
    scale = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "KiB": 1024, "MiB": 1 << 20, "GiB": 1 << 30, "bytes": 1}
    part = script[script.index("'Allocated memory over time'"):]
    time, size = (scale[re.search(pattern, part).group(1)] for pattern in ("capture, (\\w+)'", "set ylabel '(\\w+)'"))
    rows = part[part.index("$memory << END\n") + 15:].split("\nEND", 1)[0].splitlines()
    return [[float(x) * by for x, by in zip(row.split(), (time, size, size))] for row in rows]


# Of the figure of memory: what is drawn at any moment is the most of a time that is narrower than a pixel.
random.seed(3)
bursts = []
for i in range(20000):
    begin = i % 5 * 10 ** 9 + random.randrange(5 * 10 ** 8)
    bursts.append((begin, begin + 1 + random.randrange(10 ** 8), 1 + random.randrange(1 << 20)))
many = make("empty").replace("empty", "many")
shutil.copy("empty.sqlite", many)
database = sqlite3.connect(many)
database.executemany('INSERT INTO allocation(start, "end", bytes, kind) VALUES(?, ?, ?, 3)', bursts)
database.commit()
LEVEL = 'SELECT coalesce(sum(bytes), 0) FROM allocation WHERE start <= ?1 AND "end" > ?1'
rows = memory_rows(many)
assert 1000 < len(rows) <= 4001, len(rows)
pixel = rows[-1][0] / 900
for moment in (random.randrange(int(rows[-1][0])) for _ in range(200)):
    at = bisect.bisect(rows, [moment, float("inf")]) - 1
    (begin, mean, most), end = rows[at], rows[at + 1][0]
    level = database.execute(LEVEL, (moment,)).fetchone()[0]
    assert level <= most * 1.00001 and (end - begin < pixel or abs(level - most) <= most * 1e-5), (moment, level, rows[at])
    assert mean <= most * 1.00001, rows[at]
database.close()
if not shutil.which("gnuplot"):
    print("SKIP: gnuplot is not installed; the rest is well")
    sys.exit(77)

for fixture in ("normal", "hostile", "empty", "roofline"):
    made = run(make(fixture), "--plots", fixture)
    assert made.returncode == 0, (fixture, made.stderr)
    assert made.stderr == "perfkit report: wrote %s: 12 pictures\n" % fixture, made.stderr
    assert sorted(os.listdir(fixture)) == sorted(f + e for f in FIGURES for e in (".png", ".svg"))
    drawn = has_data(fixture + ".sqlite")
    for figure in FIGURES:
        with open("%s/%s.png" % (fixture, figure), "rb") as file:
            head = file.read(24)
        assert head[1:4] == b"PNG" and struct.unpack(">II", head[16:24]) == (1100, 640), (fixture, figure)
        words = texts("%s/%s.svg" % (fixture, figure))
        assert ("n/a: " in words) != drawn[figure], (fixture, figure, words)

words = texts("normal/kernel-time.svg")
for part in ("adam_step", "57.6 %", "31.1 ms in 160 executions of 4 kernels"):
    assert part in words, (part, words)
assert "261 MiB at 1.05 ms" in texts("normal/memory.svg")
words = texts("hostile/kernel-time.svg")
for part in ("%s %n &amp; &lt;", "=HYPERLINK(\"http://x\",\"y\"),1", "bad\\xff\\x80\\xc3bytes", "\u6838\u5fc3", "a;b;c d"):
    assert part in words, (part, words)
assert not os.path.exists("HACKED")
# A picture is replaced whole; a folder that cannot be written says so.
if os.geteuid() != 0:
    os.chmod("normal", 0o555)
    refused = run("normal.sqlite", "--plots", "normal")
    os.chmod("normal", 0o755)
    assert refused.returncode == 1 and "Permission denied" in refused.stderr, refused
assert run("normal.sqlite", "--plots", "normal").returncode == 0
