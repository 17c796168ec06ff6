/* Rows of `rollup` where no kernels are to make them of: in a summary, and of files that are
 * summaries. Their seconds began with their file; they go to the second that they mostly overlap. A
 * file that has kernels and no sums of them (made by another program, or cut off) is summed up
 * here.
 */
#include "libprof/store/merge/parts.h"

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
