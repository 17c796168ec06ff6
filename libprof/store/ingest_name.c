/* Names: of threads, by the program (NVTX) or as the kernel has them; of CUDA's objects, which NVTX
 * knows by the program's handles only. Handles are used again at once and objects are described 100
 * ms later: the collector says at their creation which object a handle means from then on, and a
 * name waits for its object, not for the handle. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/store/ingest_private.h"

/* Objects that are named and never used must not fill the memory. */
#define MOST_UNCLAIMED 65536u
#define LOOK_PERIOD_NS 1000000000u
#define LOOKS 2

static enum prof_status run_name(struct prof_ingest *ingest, struct ingest_spool *spool,
                                 enum ingest_sql which, int64_t row, uint32_t name)
{
    sqlite3_stmt *sql = ingest->sql[which];
    PROF_FREED char *text = ingest_text_of(ingest, spool, name);
    ingest_bind(sql, 1, row);
    ingest_bind_text(ingest, sql, 2, text);
    return row ? ingest_run(ingest, which) : PROF_OK;
}

/* ---- handles --------------------------------------------------------------------------------- */

static const struct {
    enum ingest_sql update;
    const char *text, *load; /* row, object */
} kinds[] = {
    [WIRE_NAMED_CUDA_STREAM] = {INGEST_SQL_STREAM_NAME, "stream",
                                "SELECT s.id,(c.native<<32)|(s.native&4294967295) FROM stream s "
                                "JOIN context c ON c.id=s.context WHERE s.process=?1 AND "
                                "s.api='cuda' ORDER BY s.id"},
    [WIRE_NAMED_CUDA_CONTEXT] =
        {INGEST_SQL_CONTEXT_NAME, "context",
         "SELECT id,native FROM context WHERE process=?1 AND api='cuda' ORDER BY id"},
    [WIRE_NAMED_CUDA_DEVICE] = {INGEST_SQL_DEVICE_NAME, "device",
                                "SELECT id,ordinal FROM device WHERE process=?1 AND api='cuda' "
                                "ORDER BY id"},
    [WIRE_NAMED_CUDA_EVENT] = {.text = "event"}, /* never has a row */
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Addresses leave the top bits free, as do CUPTI's numbers of contexts. */
static uint64_t named_thing_key(uint32_t kind, uint64_t number)
{
    return number ^ (uint64_t)kind << 60;
}

static enum prof_status write_object_name(struct prof_ingest *ingest, struct ingest_spool *spool,
                                          const struct wire_name *name)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_object_name];
    PROF_FREED char *text = ingest_text_of(ingest, spool, name->name);
    ingest_bind(sql, COLUMN_AT(object_name, process), spool->process);
    ingest_bind_text(ingest, sql, COLUMN_AT(object_name, kind), kinds[name->head.aux].text);
    ingest_bind(sql, COLUMN_AT(object_name, handle), (int64_t)name->object);
    ingest_bind_text(ingest, sql, COLUMN_AT(object_name, name), text);
    return ingest_insert(ingest, SCHEMA_object_name);
}

static void drop_unclaimed(struct ingest_spool *spool, size_t at)
{
    struct ingest_unclaimed last = spool->unclaimed.data[--spool->unclaimed.count];
    spool->unclaimed.data[at] = last;
    uint64_t *place =
        prof_map_get(&spool->unclaimed_at, named_thing_key(last.name.head.aux, last.object));
    if (place)
        *place = at;
}

static enum prof_status keep_unclaimed(struct prof_ingest *ingest, struct ingest_spool *spool,
                                       const struct wire_name *name, uint64_t object)
{
    uint64_t key = named_thing_key(name->head.aux, object);
    uint64_t *at = prof_map_get(&spool->unclaimed_at, key);
    if (at) {
        spool->unclaimed.data[*at].name = *name;
        return PROF_OK;
    }
    if (spool->unclaimed.count >= MOST_UNCLAIMED)
        return write_object_name(ingest, spool, name);
    struct ingest_unclaimed *kept = prof_array_add(&spool->unclaimed);
    if (!kept)
        return ingest_no_memory(ingest, "names of objects");
    *kept = (struct ingest_unclaimed){*name, object};
    return ingest_memory(ingest,
                         prof_map_put(&spool->unclaimed_at, key, spool->unclaimed.count - 1),
                         "names of objects");
}

static bool has_handle(uint32_t kind)
{
    return kind == WIRE_NAMED_CUDA_STREAM || kind == WIRE_NAMED_CUDA_CONTEXT;
}

