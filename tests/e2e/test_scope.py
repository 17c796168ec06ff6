"""Scope control: what was begun inside the windows is there to its end, what was begun outside is not
there at all, and the trust block of either is whole. Windows by time, by capture range, by
`perfkit ctl`; capture files that ctl cannot use."""
import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess

import e2e
from scope import SCOPE, ScopeCase


class Ranges(ScopeCase):
    WAYS = {"push": "nvtx:capture", "push_w": "nvtx:capture", "push_registered": "nvtx:capture@",
            "start": "nvtx:capture", "start_w": "nvtx:capture@*", "domain": "nvtx:capture@mine"}

    def check(self, way):
        n = 5
        result = self.record(SCOPE, "ranges", way, n, *self.opencl,
                             options=["--capture-range=" + self.WAYS[way]])
        db = self.open(result.capture)
        self.assert_conserved(db)
        names = self.names(db)
        self.assert_work(names, "inside", n)
        self.assert_work(names, "outside", 0)
        self.assertEqual(names["capture"], (n, 0, 0))  # the range itself, closed
        self.assertEqual(set(names), {"inside", "capture"})
        if self.opencl:
            self.assertEqual(self.fills(db), list(range(n)))
            self.assertEqual(self.one(db, "SELECT count(*), count(end) FROM allocation"), (n, n))
            self.assertEqual(self.one(db, "SELECT count(*) FROM sync"), n)
            for subject in ("memset", "allocation"):
                self.assertEqual(self.health(db, subject, "called"), n)
        self.assertEqual(self.windows(db), [(0, 4)] + [(1, 4), (0, 4)] * n)
        # Every event lies within a window.
        self.assertEqual(self.one(db, """
            SELECT count(*) FROM marker m WHERE (SELECT begins FROM recording r WHERE r.start <= m.start
            ORDER BY r.start DESC, r.id DESC LIMIT 1) = 0"""), 0)

    def test_other_domain(self):
        """A range of the same name in another domain is another range."""
        result = self.record(SCOPE, "ranges", "domain", 2, options=["--capture-range=nvtx:capture"])
        self.assertEqual(self.names(self.open(result.capture)), {})

    def test_nested(self):
        result = self.record(SCOPE, "nested", *self.opencl, options=["--capture-range=nvtx:capture"])
        db = self.open(result.capture)
        self.assert_conserved(db)
        names = self.names(db)
        self.assert_work(names, "inside", 2)
        del names["inside"]
        self.assertEqual(names, {"capture": (2, 0, 0), "between": (1, 0, 0)})
        self.assertEqual(self.windows(db), [(0, 4), (1, 4), (0, 4)])

    def test_fork(self):
        """A child forked inside the range goes on inside it, and leaves it by itself."""
        result = self.record(SCOPE, "fork", options=["--capture-range=nvtx:capture"])
        db = self.open(result.capture)
        self.assert_conserved(db)
        names = self.names(db)
        for name in ("inside", "child inside", "child again"):
            self.assert_work(names, name, 1)
            del names[name]
        self.assertEqual(names, {"capture": (2, 0, 0)})

    def test_with_delay(self):
        """Both must hold."""
        result = self.record(SCOPE, "ranges", "push", 3,
                             options=["--capture-range=nvtx:capture", "--delay=1h"])
        self.assertEqual(self.names(self.open(result.capture)), {})

    def test_no_preload(self):
        result = self.record(SCOPE, "ranges", "push", 3, *self.opencl, quiet=False,
                             options=["--capture-range=nvtx:capture", "--no-preload"])
        self.assert_work(self.names(self.open(result.capture)), "inside", 3)


for _way in Ranges.WAYS:
    setattr(Ranges, "test_" + _way, lambda self, way=_way: self.check(way))


