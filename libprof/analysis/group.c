/* Grouping helpers of the summaries; see group.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/group.h"
#include "libprof/base/saturate.h"

static uint32_t number_of_text(struct prof_texts *texts, const char *text, size_t length)
{
    /* NULL and "" are different groups: unknown is not the empty name. */
    char none = 0;
    const char *key = text ? text : &none;
    size_t bytes = text ? length : 1;
    uint32_t *known = prof_names_get(&texts->by_text, key, bytes);
    if (known)
        return *known;
    const char **slot = prof_array_add(&texts->list);
    uint32_t number = (uint32_t)(texts->list.count - 1);
    if (!slot || !prof_names_put(&texts->by_text, key, bytes, number))
        return PROF_NO_GROUP;
    *slot = text;
    return number;
}

uint32_t prof_texts_number(struct prof_texts *texts, struct prof_capture *capture, int64_t id)
{
    uint64_t *known = prof_map_get(&texts->by_id, (uint64_t)id);
    if (known)
        return (uint32_t)*known;
    size_t length;
    const char *text = prof_string(capture, id, &length);
    uint32_t number = number_of_text(texts, text, length);
    if (number == PROF_NO_GROUP || !prof_map_put(&texts->by_id, (uint64_t)id, number))
        return PROF_NO_GROUP;
    return number;
}

void prof_texts_free(struct prof_texts *texts)
{
    prof_map_free(&texts->by_id);
    prof_names_free(&texts->by_text);
    prof_array_free(&texts->list);
}

uint32_t prof_kernel_number(struct prof_kernel_texts *texts, const struct prof_capture *capture,
                            int64_t config)
{
    const struct prof_config *its = prof_config(capture, config);
    const char *name = its ? its->name : NULL, none = 0;
    const char *key = name ? name : &none;
    size_t length = name ? strlen(name) : 1;
    uint32_t *known = prof_names_get(&texts->by_name, key, length);
    if (known)
        return *known;
    const char **slot = prof_array_add(&texts->list);
    uint32_t number = (uint32_t)texts->list.count - 1;
    if (!slot || !prof_names_put(&texts->by_name, key, length, number))
        return PROF_NO_GROUP;
    *slot = name;
    return number;
}

void prof_kernel_texts_free(struct prof_kernel_texts *texts)
{
    prof_names_free(&texts->by_name);
    prof_array_free(&texts->list);
}

uint32_t prof_group_number(struct prof_map *map, uint64_t key, bool *fresh)
{
    uint64_t *known = prof_map_get(map, key);
    *fresh = !known;
    if (known)
        return (uint32_t)*known;
    uint32_t number = (uint32_t)map->count;
    return prof_map_put(map, key, number) ? number : PROF_NO_GROUP;
}

/* ---- groups ---------------------------------------------------------------------------------- */

void *prof_group_add(struct prof_groups *groups)
{
    if (!prof_array_room(&groups->data, &groups->capacity, groups->count + 1, groups->bytes))
        return NULL;
    return memset(prof_group_at(groups, groups->count++), 0, groups->bytes);
}

void *prof_group_of_number(struct prof_groups *groups, uint64_t key, bool *fresh)
{
    uint32_t number = prof_group_number(&groups->by_number, key, fresh);
    if (number == PROF_NO_GROUP)
        return NULL;
    return *fresh ? prof_group_add(groups) : prof_group_at(groups, number);
}

void *prof_group_of_bytes(struct prof_groups *groups, const void *key, size_t length, bool *fresh)
{
    uint32_t *known = prof_names_get(&groups->by_bytes, key, length);
    *fresh = !known;
    if (known)
        return prof_group_at(groups, *known);
    if (!prof_names_put(&groups->by_bytes, key, length, (uint32_t)groups->count))
        return NULL;
    return prof_group_add(groups);
}

void *prof_groups_take(struct prof_groups *groups)
{
    void *data = groups->data;
    groups->data = NULL;
    groups->count = groups->capacity = 0;
    return data;
}

void prof_groups_free(struct prof_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++) {
        struct prof_gather *measures = prof_group_at(groups, i);
        for (size_t k = 0; k < groups->measures; k++)
            prof_gather_free(&measures[k]);
    }
    free(groups->data);
    prof_map_free(&groups->by_number);
    prof_names_free(&groups->by_bytes);
    *groups = (struct prof_groups){0};
}

/* ---- rows ------------------------------------------------------------------------------------ */

double prof_share(int64_t part, int64_t sum)
{
    return sum == PROF_UNKNOWN || sum <= 0 ? NAN : (double)part / (double)sum;
}

enum prof_status prof_scan(struct prof_capture *capture, const char *sql,
                           bool (*add)(void *user, sqlite3_stmt *row), void *user,
                           struct prof_error *err)
{
    sqlite3_stmt *row;
    enum prof_status status = prof_query(capture, sql, &row, err);
    if (status)
        return status;
    while (prof_row(row)) {
        if (!add(user, row)) {
            sqlite3_finalize(row);
            return prof_out_of_memory(err);
        }
    }
    return prof_query_end(capture, row, err);
}

static int64_t row_duration_sum(const struct prof_row_shape *shape, const char *row)
{
    struct prof_spread duration;
    memcpy(&duration, row + shape->duration, sizeof duration);
    return duration.sum;
}

int64_t prof_finish_rows(const struct prof_row_shape *shape, void *rows, size_t count,
                         int64_t wall_ns)
{
    char *row = rows;
    int64_t listed = 0;
    for (size_t i = 0; i < count; i++)
        listed = prof_add(listed, row_duration_sum(shape, row + i * shape->bytes));
    for (size_t i = 0; i < count; i++, row += shape->bytes) {
        double share = prof_share(row_duration_sum(shape, row), listed);
        double wall_share = prof_share(row_duration_sum(shape, row), wall_ns);
        memcpy(row + shape->share, &share, sizeof share);
        memcpy(row + shape->wall_share, &wall_share, sizeof wall_share);
    }
    if (count)
        qsort(rows, count, shape->bytes, shape->order);
    return listed;
}

int prof_order(int64_t sum_a, int64_t sum_b, const char *a, const char *b)
{
    if (sum_a != sum_b)
        return sum_a < sum_b ? 1 : -1;
    return strcmp(a ? a : "", b ? b : "");
}
