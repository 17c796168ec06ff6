"""One process of a benchmark that takes turns (turns.h): started, asked for rounds, ended."""
import json
import os
import select
import signal
import subprocess
import sys
import time


class Failed(Exception):
    pass


class Player:
    """A program under one configuration. Everything it says comes as lines of JSON by a FIFO, for
    what it prints belongs to the profiler around it, too."""

    def __init__(self, name, command, environment, folder):
        self.name, self.log = name, os.path.join(folder, "log")
        self.pidfd, self.pid, self.end, self.buffer = None, None, None, b""
        turns = os.path.join(folder, "turns")
        for end in (".go", ".out"):
            os.mkfifo(turns + end)
        self.go = os.open(turns + ".go", os.O_RDWR | os.O_CLOEXEC)
        self.out = os.open(turns + ".out", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                command, env={**os.environ, **environment, "BENCH_TURNS": turns}, cwd=folder,
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True)

    def said(self):
        """The end of what the process printed, for messages."""
        try:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                return " | ".join(log.read().strip().splitlines()[-3:])[-400:]
        except OSError:
            return ""

    def read(self, seconds):
        """The next line, decoded."""
        until = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0:
                raise Failed(f"said nothing for {seconds:.0f} s")
            if select.select([self.out], [], [], min(left, 0.2))[0]:
                self.buffer += os.read(self.out, 65536)
            elif self.process.poll() is not None and not select.select([self.out], [], [], 0)[0]:
                raise Failed(f"ended with {self.process.returncode}: {self.said()}")
        line, self.buffer = self.buffer.split(b"\n", 1)
        try:
            return json.loads(line)
        except ValueError:
            raise Failed(f"said {line[:100]!r}") from None

    def ready(self, seconds):
        self.pid = self.read(seconds).get("pid")
        try:
            self.pidfd = os.pidfd_open(self.pid)
        except (AttributeError, OSError, TypeError):
            pass  # only the time of the exit is then not known

    def round(self, seconds):
        """What the program says of a round; `processors`: how many it and the profiler around it kept busy."""
        begun, used = time.monotonic(), self.processor_s()
        os.write(self.go, b"g")
        said = self.read(seconds)
        return {**said, "processors": (self.processor_s() - used) / (time.monotonic() - begun)}

    def processor_s(self):
        """Processor time so far. The clock of a process, by its id: clock_getcpuclockid(3)."""
        return sum(time.clock_gettime(~pid << 3 | 2) for pid in {self.pid or self.process.pid, self.process.pid})

    def quit(self):
        """Ask the program to end; `finish` waits for it."""
        os.write(self.go, b"q")

    def finish(self, seconds):
        """Wait for the end after quit(). Returns (the program's last line, seconds from its exit to
        the end of the profiler around it, or None)."""
        self.end = self.read(seconds)
        gone = None
        if self.pidfd is not None:
            if not select.select([self.pidfd], [], [], seconds)[0]:
                raise Failed(f"did not exit within {seconds:.0f} s")
            gone = time.monotonic()
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failed(f"did not end within {seconds:.0f} s") from None
        if status:
            raise Failed(f"ended with {status}: {self.said()}")
        return self.end, (time.monotonic() - gone if gone is not None else None)

    def close(self):
        """Whatever is left of it goes."""
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
        for descriptor in (self.go, self.out, self.pidfd):
            if descriptor is not None:
                os.close(descriptor)
        self.go = self.out = self.pidfd = None


def value(line):
    """The figure of a round and its unit: ns_per_X or ms_per_X."""
    for key, number in line.items():
        if key.startswith(("ns_per_", "ms_per_")):
            return number, key.replace("_per_", "/")
    raise Failed(f"no figure in {line}")


def play(one_round, end):
    """The program's side: one_round() gives the line of a round, end() what its last one says. By
    itself, without one who asks: three rounds."""
    turns = os.environ.get("BENCH_TURNS")
    out = open(turns + ".out", "w", encoding="utf-8") if turns else sys.stdout
    go = open(turns + ".go", "rb", buffering=0) if turns else None

    def say(line):
        print(json.dumps(line), file=out, flush=True)

    say({"ready": True, "pid": os.getpid()})
    rounds = 0
    while go.read(1) == b"g" if go else rounds < 3:
        say({"round": rounds, **one_round()})
        rounds += 1
    with open("/proc/self/status", encoding="ascii") as status:
        peak = next((int(line.split()[1]) for line in status if line.startswith("VmHWM:")), 0)
    say({"end": True, "pid": os.getpid(), "peak_kib": peak, **end(rounds),
         "mono_ns": time.monotonic_ns()})