class Control(ScopeCase):
    def test_dormant(self):
        """start, stop, start; what is between is not there."""
        program = self.phases("steps", options=["--dormant"])
        self.go(program, "one")
        state = self.status(program.capture)
        self.assertEqual((state["recording"], state["windows"]), (False, 0))
        self.ctl("start", program.capture)
        self.go(program, "two")
        self.ctl("start", program.capture)  # changes nothing
        self.assertEqual(self.status(program.capture)["windows"], 1)
        self.go(program, "three")
        self.ctl("stop", program.capture)
        self.go(program, "four")
        self.ctl("start", program.capture)
        self.go(program, "five")
        state = self.status(program.capture)
        self.assertEqual((state["recording"], state["windows"]), (True, 2))
        self.assertGreaterEqual(state["processes"], 1)
        self.assertEqual(state["perfkit_pid"], program.pid)
        db = self.end(program)
        self.assert_conserved(db)
        names = self.names(db)
        for name in ("two", "three", "five"):
            self.assert_work(names, name, 1)
        self.assertEqual(set(names), {"two", "three", "five"})
        if self.opencl:
            self.assertEqual(self.fills(db), [1, 2, 4])
        self.assertEqual(self.windows(db), [(0, 2), (1, 2), (0, 2), (1, 2)])

    def test_stop_without_option(self):
        """An ordinary recording can be stopped and started too."""
        program = self.phases("steps")
        self.go(program, "one")
        self.ctl("stop", str(program.pid))  # by perfkit's pid
        self.go(program, "two")
        child = self.status(program.capture)["program_pid"]
        self.ctl("start", str(child))  # by the program's
        self.go(program, "three")
        db = self.end(program)
        self.assert_conserved(db)
        self.assertEqual(set(self.names(db)), {"one", "three"})
        self.assertEqual(self.windows(db), [(0, 2), (1, 2)])

    def test_straddle(self):
        """Begun outside: not there, though it ends inside. Begun inside: there to its end."""
        program = self.phases("straddle", options=["--dormant"])
        self.assert_answers(program, "closed\n")
        self.ctl("start", program.capture)
        self.go_on(program, "open")
        self.ctl("stop", program.capture)
        self.go_on(program, "end")
        db = self.end(program)
        self.assert_conserved(db)
        self.assertEqual(self.names(db),
                         {"middle": (1, 0, 0), "inner": (1, 0, 0), "late": (1, 0, 0)})
        if self.opencl:
            self.assertEqual(db.execute("SELECT value, duration IS NOT NULL FROM memset").fetchall(),
                             [(7, 1)])
            self.assertEqual(db.execute("SELECT bytes, end IS NOT NULL FROM allocation").fetchall(),
                             [(128, 1)])

    def go_on(self, program, phase):
        program.stdin.write("\n")
        program.stdin.flush()
        self.assert_answers(program, phase + "\n")

    def test_children(self):
        """A program that is started while the capture is open, and one while it is closed."""
        program = self.phases("steps", options=["--dormant"])
        self.go(program, "none")
        self.ctl("start", program.capture)
        self.go(program, "one")
        self.ctl("stop", program.capture)
        state = self.status(program.capture)
        with open("/proc/%d/environ" % state["program_pid"], errors="surrogateescape") as file:
            environment = dict(e.split("=", 1) for e in file.read().split("\0") if "=" in e)
        subprocess.run([SCOPE, "ranges", "push", "1"], env=environment, check=True)
        self.ctl("start", program.capture)
        subprocess.run([SCOPE, "nested"], env=environment, check=True)
        db = self.end(program)
        self.assert_conserved(db)
        self.assertEqual(set(self.names(db)),
                         {"one", "around", "capture", "between", "inside", "outside"})

    def test_only_one(self):
        """Without a name the only running capture is meant; several are listed."""
        environment = e2e.clean_environment(TMPDIR=self.spools)
        folders = [n for n in os.listdir("/dev/shm") if n.startswith("perfkit-")]
        if folders:
            self.skipTest("another capture is running on this machine")
        line = [e2e.PERFKIT, "run", "-q", "-o", self.path("a.sqlite"), "--dormant", "--", SCOPE,
                "steps"]
        with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=environment) as a:
            self.go(a, "one")
            out = self.ctl("status").out.decode()
            self.assertIn(self.path("a.sqlite") + ": not recording for ", out)
            line[4] = self.path("b.sqlite")
            with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  env=environment) as b:
                self.go(b, "one")
                result = self.ctl("start", status=1)
                listed = sorted(line.split("\t")[1] for line in result.out.decode().splitlines())
                mine = [self.path("a.sqlite"), self.path("b.sqlite")]
                b.stdin.close()
                if set(listed) > set(mine):
                    a.stdin.close()
                    self.skipTest("another capture is running on this machine")
                self.assertIn(b"2 captures are running", result.err)
                self.assertEqual(listed, mine)
            a.stdin.close()

    def test_refusals(self):
        result = self.record(SCOPE, "ranges", "push", 1)
        finished = self.ctl("start", result.capture, status=1)
        self.assertIn(b"is finished", finished.err)
        with open(self.path("garbage"), "wb") as file:
            file.write(os.urandom(5000))
        for words in (("start", self.path("garbage")), ("start", self.path("absent")),
                      ("start", "1"), ("stop", "999999999"), ("status", "99999999999999999999")):
            refused = self.ctl(*words, status=1)
            self.assertRegex(refused.err.decode(), r"^perfkit ctl: .*\n$")
        for words in ((), ("begin",), ("start", "--json"), ("start", "a", "b")):
            self.ctl(*words, status=2)

    def test_abandoned(self):
        """perfkit is dead: nobody reads any more, so there is nothing to control."""
        program = self.phases("steps", options=["--dormant"])
        self.go(program, "one")
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
        refused = self.ctl("start", program.capture, status=1)
        self.assertIn(b"perfkit recover", refused.err)


