"""What the tests that replay dumps of CUPTI's buffers share: running `perfkit run` on a program with
the fake libcuda and libcupti, and comparing a capture with what an independent reading of the dump
says it must hold (dump_reader.py)."""
import json
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "e2e")]
import dump_reader
import e2e

os.environ["FAKE_CUDA_HOST"] = str(os.getpid())  # no other test's GPU, for the lock of its counters
PROGRAM = os.path.join(e2e.BUILD, "bin", "cuda_program")
FAKES = os.path.join(e2e.BUILD, "tests", "cuda", "fakes")
OLD_FAKES = os.path.join(FAKES, "old")
DATA = os.path.join(HERE, "..", "data")


def names():
    return dump_reader.function_names(os.path.join(e2e.BUILD, "tests", "cuda"))


class Case(e2e.Case):
    def fake_run(self, scenario, fake="", options=(), end="return", library=FAKES, env=None, **more):
        """Record the fake program; FAKE_CUPTI is `fake`."""
        environment = e2e.clean_environment(LD_LIBRARY_PATH=library, FAKE_CUPTI=fake, **(env or {}))
        return self.record(PROGRAM, scenario, end, options=options, env=environment, **more)

    def play(self, dump, fake="", **more):
        """Record the replay of a dump (its bytes) and open the capture."""
        path = self.path("dump")
        with open(path, "wb") as file:
            file.write(dump)
        result = self.fake_run("replay", ",".join(filter(None, ("replay=" + path, fake))), **more)
        return self.open(result.capture)

    def expected(self, dump, **changes):
        return dict(dump_reader.expectations(dump_reader.Dump(dump), names()), **changes)

    # ---- the capture against the dump

    def rows(self, db, sql):
        return {"/".join(map(str, row[:-1])): row[-1] for row in db.execute(sql)}

    def has_table(self, db, name):
        return self.one(db, "SELECT count(*) FROM sqlite_master WHERE name = ?", name) > 0

    def later_rows(self, db, table, sql):
        """Of a table that a capture has when something is in it."""
        return self.rows(db, sql) if self.has_table(db, table) else {}

    def later_count(self, db, table, condition="1"):
        return self.one(db, "SELECT count(*) FROM %s WHERE %s" % (table, condition)) \
            if self.has_table(db, table) else 0

    def found(self, db):
        """The capture in the shape of dump_reader.expectations."""
        return {
            "kernels": self.one(db, "SELECT count(*) FROM kernel"),
            "kernel_names": self.rows(
                db, "SELECT value, count(*) FROM kernel JOIN launch_config c ON c.id = config "
                    "JOIN string s ON s.id = c.name GROUP BY 1"),
            "kernel_ns": self.one(db, "SELECT ifnull(sum(duration), 0) FROM kernel"),
            "kernel_configs": self.one(db, "SELECT count(DISTINCT config) FROM kernel"),
            "graph_kernels": self.one(db, "SELECT count(*) FROM kernel WHERE graph_node NOT NULL"),
            "launching_calls": self.rows(
                db, "SELECT value, count(*) FROM kernel JOIN string s ON s.id = api_name "
                    "WHERE graph_node IS NULL GROUP BY 1"),
            "launches_without_call": self.one(
                db, "SELECT count(*) FROM kernel WHERE api_name IS NULL AND graph_node IS NULL"),
            "launches_called": self.health(db, "launch", "called"),
            "launches_failed": self.health(db, "launch", "failed"),
            "transfers": self.rows(db, "SELECT kind, count(*) FROM transfer GROUP BY 1"),
            "transfer_bytes": self.rows(db, "SELECT kind, sum(bytes) FROM transfer GROUP BY 1"),
            "transfer_memory": self.rows(
                db, "SELECT ifnull(source_kind, 0) || '>' || ifnull(target_kind, 0), count(*) "
                    "FROM transfer GROUP BY 1"),
            "memsets": self.one(db, "SELECT count(*) FROM memset"),
            "memset_bytes": self.one(db, "SELECT ifnull(sum(bytes), 0) FROM memset"),
            "syncs": self.rows(db, "SELECT kind, count(*) FROM sync GROUP BY 1"),
            "allocations": self.one(db, "SELECT count(*) FROM allocation"),
            "allocated_bytes": self.one(db, "SELECT ifnull(sum(bytes), 0) FROM allocation"),
            "frees": self.health(db, "free", "called"),
            "devices": sorted(row[0] for row in db.execute("SELECT name FROM device")),
            "contexts": sorted(row[0] for row in db.execute("SELECT native FROM context")),
            "streams": sorted(
                "%d.%d" % row for row in db.execute(
                    "SELECT c.native, s.native FROM stream s JOIN context c ON c.id = s.context "
                    "WHERE s.id IN (SELECT stream FROM kernel UNION SELECT stream FROM transfer "
                    "UNION SELECT stream FROM memset) OR s.native IN (%s)" %
                    ",".join(str(n) for n in self.told_streams))),
            "graph_nodes": self.later_count(db, "graph_node", "original IS NULL"),
            "graph_clones": self.later_count(db, "graph_node", "original NOT NULL"),
            "whole_graphs": self.later_count(db, "graph_launch"),
            "events": self.later_count(db, "event_record"),
            "overheads": self.later_rows(db, "overhead",
                                         "SELECT kind, count(*) FROM overhead GROUP BY 1"),
            "pools": self.later_rows(db, "memory_pool",
                                     "SELECT operation, count(*) FROM memory_pool "
                                     "WHERE operation < 4 GROUP BY 1"),  # 4: of allocations' records
            "jits": self.later_rows(db, "jit", "SELECT operation, count(*) FROM jit GROUP BY 1"),
            "migrations": self.later_rows(db, "migration",
                                          "SELECT kind, count(*) FROM migration GROUP BY 1"),
        }

    def assert_holds(self, db, expected):
        """Everything of the dump is in the capture, and when the dump lost nothing, nothing is
        missing."""
        self.told_streams = [text.split(".")[1] for text in expected["streams"]] or ["-1"]
        found = self.found(db)
        self.assertEqual(found, {key: expected[key] for key in found})
        if expected["complete"]:
            self.assert_conserved(db)
        else:
            self.assertEqual(self.health(db, "record", "backend_dropped"), expected["dropped"])


