#!/usr/bin/env python3
"""What naming the frames of stacks costs: seconds, memory and names by the number of distinct addresses in an
object file.

    bench/symbolize.py PERFKIT OBJECT [ADDRESSES...]

Makes captures of random addresses in the functions of OBJECT (by its symbol table) and lets `perfkit symbolize`
name them. Memory is the most that perfkit or its reader had at once, pages of the mapped file included."""
import os, random, re, sqlite3, subprocess, sys, tempfile, time

perfkit, target = os.path.abspath(sys.argv[1]), os.path.realpath(sys.argv[2])
counts = [int(n) for n in sys.argv[3:]] or [100, 1000, 10000]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, errors="replace").stdout


def functions():
    text = output("nm", "-S", target) or output("nm", "-SD", target)
    found = re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tTwW] ", text, re.M)
    return [(int(at, 16), int(size, 16)) for at, size in found if int(size, 16) > 4]


def first_load():
    address = re.search(r"LOAD\s+\S+\s+(0x[0-9a-f]+)", output("readelf", "-lW", target)).group(1)
    return int(address, 16) & ~4095


def make(path, addresses, build_id):
    """A capture of `true`, and the addresses as stacks of it."""
    subprocess.run([perfkit, "run", "-q", "-o", path, "--", "true"], check=True)
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO module(id, process, start, path, build_id, address, bytes) VALUES(1000000, 1, 0, ?, ?, 0, ?)",
                   (target, build_id, os.stat(target).st_size))
        db.executemany("INSERT INTO frame(id, process, kind, address, module, offset) VALUES(?, 1, 1, ?, 1000000, ?)",
                       ((i, a, a) for i, a in enumerate(addresses, 1)))
        db.executemany("INSERT INTO stack(parent, frame, depth) VALUES(NULL, ?, 1)", ((i,) for i in range(1, len(addresses) + 1)))


all_functions, load, chance = functions(), first_load(), random.Random(1)
found = re.search(r"Build ID: ([0-9a-f]+)", output("readelf", "-n", target))
print(f"{target}: {os.stat(target).st_size / 1e6:,.0f} MB, {len(all_functions):,} functions")
print(f"{'addresses':>10} {'seconds':>9} {'us each':>9} {'MB at most':>11} {'named':>8} {'lines':>8}")
with tempfile.TemporaryDirectory() as folder:
    for count in counts:
        path = os.path.join(folder, f"{count}.sqlite")
        picked = set()
        while len(picked) < min(count, sum(size for _, size in all_functions) // 4):
            start, size = chance.choice(all_functions)
            picked.add(start + chance.randrange(size) - load)
        make(path, sorted(picked), found and found.group(1))
        before = time.monotonic()
        process = subprocess.Popen([perfkit, "symbolize", "-q", path])
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - before
        assert status == 0
        with sqlite3.connect(path) as db:
            named, lines = db.execute("SELECT count(DISTINCT frame), count(DISTINCT CASE WHEN line NOT NULL THEN frame END) "
                                      "FROM symbol").fetchone()
        most = usage.ru_maxrss / 1000
        print(f"{len(picked):>10,} {seconds:>9.2f} {seconds / len(picked) * 1e6:>9.0f} {most:>11,.0f} {named:>8,} {lines:>8,}")
