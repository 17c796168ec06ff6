"""What the tests of perfkit import share: the program, its captures, and a base that finds nothing left behind.

    test_import*.py PERFKIT REPORT_TOOL REPORT_SCENES WORK_FOLDER
"""
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from scenes import make

perfkit, tool, report_scenes, work = [os.path.abspath(a) for a in sys.argv[1:5]]
shutil.rmtree(work, ignore_errors=True)
# Two hundred small files are synced to disk here: in memory that takes no time.
if os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 256 << 20:
    work = tempfile.mkdtemp(prefix="perfkit-import-", dir="/dev/shm")
    atexit.register(shutil.rmtree, work, ignore_errors=True)
CAPTURES = make(tool, work, report_scenes)


def path_of(name):
    return os.path.join(work, name)


def run(*arguments):
    return subprocess.run([perfkit, *arguments], capture_output=True, text=True, errors="replace", check=False)


def import_file(path, name="out.sqlite", *options):
    out = path_of(name)
    done = run("import", path, "-o", out, "--force", *options)
    assert done.returncode == 0, done.stderr
    return out


def report(capture):
    done = subprocess.run([perfkit, "report", capture, "--format", "json"], capture_output=True, check=True)
    return json.loads(done.stdout.decode("utf-8", "replace"))


with open(path_of("probe.json"), "w", encoding="ascii") as probe:
    probe.write('{"traceEvents": []}')
HAS_JSON = "without yajl" not in run("import", path_of("probe.json"), "-o", path_of("probe.sqlite")).stderr


class NothingLeft(unittest.TestCase):
    """Base: a failed import says one line with the place, exits with 2, and leaves no file."""

    def refused(self, path, *words, status=2):
        out = path_of("refused.sqlite")
        before = set(os.listdir(work))
        done = run("import", path, "-o", out)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(set(os.listdir(work)), before)
