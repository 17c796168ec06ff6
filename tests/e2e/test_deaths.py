"""Deaths: whatever way the program ends, the capture opens, holds every record that was published
before, and its trust block names the way. The programs count what they publish in a shared file."""
import os
import random
import signal
import sys
import time

import e2e

# how targets/records.c ends: as perfkit must end, end_reason, exit_status, exit_signal
ENDS = {
    "return": (3, "exit", 3, None),
    "exit": (3, "exit", 3, None),
    "_exit": (3, "_exit", 3, None),
    "quick_exit": (3, "quick_exit", 3, None),
    "raw": (3, "_exit", 3, None),  # seen by wait: it passed none of our hooks
    "abort": (-signal.SIGABRT, "signal", None, signal.SIGABRT),
    "segv": (-signal.SIGSEGV, "signal", None, signal.SIGSEGV),
    "term": (-signal.SIGTERM, "signal", None, signal.SIGTERM),
    "int": (-signal.SIGINT, "signal", None, signal.SIGINT),
    "kill": (-signal.SIGKILL, "signal", None, signal.SIGKILL),
    "exec_fails": (3, "exit", 3, None),
}
CHILD_SLOT = 40
PACE = ("--pause", 300)
# Before Linux 6.15 a parent's child is all that can be asked how it ended.
TELLS_STRANGERS = tuple(int(n) for n in os.uname().release.split("-")[0].split(".")[:2]) >= (6, 15)


def no_core():
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def no_core_here():
    """None of the program itself; it may let a child make one."""
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


