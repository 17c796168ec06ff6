#!/usr/bin/env bash
# Writes the tables into docs/reference/format.md from libprof/store/tables.def, between the two markers of the
# page. With --check it changes nothing and fails when the page is not up to date.
set -eu
cd "$(dirname "$0")/.."
. scripts/fill_page.sh
page=docs/reference/format.md
begin='<!-- tables: written by scripts/format_doc.sh from libprof/store/tables.def -->'
end='<!-- end of tables -->'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${CC:-cc}" -std=c11 -D_GNU_SOURCE -I. -o "$work/tables" scripts/format_tables.c libprof/base/error.c \
    libprof/store/schema.c libprof/store/views.c libprof/wire/call_class.c \
    -lsqlite3
"$work/tables" > "$work/tables.md"
fill_page $page "$begin" "$end" "$work/tables.md" "run scripts/format_doc.sh" "${1:-}"
