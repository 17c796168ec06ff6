"""Wrappers that take the collector's way in: the variables that bring it into a program set anew by
what the program is started with, a path of the collector that they cannot carry, a spool folder that
the program cannot see. What can be recorded is; of what cannot, the capture says so everywhere."""
import json
import os
import shutil
import subprocess

import e2e

COUNT = 500
MARKS = "SELECT count(*) FROM marker"
FILLS = "SELECT count(*) FROM memset"
LIBRARY = os.path.join(e2e.BUILD, "lib", "libperfkit_collector.so")


class Wrappers(e2e.Case):
    def wrapped(self, *wrapper, options=(), pause=0, env=None):
        """Record marks and fills behind a wrapper; the program's status is its own."""
        self.opencl = e2e.has_opencl()
        command = [*wrapper, e2e.target("records"), "--nvtx", "1", "--opencl", str(int(self.opencl)),
                   "--count", str(COUNT), "--pause", str(pause), "--status", "7"]
        result = self.record(*command, status=7, options=options, env=env or e2e.clean_environment())
        self.capture = result.capture
        self.db = self.open(result.capture)

    def counts(self):
        return self.one(self.db, MARKS), self.one(self.db, FILLS)

    def everything(self):
        return COUNT, COUNT if self.opencl else 0

    def trust(self):
        return json.loads(self.perfkit("report", "--json", self.capture).out)["trust"]

    def assert_said(self, words):
        trust = self.trust()
        self.assertFalse(trust["complete"])
        self.assertTrue([s for s in trust["statements"] if words in s["text"]], trust["statements"])
        self.assertIn(b"INCOMPLETE", self.perfkit("report", self.capture).out)
        saved = self.perfkit("baseline", "save", "main", self.capture)
        self.assertEqual(saved.status, 3, saved.err)

    def test_opencl_layers(self):
        """A list: ours joins."""
        shell = ["sh", "-c", 'OPENCL_LAYERS=/x.so "$@"; exit $?', "sh"]
        for wrapper in (["env", "OPENCL_LAYERS=/x.so"], ["env", "OPENCL_LAYERS="], shell,
                        ["env", "-i", "OPENCL_LAYERS=/x.so:/y.so"], [*shell, "env", "A=1", *shell]):
            with self.subTest(wrapper):
                self.wrapped(*wrapper)
                self.assertEqual(self.counts(), self.everything())
                self.assertTrue(self.trust()["complete"])

    def test_nvtx_path(self):
        """One path: the program's stays, and the capture is not complete."""
        for wrapper in (["env", "NVTX_INJECTION64_PATH=/x.so"],
                        ["sh", "-c", 'NVTX_INJECTION64_PATH=/x.so "$@"; exit $?', "sh"]):
            with self.subTest(wrapper):
                self.wrapped(*wrapper)
                self.assertEqual(self.counts(), (0, self.everything()[1]))
                self.assert_said("NVTX_INJECTION64_PATH was set to another value")

    def test_without_preload(self):
        """Nothing of ours is in the program to say it; perfkit sees what /proc shows."""
        self.wrapped("env", "OPENCL_LAYERS=/x.so", "NVTX_INJECTION64_PATH=/x.so", pause=40000,
                     options=["--no-preload"])
        self.assertEqual(self.counts(), (0, 0))
        self.assert_said("NVTX_INJECTION64_PATH was set to another value")
        self.assert_said("OPENCL_LAYERS was set to another value")

    def test_last_line(self):
        done = self.plain([e2e.PERFKIT, "run", "-o", self.path("a.sqlite"), "--", "env",
                           "NVTX_INJECTION64_PATH=/x.so", e2e.target("records"), "--count", "1"])
        self.assertIn(b"INCOMPLETE: process", done.err)
        self.assertIn(b"NVTX_INJECTION64_PATH was set to another value inside the run", done.err)

    def test_path_of_the_collector(self):
        """What LD_PRELOAD, OPENCL_LAYERS or dlopen would take apart or expand."""
        for name in ("a b", "a:b", "$ORIGIN", "a $LIB:b"):
            with self.subTest(name):
                folder = self.path(name)
                os.mkdir(folder)
                library = shutil.copy(LIBRARY, folder)
                self.wrapped(env=e2e.clean_environment(PERFKIT_COLLECTOR=library))
                self.assertEqual(self.counts(), self.everything())
                self.assertTrue(self.trust()["complete"])
                self.assertEqual(self.one(self.db, "SELECT end_reason FROM process"), "exit")

    def test_hidden_spool_folder(self):
        """Of an unshared mount namespace (containers, bwrap) and another root folder."""
        for how in ('mount -t tmpfs none "$0" && exec "$@"', 'mount -t tmpfs none "$0"; "$@"; exit $?',
                    'mount -t tmpfs none "$0"; env "$@"; exit $?'):
            command = ["unshare", "-m", "sh", "-c", how, self.spools]
            if subprocess.run([*command, "true"], stderr=subprocess.DEVNULL).returncode:
                self.skipTest("mounting is not permitted here")
            with self.subTest(how):
                self.wrapped(*command)
                self.assertEqual(self.counts(), (0, 0))
                self.assert_said("cannot reach the spool folder")

    @e2e.unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "not root, or no setpriv")
    def test_another_user(self):
        """It becomes one and keeps its capabilities until it executes the next program."""
        program = shutil.copy(e2e.target("records"), "/tmp/perfkit-e2e-records-%d" % os.getpid())
        self.addCleanup(os.unlink, program)
        result = self.record("setpriv", "--reuid", "1234", "--clear-groups", program, "--nvtx", "1",
                             "--count", "10", "--status", "7", status=7)
        self.capture = result.capture
        self.assertEqual(self.one(self.open(result.capture), MARKS), 0)
        self.assert_said("cannot reach the spool folder")

    @e2e.unittest.skipUnless(shutil.which("bwrap"), "no bwrap")
    def test_bwrap(self):
        command = ["bwrap", "--dev-bind", "/", "/", "--tmpfs", self.spools]
        if subprocess.run([*command, "true"], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("bwrap is not permitted here")
        self.wrapped(*command)
        self.assertEqual(self.counts(), (0, 0))
        self.assert_said("cannot reach the spool folder")


if __name__ == "__main__":
    e2e.main()
