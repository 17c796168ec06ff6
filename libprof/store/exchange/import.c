/* perfkit import: which kind of file it is, where its rows wait, and what is said of it. All kinds
 * go the same way: a trace and a rocpd file are first laid down in the tables of an Nsight Systems
 * export, which can be sorted and joined in bounded memory, and those are read into the capture
 * through the ingest. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/base/regular.h"
#include "libprof/store/exchange/nsys.h"
#include "libprof/store/exchange/trace.h"
#include "libprof/store/schema.h"
#include "libprof/store/store.h"

enum shape { SHAPE_NSYS, SHAPE_TRACE, SHAPE_ROCPD };

struct import {
    const char *path, *output;
    const struct prof_exchange_options *options;
    struct prof_exchange_result *result;
    struct prof_error *err;
    char *stage, *temporary; /* names of files that go again */
    sqlite3 *source;
    struct prof_store *store;
    struct exchange_watch watch;
    struct feed feed;
};

/* ---- what it is ------------------------------------------------------------------------------ */

/* Files of other tools that cannot be read, by the end of their name, and what can. */
static const struct {
    const char *suffix, *what;
} others[] = {
    {".nsys-rep",
     "a report of Nsight Systems: `nsys export --type sqlite` makes a file that can be read"},
    {".qdrep",
     "a report of Nsight Systems: `nsys export --type sqlite` makes a file that can be read"},
    {".ncu-rep", "a report of Nsight Compute, which profiles single kernels"},
    {".xplane.pb",
     "an XPlane profile of JAX or TensorFlow: the *.trace.json.gz beside it can be read"},
    {".pftrace", "a Perfetto trace: a Chrome trace (.json) or, of rocprofv3, `--output-format "
                 "rocpd` can be read"},
    {".perfetto-trace", "a Perfetto trace: a Chrome trace (.json) can be read"},
    {".otf2", "an OTF2 trace: of rocprofv3, `--output-format rocpd` can be read"},
    {".csv", "a table: of rocprofv3, `--output-format rocpd` can be read"},
    {".parquet", "a Parquet file: perfkit writes such, and does not read them"},
};

static enum prof_status fail_unknown(struct import *im, bool empty)
{
    for (size_t i = 0; !empty && i < sizeof others / sizeof *others; i++) {
        if (prof_ends_with(im->path, others[i].suffix))
            return prof_fail(im->err, PROF_FORMAT, "%s is %s", im->path, others[i].what);
    }
    return prof_fail(im->err, PROF_FORMAT,
                     "%s is neither an SQLite export of Nsight Systems, a rocpd file of rocprofv3 "
                     "nor a Chrome trace (.json, .json.gz)%s",
                     im->path, empty ? ": it is empty" : "");
}

static enum prof_status sniff(struct import *im, enum shape *shape)
{
    struct capture_head read;
    PROF_TRY(capture_read_head(im->path, &read, im->err));
    const unsigned char *head = read.bytes;
    size_t text = !memcmp(head, "\xef\xbb\xbf", 3) ? 3 : 0;
    while (text < read.got && strchr(" \t\r\n", head[text]) && head[text])
        text++;
    *shape = SHAPE_TRACE;
    if (head[0] == 0x1f && head[1] == 0x8b)
        return PROF_OK;
    if (text < read.got && (head[text] == '{' || head[text] == '['))
        return PROF_OK;
    *shape = SHAPE_NSYS;
    if (!capture_head_is_sqlite(&read))
        return fail_unknown(im, !read.got);
    return capture_head_application(&read) == PROF_APPLICATION_ID
               ? prof_fail(im->err, PROF_FORMAT,
                           "%s is a capture of perfkit already: give it to perfkit report",
                           im->path)
               : PROF_OK;
}

/* ---- the source ------------------------------------------------------------------------------ */

