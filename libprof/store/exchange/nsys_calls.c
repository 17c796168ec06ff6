/* Calls and device records of an Nsight Systems export meet here: both are read in the order of
 * process and correlation number, so that a call and its records pass by together and nothing has
 * to be kept. */
#include <stdio.h>
#include <string.h>

#include "libprof/store/exchange/nsys.h"

/* ---- calls ----------------------------------------------------------------------------------- */

/* Columns of calls_sql */
enum {
    CALL_PID,
    CALL_CORRELATION,
    CALL_START,
    CALL_END,
    CALL_TID,
    CALL_CLASS,
    CALL_NAME,
    CALL_RESULT,
    CALL_STACK
};

static const char calls_sql[] = "SELECT globalTid & " NSYS_GLOBAL_PID_MASK
                                ", coalesce(correlationId, 0), start, end, globalTid, eventClass, "
                                "nameId, returnValue, callchainId FROM n_RUNTIME ORDER BY 1, 2, 3";

/* Columns of records_sql, the first ones of all kinds */
enum { KIND, PID, CORRELATION, START, END, DEVICE, CONTEXT, STREAM, NODE, ARGUMENT };
enum kind { KERNEL, COPY, FILL, WAIT, GRAPH };

#define RECORD_OF(kind, device)                                                                    \
    "SELECT " #kind ", coalesce(globalPid, " NSYS_MAIN_PROCESS                                     \
    ", 0), coalesce(correlationId, 0), start, end, " device ", contextId, streamId, "
#define KERNELS RECORD_OF(0, "deviceId")
#define COPIES RECORD_OF(1, "deviceId")
#define FILLS RECORD_OF(2, "deviceId")
#define WAITS RECORD_OF(3, NSYS_OWNER("w"))
#define GRAPHS RECORD_OF(4, "deviceId")
#define NO_8 ", NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL"
static const char records_sql[] =
    KERNELS "graphNodeId, coalesce(demangledName, shortName, mangledName), launchType, "
            "registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory, "
            "dynamicSharedMemory, localMemoryPerThread, clusterX, clusterY, clusterZ, graphId FROM "
            "n_KERNEL UNION ALL " COPIES
            "graphNodeId, bytes, copyKind, srcKind, dstKind, dstDeviceId, migrationCause, "
            "virtualAddress, srcDeviceId" NO_8 " FROM n_MEMCPY UNION ALL " FILLS
            "graphNodeId, bytes, value, memKind, NULL, NULL, NULL, NULL, NULL" NO_8
            " FROM n_MEMSET UNION ALL " WAITS
            "NULL, syncType, eventId, eventSyncId, NULL, NULL, NULL, NULL, NULL" NO_8
            " FROM n_SYNCHRONIZATION w UNION ALL " GRAPHS "NULL, graphId, NULL, NULL, NULL, NULL, "
            "NULL, NULL, NULL" NO_8 " FROM n_GRAPH_TRACE ORDER BY 2, 3, 4";

/* cudaLaunchKernel_v7000: the version of CUPTI's table of names, not of the function */
static size_t without_version(const char *name, size_t length)
{
    size_t digits = 0;
    while (digits < length && name[length - digits - 1] >= '0' && name[length - digits - 1] <= '9')
        digits++;
    bool suffix = (digits == 4 || digits == 5) && length > digits + 2 &&
                  name[length - digits - 1] == 'v' && name[length - digits - 2] == '_';
    return suffix ? length - digits - 2 : length;
}

static bool feed_api_name(struct feed *feed, struct feed_process *process, int64_t number,
                          struct wire_call *call, bool *opencl)
{
    char name[256];
    *opencl = false;
    sqlite3_bind_int64(feed->string, 1, number);
    bool found = sqlite3_step(feed->string) == SQLITE_ROW;
    if (found) {
        const char *text = (const char *)sqlite3_column_text(feed->string, 0);
        size_t length =
            text ? without_version(text, (size_t)sqlite3_column_bytes(feed->string, 0)) : 0;
        found = text && length < sizeof name && !memchr(text, 0, length);
        if (found)
            snprintf(name, sizeof name, "%.*s", (int)length, text);
    }
    sqlite3_reset(feed->string);
    if (!found)
        return feed_string(feed, process, number, &call->name);
    call->klass = (uint8_t)wire_call_class(name);
    *opencl = name[0] == 'c' && name[1] == 'l' && name[2] >= 'A' && name[2] <= 'Z';
    return feed_text(feed, process, name, &call->name);
}

