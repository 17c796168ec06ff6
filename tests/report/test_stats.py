#!/usr/bin/env python3
"""Statistics of made-up captures, under every filter, against a second reading of their definitions
(stats_oracle.py):

    test_stats.py PERFKIT REPORT_TOOL WORK_FOLDER
"""
import csv
import io
import json
import os
import random
import subprocess
import sys

from stats_oracle import Oracle

perfkit, tool, work = sys.argv[1:]
os.makedirs(work, exist_ok=True)
os.chdir(work)

PIDS = {1: 100, 2: 200}  # process row -> pid
THREADS = {1: (1, 100), 2: (1, 101), 3: (2, 200)}  # thread row -> (process row, tid)
# stream row -> (process, device row, api, native number)
STREAMS = {1: (1, 1, "cuda", 7), 2: (1, 1, "cuda", 13), 3: (1, 2, "cuda", 7), 4: (2, 3, "opencl", 5)}
DEVICES = {1: (1, "cuda", 0, "GPU A", "u-a"), 2: (1, "cuda", 1, "GPU B", "u-b"),
           3: (2, "opencl", 0, "CPU C", "u-c")}
KERNELS = ["gemm<float, 128>", "softmax", "embed", "gemm_small"]
NAMES = KERNELS + ["cudaLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaMalloc",
                   "cudaGraphLaunch", "clEnqueueNDRangeKernel", "step", "forward", "odd;name", "lib"]
STRING = {name: number for number, name in enumerate(NAMES, 1)}
CONFIGS = [(name, (grid, 1, 1), block) for name in KERNELS
           for grid in (1, 64) for block in ((32, 1, 1), (None, None, None))]


def sql(value):
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


