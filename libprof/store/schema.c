/* What a capture file holds. The only description of the tables: the writer creates them from this
 * list and docs/format.md is made from it (scripts/format_doc.sh, checked by a test).
 *
 * Rows are compact because a capture has millions of them: times are nanoseconds since
 * capture.start_mono_ns, ends are durations, names are string ids, and a call that made exactly one
 * device record lives in that record's row (api_* columns) instead of a row of its own. */
#include <string.h>

#include "libprof/store/schema.h"

#define C(...) .columns = ((const struct prof_column[]){__VA_ARGS__, {0}})
#define ID                                                                                         \
    {                                                                                              \
        "id", "INTEGER PRIMARY KEY", "row number"                                                  \
    }
#define API                                                                                        \
    {"api_name", "INTEGER", "string.id of the API call that asked for it; NULL = unknown"},        \
        {"api_lead", "INTEGER",                                                                    \
         "ns from the call's start to `start` (may be negative); when "                            \
         "`start` is NULL, the call's start in ns since capture start"},                           \
        {"api_duration", "INTEGER", "ns the call took on the host"},                               \
        {"thread", "INTEGER", "thread.id that made the call"},                                     \
    {                                                                                              \
        "correlation", "INTEGER",                                                                  \
            "number shared with the api_call row of a graph launch; NULL when the call is in "     \
            "this row"                                                                             \
    }
#define DEVICE_TIMES                                                                               \
    {"start", "INTEGER", "ns since capture start; NULL = never seen to start"},                    \
        {"duration", "INTEGER", "ns; NULL = not seen to end"},                                     \
    {                                                                                              \
        "stream", "INTEGER", "stream.id"                                                           \
    }
#define DELAYS                                                                                     \
    {"queue_delay", "INTEGER", "ns from queued (host enqueued it) to start; NULL = unknown"},      \
    {                                                                                              \
        "submit_delay", "INTEGER", "ns from submitted to the device to start; NULL = unknown"      \
    }

