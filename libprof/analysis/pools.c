/* Memory pools, out of the records of what happened to them. */
#include <stdlib.h>

#include "libprof/analysis/group.h"
#include "libprof/analysis/scope.h"
#include "libprof/wire/memory.h"

struct work {
    struct prof_capture *capture;
    struct prof_scope scope;
    struct prof_map living; /* (process, address) mixed -> index */
    PROF_ARRAY(struct prof_pool) pools;
};

enum { START, PROCESS, POOL, OPERATION, DEVICE, BYTES, USED, THRESHOLD, THREAD };
static const char select_pools[] =
    "SELECT start, process, pool, operation, device, bytes, used_bytes, threshold_bytes, thread "
    "FROM memory_pool ORDER BY start, id";

static struct prof_pool *pool_of(struct work *w, int64_t process, int64_t address, bool is_new)
{
    uint64_t key = (uint64_t)address * 0x9e3779b97f4a7c15ull + (uint64_t)process;
    uint64_t *known = prof_map_get(&w->living, key);
    if (known && !is_new && w->pools.data[*known].destroyed_ns == PROF_UNKNOWN)
        return &w->pools.data[*known];
    struct prof_pool *pool = prof_array_add(&w->pools);
    if (!pool || !prof_map_put(&w->living, key, w->pools.count - 1))
        return NULL;
    *pool = (struct prof_pool){
        .process = process,
        .address = address,
        .made_ns = PROF_UNKNOWN,
        .destroyed_ns = PROF_UNKNOWN,
        .peak_bytes = PROF_UNKNOWN,
        .peak_used_bytes = PROF_UNKNOWN,
        .unused_bytes = PROF_UNKNOWN,
        .threshold_bytes = PROF_UNKNOWN,
    };
    return pool;
}

static bool add_pool_row(void *user, sqlite3_stmt *row)
{
    struct work *w = user;
    int64_t start = prof_column_int(row, START), process = prof_column_id(row, PROCESS);
    int64_t device = prof_column_id(row, DEVICE), operation = prof_column_id(row, OPERATION);
    if (!prof_scope_time(&w->scope, start) ||
        !prof_scope_place(&w->scope, 0, prof_column_id(row, THREAD), process, device) ||
        !prof_scope_called(&w->scope, prof_column_id(row, THREAD), start, 0, PROF_UNKNOWN))
        return true;
    struct prof_pool *pool =
        pool_of(w, process, prof_column_id(row, POOL), operation == WIRE_POOL_CREATED);
    if (!pool)
        return false;
    int64_t bytes = prof_column_size(row, BYTES), used = prof_column_size(row, USED);
    int64_t threshold = prof_column_int(row, THRESHOLD);
    pool->device = device ? device : pool->device;
    pool->trims += operation == WIRE_POOL_TRIMMED;
    if (operation == WIRE_POOL_CREATED)
        pool->made_ns = start;
    else if (operation == WIRE_POOL_DESTROYED)
        pool->destroyed_ns = start;
    if (bytes > pool->peak_bytes) { /* PROF_UNKNOWN is below everything */
        pool->peak_bytes = bytes;
        pool->unused_bytes = PROF_UNKNOWN;
    }
    if (used > pool->peak_used_bytes)
        pool->peak_used_bytes = used;
    bool both = used >= 0 && used <= bytes; /* both are known */
    if (both && bytes == pool->peak_bytes && bytes - used > pool->unused_bytes)
        pool->unused_bytes = bytes - used;
    if (threshold != PROF_UNKNOWN) /* UINT64_MAX, "give nothing back", is -1 in the file */
        pool->threshold_bytes = threshold < 0 ? INT64_MAX : threshold;
    return true;
}

static int by_pool_peak(const void *a, const void *b)
{
    const struct prof_pool *x = a, *y = b;
    if (x->peak_bytes != y->peak_bytes)
        return x->peak_bytes < y->peak_bytes ? 1 : -1;
    return (x->made_ns > y->made_ns) - (x->made_ns < y->made_ns);
}

enum prof_status prof_pool_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                   struct prof_pool_summary *result, struct prof_error *err)
{
    struct work w = {.capture = capture};
    *result = (struct prof_pool_summary){0};
    enum prof_status status = prof_scope_open(&w.scope, capture, filter, err);
    if (!status && !prof_scope_only_kernels(&w.scope))
        status = prof_scan(capture, select_pools, add_pool_row, &w, err);
    if (!status && w.pools.count)
        qsort(w.pools.data, w.pools.count, sizeof *w.pools.data, by_pool_peak);
    if (status)
        prof_array_free(&w.pools);
    result->rows = w.pools.data;
    result->count = w.pools.count;
    prof_map_free(&w.living);
    prof_scope_close(&w.scope);
    return status;
}

void prof_pool_summary_free(struct prof_pool_summary *result)
{
    free(result->rows);
    *result = (struct prof_pool_summary){0};
}
