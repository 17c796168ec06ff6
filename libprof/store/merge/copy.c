/* Tables without a time of their own, file by file: rows are given the next numbers, what they
 * refer to its new ones, times the new zero. Names and launch configurations that are there already
 * are not written again: a thousand ranks of one program have the same ones. */
#include <string.h>

#include "libprof/base/regular.h"
#include "libprof/store/merge/parts.h"

struct copy {
    struct merge *m;
    int number;
    const struct merge_table *table;
    sqlite3_stmt *insert, *same; /* same: a row of the result */
    struct prof_map known;       /* hash of a row -> its number there */
    struct bytes {
        char *data;
        size_t count, capacity;
    } row, other;
};

/* ---- one row --------------------------------------------------------------------------------- */

static bool is_null(sqlite3_stmt *row, int at)
{
    return sqlite3_column_type(row, at) == SQLITE_NULL;
}

/* False: out of memory for a copy of the value. */
static bool bind(struct copy *c, const struct merge_input *in, sqlite3_stmt *row, int at)
{
    const struct merge_table *table = c->table;
    int refers = table->column[at].refers;
    enum prof_time time = table->column[at].time;
    int64_t value = sqlite3_column_int64(row, at);
    bool moves = time == PROF_TIME_START || time == PROF_TIME_MONO ||
                 (time == PROF_TIME_UNSTARTED && is_null(row, table->start));
    if (is_null(row, at)) {
        sqlite3_bind_null(c->insert, at + 1);
    } else if (refers >= 0) {
        int64_t now = merge_ids_now(&in->ids[refers], value);
        if (now)
            sqlite3_bind_int64(c->insert, at + 1, now);
        else
            sqlite3_bind_null(c->insert, at + 1);
    } else if (moves && time == PROF_TIME_MONO) {
        sqlite3_bind_int64(c->insert, at + 1, merge_mono(c->m, in, value));
    } else if (moves) {
        sqlite3_bind_int64(c->insert, at + 1, merge_time(in, value));
    } else {
        return sqlite3_bind_value(c->insert, at + 1, sqlite3_column_value(row, at)) == SQLITE_OK;
    }
    return true;
}

/* The row numbers of a damaged file may be there twice: the first one counts. */
static enum prof_status write_copied_row(struct copy *c, struct merge_input *in, sqlite3_stmt *row,
                                         int64_t id)
{
    for (int i = 1; i < c->table->columns; i++)
        if (!bind(c, in, row, i))
            return merge_write_fail(c->m);
    sqlite3_bind_int64(c->insert, 1, id);
    int code = sqlite3_step(c->insert);
    sqlite3_reset(c->insert);
    if (code == SQLITE_CONSTRAINT)
        merge_input_damaged(in, PROF_CORRUPT);
    return code == SQLITE_DONE || code == SQLITE_CONSTRAINT ? PROF_OK : merge_write_fail(c->m);
}

/* ---- rows that are alike --------------------------------------------------------------------- */

/* All columns but the number, as bytes; references as they are in the result. */
static bool encode(const struct copy *c, const struct merge_input *in, sqlite3_stmt *row,
                   struct bytes *out)
{
    bool ok = true;
    out->count = 0;
    for (int i = 1; ok && i < c->table->columns; i++) {
        int type = sqlite3_column_type(row, i), refers = c->table->column[i].refers;
        int64_t value = sqlite3_column_int64(row, i);
        if (type == SQLITE_TEXT || type == SQLITE_BLOB) {
            const void *text = sqlite3_column_blob(row, i);
            value = sqlite3_column_bytes(row, i);
            ok = prof_array_append(out, &type, sizeof type) &&
                 prof_array_append(out, &value, sizeof value) &&
                 prof_array_append(out, text, (size_t)value);
            continue;
        }
        if (type == SQLITE_FLOAT) {
            double real = sqlite3_column_double(row, i);
            memcpy(&value, &real, sizeof value);
        }
        if (in && refers >= 0 && type != SQLITE_NULL)
            value = merge_ids_now(&in->ids[refers], value);
        if (in && refers >= 0 && !value)
            type = SQLITE_NULL;
        ok = prof_array_append(out, &type, sizeof type) &&
             prof_array_append(out, &value, sizeof value);
    }
    return ok;
}

