#!/bin/sh
# The program as a user runs it: every variant verified on the best device and on the CPU, odd
# shapes, JSON that a JSON reader takes with the counts that the variants are about, a capture with
# nothing missing, and errors that name themselves.  usage: transformer.sh PROGRAM PERFKIT
. "$(dirname "$0")/program.sh"
perfkit=$2

quick='--preset small --iterations 1 --warmup 0'
# The loss falls from step to step of the same batch, and every variant's losses, gradients and
# weights are those of training in double precision: --verify checks both.
expect 0 $quick --verify --backend auto
grep -q 'FAILED' "$dir/out" && fail 'a comparison failed and the status was 0'
grep -q '^cpu-512 .* ok$' "$dir/out" || fail 'no row of cpu-512'
expect 0 $quick --verify --backend cpu

# More layers, tokens that repeat, sides that fill no tile, above and below 256.
for backend in auto cpu; do
    for variant in naive ladder-tiles tuned tuned-batched; do
        expect 0 --sequences 3 --length 19 --width 36 --heads 4 --layers 3 --vocabulary 7 --seed 7 \
            --iterations 1 --warmup 0 --verify --backend $backend --variant $variant
        expect 0 --sequences 1 --length 2 --width 8 --heads 8 --layers 1 --vocabulary 300 \
            --iterations 1 --warmup 0 --verify --backend $backend --variant $variant
    done
done

for variant in $("$program" --list-variants | cut -d' ' -f1); do
    expect 0 $quick --backend cpu --variant "$variant"
    grep -q "^$variant " "$dir/out" || fail "no row of $variant"
done

expect 0 $quick --iterations 3 --backend cpu --verify --json
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys
report = json.load(sys.stdin)
rows = {r["variant"]: r for r in report["results"] if "skipped" not in r}
assert [r["variant"] for r in report["results"] if "skipped" in r] == ["batched-cublas"]
sequences, length, vocabulary, width = 2, 16, 200, 64
tables = 4 * width * (vocabulary + length)
tokens = 4 * (length + 1)
losses = 4 * sequences * length
probabilities = 4 * length * vocabulary
rows_bytes = 4 * length * width

# Ten matrices for each sequence, and none after the first step from a pool.
assert rows["naive"]["allocations"] == rows["alloc-per-op"]["allocations"] == 10 * sequences
assert rows["tuned"]["allocations"] == rows["pool"]["allocations"] == 0
assert 0 < rows["pool"]["pool_allocations"] <= 10, rows["pool"]
# What moves in a step.
moved = {name: row["transfer_bytes"] for name, row in rows.items()}
assert moved["tuned"] == moved["async"] == moved["blocking"] == sequences * tokens + losses
assert moved["embed-host"] - moved["embed-device"] == sequences * (tables + rows_bytes)
assert moved["reupload"] - moved["cached"] == sequences * probabilities
assert moved["naive"] == sequences * (tokens + tables + rows_bytes + 2 * probabilities)
assert moved["ladder-embed"] > moved["ladder-cached"] > moved["ladder-loss"] == moved["tuned"]
# The same work by other tiles, and the same curve by every step of the ladder.
assert rows["tile16"]["flop"] == rows["tile-adaptive"]["flop"] == rows["ladder-pool"]["flop"]
assert rows["tuned-batched"]["launches"] < rows["tuned"]["launches"]
for row in rows.values():
    assert row["wall_ns"]["median"] > 0 and row["last_loss"] < row["first_loss"], row
    assert row["verified"] and row["training"]["verified"], row
curve = [row["last_loss"] for name, row in rows.items() if name.startswith("ladder")]
assert max(curve) - min(curve) < 1e-4, curve
for name in "breakdown-naive", "breakdown-tuned":
    row = rows[name]
    total = sum(c["mean_ns"] for c in row["components"])
    assert abs(total - row["components_total_ns"]) <= 1e-6 * total
    assert abs(sum(c["share"] for c in row["components"]) - 1) < 1e-6
