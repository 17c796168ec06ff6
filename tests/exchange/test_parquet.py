#!/usr/bin/env python3
"""perfkit export --format parquet: every value of every table arrives, whatever it is; the folder is there whole or not at all.

    test_parquet.py PERFKIT REPORT_TOOL REPORT_SCENES WORK_FOLDER
"""
import functools
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

from parquet_reader import BYTE_ARRAY, DOUBLE, INT64, File
from scenes import ask, make, one

perfkit, tool, report_scenes, work = [os.path.abspath(a) for a in sys.argv[1:5]]
shutil.rmtree(work, ignore_errors=True)
CAPTURES = make(tool, work, report_scenes)
GROUP_ROWS = 122880
ADDED = {"name", "process", "rank", "device"}

# Numbers that are hard to encode: dictionaries that overflow, runs of every length, bits at every width, both ends of
# 64 bits; text that is not UTF-8, empty, with NUL, long; columns that hold what they should not.
WIDE = """
INSERT INTO capture(state, start_realtime_ns, start_mono_ns) VALUES('complete', -9223372036854775808, 9223372036854775807);
INSERT INTO process(pid, rank) VALUES(1, 3);
INSERT INTO thread(process, tid, name) VALUES(1, 1, x'ff41c3');
INSERT INTO device(process, api, ordinal, name) VALUES(1, 'cuda', 0, char(65, 0, 66)), (1, 'cuda', 1, '');
INSERT INTO stream(process, device, native) VALUES(1, 1, 7), (1, 2, 8), (9, NULL, 9);
INSERT INTO string(id, value) VALUES(1, 'plain'), (2, x'41c328'), (3, printf('%.*c', 9000, 'x')), (4, ''), (5, '中文 €');
INSERT INTO launch_config(name, demangled) VALUES(1, 5), (2, NULL), (3, NULL), (4, NULL), (77, NULL);
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 129999)
INSERT INTO kernel(start, duration, stream, config, api_name, flags, correlation)
SELECT CASE WHEN i % 7 THEN i * 1000003 END, i * i, 1 + (i / 13) % 3, 1 + i % 6, CASE WHEN i % 20 < 9 THEN 1 + i % 6 END,
       CASE WHEN i > 90000 THEN 4 END, CASE WHEN i % 2 THEN -i END FROM n;
INSERT INTO range(start, duration, thread, name, payload) VALUES(1, 'not a number', 1, 1, 9007199254740993), (2, 1.5, 1, 2, 0.25),
  (3, NULL, 1, 99, 'text'), (-9223372036854775808, 9223372036854775807, 1, 3, NULL), (4, 4, NULL, 4, -1e300);
INSERT INTO work(range, flop, bytes_read) VALUES(1, 9e999, -0.0), (2, 3, NULL);
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 5002)
INSERT INTO counter_sample(counter_device, start, duration, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16)
SELECT 1, i, 7, 0, i % 2, i % 3, i / 7 % 5, i / 8 % 5, i / 9 % 5, i % 16, i % 17, i % 255, i % 256, i % 257, i * 7919 % 2501, i * 7919 % 2502,
       CASE WHEN i % 8 THEN i / 4 END, CASE WHEN i % 9 THEN 1 END, CASE WHEN i > 4999 THEN i END, CASE WHEN i / 1000 % 2 THEN 1e300 * i END FROM n;
INSERT INTO rollup(second, stream, config, count, histogram) VALUES(0, 1, 1, 2, x'00ff'), (1, 2, 2, 2, x'');
"""


def setUpModule():
    sql = os.path.join(work, "wide.sql")
    with open(sql, "w", encoding="utf-8") as out:
        out.write(WIDE)
    CAPTURES["wide"] = os.path.join(work, "wide.sqlite")
    subprocess.run([tool, "make", sql, CAPTURES["wide"]], check=True)
    for name, capture in CAPTURES.items():
        done = run(capture, folder(name))
        assert done.returncode == 0, done.stderr


def folder(name):
    return os.path.join(work, name + ".parquet")


def run(*arguments, **options):
    return subprocess.run([perfkit, "export", "--format", "parquet", *arguments], capture_output=True, text=True, errors="replace", check=False,
                          **options)


def leftovers(name):
    return [f for f in os.listdir(work) if f.startswith(name)]


