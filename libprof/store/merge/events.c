/* Event tables of all files, interleaved by time. Of each file the next row is at hand; the one
 * whose file has come least far is written. How far a file has come is the latest start it has
 * shown: a row that is late in its file (a range is written when it closes) is as late in the
 * result, not later. */
#include <stdlib.h>
#include <string.h>

#include "libprof/store/merge/parts.h"

#define ROWS_A_STATEMENT 32
#define QUEUE_BYTES (96u << 20) /* of all files together */
#define MOST_WAITING 512u
#define LEAST_WAITING 16u
#define LOOK_UP_EVERY 8192u

/* ---- a queue of rows of one file ------------------------------------------------------------- */

/* A row as the result will have it, but for its number. */
struct merge_row {
    int64_t key;           /* its start in the result; that of the row before when it is unknown */
    uint64_t nulls, reals; /* bit i: column i is NULL, or holds the bits of a double */
    int64_t cells[];       /* cells[0]: its number in the file */
};

/* Event rows of one file, nearly sorted. perfkit writes rows when they are complete, so they stand
 * nearly in order of time; readers of the result (analysis/ordered.c) hold as many rows as that
 * disorder spans, of all files together. A short queue here takes most of it out. */

#define CACHE_LINE 64
#define NONE UINT32_MAX

struct place {
    int64_t key;
    uint32_t slot;
};

struct merge_queue {
    struct merge_input *input;
    const struct merge_table *table;
    sqlite3_stmt *rows;
    size_t window, row_bytes;
    struct place *places; /* sorted; those before `next` were handed out */
    size_t next, count;
    char *slots;    /* window + 1 rows */
    uint32_t *free; /* those of them that hold no row, the last one to be taken next */
    size_t free_count;
    uint32_t handed; /* slot of the row handed out, or NONE */
    int64_t latest;  /* key of the row read last */
};

static struct merge_row *row_in(const struct merge_queue *q, uint32_t slot)
{
    return (struct merge_row *)(void *)(q->slots + (size_t)slot * q->row_bytes);
}

static void merge_queue_close(struct merge_queue *q)
{
    if (!q)
        return;
    sqlite3_finalize(q->rows);
    free(q->places);
    free(q->slots);
    free(q->free);
    free(q);
}

/* Rows come in nearly the order of time: a row waits until at least half of `window` later ones
 * have been read. False: out of memory. A file that cannot be read is damaged and has no more rows.
 */
static bool merge_queue_open(struct merge_input *input, const struct merge_table *table,
                             size_t window, struct merge_queue **queue)
{
    struct merge_queue *q = *queue = calloc(1, sizeof *q);
    if (!q)
        return false;
    q->input = input;
    q->table = table;
    q->window = window;
    q->row_bytes = sizeof(struct merge_row) + (size_t)table->columns * sizeof(int64_t);
    q->places = malloc(window * sizeof *q->places);
    q->slots = malloc((window + 1) * q->row_bytes);
    q->free = malloc((window + 1) * sizeof *q->free);
    q->handed = NONE;
    char *sql = merge_select_sql(table, "");
    if (!q->places || !q->slots || !q->free || !sql) {
        sqlite3_free(sql);
        merge_queue_close(q);
        *queue = NULL;
        return false;
    }
    if (sqlite3_prepare_v2(input->db, sql, -1, &q->rows, NULL) != SQLITE_OK)
        merge_input_damaged(input, prof_sql_status(sqlite3_errcode(input->db)));
    sqlite3_free(sql);
    for (size_t i = 0; i <= window; i++)
        q->free[q->free_count++] = (uint32_t)(window - i);
    return true;
}

static void convert_cell(const struct merge_queue *q, struct merge_row *row, int at)
{
    const struct merge_input *in = q->input;
    int refers = q->table->column[at].refers;
    enum prof_time time = q->table->column[at].time;
    if (refers >= 0) {
        row->cells[at] = merge_ids_now(&in->ids[refers], row->cells[at]);
        row->nulls |= (uint64_t)(row->cells[at] == 0) << at;
    } else if (time == PROF_TIME_START ||
               (time == PROF_TIME_UNSTARTED && (row->nulls >> q->table->start & 1))) {
        row->cells[at] = merge_time(in, row->cells[at]);
    }
}

