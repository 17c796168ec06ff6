"""The tools of the checks that need a GPU: a check that cannot fail proves nothing, and these run
where no GPU is."""
import contextlib
import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cuda"))
sys.dont_write_bytecode = True
import checking
import device_check
import device_parity

PERFKIT = os.path.join(os.environ["PERFKIT_E2E_BUILD"], "bin", "perfkit")
SECOND = 10**9


class Quiet(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="checking-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.report = checking.Report(brief=True)
        self.out = io.StringIO()
        redirect = contextlib.redirect_stdout(self.out)
        redirect.__enter__()
        self.addCleanup(redirect.__exit__, None, None, None)

    def failed(self):
        return [line["name"] for line in self.report.lines if line["state"] == "FAIL"]

    def capture(self, *statements):
        """A capture with perfkit's own tables, and rows."""
        path = os.path.join(self.folder, "capture.sqlite")
        subprocess.run([PERFKIT, "run", "-q", "-f", "-o", path, "--", "true"], check=True)
        db = checking.sqlite3.connect(path)
        for sql, rows in statements:
            db.executemany(sql, rows)
        db.commit()
        db.close()
        return checking.Capture(path)


class Running(Quiet):
    def run_checks(self, checks, *options):
        out = os.path.join(self.folder, "out")
        with mock.patch.object(sys, "argv", ["check", "place", out, "--brief", *options]):
            status = checking.main(checks, "about", lambda arguments: arguments.place)
        try:
            with open(os.path.join(out, "results.json"), encoding="utf-8") as file:
                return status, json.load(file)["lines"]
        except FileNotFoundError:
            return status, []

    @staticmethod
    def good(report, context):
        report.equal("context", context, "place")

    @staticmethod
    def bad(report, _):
        report.equal("numbers", 1, 2)

    @staticmethod
    def broken(_report, _context):
        raise KeyError("no such thing")

    @staticmethod
    def cannot(_report, _context):
        raise checking.Skip("no GPU")

    def test_one_failure_does_not_stop_the_rest(self):
        checks = [checking.Check(name, 1, getattr(self, name)) for name in
                  ("bad", "broken", "cannot", "good")]
        status, lines = self.run_checks(checks)
        self.assertEqual(status, 1)
        self.assertEqual([(line["state"], line["name"]) for line in lines], [
            ("FAIL", "bad: numbers"), ("FAIL", "broken: ran to its end"), ("skip", "cannot: all"),
            ("ok", "good: context")])

    def test_statuses(self):
        good, cannot = (checking.Check(name, 5, getattr(self, name)) for name in ("good", "cannot"))
        self.assertEqual(self.run_checks([good, cannot])[0], 0)
        self.assertEqual(self.run_checks([cannot])[0], 77)
        self.assertEqual(self.run_checks([good], "--budget", "1")[0], 77)
        self.assertEqual(self.run_checks([good, cannot], "--only", "can")[0], 77)

    def test_a_program_that_hangs_is_ended_with_its_children(self):
        with self.assertRaises(subprocess.TimeoutExpired):
            checking.run(["sh", "-c", "sleep 600 & sleep 600"], 0.3)


class Ticks(Quiet):
    """20 launches, 100 ms apart; recorded from 0.5 s to 1.5 s."""

    def compare(self, there):
        ticks = [[i * SECOND // 10, i * SECOND // 10 + 1000, i * SECOND // 10 + 2000]
                 for i in range(20)]
        db = self.capture(
            ("DELETE FROM launch_config", [()]),
            ("INSERT INTO launch_config (id, grid_x) VALUES (?, ?)", [(i + 1, i + 1) for i in
                                                                     range(20)]),
            ("INSERT INTO kernel (config) VALUES (?)", [(i + 1,) for i in there]))
        device_check.compare_ticks(self.report, db, ticks, [(SECOND // 2, 3 * SECOND // 2)])
        return self.failed()

    def test_right(self):
        self.assertEqual(self.compare(range(6, 15)), [])

    def test_late_at_the_start_of_a_window(self):
        self.assertEqual(self.compare(range(8, 15)), [])  # 250 ms are allowed

    def test_missing(self):
        self.assertEqual(self.compare([6, 7, 8, 9, 11, 12, 13, 14]),
                         ["launches inside that are missing"])

    def test_outside(self):
        self.assertEqual(self.compare([2, *range(6, 15)]), ["launches outside that were recorded"])

    def test_twice(self):
        self.assertEqual(self.compare([6, *range(6, 15)]), ["launches recorded twice"])


class Reading(Quiet):
    def test_progress_goes_round(self):
        """The file of cuda_full_speed keeps the newest samples."""
        path, count = os.path.join(self.folder, "progress"), device_check.Progress.SAMPLES + 3
        raw = bytearray(64 + 16 * device_check.Progress.SAMPLES)
        struct.pack_into("<6Q", raw, 0, 77, 1000, 5, 900, 4, count)
        for i in range(count):
            struct.pack_into("<2Q", raw, 64 + 16 * (i % device_check.Progress.SAMPLES), i, i + 10**6)
        with open(path, "wb") as file:
            file.write(raw)
        progress = device_check.Progress(path)
        self.assertEqual((progress.pid, progress.launched, progress.complete), (77, 1000, 900))
        self.assertEqual(progress.samples[0], (3, 3 + 10**6))
        self.assertEqual(progress.samples[-1], (count - 1, count - 1 + 10**6))

    def test_launches_and_windows(self):
        db = self.capture(
            ("INSERT INTO string (id, value) VALUES (?, ?)", [(1001, "k"), (1002, "k(int)")]),
            ("INSERT INTO launch_config (id, name, demangled, grid_x, grid_y, grid_z, block_x, block_y, "
             "block_z, cluster_x, shared_dynamic) VALUES (?, 1001, 1002, 2, 1, 1, 64, 1, 1, ?, 0)",
             [(1, None), (2, 4), (3, 1)]),
            ("INSERT INTO kernel (config, flags) VALUES (?, ?)", [(1, None), (1, 1), (2, None),
                                                                  (3, 2)]))
        shape = "k(int) grid 2,1,1 block 64,1,1 cluster %d dynamic 0%s"
        self.assertEqual(device_parity.launches(db),
                         {shape % (0, ""): 2, shape % (0, " c"): 1, shape % (4, ""): 1})
        self.assertEqual(db.kernels(), {"k(int)": 4})
        self.assertEqual(device_check.windows(db), [])

    def test_a_trust_block_that_does_not_close(self):
        db = self.capture(("INSERT INTO capture_health (subject, item, value) VALUES (?, ?, ?)",
                           [("launch", "called", 5), ("launch", "remainder", 2)]))
        checking.trusted(self.report, db)
        self.assertEqual(self.failed(), ["launch remainder"])

    def test_an_option_that_perfkit_lacks(self):
        recorder = checking.Recorder(os.path.dirname(PERFKIT), self.folder)
        with self.assertRaises(checking.Skip):
            recorder.line("x", ["--no-such-option=1"], ["true"])
        self.assertIn("--wait=all", recorder.line("x", ["--wait=all"], ["true"])[0])


if __name__ == "__main__":
    unittest.main()
