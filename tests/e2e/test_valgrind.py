"""The command under valgrind: no error and no definite leak."""
import os
import shutil
import unittest

import e2e

VALGRIND = shutil.which("valgrind")
ERRORS = 99


@unittest.skipUnless(VALGRIND, "no valgrind")
class Valgrind(e2e.Case):
    def check(self, *words, status=0, **more):
        log = self.path("valgrind.log")
        result = self.plain([VALGRIND, "--quiet", "--error-exitcode=%d" % ERRORS, "--leak-check=full",
                             "--errors-for-leak-kinds=definite", "--show-leak-kinds=definite",
                             "--log-file=" + log, e2e.PERFKIT,
                             *words], **more)
        with open(log, errors="replace") as file:
            # "--PID--" lines are about valgrind: a system call that it does not know yet
            complaints = "".join(line for line in file if not line.startswith("--"))
        if "unhandled instruction" in complaints or "Fatal error at startup" in complaints:
            self.skipTest("valgrind does not run programs here")
        self.assertEqual(result.status, status, complaints or result.err)
        self.assertEqual(complaints.strip(), "")
        return result

    def test_words(self):
        self.check("version")
        self.check("help")
        self.check("help", "run")
        self.check("report", "--help")
        self.check("nonsense", status=2)

    def test_report(self):
        way = ("kernels" if e2e.has_opencl() else "file")
        with open(self.path("names"), "wb") as file:
            file.write(b"one\0two; <three>\0bad \xff\0")
        capture = self.record(e2e.target("names"), way, self.path("names")).capture
        for option in ("text", "json", "csv", "markdown"):
            self.check("report", "--format", option, capture)
        self.check("report", "--html", self.path("o.html"), "--chrome-trace", self.path("o.json"),
                   "--flamegraph", self.path("o.txt"), capture)
        with open(capture, "r+b") as file:
            file.truncate(100000)
        self.check("report", capture, status=2)

    def test_run_and_recover(self):
        """perfkit itself; what it starts is not looked at."""
        capture = self.path("a.sqlite")
        self.check("run", "-q", "-o", capture, "--spool-dir=" + self.spools, "--",
                   e2e.target("names"), "ranges", "2", "50")
        self.assert_conserved(self.open(capture))
        self.check("recover", self.folder, status=1)

    def test_recover(self):
        e2e.become_subreaper()
        progress = e2e.make_progress(self.path("progress"))
        process = self.start(e2e.target("records"), "--nvtx", 2, "--count", 2000, "--pause", 2000,
                             "--progress", progress)
        e2e.wait_until(lambda: any(n > 200 for n in e2e.read_progress(progress)[1]))
        process.kill()
        process.wait()
        e2e.reap_orphans()
        folder, = self.spool_folders()
        self.check("recover", "-q", folder)
        db = self.open(process.capture, ("recovered",))
        self.assert_all_recorded(db, e2e.read_progress(progress))


if __name__ == "__main__":
    e2e.main()
