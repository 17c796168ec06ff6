#!/usr/bin/env python3
"""Reads dumps of CUPTI's buffers (perfkit run --cupti-dump; layout in collectors/cuda/dump.h).

    dump_reader.py FILE [--records]       what it holds, for people
    dump_reader.py FILE --expect [OPTION...] > FILE.json
                                          what a capture of its replay must hold, for test_replay.py;
                                          OPTION: of perfkit run, that the replay needs

Shares nothing with the collector: CUPTI's records are decoded here by offsets of their own, so that
the collector and ingest are checked against somebody else's reading. FILE may be compressed (.gz).
"""
import collections
import glob
import gzip
import json
import os
import re
import struct
import sys

SIZE, STRING, BUFFER, CALLBACK, FLUSH, DROPPED, END = range(1, 8)
LOST_RECORDS, LOST_CALLBACKS = 0, 1
RUNTIME, DRIVER = 5, 4
RESOURCE_DOMAIN, GRAPHNODE_CREATED, GRAPHNODE_CLONED = 3, 13, 20

# kind: (name, {field: (offset, format)}); a field beyond the end of a shorter, older record is None
DEVICE_WORK = {"start": (16, "Q"), "end": (24, "Q")}
KERNEL = dict(DEVICE_WORK, registers=(6, "H"), device=(40, "I"), context=(44, "I"),
              stream=(48, "I"), grid=(52, "3i"), block=(64, "3i"), shared_static=(76, "i"),
              shared_dynamic=(80, "i"), correlation=(92, "I"), name=(104, "P"),
              launch_type=(136, "B"), graph_node=(144, "Q"), graph=(156, "I"))
COPY = dict(DEVICE_WORK, copy_kind=(4, "B"), source=(5, "B"), target=(6, "B"), flags=(7, "B"),
            bytes=(8, "Q"), device=(32, "I"), context=(36, "I"), stream=(40, "I"))
CALL = {"cbid": (4, "I"), "start": (8, "Q"), "end": (16, "Q"), "process": (24, "I"),
        "thread": (28, "I"), "correlation": (32, "I"), "result": (36, "I")}
KINDS = {
    1: ("MEMCPY", dict(COPY, correlation=(44, "I"), graph_node=(64, "Q"))),
    2: ("MEMSET", dict(DEVICE_WORK, value=(4, "I"), bytes=(8, "Q"), device=(32, "I"),
                       context=(36, "I"), stream=(40, "I"), correlation=(44, "I"),
                       memory_kind=(50, "H"), graph_node=(64, "Q"))),
    3: ("KERNEL", KERNEL),
    4: ("DRIVER", CALL),
    5: ("RUNTIME", CALL),
    8: ("DEVICE", {"ordinal": (112, "I"), "name": (136, "P")}),
    9: ("CONTEXT", {"context": (4, "I"), "device": (8, "I"), "null_stream": (14, "H"),
                    "green": (20, "B")}),
    10: ("CONCURRENT_KERNEL", KERNEL),
    11: ("NAME", {"name": (24, "P")}),
    12: ("MARKER", {"time": (8, "Q"), "name": (40, "P"), "domain": (48, "P")}),
    17: ("OVERHEAD", {"overhead": (4, "I"), "object": (8, "I"), "process": (12, "I"),
                      "thread": (16, "I"), "start": (24, "Q"), "end": (32, "Q"),
                      "correlation": (40, "I")}),
    22: ("MEMCPY2", dict(COPY, source_device=(44, "I"), target_device=(52, "I"),
                         correlation=(60, "I"), graph_node=(72, "Q"))),
    25: ("UNIFIED_MEMORY_COUNTER", {"counter": (4, "I"), "value": (8, "Q"), "start": (16, "Q"),
                                    "end": (24, "Q"), "address": (32, "Q"), "source": (40, "I"),
                                    "target": (44, "I"), "stream": (48, "I")}),
    36: ("CUDA_EVENT", {"correlation": (4, "I"), "context": (8, "I"), "stream": (12, "I"),
                        "event": (16, "I"), "time": (40, "Q"), "recorded": (48, "Q")}),
    37: ("STREAM", {"context": (4, "I"), "stream": (8, "I"), "priority": (12, "i"),
                    "flag": (16, "I")}),
    38: ("SYNCHRONIZATION", {"type": (4, "I"), "start": (8, "Q"), "end": (16, "Q"),
                             "correlation": (24, "I"), "context": (28, "I"), "stream": (32, "I"),
                             "event": (36, "I"), "recorded": (40, "Q")}),
    39: ("EXTERNAL_CORRELATION", {"external": (8, "Q"), "correlation": (16, "I")}),
    48: ("INTERNAL_LAUNCH_API", CALL),
    49: ("MEMORY2", {"operation": (4, "I"), "memory_kind": (8, "I"), "correlation": (12, "I"),
                     "address": (16, "Q"), "bytes": (24, "Q"), "time": (32, "Q"),
                     "process": (48, "I"), "device": (52, "I"), "context": (56, "I"),
                     "stream": (60, "I"), "name": (64, "P"), "source": (120, "P")}),
    50: ("MEMORY_POOL", {"operation": (4, "I"), "type": (8, "I"), "correlation": (12, "I"),
                         "device": (20, "I"), "address": (32, "Q"), "bytes": (40, "Q"),
                         "time": (56, "Q")}),
    51: ("GRAPH_TRACE", {"correlation": (4, "I"), "start": (8, "Q"), "end": (16, "Q"),
                         "device": (24, "I"), "graph": (28, "I"), "context": (32, "I"),
                         "stream": (36, "I")}),
    52: ("JIT", {"input": (4, "I"), "operation": (8, "I"), "device": (12, "I"),
                 "start": (16, "Q"), "end": (24, "Q"), "correlation": (32, "I"),
                 "cache_bytes": (48, "Q"), "path": (56, "P"), "process": (64, "I"),
                 "thread": (68, "I")}),
}
POINTER = "P"
COPY_KINDS = {1, 22}
KERNEL_KINDS = {3, 10}


