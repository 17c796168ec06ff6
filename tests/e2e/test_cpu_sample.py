"""perfkit run --cpu-sample: programs whose host side is known. Nothing is asserted about how fast
anything is: processor time is told by the program itself, and waiting has a least length."""
import ctypes
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import e2e

MS = 1000000
SYS_perf_event_open = {"x86_64": 298, "aarch64": 241}.get(os.uname().machine)
USER, BLOCKED, PREEMPTED, KERNEL, FAULT = 1, 2, 3, 4, 5


def why_not():
    """None when the kernel lets this user sample; else why not. Asked without perfkit."""
    if SYS_perf_event_open is None:
        return "system call not known on this machine"
    attribute = (ctypes.c_uint64 * 17)()
    attribute[0] = 1 | (136 << 32)  # type software, size
    attribute[5] = 1 | 1 << 5       # disabled, exclude_kernel
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(SYS_perf_event_open, attribute, 0, -1, -1, 8)
    if descriptor < 0:
        return "perf_event_open: " + os.strerror(ctypes.get_errno())
    os.close(descriptor)
    return None


def may_see_kernel():
    with open("/proc/sys/kernel/perf_event_paranoid") as level:
        return int(level.read()) <= 1 or os.geteuid() == 0


def functions_of(program):
    """Address and size of each function, from the symbol table."""
    try:
        text = subprocess.run(["nm", "-S", program], capture_output=True, text=True).stdout
    except FileNotFoundError:
        raise unittest.SkipTest("no nm")
    rows = [line.split() for line in text.splitlines()]
    return [(int(r[0], 16), int(r[1], 16), r[3]) for r in rows if len(r) == 4]


WHY_NOT = why_not()
HOST = e2e.target("host")


