#!/bin/sh
# The HTML report in a browser: page_test.sh REPORT_TOOL SOURCE_FOLDER WORK_FOLDER [TEST.js]
if ! command -v node >/dev/null; then
    echo "SKIP: the page is tested with node, which is missing (Debian: nodejs)"
    exit 77
fi
mkdir -p "$3" && exec node "$2/${4:-page_test.js}" "$1" "$2" "$3"
