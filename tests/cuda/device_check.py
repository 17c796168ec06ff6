#!/usr/bin/env python3
"""Captures of programs with known counts, compared with what the programs did.

device_check.py BIN_FOLDER FOLDER_FOR_CAPTURES; called by device_check.sh. Needs only python3.
Also prints what this machine's CUPTI does where its documentation is silent (lines "observed:").
"""
import json
import os
import signal
import sqlite3
import subprocess
import sys

BIN, OUT = sys.argv[1:3]
failures = 0


def check(what, got, expected):
    global failures
    if got == expected:
        print(f"ok      {what}: {got}")
    else:
        failures += 1
        print(f"DIFFERS {what}: {got}, expected {expected}")


def observed(what, value):
    print(f"observed: {what}: {value}")


def capture(name, *command):
    path = os.path.join(OUT, name + ".sqlite")
    result = subprocess.run(
        [f"{BIN}/perfkit", "run", "--force", "-o", path, "--", f"{BIN}/{command[0]}", *command[1:]],
        stdout=subprocess.PIPE, text=True, timeout=120)
    return result, sqlite3.connect(path)


def rows(db, sql, *values):
    return db.execute(sql, values).fetchall()


def one(db, sql, *values):
    return rows(db, sql, *values)[0][0]


def pairs(db, sql):
    return {str(key): [count, total] for key, count, total in rows(db, sql)}


def health(db, subject):
    return dict(rows(db, "SELECT item, sum(value) FROM capture_health WHERE subject=? AND value "
                         "NOT NULL GROUP BY item", subject))


def statements(db):
    return [" ".join(str(x) for x in row if x is not None) for row in
            rows(db, "SELECT subject, item, value, note FROM capture_health WHERE note NOT NULL")]


def balance(db, name):
    for subject in ("launch", "transfer", "memset", "allocation"):
        got = health(db, subject)
        check(f"{name}: {subject} remainder", got.get("remainder", 0), 0)
        check(f"{name}: {subject} outstanding", got.get("outstanding", 0), 0)


def exact(threads):
    name = f"exact_counts {threads}"
    result, db = capture(f"exact{threads}", "cuda_exact_counts", str(threads))
    check(f"{name}: exit status", result.returncode, 0)
    if result.returncode != 0:
        return
    did = json.loads(result.stdout)
    kernels = dict(rows(db, "SELECT s.value, count(*) FROM kernel k JOIN launch_config c ON "
                            "c.id=k.config JOIN string s ON s.id=c.name GROUP BY 1"))
    check(f"{name}: kernels by name", kernels, did["kernels"])
    check(f"{name}: copies by kind",
          pairs(db, "SELECT kind, count(*), sum(bytes) FROM transfer GROUP BY 1"), did["transfers"])
    check(f"{name}: fills", [*rows(db, "SELECT count(*), sum(bytes) FROM memset")[0]],
          did["memsets"])
    by_kind = pairs(db, "SELECT kind, count(*), sum(bytes) FROM allocation WHERE kind NOT IN (6,7) "
                        "GROUP BY 1")
    check(f"{name}: allocations by kind", by_kind, did["allocations"])
    check(f"{name}: leaks", [*rows(db, "SELECT count(*), coalesce(sum(bytes),0) FROM allocation "
                                       "WHERE end IS NULL AND kind NOT IN (6,7)")[0]], did["leaked"])
    check(f"{name}: graph launches",
          one(db, "SELECT count(*) FROM api_all a JOIN string s ON s.id=a.name WHERE "
                  "s.value='cudaGraphLaunch'"), did["graph_launches"])
    driver = one(db, "SELECT count(*) FROM api_all a JOIN string s ON s.id=a.name WHERE "
                     "s.value LIKE 'cuLaunchKernel%'")
    check(f"{name}: driver launches", driver, did["driver_launches"])
    launch = health(db, "launch")
    check(f"{name}: captured launches", launch.get("captured"), did["captured_launches"])
    check(f"{name}: failed launches", launch.get("failed"), did["failed_launches"])
    check(f"{name}: captured copies", health(db, "transfer").get("captured"),
          did["captured_transfers"])
    balance(db, name)
    check(f"{name}: kernels without times",
          one(db, "SELECT count(*) FROM kernel WHERE start IS NULL OR duration IS NULL"), 0)
    check(f"{name}: kernels that start before their call",
          one(db, "SELECT count(*) FROM kernel WHERE api_lead < 0"), 0)
    check(f"{name}: kernels without a call",
          one(db, "SELECT count(*) FROM kernel WHERE graph_node IS NULL AND api_name IS NULL"), 0)
    check(f"{name}: threads that launched",
          one(db, "SELECT count(DISTINCT thread) FROM kernel WHERE graph_node IS NULL"), threads)
    check(f"{name}: devices", one(db, "SELECT count(*) FROM device WHERE api='cuda'"), 1)
    check(f"{name}: devices without name", one(db, "SELECT count(*) FROM device WHERE name IS NULL"),
          0)
    check(f"{name}: launching streams",
          one(db, "SELECT count(DISTINCT stream) FROM kernel"), did["streams"])
    check(f"{name}: non-blocking streams",
          one(db, "SELECT count(*) FROM stream WHERE non_blocking AND id IN (SELECT stream FROM kernel)"),
          did["streams"])
    if threads == 1:
        observed("device", rows(db, "SELECT name, driver, uuid, units, clock_khz, "
                                    "memory_bandwidth, l2_bytes FROM device"))
        observed("api functions", dict(rows(db, "SELECT s.value, count(*) FROM api_all a JOIN string "
                                                "s ON s.id=a.name GROUP BY 1 ORDER BY 2 DESC")))
        observed("launches by name of their call",
                 dict(rows(db, "SELECT s.value, count(*) FROM kernel k JOIN string s ON "
                               "s.id=k.api_name GROUP BY 1")))
        observed("waits", rows(db, "SELECT kind, count(*), count(api_name) FROM sync GROUP BY 1"))
        observed("statements", statements(db))


def end(how, count=1000, settle=None, expected_status=0):
    command = ["cuda_ends", how, str(count)] + ([str(settle)] if settle else [])
    result, db = capture("ends_" + how, *command)
    check(f"ends {how}: status", result.returncode, expected_status)
    kernels = one(db, "SELECT count(*) FROM kernel")
    check(f"ends {how}: kernels", kernels, count)
    check(f"ends {how}: integrity", one(db, "PRAGMA integrity_check"), "ok")
    reasons = rows(db, "SELECT end_reason, exit_status, exit_signal FROM process")
    observed(f"ends {how}", reasons)
    if expected_status == 0:
        balance(db, f"ends {how}")


exact(1)
exact(8)
for way in ("return", "exit", "_exit", "threads", "fork"):
    end(way)
# After a signal: what was complete a flush period earlier (100 ms).
end("abort", settle=600, expected_status=-signal.SIGABRT)
end("kill", settle=600, expected_status=-signal.SIGKILL)
print("all as expected" if failures == 0 else f"{failures} differences")
sys.exit(1 if failures else 0)