class Deaths(e2e.Case):
    opencl = 2 if e2e.has_opencl() else 0
    nvtx = 2 if e2e.has_opencl() else 4

    def records(self, *arguments):
        progress = e2e.make_progress(self.path("progress"))
        return progress, (e2e.target("records"), "--nvtx", self.nvtx, "--opencl", self.opencl, *PACE,
                          "--progress", progress, *arguments)

    def process(self, db, where):
        rows = db.execute("SELECT id, birth, end_reason, exit_status, exit_signal FROM process WHERE " +
                          where).fetchall()
        self.assertEqual(len(rows), 1, db.execute("SELECT * FROM process").fetchall())
        return rows[0]

    def assert_ended(self, db, row, reason, status, number):
        """The row of the process and the trust block say the same."""
        process, _, *seen = row
        self.assertEqual(seen, [reason, status, number])
        self.assertEqual(db.execute(
            "SELECT item, value FROM capture_health WHERE process = ? AND subject = 'end'",
            (process,)).fetchall(), [(reason, number or status)])
        note = self.one(db, "SELECT note FROM capture_health WHERE process = ? AND subject = 'end'",
                        process)
        self.assertTrue(note)
        if reason != "signal":
            return
        # A process without device work lacks none; OpenCL's calls are counted as they are made.
        missing = self.one(db, "SELECT ifnull(sum(CASE item WHEN 'called' THEN value ELSE -value END), 0)"
                               " FROM capture_health WHERE process = ? AND item IN ('called', 'recorded', "
                               "'failed', 'captured', 'dropped', 'filtered') AND subject IN ('launch', "
                               "'transfer', 'memset')", process)
        risk = self.one(db, "SELECT value, note FROM capture_health WHERE process = ? AND "
                            "subject = 'risk'", process)
        if missing > 0:
            self.assertEqual(risk[0], missing)
            self.assertRegex(risk[1], r"^device records of its last \d+ ms may be missing; \d+ .* known "
                                      "to have none$")
        else:
            self.assertIsNone(risk)
            self.assertRegex(note, "^killed by a signal(; no device record is missing)?$")

    def die(self, how):
        status, reason, exit_status, number = ENDS[how]
        progress, command = self.records("--after", 150, "--end", how, "--status", 3)
        result = self.record(*command, status=status, preexec_fn=no_core)
        db = self.open(result.capture)
        self.assert_conserved(db, torn=4)
        self.assert_all_recorded(db, e2e.read_progress(progress))
        self.assert_ended(db, self.process(db, "parent_pid NOT NULL"), reason, exit_status, number)
        self.assertEqual(self.one(db, "SELECT exit_status, exit_signal FROM capture"),
                         (exit_status, number))

    def test_kill_at_random_moments(self):
        rounds = 200 if e2e.LONG else 12
        total = 0
        for i in range(rounds):
            progress, command = self.records("--end", "wait")
            perfkit = self.start(*command, stderr=e2e.subprocess.PIPE)
            e2e.wait_until(lambda: any(e2e.read_progress(progress)[1]))
            time.sleep(random.uniform(0, 0.25))
            target = self.children(perfkit.pid)[0]
            os.kill(target, signal.SIGKILL)
            self.assertEqual(perfkit.wait(e2e.TIMEOUT), -signal.SIGKILL)
            self.assertEqual(perfkit.stderr.read(), b"")
            perfkit.stderr.close()
            db = self.open(perfkit.capture)
            self.assert_conserved(db, torn=4)
            total += self.assert_all_recorded(db, e2e.read_progress(progress))
            self.assert_ended(db, self.process(db, "1"), "signal", None, signal.SIGKILL)
        e2e.say("killed %d times, %d records, none missing, none twice" % (rounds, total))

    @staticmethod
    def children(pid):
        with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
            return [int(word) for word in file.read().split()]

    def test_exec(self):
        """The program is replaced while its threads write: two lives of one process."""
        progress, command = self.records("--after", 150, "--end", "exec")
        result = self.record(*command, status=5)
        db = self.open(result.capture)
        self.assert_conserved(db, torn=4)
        self.assert_all_recorded(db, e2e.read_progress(progress))
        self.assertEqual(
            db.execute("SELECT end_reason, exit_status, exit_signal FROM process ORDER BY id")
            .fetchall(), [("exec", None, None), ("exit", 5, None)])
        self.assertEqual(self.one(db, "SELECT count(DISTINCT pid) FROM process"), 1)
        self.assertEqual(self.one(db, "SELECT note FROM capture_health WHERE subject = 'end' AND "
                                      "item = 'exec'"), "replaced by another program")

    # ---- children, while four threads of the parent write ------------------------------------------

    def child(self, way, how, births, reason, status, number=None):
        progress, command = self.records("--after", 50, "--end", "return", "--status", 3, "--child",
                                         way, "--child-end", how)
        result = self.record(*command, status=3, preexec_fn=no_core)
        db = self.open(result.capture)
        self.assert_conserved(db, torn=4)
        self.assert_all_recorded(db, e2e.read_progress(progress))
        self.assertEqual(self.recorded(db)[CHILD_SLOT], (1000, 1000, 0, 999))
        # The child's records are the child's, the parent's the parent's.
        self.assertEqual(
            db.execute("SELECT count(DISTINCT t.process), count(DISTINCT m.payload >> 32 = ?) FROM "
                       "marker m JOIN thread t ON t.id = m.thread", (CHILD_SLOT,)).fetchall(), [(2, 2)])
        process = self.one(db, "SELECT DISTINCT process FROM thread JOIN marker ON thread = thread.id "
                               "WHERE payload >> 32 = ?", CHILD_SLOT)
        child = self.process(db, "id = %d" % process)
        self.assertIn(child[1], births)
        if number and not TELLS_STRANGERS:
            reason, number = "unseen", None
        self.assert_ended(db, child, reason, status, number)
        parent = self.process(db, "pid = (SELECT parent_pid FROM process WHERE id = %d)" % process
                              if way != "daemon" else "id = 1")
        self.assert_ended(db, parent, "exit", 3, None)
        return db, result

    def test_fork(self):
        self.child("fork", "_exit", ("fork",), "_exit", 21)

    def test_fork_killed(self):
        self.child("fork", "kill", ("fork",), "signal", None, signal.SIGKILL)

    def test_fork_aborts(self):
        self.child("fork", "abort", ("fork",), "signal", None, signal.SIGABRT)

    def test_raw_clone(self):
        self.child("clone", "_exit", ("fork",), "_exit", 21)

    def test_raw_clone_killed(self):
        self.child("clone", "kill", ("fork",), "signal", None, signal.SIGKILL)

    def test_fork_exec(self):
        db, result = self.child("fork_exec", "return", ("start",), "exit", 21)
        self.assertEqual(result.out, b"child: exit 21\n")
        self.assertEqual(self.one(db, "SELECT count(*) FROM process WHERE end_reason = 'exec'"), 1)

    def test_vfork_exec(self):
        self.child("vfork_exec", "exit", ("start",), "exit", 21)

    def test_posix_spawn(self):
        self.child("spawn", "quick_exit", ("start",), "quick_exit", 21)

    def test_posix_spawn_crashes(self):
        self.child("spawn", "segv", ("start",), "signal", None, signal.SIGSEGV)

    def test_daemon(self):
        """Forked twice; it writes after its parent and the command itself have ended."""
        db, _ = self.child("daemon", "_exit", ("fork",), "_exit", 21)
        self.assertGreater(
            self.one(db, "SELECT max(start) FROM marker WHERE payload >> 32 = ?", CHILD_SLOT),
            self.one(db, "SELECT end FROM process WHERE id = 1"))


