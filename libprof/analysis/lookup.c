/* The small tables of a capture in memory: one loader per table, driven by SELECTs whose columns
 * stand in the order of the reading code below. Names are resolved here once, so that the analyses
 * deal in pointers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libprof/analysis/capture.h"
#include "libprof/base/format.h"
#include "libprof/store/schema.h"

struct reader {
    struct prof_capture *capture;
    sqlite3_stmt *row;
    int column; /* next to read */
    bool failed;
};

static int64_t next_int(struct reader *r)
{
    return prof_column_int(r->row, r->column++);
}

/* A size, a count or a rate; what no device has is not known, so that the analyses may multiply. */
#define MOST INT32_MAX
#define MOST_BYTES (INT64_C(1) << 53)
static int64_t next_number(struct reader *r, int64_t most)
{
    int64_t value = next_int(r);
    return value < 0 || value > most ? PROF_UNKNOWN : value;
}

static int64_t next_id(struct reader *r)
{
    return prof_column_id(r->row, r->column++);
}

static bool next_flag(struct reader *r)
{
    return sqlite3_column_int64(r->row, r->column++) != 0;
}

static const char *next_text(struct reader *r)
{
    const char *text = (const char *)sqlite3_column_text(r->row, r->column);
    size_t length = (size_t)sqlite3_column_bytes(r->row, r->column++);
    if (!text)
        return NULL;
    const char *copy = prof_arena_copy(&r->capture->lookup_texts, text, length);
    r->failed |= !copy;
    return copy;
}

static bool read_process(struct reader *r)
{
    struct prof_process *p = prof_array_add(&r->capture->processes);
    if (!p)
        return false;
    p->id = next_id(r);
    p->pid = next_int(r);
    p->parent_pid = next_int(r);
    p->command = next_text(r);
    p->birth = next_text(r);
    p->start_ns = next_int(r);
    p->end_ns = next_int(r);
    p->end_reason = next_text(r);
    p->exit_status = next_int(r);
    p->exit_signal = next_int(r);
    p->host = next_text(r);
    if (!p->host)
        p->host = r->capture->info.host;
    p->rank = next_int(r);
    p->has_events = sqlite3_column_type(r->row, r->column++) != SQLITE_NULL;
    p->local_rank = next_int(r);
    p->world_size = next_int(r);
    p->job = next_text(r);
    p->boot_id = next_text(r);
    if (!p->boot_id)
        p->boot_id = r->capture->info.boot_id;
    return true;
}

static bool read_thread(struct reader *r)
{
    struct prof_thread *t = prof_array_add(&r->capture->threads);
    if (!t)
        return false;
    t->id = next_id(r);
    t->process = next_id(r);
    t->tid = next_int(r);
    t->name = next_text(r);
    return true;
}

/* Its numbers but the ordinal, in the order of their columns. */
enum { DEVICE_NUMBERS = 16 };
static void device_numbers(struct prof_device *d, int64_t *numbers[DEVICE_NUMBERS])
{
    int64_t *const all[DEVICE_NUMBERS] = {
        &d->integrated,
        &d->compute_major,
        &d->compute_minor,
        &d->units,
        &d->warp,
        &d->clock_khz,
        &d->memory_clock_khz,
        &d->memory_bus_bits,
        &d->memory_bytes,
        &d->memory_bandwidth,
        &d->l2_bytes,
        &d->shared_per_unit_bytes,
        &d->shared_per_block_bytes,
        &d->registers_per_unit,
        &d->max_threads_per_unit,
        &d->max_block,
    };
    memcpy(numbers, all, sizeof all);
}

void prof_device_unknown(struct prof_device *device)
{
    int64_t *numbers[DEVICE_NUMBERS];
    *device = (struct prof_device){.ordinal = PROF_UNKNOWN};
    device_numbers(device, numbers);
    for (size_t i = 0; i < DEVICE_NUMBERS; i++)
        *numbers[i] = PROF_UNKNOWN;
}

static bool read_device(struct reader *r)
{
    struct prof_device *d = prof_array_add(&r->capture->devices);
    if (!d)
        return false;
    d->id = d->physical = next_id(r);
    d->process = next_id(r);
    d->api = next_text(r);
    d->ordinal = next_int(r);
    d->name = next_text(r);
    d->vendor = next_text(r);
    d->driver = next_text(r);
    d->uuid = next_text(r);
    d->kind = next_text(r);
    int64_t *numbers[DEVICE_NUMBERS];
    device_numbers(d, numbers);
    for (size_t i = 0; i < DEVICE_NUMBERS; i++) {
        bool bytes = numbers[i] == &d->memory_bytes || numbers[i] == &d->memory_bandwidth ||
                     numbers[i] == &d->l2_bytes;
        *numbers[i] = next_number(r, bytes ? MOST_BYTES : MOST);
    }
    d->label = next_text(r);
    return true;
}

