#!/usr/bin/env python3
"""scripts/seed_tables.sh: what it measures is what the workload claims, what it shows is what it
measured, and broken input is an error.   usage: seed_tables.py SCRIPT BUILD"""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

script, build = sys.argv[1:]


def call(*options, status=0):
    done = subprocess.run([script, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    assert done.returncode == status, (options, done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr


spec = importlib.util.spec_from_file_location("tables", os.path.splitext(script)[0] + ".py")
tables = importlib.util.module_from_spec(spec)
sys.dont_write_bytecode = True
spec.loader.exec_module(tables)

# what launches alone can gain is what kernels leave of the time, and no more is excused
for claimed, busy, verdict in ((1.09, 0.94, "differs"), (1.05, 0.94, "missed"), (1.09, 0.5, "missed")):
    row = {"claim": "compile once, gain per step", "verdict": "missed", "claimed": claimed}
    tables.excuse_busy(row, busy)
    assert row["verdict"] == verdict and ("1.06x" in row.get("because", "")) == (verdict != "missed"), row
row = {"claim": "half precision", "verdict": "missed", "claimed": 1.5}
tables.excuse_busy(row, 0.94)
assert row["verdict"] == "missed", row

with tempfile.TemporaryDirectory() as folder:
    results, page = os.path.join(folder, "results.json"), os.path.join(folder, "page.md")
    text, _ = call(build, "--only", "patterns", "--preset", "small", "--json", results)
    with open(results) as file:
        report = json.load(file)
    (patterns,) = report["workloads"]
    own = subprocess.run([os.path.join(build, "workloads", "patterns"), "--preset", "small",
                          "--iterations", "1", "--json"], check=True, stdout=subprocess.PIPE).stdout
    own = json.loads(own)
    checklist = [r for r in patterns["rows"] if r["claim"] == "its checklist"]
    assert len(checklist) == 5 and all(r["verdict"] == "reached" for r in checklist), checklist
    assert [(r["claim"], r["seed"]) for r in patterns["rows"] if r not in checklist] == \
        [(r["claim"], r["seed"]) for r in own["claims"]]
    assert report["device"] == own["device"] and report["device"] in text
    assert sum(report["summary"].values()) == len(patterns["rows"]) and not patterns["failed"]
    for row in patterns["rows"]:
        assert row["claim"] in text and row["seed"] in text, row
        if row["verdict"] in ("missed", "differs"):
            assert "an iteration" in row["perfkit"], row
        if row["verdict"] in ("differs", "cannot be shown"):
            assert row["because"] in text, row

    assert call("--from", results)[0] == text
    # several files of one device are one report, each workload once, the last one's
    with open(results) as file:
        other = json.load(file)
    other["workloads"][0]["workload"] = "rollout"
    other["system"] = "another system"
    second = os.path.join(folder, "second.json")
    with open(second, "w") as file:
        json.dump(other, file)
    both = os.path.join(folder, "both.json")
    call("--from", results, "--from", second, "--from", results, "--json", both)
    with open(both) as file:
        both = json.load(file)
    assert [w["workload"] for w in both["workloads"]] == ["rollout", "patterns"], both
    assert both["system"] == report["system"] + " and another system", both["system"]
    assert both["summary"] == {v: 2 * n for v, n in report["summary"].items()}, both["summary"]
    other["device"] = "another"
    with open(second, "w") as file:
        json.dump(other, file)
    assert "of another device" in call("--from", results, "--from", second, status=2)[1]

    # a device's section stands once, however often it is put there; names are no markup
    report["device"] = "A|B <script>"
    with open(results, "w") as file:
        json.dump(report, file)
    with open(page, "w") as file:
        file.write("# Results\n\n<!-- begin cuda -->\nkept\n<!-- end cuda -->\n")
    call("--from", results, "--into", page)
    first = open(page).read()
    call("--from", results, "--into", page)
    assert open(page).read() == first and first.count(f"<!-- begin {report['backend']} -->") == 1
    assert "\nkept\n" in first and "A\\|B &lt;script>" in first and "<script" not in first

    # a verification that fails is the status, and said
    patterns["failed"] = ["patterns: gemm-loop: relative error 1"]
    with open(results, "w") as file:
        json.dump(report, file)
    assert "FAILED: patterns: gemm-loop" in call("--from", results, status=1)[0]

    for content in ("", "{", "[]", "{}", '{"workloads": 1}'):
        with open(results, "w") as file:
            file.write(content)
        assert "not results of --json" in call("--from", results, status=2)[1]
    call("--from", os.path.join(folder, "nothing.json"), status=2)
    assert "no such workload: nosuch" in call(build, "--only", "nosuch", status=2)[1]
    assert "give the build folder" in call(folder, status=2)[1]
