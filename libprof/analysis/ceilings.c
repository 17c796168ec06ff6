/* The ceilings of a capture's devices: what was measured on its machine, and theoretical peaks. */
#include <math.h>
#include <stdlib.h>

#include "libprof/analysis/capture.h"

typedef PROF_ARRAY(struct prof_ceiling) ceiling_list;

static struct prof_ceiling *known_row(const ceiling_list *list, int64_t device,
                                      enum prof_ceiling_kind kind)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->data[i].device == device && list->data[i].kind == kind)
            return &list->data[i];
    return NULL;
}

/* Its own ceiling stands before it in the table. */
static void take_sustained(const ceiling_list *list, const struct prof_device *device,
                           const char *name, double value)
{
    enum prof_ceiling_kind kind = prof_ceiling_sustained(name);
    struct prof_ceiling *ceiling =
        kind == PROF_CEILINGS ? NULL : known_row(list, device->physical, kind);
    if (ceiling && value > 0 && prof_ceiling_possible(value, prof_peak(device, kind).value))
        ceiling->sustained = value;
}

/* Names of later versions, and values that no device has or that this one cannot have, are left
 * out. */
static bool take_row(struct prof_capture *capture, sqlite3_stmt *row, ceiling_list *list)
{
    const struct prof_device *device = prof_device(capture, prof_column_id(row, 0));
    const char *name = (const char *)sqlite3_column_text(row, 1);
    enum prof_ceiling_kind kind = name ? prof_ceiling_named(name) : PROF_CEILINGS;
    double value = sqlite3_column_double(row, 2);
    if (device && name && kind == PROF_CEILINGS)
        take_sustained(list, device, name, value);
    if (!device || kind == PROF_CEILINGS || !(value > 0) || value > 1e30 ||
        !prof_ceiling_possible(value, prof_peak(device, kind).value) ||
        known_row(list, device->physical, kind))
        return true;
    struct prof_ceiling *ceiling = prof_array_add(list);
    if (!ceiling)
        return false;
    *ceiling = prof_ceiling_of(kind);
    ceiling->device = device->physical;
    ceiling->value = value;
    ceiling->measured = true;
    ceiling->date_s = prof_column_int(row, 3);
    const char *how = (const char *)sqlite3_column_text(row, 4);
    if (!how)
        return true;
    ceiling->how =
        prof_arena_copy(&capture->string_texts, how, (size_t)sqlite3_column_bytes(row, 4));
    return ceiling->how != NULL;
}

static enum prof_status read_measured(struct prof_capture *capture, ceiling_list *list,
                                      struct prof_error *err)
{
    sqlite3_stmt *row;
    enum prof_status status =
        prof_query(capture, "SELECT device, name, value, measured_at, how FROM ceiling ORDER BY id",
                   &row, err);
    if (status)
        return status;
    while (prof_row(row)) {
        if (!take_row(capture, row, list)) {
            sqlite3_finalize(row);
            return prof_out_of_memory(err);
        }
    }
    return prof_query_end(capture, row, err);
}

static bool add_peaks(const struct prof_capture *capture, ceiling_list *list)
{
    struct prof_ceiling peaks[PROF_CEILINGS];
    for (size_t d = 0; d < capture->devices.count; d++) {
        const struct prof_device *device = &capture->devices.data[d];
        if (device->physical != device->id)
            continue;
        size_t count = prof_peaks(device, peaks);
        for (size_t i = 0; i < count; i++) {
            struct prof_ceiling *slot = prof_array_add(list);
            if (!slot)
                return false;
            *slot = peaks[i];
        }
    }
    return true;
}

static int by_device_and_kind(const void *a, const void *b)
{
    const struct prof_ceiling *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (int)y->measured - (int)x->measured;
}

enum prof_status prof_ceilings(struct prof_capture *capture, struct prof_ceilings *result,
                               struct prof_error *err)
{
    ceiling_list list = {0};
    *result = (struct prof_ceilings){0};
    enum prof_status status = read_measured(capture, &list, err);
    if (!status && !add_peaks(capture, &list))
        status = prof_out_of_memory(err);
    if (status) {
        prof_array_free(&list);
        return status;
    }
    if (list.count)
        qsort(list.data, list.count, sizeof *list.data, by_device_and_kind);
    *result = (struct prof_ceilings){.rows = list.data, .count = list.count};
    return PROF_OK;
}

void prof_ceilings_free(struct prof_ceilings *result)
{
    free(result->rows);
    *result = (struct prof_ceilings){0};
}

const struct prof_ceiling *prof_ceiling_find(const struct prof_ceilings *ceilings, int64_t device,
                                             enum prof_ceiling_kind kind)
{
    for (size_t i = 0; i < ceilings->count; i++)
        if (ceilings->rows[i].device == device && ceilings->rows[i].kind == kind)
            return &ceilings->rows[i]; /* measured ones stand first */
    return NULL;
}

/* Reads alone are faster than copies, so a roof is the best that the memory was seen to do; a
 * theoretical peak beside measured ones is no competition. */
double prof_roof_ceiling(const struct prof_ceilings *ceilings, int64_t device,
                         enum prof_roof_level level)
{
    static const enum prof_ceiling_kind kinds[PROF_ROOF_LEVELS][2] = {
        [PROF_ROOF_DRAM] = {PROF_CEILING_DRAM_COPY, PROF_CEILING_DRAM_TRIAD},
        [PROF_ROOF_L2] = {PROF_CEILING_L2_READ, PROF_CEILING_L2_READ},
        [PROF_ROOF_LINK] = {PROF_CEILING_HTOD_PINNED, PROF_CEILING_DTOH_PINNED},
    };
    double best[2] = {NAN, NAN}; /* theoretical, measured */
    for (size_t i = 0; i < ceilings->count; i++) {
        const struct prof_ceiling *c = &ceilings->rows[i];
        if (c->device == device && c->kind >= kinds[level][0] && c->kind <= kinds[level][1])
            best[c->measured] = fmax(best[c->measured], c->value);
    }
    return isnan(best[1]) ? best[0] : best[1];
}
