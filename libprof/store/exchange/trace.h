/* Chrome traces (JSON, gzipped or not) into a staging file with the tables of nsys.h.
 *
 *   trace_read.c   the file: reads, unpacks, parses as a stream; where it is wrong; JSON's events
 *                  to one trace event at a time
 *   trace_write.c  a trace event to rows */
#ifndef PERFKIT_STORE_EXCHANGE_TRACE_H
#define PERFKIT_STORE_EXCHANGE_TRACE_H

#include "libprof/base/array.h"
#include "libprof/store/exchange/parts.h"
#include "libprof/base/map.h"

/* Read the trace at `path` into `stage`, an empty database. What was not understood is listed in
 * rows PERFKIT_NOTE of META_DATA_EXPORT. PROF_CORRUPT: not JSON, or cut short, with the byte;
 * PROF_FORMAT: JSON, but no trace; PROF_UNSUPPORTED: built without the parser. */
enum prof_status trace_stage(const char *path, sqlite3 *stage,
                             const struct prof_exchange_options *options, struct prof_error *err);

/* The numbers that an event may have: key, where it stands (0 event, 1 its args, 2 a device, 3
 * distributedInfo), and how its number is read ('i' whole, 't' a time in us, kept in ns, 'v' three
 * whole ones). */
#define TRACE_NUMBER_MAP(X)                                                                        \
    X(TS, "ts", 0, 't')                                                                            \
    X(DUR, "dur", 0, 't')                                                                          \
    X(DEVICE, "device", 1, 'i')                                                                    \
    X(CONTEXT, "context", 1, 'i')                                                                  \
    X(STREAM, "stream", 1, 'i')                                                                    \
    X(SYNCHRONIZED, "synchronized stream", 1, 'i') /* of perfkit's own traces */                   \
    X(CORRELATION, "correlation", 1, 'i')                                                          \
    X(BYTES, "bytes", 1, 'i')                                                                      \
    X(REGISTERS, "registers per thread", 1, 'i')                                                   \
    X(SHARED, "shared memory", 1, 'i')                                                             \
    X(GRID_X, "grid", 1, 'v')                                                                      \
    X(GRID_Y, "", 1, 0)                                                                            \
    X(GRID_Z, "", 1, 0)                                                                            \
    X(BLOCK_X, "block", 1, 'v')                                                                    \
    X(BLOCK_Y, "", 1, 0)                                                                           \
    X(BLOCK_Z, "", 1, 0)                                                                           \
    X(GRAPH, "graph id", 1, 'i')                                                                   \
    X(GRAPH_NODE, "graph node id", 1, 'i')                                                         \
    X(EVENT, "wait_on_cuda_event_id", 1, 'i')                                                      \
    X(ADDRESS, "Addr", 1, 'i')                                                                     \
    X(MEMORY_BYTES, "Bytes", 1, 'i')                                                               \
    X(DEVICE_TYPE, "Device Type", 1, 'i')                                                          \
    X(DEVICE_ID, "Device Id", 1, 'i')                                                              \
    X(IN_ELEMENTS, "In msg nelems", 1, 'i') /* of a collective operation, with the texts below */  \
    X(OUT_ELEMENTS, "Out msg nelems", 1, 'i')                                                      \
    X(SEQUENCE, "Sequence number", 1, 'i') /* of an operator, as in NVTX */                        \
    X(RANK, "rank", 3, 'i') /* of distributedInfo */                                               \
    X(WORLD_SIZE, "world_size", 3, 'i')                                                            \
    X(GPU_ID, "id", 2, 'i')                                                                        \
    X(GPU_MEMORY, "totalGlobalMem", 2, 'i')                                                        \
    X(GPU_MAJOR, "computeMajor", 2, 'i')                                                           \
    X(GPU_MINOR, "computeMinor", 2, 'i')                                                           \
    X(GPU_BLOCK, "maxThreadsPerBlock", 2, 'i')                                                     \
    X(GPU_THREADS, "maxThreadsPerMultiprocessor", 2, 'i')                                          \
    X(GPU_WARP, "warpSize", 2, 'i')                                                                \
    X(GPU_SHARED_BLOCK, "sharedMemPerBlock", 2, 'i')                                               \
    X(GPU_SHARED_UNIT, "sharedMemPerMultiprocessor", 2, 'i')                                       \
    X(GPU_REGISTERS, "regsPerMultiprocessor", 2, 'i')                                              \
    X(GPU_UNITS, "numSms", 2, 'i')

