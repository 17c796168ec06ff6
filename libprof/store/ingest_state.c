/* What must outlive a killed perfkit, kept in tables of its own in the capture file and written in
 * the same transactions as the rows: how far each chunk was read, what local ids mean, and the
 * records that still wait for their other half, in the form in which they came. Loading feeds those
 * through the ordinary code. The tables are dropped when the capture is finished. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store/ingest_private.h"

static const char create_sql[] =
    "CREATE TABLE ingest_spool(id INTEGER PRIMARY KEY, name TEXT, process INTEGER,"
    " finished INTEGER);"
    "CREATE TABLE ingest_cursor(spool INTEGER, chunk INTEGER, generation INTEGER, offset INTEGER,"
    " tid INTEGER, PRIMARY KEY(spool,chunk)) WITHOUT ROWID;"
    "CREATE TABLE ingest_map(spool INTEGER, local INTEGER, kind INTEGER, global INTEGER,"
    " extra INTEGER);"
    "CREATE TABLE ingest_state(key TEXT PRIMARY KEY, value) WITHOUT ROWID;";

static const char drop_sql[] = "DROP TABLE ingest_spool; DROP TABLE ingest_cursor;"
                               "DROP TABLE ingest_map; DROP TABLE ingest_state;";

/* Of what is kept here. A capture of before it was said has none: it reads as this one. Numbers of
 * wire types and tallies never move, so only what an older perfkit would misread counts it up. */
#define STATE_VERSION 1

#define MAP_PROCESS 255u /* ingest_map.kind: local = lifecycle entry, global = process.id */

enum prof_status ingest_state_create(struct prof_ingest *ingest)
{
    char version[96];
    snprintf(version, sizeof version, "INSERT INTO ingest_state VALUES('version', %d)",
             STATE_VERSION);
    PROF_TRY(ingest_exec(ingest, create_sql));
    return ingest_exec(ingest, version);
}

enum prof_status ingest_state_drop(struct prof_ingest *ingest)
{
    return ingest_exec(ingest, drop_sql);
}

/* ---- saving ---------------------------------------------------------------------------------- */

struct bytes {
    unsigned char *data;
    size_t count, capacity;
};

/* One waiting record: the thread it came from, whether it is of the definition stream, its
 * bytes. */
struct saved_head {
    uint32_t tid, definition;
};

static bool put_record(struct bytes *out, uint32_t tid, bool definition, const void *record)
{
    const struct wire_head *head = record;
    struct saved_head saved = {tid, definition};
    return prof_array_append(out, &saved, sizeof saved) &&
           prof_array_append(out, record, head->size);
}

static bool put_partial_name(struct bytes *out, const struct ingest_spool *spool)
{
    _Alignas(8) unsigned char buffer[WIRE_MAX_RECORD];
    for (size_t at = 0; spool->partial_id && at < spool->partial.count;) {
        size_t part = spool->partial.count - at;
        if (part > WIRE_STRING_BYTES)
            part = WIRE_STRING_BYTES;
        struct wire_string *string = (struct wire_string *)(void *)buffer;
        *string =
            (struct wire_string){.head = {(uint16_t)((sizeof *string + part + 7) & ~(size_t)7),
                                          WIRE_STRING, WIRE_STRING_MORE, spool->partial_id},
                                 .length = (uint32_t)part};
        memcpy(string->text, spool->partial.data + at, part);
        if (!put_record(out, 0, true, string))
            return false;
        at += part;
    }
    return true;
}

static bool put_open_range(struct bytes *out, const struct ingest_open_range *open)
{
    bool ok = put_record(out, open->tid, false, &open->range) &&
              (!open->has_work || put_record(out, open->tid, false, &open->work));
    for (unsigned i = 0; ok && i < open->field_count; i++) {
        struct wire_field field = ingest_field_record(open, i);
        ok = put_record(out, open->tid, false, &field);
    }
    return ok;
}

