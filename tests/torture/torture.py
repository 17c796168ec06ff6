#!/usr/bin/env python3
"""Torture: perfkit's commands, once for each call that can fail in them (memory, mappings, files, writes,
room, threads and processes, SQLite), and the collector in a recorded program likewise.

    torture.py BUILD [--all | --first | --some N] [--command NAME,...] [--kind NAME,...] [--point POINT] [--list]
               [--jobs N] [--keep] [-v]

A first run of a command counts its calls by place (fail.c: the kind of call and the functions above it).
Then the command runs again for each place and its first, second and last call, which fails alone; for its
first call once more with all later ones of that kind failing too. --first: each place's first call, alone.
Without either: some of each kind and command, the same ones in each build. What must hold is said at `check_reader` and `check_run`."""
import argparse
import concurrent.futures
import hashlib
import json
import mmap
import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile

KINDS = ["malloc", "mmap", "open", "write", "fallocate", "clone", "sync", "name", "read", "stat",
         "sqlite"]
ROLES = ["", "perfkit", "collector", "helper"]
MODULES = ["?", "perfkit", "collector", "sqlite", "libc", "helper"]
SLOTS, FRAMES, HEADER, SLOT = 65536, 8, 64, 112
NO_REASON = "the message does not name the reason"
SQLITE_CODES = [10 | 3 << 8, 13, 7, 5]  # IOERR_WRITE, FULL, NOMEM, BUSY
TIMEOUT = 300  # seconds; only against a hang
BAD_WORDS = re.compile(rb"Sanitizer|runtime error:|corrupted|double free|free\(\)|malloc\(\)|\(null\)|"
                       rb"not an error|: Success|assert")
# What a message says of each reason.
REASONS = {"malloc": r"memory", "mmap": r"memory|map",
           "open": r"Too many open files|descriptors|readonly|unable to open",
           "write": r"No space|full|Input/output", "fallocate": r"No space|full|room",
           "clone": r"temporarily unavailable|cannot start", "sync": r"Input/output|I/O",
           "name": r"Input/output|I/O", "read": r"Input/output|I/O|damaged", "stat": r"Permission|could not be read",
           "sqlite": r"I/O|Input/output|full|memory|locked|busy|space"}


class Place:
    def __init__(self, raw):
        (self.key, self.count, self.role, self.kind, frames, what) = struct.unpack_from("<QIIII24s", raw)
        self.role, self.kind = ROLES[self.role], KINDS[self.kind]
        self.what = what.rstrip(b"\0").decode()
        self.at = struct.unpack_from("<%dQ" % FRAMES, raw, 48)[:frames]


class Point:
    """One call that fails: a place, its `first` call, or all from it on (`lasting`)."""

    def __init__(self, names, place, first, lasting):
        self.place, self.first, self.lasting = place, first, lasting
        which = "lasting" if lasting else "first" if first == 1 else "later"
        self.digest = hashlib.sha256(("%s %s" % (which, names.stack(place))).encode()).digest()
        self.error = SQLITE_CODES[self.digest[0] % len(SQLITE_CODES)] if place.kind == "sqlite" else 0

    def __str__(self):
        return "%016x:%d%s" % (self.place.key, self.first, "+" if self.lasting else "")


class Table:
    def __init__(self, path):
        self.path = path
        with open(path, "wb") as file:
            file.truncate(HEADER + SLOTS * SLOT)

    def arm(self, point, depth):
        with open(self.path, "r+b") as file:
            file.write(struct.pack("<QIIIIIIQI", point.place.key, point.first, int(point.lasting), point.error,
                                   depth, 0, 0, point.place.at[0], KINDS.index(point.place.kind))
                       if point else struct.pack("<QIIIIIIQI", 0, 0, 0, 0, depth, 0, 0, 0, 0))

    def fired(self):
        with open(self.path, "rb") as file:
            return struct.unpack_from("<QIIIIII", file.read(HEADER))[5]

    def places(self):
        found = []
        with open(self.path, "rb") as file:
            file.seek(HEADER)
            data = file.read()
        for i in range(SLOTS):
            if data[i * SLOT:i * SLOT + 8] != bytes(8):
                found.append(Place(data[i * SLOT:(i + 1) * SLOT]))
        return sorted(found, key=lambda place: place.key)


