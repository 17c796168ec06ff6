"""By environment alone: CUDA, NVTX and OpenCL are recorded without LD_PRELOAD, which carries the
process lifecycle only."""
import json
import os
import unittest

import e2e

FAKES = os.path.join(e2e.BUILD, "tests", "cuda", "fakes")
CUDA_PROGRAM = os.path.join(e2e.BUILD, "bin", "cuda_program")
HAS_CUDA_FAKES = os.path.exists(CUDA_PROGRAM) and os.path.exists(os.path.join(FAKES, "libcuda.so.1"))


class Alone(e2e.Case):
    def alone(self, *command, **more):
        result = self.record(*command, options=["--no-preload"], **more)
        db = self.open(result.capture)
        self.assert_conserved(db)
        self.assertEqual(self.one(db, "SELECT count(*) FROM capture_health WHERE subject = 'end' AND "
                                      "item = 'signal'"), 0)
        return result, db

    def test_nothing_is_preloaded(self):
        result = self.record("env", options=["--no-preload"])
        self.assertNotIn(b"LD_PRELOAD", result.out)
        result = self.record("env", options=["--no-preload"],
                             env=e2e.clean_environment(LD_PRELOAD="/nonexistent/own.so"),
                             quiet=False)
        self.assertIn(b"LD_PRELOAD=/nonexistent/own.so\n", result.out)

    def test_nvtx(self):
        result, db = self.alone(e2e.target("names"), "ranges", 4, 100)
        self.assertEqual(self.one(db, "SELECT count(*) FROM range"), 4 * 100 * 5 + 2 * 4)
        self.assertEqual(self.one(db, "SELECT count(*) FROM marker"), 4 * 100 * 3)
        self.assertEqual(db.execute("SELECT end_reason, exit_status FROM process").fetchall(),
                         [("exit", 0)])  # the library's own destructor saw it

    @e2e.needs_opencl
    def test_opencl(self):
        result, db = self.alone(e2e.opencl_target("exact"), "--threads", 4, "--rounds", 4, "--json",
                                "-")
        did = json.loads(result.out)
        self.assertEqual(self.one(db, "SELECT count(*) FROM kernel"), did["launch"] + did["native"])
        self.assertEqual(self.one(db, "SELECT count(*) FROM memset"), did["fill"])
        self.assertEqual(self.one(db, "SELECT count(*), count(end) FROM allocation"),
                         (did["alloc"], did["freed"]))
        self.assertEqual(self.one(db, "SELECT sum(bytes) FROM allocation WHERE end IS NULL"),
                         did["leak_bytes"])

    @unittest.skipUnless(HAS_CUDA_FAKES, "built without the CUDA collector")
    def test_cuda(self):
        result, db = self.alone(CUDA_PROGRAM, "basic",
                                env=e2e.clean_environment(LD_LIBRARY_PATH=FAKES))
        self.assertEqual(
            db.execute("SELECT value, count(*) FROM kernel JOIN launch_config c ON c.id = config JOIN "
                       "string ON string.id = c.name GROUP BY 1 ORDER BY 1").fetchall(),
            [("_Z3addPfi", 500), ("_Z3mulPfi", 500)])
        self.assertEqual(
            [(self.health(db, what, "called"), self.health(db, what, "recorded"),
              self.health(db, what, "failed")) for what in ("launch", "transfer", "memset",
                                                            "allocation", "free")],
            [(1001, 1000, 1), (3, 3, 0), (2, 2, 0), (2, 2, 0), (1, 1, 0)])
        self.assertEqual(self.one(db, "SELECT count(*) FROM device WHERE api = 'cuda'") > 0, True)

    @unittest.skipUnless(HAS_CUDA_FAKES, "built without the CUDA collector")
    def test_cuda_deaths(self):
        """The program lives on for some ticks of the collector and then dies without a word."""
        for end, status in (("kill", -9), ("_exit", 0), ("abort", -6)):
            for options in ([], ["--no-preload"]):
                with self.subTest(end=end, options=options):
                    result = self.record(
                        CUDA_PROGRAM, "basic", end, options=options, status=status,
                        env=e2e.clean_environment(LD_LIBRARY_PATH=FAKES),
                        preexec_fn=lambda: __import__("resource").setrlimit(
                            __import__("resource").RLIMIT_CORE, (0, 0)))
                    db = self.open(result.capture)
                    if end != "_exit" or not options:
                        self.assert_conserved(db)
                        self.assertEqual(self.one(db, "SELECT count(*) FROM kernel"), 1000)
                    self.assertEqual(
                        self.one(db, "SELECT exit_status, exit_signal FROM process"),
                        (status, None) if status >= 0 else (None, -status))

    def test_processes(self):
        """Without preload a process is known from its first event; the command itself always."""
        result, db = self.alone("sh", "-c", "%s reuse 5; %s reuse 5; true" % (
            (e2e.target("names"),) * 2))
        self.assertEqual(self.one(db, "SELECT count(*) FROM process WHERE spool NOT NULL"), 2)
        self.assertEqual(self.one(db, "SELECT exit_status FROM capture"), 0)
        self.assertEqual(self.one(db, "SELECT count(*) FROM marker"), 10)


if __name__ == "__main__":
    e2e.main()
