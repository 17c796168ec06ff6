#!/usr/bin/env bash
# Writes the tables into docs/format.md from libprof/store/schema.c, between the two markers of the
# page. With --check it changes nothing and fails when the page is not up to date.
set -eu
cd "$(dirname "$0")/.."
page=docs/format.md
begin='<!-- tables: written by scripts/format_doc.sh from libprof/store/schema.c -->'
end='<!-- end of tables -->'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${CC:-cc}" -std=c11 -I. -o "$work/tables" scripts/format_tables.c libprof/store/schema.c
"$work/tables" > "$work/tables.md"
grep -qxF "$begin" $page && grep -qxF "$end" $page || {
    echo "format_doc.sh: $page has lost its markers" >&2
    exit 1
}
awk -v begin="$begin" -v end="$end" -v tables="$work/tables.md" '
    $0 == end { inside = 0 }
    !inside { print }
    $0 == begin {
        inside = 1
        while ((getline line < tables) > 0) print line
    }' $page > "$work/format.md"

if [ "${1:-}" = --check ]; then
    if ! cmp -s "$work/format.md" $page; then
        echo "format_doc.sh: $page is not up to date: run scripts/format_doc.sh" >&2
        exit 1
    fi
else
    cat "$work/format.md" > $page
fi
