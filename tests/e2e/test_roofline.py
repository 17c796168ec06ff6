"""From `perfkit device --measure` to the roofline: what is measured on this machine travels in the
captures made on it. Counts and sources only; no figure is looked at."""
import json
import os
import unittest

import e2e

WORKLOAD = os.path.join(e2e.BUILD, "workloads", "patterns")
CEILINGS = ["dram_read", "l2_read", "fp32", "launch"]


@e2e.needs_opencl
@unittest.skipUnless(os.path.exists(WORKLOAD), "no workloads were built")
class Roofline(e2e.Case):
    def setUp(self):
        super().setUp()
        self.ceilings = self.path("ceilings")
        self.environment = e2e.clean_environment(PERFKIT_CEILINGS=self.ceilings)

    def measure(self, *words):
        result = self.perfkit("device", "opencl:0", "--measure", "--json", *words, env=self.environment)
        self.assertEqual(result.status, 0, result.err)
        return json.loads(result.out)["devices"][0]

    def capture(self):
        return self.record(WORKLOAD, "--backend", "opencl", "--preset", "small", "--iterations", 1,
                           "--variant", "load-float4", env=self.environment).capture

    def report(self, capture):
        result = self.perfkit("report", capture, "--json", env=self.environment)
        self.assertEqual(result.status, 0, result.err)
        return json.loads(result.out)

    def test_measured_ceilings_travel(self):
        device = self.measure("--only", ",".join(CEILINGS))
        measured = {row["name"]: row["measured"] for row in device["ceilings"] if row["measured"]}
        self.assertEqual(set(measured), set(CEILINGS))
        capture = self.capture()
        db = self.open(capture)
        self.assertEqual(dict(db.execute("SELECT name, value FROM ceiling")), measured)
        db.close()
        report = self.report(capture)
        known = {row["name"]: row["source"] for row in report["ceilings"]["rows"]
                 if row["name"] in CEILINGS}
        self.assertEqual(known, dict.fromkeys(CEILINGS, "measured"))
        rows = [row for row in report["roofline"]["rows"] if row["worked"]]
        self.assertTrue(rows)
        for row in rows:
            self.assertEqual(row["work"], "declared")
            self.assertGreater(row["roof_share"], 0)
            self.assertNotEqual(row["bound"] is None, row["why"] is None)

    def test_without_ceilings_the_report_says_so(self):
        capture = self.capture()
        db = self.open(capture)
        self.assertEqual(self.one(db, "SELECT count(*) FROM ceiling"), 0)
        db.close()
        rows = [row for row in self.report(capture)["roofline"]["rows"] if row["worked"]]
        self.assertTrue(rows)
        for row in rows:
            self.assertIsNone(row["roof_share"])
        text = self.perfkit("report", "--all", capture, env=self.environment)
        self.assertIn(b"perfkit device --measure", text.out)

    def test_declared_work_is_the_work_of_the_kernels(self):
        capture = self.capture()
        db = self.open(capture)
        flop, = db.execute("SELECT sum(flop) FROM work").fetchone()
        db.close()
        listed = sum(row["flop"] or 0 for row in self.report(capture)["roofline"]["rows"])
        self.assertAlmostEqual(listed / flop, 1, places=12)

    def test_the_figure(self):
        capture = self.capture()
        script = self.path("figure.gp")
        result = self.perfkit("report", capture, "--roofline", script, env=self.environment)
        self.assertEqual(result.status, 0, result.err)
        with open(script) as lines:
            self.assertIn("plot $discs", lines.read())
        refused = self.perfkit("report", capture, "--roofline", self.path("figure.pdf"))
        self.assertEqual(refused.status, 2)
        self.assertIn(b".svg, .png or .gp", refused.err)


if __name__ == "__main__":
    e2e.main()