class Time(ScopeCase):
    def changes(self, capture):
        """How often recording has begun or ended so far, as the open capture says."""
        if not os.path.exists(capture):
            return 0
        with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % capture, uri=True)) as db:
            try:
                return self.one(db, "SELECT count(*) FROM recording")
            except sqlite3.OperationalError:
                return 0  # not that far yet

    def ticks(self, *options, changes):
        """A program that runs until recording has begun and ended as often, and on for a while."""
        end = self.path("end")
        program = self.start(SCOPE, "idle-until", end, options=options)
        e2e.wait_until(lambda: self.changes(program.capture) >= changes)
        open(end, "w", encoding="utf-8").close()
        self.assertEqual(program.wait(), 0)
        db = self.open(program.capture)
        self.assert_conserved(db)
        first, last, rows = db.execute("SELECT min(start), max(start), count(*) FROM marker").fetchone()
        return db, (first or 0) / 1e9, (last or 0) / 1e9, rows

    def test_delay(self):
        db, first, last, rows = self.ticks("--delay=500ms", changes=2)
        self.assertGreater(rows, 0)
        self.assertGreaterEqual(first, 0.5)
        self.assertEqual(self.windows(db), [(0, 1), (1, 1)])
        # The mark before the window is not there, the first one inside is.
        self.assertGreaterEqual(first, self.one(db, "SELECT start FROM recording WHERE begins") / 1e9)

    def test_duration(self):
        db, first, last, rows = self.ticks("--duration=0.4", changes=2)
        self.assertGreater(rows, 0)
        self.assertEqual(self.windows(db), [(1, 1), (0, 1)])
        closed = self.one(db, "SELECT start FROM recording WHERE NOT begins") / 1e9
        self.assertGreaterEqual(closed, 0.4)
        self.assertLessEqual(last, closed + 0.001)
        self.assertGreater(self.one(db, "SELECT duration FROM capture") / 1e9, closed + 0.02)  # it ran on

    def test_delay_and_duration(self):
        db, first, last, rows = self.ticks("--delay=0.3s", "--duration=300ms", changes=3)
        self.assertGreater(rows, 0)
        self.assertGreaterEqual(first, 0.3)
        self.assertEqual(self.windows(db), [(0, 1), (1, 1), (0, 1)])
        self.assertGreaterEqual(self.one(db, "SELECT max(start) - min(start) FROM recording WHERE id > 1"),
                                300000000)

    def test_over_before_it_began(self):
        capture = self.new_capture()
        result = self.plain([e2e.PERFKIT, "run", "-o", capture, "--spool-dir=" + self.spools,
                             "--delay=1m", "--", SCOPE, "idle", "0.1"])
        self.assertIn(b"ended before --delay was over", result.err)
        self.assertEqual(self.names(self.open(capture)), {})

    def late(self, *options):
        """(windows, their ns) of a program whose first event comes after half a second."""
        result = self.record(SCOPE, "late", 0.5, options=options)
        self.assert_conserved(self.open(result.capture))
        report = self.perfkit("report", "--format", "json", result.capture)
        trust = json.loads(report.out)["trust"]
        return self.open(result.capture), trust["windows"], trust["recorded_ns"]

    def test_late_first_event(self):
        """The time before a process's first event counts as its windows were."""
        for preload in ((), ("--no-preload",)):
            for closed in ("--dormant", "--capture-range=nvtx:nowhere"):
                db, windows, recorded = self.late(closed, *preload)
                self.assertEqual((windows, recorded), (0, 0), closed)
            db, windows, recorded = self.late("--capture-range=nvtx:capture", *preload)
            self.assertEqual(self.windows(db), [(0, 4), (1, 4), (0, 4)])
            self.assertEqual(windows, 1)
            db, windows, recorded = self.late("--delay=200ms", "--duration=100ms", *preload)
            self.assertEqual(self.windows(db), [(0, 1), (1, 1), (0, 1)])
            opens, closes = [row[0] for row in db.execute(
                "SELECT start FROM recording ORDER BY id LIMIT 2 OFFSET 1")]
            self.assertEqual((windows, recorded), (1, closes - opens))