struct call {
    struct wire_call record;
    uint32_t tid;
};

static bool read_call(struct feed *feed, struct feed_process *process, sqlite3_stmt *row,
                      struct call *call)
{
    bool opencl;
    int64_t start = feed_int(row, CALL_START), end = feed_int(row, CALL_END);
    *call = (struct call){.tid = (uint32_t)(feed_int(row, CALL_TID) & 0xffffff)};
    if (!feed_api_name(feed, process, feed_int(row, CALL_NAME), &call->record, &opencl) ||
        (feed_has(row, CALL_STACK) &&
         !feed_stack(feed, process, feed_int(row, CALL_STACK), &call->record.stack)))
        return false;
    call->record.start = feed_time(feed, start);
    call->record.end = feed_end(feed, start, end);
    if (!call->record.end)
        call->record.end = call->record.start;
    call->record.result = (int32_t)feed_int(row, CALL_RESULT);
    FEED_HEAD(call->record, WIRE_CALL,
              opencl                           ? WIRE_SOURCE_OPENCL
              : feed_int(row, CALL_CLASS) == 1 ? WIRE_SOURCE_CUDA_DRIVER
                                               : WIRE_SOURCE_CUDA,
              0);
    return true;
}

/* ---- device records -------------------------------------------------------------------------- */

static bool read_launch_config(struct feed *feed, struct feed_process *process, sqlite3_stmt *row,
                               uint32_t *id)
{
    struct wire_config config = {0};
    uint8_t flags = 0;
    for (int i = 0; i < 3; i++) {
        config.grid[i] = feed_u32(row, ARGUMENT + 3 + i);
        config.block[i] = feed_u32(row, ARGUMENT + 6 + i);
        config.cluster[i] = feed_u32(row, ARGUMENT + 12 + i);
    }
    config.registers = feed_u32(row, ARGUMENT + 2);
    config.shared_static = feed_u32(row, ARGUMENT + 9);
    config.shared_dynamic = feed_u32(row, ARGUMENT + 10);
    config.local_per_thread = feed_u32(row, ARGUMENT + 11);
    /* A kernel has registers: 0 stands for what is not known, of our own exports of OpenCL too. */
    bool known = !feed_has(row, ARGUMENT + 2) || config.registers;
    flags |= config.registers ? WIRE_CONFIG_HAS_REGISTERS : 0;
    flags |= known && feed_has(row, ARGUMENT + 9) && feed_has(row, ARGUMENT + 10)
                 ? WIRE_CONFIG_HAS_SHARED
                 : 0;
    flags |= known && feed_has(row, ARGUMENT + 11) ? WIRE_CONFIG_HAS_LOCAL : 0;
    flags |= config.block[0] ? 0 : WIRE_CONFIG_RUNTIME_CHOSEN;
    config.head.flags = flags;
    return feed_config(feed, process, feed_int(row, ARGUMENT), &config, id);
}

/* Wait type 2 of files before 3.25 is also that of cudaStreamSynchronize: without an event it is.
 */
static uint32_t wait_kind(sqlite3_stmt *row)
{
    int64_t kind = feed_int(row, ARGUMENT);
    bool no_event = !feed_has(row, ARGUMENT + 1) || feed_int(row, ARGUMENT + 1) == NSYS_NONE;
    if (kind == WIRE_SYNC_STREAM_WAIT_EVENT && no_event)
        return WIRE_SYNC_STREAM;
    return kind >= 1 && kind <= 4 ? (uint32_t)kind : WIRE_SYNC_UNKNOWN;
}

/* What a record needs to be written: its row, and what it shares with its call. */
struct piece {
    struct feed_process *process;
    sqlite3_stmt *row;
    uint64_t correlation; /* 0 = it stands alone */
    uint8_t flags;
    uint32_t stream;
    struct wire_times times;
};