class Made:
    """A random capture: its rows as SQL, and its events as the oracle wants them."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.ops, self.calls, self.ranges, self.migrations = [], [], [], [], []
        self.tables()
        for thread in THREADS:
            self.fill_thread(thread)
        for _ in range(30):
            self.migrate()

    def insert(self, table, **values):
        self.lines.append(f'INSERT INTO {table}({", ".join(values)}) '
                          f'VALUES({", ".join(sql(value) for value in values.values())});')

    def tables(self):
        self.insert("capture", state="complete", command="./made", host="box", duration=10_000_000)
        for pid in PIDS.values():
            self.insert("process", pid=pid, command="./made", birth="start", start=0, spool="s")
        for process, tid in THREADS.values():
            self.insert("thread", process=process, tid=tid)
        for process, api, ordinal, name, uuid in DEVICES.values():
            self.insert("device", process=process, api=api, ordinal=ordinal, name=name, uuid=uuid,
                        kind="gpu")
        for process, device, api, native in STREAMS.values():
            self.insert("stream", process=process, device=device, api=api, native=native)
        for name in NAMES:
            self.insert("string", value=name)
        for name, grid, block in CONFIGS:
            self.insert("launch_config", name=STRING[name], grid_x=grid[0], grid_y=grid[1],
                        grid_z=grid[2], block_x=block[0], block_y=block[1], block_z=block[2],
                        shared_dynamic=self.random.choice([0, 4096]))

    def fill_thread(self, thread):
        """Ranges in ranges, calls in and between them, in order of the thread's time."""
        now = 1000 + thread
        for step in range(6):
            start = now
            now = self.fill_range(thread, now + 10, 2)
            self.range(thread, "step", None, True, start, now + 5)
            now += self.random.randrange(5, 500)
            now = self.call_something(thread, now)
        self.range(thread, "odd;name", "lib", False, 500, now // 2)
        self.range(thread, "odd;name", "lib", False, now // 2 + 3, now)

    def fill_range(self, thread, now, depth):
        for _ in range(self.random.randrange(1, 4)):
            if depth and self.random.random() < 0.6:
                start = now
                now = self.fill_range(thread, now + 7, depth - 1) + 3
                self.range(thread, self.random.choice(["forward", "step"]),
                           self.random.choice([None, None, "lib"]) if depth == 1 else None, True,
                           start, now)
            now = self.call_something(thread, now + self.random.randrange(1, 90))
        return now

    def range(self, thread, name, domain, push_pop, start, end):
        self.insert("range", start=start, duration=end - start, thread=thread, name=STRING[name],
                    domain=STRING[domain] if domain else None, depth=0 if push_pop else None)
        self.ranges.append({"name": name, "domain": domain, "push_pop": push_pop, "thread": thread,
                            "start": start, "duration": end - start})

    def call_something(self, thread, now):
        lasts = self.random.randrange(1, 60)
        what = self.random.choice("kkkkccmag")
        process = THREADS[thread][0]
        streams = [row for row, stream in STREAMS.items() if stream[0] == process]
        if what == "a":
            self.api_call(thread, "cudaMalloc", now, lasts, None)
        elif what == "g":
            correlation = now
            call = self.api_call(thread, "cudaGraphLaunch", now, lasts, correlation)
            for _ in range(3):
                self.kernel(self.random.choice(streams), None, call, correlation)
        elif what == "k":
            stream = self.random.choice(streams)
            name = "clEnqueueNDRangeKernel" if STREAMS[stream][2] == "opencl" else "cudaLaunchKernel"
            self.kernel(stream, self.call(thread, name, now, lasts), None, None)
        else:
            name = "cudaMemcpyAsync" if what == "c" else "cudaMemsetAsync"
            self.move(self.random.choice(streams), self.call(thread, name, now, lasts), what == "c")
        return now + lasts + 1

    def call(self, thread, name, start, duration):
        call = {"thread": thread, "name": name, "start": start, "duration": duration}
        self.calls.append(call)
        return call

    def api_call(self, thread, name, start, duration, correlation):
        self.insert("api_call", start=start, duration=duration, thread=thread, name=STRING[name],
                    source=1, correlation=correlation)
        return self.call(thread, name, start, duration)

    def times(self, call):
        start = call["start"] + self.random.choice([5, 40, 700, 30000])
        return start, self.random.choice([None, 1, 3] + [self.random.randrange(2000)] * 9)

    def row(self, table, stream, own, call, correlation, **more):
        """A device record; `own` is the call in its row, `call` the one it belongs to."""
        start, duration = self.times(call)
        api = {"api_name": STRING[own["name"]], "api_lead": start - own["start"],
               "api_duration": own["duration"], "thread": own["thread"]} if own else {}
        self.insert(table, start=start, duration=duration, stream=stream, correlation=correlation,
                    **api, **more)
        process, device, kind, native = STREAMS[stream]
        return {"start": start, "duration": duration, "stream": stream, "process": process,
                "stream_device": device, "ordinal": DEVICES[device][2], "api": kind,
                "native": native, "call": call}

    def kernel(self, stream, own, call, correlation):
        number = self.random.randrange(len(CONFIGS))
        name, grid, block = CONFIGS[number]
        op = self.row("kernel", stream, own, own or call, correlation, config=number + 1)
        self.ops.append({**op, "kind": None, "name": name, "grid": grid, "block": block})

    def move(self, stream, call, copy):
        size = self.random.choice([None, 0, 4, 4096, 1 << 20, 160 << 20])
        if copy:
            kind = self.random.choice([1, 2, 8])
            op = self.row("transfer", stream, call, call, None, bytes=size, kind=kind,
                          source_kind=self.random.choice([1, 2, None]))
        else:
            kind = 100
            op = self.row("memset", stream, call, call, None, bytes=size)
        self.ops.append({**op, "kind": kind, "name": None, "bytes": size})

    def migrate(self):
        kind = self.random.choice([1, 2, 3, 4])
        row = {"kind": kind, "address": self.random.choice([0x7F0000000000, 0x7F0000200000]),
               "bytes": 65536 if kind < 3 else None,
               "faults": self.random.randrange(1, 50) if kind >= 3 else None,
               "start": self.random.randrange(9000), "process": 1}
        self.insert("migration", duration=10 if kind < 3 else None, target=1, **row)
        self.migrations.append(row)

    # -- filters -------------------------------------------------------------------------------------

    def oracle(self, op=None, call=None, one=None, migration=None):
        """With what each test lets through; None = everything."""
        def chosen(rows, test):
            return [row for row in rows if not test or test(row)]

        pids = {row: PIDS[process] for row, (process, _) in THREADS.items()}
        tids = {row: tid for row, (_, tid) in THREADS.items()}
        return Oracle(chosen(self.ops, op), chosen(self.calls, call), chosen(self.ranges, one),
                      chosen(self.migrations, migration), pids, tids, None)


def rows_of(made_json):
    return {stat["name"]: stat["rows"] for stat in made_json["stats"]}


def close(ours, theirs):
    if isinstance(ours, (int, float)) and isinstance(theirs, (int, float)):
        return abs(ours - theirs) <= 1e-9 * max(1, abs(ours), abs(theirs))
    return ours == theirs


def order(row):
    """What sorts both readings alike: figures first rounded, since their last digits may differ."""
    return [f"{value:.6g}" if isinstance(value, (int, float)) else str(value)
            for value in row.values()]


def compare(what, ours, theirs):
    columns = list(theirs[0]) if theirs else []
    ours = sorted(({name: row[name] for name in columns} for row in ours), key=order)
    theirs = sorted(theirs, key=order)
    if len(ours) != len(theirs):
        sys.exit(f"{what}: {len(ours)} rows, not {len(theirs)}")
    for mine, right in zip(ours, theirs):
        for name in columns:
            if not close(mine[name], right[name]):
                sys.exit(f"{what}: {name} is {mine[name]!r}, not {right[name]!r} in {right}")


STATS = [name for name in dir(Oracle) if name.startswith(("cuda_", "nvtx_", "um_"))]


def run(*arguments):
    return subprocess.run([perfkit, "report", *arguments], capture_output=True, text=True)


def check(capture, made, label, options, stats=STATS, **tests):
    answer = run(capture, "--stats", ",".join(stats), "--json", *options)
    if answer.returncode:
        sys.exit(f"{label}: {answer.stderr}")
    ours, oracle = rows_of(json.loads(answer.stdout)), made.oracle(**tests)
    for stat in stats:
        compare(f"{label}: {stat}", ours[stat], list(getattr(oracle, stat)()))
    return sum(len(rows) for rows in ours.values())


def started(event, begin, end):
    return begin <= event["start"] < end


def check_filters(capture, made):
    """Each option, on the tables for which it is plain what it leaves."""
    def all_of(test):
        return {"op": test, "call": test, "one": test, "migration": test}

    work_tables = [name for name in STATS if not name.startswith("nvtx_")]
    plain = ["cuda_gpu_kern_sum", "cuda_gpu_kern_gb_sum", "cuda_gpu_mem_time_sum", "cuda_api_sum",
             "cuda_gpu_mem_size_sum", "cuda_gpu_sum", "cuda_gpu_trace", "cuda_kern_exec_sum"]
    check(capture, made, "time", ["--from", "1.5us", "--to", "3us"], work_tables + ["nvtx_sum"],
          **all_of(lambda event: started(event, 1500, 3000)))
    check(capture, made, "process", ["--process", "200"], STATS,
          op=lambda op: op["process"] == 2, migration=lambda row: row["process"] == 2,
          call=lambda call: THREADS[call["thread"]][0] == 2,
          one=lambda one: THREADS[one["thread"]][0] == 2)

    def on(streams):
        calls = {id(op["call"]) for op in made.ops if op["stream"] in streams}
        graphs = {id(op["call"]) for op in made.ops if op["call"]["name"] == "cudaGraphLaunch"}
        return {"op": lambda op: op["stream"] in streams,
                "call": lambda call: id(call) in calls - graphs}

    check(capture, made, "device", ["--device", "cuda:0"], plain, **on({1, 2}))
    check(capture, made, "device by name", ["--device", "CPU C"], plain, **on({4}))
    check(capture, made, "device by uuid", ["--device", "u-b"], plain, **on({3}))
    check(capture, made, "streams", ["--stream", "7"], plain, **on({1, 3}))
    check(capture, made, "stream of a device", ["--stream", "7", "--device", "1"], plain, **on({3}))
    own = {id(op["call"]) for op in made.ops if op["kind"] is None and
           op["name"].startswith("gemm") and op["call"]["name"] != "cudaGraphLaunch"}
    check(capture, made, "kernel", ["--kernel", "^gemm[<_]"],
          ["cuda_gpu_kern_sum", "cuda_gpu_sum", "cuda_gpu_trace", "cuda_kern_exec_sum",
           "nvtx_kern_sum", "cuda_api_sum", "cuda_api_trace"],
          op=lambda op: op["kind"] is None and op["name"].startswith("gemm"),
          call=lambda call: id(call) in own)
    for argument, name, domains in (("forward", "forward", (None, "lib")), ("step", "step", (None,)),
                                    ("forward@lib", "forward", ("lib",)),
                                    ("forward@", "forward", (None,))):
        outer = [one for one in made.ranges if one["name"] == name and one["domain"] in domains]

        def within(call, outer=outer):
            return any(Oracle.holds(one, call) for one in outer)

        check(capture, made, f"nvtx {argument}", ["--nvtx", argument],
              plain + ["nvtx_sum", "nvtx_kern_sum", "cuda_kern_exec_trace", "cuda_api_trace"],
              op=lambda op: within(op["call"]), call=within, one=within,
              migration=lambda row: False)


def check_refusals(capture):
    for options, words in ((["--process", "999"], "100, 200"), (["--device", "9"], "(cuda:0, GPU A"),
                           (["--device", "0"], "fits several"), (["--device", "GPU"], "fits several"),
                           (["--stream", "99"], "7, 13"), (["--nvtx", "none"], "nvtx_sum"),
                           (["--nvtx", "odd;name@"], "and domain"), (["--kernel", "("], "("),
                           (["--kernel", "^gem$"], "'^gem$'"),
                           (["--from", "2", "--to", "1"], "later"), (["--stats", "nvtx_sums"], "nvtx_sum'"),
                           (["--stats", "nvtx_sum,bad"], "bad"), (["--to", "0"], "later")):
        answer = run(capture, *options)
        if answer.returncode != 2 or words not in answer.stderr or answer.stdout:
            sys.exit(f"{options}: status {answer.returncode}, {answer.stderr!r}, not {words!r}")


def check_formats(capture):
    """CSV says what JSON says; text and Markdown have its rows."""
    for stat in STATS:
        rows = rows_of(json.loads(run(capture, "--stats", stat, "--json").stdout))[stat]
        text = run(capture, "--stats", stat, "--format", "csv").stdout
        table = list(csv.reader(io.StringIO(text, newline="")))
        if table[0] != list(rows[0]) or len(table) != len(rows) + 1:
            sys.exit(f"{stat}: CSV has other columns or rows than JSON: {table[0]}")
        for line, row in zip(table[1:], rows):
            for cell, value in zip(line, row.values()):
                if cell != ("" if value is None else str(value)) and float(cell) != value:
                    sys.exit(f"{stat}: CSV has {cell!r} for {value!r}")
        screen = run(capture, "--stats", stat).stdout.split("\n\n")[1].splitlines()
        if len(screen) != len(rows) + 2 or not set(screen[1]) <= {"-", " "}:
            sys.exit(f"{stat}: text has {len(screen)} lines for {len(rows)} rows")
        if any(heading not in screen[0] for heading in rows[0]):
            sys.exit(f"{stat}: text lacks a heading: {screen[0]}")
        page = run(capture, "--stats", stat, "--format", "markdown").stdout.splitlines()
        lines = [line for line in page if line.startswith("|")]
        if len(lines) != len(rows) + 2 or len({line.count(" |") for line in lines}) != 1:
            sys.exit(f"{stat}: Markdown has {len(lines)} lines for {len(rows)} rows")
        if len(rows) > 2:
            top = rows_of(json.loads(run(capture, "--stats", stat, "--json", "--top", "2").stdout))
            if top[stat] != rows[:2]:
                sys.exit(f"{stat}: --top 2 are not the first two rows")
            for words in ((), ("--format", "markdown")):
                text = run(capture, "--stats", stat, "--top", "2", *words).stdout
                if f"... and {len(rows) - 2:,} more (--top {len(rows)})\n" not in text:
                    sys.exit(f"{stat}: --top 2 does not say how many rows it leaves out")
    several = run(capture, "--stats", "um_sum,nvtx_sum", "--format", "csv").stdout.splitlines()
    if several[0] != "um_sum" or "nvtx_sum" not in several:
        sys.exit("CSV of several statistics does not name them")


def check_orders_and_numbers(capture):
    """Traces rise; a call and its work share a number, those of a graph one for all."""
    stats = rows_of(json.loads(run(capture, "--stats", "cuda_api_trace,cuda_gpu_trace", "--json").stdout))
    for name, rows in stats.items():
        starts = [row["Start (ns)"] for row in rows]
        if starts != sorted(starts):
            sys.exit(f"{name} is not in order of time")
    calls = {}
    for row in stats["cuda_api_trace"]:
        if row["CorrID"] is not None:
            calls.setdefault(row["CorrID"], []).append(row["Name"])
    if any(len(names) != 1 for names in calls.values()):
        sys.exit("two calls share a number")
    for row in stats["cuda_gpu_trace"]:
        name = calls[row["CorrId"]][0]
        kind = "Memcpy" if "memcpy" in row["Name"] else "Memset" if "memset" in row["Name"] else "a"
        if kind not in name:
            sys.exit(f"{row['Name']} has the number of {name}")


EXTREMES = [2**63 - 1, -2**63, -1, "text", 1e308, None, 0, 3]
TABLES = {"kernel": "start duration stream config api_name api_lead api_duration thread correlation",
          "transfer": "start duration stream bytes kind source_kind target_kind api_lead thread api_name",
          "memset": "start duration stream bytes memory_kind api_lead thread api_name",
          "api_call": "start duration thread name result correlation",
          "graph_launch": "start duration stream graph correlation",
          "range": "start duration thread name domain depth",
          "migration": "start duration process kind bytes faults address target",
          "launch_config": "name grid_x grid_y grid_z block_x block_y block_z registers shared_static",
          "device": "process api ordinal name", "context": "process device native green parent",
          "stream": "process device context api native"}


def check_extremes():
    """A capture that holds anything: no crash, and JSON that reads as JSON."""
    made = Made(99)
    for table, columns in TABLES.items():
        for _ in range(60):
            made.insert(table, **{name: made.random.choice(EXTREMES) for name in columns.split()})
    with open("extremes.sql", "w", encoding="utf-8") as file:
        file.write("BEGIN;" + "\n".join(made.lines) + "COMMIT;")
    if os.path.exists("extremes.sqlite"):
        os.remove("extremes.sqlite")
    subprocess.run([tool, "make", "extremes.sql", "extremes.sqlite"], check=True)
    for options in ([], ["--nvtx", "step"], ["--from", "1us"], ["--device", "cuda:1"]):
        for form in ("json", "text", "csv", "markdown"):
            answer = run("extremes.sqlite", "--stats", ",".join(STATS), "--format", form, *options)
            if answer.returncode:
                sys.exit(f"extremes, {form}: status {answer.returncode}: {answer.stderr}")
            if form == "json":
                json.loads(answer.stdout)


def main():
    for seed in range(4):
        made = Made(seed)
        with open("made.sql", "w", encoding="utf-8") as file:
            file.write("BEGIN;" + "\n".join(made.lines) + "COMMIT;")
        capture = f"made{seed}.sqlite"
        if os.path.exists(capture):
            os.remove(capture)
        subprocess.run([tool, "make", "made.sql", capture], check=True)
        rows = check(capture, made, f"seed {seed}", [])
        check_filters(capture, made)
        print(f"ok: seed {seed}, {len(made.ops)} operations, {rows} rows")
    check_refusals(capture)
    check_formats(capture)
    check_orders_and_numbers(capture)
    check_extremes()


main()
