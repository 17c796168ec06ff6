#!/usr/bin/env python3
"""--prometheus of made-up captures: read by a parser of the text format 0.0.4 that forgives nothing, its
sums against the rows of the capture, and by `promtool check metrics` where that is installed.

    test_prometheus.py REPORT_TOOL SOURCE_FOLDER WORK_FOLDER
"""
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from decimal import Decimal

tool, source, work = sys.argv[1:]
os.makedirs(work, exist_ok=True)
os.chdir(work)
PROMTOOL = os.environ.get("PERFKIT_PROMTOOL") or shutil.which("promtool")
TWO_DEVICES = """
INSERT INTO device(id, process, api, ordinal, name, uuid, kind) VALUES(7, 1, 'cuda', 1, 'second', 'u1', 'gpu');
INSERT INTO stream(id, process, device, api, native) VALUES(70, 1, 7, 'cuda', 99);
INSERT INTO kernel(start, duration, stream, config) VALUES(3000000, 1000, 70, 1), (3500000, 500, 70, 1);
"""
NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"')


def labels_of(text):
    """{...} without its braces, each label once."""
    labels, at = {}, 0
    while at < len(text):
        found = LABEL.match(text, at)
        assert found, text[at:]
        name, value = found.groups()
        assert name not in labels, name
        labels[name] = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], value)
        at = found.end()
        if at < len(text):
            assert text[at] == ",", text[at:]
            at += 1
    return labels


def parse(data):
    """{family: (type, [(labels, value)])}; whatever the format forbids is an error."""
    text = data.decode("utf-8")
    assert text.endswith("\n")
    families, current, seen = {}, None, set()
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            current = line.split(" ", 3)[2]
            assert NAME.fullmatch(current) and current not in families, line
            families[current] = [None, []]
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == current and families[name][0] is None and not families[name][1], line
            assert kind in ("counter", "gauge"), line
            assert (kind == "counter") == name.endswith("_total"), line
            families[name][0] = kind
        else:
            name = NAME.match(line)[0]
            assert name == current, line  # families are not interleaved
            rest = line[len(name):]
            labels = {}
            if rest.startswith("{"):
                end = rest.rindex("} ")
                labels, rest = labels_of(rest[1:end]), rest[end + 1:]
            series = (name, tuple(sorted(labels.items())))
            assert series not in seen, line
            seen.add(series)
            families[name][1].append((labels, Decimal(rest.strip())))
    return families


def make(fixture, more="", name=None):
    name = name or fixture
    with open(os.path.join(source, fixture + ".sql"), encoding="utf-8") as file:
        sql = file.read()
    with open(name + ".sql", "w", encoding="utf-8") as file:
        file.write(sql + more)
    subprocess.run([tool, "make", name + ".sql", name + ".sqlite"], check=True)
    return name


def written(name, *options):
    out = name + ".prom"
    subprocess.run([tool, "write", "prometheus", name + ".sqlite", out, *options], check=True)
    with open(out, "rb") as file:
        data = file.read()
    if PROMTOOL:
        checked = subprocess.run([PROMTOOL, "check", "metrics"], input=data, capture_output=True)
        assert not checked.stderr and checked.returncode == 0, checked.stderr
    return parse(data)


def total(families, name):
    return sum(value for _, value in families[name][1])


def check_sums(name):
    families = written(name)
    rows = sqlite3.connect(name + ".sqlite")
    one = lambda sql: rows.execute(sql).fetchone()
    kernels, ns = one("SELECT count(*), coalesce(sum(duration), 0) FROM kernel "
                      "WHERE duration NOT NULL AND start NOT NULL")
    assert total(families, "perfkit_kernel_invocations_total") == kernels, (name, kernels)
    assert total(families, "perfkit_kernel_time_seconds_total") * 10 ** 9 == ns, (name, ns)
    for family, table in (("memcpy", "transfer"), ("memset", "memset")):
        size, ns = one("SELECT coalesce(sum(bytes), 0), coalesce(sum(duration), 0) FROM " + table)
        if family == "memset" and not size:
            continue
        assert total(families, "perfkit_%s_bytes_total" % family) == size, (name, family, size)
        assert total(families, "perfkit_%s_time_seconds_total" % family) * 10 ** 9 == ns, (name, family, ns)
    for labels, share in families["perfkit_gpu_busy_ratio"][1]:
        assert 0 <= share <= 1, (name, labels, share)
    rows.close()
    return families


for fixture in ("normal", "hostile", "empty", "counters"):
    check_sums(make(fixture))
for fixture in ("awkward", "live", "more"):  # rows that are not finished, or outside the run
    written(make(fixture))

both = check_sums(make("normal", TWO_DEVICES, "two"))
of_second = [value for labels, value in both["perfkit_kernel_invocations_total"][1]
             if labels["gpu"] == "1" and labels["UUID"] == "u1"]
assert of_second == [2], of_second

few = written("hostile", "top=3")
kernels = few["perfkit_kernel_invocations_total"][1]
assert len(kernels) == 4 and kernels[-1][0]["kernel"] == "other", kernels
assert total(few, "perfkit_kernel_invocations_total") == 15
names = [labels["kernel"] for labels, _ in written("hostile")["perfkit_kernel_invocations_total"][1]]
assert len(set(names)) == 15 and max(map(len, names)) < 300, names
assert not any(ord(c) < 32 for name in names for c in name), names
print("promtool has read all of them" if PROMTOOL else "promtool is not installed: our own parser only")
