# Sourced by the tests of the workloads: a program as a user runs it. Sets program, dir (removed at
# the end) and failed; the test ends with `exit $failed`.
set -u
program=$1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0

fail()
{
    echo "FAILED: $1"
    cat "$dir/out" "$dir/err"
    failed=1
}

# expect STATUS ARGUMENT...: runs the program, keeps its output in $dir/out and $dir/err.
expect()
{
    status=$1
    shift
    "$program" "$@" >"$dir/out" 2>"$dir/err"
    got=$?
    [ "$got" -eq "$status" ] || fail "$* ended with $got instead of $status"
}