static void read_queue_row(struct merge_queue *q, struct merge_row *row)
{
    int columns = q->table->columns;
    row->nulls = row->reals = 0;
    for (int i = 0; i < columns; i++) {
        sqlite3_value *value = sqlite3_column_value(q->rows, i);
        int type = sqlite3_value_type(value);
        if (type == SQLITE_NULL) {
            row->nulls |= UINT64_C(1) << i;
        } else if (type == SQLITE_FLOAT) {
            double real = sqlite3_value_double(value);
            memcpy(&row->cells[i], &real, sizeof real);
            row->reals |= UINT64_C(1) << i;
        } else {
            row->cells[i] = sqlite3_value_int64(value);
        }
    }
    for (int i = 1; i < columns; i++) {
        if (!((row->nulls | row->reals) >> i & 1))
            convert_cell(q, row, i);
    }
    if (!((row->nulls | row->reals) >> q->table->start & 1))
        q->latest = row->cells[q->table->start];
    row->key = q->latest;
}

/* Among those that wait; nearly always at the end. */
static void insert_position(struct merge_queue *q, struct place place)
{
    size_t at = q->count++;
    for (; at > q->next && place.key < q->places[at - 1].key; at--)
        q->places[at] = q->places[at - 1];
    q->places[at] = place;
}

/* Many rows at a time: what SQLite has of this file is in the processor's caches then, which a
 * thousand files do not share. */
static void fill_queue(struct merge_queue *q)
{
    q->count -= q->next;
    memmove(q->places, q->places + q->next, q->count * sizeof *q->places);
    q->next = 0;
    while (q->rows && q->count < q->window) {
        int code = sqlite3_step(q->rows);
        if (code != SQLITE_ROW) {
            if (code != SQLITE_DONE)
                merge_input_damaged(q->input, prof_sql_status(code));
            sqlite3_finalize(q->rows);
            q->rows = NULL;
            return;
        }
        uint32_t slot = q->free[--q->free_count];
        read_queue_row(q, row_in(q, slot));
        insert_position(q, (struct place){row_in(q, slot)->key, slot});
    }
}

/* A thousand others come first, but they all fit into the second cache. */
static void fetch_ahead(const struct merge_queue *q)
{
    const char *row = (const char *)row_in(q, q->places[q->next].slot);
    for (size_t i = 0; i < q->row_bytes; i += CACHE_LINE)
        __builtin_prefetch(row + i);
}

/* NULL at the end. Valid until the next call. */
static const struct merge_row *merge_queue_next(struct merge_queue *q)
{
    if (q->handed != NONE)
        q->free[q->free_count++] = q->handed;
    q->handed = NONE;
    if (q->rows && q->count - q->next <= q->window / 2)
        fill_queue(q);
    if (q->next == q->count)
        return NULL;
    q->handed = q->places[q->next++].slot;
    if (q->next < q->count)
        fetch_ahead(q);
    return row_in(q, q->handed);
}

/* ---- events of all files --------------------------------------------------------------------- */

struct source {
    struct merge_queue *queue;
    const struct merge_row *row; /* the next */
    int64_t come;                /* how far */
    size_t number;               /* of the file: it decides between equals */
};

struct events {
    struct merge *m;
    int number;
    const struct merge_table *table;
    struct source *sources; /* a heap by `come` */
    size_t count;
    sqlite3_stmt *one, *many, *sum;
    int waiting;            /* rows bound to `many` */
    struct merge_row *held; /* the same, in case they do not fill it */
    size_t row_bytes;
    uint64_t written;
    int stream, config, duration; /* columns, when sums are made of the rows; else stream is -1 */
    int64_t summed_second;
};

/* ---- writing --------------------------------------------------------------------------------- */

static void bind_merge_row(sqlite3_stmt *sql, int first, const struct merge_row *row, int columns)
{
    for (int i = 0; i < columns; i++) {
        if (row->nulls >> i & 1) {
            sqlite3_bind_null(sql, first + i);
        } else if (row->reals >> i & 1) {
            double real;
            memcpy(&real, &row->cells[i], sizeof real);
            sqlite3_bind_double(sql, first + i, real);
        } else {
            sqlite3_bind_int64(sql, first + i, row->cells[i]);
        }
    }
}

static struct merge_row *held(const struct events *e, int at)
{
    return (struct merge_row *)(void *)((char *)e->held + (size_t)at * e->row_bytes);
}

