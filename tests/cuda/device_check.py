#!/usr/bin/env python3
"""Captures of programs with known counts, compared with what the programs did.

    device_check.py BIN_FOLDER FOLDER_FOR_CAPTURES [--only a,b] [--budget SECONDS] [--list]

Called by device_check.sh. Needs only python3. Lines: ok, FAIL, saw (what this machine does, for the
notes; nothing is asserted), skip. The folder gets results.json; captures of checks that keep
hundreds of megabytes are deleted."""
import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from checking import CLASSES, Capture, Check, Recorder, Result, did, main, recorded, run, trusted, well_timed
from device_counted import counted, waits
from device_parity import parity, whole_graphs

MODES = ("kernels cooperative cluster memory pool managed vmm copies arrays fills peer events streams "
         "threads nvtx graph_capture graph_manual module green profiler").split()
OPEN_SLACK_NS = 250_000_000  # a window that perfkit opens works from the collector's next tick on
TOTAL_NODES = int(os.environ.get("PERFKIT_GRAPH_NODES", "30000000"))
CHURN = int(os.environ.get("PERFKIT_CHURN", "10000"))
KILLS = int(os.environ.get("PERFKIT_KILLS", "5"))
LOST_MS = 200


# ---- exact counts and ends: the first checks there were -------------------------------------------


def exact(threads):
    def check(report, recorder):
        result = recorded(recorder, f"exact{threads}", "cuda_exact_counts", threads)
        made, db = did(report, result), result.capture
        if not made:
            return
        report.equal("kernels by name", db.kernels(), made["kernels"])
        report.equal("copies by kind", db.table(
            "SELECT kind, count(*), sum(bytes) FROM transfer GROUP BY 1"), made["transfers"])
        report.equal("fills", [*db.rows("SELECT count(*), sum(bytes) FROM memset")[0]],
                     made["memsets"])
        report.equal("allocations by kind", db.table(
            f"SELECT kind, count(*), sum(bytes) FROM allocation WHERE {CLASSES} GROUP BY 1"),
            made["allocations"])
        report.equal("leaks", [*db.rows("SELECT count(*), coalesce(sum(bytes),0) FROM allocation "
                                        f"WHERE end IS NULL AND {CLASSES}")[0]], made["leaked"])
        calls = db.calls()
        report.equal("graph launches", calls.get("cudaGraphLaunch", 0), made["graph_launches"])
        report.equal("driver launches", sum(n for name, n in calls.items()
                                            if name.startswith("cuLaunchKernel")),
                     made["driver_launches"])
        launch = db.health("launch")
        report.equal("captured launches", launch.get("captured"), made["captured_launches"])
        report.equal("failed launches", launch.get("failed"), made["failed_launches"])
        report.equal("captured copies", db.health("transfer").get("captured"),
                     made["captured_transfers"])
        trusted(report, db)
        well_timed(report, db)
        report.equal("kernels without a call", db.count(
            "kernel", "graph_node IS NULL AND api_name IS NULL"), 0)
        report.equal("threads that launched", db.one(
            "SELECT count(DISTINCT thread) FROM kernel WHERE graph_node IS NULL"), threads)
        report.equal("devices that worked", db.one(
            "SELECT count(DISTINCT device) FROM stream WHERE id IN (SELECT stream FROM kernel)"), 1)
        report.equal("devices without name", db.count("device", "name IS NULL"), 0)
        report.equal("launching streams", db.one("SELECT count(DISTINCT stream) FROM kernel"),
                     made["streams"])
        report.equal("non-blocking streams", db.count(
            "stream", "non_blocking AND id IN (SELECT stream FROM kernel)"), made["streams"])
        if threads == 1:
            look_around(report, db)
    return check


def look_around(report, db):
    report.observed("device", db.rows("SELECT name, driver, uuid, units, clock_khz, "
                                      "memory_bandwidth, l2_bytes FROM device"))
    report.observed("api functions", db.calls())
    report.observed("launches by name of their call", db.table(
        "SELECT s.value, count(*) FROM kernel k JOIN string s ON s.id=k.api_name GROUP BY 1"))
    report.observed("waits", db.rows("SELECT kind, count(*), count(api_name) FROM sync GROUP BY 1"))
    report.observed("statements", db.statements())
    if "overhead" in db.tables:
        report.observed("overhead", db.table(
            "SELECT kind, count(*), sum(duration) FROM overhead GROUP BY 1"))


