/* Transfer summary: copies by direction and memory kinds, and fills, with bytes and rates; and the
 * same by direction alone, or by direction and size. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/group.h"
#include "libprof/analysis/scope.h"
#include "libprof/analysis/spread.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_stats.h"

enum grouping { BY_MEMORY, BY_OPERATION, BY_SIZE };

struct group {
    int kind, source, target;
    const char *api; /* only when grouped by operation */
    int64_t unfinished, blocking;
    struct prof_gather duration, bytes, rate;
    double rate_bytes, rate_ns; /* of the transfers counted in `rate` */
};

struct work {
    struct prof_capture *capture;
    struct prof_scope scope;
    struct prof_map by_kinds;
    PROF_ARRAY(struct group) groups;
    struct prof_spread_budget budget;
    enum grouping by;
};

enum { START, DURATION, STREAM, THREAD, LEAD, BYTES, KIND, SOURCE, TARGET, BLOCKING, CORRELATION };
static const char *const queries[] = {
    "SELECT start, duration, stream, thread, api_lead, bytes, kind, source_kind, target_kind, "
    "blocking, correlation FROM transfer",
    "SELECT start, duration, stream, thread, api_lead, bytes, 100, NULL, memory_kind, NULL, "
    "correlation FROM memset",
};

static const char *const apis[] = {NULL, "cuda", "opencl"};

/* Its number in `apis`. */
static int api_of(const struct work *w, int64_t stream)
{
    const struct prof_stream *s = prof_stream(w->capture, stream);
    for (int i = 1; s && s->api && i < (int)(sizeof apis / sizeof apis[0]); i++) {
        if (!strcmp(s->api, apis[i]))
            return i;
    }
    return 0;
}

/* 0: unknown, 1: no bytes, 2 + n: from 4^n bytes on. */
static int bytes_class(int64_t bytes)
{
    return bytes == PROF_UNKNOWN ? 0
           : bytes <= 0          ? 1
                                 : 2 + (63 - __builtin_clzll((uint64_t)bytes)) / 2;
}

/* By operation and by size the number of API or class stands in place of `source`. */
static struct group *transfer_group(struct work *w, int kind, int source, int target)
{
    bool fresh;
    uint64_t key = (uint64_t)(unsigned)kind << 16 | (unsigned)source << 8 | (unsigned)target;
    uint32_t number = prof_group_number(&w->by_kinds, key, &fresh);
    if (number == PROF_NO_GROUP)
        return NULL;
    if (fresh) {
        struct group *g = prof_array_add(&w->groups);
        if (!g)
            return NULL;
        *g = (struct group){.kind = kind, .source = source, .target = target};
        if (w->by == BY_OPERATION)
            g->api = apis[source];
    }
    return &w->groups.data[number];
}

static void add_transfer_rate(struct work *w, struct group *g, int64_t bytes, int64_t duration)
{
    if (bytes <= 0 || duration <= 0)
        return;
    double rate = (double)bytes * 1e9 / (double)duration;
    if (rate < 9e18)
        prof_gather_add(&g->rate, &w->budget, (int64_t)(rate + 0.5));
    g->rate_bytes += (double)bytes;
    g->rate_ns += (double)duration;
}

static bool add_transfer_row(void *user, sqlite3_stmt *row)
{
    struct work *w = user;
    int64_t start = prof_column_int(row, START), duration = prof_column_size(row, DURATION);
    int64_t bytes = prof_column_size(row, BYTES);
    struct prof_row_place place = {prof_column_id(row, STREAM), prof_column_id(row, THREAD), start,
                                   prof_column_int(row, LEAD), CORRELATION};
    if (!prof_scope_row(&w->scope, row, &place))
        return true;
    struct group *g =
        w->by == BY_OPERATION
            ? transfer_group(w, prof_column_code(row, KIND), api_of(w, place.stream), 0)
        : w->by == BY_SIZE
            ? transfer_group(w, prof_column_code(row, KIND), bytes_class(bytes), 0)
            : transfer_group(w, prof_column_code(row, KIND), prof_column_code(row, SOURCE),
                             prof_column_code(row, TARGET));
    if (!g)
        return false;
    if (sqlite3_column_int64(row, BLOCKING) == 1)
        g->blocking++;
    if (bytes != PROF_UNKNOWN)
        prof_gather_add(&g->bytes, &w->budget, bytes);
    if (start == PROF_UNKNOWN || duration == PROF_UNKNOWN) {
        g->unfinished++;
        return true;
    }
    prof_gather_add(&g->duration, &w->budget, duration);
    if (prof_copy_moves(w->capture, g->kind, place.stream))
        add_transfer_rate(w, g, bytes, duration);
    return true;
}

