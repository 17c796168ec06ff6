#!/bin/sh
# Ranks as a user starts them: every way to add up gradients gives those of one process, started by the
# program or as torchrun starts it; a capture has every rank and its operations; a rank that is gone ends
# the others.  usage: allreduce.sh PROGRAM PERFKIT FAKE_NCCL
. "$(dirname "$0")/program.sh"
perfkit=$2
fake=$3
export TMPDIR="$dir"
unset PERFKIT_NCCL
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT

quick='--preset small --iterations 1 --warmup 0'
has_nccl=false
"$program" --ranks 1 --backend cuda $quick --variant overlap >"$dir/out" 2>&1 &&
    ! grep -q 'not available' "$dir/out" && has_nccl=true

# Looked at in the end: a rank whose others never come says whom it waits for, and goes. Its port is none of those that
# the system gives to others (from 32768).
RANK=0 WORLD_SIZE=3 MASTER_PORT=$((20000 + $$ % 10000)) "$program" $quick --backend cpu --patience 4 \
    >"$dir/alone.out" 2>"$dir/alone.err" &
alone=$!

# Losses, gradients and weights are those of one process on the whole batch, the same on all ranks, and
# the loss falls: --verify checks all of it. Sides that fill no tile, buckets that cut through matrices.
expect 0 $quick --verify --backend cpu
grep -q 'FAILED' "$dir/out" && fail 'a comparison failed and the status was 0'
for ranks in 1 3; do
    expect 0 --ranks $ranks --sequences 3 --length 19 --width 36 --heads 4 --layers 3 --vocabulary 7 \
        --seed 7 --bucket 5000 --iterations 1 --warmup 0 --verify --backend cpu --variant host-overlap
done
expect 0 $quick --verify --backend auto --variant host-overlap --ranks 2
expect 0 $quick --verify --backend cpu --variant host-slow-rank --slow-rank 0 --slow-by host --slow-amount 1
grep -q 'rank 0 sleeps 1 ms before each step' "$dir/out" || fail 'the slow rank goes unnamed'
expect 0 $quick --backend cpu --ranks 3 --sequences 4
grep -q '6 sequences' "$dir/out" || fail 'sequences that ranks cannot share'
$has_nccl || grep -q 'overlap: not available: NCCL is for CUDA only' "$dir/out" || fail 'NCCL on a CPU'

expect 0 $quick --backend cpu --verify --json --ranks 3
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys
report = json.load(sys.stdin)
assert report["ranks"] == 3
rows = {r["variant"]: r for r in report["results"] if "skipped" not in r}
assert set(rows) == {r["variant"] for r in report["results"] if r["variant"].startswith("host")}
width, hidden, vocabulary, length = 64, 256, 200, 16
weights = 2 * vocabulary * width + length * width + 4 * width * width + 2 * width * hidden + 4 * width
for row in rows.values():
    assert row["all_reduce_bytes"] == 4 * weights, row
    assert row["verified"] and row["training"]["verified"] and row["replicas"]["verified"], row
    assert row["last_loss"] <= row["first_loss"] and len(row["ranks"]) == 3, row
    assert all(r["exposed_ns"] > 0 and r["all_reduce_ns"] > 0 for r in row["ranks"]), row
