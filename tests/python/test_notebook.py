#!/usr/bin/env python3
"""The example notebook: its cells run on two small captures of an H200 and say what SQL on the files says, with matplotlib and without;
the page in docs has the same cells.

    test_notebook.py LIBRARY SOURCE_FOLDER WORK_FOLDER"""
import importlib.util
import json
import lzma
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import unittest

library, source, work = [os.path.abspath(a) for a in sys.argv[1:4]]
NOTEBOOK, PAGE = os.path.join(source, "examples/notebook/capture.ipynb"), os.path.join(source, "docs/examples/notebook.md")
CAPTURES = [os.path.join(work, f"{name}.sqlite") for name in ("bad", "fixed")]


def setUpModule():
    os.makedirs(work, exist_ok=True)
    for path in CAPTURES:
        form = os.path.basename(path).split(".")[0]
        with lzma.open(os.path.join(source, f"tests/data/unseen/s_loader.{form}.1.sqlite.xz")) as packed, open(path, "wb") as file:
            file.write(packed.read())


def run(page, before=""):
    """The page that scripts/notebook.py makes; `before`: Python that runs first."""
    program = f"{before}\nimport runpy, sys\nsys.argv = ['notebook.py', {NOTEBOOK!r}, {page!r}]\nrunpy.run_path({source + '/scripts/notebook.py'!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, check=False, cwd=work, env=dict(
        os.environ, PERFKIT_LIBPROF=library, PYTHONPATH=os.path.join(source, "python"), CAPTURE=CAPTURES[0], CAPTURE_AFTER=CAPTURES[1]))
    if done.returncode:
        raise AssertionError(done.stderr)
    with open(page, encoding="utf-8") as file:
        return file.read()


class Notebook(unittest.TestCase):
    def test_cells_run_and_agree_with_sql(self):
        page = run(os.path.join(work, "page.md"))
        for path in CAPTURES:
            times = [row[0] / 1e6 for row in sqlite3.connect(path).execute(
                "SELECT duration FROM range JOIN string ON string.id = name WHERE value = 'step' ORDER BY start")][-3:]
            self.assertAlmostEqual(statistics.median(times), float(re.search(r"median iteration: ([0-9.]+) ms -> ([0-9.]+) ms", page).group(
                1 + CAPTURES.index(path))), delta=0.5)
        count, total = sqlite3.connect(CAPTURES[0]).execute("SELECT count(*), sum(bytes) FROM transfer WHERE kind = 1").fetchone()
        rows = [(int(n), float(size)) for n, size in re.findall(r"HtoD +\w+ +device +(\d+) +([0-9.]+)", page)]
        self.assertEqual(sum(row[0] for row in rows), count)
        self.assertAlmostEqual(sum(row[1] for row in rows), total / 1048576, delta=0.02)
        self.assertRegex(page, r"host-starvation +critical")
        if importlib.util.find_spec("matplotlib"):
            self.assertIn("](page-1.png)", page)
            self.assertGreater(os.path.getsize(os.path.join(work, "page-1.png")), 5000)

    def test_without_matplotlib(self):
        page = run(os.path.join(work, "plain.md"), "import sys\nsys.modules['matplotlib'] = None")
        self.assertNotIn("![", page)
        self.assertIn("median iteration: ", page)

    def test_the_page_has_its_cells(self):
        with open(PAGE, encoding="utf-8") as file:
            page = file.read()
        with open(NOTEBOOK, encoding="utf-8") as file:
            cells = json.load(file)["cells"]
        self.assertGreater(len(cells), 10)
        for cell in cells:
            self.assertIn("".join(cell["source"]) + "\n", page)
            self.assertFalse(cell.get("outputs"), "results belong to the page")


if __name__ == "__main__":
    for module in ("numpy", "pandas"):
        if not importlib.util.find_spec(module):
            print(f"SKIP: {sys.executable} has no {module}")
            sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