enum trace_number {
#define X(name, key, place, how) TRACE_##name,
    TRACE_NUMBER_MAP(X)
#undef X
        TRACE_NUMBERS
};

#define TRACE_TEXT_MAP(X)                                                                          \
    X(PHASE, "ph", 0)                                                                              \
    X(NAME, "name", 0)                                                                             \
    X(CATEGORY, "cat", 0)                                                                          \
    X(PID, "pid", 0) /* numbers too: what they say is kept as text */                              \
    X(TID, "tid", 0)                                                                               \
    X(GIVEN, "name", 1) /* of process_name and thread_name */                                      \
    X(GPU_NAME, "name", 2)                                                                         \
    X(KERNEL_DETAILS, "kernel_details", 1) /* of XLA: "regs:32 grid:4,1,1 block:256,1,1" */        \
    X(COPY_DETAILS, "memcpy_details", 1)   /* "kind_src:device kind_dst:pinned size:64" */         \
    X(FILL_DETAILS, "memset_details", 1)   /* "kind:device size_bytes:4" */                        \
    X(COLLECTIVE, "Collective name", 1)    /* of record_param_comms, what follows too */           \
    X(ELEMENT, "dtype", 1)                                                                         \
    X(GROUP, "Process Group Name", 1)                                                              \
    X(GROUP_RANKS, "Process Group Ranks", 1)                                                       \
    X(SIZES, "Input Dims", 1) /* arrays, kept as JSON: of an operator's inputs */                  \
    X(TYPES, "Input type", 1)                                                                      \
    X(ARGUMENTS, "Concrete Inputs", 1)

enum trace_text {
#define X(name, key, place) TRACE_TEXT_##name,
    TRACE_TEXT_MAP(X)
#undef X
        TRACE_TEXTS
};

struct trace_bytes {
    char *data;
    size_t count, capacity;
};

/* One event, or one device. */
struct trace_event {
    int64_t numbers[TRACE_NUMBERS];
    uint64_t has;                          /* bit per number */
    struct trace_bytes texts[TRACE_TEXTS]; /* with a 0 behind the last byte; count 0 = absent */
};
_Static_assert(TRACE_NUMBERS <= 64, "a bit per number");

static inline bool trace_event_has(const struct trace_event *event, enum trace_number number)
{
    return event->has >> number & 1;
}
static inline const char *trace_text(const struct trace_event *event, enum trace_text text)
{
    return event->texts[text].count ? event->texts[text].data : "";
}

/* ---- trace_write.c --------------------------------------------------------------------------- */

struct trace_sink;

enum prof_status trace_sink_open(sqlite3 *stage, const char *path, struct trace_sink **out,
                                 struct prof_error *err);
/* False: an error of the database, or out of memory: trace_sink_fail says which. */
bool trace_sink_event(struct trace_sink *sink, const struct trace_event *event);
bool trace_sink_device(struct trace_sink *sink, const struct trace_event *device);
/* Which rank of a distributed run the trace is of. */
bool trace_sink_rank(struct trace_sink *sink, const struct trace_event *distributed);
void trace_sink_base(struct trace_sink *sink, int64_t base_ns);
uint64_t trace_sink_events(const struct trace_sink *sink);
enum prof_status trace_sink_finish(struct trace_sink *sink, struct prof_error *err);
enum prof_status trace_sink_fail(struct trace_sink *sink, struct prof_error *err);
void trace_sink_close(struct trace_sink *sink);

/* ---- trace_read.c ---------------------------------------------------------------------------- */

#define TRACE_DEEPEST 128u /* containers within each other */

