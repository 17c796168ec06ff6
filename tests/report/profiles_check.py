#!/usr/bin/env python3
"""The flame graph in its four formats, read by decoders of our own, and compared with the capture.

    profiles_check.py CAPTURE FOLDED SPEEDSCOPE PPROF OTLP
"""
import gzip
import json
import sqlite3
import sys

from protobuf import message, packed


def fail(text):
    sys.exit(f"profiles_check: {text}")


def check(condition, text):
    if not condition:
        fail(text)


def read_pprof(path):
    """[(frames outermost first, values)], value types, the profile's other members."""
    with open(path, "rb") as file:
        raw = file.read()
    check(raw[:2] == b"\x1f\x8b" and raw[4:8] == b"\0\0\0\0", "not gzip, or with a time in it")
    profile = message(gzip.decompress(raw))
    strings = [text.decode("utf-8") for text in profile[6]]  # strict: pprof refuses others
    check(strings[0] == "", "string 0 is not empty")
    check(len(set(strings)) == len(strings), "a string is there twice")
    types = [(strings[message(t)[1][0]], strings[message(t)[2][0]]) for t in profile[1]]
    functions, locations = {}, {}
    for data in profile.get(5, []):
        function = message(data)
        check(function[1][0] not in functions and function[1][0] != 0, "ids of functions")
        functions[function[1][0]] = (strings[function[2][0]], strings[function[4][0]])
    for data in profile.get(4, []):
        location = message(data)
        lines = [message(line) for line in location[4]]
        check(len(lines) == 1, "lines of a location")
        locations[location[1][0]] = functions[lines[0][1][0]]
    samples = []
    for data in profile.get(2, []):
        sample = message(data)
        values = packed(sample[2])
        check(len(values) == len(types), "values of a sample")
        stack = tuple(locations[number] for number in packed(sample[1]))
        check(stack, "an empty stack")
        samples.append((stack[::-1], values))
    check(len({stack for stack, _ in samples}) == len(samples), "a stack is there twice")
    return samples, types, profile, strings


# ---- OTLP, by the rules in the comments of opentelemetry-proto 1.11.0 ------------------------------

def fields(data, *allowed):
    found = message(data)
    check(set(found) <= set(allowed), f"fields {set(found)} of a message that has {allowed}")
    return found


def one(found, number):
    """An integer that may be left out when it is 0."""
    return found[number][0] if number in found else 0


def attributes(items):
    pairs = [fields(item, 1, 2) for item in items]
    found = {pair[1][0].decode(): fields(pair[2][0], 1)[1][0].decode() for pair in pairs}
    check(len(found) == len(pairs), "an attribute is there twice")
    return found


def read_otlp(path):
    """({value's (type, unit): [(frames outermost first, value)]}, attributes of the resource, profiles)"""
    with open(path, "rb") as file:
        request = fields(file.read(), 1, 2)
    dictionary = fields(request[2][0], 1, 2, 3, 4, 5, 6, 7)
    for table in (1, 2, 3, 6, 7):
        check(dictionary[table][0] == b"", f"item 0 of table {table}")
    check([message(link) for link in dictionary[4]] == [{1: [bytes(16)], 2: [bytes(8)]}], "links")
    for table in (3, 5, 7):
        check(len(set(dictionary[table])) == len(dictionary[table]), f"an item of table {table} is there twice")
    strings = [text.decode("utf-8") for text in dictionary[5]]
    check(strings[0] == "", "string 0 is not empty")
    functions = [fields(data, 1, 3) for data in dictionary[3]]
    functions = [(strings[one(f, 1)], strings[one(f, 3)]) for f in functions]
    lines = [[fields(line, 1, 2) for line in fields(data, 3)[3]] for data in dictionary[2]]
    check(all(len(line) == 1 for line in lines[1:]), "lines of a location")
    locations = [functions[one(line[0], 1)] + ((line[0][2][0],) if 2 in line[0] else ()) if line else None for line in lines]
    stacks = [tuple(locations[i] for i in packed(fields(data, 1)[1]))[::-1] for data in dictionary[7]]
    check(len(request[1]) == 1, "resources")
    resource = fields(request[1][0], 1, 2)
    scope_profiles = fields(resource[2][0], 1, 2)
    check(message(scope_profiles[1][0])[1] == [b"perfkit"], "scope")
    profiles = [fields(data, 1, 2, 3, 4) for data in scope_profiles[2]]
    found = {}
    for profile in profiles:
        value_type = fields(profile[1][0], 1, 2)
        samples = [fields(data, 1, 4) for data in profile[2]]
        check(all(sample[1][0] and len(packed(sample[4])) == 1 for sample in samples), "a stack and a value of each sample")
        found[strings[value_type[1][0]], strings[value_type[2][0]]] = [(stacks[s[1][0]], packed(s[4])[0]) for s in samples]
    check(len(found) == len(profiles), "a value has two profiles")
    return found, attributes(fields(resource[1][0], 1)[1]), profiles


