#!/usr/bin/env python3
"""Sampled counters against ncu and against what the source of a kernel tells, and what they cost.

    bench/counters.py BUILD_FOLDER [--ncu PROGRAM] [--seconds S] [--rounds N] [--only NAME,...]
                      [--command NAME=COMMAND ...] [--json FILE]

Every kernel of bench_counter_kernels, and the commands given (a workload, a PyTorch script), run under
`perfkit run --counters=roofline` and under ncu (its own clocks, caches as they are). Per launch of the
same kernel and configuration both say how much was counted; the difference is given in per cent and in
standard errors that perfkit printed. Cost: the mean duration of the kernel with and without sampling,
interleaved, the share of a core that the sampler used, and how long ncu takes for a launch. Needs only
python3, and a GPU whose counters this user may read. Exits with 77 where there is none.
"""
import argparse
import csv
import io
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

# perfkit's counters and what ncu calls the same thing.
SAME = {
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "l2_bytes": "lts__t_bytes.sum",
    "sm_active": "sm__cycles_active.sum",
    "instructions": "sm__inst_executed.sum",
    "fma": "sm__inst_executed_pipe_fma.sum",
    "alu": "sm__inst_executed_pipe_alu.sum",
    "fp64": "sm__pipe_fp64_cycles_active.sum",
    "tensor": "sm__pipe_tensor_cycles_active.sum",
    "tensor_half": "sm__pipe_tensor_op_hmma_cycles_active.sum",
}
LEAST = {"byte": 1e6, "cycle": 1e4, "instruction": 1e4}  # below this a launch counts next to nothing
NCU_LAUNCHES = 5


def units(text):
    """ncu scales what it prints: "1.07", "Gbyte"."""
    scale = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
    return scale.get(text[:1], 1) if text[1:].startswith("byte") else 1