/* With what its handle meant when it was given; what it means now is loaded after it. */
static bool put_name(struct bytes *out, const struct ingest_unclaimed *unclaimed)
{
    struct wire_handle handle;
    return (!ingest_handle_of(unclaimed, &handle) || put_record(out, 0, true, &handle)) &&
           put_record(out, 0, true, &unclaimed->name);
}

static bool put_waiting(struct bytes *out, const struct ingest_spool *spool)
{
    bool ok = put_partial_name(out, spool);
    for (size_t i = 0; ok && i < spool->clocks.count; i++) {
        const struct ingest_clock *clock = &spool->clocks.data[i];
        for (size_t k = 0; ok && k < clock->recent.count; k++)
            ok = put_record(out, 0, true, &clock->recent.data[k]);
    }
    for (size_t i = 0; ok && i < spool->unclaimed.count; i++)
        ok = put_name(out, &spool->unclaimed.data[i]);
    for (size_t i = 0; ok && i < spool->pending_list.count; i++) {
        const struct ingest_pending *pending = &spool->pending_list.data[i];
        if (pending->has_call)
            ok = put_record(out, pending->tid, false, &pending->call);
        if (ok && pending->has_command)
            ok = put_record(out, pending->tid, false, &pending->command);
        if (ok && pending->has_done)
            ok = put_record(out, pending->tid, false, &pending->done);
    }
    for (size_t t = 0; ok && t < spool->thread_list.count; t++) {
        const struct ingest_thread *thread = &spool->thread_list.data[t];
        for (size_t i = 0; ok && i < thread->stack.count; i++)
            ok = put_open_range(out, &thread->stack.data[i]);
        for (size_t i = 0; ok && i < thread->nodes.count; i++)
            ok = thread->nodes.data[i].taken ||
                 put_record(out, thread->tid, false, &thread->nodes.data[i].node);
    }
    for (size_t i = 0; ok && i < spool->started.count; i++)
        ok = put_open_range(out, &spool->started.data[i]);
    for (size_t i = 0; ok && i < spool->ended.count; i++)
        ok = put_record(out, spool->ended.data[i].tid, false, &spool->ended.data[i].end);
    for (size_t i = 0; ok && i < spool->freed.count; i++)
        ok = put_record(out, spool->freed.data[i].tid, false, &spool->freed.data[i].free);
    return ok;
}

static enum prof_status save_value(struct prof_ingest *ingest, const char *key, int64_t number,
                                   const void *blob, size_t bytes)
{
    sqlite3_stmt *sql = ingest->sql[INGEST_SQL_STATE];
    ingest_bind_text(ingest, sql, 1, key);
    if (blob)
        ingest_check(ingest, sqlite3_bind_blob64(sql, 2, blob, bytes, SQLITE_STATIC));
    else
        ingest_bind(sql, 2, number);
    return ingest_run(ingest, INGEST_SQL_STATE);
}

static enum prof_status save_spool(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    char key[48];
    struct bytes waiting = {0};
    snprintf(key, sizeof key, "waiting %lld", (long long)spool->id);
    enum prof_status status =
        ingest_memory(ingest, put_waiting(&waiting, spool), "records that wait");
    if (!status)
        status = save_value(ingest, key, 0, waiting.data ? waiting.data : (const void *)"",
                            waiting.count);
    prof_array_free(&waiting);
    PROF_TRY(status);
    snprintf(key, sizeof key, "tally %lld", (long long)spool->id);
    return save_value(ingest, key, 0, spool->tally, sizeof spool->tally);
}

enum prof_status ingest_state_save(struct prof_ingest *ingest)
{
    PROF_TRY(save_value(ingest, "lifecycle_next", ingest->lifecycle_next, NULL, 0));
    if (ingest->ring.ns) {
        PROF_TRY(save_value(ingest, "ring_ns", (int64_t)ingest->ring.ns, NULL, 0));
        PROF_TRY(save_value(ingest, "ring_left", (int64_t)ingest->ring.left, NULL, 0));
        PROF_TRY(save_value(ingest, "ring_windows", ingest->ring.windows, NULL, 0));
    }
    if (ingest->has_primary) {
        PROF_TRY(save_value(ingest, "primary_pid", ingest->primary_pid, NULL, 0));
        PROF_TRY(save_value(ingest, "primary_status", ingest->primary_status, NULL, 0));
    }
    for (size_t i = 0; i < ingest->spools.count; i++) {
        if (ingest->spools.data[i]->dirty)
            PROF_TRY(save_spool(ingest, ingest->spools.data[i]));
    }
    return PROF_OK;
}

