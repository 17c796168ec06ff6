#!/usr/bin/env python3
"""A capture as SQL that report_tool makes a capture of again: how a recording of a real machine becomes a small
fixture. Names of the machine, its user and its paths are replaced.

    capture_sql.py CAPTURE >fixture.sql"""
import re
import sqlite3
import sys

# What no analysis of a fixture needs, and what tells of the machine alone.
LEFT_OUT = {"module", "rollup", "clock_sync", "counter", "counter_burst", "counter_device", "counter_sample"}
REPLACED = {"capture": {"directory": "/home/user", "host": "node1", "boot_id": "boot", "kernel": "Linux", "spool": None},
            "process": {"host": "node1", "boot_id": "boot", "job": "job"}}


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
    if values.get("command"):
        values["command"] = re.sub(r"(?<![^ '])/[^ ']*/", "", values["command"])  # names without their folders
    return values


def main():
    db = sqlite3.connect("file:%s?mode=ro" % sys.argv[1], uri=True)
    tables = [row[0] for row in db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*' ORDER BY rowid")]
    for table in tables:
        if table in LEFT_OUT:
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