# ---- speedscope ------------------------------------------------------------------------------------

def read_speedscope(path):
    """{profile's name: [(frames outermost first, weight)]}"""
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    check(document["$schema"] == "https://www.speedscope.app/file-format-schema.json", "$schema")
    check(0 <= document["activeProfileIndex"] < len(document["profiles"]), "activeProfileIndex")
    frames = [(f["name"], f["file"], *([f["line"]] if "line" in f else [])) for f in document["shared"]["frames"]]
    check(len(set(frames)) == len(frames), "a frame is there twice")
    found = {}
    for profile in document["profiles"]:
        check(profile["type"] == "sampled", "type")
        check(len(profile["samples"]) == len(profile["weights"]), "a weight for each sample")
        check(profile["endValue"] - profile["startValue"] == sum(profile["weights"]), "endValue")
        stacks = [tuple(frames[i] for i in sample) for sample in profile["samples"]]
        check(len(set(stacks)) == len(stacks), "a stack is there twice")
        # In time order, equal callers lie side by side: no stack's beginning comes back once it ended.
        ended, open_now = set(), []
        for stack in stacks:
            common = 0
            while common < min(len(stack), len(open_now)) and stack[common] == open_now[common]:
                common += 1
            ended.update(tuple(open_now[:n]) for n in range(common + 1, len(open_now) + 1))
            open_now = list(stack)
            check(not any(stack[:n] in ended for n in range(1, len(stack) + 1)), "order of stacks")
        found[profile["name"]] = list(zip(stacks, profile["weights"]))
    return found


def read_folded(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n").rpartition(" ") for line in file]
    return sum(int(weight) for _, _, weight in lines), len(lines)


def main():
    capture, folded, speedscope, pprof, otlp = sys.argv[1:]
    db = sqlite3.connect(capture)
    tables = {"kernel": "0", "transfer": "bytes", "memset": "bytes", "graph_launch": "0"}
    total = {name: db.execute(f"SELECT count(*), coalesce(sum(max(duration, 0)), 0), "
                              f"coalesce(sum({size}), 0) FROM {name}").fetchone()
             for name, size in tables.items()}
    count, device_ns, moved = (sum(row[i] for row in total.values()) for i in range(3))

    samples, types, profile, strings = read_pprof(pprof)
    check(types == [("operations", "count"), ("device_time", "nanoseconds"), ("moved", "bytes"),
                    ("idle_before", "nanoseconds")],
          f"sample types {types}")
    check([sum(values[i] for _, values in samples) for i in range(3)] == [count, device_ns, moved],
          f"totals are not {count}, {device_ns}, {moved}")
    command = db.execute("SELECT command, start_realtime_ns FROM capture").fetchone()
    check(command[1] is None or profile[9][0] == command[1], "time_nanos")
    check(strings[profile[14][0]] == "device_time", "default_sample_type")
    check(not any(c in text for text in strings for c in "\n\x1b\u202e"), "a name is not clean")

    values, resource, profiles = read_otlp(otlp)
    check(not values or next(iter(values))[0] == "device_time", "the first profile is what tools show")
    check(values == {t: pairs for i, t in enumerate(types)
                     if (pairs := [(stack, weights[i]) for stack, weights in samples if weights[i]])},
          "OTLP differs from pprof")
    check([sum(v for _, v in values.get(t, [])) for t in types[:3]] == [count, device_ns, moved], "totals of OTLP")
    check(all(p.get(3, [None])[0] == command[1] and p.get(4, [0]) == profile.get(10, [0]) for p in profiles), "times of OTLP")
    words = [word.rsplit("/", 1)[-1] for word in (command[0] or "unknown_service").split(" ")]
    script = words[0].startswith("python") and len(words) > 1 and words[1][:1] not in ("", "-")
    check(resource["service.name"] == words[script], f"resource {resource}")

    scope = read_speedscope(speedscope)
    ours_to_theirs = {"kernels, memcpys and memsets": 0, "device time": 1, "bytes of memcpys and memsets": 2,
                      "device idle before": 3}
    check(scope.keys() == ours_to_theirs.keys(), "profiles")
    for unit, index in ours_to_theirs.items():
        # Names are clean in one and as they are in the other: compare the shape and the weights.
        ours = sorted((len(stack), [kind for _, kind in stack], values[index])
                      for stack, values in samples if values[index])
        theirs = sorted((len(stack), [kind for _, kind in stack], weight)
                        for stack, weight in scope[unit])
        check(ours == theirs, f"{unit} differ between the formats")
    check(read_folded(folded)[0] == device_ns, "the folded stacks have another sum")
    kinds = {kind for stack, _ in samples for _, kind in stack}
    check(kinds <= {"process", "NVTX range", "API call", "kernel", "memcpy", "memset"}, f"kinds {kinds}")
    print(f"ok: {len(samples)} stacks of {count} operations, {device_ns} ns, {moved} bytes; "
          f"all values {sum(sum(weights) for _, weights in samples)}")


if __name__ == "__main__":
    main()