/* Attached, so that sorting happens in temporary files and views can be made beside it. */
static enum prof_status attach(struct import *im, const char *file)
{
    PROF_FINALIZED sqlite3_stmt *attach = NULL;
    PROF_SQL_FREED char *uri = capture_uri(file, "mode=ro");
    enum prof_status status = PROF_OK;
    if (!uri)
        return prof_out_of_memory(im->err);
    if (sqlite3_open_v2(":memory:", &im->source,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL) ||
        sqlite3_exec(im->source,
                     "PRAGMA temp_store=FILE; PRAGMA cache_size=-16000; PRAGMA trusted_schema=OFF",
                     NULL, NULL, NULL) ||
        sqlite3_prepare_v2(im->source, "ATTACH ?1 AS src", -1, &attach, NULL) ||
        sqlite3_bind_text(attach, 1, uri, -1, SQLITE_STATIC) || sqlite3_step(attach) != SQLITE_DONE)
        status = exchange_sql_fail(im->source, "read", im->path, im->err);
    im->watch = (struct exchange_watch){im->options, im->result};
    if (!status)
        exchange_watch(im->source, &im->watch);
    return status;
}

static enum prof_status open_stage(struct import *im, int flags, sqlite3 **stage)
{
    PROF_FREED char *name = NULL;
    if (asprintf(&name, "%s.stage", im->output) < 0)
        return prof_out_of_memory(im->err);
    PROF_TRY(exchange_temporary(name, &im->stage, im->err));
    flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    return sqlite3_open_v2(im->stage, stage, flags, NULL)
               ? exchange_sql_fail(*stage, "write", im->stage, im->err)
               : PROF_OK;
}

static enum prof_status stage_trace(struct import *im)
{
    sqlite3 *stage = NULL;
    enum prof_status status = open_stage(im, 0, &stage);
    status = status ?: trace_stage(im->path, stage, im->options, im->err);
    if (sqlite3_close(stage) != SQLITE_OK && !status)
        status = prof_fail(im->err, PROF_IO, "cannot write %s", im->stage);
    return status;
}

/* `src` becomes what was laid down. */
static enum prof_status stage_rocpd(struct import *im)
{
    sqlite3 *stage = NULL, *source = im->source;
    enum prof_status status = open_stage(im, SQLITE_OPEN_URI, &stage);
    PROF_SQL_FREED char *uri = status ? NULL : capture_uri(im->path, "mode=ro");
    PROF_SQL_FREED char *sql =
        sqlite3_mprintf("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA "
                        "trusted_schema=OFF; ATTACH %Q AS src; BEGIN",
                        uri ? uri : "");
    im->source = NULL;
    if (!status && (!uri || !sql))
        status = prof_out_of_memory(im->err);
    if (!status && sqlite3_exec(stage, sql, NULL, NULL, NULL))
        status = exchange_sql_fail(stage, "read", im->path, im->err);
    if (!status)
        exchange_watch(stage, &im->watch);
    status = status ?: rocpd_stage(stage, im->path, im->err);
    if (!status && sqlite3_exec(stage, "COMMIT", NULL, NULL, NULL))
        status = exchange_sql_fail(stage, "write", im->stage, im->err);
    sqlite3_close(stage);
    sqlite3_close(source);
    return status ? status : attach(im, im->stage);
}

/* ---- what is said of it ---------------------------------------------------------------------- */

static enum prof_status note_import(struct import *im, const char *item, const char *text)
{
    bool lost = !strcmp(item, prof_health[PROF_HEALTH_import_lost].item);
    if (foreign_health(im->feed.ingest, lost ? PROF_HEALTH_import_lost : PROF_HEALTH_import_note,
                       item, text) != PROF_OK)
        return foreign_fail(im->feed.ingest, im->err);
    return exchange_note(im->result, "%s", text) ? PROF_OK : prof_out_of_memory(im->err);
}

