"""What the checks on a real GPU share: recording a program, reading its capture, and a report of
lines `ok|FAIL name: detail` that one failure does not end. Needs only python3."""
import argparse
import collections
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import traceback

CLASSES = "kind NOT IN (6, 7)"  # of allocations: without the variables of modules
Check = collections.namedtuple("Check", "name seconds run")


class Skip(Exception):
    """A check that this machine cannot make."""


class Report:
    """Lines on stdout, and the same as JSON at the end."""

    def __init__(self, brief=False):
        self.brief = brief
        self.lines = []
        self.group = ""
        self.seconds = {}

    def _add(self, state, name, detail):
        name = f"{self.group}: {name}" if self.group else name
        self.lines.append({"state": state, "name": name, "detail": detail})
        if state == "FAIL" or not self.brief:
            text = str(detail)[:600] if self.brief else detail
            print(f"{state:<8}{name}: {text}", flush=True)

    def equal(self, name, got, expected):
        if got == expected:
            self._add("ok", name, got)
        else:
            self._add("FAIL", name, f"{got}, expected {expected}{difference(got, expected)}")

    def true(self, name, good, detail=""):
        self._add("ok" if good else "FAIL", name, detail)

    def observed(self, name, value):
        self._add("saw", name, value)

    def skipped(self, name, why):
        self._add("skip", name, why)

    def failures(self):
        return sum(line["state"] == "FAIL" for line in self.lines)

    def checks(self):
        return sum(line["state"] in ("ok", "FAIL") for line in self.lines)


def difference(got, expected):
    """What differs between two tables, when both are long."""
    if not (isinstance(got, dict) and isinstance(expected, dict)) or len(expected) < 4:
        return ""
    differs = {key: (got.get(key), expected.get(key)) for key in {**got, **expected}
               if got.get(key) != expected.get(key)}
    return f"; differs (got, expected): {dict(list(differs.items())[:20])}"


class Result:
    """How a recorded program ended. A signal is a negative status, as in subprocess."""

    def __init__(self, status, out, err, capture):
        self.status, self.out, self.err, self.capture = status, out, err, capture


