#!/usr/bin/env python3
"""Every JSON that perfkit prints against its JSON Schema (docs/reference/schemas), by the jsonschema package; of
captures with hostile names too.

    test_schemas.py PERFKIT REPORT_TOOL SOURCE_FOLDER WORK_FOLDER SCHEMAS [--update]

--update writes the tables of the report into its schema: they are described once, in report/tables_*.c.
"""
import json
import os
import sqlite3
import subprocess
import sys
import time
import warnings

try:
    import jsonschema
except ImportError:
    jsonschema = None
    # The distribution's package belongs to its own python, which may not be the first on the PATH.
    if sys.executable != "/usr/bin/python3" and subprocess.run(
            ["/usr/bin/python3", "-c", "import jsonschema"], capture_output=True, check=False).returncode == 0:
        os.execv("/usr/bin/python3", ["/usr/bin/python3", "-B"] + sys.argv)

perfkit, tool, source, work, schemas = sys.argv[1:6]
update = sys.argv[6:] == ["--update"]
FIXTURES = ("normal", "awkward", "hostile", "empty", "live", "more", "counters", "dormant", "roofline", "ranks",
            "host")


def strict(pairs):
    keys = [key for key, _ in pairs]
    assert len(set(keys)) == len(keys), "a member twice: %s" % keys
    return dict(pairs)


def refuse(constant):
    raise ValueError(constant + " is not JSON")


def parse(data):
    return json.loads(data.decode("utf-8"), object_pairs_hook=strict, parse_constant=refuse)


def run(*words, statuses=(0,)):
    result = subprocess.run([perfkit, *words], capture_output=True, check=False,
                            env={**os.environ, "LC_ALL": "C"})
    assert result.returncode in statuses, (words, result.returncode, result.stderr)
    return parse(result.stdout)


def nullable(kind):
    return {"type": [kind, "null"]}


def table_schema(table):
    row = {"type": "object", "required": list(table["columns"]), "additionalProperties": False,
           "properties": {key: nullable(kind) for key, kind in table["columns"].items()}}
    properties = {"total_rows": {"type": "integer"}}
    if table["all"]:
        properties["all"] = row
    properties["rows"] = {"type": "array", "items": row}
    words = ": ".join(part for part in (table["title"], table["help"]) if part)
    return {"description": words, "type": "object", "required": list(properties),
            "additionalProperties": False, "properties": properties}


def with_tables(report, which):
    """The report's schema with the tables as the program describes them."""
    tables = parse(subprocess.run([tool, "tables", *which], capture_output=True, check=True).stdout)
    own = {key: value for key, value in report["properties"].items()
           if not value.get("$ref", "").startswith("#/$defs/tables/")}
    report["properties"] = {**own, **{name: {"$ref": "#/$defs/tables/" + name} for name in tables}}
    report["required"] = list(report["properties"])
    report["$defs"]["tables"] = {name: table_schema(table) for name, table in tables.items()}
    return report


os.makedirs(work, exist_ok=True)
store = {}
for file_name in sorted(os.listdir(schemas)):
    with open(os.path.join(schemas, file_name), encoding="utf-8") as file:
        store[file_name] = json.load(file)
for file_name, which in (("report.json", ()), ("memory.json", ("memory",)),
                         ("iterations.json", ("iterations",)), ("why.json", ("why",))):
    current = json.dumps(store[file_name], indent=1, ensure_ascii=False) + "\n"
    wanted = json.dumps(with_tables(store[file_name], which), indent=1, ensure_ascii=False) + "\n"
    if update:
        with open(os.path.join(schemas, file_name), "w", encoding="utf-8") as file:
            file.write(wanted)
    assert update or current == wanted, "docs/reference/schemas/%s: run this test with --update" % file_name
os.chdir(work)
if not jsonschema:
    print("SKIP: the jsonschema package of python3 is not installed (Debian: python3-jsonschema)")
    sys.exit(77)

# Deprecated for the referencing package, which distributions do not have yet.
warnings.filterwarnings("ignore", category=DeprecationWarning)
validators = {}
for name, schema in store.items():
    jsonschema.Draft202012Validator.check_schema(schema)
    resolver = jsonschema.RefResolver(schema.get("$id", name), schema, store=store)
    validators[name] = jsonschema.Draft202012Validator(schema, resolver=resolver)
checked = {}


def check(name, document, what):
    errors = sorted(validators[name].iter_errors(document), key=lambda error: list(error.path))
    for error in errors[:5]:
        print("FAIL %s: %s: %s: %s" % (name, what, list(error.path), error.message[:300]))
    assert not errors
    checked[name] = checked.get(name, 0) + 1


# The validator does find something: a member too many, one of a wrong type, one that lacks.
for break_it in (lambda d: d.update(more=1), lambda d: d["kernels"].update(total_rows="1"),
                 lambda d: d["trust"].pop("complete")):
    subprocess.run([tool, "make", os.path.join(source, "normal.sql"), "normal.sqlite"], check=True)
    broken = run("report", "--json", "normal.sqlite")
    break_it(broken)
    assert not validators["report.json"].is_valid(broken)

names = [stat["name"] for stat in run("report", "--stats", "list", "--format", "json")]
check("stats-list.json", run("report", "--stats", "list", "--format", "json"), "list")
for fixture in FIXTURES:
    capture = fixture + ".sqlite"
    subprocess.run([tool, "make", os.path.join(source, fixture + ".sql"), capture], check=True)
    check("report.json", run("report", "--json", capture), fixture)
    check("report.json", run("report", "--json", "--top", "1", "--device", "0", capture)
          if fixture in ("normal", "hostile") else run("report", "--json", "--top", "2", capture),
          fixture + ", a part")
    check("ranks.json", run("report", "--ranks", "--json", capture), fixture)
    check("memory.json", run("report", "--memory", "--json", capture), fixture)
    listed = run("report", "--iterations", "--json", capture)
    check("iterations.json", listed, fixture)
    if listed["why_none"] is None:
        check("why.json", run("report", "--why", "1", "--json", capture), fixture)
    check("stats.json", run("report", "--stats", ",".join(names), "--format", "json", capture), fixture)
    check("top.json", run("top", "--json", "--view", "all", "--count", "1", capture), fixture)
