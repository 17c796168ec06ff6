#!/usr/bin/env python3
"""pytest --perfkit-gate: tests that are recorded pass and fail as the gate says, with its sentence; nothing recorded, no baseline and
a test that skips are skips; what fails by itself fails.

    test_pytest.py LIBRARY PACKAGE_FOLDER METADATA_FOLDER PERFKIT WORK_FOLDER"""
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import unittest

library, package, metadata, perfkit, work = [os.path.abspath(a) for a in sys.argv[1:6]]
targets = os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets")
TESTS = """
import os, subprocess, sys, unittest
import pytest
COUNT = int(os.environ.get("COUNT", "20"))

@pytest.fixture
def device():
    import device
    assert "PERFKIT_DIR" in os.environ or not os.environ.get("RECORDED") # the process that is recorded, and no other
    made = device.Device()
    made.write()
    return made

@pytest.mark.perfkit_gate(runs=1)
def test_region(device, perfkit_record):
    device.write(16), device.wait()
    with perfkit_record():
        for _ in range(COUNT):
            device.write(64), device.wait()

@pytest.mark.perfkit_gate(runs=1)
@pytest.mark.parametrize("size", [32, 48])
def test_whole(device, size):
    for _ in range(COUNT if size == 48 else 20):
        device.write(size), device.wait()

def test_command(perfkit_gate):
    perfkit_gate([sys.executable, "-c", "import device; d = device.Device(); [d.write(64) for _ in range(%d)]; d.wait()" % COUNT], runs=1, baseline="command")

@pytest.mark.perfkit_gate
def test_nothing():
    pass

@pytest.mark.perfkit_gate
def test_skips():
    pytest.skip("the model is not here")

@pytest.mark.perfkit_gate
def test_breaks():
    assert "PERFKIT_DIR" not in os.environ

def test_ordinary():
    pass
"""


