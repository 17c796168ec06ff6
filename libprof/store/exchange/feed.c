/* Definitions on demand: see feed.h. What a source calls by a number of its own (a string, a
 * device, a stream) is defined to the ingest when the first event names it, with what the source's
 * tables say of it; they may be absent, and then only the number is known. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store/exchange/feed.h"
#include "libprof/store/exchange/nsys.h"

#define EVENTS_BETWEEN_LOOKS 65536u
#define DEEPEST_CONTEXT 8u /* green contexts have a parent, which has none */

/* Looked up by number while events are read: copies with an index, which views lack. */
static const char lookups[] =
    "CREATE TEMP TABLE nsys_chain(id, depth, symbol, module, ip, unresolved, PRIMARY KEY(id, depth)"
    ") WITHOUT ROWID;"
    "INSERT OR IGNORE INTO nsys_chain SELECT id, stackDepth, symbol, module, originalIP, unresolved"
    " FROM n_CUDA_CALLCHAINS WHERE id NOT NULL AND stackDepth NOT NULL AND symbol NOT NULL;"
    "CREATE TEMP TABLE nsys_owner(pid, context, device, PRIMARY KEY(pid, context, device)) WITHOUT "
    "ROWID;"
    "INSERT OR IGNORE INTO nsys_owner SELECT globalPid, contextId, deviceId FROM (SELECT globalPid,"
    " contextId, deviceId FROM n_KERNEL UNION ALL SELECT globalPid, contextId, deviceId FROM"
    " n_MEMCPY UNION ALL SELECT globalPid, contextId, deviceId FROM n_MEMSET) WHERE globalPid NOT"
    " NULL AND contextId NOT NULL AND deviceId NOT NULL;";

enum prof_status feed_open(struct feed *feed)
{
    static const char *const sql[] = {
        "SELECT value FROM nsys_string WHERE id = ?1",
        "SELECT name FROM n_PROCESSES WHERE globalPid = ?1 AND name NOT NULL LIMIT 1",
        /* by the process's own number of it, else by its number in the machine */
        "SELECT g.name, g.uuid, g.l2CacheSize, g.totalMemory, g.memoryBandwidth, g.clockRate, "
        "g.smCount, g.maxShmemPerBlock, g.maxShmemPerSm, g.maxRegistersPerSm, g.threadsPerWarp, "
        "g.maxWarpsPerSm, g.maxThreadsPerBlock, g.computeMajor, g.computeMinor, g.isDiscrete FROM "
        "n_TARGET_INFO_GPU g WHERE g.id = coalesce((SELECT gpuId FROM n_TARGET_INFO_CUDA_DEVICE "
        "WHERE cudaId = ?1 AND pid = ?2), ?1) LIMIT 1",
        "SELECT priority, flag FROM n_TARGET_INFO_CUDA_STREAM WHERE streamId = ?1 AND processId = "
        "?2 AND contextId = ?3 LIMIT 1",
        "SELECT parentContextId, isGreenContext, numMultiprocessors, nullStreamId FROM "
        "n_TARGET_INFO_CUDA_CONTEXT_INFO WHERE contextId = ?1 AND processId = ?2 AND deviceId = ?3 "
        "LIMIT 1",
        "SELECT c.symbol, c.module, c.ip, c.unresolved, s.value FROM nsys_chain c LEFT JOIN "
        "nsys_string s ON s.id = c.symbol WHERE c.id = ?1 ORDER BY c.depth"};
    sqlite3_stmt **const out[] = {&feed->string, &feed->command, &feed->device,
                                  &feed->stream, &feed->context, &feed->chain};
    enum prof_status status = PROF_OK;
    if (sqlite3_exec(feed->source, lookups, NULL, NULL, NULL))
        status = exchange_sql_fail(feed->source, "read", feed->path, feed->err);
    for (size_t i = 0; !status && i < sizeof out / sizeof *out; i++)
        status = exchange_prepare(feed->source, feed->path, sql[i], out[i], feed->err);
    return status;
}

