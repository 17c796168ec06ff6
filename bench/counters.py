#!/usr/bin/env python3
"""Sampled counters against ncu and against what the source of a kernel tells, and what they cost.

    bench/counters.py BUILD_FOLDER [--ncu PROGRAM] [--seconds S] [--rounds N] [--only NAME,...]
                      [--keep FOLDER] [--json FILE]

Every kernel of bench_counter_kernels and of torch_kernels.py runs under `perfkit run
--counters=roofline`, one launch after the other, and under ncu just so: ncu counts ranges of many
launches in a row (application replay, its own clocks, caches as they are), divided by their number.
A launch that stands alone, as ncu's kernel replay has it, would find another cache, another clock,
and nobody who writes back what it left. The difference is given in per cent and in standard errors
that perfkit printed, and every counter that is off by more than 3 % is listed again. Cost: the time
that a launch takes of the program and of the device with and without sampling, interleaved, the
share of a core that the sampler used, and how long ncu takes for a launch that it replays. --keep
leaves the captures and what ncu printed. Needs only python3 (PyTorch for its kernels), and a GPU
whose counters this user may read. Exits with 77 where there is none.
"""
import argparse
import csv
import glob
import io
import json
import os
import re
import shlex
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

# perfkit's counters and what ncu calls the same thing; of several the sum.
SAME = {
    "dram_read_bytes": ["dram__bytes_read.sum"],
    "dram_write_bytes": ["dram__bytes_write.sum"],
    "l2_bytes": ["lts__t_bytes.sum"],
    "sm_active": ["sm__cycles_active.sum"],
    "instructions": ["sm__inst_executed.sum"],
    # packed half arithmetic counts twice in the counter that can be sampled (GH100)
    "fma": ["sm__inst_executed_pipe_fma.sum", "sm__inst_executed_pipe_fma_type_fp16.sum"],
    "alu": ["sm__inst_executed_pipe_alu.sum"],
    "fp64": ["sm__pipe_fp64_cycles_active.sum"],
    "tensor": ["sm__pipe_tensor_cycles_active.sum"],
    "tensor_half": ["sm__pipe_tensor_op_hmma_cycles_active.sum"],
}
PER_WARP = ("instructions", "alu")  # tracing adds to each warp what perfkit takes off again
TIMES = ("sm_active",)  # tracing makes each launch a little longer, and nothing is taken off
LEAST = {"byte": 1e6, "cycle": 1e4, "instruction": 1e4}  # below this a launch counts next to nothing
RANGES = 3  # of each kernel, in bench_counter_kernels and torch_kernels.py
RANGE_LAUNCHES = 128
REPLAYED = 5  # launches, for what ncu's replay of single ones costs
ENOUGH = 200  # samples of a counter that is judged
NEAR = 0.03
TORCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_kernels.py")


