/* Rows in order of time without sorting the file; see ordered.h.
 *
 * Measured on 8 M kernel rows of 16 columns: plain scan 2 s, scan of the key 0.5 s, SQLite's sorter
 * 10.8 s. Lateness of a row is how far its key lies behind the largest key before it. With a bound
 * L on lateness, a row may leave the heap once a key L later has been read. L is chosen as the
 * smallest power of two that leaves at most OUTLIERS rows later than it; those are read first. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/ordered.h"
#include "libprof/base/saturate.h"

#define SMALL 20000
#define OUTLIERS 16384
#define HEAP_LIMIT 131072 /* rows; about 27 MB */

struct prof_ordered {
    struct prof_capture *capture;
    struct prof_ordered_query query;
    sqlite3_stmt *scan;
    int columns;
    bool sorted; /* SQLite sorts */
    bool scan_done;
    bool failed_memory;
    int64_t lateness; /* bound for the rows of the heap */
    int64_t latest;   /* largest key read */
    PROF_ARRAY(struct prof_ordered_row) heap;
    PROF_ARRAY(struct prof_ordered_row) late; /* sorted */
    size_t late_at;
    struct prof_ordered_row current;
    bool has_current;
    enum prof_status status;
    struct prof_error err;
};

static bool before(const struct prof_ordered_row *a, const struct prof_ordered_row *b)
{
    return a->cells[0] != b->cells[0] ? a->cells[0] < b->cells[0] : a->cells[1] < b->cells[1];
}

static int compare_rows(const void *a, const void *b)
{
    return before(a, b) ? -1 : before(b, a);
}

static void read_ordered_row(const struct prof_ordered *o, sqlite3_stmt *statement,
                             struct prof_ordered_row *row)
{
    row->is_real = false;
    for (int i = 0; i < o->columns; i++)
        row->cells[i] = prof_column_int(statement, i);
    int real = o->query.real_column;
    if (real && real < o->columns && sqlite3_column_type(statement, real) == SQLITE_FLOAT) {
        double value = sqlite3_column_double(statement, real);
        memcpy(&row->cells[real], &value, sizeof value);
        row->is_real = true;
    }
}

static enum prof_status select_rows(struct prof_ordered *o, bool only_key, const char *extra,
                                    sqlite3_stmt **statement, struct prof_error *err)
{
    const struct prof_ordered_query *q = &o->query;
    char *sql =
        sqlite3_mprintf("SELECT %s, id%s%s FROM %s WHERE %s %s", q->key, only_key ? "" : ", ",
                        only_key ? "" : q->columns, q->table, q->where, extra);
    if (!sql)
        return prof_out_of_memory(err);
    enum prof_status status = prof_query(o->capture, sql, statement, err);
    sqlite3_free(sql);
    return status;
}

static unsigned bits_of(int64_t value)
{
    return value <= 0 ? 0 : (unsigned)(64 - __builtin_clzll((uint64_t)value));
}

