#!/usr/bin/env python3
"""Programs as users run them, recorded, and the captures compared with what the programs say.

    check.py BUILD FOLDER_FOR_CAPTURES [--only a,b] [--budget SECONDS] [--list]

Each program runs bare first: its output and messages must be the same when it is recorded. Needs
PyTorch and a GPU, else exit 77. Set PERFKIT_PYTHON to the python3 that has PyTorch."""
import collections
import glob
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cuda"))
sys.path.insert(0, os.path.join(HERE, "..", "stacks"))
sys.dont_write_bytecode = True
import witness
from checking import Check, Recorder, Skip, main, run, trusted

PYTHON = os.environ.get("PERFKIT_PYTHON", "python3")
COUNTED = "bitwise_not"
TIMEOUT = 300
HAS_PROFILER = "uses CUPTI itself"  # a statement of the trust block


def command(program, *arguments):
    path = os.path.join(HERE, program.replace("_spawned", "") + ".py")
    if program == "ddp":
        return [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", path,
                *arguments]
    return [PYTHON, path, *arguments]


def environment(recorder):
    return {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo", **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "2",
            "TRITON_CACHE_DIR": os.path.join(os.path.abspath(recorder.folder), "triton"),
            "CUPY_CACHE_DIR": os.path.join(os.path.abspath(recorder.folder), "cupy"),
            "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}


def told(out):
    """The last line of JSON."""
    lines = [line for line in out.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {}


def plain(text):
    """Messages without what differs from run to run: numbers, addresses, and their order."""
    return sorted({re.sub(r"0x[0-9a-f]+|\d+", "#", line) for line in text.splitlines() if line.strip()})


def matching(kernels, pattern):
    return sum(n for name, n in kernels.items() if re.search(pattern, name))


def compare_kernels(report, db, made):
    kernels = db.kernels()
    wanted = dict(made.get("kernels", {}))
    if "counted" in made:
        wanted[COUNTED] = made["counted"]
    for pattern, n in wanted.items():
        report.equal(f"kernels like {pattern}", matching(kernels, pattern), n)
    for pattern, n in made.get("at_least", {}).items():
        got = matching(kernels, pattern)
        report.true(f"kernels like {pattern}", got >= n, f"{got}, expected at least {n}")
    report.equal("kernels without times", db.count("kernel", "start IS NULL OR duration IS NULL"), 0)
    report.observed("kernels", f"{sum(kernels.values())} of {len(kernels)} names, such as "
                               f"{[name[:120] for name in list(kernels)[:4]]}")


def compare_processes(report, db, made):
    report.equal("processes that launched", db.one(
        "SELECT count(DISTINCT s.process) FROM kernel k JOIN stream s ON s.id=k.stream"),
        made["launching_processes"])
    processes = db.one("SELECT count(DISTINCT pid) FROM process")
    if "processes" in made:
        report.true("processes", processes >= made["processes"], processes)
    if "workers" in made:
        report.true("workers among the processes", processes >= 1 + made["workers"], processes)
    report.observed("processes", db.rows(
        "SELECT birth, end_reason, exit_status, exit_signal, count(*) FROM process GROUP BY 1, 2, 3, 4"))
    report.equal("capture's exit status", db.one("SELECT exit_status FROM capture"),
                 made.get("status", 0))


def compare(report, db, made):
    compare_kernels(report, db, made)
    compare_processes(report, db, made)
    if "ranges" in made:
        ranges = db.ranges()
        report.equal("ranges", {name: ranges.get(name, 0) for name in made["ranges"]}, made["ranges"])
    if "graph_launches" in made:
        report.equal("graph launches", db.calls().get("cudaGraphLaunch", 0), made["graph_launches"])
        report.equal("counted kernels in graphs", matching(db.kernels("graph_node NOT NULL"), COUNTED),
                     made["graph_launches"])
    trusted(report, db)
    statements = db.statements()
    report.equal("said to use CUPTI itself", any(HAS_PROFILER in s for s in statements),
                 "profiler_device_events" in made)
    report.observed("statements", statements)


def bare(recorder, program):
    status, out, err = run(command(program), TIMEOUT, env=environment(recorder))
    made = told(out)
    if status == 77 or "skip" in made:
        raise Skip(made.get("skip", f"{program} cannot run here"))
    return status, out, err, made


def program(name, same_messages=True, options=()):
    def check(report, recorder):
        status, _, err, expected = bare(recorder, name)
        if status != expected.get("status", 0):
            raise Skip(f"the program fails without perfkit too, status {status}: {err[-400:]}")
        result = recorder.record(name, command(name), options, TIMEOUT, env=environment(recorder))
        made = told(result.out)
        report.equal("exit status", result.status, status)
        report.equal("says", made, expected) if same_messages else report.observed("says", made)
        if same_messages:
            report.equal("messages", plain(result.err), plain(err))
        else:
            report.observed("says without perfkit", expected)
            report.observed("messages", result.err[-600:])
        if made:
            compare(report, result.capture, made)
    return check


def profiler_yield(report, recorder):
    """--cupti=yield: the program's profiler sees what it sees without perfkit; ranges are recorded."""
    _, _, _, alone = bare(recorder, "torch_profiler_inside")
    result = recorder.record("torch_profiler_yield", command("torch_profiler_inside"),
                             ["--cupti=yield"], TIMEOUT, env=environment(recorder))
    made = told(result.out)
    report.equal("exit status", result.status, 0)
    report.equal("device events of the program's own profiler", made.get("profiler_device_events"),
                 alone["profiler_device_events"])
    ranges = result.capture.ranges()
    report.equal("ranges", {name: ranges.get(name, 0) for name in alone["ranges"]}, alone["ranges"])
    statements = result.capture.statements()
    report.true("the capture says so", any("--cupti=yield" in s for s in statements), statements)
    report.equal("kernels", sum(result.capture.kernels().values()), 0)


PLACES = """WITH RECURSIVE up(leaf, id) AS (SELECT DISTINCT stack, stack FROM kernel WHERE stack NOT NULL
            UNION ALL SELECT leaf, parent FROM up JOIN stack USING (id) WHERE parent NOT NULL)
            SELECT up.leaf, s.value, p.value, y.line FROM up JOIN stack k USING (id)
            JOIN frame f ON f.id = k.frame AND f.kind = 2 JOIN symbol y ON y.frame = f.id
            JOIN string s ON s.id = y.function LEFT JOIN string p ON p.id = y.file ORDER BY k.depth DESC"""


def compare_names(report, result, made, recorder):
    """Ranges of operators and modules, Python frames of launches, lines of the backward pass."""
    db, steps = result.capture, made["steps"]
    ranges = db.ranges()
    modules = ("Net", "Net.first", "Net.wave", "Net.rest", "Net.rest.0", "Net.rest.1")
    report.equal("module ranges", {name: ranges.get(name) for name in modules},
                 dict.fromkeys(modules, made["steps"]))
    operators = ("aten::sin", "aten::addmm", "SinBackward0")
    report.equal("operator ranges", {name: ranges.get(name) for name in operators},
                 {"aten::sin": steps, "aten::addmm": 2 * steps, "SinBackward0": steps})
    report.equal("texts with numbers", [name for name in ranges if "op_id" in name or "seq =" in name], [])
    places = {}  # stack -> Python frames, innermost first
    for leaf, function, file, line in db.rows(PLACES):
        places.setdefault(leaf, []).append((function, os.path.basename(file or ""), line))
    wanted = ("count", "pytorch_lines.py", made["lines"]["bitwise_not"])
    stacks = [row[0] for row in db.rows(
        "SELECT k.stack FROM kernel k JOIN launch_config c ON c.id = k.config JOIN string s ON "
        "s.id = coalesce(c.demangled, c.name) WHERE s.value LIKE ?", f"%{COUNTED}%")]
    report.equal("launches of the counted kernel", len(stacks), made["counted"])
    report.equal("their innermost Python frame", {places.get(stack, [None])[0] for stack in stacks},
                 {wanted})
    report.equal("their outermost", {places.get(stack, [(None,)])[-1][0] for stack in stacks},
                 {"<module>"})
    launches = db.one("SELECT count(*) FROM kernel")
    report.equal("launches with a stack", db.one("SELECT count(*) FROM kernel WHERE stack NOT NULL"),
                 launches)
    status, out, _ = run([f"{recorder.bin}/perfkit", "report", "--stats", "pytorch_sum", "--json",
                          result.capture.path], TIMEOUT)
    rows = json.loads(out)["stats"][0]["rows"] if status == 0 else []
    report.equal("forward and backward of torch.sin",
                 [(row["Function"].rpartition(".")[2], os.path.basename(row["File"]), row["Line"],
                   row["Module"], row["Forward Ops"], row["Backward Ops"] >= steps)
                  for row in rows if row["Operator"] == "aten::sin"],
                 [("forward", "pytorch_lines.py", made["lines"]["sin"], "Net.wave", steps, True)])
    report.equal("backward work that is nobody's",
                 [row["Backward Ops"] for row in rows if str(row["Operator"]).startswith("(")], [])
    notes = [s for s in db.statements() if s.startswith("collector python")]
    report.equal("said of PyTorch", [("operators and modules are named" in s) for s in notes], [True])


def pytorch_lines(name, *arguments):
    def check(report, recorder):
        line = [*command("pytorch_lines"), *arguments]
        status, out, err = run(line, TIMEOUT, env=environment(recorder))
        expected = told(out)
        if status == 77 or "skip" in expected:
            raise Skip(expected.get("skip", "cannot run here"))
        result = recorder.record(name, line, ["--pytorch", "--stacks=launch"], TIMEOUT,
                                 env=environment(recorder))
        made = told(result.out)
        report.equal("exit status", result.status, status)
        report.equal("says", made, expected)
        if not arguments:  # a profiler of the program's own complains that CUPTI is taken (--cupti=own)
            report.equal("messages", plain(result.err), plain(err))
        report.observed("Python, PyTorch", (made.get("python"), made.get("torch")))
        if made:
            compare_names(report, result, made, recorder)
            trusted(report, result.capture)
    return check


INTERPRETER = ("python3", "libpython3")


def different(got, expected):
    """The first three of each side that the other has not."""
    return list((got - expected).items())[:3], list((expected - got).items())[:3]


def python_stacks(db, made, report):
    """Each counted launch, in order of time, has the frames that Python itself told."""
    frames = {}
    for leaf, *frame in db.rows(PLACES):
        frames.setdefault(leaf, []).append([frame[0], os.path.basename(frame[1] or ""), frame[2]])
    got = [frames.get(stack, []) for stack, in db.rows(
        "SELECT k.stack FROM kernel k JOIN launch_config c ON c.id = k.config JOIN string s ON "
        "s.id = coalesce(c.demangled, c.name) WHERE s.value LIKE ? ORDER BY k.start", f"%{COUNTED}%")]
    report.equal("launches of the counted kernel", len(got), made["counted"])
    wrong = [(number, ours, theirs) for number, (ours, theirs) in enumerate(zip(got, made["stacks"]))
             if ours != theirs]
    report.equal("launches whose Python frames are not those that Python has", wrong[:2], [])


def native_stacks(db, prefix, report):
    """Native frames of PyTorch's own launches, fills and copies, and how many came that way."""
    compared = {"kernel": ("cudaLaunchKernel", "__cudaLaunchKernel", "cudaLaunchKernelExC"),
                "memset": ("cudaMemsetAsync",), "transfer": ("cudaMemcpyAsync",)}
    for table, functions in compared.items():
        theirs = witness.told(prefix, functions, INTERPRETER)
        ours = witness.recorded(db.db, table, "stack NOT NULL", INTERPRETER)
        seen_by_both = collections.Counter({frames: n for frames, n in ours.items() if frames in theirs or (
            frames and "libtorch" in os.path.basename(frames[0][0]))})
        report.equal(f"native stacks of {table}s, where they differ", different(seen_by_both, theirs),
                     ([], []))
        count = sum(theirs.values())
        report.true(f"{table}s compared", count > 0 or table == "memset", (count, len(theirs)))
    deepest = max(witness.told(prefix, compared["kernel"]), key=len, default=())
    report.true("frames of libtorch below the interpreter's", len(deepest) > 20, len(deepest))


def pytorch_stacks(report, recorder):
    """Whole stacks: Python's frames as Python has them, native ones as the C++ runtime has them."""
    prefix = os.path.join(os.path.abspath(recorder.folder), "witness")
    for old in glob.glob(prefix + ".*"):
        os.unlink(old)
    library = os.path.join(recorder.bin, "..", "lib", "libstack_witness.so")
    if not os.path.exists(library):
        raise Skip("the build has no witness")
    _, _, _, expected = bare(recorder, "pytorch_stacks")
    result = recorder.record("pytorch_stacks", command("pytorch_stacks"), ["--stacks=launch"], TIMEOUT,
                             env={**environment(recorder), "LD_PRELOAD": os.path.abspath(library),
                                  "STACK_WITNESS": prefix})
    made, db = told(result.out), result.capture
    report.equal("exit status", result.status, 0)
    report.equal("the program's places", made.get("stacks"), expected["stacks"])
    if made:
        python_stacks(db, made, report)
        native_stacks(db, prefix, report)
    report.equal("what was lost of stacks", {k: v for k, v in db.health("record").items()
                                             if k.startswith(("stacks", "python"))}, {})
    trusted(report, db)


def memory_holders(report, recorder):
    """Who holds the memory at its peak, what leaks, what did not fit, and the driver's own count."""
    _, _, _, made = bare(recorder, "memory_holders")
    result = recorder.record("memory_holders", command("memory_holders"), ["--pytorch", "--stacks=alloc"],
                             TIMEOUT, env=environment(recorder))
    report.equal("exit status", result.status, 0)
    status, out, err = run([f"{recorder.bin}/perfkit", "report", "--memory", "--json",
                            result.capture.path], TIMEOUT)
    report.equal("report", (status, err), (0, ""))
    told_memory = json.loads(out)

    def of(table, what):
        place = f"(memory_holders.py:{made['lines'][what]})"
        rows = [row for row in told_memory[table]["rows"] if place in row["brief"].split(" < ")[0]
                and row["kind"] == "PyTorch block"]
        return rows[0] if len(rows) == 1 else {}

    for what in ("weights", "activations"):
        report.equal(f"{what} at the peak", of("held", what).get("held_bytes"), made[what])
    report.equal("largest holder", told_memory["held"]["rows"][0]["held_bytes"], made["weights"])
    leak = of("kept", "forgotten")
    report.equal("what leaks", (leak.get("verdict"), leak.get("growth_bytes"), leak.get("kept_count")),
                 ("leak", made["forgotten"], made["steps"]))
    peak = [row for row in told_memory["places"]["rows"] if row["kind"] == "all" and row["name"] != "host"][0]
    report.equal("held by all", sum(row["held_bytes"] for row in told_memory["held"]["rows"]
                                    if row["device_name"] != "host"), peak["peak_bytes"])
    report.equal("refused", made["refused"], True)
    failures = told_memory["failures"]["rows"]
    report.equal("allocations that found no room", len(failures), 1)
    report.true("asked for", failures and failures[0]["bytes"] >= made["too_much"], failures)
    drivers = told_memory["driver"]["rows"]
    report.true("the driver's count", drivers and drivers[0]["compared"] > 0
                and drivers[0]["worst_share"] <= 0.01, drivers)
    trusted(report, result.capture)


def stall_lines(report, recorder):
    """Kernels of NVRTC (CuPy) and Triton wait at the lines of their own source that the program marks."""
    _, _, _, made = bare(recorder, "stall_lines")
    result = recorder.record("stall_lines", command("stall_lines"), ["--stalls"], TIMEOUT, env=environment(recorder))
    report.equal("exit status", result.status, 0)
    compare(report, result.capture, made)
    status, out, err = run([f"{recorder.bin}/perfkit", "report", "--format", "json", result.capture.path], TIMEOUT)
    report.equal("report", (status, err), (0, ""))
    rows = {row["name"].partition("(")[0]: row for row in json.loads(out)["stalls"]["rows"]}
    for kernel, line in made["lines"].items():
        row = rows.get(kernel, {})
        report.observed(f"{kernel}", {key: row.get(key) for key in ("samples", "reason", "file", "line", "no_lines")})
        report.true(f"{kernel} waits within two lines of {line}", abs((row.get("line") or 0) - line) <= 2, row.get("line"))
        report.equal(f"{kernel} waits for", row.get("reason"), "long_scoreboard")
    if "perfkit_cupy_gather" not in made["lines"]:
        report.skipped("perfkit_cupy_gather", "CuPy is not installed")


CHECKS = [
    Check("os_exit", 20, program("os_exit")),
    # --cupti=own: every launch is ours, and the program's own profiler gets no device events.
    Check("torch_profiler_inside", 30, program("torch_profiler_inside", same_messages=False)),
    Check("torch_profiler_yield", 30, profiler_yield),
    Check("fork_workers", 30, program("fork_workers")),
    Check("train_dataloader", 30, program("train_dataloader")),
    Check("inference", 25, program("inference")),
    Check("cublas_cudnn", 25, program("cublas_cudnn")),
    Check("triton_add", 30, program("triton_add")),
    Check("stall_lines", 30, stall_lines),
    Check("memory_holders", 30, memory_holders),
    Check("pytorch_stacks", 30, pytorch_stacks),
    Check("pytorch_lines", 30, pytorch_lines("pytorch_lines")),
    Check("pytorch_profiler", 30, pytorch_lines("pytorch_profiler", "profiler")),
    Check("ddp", 50, program("ddp")),
    Check("ddp_spawned", 50, program("ddp_spawned")),
]


def prepare(arguments):
    probe = subprocess.run([PYTHON, "-c", "import torch, sys; sys.exit(not torch.cuda.is_available())"],
                           stderr=subprocess.DEVNULL, check=False)
    if probe.returncode != 0:
        print("skipped: this python3 has no PyTorch, or it sees no GPU")
        sys.exit(77)
    return Recorder(os.path.join(os.path.abspath(arguments.place), "bin"), arguments.out)


if __name__ == "__main__":
    sys.exit(main(CHECKS, __doc__.splitlines()[0], prepare))
