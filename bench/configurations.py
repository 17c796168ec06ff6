"""What bench/overhead compares: how each configuration is started and what it says it recorded."""
import glob
import os
import re
import shutil
import sqlite3
import subprocess

LOSSES = ("dropped", "definitions_dropped", "backend_dropped", "unseen", "damaged",
          "orphan_times", "outstanding", "remainder")
# Device records and API calls; one that this capture has not is None.
EVENT_TABLES = ("kernel", "transfer", "memset", "sync", "graph_launch", "event_record", "overhead",
                "migration", "api_all")


def count(database, table):
    try:
        return database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    except sqlite3.Error:
        return None


def read_capture(path):
    """What a perfkit capture holds and what it says was lost. Only 'record', 'collector' and what a
    balance leaves over count as losses."""
    if not os.path.exists(path):
        return {"error": "no capture file"}
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        tables = {table: count(database, table) for table in EVENT_TABLES}
        untimed = count(database, "kernel WHERE start IS NULL OR duration IS NULL OR duration < 0")
        lost = {}
        for item, subject, lines in database.execute(
                "SELECT item, subject, sum(value) FROM capture_health WHERE value <> 0 "
                "GROUP BY item, subject"):
            if item in LOSSES and (item != "dropped" or subject == "record"):
                lost[f"{subject} {item}"] = lines
        notes = [f"{item}: {note}" for item, note in database.execute(
            "SELECT item, note FROM capture_health WHERE subject = 'collector' "
            "AND (item LIKE '%degraded%' OR item LIKE '%refused%')")]
    except sqlite3.Error as error:
        return {"error": f"capture file: {error}"}
    finally:
        database.close()
    return {"kernels": tables["kernel"], "records": sum(n or 0 for n in tables.values()),
            "tables": tables, "untimed": untimed, "dropped": sum(lost.values()), "lost": lost,
            "notes": notes, "bytes": os.path.getsize(path)}


def read_floor(path):
    """The line that libbench_cupti_floor.so leaves."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            line = file.read().strip()
    except OSError:
        return {"error": "the floor library left no word: was it loaded?"}
    found = dict(re.findall(r"(\w+)=(\d+)", line.split(" error=")[0]))
    told = {"records": int(found.get("records", 0)), "dropped": int(found.get("dropped", 0)),
            "bytes": int(found.get("bytes", 0))}
    if " error=" in line:
        told["notes"] = [f"{found.get('errors')} errors, first: {line.split(' error=')[1]}"]
    return told


class Configuration:
    """The program alone. The others derive from it."""
    kind = "bare"

    def __init__(self, name):
        self.name = name

    def command(self, program, folder):
        return program

    def environment(self, folder):
        return {}

    def recorded(self, folder):
        return {}


class Floor(Configuration):
    kind = "floor"

    def __init__(self, name, library, spec):
        super().__init__(name)
        self.library, self.spec = library, spec

    def environment(self, folder):
        return {"CUDA_INJECTION64_PATH": self.library, "FLOOR": self.spec,
                "FLOOR_STATS": os.path.join(folder, "floor")}

    def recorded(self, folder):
        return read_floor(os.path.join(folder, "floor"))


class Perfkit(Configuration):
    kind = "perfkit"

    def __init__(self, name, perfkit, options=()):
        super().__init__(name)
        self.perfkit, self.options = perfkit, list(options)

    def file(self, folder):
        return os.path.join(folder, "capture.sqlite")

    def command(self, program, folder):
        return [self.perfkit, "run", "-q", "-f", "-o", self.file(folder), *self.options, "--",
                *program]

    def recorded(self, folder):
        return read_capture(self.file(folder))


class Nsys(Configuration):
    kind = "nsys"
    # What perfkit records by default: allocations and the nodes of graphs too.
    OPTIONS = ["-t", "cuda,nvtx", "--cuda-memory-usage=true", "--cuda-graph-trace=node",
               "--sample=none", "--cpuctxsw=none"]

    def __init__(self, name, nsys, options=()):
        super().__init__(name)
        self.nsys, self.options = nsys, [*self.OPTIONS, *options]

    def file(self, folder, ending):
        return os.path.join(folder, "nsys." + ending)

    def command(self, program, folder):
        return [self.nsys, "profile", *self.options, "--force-overwrite=true", "-o",
                os.path.join(folder, "nsys"), *program]

    def recorded(self, folder):
        """Only sizes; what is in the file is read by the section `after`, which exports it."""
        told = {}
        for ending in ("nsys-rep", "qdstrm"):
            if os.path.exists(self.file(folder, ending)):
                told["bytes"] = os.path.getsize(self.file(folder, ending))
                told["file"] = ending
                return told
        return {"error": "nsys left no file"}

    def importer(self):
        """QdstrmImporter, which nsys runs itself when it finds it."""
        root = os.path.dirname(os.path.dirname(os.path.realpath(self.nsys)))
        found = glob.glob(os.path.join(root, "host-linux-*", "QdstrmImporter")) + \
            glob.glob(os.path.join(os.path.dirname(root), "host", "*", "QdstrmImporter"))
        return found[0] if found else shutil.which("QdstrmImporter")


def read_export(path):
    """Events in a file of `nsys export --type sqlite`."""
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        tables = {name: count(database, name) for (name,) in database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'CUPTI_ACTIVITY%'")}
    except sqlite3.Error as error:
        return {"error": f"export: {error}"}
    finally:
        database.close()
    return {"kernels": tables.get("CUPTI_ACTIVITY_KIND_KERNEL"),
            "records": sum(n or 0 for n in tables.values()), "tables": tables,
            "bytes": os.path.getsize(path)}


def find_nsys(wanted):
    """A path to nsys; None: not there, or `off`."""
    if wanted == "off":
        return None
    if wanted:
        return wanted
    others = sorted(glob.glob("/opt/nvidia/nsight-*/*/host/target-linux-x64/nsys") +
                    glob.glob("/opt/nvidia/nsight-systems/*/target-linux-x64/nsys") +
                    glob.glob("/opt/nvidia/nsight-*/*/target-linux-x64/nsys"))
    return shutil.which("nsys") or (others[-1] if others else None)


def knows_dormant(perfkit):
    told = subprocess.run([perfkit, "run", "--help"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    return "--dormant" in told.stdout


def floor_spec(default, spec):
    """The FLOOR list for `spec`. One that begins with + or - changes `default`: `-clock,+tsc`."""
    if spec[0] not in "+-":
        return spec
    words = default.split(",")
    for change in spec.split(","):
        if change.startswith("-"):
            words = [w for w in words if w.split("=")[0] != change[1:]]
        else:
            words.append(change.lstrip("+"))
    return ",".join(words)


def parse_extra(text):
    """`name=FLOORSPEC;name=perfkit:ARGS;name=nsys:ARGS`: a list of (name, kind, words). ValueError: a sentence."""
    extra = []
    for part in filter(None, (p.strip() for p in text.split(";"))):
        name, equals, spec = part.partition("=")
        if not equals or not name or not spec:
            raise ValueError(f"{part!r} is not NAME=FLOORSPEC, NAME=perfkit:ARGUMENTS or "
                             "NAME=nsys:ARGUMENTS")
        kind, colon, words = spec.partition(":")
        if colon and kind in ("perfkit", "nsys"):
            extra.append((name, kind, words.split()))
        else:
            extra.append((name, "floor", spec))
    return extra