const struct prof_table prof_tables[] = {
    {"capture", "One row: what was recorded, where and when.",
     C(ID,
       {"state", "TEXT",
        "recording, closing, complete (every process ended and was read), "
        "recovered (finished by perfkit recover), merged or imported (made of another tool's "
        "file)"},
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
       {"trace", "TEXT", "domains asked for, comma separated"},
       {"kernel_filter", "TEXT",
        "only kernels whose readable name matches this POSIX extended "
        "regular expression have rows; NULL = all"})},
    {"capture_health", "The trust block: counters and statements, per process.",
     C(ID, {"process", "INTEGER", "process.id, NULL = the capture as a whole"},
       {"subject", "TEXT", "launch, transfer, memset, allocation, range, record, collector, ..."},
       {"item", "TEXT",
        "called, recorded, failed, captured, dropped, outstanding, filtered, "
        "uncalled, unanswered, unreturned, remainder, or a collector's name"},
       {"value", "INTEGER", "count; NULL when the line is a statement"},
       {"note", "TEXT", "statement for people"})},
    {"clock_sync", "Pairs of simultaneous clock readings, about one a second and clock.",
     C(ID, {"process", "INTEGER", "process.id"}, {"device", "INTEGER", "device.id or NULL"},
       {"clock", "TEXT", "name of the source clock"},
       {"source_ns", "INTEGER", "reading of the source clock, ns"},
       {"mono_ns", "INTEGER", "CLOCK_MONOTONIC at the same moment, ns (absolute)"},
       {"error_ns", "INTEGER", "half the width of the bracket, ns"})},
    {"string", "Interned text.",
     C(ID, {"value", "TEXT", "UTF-8 where the program's bytes are; other bytes are kept"}),
     .shared = true},
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
       {"spool", "TEXT", "file name of its spool; NULL when it made no event"},
       {"local_rank", "INTEGER", "rank among the processes of its host, or NULL"},
       {"world_size", "INTEGER", "processes of the distributed run, or NULL"},
       {"job", "TEXT", "the scheduler's or launcher's name of the distributed run, or NULL"},
       {"part", "INTEGER",
        "merged_part.id of the capture it came from; NULL = this is no merged one"})},
    {"merged_part", "The captures that this one was merged from.",
     C(ID, {"file", "TEXT", "its name"}, {"host", "TEXT", ""}, {"boot_id", "TEXT", "of its kernel"},
       {"ranks", "TEXT", "of its processes, as 0-3,7; NULL = none is known"},
       {"state", "TEXT", "as capture.state, of it"},
       {"perfkit_version", "TEXT", "that recorded it"},
       {"start", "INTEGER", "its time 0, ns since capture start"},
       {"duration", "INTEGER", "ns; NULL = unknown"},
       {"clock", "TEXT",
        "how its times were brought to one clock: same (that of the same kernel: "
        "exact), collectives (that end together), realtime (only "
        "as good as the hosts' wall clocks), none (nothing to compare)"},
       {"clock_offset", "INTEGER", "ns added to its CLOCK_MONOTONIC, at its start; NULL = unknown"},
       {"clock_drift", "REAL", "ns added for each second after that"},
       {"clock_error", "INTEGER",
        "ns within which half of the compared collectives agree; 0 = "
        "exact, NULL = unknown"},
       {"compared", "INTEGER", "collectives whose ends were compared"},
       {"rows", "INTEGER", "events taken from it"},
       {"missing", "TEXT", "what it lacks, for people; NULL = nothing"}),
     .later = true},
    {"thread", "Threads that made events or were sampled.",
     C(ID, {"process", "INTEGER", "process.id"}, {"tid", "INTEGER", "as the kernel counts"},
       {"name", "TEXT", "given by the program (NVTX, or to the kernel); NULL = none"})},
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
       {"max_block", "INTEGER", "threads"},
       {"label", "TEXT", "name given by the program through NVTX, or NULL"})},
    {"context", "CUDA and OpenCL contexts.",
     C(ID, {"process", "INTEGER", "process.id"}, {"device", "INTEGER", "device.id or NULL"},
       {"api", "TEXT", "cuda, opencl"}, {"native", "INTEGER", "the API's number or handle"},
       {"name", "TEXT", "given by the program through NVTX, or NULL"},
       {"green", "INTEGER", "1 = a green context: some of its device's units; NULL = it has all"},
       {"parent", "INTEGER", "context.id of a green context's parent, or NULL"},
       {"units", "INTEGER", "SMs of a green context; NULL = all, or unknown"})},
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
       {"grid_z", "INTEGER", ""},
       {"block_x", "INTEGER",
        "threads (work-items); NULL = chosen by "
        "the runtime, grid then counts threads"},
       {"block_y", "INTEGER", ""}, {"block_z", "INTEGER", ""},
       {"cluster_x", "INTEGER", "blocks per cluster, NULL = none"}, {"cluster_y", "INTEGER", ""},
       {"cluster_z", "INTEGER", ""}, {"registers", "INTEGER", "per thread"},
       {"shared_static", "INTEGER", "bytes per block"},
       {"shared_dynamic", "INTEGER", "bytes per block"}, {"local_bytes", "INTEGER", "per thread"},
       {"ragged", "INTEGER", "1 = the NDRange is not a multiple of the work-group size"}),
     .shared = true},
    {"kernel", "Kernel executions.",
     C(ID, DEVICE_TIMES, {"config", "INTEGER", "launch_config.id"}, API, DELAYS,
       {"graph_node", "INTEGER", "graph_node.node of the same process, or NULL"},
       {"flags", "INTEGER",
        "1 cooperative, 2 launched by the device, 4 failed, 8 abandoned; "
        "NULL = none"},
       {"stack", "INTEGER", "stack.id or NULL"})},
    {"transfer", "Copies.",
     C(ID, DEVICE_TIMES, {"bytes", "INTEGER", "bytes moved"},
       {"kind", "INTEGER",
        "1 HtoD, 2 DtoH, 3 HtoA, 4 AtoH, 5 AtoA, 6 AtoD, 7 DtoA, 8 DtoD, "
        "9 HtoH, 10 PtoP, 11 map, 12 unmap, 13 migrate"},
       API, DELAYS,
       {"source_kind", "INTEGER",
        "1 pageable, 2 pinned, 3 device, 4 array/image, 5 managed, "
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
       {"stack", "INTEGER", "stack.id or NULL"},
       {"recorded", "INTEGER", "event_record.recorded that was waited for, or NULL"})},
    {"api_call", "API calls that made no device record, or many (a graph launch), or failed.",
     C(ID, {"start", "INTEGER", "ns since capture start"}, {"duration", "INTEGER", "ns"},
       {"thread", "INTEGER", "thread.id"}, {"name", "INTEGER", "string.id"},
       {"result", "INTEGER", "the API's code; NULL = success"},
       {"source", "INTEGER", "1 CUDA runtime, 2 CUDA driver, 3 OpenCL"},
       {"correlation", "INTEGER", "shared with the device records of a graph launch, or NULL"},
       {"stack", "INTEGER", "stack.id or NULL"})},
    {"graph_launch", "Executions of whole CUDA graphs, recorded in place of their nodes.",
     C(ID, DEVICE_TIMES, {"graph", "INTEGER", "graph id, unique in its process"},
       {"correlation", "INTEGER", "shared with the api_call row of the launch"}, DELAYS),
     .later = true},
    {"graph_node", "Nodes of CUDA graphs, as they were created or cloned.",
     C(ID, {"start", "INTEGER", "when it was created, ns since capture start"},
       {"thread", "INTEGER", "thread.id that created it, inside an API call of that time"},
       {"node", "INTEGER", "node id, unique in its process"},
       {"graph", "INTEGER", "graph id, unique in its process"},
       {"original", "INTEGER",
        "node id it was cloned from when its graph was instantiated; "
        "NULL = made by the program"},
       {"class", "INTEGER", "1 kernel, 2 copy, 3 fill, 0 another"},
       {"stack", "INTEGER", "stack.id of its creation or capture, or NULL"}),
     .later = true},
    {"event_record", "Recordings of CUDA events in streams.",
     C(ID, {"start", "INTEGER", "device time, ns since capture start; NULL = not measured"},
       {"stream", "INTEGER", "stream.id"},
       {"event", "INTEGER", "the API's event number, as in sync"},
       {"recorded", "INTEGER", "number of this recording, unique in its process, or NULL"},
       {"correlation", "INTEGER", "the API's number of the call, or NULL"}),
     .later = true},
    {"overhead", "Time that the driver or the profiling tools took from the program.",
     C(ID, {"start", "INTEGER", "ns since capture start"}, {"duration", "INTEGER", "ns"},
       {"process", "INTEGER", "process.id"},
       {"thread", "INTEGER", "thread.id it was taken from; NULL = no thread's"},
       {"kind", "INTEGER",
        "1 driver compiles, 2 tool writes out a buffer, 3 tool changes device code, 4 tool's own "
        "resources, 5 module load, 6 function loaded at first use, 7 call waits for room in the "
        "command queue, 8 tool waits for a buffer, 9 unified memory set up; 0 unknown"},
       {"stream", "INTEGER", "stream.id or NULL"},
       {"correlation", "INTEGER", "the API's number of the call, or NULL"}),
     .later = true},
    {"memory_pool", "What happened to memory pools, an operation a row.",
     C(ID, {"process", "INTEGER", "process.id"}, {"start", "INTEGER", "ns since capture start"},
       {"pool", "INTEGER", "its address, unique while it lives"},
       {"operation", "INTEGER",
        "1 made, 2 destroyed, 3 trimmed, 4 seen when "
        "memory was taken from it or given back; 0 unknown"},
       {"device", "INTEGER", "device.id or NULL"},
       {"bytes", "INTEGER", "reserved by the pool then; NULL = unknown"},
       {"used_bytes", "INTEGER", "of them in use; NULL = unknown"},
       {"kept_bytes", "INTEGER", "what trimming was to keep; NULL = not trimmed"},
       {"threshold_bytes", "INTEGER",
        "release threshold; below 0 = keeps everything; NULL = unknown"},
       {"thread", "INTEGER", "thread.id"},
       {"correlation", "INTEGER", "the API's number of the call, or NULL"}),
     .later = true},
    {"migration", "Unified memory that moved, or was missed where it was needed.",
     C(ID, {"start", "INTEGER", "ns since capture start"},
       {"duration", "INTEGER", "ns; NULL = a moment"}, {"process", "INTEGER", "process.id"},
       {"kind", "INTEGER",
        "1 HtoD, 2 DtoH, 3 CPU page fault, 4 GPU page faults, 5 thrashing, "
        "6 throttling, 7 remote map, 8 DtoD; 0 unknown"},
       {"bytes", "INTEGER", "moved or mapped; NULL for faults and throttling"},
       {"faults", "INTEGER", "page faults; NULL for other kinds"},
       {"address", "INTEGER", "or NULL"}, {"source", "INTEGER", "device.id; NULL = the host"},
       {"target", "INTEGER", "device.id; NULL = the host"},
       {"cause", "INTEGER", "CUPTI's number of the reason or kind of access, or NULL"},
       {"stream", "INTEGER", "stream.id or NULL"}),
     .later = true},
    {"jit", "Device code compiled at run time, and its cache.",
     C(ID, {"start", "INTEGER", "ns since capture start"}, {"duration", "INTEGER", "ns"},
       {"process", "INTEGER", "process.id"}, {"thread", "INTEGER", "thread.id or NULL"},
       {"device", "INTEGER", "device.id or NULL"}, {"input", "INTEGER", "1 PTX, 2 NVVM; 0 unknown"},
       {"operation", "INTEGER",
        "1 loaded from the cache, 2 stored into the cache, 3 compiled; "
        "0 unknown"},
       {"cache_bytes", "INTEGER",
        "size that the driver gives for the cache as a whole (its limit), or NULL"},
       {"path", "INTEGER", "string.id of the cache's file, or NULL"},
       {"correlation", "INTEGER", "the API's number of the call, or NULL"}),
     .later = true},
    {"recording",
     "When recording began and stopped in a process. Without a row it never stopped. Its "
     "first row says how it stood when the process started; without the preload, when "
     "the run started, so that `start` may be before `process.start`.",
     C(ID, {"process", "INTEGER", "process.id"}, {"start", "INTEGER", "ns since capture start"},
       {"begins", "INTEGER", "1 = recording begins, 0 = it stops"},
       {"reason", "INTEGER",
        "1 time (--delay, --duration), 2 perfkit ctl, 3 cudaProfilerStart or "
        "-Stop, 4 an NVTX range; 0 unknown"}),
     .later = true},
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
    {"block",
     "Blocks that PyTorch's caching allocator handed out of the memory that it holds "
     "(--pytorch), by its own history. Their bytes are in those of allocations.",
     C(ID, {"process", "INTEGER", "process.id"}, {"device", "INTEGER", "device.id or NULL"},
       {"start", "INTEGER", "ns since capture start, to a microsecond"},
       {"end", "INTEGER", "when it was given back, ns since capture start; NULL = never"},
       {"bytes", "INTEGER", "as rounded by the allocator"}, {"address", "INTEGER", ""},
       {"stack", "INTEGER", "stack.id or NULL"}),
     .later = true},
    {"allocation_failure", "Allocations that the API refused.",
     C(ID, {"process", "INTEGER", "process.id"}, {"start", "INTEGER", "ns since capture start"},
       {"thread", "INTEGER", "thread.id that asked"}, {"device", "INTEGER", "device.id or NULL"},
       {"context", "INTEGER", "context.id or NULL"}, {"kind", "INTEGER", "as transfer.source_kind"},
       {"bytes", "INTEGER", "asked for; NULL = unknown"}, {"result", "INTEGER", "the API's code"},
       {"source", "INTEGER", "as api_call.source"}, {"stack", "INTEGER", "stack.id or NULL"}),
     .later = true},
    {"device_memory", "How full the devices were, as their driver counts it.",
     C(ID, {"device", "INTEGER", "device.id"}, {"start", "INTEGER", "ns since capture start"},
       {"total", "INTEGER", "bytes that there are"},
       {"used", "INTEGER", "bytes in use, by whomever"},
       {"process_used", "INTEGER",
        "bytes of them that are the target's processes'; NULL = the driver does not tell"}),
     .later = true},
    {"device_clock", "At what clocks the devices ran, and why not faster, as their driver tells.",
     C(ID, {"device", "INTEGER", "device.id"}, {"start", "INTEGER", "ns since capture start"},
       {"sm_mhz", "INTEGER", "of the multiprocessors; NULL = not told, as in what follows"},
       {"sm_max_mhz", "INTEGER", "the most they can do"}, {"memory_mhz", "INTEGER", ""},
       {"power_mw", "INTEGER", "of the board"}, {"power_limit_mw", "INTEGER", ""},
       {"temperature", "INTEGER", "degrees Celsius"},
       {"reasons", "INTEGER",
        "bits of what lowered the clocks: 1 idle, 2 clock setting, 4 power cap, 8 hardware "
        "slowdown, 16 "
        "sync boost, 32 software thermal, 64 hardware thermal, 128 power brake, 256 display"}),
     .later = true},
    {"network_port",
     "What ports of the host's network carried while perfkit recorded, of all programs there: "
     "those that "
     "carried anything, of runs with ranks.",
     C(ID, {"process", "INTEGER", "process.id of the program: the port is one of its host"},
       {"name", "TEXT", "eth0, mlx5_0/1"},
       {"kind", "TEXT", "ethernet, virtual (an interface without a device), infiniband, roce"},
       {"start", "INTEGER", "ns since capture start"}, {"duration", "INTEGER", "ns"},
       {"link_rate", "REAL", "bytes/s in each direction, as the port says; NULL = it does not"},
       {"received", "INTEGER", "bytes"}, {"sent", "INTEGER", "bytes"}),
     .later = true},
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
    {"range_field", "Values that ranges were given with extended NVTX payloads, a field a row.",
     C(ID, {"range", "INTEGER", "range.id"}, {"name", "INTEGER", "string.id of the field's name"},
       {"value", "", "number or text; unsigned numbers above 2^63 - 1 are negative"}),
     .later = true},
    {"marker", "NVTX marks.",
     C(ID, {"start", "INTEGER", "ns since capture start"}, {"thread", "INTEGER", "thread.id"},
       {"name", "INTEGER", "string.id"}, {"domain", "INTEGER", "string.id or NULL"},
       {"category", "INTEGER", "or NULL"}, {"color", "INTEGER", "ARGB or NULL"},
       {"payload", "", "number, or NULL"})},
    {"category", "Names of NVTX categories.",
     C(ID, {"process", "INTEGER", "process.id"}, {"domain", "INTEGER", "string.id or NULL"},
       {"category", "INTEGER", "as in range and marker"}, {"name", "TEXT", ""})},
    {"object_name", "Names given through NVTX to CUDA objects that no other table has.",
     C(ID, {"process", "INTEGER", "process.id"},
       {"kind", "TEXT",
        "event; or stream, context, device that was never used, or made before anybody looked"},
       {"handle", "INTEGER", "the program's handle, or a device's ordinal"}, {"name", "TEXT", ""}),
     .later = true},
    {"work", "FLOP and bytes declared through perfkit/annotate.h.",
     C(ID, {"range", "INTEGER", "range.id it belongs to"}, {"flop", "REAL", "NULL = not declared"},
       {"bytes_read", "REAL", "NULL = not declared"},
       {"bytes_written", "REAL", "NULL = not declared"})},
    {"ceiling",
     "What the devices of this capture can do, as measured on its machine by "
     "`perfkit device --measure` before.",
     C(ID, {"device", "INTEGER", "device.id"},
       {"name", "TEXT", "dram_copy, fp32, launch, ...: as `perfkit device` lists them"},
       {"value", "REAL", "bytes/s, FLOP/s, or ns for launches"},
       {"measured_at", "INTEGER", "seconds since 1970"}, {"how", "TEXT", "what was run, or NULL"}),
     .later = true},
    {"module", "Loaded object files and GPU modules.",
     C(ID, {"process", "INTEGER", "process.id"}, {"start", "INTEGER", "ns since capture start"},
       {"path", "TEXT", ""}, {"build_id", "TEXT", "hexadecimal or NULL"},
       {"address", "INTEGER", "load address"}, {"bytes", "INTEGER", "size in memory"},
       {"segment", "INTEGER",
        "what is at `address` is the file from this offset, in bytes; NULL = "
        "the object as a whole"},
       {"end", "INTEGER", "when it was unloaded, ns since capture start; NULL = not seen"},
       {"symbols", "TEXT",
        "where the names of its frames come from, or why there are none; NULL = "
        "nobody looked"})},
    {"stack",
     "Host call stacks. A row is a frame and the stack of its callers, so it is named by its "
     "innermost frame, and callers that stacks share are here once.",
     C(ID, {"parent", "INTEGER", "stack.id of the callers, smaller than `id`; NULL = outermost"},
       {"frame", "INTEGER", "frame.id"}, {"depth", "INTEGER", "frames, this one included"}),
     .later = true},
    {"frame", "Places in code that stacks go through.",
     C(ID, {"process", "INTEGER", "process.id"},
       {"kind", "INTEGER",
        "1 native, 2 Python, 3 of the Linux kernel; 0 = frames further out are "
        "not known"},
       {"address", "INTEGER",
        "within the instruction, as in the process (a return address less "
        "one); NULL = none"},
       {"module", "INTEGER", "module.id; NULL = none, or unknown"},
       {"offset", "INTEGER", "address - module.address"}),
     .later = true},
    {"symbol", "Names of frames: a function each, and those that the compiler put inline.",
     C(ID, {"frame", "INTEGER", "frame.id"},
       {"level", "INTEGER",
        "0 = innermost; each is inlined into the next, the last one is the "
        "function that the code belongs to"},
       {"function", "INTEGER", "string.id, readable"},
       {"file", "INTEGER", "string.id of the source file, or NULL"},
       {"line", "INTEGER", "in it, of the call of the level below, or NULL"}),
     .later = true},
    {"cpu_sample", "Where threads were on the processors, and while they waited for one.",
     C(ID, {"start", "INTEGER", "ns since capture start"}, {"thread", "INTEGER", "thread.id"},
       {"cpu", "INTEGER", "number of the processor, or NULL"},
       {"kind", "INTEGER",
        "1 on a processor, 2 blocked, 3 waiting for a processor, 4 on a "
        "processor inside the kernel"},
       {"duration", "INTEGER", "ns off the processor; NULL = on it"},
       {"weight", "INTEGER", "ns that the sample stands for"},
       {"stack", "INTEGER", "stack.id or NULL"}),
     .later = true},
    {"counter_device", "Devices whose hardware counters were sampled (--counters).",
     C(ID, {"uuid", "TEXT", "as device.uuid"},
       {"ordinal", "INTEGER", "as the sampler counts devices"}, {"name", "TEXT", ""},
       {"chip", "TEXT", "as CUPTI calls it"}, {"metric_set", "TEXT", "the set that was asked for"},
       {"interval", "INTEGER", "ns between samples, as asked for"}),
     .later = true},
    {"counter", "The counters of a set on a device: what the columns of counter_sample mean.",
     C(ID, {"counter_device", "INTEGER", "counter_device.id"},
       {"slot", "INTEGER", "N of the column cN of counter_sample"},
       {"name", "TEXT", "the same on every device"},
       {"unit", "TEXT", "byte, cycle, instruction, warp-cycle or percent"},
       {"metric", "TEXT", "CUPTI's name of it on this device"},
       {"kind", "INTEGER", "1 events that add up, 2 cycles that pass, 3 a level (mean over time)"},
       {"clock", "INTEGER", "slot of the counter in whose cycles `peak` is told, or NULL"},
       {"peak", "REAL", "most it can count in one cycle of its clock; NULL = unknown"},
       {"traced", "INTEGER",
        "counted in each warp of a kernel because it was traced; NULL = nothing that is known"}),
     .later = true},
    {"counter_burst", "Stretches of time in which a device's counters were sampled without pause.",
     C(ID, {"counter_device", "INTEGER", "counter_device.id"},
       {"start", "INTEGER", "ns since capture start, of the first sample kept"},
       {"duration", "INTEGER", "ns, to the end of the last sample"},
       {"samples", "INTEGER", "rows of counter_sample in it"},
       {"others", "INTEGER",
        "programs on the device then that are not of the target; NULL = unknown"},
       {"overflow", "INTEGER", "1 = the hardware's buffer was too small for the end; NULL = no"},
       {"decode", "INTEGER", "ns of CPU time that reading the samples took"}),
     .later = true},
    {"counter_sample", "What each counter of a device counted in an interval.",
     C(ID, {"counter_device", "INTEGER", "counter_device.id"},
       {"start", "INTEGER", "ns since capture start"}, {"duration", "INTEGER", "ns"},
       {"c0", "REAL", "count of the counter in slot 0, and so on; NULL = no such counter"},
       {"c1", "REAL", ""}, {"c2", "REAL", ""}, {"c3", "REAL", ""}, {"c4", "REAL", ""},
       {"c5", "REAL", ""}, {"c6", "REAL", ""}, {"c7", "REAL", ""}, {"c8", "REAL", ""},
       {"c9", "REAL", ""}, {"c10", "REAL", ""}, {"c11", "REAL", ""}, {"c12", "REAL", ""},
       {"c13", "REAL", ""}, {"c14", "REAL", ""}, {"c15", "REAL", ""}, {"c16", "REAL", ""},
       {"c17", "REAL", ""}, {"c18", "REAL", ""}, {"c19", "REAL", ""}, {"c20", "REAL", ""},
       {"c21", "REAL", ""}, {"c22", "REAL", ""}, {"c23", "REAL", ""}),
     .later = true},
    {"exact_count", "What single launches counted by one counter each (--counters=exact).",
     C(ID, {"start", "INTEGER", "ns since capture start, of the call"},
       {"config", "INTEGER", "launch_config.id"}, {"stream", "INTEGER", "stream.id or NULL"},
       {"correlation", "INTEGER", "the API's number of the call, the same for all of a launch"},
       {"name", "TEXT",
        "the same on every device; complete = with this launch everything that FLOP are "
        "made of was counted once"},
       {"unit", "TEXT", "instruction (of a thread), warp-instruction, flop or byte"},
       {"metric", "TEXT", "CUPTI's name of it on this device"},
       {"value", "REAL", "in this launch"}),
     .later = true},
    {"rollup", "Kernel time per second: what live views and overviews read.",
     C(ID, {"second", "INTEGER", "whole seconds since capture start of the kernel's start"},
       {"stream", "INTEGER", "stream.id (gives process and device)"},
       {"config", "INTEGER", "launch_config.id"}, {"count", "INTEGER", "kernels"},
       {"sum", "INTEGER", "ns"}, {"min", "INTEGER", "ns"}, {"max", "INTEGER", "ns"},
       {"histogram", "BLOB",
        "48 little-endian 32-bit counts; bucket i holds durations of "
        "[2^i, 2^(i+1)) ns, the last one all above; trailing zeros cut"})},
    {0},
};