for _how in ENDS:
    setattr(Deaths, "test_" + _how.lstrip("_") + ("_fast" if _how[0] == "_" else ""),
            lambda self, how=_how: self.die(how))


class Ways(e2e.Case):
    """Every way of tests/host/targets/ways.c: status and output as without perfkit, one row for
    each program image, the marks of each."""

    # (birth, end_reason, exit_status, exit_signal) of each process in order of its start, and marks
    RETURNS = ("start", "exit", 7, None)
    EXEC = [("start", "exec", None, None), RETURNS]
    WAYS = {
        "return": [RETURNS],
        "exit": [("start", "exit", 200, None)],
        "exit_big": [("start", "exit", 3, None)],
        "exit_handler": [("start", "exit", 4, None)],
        "exit_in_handler": [("start", "_exit", 9, None)],
        "exit_thread": [("start", "exit", 5, None)],
        "last_thread": [("start", "exit", 0, None)],
        "fast": [("start", "_exit", 6, None)],
        "Fast": [("start", "_exit", 8, None)],
        "quick": [("start", "quick_exit", 11, None)],
        "raw": [("start", "_exit", 12, None)],
        "exec": EXEC, "execvp": EXEC, "fexecve": EXEC, "execveat": EXEC,
        "exec_clean": [("start", "exec", None, None), ("start", "exit", 0, None)],
        "exec_fails": [("start", "exit", 3, None)],
        "fork": [("start", "exit", 0, None), ("fork", "exit", 21, None)],
        "fork_fast": [("start", "exit", 0, None), ("fork", "_exit", 22, None)],
        "fork_exec": [("start", "exit", 0, None), ("fork", "exec", None, None), RETURNS],
        "vfork_exec": [("start", "exit", 0, None), RETURNS],
        "vfork_fails": [("start", "exit", 0, None)],
        "spawn": [("start", "exit", 0, None), RETURNS],
        "spawnp_clean": [("start", "exit", 0, None), ("start", "exit", 0, None)],
        "clone": [("start", "exit", 0, None), ("fork", "_exit", 23, None)],
        "daemon": [("start", "exit", 0, None), ("fork", "_exit", 0, None),
                   ("fork", "_exit", 0, None)],
    }
    MARKS = {"exit_handler": ["exit handler"], "quick": ["quick exit handler"],
             "exec_fails": ["after the failed exec"], "fork": ["in the child"],
             "vfork_exec": ["parent goes on", "return"], "vfork_fails": ["parent goes on"],
             "clone": ["in the raw child"], "daemon": ["in the daemon"], "exec": ["return"],
             "execvp": ["return"], "fexecve": ["return"], "execveat": ["return"],
             "fork_exec": ["return"], "spawn": ["return"], "exec_clean": ["env"],
             "spawnp_clean": ["env"]}

    def check(self, way):
        bare = self.plain([e2e.WAYS, way], preexec_fn=no_core)
        result = self.record(e2e.WAYS, way, status=bare.status, preexec_fn=no_core)
        if "env" not in self.MARKS.get(way, []):
            self.assertEqual(result.out, bare.out)
        self.assertEqual(result.err, bare.err)
        db = self.open(result.capture)
        self.assert_conserved(db)
        self.assertEqual(db.execute("SELECT birth, end_reason, exit_status, exit_signal FROM process "
                                    "ORDER BY start, id").fetchall(), self.WAYS[way])
        self.assertEqual(sorted(row[0] for row in db.execute(
            "SELECT value FROM marker JOIN string ON string.id = name")),
            sorted([way] + self.MARKS.get(way, [])))