static enum prof_status note_importf(struct import *im, const char *item, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static enum prof_status note_importf(struct import *im, const char *item, const char *format, ...)
{
    PROF_FREED char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0)
        return prof_out_of_memory(im->err);
    return note_import(im, item, text);
}

static enum prof_status note_source(struct import *im)
{
    char product[64], version[64], schema[32];
    nsys_meta(im->source, "EXPORT_PRODUCT_NAME", product, sizeof product);
    nsys_meta(im->source, "EXPORT_PRODUCT_VERSION", version, sizeof version);
    nsys_meta(im->source, "EXPORT_SCHEMA_VERSION", schema, sizeof schema);
    long minor = 0;
    sscanf(schema, "%*d.%ld", &minor);
    PROF_TRY(note_importf(im, "source", "imported from %s%s%s%s%s: %s",
                          *product ? product : "an export of Nsight Systems", *version ? " " : "",
                          version, *schema ? ", schema " : "", schema, im->path));
    if (*schema && (minor < 20 || minor > 28))
        PROF_TRY(note_importf(
            im, "schema",
            "schema %s is not one of those that were tried (3.20 to 3.28): columns are read "
            "by name",
            schema));
    return note_import(im, "conservation",
                       "the source does not count calls: whether all were recorded is not known");
}

/* Tables with events of which a capture has no kind. */
static const struct {
    const char *table, *what;
} unread[] = {
    {"OSRT_API", "calls of the operating system"},
    {"SCHED_EVENTS", "switches of threads"},
    {"COMPOSITE_EVENTS", "samples of the processor"},
    {"CUDNN_EVENTS", "calls of cuDNN"},
    {"CUBLAS_EVENTS", "calls of cuBLAS"},
    {"GPU_METRICS", "samples of hardware counters"},
    {"GENERIC_EVENTS", "generic events"},
    {"MPI_P2P_EVENTS", "MPI messages"},
    {"MPI_COLLECTIVES_EVENTS", "MPI collectives"},
    {"CUDA_GRAPH_EVENTS", "creations of graphs"},
    {"CUDA_HOST_CALLBACK", "host callbacks"},
};

static enum prof_status note_unread_tables(struct import *im)
{
    enum prof_status status = PROF_OK;
    for (size_t i = 0; !status && i < sizeof unread / sizeof *unread; i++) {
        int64_t rows =
            nsys_has_table(im->source, "src", unread[i].table)
                ? prof_sql_number(im->source, 0, "SELECT count(*) FROM src.%s", unread[i].table)
                : 0;
        if (rows)
            status = note_importf(im, "left out", "left out: %lld %s (%s)", (long long)rows,
                                  unread[i].what, unread[i].table);
    }
    return status;
}

static bool is_text(sqlite3_stmt *row, int column, const char *text)
{
    const char *value = (const char *)sqlite3_column_text(row, column);
    return value && !strcmp(value, text);
}

/* What the source said of itself: warnings of nsys, and what the trace reader did not understand.
 */
static enum prof_status note_source_messages(struct import *im)
{
    static const char sql[] =
        "SELECT 'source says: ' || text, NULL FROM (SELECT DISTINCT text FROM n_DIAGNOSTIC_EVENT "
        "WHERE severity IN (2, 3) AND text NOT NULL LIMIT 10) UNION ALL SELECT value, name FROM "
        "(SELECT value, name FROM n_META_DATA_EXPORT WHERE name IN ('PERFKIT_NOTE', "
        "'PERFKIT_LOSS') AND value NOT NULL LIMIT 40)";
    PROF_FINALIZED sqlite3_stmt *row = NULL;
    enum prof_status status = PROF_OK;
    if (sqlite3_prepare_v2(im->source, sql, -1, &row, NULL))
        return PROF_OK;
    while (!status && sqlite3_step(row) == SQLITE_ROW)
        status = note_import(im, is_text(row, 1, "PERFKIT_LOSS") ? "lost" : "limits",
                             (const char *)sqlite3_column_text(row, 0));
    return status;
}

