/* The small tables of a capture in memory: one loader per table, driven by SELECTs whose columns
 * are the rows of the tables below. Names are resolved here once, so that the analyses
 * deal in pointers. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "libprof/analysis/capture.h"
#include "libprof/base/format.h"
#include "libprof/spool/owner.h"
#include "libprof/store/schema.h"

struct reader {
    struct prof_capture *capture;
    sqlite3_stmt *row;
    bool failed; /* out of memory */
};

/* ---- columns --------------------------------------------------------------------------------- */

enum column_type {
    ID,    /* 0 where it is NULL */
    INT,   /* PROF_UNKNOWN where it is NULL, as all below */
    SMALL, /* a size, a count or a rate; what no device has is not known, so that the analyses */
    LARGE, /* may multiply: up to INT32_MAX, or 2^53 */
    SPAN,  /* not below 0 */
    TEXT,
    FLAG,
    KNOWN, /* a flag: not NULL */
};

struct column {
    const char *name;
    enum column_type type;
    size_t at; /* offset in the row's struct */
};

/* clang-format off */
#define MEMBER(type, member) {#member, type, offsetof(struct ROW, member)}
#define AS(name, type, member) {name, type, offsetof(struct ROW, member)}
#define ENDS(list) list, sizeof list / sizeof list[0]

struct category {
    int64_t process, domain, category;
    const char *name;
};

#define ROW prof_process
static const struct column process_columns[] = {
    MEMBER(ID, id), MEMBER(INT, pid), MEMBER(INT, parent_pid), MEMBER(TEXT, command),
    MEMBER(TEXT, birth), AS("start", INT, start_ns), AS("\"end\"", INT, end_ns),
    MEMBER(TEXT, end_reason), MEMBER(INT, exit_status), MEMBER(INT, exit_signal),
    MEMBER(TEXT, host), MEMBER(INT, rank), AS("spool", KNOWN, has_events), MEMBER(INT, local_rank),
    MEMBER(INT, world_size), MEMBER(TEXT, job), MEMBER(TEXT, boot_id)};
#undef ROW
#define ROW prof_thread
static const struct column thread_columns[] = {
    MEMBER(ID, id), MEMBER(ID, process), MEMBER(INT, tid), MEMBER(TEXT, name)};
#undef ROW
#define ROW prof_device
static const struct column device_columns[] = {
    MEMBER(ID, id), AS("id", ID, physical), MEMBER(ID, process), MEMBER(TEXT, api),
    MEMBER(INT, ordinal), MEMBER(TEXT, name), MEMBER(TEXT, vendor), MEMBER(TEXT, driver),
    MEMBER(TEXT, uuid), MEMBER(TEXT, kind), MEMBER(SMALL, integrated), MEMBER(SMALL, compute_major),
    MEMBER(SMALL, compute_minor), MEMBER(SMALL, units), MEMBER(SMALL, warp),
    MEMBER(SMALL, clock_khz), MEMBER(SMALL, memory_clock_khz), MEMBER(SMALL, memory_bus_bits),
    MEMBER(LARGE, memory_bytes), MEMBER(LARGE, memory_bandwidth), MEMBER(LARGE, l2_bytes),
    MEMBER(SMALL, shared_per_unit_bytes), MEMBER(SMALL, shared_per_block_bytes),
    MEMBER(SMALL, registers_per_unit), MEMBER(SMALL, max_threads_per_unit),
    MEMBER(SMALL, max_block), MEMBER(TEXT, label)};
#undef ROW
#define ROW prof_context
static const struct column context_columns[] = {
    MEMBER(ID, id), MEMBER(ID, process), MEMBER(ID, device), MEMBER(TEXT, api), MEMBER(INT, native),
    MEMBER(TEXT, name), MEMBER(FLAG, green), MEMBER(ID, parent), MEMBER(INT, units)};
