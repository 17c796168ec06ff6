#!/bin/sh
# The roofline of a capture with hostile names: its tables and its gnuplot script against what a person
# read last, and the figure as gnuplot draws it.
#     roofline_test.sh REPORT_TOOL SOURCE_FOLDER WORK_FOLDER [--update]
tool=$1 source=$2 work=$3 update=$4
failed=0
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 1
"$tool" make "$source/roofline.sql" roofline.sqlite || exit 1

fail() {
    echo "FAIL $*"
    failed=1
}

"$tool" write text roofline.sqlite text all || fail "text"
sed -n '/^Roofline/,/^$/p' text >roofline.text
"$tool" write roofline-script roofline.sqlite roofline.gp || fail "script"
for name in roofline.text roofline.gp; do
    if [ "$update" = --update ]; then
        cp "$name" "$source/golden/$name"
    else
        diff -u "$source/golden/$name" "$name" || fail "$name"
    fi
done

# What is the same of several devices is said once.
{
    cat "$source/counters.sql"
    for i in 2 3 4 5; do
        echo "INSERT INTO device(process, api, ordinal, name, uuid, kind) VALUES(1, 'cuda', $((i - 1)), 'H200', 'u$i', 'gpu');
              INSERT INTO stream(process, device, context, api, native) VALUES(1, $i, 1, 'cuda', 7);
              INSERT INTO kernel(start, duration, stream, config) VALUES(1000, 100, $((i + 1)), 1);"
    done
} >several.sql
"$tool" make several.sql several.sqlite || exit 1
"$tool" write text several.sqlite several all width=200 || fail "several devices"
[ "$(grep -c 'No roofs are known' several)" = 1 ] &&
    grep -q 'No roofs are known of GPU 0, GPU 1 and 3 more: perfkit' several ||
    fail "roofs of several devices: $(grep 'No roofs' several)"

# Why a range has no place is said below its table: it holds a kernel of TF32 by its name.
{
    cat "$source/roofline.sql"
    echo "UPDATE range SET duration = 5000000 WHERE duration = 9000000;"
} >range.sql
"$tool" make range.sql range.sqlite || exit 1
"$tool" write text range.sqlite range all width=200 || fail "range"
sed -n '/^Roofline of NVTX/,/^$/p' range |
    grep -q "^  Not placed: 100.0 % of the ranges' time: numbers of 16 bits by the names" ||
    fail "why a range has no place: $(sed -n '/^Roofline of NVTX/,/^$/p' range)"

# A capture without work says what to do instead of drawing nothing.
"$tool" make "$source/empty.sql" empty.sqlite || exit 1
"$tool" write roofline-svg empty.sqlite none.svg 2>err && fail "a figure of nothing"
grep -q 'docs/guide/roofline.md' err || fail "what to do: $(cat err)"
[ ! -e none.svg ] || fail "half a figure is left"

# Without gnuplot: what to install, and the other way.
PATH=/nowhere "$tool" write roofline-svg roofline.sqlite none.svg 2>err && fail "drawn without gnuplot"
grep -q 'gnuplot-nox' err && grep -q 'OUT.gp' err || fail "missing gnuplot: $(cat err)"

if ! command -v gnuplot >/dev/null; then
    [ $failed = 0 ] && echo "SKIP: gnuplot is not installed; the rest is well" && exit 77
    exit 1
fi
for kind in svg png; do
    "$tool" write "roofline-$kind" roofline.sqlite "out.$kind" 2>err || fail "$kind: $(cat err)"
done
[ -e HACKED ] && fail "a name was executed"
[ "$(head -c 4 out.png | tail -c 3)" = PNG ] || fail "not a PNG"
if command -v python3 >/dev/null; then
    python3 - <<'END' || failed=1
import sys, xml.dom.minidom as dom
texts = [''.join(n.data for n in t.childNodes if n.nodeType == n.TEXT_NODE) or
         ''.join(c.data for s in t.getElementsByTagName('tspan') for c in s.childNodes)
         for t in dom.parse('out.svg').getElementsByTagName('text')]
whole = '\n'.join(t.strip() for t in texts)
wanted = ['axpy', 'gemm', 'tf32_gemm', 'walk', 'NVIDIA H200', '`touch HACKED`', '\u2019; system', '@HACKED {/Symbol a}',
          'f<int, 2>', 'DRAM 4.20 TB/s', 'L2 7.00 TB/s']
missing = [w for w in wanted if w not in whole]
if missing or 'undeclared' in whole:
    sys.exit('FAIL svg: missing %s in\n%s' % (missing, whole))
END
fi
exit $failed