void prof_memory_operations_add(struct prof_memory_operations *sum, int kind, int64_t count,
                                int64_t bytes, int64_t ns)
{
    bool memset_ = kind == PROF_COPY_MEMSET;
    int64_t *counts = memset_ ? &sum->memsets : &sum->memcpys;
    int64_t *sizes = memset_ ? &sum->memset_bytes : &sum->memcpy_bytes;
    int64_t *times = memset_ ? &sum->memset_ns : &sum->memcpy_ns;
    *counts = prof_add(*counts, count);
    *sizes = prof_add(*sizes, bytes);
    *times = prof_add(*times, ns);
}

void prof_memory_operations_text(const struct prof_memory_operations *sum, char *out, size_t size)
{
    int n = 0;
    if (sum->memcpys || !sum->memsets)
        n = snprintf(out, size, "%s (%s, %s)", prof_counted(sum->memcpys, "memcpy", "memcpys").text,
                     prof_bytes_of(sum->memcpy_bytes).text, prof_duration_ns(sum->memcpy_ns).text);
    if (sum->memsets)
        snprintf(out + n, size - (size_t)n, "%s%s (%s, %s)", n ? ", " : "",
                 prof_counted(sum->memsets, "memset", "memsets").text,
                 prof_bytes_of(sum->memset_bytes).text, prof_duration_ns(sum->memset_ns).text);
}

static int by_transfer_sum(const void *a, const void *b)
{
    const struct prof_transfer_row *x = a, *y = b;
    if (x->duration_ns.sum != y->duration_ns.sum)
        return x->duration_ns.sum < y->duration_ns.sum ? 1 : -1;
    int kinds = x->kind - y->kind;
    return kinds ? kinds
                 : (x->source_kind - y->source_kind) * 256 + x->target_kind - y->target_kind;
}

static bool make_transfer_rows(struct work *w, struct prof_transfer_summary *result)
{
    if (!w->groups.count)
        return true;
    result->rows = calloc(w->groups.count, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->groups.count; i++) {
        struct group *g = &w->groups.data[i];
        struct prof_transfer_row *r = &result->rows[result->count++];
        *r = (struct prof_transfer_row){
            .kind = g->kind,
            .source_kind = g->source,
            .target_kind = g->target,
            .kind_text = prof_copy_kind_text(g->kind),
            .source_text = prof_memory_kind_text(g->source),
            .target_text = prof_memory_kind_text(g->target),
            .duration_ns = prof_gather_result(&g->duration),
            .bytes = prof_gather_result(&g->bytes),
            .rate = prof_gather_result(&g->rate),
            .mean_rate = g->rate_ns > 0 ? g->rate_bytes * 1e9 / g->rate_ns : NAN,
            .unfinished = g->unfinished,
            .blocking = g->blocking,
        };
        result->unfinished += r->unfinished;
        prof_memory_operations_add(&result->total, r->kind, r->duration_ns.count + r->unfinished,
                                   r->bytes.sum, r->duration_ns.sum);
    }
    static const struct prof_row_shape shape = PROF_ROW_SHAPE(prof_transfer_row, by_transfer_sum);
    result->listed_ns = prof_finish_rows(&shape, result->rows, result->count, result->wall_ns);
    return true;
}

static enum prof_status scan_transfers(struct work *w, const struct prof_filter *filter,
                                       struct prof_error *err)
{
    enum prof_status status = prof_scope_open(&w->scope, w->capture, filter, err);
    bool excluded = prof_scope_only_kernels(&w->scope);
    for (size_t i = 0; !status && !excluded && i < sizeof queries / sizeof queries[0]; i++)
        status = prof_scan(w->capture, queries[i], add_transfer_row, w, err);
    return status;
}

static void close_transfers_work(struct work *w)
{
    for (size_t i = 0; i < w->groups.count; i++) {
        prof_gather_free(&w->groups.data[i].duration);
        prof_gather_free(&w->groups.data[i].bytes);
        prof_gather_free(&w->groups.data[i].rate);
    }
    prof_array_free(&w->groups);
    prof_map_free(&w->by_kinds);
    prof_scope_close(&w->scope);
}

