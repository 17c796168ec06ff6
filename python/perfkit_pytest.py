"""pytest --perfkit-gate: tests that fail when what they do on a GPU becomes slower or more than in the baseline.

    @pytest.mark.perfkit_gate             # the test runs in processes of its own under perfkit run
    def test_step(perfkit_record):
        model = build()
        with perfkit_record():            # only this is compared; without the fixture, the whole function
            for batch in data:
                step(model, batch)

    def test_bench(perfkit_gate):         # a command
        perfkit_gate(["build/bench", "--steps", "50"], iteration="step")

Without --perfkit-gate or --perfkit-save both are ordinary tests. docs/guide/pytest.md says more.

Every pytest of the system loads this file: it imports perfkit, and with it NumPy, where that is needed.
"""
import contextlib
import itertools
import json
import os
import re
import reprlib
import subprocess
import sys
import tempfile
import unittest

import pytest

_REGION = "perfkit_region"
_SETTINGS = {"baseline": None, "iteration": None, "skip": None, "runs": 3, "options": ()}
_MAX_RUNS, _MAX_SKIP = 1000, 1_000_000_000


def pytest_addoption(parser):
    group = parser.getgroup("perfkit", "comparing with a baseline by perfkit")
    group.addoption("--perfkit-gate", action="store_true", help="record tests marked perfkit_gate and compare them with their baselines")
    group.addoption("--perfkit-save", action="store_true", help="record them and add a session to their baselines")
    group.addoption("--perfkit-keep", metavar="DIR", help="keep the captures there")
    group.addoption("--perfkit-inside", metavar="FILE", help="used by the plugin itself: this process is recorded")
    parser.addini("perfkit_pytest_args", type="args", help="further arguments of the pytest that runs a recorded test")


def pytest_configure(config):
    config.addinivalue_line("markers", "perfkit_gate(baseline=NAME, iteration=RANGE, skip=N, runs=3, options=()): compared with a baseline under "
                                       "--perfkit-gate. iteration, skip: as those of perfkit gate; runs: how often it is recorded; options: of perfkit run")
    if config.getoption("perfkit_gate") and config.getoption("perfkit_save"):
        raise pytest.UsageError("--perfkit-gate compares, --perfkit-save records a baseline: give one of them")


def _records(config):
    return (config.getoption("perfkit_gate") or config.getoption("perfkit_save")) and not config.getoption("perfkit_inside")


@pytest.fixture
def perfkit_record(request):
    """What the block does is recorded and compared; outside of the gate it is just run."""
    import perfkit
    if request.config.getoption("perfkit_inside"):
        return lambda: perfkit.record(_REGION)
    return perfkit.record


@pytest.fixture
def perfkit_gate(request):
    """perfkit_gate(COMMAND, **settings of the marker): run a command, a list or a text for the shell; it has to end with 0."""
    def run(command, **settings):
        command = ["sh", "-c", command] if isinstance(command, str) else [os.fspath(word) for word in command]
        if _records(request.config):
            _judge(request.node, settings, lambda prefix: _finish(subprocess.run([*prefix, *command], **_CAPTURED)))
        else:
            _finish(subprocess.run(command, **_CAPTURED))
    return run


# ---- tests that are recorded themselves ------------------------------------------------------------

def pytest_itemcollected(item):
    """The process that is recorded sets up the fixtures, not this one."""
    if not item.get_closest_marker("perfkit_gate") or not _records(item.config):
        return
    if not isinstance(item, pytest.Function) or (item.cls and issubclass(item.cls, unittest.TestCase)):
        raise pytest.UsageError(f"{item.nodeid}: perfkit_gate needs a test function, not one of unittest")
    for marker in item.iter_markers("perfkit_gate"):
        wrong = "settings need their names, as runs=5" if marker.args else _what_is_wrong(marker.kwargs)
        if wrong:
            raise pytest.UsageError(f"{item.nodeid}: perfkit_gate: {wrong}")
    item.fixturenames = []


