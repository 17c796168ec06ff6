#!/usr/bin/env bash
# Writes docs/reference/commands.md from the option tables of the command, by way of its --help:
# scripts/commands_doc.sh PERFKIT. With --check it changes nothing and fails when the page is not up
# to date.
set -eu
cd "$(dirname "$0")/.."
. scripts/fill_page.sh
export LC_ALL=C COLUMNS=80 NO_COLOR=1
text=$(mktemp)
trap 'rm -f "$text"' EXIT
{
    "$1" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p' | while read -r name; do
        printf '\n## perfkit %s\n\n```text\n' "$name"
        "$1" "$name" --help
        echo '```'
    done
    echo
} >"$text"
fill_page docs/reference/commands.md \
    '<!-- commands: written by scripts/commands_doc.sh from the option tables in cli/ -->' \
    '<!-- end of commands -->' "$text" "run scripts/commands_doc.sh $1" "${2:-}"