static bool feed_kernel(struct feed *feed, const struct piece *piece)
{
    struct wire_kernel kernel = {.correlation = piece->correlation, .times = piece->times};
    uint8_t cooperative = feed_int(piece->row, ARGUMENT + 1) >= 2 ? WIRE_COOPERATIVE : 0;
    FEED_HEAD(kernel, WIRE_KERNEL, piece->flags | cooperative, piece->stream);
    kernel.graph_node = (uint64_t)feed_int(piece->row, NODE);
    kernel.graph = feed_u32(piece->row, ARGUMENT + 15);
    return read_launch_config(feed, piece->process, piece->row, &kernel.config) &&
           feed_record(feed, piece->process, 0, &kernel);
}

/* Unified memory moved without a call. */
static bool put_migration(struct feed *feed, const struct piece *piece, int64_t kind)
{
    struct wire_migration moved = {.start = piece->times.start,
                                   .end = piece->times.end,
                                   .address = (uint64_t)feed_int(piece->row, ARGUMENT + 6),
                                   .value = (uint64_t)feed_int(piece->row, ARGUMENT),
                                   .cause = feed_u32(piece->row, ARGUMENT + 5)};
    int64_t device = feed_int(piece->row, DEVICE);
    FEED_HEAD(moved, WIRE_MIGRATION, WIRE_SOURCE_CUDA, piece->stream);
    moved.kind = kind == 11   ? WIRE_MIGRATION_HTOD
                 : kind == 12 ? WIRE_MIGRATION_DTOH
                              : WIRE_MIGRATION_DTOD;
    if (kind != 12 && !feed_device(feed, piece->process, device, &moved.target))
        return false;
    if (kind != 11 && feed_has(piece->row, ARGUMENT + 7))
        device = feed_int(piece->row, ARGUMENT + 7);
    if (kind != 11 && !feed_device(feed, piece->process, device, &moved.source))
        return false;
    return feed_record(feed, piece->process, 0, &moved);
}

static bool feed_copy(struct feed *feed, const struct piece *piece)
{
    int64_t kind = feed_int(piece->row, ARGUMENT + 1), bytes = feed_int(piece->row, ARGUMENT);
    if (kind >= 11 && kind <= 13)
        return put_migration(feed, piece, kind);
    struct wire_transfer copy = {.correlation = piece->correlation,
                                 .times = piece->times,
                                 .bytes = bytes > 0 ? (uint64_t)bytes : 0,
                                 .copy_kind =
                                     kind >= 0 && kind <= 10 ? (uint8_t)kind : WIRE_COPY_UNKNOWN,
                                 .blocking = 255};
    FEED_HEAD(copy, WIRE_TRANSFER, piece->flags, piece->stream);
    copy.graph_node = (uint64_t)feed_int(piece->row, NODE);
    copy.source_kind = feed_has(piece->row, ARGUMENT + 2)
                           ? nsys_memory_kind(feed_int(piece->row, ARGUMENT + 2))
                           : 0;
    copy.target_kind = feed_has(piece->row, ARGUMENT + 3)
                           ? nsys_memory_kind(feed_int(piece->row, ARGUMENT + 3))
                           : 0;
    if (kind == WIRE_COPY_PTOP && feed_has(piece->row, ARGUMENT + 4) &&
        feed_int(piece->row, ARGUMENT + 4) != feed_int(piece->row, DEVICE) &&
        !feed_device(feed, piece->process, feed_int(piece->row, ARGUMENT + 4), &copy.peer_device))
        return false;
    return feed_record(feed, piece->process, 0, &copy);
}

static bool feed_memset(struct feed *feed, const struct piece *piece)
{
    int64_t bytes = feed_int(piece->row, ARGUMENT);
    struct wire_memset fill = {.correlation = piece->correlation,
                               .times = piece->times,
                               .bytes = bytes > 0 ? (uint64_t)bytes : 0,
                               .value = (uint32_t)feed_int(piece->row, ARGUMENT + 1)};
    FEED_HEAD(fill, WIRE_MEMSET, piece->flags, piece->stream);
    fill.graph_node = (uint64_t)feed_int(piece->row, NODE);
    fill.memory_kind = feed_has(piece->row, ARGUMENT + 2)
                           ? nsys_memory_kind(feed_int(piece->row, ARGUMENT + 2))
                           : 0;
    return feed_record(feed, piece->process, 0, &fill);
}

