"""The captures of cuda_parity (targets/parity.cu), one mode after the other: what each mode says that it did, and what
of it is in the capture."""
from checking import CLASSES, did, recorded, trusted, well_timed


def launches(db):
    out = {}
    for name, *shape, cluster, dynamic, cooperative, n in db.rows(
            "SELECT s.value, grid_x, grid_y, grid_z, block_x, block_y, block_z, cluster_x, "
            "shared_dynamic, coalesce(flags, 0) & 1, count(*) FROM kernel k JOIN launch_config c ON "
            "c.id=k.config JOIN string s ON s.id=coalesce(c.demangled, c.name) "
            "GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"):
        text = "%s grid %s,%s,%s block %s,%s,%s" % (name, *shape)
        text += f" cluster {cluster if cluster and cluster > 1 else 0} dynamic {dynamic}"
        # CUPTI 13.0 calls a cluster launch cooperative once another launch was (docs/dev/cupti-notes.md).
        text += " c" if cooperative and not (cluster and cluster > 1) else ""
        out[text] = out.get(text, 0) + n
    return out


def resources(db, column):
    return db.table(f"SELECT s.value, c.{column} FROM launch_config c JOIN string s ON "
                    "s.id=coalesce(c.demangled, c.name) GROUP BY 1")


def among(got, wanted):
    """What was got, of the names that were wanted."""
    return {name: got.get(name, 0) for name in wanted}


def compare_memory(report, db, made):
    wanted = made.get("allocations", {})
    got = db.table(f"SELECT kind, count(*), sum(bytes) FROM allocation WHERE {CLASSES} GROUP BY 1")
    virtual = made.get("virtual", {}).get("all", [0, 0])
    arrays = made.get("arrays", {}).get("all", 0)
    freed = made.get("freed", {}).get("all", 0)
    if virtual[0] or arrays:  # as what kind these are recorded is CUPTI's choice
        report.observed("allocations by kind", got)
        report.equal("allocations", sum(n for n, _ in got.values()),
                     sum(n for n, _ in wanted.values()) + virtual[0] + arrays)
        if not arrays:
            report.equal("bytes allocated", sum(b for _, b in got.values()),
                         sum(b for _, b in wanted.values()) + virtual[1])
    else:
        report.equal("allocations by kind", got, wanted)
    report.equal("freed", db.count("allocation", f"{CLASSES} AND end NOT NULL"),
                 freed + virtual[0] + arrays)


def compare_device_work(report, db, made):
    report.equal("kernels", db.kernels(), made.get("kernels", {}))
    report.equal("launches", launches(db), made.get("launches", {}))
    for table, column in (("registers", "registers"), ("shared_static", "shared_static"),
                          ("local_bytes", "local_bytes")):
        if table not in made:
            continue
        got = among(resources(db, column), made[table])
        if column == "shared_static":
            report.equal(table, got, made[table])
            continue
        # Registers are given out in steps, and CUPTI 13.0 does not tell local memory.
        report.true(f"{table} at least", all(n is None or n >= made[table][name]
                                             for name, n in got.items()),
                    f"{got}, the functions' attributes {made[table]}")
    report.equal("transfers by kind", db.table(
        "SELECT kind, count(*), sum(bytes) FROM transfer GROUP BY 1"), made.get("transfers", {}))
    if "copies_between" in made:
        report.equal("copies by memory", db.table(
            "SELECT coalesce(source_kind, 0) || '>' || coalesce(target_kind, 0), count(*) FROM "
            "transfer GROUP BY 1"), made["copies_between"])
    report.equal("memsets", [*db.rows("SELECT count(*), coalesce(sum(bytes), 0) FROM memset")[0]],
                 made.get("memsets", {}).get("all", [0, 0]))
    if "graph_kernels" in made:
        report.equal("kernels of graphs", db.kernels("graph_node NOT NULL"), made["graph_kernels"])
        report.equal("kernels of graphs without a call", db.count(
            "kernel", "graph_node NOT NULL AND correlation NOT IN (SELECT correlation FROM api_call "
                      "WHERE correlation NOT NULL)"), 0)
        if "graph_node" in db.tables:
            report.equal("nodes that nobody made", db.count(
                "kernel", "graph_node NOT NULL AND graph_node NOT IN (SELECT node FROM graph_node)"),
                0)
            report.equal("clones of nodes that nobody made", db.count(
                "graph_node", "original NOT NULL AND original NOT IN (SELECT node FROM graph_node)"),
                0)
        else:
            report.true("graph_node", False, "no such table")
    for subject, wanted in made.get("captured", {}).items():
        report.equal(f"captured {subject}", db.health(subject).get("captured", 0), wanted)


