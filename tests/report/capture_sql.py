#!/usr/bin/env python3
"""A capture as SQL that report_tool makes a capture of again: how a recording of a real machine becomes a small
fixture. Names of the machine, its user and its paths are replaced.

    capture_sql.py [--ranks] CAPTURE >fixture.sql

--ranks: only what the report about ranks reads."""
import re
import sqlite3
import sys

# What no analysis of a fixture needs, and what tells of the machine alone.
LEFT_OUT = {"module", "rollup", "clock_sync", "counter", "counter_burst", "counter_device", "counter_sample"}
NOT_OF_RANKS = {"allocation", "allocation_failure", "api_call", "event_record", "sync", "overhead", "work", "device_memory", "frame",
                "stack"}
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
    words = [word for word in sys.argv[1:] if word != "--ranks"]
    left_out = LEFT_OUT | (NOT_OF_RANKS if len(words) < len(sys.argv) - 1 else set())
    db = sqlite3.connect("file:%s?mode=ro" % words[0], uri=True)
    tables = [row[0] for row in db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*' ORDER BY rowid")]
    for table in tables:
        if table in left_out:
            continue
        cursor = db.execute('SELECT * FROM "%s"' % table)
        columns = [column[0] for column in cursor.description]
        rows = [row_of(table, columns, row) for row in cursor]
        used = [column for column in columns if any(row[column] is not None for row in rows)]
        for first in range(0, len(rows), 400):
            print('INSERT INTO "%s"(%s) VALUES' % (table, ", ".join('"%s"' % column for column in used)))
            print(",\n".join("(%s)" % ",".join(quoted(row[column]) for column in used)
                             for row in rows[first:first + 400]) + ";")


if __name__ == "__main__":
    main()