enum prof_status prof_transfer_summary(struct prof_capture *capture,
                                       const struct prof_filter *filter,
                                       struct prof_transfer_summary *result, struct prof_error *err)
{
    struct work w = {.capture = capture};
    *result = (struct prof_transfer_summary){.wall_ns = prof_wall_ns(capture, filter)};
    enum prof_status status = scan_transfers(&w, filter, err);
    if (!status && !make_transfer_rows(&w, result))
        status = prof_out_of_memory(err);
    close_transfers_work(&w);
    return status;
}

/* ---- by operation ---------------------------------------------------------------------------- */

static int by_operation_sum(const void *a, const void *b)
{
    const struct prof_operation_row *x = a, *y = b;
    int order = prof_order(x->duration_ns.sum, y->duration_ns.sum, x->api, y->api);
    return order ? order : x->kind - y->kind;
}

static bool make_operation_rows(struct work *w, struct prof_operation_summary *result)
{
    if (!w->groups.count)
        return true;
    result->rows = calloc(w->groups.count, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->groups.count; i++) {
        struct group *g = &w->groups.data[i];
        result->rows[result->count++] = (struct prof_operation_row){
            .api = g->api,
            .kind = g->kind,
            .duration_ns = prof_gather_result(&g->duration),
            .bytes = prof_gather_result(&g->bytes),
            .unfinished = g->unfinished,
        };
    }
    static const struct prof_row_shape shape = PROF_ROW_SHAPE(prof_operation_row, by_operation_sum);
    result->listed_ns = prof_finish_rows(&shape, result->rows, result->count, result->wall_ns);
    return true;
}

enum prof_status prof_operation_summary(struct prof_capture *capture,
                                        const struct prof_filter *filter,
                                        struct prof_operation_summary *result,
                                        struct prof_error *err)
{
    struct work w = {.capture = capture, .by = BY_OPERATION};
    *result = (struct prof_operation_summary){.wall_ns = prof_wall_ns(capture, filter)};
    enum prof_status status = scan_transfers(&w, filter, err);
    if (!status && !make_operation_rows(&w, result))
        status = prof_out_of_memory(err);
    close_transfers_work(&w);
    return status;
}

void prof_operation_summary_free(struct prof_operation_summary *result)
{
    free(result->rows);
    *result = (struct prof_operation_summary){0};
}

/* ---- by size --------------------------------------------------------------------------------- */

static int by_kind_and_size(const void *a, const void *b)
{
    const struct prof_size_row *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind - y->kind;
    return (x->low_bytes > y->low_bytes) - (x->low_bytes < y->low_bytes);
}

static bool make_size_rows(struct work *w, struct prof_size_summary *result)
{
    if (!w->groups.count)
        return true;
    result->rows = calloc(w->groups.count, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->groups.count; i++) {
        struct group *g = &w->groups.data[i];
        int class_ = g->source;
        result->rows[result->count++] = (struct prof_size_row){
            .kind = g->kind,
            .low_bytes = class_ == 0   ? PROF_UNKNOWN
                         : class_ == 1 ? 0
                                       : INT64_C(1) << 2 * (class_ - 2),
            .high_bytes = class_ == 0              ? PROF_UNKNOWN
                          : class_ == 1            ? 1
                          : 2 * (class_ - 1) >= 63 ? INT64_MAX
                                                   : INT64_C(1) << 2 * (class_ - 1),
            .duration_ns = prof_gather_result(&g->duration),
            .bytes = prof_gather_result(&g->bytes),
            .rate = prof_gather_result(&g->rate),
            .mean_rate = g->rate_ns > 0 ? g->rate_bytes * 1e9 / g->rate_ns : NAN,
            .unfinished = g->unfinished,
        };
    }
    static const struct prof_row_shape shape = PROF_ROW_SHAPE(prof_size_row, by_kind_and_size);
    result->listed_ns = prof_finish_rows(&shape, result->rows, result->count, result->wall_ns);
    return true;
}

enum prof_status prof_size_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                   struct prof_size_summary *result, struct prof_error *err)
{
    struct work w = {.capture = capture, .by = BY_SIZE};
    *result = (struct prof_size_summary){.wall_ns = prof_wall_ns(capture, filter)};
    enum prof_status status = scan_transfers(&w, filter, err);
    if (!status && !make_size_rows(&w, result))
        status = prof_out_of_memory(err);
    close_transfers_work(&w);
    return status;
}

void prof_size_summary_free(struct prof_size_summary *result)
{
    free(result->rows);
    *result = (struct prof_size_summary){0};
}

void prof_transfer_summary_free(struct prof_transfer_summary *result)
{
    free(result->rows);
    *result = (struct prof_transfer_summary){0};
}
