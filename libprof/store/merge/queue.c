/* Event rows of one file, nearly sorted. perfkit writes rows when they are complete, so they stand
 * nearly in order of time; readers of the result (analysis/ordered.c) hold as many rows as that
 * disorder spans, of all files together. A short queue here takes most of it out. */
#include <stdlib.h>
#include <string.h>

#include "libprof/store/merge/parts.h"

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

bool merge_queue_open(struct merge_input *input, const struct merge_table *table, size_t window,
                      struct merge_queue **queue)
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

const struct merge_row *merge_queue_next(struct merge_queue *q)
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

struct merge_input *merge_queue_input(const struct merge_queue *q)
{
    return q->input;
}

void merge_queue_close(struct merge_queue *q)
{
    if (!q)
        return;
    sqlite3_finalize(q->rows);
    free(q->places);
    free(q->slots);
    free(q->free);
    free(q);
}
