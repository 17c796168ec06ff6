/* One run's ingest: watch the spool directory, feed records to the parts that know them, commit
 * rows and reading position together, give consumed chunks back after the commit.
 *
 * A transaction that fails (a full disk) is rolled back and everything in memory thrown away; the
 * next step loads the last committed state and reads the same records again. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/base/regular.h"
#include "libprof/store/ingest_private.h"

#define BATCH_RECORDS 262144u

static const char *const sql_text[] = {
#define X(name, sql) sql,
    INGEST_SQL_MAP(X)
#undef X
};

enum prof_status ingest_sql_failed(struct prof_ingest *ingest, int code)
{
    if (!ingest->error.status)
        prof_store_fail_code(ingest->store, code, ingest->doing, &ingest->error);
    return ingest->error.status;
}

enum prof_status ingest_no_memory(struct prof_ingest *ingest, const char *what)
{
    if (!ingest->error.status)
        prof_fail(&ingest->error, PROF_NOMEM, "cannot %s %s: out of memory for %s", ingest->doing,
                  prof_store_path(ingest->store), what);
    return ingest->error.status;
}

enum prof_status ingest_check(struct prof_ingest *ingest, int code)
{
    return prof_sql_status(code) == PROF_OK ? PROF_OK : ingest_sql_failed(ingest, code);
}

enum prof_status ingest_query(struct prof_ingest *ingest, const char *sql, sqlite3_stmt **row)
{
    return ingest_check(ingest, sqlite3_prepare_v2(ingest->db, sql, -1, row, NULL));
}

enum prof_status ingest_query_end(struct prof_ingest *ingest, sqlite3_stmt *row,
                                  enum prof_status status)
{
    int code = sqlite3_finalize(row);
    return status != PROF_OK ? status : ingest_check(ingest, code);
}

enum prof_status ingest_query_number(struct prof_ingest *ingest, enum ingest_sql which,
                                     int64_t *number)
{
    sqlite3_stmt *sql = ingest->sql[which];
    PROF_TRY(ingest->error.status);
    int code = sqlite3_step(sql);
    *number = code == SQLITE_ROW ? sqlite3_column_int64(sql, 0) : 0;
    sqlite3_reset(sql);
    return ingest_check(ingest, code);
}

enum prof_status ingest_exec(struct prof_ingest *ingest, const char *sql)
{
    return ingest_check(ingest, sqlite3_exec(ingest->db, sql, NULL, NULL, NULL));
}

void ingest_bind_text(struct prof_ingest *ingest, sqlite3_stmt *sql, int at, const char *text)
{
    ingest_check(ingest, text ? sqlite3_bind_text(sql, at, text, -1, SQLITE_TRANSIENT)
                              : sqlite3_bind_null(sql, at));
}

static enum prof_status run_statement(struct prof_ingest *ingest, sqlite3_stmt *sql)
{
    /* SQLite may have ended the transaction: a row would be committed alone */
    if (ingest->error.status)
        return ingest->error.status;
    int code = sqlite3_step(sql);
    sqlite3_reset(sql);
    return code == SQLITE_DONE ? PROF_OK : ingest_sql_failed(ingest, code);
}

enum prof_status ingest_run(struct prof_ingest *ingest, enum ingest_sql which)
{
    return run_statement(ingest, ingest->sql[which]);
}

enum prof_status ingest_insert(struct prof_ingest *ingest, enum schema_table table)
{
    return run_statement(ingest, ingest->insert[table]);
}

static const bool is_definition[WIRE_TYPES] = {
#define X(name, definition, ...) definition,
    WIRE_TYPE_MAP(X)
#undef X
};

enum prof_status ingest_feed(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                             const struct wire_head *head)
{
    if (head->type == WIRE_NONE || head->type >= WIRE_TYPES)
        return PROF_OK; /* of a later version */
    return is_definition[head->type] ? ingest_definition(ingest, spool, head)
                                     : ingest_event(ingest, spool, tid, head);
}

/* ---- spools ---------------------------------------------------------------------------------- */

