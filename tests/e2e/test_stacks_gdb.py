"""Call stacks against gdb's, at every call of the same function: code with and without frame pointers
and tables, libraries that come and go, inlined C++ with its names and lines, Python's libraries."""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

import e2e
import test_cpu_sample

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "stacks"))
import witness

PLUGINS = os.path.join(e2e.BUILD, "tests", "stacks", "plugins")
PYTHON = os.path.join(HERE, "..", "python", "targets")
SOURCES = ("stacks_inlined.cc", "stl_algo.h", "std_function.h", "invoke.h", "predefined_ops.h")
FILL, WRITE = "clEnqueueFillBuffer", "clEnqueueWriteBuffer"
NAMES = """SELECT y.level, s.value, p.value, y.line FROM frame f JOIN symbol y ON y.frame = f.id
           JOIN string s ON s.id = y.function LEFT JOIN string p ON p.id = y.file
           WHERE f.id = ? ORDER BY y.level"""


def bare(name):
    """A function without its class, arguments and template: what both write in the same way."""
    name = re.sub(r"\(anonymous namespace\)::|\{lambda.*?\}::|\[clone .*", "", name or "")
    name = name.replace("operator()", "operator")
    while "<" in name:
        less = re.sub(r"<[^<>]*>", "", name)
        if less == name:
            break
        name = less
    return name.partition("(")[0].rpartition("::")[2].rpartition(" ")[2]


SAMPLED = """SELECT DISTINCT c.stack FROM cpu_sample c JOIN stack s ON s.id = c.stack
             JOIN symbol y ON y.frame = s.frame JOIN string t ON t.id = y.function
             WHERE c.kind = 1 AND y.level = 0 AND t.value = ?"""


