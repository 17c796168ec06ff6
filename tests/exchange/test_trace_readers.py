#!/usr/bin/env python3
"""What other tools read out of our Chrome traces equals the capture: HTA's breakdowns, TraceLens' table of operators; what
TensorBoard's plugin makes of them, what it makes of Kineto's.

    test_trace_readers.py PERFKIT WORK_FOLDER [CAPTURE...]

PERFKIT_TRACE_READERS names a folder with checkouts HolisticTraceAnalysis, TraceLens and tb_plugin (of kineto, which had it until 2026; pandas, plotly, psutil and tqdm
from the distribution); PERFKIT_TRACE_SAMPLES, separated by colons, traces of Kineto with operators. What the readers
need of every row is in tests/report/chrome_check.py, which needs neither.
"""
import collections
import gzip
import json
import logging
import os
import sqlite3
import subprocess
import sys
import unittest
import warnings

perfkit, work, *CAPTURES = [os.path.abspath(a) for a in sys.argv[1:]]
os.makedirs(work, exist_ok=True)
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
READERS = os.environ.get("PERFKIT_TRACE_READERS", "")
SAMPLES = [s for s in os.environ.get("PERFKIT_TRACE_SAMPLES", "").split(":") if s]
for folder in ("HolisticTraceAnalysis", "TraceLens", "tb_plugin"):
    sys.path.insert(0, os.path.join(READERS, folder) if READERS else "")
try:
    from hta.trace_analysis import TraceAnalysis
except ImportError:
    TraceAnalysis = None
try:
    from TraceLens import TreePerfAnalyzer
except ImportError:
    TreePerfAnalyzer = None
try:
    from torch_tb_profiler.profiler.data import RunProfileData
except ImportError:
    RunProfileData = None

# Two streams that overlap, nested ranges, a synchronization of a stream, and work after it.
SCENE = [{"ph": "X", "cat": "user_annotation", "name": "step", "pid": 5, "tid": 5, "ts": 1, "dur": 400}]
for i, (name, start, length, stream) in enumerate((("gemm<4>", 20, 30.5, 7), ("add", 40, 20.25, 20), ("gemm<4>", 90, 10, 7))):
    SCENE += [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 5, "tid": 5, "ts": 5 + 10 * i, "dur": 8},
              {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 5, "ts": 7 + 10 * i, "dur": 4,
               "args": {"correlation": i + 1}},
              {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": start, "dur": length, "args": {
                  "device": 0, "context": 1, "stream": stream, "correlation": i + 1, "grid": [1, 1, 1], "block": [32, 1, 1]}}]
SCENE += [{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pinned)", "pid": 0, "tid": 7, "ts": 110, "dur": 3, "args": {
              "device": 0, "context": 1, "stream": 7, "correlation": 9, "bytes": 64}},
          {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 5, "tid": 5, "ts": 50, "dur": 250, "args": {"correlation": 8}},
          {"ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": 7, "ts": 50, "dur": 250, "args": {
              "device": 0, "context": 1, "stream": 7, "correlation": 8}}]


def trace_of(capture):
    path = os.path.join(work, os.path.basename(capture) + ".json")
    subprocess.run([perfkit, "report", "--quiet", capture, "--chrome-trace", path], check=True, stderr=subprocess.DEVNULL)
    return path


def imported(trace, name):
    out = os.path.join(work, name)
    subprocess.run([perfkit, "import", trace, "--quiet", "--force", "-o", out], check=True, stderr=subprocess.DEVNULL)
    return out


def captures():
    scene = os.path.join(work, "scene.json")
    with open(scene, "w", encoding="ascii") as out:
        json.dump({"traceEvents": SCENE}, out)
    return [imported(scene, "scene.sqlite"), *CAPTURES]


def events_of(trace):
    with (gzip.open if trace.endswith(".gz") else open)(trace, "rt", encoding="utf-8") as text:
        return json.load(text)["traceEvents"]


def union_ns(spans):
    total, last = 0, None
    for start, end in sorted(spans):
        total += max(0, end - max(start, last if last is not None else start))
        last = end if last is None else max(last, end)
    return total


