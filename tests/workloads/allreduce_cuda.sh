#!/bin/sh
# allreduce on GPUs by two ranks, which share one where there is no second, and through NCCL where it can be:
# every variant verified, and a capture of the ranks complete, with NCCL's kernels on each. Skipped (77)
# without a CUDA device or where the program was built without CUDA.
# usage: allreduce_cuda.sh PROGRAM PERFKIT
. "$(dirname "$0")/program.sh"
perfkit=$2
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT

quick='--backend cuda --preset small --iterations 2 --warmup 1'
ranks=2
if ! "$program" $quick --ranks $ranks --variant host-overlap >"$dir/out" 2>&1; then
    grep -q 'no device for --backend cuda' "$dir/out" && echo "SKIP $(cat "$dir/out")" && exit 77
    fail 'a first run'
    exit 1
fi
# Every way, with the losses, gradients and weights of one process; NCCL needs a GPU for each rank.
expect 0 $quick --ranks $ranks --verify
cat "$dir/out"
# Sizes of a step whose all-reduces are worth it.
expect 0 --backend cuda --ranks $ranks --sequences 16 --length 128 --width 512 --layers 4 --vocabulary 8192 \
    --bucket 4M --iterations 5
cat "$dir/out"

"$perfkit" run -q -o "$dir/ranks.sqlite" -- "$program" $quick --ranks $ranks --variant overlap >"$dir/out" 2>"$dir/err" ||
    fail 'captured'
nccl=1
grep -q 'not available' "$dir/out" && nccl=0
"$perfkit" report --format json "$dir/ranks.sqlite" >"$dir/report" 2>"$dir/err"
python3 -c 'import json, sqlite3, sys
path, report, ranks, nccl = sys.argv[1], json.load(open(sys.argv[2])), int(sys.argv[3]), int(sys.argv[4])
assert report["trust"]["complete"] is True, report["trust"]["statements"]
db = sqlite3.connect(path)
assert db.execute("SELECT count(DISTINCT rank) FROM process WHERE rank NOT NULL").fetchone() == (ranks,)
kernels = db.execute("""SELECT p.rank, count(*) FROM kernel k JOIN launch_config c ON c.id = k.config
    JOIN string n ON n.id = coalesce(c.demangled, c.name) JOIN stream s ON s.id = k.stream
    JOIN process p ON p.id = s.process WHERE n.value LIKE "%nccl%AllReduce%" GROUP BY 1""").fetchall()
print("NCCL kernels of each rank:", kernels)
assert not nccl or ranks == 1 or (len(kernels) == ranks and len({k[1] for k in kernels}) == 1), kernels
' "$dir/ranks.sqlite" "$dir/report" $ranks $nccl || fail 'what a capture sees of ranks'
exit $failed
