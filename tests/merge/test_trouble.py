#!/usr/bin/env python3
"""perfkit merge: files that are missing, twice, cut short, damaged, of others; disks that fill up and users who
change their mind. What is wrong is named, the status is right, nothing half is left behind.

    test_trouble.py PERFKIT REPORT_TOOL TESTS WORK_FOLDER
"""
import glob
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

from ranks import Host, ask, left_behind, merge, one, path_of, perfkit, rank_capture

A = Host("a", "boot-a", 50_000_000_000)
INCOMPLETE, USAGE, FAILED = 3, 2, 1


def change(path, *statements):
    db = sqlite3.connect(path)
    for sql in statements:
        db.execute(sql)
    db.commit()
    db.close()


def ranks(prefix, which, world):
    return [rank_capture(f"{prefix}-{r}.sqlite", r, world, A, steps=20) for r in which]


def lines(path):
    return ask(path, "SELECT subject, item, note FROM capture_health WHERE process IS NULL")


class Trouble(unittest.TestCase):
    def tearDown(self):
        self.assertEqual(left_behind(), [])

    def refused(self, out, *files, status=USAGE):
        said = merge(out, *files, status=status)
        self.assertFalse(os.path.exists(path_of(out)))
        return said

    def trust(self, out):
        done = subprocess.run([perfkit, "report", path_of(out)], capture_output=True, text=True, check=True)
        return next(l for l in done.stdout.splitlines() if l.startswith("Trust"))

    def test_missing_rank(self):
        files = ranks("miss", [0, 1, 2, 3, 4, 6, 7], 8)
        said = merge("miss.sqlite", *files, status=INCOMPLETE)
        self.assertIn("rank 5 of 8 is in none of the files", said)
        self.assertIn(("part", "missing", "rank 5 of 8 is in none of the files"), lines(path_of("miss.sqlite")))
        self.assertIn("INCOMPLETE", self.trust("miss.sqlite"))
        said = merge("miss2.sqlite", "--subset", *files)
        self.assertIn("rank 5 of 8 is in none of the files, as requested", said)
        self.assertNotIn("INCOMPLETE", self.trust("miss2.sqlite"))
        said = merge("miss3.sqlite", files[0], files[2], status=INCOMPLETE)
        self.assertIn("ranks 1,3-7 of 8 are in none of the files", said)

    def test_truncated(self):
        files = ranks("cut", range(3), 3)
        whole = os.path.getsize(files[1])
        for size in (whole - 16384, whole // 2 // 16384 * 16384, 16384, whole - 1000, 50, 20, 7, 0):
            shutil.copy(files[1], path_of("cut-part.sqlite"))
            os.truncate(path_of("cut-part.sqlite"), size)
            said = merge("cut.sqlite", "--force", files[0], path_of("cut-part.sqlite"), files[2], status=INCOMPLETE)
            self.assertIn("cut-part.sqlite: ", said, size)
            if "left out" in said:
                self.assertIn("rank 1 of 3 is in none of the files", said)
            self.assertIn("INCOMPLETE", self.trust("cut.sqlite"))
            self.assertEqual(one(path_of("cut.sqlite"), "PRAGMA integrity_check"), "ok")
            self.assertGreaterEqual(one(path_of("cut.sqlite"), "SELECT count(*) FROM kernel"), 80)
        shutil.copy(files[1], path_of("cut-part.sqlite"))
        os.truncate(path_of("cut-part.sqlite"), whole - 1000)
        self.assertIn("none of the files can be read", self.refused("never.sqlite", path_of("cut-part.sqlite")))

    def test_damaged_inside(self):
        files = [rank_capture(f"hole-{r}.sqlite", r, 2, A, steps=3000) for r in range(2)]
        with open(files[1], "r+b") as out:
            pages = os.path.getsize(files[1]) // 16384
            for page in range(pages - 6, pages - 2):
                out.seek(page * 16384)
                out.write(b"\xff" * 16384)
        said = merge("hole.sqlite", *files, status=INCOMPLETE)
        self.assertIn("hole-1.sqlite: the file is damaged: what could be read of it is here", said)
        self.assertEqual(one(path_of("hole.sqlite"), "PRAGMA integrity_check"), "ok")
        by_part = dict(ask(path_of("hole.sqlite"), "SELECT id, rows FROM merged_part"))
        self.assertEqual(by_part[1], 6001)
        self.assertLess(by_part[2], 6001)
        self.assertIn("hole-1.sqlite (a, rank 1): the file is damaged",
                      one(path_of("hole.sqlite"), "SELECT note FROM capture_health WHERE item='incomplete'"))

    def test_same_rank_twice(self):
        files = ranks("dup", range(2), 2)
        other = rank_capture("dup-1b.sqlite", 1, 2, A, steps=20, begin_ns=5_000_000_000)
        change(other, "UPDATE process SET pid=4321")
        said = merge("dup.sqlite", *files, other)
        self.assertIn("rank 1 is in more than one file, as in", said)
        self.assertIn("dup-1b.sqlite", said)
        self.assertEqual(one(path_of("dup.sqlite"), "SELECT count(*) FROM process WHERE rank=1"), 2)

    def test_file_twice(self):
        files = ranks("again", range(2), 2)
        shutil.copy(files[1], path_of("copy.sqlite"))
        os.link(files[0], path_of("link.sqlite"))
        said = merge("again.sqlite", *files, files[1], path_of("copy.sqlite"), path_of("link.sqlite"))
        self.assertEqual(said.count("left out: it is given twice"), 3)
        self.assertEqual(one(path_of("again.sqlite"), "SELECT count(*) FROM kernel"), 80)
        self.assertEqual(one(path_of("again.sqlite"), "SELECT count(*) FROM merged_part"), 2)
        self.assertNotIn("INCOMPLETE", self.trust("again.sqlite"))
        # One that shares only some of its processes is neither a copy nor another capture.
        change(path_of("copy.sqlite"), "INSERT INTO process(pid, command, start) VALUES(9, 'other', 7)")
        self.assertIn("hold the same processes: give one of them", self.refused("n.sqlite", *files, path_of("copy.sqlite")))

    def test_different_runs(self):
        files = ranks("runs", range(2), 2)
        change(files[1], "UPDATE process SET job='78', world_size=4")
        said = merge("runs.sqlite", *files, status=INCOMPLETE)
        self.assertIn("files of different jobs:", said)
        self.assertIn("files of runs of different sizes: of 2 and 4 ranks", said)

    def test_versions(self):
        files = ranks("old", range(2), 2)
        # One of the first versions: later tables and columns are not there.
        change(files[0], *(f"DROP VIEW {name}" for name in ("kernels", "transfers", "calls", "synchronizations", "ranges", "allocations")))
        change(files[0], "DROP TABLE merged_part", "DROP TABLE graph_launch", "DROP TABLE recording",
               "CREATE TABLE old AS SELECT id, pid, parent_pid, command, birth, start, \"end\", rank, spool FROM process",
               "DROP TABLE process", "ALTER TABLE old RENAME TO process")
        merge("old.sqlite", *files)
        self.assertEqual(one(path_of("old.sqlite"), "SELECT count(*) FROM kernel"), 80)
        # Row numbers that are there twice: the first counts.
        change(files[0], "INSERT INTO process SELECT * FROM process")
        said = merge("double.sqlite", *files, status=INCOMPLETE)
        self.assertIn("old-0.sqlite: the file is damaged", said)
        self.assertEqual(one(path_of("double.sqlite"), "SELECT count(*) FROM process"), 2)
        change(files[0], "UPDATE capture SET perfkit_version='0.0.9'")
        said = merge("mixed.sqlite", "--force", *files, status=INCOMPLETE)
        self.assertIn(f"files of different versions of perfkit: {files[0]} of 0.0.9, {files[1]} of ", said)
        self.assertEqual([row[2][:39] for row in lines(path_of("mixed.sqlite")) if row[1] == "mixed"],
                         ["files of different versions of perfkit:"])
        change(files[1], "PRAGMA user_version=99")
        said = self.refused("newer.sqlite", *files)
        self.assertIn("was written by a newer perfkit", said)
        self.assertIn("update perfkit", said)

    def test_not_captures(self):
        files = ranks("not", range(1), 1)
        db = sqlite3.connect(path_of("other.sqlite"))
        db.execute("CREATE TABLE StringIds(id INTEGER)")
        db.commit()
        db.close()
        with open(path_of("text"), "w", encoding="ascii") as out:
            out.write("a text that is long enough to be taken for something\n" * 10)
        os.makedirs(path_of("folder"), exist_ok=True)
        self.assertIn("SQLite file of another program", self.refused("n.sqlite", files[0], path_of("other.sqlite")))
        self.assertIn("not an SQLite file", self.refused("n.sqlite", files[0], path_of("text")))
        self.assertIn("no such file", self.refused("n.sqlite", files[0], path_of("nowhere.sqlite")))
        self.assertIn("not a regular file", self.refused("n.sqlite", files[0], path_of("folder")))
        os.mkfifo(path_of("pipe"))
        self.assertIn("not a regular file", self.refused("n.sqlite", files[0], path_of("pipe")))

    def test_unfinished(self):
        files = ranks("live", range(2), 2)
        change(files[1], "UPDATE capture SET state='recording'")
        said = merge("live.sqlite", *files, status=INCOMPLETE)
        self.assertIn("live-1.sqlite: it is still being recorded, or perfkit was killed", said)
        self.assertIn("INCOMPLETE", self.trust("live.sqlite"))

    def test_output(self):
        files = ranks("out", range(2), 2)
        merge("out.sqlite", *files)
        before = os.stat(path_of("out.sqlite")).st_mtime_ns
        self.assertIn("exists already", merge("out.sqlite", *files, status=USAGE))
        self.assertEqual(os.stat(path_of("out.sqlite")).st_mtime_ns, before)
        merge("out.sqlite", "--force", *files)
        self.assertIn("is the file to read", merge("out-0.sqlite", "--force", *files, status=USAGE))
        self.assertIn("is a folder", merge("", *files, status=USAGE))
        self.assertIn("No such file", merge("nowhere/out.sqlite", *files, status=FAILED))
        done = subprocess.run([perfkit, "merge", *files], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (USAGE, "perfkit merge: no output file: name the file to write with -o\n"))
        self.assertEqual(oct(os.stat(path_of("out.sqlite")).st_mode & 0o777), oct(0o666 & ~os.umask(os.umask(0o22))))
        os.umask(0o22)

    def test_full_disk(self):
        files = [rank_capture(f"full-{r}.sqlite", r, 2, A, steps=3000) for r in range(2)]
        for limit in (100_000, 900_000):
            said = merge("full.sqlite", *files, status=FAILED,
                         preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (n, n)))
            self.assertIn("cannot", said)
            self.assertFalse(os.path.exists(path_of("full.sqlite")))

    def test_interrupted(self):
        files = [rank_capture(f"stop-{r}.sqlite", r, 4, A, steps=20000) for r in range(4)]
        child = subprocess.Popen([perfkit, "merge", *files, "-o", path_of("stop.sqlite")], stderr=subprocess.PIPE, text=True)
        while not glob.glob(path_of("stop.sqlite.*")) and child.poll() is None:
            time.sleep(0.001)
        child.send_signal(signal.SIGINT)
        said = child.communicate()[1]
        if child.returncode == 0:
            self.skipTest("the merge was over before the signal came")
        self.assertEqual(child.returncode, -signal.SIGINT, said)
        self.assertIn("interrupted", said)
        self.assertFalse(os.path.exists(path_of("stop.sqlite")))

    def test_what_files_say_of_themselves(self):
        files = ranks("say", range(3), 3)
        for i, f in enumerate(files):
            change(f, "INSERT INTO capture_health(subject, item, note) VALUES('collector', 'scope', 'the same')",
                   f"INSERT INTO capture_health(subject, item, value, note) VALUES('process', 'dropped', {i}, 'no room')")
        change(files[1], "INSERT INTO capture_health(subject, item, note) VALUES('collector', 'cuda refused', 'why')")
        merge("say.sqlite", *files)
        self.assertEqual(ask(path_of("say.sqlite"), "SELECT item, value, note FROM capture_health WHERE process IS NULL"),
                         [("scope", None, "the same"), ("dropped", 3, "no room"), ("cuda refused", None, f"{files[1]}: why")])
        self.assertIn("INCOMPLETE", self.trust("say.sqlite"))


    def test_losses_name_their_rank(self):
        files = ranks("loss", range(2), 2)
        change(files[1], "INSERT INTO capture_health(process, subject, item, value, note) VALUES(1, 'record', 'damaged', 3, 'chunks')")
        merge("loss.sqlite", *files)
        done = subprocess.run([perfkit, "report", path_of("loss.sqlite")], capture_output=True, text=True, check=True)
        self.assertIn("LOSS     rank 1 (process 1001 on a): 3 chunks (damaged)", done.stdout)

    def test_a_file_at_risk(self):
        files = ranks("risk", range(2), 2)
        change(files[1], "INSERT INTO capture_health(process, subject, item, value, note) VALUES(1, 'risk', 'device_records', 3, "
                         "'device records of its last 7 ms may be missing')")
        self.assertIn("; AT RISK", merge("risk.sqlite", *files))
        trust = json.loads(subprocess.run([perfkit, "report", "--json", path_of("risk.sqlite")], capture_output=True, check=True).stdout)["trust"]
        self.assertEqual((trust["status"], trust["calls_without_records"]), ("at risk", 3))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
