/* What a capture file holds. The only description of the tables: the writer creates them from this
 * list and docs/format.md is made from it (scripts/format_doc.sh, checked by a test).
 *
 * Rows are compact because a capture has millions of them: times are nanoseconds since
 * capture.start_mono_ns, ends are durations, names are string ids, and a call that made exactly one
 * device record lives in that record's row (api_* columns) instead of a row of its own. */
#include "libprof/store/schema.h"

#define C(...) ((const struct prof_column[]){__VA_ARGS__, {0}})
#define ID {"id", "INTEGER PRIMARY KEY", "row number"}
#define API                                                                                        \
    {"api_name", "INTEGER", "string.id of the API call that asked for it; NULL = unknown"},        \
        {"api_lead", "INTEGER", "ns from the call's start to `start` (may be negative); when "     \
                                "`start` is NULL, the call's start in ns since capture start"},    \
        {"api_duration", "INTEGER", "ns the call took on the host"},                               \
        {"thread", "INTEGER", "thread.id that made the call"},                                     \
        {"correlation", "INTEGER",                                                                 \
         "number shared with the api_call row of a graph launch; NULL when the call is in this row"}
#define DEVICE_TIMES                                                                               \
    {"start", "INTEGER", "ns since capture start; NULL = never seen to start"},                    \
        {"duration", "INTEGER", "ns; NULL = not seen to end"},                                     \
        {"stream", "INTEGER", "stream.id"}
#define DELAYS                                                                                     \
    {"queue_delay", "INTEGER", "ns from queued (host enqueued it) to start; NULL = unknown"},      \
        {"submit_delay", "INTEGER", "ns from submitted to the device to start; NULL = unknown"}

