#!/usr/bin/env python3
"""perfkit import: files of other tools become captures whose figures are those of the files; what is broken is
refused with the place, and nothing is left behind. Traces: test_import_traces.py.

    test_import.py PERFKIT REPORT_TOOL REPORT_SCENES WORK_FOLDER

PERFKIT_NSYS_SAMPLES may name files of real tools, separated by colons: their sums are compared with those that are
computed directly from them.
"""
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

import nsys_files
import rocpd_files
from importing import CAPTURES, HAS_JSON, NothingLeft, import_file, path_of, perfkit, report, run, work
from scenes import ask, one


class Rocpd(NothingLeft):
    """AMD's: counts and sums of the capture are those of SQL on the source; both of its schemas."""

    def check(self, path):
        out, sums = import_file(path), rocpd_files.source_sums(path)
        for table, source in (("kernel", "kernel_dispatch"), ("transfer", "memory_copy"), ("range", "ranges")):
            self.assertEqual(ask(out, f"SELECT count(*), sum(duration) FROM {table} WHERE duration NOT NULL"), [sums[source]], table)
        self.assertEqual(ask(out, "SELECT count(*), sum(duration) FROM api_all"), [sums["calls"]])
        self.assertEqual(one(out, "SELECT sum(bytes) FROM transfer"), sums["bytes"])
        return out

    def test_both_schemas(self):
        outs = []
        for schema in (3, 4):
            path = path_of(f"rocpd{schema}.db")
            rocpd_files.make(path, schema)
            outs.append(self.check(path))
            shown = {row["name"]: row for row in report(outs[-1])["kernels"]["rows"]}
            self.assertEqual(sorted(shown), sorted(rocpd_files.KERNELS))
            os.rename(outs[-1], path_of(f"rocpd{schema}.sqlite"))
        three, four = path_of("rocpd3.sqlite"), path_of("rocpd4.sqlite")
        for sql in ("SELECT * FROM kernel", "SELECT * FROM transfer", "SELECT * FROM range", "SELECT * FROM device", "SELECT * FROM allocation"):
            self.assertEqual(ask(three, sql), ask(four, sql), sql)

    def test_what_is_in_it(self):
        path = path_of("rocpd.db")
        rocpd_files.make(path, 3, pids=(300,), steps=3)
        out = import_file(path)
        self.assertEqual(ask(out, "SELECT ordinal, api, name, units FROM device ORDER BY ordinal"),
                         [(0, "hip", "AMD Instinct MI300X", 304), (1, "hip", "AMD Instinct MI300X", 304)])
        # a grid is counted in work-items there, in groups here
        self.assertEqual(ask(out, "SELECT DISTINCT grid_x, grid_y, block_x FROM launch_config"), [(4, 2, 256)])
        self.assertEqual(ask(out, "SELECT s.value, count(*) FROM kernel k JOIN string s ON s.id = k.api_name GROUP BY 1"), [("hipLaunchKernel", 15)])
        self.assertEqual(ask(out, "SELECT s.value, count(*) FROM range r JOIN string s ON s.id = r.name GROUP BY 1"), [("step", 3)])
        self.assertEqual(one(out, "SELECT count(*) FROM marker"), 3)
        self.assertEqual(ask(out, "SELECT kind, count(*) FROM transfer GROUP BY 1 ORDER BY 1"), [(1, 3), (2, 3), (10, 3)])
        self.assertEqual(ask(out, "SELECT count(*), sum(bytes), count(end) FROM allocation"), [(3, 3 * 4096, 3)])
        notes = [text for text, in ask(out, "SELECT note FROM capture_health WHERE note NOT NULL")]
        self.assertTrue(any("rocprofv3 (rocpd) schema 3" in text for text in notes), notes)
        self.assertTrue(any("3 values of counters" in text for text in notes), notes)

    def test_direction_that_is_not_known(self):
        path = path_of("directions.db")
        rocpd_files.make(path, 3, pids=(300,), steps=1)
        suffix = one(path, "SELECT substr(name, 19) FROM sqlite_master WHERE name LIKE 'rocpd_info_process%'")
        with sqlite3.connect(path) as db:
            db.execute(f'UPDATE "rocpd_memory_copy{suffix}" SET src_agent_id = NULL, dst_agent_id = NULL')
            db.execute(f'UPDATE "rocpd_memory_copy{suffix}" SET name_id = NULL WHERE id = 2')
        db.close()
        self.assertEqual(ask(import_file(path), "SELECT kind FROM transfer ORDER BY start"), [(1,), (0,), (8,)])

    def test_what_is_broken(self):
        path = path_of("broken.db")
        rocpd_files.make(path, 4, pids=(300,), steps=2)
        with sqlite3.connect(path) as db:
            suffix = one(path, "SELECT substr(name, 19) FROM sqlite_master WHERE name LIKE 'rocpd_info_process%'")
            db.execute(f'UPDATE "rocpd_timestamp{suffix}" SET value = \'soon\' WHERE id = 3')
        db.close()
        self.refused(path, "start", "text")
        with sqlite3.connect(path) as db:
            db.execute(f'ALTER TABLE "rocpd_kernel_dispatch{suffix}" RENAME COLUMN kernel_id TO other')
        db.close()
        self.refused(path, "kernel_id")


