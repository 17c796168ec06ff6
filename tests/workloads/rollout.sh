#!/bin/sh
# The program as a user runs it: every variant verified on the best device and on the CPU, the
# fallback's warnings, a memory limit, JSON that a JSON reader takes, errors that name themselves,
# and a capture whose trust block is complete and whose phases cover the time.
# usage: rollout.sh PROGRAM [PERFKIT]
. "$(dirname "$0")/program.sh"
perfkit=${2:-}

small='--preset small --iterations 1 --warmup 0'

expect 0 --preset small --verify --iterations 2
[ -s "$dir/err" ] && fail 'a warning without need'
grep -q 'half precision .*\(PASSED\|FAILED\): ' "$dir/out" || fail 'no verdict on half precision'
expect 0 $small --verify --backend cpu
expect 0 $small --verify --backend cpu --grid 13 --channels 24 --layers 2 --realisations 1 --batch 3

"$program" --list-variants >"$dir/variants"
while read -r variant _; do
    "$program" $small --backend cpu --variant "$variant" >"$dir/one" 2>&1 ||
        { echo "FAILED: --variant $variant"; cat "$dir/one"; failed=1; }
    grep -qE "^$variant( |$)" "$dir/one" || { echo "FAILED: no row of $variant"; failed=1; }
done <"$dir/variants"

# Each step down has one warning, and the rest still runs and verifies.
expect 0 $small --verify --backend cpu --without fp16 --variant bf16
[ "$(grep -c 'has no bf16: computing in fp16 instead' "$dir/err")" -eq 1 ] || fail 'bf16 to fp16'
[ "$(grep -c 'has no fp16: computing in fp32 instead' "$dir/err")" -eq 1 ] || fail 'fp16 to fp32'
expect 0 $small --verify --backend cpu --without bf16
[ "$(wc -l <"$dir/err")" -eq 1 ] || fail 'more or fewer than one warning'
grep -q '^bf16  *f16 ' "$dir/out" || fail 'bf16 did not become fp16'

# 1.6 MiB hold two initial states in fp16 and not three, and not fp32.
expect 0 $small --backend cpu --memory-limit 1800K
grep -q '^batch-2  *f16  *4  *[0-9]' "$dir/out" || fail 'batch 2 does not fit'
grep -q '^  batch-3: out of memory' "$dir/out" || fail 'batch 3 fits'
grep -q '^batch-2 .* exceeds it' "$dir/out" || fail 'the next batch is not projected'

expect 0 --preset small --iterations 2 --verify --json
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys
report = json.load(sys.stdin)
rows = {r["variant"]: r for r in report["results"] if "skipped" not in r}
assert len(rows) >= 10 and all(r["verified"] and r["wall_ns"]["median"] > 0 for r in rows.values())
errors = [rows[v]["errors_against_reference"]["norm_relative"] for v in ("fp32", "fp16", "bf16")]
assert errors[0] < errors[1] < errors[2], errors
for row in rows.values(): # the shortest launch is no longer than the mean one of any part
    means = [p["step_ns"] / p["launches"] for p in row["parts"].values()]
    assert 0 <= row["empty_launch_ns"] <= min(means), row
beyond = [r for r in report["results"] if r["variant"] == "beyond-cache"][0]
assert "not available" in beyond["skipped"] and beyond["images"] > 1000, beyond
memory = rows["fp32"]["memory_bytes"]
assert set(memory) == {"states", "weights", "activations", "workspace", "trajectories"}
assert memory["activations"] > sum(memory.values()) / 2
assert rows["fp16"]["memory_bytes"]["activations"] * 2 == memory["activations"]
claims = {c["claim"]: c for c in report["claims"]}
assert set(claims) >= {"half precision", "normalisation", "own convolution by tiles",
                       "larger batch", "memory breakdown", "memory bound, not compute bound"}
assert all(c["because"] for c in report["claims"] if c["verdict"] in ("differs", "cannot be shown"))
share = memory["activations"] / sum(memory.values())
assert abs(claims["memory breakdown"]["after_value"] - share) < 1e-6
' <"$dir/out" || fail 'the JSON'

    expect 0 $small --steps 4 --verify-steps 1 --compare-steps 2 --json
    python3 -c 'import json, sys
