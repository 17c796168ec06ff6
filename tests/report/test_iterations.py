#!/usr/bin/env python3
"""perfkit report --iterations, --why, --iteration-number and --slowest against SQL over the same capture, and
against each other.

    test_iterations.py PERFKIT REPORT_TOOL SOURCE_FOLDER WORK_FOLDER
"""
import json
import os
import re
import sqlite3
import subprocess
import sys

perfkit, tool, source, work = sys.argv[1:5]
os.makedirs(work, exist_ok=True)
os.chdir(work)

# Twenty steps of a memcpy, two kernels and a wait; the twelfth has an allocation of 3 ms more, the first one another.
STEPS = """
DELETE FROM kernel; DELETE FROM transfer; DELETE FROM memset; DELETE FROM sync; DELETE FROM api_call;
DELETE FROM range; DELETE FROM allocation; DELETE FROM marker;
WITH n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 19)
INSERT INTO range(start, duration, thread, name, depth)
SELECT 10000000 * i + 1000000, 1000000 + 3000000 * (i = 11), 1, 9100, 0 FROM n;
INSERT INTO string(id, value) VALUES(9100, 'step'), (9101, 'cudaMalloc'), (9102, 'cudaLaunchKernel'),
 (9103, 'cudaMemcpyAsync'), (9104, 'cudaDeviceSynchronize');
INSERT INTO api_call(start, duration, thread, name, source)
SELECT start + 20000, 3000000, 1, 9101, 1 FROM range WHERE duration > 1000000;
INSERT INTO allocation(process, start, bytes, kind, thread)
SELECT 1, start + 20000, 4096, 3, 1 FROM range WHERE duration > 1000000 OR start < 2000000;
INSERT INTO transfer(start, duration, stream, bytes, kind, source_kind, target_kind, api_name, api_lead, api_duration,
 thread)
SELECT start + 10000, 5000 + id % 3 * 100, 1, 1024 * id, 1, 2, 3, 9103, 6000, 3000, 1 FROM range;
INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread)
SELECT start + duration - 900000, 400000 + id % 4 * 1000, 1, 1, 9102, 6000, 3000, 1 FROM range
UNION ALL SELECT start + duration - 450000, 300000, 1, 2, 9102, 6000, 3000, 1 FROM range;
INSERT INTO sync(start, duration, kind, api_name, api_lead, api_duration, thread)
SELECT start + duration - 440000, 430000, 4, 9104, 0, 430000, 1 FROM range;
UPDATE capture SET duration = 300000000;
"""


def run(*words, status=0):
    result = subprocess.run([perfkit, "report", *words, "steps.sqlite"], capture_output=True, check=False, text=True)
    assert result.returncode == status, (words, result.returncode, result.stderr)
    return json.loads(result.stdout) if status == 0 else result.stderr


with open(os.path.join(source, "normal.sql"), encoding="utf-8") as file, open("steps.sql", "w", encoding="utf-8") as out:
    out.write(file.read() + STEPS)
subprocess.run([tool, "make", "steps.sql", "steps.sqlite"], check=True)
db = sqlite3.connect("steps.sqlite")
listed = run("--iterations", "--json")
rows = listed["iterations"]["rows"]
assert len(rows) == 20 and [row["number"] for row in rows] == list(range(1, 21))
assert [row["verdict"] for row in rows] == ["warm-up"] + [None] * 10 + ["slow"] + [None] * 8
assert listed["iteration_series"]["rows"][0]["slow"] == 1 and listed["slow_iterations"]["total_rows"] == 1
slow = listed["slow_iterations"]["rows"][0]
assert (slow["number"], slow["cause"], slow["cause_name"]) == (12, "alloc", "cudaMalloc"), slow