void feed_close(struct feed *feed)
{
    sqlite3_stmt *const statements[] = {feed->string, feed->command, feed->device,
                                        feed->stream, feed->context, feed->chain};
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        sqlite3_finalize(statements[i]);
    for (size_t i = 0; i < feed->processes.count; i++) {
        struct feed_process *process = feed->processes.data[i];
        prof_map_free(&process->strings);
        prof_map_free(&process->devices);
        prof_map_free(&process->contexts);
        prof_map_free(&process->stacks);
        prof_names_free(&process->streams);
        prof_names_free(&process->configs);
        prof_names_free(&process->texts);
        free(process);
    }
    prof_array_free(&feed->processes);
    prof_map_free(&feed->by_global);
}

static bool fail_feed_no_memory(struct feed *feed)
{
    prof_out_of_memory(feed->err);
    return false;
}

/* ---- times and records ----------------------------------------------------------------------- */

uint64_t feed_time(struct feed *feed, int64_t source_ns)
{
    if (source_ns > FEED_FARTHEST_NS || source_ns < -FEED_FARTHEST_NS)
        return 0;
    if (source_ns > feed->end_ns)
        feed->end_ns = source_ns;
    return source_ns < feed->zero_ns ? FOREIGN_ZERO_NS
                                     : (uint64_t)(source_ns - feed->zero_ns) + FOREIGN_ZERO_NS;
}

uint64_t feed_end(struct feed *feed, int64_t start, int64_t end)
{
    if (end >= start)
        return feed_time(feed, end);
    feed->backwards++;
    return 0;
}

bool feed_record(struct feed *feed, struct feed_process *process, uint32_t tid, const void *record)
{
    if (foreign_feed(feed->ingest, process->scope, tid, record) != PROF_OK) {
        foreign_fail(feed->ingest, feed->err);
        return false;
    }
    const struct prof_exchange_options *options = feed->options;
    if (++feed->result->rows % EVENTS_BETWEEN_LOOKS == 0 && options->progress &&
        !options->progress(options->user, feed->result->rows)) {
        prof_fail(feed->err, PROF_INVALID, "interrupted: nothing was written");
        return false;
    }
    return true;
}

