#!/usr/bin/env python3
"""perfkit merge: every row of every file is in the result once, says the same, and nothing else is there.

    test_rows.py PERFKIT REPORT_TOOL TESTS WORK_FOLDER
"""
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import unittest

from ranks import Host, ask, make, merge, one, path_of, perfkit, rank_capture, tests, tool, work

SCENES = make(tool, work, os.path.join(tests, "report"))
A = Host("a", "boot-a", 50_000_000_000)

# Each event with what its numbers mean, so that it reads the same in a file and in the result. %(t)s: a time.
PROCESS = "(SELECT pid || ' ' || command FROM process WHERE id={0})"
THREAD = "(SELECT p.pid || ' ' || t.tid FROM thread t JOIN process p ON p.id=t.process WHERE t.id={0})"
STREAM = "(SELECT p.pid || ' ' || s.api || ' ' || s.native || ' ' || coalesce(d.uuid, '') FROM stream s JOIN process p " \
         "ON p.id=s.process LEFT JOIN device d ON d.id=s.device WHERE s.id={0})"
STRING = "(SELECT CAST(value AS BLOB) FROM string WHERE id={0})"
CONFIG = "(SELECT coalesce((SELECT CAST(value AS BLOB) FROM string WHERE id=c.name), '') || ' ' || coalesce((SELECT " \
         "CAST(value AS BLOB) FROM string WHERE id=c.demangled), '') || ' ' || quote(grid_x) || quote(grid_y) || " \
         "quote(block_x) || quote(cluster_x) || quote(registers) || quote(shared_dynamic) || quote(ragged) FROM " \
         "launch_config c WHERE id={0})"
DEVICE = "(SELECT uuid || ' ' || ordinal FROM device WHERE id={0})"
API = f"{STRING.format('api_name')}, api_lead, api_duration, {THREAD.format('thread')}, correlation"
SEEN = {
    "kernel": f"start - :t, duration, {STREAM.format('stream')}, {CONFIG.format('config')}, {STRING.format('api_name')}, "
              f"CASE WHEN start IS NULL THEN api_lead - :t ELSE api_lead END, api_duration, {THREAD.format('thread')}, "
              "correlation, queue_delay, submit_delay, graph_node, flags",
    "transfer": f"start - :t, duration, {STREAM.format('stream')}, bytes, kind, {API}, source_kind, {DEVICE.format('peer')}",
    "memset": f"start - :t, duration, {STREAM.format('stream')}, bytes, value, {API}",
    "sync": f"start - :t, duration, {STREAM.format('stream')}, kind, {API}, event, recorded",
    "api_call": f"start - :t, duration, {THREAD.format('thread')}, {STRING.format('name')}, result, correlation",
    "allocation": f"{PROCESS.format('process')}, start - :t, \"end\" - :t, bytes, address, {DEVICE.format('device')}, "
                  f"{THREAD.format('thread')}, {THREAD.format('end_thread')}",
    "range": f"start - :t, duration, {THREAD.format('thread')}, {STRING.format('name')}, {STRING.format('domain')}, depth, "
             "payload, typeof(payload)",
    "work": f"flop, bytes_read, (SELECT start - :t || ' ' || {STRING.format('r.name')} FROM range r WHERE r.id=range)",
    "marker": f"start - :t, {THREAD.format('thread')}, {STRING.format('name')}, payload",
    "graph_launch": f"start - :t, duration, {STREAM.format('stream')}, graph, correlation",
    "graph_node": f"start - :t, {THREAD.format('thread')}, node, graph, class",
    "event_record": f"start - :t, {STREAM.format('stream')}, event, recorded",
    "overhead": f"start - :t, duration, {PROCESS.format('process')}, {THREAD.format('thread')}, kind",
    "memory_pool": f"start - :t, {PROCESS.format('process')}, pool, operation, {DEVICE.format('device')}, bytes",
    "migration": f"start - :t, {PROCESS.format('process')}, kind, bytes, {DEVICE.format('source')}, {DEVICE.format('target')}",
    "jit": f"start - :t, {PROCESS.format('process')}, {STRING.format('path')}, cache_bytes",
    "decompression": f"start - :t, duration, {STREAM.format('stream')}, bytes, operations, correlation",
    "category": f"{PROCESS.format('process')}, {STRING.format('domain')}, category, name",
    "context": f"{PROCESS.format('process')}, {DEVICE.format('device')}, native, name",
    "thread": f"{PROCESS.format('process')}, tid, name",
    "process": "pid, command, start - :t, \"end\" - :t, end_reason, exit_status, rank",
    "counter_sample": "start - :t, duration, c0, typeof(c0), (SELECT uuid FROM counter_device d WHERE d.id=counter_device)",
    "capture_health": f"{PROCESS.format('process')}, subject, item, value, note",
}