static bool step_and_reset(sqlite3_stmt *sql)
{
    int code = sqlite3_step(sql);
    sqlite3_reset(sql);
    return code == SQLITE_DONE;
}

static enum prof_status flush_merged_rows(struct events *e)
{
    bool ok = true;
    for (int i = 0; ok && i < e->waiting; i++) {
        bind_merge_row(e->one, 1, held(e, i), e->table->columns);
        ok = step_and_reset(e->one);
    }
    e->waiting = 0;
    return ok ? PROF_OK : merge_write_fail(e->m);
}

static enum prof_status write_merged_row(struct events *e, const struct merge_row *row)
{
    struct merge_row *copy = held(e, e->waiting++);
    memcpy(copy, row, e->row_bytes);
    copy->cells[0] = ++e->m->last[e->number];
    copy->nulls &= ~UINT64_C(1);
    if (e->waiting < ROWS_A_STATEMENT)
        return PROF_OK;
    for (int i = 0; i < ROWS_A_STATEMENT; i++)
        bind_merge_row(e->many, i * e->table->columns + 1, held(e, i), e->table->columns);
    e->waiting = 0;
    return step_and_reset(e->many) ? PROF_OK : merge_write_fail(e->m);
}

/* ---- sums per second ------------------------------------------------------------------------- */

static int column_of(const struct merge_table *table, const char *name)
{
    for (int i = 0; i < table->columns; i++) {
        if (strcmp(table->schema->columns[i].name, name) == 0)
            return i;
    }
    return -1;
}

static int64_t cell(const struct merge_row *row, int at)
{
    return row->nulls >> at & 1 ? 0 : row->cells[at];
}

static enum prof_status add_to_sums(struct events *e, const struct merge_row *row)
{
    struct rollup_sums *sums = &e->m->rollup;
    if (row->nulls & (UINT64_C(1) << e->table->start | UINT64_C(1) << e->duration))
        return PROF_OK;
    if (!rollup_sums_add(sums, cell(row, e->stream), cell(row, e->config),
                         row->cells[e->table->start], (uint64_t)row->cells[e->duration]))
        return prof_out_of_memory(e->m->err);
    if (sums->newest == e->summed_second && sums->list.count < ROLLUP_MOST)
        return PROF_OK;
    e->summed_second = sums->newest;
    return merge_flush_sums(e->m, e->sum);
}

/* ---- merging --------------------------------------------------------------------------------- */

static bool source_comes_first(const struct source *a, const struct source *b)
{
    return a->come != b->come ? a->come < b->come : a->number < b->number;
}

static void sift_source_down(struct events *e, size_t at)
{
    struct source moving = e->sources[at];
    for (size_t child; (child = 2 * at + 1) < e->count; at = child) {
        if (child + 1 < e->count && source_comes_first(&e->sources[child + 1], &e->sources[child]))
            child++;
        if (!source_comes_first(&e->sources[child], &moving))
            break;
        e->sources[at] = e->sources[child];
    }
    e->sources[at] = moving;
}

/* False at the end of the file. */
static bool advance_source(struct source *s)
{
    s->row = merge_queue_next(s->queue);
    if (s->row && s->row->key > s->come)
        s->come = s->row->key;
    return s->row != NULL;
}

static enum prof_status copy_source_row(struct events *e, struct source *s)
{
    struct merge_input *in = s->queue->input;
    enum prof_status status = write_merged_row(e, s->row);
    struct merge_ids *ids = &in->ids[e->number];
    size_t at = ids->now ? merge_ids_find(ids, s->row->cells[0]) : SIZE_MAX;
    if (at != SIZE_MAX)
        ids->now[at] = e->m->last[e->number];
    if (in->part) {
        in->part->rows++;
        e->m->result->rows++;
    }
    if (!status && e->stream >= 0)
        status = add_to_sums(e, s->row);
    return !status && ++e->written % LOOK_UP_EVERY == 0 ? merge_look_up(e->m) : status;
}

