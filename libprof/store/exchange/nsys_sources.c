/* What fills each table of an Nsight Systems export, as SELECTs over a capture. The temporary
 * tables nsys_process, nsys_thread, nsys_stream, nsys_context, nsys_gpu, nsys_short, nsys_stack,
 * nsys_frame and nsys_text are made by nsys_export.c first: they give each row of the capture its
 * number there.
 *
 * Correlation numbers there join a call with its device records. A capture holds both in one row,
 * so they are made of row numbers: eight spaces, one a table, the sixth for what graphs share. */

#include "libprof/store/exchange/nsys.h"

#define OF(row, space) row ".id * 8 + " #space
#define OF_GRAPH(row) "coalesce(" row ".correlation * 8 + 6, "
#define DEVICE_OF(row, space)                                                                      \
    row ".start, " row ".start + " row                                                             \
        ".duration, s.deviceId, s.contextId, NULL, s.streamId, " OF_GRAPH(row)                     \
            OF(row, space) "), s.globalPid"
#define TIMED(row) row ".start NOT NULL AND " row ".duration NOT NULL"

/* WIRE_MEMORY_* to nsys: shifted by one, SVM as managed, a pool as device memory */
#define MEMORY(kind)                                                                               \
    "CASE WHEN " kind " BETWEEN 1 AND 7 THEN " kind " - 1 WHEN " kind " = 8 THEN 4 WHEN " kind     \
    " = 9 THEN 2 ELSE 7 END"

/* The call that lives in a device record's row. OpenCL has no class of its own there. */
#define CLASS_OF(name) "CASE WHEN " name ".value GLOB 'cu[A-Z]*' THEN 1 ELSE 0 END"
#define CALLED "CASE WHEN k.start IS NULL THEN k.api_lead ELSE k.start - k.api_lead END"
#define CALL_OF(table, space)                                                                      \
    {                                                                                              \
        "CUPTI_ACTIVITY_KIND_RUNTIME",                                                             \
            "SELECT " CALLED ", " CALLED " + k.api_duration, " CLASS_OF("n") ", t.globalTid, " OF( \
                "k", space) ", k.api_name, 0, k.stack FROM " table                                 \
                            " k JOIN nsys_thread t ON t.id = "                                     \
                            "k.thread JOIN string n ON n.id = k.api_name WHERE k.api_lead + "      \
                            "k.api_duration NOT NULL"                                              \
    }

#define PAYLOAD(row)                                                                               \
    "NULL, CASE WHEN typeof(" row ".payload) = 'integer' THEN " row ".payload END, "               \
    "CASE WHEN typeof(" row ".payload) = 'real' THEN " row ".payload END"

