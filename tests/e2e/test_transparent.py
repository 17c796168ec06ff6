"""Transparency with the collector at work: what tests/cli shows for programs without events holds for
programs that have them, and a program that asks OpenCL everything gets the same answers."""
import os
import resource
import shutil
import signal
import unittest

import e2e

# Of the signals that end a program by default, those that a test may send.
DEADLY = ("HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
          "PIPE", "ALRM", "TERM", "XCPU", "XFSZ", "VTALRM", "PROF", "IO", "SYS")
OURS = {"PERFKIT_DIR", "PERFKIT_OPTIONS", "LD_PRELOAD", "OPENCL_LAYERS", "CUDA_INJECTION64_PATH",
        "NVTX_INJECTION64_PATH"}


def no_core():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Transparent(e2e.Case):
    def same(self, *command, **more):
        bare = self.plain(command, preexec_fn=no_core, **more)
        under = self.record(*command, status=None, options=["-f"], preexec_fn=no_core, **more)
        self.captures = 0
        self.assertEqual(under.out, bare.out)
        self.assertEqual(under.err, bare.err)
        self.assertEqual(under.status, bare.status)
        return under

    def test_every_exit_status(self):
        for status in range(256):
            under = self.same(e2e.target("records"), "--nvtx", 1, "--count", 3, "--status", status)
            self.assertEqual(under.status, status)
        db = self.open(under.capture)
        self.assertEqual(self.one(db, "SELECT count(*) FROM marker"), 3)

    def test_every_deadly_signal(self):
        for name in DEADLY:
            number = getattr(signal, "SIG" + name)
            under = self.same("sh", "-c", '"$@" && echo out && echo err >&2 && kill -%s $$' % name,
                              "sh", e2e.target("records"), "--nvtx", 1, "--count", 3)
            self.assertEqual(under.status, -number)
            db = self.open(under.capture)
            self.assertEqual(self.one(db, "SELECT exit_status, exit_signal FROM capture"),
                             (None, number))
            self.assertEqual(self.one(db, "SELECT count(*) FROM marker"), 3)

    def test_environment(self):
        lines = lambda result: dict(line.split("=", 1) for line in result.out.decode().splitlines()
                                    if "=" in line)
        odd = e2e.clean_environment(ODD="a=b", EMPTY="")
        bare = lines(self.plain(["env"], env=odd))
        under = lines(self.record("env", env=odd))
        for variables in (bare, under):
            variables.pop("_", None)
        self.assertEqual({key for key in under if under[key] != bare.get(key)} - OURS, set())
        self.assertEqual(set(bare) - set(under), set())

    def test_streams_and_folder(self):
        data = os.urandom(300000)
        with open(self.path("data"), "wb") as file:
            file.write(data)
        line = ("sh", "-c", '"$@"; cat; pwd; ls -l /proc/self/fd | wc -l', "sh",
                e2e.target("records"), "--nvtx", 1, "--count", 3)
        with open(self.path("data"), "rb") as file:
            bare = self.plain(line, stdin=file)
        with open(self.path("data"), "rb") as file:
            under = self.record(*line, stdin=file)
        self.assertEqual(under.out, bare.out)
        self.assertEqual(under.out[:len(data)], data)

    @e2e.needs_opencl
    def test_own_event_profiling(self):
        """Everything by which a program could notice a layer: queue properties, reference counts,
        profiling calls with and without having asked for them, callbacks, their order."""
        for arguments in ((), ("--profile", 1), ("--order", "out"),
                          ("--profile", 1, "--order", "out")):
            with self.subTest(arguments=arguments):
                self.same(e2e.opencl_target("curious"), *arguments)

    @e2e.needs_opencl
    @unittest.skipUnless(shutil.which("clinfo"), "no clinfo")
    def test_clinfo(self):
        self.same("clinfo", "--raw")

    @e2e.needs_opencl
    def test_counts(self):
        for arguments in (("--threads", 1), ("--threads", 8, "--order", "out", "--gate", 1)):
            self.same(e2e.opencl_target("exact"), *arguments, "--json", "-")


if __name__ == "__main__":
    e2e.main()
