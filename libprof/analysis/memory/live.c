/* Memory: what is live over time and at one moment, and pools. Allocations in order of start, and a
 * heap of the ends of those alive, give every change in order while holding only what is alive. */
#include <stdlib.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/group.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_memory.h"
#include "libprof/wire/memory.h"

#define KINDS 256

/* ---- changes of live memory, in order -------------------------------------------------------- */

struct change {
    int64_t time_ns;
    int64_t bytes; /* negative for a free */
    int kind;
};

struct pending {
    int64_t end_ns, bytes;
    int kind;
};

struct walk {
    struct prof_capture *capture;
    struct prof_scope scope, passes; /* what rows must pass: a borrowed copy */
    bool cut; /* keep allocations that cross the range's edges, instead of those that start in it */
    struct prof_event_cursor *rows;
    struct prof_allocation next;
    bool has_next;
    PROF_ARRAY(struct pending) alive; /* heap by end */
};

static void fetch(struct walk *w)
{
    const struct prof_event_row *row;
    w->has_next = false;
    while (!w->has_next && (row = prof_event_cursor_next(w->rows))) {
        w->next = prof_allocation_of_row(row);
        w->next.bytes = w->next.bytes > 0 ? w->next.bytes : 0; /* damaged */
        w->has_next =
            !w->cut || (w->next.start_ns < w->scope.end_ns &&
                        (w->next.end_ns == PROF_UNKNOWN || w->next.end_ns > w->scope.begin_ns));
    }
}

/* Allocations in order of start. */
static enum prof_status walk_open(struct walk *w, struct prof_capture *capture,
                                  const struct prof_filter *filter, bool cut,
                                  struct prof_error *err)
{
    *w = (struct walk){.capture = capture, .cut = cut};
    PROF_TRY(prof_scope_open(&w->scope, capture, filter, err));
    w->passes = w->scope;
    w->passes.by_time &= !cut;
    /* A kernel's name or a stream says nothing about memory: such a filter leaves nothing. */
    bool none = w->scope.configs || w->scope.filter.stream || w->scope.filter.stream_count;
    struct prof_event_query query = {.tables = none ? 0 : PROF_OPS(ALLOCATION),
                                     .fields = PROF_FIELDS_ALLOCATION,
                                     .scope = &w->passes,
                                     .started = true,
                                     .in_order = true};
    enum prof_status status = prof_event_cursor_open(capture, &query, &w->rows, err);
    if (status)
        prof_scope_close(&w->scope);
    else
        fetch(w);
    return status;
}

static enum prof_status walk_close(struct walk *w, struct prof_error *err)
{
    enum prof_status status = prof_event_cursor_close(w->rows, err);
    prof_array_free(&w->alive);
    prof_scope_close(&w->scope);
    return status;
}

static bool ends_before(const struct pending *a, const struct pending *b)
{
    return a->end_ns < b->end_ns;
}

/* The next change; at one moment frees come before allocations. *made: it is an allocation, then in
 * w->made. False at the end; *failed when out of memory. */
static bool next_change(struct walk *w, struct change *change, struct prof_allocation *made,
                        bool *is_made, bool *failed)
{
    *is_made = false;
    if (w->alive.count && (!w->has_next || w->alive.data[0].end_ns <= w->next.start_ns)) {
        struct pending p = w->alive.data[0], last = w->alive.data[--w->alive.count];
        PROF_HEAP_SINK(w->alive.data, w->alive.count, last, ends_before);
        *change = (struct change){p.end_ns, -p.bytes, p.kind};
        return true;
    }
    if (!w->has_next)
        return false;
    *made = w->next;
    *is_made = true;
    if (made->end_ns != PROF_UNKNOWN) {
        int64_t end = made->end_ns < made->start_ns ? made->start_ns : made->end_ns;
        struct pending p = {end, made->bytes, made->kind};
        *failed = !prof_array_reserve(&w->alive, 1);
        if (*failed)
            return false;
        PROF_HEAP_PUSH(w->alive.data, w->alive.count, p, ends_before);
    }
    *change = (struct change){made->start_ns, made->bytes, made->kind};
    fetch(w);
    return true;
}

/* ---- summary --------------------------------------------------------------------------------- */

struct sum {
    struct prof_gather bytes;
    int64_t live, peak, peak_ns, freed, leaks, leaked_bytes;
};

static void add_live_change(struct sum *s, const struct change *c)
{
    s->live = prof_add(s->live, c->bytes);
    if (c->bytes > 0 && (s->live > s->peak || s->peak_ns == PROF_UNKNOWN)) {
        s->peak = s->live;
        s->peak_ns = c->time_ns;
    }
}

