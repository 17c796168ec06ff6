#!/bin/sh
# Every claim of the reference workloads' documents, measured on this machine: the document's figure
# beside ours, the device named, and what perfkit saw where they differ. See --help.
exec python3 -B "$(dirname "$0")/seed_tables.py" "$@"