def compare_host(report, db, made):
    calls = db.calls()
    report.equal("calls", among(calls, made.get("api", {})), made.get("api", {}))
    if "waits" in made:
        waits = db.table("SELECT s.value || ' ' || y.kind, count(*) FROM sync y JOIN string s ON "
                         "s.id=y.api_name GROUP BY 1")
        report.equal("waits", among(waits, made["waits"]), made["waits"])
    if "ranges" in made:
        report.equal("ranges", db.ranges(), made["ranges"])
    if "marks" in made:
        report.equal("marks", db.table("SELECT s.value, count(*) FROM marker m JOIN string s ON "
                                       "s.id=m.name GROUP BY 1"), made["marks"])
    names = [row[0] for row in db.rows("SELECT name FROM thread WHERE name NOT NULL")]
    if "threads" in made:
        report.equal("threads", sorted(set(names) & set(made["threads"])), made["threads"])
    if "launching_threads" in made:
        report.equal("launching threads", db.one(
            "SELECT count(DISTINCT thread) FROM kernel WHERE config IN (SELECT c.id FROM "
            "launch_config c JOIN string s ON s.id=c.name WHERE s.value='parity_thread')"),
            made["launching_threads"]["all"])
    report.observed("calls not counted by the program", {
        name: n for name, n in calls.items() if name not in made.get("api", {})})


def compare_objects(report, db, made):
    if "events" in made:
        report.equal("events recorded", db.count("event_record"), made["events"]["all"])
        if "event_record" in db.tables:
            report.equal("waits whose event recording is known", db.count(
                "sync", "kind IN (1, 2) AND recorded NOT NULL"), db.count("sync", "kind IN (1, 2)"))
    if "streams" in made:
        streams = [f"{name} priority {priority} non_blocking {int(bool(free))}" for
                   name, priority, free in db.rows(
                       "SELECT name, priority, non_blocking FROM stream WHERE name NOT NULL")]
        report.equal("streams", sorted(set(streams) & set(made["streams"])), made["streams"])
        report.observed("all streams", db.rows(
            "SELECT native, name, priority, is_default, non_blocking FROM stream"))
    if "launching_streams" in made:
        report.equal("launching streams", db.one("SELECT count(DISTINCT stream) FROM kernel WHERE "
                     "config IN (SELECT c.id FROM launch_config c JOIN string s ON s.id=c.name WHERE "
                     "s.value='parity_stream')"), made["launching_streams"]["all"])
    if "pools" in made:
        own = ("pool IN (SELECT pool FROM memory_pool WHERE operation=3)"
               if "memory_pool" in db.tables else "0")
        # The runtime trims pools of its own accord, and tells of its default pool too.
        got = {op: db.count("memory_pool", f"operation={op} AND {own}") for op in made["pools"]}
        report.true("pools at least", all(got[op] >= n for op, n in made["pools"].items()),
                    f"{got}, the program's {made['pools']}")
    if "green" in made:
        got = (db.table("SELECT units, count(*) FROM context WHERE green GROUP BY 1")
               if "green" in [r[1] for r in db.rows("PRAGMA table_info(context)")] else None)
        report.equal("green contexts", got, made["green"])
    if "jit" in made:
        report.true("JIT compilations", db.count("jit") > 0, db.count("jit") and db.rows(
            "SELECT operation, input, count(*), sum(duration) FROM jit GROUP BY 1, 2"))
    if "devices" in made:
        report.equal("devices", db.one("SELECT count(*) FROM device WHERE id IN (SELECT device FROM "
                                       "stream)"), made["devices"]["working"])


def compare_managed(report, db, made):
    for kind, (count, size) in made.get("migrations", {}).items():
        n, moved = db.rows("SELECT count(*), coalesce(sum(bytes), 0) FROM migration WHERE kind=?",
                           int(kind))[0] if "migration" in db.tables else (0, 0)
        report.true(f"migrations of kind {kind}", n >= count and moved >= size,
                    f"{n} of {moved} bytes, expected at least {count} of {size}")
    if "migration" in db.tables:
        report.observed("migrations", db.rows(
            "SELECT kind, cause, count(*), sum(bytes), sum(faults) FROM migration GROUP BY 1, 2"))


def parity(modes, name=None):
    def check(report, recorder):
        options = ["--cuda-managed=faults"] if name == "faults" else []
        result = recorded(recorder, "parity_" + (name or modes[0]), "cuda_parity", *modes,
                          options=options)
        made, db = did(report, result), result.capture
        if not made:
            return
        for mode, why in made.get("skipped", {}).items():
            report.skipped(mode, why)
        compare_device_work(report, db, made)
        compare_memory(report, db, made)
        compare_host(report, db, made)
        compare_objects(report, db, made)
        compare_managed(report, db, made)
        trusted(report, db)
        well_timed(report, db)
        if db.statements():
            report.observed("statements", db.statements())
    return check


def whole_graphs(report, recorder):
    result = recorded(recorder, "whole_graphs", "cuda_parity", "graph_capture",
                      options=["--cuda-graph=graph"])
    made, db = did(report, result), result.capture
    if not made:
        return
    report.equal("whole-graph records", db.count("graph_launch"), made["graph_launches"]["all"])
    report.equal("kernels of graphs", db.count("kernel", "graph_node NOT NULL"), 0)
    report.equal("graph launches without times", db.count(
        "graph_launch", "start IS NULL OR duration IS NULL"), 0)
    trusted(report, db)