/* What a scan of the keys finds out. */
struct disorder {
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

static enum prof_status measure_disorder(struct prof_ordered *o, struct disorder *d,
                                         struct prof_error *err)
{
    sqlite3_stmt *keys;
    PROF_TRY(select_rows(o, true, "", &keys, err));
    int64_t latest = INT64_MIN;
    while (prof_row(keys)) {
        int64_t key = prof_column_int(keys, 0);
        if (key > latest)
            latest = key;
        unsigned bits = bits_of(prof_subtract(latest, key));
        if (bits > d->bits && !note_late(d, sqlite3_column_int64(keys, 1), bits)) {
            sqlite3_finalize(keys);
            return prof_out_of_memory(err);
        }
    }
    return prof_query_end(o->capture, keys, err);
}

/* Read the late rows into o->late, sorted. */
static enum prof_status read_late(struct prof_ordered *o, const struct disorder *d,
                                  struct prof_error *err)
{
    sqlite3_stmt *row;
    PROF_TRY(select_rows(o, false, "AND id = ?", &row, err));
    int step = SQLITE_DONE;
    for (size_t i = 0; i < d->late.count && (step == SQLITE_ROW || step == SQLITE_DONE); i++) {
        sqlite3_reset(row);
        sqlite3_bind_int64(row, 1, d->late.data[i].id);
        step = sqlite3_step(row);
        struct prof_ordered_row *slot = step == SQLITE_ROW ? prof_array_add(&o->late) : NULL;
        if (slot) {
            read_ordered_row(o, row, slot);
        } else if (step == SQLITE_ROW) {
            sqlite3_finalize(row);
            return prof_out_of_memory(err);
        }
    }
    prof_array_sort(&o->late, compare_rows);
    return prof_query_end(o->capture, row, err);
}

static enum prof_status plan(struct prof_ordered *o, int64_t small, struct prof_error *err)
{
    int64_t rows = prof_sql_number(o->capture->db, 0, "SELECT max(id) FROM %s", o->query.table);
    o->sorted = rows <= (small ? small : SMALL);
    if (o->sorted)
        return PROF_OK;
    struct disorder d = {0};
    enum prof_status status = measure_disorder(o, &d, err);
    o->lateness = d.bits >= 63 ? INT64_MAX : (INT64_C(1) << d.bits) - 1;
    o->latest = INT64_MIN;
    if (!status && d.late.count)
        status = read_late(o, &d, err);
    prof_array_free(&d.late);
    return status;
}

static void set_columns(struct prof_ordered *o)
{
    o->columns = sqlite3_column_count(o->scan);
    if (o->columns > PROF_ORDERED_COLUMNS)
        o->columns = PROF_ORDERED_COLUMNS;
}

enum prof_status prof_ordered_open(struct prof_capture *capture,
                                   const struct prof_ordered_query *query, int64_t small,
                                   struct prof_ordered **ordered, struct prof_error *err)
{
    struct prof_ordered *o = *ordered = calloc(1, sizeof *o);
    if (!o)
        return prof_out_of_memory(err);
    o->capture = capture;
    o->query = *query;
    o->columns = PROF_ORDERED_COLUMNS;
    enum prof_status status = select_rows(o, false, "", &o->scan, err);
    if (!status) {
        set_columns(o);
        status = plan(o, small, err);
    }
    if (!status && o->sorted) {
        sqlite3_finalize(o->scan);
        o->scan = NULL;
        status = select_rows(o, false, "ORDER BY 1, 2", &o->scan, err);
    }
    if (status) {
        prof_ordered_close(o, NULL);
        *ordered = NULL;
    }
    return status;
}

static bool push_row(struct prof_ordered *o, const struct prof_ordered_row *row)
{
    if (!prof_array_reserve(&o->heap, 1))
        return false;
    PROF_HEAP_PUSH(o->heap.data, o->heap.count, *row, before);
    return true;
}

/* The disorder needs more rows in flight than we hold: let SQLite sort what is left. */
static void change_to_sorting(struct prof_ordered *o)
{
    char *extra;
    sqlite3_finalize(o->scan);
    o->scan = NULL;
    prof_array_free(&o->heap);
    prof_array_free(&o->late);
    o->late_at = 0;
    o->sorted = true;
    o->scan_done = false;
    if (!o->has_current)
        extra = sqlite3_mprintf("ORDER BY 1, 2");
    else if (o->current.cells[0] == PROF_UNKNOWN)
        extra = sqlite3_mprintf("AND ((%s) IS NULL AND id > %lld OR (%s) NOT NULL) ORDER BY 1, 2",
                                o->query.key, o->current.cells[1], o->query.key);
    else
        extra = sqlite3_mprintf("AND ((%s), id) > (%lld, %lld) ORDER BY 1, 2", o->query.key,
                                o->current.cells[0], o->current.cells[1]);
    o->status =
        extra ? select_rows(o, false, extra, &o->scan, &o->err) : prof_out_of_memory(&o->err);
    sqlite3_free(extra);
}

/* Read on until the smallest row of the heap cannot be overtaken. */
static void fill_heap(struct prof_ordered *o)
{
    while (!o->scan_done && !o->sorted &&
           (!o->heap.count || prof_subtract(o->latest, o->heap.data[0].cells[0]) <= o->lateness)) {
        if (!prof_row(o->scan)) {
            o->scan_done = true;
            return;
        }
        struct prof_ordered_row row;
        int64_t key = prof_column_int(o->scan, 0);
        if (key > o->latest)
            o->latest = key;
        if (prof_subtract(o->latest, key) > o->lateness)
            continue; /* in o->late */
        if (o->heap.count >= HEAP_LIMIT) {
            change_to_sorting(o);
            return;
        }
        read_ordered_row(o, o->scan, &row);
        if (!push_row(o, &row)) {
            o->status = prof_out_of_memory(&o->err);
            return;
        }
    }
}

const struct prof_ordered_row *prof_ordered_next(struct prof_ordered *o)
{
    if (o->status)
        return NULL;
    if (!o->sorted)
        fill_heap(o);
    if (o->status)
        return NULL;
    if (o->sorted) {
        if (o->scan_done || !prof_row(o->scan)) {
            o->scan_done = true;
            return NULL;
        }
        read_ordered_row(o, o->scan, &o->current);
        o->has_current = true;
        return &o->current;
    }
    bool from_late = o->late_at < o->late.count &&
                     (!o->heap.count || before(&o->late.data[o->late_at], &o->heap.data[0]));
    if (from_late) {
        o->current = o->late.data[o->late_at++];
    } else if (o->heap.count) {
        o->current = o->heap.data[0];
        struct prof_ordered_row last = o->heap.data[--o->heap.count];
        PROF_HEAP_SINK(o->heap.data, o->heap.count, last, before);
    } else {
        return NULL;
    }
    o->has_current = true;
    return &o->current;
}

enum prof_status prof_ordered_close(struct prof_ordered *o, struct prof_error *err)
{
    if (!o)
        return PROF_OK;
    enum prof_status status = o->status;
    if (status && err)
        *err = o->err;
    enum prof_status end = prof_query_end(o->capture, o->scan, status ? NULL : err);
    prof_array_free(&o->heap);
    prof_array_free(&o->late);
    free(o);
    return status ? status : end;
}
