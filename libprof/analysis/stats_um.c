/* Unified memory by address: what moved each way, and the page faults. */
#include <stdlib.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/group.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_stats.h"
#include "libprof/wire/memory.h"

struct work {
    struct prof_capture *capture;
    struct prof_scope scope;
    struct prof_groups rows; /* of the result, by address */
    struct prof_migration_row total;
};

static const struct prof_migration_row nothing = {
    PROF_UNKNOWN, PROF_UNKNOWN, PROF_UNKNOWN, PROF_UNKNOWN,
    PROF_UNKNOWN, PROF_UNKNOWN, PROF_UNKNOWN,
};

/* A record of faults without a number is one fault. */
static void add_migration(struct prof_migration_row *row, const struct prof_event_row *its)
{
    int64_t number = its->faults == PROF_UNKNOWN ? 1 : its->faults;
    switch (its->what) {
    case WIRE_MIGRATION_HTOD:
        prof_add_known(&row->htod_bytes, its->bytes);
        prof_add_known(&row->htod_ns, its->duration_ns);
        break;
    case WIRE_MIGRATION_DTOH:
        prof_add_known(&row->dtoh_bytes, its->bytes);
        prof_add_known(&row->dtoh_ns, its->duration_ns);
        break;
    case WIRE_MIGRATION_CPU_FAULT:
        prof_add_known(&row->cpu_faults, number);
        break;
    case WIRE_MIGRATION_GPU_FAULT:
        prof_add_known(&row->gpu_faults, number);
        break;
    default:
        break;
    }
}

static struct prof_migration_row *migration_row(struct work *w, int64_t address)
{
    bool fresh;
    struct prof_migration_row *row = prof_group_of_number(&w->rows, (uint64_t)address, &fresh);
    if (row && fresh) {
        *row = nothing;
        row->address = address;
    }
    return row;
}

static bool add_migration_row(void *user, const struct prof_event_row *row)
{
    struct work *w = user;
    add_migration(&w->total, row);
    if (row->address == PROF_UNKNOWN || row->what < WIRE_MIGRATION_HTOD ||
        row->what > WIRE_MIGRATION_GPU_FAULT)
        return true;
    struct prof_migration_row *its = migration_row(w, row->address);
    if (its)
        add_migration(its, row);
    return its;
}

static int by_migration_address(const void *a, const void *b)
{
    uint64_t x = (uint64_t)((const struct prof_migration_row *)a)->address;
    uint64_t y = (uint64_t)((const struct prof_migration_row *)b)->address;
    return (x > y) - (x < y);
}

enum prof_status prof_migration_summary(struct prof_capture *capture,
                                        const struct prof_filter *filter,
                                        struct prof_migration_summary *result,
                                        struct prof_error *err)
{
    struct work w = {
        .capture = capture, .rows = PROF_GROUPS(struct prof_migration_row, 0), .total = nothing};
    struct prof_event_query query = {
        .tables = PROF_OPS(MIGRATION),
        .fields = PROF_FIELD(START) | PROF_FIELD(DURATION) | PROF_FIELD(KIND) | PROF_FIELD(BYTES) |
                  PROF_FIELD(FAULTS) | PROF_FIELD(ADDRESS),
        .scope = &w.scope,
    };
    *result = (struct prof_migration_summary){
        .total = nothing, .lowest = PROF_UNKNOWN, .highest = PROF_UNKNOWN};
    enum prof_status status = prof_scope_open(&w.scope, capture, filter, err);
    /* A migration knows no thread, so that no NVTX range holds it. */
    if (!status && !prof_scope_only_kernels(&w.scope) && !w.scope.by_range)
        status = prof_event_rows(capture, &query, add_migration_row, &w, err);
    if (!status && w.rows.count) {
        result->count = w.rows.count;
        result->rows = prof_groups_take(&w.rows);
        qsort(result->rows, result->count, sizeof *result->rows, by_migration_address);
        result->lowest = result->rows[0].address;
        result->highest = result->rows[result->count - 1].address;
    }
    if (!status)
        result->total = w.total;
    prof_groups_free(&w.rows);
    prof_scope_close(&w.scope);
    return status;
}

void prof_migration_summary_free(struct prof_migration_summary *result)
{
    free(result->rows);
    *result = (struct prof_migration_summary){0};
}