steps = {r["variant"]: r["steps"] for r in json.load(sys.stdin)["results"] if "skipped" not in r}
assert all(n == (4 if v in ("fp32", "fp16", "bf16") else 2) for v, n in steps.items()), steps
' <"$dir/out" || fail '--compare-steps'

    expect 0 $small --backend cpu --memory-limit 1800K --json
    python3 -c 'import json, sys
(claim,) = [c for c in json.load(sys.stdin)["claims"] if c["claim"].startswith("capacity")]
assert claim["verdict"] == "reached" and claim["before_value"] < 1800 * 1024, claim
assert claim["after_value"] > 1800 * 1024 and "out of memory" in claim["figure"], claim
' <"$dir/out" || fail 'the claim about capacity'
    expect 0 $small --backend cpu --without fp16 --variant bf16 --json
    python3 -c 'import json, sys
(claim,) = [c for c in json.load(sys.stdin)["claims"] if c["claim"] == "precision fallback"]
assert claim["after_value"] == 2 and claim["verdict"] == "reached", claim
' <"$dir/out" || fail 'the claim about falling back'
fi

expect 2 --variant nosuch
grep -q 'no such variant: nosuch' "$dir/err" || fail 'an unknown variant goes unnamed'
expect 2 --layers 1
expect 2 --layers 17
expect 2 --norm-groups 5
expect 2 --memory-limit 8X
expect 2 --memory-limit nan
expect 2 --grid 16384 --channels 4096 --realisations 4096 --batch 4096 # 2^64 elements
expect 2 --grid 100000
expect 2 --backend metal
expect 0 --help
grep -q -- '--realisations N' "$dir/out" || fail '--help lacks an option'

[ -n "$perfkit" ] && command -v python3 >/dev/null || exit $failed
"$perfkit" run -q -o "$dir/x.sqlite" -- "$program" $small --json >"$dir/out" 2>"$dir/err" ||
    fail 'the program under perfkit'
"$perfkit" report --format json "$dir/x.sqlite" >"$dir/report" 2>"$dir/err" || fail 'the report'
python3 - "$dir/out" "$dir/report" "$dir/x.sqlite" >"$dir/err" 2>&1 <<'PYTHON' || fail 'the capture'
import json, sqlite3, sys
program, report = (json.load(open(path)) for path in sys.argv[1:3])
assert report["trust"]["complete"], report["trust"]
rows = [r for r in program["results"] if "skipped" not in r]
ranges = {r["name"]: r for r in report["ranges"]["rows"] if r["domain"] is None}
measured = sum(r["wall_ns"]["median"] for r in rows)
assert ranges["rollout"]["count"] == len(rows), ranges["rollout"]
assert ranges["rollout"]["total_ns"] >= 0.98 * measured, (ranges["rollout"], measured)
assert ranges["step"]["count"] == sum(r["steps"] for r in rows), ranges["step"]
launches = sum(p["launches"] for p in rows[0]["parts"].values())
assert ranges["fp32"]["count"] == 3 and launches == 3 * 5 + 1 + 2, launches
if program["backend"] != "cpu":
    # Every operation of every step of every rollout is a launch inside the step.
    assert ranges["step"]["kernels"] == launches * ranges["step"]["count"], ranges["step"]
    # The allocations in the range of each kind of memory are what the program says they are.
    allocated = dict(sqlite3.connect(sys.argv[3]).execute("""
        SELECT string.value, sum(allocation.bytes) FROM allocation JOIN range
        ON allocation.start BETWEEN range.start AND range.start + range.duration
        JOIN string ON string.id = range.name WHERE range.domain IS NULL GROUP BY string.value"""))
    for kind in rows[0]["memory_bytes"]:
        expected = sum(r["memory_bytes"][kind] for r in rows)
        assert allocated[kind] == expected, (kind, allocated, expected)
PYTHON
exit $failed
