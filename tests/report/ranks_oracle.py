#!/usr/bin/env python3
"""What `perfkit report --ranks` says of time, computed once more from the rows of the capture and in another
way: every instant is looked at by itself. Also for recordings of real machines.

    ranks_oracle.py PERFKIT CAPTURE..."""
import json
import re
import sqlite3
import subprocess
import sys

COLLECTIVE = re.compile(r"^(void )?(ncclDevKernel_|ncclKernel_|ncclSymk?DevKernel_|nccl\w+Kernel_)")
KERNEL, COPY, EXCHANGE = 1, 2, 4


def spent(marks, begin, end):
    """{set of what ran: ns} of the instants in [begin, end); marks: (start, end, what)."""
    edges = sorted({begin, end, *(t for start, stop, _ in marks for t in (start, stop) if begin < t < end)})
    changes = {}
    for start, stop, what in marks:
        start, stop = max(start, begin), min(stop, end)
        if start < stop:
            changes.setdefault(start, []).append((what, 1))
            changes.setdefault(stop, []).append((what, -1))
    running, sums = {KERNEL: 0, COPY: 0, EXCHANGE: 0}, {}
    for left, right in zip(edges, edges[1:]):
        for what, change in changes.get(left, ()):
            running[what] += change
        state = sum(what for what, count in running.items() if count)
        sums[state] = sums.get(state, 0) + right - left
    return sums


def marks_of(db, process):
    names = {row[0]: row[1] for row in db.execute(
        "SELECT c.id, coalesce(d.value, n.value) FROM launch_config c LEFT JOIN string n ON n.id = c.name LEFT JOIN "
        "string d ON d.id = c.demangled")}
    marks = [(start, start + duration, EXCHANGE if COLLECTIVE.match(names[config] or "") else KERNEL)
             for start, duration, config in db.execute(
                 "SELECT k.start, k.duration, k.config FROM kernel k JOIN stream s ON s.id = k.stream WHERE s.process = ? "
                 "AND k.start NOT NULL AND k.duration NOT NULL", (process,))]
    for table, what in (("transfer", COPY), ("memset", COPY), ("graph_launch", KERNEL)):
        marks += [(start, start + duration, what) for start, duration in db.execute(
            "SELECT t.start, t.duration FROM %s t JOIN stream s ON s.id = t.stream WHERE s.process = ? AND t.start NOT "
            "NULL AND t.duration NOT NULL" % table, (process,))]
    return marks


def on_host(db):
    return db.execute("SELECT count(*) FROM range r JOIN string s ON s.id IN (r.domain, r.name) WHERE s.value = "
                      "'perfkit.collective' OR s.value GLOB 'MPI_*'").fetchone()[0]


def check(perfkit, capture):
    told = json.loads(subprocess.run([perfkit, "report", capture, "--ranks", "--json"], check=True,
                                     stdout=subprocess.PIPE).stdout)
    db = sqlite3.connect("file:%s?mode=ro" % capture, uri=True)
    assert not on_host(db), "operations of the host are not computed here"
    for rank in told["ranks"]["rows"]:
        process, = db.execute("SELECT id FROM process WHERE pid = ? AND (rank = ? OR rank IS NULL) AND "
                              "id IN (SELECT process FROM stream)",
                              (rank["pid"], rank["rank"])).fetchone()
        begin, end = rank["begin_ns"], rank["begin_ns"] + rank["window_ns"]
        sums = spent(marks_of(db, process), begin, end)
        wanted = {
            "compute_ns": sum(ns for state, ns in sums.items() if state & KERNEL),
            "copy_ns": sum(ns for state, ns in sums.items() if state & COPY and not state & KERNEL),
            "collective_ns": sum(ns for state, ns in sums.items() if state & EXCHANGE),
            "exposed_ns": sum(ns for state, ns in sums.items() if state & EXCHANGE and not state & KERNEL),
            "idle_ns": sums.get(0, 0),
        }
        got = {key: rank[key] for key in wanted}
        assert got == wanted, (capture, rank["rank"], got, wanted)
        print("ok %s: rank %s: %s" % (capture, rank["rank"], ", ".join("%s %.3f ms" % (k[:-3], v / 1e6)
                                                                       for k, v in got.items())))
    return len(told["ranks"]["rows"])


if __name__ == "__main__":
    assert sum(check(sys.argv[1], capture) for capture in sys.argv[2:]) > 0, "no ranks"