class Readers(unittest.TestCase):
    def test_hta(self):
        if not TraceAnalysis:
            self.skipTest("PERFKIT_TRACE_READERS has no HolisticTraceAnalysis, or pandas is missing")
        for capture in captures():
            db = sqlite3.connect(f"file:{capture}?mode=ro", uri=True)
            kernels = db.execute("SELECT s.value, k.start, k.start + k.duration FROM kernel k JOIN launch_config c ON c.id = k.config JOIN string s "
                                 "ON s.id = coalesce(c.demangled, c.name) WHERE k.start NOT NULL AND k.duration NOT NULL").fetchall()
            kernels += db.execute("SELECT 'graph', start, start + duration FROM graph_launch WHERE duration NOT NULL").fetchall()
            moved = db.execute("SELECT start, start + duration FROM transfer WHERE start + duration NOT NULL UNION ALL "
                               "SELECT start, start + duration FROM memset WHERE start + duration NOT NULL").fetchall()
            analysis = TraceAnalysis(trace_files={0: trace_of(capture)}, trace_dir="")
            row = analysis.get_temporal_breakdown(visualize=False).iloc[0]
            everything = [k[1:] for k in kernels] + moved
            span = max(end for _, end in everything) - min(start for start, _ in everything)
            busy, computing = union_ns(everything), union_ns(k[1:] for k in kernels)
            for key, ns in (("kernel_time(us)", span), ("compute_time(us)", computing), ("idle_time(us)", span - busy)):
                self.assertAlmostEqual(row[key], ns / 1000, delta=1, msg=(capture, key))
            by_name = collections.Counter()
            for name, start, end in kernels:
                by_name[name] += end - start
            types, table = analysis.get_gpu_kernel_breakdown(visualize=False, duration_ratio=1.0, num_kernels=1 << 20, include_memory_kernels=True)
            # HTA cuts each stretch of time to whole microseconds before it adds them up
            cut = computing / 1000 - sum(r["sum"] for _, r in types.iterrows() if "COMPUTATION" in r["kernel_type"])
            self.assertTrue(0 <= cut <= 2 * len(everything), (capture, cut))
            told = {r["name"]: r["sum (us)"] for _, r in table[table["kernel_type"] == "COMPUTATION"].iterrows()}
            if "graph" not in by_name: # whole graphs have names of their own
                self.assertEqual(set(told), set(by_name), capture)
                for name, ns in by_name.items():
                    self.assertAlmostEqual(told[name], ns / 1000, delta=1, msg=(capture, name))
            print(f"HTA {os.path.basename(capture)}: {len(kernels)} kernels, {len(by_name)} names, {computing} ns computing, "
                  f"{span - busy} ns idle: equal to SQL")

    def test_hta_of_traces(self):
        """HTA leaves out the last ProfilerStep: what it says of our trace of an import is compared with what it says of Kineto's."""
        if not TraceAnalysis or not SAMPLES:
            self.skipTest("PERFKIT_TRACE_READERS has no HolisticTraceAnalysis, or PERFKIT_TRACE_SAMPLES no trace")
        for i, sample in enumerate(SAMPLES):
            if any(e.get("cat") == "cuda_sync" or str(e.get("name")).startswith("ProfilerStep") for e in events_of(sample)):
                print(f"HTA {os.path.basename(sample)}: left out: HTA adds Kineto's synchronizations to the busy time, and cuts at the start of the "
                      "last step's row, on whichever side that is")
                continue
            results = []
            for path in (sample, trace_of(imported(sample, f"sample{i}.sqlite"))):
                analysis = TraceAnalysis(trace_files={0: path}, trace_dir="")
                row = analysis.get_temporal_breakdown(visualize=False).iloc[0]
                _, table = analysis.get_gpu_kernel_breakdown(visualize=False, duration_ratio=1.0, num_kernels=1 << 20, include_memory_kernels=True)
                results.append(({key: row[key] for key in ("kernel_time(us)", "compute_time(us)", "idle_time(us)")},
                                {(r["kernel_type"], r["name"]): r["sum (us)"] for _, r in table.iterrows()}))
            for theirs, ours in zip(*results):
                self.assertEqual(set(theirs), set(ours), sample)
                for key, value in theirs.items():
                    self.assertAlmostEqual(ours[key], value, delta=max(1, 1e-6 * value), msg=(sample, key))
            print(f"HTA {os.path.basename(sample)}: {len(results[0][1])} kernels by name, equal to those of Kineto's trace")

    def test_tracelens(self):
        if not TreePerfAnalyzer or not SAMPLES:
            self.skipTest("PERFKIT_TRACE_READERS has no TraceLens, or PERFKIT_TRACE_SAMPLES no trace")
        for i, sample in enumerate(SAMPLES):
            unit = max(float(e.get("ts", 0)) for e in events_of(sample)) * 2 ** -52 # of a double that holds its times
            if unit > 0.01:
                print(f"TraceLens {os.path.basename(sample)}: left out: in a double its times lose what is inside of what")
                continue
            tables = []
            for path in (sample, trace_of(imported(sample, f"sample{i}.sqlite"))):
                launchers = TreePerfAnalyzer.from_file(path).get_df_kernel_launchers()
                tables.append(TreePerfAnalyzer.get_df_kernel_launchers_summary(launchers))
            theirs, ours = ({r["name"]: (r["Count"], r["total_direct_kernel_time_sum"]) for _, r in t.iterrows()} for t in tables)
            self.assertEqual(set(theirs), set(ours))
            for name, (count, total) in theirs.items():
                self.assertEqual(ours[name][0], count, name)
                self.assertAlmostEqual(ours[name][1], total, delta=0.01 + 2 * count * unit, msg=name)
            print(f"TraceLens {os.path.basename(sample)}: {len(theirs)} operators, equal to those of Kineto's trace")

    def test_tensorboard(self):
        if not RunProfileData or not SAMPLES:
            self.skipTest("PERFKIT_TRACE_READERS has no tb_plugin, or PERFKIT_TRACE_SAMPLES no trace")

        class Files:
            """In place of the plugin's cache of remote files."""
            @staticmethod
            def read(path):
                with open(path, "rb") as file:
                    return file.read()
        for i, sample in enumerate(SAMPLES):
            unit = max(float(e.get("ts", 0)) for e in events_of(sample)) * 2 ** -52
            if unit > 0.01:
                print(f"TensorBoard {os.path.basename(sample)}: left out: in a double its times lose what is inside of what")
                continue
            results = []
            for path in (sample, trace_of(imported(sample, f"sample{i}.sqlite"))):
                run = RunProfileData.parse("worker", 1, path, Files)
                results.append(({op.name: (op.calls, op.device_duration, op.self_device_duration) for op in run.op_list_groupby_name},
                                run.kernel_stat[["count", "sum"]].to_dict("index"), [step.costs for step in run.steps_costs]))
            (operators, kernels, steps), ours = results[0], results[1]
            self.assertEqual((set(operators), set(kernels)), (set(ours[0]), set(ours[1])), sample)
            if len(steps) != len(ours[2]):
                print(f"TensorBoard {os.path.basename(sample)}: steps left out: the plugin counts a step on the device, as Kineto writes it since "
                      "2024, for one more")
                steps = []
            for name, (calls, *times) in operators.items():
                self.assertEqual(ours[0][name][0], calls, name)
                for theirs, our in zip(times, ours[0][name][1:]):
                    self.assertAlmostEqual(our, theirs, delta=0.01 + 2 * calls * unit, msg=name)
            for name, row in kernels.items():
                self.assertEqual(ours[1][name]["count"], row["count"], name)
                self.assertAlmostEqual(ours[1][name]["sum"], row["sum"], delta=0.01 + 2 * row["count"] * unit, msg=name)
            for theirs, our in zip(steps, ours[2]):  # by kinds of time, the last is their sum
                for a, b in zip(theirs, our):
                    self.assertAlmostEqual(b, a, delta=theirs[-1] / 1000, msg=sample)
            print(f"TensorBoard {os.path.basename(sample)}: {len(operators)} operators, {len(kernels)} kernels, {len(steps)} steps, "
                  "equal to those of Kineto's trace")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