class Names:
    """Functions of places, for people: by nm and a bisection."""

    def __init__(self, build):
        self.files = {1: "bin/perfkit", 2: "lib/libperfkit_collector.so", 5: "bin/perfkit_symbolizer"}
        self.build, self.tables = build, {}

    def name(self, at):
        import bisect
        module, offset = at >> 48, at & (1 << 48) - 1
        if module not in self.files:
            return MODULES[module]
        if module not in self.tables:
            lines = subprocess.run(["nm", os.path.join(self.build, self.files[module])],
                                   stdout=subprocess.PIPE, text=True).stdout.split("\n")
            rows = sorted((int(line.split()[0], 16), line.split()[2]) for line in lines
                          if re.match(r"[0-9a-f]+ [tT] ", line))
            self.tables[module] = ([row[0] for row in rows], [row[1] for row in rows])
        starts, names = self.tables[module]
        i = bisect.bisect_right(starts, offset) - 1
        return names[i].split(".")[0] if i >= 0 else "?"  # not: .part.0, .cold

    def stack(self, place):
        return "%s %s in %s" % (place.role, place.what, " < ".join(self.name(at) for at in place.at))


class Outcome:
    def __init__(self, status, out, err, files):
        self.status, self.out, self.err, self.files = status, out, err, files


