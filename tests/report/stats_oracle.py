"""What the statistics should say, worked out from lists of events with Python's own `statistics`: a
second reading of the definitions in docs/reference/stats.md that shares no code with the first.

Events are dictionaries; times are ns, None is unknown. See test_stats.py for how they are made."""
import statistics
from collections import defaultdict


def spread(values):
    """Sum, count, mean, median, least, most, deviation of the sample."""
    if not values:
        return [0, 0, None, None, None, None, None]
    return [sum(values), len(values), statistics.fmean(values), statistics.median(values),
            min(values), max(values), statistics.stdev(values) if len(values) > 1 else None]


def distribution(prefix, unit, values, scale=1):
    _, _, mean, median, least, most, deviation = spread(values)
    parts = zip(("Avg", "Med", "Min", "Max", "StdDev"), (mean, median, least, most, deviation))
    return {f"{prefix}{name} ({unit})": None if value is None else value / scale
            for name, value in parts}


def timed(groups, counted, name):
    """Rows of Time (%), Total Time, count and distribution; groups: key -> durations."""
    listed = sum(sum(durations) for durations in groups.values())
    for key, durations in groups.items():
        if durations:
            yield {"Time (%)": 100 * sum(durations) / listed, "Total Time (ns)": sum(durations),
                   counted: len(durations), **distribution("", "ns", durations), **name(key)}


def whole(op):
    return op["start"] is not None and op["duration"] is not None


OPERATIONS = {1: "memcpy Host-to-Device", 2: "memcpy Device-to-Host", 8: "memcpy Device-to-Device",
              100: "memset"}
APIS = {"cuda": "CUDA", "opencl": "OpenCL"}


