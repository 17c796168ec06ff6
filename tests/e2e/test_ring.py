"""perfkit run --ring: old rows leave and stay in the sums, what happens keeps a copy that is a capture
like any other, and whoever is killed leaves what the ring held."""
import glob
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys

import e2e

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from serving import Server  # noqa: E402


class Ring(e2e.Case):
    @classmethod
    def setUpClass(cls):
        e2e.become_subreaper()

    def ring(self, *options, capture=None):
        """A recorded program that does what it is told. On a busy machine any step may be slow: only
        the tests of slow ones look for them."""
        capture = capture or self.new_capture()
        if not options:
            options = "--ring=1h",
        if options[0].startswith("--ring=") and "--ring-keep" not in str(options):
            options += "--ring-keep=end",
        return self.start_stepped(capture, options)

    def steps(self, program, count, ms):
        self.go(program, "steps %d %d" % (count, ms))
        program.steps += count

    def end(self, program, status=0):
        program.stdin.close()
        self.assertEqual(program.wait(e2e.TIMEOUT), status)
        return self.open(program.capture, ("complete", "recovered"))

    def live(self, program, sql):
        db = sqlite3.connect("file:%s?mode=ro" % program.capture, uri=True)
        try:
            return db.execute(sql).fetchone()[0]
        finally:
            db.close()

    def kept(self, program):
        return sorted(glob.glob(program.capture.replace(".sqlite", "-keep-*.sqlite")))

    def window(self, program, number=1):
        """The kept window, checked as any capture is."""
        path = program.capture.replace(".sqlite", "-keep-%d.sqlite" % number)
        e2e.wait_until(lambda: os.path.exists(path))
        db = self.open(path, ("kept",), tidy=False)
        self.assert_conserved(db)
        self.assertEqual(self.one(db, "SELECT count(*) FROM ring_rollup"), 0)
        self.assertEqual(self.one(db, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'ingest%'"), 0)
        return db

    def reasons(self, db):
        return [row[0] for row in db.execute("SELECT reason FROM ring_trigger ORDER BY id")]

    def sums(self, db, kind):
        return self.one(db, "SELECT ifnull(sum(count), 0) FROM ring_rollup WHERE kind = ?", kind)

    def until_rows_leave(self, program):
        while self.live(program, "SELECT ifnull(min(id), 0) FROM range") <= 1:
            self.steps(program, 20, 1)

    def pid(self, program):
        return self.live(program, "SELECT pid FROM process WHERE spool NOT NULL")

    # ---- what leaves ---------------------------------------------------------------------------

    def test_rows_leave_into_sums(self):
        program = self.ring("--ring=1s")
        self.steps(program, 30, 1)
        self.until_rows_leave(program)
        db = self.end(program)
        self.assert_conserved(db)
        self.assertLess(self.one(db, "SELECT count(*) FROM range"), program.steps)
        self.assertEqual(self.sums(db, 6), program.steps)
        # What left in parts is one row; the end adds those of what was still there.
        self.assertLessEqual(self.one(db, "SELECT max(n) FROM (SELECT count(*) AS n FROM ring_rollup "
                                          "GROUP BY start, kind, process, device, name, domain, copy)"), 6)
        self.assertEqual(self.health(db, "range_end", "recorded"), program.steps)
        if e2e.has_opencl():
            self.assertEqual(self.sums(db, 3), program.steps)
            self.assertLess(self.one(db, "SELECT count(*) FROM memset"), program.steps)
        left, = self.one(db, "SELECT value FROM capture_health WHERE code = 'capture_ring'"),
        self.assertGreater(left, 0)
        # What is not there was not recorded, for readers: everything that is there lies within.
        rows = db.execute("SELECT begins, reason FROM recording ORDER BY start, id").fetchall()
        self.assertEqual(rows, [(0, 5), (1, 5)])
        self.assertEqual(self.one(db, "SELECT count(*) FROM marker WHERE start < (SELECT max(start) "
                                      "FROM recording) - 1000000000"), 0)
        report = self.perfkit("report", "--json", program.capture)
        self.assertEqual(report.status, 0, report.err)
        self.assertEqual(json.loads(report.out)["trust"]["windows"], 1)
        text = self.perfkit("report", program.capture).out.decode()
        trust = " ".join(text[text.index("\nTrust:"):].split())
        self.assertIn("called and recorded in the whole run: ", trust)
        self.assertIn("%s rows deleted" % format(left, ","), trust)

    def test_sums_are_bounded(self):
        """Of very many rows the older half gets longer periods, and where these do not help, loses
        the names; nothing is lost of the counts."""
        program = self.ring("--ring=1s")
        self.steps(program, 1, 0)
        db = sqlite3.connect(program.capture, timeout=e2e.TIMEOUT)
        with db:
            for name in ("n % 3", "n"):
                db.execute("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < "
                           "260000) INSERT INTO ring_rollup(start, duration, kind, name, count, sum) "
                           "SELECT n * 10000000000, 10000000000, 9, %s, 1, 2 FROM c" % name)
        db.close()
        count = "SELECT count(*) FROM ring_rollup WHERE kind = 9"
        while self.live(program, count) >= 500000:
            self.steps(program, 20, 1)
        self.steps(program, 20, 1)
        db = self.end(program)
        self.assertEqual(self.one(db, "SELECT sum(count), sum(sum) FROM ring_rollup WHERE kind = 9"),
                         (520000, 1040000))
        self.assertGreater(self.one(db, "SELECT max(duration) FROM ring_rollup"), 10**10)
        self.assertEqual(self.sums(db, 6), program.steps)

    def test_forked_children_leave(self):
        """What is kept of a child that ended does not stay for ever."""
        program = self.ring("--ring=1s", "--ring-keep=slow")
        for _ in range(3):
            self.go(program, "crash")
        read = "SELECT count(*) FROM ingest_spool WHERE finished"
        positions = ("SELECT count(*) FROM ingest_cursor WHERE spool IN (SELECT id FROM ingest_spool "
                     "WHERE finished)")
        while self.live(program, read) < 3 or self.live(program, positions):
            self.steps(program, 20, 1)
        db = self.end(program)
        self.assert_conserved(db)
        self.assertEqual(self.one(db, "SELECT count(*) FROM process WHERE birth = 'fork'"), 3)
        self.assertEqual(self.sums(db, 6), program.steps + 3)

    def test_nothing_leaves_a_long_ring(self):
        program = self.ring()
        self.steps(program, 20, 0)
        db = self.end(program)
        self.assertEqual(self.one(db, "SELECT count(*) FROM range"), 20)
        self.assertEqual(self.sums(db, 6), 20)
        self.assertEqual(self.kept(program), [])
        self.assertEqual(self.one(db, "SELECT count(*) FROM recording"), 0)

    def test_merged(self):
        program = self.ring("--ring=1s")
        self.until_rows_leave(program)
        self.end(program)
        other = self.ring()
        self.steps(other, 3, 0)
        self.end(other)
        merged = self.path("merged.sqlite")
        result = self.perfkit("merge", "-o", merged, program.capture, other.capture)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.sums(self.open(merged, ("merged",)), 6), program.steps + 3)

    @e2e.needs_opencl
    def test_top_attaches(self):
        program = self.ring("--ring=1s")
        self.until_rows_leave(program)
        top = subprocess.Popen([e2e.PERFKIT, "top", "--json", "-n", "1", program.capture], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=e2e.clean_environment())
        while top.poll() is None:  # or all has left when it looks
            self.steps(program, 5, 1)
        out, err = top.communicate()
        self.assertEqual((top.returncode, err), (0, b""))
        seen = json.loads(out)
        self.assertEqual(seen["state"], "recording")
        self.assertGreater(seen["totals"]["memsets"], 0)
        self.assertLess(seen["totals"]["memsets"], program.steps)
        self.assertEqual(seen["totals"]["live_bytes"], 64)  # made before all that is there
        self.end(program)

    @e2e.needs_opencl
    def test_serve_under_cuts(self):
        """A server that is there from the begin counts all to the end, one that comes later what is there when it comes. No
        counter goes back, no page fails. PERFKIT_LONG=1: 200 cuts."""
        program = self.ring("--ring=1s")
        self.steps(program, 5, 1)
        words, before, cuts, oldest = ("--refresh", "100ms", program.capture), {}, 0, 1
        servers = [Server(e2e.PERFKIT, *words, env=e2e.clean_environment())]
        if servers[0].missing:
            self.skipTest(servers[0].line.strip())
        self.addCleanup(lambda: self.assertEqual([server.stop() for server in servers], [0] * len(servers)))
        servers[0].wait_for(lambda samples: "perfkit_memory_live_bytes" in samples)  # perfkit has read what the program wrote
        while cuts < (200 if e2e.LONG else 3):
            self.steps(program, 5, 1)
            there = self.live(program, "SELECT ifnull(min(id), 0) FROM range")
            if there > oldest:
                cuts, oldest = cuts + 1, there
                if len(servers) == 1:
                    servers.append(Server(e2e.PERFKIT, *words, env=e2e.clean_environment()))
                status, _, page = servers[cuts % 2].get("/report.html")
                self.assertEqual((status, b"</html>" in page), (200, True))
            for server in servers:
                samples = server.metrics()
                self.assertEqual(server.state(samples), "recording")
                self.assertEqual(list(samples["perfkit_dropped_records_total"].values()), [0])
                self.assertEqual(list(samples["perfkit_memory_live_bytes"].values()), [64])  # made before all that is there
                for name in samples:
                    for labels, value in before.get(server, {}).get(name, {}).items():
                        if name.endswith(("_total", "_bucket", "_count")):
                            self.assertGreaterEqual(samples[name].get(labels, -1), value, (name, labels, cuts))
                before[server] = samples
        self.end(program).close()
        counts = []
        for server in servers:
            last = server.wait_for(lambda samples, server=server: server.state(samples) == "finished")
            counts.append(sum(last["perfkit_memset_operations_total"].values()))
        self.assertEqual(counts[0], program.steps)
        self.assertLess(counts[1], program.steps)

    # ---- what keeps ----------------------------------------------------------------------------

    def test_ctl(self):
        program = self.ring("--ring=20s")  # nothing leaves meanwhile; a copy is there after a twelfth
        self.steps(program, 10, 0)
        result = self.perfkit("ctl", "keep", program.capture)
        self.assertEqual(result.status, 0, result.err)
        db = self.window(program)  # there when ctl has ended
        self.assertEqual(self.reasons(db), ["ctl"])
        self.assertEqual(self.one(db, "SELECT count(*) FROM range"), 10)
        self.assertEqual(self.one(db, "SELECT end_reason FROM process WHERE spool NOT NULL"), "running")
        self.steps(program, 10, 0)
        self.assertEqual(self.perfkit("ctl", "keep", program.capture).status, 0)
        self.assertEqual(self.one(self.window(program, 2), "SELECT count(*) FROM range"), 20)
        report = self.perfkit("report", self.kept(program)[0])
        self.assertEqual(report.status, 0, report.err)
        self.assertIn(b"Kept       perfkit ctl keep at ", report.out)
        self.assertRegex(report.out, b"Ran  .* until this copy was kept from ")
        self.assertIn(b"Ended      still running when this copy was kept (--ring); ", report.out)
        db = self.end(program)
        self.assertEqual(db.execute("SELECT reason, window FROM ring_trigger ORDER BY id").fetchall(),
                         [("ctl", 1), ("ctl", 2)])
        self.assertEqual(self.sums(db, 6), 20)

    def test_signal(self):
        program = self.ring("--ring=1s")
        self.steps(program, 5, 0)
        program.send_signal(signal.SIGUSR2)  # would end the program
        self.assertEqual(self.reasons(self.window(program)), ["signal"])
        self.steps(program, 5, 0)
        self.end(program)

    def test_slow_iteration(self):
        program = self.ring("--ring=3s", "--ring-keep=slow")
        self.steps(program, 100, 1)
        self.steps(program, 1, 3000)
        db = self.window(program)
        self.assertIn("slow", self.reasons(db))
        name, duration, usual, threshold = self.one(
            db, "SELECT value, duration, usual, threshold FROM ring_trigger JOIN string ON "
                "string.id = name ORDER BY threshold DESC")
        self.assertEqual(name, "step")
        self.assertLess(usual, threshold)
        self.assertLess(threshold, duration)
        self.end(program)

    def test_iteration_that_does_not_end(self):
        program = self.ring("--ring=2s", "--ring-keep=slow", "--iteration=step")
        self.steps(program, 100, 1)
        self.go(program, "hang")
        open_ranges = number = 0
        while not open_ranges:  # a copy of a step that was slow by itself may come before
            number += 1
            db = self.window(program, number)
            self.assertIn("slow", self.reasons(db))
            open_ranges = self.one(db, "SELECT count(*) FROM range WHERE duration IS NULL")
        self.assertEqual(open_ranges, 1)
        self.end(program)

    def test_other_iterations_are_not_judged(self):
        program = self.ring("--ring=2s", "--iteration=other", "--ring-keep=slow")
        self.steps(program, 100, 0)
        self.steps(program, 1, 1000)
        self.assertEqual(self.reasons(self.end(program)), [])

    def test_abnormal_end(self):
        program = self.ring("--ring=1s", "--ring-keep=end")
        self.steps(program, 5, 0)
        self.go(program, "crash")
        db = self.window(program)
        self.assertEqual(self.reasons(db), ["end"])
        self.assertEqual(self.one(db, "SELECT count(*) FROM process WHERE birth = 'fork' AND id = "
                                      "(SELECT process FROM ring_trigger)"), 1)
        self.end(program)

    @e2e.needs_opencl
    def test_failed_allocation(self):
        program = self.ring("--ring=1s", "--ring-keep=allocation")
        self.go(program, "fail")
        db = self.window(program)
        self.assertEqual(self.reasons(db), ["allocation"])
        self.assertEqual(self.one(db, "SELECT count(*) FROM allocation_failure"), 1)
        self.end(program)

    def test_limit(self):
        program = self.ring("--ring=1s", "--ring-limit=1")
        result = self.perfkit("ctl", "keep", program.capture)
        self.assertEqual(result.status, 1)
        self.assertIn(b"no copy was kept", result.err)
        program.stdin.close()
        self.assertEqual(program.wait(e2e.TIMEOUT), 0)
        self.assertIn("--ring-limit", program.stderr.read())
        db = self.open(program.capture)
        self.assertEqual(self.kept(program), [])
        self.assertEqual(self.one(db, "SELECT window FROM ring_trigger"), 0)
        self.assertEqual(self.one(db, "SELECT level FROM capture_health WHERE code = 'ring_unkept'"),
                         "warning")

    def test_slow_iterations_without_a_copy_are_counted(self):
        program = self.ring("--ring=1s", "--ring-keep=slow", "--ring-limit=1")
        self.steps(program, 100, 0)
        self.steps(program, 1, 300)
        while not self.live(program, "SELECT count(*) FROM ring_trigger WHERE window = 0") or \
                self.live(program, "SELECT count(*) FROM range WHERE duration > 200000000"):
            self.steps(program, 1, 100)
        note = self.one(self.end(program), "SELECT note FROM capture_health WHERE code = 'ring_unkept'")
        self.assertIn("--ring-limit", note)
        self.assertRegex(note, "[1-9][0-9]* slow iterations? (was|were) not copied")

    def test_copies_that_were_moved_away(self):
        program = self.ring("--ring=1s", "--ring-limit=3M")
        self.steps(program, 1, 0)
        while self.perfkit("ctl", "keep", program.capture).status == 0:
            self.assertLess(len(self.kept(program)), 20)
        self.assertGreater(len(self.kept(program)), 0)
        for path in self.kept(program):
            os.remove(path)
        self.assertEqual(self.perfkit("ctl", "keep", program.capture).status, 0)
        self.assertEqual(len(self.kept(program)), 1)
        program.stdin.close()
        self.assertEqual(program.wait(e2e.TIMEOUT), 0)

    def test_rotate(self):
        program = self.ring("--ring=1s", "--ring-limit=3M", "--ring-rotate")
        self.steps(program, 1, 0)
        while not self.kept(program) or "-keep-1." in self.kept(program)[0]:
            self.assertEqual(self.perfkit("ctl", "keep", program.capture).status, 0)
        self.assertLessEqual(sum(os.path.getsize(path) for path in self.kept(program)), 3 << 20)
        self.end(program)

    def assert_not_kept(self, program, folder):
        """perfkit ctl keep says so, and nothing is left of it."""
        before = sorted(os.listdir(folder))
        result = self.perfkit("ctl", "keep", program.capture)
        self.assertEqual(result.status, 1, result.err)
        self.assertIn(b"no copy was kept", result.err)
        self.assertEqual(sorted(os.listdir(folder)), before)

    def test_no_name_is_free(self):
        program = self.ring("--ring=1s")
        for more in [""] + ["-%d" % number for number in range(2, 1000)]:
            with open(program.capture.replace(".sqlite", "-keep-1%s.sqlite" % more), "x"):
                pass
        self.assert_not_kept(program, self.folder)
        self.go(program, "steps 20 10")
        db = self.end(program)
        self.assertEqual(self.one(db, "SELECT window FROM ring_trigger"), 0)
        self.assertIn("1 time ", self.one(db, "SELECT note FROM capture_health WHERE code = 'ring_unkept'"))

    def keep(self, program):
        self.assertEqual(self.perfkit("ctl", "keep", program.capture).status, 0)

    def test_window_cannot_be_moved(self):
        program = self.ring("--ring=1s", "--force")
        self.keep(program)
        second = program.capture.replace(".sqlite", "-keep-2.sqlite")
        shutil.copy(self.kept(program)[0], second)
        if subprocess.run(["mount", "--bind", second, second], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("mounting is not permitted here")
        self.addCleanup(e2e.unmount, second)
        self.assert_not_kept(program, self.folder)
        self.keep(program)
        self.assertEqual(self.reasons(self.window(program, 3)), ["ctl"])
        db = self.end(program)
        self.assertEqual([row[0] for row in db.execute("SELECT window FROM ring_trigger ORDER BY id")],
                         [1, 0, 3])

    def test_force_overwrites_captures_only(self):
        program = self.ring("--ring=1s", "--force")
        first = program.capture.replace(".sqlite", "-keep-1.sqlite")
        with open(first, "x") as file:
            file.write("mine")
        self.keep(program)
        with open(first) as file:
            self.assertEqual(file.read(), "mine")
        second = program.capture.replace(".sqlite", "-keep-2.sqlite")
        shutil.copy(program.capture.replace(".sqlite", "-keep-1-2.sqlite"), second)
        self.keep(program)
        self.assertEqual(len(self.kept(program)), 3)
        self.assertEqual(self.reasons(self.window(program, 2)), ["ctl"])
        self.assertEqual(self.one(self.window(program, 2), "SELECT window FROM ring_trigger"), 2)
        self.end(program)

    def test_full_disk(self):
        """However far a copy comes, nothing of it stays; while there is no room for the recording
        itself perfkit ctl keep does not wait for some."""
        folder = self.mount("64m")
        program = self.ring("--ring=1s", capture=os.path.join(folder, "a.sqlite"))
        self.steps(program, 20, 1)
        copy = self.live(program, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
        filler = os.path.join(folder, "filler")
        for room in (copy // 2, copy, copy + 12288, copy + 65536, 0):
            with open(filler, "xb") as file:
                free = os.statvfs(folder)
                os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - room)
            if not room:
                self.go(program, "steps 50 0")
            self.assert_not_kept(program, folder)
            os.unlink(filler)
        e2e.wait_until(lambda: self.perfkit("ctl", "keep", program.capture).status == 0)
        self.steps(program, 1, 0)
        self.end(program)

    def test_ctl_without_ring(self):
        program = self.ring("--wait=all")
        result = self.perfkit("ctl", "keep", program.capture)
        self.assertEqual(result.status, 1)
        self.assertIn(b"--ring", result.err)

    # ---- whoever is killed ---------------------------------------------------------------------

    def test_perfkit_killed(self):
        program = self.ring("--ring=1s")
        self.until_rows_leave(program)
        program.send_signal(signal.SIGSTOP)
        while not self.live(program, "SELECT count(*) FROM range"):  # all has left while this was not looking
            program.send_signal(signal.SIGCONT)
            self.steps(program, 20, 1)
            program.send_signal(signal.SIGSTOP)
        program.kill()
        program.wait()
        self.assertEqual(self.perfkit("report", program.capture).status, 0)
        held = self.live(program, "SELECT count(*) FROM range")
        program.stdin.close()
        e2e.reap_orphans()
        result = self.perfkit("recover", "--quiet", program.capture)
        self.assertEqual(result.status, 0, result.err)
        db = self.open(program.capture, ("recovered",))
        self.assert_conserved(db)
        self.assertEqual(self.sums(db, 6), program.steps)
        self.assertGreater(held, 0)
        self.assertGreaterEqual(self.one(db, "SELECT count(*) FROM range"), held)
        self.assertLess(self.one(db, "SELECT count(*) FROM range"), program.steps)

    def test_program_killed(self):
        program = self.ring("--ring=4s")  # perfkit notes the death before that
        self.until_rows_leave(program)
        os.kill(self.pid(program), signal.SIGKILL)
        self.assertEqual(program.wait(e2e.TIMEOUT), -signal.SIGKILL)
        db = self.open(program.capture)
        self.assertEqual(self.sums(db, 6), program.steps)
        self.assertGreater(self.one(db, "SELECT count(*) FROM range"), 0)
        self.assertEqual(self.reasons(db), ["end"])
        self.assertEqual(self.kept(program), [])  # the capture itself has what the ring held


if __name__ == "__main__":
    e2e.main()