class BadDump(Exception):
    pass


class Record:
    """One of CUPTI's: .kind, .kind_name, .raw, .fields (texts where the record has addresses)."""

    def __init__(self, raw, texts):
        self.raw = raw
        self.kind = struct.unpack_from("<I", raw)[0]
        self.kind_name, layout = KINDS.get(self.kind, ("kind %d" % self.kind, {}))
        self.fields = {}
        for name, (offset, form) in layout.items():
            code = "<Q" if form == POINTER else "<" + form
            if offset + struct.calcsize(code) > len(raw):
                self.fields[name] = None
                continue
            values = struct.unpack_from(code, raw, offset)
            value = values if len(values) > 1 else values[0]
            if form == POINTER:
                value = texts.get(value) if value else None
            self.fields[name] = value

    def __getattr__(self, name):
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(name) from None


class Block:
    def __init__(self, type, time, body):
        self.type, self.time, self.body = type, time, body


class Dump:
    """.version, .cupti_version, .pid, .monotonic, .realtime; .blocks as they stand in the file;
    .buffers [(time, asked_by, given_by, [Record])]; .callbacks [dict]; .dropped {what: count};
    .complete: the final flush is in it; .truncated: it ends within a block."""

    def __init__(self, data):
        if len(data) < 40 or data[:8] != b"PFKCUPT\n":
            raise BadDump("not a CUPTI dump")
        (self.version, header_bytes, self.cupti_version, self.pid, self.monotonic,
         self.realtime) = struct.unpack_from("<4I2Q", data, 8)
        if self.version != 1:
            raise BadDump("version %d of the dump's layout is not known" % self.version)
        self.header = data[:header_bytes]
        self.blocks, self.buffers, self.callbacks, self.flushes = [], [], [], []
        self.dropped = collections.Counter()
        self.complete = self.truncated = False
        self.sizes, self._texts = {}, {}
        at = header_bytes
        while at + 16 <= len(data):
            type, size, time = struct.unpack_from("<IIQ", data, at)
            at += 16
            if at + size > len(data):
                self.truncated = True
                break
            self._block(Block(type, time, data[at:at + size]))
            at += (size + 7) // 8 * 8

    def _block(self, block):
        self.blocks.append(block)
        body = block.body
        if block.type == SIZE:
            kind, size = struct.unpack_from("<II", body)
            self.sizes[kind] = size
        elif block.type == STRING:
            self._texts[struct.unpack_from("<Q", body)[0]] = body[8:].decode("utf-8",
                                                                            "surrogateescape")
        elif block.type == BUFFER:
            asked, given = struct.unpack_from("<II", body)
            block.records = list(self._records(body))
            self.buffers.append((block.time, asked, given, block.records))
        elif block.type == CALLBACK:
            names = ("domain", "cbid", "tid", "site", "correlation", "context", "stream", "graph",
                     "node", "original_node", "node_type", "original_graph", "handle")
            self.callbacks.append(dict(zip(names, struct.unpack_from("<8I2Q2IQ", body)),
                                       time=block.time))
        elif block.type == FLUSH:
            self.flushes.append((block.time, struct.unpack_from("<I", body)[0]))
        elif block.type == DROPPED:
            count, what = struct.unpack_from("<QI", body)
            self.dropped[what] += count
        elif block.type == END:
            self.complete = True

    def _records(self, body):
        at = 8
        while at + 4 <= len(body):
            size = self.sizes.get(struct.unpack_from("<I", body, at)[0])
            if not size or at + size > len(body):
                raise BadDump("a buffer holds a record of an unknown size")
            yield Record(body[at:at + size], self._texts)
            at += size

    def records(self, *kinds):
        return [r for buffer in self.buffers for r in buffer[3] if not kinds or r.kind in kinds]


