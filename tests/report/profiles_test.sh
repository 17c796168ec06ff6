#!/bin/sh
# Flame graphs as profiles, read by decoders of our own:
#     profiles_test.sh REPORT_TOOL SOURCE_FOLDER WORK_FOLDER
tool=$1 source=$2 work=$3
if ! command -v python3 >/dev/null; then
    echo "SKIP: the profiles are checked with python3, which is missing"
    exit 77
fi
mkdir -p "$work" && cd "$work" || exit 1
# PERFKIT_OTLP_PROTO: a checkout of opentelemetry-proto, by which protoc then decodes what is written as OTLP.
decode_otlp()
{
    [ -n "$PERFKIT_OTLP_PROTO" ] || return 0
    protoc "-I$PERFKIT_OTLP_PROTO" --decode=opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest \
        opentelemetry/proto/collector/profiles/v1development/profiles_service.proto <"$1" >decoded || return 1
    grep -E '^ *[0-9]+(:| \{)' decoded && { echo "$1: fields that are not in the .proto"; return 1; }
    sums=$(awk '/ values:/ {sum += $2} END {printf "%.0f", sum}' decoded)
    [ "$sums" = "$2" ] || { echo "$1: protoc reads a sum of $sums, the capture has $2"; return 1; }
}
for fixture in normal awkward hostile empty live more; do
    "$tool" make "$source/$fixture.sql" "$fixture.sqlite" || exit 1
    for format in flamegraph speedscope pprof otlp; do
        "$tool" write $format "$fixture.sqlite" "$fixture.$format" || exit 1
    done
    python3 "$source/profiles_check.py" "$fixture.sqlite" "$fixture.flamegraph" \
        "$fixture.speedscope" "$fixture.pprof" "$fixture.otlp" >"$fixture.said" || { cat "$fixture.said"; exit 1; }
    cat "$fixture.said"
    decode_otlp "$fixture.otlp" "$(sed 's/.* all values \([0-9]*\)$/\1/' "$fixture.said")" || exit 1
    for format in pprof otlp; do
        "$tool" write $format "$fixture.sqlite" again && cmp again "$fixture.$format" || exit 1
    done
done
# Samples of the processors are profiles of their own, beside unchanged ones of device work.
{
    cat "$source/normal.sql"
    echo "UPDATE capture SET command = '/usr/bin/python3 src/train.py --steps 40';"
    echo "INSERT INTO string(id, value) VALUES(9002, '/src/a.c'), (9003, 'load');"
    echo "INSERT INTO frame(id, process, kind, address) VALUES(1, 1, 1, 1);"
    echo "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 9003, 9002, 7);"
    echo "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1);"
    echo "INSERT INTO cpu_sample(start, thread, kind, duration, weight, stack) VALUES"
    echo "(1000, 1, 1, NULL, 30, 1), (2000, 1, 4, NULL, 12, 1), (3000, 1, 2, 500, 500, 1);"
} >host.sql
"$tool" make host.sql host.sqlite && "$tool" write speedscope host.sqlite host.speedscope &&
    "$tool" write pprof host.sqlite host.pprof && "$tool" write otlp host.sqlite host.otlp && PYTHONPATH=$source python3 - <<'end' || exit 1
import gzip, json
from profiles_check import read_otlp
normal, host = (json.load(open(name + ".speedscope")) for name in ("normal", "host"))
assert host["profiles"][:4] == normal["profiles"] and len(host["profiles"]) == 6
cpu, blocked = host["profiles"][4:]
assert (cpu["weights"], blocked["weights"]) == ([42], [500]), (cpu, blocked)
for profile in (cpu, blocked):
    assert host["shared"]["frames"][profile["samples"][0][-1]] == {"name": "load", "file": "/src/a.c", "line": 7}
otlp, resource, _ = read_otlp("host.otlp")
assert resource["service.name"] == "train.py", resource
assert [weight for _, weight in otlp["cpu", "nanoseconds"]] == [42], otlp
assert [(stack[-1], weight) for stack, weight in otlp["blocked", "nanoseconds"]] == [(("load", "/src/a.c", 7), 500)], otlp
assert b"blocked" in gzip.open("host.pprof").read() and b"blocked" not in gzip.open("normal.pprof").read()
end
# A full disk leaves nothing behind, neither a half file nor the temporary one.
if [ -c /dev/full ]; then
    for format in speedscope pprof otlp; do
        "$tool" write $format normal.sqlite /dev/full 2>err && exit 1
        grep -q 'No space left' err || exit 1
    done
fi
mkdir -p limited && rm -f limited/*
for format in speedscope pprof otlp; do
    (ulimit -f 0; trap '' XFSZ; "$tool" write $format normal.sqlite limited/out) 2>err && exit 1
    [ -z "$(ls limited)" ] || { echo "left behind: $(ls limited)"; exit 1; }
done
[ -n "$PERFKIT_OTLP_PROTO" ] || echo "not checked: OTLP by protoc (PERFKIT_OTLP_PROTO: a checkout of opentelemetry-proto)"
exit 0
