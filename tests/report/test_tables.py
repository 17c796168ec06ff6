#!/usr/bin/env python3
"""The tables of a report counted again from the capture's rows, without the library: what each kernel, copy,
call, wait, range and allocation adds up to, and how busy devices were.

    test_tables.py PERFKIT REPORT_TOOL SOURCE_FOLDER WORK_FOLDER
    test_tables.py PERFKIT --capture FILE...        any captures (none that were filtered or merged)
"""
import json
import math
import os
import sqlite3
import statistics
import subprocess
import sys
from collections import defaultdict

FIXTURES = ("normal", "awkward", "hostile", "live", "more", "counters", "ranks", "host", "two_processes", "many")
COPIES = {1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH", 10: "PtoP",
          11: "map", 12: "unmap", 13: "migrate"}


class Reported:
    """What the report says, asked for key by key; differences are gathered, not raised."""

    def __init__(self, name, report):
        self.name, self.report, self.wrong, self.compared = name, report, [], 0

    def same(self, what, reported, counted):
        self.compared += 1
        if isinstance(counted, float) and isinstance(reported, (int, float)):
            equal = math.isclose(reported, counted, rel_tol=1e-9, abs_tol=1e-9)
        else:
            equal = reported == counted
        if not equal:
            self.wrong.append("%s: %s: reported %.200r, counted %.200r" % (self.name, what, reported, counted))

    def rows(self, table):
        return self.report[table]["rows"]


def union(spans):
    """Length of what the spans cover, without counting a moment twice."""
    covered, end = [], None
    for start, stop in sorted(spans):
        if end is None or start > end:
            covered.append([start, stop])
            end = stop
        elif stop > end:
            covered[-1][1] = end = stop
    return covered


def length(spans):
    return sum(stop - start for start, stop in spans)


def most_at_once(spans):
    """Ends come before starts of the same moment: work that follows at once does not overlap."""
    edges = sorted([(start, 1) for start, stop in spans if stop > start] + [(stop, -1) for start, stop in spans if stop > start])
    now = most = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return most


def clipped(spans, begin, end):
    return [(max(start, begin), min(stop, end)) for start, stop in spans if stop > begin and start < end]


def check_times(said, table, key, groups, wall):
    """Sum, count, mean and so on of durations by `key`: {key: [durations]}."""
    rows = said.rows(table)
    said.same(table + " rows", sorted(str(key(row)) for row in rows), sorted(str(name) for name in groups))
    listed = sum(sum(times) for times in groups.values())
    for row in rows:
        times = groups.get(key(row))
        if not times:
            continue
        where = "%s %.60s" % (table, key(row))
        said.same(where + " total", row["total_ns"], sum(times))
        said.same(where + " count", row["count"], len(times))
        said.same(where + " average", row["average_ns"], sum(times) / len(times))
        said.same(where + " min", row["min_ns"], min(times))
        said.same(where + " max", row["max_ns"], max(times))
        if listed:
            said.same(where + " share", row["share"], sum(times) / listed)
        if wall and row.get("wall_share") is not None:
            said.same(where + " of wall", row["wall_share"], sum(times) / wall)
        if "quantile_error" not in row or row["quantile_error"] in (0, None):
            said.same(where + " median", row["median_ns"], float(statistics.median(times)))
    said.same(table + " order", [row["total_ns"] for row in rows], sorted((row["total_ns"] for row in rows), reverse=True))


def check_kernels(db, said, wall):
    groups = defaultdict(list)
    for name, duration in db.execute(
            "select s.value, k.duration from kernel k left join launch_config c on c.id = k.config"
            " left join string s on s.id = coalesce(c.demangled, c.name)"
            " where k.start is not null and k.duration is not null and (coalesce(k.flags, 0) & 12) = 0"):
        groups[name].append(duration)
    check_times(said, "kernels", lambda row: row["name"], groups, wall)


