#!/usr/bin/env python3
"""Sampled counters against ncu and against what the source of a kernel tells, and what they cost.

    bench/counters.py BUILD_FOLDER [--ncu PROGRAM] [--seconds S] [--rounds N] [--only NAME,...]
                      [--command NAME=COMMAND ...] [--keep FOLDER] [--json FILE]

Every kernel of bench_counter_kernels and of torch_kernels.py, and the commands given, run under
`perfkit run --counters=roofline` and under ncu (its own clocks, caches as they are). Per launch of
the same kernel both say how much was counted; the difference is given in per cent and in standard
errors that perfkit printed, and every counter that is off by more than 3 % is listed again. Cost:
the time that a launch takes of the program and of the device with and without sampling, interleaved,
the share of a core that the sampler used, and how long ncu takes for a launch. --keep leaves the
captures and what ncu printed. Needs only python3 (PyTorch for its kernels), and a GPU whose
counters this user may read. Exits with 77 where there is none.
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
# Where a traced run and ncu's do not count alike, for reasons that docs/counters.md gives: what tracing adds
# to each warp of a kernel (seen on GH100, the same for every kernel), and what cannot be compared.
ADDED = {"instructions": 8, "alu": 4}
UNLIKE = {
    "sm_active": "a time: ncu's launches run apart, with another clock and nothing before or after them",
    "dram_write_bytes": "what is still in L2 when a kernel ends is written later: ncu does not see it",
}
HALF = "packed half arithmetic counts twice in the sampled counter of this pipe"
LEAST = {"byte": 1e6, "cycle": 1e4, "instruction": 1e4}  # below this a launch counts next to nothing
NCU_LAUNCHES = 5
ENOUGH = 200  # samples of a counter that is judged
NEAR = 0.03
TORCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_kernels.py")


def read_ncu(text):
    """{(function, grid, block): {metric: values of each launch}} from ncu's CSV."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    launches = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        numbers = lambda key: tuple(int(n) for n in re.findall(r"\d+", row[key]))
        key = (row["Kernel Name"].split("(")[0].strip(), numbers("Grid Size"), numbers("Block Size"))
        value = float(row["Metric Value"].replace(",", ""))
        launches.setdefault(key, {}).setdefault(row["Metric Name"], []).append(value)
    return launches


def spread(values):
    """Standard error of a mean, relative."""
    mean = statistics.mean(values)
    return statistics.stdev(values) / mean / len(values) ** 0.5 if len(values) > 1 and mean else 0.0


def cause(name, values):
    """Why a counter of a kernel cannot be held against ncu's, or None."""
    of = {value["counter"]: value["per_launch"] or 0 for value in values}
    if name == "fma" and of.get("fma_fp16", 0) > 0.01 * of.get("fma", 0):
        return HALF
    return UNLIKE.get(name)


def compare(values, theirs, told, warps=0):
    """Rows of a kernel: its sampled values beside ncu's and the source's."""
    rows = []
    for value in values:
        name, ours = value["counter"], value["per_launch"]
        other = statistics.mean(theirs[SAME[name]]) if SAME.get(name) in theirs else None
        if ours is None or max(ours, other or 0) < LEAST.get(value["unit"], 0):
            continue
        relative = value["per_launch_error"] / ours if value["per_launch_error"] and ours else None
        row = {"counter": name, "samples": value["samples"], "perfkit": ours, "error": relative}
        row["ncu_error"] = spread(theirs[SAME[name]]) if other else None
        for label, right in (("ncu", other), ("source", told.get(name))):
            if right:
                row[label] = right
                row[label + "_off"] = ours / right - 1
                row[label + "_errors"] = abs(ours / right - 1) / relative if relative else None
        row["unlike"] = cause(name, values)
        if other and relative and not row["unlike"]:
            row["like_errors"] = abs((ours - ADDED.get(name, 0) * warps) / other - 1) / relative
        rows.append(row)
    return rows


