/* Events of a Chrome trace to rows in the tables of nsys.h. What torch.profiler writes (the Kineto dialect) is
 * known by its categories and becomes kernels, copies, calls; any other slice is a range of its thread.
 *
 * Rows of a device do not say whose process they are; a trace has one as a rule, and calls tell. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/map.h"
#include "libprof/store/exchange/feed.h"
#include "libprof/store/exchange/nsys.h"
#include "libprof/store/exchange/trace.h"

#define MOST_NAME_BYTES (48u << 20) /* of names known again; those that come later are written once more */
#define MOST_OPEN 65536u            /* of B without E, on all threads */
#define FIRST_MADE_UP 0xf00000u     /* numbers for pids and tids that are none */

#define SINK_SQL_MAP(X)                                                                            \
    X(STRING, "INSERT INTO StringIds VALUES(?1, ?2)")                                              \
    X(KERNEL, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start, end, deviceId, contextId, streamId, correlationId, " \
              "demangledName, registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, graphNodeId, " \
              "graphId) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)") \
    X(COPY, "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY(start, end, deviceId, contextId, streamId, correlationId, bytes, " \
            "copyKind, srcKind, dstKind, graphNodeId) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)") \
    X(FILL, "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET(start, end, deviceId, contextId, streamId, correlationId, bytes, " \
            "memKind, graphNodeId) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")                    \
    X(WAIT, "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start, end, deviceId, contextId, streamId, " \
            "correlationId, syncType, eventId) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")            \
    X(CALL, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME(start, end, eventClass, globalTid, correlationId, nameId, " \
            "returnValue) VALUES(?1, ?2, ?3, ?4, ?5, ?6, 0)")                                      \
    X(RANGE, "INSERT INTO NVTX_EVENTS(start, end, eventType, globalTid, textId, domainId) VALUES(?1, ?2, ?3, ?4, ?5, ?6)") \
    X(OVERHEAD, "INSERT INTO CUPTI_ACTIVITY_KIND_OVERHEAD(start, end, globalTid, overheadType) VALUES(?1, ?2, ?3, ?4)") \
    X(MEMORY, "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS(start, globalPid, deviceId, address, bytes, memKind, " \
              "memoryOperationType) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")                           \
    X(DOMAIN, "INSERT INTO NVTX_EVENTS(start, eventType, globalTid, text, domainId) VALUES(0, 75, ?1, ?2, ?3)") \
    X(PROCESS, "INSERT INTO PROCESSES VALUES(?1, ?2, ?3)")                                         \
    X(THREAD, "INSERT INTO ThreadNames VALUES(?1, 20, ?2)")                                        \
    X(GPU, "INSERT INTO TARGET_INFO_GPU(id, name, totalMemory, smCount, computeMajor, computeMinor, maxThreadsPerBlock, " \
           "maxWarpsPerSm, threadsPerWarp, maxShmemPerBlock, maxShmemPerSm, maxRegistersPerSm) VALUES(?1, ?2, ?3, ?4, ?5, " \
           "?6, ?7, ?8, ?9, ?10, ?11, ?12)")                                                       \
    X(META, "INSERT INTO META_DATA_EXPORT VALUES(?1, ?2)")                                         \
    X(START, "INSERT INTO TARGET_INFO_SESSION_START_TIME(utcEpochNs) VALUES(?1)")