static enum prof_status note_all_limits(struct import *im)
{
    struct feed *feed = &im->feed;
    PROF_TRY(note_source(im));
    PROF_TRY(note_unread_tables(im));
    PROF_TRY(note_source_messages(im));
    if (feed->backwards)
        PROF_TRY(note_importf(im, "backwards",
                              "%llu events end before they begin: their ends are not known",
                              (unsigned long long)feed->backwards));
    if (feed->unnamed)
        PROF_TRY(note_importf(im, "unnamed", "%llu numbers of names are not in StringIds",
                              (unsigned long long)feed->unnamed));
    return PROF_OK;
}

/* ---- the capture ----------------------------------------------------------------------------- */

/* One text of the source; NULL when it does not say. Free it. */
static char *query_text(struct import *im, const char *sql)
{
    PROF_FINALIZED sqlite3_stmt *row = NULL;
    char *text = NULL;
    if (!sqlite3_prepare_v2(im->source, sql, -1, &row, NULL) && sqlite3_step(row) == SQLITE_ROW &&
        sqlite3_column_text(row, 0))
        text = strdup((const char *)sqlite3_column_text(row, 0));
    return text;
}

#define OF_ENVIRONMENT(name)                                                                       \
    "SELECT value FROM n_TARGET_INFO_SYSTEM_ENV WHERE name = '" name "' AND value NOT NULL"
#define OF_CAPTURE(name)                                                                           \
    "SELECT value FROM n_META_DATA_CAPTURE WHERE name = '" name "' AND value NOT NULL"

static enum prof_status open_import_ingest(struct import *im)
{
    struct feed *feed = &im->feed;
    PROF_FREED char *command = query_text(
        im,
        OF_CAPTURE("PERFKIT_COMMAND") " UNION ALL SELECT name FROM n_PROCESSES WHERE globalPid IN "
                                      "(SELECT globalTid & " NSYS_GLOBAL_PID_MASK
                                      " FROM n_RUNTIME LIMIT 1) LIMIT 1");
    PROF_FREED char *host = query_text(
        im, OF_CAPTURE("PERFKIT_HOST") " UNION ALL " OF_ENVIRONMENT("Hostname") " LIMIT 1");
    PROF_FREED char *cpu = query_text(
        im, OF_CAPTURE("PERFKIT_CPU") " UNION ALL " OF_ENVIRONMENT("CpuDescription") " LIMIT 1");
    PROF_FREED char *kernel =
        query_text(im, OF_CAPTURE("PERFKIT_KERNEL") " UNION ALL " OF_ENVIRONMENT(
                           "SoftwareReleaseVersion") " LIMIT 1");
    PROF_FREED char *directory = query_text(im, OF_CAPTURE("PERFKIT_DIRECTORY") " LIMIT 1");
    int64_t epoch = prof_sql_number(
        im->source, 0, "SELECT utcEpochNs FROM n_TARGET_INFO_SESSION_START_TIME LIMIT 1");
    struct foreign_about about = {
        .command = command,
        .host = host,
        .cpu = cpu,
        .kernel = kernel,
        .directory = directory,
        .cpu_count = prof_sql_number(
            im->source, 0,
            OF_CAPTURE("PERFKIT_CPU_COUNT") " UNION ALL " OF_ENVIRONMENT("CpuCores") " LIMIT 1"),
        .start_realtime_ns = epoch > 0 && epoch < FEED_FARTHEST_NS ? epoch + feed->zero_ns : 0,
    };
    return foreign_open(im->store, &about, &feed->ingest, im->err);
}

/* perfkit's own export keeps its zero and its length, so that it comes back as it was. One of
 * another tool begins with its first event: a session may have waited long before. */
