#!/usr/bin/env python3
"""The flame graph in its three formats, read by decoders of our own, and compared with the capture.

    profiles_check.py CAPTURE FOLDED SPEEDSCOPE PPROF
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
    capture, folded, speedscope, pprof = sys.argv[1:]
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
    print(f"ok: {len(samples)} stacks of {count} operations, {device_ns} ns, {moved} bytes")


main()
