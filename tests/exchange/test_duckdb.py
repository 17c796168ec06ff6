#!/usr/bin/env python3
"""DuckDB reads what perfkit export --format parquet writes, and the queries of docs/guide/parquet.md say what is true of a fleet
of captures made here. Exit 77 without DuckDB.

    test_duckdb.py PERFKIT REPORT_TOOL REPORT_SCENES WORK_FOLDER PARQUET_MD
"""
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import unittest

from scenes import ask, make

perfkit, tool, report_scenes, work, page = [os.path.abspath(a) for a in sys.argv[1:6]]
shutil.rmtree(work, ignore_errors=True)
CAPTURES = make(tool, work, report_scenes)
QUERY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "duckdb_query.js")

DAYS = ["2026-08-01", "2026-08-02", "2026-08-03"]
RANKS = 4
SLOW = {("2026-08-02", "job17"): 2}  # its rank 2 computes longer
GEMM_NS = {"2026-08-01": 1000, "2026-08-02": 1010, "2026-08-03": 1300}  # slower on the third day


def duckdb(*statements):
    """The rows of each statement."""
    done = subprocess.run(["node", QUERY], input=json.dumps(statements), cwd=work, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        print(done.stderr, end="")
        sys.exit(77)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def durations(day, run, rank):
    """(kernel, ns) of one rank: it computes, then the collective waits for the slowest."""
    slow = 600 if SLOW.get((day, run)) == rank else 0
    waits = 0 if slow or (day, run) not in SLOW else 600
    rows = []
    for step in range(5):
        rows += [("gemm", GEMM_NS[day] + 10 * rank + step), ("softmax", 300 + slow + step),
                 ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 200 + waits)]
    return rows


def write_fleet():
    for day in DAYS:
        for run in ("job17", "job18"):
            for rank in range(RANKS):
                write_part(day, run, rank)


def write_part(day, run, rank):
    folder = os.path.join(work, "fleet", f"day={day}", f"run={run}", f"part={rank}")
    start = 1785549185000000000 + DAYS.index(day) * 86400000000000
    sql = [f"INSERT INTO capture(state, host, start_realtime_ns, start_mono_ns) VALUES('complete', 'node{rank}', {start}, 1);"
           f"INSERT INTO process(pid, rank) VALUES(100, {rank}); INSERT INTO thread(process, tid) VALUES(1, 100);"
           "INSERT INTO device(process, api, ordinal, name) VALUES(1, 'cuda', 0, 'GPU');"
           "INSERT INTO stream(process, device, api, native) VALUES(1, 1, 'cuda', 7);"
           "INSERT INTO string(id, value) VALUES(1, 'gemm'), (2, 'softmax'), (3, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL'), (4, 'step');"
           "INSERT INTO launch_config(name) VALUES(1), (2), (3);"
           "INSERT INTO transfer(start, duration, stream, bytes, kind) VALUES(0, 1000, 1, 24000, 1), (1, 500, 1, 1000, 2);"
           f"INSERT INTO capture_health(process, subject, item, value) VALUES(1, 'launch', 'called', 15), (1, 'launch', 'dropped', "
           f"{3 if (day, run, rank) == (DAYS[0], 'job18', 1) else 0});"]
    at = 0
    for i, (name, ns) in enumerate(durations(day, run, rank)):
        sql.append(f"INSERT INTO kernel(start, duration, stream, config) VALUES({at}, {ns}, 1, {i % 3 + 1});")
        at += ns
        if i % 3 == 2:
            sql.append(f"INSERT INTO range(start, duration, thread, name, depth) VALUES({at - 1}, {1000 * (rank + 1)}, 1, 4, 0);")
    sql.append("INSERT INTO kernel(start, stream, config) VALUES(99999, 1, 1);"  # never seen to end
               "INSERT INTO rollup(second, stream, config, count, sum, min, max) SELECT 0, stream, config, count(*), sum(duration), "
               "min(duration), max(duration) FROM kernel WHERE duration NOT NULL GROUP BY config;")
    capture = os.path.join(work, f"{day}-{run}-{rank}.sqlite")
    with open(capture + ".sql", "w", encoding="ascii") as out:
        out.write("".join(sql))
    subprocess.run([tool, "make", capture + ".sql", capture], check=True)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    subprocess.run([perfkit, "export", "-q", capture, "--format", "parquet", folder], check=True)


