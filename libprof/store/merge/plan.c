/* What becomes of each table, read off the schema: its references, its times, its size. A table
 * that is added there is merged without a line here. */
#include <stdlib.h>
#include <string.h>

#include "libprof/store/merge/parts.h"

/* Made for the result as a whole: trust.c writes `capture`, copy.c and events.c the sums. */
static const char *const made_anew[] = {"capture", "rollup"};

/* What a summary keeps, with all that these refer to. */
static const char *const in_summary[] = {"rollup", "process", "capture_health", "ceiling",
                                         "merged_part"};

static bool is_in_list(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, list[i]) == 0)
            return true;
    }
    return false;
}
#define LISTED(name, list) is_in_list(name, list, sizeof(list) / sizeof *(list))

int merge_plan_find(const struct merge_plan *plan, const char *table)
{
    for (int i = 0; i < plan->count; i++) {
        if (strcmp(plan->tables[i].schema->name, table) == 0)
            return i;
    }
    return -1;
}

static bool is_number(const char *type)
{
    return strncmp(type, "INTEGER", 7) == 0 || strcmp(type, "REAL") == 0 || !*type;
}

static enum merge_way way_of(const struct merge_table *table)
{
    const struct prof_column *columns = table->schema->columns;
    if (LISTED(table->schema->name, made_anew))
        return MERGE_LEAVE;
    if (table->schema->shared)
        return MERGE_SHARE;
    bool events = table->start >= 0;
    for (int i = 0; i < table->columns; i++)
        events &= is_number(columns[i].type);
    return events ? MERGE_BY_TIME : MERGE_APPEND;
}

static void describe_table(struct merge_plan *plan, struct merge_table *table)
{
    const struct prof_column *c = table->schema->columns;
    table->start = -1;
    for (; c[table->columns].name; table->columns++) {
        int i = table->columns;
        int to = c[i].refers ? merge_plan_find(plan, c[i].refers) : -1;
        table->column[i].time = c[i].time;
        table->column[i].refers = to;
        if (strcmp(c[i].name, "start") == 0)
            table->start = i;
        if (to >= 0 && &plan->tables[to] != table)
            plan->tables[to].referred = true;
    }
}

static bool is_ready(const struct merge_plan *plan, int table, const bool *done)
{
    const struct merge_table *t = &plan->tables[table];
    for (int i = 0; i < t->columns; i++) {
        int to = t->column[i].refers;
        if (to >= 0 && to != table && !done[to])
            return false;
    }
    return true;
}

/* Tables that refer to each other in a circle, which the schema has none of, come in any order. */
static void order_tables(struct merge_plan *plan)
{
    bool done[MERGE_MOST_TABLES] = {false};
    for (int place = 0; place < plan->count;) {
        int before = place;
        for (int i = 0; i < plan->count; i++) {
            if (!done[i] && is_ready(plan, i, done)) {
                done[i] = true;
                plan->order[place++] = i;
            }
        }
        for (int i = 0; place == before && i < plan->count; i++) {
            if (!done[i]) {
                done[i] = true;
                plan->order[place++] = i;
            }
        }
    }
}

/* From the last table to the first: rows without a reference from a kept row are left out. */
static void keep_summary(struct merge_plan *plan)
{
    bool kept[MERGE_MOST_TABLES] = {false};
    for (int place = plan->count; place-- > 0;) {
        int i = plan->order[place];
        const struct merge_table *table = &plan->tables[i];
        kept[i] |= LISTED(table->schema->name, in_summary);
        for (int c = 0; kept[i] && c < table->columns; c++) {
            if (table->column[c].refers >= 0)
                kept[table->column[c].refers] = true;
        }
        if (!kept[i])
            plan->tables[i].way = MERGE_LEAVE;
    }
}

void merge_plan_make(struct merge_plan *plan, bool summary)
{
    memset(plan, 0, sizeof *plan);
    for (const struct prof_table *t = prof_tables; t->name && plan->count < MERGE_MOST_TABLES; t++)
        plan->tables[plan->count++].schema = t;
    for (int i = 0; i < plan->count; i++)
        describe_table(plan, &plan->tables[i]);
    for (int i = 0; i < plan->count; i++)
        plan->tables[i].way = way_of(&plan->tables[i]);
    order_tables(plan);
    if (summary)
        keep_summary(plan);
}

char *merge_select_sql(const struct merge_table *table, const char *tail)
{
    char *columns = sqlite3_mprintf("%s", "");
    for (int i = 0; columns && i < table->columns; i++)
        columns =
            sqlite3_mprintf("%z%s\"%w\"", columns, i ? "," : "", table->schema->columns[i].name);
    return columns ? sqlite3_mprintf("SELECT %z FROM \"%w\" %s", columns, table->schema->name, tail)
                   : NULL;
}

/* ---- numbers of rows ------------------------------------------------------------------------- */

/* Row numbers of a file and what they became. Nearly always they are 1, 2, 3 ... and then cost
 * nothing; a file may have others (written by another program). */

size_t merge_ids_find(const struct merge_ids *ids, int64_t old)
{
    if (!ids->old)
        return old >= ids->first && (uint64_t)old - (uint64_t)ids->first < ids->count
                   ? (size_t)((uint64_t)old - (uint64_t)ids->first)
                   : SIZE_MAX;
    size_t low;
    PROF_FIND_FIRST(low, at, ids->count, ids->old[at] >= old);
    return low < ids->count && ids->old[low] == old ? low : SIZE_MAX;
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
