/* What shares of wall time refer to. */
#include "libprof/analysis/recorded.h"

/* A capture that is being recorded, or was recovered without its end, lasts until the last thing it
 * knows of. Only the last rows of each table are looked at: enough for a live view, and cheap. */
static int64_t last_known(struct prof_capture *capture)
{
    static const char sql[] =
        "SELECT max(t) FROM ("
        "SELECT max(start + coalesce(duration, 0)) AS t FROM kernel WHERE id > "
        "(SELECT max(id) - 10000 FROM kernel) UNION ALL "
        "SELECT max(start + coalesce(duration, 0)) FROM transfer WHERE id > "
        "(SELECT max(id) - 10000 FROM transfer) UNION ALL "
        "SELECT max(start + coalesce(duration, 0)) FROM memset WHERE id > "
        "(SELECT max(id) - 10000 FROM memset) UNION ALL "
        "SELECT max(start + coalesce(duration, 0)) FROM api_call WHERE id > "
        "(SELECT max(id) - 10000 FROM api_call) UNION ALL "
        "SELECT max(start + coalesce(duration, 0)) FROM sync WHERE id > "
        "(SELECT max(id) - 10000 FROM sync) UNION ALL "
        "SELECT max(start + coalesce(duration, 0)) FROM graph_launch WHERE id > "
        "(SELECT max(id) - 10000 FROM graph_launch) UNION ALL "
        "SELECT max(start + coalesce(duration, 0)) FROM range WHERE id > "
        "(SELECT max(id) - 10000 FROM range) UNION ALL "
        "SELECT max(\"end\") FROM process)";
    int64_t last = PROF_UNKNOWN;
    sqlite3_stmt *row;
    if (prof_query(capture, sql, &row, NULL))
        return last;
    if (prof_row(row))
        last = prof_column_int(row, 0);
    sqlite3_finalize(row);
    return last;
}

int64_t prof_end_ns(struct prof_capture *capture)
{
    int64_t end = capture->info.duration_ns;
    return end == PROF_UNKNOWN ? last_known(capture) : end;
}

int64_t prof_wall_ns(struct prof_capture *capture, const struct prof_filter *filter)
{
    struct prof_recorded recorded;
    int64_t begin = 0, end = prof_end_ns(capture);
    if (end == PROF_UNKNOWN)
        return PROF_UNKNOWN;
    if (filter && filter->begin_ns > begin)
        begin = filter->begin_ns;
    if (filter && filter->end_ns && filter->end_ns < end)
        end = filter->end_ns;
    if (prof_recorded(capture, &recorded, NULL))
        recorded.in_part = false; /* whoever reads events next tells the error */
    int64_t wall = prof_recorded_length(&recorded, begin, end);
    prof_recorded_free(&recorded);
    return wall;
}