enum sink_sql {
#define X(name, sql) SQL_##name,
    SINK_SQL_MAP(X)
#undef X
        SINK_SQLS
};
static const char *const sink_sql[] = {
#define X(name, sql) sql,
    SINK_SQL_MAP(X)
#undef X
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
static const char *const skipped_text[] = {
#define X(name, text) text,
    SKIPPED_MAP(X)
#undef X
};

struct opened { /* a B that waits for its E */
    int64_t tid, start, name, domain;
};

struct trace_sink {
    sqlite3 *db;
    const char *path;
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

static bool run(struct trace_sink *sink, enum sink_sql which)
{
    int rc = sqlite3_step(sink->sql[which]);
    sqlite3_reset(sink->sql[which]);
    return rc == SQLITE_DONE;
}

enum prof_status trace_sink_open(sqlite3 *stage, const char *path, struct trace_sink **out, struct prof_error *err)
{
    struct trace_sink *sink = *out = calloc(1, sizeof *sink);
    if (!sink)
        return prof_fail(err, PROF_NOMEM, "out of memory");
    sink->db = stage;
    sink->path = path;
    sink->any_pid = -1;
    bool ok = !sqlite3_exec(stage, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN", NULL, NULL, NULL);
    for (const struct nsys_table *table = nsys_tables; ok && table->name; table++) {
        char *sql = sqlite3_mprintf("CREATE TABLE %s(%s)", table->name, table->columns);
        ok = sql && !sqlite3_exec(stage, sql, NULL, NULL, NULL);
        sqlite3_free(sql);
    }
    for (int i = 0; ok && i < SINK_SQLS; i++)
        ok = !sqlite3_prepare_v3(stage, sink_sql[i], -1, SQLITE_PREPARE_PERSISTENT, &sink->sql[i], NULL);
    if (ok)
        return PROF_OK;
    enum prof_status status = trace_sink_fail(sink, err);
    trace_sink_close(sink);
    *out = NULL;
    return status;
}

void trace_sink_close(struct trace_sink *sink)
{
    if (!sink)
        return;
    for (int i = 0; i < SINK_SQLS; i++)
        sqlite3_finalize(sink->sql[i]);
    prof_names_free(&sink->names);
    prof_names_free(&sink->made_up);
    prof_names_free(&sink->domains);
    prof_map_free(&sink->calls_of);
    prof_array_free(&sink->open);
    free(sink);
}

enum prof_status trace_sink_fail(struct trace_sink *sink, struct prof_error *err)
{
    return sink->no_memory ? prof_fail(err, PROF_NOMEM, "out of memory")
                           : exchange_sql_fail(sink->db, "stage", sink->path, err);
}

uint64_t trace_sink_events(const struct trace_sink *sink)
{
    return sink->events;
}

void trace_sink_base(struct trace_sink *sink, int64_t base_ns)
{
    sink->base_ns = base_ns;
    sink->has_base = true;
}

/* ---- names and numbers ------------------------------------------------------------------------ */

static bool memory(struct trace_sink *sink, bool ok)
{
    sink->no_memory |= !ok;
    return ok;
}

/* Number of a text in StringIds; 0 when it failed. */
static int64_t string_of(struct trace_sink *sink, const char *text, size_t length)
{
    uint32_t *known = prof_names_get(&sink->names, text, length);
    if (known)
        return *known;
    sqlite3_bind_int64(sink->sql[SQL_STRING], 1, ++sink->last_string);
    sqlite3_bind_text(sink->sql[SQL_STRING], 2, text, (int)length, SQLITE_STATIC);
    if (!run(sink, SQL_STRING))
        return 0;
    bool room = sink->names.bytes_count < MOST_NAME_BYTES;
    return !room || memory(sink, prof_names_put(&sink->names, text, length, (uint32_t)sink->last_string))
               ? sink->last_string
               : 0;
}

static int64_t name_of(struct trace_sink *sink, const struct trace_event *event)
{
    const struct trace_bytes *name = &event->texts[TRACE_TEXT_NAME];
    return name->count ? string_of(sink, name->data, name->count) : string_of(sink, "(unnamed)", 9);
}

/* Pids and tids are numbers below 2^24 on Linux; what is not one gets a number of its own. -1: out of memory. */
static int64_t number_of(struct trace_sink *sink, const struct trace_bytes *text)
{
    int64_t value;
    if (!text->count)
        return 0;
    if (trace_decimal(text->data, text->count, 1, &value) && value >= 0 && value < (int64_t)FIRST_MADE_UP)
        return value;
    uint32_t *known = prof_names_get(&sink->made_up, text->data, text->count);
    if (known)
        return *known;
    uint32_t made = FIRST_MADE_UP + sink->last_made_up++ % 0xfffffu;
    return memory(sink, prof_names_put(&sink->made_up, text->data, text->count, made)) ? (int64_t)made : -1;
}

/* globalTid; -1: out of memory */
static int64_t thread_of(struct trace_sink *sink, const struct trace_event *event)
{
    int64_t pid = number_of(sink, &event->texts[TRACE_TEXT_PID]);
    int64_t tid = number_of(sink, &event->texts[TRACE_TEXT_TID]);
    return pid < 0 || tid < 0 ? -1 : (int64_t)1 << 48 | pid << 24 | tid;
}

static int64_t process_of(int64_t thread)
{
    return thread & ~(int64_t)0xffffff;
}

static void bind_number(sqlite3_stmt *sql, int at, const struct trace_event *event, enum trace_number number)
{
    if (trace_has(event, number))
        sqlite3_bind_int64(sql, at, event->numbers[number]);
    else
        sqlite3_bind_null(sql, at);
}

/* ---- the device's rows ------------------------------------------------------------------------ */

/* start, end, device, context, stream, correlation: the first columns of every device record */
static void bind_device(sqlite3_stmt *sql, const struct trace_event *event, int64_t end)
{
    int64_t pid;
    const struct trace_bytes *row = &event->texts[TRACE_TEXT_PID]; /* the device's number, there */
    sqlite3_bind_int64(sql, 1, event->numbers[TRACE_TS]);
    sqlite3_bind_int64(sql, 2, end);
    bind_number(sql, 3, event, TRACE_DEVICE);
    if (!trace_has(event, TRACE_DEVICE))
        sqlite3_bind_int64(sql, 3, trace_decimal(row->data, row->count, 1, &pid) ? pid : 0);
    bind_number(sql, 4, event, TRACE_CONTEXT);
    bind_number(sql, 5, event, TRACE_STREAM);
    bind_number(sql, 6, event, TRACE_CORRELATION);
}

static bool put_kernel(struct trace_sink *sink, const struct trace_event *event, int64_t end)
{
    static const enum trace_number numbers[] = {TRACE_REGISTERS, TRACE_GRID_X,  TRACE_GRID_Y,  TRACE_GRID_Z,
                                                TRACE_BLOCK_X,   TRACE_BLOCK_Y, TRACE_BLOCK_Z, TRACE_GRAPH_NODE,
                                                TRACE_GRAPH};
    sqlite3_stmt *sql = sink->sql[SQL_KERNEL];
    int64_t name = name_of(sink, event);
    bind_device(sql, event, end);
    sqlite3_bind_int64(sql, 7, name);
    for (int i = 0; i < 9; i++)
        bind_number(sql, 8 + i, event, numbers[i]);
    return name && run(sink, SQL_KERNEL);
}

/* "Memcpy HtoD (Pageable -> Device)": the kinds are in the name only. Numbers as in nsys.h's enums. */
static int word_in(const char *text, const char *const *words, int otherwise)
{
    for (int i = 0; words[i]; i++)
        if (*words[i] && !strncmp(text, words[i], strlen(words[i])))
            return i;
    return otherwise;
}

static int memory_in(const char *text)
{
    static const char *const words[] = {"Pageable", "Pinned", "Device", "Array", "Managed", "Device Static",
                                        "Managed Static", NULL};
    return word_in(text, words, 7);
}

static bool put_copy(struct trace_sink *sink, const struct trace_event *event, int64_t end)
{
    static const char *const kinds[] = {"", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH",
                                        "PtoP", NULL};
    sqlite3_stmt *sql = sink->sql[SQL_COPY];
    const char *name = trace_text(event, TRACE_TEXT_NAME), *kind = strchr(name, ' '), *open = strchr(name, '('),
               *arrow = strstr(name, "-> ");
    bind_device(sql, event, end);
    sqlite3_bind_int64(sql, 7, trace_has(event, TRACE_BYTES) ? event->numbers[TRACE_BYTES] : 0);
    sqlite3_bind_int(sql, 8, kind ? word_in(kind + 1, kinds, 0) : 0);
    sqlite3_bind_int(sql, 9, open ? memory_in(open + 1) : 7);
    sqlite3_bind_int(sql, 10, arrow ? memory_in(arrow + 3) : 7);
    bind_number(sql, 11, event, TRACE_GRAPH_NODE);
    return run(sink, SQL_COPY);
}

static bool put_fill(struct trace_sink *sink, const struct trace_event *event, int64_t end)
{
    sqlite3_stmt *sql = sink->sql[SQL_FILL];
    const char *open = strchr(trace_text(event, TRACE_TEXT_NAME), '(');
    bind_device(sql, event, end);
    sqlite3_bind_int64(sql, 7, trace_has(event, TRACE_BYTES) ? event->numbers[TRACE_BYTES] : 0);
    sqlite3_bind_int(sql, 8, open ? memory_in(open + 1) : 7);
    bind_number(sql, 9, event, TRACE_GRAPH_NODE);
    return run(sink, SQL_FILL);
}

static bool put_wait(struct trace_sink *sink, const struct trace_event *event, int64_t end)
{
    static const char *const kinds[] = {"", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync", NULL};
    sqlite3_stmt *sql = sink->sql[SQL_WAIT];
    bind_device(sql, event, end);
    sqlite3_bind_int(sql, 7, word_in(trace_text(event, TRACE_TEXT_NAME), kinds, 0));
    bind_number(sql, 8, event, TRACE_EVENT);
    return run(sink, SQL_WAIT);
}

/* ---- the host's rows -------------------------------------------------------------------------- */

static bool count_call(struct trace_sink *sink, int64_t process)
{
    uint64_t *calls = prof_map_get(&sink->calls_of, (uint64_t)process);
    if (calls)
        ++*calls;
    return calls || memory(sink, prof_map_put(&sink->calls_of, (uint64_t)process, 1));
}

static bool put_call(struct trace_sink *sink, const struct trace_event *event, int64_t end)
{
    sqlite3_stmt *sql = sink->sql[SQL_CALL];
    int64_t thread = thread_of(sink, event), name = name_of(sink, event);
    sqlite3_bind_int64(sql, 1, event->numbers[TRACE_TS]);
    sqlite3_bind_int64(sql, 2, end);
    sqlite3_bind_int(sql, 3, !strcmp(trace_text(event, TRACE_TEXT_CATEGORY), "cuda_driver"));
    sqlite3_bind_int64(sql, 4, thread);
    bind_number(sql, 5, event, TRACE_CORRELATION);
    sqlite3_bind_int64(sql, 6, name);
    return thread >= 0 && name && count_call(sink, process_of(thread)) && run(sink, SQL_CALL);
}

/* Domain of a category: that of operators and of what the program marks itself is the default one, so that
 * they nest in each other. -1: failed. */
static int64_t domain_of(struct trace_sink *sink, const struct trace_event *event, int64_t thread)
{
    const char *category = trace_text(event, TRACE_TEXT_CATEGORY);
    char key[96];
    if (!*category || !strcmp(category, "cpu_op") || !strcmp(category, "user_annotation"))
        return 0;
    int length = snprintf(key, sizeof key, "%lld %.64s", (long long)process_of(thread), category);
    uint32_t *known = prof_names_get(&sink->domains, key, (size_t)length);
    if (known)
        return *known;
    int64_t number = (int64_t)sink->domains.count + 1;
    sqlite3_stmt *sql = sink->sql[SQL_DOMAIN];
    sqlite3_bind_int64(sql, 1, process_of(thread));
    sqlite3_bind_text(sql, 2, category, -1, SQLITE_STATIC);
    sqlite3_bind_int64(sql, 3, number);
    return run(sink, SQL_DOMAIN) &&
                   memory(sink, prof_names_put(&sink->domains, key, (size_t)length, (uint32_t)number))
               ? number
               : -1;
}

static bool put_range(struct trace_sink *sink, int type, const struct opened *range, const int64_t *end)
{
    sqlite3_stmt *sql = sink->sql[SQL_RANGE];
    sqlite3_bind_int64(sql, 1, range->start);
    if (end)
        sqlite3_bind_int64(sql, 2, *end);
    else
        sqlite3_bind_null(sql, 2);
    sqlite3_bind_int(sql, 3, type);
    sqlite3_bind_int64(sql, 4, range->tid);
    sqlite3_bind_int64(sql, 5, range->name);
    sqlite3_bind_int64(sql, 6, range->domain);
    if (sink->any_pid < 0)
        sink->any_pid = process_of(range->tid);
    return range->name && range->tid >= 0 && range->domain >= 0 && run(sink, SQL_RANGE);
}

static struct opened range_of(struct trace_sink *sink, const struct trace_event *event)
{
    struct opened range = {.tid = thread_of(sink, event), .start = event->numbers[TRACE_TS],
                           .name = name_of(sink, event)};
    range.domain = range.tid < 0 ? -1 : domain_of(sink, event, range.tid);
    return range;
}

static bool begin_range(struct trace_sink *sink, const struct trace_event *event)
{
    struct opened *slot = sink->open.count < MOST_OPEN ? prof_array_add(&sink->open) : NULL;
    if (!slot) {
        sink->skipped[SKIPPED_UNCLOSED]++;
        return memory(sink, sink->open.count >= MOST_OPEN);
    }
    *slot = range_of(sink, event);
    return slot->tid >= 0 && slot->domain >= 0 && slot->name;
}

static bool end_range(struct trace_sink *sink, const struct trace_event *event)
{
    int64_t thread = thread_of(sink, event), end = event->numbers[TRACE_TS];
    size_t at = sink->open.count;
    while (at && sink->open.data[at - 1].tid != thread)
        at--;
    if (!at) {
        sink->skipped[SKIPPED_UNOPENED]++;
        return thread >= 0;
    }
    struct opened range = sink->open.data[at - 1];
    memmove(&sink->open.data[at - 1], &sink->open.data[at], (sink->open.count - at) * sizeof range);
    sink->open.count--;
    return put_range(sink, 59, &range, &end);
}

static bool put_overhead(struct trace_sink *sink, const struct trace_event *event, int64_t end)
{
    /* 100 + kinds of a capture: ENUM_CUPTI_OVERHEAD_TYPE lacks some */
    static const char *const kinds[] = {"", "Driver Compiler", "Buffer Flush", "Instrumentation", "Resource",
                                        "Runtime Triggered Module Loading", "Lazy Function Loading",
                                        "Command Buffer Full", "Activity Buffer Request", "UVM", NULL};
    sqlite3_stmt *sql = sink->sql[SQL_OVERHEAD];
    sqlite3_bind_int64(sql, 1, event->numbers[TRACE_TS]);
    sqlite3_bind_int64(sql, 2, end);
    sqlite3_bind_null(sql, 3); /* its pid and tid are made up there */
    sqlite3_bind_int(sql, 4, 100 + word_in(trace_text(event, TRACE_TEXT_NAME), kinds, 0));
    return run(sink, SQL_OVERHEAD);
}

/* A framework's allocator tells what it gives out and takes back, by address. */
static bool put_memory(struct trace_sink *sink, const struct trace_event *event)
{
    sqlite3_stmt *sql = sink->sql[SQL_MEMORY];
    int64_t thread = thread_of(sink, event), bytes = event->numbers[TRACE_MEMORY_BYTES];
    bool device = trace_has(event, TRACE_DEVICE_TYPE) && event->numbers[TRACE_DEVICE_TYPE] == 1;
    sink->allocator = true;
    sqlite3_bind_int64(sql, 1, event->numbers[TRACE_TS]);
    sqlite3_bind_int64(sql, 2, process_of(thread));
    if (device)
        bind_number(sql, 3, event, TRACE_DEVICE_ID);
    else
        sqlite3_bind_null(sql, 3);
    sqlite3_bind_int64(sql, 4, event->numbers[TRACE_ADDRESS]);
    sqlite3_bind_int64(sql, 5, bytes < 0 && bytes != INT64_MIN ? -bytes : bytes);
    sqlite3_bind_int(sql, 6, device ? 2 : 0);
    sqlite3_bind_int(sql, 7, bytes < 0);
    return thread >= 0 && run(sink, SQL_MEMORY);
}

/* ---- events ----------------------------------------------------------------------------------- */

static bool skip(struct trace_sink *sink, enum skipped why)
{
    sink->skipped[why]++;
    return true;
}

static const struct {
    const char *category;
    bool (*put)(struct trace_sink *, const struct trace_event *, int64_t end);
    bool of_device; /* needs a stream to be one */
} slices[] = {
    {"kernel", put_kernel, true},      {"gpu_memcpy", put_copy, true},     {"gpu_memset", put_fill, true},
    {"cuda_sync", put_wait, false},    {"cuda_runtime", put_call, false},  {"cuda_driver", put_call, false},
    {"overhead", put_overhead, false},
};

static bool put_slice(struct trace_sink *sink, const struct trace_event *event)
{
    const char *category = trace_text(event, TRACE_TEXT_CATEGORY);
    int64_t duration = trace_has(event, TRACE_DUR) ? event->numbers[TRACE_DUR] : 0;
    int64_t end = event->numbers[TRACE_TS] + duration; /* each below 2^61 */
    if (duration < 0)
        return skip(sink, SKIPPED_NEGATIVE);
    if (!strcmp(category, "gpu_user_annotation"))
        return skip(sink, SKIPPED_PROJECTION);
    if (!strcmp(category, "cuda_event"))
        return skip(sink, SKIPPED_RECORDED);
    if (!strcmp(category, "Trace")) /* the profiler's own span */
        return true;
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        if (strcmp(category, slices[i].category) || (slices[i].of_device && !trace_has(event, TRACE_STREAM)))
            continue;
        sink->is_kineto = true;
        return slices[i].put(sink, event, end);
    }
    struct opened range = range_of(sink, event);
    return put_range(sink, 59, &range, &end);
}

static bool put_instant(struct trace_sink *sink, const struct trace_event *event)
{
    const char *name = trace_text(event, TRACE_TEXT_NAME);
    if (!strcmp(name, "[memory]") && trace_has(event, TRACE_ADDRESS) && trace_has(event, TRACE_MEMORY_BYTES))
        return put_memory(sink, event);
    if (!strncmp(name, "Iteration Start: ", 17) || !strcmp(name, "Record Window End"))
        return true; /* of the profiler itself */
    struct opened mark = range_of(sink, event);
    return put_range(sink, 34, &mark, NULL);
}

static bool put_metadata(struct trace_sink *sink, const struct trace_event *event)
{
    const char *name = trace_text(event, TRACE_TEXT_NAME), *given = trace_text(event, TRACE_TEXT_GIVEN);
    bool process = !strcmp(name, "process_name"), thread = !strcmp(name, "thread_name");
    int64_t number = process || (thread && *given) ? thread_of(sink, event) : 0;
    if (process && number >= 0) {
        sqlite3_stmt *sql = sink->sql[SQL_PROCESS];
        sqlite3_bind_int64(sql, 1, process_of(number));
        sqlite3_bind_int64(sql, 2, process_of(number) >> 24 & 0xffffff);
        sqlite3_bind_text(sql, 3, given, -1, SQLITE_STATIC);
        return run(sink, SQL_PROCESS);
    }
    if (thread && *given && number >= 0) {
        int64_t text = string_of(sink, given, strlen(given));
        sqlite3_bind_int64(sink->sql[SQL_THREAD], 1, text);
        sqlite3_bind_int64(sink->sql[SQL_THREAD], 2, number);
        return text && run(sink, SQL_THREAD);
    }
    return number >= 0;
}

bool trace_sink_event(struct trace_sink *sink, const struct trace_event *event)
{
    char phase = *trace_text(event, TRACE_TEXT_PHASE);
    sink->events++;
    if (phase == 'M')
        return put_metadata(sink, event);
    if (phase == 's' || phase == 't' || phase == 'f') /* flows: correlation numbers say the same */
        return true;
    if (phase == 'C')
        return skip(sink, SKIPPED_COUNTER);
    if (!phase || !strchr("XBEiIRP", phase))
        return skip(sink, phase && strchr("bneNODSTFpvcV(),=", phase) ? SKIPPED_ASYNC : SKIPPED_UNKNOWN);
    if (!trace_has(event, TRACE_TS))
        return skip(sink, SKIPPED_NO_TIME);
    switch (phase) {
    case 'X':
        return put_slice(sink, event);
    case 'B':
        return begin_range(sink, event);
    case 'E':
        return end_range(sink, event);
    default:
        return put_instant(sink, event);
    }
}

bool trace_sink_device(struct trace_sink *sink, const struct trace_event *device)
{
    static const enum trace_number numbers[] = {TRACE_GPU_MEMORY, TRACE_GPU_UNITS, TRACE_GPU_MAJOR, TRACE_GPU_MINOR,
                                                TRACE_GPU_BLOCK};
    static const enum trace_number more[] = {TRACE_GPU_WARP, TRACE_GPU_SHARED_BLOCK, TRACE_GPU_SHARED_UNIT,
                                             TRACE_GPU_REGISTERS};
    sqlite3_stmt *sql = sink->sql[SQL_GPU];
    sink->is_kineto = true;
    bind_number(sql, 1, device, TRACE_GPU_ID);
    sqlite3_bind_text(sql, 2, trace_text(device, TRACE_TEXT_GPU_NAME), -1, SQLITE_STATIC);
    for (int i = 0; i < 5; i++)
        bind_number(sql, 3 + i, device, numbers[i]);
    bool known = trace_has(device, TRACE_GPU_WARP) && device->numbers[TRACE_GPU_WARP] > 0;
    if (known && trace_has(device, TRACE_GPU_THREADS))
        sqlite3_bind_int64(sql, 8, device->numbers[TRACE_GPU_THREADS] / device->numbers[TRACE_GPU_WARP]);
    else
        sqlite3_bind_null(sql, 8);
    for (int i = 0; i < 4; i++)
        bind_number(sql, 9 + i, device, more[i]);
    return run(sink, SQL_GPU);
}

/* ---- the end ---------------------------------------------------------------------------------- */

static bool describe(struct trace_sink *sink, const char *name, const char *value)
{
    sqlite3_bind_text(sink->sql[SQL_META], 1, name, -1, SQLITE_STATIC);
    sqlite3_bind_text(sink->sql[SQL_META], 2, value, -1, SQLITE_TRANSIENT);
    return run(sink, SQL_META);
}

static bool describe_skipped(struct trace_sink *sink)
{
    bool ok = true;
    for (int i = 0; ok && i < SKIPPED_KINDS; i++) {
        char text[160];
        snprintf(text, sizeof text, "%llu %s", (unsigned long long)sink->skipped[i], skipped_text[i]);
        ok = !sink->skipped[i] || describe(sink, "PERFKIT_NOTE", text);
    }
    if (ok && sink->is_kineto)
        ok = describe(sink, "PERFKIT_NOTE", "the trace does not tell shared memory of kernels by kind, results of calls, "
                                            "nor whether copies blocked");
    if (ok && sink->allocator)
        ok = describe(sink, "PERFKIT_NOTE", "allocations are those of the framework's allocator, not of the API");
    if (ok && !sink->has_base)
        ok = describe(sink, "PERFKIT_NOTE", "the trace does not tell the date of its times");
    return ok;
}

/* Whose the device's rows are: the process with calls; where several have them, each call's own. */
static bool assign_processes(struct trace_sink *sink)
{
    uint64_t process, calls, most = 0;
    int64_t main_process = sink->any_pid;
    char text[32];
    for (size_t at = 0; prof_map_next(&sink->calls_of, &at, &process, &calls);) {
        if (calls > most || (calls == most && (int64_t)process < main_process)) {
            most = calls;
            main_process = (int64_t)process;
        }
    }
    snprintf(text, sizeof text, "%lld", (long long)(main_process < 0 ? (int64_t)1 << 48 : main_process));
    if (!describe(sink, "PERFKIT_MAIN_PROCESS", text) || sink->calls_of.count < 2)
        return sink->calls_of.count < 2;
    if (sqlite3_exec(sink->db, "CREATE INDEX call_by_number ON CUPTI_ACTIVITY_KIND_RUNTIME(correlationId, globalTid)",
                     NULL, NULL, NULL))
        return false;
    static const char *const tables[] = {"KERNEL", "MEMCPY", "MEMSET", "SYNCHRONIZATION"};
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof tables / sizeof *tables; i++) {
        char *sql = sqlite3_mprintf("UPDATE CUPTI_ACTIVITY_KIND_%s SET globalPid = (SELECT r.globalTid & " NSYS_GLOBAL_PID_MASK
                                    " FROM CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.correlationId = "
                                    "CUPTI_ACTIVITY_KIND_%s.correlationId LIMIT 1)", tables[i], tables[i]);
        ok = sql && !sqlite3_exec(sink->db, sql, NULL, NULL, NULL);
        sqlite3_free(sql);
    }
    return ok && describe(sink, "PERFKIT_NOTE", "several processes are in the trace: work of a device is given to the "
                                                "one that has a call of its number");
}

enum prof_status trace_sink_finish(struct trace_sink *sink, struct prof_error *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < sink->open.count; i++) /* open to the end */
        ok = put_range(sink, 59, &sink->open.data[i], NULL);
    sink->skipped[SKIPPED_UNCLOSED] += sink->open.count;
    ok = ok && describe(sink, "EXPORT_PRODUCT_NAME", sink->is_kineto ? "a trace of torch.profiler (Kineto)" : "a Chrome trace");
    if (ok && sink->has_base) {
        sqlite3_bind_int64(sink->sql[SQL_START], 1, sink->base_ns);
        ok = run(sink, SQL_START);
    }
    ok = ok && describe_skipped(sink) && assign_processes(sink);
    for (int i = 0; i < SINK_SQLS; i++) {
        sqlite3_finalize(sink->sql[i]);
        sink->sql[i] = NULL;
    }
    if (!ok || sqlite3_exec(sink->db, "COMMIT", NULL, NULL, NULL))
        return trace_sink_fail(sink, err);
    return PROF_OK;
}