def page_queries():
    """name -> SQL; the views under None."""
    with open(page, encoding="utf-8") as text:
        blocks = re.findall(r"(?ms)^```sql\n(.*?)^```", text.read())
    named = {}
    for block in blocks:
        first = re.match(r"-- (.*)\n", block)
        named[first.group(1) if first else None] = block
    return named


class Tables(unittest.TestCase):
    def test_every_table_of_every_scene(self):
        statements, wanted = [], []
        for name, capture in CAPTURES.items():
            folder = os.path.join(work, name + ".parquet")
            subprocess.run([perfkit, "export", "-q", capture, "--format", "parquet", folder], check=True)
            for file in sorted(os.listdir(folder)):
                table = file[:-len(".parquet")]
                numbers = [row[1] for row in ask(capture, f"PRAGMA table_info({table})") if row[2] in ("INTEGER", "REAL")]
                kinds = dict((row[0], row[1]) for row in duck_columns(folder, file))
                sums = ["count(*)"] + [f'sum("{c}")' for c in numbers if kinds[c] in ("BIGINT", "DOUBLE")]
                # Readers fill these two in rows that lack them, as the scenes' do.
                filled = ("level", "code") if table == "capture_health" else ()
                counts = [f'count("{row[1]}")' for row in ask(capture, f"PRAGMA table_info({table})") if row[1] not in filled]
                statements.append(f"SELECT {', '.join(sums + counts)} FROM '{folder}/{file}'")
                # SQLite's sums are of 64 bits and fail beyond; here they are made of doubles on both sides.
                wanted.append(ask(capture, f"SELECT {', '.join(s.replace('sum(', 'total(') for s in sums + counts)} FROM \"{table}\"")[0])
        for sql, have, want in zip(statements, duckdb(*statements), wanted):
            have = [float(value or 0) for value in have[0]]
            for ours, theirs in zip(want, have):
                self.assertAlmostEqual(float(ours), theirs, delta=1e-9 * abs(theirs), msg=sql)

    def test_text_and_types(self):
        folder = os.path.join(work, "both.parquet")
        if not os.path.isdir(folder):
            subprocess.run([perfkit, "export", "-q", CAPTURES["both"], "--format", "parquet", folder], check=True)
        names, described, skipped = duckdb(f"SELECT DISTINCT name FROM '{folder}/kernel.parquet' ORDER BY 1",
                                           f"DESCRIBE SELECT * FROM '{folder}/range.parquet'",
                                           f"SELECT count(*) FROM '{folder}/kernel.parquet' WHERE start > 1000000000")
        self.assertEqual(names, [["clEnqueueNDRangeKernel"], ["void ns::gemm<float>(float*)"]])
        self.assertEqual(skipped, [["0"]])
        kinds = {row[0]: row[1] for row in described}
        self.assertEqual([kinds[c] for c in ("id", "name", "payload", "payload_integer", "payload_text")],
                         ["BIGINT", "VARCHAR", "DOUBLE", "BIGINT", "VARCHAR"])


def duck_columns(folder, file, cache={}):
    """Column, type: all files of a folder at once."""
    if folder not in cache:
        files = sorted(os.listdir(folder))
        cache[folder] = dict(zip(files, duckdb(*[f"DESCRIBE SELECT * FROM '{folder}/{f}'" for f in files])))
    return cache[folder][file]