def check_transfers(db, said, wall):
    groups, sizes = defaultdict(list), defaultdict(int)
    for kind, source, target, duration, size in db.execute(
            "select kind, source_kind, target_kind, duration, bytes from transfer"
            " where start is not null and duration is not null and (coalesce(flags, 0) & 12) = 0"):
        key = (COPIES.get(kind), source, target)
        groups[key].append(duration)
        sizes[key] += size or 0
    for kind, duration, size in db.execute(
            "select memory_kind, duration, bytes from memset"
            " where start is not null and duration is not null and (coalesce(flags, 0) & 12) = 0"):
        groups["memset", None, kind].append(duration)
        sizes["memset", None, kind] += size or 0
    rows = said.rows("transfers")
    said.same("transfers total", sum(row["total_ns"] for row in rows), sum(sum(times) for times in groups.values()))
    said.same("transfers count", sum(row["count"] for row in rows), sum(map(len, groups.values())))
    by_kind = defaultdict(lambda: [0, 0, 0])
    for key, times in groups.items():
        for i, value in enumerate((sum(times), len(times), sizes[key])):
            by_kind[key[0]][i] += value
    reported = defaultdict(lambda: [0, 0, 0])
    for row in rows:
        for i, key in enumerate(("total_ns", "count", "bytes")):
            reported[row["name"]][i] += row[key]
        moved_nothing = row["name"] in ("map", "unmap") and row["rate_bytes_per_s"] is None
        if row["total_ns"] and not moved_nothing:
            said.same("transfers speed", row["rate_bytes_per_s"], row["bytes"] * 1e9 / row["total_ns"])
    said.same("transfers by kind", dict(reported), dict(by_kind))
    if wall:
        said.same("transfers of wall", sum(row["wall_share"] for row in rows), sum(row["total_ns"] for row in rows) / wall)


def check_calls(db, said, wall):
    groups = defaultdict(list)
    for name, duration in db.execute(
            "select s.value, a.duration from api_all a left join string s on s.id = a.name where a.duration is not null"):
        groups[name].append(duration)
    check_times(said, "api", lambda row: row["name"], groups, wall)
    groups = defaultdict(list)
    for kind, name, duration in db.execute(
            "select w.kind, s.value, w.duration from sync w left join string s on s.id = w.api_name"
            " where w.kind is not 2 and w.duration is not null"):
        groups[name].append(duration)
    counted = sum(map(len, groups.values()))
    waits = [row for row in said.rows("waits") if "stream for" not in (row["kind"] or "")]
    said.same("waits count", sum(row["count"] for row in waits if not (row["kind"] or "").startswith("stream waits")), counted)


def check_devices(db, said):
    """Busy is a union; what runs in several streams at once counts once."""
    physical = {row["id"]: row["physical"] for row in said.report["devices_seen"]}
    work = {kind: defaultdict(list) for kind in ("kernel", "transfer", "memset", "graph_launch")}
    for table, spans in work.items():
        failed = "" if table == "graph_launch" else " and (coalesce(w.flags, 0) & 12) = 0"
        for device, start, duration in db.execute(
                "select s.device, w.start, w.duration from %s w join stream s on s.id = w.stream"
                " where w.start is not null and w.duration is not null%s" % (table, failed)):
            spans[physical.get(device, device)].append((start, start + duration))
    for row in said.rows("devices"):
        device, window = row["device"], row["window_ns"]
        kernels = clipped(work["kernel"][device] + work["graph_launch"][device], 0, window)
        copies = clipped(work["transfer"][device] + work["memset"][device], 0, window)
        where = row["title"] or "device"
        busy = union(kernels + copies)
        said.same(where + " busy", row["busy_ns"], length(busy))
        said.same(where + " idle", row["idle_ns"], window - length(busy))
        said.same(where + " share", row["busy_share"], length(busy) / window)
        said.same(where + " kernels", row["kernel_ns"], length(union(kernels)))
        said.same(where + " memcpy and memset", row["memcpy_memset_ns"], length(union(copies)))
        said.same(where + " overlap", row["overlap_ns"],
                  length(union(kernels)) + length(union(copies)) - length(busy))
        said.same(where + " at once", row["max_concurrent_kernels"], most_at_once(work["kernel"][device]))
        gaps = [(b[0] - a[1], a[1]) for a, b in zip(busy, busy[1:])]
        said.same(where + " gaps", row["gap_count"], len(gaps))
        said.same(where + " gap time", row["gap_ns"], sum(gap for gap, _ in gaps))
        longest = [(gap["duration_ns"], gap["start_ns"]) for gap in said.rows("gaps") if gap["device"] == device]
        said.same(where + " longest gaps", [gap for gap, _ in longest],
                  sorted((gap for gap, _ in gaps), reverse=True)[:len(longest)])


