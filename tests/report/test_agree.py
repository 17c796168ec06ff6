#!/usr/bin/env python3
"""Every quantity that stands in more than one output has one value: that of SQL on the capture.

    test_agree.py PERFKIT REPORT_TOOL SOURCE_FOLDER WORK_FOLDER [BUILD_FOLDER]
    test_agree.py PERFKIT --capture FILE...        any captures (none that were filtered or merged)

A quantity is a row of QUANTITIES: its name, its SQL, and for each output that has it where it stands there. Texts
are rounded: they agree when their rounded figure does. Of each finding, every figure of the sentence is one of its
numbers and the bound is what its formula makes of them.
"""
import collections
import concurrent.futures
import csv
import io
import json
import os
import re
import sqlite3
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "exchange")]
from protobuf import message  # noqa: E402

FIXTURES = ("normal", "awkward", "hostile", "empty", "live", "more", "counters", "host", "two_processes",
            "dormant")

# What the fixtures lack: programs that do one thing only, graphs with work nobody called, and known losses.
HEAD = """
INSERT INTO capture(state, perfkit_version, command, duration, exit_status) VALUES('complete', '0.1.0', './one', 1000000, 0);
INSERT INTO process(pid, command, start, end, end_reason, exit_status, spool) VALUES(7, './one', 0, 1000000, 'exit', 0, 's');
INSERT INTO thread(process, tid) VALUES(1, 7);
INSERT INTO device(process, api, ordinal, name, uuid, kind) VALUES(1, '%(api)s', 0, 'GPU', 'u', 'gpu');
INSERT INTO stream(process, device, api, native) VALUES(1, 1, '%(api)s', 7);
INSERT INTO string(id, value) VALUES(1, 'work'), (2, 'call'), (3, 'step');
INSERT INTO launch_config(name, grid_x, block_x) VALUES(1, 1, 1);
"""
MADE = {
    "memsets": HEAD % {"api": "cuda"} + """
INSERT INTO memset(start, duration, stream, bytes, memory_kind, thread, api_name, api_lead, api_duration) VALUES
  (1000, 500, 1, 4096, 3, 1, 2, 100, 50), (3000, 700, 1, 100, 3, 1, 2, 100, 50), (9000, NULL, 1, 64, 3, 1, 2, 100, 50);""",
    "opencl": HEAD % {"api": "opencl"} + """
INSERT INTO kernel(start, duration, stream, config, thread, api_name, api_lead, api_duration) VALUES
  (1000, 500, 1, 1, 1, 2, 200, 50), (2000, 600, 1, 1, 1, 2, 200, 50), (NULL, NULL, 1, 1, 1, 2, 5000, 50);
INSERT INTO transfer(start, duration, stream, bytes, kind, thread, api_name, api_lead, api_duration) VALUES
  (3000, 50, 1, 1000, 1, 1, 2, 100, 20), (4000, 60, 1, 1000, 2, 1, 2, 100, 20), (5000, 10, 1, 500, 11, 1, 2, 100, 20);
INSERT INTO memset(start, duration, stream, bytes, thread, api_name, api_lead, api_duration) VALUES(6000, 9, 1, 77, 1, 2, 10, 5);
INSERT INTO allocation(process, start, end, bytes, kind, native, address, source, device) VALUES
  (1, 100, 9000, 4096, 3, 1, 1, 1, 1), (1, 200, NULL, 128, 3, 2, 2, 1, 1);""",
    "ranges_only": HEAD.split("INSERT INTO device")[0] + """INSERT INTO string(id, value) VALUES(1, 'outer'), (2, 'inner');
INSERT INTO range(start, duration, thread, name, depth) VALUES(0, 1000, 1, 1, 0), (100, 200, 1, 2, 1), (400, 200, 1, 2, 1),
  (5000, NULL, 1, 1, 0);""",
    "graphs": HEAD % {"api": "cuda"} + """
INSERT INTO api_call(start, duration, thread, name, source, correlation) VALUES(900, 60, 1, 2, 1, 77), (6900, 60, 1, 2, 1, 78);
INSERT INTO kernel(start, duration, stream, config, correlation, graph_node) VALUES(1000, 100, 1, 1, 77, 4294967297),
  (1200, 150, 1, 1, 77, 4294967298);
INSERT INTO transfer(start, duration, stream, bytes, kind, correlation, graph_node) VALUES(1400, 10, 1, 64, 1, 77, 4294967299);
INSERT INTO memset(start, duration, stream, bytes, correlation, graph_node) VALUES(1500, 10, 1, 64, 77, 4294967300);
INSERT INTO graph_launch(start, duration, stream, graph, correlation) VALUES(7000, 300, 1, 3, 78);
INSERT INTO capture_health(process, subject, item, value) VALUES(1, 'graph', 'launched', 2), (1, 'graph', 'kernels', 2),
  (1, 'graph', 'transfers', 1), (1, 'graph', 'memsets', 1), (1, 'graph', 'whole', 1);""",
    "losses": HEAD % {"api": "cuda"} + """
INSERT INTO kernel(start, duration, stream, config, thread, api_name, api_lead, api_duration) VALUES
  (1000, 500, 1, 1, 1, 2, 200, 50), (2000, 600, 1, 1, 1, 2, 200, 50);
INSERT INTO transfer(start, duration, stream, bytes, kind, thread) VALUES(3000, 50, 1, 1000, 1, 1);
INSERT INTO capture_health(process, subject, item, value) VALUES(1, 'launch', 'called', 9), (1, 'launch', 'recorded', 2),
  (1, 'launch', 'dropped', 7), (1, 'transfer', 'called', 1), (1, 'transfer', 'recorded', 1);""",
}