static bool read_context(struct reader *r)
{
    struct prof_context *c = prof_array_add(&r->capture->contexts);
    if (!c)
        return false;
    c->id = next_id(r);
    c->process = next_id(r);
    c->device = next_id(r);
    c->api = next_text(r);
    c->native = next_int(r);
    c->name = next_text(r);
    c->green = next_flag(r);
    c->parent = next_id(r);
    c->units = next_int(r);
    return true;
}

static bool read_stream(struct reader *r)
{
    struct prof_stream *s = prof_array_add(&r->capture->streams);
    if (!s)
        return false;
    s->id = next_id(r);
    s->process = next_id(r);
    s->device = next_id(r);
    s->context = next_id(r);
    s->api = next_text(r);
    s->native = next_int(r);
    s->name = next_text(r);
    s->priority = next_int(r);
    s->is_default = next_flag(r);
    s->out_of_order = next_flag(r);
    s->non_blocking = next_flag(r);
    s->clock = next_text(r);
    return true;
}

static bool read_config(struct reader *r)
{
    struct prof_config *c = prof_array_add(&r->capture->configs);
    if (!c)
        return false;
    c->id = next_id(r);
    int64_t name = next_id(r), demangled = next_id(r);
    c->full_name = prof_string(r->capture, name, NULL);
    c->name = demangled ? prof_string(r->capture, demangled, NULL) : NULL;
    if (!c->name)
        c->name = c->full_name;
    int64_t *const numbers[] = {
        &c->grid[0],       &c->grid[1],        &c->grid[2],    &c->block[0],   &c->block[1],
        &c->block[2],      &c->cluster[0],     &c->cluster[1], &c->cluster[2], &c->registers,
        &c->shared_static, &c->shared_dynamic, &c->local_bytes};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        *numbers[i] = next_number(r, i < 3 ? MOST_BYTES : MOST); /* a grid may count work-items */
    c->ragged = next_flag(r);
    return true;
}

struct category_key {
    int64_t process, domain, category;
};

static bool read_category(struct reader *r)
{
    struct category_key key;
    key.process = next_id(r);
    key.domain = next_id(r);
    key.category = next_id(r);
    const char **slot = prof_array_add(&r->capture->category_texts);
    if (!slot)
        return false;
    *slot = next_text(r);
    return prof_names_put(&r->capture->categories, (const char *)&key, sizeof key,
                          (uint32_t)(r->capture->category_texts.count - 1));
}

const char *prof_category_name(const struct prof_capture *capture, int64_t process, int64_t domain,
                               int64_t category)
{
    struct category_key key = {process, domain, category};
    uint32_t *at = prof_names_get(&capture->categories, (const char *)&key, sizeof key);
    return at ? capture->category_texts.data[*at] : NULL;
}

static const struct {
    const char *sql;
    bool (*read)(struct reader *);
} tables[] = {
    {"SELECT id, pid, parent_pid, command, birth, start, \"end\", end_reason, exit_status, "
     "exit_signal, host, rank, spool, local_rank, world_size, job, boot_id FROM process ORDER BY "
     "id",
     read_process},
    {"SELECT id, process, tid, name FROM thread ORDER BY id", read_thread},
    {"SELECT id, process, api, ordinal, name, vendor, driver, uuid, kind, integrated, "
     "compute_major, compute_minor, units, warp, clock_khz, memory_clock_khz, memory_bus_bits, "
     "memory_bytes, memory_bandwidth, l2_bytes, shared_per_unit_bytes, shared_per_block_bytes, "
     "registers_per_unit, max_threads_per_unit, max_block, label FROM device ORDER BY id",
     read_device},
    {"SELECT id, process, device, api, native, name, green, parent, units FROM context ORDER BY id",
     read_context},
    {"SELECT id, process, device, context, api, native, name, priority, is_default, out_of_order, "
     "non_blocking, clock FROM stream ORDER BY id",
     read_stream},
    {NULL, read_config}, /* see configs_sql */
    {"SELECT process, domain, category, name FROM category ORDER BY id", read_category},
};

/* ---- more launch configurations than are kept apart ------------------------------------------ */

#define CONFIGS                                                                                    \
    "SELECT id, name, demangled, grid_x, grid_y, grid_z, block_x, block_y, block_z, cluster_x, "   \
    "cluster_y, cluster_z, registers, shared_static, shared_dynamic, local_bytes, ragged "         \
    "FROM launch_config "

