#!/usr/bin/env bash
# The check of the dependency order itself: right on this tree, and it finds planted wrong arrows.
set -u
here=$(dirname "$0")
bash "$here/dependency_order.sh" || exit 1
planted=$(mktemp -d)
trap 'rm -rf "$planted"' EXIT
plant() { # FILE INCLUDE
    rm -rf "${planted:?}"/*
    mkdir -p "$planted/$(dirname "$1")"
    printf '#include "%s"\n' "$2" >"$planted/$1"
    if bash "$here/dependency_order.sh" "$planted" >/dev/null; then
        echo "not found: $1 including $2"
        exit 1
    fi
}
plant libprof/base/a.c libprof/wire/wire.h
plant libprof/wire/a.h libprof/spool/layout.h
plant libprof/analysis/a.c report/report.h
plant libprof/store/a.c libprof/analysis/intervals.h
plant libprof/new/a.c libprof/base/error.h
plant libprof/analysis/a.c libprof/analysis/facts/facts.h
plant libprof/analysis/a.h libprof/analysis/rules/judge.h
plant libprof/analysis/facts/a.c libprof/analysis/ranks/ranks.h
plant libprof/analysis/facts/a.h libprof/analysis/memory/profile.h
plant libprof/analysis/memory/a.c libprof/analysis/rules/judge.h
plant libprof/analysis/ranks/a.c libprof/analysis/compare/noise.h
plant libprof/analysis/rules/a.h libprof/analysis/compare/extract.h
plant libprof/analysis/compare/a.c report/report.h
plant collectors/core/a.c libprof/store/store.h
plant collectors/nvtx/a.c prof.h
plant collectors/cuda/a.c samplers/counters/sets.h
plant samplers/cpu/a.c collectors/core/collector.h
plant report/a.c libprof/store/store.h
plant report/a.c cli/command.h
plant kernels/gather/a.c libprof/base/error.h
plant workloads/a.c prof.h
echo "planted wrong arrows: all found"
