#!/usr/bin/env python3
"""The package perfkit over libprof.so.0: rows equal SQL on the file, with NumPy and without; the library exports what
libprof.map says, and no name of its own beside it.

    test_package.py LIBRARY MAP PACKAGE_FOLDER REPORT_TOOL SQL_FOLDER WORK_FOLDER"""
import collections
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import unittest

library, exports, package, tool, source, work = [os.path.abspath(a) for a in sys.argv[1:7]]
os.makedirs(work, exist_ok=True)
os.environ["PERFKIT_LIBPROF"] = library
sys.path.insert(0, package)
import perfkit # noqa: E402

NUMPY = perfkit.numpy
VIEWS = ("kernels", "transfers", "calls", "synchronizations", "ranges", "allocations")


def path_of(name):
    path = os.path.join(work, name + ".sqlite")
    if not os.path.exists(path):
        subprocess.run([tool, "make", os.path.join(source, name + ".sql"), path], check=True)
    return path


def setUpModule():
    shutil.rmtree(work)
    os.makedirs(work)


class Library(unittest.TestCase):
    def test_exports_are_those_of_the_map(self):
        if not shutil.which("nm"):
            self.skipTest("nm is not installed")
        listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
        seen = {line.split()[2] for line in listed.splitlines() if " A " not in line}
        with open(exports, encoding="ascii") as text:
            body = re.sub(r"/\*.*?\*/", "", text.read(), flags=re.S)
        version = re.search(r"(PERFKIT_[0-9.]+) \{", body).group(1)
        self.assertEqual(seen, {f"{name}@@{version}" for name in re.findall(r"\b(prof_\w+);", body)})
        needed = subprocess.run(["objdump", "-p", library], capture_output=True, text=True, check=True).stdout
        self.assertRegex(needed, r"SONAME\s+libprof\.so\.0\n")


class Rows(unittest.TestCase):
    def check(self):
        for name in ("normal", "awkward", "hostile", "more", "empty"):
            db = sqlite3.connect(path_of(name))
            db.text_factory = lambda data: data.decode("utf-8", "backslashreplace")
            with perfkit.open(path_of(name)) as capture:
                for view in VIEWS:
                    rows, cursor = getattr(capture, view)(), db.execute(f"SELECT * FROM {view} ORDER BY start_ns")
                    names, expected = [column[0] for column in cursor.description], cursor.fetchall()
                    if perfkit.numpy is not None:
                        self.assertEqual(list(rows.dtype.names), names)
                        rows = [{k: None if v == perfkit.UNKNOWN or v != v else v for k, v in zip(names, row)} for row in rows.tolist()]
                    whole = collections.Counter(tuple(str(cell) for cell in row.values()) for row in rows)
                    told = collections.Counter(tuple(str(None if cell != cell else cell) for cell in row) for row in expected)
                    mixed = {i for row in expected for i, cell in enumerate(row) if isinstance(cell, float)} # payloads of any type
                    if not mixed:
                        self.assertEqual(whole, told, (name, view))
                    self.assertEqual(len(rows), len(expected))
                events, names = capture.events(), capture.names()
                rows = events.tolist() if perfkit.numpy is not None else [tuple(row.values()) for row in events]
                starts = [row[2] for row in rows]
                self.assertEqual(starts, sorted(starts))
                kernels = collections.Counter(names[row[4]] for row in rows if perfkit.EVENT_KINDS[row[0]] == "kernel")
                self.assertEqual(kernels, collections.Counter(row[0] for row in db.execute("SELECT name FROM kernels WHERE start_ns NOT NULL")), name)

    def test_as_the_file_has_them(self):
        self.check()

    def test_without_numpy(self):
        perfkit.numpy = None
        try:
            self.check()
            with perfkit.open(path_of("normal")) as capture:
                self.assertEqual(capture.sql("SELECT 1 AS a, NULL AS b, 0.5 AS c, 'x' AS d, 2 AS a"), [{"a": 1, "b": None, "c": 0.5, "d": "x", "a_2": 2}])
        finally:
            perfkit.numpy = NUMPY

    def test_kinds_of_cells(self):
        """Whole numbers that become others further down, and texts among numbers."""
        if NUMPY is None:
            self.skipTest("NumPy is not installed")
        with perfkit.open(path_of("normal")) as capture:
            rows = capture.sql("SELECT NULL AS n, 1 AS i, 1 AS r, NULL AS t, 9007199254740993 AS w, NULL AS x UNION ALL SELECT NULL, NULL, 2.5, 7, NULL, NULL "
                               "UNION ALL SELECT NULL, 3, NULL, 'a', 'b', 1.5")
        nan = float("nan")
        self.assertEqual(repr([rows[name].tolist() for name in rows.dtype.names]), repr([
            [perfkit.UNKNOWN] * 3, [1, perfkit.UNKNOWN, 3], [1.0, 2.5, nan], [None, "7", "a"], ["9007199254740993", None, "b"], [nan, nan, 1.5]]))

    def test_iterations_and_findings(self):
        with perfkit.open(path_of("normal")) as capture:
            rules = [row["rule"] for row in capture.findings()]
            self.assertEqual(rules, [row["rule"] for row in capture.sql("SELECT rule FROM findings")])
            self.assertGreater(len(rules), 0)
            self.assertEqual([row["number"] for row in capture.iterations()], list(range(1, len(capture.iterations()) + 1)))

    def test_pandas(self):
        try:
            import pandas # noqa: F401
        except ImportError:
            self.skipTest("pandas is not installed")
        with perfkit.open(path_of("more")) as capture:
            frame, rows = capture.pandas("transfers"), capture.transfers()
            self.assertEqual(len(frame), len(rows))
            self.assertEqual(int(frame["bytes"].sum()), sum(int(b) for b in rows["bytes"] if b != perfkit.UNKNOWN))
            self.assertEqual(sorted(frame["kind"].astype(str)), sorted(rows["kind"]))
            self.assertEqual(int(frame["stack"].isna().sum()), sum(1 for v in rows["stack"] if v == perfkit.UNKNOWN))


