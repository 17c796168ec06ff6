"""Call stacks (--stacks): every call has the stack of the place that made it, by the program's symbols
and by another unwinder; against gdb: test_stacks_gdb.py."""
import collections
import os
import re
import shutil
import struct
import subprocess
import sys
import unittest

import e2e

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stacks"))
import witness

WITNESS = os.path.join(e2e.BUILD, "lib", "libstack_witness.so")
PLUGINS = os.path.join(e2e.BUILD, "tests", "stacks", "plugins")


def symbols(path):
    """[(first, last + 1, name)] of the functions of an ELF file, from its lowest page on."""
    with open(path, "rb") as file:
        header = file.read(64)
        offset, = struct.unpack_from("<Q", header, 32)
        size, count = struct.unpack_from("<HH", header, 54)
        file.seek(offset)
        segments = [struct.unpack_from("<IIQQQQQQ", file.read(size)) for _ in range(count)]
    base = min(s[3] for s in segments if s[0] == 1) & ~4095
    out = subprocess.run(["nm", "-S", path], stdout=subprocess.PIPE, check=True).stdout.decode()
    found = re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tTwW] (\S+)$", out, re.M)
    return [(int(at, 16) - base, int(at, 16) - base + int(size, 16), name.split(".")[0])
            for at, size, name in found]


@e2e.needs_opencl
@unittest.skipUnless(shutil.which("nm"), "no nm")
class Stacks(e2e.Case):
    program = e2e.target("stacks")

    def recorded(self, *words, stacks="launch,alloc,sync", options=()):
        result = self.record(self.program, *words, options=["--stacks=" + stacks, *options])
        db = self.open(result.capture)
        self.assert_conserved(db)
        return db

    def frames(self, db, stack):
        """[(module's path, offset)] from the innermost frame outwards."""
        frames = []
        while stack:
            stack, path, offset = db.execute(
                "SELECT stack.parent, module.path, frame.offset FROM stack JOIN frame ON frame.id = "
                "stack.frame LEFT JOIN module ON module.id = frame.module WHERE stack.id = ?",
                (stack,)).fetchone()
            frames.append((path, offset))
        return frames

    def names(self, db, stack):
        """The functions of the program that a stack leads through, and those of others by their
        file's name in brackets, each once."""
        known, names = symbols(self.program), []
        for path, offset in self.frames(db, stack):
            name = "[%s]" % os.path.basename(path or "?")
            if path == self.program:
                name = next((s[2] for s in known if s[0] <= offset < s[1]), "?")
            if not names or name != names[-1] or name[0] != "[":
                names.append(name)
        return tuple(names)

    def paths(self, db, table, where="1"):
        """{names: how many rows have them}"""
        paths = collections.Counter()
        for stack, count in db.execute(
                "SELECT stack, count(*) FROM %s WHERE %s GROUP BY stack" % (table, where)):
            paths[self.names(db, stack)] += count
        return paths

    def inside(self, paths):
        """Without what lies outside of main or of the thread's function."""
        cut = {}
        for names, count in paths.items():
            end = next((i for i, name in enumerate(names) if name in ("main", "in_thread")), None)
            self.assertIsNotNone(end, "%s: leads to no first function" % (names,))
            self.assertTrue(all(name[0] == "[" or name == "_start" for name in names[end + 1:]), names)
            cut[names[:end + 1]] = cut.get(names[:end + 1], 0) + count
        return cut

    def test_places(self):
        db = self.recorded("places", 20)
        self.assertEqual(self.inside(self.paths(db, "memset")), {
            ("fill_left", "both", "places", "main"): 20,
            ("fill_right", "both", "places", "main"): 20,
            ("fill_left", "both", "in_thread"): 20, ("fill_right", "both", "in_thread"): 20})
        self.assertEqual(self.inside(self.paths(db, "allocation")),
                         {("allocate", "places", "main"): 21})
        self.assertEqual(self.inside(self.paths(db, "sync")),
                         {("finish", "places", "main"): 21})
        self.assertEqual(self.health(db, "record", "stacks_unsent"), 0)
        self.assertEqual(self.health(db, "record", "stacks_ended"), 0)
        # Each is in the file once, and in all of them the program's file is the same
        self.assertEqual(self.one(db, "SELECT count(*) FROM module WHERE path = ?", self.program), 1)

    def test_builds(self):
        """Every one, whatever the rate of launches: they are few and long."""
        db = self.recorded("compile", 3, stacks="launch:10")
        built = "name = (SELECT id FROM string WHERE value = 'clBuildProgram')"
        self.assertEqual(self.inside(self.paths(db, "api_call", built)), {("compile", "main"): 3})

    def test_only_what_is_asked_for(self):
        db = self.recorded("places", 20, stacks="launch:10")
        rows = db.execute("SELECT count(stack), count(*) FROM memset").fetchone()
        self.assertEqual(rows, (8, 80))  # every tenth of each thread's 40
        self.assertEqual(self.one(db, "SELECT count(stack) FROM allocation"), 0)
        self.assertEqual(self.one(db, "SELECT count(stack) FROM api_call"), 0)
        result = self.record(self.program, "places", 3)
        db = self.open(result.capture)
        self.assertEqual(self.one(db, "SELECT count(stack) FROM memset"), 0)

    def test_depth(self):
        db = self.recorded("places", 3, stacks="launch", options=["--stack-depth=6"])
        self.assertGreater(self.health(db, "record", "stacks_cut"), 0)

    def test_without_preload(self):
        db = self.recorded("places", 2, options=["--no-preload"])
        self.assertIn(("fill_left", "both", "places", "main"), self.inside(self.paths(db, "memset")))

    def test_forked_child(self):
        db = self.recorded("fork")
        self.assertEqual(self.inside(self.paths(db, "memset")),
                         {("fill_left", "main"): 1, ("fill_right", "main"): 1})
        self.assertEqual(self.one(db, "SELECT count(DISTINCT process) FROM frame"), 2)

    def test_libraries_that_come_and_go(self):
        small, large = (os.path.join(PLUGINS, name) for name in ("small.so", "large.so"))
        db = self.recorded("libraries", small, large, small)
        self.assertEqual(self.inside(self.paths(db, "memset")), {
            ("fill_left", "from_library", "[small.so]", "library", "main"): 2,
            ("fill_left", "from_library", "[large.so]", "library", "main"): 1})
        ended = db.execute("SELECT count(*) FROM module WHERE path IN (?, ?) AND end IS NOT NULL",
                           (small, large)).fetchone()[0]
        self.assertGreaterEqual(ended, 2)

    @unittest.skipUnless(os.path.exists(WITNESS), "no witness for this processor")
    def test_as_the_runtime_of_cpp_has_it(self):
        """Whole stacks with the frames of all libraries, out to the thread's first function."""
        for words in (("places", 3), ("libraries", os.path.join(PLUGINS, "small.so"),
                                      os.path.join(PLUGINS, "large.so"))):
            prefix = self.path("witness-" + words[0])
            result = self.record(self.program, *words, options=["--stacks=launch"],
                                 env=e2e.clean_environment(LD_PRELOAD=WITNESS, STACK_WITNESS=prefix))
            ours = witness.recorded(self.open(result.capture), "memset")
            theirs = witness.told(prefix, ["clEnqueueFillBuffer"])
            self.assertEqual(ours, theirs)
            self.assertEqual(sum(theirs.values()), 12 if words[0] == "places" else 2)


if __name__ == "__main__":
    e2e.main()
