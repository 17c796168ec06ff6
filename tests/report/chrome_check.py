#!/usr/bin/env python3
"""Checks a Chrome trace for what its readers need: chrome_check.py TRACE REPORT_JSON

Times have exactly three decimals; pids and tids are numbers; slices of a lane nest; both ends of each
flow are there and stand on slices; every lane has a name; the counts are those of the report."""
import collections
import json
import re
import sys

trace_path, report_path = sys.argv[1:3]
raw = open(trace_path, encoding="utf-8").read()
trace = json.loads(raw)
report = json.load(open(report_path, encoding="utf-8"))
events = trace["traceEvents"]
problems = []


def expect(condition, *words):
    if not condition:
        problems.append(" ".join(str(word) for word in words))


for key, value in re.findall(r'"(ts|dur)":([^,}]*)', raw):
    expect(re.fullmatch(r"-?\d+\.\d{3}", value), key, "is", value)
for event in events:
    expect(isinstance(event["pid"], int) and isinstance(event["tid"], int), "pid or tid", event)
    expect(isinstance(event["name"], str), "name", event)


def ns(us):
    return round(us * 1000)


lanes = collections.defaultdict(list)
for event in events:
    if event["ph"] == "X":
        start = ns(event["ts"])
        lanes[event["pid"], event["tid"]].append((start, start + ns(event["dur"]), event))
for lane, slices in lanes.items():
    open_ends = []
    for start, end, event in sorted(slices, key=lambda s: (s[0], -s[1])):
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        expect(not open_ends or end <= open_ends[-1], "slice crosses another on lane", lane, event)
        open_ends.append(end)

named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
processes = {e["pid"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
for lane in lanes:
    expect(lane in named, "lane without a name", lane)
    expect(lane[0] in processes, "process without a name", lane)

flows = collections.defaultdict(list)
for event in events:
    if event["ph"] in "sf":
        flows[event["id"]].append(event)
for number, ends in flows.items():
    expect(sorted(e["ph"] for e in ends) == ["f", "s"], "flow", number, [e["ph"] for e in ends])
    for end in ends:
        at = ns(end["ts"])
        expect(any(start == at for start, _, _ in lanes[end["pid"], end["tid"]]),
               "flow end on no slice", end)

shown = collections.Counter(e.get("cat") for e in events if e["ph"] in "Xi")
finished = sum(row["count"] for table in ("kernels", "graphs") for row in report[table]["rows"])
expect(sum(1 for e in events if e["ph"] == "X" and e.get("cat") == "kernel") == finished, "kernels", shown)
copies = sum(row["count"] for row in report["transfers"]["rows"])
expect(shown["gpu_memcpy"] + shown["gpu_memset"] == copies, "transfers", shown, copies)
calls = sum(row["count"] for row in report["api"]["rows"])
expect(shown["cuda_runtime"] + shown["cuda_driver"] + shown["opencl"] == calls, "calls", shown, calls)
ranges = sum(row["count"] + row["open"] for row in report["ranges"]["rows"])
expect(shown["user_annotation"] + shown["cpu_op"] == ranges, "ranges", shown, ranges)
for event in events:
    if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
        args = event["args"]
        expect(args["stream"] > 0 and args["correlation"] >= 0, "args", event)
expect(trace["otherData"]["complete"] == report["trust"]["complete"], "trust")
moments = collections.Counter(e["name"] for e in events if e["ph"] == "i")
expect(moments["[memory]"] == sum(1 for e in events if e["ph"] == "C" and e["name"].startswith("memory")), "memory", moments)
expect(all(e["args"]["bytes"] >= 0 for e in events if e["ph"] == "C"), "memory below 0")

# What HTA and torch_tb_profiler read (their field names and types).
expect(trace["schemaVersion"] == 1 and isinstance(trace["deviceProperties"], list), "head")
for device in trace["deviceProperties"]:
    expect(isinstance(device["id"], int) and isinstance(device["name"], str), "deviceProperties", device)
expect("baseTimeNanoseconds" not in trace or isinstance(trace["baseTimeNanoseconds"], int), "base time")
ordinals = {d["id"] for d in trace["deviceProperties"]}
for event in events:
    args = event.get("args", {})
    # HTA takes every row with a stream for device work: only that has one.
    expect(("stream" in args) == (event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")), "stream", event)
    if event["ph"] in "Xi" and "stream" in args:
        expect(isinstance(args["stream"], int) and isinstance(args["device"], int), "device args", event)
        expect(event["pid"] == args["device"], "pid of a device's row", event)
        expect(not ordinals or event["pid"] in ordinals or event["pid"] == max(ordinals) + 1, "ordinal", event)
    if event["ph"] == "X" and event.get("cat") in ("cuda_runtime", "cuda_driver", "opencl"):
        expect("stream" not in args and args["correlation"] >= 0, "call", event)
        expect(not event["name"].endswith(("_v3020", "_v7000")), "suffix", event)
    if event.get("cat") == "kernel" and "grid" in args:
        expect(len(args["grid"]) == 3 and len(args["block"]) == 3, "geometry", event)
    if event.get("cat") == "gpu_memcpy":
        expect(event["name"].startswith("Memcpy "), "name", event)
    if event.get("cat") == "gpu_memset":
        expect(event["name"].startswith("Memset "), "name", event)
# "External id" is the innermost operator of the thread around the call, as Kineto's, else the innermost range.
around = {e["args"]["External id"]: e for e in events if e.get("cat") in ("cpu_op", "user_annotation")}
expect(len(around) == shown["user_annotation"] + shown["cpu_op"], "External ids are not unique")
inside = [e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver", "opencl")]
for event in inside:
    at = ns(event["ts"])
    own = [slice for start, end, slice in lanes[event["pid"], event["tid"]]
           if slice.get("cat") in ("cpu_op", "user_annotation") and start <= at < end]
    own = [slice for slice in own if slice["cat"] == "cpu_op"] or own
    number = event["args"].get("External id")
    expect(bool(number) or not own, "no External id", event)
    if number:
        expect(ns(around[number]["ts"]) >= max([ns(e["ts"]) for e in own], default=0), "External id", event)
        expect(ns(around[number]["ts"]) <= at < ns(around[number]["ts"]) + ns(around[number]["dur"]), "External id", event)
of_call = {e["args"]["correlation"]: e["args"].get("External id") for e in inside}
for event in events:
    if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and event["args"]["correlation"] in of_call:
        expect(event["args"].get("External id") == of_call[event["args"]["correlation"]], "External id of a launch", event)
calls = {e["args"]["correlation"] for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver", "opencl")}
led = {(e["pid"], e["tid"], e["ts"]) for e in events if e["ph"] == "f"}
for event in events:
    if event["ph"] == "X" and event.get("cat") in ("kernel", "gpu_memcpy") and (event["pid"], event["tid"], event["ts"]) in led:
        expect(event["args"]["correlation"] in calls, "correlation of no call", event)

for problem in problems[:20]:
    print(problem[:400])
print(trace_path, len(events), "events,", len(lanes), "lanes,", len(flows), "flows,", len(problems), "problems")
sys.exit(1 if problems else 0)