# ---- outputs: each is read once, when first asked for ----------------------------------------------


class Outputs:
    def __init__(self, perfkit, capture):
        self.perfkit, self.capture, self.made = perfkit, capture, {}
        self.db = sqlite3.connect("file:%s?mode=ro" % os.path.abspath(capture), uri=True)
        self.db.text_factory = bytes

    def sql(self, sql):
        return self.db.execute(sql).fetchone()[0] or 0

    def run(self, *arguments):
        done = subprocess.run([self.perfkit, *arguments], capture_output=True, env=dict(os.environ, NO_COLOR="1"))
        assert done.returncode == 0, (arguments, done.returncode, done.stderr)
        return done.stdout

    def once(self, name, make):
        if name not in self.made:
            self.made[name] = make()
        return self.made[name]

    FILES = ("--html", "--chrome-trace", "--perfetto", "--prometheus", "--flamegraph")

    def path(self, option):
        return "%s.%s" % (self.capture, option.strip("-"))

    def written(self, option):
        assert self.json
        with open(self.path(option), "rb") as file:
            return file.read()

    @property
    def json(self):
        """And all files, by one command."""
        files = [word for option in self.FILES for word in (option, self.path(option))]
        return self.once("json", lambda: json.loads(self.run("report", self.capture, "--json", "--top", "1000000", *files)))

    @property
    def finished(self):
        """Of a running capture top judges what was lately."""
        return self.top["state"] == "finished"

    @property
    def text(self):
        """On one line: long ones are wrapped."""
        return self.once("text", lambda: " ".join(self.run("report", self.capture, "--all").decode("utf-8", "replace").split()))

    @property
    def csv(self):
        def read():
            tables = collections.defaultdict(list)
            head = None
            for line in csv.reader(io.StringIO(self.run("report", self.capture, "--format", "csv", "--top", "1000000")
                                               .decode("utf-8", "surrogateescape"))):
                if line and line[0] == "table":
                    head = line
                elif line:
                    tables[line[0]].append(dict(zip(head, line)))
            return tables
        return self.once("csv", read)

    @property
    def html(self):
        def read():
            page = self.written("--html").decode("utf-8", "replace")
            text = page[page.index('id="data">') + len('id="data">'):]
            data = json.loads(text[:text.index("</script>")])
            data["tables"] = {table["name"]: [dict(zip((c["key"] for c in table["columns"]), row)) if isinstance(row, list)
                                              else row for row in table["rows"]] for table in data["tables"]}
            return data
        return self.once("html", read)

    @property
    def top(self):
        return self.once("top", lambda: json.loads(
            self.run("top", "--json", "--view", "all", "--window", "all", self.capture).splitlines()[-1]))

    STATS = ("cuda_gpu_kern_sum", "cuda_gpu_kern_gb_sum", "cuda_gpu_mem_time_sum", "cuda_gpu_mem_size_sum", "cuda_api_sum",
             "nvtx_sum")

    @property
    def stats(self):
        def read():
            made = json.loads(self.run("report", self.capture, "--stats", ",".join(self.STATS), "--json"))["stats"]
            return {table["name"]: table["rows"] for table in made}
        return self.once("stats", read)

    @property
    def prometheus(self):
        def read():
            sums = collections.defaultdict(float)
            for line in self.written("--prometheus").decode("utf-8", "replace").splitlines():
                if line and line[0] != "#":
                    name, value = line.split("{")[0].split(" ")[0], line.rsplit(" ", 1)[1]
                    sums[name] += float(value)
            return sums
        return self.once("prometheus", read)

    @property
    def chrome(self):
        """category -> (slices, their time in ns)"""
        def read():
            events = json.loads(self.written("--chrome-trace"))["traceEvents"]
            sums = collections.defaultdict(lambda: [0, 0])
            for event in events:
                if event.get("ph") == "X":
                    sums[event["cat"]][0] += 1
                    sums[event["cat"]][1] += round(event["dur"] * 1000)
            return sums
        return self.once("chrome", read)

    @property
    def perfetto(self):
        def read():
            raw, names, counts = self.written("--perfetto"), {}, collections.Counter()
            for packet in map(message, message(raw)[1]):
                for interned in map(message, packet[12]):
                    for entry in map(message, interned[1]):
                        names[entry[1][0]] = entry[2][0].decode("utf-8", "replace")
                for event in map(message, packet[11]):
                    if event[9][0] == 1:
                        counts[names[event[3][0]]] += 1
            return counts
        return self.once("perfetto", read)

    def flame(self, weight):
        def read():
            stacks = self.written("--flamegraph") if weight == "time" else \
                self.run("report", self.capture, "--flamegraph", "-", "--weight", weight)
            return sum(int(line.rsplit(b" ", 1)[1]) for line in stacks.splitlines())
        return self.once("flame " + weight, read)

    @property
    def diff(self):
        return self.once("diff", lambda: json.loads(self.run("diff", self.capture, self.capture, "--json", "--top", "1000000")))