@unittest.skipUnless(HAS_JSON, "built without yajl")
class Xla(NothingLeft):
    def test_jax(self):
        """The trace that jax.profiler writes beside its XPlane: devices are processes, streams threads."""
        def named(pid, name, tid=None):
            return {"ph": "M", "pid": pid, **({} if tid is None else {"tid": tid}), "args": {"name": name},
                    "name": "process_name" if tid is None else "thread_name"}

        def slice_of(pid, tid, name, start, length, **args):
            return {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": start, "dur": length, "args": args}
        events = [named(1, "/device:GPU:0"), named(2, "/device:GPU:1"), named(701, "/host:CPU"), named(1, "Stream #13(Compute)", 13),
                  named(1, "XLA Ops", 14), slice_of(701, 900, "PjitFunction(step)", 990, 40)]
        for i in range(3):
            for pid in (1, 2):
                events.append(slice_of(pid, 13, "fusion_3", 1000 + 100 * i, 20.25, correlation_id="5",
                                       kernel_details="regs:32 static_shared:0 dynamic_shared:0 grid:2048,2,1 block:256,1,1 occ_pct:100"))
            events.append(slice_of(1, 14, "fusion.3", 1000 + 100 * i, 20.25, hlo_op="fusion.3"))
            events.append(slice_of(1, 15, "MemcpyH2D", 1050 + 100 * i, 3, memcpy_details="kind_src:pinned kind_dst:device size:4096 dest:0 async:1"))
        events.append(slice_of(1, 13, "Memset", 1400, 2, memset_details="kind:device size_bytes:64 async:1"))
        with open(path_of("jax.trace.json"), "w", encoding="ascii") as file:
            json.dump({"displayTimeUnit": "ns", "traceEvents": events}, file)
        out = import_file(path_of("jax.trace.json"))
        self.assertEqual(ask(out, "SELECT d.ordinal, count(*), sum(k.duration) FROM kernel k JOIN stream t ON t.id = k.stream JOIN device d "
                             "ON d.id = t.device GROUP BY 1 ORDER BY 1"), [(0, 3, 60750), (1, 3, 60750)])
        self.assertEqual(ask(out, "SELECT DISTINCT registers, grid_x, grid_y, block_x FROM launch_config"), [(32, 2048, 2, 256)])
        self.assertEqual(ask(out, "SELECT kind, count(*), sum(bytes), sum(duration) FROM transfer GROUP BY 1"), [(1, 3, 3 * 4096, 9000)])
        self.assertEqual(ask(out, "SELECT count(*), sum(bytes) FROM memset"), [(1, 64)])
        self.assertEqual(ask(out, "SELECT s.value FROM range r JOIN string s ON s.id = r.name"), [("PjitFunction(step)",)])
        self.assertEqual(ask(out, "SELECT pid, command FROM process"), [(701, "/host:CPU")])


class Others(NothingLeft):
    """Files that cannot be read are named, with what can."""

    def test_by_their_names(self):
        for name, word in (("a.nsys-rep", "nsys export"), ("a.ncu-rep", "Nsight Compute"), ("a.xplane.pb", "XPlane"),
                           ("a.pftrace", "Perfetto"), ("a.csv", "rocpd"), ("a.bin", "neither")):
            with open(path_of(name), "wb") as file:
                file.write(b"\x0a\x10 something else")
            self.refused(path_of(name), word)
        with sqlite3.connect(path_of("old.rpd")) as db:
            db.execute("CREATE TABLE rocpd_op (id INTEGER)")
        db.close()
        self.refused(path_of("old.rpd"), "rocmProfileData")

    def test_nsys_report_where_nsys_is(self):
        """A program that makes what nsys would: the report becomes a capture, and the export goes again."""
        folder = path_of("bin")
        os.makedirs(folder, exist_ok=True)
        nsys_files.make(path_of("like.sqlite"))
        with open(os.path.join(folder, "nsys"), "w", encoding="ascii") as script:
            script.write(f'#!/bin/sh\n[ "$1 $2 $3" = "export --type sqlite" ] && cp {path_of("like.sqlite")} "$7"\n')
        os.chmod(os.path.join(folder, "nsys"), 0o755)
        with open(path_of("made.nsys-rep"), "wb") as file:
            file.write(b"report")
        before = set(os.listdir(work))
        done = subprocess.run([perfkit, "import", path_of("made.nsys-rep"), "-o", path_of("made.sqlite")], capture_output=True, text=True,
                              env=dict(os.environ, PATH=folder + ":" + os.environ["PATH"]), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(set(os.listdir(work)) - before, {"made.sqlite"})
        self.assertEqual(one(path_of("made.sqlite"), "SELECT count(*) FROM kernel") > 0, True)


class Nsys(NothingLeft):
    def check(self, path):
        out = import_file(path)
        self.assertEqual(one(out, "SELECT state FROM capture"), "imported")
        self.assertEqual(ask(out, "SELECT pid, command FROM process ORDER BY pid"), [(100, "train100"), (200, "train200")])
        self.assertEqual(ask(out, "SELECT count(*), sum(duration), count(api_name), count(correlation) FROM kernel"),
                         [(24, 2 * (10 * 300 + 45 + 100), 20, 4)])
        self.assertEqual(ask(out, "SELECT s.value, count(*) FROM kernel k JOIN launch_config c ON c.id = k.config JOIN string s ON "
                                  "s.id = c.name GROUP BY 1 ORDER BY 1"), [("softmax", 12), ("void gemm<float>(float *)", 12)])
        self.assertEqual(ask(out, "SELECT kind, bytes, source_kind, target_kind, count(*), count(api_name) FROM transfer GROUP BY 1 "
                                  "ORDER BY 1"), [(1, 4096, 2, 3, 2, 2), (2, 64, 3, 1, 2, 2), (8, 1 << 40, 3, 3, 2, 0)])
        self.assertEqual(ask(out, "SELECT bytes, value, memory_kind, count(*) FROM memset"), [(512, 7, 3, 2)])
        self.assertEqual(ask(out, "SELECT kind, event, recorded, count(*), count(api_name) FROM sync GROUP BY 1 ORDER BY 1"),
                         [(2, 5, 9, 2, 0), (3, None, None, 4, 2)])
        self.assertEqual(ask(out, "SELECT s.value, count(*) FROM api_all a JOIN string s ON s.id = a.name GROUP BY 1 ORDER BY 1"),
                         [("cuLaunchKernel", 10), ("cudaGraphLaunch", 2), ("cudaLaunchKernel", 10), ("cudaMemcpy", 2),
                          ("cudaMemcpyAsync", 2), ("cudaStreamSynchronize", 2)])
        self.assertEqual(one(out, "SELECT count(*) FROM kernel k JOIN api_call a ON a.correlation = k.correlation"), 8)
        # Two processes, the same numbers: each kernel with its own process's call.
        self.assertEqual(one(out, "SELECT count(*) FROM kernel k JOIN stream s ON s.id = k.stream JOIN thread t ON t.id = k.thread "
                                  "WHERE s.process <> t.process OR k.api_lead <> 200"), 0)
        self.assertEqual(one(out, "SELECT min(start) FROM (SELECT start FROM range UNION ALL SELECT start FROM kernel)"), 0)
        self.assertEqual(ask(out, "SELECT depth, s.value, duration FROM range r LEFT JOIN string s ON s.id = r.domain JOIN thread t ON "
                                  "t.id = r.thread WHERE t.process = 1 ORDER BY start, duration DESC"),
                         [(0, None, 14100), (0, "library", 5100), (1, None, 1000), (None, None, 500), (0, None, None)])
        self.assertEqual(one(out, "SELECT count(*) FROM marker"), 2)
        self.assertEqual(ask(out, "SELECT address, count(*), count(\"end\"), sum(bytes) FROM allocation GROUP BY 1"),
                         [(9007199254740993, 4, 2, 4000)])
        self.assertEqual(one(out, "SELECT name FROM thread WHERE tid = 101"), "worker")
        self.assertEqual(one(out, "SELECT start_realtime_ns FROM capture"), 1785549185000000000 - 5100)
        notes = " ".join(row[0] or "" for row in ask(out, "SELECT note FROM capture_health"))
        self.assertIn("does not count calls", notes)
        self.assertEqual(one(out, "SELECT count(*) FROM capture_health WHERE value NOT NULL AND code <> 'record_open'"), 0)
        return out

    def test_every_version(self):
        for minor in range(20, 29):
            with self.subTest(minor):
                path = path_of("version.sqlite")
                nsys_files.make(path, minor)
                self.check(path)

    def test_device_of_a_synchronization(self):
        """nsys writes device 0 for those of any: the context says whose they are. One that owns its context stays."""
        nsys_files.make(path_of("waits.sqlite"))
        with sqlite3.connect(path_of("waits.sqlite")) as db:
            for table in ("KERNEL", "MEMCPY", "MEMSET"):
                db.execute(f"UPDATE CUPTI_ACTIVITY_KIND_{table} SET deviceId = 1, contextId = 2 WHERE globalPid = {nsys_files.pid_of(200)}")
            db.execute(f"UPDATE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION SET contextId = 2 WHERE globalPid = {nsys_files.pid_of(200)}")
            db.execute("UPDATE CUDA_GPU_MEMORY_USAGE_EVENTS SET deviceId = 1, contextId = 2 WHERE globalPid = %d" % nsys_files.pid_of(200))
        out = import_file(path_of("waits.sqlite"))
        self.assertEqual(ask(out, "SELECT process, ordinal FROM device ORDER BY 1"), [(1, 0), (2, 1)])
        self.assertEqual(ask(out, "SELECT s.process, s.device, count(*) FROM sync y JOIN stream s ON s.id = y.stream GROUP BY 1, 2"),
                         [(1, 1, 3), (2, 2, 3)])

    def test_columns_in_another_order(self):
        nsys_files.make(path_of("order.sqlite"), 28, shuffle=True)
        self.check(path_of("order.sqlite"))

    def test_every_report_works(self):
        nsys_files.make(path_of("full.sqlite"))
        out = import_file(path_of("full.sqlite"), "full-out.sqlite")
        told = report(out)
        self.assertTrue(told["trust"]["complete"])
        self.assertEqual(told["trust"]["status"], "no loss known")
        self.assertEqual(told["trust"]["totals"], [])
        self.assertTrue(any("does not count calls" in s["text"] for s in told["trust"]["statements"]))
        for arguments in ([], ["--findings", "all"], ["--stats", "cuda_gpu_kern_sum,cuda_api_sum,nvtx_sum"], ["--html", path_of("x.html")],
                          ["--chrome-trace", path_of("x.json")], ["--flamegraph", path_of("x.txt")], ["--format", "markdown"]):
            done = run("report", out, *arguments)
            self.assertEqual(done.returncode, 0, (arguments, done.stderr))

    def test_tables_may_be_absent(self):
        optional = [t for t in nsys_files.TABLES if t not in ("StringIds", "CUPTI_ACTIVITY_KIND_KERNEL")]
        for table in optional:
            nsys_files.make(path_of("without.sqlite"), leave_out=(table,))
            out = import_file(path_of("without.sqlite"))
            self.assertEqual(one(out, "SELECT count(*) FROM kernel"), 24, table)
        nsys_files.make(path_of("without.sqlite"), leave_out=optional)
        out = import_file(path_of("without.sqlite"))
        self.assertEqual(ask(out, "SELECT count(*), count(api_name) FROM kernel"), [(24, 0)])

    def broken(self, *statements):
        path = path_of("broken.sqlite")
        nsys_files.make(path)
        db = sqlite3.connect(path)
        for sql in statements:
            db.execute(sql)
        db.commit()
        db.close()
        return path

    def test_values_of_other_types(self):
        kernel = "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET {} WHERE rowid = 3"
        self.refused(self.broken(kernel.format("start = 'soon'")), "CUPTI_ACTIVITY_KIND_KERNEL", "start", "text")
        self.refused(self.broken(kernel.format("end = NULL")), "CUPTI_ACTIVITY_KIND_KERNEL", "end", "null")
        self.refused(self.broken(kernel.format("end = 1.5")), "CUPTI_ACTIVITY_KIND_KERNEL", "end", "real")
        self.refused(self.broken(kernel.format("start = -9223372036854775808")), "CUPTI_ACTIVITY_KIND_KERNEL", "range")
        self.refused(self.broken("UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET bytes = x'00'"), "CUPTI_ACTIVITY_KIND_MEMCPY", "bytes", "blob")
        self.refused(self.broken("UPDATE NVTX_EVENTS SET start = 'x' WHERE eventType = 59"), "NVTX_EVENTS", "start")

    def test_columns_that_nothing_goes_without(self):
        self.refused(self.broken("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN streamId"), "CUPTI_ACTIVITY_KIND_KERNEL", "streamId")

    def test_odd_but_readable(self):
        odd = ["UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = start - 5 WHERE rowid = 1",
               "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET demangledName = 999999 WHERE rowid = 2",
               "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = 'many', registersPerThread = -1, globalPid = NULL WHERE rowid = 4",
               "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT * FROM CUPTI_ACTIVITY_KIND_RUNTIME",  # numbers used twice
               "UPDATE NVTX_EVENTS SET end = 9223372036854775807 WHERE end = 100",
               "UPDATE NVTX_EVENTS SET end = start - 1 WHERE end = 500",
               "UPDATE NVTX_EVENTS SET textId = 999999, text = NULL WHERE eventType = 34",
               "UPDATE NVTX_EVENTS SET domainId = 77 WHERE domainId = 2",
               "INSERT INTO StringIds VALUES(500, x'1b5b33316d' || '</script>' || x'ff00')",
               "UPDATE CUDA_GPU_MEMORY_USAGE_EVENTS SET bytes = -5",
               "UPDATE ThreadNames SET nameId = 500"]
        for sql in odd + [odd]:
            path = self.broken(*([sql] if isinstance(sql, str) else sql))
            out = import_file(path)
            self.assertEqual(one(out, "SELECT count(*) FROM kernel"), 24, sql)
            self.assertEqual(run("report", out).returncode, 0, sql)
            self.assertEqual(one(out, "PRAGMA integrity_check"), "ok")

    def test_numbers_used_twice_stand_alone(self):
        out = import_file(self.broken("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL"))
        self.assertEqual(ask(out, "SELECT count(*), count(api_name) FROM kernel"), [(48, 20)])

    def test_no_exports(self):
        db = sqlite3.connect(path_of("other.sqlite"))
        db.execute("CREATE TABLE t(x)")
        db.commit()
        db.close()
        self.refused(path_of("other.sqlite"), "no export of Nsight Systems")
        self.refused(CAPTURES["normal"], "capture of perfkit already")
        self.refused(self.broken("UPDATE META_DATA_EXPORT SET value = '4.0.1' WHERE name = 'EXPORT_SCHEMA_VERSION'"), "schema 4.0.1")
        self.refused("/dev/null", "regular file")
        self.refused(path_of("nothing"), "no such file")
        for name, data in (("empty", b""), ("text", b"hello"), ("binary", bytes(range(256)))):
            with open(path_of(name), "wb") as out:
                out.write(data)
            self.refused(path_of(name), "neither")

    def test_a_view_is_no_table(self):
        path = self.broken("DROP TABLE CUPTI_ACTIVITY_KIND_MEMSET",
                           "CREATE VIEW CUPTI_ACTIVITY_KIND_MEMSET AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i AS "
                           "start, i AS end, 0 AS bytes FROM n")
        out = import_file(path)
        self.assertEqual(one(out, "SELECT count(*) FROM memset"), 0)
        endless = "CREATE VIEW OSRT_API AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i AS start FROM n"
        import_file(self.broken(endless))  # counted only, where it is a table

    def test_contexts_within_contexts(self):
        path = self.broken("CREATE TABLE TARGET_INFO_CUDA_CONTEXT_INFO(nullStreamId, processId, deviceId, contextId, parentContextId, "
                           "isGreenContext, numMultiprocessors)",
                           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO "
                           "TARGET_INFO_CUDA_CONTEXT_INFO SELECT 0, 100, 0, i, i + 1, 1, 8 FROM n")
        self.assertLess(one(import_file(path), "SELECT count(*) FROM context"), 20)

    def test_cut_short(self):
        nsys_files.make(path_of("whole.sqlite"))
        with open(path_of("whole.sqlite"), "rb") as whole:
            data = whole.read()
        for part in (50, 4096, len(data) // 2, len(data) - 4096):
            with open(path_of("cut.sqlite"), "wb") as out:
                out.write(data[:part])
            self.refused(path_of("cut.sqlite"))

    def test_newer_versions_are_read_and_told(self):
        out = import_file(self.broken("UPDATE META_DATA_EXPORT SET value = '3.40.0' WHERE name = 'EXPORT_SCHEMA_VERSION'"))
        self.assertIn("schema 3.40.0", " ".join(row[0] or "" for row in ask(out, "SELECT note FROM capture_health")))


def parts(told):
    """What can survive the way through an nsys export: delays, drivers, ends of processes and counts of calls cannot."""
    def rows(table, *columns):
        return [[row[column] for column in columns] for row in told[table]["rows"]]

    return {
        "kernels": rows("kernels", "name", "count", "total_ns", "min_ns", "max_ns", "average_ns", "median_ns"),
        "transfers": rows("transfers", "name", "source", "target", "count", "bytes", "total_ns"),
        "api": rows("api", "name", "count", "total_ns", "min_ns", "max_ns"),
        "ranges": rows("ranges", "name", "domain", "count", "total_ns"),
        "duration": told["capture"]["duration_ns"],
        "command": told["capture"]["command"],
        "start": told["capture"]["start_realtime_ns"],
    }


@unittest.skipUnless(HAS_JSON, "built without yajl")
class Ranks(unittest.TestCase):
    """Traces of torch.profiler with its distributedInfo and the process groups of collectives."""

    def trace(self, rank):
        """Two groups of two ranks, which do not wait for each other; rank 1 computes longest and comes last."""
        group, events = rank // 2, []
        for step in range(12):
            begin, compute = 1000 + 1000 * step + 300 * group + 7 * group * step, 200 if rank == 1 else 100 + 10 * (rank % 2)
            late = 110 if group else 200
            thread = {"ph": "X", "pid": 10 + rank, "tid": 10 + rank}
            for number, name, start, duration in ((2 * step, "work", begin, compute),
                                                  (2 * step + 1, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", begin + compute + 5,
                                                   late - compute + 45)):
                events.append({**thread, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": start - 4, "dur": 2,
                               "args": {"correlation": number + 1}})
                events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": duration,
                               "args": {"device": 0, "context": 1, "stream": 7, "correlation": number + 1}})
            events.append({**thread, "cat": "cpu_op", "name": "record_param_comms", "ts": begin + compute, "dur": 4, "args": {
                "Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "dtype": "Half", "Group size": 2,
                "Process Group Name": str(group), "Process Group Ranks": str([2 * group, 2 * group + 1])}})
            events.append({**thread, "cat": "user_annotation", "name": "ProfilerStep#%d" % step, "ts": begin - 50, "dur": 500})
        path = path_of("rank%d.json" % rank)
        with open(path, "w", encoding="ascii") as out:
            json.dump({"baseTimeNanoseconds": 10**18, "distributedInfo": {
                "backend": "nccl", "rank": rank, "world_size": 4, "pg_config": [{"pg_name": "0", "ranks": [0, 1], "rank": 9}]},
                "traceEvents": events}, out)
        return import_file(path, "rank%d.sqlite" % rank)

    def test_ranks_and_process_groups(self):
        captures = [self.trace(rank) for rank in range(4)]
        for rank, capture in enumerate(captures):
            self.assertEqual(ask(capture, "SELECT rank, world_size FROM process"), [(rank, 4)])
            fields = ask(capture, "SELECT DISTINCT n.value, f.value FROM range_field f JOIN string n ON n.id = f.name ORDER BY 1")
            self.assertIn(("Message size [bytes]", 2048), fields)
            self.assertEqual(len(fields), 4)
        merged = path_of("ranks.sqlite")
        self.assertEqual(run("merge", "--force", *captures, "-o", merged).returncode, 0)
        done = subprocess.run([perfkit, "report", "--ranks", "--json", merged], capture_output=True, check=True)
        ranks = json.loads(done.stdout)
        self.assertEqual([row["rank"] for row in ranks["ranks"]["rows"]], [0, 1, 2, 3])
        self.assertEqual((ranks["operations"], ranks["matched"], ranks["why_unmatched"]), (48, 48, None))
        self.assertEqual(sorted((row["name"], row["ranks"], row["bytes"]) for row in ranks["collectives"]["rows"]),
                         [("all_reduce", 2, 2048)] * 2)
        self.assertIn("rank 1 came last to 11 of 11 collectives", " ".join(ranks["notes"]))


    def test_bytes_of_a_collective(self):
        """By PyTorch's names of types: Float4_e2m1fn_x2 is two values in a byte, no float; an unknown one says nothing."""
        known = {"Float": 4, "Half": 2, "BFloat16": 2, "Float8_e4m3fn": 1, "Float8_e8m0fnu": 1, "Float4_e2m1fn_x2": 1, "Int": 4, "Int4": 1,
                 "UInt16": 2, "UInt7": 1, "QUInt4x2": 1, "ComplexFloat": 8, "ComplexHalf": 4, "Int16": None, "Shorter": None}
        for kind, size in known.items():
            path = path_of("type.json")
            with open(path, "w", encoding="ascii") as out:
                json.dump({"traceEvents": [{"ph": "X", "pid": 1, "tid": 1, "cat": "cpu_op", "name": "record_param_comms", "ts": 10, "dur": 4, "args": {
                    "Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "dtype": kind, "Group size": 2}}]}, out)
            found = ask(import_file(path, "type.sqlite"), "SELECT f.value FROM range_field f JOIN string n ON n.id = f.name "
                                                          "WHERE n.value = 'Message size [bytes]'")
            self.assertEqual((kind, found), (kind, [(1000 * size,)] if size else []))


class RoundTrip(unittest.TestCase):
    def both(self, scene):
        middle, back = path_of(scene + "-nsys.sqlite"), path_of(scene + "-back.sqlite")
        self.assertEqual(run("export", CAPTURES[scene], "--format", "nsys", middle, "--force").returncode, 0)
        self.assertEqual(run("import", middle, "-o", back, "--force").returncode, 0)
        return CAPTURES[scene], back

    def test_summaries(self):
        first, second = [report(path) for path in self.both("normal")]
        before, after = parts(first), parts(second)
        for part in before:
            self.assertEqual(before[part], after[part], part)
        for table in ("devices", "memory"):
            self.assertEqual(first[table], second[table], table)

    def test_rows(self):
        timed = "WHERE start NOT NULL AND duration NOT NULL"
        questions = [
            f"SELECT start, duration, flags & 1, api_lead, api_duration FROM kernel {timed} ORDER BY 1, 2, 4",
            f"SELECT start, duration, bytes, CASE kind WHEN 11 THEN 2 ELSE kind END, source_kind, target_kind, api_lead FROM transfer {timed} ORDER BY 1, 2",
            f"SELECT start, duration, bytes, value, memory_kind FROM memset {timed} ORDER BY 1, 2",
            "SELECT start, duration, kind, event, recorded, api_lead FROM sync ORDER BY 1, 2",
            # a kernel without times has only its call there
            "SELECT a.start, a.duration, s.value, result FROM api_call a JOIN string s ON s.id = a.name WHERE s.value <> 'cudaLaunchKernel' ORDER BY 1",
            "SELECT r.start, r.duration, s.value, d.value, depth, color, t.tid, e.tid FROM range r JOIN string s ON s.id = r.name LEFT JOIN "
            "string d ON d.id = r.domain JOIN thread t ON t.id = r.thread LEFT JOIN thread e ON e.id = r.end_thread ORDER BY 1, 2",
            "SELECT m.start, s.value, category FROM marker m JOIN string s ON s.id = m.name ORDER BY 1",
            "SELECT category, name FROM category ORDER BY 1",
            "SELECT start, \"end\", bytes, kind, address FROM allocation ORDER BY 1, 5",
            "SELECT start, duration, graph FROM graph_launch",
            "SELECT start, node, original FROM graph_node ORDER BY 2",
            "SELECT start, event, recorded FROM event_record ORDER BY 1, 3",
            "SELECT start, duration, kind FROM overhead ORDER BY 1",
            "SELECT start, duration, input, operation, cache_bytes FROM jit",
            "SELECT start, pool, operation, bytes, used_bytes, threshold_bytes FROM memory_pool",
            "SELECT start, duration, kind, bytes, faults, address FROM migration WHERE kind IN (1, 2, 3, 4, 8) ORDER BY 1",
            "SELECT coalesce(d.value, n.value), grid_x, grid_y, grid_z, block_x, cluster_x, registers, shared_static, shared_dynamic, "
            "local_bytes FROM launch_config c JOIN string n ON n.id = c.name LEFT JOIN string d ON d.id = c.demangled WHERE c.id IN (SELECT "
            "config FROM kernel WHERE duration NOT NULL) ORDER BY 1, 2",
            "SELECT p.pid, t.tid, t.name FROM thread t JOIN process p ON p.id = t.process ORDER BY 1, 2",
            "SELECT second, count, sum, min, max FROM rollup r WHERE 0",
        ]
        for scene in ("normal", "both"):
            before, after = self.both(scene)
            for question in questions:
                self.assertEqual(ask(before, question), ask(after, question), (scene, question))

    def test_sources(self):
        _, back = self.both("both")
        self.assertEqual(ask(back, "SELECT DISTINCT d.api, d.kind, d.name FROM kernel k JOIN stream s ON s.id = k.stream JOIN device d ON d.id "
                                   "= s.device ORDER BY 1, 3"), [("cuda", "gpu", "GPU A"), ("cuda", "gpu", "GPU B"), ("opencl", "cpu", "CPU C")])

    def test_hostile_names(self):
        before, after = self.both("hostile")
        question = "SELECT s.value, count(*) FROM kernel k JOIN launch_config c ON c.id = k.config JOIN string s ON s.id = c.name GROUP BY 1 ORDER BY 1"
        self.assertEqual(ask(before, question), ask(after, question))
        question = "SELECT s.value, d.value, r.start FROM range r JOIN string s ON s.id = r.name LEFT JOIN string d ON d.id = r.domain ORDER BY 3"
        self.assertEqual(ask(before, question), ask(after, question))


class Files(NothingLeft):
    def test_output_is_kept(self):
        nsys_files.make(path_of("in.sqlite"))
        with open(path_of("kept"), "w", encoding="ascii") as out:
            out.write("mine")
        self.assertEqual(run("import", path_of("in.sqlite"), "-o", path_of("kept")).returncode, 2)
        with open(path_of("kept"), encoding="ascii") as text:
            self.assertEqual(text.read(), "mine")
        self.assertEqual(run("import", path_of("in.sqlite"), "-o", path_of("in.sqlite"), "--force").returncode, 2)

    def test_only_files_are_replaced(self):
        nsys_files.make(path_of("in.sqlite"))
        os.mkfifo(path_of("pipe"))
        os.symlink("/proc/self/fd/1", path_of("stdout")) # as /dev/stdout is; it leads to a file here
        for name, word in (("pipe", "not a regular file"), ("stdout", "not a regular file"), (".", "folder")):
            for command in (["import", path_of("in.sqlite"), "-o", path_of(name)], ["export", CAPTURES["normal"], path_of(name)]):
                with open(path_of("printed"), "wb") as out:
                    done = subprocess.run([perfkit, *command, "--force"], stdout=out, stderr=subprocess.PIPE, text=True, check=False)
                self.assertEqual((done.returncode, word in done.stderr), (2, True), done.stderr)
        self.assertTrue(os.path.islink(path_of("stdout")))

    def test_the_source_is_not_touched(self):
        path = path_of("untouched.sqlite")
        nsys_files.make(path)
        os.chmod(path, 0o444)
        with open(path, "rb") as text:
            before = text.read()
        import_file(path)
        with open(path, "rb") as text:
            self.assertEqual(text.read(), before)
        self.assertEqual([f for f in os.listdir(work) if f.startswith("untouched.sqlite-")], [])

    def test_interrupted(self):
        nsys_files.make(path_of("in.sqlite"))
        out = path_of("interrupted.sqlite")
        for again in range(12): # wherever it is when the signal comes
            before = set(os.listdir(work))
            child = subprocess.Popen([perfkit, "import", path_of("in.sqlite"), "-o", out], stderr=subprocess.DEVNULL)
            time.sleep(again * 0.004)
            child.send_signal(signal.SIGINT)
            child.wait()
            left = set(os.listdir(work)) - before
            self.assertEqual(left, {"interrupted.sqlite"} if child.returncode == 0 else set(), child.returncode)
            if left:
                self.assertEqual(one(out, "SELECT state FROM capture"), "imported")
                os.unlink(out)

    def test_too_large_for_the_disk(self):
        nsys_files.make(path_of("in.sqlite"))
        before = set(os.listdir(work))
        done = subprocess.run(["bash", "-c", "ulimit -f 100; trap '' XFSZ; exec \"$@\"", "-", perfkit, "import", path_of("in.sqlite"), "-o",
                               path_of("limited.sqlite")], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(set(os.listdir(work)), before)


class Samples(unittest.TestCase):
    def test_nsys(self):
        samples = [s for s in os.environ.get("PERFKIT_NSYS_SAMPLES", "").split(":") if s]
        if not samples:
            self.skipTest("PERFKIT_NSYS_SAMPLES names no files")
        for sample in samples:
            out = import_file(sample)
            tables = {row[0] for row in ask(sample, "SELECT name FROM sqlite_master")}
            for theirs, ours, value, mine in (("KERNEL", "kernel", "end - start", "duration"), ("MEMCPY", "transfer", "bytes", "bytes"),
                                              ("MEMSET", "memset", "bytes", "bytes"), ("SYNCHRONIZATION", "sync", "end - start", "duration"),
                                              ("RUNTIME", "api_all", "end - start", "duration")):
                if "CUPTI_ACTIVITY_KIND_" + theirs in tables:
                    where = " WHERE copyKind < 11" if theirs == "MEMCPY" else ""
                    self.assertEqual(ask(sample, f"SELECT count(*), coalesce(sum({value}), 0) FROM CUPTI_ACTIVITY_KIND_{theirs}{where}"),
                                     ask(out, f"SELECT count(*), coalesce(sum({mine}), 0) FROM {ours}"), (sample, theirs))
            if "NVTX_EVENTS" in tables:
                self.assertEqual(ask(sample, "SELECT count(*), coalesce(sum(end - start), 0) FROM NVTX_EVENTS WHERE eventType IN (59, 60)"),
                                 ask(out, "SELECT count(*), coalesce(sum(duration), 0) FROM range"), sample)
            by_name = "SELECT s.value, count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = demangledName GROUP BY 1"
            told = [(row["name"], row["count"], row["total_ns"]) for row in report(out)["kernels"]["rows"]]
            self.assertEqual(sorted(row[1:] for row in told), sorted(row[1:] for row in ask(sample, by_name)), sample)
            back = path_of("back-nsys.sqlite")
            self.assertEqual(run("export", out, "--format", "nsys", back, "--force").returncode, 0)
            short = ("SELECT DISTINCT d.value, s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds d ON d.id = demangledName JOIN StringIds s ON "
                     "s.id = shortName ORDER BY 1")
            self.assertEqual(ask(sample, short), ask(back, short), sample)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
