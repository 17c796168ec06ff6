#!/usr/bin/env python3
"""Checks the interned data of a Perfetto trace, field by field, against the Chrome trace of the same capture:
perfetto_check.py PFTRACE CHROME_TRACE

Every number is told before it is used and told once; the state is cleared by the first packet and asked for by
every later one; a slice has the same call stack in both traces; a text that arguments repeat stands in it once."""
import collections
import json
import sys

from protobuf import message

PACKET_EVENT, PACKET_INTERNED, PACKET_FLAGS = 11, 12, 13
EVENT_CATEGORY, EVENT_ANNOTATION, EVENT_TYPE, EVENT_NAME, EVENT_STACK = 3, 4, 9, 10, 56
CATEGORIES, NAMES, ANNOTATIONS, FUNCTIONS, FRAMES, STACKS, PATHS, VALUES = 1, 2, 3, 5, 6, 7, 18, 29

tables = collections.defaultdict(dict)  # by kind: number -> text, or message
raw = open(sys.argv[1], "rb").read()
seen = collections.Counter()
values = collections.Counter()  # texts that stand in an event itself


def learn(interned):
    for kind, entries in interned.items():
        for entry in map(message, entries):
            iid = entry[1][0]
            assert iid and iid not in tables[kind], "%d of kind %d is told again" % (iid, kind)
            tables[kind][iid] = entry if kind in (FRAMES, STACKS) else entry[2][0].decode("utf-8")


def one(fields, number):
    return fields[number][0] if fields[number] else None


def frame(number):
    fields = tables[FRAMES][number]
    path = one(fields, 5)
    return tables[FUNCTIONS][fields[2][0]], path and tables[PATHS][path], one(fields, 6)


def read_event(event):
    category, name = (tables[kind][event[field][0]] for kind, field in ((CATEGORIES, EVENT_CATEGORY), (NAMES, EVENT_NAME)))
    for annotation in map(message, event[EVENT_ANNOTATION]):
        assert annotation[1][0] in tables[ANNOTATIONS]
        assert all(number in tables[VALUES] for number in annotation[17])
        if category != "perfkit":
            values.update(annotation[6])
    if event[EVENT_STACK]:
        seen[category, name, tuple(frame(number) for number in tables[STACKS][event[EVENT_STACK][0]][2])] += 1


for count, packet in enumerate(map(message, message(raw)[1])):
    flags = one(packet, PACKET_FLAGS)
    assert flags == (1 if count == 0 else 2), "packet %d has the flags %s" % (count, flags)
    for interned in packet[PACKET_INTERNED]:
        learn(message(interned))
    for event in map(message, packet[PACKET_EVENT]):
        if event[EVENT_TYPE][0] in (1, 3):
            read_event(event)
assert not values, "texts in events: %s" % values
for kind in (FRAMES, STACKS):
    contents = [repr(sorted(entry.items())[1:]) for entry in tables[kind].values()] # but for the number
    assert len(set(contents)) == len(contents), "kind %d: one has two numbers" % kind

trace = json.load(open(sys.argv[2], encoding="utf-8"))
expected = collections.Counter()


def chrome_stack(number):
    frames = []
    while number:
        node = trace["stackFrames"][str(number)]
        frames.append((node["name"], node["category"]))
        number = node.get("parent")
    return tuple(reversed(frames))


for event in trace["traceEvents"]:
    if "sf" in event:
        expected[event["cat"], event["name"], chrome_stack(event["sf"])] += 1


def as_chrome(frames):
    """As the Chrome trace tells them: paths end after 4,096 bytes."""
    cut = [(name, path if path is None else path.encode()[:4096].decode("utf-8", "ignore"), line) for name, path, line in frames]
    return tuple((name, "n/a" if path is None else path if line is None else "%s:%d" % (path, line))
                 for name, path, line in cut)


got = collections.Counter()
for (category, name, frames), count in seen.items():
    got[category, name, as_chrome(frames)] += count
assert got == expected, ("call stacks differ: %s" % [pair for pair in (got - expected, expected - got)])[:4000]
print("%d slices with %d call stacks of %d frames" % (sum(got.values()), len(tables[STACKS]), len(tables[FRAMES])))