class Faults(unittest.TestCase):
    def test_errors_are_sentences(self):
        for path, word in ((os.path.join(work, "none.sqlite"), "none.sqlite"), (__file__, "perfkit")):
            with self.assertRaises(perfkit.Error) as caught:
                perfkit.open(path)
            self.assertIn(word, str(caught.exception))
        capture = perfkit.open(path_of("normal"))
        with self.assertRaises(ValueError):
            capture.sql("SELECT 1\0; DELETE FROM kernel")
        for query in ("DELETE FROM kernel", "SELECT nothing", ""):
            with self.assertRaises(perfkit.Error):
                capture.sql(query)
        with self.assertRaises(perfkit.Error) as caught:
            capture.sql("WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r", timeout=0.1)
        self.assertIn("stopped after", str(caught.exception))
        self.assertEqual(len(capture.sql("SELECT id FROM kernels", limit=5)), 5)
        capture.close()
        capture.close()
        with self.assertRaises(ValueError):
            capture.sql("SELECT 1")

    def test_threads_share_a_capture(self):
        """As many rows as one thread sees."""
        seen, path = [], path_of("normal")
        with perfkit.open(path) as capture:
            alone = (len(capture.findings()), len(capture.kernels()))
            threads = [threading.Thread(target=lambda: seen.extend((len(capture.findings()), len(capture.kernels())) for _ in range(5))) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(seen, [alone] * 20)

    def test_arrays_that_live_to_the_end(self):
        done = subprocess.run([sys.executable, "-c", f"import perfkit; capture = perfkit.open({path_of('normal')!r}); rows = capture._columns('SELECT id FROM kernels', "
                               "None, None)"], capture_output=True, text=True, check=False, env=dict(os.environ, PYTHONPATH=package))
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_recording_where_nobody_records(self):
        with perfkit.record("region") as started:
            self.assertFalse(started)

    def test_recording_waits_for_every_process(self):
        """perfkit ctl ends with 0 and a message where one has not followed after 3 s: it is asked again."""
        log, program = os.path.join(work, "ctl.log"), os.path.join(work, "ctl")
        with open(program, "w", encoding="ascii") as file:
            file.write(f'#!/bin/sh\necho "$2" >> {log}\n[ "$2" = stop ] || [ "$(grep -c start {log})" -gt 2 ] || echo "1 of its processes" >&2\n')
        os.chmod(program, 0o755)
        before = {name: os.environ.get(name) for name in ("PERFKIT", "PERFKIT_DIR")}
        os.environ.update(PERFKIT=program, PERFKIT_DIR=work)
        try:
            with perfkit.record() as started, open(log, encoding="ascii") as file:
                self.assertEqual((started, file.read().split()), (True, ["start"] * 3))
                with perfkit.record() as inner:
                    self.assertTrue(inner)
                file.seek(0)
                self.assertEqual(file.read().split(), ["start"] * 3) # a block within another does not end the recording
            with open(log, encoding="ascii") as file:
                self.assertEqual(file.read().split(), ["start"] * 3 + ["stop"])
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                os.environ.update({name: value} if value is not None else {})

    def test_the_library_is_missing(self):
        done = subprocess.run([sys.executable, "-c", "import perfkit; perfkit.open('x')"], capture_output=True, text=True, check=False,
                              env=dict(os.environ, PERFKIT_LIBPROF="/nowhere/libprof.so.0", PYTHONPATH=package))
        self.assertIn("ImportError: perfkit: cannot load libprof.so.0", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
