"""Exactness: a program with known counts gives exactly those counts, bytes, names and leaks."""
import json

import e2e

TRANSFERS = {"htod": 1, "dtoh": 2, "htoa": 3, "atoh": 4, "atoa": 5, "atod": 6, "dtoa": 7, "dtod": 8,
             "map": 11, "unmap": 12, "migrate": 13}
FAILED = 4
ABANDONED = 8

# launches a round of the kernels in tests/opencl/targets/exact.c: name, grid, block, count
LAUNCHES = [("scale", (256, 1, 1), None, 10), ("sum_rows", (8, 1, 1), (32, 1, 1), 5),
            ("plane", (1, 1, 1), (8, 4, 1), 1), ("plane", (1, 1, 1), (1, 1, 1), 1)]


@e2e.needs_opencl
class OpenCL(e2e.Case):
    def exact(self, *arguments, options=()):
        result = self.record(e2e.opencl_target("exact"), *arguments, "--json", "-",
                             options=options)
        did = json.loads(result.out)
        db = self.open(result.capture)
        self.assert_conserved(db)
        seen = dict.fromkeys(did, 0)
        count = lambda sql, *values: self.one(db, sql, *values)

        name = "(SELECT value FROM string JOIN launch_config c ON c.name = string.id WHERE c.id = config)"
        seen["native"] = count("SELECT count(*) FROM kernel WHERE %s = 'native'" % name)
        seen["launch"] = count("SELECT count(*) FROM kernel") - seen["native"]
        for word, kind in TRANSFERS.items():
            seen[word], seen[word + "_bytes"] = count(
                "SELECT count(*), ifnull(sum(bytes), 0) FROM transfer WHERE kind = ?", kind)
        seen["fill"], seen["fill_bytes"] = count(
            "SELECT count(*), ifnull(sum(bytes), 0) FROM memset")
        seen["alloc"], seen["alloc_bytes"], seen["freed"] = count(
            "SELECT count(*), sum(bytes), count(end) FROM allocation")
        seen["leak_bytes"] = count("SELECT ifnull(sum(bytes), 0) FROM allocation WHERE end IS NULL")
        seen["sync"] = count("SELECT count(*) FROM sync")
        seen["queues"] = count("SELECT count(*) FROM stream")
        for flag, word in ((FAILED, "command_failed"), (ABANDONED, "abandoned")):
            seen[word] = sum(count("SELECT count(*) FROM %s WHERE flags & ?" % table, flag)
                             for table in ("kernel", "transfer", "memset"))
        seen["launch_failed"] = self.health(db, "launch", "failed")
        seen["transfer_failed"] = self.health(db, "transfer", "failed")
        seen["alloc_failed"] = self.health(db, "allocation", "failed")
        calls = dict(db.execute("SELECT string.value, count(*) FROM api_all JOIN string ON "
                                "string.id = api_all.name GROUP BY 1"))
        seen["build"] = calls.get("clBuildProgram", 0)
        seen["other"] = did["other"]  # flushes, markers and barriers: told apart below
        self.assertEqual(seen, did)

        # Every command that did not fail has its device times, in order.
        for table in ("kernel", "transfer", "memset"):
            self.assertEqual(count("SELECT count(*) FROM %s WHERE (start IS NULL OR duration IS NULL "
                                   "OR duration < 0) AND ifnull(flags, 0) & ? = 0" % table, FAILED), 0)
        return did, db, calls

    def rounds(self, arguments):
        threads = int(arguments[arguments.index("--threads") + 1])
        return threads * (int(arguments[arguments.index("--rounds") + 1])
                          if "--rounds" in arguments else 2)

    def check_names(self, db, rounds):
        seen = db.execute(
            "SELECT string.value, grid_x, grid_y, grid_z, block_x, block_y, block_z, count(*) "
            "FROM kernel JOIN launch_config c ON c.id = config JOIN string ON string.id = c.name "
            "WHERE string.value <> 'native' GROUP BY config").fetchall()
        wanted = [(name, *grid, *(block or (None,) * 3), n * rounds)
                  for name, grid, block, n in LAUNCHES]
        self.assertEqual(sorted(seen, key=repr), sorted(wanted, key=repr))

    def check(self, line):
        words = line.split()
        did, db, calls = self.exact(*words)
        rounds = self.rounds(words)
        self.check_names(db, rounds)
        self.assertEqual(did["launch"], 17 * rounds)
        if "--gate" not in words and "--fail" not in words:
            self.assertEqual(calls["clFlush"], rounds)
            self.assertEqual(calls["clEnqueueMarkerWithWaitList"], rounds)
            self.assertEqual(calls["clEnqueueBarrierWithWaitList"], rounds)
        threads = int(words[words.index("--threads") + 1])
        self.assertEqual(self.one(db, "SELECT count(DISTINCT thread) FROM kernel"), threads)
        self.assertEqual(self.one(db, "SELECT count(*) FROM stream WHERE out_of_order = 1"),
                         did["queues"] if "out" in words else 0)

    def test_one_thread(self):
        self.check("--threads 1")

    def test_one_thread_out_of_order(self):
        self.check("--threads 1 --order out --events 1")

    def test_one_thread_that_profiles(self):
        self.check("--threads 1 --profile 1 --events 1")

    def test_one_thread_failed_calls(self):
        self.check("--threads 1 --fail 1")

    def test_one_thread_user_events(self):
        self.check("--threads 1 --gate 1 --order out")

    def test_eight_threads(self):
        self.check("--threads 8 --rounds 8")

    def test_eight_threads_out_of_order_user_events(self):
        self.check("--threads 8 --rounds 4 --order out --gate 1 --events 1")

    def test_eight_threads_one_queue(self):
        self.check("--threads 8 --rounds 4 --share 1")

    def test_eight_threads_one_queue_out_of_order(self):
        self.check("--threads 8 --rounds 4 --share 1 --order out --events 1 --profile 1")

    def test_eight_threads_failed_calls(self):
        self.check("--threads 8 --rounds 2 --fail 1 --gate 1")

    def test_many_rounds(self):
        self.check("--threads 8 --rounds %d" % (2000 if e2e.LONG else 100))