enum prof_status ingest_state_process(struct prof_ingest *ingest, uint32_t entry, int64_t row)
{
    return ingest_map_row(ingest, 0, entry, MAP_PROCESS, row, 0);
}

/* ---- loading --------------------------------------------------------------------------------- */

/* 0 where there is no row, or it failed. */
static int64_t query_state_number(struct prof_ingest *ingest, const char *sql)
{
    sqlite3_stmt *row;
    int64_t value = 0;
    if (ingest->error.status || ingest_query(ingest, sql, &row) != PROF_OK)
        return 0;
    if (sqlite3_step(row) == SQLITE_ROW)
        value = sqlite3_column_int64(row, 0);
    ingest_query_end(ingest, row, PROF_OK);
    return value;
}

static enum prof_status load_state_strings(struct prof_ingest *ingest)
{
    sqlite3_stmt *row;
    enum prof_status status = ingest_query(ingest, "SELECT id,value FROM string ORDER BY id", &row);
    while (!status && sqlite3_step(row) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(row, 1);
        bool put =
            prof_names_put(&ingest->strings, text ? text : "", (size_t)sqlite3_column_bytes(row, 1),
                           (uint32_t)sqlite3_column_int64(row, 0));
        status = ingest_memory(ingest, put, "texts");
    }
    return ingest_query_end(ingest, row, status);
}

static enum prof_status load_processes(struct prof_ingest *ingest)
{
    sqlite3_stmt *row;
    enum prof_status status =
        ingest_query(ingest,
                     "SELECT p.id,p.pid,p.start,p.end_reason,p.exit_status,p.exit_signal,p.spool,"
                     "coalesce(m.local,4294967295),p.end FROM process p LEFT JOIN ingest_map m "
                     "ON m.kind=255 AND m.global=p.id ORDER BY p.id",
                     &row);
    while (!status && sqlite3_step(row) == SQLITE_ROW) {
        struct ingest_process *process = prof_array_add(&ingest->processes);
        status = ingest_memory(ingest, process != NULL, "processes");
        if (process)
            ingest_process_restore(ingest, process, row);
    }
    return ingest_query_end(ingest, row, status);
}

/* A query whose ?1 is `parameter`. */
static enum prof_status query_of(struct prof_ingest *ingest, const char *sql, int64_t parameter,
                                 sqlite3_stmt **row)
{
    PROF_TRY(ingest_query(ingest, sql, row));
    sqlite3_bind_int64(*row, 1, parameter);
    return PROF_OK;
}

static enum prof_status load_locals(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    sqlite3_stmt *sql;
    enum prof_status status = query_of(ingest,
                                       "SELECT local,kind,global,extra FROM ingest_map WHERE "
                                       "spool=?1 AND kind!=?2 ORDER BY rowid",
                                       spool->id, &sql);
    sqlite3_bind_int64(sql, 2, WIRE_HANDLE); /* ingest_name.c */
    while (!status && sqlite3_step(sql) == SQLITE_ROW) {
        uint32_t local = (uint32_t)sqlite3_column_int64(sql, 0);
        uint32_t kind = (uint32_t)sqlite3_column_int64(sql, 1);
        int64_t global = sqlite3_column_int64(sql, 2);
        bool put = kind == WIRE_STACK /* which have numbers of their own */
                       ? prof_map_put(&spool->stacks, local, (uint64_t)global)
                       : ingest_set_local(spool, local, kind, global,
                                          (uint32_t)sqlite3_column_int64(sql, 3));
        status = ingest_memory(ingest, put, "numbers of definitions");
    }
    return ingest_query_end(ingest, sql, status);
}

