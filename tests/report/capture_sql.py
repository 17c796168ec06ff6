#!/usr/bin/env python3
"""A capture as SQL that report_tool makes a capture of again: how a recording of a real machine becomes a small
fixture. Names of the machine, its user and its paths are replaced.

    capture_sql.py [--ranks] [--begin NS] [--end NS] CAPTURE >fixture.sql

--ranks: only what the report about ranks reads. --begin, --end: of kernels, copies, memsets and ranges only those that
start in this part of the run."""
import argparse
import re
import sqlite3
import sys

# What no analysis of a fixture needs, and what tells of the machine alone.
LEFT_OUT = {"module", "rollup", "clock_sync", "counter", "counter_burst", "counter_device", "counter_sample"}
NOT_OF_RANKS = {"allocation", "allocation_failure", "api_call", "event_record", "sync", "overhead", "work", "device_memory", "frame",
                "stack"}
TIMED = ("kernel", "transfer", "memset", "range")
REPLACED = {"capture": {"directory": "/home/user", "kernel": "Linux", "spool": None}, "process": {"job": "job"}}
NUMBERED = {"host": "node", "boot_id": "boot"}  # different ones stay different
numbers = {}


def numbered(column, value):
    known = numbers.setdefault(column, {})
    return "%s%d" % (NUMBERED[column], known.setdefault(value, len(known) + 1))


def quoted(value):
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return "X'%s'" % value.hex()
    return "'%s'" % value.replace("'", "''") if isinstance(value, str) else repr(value)


def row_of(table, columns, row):
    values = dict(zip(columns, row))
    for key, new in REPLACED.get(table, {}).items():
        if values.get(key) is not None:
            values[key] = new
    for key in NUMBERED:
        if values.get(key) is not None:
            values[key] = numbered(key, values[key])
    for key in ("command", "note", "value"):
        if isinstance(values.get(key), str):
            values[key] = re.sub(r"(?<![^ '])/[^ ']*/", "", values[key])  # names without their folders
    return values


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", action="store_true")
    parser.add_argument("--begin", type=int, default=0)
    parser.add_argument("--end", type=int, default=sys.maxsize)
    parser.add_argument("capture")
    words = parser.parse_args()
    left_out = LEFT_OUT | (NOT_OF_RANKS if words.ranks else set())
    part = "start >= %d AND start < %d" % (words.begin, words.end)
    parts = dict.fromkeys(TIMED, part)
    parts["range_field"] = "range IN (SELECT id FROM range WHERE %s)" % part
    db = sqlite3.connect("file:%s?mode=ro" % words.capture, uri=True)
    tables = [row[0] for row in db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*' ORDER BY rowid")]
    for table in tables:
        if table in left_out:
            continue
        cursor = db.execute('SELECT * FROM "%s" WHERE %s' % (table, parts.get(table, "1")))
        columns = [column[0] for column in cursor.description]
        rows = [row_of(table, columns, row) for row in cursor]
        used = [column for column in columns if any(row[column] is not None for row in rows)]
        for first in range(0, len(rows), 400):
            print('INSERT INTO "%s"(%s) VALUES' % (table, ", ".join('"%s"' % column for column in used)))
            print(",\n".join("(%s)" % ",".join(quoted(row[column]) for column in used)
                             for row in rows[first:first + 400]) + ";")


if __name__ == "__main__":
    main()
