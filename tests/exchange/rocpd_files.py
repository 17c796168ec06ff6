"""Files in the shape of rocpd (rocprofv3's SQLite), made up: of schema 3, which has times and places in the rows of events, and of
schema 4, which has them in tables of their own. Columns as ROCm/rocprofiler-sdk documents them."""
import json
import sqlite3

INFO = {
    "metadata": "id INTEGER PRIMARY KEY, tag TEXT, value TEXT",
    "string": "id INTEGER PRIMARY KEY, guid TEXT, string TEXT",
    "info_node": "id INTEGER PRIMARY KEY, guid TEXT, hash BIGINT, machine_id TEXT, system_name TEXT, hostname TEXT, release TEXT",
    "info_process": "id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, ppid INTEGER, pid INTEGER, command TEXT, start BIGINT, end BIGINT",
    "info_thread": "id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER, name TEXT",
    "info_agent": "id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, type TEXT, absolute_index INTEGER, "
                  "logical_index INTEGER, type_index INTEGER, uuid INTEGER, name TEXT, product_name TEXT, extdata JSONB DEFAULT '{}'",
    "info_kernel_symbol": "id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, code_object_id INTEGER, kernel_name TEXT, "
                          "display_name TEXT, group_segment_size INTEGER, private_segment_size INTEGER, sgpr_count INTEGER, "
                          "arch_vgpr_count INTEGER, accum_vgpr_count INTEGER",
    "track": "id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER, agent_id INTEGER, queue_id INTEGER, "
             "stream_id INTEGER, name_id INTEGER",
    "event": "id INTEGER PRIMARY KEY, guid TEXT, category_id INTEGER, stack_id INTEGER, parent_stack_id INTEGER, "
             "correlation_id INTEGER, extdata JSONB DEFAULT '{}' NOT NULL",
    "pmc_event": "id INTEGER PRIMARY KEY, guid TEXT, event_id INTEGER, pmc_id INTEGER, value REAL",
}
PLACED = { # what a row has besides its time and its place
    "kernel_dispatch": "kernel_id INTEGER, dispatch_id INTEGER, private_segment_size INTEGER, group_segment_size INTEGER, "
                       "workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER, grid_size_x INTEGER, "
                       "grid_size_y INTEGER, grid_size_z INTEGER",
    "memory_copy": "name_id INTEGER, dst_agent_id INTEGER, src_agent_id INTEGER, size INTEGER",
    "memory_allocate": "type TEXT, level TEXT, address INTEGER, size INTEGER",
    "region": "name_id INTEGER",
}
KERNELS = ["vector_add(float*, float*, int)", "void gemm<128, 4>(half const*, half*)", "softmax"]
CPU, GPU0, GPU1 = 0, 4, 5


