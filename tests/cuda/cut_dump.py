#!/usr/bin/env python3
"""Makes a dump of CUPTI's buffers small enough for tests/data, and writes what a capture of its
replay must hold.

    cut_dump.py FILE tests/data/NAME [--first N] [--bytes N] [OPTION...]

Writes NAME.cuptidump.gz and NAME.json. Kept are everything that describes (devices, contexts, streams, graph
nodes) and the first N (200) records of each kind, together with every record that shares a correlation
id with one of them, so that no call loses its device record nor a device record its call; of a graph
launch that is all its nodes. N is lowered until the compressed file has at most --bytes (200000).
OPTION: of perfkit run, that the replay needs, such as --cuda-graph=graph or --cuda-managed=faults.
"""
import argparse
import gzip
import json
import struct
import sys

import dump_reader
from dump_reader import BUFFER, DRIVER, RUNTIME, STRING
from dump_writer import block

SAMPLES = 10  # block of PC sampling (collectors/cuda/dump.h)
DESCRIBING = {8, 9, 37}  # devices, contexts, streams


def correlation(record):
    return record.fields.get("correlation") or 0


def enclosing(dump):
    """{id: id of the runtime call around it}: what a driver call with an id of its own belongs to."""
    runtime = {}
    for call in dump.records(RUNTIME):
        runtime.setdefault(call.thread, []).append(call)
    parents = {}
    for calls in runtime.values():
        calls.sort(key=lambda call: call.start)
    for call in dump.records(DRIVER):
        for outer in runtime.get(call.thread, ()):
            if outer.start <= call.start and call.end <= outer.end and \
                    outer.correlation != call.correlation:
                parents[call.correlation] = outer.correlation
    return parents


def group(record, parents):
    """What must stay or go together."""
    id = correlation(record)
    return parents.get(id, id)


def chosen(dump, first):
    """The records to keep, as a set of id()s, and their groups."""
    parents = enclosing(dump)
    groups, counts = set(), {}
    lone = set()
    # Calls made by callbacks' threads around graph nodes: the nodes all stay, so do their calls.
    nodes = [(c["tid"], c["time"]) for c in dump.callbacks]
    for record in dump.records(RUNTIME):
        if any(tid == record.thread and record.start <= time <= record.end for tid, time in nodes):
            groups.add(group(record, parents))
    for record in dump.records():
        if record.kind in DESCRIBING:
            lone.add(id(record))
            continue
        counts[record.kind] = counts.get(record.kind, 0) + 1
        if counts[record.kind] <= first:
            if group(record, parents):
                groups.add(group(record, parents))
            else:
                lone.add(id(record))
    return {id(record) for record in dump.records()
            if id(record) in lone or group(record, parents) in groups}, groups


def sampled_names(body):
    """Addresses of the names of functions that instructions were sampled in."""
    at = 40
    while at < len(body):
        name, _, reasons = struct.unpack_from("<QII", body, at + 16)
        yield name
        at += 32 + 8 * reasons


def cut(dump, first):
    keep, _ = chosen(dump, first)
    needed = set()
    for record in dump.records():
        if id(record) in keep:
            needed.update(struct.unpack_from("<Q", record.raw, offset)[0]
                          for offset, form in dump_reader.KINDS.get(record.kind, ("", {}))[1].values()
                          if form == dump_reader.POINTER and offset + 8 <= len(record.raw))
    for one in dump.blocks:
        needed.update(sampled_names(one.body) if one.type == SAMPLES else ())
    parts = [dump.header]
    for one in dump.blocks:
        body = one.body
        if one.type == STRING and struct.unpack_from("<Q", body)[0] not in needed:
            continue
        if one.type == BUFFER:
            body = body[:8] + b"".join(r.raw for r in one.records if id(r) in keep)
            if len(body) == 8:
                continue
        parts.append(block(one.type, one.time, body))
    return b"".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("file")
    parser.add_argument("name")
    parser.add_argument("--first", type=int, default=200)
    parser.add_argument("--bytes", type=int, default=200_000)
    arguments, options = parser.parse_known_args()
    dump = dump_reader.load(arguments.file)
    first = arguments.first
    while True:
        data = cut(dump, first)
        packed = gzip.compress(data, 9, mtime=0)
        if len(packed) <= arguments.bytes or first <= 1:
            break
        first = first * 2 // 3
    with open(arguments.name + ".cuptidump.gz", "wb") as file:
        file.write(packed)
    small = dump_reader.Dump(data)
    with open(arguments.name + ".json", "w") as file:
        json.dump(dump_reader.expectations(small, dump_reader.function_names(), options), file,
                  indent=1)
        file.write("\n")
    print("%d of %d records, %d of each kind, %d bytes" % (
        len(small.records()), len(dump.records()), first, len(packed)))


if __name__ == "__main__":
    try:
        main()
    except (dump_reader.BadDump, OSError) as error:
        sys.exit("cut_dump.py: %s" % error)