for row, (begin, length) in zip(rows, db.execute("SELECT start, duration FROM range ORDER BY start")):
    inside = (begin, begin + length)
    assert (row["start_ns"], row["duration_ns"]) == (begin, length), row
    assert sum(value for key, value in row.items() if key.startswith("state_")) == length, row
    one = lambda sql: db.execute(sql, inside).fetchone()
    assert (row["launches"],) == one("SELECT count(*) FROM kernel WHERE start - api_lead BETWEEN ? AND ?")
    assert (row["transfers"], row["bytes"]) == one(
        "SELECT count(*), sum(bytes) FROM transfer WHERE start - api_lead BETWEEN ? AND ?")
    assert (row["synchronizations"], row["sync_ns"]) == one(
        "SELECT count(*), sum(duration) FROM sync WHERE start BETWEEN ? AND ?")
    assert (row["allocations"], row["allocated_bytes"]) == one(
        "SELECT count(*), coalesce(sum(bytes), 0) FROM allocation WHERE start BETWEEN ? AND ?")
    busy = sum(one("SELECT sum(duration) FROM %s WHERE start BETWEEN ? AND ?" % table)[0]
               for table in ("kernel", "transfer"))
    assert row["device_ns"] == busy, (row, busy)

for number in range(1, 21):
    why = run("--why", str(number), "--json")
    parts, own = why["parts"]["rows"], why["iteration"][0]
    assert own["duration_ns"] == rows[number - 1]["duration_ns"] == sum(part["time_ns"] for part in parts)
    assert own["usual_ns"] == sum(part["usual_ns"] for part in parts)
    assert own["more_ns"] == sum(part["more_ns"] for part in parts) == own["duration_ns"] - own["usual_ns"]
    assert (own["cause"] is not None) == (number == 12), own
    assert all(part["more_ns"] == part["time_ns"] - part["usual_ns"] for part in parts)

for words, number in ((("--slowest", "1"), 12), (("--iteration-number", "5"), 5)):
    part = run(*words, "--json")
    assert part["filter"]["begin_ns"] == rows[number - 1]["start_ns"]
    assert part["filter"]["end_ns"] == rows[number - 1]["start_ns"] + rows[number - 1]["duration_ns"]
    assert sum(kernel["count"] for kernel in part["kernels"]["rows"]) == 2
after = [row for row in rows if row["verdict"] != "warm-up"]
for number in (len(after) + 1, 20, 21):
    if number > len(after):
        assert "there are %d iterations after warm-up" % len(after) in run("--slowest", str(number), status=2)
assert run("--why", "21", status=2) == run("--iteration-number", "21", status=2)
assert "there is no iteration 21: they are numbered 1 to 20" in run("--why", "21", status=2)
text = subprocess.run([perfkit, "report", "--why", "12", "steps.sqlite"], capture_output=True, check=True, text=True).stdout
assert "0.00000" not in text and " than usual." in text, text
db.executescript("DELETE FROM range WHERE start > 50000000")
text = subprocess.run([perfkit, "report", "--why", "3", "steps.sqlite"], capture_output=True, check=True, text=True).stdout
assert "Too few other iterations to say whether it is slow" in text, text
assert "give one of them" in run("--slowest", "1", "--from", "0.01", status=2)
assert "number all iterations" in run("--slowest", "1", "--iterations", status=2)
# Eight phases of 40 iterations, in each of which every fifth is slow: more than there is room for.
db.executescript("""
DELETE FROM kernel; DELETE FROM transfer; DELETE FROM sync; DELETE FROM api_call; DELETE FROM allocation; DELETE FROM range;
WITH n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 319)
INSERT INTO range(start, duration, thread, name, depth)
SELECT 10000000 * i + 1000000, 1000000 + i % 7 * 1000 + 6000000 * (i % 5 = 3), 1, 9200 + i / 40, 0 FROM n;
WITH n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 7)
INSERT INTO string(id, value) SELECT 9200 + i, char(97 + i) || '-step' FROM n;
INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread)
SELECT start + duration - 900000, 400000, 1, 1, 9102, 6000, 3000, 1 FROM range;
INSERT INTO sync(start, duration, kind, api_name, api_lead, api_duration, thread)
SELECT start + duration - 440000, 430000, 4, 9104, 0, 430000, 1 FROM range;
UPDATE capture SET duration = 4000000000;
""")
periodic = sum(1 for row in run("--iterations", "--json")["iteration_series"]["rows"] if row["period"])
assert periodic == 8, periodic
text = subprocess.run([perfkit, "report", "--iterations", "steps.sqlite"], capture_output=True, check=True, text=True).stdout
named, more = text.count("iteration is slow, from number"), re.findall(r"Of ([0-9]+) more phases", text)
assert 0 < named < 8 and [str(8 - named)] == more, text
print("20 iterations")