def read_ncu(text):
    """{(kernel, grid, block): {metric: mean of a launch}} from ncu's CSV."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    sums = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        numbers = lambda key: tuple(int(n) for n in re.findall(r"\d+", row[key]))
        key = (row["Kernel Name"].split("(")[0].strip(), numbers("Grid Size"), numbers("Block Size"))
        value = float(row["Metric Value"].replace(",", "")) * units(row["Metric Unit"])
        sums.setdefault(key, {}).setdefault(row["Metric Name"], []).append(value)
    return {key: {m: statistics.mean(v) for m, v in metrics.items()} for key, metrics in sums.items()}


def compare(values, theirs, told):
    """Rows of a kernel: its sampled values beside ncu's and the source's."""
    rows = []
    for value in values:
        name, ours = value["counter"], value["per_launch"]
        other = theirs.get(SAME.get(name))
        if ours is None or max(ours, other or 0) < LEAST.get(value["unit"], 0):
            continue
        relative = value["rate_error"] / value["rate"] if value["rate_error"] and value["rate"] else None
        row = {"counter": name, "samples": value["samples"], "perfkit": ours, "error": relative}
        for label, right in (("ncu", other), ("source", told.get(name))):
            if right:
                row[label] = right
                row[label + "_off"] = ours / right - 1
                row[label + "_errors"] = abs(ours / right - 1) / relative if relative else None
        rows.append(row)
    return rows


class Bench:
    def __init__(self, args):
        self.args = args
        self.bin = os.path.join(args.build, "bin")
        self.scratch = tempfile.mkdtemp(prefix="perfkit-counters-")

    def run(self, command, **more):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
        if done.returncode == 77:
            sys.exit(77)
        return done

    def capture(self, command, *options):
        """(what the program printed, the report of its capture)"""
        path = os.path.join(self.scratch, "x.sqlite")
        perfkit = os.path.join(self.bin, "perfkit")
        done = self.run([perfkit, "run", "-q", "-f", "-o", path, *options, "--", *command])
        if done.returncode:
            sys.exit("%s: exit %d: %s" % (shlex.join(command), done.returncode, done.stderr.strip()))
        report = self.run([perfkit, "report", path, "--format=json"])
        return done.stdout, json.loads(report.stdout)

    def ncu(self, command):
        """({kernel: metrics}, seconds a launch), or nothing without ncu."""
        if not self.args.ncu:
            return {}, None
        begun = time.monotonic()
        done = self.run([self.args.ncu, "--csv", "--cache-control", "none", "--clock-control", "none",
                         "--target-processes", "all", "-c", str(NCU_LAUNCHES),
                         "--metrics", ",".join(SAME.values()), *command])
        if done.returncode:
            print("ncu: " + done.stderr.strip()[-300:], file=sys.stderr)
            return {}, None
        return read_ncu(done.stdout), (time.monotonic() - begun) / NCU_LAUNCHES

    def accuracy(self, name, command, short):
        said, report = self.capture(command, "--counters=roofline")
        told = json.loads(said)["counts"] if said.startswith("{") else {}
        theirs, each_s = self.ncu(short)
        kernels = {}
        for value in report["counter_values"]["rows"]:
            kernels.setdefault((value["name"], value["config"]), []).append(value)
        rows = []
        for (kernel, _), values in kernels.items():
            same = [m for (k, _, _), m in theirs.items() if kernel and k.split("::")[-1] in kernel]
            for row in compare(values, same[0] if len(same) == 1 else {}, told):
                rows.append(dict(row, case=name, kernel=kernel, ncu_s=each_s))
        return rows, sampler_share(report)

    def cost(self, command):
        """Mean duration of the kernel with sampling over without, a ratio a round."""
        mean = lambda report: report["kernels"]["rows"][0]["average_ns"]
        return [mean(self.capture(command, "--counters=roofline")[1]) / mean(self.capture(command)[1])
                for _ in range(self.args.rounds)]


def sampler_share(report):
    """Per cent of a core, as the trust block says it."""
    for statement in report["trust"]["statements"]:
        found = re.search(r"used ([0-9.]+)% of a core", statement["text"])
        if found:
            return float(found.group(1))
    return None


def show(rows):
    print("%-16s %-28.28s %-18s %8s %12s %8s %8s %8s %8s" % (
        "case", "kernel", "counter", "samples", "per launch", "error", "ncu", "in errors", "source"))
    percent = lambda value: "n/a" if value is None else "%+.2f%%" % (100 * value)
    for row in rows:
        errors = row.get("ncu_errors")
        print("%-16s %-28.28s %-18s %8d %12.5g %8s %8s %8s %8s" % (
            row["case"], row["kernel"], row["counter"], row["samples"], row["perfkit"],
            percent(row["error"]), percent(row.get("ncu_off")),
            "n/a" if errors is None else "%.1f" % errors, percent(row.get("source_off"))))


def summarise(rows):
    enough = [r for r in rows if r["samples"] >= 200 and r.get("ncu_off") is not None]
    judged = [r for r in enough if r["ncu_errors"] is not None]
    if enough:
        print("against ncu, >= 200 samples: %d of %d within 3 %%; worst %+.2f %%" % (
            sum(abs(r["ncu_off"]) <= 0.03 for r in enough), len(enough),
            100 * max((r["ncu_off"] for r in enough), key=abs)))
    if judged:
        print("within two of the printed standard errors: %d of %d" % (
            sum(r["ncu_errors"] <= 2 for r in judged), len(judged)))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--ncu", default=shutil.which("ncu"))
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--command", action="append", default=[])
    parser.add_argument("--json")
    return parser.parse_args()


def main():
    bench = Bench(arguments())
    args = bench.args
    program = os.path.join(bench.bin, "bench_counter_kernels")
    names = bench.run([program, "--list"]).stdout.split()
    cases = [(n, [program, n, str(args.seconds)], [program, n, "0.001"]) for n in names]
    for text in args.command:
        name, _, command = text.partition("=")
        cases.append((name, shlex.split(command), shlex.split(command)))
    if args.only:
        cases = [case for case in cases if case[0] in args.only.split(",")]
    rows, shares, costs = [], [], {}
    for name, command, short in cases:
        found, share = bench.accuracy(name, command, short)
        rows += found
        shares += [share] if share is not None else []
    show(rows)
    summarise(rows)
    for name, _, _ in cases[:2]:
        costs[name] = bench.cost([program, name, "2"])
        print("%s: kernel duration with sampling / without: median %.4f (%.4f .. %.4f)" % (
            name, statistics.median(costs[name]), min(costs[name]), max(costs[name])))
    if shares:
        print("the sampler used %.1f to %.1f %% of a core" % (min(shares), max(shares)))
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"rows": rows, "sampler_percent": shares, "cost": costs}, file, indent=1)
    shutil.rmtree(bench.scratch)


if __name__ == "__main__":
    main()
