"""CUPTI and the driver misbehaving in every way that has been seen or is allowed: what the capture
then holds and what its trust block says. The program never notices."""
import contextlib
import json
import sqlite3
import threading
import time
import unittest

import replay
from dump_writer import Script
from test_replay import everything

THREADS = 3
LAUNCHES = 300  # and as many copies and fills as LAUNCHES / 10 each
COPIES = FILLS = LAUNCHES // 10
WORK = LAUNCHES + COPIES + FILLS


def steady(buffers=10):
    """A program whose every call makes one record, brought back in `buffers` portions."""
    script = Script()
    for i in range(LAUNCHES):
        thread = script.pid + i % THREADS
        script.launch("_Z5firstv" if i % 2 else "_Z6secondv", thread)
        if i % 10 == 0:
            script.copy(1000 + i, thread=thread)
            script.fill(64, thread)
        if i % (LAUNCHES // buffers) == 0:
            script.flush()
    return script.finish()


class Faults(replay.Case):
    def assert_note(self, db, item, part):
        notes = [row[0] or "" for row in db.execute(
            "SELECT note FROM capture_health WHERE subject = 'collector' AND item LIKE ?",
            ("cuda %s%%" % item,))]
        self.assertTrue(any(part in note for note in notes), (item, part, notes))

    def assert_no_cuda(self, db):
        for table in ("kernel", "transfer", "memset", "api_call", "sync", "allocation"):
            self.assertEqual(self.one(db, "SELECT count(*) FROM " + table), 0, table)

    def assert_all(self, dump, fake="", complete=True, **more):
        db = self.play(dump, fake, **more)
        self.assert_holds(db, self.expected(dump, complete=complete))
        return db

    def count(self, db, table, condition="1"):
        return self.one(db, "SELECT count(*) FROM %s WHERE %s" % (table, condition))

    def times(self, db, condition):
        """Rows of device work for which the condition holds."""
        return sum(self.count(db, table, condition) for table in ("kernel", "transfer", "memset"))

    def test_nothing_switched_after_cupti(self):
        """The window closed, and the process takes seconds to exit: CUPTI is gone by then."""
        for end, *options in (("slowly", "--duration=50ms"), ("slowly", "--delay=1s"),
                              ("slowly", "--delay=50ms", "--duration=50ms")):
            self.fake_run("basic", options=options, end=end)

    def run_until(self, scenario, option, windows):
        """Record the fake program until CUDA was recorded in so many windows and is in the last one."""
        capture, until = self.new_capture(), self.path(scenario + option)
        known, ended = until + ".known", threading.Event()

        def make_when(sql, path):
            while not ended.wait(0.1):
                try:
                    with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % capture, uri=True)) as db:
                        if not db.execute(sql).fetchone()[0]:
                            continue
                except sqlite3.Error:  # not made yet
                    continue
                open(path, "w", encoding="ascii").close()
                return

        def watch():
            make_when("SELECT count(*) > 0 FROM device WHERE api = 'cuda'", known)
            make_when("SELECT count(*) >= %d AND (SELECT max(start) FROM kernel) > max(start) "
                      "FROM recording WHERE begins" % windows, until)

        thread = threading.Thread(target=watch)
        thread.start()
        line = self.run_line([replay.PROGRAM, scenario, "return"], capture, (option,))
        line.remove("--quiet")
        try:
            result = self.plain(line, env=replay.e2e.clean_environment(
                LD_LIBRARY_PATH=replay.FAKES, FAKE_CUDA_KNOWN=known, FAKE_UNTIL=until))
        finally:
            ended.set()
            thread.join()
        self.assertEqual(result.status, 0, result.err)
        result.capture = capture
        return result

    def test_iterations_left_out(self):
        """CUPTI is switched off and on many times: an iteration that was recorded has all that it did."""
        for option in ("--overhead=30%", "--overhead=measure"):
            db = self.open(self.run_until("steps", option, 2).capture)
            on, since, windows = 1, 0, []
            for start, begins in db.execute("SELECT start, begins FROM recording WHERE reason IN (6, 7) "
                                            "ORDER BY start, NOT begins").fetchall() + [(2**63, 0)]:
                if begins != on:
                    windows += [(since, start)] * on
                    on, since = begins, start
            self.assertGreaterEqual(len(windows), 2, option)
            launches = [at for at, in db.execute(
                "SELECT start - api_lead FROM kernel")]
            self.assertEqual(self.count(db, "kernel"), len(launches))
            self.assertEqual(self.health(db, "launch", "called"), len(launches))
            whole = 0
            for start, end in db.execute("SELECT start, start + duration FROM range"):
                recorded = sum(start <= at <= end for at in launches)
                if any(begin <= start and end < stop for begin, stop in windows):
                    self.assertEqual(recorded, 4, (option, start, windows))
                    whole += 1
                elif not any(begin < end and start < stop for begin, stop in windows):
                    self.assertEqual(recorded, 0, (option, start, windows))
            self.assertGreater(whole, 0)
            self.assertEqual(self.count(db, "capture_health", "note LIKE '%the same id%'"), 0)
            self.assert_conserved(db)

    def test_a_budget_that_cupti_does_not_let_hold(self):
        """It is said on the terminal, in the trust block, the report and JSON."""
        result = self.run_until("steps_slowed", "--overhead=10%", 9)
        capture = result.capture
        said = "the budget of 10 % was not kept: recording added [0-9.]+ % to the run's time; CUPTI costs time even"
        self.assertRegex(result.err.decode(), said)
        db = self.open(capture)
        level, note = db.execute("SELECT level, note FROM capture_health WHERE code = 'budget_exceeded'").fetchone()
        self.assertEqual(level, "warning")
        self.assertRegex(note, said)
        text = " ".join(self.perfkit("report", capture).out.decode().split())
        self.assertRegex(text, "Recording overhead: [^.].*" + said)
        overhead = json.loads(self.perfkit("report", "--format=json", capture).out)["findings"]["overhead"]
        self.assertIs(overhead["budget_kept"], False)

    def test_the_end_before_cuda_is_recorded(self):
        for option in ("--overhead=30%", "--overhead=measure"):
            db = self.open(self.fake_run("basic", options=(option,), quiet=False).capture)
            self.assertIn("before CUDA was recorded", self.one(
                db, "SELECT note FROM capture_health WHERE level = 'loss'"))

    def test_iterations_that_end_before_cuda_is_recorded(self):
        """What was launched until then is said to be missing, by each way in which CUDA is begun with."""
        for option in ("--overhead=30%", "--overhead=measure"):
            db = self.open(self.run_until("steps_end", option, 1).capture)
            begun = self.one(db, "SELECT min(start) FROM recording WHERE begins")
            self.assertLess(self.one(db, "SELECT min(start) FROM recording WHERE NOT begins"),
                            self.one(db, "SELECT min(start) FROM range"))
            self.assertLess(self.one(db, "SELECT max(start) FROM range"), begun, option)
            self.assertGreater(self.count(db, "kernel", "start >= %d" % begun), 0)
            self.assert_conserved(db)

    def test_killed_without_a_last_flush(self):
        """CUDA's calls come with the records: nothing that was not fetched is counted, so the capture is
        at risk however its counts balance, and says since when."""
        db = self.open(self.fake_run("basic", end="kill", status=None, quiet=False).capture)
        self.assertRegex(self.one(db, "SELECT note FROM capture_health WHERE subject = 'risk'"),
                         r"device records of its last \d+ ms may be missing")

    # ---- not allowed

    def test_another_tool_has_cupti(self):
        db = self.open(self.fake_run("refused", "subscribe=39", quiet=False).capture)
        self.assert_note(db, "refused", "some other profiler")
        self.assert_no_cuda(db)

    def test_no_permission(self):
        db = self.open(self.fake_run("refused", "subscribe=35", quiet=False).capture)
        self.assert_note(db, "refused", "(35)")
        self.assert_no_cuda(db)

    def test_clock_refused(self):
        db = self.open(self.fake_run("refused", "clock=1", quiet=False).capture)
        self.assert_note(db, "refused", "Timestamp")
        self.assert_no_cuda(db)

    def test_no_memory(self):
        """A program under a limit of its data: for the tables, for the tables but not for buffers."""
        usual = self.open(self.fake_run("basic", quiet=False).capture)
        if self.count(usual, "capture_health", "item = 'preload'"):
            self.skipTest("a sanitized program needs terabytes of address space")
        for limit, why in ((4000, "no memory for the tables"), (9000, "no memory for CUPTI's buffers")):
            with self.subTest(why):
                db = self.open(self.record(
                    "sh", "-c", 'ulimit -d %d; exec "$@"' % limit, "sh", replay.PROGRAM, "basic", "return",
                    env=replay.e2e.clean_environment(LD_LIBRARY_PATH=replay.FAKES)).capture)
                self.assert_note(db, "refused", why)
                self.assert_no_cuda(db)

    def test_kernels_refused(self):
        db = self.play(steady(), "refuse=10")
        self.assert_note(db, "degraded", "CONCURRENT_KERNEL")
        self.assertEqual(self.count(db, "kernel"), 0)
        self.assertEqual(self.count(db, "transfer"), COPIES)
        # every launch is there as a call that is still waited for
        self.assertEqual(self.count(db, "api_call"), LAUNCHES)
        self.assertEqual(self.health(db, "launch", "called"), LAUNCHES)
        self.assertNotEqual(self.health(db, "launch", "outstanding"), 0)

    def test_other_kinds_refused(self):
        for kind, name in ((38, "SYNCHRONIZATION"), (17, "OVERHEAD"), (8, "DEVICE"), (49, "MEMORY2")):
            with self.subTest(name):
                db = self.play(steady(), "refuse=%d" % kind)
                self.assert_note(db, "degraded", name)
                self.assertEqual(self.times(db, "1"), WORK)
                self.assertEqual(self.count(db, "kernel", "api_name IS NULL"), 0)

    # ---- buffers

    def test_null_buffers(self):
        dump = steady()
        db = self.play(dump, "null=1,flushes=1")
        self.assert_holds(db, self.expected(dump, complete=False,
                                            dropped=self.health(db, "record", "backend_dropped")))

    def test_small_buffers(self):
        self.assert_all(steady(), "small=512")

    def test_one_thread_after_another(self):
        # Each thread ends with a buffer that is partly full; a flush fetches it later.
        script = Script()
        for i in range(60):
            for _ in range(5):
                script.launch("_Z1kv", script.pid + 1 + i)
        self.assert_all(script.finish())

    def test_damaged_buffer(self):
        db = self.play(steady(), "damage=4")
        self.assert_note(db, "degraded", "could not be read to its end")
        self.assertEqual(self.health(db, "record", "backend_dropped"), 1)
        # Where a flush ended the buffer right behind the damaged record, only that one is lost: an
        # operation, or the call of one.
        rows = self.times(db, "api_name NOT NULL")
        self.assertLess(rows, WORK)
        self.assertGreater(rows, WORK * 3 // 4)

    def test_late_buffer(self):
        # A worker of CUPTI brings a buffer after the final flush has returned: what it holds is lost
        # with the process, and the calls that wait for it tell so.
        script = Script()
        for i in range(LAUNCHES):
            id = script.call("cudaLaunchKernel", script.pid + 1 + i % THREADS)
            script.kernel("_Z1kv", id)  # on the first thread, as the device's records come
        db = self.play(script.finish(), "late=60000")
        missing = LAUNCHES - self.count(db, "kernel")
        self.assertGreater(missing, 0)
        self.assertEqual(self.health(db, "launch", "called"), LAUNCHES)
        self.assertEqual(self.health(db, "launch", "outstanding"), missing)

    def test_late_but_in_time(self):
        self.assert_all(steady(), "late=100", end="settle")

    # ---- records that are lost

    def test_dropped_and_told(self):
        lost = WORK // 7
        db = self.play(steady(), "lose=7")
        self.assertEqual(self.times(db, "1"), WORK - lost)
        self.assertEqual(self.health(db, "record", "backend_dropped"), lost)
        self.assertEqual(self.health(db, "launch", "called"), LAUNCHES)

    def test_dropped_in_silence(self):
        lost = WORK // 7
        db = self.play(steady(), "vanish=7")
        self.assertEqual(self.times(db, "1"), WORK - lost)
        self.assertEqual(self.health(db, "record", "backend_dropped"), 0)
        missing = sum(self.health(db, subject, item) for subject in ("launch", "transfer", "memset")
                      for item in ("outstanding", "remainder"))
        self.assertEqual(missing, lost)

    def test_told_by_the_dump(self):
        script = Script()
        script.launch("_Z1kv")
        script.lose(17)
        dump = script.finish()
        db = self.play(dump)
        self.assert_holds(db, self.expected(dump))
        self.assertEqual(self.health(db, "record", "backend_dropped"), 17)

    # ---- times

    def test_still_running(self):
        db = self.play(steady(), "end0=3")
        self.assertEqual(self.times(db, "duration IS NULL"), WORK // 3)
        self.assertEqual(self.times(db, "1"), WORK)
        self.assertEqual(self.count(db, "kernel", "api_name IS NULL"), 0)
        self.assertEqual(self.health(db, "record", "times_missing"), WORK // 3)

    def test_impossible_times(self):
        for fake in ("backward=3", "notime=3", "future=3"):
            with self.subTest(fake):
                dump = steady()
                db = self.play(dump, fake)
                self.assertEqual(self.times(db, "1"), WORK)
                self.assertEqual(self.times(db, "duration IS NULL"), WORK // 3)
                self.assertEqual(self.times(db, "duration < 0"), 0)
                self.assertEqual(self.count(db, "kernel", "api_name IS NULL"), 0)
                longest = max(r.end - r.start for r in replay.dump_reader.Dump(dump).records(10))
                self.assertLessEqual(self.one(db, "SELECT max(duration) FROM kernel"), longest)

    # ---- order and numbers

    def test_correlation_wraps(self):
        self.assert_all(steady(), "wrap=1")
        self.assert_all(steady(), "wrap=1,flushes=1")
        # Numbers go on beyond 32 bits: the graph launch comes after the middle.
        script = Script()
        for _ in range(10):
            script.launch("_Z1kv")
        id = script.call("cudaGraphLaunch")
        script.kernel("_Z4nodev", id, graph_node=5, graph=1)
        db = self.assert_all(script.finish(), "wrap=1")
        [(first,), (second,)] = [db.execute("SELECT correlation FROM %s WHERE correlation NOT NULL" %
                                            table).fetchone() for table in ("kernel", "api_call")]
        self.assertEqual(first, second)
        self.assertGreater(first, 0xffffffff)

    def test_reverse_order(self):
        self.assert_all(steady(), "reverse=1")

    def test_records_before_their_calls(self):
        self.assert_all(steady(), "calls=late")

    # ---- processes

    def test_fork_in_the_middle(self):
        for how in (1, 2):
            with self.subTest(how):
                db = self.assert_all(steady(), "fork=%d" % how)
                self.assertEqual(self.count(db, "kernel"), LAUNCHES)

    # ---- other CUPTIs

    def test_old_cupti(self):
        db = self.assert_all(steady(), "version=18", library=replay.OLD_FAKES)
        self.assert_note(db, "running", "CUPTI 18")

    def test_old_records(self):
        # CUPTI 12.0 has no JIT records and says less in the others.
        dump = everything().finish()
        self.told_streams = ["-1"]
        found = self.found(self.play(dump, "version=18", library=replay.OLD_FAKES))
        expected = self.expected(dump, jits={})
        for key in ("kernels", "kernel_names", "kernel_ns", "kernel_configs", "launching_calls",
                    "launches_called", "transfers", "transfer_bytes", "transfer_memory", "memsets",
                    "memset_bytes", "syncs", "allocations", "allocated_bytes", "frees", "devices",
                    "contexts", "events", "pools", "jits"):
            self.assertEqual(found[key], expected[key], key)
        self.assertEqual(found["overheads"], {"7": 1})

    def test_too_old_cupti(self):
        db = self.open(self.fake_run("refused", "version=17", library=replay.OLD_FAKES,
                                     quiet=False).capture)
        self.assert_note(db, "refused", "version 17")
        self.assert_no_cuda(db)

    def test_newer_cupti(self):
        self.assert_all(steady(), "version=139999")

    # ---- callbacks

    def test_profiler_marks(self):
        db = self.open(self.fake_run("profiler", options=["--capture-range=cudaProfilerApi"]).capture)
        self.assertEqual(self.count(db, "kernel"), 20)
        self.assertEqual(self.health(db, "launch", "called"), 20)
        self.assertEqual([row[0] for row in db.execute(
            "SELECT begins FROM recording WHERE start > 0 ORDER BY start")][-2:], [1, 0])
        self.assert_conserved(db)

    def summary(self, scenario, *options):
        """What `perfkit run` says at the end."""
        line = self.run_line([replay.PROGRAM, scenario, "return"], self.new_capture(), options)
        line.remove("--quiet")
        return self.plain(line, env=replay.e2e.clean_environment(
            LD_LIBRARY_PATH=replay.FAKES)).err.decode()

    def test_summary_of_graphs(self):
        said = self.summary("graph")
        self.assertIn("recorded 1 graph launch (10 kernels) in", said)
        self.assertNotIn("nothing was recorded", said)

    def test_summary_of_filtered_graphs(self):
        said = self.summary("graph", "--kernel=^nothing$")
        self.assertIn("recorded 1 graph launch (10 kernels left out) in", said)
        self.assertIn("none of 10 kernels matches --kernel='^nothing$': ", said)

    def test_summary_of_cupti_left_alone(self):
        said = self.summary("graph", "--cupti=yield")
        self.assertEqual(said.count("CUPTI is left to the program (--cupti=yield)"), 1, said)
        self.assertIn("nothing was recorded", said)
        self.assertNotIn("doctor", said)

    def test_streams(self):
        db = self.open(self.fake_run("streams").capture)
        self.assertEqual(
            db.execute("SELECT native, priority, non_blocking FROM stream WHERE native >= 20 "
                       "ORDER BY native").fetchall(),
            [(20 + i, -i, 1) for i in range(8)])


if __name__ == "__main__":
    replay.e2e.main()