class Run:
    """The tables of one process."""

    def __init__(self, db, schema, number, pid):
        self.db, self.schema, self.suffix, self.pid = db, schema, "_" + number, pid
        self.strings, self.ids, self.tracks = {}, {}, {}
        for name, columns in INFO.items():
            db.execute(f'CREATE TABLE "rocpd_{name}{self.suffix}" ({columns})')
        place = ("nid INTEGER, pid INTEGER, tid INTEGER, agent_id INTEGER, queue_id INTEGER, stream_id INTEGER, start BIGINT, end BIGINT"
                 if schema == 3 else "track_id INTEGER, start_id INTEGER, end_id INTEGER")
        for name, columns in PLACED.items():
            db.execute(f'CREATE TABLE "rocpd_{name}{self.suffix}" (id INTEGER PRIMARY KEY, guid TEXT, {place}, {columns}, event_id INTEGER)')
        when = "timestamp BIGINT" if schema == 3 else "timestamp_id INTEGER"
        db.execute(f'CREATE TABLE "rocpd_sample{self.suffix}" (id INTEGER PRIMARY KEY, guid TEXT, track_id INTEGER, {when}, event_id INTEGER)')
        if schema == 4:
            db.execute(f'CREATE TABLE "rocpd_timestamp{self.suffix}" (id INTEGER PRIMARY KEY, guid TEXT, value BIGINT, phase INTEGER)')
        self.put("metadata", tag="schema_version", value=str(schema))
        self.put("info_node", id=7, hostname="mi300", system_name="Linux", release="6.8.0", machine_id="m", hash=1)
        self.put("info_process", id=pid, nid=7, ppid=1, pid=pid, command=f"./train --rank {pid}")
        self.put("info_thread", id=pid + 1, nid=7, pid=pid, tid=pid + 1)
        for agent, kind, index in ((CPU, "CPU", 0), (GPU0, "GPU", 0), (GPU1, "GPU", 1)):
            self.put("info_agent", id=agent, nid=7, pid=pid, type=kind, absolute_index=agent, type_index=index, name="gfx942",
                     product_name=f"AMD Instinct MI300X" if kind == "GPU" else "EPYC",
                     extdata=json.dumps({"cu_count": 304, "wave_front_size": 64, "simd_per_cu": 4, "max_waves_per_simd": 8}))
        for i, name in enumerate(KERNELS):
            self.put("info_kernel_symbol", id=i + 1, nid=7, pid=pid, kernel_name=f"_Z{i}", display_name=name, group_segment_size=1024 * i,
                     private_segment_size=0, arch_vgpr_count=32 + i)

    def put(self, table, **values):
        self.ids[table] = values.get("id", self.ids.get(table, 0) + 1)
        values["id"] = self.ids[table]
        names = ", ".join(f'"{name}"' for name in values)
        self.db.execute(f'INSERT INTO "rocpd_{table}{self.suffix}" ({names}) VALUES ({", ".join("?" * len(values))})', list(values.values()))
        return values["id"]

    def string(self, text):
        if text not in self.strings:
            self.strings[text] = self.put("string", string=text)
        return self.strings[text]

    def event(self, category, stack, message=None):
        return self.put("event", category_id=self.string(category), stack_id=stack, parent_stack_id=stack, correlation_id=0,
                        extdata=json.dumps({"message": message}) if message else "{}")

    def track(self, agent=None, stream=None):
        key = agent, stream
        if key not in self.tracks:
            self.tracks[key] = self.put("track", nid=7, pid=self.pid, tid=self.pid + 1, agent_id=agent, queue_id=None, stream_id=stream)
        return self.tracks[key]

    def placed(self, table, start, end, agent=None, stream=None, **values):
        if self.schema == 3:
            values.update(nid=7, pid=self.pid, tid=self.pid + 1, agent_id=agent, stream_id=stream, start=start, end=end)
        else:
            values.update(track_id=self.track(agent, stream), start_id=self.put("timestamp", value=start, phase=1),
                          end_id=self.put("timestamp", value=end, phase=2))
        return self.put(table, **values)

    def fill(self, steps):
        now, stack = 1_000_000_000 * self.pid, 1
        for step in range(steps):
            begin = now
            self.placed("memory_allocate", now, now + 50, agent=GPU0, stream=0, type="ALLOC", level="REAL", address=0x7f0000000000 + step * 4096,
                        size=4096, event_id=self.event("MEMORY_ALLOCATION", stack))
            for i in range(5):
                now += 3000 + step % 7
                agent = GPU0 if i < 4 else GPU1
                self.placed("region", now, now + 900, name_id=self.string("hipLaunchKernel"), event_id=self.event("HIP_RUNTIME_API", stack))
                self.placed("kernel_dispatch", now + 1200, now + 1200 + 500 * (i + 1), agent=agent, stream=i % 2, kernel_id=i % 3 + 1,
                            dispatch_id=stack, private_segment_size=0, group_segment_size=4096, workgroup_size_x=256, workgroup_size_y=1,
                            workgroup_size_z=1, grid_size_x=1000, grid_size_y=2, grid_size_z=1, event_id=self.event("KERNEL_DISPATCH", stack))
                stack += 1
            for name, source, target in (("HOST_TO_DEVICE", CPU, GPU0), ("DEVICE_TO_HOST", GPU0, CPU), ("DEVICE_TO_DEVICE", GPU0, GPU1)):
                now += 5000
                self.placed("region", now, now + 2000, name_id=self.string("hipMemcpy"), event_id=self.event("HIP_RUNTIME_API", stack))
                self.placed("memory_copy", now + 100, now + 1700, stream=0, name_id=self.string("MEMORY_COPY_" + name), src_agent_id=source,
                            dst_agent_id=target, size=65536 + step, event_id=self.event("MEMORY_COPY", stack))
                stack += 1
            self.placed("region", now, now + 100, name_id=self.string("hsa_signal_load_relaxed"), event_id=self.event("HSA_CORE_API", stack))
            stack += 1
            now += 9000
            self.placed("memory_allocate", now, now + 50, agent=GPU0, stream=0, type="FREE", level="REAL", address=0x7f0000000000 + step * 4096,
                        size=0, event_id=self.event("MEMORY_ALLOCATION", stack))
            self.placed("region", begin - 10, now + 100, name_id=self.string("roctxThreadRangeA"),
                        event_id=self.event("MARKER_CORE_RANGE_API", stack, "step"))
            when = {"timestamp": now} if self.schema == 3 else {"timestamp_id": self.put("timestamp", value=now, phase=0)}
            self.put("sample", track_id=self.track(), event_id=self.event("MARKER_CORE_API", stack, f"mark {step}"), **when)
            self.put("pmc_event", event_id=1, pmc_id=1, value=step)
            stack += 1
            now += 1000


def make(path, schema, pids=(300, 400), steps=20):
    with sqlite3.connect(path) as db:
        for pid in pids:
            Run(db, schema, f"019a{pid}_7c1d_{pid}", pid).fill(steps)
    db.close()


def source_sums(path):
    """What the file itself says, by SQL on it: counts and sums over its processes."""
    sums = {}
    with sqlite3.connect(path) as db:
        names = [name for name, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for run in [name[len("rocpd_info_process"):] for name in names if name.startswith("rocpd_info_process")]:
            def each(table, rest="", run=run):
                timed = (f'(SELECT value FROM "rocpd_timestamp{run}" WHERE id = end_id) - (SELECT value FROM "rocpd_timestamp{run}" WHERE id = start_id)'
                         if f"rocpd_timestamp{run}" in names else "end - start")
                return db.execute(f'SELECT *, {timed} AS ns FROM "rocpd_{table}{run}" X {rest}'.replace("SELECT *", "SELECT 1"))
            for table in ("kernel_dispatch", "memory_copy"):
                rows = each(table).fetchall()
                count, ns = sums.get(table, (0, 0))
                sums[table] = count + len(rows), ns + sum(row[1] for row in rows)
            for table, condition in (("calls", "NOT LIKE"), ("ranges", "LIKE")):
                rows = each("region", f'JOIN "rocpd_event{run}" V ON V.id = event_id JOIN "rocpd_string{run}" C ON C.id = V.category_id '
                            f"WHERE C.string {condition} '%MARKER%'").fetchall()
                count, ns = sums.get(table, (0, 0))
                sums[table] = count + len(rows), ns + sum(row[1] for row in rows)
            bytes_, = db.execute(f'SELECT sum(size) FROM "rocpd_memory_copy{run}"').fetchone()
            sums["bytes"] = sums.get("bytes", 0) + bytes_
    db.close()
    return sums