/* Not an event: not counted. */
static bool define(struct feed *feed, struct feed_process *process, const void *record)
{
    if (foreign_feed(feed->ingest, process->scope, 0, record) == PROF_OK)
        return true;
    foreign_fail(feed->ingest, feed->err);
    return false;
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool define_text(struct feed *feed, struct feed_process *process, const char *text,
                        size_t length, uint32_t *id)
{
    *id = ++process->last_id;
    if (foreign_string(feed->ingest, process->scope, *id, text, length) == PROF_OK)
        return true;
    foreign_fail(feed->ingest, feed->err);
    return false;
}

bool feed_string(struct feed *feed, struct feed_process *process, int64_t number, uint32_t *id)
{
    uint64_t *known = prof_map_get(&process->strings, (uint64_t)number);
    if (known) {
        *id = (uint32_t)*known;
        return true;
    }
    sqlite3_bind_int64(feed->string, 1, number);
    const char *text = NULL;
    size_t length = 0;
    if (sqlite3_step(feed->string) == SQLITE_ROW) {
        text = (const char *)sqlite3_column_text(feed->string, 0);
        length = (size_t)sqlite3_column_bytes(feed->string, 0);
    }
    feed->unnamed += text == NULL;
    bool ok = text ? define_text(feed, process, text, length, id)
                   : define_text(feed, process, "(unnamed)", 9, id);
    sqlite3_reset(feed->string);
    if (ok && !prof_map_put(&process->strings, (uint64_t)number, *id))
        return fail_feed_no_memory(feed);
    return ok;
}

bool feed_text(struct feed *feed, struct feed_process *process, const char *text, uint32_t *id)
{
    *id = 0;
    if (!text)
        return true;
    size_t length = strlen(text);
    uint32_t *known = prof_names_get(&process->texts, text, length);
    if (known) {
        *id = *known;
        return true;
    }
    if (!define_text(feed, process, text, length, id))
        return false;
    return prof_names_put(&process->texts, text, length, *id) || fail_feed_no_memory(feed);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* A number that the source has once; -1: it has none. */
static int64_t main_number(struct feed *feed, const char *name)
{
    return prof_sql_number(feed->source, -1,
                           "SELECT CAST(value AS INTEGER) FROM n_META_DATA_EXPORT WHERE name = %Q",
                           name);
}

struct feed_process *feed_process(struct feed *feed, int64_t global)
{
    uint64_t *known = prof_map_get(&feed->by_global, (uint64_t)global);
    if (known)
        return feed->processes.data[*known];
    struct feed_process *process = calloc(1, sizeof *process);
    struct feed_process **slot = process ? prof_array_add(&feed->processes) : NULL;
    if (!slot || !prof_map_put(&feed->by_global, (uint64_t)global, feed->processes.count - 1)) {
        feed->processes.count -= slot != NULL;
        free(process);
        fail_feed_no_memory(feed);
        return NULL;
    }
    *slot = process;
    process->global = global;
    process->pid = (uint32_t)(global >> 24) & 0xffffffu;
    sqlite3_bind_int64(feed->command, 1, global);
    const char *command = sqlite3_step(feed->command) == SQLITE_ROW
                              ? (const char *)sqlite3_column_text(feed->command, 0)
                              : NULL;
    bool ranked = global == main_number(feed, "PERFKIT_MAIN_PROCESS");
    process->scope = foreign_process(feed->ingest, process->pid, command,
                                     ranked ? main_number(feed, "PERFKIT_RANK") : -1,
                                     ranked ? main_number(feed, "PERFKIT_WORLD_SIZE") : -1);
    sqlite3_reset(feed->command);
    if (process->scope)
        return process;
    foreign_fail(feed->ingest, feed->err);
    return NULL;
}

/* ---- devices, contexts, streams -------------------------------------------------------------- */

/* WIRE_DEVICE_* of an OpenCL device that a capture of ours was exported with; -1 = it is not one */
static int opencl_flags(struct feed *feed, int64_t device)
{
    PROF_SQL_FREED char *sql = sqlite3_mprintf(
        "SELECT value FROM n_META_DATA_EXPORT WHERE name = 'PERFKIT_OPENCL_DEVICE' AND "
        "CAST(value AS INTEGER) = %lld",
        (long long)device);
    PROF_FINALIZED sqlite3_stmt *row = NULL;
    int flags = -1;
    if (sql && !sqlite3_prepare_v2(feed->source, sql, -1, &row, NULL) &&
        sqlite3_step(row) == SQLITE_ROW) {
        const char *kind = (const char *)sqlite3_column_text(row, 0);
        flags = kind && strstr(kind, "cpu")   ? WIRE_DEVICE_CPU
                : kind && strstr(kind, "gpu") ? WIRE_DEVICE_GPU
                                              : 0;
    }
    return flags;
}

static uint32_t event_source(struct feed *feed, int64_t device)
{
    return opencl_flags(feed, device) < 0 ? WIRE_SOURCE_CUDA : WIRE_SOURCE_OPENCL;
}

static uint32_t kilohertz(int64_t hertz)
{
    return hertz > 0 && hertz / 1000 <= UINT32_MAX ? (uint32_t)(hertz / 1000) : 0;
}

static uint64_t positive(sqlite3_stmt *row, int at)
{
    int64_t value = feed_int(row, at);
    return value > 0 ? (uint64_t)value : 0;
}

static bool describe_device(struct feed *feed, struct feed_process *process,
                            struct wire_device *device)
{
    sqlite3_stmt *row = feed->device;
    const char *uuid = (const char *)sqlite3_column_text(row, 1);
    char full[64];
    if (uuid && strlen(uuid) == 36) { /* there without the prefix that NVML and CUPTI give it */
        snprintf(full, sizeof full, "GPU-%s", uuid);
        uuid = full;
    }
    device->l2_bytes = positive(row, 2);
    device->memory_bytes = positive(row, 3);
    device->memory_bandwidth = positive(row, 4);
    device->clock_khz = kilohertz(feed_int(row, 5));
    device->units = feed_u32(row, 6);
    device->shared_per_block_bytes = positive(row, 7);
    device->shared_per_unit_bytes = positive(row, 8);
    device->registers_per_unit = feed_u32(row, 9);
    device->warp = feed_u32(row, 10);
    if (device->warp <= 1024 && feed_u32(row, 11) <= 1024)
        device->max_threads_per_unit = device->warp * feed_u32(row, 11);
    device->max_block = feed_u32(row, 12);
    device->compute_major = feed_u32(row, 13);
    device->compute_minor = feed_u32(row, 14);
    if (feed_has(row, 15) && !feed_int(row, 15))
        device->head.flags |= WIRE_DEVICE_INTEGRATED;
    return feed_text(feed, process, (const char *)sqlite3_column_text(row, 0), &device->name) &&
           feed_text(feed, process, uuid, &device->uuid);
}

bool feed_device(struct feed *feed, struct feed_process *process, int64_t number, uint32_t *id)
{
    uint64_t *known = prof_map_get(&process->devices, (uint64_t)number);
    if (known) {
        *id = (uint32_t)*known;
        return true;
    }
    int flags = opencl_flags(feed, number);
    struct wire_device device = {.source = event_source(feed, number),
                                 .ordinal =
                                     number >= 0 && number <= UINT32_MAX ? (uint32_t)number : 0};
    FEED_HEAD(device, WIRE_DEVICE, flags < 0 ? WIRE_DEVICE_GPU : (unsigned)flags, 0);
    sqlite3_bind_int64(feed->device, 1, number);
    sqlite3_bind_int64(feed->device, 2, process->pid);
    bool ok = sqlite3_step(feed->device) != SQLITE_ROW || describe_device(feed, process, &device);
    sqlite3_reset(feed->device);
    *id = device.head.aux = ++process->last_id;
    if (!ok || !define(feed, process, &device))
        return false;
    return prof_map_put(&process->devices, (uint64_t)number, *id) || fail_feed_no_memory(feed);
}

static uint64_t context_key(int64_t device, int64_t number)
{
    return (uint64_t)device << 48 ^ (uint64_t)number;
}

static bool context_within(struct feed *feed, struct feed_process *process, int64_t device,
                           int64_t number, unsigned depth, uint32_t *id)
{
    uint64_t *known = prof_map_get(&process->contexts, context_key(device, number));
    if (known) {
        *id = (uint32_t)*known;
        return true;
    }
    struct wire_context context = {.native = (uint64_t)number,
                                   .source = event_source(feed, device)};
    if (!feed_device(feed, process, device, &context.device))
        return false;
    FEED_HEAD(context, WIRE_CONTEXT, 0, ++process->last_id);
    sqlite3_bind_int64(feed->context, 1, number);
    sqlite3_bind_int64(feed->context, 2, process->pid);
    sqlite3_bind_int64(feed->context, 3, device);
    int64_t parent = 0;
    if (sqlite3_step(feed->context) == SQLITE_ROW && feed_int(feed->context, 1)) {
        context.head.flags = WIRE_CONTEXT_GREEN;
        context.units = feed_u32(feed->context, 2);
        parent = feed_int(feed->context, 0);
    }
    sqlite3_reset(feed->context);
    *id = context.head.aux;
    /* Known before its parent is looked for: a chain that comes back to itself ends here. */
    if (!prof_map_put(&process->contexts, context_key(device, number), *id))
        return fail_feed_no_memory(feed);
    if (parent && parent != number && depth < DEEPEST_CONTEXT &&
        !context_within(feed, process, device, parent, depth + 1, &context.parent))
        return false;
    return define(feed, process, &context);
}

bool feed_context(struct feed *feed, struct feed_process *process, int64_t device, int64_t number,
                  uint32_t *id)
{
    return context_within(feed, process, device, number, 0, id);
}

static void describe_stream(struct feed *feed, const struct feed_process *process, int64_t device,
                            int64_t context, int64_t number, struct wire_stream *stream)
{
    sqlite3_bind_int64(feed->stream, 1, number);
    sqlite3_bind_int64(feed->stream, 2, process->pid);
    sqlite3_bind_int64(feed->stream, 3, context);
    if (sqlite3_step(feed->stream) == SQLITE_ROW) {
        stream->priority = (int32_t)(uint32_t)feed_int(feed->stream, 0); /* written as unsigned */
        if (feed_int(feed->stream, 1) == 2)
            stream->head.flags |= WIRE_STREAM_NON_BLOCKING;
        if (feed_int(feed->stream, 1) == 3)
            stream->head.flags |= WIRE_STREAM_DEFAULT;
    }
    sqlite3_reset(feed->stream);
    sqlite3_bind_int64(feed->context, 1, context);
    sqlite3_bind_int64(feed->context, 2, process->pid);
    sqlite3_bind_int64(feed->context, 3, device);
    if (sqlite3_step(feed->context) == SQLITE_ROW && feed_has(feed->context, 3) && number &&
        feed_int(feed->context, 3) == number)
        stream->head.flags |= WIRE_STREAM_DEFAULT;
    sqlite3_reset(feed->context);
}

bool feed_stream(struct feed *feed, struct feed_process *process, int64_t device, int64_t context,
                 int64_t number, uint32_t *id)
{
    const int64_t key[] = {device, context, number};
    uint32_t *known = prof_names_get(&process->streams, (const char *)key, sizeof key);
    if (known) {
        *id = *known;
        return true;
    }
    struct wire_stream stream = {.native = (uint64_t)number, .source = event_source(feed, device)};
    if (!feed_device(feed, process, device, &stream.device) ||
        !feed_context(feed, process, device, context, &stream.context))
        return false;
    FEED_HEAD(stream, WIRE_STREAM, 0, ++process->last_id);
    describe_stream(feed, process, device, context, number, &stream);
    *id = stream.head.aux;
    if (!define(feed, process, &stream))
        return false;
    return prof_names_put(&process->streams, (const char *)key, sizeof key, *id) ||
           fail_feed_no_memory(feed);
}

bool feed_config(struct feed *feed, struct feed_process *process, int64_t name,
                 struct wire_config *config, uint32_t *id)
{
    uint8_t flags = config->head.flags;
    if (!feed_string(feed, process, name, &config->name))
        return false;
    FEED_HEAD(*config, WIRE_CONFIG, flags, 0);
    uint32_t *known = prof_names_get(&process->configs, (const char *)config, sizeof *config);
    if (known) {
        *id = *known;
        return true;
    }
    struct wire_config key = *config;
    *id = config->head.aux = ++process->last_id;
    if (!define(feed, process, config))
        return false;
    return prof_names_put(&process->configs, (const char *)&key, sizeof key, *id) ||
           fail_feed_no_memory(feed);
}

/* ---- call stacks ----------------------------------------------------------------------------- */

static bool read_frame(struct feed *feed, struct feed_process *process, sqlite3_stmt *row,
                       struct foreign_frame *frame)
{
    const char *name = (const char *)sqlite3_column_text(row, 4);
    *frame = (struct foreign_frame){.address = (uint64_t)feed_int(row, 2),
                                    .missing = name && !strcmp(name, NSYS_CALLERS_UNKNOWN)};
    return (feed_int(row, 3) || !name ||
            feed_string(feed, process, feed_int(row, 0), &frame->function)) &&
           (!feed_has(row, 1) || feed_string(feed, process, feed_int(row, 1), &frame->module));
}

bool feed_stack(struct feed *feed, struct feed_process *process, int64_t number, uint32_t *id)
{
    uint64_t *known = prof_map_get(&process->stacks, (uint64_t)number);
    PROF_FREED PROF_ARRAY(struct foreign_frame) frames = {0};
    bool ok = true;
    if (known) {
        *id = (uint32_t)*known;
        return true;
    }
    sqlite3_bind_int64(feed->chain, 1, number);
    while (ok && frames.count <= WIRE_STACK_ENTRIES && sqlite3_step(feed->chain) == SQLITE_ROW) {
        struct foreign_frame *frame = prof_array_add(&frames);
        ok = frame ? read_frame(feed, process, feed->chain, frame) : fail_feed_no_memory(feed);
    }
    sqlite3_reset(feed->chain);
    *id = frames.count ? (uint32_t)process->stacks.count + 1 : 0;
    if (ok && frames.count &&
        foreign_stack(feed->ingest, process->scope, *id, frames.data, frames.count)) {
        foreign_fail(feed->ingest, feed->err);
        ok = false;
    }
    return ok &&
           (prof_map_put(&process->stacks, (uint64_t)number, *id) || fail_feed_no_memory(feed));
}