def rows(path, table, shift=0):
    where = " WHERE process NOT NULL" if table == "capture_health" else ""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    db.text_factory = bytes
    try:
        return sorted(db.execute(f"SELECT {SEEN[table]} FROM \"{table}\"{where}", {"t": shift}).fetchall(), key=repr)
    finally:
        db.close()


def check_same(case, result, files):
    """Every table of the result against those of the files, moved by what the result says."""
    shifts = [start for start, in ask(result, "SELECT start FROM merged_part ORDER BY id")]
    case.assertEqual(len(shifts), len(files))
    for table in SEEN:
        expected = []
        for file, shift in zip(files, shifts):
            expected += rows(file, table, -shift)
        case.assertEqual(sorted(expected, key=repr), rows(result, table), table)


def table_names(path):
    return [n for n, in ask(path, "SELECT name FROM sqlite_master WHERE type='table' ORDER BY 1")]


class Rows(unittest.TestCase):
    def test_every_table(self):
        files = [SCENES["both"], SCENES["normal"], SCENES["hostile"], SCENES["awkward"], SCENES["empty"]]
        merge("all.sqlite", *files)
        out = path_of("all.sqlite")
        check_same(self, out, files)
        # Whatever a file has rows of, these tests look at.
        counted = {t for t in table_names(out) if one(out, f"SELECT count(*) FROM \"{t}\"")}
        self.assertLessEqual(counted - set(SEEN), {
            "capture", "merged_part", "string", "launch_config", "device", "stream", "rollup", "clock_sync", "module",
            "ceiling", "counter_device", "counter", "counter_burst", "recording", "object_name", "sqlite_sequence"})
        self.assertEqual(one(out, "PRAGMA integrity_check"), "ok")
        self.assertEqual(one(out, "PRAGMA journal_mode"), "delete")

    def test_dangling_numbers(self):
        # Numbers that lead nowhere lead nowhere afterwards; the row stays.
        shutil.copy(SCENES["both"], path_of("dangling.sqlite"))
        db = sqlite3.connect(path_of("dangling.sqlite"))
        db.execute("UPDATE kernel SET stream=77, config=-3, thread=9223372036854775807 WHERE id=2")
        db.execute("UPDATE string SET id=id+1000000000000 WHERE id>6")
        db.execute("UPDATE range SET name=name+1000000000000 WHERE name>6")
        db.execute("UPDATE kernel SET start=9223372036854775807 WHERE id=3")
        db.execute("UPDATE kernel SET start=-9223372036854775800, duration='text' WHERE id=4")
        db.commit()
        db.close()
        merge("dangled.sqlite", SCENES["normal"], path_of("dangling.sqlite"))
        out = path_of("dangled.sqlite")
        self.assertEqual(one(out, "SELECT count(*) FROM kernel"),
                         one(SCENES["normal"], "SELECT count(*) FROM kernel") + one(SCENES["both"], "SELECT count(*) FROM kernel"))
        self.assertEqual(one(out, "SELECT count(*) FROM kernel WHERE stream IS NULL AND config IS NULL AND thread IS NULL"), 1)
        names = "SELECT s.value FROM range r JOIN string s ON s.id=r.name WHERE r.payload=42"
        self.assertEqual(ask(out, names), ask(SCENES["both"], names))

    def test_shared_rows_are_there_once(self):
        files = [rank_capture(f"s-{r}.sqlite", r, 4, A, steps=20) for r in range(4)]
        merge("shared.sqlite", *files)
        out = path_of("shared.sqlite")
        self.assertEqual(one(out, "SELECT count(*) FROM string"), 3 + 4)  # "rank 0" ... differ
        self.assertEqual(one(out, "SELECT count(*) FROM launch_config"), 2)
        check_same(self, out, files)

    def test_interleaved_by_time(self):
        files = [rank_capture(f"t-{r}.sqlite", r, 3, A, steps=100) for r in range(3)]
        merge("time.sqlite", *files)
        starts = [s for s, in ask(path_of("time.sqlite"), "SELECT start FROM kernel ORDER BY id")]
        self.assertEqual(starts, sorted(starts))

    def test_sums_are_those_of_the_kernels(self):
        files = [rank_capture(f"u-{r}.sqlite", r, 3, A, steps=300) for r in range(3)]
        merge("sums.sqlite", *files)
        key = "GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
        self.assertEqual(
            ask(path_of("sums.sqlite"), f"SELECT second, stream, config, sum(count), sum(sum), min(min), max(max) FROM rollup {key}"),
            ask(path_of("sums.sqlite"), "SELECT start / 1000000000, stream, config, count(*), sum(duration), min(duration), "
                                        f"max(duration) FROM kernel {key}"))

    def test_per_rank_counts(self):
        files = [rank_capture(f"p-{r}.sqlite", r, 5, A, steps=10 + r, seed=3) for r in range(5)]
        merge("ranks.sqlite", *files)
        per_rank = "SELECT p.rank, count(*), sum(k.duration) FROM kernel k JOIN stream s ON s.id=k.stream JOIN process p " \
                   "ON p.id=s.process GROUP BY 1 ORDER BY 1"
        self.assertEqual(ask(path_of("ranks.sqlite"), per_rank), [ask(f, per_rank)[0] for f in files])
        self.assertEqual(ask(path_of("ranks.sqlite"), "SELECT p.rank, m.file, m.ranks, p.host FROM process p JOIN merged_part m "
                                                      "ON m.id=p.part ORDER BY 1"),
                         [(r, f"p-{r}.sqlite", str(r), "a") for r in range(5)])

    def test_more_files_than_descriptors(self):
        files = [rank_capture(f"many-{r}.sqlite", r, 40, A, steps=10) for r in range(40)]
        merge("whole.sqlite", *files)
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (44, 44))  # noqa: E731
        merge("groups.sqlite", *files, preexec_fn=few)
        check_same(self, path_of("groups.sqlite"), files)
        for table in ("capture", "merged_part", "string", "launch_config", "kernel", "rollup", "capture_health", "process"):
            self.assertEqual(ask(path_of("whole.sqlite"), f"SELECT * FROM {table} ORDER BY id"),
                             ask(path_of("groups.sqlite"), f"SELECT * FROM {table} ORDER BY id"), table)
        self.assertEqual([n for n in os.listdir(work) if n.startswith("groups.sqlite.")], [])

    def test_merged_captures_merge(self):
        files = [rank_capture(f"again-{r}.sqlite", r, 4, A, steps=30) for r in range(4)]
        merge("ab.sqlite", "--subset", *files[:2])
        merge("cd.sqlite", "--subset", *files[2:])
        merge("abcd.sqlite", path_of("ab.sqlite"), path_of("cd.sqlite"))
        self.assertEqual([f for f, in ask(path_of("abcd.sqlite"), "SELECT file FROM merged_part ORDER BY id")],
                         [os.path.basename(f) for f in files])
        check_same(self, path_of("abcd.sqlite"), files)

    def test_summary(self):
        files = [rank_capture(f"v-{r}.sqlite", r, 3, A, steps=300, begin_ns=900_000_000 + r * 1_000_000_000) for r in range(3)]
        for f in files[1:]:  # as a recording leaves it; the first has no sums, as what is imported
            db = sqlite3.connect(f)
            db.execute("INSERT INTO rollup(second, stream, config, count, sum, min, max, histogram) SELECT start / 1000000000, "
                       "stream, config, count(*), sum(duration), min(duration), max(duration), x'00' FROM kernel GROUP BY 1, 2, 3")
            db.commit()
            db.close()
        merge("summary.sqlite", "--summary", *files)
        out = path_of("summary.sqlite")
        for order in ([out, files[0]], [files[0], out]):  # whose events would be lost, or told as all
            told = merge("of-a-summary.sqlite", *order, status=2)
            self.assertIn("is a summary and has no events", told)
            self.assertFalse(os.path.exists(path_of("of-a-summary.sqlite")))
        for table in ("kernel", "range", "work", "module", "stack", "api_call"):
            self.assertEqual(one(out, f"SELECT count(*) FROM {table}"), 0, table)
        sums = "SELECT p.rank, n.value, sum(r.count), sum(r.sum), min(r.min), max(r.max) FROM rollup r JOIN stream s ON s.id=r.stream " \
               "JOIN process p ON p.id=s.process JOIN launch_config c ON c.id=r.config JOIN string n ON n.id=c.name GROUP BY 1, 2 ORDER BY 1, 2"
        kernels = sums.replace("sum(r.count), sum(r.sum), min(r.min), max(r.max) FROM rollup r",
                               "count(*), sum(duration), min(duration), max(duration) FROM kernel r")
        self.assertEqual(ask(out, sums), [row for f in files for row in ask(f, kernels)])
        self.assertEqual(one(out, "SELECT count(*) FROM capture_health WHERE process NOT NULL"), 6)
        done = subprocess.run([perfkit, "report", out, "--format", "json"], capture_output=True, check=True)
        report = json.loads(done.stdout)
        listed = {k["name"]: (k["count"], k["total_ns"]) for k in report["kernels"]["rows"]}
        for name, count, total in ask(files[0], "SELECT n.value, count(*), sum(duration) FROM kernel k JOIN launch_config c ON "
                                                "c.id=k.config JOIN string n ON n.id=c.name GROUP BY 1"):
            others = [one(f, "SELECT sum(duration) FROM kernel k JOIN launch_config c ON c.id=k.config JOIN string n ON n.id=c.name "
                             "WHERE n.value=?", name) for f in files[1:]]
            self.assertEqual(listed[name], (count * 3, total + sum(others)))
        # that events are left out is no news of the program
        told = subprocess.run([perfkit, "report", out], capture_output=True, text=True, check=True).stdout
        self.assertIn("summary: no single events, as requested", " ".join(told.split()))
        for nothing in ("Devices", "Memcpy and memset", "Memory"):
            self.assertIn(nothing + ": n/a: a summary", told)
        self.assertIn("Findings: n/a: a summary", told)
        self.assertTrue(report["capture"]["summary"])
        told = subprocess.run([perfkit, "report", out, "--stats", "cuda_api_sum"], capture_output=True, text=True, check=True).stdout
        self.assertIn("n/a: a summary", told)
        told = subprocess.run([perfkit, "report", out, "--memory"], capture_output=True, text=True, check=True).stdout
        self.assertIn("Not available: a summary", told)
        self.assertNotIn("Never freed", told)
        # and once more, from summaries
        merge("summaries.sqlite", "--subset", out)
        self.assertEqual(ask(path_of("summaries.sqlite"), sums), ask(out, sums))

    def test_everything_works_on_it(self):
        files = [rank_capture(f"w-{r}.sqlite", r, 2, A) for r in range(2)]
        merge("works.sqlite", *files)
        out = path_of("works.sqlite")
        done = subprocess.run([perfkit, "report", out, "--format", "json"], capture_output=True, check=True)
        report = json.loads(done.stdout)
        self.assertEqual(report["capture"]["state"], "merged")
        self.assertTrue(report["trust"]["complete"])
        for arguments in (["report", out, "--html", path_of("w.html")], ["report", out, "--chrome-trace", path_of("w.json")],
                          ["top", out, "--once"], ["export", out, "--format", "nsys", path_of("w.nsys.sqlite")],
                          ["diff", out, out]):
            done = subprocess.run([perfkit, *arguments], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, (arguments, done.stderr))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
