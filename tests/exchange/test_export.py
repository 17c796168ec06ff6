#!/usr/bin/env python3
"""perfkit export --format nsys: what readers of Nsight Systems' files ask of them holds, and nothing is lost or
counted twice on the way.

    test_export.py PERFKIT REPORT_TOOL REPORT_SCENES WORK_FOLDER

PERFKIT_NSYS_READERS may name a folder with third-party readers (nsys2json, nsightful, nsys-llm-explainer,
nsys-perfetter, each in a folder of its name): then they are run on every export.
"""
import csv
import io
import os
import shutil
import sqlite3
import subprocess
import sys
import unittest

from scenes import ask, make, one

perfkit, tool, report_scenes, work = [os.path.abspath(a) for a in sys.argv[1:5]]
shutil.rmtree(work, ignore_errors=True)
CAPTURES = make(tool, work, report_scenes)
EXPORTS = {}

# What NVIDIA's reports and third-party readers name.
COLUMNS = {
    "StringIds": "id value",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start end deviceId contextId greenContextId streamId correlationId globalPid "
    "demangledName shortName mangledName launchType cacheConfig registersPerThread gridX gridY gridZ blockX blockY "
    "blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread localMemoryTotal gridId graphNodeId",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start end deviceId contextId greenContextId streamId correlationId globalPid bytes "
    "copyKind srcKind dstKind graphNodeId",
    "CUPTI_ACTIVITY_KIND_MEMSET": "start end deviceId contextId greenContextId streamId correlationId globalPid value "
    "bytes memKind",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "start end deviceId contextId streamId correlationId globalPid syncType "
    "eventId",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end eventClass globalTid correlationId nameId returnValue callchainId",
    "NVTX_EVENTS": "start end eventType rangeId category color text globalTid endGlobalTid textId domainId uint64Value "
    "int64Value doubleValue uint32Value int32Value floatValue jsonTextId jsonText binaryData",
    "PROCESSES": "globalPid pid name",
    "ThreadNames": "nameId priority globalTid",
    "TARGET_INFO_GPU": "id name busLocation uuid smCount computeMajor computeMinor totalMemory memoryBandwidth",
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId pid uuid numMultiprocessors",
    "TARGET_INFO_CUDA_CONTEXT_INFO": "nullStreamId processId deviceId contextId",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime localTime",
    "ANALYSIS_DETAILS": "globalVid duration startTime stopTime",
    "META_DATA_EXPORT": "name value",
    "META_DATA_CAPTURE": "name value",
    "ENUM_CUDA_MEMCPY_OPER": "id name label",
    "ENUM_CUDA_MEM_KIND": "id name label",
    "ENUM_CUDA_KERNEL_LAUNCH_TYPE": "id name label",
    "ENUM_CUPTI_SYNC_TYPE": "id name label",
    "ENUM_NSYS_EVENT_CLASS": "id name label",
    "ENUM_NSYS_EVENT_TYPE": "id name label",
}
PID_OF = "(globalTid & 0xFFFFFFFFFF000000)"
CALL_JOIN = ("FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN {table} k ON k.correlationId = r.correlationId AND "
             "k.globalPid = (r.globalTid & ~16777215)")


def run(*arguments, **options):
    return subprocess.run([perfkit, "export", *arguments], capture_output=True, text=True, errors="replace", **options)


def setUpModule():
    for name, capture in CAPTURES.items():
        EXPORTS[name] = os.path.join(work, name + "-nsys.sqlite")
        done = run(capture, "--format", "nsys", EXPORTS[name])
        assert done.returncode == 0, done.stderr


