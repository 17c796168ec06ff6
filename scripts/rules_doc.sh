#!/usr/bin/env bash
# Writes docs/rules.md from the table of rules inside the command: scripts/rules_doc.sh PERFKIT. With
# --check it changes nothing and fails when the page is not up to date.
set -eu
cd "$(dirname "$0")/.."
perfkit=$1
page=docs/rules.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
begin='<!-- rules: written by scripts/rules_doc.sh from libprof/analysis/rules -->'
end='<!-- end of rules -->'

"$perfkit" explain --format markdown > "$work/rules"
grep -qxF "$begin" $page && grep -qxF "$end" $page || {
    echo "rules_doc.sh: $page has lost its markers" >&2
    exit 1
}
awk -v begin="$begin" -v end="$end" -v rules="$work/rules" '
    $0 == end { inside = 0 }
    !inside { print }
    $0 == begin {
        inside = 1
        print ""
        while ((getline line < rules) > 0) print line
        print ""
    }' $page > "$work/page"

if [ "${2:-}" = --check ]; then
    if ! cmp -s "$work/page" $page; then
        echo "rules_doc.sh: $page is not up to date: run scripts/rules_doc.sh $perfkit" >&2
        exit 1
    fi
else
    cat "$work/page" > $page
fi