const struct prof_view prof_views[] = {
    {"api_all", "Every API call once, those that live in a device record's row too.",
     "SELECT start, duration, thread, name, result, source, correlation, 'api_call' AS place, id "
     "FROM api_call UNION ALL "
     "SELECT CASE WHEN start IS NULL THEN api_lead ELSE start - api_lead END, api_duration, "
     "thread, "
     "api_name, NULL, NULL, NULL, 'kernel', id FROM kernel WHERE api_name NOT NULL UNION ALL "
     "SELECT CASE WHEN start IS NULL THEN api_lead ELSE start - api_lead END, api_duration, "
     "thread, "
     "api_name, NULL, NULL, NULL, 'transfer', id FROM transfer WHERE api_name NOT NULL UNION ALL "
     "SELECT CASE WHEN start IS NULL THEN api_lead ELSE start - api_lead END, api_duration, "
     "thread, "
     "api_name, NULL, NULL, NULL, 'memset', id FROM memset WHERE api_name NOT NULL UNION ALL "
     "SELECT start - api_lead, api_duration, thread, "
     "api_name, NULL, NULL, NULL, 'sync', id FROM sync WHERE api_name NOT NULL"},
    {0},
};

const struct prof_table *prof_column_refers(const struct prof_column *column)
{
    size_t length = strcspn(column->text, ".");
    if (strncmp(column->text + length, ".id", 3) != 0)
        return NULL;
    for (const struct prof_table *t = prof_tables; t->name; t++) {
        if (strlen(t->name) == length && memcmp(t->name, column->text, length) == 0)
            return t;
    }
    return NULL;
}

enum prof_time prof_column_time(const struct prof_column *column)
{
    if (strstr(column->text, "CLOCK_MONOTONIC at "))
        return PROF_TIME_MONO;
    if (!strstr(column->text, "since capture start"))
        return PROF_TIME_NONE;
    if (strstr(column->text, "seconds since capture start"))
        return PROF_TIME_SECONDS;
    return strstr(column->text, "when `start` is NULL") ? PROF_TIME_UNSTARTED : PROF_TIME_START;
}
