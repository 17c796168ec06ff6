/* Opening a capture for analysis, its strings, and the helpers for reading rows; see capture.h and
 * prof.h. Strings are read one by one on demand: a capture may hold a million NVTX texts of which a
 * kernel summary needs none. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libprof/analysis/capture.h"
#include "libprof/analysis/events.h"
#include "libprof/analysis/launch_wrappers.h"
#include "libprof/include/prof.h"
#include "libprof/wire/activity.h"
#include "libprof/wire/command.h"
#include "libprof/wire/memory.h"

#define ARENA_BLOCK (64u << 10)
#define OPEN_TRIES 25 /* of 20 ms */

const char *prof_arena_copy(struct prof_arena *arena, const char *text, size_t length)
{
    if (length >= arena->size - arena->used || !arena->block) {
        size_t size = length + 1 > ARENA_BLOCK ? length + 1 : ARENA_BLOCK;
        char *block = malloc(size);
        char **slot = block ? prof_array_add(&arena->blocks) : NULL;
        if (!slot) {
            free(block);
            return NULL;
        }
        *slot = arena->block = block;
        arena->size = size;
        arena->used = 0;
    }
    char *copy = arena->block + arena->used;
    if (length)
        memcpy(copy, text, length);
    copy[length] = 0;
    arena->used += length + 1;
    return copy;
}

void prof_arena_free(struct prof_arena *arena)
{
    for (size_t i = 0; i < arena->blocks.count; i++)
        free(arena->blocks.data[i]);
    prof_array_free(&arena->blocks);
    *arena = (struct prof_arena){0};
}

enum prof_status prof_query(struct prof_capture *capture, const char *sql, sqlite3_stmt **statement,
                            struct prof_error *err)
{
    *statement = NULL;
    if (sqlite3_prepare_v2(capture->db, sql, -1, statement, NULL) != SQLITE_OK)
        return prof_store_fail(capture->store, "read", err);
    return PROF_OK;
}

enum prof_status prof_query_end(struct prof_capture *capture, sqlite3_stmt *statement,
                                struct prof_error *err)
{
    if (sqlite3_finalize(statement) != SQLITE_OK)
        return prof_store_fail(capture->store, "read", err);
    struct prof_error lost = capture->lost_string;
    capture->lost_string.status = PROF_OK;
    return lost.status ? prof_fail(err, lost.status, "%s", lost.message) : PROF_OK;
}