# ---- where a quantity stands -----------------------------------------------------------------------


def column(table, key, where=lambda row: True):
    """In all outputs that have the report's tables."""
    def total(rows):
        return sum(int(float(row[key] or 0)) for row in rows if where(row))
    return {"json": lambda o: total(o.json[table]["rows"]), "csv": lambda o: total(o.csv[table]),
            "html": lambda o: total(o.html["tables"].get(table, []))}


def counted(kind, key):
    """kind: memcpys or memsets; in the table that has both."""
    return column("transfers", key, lambda row: (row["name"] == "memset") == (kind == "memsets"))


def top_rows(view, key, where=lambda row: True):
    return {"top rows": lambda o: sum(row[key] or 0 for row in o.top[view]["rows"] if where(row))}


def top_total(key):
    return {"top totals": lambda o: o.top["totals"][key]}


def stats(name, key, factor=1, where=lambda row: True):
    return {"stats " + name: lambda o: round(sum(float(row[key] or 0) * factor for row in o.stats[name] if where(row)))}


def is_memset(row):
    return "memset" in row["Operation"].lower() or "fill" in row["Operation"].lower()


def is_memcpy(row):
    return not is_memset(row)


def prometheus(name, factor=1):
    return {"prometheus": lambda o: round(o.prometheus[name] * factor)}


def text(pattern, absent=None):
    """A rounded figure of the text report. absent: what it is when the text does not have it."""
    def find(o):
        found = re.search(pattern, o.text)
        return Rounded(found.group(1)) if found else absent
    return {"text": find}


def html(key):
    return {"html head": lambda o: o.html[key]}


def diff(metric):
    """Only what is of the whole run: the rest is of steady iterations."""
    def find(o):
        rows = [row for row in o.diff["rows"] if row["metric"] == metric]
        whole = rows and all(row["per"] == "run" for row in rows)
        assert all(row["base"] == row["cand"] for row in rows), metric
        return sum(row["base"] for row in rows) if whole else None
    return {"diff": find}