def check_states(said):
    """Each instant has one state, so they add up to the time that was judged; kernels are no longer than kernels."""
    sums = defaultdict(int)
    for row in said.rows("states"):
        sums[row["device"]] += row["time_ns"]
        said.same("share of a state", row["share"], row["time_ns"] / said.report["findings"]["window_ns"])
    for device, total in sums.items():
        said.same("states of device %d" % device, total, said.report["findings"]["window_ns"])


def check_ranges(db, said):
    groups = defaultdict(list)
    for name, duration in db.execute("select s.value, r.duration from range r left join string s on s.id = r.name"
                                     " where r.duration is not null"):
        groups[name].append(duration)
    reported = defaultdict(lambda: [0, 0])
    for row in said.rows("ranges"):
        reported[row["name"]][0] += row["count"]
        reported[row["name"]][1] += row["total_ns"]
    said.same("ranges", {name: found for name, found in reported.items() if found[0]},
              {name: [len(times), sum(times)] for name, times in groups.items()})


def check_memory(db, said):
    """The peak is the most that lived at one moment; what is freed at a moment makes room first."""
    edges, count, freed = [], 0, 0
    for size, start, end in db.execute(
            "select coalesce(bytes, 0), start, \"end\" from allocation where start is not null"):
        edges.append((start, 1, size))
        count += 1
        if end is not None:
            edges.append((end, 0, -size))
            freed += 1
    rows = said.rows("memory")
    if not rows:
        return
    said.same("allocations", sum(row["count"] for row in rows), count)
    said.same("freed", sum(row["freed"] for row in rows), freed)
    now = most = 0
    for _, _, size in sorted(edges):
        now += size
        most = max(most, now)
    said.same("peak", said.report["memory"]["all"]["peak_bytes"], most)


def check(perfkit, path, name):
    report = json.loads(subprocess.run([perfkit, "report", "--json", path], capture_output=True, check=True).stdout)
    said = Reported(name, report)
    db = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
    db.text_factory = lambda data: data.decode("utf-8", "replace")
    wall = report["wall_ns"]
    check_kernels(db, said, wall)
    check_transfers(db, said, wall)
    check_calls(db, said, wall)
    check_devices(db, said)
    check_states(said)
    check_ranges(db, said)
    check_memory(db, said)
    db.close()
    return said


def main(perfkit, *words):
    if words[0] == "--capture":
        captures = [(path, os.path.basename(path)) for path in words[1:]]
    else:
        tool, source, work = words
        os.makedirs(work, exist_ok=True)
        captures = []
        for fixture in FIXTURES:
            path = os.path.join(work, fixture + ".sqlite")
            subprocess.run([tool, "make", os.path.join(source, fixture + ".sql"), path], check=True)
            captures.append((path, fixture))
    wrong = 0
    for path, name in captures:
        said = check(perfkit, path, name)
        print("%s: %d figures compared, %d differ" % (name, said.compared, len(said.wrong)))
        for line in said.wrong[:20]:
            print("  " + line)
        wrong += len(said.wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