enum prof_status prof_begin(struct prof_capture *capture, struct prof_error *err)
{
    if (!capture->transactions && !sqlite3_get_autocommit(capture->db)) /* the last end failed */
        sqlite3_exec(capture->db, "COMMIT", NULL, NULL, NULL);
    if (!capture->transactions && sqlite3_exec(capture->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
        return prof_store_fail(capture->store, "read", err);
    capture->transactions++;
    return PROF_OK;
}

void prof_end(struct prof_capture *capture)
{
    if (capture->transactions && !--capture->transactions)
        sqlite3_exec(capture->db, "COMMIT", NULL, NULL, NULL);
}

static enum prof_status open_once(const char *path, struct prof_capture **capture,
                                  struct prof_error *err)
{
    *capture = NULL;
    struct prof_capture *c = calloc(1, sizeof *c);
    if (!c)
        return prof_out_of_memory(err);
    enum prof_status status = prof_store_open(path, &c->store, err);
    if (!status) {
        c->db = prof_store_db(c->store);
        status = prof_ordered_init(c, err);
    }
    status = status ?: prof_load_lookups(c, err);
    if (status) {
        prof_close(c);
        return status;
    }
    *capture = c;
    return PROF_OK;
}

/* A capture that ends is made one plain file: for a moment it has a journal that only a writer
 * could undo, and SQLite refuses the reader ("attempt to write a readonly database"). */
enum prof_status prof_open(const char *path, struct prof_capture **capture, struct prof_error *err)
{
    enum prof_status status = open_once(path, capture, err);
    for (int i = 0;
         (status == PROF_IO || status == PROF_ACCESS) && i < OPEN_TRIES && access(path, R_OK) == 0;
         i++) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        status = open_once(path, capture, err);
    }
    if (!status && err)
        *err = (struct prof_error){0};
    return status;
}

static void forget_stacks(struct prof_capture *capture)
{
    for (size_t i = 0; i < PROF_STACK_USES; i++) {
        if (capture->wrappers[i])
            prof_launch_wrappers_free(capture->wrappers[i]);
        free(capture->wrappers[i]);
        capture->wrappers[i] = NULL;
    }
    prof_stacks_close(capture->stacks);
    capture->stacks = NULL;
}

enum prof_status prof_capture_stacks(struct prof_capture *capture, struct prof_stacks **stacks,
                                     struct prof_error *err)
{
    enum prof_status status =
        capture->stacks ? PROF_OK : prof_stacks_open(capture, &capture->stacks, err);
    bool any = !status && prof_stacks_count(capture->stacks);
    *stacks = any ? capture->stacks : NULL;
    return status;
}

enum prof_status prof_refresh(struct prof_capture *capture, struct prof_error *err)
{
    forget_stacks(capture);
    prof_free_lookups(capture);
    return prof_load_lookups(capture, err);
}

void prof_close(struct prof_capture *capture)
{
    if (!capture)
        return;
    sqlite3_finalize(capture->string_query);
    forget_stacks(capture);
    prof_free_lookups(capture);
    prof_arena_free(&capture->string_texts);
    prof_map_free(&capture->strings);
    prof_array_free(&capture->string_slots);
    prof_store_close(capture->store);
    free(capture);
}

static const struct prof_text_slot *keep_string(struct prof_capture *capture, int64_t id)
{
    const char *bytes = sqlite3_column_blob(capture->string_query, 0);
    size_t length = (size_t)sqlite3_column_bytes(capture->string_query, 0);
    bool failed = !bytes && sqlite3_errcode(capture->db) == SQLITE_NOMEM; /* "" is NULL too */
    const char *copy =
        failed ? NULL : prof_arena_copy(&capture->string_texts, bytes ? bytes : "", length);
    struct prof_text_slot *slot = copy ? prof_array_add(&capture->string_slots) : NULL;
    if (slot)
        *slot = (struct prof_text_slot){copy, length};
    if (!slot || !prof_map_put(&capture->strings, (uint64_t)id, capture->string_slots.count - 1))
        prof_out_of_memory(&capture->lost_string);
    return slot;
}

/* For callers a string that is not there and one that could not be read are the same. */
static const struct prof_text_slot *read_string(struct prof_capture *capture, int64_t id)
{
    if (!capture->string_query &&
        prof_query(capture, "SELECT CAST(value AS BLOB) FROM string WHERE id = ?",
                   &capture->string_query, &capture->lost_string))
        return NULL;
    const struct prof_text_slot *slot = NULL;
    sqlite3_bind_int64(capture->string_query, 1, id);
    int code = sqlite3_step(capture->string_query);
    if (code == SQLITE_ROW)
        slot = keep_string(capture, id);
    else if (code != SQLITE_DONE)
        prof_store_fail(capture->store, "read", &capture->lost_string);
    sqlite3_reset(capture->string_query);
    return slot;
}

const char *prof_string(struct prof_capture *capture, int64_t id, size_t *length)
{
    const struct prof_text_slot *slot = NULL;
    if (id != PROF_UNKNOWN && id != 0) {
        uint64_t *known = prof_map_get(&capture->strings, (uint64_t)id);
        slot = known ? &capture->string_slots.data[*known] : read_string(capture, id);
    }
    if (length)
        *length = slot ? slot->length : 0;
    return slot ? slot->text : NULL;
}

/* ---- texts ----------------------------------------------------------------------------------- */

#define WORD(table, kind)                                                                          \
    ((kind) >= 0 && (size_t)(kind) < sizeof(table) / sizeof(table)[0] && (table)[kind]             \
         ? (table)[kind]                                                                           \
         : "unknown")

static const char *const copy_kinds[] = {
    [WIRE_COPY_HTOD] = "HtoD",       [WIRE_COPY_DTOH] = "DtoH",     [WIRE_COPY_HTOA] = "HtoA",
    [WIRE_COPY_ATOH] = "AtoH",       [WIRE_COPY_ATOA] = "AtoA",     [WIRE_COPY_ATOD] = "AtoD",
    [WIRE_COPY_DTOA] = "DtoA",       [WIRE_COPY_DTOD] = "DtoD",     [WIRE_COPY_HTOH] = "HtoH",
    [WIRE_COPY_PTOP] = "PtoP",       [WIRE_COPY_MAP] = "map",       [WIRE_COPY_UNMAP] = "unmap",
    [WIRE_COPY_MIGRATE] = "migrate", [PROF_COPY_MEMSET] = "memset",
};

static const char *const memory_kinds[] = {
    [WIRE_MEMORY_PAGEABLE] = "pageable",
    [WIRE_MEMORY_PINNED] = "pinned",
    [WIRE_MEMORY_DEVICE] = "device",
    [WIRE_MEMORY_ARRAY] = "array",
    [WIRE_MEMORY_MANAGED] = "managed",
    [WIRE_MEMORY_DEVICE_STATIC] = "device static",
    [WIRE_MEMORY_MANAGED_STATIC] = "managed static",
    [WIRE_MEMORY_SVM] = "SVM",
    [WIRE_MEMORY_POOL] = "pool",
    [WIRE_MEMORY_BLOCK] = "PyTorch block",
};

static const char *const sync_kinds[] = {
    [WIRE_SYNC_EVENT] = "event",
    [WIRE_SYNC_STREAM_WAIT_EVENT] = "stream waits for event",
    [WIRE_SYNC_STREAM] = "stream",
    [WIRE_SYNC_CONTEXT] = "context",
};

static const char *const overhead_kinds[] = {
    [WIRE_OVERHEAD_COMPILER] = "driver compiled device code",
    [WIRE_OVERHEAD_FLUSH] = "profiler wrote out a buffer",
    [WIRE_OVERHEAD_INSTRUMENTATION] = "profiler changed device code",
    [WIRE_OVERHEAD_RESOURCE] = "profiler's own resources",
    [WIRE_OVERHEAD_MODULE_LOAD] = "modules loaded",
    [WIRE_OVERHEAD_LAZY_LOAD] = "functions loaded at first use",
    [WIRE_OVERHEAD_QUEUE_FULL] = "launches waited for room in the queue",
    [WIRE_OVERHEAD_BUFFER_REQUEST] = "profiler waited for a buffer",
    [WIRE_OVERHEAD_MANAGED_START] = "unified memory set up",
};

static const char *const migration_kinds[] = {
    [WIRE_MIGRATION_HTOD] = "moved to the device",
    [WIRE_MIGRATION_DTOH] = "moved to the host",
    [WIRE_MIGRATION_CPU_FAULT] = "CPU page faults",
    [WIRE_MIGRATION_GPU_FAULT] = "GPU page faults",
    [WIRE_MIGRATION_THRASHING] = "thrashing",
    [WIRE_MIGRATION_THROTTLING] = "throttling",
    [WIRE_MIGRATION_REMOTE_MAP] = "mapped where it lies",
    [WIRE_MIGRATION_DTOD] = "moved between devices",
};

static const char *const jit_operations[] = {
    [WIRE_JIT_CACHE_LOAD] = "loaded from the cache",
    [WIRE_JIT_CACHE_STORE] = "stored into the cache",
    [WIRE_JIT_COMPILE] = "compiled",
};

const char *prof_copy_kind_text(int kind)
{
    return WORD(copy_kinds, kind);
}

const char *prof_memory_kind_text(int kind)
{
    return WORD(memory_kinds, kind);
}

bool prof_memory_is_static(int kind)
{
    return kind == WIRE_MEMORY_DEVICE_STATIC || kind == WIRE_MEMORY_MANAGED_STATIC;
}

const char *prof_sync_kind_text(int kind)
{
    return WORD(sync_kinds, kind);
}

const char *prof_overhead_kind_text(int kind)
{
    return WORD(overhead_kinds, kind);
}

const char *prof_migration_kind_text(int kind)
{
    return WORD(migration_kinds, kind);
}

const char *prof_jit_operation_text(int operation)
{
    return WORD(jit_operations, operation);
}

struct prof_text prof_launch_shape(const struct prof_config *config)
{
    struct prof_text out = {""};
    if (!config)
        return (struct prof_text){"n/a"};
    for (int part = 0; part < 2; part++) {
        const int64_t *size = part ? config->block : config->grid;
        prof_append(out.text, sizeof out.text, part ? " x " : "");
        if (size[0] == PROF_UNKNOWN)
            prof_append(out.text, sizeof out.text, "auto");
        else
            prof_append(out.text, sizeof out.text, "%lld", (long long)size[0]);
        for (int i = 1; i < 3 && size[0] != PROF_UNKNOWN; i++)
            if (size[i] > 1 || (i == 1 && size[2] > 1))
                prof_append(out.text, sizeof out.text, ",%lld", (long long)size[i]);
    }
    return out;
}
