"""bench/exposed_nsys on a recording of two ranks over NCCL, exported to the shape of nsys: its own figures are those of the
report, another file's are not, and what cannot be compared is refused."""
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ["PERFKIT_E2E_BUILD"]
EXPOSED = os.path.join(ROOT, "bench", "exposed_nsys")


def tool(name):
    return os.path.join(BUILD, "bin", name)


def compare(*words):
    done = subprocess.run([sys.executable, EXPOSED, BUILD, *words], capture_output=True, text=True, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines() if line[0] in "[{"], done.stderr


class Exposed(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.capture, self.export = self.path("capture.sqlite"), self.path("nsys.sqlite")
        subprocess.run([tool("report_tool"), "make", os.path.join(ROOT, "tests", "report", "recorded_slow_rank.sql"), self.capture],
                       check=True)
        subprocess.run([tool("perfkit"), "export", self.capture, "--format", "nsys", self.export], check=True, capture_output=True)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def change(self, sql):
        db = sqlite3.connect(self.export)
        db.execute(sql)
        db.commit()
        db.close()

    def test_the_same_recording(self):
        status, (rows, told), _ = compare("--nsys-file", self.export)
        self.assertEqual((status, told["within"], told["same_run"]), (0, True, 0))
        out = subprocess.run([tool("perfkit"), "report", self.capture, "--ranks", "--skip", "0", "--json"], capture_output=True, check=True).stdout
        ranks = {row["pid"]: row for row in json.loads(out)["ranks"]["rows"]}
        self.assertEqual({row["pid"] for row in rows}, set(ranks))
        for row in rows:
            for key in ("collective_ns", "exposed_ns"):
                self.assertEqual(row["nsys"][key], ranks[row["pid"]][key])
            self.assertEqual(row["nsys"]["steps"], ranks[row["pid"]]["iterations"])
            self.assertGreater(row["nsys"]["exposed_ns"], 0)

    def test_kernels_cover_collectives(self):
        self.change("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = (SELECT min(start) FROM NVTX_EVENTS), end = (SELECT max(end) FROM "
                    "NVTX_EVENTS) WHERE rowid IN (SELECT min(k.rowid) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = "
                    "k.demangledName WHERE s.value LIKE 'matmul%' GROUP BY k.globalPid)")
        status, (rows, _), _ = compare("--nsys-file", self.export)
        self.assertEqual((status, [row["nsys"]["exposed_ns"] for row in rows]), (0, [0, 0]))

    def test_what_cannot_be_compared(self):
        self.change("DELETE FROM NVTX_EVENTS")
        status, told, why = compare("--nsys-file", self.export)
        self.assertEqual((status, told), (3, []))
        self.assertIn("no process with the range `step`", why)
        status, _, why = compare("--nsys", os.path.join(ROOT, "tests", "bench", "nsys_stand_in.py"), "--rounds", "1", "--", "true")
        self.assertEqual(status, 3)
        self.assertIn("exposed_nsys: ", why)
        self.assertNotIn("Traceback", why)
        self.assertEqual(compare()[0], 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
