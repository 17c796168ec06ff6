"""bench/counters.py: reading ncu's CSV, and the comparison, on made-up figures."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
import counters

NCU = '''==PROF== Connected to process 1
{"kernel": "copy"}
"ID","Process ID","Kernel Name","Block Size","Grid Size","Metric Name","Metric Unit","Metric Value"
"0","1","copy(uint4 *, const uint4 *)","(256, 1, 1)","(1056, 1, 1)","dram__bytes_read.sum","Gbyte","1.07"
"1","1","copy(uint4 *, const uint4 *)","(256, 1, 1)","(1056, 1, 1)","dram__bytes_read.sum","Mbyte","1,080"
"0","1","copy(uint4 *, const uint4 *)","(256, 1, 1)","(1056, 1, 1)","sm__inst_executed.sum","inst","2,000,000"
'''


def value(counter, unit, per_launch, rate=10.0, error=0.1, samples=500):
    return {"counter": counter, "unit": unit, "per_launch": per_launch, "rate": rate,
            "rate_error": error, "samples": samples}


class Counters(unittest.TestCase):
    def test_csv_of_ncu(self):
        found = counters.read_ncu(NCU)
        self.assertEqual(list(found), [("copy", (1056, 1, 1), (256, 1, 1))])
        (metrics,) = found.values()
        self.assertAlmostEqual(metrics["dram__bytes_read.sum"], 1.075e9)
        self.assertEqual(metrics["sm__inst_executed.sum"], 2e6)

    def test_comparison(self):
        rows = counters.compare(
            [value("dram_read_bytes", "byte", 1.05e9), value("fma", "instruction", 2e6, error=None),
             value("pcie_read_bytes", "byte", 12.0), value("fp64", "cycle", None)],
            {"dram__bytes_read.sum": 1e9}, {"fma": 2.5e6})
        self.assertEqual([row["counter"] for row in rows], ["dram_read_bytes", "fma"])
        self.assertAlmostEqual(rows[0]["ncu_off"], 0.05)
        self.assertAlmostEqual(rows[0]["ncu_errors"], 5)  # an error of one per cent
        self.assertAlmostEqual(rows[1]["source_off"], -0.2)
        self.assertIsNone(rows[1]["source_errors"])

    def test_share_of_the_sampler(self):
        said = "counters note: 9 samples in 1 burst, 2.0% of the time; the sampler used 9.8% of a core"
        self.assertEqual(counters.sampler_share({"trust": {"statements": [{"text": said}]}}), 9.8)
        self.assertIsNone(counters.sampler_share({"trust": {"statements": []}}))


if __name__ == "__main__":
    unittest.main()
