#!/usr/bin/env bash
# Coverage-guided fuzzing of the spool reader, the ingest, and the readers of unwind tables, of kept runs and of cubins under the
# address and undefined behaviour sanitizers: scripts/fuzz.sh [SECONDS_EACH]. What it finds goes to
# build/fuzz/artifacts; a minimised corpus worth keeping is merged into tests/fuzz/corpus (corpus_cfi, corpus_run, corpus_cubin)
# by hand.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-600}
targets=(fuzz_spool fuzz_ingest fuzz_cfi fuzz_run fuzz_cubin)
cmake -S . -B build/fuzz -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DPERFKIT_FUZZ=ON -DPERFKIT_CUDA_KERNELS=OFF -DPERFKIT_CUDA_COLLECTOR=OFF \
    -DPERFKIT_SANITIZE=address,undefined,fuzzer-no-link >/dev/null
cmake --build build/fuzz --target "${targets[@]}" >/dev/null
mkdir -p build/fuzz/artifacts
for target in "${targets[@]}"; do
    mkdir -p "build/fuzz/corpus_$target"
    corpus=corpus length=4096
    case $target in fuzz_cfi | fuzz_run | fuzz_cubin) corpus=corpus_${target#fuzz_} ;; esac
    [[ $target == fuzz_cubin ]] && length=16384
    bin=$(find build/fuzz -type f -name "$target" -perm -u+x | head -n 1)
    UBSAN_OPTIONS=halt_on_error=1 "$bin" -max_total_time="$seconds" -max_len=$length -print_final_stats=1 \
        -artifact_prefix=build/fuzz/artifacts/ "build/fuzz/corpus_$target" "tests/fuzz/$corpus"
done