def warps_of(grid, block):
    count = lambda shape: shape[0] * shape[1] * shape[2]
    return count(grid) * -(-count(block) // 32)


class Bench:
    def __init__(self, args):
        self.args = args
        self.bin = os.path.join(args.build, "bin")
        self.folder = args.keep or tempfile.mkdtemp(prefix="perfkit-counters-")
        os.makedirs(self.folder, exist_ok=True)

    def run(self, command):
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def capture(self, name, command, *options):
        """(what the program printed, the report of its capture)"""
        path = os.path.join(self.folder, name + ".sqlite")
        perfkit = os.path.join(self.bin, "perfkit")
        done = self.run([perfkit, "run", "-q", "-f", "-o", path, *options, "--", *command])
        if done.returncode:
            raise Failed("%s: exit %d: %s" % (shlex.join(command), done.returncode,
                                              done.stderr.strip()[-300:]), done.returncode)
        report = self.run([perfkit, "report", path, "--format=json"])
        return done.stdout, json.loads(report.stdout)

    def ncu(self, name, command):
        """({kernel: metrics}, seconds that a launch took longer), or nothing without ncu."""
        if not self.args.ncu:
            return {}, None
        begun = time.monotonic()
        self.run(command)
        bare_s = time.monotonic() - begun
        done = self.run([self.args.ncu, "--csv", "--cache-control", "none", "--clock-control", "none",
                         "--target-processes", "all", "--print-kernel-base", "function",
                         "--print-units", "base",
                         "-c", str(NCU_LAUNCHES), *self.region(command),
                         "--metrics", ",".join(SAME.values()), *command])
        if done.returncode:
            print("ncu: " + (done.stderr.strip() or done.stdout.strip())[-300:], file=sys.stderr)
            return {}, None
        with open(os.path.join(self.folder, name + ".ncu.csv"), "w") as file:
            file.write(done.stdout)
        return read_ncu(done.stdout), (time.monotonic() - begun - 2 * bare_s) / NCU_LAUNCHES

    def region(self, command):
        """torch_kernels.py says which part of it is meant."""
        return ["--profile-from-start", "off"] if TORCH in command else []

    def accuracy(self, name, command, short):
        said, report = self.capture(name, command, "--counters=roofline")
        told = json.loads(said)["counts"] if said.startswith("{") else {}
        theirs, each_s = self.ncu(name, short)
        kernels = {}
        for value in report["counter_values"]["rows"]:
            kernels.setdefault((value["name"], value["config"]), []).append(value)
        rows = []
        for (kernel, _), values in kernels.items():
            same = [(m, warps_of(grid, block)) for (k, grid, block), m in theirs.items()
                    if kernel and k.split("::")[-1] in kernel]
            metrics, warps = same[0] if len(same) == 1 else ({}, 0)
            for row in compare(values, metrics, told, warps):
                rows.append(dict(row, case=name, kernel=kernel, ncu_s=each_s))
        return rows, sampler_share(report)

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
    print("%-16s %-28.28s %-18s %8s %12s %8s %8s %8s %9s %8s" % (
        "case", "kernel", "counter", "samples", "per launch", "error", "ncu", "in errors",
        "ncu's own", "source"))
    percent = lambda value: "n/a" if value is None else "%+.2f%%" % (100 * value)
    for row in rows:
        errors = row.get("ncu_errors")
        print("%-16s %-28.28s %-18s %8d %12.5g %8s %8s %8s %9s %8s" % (
            row["case"], row["kernel"], row["counter"], row["samples"], row["perfkit"],
            percent(row["error"]), percent(row.get("ncu_off")),
            "n/a" if errors is None else "%.1f" % errors, percent(row["ncu_error"]),
            percent(row.get("source_off"))))


def summarise(rows):
    """What is said in the end, as a table of figures."""
    enough = [r for r in rows if r["samples"] >= ENOUGH and r.get("ncu_off") is not None]
    judged = [r for r in enough if r["ncu_errors"] is not None]
    far = [r for r in enough if abs(r["ncu_off"]) > NEAR]
    if enough:
        print("against ncu, >= %d samples: %d of %d within %g %%" % (
            ENOUGH, len(enough) - len(far), len(enough), 100 * NEAR))
    alike = [r for r in enough if r.get("like_errors") is not None]
    if judged:
        print("within two of the printed standard errors: %d of %d; %d of the %d that ncu counts alike, "
              "less what tracing adds" % (
                  sum(r["ncu_errors"] <= 2 for r in judged), len(judged),
                  sum(r["like_errors"] <= 2 for r in alike), len(alike)))
    if far:
        print("\nnot within %g %%:" % (100 * NEAR))
        show(far)
        for row in far:
            print("%s, %s: %s" % (row["case"], row["counter"], row["unlike"] or (
                "%d instructions more in each warp, presumably tracing's" % ADDED[row["counter"]] if row["counter"] in ADDED else
                "no cause is known")))
        print()
    return {"alike": len(alike), "alike_within_two_errors": sum(r["like_errors"] <= 2 for r in alike),
            "compared": len(enough), "judged": len(judged), "far": far,
            "within_two_errors": sum(r["ncu_errors"] <= 2 for r in judged)}


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
    parser.add_argument("--command", action="append", default=[])
    parser.add_argument("--keep")
    parser.add_argument("--json")
    return parser.parse_args()


def cases_of(bench):
    """[(name, command to sample, a short one for ncu)]"""
    program, cases = os.path.join(bench.bin, "bench_counter_kernels"), []
    starts = [[program]] if os.path.exists(program) else []  # made with nvcc only
    for start in starts + [[sys.executable, TORCH]]:
        for name in bench.run([*start, "--list"]).stdout.split():
            cases.append((name, [*start, name, str(bench.args.seconds)], [*start, name, "0.001"]))
    for text in bench.args.command:
        name, _, command = text.partition("=")
        cases.append((name, shlex.split(command), shlex.split(command)))
    only = bench.args.only.split(",") if bench.args.only else [case[0] for case in cases]
    return [case for case in cases if case[0] in only]


def main():
    bench = Bench(arguments())
    args, cases = bench.args, cases_of(bench)
    rows, shares, costs, ran = [], [], {}, 0
    for name, command, short in cases:
        try:
            found, share = bench.accuracy(name, command, short)
        except Failed as failed:  # 77: no GPU, or no PyTorch
            print(failed, file=sys.stderr)
            continue
        ran += 1
        rows += found
        shares += [share] if share is not None else []
    if not ran:
        return 77
    show(rows)
    summary = summarise(rows)
    for name in ("copy", "read") if args.rounds else ():
        costs[name] = bench.cost(name, [os.path.join(bench.bin, "bench_counter_kernels"), name, "2"])
        show_cost(name, costs[name])
    each = {row["case"]: row["ncu_s"] for row in rows if row["ncu_s"] is not None}
    if shares:
        print("the sampler used %.1f to %.1f %% of a core" % (min(shares), max(shares)))
    if each:
        print("ncu took %.2f to %.2f s longer for each launch that it replayed" % (
            min(each.values()), max(each.values())))
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"rows": rows, "summary": summary, "sampler_percent": shares, "cost": costs,
                       "ncu_s_per_launch": each}, file, indent=1)
    if not args.keep:
        shutil.rmtree(bench.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