def load(path):
    try:
        with (gzip.open if str(path).endswith(".gz") else open)(path, "rb") as file:
            return Dump(file.read())
    except (struct.error, EOFError) as error:
        raise BadDump("damaged: %s" % error) from None


# ---- what a capture of it must hold


def function_names(folder=None):
    """{(RUNTIME or DRIVER, cbid): name}, from lines X(cbid, "name") that the build made of CUPTI's
    headers, or from the headers."""
    folders = [folder] if folder else ["/usr/local/cuda/include"] + glob.glob(
        "/usr/local/cuda*/targets/*/include")
    for folder in folders:
        names = {}
        for kind, domain in ((RUNTIME, "runtime"), (DRIVER, "driver")):
            for path, pattern in (
                    ("cupti_%s_names.inc", r'X\((?P<id>\d+), "(?P<name>\w+)"\)'),
                    ("cupti_%s_cbid.h", r"TRACE_CBID_(?P<name>\w+) += (?P<id>\d+),")):
                path = os.path.join(folder, path % domain)
                if os.path.exists(path):
                    with open(path) as file:
                        for match in re.finditer(pattern, file.read()):
                            names[kind, int(match["id"])] = match["name"]
        if names:
            return names
    raise BadDump("CUPTI's headers were not found")


def plain(name):
    """As the program's source has it."""
    name = re.sub(r"^__cuda", "cuda", name)
    name = re.sub(r"_v\d{4,}$", "", name)
    return re.sub(r"_(ptsz|ptds)$", "", name)


LAUNCHES = re.compile(r"(cudaLaunchKernel(ExC)?|cudaLaunchCooperativeKernel|"
                      r"cuLaunchKernel(Ex)?|cuLaunchCooperativeKernel)$")


def outer_calls(dump, names):
    """API records that no runtime call of the same thread encloses: [(Record, plain name)]."""
    runtime = collections.defaultdict(list)
    for call in dump.records(RUNTIME):
        runtime[call.thread].append(call)
    for calls in runtime.values():
        calls.sort(key=lambda call: call.start)
    outer = [(call, plain(names.get((RUNTIME, call.cbid), "?"))) for call in dump.records(RUNTIME)]
    for call in dump.records(DRIVER):
        if not any(other.start <= call.start and call.end <= other.end
                   for other in runtime[call.thread]):
            outer.append((call, plain(names.get((DRIVER, call.cbid), "?"))))
    return outer


def has_time(record):
    return record.start and record.end and record.end >= record.start


def tally(values):
    return {str(key): count for key, count in sorted(collections.Counter(values).items())}


