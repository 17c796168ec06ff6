"""perfkit baseline as a CI job uses it: what is saved is there, whole and once, and what is damaged is refused with one line."""
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import unittest
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from case import PERFKIT, Case, content_of, environment  # noqa: E402


class Baselines(Case):
    def runs(self, name="main"):
        shown = json.loads(self.perfkit("baseline", "show", name, "--json").stdout)
        return [run for session in shown["sessions"] for run in session["runs"]]

    def test_save_list_show_rm(self):
        self.perfkit("baseline", "save", "main", "--label", "job 7", self.capture(1),
                     self.capture(2))
        self.perfkit("baseline", "save", "main", self.capture(3))
        done = self.perfkit("baseline", "save", "main", self.capture(3))
        self.assertIn(b"had been saved", done.stderr)
        listed = json.loads(self.perfkit("baseline", "list", "--json").stdout)
        self.assertEqual([(b["name"], b["sessions"], b["runs"]) for b in listed], [("main", 2, 3)])
        long = "n" * 60
        self.perfkit("baseline", "save", long, self.capture(3))
        lines = self.perfkit("baseline", "list").stdout.decode().splitlines()
        # Completions take the first word of each line behind the headings.
        self.assertEqual([line.split(" ")[0] for line in lines[1:]], ["main", long])
        self.perfkit("baseline", "rm", long)
        db = sqlite3.connect(self.path(".perfkit/baselines.sqlite"))
        kept = json.loads(zlib.decompress(db.execute("SELECT metrics FROM run WHERE id = 1").fetchone()[0]))
        db.close()
        self.assertEqual((kept["perfkit_run"], kept["iteration"]), (1, "step"))
        self.assertIn("wall", [metric["family"] for metric in kept["metrics"]])
        shown = self.perfkit("baseline", "show", "main").stdout.decode()
        self.assertEqual(shown.splitlines()[0].split(), ["Session", "Saved", "(UTC)", "Label", "Commit", "Runs"])
        self.assertRegex(shown.splitlines()[1], r"^ +1  \d{4}-\d\d-\d\d \d\d:\d\d  job 7 .* 2$")
        self.assertIn("device", shown)
        self.perfkit("baseline", "rm", "main", "--sessions", "1")
        self.assertEqual(len(self.runs()), 1)
        self.perfkit("baseline", "rm", "main")
        self.refused("baseline", "show", "main", saying="holds no baselines")

    def test_the_trend_is_a_page(self):
        """Its values are those of diff; what did not change is a sentence; names are text."""
        for seed in (1, 2, 3):
            self.perfkit("baseline", "save", "<i>main", "--label", "<i>%d</i>" % seed, self.capture(seed))
        self.perfkit("baseline", "show", "<i>main", "--html", "trend.html")
        with open(self.path("trend.html"), encoding="utf-8") as file:
            page = file.read()
        compared = json.loads(self.perfkit("diff", self.capture(1), self.capture(3), "--format", "json").stdout)
        values = {row["metric"]: (row["base"], row["cand"]) for row in compared["rows"]
                  if row["metric"] in ("wall", "gpu-busy", "gpu-idle")}
        self.assertEqual(set(values), {"wall", "gpu-busy", "gpu-idle"})
        for family, (first, last) in values.items():
            chart = page[page.index("<h3 class=\"short\">%s</h3>" % family):]
            chart = chart[:chart.index("</section>")]
            points = re.findall(r"<title>session (\d+), .*?, label &lt;i&gt;\d&lt;/i&gt;: ([0-9.]+) (ns|us|ms|s)</title>", chart)
            self.assertEqual([point[0] for point in points], ["1", "2", "3"], chart)
            scale = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
            for point, value in ((points[0], first), (points[2], last)):
                self.assertAlmostEqual(float(point[1]) * scale[point[2]] / value, 1, delta=0.006)
        self.assertRegex(page, r"The same in all sessions: launches \d+")
        self.assertNotIn("<i>", page)
        self.assertNotIn("<script", page)
        self.refused("baseline", "list", "--html", "none.html", saying="option of perfkit baseline show, not of list")
        self.refused("baseline", "show", "none", "--html", "none.html", saying="no baseline 'none'")

    def test_export_and_import(self):
        self.save(seeds=range(1, 4))
        self.perfkit("baseline", "export", "main", "away.baseline")
        with open(self.path("away.baseline")) as file:
            exported = json.load(file)
        self.assertEqual((exported["perfkit_baseline"], exported["name"]), (1, "main"))
        db = sqlite3.connect(self.path(".perfkit/baselines.sqlite"))
        kept = [row[0] for row in db.execute("SELECT metrics FROM run ORDER BY id")]
        self.assertEqual([run["metrics"] for session in exported["sessions"]
                          for run in session["runs"]], [json.loads(zlib.decompress(packed)) for packed in kept])
        self.refused("baseline", "export", "main", "away.baseline", saying="exists already")
        self.perfkit("baseline", "import", "away.baseline")
        self.assertEqual(len(self.runs()), 3)  # they were there
        self.perfkit("baseline", "import", "away.baseline", "copy")
        self.assertEqual(len(self.runs("copy")), 3)
        self.perfkit("baseline", "--baselines", "new/b.sqlite", "import", "away.baseline")
        self.assertTrue(os.path.exists(self.path("new/b.sqlite")))
        self.assertEqual(db.execute("SELECT count(DISTINCT metrics) FROM run").fetchone()[0], 3)
        db.close()  # what went through the export is the same text
        self.perfkit("baseline", "import", "new/b.sqlite", "third")  # a file of baselines, too
        self.assertEqual(len(self.runs("third")), 3)
        self.refused("baseline", "import", "none", saying="no such file")
        for content, saying in ((b"{}", "baseline export"), (b"{", "is not JSON"),
                                (b"SQLite format 3\0", "cut short")):
            with open(self.path("bad"), "wb") as out:
                out.write(content)
            self.refused("baseline", "import", "bad", saying=saying)
        session = exported["sessions"][1]
        for damaged, key, saying in ((session, "label", "baseline export"),
                                     (session["runs"][0]["metrics"], "iterations",
                                      "session 2: cannot read a kept run")):
            right, damaged[key] = damaged[key], [1]
            with open(self.path("bad"), "w") as out:
                json.dump(exported, out)
            damaged[key] = right
            self.refused("baseline", "import", "bad", "damaged", saying=saying)
        self.refused("baseline", "show", "damaged", saying="no baseline 'damaged'")

    def test_a_kept_run_is_small(self):
        """In the file a run takes a fraction of its text, as names repeat; and no page is wasted."""
        self.with_baseline()
        db = sqlite3.connect(self.path(".perfkit/baselines.sqlite"))
        kept = [row[0] for row in db.execute("SELECT metrics FROM run")]
        db.close()
        self.assertEqual(len(kept), 10)
        metrics = sum(len(json.loads(zlib.decompress(packed))["metrics"]) for packed in kept)
        size = os.path.getsize(self.path(".perfkit/baselines.sqlite"))
        self.assertLess(size, 32768 + metrics * 80, (size, metrics))
        self.assertLess(sum(map(len, kept)) * 3, sum(len(zlib.decompress(packed)) for packed in kept))

    def test_a_file_of_the_version_before(self):
        """Its runs are plain text. It is read, and becomes a file of this version when a run is added."""
        self.with_baseline()
        history = self.path(".perfkit/baselines.sqlite")
        db = sqlite3.connect(history)
        self.addCleanup(db.close)
        for id, packed in db.execute("SELECT id, metrics FROM run").fetchall():
            db.execute("UPDATE run SET metrics = ? WHERE id = ?", (zlib.decompress(packed).decode(), id))
        db.execute("PRAGMA user_version = 2")
        db.commit()
        self.perfkit("gate", "--baseline", "main", *self.candidate())
        self.assertEqual(db.execute("PRAGMA user_version").fetchone()[0], 2)
        self.perfkit("baseline", "save", "main", self.capture(77))
        self.assertEqual(db.execute("PRAGMA user_version").fetchone()[0], 3)
        self.assertEqual([row[0] for row in db.execute("SELECT typeof(metrics) FROM run ORDER BY id")],
                         ["text"] * 10 + ["blob"])
        self.perfkit("gate", "--baseline", "main", *self.candidate())

    def test_jobs_that_save_at_once_lose_nothing(self):
        files = [self.capture(seed) for seed in range(1, 13)]
        jobs = [subprocess.Popen([PERFKIT, "baseline", "save", "main", file], cwd=self.folder,
                                 env=environment(), stderr=subprocess.PIPE) for file in files]
        for job in jobs:
            said = job.communicate()[1]
            self.assertEqual(job.returncode, 0, said)
        self.assertEqual(len(self.runs()), len(files))

    def test_files_that_are_no_baselines(self):
        self.save(seeds=range(1, 4))
        good = content_of(self.path(".perfkit/baselines.sqlite"))
        file = self.capture(101)

        def both(content, saying):
            with open(self.path("b"), "wb") as out:
                out.write(content)
            for words in (("gate", "--baseline", "main", "--baselines", "b", file),
                          ("baseline", "--baselines", "b", "save", "main", file),
                          ("baseline", "--baselines", "b", "list")):
                self.refused(*words, saying=saying)
            self.assertEqual(content_of(self.path("b")), content)
        both(good[:len(good) // 2], "damaged or cut short")
        both(b"no database at all, only some words of text", "not a file of baselines")
        db = sqlite3.connect(self.path("other"))
        db.executescript("CREATE TABLE baseline(a); VACUUM;")
        db.close()
        both(content_of(self.path("other")), "another program")
        both(content_of(file), "a capture")
        for version in (1, -5):
            db = sqlite3.connect(self.path("earlier%d" % version))
            db.executescript("PRAGMA application_id = 0x50464b42; PRAGMA user_version = %d;"
                             "CREATE TABLE run(metrics BLOB);" % version)
            db.close()
            both(content_of(self.path("earlier%d" % version)), "earlier perfkit")
        self.refused("gate", "--baseline", "mian", file, saying="there is no baseline 'mian'")

    def test_metrics_that_are_damaged(self):
        self.save(seeds=range(1, 4))
        db = sqlite3.connect(self.path(".perfkit/baselines.sqlite"))
        self.addCleanup(db.close)
        for text in (b"", b"x", os.urandom(64), zlib.compress(b"x"), zlib.compress(bytes(100 << 20)), "[" * 100000, "{}", '{"perfkit_run": 1}',
                     '{"perfkit_run": 1, "perfkit_run": 1}', "\0"):
            db.execute("UPDATE run SET metrics = ? WHERE id = 2", (text,))
            db.commit()
            self.refused("gate", "--baseline", "main", self.capture(101), saying="session 2")
        whole = db.execute("SELECT metrics FROM run WHERE id = 1").fetchone()[0]
        db.execute("UPDATE run SET metrics = ? WHERE id = 2", (whole[:len(whole) // 2],))
        db.commit()
        self.refused("gate", "--baseline", "main", self.capture(101), saying="session 2")

    def test_bytes_that_were_changed(self):
        """Told, or without effect; never a crash."""
        self.save(seeds=range(1, 4))
        good = content_of(self.path(".perfkit/baselines.sqlite"))
        chance = random.Random(1)
        for _ in range(15):
            content = bytearray(good)
            for _ in range(chance.choice((1, 4, 64))):
                content[chance.randrange(100, len(content))] = chance.randrange(256)
            with open(self.path("b"), "wb") as out:
                out.write(content)
            done = subprocess.run([PERFKIT, "gate", "--baseline", "main", "--baselines", "b",
                                   self.capture(101)], cwd=self.folder, env=environment(),
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            self.assertIn(done.returncode, (0, 1, 2, 3), done.stderr)
            if done.returncode == 2:
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_names(self):
        self.refused("baseline", "save", "a\nb", self.capture(1), saying="control characters")
        self.refused("baseline", "save", "", self.capture(1), saying="an argument is empty")
        self.refused("baseline", "sav", "a", saying="did you mean 'save'")
        self.refused("baseline", "save", "a", saying="save NAME FILE")
        self.assertFalse(os.path.exists(self.path(".perfkit")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
