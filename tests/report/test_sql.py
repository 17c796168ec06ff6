#!/usr/bin/env python3
"""perfkit sql and the views of a capture: names in place of numbers, the same rows and sums as the tables; every ready query
runs on every fixture; queries read only, and end in time.

    test_sql.py PERFKIT REPORT_TOOL SQL_FOLDER WORK_FOLDER"""
import csv
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import unittest

perfkit, tool, source, work = [os.path.abspath(a) for a in sys.argv[1:5]]
os.makedirs(work, exist_ok=True)
FIXTURES = ("normal", "awkward", "hostile", "empty", "live", "more", "ranks")


def sql(*arguments, **options):
    return subprocess.run([perfkit, "sql", *arguments], capture_output=True, text=True, errors="surrogateescape", stdin=subprocess.DEVNULL, **options)


def rows(capture, query):
    done = sql("--json", capture, query)
    assert done.returncode == 0, (capture, query, done.stderr)
    return json.loads(done.stdout)


def setUpModule():
    for name in FIXTURES:
        subprocess.run([tool, "make", os.path.join(source, name + ".sql"), path_of(name)], check=True)


def path_of(name):
    return os.path.join(work, name + ".sqlite")


def content(name):
    with open(path_of(name), "rb") as file:
        return file.read()


def lists():
    return json.loads(sql("--list", "--json").stdout)


