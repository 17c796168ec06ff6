#!/usr/bin/env bash
# Writes the table of docs/reference/stats.md from the statistics inside the command: scripts/stats_doc.sh
# PERFKIT. With --check it changes nothing and fails when the page is not up to date.
set -eu
cd "$(dirname "$0")/.."
. scripts/fill_page.sh
text=$(mktemp)
trap 'rm -f "$text"' EXIT
{
    echo
    "$1" report --stats list --format markdown
    echo
} >"$text"
fill_page docs/reference/stats.md '<!-- statistics: written by scripts/stats_doc.sh from report/stats_columns.h -->' \
    '<!-- end of statistics -->' "$text" "run scripts/stats_doc.sh $1" "${2:-}"
