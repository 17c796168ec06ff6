/* The ingest without spools: what import feeds. Each process of the source is a scope of ids of its
 * own, as a spool is; there is no lifecycle table, no counters to balance with, and nothing to
 * recover: an import that dies is begun again. */
#include <stdlib.h>
#include <string.h>

#include "libprof/store/ingest.h"
#include "libprof/store/ingest_private.h"

#define BATCH_RECORDS 262144u

/* Spools by another name, opaque to the users of the header. */
static struct ingest_spool *foreign_spool(struct foreign_process *process)
{
    return (struct ingest_spool *)(void *)process;
}

static enum prof_status begin_import(struct prof_ingest *ingest, const struct foreign_about *about)
{
    PROF_TRY(ingest_capture_foreign(ingest, about));
    PROF_TRY(ingest_state_create(ingest));
    PROF_TRY(ingest_statements_prepare(ingest));
    return ingest_begin(ingest);
}

enum prof_status foreign_open(struct prof_store *store, const struct foreign_about *about,
                              struct prof_ingest **out, struct prof_error *err)
{
    *out = NULL;
    struct prof_ingest *ingest = calloc(1, sizeof *ingest);
    if (!ingest)
        return prof_out_of_memory(err);
    ingest->store = store;
    ingest->db = prof_store_db(store);
    ingest->lifecycle_fd = -1;
    ingest->zero_ns = FOREIGN_ZERO_NS;
    ingest->doing = "write";
    enum prof_status status = begin_import(ingest, about);
    if (status) {
        foreign_fail(ingest, err);
        prof_ingest_close(ingest);
        return status;
    }
    *out = ingest;
    return PROF_OK;
}

struct foreign_process *foreign_process(struct prof_ingest *ingest, uint32_t pid,
                                        const char *command, int64_t rank, int64_t world_size)
{
    struct ingest_spool *spool = calloc(1, sizeof *spool);
    struct ingest_spool **slot = spool ? prof_array_add(&ingest->spools) : NULL;
    if (!slot) {
        free(spool);
        ingest_no_memory(ingest, "processes");
        return NULL;
    }
    *slot = spool;
    spool->id = ++ingest->last_spool;
    spool->process = ++ingest->last_process;
    sqlite3_stmt *sql = ingest->insert[SCHEMA_process];
    sqlite3_clear_bindings(sql); /* parent, birth and start are not known */
    ingest_bind(sql, COLUMN_AT(process, id), spool->process);
    ingest_bind(sql, COLUMN_AT(process, pid), pid);
    ingest_bind_text(ingest, sql, COLUMN_AT(process, command), command);
    if (ingest_insert(ingest, SCHEMA_process) != PROF_OK)
        return NULL;
    sql = ingest->sql[INGEST_SQL_PROCESS_SPOOL]; /* it had events */
    ingest_bind(sql, 1, spool->process);
    ingest_bind_text(ingest, sql, 2, "imported");
    ingest_bind_if(sql, 3, rank >= 0, rank);
    ingest_bind_if(sql, 5, rank >= 0, world_size);
    return ingest_run(ingest, INGEST_SQL_PROCESS_SPOOL) ? NULL
                                                        : (struct foreign_process *)(void *)spool;
}

static enum prof_status commit_import(struct prof_ingest *ingest)
{
    ingest->batch_records = 0;
    PROF_TRY(ingest_batches_flush(ingest));
    PROF_TRY(ingest_rollup_flush(ingest));
    PROF_TRY(ingest_exec(ingest, "COMMIT"));
    return ingest_begin(ingest);
}

enum prof_status foreign_feed(struct prof_ingest *ingest, struct foreign_process *process,
                              uint32_t tid, const struct wire_head *head)
{
    PROF_TRY(ingest_feed(ingest, foreign_spool(process), tid, head));
    return ++ingest->batch_records < BATCH_RECORDS ? PROF_OK : commit_import(ingest);
}

