"""Measures every claim of the reference workloads' documents on this machine.

The claims, their thresholds and the verdicts are the workloads' own (`WORKLOAD --json`, member
"claims"); this program runs them, asks perfkit what it saw where a claim is not reached, and joins
the tables. Called by scripts/seed_tables.sh.
"""
import argparse
import collections
import datetime
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile

# What is run, in this order: the workload, its options on a GPU and on a CPU, and which claims of
# that run count (None: all). Sizes are the document's on a GPU, the workload's own on a CPU.
RUNS = [
    ("hash_embedding", ["--verify"], ["--verify"], None),
    ("hash_embedding", ["--sweep", "--verify"], ["--sweep", "--verify"], None),
    ("rollout", ["--verify"], ["--verify"], None),
    ("rollout", ["--variant", "bf16", "--without", "fp16", "--steps", "4", "--iterations", "1"],
     ["--variant", "bf16", "--without", "fp16", "--iterations", "1"], {"precision fallback"}),
    # two initial states fit, three do not
    ("rollout", ["--memory-limit", "8G", "--realisations", "100", "--steps", "4", "--iterations",
                 "1"],
     ["--preset", "small", "--memory-limit", "1800K", "--iterations", "1"],
     {"capacity, not only bandwidth"}),
    ("batched_forces", ["--verify"], ["--verify"], None),
    ("transformer", ["--verify"], ["--verify"], None),
    ("patterns", ["--verify"], ["--verify"], None),
]
# The guide's checklist: each line of it is a rule of perfkit.
CHECKLIST = [("SM throughput < 50 %", "low-occupancy"), ("memory throughput < 50 %", "memory-bound"),
             ("high CPU time in allocation", "alloc-in-loop"),
             ("many small kernel launches", "launch-bound"), ("low FLOP rate", "small-grid")]
WORKLOADS = list(dict.fromkeys(run[0] for run in RUNS))
# What results that are joined have in common, and what of their hosts may differ.
DEVICE, HOST = ("backend", "device"), ("cpu", "cores", "system", "date", "note")
REACHED, MISSED, DIFFERS = "reached", "missed", "differs"
RUN_LIMIT_S = 600
FIGURE_LIMIT_S = 120
# Claims whose gain is nothing but launches: they cannot gain more than the device's idle time.
LAUNCHES_ONLY = {"compile once, gain per step", "CUDA graphs, end to end"}
# Ranges that hold one measured iteration, the first that is there.
ITERATIONS = ("rollout", "step")


def run(command, limit_s=RUN_LIMIT_S):
    """(exit status, stdout, stderr); the status is None when it took too long."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=limit_s)
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        return None, "", f"did not end within {limit_s} s"
    except OSError as error:
        return 2, "", str(error)


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no reason given"


class Machine:
    """The programs of one build on one backend."""

    def __init__(self, build, backend):
        self.build = build
        self.perfkit = os.path.join(build, "bin", "perfkit")
        self.backend = backend
        self.cache = {}

    def program(self, workload):
        return os.path.join(self.build, "workloads", workload)

    def variants(self, workload):
        if workload not in self.cache:
            _, out, _ = run([self.program(workload), "--list-variants"])
            self.cache[workload] = {line.split()[0] for line in out.splitlines() if line.split()}
        return self.cache[workload]

    def device(self, workload):
        """The backend, the device's name and its kind; or exits."""
        variant = next(iter(sorted(self.variants(workload))), "")
        status, out, err = run([self.program(workload), "--preset", "small", "--iterations", "1",
                                "--variant", variant, "--backend", self.backend, "--json"])
        if status not in (0, 1) or not out:
            sys.exit(f"seed_tables: {workload}: {last_line(err)}")
        found = json.loads(out)
        return found["backend"], found["device"]


def preset_of(backend, asked):
    if asked != "auto":
        return asked
    return "seed" if backend == "cuda" else "none"


# ---- what perfkit saw ---------------------------------------------------------------------------

def variant_options(machine, workload, row, side):
    """The options that run one side of a claim alone, or None when it is no variant."""
    text = row.get(side) or ""
    name = re.split(r"[ ,]", text)[0]
    if name not in machine.variants(workload):
        return None
    batch = re.search(r"batch (\d+)", f"{text} {row.get('at') or ''}")
    return ["--variant", name] + (["--batch", batch.group(1)] if batch else [])


def bound_text(report, name):
    """What bounds the range by its roofline; nothing without ceilings of the device."""
    for point in report.get("roofline_ranges", {}).get("rows", []):
        if point["name"] == name and point["domain"] is None and point["bound"]:
            near = ("" if point["roof_share"] is None else
                    f", {100 * point['roof_share']:.0f} % of the nearest roof")
            return f"; bound by {point['bound']}{near}"
    return ""