pieces = {name: row["all_reduces"] for name, row in rows.items()}
assert pieces["host-buckets-one"] == 1
assert pieces["host-no-overlap"] == pieces["host-overlap"] == -(-4 * weights // (64 << 10)), pieces
assert pieces["host-buckets-small"] == -(-4 * weights // (4 << 10)), pieces
assert rows["host-slow-rank"]["slow_rank"] == 2
assert len({row["last_loss"] for row in rows.values()}) == 1
' <"$dir/out" || fail 'the JSON'
fi

# The way through NCCL, by a library that does what NCCL promises, on memory of the host; and where it fails.
export PERFKIT_NCCL="$fake"
expect 0 $quick --verify --backend cpu --ranks 3
grep -c ' ok .* ok .* ok' "$dir/out" | grep -qx 10 || fail 'variants that were not verified'
grep -q 'not available' "$dir/out" && fail 'NCCL was not used'
expect 0 --sequences 3 --length 19 --width 36 --heads 4 --layers 3 --vocabulary 7 --seed 7 --bucket 5000 \
    --iterations 2 --warmup 0 --verify --backend cpu --variant overlap --ranks 3
FAKE_NCCL_FAILS=ncclCommInitRank expect 0 $quick --backend cpu --variant overlap
grep -q 'overlap: not available: ncclCommInitRank: unhandled system error' "$dir/out" || fail 'NCCL that cannot start'
FAKE_NCCL_FAILS=ncclAllReduce expect 2 $quick --backend cpu --variant overlap
grep -q 'ncclAllReduce: invalid argument' "$dir/err" || fail 'NCCL that fails goes unnamed'
PERFKIT_NCCL=/nowhere expect 0 $quick --backend cpu --variant overlap
grep -q 'no libnccl.so.2 on this machine' "$dir/out" || fail 'NCCL that is not there'
unset PERFKIT_NCCL
# One of a wheel, beside an interpreter on the PATH. The CPU does not look for it by itself.
wheel=$dir/python/lib/python3.12/site-packages/nvidia/nccl/lib
mkdir -p "$wheel" "$dir/python/bin" && cp "$fake" "$wheel/libnccl.so.2"
if ! ldconfig -p 2>/dev/null | grep -q 'libnccl\.so\.2'; then
    PERFKIT_NCCL='' PATH=$dir/python/bin:$PATH expect 0 $quick --verify --backend cpu --variant overlap
    grep -q '^overlap .* ok .* ok .* ok *$' "$dir/out" || fail 'NCCL of a wheel'
fi

# Two ranks that somebody else started, over TCP: as torchrun says who they are (whose agent keeps the port
# for itself), Open MPI and Slurm.
port=$((20000 + $$ % 10000))
export MASTER_ADDR=127.0.0.1
for launcher in 'RANK WORLD_SIZE LOCAL_RANK' 'OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK' \
    'SLURM_PROCID SLURM_NTASKS SLURM_LOCALID'; do
    set -- $launcher
    port=$((port + 2))
    agent=
    [ "$1" = RANK ] && agent=True
    for rank in 1 0; do
        env "$1=$rank" "$2=2" "$3=$rank" MASTER_PORT=$port TORCHELASTIC_USE_AGENT_STORE=$agent \
            "$program" $quick --verify --backend cpu --variant host-overlap >"$dir/out.$rank" 2>"$dir/err" &
        eval "pid$rank=$!"
    done
    wait "$pid0" && wait "$pid1" || fail "two ranks of another launcher: $launcher"
    grep -q '^host-overlap .* ok ' "$dir/out.0" || fail 'rank 0 of another launcher printed nothing'
    [ -s "$dir/out.1" ] && fail 'rank 1 printed something'
done
unset MASTER_ADDR
# One task of Slurm alone is the shell in which ranks are to start.
SLURM_PROCID=0 SLURM_NTASKS=1 expect 0 $quick --backend cpu --variant host-overlap --ranks 2
grep -q '^2 ranks' "$dir/out" || fail 'ranks in a job of one task'

# A capture has all ranks, and their operations with the bytes.
if command -v python3 >/dev/null; then
    "$perfkit" run -q -o "$dir/ranks.sqlite" -- "$program" $quick --ranks 3 --backend auto \
        --variant host-overlap >"$dir/out" 2>"$dir/err" || fail 'captured'
    "$perfkit" report --format json "$dir/ranks.sqlite" >"$dir/out" 2>"$dir/err"
    python3 -c 'import json, sqlite3, sys
report = json.load(open(sys.argv[2]))
assert report["trust"]["complete"] is True, report["trust"]["statements"]
db = sqlite3.connect(sys.argv[1])
ranks = db.execute("SELECT rank, local_rank, world_size FROM process WHERE rank NOT NULL ORDER BY rank")
assert ranks.fetchall() == [(0, 0, 3), (1, 1, 3), (2, 2, 3)]
ops = db.execute("""SELECT p.rank, count(*), sum(r.payload) FROM range r JOIN string n ON n.id = r.name
    JOIN string d ON d.id = r.domain JOIN thread t ON t.id = r.thread JOIN process p ON p.id = t.process
    WHERE d.value = "perfkit.collective" AND n.value = "all_reduce" GROUP BY 1 ORDER BY 1""").fetchall()
assert [o[0] for o in ops] == [0, 1, 2] and len({o[1:] for o in ops}) == 1, ops
assert ops[0][2] == 2 * 304128, ops  # of both measured steps
' "$dir/ranks.sqlite" "$dir/out" || fail 'what a capture sees of ranks'
fi

# A rank that is gone ends the others: nobody hangs.
"$program" --preset small --iterations 1000000 --ranks 3 --backend cpu --variant host-overlap \
    >"$dir/out" 2>"$dir/err" &
launcher=$!
ranks=
while kill -0 $launcher 2>/dev/null && [ "$(echo "$ranks" | wc -w)" -lt 3 ]; do
    ranks=$(cat /proc/$launcher/task/$launcher/children 2>/dev/null) || break
done
if [ -n "$ranks" ]; then
    kill -KILL "$(echo "$ranks" | cut -d' ' -f2)"
    wait $launcher
    [ $? -eq 2 ] || fail 'a rank that was killed'
    grep -q 'rank 1: ended by signal 9' "$dir/err" || fail 'a rank that was killed goes unnamed'
else
    kill $launcher # a kernel that does not list children
fi

wait $alone
[ $? -eq 2 ] || fail 'a rank that is alone'
grep -q 'rank 0 has waited 3 s at port 2.* for 2 of 2 other ranks; it waits 4 s in all' "$dir/alone.err" &&
    grep -q '1 of 3 ranks came to port 2.* within 4 s; rank 1, for one, did not' "$dir/alone.err" || {
    cat "$dir/alone.err"
    fail 'whom a rank waits for goes unsaid'
}
RANK=1 WORLD_SIZE=2 MASTER_PORT=1 expect 2 $quick --backend cpu --patience 1
grep -q 'rank 1: no rank 0 at 127.0.0.1, port 1 .* within 1 s' "$dir/err" || fail 'no rank 0 goes unnamed'
for words in 'RANK=2 WORLD_SIZE=2' 'RANK=-1 WORLD_SIZE=2' 'RANK=one WORLD_SIZE=2' 'RANK=0 WORLD_SIZE=0' 'RANK=0' \
    'WORLD_SIZE=2' 'RANK=0 WORLD_SIZE=99999' 'OMPI_COMM_WORLD_RANK=7 OMPI_COMM_WORLD_SIZE=4'; do
    env $words "$program" $quick --backend cpu >"$dir/out" 2>"$dir/err"
    [ $? -eq 2 ] || fail "$words was taken"
    grep -q 'RANK is .* and .*SIZE is .*: take a rank from 0 on' "$dir/err" || fail "$words goes unexplained"
done
RANK=0 WORLD_SIZE=2 MASTER_PORT=http expect 2 $quick --backend cpu
grep -q 'MASTER_PORT=http: take one from 1' "$dir/err" || fail 'a port that is none'
RANK='' WORLD_SIZE='' expect 0 $quick --backend cpu --variant host-overlap --ranks 1
if [ -w /dev/full ]; then
    for words in "$quick --backend cpu --variant host-overlap" --help; do
        "$program" $words >/dev/full 2>"$dir/err"
        [ $? -eq 2 ] || fail "what cannot be written: $words"
        grep -q 'cannot write the results: No space left on device' "$dir/err" || fail 'a full disk goes unnamed'
    done
fi

expect 2 --variant nosuch
grep -q 'no such variant: nosuch' "$dir/err" || fail 'an unknown variant goes unnamed'
expect 2 --ranks 0
expect 2 --ranks 2 --slow-rank 2
grep -q 'take one from 0 to 1' "$dir/err" || fail 'a slow rank that is none'
expect 2 --width 50
expect 2 --bucket 10
expect 2 --vocabulary 1048576 --length 4096
expect 0 --help
grep -q -- '--ranks N' "$dir/out" || fail '--help lacks an option'
grep -q -- '--slow-rank R .*otherwise$' "$dir/out" || fail '--help gives a slow rank that is none'
exit $failed