def end(how, count=1000, settle=None, expected_status=0):
    def check(report, recorder):
        result = recorded(recorder, "ends_" + how, "cuda_ends", how, count,
                          *([settle] if settle else []))
        db = result.capture
        report.equal("status", result.status, expected_status)
        report.equal("kernels", db.count("kernel"), count)
        report.observed("end", db.rows("SELECT end_reason, exit_status, exit_signal FROM process"))
        if expected_status == 0:
            trusted(report, db)
        else:
            report.observed("statements", db.statements())
    return check


# ---- call stacks ----------------------------------------------------------------------------------

# Each stack that kernels have, and every stack on the way to its outermost frame
UP = ("WITH RECURSIVE up(stack, at) AS (SELECT DISTINCT stack, stack FROM kernel WHERE stack NOT NULL "
      "UNION ALL SELECT up.stack, s.parent FROM up JOIN stack s ON s.id = up.at WHERE s.parent NOT NULL) ")
FRAMES = ("FROM up JOIN stack s ON s.id = up.at JOIN frame f ON f.id = s.frame "
          "LEFT JOIN module m ON m.id = f.module LEFT JOIN symbol y ON y.frame = f.id "
          "LEFT JOIN string t ON t.id = y.function ")


def stacks(report, recorder):
    """Every launch, copy, fill, allocation and wait has the stack of the program that made it, walked
    through libcudart, libcuda and CUPTI without a frame of theirs being left at its inner end."""
    result = recorded(recorder, "stacks", "cuda_exact_counts", 2, options=["--stacks"])
    made, db = did(report, result), result.capture
    if not made:
        return
    called = "graph_node IS NULL AND api_name NOT NULL AND stack IS NULL"
    for table in ("kernel", "transfer", "memset"):
        report.equal(f"{table}s without a stack", db.count(table, called), 0)
    report.equal("allocations without a stack",
                 db.count("allocation", f"{CLASSES} AND stack IS NULL"), 0)
    report.equal("waits without a stack", db.count("sync", "api_name NOT NULL AND stack IS NULL"), 0)
    report.equal("made graph nodes without a stack",
                 db.count("graph_node", "original IS NULL AND stack IS NULL"), 0)
    report.equal("stacks that ended early", db.health("record").get("stacks_ended", 0), 0)
    report.equal("stacks without room", db.health("record").get("stacks_unsent", 0), 0)
    report.equal("stacks of kernels that miss work()", db.one(
        UP + "SELECT count(*) FROM (SELECT DISTINCT stack AS k FROM up) WHERE k NOT IN "
        "(SELECT up.stack " + FRAMES + "WHERE t.value LIKE 'work%')"), 0)
    inner = db.table(UP + "SELECT m.path, count(*) " + FRAMES + "WHERE up.stack = up.at GROUP BY 1")
    report.true("innermost frames are the program's", inner and all(
        not any(name in (path or "") for name in ("libcuda", "libcupti", "libperfkit", "libnvidia"))
        for path in inner), inner)
    report.observed("a stack, from the inside", db.rows(
        UP + "SELECT coalesce(t.value, hex(f.offset)), m.path " + FRAMES +
        "WHERE up.stack = (SELECT stack FROM kernel WHERE stack NOT NULL LIMIT 1) "
        "ORDER BY up.at DESC, y.level"))
    report.observed("different stacks of kernels", db.one("SELECT count(DISTINCT stack) FROM kernel"))
    report.observed("stacks in the trust block", {k: v for k, v in db.health("record").items()
                                                  if k.startswith("stacks")})
    trusted(report, db)


# ---- hard cases -----------------------------------------------------------------------------------


def forks(how):
    def check(report, recorder):
        children, count = 4, 200
        result = recorded(recorder, "forks_" + how, "cuda_forks", how, children, count)
        made, db = did(report, result), result.capture
        if not made:
            return
        wanted = {name: n for name, n in made["kernels"].items() if n}
        report.equal("kernels", db.kernels(), wanted)
        report.equal("processes that launched", db.one(
            "SELECT count(DISTINCT s.process) FROM kernel k JOIN stream s ON s.id=k.stream"),
            1 if how == "after" else 1 + children)
        report.equal("processes", db.one("SELECT count(DISTINCT pid) FROM process"), 1 + children)
        trusted(report, db)
        report.observed("ends", db.rows("SELECT birth, end_reason, exit_status, count(*) FROM process "
                                        "GROUP BY 1, 2, 3"))
    return check