def run(command, timeout, **more):
    """A command in a process group of its own, all of which ends with it at a time-out."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", start_new_session=True, **more) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
        return process.returncode, out, err


class Recorder:
    """`perfkit run` of one build; captures go to a folder."""

    def __init__(self, build_bin, folder):
        self.bin, self.folder = build_bin, folder
        self._help = None

    def has_option(self, option):
        if self._help is None:
            self._help = run([f"{self.bin}/perfkit", "run", "--help"], 20)[1]
        return option.split("=")[0] in self._help

    def line(self, name, options, command):
        """(command line, path of the capture); Skip when this perfkit lacks an option."""
        for option in options:
            if option.startswith("--") and not self.has_option(option):
                raise Skip(f"this perfkit has no {option.split('=')[0]}")
        path = os.path.join(self.folder, name + ".sqlite")
        return [f"{self.bin}/perfkit", "run", "--quiet", "--force", *options, "-o", path, "--",
                *command], path

    def record(self, name, command, options=(), timeout=300, **more):
        words, path = self.line(name, options, command)
        status, out, err = run(words, timeout, **more)
        if not os.path.exists(path):
            raise AssertionError(f"no capture; status {status}, stderr: {err[-800:]}")
        return Result(status, out, err, Capture(path))


class Capture:
    """A capture file, read with plain SQL."""

    def __init__(self, path):
        self.path = path
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.db.text_factory = lambda raw: raw.decode("utf-8", "replace")
        self.tables = {row[0] for row in self.rows("SELECT name FROM sqlite_master")}

    def rows(self, sql, *values):
        return self.db.execute(sql, values).fetchall()

    def one(self, sql, *values):
        return self.rows(sql, *values)[0][0]

    def table(self, sql, *values):
        """{first column: second column, or the rest as a list}"""
        return {str(row[0]): row[1] if len(row) == 2 else list(row[1:])
                for row in self.rows(sql, *values)}

    def count(self, table, where="1"):
        return self.one(f"SELECT count(*) FROM {table} WHERE {where}") if table in self.tables else 0

    def kernels(self, where="1"):
        """{readable name: executions}"""
        return self.table(
            "SELECT s.value, sum(n) FROM (SELECT config, count(*) AS n FROM kernel k WHERE "
            f"{where} GROUP BY config) JOIN launch_config c ON c.id=config JOIN string s ON "
            "s.id=coalesce(c.demangled, c.name) GROUP BY 1")

    def calls(self):
        return self.table("SELECT s.value, count(*) FROM api_all a JOIN string s ON s.id=a.name "
                          "GROUP BY 1")

    def ranges(self):
        return self.table("SELECT s.value, count(*) FROM range r JOIN string s ON s.id=r.name "
                          "GROUP BY 1")

    def health(self, subject):
        return dict(self.rows("SELECT item, sum(value) FROM capture_health WHERE subject=? AND "
                              "value NOT NULL GROUP BY item", subject))

    def statements(self):
        return [" ".join(str(word) for word in row if word is not None) for row in self.rows(
            "SELECT subject, item, value, note FROM capture_health WHERE note NOT NULL")]

    def start_mono(self):
        return self.one("SELECT start_mono_ns FROM capture")


def trusted(report, capture, outstanding=True):
    """The trust block closes: nothing left over, nothing dropped."""
    for subject in ("launch", "transfer", "memset", "allocation", "range"):
        got = capture.health(subject)
        report.equal(f"{subject} remainder", got.get("remainder", 0), 0)
        if outstanding:
            report.equal(f"{subject} outstanding", got.get("outstanding", 0), 0)
    dropped = capture.rows("SELECT subject, item, value FROM capture_health WHERE value<>0 AND item "
                           "IN ('dropped', 'backend_dropped', 'definitions_dropped', 'damaged')")
    report.equal("dropped", dropped, [])
    report.equal("integrity", capture.one("PRAGMA quick_check"), "ok")


def well_timed(report, db):
    report.equal("kernels without times",
                 db.count("kernel", "start IS NULL OR duration IS NULL"), 0)
    report.equal("kernels that start before their call", db.count("kernel", "api_lead < 0"), 0)


def recorded(recorder, name, program, *arguments, options=(), **more):
    return recorder.record(name, [f"{recorder.bin}/{program}", *map(str, arguments)], options, **more)


def did(report, result):
    """What the program says it did; None when it failed."""
    report.equal("exit status", result.status, 0)
    if result.status != 0:
        report.observed("stderr", result.err[-500:])
        return None
    return json.loads(result.out)


def main(checks, about, prepare):
    """Run the checks. prepare(arguments) returns what each is called with after the report."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("place", help="the build folder's bin")
    parser.add_argument("out", help="folder for the captures and results.json")
    parser.add_argument("--only", help="names of checks, or their beginnings, comma separated")
    parser.add_argument("--budget", type=float, help="start no check that would end after so many "
                                                     "seconds")
    parser.add_argument("--brief", action="store_true", help="print failures only; results.json has "
                                                             "the rest")
    parser.add_argument("--list", action="store_true", help="print the checks and their seconds")
    arguments = parser.parse_args()
    if arguments.list:
        for check in checks:
            print(f"{check.name:<28}{check.seconds:>6} s")
        return 0
    only = arguments.only.split(",") if arguments.only else [""]
    chosen = [check for check in checks if any(check.name.startswith(word) for word in only)]
    if not chosen:
        print(f"no check is called {arguments.only}: see --list", file=sys.stderr)
        return 2
    os.makedirs(arguments.out, exist_ok=True)
    report, begin = Report(arguments.brief), time.monotonic()
    context = prepare(arguments)
    for check in chosen:
        start = time.monotonic()
        report.group = check.name
        if arguments.budget and start - begin + check.seconds > arguments.budget:
            report.skipped("all", f"needs {check.seconds} s, {arguments.budget:.0f} s are allowed")
            continue
        try:
            check.run(report, context)
        except Skip as why:
            report.skipped("all", str(why))
        except Exception as error:  # one failure does not end the rest
            where = traceback.extract_tb(error.__traceback__)[-1]
            report.true("ran to its end", False, f"{type(error).__name__}: {str(error)[-600:]} "
                                                 f"({os.path.basename(where.filename)}:{where.lineno})")
        report.seconds[check.name] = round(time.monotonic() - start, 2)
        if not arguments.brief:
            print(f"time    {check.name}: {report.seconds[check.name]} s", flush=True)
    with open(os.path.join(arguments.out, "results.json"), "w", encoding="utf-8") as file:
        json.dump({"lines": report.lines, "seconds": report.seconds}, file, indent=1, default=str)
    failed = report.failures()
    for line in report.lines if failed and not arguments.brief else []:
        if line["state"] == "FAIL":
            print(f"FAIL    {line['name']}: {str(line['detail'])[:300]}")
    skipped = [f"{line['name']} ({line['detail']})" for line in report.lines
               if line["state"] == "skip"]
    print(f"{report.checks()} checks, {failed} failed, {time.monotonic() - begin:.0f} s"
          f"{'; skipped: ' + '; '.join(skipped) if skipped else ''}")
    return 1 if failed else 0 if report.checks() else 77