/* All but its counts, which the trust block has at the end. */
static void release_spool(struct ingest_spool *spool)
{
    for (size_t i = 0; i < spool->clocks.count; i++) {
        prof_clockmap_free(&spool->clocks.data[i].map);
        prof_array_free(&spool->clocks.data[i].recent);
    }
    for (size_t i = 0; i < spool->thread_list.count; i++) {
        prof_array_free(&spool->thread_list.data[i].stack);
        prof_array_free(&spool->thread_list.data[i].nodes);
    }
    prof_array_free(&spool->locals);
    prof_array_free(&spool->clocks);
    prof_map_free(&spool->stacks);
    prof_map_free(&spool->foreign_modules);
    ingest_python_free(spool);
    prof_map_free(&spool->threads);
    prof_array_free(&spool->thread_list);
    prof_array_free(&spool->partial);
    prof_map_free(&spool->pending);
    prof_array_free(&spool->pending_list);
    prof_array_free(&spool->pending_holes);
    prof_array_free(&spool->started);
    prof_map_free(&spool->started_at);
    prof_array_free(&spool->ended);
    prof_map_free(&spool->ended_at);
    prof_map_free(&spool->live);
    prof_array_free(&spool->live_list);
    prof_array_free(&spool->live_holes);
    prof_array_free(&spool->freed);
    prof_map_free(&spool->handles);
    prof_map_free(&spool->objects);
    prof_array_free(&spool->unclaimed);
    prof_map_free(&spool->unclaimed_at);
    prof_spool_close(spool->reader);
    spool->reader = NULL;
}

/* The reader is NULL when the file cannot be opened as a spool (yet). */
struct ingest_spool *ingest_spool_add(struct prof_ingest *ingest, const char *name, int64_t id,
                                      struct prof_error *err)
{
    struct ingest_spool *spool = calloc(1, sizeof *spool);
    struct ingest_spool **slot = spool ? prof_array_add(&ingest->spools) : NULL;
    PROF_FREED char *path = NULL;
    if (!slot || !prof_names_put(&ingest->spool_names, name, strlen(name), 1) ||
        asprintf(&path, "%s/%s", ingest->directory, name) < 0) {
        if (slot)
            ingest->spools.count--;
        free(spool);
        return NULL;
    }
    *slot = spool;
    snprintf(spool->name, sizeof spool->name, "%s", name);
    spool->id = id;
    prof_spool_open(path, !ingest->ring.window, &spool->reader, err);
    return spool;
}

static enum prof_status adopt_spool(struct prof_ingest *ingest, const char *name)
{
    /* A spool being born has no magic yet: it is looked at again at the next step. */
    char *path = NULL;
    struct prof_spool *probe = NULL;
    if (asprintf(&path, "%s/%s", ingest->directory, name) < 0)
        return ingest_no_memory(ingest, "the name of a spool");
    enum prof_status status = prof_spool_open(path, !ingest->ring.window, &probe, NULL);
    prof_spool_close(probe);
    free(path);
    if (status != PROF_OK)
        return PROF_OK;
    struct ingest_spool *spool =
        ingest_spool_add(ingest, name, ingest->last_spool + 1, &ingest->error);
    if (!spool)
        return ingest_no_memory(ingest, "a spool");
    if (!spool->reader)
        return ingest->error.status;
    ingest->last_spool++;
    /* It may have said that it is there after the table was read, but before it made its spool. */
    PROF_TRY(ingest_lifecycle_look(ingest));
    const struct spool_header *header = prof_spool_header(spool->reader);
    bool target = !(header->features & SPOOL_OF_SAMPLER);
    if (target && !(spool->process = ingest_process_of_spool(ingest, header, name)))
        return ingest->error.status;
    sqlite3_stmt *sql = ingest->sql[INGEST_SQL_SPOOL];
    ingest_bind(sql, 1, spool->id);
    ingest_bind_text(ingest, sql, 2, name);
    ingest_bind(sql, 3, spool->process);
    return ingest_run(ingest, INGEST_SQL_SPOOL);
}

enum prof_status ingest_folder_unreadable(struct prof_ingest *ingest)
{
    if (errno == ENOENT)
        return PROF_OK;
    return prof_fail_errno(&ingest->error, errno == ENOMEM ? PROF_NOMEM : PROF_IO, "cannot read %s",
                           ingest->directory);
}

static enum prof_status find_spools(struct prof_ingest *ingest)
{
    PROF_DIR_CLOSED DIR *directory = opendir(ingest->directory);
    enum prof_status status = PROF_OK;
    if (!directory)
        return ingest_folder_unreadable(ingest); /* else there may be spools */
    for (struct dirent *entry; !status && (entry = readdir(directory));) {
        size_t length = strlen(entry->d_name);
        if (length < sizeof((struct ingest_spool *)0)->name &&
            prof_ends_with(entry->d_name, SPOOL_SUFFIX) &&
            !prof_names_get(&ingest->spool_names, entry->d_name, length))
            status = adopt_spool(ingest, entry->d_name);
    }
    return status;
}