def churn(report, recorder):
    result = recorded(recorder, "churn", "cuda_churn", CHURN, timeout=400)
    made, db = did(report, result), result.capture
    if not made:
        return
    wanted = {f"churn_{i:06d}" for i in range(made["cycles"])}
    got = db.kernels()
    report.equal("kernels", sum(got.values()), made["cycles"])
    report.equal("names that no kernel had", sorted(set(got) - wanted)[:5], [])
    report.equal("names that are missing", sorted(wanted - set(got))[:5], [])
    report.equal("names seen more than once", [n for n in got if got[n] != 1][:5], [])
    order = db.one(
        "SELECT count(*) FROM (SELECT s.value AS name, lag(s.value) OVER (ORDER BY k.start) AS "
        "before FROM kernel k JOIN launch_config c ON c.id=k.config JOIN string s ON s.id=c.name) "
        "WHERE name < before")
    report.equal("names out of order of time", order, 0)
    trusted(report, db)
    well_timed(report, db)


def graph_nodes(report, recorder):
    result = recorded(recorder, "graph_nodes", "cuda_graph_nodes", 1000, TOTAL_NODES, timeout=560)
    made, db = did(report, result), result.capture
    if not made:
        return
    report.observed("ns per node", made["ns_per_node"])
    report.observed("seconds", made["seconds"])
    report.observed("device memory taken since the start, MB, by nodes",
                    [[n, round((made["free_before"] - free) / 1e6)] for n, _, free in made["free"]])
    low, high, n, no_start, no_end, longest, total = db.rows(
        "SELECT min(start), max(start + duration), count(*), sum(start IS NULL), "
        "sum(duration IS NULL), max(duration), sum(duration) FROM kernel")[0]
    report.equal("kernels", n, made["nodes"])
    missing = sum(db.health(subject).get("times_missing", 0) for (subject,) in
                  db.rows("SELECT DISTINCT subject FROM capture_health"))
    report.equal("kernels without start", no_start, 0)
    report.equal("kernels without end", no_end, 0)
    report.true("rows without times are counted in the trust block",
                missing >= max(no_start or 0, no_end or 0), missing)
    if no_start or no_end:
        report.observed("first row without times", db.one(
            "SELECT min(id) FROM kernel WHERE start IS NULL OR duration IS NULL"))
    span = db.one("SELECT duration FROM capture")
    report.true("times within the capture", low is not None and low >= 0 and high <= span + 10**9,
                f"{low} to {high} of {span} ns")
    # One stream: kernels one after the other, so their sum fits into the time they spanned.
    report.true("durations that can be", total is not None and total <= high - low and
                longest < 10**9, f"sum {total} of {high and high - low} ns, longest {longest} ns")
    report.observed("statements", db.statements())
    report.observed("bytes per event", round(os.path.getsize(db.path) / max(n, 1), 1))
    trusted(report, db)
    os.unlink(db.path)


def memory_taken(report, recorder):
    """What recording takes of the host's and the device's memory, against the bare program."""
    arguments = ["1000", "2000000", "500000"]
    status, out, _ = run([f"{recorder.bin}/cuda_graph_nodes", *arguments], 120)
    report.equal("bare: exit status", status, 0)
    result = recorded(recorder, "memory_taken", "cuda_graph_nodes", *arguments)
    made = did(report, result)
    if status != 0 or not made:
        return
    plain = json.loads(out)
    extra = (made["peak_host_kb"] - plain["peak_host_kb"]) / 1e3
    report.true("extra host memory under 200 MB", extra < 200, f"{extra:.0f} MB")
    for when in ("free_before", "free_after"):
        report.observed(f"extra device memory, {when[5:]} 2 M graph nodes, MB",
                        round((plain[when] - made[when]) / 1e6, 1))
    report.observed("ns per node, bare and recorded", [plain["ns_per_node"], made["ns_per_node"]])
    trusted(report, result.capture)