/* A sub-buffer, or an image over a buffer, has no bytes of its own. */
static bool leaked(const struct prof_allocation *a)
{
    return a->end_ns == PROF_UNKNOWN && a->bytes && !prof_memory_is_static(a->kind);
}

static void add_made(struct sum *s, struct prof_spread_budget *budget,
                     const struct prof_allocation *a)
{
    prof_gather_add(&s->bytes, budget, a->bytes);
    if (a->end_ns != PROF_UNKNOWN) {
        s->freed++;
    } else if (leaked(a)) {
        s->leaks++;
        s->leaked_bytes = prof_add(s->leaked_bytes, a->bytes);
    }
}

/* The list keeps the largest as a heap with the smallest on top. */
static bool smaller(const struct prof_allocation *a, const struct prof_allocation *b)
{
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->id > b->id;
}

static void list_leak(struct prof_memory_summary *result, size_t limit,
                      const struct prof_allocation *a)
{
    if (result->leak_count < limit)
        PROF_HEAP_PUSH(result->leaks, result->leak_count, *a, smaller);
    else if (limit && smaller(&result->leaks[0], a))
        PROF_HEAP_SINK(result->leaks, limit, *a, smaller);
}

static int largest_allocation(const void *a, const void *b)
{
    return smaller(a, b) ? 1 : -1;
}

PROF_ORDER(highest_peak, struct prof_memory_row, PROF_DESCENDING(peak_bytes), PROF_ASCENDING(kind))

static struct prof_memory_row memory_sum_row(struct sum *s, int kind)
{
    return (struct prof_memory_row){
        .kind = kind,
        .kind_text = kind < 0 ? "all" : prof_memory_kind_text(kind),
        .bytes = prof_gather_result(&s->bytes),
        .freed = s->freed,
        .peak_bytes = s->peak,
        .peak_ns = s->peak_ns,
        .leaks = s->leaks,
        .leaked_bytes = s->leaked_bytes,
    };
}

static enum prof_status summarise_memory(struct walk *w, struct sum *sums, size_t leak_limit,
                                         struct prof_memory_summary *result, struct prof_error *err)
{
    struct prof_spread_budget budget = {0};
    struct change change;
    struct prof_allocation made;
    bool is_made, failed = false;
    while (next_change(w, &change, &made, &is_made, &failed)) {
        add_live_change(&sums[change.kind], &change);
        add_live_change(&sums[KINDS], &change);
        if (!is_made)
            continue;
        add_made(&sums[made.kind], &budget, &made);
        add_made(&sums[KINDS], &budget, &made);
        if (leaked(&made))
            list_leak(result, leak_limit, &made);
    }
    return failed ? prof_out_of_memory(err) : PROF_OK;
}

enum prof_status prof_memory_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                     size_t leak_limit, struct prof_memory_summary *result,
                                     struct prof_error *err)
{
    struct walk w;
    *result = (struct prof_memory_summary){0};
    struct sum *sums = calloc(KINDS + 1, sizeof *sums);
    result->rows = calloc(KINDS, sizeof *result->rows);
    result->leaks = calloc(leak_limit + 1, sizeof *result->leaks);
    enum prof_status status = PROF_OK;
    if (!sums || !result->rows || !result->leaks) {
        status = prof_out_of_memory(err);
        goto out;
    }
    for (int k = 0; k <= KINDS; k++)
        sums[k].peak_ns = PROF_UNKNOWN;
    status = walk_open(&w, capture, filter, false, err);
    if (status)
        goto out;
    status = summarise_memory(&w, sums, leak_limit, result, err);
    enum prof_status end = walk_close(&w, status ? NULL : err);
    status = status ?: end;
    if (status)
        goto out;
    for (int k = 0; k < KINDS; k++)
        if (sums[k].bytes.count)
            result->rows[result->count++] = memory_sum_row(&sums[k], k);
    result->total = memory_sum_row(&sums[KINDS], -1);
    qsort(result->rows, result->count, sizeof *result->rows, highest_peak);
    qsort(result->leaks, result->leak_count, sizeof *result->leaks, largest_allocation);
out:
    for (int k = 0; sums && k <= KINDS; k++)
        prof_gather_free(&sums[k].bytes);
    free(sums);
    if (status)
        prof_memory_summary_free(result);
    return status;
}

void prof_memory_summary_free(struct prof_memory_summary *result)
{
    free(result->rows);
    free(result->leaks);
    *result = (struct prof_memory_summary){0};
}

/* ---- timeline -------------------------------------------------------------------------------- */

/* What changed within a span of time; without thinning all of it at time_ns. */
struct bucket {
    int64_t time_ns, last_ns; /* its first and its last change */
    int64_t bytes;            /* from last_ns on */
    int64_t peak_bytes;       /* before last_ns */
    double byte_ns;           /* before last_ns: bytes times how long */
};