static bool feed_synchronization(struct feed *feed, const struct piece *piece)
{
    struct wire_sync wait = {.correlation = piece->correlation,
                             .start = piece->times.start,
                             .end = piece->times.end,
                             .event = nsys_event_number(piece->row, ARGUMENT + 1),
                             .kind = wait_kind(piece->row),
                             .recorded = nsys_event_number(piece->row, ARGUMENT + 2)};
    FEED_HEAD(wait, WIRE_SYNC, piece->flags, wait.kind == WIRE_SYNC_CONTEXT ? 0 : piece->stream);
    return feed_record(feed, piece->process, 0, &wait);
}

static bool put_graph(struct feed *feed, const struct piece *piece)
{
    struct wire_graph graph = {.correlation = piece->correlation,
                               .times = piece->times,
                               .graph = feed_u32(piece->row, ARGUMENT)};
    FEED_HEAD(graph, WIRE_GRAPH, 0, piece->stream);
    return feed_record(feed, piece->process, 0, &graph);
}

static bool put_piece(struct feed *feed, struct piece *piece)
{
    static bool (*const put[])(struct feed *, const struct piece *) = {
        feed_kernel, feed_copy, feed_memset, feed_synchronization, put_graph};
    sqlite3_stmt *row = piece->row;
    int64_t start = feed_int(row, START), end = feed_int(row, END);
    bool any_stream = feed_has(row, STREAM) && feed_int(row, STREAM) != NSYS_NONE;
    if (any_stream && !feed_stream(feed, piece->process, feed_int(row, DEVICE),
                                   feed_int(row, CONTEXT), feed_int(row, STREAM), &piece->stream))
        return false;
    piece->times =
        (struct wire_times){.start = feed_time(feed, start), .end = feed_end(feed, start, end)};
    return put[feed_int(row, KIND)](feed, piece);
}

/* ---- calls and their records ----------------------------------------------------------------- */

struct meeting {
    struct feed *feed;
    sqlite3_stmt *calls, *records;
    bool call_here, record_here; /* the statement stands on a row */
};

static bool next_row_here(struct meeting *m, sqlite3_stmt *rows, bool *here)
{
    int rc = sqlite3_step(rows);
    *here = rc == SQLITE_ROW;
    if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        return true;
    exchange_sql_fail(m->feed->source, "read", m->feed->path, m->feed->err);
    return false;
}

static int compare_keys(const int64_t a[2], const int64_t b[2])
{
    if (a[0] != b[0])
        return a[0] < b[0] ? -1 : 1;
    return (a[1] > b[1]) - (a[1] < b[1]);
}

/* The call alone: no record bears its number. */
static bool feed_call_alone(struct feed *feed, struct feed_process *process, struct call *call)
{
    return feed_record(feed, process, call->tid, &call->record);
}

/* A function without a class is what its record is. */
static void set_unknown_class(struct call *call, enum wire_class klass)
{
    if (call->record.klass == WIRE_CLASS_OTHER)
        call->record.klass = (uint8_t)klass;
}

/* Of a graph: all its records keep the number, and the call has a row of its own. */
static bool put_launch(struct feed *feed, struct feed_process *process, struct call *call,
                       int64_t correlation)
{
    call->record.correlation = (uint64_t)correlation;
    call->record.expects = WIRE_EXPECTS_MANY;
    set_unknown_class(call, WIRE_CLASS_GRAPH_LAUNCH);
    return feed_call_alone(feed, process, call);
}

/* The call and its one record get a number that nothing else has: those of a source may come twice.
 */
