"""Captures of a made-up distributed run: every rank trains in steps, each of which ends with an all-reduce that
ends at the same moment on all ranks. What a capture holds are the readings of its own host's clock."""
import os
import random
import shutil
import sqlite3
import subprocess
import sys

perfkit, tool, tests, work = [os.path.abspath(a) for a in sys.argv[1:5]]
sys.path.insert(0, os.path.join(tests, "exchange"))
from scenes import ask, make, one  # noqa: E402,F401

shutil.rmtree(work, ignore_errors=True)
os.makedirs(work)

BASE_REAL = 1_785_549_185_000_000_000
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"


def path_of(name):
    return os.path.join(work, name)


def empty_capture(path):
    sql = path_of("nothing.sql")
    with open(sql, "w", encoding="ascii") as out:
        out.write("SELECT 1;")
    subprocess.run([tool, "make", sql, path], check=True)


class Host:
    """A clock: reading = offset + (1 + drift) * true time. `wall_ns`: what the wall clock is off by."""
    def __init__(self, name, boot, mono_ns, drift=0.0, wall_ns=0):
        self.name, self.boot, self.mono_ns, self.drift, self.wall_ns = name, boot, mono_ns, drift, wall_ns

    def reading(self, true_ns):
        return self.mono_ns + round(true_ns * (1 + self.drift))


def rank_capture(name, rank, world, host, steps=200, jitter_ns=0, seed=0, begin_ns=None, step_ns=5_000_000,
                 collectives=True, skip=0, lacks=()):
    """Steps of about 5 ms from true time 1 s on, the same on all ranks; compute kernels differ. `skip`: recording begins
    after so many steps; `lacks`: steps without an all-reduce of this rank."""
    path = path_of(name)
    empty_capture(path)
    common, own = random.Random(4711), random.Random(seed + rank)
    begin_ns = begin_ns if begin_ns is not None else 900_000_000 + rank * 1_000_003
    zero = host.reading(begin_ns)
    db = sqlite3.connect(path)
    db.execute("INSERT INTO capture(state, perfkit_version, command, host, boot_id, start_realtime_ns, start_mono_ns, "
               "duration, exit_status, trace) VALUES('complete', '0.1.0', './train', ?, ?, ?, ?, ?, 0, 'cuda')",
               (host.name, host.boot, BASE_REAL + begin_ns + host.wall_ns, zero, 10_000_000_000))
    db.execute("INSERT INTO process(pid, command, birth, start, end, end_reason, exit_status, rank, world_size, local_rank, "
               "spool, job) VALUES(?, './train', 'start', 5, 9000000000, 'exit', 0, ?, ?, ?, 'x', '77')",
               (1000 + rank, rank, world, rank))
    db.execute("INSERT INTO thread(process, tid) VALUES(1, ?)", (1000 + rank,))
    db.execute("INSERT INTO device(process, api, ordinal, name, uuid, kind) VALUES(1, 'cuda', 0, 'GPU', ?, 'gpu')",
               (f"GPU-{rank}",))
    db.execute("INSERT INTO context(process, device, api, native) VALUES(1, 1, 'cuda', 1)")
    db.execute("INSERT INTO stream(process, device, context, api, native) VALUES(1, 1, 1, 'cuda', 7)")
    db.executemany("INSERT INTO string(value) VALUES(?)", [(f"rank {rank}",), ("cudaLaunchKernel",), ("gemm",), (REDUCE,)])
    db.executemany("INSERT INTO launch_config(name, grid_x, grid_y, grid_z, block_x, block_y, block_z) "
                   "VALUES(?, ?, 1, 1, 128, 1, 1)", [(3, 10), (4, 24)])
    true_ns, rows = 1_000_000_000, []
    for step in range(steps):
        end_ns = true_ns + step_ns + common.randrange(step_ns // 5)
        if step >= skip:
            length = own.randrange(step_ns // 2, step_ns - 100_000)
            rows.append((host.reading(true_ns + 1000) - zero, length, 1))
            if collectives and step not in lacks:
                start = true_ns + 2000 + length
                end = end_ns + (own.randrange(-jitter_ns, jitter_ns) if jitter_ns else 0)
                rows.append((host.reading(start) - zero, host.reading(end) - host.reading(start), 2))
        true_ns = end_ns
    db.executemany("INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread) "
                   "VALUES(?, ?, 1, ?, 2, 500, 100, 1)", rows)
    db.execute("INSERT INTO capture_health(process, subject, item, value) VALUES(1, 'launch', 'called', ?), "
               "(1, 'launch', 'recorded', ?)", (len(rows), len(rows)))
    db.execute("INSERT INTO range(start, duration, thread, name, depth) VALUES(100, 1000, 1, 1, 0)")
    db.execute("INSERT INTO work(range, flop) VALUES(1, 1e9)")
    db.commit()
    db.close()
    return path


def merge(out, *files, status=0, **kwargs):
    """Run it; the standard error."""
    done = subprocess.run([perfkit, "merge", *files, "-o", path_of(out)], capture_output=True, text=True, errors="replace",
                          check=False, **kwargs)
    assert done.returncode == status, (done.returncode, done.stderr)
    assert not done.stdout
    return done.stderr


def left_behind():
    return [n for n in os.listdir(work) if n.count(".sqlite.") or n.endswith(("-wal", "-shm", "-journal"))]


def reduce_ends(path):
    """rank -> when its all-reduces end, ns since 1970 as the capture says"""
    zero = one(path, "SELECT start_realtime_ns FROM capture")
    ends = {}
    for rank, end in ask(path, "SELECT p.rank, k.start + k.duration FROM kernel k JOIN stream s ON s.id=k.stream "
                               "JOIN process p ON p.id=s.process JOIN launch_config c ON c.id=k.config "
                               "JOIN string n ON n.id=c.name WHERE n.value LIKE 'nccl%' ORDER BY 1, 2"):
        ends.setdefault(rank, []).append(zero + end)
    return ends
