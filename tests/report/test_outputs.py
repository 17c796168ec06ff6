#!/usr/bin/env python3
"""What holds for every output of `perfkit report`: hostile names of kernels, ranges, processes, devices and
files stay text, and what cannot be written is an error that leaves nothing behind. A new output needs one
row of OUTPUTS: the test fails for options of `perfkit report --help` that have none.

    test_outputs.py PERFKIT REPORT_TOOL SOURCE_FOLDER WORK_FOLDER
"""
import csv
import fcntl
import gzip
import html.parser
import io
import json
import os
import pty
import re
import resource
import shutil
import sqlite3
import struct
import subprocess
import sys
import termios

perfkit, tool, source, work = sys.argv[1:]
shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)
os.chdir(work)
CAPTURE = 'a "b" <script>1; <img src=x> $(touch HACKED) \u202egpj.sqlite'
HAVE_GNUPLOT = shutil.which("gnuplot") is not None
TURNING = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029"
ENVIRONMENT = {**os.environ, "NO_COLOR": "1", "LC_ALL": "C"}

# ---- what an output may hold -----------------------------------------------------------------------


def characters(text, allowed="\n", turning=False):
    found = sorted({c for c in text if (ord(c) < 32 and c not in allowed) or 127 <= ord(c) < 160 or
                    (not turning and c in TURNING)})
    assert not found, found


def terminal(data):
    """Made for a terminal: nothing moves its cursor or turns its text around."""
    text = data.decode("utf-8")
    characters(text)
    return text


def strict(pairs):
    assert len({key for key, _ in pairs}) == len(pairs), pairs
    return dict(pairs)


def refuse(constant):
    raise ValueError(constant)


def json_data(data):
    """Names that turn text around are the reader's business in a data format."""
    text = data.decode("utf-8")
    characters(text, turning=True)
    json.loads(text, object_pairs_hook=strict, parse_constant=refuse)
    return json.dumps(json.loads(text), ensure_ascii=False)


def table(data):
    text = data.decode("utf-8")
    characters(text.replace("\r\n", "\n"))
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert rows
    return "\n".join(cell for row in rows for cell in row)


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.scripts, self.inside = [], [], [], False

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attributes]
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data


def page(data):
    text = data.decode("utf-8")
    parsed = Page()
    parsed.feed(text)
    assert "img" not in parsed.tags and not [a for a in parsed.attributes if a.startswith("on")]
    assert not [script for script in parsed.scripts if "<!--" in script]
    return text


def folded(data):
    text = terminal(data)
    for line in text.splitlines():
        assert re.fullmatch(r"[^;]+(;[^;]+)* [0-9]+", line), line
    return text


def compressed(data):
    assert gzip.decompress(data)
    return ""


def binary(data):
    assert data
    return ""


def prometheus(data):
    text = terminal(data)
    for line in text.splitlines():
        assert line.startswith("# ") or re.fullmatch(
            r'[a-z_]+(\{([A-Za-z_]+="([^"\\]|\\[\\"n])*",?)*\})? [0-9.]+', line), line
    return text


def script(data):
    text = terminal(data)
    assert not re.search(r"^(system|!|load|call|eval)", text, re.M) and text.count("'") % 2 == 0
    return text


def pictures(folder):
    found = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            data = file.read()
        assert data.startswith(b"<?xml" if name.endswith(".svg") else b"\x89PNG"), name
        if name.endswith(".svg"):
            text = data.decode("utf-8")
            assert "<script" not in text
            found.append(text)
    return "\n".join(found)


# option, ending, what reads it, a part of a hostile name as it must stand in there
OUTPUTS = {
    "--html": ("page.html", page, None),
    "--chrome-trace": ("trace.json", json_data, "window.broken=1"),
    "--perfetto": ("trace.pftrace", binary, None),
    "--flamegraph": ("stacks.folded", folded, "</script>"),
    "--speedscope": ("stacks.json", json_data, "</script>"),
    "--pprof": ("stacks.pb.gz", compressed, None),
    "--otlp": ("stacks.otlp", binary, None),
    "--prometheus": ("run.prom", prometheus, "bad\\\\xff"),
    "--roofline": ("roofline.gp", script, None),
    "--plots": ("figures", pictures, "__proto__"),
}
PRINTED = {
    ("--format", "text"): (terminal, "__proto__"),
    ("--all",): (terminal, "bad\\xff\\x80\\xc3bytes"),
    ("--format", "json"): (json_data, "window.broken=1"),
    ("--format", "csv"): (table, "</script>"),
    ("--format", "markdown"): (terminal, "bad\\\\xff"),
    ("--stats", "cuda_gpu_kern_sum"): (terminal, "bad\\xff\\x80\\xc3bytes"),
    ("--stats", "cuda_gpu_kern_sum,nvtx_sum", "--format", "json"): (json_data, "window.broken=1"),
    ("--stats", "cuda_gpu_kern_sum", "--format", "csv"): (table, "</script>"),
    ("--stats", "cuda_gpu_kern_sum", "--format", "markdown"): (terminal, "bad\\\\xff"),
}