check("verify.json", run("verify", "normal.sqlite", "more.sqlite", "--json", statuses=(3,)), "verify")
with sqlite3.connect("unfinished.sqlite") as copy, sqlite3.connect("normal.sqlite") as original:
    original.backup(copy)
    copy.execute("UPDATE capture SET state = 'recording'")
copy.close()
unfinished = run("verify", "normal.sqlite", "unfinished.sqlite", "--json", statuses=(3,))
assert unfinished["after"]["recording"] and unfinished["why_none"] == "the capture after is still being recorded", unfinished
same = run("verify", "normal.sqlite", "normal.sqlite", "--json")
check("verify.json", same, "verify")
assert same["predicted_ns"] is None, same  # no finding is gone: not available, not 0
with sqlite3.connect("faster.sqlite") as copy, sqlite3.connect("normal.sqlite") as original:
    original.backup(copy)
    for table, in copy.execute("SELECT m.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' "
                               "AND c.name IN ('start', 'duration') GROUP BY 1 HAVING count(*) = 2").fetchall():
        copy.execute(f'UPDATE "{table}" SET start = start / 2, duration = duration / 2')
copy.close()
for runs, change in ((("normal", "faster"), "Saved      550 us per iteration (44.0 %), 95 %: 550 us to 550 us"),
                     (("faster", "normal"), "Added      550 us per iteration (78.6 %), 95 %: 550 us to 550 us"),
                     (("normal", "normal"), "Change     0 ns less per iteration (0.0 %), within the noise, 95 %: -0 ns to +0 ns")):
    said = subprocess.run([perfkit, "verify", *(name + ".sqlite" for name in runs)], check=True, capture_output=True, text=True).stdout
    assert said.splitlines()[1] == change, said
if os.path.exists("scores.jsonl"):
    os.unlink("scores.jsonl")
for after, status in (("normal.sqlite", 0), ("normal.sqlite", 0), ("more.sqlite", 3)):  # what is refused has no score
    run("verify", "--log=scores.jsonl", "normal.sqlite", after, "--json", statuses=(status,))
with open("scores.jsonl", "a", encoding="utf-8") as scores:
    scores.write('{"of": "another program"}\n[1]\n{"cut by a full disk')
run("verify", "--log=scores.jsonl", "normal.sqlite", "normal.sqlite", "--json")  # begins a line of its own
with open("scores.jsonl", "a", encoding="utf-8") as scores:
    for predicted, saved in ((100, 100), (100, 50), (100, 80), (100, 60), (0, 5)):  # 0: by an earlier version, nothing
        scores.write(json.dumps({"perfkit_verify_log": 1, "predicted_ns": predicted, "saved_ns": saved}) + "\n")
with open("normal.sqlite", "rb") as before:
    content = before.read()
run("verify", "--log=normal.sqlite", "normal.sqlite", "normal.sqlite", "--json", statuses=(2,))  # no log: left as it is
with open("normal.sqlite", "rb") as before:
    assert before.read() == content
kept = run("verify", "--log=scores.jsonl", "--json")
check("verify-log.json", kept, "verify --log")
assert [row["predicted_ns"] for row in kept["scores"]["rows"]] == [None] * 3 + [100] * 4 + [None], kept
assert kept["scores"]["total_rows"] == 8 and kept["damaged_lines"] == 3 and kept["predictions"] == 4, kept
assert [round(kept[key + "_ratio"], 9) for key in ("low", "median", "high")] == [0.575, 0.7, 0.85], kept
assert {row["saved_ns"] for row in kept["scores"]["rows"][:3]} == {0}, kept
check("what-if.json", run("what-if", "normal.sqlite", "--set", "kernel:*=0.5x", "--json", statuses=(0, 3)), "what-if")
check("version.json", run("version", "--json"), "version")
check("doctor.json", run("doctor", "--json", statuses=(0, 1)), "doctor")
check("device.json", run("device", "--json", statuses=(0, 1)), "device")
rules = run("explain", "--json")
check("explain.json", rules, "all rules")
check("explain.json", run("explain", rules[0]["rule"], "--json"), "one rule")


def baseline(*words):
    return subprocess.run([perfkit, "baseline", *words, "--baselines", "saved"], check=True, capture_output=True).stdout


if os.path.exists("saved"):
    os.remove("saved")
baseline("save", "main", "--label", "one", "normal.sqlite")
check("baseline.json", parse(baseline("list", "--json")), "baselines")
check("baseline.json", parse(baseline("show", "main", "--json")), "a baseline")

# A run that goes on, for `ctl status`.
running = subprocess.Popen(
    [perfkit, "run", "-q", "-f", "-o", "running.sqlite", "--", "sleep", "600"],
    # The collector of a build with the sanitizers, in a program without.
    env={**os.environ, "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"})
try:
    while True:
        status = subprocess.run([perfkit, "ctl", "status", "running.sqlite", "--json"],
                                capture_output=True, check=False)
        if status.returncode == 0:
            break
        assert running.poll() is None, (running.returncode, status.stderr)
        time.sleep(0.1)
    check("ctl-status.json", parse(status.stdout), "status")
finally:
    running.terminate()
    running.wait()
print(", ".join("%s: %d" % item for item in sorted(checked.items())))
