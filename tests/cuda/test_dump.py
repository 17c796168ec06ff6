"""The recorder of CUPTI's buffers (perfkit run --cupti-dump): what it writes is what CUPTI handed
over, and its troubles are never the program's."""
import os
import unittest

import dump_reader
import replay
from test_replay import everything
from dump_writer import Script


class Dumps(replay.Case):
    def setUp(self):
        super().setUp()
        self.dumps = self.path("dumps")
        os.mkdir(self.dumps)

    def options(self, folder=None):
        return ["--cupti-dump", folder or self.dumps]

    def written(self):
        return [dump_reader.load(os.path.join(self.dumps, name))
                for name in sorted(os.listdir(self.dumps))]

    def assert_same(self, dump, original):
        """The same records, however they were cut into buffers."""
        found = dump_reader.expectations(dump, replay.names())
        expected = dump_reader.expectations(dump_reader.Dump(original), replay.names())
        self.assertEqual(found, expected)
        self.assertFalse(dump.truncated)

    def test_round_trip(self):
        original = everything().finish()
        self.play(original, options=self.options())
        [dump] = self.written()
        self.assertEqual(dump.cupti_version, 130001)
        self.assert_same(dump, original)
        # and what it says can be played again
        with open(os.path.join(self.dumps, os.listdir(self.dumps)[0]), "rb") as file:
            again = file.read()
        expected = self.expected(original)
        db = self.play(again)
        self.assertEqual(self.rows(db, "SELECT value, count(*) FROM kernel JOIN launch_config c ON "
                                       "c.id = config JOIN string s ON s.id = c.name GROUP BY 1"),
                         expected["kernel_names"])
        self.assertEqual(self.one(db, "SELECT sum(duration) FROM kernel"), expected["kernel_ns"])
        self.assert_conserved(db)

    def test_many_buffers(self):
        script = Script()
        for i in range(4000):
            script.launch("_Z%dkernel%05dv" % (11, i % 1000), script.pid + i % 20)
        original = script.finish()
        self.play(original, fake="small=4096", options=self.options())
        [dump] = self.written()
        self.assert_same(dump, original)
        self.assertGreater(len(dump.buffers), 100)
        self.assertEqual(len({asked for _, asked, _, _ in dump.buffers}), 20)

    def test_text_that_changes(self):
        script = Script()
        for i in range(10):
            script.text("_Z5name%dv" % i, 0x1234)
            script.kernel(0x1234, script.call("cudaLaunchKernel"))
            script.kernel("_Z4samev", script.call("cudaLaunchKernel"))
            script.flush()
        original = script.finish()
        self.play(original, fake="flushes=1", options=self.options())
        [dump] = self.written()
        self.assert_same(dump, original)
        self.assertEqual(len([b for b in dump.blocks if b.type == dump_reader.STRING and
                              b.body[8:] == b"_Z4samev"]), 1)

    def test_callbacks(self):
        script = Script()
        for i in range(3000):
            script.callback(13, script.pid + i % 4, graph=1, node=1 + i, node_type=0)
        for i in range(500):
            script.callback(20, graph=2, node=5000 + i, original=1 + i, node_type=0)
        script.callback(3, context=1, stream=20, handle=0xabc000)
        original = script.finish()
        self.play(original, options=self.options())
        [dump] = self.written()
        self.assert_same(dump, original)
        nodes = [c for c in dump.callbacks if c["cbid"] == 13]
        self.assertEqual([c["node"] for c in nodes], list(range(1, 3001)))
        self.assertEqual(len({c["tid"] for c in nodes}), 4)
        times = [c["time"] for c in nodes]
        self.assertEqual(times, sorted(times))
        [stream] = [c for c in dump.callbacks if c["cbid"] == 3]
        self.assertEqual((stream["stream"], stream["handle"]), (20, 0xabc000))

    def test_callbacks_without_room(self):
        script = Script()
        for i in range(20000):
            script.callback(13, graph=1, node=1 + i, node_type=0)
        db = self.play(script.finish(), options=self.options())
        [dump] = self.written()
        kept = [c["node"] for c in dump.callbacks if c["cbid"] == 13]
        self.assertEqual(len(kept) + dump.dropped[dump_reader.LOST_CALLBACKS], 20000)
        self.assertEqual(kept, sorted(kept))
        self.assertEqual(self.one(db, "SELECT count(*) FROM graph_node"), 20000)

    def test_killed(self):
        result = self.fake_run("basic", options=self.options(), end="kill", status=None)
        self.assertLess(result.status, 0)
        [dump] = self.written()
        self.assertFalse(dump.complete)
        self.assertEqual(len(dump.records(10)), 1000)

    def test_fork(self):
        self.play(everything().finish(), fake="fork=1", options=self.options())
        [dump] = self.written()
        self.assert_same(dump, everything().finish())

    def test_fork_before_cuda(self):
        result = self.fake_run("basic", options=self.options(), env={"FAKE_FORK_FIRST": "1"})
        db = self.open(result.capture)
        self.assertEqual(self.rows(db, "SELECT p.id, count(*) FROM kernel k JOIN thread t ON t.id = "
                                       "k.thread JOIN process p ON p.id = t.process GROUP BY 1"),
                         {"1": 1000, "2": 1000})
        dumps = self.written()
        self.assertEqual(sorted(dump.pid for dump in dumps),
                         sorted(row[0] for row in db.execute("SELECT pid FROM process")))
        for dump in dumps:
            self.assertTrue(dump.complete)
            self.assertEqual(len(dump.records(10)), 1000)

    def test_damaged_buffer(self):
        script = Script()
        for _ in range(100):
            script.launch("_Z1kv")
        self.play(script.finish(), fake="damage=1", options=self.options())
        with self.assertRaises(dump_reader.BadDump):
            self.written()

    def test_cannot_be_written(self):
        original = everything().finish()
        for folder in ("/proc/self", "/dev/full"):
            with self.subTest(folder):
                path = self.path("script")
                with open(path, "wb") as file:
                    file.write(original)
                result = self.fake_run("replay", "replay=" + path, options=self.options(folder),
                                       status=None, quiet=False)
                if result.status == 125:
                    continue  # refused before the program was started
                self.assertEqual(result.status, 0)
                db = self.open(result.capture)
                self.assertEqual(self.one(db, "SELECT count(*) FROM kernel"), 81)
                self.assertIn("the CUPTI dump", self.one(
                    db, "SELECT group_concat(note) FROM capture_health WHERE note LIKE '%dump%'"))

    @unittest.skipUnless(os.geteuid() == 0, "not root")
    def test_full_disk(self):
        if not replay.e2e.own_mount_allowed(self.dumps, "16k"):
            self.skipTest("mounting is not allowed here")
        self.addCleanup(replay.e2e.unmount, self.dumps)
        script = Script()
        for i in range(2000):
            script.launch("_Z1kv")
        db = self.play(script.finish(), options=self.options())
        self.assertEqual(self.one(db, "SELECT count(*) FROM kernel"), 2000)
        self.assertIn("No space left", self.one(
            db, "SELECT group_concat(note) FROM capture_health WHERE note LIKE '%dump%'"))


if __name__ == "__main__":
    replay.e2e.main()
