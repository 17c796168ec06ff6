"""Programs that are hard on what records them, each with its own account of what it called
(targets/attack.c), held against the capture. What the account has and neither the capture nor its
trust block is missing uncounted. Used by test_attacks.py and by bench/attacks.

A row of ATTACKS: its name -> a function that gets the open run (Run) and returns nothing. It starts
the program under perfkit by run.record(), and adds what differs to run.missing, run.uncounted,
run.differences."""
import collections
import os
import sqlite3
import subprocess
import tempfile

import e2e

SLOTS, CALLS = 64, 100000
STATUS = 7
PATIENCE = 300  # seconds: then it hangs
# A record of the trust block that says of a call that it is not there.
LOSSES = ("dropped", "outstanding", "remainder")


class Run:
    """One run of one attack: a folder of its own, the capture, and what was found."""

    def __init__(self, folder, milliseconds):
        self.folder, self.milliseconds = folder, milliseconds
        self.hangs = 0
        self.calls = self.missing = self.uncounted = 0
        self.differences = []  # of the program, or of a capture that is not what it should be

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, command, **more):
        """The status and output of a command, or None when it hangs."""
        process = subprocess.Popen([str(word) for word in command], cwd=self.folder,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True,
                                   env=more.pop("env", e2e.clean_environment()), **more)
        try:
            out, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            self.hangs += 1
            return None
        return process.returncode, out

    def record(self, command, status=STATUS, options=(), **more):
        """The open capture of a command, or None."""
        capture = self.path("capture.sqlite")
        ended = self.start([e2e.PERFKIT, "run", "--quiet", "-o", capture, *options, "--", *command],
                           **more)
        if ended is None:
            return None
        if ended != (status, b""):
            self.differences.append("status %d, said %r" % ended)
        if not os.path.exists(capture):
            self.differences.append("no capture")
            return None
        db = sqlite3.connect("file:%s?mode=ro" % capture, uri=True)
        db.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        if db.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            self.differences.append("damaged capture")
        return db

    # ---- targets/attack.c ---------------------------------------------------------------------

    def account(self, how, before=(), **environment):
        """Record an attack of targets/attack.c, started by the command `before`, and hold its account
        against the capture."""
        path = self.path("account")
        with open(path, "wb") as file:
            file.truncate(SLOTS * CALLS)
        db = self.record([*before, e2e.target("attack"), how, path, self.milliseconds],
                         env=e2e.clean_environment(**environment))
        if db is None:
            return
        with open(path, "rb") as file:
            state = file.read()
        recorded = collections.Counter(db.execute(
            "SELECT (payload >> 32) * ? + (payload & 0xffffffff) FROM marker UNION ALL "
            "SELECT ((value & 0xffffffff) >> 24) * ? + (value & 0xffffff) FROM memset",
            (CALLS, CALLS)).fetchall())
        returned = [at for at, byte in enumerate(state) if byte == 2]
        missing = sum((at,) not in recorded for at in returned)
        invented = sum(state[at] == 0 for at, in recorded)
        twice = sum(count > 1 for count in recorded.values())
        if not returned:
            self.differences.append("the program did nothing")
        if invented or twice:
            self.differences.append("%d records of no call, %d twice" % (invented, twice))
        self.calls += len(returned)
        self.lost(db, missing)
        db.close()

    def lost(self, db, missing):
        """So many calls are not in the capture: does the trust block count them?"""
        counted = db.execute(
            "SELECT ifnull(sum(value), 0) FROM capture_health WHERE subject IN ('launch', "
            "'transfer', 'memset', 'range') AND item IN (?, ?, ?)", LOSSES).fetchone()[0]
        if db.execute("SELECT 1 FROM capture_health WHERE item LIKE '% refused'").fetchone():
            counted = missing  # a collector or a process had no way in: all of it is said to be missing
        self.missing += missing
        self.uncounted += max(0, missing - counted)


def _account(how):
    # No real driver bears a jump out of its functions.
    own = {"OCL_ICD_VENDORS": e2e.target("icd.so")} if how in JUMPED_OPENCL else {}
    return lambda run: run.account(how, **own)


NVTX = ("jump-alone", "jump-marks", "jump-names", "jump-depths", "jump-altstack", "handler-marks",
        "handler-marks-jump", "cancel-marks", "cancel-names", "fork", "exit-handler", "marks-return",
        "outlive-main", "overflow", "thread-ends", "main-ends", "vfork",
        "handlers-in-handlers", "handler-exit")
OPENCL = ("fills-return", "fills-exit", "fills-_exit", "fills-quick_exit", "fills-exec")
JUMPED_OPENCL = ("jump-fills", "cancel-fills", "handler-_exit")
# What starts the program, and takes the collector's way in, its room or its descriptors.
STARTED = {
    "layers-set": ["env", "OPENCL_LAYERS=/x.so"],
    "nvtx-path-set": ["env", "NVTX_INJECTION64_PATH=/x.so"],
    "environment-cleared": ["env", "-i"],
    "other-root": ["chroot", "/"],
    "other-pids": ["unshare", "-pf", "--kill-child"],
    "spool-hidden": ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none "${PERFKIT_DIR:-/dev/shm/none}"; '
                     'exec "$@"', "sh"],
    "stopped": ["sh", "-c", 'main=$$; (exec 2>/dev/null; for i in 1 2 3; do sleep 0.02; kill -STOP '
                '$main; sleep 0.02; kill -CONT $main; done) & exec "$@"', "sh"],
    "few-descriptors": ["sh", "-c", 'ulimit -n 5; exec "$@"', "sh"],
    "no-file-room": ["sh", "-c", 'ulimit -f 2048; exec "$@"', "sh"],
    "little-space": ["sh", "-c", 'ulimit -v 200000; exec "$@"', "sh"],
    "little-data": ["sh", "-c", 'ulimit -s 8192; ulimit -d 40000; exec "$@"', "sh"],
    "nothing-open": ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"],
    "no-permissions": ["sh", "-c", 'umask 777; exec "$@"', "sh"],
}
ATTACKS = {name: _account(name) for name in NVTX + OPENCL + JUMPED_OPENCL}
ATTACKS.update({name: lambda run, before=before: run.account("marks-return", before)
                for name, before in STARTED.items()})


def possible(name):
    if name in STARTED and STARTED[name][0] in ("unshare", "chroot"):
        return subprocess.run([*STARTED[name], "true"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    return name not in OPENCL + JUMPED_OPENCL or e2e.has_opencl()


def run(name, milliseconds=100):
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="perfkit-attack-", dir=base) as folder:
        one = Run(folder, milliseconds)
        ATTACKS[name](one)
        return one