static uint64_t hash(const struct bytes *bytes)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < bytes->count; i++)
        h = (h ^ (unsigned char)bytes->data[i]) * 0x100000001b3u;
    return h;
}

/* Is row `id` of the result what c->row holds? A read that fails takes back with it all that was
 * written: SQLite may end the transaction. */
static enum prof_status is_same_row(struct copy *c, int64_t id, bool *same)
{
    sqlite3_bind_int64(c->same, 1, id);
    int code = sqlite3_step(c->same);
    bool ok = code == SQLITE_ROW || code == SQLITE_DONE;
    enum prof_status status = ok ? PROF_OK : merge_write_fail(c->m);
    if (code == SQLITE_ROW && !encode(c, NULL, c->same, &c->other))
        status = prof_out_of_memory(c->m->err);
    *same = !status && code == SQLITE_ROW && c->other.count == c->row.count &&
            (!c->row.count || memcmp(c->other.data, c->row.data, c->row.count) == 0);
    sqlite3_reset(c->same);
    return status;
}

static enum prof_status share_row(struct copy *c, struct merge_input *in, sqlite3_stmt *row,
                                  int64_t *now)
{
    if (!encode(c, in, row, &c->row))
        return prof_out_of_memory(c->m->err);
    uint64_t key = hash(&c->row);
    uint64_t *known = prof_map_get(&c->known, key);
    bool same = false;
    enum prof_status status = known ? is_same_row(c, (int64_t)*known, &same) : PROF_OK;
    if (same)
        *now = (int64_t)*known;
    if (status || same)
        return status;
    *now = ++c->m->last[c->number];
    if (!known && !prof_map_put(&c->known, key, (uint64_t)*now))
        return prof_out_of_memory(c->m->err);
    return write_copied_row(c, in, row, *now);
}

/* ---- one file -------------------------------------------------------------------------------- */

/* Lines of the trust block that are about no process are taken by trust.c. */
static const char *rows_of(const struct merge_table *table)
{
    return strcmp(table->schema->name, "capture_health") == 0 ? "WHERE process NOT NULL ORDER BY id"
                                                              : "ORDER BY id";
}

/* The numbers that its rows will have. */
static enum prof_status number_rows(struct copy *c, struct merge_input *in)
{
    struct merge_ids *ids = &in->ids[c->number];
    char *sql =
        sqlite3_mprintf("SELECT id FROM \"%w\" %s", c->table->schema->name, rows_of(c->table));
    enum prof_status status = sql ? merge_ids_read(ids, in->db, sql) : PROF_NOMEM;
    sqlite3_free(sql);
    if (status && status != PROF_NOMEM) {
        merge_input_damaged(in, status);
        status = PROF_OK;
    }
    if (!status && c->table->way == MERGE_SHARE && !merge_ids_scatter(ids))
        status = PROF_NOMEM;
    if (status)
        return prof_fail(c->m->err, status, "out of memory");
    ids->base = c->m->last[c->number] + 1;
    if (c->table->way != MERGE_SHARE)
        c->m->last[c->number] += (int64_t)ids->count;
    return PROF_OK;
}

static enum prof_status copy_row(struct copy *c, struct merge_input *in, sqlite3_stmt *row)
{
    struct merge_ids *ids = &in->ids[c->number];
    size_t at = merge_ids_find(ids, sqlite3_column_int64(row, 0));
    if (at == SIZE_MAX)
        return PROF_OK;
    if (c->table->way == MERGE_SHARE)
        return share_row(c, in, row, &ids->now[at]);
    return write_copied_row(c, in, row, ids->base + (int64_t)at);
}

