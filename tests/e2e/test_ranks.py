"""Ranks of a real program: two processes that train together on a device of the host, one of which is given
more to do. What is asserted are counts and bytes; who came last is for people."""
import json
import os
import subprocess
import unittest

import e2e

PROGRAM = os.path.join(e2e.BUILD, "workloads", "allreduce")
RANKS, ITERATIONS, WARMUP = 2, 3, 1


@unittest.skipUnless(os.path.exists(PROGRAM), "the workload allreduce is not built")
class Ranks(e2e.Case):
    def report(self, capture, *words):
        result = subprocess.run([e2e.PERFKIT, "report", capture, *words], check=True,
                                capture_output=True, env=e2e.clean_environment())
        return result.stdout.decode()

    @e2e.needs_opencl
    def test_a_rank_with_more_work(self):
        result = self.record(PROGRAM, "--ranks", RANKS, "--backend", "opencl", "--preset", "small", "--variant",
                             "host-slow-rank", "--slow-rank", 1, "--iterations", ITERATIONS, "--warmup", WARMUP,
                             quiet=False)
        db = self.open(result.capture)
        told = json.loads(self.report(result.capture, "--ranks", "--json"))
        ranks = told["ranks"]["rows"]
        self.assertEqual([row["rank"] for row in ranks], list(range(RANKS)))
        self.assertEqual((told["world_size"], told["missing"], told["iteration"]), (RANKS, 0, "step"))
        # Every operation of the program, each on both ranks.
        calls, size = db.execute(
            "SELECT count(*), sum(payload) FROM range r JOIN string d ON d.id = r.domain WHERE d.value = "
            "'perfkit.collective'").fetchone()
        self.assertGreater(calls, 0)
        self.assertEqual((told["operations"], told["matched"]), (calls, calls), told["why_unmatched"])
        rows = told["collectives"]["rows"]
        self.assertEqual({row["name"] for row in rows}, {"all_reduce"})
        self.assertEqual(sum(row["count"] for row in rows), calls)
        self.assertEqual(sum(row["count"] * row["bytes"] for row in rows), size)
        self.assertEqual({row["ranks"] for row in rows}, {RANKS})
        self.assertEqual(len({row["collectives"] for row in ranks}), 1)
        # What was planted is what the ranks do otherwise, exactly: more launches, of rank 1 alone.
        differences = told["rank_differences"]["rows"]
        self.assertTrue(differences)
        self.assertEqual({row["rank"] for row in differences}, {1})
        self.assertIn("launches", {row["kind"] for row in differences})
        self.assertNotIn("collectives", {row["kind"] for row in differences})
        self.assertTrue(all(row["here"] > row["usual"] for row in differences))
        self.assertEqual(ranks[1]["kernels"] - ranks[0]["kernels"], self.more_launches(db))
        for text in told["notes"]:
            e2e.say(text)
        self.assertIn("Ranks: 2", self.report(result.capture))

    def more_launches(self, db):
        ranks = dict(db.execute(
            "SELECT p.rank, count(*) FROM kernel k JOIN stream s ON s.id = k.stream JOIN process p ON "
            "p.id = s.process GROUP BY p.rank"))
        return ranks[1] - ranks[0]

    def test_network_of_the_host(self):
        """Those ports that carried something, if any: what else the host does is not ours to say."""
        environment = {**e2e.clean_environment(), "RANK": "0", "WORLD_SIZE": "1"}
        result = self.record(e2e.target("names"), "reuse", "10", env=environment)
        rows = self.open(result.capture).execute("SELECT p.rank, n.name, n.kind, n.start, n.duration, n.received + n.sent FROM "
                                                 "network_port n JOIN process p ON p.id = n.process").fetchall()
        for rank, name, kind, start, duration, carried in rows:
            self.assertEqual((rank, start >= 0, duration > 0, carried > 0), (0, True, True, True), name)
            self.assertIn(kind, ("ethernet", "virtual", "infiniband", "roce"))
            self.assertNotEqual(name, "lo")

    def test_without_ranks(self):
        result = self.record("true", quiet=False)
        told = json.loads(self.report(result.capture, "--ranks", "--json"))
        self.assertEqual((told["ranks"]["rows"], told["operations"], told["missing"]), ([], 0, None))
        self.assertEqual(self.open(result.capture).execute("SELECT count(*) FROM network_port").fetchone(), (0,))
        self.assertIn("no ranks and no collective operations", self.report(result.capture, "--ranks"))


if __name__ == "__main__":
    e2e.main()
