#!/bin/sh
# Chrome traces of the fixture captures, read by another JSON reader:
#     trace_test.sh REPORT_TOOL SOURCE_FOLDER WORK_FOLDER
tool=$1 source=$2 work=$3
if ! command -v python3 >/dev/null; then
    echo "SKIP: the trace is checked with python3, which is missing"
    exit 77
fi
mkdir -p "$work" || exit 1
for fixture in normal awkward hostile empty live more; do
    "$tool" make "$source/$fixture.sql" "$work/$fixture.sqlite" &&
        "$tool" write chrome-trace "$work/$fixture.sqlite" "$work/$fixture.trace" &&
        "$tool" write json "$work/$fixture.sqlite" "$work/$fixture.json" &&
        python3 "$source/chrome_check.py" "$work/$fixture.trace" "$work/$fixture.json" || exit 1
done
# A full disk and a reader that goes away are told.
for format in chrome-trace perfetto; do
    if "$tool" write $format "$work/normal.sqlite" /dev/full 2>"$work/err" || ! grep -q 'No space' "$work/err"; then
        echo "a full disk, $format: $(cat "$work/err")"
        exit 1
    fi
    { "$tool" write $format "$work/normal.sqlite" - 2>/dev/null; echo $? >"$work/status"; } | head -c 10 >/dev/null
    if [ "$(cat "$work/status")" = 0 ]; then
        echo "a closed pipe, $format: status 0"
        exit 1
    fi
done
# What HTA finds a trace's rank by.
rank=$work/rank.sqlite
"$tool" make "$source/normal.sql" "$rank" && python3 - "$rank" <<'end' && "$tool" write chrome-trace "$rank" "$work/rank.trace" || exit 1
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE process SET rank = 3")
db.commit()
end
python3 -c 'import re, sys; assert re.search(r"\"rank\":\s+(\d+)", open(sys.argv[1]).read()).group(1) == "3"' "$work/rank.trace" || exit 1
# Call stacks: "sf" leads to frames, innermost first, and those to nothing; the program's own lines stand in
# the arguments.
stacks=$work/stacks
cat "$source/normal.sql" "$source/stacks.sql" >"$stacks.sql"
"$tool" make "$stacks.sql" "$stacks.sqlite" && "$tool" write chrome-trace "$stacks.sqlite" "$stacks.trace" &&
    "$tool" write json "$stacks.sqlite" "$stacks.json" &&
    python3 "$source/chrome_check.py" "$stacks.trace" "$stacks.json" && python3 - "$stacks.trace" <<'end' || exit 1
import json, sys
trace = json.load(open(sys.argv[1], encoding="utf-8"))
frames, kernels = trace["stackFrames"], 0
assert len(frames) == 2, frames
for event in trace["traceEvents"]:
    kernels += event.get("cat") == "kernel"
    if event.get("cat") in ("kernel", "gpu_memcpy"):
        assert ("sf" in event) == (event["cat"] == "kernel"), event
    if "sf" in event:
        inner = frames[str(event["sf"])]
        outer = frames[str(inner["parent"])]
        assert inner["name"] == "launch<T>(int)" and inner["category"] == "/src/a b.c:42", inner
        assert outer["name"] == "main" and "parent" not in outer, outer
        assert event["args"]["called from"] == "launch<T>(int) (a b.c:42) < main (a b.c:7)", event
assert kernels > 0 and sum("sf" in event for event in trace["traceEvents"]) == 2 * kernels # and their calls
end
# Perfetto's format has the same stacks, each frame and each text once.
"$tool" write perfetto "$stacks.sqlite" "$stacks.pftrace" &&
    python3 "$source/perfetto_check.py" "$stacks.pftrace" "$stacks.trace" || exit 1
for fixture in normal awkward hostile live more; do
    "$tool" write perfetto "$work/$fixture.sqlite" "$work/$fixture.pftrace" &&
        python3 "$source/perfetto_check.py" "$work/$fixture.pftrace" "$work/$fixture.trace" || exit 1
done
# What was not recorded is marked in both, of the process and of the device.
paused=$work/paused
cat "$source/normal.sql" "$source/paused.sql" >"$paused.sql"
"$tool" make "$paused.sql" "$paused.sqlite" && "$tool" write chrome-trace "$paused.sqlite" "$paused.trace" &&
    "$tool" write json "$paused.sqlite" "$paused.json" && "$tool" write perfetto "$paused.sqlite" "$paused.pftrace" &&
    python3 "$source/chrome_check.py" "$paused.trace" "$paused.json" &&
    python3 "$source/perfetto_check.py" "$paused.pftrace" "$paused.trace" && python3 - "$paused.trace" <<'end' || exit 1
import json, sys
events = json.load(open(sys.argv[1], encoding="utf-8"))["traceEvents"]
shown = sorted((e["pid"], e["ts"], e["dur"], e["args"]["because"]) for e in events
               if e.get("name") == "not recorded" and e["ph"] == "X")
pause, end = (20000, 10000, "a pause of --overhead"), (55000, 5000, "--delay or --duration")
assert shown == [(0, *pause), (0, *end), (4242, *pause), (4242, *end)], shown
named = [e for e in events if e["ph"] == "M" and e["args"].get("name") == "not recorded"]
assert len(named) == 2, named
end
# A part of it: no arrow may lose an end.
part() { # fixture filter...
    fixture=$1
    shift
    "$tool" write chrome-trace "$work/$fixture.sqlite" "$work/part.trace" "$@" &&
        "$tool" write json "$work/$fixture.sqlite" "$work/part.json" "$@" &&
        python3 "$source/chrome_check.py" "$work/part.trace" "$work/part.json" || exit 1
}
part normal begin=10010000 end=20000000
part normal range=forward
part normal pattern=gemm
part awkward range=inner
part awkward pattern=k1
