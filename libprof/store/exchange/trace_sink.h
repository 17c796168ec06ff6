/* Shared by trace_sink.c and trace_write.c only: the staging file that a trace is laid down in. */
#ifndef PERFKIT_STORE_EXCHANGE_TRACE_SINK_H
#define PERFKIT_STORE_EXCHANGE_TRACE_SINK_H

#include "libprof/base/map.h"
#include "libprof/store/exchange/trace.h"

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
    X(RANGE, "INSERT INTO NVTX_EVENTS(start, end, eventType, globalTid, textId, domainId) "        \
             "VALUES(?1, ?2, ?3, ?4, ?5, ?6)")                                                     \
    X(OVERHEAD, "INSERT INTO CUPTI_ACTIVITY_KIND_OVERHEAD(start, end, globalTid, overheadType) "   \
                "VALUES(?1, ?2, ?3, ?4)")                                                          \
    X(MEMORY, "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS(start, globalPid, deviceId, address, "     \
              "bytes, memKind, "                                                                   \
              "memoryOperationType) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")                           \
    X(DOMAIN, "INSERT INTO NVTX_EVENTS(start, eventType, globalTid, text, domainId) VALUES(0, "    \
              "75, ?1, ?2, ?3)")                                                                   \
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

/* What is counted and told, because a capture has no kind for it or it makes no sense. */
#define SKIPPED_MAP(X)                                                                             \
    X(NO_TIME, "events have no time, or one out of all range")                                     \
    X(NEGATIVE, "slices have a negative length")                                                   \
    X(COUNTER, "values of counters are left out")                                                  \
    X(ASYNC, "asynchronous events and objects are left out")                                       \
    X(PROJECTION, "ranges on a device's row are left out: they repeat those of the host")          \
    X(RECORDED, "recordings of CUDA events are left out")                                          \
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
};

struct trace_sink {
    sqlite3 *db;
    const char *path;
    struct prof_error failure; /* the first of SQLite's: what comes later hides it */
    sqlite3_stmt *sql[SINK_SQLS];
    struct prof_names names, made_up, domains;
    int64_t last_string;
    uint32_t last_made_up;
    uint64_t events, skipped[SKIPPED_KINDS];
    int64_t base_ns;
    bool has_base, is_kineto, no_memory;
    bool allocator; /* allocations of a framework, not of the API */
    PROF_ARRAY(struct opened) open;
    struct prof_map calls_of; /* globalPid -> calls */
    int64_t any_pid;          /* of the first event of a thread */
};

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
