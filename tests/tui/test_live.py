"""perfkit top beside a program that is being recorded: what it adds up is what the report says, and
it disturbs nothing, however it is left."""
import json
import os
import re
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import e2e  # noqa: E402
from test_screen import Terminal  # noqa: E402

FEED = os.path.join(e2e.BUILD, "bin", "bench_top_feed")


class Live(e2e.Case):
    def watch(self, capture, *words):
        top = subprocess.Popen([e2e.PERFKIT, "top", "--json", "--refresh", "100ms", *words, capture],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=e2e.clean_environment())
        self.addCleanup(self._end, top)
        self.addCleanup(top.stdout.close)
        self.addCleanup(top.stderr.close)
        return top

    def next_look(self, top):
        line = top.stdout.readline()
        if not line:
            self.fail("top ended: %r" % (top.communicate(timeout=e2e.TIMEOUT),))
        return json.loads(line)

    def assert_same_rows(self, last, report, table, identity):
        """A key that both have is of the same quantity; all_ns and all_count are the report's, whatever the window."""
        wanted = {identity(row): row for row in report[table]["rows"]}
        seen = {identity(row): row for row in last[table]["rows"]}
        self.assertEqual(set(seen), set(wanted))
        for name, row in seen.items():
            self.assertEqual((row["all_count"], row["all_ns"]), (wanted[name]["count"], wanted[name]["total_ns"]))
            for key in set(row) & set(wanted[name]) - {"p95_ns"}:  # from a histogram
                if isinstance(row[key], float):
                    self.assertAlmostEqual(row[key], wanted[name][key], 9, msg=key)
                else:
                    self.assertEqual(row[key], wanted[name][key], key)

    def assert_same_as_report(self, last, capture):
        report = json.loads(self.perfkit("report", "--json", "--all", capture).out)
        self.assert_same_rows(last, report, "kernels", lambda row: row["name"])
        self.assert_same_rows(last, report, "transfers", lambda row: (row["name"], row.get("memory") or " > ".join(
            row[end] or "unknown" for end in ("source", "target") if row["name"] != "memset" or end == "target")))
        self.assertEqual(last["totals"]["wall_ns"], report["wall_ns"])

    def test_watched_to_the_end_and_left_in_the_middle(self):
        process = self.start(FEED, 20000, 4, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        self.wait_for_capture(process)
        leaving = self.watch(process.capture)
        staying = self.watch(process.capture, "--window", "all", "--view", "all")
        self.assertIn("state", self.next_look(leaving))
        leaving.kill()  # in the middle, unless the machine is very busy
        objects = [json.loads(line) for line in staying.stdout]
        out, err = process.communicate(timeout=e2e.TIMEOUT)
        self.assertEqual((process.returncode, err), (0, b""))
        self.assertEqual(json.loads(out)["events"], 80000)
        self.assertEqual(staying.wait(), 0)
        db = self.open(process.capture)  # one file with nothing beside it
        self.assert_conserved(db)
        last = objects[-1]
        self.assertEqual((last["state"], last["whole"]), ("finished", True))
        self.assertEqual(last["totals"]["kernels"], 36000)
        self.assertEqual(last["health_numbers"]["dropped"], 0)
        counts = [o["totals"]["kernels"] for o in objects]
        self.assertEqual(counts, sorted(counts))
        self.assert_same_as_report(last, process.capture)

    def test_a_recorder_that_is_killed(self):
        process = self.start(FEED, 2000, 60, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             start_new_session=True)
        self.wait_for_capture(process)
        top = self.watch(process.capture)
        kernels = 0
        while kernels == 0:
            kernels = self.next_look(top)["totals"]["kernels"]
        process.kill()
        process.wait()
        last = [json.loads(line) for line in top.stdout][-1]
        os.killpg(process.pid, signal.SIGKILL)
        self.assertEqual(last["state"], "interrupted")
        self.assertGreater(last["totals"]["kernels"], 0)
        self.assertEqual(top.wait(), 0)

    def test_started_by_top(self):
        capture = self.path("mine.sqlite")
        done = self.perfkit("top", "--json", "--refresh", "100ms", "--view",
                            "kernels,transfers", "-o", capture, "--",
                            FEED, "2000", "1")
        self.assertEqual(done.status, 0)
        self.assertRegex(done.err, rb"^perfkit run: recorded 900 kernel launches.*\nperfkit run: .*mine.sqlite .*\n$")
        last = json.loads(done.out.splitlines()[-1])
        self.assertEqual((last["state"], last["totals"]["kernels"]), ("finished", 900))
        with open(self.path("mine.out")) as file:
            self.assertIn('"events": 2000', file.read())
        self.assert_same_as_report(last, capture)

    def test_options_of_run(self):
        capture = self.path("options.sqlite")
        for _ in range(2):  # --force replaces the first one
            done = self.perfkit("top", "--json", "-q", "-k", "kernel_1$", "--force", "--view", "kernels", "-o", capture, "--", FEED, "2000", "1")
            self.assertEqual((done.status, done.err), (0, b""))  # -q is that of perfkit run
        db = self.open(capture)
        self.assertEqual(db.execute("SELECT kernel_filter FROM capture").fetchone()[0], "kernel_1$")
        capture = self.path("both.sqlite")  # --delay is that of perfkit run, --iteration also with --ring
        done = self.perfkit("top", "--json", "-q", "--delay=1ms", "-i", "step", "--view", "kernels", "-o", capture, "--", FEED, "2000", "1")
        self.assertEqual((done.status, done.err), (0, b""))
        self.assertEqual(self.open(capture).execute("SELECT count(*) FROM recording WHERE begins AND reason = 1").fetchone()[0], 1)
        done = self.perfkit("top", "--json", "-q", "--ring=60s", "--iteration=step", "-o", self.path("ring.sqlite"), "--", FEED, "2000", "1")
        self.assertEqual((done.status, done.err), (0, b""))
        done = self.perfkit("top", "--json", "--no-such-option", "--", FEED, "2000", "1")
        self.assertEqual(done.status, 2)

    def test_a_program_that_fails(self):
        done = self.perfkit("top", "--json", "-o", self.path("fails.sqlite"), "--", "sh", "-c", FEED + " 2000 1; exit 3")
        self.assertIn(b"the program ended with status 3", done.err)
        self.assertEqual(done.status, 3)

    def test_a_finished_file_is_whole_and_the_same_each_time(self):
        capture = self.path("finished.sqlite")
        self.perfkit("run", "-q", "-o", capture, "--", FEED, "60000", "2")
        once = [self.perfkit("top", "--once", "--view", view, capture).out
                for view in ("ranges", "findings", "kernels") for _ in range(2)]
        for first, second in zip(once[::2], once[1::2]):
            self.assertEqual(first, second)
            self.assertIn(b"Window all", first)
            self.assertNotIn(b" of the last ", first)
        last, again = (json.loads(self.perfkit("top", "--json", "--view", "all", capture).out) for _ in range(2))
        for key in ("kernels", "streams", "transfers", "memory", "ranges", "processes", "findings", "host", "totals"):
            self.assertEqual(last[key], again[key], key)
        self.assertEqual(last["window_s"], 0)
        self.assert_same_as_report(last, capture)
        report = json.loads(self.perfkit("report", "--json", "--all", capture).out)
        kept, more = [], []  # a row of each rule is first
        for row in report["findings"]["rows"]:
            (more if any(row["rule"] == first["rule"] for first in kept) else kept).append(row)
        self.assertEqual([(row["rule"], row["severity"], row["bound_ns"]) for row in last["findings"]["rows"]],
                         [(row["rule"], row["severity"], row["bound_ns"]) for row in kept + more])
        device_ns = sum(row["total_ns"] for row in report["kernels"]["rows"] + report["transfers"]["rows"])
        self.assertEqual(last["ranges"]["rows"][0]["gpu_ns"], device_ns)
        self.assertEqual(last["totals"]["peak_bytes"], report["memory"]["all"]["peak_bytes"])

    def test_one_of_several_is_chosen(self):
        runs = [self.start(FEED, 2000, 60, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
                for _ in range(2)]
        for run in runs:
            self.wait_for_capture(run)
            top = self.watch(run.capture)
            while self.next_look(top)["totals"]["kernels"] == 0:
                pass
            top.kill()
            top.wait()
        terminal = Terminal([e2e.PERFKIT, "top"],
                            dict(e2e.clean_environment(), TERM="xterm-256color",
                                 TMPDIR=self.spools), (120, 30))
        self.addCleanup(terminal.close)
        terminal.wait_for(b"Which one")
        wanted = re.search(rb"  (\d+)  %s  \S*bench_top_feed 2000 60, for " %
                           re.escape(os.path.realpath(runs[1].capture).encode()), terminal.bytes)
        self.assertTrue(wanted, terminal.bytes)
        os.write(terminal.fd, b"99\n")
        terminal.wait_for(b"Which one", terminal.bytes.index(b"Which one") + 1)
        os.write(terminal.fd, wanted.group(1) + b"\n")
        terminal.wait_for(b"recording")
        os.write(terminal.fd, b"q")
        self.assertEqual(terminal.end(), 0)
        for run in runs:  # neither has noticed
            self.assertIsNone(run.poll())
            run.terminate()
            run.wait()

    def test_a_command_that_is_none(self):
        done = self.perfkit("top", "--json", "-o", self.path("none.sqlite"), "--", "/no/such/program")
        self.assertEqual(done.status, 127)
        self.assertIn(b"ended without a capture", done.err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