const struct nsys_source nsys_sources[] = {
    {"StringIds", "SELECT 0, '' UNION ALL SELECT id, coalesce(value, '') FROM string UNION ALL "
                  "SELECT id + (SELECT coalesce(max(id), 0) FROM string), value FROM nsys_text"},
    {"CUPTI_ACTIVITY_KIND_KERNEL",
     "SELECT " DEVICE_OF(
         "k",
         1) ", coalesce(c.demangled, c.name), h.short, c.name, "
            "1 + (coalesce(k.flags, 0) & 1), 0, c.registers, c.grid_x, c.grid_y, c.grid_z, "
            "c.block_x, "
            "c.block_y, "
            "c.block_z, c.shared_static, c.shared_dynamic, c.local_bytes, NULL, k.id, NULL, "
            "k.graph_node, NULL, "
            "NULL, NULL, NULL, NULL, c.cluster_x, c.cluster_y, c.cluster_z, NULL, NULL, NULL, "
            "NULL, '[]' "
            "FROM kernel k JOIN nsys_stream s ON s.id = k.stream JOIN launch_config c ON c.id = "
            "k.config "
            "LEFT JOIN nsys_short h ON h.id = coalesce(c.demangled, c.name) WHERE " TIMED("k")},
    {"CUPTI_ACTIVITY_KIND_MEMCPY",
     "SELECT " DEVICE_OF(
         "k",
         2) ", k.bytes, CASE WHEN k.kind BETWEEN 0 AND 10 THEN k.kind WHEN "
            "k.kind = 11 "
            "THEN 2 WHEN k.kind = 12 THEN 1 ELSE 0 END, NULL, " MEMORY(
                "k.source_kind") ", "
                                 "" MEMORY("k.target_kind") ", NULL, NULL, (SELECT gpu FROM "
                                                            "nsys_gpu WHERE id = k.peer), NULL, "
                                                            "NULL, k.graph_node, NULL, "
                                                            "1 "
                                                            "FROM transfer k JOIN nsys_stream s ON "
                                                            "s.id = k.stream WHERE " TIMED("k")},
    {"CUPTI_ACTIVITY_KIND_MEMCPY",
     "SELECT m.start, m.start + m.duration, coalesce(b.gpu, a.gpu, 0), NULL, NULL, "
     "coalesce(s.streamId, " NSYS_NO_EVENT "), 0, "
     "p.globalPid, m.bytes, CASE m.kind WHEN 1 THEN 11 WHEN 2 THEN 12 ELSE 13 END, NULL, 4, 4, "
     "a.gpu, NULL, "
     "b.gpu, NULL, m.cause, NULL, m.address, 1 FROM migration m JOIN nsys_process p ON p.id = "
     "m.process "
     "LEFT JOIN nsys_stream s ON s.id = m.stream LEFT JOIN nsys_gpu a ON a.id = m.source LEFT "
     "JOIN nsys_gpu "
     "b ON b.id = m.target WHERE m.kind IN (1, 2, 8) AND " TIMED("m")},
    {"CUPTI_ACTIVITY_KIND_MEMSET",
     "SELECT " DEVICE_OF("k", 3) ", k.value, k.bytes, k.graph_node, " MEMORY(
         "k.memory_kind") " FROM memset k JOIN nsys_stream s ON s.id = k.stream WHERE " TIMED("k")},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
     "SELECT k.start, k.start + k.duration, s.deviceId, s.contextId, NULL, "
     "coalesce(s.streamId, " NSYS_NO_EVENT "), " OF(
         "k",
         4) ", coalesce(s.globalPid, t.globalPid), NULL, k.kind, coalesce(k.event, " NSYS_NO_EVENT
            "), coalesce(k.recorded, " NSYS_NO_EVENT
            ") FROM sync k LEFT JOIN nsys_stream s ON s.id = "
            "k.stream "
            "LEFT JOIN nsys_thread t ON t.id = k.thread WHERE " TIMED(
                "k") " AND coalesce(s.globalPid, t.globalPid) NOT NULL"},
    CALL_OF("kernel", 1),
    CALL_OF("transfer", 2),
    CALL_OF("memset", 3),
    CALL_OF("sync", 4),
    {"CUPTI_ACTIVITY_KIND_RUNTIME",
     "SELECT c.start, c.start + c.duration, CASE c.source WHEN 2 THEN 1 ELSE 0 END, "
     "t.globalTid, " OF_GRAPH("c")
         OF("c", 5) "), c.name, coalesce(c.result, 0), c.stack FROM api_call c JOIN "
                    "nsys_thread t ON "
                    "t.id = c.thread WHERE c.duration NOT NULL"},
    /* Callers have smaller numbers: a damaged chain ends too. */
    {"CUDA_CALLCHAINS",
     "WITH RECURSIVE chain(id, stack, frame, depth) AS ("
     "SELECT u.id, s.id, s.frame, 0 FROM nsys_stack u JOIN stack s ON s.id = u.id UNION ALL "
     "SELECT c.id, p.id, p.frame, c.depth + 1 FROM chain c JOIN stack s ON s.id = c.stack "
     "JOIN stack p ON p.id = s.parent WHERE p.id < s.id) "
     "SELECT c.id, f.symbol, f.module, f.unresolved, f.address, "
     "row_number() OVER (PARTITION BY c.id ORDER BY c.depth, f.level) - 1 "
     "FROM chain c JOIN nsys_frame f ON f.frame = c.frame"},
    {"CUPTI_ACTIVITY_KIND_CUDA_EVENT",
     "SELECT coalesce(e.start, 0), s.deviceId, s.contextId, NULL, s.streamId, e.correlation * 8 + "
     "7, "
     "s.globalPid, e.event, coalesce(e.recorded, " NSYS_NO_EVENT ") FROM event_record e JOIN "
     "nsys_stream s "
     "ON s.id = e.stream"},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
     "SELECT g.start, g.start + g.duration, s.deviceId, s.contextId, NULL, s.streamId, "
     "g.correlation * 8 + "
     "6, s.globalPid, g.graph, g.graph FROM graph_launch g JOIN nsys_stream s ON s.id = g.stream "
     "WHERE " TIMED("g")},
    {"CUPTI_ACTIVITY_KIND_OVERHEAD",
     "SELECT o.start, o.start + o.duration, 103, coalesce(t.globalTid, p.globalPid), NULL, NULL, "
     "CASE WHEN "
     "o.kind BETWEEN 1 AND 7 THEN o.kind + 1 ELSE 1 END FROM overhead o JOIN nsys_process p ON "
     "p.id = "
     "o.process LEFT JOIN nsys_thread t ON t.id = o.thread WHERE " TIMED("o")},
    {"CUPTI_ACTIVITY_KIND_JIT",
     "SELECT j.start, j.start + j.duration, 102, coalesce(t.globalTid, p.globalPid), NULL, NULL, "
     "2, j.input, "
     "j.operation, g.gpu, j.correlation, j.cache_bytes, n.value FROM jit j JOIN nsys_process p ON "
     "p.id = "
     "j.process LEFT JOIN nsys_thread t ON t.id = j.thread LEFT JOIN nsys_gpu g ON g.id = "
     "j.device LEFT JOIN "
     "string n ON n.id = j.path WHERE " TIMED("j")},
    {"CUDA_GRAPH_NODE_EVENTS",
     "SELECT g.start, g.start, 77, t.globalTid, 0, g.node, g.original FROM graph_node g JOIN "
     "nsys_thread t ON "
     "t.id = g.thread"},
    {"CUDA_GPU_MEMORY_USAGE_EVENTS",
     "SELECT a.start, p.globalPid, g.gpu, c.contextId, coalesce(a.address, a.native), 0, "
     "a.bytes, " MEMORY(
         "a.kind") ", 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM allocation "
                   "a JOIN "
                   "nsys_process p ON p.id = a.process LEFT JOIN nsys_gpu g ON g.id = a.device "
                   "LEFT JOIN "
                   "nsys_context c ON "
                   "c.id = a.context"},
    {"CUDA_GPU_MEMORY_USAGE_EVENTS",
     "SELECT a.\"end\", p.globalPid, g.gpu, c.contextId, coalesce(a.address, a.native), 0, "
     "a.bytes, " MEMORY(
         "a.kind") ", 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM allocation "
                   "a JOIN "
                   "nsys_process p ON p.id = a.process LEFT JOIN nsys_gpu g ON g.id = a.device "
                   "LEFT JOIN "
                   "nsys_context c ON "
                   "c.id = a.context WHERE a.\"end\" NOT NULL"},
    {"CUDA_GPU_MEMORY_POOL_EVENTS",
     "SELECT m.start, p.globalPid, g.gpu, m.pool, m.operation, 1, m.correlation, m.kept_bytes, "
     "m.threshold_bytes, m.bytes, m.used_bytes FROM memory_pool m JOIN nsys_process p ON p.id = "
     "m.process LEFT "
     "JOIN nsys_gpu g ON g.id = m.device"},
    {"CUDA_UM_CPU_PAGE_FAULT_EVENTS",
     "SELECT m.start, p.globalPid, m.address, NULL, NULL, NULL, NULL, NULL, NULL FROM migration m "
     "JOIN "
     "nsys_process p ON p.id = m.process WHERE m.kind = 3"},
    {"CUDA_UM_GPU_PAGE_FAULT_EVENTS",
     "SELECT m.start, m.start + coalesce(m.duration, 0), p.globalPid, coalesce(a.gpu, b.gpu, 0), "
     "m.address, "
     "m.faults, m.cause FROM migration m JOIN nsys_process p ON p.id = m.process LEFT JOIN "
     "nsys_gpu a ON a.id "
     "= m.source LEFT JOIN nsys_gpu b ON b.id = m.target WHERE m.kind = 4"},
    {"NVTX_EVENTS", /* domains of each process: named where they are made */
     "SELECT 0, NULL, 75, NULL, NULL, NULL, s.value, p.globalPid | (p.pid & 16777215), NULL, "
     "NULL, d.domain "
     "FROM (SELECT DISTINCT t.process, r.domain FROM range r JOIN thread t ON t.id = r.thread "
     "WHERE r.domain "
     "NOT NULL UNION SELECT t.process, m.domain FROM marker m JOIN thread t ON t.id = m.thread "
     "WHERE m.domain "
     "NOT NULL UNION SELECT process, domain FROM category WHERE domain NOT NULL) d JOIN "
     "nsys_process p ON p.id "
     "= d.process JOIN string s ON s.id = d.domain"},
    {"NVTX_EVENTS",
     "SELECT 0, NULL, 33, NULL, c.category, NULL, c.name, p.globalPid | (p.pid & 16777215), NULL, "
     "NULL, "
     "coalesce(c.domain, 0) FROM category c JOIN nsys_process p ON p.id = c.process"},
    {"NVTX_EVENTS",
     "SELECT r.start, r.start + r.duration, CASE WHEN r.depth IS NULL THEN 60 ELSE 59 END, CASE "
     "WHEN r.depth "
     "IS NULL THEN r.id END, r.category, r.color, n.value, t.globalTid, CASE WHEN r.depth IS NULL "
     "AND "
     "r.duration NOT NULL THEN coalesce(e.globalTid, t.globalTid) END, r.name, coalesce(r.domain, "
     "0), " PAYLOAD(
         "r") " FROM range r JOIN nsys_thread t ON t.id = r.thread LEFT JOIN nsys_thread e ON "
              "e.id = "
              "r.end_thread LEFT JOIN string n ON n.id = r.name"},
    {"NVTX_EVENTS",
     "SELECT m.start, NULL, 34, NULL, m.category, m.color, n.value, t.globalTid, NULL, m.name, "
     "coalesce(m.domain, 0), " PAYLOAD("m") " FROM marker m JOIN nsys_thread t ON t.id = m.thread "
                                            "LEFT JOIN "
                                            "string n ON n.id = m.name"},
    {"TARGET_INFO_GPU_METRICS",
     "SELECT " NSYS_VM " | g.gpu, 0, d.name, c.slot, coalesce(c.name, c.metric) FROM counter c "
     "JOIN "
     "counter_device d ON d.id = c.counter_device JOIN nsys_counter_gpu g ON g.id = d.id"},
    {"PROCESSES", "SELECT p.globalPid, p.pid, q.command FROM nsys_process p JOIN process q ON "
                  "q.id = p.id"},
    {"ThreadNames",
     "SELECT x.id + (SELECT coalesce(max(id), 0) FROM string), t.priority, t.globalTid FROM "
     "nsys_thread t JOIN nsys_text "
     "x ON x.value = t.name"},
    {"TARGET_INFO_GPU",
     "SELECT 0, g.gpu, d.name, NULL, 1 - d.integrated, d.l2_bytes, d.memory_bytes, "
     "d.memory_bandwidth, "
     "d.clock_khz * 1000, d.units, g.gpu, CASE WHEN d.uuid LIKE 'GPU-%' THEN substr(d.uuid, 5) "
     "ELSE d.uuid END, "
     "NULL, NULL, g.gpu, NULL, NULL, NULL, NULL, NULL, NULL, NULL, d.shared_per_block_bytes, NULL, "
     "d.shared_per_unit_bytes, d.registers_per_unit, d.warp, NULL, CASE WHEN d.warp > 0 THEN "
     "d.max_threads_per_unit / d.warp END, NULL, d.max_block, NULL, NULL, NULL, NULL, NULL, NULL, "
     "d.compute_major, d.compute_minor, d.compute_major, d.compute_minor FROM device d JOIN "
     "(SELECT gpu, min(id) "
     "AS id FROM nsys_gpu GROUP BY gpu) g ON g.id = d.id"},
    {"TARGET_INFO_CUDA_DEVICE",
     "SELECT DISTINCT g.gpu, g.gpu, p.pid, CASE WHEN d.uuid LIKE 'GPU-%' THEN substr(d.uuid, 5) "
     "ELSE d.uuid "
     "END, d.units FROM device d JOIN nsys_gpu g ON g.id = d.id JOIN nsys_process p ON p.id = "
     "d.process"},
    {"TARGET_INFO_CUDA_CONTEXT_INFO",
     "SELECT coalesce((SELECT min(s.streamId) FROM nsys_stream s JOIN stream q ON q.id = s.id "
     "WHERE q.context = "
     "c.id AND q.is_default), 0), 0, 1, p.pid, c.deviceId, c.contextId, coalesce(u.contextId, 0), "
     "coalesce(q.green, 0), coalesce(q.units, 0) FROM nsys_context c JOIN context q ON q.id = "
     "c.id JOIN "
     "nsys_process p ON p.id = q.process LEFT JOIN nsys_context u ON u.id = q.parent"},
    {"TARGET_INFO_CUDA_STREAM",
     "SELECT s.streamId, 0, 1, p.pid, s.contextId, coalesce(q.priority, 0) & 4294967295, CASE "
     "WHEN q.is_default "
     "THEN 3 WHEN q.non_blocking THEN 2 ELSE 1 END FROM nsys_stream s JOIN stream q ON q.id = "
     "s.id JOIN "
     "nsys_process p ON p.id = q.process"},
    {"TARGET_INFO_SESSION_START_TIME",
     "SELECT start_realtime_ns, strftime('%Y-%m-%dT%H:%M:%S', start_realtime_ns / 1000000000, "
     "'unixepoch'), "
     "strftime('%Y-%m-%dT%H:%M:%S', start_realtime_ns / 1000000000, 'unixepoch', 'localtime'), "
     "start_mono_ns "
     "FROM capture"},
    {"ANALYSIS_DETAILS",
     "SELECT " NSYS_VM ", duration, coalesce(start_mono_ns, 0), coalesce(start_mono_ns, 0) + "
     "duration FROM "
     "capture"},
    {"DIAGNOSTIC_EVENT",
     "SELECT 0, 1, 3, CASE WHEN (h.item IN ('dropped', 'remainder') AND h.value) OR "
     "h.level = 'loss' THEN 2 ELSE 1 END, h.subject || ' ' || h.item || coalesce(' ' || h.value, "
     "'') || "
     "coalesce(': ' || h.note, "
     "''), p.globalPid FROM capture_health h LEFT JOIN nsys_process p ON p.id = h.process"},
    {"META_DATA_CAPTURE",
     "SELECT 'PERFKIT_COMMAND', command FROM capture UNION ALL SELECT 'PERFKIT_DIRECTORY', "
     "directory FROM "
     "capture UNION ALL SELECT 'PERFKIT_HOST', host FROM capture UNION ALL SELECT 'PERFKIT_CPU', "
     "cpu FROM capture "
     "UNION ALL SELECT 'PERFKIT_CPU_COUNT', cpu_count FROM capture UNION ALL SELECT "
     "'PERFKIT_KERNEL', kernel FROM "
     "capture UNION ALL SELECT 'PERFKIT_STATE', state FROM capture UNION ALL SELECT "
     "'PERFKIT_EXIT_STATUS', "
     "exit_status FROM capture"},
    {"META_DATA_EXPORT", /* so that an import knows what is no CUDA device: its number and kind */
     "SELECT DISTINCT 'PERFKIT_OPENCL_DEVICE', g.gpu || ' ' || d.kind FROM nsys_gpu g JOIN device "
     "d ON d.id = g.id WHERE d.api = "
     "'opencl'"},
    {0},
};
