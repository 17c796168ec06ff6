"""Bad input: files that are no capture, newer, cut short or damaged; spools cut short or damaged. One
clear line on standard error, the right status, no crash, and what is whole is kept."""
import json
import os
import random
import shutil
import sqlite3

import e2e

FORMATS = (("--format", "text"), ("--format", "json"), ("--format", "csv"), ("--format", "markdown"))
FILES = ("--html", "--chrome-trace", "--flamegraph")


class BadCase(e2e.Case):
    def refused(self, result, status, *words):
        """One line that names the command, and nothing on standard output."""
        error = result.err.decode("utf-8")
        self.assertEqual(result.status, status, error)
        self.assertEqual(error.count("\n"), 1, error)
        self.assertRegex(error, r"^perfkit \w+: ")
        for word in words:
            self.assertIn(word, error)
        self.assertEqual(result.out, b"")


class Reports(BadCase):
    def setUp(self):
        super().setUp()
        self.good = self.record(e2e.target("names"), "ranges", 2, 300).capture

    def every_report(self, capture, status, *words):
        for option in FORMATS:
            self.refused(self.perfkit("report", *option, capture), status, *words)
        for option in FILES:
            out = self.path("out")
            self.refused(self.perfkit("report", option, out, capture), status, *words)
            self.assertFalse(os.path.exists(out), "half a report is left behind")

    def write(self, name, data):
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def test_not_a_capture(self):
        self.every_report(self.write("text.sqlite", b"hello, I am no database\n" * 100), 2,
                          "text.sqlite is not a perfkit capture")
        self.every_report(self.write("empty.sqlite", b""), 2, "is empty")
        os.mkdir(self.path("folder.sqlite"))
        self.every_report(self.path("folder.sqlite"), 2, "folder.sqlite is not a regular file")
        self.every_report(self.path("missing.sqlite"), 2, "no such file")
        self.every_report("/dev/null", 2)
        other = sqlite3.connect(self.path("other.sqlite"))
        other.execute("CREATE TABLE t(x)")
        other.commit()
        other.close()
        other = self.path("other.sqlite")
        self.every_report(other, 2, "`perfkit import %s`" % other)
        trace = self.write("trace.json", b'{"traceEvents": []}')
        self.every_report(trace, 2, "`perfkit import %s`" % trace)

    def test_newer_version(self):
        db = sqlite3.connect(self.good)
        version = db.execute("PRAGMA user_version").fetchone()[0]
        db.execute("PRAGMA user_version = %d" % (version + 1))
        db.commit()
        db.close()
        self.every_report(self.good, 2, "newer perfkit", "update perfkit")

    def test_cut_short(self):
        with open(self.good, "rb") as file:
            data = file.read()
        for size in (16, 99, 100, 512, 4095, 4096, 8192, len(data) // 2, len(data) - 1):
            with self.subTest(size=size):
                self.every_report(self.write("cut.sqlite", data[:size]), 2, "cut short")

    def test_bits_flipped(self):
        """Damage anywhere: refused in one line, or reported as far as it can be read; never a crash,
        never half of a machine-readable report with status 0."""
        with open(self.good, "rb") as file:
            data = file.read()
        choose = random.Random()
        seed = int(os.environ.get("PERFKIT_E2E_SEED", choose.randrange(1 << 30)))
        choose.seed(seed)
        rounds, refused = (3000 if e2e.LONG else 120), 0
        for i in range(rounds):
            bad = bytearray(data)
            for _ in range(choose.choice((1, 1, 8, 200))):
                # half of them where the structure is: the first page and the heads of pages
                at = choose.randrange(len(bad))
                if choose.random() < 0.5:
                    at = at // 4096 * 4096 + choose.randrange(120)
                bad[at % len(bad)] ^= 1 << choose.randrange(8)
            path = self.write("flipped.sqlite", bad)
            option = choose.choice(FORMATS + tuple((o, self.path("out")) for o in FILES))
            result = self.perfkit("report", *option, path)
            with self.subTest(round=i, seed=seed, option=option):
                self.assertIn(result.status, (0, 1, 2), result.err)
                if result.status:
                    refused += 1
                    self.assertEqual(result.err.count(b"\n"), 1, result.err)
                    self.assertTrue(result.err.startswith(b"perfkit report: "))
                elif option[1] == "json":
                    json.loads(result.out.decode("utf-8"))
                elif option[0] == "--chrome-trace":
                    with open(self.path("out"), "rb") as file:
                        json.loads(file.read().decode("utf-8"))
        e2e.say("%d damaged captures: %d refused, %d reported (seed %d)" %
                (rounds, refused, rounds - refused, seed))
        self.assertGreater(refused, 0)

    def test_outputs_that_cannot_be_written(self):
        for option in FILES:
            self.refused(self.perfkit("report", option, "/nonexistent/out", self.good), 1,
                         "/nonexistent/out")
            self.refused(self.perfkit("report", option, self.folder, self.good), 1, "folder")
        if os.path.exists("/dev/full"):
            for option in FORMATS:
                with open("/dev/full", "wb") as full:
                    result = e2e.subprocess.run([e2e.PERFKIT, "report", *option, self.good],
                                                stdout=full, stderr=e2e.subprocess.PIPE,
                                                env=e2e.clean_environment())
                self.assertEqual(result.returncode, 1)
                self.assertEqual(result.stderr.count(b"\n"), 1, result.stderr)


class Runs(BadCase):
    def run_refused(self, status, *words, command=("true",), options=()):
        before = os.listdir(self.folder)
        line = [e2e.PERFKIT, "run", *options, "--", *command]
        self.refused(self.plain(line), status, *words)
        self.assertEqual(os.listdir(self.folder), before)
        self.assertEqual(self.spool_folders(), [])

    def test_commands_that_cannot_be_started(self):
        spool = "--spool-dir=" + self.spools
        self.run_refused(127, "no-such-program", command=["no-such-program"], options=[spool])
        self.run_refused(127, "./missing", command=["./missing"], options=[spool])
        self.run_refused(126, "folder", command=[self.folder], options=[spool])

    def test_places_that_cannot_be_written(self):
        spool = "--spool-dir=" + self.spools
        self.run_refused(125, "/nonexistent", options=[spool, "-o", "/nonexistent/a.sqlite"])
        self.run_refused(125, "folder", options=[spool, "-o", self.folder])
        self.run_refused(125, "/nonexistent", options=["--spool-dir=/nonexistent"])
        self.run_refused(125, "/proc", options=[spool, "-o", "/proc/a.sqlite"])


class Spools(BadCase):
    """Spools of a perfkit that was killed, cut short and damaged, through `perfkit recover`."""
    COUNT = 3000

    def setUp(self):
        super().setUp()
        e2e.become_subreaper()
        self.progress = e2e.make_progress(self.path("progress"))
        process = self.start(e2e.target("records"), "--nvtx", 3, "--count", self.COUNT, "--pause", 3000,
                             "--progress", self.progress)
        e2e.wait_until(lambda: any(n > 1000 for n in e2e.read_progress(self.progress)[1]))
        process.kill()
        process.wait()
        e2e.reap_orphans()
        self.folder_of_spools, = self.spool_folders()
        self.live = process.capture
        self.copies = 0

    def copy(self):
        """The interrupted capture and its spools, once more. Returns the folder and the capture."""
        self.copies += 1
        folder = self.path("spool-%d" % self.copies)
        capture = self.path("copy-%d.sqlite" % self.copies)
        shutil.copytree(self.folder_of_spools, folder)
        for suffix in ("",) + e2e.SIDE_SUFFIXES:
            if os.path.exists(self.live + suffix):
                shutil.copy(self.live + suffix, capture + suffix)
        with open(os.path.join(folder, "capture"), "w") as file:
            file.write("live %s\nfinal %s\n" % (capture, capture))
        return folder, capture

    def spool_file(self, folder):
        name, = [name for name in os.listdir(folder) if name.endswith(".spool")]
        return os.path.join(folder, name)

    def recover(self, folder, capture):
        """Recover must end by itself. Returns the marks of a capture that it made, else None."""
        result = self.perfkit("recover", "--quiet", folder)
        self.assertIn(result.status, (0, 1), result.err)
        self.assertLessEqual(result.err.count(b"\n"), 1, result.err)
        if result.status:
            self.assertTrue(result.err.startswith(b"perfkit recover: "), result.err)
            self.assertTrue(os.path.isdir(folder), "nothing may be thrown away")
            return None
        db = sqlite3.connect("file:%s?mode=ro" % capture, uri=True)
        self.addCleanup(db.close)
        self.assertEqual(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        self.assertEqual(db.execute("SELECT state FROM capture").fetchone()[0], "recovered")
        self.assertEqual(self.perfkit("report", capture).status, 0)
        rows, distinct = db.execute("SELECT count(*), count(DISTINCT payload) FROM marker").fetchone()
        ranges = db.execute("SELECT count(*) FROM range").fetchone()[0]  # a mark may turn into one
        if rows + ranges < 3 * self.COUNT:  # what is missing is said
            self.assertTrue(db.execute(
                "SELECT 1 FROM capture_health WHERE value <> 0 AND item IN ('remainder', 'damaged', "
                "'dropped', 'definitions_dropped')").fetchall(),
                db.execute("SELECT * FROM capture_health").fetchall())
        return db, rows, distinct

    def discard(self, folder, capture):
        shutil.rmtree(folder, ignore_errors=True)
        for suffix in ("",) + e2e.SIDE_SUFFIXES:
            if os.path.exists(capture + suffix):
                os.remove(capture + suffix)

    def test_whole(self):
        """The copies are good: what the other tests break is what they mean to break."""
        folder, capture = self.copy()
        _, rows, distinct = self.recover(folder, capture)
        self.assertEqual((rows, distinct), (3 * self.COUNT, 3 * self.COUNT))
        self.assertFalse(os.path.exists(folder))

    def test_cut_short(self):
        size = os.path.getsize(self.spool_file(self.folder_of_spools))
        cuts = [("spool", cut) for cut in (0, 100, 4095, 4096, 50000, size // 4, size // 2, size - 1)]
        cuts += [("lifecycle", cut) for cut in (0, 100, 4095, 4096, 4200)]
        for what, cut in cuts:
            with self.subTest(file=what, bytes=cut):
                folder, capture = self.copy()
                os.truncate(self.spool_file(folder) if what == "spool"
                            else os.path.join(folder, what), cut)
                recovered = self.recover(folder, capture)
                if recovered:
                    self.assertEqual(recovered[1], recovered[2])
                self.discard(folder, capture)

    def test_missing_parts(self):
        for name in ("lifecycle", None):
            with self.subTest(missing=name or "spool"):
                folder, capture = self.copy()
                os.remove(os.path.join(folder, name) if name else self.spool_file(folder))
                recovered = self.recover(folder, capture)
                if name and recovered:
                    self.assertEqual(recovered[1:], (3 * self.COUNT, 3 * self.COUNT))
                self.discard(folder, capture)

    def test_bits_flipped(self):
        choose = random.Random()
        seed = int(os.environ.get("PERFKIT_E2E_SEED", choose.randrange(1 << 30)))
        choose.seed(seed)
        rounds, made, least = (1000 if e2e.LONG else 40), 0, None
        for i in range(rounds):
            folder, capture = self.copy()
            with self.subTest(round=i, seed=seed):
                victim = self.spool_file(folder)
                if choose.random() < 0.2:
                    victim = os.path.join(folder, "lifecycle")
                with open(victim, "r+b") as file:
                    size = os.path.getsize(victim)
                    for _ in range(choose.choice((1, 4, 64))):
                        at = choose.randrange(size)
                        if choose.random() < 0.5:  # the headers of the file and of chunks
                            at = choose.choice((0, 36864 + at // 65536 * 65536)) + choose.randrange(200)
                        file.seek(min(at, size - 1))
                        byte = file.read(1)
                        file.seek(-1, os.SEEK_CUR)
                        file.write(bytes([byte[0] ^ 1 << choose.randrange(8)]))
                recovered = self.recover(folder, capture)
                if recovered:
                    made += 1
                    least = min(recovered[1], least if least is not None else recovered[1])
                    recovered[0].close()
            self.discard(folder, capture)
        e2e.say("%d damaged spools: %d captures made, at least %s of %d records (seed %d)" %
                (rounds, made, least, 3 * self.COUNT, seed))
        self.assertGreater(made, 0)

    def test_bit_of_a_head(self):
        """Whatever a mark turns into, it is read as something or the capture says that it is not."""
        with open(self.spool_file(self.folder_of_spools), "rb") as file:
            whole = file.read()
        head = bytes((48, 0, 23, 1, 0, 0, 0, 0))  # size, type WIRE_MARK, flags, aux
        at = whole.index(head, len(whole) // 8)
        for bit in range(24):
            with self.subTest(bit=bit):
                folder, capture = self.copy()
                with open(self.spool_file(folder), "r+b") as file:
                    file.seek(at + bit // 8)
                    file.write(bytes([head[bit // 8] ^ 1 << bit % 8]))
                recovered = self.recover(folder, capture)
                self.assertIsNotNone(recovered)
                recovered[0].close()
                self.discard(folder, capture)

    def test_folders_that_are_no_spool(self):
        self.refused(self.perfkit("recover", self.path("missing")), 1, "missing")
        self.refused(self.perfkit("recover", self.folder), 1, "not a spool folder")
        self.refused(self.perfkit("recover", self.progress), 1, "not a folder")


if __name__ == "__main__":
    e2e.main()
