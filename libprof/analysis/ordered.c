/* Rows in order of time without sorting the file; see events.h.
 *
 * Measured on 8 M kernel rows of 16 columns: plain scan 2 s, scan of the key 0.5 s, SQLite's sorter
 * 10.8 s. Lateness of a row is how far its key lies behind the largest key before it. With a bound
 * L on lateness, a row may leave the heap once a key L later has been read. L is chosen as the
 * smallest power of two that leaves at most OUTLIERS rows later than it; those are read first. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/events.h"
#include "libprof/base/saturate.h"

#define SMALL 20000
#define OUTLIERS 16384
#define ROW_POINTER "prof_ordered"
#define HEAP_LIMIT 131072 /* rows; about 27 MB */

/* What two orders of one query share. */
struct shared {
    struct prof_capture *capture;
    struct prof_ordered_query query;
    char *select; /* key, id, columns and, for the other order, whether it is one of its and key, */
    int columns;  /* as arguments of prof_row(), which puts them here: */
    int64_t key, id, other_key;
    bool in_other;
    struct prof_ordered_row *row;
    sqlite3_stmt *scan;
    bool scan_done;
    PROF_ARRAY(struct prof_ordered_row *) rows; /* all that there are */
    PROF_ARRAY(struct prof_ordered_row *) spare;
    struct prof_ordered *orders[2];
};

struct prof_ordered {
    struct shared *shared;
    bool is_other;
    bool sorted;       /* SQLite sorts */
    sqlite3_stmt *own; /* a scan, or what SQLite sorts; NULL: reads the shared scan */
    bool own_done;
    int64_t lateness; /* bound for the rows of the heap */
    int64_t latest;   /* largest key read */
    PROF_ARRAY(struct prof_ordered_entry) heap;
    PROF_ARRAY(struct prof_ordered_entry) late; /* sorted */
    size_t late_at;
    struct prof_ordered_entry current;
    bool has_current;
    enum prof_status status;
    struct prof_error err;
};

static bool before(const struct prof_ordered_entry *a, const struct prof_ordered_entry *b)
{
    return a->key != b->key ? a->key < b->key : a->id < b->id;
}