/* ---- transactions ---------------------------------------------------------------------------- */

enum prof_status ingest_rollup_flush(struct prof_ingest *ingest)
{
    return ingest_check(ingest, rollup_sums_flush(&ingest->rollup, ingest->insert[SCHEMA_rollup]));
}

enum prof_status ingest_begin(struct prof_ingest *ingest)
{
    return ingest_exec(ingest, "BEGIN IMMEDIATE");
}

static void unlink_spool(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    char *path = NULL;
    if (!ingest->ring.window && asprintf(&path, "%s/%s", ingest->directory, spool->name) >= 0)
        unlink(path);
    free(path);
    spool->unlinked = true;
}

/* Rows, cursors and waiting records in one transaction; then chunks and files may go. */
static enum prof_status commit(struct prof_ingest *ingest)
{
    PROF_TRY(ingest->error.status);
    PROF_TRY(ingest_batches_flush(ingest));
    PROF_TRY(ingest_rollup_flush(ingest));
    PROF_TRY(ingest_state_save(ingest));
    PROF_TRY(ingest_exec(ingest, "COMMIT"));
    ingest->batch_records = 0;
    for (size_t i = 0; i < ingest->spools.count; i++) {
        struct ingest_spool *spool = ingest->spools.data[i];
        if (spool->dirty && spool->reader)
            prof_spool_recycle(spool->reader);
        spool->dirty = false;
        if (spool->finished && !spool->unlinked) {
            release_spool(spool);
            unlink_spool(ingest, spool);
        }
    }
    return PROF_OK;
}

static enum prof_status save_cursor(struct prof_ingest *ingest, const struct ingest_spool *spool,
                                    const struct prof_spool_span *span, uint32_t tid)
{
    sqlite3_stmt *sql = ingest->sql[INGEST_SQL_CURSOR];
    ingest_bind(sql, 1, spool->id);
    ingest_bind(sql, 2, span->chunk);
    ingest_bind(sql, 3, span->generation);
    ingest_bind(sql, 4, span->to);
    ingest_bind(sql, 5, tid);
    return ingest_run(ingest, INGEST_SQL_CURSOR);
}

static enum prof_status read_span(struct prof_ingest *ingest, struct ingest_spool *spool,
                                  const struct prof_spool_span *span)
{
    _Alignas(8) static _Thread_local unsigned char buffer[SPOOL_CHUNK_BYTES];
    size_t bytes = prof_spool_load(spool->reader, span, buffer), at = 0;
    uint32_t tid = span->tid;
    bool damaged = false;
    for (const struct wire_head *head; (head = prof_spool_next(buffer, bytes, &at, &damaged));) {
        ingest->batch_records++;
        ingest->total++;
        /* Of no known type or in the wrong stream: damaged, or of a later version. */
        if (head->type == WIRE_NONE || head->type >= WIRE_TYPES ||
            is_definition[head->type] != span->definition) {
            spool->tally[TALLY_DAMAGED]++;
            continue;
        }
        if (head->type == WIRE_THREAD)
            tid = head->aux;
        PROF_TRY(ingest_feed(ingest, spool, tid, head));
    }
    spool->tally[TALLY_DAMAGED] += damaged;
    spool->dirty = true;
    prof_spool_advance(spool->reader, span, tid);
    return save_cursor(ingest, spool, span, tid);
}

static enum prof_status read_spool(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    const struct prof_spool_span *spans;
    size_t count;
    PROF_TRY(prof_spool_poll(spool->reader, &spans, &count, &ingest->error));
    for (size_t i = 0; i < count; i++) {
        PROF_TRY(read_span(ingest, spool, &spans[i]));
        if (ingest->batch_records >= BATCH_RECORDS) {
            PROF_TRY(commit(ingest));
            PROF_TRY(ingest_begin(ingest));
        }
    }
    return ingest_events_age(ingest, spool);
}

