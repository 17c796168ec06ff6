#!/usr/bin/env bash
# From nothing to a report: installs what is missing, builds, captures the hash_embedding workload on
# the best device here (CUDA, else OpenCL, on a machine without a GPU through PoCL) and writes the
# report. Debian 12 / Ubuntu 24.04, as root or with sudo.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

# shellcheck disable=SC2086
install_packages required $BUILD_PACKAGES
build=build/quickstart
log=$build/quickstart.log
mkdir -p "$build"
echo "perfkit: building in $build"
if ! { cmake -S . -B "$build" -G Ninja -DPERFKIT_TESTS=OFF && cmake --build "$build"; } >"$log" 2>&1
then
    tail -n 30 "$log" >&2
    echo "perfkit: the build failed; the whole log is $log" >&2
    exit 1
fi
grep -E '^-- (CUDA|OpenCL)' "$log" || true

# A machine with an NVIDIA driver is not profiled on the CPU in silence.
if [ -e /proc/driver/nvidia/version ] || ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
    if grep -q '^PERFKIT_CUDA_COLLECTOR:BOOL=OFF' "$build/CMakeCache.txt"; then
        echo "perfkit: this machine has an NVIDIA driver, but no cuda.h and cupti.h were found, so" >&2
        echo "perfkit: CUDA programs cannot be recorded. Install the CUDA toolkit (or the pip wheels" >&2
        echo "perfkit: nvidia-cuda-runtime and nvidia-cuda-cupti) and run" >&2
        echo "perfkit:     CUDA_HOME=/path/to/cuda $0" >&2
        exit 1
    fi
else
    # shellcheck disable=SC2086
    install_packages required $RUN_PACKAGES
fi

capture=hash_embedding.sqlite
"$build/bin/perfkit" run --force -o "$capture" -- "$build/workloads/hash_embedding"
"$build/bin/perfkit" report "$capture" --format text --html hash_embedding.html
echo
echo "perfkit: capture  $PWD/$capture"
echo "perfkit: report   $PWD/hash_embedding.html (open it in a browser)"
echo "perfkit: yours    $PWD/$build/bin/perfkit run -- ./your_program"
