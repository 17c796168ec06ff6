#!/bin/sh
# The CUDA collector on a real GPU: programs with known counts are captured and the captures compared
# with what the programs say they did.
#
#     device_check.sh BUILD_FOLDER [FOLDER_FOR_CAPTURES [OPTION...]]    (device_check.py --help)
#
# Exit 0 all right, 1 something differs, 77 skipped (ctest: no GPU, or no perfkit in the build).
here=$(cd "$(dirname "$0")" && pwd)
build=$1
skip()
{
    echo "skipped: $1"
    exit 77
}
[ -n "$build" ] || { echo "usage: device_check.sh BUILD_FOLDER [FOLDER [OPTION...]]" >&2; exit 2; }
[ -e /dev/nvidiactl ] || skip "no NVIDIA driver on this machine (/dev/nvidiactl)"
[ -x "$build/bin/perfkit" ] || skip "$build/bin/perfkit is not built"
[ -x "$build/bin/cuda_exact_counts" ] || skip "the CUDA programs are not built (nvcc)"
command -v python3 > /dev/null || skip "python3 is not installed"
out=$2
shift
[ $# -eq 0 ] || shift
if [ -z "$out" ]; then
    out=$(mktemp -d) || exit 1
    trap 'rm -rf "$out"' EXIT
fi
"$build/bin/cuda_ends" return 1 || skip "CUDA does not work on this machine"
PYTHONDONTWRITEBYTECODE=1 python3 "$here/device_stalls.py" "$build" || exit 1
PYTHONDONTWRITEBYTECODE=1 python3 "$here/device_check.py" "$build/bin" "$out" "$@"
