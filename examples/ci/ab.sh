#!/bin/sh
# Compares two builds in one job, in turns: needs no baseline and no quiet history.
#
#   ab.sh 'BASE COMMAND' 'CANDIDATE COMMAND'
set -eu
perfkit=${PERFKIT:-perfkit}
status=0
"$perfkit" ab -n "${RUNS:-5}" --base "$1" --cand "$2" \
    --junit gate.xml --markdown gate.md --json-file gate.json \
    ${GITHUB_ACTIONS:+--github} || status=$?
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f gate.md ]; then cat gate.md >>"$GITHUB_STEP_SUMMARY"; fi
exit $status