static enum prof_status name_by_handle(struct prof_ingest *ingest, struct ingest_spool *spool,
                                       const struct wire_name *name)
{
    uint32_t kind = name->head.aux;
    uint64_t object = name->object;
    if (has_handle(kind)) {
        uint64_t *known = prof_map_get(&spool->handles, named_thing_key(kind, name->object));
        if (!known) /* made before recording, or the default stream */
            return write_object_name(ingest, spool, name);
        object = *known;
    } else if (kind == WIRE_NAMED_CUDA_EVENT) /* no record knows an event by its handle */
        return write_object_name(ingest, spool, name);
    uint64_t *row = prof_map_get(&spool->objects, named_thing_key(kind, object));
    return row ? run_name(ingest, spool, kinds[kind].update, (int64_t)*row, name->name)
               : keep_unclaimed(ingest, spool, name, object);
}

enum prof_status ingest_handle(struct prof_ingest *ingest, struct ingest_spool *spool,
                               const struct wire_handle *handle)
{
    uint32_t kind = handle->head.aux;
    uint64_t object = kind == WIRE_NAMED_CUDA_STREAM
                          ? ingest_stream_object(handle->context, handle->stream)
                          : handle->context;
    if (!has_handle(kind))
        return PROF_OK; /* of a later version */
    PROF_TRY(ingest_memory(
        ingest, prof_map_put(&spool->handles, named_thing_key(kind, handle->handle), object),
        "handles"));
    if (spool->restoring)
        return PROF_OK;
    return ingest_map_row(ingest, spool->id, (int64_t)handle->handle, WIRE_HANDLE, (int64_t)object,
                          kind);
}

bool ingest_handle_of(const struct ingest_unclaimed *unclaimed, struct wire_handle *handle)
{
    uint32_t kind = unclaimed->name.head.aux;
    uint64_t object = unclaimed->object;
    bool stream = kind == WIRE_NAMED_CUDA_STREAM;
    *handle = (struct wire_handle){
        .head = {sizeof *handle, WIRE_HANDLE, 0, kind},
        .handle = unclaimed->name.object,
        .context = (uint32_t)(stream ? object >> 32 : object),
        .stream = stream ? (uint32_t)object : 0,
    };
    return has_handle(kind);
}

enum prof_status ingest_object(struct prof_ingest *ingest, struct ingest_spool *spool,
                               enum wire_named kind, uint64_t object, int64_t row)
{
    uint64_t key = named_thing_key(kind, object), at;
    PROF_TRY(ingest_memory(ingest, prof_map_put(&spool->objects, key, (uint64_t)row),
                           "objects with names"));
    if (!prof_map_remove(&spool->unclaimed_at, key, &at))
        return PROF_OK;
    uint32_t name = spool->unclaimed.data[at].name.name;
    drop_unclaimed(spool, at);
    return run_name(ingest, spool, kinds[kind].update, row, name);
}

static enum prof_status load_objects(struct prof_ingest *ingest, struct ingest_spool *spool,
                                     uint32_t kind)
{
    sqlite3_stmt *row;
    enum prof_status status = ingest_query(ingest, kinds[kind].load, &row);
    sqlite3_bind_int64(row, 1, spool->process);
    while (!status && sqlite3_step(row) == SQLITE_ROW)
        status = ingest_memory(
            ingest,
            prof_map_put(&spool->objects,
                         named_thing_key(kind, (uint64_t)sqlite3_column_int64(row, 1)),
                         (uint64_t)sqlite3_column_int64(row, 0)),
            "objects with names");
    return ingest_query_end(ingest, row, status);
}

enum prof_status ingest_handles_load(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        if (kinds[kind].load)
            PROF_TRY(load_objects(ingest, spool, kind));
    }
    sqlite3_stmt *row;
    enum prof_status status = ingest_query(ingest,
                                           "SELECT local,global,extra FROM ingest_map WHERE "
                                           "spool=?1 AND kind=?2 ORDER BY rowid",
                                           &row);
    sqlite3_bind_int64(row, 1, spool->id);
    sqlite3_bind_int64(row, 2, WIRE_HANDLE);
    while (!status && sqlite3_step(row) == SQLITE_ROW)
        status = ingest_memory(ingest,
                               prof_map_put(&spool->handles,
                                            named_thing_key((uint32_t)sqlite3_column_int64(row, 2),
                                                            (uint64_t)sqlite3_column_int64(row, 0)),
                                            (uint64_t)sqlite3_column_int64(row, 1)),
                               "handles");
    return ingest_query_end(ingest, row, status);
}

/* Names of objects that were never used are written as well. */
enum prof_status ingest_names_finish(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    for (size_t i = 0; i < spool->unclaimed.count; i++)
        PROF_TRY(write_object_name(ingest, spool, &spool->unclaimed.data[i].name));
    spool->unclaimed.count = 0;
    prof_map_clear(&spool->unclaimed_at);
    return PROF_OK;
}

