"""bench/counters.py: reading ncu's CSV, and the comparison, on made-up figures."""
import contextlib
import io
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
import counters
import sampler_memory

NCU = '''==PROF== Connected to process 1
{"kernel": "copy", "launches": 100, "counts": {}}
{"kernel": "copy", "launches": 100, "counts": {}}
"ID","Process ID","Kernel Name","Block Size","Grid Size","Metric Name","Metric Unit","Metric Value"
"10","1","range","","","dram__bytes_read.sum","byte","1,080,000,000"
"10","1","range","","","sm__inst_executed.sum","inst","3,000,000"
"2","1","range","","","dram__bytes_read.sum","byte","1,070,000,128"
"2","1","range","","","sm__inst_executed.sum","inst","2,000,000"
'''


def value(counter, unit, per_launch, error=0.01, samples=500):
    """`error` is relative."""
    return {"counter": counter, "unit": unit, "per_launch": per_launch, "samples": samples,
            "per_launch_error": per_launch * error if per_launch and error else None}


class Counters(unittest.TestCase):
    def test_csv_of_ncu(self):
        ranges = counters.read_ncu(NCU)
        self.assertEqual([r["sm__inst_executed.sum"] for r in ranges], [2e6, 3e6])
        self.assertEqual(counters.read_told(NCU)["copy"]["launches"], 100)
        self.assertEqual(counters.per_launch(ranges, 100), {
            "dram_read_bytes": [10700001.28, 10800000], "instructions": [20000, 30000]})

    def test_counters_of_several_metrics_need_all_of_them(self):
        one, other = counters.SAME["fma"]
        self.assertEqual(counters.per_launch([{one: 6.0, other: 2.0}], 2), {"fma": [4.0]})
        self.assertEqual(counters.per_launch([{one: 6.0, other: 2.0}, {one: 6.0}], 2), {})

    def test_a_call_may_launch_several_kernels(self):
        kernel = lambda name, launches, each: (
            {"name": name, "config": 1, "launches": launches},
            dict(value("fma", "instruction", each, samples=launches), name=name, config=1),
            {"name": name, "configs": 1, "grid_x": 10, "grid_y": 1, "grid_z": 1,
             "block_x": 33, "block_y": 1, "block_z": 1})
        rows = [kernel("fill", 2, 9e9), kernel("main", 102, 1e6), kernel("twice", 204, 2e6)]
        report = {"counters": {"rows": [r[0] for r in rows]},
                  "counter_values": {"rows": [r[1] for r in rows]},
                  "kernels": {"rows": [r[2] for r in rows]}}
        (found,) = counters.values_of(report, 100)
        self.assertEqual((found["per_launch"], found["samples"], found["name"]), (5e6, 102, "twice"))
        self.assertAlmostEqual(found["per_launch_error"], (1e4 ** 2 + 4e4 ** 2) ** 0.5)
        self.assertEqual(counters.warps_of(report, 100), 60)
        report["kernels"]["rows"][1]["configs"] = 2
        self.assertEqual(counters.warps_of(report, 100), 0)

    def test_comparison(self):
        rows = counters.compare(
            [value("dram_read_bytes", "byte", 1.05e9), value("fma", "instruction", 2e6, error=None),
             value("pcie_read_bytes", "byte", 12.0), value("fp64", "cycle", None)],
            {"dram_read_bytes": [0.99e9, 1.01e9]}, {"fma": 2.5e6})
        self.assertEqual([row["counter"] for row in rows], ["dram_read_bytes", "fma"])
        self.assertAlmostEqual(rows[0]["ncu_off"], 0.05)
        self.assertAlmostEqual(rows[0]["ncu_errors"], 5)  # an error of one per cent
        self.assertAlmostEqual(rows[0]["ncu_error"], 0.01)
        self.assertAlmostEqual(rows[1]["source_off"], -0.2)
        self.assertNotIn("ncu_off", rows[1])

    def test_every_counter_that_is_off_is_listed(self):
        rows = counters.compare(
            [value("dram_read_bytes", "byte", 1.05e9), value("dram_write_bytes", "byte", 1.01e9),
             value("tensor", "cycle", 1.02e9, error=0.02), value("sm_active", "cycle", 1.1e9),
             value("l2_bytes", "byte", 9e9, samples=100)],
            {name: [1e9] for name in counters.SAME}, {})
        rows = [dict(row, case="x", kernel="k") for row in rows]
        with contextlib.redirect_stdout(io.StringIO()) as said:
            summary = counters.summarise(rows)
        self.assertEqual([row["counter"] for row in summary["far"]],
                         ["dram_read_bytes", "sm_active"])
        counts = summary["counts"]
        self.assertEqual((counts["compared"], counts["near"], counts["within_two_errors"]), (3, 2, 2))
        self.assertEqual((counts["known"], counts["known_near"]), (2, 1))
        self.assertEqual((summary["times"]["compared"], summary["times"]["near"]), (1, 0))
        self.assertIn("counts against ncu, >= 200 samples: 2 of 3 within 3 %; 1 of the 2 whose",
                      said.getvalue())

    def test_what_tracing_adds(self):
        (row,) = counters.compare([value("alu", "instruction", 1.01e6)], {"alu": [1e6]}, {}, 10000,
                                  {"alu": 4})
        self.assertAlmostEqual(row["ncu_off"], 0.01)
        self.assertAlmostEqual(row["added"], 5)
        self.assertAlmostEqual(row["added_error"], 1.01)

    def test_share_of_the_sampler(self):
        said = "counters note: 9 samples in 1 burst, 2.0% of the time; the sampler used 9.8% of a core"
        self.assertEqual(counters.sampler_share({"trust": {"statements": [{"text": said}]}}), 9.8)
        self.assertIsNone(counters.sampler_share({"trust": {"statements": []}}))

    def test_slope_of_memory(self):
        times = range(480)
        each, most = sampler_memory.slope(times, [200 + t / 120 for t in times])  # half a MB a minute
        self.assertAlmostEqual(each, 0.5)
        self.assertAlmostEqual(most, 0.5)
        each, most = sampler_memory.slope(times, [200 + (t // 20 * 7 % 3) for t in times])
        self.assertLess(abs(each), 0.2)
        self.assertGreater(most, each)
        self.assertEqual(sampler_memory.slope([1, 2], [3, 3]), (None, None))


if __name__ == "__main__":
    unittest.main()