class Progress:
    """The file that cuda_full_speed keeps (targets/full_speed.cu: struct progress)."""
    SAMPLES = 65536

    def __init__(self, path):
        with open(path, "rb") as file:
            raw = file.read()
        (self.pid, self.launched, self.launched_ns, self.complete, self.complete_ns,
         count) = struct.unpack_from("<6Q", raw)
        self.samples = []
        for i in range(max(0, count - self.SAMPLES), count):
            self.samples.append(struct.unpack_from("<2Q", raw, 64 + 16 * (i % self.SAMPLES)))


def wait_for(what, seconds=300):
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        value = what()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError(f"nothing after {seconds} s")


def running_pid(path):
    def look():
        try:
            progress = Progress(path)
        except (OSError, struct.error):
            return 0
        return progress.pid if progress.complete > 0 else 0
    return look


def kill_once(report, recorder, number):
    file = os.path.join(recorder.folder, f"progress{number}")
    if os.path.exists(file):
        os.unlink(file)
    words, path = recorder.line(f"killed{number}", (), [f"{recorder.bin}/cuda_full_speed", file, "60"])
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as process:
        try:
            pid = wait_for(running_pid(file))
            # spread over the 100 ms between two flushes, the same in every run of the check
            time.sleep(1.0 + 0.37 * number)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                _, said = process.communicate(timeout=300)
                raise AssertionError(f"ended by itself: status {process.returncode}, "
                                     f"{said.strip()[-2000:]}") from None
            death = time.monotonic_ns()
            process.communicate(timeout=300)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    result = Result(process.returncode, "", "", Capture(path))
    return Progress(file), death, result


def full_speed(report, recorder):
    worst, lost = 0.0, []
    for number in range(KILLS):
        report.group = f"full_speed kill {number + 1}"
        progress, death, result = kill_once(report, recorder, number)
        db = result.capture
        report.equal("status", result.status, -signal.SIGKILL)
        kernels, last = db.rows("SELECT count(*), max(start + duration) FROM kernel")[0]
        if not last:
            report.true("kernels", False, "none")
            continue
        last += db.start_mono()
        missing = (death - last) / 1e6
        report.true("lost before the death", missing <= LOST_MS,
                    f"{missing:.1f} ms, {progress.complete - kernels} launches known complete of "
                    f"{progress.complete}, rate "
                    f"{progress.complete / max(1, progress.complete_ns - progress.samples[0][1]) * 1e9:.0f}/s")
        # No hole: what was complete before the last recorded kernel's end is all there.
        before = max([n for n, when in progress.samples if when <= last] or [0])
        report.true("no hole before that", kernels >= before,
                    f"{kernels} kernels, {before} complete by then")
        report.true("not more than were launched", kernels <= progress.launched + 1,
                    f"{kernels} of {progress.launched}")
        notes = [s for s in db.statements() if "signal" in s or "SIGKILL" in s or "killed" in s]
        report.true("the trust block says so", bool(notes), notes or db.statements())
        report.equal("process end", db.rows("SELECT end_reason, exit_signal FROM process WHERE "
                                            "pid=?", progress.pid), [("signal", int(signal.SIGKILL))])
        report.equal("launch remainder", db.health("launch").get("remainder", 0), 0)
        worst = max(worst, missing)
        lost.append(round(missing, 1))
        os.unlink(db.path)
    report.group = "full_speed"
    report.observed("ms lost, by kill", lost)


# ---- scope ----------------------------------------------------------------------------------------


def marks(option, kernel, beside, rounds=20):
    def check(report, recorder):
        result = recorded(recorder, "scope_" + kernel, "cuda_scope", "marks", rounds,
                          options=[option])
        made, db = did(report, result), result.capture
        if not made:
            return
        report.equal("kernels", db.kernels(), {kernel: made[kernel]})
        report.equal("copies", db.count("transfer"), beside * rounds)
        report.equal("fills", db.count("memset"), beside * rounds)
        report.equal("ranges beside", db.ranges().get("beside", 0), beside * rounds)
        report.equal("windows", db.count("recording", "begins=1"), rounds)
        report.observed("ranges", db.ranges())
        trusted(report, db)
        report.observed("statements", db.statements())
    return check