class Fleet(unittest.TestCase):
    """The queries of the page, and what they must find."""

    @classmethod
    def setUpClass(cls):
        write_fleet()
        queries = page_queries()
        views = [s for s in queries.pop(None).split(";") if s.strip()]
        cls.names = list(queries)
        results = duckdb(*views, *queries.values())[len(views):]
        cls.results = dict(zip(cls.names, results))
        cls.kernels = [(day, run, rank, *kernel) for day in DAYS for run in ("job17", "job18") for rank in range(RANKS)
                       for kernel in durations(day, run, rank)]

    def test_all_are_checked(self):
        self.assertEqual(set(self.names), {"lost", "top kernels", "from sums", "slowest rank", "slower over days", "steps", "copies", "by the clock"})

    def test_lost(self):
        self.assertEqual(self.results["lost"], [[DAYS[0], "job18", "1", "launch", "dropped", "3"]])

    def test_top_kernels(self):
        total = sum(k[4] for k in self.kernels)
        want = []
        for name in {k[3] for k in self.kernels}:
            ns = [k[4] for k in self.kernels if k[3] == name]
            want.append([name, str(len(ns)), round(sum(ns) / 1e6, 3), round(100 * sum(ns) / total, 1), "6"])
        want.sort(key=lambda row: -row[2])
        self.assertEqual([[*row[:2], float(row[2]), float(row[3]), row[4]] for row in self.results["top kernels"]], want)

    def test_sums_are_those_of_the_events(self):
        self.assertEqual([r[:3] for r in self.results["from sums"]], [r[:3] for r in self.results["top kernels"]])
        self.assertEqual({r[0]: r[3] for r in self.results["from sums"]},
                         {name: str(max(k[4] for k in self.kernels if k[3] == name)) for name in {k[3] for k in self.kernels}})

    def test_slowest_rank(self):
        rows = self.results["slowest rank"]
        self.assertEqual(len(rows), 6)
        self.assertEqual(rows[0][:3], ["2026-08-02", "job17", "2"])
        self.assertEqual(rows[0][5], "2")
        compute = [sum(k[4] for k in self.kernels if k[:3] == ("2026-08-02", "job17", r) and not k[3].startswith("nccl")) for r in range(RANKS)]
        self.assertAlmostEqual(float(rows[0][4]), max(compute) / statistics.median(compute), delta=0.006)
        self.assertLess(float(rows[1][4]), 1.1)

    def test_slower_over_days(self):
        rows = self.results["slower over days"]
        self.assertEqual([row[:2] for row in rows], [["2026-08-03", "gemm"]])
        medians = [statistics.median(k[4] for k in self.kernels if k[0] == day and k[3] == "gemm") for day in DAYS]
        self.assertEqual(float(rows[0][5]), round(100 * (medians[2] / statistics.median(medians[:2]) - 1), 1))

    def test_steps(self):
        self.assertEqual([[r[0], r[1], r[2], r[3], float(r[4])] for r in self.results["steps"]],
                         [[day, run, str(rank), "5", 0.001 * (rank + 1)] for day in DAYS for run in ("job17", "job18") for rank in range(RANKS)])

    def test_copies(self):
        self.assertEqual([[*r[:3], float(r[3])] for r in self.results["copies"]],
                         [["HtoD", "24", str(24 * 24000), 24.0], ["DtoH", "24", str(24 * 1000), 2.0]])

    def test_by_the_clock(self):
        rows = self.results["by the clock"]
        self.assertEqual([(r[3], r[4]) for r in rows], [("gemm", str(1334))] * 2 + [("gemm", str(1333))])
        self.assertEqual(rows[0][1:3], ["node3", "3"])
        self.assertRegex(rows[0][0], r"^2026-08-03 01:53:05\.0000")


if __name__ == "__main__":
    if not shutil.which("node"):
        print("SKIP: node is not installed")
        sys.exit(77)
    duckdb("SELECT 1")
    unittest.main(argv=[sys.argv[0], *sys.argv[6:]], verbosity=2)