class Empty(ScopeCase):
    """A capture without a record says what the windows had to do with it."""

    def says(self, text, *options, command=(SCOPE, "ranges", "push", "2")):
        result = self.plain([e2e.PERFKIT, "run", "-o", self.new_capture(),
                             "--spool-dir=" + self.spools, *options, "--", *command])
        self.assertIn("perfkit run: nothing was recorded: " + text, result.err.decode())
        self.assertNotIn("perfkit doctor", result.err.decode())

    def test_range(self):
        self.says("no NVTX range 'nowhere' began in the default domain: check the name, and the "
                  "domain (@* behind the name is any domain)\n", "--capture-range=nvtx:nowhere")
        self.says("no NVTX range 'capture' began in the domain 'mine': ",
                  "--capture-range=nvtx:capture@mine")
        self.says("no NVTX range 'nowhere' began in any domain: check the name\n",
                  "--capture-range=nvtx:nowhere@*")

    def test_profiler(self):
        self.says("no GPU or NVTX call was seen between cudaProfilerStart and cudaProfilerStop: ",
                  "--capture-range=cudaProfilerApi")

    def test_duration(self):
        self.says("no GPU or NVTX call was seen while the recording was on",
                  "--duration=10ms", command=(SCOPE, "late", "0.5"))

    @e2e.needs_opencl
    def test_kernel(self):
        """No kernel has such a name; the rest is there."""
        result = self.plain([e2e.PERFKIT, "run", "-o", self.new_capture(),
                             "--spool-dir=" + self.spools, "--kernel=^nothing$", "--",
                             e2e.opencl_target("exact"), "--rounds", 2])
        self.assertRegex(result.err.decode(),
                         r"none of \d+ kernel launches matches --kernel='\^nothing\$': ")

    def test_terminal(self):
        """What a name holds does not reach the terminal."""
        self.says("no NVTX range 'a\\n\\x1b[31mb' began ", "--capture-range=nvtx:a\n\x1b[31mb")


