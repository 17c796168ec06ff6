"""bench/compare_nsys on two made files: what is the same, what differs, and what it refuses."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PERFKIT = os.path.join(os.environ["PERFKIT_E2E_BUILD"], "bin", "perfkit")
loader = importlib.machinery.SourceFileLoader("compare_nsys",
                                              os.path.join(ROOT, "bench", "compare_nsys"))
compare_nsys = importlib.util.module_from_spec(
    importlib.util.spec_from_loader("compare_nsys", loader))
loader.exec_module(compare_nsys)

MANGLED, READABLE = "_Z3addIfEvPT_", "void add<float>(float*)"


def fill(db, table, rows):
    for row in rows:
        db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
                   list(row.values()))


def make_perfkit(path, kernel_ns=1000, kernels=10, copies=3):
    """A capture with perfkit's own tables: that of a program that does nothing, and rows."""
    subprocess.run([PERFKIT, "run", "-q", "-f", "-o", path, "--", "true"], check=True)
    db = sqlite3.connect(path)
    db.execute("DELETE FROM string")
    names = [MANGLED, READABLE, "cudaLaunchKernel", "step", "cudaMemcpyAsync", "here", "cudaMalloc"]
    fill(db, "string", [{"id": i + 1, "value": name} for i, name in enumerate(names)])
    fill(db, "launch_config", [{"id": 1, "name": 1, "demangled": 2}, {"id": 2, "name": 1,
                                                                      "demangled": 2, "grid_x": 7}])
    fill(db, "kernel", [{"start": i, "duration": kernel_ns, "config": 1 + i % 2, "api_name": 3,
                         "api_lead": 5, "api_duration": 2} for i in range(kernels)])
    fill(db, "transfer", [{"start": 1, "duration": 2, "bytes": 100, "kind": 1, "api_name": 5,
                           "api_lead": 0}] * copies)
    fill(db, "memset", [{"start": 1, "duration": 2, "bytes": 64}])
    fill(db, "range", [{"start": 1, "duration": 2, "name": 4}] * 2)
    fill(db, "marker", [{"start": 1, "name": 6}])
    fill(db, "allocation", [{"start": 1, "bytes": 4096, "kind": 3}, {"start": 1, "bytes": 50,
                                                                    "kind": 9}])
    fill(db, "api_call", [{"start": 1, "duration": 1, "name": 7}])
    db.commit()
    db.close()