struct line {
    struct prof_memory_timeline *result;
    PROF_ARRAY(struct bucket) buckets;
    size_t limit;    /* of buckets, 0 = none */
    int64_t span_ns; /* of one bucket when thinned */
    int64_t live;
};

static void hold_until(struct bucket *b, int64_t time)
{
    if (b->bytes > b->peak_bytes)
        b->peak_bytes = b->bytes;
    b->byte_ns += (double)b->bytes * (double)prof_subtract(time, b->last_ns);
}

/* Too many buckets: join neighbours into spans twice as long as now, or as the whole needs. */
static void thin(struct line *l)
{
    struct bucket *buckets = l->buckets.data;
    size_t count = l->buckets.count, kept = 1; /* the first stays */
    int64_t whole = prof_subtract(buckets[count - 1].time_ns, buckets[0].time_ns);
    int64_t wanted = whole / (int64_t)(l->limit / 2) + 1;
    l->span_ns = l->span_ns > INT64_MAX / 2 ? INT64_MAX : l->span_ns * 2;
    if (l->span_ns < wanted)
        l->span_ns = wanted;
    for (size_t i = 1; i < count; i++) {
        struct bucket *last = &buckets[kept - 1], next = buckets[i];
        if (prof_subtract(next.last_ns, last->time_ns) >= l->span_ns) {
            buckets[kept++] = next;
            continue;
        }
        hold_until(last, next.time_ns);
        if (next.peak_bytes > last->peak_bytes)
            last->peak_bytes = next.peak_bytes;
        last->byte_ns += next.byte_ns;
        last->bytes = next.bytes;
        last->last_ns = next.last_ns;
    }
    l->buckets.count = kept;
    l->result->thinned = true;
}

/* From `time` on, later than any before, l->live bytes are live. */
static bool add_live_level(struct line *l, int64_t time)
{
    struct bucket *last = l->buckets.count ? &l->buckets.data[l->buckets.count - 1] : NULL;
    if (l->result->thinned && prof_subtract(time, last->time_ns) < l->span_ns) {
        hold_until(last, time);
        last->bytes = l->live;
        last->last_ns = time;
        return true;
    }
    struct bucket *added = prof_array_add(&l->buckets);
    if (!added)
        return false;
    *added = (struct bucket){.time_ns = time, .last_ns = time, .bytes = l->live};
    if (l->limit && l->buckets.count > l->limit)
        thin(l);
    return true;
}

/* A bucket with changes at several times is two points: mean and peak up to the last change, then
 * the level that stays. */
static bool make_timeline_points(struct line *l)
{
    struct prof_memory_timeline *r = l->result;
    r->points = calloc(2 * l->buckets.count, sizeof *r->points);
    for (size_t i = 0; r->points && i < l->buckets.count; i++) {
        const struct bucket *b = &l->buckets.data[i];
        if (b->last_ns > b->time_ns)
            r->points[r->count++] = (struct prof_memory_point){
                b->time_ns, (int64_t)(b->byte_ns / (double)prof_subtract(b->last_ns, b->time_ns)),
                b->peak_bytes};
        r->points[r->count++] = (struct prof_memory_point){b->last_ns, b->bytes, b->bytes};
    }
    return r->points != NULL;
}

static enum prof_status draw(struct walk *w, struct line *l, int kind, struct prof_error *err)
{
    struct change change;
    struct prof_allocation made;
    bool is_made, failed = false;
    int64_t begin = w->scope.begin_ns, end = w->scope.end_ns;
    struct prof_memory_timeline *r = l->result;
    int64_t time = begin;
    bool ok = true;
    while (ok && next_change(w, &change, &made, &is_made, &failed)) {
        if ((kind >= 0 && change.kind != kind) || change.time_ns >= end)
            continue;
        if (change.time_ns > time) {
            ok = add_live_level(l, time);
            time = change.time_ns;
        }
        l->live = prof_add(l->live, change.bytes);
        if (change.time_ns <= begin || l->live > r->peak_bytes) {
            r->peak_bytes = l->live;
            r->peak_ns = time;
        }
    }
    ok = ok && add_live_level(l, time);
    ok = ok && make_timeline_points(l);
    return ok && !failed ? PROF_OK : prof_out_of_memory(err);
}