def report(*words, **options):
    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([perfkit, "report", *words], stderr=subprocess.PIPE, check=False,
                          env=ENVIRONMENT, **options)


def capture_of(fixture, name):
    subprocess.run([tool, "make", os.path.join(source, fixture + ".sql"), "made.sqlite"], check=True)
    os.rename("made.sqlite", name)
    return name


# ---- every output is in the table ------------------------------------------------------------------
listed = set()
section = report("--help").stdout.decode().split("Into files:\n")[1].split("\n\n")[0]
for option in re.findall(r"^ +(?:-\w, )?(--[\w-]+) (?:OUT|FOLDER)", section, re.M):
    listed.add(option)
assert listed == set(OUTPUTS), "give each output a row: %s" % (listed ^ set(OUTPUTS))



def on_terminal(*words, rows=0, columns=0, keys=False, **environment):
    """What a terminal gets that changes nothing of it itself."""
    reading, terminal_end = pty.openpty()
    fcntl.ioctl(terminal_end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    settings = termios.tcgetattr(terminal_end)
    settings[1] &= ~termios.OPOST
    termios.tcsetattr(terminal_end, termios.TCSANOW, settings)
    with subprocess.Popen([perfkit, "report", *words], stdout=terminal_end, stderr=subprocess.DEVNULL,
                          stdin=terminal_end if keys else subprocess.DEVNULL, env={**ENVIRONMENT, **environment}) as process:
        os.close(terminal_end)
        got = b""
        try:
            while piece := os.read(reading, 65536):
                got += piece
        except OSError:  # how the end of a terminal reads
            pass
        os.close(reading)
    assert process.returncode == 0 and got, words
    return got


# ---- hostile names ---------------------------------------------------------------------------------
hostile = capture_of("hostile", CAPTURE)
roofs = capture_of("roofline", "roofs.sqlite")
for words, (read, part) in PRINTED.items():
    result = report(*words, "--top", "100", hostile)
    assert result.returncode == 0, (words, result.stderr)
    text = read(result.stdout)
    assert part in text, (words, part, text[:3000])
    shown = on_terminal(*words, "--top", "100", hostile).replace(b"\r\n", b"\n")
    characters(shown.decode("utf-8"), turning="json" in " ".join(words))
# Any text of a file may be one of these, not only what a program can name.
shutil.copy(hostile, "words.sqlite")
database = sqlite3.connect("words.sqlite")
escape = "\x1b]0;title\x07\r\n\x7f\u202e\x9b31m"
for place, column in (("capture", "perfkit_version"), ("capture", "host"), ("capture", "cpu"),
                      ("device", "api"), ("process", "end_reason"), ("merged_part", "clock")):
    database.execute(f'UPDATE "{place}" SET "{column}" = ?', (escape,))
database.execute("UPDATE string SET value = value || ? WHERE id < 10", (escape,))
database.commit()
database.close()
statistics = ",".join(row["name"] for row in json.loads(report("--stats", "list", "--format", "json").stdout))
for words in ((), ("--all",), ("--memory",), ("--iterations",), ("--ranks",), ("--stats", statistics)):
    for kind in ("text", "markdown", "csv"):
        read = table if kind == "csv" else terminal
        read(report(*words, "--format", kind, "words.sqlite").stdout or b"-")
for option in ("--flamegraph", "--prometheus"):
    OUTPUTS[option][1](report(option, "-", "words.sqlite").stdout)

# ---- a terminal of 24 lines ------------------------------------------------------------------------
for fixture in ("normal", "awkward", "hostile", "live", "more", "counters", "ranks", "host", "two_processes", "recorded_slow_rank"):
    screen = on_terminal(capture_of(fixture, fixture + "-24.sqlite"), rows=24, columns=80).decode()
    characters(screen)
    lines = screen.splitlines()
    assert len(lines) < 24 and max(map(len, lines)) <= 80, (fixture, screen)
    assert [line for line in lines if line.startswith("Findings")] and "perfkit report FILE --all" in lines[-1], screen
characters(on_terminal("words.sqlite", rows=24, columns=80).decode())
rules = json.loads(subprocess.run([perfkit, "explain", "--json"], stdout=subprocess.PIPE, check=True).stdout)
for rule in rules:  # the first sentence is the line of the fix
    assert len(re.split(r"(?<=\.) ", rule["fix"])[0]) <= 76, (rule["rule"], rule["fix"])
whole = on_terminal("normal-24.sqlite", rows=100, columns=80).decode()
all_of_it = on_terminal("normal-24.sqlite", "--all").decode()
for pager, prefix in (("sed s/^/P/", "P"), ("cat", ""), ("no-such-pager 2>/dev/null", "")):  # a pager needs keys
    paged = on_terminal("normal-24.sqlite", "--all", keys=True, PAGER=pager, TERM="xterm").decode()
    assert paged.splitlines() == [prefix + line for line in all_of_it.splitlines()], (pager, paged[:300])
    whole_part = on_terminal("normal-24.sqlite", "--memory").decode()  # and each part alone
    paged = on_terminal("normal-24.sqlite", "--memory", keys=True, PAGER=pager, TERM="xterm").decode()
    assert paged.splitlines() == [prefix + line for line in whole_part.splitlines()], (pager, paged[:300])
assert "\nKernels: 160 launches of 4 kernels" in whole and "gemm_kernel" in whole, whole

# ---- which column leaves when ----------------------------------------------------------------------
with open(os.path.join(source, "..", "..", "docs", "guide", "outputs.md"), encoding="utf-8") as page:
    documented = {title: (left.split(", "), stays.split(", ")) for title, left, stays in re.findall(r"^\| ([^|`]+) \| ([^|`]+) \| ([^|`]+) \|$", page.read(), re.M)}
assert len(documented) > 8, documented
compared = set()
for capture in ("normal-24.sqlite", "recorded_slow_rank-24.sqlite", "awkward-24.sqlite", "more-24.sqlite"):
    seen = {}
    for width in range(170, 59, -6):
        lines = subprocess.run([perfkit, "report", capture, "--all"], stdout=subprocess.PIPE, check=True,
                               env={**ENVIRONMENT, "COLUMNS": str(width)}).stdout.decode().split("\n")
        for at, line in enumerate(lines):
            title = line.split(":")[0]
            headings = next((below for below in lines[at + 1:] if not below or re.search(r"\S  +\S", below)), "")
            if title in documented and headings:
                seen.setdefault(title, []).append(re.split(r"  +", headings.strip()))
    for title, widths in seen.items():
        left, stays = documented[title]
        gone = [column for before, after in zip(widths, widths[1:]) for column in sorted(set(before) - set(after), key=", ".join(left).find)]
        order = [", ".join(left).find(column) for column in gone]
        assert -1 not in order and order == sorted(order), (title, gone, left)
        assert set(widths[-1]) <= set(stays) | set(", ".join(left).split(", ")) | {", ".join(stays)}, (title, widths[-1])
        compared.update((title, column) for column in gone)
assert {title for title, _ in compared} == documented.keys() - {"table", "I want"} and len(compared) > 45, (documented.keys(), compared)
for option, (name, read, part) in OUTPUTS.items():
    if option == "--plots" and not HAVE_GNUPLOT:
        continue
    # The roofline of the hostile fixture has no points; that of another has names of its own.
    result = report(option, name, roofs if option == "--roofline" else hostile)
    assert result.returncode == 0, (option, result.stderr)
    terminal(result.stderr)
    if os.path.isdir(name):
        text = read(name)
    else:
        with open(name, "rb") as file:
            text = read(file.read())
    assert part is None or part in text, (option, part, text[:3000])
assert not os.path.exists("HACKED")

# ---- names of frames and tracks, of many lengths -----------------------------------------------------
# What is cut is cut between characters, a line behind a long path stays, and all outputs agree with the file.
FRAMES = ["", ";", " ", "a;b", "x\ny", "tab\there", '"\\', "</script>", "\u202ertl", "end 42", "#comment 1", "\x1b[31m", "{}[],:",
          "n" * 5000, *(ascii * "a" + letter * 300 for ascii in range(4) for letter in ("\u00e9", "\u6838", "\U0001f600"))]
deep = capture_of("normal", "frames.sqlite")
with sqlite3.connect(deep) as db:
    for i, name in enumerate(FRAMES, start=1):
        db.execute("INSERT INTO string(id, value) VALUES(?, ?)", (9000 + i, name))
        db.execute("INSERT INTO frame(id, process, kind, address) VALUES(?, 1, 1 + ? % 2, ?)", (i, i, i))
        db.execute("INSERT INTO symbol(frame, level, function, file, line) VALUES(?, 0, ?, ?, ?)", (i, 9000 + i, 9000 + i, i))
    parent = None
    for i in range(1, 1000):
        db.execute("INSERT INTO stack(id, parent, frame, depth) VALUES(?, ?, ?, ?)", (i, parent, 1 + i % len(FRAMES), i))
        parent = i
    db.execute("INSERT INTO stack(id, parent, frame, depth) VALUES(1001, 1002, 1, 1), (1002, 1001, 2, 2)")  # a circle
    db.execute("UPDATE kernel SET stack = CASE id % 5 WHEN 0 THEN 999 WHEN 1 THEN 1001 ELSE 1 + id % 40 END")
    for table in ("thread", "stream", "device"):
        db.execute("UPDATE %s SET name = ?" % table, (table[0] + "\u6838" * 200,))
db.close()
for option, (name, read, _) in OUTPUTS.items():
    if option in ("--plots", "--roofline"):
        continue
    result = report(option, name, deep)
    assert result.returncode == 0 and b"runtime error" not in result.stderr, (option, result.stderr[:3000])
    with open(name, "rb") as file:
        data = file.read()
    read(data)
    if option not in ("--pprof", "--html"):  # compressed, both
        assert "\ufffd" not in data.decode("utf-8", "ignore") and b"\\ufffd" not in data, option
with open("trace.json", encoding="utf-8") as file:
    frames = json.load(file)["stackFrames"].values()
assert {(node["name"], node["category"]) for node in frames} == {
    (name, "%s:%d" % (name.encode()[:4096].decode("utf-8", "ignore"), i)) for i, name in enumerate(FRAMES, start=1)}
subprocess.run([sys.executable, os.path.join(source, "perfetto_check.py"), "trace.pftrace", "trace.json"], check=True,
               stdout=subprocess.DEVNULL)

# ---- numbers of a damaged capture -------------------------------------------------------------------
# Each of these alone: sums and differences of them fit no integer; the sanitizers tell what is computed anyway.
LARGEST = 9223372036854775807
DAMAGE = {
    "times": ["UPDATE %s SET start = %d WHERE id %% 2" % (table, LARGEST - 5) for table in ("kernel", "transfer", "range")] +
             ["UPDATE capture SET start_mono_ns = 5000000000"],
    "durations": ["UPDATE %s SET duration = %d" % (table, LARGEST) for table in ("kernel", "transfer", "memset", "range", "sync")],
    "bytes": ["UPDATE allocation SET bytes = %d" % LARGEST, "UPDATE transfer SET bytes = %d" % LARGEST],
    "ids": ["UPDATE kernel SET id = id + %d" % (LARGEST - 100000), "UPDATE marker SET thread = %d" % (LARGEST // 4 + 1)],
    "shared memory": ["UPDATE launch_config SET shared_static = 49152, shared_dynamic = %d" % LARGEST],
    "negative": ["UPDATE kernel SET start = %d - id" % (100000 - LARGEST), "UPDATE capture SET duration = %d" % LARGEST],
}
for what, statements in DAMAGE.items():
    damaged = capture_of("normal", "damaged.sqlite")
    with sqlite3.connect(damaged) as db:
        for statement in statements:
            db.execute(statement)
    db.close()
    for words in [(option, "damaged.out") for option in OUTPUTS if option not in ("--plots", "--roofline")] + [("--all",), ("--json",)]:
        result = report(*words, damaged)
        assert result.returncode == 0 and b"runtime error" not in result.stderr, (what, words, result.stderr)

# ---- as many names as ranges ------------------------------------------------------------------------
named = capture_of("normal", "named.sqlite")
NAMES = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) "
with sqlite3.connect(named) as db:
    db.execute(NAMES + "INSERT INTO string(id, value) SELECT 100000 + i, 'range ' || i FROM n")
    db.execute(NAMES + "INSERT INTO range(start, duration, thread, name, depth) SELECT i * 100, 50, 1, 100000 + i, 0 FROM n")
db.close()
with open(perfkit, "rb") as program:
    most_mb = 800 if b"__asan_init" in program.read() else 150  # measured: 380 and 75, with 4 KB a name 1423 and 265
with open(os.devnull, "wb") as nowhere, subprocess.Popen([perfkit, "report", "--json", named], stdout=nowhere) as child:
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
assert child.returncode == 0 and usage.ru_maxrss < most_mb << 10, (child.returncode, usage.ru_maxrss)

# ---- as many kernels as launches --------------------------------------------------------------------
# 50,000 are told apart, those that took most time; the rest are one row, and everything still adds up.
crowded = capture_of("normal", "crowded.sqlite")
with sqlite3.connect(crowded) as db:
    db.execute("DELETE FROM kernel")
    db.execute("DELETE FROM rollup")
    db.execute("DELETE FROM launch_config")
    db.execute(NAMES + "INSERT INTO string(id, value) SELECT 100000 + i, 'kernel_' || i || '_' FROM n")
    db.execute(NAMES + "INSERT INTO launch_config(id, name, grid_x) SELECT 1000 + i, 100000 + i, 1 FROM n")
    db.execute(NAMES + "INSERT INTO kernel(start, duration, stream, config, thread) SELECT i * 900, 100 + i % 600, 1, 1000 + i, 1 FROM n")
db.close()
whole = json.loads(report("--json", "--all", crowded).stdout)["kernels"]
assert whole["total_rows"] == 50001 and sum(row["count"] for row in whole["rows"]) == 60000
assert sum(row["total_ns"] for row in whole["rows"]) == sum(100 + i % 600 for i in range(1, 60001))
others = [row for row in whole["rows"] if row["name"] == "(others, 10,000 kernels)"]
assert len(others) == 1 and others[0]["count"] == 10000, others
assert max(100 + i % 600 for i in range(1, 60001)) == max(row["max_ns"] for row in whole["rows"] if row not in others)
assert b"60,000 launches of 60,000 kernels" in report(crowded).stdout
for name, shown in (("kernel_599_", "kernel_599_"), ("kernel_600_", "(others, 10,000 kernels)")):
    found = json.loads(report("--json", "--kernel", name, crowded).stdout)["kernels"]["rows"]
    assert [(row["name"], row["count"]) for row in found] == [(shown, 1)], found
with subprocess.Popen([perfkit, "top", "--json", crowded], stdout=subprocess.PIPE) as child:
    rows = json.loads(child.stdout.read())["kernels"]["rows"]
assert len(rows) == 50001 and sum(row["all_count"] for row in rows) == 60000
with subprocess.Popen([perfkit, "report", "--html", "crowded.html", crowded], stderr=subprocess.DEVNULL) as child:
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
assert child.returncode == 0 and usage.ru_maxrss < 3 * most_mb << 10, usage.ru_maxrss

# ---- what cannot be written ------------------------------------------------------------------------
capture = roofs
os.mkdir("room")


def refused(result, *words):
    error = result.stderr.decode("utf-8")
    assert result.returncode == 1, (words, result.returncode, error)
    assert error.count("\n") == 1 and error.startswith("perfkit report: "), (words, error)


def small_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))


