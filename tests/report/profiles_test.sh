#!/bin/sh
# Flame graphs as profiles, read by decoders of our own:
#     profiles_test.sh REPORT_TOOL SOURCE_FOLDER WORK_FOLDER
tool=$1 source=$2 work=$3
if ! command -v python3 >/dev/null; then
    echo "SKIP: the profiles are checked with python3, which is missing"
    exit 77
fi
mkdir -p "$work" && cd "$work" || exit 1
for fixture in normal awkward hostile empty live more; do
    "$tool" make "$source/$fixture.sql" "$fixture.sqlite" || exit 1
    for format in flamegraph speedscope pprof; do
        "$tool" write $format "$fixture.sqlite" "$fixture.$format" || exit 1
    done
    python3 "$source/profiles_check.py" "$fixture.sqlite" "$fixture.flamegraph" \
        "$fixture.speedscope" "$fixture.pprof" || exit 1
    "$tool" write pprof "$fixture.sqlite" again && cmp again "$fixture.pprof" || exit 1
done
# A full disk leaves nothing behind, neither a half file nor the temporary one.
if [ -c /dev/full ]; then
    for format in speedscope pprof; do
        "$tool" write $format normal.sqlite /dev/full 2>err && exit 1
        grep -q 'No space left' err || exit 1
    done
fi
mkdir -p limited && rm -f limited/*
for format in speedscope pprof; do
    (ulimit -f 0; trap '' XFSZ; "$tool" write $format normal.sqlite limited/out) 2>err && exit 1
    [ -z "$(ls limited)" ] || { echo "left behind: $(ls limited)"; exit 1; }
done