def seen_by_perfkit(machine, workload, options, folder):
    """One sentence about an iteration of the variant and the share of it that kernels take, or None."""
    capture = os.path.join(folder, "figure.sqlite")
    status, _, _ = run([machine.perfkit, "run", "-q", "-f", "-o", capture, "--",
                        machine.program(workload), *options], FIGURE_LIMIT_S)
    if status != 0:
        return None
    status, out, _ = run([machine.perfkit, "report", "--json", capture], FIGURE_LIMIT_S)
    if status != 0:
        return None
    report = json.loads(out)
    ranges = {row["name"]: row for row in report["ranges"]["rows"] if row["domain"] is None}
    row = next((ranges[name] for name in ITERATIONS if name in ranges), None)
    if not row or not row["total_ns"]:
        return None
    parts = [f"{row[count] / row['count']:.4g} {one if row[count] == row['count'] else many} for "
             f"{100 * row[time] / row['total_ns']:.0f} %"
             for one, many, count, time in (("kernel", "kernels", "kernels", "kernel_ns"),
                                            ("memcpy", "memcpys", "memcpys", "memcpy_memset_ns"))
             if row[count]]
    return (f"{value_text('ns', row['average_ns'])} an iteration, "
            f"{' and '.join(parts) or 'no device work'} of it{bound_text(report, row['name'])}",
            row["kernel_ns"] / row["total_ns"])


def excuse_busy(row, busy):
    """Launches that cost nothing would leave the kernels, `busy` of the time before."""
    if row["claim"] in LAUNCHES_ONLY and row["verdict"] == MISSED and 1 < row["claimed"] * busy:
        row["verdict"] = DIFFERS
        row["because"] = (f"kernels take {100 * busy:.0f} % of the time before: launches that cost "
                          f"nothing would gain {1 / busy:.2f}x")


def add_figures(machine, result, folder):
    seen = {}
    for row in result["rows"]:
        if row["verdict"] not in (MISSED, DIFFERS):
            continue
        sentences = []
        for side in ("before", "after"):
            own = variant_options(machine, result["workload"], row, side)
            if not own:
                continue
            key = tuple(own)
            if key not in seen:
                print(f"  perfkit run {result['workload']} {shlex.join(own)}", file=sys.stderr,
                      flush=True)
                seen[key] = seen_by_perfkit(
                    machine, result["workload"],
                    own + ["--iterations", "2", "--backend", result["backend"], "--preset",
                           result["preset"]], folder)
            if seen[key]:
                text, busy = seen[key]
                sentences.append(f"{row[side]}: {text}")
                if side == "before":
                    excuse_busy(row, busy)
        row["perfkit"] = "; ".join(sentences) or None


# ---- measuring ----------------------------------------------------------------------------------

def measure(machine, workload, options, keep, backend, preset):
    command = [machine.program(workload), "--backend", backend, "--preset", preset, *options]
    print(f"  {os.path.basename(command[0])} {shlex.join(command[1:])}", file=sys.stderr, flush=True)
    status, out, err = run([*command, "--json"])
    shown = f"{workload} {shlex.join(command[1:])}"
    try:
        found = json.loads(out)
    except ValueError:
        return {"command": shown, "failed": last_line(err), "rows": []}
    rows = [row for row in found.get("claims", []) if keep is None or row["claim"] in keep]
    bad = [f"{r['variant']}: relative error {r.get('relative_error')}"
           for r in found.get("results", []) if r.get("verified") is False]
    return {"command": shown, "failed": "; ".join(bad) or None, "rows": rows}


def checklist(machine):
    status, out, err = run([machine.perfkit, "explain"])
    known = {line.split()[0] for line in out.splitlines() if line.split()}
    return [{"claim": "its checklist", "at": sign, "before": None, "after": f"rule {rule}",
             "unit": "count", "before_value": None, "after_value": int(rule in known),
             "gain": None, "seed": "a sign to look for", "test": "at least", "claimed": 1,
             "verdict": "cannot be shown" if status != 0 else REACHED if rule in known else MISSED,
             "because": last_line(err) if status != 0 else None, "figure": None}
            for sign, rule in CHECKLIST]


def measure_all(machine, workloads, asked_preset, figures):
    backend, device = machine.device(workloads[0])
    preset = preset_of(backend, asked_preset)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for workload in workloads:
            result = {"workload": workload, "backend": backend, "device": device, "preset": preset,
                      "commands": [], "failed": [], "rows": []}
            for name, on_gpu, on_cpu, keep in RUNS:
                if name != workload:
                    continue
                one = measure(machine, workload, on_gpu if backend == "cuda" else on_cpu, keep,
                              backend, preset)
                result["commands"].append(one["command"])
                result["rows"] += one["rows"]
                if one["failed"]:
                    result["failed"].append(f"{one['command']}: {one['failed']}")
            if figures:
                add_figures(machine, result, folder)
            if workload == "patterns":
                result["rows"] += checklist(machine)
            results.append(result)
    return results