enum prof_status foreign_string(struct prof_ingest *ingest, struct foreign_process *process,
                                uint32_t id, const char *text, size_t length)
{
    _Alignas(8) unsigned char buffer[WIRE_MAX_RECORD];
    struct wire_string *record = (struct wire_string *)(void *)buffer;
    enum prof_status status;
    do {
        size_t part = length < WIRE_STRING_BYTES ? length : WIRE_STRING_BYTES;
        *record =
            (struct wire_string){.head = {(uint16_t)((sizeof *record + part + 7) & ~(size_t)7),
                                          WIRE_STRING, part < length ? WIRE_STRING_MORE : 0, id},
                                 .length = (uint32_t)part};
        memcpy(record->text, text, part);
        status = foreign_feed(ingest, process, 0, &record->head);
        text += part;
        length -= part;
    } while (!status && length);
    return status;
}

/* A module of which only the path is known. */
static int64_t foreign_module(struct prof_ingest *ingest, struct ingest_spool *spool,
                              uint32_t string)
{
    int64_t path = ingest_global(spool, string, WIRE_STRING);
    const uint64_t *known = path ? prof_map_get(&spool->foreign_modules, (uint64_t)path) : NULL;
    if (known || !path)
        return known ? (int64_t)*known : 0;
    char *text = ingest_text_of(ingest, spool, string);
    sqlite3_stmt *sql = ingest->insert[SCHEMA_module];
    sqlite3_clear_bindings(sql);
    ingest_bind(sql, COLUMN_AT(module, process), spool->process);
    ingest_bind_text(ingest, sql, COLUMN_AT(module, path), text);
    enum prof_status status = ingest_insert(ingest, SCHEMA_module);
    free(text);
    int64_t row = sqlite3_last_insert_rowid(ingest->db);
    if (!status)
        status = ingest_memory(ingest,
                               prof_map_put(&spool->foreign_modules, (uint64_t)path, (uint64_t)row),
                               "modules");
    return status ? 0 : row;
}

enum prof_status foreign_stack(struct prof_ingest *ingest, struct foreign_process *process,
                               uint32_t id, const struct foreign_frame *frames, size_t count)
{
    struct ingest_entry entries[WIRE_STACK_ENTRIES + 1];
    struct ingest_spool *spool = foreign_spool(process);
    size_t used = 0;
    for (; used < count && used < WIRE_STACK_ENTRIES && !frames[used].missing; used++)
        entries[used] = (struct ingest_entry){
            .kind = PROF_STORE_FRAME_NATIVE,
            .address = frames[used].address,
            .function = ingest_global(spool, frames[used].function, WIRE_STRING),
            .module = foreign_module(ingest, spool, frames[used].module)};
    if (used < count)
        entries[used++] = (struct ingest_entry){.kind = PROF_STORE_FRAME_MISSING};
    int64_t row = ingest_stack(ingest, spool->process, entries, used);
    if (row <= 0 || ingest->error.status)
        return ingest->error.status;
    return ingest_memory(ingest, prof_map_put(&spool->stacks, id, (uint64_t)row), "stacks");
}

enum prof_status foreign_health(struct prof_ingest *ingest, enum prof_health_code code,
                                const char *item, const char *note)
{
    return ingest_health_line(ingest, 0, code, item, NULL, note);
}

enum prof_status foreign_fail(const struct prof_ingest *ingest, struct prof_error *err)
{
    return prof_fail(err, ingest->error.status, "%s", ingest->error.message);
}

static enum prof_status finish_import(struct prof_ingest *ingest, int64_t duration_ns)
{
    for (size_t i = 0; i < ingest->spools.count; i++) {
        struct ingest_spool *spool = ingest->spools.data[i];
        PROF_TRY(ingest_events_finish(ingest, spool));
        PROF_TRY(ingest_ranges_finish(ingest, spool));
        PROF_TRY(ingest_names_finish(ingest, spool));
    }
    PROF_TRY(ingest_batches_flush(ingest));
    PROF_TRY(ingest_rollup_flush(ingest));
    PROF_TRY(ingest_capture_close(ingest, "imported", duration_ns));
    ingest_statements_finalize(ingest);
    PROF_TRY(ingest_state_drop(ingest));
    return ingest_exec(ingest, "COMMIT");
}

enum prof_status foreign_finish(struct prof_ingest *ingest, int64_t duration_ns,
                                struct prof_error *err)
{
    return finish_import(ingest, duration_ns) ? foreign_fail(ingest, err) : PROF_OK;
}