def kernel_filter(report, recorder):
    result = recorded(recorder, "scope_kernel", "cuda_scope", "marks", 20,
                      options=["--kernel=^scope_(range|domain)$"])
    made, db = did(report, result), result.capture
    if not made:
        return
    report.equal("kernels", db.kernels(), {k: made[k] for k in ("scope_range", "scope_domain")})
    report.equal("copies", db.count("transfer"), 60)
    left_out = made["scope_outside"] + made["scope_profiler"]
    report.equal("filtered", db.health("launch").get("filtered"), left_out)
    trusted(report, db)


def windows(db):
    """[(begin, end)] on CLOCK_MONOTONIC; an open end is None."""
    zero, out = db.start_mono(), []
    for start, begins in (db.rows("SELECT start, begins FROM recording ORDER BY start")
                          if "recording" in db.tables else []):
        if begins:
            out.append([start + zero, None])
        elif out and out[-1][1] is None:
            out[-1][1] = start + zero
    return out


def compare_ticks(report, db, ticks, spans):
    """Launch i has a grid of i + 1. spans: [(begin, end)] within which everything must be there."""
    there = [n for (n,) in db.rows("SELECT c.grid_x FROM kernel k JOIN launch_config c ON "
                                   "c.id=k.config")]
    report.equal("launches recorded twice", len(there) - len(set(there)), 0)
    there = set(there)

    def inside(tick, slack):
        return any(tick[0] >= a + slack and (b is None or tick[2] <= b) for a, b in spans)

    def outside(tick):
        return all(tick[1] < a or (b is not None and tick[0] > b) for a, b in spans)

    missing = [i for i, tick in enumerate(ticks) if inside(tick, OPEN_SLACK_NS) and
               i + 1 not in there]
    late = [i for i, tick in enumerate(ticks) if inside(tick, 0) and i + 1 not in there]
    extra = [i for i, tick in enumerate(ticks) if outside(tick) and i + 1 in there]
    report.true("launches inside that are missing", not missing,
                f"{len(missing)} of {sum(inside(t, OPEN_SLACK_NS) for t in ticks)}")
    report.true("launches outside that were recorded", not extra,
                f"{len(extra)} of {sum(outside(t) for t in ticks)}")
    report.observed("launches missing in the first ms of the windows",
                    f"{len(late) - len(missing)} ({OPEN_SLACK_NS / 1e6:.0f} ms looked at)")
    report.true("some were recorded, some not", 0 < len(there) < len(ticks),
                f"{len(there)} of {len(ticks)}")


def delay(report, recorder):
    result = recorded(recorder, "scope_delay", "cuda_scope", "ticks", 3.5,
                      options=["--delay=1", "--duration=1"])
    made, db = did(report, result), result.capture
    if not made:
        return
    spans = windows(db)
    report.equal("windows", len(spans), 1)
    if not spans or spans[0][1] is None:
        report.true("the window ends", False, spans)
        return
    report.true("length of the window", 0.7e9 < spans[0][1] - spans[0][0] < 1.3e9,
                f"{(spans[0][1] - spans[0][0]) / 1e9:.3f} s")
    report.observed("begin after the capture's start, s", (spans[0][0] - db.start_mono()) / 1e9)
    compare_ticks(report, db, made["ticks"], spans)
    trusted(report, db)
    report.observed("statements", db.statements())


def dormant(report, recorder):
    words, path = recorder.line("scope_dormant", ["--dormant"],
                                [f"{recorder.bin}/cuda_scope", "ticks", "6"])

    def ctl(word):
        before = time.monotonic_ns()
        status, out, err = run([f"{recorder.bin}/perfkit", "ctl", word, path], 30)
        report.true(f"ctl {word}", status == 0, (out + err).strip())
        return before, time.monotonic_ns()

    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    spans = []
    try:
        time.sleep(2.0)
        for _ in range(2):
            _, begun = ctl("start")
            time.sleep(1.0)
            ending, _ = ctl("stop")
            spans.append((begun, ending))
            time.sleep(0.4)
        out, err = process.communicate(timeout=300)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    db = Capture(path)
    made = did(report, Result(process.returncode, out, err, db))
    if not made:
        return
    compare_ticks(report, db, made["ticks"], [
        (a, b) for a, b in windows(db) or spans])
    report.equal("windows", len(windows(db)), 2)
    for (begun, ending), (a, b) in zip(spans, windows(db)):
        report.true("window against ctl", a <= begun and b is not None and b >= ending,
                    f"begins {(begun - a) / 1e6:.1f} ms before ctl start returned, ends "
                    f"{((b or ending) - ending) / 1e6:.1f} ms after ctl stop was called")
    trusted(report, db)
    report.observed("statements", db.statements())


