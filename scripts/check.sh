#!/usr/bin/env bash
# Every test, on a bare machine: installs what the tests need, builds with warnings as errors and
# runs all of them; then again under the sanitizers and without CUDA. What a machine lacks (a GPU, a
# browser) skips with the reason. `scripts/check.sh quick` does the first part only.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
"" | quick) ;;
*)
    echo "usage: scripts/check.sh [quick]" >&2
    exit 2
    ;;
esac
. scripts/packages.sh

# shellcheck disable=SC2086
install_packages required $BUILD_PACKAGES $RUN_PACKAGES $TEST_PACKAGES
# shellcheck disable=SC2086
install_packages optional $TEST_EXTRAS
# shellcheck disable=SC2086
install_npm "$PWD/build/npm" $TEST_READERS
# shellcheck disable=SC2086
unpack_packages "$PWD/build/programs" $TEST_PROGRAMS

jobs=$(nproc)
started=$SECONDS
# A test that fails is run once more: some wait for other processes, and on a loaded machine one may come
# late. ctest says so when a second try was needed. Half of a test's time is waiting: two for each core.
test_in() { # PRESET [ctest options]
    local preset=$1
    shift
    ctest --test-dir "build/$preset" -j $((2 * jobs)) --output-on-failure --repeat until-pass:2 "$@"
}
step() { printf '\n== %s (%d s)\n' "$1" $((SECONDS - started)); }

# Most of the build without CUDA is file by file what the release is made of.
configure=(-DPERFKIT_WERROR=ON)
if command -v ccache >/dev/null; then
    configure+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    export CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=$PWD
fi
# Of the kernels' architectures the least and the newest, unless a GPU is there to run them.
[ -e /dev/nvidiactl ] || configure+=("-DCMAKE_CUDA_ARCHITECTURES=75;90")

build() { # PRESET [targets]
    local preset=$1 log
    shift
    log=build/$preset.log
    mkdir -p build
    if ! { cmake --preset "$preset" "${configure[@]}" &&
        cmake --build "build/$preset" -j "$jobs" --target "${@:-all}"; } >"$log" 2>&1; then
        grep -E -A12 'error|FAILED|Error' "$log" | head -n 60
        echo "check: building $preset failed; the whole log is $log"
        exit 1
    fi
}

step "release: build with warnings as errors"
build release
grep -E '^-- (CUDA|OpenCL)' build/release.log
step "release: every test"
test_in release
[ "${1:-}" = quick ] && exit 0

step "address and undefined behaviour sanitizers; the CUDA collector without the CUDA kernels"
build asan
test_in asan -LE 'gpu|browser|plain|text'

step "thread sanitizer: collector and spool"
build tsan tsan_tests
test_in tsan -L tsan

step "without the CUDA collector and the CUDA kernels"
build bare
test_in bare -LE 'browser|e2e|text'

step "done"
