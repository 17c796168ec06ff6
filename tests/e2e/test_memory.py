"""Who holds a device's memory, from a program's allocations to the lines of `perfkit report --memory`.
The program says itself what it allocates at which of its lines. Counts and bytes only."""
import json
import os
import sys

import e2e

STEPS = 10
WARM_UP = 1  # what the report leaves out of so many steps


@e2e.needs_opencl
class Memory(e2e.Case):
    def capture(self, *options):
        result = self.record(e2e.target("memory"), STEPS, options=options, status=None)
        if result.status == 77:
            self.skipTest("no OpenCL device")
        self.assertEqual(result.status, 0, result.err)
        words = [line.split() for line in result.out.decode().splitlines()]
        self.refused = int(words[-1][1])
        self.known = {name: (int(line), int(size)) for name, line, size in words[:-1]}
        return result.capture

    def report(self, capture, *words):
        result = self.perfkit("report", capture, "--memory", "--json", *words)
        self.assertEqual(result.status, 0, result.err)
        return json.loads(result.out)

    def only(self, rows, function, path="path"):
        found = [row for row in rows if function in row[path]]
        self.assertEqual(len(found), 1, (function, rows))
        return found[0]

    def check_stacks(self, report):
        """Each function is found with its line; how much each held, kept, and gave back at once."""
        line, size = self.known["weights"]
        held = report["held"]["rows"]
        self.assertIn("weights (memory.c:%d)" % line, held[0]["brief"])
        self.assertEqual(held[0]["held_bytes"], size)
        line, size = self.known["forgotten"]
        kept = report["kept"]["rows"]
        leak = kept[0]
        self.assertIn("forgotten (memory.c:%d)" % line, leak["brief"])
        self.assertTrue(leak["brief"].endswith(" in train > step"), leak["brief"])
        self.assertEqual((leak["verdict"], leak["growth_bytes"], leak["kept_bytes"], leak["kept_count"]),
                         ("leak", size, size * STEPS, STEPS))
        line, size = self.known["cache"]
        cache = self.only(kept, "cache (memory.c:%d)" % line)
        self.assertEqual((cache["verdict"], cache["kept_bytes"]), ("state", 3 * size))
        line, size = self.known["scratch"]
        scratch = self.only(report["brief"]["rows"], "scratch (memory.c:%d)" % line)
        self.assertEqual((scratch["brief_count"], scratch["brief_bytes"]), (STEPS, STEPS * size))
        self.assertEqual(len(kept), 2)
        failure = report["failures"]["rows"][0]
        self.assertIn("too_much (memory.c:%d)" % self.known["too_much"][0], failure["brief"])

    def test_a_leak_of_a_kilobyte_is_found_with_its_line(self):
        capture = self.capture("--stacks=alloc")
        report = self.report(capture)
        if not any("memory.c:" in row["path"] for row in report["held"]["rows"]):
            self.skipTest("source lines are not known: built without libdw")
        self.check_stacks(report)
        # The flame graph weighs the same bytes.
        place = report["places"]["rows"][0]
        self.assertEqual(sum(row["held_bytes"] for row in report["held"]["rows"]), place["peak_bytes"])
        for weight, total in (("held", place["peak_bytes"]), ("allocated", place["bytes"])):
            folded = self.perfkit("report", capture, "--flamegraph", "-", "--weight", weight)
            lines = folded.out.decode().splitlines()
            self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in lines), total)
            self.assertTrue(all(line.rpartition(" ")[0].endswith(";device") for line in lines), lines)

    def test_by_ranges_and_calls_without_stacks(self):
        report = self.report(self.capture())
        size = {name: known[1] for name, known in self.known.items()}
        self.assertEqual(report["steps"], {"count": STEPS - WARM_UP, "name": "step"})
        in_step = self.only(report["kept"]["rows"], "train > step > clCreateBuffer")
        self.assertEqual(in_step["verdict"], "leak")
        self.assertEqual(in_step["kept_bytes"], STEPS * size["forgotten"] + 3 * size["cache"])
        self.assertEqual(report["held"]["rows"][0]["path"], "train > clCreateBuffer")
        self.assertEqual(report["held"]["rows"][0]["held_bytes"], size["weights"])
        place = report["places"]["rows"][0]
        self.assertEqual(place["growth_bytes"], size["forgotten"])
        self.assertEqual(place["count"], 2 * STEPS + 3 + 1)
        failure = report["failures"]["rows"][0]
        self.assertEqual((report["failed"], failure["bytes"], failure["result"]),
                         (1, size["too_much"], self.refused))
        self.assertEqual(failure["live_bytes"], size["weights"] + in_step["kept_bytes"])
        self.assertEqual(report["holders"]["rows"][0]["bytes"], size["weights"])
        text = self.perfkit("report", report["capture"]["path"], "--memory").out.decode()
        for words in ("Out of memory", "64.0 TiB", "Kept: 1 of them leaks", "Freed at once",
                      "--stacks=alloc"):
            self.assertIn(words, text)

    def test_every_format_tells_the_same_bytes(self):
        capture = self.capture()
        rows = self.report(capture)["kept"]["rows"]
        csv = self.perfkit("report", capture, "--memory", "--format", "csv").out.decode()
        for row in rows:
            self.assertRegex(csv, r"kept,%s,[0-9.]+,%d,%d," % (row["verdict"], row["kept_bytes"],
                                                              row["kept_count"]))
        markdown = self.perfkit("report", capture, "--memory", "--format", "markdown")
        self.assertIn("## Live at peak", markdown.out.decode())
        both = self.perfkit("report", capture, "--memory", "--stats", "cuda_api_sum")
        self.assertEqual(both.status, 2)


