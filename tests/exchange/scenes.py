"""Captures for the exchange tests, made with SQL: those of tests/report, and one with what they lack."""
import os
import sqlite3
import subprocess

# Two processes whose device 0 are different GPUs, graphs, pools, managed memory, events, JIT, counters.
MORE = """
INSERT INTO capture(state, perfkit_version, command, host, start_realtime_ns, start_mono_ns, duration)
VALUES('complete', '0.1.0', './both', 'node', 1785549185123456789, 7000000000, 9000000);
INSERT INTO process(pid, command, birth, start, end, spool) VALUES(500, './both 0', 'start', 0, 9000000, 'a'),
  (501, './both 1', 'fork', 10, 9000000, 'b');
INSERT INTO thread(process, tid, name) VALUES(1, 500, NULL), (1, 510, 'worker'), (2, 501, NULL);
INSERT INTO device(process, api, ordinal, name, uuid, kind, compute_major, compute_minor, units) VALUES
  (1, 'cuda', 0, 'GPU A', 'GPU-a', 'gpu', 9, 0, 132), (2, 'cuda', 0, 'GPU B', 'GPU-b', 'gpu', 9, 0, 132),
  (2, 'opencl', 0, 'CPU C', 'c', 'cpu', NULL, NULL, 2);
INSERT INTO context(process, device, api, native) VALUES(1, 1, 'cuda', 1), (2, 2, 'cuda', 1),
  (2, 3, 'opencl', 93824992231424);
INSERT INTO stream(process, device, context, api, native, is_default, priority) VALUES
  (1, 1, 1, 'cuda', 7, 1, 0), (2, 2, 2, 'cuda', 7, 1, -5), (2, 3, 3, 'opencl', 93824992239999, 0, NULL);
INSERT INTO string(id, value) VALUES(1, '_Z4gemmIfEvPf'), (2, 'void ns::gemm<float>(float*)'), (3, 'cudaLaunchKernel'),
  (4, 'cuLaunchKernel'), (5, 'cudaGraphLaunch'), (6, 'clEnqueueNDRangeKernel'), (7, 'step'), (8, 'library'), (9, 'cudaMemcpy'),
  (10, 'cudaEventSynchronize'), (11, 'cudaMalloc'), (12, '/cache/x');
INSERT INTO launch_config(name, demangled, grid_x, grid_y, grid_z, block_x, block_y, block_z, cluster_x, cluster_y,
  cluster_z, registers, shared_static, shared_dynamic, local_bytes) VALUES
  (1, 2, 10, 1, 1, 128, 1, 1, NULL, NULL, NULL, 40, 16, 1024, 0), (2, NULL, 4, 2, 1, 64, 1, 1, 2, 1, 1, 32, 0, 0, 8),
  (6, NULL, 100, 1, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread, flags) VALUES
  (1000, 500, 1, 1, 3, 400, 100, 1, NULL), (2000, 700, 1, 2, 4, -10, 90, 2, 1), (2000, 900, 2, 1, 3, 300, 80, 3, NULL),
  (3000, 400, 3, 3, 6, 200, 50, 3, NULL), (9000, NULL, 1, 1, 3, 100, 50, 1, NULL), (NULL, NULL, 1, 1, 3, 9500, 50, 1, 8);
INSERT INTO kernel(start, duration, stream, config, thread, correlation, graph_node) VALUES
  (5000, 100, 1, 1, NULL, 77, 4294967297), (5200, 100, 1, 2, NULL, 77, 4294967298);
INSERT INTO transfer(start, duration, stream, bytes, kind, correlation, graph_node) VALUES(5400, 10, 1, 64, 1, 77, 4294967299);
INSERT INTO transfer(start, duration, stream, bytes, kind, api_name, api_lead, api_duration, thread, source_kind,
  target_kind, peer) VALUES(6000, 50, 1, 4096, 10, 9, 100, 200, 1, 3, 3, 2), (6100, 50, 1, 8192, 1, 9, 10, 200, 1, NULL, NULL, NULL);
INSERT INTO memset(start, duration, stream, bytes, value, thread, memory_kind) VALUES(6200, 5, 2, 32, 255, NULL, 3);
INSERT INTO sync(start, duration, stream, kind, api_name, api_lead, api_duration, thread, event, recorded) VALUES
  (6300, 100, 1, 1, 10, 0, 100, 1, 5, 6), (6500, 10, NULL, 4, NULL, NULL, NULL, 1, NULL, NULL), (6600, 10, 1, 2, NULL, NULL, NULL, 1, 5, 6);
INSERT INTO api_call(start, duration, thread, name, source, correlation, result) VALUES(4900, 60, 1, 5, 1, 77, NULL),
  (4000, 10, 1, 11, 1, NULL, 2);
INSERT INTO event_record(start, stream, event, recorded, correlation) VALUES(6250, 1, 5, 6, 99), (NULL, 1, 5, 7, 100);
INSERT INTO graph_launch(start, duration, stream, graph, correlation) VALUES(7000, 300, 1, 3, 78);
INSERT INTO graph_node(start, thread, node, graph, original, class) VALUES(100, 1, 4294967297, 1, NULL, 1);
INSERT INTO overhead(start, duration, process, thread, kind) VALUES(50, 10, 1, 1, 6), (60, 5, 1, NULL, 2);
INSERT INTO jit(start, duration, process, thread, device, input, operation, cache_bytes, path) VALUES(10, 30, 1, 1, 1, 1, 3, 99, 12);
INSERT INTO memory_pool(process, start, pool, operation, device, bytes, used_bytes, threshold_bytes, thread) VALUES
  (1, 90, 123456, 1, 1, 1000, 10, 5, 1);
INSERT INTO migration(start, duration, process, kind, bytes, address, target) VALUES(7500, 20, 1, 1, 65536, 4096, 1);
INSERT INTO migration(start, duration, process, kind, faults, address, source) VALUES(7600, 20, 1, 4, 12, 4096, 1),
  (7700, NULL, 1, 3, 1, 8192, NULL), (7800, 1, 1, 5, NULL, 8192, NULL);
INSERT INTO allocation(process, start, end, bytes, kind, native, address, source, device, context, thread) VALUES
  (1, 80, 8000, 4096, 3, 9007199254740993, 9007199254740993, 1, 1, 1, 1), (1, 85, NULL, 128, 2, 5, 5, 1, NULL, 1, 2),
  (1, 8100, NULL, 64, 3, 9007199254740993, 9007199254740993, 1, 1, 1, 1);
INSERT INTO range(start, duration, thread, name, domain, depth, color, payload) VALUES(500, 8000, 1, 7, NULL, 0, 4278255360, 42),
  (900, 100, 1, 7, 8, 0, NULL, 1.5), (950, 20, 1, 7, 8, 1, NULL, NULL), (600, NULL, 2, 7, NULL, 0, NULL, NULL);
INSERT INTO range(start, duration, thread, name, depth, end_thread) VALUES(700, 300, 1, 7, NULL, 2);
INSERT INTO marker(start, thread, name, domain, category) VALUES(810, 1, 7, 8, 3);
INSERT INTO category(process, domain, category, name) VALUES(1, 8, 3, 'io');
INSERT INTO counter_device(uuid, ordinal, name, interval) VALUES('GPU-a', 0, 'GPU A', 1000);
INSERT INTO counter(counter_device, slot, name, unit, kind) VALUES(1, 0, 'dram_bytes', 'byte', 1);
INSERT INTO counter_sample(counter_device, start, duration, c0) VALUES(1, 0, 1000, 1234.4), (1, 1000, 1000, NULL);
INSERT INTO capture_health(process, subject, item, value) VALUES(1, 'launch', 'called', 6), (1, 'launch', 'dropped', 1);
"""


def make(tool, folder, report_scenes):
    """name -> capture"""
    made = {}
    os.makedirs(folder, exist_ok=True)
    scenes = {name: os.path.join(report_scenes, name + ".sql") for name in ("normal", "awkward", "hostile", "empty")}
    scenes["both"] = os.path.join(folder, "both.sql")
    with open(scenes["both"], "w", encoding="utf-8") as out:
        out.write(MORE)
    for name, sql in scenes.items():
        capture = os.path.join(folder, name + ".sqlite")
        subprocess.run([tool, "make", sql, capture], check=True)
        made[name] = capture
    return made


def ask(path, sql, *values):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    db.text_factory = lambda b: b.decode("utf-8", "surrogateescape")
    try:
        return db.execute(sql, values).fetchall()
    finally:
        db.close()


def one(path, sql, *values):
    return ask(path, sql, *values)[0][0]