class Debugged(e2e.Case):
    def gdb(self, function, *command, **more):
        """[frames of a call] as gdb_frames.py describes them."""
        out = self.path("gdb-frames")
        done = subprocess.run(
            ["gdb", "-batch", "-nx", "-x", os.path.join(HERE, "gdb_frames.py"), "--args",
             *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, timeout=e2e.TIMEOUT,
            env=e2e.clean_environment(DEBUGINFOD_URLS="", GDB_FRAMES_FUNCTION=function,
                                      GDB_FRAMES_OUT=out, **more))
        text = done.stdout.decode(errors="replace")
        if not os.path.exists(out):
            if re.search("ptrace|Python scripting is not supported|not in executable format", text):
                self.skipTest("gdb cannot run programs here")
            self.fail(text[-2000:])
        with open(out, encoding="utf-8") as file:
            frames = [json.loads(line) for line in file]
        os.unlink(out)
        return frames

    def theirs(self, frames):
        """{frames with code of their own: how many calls}, as far as gdb knows what file they are in"""
        seen = collections.Counter()
        for call in frames:
            own = [(file and os.path.realpath(file), offset) for file, offset, *_, inlined in call
                   if not inlined]
            known = next((i for i, (file, _) in enumerate(own) if not file), len(own))
            seen[tuple(own[:known])] += 1
        return seen


@unittest.skipUnless(shutil.which("gdb"), "no gdb")
class Static(Debugged):
    """No stacks of calls in programs that nothing of perfkit gets into; samples have theirs."""

    @unittest.skipIf(test_cpu_sample.WHY_NOT, test_cpu_sample.WHY_NOT)
    def test_a_static_program(self):
        program = e2e.target("host_static")
        result = self.record(program, "compute", 200, options=["--cpu-sample=997"])
        db = self.open(result.capture)
        ours = set()
        for stack, in db.execute(SAMPLED, ("compute_here",)).fetchall():
            places, stack = [], db.execute("SELECT parent FROM stack WHERE id = ?", (stack,)).fetchone()[0]
            while stack:
                stack, path, offset = db.execute(
                    "SELECT s.parent, m.path, f.offset + coalesce(m.segment, 0) FROM stack s JOIN frame f "
                    "ON f.id = s.frame LEFT JOIN module m ON m.id = f.module WHERE s.id = ?",
                    (stack,)).fetchone()
                places.append((path, offset + 1 if path else None))
            ours.add(tuple(places))
        self.assertEqual(ours, set(self.theirs(self.gdb("compute_here", program, "compute", 1))))


@e2e.needs_opencl
@unittest.skipUnless(shutil.which("gdb"), "no gdb")
class Gdb(Debugged):
    def program(self, name, *words):
        """(the capture, gdb's frames)"""
        path = e2e.target(name)
        if not os.path.exists(path):
            self.skipTest("%s is not built" % name)
        result = self.record(path, *words, options=["--stacks=launch"])
        return self.open(result.capture), self.gdb(FILL, path, *words)

    def compare(self, name, *words):
        db, frames = self.program(name, *words)
        self.assertEqual(witness.recorded(db, "memset"), self.theirs(frames))
        self.assertEqual(self.health(db, "record", "stacks_ended"), 0)

    def test_with_frame_pointers_as_the_compiler_likes(self):
        self.compare("stacks", "places", 2)

    def test_without_frame_pointers(self):
        self.compare("stacks_no_pointer", "places", 2)

    def test_without_tables(self):
        """As programs with musl have it. gdb guesses by the first instructions of functions and may
        lose its way in a thread's first one: there ours go on to the thread's start."""
        db, frames = self.program("stacks_no_tables", "places", 2)
        ours, theirs = witness.recorded(db, "memset"), self.theirs(frames)
        lengths = {frames[:3]: len(frames) for frames in theirs}
        cut = collections.Counter()
        for frames, count in ours.items():
            cut[frames[:lengths.get(frames[:3])]] += count
            self.assertIn("libc.so", frames[-1][0] if "libc.so" in frames[-1][0] else frames[-2][0])
        self.assertEqual(cut, theirs)
        self.assertEqual(self.health(db, "record", "stacks_ended"), 0)

    @unittest.skipUnless(os.uname().machine == "x86_64", "code of this processor has frame pointers")
    def test_with_neither(self):
        """Nobody can tell the callers of such code: the first is right, and what follows is marked as
        no whole stack."""
        db, frames = self.program("stacks_nothing", "places", 2)
        self.assertEqual({frames[0] for frames in witness.recorded(db, "memset")},
                         {frames[0] for frames in self.theirs(frames)})
        self.assertEqual(self.health(db, "record", "stacks_ended"), db.execute(
            "SELECT count(*) FROM memset").fetchone()[0])

    def test_libraries_that_come_and_go(self):
        small, large = (os.path.join(PLUGINS, name) for name in ("small.so", "large.so"))
        self.compare("stacks", "libraries", small, large, small)

    def named(self, db, stack):
        """[(function, source file, line)] with inlined functions, innermost first."""
        names = []
        while stack:
            stack, frame = db.execute("SELECT parent, frame FROM stack WHERE id = ?", (stack,)).fetchone()
            names += [(bare(function), os.path.basename(file), line)
                      for _, function, file, line in db.execute(NAMES, (frame,)) if file and line]
        return tuple(name for name in names if name[1] in SOURCES)

    def test_inlined_functions_and_lines(self):
        db, frames = self.program("stacks_inlined")
        self.assertEqual(witness.recorded(db, "memset"), self.theirs(frames))
        if not db.execute("SELECT count(line) FROM symbol").fetchone()[0]:
            self.skipTest("source lines are not known: built without libdw")
        ours = collections.Counter()
        for stack, count in db.execute("SELECT stack, count(*) FROM memset GROUP BY stack"):
            ours[self.named(db, stack)] += count
        self.assertEqual(ours, collections.Counter(
            tuple((bare(function), source, line) for _, _, function, source, line, _ in call
                  if source in SOURCES) for call in frames))
        self.assertGreater(max(len(names) for names in ours), 3)

    def test_python(self):
        """The native frames below and between Python's, in the main thread and another."""
        script = self.path("writes.py")
        with open(script, "w") as file:
            file.write("import sys, threading\nsys.path.insert(0, %r)\nfrom device import Device\n"
                       "device = Device()\n"
                       "def write(levels):\n    return write(levels - 1) if levels else device.write(8)\n"
                       "write(3)\nlist(map(write, [1]))\n"
                       "thread = threading.Thread(target=write, args=(2,))\nthread.start()\nthread.join()\n"
                       % PYTHON)
        interpreter = os.path.realpath(sys.executable)
        result = self.record(interpreter, "-B", script, options=["--stacks=launch"])
        left_out = ("python3", "libpython3")
        ours = witness.recorded(self.open(result.capture), "transfer", left_out=left_out)
        frames = self.gdb(WRITE, interpreter, "-B", script)
        theirs = collections.Counter()
        for call, count in self.theirs(frames).items():
            theirs[witness.without(call, left_out)] += count
        self.assertEqual(ours, theirs)
        self.assertEqual(sum(theirs.values()), 3)


if __name__ == "__main__":
    e2e.main()
