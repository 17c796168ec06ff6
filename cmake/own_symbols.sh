#!/bin/sh
# The library for other programs: own_symbols.sh NM OBJCOPY LIBRARY OUT copies a static library and
# renames what it has for itself, so that of its symbols only prof_* can meet a program's own.
set -eu
nm=$1 objcopy=$2 library=$3 out=$4
mkdir -p "$(dirname "$out")"
"$nm" -g --defined-only "$library" 2>/dev/null |
    awk 'NF == 3 && $3 !~ /^(prof_|_)/ && !seen[$3]++ {print $3, "prof_own_" $3}' >"$out.names"
"$objcopy" --redefine-syms="$out.names" "$library" "$out"
rm "$out.names"