def make_nsys(path, mangled=True, kernel_ns=1000):
    """The tables and columns of nsys' export that are read (schema 3.25)."""
    db = sqlite3.connect(path)
    db.executescript("""
        CREATE TABLE StringIds (id INTEGER, value TEXT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, demangledName INTEGER,
            shortName INTEGER, mangledName INTEGER);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, bytes INTEGER,
            copyKind INTEGER);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, bytes INTEGER);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, nameId INTEGER);
        CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, bytes INTEGER, memKind INTEGER,
            memoryOperationType INTEGER);
        CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT,
            textId INTEGER);""")
    names = [MANGLED, "void add<float>(T1 *)", "add", "cudaLaunchKernel_v7000",
             "cudaMemcpyAsync_v3020", "step", "cudaMalloc_v3020", "cudaGetDevice_v3020"]
    fill(db, "StringIds", [{"id": i + 1, "value": name} for i, name in enumerate(names)])
    fill(db, "CUPTI_ACTIVITY_KIND_KERNEL", [{
        "start": i, "end": i + kernel_ns, "demangledName": 2, "shortName": 3,
        "mangledName": 1 if mangled else None} for i in range(10)])
    fill(db, "CUPTI_ACTIVITY_KIND_MEMCPY", [{"start": 0, "end": 1, "bytes": 100, "copyKind": 1}] * 3)
    fill(db, "CUPTI_ACTIVITY_KIND_MEMSET", [{"start": 0, "end": 1, "bytes": 64}])
    fill(db, "CUPTI_ACTIVITY_KIND_RUNTIME", [{"start": 0, "end": 1, "nameId": n} for n in
                                             [4] * 10 + [5] * 3 + [7, 8]])
    fill(db, "CUDA_GPU_MEMORY_USAGE_EVENTS", [
        {"start": 0, "bytes": 4096, "memKind": 2, "memoryOperationType": 0},
        {"start": 0, "bytes": 50, "memKind": 2, "memoryOperationType": 0},
        {"start": 0, "bytes": 50, "memKind": 2, "memoryOperationType": 1}])
    fill(db, "NVTX_EVENTS", [{"start": 0, "end": 1, "eventType": 59, "text": "step"},
                             {"start": 0, "end": 1, "eventType": 60, "textId": 6},
                             {"start": 0, "eventType": 34, "text": "here"},
                             {"start": 0, "eventType": 75, "text": "a domain"}])
    db.commit()
    db.close()


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="compare-nsys-test-")
        self.addCleanup(folder.cleanup)
        self.ours, self.theirs, self.json = (os.path.join(folder.name, name) for name in
                                             ("ours.sqlite", "theirs.sqlite", "out.json"))

    def compare(self, *more):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = compare_nsys.main(["--perfkit", self.ours, "--nsys-file", self.theirs, "--json",
                                        self.json, *more])
        told = None
        if status in (0, 1):
            with open(self.json, encoding="utf-8") as file:
                told = json.load(file)
        return status, told, out.getvalue() + err.getvalue()

    def rows(self, told, state):
        return {(row["section"], row["name"]) for row in told["rows"] if row["verdict"] == state}

    def test_the_same(self):
        make_perfkit(self.ours)
        make_nsys(self.theirs)
        status, told, text = self.compare("--all")
        self.assertEqual(status, 0, text)
        self.assertEqual(self.rows(told, "differs"), set())
        self.assertEqual(self.rows(told, "only nsys"), {("calls", "cudaGetDevice")})
        self.assertEqual(self.rows(told, "ok"), {
            ("kernels", MANGLED), ("copies", "host to device"), ("fills", "all"), ("ranges", "step"),
            ("marks", "here"), ("allocations", "device"), ("calls", "cudaLaunchKernel"),
            ("calls", "cudaMemcpyAsync"), ("calls", "cudaMalloc")})
        self.assertEqual(told["kernel_time"], 0)
        self.assertIn("verdict: the same", text)

    def test_without_mangled_names(self):
        make_perfkit(self.ours)
        make_nsys(self.theirs, mangled=False)
        status, told, text = self.compare()
        self.assertEqual(status, 0, text)
        self.assertIn(("kernels", "add"), self.rows(told, "ok"))

    def test_a_lost_kernel_and_copy(self):
        make_perfkit(self.ours, kernels=9, copies=2)
        make_nsys(self.theirs)
        status, told, text = self.compare()
        self.assertEqual(status, 1, text)
        self.assertEqual(self.rows(told, "differs"), {
            ("kernels", MANGLED), ("copies", "host to device"), ("calls", "cudaLaunchKernel"),
            ("calls", "cudaMemcpyAsync")})

    def test_times(self):
        make_perfkit(self.ours, kernel_ns=1020)
        make_nsys(self.theirs)
        status, told, text = self.compare()
        self.assertEqual((status, self.rows(told, "differs")), (1, set()), text)
        self.assertAlmostEqual(told["kernel_time"], 0.02)

    def test_a_kernel_that_only_one_has(self):
        make_perfkit(self.ours)
        make_nsys(self.theirs)
        db = sqlite3.connect(self.ours)
        db.execute("DELETE FROM kernel")
        db.execute("DELETE FROM memset")
        db.commit()
        db.close()
        status, told, text = self.compare()
        self.assertEqual(status, 1, text)
        self.assertIn(("kernels", MANGLED), self.rows(told, "differs"))
        self.assertIn(("fills", "all"), self.rows(told, "differs"))

    def test_refused(self):
        make_nsys(self.theirs)
        self.assertEqual(self.compare()[0], 3)  # no capture
        with open(self.ours, "wb") as file:
            file.write(b"this is no database at all, but long enough to be looked at" * 20)
        self.assertEqual(self.compare()[0], 3)
        for path in (self.ours, self.theirs):
            os.unlink(path)
            sqlite3.connect(path).close()
        self.assertEqual(self.compare()[0], 3)  # nothing in either

    def test_both_record(self):
        """The command is run by each tool; here nsys is a script that hands out a made export."""
        make_nsys(self.theirs)
        nsys = os.path.join(os.path.dirname(self.ours), "nsys")
        with open(nsys, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\n'
                       'while [ "$1" ]; do case $1 in\n'
                       '  profile) how=profile;; export) how=export;;\n'
                       '  -o) out=$2; shift;; --) break;;\n'
                       'esac; shift; done\n'
                       'case $how in profile) : > "$out.nsys-rep";;\n'
                       f'export) cp {self.theirs} "$out";; esac\n')
        os.chmod(nsys, 0o700)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = compare_nsys.main([os.environ["PERFKIT_E2E_BUILD"], "--nsys", nsys, "--json",
                                        self.json, "--", "true"])
        self.assertEqual(status, 1, out.getvalue() + err.getvalue())
        with open(self.json, encoding="utf-8") as file:
            told = json.load(file)
        self.assertEqual(told["command"], ["true"])
        self.assertIn(("kernels", MANGLED), self.rows(told, "differs"))

    def test_names(self):
        for name, short in (("void at::native::vectorized_elementwise_kernel<4, at::native::F<float>, "
                             "std::array<char*, 2ul> >(int, F<float>)", "vectorized_elementwise_kernel"),
                            ("count_alpha", "count_alpha"), ("void (anonymous namespace)::k<1>(int)", "k"),
                            ("int* f(int)", "f")):
            self.assertEqual(compare_nsys.short_name(name), short)
        for name, plain in (("cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel"),
                            ("cudaMemcpyAsync_v3020", "cudaMemcpyAsync"),
                            ("cuMemAlloc_v2", "cuMemAlloc_v2")):
            self.assertEqual(compare_nsys.plain_call(name), plain)


if __name__ == "__main__":
    unittest.main(verbosity=2)
