#!/usr/bin/env python3
"""perfkit import of traces in Chrome's format, of PyTorch's profiler and others. See importing.py.

PERFKIT_TRACE_SAMPLES may name files of real tools, separated by colons: their sums are compared with those that
are computed directly from them.
"""
import collections
import gzip
import json
import os
import sys
import unittest

from importing import CAPTURES, HAS_JSON, NothingLeft, import_file, path_of, report, run
from scenes import ask, one

KINETO = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320, "computeMajor": 9, "computeMinor": 0,
                          "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, "warpSize": 32, "sharedMemPerBlock": 49152,
                          "numSms": 132, "regsPerMultiprocessor": 65536, "sharedMemPerMultiprocessor": 233472}],
    "distributedInfo": {"rank": 3, "ranks": [[[]]]},
    "baseTimeNanoseconds": 1790857026000000000,
    "traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 658, "tid": 0, "ts": 0, "args": {"name": "python3"}},
        {"ph": "M", "name": "thread_name", "pid": 658, "tid": 690, "ts": 0, "args": {"name": "autograd"}},
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 658, "tid": 658, "ts": 100.001, "dur": 900.5},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 658, "tid": 658, "ts": 110, "dur": 50, "args": {"External id": 1}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 658, "tid": 690, "ts": 120, "dur": 5},
        {"ph": "X", "cat": "python_function", "name": "train.py(3): step", "pid": 658, "tid": 658, "ts": 105, "dur": 60},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 658, "tid": 658, "ts": 115, "dur": 10,
         "args": {"cbid": 211, "correlation": 77}},
        {"ph": "s", "id": 77, "pid": 658, "tid": 658, "ts": 115, "cat": "ac2g", "name": "ac2g"},
        {"ph": "X", "cat": "kernel", "name": "gemm</script>", "pid": 0, "tid": 7, "ts": 130.125, "dur": 20.25,
         "args": {"device": 0, "context": 1, "stream": 7, "correlation": 77, "registers per thread": 40, "shared memory": 1024,
                  "blocks per SM": 0.06, "grid": [8, 2, 1], "block": [128, 1, 1], "queued": 0, "extra": {"deep": [{"device": 5}]}}},
        {"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernel", "pid": 658, "tid": 690, "ts": 140, "dur": 4, "args": {"correlation": 78}},
        {"ph": "X", "cat": "kernel", "name": "node", "pid": 0, "tid": 20, "ts": 200, "dur": 1, "args": {
            "device": 0, "context": 1, "stream": 20, "correlation": 79, "grid": [1, 1, 1], "block": [32, 1, 1], "graph node id": 4294967299}},
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 7, "ts": 210, "dur": 2,
         "args": {"device": 0, "context": 1, "stream": 7, "correlation": 80, "bytes": 9007199254740993}},
        {"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "pid": 0, "tid": 7, "ts": 215, "dur": 1,
         "args": {"device": 0, "context": 1, "stream": 7, "correlation": 81, "bytes": 64}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 658, "tid": 658, "ts": 220, "dur": 30,
         "args": {"correlation": 82}},
        {"ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": 1000007, "ts": 221, "dur": 29,
         "args": {"device": 0, "context": 1, "stream": 7, "correlation": 82}},
        {"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#1", "pid": 0, "tid": 7, "ts": 130, "dur": 100},
        {"ph": "X", "cat": "overhead", "name": "Activity Buffer Request", "pid": -1, "tid": 0, "ts": 101, "dur": 3},
        {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 658, "tid": 658, "ts": 112, "args": {
            "Device Type": 1, "Device Id": 0, "Addr": 9223372036854775809, "Bytes": 512, "Total Allocated": 512}},
        {"ph": "i", "s": "t", "name": "[memory]", "pid": 658, "tid": 658, "ts": 300, "args": {
            "Device Type": 1, "Device Id": 0, "Addr": 9223372036854775809, "Bytes": -512}},
        {"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces", "tid": "Trace PyTorch Profiler", "ts": 99},
        {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 99, "dur": 1000},
        {"ph": "i", "s": "t", "name": "saved", "pid": 658, "tid": 658, "ts": 400},
    ],
    "traceName": "/tmp/x.json",
}