def _what_is_wrong(settings):
    """The first setting that cannot be used, in a sentence; None when all can be."""
    unknown = sorted(set(settings) - set(_SETTINGS))
    if unknown:
        return f"no such setting: {', '.join(unknown)}; there are {', '.join(_SETTINGS)}"
    for name, value in settings.items():
        if name in ("runs", "skip"):
            least, most = (1, _MAX_RUNS) if name == "runs" else (0, _MAX_SKIP)
            good = type(value) is int and least <= value <= most or name == "skip" and value is None
            wanted = f"a whole number from {least} to {most}"
        elif name == "options":
            good = isinstance(value, (list, tuple)) and all(isinstance(word, str) and word and "\0" not in word for word in value)
            wanted = "a list of options of perfkit run, as [\"--stacks\"]"
        else:
            good = value is None or isinstance(value, str) and value.strip() and "\0" not in value
            wanted = "a name"
        if not good:
            return f"{name}={reprlib.repr(value)}: must be {wanted}"
    return None


def pytest_sessionstart(session):
    inside = session.config.getoption("perfkit_inside")
    if inside or _records(session.config):
        session.config.pluginmanager.register(_Inside(inside) if inside else _Recorded(), "perfkit recorded tests")


class _Recorded:
    """Runs marked tests by processes under perfkit run."""
    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        marker = pyfuncitem.get_closest_marker("perfkit_gate")
        if not marker:
            return None
        _judge(pyfuncitem, marker.kwargs, lambda prefix: _run_inside(pyfuncitem, prefix), dormant=True)
        return True


class _Inside:
    """In such a process: records the function where it has no region of its own, and writes why it was skipped into a file."""
    def __init__(self, path):
        self.path = path

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        import perfkit
        with contextlib.nullcontext() if "perfkit_record" in pyfuncitem.fixturenames else perfkit.record(_REGION):
            yield

    def pytest_runtest_logreport(self, report):
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            with open(self.path, "w", encoding="utf-8") as told:
                told.write(re.sub("^Skipped: ", "", reason))


def _run_inside(item, prefix):
    config, path = item.config, os.fspath(getattr(item, "path", None) or item.fspath)
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as told:
        words = [*prefix, sys.executable, "-m", "pytest", "-q", "-p", "perfkit_pytest", "-p", "no:cacheprovider", "--junit-xml=",
                 "--rootdir", str(config.rootpath), *(["-c", str(config.inipath)] if config.inipath else []), *config.getini("perfkit_pytest_args"),
                 "--perfkit-inside", told.name, *(["-n0"] if config.pluginmanager.hasplugin("xdist") else []),
                 "::".join([path, item.nodeid.partition("::")[2]])]
        done = subprocess.run(words, cwd=str(config.invocation_params.dir), **_CAPTURED)
        told.seek(0)
        skipped = told.read()
    if skipped and done.returncode == 0:
        pytest.skip(skipped)
    _finish(done)


# ---- recording and comparing -----------------------------------------------------------------------

_CAPTURED = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "backslashreplace",
             "check": False}


def _finish(done):
    if done.returncode == 125 and "perfkit run: " in done.stdout:
        pytest.skip(done.stdout.strip().splitlines()[-1])
    if done.returncode:
        pytest.fail(f"what was to be recorded ended with {done.returncode}:\n{done.stdout}", pytrace=False)


def _perfkit(program, config, *words):
    done = subprocess.run([program, *words], cwd=str(config.rootpath), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="backslashreplace", check=False)
    return done.returncode, done.stdout, done.stderr.strip()


