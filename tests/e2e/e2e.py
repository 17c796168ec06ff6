"""What the end-to-end tests share: recording a program with the real `perfkit run`, opening the
capture with sqlite3, and the checks that hold for every capture. Each test works in a folder of its
own. PERFKIT_E2E_BUILD names the build folder; PERFKIT_LONG=1 runs the long variants."""
import ctypes
import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = os.environ.get("PERFKIT_E2E_BUILD", "build/release")
BUILD = os.path.abspath(BUILD)
PERFKIT = os.path.join(BUILD, "bin", "perfkit")
WAYS = os.path.join(BUILD, "bin", "ways")
LONG = os.environ.get("PERFKIT_LONG") == "1"
TIMEOUT = 300  # seconds; only against a hang
SIDE_SUFFIXES = ("-wal", "-shm", "-journal", ".part")
OURS = ("PERFKIT_DIR", "PERFKIT_OPTIONS", "LD_PRELOAD", "OPENCL_LAYERS", "CUDA_INJECTION64_PATH",
        "NVTX_INJECTION64_PATH", "PERFKIT_TEST_NETWORK_FS", "PERFKIT_COLLECTOR")
PROGRESS_SLOTS = 64
PROGRESS_BYTES = 4096


def target(name):
    """A program of tests/e2e/targets."""
    return os.path.join(BUILD, "targets", "e2e", name)


def opencl_target(name):
    """A program of tests/opencl/targets."""
    return os.path.join(BUILD, "targets", "opencl", name)


def say(text):
    """A figure for people: printed, never asserted."""
    print("    " + text, file=sys.stderr, flush=True)


def clean_environment(**more):
    environment = {k: v for k, v in os.environ.items() if k not in OURS}
    environment.update(NO_COLOR="1", **more)
    return environment


