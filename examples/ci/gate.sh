#!/bin/sh
# Judges a command against the baseline, as a merge request's job does, and leaves gate.xml (JUnit),
# gate.md (for a comment) and gate.json in this folder.
#
#   gate.sh 'COMMAND ARG...'      one word, for the shell
#
# Ends as perfkit gate does: 1 for a regression, 0 also when there is no baseline yet.
set -eu
perfkit=${PERFKIT:-perfkit}
baseline=${BASELINE:-main}

if ! "$perfkit" baseline show "$baseline" >/dev/null 2>&1; then
    echo "no baseline '$baseline' yet: nothing to compare with"
    exit 0
fi
status=0
"$perfkit" gate --baseline "$baseline" --rerun "$1" --max-units "${MAX_UNITS:-3}" \
    --junit gate.xml --markdown gate.md --json-file gate.json \
    ${GITHUB_ACTIONS:+--github} || status=$?
# The summary of the job on GitHub.
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f gate.md ]; then cat gate.md >>"$GITHUB_STEP_SUMMARY"; fi
exit $status