def expectations(dump, names, options=()):
    kernels = dump.records(*KERNEL_KINDS)
    copies = dump.records(*COPY_KINDS)
    fills = dump.records(2)
    outer = outer_calls(dump, names)
    by_id = collections.defaultdict(set)
    for call, name in outer:
        by_id[call.correlation].add(name)
    nested = {call.correlation for call in dump.records(DRIVER)}
    single = [k for k in kernels if not k.graph_node]
    bytes_by_kind = collections.Counter()
    for copy in copies:
        bytes_by_kind[copy.copy_kind] += copy.bytes
    callbacks = [c for c in dump.callbacks if c["domain"] == RESOURCE_DOMAIN]
    nodes = [c for c in callbacks if c["cbid"] == GRAPHNODE_CREATED or
             (c["cbid"] == GRAPHNODE_CLONED and c["original_node"])]
    memory = dump.records(49)
    return {
        "options": list(options),
        "complete": dump.complete and not dump.dropped,
        "dropped": dump.dropped[LOST_RECORDS],
        "kernels": len(kernels),
        "kernel_names": tally(k.name for k in kernels),
        "kernel_ns": sum(k.end - k.start for k in kernels if has_time(k)),
        "kernel_configs": len({(k.name, k.grid, k.block, k.shared_static, k.shared_dynamic,
                                k.registers) for k in kernels}),
        "graph_kernels": len(kernels) - len(single),
        "launching_calls": tally("/".join(sorted(by_id[k.correlation])) for k in single
                                 if by_id[k.correlation]),
        "launches_without_call": sum(not by_id[k.correlation] and k.correlation not in nested
                                     for k in single),
        "launches_called": sum(bool(LAUNCHES.match(name)) for _, name in outer),
        "launches_failed": sum(bool(LAUNCHES.match(name)) and call.result != 0
                               for call, name in outer),
        "transfers": tally(c.copy_kind for c in copies),
        "transfer_bytes": {str(kind): n for kind, n in sorted(bytes_by_kind.items())},
        "transfer_memory": tally("%d>%d" % (c.source, c.target) for c in copies),
        "memsets": len(fills),
        "memset_bytes": sum(f.bytes for f in fills),
        "syncs": tally(s.type for s in dump.records(38)),
        "allocations": sum(m.operation == 1 for m in memory),
        "allocated_bytes": sum(m.bytes for m in memory if m.operation == 1),
        "frees": sum(m.operation == 2 for m in memory),
        "devices": sorted({d.name for d in dump.records(8)}),
        "contexts": sorted({c.context for c in dump.records(9)}),
        "streams": sorted({"%d.%d" % (r.context, r.stream)
                           for r in kernels + copies + fills + dump.records(37)}),
        "graph_nodes": sum(c["cbid"] == GRAPHNODE_CREATED for c in nodes),
        "graph_clones": sum(c["cbid"] == GRAPHNODE_CLONED for c in nodes),
        "whole_graphs": len(dump.records(51)),
        "events": len(dump.records(36)),
        "overheads": tally(o.overhead for o in dump.records(17)),
        "pools": tally(p.operation for p in dump.records(50)),
        "jits": tally(j.operation for j in dump.records(52)),
        "migrations": tally(m.counter for m in dump.records(25)),
    }


# ---- for people


def show(dump, every):
    print("CUPTI %d, process %d, %d blocks%s%s" % (
        dump.cupti_version, dump.pid, len(dump.blocks),
        ", whole" if dump.complete else ", without its end", ", cut short" * dump.truncated))
    for what, count in dump.dropped.items():
        print("%d %s dropped" % (count, ("records", "callbacks")[what]))
    threads = {asked for _, asked, _, _ in dump.buffers}
    print("%d buffers of %d threads, %d flushes, %d callbacks" % (
        len(dump.buffers), len(threads), len(dump.flushes), len(dump.callbacks)))
    counts = collections.Counter(r.kind_name for r in dump.records())
    for name, count in counts.most_common():
        print("%8d %s" % (count, name))
    if not every:
        return
    for block in dump.blocks:
        time = (block.time - dump.monotonic) / 1e6
        if block.type == BUFFER:
            print("%12.3f ms buffer of thread %d, %d bytes" % (
                time, struct.unpack_from("<I", block.body)[0], len(block.body) - 8))
            for record in block.records:
                print("    %s %s" % (record.kind_name, " ".join(
                    "%s=%s" % item for item in record.fields.items())))
        elif block.type == CALLBACK:
            print("%12.3f ms callback domain %d id %d thread %d node %d" % (
                (time,) + struct.unpack_from("<3I", block.body) +
                struct.unpack_from("<Q", block.body, 32)))
        elif block.type == FLUSH:
            print("%12.3f ms flush" % time)
        elif block.type == END:
            print("%12.3f ms end" % time)


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    try:
        dump = load(sys.argv[1])
        if "--expect" in sys.argv:
            options = sys.argv[sys.argv.index("--expect") + 1:]
            json.dump(expectations(dump, function_names(), options), sys.stdout, indent=1)
            print()
        else:
            show(dump, "--records" in sys.argv)
    except (BadDump, OSError) as error:
        sys.exit("dump_reader.py: %s: %s" % (sys.argv[1], error))
    except BrokenPipeError:
        sys.exit(1)


if __name__ == "__main__":
    main()