def has_opencl(_answer=[]):
    """Is there an OpenCL device? The first answer also warms the driver's cache of kernels."""
    if not _answer:
        _answer.append(os.path.exists(opencl_target("exact")) and subprocess.run(
            [opencl_target("exact"), "--rounds", "1"], env=clean_environment(),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0)
    return _answer[0]


needs_opencl = unittest.skipUnless(has_opencl(), "no OpenCL device")


class Result:
    """How a command ended (as subprocess: a signal is a negative status) and what it printed."""

    def __init__(self, status, out, err, capture=None):
        self.status, self.out, self.err, self.capture = status, out, err, capture


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="perfkit-e2e-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else self.folder
        self.spools = tempfile.mkdtemp(prefix="e2e-", dir=base)
        self.addCleanup(shutil.rmtree, self.spools, ignore_errors=True)
        self.captures = 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def mount(self, size):
        folder = self.path("small")
        os.mkdir(folder)
        if not own_mount_allowed(folder, size):
            self.skipTest("mounting a small file system is not permitted here")
        self.addCleanup(unmount, folder)
        return folder

    def new_capture(self):
        self.captures += 1
        return self.path("capture-%d.sqlite" % self.captures)

    def run_line(self, command, capture, options=()):
        return [PERFKIT, "run", "--quiet", "-o", capture, "--spool-dir=" + self.spools, *options,
                "--", *map(str, command)]

    def plain(self, command, **more):
        """A command without perfkit."""
        more.setdefault("cwd", self.folder)
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, stdin=more.pop("stdin", subprocess.DEVNULL),
                              env=more.pop("env", clean_environment()), timeout=TIMEOUT, **more)
        return Result(done.returncode, done.stdout, done.stderr)

    def perfkit(self, *words, **more):
        return self.plain([PERFKIT, *words], **more)

    def record(self, *command, options=(), status=0, quiet=True, **more):
        """Record a command; it must end with `status`, perfkit must say nothing of its own."""
        capture = self.new_capture()
        result = self.plain(self.run_line(command, capture, options), **more)
        result.capture = capture
        if status is not None:
            self.assertEqual(result.status, status, result.err.decode(errors="replace"))
        if quiet:
            self.assertNotIn(b"perfkit", result.err)
        return result

    def start_stepped(self, capture, options):
        """Records a program that does what its standard input says: see go()."""
        program = subprocess.Popen(
            self.run_line([target("stepped")], capture, options), cwd=self.folder,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=clean_environment(), text=True)
        program.capture = capture
        program.steps = 0
        self.addCleanup(self.end_stepped, program)
        self.go(program, "")  # it runs, so the capture is there
        return program

    @staticmethod
    def end_stepped(program):
        if program.poll() is None:
            program.kill()
        program.wait()
        for stream in (program.stdin, program.stdout, program.stderr):
            stream.close()

    def go(self, program, line):
        try:
            program.stdin.write(line + "\n")
            program.stdin.flush()
        except BrokenPipeError:
            pass  # what it said then is told below
        self.assert_answers(program, "ok\n")

    def assert_answers(self, program, expected):
        """The next line of its standard output; of one that has ended, why."""
        line = program.stdout.readline()
        if not line:
            self.fail("it ended with %s: %s" % (program.wait(), program.stderr.read() if program.stderr else ""))
        self.assertEqual(line, expected)

    def wait_for_capture(self, process):
        """Until its file is there: from then on it can be read."""
        wait_until(lambda: os.path.exists(process.capture) or process.poll() is not None)
        if not os.path.exists(process.capture):
            self.fail("perfkit run ended with %s: %s" % (process.wait(), process.stderr.read() if process.stderr else ""))

    def start(self, *command, options=(), **more):
        """Begin to record. Returns the process of perfkit, with its capture's path."""
        capture = self.new_capture()
        process = subprocess.Popen(self.run_line(command, capture, options), cwd=self.folder,
                                   stdin=subprocess.DEVNULL, env=more.pop("env", clean_environment()),
                                   **more)
        process.capture = capture
        self.addCleanup(self._end, process)
        return process

    @staticmethod
    def _end(process):
        """Asked first: a killed perfkit leaves its program, which may hold this test's output open."""
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def spool_folders(self):
        return [os.path.join(self.spools, name) for name in os.listdir(self.spools)]

    def open(self, capture, states=("complete",), tidy=True):
        """The capture, opened and looked at as every test must: one whole file, nothing beside it
        and nothing left of the spool."""
        self.assertTrue(os.path.exists(capture), "no capture")
        if tidy:
            self.assertEqual([s for s in SIDE_SUFFIXES if os.path.exists(capture + s)], [])
            self.assertEqual(self.spool_folders(), [])
        db = sqlite3.connect("file:%s?mode=ro" % capture, uri=True)
        db.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        self.addCleanup(db.close)
        self.assertEqual(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        self.assertIn(db.execute("SELECT state FROM capture").fetchone()[0], states)
        self.assertEqual(db.execute("SELECT spool FROM capture").fetchone()[0], None)
        return db

    def one(self, db, sql, *values):
        row = db.execute(sql, values).fetchone()
        return row[0] if row and len(row) == 1 else row

    def health(self, db, subject, item):
        """A line of the trust block, added up over the processes."""
        return self.one(db, "SELECT ifnull(sum(value), 0) FROM capture_health "
                            "WHERE subject = ? AND item = ?", subject, item)

    def assert_conserved(self, db, dropped=False, torn=0):
        """Nothing is lost in silence: every equation of the trust block holds, and unless the test
        is about drops there is none. `torn`: the threads that death may have met between the count
        of a call and its record."""
        self.assertEqual(db.execute(
            "SELECT process, subject, value FROM capture_health WHERE item = 'remainder' AND "
            "(value < 0 OR value > ?)", (torn,)).fetchall(), [])
        bad = ["damaged"]
        if not dropped:
            bad += ["dropped", "definitions_dropped", "backend_dropped", "orphan_times"]
        self.assertEqual(db.execute(
            "SELECT process, subject, item, value FROM capture_health WHERE value <> 0 AND item IN "
            "(%s)" % ",".join("?" * len(bad)), bad).fetchall(), [])

    # ---- records that carry numbers (targets/records.c) ----------------------------------------

    def recorded(self, db):
        """{slot: (rows, distinct numbers, lowest, highest)} of what targets/records.c wrote."""
        rows = db.execute(
            "SELECT slot, count(*), count(DISTINCT n), min(n), max(n) FROM ("
            "SELECT payload >> 32 AS slot, payload & 0xffffffff AS n FROM marker JOIN string ON "
            "string.id = marker.name WHERE string.value = 'record' UNION ALL "
            "SELECT (value & 0xffffffff) >> 24, value & 0xffffff FROM memset) GROUP BY slot")
        return {row[0]: row[1:] for row in rows}

    def assert_all_recorded(self, db, progress):
        """Every record that the program knew to be published is there once, and at most the one
        more per thread that it had not counted yet."""
        recorded = self.recorded(db)
        published, done = progress
        self.assertTrue(any(done), "the program did nothing")
        for slot in range(PROGRESS_SLOTS):
            rows, distinct, lowest, highest = recorded.get(slot, (0, 0, 0, -1))
            what = "slot %d: %d rows, published %d, done %d" % (slot, rows, published[slot],
                                                                done[slot])
            self.assertEqual((distinct, lowest, highest), (rows, 0, rows - 1), what)
            self.assertGreaterEqual(rows, published[slot], what)
            self.assertLessEqual(rows, done[slot] + 1 if done[slot] else 1, what)
        return sum(row[0] for row in recorded.values())


def read_progress(path):
    """(published, done) of targets/records.c: what was surely published when the end began, and
    what was counted in the end."""
    with open(path, "rb") as file:
        numbers = struct.unpack("<%dQ" % (2 * PROGRESS_SLOTS), file.read(16 * PROGRESS_SLOTS))
    done, at_end = numbers[:PROGRESS_SLOTS], numbers[PROGRESS_SLOTS:]
    return [a if a else d for a, d in zip(at_end, done)], done


def make_progress(path):
    with open(path, "wb") as file:
        file.write(bytes(PROGRESS_BYTES))
    return path


def become_subreaper():
    """Orphans of a killed perfkit become children of this process, so that it learns how they
    end."""
    pr_set_child_subreaper = 36
    if ctypes.CDLL(None, use_errno=True).prctl(pr_set_child_subreaper, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def reap_orphans(patience=300):
    """{pid: how it ended} of every child there is, once they have all ended."""
    ended = {}
    limit = time.monotonic() + patience
    while time.monotonic() < limit:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid:
            ended[pid] = os.waitstatus_to_exitcode(status)
        else:
            time.sleep(0.002)
    raise AssertionError("children still run: the target hangs")


def wait_until(what, patience=300):
    limit = time.monotonic() + patience
    while not what():
        if time.monotonic() > limit:
            raise AssertionError("nothing happened for %d s" % patience)
        time.sleep(0.005)


def own_mount_allowed(folder, size):
    """Mount a small tmpfs, or say why not."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=" + size, "none", folder],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return done.returncode == 0


def unmount(folder):
    subprocess.run(["umount", "-l", folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main():
    """Run the tests of the calling file; 77 when every one was skipped."""
    if not os.path.exists(PERFKIT):
        sys.exit("no perfkit in %s: set PERFKIT_E2E_BUILD" % BUILD)
    # A program started from here must find every signal as a shell leaves it.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    program = unittest.main(module="__main__", exit=False, verbosity=2)
    result = program.result
    if not result.wasSuccessful():
        sys.exit(1)
    if result.testsRun and result.testsRun == len(result.skipped):
        sys.exit(77)