static enum prof_status merge_all(struct events *e)
{
    enum prof_status status = PROF_OK;
    while (e->count && !status) {
        status = copy_source_row(e, &e->sources[0]);
        if (!status && !advance_source(&e->sources[0])) {
            merge_queue_close(e->sources[0].queue);
            e->sources[0] = e->sources[--e->count];
        }
        if (e->count)
            sift_source_down(e, 0);
    }
    return status ?: flush_merged_rows(e);
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* The rows that others refer to, so that their new numbers are kept. */
static enum prof_status find_referred(struct events *e, struct merge_input *in)
{
    const struct merge_plan *plan = &e->m->plan;
    PROF_SQL_FREED char *sql = sqlite3_mprintf("%s", "");
    for (int t = 0; sql && t < plan->count; t++) {
        const struct merge_table *table = &plan->tables[t];
        for (int c = 0; sql && table->way != MERGE_LEAVE && c < table->columns; c++) {
            if (table->column[c].refers == e->number)
                sql = sqlite3_mprintf("%z%sSELECT \"%w\" AS id FROM \"%w\" WHERE \"%w\" NOT NULL",
                                      sql, *sql ? " UNION " : "", table->schema->columns[c].name,
                                      table->schema->name, table->schema->columns[c].name);
        }
    }
    enum prof_status status = PROF_OK;
    if (sql && *sql) {
        sql = sqlite3_mprintf("SELECT DISTINCT id FROM (%z) ORDER BY 1", sql);
        status = sql ? merge_ids_read(&in->ids[e->number], in->db, sql) : PROF_NOMEM;
    }
    if (!sql || status == PROF_NOMEM ||
        (in->ids[e->number].count && !merge_ids_scatter(&in->ids[e->number])))
        status = prof_out_of_memory(e->m->err);
    else if (status)
        merge_input_damaged(in, status);
    return status == PROF_NOMEM ? status : PROF_OK;
}

static enum prof_status open_sources(struct events *e, size_t files)
{
    size_t window = QUEUE_BYTES / (files * e->row_bytes);
    window = window > MOST_WAITING ? MOST_WAITING : window < LEAST_WAITING ? LEAST_WAITING : window;
    e->sources = calloc(files, sizeof *e->sources);
    if (!e->sources)
        return prof_out_of_memory(e->m->err);
    for (size_t i = 0; i < e->m->count; i++) {
        struct merge_input *in = &e->m->inputs[i];
        if (!in->db)
            continue;
        if (e->table->referred) {
            PROF_TRY(find_referred(e, in));
        }
        struct source s = {.come = INT64_MIN, .number = i};
        if (!merge_queue_open(in, e->table, window, &s.queue))
            return prof_out_of_memory(e->m->err);
        if (advance_source(&s))
            e->sources[e->count++] = s;
        else
            merge_queue_close(s.queue);
    }
    for (size_t at = e->count / 2; at-- > 0;)
        sift_source_down(e, at);
    return PROF_OK;
}

static enum prof_status prepare_events(struct events *e)
{
    enum schema_table table = (enum schema_table)(e->table->schema - prof_tables);
    bool ok = !prof_schema_insert(e->m->out, table, 1, false, &e->one) &&
              !prof_schema_insert(e->m->out, table, ROWS_A_STATEMENT, false, &e->many) &&
              prof_schema_insert(e->m->out, SCHEMA_rollup, 1, true, &e->sum) == SQLITE_OK;
    e->held = malloc(ROWS_A_STATEMENT * e->row_bytes);
    if (!ok || !e->held)
        return ok ? prof_out_of_memory(e->m->err) : merge_write_fail(e->m);
    e->stream = -1;
    if (!strcmp(e->table->schema->name, "kernel") && e->m->sums) {
        e->stream = column_of(e->table, "stream");
        e->config = column_of(e->table, "config");
        e->duration = column_of(e->table, "duration");
    }
    return PROF_OK;
}

enum prof_status merge_events(struct merge *m, int table)
{
    struct events e = {.m = m, .number = table, .table = &m->plan.tables[table]};
    size_t files = 0;
    for (size_t i = 0; i < m->count; i++)
        files += m->inputs[i].db != NULL;
    e.row_bytes = sizeof(struct merge_row) + (size_t)e.table->columns * sizeof(int64_t);
    enum prof_status status = prepare_events(&e);
    status = status ?: open_sources(&e, files);
    status = status ?: merge_all(&e);
    if (!status && e.stream >= 0)
        status = merge_flush_sums(m, e.sum);
    for (size_t i = 0; i < e.count; i++)
        merge_queue_close(e.sources[i].queue);
    free(e.sources);
    free(e.held);
    sqlite3_finalize(e.one);
    sqlite3_finalize(e.many);
    sqlite3_finalize(e.sum);
    return status;
}