for option, (name, _, _) in OUTPUTS.items():
    if option == "--plots" and not HAVE_GNUPLOT:
        continue
    refused(report(option, "/nonexistent/" + name, capture), option, "no folder")
    refused(report(option, "room/" + name, capture, preexec_fn=small_files), option, "no room")
    assert os.listdir("room") in ([], ["figures"]), (option, os.listdir("room"))
    if os.path.isdir("room/figures"):
        assert os.listdir("room/figures") == [], os.listdir("room/figures")
        os.rmdir("room/figures")
    if option == "--plots":
        continue
    os.mkdir("room/" + name)
    refused(report(option, "room/" + name, capture), option, "a folder is there")
    os.rmdir("room/" + name)
    if option != "--roofline":  # whose writer goes by the name
        refused(report(option, "/dev/full", capture), option, "full")
if os.path.exists("/dev/full"):
    for words in list(PRINTED) + [(o, "-") for o in OUTPUTS if o not in ("--plots", "--roofline")]:
        with open("/dev/full", "wb") as full:
            refused(report(*words, capture, stdout=full), *words)
for words in list(PRINTED) + [(o, "-") for o in OUTPUTS if o not in ("--plots", "--roofline")]:
    reading, writing = os.pipe()
    os.close(reading)
    result = report(*words, capture, stdout=writing)
    os.close(writing)
    assert result.returncode != 0, words
print("%d outputs" % (len(OUTPUTS) + len(PRINTED)))
