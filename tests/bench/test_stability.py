"""bench/stability --captures: captures of one name are runs of one program, findings are compared as
rules and as rules with their phases. The stand-in for perfkit prints the capture, which is its report."""
import json
import os
import subprocess
import sys
import tempfile

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "stability")
STAND_IN = "#!/bin/sh\nexec cat \"$3\"\n"


def report(iterations, *rows):
    return {"findings": {
        "phases": [{"range": "step", "domain": None, "source": "range", "iterations": iterations, "skipped": 1}],
        "window_ns": 1000, "coverage": {"analysed_ns": 9, "device_ns": 10},
        "rows": [{"rule": rule, "phase": phase, "severity": severity, "bound_ns": 100, "rule_bound_ns": 100,
                  "numbers": []} for rule, phase, severity in rows]}}


def stability(folder, runs):
    """The exit status, the figures and what was printed, of runs as {program: report}; None is a capture that cannot be read."""
    perfkit, out = os.path.join(folder, "perfkit"), os.path.join(folder, "out.json")
    with open(perfkit, "w", encoding="utf-8") as file:
        file.write(STAND_IN)
    os.chmod(perfkit, 0o755)
    folders = []
    for number, programs in enumerate(runs):
        folders.append(os.path.join(folder, "run%d" % number))
        os.mkdir(folders[-1])
        for name, told in programs.items():
            capture = os.path.join(folders[-1], name + ".sqlite")
            if told is None:
                os.mkdir(capture)  # cat fails
                continue
            with open(capture, "w", encoding="utf-8") as file:
                json.dump(told, file)
    done = subprocess.run([sys.executable, "-B", BENCH, "--perfkit", perfkit, "--json", out, "--captures"] + folders,
                          stdout=subprocess.PIPE, text=True, check=False)
    with open(out, encoding="utf-8") as file:
        return done.returncode, json.load(file), done.stdout


def main():
    one = report(9, ("launch-bound", "a", "warning"), ("hot-kernel", "a", "info"))
    other_phase = report(9, ("launch-bound", "b", "critical"))
    with tempfile.TemporaryDirectory() as folder:
        status, told, _ = stability(folder, [{"x": one, "y": one}, {"x": other_phase}, {"x": report(9)},
                                          {"x": None, "y": one}])
    rows = {row["command"]: row for row in told["programs"]}
    assert status == 0 and sorted(rows) == ["x", "y"]
    assert (rows["x"]["runs"], rows["y"]["runs"]) == (3, 2)  # none of the one that cannot be read
    assert (told["pairs"], told["pairs_equal"], told["pairs_equal_by_phase"]) == (3 + 1, 1 + 1, 0 + 1)
    assert rows["x"]["findings"] == rows["x"]["flapping"] == ["launch-bound"]
    with tempfile.TemporaryDirectory() as folder:
        status, told, _ = stability(folder, [{"x": one}, {"x": report(8, ("launch-bound", "a", "warning"))}])
    assert status == 1 and not told["programs"][0]["same_phases"] and told["pairs_equal"] == 1
    # One run has no pair: no share is known. A program that nobody could read is no success.
    with tempfile.TemporaryDirectory() as folder:
        status, told, printed = stability(folder, [{"x": one}])
    assert status == 0 and told["pairs"] == 0 and "100" not in printed and printed.count("n/a") == 4, printed
    with tempfile.TemporaryDirectory() as folder:
        status, told, printed = stability(folder, [{"x": one, "y": None}, {"x": one, "y": None}])
    assert status == 1 and told["unread"] == ["y"] and told["pairs_equal"] == 1, (status, told)


main()
