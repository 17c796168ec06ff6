/* When collectives ended on one rank of a file: kernels of NCCL and its like, and NVTX ranges of
 * libraries whose calls return when all ranks have come. Between hosts these ends are the only
 * thing that is known to have happened at the same moment. */
#include <stdlib.h>
#include <string.h>

#include "libprof/gpu/collective_name.h"
#include "libprof/store/merge/parts.h"

#define MOST_READ (1u << 20)

struct reading {
    sqlite3 *db;
    int64_t start_mono_ns;
    struct prof_map process_of; /* stream.id or thread.id -> process.id */
    struct prof_map operation;  /* launch_config.id or domain and name -> operation */
    sqlite3_stmt *text;         /* of string ?1 */
    int64_t process;            /* the first that has any, 0 = none yet */
    struct merge_ends *ends;
    bool failed; /* out of memory */
};

static void add_process_end(struct reading *r, int64_t process, int kind, int64_t end)
{
    struct merge_ends_of *of = NULL;
    if (!r->process)
        r->process = process;
    if (process != r->process)
        return;
    for (size_t i = 0; i < r->ends->of.count && !of; i++)
        of = r->ends->of.data[i].kind == kind ? &r->ends->of.data[i] : NULL;
    if (!of) {
        of = prof_array_add(&r->ends->of);
        if (of)
            *of = (struct merge_ends_of){.kind = kind};
    }
    if (of && of->ends.count >= MOST_READ)
        return;
    int64_t *slot = of ? prof_array_add(&of->ends) : NULL;
    if (slot)
        *slot = r->start_mono_ns + end;
    r->failed |= !slot;
}

static sqlite3_stmt *prepare_ends_query(const struct reading *r, const char *sql)
{
    sqlite3_stmt *row = NULL;
    return sqlite3_prepare_v2(r->db, sql, -1, &row, NULL) == SQLITE_OK ? row : NULL;
}

static void read_map(struct reading *r, struct prof_map *map, const char *sql)
{
    PROF_FINALIZED sqlite3_stmt *row = prepare_ends_query(r, sql);
    prof_map_clear(map);
    while (row && !r->failed && sqlite3_step(row) == SQLITE_ROW)
        r->failed |= !prof_map_put(map, (uint64_t)sqlite3_column_int64(row, 0),
                                   (uint64_t)sqlite3_column_int64(row, 1));
}

static int64_t mapped(const struct prof_map *map, int64_t key)
{
    const uint64_t *value = prof_map_get(map, (uint64_t)key);
    return value ? (int64_t)*value : 0;
}

static bool read_configs(struct reading *r)
{
    PROF_FINALIZED sqlite3_stmt *row =
        prepare_ends_query(r, "SELECT c.id, s.value FROM launch_config c JOIN "
                              "string s ON s.id = coalesce(c.demangled, c.name)");
    prof_map_clear(&r->operation);
    while (row && !r->failed && sqlite3_step(row) == SQLITE_ROW) {
        enum prof_collective operation =
            prof_collective_kernel((const char *)sqlite3_column_text(row, 1));
        if (prof_collective_joins_all(operation))
            r->failed |= !prof_map_put(&r->operation, (uint64_t)sqlite3_column_int64(row, 0),
                                       (uint64_t)operation);
    }
    return r->operation.count > 0;
}

static void read_kernel_ends(struct reading *r)
{
    if (!read_configs(r))
        return;
    read_map(r, &r->process_of, "SELECT id, process FROM stream");
    PROF_FINALIZED sqlite3_stmt *row =
        prepare_ends_query(r, "SELECT start + duration, config, stream FROM kernel "
                              "WHERE start NOT NULL AND duration NOT NULL");
    while (row && !r->failed && sqlite3_step(row) == SQLITE_ROW) {
        int64_t operation = mapped(&r->operation, sqlite3_column_int64(row, 1));
        if (operation)
            add_process_end(r, mapped(&r->process_of, sqlite3_column_int64(row, 2)),
                            (int)operation * 2, sqlite3_column_int64(row, 0));
    }
}

/* Copied: the second text is read by the same statement. NULL = there is none. */
static char *read_text_copy(const struct reading *r, int64_t id)
{
    char *copy = NULL;
    sqlite3_bind_int64(r->text, 1, id);
    if (sqlite3_step(r->text) == SQLITE_ROW && sqlite3_column_text(r->text, 0))
        copy = strdup((const char *)sqlite3_column_text(r->text, 0));
    sqlite3_reset(r->text);
    return copy;
}

static enum prof_collective operation_of_range(struct reading *r, int64_t domain, int64_t name)
{
    uint64_t key = (uint64_t)domain << 32 ^ (uint64_t)name;
    const uint64_t *known = prof_map_get(&r->operation, key);
    if (known)
        return (enum prof_collective) * known;
    char *domain_text = domain ? read_text_copy(r, domain) : NULL,
         *name_text = read_text_copy(r, name);
    enum prof_collective operation = prof_collective_range(domain_text, name_text);
    free(domain_text);
    free(name_text);
    r->failed |= !prof_map_put(&r->operation, key, (uint64_t)operation);
    return operation;
}

static void read_range_ends(struct reading *r)
{
    r->text = prepare_ends_query(r, "SELECT value FROM string WHERE id = ?1");
    sqlite3_stmt *row = prepare_ends_query(
        r, "SELECT start + duration, domain, name, thread FROM range WHERE duration NOT NULL");
    prof_map_clear(&r->operation);
    read_map(r, &r->process_of, "SELECT id, process FROM thread");
    while (r->text && row && !r->failed && sqlite3_step(row) == SQLITE_ROW) {
        enum prof_collective operation =
            operation_of_range(r, sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2));
        if (prof_collective_joins_all(operation))
            add_process_end(r, mapped(&r->process_of, sqlite3_column_int64(row, 3)),
                            (int)operation * 2 + 1, sqlite3_column_int64(row, 0));
    }
    sqlite3_finalize(row);
    sqlite3_finalize(r->text);
}

bool merge_ends_read(const struct merge_input *input, struct merge_ends *ends)
{
    struct reading r = {.db = input->db,
                        .start_mono_ns =
                            input->start_mono_ns == PROF_MERGE_UNKNOWN ? 0 : input->start_mono_ns,
                        .ends = ends};
    *ends = (struct merge_ends){0};
    read_kernel_ends(&r);
    read_range_ends(&r);
    for (size_t i = 0; i < ends->of.count; i++)
        qsort(ends->of.data[i].ends.data, ends->of.data[i].ends.count, sizeof(int64_t),
              prof_ascending_int64);
    prof_map_free(&r.process_of);
    prof_map_free(&r.operation);
    return !r.failed;
}

void merge_ends_free(struct merge_ends *ends)
{
    for (size_t i = 0; i < ends->of.count; i++)
        prof_array_free(&ends->of.data[i].ends);
    prof_array_free(&ends->of);
}