/* Nothing more will come: what waits is written as it is. */
static enum prof_status finish_spool(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    spool->dirty = true;
    spool->finished = true;
    const struct spool_header *header = prof_spool_header(spool->reader);
    spool->tally[TALLY_FETCHED_NS] =
        spool->tally[TALLY_CUDA_STARTED] ? header->fetched_ns : header->heartbeat_ns;
    spool->tally[TALLY_FINAL_NS] = header->final_ns;
    spool->tally[TALLY_DEATH_TID] = header->death_tid;
    sqlite3_stmt *sql = ingest->sql[INGEST_SQL_SPOOL_FINISHED];
    ingest_bind(sql, 1, spool->id);
    PROF_TRY(ingest_events_finish(ingest, spool));
    PROF_TRY(ingest_ranges_finish(ingest, spool));
    PROF_TRY(ingest_clocks_finish(ingest, spool));
    PROF_TRY(ingest_names_finish(ingest, spool));
    PROF_TRY(ingest_health_spool(ingest, spool));
    PROF_TRY(ingest_ring_end(ingest, spool));
    return ingest_run(ingest, INGEST_SQL_SPOOL_FINISHED);
}

static bool process_is_over(struct prof_ingest *ingest, const struct ingest_spool *spool)
{
    if (!spool->process)
        return ingest_sampler_is_over(spool);
    const struct ingest_process *process = ingest_process_find(ingest, spool->process);
    return process && (process->gone || (process->ended && process->how == LIFECYCLE_EXEC));
}