class Views(unittest.TestCase):
    def test_a_row_for_each_row(self):
        for name in FIXTURES:
            db = sqlite3.connect(path_of(name))
            one = lambda query: db.execute(query).fetchone()[0]
            for view, tables in (("kernels", "kernel"), ("transfers", "transfer memset"), ("calls", "api_all"), ("synchronizations", "sync"),
                                 ("ranges", "range"), ("allocations", "allocation")):
                count = sum(one(f"SELECT count(*) FROM {table}") for table in tables.split())
                self.assertEqual(one(f"SELECT count(*) FROM {view}"), count, (name, view))
                self.assertEqual(rows(path_of(name), f"SELECT count(*) AS n FROM {view}"), [{"n": count}], (name, view))

    def test_columns_are_those_of_the_list(self):
        """Also where a folder has the name of a view."""
        for listed in lists()["sources"]["rows"]:
            os.makedirs(os.path.join(work, "folders", listed["name"]), exist_ok=True)
            done = sql("--format", "csv", path_of("normal"), f"SELECT * FROM {listed['name']} LIMIT 1")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.splitlines()[0].split(","), listed["columns"].split(", "))
            described = json.loads(sql("--list", "--json", listed["name"], cwd=os.path.join(work, "folders")).stdout)["columns"]["rows"]
            self.assertEqual([row["name"] for row in described], listed["columns"].split(", "))
        self.assertIn("unusually long for its phase", sql("--list", "iterations").stdout)
        self.assertEqual((sql("--list", "nosuch").returncode, sql("--list", path_of("normal")).returncode), (2, 0))

    def test_names_and_sums(self):
        for name in ("normal", "awkward", "more"):
            report = json.loads(subprocess.run([perfkit, "report", path_of(name), "--format", "json"], capture_output=True, check=True).stdout)
            told = {row["name"]: (row["count"], row["total_ns"]) for row in report["kernels"]["rows"]}
            seen = rows(path_of(name), "SELECT name, count(*) AS n, sum(duration_ns) AS ns FROM kernels WHERE start_ns NOT NULL AND duration_ns NOT NULL "
                                       "GROUP BY name")
            self.assertEqual({row["name"]: (row["n"], row["ns"]) for row in seen}, told, name)
            told = sum(row["count"] for row in report["api"]["rows"])
            self.assertEqual(rows(path_of(name), "SELECT count(name) AS n FROM calls"), [{"n": told}], name)

    def test_kinds_are_those_of_the_report(self):
        report = json.loads(subprocess.run([perfkit, "report", path_of("normal"), "--format", "json"], capture_output=True, check=True).stdout)
        told = sorted((row["name"], row["source"] or "", row["target"] or "", row["count"], row["bytes"]) for row in report["transfers"]["rows"])
        seen = rows(path_of("normal"), "SELECT kind, coalesce(from_memory, '') AS a, coalesce(to_memory, '') AS b, count(*) AS n, sum(bytes) AS bytes "
                                       "FROM transfers WHERE start_ns NOT NULL AND duration_ns NOT NULL GROUP BY 1, 2, 3 ORDER BY 1, 2, 3")
        self.assertEqual([tuple(row.values()) for row in seen], told)

    def test_a_file_without_views(self):
        """Written by an earlier perfkit, and by anybody's hand."""
        shutil.copy(path_of("more"), path_of("older"))
        with sqlite3.connect(path_of("older")) as db:
            for view in [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'view' AND name <> 'api_all'")]:
                db.execute(f'DROP VIEW "{view}"')
        before = content("older")
        self.assertEqual(rows(path_of("older"), "SELECT count(*) AS n FROM kernels"), rows(path_of("older"), "SELECT count(*) AS n FROM kernel"))
        self.assertEqual(content("older"), before)


class Queries(unittest.TestCase):
    def test_ready_ones_run_everywhere(self):
        ready = lists()["queries"]["rows"]
        self.assertGreater(len(ready), 10)
        for name, form in (("normal", "text"), ("hostile", "csv"), ("empty", "markdown"), ("more", "json")):
            for query in ready:
                done = sql("--format", form, path_of(name), query["name"])
                self.assertEqual(done.returncode, 0, (name, query["name"], done.stderr))
        self.assertEqual(rows(path_of("normal"), ready[0]["sql"]), rows(path_of("normal"), ready[0]["name"]))

    def test_computed_tables(self):
        report = json.loads(subprocess.run([perfkit, "report", path_of("normal"), "--format", "json"], capture_output=True, check=True).stdout)
        self.assertEqual([row["rule"] for row in rows(path_of("normal"), "SELECT rule FROM findings")], [row["rule"] for row in report["findings"]["rows"]])
        columns = ("rule", "bound_ns", "rule_bound_ns", "rule_phases")
        self.assertEqual(rows(path_of("normal"), "SELECT %s FROM findings" % ", ".join(columns)),
                         [{column: row[column] for column in columns} for row in report["findings"]["rows"]])
        self.assertEqual(rows(path_of("normal"), "SELECT max(number) - count(*) AS n FROM iterations"), [{"n": 0}])

    def test_formats(self):
        query = "SELECT 1 AS a, 'x,\"y' AS b, NULL AS c, 0.5 AS d, 3 AS a, 5000 AS wait_ns"
        self.assertEqual(rows(path_of("empty"), query), [{"a": 1, "b": 'x,"y', "c": None, "d": 0.5, "a_2": 3, "wait_ns": 5000}])
        table = list(csv.reader(io.StringIO(sql("--format", "csv", path_of("empty"), query).stdout)))
        self.assertEqual(table, [["a", "b", "c", "d", "a_2", "wait_ns"], ["1", 'x,"y', "", "0.5", "3", "5000"]])
        self.assertIn("5.00 us", sql(path_of("empty"), query).stdout)
        self.assertIn("| 5.00 us |", sql("--format", "markdown", path_of("empty"), query).stdout)
        self.assertEqual(len(rows(path_of("normal"), "SELECT id FROM kernels")), 160)
        self.assertEqual(len(json.loads(sql("--json", "--top", "7", path_of("normal"), "SELECT id FROM kernels").stdout)), 7)

    def test_standard_input_and_the_newest_capture(self):
        done = subprocess.run([perfkit, "sql", "--json", path_of("normal")], input="SELECT count(*) AS n FROM ranges -- all", capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(json.loads(done.stdout), rows(path_of("normal"), "SELECT count(*) AS n FROM range"))
        done = sql("SELECT 7 AS n", cwd=work)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sql(path_of("normal")).returncode, 2)  # an empty query

    def test_reads_only(self):
        before = content("normal")
        for query in ("DELETE FROM kernel", "UPDATE capture SET command = ''", "ATTACH 'x.sqlite' AS x", "PRAGMA journal_mode=WAL", "CREATE TABLE x(y)",
                      "SELECT 1; DELETE FROM kernel", "SELECT load_extension('x')", "DROP VIEW kernels", "BEGIN", "VACUUM INTO 'x'", "SELECT ?1", "",
                      "SELECT nothing FROM kernels", "SELEC 1", "REPLACE INTO temp.findings(rule) VALUES('x')", "SELECT zeroblob(100000000)"):
            done = sql(path_of("normal"), query)
            self.assertEqual(done.returncode, 2, (query, done.stdout, done.stderr))
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertEqual(content("normal"), before)
        for words in ((path_of("normal"), "top_kernel"), ("nosuch.sqlite",), ("/nosuch/x.sqlite",)):
            done = sql(*words, cwd=work)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(words[-1] + ": no such file and no ready query", done.stderr)

    def test_names_of_columns_are_any_text(self):
        query = 'SELECT 1 AS "a\033[31m|b", 2 AS "x,y", 3 AS a, 4 AS a, 5 AS a, 6 AS a_2'
        clean = ["a\\x1b[31m|b", "x,y", "a", "a_2", "a_3", "a_2_2"]
        self.assertEqual(list(rows(path_of("empty"), query)[0]), clean)
        for form in ("text", "markdown", "csv"):
            self.assertNotIn("\033", sql("--format", form, path_of("empty"), query).stdout, form)
        self.assertEqual(next(csv.reader(io.StringIO(sql("--format", "csv", path_of("empty"), query).stdout))), clean)
        head, line = sql("--format", "markdown", path_of("empty"), query).stdout.splitlines()[:2]
        self.assertEqual(head.replace("\\|", "").count("|"), line.count("|"))

    def test_a_long_text_does_not_pad_all_rows(self):
        query = "SELECT 'short' AS name, 1 AS n UNION ALL SELECT printf('%.*c', 400, 'x'), 2"
        for line in sql(path_of("empty"), query).stdout.splitlines():
            self.assertLessEqual(len(line), 110)
        self.assertEqual(len(rows(path_of("empty"), query)[1]["name"]), 400)

    def test_a_row_of_large_cells_is_refused(self):
        done = sql("--json", path_of("empty"), "SELECT " + ",".join("randomblob(16000000)" for _ in range(50)))
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn("out of memory", done.stderr)

    def test_ends_in_time(self):
        done = sql("--timeout", "200ms", path_of("normal"), "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("stopped after 0.2 s", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