class Rounded:
    """A figure as people read it: "1.25 ms", "40.0 MiB", "1,380", "54.6 %"."""
    UNITS = {"": 1, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "B": 1, "KiB": 2 ** 10, "MiB": 2 ** 20, "GiB": 2 ** 30, "TiB": 2 ** 40,
             "%": 0.01}

    def __init__(self, shown):
        self.shown = shown
        digits, unit = re.fullmatch(r"(-?[\d,]+(?:\.\d+)?) ?(\w+|%)?", shown).groups()
        self.scale = self.UNITS[unit or ""]
        self.value = float(digits.replace(",", "")) * self.scale
        self.half = 0.5 * self.scale * 10.0 ** -len(digits.partition(".")[2])

    def __eq__(self, other):
        return abs(self.value - other) <= self.half * 1.000001

    def __repr__(self):
        return repr(self.shown)


def both(*places):
    made = {}
    for place in places:
        made.update(place)
    return made


DONE = "start IS NOT NULL AND duration IS NOT NULL"
COUNT = r"([\d,]+)"
SIZE = r"([\d.,]+ [KMGT]?i?B)"
TIME = r"([\d.,]+ (?:ns|us|ms|s))"

QUANTITIES = [
    ("kernels that ended", "SELECT count(*) FROM kernel WHERE " + DONE,
     both(column("kernels", "count"), top_total("kernels"), top_rows("kernels", "all_count"),
          stats("cuda_gpu_kern_sum", "Instances"), stats("cuda_gpu_kern_gb_sum", "Instances"),
          prometheus("perfkit_kernel_invocations_total"))),
    ("kernels", "SELECT count(*) FROM kernel",
     both(text(r"Kernels: %s (?:launch|execution)" % COUNT, 0), html("kernels"))),
    ("kernels in graphs", "SELECT count(*) FROM kernel WHERE graph_node NOT NULL",
     both(text(r"Kernels: [^;]*; %s in graphs" % COUNT, 0), html("kernels_in_graphs"))),
    ("kernel time", "SELECT sum(duration) FROM kernel WHERE " + DONE,
     both(column("kernels", "total_ns"), top_total("kernel_ns"), top_rows("kernels", "all_ns"),
          top_rows("processes", "all_kernel_ns"), stats("cuda_gpu_kern_sum", "Total Time (ns)"),
          prometheus("perfkit_kernel_time_seconds_total", 1e9),
          text(r"Kernels: [\d,]+ (?:launch|execution)\w* of [\d,]+ kernels?(?: \([^)]*\))?, %s" % TIME))),
    ("memcpys", "SELECT count(*) FROM transfer",
     both(html("memcpys"), top_total("memcpys"), text(r"Memcpy and memset: %s memcpy" % COUNT, 0))),
    ("memcpys that ended", "SELECT count(*) FROM transfer WHERE " + DONE,
     both(counted("memcpys", "count"), top_rows("transfers", "all_count", lambda row: row["name"] != "memset"),
          stats("cuda_gpu_mem_time_sum", "Count", 1, is_memcpy), prometheus("perfkit_memcpy_operations_total"))),
    ("memcpy bytes", "SELECT sum(bytes) FROM transfer",
     both(counted("memcpys", "bytes"), html("memcpy_bytes"), prometheus("perfkit_memcpy_bytes_total"),
          stats("cuda_gpu_mem_size_sum", "Total (MB)", 1e6, is_memcpy),
          top_total("memcpy_bytes"), top_rows("transfers", "all_bytes", lambda row: row["name"] != "memset"),
          text(r"Memcpy and memset: [\d,]+ memcpys? \(%s" % SIZE, 0))),
    ("memcpy time", "SELECT sum(duration) FROM transfer WHERE " + DONE,
     both(counted("memcpys", "total_ns"), top_total("memcpy_ns"), prometheus("perfkit_memcpy_time_seconds_total", 1e9),
          stats("cuda_gpu_mem_time_sum", "Total Time (ns)", 1, is_memcpy),
          text(r"Memcpy and memset: [\d,]+ memcpys? \([^,]*, %s" % TIME, 0))),
    ("memsets", "SELECT count(*) FROM memset",
     both(html("memsets"), top_total("memsets"),
          text(r"Memcpy and memset:(?: [\d,]+ memcpys? \([^)]*\),)? %s memset" % COUNT, 0))),
    ("memsets that ended", "SELECT count(*) FROM memset WHERE " + DONE,
     both(counted("memsets", "count"), top_rows("transfers", "all_count", lambda row: row["name"] == "memset"),
          stats("cuda_gpu_mem_time_sum", "Count", 1, is_memset), prometheus("perfkit_memset_operations_total"))),
    ("memset bytes", "SELECT sum(bytes) FROM memset",
     both(counted("memsets", "bytes"), html("memset_bytes"), prometheus("perfkit_memset_bytes_total"),
          stats("cuda_gpu_mem_size_sum", "Total (MB)", 1e6, is_memset),
          top_total("memset_bytes"), top_rows("transfers", "all_bytes", lambda row: row["name"] == "memset"),
          text(r"memsets? \(%s, [^)]*\)" % SIZE, 0))),
    ("memset time", "SELECT sum(duration) FROM memset WHERE " + DONE,
     both(counted("memsets", "total_ns"), top_total("memset_ns"), prometheus("perfkit_memset_time_seconds_total", 1e9),
          stats("cuda_gpu_mem_time_sum", "Total Time (ns)", 1, is_memset))),
    ("graphs as a whole", "SELECT count(*) FROM graph_launch WHERE " + DONE, column("graphs", "count")),
    ("operations on devices", "SELECT (SELECT count(*) FROM kernel) + (SELECT count(*) FROM transfer) + "
     "(SELECT count(*) FROM memset) + (SELECT count(*) FROM graph_launch)", {"flame count": lambda o: o.flame("count")}),
    ("time of operations", "SELECT (SELECT total(duration) FROM kernel WHERE %(d)s) + (SELECT total(duration) FROM transfer "
     "WHERE %(d)s) + (SELECT total(duration) FROM memset WHERE %(d)s) + (SELECT total(duration) FROM graph_launch WHERE %(d)s)"
     % {"d": DONE}, {"flame time": lambda o: o.flame("time")}),
    ("slices of kernels", "SELECT (SELECT count(*) FROM kernel WHERE %(d)s) + (SELECT count(*) FROM graph_launch WHERE %(d)s)"
     % {"d": DONE}, {"chrome": lambda o: o.chrome["kernel"][0], "perfetto": lambda o: o.perfetto["kernel"]}),
    ("slices of memcpys", "SELECT count(*) FROM transfer WHERE " + DONE,
     {"chrome": lambda o: o.chrome["gpu_memcpy"][0], "perfetto": lambda o: o.perfetto["gpu_memcpy"]}),
    ("slices of memsets", "SELECT count(*) FROM memset WHERE " + DONE,
     {"chrome": lambda o: o.chrome["gpu_memset"][0], "perfetto": lambda o: o.perfetto["gpu_memset"]}),
    ("time of memcpys' slices", "SELECT sum(duration) FROM transfer WHERE " + DONE,
     {"chrome": lambda o: o.chrome["gpu_memcpy"][1]}),
    ("time of memsets' slices", "SELECT sum(duration) FROM memset WHERE " + DONE,
     {"chrome": lambda o: o.chrome["gpu_memset"][1]}),
    ("API calls", "SELECT (SELECT count(*) FROM api_call WHERE duration NOT NULL) + (SELECT count(*) FROM kernel WHERE api_name "
     "NOT NULL AND api_duration NOT NULL) + (SELECT count(*) FROM transfer WHERE api_name NOT NULL AND api_duration NOT NULL) "
     "+ (SELECT count(*) FROM memset WHERE api_name NOT NULL AND api_duration NOT NULL) + (SELECT count(*) FROM sync WHERE "
     "api_name NOT NULL AND api_duration NOT NULL)",
     both(column("api", "count"), stats("cuda_api_sum", "Num Calls"))),
    ("ranges that ended", "SELECT count(*) FROM range WHERE duration NOT NULL",
     both(column("ranges", "count"), stats("nvtx_sum", "Instances"))),
    ("ranges", "SELECT count(*) FROM range", text(r"NVTX ranges: %s range" % COUNT, 0)),
    ("range time", "SELECT sum(duration) FROM range",
     both(column("ranges", "total_ns"), stats("nvtx_sum", "Total Time (ns)"))),
    ("memory peak", None,
     both({"json": lambda o: o.json["memory"]["all"]["peak_bytes"] if o.json["memory"].get("all") else 0}, html("peak_bytes"),
          top_total("peak_bytes"), text(r"Memory: peak %s" % SIZE))),
    ("memory never freed", None,
     both({"json": lambda o: o.json["memory"]["all"]["leaked_bytes"] if o.json["memory"].get("all") else 0}, html("leaked_bytes"))),
    ("busy time", None,
     both(column("devices", "busy_ns"), {"html busy": lambda o: sum(row["busy_ns"] for row in o.html["busy"])},
          prometheus("perfkit_gpu_busy_seconds_total", 1e9))),
    ("idle time is wall time less busy time", None,
     {"json": lambda o: sum(row["idle_ns"] for row in o.json["devices"]["rows"]),
      "difference": lambda o: sum(row["window_ns"] - row["busy_ns"] for row in o.json["devices"]["rows"]),
      "parts": lambda o: sum(row["lead_ns"] + row["gap_ns"] + row["tail_ns"] for row in o.json["devices"]["rows"])}),
    ("gaps", None,
     {"json": lambda o: sum(row["gap_ns"] for row in o.json["devices"]["rows"]),
      "rows": lambda o: sum(row["duration_ns"] for row in o.json["gaps"]["rows"])
      if len(o.json["gaps"]["rows"]) == sum(row["gap_count"] for row in o.json["devices"]["rows"]) else None}),
    ("shares of states", None, {"json": lambda o: round(sum(row["share"] for row in o.json["states"]["rows"]), 9),
                                "devices": lambda o: len({row["device"] for row in o.json["states"]["rows"]})}),
    ("findings", None, {"json": lambda o: len(o.json["findings"]["rows"]), "top": lambda o: len(o.top["findings"]["rows"]) if o.finished else None,
                        "text": lambda o: int(re.search(r"Findings: (\w+)", o.text).group(1).replace("none", "0").replace("n", "0")
                                              if re.search(r"Findings: (\d+|none)", o.text) else 0)}),
    ("bounds of findings", None,
     {"json": lambda o: sum(row["bound_ns"] or 0 for row in o.json["findings"]["rows"]),
      "top": lambda o: sum(row["bound_ns"] or 0 for row in o.top["findings"]["rows"]) if o.finished else None}),
]


