/* A recording that keeps its last part only (perfkit run --ring). Every so often the newest row
 * numbers of all tables of events are noted; when such a mark is older than the ring, the rows up
 * to it are summed up (table ring_rollup) and deleted. Rows come in the order of their numbers and
 * their events have ended before they are written, so that a cut through the numbers is one through
 * time: what ended after the mark was set is there. SQLite uses the freed pages again: the file
 * stays as large as the fullest ring was. */
#include <string.h>

#include "libprof/store/ingest_private.h"

#define MARK_NS 10000000000u    /* between two marks, less for a short ring */
#define PERIOD_NS "10000000000" /* of a row of ring_rollup */
#define RING_REASON "5"         /* recording.reason */
_Static_assert(WIRE_WINDOW_RING == 5, "RING_REASON");
#define MOST_ROLLUPS 500000 /* rows, some 40 MB; above, older periods become longer */
#define MOST_TRIGGERS 10000

/* ---- sums ------------------------------------------------------------------------------------ */

/* What is summed up: ring_rollup.kind, table, and of a row x of it: time, duration, process,
 * device, name, domain, kind of copy, bytes, and whether it counts. */
static const struct {
    int kind;
    const char *table, *start, *duration, *process, *device, *name, *domain, *copy, *bytes, *where;
} sums[] = {
#define STREAM_OF(column) "(SELECT " column " FROM stream WHERE id=x.stream)"
#define PROCESS_OF "(SELECT process FROM thread WHERE id=x.thread)"
#define CALL_START "coalesce(x.start-x.api_lead,x.api_lead)"
    {2, "transfer", "x.start", "x.duration", STREAM_OF("process"), STREAM_OF("device"), "NULL",
     "NULL", "x.kind", "x.bytes", "x.start NOT NULL"},
    {3, "memset", "x.start", "x.duration", STREAM_OF("process"), STREAM_OF("device"), "NULL",
     "NULL", "NULL", "x.bytes", "x.start NOT NULL"},
    {4, "sync", "x.start", "x.duration", PROCESS_OF, "NULL", "NULL", "NULL", "NULL", "NULL",
     "x.start NOT NULL"},
    {5, "api_call", "x.start", "x.duration", PROCESS_OF, "NULL", "x.name", "NULL", "NULL", "NULL",
     "1"},
#define CALLS_IN(table)                                                                            \
    {                                                                                              \
        5, table, CALL_START, "x.api_duration", PROCESS_OF, "NULL", "x.api_name", "NULL", "NULL",  \
            "NULL", "x.api_name NOT NULL"                                                          \
    }
    CALLS_IN("kernel"),
    CALLS_IN("transfer"),
    CALLS_IN("memset"),
    CALLS_IN("sync"),
    {6, "range", "x.start", "x.duration", PROCESS_OF, "NULL", "x.name", "x.domain", "NULL", "NULL",
     "1"},
};

/* sum() of damaged records may be no 64-bit number, which it takes for an error; this one stops at
 * the largest and is exact below 2^53. */
#define SUM(what) "CASE WHEN count(" what ") THEN CAST(total(" what ") AS INTEGER) END"
#define SUM_OF_ANY SUM("%s")
#define SUM_OF_BYTES SUM("bytes")
#define SUM_OF_SUM SUM("sum")

#define INTO_ROLLUP                                                                                \
    "INSERT INTO ring_rollup(start,duration,kind,process,device,name,domain,copy,count,bytes,sum," \
    "min,max) "

/* Rows that stay give their table's next row its number: the newest one of a table that nothing
 * comes to any more stays until the end. */
#define LEAVING "x.id<=?1 AND (?2 OR x.id<(SELECT max(id) FROM \"%w\"))"

static enum prof_status run_ring(struct prof_ingest *ingest, char *text, int64_t first,
                                 int64_t second)
{
    sqlite3_stmt *sql = NULL;
    enum prof_status status = ingest_memory(ingest, text != NULL, "SQL");
    status = status ?: ingest_query(ingest, text, &sql);
    sqlite3_free(text);
    PROF_TRY(status);
    sqlite3_bind_int64(sql, 1, first);
    sqlite3_bind_int64(sql, 2, second);
    sqlite3_step(sql);
    return ingest_query_end(ingest, sql, PROF_OK);
}