static enum prof_status copy_input(struct copy *c, struct merge_input *in)
{
    sqlite3_stmt *row = NULL;
    enum prof_status status = number_rows(c, in);
    if (status)
        return status;
    char *sql = merge_select_sql(c->table, rows_of(c->table));
    if (!sql)
        return prof_out_of_memory(c->m->err);
    sqlite3_prepare_v2(in->db, sql, -1, &row, NULL);
    sqlite3_free(sql);
    while (row && !status && sqlite3_step(row) == SQLITE_ROW)
        status = copy_row(c, in, row);
    merge_input_end(in, row);
    return status;
}

/* ---- parts and their processes --------------------------------------------------------------- */

static const char *const clock_names[] = {
#define X(name, text) [PROF_MERGE_##name] = text,
    PROF_MERGE_CLOCK_MAP(X)
#undef X
};

static void bind_or_null(sqlite3_stmt *sql, int at, int64_t value)
{
    if (value == PROF_MERGE_UNKNOWN)
        sqlite3_bind_null(sql, at);
    else
        sqlite3_bind_int64(sql, at, value);
}

static enum prof_status write_part(struct merge *m, struct merge_input *in, int table)
{
    PROF_FINALIZED sqlite3_stmt *sql = NULL;
    const struct prof_merge_part *part = in->part;
    if (prof_schema_insert(m->out, SCHEMA_merged_part, 1, false, &sql))
        return merge_write_fail(m);
    in->part_row = ++m->last[table];
    /* in the order of the columns */
    const char *const texts[] = {
        prof_file_name(in->path), in->host, in->boot_id, part->ranks, in->state, in->version};
    sqlite3_bind_int64(sql, COLUMN_AT(merged_part, id), in->part_row);
    for (int i = 0; i < 6; i++)
        sqlite3_bind_text(sql, COLUMN_AT(merged_part, file) + i, texts[i], -1, SQLITE_STATIC);
    sqlite3_bind_int64(sql, COLUMN_AT(merged_part, start), merge_time(in, 0));
    bind_or_null(sql, COLUMN_AT(merged_part, duration), in->duration_ns);
    sqlite3_bind_text(sql, COLUMN_AT(merged_part, clock), clock_names[part->clock], -1,
                      SQLITE_STATIC);
    bind_or_null(sql, COLUMN_AT(merged_part, clock_offset),
                 part->clock == PROF_MERGE_NONE ? PROF_MERGE_UNKNOWN : part->offset_ns);
    sqlite3_bind_double(sql, COLUMN_AT(merged_part, clock_drift), part->drift);
    bind_or_null(sql, COLUMN_AT(merged_part, clock_error), part->error_ns);
    sqlite3_bind_int64(sql, COLUMN_AT(merged_part, compared), (int64_t)part->compared);
    int code = sqlite3_step(sql);
    return code == SQLITE_DONE ? PROF_OK : merge_write_fail(m);
}

/* What was NULL because it was the capture's own. */
static enum prof_status fill_processes(struct merge *m, const struct merge_input *in, int table)
{
    PROF_FINALIZED sqlite3_stmt *sql = NULL;
    const struct merge_ids *ids = &in->ids[table];
    if (sqlite3_prepare_v2(
            m->out,
            "UPDATE process SET host=coalesce(host,?1), boot_id=coalesce(boot_id,?2), "
            "part=coalesce(part,?3) WHERE id BETWEEN ?4 AND ?5",
            -1, &sql, NULL))
        return merge_write_fail(m);
    sqlite3_bind_text(sql, 1, in->host, -1, SQLITE_STATIC);
    sqlite3_bind_text(sql, 2, in->boot_id, -1, SQLITE_STATIC);
    if (in->part_row)
        sqlite3_bind_int64(sql, 3, in->part_row);
    sqlite3_bind_int64(sql, 4, ids->base);
    sqlite3_bind_int64(sql, 5, ids->base + (int64_t)ids->count - 1);
    int code = sqlite3_step(sql);
    return code == SQLITE_DONE ? PROF_OK : merge_write_fail(m);
}

