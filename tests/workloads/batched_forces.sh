#!/bin/sh
# The program as a user runs it: every variant verified on the best device and on the CPU, larger
# molecules, JSON that a JSON reader takes, a capture with nothing missing, and errors that name
# themselves.  usage: batched_forces.sh PROGRAM PERFKIT
. "$(dirname "$0")/program.sh"
perfkit=$2

expect 0 --preset small --verify
grep -q 'FAILED' "$dir/out" && fail 'a comparison failed and the status was 0'
expect 0 --preset small --verify --backend cpu
# Molecules of unlike sizes, a last batch that is not full, and edges that fill no tile.
for backend in auto cpu; do
    expect 0 --set mixed --atoms 17 --molecules 5 --batch 2 --width 32 --functions 8 --layers 3 \
        --seed 7 --iterations 1 --warmup 0 --verify --backend $backend
    expect 0 --set mixed --atoms 3 --molecules 3 --batch 3 --width 64 --functions 12 --layers 1 \
        --iterations 1 --warmup 0 --verify --backend $backend
done

for variant in $("$program" --list-variants | cut -d' ' -f1); do
    expect 0 --preset small --batch 4 --iterations 1 --variant "$variant"
    grep -q "^$variant " "$dir/out" || fail "no row of $variant"
done

expect 0 --preset small --molecules 16 --iterations 1 --verify --json
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys
report = json.load(sys.stdin)
assert report["difference_error"] <= 1e-5
assert all(r["verified"] and r["wall_ns"]["median"] > 0 for r in report["results"])
tables = [r for r in report["results"] if "components" in r]
assert tables
for row in tables:
    total = sum(c["mean_ns"] for c in row["components"])
    assert abs(total - row["components_total_ns"]) <= 1e-6 * total
    assert abs(sum(c["share"] for c in row["components"]) - 1) < 1e-6
claims = {c["claim"] for c in report["claims"]}
assert claims == {"radial basis and cutoff", "edge features", "both fused, forward pass",
                  "both fused, with forces", "molecules together", "component table",
                  "the real cause: backward"}, claims
assert all(c["verdict"] and c["seed"] for c in report["claims"])
' <"$dir/out" || fail 'the JSON'
    for backend in auto cpu; do
        "$perfkit" run -q -o "$dir/$backend.sqlite" -- "$program" --preset small --batch 2 \
            --iterations 1 --backend $backend >"$dir/out" 2>"$dir/err" || fail "captured on $backend"
        "$perfkit" report --format json "$dir/$backend.sqlite" >"$dir/out" 2>"$dir/err"
        python3 -c 'import json, sys
assert json.load(sys.stdin)["trust"]["complete"]' <"$dir/out" || fail "the trust block on $backend"
    done
fi

expect 2 --variant nosuch
grep -q 'no such variant: nosuch' "$dir/err" || fail 'an unknown variant goes unnamed'
expect 2 --width 48
expect 2 --functions 6
expect 2 --functions 132
expect 2 --layers 9
expect 2 --molecules 0
expect 2 --set water
expect 0 --help
grep -q -- '--molecules N' "$dir/out" || fail '--help lacks an option'
exit $failed
