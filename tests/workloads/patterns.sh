#!/bin/sh
# The program as a user runs it: every variant verified on OpenCL and on the CPU or excused with a
# reason, JSON that a JSON reader takes, errors that name themselves, and a capture of all of it
# whose books balance.  usage: patterns.sh PROGRAM PERFKIT
. "$(dirname "$0")/program.sh"
perfkit=$2

quick='--preset small --iterations 1 --warmup 0'
backends=cpu
"$program" $quick --variant launch-many --backend opencl >/dev/null 2>&1 && backends='opencl cpu'

for backend in $backends; do
    expect 0 $quick --verify --backend $backend
    grep -q 'FAILED' "$dir/out" && fail 'a comparison failed and the status was 0'
    grep -q 'batch-large: does not fit: .*memory' "$dir/out" || fail 'the large batch fitted'
    grep -q 'graph-dynamic: no graph (.*), launched one by one' "$dir/out" || fail 'no reason'
    # without the limit the large batch fits; odd sizes
    expect 0 $quick --verify --backend $backend --memory-limit 0 --large-batch 777 \
        --micro-batch 100 --features 33 --gemm-size 65 --gemm-count 3 --width 34 --samples 1 \
        --floats 1 --launches 1 --chain-floats 300 --copy-bytes 4 --batches 1 --batch-bytes 4
    grep -q '^batch-large .* ok$' "$dir/out" || fail 'the large batch without a limit'
    "$program" --list-variants | while read -r variant _; do
        "$program" $quick --variant "$variant" --backend $backend >"$dir/one" 2>&1 ||
            { echo "FAILED: --variant $variant"; cat "$dir/one"; exit 1; }
        grep -qE "^$variant( |$)" "$dir/one" || { echo "FAILED: no row of $variant"; exit 1; }
    done || failed=1
done

if command -v python3 >/dev/null; then
    expect 0 --preset small --iterations 2 --verify --json
    python3 -c 'import json, sys
report = json.load(sys.stdin)
rows = [r for r in report["results"] if "skipped" not in r]
assert rows and all(r["verified"] and r["wall_ns"]["median"] > 0 for r in rows)
assert all(r["skipped"] for r in report["results"] if "skipped" in r)
claims = {c["claim"] for c in report["claims"]}
assert claims >= {"pinned memory", "preallocation", "batched GEMM", "CUDA graphs, end to end"}
assert all(c["because"] for c in report["claims"] if c["after_value"] is None)
assert all(c["because"] for c in report["claims"] if c["verdict"] in ("differs", "cannot be shown"))
verdicts = {c["claim"]: c["verdict"] for c in report["claims"]}
assert verdicts["gradient accumulation"] == "reached", verdicts
assert verdicts["a graph that cannot be captured"] == "reached", verdicts
assert report["copy_bytes_per_s"] > 0
' <"$dir/out" || fail 'the JSON'

    # A capture of everything is complete, and all that it launched in a step declared its work.
    "$perfkit" run -q -o "$dir/capture.sqlite" -- "$program" $quick >"$dir/out" 2>"$dir/err" ||
        fail 'perfkit run'
    "$perfkit" report --format json "$dir/capture.sqlite" >"$dir/out" 2>"$dir/err" ||
        fail 'perfkit report'
    python3 -c 'import json, sys
report = json.load(sys.stdin)
assert report["trust"]["complete"] is True, report["trust"]["statements"]
assert any(r["name"] == "step" for r in report["ranges"]["rows"]), report["ranges"]
' <"$dir/out" || fail 'the capture'
fi

expect 2 --variant nosuch
grep -q 'no such variant: nosuch' "$dir/err" || fail 'an unknown variant goes unnamed'
expect 2 --floats 0
expect 2 --gemm-size 2147483648 --gemm-count 4 --variant gemm-loop
expect 2 --batch-bytes 16G --variant alloc-once
grep -q -- '--batch-bytes 16G: not a number that it takes: give one from 4 to ' "$dir/err" ||
    fail 'a number too large says nothing'
expect 2 --width 33
expect 2 --backend metal
expect 0 --help
grep -q -- '--memory-limit BYTES' "$dir/out" || fail '--help lacks an option'
expect 0 $quick --gemm library --variant gemm-loop --backend cpu
grep -q 'gemm-loop: not available: cuBLAS is for CUDA only' "$dir/out" || fail 'cuBLAS on a CPU'
exit $failed