/* Kernels are summed up by second already; seconds that may still change stay. */
static enum prof_status sum_up_kernels(struct prof_ingest *ingest, int64_t before, bool all)
{
    return run_ring(
        ingest,
        sqlite3_mprintf(INTO_ROLLUP
                        "SELECT x.second/10*" PERIOD_NS "," PERIOD_NS
                        ",1,s.process,s.device,coalesce(c.demangled,c.name),NULL,NULL,"
                        "sum(x.count),NULL," SUM_OF_SUM ",min(x.min),max(x.max) FROM rollup x "
                        "LEFT JOIN stream s ON s.id=x.stream LEFT JOIN launch_config c ON "
                        "c.id=x.config WHERE x.second<?1 AND (?2 OR x.id<(SELECT max(id) FROM "
                        "rollup)) GROUP BY 1,4,5,6"),
        before, all);
}

static enum prof_status sum_up(struct prof_ingest *ingest, const int64_t *last, bool all)
{
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        int table = 0;
        while (strcmp(prof_tables[table].name, sums[i].table) != 0)
            table++;
        PROF_TRY(run_ring(
            ingest,
            sqlite3_mprintf(INTO_ROLLUP
                            "SELECT %s/" PERIOD_NS "*" PERIOD_NS "," PERIOD_NS
                            ",%d,%s,%s,%s,%s,%s,count(*)," SUM_OF_ANY "," SUM_OF_ANY ",min(%s),"
                            "max(%s) FROM \"%w\" x WHERE " LEAVING " AND %s GROUP BY 1,4,5,6,7,8",
                            sums[i].start, sums[i].kind, sums[i].process, sums[i].device,
                            sums[i].name, sums[i].domain, sums[i].copy, sums[i].bytes,
                            sums[i].bytes, sums[i].duration, sums[i].duration, sums[i].duration,
                            sums[i].duration, sums[i].table, sums[i].table, sums[i].where),
            all ? INT64_MAX : last[table], all));
    }
    return PROF_OK;
}

/* A period leaves in several parts: the newest rows that are alike become one. */
static enum prof_status unite_newest(struct prof_ingest *ingest)
{
    return ingest_exec(
        ingest,
        "CREATE TEMP TABLE newest AS SELECT start,duration,kind,process,device,name,domain,copy,"
        "sum(count)," SUM_OF_BYTES "," SUM_OF_SUM
        ",min(min),max(max) FROM ring_rollup WHERE id>(SELECT max(id)-4000 FROM ring_rollup) GROUP "
        "BY 1,2,3,4,5,6,7,8 ORDER BY 1;"
        "DELETE FROM ring_rollup WHERE id>(SELECT max(id)-4000 FROM ring_rollup);"
        "INSERT INTO ring_rollup(start,duration,kind,process,device,name,domain,copy,count,bytes,"
        "sum,min,max) SELECT * FROM newest;"
        "DROP TABLE newest");
}

/* Sums for ever in a bounded file: of very many rows the older half gets periods twice as long;
 * where that does not help, because there are ever new names, it loses the names. */
static enum prof_status bound_rollup(struct prof_ingest *ingest)
{
    static const char shorter[] =
        "CREATE TEMP TABLE older AS SELECT start/w*w AS start,w AS duration,kind,process,device,%s "
        "AS name,domain,copy,sum(count) AS count," SUM_OF_BYTES " AS bytes," SUM_OF_SUM
        " AS sum,min(min) AS min,max(max) AS max FROM ring_rollup,(SELECT 2*max(duration) AS w "
        "FROM ring_rollup WHERE "
        "id<=(SELECT min(id)+%d FROM ring_rollup)) WHERE id<=(SELECT min(id)+%d FROM ring_rollup) "
        "GROUP BY 1,3,4,5,6,7,8 ORDER BY 1;"
        "DELETE FROM ring_rollup WHERE id<=(SELECT min(id)+%d FROM ring_rollup);"
        "INSERT INTO ring_rollup(id,start,duration,kind,process,device,name,domain,copy,count,"
        "bytes,sum,min,max) SELECT (SELECT min(id) FROM ring_rollup)-(SELECT count(*) FROM older)"
        "+rowid-1,* FROM older;"
        "DROP TABLE older";
    for (int names = 1; names >= 0; names--) {
        int64_t rows;
        const int half = MOST_ROLLUPS / 2;
        PROF_TRY(ingest_query_number(ingest, INGEST_SQL_RING_ROLLUPS, &rows));
        if (rows < MOST_ROLLUPS - (names ? 0 : MOST_ROLLUPS / 8))
            return PROF_OK;
        char *sql = sqlite3_mprintf(shorter, names ? "name" : "NULL", half, half, half);
        enum prof_status status = ingest_memory(ingest, sql != NULL, "SQL");
        status = status ?: ingest_exec(ingest, sql);
        sqlite3_free(sql);
        PROF_TRY(status);
    }
    return PROF_OK;
}