static enum prof_status load_threads(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    sqlite3_stmt *sql;
    enum prof_status status = query_of(
        ingest, "SELECT id,tid,name NOT NULL FROM thread WHERE process=?1", spool->process, &sql);
    while (!status && sqlite3_step(sql) == SQLITE_ROW) {
        struct ingest_thread *thread = prof_array_add(&spool->thread_list);
        uint32_t tid = (uint32_t)sqlite3_column_int64(sql, 1);
        bool put = thread && prof_map_put(&spool->threads, tid, spool->thread_list.count - 1);
        status = ingest_memory(ingest, put, "threads");
        if (!put)
            break;
        *thread = (struct ingest_thread){.tid = tid,
                                         .row = sqlite3_column_int64(sql, 0),
                                         .named = sqlite3_column_int(sql, 2) != 0,
                                         .looked = 1};
    }
    return ingest_query_end(ingest, sql, status);
}

static enum prof_status load_live(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    sqlite3_stmt *sql;
    enum prof_status status = query_of(ingest,
                                       "SELECT id,start,native,source FROM allocation WHERE "
                                       "process=?1 AND end IS NULL ORDER BY start",
                                       spool->process, &sql);
    while (!status && sqlite3_step(sql) == SQLITE_ROW) {
        bool put = ingest_live_add(
            spool, (uint32_t)sqlite3_column_int64(sql, 3), (uint64_t)sqlite3_column_int64(sql, 2),
            ingest->zero_ns + (uint64_t)sqlite3_column_int64(sql, 1), sqlite3_column_int64(sql, 0));
        status = ingest_memory(ingest, put, "allocations");
    }
    return ingest_query_end(ingest, sql, status);
}

static enum prof_status load_cursors(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    sqlite3_stmt *sql;
    PROF_TRY(query_of(ingest,
                      "SELECT chunk,generation,offset,tid FROM ingest_cursor WHERE spool=?1",
                      spool->id, &sql));
    while (sqlite3_step(sql) == SQLITE_ROW) {
        struct prof_spool_cursor cursor = {
            (uint32_t)sqlite3_column_int64(sql, 0), (uint32_t)sqlite3_column_int64(sql, 1),
            (uint32_t)sqlite3_column_int64(sql, 2), (uint32_t)sqlite3_column_int64(sql, 3)};
        prof_spool_restore(spool->reader, &cursor);
    }
    return ingest_query_end(ingest, sql, PROF_OK);
}

/* Anchors go straight into the map: their rows are in the file already. */
static bool load_anchor(struct ingest_spool *spool, const struct wire_clock *anchor)
{
    struct ingest_clock *clock = ingest_clock_of(spool, anchor->head.aux, true);
    struct wire_clock *kept = clock ? prof_array_add(&clock->recent) : NULL;
    if (!kept)
        return false;
    *kept = clock->last = *anchor;
    clock->stored_mono_ns = anchor->mono_ns;
    return prof_clockmap_add(&clock->map, anchor->source_ns, anchor->mono_ns, anchor->error_ns);
}

/* Through the reader, which fits a record saved by another version. */
static enum prof_status feed_saved(struct prof_ingest *ingest, struct ingest_spool *spool,
                                   const struct saved_head *saved, const unsigned char *record,
                                   size_t bytes)
{
    size_t offset = 0;
    bool damaged = false;
    const struct wire_head *head = prof_spool_next(record, bytes, &offset, &damaged);
    if (!head)
        return PROF_OK;
    if (head->type == WIRE_CLOCK)
        return ingest_memory(ingest,
                             load_anchor(spool, (const struct wire_clock *)(const void *)head),
                             "a device's clock");
    return ingest_feed(ingest, spool, saved->tid, head);
}

