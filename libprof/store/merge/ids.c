/* Row numbers of a file and what they became. Nearly always they are 1, 2, 3 ... and then cost
 * nothing; a file may have others (perfkit does not write any, but anybody may). */
#include <stdlib.h>

#include "libprof/store/merge/parts.h"

size_t merge_ids_find(const struct merge_ids *ids, int64_t old)
{
    if (!ids->old)
        return old >= ids->first && (uint64_t)old - (uint64_t)ids->first < ids->count
                   ? (size_t)((uint64_t)old - (uint64_t)ids->first)
                   : SIZE_MAX;
    size_t low = 0, high = ids->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ids->old[middle] == old)
            return middle;
        if (ids->old[middle] < old)
            low = middle + 1;
        else
            high = middle;
    }
    return SIZE_MAX;
}

int64_t merge_ids_now(const struct merge_ids *ids, int64_t old)
{
    size_t at = merge_ids_find(ids, old);
    if (at == SIZE_MAX)
        return 0;
    return ids->now ? ids->now[at] : ids->base + (int64_t)at;
}

/* The numbers so far are listed one by one from now on. */
static bool list_them(struct merge_ids *ids, size_t room)
{
    ids->old = malloc(room * sizeof *ids->old);
    for (size_t i = 0; ids->old && i < ids->count; i++)
        ids->old[i] = ids->first + (int64_t)i;
    return ids->old != NULL;
}

static int64_t newest(const struct merge_ids *ids)
{
    return ids->old ? ids->old[ids->count - 1] : ids->first + (int64_t)ids->count - 1;
}

/* One that is there already, which only a damaged file has, counts once. */
static bool add_merge_id(struct merge_ids *ids, int64_t id, size_t *room)
{
    if (!ids->count)
        ids->first = id;
    else if (id == newest(ids))
        return true;
    bool next = !ids->old && (uint64_t)id - (uint64_t)ids->first == ids->count;
    if (!next && !ids->old) {
        *room = ids->count * 2 + 16;
        if (!list_them(ids, *room))
            return false;
    }
    if (ids->old && !prof_array_room(&ids->old, room, ids->count + 1, sizeof *ids->old))
        return false;
    if (ids->old)
        ids->old[ids->count] = id;
    ids->count++;
    return true;
}

enum prof_status merge_ids_read(struct merge_ids *ids, sqlite3 *db, const char *sql)
{
    sqlite3_stmt *row;
    size_t room = 0;
    bool ok = true;
    if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) != SQLITE_OK)
        return prof_sql_status(sqlite3_errcode(db));
    while (ok && sqlite3_step(row) == SQLITE_ROW)
        ok = add_merge_id(ids, sqlite3_column_int64(row, 0), &room);
    int code = sqlite3_finalize(row);
    return ok ? prof_sql_status(code) : PROF_NOMEM;
}

bool merge_ids_scatter(struct merge_ids *ids)
{
    ids->now = calloc(ids->count + 1, sizeof *ids->now);
    return ids->now != NULL;
}

void merge_ids_free(struct merge_ids *ids)
{
    free(ids->old);
    free(ids->now);
    *ids = (struct merge_ids){0};
}