def cpu_name():
    try:
        with open("/proc/cpuinfo") as info:
            for line in info:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def summarised(report):
    report["summary"] = dict(collections.Counter(row["verdict"] for result in report["workloads"]
                                                 for row in result["rows"]))
    return report


def measured_here(machine, workloads, preset, figures):
    results = measure_all(machine, workloads, preset, figures)
    return summarised({"date": datetime.date.today().isoformat(), "cpu": cpu_name(),
                       "cores": os.cpu_count(),
                       "system": f"{platform.system()} {platform.release()}",
                       "backend": results[0]["backend"], "device": results[0]["device"],
                       "workloads": results})


def joined(paths):
    """The results of several --json files of one device; of a workload that is in several the last.
    ValueError says what is wrong."""
    reports, found = [], {}
    for path in paths:
        try:
            with open(path) as file:
                one = json.load(file)
            for result in one["workloads"]:
                found[result["workload"]] = result
            reports.append({key: one[key] for key in DEVICE} | {key: one.get(key) for key in HOST})
            one["summary"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}: not results of --json: {error}") from error
        if any(reports[0][key] != one[key] for key in DEVICE):
            raise ValueError(f"{path}: of another device than {paths[0]}: {one['device']}")
    report = dict(reports[0])
    for key in HOST:
        values = list(dict.fromkeys(str(one[key]) for one in reports if one[key]))
        report[key] = " and ".join(values) or None
    order = {name: place for place, name in enumerate(WORKLOADS)}
    report["workloads"] = sorted(found.values(),
                                 key=lambda result: order.get(result["workload"], len(order)))
    return summarised(report)


# ---- tables -------------------------------------------------------------------------------------

def value_text(unit, value):
    if value is None:
        return "n/a"
    if unit == "ns":
        for limit, scale, name in ((1e4, 1, "ns"), (1e7, 1e3, "us"), (1e10, 1e6, "ms")):
            if value < limit:
                return f"{value / scale:.4g} {name}"
        return f"{value / 1e9:.4g} s"
    if unit == "bytes":
        for limit, scale, name in ((1e4, 1, "B"), (1e7, 1e3, "KB"), (1e10, 1e6, "MB")):
            if value < limit:
                return f"{value / scale:.4g} {name}"
        return f"{value / 1e9:.4g} GB"
    if unit == "share":
        return f"{100 * value:.3g} %"
    if unit == "count":
        return f"{value:.0f}"
    return f"{value:.3g}"


def here_text(row):
    """Our figure in the form of the claim: a gain, or the value itself."""
    if row.get("gain") is not None:
        return f"{row['gain']:.2f}x"
    if (row.get("test") or "").startswith("gain"):
        return "all gone" if row.get("before_value") and row.get("after_value") == 0 else "n/a"
    return value_text(row.get("unit"), row.get("after_value"))


def target_text(row):
    claimed = row.get("claimed")
    if claimed is None:
        return "-"
    sign = "<=" if (row.get("test") or "").endswith("most") else ">="
    if (row.get("test") or "").startswith("gain"):
        return f"{sign} {claimed:.2f}x"
    return f"{sign} {value_text(row.get('unit'), claimed)}"


COLUMNS = ("claim", "at", "before", "", "after", "", "here", "to reach", "verdict",
           "the document says")


def cells(row):
    return (row["claim"], row.get("at") or "", row.get("before") or "",
            value_text(row.get("unit"), row.get("before_value")) if row.get("before") else "",
            row.get("after") or "", value_text(row.get("unit"), row.get("after_value")),
            here_text(row), target_text(row), row["verdict"], row.get("seed") or "")


def reasons(rows):
    """(claim and where, sentence): the same sentence once, with all the places it is said of."""
    said = {}
    for row in rows:
        name = row["claim"] + (f" ({row['at']})" if row.get("at") else "")
        parts = [row.get("because"), row.get("figure")]
        if row.get("perfkit"):
            parts.append("perfkit: " + row["perfkit"])
        text = "; ".join(part for part in parts if part)
        if text:
            said.setdefault(text, [])
            if name not in said[text]:
                said[text].append(name)
    return [(", ".join(names), text) for text, names in said.items()]


def summary_text(summary):
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(summary.items()))


def print_text(report):
    print(f"{report['device']} ({report['backend']}), {report['cores']} cores of {report['cpu']}, "
          f"{report['system']}, {report['date']}")
    print(f"{summary_text(report['summary'])}")
    if report.get("note"):
        print(report["note"])
    for result in report["workloads"]:
        print(f"\n{result['workload']}, preset {result['preset']}")
        for text in result["failed"]:
            print(f"  FAILED: {text}")
        table = [COLUMNS] + [cells(row) for row in result["rows"]]
        widths = [max(len(line[c]) for line in table) for c in range(len(COLUMNS))]
        for line in table:
            print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
        for name, text in reasons(result["rows"]):
            print(f"    {name}: {text}")


