#!/usr/bin/env bash
# The dependency order of docs/dev/architecture.md, over the #include lines: a wrong arrow fails. Run with
# a folder to check another tree (the test checks that a wrong arrow is found). functions_test.py holds
# the calls inside libprof/analysis to the same table: public headers declare functions of all its folders.
set -u
root=${1:-$(dirname "$0")/../..}
cd "$root" || exit 2

# area: what it may include of ours besides itself; a folder with a row of its own is not part of the
# area around it
below_analysis="libprof/base libprof/gpu libprof/wire libprof/spool libprof/store libprof/include"
declare -A may=(
    [libprof/base]=""
    [libprof/gpu]="libprof/base"
    [libprof/wire]="libprof/base"
    [libprof/spool]="libprof/base libprof/wire"
    [libprof/symbols]="libprof/base"
    [libprof/store]="libprof/base libprof/gpu libprof/wire libprof/spool libprof/symbols"
    [libprof/analysis]="$below_analysis"
    [libprof/analysis/facts]="$below_analysis libprof/analysis"
    [libprof/analysis/memory]="$below_analysis libprof/analysis libprof/analysis/facts"
    [libprof/analysis/ranks]="$below_analysis libprof/analysis libprof/analysis/facts"
    [libprof/analysis/rules]="$below_analysis libprof/analysis libprof/analysis/facts libprof/analysis/memory libprof/analysis/ranks"
    [libprof/analysis/iterations]="$below_analysis libprof/analysis libprof/analysis/facts libprof/analysis/memory libprof/analysis/ranks libprof/analysis/rules"
    [libprof/analysis/sql]="$below_analysis libprof/analysis libprof/analysis/rules libprof/analysis/iterations"
    [libprof/analysis/compare]="$below_analysis libprof/analysis libprof/analysis/facts libprof/analysis/memory libprof/analysis/rules"
    [libprof/include]="libprof/base libprof/gpu"
    [collectors]="libprof/base libprof/wire libprof/spool libprof/include/perfkit"
    [samplers]="libprof/base libprof/wire libprof/spool collectors/cuda collectors/python collectors/stacks"
    [report]="libprof/base libprof/include"
    [tui]="libprof/base libprof/gpu libprof/include report"
    [cli]="libprof/base libprof/gpu libprof/wire libprof/spool libprof/store libprof/include report tui collectors/core samplers/counters samplers/cpu"
    [kernels]="libprof/include/perfkit"
    [workloads]="kernels libprof/include/perfkit"
)
# The area of a path: the longest that it lies in; empty where it lies in none.
area_of() { # PATH
    area=$1
    while [[ $area == */* ]]; do
        area=${area%/*}
        [ -n "${may[$area]+set}" ] && return
    done
    area="" # a new folder: give it a row
}

include_line='^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]([^">]+)[">]'
wrong=0
checked=0
while IFS=: read -r file line include; do
    [[ $include =~ $include_line ]] || continue
    target=${BASH_REMATCH[1]}
    case $target in # headers that are found through an include directory
    prof.h) target=libprof/include/prof.h ;;
    perfkit/*) target=libprof/include/$target ;;
    esac
    case $target in
    libprof/* | collectors/* | samplers/* | report/* | tui/* | cli/* | kernels/* | workloads/*) ;;
    *) continue ;; # the system's, a library's, or a file beside it
    esac
    area_of "$target"
    its_area=$area
    area_of "$file"
    checked=$((checked + 1))
    ok=0
    for allowed in $area ${may[${area:-none}]-}; do
        case $target in "$allowed"/*) [ "${#its_area}" -le "${#allowed}" ] && ok=1 ;; esac
    done
    if [ "$ok" = 0 ]; then
        echo "$file:$line: $area must not include $target"
        wrong=1
    fi
done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include' --include='*.c' --include='*.h' \
    --include='*.cu' --include='*.cuh' libprof collectors samplers report tui cli kernels workloads 2>/dev/null)
[ "$checked" -gt 0 ] || { echo "no include lines found in $root"; exit 2; }
[ "$wrong" = 0 ] && echo "dependency order: $checked includes, all in order"
exit $wrong