static enum prof_status find_times(struct import *im, int64_t *duration)
{
    char product[16];
    nsys_meta(im->source, "EXPORT_PRODUCT_NAME", product, sizeof product);
    *duration = -1;
    enum prof_status status = nsys_first_time(im->source, im->path, &im->feed.zero_ns, im->err);
    if (!status && !strcmp(product, NSYS_PRODUCT)) {
        int64_t length =
            prof_sql_number(im->source, 0, "SELECT duration FROM n_ANALYSIS_DETAILS LIMIT 1");
        im->feed.zero_ns = im->feed.zero_ns < 0 ? im->feed.zero_ns : 0;
        *duration = length > 0 ? length : -1;
    }
    im->feed.end_ns = im->feed.zero_ns;
    return status;
}

static enum prof_status import_events(struct import *im)
{
    struct feed *feed = &im->feed;
    int64_t duration;
    enum prof_status status = nsys_views_make(im->source, "src", im->path, im->err);
    status = status ?: find_times(im, &duration);
    status = status ?: open_import_ingest(im);
    status = status ?: feed_open(feed);
    status = status ?: nsys_import_events(feed);
    status = status ?: note_all_limits(im);
    if (!status)
        status = foreign_finish(feed->ingest,
                                duration >= 0 ? duration : feed->end_ns - feed->zero_ns, im->err);
    feed_close(feed);
    prof_ingest_close(feed->ingest);
    return status;
}

static enum prof_status make_import(struct import *im, enum shape shape)
{
    enum prof_status status = shape == SHAPE_TRACE ? stage_trace(im) : PROF_OK;
    if (!status)
        status = attach(im, shape == SHAPE_TRACE ? im->stage : im->path);
    if (!status && shape == SHAPE_NSYS && nsys_has_table(im->source, "src", "rocpd_op"))
        status = prof_fail(im->err, PROF_FORMAT,
                           "%s is a file of rocmProfileData (rpd), which is not read: rocprofv3 "
                           "writes rocpd, which can be",
                           im->path);
    if (!status && shape == SHAPE_NSYS && rocpd_is(im->source, "src")) {
        shape = SHAPE_ROCPD;
        status = stage_rocpd(im);
    }
    status = status ?: exchange_temporary(im->output, &im->temporary, im->err);
    PROF_TRY(status ?: prof_store_create(im->temporary, true, &im->store, im->err));
    im->feed = (struct feed){.source = im->source,
                             .path = im->path,
                             .options = im->options,
                             .result = im->result,
                             .err = im->err};
    status = import_events(im);
    if (!status && shape == SHAPE_ROCPD &&
        sqlite3_exec(prof_store_db(im->store), "UPDATE device SET api = 'hip'", NULL, NULL, NULL))
        status = exchange_sql_fail(prof_store_db(im->store), "write", im->output, im->err);
    status = status ?: prof_store_publish(im->store, im->err);
    prof_store_close(im->store);
    im->store = NULL;
    return status ? status
                  : exchange_put(im->temporary, im->output, im->options->overwrite, im->err);
}

static void discard(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; path && i < sizeof suffixes / sizeof *suffixes; i++) {
        char name[PATH_MAX];
        int length = snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        if (length > 0 && (size_t)length < sizeof name)
            unlink(name);
    }
}

enum prof_status prof_import(const char *path, const char *output,
                             const struct prof_exchange_options *options,
                             struct prof_exchange_result *result, struct prof_error *err)
{
    struct import im = {
        .path = path, .output = output, .options = options, .result = result, .err = err};
    enum shape shape = SHAPE_NSYS;
    *result = (struct prof_exchange_result){0};
    enum prof_status status = sniff(&im, &shape);
    status = status ?: exchange_output_free(output, path, options->overwrite, err);
    status = status ?: make_import(&im, shape);
    sqlite3_close(im.source);
    if (status)
        discard(im.temporary);
    discard(im.stage);
    free(im.temporary);
    free(im.stage);
    if (status)
        prof_exchange_result_free(result);
    return status;
}