def markdown_cell(text):
    return re.sub(r"([\\|*_`])", r"\\\1", text).replace("&", "&amp;").replace("<", "&lt;")


def markdown(report):
    lines = [f"## {markdown_cell(report['device'])} ({report['backend']}), {report['date']}", "",
             f"{report['cores']} cores of {markdown_cell(report['cpu'])}, {report['system']}. "
             f"{sum(report['summary'].values())} rows: {summary_text(report['summary'])}."
             + (f" {markdown_cell(report['note'])}" if report.get("note") else ""), ""]
    for result in report["workloads"]:
        lines += [f"### {result['workload']}", "", *(f"    {c}" for c in result["commands"]), ""]
        lines += [f"FAILED: {markdown_cell(text)}\n" for text in result["failed"]]
        if result["rows"]:
            lines += ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
            lines += ["| " + " | ".join(markdown_cell(cell) for cell in cells(row)) + " |"
                      for row in result["rows"]] + [""]
        lines += [f"- {markdown_cell(name)}: {markdown_cell(text)}"
                  for name, text in reasons(result["rows"])]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def write_into(path, report):
    """Replaces the section of the report's backend in the page, or adds it at the end."""
    begin, end = (f"<!-- {edge} {report['backend']} -->" for edge in ("begin", "end"))
    section = f"{begin}\n{markdown(report)}{end}\n"
    with open(path) as page:
        text = page.read()
    pattern = re.escape(begin) + r"\n.*?" + re.escape(end) + r"\n"
    if re.search(pattern, text, re.S):
        text = re.sub(pattern, lambda _: section, text, flags=re.S)
    else:
        text = text.rstrip() + "\n\n" + section
    with open(path, "w") as page:
        page.write(text)


# ---- the command --------------------------------------------------------------------------------

def arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/seed_tables.sh",
        description="Measures every claim of the reference workloads' documents on this machine "
                    "and prints the document's figure beside ours.",
        epilog="Exit status: 0, whatever the verdicts; 1 when a workload failed or an output was "
               "wrong; 2 usage.")
    parser.add_argument("build", nargs="?", default="build/release", metavar="BUILD",
                        help="the build folder [build/release]")
    parser.add_argument("--backend", default="auto", choices=("auto", "cuda", "opencl", "cpu"))
    parser.add_argument("--preset", default="auto", choices=("auto", "none", "small", "seed"),
                        help="sizes; auto: the document's on CUDA, the workloads' own elsewhere")
    parser.add_argument("--only", default="", metavar="WORKLOAD,...", help="these workloads only")
    parser.add_argument("--no-figures", action="store_true",
                        help="do not capture with perfkit what was not reached")
    parser.add_argument("--json", metavar="OUT", help="write the results as JSON, too")
    parser.add_argument("--from", dest="sources", metavar="FILE", action="append",
                        help="measure nothing: show the results of an earlier --json; several "
                             "files of one device are joined")
    parser.add_argument("--note", help="a sentence about the circumstances, kept in the results")
    parser.add_argument("--markdown", action="store_true", help="print Markdown instead of text")
    parser.add_argument("--into", metavar="PAGE",
                        help="put the Markdown into this page in the place of the device's last")
    return parser, parser.parse_args()


def chosen(parser, args):
    machine = Machine(args.build, args.backend)
    wanted = [name for name in args.only.split(",") if name] or WORKLOADS
    for name in wanted:
        if name not in WORKLOADS:
            parser.error(f"no such workload: {name}: take one of {', '.join(WORKLOADS)}")
    built = [name for name in wanted if os.access(machine.program(name), os.X_OK)]
    for name in set(wanted) - set(built):
        print(f"seed_tables: {machine.program(name)} is not built: left out", file=sys.stderr)
    if not built:
        parser.error(f"no workload in {args.build}: give the build folder")
    return machine, built


def main():
    parser, args = arguments()
    if args.sources:
        try:
            report = joined(args.sources)
        except ValueError as error:
            parser.error(str(error))
    else:
        machine, workloads = chosen(parser, args)
        report = measured_here(machine, workloads, args.preset, not args.no_figures)
    if args.note:
        report["note"] = args.note
    if args.json:
        with open(args.json, "w") as file:
            json.dump(report, file, indent=1)
            file.write("\n")
    if args.into:
        write_into(args.into, report)
    elif args.markdown:
        sys.stdout.write(markdown(report))
    else:
        print_text(report)
    return 1 if any(result["failed"] for result in report["workloads"]) else 0


if __name__ == "__main__":
    sys.exit(main())
