#!/bin/sh
# The program as a user runs it: every variant verified on the best device and on the CPU, JSON
# that a JSON reader takes, and errors that name themselves.  usage: hash_embedding.sh PROGRAM
. "$(dirname "$0")/program.sh"

expect 0 --preset small --verify --iterations 2 --warmup 1
grep -q 'FAILED' "$dir/out" && fail 'a comparison failed and the status was 0'
expect 0 --preset small --verify --iterations 1 --warmup 0 --backend cpu
expect 0 --preset small --verify --iterations 1 --warmup 0 --order random
grep -q 'needs records sorted by plot' "$dir/out" || fail 'chunked on unsorted records'
expect 0 --records 777 --plots 13 --dim 7 --embed 4 --top-k 1 --batch 5 --verify --iterations 1
expect 0 --records 1 --plots 1 --verify --iterations 1
expect 0 --records 10 --plots 300 --batch 7 --verify --iterations 1 # batches without records

"$program" --list-variants | while read -r variant _; do
    "$program" --preset small --iterations 1 --variant "$variant" >"$dir/one" 2>&1 ||
        { echo "FAILED: --variant $variant"; cat "$dir/one"; exit 1; }
    grep -q "^$variant " "$dir/one" || { echo "FAILED: no row of $variant"; exit 1; }
done || failed=1

expect 0 --preset small --iterations 2 --verify --json
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys
report = json.load(sys.stdin)
rows = [r for r in report["results"] if "skipped" not in r]
assert rows and all(r["verified"] and r["kernel_ns"]["median"] > 0 for r in rows)
claims = {c["claim"] for c in report["claims"]}
assert claims >= {"many lookups in a loop", "loss in several reductions"}
assert all(c["verdict"] and c["seed"] for c in report["claims"])
' <"$dir/out" || fail 'the JSON'
    # Whether a choice was the best is a matter of time; that each size is judged is not.
    "$program" --sweep --sweep-to 4096 --iterations 1 --warmup 0 --verify --json >"$dir/out" \
        2>"$dir/err"
    [ $? -le 1 ] || fail 'the sweep'
    python3 -c 'import json, sys
report = json.load(sys.stdin)
points = report["sweep"]
assert [p["records"] for p in points] == [n for n in (1024, 2048, 4096) for _ in range(4)]
assert all(e <= 1e-5 for p in points for e in p["relative_error"].values()), points
assert all(p["passed"] == (p["auto_over_best"] <= 1.1) for p in points), points
assert report["passed"] == all(p["passed"] for p in points)
for p in points:
    kernels = p["kernel_ns"].keys()
    assert {p["auto"], p["best"]} <= kernels == p["spread_ns"].keys() == p["repetitions"].keys(), p
    assert p["kernel_ns"][p["best"]] == min(p["kernel_ns"].values()), p
    assert 1 <= p["rounds"] <= 10 and all(n >= 1 for n in p["repetitions"].values()), p
(claim,) = report["claims"]
assert claim["after_value"] == max(p["auto_over_best"] for p in points), claim
assert claim["verdict"] == ("reached" if report["passed"] else "missed"), claim
(worst,) = [p for p in points if p["auto_over_best"] == claim["after_value"]][:1]
assert "%u %s rows of %u plots" % (worst["records"], "sorted" if worst["sorted"] else "random",
                                   worst["plots"]) in claim["figure"], claim
' <"$dir/out" || fail 'the JSON of the sweep'
fi
# Each choice that is not good enough stands in a table of its own, with the spread of its rivals.
"$program" --sweep --sweep-to 2048 --iterations 1 --warmup 0 >"$dir/out" 2>"$dir/err"
awk '/ FAILED$/ { judged++ } / [1-9][0-9]*$/ && told { rows++ } /^FAILED, with/ { told = 1 } /^claim/ { told = 0 }
     END { exit judged == rows ? 0 : 1 }' "$dir/out" || fail 'the choices that were slower'

expect 2 --variant nosuch
grep -q 'no such variant: nosuch' "$dir/err" || fail 'an unknown variant goes unnamed'
expect 2 --records x
expect 2 --records 0
expect 2 --genera 4294967295 --variant lookup-fused # sums and products of sizes that wrap
expect 2 --plots 268435456 --embed 4096
expect 2 --seed ' -1'
expect 0 --preset small --iterations 1 --batch 268435456 --variant batch-collated --verify
expect 2 --backend metal
expect 2 --bogus
expect 2 --embed 12
expect 0 --help
grep -q -- '--iterations N' "$dir/out" || fail '--help lacks an option'
exit $failed
