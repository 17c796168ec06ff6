"""perfkit run --overhead=measure: pauses in which only the iterations are recorded; what is counted
stays exact, and reports say what recording cost. --overhead=PERCENT: whole iterations are left out,
and what the run did is estimated. Nothing here depends on how fast anything is."""
import json
import os
import sqlite3

import e2e

PAUSE, SAMPLE = 6, 7  # recording.reason


class Overhead(e2e.Case):
    def begin(self, how="measure"):
        """A recorded program that does steps when it is told to."""
        return self.start_stepped(self.new_capture(), ("--overhead=" + how,))

    def steps_until(self, program, reached):
        for _ in range(600):
            if reached():
                return
            self.go(program, "steps 50 2")
            program.steps += 50
        self.fail("it never came")

    def pauses(self, program, reason=PAUSE):
        """Pauses that have ended, of the capture that is being written."""
        db = sqlite3.connect("file:%s?mode=ro" % program.capture, uri=True)
        try:
            return db.execute("SELECT count(*) FROM recording WHERE begins AND reason = ?",
                              (reason,)).fetchone()[0]
        finally:
            db.close()

    def end(self, program):
        program.stdin.close()
        self.assertEqual(program.wait(e2e.TIMEOUT), 0)
        self.assertNotIn("perfkit", program.stderr.read())
        return self.open(program.capture)

    def ranges(self, db, name="step"):
        return db.execute(
            "SELECT start, start + duration FROM range JOIN string ON string.id = name "
            "WHERE value = ? ORDER BY start", (name,)).fetchall()

    def paused(self, db, reason=PAUSE):
        """[(begin, end)] of the pauses."""
        rows = db.execute("SELECT start, begins FROM recording WHERE reason = ? ORDER BY start, id",
                          (reason,)).fetchall()
        self.assertEqual([begins for _, begins in rows], [0, 1] * (len(rows) // 2) +
                         [0] * (len(rows) % 2))
        end = self.one(db, "SELECT duration FROM capture")
        times = [start for start, _ in rows] + [end]
        return list(zip(times[0::2], times[1::2]))

    def report(self, capture, *options):
        result = self.perfkit("report", *options, capture)
        self.assertEqual(result.status, 0, result.err.decode())
        return result.out.decode()

    def test_measured(self):
        program = self.begin()
        self.steps_until(program, lambda: self.pauses(program) >= 3)
        db = self.end(program)
        self.assert_conserved(db)
        pauses = self.paused(db)
        self.assertGreaterEqual(len(pauses), 3)
        # All iterations are there, and what happened in them only outside of pauses.
        steps = self.ranges(db)
        self.assertEqual(len(steps), program.steps)
        inside = [s for s in steps if any(b <= s[0] and s[1] <= e for b, e in pauses)]
        beside = [s for s in steps if not any(s[0] < e and b < s[1] for b, e in pauses)]
        straddling = program.steps - len(inside) - len(beside)
        self.assertGreater(len(inside), 0)
        self.assertLessEqual(straddling, 2 * len(pauses))
        marks = self.one(db, "SELECT count(*) FROM marker")
        self.assertLessEqual(abs(marks - len(beside)), straddling)
        if e2e.has_opencl():
            fills = self.one(db, "SELECT count(*) FROM memset")
            self.assertLessEqual(abs(fills - len(beside)), straddling)
        found = json.loads(self.report(program.capture, "--format=json"))["findings"]
        overhead = found["overhead"]
        self.assertEqual(overhead["pauses"], len(pauses))
        text = self.report(program.capture, "--all")
        self.assertIn("recording pauses for about 5 % of the time", " ".join(text.split()))
        if not e2e.has_opencl():
            return
        self.assertIn("Recording overhead:", text)
        if overhead["pauses_used"] < 3:  # the machine was too busy for two iterations in a pause
            self.assertIsNone(overhead["source"])
        else:
            self.assertEqual(overhead["source"], "measured")
            self.assertLessEqual(overhead["low"], overhead["ratio"])
            self.assertLessEqual(overhead["ratio"], overhead["high"])
            self.assertGreater(overhead["unrecorded_ns"], 0)
            self.check_without_cupti(program.capture, overhead)

    def check_without_cupti(self, capture, measured):
        """The same of a CUDA device, of which nothing was timed before CUPTI was on: only a lower bound."""
        db = sqlite3.connect(capture)
        with db:
            db.execute("UPDATE device SET api = 'cuda'")
        db.close()
        overhead = json.loads(self.report(capture, "--format=json"))["findings"]["overhead"]
        self.assertEqual(overhead["low"], measured["low"])
        for key in ("ratio", "high", "unrecorded_ns", "paused"):
            self.assertIsNone(overhead[key], key)
        self.assertIn("Recording overhead: at least %.2fx, measured" % measured["low"], self.report(capture))

    def test_budget(self):
        """What is recorded is whole iterations; what is estimated from them is true."""
        program = self.begin("20%")
        self.steps_until(program, lambda: self.pauses(program, SAMPLE) >= 4)
        db = self.end(program)
        self.assert_conserved(db)
        gaps = self.paused(db, SAMPLE)
        steps = self.ranges(db)
        self.assertEqual(len(steps), program.steps)
        kept = [s for s in steps if not any(b <= s[0] < e for b, e in gaps)]
        self.assertLess(len(kept), len(steps))
        self.assertFalse([s for s in steps for b, e in gaps if s[0] < b < s[1] or s[0] < e < s[1]])
        self.assertEqual(self.one(db, "SELECT count(*) FROM marker"), len(kept))
        text = self.report(program.capture, "--all")
        self.assertIn("counts and totals of the run are estimates", " ".join(text.split()))
        listed = " ".join(self.report(program.capture, "--iterations").split())
        self.assertRegex(listed, "%s more iterations? (was|were) not recorded [^.]*: iterations are numbered among the recorded ones"
                         % format(len(steps) - len(kept), ","))
        if not e2e.has_opencl():
            return
        self.assertEqual(self.one(db, "SELECT count(*) FROM memset"), len(kept))
        self.assertIn("Estimates for the whole run: from %s" % len(kept), text.replace(",", ""))
        report = json.loads(self.report(program.capture, "--format=json"))
        overhead = report["findings"]["overhead"]
        self.assertEqual(overhead["source"], "sampled")
        self.assertEqual(overhead["budget_kept"], overhead["of_run"] <= 0.2)
        words = " ".join(text.split())
        self.assertIn("the budget of 20 %% was %s: recording added" % (
            "kept" if overhead["budget_kept"] else "not kept"), words)
        self.assertEqual(overhead["recorded_iterations"], len(kept))
        self.assertEqual(overhead["unrecorded_iterations"], len(steps) - len(kept))
        rows = {row["kind"]: row for row in report["estimates"]["rows"]}
        self.assertEqual(rows["memset"]["recorded"], len(kept))
        for count in ("count", "count_low", "count_high"):
            self.assertAlmostEqual(rows["memset"][count], program.steps, 3)
        # A baseline of exact counts cannot be compared with a sample.
        whole = self.start_stepped(self.new_capture(), ())
        self.go(whole, "steps 30 1")
        self.end(whole)
        diff = json.loads(self.perfkit("diff", whole.capture, program.capture, "--json").out)
        counts = [m for m in json.dumps(diff).split('"reason": ') if m.startswith('"sampled"')]
        self.assertGreater(len(counts), 0)
        text = " ".join(self.perfkit("diff", whole.capture, program.capture).out.decode().split())
        self.assertRegex(text, "[0-9]+ metrics? not compared: a run is a sample of its iterations")
        self.assertNotIn("Counts, bytes and energy that differ", text)

    def test_a_compiler_has_no_iterations(self):
        """XLA names what it does long before a JAX program's own loop begins."""
        program = self.begin()
        for _ in range(16):
            self.go(program, "compile 50 2")
        self.steps_until(program, lambda: self.pauses(program) >= 3)
        db = self.end(program)
        self.assertEqual(len(self.ranges(db)), program.steps)  # also those in pauses

    def test_stop_before_iterations_are_known(self):
        """perfkit goes on waiting for them, and ends with the program."""
        program = self.begin("20%")
        self.ctl("stop", program)
        self.go(program, "steps 100 2")
        self.assertFalse(self.status(program)["recording"])
        db = self.end(program)
        self.assert_conserved(db)
        self.assertEqual(self.one(db, "SELECT count(*) FROM range"), 0)

    def test_a_budget_of_nothing(self):
        capture = self.new_capture()
        self.plain(self.run_line(["/bin/true"], capture, ("--overhead=2%",)))
        self.assertNotIn("not kept", " ".join(self.report(capture, "--all").split()))

    def test_budgets_that_are_none(self):
        for budget in ("0.1%", "60%", "2%%", "-3%", "nan", "x", "", " 2%", "0x2%", "2e0%", "+2%"):
            result = self.plain(self.run_line(["/bin/true"], self.new_capture(),
                                              ("--overhead=" + budget,)))
            self.assertEqual(result.status, 125, budget)
            self.assertIn(b"--overhead", result.err)

    def test_stop_in_a_pause_holds(self):
        program = self.begin()
        # 100 ms each, so that the pauses, at least four of them long, are easily hit.
        for _ in range(600):
            self.go(program, "steps 1 100")
            program.steps += 1
            if not self.status(program)["recording"]:
                break
        self.ctl("stop", program)
        windows = self.status(program)["windows"]
        self.go(program, "steps 10 100")
        status = self.status(program)
        self.assertFalse(status["recording"])
        self.assertIn(b": not recording", self.ctl("status", program).out)
        self.assertEqual(status["windows"], windows)
        self.ctl("start", program)
        self.go(program, "steps 1 1")
        db = self.end(program)
        self.assert_conserved(db)
        self.assertLess(len(self.ranges(db)), program.steps + 11)
        self.assertEqual(db.execute("SELECT begins, reason FROM recording ORDER BY start, id")
                         .fetchall()[-1], (1, 2))

    def test_no_pause_ends_a_stop(self):
        program = self.begin()
        self.steps_until(program, lambda: self.pauses(program) >= 1)
        self.steps_until(program, lambda: self.status(program)["recording"])
        self.ctl("stop", program)
        self.go(program, "steps 1000 2")
        self.assertFalse(self.status(program)["recording"])
        db = self.end(program)
        self.assert_conserved(db)
        self.assertLess(len(self.ranges(db)), program.steps + 1000)

    def test_short_runs_say_nothing(self):
        result = self.record(e2e.target("host"), options=("--overhead=measure",), status=None)
        db = self.open(result.capture)
        self.assertEqual(self.one(db, "SELECT count(*) FROM recording WHERE reason = ?", PAUSE), 0)
        self.assertIn("the recording overhead was not measured: no NVTX range of the program repeated",
                      " ".join(self.report(result.capture, "--all").split()))

    def test_what_does_not_go_together(self):
        for other in ("--dormant", "--delay=1s", "--duration=1s", "--capture-range=nvtx:step",
                      "--trace=opencl"):
            capture = self.new_capture()
            result = self.plain(self.run_line(["/bin/true"], capture,
                                              ("--overhead=measure", other)))
            self.assertEqual(result.status, 125, other)
            self.assertIn(b"--overhead=measure", result.err)
            self.assertFalse(os.path.exists(capture))

    def status(self, program):
        return json.loads(self.ctl("status", program, "--json").out)

    def ctl(self, word, program, *options):
        result = self.perfkit("ctl", word, program.capture, *options)
        self.assertEqual(result.status, 0, result.err.decode())
        return result


if __name__ == "__main__":
    e2e.main()
