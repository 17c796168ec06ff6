"""From a program's exit to a file that SQL can be asked: perfkit, and nsys with import and export.
And one long run: graph nodes by the ten millions in one process."""
import os
import shutil
import statistics
import subprocess
import time

import configurations
from turns import Failed, Player

ROUNDS, LAUNCHES = 8, 100000  # 800,000 launches at full rate
# 30 million records of graph nodes: CUPTI 13.0 has been reported to give invalid times after 25.
LONG_ROUNDS, LONG_NODES, LONG_REPLAYS = 15, 100, 20000


def timed(command, seconds=300):
    """(seconds, error text or None)"""
    begun = time.monotonic()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired) as why:
        return None, str(why)
    took = time.monotonic() - begun
    return took, None if done.returncode == 0 else done.stdout.strip()[-300:]


def play(configuration, program, folder, rounds):
    """The program at its full rate. Returns (its end line, rounds' figures, seconds from its exit
    until the profiler around it was done)."""
    player = Player(configuration.name, configuration.command(program, folder),
                    configuration.environment(folder), folder)
    try:
        player.ready(120)
        said = [player.round(120) for _ in range(rounds)]
        player.quit()
        end, gone = player.finish(300)
    finally:
        player.close()
    return end, said, gone


def nsys_file(configuration, folder, run):
    """Import (when nsys did not do it itself) and export; the times go into `run`."""
    report, raw = configuration.file(folder, "nsys-rep"), configuration.file(folder, "qdstrm")
    if not os.path.exists(report) and os.path.exists(raw):
        importer = configuration.importer()
        if not importer:
            return {"error": "nsys left a .qdstrm and there is no QdstrmImporter"}
        run["import_s"], why = timed([importer, "--input-file", raw, "--output-file", report])
        if why:
            return {"error": f"import: {why}"}
    if not os.path.exists(report):
        return {"error": "nsys left no file"}
    run["report_bytes"] = os.path.getsize(report)
    exported = configuration.file(folder, "sqlite")
    run["export_s"], why = timed([configuration.nsys, "export", "--type", "sqlite",
                                  "--force-overwrite=true", "-o", exported, report])
    if why:
        return {"error": f"export: {why}"}
    return configurations.read_export(exported)


def one(bench, configuration, program):
    folder = bench.folder()
    run = {}
    try:
        end, said, run["exit_to_end_s"] = play(configuration, program, folder,
                                               2 if bench.args.quick else ROUNDS)
        run["operations"], run["rounds"] = end.get("operations"), said
        told = (nsys_file(configuration, folder, run) if configuration.kind == "nsys"
                else configuration.recorded(folder))
        run.update(told)
        run["usable_s"] = sum(run.get(key) or 0 for key in ("exit_to_end_s", "import_s", "export_s"))
    except (Failed, OSError) as why:
        run["error"] = str(why)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if "error" in run:
        bench.note(f"after, {configuration.name}: {run['error']}")
    return run


def show(name, runs):
    def seconds(key):
        values = [r[key] for r in runs if r.get(key) is not None]
        return f"{statistics.median(values):.2f}" if values else "n/a"

    whole = [r for r in runs if r.get("records") and r.get("bytes")]
    lost = {(r["operations"] or 0) - r["kernels"] for r in whole if r.get("kernels") is not None}
    sizes = [f"{r[key] / r['records']:.1f} ({key})" for r in whole[-1:]
             for key in ("bytes", "report_bytes") if r.get(key)]
    print(f"  {name:<10}{len(runs)} run(s): exit to end {seconds('exit_to_end_s')} s, import "
          f"{seconds('import_s')} s, export {seconds('export_s')} s, usable after "
          f"{seconds('usable_s')} s; records {whole[-1]['records'] if whole else 'n/a'}, bytes per "
          f"record {', '.join(sizes) or 'n/a'}; kernels missing "
          f"{', '.join(str(n) for n in sorted(lost)) or 'n/a'}; dropped "
          f"{sum(r.get('dropped') or 0 for r in whole)}", flush=True)


def section(bench, share):
    """The section `after` of bench/overhead: 3 runs each of perfkit and nsys, bare for its exit."""
    program = bench.args.program or os.path.join(bench.args.build, "bin", "bench_cuda_launch")
    if not os.path.exists(program):
        bench.note(f"after: {program} is not built (nvcc)")
        return
    until = time.monotonic() + bench.left() * share
    begun, names = time.monotonic(), ("bare", "perfkit", "nsys")
    runs = {c.name: [] for c in bench.configurations if c.name in names}
    for turn in range(1 if bench.args.quick else 3):
        for configuration in bench.configurations:
            if configuration.name in runs and (time.monotonic() < until or turn == 0):
                runs[configuration.name].append(
                    one(bench, configuration, [program, "launch", str(LAUNCHES)]))
    bench.sections["after"] = {"title": "from the program's exit to a file for SQL",
                               "launches": LAUNCHES * ROUNDS, "runs": runs}
    print(f"\nafter: {LAUNCHES * ROUNDS:,} launches at full rate; {time.monotonic() - begun:.0f} s "
          "(an event is an API call or a device record)")
    for name, each in runs.items():
        if name != "bare":
            show(name, each)


def long(bench):
    """The section `long`: perfkit and the floor, a process each, one after the other."""
    program = bench.args.program or os.path.join(bench.args.build, "bin", "bench_cuda_launch")
    words = [program, "graph", str(LONG_NODES), str(LONG_REPLAYS)]
    if not os.path.exists(program):
        bench.note(f"long: {program} is not built (nvcc)")
        return
    runs = {}
    for configuration in bench.configurations:
        if configuration.name not in ("floor", "perfkit"):
            continue
        folder = bench.folder()
        try:
            end, said, gone = play(configuration, words, folder,
                                   2 if bench.args.quick else LONG_ROUNDS)
            runs[configuration.name] = {**configuration.recorded(folder), "exit_to_end_s": gone,
                                        "operations": end["operations"], "rounds": said,
                                        "peak_kib": end["peak_kib"]}
        except (Failed, OSError) as why:
            bench.note(f"long, {configuration.name}: {why}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    bench.sections["long"] = {"title": "graph nodes in one process", "runs": runs}
    print(f"\nlong: {LONG_ROUNDS * LONG_NODES * LONG_REPLAYS:,} graph nodes in one process")
    for name, run in runs.items():
        used = [r["gpu_used_bytes"] / 1e6 for r in run["rounds"] if "gpu_used_bytes" in r]
        gpu = f"{used[0]:.0f} to {used[-1]:.0f}" if used else "n/a"
        print(f"  {name:<10}nodes run {run['operations']:,}, kernel records "
              f"{run.get('kernels', 'n/a')}, without times {run.get('untimed', 'n/a')}, dropped "
              f"{run.get('dropped')}; GPU MB in use {gpu}; peak host MB "
              f"{run['peak_kib'] * 1024 / 1e6:.0f}", flush=True)