class Contract(unittest.TestCase):
    def each(self):
        for name, path in EXPORTS.items():
            with self.subTest(name):
                yield CAPTURES[name], path

    def test_one_plain_file(self):
        for _, path in self.each():
            self.assertEqual(one(path, "PRAGMA journal_mode"), "delete")
            self.assertEqual(one(path, "PRAGMA application_id"), 0)
            self.assertEqual(one(path, "PRAGMA integrity_check"), "ok")
            folder = os.path.dirname(path)
            self.assertEqual([f for f in os.listdir(folder) if f.startswith(os.path.basename(path))],
                             [os.path.basename(path)])

    def test_tables_and_columns(self):
        for _, path in self.each():
            tables = {row[0] for row in ask(path, "SELECT name FROM sqlite_master WHERE type = 'table'")}
            for table, columns in COLUMNS.items():
                self.assertIn(table, tables)
                have = {row[1] for row in ask(path, f"PRAGMA table_info({table})")}
                self.assertEqual(set(columns.split()) - have, set(), table)
                ask(path, f"SELECT rowid, * FROM {table} LIMIT 1")

    def test_says_who_wrote_it(self):
        for _, path in self.each():
            meta = dict(ask(path, "SELECT name, value FROM META_DATA_EXPORT"))
            self.assertEqual(meta["EXPORT_PRODUCT_NAME"], "perfkit")
            self.assertEqual(meta["EXPORT_SCHEMA_VERSION"].split(".")[:2], ["3", "25"])

    def test_values_that_readers_do_not_expect_to_be_absent(self):
        for _, path in self.each():
            for table, columns in {
                    "CUPTI_ACTIVITY_KIND_KERNEL": ("launchType", "shortName", "demangledName", "mangledName",
                                                   "correlationId", "globalPid", "deviceId", "streamId"),
                    "CUPTI_ACTIVITY_KIND_MEMCPY": ("srcKind", "dstKind", "correlationId", "copyKind", "bytes"),
                    "CUPTI_ACTIVITY_KIND_MEMSET": ("memKind", "correlationId"),
                    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": ("syncType", "eventId", "globalPid"),
                    "CUPTI_ACTIVITY_KIND_RUNTIME": ("globalTid", "correlationId", "nameId")}.items():
                for column in columns:
                    self.assertEqual(one(path, f"SELECT count(*) FROM {table} WHERE {column} IS NULL"), 0,
                                     f"{table}.{column}")
            self.assertEqual(one(path, "SELECT count(*) FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId "
                                       "WHERE eventType IN (34, 59, 60) AND (n.text IS NULL OR s.value IS NOT n.text)"), 0)

    def test_what_nsys_declares_not_null_is_there(self):
        for _, path in self.each():
            for table, columns in {
                    "CUPTI_ACTIVITY_KIND_KERNEL": "start end deviceId contextId streamId demangledName shortName registersPerThread gridX gridY "
                    "gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread localMemoryTotal gridId",
                    "CUPTI_ACTIVITY_KIND_MEMCPY": "start end deviceId contextId streamId bytes copyKind",
                    "CUPTI_ACTIVITY_KIND_MEMSET": "start end deviceId contextId streamId value bytes",
                    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "start end deviceId contextId streamId syncType eventId",
                    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end eventClass returnValue", "NVTX_EVENTS": "start eventType"}.items():
                declared = {row[0] for row in ask(path, f"SELECT name FROM pragma_table_info('{table}') WHERE \"notnull\"")}
                self.assertEqual(set(columns.split()) - declared, set(), table)

    def test_every_number_leads_somewhere(self):
        for _, path in self.each():
            for table, column in (("KERNEL", "demangledName"), ("KERNEL", "shortName"), ("RUNTIME", "nameId")):
                self.assertEqual(one(path, f"SELECT count(*) FROM CUPTI_ACTIVITY_KIND_{table} WHERE {column} NOT IN "
                                           "(SELECT id FROM StringIds)"), 0)
            for table in ("KERNEL", "MEMCPY", "MEMSET"):
                table = "CUPTI_ACTIVITY_KIND_" + table
                self.assertEqual(one(path, f"SELECT count(*) FROM {table} WHERE deviceId NOT IN (SELECT id FROM "
                                           "TARGET_INFO_GPU) OR globalPid NOT IN (SELECT globalPid FROM PROCESSES)"), 0)
                self.assertEqual(one(path, f"SELECT count(*) FROM {table} WHERE globalPid >> 48 <> 1"), 0)
            self.assertEqual(one(path, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE globalTid NOT IN "
                                       "(SELECT globalTid FROM ThreadNames)"), 0)
            self.assertEqual(one(path, "SELECT count(*) FROM ThreadNames t LEFT JOIN StringIds s ON s.id = t.nameId "
                                       "WHERE s.value IS NULL"), 0)
            self.assertEqual(one(path, "SELECT count(*) - count(DISTINCT id) FROM TARGET_INFO_GPU"), 0)


class Stacks(unittest.TestCase):
    def test_call_chains(self):
        source = next(path for path in CAPTURES.values() if one(path, "SELECT count(*) FROM kernel WHERE api_name NOT NULL"))
        capture, out = os.path.join(work, "stacks.sqlite"), os.path.join(work, "stacks-nsys.sqlite")
        shutil.copy(source, capture)
        with sqlite3.connect(capture) as db:
            text = db.execute("SELECT max(id) FROM string").fetchone()[0]
            for table in ("stack", "frame", "symbol", "module"):
                db.execute(f"DELETE FROM {table}")
            db.executescript(f"""
                INSERT INTO string(id, value) VALUES({text + 1}, 'main'), ({text + 2}, 'outer'), ({text + 3}, 'inlined');
                INSERT INTO module(id, process, path, address, bytes) VALUES(1, 1, '/bin/program', 4096, 8192);
                INSERT INTO frame(id, process, kind, address, module, offset) VALUES(1, 1, 1, 5000, 1, 904),
                    (2, 1, 1, 6000, 1, 1904), (3, 1, 1, 77, NULL, NULL), (4, 1, 0, NULL, NULL, NULL);
                INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, {text + 1}, NULL, 3),
                    (2, 0, {text + 3}, NULL, 4), (2, 1, {text + 2}, NULL, 5);
                INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, 1, 2, 2), (3, 2, 3, 3),
                    (4, NULL, 4, 1), (5, 6, 2, 1), (6, 5, 2, 1);
                UPDATE kernel SET stack = 3; UPDATE transfer SET stack = 4; UPDATE memset SET stack = 6;
                UPDATE api_call SET stack = 99;""")
        done = run(capture, "--format", "nsys", out, "--force")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("files and lines of call stacks", done.stderr)
        self.assertEqual(ask(out, "SELECT c.stackDepth, s.value, m.value, c.unresolved, c.originalIP FROM CUDA_CALLCHAINS c JOIN "
                                  "StringIds s ON s.id = c.symbol JOIN StringIds m ON m.id = c.module WHERE c.id = 3 ORDER BY 1"),
                         [(0, "0x4d", "[Unknown]", 1, 77), (1, "inlined", "/bin/program", 0, 6000),
                          (2, "outer", "/bin/program", 0, 6000), (3, "main", "/bin/program", 0, 5000)])
        self.assertEqual(one(out, "SELECT s.value FROM CUDA_CALLCHAINS c JOIN StringIds s ON s.id = c.symbol WHERE c.id = 4"),
                         "[callers unknown]")
        self.assertEqual(one(out, "SELECT count(*) FROM CUDA_CALLCHAINS WHERE id = 99"), 0)
        self.assertGreater(one(out, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN CUPTI_ACTIVITY_KIND_KERNEL k ON "
                                    "k.correlationId = r.correlationId AND k.globalPid = r.globalTid & -16777216 JOIN "
                                    "CUDA_CALLCHAINS c ON c.id = r.callchainId AND c.stackDepth = 3"), 0)
        # And back: the same names and modules at the same addresses, for as many kernels.
        back = os.path.join(work, "stacks-back.sqlite")
        done = subprocess.run([perfkit, "import", out, "-o", back, "--force"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(one(back, "SELECT count(*) FROM kernel WHERE stack NOT NULL"),
                         one(capture, "SELECT count(*) FROM kernel WHERE api_lead + api_duration NOT NULL AND thread NOT NULL"))
        self.assertEqual(ask(back, "WITH RECURSIVE up(id, at) AS (SELECT DISTINCT stack, 0 FROM kernel WHERE stack NOT NULL UNION ALL SELECT parent, "
                                   "at + 1 FROM up JOIN stack s ON s.id = up.id) SELECT n.value, m.path, f.address FROM up JOIN stack s ON s.id = up.id "
                                   "JOIN frame f ON f.id = s.frame LEFT JOIN symbol y ON y.frame = f.id LEFT JOIN string n ON n.id = y.function "
                                   "LEFT JOIN module m ON m.id = f.module ORDER BY at"),
                         [(None, "[Unknown]", 77), ("inlined", "/bin/program", 6000), ("outer", "/bin/program", 6000), ("main", "/bin/program", 5000)])
        self.assertEqual(ask(back, "SELECT DISTINCT f.kind FROM transfer t JOIN stack s ON s.id = t.stack JOIN frame f ON f.id = s.frame"), [(0,)])


class Numbers(unittest.TestCase):
    def test_counts(self):
        for name, path in EXPORTS.items():
            capture = CAPTURES[name]
            timed = "WHERE start NOT NULL AND duration NOT NULL"
            for ours, theirs in (("kernel", "KERNEL"), ("transfer", "MEMCPY"), ("memset", "MEMSET"), ("sync", "SYNCHRONIZATION")):
                extra = one(capture, "SELECT count(*) FROM migration WHERE kind IN (1, 2, 8)") if ours == "transfer" else 0
                self.assertEqual(one(path, f"SELECT count(*) FROM CUPTI_ACTIVITY_KIND_{theirs}"),
                                 one(capture, f"SELECT count(*) FROM {ours} {timed}") + extra, (name, ours))
            self.assertEqual(one(path, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME"),
                             one(capture, "SELECT count(*) FROM api_all WHERE duration NOT NULL"), name)
            self.assertEqual(one(path, "SELECT count(*) FROM NVTX_EVENTS WHERE eventType IN (59, 60)"),
                             one(capture, "SELECT count(*) FROM range"), name)

    def test_calls_meet_their_kernels(self):
        for name, path in EXPORTS.items():
            for ours, theirs in (("kernel", "KERNEL"), ("transfer", "MEMCPY"), ("memset", "MEMSET"), ("sync", "SYNCHRONIZATION")):
                join = CALL_JOIN.format(table="CUPTI_ACTIVITY_KIND_" + theirs)
                self.assertEqual(one(path, "SELECT count(*) " + join),
                                 one(CAPTURES[name], f"SELECT count(*) FROM {ours} k WHERE start NOT NULL AND duration NOT NULL "
                                     "AND ((api_name NOT NULL AND api_lead NOT NULL AND api_duration NOT NULL) OR (correlation NOT NULL AND "
                                     "correlation IN (SELECT correlation FROM api_call)))"), (name, ours))

    def test_kernel_sums_are_those_of_the_report(self):
        for name, path in EXPORTS.items():
            # cuda_gpu_kern_sum of nsys
            theirs = ask(path, "SELECT sum(end - start) AS total, count(*), min(end - start), max(end - start), s.value FROM "
                         "CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName GROUP BY s.value ORDER BY total DESC")
            # The capture's own export is the third column: names are compared by their sums.
            out = subprocess.run([perfkit, "report", CAPTURES[name], "--stats", "cuda_gpu_kern_sum", "--format", "csv"],
                                 capture_output=True, text=True, errors="surrogateescape", check=True).stdout
            rows = [row for row in csv.reader(io.StringIO(out)) if len(row) > 8 and row[1].isdigit()]
            ours = [(int(row[1]), int(row[2]), int(row[5]), int(row[6])) for row in rows]
            self.assertEqual(sorted(ours), sorted(row[:4] for row in theirs), name)

    def test_device_numbers(self):
        path = EXPORTS["both"]
        gpus = dict(ask(path, "SELECT uuid, id FROM TARGET_INFO_GPU"))
        self.assertEqual(gpus, {"a": 0, "b": 1, "c": 2})
        self.assertEqual(ask(path, "SELECT deviceId, count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL GROUP BY 1"), [(0, 4), (1, 1), (2, 1)])
        self.assertEqual(one(path, "SELECT value FROM META_DATA_EXPORT WHERE name = 'PERFKIT_OPENCL_DEVICE'"), "2 cpu")

    def test_short_names(self):
        path = EXPORTS["both"]
        self.assertEqual(ask(path, "SELECT DISTINCT d.value, s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds d ON d.id = "
                                   "k.demangledName JOIN StringIds s ON s.id = k.shortName WHERE d.value LIKE '%gemm%'"),
                         [("void ns::gemm<float>(float*)", "gemm")])

    def test_short_names_of_operators(self):
        capture, out = os.path.join(work, "operators.sqlite"), os.path.join(work, "operators-nsys.sqlite")
        shutil.copy(CAPTURES["both"], capture)
        inside = "at::direct_copy(at::It&)::{lambda()#3}::operator()() const::{lambda(float)#1}"
        for name, short in ((f"void at::native::unrolled_kernel<{inside}, Array<char*, 2> >(int, {inside})", "unrolled_kernel"),
                            ("void ns::Functor<int>::operator()<float>(int) const", "ns::Functor<int>::operator()<float>"),
                            ("void <unnamed>::warp_forward<(bool)0>(int)", "warp_forward")):
            with sqlite3.connect(capture) as db:
                db.execute("UPDATE string SET value = ? WHERE id IN (SELECT coalesce(demangled, name) FROM launch_config LIMIT 1)", (name,))
            self.assertEqual(run(capture, "--format", "nsys", out, "--force").returncode, 0)
            self.assertIn((short,), ask(out, "SELECT DISTINCT s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds d ON d.id = k.demangledName "
                                             "JOIN StringIds s ON s.id = k.shortName WHERE d.value = '%s'" % name))

    def test_every_kind_has_its_table(self):
        path = EXPORTS["both"]
        for table, rows in (("CUPTI_ACTIVITY_KIND_CUDA_EVENT", 2), ("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", 1),
                            ("CUPTI_ACTIVITY_KIND_OVERHEAD", 2), ("CUPTI_ACTIVITY_KIND_JIT", 1), ("CUDA_GRAPH_NODE_EVENTS", 1),
                            ("CUDA_GPU_MEMORY_USAGE_EVENTS", 4), ("CUDA_GPU_MEMORY_POOL_EVENTS", 1),
                            ("CUDA_UM_CPU_PAGE_FAULT_EVENTS", 1), ("CUDA_UM_GPU_PAGE_FAULT_EVENTS", 1), ("GPU_METRICS", 1)):
            self.assertEqual(one(path, f"SELECT count(*) FROM {table}"), rows, table)
        self.assertEqual(ask(path, "SELECT eventType, count(*) FROM NVTX_EVENTS GROUP BY 1 ORDER BY 1"),
                         [(33, 1), (34, 1), (59, 4), (60, 1), (75, 1)])
        self.assertEqual(one(path, "SELECT value FROM GPU_METRICS"), 1234)
        self.assertEqual(one(path, "SELECT address FROM CUDA_GPU_MEMORY_USAGE_EVENTS WHERE bytes = 4096 LIMIT 1"), 9007199254740993)

    def test_what_is_left_out_is_said(self):
        notes = " ".join(row[0] for row in ask(EXPORTS["both"], "SELECT value FROM META_DATA_EXPORT WHERE name = 'PERFKIT_NOTE'"))
        self.assertIn("device records without times, which were never seen to end, are left out: 2", notes)
        self.assertIn("their calls as calls of the CUDA runtime: 1", notes)
        self.assertIn("(thrashing, throttling, remote maps): 1", notes)


class Files(unittest.TestCase):
    def test_existing_files_are_kept(self):
        target = os.path.join(work, "kept")
        with open(target, "w", encoding="ascii") as out:
            out.write("mine")
        done = run(CAPTURES["normal"], target)
        self.assertEqual(done.returncode, 2)
        self.assertIn("exists already", done.stderr)
        with open(target, encoding="ascii") as text:
            self.assertEqual(text.read(), "mine")
        self.assertEqual(run(CAPTURES["normal"], target, "--force").returncode, 0)
        self.assertGreater(one(target, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 0)

    def test_the_file_may_be_named_by_an_option(self):
        target = os.path.join(work, "by-option")
        self.assertEqual(run(CAPTURES["normal"], "-o", target).returncode, 0)
        self.assertGreater(one(target, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 0)
        for words, said in (((), "no output file: "), ((CAPTURES["normal"], "x", "-o", target), "twice")):
            done = run(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)

    def test_a_capture_alone_is_what_to_read(self):
        """Also where there is none of that name: a slip in it must not become the output of the newest capture."""
        folder = os.path.join(work, "alone")
        os.mkdir(folder)
        only = os.path.join(folder, "only.sqlite")
        shutil.copy(CAPTURES["normal"], only)
        for words, said in (((only, "--force"), "no output file: "), (("typo.sqlite",), "no output file: "),
                            (("-o", only, "--force"), "no output file, and " + only)):
            done = run(*words, cwd=folder)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)
            self.assertEqual(os.listdir(folder), ["only.sqlite"])
            self.assertGreater(one(only, "SELECT count(*) FROM kernel"), 0)
        self.assertEqual(run("-o", "newest", cwd=folder).returncode, 0)

    def test_never_over_itself(self):
        before = os.stat(CAPTURES["normal"]).st_size
        self.assertEqual(run(CAPTURES["normal"], CAPTURES["normal"], "--force").returncode, 2)
        self.assertEqual(os.stat(CAPTURES["normal"]).st_size, before)

    def test_bad_input(self):
        for bad in ("/dev/null", os.path.join(work, "none"), EXPORTS["normal"]):
            target = os.path.join(work, "bad-out")
            done = run(bad, target)
            self.assertEqual(done.returncode, 2, bad)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertFalse(os.path.exists(target))

    def test_unwritable(self):
        done = run(CAPTURES["normal"], os.path.join(work, "no", "such", "folder"))
        self.assertEqual(done.returncode, 1)
        self.assertEqual([f for f in os.listdir(work) if "XXXXXX" in f], [])

    def test_too_large_for_the_disk(self):
        target = os.path.join(work, "limited")
        done = subprocess.run(["bash", "-c", "ulimit -f 64; trap '' XFSZ; exec \"$@\"", "-", perfkit, "export",
                               CAPTURES["normal"], target], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual([f for f in os.listdir(work) if f.startswith("limited")], [])


class OtherReaders(unittest.TestCase):
    """They read what they were written for; that they end well, and what they count, is asserted."""

    def setUp(self):
        self.readers = os.environ.get("PERFKIT_NSYS_READERS")
        if not self.readers:
            self.skipTest("PERFKIT_NSYS_READERS names no folder of readers")

    def read(self, name, *command, folder=".", **environment):
        cwd = os.path.join(self.readers, name, folder)
        if not os.path.isdir(cwd):
            self.skipTest(f"{name} is not in PERFKIT_NSYS_READERS")
        done = subprocess.run([sys.executable, "-B", *command], cwd=cwd, capture_output=True, text=True, errors="replace", check=False,
                              env=dict(os.environ, **environment))
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-2000:])
        return done.stdout

    def test_nsys2json(self):
        out = os.path.join(work, "nsys2json.json")
        self.read("nsys2json", "nsys2json.py", "-f", EXPORTS["normal"], "-o", out, "-t", "kernel", "nvtx", "nvtx-kernel", "cuda-api")
        self.assertGreater(os.stat(out).st_size, 10000)

    def test_nsightful(self):
        out = os.path.join(work, "nsightful.json")
        self.read("nsightful", "-m", "nsightful.cli", "nsys", "-f", EXPORTS["normal"], "-o", out, folder="src")
        self.assertGreater(os.stat(out).st_size, 10000)

    def test_llm_explainer(self):
        for name in ("normal", "both"):
            out = os.path.join(work, "explained-" + name)
            self.read("nsys-llm-explainer", "-m", "nsys_llm_explainer.cli", EXPORTS[name], "--out", out, folder="src")
            self.assertTrue(os.listdir(out))

    def test_perfetter(self):
        out = os.path.join(work, "perfetter.pftrace")
        try:
            import google.protobuf  # noqa: F401
            import humanize  # noqa: F401
        except ImportError:
            self.skipTest("python3-protobuf, python3-humanize are not installed")
        # OpenCL knows no registers; the reader takes no kernel that starts before its call
        capture, opencl = os.path.join(work, "opencl.sqlite"), os.path.join(work, "opencl-nsys.sqlite")
        shutil.copy(CAPTURES["both"], capture)
        with sqlite3.connect(capture) as db:
            db.execute("UPDATE kernel SET api_lead = abs(api_lead)")
        self.assertEqual(run(capture, "--format", "nsys", opencl, "--force").returncode, 0)
        for path in (EXPORTS["normal"], opencl):
            self.read("nsys-perfetter", "-m", "lib.nsys_perfetter", "--nsys-report", path, "--output", out,
                      PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python")
            self.assertGreater(os.stat(out).st_size, 1000)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
