#!/bin/sh
# Adds a session to the baseline: on the main branch, after its tests are green.
#
#   save.sh COMMAND [ARG...]
#
# PERFKIT (perfkit), BASELINE (main) and LABEL (the CI service's number of this job, or none) may be set.
set -eu
perfkit=${PERFKIT:-perfkit}
baseline=${BASELINE:-main}
label=${LABEL:-${GITHUB_RUN_ID:-${CI_JOB_ID:-}}}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$perfkit" run --quiet -o "$folder/run.sqlite" -- "$@" >&2
"$perfkit" baseline save "$baseline" ${label:+--label "$label"} "$folder/run.sqlite"
"$perfkit" baseline rm "$baseline" --sessions 50
"$perfkit" baseline list