@unittest.skipUnless(HAS_JSON, "built without yajl")
class Trace(NothingLeft):
    def write(self, text, name="trace.json"):
        with open(path_of(name), "wb") as out:
            out.write(text if isinstance(text, bytes) else text.encode("utf-8"))
        return path_of(name)

    def check_kineto(self, path):
        out = import_file(path)
        self.assertEqual(ask(out, "SELECT pid, command FROM process"), [(658, "python3")])
        self.assertEqual(ask(out, "SELECT s.value, k.start, k.duration, k.api_lead, k.api_duration, c.grid_x, c.grid_y, c.block_x, c.registers, "
                                  "c.shared_static, k.graph_node, t.native FROM kernel k JOIN launch_config c ON c.id = k.config JOIN string s ON "
                                  "s.id = c.name JOIN stream t ON t.id = k.stream ORDER BY 2"),
                         [("gemm</script>", 30124, 20250, 15125, 10000, 8, 2, 128, 40, None, None, 7),
                          ("node", 99999, 1000, None, None, 1, 1, 32, None, None, 4294967299, 20)])
        self.assertEqual(ask(out, "SELECT bytes, kind, source_kind, target_kind, blocking FROM transfer"), [(9007199254740993, 1, 2, 3, None)])
        self.assertEqual(ask(out, "SELECT bytes, memory_kind FROM memset"), [(64, 3)])
        self.assertEqual(ask(out, "SELECT kind, duration, api_duration FROM sync"), [(3, 29000, 30000)])
        self.assertEqual(ask(out, "SELECT n.value, d.value, r.depth, r.duration, t.tid FROM range r JOIN string n ON n.id = r.name LEFT JOIN string "
                                  "d ON d.id = r.domain JOIN thread t ON t.id = r.thread ORDER BY r.start"),
                         [("ProfilerStep#1", None, 0, 900500, 658), ("train.py(3): step", "python_function", 0, 60000, 658),
                          ("aten::mm", None, 1, 50000, 658), ("aten::add", None, 0, 5000, 690)])
        self.assertEqual(ask(out, "SELECT address, bytes, \"end\" - start FROM allocation"), [(9223372036854775809 - (1 << 64), 512, 188000)])
        self.assertEqual(ask(out, "SELECT kind, duration FROM overhead"), [(8, 3000)])
        self.assertEqual(ask(out, "SELECT name, units, compute_major, memory_bytes, max_threads_per_unit FROM device"),
                         [("NVIDIA H200", 132, 9, 150109880320, 2048)])
        self.assertEqual(one(out, "SELECT start_realtime_ns FROM capture"), 1790857026000000000 + 100001)
        self.assertEqual(one(out, "SELECT count(*) FROM api_call"), 1)
        self.assertEqual(one(out, "SELECT count(*) FROM marker"), 1)
        self.assertEqual(one(out, "SELECT name FROM thread WHERE tid = 690"), "autograd")
        self.assertEqual(run("report", out, "--findings", "all").returncode, 0)

    def test_kineto(self):
        self.check_kineto(self.write(json.dumps(KINETO)))
        self.check_kineto(self.write(json.dumps(KINETO, indent=3).replace("\n", "\r\n")))
        self.check_kineto(self.write(b"\xef\xbb\xbf" + json.dumps(KINETO).encode()))
        self.check_kineto(self.write(gzip.compress(json.dumps(KINETO).encode()), "trace.json.gz"))

    def trained(self, name="NVIDIA A100-SXM4-80GB", types=("c10::BFloat16",) * 3, sizes=([2048], [512, 1024], [1024, 2048], [], []),
                kernel="gemm", backward=False):
        """Iterations of 1 ms with 200 us of kernels: a product (100), one without inputs (50), no product (50). backward: that
        without inputs has some, and runs in another thread without a range; that of forward is around forward alone."""
        events, correlation = [], 0

        def op(name, start, duration, thread=658, **args):
            events.append({"ph": "X", "cat": "cpu_op", "name": name, "pid": 658, "tid": thread, "ts": start, "dur": duration, "args": args})

        def launch(start, at, duration, name, thread=658):
            nonlocal correlation
            correlation += 1
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 658, "tid": thread, "ts": start, "dur": 2,
                           "args": {"correlation": correlation}})
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at, "dur": duration, "args": {
                "device": 0, "context": 1, "stream": 7, "correlation": correlation, "grid": [8, 1, 1], "block": [128, 1, 1]}})
        for step in range(40 if backward else 8):
            t = 1000 * (step + 1)
            events.append({"ph": "X", "cat": "user_annotation", "name": "forward" if backward else "ProfilerStep#%d" % step,
                           "pid": 658, "tid": 658, "ts": t, "dur": 570 if backward else 1000})
            op("aten::linear", t + 10, 40, **{"Input Dims": [[512, 1024], [2048, 1024], [2048]], "Input type": ["float"] * 3, "Sequence number": step})
            op("aten::addmm", t + 15, 30, **dict({"Input type": list(types) + ["Scalar"] * 2} if types else {},
                                                 **{"Input Dims": list(sizes), "Sequence number": step}))
            launch(t + 20, t + 100, 100, kernel)
            op("aten::relu", t + 60, 10, **{"Input Dims": [[512, 2048]], "Input type": ["float"]})
            launch(t + 62, t + 300, 50, "elementwise")
            thread = 659 if backward else 658
            op("aten::mm", t + 580, 10, thread, **{"Input Dims": [[512, 1024], [1024, 2048]], "Input type": list(types[:2])} if backward else {})
            launch(t + 582, t + 600, 50, kernel, thread)
            for more in range(18 if backward else 0):  # so that most launches are outside of the range of forward
                launch(t + 600 + 4 * more, t + 700 + 4 * more, 2, "small_%d" % (more % 7), thread)
        device = dict(KINETO["deviceProperties"][0], name=name, computeMajor=8, computeMinor=0, numSms=108)
        capture = import_file(self.write(json.dumps({"deviceProperties": [device], "traceEvents": events})))
        return capture, report(capture)["pytorch_flop"]["rows"]

    def test_flop_utilisation(self):
        """By hand: 2 * 512 * 1024 * 2048 FLOP in 1 ms, of 108 SMs * 1024 * 2 * 1.41 GHz."""
        capture, rows = self.trained()
        self.assertEqual(len(rows), 1)
        row, flop, peak = rows[0], 2 * 512 * 1024 * 2048, 108 * 1024 * 2 * 1.41e9
        self.assertEqual((row["flop"], row["iteration_ns"], row["pipe"]), (flop, 1e6, "tensor_bf16"))
        self.assertAlmostEqual(row["peak_flop_per_s"] / peak, 1, 9)
        self.assertAlmostEqual(row["utilisation"] / (flop / 1e-3 / peak), 1, 9)
        self.assertAlmostEqual(row["counted_flop_per_s"] / (flop / 100e-6), 1, 9)
        self.assertEqual([row[key] for key in ("counted_share", "lacking_share", "other_share")], [0.5, 0.25, 0.25])
        self.assertEqual(row["basis"], "312 TFLOP/s tensor BF16 (data sheet)")
        self.assertEqual(one(capture, "SELECT count(DISTINCT inputs) FROM range_inputs"), 3)
        self.assertIn(",%d," % flop, run("report", "--stats", "pytorch_sum", "--format", "csv", capture).stdout)

    def test_flop_of_two_threads(self):
        """Forward and backward of one step, without a range around it: one row with the work of both."""
        capture, rows = self.trained(backward=True)
        self.assertEqual(len(rows), 1)
        flop, peak = 2 * 2 * 512 * 1024 * 2048, 108 * 1024 * 2 * 1.41e9
        self.assertAlmostEqual(rows[0]["flop"] / flop, 1, 1)
        self.assertAlmostEqual(rows[0]["utilisation"] / (flop / 1e-3 / peak), 1, 1)

    def test_flop_types(self):
        """FP32 is TF32 where the kernel's name shows it; what is not known has no utilisation."""
        for types, kernel, pipe in ((("float",) * 3, "ampere_sgemm_128x64_tn", "fp32"),
                                    (("float",) * 3, "cutlass_80_tensorop_s1688gemm_128x64", "tensor_tf32"),
                                    (("double",) * 3, "dgemm", "tensor_fp64"), ((), "ampere_bf16_s16816gemm", "tensor_bf16")):
            row = self.trained(types=types, kernel=kernel)[1][0]
            self.assertEqual(row["pipe"], pipe, kernel)
            self.assertGreater(row["utilisation"], 0, kernel)
        self.assertIn("FP32 assumed", self.trained(types=("float",) * 3, kernel="k")[1][0]["basis"])
        row = self.trained(types=(), kernel="k")[1][0]
        self.assertEqual((row["utilisation"], row["pipe"], row["basis"]), (None, None, "type of the elements not known"))
        row = self.trained(name="a device without a data sheet")[1][0]
        self.assertEqual((row["utilisation"], row["basis"]), (None, "peak of the device not known"))
        self.assertGreater(row["flop"], 0)

    def test_names_with_sizes(self):
        """As nsys profile --pytorch=autograd-shapes-nvtx has them, in the tables that are read for both: one name, sizes apart."""
        names = ["aten::mm, seq = 5, op_id = 7, sizes = [[64, 32], [32, 8]], input_op_ids = [(6,0), (0,0)]",
                 "aten::mm, seq = 6, op_id = 9, sizes = [[4, 2], [2, 8]]", "aten::t, op_id = 11", "mine, op_id = x, sizes = [["]
        capture = import_file(self.write(json.dumps({"traceEvents": [
            {"ph": "X", "pid": 1, "tid": 1, "name": name, "ts": 100 * at, "dur": 50} for at, name in enumerate(names)]})))
        self.assertEqual(ask(capture, "SELECT n.value, i.value, (SELECT f.value FROM range_field f WHERE f.range = r.id) FROM range r JOIN "
                                      "string n ON n.id = r.name LEFT JOIN range_inputs x ON x.range = r.id LEFT JOIN string i ON i.id = x.inputs "
                                      "ORDER BY r.start"),
                         [("aten::mm", '{"sizes":[[64, 32], [32, 8]]}', 5), ("aten::mm", '{"sizes":[[4, 2], [2, 8]]}', 6),
                          ("aten::t", None, None), (names[3], None, None)])

    def test_flop_of_hostile_inputs(self):
        """No sizes, broken ones and those that are too long: no FLOP, and no failure."""
        for sizes in ((), ({"a": [1]},), ([[[[]]]], "x", None), ([2048], [-512, 1024], [1024, 2048]),
                      ([1], [10 ** 30, 2], [2, 3]), ([1], [1e300, 2], [2, 3]), ([[7] * 3000] * 3), ([1], [2 ** 53, 2 ** 53], [2 ** 53, 2 ** 53])):
            capture, rows = self.trained(sizes=sizes)
            flop = [row["flop"] for row in rows]  # linear's own, whose inputs are known
            self.assertEqual(flop, [2 * 512 * 1024 * 2048], str(sizes)[:80])
            self.assertEqual(one(capture, "SELECT count(*) FROM range WHERE depth = 1"), 24)

    def test_old_categories(self):
        """Kineto wrote other words until PyTorch 1.11."""
        text = json.dumps(KINETO)
        for new, old in (("kernel", "Kernel"), ("gpu_memcpy", "Memcpy"), ("gpu_memset", "Memset"), ("cuda_runtime", "Runtime"),
                         ("cuda_driver", "Runtime"), ("cpu_op", "Operator")):
            text = text.replace(f'"cat": "{new}"', f'"cat": "{old}"')
        self.check_kineto(self.write(text))

    def test_back_and_forth(self):
        """Our own trace of an import has the same operators, launches and synchronizations."""
        more = [{"ph": "X", "cat": "cpu_op", "name": "TorchDynamo Cache Lookup", "pid": 658, "tid": 690, "ts": 126, "dur": 1},
                {"ph": "X", "cat": "user_annotation", "name": "nccl:all_reduce", "pid": 658, "tid": 658, "ts": 112, "dur": 14},
                {"ph": "X", "cat": "python_function", "name": "of no thread", "pid": 0, "tid": 0, "ts": 127, "dur": 1}]
        out = import_file(self.write(json.dumps({**KINETO, "traceEvents": KINETO["traceEvents"] + more})))
        back = path_of("back.json")
        self.assertEqual(run("report", out, "--chrome-trace", back).returncode, 0)
        with open(back, encoding="utf-8") as text:
            events = json.load(text)["traceEvents"]
        self.assertEqual([(e["dur"], e["pid"]) for e in events if e.get("cat") == "overhead"], [(3, 658)])
        op = [e for e in events if e.get("cat") == "cpu_op"]
        self.assertEqual([e["name"] for e in op], ["aten::mm", "aten::add", "TorchDynamo Cache Lookup"])
        self.assertEqual({(e["pid"], e["args"]["device"]) for e in events if e.get("cat") == "kernel"}, {(0, 0)})
        self.assertEqual([e["name"] for e in events if e.get("cat") == "python_function"], ["train.py(3): step", "of no thread"])
        self.assertTrue(all(e["pid"] for e in events if e.get("name") == "of no thread"))
        gemm = [e["args"] for e in events if e.get("cat") == "kernel" and e["name"].startswith("gemm")]
        self.assertEqual([(a["External id"], a["est. achieved occupancy %"]) for a in gemm], [(op[0]["args"]["External id"], 1)])
        again = import_file(back, "again.sqlite")
        for question in ("SELECT count(*), sum(duration) FROM range", "SELECT s.kind, s.duration, t.native FROM sync s JOIN stream t ON t.id = s.stream",
                         "SELECT start, duration, api_lead FROM kernel ORDER BY start"):
            self.assertEqual(ask(again, question), ask(out, question), question)

    def test_other_order(self):
        turned = dict(reversed(list(KINETO.items())))
        turned["traceEvents"] = list(reversed(KINETO["traceEvents"]))
        self.check_kineto(self.write(json.dumps(turned)))

    def test_long_names_stay_apart(self):
        """Two kernels whose names differ only where a table would cut them."""
        events = [{"ph": "X", "cat": "kernel", "name": "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize%s_stage3_warpsize1x2x1_"
                   "ffma_aligna4_alignc4_execute_kernel__5x_cublas" % size, "pid": 0, "tid": 7, "ts": at, "dur": 10,
                   "args": {"device": 0, "context": 1, "stream": 7, "correlation": at}}
                  for at, size in ((100, "32x32x8"), (200, "64x64x8"))]
        text = run("report", import_file(self.write(json.dumps(dict(KINETO, traceEvents=events))))).stdout
        for size in ("32x32x8", "64x64x8"):
            self.assertIn("size%s_" % size, text)

    def test_any_trace(self):
        events = [{"ph": "B", "name": "outer", "cat": "a,b", "pid": "main process", "tid": "t", "ts": "1.5"},
                  {"ph": "X", "name": "inner", "cat": "a,b", "pid": "main process", "tid": "t", "ts": 2, "dur": 3},
                  {"ph": "E", "pid": "main process", "tid": "t", "ts": 10.0},
                  {"ph": "X", "name": "crosses", "cat": "a,b", "pid": "main process", "tid": "t", "ts": 4, "dur": 30},
                  {"ph": "E", "pid": "main process", "tid": "t", "ts": 50},
                  {"ph": "B", "name": "open", "pid": 1, "tid": 2, "ts": 60},
                  {"ph": "C", "name": "memory", "pid": 1, "ts": 3, "args": {"used": 4}},
                  {"ph": "b", "name": "async", "id": 1, "pid": 1, "ts": 3}, {"ph": "I", "name": "mark", "pid": 1, "tid": 2, "ts": 1e2},
                  {"ph": "X", "name": "backwards", "pid": 1, "tid": 2, "ts": 5, "dur": -1}, {"ph": "X", "name": "timeless"}, {}, {"ph": 5},
                  {"name": "kernel like", "cat": "kernel", "ph": "X", "ts": 70, "dur": 1, "pid": 1, "tid": 3}]
        for text in (json.dumps(events), json.dumps(events)[:-1], json.dumps({"traceEvents": events})):
            out = import_file(self.write(text))
            self.assertEqual(ask(out, "SELECT n.value, r.start, r.duration, r.depth FROM range r JOIN string n ON n.id = r.name ORDER BY r.start"),
                             [("outer", 0, 8500, 0), ("inner", 500, 3000, 1), ("crosses", 2500, 30000, None), ("open", 58500, None, 0),
                              ("kernel like", 68500, 1000, 0)])
            self.assertEqual(one(out, "SELECT count(*) FROM marker"), 1)
            notes = " ".join(row[0] or "" for row in ask(out, "SELECT note FROM capture_health"))
            for words in ("1 values of counters", "1 asynchronous", "1 slices have a negative length", "1 ends of slices", "1 begins of slices",
                          "1 events have no time", "2 events are of no kind", "does not say the date"):
                self.assertIn(words, notes)
            text = run("report", out)
            self.assertEqual(text.returncode, 0)
            self.assertIn("Memory: n/a: the imported file has none", text.stdout)  # not: no allocations
            trust = report(out)["trust"]
            self.assertEqual(trust["status"], "incomplete")  # events of the file are not in the capture
            self.assertEqual(sorted(s["text"] for s in trust["statements"] if s["level"] == "loss"),
                             ["lost: 1 events have no time, or one out of all range", "lost: 1 slices have a negative length"])

    def test_times_are_exact(self):
        events = [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 1}]
        text = json.dumps(events)[:-1] + ', {"ph":"X","name":"b","pid":1,"tid":1,"ts":1790857026000000.123,"dur":0.0014},' \
            '{"ph":"X","name":"c","pid":1,"tid":1,"ts":1790857026000009.9996,"dur":4503599627370.497}]'
        out = import_file(self.write(text))
        self.assertEqual(ask(out, "SELECT start, duration FROM range ORDER BY start"),
                         [(0, 1000), (1790857026000000123, 1), (1790857026000010000, 4503599627370497)])

    def test_our_own_trace(self):
        trace = path_of("own.json.gz")
        self.assertEqual(run("report", CAPTURES["normal"], "--chrome-trace", trace).returncode, 0)
        out = import_file(trace)
        for question in ("SELECT count(*), sum(duration), count(api_name) FROM kernel", "SELECT count(*), sum(bytes), sum(duration) FROM transfer",
                         "SELECT count(*), sum(bytes) FROM memset", "SELECT count(*), sum(duration) FROM range",
                         "SELECT count(*), sum(duration) FROM sync", "SELECT count(*) FROM api_all", "SELECT count(*) FROM marker",
                         "SELECT count(*), sum(bytes), count(\"end\") FROM allocation", "SELECT pid FROM process"):
            self.assertEqual(ask(CAPTURES["normal"], question), ask(out, question), question)

    def test_opencl_calls_are_calls(self):
        out = import_file(self.write(json.dumps({"traceEvents": [
            {"ph": "X", "cat": "opencl", "name": "clFinish", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]})))
        self.assertEqual(ask(out, "SELECT s.value, a.duration FROM api_all a JOIN string s ON s.id = a.name"), [("clFinish", 2000)])
        self.assertEqual(one(out, "SELECT count(*) FROM range"), 0)

    def test_several_processes(self):
        events = []
        for pid in (10, 20):
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": pid, "tid": pid, "ts": pid, "dur": 1,
                           "args": {"correlation": pid}})
            events.append({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": pid + 2, "dur": 1,
                           "args": {"device": 0, "stream": 7, "correlation": pid, "grid": [1, 1, 1], "block": [1, 1, 1]}})
        out = import_file(self.write(json.dumps(events)))
        self.assertEqual(ask(out, "SELECT p.pid, count(*) FROM kernel k JOIN stream s ON s.id = k.stream JOIN process p ON p.id = s.process WHERE "
                                  "k.api_name NOT NULL GROUP BY 1 ORDER BY 1"), [(10, 1), (20, 1)])

    def test_hostile_names(self):
        names = ["</script>", "\"quoted\" 'too'", "a\x1b[31mred\x07\n\t", "x" * 10000, "\u202egpj.exe\u200f", "nul\x00inside", "核心🚀", ""]
        events = [{"ph": "X", "name": name, "cat": name[:50], "pid": name, "tid": name, "ts": i, "dur": 1} for i, name in enumerate(names)]
        text = json.dumps(events).encode() [:-1] + b',{"ph":"X","name":"bad \xff\x80 bytes","pid":1,"tid":1,"ts":99,"dur":1}]'
        out = import_file(self.write(text))
        kept = [row[0] for row in ask(out, "SELECT n.value FROM range r JOIN string n ON n.id = r.name ORDER BY r.start")]
        expected = [name.replace("\x00", " ") or "(unnamed)" for name in names] + ["bad \udcff\udc80 bytes"]
        self.assertEqual(kept, expected)
        for arguments in ([], ["--format", "json"], ["--html", path_of("h.html")]):
            self.assertEqual(run("report", out, *arguments).returncode, 0)

    def test_broken(self):
        whole = json.dumps(KINETO)
        for at in (1, 30, len(whole) // 2, len(whole) - 1):
            self.refused(self.write(whole[:at]), "byte")
        self.refused(self.write(whole.replace('"ph": "s"', '"ph": s', 1)), f"byte {whole.index(chr(34) + 'ph' + chr(34) + ': ' + chr(34) + 's') + 7}")
        self.refused(self.write('{"traceEvents": [}'), "byte")
        self.refused(self.write('{"a": 1}'), "no traceEvents")
        self.refused(self.write('{"traceEvents": 5}'), "no traceEvents")
        self.refused(self.write("[" * 100000), "nested too deeply")
        self.refused(self.write('{"traceEvents":[{"args":' + '{"a":' * 100000), "nested too deeply")
        self.refused(self.write(whole + "{}"), "byte")
        packed = gzip.compress(whole.encode())
        self.refused(self.write(packed[:len(packed) // 2], "cut.json.gz"), "byte", "cut short")
        self.refused(self.write(packed[:30] + b"\x00\xff" * 40 + packed[110:], "bad.json.gz"), "byte")
        self.refused(self.write(gzip.compress(b"hello"), "text.json.gz"), "byte")

    def test_wrong_types(self):
        for value in ("null", "true", "\"x\"", "[]", "{}", "[[1]]", "{\"a\":[{}]}", "1e400", "-1e400", "99999999999999999999999999", "-5"):
            events = ",".join('{"ph":"X","cat":"%s","name":%s,"pid":%s,"tid":%s,"ts":%s,"dur":%s,"args":%s}' % (
                cat, *[value if i == which else good for i, good in enumerate(("\"n\"", "1", "1", "5", "6", '{"stream":7,"grid":%s,"bytes":%s}' % (value, value)))])
                for cat in ("kernel", "cpu_op", "gpu_memcpy", "cuda_runtime") for which in range(6))
            out = import_file(self.write('{"traceEvents":[%s],"deviceProperties":%s}' % (events, value)))
            self.assertEqual(run("report", out).returncode, 0, value)
            self.assertEqual(one(out, "PRAGMA integrity_check"), "ok")

    def test_containers_within_a_grid(self):
        event = '{"ph":"X","cat":"kernel","name":"n","ts":1,"dur":1,"args":{"stream":7,"grid":[4,%s,6],"block":[1,2,3]}}'
        for value in ("[]", "{}", "[[5]]", '{"grid":[9,9,9]}', "null", '"x"'):
            out = import_file(self.write("[" + event % value + "]"))
            self.assertEqual(ask(out, "SELECT grid_x, grid_z, block_x, block_y, block_z FROM launch_config"), [(4, 6, 1, 2, 3)], value)

    def test_an_endless_value(self):
        text = '{"traceEvents":[],"x":"' + "y" * (70 << 20)
        self.refused(self.write(gzip.compress(text.encode(), 1), "endless.json.gz"), "64 MiB")


class Samples(unittest.TestCase):
    def test_traces(self):
        samples = [s for s in os.environ.get("PERFKIT_TRACE_SAMPLES", "").split(":") if s]
        if not samples or not HAS_JSON:
            self.skipTest("PERFKIT_TRACE_SAMPLES names no files, or built without yajl")
        for sample in samples:
            out = import_file(sample)
            with (gzip.open if sample.endswith(".gz") else open)(sample, "rt", encoding="utf-8") as text:
                events = json.load(text)["traceEvents"]
            counts = collections.Counter(e.get("cat") for e in events if e.get("ph") == "X")
            for cats, table in ((("kernel",), "kernel"), (("gpu_memcpy",), "transfer"), (("gpu_memset",), "memset"),
                                (("cuda_runtime", "cuda_driver"), "api_all"), (("cuda_sync",), "sync"),
                                (("cpu_op", "user_annotation", "python_function"), "range")):
                self.assertEqual(one(out, f"SELECT count(*) FROM {table}"), sum(counts[cat] for cat in cats), (sample, table))
            total = sum(round(e["dur"] * 1000) for e in events if e.get("cat") == "kernel")
            self.assertEqual(one(out, "SELECT sum(duration) FROM kernel"), total, sample)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