enum prof_status prof_memory_timeline(struct prof_capture *capture,
                                      const struct prof_filter *filter, int kind, size_t max_points,
                                      struct prof_memory_timeline *result, struct prof_error *err)
{
    *result = (struct prof_memory_timeline){.peak_ns = PROF_UNKNOWN};
    struct line line = {.result = result,
                        .limit = max_points && max_points < 16 ? 8 : max_points / 2};
    struct walk w;
    PROF_TRY(walk_open(&w, capture, filter, true, err));
    enum prof_status status = draw(&w, &line, kind, err);
    prof_array_free(&line.buckets);
    enum prof_status end = walk_close(&w, status ? NULL : err);
    status = status ?: end;
    if (status)
        prof_memory_timeline_free(result);
    return status;
}

void prof_memory_timeline_free(struct prof_memory_timeline *result)
{
    free(result->points);
    *result = (struct prof_memory_timeline){0};
}

/* ---- alive at one moment --------------------------------------------------------------------- */

enum prof_status prof_memory_alive(struct prof_capture *capture, const struct prof_filter *filter,
                                   int kind, int64_t at_ns, size_t limit, struct prof_alive *result,
                                   struct prof_error *err)
{
    struct prof_filter then = filter ? *filter : (struct prof_filter){0};
    PROF_ARRAY(struct prof_allocation) alive = {0};
    struct walk w;
    then.begin_ns = at_ns;
    then.end_ns = prof_add(at_ns, 1);
    *result = (struct prof_alive){0};
    enum prof_status status = walk_open(&w, capture, &then, true, err);
    if (status)
        return status;
    for (; !status && w.has_next; fetch(&w)) {
        if (kind >= 0 && w.next.kind != kind)
            continue;
        result->total_bytes = prof_add(result->total_bytes, w.next.bytes);
        if (!prof_array_push(&alive, w.next))
            status = prof_out_of_memory(err);
    }
    enum prof_status end = walk_close(&w, status ? NULL : err);
    status = status ?: end;
    prof_array_sort(&alive, largest_allocation);
    result->rows = alive.data;
    result->count = alive.count < limit ? alive.count : limit;
    result->total = (int64_t)alive.count;
    if (status)
        prof_alive_free(result);
    return status;
}

PROF_FREE_ROWS(prof_alive)

/* ---- pools, out of the records of what happened to them -------------------------------------- */

struct pools {
    struct prof_capture *capture;
    struct prof_scope scope;
    struct prof_map living; /* (process, address) mixed -> index */
    PROF_ARRAY(struct prof_pool) pools;
};

enum {
    POOL_START,
    POOL_PROCESS,
    POOL_ADDRESS,
    POOL_OPERATION,
    POOL_DEVICE,
    POOL_BYTES,
    POOL_USED,
    POOL_THRESHOLD,
    POOL_THREAD
};
static const char select_pools[] =
    "SELECT start, process, pool, operation, device, bytes, used_bytes, threshold_bytes, thread "
    "FROM memory_pool ORDER BY start, id";

static struct prof_pool *pool_of(struct pools *w, int64_t process, int64_t address, bool is_new)
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
    struct pools *w = user;
    int64_t start = prof_column_int(row, POOL_START), process = prof_column_id(row, POOL_PROCESS);
    int64_t device = prof_column_id(row, POOL_DEVICE),
            operation = prof_column_id(row, POOL_OPERATION);
    if (!prof_scope_time(&w->scope, start) ||
        !prof_scope_place(&w->scope, 0, prof_column_id(row, POOL_THREAD), process, device) ||
        !prof_scope_called(&w->scope, prof_column_id(row, POOL_THREAD), start, 0, PROF_UNKNOWN))
        return true;
    struct prof_pool *pool =
        pool_of(w, process, prof_column_id(row, POOL_ADDRESS), operation == WIRE_POOL_CREATED);
    if (!pool)
        return false;
    int64_t bytes = prof_column_size(row, POOL_BYTES), used = prof_column_size(row, POOL_USED);
    int64_t threshold = prof_column_int(row, POOL_THRESHOLD);
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

PROF_ORDER(by_pool_peak, struct prof_pool, PROF_DESCENDING(peak_bytes), PROF_ASCENDING(made_ns))

enum prof_status prof_pool_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                   struct prof_pool_summary *result, struct prof_error *err)
{
    struct pools w = {.capture = capture};
    *result = (struct prof_pool_summary){0};
    enum prof_status status = prof_scope_open(&w.scope, capture, filter, err);
    if (!status && !prof_scope_only_kernels(&w.scope))
        status = prof_scan(capture, select_pools, add_pool_row, &w, err);
    if (!status && w.pools.count)
        prof_array_sort(&w.pools, by_pool_peak);
    if (status)
        prof_array_free(&w.pools);
    result->rows = w.pools.data;
    result->count = w.pools.count;
    prof_map_free(&w.living);
    prof_scope_close(&w.scope);
    return status;
}

PROF_FREE_ROWS(prof_pool_summary)