def compare(o, name):
    """The differences of a capture, as sentences."""
    wrong, compared = [], 0
    for quantity, sql, places in QUANTITIES:
        values = {place: find(o) for place, find in places.items()}
        if sql:
            values = {"SQL": int(o.sql(sql)), **values}
        known = {place: value for place, value in values.items() if value is not None}
        exact = [value for value in known.values() if not isinstance(value, Rounded)]
        compared += len(known)
        if any(value != exact[0] for value in known.values()):
            wrong.append("%s: %s: %s" % (name, quantity, known))
    return wrong, compared


SEVERITIES = ["critical", "warning", "info"]

# ---- findings --------------------------------------------------------------------------------------


def check_finding(finding):
    """What does not hold of it."""
    seen = re.sub(r"\w[\w:]*<(?:.*>(\(.*?\))?|[^>]*?\.\.\.)", "", finding["seen"])  # a name of C++, cut or whole
    numbers = {n["name"]: n for n in finding["numbers"]}
    if finding["bound_ns"] is not None and finding["bound_formula"]:
        value, sign = 0, 1
        for word in finding["bound_formula"].split():
            if word in "+-":
                sign = 1 if word == "+" else -1
            else:
                value += sign * numbers[word]["value"]
        if value != finding["bound_ns"]:
            yield "%s: bound %d, by its formula %d" % (finding["rule"], finding["bound_ns"], value)
    texts = sorted((n["text"] for n in finding["numbers"]), key=len, reverse=True)
    for place in sorted(filter(None, (p["name"] for p in finding["places"])), key=len, reverse=True):
        seen = seen.replace(place, "")
    for shown in texts:
        seen = re.sub(r"(?<![\w.,])%s(?![\w.,]*\d)" % re.escape(shown), "", seen)
    left = re.findall(r"(?<![\w:/.<,-])\d[\d.,]*", seen)
    if left:
        yield "%s: figures %s are none of the numbers: %s" % (finding["rule"], left, finding["seen"])