def run(*words, **environment):
    """{test: outcome}, and what pytest printed."""
    done = subprocess.run([sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-v", "-rA", *words], cwd=work, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=dict(os.environ, **environment))
    return dict(re.findall(r"^test_gpu.py::(\S+) (PASSED|FAILED|SKIPPED|ERROR)", done.stdout, re.M)), done.stdout


def setUpModule():
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    with open(os.path.join(work, "test_gpu.py"), "w", encoding="utf-8") as file:
        file.write(TESTS)
    for name in ("PYTEST_ADDOPTS", "COUNT", "GITHUB_RUN_ID", "CI_JOB_ID", "PERFKIT_DIR"):
        os.environ.pop(name, None)
    os.environ.update(PERFKIT=perfkit, PERFKIT_LIBPROF=library, PYTHONPATH=os.pathsep.join([package, metadata, targets]), TMPDIR=work)


class Gate(unittest.TestCase):
    def test_from_the_first_baseline_to_a_regression(self):
        gpu = {"test_region", "test_whole[32]", "test_whole[48]", "test_command"}
        outcomes, text = run()
        self.assertEqual({name for name, outcome in outcomes.items() if outcome == "PASSED"}, gpu | {"test_nothing", "test_breaks", "test_ordinary"}, text)
        outcomes, text = run("--perfkit-save", "--junit-xml=saved.xml", RECORDED="1")
        same = {"test_nothing": "SKIPPED", "test_skips": "SKIPPED", "test_breaks": "FAILED", "test_ordinary": "PASSED"}
        self.assertEqual(outcomes, {**{name: "PASSED" for name in gpu}, **same}, text)
        self.assertIn("nothing was recorded: the test used no GPU", text)
        self.assertIn("the model is not here", text)
        with open(os.path.join(work, "saved.xml"), encoding="utf-8") as file:
            self.assertIn("saved 1 run in baseline 'test_gpu.py::test_region'", file.read().replace("&apos;", "'"))

        outcomes, text = run("--perfkit-keep=kept", "-k", "region or command or breaks", RECORDED="1", PYTEST_ADDOPTS="--perfkit-gate")
        self.assertEqual(outcomes, {"test_region": "PASSED", "test_command": "PASSED", "test_breaks": "FAILED"}, text)
        self.assertRegex(text, r"\ntest_gpu.py::test_command: [A-Z]+: .*; with --strict the exit status is 4")  # the gate breaks this line
        self.assertIn("test_gpu.py-test_region-1.sqlite", os.listdir(os.path.join(work, "kept")))

        outcomes, text = run("--perfkit-gate", "-k", "region or 48 or command", RECORDED="1", COUNT="22")
        self.assertEqual(outcomes, {"test_region": "FAILED", "test_whole[48]": "FAILED", "test_command": "FAILED"}, text)
        self.assertGreaterEqual(len(re.findall(r"^ +20 -> 22 \(\+2\)$", text, re.M)), 3, text)
        self.assertIn("copies HtoD in perfkit_region", text)
        self.assertRegex(text, r"test_gpu.py::test_region: FAIL: [0-9]+ of [0-9]+ gated metrics are worse")

    def test_where_it_cannot_record(self):
        outcomes, text = run("--perfkit-gate", "-k", "region or command", PERFKIT="/nowhere/perfkit")
        self.assertEqual(set(outcomes.values()), {"SKIPPED"}, text)
        self.assertIn("there is no such command", text)

    def test_the_plugin_alone_imports_little(self):
        program = "import sys, perfkit_pytest; print([name for name in ('numpy', 'perfkit', 'sqlite3') if name in sys.modules])"
        self.assertEqual(subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True).stdout, "[]\n")

    def test_wrong_use(self):
        self.assertIn("give one of them", run("--perfkit-gate", "--perfkit-save")[1])
        with open(os.path.join(work, "test_old.py"), "w", encoding="utf-8") as file:
            file.write("import unittest, pytest\nclass Old(unittest.TestCase):\n    @pytest.mark.perfkit_gate\n    def test_a(self): pass\n")
        self.assertIn("perfkit_gate needs a test function, not one of unittest", run("test_old.py", "--perfkit-gate")[1])

    def test_wrong_settings(self):
        """Of the marker: an error of usage before anything runs. Of the fixture: that test fails. Neither says Traceback."""
        wrong = {"runs=0": "runs=0: must be a whole number from 1 to 1000", "runs=-3": "runs=-3: must be", "runs='5'": "runs='5': must be",
                 "runs=10**30": "must be a whole number from 1 to 1000", "runs=True": "runs=True: must be", "runs=None": "runs=None: must be",
                 "runs=2.5": "runs=2.5: must be", "skip=-1": "skip=-1: must be a whole number from 0 to", "skip='x'": "skip='x': must be",
                 "options='--stacks'": "options='--stacks': must be a list", "options=[1]": "options=[1]: must be a list",
                 "iteration=''": "iteration='': must be a name", "baseline=7": "baseline=7: must be a name",
                 "baseline='a' + chr(0)": "must be a name", "times=3": "no such setting: times; there are baseline, "}
        source, calls = os.path.join(work, "test_settings.py"), []
        for number, setting in enumerate(wrong):
            calls.append(f"def test_{number}(perfkit_gate):\n    perfkit_gate(['true'], {setting})\n")
        with open(source, "w", encoding="utf-8") as file:
            file.write("".join(calls))
        text = run("test_settings.py", "--perfkit-gate")[1]
        self.assertIn(f"{len(wrong)} failed", text)
        for sentence in wrong.values():
            self.assertIn("perfkit_gate: " + sentence if "=" in sentence else sentence, text)
        self.assertNotIn("Traceback", text)
        for setting in ("runs=0", "times=3", "5"):
            with open(source, "w", encoding="utf-8") as file:
                file.write(f"import pytest\n@pytest.mark.perfkit_gate({setting})\ndef test_a(): pass\n")
            text = run("test_settings.py", "--perfkit-gate")[1]
            self.assertIn("perfkit_gate: " + wrong.get(setting, "settings need their names, as runs=5"), text)
            self.assertRegex(text, "(?m)^ERROR: ")
            self.assertNotIn("Traceback", text)


if __name__ == "__main__":
    if not importlib.util.find_spec("pytest"):
        print(f"SKIP: {sys.executable} has no pytest")
        sys.exit(77)
    sys.path.insert(0, targets)
    import device
    try:
        device.Device()
    except SystemExit:
        print("SKIP: no OpenCL device")
        raise
    unittest.main(argv=sys.argv[:1], verbosity=2)