static int compare_entries(const void *a, const void *b)
{
    return before(a, b) ? -1 : before(b, a);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void release_row(struct shared *shared, struct prof_ordered_row *row)
{
    if (row && !--row->users) /* there is room for all rows */
        shared->spare.data[shared->spare.count++] = row;
}

/* A row for one user. NULL: out of memory. */
static struct prof_ordered_row *spare_row(struct shared *shared)
{
    struct prof_ordered_row *row = NULL;
    if (shared->spare.count) {
        row = shared->spare.data[--shared->spare.count];
    } else if (prof_array_reserve(&shared->rows, 1) &&
               prof_array_room(&shared->spare.data, &shared->spare.capacity, shared->rows.count + 1,
                               sizeof *shared->spare.data) &&
               (row = malloc(sizeof *row))) {
        shared->rows.data[shared->rows.count++] = row;
    }
    if (row)
        row->users = 1;
    return row;
}

static int64_t cell_number(sqlite3_value *value)
{
    int64_t number = sqlite3_value_int64(value); /* of NULL: 0 */
    return number || sqlite3_value_type(value) != SQLITE_NULL ? number : PROF_UNKNOWN;
}

static void receive_cells(struct prof_ordered_row *row, int count, int real, sqlite3_value **values)
{
    for (int i = 0; i < count; i++)
        row->cells[i] = cell_number(values[i]);
    row->is_real = real >= 0 && real < count && sqlite3_value_type(values[real]) == SQLITE_FLOAT;
    if (row->is_real) {
        double value = sqlite3_value_double(values[real]);
        memcpy(&row->cells[real], &value, sizeof value);
    }
}

/* prof_cells(). */
static void receive_scanned(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct prof_cells *cells = count ? sqlite3_value_pointer(values[0], PROF_CELLS) : NULL;
    if (!cells || count < 1 + cells->count) /* no column: NULL */
        sqlite3_result_error(context, "prof_cells() is not for other queries", -1);
    else
        receive_cells(&cells->row, cells->count, cells->real_column, values + 1);
}

/* prof_row(): half the cost of one SQLite call for each column. */
static void receive_row(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct shared *shared = count ? sqlite3_value_pointer(values[0], ROW_POINTER) : NULL;
    if (!shared || count < 3 + shared->columns) {
        sqlite3_result_error(context, "prof_row() is not for other queries", -1);
        return;
    }
    shared->key = cell_number(values[1]);
    shared->id = sqlite3_value_int64(values[2]);
    receive_cells(shared->row, shared->columns, shared->query.real_column, values + 3);
    if (count == 5 + shared->columns) {
        shared->in_other = sqlite3_value_int(values[count - 2]);
        shared->other_key = cell_number(values[count - 1]);
    }
}

static struct prof_ordered_row *read_ordered_row(struct shared *shared, sqlite3_stmt *statement)
{
    struct prof_ordered_row *row = spare_row(shared);
    if (!row)
        return NULL;
    row->is_real = false;
    for (int i = 0; i < shared->columns; i++)
        row->cells[i] = prof_column_int(statement, 2 + i);
    int real = shared->query.real_column;
    if (real >= 0 && real < shared->columns &&
        sqlite3_column_type(statement, 2 + real) == SQLITE_FLOAT) {
        double value = sqlite3_column_double(statement, 2 + real);
        memcpy(&row->cells[real], &value, sizeof value);
        row->is_real = true;
    }
    return row;
}

/* ---- queries --------------------------------------------------------------------------------- */

static enum prof_status query_rows(struct shared *shared, char *sql, sqlite3_stmt **statement,
                                   struct prof_error *err)
{
    enum prof_status status =
        sql ? prof_query(shared->capture, sql, statement, err) : prof_out_of_memory(err);
    sqlite3_free(sql);
    return status;
}

static enum prof_status scan_rows(struct shared *shared, const char *extra,
                                  sqlite3_stmt **statement, struct prof_error *err)
{
    PROF_TRY(query_rows(shared, sqlite3_mprintf("%s %s", shared->select, extra), statement, err));
    sqlite3_bind_pointer(*statement, 1, shared, ROW_POINTER, NULL);
    return PROF_OK;
}

/* The next row of scan_rows, for one user: SQLITE_ROW, and shared->row is it. NULL there: out of
 * memory. */
static int step_scan(struct shared *shared, sqlite3_stmt *statement)
{
    shared->row = spare_row(shared);
    int step = shared->row ? sqlite3_step(statement) : SQLITE_NOMEM;
    if (step != SQLITE_ROW && shared->row)
        release_row(shared, shared->row);
    return step;
}

/* The key of that row; false: it is none of this order's. */
static bool key_of(const struct prof_ordered *o, int64_t *key)
{
    *key = o->is_other ? o->shared->other_key : o->shared->key;
    return !o->is_other || o->shared->in_other;
}

static unsigned bits_of(int64_t value)
{
    return value <= 0 ? 0 : (unsigned)(64 - __builtin_clzll((uint64_t)value));
}

/* What a scan of the keys finds out. */
struct disorder {
    int64_t latest;      /* largest key */
    unsigned bits;       /* rows of more bits of lateness are late ... */
    int64_t late_of[64]; /* ... by the number of bits */
    PROF_ARRAY(struct late_row) late;
};

struct late_row {
    int64_t id;
    unsigned bits;
};

/* More late rows than may be held aside: those that are the least late are not. */
static void raise_bound(struct disorder *d)
{
    size_t kept = 0, left = d->late.count;
    while (left > OUTLIERS)
        left -= (size_t)d->late_of[++d->bits];
    for (size_t i = 0; i < d->late.count; i++) {
        if (d->late.data[i].bits > d->bits)
            d->late.data[kept++] = d->late.data[i];
    }
    d->late.count = kept;
}

static bool note_late(struct disorder *d, int64_t id, unsigned bits)
{
    struct late_row *slot = prof_array_add(&d->late);
    if (!slot)
        return false;
    *slot = (struct late_row){id, bits};
    d->late_of[bits]++;
    if (d->late.count > OUTLIERS)
        raise_bound(d);
    return true;
}

static bool note_key(struct disorder *d, int64_t key, int64_t id)
{
    if (key > d->latest)
        d->latest = key;
    unsigned bits = bits_of(prof_subtract(d->latest, key));
    return bits <= d->bits || note_late(d, id, bits);
}

static enum prof_status measure_disorder(struct shared *shared, struct disorder d[2],
                                         struct prof_error *err)
{
    const struct prof_ordered_query *q = &shared->query;
    sqlite3_stmt *keys;
    bool ok = true;
    PROF_TRY(query_rows(
        shared,
        q->other_key
            ? sqlite3_mprintf("SELECT %s, id, (%s), %s FROM %s WHERE %s", q->key, q->other_where,
                              q->other_key, q->table, q->where)
            : sqlite3_mprintf("SELECT %s, id FROM %s WHERE %s", q->key, q->table, q->where),
        &keys, err));
    while (ok && prof_row(keys)) {
        int64_t id = sqlite3_column_int64(keys, 1);
        ok = note_key(&d[0], prof_column_int(keys, 0), id) &&
             (!q->other_key || !sqlite3_column_int(keys, 2) ||
              note_key(&d[1], prof_column_int(keys, 3), id));
    }
    enum prof_status status = prof_query_end(shared->capture, keys, err);
    return ok ? status : prof_out_of_memory(err);
}

/* Read the late rows into o->late, sorted. */
static enum prof_status read_late(struct prof_ordered *o, const struct disorder *d,
                                  struct prof_error *err)
{
    sqlite3_stmt *rows;
    bool ok = true;
    PROF_TRY(scan_rows(o->shared, "AND id = ?2", &rows, err));
    int step = SQLITE_DONE;
    for (size_t i = 0; ok && i < d->late.count && (step == SQLITE_ROW || step == SQLITE_DONE);
         i++) {
        sqlite3_reset(rows);
        sqlite3_bind_int64(rows, 2, d->late.data[i].id);
        step = step_scan(o->shared, rows);
        ok = o->shared->row != NULL;
        if (step == SQLITE_ROW) {
            struct prof_ordered_entry entry = {0, o->shared->id, o->shared->row};
            key_of(o, &entry.key);
            ok = prof_array_push(&o->late, entry);
        }
    }
    prof_array_sort(&o->late, compare_entries);
    enum prof_status status = prof_query_end(o->shared->capture, rows, err);
    return ok ? status : prof_out_of_memory(err);
}

/* How the orders read, by what a scan of the keys finds. */
static enum prof_status plan(struct shared *shared, struct prof_error *err)
{
    struct disorder d[2] = {{.latest = INT64_MIN}, {.latest = INT64_MIN}};
    enum prof_status status = measure_disorder(shared, d, err);
    for (size_t i = 0; i < 2; i++) {
        struct prof_ordered *o = shared->orders[i];
        if (o) {
            o->lateness = d[i].bits >= 63 ? INT64_MAX : (INT64_C(1) << d[i].bits) - 1;
            o->latest = INT64_MIN;
        }
        if (o && !status && d[i].late.count)
            status = read_late(o, &d[i], err);
        prof_array_free(&d[i].late);
    }
    return status ? status : scan_rows(shared, "", &shared->scan, err);
}

/* Let SQLite sort the rows, those behind the current one. */
static enum prof_status sort_rows(struct prof_ordered *o, struct prof_error *err)
{
    const struct prof_ordered_query *q = &o->shared->query;
    const char *key = o->is_other ? q->other_key : q->key;
    PROF_SQL_FREED char *behind = NULL;
    o->sorted = true;
    if (o->has_current && o->current.key == PROF_UNKNOWN)
        behind = sqlite3_mprintf("AND ((%s) IS NULL AND id > %lld OR (%s) NOT NULL)", key,
                                 o->current.id, key);
    else if (o->has_current)
        behind =
            sqlite3_mprintf("AND ((%s), id) > (%lld, %lld)", key, o->current.key, o->current.id);
    if (o->has_current && !behind)
        return prof_out_of_memory(err);
    char *sql = sqlite3_mprintf("SELECT %s, id, %s FROM %s WHERE %s AND (%s) %s ORDER BY 1, 2", key,
                                q->columns, q->table, q->where, o->is_other ? q->other_where : "1",
                                behind ? behind : "");
    return query_rows(o->shared, sql, &o->own, err);
}

enum prof_status prof_ordered_init(struct prof_capture *capture, struct prof_error *err)
{
    return sqlite3_create_function(capture->db, "prof_row", -1, SQLITE_UTF8, NULL, receive_row,
                                   NULL, NULL) ||
                   sqlite3_create_function(capture->db, "prof_cells", -1, SQLITE_UTF8, NULL,
                                           receive_scanned, NULL, NULL)
               ? prof_store_fail(capture->store, "read", err)
               : PROF_OK;
}

static enum prof_status open_orders(struct shared *shared, struct prof_error *err)
{
    const struct prof_ordered_query *q = &shared->query;
    for (size_t i = 0; i < (q->other_key ? 2 : 1); i++) {
        struct prof_ordered *o = shared->orders[i] = calloc(1, sizeof *o);
        if (!o)
            return prof_out_of_memory(err);
        o->shared = shared;
        o->is_other = i == 1;
    }
    shared->select = sqlite3_mprintf("SELECT prof_row(?1, %s, id, %s%s%s%s%s) FROM %s WHERE %s",
                                     q->key, q->columns, q->other_key ? ", (" : "",
                                     q->other_key ? q->other_where : "", q->other_key ? "), " : "",
                                     q->other_key ? q->other_key : "", q->table, q->where);
    if (!shared->select)
        return prof_out_of_memory(err);
    sqlite3_stmt *row;
    PROF_TRY(
        query_rows(shared, sqlite3_mprintf("SELECT %s FROM %s", q->columns, q->table), &row, err));
    shared->columns = sqlite3_column_count(row);
    sqlite3_finalize(row);
    if (shared->columns > PROF_ORDERED_COLUMNS)
        return prof_fail(err, PROF_INVALID, "cannot read %s: too many columns", q->table);
    int64_t rows = prof_sql_number(shared->capture->db, 0, "SELECT max(id) FROM %s", q->table);
    if (rows > (q->small ? q->small : SMALL))
        return plan(shared, err);
    PROF_TRY(sort_rows(shared->orders[0], err));
    return q->other_key ? sort_rows(shared->orders[1], err) : PROF_OK;
}

enum prof_status prof_ordered_open(struct prof_capture *capture,
                                   const struct prof_ordered_query *query,
                                   struct prof_ordered *orders[2], struct prof_error *err)
{
    struct shared *shared = calloc(1, sizeof *shared);
    orders[0] = orders[1] = NULL;
    if (!shared)
        return prof_out_of_memory(err);
    shared->capture = capture;
    shared->query = *query;
    enum prof_status status = open_orders(shared, err);
    orders[0] = shared->orders[0];
    orders[1] = shared->orders[1];
    if (!orders[0])
        free(shared);
    for (size_t i = 2; status && i--; orders[i] = NULL)
        prof_ordered_close(orders[i], NULL);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void forget_rows(struct prof_ordered *o)
{
    for (size_t i = 0; i < o->heap.count; i++)
        release_row(o->shared, o->heap.data[i].row);
    o->heap.count = 0;
}

/* More rows are in flight than we hold. Beside another order that is behind or ahead, so: read on
 * alone, from the beginning. Alone because of the disorder: let SQLite sort what is left. */
static void read_alone(struct prof_ordered *o)
{
    bool was_alone = o->own || !o->shared->query.other_key;
    forget_rows(o);
    sqlite3_finalize(o->own);
    o->own = NULL;
    o->own_done = false;
    o->latest = INT64_MIN;
    for (; was_alone && o->late_at < o->late.count; o->late_at++)
        release_row(o->shared, o->late.data[o->late_at].row);
    o->status = was_alone ? sort_rows(o, &o->err) : scan_rows(o->shared, "", &o->own, &o->err);
}

/* Hold a row until its turn. */
static void hold_row(struct prof_ordered *o)
{
    struct prof_ordered_entry entry = {0, o->shared->id, o->shared->row};
    if (o->status || !key_of(o, &entry.key))
        return;
    if (entry.key > o->latest)
        o->latest = entry.key;
    if (prof_subtract(o->latest, entry.key) > o->lateness ||        /* in o->late */
        (o->own && o->has_current && !before(&o->current, &entry))) /* had its turn */
        return;
    if (o->heap.count >= HEAP_LIMIT) {
        read_alone(o);
    } else if (prof_array_reserve(&o->heap, 1)) {
        entry.row->users++;
        PROF_HEAP_PUSH(o->heap.data, o->heap.count, entry, before);
    } else {
        o->status = prof_out_of_memory(&o->err);
    }
}

/* Read a row for this order and for the one beside it. */
static void read_on(struct prof_ordered *o)
{
    struct shared *shared = o->shared;
    sqlite3_stmt *statement = o->own ? o->own : shared->scan;
    if (step_scan(shared, statement) != SQLITE_ROW) {
        *(o->own ? &o->own_done : &shared->scan_done) = true;
        if (!shared->row)
            o->status = prof_out_of_memory(&o->err);
        return;
    }
    struct prof_ordered_row *row = shared->row;
    struct prof_ordered *beside = o->own ? NULL : shared->orders[!o->is_other];
    if (beside && !beside->own)
        hold_row(beside);
    hold_row(o);
    release_row(shared, row);
}

/* Read on until the smallest row of the heap cannot be overtaken. */
static void fill_heap(struct prof_ordered *o)
{
    while (!o->status && !o->sorted && !(o->own ? o->own_done : o->shared->scan_done) &&
           (!o->heap.count || prof_subtract(o->latest, o->heap.data[0].key) <= o->lateness))
        read_on(o);
}

static const struct prof_ordered_entry *next_sorted(struct prof_ordered *o)
{
    if (o->own_done || !prof_row(o->own)) {
        o->own_done = true;
        return NULL;
    }
    o->current =
        (struct prof_ordered_entry){prof_column_int(o->own, 0), sqlite3_column_int64(o->own, 1),
                                    read_ordered_row(o->shared, o->own)};
    if (!o->current.row)
        o->status = prof_out_of_memory(&o->err);
    return o->current.row ? &o->current : NULL;
}

const struct prof_ordered_entry *prof_ordered_next(struct prof_ordered *o)
{
    release_row(o->shared, o->current.row);
    o->current.row = NULL;
    fill_heap(o);
    if (o->status)
        return NULL;
    if (o->sorted) {
        const struct prof_ordered_entry *entry = next_sorted(o);
        o->has_current |= entry != NULL;
        return entry;
    }
    bool from_late = o->late_at < o->late.count &&
                     (!o->heap.count || before(&o->late.data[o->late_at], &o->heap.data[0]));
    if (from_late) {
        o->current = o->late.data[o->late_at++];
    } else if (o->heap.count) {
        o->current = o->heap.data[0];
        struct prof_ordered_entry last = o->heap.data[--o->heap.count];
        PROF_HEAP_SINK(o->heap.data, o->heap.count, last, before);
    } else {
        return NULL;
    }
    o->has_current = true;
    return &o->current;
}

static void free_shared(struct shared *shared)
{
    for (size_t i = 0; i < shared->rows.count; i++)
        free(shared->rows.data[i]);
    prof_array_free(&shared->rows);
    prof_array_free(&shared->spare);
    sqlite3_free(shared->select);
    free(shared);
}

enum prof_status prof_ordered_close(struct prof_ordered *o, struct prof_error *err)
{
    if (!o)
        return PROF_OK;
    struct shared *shared = o->shared;
    enum prof_status status = o->status, end;
    if (status && err)
        *err = o->err;
    end = prof_query_end(shared->capture, o->own, status ? NULL : err);
    status = status ?: end;
    prof_array_free(&o->heap);
    prof_array_free(&o->late);
    shared->orders[o->is_other] = NULL;
    free(o);
    if (shared->orders[0] || shared->orders[1])
        return status;
    end = prof_query_end(shared->capture, shared->scan, status ? NULL : err);
    free_shared(shared);
    return status ? status : end;
}