class Ranges(e2e.Case):
    """NVTX from annotate.h; targets/names.c says what it did."""

    def check(self, threads, rounds):
        result = self.record(e2e.target("names"), "ranges", threads, rounds)
        db = self.open(result.capture)
        self.assert_conserved(db)
        total = threads * rounds
        seen = dict(((name, depth), n) for name, depth, n in db.execute(
            "SELECT string.value, depth, count(*) FROM range JOIN string ON string.id = range.name "
            "GROUP BY 1, 2"))
        self.assertEqual(seen, {
            ("outer", 0): total, ("inner", 1): 2 * total, ("across", None): total,
            ("work", 0): total, ("never popped", 0): threads, ("never ended", None): threads})
        self.assertEqual(self.one(db, "SELECT count(*) FROM range WHERE duration IS NULL"), 2 * threads)
        self.assertEqual(self.one(
            db, "SELECT count(*) FROM range JOIN string ON string.id = name WHERE duration IS NULL AND "
                "value NOT LIKE 'never%'"), 0)
        # Inner ranges lie within an outer one of their thread.
        self.assertEqual(self.one(
            db, "SELECT count(*) FROM range i JOIN string s ON s.id = i.name WHERE s.value = 'inner' "
                "AND NOT EXISTS (SELECT 1 FROM range o JOIN string t ON t.id = o.name WHERE t.value = "
                "'outer' AND o.thread = i.thread AND o.start <= i.start AND "
                "o.start + o.duration >= i.start + i.duration)"), 0)
        # Started on one thread, ended on another (on itself when it is alone).
        self.assertEqual(self.one(
            db, "SELECT count(*) FROM range JOIN string ON string.id = name WHERE value = 'across' AND "
                "duration NOT NULL AND end_thread NOT NULL AND end_thread <> thread"),
            total if threads > 1 else 0)
        self.assertEqual(self.one(db, "SELECT count(*) FROM marker JOIN string ON string.id = name "
                                      "WHERE value = 'mark'"), 3 * total)
        self.assertEqual(db.execute("SELECT flop, bytes_read, bytes_written, count(*) FROM work "
                                    "GROUP BY 1, 2, 3").fetchall(), [(2e9, 1e6, None, total)])
        names = [row[0] for row in db.execute(
            "SELECT name FROM thread WHERE name LIKE 'worker %' ORDER BY 1")]
        self.assertEqual(names, ["worker %d" % i for i in range(threads)])
        self.assertEqual(self.health(db, "range", "called"), self.health(db, "range", "recorded"))
        self.assertEqual(self.health(db, "range", "called"), 8 * total + 2 * threads)
        self.assertEqual(self.health(db, "range_end", "called"), 5 * total)

    def test_one_thread(self):
        self.check(1, 200)

    def test_eight_threads(self):
        self.check(8, 200)

    def test_nothing_but_processes(self):
        """A program without events is one process and nothing else."""
        result = self.record("true")
        db = self.open(result.capture)
        self.assertEqual(db.execute("SELECT end_reason, exit_status, spool FROM process").fetchall(),
                         [("exit", 0, None)])
        for table in ("kernel", "range", "marker", "api_call", "allocation", "thread"):
            self.assertEqual(self.one(db, "SELECT count(*) FROM " + table), 0)


if __name__ == "__main__":
    e2e.main()