def tables_of(capture):
    return [row[0] for row in ask(capture, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]


@functools.lru_cache
def as_text(value):
    """What put_text makes of a value of SQLite."""
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    return None if value is None else mend(value) if isinstance(value, bytes) else str(value)


def mend(raw):
    out, at = "", 0
    while at < len(raw):
        for length in range(4, 0, -1):
            try:
                out += raw[at:at + length].decode("utf-8")
                at += length
                break
            except UnicodeDecodeError:
                pass
        else:
            out += "\N{REPLACEMENT CHARACTER}"
            at += 1
    return out


class Values(unittest.TestCase):
    def test_every_table_is_a_file(self):
        for name, capture in CAPTURES.items():
            files = {f[:-len(".parquet")] for f in os.listdir(folder(name))}
            self.assertEqual(files, set(tables_of(capture)), name)

    def test_every_value_of_every_table(self):
        for name, capture in CAPTURES.items():
            strings = {row[0]: as_text(row[1]) for row in ask(capture, "SELECT id, value FROM string")}
            for table in tables_of(capture):
                with self.subTest(f"{name}.{table}"):
                    self.compare(capture, table, File(os.path.join(folder(name), table + ".parquet")), strings)

    def compare(self, capture, table, file, strings):
        columns = [(row[1], row[2]) for row in ask(capture, f"PRAGMA table_info({table})")]
        rows = ask(capture, f"SELECT * FROM {table}")
        have = list(file.rows())
        self.assertEqual(len(have), len(rows))
        for number, (column, declared) in enumerate(columns):
            kind, required, is_text = file.kinds[column]
            self.assertEqual(required, declared == "INTEGER" and column == "id")
            ours = [row[number] for row in rows]
            theirs = [row[file.columns.index(column)] for row in have]
            if is_text and declared == "INTEGER":
                wanted = [strings.get(value) for value in ours]
            elif is_text:
                wanted = [as_text(value) for value in ours]
            elif kind == INT64:
                wanted = [value if isinstance(value, int) else None for value in ours]
            elif kind == DOUBLE:
                wanted = [float(value) if isinstance(value, (int, float)) else None for value in ours]
            else:
                self.assertEqual(kind, BYTE_ARRAY)
                wanted = ours
            if table == "capture_health" and column in ("level", "code"):  # rows without them get those of their words
                self.assertNotIn(None, theirs)
                wanted = [mine if mine is not None else value for mine, value in zip(wanted, theirs)]
            self.assertEqual(theirs, wanted, column)
        derived = set()
        if table == "api_call" and "class" not in [c for c, _ in columns]:  # earlier captures: from the function's name
            derived = {"class"}
            self.assertLessEqual({type(row[list(file.columns).index("class")]) for row in have}, {int})
        self.assertEqual(set(file.columns) - {c for c, _ in columns} - ADDED - derived,
                         {c + end for c, declared in columns if not declared for end in ("_integer", "_text")})

    def test_what_saves_a_join(self):
        for name, capture in CAPTURES.items():
            file = File(os.path.join(folder(name), "kernel.parquet"))
            at = {column: i for i, column in enumerate(file.columns)}
            wanted = ask(capture, "SELECT k.id, coalesce(d.value, n.value), s.process, p.rank, s.device FROM kernel k LEFT JOIN launch_config c "
                         "ON c.id = k.config LEFT JOIN string n ON n.id = c.name LEFT JOIN string d ON d.id = c.demangled LEFT JOIN stream s ON "
                         "s.id = k.stream LEFT JOIN process p ON p.id = s.process")
            self.assertEqual([tuple(row[at[c]] for c in ("id", "name", "process", "rank", "device")) for row in file.rows()],
                             [(row[0], as_text(row[1]), *row[2:]) for row in wanted], name)
        for table, via in (("sync", "thread"), ("range", "thread"), ("api_call", "thread"), ("transfer", "stream")):
            file = File(os.path.join(folder("both"), table + ".parquet"))
            at = file.columns.index("process")
            self.assertEqual([row[at] for row in file.rows()],
                             [row[0] for row in ask(CAPTURES["both"], f"SELECT v.process FROM {table} t LEFT JOIN {via} v ON v.id = t.{via}")])

    def test_columns_of_any_type(self):
        file = File(os.path.join(folder("wide"), "range.parquet"))
        at = [file.columns.index("payload" + end) for end in ("", "_integer", "_text")]
        self.assertEqual([tuple(row[i] for i in at) for row in file.rows()],
                         [(9007199254740992.0, 9007199254740993, None), (0.25, None, None), (None, None, "text"), (None, None, None),
                          (-1e300, None, None)])

    def test_large_tables_are_cut(self):
        file = File(os.path.join(folder("wide"), "kernel.parquet"))
        self.assertEqual(file.groups, [GROUP_ROWS, 130000 - GROUP_ROWS])

    def test_few_different_values_take_little(self):
        file = File(os.path.join(folder("wide"), "kernel.parquet"))
        sizes = {c: sum(group[1][i][3][7] for group in file.footer[4]) for i, c in enumerate(file.columns)}
        self.assertLess(sizes["stream"], 130000 / 2)
        self.assertLess(sizes["rank"], 130000 / 2)
        self.assertLess(sizes["name"], 130000 / 2 + 2 * 9100 + 1000)
        self.assertLess(sizes["flags"], 1000)
        self.assertGreater(sizes["duration"], 8 * 129999)

    def test_long_texts_bound_memory(self):
        capture = os.path.join(work, "long.sqlite")
        sql = os.path.join(work, "long.sql")
        with open(sql, "w", encoding="ascii") as out:
            out.write("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 80) INSERT INTO string(id, value) "
                      "SELECT i, hex(randomblob(500000)) FROM n;")
        subprocess.run([tool, "make", sql, capture], check=True)
        self.assertEqual(run(capture, folder("long")).returncode, 0)
        file = File(os.path.join(folder("long"), "string.parquet"))
        self.assertEqual(len(file.groups), 2)
        self.assertEqual(sum(len(row[1]) for row in file.rows()), 80 * 1000000)

    def test_what_was_changed_is_said(self):
        self.assertIn("not UTF-8, which are replaced by U+FFFD: 2\n", run(CAPTURES["wide"], folder("wide"), "--force").stderr)
        said = run(CAPTURES["wide"], folder("wide"), "--force").stderr
        self.assertRegex(said, "not of their column's type, left out: 2\n")
        self.assertRegex(said, ": wrote .*: [0-9,]+ rows")
        self.assertNotIn("note:", run(CAPTURES["both"], folder("both"), "--force").stderr)


class Folders(unittest.TestCase):
    def test_existing_ones_are_kept(self):
        target = folder("kept")
        self.assertEqual(run(CAPTURES["normal"], target).returncode, 0)
        before = os.stat(target).st_ino
        done = run(CAPTURES["both"], target)
        self.assertEqual(done.returncode, 2)
        self.assertIn("exists already", done.stderr)
        self.assertEqual(os.stat(target).st_ino, before)
        self.assertEqual(run(CAPTURES["both"], target + "/", "--force").returncode, 0)
        self.assertEqual(File(os.path.join(target, "kernel.parquet")).footer[3], one(CAPTURES["both"], "SELECT count(*) FROM kernel"))
        self.assertEqual(leftovers("kept"), ["kept.parquet"])

    def test_an_empty_folder_is_filled(self):
        target = folder("filled")
        os.mkdir(target)
        self.assertEqual(run(CAPTURES["normal"], target).returncode, 0)
        self.assertTrue(os.path.exists(os.path.join(target, "kernel.parquet")))

    def test_nothing_else_is_removed(self):
        for name, what in (("notes.txt", "file"), ("more.parquet", "folder"), ("link.parquet", "link")):
            target = folder("mine-" + what)
            os.mkdir(target)
            own = os.path.join(target, name)
            if what == "folder":
                os.mkdir(own)
            elif what == "link":
                os.symlink("/nowhere", own)
            else:
                with open(own, "w", encoding="ascii") as out:
                    out.write("mine")
            done = run(CAPTURES["normal"], target, "--force")
            self.assertEqual(done.returncode, 2)
            self.assertIn("would be lost", done.stderr)
            self.assertTrue(os.path.lexists(own))
            self.assertEqual(os.listdir(target), [name])

    def test_files_are_not_folders(self):
        target = os.path.join(work, "file.parquet")
        with open(target, "w", encoding="ascii") as out:
            out.write("mine")
        for extra in ([], ["--force"]):
            done = run(CAPTURES["normal"], target, *extra)
            self.assertEqual(done.returncode, 2)
            self.assertIn("is not a folder", done.stderr)
        self.assertEqual(run(CAPTURES["normal"], CAPTURES["normal"], "--force").returncode, 2)
        self.assertGreater(one(CAPTURES["normal"], "SELECT count(*) FROM kernel"), 0)

    def test_bad_input(self):
        for bad in ("/dev/null", os.path.join(work, "none"), os.path.join(work, "wide.sql")):
            done = run(bad, folder("bad"))
            self.assertEqual(done.returncode, 2, bad)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertEqual(leftovers("bad"), [])

    def test_a_capture_cut_short(self):
        cut = os.path.join(work, "cut.sqlite")
        shutil.copy(CAPTURES["wide"], cut)
        os.truncate(cut, os.stat(cut).st_size // 2)
        done = run(cut, folder("cut-out"))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(leftovers("cut-out"), [])

    def test_unwritable(self):
        done = run(CAPTURES["normal"], os.path.join(work, "no", "such", "folder"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write", done.stderr)

    def test_too_large_for_the_disk(self):
        done = subprocess.run(["bash", "-c", "ulimit -f 64; trap '' XFSZ; exec \"$@\"", "-", perfkit, "export", "--format", "parquet",
                               CAPTURES["wide"], folder("limited")], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"cannot write .*limited\.parquet/\w+\.parquet: ")
        self.assertEqual(leftovers("limited"), [])

    def test_interrupted(self):
        child = subprocess.Popen([perfkit, "export", "--format", "parquet", CAPTURES["wide"], folder("broken")], stderr=subprocess.PIPE, text=True)
        while not leftovers("broken") and child.poll() is None:
            time.sleep(0.001)
        child.send_signal(signal.SIGINT)
        said = child.communicate()[1]
        if child.returncode == 0:
            self.skipTest("the export was over before it could be interrupted")
        self.assertEqual(child.returncode, -signal.SIGINT, said)
        self.assertIn("interrupted", said)
        self.assertEqual(leftovers("broken"), [])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]], verbosity=2)