for name in "cpu-512", "cpu-384":
    row = rows[name]
    assert row["no_cache_counters"] or row["cache_references"] >= row["cache_misses"] >= 0, row
assert [r["variant"] for r in report["ladder"]][::7] == ["naive", "tuned"]
claims = {c["claim"] for c in report["claims"]}
assert claims >= {"all together", "embeddings", "read-only access", "transfers", "allocation",
                  "tiles", "model shape", "host cache", "per batch: total"}, claims
assert all(c["because"] for c in report["claims"] if c["verdict"] == "cannot be shown")
' <"$dir/out" || fail 'the JSON'

    expect 0 $quick --backend cpu --variant tuned --wall-only --json
    python3 -c 'import json, sys
row = json.load(sys.stdin)["results"][0]
assert row["wall_ns"]["count"] == 1 and row["kernel_ns"]["count"] == 0, row
' <"$dir/out" || fail 'kernels were timed with --wall-only'

    # A capture of everything is complete.
    for backend in auto cpu; do
        "$perfkit" run -q -o "$dir/$backend.sqlite" -- "$program" $quick --backend $backend \
            >"$dir/out" 2>"$dir/err" || fail "captured on $backend"
        "$perfkit" report --format json "$dir/$backend.sqlite" >"$dir/out" 2>"$dir/err"
        python3 -c 'import json, sys
report = json.load(sys.stdin)
assert report["trust"]["complete"] is True, report["trust"]["statements"]
assert any(r["name"] == "backward" for r in report["ranges"]["rows"]), report["ranges"]
' <"$dir/out" || fail "the capture on $backend"
    done

    # What a capture sees of each step is what the variants are about.
    if "$program" $quick --variant tuned --backend opencl >/dev/null 2>&1; then
        for variant in naive tuned; do
            "$perfkit" run -q -o "$dir/$variant.sqlite" -- "$program" $quick --warmup 1 \
                --backend opencl --variant $variant >"$dir/out" 2>"$dir/err" ||
                fail "captured $variant"
        done
        python3 -c 'import sqlite3, sys
def steps(path):
    db = sqlite3.connect(path)
    ranges = db.execute("""SELECT range.start, range.start + range.duration FROM range
                           JOIN string ON string.id = range.name
                           WHERE string.value = "step" ORDER BY range.start""").fetchall()
    return [(db.execute("SELECT sum(bytes) FROM transfer WHERE start BETWEEN ? AND ?", r)
               .fetchone()[0],
             db.execute("SELECT count(*) FROM allocation WHERE start BETWEEN ? AND ?", r)
               .fetchone()[0]) for r in ranges]
naive, tuned = steps(sys.argv[1]), steps(sys.argv[2])
assert len(naive) == len(tuned) == 2 and set(naive) == {(170120, 20)}, naive
assert set(tuned) == {(2 * 4 * 17 + 4 * 32, 0)}, tuned
' "$dir/naive.sqlite" "$dir/tuned.sqlite" || fail 'what a capture sees of a step'
    fi
fi

expect 0 $quick --backend cpu --variant batched-cublas
grep -q 'batched-cublas: not available: cuBLAS is for CUDA only' "$dir/out" || fail 'cuBLAS on a CPU'

expect 2 --variant nosuch
grep -q 'no such variant: nosuch' "$dir/err" || fail 'an unknown variant goes unnamed'
expect 2 --width 50
grep -q 'take 512 and 8' "$dir/err" || fail 'a width that the heads cannot share goes unnamed'
expect 2 --heads 7
expect 2 --layers 9
expect 2 --length 1
expect 2 --vocabulary 1048576 --length 4096
grep -q '2^31' "$dir/err" || fail 'a matrix too large goes unnamed'
expect 2 --backend metal
expect 0 --help
grep -q -- '--sequences N' "$dir/out" || fail '--help lacks an option'
exit $failed