class Names(ScopeCase):
    def test_thread_names(self):
        db = self.open(self.record(SCOPE, "names").capture)
        self.assertEqual(sorted(row[0] or "" for row in db.execute("SELECT name FROM thread")),
                         ["after", "before", "the main one"])


class Runs(ScopeCase):
    def test_refused_combinations(self):
        long = os.path.join(self.spools, 200 * "d", 200 * "e")
        os.makedirs(long)
        for words in (["--dormant", "--delay=1"], ["--dormant", "--duration=1"],
                      ["--dormant", "--capture-range=nvtx:a"], ["--capture-range=a"],
                      ["--capture-range=nvtx:"], ["--capture-range=nvtx:a", "--trace=cuda"],
                      ["--capture-range=cudaProfilerApi", "--trace=nvtx"], ["--kernel=a("],
                      ["--kernel=a", "--trace=nvtx"], ["--cuda-managed=faults", "--trace=nvtx"],
                      ["--cupti=off", "--cuda-graph=graph"], ["--delay=soon"], ["--delay=-1"],
                      ["--duration=1e9h"], ["--cupti-dump=/dev/null"], ["--duration=0"],
                      ["--duration=0.0000000001"], ["--capture-range=nvtx:" + 161 * "n"],
                      ["--capture-range=nvtx:n@" + 81 * "d"], ["--kernel=a{1001}"],
                      ["--kernel=(((a{255}){255}){255})"], ["--kernel=(((a{1,255}){1,255}){1,255})"],
                      ["--kernel=" + 20000 * "(" + 20000 * ")"], ["--kernel=(.*)*\\1x"],
                      ["--kernel=(\n\x1b[31m"], ["--cupti-dump=" + long]):
            result = self.perfkit("run", *words, "--", "true")
            self.assertEqual(result.status, 125, words)
            self.assertRegex(result.err.decode(), r"^perfkit run: [^\n]*: [^\n]*\n$")
        self.assertEqual([n for n in os.listdir(self.folder)], [])

    def test_long_values(self):
        """However long what is wrong: how to mend it is said."""
        for word, mend in (("--capture-range=", "when the range is in a domain"),
                           ("--delay=", "(as in 1.5s or 500ms)")):
            result = self.perfkit("run", word + 5000 * "x", "--", "true")
            self.assertEqual(result.status, 125)
            self.assertRegex(result.err.decode(), r"^perfkit run: --.*x \.\.\. x.*\n$")
            self.assertIn(mend, result.err.decode())

    def test_nothing_left_behind(self):
        """A program that cannot be started: the folder of --cupti-dump is not there either."""
        dump, there = self.path("dump"), self.path("there")
        os.mkdir(there)
        for folder in (dump, there):
            result = self.perfkit("run", "--cupti-dump=" + folder, "--", "/nowhere")
            self.assertEqual(result.status, 127)
        self.assertEqual(os.listdir(self.folder), ["there"])

    def test_patterns(self):
        """What only looks as if it were too much."""
        for pattern in ("[\\1]sum|[]{99999}]", "[[:alpha:]]{3}_r", "a{1000}", "\\{99999",
                        499 * "(" + "a" + 499 * ")"):
            self.record("true", options=["--kernel=" + pattern])

    def test_handed_over(self):
        result = self.record("env", options=[
            "--cupti=yield", "--capture-range=nvtx:a,b%c@d"], quiet=False)
        line = re.search(rb"^PERFKIT_OPTIONS=(.*)$", result.out, re.M).group(1).decode()
        options = dict(o.split("=", 1) for o in line.split(","))
        self.assertEqual((options["cupti"], options["capture"], options["capture-name"],
                          options["capture-domain"]), ("yield", "nvtx", "a%2Cb%25c", "d"))
        dump = self.path("dump")
        result = self.record("env", options=["--cuda-graph=graph", "--cuda-managed=off",
                                             "--cupti-dump=dump"], quiet=False)
        line = re.search(rb"^PERFKIT_OPTIONS=(.*)$", result.out, re.M).group(1).decode()
        options = dict(o.split("=", 1) for o in line.split(","))
        self.assertEqual((options["cuda-graph"], options["cuda-managed"], options["cupti-dump"]),
                         ("graph", "off", os.path.realpath(dump)))
        self.assertTrue(os.path.isdir(dump))

    @e2e.needs_opencl
    def test_kernel(self):
        """Kernels by name: the others are counted, and nothing counts as lost."""
        result = self.record(e2e.opencl_target("exact"), "--rounds", 2, options=["--kernel=^(sum|pl)"])
        db = self.open(result.capture)
        self.assert_conserved(db)
        self.assertEqual([row[0] for row in db.execute(
            "SELECT DISTINCT value FROM kernel JOIN launch_config c ON c.id = config JOIN string s ON "
            "s.id = c.name ORDER BY 1")], ["plane", "sum_rows"])
        self.assertGreater(self.health(db, "launch", "filtered"), 0)

    def test_layers_without_preload(self):
        """Children get the whole list of OpenCL layers, also when the loader cuts it."""
        result = self.record("env", options=["--no-preload"], quiet=False,
                             env=e2e.clean_environment(OPENCL_LAYERS="/nowhere/layer.so"))
        line = re.search(rb"^PERFKIT_OPTIONS=(.*)$", result.out, re.M).group(1).decode()
        layers = re.search(rb"^OPENCL_LAYERS=(.*)$", result.out, re.M).group(1).decode()
        self.assertIn(",opencl_layers=" + layers, line)
        self.assertTrue(layers.startswith("/nowhere/layer.so:"))

    def test_nested_run(self):
        """The outer perfkit says that an inner one took over."""
        outer, inner = self.path("outer.sqlite"), self.path("inner.sqlite")
        result = self.plain([e2e.PERFKIT, "run", "-o", outer, "--", e2e.PERFKIT, "run", "-q", "-o",
                             inner, "--", SCOPE, "ranges", "push", "2"])
        self.assertEqual(result.status, 0)
        self.assertIn(("a perfkit run inside the program recorded a part of it into " + inner)
                      .encode(), result.err)
        db = self.open(outer, tidy=False)
        self.assertEqual(self.names(db), {})
        self.assertEqual(self.one(db, "SELECT count(*) FROM capture_health WHERE item = 'nested' AND "
                                      "note LIKE '%inner.sqlite'"), 1)
        # what the outer one recorded itself makes it no complete capture
        both = "%s ranges push 2; %s run -q -f -o %s -- %s ranges push 2" % (
            SCOPE, e2e.PERFKIT, inner, SCOPE)
        result = self.plain([e2e.PERFKIT, "run", "-f", "-o", outer, "--", "sh", "-c", both])
        self.assertIn(b"; complete with notes", result.err)
        self.assertIn(inner.encode(), result.err)
        self.assert_work(self.names(self.open(inner, tidy=False)), "inside", 2)

    def test_unseen_end(self):
        """Without the preload nothing of ours sees a program without events end; the status is what
        wait told."""
        db = self.open(self.record("sh", "-c", "exit 3", options=["--no-preload"], status=3).capture)
        self.assertEqual(db.execute("SELECT end_reason, exit_status FROM process").fetchall(),
                         [("unseen", 3)])
        progress = e2e.make_progress(self.path("progress"))
        db = self.open(self.record(e2e.target("records"), "--nvtx", 1, "--after", 50, "--end", "_exit",
                                   "--status", 4, "--progress", progress, options=["--no-preload"],
                                   status=4).capture)
        self.assertEqual(db.execute("SELECT end_reason, exit_status FROM process").fetchall(),
                         [("unseen", 4)])


if __name__ == "__main__":
    e2e.main()