/* ---- leaving --------------------------------------------------------------------------------- */

/* From when on it is all there, as windows of recording: readers then take nothing before it for
 * idle time. */
static enum prof_status write_begin(struct prof_ingest *ingest, int64_t cut)
{
    static const char *const texts[] = {
        "INSERT INTO recording(process,start,begins,reason) SELECT p.id,?1,1," RING_REASON
        " FROM process p "
        "WHERE p.spool NOT NULL AND p.start<?1 AND (p.end IS NULL OR p.end>?1) AND coalesce("
        "(SELECT begins FROM recording r WHERE r.process=p.id AND r.start<=?1 ORDER BY r.start "
        "DESC,r.id DESC LIMIT 1),1) AND NOT EXISTS(SELECT 1 FROM recording r WHERE "
        "r.process=p.id AND r.start=?1 AND reason=" RING_REASON ")",
        "DELETE FROM recording WHERE start>0 AND start<?1",
        "INSERT INTO recording(process,start,begins,reason) SELECT id,0,0," RING_REASON
        " FROM process WHERE "
        "spool "
        "NOT NULL AND start<?1 AND id NOT IN (SELECT process FROM recording WHERE start=0 AND "
        "reason=" RING_REASON ")",
        /* what was read to its end goes on nowhere */
        "DELETE FROM ingest_map WHERE spool IN (SELECT id FROM ingest_spool WHERE finished)",
        "DELETE FROM ingest_cursor WHERE spool IN (SELECT id FROM ingest_spool WHERE finished)",
        /* nothing refers to the object files of a process that is that long gone */
        "DELETE FROM module WHERE process IN (SELECT id FROM process WHERE \"end\"<?1 AND id NOT "
        "IN (SELECT process FROM frame))",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        PROF_TRY(run_ring(ingest, sqlite3_mprintf("%s", texts[i]), cut, 0));
    for (size_t i = 0; i < ingest->processes.count; i++) {
        const struct ingest_process *process = &ingest->processes.data[i];
        if (process->gone && process->end_ns && process->end_ns < ingest->zero_ns + (uint64_t)cut)
            ingest_image_forget(ingest, process->row);
    }
    return PROF_OK;
}

/* `all`: at the end, when no row comes any more. */
static enum prof_status leave(struct prof_ingest *ingest, const struct ingest_mark *mark, bool all)
{
    int64_t cut = (int64_t)(mark->ns - ingest->zero_ns);
    int64_t young = ingest->rollup.newest - ROLLUP_KEEP_SECONDS, second = cut / 1000000000;
    if (!all && second > young)
        second = young;
    if (!all) {
        PROF_TRY(sum_up_kernels(ingest, second, false));
        PROF_TRY(sum_up(ingest, mark->last, false));
    }
    for (int i = 0; i < SCHEMA_TABLES; i++) {
        if (!prof_tables[i].leaves)
            continue;
        PROF_TRY(run_ring(ingest,
                          sqlite3_mprintf("DELETE FROM \"%w\" AS x WHERE " LEAVING,
                                          prof_tables[i].name, prof_tables[i].name),
                          mark->last[i], all));
        ingest->ring.left += (uint64_t)sqlite3_changes(ingest->db);
    }
    PROF_TRY(run_ring(ingest,
                      sqlite3_mprintf("DELETE FROM rollup AS x WHERE x.second<?1 AND (?2 OR "
                                      "x.id<(SELECT max(id) FROM rollup))"),
                      second, all));
    static const char *const ended[] = {"allocation", "block"}; /* live ones stay */
    for (size_t i = 0; i < sizeof ended / sizeof *ended; i++)
        PROF_TRY(run_ring(ingest,
                          sqlite3_mprintf("DELETE FROM \"%w\" AS x WHERE x.\"end\"<?1 AND (?2 OR "
                                          "x.id<(SELECT max(id) FROM \"%w\"))",
                                          ended[i], ended[i]),
                          cut, all));
    PROF_TRY(run_ring(ingest,
                      sqlite3_mprintf("DELETE FROM ring_trigger WHERE id<=(SELECT max(id) FROM "
                                      "ring_trigger)-%d",
                                      MOST_TRIGGERS),
                      0, 0));
    PROF_TRY(unite_newest(ingest));
    PROF_TRY(bound_rollup(ingest));
    return write_begin(ingest, cut);
}

/* The newest numbers of all tables. */
static enum prof_status set_mark(struct prof_ingest *ingest, struct ingest_mark *mark)
{
    *mark = (struct ingest_mark){.ns = ingest->now_ns};
    PROF_TRY(ingest_batches_flush(ingest));
    for (int i = 0; i < SCHEMA_TABLES; i++) {
        sqlite3_stmt *row;
        char *sql = prof_tables[i].leaves
                        ? sqlite3_mprintf("SELECT max(id) FROM \"%w\"", prof_tables[i].name)
                        : NULL;
        if (!prof_tables[i].leaves)
            continue;
        enum prof_status status =
            sql ? ingest_query(ingest, sql, &row) : ingest_no_memory(ingest, "SQL");
        sqlite3_free(sql);
        PROF_TRY(status);
        if (sqlite3_step(row) == SQLITE_ROW)
            mark->last[i] = sqlite3_column_int64(row, 0);
        PROF_TRY(ingest_query_end(ingest, row, PROF_OK));
    }
    return PROF_OK;
}

enum prof_status ingest_ring_step(struct prof_ingest *ingest)
{
    struct ingest_ring *ring = &ingest->ring;
    uint64_t between = ring->ns / 6 < MARK_NS ? ring->ns / 6 : MARK_NS;
    size_t old = 0;
    if (!ring->ns || ring->window)
        return PROF_OK;
    /* A copy that is overdue, as after perfkit was stopped for a while, is written before rows that
     * it is written for may leave. */
    bool overdue = ring->due_ns && ring->due_ns <= ingest->now_ns;
    while (!overdue && old < ring->marks.count &&
           ring->marks.data[old].ns + ring->ns <= ingest->now_ns)
        old++;
    if (old) {
        ring->cut = ring->marks.data[old - 1];
        PROF_TRY(ingest_batches_flush(ingest));
        PROF_TRY(ingest_rollup_flush(ingest)); /* no sum in memory is of a row that leaves */
        PROF_TRY(leave(ingest, &ring->cut, false));
        ring->marks.count -= old;
        memmove(ring->marks.data, ring->marks.data + old,
                ring->marks.count * sizeof *ring->marks.data);
    }
    if (ring->marks.count && ingest->now_ns - ring->marks.data[ring->marks.count - 1].ns < between)
        return PROF_OK;
    struct ingest_mark *mark = prof_array_add(&ring->marks);
    return mark ? set_mark(ingest, mark) : ingest_no_memory(ingest, "marks of the ring");
}

/* A kept window has what the ring had; the recording itself ends with sums of all. */
enum prof_status ingest_ring_finish(struct prof_ingest *ingest)
{
    struct ingest_ring *ring = &ingest->ring;
    int64_t left = (int64_t)ring->left;
    if (!ring->ns)
        return PROF_OK;
    if (!ring->window) {
        PROF_TRY(sum_up_kernels(ingest, INT64_MAX, true));
        PROF_TRY(sum_up(ingest, NULL, true));
    }
    if (ring->cut.ns)
        PROF_TRY(leave(ingest, &ring->cut, true));
    return ingest_health_line(ingest, 0, PROF_HEALTH_capture_ring, NULL, &left,
                              ring->window ? "a copy kept of a recording with --ring: earlier rows "
                                             "are not in it"
                                           : "only the last part was kept (--ring): sums of the "
                                             "whole run are in the table ring_rollup");
}