const struct prof_table prof_tables[] = {
    {"capture", "One row: what was recorded, where and when.",
     C(ID,
       {"state", "TEXT", "recording, closing, complete (every process ended and was read), "
                         "recovered (finished by perfkit recover) or merged"},
       {"perfkit_version", "TEXT", "version that wrote the file"},
       {"command", "TEXT", "the command line, arguments separated by spaces, quoted for a shell"},
       {"directory", "TEXT", "working directory"}, {"host", "TEXT", "host name"},
       {"boot_id", "TEXT", "of the kernel"}, {"kernel", "TEXT", "uname -sr"},
       {"cpu", "TEXT", "processor model"}, {"cpu_count", "INTEGER", "online processors"},
       {"start_realtime_ns", "INTEGER", "CLOCK_REALTIME at capture start, ns since 1970"},
       {"start_mono_ns", "INTEGER", "CLOCK_MONOTONIC at capture start: the zero of all times"},
       {"start_raw_ns", "INTEGER", "CLOCK_MONOTONIC_RAW at capture start"},
       {"duration", "INTEGER", "ns from start to the end of the last process; NULL = unknown"},
       {"exit_status", "INTEGER", "of the command; NULL when a signal ended it or it is unknown"},
       {"exit_signal", "INTEGER", "signal that ended the command, or NULL"},
       {"spool", "TEXT", "spool directory while recording, NULL afterwards"},
       {"trace", "TEXT", "domains asked for, comma separated"})},
    {"capture_health", "The trust block: counters and statements, per process.",
     C(ID, {"process", "INTEGER", "process.id, NULL = the capture as a whole"},
       {"subject", "TEXT", "launch, transfer, memset, allocation, range, record, collector, ..."},
       {"item", "TEXT", "called, recorded, failed, captured, dropped, outstanding, remainder, "
                        "or a collector's name"},
       {"value", "INTEGER", "count; NULL when the line is a statement"},
       {"note", "TEXT", "statement for people"})},
    {"clock_sync", "Pairs of simultaneous clock readings, about one a second and clock.",
     C(ID, {"process", "INTEGER", "process.id"}, {"device", "INTEGER", "device.id or NULL"},
       {"clock", "TEXT", "name of the source clock"},
       {"source_ns", "INTEGER", "reading of the source clock, ns"},
       {"mono_ns", "INTEGER", "CLOCK_MONOTONIC at the same moment, ns (absolute)"},
       {"error_ns", "INTEGER", "half the width of the bracket, ns"})},
    {"string", "Interned text.",
     C(ID, {"value", "TEXT", "UTF-8 where the program's bytes are; other bytes are kept"})},
    {"process", "Processes of the target.",
     C(ID, {"pid", "INTEGER", "as the kernel counts"}, {"parent_pid", "INTEGER", ""},
       {"command", "TEXT", "arguments joined by spaces, cut at 200 bytes"},
       {"birth", "TEXT", "start (a new program) or fork"},
       {"start", "INTEGER", "ns since capture start"},
       {"end", "INTEGER", "ns since capture start; NULL = not seen"},
       {"end_reason", "TEXT", "exit, _exit, quick_exit, exec, signal, unseen, running"},
       {"exit_status", "INTEGER", "NULL = unknown"}, {"exit_signal", "INTEGER", "or NULL"},
       {"host", "TEXT", "NULL = capture.host"}, {"boot_id", "TEXT", "NULL = capture.boot_id"},
       {"rank", "INTEGER", "of a distributed run, or NULL"},
       {"spool", "TEXT", "file name of its spool; NULL when it made no event"})},
    {"thread", "Threads that made events.",
     C(ID, {"process", "INTEGER", "process.id"}, {"tid", "INTEGER", "as the kernel counts"},
       {"name", "TEXT", "NULL = unknown"})},
    {"device", "Devices as each process saw them.",
     C(ID, {"process", "INTEGER", "process.id"}, {"api", "TEXT", "cuda, opencl"},
       {"ordinal", "INTEGER", "as the program counts devices"}, {"name", "TEXT", ""},
       {"vendor", "TEXT", ""}, {"driver", "TEXT", "driver version"}, {"uuid", "TEXT", ""},
       {"kind", "TEXT", "gpu, cpu or other"}, {"integrated", "INTEGER", "1 = shares host memory"},
       {"compute_major", "INTEGER", "CUDA compute capability"}, {"compute_minor", "INTEGER", ""},
       {"units", "INTEGER", "SMs or compute units"}, {"warp", "INTEGER", "threads"},
       {"clock_khz", "INTEGER", "peak core clock"}, {"memory_clock_khz", "INTEGER", ""},
       {"memory_bus_bits", "INTEGER", ""}, {"memory_bytes", "INTEGER", "total"},
       {"memory_bandwidth", "INTEGER", "bytes/s, theoretical peak"}, {"l2_bytes", "INTEGER", ""},
       {"shared_per_unit_bytes", "INTEGER", ""}, {"shared_per_block_bytes", "INTEGER", ""},
       {"registers_per_unit", "INTEGER", ""}, {"max_threads_per_unit", "INTEGER", ""},
       {"max_block", "INTEGER", "threads"})},
    {"context", "CUDA and OpenCL contexts.",
     C(ID, {"process", "INTEGER", "process.id"}, {"device", "INTEGER", "device.id or NULL"},
       {"api", "TEXT", "cuda, opencl"}, {"native", "INTEGER", "the API's number or handle"})},
    {"stream", "CUDA streams and OpenCL queues.",
     C(ID, {"process", "INTEGER", "process.id"}, {"device", "INTEGER", "device.id"},
       {"context", "INTEGER", "context.id"}, {"api", "TEXT", "cuda, opencl"},
       {"native", "INTEGER", "the API's number or handle"}, {"name", "TEXT", "NULL = unnamed"},
       {"priority", "INTEGER", "NULL = unknown"}, {"is_default", "INTEGER", "1 = default stream"},
       {"out_of_order", "INTEGER", "1 = OpenCL out-of-order queue"},
       {"non_blocking", "INTEGER", "1 = does not wait for the default stream"},
       {"clock", "TEXT", "clock of its device times before conversion"})},
    {"launch_config", "Distinct (kernel, grid, block, resources).",
     C(ID, {"name", "INTEGER", "string.id of the kernel name as the API gives it"},
       {"demangled", "INTEGER", "string.id of the readable name; NULL = the same"},
       {"grid_x", "INTEGER", "blocks (work-groups)"}, {"grid_y", "INTEGER", ""},
       {"grid_z", "INTEGER", ""}, {"block_x", "INTEGER", "threads (work-items); NULL = chosen by "
                                                         "the runtime, grid then counts threads"},
       {"block_y", "INTEGER", ""}, {"block_z", "INTEGER", ""},
       {"cluster_x", "INTEGER", "blocks per cluster, NULL = none"}, {"cluster_y", "INTEGER", ""},
       {"cluster_z", "INTEGER", ""}, {"registers", "INTEGER", "per thread"},
       {"shared_static", "INTEGER", "bytes per block"},
       {"shared_dynamic", "INTEGER", "bytes per block"},
       {"local_bytes", "INTEGER", "per thread"},
       {"ragged", "INTEGER", "1 = the NDRange is not a multiple of the work-group size"})},
    {"kernel", "Kernel executions.",
     C(ID, DEVICE_TIMES, {"config", "INTEGER", "launch_config.id"}, API, DELAYS,
       {"graph_node", "INTEGER", "CUDA graph node id, or NULL"},
       {"flags", "INTEGER", "1 cooperative, 2 launched by the device, 4 failed, 8 abandoned; "
                            "NULL = none"},
       {"stack", "INTEGER", "stack.id or NULL"})},
    {"transfer", "Copies.",
     C(ID, DEVICE_TIMES, {"bytes", "INTEGER", "bytes moved"},
       {"kind", "INTEGER", "1 HtoD, 2 DtoH, 3 HtoA, 4 AtoH, 5 AtoA, 6 AtoD, 7 DtoA, 8 DtoD, "
                           "9 HtoH, 10 PtoP, 11 map, 12 unmap, 13 migrate"},
       API, DELAYS,
       {"source_kind", "INTEGER", "1 pageable, 2 pinned, 3 device, 4 array/image, 5 managed, "
                                  "6 device static, 7 managed static, 8 SVM, 9 pool; NULL unknown"},
       {"target_kind", "INTEGER", "as source_kind"},
       {"blocking", "INTEGER", "1 = the call waited, 0 = it did not, NULL = unknown"},
       {"peer", "INTEGER", "device.id of the other side, or NULL"},
       {"graph_node", "INTEGER", "or NULL"}, {"flags", "INTEGER", "as in kernel"},
       {"stack", "INTEGER", "stack.id or NULL"})},
    {"memset", "Fills.",
     C(ID, DEVICE_TIMES, {"bytes", "INTEGER", "bytes written"},
       {"value", "INTEGER", "low 32 bits of the pattern"}, API, DELAYS,
       {"memory_kind", "INTEGER", "as transfer.source_kind"}, {"graph_node", "INTEGER", "or NULL"},
       {"flags", "INTEGER", "as in kernel"}, {"stack", "INTEGER", "stack.id or NULL"})},
    {"sync", "Waits of the host, and of a stream for an event.",
     C(ID, {"start", "INTEGER", "ns since capture start"}, {"duration", "INTEGER", "ns"},
       {"stream", "INTEGER", "stream.id; NULL = all of the context"},
       {"kind", "INTEGER", "1 event, 2 stream waits for event, 3 stream, 4 context; 0 unknown"},
       API, {"event", "INTEGER", "the API's event number, or NULL"},
       {"stack", "INTEGER", "stack.id or NULL"})},
    {"api_call", "API calls that made no device record, or many (a graph launch), or failed.",
     C(ID, {"start", "INTEGER", "ns since capture start"}, {"duration", "INTEGER", "ns"},
       {"thread", "INTEGER", "thread.id"}, {"name", "INTEGER", "string.id"},
       {"result", "INTEGER", "the API's code; NULL = success"},
       {"source", "INTEGER", "1 CUDA runtime, 2 CUDA driver, 3 OpenCL"},
       {"correlation", "INTEGER", "shared with the device records of a graph launch, or NULL"},
       {"stack", "INTEGER", "stack.id or NULL"})},
    {"allocation", "Allocations with their lifetime.",
     C(ID, {"process", "INTEGER", "process.id"}, {"start", "INTEGER", "ns since capture start"},
       {"end", "INTEGER", "when it was freed, ns since capture start; NULL = never"},
       {"bytes", "INTEGER", ""}, {"kind", "INTEGER", "as transfer.source_kind"},
       {"native", "INTEGER", "id in the source: an address, or a number of ours"},
       {"address", "INTEGER", "or NULL"}, {"source", "INTEGER", "as api_call.source"},
       {"device", "INTEGER", "device.id or NULL"}, {"context", "INTEGER", "context.id or NULL"},
       {"thread", "INTEGER", "thread.id that allocated"},
       {"end_thread", "INTEGER", "thread.id that freed"},
       {"stack", "INTEGER", "stack.id or NULL"})},
    {"range", "NVTX ranges.",
     C(ID, {"start", "INTEGER", "ns since capture start"},
       {"duration", "INTEGER", "ns; NULL = still open at the end of the capture"},
       {"thread", "INTEGER", "thread.id that opened it"},
       {"name", "INTEGER", "string.id of the message"},
       {"domain", "INTEGER", "string.id; NULL = default domain"},
       {"depth", "INTEGER", "nesting in its thread and domain, 0 = outermost; NULL = start/end"},
       {"end_thread", "INTEGER", "thread.id that ended a start/end range when another"},
       {"category", "INTEGER", "or NULL"}, {"color", "INTEGER", "ARGB or NULL"},
       {"payload", "", "number given with the range, or NULL"})},
    {"marker", "NVTX marks.",
     C(ID, {"start", "INTEGER", "ns since capture start"}, {"thread", "INTEGER", "thread.id"},
       {"name", "INTEGER", "string.id"}, {"domain", "INTEGER", "string.id or NULL"},
       {"category", "INTEGER", "or NULL"}, {"color", "INTEGER", "ARGB or NULL"},
       {"payload", "", "number, or NULL"})},
    {"category", "Names of NVTX categories.",
     C(ID, {"process", "INTEGER", "process.id"}, {"domain", "INTEGER", "string.id or NULL"},
       {"category", "INTEGER", "as in range and marker"}, {"name", "TEXT", ""})},
    {"work", "FLOP and bytes declared through perfkit/annotate.h.",
     C(ID, {"range", "INTEGER", "range.id it belongs to"}, {"flop", "REAL", "NULL = not declared"},
       {"bytes_read", "REAL", "NULL = not declared"},
       {"bytes_written", "REAL", "NULL = not declared"})},
    {"module", "Loaded object files and GPU modules.",
     C(ID, {"process", "INTEGER", "process.id"}, {"start", "INTEGER", "ns since capture start"},
       {"path", "TEXT", ""}, {"build_id", "TEXT", "hexadecimal or NULL"},
       {"address", "INTEGER", "load address"}, {"bytes", "INTEGER", "size in memory"})},
    {"rollup", "Kernel time per second: what live views and overviews read.",
     C(ID, {"second", "INTEGER", "whole seconds since capture start of the kernel's start"},
       {"stream", "INTEGER", "stream.id (gives process and device)"},
       {"config", "INTEGER", "launch_config.id"}, {"count", "INTEGER", "kernels"},
       {"sum", "INTEGER", "ns"}, {"min", "INTEGER", "ns"}, {"max", "INTEGER", "ns"},
       {"histogram", "BLOB", "48 little-endian 32-bit counts; bucket i holds durations of "
                             "[2^i, 2^(i+1)) ns, the last one all above; trailing zeros cut"})},
    {0},
};

const struct prof_view prof_views[] = {
    {"api_all", "Every API call once, those that live in a device record's row too.",
     "SELECT start, duration, thread, name, result, source, correlation, 'api_call' AS place, id "
     "FROM api_call UNION ALL "
     "SELECT CASE WHEN start IS NULL THEN api_lead ELSE start - api_lead END, api_duration, thread, "
     "api_name, NULL, NULL, NULL, 'kernel', id FROM kernel WHERE api_name NOT NULL UNION ALL "
     "SELECT CASE WHEN start IS NULL THEN api_lead ELSE start - api_lead END, api_duration, thread, "
     "api_name, NULL, NULL, NULL, 'transfer', id FROM transfer WHERE api_name NOT NULL UNION ALL "
     "SELECT CASE WHEN start IS NULL THEN api_lead ELSE start - api_lead END, api_duration, thread, "
     "api_name, NULL, NULL, NULL, 'memset', id FROM memset WHERE api_name NOT NULL UNION ALL "
     "SELECT start - api_lead, api_duration, thread, "
     "api_name, NULL, NULL, NULL, 'sync', id FROM sync WHERE api_name NOT NULL"},
    {0},
};