def check_order(o):
    """What does not hold of the order of findings: one in all lists, the worst severity first, and a rule's phases by their bound."""
    rows = o.json["findings"]["rows"]
    rules = [row["rule"] for row in rows]
    page = o.written("--html").decode("utf-8", "replace")
    lists = {"text": re.findall(r"(?<= )([a-z-]+) \((?:info|warning|critical)\)", o.text),
             "html": re.findall(r"<summary><h3 id=\"finding-\d+-title\">.*?<code>(.*?)</code></h3>", page),
             "sql": [row["rule"] for row in json.loads(o.run("sql", o.capture, "--json", "SELECT rule FROM findings"))]}
    if o.finished:
        lists["top"] = [row["rule"] for row in o.top["findings"]["rows"]]
    for name, listed in lists.items():
        if listed != rules:
            yield "findings of %s are in another order than in json: %s, %s" % (name, listed, rules)
    for first, second in zip(rows, rows[1:]):
        if SEVERITIES.index(first["severity"]) > SEVERITIES.index(second["severity"]):
            yield "%s (%s) is before %s (%s)" % (first["rule"], first["severity"], second["rule"], second["severity"])
        if first["rule"] == second["rule"] and first["severity"] == second["severity"] and \
                (first["bound_ns"] or 0) < (second["bound_ns"] or 0) and first["rule_bound_ns"] == second["rule_bound_ns"]:
            yield "%s: %s before %s" % (first["rule"], first["bound_ns"], second["bound_ns"])