class Session:
    def __init__(self, build, scratch, library):
        self.build, self.scratch, self.library = build, scratch, library
        self.perfkit = os.path.join(build, "bin", "perfkit")
        self.inputs = os.path.join(scratch, "inputs")
        os.makedirs(self.inputs)
        program = [os.path.join(build, "targets", "e2e", "records"), "--opencl", "1", "--count", "1"]
        self.opencl = "0" if subprocess.run(program, stderr=subprocess.DEVNULL).returncode else "1"
        self.names = Names(build)
        self.base = {k: v for k, v in os.environ.items()
                     if not k.startswith("PERFKIT_") and k != "LD_PRELOAD"}
        self.base.update(NO_COLOR="1", LC_ALL="C", COLUMNS="100", HOME=self.inputs,
                         GLIBC_TUNABLES="glibc.malloc.perturb=165")

    def run(self, line, folder, table=None, timeout=TIMEOUT):
        environment = dict(self.base, TMPDIR=os.path.join(folder, "tmp"))
        os.makedirs(environment["TMPDIR"], exist_ok=True)
        if table:
            environment.update(LD_PRELOAD=self.library, TORTURE_TABLE=table.path)
        process = subprocess.Popen(line, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            out, err = process.communicate(timeout=timeout)
            status = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            status = "hangs"
        return status, out, err

    def folder(self, name):
        path = os.path.join(self.scratch, name)
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        return path


def digest(path):
    if os.path.isdir(path):
        return {name: digest(os.path.join(path, name)) for name in sorted(os.listdir(path))}
    if os.path.islink(path) or not os.path.isfile(path):
        return "special"
    with open(path, "rb") as file:
        data = file.read()
    if data.startswith(b"SQLite format 3\0"):
        return dump(path)
    data = re.sub(rb"20\d\d-\d\d-\d\d.\d\d:\d\d(:\d\d)?", b"DATE", data)
    return hashlib.sha256(data).hexdigest()


VOLATILE = re.compile(r"\b(1[789]\d{8,17}|20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?)\b")


def dump(path):
    """What stands in a database, less times of day."""
    try:
        db = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
        db.text_factory = bytes
        rows = hashlib.sha256()
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1"):
            table = table.decode()
            for row in db.execute('SELECT * FROM "%s"' % table):
                rows.update(VOLATILE.sub("TIME", table + repr(row)).encode())
        db.close()
        return rows.hexdigest()
    except sqlite3.Error as error:
        return "broken: %s" % error


def leftovers(folder):
    """Files of a working folder, but what stands in its tmp by name alone."""
    found = {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name == "tmp":
            for inner in os.listdir(path):
                found["tmp/" + re.sub(r"[A-Za-z0-9]{6}$", "XXXXXX", inner)] = "temporary"
        elif name != "table":
            found[name] = digest(path)
    return found


class Reader:
    """A command that reads captures and writes to standard output or into files."""
    depth = 5
    share = 4

    def __init__(self, name, words, before=None, normal=None):
        self.name, self.words, self.before, self.normal = name, words, before, normal

    def prepare(self, session, folder):
        for name in os.listdir(session.inputs):
            if name.endswith((".sqlite", ".json")):
                os.symlink(os.path.join(session.inputs, name), os.path.join(folder, name))
        if self.before:
            self.before(session, folder)

    def start(self, session, folder, table):
        self.prepare(session, folder)
        before = set(os.listdir(folder))
        old = leftovers(folder)
        status, out, err = session.run([session.perfkit, *self.words], folder, table)
        files = {name: what for name, what in leftovers(folder).items()
                 if name not in before or old.get(name) != what}
        if self.normal:
            out = self.normal(out)
        return Outcome(status, out, err, files)

    def check(self, session, folder, table, wanted, point):
        """Nothing crashes or hangs. Status 0: every output is the whole output, or standard error says
        what is missing. Another status: standard error names the reason, and no file is left that is not
        whole."""
        outcome = self.start(session, folder, table)
        faults = general_faults(outcome)
        if outcome.status == wanted.status:
            same = outcome.out == wanted.out and outcome.files == wanted.files
            # What the system does not say of a file or of a process is n/a or null.
            unknown = point.place.kind in ("stat", "open") and re.search(b"n/a|null", outcome.out)
            told = outcome.err.strip() or unknown or re.search(REASONS[point.place.kind].encode(), outcome.out)
            if not same and not told:
                faults.append("status %s, in silence, with another output: %s" %
                              (outcome.status, difference(outcome, wanted)))
            return outcome, faults
        lines = outcome.err.decode(errors="replace")
        if not re.search(r"^perfkit( [a-z]+)?: .", lines, re.M):
            faults.append("status %s and no message" % outcome.status)
        elif (outcome.status != 3 and point.place.role == "perfkit" and
              not re.search(REASONS[point.place.kind], lines, re.I)):
            faults.append(NO_REASON)
        for name, what in outcome.files.items():
            if wanted.files.get(name) != what and not self.may_stay(name, outcome, point):
                faults.append("left behind: %s" % name)
        return outcome, faults


    @staticmethod
    def may_stay(name, outcome, point):
        """What cannot be removed; what is removed by a list that there is no memory for; what merge
        writes of a damaged file and says so (status 3); and the journal by which SQLite will restore a file
        of baselines that it cannot read any more."""
        if name == "base-journal" and point.lasting and point.place.kind == "read":
            return True
        temporary = re.search(r"\.[A-Za-z0-9]{6}(-wal|-shm|-journal)?$", name)
        return point.place.kind == "name" or (temporary and point.lasting) or outcome.status == 3


READ_BACK = "|cannot read back|is the folder writable"  # of rows that SQLite could not give


def general_faults(outcome):
    faults = []
    if outcome.status == "hangs":
        faults.append("hangs")
    elif outcome.status < 0:
        faults.append("dies by signal %d" % -outcome.status)
    if BAD_WORDS.search(outcome.err):
        faults.append("says %s" % BAD_WORDS.search(outcome.err).group().decode())
    return faults


def difference(outcome, wanted):
    if outcome.files != wanted.files:
        return "files %s" % sorted(name for name in {**outcome.files, **wanted.files}
                                   if outcome.files.get(name) != wanted.files.get(name))
    a, b = outcome.out, wanted.out
    if a == b[:len(a)]:
        return "%d of %d bytes" % (len(a), len(b))
    i = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return "byte %d: %r" % (i, a[max(0, i - 30):i + 60])


def no_times(out):
    out = re.sub(rb'("(look_ns|own_cpu|own_bytes)":)[0-9.]+', rb"\1N", out)
    return VOLATILE.sub("TIME", out.decode(errors="surrogateescape")).encode(errors="surrogateescape")


def saved_baseline(session, folder):
    shutil.copy(os.path.join(session.inputs, "baselines"), os.path.join(folder, "base"))


class Run:
    """`perfkit run` of a program that counts what it does. Whatever fails, in perfkit or in the collector:
    the program's output and status are those without perfkit, or it was not started and perfkit says why;
    what it counted stands in the capture, recorded or counted as lost; or `perfkit recover` finishes the
    capture; or the capture is not `complete` and says why."""
    depth = 4
    share = 1
    name = "run"
    program = ["--nvtx", "2", "--opencl", "OPENCL", "--count", "300", "--status", "17", "--child", "fork",
               "--child-end", "_exit"]
    options = ["--stacks"]

    def command(self, session, folder):
        with open(os.path.join(folder, "progress"), "wb") as file:
            file.truncate(4096)
        words = [session.opencl if word == "OPENCL" else word for word in self.program]
        return [os.path.join(session.build, "targets", "e2e", "records"), *words, "--progress",
                os.path.join(folder, "progress")]

    def start(self, session, folder, table):
        command = self.command(session, folder)
        os.mkdir(os.path.join(folder, "spool"))
        if not table:
            return Outcome(*session.run(command, folder), {})
        line = [session.perfkit, "run", "-o", "run.sqlite", "--spool-dir=" + os.path.join(folder, "spool"),
                *self.options, "--", *command]
        return Outcome(*session.run(line, folder, table), {})

    def reference(self, session, folder):
        return self.start(session, folder, None)

    def check(self, session, folder, table, wanted, point):
        outcome = self.start(session, folder, table)
        faults = general_faults(outcome)
        theirs = b"".join(line for line in outcome.err.splitlines(True) if not line.startswith(b"perfkit "))
        ours = b"".join(line for line in outcome.err.splitlines(True) if line.startswith(b"perfkit "))
        done = progress_of(os.path.join(folder, "progress"))
        if not sum(done) and outcome.status != wanted.status:  # not started
            if outcome.out or theirs:
                faults.append("not started, with output %r %r" % (outcome.out, theirs))
            if outcome.status not in (125, 126, 127):
                faults.append("not started, status %s" % outcome.status)
            if not re.search(REASONS[point.place.kind], ours.decode(errors="replace")):
                faults.append(NO_REASON)
            left = [name for name in leftovers(folder) if name.startswith(("run.sqlite", "tmp/"))]
            if point.place.kind != "name" and (left or os.listdir(os.path.join(folder, "spool"))):
                faults.append("left behind: %s" % (left + os.listdir(os.path.join(folder, "spool"))))
            return outcome, faults
        if (outcome.status, outcome.out, theirs) != (wanted.status, wanted.out, wanted.err):
            faults.append("the program: %s %r %r" % (outcome.status, outcome.out, theirs))
        faults += self.check_capture(session, folder, done, ours, point)
        return outcome, faults

    def check_capture(self, session, folder, done, ours, point):
        faults = []
        spools = os.listdir(os.path.join(folder, "spool"))
        capture = os.path.join(folder, "run.sqlite")
        recovered = b""
        if spools and (b"recover" in ours or not os.path.exists(capture)):
            if b"recover" not in ours:
                faults.append("a spool folder is left and nothing says so")
            status, _, recovered = session.run([session.perfkit, "recover",
                                                os.path.join(folder, "spool", spools[0])], folder)
            if status != 0:
                return faults + ["recover: status %s: %r" % (status, recovered)]
        elif spools and point.place.kind not in ("name", "open"):
            faults.append("a spool folder is left beside the capture")
        if not os.path.exists(capture):
            return faults + ["no capture: %s" % sorted(os.listdir(folder))]
        status, out, err = session.run([session.perfkit, "report", "--json", "run.sqlite"], folder)
        if status != 0:
            return faults + ["report: status %s: %r" % (status, err)]
        complete = json.loads(out)["trust"]["complete"]
        db = sqlite3.connect("file:%s?mode=ro" % capture, uri=True)
        try:
            if db.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
                faults.append("the capture is damaged")
            marks, distinct = db.execute(
                "SELECT count(*), count(DISTINCT payload) FROM marker JOIN string ON string.id = name "
                "WHERE string.value = 'record'").fetchone()
            fills, distinct_fills = db.execute(
                "SELECT count(*), count(DISTINCT value) FROM memset").fetchone()
            dropped = dict(db.execute("SELECT subject, sum(value) FROM capture_health WHERE item IN "
                                      "('dropped', 'backend_dropped') GROUP BY 1"))
            notes = db.execute("SELECT count(*) FROM capture_health WHERE note IS NOT NULL AND "
                               "subject <> 'end'").fetchone()[0]
        finally:
            db.close()
        if marks != distinct or fills != distinct_fills:
            faults.append("recorded twice: %d marks of %d, %d fills of %d" % (marks, distinct, fills,
                                                                             distinct_fills))
        lacks = sum(done) - done[2] - marks, done[2] - fills
        counted = dropped.get("range", 0), dropped.get("memset", 0)
        if lacks != counted:
            text = "done %d marks %d fills, recorded %d %d, dropped %d %d; %d notes" % (
                sum(done) - done[2], done[2], marks, fills, *counted, notes)
            if complete or not notes:
                faults.append(("complete" if complete else "incomplete") + " without saying why: " + text)
        elif complete and lacks != (0, 0):
            faults.append("complete, and records are missing: %s" % (lacks,))
        return faults


def progress_of(path):
    with open(path, "rb") as file:
        return struct.unpack_from("<64Q", file.read(512))


class RunPlain(Run):
    """Without a child and stacks; the helper thread is started by the first mark."""
    name = "run nvtx"
    share = 2
    program = ["--nvtx", "2", "--opencl", "0", "--count", "5000", "--status", "17"]
    options = []


class RunRing(RunPlain):
    """With --ring, of which a copy is kept while the program runs: it is whole, or it is not there."""
    name = "run --ring"
    options = ["--ring=6s"]  # a copy half a second after the signal

    def command(self, session, folder):
        return ["sh", "-c", 'kill -USR2 $PPID; "$@"; status=$?; sleep 0.8; exit $status', "sh",
                *super().command(session, folder)]

    def start(self, session, folder, table):
        if table:
            return super().start(session, folder, table)
        os.mkdir(os.path.join(folder, "spool"))  # no perfkit: the signal would go elsewhere
        return Outcome(*session.run(RunPlain.command(self, session, folder), folder), {})

    def check_capture(self, session, folder, done, ours, point):
        faults = super().check_capture(session, folder, done, ours, point)
        for name in os.listdir(folder):
            if name.endswith((".part", ".new")) and point.place.what != "unlink":
                faults.append("left behind: " + name)
            if "-keep-" not in name or not name.endswith(".sqlite"):
                continue
            status, out, err = session.run([session.perfkit, "report", "--json", name], folder)
            if status != 0 or json.loads(out)["capture"]["state"] != "kept":
                faults.append("%s is not whole: %s, %r" % (name, status, err))
        return faults


class Recover(Run):
    """`perfkit recover` of a run whose perfkit was killed at its end."""
    name = "recover"
    depth = 4
    share = 2

    def start(self, session, folder, table):
        command = self.command(session, folder)
        os.mkdir(os.path.join(folder, "spool"))
        program = ["--nvtx", "2", "--opencl", session.opencl, "--count", "300"]
        session.run([session.perfkit, "run", "-q", "-o", "run.sqlite", "--stacks",
                     "--spool-dir=" + os.path.join(folder, "spool"), "--", "sh", "-c",
                     '"$@"; kill -9 $PPID', "sh", command[0], *program, *command[-2:]], folder)
        spool = os.path.join(folder, "spool", os.listdir(os.path.join(folder, "spool"))[0])
        return Outcome(*session.run([session.perfkit, "recover", spool], folder, table), {})

    def check(self, session, folder, table, wanted, point):
        outcome = self.start(session, folder, table)
        faults = general_faults(outcome)
        lines = outcome.err.decode(errors="replace")
        if outcome.status != wanted.status and not re.search(REASONS[point.place.kind], lines, re.I):
            faults.append(NO_REASON)
        again = b"recover" if outcome.status else b""
        return outcome, faults + self.check_capture(
            session, folder, progress_of(os.path.join(folder, "progress")), again, point)


COMMANDS = [
    Reader("report", ["report", "a.sqlite"]),
    Reader("report --all", ["report", "--all", "a.sqlite"]),
    Reader("report --json", ["report", "--json", "a.sqlite"]),
    Reader("report --html", ["report", "--html", "page.html", "a.sqlite"]),
    Reader("report --html of two", ["report", "--html", "page.html", "b.sqlite", "a.sqlite"]),
    Reader("report files", ["report", "--chrome-trace", "t.json.gz", "--perfetto", "t.pftrace", "--pprof",
                            "p.pb.gz", "--otlp", "o.otlp", "--speedscope", "s.json", "--flamegraph", "f.folded",
                            "--prometheus", "m.prom", "a.sqlite"]),
    Reader("report --stats", ["report", "--stats", "cuda_gpu_kern_sum,nvtx_sum", "--format", "csv",
                              "a.sqlite"]),
    Reader("report --memory", ["report", "--memory", "a.sqlite"]),
    Reader("report --ranks", ["report", "--ranks", "ranks.sqlite"]),
    Reader("top --once", ["top", "--once", "a.sqlite"], normal=no_times),
    Reader("top --json", ["top", "--json", "-n", "1", "--view",
                           "kernels,streams,transfers,memory,ranges,processes,findings,host", "a.sqlite"],
           normal=no_times),
    Reader("diff", ["diff", "a.sqlite", "b.sqlite"]),
    Reader("gate", ["gate", "--baselines", "base", "-b", "main", "--junit", "j.xml", "a.sqlite"],
           before=saved_baseline),
    Reader("baseline save", ["baseline", "--baselines", "base", "save", "main", "b.sqlite"],
           before=saved_baseline),
    Reader("export nsys", ["export", "a.sqlite", "--format", "nsys", "nsys.out"]),
    Reader("export parquet", ["export", "a.sqlite", "--format", "parquet", "parquet.out"]),
    Reader("import", ["import", "nsys.sqlite", "-o", "imported.out"]),
    Reader("import trace", ["import", "trace.json", "-o", "imported.out"]),
    Reader("merge", ["merge", "a.sqlite", "b.sqlite", "-o", "merged.out"]),
    Recover(),
    RunPlain(),
    RunRing(),
    Run(),
]


def make_inputs(session):
    """Two captures of a small program, one of ranks, and what is made of them."""
    progress = os.path.join(session.inputs, "progress")
    program = os.path.join(session.build, "targets", "e2e", "records")
    for name in ("a", "b"):
        with open(progress, "wb") as file:
            file.truncate(4096)
        must(session, ["run", "-q", "-o", name + ".sqlite", "--stacks", "--", program, "--nvtx", "2",
                       "--opencl", session.opencl, "--count", "50", "--progress", progress])
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "report")
    tool = os.path.join(session.build, "bin", "report_tool")
    for name in ("ranks", "more", "normal"):
        subprocess.run([tool, "make", os.path.join(source, name + ".sql"), name + ".sqlite"],
                       cwd=session.inputs, check=True)
    must(session, ["export", "a.sqlite", "--format", "nsys", "nsys.sqlite"])
    must(session, ["report", "--chrome-trace", "trace.json", "a.sqlite"])
    must(session, ["baseline", "-q", "--baselines", "baselines", "save", "main", "a.sqlite"])


def must(session, words):
    status, _, err = session.run([session.perfkit, *words], session.inputs)
    if status != 0:
        sys.exit("torture: perfkit %s: status %s: %s" % (" ".join(words), status, err.decode()))


def points_of(names, places):
    for place in places:
        for first in sorted({1, min(2, place.count), place.count}):
            yield Point(names, place, first, False)
        yield Point(names, place, 1, True)


def some_of(command, points, how_many):
    """Of each kind the same number; when that is one, a command's share of the kinds, and its neighbours in
    the list have others.
    Chosen by the names of the functions above the call, so that another build has the same ones."""
    kept = {}
    for point in sorted(points, key=lambda point: (point.digest, point.place.at, point.first)):
        other = (COMMANDS.index(command) + KINDS.index(point.place.kind)) % command.share
        if other and how_many == 1:
            continue
        rows = kept.setdefault((point.place.role, point.place.kind), [])
        if len(rows) < how_many:
            rows.append(point)
    return [point for rows in kept.values() for point in rows]


def torture(session, command, arguments, pool):
    folder = session.folder("first")
    table = Table(os.path.join(session.scratch, "table-first"))
    table.arm(None, command.depth)
    wanted = command.start(session, folder, table)
    if hasattr(command, "reference") and command.name != "recover":
        wanted = command.reference(session, session.folder("reference"))
    places = [place for place in table.places()
              if not arguments.kind or place.kind in arguments.kind.split(",")]
    points = list(points_of(session.names, places))
    if arguments.point:
        points = [point for point in points if str(point) == arguments.point]
    elif arguments.first:
        points = [point for point in points if point.first == 1 and not point.lasting]
    elif not arguments.all:
        points = some_of(command, points, arguments.some)
    if arguments.list:
        for point in points:
            print(point, "%d calls" % point.place.count, session.names.stack(point.place))
        print("torture: %s: %d places, %d points" % (command.name, len(places), len(points)))
        return 0, 0, 0
    calls = sum(place.count for place in places)
    done = missed = bad = 0

    def one(point):
        name = "%s" % str(point).replace(":", "-")
        folder = session.folder(name)
        table = Table(os.path.join(session.scratch, "table-" + name))
        table.arm(point, command.depth)
        outcome, faults = command.check(session, folder, table, wanted, point)
        fired = table.fired()
        os.unlink(table.path)
        if not arguments.keep:
            shutil.rmtree(folder, ignore_errors=True)
        return point, outcome, faults, fired

    for point, outcome, faults, fired in pool.map(one, points):
        done += 1
        missed += fired == 0
        if arguments.verbose or faults:
            print("%s %s %s%s: status %s: %s" % (
                "FAIL" if faults else "ok  ", command.name, point, "" if fired else " (not reached)",
                outcome.status, "; ".join(faults)))
            print("    " + session.names.stack(point.place))
            for line in outcome.err.decode(errors="replace").strip().split("\n")[-4:]:
                print("    | " + line[:300])
        bad += bool(faults)
    print("torture: %s: %d calls from %d places, %d points%s: %d passed, %d failed" % (
        command.name, calls, len(places), done, ", %d not reached" % missed if missed else "", done - bad,
        bad), flush=True)
    return done, missed, bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--library")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--some", type=int, default=2)
    parser.add_argument("--command")
    parser.add_argument("--kind")
    parser.add_argument("--point")
    parser.add_argument("--jobs", type=int, default=2 * os.cpu_count())  # half of a run is waiting
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--verbose", "-v", action="store_true")
    arguments = parser.parse_args()
    build = os.path.abspath(arguments.build)
    library = arguments.library or os.path.join(build, "lib", "libtorture_fail.so")
    scratch = tempfile.mkdtemp(prefix="perfkit-torture-")
    try:
        session = Session(build, scratch, library)
        make_inputs(session)
        total = [0, 0, 0]
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for command in COMMANDS:
                if arguments.command and command.name not in arguments.command.split(","):
                    continue
                for i, n in enumerate(torture(session, command, arguments, pool)):
                    total[i] += n
        print("torture: %d points, %d not reached, %d failed" % tuple(total))
    finally:
        if not arguments.keep:
            shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(1 if total[2] else 0)


if __name__ == "__main__":
    main()
