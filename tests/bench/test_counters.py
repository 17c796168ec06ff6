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
{"kernel": "copy"}
"ID","Process ID","Kernel Name","Block Size","Grid Size","Metric Name","Metric Unit","Metric Value"
"0","1","copy(uint4 *, const uint4 *)","(256, 1, 1)","(1056, 1, 1)","dram__bytes_read.sum","byte","1,070,000,128"
"1","1","copy(uint4 *, const uint4 *)","(256, 1, 1)","(1056, 1, 1)","dram__bytes_read.sum","byte","1,080,000,000"
"0","1","copy(uint4 *, const uint4 *)","(256, 1, 1)","(1056, 1, 1)","sm__inst_executed.sum","inst","2,000,000"
'''


def value(counter, unit, per_launch, error=0.01, samples=500):
    """`error` is relative."""
    return {"counter": counter, "unit": unit, "per_launch": per_launch, "samples": samples,
            "per_launch_error": per_launch * error if per_launch and error else None}


class Counters(unittest.TestCase):
    def test_csv_of_ncu(self):
        found = counters.read_ncu(NCU)
        self.assertEqual(list(found), [("copy", (1056, 1, 1), (256, 1, 1))])
        (metrics,) = found.values()
        self.assertEqual(metrics["dram__bytes_read.sum"], [1070000128, 1080000000])
        self.assertEqual(metrics["sm__inst_executed.sum"], [2e6])

    def test_comparison(self):
        rows = counters.compare(
            [value("dram_read_bytes", "byte", 1.05e9), value("fma", "instruction", 2e6, error=None),
             value("pcie_read_bytes", "byte", 12.0), value("fp64", "cycle", None)],
            {"dram__bytes_read.sum": [0.99e9, 1.01e9]}, {"fma": 2.5e6})
        self.assertEqual([row["counter"] for row in rows], ["dram_read_bytes", "fma"])
        self.assertAlmostEqual(rows[0]["ncu_off"], 0.05)
        self.assertAlmostEqual(rows[0]["ncu_errors"], 5)  # an error of one per cent
        self.assertAlmostEqual(rows[0]["ncu_error"], 0.01)
        self.assertAlmostEqual(rows[1]["source_off"], -0.2)
        self.assertIsNone(rows[1]["source_errors"])

    def test_every_counter_that_is_off_is_listed(self):
        rows = counters.compare(
            [value("dram_read_bytes", "byte", 1.05e9), value("dram_write_bytes", "byte", 1.01e9),
             value("l2_bytes", "byte", 9e9, samples=100)],
            {"dram__bytes_read.sum": [1e9], "dram__bytes_write.sum": [1e9], "lts__t_bytes.sum": [1e9]},
            {})
        rows = [dict(row, case="x", kernel="k") for row in rows]
        with contextlib.redirect_stdout(io.StringIO()) as said:
            summary = counters.summarise(rows)
        self.assertEqual([row["counter"] for row in summary["far"]], ["dram_read_bytes"])
        self.assertEqual((summary["compared"], summary["within_two_errors"]), (2, 1))
        self.assertIn("1 of 2 within 3 %", said.getvalue())

    def test_what_tracing_adds_is_taken_off(self):
        rows = counters.compare(
            [value("alu", "instruction", 1.04e6), value("sm_active", "cycle", 2e6),
             value("fma", "instruction", 2e6), value("fma_fp16", "instruction", 1e6)],
            {"sm__inst_executed_pipe_alu.sum": [1e6], "sm__cycles_active.sum": [1e6],
             "sm__inst_executed_pipe_fma.sum": [1e6]}, {}, counters.warps_of((100, 10, 1), (310, 1, 1)))
        by_name = {row["counter"]: row for row in rows}
        self.assertAlmostEqual(by_name["alu"]["ncu_errors"], 4)
        self.assertAlmostEqual(by_name["alu"]["like_errors"], 0)  # 10,000 warps, 4 each
        self.assertNotIn("like_errors", by_name["sm_active"])
        self.assertEqual(by_name["fma"]["unlike"], counters.HALF)

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