struct trace_reader {
    struct trace_sink *sink;
    unsigned char places[TRACE_DEEPEST]; /* of each open container */
    unsigned depth;
    int text, number; /* that the next value is; -1 = none */
    char how;
    int vector_first, vector; /* number of a 'v', and which element is next */
    int raw;                  /* the text that an array is kept as */
    bool base, top_array, was_trace;
    uint64_t values;   /* seen so far */
    const char *wrong; /* why reading stopped, when it is not the sink */
    struct trace_event event;
};

/* yajl's callbacks; the context is a struct trace_reader. */
extern const void *const trace_callbacks;

/* Exact decimal number times `scale`, rounded to nearest; false when it is none or more than 2^61.
 * Whole numbers up to 2^64-1 are kept when `scale` is 1. */
bool trace_decimal(const char *text, size_t length, int64_t scale, int64_t *out);

/* ---- what is read becomes a file of nsys (trace_sink.c) -------------------------------------- */

/* Shared by trace_sink.c and trace_write.c only: the staging file that a trace is laid down in. */

#define SINK_SQL_MAP(X)                                                                            \
    X(STRING, "INSERT INTO StringIds VALUES(?1, ?2)")                                              \
    X(KERNEL,                                                                                      \
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start, end, deviceId, contextId, streamId, "         \
      "correlationId, "                                                                            \
      "demangledName, registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, "           \
      "graphNodeId, "                                                                              \
      "graphId) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)")    \
    X(COPY, "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY(start, end, deviceId, contextId, streamId, "   \
            "correlationId, bytes, "                                                               \
            "copyKind, srcKind, dstKind, graphNodeId) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, " \
            "?10, ?11)")                                                                           \
    X(FILL, "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET(start, end, deviceId, contextId, streamId, "   \
            "correlationId, bytes, "                                                               \
            "memKind, graphNodeId) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")                    \
    X(WAIT, "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start, end, deviceId, contextId, "    \
            "streamId, "                                                                           \
            "correlationId, syncType, eventId) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")            \
    X(CALL, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME(start, end, eventClass, globalTid, "          \
            "correlationId, nameId, "                                                              \
            "returnValue) VALUES(?1, ?2, ?3, ?4, ?5, ?6, 0)")                                      \
    X(RANGE, "INSERT INTO NVTX_EVENTS(start, end, eventType, globalTid, textId, domainId, "        \
             "category, jsonText) VALUES(?1, ?2, ?3, ?4, ?5, ?6, nullif(?7, 0), CASE WHEN ?8 NOT " \
             "NULL THEN json_object('Collective name', ?8, 'Process Group Name', ?9, 'Process "    \
             "Group Ranks', ?10, 'Message size [bytes]', ?11) WHEN coalesce(?12, ?13) NOT NULL "   \
             "THEN json_patch(CASE WHEN ?12 NOT NULL THEN json_object('" NSYS_OPERATOR_INPUTS      \
             "', ?12) ELSE '{}' END, CASE WHEN ?13 NOT NULL THEN json_object('seq', ?13) ELSE "    \
             "'{}' END) END)")                                                                     \
    X(OVERHEAD, "INSERT INTO CUPTI_ACTIVITY_KIND_OVERHEAD(start, end, globalTid, overheadType) "   \
                "VALUES(?1, ?2, ?3, ?4)")                                                          \
    X(MEMORY, "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS(start, globalPid, deviceId, address, "     \
              "bytes, memKind, "                                                                   \
              "memoryOperationType) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")                           \
    X(DOMAIN, "INSERT INTO NVTX_EVENTS(start, eventType, globalTid, text, domainId) VALUES(0, "    \
              "75, ?1, ?2, ?3)")                                                                   \
    X(CATEGORY, "INSERT INTO NVTX_EVENTS(start, eventType, globalTid, text, domainId, category) "  \
                "VALUES(0, 33, ?1, ?2, 0, 1)")                                                     \
    X(PROCESS, "INSERT INTO PROCESSES VALUES(?1, ?2, ?3)")                                         \
    X(THREAD, "INSERT INTO ThreadNames VALUES(?1, 20, ?2)")                                        \
    X(GPU, "INSERT INTO TARGET_INFO_GPU(id, name, totalMemory, smCount, computeMajor, "            \
           "computeMinor, maxThreadsPerBlock, "                                                    \
           "maxWarpsPerSm, threadsPerWarp, maxShmemPerBlock, maxShmemPerSm, maxRegistersPerSm) "   \
           "VALUES(?1, ?2, ?3, ?4, ?5, "                                                           \
           "?6, ?7, ?8, ?9, ?10, ?11, ?12)")                                                       \
    X(META, "INSERT INTO META_DATA_EXPORT VALUES(?1, ?2)")                                         \
    X(START, "INSERT INTO TARGET_INFO_SESSION_START_TIME(utcEpochNs) VALUES(?1)")