static bool put_pair(struct feed *feed, struct piece *piece, struct call *call)
{
    static const enum wire_class classes[] = {WIRE_CLASS_LAUNCH, WIRE_CLASS_TRANSFER,
                                              WIRE_CLASS_MEMSET, WIRE_CLASS_SYNC};
    piece->correlation = call->record.correlation = ++feed->correlation;
    piece->flags = call->record.head.flags == WIRE_SOURCE_OPENCL ? WIRE_OPENCL : 0;
    call->record.expects = WIRE_EXPECTS_ONE;
    set_unknown_class(call, classes[feed_int(piece->row, KIND)]);
    call->record.result = 0; /* it did make a record */
    return feed_call_alone(feed, piece->process, call) && put_piece(feed, piece);
}

static bool is_of_graph(sqlite3_stmt *row)
{
    int64_t kind = feed_int(row, KIND);
    return kind == GRAPH || (kind <= FILL && feed_int(row, NODE)) ||
           (kind == KERNEL && feed_int(row, ARGUMENT + 15));
}

/* May the call and this record be one row? Unified memory moves without a call of its own, and a
 * wait inside a copy stands alone: `waits` says that only waits are left to choose from. */
static bool may_pair(sqlite3_stmt *row, bool waits)
{
    int64_t kind = feed_int(row, KIND);
    if (kind == COPY && feed_int(row, ARGUMENT + 1) >= 11)
        return false;
    return kind == WAIT ? waits : kind != GRAPH;
}

/* All that bears one number in one process. */
static bool feed_correlated_group(struct meeting *m, const int64_t key[2])
{
    struct feed *feed = m->feed;
    struct feed_process *process = feed_process(feed, key[0]);
    struct call call;
    bool waiting = false, waits = false;
    while (process && m->call_here &&
           !compare_keys(key, (int64_t[2]){feed_int(m->calls, CALL_PID),
                                           feed_int(m->calls, CALL_CORRELATION)})) {
        struct call read;
        if (!read_call(feed, process, m->calls, &read))
            return false;
        if (key[1] == 0 || waiting) { /* without a number, or one used twice: it stands alone */
            if (!feed_call_alone(feed, process, &read))
                return false;
        } else {
            call = read;
            waiting = true;
            waits = wire_class_waits(read.record.klass);
        }
        if (!next_row_here(m, m->calls, &m->call_here))
            return false;
    }
    while (process && m->record_here &&
           !compare_keys(
               key, (int64_t[2]){feed_int(m->records, PID), feed_int(m->records, CORRELATION)})) {
        struct piece piece = {.process = process, .row = m->records};
        bool graph = is_of_graph(m->records), ok;
        if (graph && waiting && !put_launch(feed, process, &call, key[1]))
            return false;
        if (graph) {
            waiting = false;
            piece.correlation = (uint64_t)key[1];
            ok = put_piece(feed, &piece);
        } else if (waiting && may_pair(m->records, waits)) {
            waiting = false;
            ok = put_pair(feed, &piece, &call);
        } else {
            ok = put_piece(feed, &piece);
        }
        if (!ok || !next_row_here(m, m->records, &m->record_here))
            return false;
    }
    return process && (!waiting || feed_call_alone(feed, process, &call));
}

enum prof_status nsys_import_calls(struct feed *feed)
{
    struct meeting m = {.feed = feed};
    enum prof_status status =
        exchange_prepare(feed->source, feed->path, calls_sql, &m.calls, feed->err);
    status =
        status ?: exchange_prepare(feed->source, feed->path, records_sql, &m.records, feed->err);
    bool ok = !status && next_row_here(&m, m.calls, &m.call_here) &&
              next_row_here(&m, m.records, &m.record_here);
    while (ok && (m.call_here || m.record_here)) {
        int64_t call[2] = {INT64_MAX, INT64_MAX}, record[2] = {INT64_MAX, INT64_MAX};
        if (m.call_here) {
            call[0] = feed_int(m.calls, CALL_PID);
            call[1] = feed_int(m.calls, CALL_CORRELATION);
        }
        if (m.record_here) {
            record[0] = feed_int(m.records, PID);
            record[1] = feed_int(m.records, CORRELATION);
        }
        ok = feed_correlated_group(
            &m, !m.record_here || (m.call_here && compare_keys(call, record) < 0) ? call : record);
    }
    sqlite3_finalize(m.calls);
    sqlite3_finalize(m.records);
    return ok ? PROF_OK : feed->err->status;
}