/* The value of "<what> <number of the spool>". */
static enum prof_status query_state_blob(struct prof_ingest *ingest, const char *what,
                                         const struct ingest_spool *spool, sqlite3_stmt **row)
{
    char key[48];
    PROF_TRY(ingest_query(ingest, "SELECT value FROM ingest_state WHERE key=?1", row));
    snprintf(key, sizeof key, "%s %lld", what, (long long)spool->id);
    sqlite3_bind_text(*row, 1, key, -1, SQLITE_TRANSIENT);
    return PROF_OK;
}

static enum prof_status load_tally(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    sqlite3_stmt *sql;
    memset(spool->tally, 0, sizeof spool->tally);
    PROF_TRY(query_state_blob(ingest, "tally", spool, &sql));
    if (sqlite3_step(sql) == SQLITE_ROW) {
        size_t bytes = (size_t)sqlite3_column_bytes(sql, 0);
        if (bytes > 0)
            memcpy(spool->tally, sqlite3_column_blob(sql, 0),
                   bytes < sizeof spool->tally ? bytes : sizeof spool->tally);
    }
    return ingest_query_end(ingest, sql, PROF_OK);
}

static enum prof_status load_waiting(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    sqlite3_stmt *sql;
    _Alignas(8) unsigned char record[WIRE_MAX_RECORD];
    enum prof_status status = query_state_blob(ingest, "waiting", spool, &sql);
    spool->restoring = true;
    if (!status && sqlite3_step(sql) == SQLITE_ROW) {
        const unsigned char *blob = sqlite3_column_blob(sql, 0);
        size_t bytes = (size_t)sqlite3_column_bytes(sql, 0);
        struct saved_head saved;
        struct wire_head head;
        for (size_t at = 0; !status && at + sizeof saved + sizeof head <= bytes;) {
            memcpy(&saved, blob + at, sizeof saved);
            memcpy(&head, blob + at + sizeof saved, sizeof head);
            at += sizeof saved;
            if (head.size < sizeof head || head.size > WIRE_MAX_RECORD || head.size > bytes - at)
                break;
            memcpy(record, blob + at, head.size);
            at += head.size;
            status = feed_saved(ingest, spool, &saved, record, head.size);
        }
    }
    spool->restoring = false;
    return ingest_query_end(ingest, sql, status);
}

static enum prof_status load_spool(struct prof_ingest *ingest, sqlite3_stmt *row)
{
    const char *name = (const char *)sqlite3_column_text(row, 1);
    struct ingest_spool *spool =
        name ? ingest_spool_add(ingest, name, sqlite3_column_int64(row, 0), NULL) : NULL;
    if (!spool)
        return ingest_no_memory(ingest, "a spool");
    spool->process = sqlite3_column_int64(row, 2);
    spool->finished = sqlite3_column_int64(row, 3) != 0 || !spool->reader;
    if (spool->finished)
        return load_tally(ingest, spool); /* the trust block says how far its records came */
    PROF_TRY(load_locals(ingest, spool));
    PROF_TRY(ingest_python_load(ingest, spool));
    PROF_TRY(load_threads(ingest, spool));
    PROF_TRY(load_live(ingest, spool));
    PROF_TRY(load_waiting(ingest, spool));
    PROF_TRY(
        load_tally(ingest, spool)); /* after them: the waiting records count themselves again */
    PROF_TRY(ingest_handles_load(ingest, spool));
    return load_cursors(ingest, spool);
}

static enum prof_status load_spools(struct prof_ingest *ingest)
{
    sqlite3_stmt *row;
    enum prof_status status =
        ingest_query(ingest, "SELECT id,name,process,finished FROM ingest_spool ORDER BY id", &row);
    while (!status && sqlite3_step(row) == SQLITE_ROW)
        status = load_spool(ingest, row);
    return ingest_query_end(ingest, row, status);
}

static enum prof_status load_configs(struct prof_ingest *ingest)
{
    sqlite3_stmt *row;
    enum prof_status status = ingest_query(
        ingest,
        "SELECT id,name,grid_x,grid_y,grid_z,block_x,block_y,block_z,cluster_x,"
        "cluster_y,cluster_z,registers,shared_static,shared_dynamic,local_bytes,ragged "
        "FROM launch_config",
        &row);
    while (!status && sqlite3_step(row) == SQLITE_ROW)
        status = ingest_config_restore(ingest, row);
    return ingest_query_end(ingest, row, status);
}