static int64_t ask_number(struct prof_capture *capture, const char *sql)
{
    sqlite3_stmt *row;
    int64_t number = 0;
    if (prof_query(capture, sql, &row, NULL))
        return 0;
    if (prof_row(row))
        number = prof_column_id(row, 0);
    sqlite3_finalize(row);
    return number;
}

/* Which ones are kept is decided once for a connection: rows that a reader has summed up stay. */
static bool choose_common_configs(struct prof_capture *capture)
{
    char sql[600];
    const char *sums = ask_number(capture, "SELECT EXISTS(SELECT 1 FROM rollup)")
                           ? "SELECT config, sum(sum) AS ns FROM rollup"
                           : "SELECT config, sum(duration) AS ns FROM kernel";
    snprintf(sql, sizeof sql,
             "CREATE TEMP TABLE kept_config(id INTEGER PRIMARY KEY);"
             "INSERT OR IGNORE INTO temp.kept_config SELECT config FROM (%s WHERE config NOT NULL "
             "GROUP BY config) ORDER BY ns DESC, config LIMIT %d;"
             "INSERT INTO temp.kept_config SELECT id FROM launch_config WHERE id NOT IN (SELECT id "
             "FROM temp.kept_config) ORDER BY id LIMIT %d - (SELECT count(*) FROM "
             "temp.kept_config)",
             sums, PROF_MOST_CONFIGS, PROF_MOST_CONFIGS);
    return sqlite3_exec(capture->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* The statement that reads the configurations. */
static const char *configs_sql(struct prof_capture *capture)
{
    if (!capture->has_other_configs &&
        (ask_number(capture, "SELECT count(*) FROM launch_config") <= PROF_MOST_CONFIGS ||
         !choose_common_configs(capture)))
        return CONFIGS "ORDER BY id";
    capture->has_other_configs = true;
    return CONFIGS "WHERE id IN (SELECT id FROM temp.kept_config) ORDER BY id";
}

/* Behind all others, as its number is. */
static bool add_other_configs(struct prof_capture *capture)
{
    char name[80];
    int64_t count = ask_number(capture, "SELECT count(DISTINCT name) FROM launch_config WHERE id "
                                        "NOT IN (SELECT id FROM temp.kept_config)");
    int length =
        snprintf(name, sizeof name, "(others, %s)", prof_counted(count, "kernel", "kernels").text);
    struct prof_config *c = prof_array_add(&capture->configs);
    capture->other_kernels = count;
    if (!c)
        return false;
    *c = (struct prof_config){.id = PROF_OTHER_CONFIGS};
    c->name = c->full_name = prof_arena_copy(&capture->lookup_texts, name, (size_t)length);
    int64_t *const numbers[] = {
        &c->grid[0],       &c->grid[1],        &c->grid[2],    &c->block[0],   &c->block[1],
        &c->block[2],      &c->cluster[0],     &c->cluster[1], &c->cluster[2], &c->registers,
        &c->shared_static, &c->shared_dynamic, &c->local_bytes};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        *numbers[i] = PROF_UNKNOWN;
    return c->name != NULL;
}

size_t prof_config_index(const struct prof_capture *capture, int64_t id)
{
    size_t i = prof_index_of(&capture->configs, id);
    return i == SIZE_MAX && capture->has_other_configs && id > 0 ? capture->configs.count - 1 : i;
}

static enum prof_state parse_state(const char *text)
{
    static const char *const names[] = {
        [PROF_STATE_RECORDING] = "recording", [PROF_STATE_CLOSING] = "closing",
        [PROF_STATE_COMPLETE] = "complete",   [PROF_STATE_RECOVERED] = "recovered",
        [PROF_STATE_MERGED] = "merged",       [PROF_STATE_IMPORTED] = "imported",
    };
    for (size_t i = 1; text && i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(text, names[i]))
            return (enum prof_state)i;
    return PROF_STATE_UNKNOWN;
}

static int64_t file_bytes(const char *path)
{
    struct stat info;
    int64_t bytes = stat(path, &info) ? PROF_UNKNOWN : info.st_size;
    char *wal = sqlite3_mprintf("%s-wal", path);
    if (bytes != PROF_UNKNOWN && wal && !stat(wal, &info))
        bytes += info.st_size;
    sqlite3_free(wal);
    return bytes;
}

static void read_info(struct reader *r)
{
    struct prof_info *info = &r->capture->info;
    info->state_text = next_text(r);
    info->state = parse_state(info->state_text);
    info->perfkit_version = next_text(r);
    info->command = next_text(r);
    info->directory = next_text(r);
    info->host = next_text(r);
    info->boot_id = next_text(r);
    info->kernel = next_text(r);
    info->cpu = next_text(r);
    info->cpu_count = next_int(r);
    info->start_realtime_ns = next_int(r);
    info->start_mono_ns = next_int(r);
    info->duration_ns = prof_size(next_int(r));
    info->exit_status = next_int(r);
    info->exit_signal = next_int(r);
    info->trace = next_text(r);
    info->spool = next_text(r);
    info->kernel_filter = next_text(r);
    info->summary = next_int(r) == 1;
}

static enum prof_status load_info(struct reader *r, struct prof_error *err)
{
    struct prof_info *info = &r->capture->info;
    *info = (struct prof_info){
        .path = prof_store_path(r->capture->store),
        .file_bytes = file_bytes(prof_store_path(r->capture->store)),
        .format_version = PROF_FORMAT_VERSION,
        .cpu_count = PROF_UNKNOWN,
        .start_realtime_ns = PROF_UNKNOWN,
        .start_mono_ns = PROF_UNKNOWN,
        .duration_ns = PROF_UNKNOWN,
        .exit_status = PROF_UNKNOWN,
        .exit_signal = PROF_UNKNOWN,
    };
    enum prof_status status =
        prof_query(r->capture,
                   "SELECT state, perfkit_version, command, directory, host, "
                   "boot_id, kernel, cpu, cpu_count, start_realtime_ns, "
                   "start_mono_ns, duration, exit_status, exit_signal, trace, "
                   "spool, kernel_filter, state = 'merged' AND EXISTS(SELECT 1 FROM "
                   "capture_health WHERE code = 'part_summary') "
                   "FROM capture ORDER BY id LIMIT 1",
                   &r->row, err);
    if (status)
        return status;
    r->column = 0;
    if (prof_row(r->row))
        read_info(r);
    return prof_query_end(r->capture, r->row, err);
}

enum prof_status prof_load_lookups(struct prof_capture *capture, struct prof_error *err)
{
    struct reader r = {.capture = capture};
    enum prof_status status = prof_begin(capture, err);
    if (status)
        return status;
    status = load_info(&r, err);
    for (size_t i = 0; !status && i < sizeof tables / sizeof tables[0]; i++) {
        const char *sql = tables[i].sql ? tables[i].sql : configs_sql(capture);
        status = prof_query(capture, sql, &r.row, err);
        if (status)
            break;
        while (!r.failed && prof_row(r.row)) {
            r.column = 0;
            r.failed |= !tables[i].read(&r);
        }
        status = prof_query_end(capture, r.row, err);
    }
    if (!status && capture->has_other_configs)
        r.failed |= !add_other_configs(capture);
    prof_end(capture);
    if (!status && r.failed)
        status = prof_out_of_memory(err);
    if (!status && !prof_tell_devices_apart(capture))
        status = prof_out_of_memory(err);
    return status;
}

void prof_free_lookups(struct prof_capture *capture)
{
    prof_array_free(&capture->processes);
    prof_array_free(&capture->threads);
    prof_array_free(&capture->devices);
    prof_array_free(&capture->contexts);
    prof_array_free(&capture->streams);
    prof_array_free(&capture->configs);
    prof_array_free(&capture->category_texts);
    prof_names_free(&capture->categories);
    prof_arena_free(&capture->lookup_texts);
}

const struct prof_info *prof_info(const struct prof_capture *capture)
{
    return &capture->info;
}

#define LOOKUP(type, list, one, all)                                                               \
    const struct type *one(const struct prof_capture *capture, int64_t id)                         \
    {                                                                                              \
        size_t i = prof_index_of(&capture->list, id);                                              \
        return i == SIZE_MAX ? NULL : &capture->list.data[i];                                      \
    }                                                                                              \
    size_t all(const struct prof_capture *capture, const struct type **out)                        \
    {                                                                                              \
        *out = capture->list.data;                                                                 \
        return capture->list.count;                                                                \
    }

LOOKUP(prof_process, processes, prof_process, prof_processes)
LOOKUP(prof_thread, threads, prof_thread, prof_threads)
LOOKUP(prof_device, devices, prof_device, prof_devices)
LOOKUP(prof_context, contexts, prof_context, prof_contexts)
LOOKUP(prof_stream, streams, prof_stream, prof_streams)

const struct prof_config *prof_config(const struct prof_capture *capture, int64_t id)
{
    size_t i = prof_config_index(capture, id);
    return i == SIZE_MAX ? NULL : &capture->configs.data[i];
}

int64_t prof_other_kernels(const struct prof_capture *capture)
{
    return capture->has_other_configs ? capture->other_kernels : 0;
}

size_t prof_configs(const struct prof_capture *capture, const struct prof_config **out)
{
    *out = capture->configs.data;
    return capture->configs.count;
}