def holders(report, recorder):
    """Who holds the memory at its peak and what leaks, by function, and by line where lines are known."""
    result = recorded(recorder, "holders", "cuda_holders", 20, options=["--stacks=alloc"])
    made, db = did(report, result), result.capture
    if not made:
        return
    status, out, err = run([f"{recorder.bin}/perfkit", "report", "--memory", "--json", db.path], 60)
    report.equal("report", (status, err), (0, ""))
    told = json.loads(out)
    known = db.one("SELECT count(*) FROM symbol y JOIN string s ON s.id = y.file "
                   "WHERE s.value LIKE '%holders.cu'") > 0
    report.observed("lines are known", known)

    def called(row):
        """The function of ours that a row begins with, and its line."""
        place = row["brief"].split(" < ")[0]
        name = next((name for name in made if name in place), place)
        return name, f"(holders.cu:{made[name][0]})" in place if known and name in made else True

    held = [(*called(row), row["held_bytes"]) for row in told["held"]["rows"]
            if row["device_name"] != "host"]
    expected = [("weights", True, made["weights"][1]), ("activations", True, made["activations"][1])]
    report.equal("largest holders at the peak", held[:2], expected)
    kept = [(*called(row), row["verdict"], row["kept_bytes"]) for row in told["kept"]["rows"]]
    report.equal("what is kept", kept, [
        ("forget", True, "leak", made["forget"][1] * made["steps"]),
        ("table", True, "state", made["table"][1])])
    report.equal("growth of a step", [row["growth_bytes"] for row in told["kept"]["rows"]
                                      if row["verdict"] == "leak"], [made["forget"][1]])
    report.equal("pinned", [(*called(row), row["held_bytes"]) for row in told["held"]["rows"]
                            if row["device_name"] == "host"], [("staging", True, made["staging"][1])])
    trusted(report, db)


CHECKS = [
    Check("exact 1", 3, exact(1)),
    Check("exact 8", 3, exact(8)),
    *(Check(f"parity {mode}", 2, parity([mode])) for mode in MODES),
    Check("parity faults", 2, parity(["managed"], "faults")),
    Check("parity all", 4, parity(["all"], "all")),
    Check("whole_graphs", 2, whole_graphs),
    Check("counted", 5, counted),
    *(Check(f"counted {what}", 5, waits(what, counts)) for what, counts in (
        ("value", False), ("host", False), ("kernel", False), ("reset", True), ("contexts", True),
        ("threads", True))),
    Check("stacks", 4, stacks),
    Check("holders", 4, holders),
    *(Check(f"ends {way}", 2, end(way)) for way in ("return", "exit", "_exit", "threads", "fork")),
    # After a signal: what was complete a flush period earlier (100 ms).
    Check("ends abort", 2, end("abort", settle=600, expected_status=-signal.SIGABRT)),
    Check("ends kill", 2, end("kill", settle=600, expected_status=-signal.SIGKILL)),
    *(Check(f"forks {how}", 5, forks(how)) for how in ("before", "after", "exec")),
    Check("scope profiler", 2, marks("--capture-range=cudaProfilerApi", "scope_profiler", 1)),
    Check("scope range", 2, marks("--capture-range=nvtx:scope range", "scope_range", 1)),
    Check("scope domain", 2, marks("--capture-range=nvtx:scope step@scope", "scope_domain", 0)),
    Check("scope kernel", 2, kernel_filter),
    Check("scope delay", 6, delay),
    Check("scope dormant", 8, dormant),
    Check("memory", 12, memory_taken),
    Check("full_speed", 6 * KILLS, full_speed),
    Check("churn", 10 + CHURN // 250, churn),
    Check("graph_nodes", 20 + TOTAL_NODES // 250000, graph_nodes),
]


if __name__ == "__main__":
    sys.exit(main(CHECKS, __doc__.splitlines()[0],
                  lambda arguments: Recorder(arguments.place, arguments.out)))