enum prof_status ingest_state_check(struct prof_ingest *ingest)
{
    int64_t tables =
        query_state_number(ingest, "SELECT count(*) FROM sqlite_master WHERE name='ingest_state'");
    PROF_TRY(ingest->error.status);
    if (tables == 0)
        return prof_fail(&ingest->error, PROF_INVALID, "%s: the capture is finished already",
                         prof_store_path(ingest->store));
    long long version =
        query_state_number(ingest, "SELECT value FROM ingest_state WHERE key='version'");
    if (version > STATE_VERSION)
        return prof_fail(
            &ingest->error, PROF_VERSION,
            "%s was begun by a newer perfkit (state of version %lld, this one reads up "
            "to %d): finish it with that one",
            prof_store_path(ingest->store), version, STATE_VERSION);
    return ingest->error.status;
}

enum prof_status ingest_state_load(struct prof_ingest *ingest)
{
    const struct {
        int64_t *last;
        const char *sql;
    } numbers[] = {
        {&ingest->last_string, "SELECT max(id) FROM string"},
        {&ingest->last_config, "SELECT max(id) FROM launch_config"},
        {&ingest->last_process, "SELECT max(id) FROM process"},
        {&ingest->last_thread, "SELECT max(id) FROM thread"},
        {&ingest->last_device, "SELECT max(id) FROM device"},
        {&ingest->last_context, "SELECT max(id) FROM context"},
        {&ingest->last_stream, "SELECT max(id) FROM stream"},
        {&ingest->last_spool, "SELECT max(id) FROM ingest_spool"},
        {&ingest->last_counter_device, "SELECT max(id) FROM counter_device"},
        {&ingest->last_stall_context, "SELECT max(id) FROM stall_context"},
        {&ingest->last_stall_function, "SELECT max(id) FROM stall_function"},
        {&ingest->last_stall, "SELECT max(id) FROM stall"},
        {&ingest->rollup.last, "SELECT max(id) FROM rollup"},
    };
    PROF_TRY(ingest_filter_load(ingest));
    ingest->zero_ns = (uint64_t)query_state_number(ingest, "SELECT start_mono_ns FROM capture");
    ingest->lifecycle_next = (uint32_t)query_state_number(
        ingest, "SELECT value FROM ingest_state WHERE key='lifecycle_next'");
    ingest->primary_pid = (uint32_t)query_state_number(
        ingest, "SELECT value FROM ingest_state WHERE key='primary_pid'");
    ingest->primary_status = (int)query_state_number(
        ingest, "SELECT value FROM ingest_state WHERE key='primary_status'");
    ingest->has_primary = ingest->primary_pid != 0;
    if (!ingest->ring.ns) /* else a first step failed, and nothing is saved yet */
        ingest->ring.ns = (uint64_t)query_state_number(
            ingest, "SELECT value FROM ingest_state WHERE key='ring_ns'");
    ingest->ring.left = (uint64_t)query_state_number(
        ingest, "SELECT value FROM ingest_state WHERE key='ring_left'");
    int64_t windows =
        query_state_number(ingest, "SELECT value FROM ingest_state WHERE key='ring_windows'");
    if (windows > ingest->ring.windows) /* else some were kept after what is saved */
        ingest->ring.windows = windows;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        *numbers[i].last = query_state_number(ingest, numbers[i].sql);
    PROF_TRY(ingest->error.status);
    PROF_TRY(load_state_strings(ingest));
    PROF_TRY(load_configs(ingest));
    PROF_TRY(load_processes(ingest));
    PROF_TRY(ingest_lifecycle_gaps(ingest));
    PROF_TRY(ingest_images_load(ingest));
    PROF_TRY(ingest_thread_rows_load(ingest));
    PROF_TRY(ingest_stacks_load(ingest));
    return load_spools(ingest);
}
