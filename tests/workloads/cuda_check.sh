#!/bin/sh
# A workload on a GPU: every variant verified, the capture of a run complete and its phases covering
# the time, and nothing for compute-sanitizer to say where that is installed. Skipped (77) without a
# CUDA device or where the program was built without CUDA.
# usage: cuda_check.sh PROGRAM PERFKIT [OPTION...]
# In the environment: SANITIZED_OPTIONS, more options for the runs under compute-sanitizer, which
# needs device memory of its own; SANITIZER_LIMIT, the seconds that each of those runs may take.
set -u
program=$1
perfkit=$2
shift 2
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

if "$program" --backend cuda --preset small --iterations 1 --warmup 0 >"$dir/out" 2>&1; then
    :
elif grep -q 'no device for --backend cuda' "$dir/out"; then
    echo "SKIP $(cat "$dir/out")"
    exit 77
else
    echo 'FAILED: a first run'
    cat "$dir/out"
    exit 1
fi
failed=0

# check WHAT COMMAND...: runs it; says what failed and prints its output.
check()
{
    what=$1
    shift
    "$@" >"$dir/out" 2>&1 && return
    echo "FAILED: $what: $*"
    cat "$dir/out"
    failed=1
}

run="--backend cuda --preset small --iterations 2 --warmup 1"
check 'a comparison' "$program" $run --verify "$@"
cat "$dir/out"

check 'the phases in a capture' python3 "$(dirname "$0")/phases.py" "$perfkit" "$program" cuda
cat "$dir/out"

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
if [ -n "$sanitizer" ]; then
    for tool in memcheck racecheck; do # what the driver refuses (memory, a graph) is on purpose
        check "$tool within ${SANITIZER_LIMIT:-240} s" timeout "${SANITIZER_LIMIT:-240}" \
            "$sanitizer" --tool $tool --error-exitcode 9 --report-api-errors no \
            "$program" --backend cuda --preset small --iterations 1 --warmup 0 "$@" \
            ${SANITIZED_OPTIONS:-}
        echo "$tool: $(tail -n 1 "$dir/out")"
    done
else
    echo 'no compute-sanitizer here: not checked'
fi
exit $failed