static enum prof_status step(struct prof_ingest *ingest, bool last)
{
    ingest->now_ns = prof_now_ns();
    PROF_TRY(ingest_begin(ingest));
    PROF_TRY(ingest_processes_step(ingest));
    PROF_TRY(find_spools(ingest));
    for (size_t i = 0; i < ingest->spools.count; i++) {
        struct ingest_spool *spool = ingest->spools.data[i];
        if (spool->finished || !spool->reader)
            continue;
        bool over = last || process_is_over(ingest, spool); /* known before what is read is final */
        if (spool->process && !over)
            PROF_TRY(ingest_modules(ingest, spool));
        if (spool->process)
            PROF_TRY(ingest_threads_look(ingest, spool, last));
        for (int k = 0; over && k < WIRE_COUNTS; k++)
            spool->counted[k] = prof_spool_count(spool->reader, (enum wire_count)k);
        PROF_TRY(read_spool(ingest, spool));
        PROF_TRY(over ? finish_spool(ingest, spool) : ingest_ring_look(ingest, spool));
    }
    PROF_TRY(ingest_ring_step(ingest));
    return commit(ingest);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void free_ingest_state(struct prof_ingest *ingest)
{
    ingest_processes_close(ingest);
    ingest_lifecycle_close(ingest);
    for (size_t i = 0; i < ingest->spools.count; i++) {
        release_spool(ingest->spools.data[i]);
        free(ingest->spools.data[i]);
    }
    prof_array_free(&ingest->spools);
    prof_names_free(&ingest->spool_names);
    prof_names_free(&ingest->strings);
    prof_names_free(&ingest->configs);
    prof_names_free(&ingest->thread_rows);
    rollup_sums_free(&ingest->rollup);
    ingest_stacks_free(ingest);
    ingest_images_free(ingest);
    ingest_ring_free(ingest);
    ingest->spool_names = ingest->strings = ingest->configs = (struct prof_names){0};
    ingest->processes_done = 0;
    ingest->batch_records = 0;
    for (int i = 0; i < SCHEMA_TABLES; i++)
        ingest->batches[i].count = 0;
}

static enum prof_status load_ingest_state(struct prof_ingest *ingest)
{
    PROF_TRY(ingest_lifecycle_open(ingest));
    /* Feeding what waits may write a row (a name's thread), so it is a transaction too. */
    PROF_TRY(ingest_begin(ingest));
    enum prof_status status = ingest_state_load(ingest);
    if (status == PROF_OK)
        status = ingest_exec(ingest, "COMMIT");
    if (status != PROF_OK)
        sqlite3_exec(ingest->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

/* Hand the failure to the caller. */
static enum prof_status give_error(struct prof_ingest *ingest, struct prof_error *err)
{
    enum prof_status status = prof_fail(err, ingest->error.status, "%s", ingest->error.message);
    ingest->error = (struct prof_error){0};
    ingest->doing = "write";
    return status;
}

enum prof_status ingest_roll_back(struct prof_ingest *ingest, struct prof_error *err)
{
    sqlite3_exec(ingest->db, "ROLLBACK", NULL, NULL, NULL);
    free_ingest_state(ingest);
    ingest->stale = true;
    return give_error(ingest, err);
}

/* ---- interface ------------------------------------------------------------------------------- */

enum prof_status ingest_statements_prepare(struct prof_ingest *ingest)
{
    for (int i = 0; i < INGEST_SQLS; i++)
        PROF_TRY(ingest_check(ingest, sqlite3_prepare_v3(ingest->db, sql_text[i], -1,
                                                         SQLITE_PREPARE_PERSISTENT, &ingest->sql[i],
                                                         NULL)));
    for (int i = 0; i < SCHEMA_TABLES; i++)
        PROF_TRY(
            ingest_check(ingest, prof_schema_insert(ingest->db, (enum schema_table)i, 1,
                                                    prof_tables[i].redefined, &ingest->insert[i])));
    return ingest_batches_prepare(ingest);
}

void ingest_statements_finalize(struct prof_ingest *ingest)
{
    ingest_batches_close(ingest);
    for (int i = 0; i < INGEST_SQLS; i++) {
        sqlite3_finalize(ingest->sql[i]);
        ingest->sql[i] = NULL;
    }
    for (int i = 0; i < SCHEMA_TABLES; i++) {
        sqlite3_finalize(ingest->insert[i]);
        ingest->insert[i] = NULL;
    }
}

/* Each call of the interface begins so. */
enum prof_status ingest_refresh(struct prof_ingest *ingest, struct prof_error *err)
{
    if (!ingest->stale)
        return PROF_OK;
    enum prof_status status = PROF_OK;
    if (!ingest->sql[0] && (status = ingest_statements_prepare(ingest)) != PROF_OK)
        ingest_statements_finalize(ingest);
    ingest->doing = "go on with";
    if (status == PROF_OK)
        status = load_ingest_state(ingest);
    ingest->doing = "write";
    if (status == PROF_OK) {
        ingest->stale = false;
        return PROF_OK;
    }
    free_ingest_state(ingest);
    return give_error(ingest, err);
}

static enum prof_status begin_capture(struct prof_ingest *ingest,
                                      const struct prof_ingest_about *about)
{
    ingest->doing = "start";
    PROF_TRY(ingest_capture_begin(ingest, about));
    PROF_TRY(ingest_state_create(ingest));
    PROF_TRY(prof_store_appear(ingest->store, &ingest->error));
    ingest->db = prof_store_db(ingest->store);
    PROF_TRY(ingest_statements_prepare(ingest));
    PROF_TRY(ingest_lifecycle_open(ingest));
    PROF_TRY(ingest_ring_options(ingest, about->ring));
    ingest->doing = "write";
    return PROF_OK;
}

static enum prof_status continue_capture(struct prof_ingest *ingest)
{
    ingest->doing = "go on with";
    PROF_TRY(ingest_state_check(ingest));
    PROF_TRY(ingest_statements_prepare(ingest));
    PROF_TRY(load_ingest_state(ingest));
    ingest->doing = "write";
    return PROF_OK;
}

/* NULL: out of memory. */
static struct prof_ingest *new_ingest(struct prof_store *store, const char *directory)
{
    struct prof_ingest *ingest = calloc(1, sizeof *ingest);
    if (!ingest || !(ingest->directory = strdup(directory))) {
        free(ingest);
        return NULL;
    }
    ingest->store = store;
    ingest->db = prof_store_db(store);
    ingest->lifecycle_fd = -1;
    return ingest;
}

static enum prof_status hand_out(struct prof_ingest *ingest, enum prof_status status,
                                 struct prof_ingest **out, struct prof_error *err)
{
    if (status == PROF_OK) {
        *out = ingest;
        return PROF_OK;
    }
    give_error(ingest, err);
    prof_ingest_close(ingest);
    return status;
}

enum prof_status prof_ingest_open(struct prof_store *store, const char *directory,
                                  const struct prof_ingest_about *about, struct prof_ingest **out,
                                  struct prof_error *err)
{
    *out = NULL;
    struct prof_ingest *ingest = new_ingest(store, directory);
    if (!ingest)
        return prof_out_of_memory(err);
    return hand_out(ingest, about ? begin_capture(ingest, about) : continue_capture(ingest), out,
                    err);
}

enum prof_status ingest_open_window(struct prof_store *store, const struct prof_ingest *of,
                                    struct prof_ingest **out, struct prof_error *err)
{
    *out = NULL;
    struct prof_ingest *ingest = new_ingest(store, of->directory);
    if (!ingest)
        return prof_out_of_memory(err);
    ingest->ring.window = true;
    ingest->ring.cut = of->ring.cut;
    return hand_out(ingest, continue_capture(ingest), out, err);
}

static uint64_t backlog_bytes(const struct prof_ingest *ingest)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < ingest->spools.count; i++) {
        const struct prof_spool_span *spans;
        size_t count;
        struct prof_spool *reader = ingest->spools.data[i]->reader;
        if (!reader || prof_spool_poll(reader, &spans, &count, NULL) != PROF_OK)
            continue;
        for (size_t k = 0; k < count; k++)
            bytes += spans[k].to - spans[k].from;
    }
    return bytes;
}

enum prof_status prof_ingest_step(struct prof_ingest *ingest, struct prof_ingest_progress *progress,
                                  struct prof_error *err)
{
    PROF_TRY(ingest_refresh(ingest, err));
    uint64_t before = ingest->total;
    if (step(ingest, false) != PROF_OK)
        return ingest_roll_back(ingest, err);
    if (progress)
        *progress = (struct prof_ingest_progress){
            .records = ingest->total - before,
            .total = ingest->total,
            .backlog_bytes = backlog_bytes(ingest),
            .alive = ingest_processes_alive(ingest),
            .spools = (uint32_t)ingest->spools.count,
        };
    return PROF_OK;
}

static enum prof_status write_reaped(struct prof_ingest *ingest, uint32_t pid, int wait_status)
{
    PROF_TRY(ingest_begin(ingest));
    PROF_TRY(ingest_processes_step(ingest));
    PROF_TRY(ingest_process_reaped(ingest, pid, wait_status));
    return commit(ingest);
}

enum prof_status prof_ingest_reaped(struct prof_ingest *ingest, uint32_t pid, int wait_status,
                                    struct prof_error *err)
{
    PROF_TRY(ingest_refresh(ingest, err));
    ingest->now_ns = prof_now_ns();
    ingest->primary_pid = pid;
    ingest->primary_status = wait_status;
    ingest->has_primary = true;
    return write_reaped(ingest, pid, wait_status) ? ingest_roll_back(ingest, err) : PROF_OK;
}

enum prof_status prof_ingest_note(struct prof_ingest *ingest, enum prof_health_code code,
                                  const char *item, const char *note, struct prof_error *err)
{
    PROF_TRY(ingest_refresh(ingest, err));
    return ingest_health_line(ingest, 0, code, item, NULL, note) ? ingest_roll_back(ingest, err)
                                                                 : PROF_OK;
}

static enum prof_status finish(struct prof_ingest *ingest, const char *state, bool abandon)
{
    /* Late words: a pidfd whose process still waits to be reaped. Half a second at most. */
    for (int i = 0; !abandon && i < 50 && ingest_processes_alive(ingest); i++) {
        PROF_TRY(step(ingest, false));
        usleep(10000);
    }
    PROF_TRY(step(ingest, true));
    PROF_TRY(ingest_begin(ingest));
    PROF_TRY(ingest_processes_finish(ingest));
    PROF_TRY(ingest_blocks_finish(ingest));
    PROF_TRY(ingest_graph_ends(ingest));
    PROF_TRY(ingest_health_finish(ingest));
    PROF_TRY(ingest_capture_end(ingest, state));
    PROF_TRY(ingest_batches_flush(ingest));
    PROF_TRY(ingest_rollup_flush(ingest));
    PROF_TRY(ingest_ring_finish(ingest));
    PROF_TRY(ingest_ranks_of_nccl(ingest));
    PROF_TRY(ingest->error.status);
    /* The means to go on are dropped in the transaction that closes the capture: a failure, or a
     * death in between, leaves one that can be finished once more, from the state before. */
    ingest_statements_finalize(ingest);
    ingest->doing = "finish";
    PROF_TRY(ingest_state_drop(ingest));
    return ingest_exec(ingest, "COMMIT");
}

enum prof_status prof_ingest_finish(struct prof_ingest *ingest, const char *state, bool abandon,
                                    struct prof_error *err)
{
    PROF_TRY(ingest_refresh(ingest, err));
    if (ingest_exec(ingest, "UPDATE capture SET state='closing'") != PROF_OK)
        return give_error(ingest, err);
    return finish(ingest, state, abandon) ? ingest_roll_back(ingest, err) : PROF_OK;
}

void prof_ingest_close(struct prof_ingest *ingest)
{
    if (!ingest)
        return;
    free_ingest_state(ingest);
    ingest_statements_finalize(ingest);
    ingest_filter_free(ingest);
    free(ingest->directory);
    free(ingest->ring.iteration);
    free(ingest);
}