def _judge(item, settings, run, dormant=False):
    """Record `run`, which gets the words before its command, as often as the settings say; save it, or fail as the gate does.
    Without a baseline it runs once all the same: what it asserts has to hold."""
    import perfkit
    wrong = _what_is_wrong(settings)
    if wrong:
        pytest.fail(f"perfkit_gate: {wrong}", pytrace=False)
    settings = {**_SETTINGS, **settings}
    config, program = item.config, perfkit._program()
    name = settings["baseline"] or item.nodeid
    if not program:
        pytest.skip("perfkit is not installed: there is no such command on the PATH")
    known = config.getoption("perfkit_save") or _has_baseline(program, config, name)
    keep = config.getoption("perfkit_keep")
    if keep:
        os.makedirs(keep, exist_ok=True)
    with contextlib.nullcontext(os.path.abspath(keep)) if keep else tempfile.TemporaryDirectory() as folder:
        captures = []
        for number in range(settings["runs"] if known else 1):
            captures.append(os.path.join(folder, f"{re.sub('[^A-Za-z0-9_.-]+', '-', name)}-{number + 1}.sqlite"))
            run([program, "run", "--quiet", "--force", *(["--dormant"] if dormant else []), *settings["options"], "-o", captures[-1], "--"])
            if not number:
                which = _which_iterations(captures[0], settings, dormant)
        if config.getoption("perfkit_save"):
            _save(item, program, name, which, captures)
        elif not known:
            pytest.skip(f"no baseline '{name}' yet: pytest --perfkit-save records one")
        else:
            _compare(item, program, name, which, captures)


def _has_baseline(program, config, name):
    status, text, wrong = _perfkit(program, config, "baseline", "list", "--json")
    if status and "no such file" not in wrong:
        pytest.fail(wrong, pytrace=False)
    return not status and name in [row["name"] for row in json.loads(text)]


def _which_iterations(path, settings, dormant):
    """Options of gate and baseline. Skips the test when the capture shows no work of a device."""
    import perfkit
    with perfkit.open(path) as capture:
        if not len(capture.sql("SELECT 1 FROM kernels UNION ALL SELECT 1 FROM transfers UNION ALL SELECT 1 FROM graph_launch", limit=1)):
            pytest.skip("nothing was recorded: the test used no GPU, or perfkit cannot record it (perfkit doctor says why)")
        repeated = len(capture.sql("SELECT 1 FROM ranges GROUP BY name HAVING count(*) > 1", limit=1))
    chosen = settings["iteration"] or (_REGION if dormant and not repeated else None)
    return [*(["--iteration", chosen] if chosen else []), *([f"--skip={settings['skip']}"] if settings["skip"] is not None else [])]


def _save(item, program, name, which, captures):
    label = os.environ.get("GITHUB_RUN_ID") or os.environ.get("CI_JOB_ID")
    status, _, wrong = _perfkit(program, item.config, "baseline", "save", name, *which, *(["--label", label] if label else []), *captures)
    if status:
        pytest.fail(wrong, pytrace=False)
    _tell(item, f"saved {len(captures)} run{'s' if len(captures) > 1 else ''} in baseline '{name}'")


def _compare(item, program, name, which, captures):
    status, text, wrong = _perfkit(program, item.config, "gate", "--baseline", name, *which, "--top=10", *captures)
    lines = text.splitlines()
    if not lines or status == 2:
        pytest.fail(wrong or text, pytrace=False)
    head = list(itertools.takewhile(str.strip, lines)) # how much slower, then the verdict; sentences are wrapped
    at = next((number for number, line in enumerate(head) if re.match("[A-Z]+:", line)), 0)
    verdict, answer = " ".join(head[at:]), " ".join(head[:at])
    _tell(item, f"{verdict}; {answer}" if answer else verdict)
    if status == 3:
        pytest.skip(f"perfkit gate refuses to compare: {verdict}")
    if status:
        pytest.fail(text, pytrace=False)


def _tell(item, sentence):
    item.user_properties.append(("perfkit", sentence))


def pytest_terminal_summary(terminalreporter):
    lines = [f"{report.nodeid}: {value}" for reports in terminalreporter.stats.values() for report in reports
             if getattr(report, "when", None) == "call" for key, value in report.user_properties if key == "perfkit"]
    if lines:
        terminalreporter.section("perfkit gate")
        for line in sorted(lines):
            terminalreporter.write_line(line)