enum prof_status merge_finish_parts(struct merge *m)
{
    PROF_FINALIZED sqlite3_stmt *sql = NULL;
    enum prof_status status = PROF_OK;
    if (sqlite3_prepare_v2(m->out, "UPDATE merged_part SET rows=?2, missing=?3 WHERE id=?1", -1,
                           &sql, NULL))
        return merge_write_fail(m);
    for (size_t i = 0; !status && i < m->count; i++) {
        const struct merge_input *in = &m->inputs[i];
        if (!in->part_row)
            continue;
        sqlite3_bind_int64(sql, 1, in->part_row);
        sqlite3_bind_int64(sql, 2, (int64_t)in->part->rows);
        sqlite3_bind_text(sql, 3, in->part->missing, -1, SQLITE_STATIC);
        if (sqlite3_step(sql) != SQLITE_DONE)
            status = merge_write_fail(m);
        sqlite3_reset(sql);
    }
    return status;
}

/* ---- all files ------------------------------------------------------------------------------- */

static enum prof_status prepare_copy(struct copy *c)
{
    PROF_SQL_FREED char *same = merge_select_sql(c->table, "WHERE id=?1");
    enum schema_table table = (enum schema_table)(c->table->schema - prof_tables);
    if (!same)
        return prof_out_of_memory(c->m->err);
    bool ok = !prof_schema_insert(c->m->out, table, 1, false, &c->insert) &&
              sqlite3_prepare_v2(c->m->out, same, -1, &c->same, NULL) == SQLITE_OK;
    return ok ? PROF_OK : merge_write_fail(c->m);
}

static enum prof_status copy_table_row(struct copy *c, struct merge_input *in)
{
    const char *name = c->table->schema->name;
    enum prof_status status = merge_look_up(c->m);
    if (!status && !strcmp(name, "merged_part") && !in->merged)
        return write_part(c->m, in, c->number);
    status = status ?: copy_input(c, in);
    if (!status && !strcmp(name, "process"))
        status = fill_processes(c->m, in, c->number);
    if (!status && !strcmp(name, "capture_health") && in->part)
        status = merge_add_lines(c->m, in);
    return status;
}

enum prof_status merge_copy(struct merge *m, int table)
{
    struct copy c = {.m = m, .number = table, .table = &m->plan.tables[table]};
    enum prof_status status = prepare_copy(&c);
    for (size_t i = 0; !status && i < m->count; i++) {
        if (m->inputs[i].db)
            status = copy_table_row(&c, &m->inputs[i]);
    }
    sqlite3_finalize(c.insert);
    sqlite3_finalize(c.same);
    prof_map_free(&c.known);
    prof_array_free(&c.row);
    prof_array_free(&c.other);
    return status;
}

/* ---- sums of kernels ------------------------------------------------------------------------- */

/* Rows of `rollup` where no kernels are to make them of: in a summary, and of files that are
 * summaries. Their seconds began with their file; they go to the second that they mostly overlap. A
 * file that has kernels and no sums of them (made by another program, or cut off) is summed up
 * here.
 */

#define SECOND_NS INT64_C(1000000000)

static bool query_has_rows(struct merge_input *in, const char *sql)
{
    sqlite3_stmt *row = NULL;
    bool any = sqlite3_prepare_v2(in->db, sql, -1, &row, NULL) == SQLITE_OK &&
               sqlite3_step(row) == SQLITE_ROW;
    merge_input_end(in, row);
    return any;
}

static int64_t floor_second(int64_t time_ns)
{
    return time_ns >= 0 ? time_ns / SECOND_NS : -((SECOND_NS - 1 - time_ns) / SECOND_NS);
}

static void bind_id(const struct merge_input *in, int table, sqlite3_stmt *insert, int at,
                    int64_t old)
{
    int64_t now = merge_ids_now(&in->ids[table], old);
    if (now)
        sqlite3_bind_int64(insert, at, now);
    else
        sqlite3_bind_null(insert, at);
}