def read_ncu(text):
    """[{metric: value}] of the ranges in ncu's CSV, in the order in which they ran."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    ranges = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        value = float(row["Metric Value"].replace(",", ""))
        ranges.setdefault(int(row["ID"]), {})[row["Metric Name"]] = value
    return [ranges[number] for number in sorted(ranges)]


def read_told(text):
    """{kernel: what the program said of it}"""
    told = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return {row["kernel"]: row for row in told}


def per_launch(ranges, launches):
    """{counter: what a launch counted, in each range}"""
    return {name: [sum(r[metric] for metric in metrics) / launches for r in ranges]
            for name, metrics in SAME.items() if all(m in r for m in metrics for r in ranges)}


def spread(values):
    """Standard error of a mean, relative."""
    mean = statistics.mean(values)
    return statistics.stdev(values) / mean / len(values) ** 0.5 if len(values) > 1 and mean else 0.0


def calls_of(report, calls):
    """{(kernel, configuration): its launches in a call}, of `calls` in all."""
    rows = report["counters"]["rows"]
    times = {(row["name"], row["config"]): round(row["launches"] / calls) for row in rows}
    return {key: count for key, count in times.items() if count}


def whole(parts):
    """One counter of a call from those of its kernels: [(launches in a call, value)]."""
    first = max(parts, key=lambda part: part[1]["per_launch"] or 0)[1]
    known = all(value["per_launch"] is not None for _, value in parts)
    errors = [(times * value["per_launch_error"]) ** 2 for times, value in parts
              if value["per_launch_error"] is not None]
    return dict(first, samples=min(value["samples"] for _, value in parts),
                per_launch=sum(t * v["per_launch"] for t, v in parts) if known else None,
                per_launch_error=sum(errors) ** 0.5 if len(errors) == len(parts) else None)


def values_of(report, calls):
    """The counters of a call, which launches one kernel, or some."""
    times, parts = calls_of(report, calls), {}
    for value in report["counter_values"]["rows"]:
        key = (value["name"], value["config"])
        if key in times:
            parts.setdefault(value["counter"], []).append((times[key], value))
    return [whole(part) for part in parts.values()]


def warps_of(report, calls):
    """Warps of a call; 0 = not known."""
    count = lambda row, what: row[what + "_x"] * row[what + "_y"] * row[what + "_z"]
    times, warps = {}, 0
    for (name, _), launches in calls_of(report, calls).items():
        times[name] = times.get(name, 0) + launches
    for row in report["kernels"]["rows"]:
        if row["name"] in times and row["configs"] != 1:
            return 0
        warps += times.get(row["name"], 0) * count(row, "grid") * -(-count(row, "block") // 32)
    return warps


def compare(values, theirs, told, warps=0, traced=None):
    """Rows of a case: its sampled values beside ncu's and the source's. `traced`: {counter: what
    perfkit took off for each warp}."""
    rows = []
    for value in values:
        name, ours = value["counter"], value["per_launch"]
        other = statistics.mean(theirs[name]) if name in theirs else None
        least = 1 if name in PER_WARP and warps else LEAST.get(value["unit"], 0)
        if ours is None or max(ours, other or 0) < least:
            continue
        relative = value["per_launch_error"] / ours if value["per_launch_error"] and ours else None
        row = {"counter": name, "samples": value["samples"], "perfkit": ours, "error": relative}
        row["ncu_error"] = spread(theirs[name]) if other else None
        if told.get(name):
            row["source_off"] = ours / told[name] - 1
        if other:
            row["ncu"], row["ncu_off"] = other, ours / other - 1
            row["ncu_errors"] = abs(row["ncu_off"]) / relative if relative else None
        if other is not None and warps:
            row["added"] = (ours - other) / warps + (traced or {}).get(name, 0)
            row["added_error"] = value["per_launch_error"] / warps if relative else None
        rows.append(row)
    return rows


class Bench:
    def __init__(self, args):
        self.args = args
        self.bin = os.path.join(args.build, "bin")
        self.folder = args.keep or tempfile.mkdtemp(prefix="perfkit-counters-")
        os.makedirs(self.folder, exist_ok=True)

    def run(self, command):
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def path(self, name):
        return os.path.join(self.folder, name + ".sqlite")

    def traced(self, name):
        """What perfkit took off for each warp, by counter."""
        with sqlite3.connect(self.path(name)) as capture:
            return dict(capture.execute("SELECT name, traced FROM counter WHERE traced NOT NULL"))

    def capture(self, name, command, *options):
        """(what the program printed, the report of its capture)"""
        path = self.path(name)
        perfkit = os.path.join(self.bin, "perfkit")
        done = self.run([perfkit, "run", "-q", "-f", "-o", path, *options, "--", *command])
        if done.returncode:
            raise Failed("%s: exit %d: %s" % (shlex.join(command), done.returncode,
                                              done.stderr.strip()[-300:]), done.returncode)
        report = self.run([perfkit, "report", path, "--format=json"])
        return done.stdout, json.loads(report.stdout)

    def ncu(self, name, options, command):
        """What ncu prints, or "" """
        done = self.run([self.args.ncu, "--csv", "--cache-control", "none", "--clock-control", "none",
                         "--target-processes", "all", "--print-units", "base", *options, "--metrics",
                         ",".join(metric for metrics in SAME.values() for metric in metrics),
                         *command])
        if done.returncode:
            print("ncu: " + (done.stderr.strip() or done.stdout.strip())[-300:], file=sys.stderr)
            return ""
        with open(os.path.join(self.folder, name + ".ncu.csv"), "w") as file:
            file.write(done.stdout)
        return done.stdout

    def ranges(self, name, start, kernels):
        """{kernel: {counter: per launch, in each of its ranges}}, by ncu"""
        if not self.args.ncu or not kernels:
            return {}
        text = self.ncu(name, ["--replay-mode", "app-range"],
                        [*start, "--ranges", str(RANGE_LAUNCHES), ",".join(kernels)])
        found, told = read_ncu(text), read_told(text)
        if len(found) != RANGES * len(kernels):
            print("ncu has %d ranges of %d kernels" % (len(found), len(kernels)), file=sys.stderr)
            return {}
        return {kernel: per_launch(found[i * RANGES:(i + 1) * RANGES], told[kernel]["launches"])
                for i, kernel in enumerate(kernels)}

    def replay_seconds(self, command):
        """How much longer a launch takes that ncu replays; None without ncu."""
        if not self.args.ncu:
            return None
        begun = time.monotonic()
        self.run(command)
        bare_s = time.monotonic() - begun
        if not self.ncu("replay", ["-c", str(REPLAYED)], command):
            return None
        return (time.monotonic() - begun - 2 * bare_s) / REPLAYED

    def accuracy(self, name, command, theirs):
        said, report = self.capture(name, command, "--counters=roofline")
        told = read_told(said)[name]
        values, warps = values_of(report, told["launches"]), warps_of(report, told["launches"])
        rows = compare(values, theirs, told["counts"], warps, self.traced(name))
        kernel = values[0]["name"] if values else ""
        return [dict(row, case=name, kernel=kernel) for row in rows], sampler_share(report)

    def cost(self, name, command):
        """(a launch's share of the program's time, mean duration of the kernel), both with sampling
        over without, a pair a round."""
        def once(*options):
            said, report = self.capture("cost-" + name, command, *options)
            said = json.loads(said)
            return said["seconds"] / said["launches"], report["kernels"]["rows"][0]["average_ns"]
        rounds = []
        for turn in range(self.args.rounds):
            runs = [lambda: once("--counters=roofline"), once]
            first, second = (run() for run in (runs if turn % 2 == 0 else runs[::-1]))
            sampled, bare = (first, second) if turn % 2 == 0 else (second, first)
            rounds.append([s / b for s, b in zip(sampled, bare)])
        return rounds


class Failed(Exception):
    def __init__(self, text, status):
        super().__init__(text)
        self.status = status


def sampler_share(report):
    """Per cent of a core, as the trust block says it."""
    for statement in report["trust"]["statements"]:
        found = re.search(r"used ([0-9.]+) ?% of a core", statement["text"])
        if found:
            return float(found.group(1))
    return None


def show(rows):
    print("%-16s %-28.28s %-18s %8s %12s %8s %8s %9s %9s %8s" % (
        "case", "kernel", "counter", "samples", "per launch", "error", "ncu", "in errors",
        "ncu's own", "source"))
    percent = lambda value: "n/a" if value is None else "%+.2f%%" % (100 * value)
    for row in rows:
        errors = row.get("ncu_errors")
        print("%-16s %-28.28s %-18s %8d %12.5g %8s %8s %9s %9s %8s" % (
            row["case"], row["kernel"], row["counter"], row["samples"], row["perfkit"],
            percent(row["error"]), percent(row.get("ncu_off")),
            "n/a" if errors is None else "%.1f" % errors, percent(row["ncu_error"]),
            percent(row.get("source_off"))))


def judge(what, rows):
    """Figures of the rows that there are enough samples of, as they are printed."""
    known = [r for r in rows if 2 * r["error"] <= NEAR]
    near = lambda found: sum(abs(r["ncu_off"]) <= NEAR for r in found)
    honest = sum(r["ncu_errors"] <= 2 for r in rows)
    if rows:
        print("%s against ncu, >= %d samples: %d of %d within %g %%; %d of the %d whose printed error "
              "is that small; %d within two of the printed standard errors" % (
                  what, ENOUGH, near(rows), len(rows), 100 * NEAR, near(known), len(known), honest))
    return {"compared": len(rows), "near": near(rows), "known": len(known),
            "known_near": near(known), "within_two_errors": honest}


def summarise(rows):
    """What is said in the end, as a table of figures."""
    enough = [r for r in rows if r["samples"] >= ENOUGH and r.get("ncu_errors") is not None]
    counts = judge("counts", [r for r in enough if r["counter"] not in TIMES])
    times = judge("times (sm_active)", [r for r in enough if r["counter"] in TIMES])
    far = [r for r in enough if abs(r["ncu_off"]) > NEAR]
    if far:
        print("\nnot within %g %%:" % (100 * NEAR))
        show(far)
    return {"counts": counts, "times": times, "far": far}


def show_added(rows):
    """What a warp has more in a traced run, before anything is taken off."""
    rows = [row for row in rows if row["counter"] in PER_WARP and row.get("added_error")]
    if rows:
        print("\nexecuted in each warp beyond what ncu counts, which does not trace:")
    for row in rows:
        print("%-16s %-18s %+8.3f +- %.3f" % (row["case"], row["counter"], row["added"],
                                              row["added_error"]))


def show_cost(name, rounds):
    for what, values in zip(("time of a launch", "kernel duration"), zip(*rounds)):
        print("%s: %s with sampling / without: median %.4f (%.4f .. %.4f)" % (
            name, what, statistics.median(values), min(values), max(values)))


def find_ncu():
    """In PATH, or where toolkits have it."""
    places = glob.glob("/usr/local/cuda*/bin/ncu") + glob.glob("/opt/nvidia/nsight-compute/*/ncu")
    return shutil.which("ncu") or (sorted(places)[-1] if places else None)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--ncu", default=find_ncu())
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep")
    parser.add_argument("--json")
    return parser.parse_args()


def programs_of(bench):
    """[(what ncu's ranges of it are called, how to start it, its kernels)]"""
    program, programs = os.path.join(bench.bin, "bench_counter_kernels"), []
    starts = [("kernels", [program])] if os.path.exists(program) else []  # made with nvcc only
    only = bench.args.only.split(",") if bench.args.only else None
    for label, start in starts + [("torch", [sys.executable, TORCH])]:
        kernels = bench.run([*start, "--list"]).stdout.split()
        programs.append((label, start, [k for k in kernels if not only or k in only]))
    return programs


def main():
    bench = Bench(arguments())
    args, rows, shares, costs, ran = bench.args, [], [], {}, 0
    for label, start, kernels in programs_of(bench):
        theirs = bench.ranges(label, start, kernels)
        for name in kernels:
            try:
                found, share = bench.accuracy(name, [*start, name, str(args.seconds)],
                                              theirs.get(name, {}))
            except Failed as failed:  # 77: no GPU, or no PyTorch
                print(failed, file=sys.stderr)
                continue
            if not found:
                print("%s: too few samples; more --seconds" % name, file=sys.stderr)
            ran += 1
            rows += found
            shares += [share] if share is not None else []
    if not ran:
        return 77
    show(rows)
    show_added(rows)
    summary = summarise(rows)
    memory = lambda name, seconds: [os.path.join(bench.bin, "bench_counter_kernels"), name, seconds]
    for name in ("copy", "read") if args.rounds else ():
        costs[name] = bench.cost(name, memory(name, "2"))
        show_cost(name, costs[name])
    replay_s = bench.replay_seconds(memory("copy", "0.001")) if args.rounds else None
    if shares:
        print("the sampler used %.1f to %.1f %% of a core" % (min(shares), max(shares)))
    if replay_s is not None:
        print("ncu took %.2f s longer for each launch that it replayed" % replay_s)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"rows": rows, "summary": summary, "sampler_percent": shares, "cost": costs,
                       "ncu_s_per_launch": replay_s}, file, indent=1)
    if not args.keep:
        shutil.rmtree(bench.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