/* ---- records --------------------------------------------------------------------------------- */

static enum prof_status name_category(struct prof_ingest *ingest, struct ingest_spool *spool,
                                      const struct wire_name *name)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_category];
    PROF_FREED char *text = ingest_text_of(ingest, spool, name->name);
    ingest_bind(sql, COLUMN_AT(category, process), spool->process);
    ingest_bind_known(sql, COLUMN_AT(category, domain),
                      ingest_global(spool, name->domain, WIRE_STRING));
    ingest_bind(sql, COLUMN_AT(category, category), (int64_t)name->object);
    ingest_bind_text(ingest, sql, COLUMN_AT(category, name), text);
    return ingest_insert(ingest, SCHEMA_category);
}

enum prof_status ingest_name(struct prof_ingest *ingest, struct ingest_spool *spool,
                             const struct wire_name *name)
{
    uint32_t id = (uint32_t)name->object;
    switch (name->head.aux) {
    case WIRE_NAMED_THREAD: {
        struct ingest_thread *thread = ingest_thread_of(ingest, spool, id);
        if (!thread)
            return ingest->error.status;
        thread->named = true;
        return run_name(ingest, spool, INGEST_SQL_THREAD_NAME, thread->row, name->name);
    }
    case WIRE_NAMED_CATEGORY:
        return name_category(ingest, spool, name);
    case WIRE_NAMED_STREAM:
        return run_name(ingest, spool, INGEST_SQL_STREAM_NAME,
                        ingest_global(spool, id, WIRE_STREAM), name->name);
    case WIRE_NAMED_DEVICE:
        return run_name(ingest, spool, INGEST_SQL_DEVICE_NAME,
                        ingest_global(spool, id, WIRE_DEVICE), name->name);
    case WIRE_NAMED_CONTEXT:
        return run_name(ingest, spool, INGEST_SQL_CONTEXT_NAME,
                        ingest_global(spool, id, WIRE_CONTEXT), name->name);
    case WIRE_NAMED_CUDA_STREAM:
    case WIRE_NAMED_CUDA_CONTEXT:
    case WIRE_NAMED_CUDA_DEVICE:
    case WIRE_NAMED_CUDA_EVENT:
        return name_by_handle(ingest, spool, name);
    default:
        return PROF_OK; /* of a later version */
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool read_comm(const char *path, char name[16])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, name, 15);
    if (fd >= 0)
        close(fd);
    name[n > 0 ? n : 0] = '\0';
    name[strcspn(name, "\n")] = '\0';
    return name[0] != '\0';
}

bool ingest_comm(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                 char name[16])
{
    const struct ingest_process *process = ingest_process_find(ingest, spool->process);
    char path[64];
    /* In a container threads have other numbers than we see; of a process that is gone none is
     * left. */
    if (!process || process->gone || tid == process->pid ||
        process->seen_pid != (pid_t)process->pid)
        return false;
    if (spool->comm_ns != ingest->now_ns) {
        spool->comm_ns = ingest->now_ns;
        snprintf(path, sizeof path, "/proc/%d/comm", (int)process->seen_pid);
        read_comm(path, spool->comm);
    }
    snprintf(path, sizeof path, "/proc/%d/task/%u/comm", (int)process->seen_pid, (unsigned)tid);
    return spool->comm[0] && read_comm(path, name) && strcmp(name, spool->comm) != 0;
}

/* Threads are often named a moment after they start: one second look, when they have lived for a
 * second or the capture ends. */
enum prof_status ingest_threads_look(struct prof_ingest *ingest, struct ingest_spool *spool,
                                     bool last)
{
    char name[16];
    if (!last && ingest->now_ns - spool->threads_ns < LOOK_PERIOD_NS)
        return PROF_OK;
    spool->threads_ns = ingest->now_ns;
    for (size_t i = 0; i < spool->thread_list.count; i++) {
        struct ingest_thread *thread = &spool->thread_list.data[i];
        if (thread->named || thread->looked >= LOOKS ||
            (!last && ingest->now_ns - thread->first_ns < LOOK_PERIOD_NS))
            continue;
        thread->looked++;
        if (!ingest_comm(ingest, spool, thread->tid, name))
            continue;
        thread->named = true;
        sqlite3_stmt *sql = ingest->sql[INGEST_SQL_THREAD_NAME];
        ingest_bind(sql, 1, thread->row);
        ingest_bind_text(ingest, sql, 2, name);
        PROF_TRY(ingest_run(ingest, INGEST_SQL_THREAD_NAME));
    }
    return PROF_OK;
}
