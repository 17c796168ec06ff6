# shellcheck shell=bash
# Sourced by the scripts that write a part of a page of docs/ from a table in the program:
#
#   fill_page PAGE BEGIN END TEXT REMEDY [--check]
#
# puts the file TEXT between the lines BEGIN and END of PAGE. With --check it changes nothing and
# fails, telling REMEDY, when the page is not up to date.
fill_page() {
    local page=$1 begin=$2 end=$3 text=$4 remedy=$5 new
    grep -qxF -- "$begin" "$page" && grep -qxF -- "$end" "$page" || {
        echo "$page has lost its markers" >&2
        return 1
    }
    new=$(mktemp)
    awk -v begin="$begin" -v end="$end" -v text="$text" '
        $0 == end { inside = 0 }
        !inside { print }
        $0 == begin {
            inside = 1
            while ((getline line < text) > 0) print line
        }' "$page" >"$new"
    if [ "${6:-}" != --check ]; then
        cat "$new" >"$page"
    elif ! cmp -s "$new" "$page"; then
        echo "$page is not up to date: $remedy" >&2
        rm -f "$new"
        return 1
    fi
    rm -f "$new"
}
