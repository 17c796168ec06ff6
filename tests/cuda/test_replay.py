"""Dumps of CUPTI's buffers played through the real collector and `perfkit run`: what the capture
holds is compared with an independent reading of the dump."""
import gzip
import unittest

import replay
from dump_writer import MS, Script

DRIVER_DOMAIN, ENABLE_PEER_ACCESS = 1, 313  # CUPTI_DRIVER_TRACE_CBID_cuCtxEnablePeerAccess


def everything():
    """A program that does one of each."""
    script = Script()
    worker = script.pid + 1
    script.callback(ENABLE_PEER_ACCESS, domain=DRIVER_DOMAIN)  # or copies between devices are not recorded
    script.allocate(0x10000, 1 << 20)
    script.allocate(0x20000, 4096, worker)
    script.record(37, context=1, stream=13, priority=-1, flag=2)
    for i in range(40):
        script.launch("_Z3addPfi" if i % 2 else "_Z3mulPfi")
        script.launch("_Z3addPfi", worker, stream=13)
    script.flush()
    script.copy(4096)
    script.copy(100, kind=2, source=3, target=2)
    script.copy(8, kind=8, source=3, target=3, thread=worker)
    script.fill(256)
    script.synchronise()
    script.launch("triton_kernel", api="cuLaunchKernel")
    script.call("cudaLaunchKernel", result=1)  # refused
    id = script.call("cudaMemcpy")
    script.record(22, copy_kind=10, source=3, target=3, bytes=77, start=script.step(),
                  end=script.step(), context=1, stream=7, source_device=0, target_device=0,
                  correlation=id)
    script.record(36, correlation=script.next_id, context=1, stream=7, event=3, recorded=5)
    script.record(17, overhead=6 << 16, object=2, process=script.pid, thread=script.pid,
                  start=script.step(), end=script.step())
    script.call("cudaMemPoolCreate", inside=lambda id: script.record(
        50, operation=1, type=1, address=0x999000, bytes=1 << 20, time=script.now, correlation=id))
    script.record(52, input=1, operation=3, start=script.step(), end=script.step(MS), path="/c/x",
                  process=script.pid, thread=worker)
    script.free(0x10000, 1 << 20)
    return script


OVERHEADS = {"1": 1, "65536": 2, "131072": 3, "196608": 4, "262144": 5, "327680": 6, "393216": 7,
             "458752": 8, "524288": 9}


class Scripted(replay.Case):
    def holds(self, script, **more):
        dump = script.finish()
        db = self.play(dump, **more)
        expected = self.expected(dump)
        expected["overheads"] = {str(OVERHEADS[k]): n for k, n in expected["overheads"].items()}
        self.assert_holds(db, expected)
        return db

    def test_one_of_each(self):
        db = self.holds(everything())
        self.assertEqual(self.rows(
            db, "SELECT tid = pid, count(DISTINCT t.id) FROM kernel JOIN thread t ON t.id = thread "
                "JOIN process p ON p.id = process GROUP BY 1"), {"0": 1, "1": 1})

    def test_flush_by_flush(self):
        self.holds(everything(), fake="flushes=1")

    def test_at_its_own_speed(self):
        self.holds(everything(), fake="pace=1")

    def test_empty(self):
        script = Script()
        db = self.play(script.finish())
        self.assertEqual(self.one(db, "SELECT count(*) FROM kernel"), 0)

    def test_times_are_kept(self):
        script = Script()
        for i in range(100):
            script.launch("_Z1kv")
            script.step(i * 1000)
        dump = script.finish()
        db = self.play(dump)
        self.assert_holds(db, self.expected(dump))
        kernels = sorted(r.start for r in replay.dump_reader.Dump(dump).records(10))
        self.assertEqual([row[0] for row in db.execute(
            "SELECT start - (SELECT min(start) FROM kernel) FROM kernel ORDER BY start")],
            [start - kernels[0] for start in kernels])

    def test_names_under_one_address(self):
        # A module is unloaded, and the next one's kernel name lies where the first one's was.
        script = Script()
        for i in range(20):
            script.text("_Z%dk%02dv" % (3, i), 0x1234)
            script.kernel(0x1234, script.call("cudaLaunchKernel"))
            script.flush()
        self.holds(script, fake="flushes=1")

    def test_modules_unloaded(self):
        # The same at full speed: what was launched must have its name before the module is gone.
        script = Script()
        for i in range(20):
            script.text("_Z6modu%02dv" % i, 0x1234)
            script.kernel(0x1234, script.call("cuLaunchKernel"))
            script.give()
            script.call("cuModuleUnload")
        self.holds(script, fake="inplace=1")

    def test_graph(self):
        script = Script()

        def capture(number):
            return lambda id: script.callback(13, graph=3, node=number, node_type=0)
        for i in range(10):
            script.call("cudaLaunchKernel", inside=capture(100 + i))

        def instantiate(id):
            for i in range(10):
                script.callback(20, graph=4, node=200 + i, original=100 + i, node_type=0)
        script.call("cudaGraphInstantiate", inside=instantiate)
        for _ in range(5):
            id = script.call("cudaGraphLaunch")
            for i in range(10):
                script.kernel("_Z4nodev", id, graph_node=200 + i, graph=4)
        db = self.holds(script)
        self.assertEqual(self.health(db, "launch", "captured"), 10)
        # Each node was made inside the call that was captured.
        self.assertEqual(self.one(
            db, "SELECT count(*) FROM graph_node n JOIN api_call c ON c.thread = n.thread AND "
                "c.start <= n.start AND n.start <= c.start + c.duration JOIN string s ON "
                "s.id = c.name WHERE n.original IS NULL AND s.value = 'cudaLaunchKernel'"), 10)

    def test_nested_driver_calls(self):
        script = Script()
        for own in (False, True):
            for _ in range(10):
                def inner(id):
                    script.call("cuLaunchKernel", id=None if own else id, ns=500)
                id = script.call("cudaLaunchKernel", inside=inner)
                script.kernel("_Z1kv", script.next_id - 1 if own else id)
        dump = script.finish()
        db = self.play(dump)
        self.assertEqual(self.rows(db, "SELECT value, count(*) FROM kernel JOIN string s ON s.id = "
                                       "api_name GROUP BY 1"), {"cudaLaunchKernel": 20})
        self.assertEqual(self.health(db, "launch", "called"), 20)
        self.assert_conserved(db)

    def test_many_threads(self):
        script = Script()
        for i in range(3000):
            script.launch("_Z1kv", script.pid + i % 50)
            if i % 100 == 99:
                script.give(script.pid + i % 50)
        db = self.holds(script)
        self.assertEqual(self.one(db, "SELECT count(*) FROM thread"), 50)


class Recorded(replay.Case):
    """Dumps of real programs on a GPU (tests/data; README.md there)."""

    def test_recorded(self):
        dumps = replay.recorded_dumps()
        if not dumps:
            self.skipTest("tests/data holds no dump")
        for name, path, expected in dumps:
            with self.subTest(name):
                with gzip.open(path) as file:
                    dump = file.read()
                self.assertEqual(replay.dump_reader.expectations(
                    replay.dump_reader.Dump(dump), replay.names(), expected["options"]), expected,
                    "the expectations are not those of the dump")
                expected["overheads"] = {str(OVERHEADS.get(k, 0)): n
                                         for k, n in expected["overheads"].items()}
                db = self.play(dump, options=expected["options"])
                self.assert_holds(db, expected)


if __name__ == "__main__":
    replay.e2e.main()