enum sink_sql {
#define X(name, sql) SQL_##name,
    SINK_SQL_MAP(X)
#undef X
        SINK_SQLS
};

/* What is counted and reported, because a capture has no kind for it or it makes no sense. */
#define SKIPPED_MAP(X)                                                                             \
    X(NO_TIME, "events have no time, or one out of all range")                                     \
    X(NEGATIVE, "slices have a negative length")                                                   \
    X(COUNTER, "values of counters are left out")                                                  \
    X(ASYNC, "asynchronous events and objects are left out")                                       \
    X(SAMPLE, "samples of processors are left out")                                                \
    X(PROJECTION, "ranges on a device's row are left out: they repeat those of the host")          \
    X(RECORDED, "recordings of CUDA events are left out")                                          \
    X(INPUTS, "operators have inputs of more than 2,000 bytes, which are left out")                             \
    X(UNOPENED, "ends of slices have no begin")                                                    \
    X(UNCLOSED, "begins of slices have no end")                                                    \
    X(UNKNOWN, "events are of no kind that a trace has")

enum skipped {
#define X(name, text) SKIPPED_##name,
    SKIPPED_MAP(X)
#undef X
        SKIPPED_KINDS
};

struct opened { /* a B that waits for its E */
    int64_t tid, start, name, domain;
    int category; /* 1: CPU_OP; 0 = none */
};

struct trace_sink {
    sqlite3 *db;
    const char *path;
    struct prof_error failure; /* the first of SQLite's: what comes later hides it */
    sqlite3_stmt *sql[SINK_SQLS];
    struct prof_names names, made_up, domains, categories;
    int64_t last_string;
    uint32_t last_made_up;
    uint64_t events, skipped[SKIPPED_KINDS];
    int64_t base_ns;
    bool has_base, is_kineto, is_xla, no_memory;
    bool allocator; /* allocations of a framework, not of the API */
    PROF_ARRAY(struct opened) open;
    struct prof_map calls_of; /* globalPid -> calls */
    int64_t any_pid;          /* of the first event of a thread */
};

/* Most that is kept of an operator's inputs, as JSON. An array that is longer has a count above it.
 */
#define TRACE_RAW_BYTES 2000u

bool trace_run(struct trace_sink *sink, enum sink_sql which);
/* `ok` itself; remembers that memory was short. */
bool trace_memory(struct trace_sink *sink, bool ok);

/* Number of a text in StringIds, and of an event's name; 0: failed. */
int64_t trace_string_of(struct trace_sink *sink, const char *text, size_t length);
int64_t trace_name_of(struct trace_sink *sink, const struct trace_event *event);

/* globalTid; -1: out of memory */
int64_t trace_thread_of(struct trace_sink *sink, const struct trace_event *event);
static inline int64_t trace_process_of(int64_t thread)
{
    return thread & ~(int64_t)0xffffff;
}

void trace_bind_number(sqlite3_stmt *sql, int at, const struct trace_event *event,
                       enum trace_number number);

/* trace_write.c: a range or a mark, with `end` NULL an open one */
bool trace_put_range(struct trace_sink *sink, int type, const struct opened *range,
                     const int64_t *end);

#endif
