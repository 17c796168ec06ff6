/* Unified memory by address: what moved each way, and the page faults. */
#include <stdlib.h>

#include "libprof/analysis/group.h"
#include "libprof/analysis/scope.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_stats.h"
#include "libprof/wire/memory.h"

struct work {
    struct prof_capture *capture;
    struct prof_scope scope;
    struct prof_map by_address;
    PROF_ARRAY(struct prof_migration_row) rows;
    struct prof_migration_row total;
};

static const struct prof_migration_row nothing = {
    PROF_UNKNOWN, PROF_UNKNOWN, PROF_UNKNOWN, PROF_UNKNOWN,
    PROF_UNKNOWN, PROF_UNKNOWN, PROF_UNKNOWN,
};

enum { START, DURATION, PROCESS, DEVICE, STREAM, KIND, BYTES, FAULTS, ADDRESS };
static const char select_migrations[] =
    "SELECT start, duration, process, coalesce(target, source), stream, kind, bytes, faults, "
    "address FROM migration";

/* A record of faults without a number is one fault. */
static void add_migration(struct prof_migration_row *row, int64_t kind, int64_t bytes,
                          int64_t duration, int64_t faults)
{
    int64_t number = faults == PROF_UNKNOWN ? 1 : faults;
    switch (kind) {
    case WIRE_MIGRATION_HTOD:
        prof_add_known(&row->htod_bytes, bytes);
        prof_add_known(&row->htod_ns, duration);
        break;
    case WIRE_MIGRATION_DTOH:
        prof_add_known(&row->dtoh_bytes, bytes);
        prof_add_known(&row->dtoh_ns, duration);
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
    uint32_t number = prof_group_number(&w->by_address, (uint64_t)address, &fresh);
    struct prof_migration_row *row =
        fresh && number != PROF_NO_GROUP ? prof_array_add(&w->rows) : NULL;
    if (number == PROF_NO_GROUP || (fresh && !row))
        return NULL;
    if (fresh) {
        *row = nothing;
        row->address = address;
    }
    return &w->rows.data[number];
}

static bool add_migration_row(void *user, sqlite3_stmt *row)
{
    struct work *w = user;
    int64_t address = prof_column_int(row, ADDRESS), kind = prof_column_id(row, KIND);
    int64_t bytes = prof_column_size(row, BYTES), duration = prof_column_size(row, DURATION);
    int64_t faults = prof_column_int(row, FAULTS);
    if (!prof_scope_time(&w->scope, prof_column_int(row, START)) ||
        !prof_scope_place(&w->scope, prof_column_id(row, STREAM), 0, prof_column_id(row, PROCESS),
                          prof_column_id(row, DEVICE)))
        return true;
    add_migration(&w->total, kind, bytes, duration, faults);
    if (address == PROF_UNKNOWN || kind < WIRE_MIGRATION_HTOD || kind > WIRE_MIGRATION_GPU_FAULT)
        return true;
    struct prof_migration_row *its = migration_row(w, address);
    if (its)
        add_migration(its, kind, bytes, duration, faults);
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
    struct work w = {.capture = capture, .total = nothing};
    *result = (struct prof_migration_summary){
        .total = nothing, .lowest = PROF_UNKNOWN, .highest = PROF_UNKNOWN};
    enum prof_status status = prof_scope_open(&w.scope, capture, filter, err);
    /* A migration knows no thread, so that no NVTX range holds it. */
    if (!status && !prof_scope_only_kernels(&w.scope) && !w.scope.by_range)
        status = prof_scan(capture, select_migrations, add_migration_row, &w, err);
    if (status) {
        prof_array_free(&w.rows);
    } else {
        if (w.rows.count)
            qsort(w.rows.data, w.rows.count, sizeof *w.rows.data, by_migration_address);
        result->rows = w.rows.data;
        result->count = w.rows.count;
        result->total = w.total;
        result->lowest = w.rows.count ? w.rows.data[0].address : PROF_UNKNOWN;
        result->highest = w.rows.count ? w.rows.data[w.rows.count - 1].address : PROF_UNKNOWN;
    }
    prof_map_free(&w.by_address);
    prof_scope_close(&w.scope);
    return status;
}

void prof_migration_summary_free(struct prof_migration_summary *result)
{
    free(result->rows);
    *result = (struct prof_migration_summary){0};
}
