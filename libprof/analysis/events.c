/* Reads rows of the tables of events; see events.h. A table is a row of `tables`, a column a row of
 * `places` and its name in the tables that have it. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/events.h"

/* ---- tables and columns ---------------------------------------------------------------------- */

enum place_type { ID, INTEGER, SIZE, CODE, PAYLOAD };

#define PLACE(field, type, member)                                                                 \
    [PROF_FIELD_##field] = {offsetof(struct prof_event_row, member), type},

static const struct place {
    size_t offset;
    enum place_type type;
} places[PROF_FIELDS] = {PROF_EVENT_FIELDS(PLACE)};

#define HAS(field, name) [PROF_FIELD_##field] = name
#define PLACED HAS(ID, "id"), HAS(START, "start"), HAS(DURATION, "duration")
#define CALLED                                                                                     \
    HAS(NAME, "api_name"), HAS(CALL, "api_lead"), HAS(CALL_DURATION, "api_duration"),              \
        HAS(THREAD, "thread"), HAS(CORRELATION, "correlation"), HAS(STACK, "stack")
#define DELAYED HAS(QUEUE_DELAY, "queue_delay"), HAS(SUBMIT_DELAY, "submit_delay")
#define OPERATION                                                                                  \
    PLACED, CALLED, DELAYED, HAS(STREAM, "stream"), HAS(FLAGS, "flags"),                           \
        HAS(GRAPH_NODE, "graph_node")
#define CALL_START "CASE WHEN start IS NULL THEN api_lead ELSE start - api_lead END"
#define CALL_IN_ROW                                                                                \
    HAS(ID, "id"), HAS(START, CALL_START), HAS(DURATION, "api_duration"), HAS(THREAD, "thread"),   \
        HAS(NAME, "api_name"), HAS(CORRELATION, "correlation"), HAS(STACK, "stack"),               \
        HAS(STREAM, "stream")
#define NVTX                                                                                       \
    HAS(ID, "id"), HAS(START, "start"), HAS(THREAD, "thread"), HAS(NAME, "name"),                  \
        HAS(DOMAIN, "domain"), HAS(CATEGORY, "category"), HAS(COLOR, "color"),                     \
        HAS(PAYLOAD, "payload")
#define MEMORY                                                                                     \
    HAS(ID, "id"), HAS(THREAD, "thread"), HAS(PROCESS, "process"), HAS(DEVICE, "device"),          \
        HAS(CONTEXT, "context"), HAS(BYTES, "bytes"), HAS(TARGET_KIND, "kind"),                    \
        HAS(ADDRESS, "address"), HAS(STACK, "stack"), HAS(END_THREAD, "end_thread")

#define ANY_START "coalesce(start, api_lead)"
#define ANY "1"
#define IN_ROW "api_name NOT NULL"

#define TABLE(kind, event, record, name, key, where, ...)                                          \
    [PROF_OP_##kind] = {PROF_EVENT_##event, record, name, key, where, {__VA_ARGS__}}

static const struct table {
    enum prof_event_kind event;
    enum prof_event_kind record; /* calls: whose rows they are in */
    const char *name, *key, *where;
    const char *columns[PROF_FIELDS];
} tables[PROF_OP_KINDS] = {
    TABLE(KERNEL, KERNEL, 0, "kernel", ANY_START, ANY, OPERATION, HAS(CONFIG, "config")),
    TABLE(TRANSFER, TRANSFER, 0, "transfer", ANY_START, ANY, OPERATION, HAS(BYTES, "bytes"),
          HAS(COPY_KIND, "kind"), HAS(SOURCE_KIND, "source_kind"), HAS(TARGET_KIND, "target_kind"),
          HAS(BLOCKING, "blocking"), HAS(PEER, "peer")),
    TABLE(MEMSET, MEMSET, 0, "memset", ANY_START, ANY, OPERATION, HAS(BYTES, "bytes"),
          HAS(VALUE, "value"), HAS(TARGET_KIND, "memory_kind")),
    TABLE(GRAPH, GRAPH, 0, "graph_launch", "start", ANY, PLACED, DELAYED, HAS(STREAM, "stream"),
          HAS(CORRELATION, "correlation"), HAS(GRAPH, "graph")),
    TABLE(SYNC, SYNC, 0, "sync", ANY_START, ANY, PLACED, CALLED, HAS(STREAM, "stream"),
          HAS(KIND, "kind"), HAS(SYNC_EVENT, "event")),
    TABLE(CALL, API, PROF_EVENT_API, "api_call", "start", ANY, PLACED, HAS(THREAD, "thread"),
          HAS(NAME, "name"), HAS(RESULT, "result"), HAS(SOURCE, "source"), HAS(CLASS, "class"),
          HAS(CORRELATION, "correlation"), HAS(STACK, "stack")),
    TABLE(KERNEL_CALL, API, PROF_EVENT_KERNEL, "kernel", CALL_START, IN_ROW, CALL_IN_ROW,
          HAS(CONFIG, "config")),
    TABLE(TRANSFER_CALL, API, PROF_EVENT_TRANSFER, "transfer", CALL_START, IN_ROW, CALL_IN_ROW),
    TABLE(MEMSET_CALL, API, PROF_EVENT_MEMSET, "memset", CALL_START, IN_ROW, CALL_IN_ROW),
    TABLE(SYNC_CALL, API, PROF_EVENT_SYNC, "sync", CALL_START, IN_ROW, CALL_IN_ROW),
    TABLE(RANGE, RANGE, 0, "range", "start", ANY, NVTX, HAS(DURATION, "duration"),
          HAS(DEPTH, "depth"), HAS(END_THREAD, "end_thread")),
    TABLE(MARKER, MARKER, 0, "marker", "start", ANY, NVTX),
    TABLE(ALLOCATION, ALLOC, 0, "allocation", "start", ANY, MEMORY, HAS(START, "start"),
          HAS(END, "\"end\"")),
    TABLE(FREE, FREE, 0, "allocation", "\"end\"", "\"end\" NOT NULL", MEMORY, HAS(START, "\"end\""),
          HAS(END, "start")),
    TABLE(OVERHEAD, OVERHEAD, 0, "overhead", "start", ANY, PLACED, HAS(THREAD, "thread"),
          HAS(PROCESS, "process"), HAS(STREAM, "stream"), HAS(KIND, "kind")),
    TABLE(MIGRATION, MIGRATION, 0, "migration", "start", ANY, PLACED, HAS(PROCESS, "process"),
          HAS(STREAM, "stream"), HAS(DEVICE, "coalesce(target, source)"), HAS(KIND, "kind"),
          HAS(BYTES, "bytes"), HAS(FAULTS, "faults"), HAS(ADDRESS, "address")),
    TABLE(JIT, JIT, 0, "jit", "start", ANY, PLACED, HAS(THREAD, "thread"), HAS(PROCESS, "process"),
          HAS(DEVICE, "device"), HAS(KIND, "operation")),
};

struct prof_op_table prof_op_table(enum prof_op_kind kind)
{
    return (struct prof_op_table){tables[kind].name, tables[kind].event, tables[kind].record};
}

/* As prof_events.h has them, which decides between events of one time. */
static const enum prof_op_kind order[PROF_OP_KINDS] = {
    PROF_OP_KERNEL,    PROF_OP_TRANSFER,    PROF_OP_MEMSET,        PROF_OP_SYNC,
    PROF_OP_CALL,      PROF_OP_KERNEL_CALL, PROF_OP_TRANSFER_CALL, PROF_OP_MEMSET_CALL,
    PROF_OP_SYNC_CALL, PROF_OP_RANGE,       PROF_OP_MARKER,        PROF_OP_ALLOCATION,
    PROF_OP_FREE,      PROF_OP_GRAPH,       PROF_OP_OVERHEAD,      PROF_OP_MIGRATION,
    PROF_OP_JIT,
};

/* ---- scope ----------------------------------------------------------------------------------- */

static uint64_t scope_fields(const struct prof_scope *scope)
{
    uint64_t fields = 0;
    if (scope->by_time)
        fields |= PROF_FIELD(CALL);
    if (scope->by_place)
        fields |=
            PROF_FIELD(STREAM) | PROF_FIELD(THREAD) | PROF_FIELD(PROCESS) | PROF_FIELD(DEVICE);
    if (scope->by_range)
        fields |= PROF_FIELD(CALL) | PROF_FIELD(THREAD) | PROF_FIELD(STREAM) |
                  PROF_FIELD(CORRELATION) | PROF_FIELD(END);
    if (scope->configs)
        fields |= PROF_FIELD(CONFIG);
    return fields;
}

/* When the host did what decides whether a row belongs to an NVTX range. */
static int64_t moment_of(const struct prof_event_row *row)
{
    if (row->kind <= PROF_OP_GRAPH)
        return row->call_ns;
    if (row->kind == PROF_OP_SYNC)
        return prof_sync_begin(row);
    /* A free belongs to its allocation, wherever it happens. */
    return row->kind == PROF_OP_FREE ? row->other_ns : row->start_ns;
}

static bool row_in_scope(const struct prof_scope *scope, const struct prof_event_row *row)
{
    return prof_scope_time(scope, row->start_ns == PROF_UNKNOWN ? row->call_ns : row->start_ns) &&
           prof_scope_place(scope, row->stream, row->thread, row->process, row->device) &&
           prof_scope_called(scope, row->thread, moment_of(row), row->stream, row->correlation) &&
           ((row->kind != PROF_OP_KERNEL && row->kind != PROF_OP_KERNEL_CALL) ||
            prof_scope_config(scope, row->config));
}

/* A filter that no row of a table can pass saves reading it. */
static bool excluded(const struct prof_scope *scope, enum prof_op_kind kind)
{
    bool by_stream = scope->filter.stream || scope->filter.stream_count;
    if (prof_scope_only_kernels(scope) && kind <= PROF_OP_SYNC_CALL && kind != PROF_OP_KERNEL &&
        kind != PROF_OP_KERNEL_CALL)
        return true;
    return scope->by_device && !tables[kind].columns[PROF_FIELD_STREAM] &&
           (by_stream || !tables[kind].columns[PROF_FIELD_DEVICE]);
}

/* ---- launches of graphs ---------------------------------------------------------------------- */

struct launch {
    int64_t start_ns, thread, duration_ns, name, stack;
};

/* Few, and read when the first operation of a graph comes. */
struct launches {
    bool read;
    struct prof_map by_key;
    PROF_ARRAY(struct launch) list;
};

/* ---- cursor ---------------------------------------------------------------------------------- */

/* A table as it is being read. */
struct source {
    const struct table *table;
    sqlite3_stmt *scan;                    /* in the file's order */
    struct prof_ordered *ordered;          /* in order of time */
    const struct prof_ordered_entry *head; /* its next row; NULL at the end */
    bool key_is_start;
    struct prof_ordered *calls; /* of the same rows, for the source of these calls */
    char *names, *where;        /* texts of its query */
    size_t count;
    const struct place *columns[PROF_ORDERED_COLUMNS]; /* NULL: not for this source */
    struct prof_cells cells;                           /* of a row of the scan */
    struct prof_event_row row;
};

struct prof_event_cursor {
    struct prof_capture *capture;
    struct prof_event_query query;
    struct prof_scope scope; /* of query.filter */
    struct launches launches;
    size_t count, at;
    bool in_transaction;
    enum prof_status status;
    struct prof_error err;
    struct source sources[PROF_OP_KINDS];
};

static inline void put_cell(struct prof_event_row *row, const struct place *place, int64_t cell)
{
    void *at = (char *)row + place->offset;
    if (place->type == CODE)
        *(int *)at = cell < 0 || cell > INT32_MAX ? 0 : (int)cell;
    else
        *(int64_t *)at = place->type == ID     ? prof_cell_id(cell)
                         : place->type == SIZE ? prof_size(cell)
                                               : cell;
}

static struct prof_event_row blank_row(enum prof_op_kind kind)
{
    struct prof_event_row row = {.kind = kind, .call_ns = PROF_UNKNOWN, .launch_ns = PROF_UNKNOWN};
    for (size_t i = 0; i < PROF_FIELDS; i++)
        put_cell(&row, &places[i], PROF_UNKNOWN);
    row.copy_kind = kind == PROF_OP_MEMSET ? PROF_COPY_MEMSET : 0;
    return row;
}

static bool add_launch(void *user, const struct prof_event_row *row)
{
    struct prof_event_cursor *c = user;
    const struct prof_thread *thread = prof_thread(c->capture, row->thread);
    uint64_t key = prof_call_key(thread ? thread->process : 0, row->correlation);
    struct launch launch = {row->start_ns, row->thread, row->duration_ns, row->name, row->stack};
    return prof_array_push(&c->launches.list, launch) &&
           prof_map_put(&c->launches.by_key, key, c->launches.list.count - 1);
}

static void read_launch(struct prof_event_cursor *c, struct prof_event_row *row)
{
    static const struct prof_event_query query = {
        .tables = PROF_OPS(CALL),
        .fields = PROF_FIELD(START) | PROF_FIELD(DURATION) | PROF_FIELD(THREAD) | PROF_FIELD(NAME) |
                  PROF_FIELD(STACK) | PROF_FIELD(CORRELATION),
        .where = "correlation NOT NULL",
    };
    if (!c->launches.read)
        c->status = prof_event_rows(c->capture, &query, add_launch, c, &c->err);
    c->launches.read = true;
    if (!c->launches.list.count)
        return;
    const struct prof_stream *stream = prof_stream(c->capture, row->stream);
    uint64_t key = prof_call_key(stream ? stream->process : 0, row->correlation);
    const uint64_t *found = prof_map_get(&c->launches.by_key, key);
    row->in_graph = true;
    if (!found)
        return;
    const struct launch *launch = &c->launches.list.data[*found];
    row->call_ns = launch->start_ns;
    row->thread = launch->thread;
    row->name = launch->name;
    row->launch_ns = launch->duration_ns;
    row->stack = launch->stack;
}

/* The row before was given a launch: nothing of it stays where no column of this one was read. */
static void forget_launch(const struct prof_event_cursor *c, struct prof_event_row *row)
{
    static const enum prof_event_field given[] = {PROF_FIELD_THREAD, PROF_FIELD_NAME,
                                                  PROF_FIELD_STACK};
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        if (!tables[row->kind].columns[given[i]] || !(c->query.fields >> given[i] & 1))
            put_cell(row, &places[given[i]], PROF_UNKNOWN);
    }
    row->in_graph = false;
}

/* What follows from the columns. False: not in scope. */
static bool complete_event_row(struct prof_event_cursor *c, struct prof_event_row *row)
{
    row->call_ns = prof_call_start(row->start_ns, row->lead_ns);
    if (c->query.fields & PROF_FIELD(LAUNCH)) {
        row->launch_ns = row->call_duration_ns;
        if (row->in_graph)
            forget_launch(c, row);
        if (row->call_ns == PROF_UNKNOWN && row->correlation != PROF_UNKNOWN)
            read_launch(c, row);
    }
    if (c->query.started && row->start_ns == PROF_UNKNOWN)
        return false;
    const struct prof_scope *scope = c->query.scope;
    row->in_scope =
        !scope || ((!c->query.mark || !excluded(scope, row->kind)) && row_in_scope(scope, row));
    if (!row->in_scope && !c->query.mark)
        return false;
    row->within_ns = prof_scope_within(scope, row->start_ns, row->duration_ns);
    if (c->capture->has_other_configs && row->kind == PROF_OP_KERNEL) {
        const struct prof_config *config = prof_config(c->capture, row->config);
        row->config = config ? config->id : row->config;
    }
    return true;
}

/* Names the columns that are wanted, with commas between, and the conditions; columns in `key` are
 * read already. */
static bool name_columns(const struct prof_event_cursor *c, struct source *s, const char *key)
{
    sqlite3_str *names = sqlite3_str_new(NULL), *where = sqlite3_str_new(NULL);
    for (size_t i = 0; i < PROF_FIELDS; i++) {
        const char *column = s->table->columns[i];
        if (!column || !(c->query.fields >> i & 1) || s->count >= PROF_ORDERED_COLUMNS ||
            (key && (i == PROF_FIELD_ID || !strcmp(column, key))))
            continue;
        s->columns[s->count++] = &places[i];
        sqlite3_str_appendf(names, "%s%s", sqlite3_str_length(names) ? ", " : "", column);
    }
    if (!sqlite3_str_length(names))
        sqlite3_str_appendall(names, "NULL");
    sqlite3_str_appendall(where, s->table->where);
    if (c->query.started)
        sqlite3_str_appendf(where, " AND %s NOT NULL", s->table->columns[PROF_FIELD_START]);
    if (c->query.last)
        sqlite3_str_appendf(where, " AND id > (SELECT max(id) - %lld FROM %s)",
                            (long long)c->query.last, s->table->name);
    if (c->query.where)
        sqlite3_str_appendf(where, " AND %s", c->query.where);
    s->names = sqlite3_str_finish(names);
    s->where = sqlite3_str_finish(where);
    return s->names && s->where;
}

/* -1: it is not read. */
static int payload_column(const struct source *s)
{
    int found = -1;
    for (size_t i = 0; i < s->count; i++)
        found = s->columns[i]->type == PAYLOAD ? (int)i : found;
    return found;
}

static enum prof_status open_scan(struct prof_event_cursor *c, struct source *s)
{
    char *sql = NULL;
    if (name_columns(c, s, NULL))
        sql = sqlite3_mprintf("SELECT prof_cells(?1, %s) FROM %s WHERE %s", s->names,
                              s->table->name, s->where);
    enum prof_status status =
        sql ? prof_query(c->capture, sql, &s->scan, &c->err) : prof_out_of_memory(&c->err);
    sqlite3_free(sql);
    s->cells = (struct prof_cells){.count = (int)s->count, .real_column = payload_column(s)};
    if (!status)
        sqlite3_bind_pointer(s->scan, 1, &s->cells, PROF_CELLS, NULL);
    return status;
}

/* The calls that lie in the rows of a table, which are read at once with these rows; NULL: not
 * wanted, or they need what the rows are not read for. */
static const struct table *calls_in_rows(const struct prof_event_cursor *c, const struct source *s)
{
    size_t kind = (size_t)(s->table - tables);
    enum prof_op_kind calls = kind == PROF_OP_SYNC   ? PROF_OP_SYNC_CALL
                              : kind < PROF_OP_GRAPH ? PROF_OP_KERNEL_CALL + kind
                                                     : PROF_OP_CALL;
    if (calls == PROF_OP_CALL || !(c->query.tables >> calls & 1) || c->query.started ||
        c->query.last || c->query.where ||
        ~c->query.fields & (PROF_FIELD(CALL_DURATION) | PROF_FIELD(NAME)))
        return NULL;
    return &tables[calls];
}

/* Their columns, among those of the rows. */
static void place_calls(const struct prof_event_cursor *c, const struct source *rows,
                        struct source *calls)
{
    calls->key_is_start = true;
    calls->count = rows->count;
    for (size_t i = 0; i < rows->count; i++) {
        const char *column = rows->table->columns[rows->columns[i] - places];
        for (size_t k = PROF_FIELD_DURATION; !calls->columns[i] && k < PROF_FIELDS; k++) {
            const char *same = calls->table->columns[k];
            if (same && c->query.fields >> k & 1 && !strcmp(same, column))
                calls->columns[i] = &places[k];
        }
    }
}

static enum prof_status open_ordered(struct prof_event_cursor *c, struct source *s)
{
    const char *start = s->table->columns[PROF_FIELD_START];
    const char *key = c->query.started ? start : s->table->key;
    const struct table *calls = calls_in_rows(c, s);
    struct prof_ordered *orders[2];
    enum prof_status status = PROF_OK;
    for (struct source *rows = c->sources; rows < s && !s->ordered; rows++) {
        if (rows->calls && !strcmp(rows->table->name, s->table->name)) {
            place_calls(c, rows, s);
            s->ordered = rows->calls;
            rows->calls = NULL;
        }
    }
    if (!s->ordered) {
        s->key_is_start = !strcmp(key, start);
        if (!name_columns(c, s, key))
            return prof_out_of_memory(&c->err);
        struct prof_ordered_query query = {.key = key,
                                           .columns = s->names,
                                           .table = s->table->name,
                                           .where = s->where,
                                           .real_column = payload_column(s),
                                           .other_key = calls ? calls->key : NULL,
                                           .other_where = calls ? calls->where : NULL};
        status = prof_ordered_open(c->capture, &query, orders, &c->err);
        s->ordered = orders[0];
        s->calls = orders[1];
    }
    if (!status)
        s->head = prof_ordered_next(s->ordered);
    return status;
}

enum prof_status prof_event_cursor_open(struct prof_capture *capture,
                                        const struct prof_event_query *query,
                                        struct prof_event_cursor **cursor, struct prof_error *err)
{
    struct prof_event_cursor *c = *cursor = calloc(1, sizeof *c);
    if (!c)
        return prof_out_of_memory(err);
    c->capture = capture;
    c->query = *query;
    enum prof_status status = PROF_OK;
    if (query->filter) {
        status = prof_scope_open(&c->scope, capture, query->filter, &c->err);
        c->query.scope = &c->scope;
    }
    const struct prof_scope *scope = c->query.scope;
    if (scope)
        c->query.fields |= scope_fields(scope);
    if (c->query.fields & PROF_FIELD(LAUNCH))
        c->query.fields |= PROF_FIELD(CALL) | PROF_FIELD(CORRELATION) | PROF_FIELD(STREAM);
    if (query->started || (c->query.fields & PROF_FIELD(CALL)))
        c->query.fields |= PROF_FIELD(START);
    if (!status && query->in_order)
        status = prof_begin(capture, &c->err);
    c->in_transaction = query->in_order && !status;
    for (size_t i = 0; !status && i < PROF_OP_KINDS; i++) {
        enum prof_op_kind kind = order[i];
        if (!(query->tables >> kind & 1) || (scope && !query->mark && excluded(scope, kind)))
            continue;
        struct source *s = &c->sources[c->count++];
        s->table = &tables[kind];
        s->row = blank_row(kind);
        status = query->in_order ? open_ordered(c, s) : PROF_OK;
    }
    if (status) {
        c->status = status;
        prof_event_cursor_close(c, err);
        *cursor = NULL;
    }
    return status;
}

/* A row in the file's order; NULL where the source has no more. */
static bool read_scan(struct source *s)
{
    if (!prof_row(s->scan))
        return false;
    for (size_t i = 0; i < s->count; i++)
        put_cell(&s->row, s->columns[i], s->cells.row.cells[i]);
    s->row.payload_is_real = s->cells.row.is_real;
    return true;
}

static const struct prof_event_row *next_in_file(struct prof_event_cursor *c)
{
    while (!c->status && c->at < c->count) {
        struct source *s = &c->sources[c->at];
        if (!s->scan)
            c->status = open_scan(c, s);
        while (!c->status && read_scan(s)) {
            if (complete_event_row(c, &s->row))
                return &s->row;
        }
        if (!c->status)
            c->status = prof_query_end(c->capture, s->scan, &c->err);
        s->scan = NULL;
        c->at++;
    }
    return NULL;
}

static const struct prof_event_row *next_in_time(struct prof_event_cursor *c)
{
    for (;;) {
        struct source *s = NULL;
        for (size_t i = 0; i < c->count; i++) {
            struct source *other = &c->sources[i];
            if (other->head && (!s || other->head->key < s->head->key))
                s = other;
        }
        if (!s || c->status ||
            (c->query.scope && c->query.scope->by_time && !c->query.mark &&
             s->head->key >= c->query.scope->end_ns))
            return NULL; /* all others are later */
        for (size_t i = 0; i < s->count; i++) {
            if (s->columns[i])
                put_cell(&s->row, s->columns[i], s->head->row->cells[i]);
        }
        s->row.id = prof_cell_id(s->head->id);
        if (s->key_is_start)
            s->row.start_ns = s->head->key;
        s->row.payload_is_real = s->head->row->is_real;
        s->head = prof_ordered_next(s->ordered);
        if (complete_event_row(c, &s->row))
            return &s->row;
    }
}

const struct prof_event_row *prof_event_cursor_next(struct prof_event_cursor *c)
{
    const struct prof_event_row *row = c->query.in_order ? next_in_time(c) : next_in_file(c);
    return c->status ? NULL : row;
}

enum prof_status prof_event_cursor_close(struct prof_event_cursor *c, struct prof_error *err)
{
    if (!c)
        return PROF_OK;
    enum prof_status status = c->status;
    if (status && err)
        *err = c->err;
    for (size_t i = 0; i < c->count; i++) {
        struct source *s = &c->sources[i];
        enum prof_status end = prof_ordered_close(s->ordered, status ? NULL : err);
        status = status ?: end;
        prof_ordered_close(s->calls, NULL); /* after an error only */
        sqlite3_finalize(s->scan);
        sqlite3_free(s->names);
        sqlite3_free(s->where);
    }
    if (c->in_transaction)
        prof_end(c->capture);
    prof_scope_close(&c->scope);
    prof_map_free(&c->launches.by_key);
    prof_array_free(&c->launches.list);
    free(c);
    return status;
}

enum prof_status prof_event_rows(struct prof_capture *capture, const struct prof_event_query *query,
                                 prof_event_row_seen *seen, void *user, struct prof_error *err)
{
    struct prof_event_cursor *cursor;
    const struct prof_event_row *row;
    bool ok = true;
    PROF_TRY(prof_event_cursor_open(capture, query, &cursor, err));
    while (ok && (row = prof_event_cursor_next(cursor)))
        ok = seen(user, row);
    enum prof_status status = prof_event_cursor_close(cursor, err);
    return ok ? status : prof_out_of_memory(err);
}

struct prof_allocation prof_allocation_of_row(const struct prof_event_row *row)
{
    return (struct prof_allocation){
        .id = row->id,
        .process = row->process,
        .thread = row->thread,
        .device = row->device,
        .context = row->context,
        .start_ns = row->start_ns,
        .end_ns = row->other_ns,
        .bytes = row->bytes,
        .address = row->address,
        .kind = row->target_kind > 255 ? 0 : row->target_kind,
    };
}
