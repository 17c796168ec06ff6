#!/usr/bin/env bash
# Writes docs/reference/rules.md from the table of rules inside the command: scripts/rules_doc.sh PERFKIT. With
# --check it changes nothing and fails when the page is not up to date.
set -eu
cd "$(dirname "$0")/.."
. scripts/fill_page.sh
perfkit=$1
page=docs/reference/rules.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
begin='<!-- rules: written by scripts/rules_doc.sh from libprof/analysis/rules -->'
end='<!-- end of rules -->'

{
    echo
    "$perfkit" explain --format markdown
    echo
} > "$work/rules"
fill_page $page "$begin" "$end" "$work/rules" "run scripts/rules_doc.sh $perfkit" "${2:-}"
