"""Cases for tests of perfkit gate, diff and baseline: captures of a small program with known changes (make_run.c), and the
commands on them."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import schema  # noqa: E402

BUILD = os.path.abspath(os.environ.get("PERFKIT_BUILD", "build/release"))
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PERFKIT = os.path.join(BUILD, "bin", "perfkit")
MAKE_RUN = os.path.join(BUILD, "bin", "gate_make_run")
SCHEMA = schema.read(os.path.join(ROOT, "docs", "reference", "schemas", "gate.json"))
SESSIONS = 10


def environment():
    drop = ("GITHUB_ACTIONS", "COLUMNS")
    return dict({k: v for k, v in os.environ.items() if k not in drop}, NO_COLOR="1", LC_ALL="C")


def content_of(path):
    with open(path, "rb") as file:
        return file.read()


class Case(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp(prefix="perfkit-gate-")
        cls.made = {}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.shared)

    @classmethod
    def capture(cls, seed, *changes):
        """A run, made once."""
        key = (seed,) + changes
        if key not in cls.made:
            path = os.path.join(cls.shared, "-".join(map(str, key)) + ".sqlite")
            subprocess.run([MAKE_RUN, path, str(seed), *changes], check=True)
            cls.made[key] = path
        return cls.made[key]

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="perfkit-gate-")
        self.addCleanup(shutil.rmtree, self.folder)

    def perfkit(self, *words, status=0):
        done = subprocess.run([PERFKIT, *words], cwd=self.folder, env=environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
        self.assertEqual(done.returncode, status,
                         (words, done.stdout.decode(errors="replace")[-3000:],
                          done.stderr.decode(errors="replace")[-3000:]))
        return done

    def refused(self, *words, saying, status=2):
        """One clear line and nothing else."""
        done = self.perfkit(*words, status=status)
        lines = done.stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertIn(saying, lines[0])
        self.assertEqual(done.stdout, b"")
        return lines[0]

    def save(self, name="main", seeds=range(1, SESSIONS + 1), *changes):
        for seed in seeds:
            self.perfkit("baseline", "save", name, self.capture(seed, *changes))

    def with_baseline(self):
        """The common baseline, made once and copied."""
        kept = os.path.join(self.shared, "baselines.sqlite")
        if not os.path.exists(kept):
            self.save()
            shutil.copy(self.path(".perfkit/baselines.sqlite"), kept)
        else:
            os.mkdir(self.path(".perfkit"))
            shutil.copy(kept, self.path(".perfkit/baselines.sqlite"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def candidate(self, *changes, runs=3):
        return [self.capture(seed, *changes) for seed in range(101, 101 + runs)]

    def gate(self, files, *options, status=0):
        done = self.perfkit("gate", "--baseline", "main", "--json", *options, *files, status=status)
        result = json.loads(done.stdout)
        self.assertEqual(list(schema.problems(result, SCHEMA)), [])
        self.assertEqual(result["exit_status"], status)
        return result

    def rows(self, result, **wanted):
        return [row for row in result["rows"]
                if all(row[key] == value for key, value in wanted.items())]

    def failed(self, result):
        return {(row["metric"], row["name"]) for row in self.rows(result, verdict="FAIL")}
