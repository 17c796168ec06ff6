#!/bin/bash
# Runs one case: cases/NAME.sh in a fresh folder, and compares what it printed with NAME.out, its
# standard error with NAME.err (both empty when there is no such file) and its status with the
# `# status N` line of the script (0 without one). What differs from machine to machine is replaced
# on both streams. Status 77 skips; the script says why on stdout.
#
#   run_case.sh CASE.sh BINDIR HELPERS [--accept]     --accept writes the expected files
set -u
case_file=$(realpath "$1")
bin=$2
helpers=$3
accept=${4-}
name=$(basename "$case_file" .sh)
expected=$(dirname "$case_file")/$name

work=$(mktemp -d "${TMPDIR:-/tmp}/perfkit-test-XXXXXX")
trap 'chmod -R u+w "$work" 2>/dev/null; rm -rf "$work"' EXIT
mkdir "$work/folder" "$work/tmp"

export PATH="$bin:$helpers:$PATH" TMPDIR="$work/tmp" SCRATCH="$work" HELPERS="$helpers" BIN="$bin"
export LC_ALL=C NO_COLOR=1
unset COLUMNS PERFKIT_DIR PERFKIT_OPTIONS LD_PRELOAD OPENCL_LAYERS CUDA_INJECTION64_PATH \
  NVTX_INJECTION64_PATH PERFKIT_TEST_NETWORK_FS

cd "$work/folder" || exit 1
timeout 600 bash "$case_file" >"$work/out" 2>"$work/err" </dev/null
status=$?
if [ $status = 77 ]; then
  cat "$work/out"
  exit 77
fi

normalise() {
  sed -e "s|$work|SCRATCH|g" -e 's|/perfkit-[A-Za-z0-9]\{6\}\b|/perfkit-XXXXXX|g' \
    -e 's#([0-9.]* [KMG]\{0,1\}i\{0,1\}B)#(SIZE)#g' -e "s|$case_file|CASE|g" \
    -e 's|pid [0-9][0-9]*|pid PID|g' "$1"
}
normalise "$work/out" >"$work/out.seen"
normalise "$work/err" >"$work/err.seen"

wanted=$(sed -n 's/^# status //p' "$case_file")
if [ "$accept" = --accept ]; then
  for stream in out err; do
    rm -f "$expected.$stream"
    [ -s "$work/$stream.seen" ] && cp "$work/$stream.seen" "$expected.$stream"
  done
fi
failed=0
for stream in out err; do
  file=$expected.$stream
  [ -e "$file" ] || file=/dev/null
  if ! diff -u --label "expected $stream" --label "seen $stream" "$file" "$work/$stream.seen"; then
    failed=1
  fi
done
if [ $status != "${wanted:-0}" ]; then
  echo "status $status, expected ${wanted:-0}"
  failed=1
fi
exit $failed
