#!/usr/bin/env bash
# Builds with warnings as errors and tests, on a bare machine: installs what the tests need first. Without
# an option, what fits into ten minutes on two cores: the release build, unit tests, the command line,
# goldens, and the programs that are captured end to end. With --all also the long tests, browsers and
# corpora, the sanitizers, and the build without CUDA. What was skipped is listed at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
"" | --all) ;;
*)
    echo "usage: scripts/check.sh [--all]" >&2
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
tested=() # presets
left=()   # parts that were not run, and why
step() { printf '\n== %s (%d s)\n' "$1" $((SECONDS - started)); }

# Lists, by reason, the tests (and cases within tests) that the logs of ctest report as skipped.
skips() { # PRESET
    local log=build/$1/Testing/Temporary/LastTest.log
    [ -e "$log" ] || return 0
    awk -v preset="$1" '
        function note(reason) {
            sub(/^[^:]*: (no device for --backend )?cuda[^:]*: /, "", reason)
            sub(/^cuda: /, "", reason)
            sub(/: try --backend auto$/, "", reason)
            if (!((reason, name) in seen)) {
                seen[reason, name] = 1
                tests[reason] = tests[reason] " " name
            }
        }
        /^[0-9]+\/[0-9]+ Testing: / { name = $3; last = ""; reasons = 0 }
        /^(SKIP|skipped|skip)[: ]/ { text = $0; sub(/^[A-Za-z]+[: ]+/, "", text); note(text); reasons++ }
        / \.\.\. skipped / { text = $0; sub(/.* \.\.\. skipped ./, "", text); sub(/.$/, "", text); note(text); reasons++ }
        /^OK \(skipped=/ && !reasons { note("the test does not print why") }
        /^Test Pass Reason:/ { skipped = 1 }
        /^Skip return code=77|^Skip regular expression/ { if (!reasons) note(last) }
        !/^<end of output>|^-----|^Test |^$/ { last = $0 }
        END { for (reason in tests) printf "  %s: %s:%s\n", preset, reason, tests[reason] }
    ' "$log" | sort
}

finish() {
    local status=$? preset line
    if [ ${#tested[@]} -gt 0 ]; then
        step "skipped"
        for line in "${LEFT_OUT[@]}" "${left[@]}"; do echo "  $line"; done
        for preset in "${tested[@]}"; do skips "$preset"; done
    fi
    if [ $status = 0 ]; then step "all passed"; else step "FAILED"; fi
}
trap finish EXIT

# Half of a test's time is waiting: two tests for each core.
test_in() { # PRESET [ctest options]
    local preset=$1
    shift
    tested+=("$preset")
    ctest --test-dir "build/$preset" -j $((2 * jobs)) --output-on-failure "$@"
}

# Most of the build without CUDA is file by file what the release is made of.
configure=(-DPERFKIT_WERROR=ON)
if command -v ccache >/dev/null; then
    configure+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    export CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=$PWD
fi
# Of the kernels' architectures the oldest and the newest, unless a GPU is there to run them.
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
if [ "${1:-}" != --all ]; then
    step "release: tests"
    left+=("long tests and browsers, sanitizers, the build without CUDA: scripts/check.sh --all runs them")
    test_in release -LE 'browser|long'
    exit 0
fi
step "release: every test"
test_in release

step "address and undefined behaviour sanitizers; the CUDA collector without the CUDA kernels"
build asan
test_in asan -LE 'gpu|browser|plain|text'

step "thread sanitizer: collector and spool"
build tsan tsan_tests
test_in tsan -L tsan

step "what is packaged, without CUDA: it builds, and perfkit doctor runs"
build bare
build/bare/bin/perfkit doctor
