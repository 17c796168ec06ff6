#!/bin/sh
# Reports of the fixture captures compared with what they were when a person last read them:
#     golden_test.sh REPORT_TOOL SOURCE_FOLDER WORK_FOLDER [--update]
# --update writes the present output as the new expectation: read the difference before committing.
tool=$1 source=$2 work=$3 update=$4
failed=0
mkdir -p "$work" && cd "$work" || exit 1 # reports name the capture by its path as given

# What differs between machines: how large SQLite makes the capture.
normal() {
    sed -E -e 's/^(Capture .*) \([0-9.]+ (KiB|MiB)\)/\1 (SIZE)/' -e 's/\([0-9.]+ (KiB|MiB), perfkit/(SIZE, perfkit/' \
        -e 's/"file_bytes": [0-9]+/"file_bytes": 0/'
}

compare() { # fixture format options...
    fixture=$1 format=$2
    shift 2
    name=$fixture.$format$(echo "$*" | tr -c 'a-z0-9\n' '-' | sed 's/^\(.\)/-\1/')
    if ! "$tool" write "$format" "$fixture.sqlite" - "$@" >out 2>err; then
        echo "FAIL $name: $(cat err)"
        failed=1
        return
    fi
    normal <out >"$name"
    if [ "$update" = --update ]; then
        cp "$name" "$source/golden/$name"
    elif ! diff -u "$source/golden/$name" "$name"; then
        echo "FAIL $name"
        failed=1
    else
        echo "ok   $name"
    fi
}

for fixture in normal awkward hostile empty live more counters; do
    "$tool" make "$source/$fixture.sql" "$fixture.sqlite" || exit 1
    compare $fixture text
    compare $fixture text all
    compare $fixture flamegraph
    compare $fixture csv
done
"$tool" make "$source/dormant.sql" dormant.sqlite || exit 1
compare dormant text
cat "$source/normal.sql" "$source/paused.sql" >paused.sql && "$tool" make paused.sql paused.sqlite || exit 1
compare paused text
"$tool" make "$source/host.sql" host.sqlite || exit 1
for width in 80 100 120 200; do
    compare host text width=$width
done
"$tool" make "$source/ranks.sql" ranks.sqlite || exit 1
compare ranks text
for format in text csv markdown json; do
    compare ranks $format ranks
done
compare awkward text ranks
# Recordings of real machines, by capture_sql.py.
for file in "$source"/recorded_*.sql; do
    [ -e "$file" ] || continue
    fixture=$(basename "$file" .sql)
    "$tool" make "$file" "$fixture.sqlite" || exit 1
    compare "$fixture" text ranks
done
compare normal text width=60
for fixture in normal live ranks hostile empty; do
    compare $fixture text lines=23 width=80
done
compare normal text lines=80 width=80
compare normal text all width=60
compare normal text all width=140 top=2
compare normal text all kernel=gemm begin=10000000 end=20000000
compare normal text all range=forward pattern=gemm
compare hostile text "range=<!--<script>"
compare awkward text colour
compare awkward json
compare empty json
compare more json
compare more markdown
compare hostile markdown
compare counters markdown
compare normal markdown top=2
exit $failed
