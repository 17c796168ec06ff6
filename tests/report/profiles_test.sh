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
# Samples of the processors are profiles of their own, beside unchanged ones of device work.
{
    cat "$source/normal.sql"
    echo "INSERT INTO string(id, value) VALUES(9002, '/src/a.c'), (9003, 'load');"
    echo "INSERT INTO frame(id, process, kind, address) VALUES(1, 1, 1, 1);"
    echo "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 9003, 9002, 7);"
    echo "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1);"
    echo "INSERT INTO cpu_sample(start, thread, kind, duration, weight, stack) VALUES"
    echo "(1000, 1, 1, NULL, 30, 1), (2000, 1, 4, NULL, 12, 1), (3000, 1, 2, 500, 500, 1);"
} >host.sql
"$tool" make host.sql host.sqlite && "$tool" write speedscope host.sqlite host.speedscope &&
    "$tool" write pprof host.sqlite host.pprof && python3 - <<'end' || exit 1
import gzip, json
normal, host = (json.load(open(name + ".speedscope")) for name in ("normal", "host"))
assert host["profiles"][:4] == normal["profiles"] and len(host["profiles"]) == 6
cpu, blocked = host["profiles"][4:]
assert (cpu["weights"], blocked["weights"]) == ([42], [500]), (cpu, blocked)
for profile in (cpu, blocked):
    assert host["shared"]["frames"][profile["samples"][0][-1]] == {"name": "load", "file": "/src/a.c", "line": 7}
assert b"blocked" in gzip.open("host.pprof").read() and b"blocked" not in gzip.open("normal.pprof").read()
end
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