@unittest.skipIf(WHY_NOT, WHY_NOT)
class CpuSample(e2e.Case):
    def stacks(self, db):
        """(kind, duration, weight, tid, [function of the program, innermost first]) of each sample.
        Only the program's own frames, by its symbol table."""
        known = functions_of(HOST)
        frames = {}
        for frame, path, offset in db.execute(
                "SELECT f.id, m.path, f.offset + coalesce(m.segment, 0) FROM frame f "
                "LEFT JOIN module m ON m.id = f.module"):
            ours = path is not None and os.path.basename(path) == "host"
            frames[frame] = next((name for begin, size, name in known
                                  if ours and begin <= offset < begin + size), None)
        parents = {row[0]: row[1:] for row in db.execute("SELECT id, parent, frame FROM stack")}
        result = []
        for kind, duration, weight, tid, stack in db.execute(
                "SELECT c.kind, c.duration, c.weight, t.tid, c.stack FROM cpu_sample c "
                "JOIN thread t ON t.id = c.thread"):
            names = []
            while stack is not None:
                stack, frame = parents[stack]
                names.append(frames[frame])
            result.append((kind, duration, weight, tid, [n for n in names if n]))
        return result

    def sampled(self, *arguments, options=("--cpu-sample=997",), status=0):
        return self.open(self.record(HOST, *arguments, options=options, status=status).capture)

    @staticmethod
    def time(samples, kinds, function):
        return sum(weight for kind, _, weight, _, names in samples
                   if kind in kinds and function in names)

    def assert_computed(self, samples, least_ms):
        self.assertGreater(self.time(samples, (USER, KERNEL), "compute_here"), least_ms * MS)

    def test_computing(self):
        samples = self.stacks(self.sampled("compute", 300))
        self.assert_computed(samples, 200)  # of 300 of processor time
        everything = sum(s[2] for s in samples if s[0] in (USER, KERNEL))
        self.assertGreater(self.time(samples, (USER, KERNEL), "compute_here"), 0.7 * everything)
        computing = next(s[4] for s in samples if s[0] == USER and s[4][:1] == ["compute_here"])
        self.assertEqual(computing, ["compute_here", "main", "_start"])

    def test_frame_pointers(self):
        self.assert_computed(self.stacks(self.sampled("compute", 200, options=(
            "--cpu-sample", "--cpu-sample-stack=fp"))), 100)

    def test_threads(self):
        times = {}
        for kind, _, weight, tid, names in self.stacks(self.sampled("threads", 200)):
            if kind == USER and "compute_here" in names:
                times[tid] = times.get(tid, 0) + weight
        self.assertEqual(len(times), 2)
        self.assertTrue(all(t > 100 * MS for t in times.values()), times)

    @unittest.skipUnless((3, 10) <= sys.version_info < (3, 14), "another version of Python")
    def test_python(self):
        """Functions of Python are named, with file and line, and have their share of the time."""
        folder = tempfile.mkdtemp(prefix="perfkit-python-")
        self.addCleanup(shutil.rmtree, folder)
        program, out = os.path.join(folder, "shares.py"), os.path.join(folder, "out")
        with open(program, "w") as text:
            text.write("import time\n"
                       "def short(n):\n    return sum([i * i for i in range(n)])\n"
                       "def long(n):\n    return sum([i * i for i in range(n)])\n"
                       "while time.thread_time() < 1:\n    short(2000)\n    long(18000)\n")
        capture = self.record(sys.executable, program, options=("--cpu-sample=499",)).capture
        result = self.perfkit("report", capture, "--flamegraph", out, "--weight", "cpu")
        self.assertEqual(result.status, 0, result.err)
        weights = {"short": 0, "long": 0}
        with open(out) as lines:
            for line in lines:
                stack, weight = line.rsplit(" ", 1)
                for name in weights:
                    if re.search(r";%s\b" % name, stack):
                        weights[name] += int(weight)
        self.assertGreater(weights["short"], 0)
        self.assertGreater(weights["long"], 3 * weights["short"])

    @unittest.skipUnless(may_see_kernel(), "perf_event_paranoid hides where threads block")
    def test_sleeping(self):
        samples = self.stacks(self.sampled("sleep", 300))
        sleeps = [s for s in samples if s[0] == BLOCKED and s[4][:1] == ["sleep_here"]]
        self.assertEqual(len(sleeps), 1, samples)
        self.assertGreaterEqual(sleeps[0][1], 299 * MS)
        self.assertEqual(sleeps[0][4], ["sleep_here", "main", "_start"])

    def test_page_faults(self):
        """Counted exactly; those of a program that computes are few."""
        result = self.record(HOST, "faults", 200, options=("--cpu-sample=997",))
        pages, everything = map(int, result.out.split())
        db = self.open(result.capture)
        self.assertGreaterEqual(self.one(db, "SELECT sum(count) FROM page_faults"), pages)
        self.assertLessEqual(self.one(db, "SELECT sum(count) FROM page_faults"), everything)
        self.assertEqual(self.one(
            db, "SELECT count(*) FROM page_faults a JOIN page_faults b ON b.thread = a.thread AND b.id > a.id "
                "WHERE b.start < a.start + a.duration"), 0)
        computing = self.sampled("compute", 300)
        self.assertLess(self.one(computing, "SELECT sum(count) FROM page_faults"), 1000)
        self.assertEqual(self.one(computing, "SELECT count(*) FROM cpu_sample WHERE kind = 5 AND start > "
                                             "(SELECT max(start + duration) FROM page_faults)"), 0)

    @unittest.skipUnless(may_see_kernel() and os.uname().machine == "x86_64", "the kernel's time is not sampled")
    def test_time_in_page_faults(self):
        samples = self.stacks(self.sampled("faults", 200))
        faulting = self.time(samples, (FAULT,), "touch_here")
        self.assertGreater(faulting, 0.2 * self.time(samples, (USER, KERNEL, FAULT), "touch_here"))
        everything = sum(weight for kind, _, weight, _, names in samples if kind == FAULT)
        self.assertGreater(faulting, 0.8 * everything)

    @unittest.skipUnless(may_see_kernel(), "perf_event_paranoid hides where threads block")
    def test_waiting_for_a_lock(self):
        samples = self.stacks(self.sampled("lock", 300))
        waits = [s for s in samples if s[0] == BLOCKED and s[4][:1] == ["wait_for_lock_here"]]
        self.assertTrue(waits and waits[0][1] > 100 * MS, samples)

    def test_child(self):
        db = self.sampled("fork", 200)
        child = self.one(db, "SELECT pid FROM process WHERE birth = 'fork'")
        self.assert_computed([s for s in self.stacks(db) if s[3] == child], 100)

    def test_exec(self):
        db = self.sampled("exec", 200)
        self.assert_computed(self.stacks(db), 100)
        self.assertGreater(self.one(
            db, "SELECT count(*) FROM cpu_sample c JOIN thread t ON t.id = c.thread WHERE "
                "t.process = (SELECT max(id) FROM process)"), 50)

    def test_program_that_dies(self):
        self.assert_computed(self.stacks(self.sampled("die", 200, status=-9)), 100)

    def test_perfkit_is_killed(self):
        """What was sampled until then is in the capture once, as for everything else."""
        e2e.become_subreaper()
        process = self.start(HOST, "compute", 1000, options=("--cpu-sample=997",))
        rows = lambda: self.peek(process.capture, "SELECT count(*) FROM cpu_sample")
        e2e.wait_until(lambda: rows() > 100)
        process.kill()
        process.wait()
        e2e.reap_orphans()
        before = rows()
        folder, = self.spool_folders()
        result = self.perfkit("recover", "--quiet", folder)
        self.assertEqual(result.status, 0, result.err)
        db = self.open(process.capture, ("recovered",))
        self.assertGreaterEqual(self.one(db, "SELECT count(*) FROM cpu_sample"), before)
        self.assertEqual(self.one(
            db, "SELECT count(*) - count(DISTINCT start * 64 + kind) FROM cpu_sample"), 0)

    @staticmethod
    def peek(capture, sql):
        """Of a capture that is being written; 0 while it is not there."""
        try:
            db = sqlite3.connect("file:%s?mode=ro" % capture, uri=True)
            try:
                return db.execute(sql).fetchone()[0]
            finally:
                db.close()
        except sqlite3.Error:
            return 0

    def test_children_without_preload(self):
        """Processes that say nothing of themselves have rows as soon as they are sampled."""
        script = "for i in 1 2 3 4 5 6; do %s compute 40; done" % HOST
        db = self.open(self.record("sh", "-c", script, options=(
            "--cpu-sample=997", "--no-preload")).capture)
        self.assertEqual(self.one(
            db, "SELECT count(*) FROM process WHERE command = 'host' AND birth = 'start'"), 6)

    def test_blocked_time_left_out(self):
        db = self.sampled("sleep", 200, options=("--cpu-sample", "--cpu-sample-blocked=off"))
        self.assertEqual(self.one(db, "SELECT count(*) FROM cpu_sample WHERE kind IN (2, 3)"), 0)

    def test_window(self):
        db = self.sampled("compute", 200, options=("--cpu-sample=997", "--delay=100"))
        self.assertEqual(self.one(db, "SELECT count(*) FROM cpu_sample"), 0)

    @e2e.needs_opencl
    def test_device_that_waits(self):
        result = self.record(HOST, "bound", 400, options=("--cpu-sample=997",))
        report = self.perfkit("report", "--format", "json", result.capture)
        self.assertEqual(report.status, 0, report.err)
        rows = json.loads(report.out)["host"]["rows"]
        share = sum(row["idle_share"] for row in rows if row["thread"] == "launches" and
                    row["name"].startswith(("compute_here", "now_ms", "host+")))  # it calls now_ms
        self.assertGreater(share, 0.4, rows)


class Refused(e2e.Case):
    def test_sandbox(self):
        """A container's sandbox forbids the call: the run goes on, and says why nothing is sampled."""
        capture = self.new_capture()
        line = self.run_line([HOST, "compute", 10], capture, ("--cpu-sample",))
        result = self.plain([e2e.target("deny_perf"), *line])
        if result.status == 77:
            self.skipTest("no seccomp")
        self.assertEqual(result.status, 0, result.err)
        self.assertIn(b"nothing is sampled", result.err)
        self.assertRegex(result.err, b"perf_event_paranoid|perf events")
        db = self.open(capture)
        self.assertEqual(self.one(db, "SELECT count(*) FROM cpu_sample"), 0)
        self.assertIn("--cpu-sample was given", self.one(
            db, "SELECT note FROM capture_health WHERE item = 'cpu-sample degraded'"))


if __name__ == "__main__":
    e2e.main()