class Deadly(e2e.Case):
    """Every death, and every handler of the program's own, of targets/deadly.c: output, status and what
    the program sees of its signals are as without perfkit."""

    WAYS = ("abort", "assert", "free twice", "null", "divide", "trap", "bus", "overflow", "overflow handled",
            "overflow reported", "thread", "reported", "raised again", "reset", "twice", "twice, open",
            "abort handled", "abort exits", "abort ignored", "ignored", "jump", "children", "vfork",
            "waited for", "dispositions") + tuple("raise %d" % number for number in (
                signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGILL, signal.SIGTRAP, signal.SIGABRT,
                signal.SIGBUS, signal.SIGFPE, signal.SIGUSR1, signal.SIGSEGV, signal.SIGUSR2, signal.SIGPIPE,
                signal.SIGALRM, signal.SIGTERM, signal.SIGXCPU, signal.SIGXFSZ))

    def check(self, way):
        bare = self.plain([e2e.target("deadly"), way], preexec_fn=no_core_here)
        result = self.record(e2e.target("deadly"), way, status=bare.status, preexec_fn=no_core_here)
        self.assertEqual(result.out, bare.out)
        self.assertEqual(result.err, bare.err)
        db = self.open(result.capture)
        self.assert_conserved(db)
        signals = [-bare.status] if bare.status < 0 else []
        self.assertEqual([row[0] for row in db.execute(
            "SELECT exit_signal FROM process WHERE exit_signal NOT NULL AND birth = 'start'")], signals)

    PYTHON = {
        "abort": "os.abort()", "null": "ctypes.string_at(0)",
        "fatal": "ctypes.pythonapi.Py_FatalError(b'as asked')",
        "faulthandler": "faulthandler.enable(); ctypes.string_at(0)",
        "dispositions": "print([signal.getsignal(n) for n in range(1, 32)]); signal.signal(15, "
                        "lambda *_: sys.exit(5)); os.kill(os.getpid(), 15)",
        "interrupt": "os.kill(os.getpid(), 2)",
    }

    def python(self, what):
        """An interpreter with handlers of its own."""
        code = ("import ctypes, faulthandler, os, signal, sys; sys.stderr = open(os.devnull, 'w'); "
                "os.dup2(sys.stderr.fileno(), 2); " + self.PYTHON[what])
        bare = self.plain([sys.executable, "-c", code], preexec_fn=no_core)
        result = self.record(sys.executable, "-c", code, status=bare.status, preexec_fn=no_core)
        self.assertEqual(result.out, bare.out)

    @e2e.needs_opencl
    def test_counted(self):
        """bench/deaths in small: aborting programs lose nothing, and what a signal costs is said."""
        bench = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "deaths")
        done = self.plain([sys.executable, "-B", bench, e2e.BUILD, "--backend", "opencl", "--aborts",
                           "35" if e2e.LONG else "7", "--signals", "100" if e2e.LONG else "10"])
        self.assertEqual(done.status, 0, done.out.decode() + done.err.decode())


for _way in Deadly.WAYS:
    setattr(Deadly, "test_" + _way.replace(" ", "_").replace(",", ""),
            lambda self, way=_way: self.check(way))
for _way in Deadly.PYTHON:
    setattr(Deadly, "test_python_" + _way, lambda self, way=_way: self.python(way))

for _way in Ways.WAYS:
    setattr(Ways, "test_%s%s" % (_way, "_upper" if _way[0].isupper() else ""),
            lambda self, way=_way: self.check(way))


if __name__ == "__main__":
    e2e.main()
