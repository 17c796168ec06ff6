#!/usr/bin/env python3
"""What a trace of a capture must have, by SQL on the capture itself: trace_counts.py CAPTURE

Prints JSON: slices by category, arrows, events of memory counters, the names of kernels and ranges that are
UTF-8, and the time that kernels took."""
import json
import sqlite3
import sys

db = sqlite3.connect("file:%s?mode=ro" % sys.argv[1], uri=True)
db.text_factory = bytes


def one(sql):
    return db.execute(sql).fetchone()[0] or 0


def rows(table, where="1"):
    return one("SELECT count(*) FROM %s WHERE %s" % (table, where))


DEVICE = ("kernel", "transfer", "memset")
slices = {
    "kernel": rows("kernel", "start NOT NULL") + rows("graph_launch", "start NOT NULL"),
    "gpu_memcpy": rows("transfer", "start NOT NULL"),
    "gpu_memset": rows("memset", "start NOT NULL"),
    "not started": sum(rows(t, "start IS NULL AND api_lead NOT NULL") for t in DEVICE),
    "api": rows("api_call") + sum(rows(t, "api_name NOT NULL AND api_lead NOT NULL") for t in DEVICE + ("sync",)),
    "cuda_sync": rows("sync", "start NOT NULL AND stream NOT NULL"),
    "user_annotation": rows("range"),
    "cpu_instant_event": rows("marker") + rows("allocation", "bytes NOT NULL")
    + rows("allocation", 'bytes NOT NULL AND "end" NOT NULL'),
    "overhead": rows("overhead") + rows("jit"),
    "unified_memory": rows("migration"),
    "off_cpu": rows("cpu_sample", "kind IN (2, 3)"),
}
# A range and a stream: work of that stream asked for inside of the range.
projected = " UNION ".join(
    "SELECT r.id, e.stream FROM %s e JOIN range r ON r.thread = e.thread AND e.start - e.api_lead >= r.start "
    "AND (r.duration IS NULL OR e.start - e.api_lead < r.start + r.duration) "
    "WHERE e.start NOT NULL AND e.duration NOT NULL AND e.correlation IS NULL" % table for table in DEVICE)
projected += "".join(
    " UNION SELECT r.id, e.stream FROM %s e JOIN stream s ON s.id = e.stream JOIN api_call c ON "
    "c.correlation = e.correlation JOIN thread t ON t.id = c.thread AND t.process = s.process JOIN range r ON "
    "r.thread = c.thread AND c.start >= r.start AND (r.duration IS NULL OR c.start < r.start + r.duration) "
    "WHERE e.start NOT NULL AND e.duration NOT NULL" % table for table in DEVICE + ("graph_launch",))
slices["gpu_user_annotation"] = one("SELECT count(*) FROM (%s)" % projected)
ended = "start NOT NULL AND duration NOT NULL"
arrows = sum(rows(t, ended + " AND correlation IS NULL AND api_lead NOT NULL AND thread NOT NULL") for t in DEVICE)
for table in DEVICE + ("graph_launch",):
    arrows += one(
        "SELECT count(*) FROM %s e JOIN stream s ON s.id = e.stream WHERE %s AND EXISTS (SELECT 1 FROM api_call c "
        "JOIN thread t ON t.id = c.thread WHERE t.process = s.process AND c.correlation = e.correlation)"
        % (table, "e.start NOT NULL AND e.duration NOT NULL AND e.correlation NOT NULL"))


def sampled():
    """Each sample of each counter, and where a line comes back to 0 after a stretch of samples."""
    return (rows("counter_sample") + rows("counter_burst")) * rows("counter")


def texts(sql):
    good = set()
    for (raw,) in db.execute(sql):
        try:
            good.add(raw.decode("utf-8"))
        except UnicodeDecodeError:
            pass
    return sorted(good)


names = texts("SELECT DISTINCT value FROM range JOIN string ON string.id = range.name")
names += texts("SELECT DISTINCT value FROM kernel JOIN launch_config c ON c.id = kernel.config "
               "JOIN string ON string.id = coalesce(c.demangled, c.name) WHERE start NOT NULL")
print(json.dumps({
    "slices": {name: count for name, count in slices.items() if count},
    "arrows": arrows,
    "samples": rows("cpu_sample", "kind IN (1, 4) AND stack NOT NULL"),
    "counters": rows("allocation", "bytes NOT NULL") + rows("allocation", 'bytes NOT NULL AND "end" NOT NULL')
    + (sampled() if rows("sqlite_master", "name = 'counter_sample'") else 0),
    "names": sorted(set(names)),
    "kernel_ns": one("SELECT sum(duration) FROM kernel WHERE start NOT NULL"),
}))