# ---- captures --------------------------------------------------------------------------------------


def captures(perfkit, tool, source, work, build):
    """name -> file"""
    made = {}
    for name in FIXTURES:
        made[name] = os.path.join(source, name + ".sql")
    for name, sql in MADE.items():
        made[name] = os.path.join(work, name + ".sql")
        with open(made[name], "w", encoding="utf-8") as out:
            out.write(sql)
    for name, sql in made.items():
        made[name] = os.path.join(work, name + ".sqlite")
        subprocess.run([tool, "make", sql, made[name]], check=True)
    import nsys_files
    nsys = os.path.join(work, "nsys-file.sqlite")
    if os.path.exists(nsys):
        os.remove(nsys)
    nsys_files.make(nsys)
    kineto = os.path.join(work, "kineto.json")
    subprocess.run([perfkit, "report", made["normal"], "--chrome-trace", kineto, "-q"], check=True)
    for name, file in (("nsys", nsys), ("kineto", kineto)):
        made[name] = os.path.join(work, name + ".sqlite")
        subprocess.run([perfkit, "import", file, "-f", "-q", "-o", made[name]], check=True)
    target = build and os.path.join(build, "targets", "opencl", "exact")
    if target and os.path.exists(target):
        recorded = os.path.join(work, "recorded.sqlite")
        done = subprocess.run([perfkit, "run", "-f", "-o", recorded, "--", target, "--rounds", "3"], capture_output=True)
        if done.returncode == 0:
            made["recorded"] = recorded
            said = done.stderr.decode()
            db = sqlite3.connect(recorded)
            for noun, table in (("kernel launch", "kernel"), ("memcpy", "transfer"), ("memset", "memset")):
                counted_ = db.execute("SELECT count(*) FROM " + table).fetchone()[0]
                found = re.search(r"([\d,]+) %s" % noun, said)
                assert (int(found.group(1).replace(",", "")) if found else 0) == counted_, (noun, counted_, said)
            db.close()
        else:
            print("no OpenCL device: no recorded capture")
    return made


def check(perfkit, name, file):
    o = Outputs(perfkit, file)
    wrong, compared = compare(o, name)
    wrong += ["%s: %s" % (name, what) for what in check_order(o)]
    for finding in o.json["findings"]["rows"]:
        wrong += ["%s: %s" % (name, what) for what in check_finding(finding)]
    o.db.close()
    return wrong, compared, len(o.json["findings"]["rows"])


def main():
    perfkit = os.path.abspath(sys.argv[1])
    if sys.argv[2] == "--capture":
        made = {os.path.basename(name): name for name in sys.argv[3:]}
    else:
        tool, source, work = map(os.path.abspath, sys.argv[2:5])
        os.makedirs(work, exist_ok=True)
        made = captures(perfkit, tool, source, work, sys.argv[5] if len(sys.argv) > 5 else None)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        checked = list(pool.map(lambda item: check(perfkit, *item), made.items()))
    wrong, compared, findings = sum((c[0] for c in checked), []), sum(c[1] for c in checked), sum(c[2] for c in checked)
    for line in wrong:
        print("FAIL " + line)
    print("%d captures, %d quantities, %d values, %d findings" % (len(made), len(QUANTITIES), compared, findings))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