# A torch whose allocator has this history. The hook's own code runs as it is.
FAKE_TORCH = """
import importlib.util, sys, time

class memory:
    @staticmethod
    def _record_memory_history(**how):
        assert how["enabled"] == "all" and how["stacks"] == "python", how

    @staticmethod
    def _snapshot():
        us, where = int(time.time() * 1e6), {"filename": "/src/model.py", "line": 7, "name": "forward"}
        main = {"filename": "/src/train\\tit.py", "line": 90, "name": "<module>"}
        return {"segments": [], "device_traces": [[], [
            {"action": "segment_alloc", "addr": 4096, "size": 1 << 21, "time_us": us},
            {"action": "alloc", "addr": 4096, "size": 1000, "time_us": us, "frames": [where, main]},
            {"action": "alloc", "addr": 8192, "size": 512, "time_us": us, "frames": [where, main]},
            {"action": "free_requested", "addr": 4096, "size": 1000, "time_us": us + 1},
            {"action": "free_completed", "addr": 4096, "size": 1000, "time_us": us + 2},
            {"action": "alloc", "addr": 12288, "size": 64, "time_us": us, "frames": [where, main]},
            {"action": "free_requested", "addr": 12288, "size": 64, "time_us": us + 3},
            {"action": "alloc", "addr": 4096, "size": 100}]]}

class cuda:
    memory = memory
    queued = []
    _lazy_call = staticmethod(queued.append)

class torch:
    cuda = cuda

spec = importlib.util.spec_from_file_location("_perfkit_blocks", sys.argv[1])
blocks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(blocks)
blocks.start(torch)
if sys.argv[2] == "initialise":
    for call in cuda.queued:
        call()
"""


class Blocks(e2e.Case):
    HOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "collectors", "python",
                        "pytorch", "_perfkit_blocks.py")

    def program(self, word):
        result = self.record(sys.executable, "-B", "-c", FAKE_TORCH, self.HOOK, word)
        return self.open(result.capture)

    def test_blocks_of_the_caching_allocator(self):
        db = self.program("initialise")
        self.assertEqual(db.execute("SELECT bytes, address, \"end\" - start FROM block ORDER BY id")
                         .fetchall(), [(1000, 4096, 2000), (512, 8192, None), (64, 12288, 3000)])
        self.assertEqual(db.execute(
            "SELECT v.value, f.value, y.line, s.depth FROM block b JOIN stack s ON s.id = b.stack "
            "JOIN symbol y ON y.frame = s.frame JOIN string v ON v.id = y.function "
            "JOIN string f ON f.id = y.file").fetchall(), [("forward", "/src/model.py", 7, 2)] * 3)
        self.assertEqual(db.execute("SELECT count(*) FROM string WHERE value = '/src/train it.py'")
                         .fetchone(), (1,))

    def test_a_program_without_cuda_leaves_nothing(self):
        self.assertEqual(self.program("nothing").execute("SELECT count(*) FROM block").fetchone(), (0,))


if __name__ == "__main__":
    e2e.main()
