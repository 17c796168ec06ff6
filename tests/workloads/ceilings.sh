#!/bin/sh
# perfkit-measure on one kind of device: which ceilings it finds, under names that perfkit knows. Counts
# only: what it measures depends on the machine and on who else uses it. Skipped (77) without a device.
# usage: ceilings.sh PERFKIT-MEASURE PERFKIT cpu|opencl|cuda
set -u
measure=$1
perfkit=$2
backend=$3
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0

fail()
{
    echo "FAILED: $*"
    failed=1
}

if ! "$measure" --backend "$backend" --quick --against-libraries >"$dir/out" 2>"$dir/err"; then
    if grep -qE 'no OpenCL device|no NVIDIA driver|no CUDA-capable|built without' "$dir/err"; then
        echo "SKIP $(cat "$dir/err")"
        exit 77
    fi
    cat "$dir/out" "$dir/err"
    exit 1
fi
cat "$dir/out"

# What every device has; a cache of unknown size and half precision may be missing.
wanted='dram_copy dram_read dram_triad fp32 htod_pinned dtoh_pinned htod_pageable dtoh_pageable
        launch launch_latency'
if [ "$backend" = cuda ]; then
    wanted="$wanted l2_read shared fp64 fp16"
    [ "$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ')" -gt 1 ] && wanted="$wanted peer_copy"
    # Compute capability 9.0 with code for it: all of them, and by wgmma.
    if grep -q 'wgmma' "$dir/out"; then
        wanted="$wanted tensor_fp64 tensor_tf32 tensor_fp16 tensor_bf16 tensor_fp8"
        grep '"ceiling","name":"tensor_[tfb]*[0-9]*",.*mma.sync' "$dir/out" | grep -v tensor_fp64 &&
            fail 'a tensor ceiling without wgmma'
    fi
fi
for name in $wanted; do
    grep -q "^{\"what\":\"ceiling\",\"name\":\"$name\",\"value\":[0-9]" "$dir/out" || fail "no $name"
done
"$perfkit" device cpu --json --ceilings "$dir/none" >"$dir/known" || fail 'perfkit device'
for name in $(sed -n 's/^{"what":"\(ceiling\|library\|none\)","name":"\([a-z0-9_]*\)",.*/\2/p' "$dir/out"); do
    [ "$name" = libraries ] || grep -q "\"name\": \"$name\"" "$dir/known" || fail "perfkit knows no $name"
done

# What calls cost, with which perfkit device finds what recording them costs; of all that perfkit records.
"$measure" --backend "$backend" --quick --calls >"$dir/calls" || fail '--calls'
calls='record_launch record_memcpy record_memset record_sync record_call record_range'
[ "$backend" = cuda ] && calls="$calls record_node"
for name in $calls; do
    grep -q "^{\"what\":\"call\",\"name\":\"$name\",\"value\":[0-9]" "$dir/calls" || fail "no $name"
    grep -q "\"name\": \"$name\"" "$dir/known" || fail "perfkit knows no $name"
done
# In turns with and without perfkit; kept unless other work disturbs it. A call stack is one of a launch, which is then measured, too.
if [ "$backend" = opencl ]; then
    POCL_DEVICES=basic "$perfkit" device opencl:0 --measure --ceilings "$dir/kept" --only record_stack >"$dir/out" 2>&1
    status=$?
    # Each figure on its own: that of a stack may be kept although the launch's is not.
    if ! grep -q 'record_launch: the runs differ too much' "$dir/out"; then
        [ $status = 0 ] || fail 'perfkit device --measure'
        grep -q 'to record a launch  *[0-9]' "$dir/out" || fail 'no cost of recording a launch'
        grep -q '"record_launch"' "$dir"/kept/* || fail 'it is not kept'
    fi
fi

if [ "$backend" != cuda ]; then # asked for by its name, what a device lacks is told with the reason
    "$measure" --backend "$backend" --quick --only peer_copy >"$dir/out"
    grep -qxF '{"what":"none","name":"peer_copy","how":"peer_copy: no other device to copy to"}' "$dir/out" || fail 'peer_copy without a peer'
fi

# By name, and nothing else; a device that is not there; a command line that is wrong.
[ "$("$measure" --backend "$backend" --quick --only launch,fp32 | sed -n 's/^{"what":"ceiling","name":"\([a-z0-9]*\)",.*/ceiling.\1/p' | sort | tr '\n' ' ')" = \
    'ceiling.fp32 ceiling.launch ' ] || fail '--only'
"$measure" --backend "$backend" --device 4000 >/dev/null 2>"$dir/err" && fail 'device 4000'
[ -s "$dir/err" ] || fail 'device 4000 without a word'
"$measure" --backend tpu >/dev/null 2>&1
[ $? = 2 ] || fail 'status of a wrong command line'
exit $failed