#undef ROW
#define ROW prof_stream
static const struct column stream_columns[] = {
    MEMBER(ID, id), MEMBER(ID, process), MEMBER(ID, device), MEMBER(ID, context), MEMBER(TEXT, api),
    MEMBER(INT, native), MEMBER(TEXT, name), MEMBER(INT, priority), MEMBER(FLAG, is_default),
    MEMBER(FLAG, out_of_order), MEMBER(FLAG, non_blocking), MEMBER(TEXT, clock)};
#undef ROW
#define ROW prof_config /* a grid may count work-items */
static const struct column config_columns[] = {
    MEMBER(ID, id), AS("grid_x", LARGE, grid[0]), AS("grid_y", LARGE, grid[1]),
    AS("grid_z", LARGE, grid[2]), AS("block_x", SMALL, block[0]), AS("block_y", SMALL, block[1]),
    AS("block_z", SMALL, block[2]), AS("cluster_x", SMALL, cluster[0]),
    AS("cluster_y", SMALL, cluster[1]), AS("cluster_z", SMALL, cluster[2]),
    MEMBER(SMALL, registers), MEMBER(SMALL, shared_static), MEMBER(SMALL, shared_dynamic),
    MEMBER(SMALL, local_bytes), MEMBER(FLAG, ragged)};
#undef ROW
#define ROW category
static const struct column category_columns[] = {
    MEMBER(ID, process), MEMBER(ID, domain), MEMBER(ID, category), MEMBER(TEXT, name)};
#undef ROW
#define ROW prof_info
static const struct column info_columns[] = {
    AS("state", TEXT, state_text), MEMBER(TEXT, perfkit_version), MEMBER(TEXT, command),
    MEMBER(TEXT, directory), MEMBER(TEXT, host), MEMBER(TEXT, boot_id), MEMBER(TEXT, kernel),
    MEMBER(TEXT, cpu), MEMBER(INT, cpu_count), MEMBER(INT, start_realtime_ns),
    MEMBER(INT, start_mono_ns), AS("duration", SPAN, duration_ns), MEMBER(INT, exit_status),
    MEMBER(INT, exit_signal), MEMBER(TEXT, trace), MEMBER(TEXT, spool), MEMBER(TEXT, kernel_filter),
    AS("state = 'merged' AND EXISTS(SELECT 1 FROM capture_health "
       "WHERE code = 'part_summary')", FLAG, summary)};
/* clang-format on */
enum { CONFIG_NAME = sizeof config_columns / sizeof config_columns[0], CONFIG_DEMANGLED };

static const char *read_column_text(struct reader *r, int column)
{
    const char *text = (const char *)sqlite3_column_text(r->row, column);
    if (!text)
        return NULL;
    const char *copy = prof_arena_copy(&r->capture->lookup_texts, text,
                                       (size_t)sqlite3_column_bytes(r->row, column));
    r->failed |= !copy;
    return copy;
}

static void read_columns(struct reader *r, const struct column *columns, size_t count, void *row)
{
    for (int i = 0; i < (int)count; i++) {
        void *member = (char *)row + columns[i].at;
        int64_t value = prof_column_int(r->row, i);
        switch (columns[i].type) {
        case TEXT:
            *(const char **)member = read_column_text(r, i);
            break;
        case FLAG:
        case KNOWN:
            *(bool *)member = value != PROF_UNKNOWN && (value != 0 || columns[i].type == KNOWN);
            break;
        case ID:
            *(int64_t *)member = prof_column_id(r->row, i);
            break;
        case SMALL:
        case LARGE:
            if (value > (columns[i].type == SMALL ? INT32_MAX : INT64_C(1) << 53))
                value = PROF_UNKNOWN;
            /* fallthrough */
        case SPAN:
            value = prof_size(value);
            /* fallthrough */
        case INT:
            *(int64_t *)member = value;
        }
    }
}

/* Every number that a device or a launch may not have. */
static void forget_numbers(const struct column *columns, size_t count, void *row)
{
    for (size_t i = 0; i < count; i++)
        if (columns[i].type == SMALL || columns[i].type == LARGE)
            *(int64_t *)(void *)((char *)row + columns[i].at) = PROF_UNKNOWN;
}