class Oracle:
    """`ops`: kernels, copies and fills with api, kind (None: a kernel), name, grid, block, bytes,
    start, duration, call {name, start, duration, thread}; `calls`: all API calls; `ranges`: name,
    domain, push_pop, thread, start, duration; `pids`: of threads; `ordinals`: of streams."""

    def __init__(self, ops, calls, ranges, migrations, pids, tids, ordinals):
        self.ops, self.calls, self.ranges, self.migrations = ops, calls, ranges, migrations
        self.pids, self.tids, self.ordinals = pids, tids, ordinals

    def operation(self, op):
        return f"[{APIS[op['api']]} {OPERATIONS[op['kind']]}]"

    def kernels(self):
        return [op for op in self.ops if op["kind"] is None and whole(op)]

    def by(self, key, ops=None):
        groups = defaultdict(list)
        for op in self.kernels() if ops is None else ops:
            groups[key(op)].append(op["duration"])
        return groups

    def cuda_gpu_kern_sum(self):
        return timed(self.by(lambda op: op["name"]), "Instances", lambda key: {"Name": key})

    def cuda_gpu_kern_gb_sum(self):
        def xyz(three):
            return None if None in three else "%4d %4d %4d" % three

        return timed(self.by(lambda op: (op["grid"], op["block"], op["name"])), "Instances",
                     lambda key: {"GridXYZ": xyz(key[0]), "BlockXYZ": xyz(key[1]), "Name": key[2]})

    def moved(self):
        return [op for op in self.ops if op["kind"] is not None]

    def cuda_gpu_mem_time_sum(self):
        return timed(self.by(self.operation, [op for op in self.moved() if whole(op)]), "Count",
                     lambda key: {"Operation": key})

    def cuda_gpu_mem_size_sum(self):
        groups = defaultdict(list)
        for op in self.moved():
            if op["bytes"] is not None:
                groups[self.operation(op)].append(op["bytes"])
        for key, sizes in groups.items():
            yield {"Total (MB)": sum(sizes) / 1e6, "Count": len(sizes),
                   **distribution("", "MB", sizes, 1e6), "Operation": key}

    def device_groups(self):
        groups = defaultdict(list)
        apis = defaultdict(set)
        for op in self.ops:
            if op["kind"] is None:
                apis[op["name"]].add(op["api"])
        for op in self.ops:
            if op["kind"] is None:
                api = apis[op["name"]]
                word = f"{APIS[next(iter(api))].upper()}_KERNEL" if len(api) == 1 else "KERNEL"
                key = (word, op["name"])
            else:
                key = ("MEMORY_OPER", self.operation(op))
            if whole(op):
                groups[key].append(op["duration"])
        return groups

    def cuda_gpu_sum(self):
        return timed(self.device_groups(), "Instances",
                     lambda key: {"Category": key[0], "Operation": key[1]})

    def call_groups(self):
        groups = defaultdict(list)
        for call in self.calls:
            if call["duration"] is not None:
                groups[call["name"]].append(call["duration"])
        return groups

    def cuda_api_gpu_sum(self):
        groups = self.device_groups()
        for name, durations in self.call_groups().items():
            groups["OPENCL_API" if name.startswith("cl") else "CUDA_API", name] = durations
        return timed(groups, "Instances", lambda key: {"Category": key[0], "Operation": key[1]})

    def cuda_api_sum(self):
        return timed(self.call_groups(), "Num Calls", lambda key: {"Name": key})

    def launches(self):
        for op in self.kernels():
            call = op["call"]
            if call is None or call["duration"] is None:
                continue
            call_end, end = call["start"] + call["duration"], op["start"] + op["duration"]
            queue = op["start"] - call_end
            yield op, call, (max(call_end, end) - call["start"], call["duration"],
                             queue if queue > 0 else None, op["duration"])

    def cuda_kern_exec_sum(self):
        groups = defaultdict(list)
        for op, call, times in self.launches():
            groups[call["thread"], op["stream_device"], call["name"], op["name"]].append(
                (times, op["ordinal"]))
        for (thread, _, call, name), rows in groups.items():
            total, api, queue, kernel = zip(*(times for times, _ in rows))
            queue = [wait for wait in queue if wait is not None]
            yield {"PID": self.pids[thread], "TID": self.tids[thread], "DevId": rows[0][1],
                   "Count": len(rows), "QCount": len(queue), **distribution("T", "ns", total),
                   **distribution("A", "ns", api), **distribution("Q", "ns", queue),
                   **distribution("K", "ns", kernel), "API Name": call, "Kernel Name": name}

    def cuda_kern_exec_trace(self):
        for op, call, (total, api, queue, kernel) in self.launches():
            yield {"API Start (ns)": call["start"], "API Dur (ns)": api,
                   "Queue Start (ns)": None if queue is None else call["start"] + api,
                   "Queue Dur (ns)": queue, "Kernel Start (ns)": op["start"],
                   "Kernel Dur (ns)": kernel, "Total Dur (ns)": total,
                   "API Function": call["name"], "Kernel Name": op["name"]}

    def cuda_gpu_trace(self):
        for op in self.ops:
            moved = op["kind"] is not None
            rate = None
            if moved and whole(op) and op["bytes"] is not None and op["duration"]:
                rate = op["bytes"] * 1e3 / op["duration"]
            yield {"Start (ns)": op["start"], "Duration (ns)": op["duration"],
                   "Bytes (MB)": op["bytes"] / 1e6 if moved and op["bytes"] is not None else None,
                   "Throughput (MB/s)": rate, "Strm": op["native"],
                   "Name": self.operation(op) if moved else op["name"]}

    def cuda_api_trace(self):
        for call in self.calls:
            yield {"Start (ns)": call["start"], "Duration (ns)": call["duration"],
                   "Name": call["name"], "Pid": self.pids[call["thread"]],
                   "Tid": self.tids[call["thread"]]}

    # -- NVTX ----------------------------------------------------------------------------------------

    @staticmethod
    def label(one):
        return f"{one['domain'] or ''}:{one['name']}"

    @staticmethod
    def style(one):
        return "PushPop" if one["push_pop"] else "StartEnd"

    def ranges_by(self, key, chosen):
        groups = defaultdict(list)
        for one in self.ranges:
            if one["duration"] is not None and chosen(one):
                groups[key(one)].append(one["duration"])
        return groups

    def nvtx_sum(self):
        groups = self.ranges_by(lambda one: (self.style(one), self.label(one)), lambda one: True)
        return timed(groups, "Instances", lambda key: {"Style": key[0], "Range": key[1]})

    def nvtx_pushpop_sum(self):
        return timed(self.ranges_by(self.label, lambda one: one["push_pop"]), "Instances",
                     lambda key: {"Range": key})

    def nvtx_startend_sum(self):
        return timed(self.ranges_by(self.label, lambda one: not one["push_pop"]), "Instances",
                     lambda key: {"Range": key})

    @staticmethod
    def holds(one, call):
        if call is None or call["thread"] != one["thread"] or call["start"] < one["start"]:
            return False
        return one["duration"] is None or call["start"] < one["start"] + one["duration"]

    @staticmethod
    def inside(inner, outer):
        return (inner is not outer and inner["thread"] == outer["thread"] and
                inner["domain"] == outer["domain"] and inner["push_pop"] == outer["push_pop"] and
                outer["start"] <= inner["start"] and
                inner["start"] + inner["duration"] <= outer["start"] + outer["duration"])

    def projections(self):
        """(range, its operations, how many ranges are around it, and directly inside it)"""
        for one in self.ranges:
            held = [op for op in self.ops if whole(op) and self.holds(one, op["call"])]
            around = [other for other in self.ranges if self.inside(one, other)]
            inner = [other for other in self.ranges if self.inside(other, one)]
            direct = [other for other in inner
                      if not any(self.inside(other, between) for between in inner)]
            yield one, held, len(around), direct

    def nvtx_gpu_proj_sum(self):
        groups = defaultdict(list)
        for one, held, level, direct in self.projections():
            if held:
                first = min(op["start"] for op in held)
                last = max(op["start"] + op["duration"] for op in held)
                groups[self.label(one), self.style(one)].append(
                    (last - first, one["duration"], len(held), level, len(direct)))
        for (name, style), rows in groups.items():
            projected, durations, counts, levels, children = zip(*rows)
            yield {"Range": name, "Style": style, "Total Proj Time (ns)": sum(projected),
                   "Total Range Time (ns)": sum(durations), "Range Instances": len(rows),
                   **distribution("Proj ", "ns", projected), "Total GPU Ops": sum(counts),
                   "Avg GPU Ops": statistics.fmean(counts), "Avg Range Lvl": statistics.fmean(levels),
                   "Avg Num Child": statistics.fmean(children)}

    def nvtx_gpu_proj_trace(self):
        for one, held, level, direct in self.projections():
            if held:
                first = min(op["start"] for op in held)
                last = max(op["start"] + op["duration"] for op in held)
                yield {"Name": self.label(one), "Projected Start (ns)": first,
                       "Projected Duration (ns)": last - first, "Orig Start (ns)": one["start"],
                       "Orig Duration (ns)": one["duration"], "Style": self.style(one),
                       "NumGPUOps": len(held), "Lvl": level, "NumChild": len(direct)}

    def nvtx_pushpop_trace(self):
        for one, _, level, direct in self.projections():
            if one["push_pop"]:
                child = sum(other["duration"] for other in direct)
                yield {"Start (ns)": one["start"], "End (ns)": one["start"] + one["duration"],
                       "Duration (ns)": one["duration"], "DurChild (ns)": child,
                       "DurNonChild (ns)": one["duration"] - child, "Name": self.label(one),
                       "Lvl": level, "NumChild": len(direct)}

    def nvtx_kern_sum(self):
        groups = defaultdict(list)
        for number, one in enumerate(self.ranges):
            for op in self.kernels():
                if self.holds(one, op["call"]):
                    key = (self.label(one), self.style(one), one["thread"], op["name"])
                    groups[key].append((number, op["duration"]))
        for (name, style, thread, kernel), rows in groups.items():
            durations = [duration for _, duration in rows]
            yield {"NVTX Range": name, "Style": style, "PID": self.pids[thread],
                   "TID": self.tids[thread], "NVTX Inst": len({number for number, _ in rows}),
                   "Kern Inst": len(rows), "Total Time (ns)": sum(durations),
                   **distribution("", "ns", durations), "Kernel Name": kernel}

    # -- unified memory ------------------------------------------------------------------------------

    @staticmethod
    def known(values):
        values = [value for value in values if value is not None]
        return sum(values) if values else None

    def migrated(self, rows, prefix, faults):
        def of(kind, member):
            return self.known([row[member] for row in rows if row["kind"] == kind])

        def mega(value):
            return None if value is None else value / 1e6

        return {f"{prefix}HtoD Migration Size (MB)": mega(of(1, "bytes")),
                f"{prefix}DtoH Migration Size (MB)": mega(of(2, "bytes")),
                f"{prefix}CPU Page Faults": of(3, "faults"), faults: of(4, "faults")}

    def um_sum(self):
        groups = defaultdict(list)
        for row in self.migrations:
            groups[row["address"]].append(row)
        for address, rows in groups.items():
            yield {"Virtual Address": hex(address), **self.migrated(rows, "", "GPU Page Faults")}

    def um_total_sum(self):
        addresses = [row["address"] for row in self.migrations]
        if addresses:
            yield {**self.migrated(self.migrations, "Total ", "Total GPU PageFaults"),
                   "Minimum Virtual Address": hex(min(addresses)),
                   "Maximum Virtual Address": hex(max(addresses))}