def run_side_by_side(processes):
    """Run the program's tests in so many processes, because they wait more than they compute; each
    process has a fake GPU of its own. With names of tests on the command line: as unittest.main."""
    if sys.argv[1:]:
        unittest.main(verbosity=2)
    suites = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    tests = [test for suite in suites for test in suite]
    queue, end = os.pipe()  # a byte is the number of a test; each process takes the next one
    os.write(end, bytes(range(len(tests))))
    os.close(end)
    mine = (tests[number[0]] for number in iter(lambda: os.read(queue, 1), b""))
    children = []
    for _ in range(processes):
        log = tempfile.TemporaryFile("w+")
        child = os.fork()
        if child == 0:
            os.environ["FAKE_CUDA_HOST"] = str(os.getpid())
            runner = unittest.TextTestRunner(log, verbosity=2)
            passed = [runner.run(test).wasSuccessful() for test in mine]
            log.flush()
            os._exit(not all(passed))
        children.append((child, log))
    ended = [(os.waitpid(child, 0)[1], log) for child, log in children]
    for _, log in sorted(ended, key=lambda process: process[0]):  # a failure is what a log ends with
        log.seek(0)
        sys.stderr.write(log.read())
    sys.exit(any(status for status, _ in ended))


def recorded_dumps():
    """(name, dump's path, its expectations) of tests/data."""
    found = []
    for name in sorted(os.listdir(DATA)) if os.path.isdir(DATA) else []:
        if name.endswith(".cuptidump.gz"):
            path = os.path.join(DATA, name)
            with open(path[:-len(".cuptidump.gz")] + ".json") as file:
                found.append((name.split(".")[0], path, json.load(file)))
    return found