static enum prof_status copy_sums(struct merge *m, struct merge_input *in, sqlite3_stmt *insert)
{
    sqlite3_stmt *row = NULL;
    int streams = merge_plan_find(&m->plan, "stream"),
        configs = merge_plan_find(&m->plan, "launch_config");
    enum prof_status status = PROF_OK;
    sqlite3_prepare_v2(in->db,
                       "SELECT second, stream, config, count, sum, min, max, histogram FROM rollup",
                       -1, &row, NULL);
    while (row && !status && sqlite3_step(row) == SQLITE_ROW) {
        int64_t second = sqlite3_column_int64(row, 0);
        bool sane = second > INT64_MIN / SECOND_NS / 2 && second < INT64_MAX / SECOND_NS / 2;
        if (sane)
            second = floor_second(merge_time(in, second * SECOND_NS + SECOND_NS / 2));
        sqlite3_bind_int64(insert, COLUMN_AT(rollup, id), ++m->rollup.last);
        sqlite3_bind_int64(insert, COLUMN_AT(rollup, second), second);
        bind_id(in, streams, insert, COLUMN_AT(rollup, stream), sqlite3_column_int64(row, 1));
        bind_id(in, configs, insert, COLUMN_AT(rollup, config), sqlite3_column_int64(row, 2));
        bool ok = true;
        for (int i = 3; ok && i < 8; i++) /* count to histogram */
            ok = sqlite3_bind_value(insert, COLUMN_AT(rollup, count) + i - 3,
                                    sqlite3_column_value(row, i)) == SQLITE_OK;
        if (!ok || sqlite3_step(insert) != SQLITE_DONE)
            status = merge_write_fail(m);
        sqlite3_reset(insert);
    }
    merge_input_end(in, row);
    return status;
}

enum prof_status merge_flush_sums(struct merge *m, sqlite3_stmt *insert)
{
    int code = rollup_sums_flush(&m->rollup, insert);
    if (code == SQLITE_NOMEM)
        return prof_out_of_memory(m->err);
    return code ? merge_write_fail(m) : PROF_OK;
}

static enum prof_status sum_kernels(struct merge *m, struct merge_input *in, sqlite3_stmt *insert)
{
    sqlite3_stmt *row = NULL;
    const struct merge_ids *streams = &in->ids[merge_plan_find(&m->plan, "stream")],
                           *configs = &in->ids[merge_plan_find(&m->plan, "launch_config")];
    enum prof_status status = PROF_OK;
    sqlite3_prepare_v2(
        in->db,
        "SELECT start, duration, stream, config FROM kernel WHERE start NOT NULL AND duration >= 0",
        -1, &row, NULL);
    while (row && !status && sqlite3_step(row) == SQLITE_ROW) {
        if (!rollup_sums_add(&m->rollup, merge_ids_now(streams, sqlite3_column_int64(row, 2)),
                             merge_ids_now(configs, sqlite3_column_int64(row, 3)),
                             merge_time(in, sqlite3_column_int64(row, 0)),
                             (uint64_t)sqlite3_column_int64(row, 1)))
            status = prof_out_of_memory(m->err);
        else if (m->rollup.list.count >= ROLLUP_MOST)
            status = merge_flush_sums(m, insert);
    }
    status = status ?: merge_flush_sums(m, insert);
    rollup_sums_free(&m->rollup);
    merge_input_end(in, row);
    return status;
}

enum prof_status merge_sums(struct merge *m)
{
    PROF_FINALIZED sqlite3_stmt *insert = NULL;
    enum prof_status status = PROF_OK;
    if (prof_schema_insert(m->out, SCHEMA_rollup, 1, true, &insert) != SQLITE_OK)
        return merge_write_fail(m);
    for (size_t i = 0; !status && i < m->count; i++) {
        struct merge_input *in = &m->inputs[i];
        if (in->db && m->options->summary && !query_has_rows(in, "SELECT 1 FROM rollup LIMIT 1"))
            status = sum_kernels(m, in, insert);
        else if (in->db && (m->options->summary || in->passing ||
                            !query_has_rows(in, "SELECT 1 FROM kernel LIMIT 1")))
            status = copy_sums(m, in, insert);
        status = status ?: merge_look_up(m);
    }
    return status;
}