void prof_device_unknown(struct prof_device *device)
{
    *device = (struct prof_device){.ordinal = PROF_UNKNOWN};
    forget_numbers(ENDS(device_columns), device);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static bool finish_process(struct reader *r, void *row)
{
    struct prof_process *p = row;
    p->host = p->host ? p->host : r->capture->info.host;
    p->boot_id = p->boot_id ? p->boot_id : r->capture->info.boot_id;
    return true;
}

static bool finish_config(struct reader *r, void *row)
{
    struct prof_config *c = row;
    int64_t demangled = prof_column_id(r->row, CONFIG_DEMANGLED);
    c->full_name = prof_string(r->capture, prof_column_id(r->row, CONFIG_NAME), NULL);
    c->name = demangled ? prof_string(r->capture, demangled, NULL) : NULL;
    c->name = c->name ? c->name : c->full_name;
    return true;
}

static bool finish_category(struct reader *r, void *row)
{
    const struct category *c = row;
    return prof_array_push(&r->capture->category_texts, c->name) &&
           prof_names_put(&r->capture->categories, (const char *)c, offsetof(struct category, name),
                          (uint32_t)(r->capture->category_texts.count - 1));
}

const char *prof_category_name(const struct prof_capture *capture, int64_t process, int64_t domain,
                               int64_t category)
{
    struct category key = {process, domain, category, NULL};
    uint32_t *at =
        prof_names_get(&capture->categories, (const char *)&key, offsetof(struct category, name));
    return at ? capture->category_texts.data[*at] : NULL;
}

#define LIST(list, type) offsetof(struct prof_capture, list), sizeof(struct type)
#define NO_LIST SIZE_MAX

static const struct table {
    const char *name;
    const struct column *columns;
    size_t count, list, bytes; /* where in prof_capture the array of rows is */
    bool (*finish)(struct reader *r, void *row);
} tables[] = {
    {"process", ENDS(process_columns), LIST(processes, prof_process), finish_process},
    {"thread", ENDS(thread_columns), LIST(threads, prof_thread), NULL},
    {"device", ENDS(device_columns), LIST(devices, prof_device), NULL},
    {"context", ENDS(context_columns), LIST(contexts, prof_context), NULL},
    {"stream", ENDS(stream_columns), LIST(streams, prof_stream), NULL},
    {"launch_config", ENDS(config_columns), LIST(configs, prof_config), finish_config},
    {"category", ENDS(category_columns), NO_LIST, sizeof(struct category), finish_category},
};

/* ---- more launch configurations than are kept apart ------------------------------------------ */

/* Which ones are kept is decided once for a connection: rows that a reader has summed up stay. */
static bool choose_common_configs(struct prof_capture *capture)
{
    char sql[600];
    const char *sums = prof_sql_number(capture->db, 0, "SELECT EXISTS(SELECT 1 FROM rollup)")
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

/* Which of the configurations are read. */
static const char *kept_configs(struct prof_capture *capture)
{
    if (!capture->has_other_configs &&
        (prof_sql_number(capture->db, 0, "SELECT count(*) FROM launch_config") <=
             PROF_MOST_CONFIGS ||
         !choose_common_configs(capture)))
        return "";
    capture->has_other_configs = true;
    return "WHERE id IN (SELECT id FROM temp.kept_config) ";
}

/* Behind all others, as its number is. */
static bool add_other_configs(struct prof_capture *capture)
{
    char name[80];
    int64_t count = prof_sql_number(capture->db, 0,
                                    "SELECT count(DISTINCT name) FROM launch_config WHERE id "
                                    "NOT IN (SELECT id FROM temp.kept_config)");
    int length =
        snprintf(name, sizeof name, "(others, %s)", prof_counted(count, "kernel", "kernels").text);
    struct prof_config *c = prof_array_add(&capture->configs);
    capture->other_kernels = count;
    if (!c)
        return false;
    *c = (struct prof_config){.id = PROF_OTHER_CONFIGS};
    c->name = c->full_name = prof_arena_copy(&capture->lookup_texts, name, (size_t)length);
    forget_numbers(ENDS(config_columns), c);
    return c->name != NULL;
}

size_t prof_config_index(const struct prof_capture *capture, int64_t id)
{
    size_t i = prof_index_of(&capture->configs, id);
    return i == SIZE_MAX && capture->has_other_configs && id > 0 ? capture->configs.count - 1 : i;
}

const char *prof_state_text(enum prof_state state)
{
    static const char *const names[] = {
#define X(name, text) [PROF_STATE_##name] = text,
        PROF_STATES(X)
#undef X
    };
    return (size_t)state < sizeof names / sizeof *names ? names[state] : NULL;
}

const char *prof_unfinished(const struct prof_info *info)
{
    if (info->state != PROF_STATE_RECORDING && info->state != PROF_STATE_CLOSING)
        return NULL;
    return info->abandoned ? "its perfkit was killed, and perfkit recover finishes it"
                           : "it is still being recorded, or perfkit was killed (perfkit recover)";
}

enum prof_state prof_state_named(const char *text)
{
    const char *name;
    for (enum prof_state state = 1; text && (name = prof_state_text(state)); state++)
        if (!strcmp(text, name))
            return state;
    return PROF_STATE_UNKNOWN;
}

static int64_t file_bytes(const char *path)
{
    struct stat info;
    int64_t bytes = stat(path, &info) ? PROF_UNKNOWN : info.st_size;
    PROF_SQL_FREED char *wal = sqlite3_mprintf("%s-wal", path);
    if (bytes != PROF_UNKNOWN && wal && !stat(wal, &info))
        bytes += info.st_size;
    return bytes;
}

/* The rows of a table, or the first one into `into`. */
static enum prof_status load_table(struct reader *r, const struct table *table, void *into,
                                   struct prof_error *err)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    bool config = table->columns == config_columns;
    for (size_t i = 0; i < table->count; i++)
        sqlite3_str_appendf(sql, "%s%s", i ? ", " : "SELECT ", table->columns[i].name);
    sqlite3_str_appendf(sql, "%s FROM %s %sORDER BY id", config ? ", name, demangled" : "",
                        table->name, config ? kept_configs(r->capture) : "");
    char *text = sqlite3_str_finish(sql);
    enum prof_status status =
        text ? prof_query(r->capture, text, &r->row, err) : prof_out_of_memory(err);
    sqlite3_free(text);
    if (status)
        return status;
    struct {
        char *data;
        size_t count, capacity;
    } *list = into ? NULL : (void *)((char *)r->capture + table->list);
    struct category category;
    while (!r->failed && prof_row(r->row)) {
        void *row = into;
        if (!row && table->list == NO_LIST)
            row = &category;
        else if (!row &&
                 prof_array_room(&list->data, &list->capacity, list->count + 1, table->bytes))
            row = memset(list->data + list->count++ * table->bytes, 0, table->bytes);
        r->failed |= !row;
        if (row)
            read_columns(r, table->columns, table->count, row);
        if (row && table->finish)
            r->failed |= !table->finish(r, row);
        if (into)
            break;
    }
    return prof_query_end(r->capture, r->row, err);
}

static enum prof_status load_info(struct reader *r, struct prof_error *err)
{
    static const struct table table = {"capture", ENDS(info_columns), NO_LIST, 0, NULL};
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
    enum prof_status status = load_table(r, &table, info, err);
    info->state = prof_state_named(info->state_text);
    info->abandoned = prof_unfinished(info) && info->spool && info->spool[0] == '/' &&
                      spool_owner(info->spool) == SPOOL_OWNER_DEAD;
    return status;
}

enum prof_status prof_load_lookups(struct prof_capture *capture, struct prof_error *err)
{
    struct reader r = {.capture = capture};
    PROF_TRY(prof_begin(capture, err));
    enum prof_status status = load_info(&r, err);
    for (size_t i = 0; !status && i < sizeof tables / sizeof tables[0]; i++)
        status = load_table(&r, &tables[i], NULL, err);
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
