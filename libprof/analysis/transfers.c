/* Transfer summary: copies by direction and memory kinds, and fills, with bytes and rates; and the
 * same by direction alone, or by direction and size. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/group.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_stats.h"

enum grouping { BY_MEMORY, BY_OPERATION, BY_SIZE };

struct group {
    struct prof_gather duration, bytes, rate;
    int kind, source, target;
    const char *api; /* only when grouped by operation */
    int64_t unfinished, blocking;
    double rate_bytes, rate_ns; /* of the transfers counted in `rate` */
};

struct work {
    struct prof_capture *capture;
    struct prof_groups groups;
    enum grouping by;
};

static const char *const apis[] = {NULL, "cuda", "opencl"};

/* Its number in `apis`. */
static int api_of(const struct work *w, int64_t stream)
{
    const struct prof_stream *s = prof_stream(w->capture, stream);
    for (int i = 1; s && s->api && i < (int)(sizeof apis / sizeof apis[0]); i++)
        if (!strcmp(s->api, apis[i]))
            return i;
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
static struct group *transfer_group(struct work *w, const struct prof_event_row *row)
{
    bool fresh;
    int source = w->by == BY_OPERATION ? api_of(w, row->stream)
                 : w->by == BY_SIZE    ? bytes_class(row->bytes)
                                       : row->source_kind;
    int target = w->by == BY_MEMORY ? row->target_kind : 0;
    const int key[] = {row->copy_kind, source, target};
    struct group *g = prof_group_of_bytes(&w->groups, key, sizeof key, &fresh);
    if (g && fresh) {
        g->kind = row->copy_kind;
        g->source = source;
        g->target = target;
        g->api = w->by == BY_OPERATION ? apis[source] : NULL;
    }
    return g;
}

static void add_transfer_rate(struct work *w, struct group *g, int64_t bytes, int64_t duration)
{
    if (bytes <= 0 || duration <= 0)
        return;
    double rate = (double)bytes * 1e9 / (double)duration;
    if (rate < 9e18)
        prof_measure(&w->groups, &g->rate, (int64_t)(rate + 0.5));
    g->rate_bytes += (double)bytes;
    g->rate_ns += (double)duration;
}

static bool add_transfer_row(void *user, const struct prof_event_row *row)
{
    struct work *w = user;
    struct group *g = transfer_group(w, row);
    if (!g)
        return false;
    if (row->blocking == 1)
        g->blocking++;
    prof_measure(&w->groups, &g->bytes, row->bytes);
    if (row->start_ns == PROF_UNKNOWN || row->duration_ns == PROF_UNKNOWN) {
        g->unfinished++;
        return true;
    }
    prof_measure_event(&w->groups, &g->duration, row);
    if (prof_copy_moves(w->capture, g->kind, row->stream))
        add_transfer_rate(w, g, row->bytes, row->duration_ns);
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
    *out = 0;
    if (sum->memcpys || !sum->memsets)
        snprintf(out, size, "%s (%s, %s)", prof_counted(sum->memcpys, "memcpy", "memcpys").text,
                 prof_bytes_of(sum->memcpy_bytes).text, prof_duration_ns(sum->memcpy_ns).text);
    if (sum->memsets)
        prof_append(out, size, "%s%s (%s, %s)", *out ? ", " : "",
                    prof_counted(sum->memsets, "memset", "memsets").text,
                    prof_bytes_of(sum->memset_bytes).text, prof_duration_ns(sum->memset_ns).text);
}

PROF_ORDER(by_transfer_sum, struct prof_transfer_row, PROF_DESCENDING(duration_ns.sum),
           PROF_ASCENDING(kind), PROF_ASCENDING(source_kind), PROF_ASCENDING(target_kind))

static bool make_transfer_rows(struct work *w, struct prof_transfer_summary *result)
{
    result->rows = calloc(w->groups.count + 1, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->groups.count; i++) {
        struct group *g = prof_group_at(&w->groups, i);
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
    struct prof_event_query query = {
        .tables = PROF_OPS_MEMORY,
        .fields = PROF_FIELD(START) | PROF_FIELD(DURATION) | PROF_FIELD(STREAM) |
                  PROF_FIELD(BYTES) | PROF_FIELD(COPY_KIND) | PROF_FIELD(SOURCE_KIND) |
                  PROF_FIELD(TARGET_KIND) | PROF_FIELD(BLOCKING),
        .filter = filter,
    };
    return prof_event_rows(w->capture, &query, add_transfer_row, w, err);
}

enum prof_status prof_transfer_summary(struct prof_capture *capture,
                                       const struct prof_filter *filter,
                                       struct prof_transfer_summary *result, struct prof_error *err)
{
    struct work w = {.capture = capture, .groups = PROF_GROUPS(struct group, 3)};
    *result = (struct prof_transfer_summary){.wall_ns = prof_wall_ns(capture, filter)};
    enum prof_status status = scan_transfers(&w, filter, err);
    if (!status && !make_transfer_rows(&w, result))
        status = prof_out_of_memory(err);
    prof_groups_free(&w.groups);
    return status;
}

/* ---- by operation ---------------------------------------------------------------------------- */

PROF_ORDER(by_operation_sum, struct prof_operation_row,
           prof_order(x->duration_ns.sum, y->duration_ns.sum, x->api, y->api), PROF_ASCENDING(kind))

static bool make_operation_rows(struct work *w, struct prof_operation_summary *result)
{
    result->rows = calloc(w->groups.count + 1, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->groups.count; i++) {
        struct group *g = prof_group_at(&w->groups, i);
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
    struct work w = {
        .capture = capture, .groups = PROF_GROUPS(struct group, 3), .by = BY_OPERATION};
    *result = (struct prof_operation_summary){.wall_ns = prof_wall_ns(capture, filter)};
    enum prof_status status = scan_transfers(&w, filter, err);
    if (!status && !make_operation_rows(&w, result))
        status = prof_out_of_memory(err);
    prof_groups_free(&w.groups);
    return status;
}

PROF_FREE_ROWS(prof_operation_summary)

/* ---- by size --------------------------------------------------------------------------------- */

PROF_ORDER(by_kind_and_size, struct prof_size_row, PROF_ASCENDING(kind), PROF_ASCENDING(low_bytes))

static bool make_size_rows(struct work *w, struct prof_size_summary *result)
{
    result->rows = calloc(w->groups.count + 1, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->groups.count; i++) {
        struct group *g = prof_group_at(&w->groups, i);
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
    struct work w = {.capture = capture, .groups = PROF_GROUPS(struct group, 3), .by = BY_SIZE};
    *result = (struct prof_size_summary){.wall_ns = prof_wall_ns(capture, filter)};
    enum prof_status status = scan_transfers(&w, filter, err);
    if (!status && !make_size_rows(&w, result))
        status = prof_out_of_memory(err);
    prof_groups_free(&w.groups);
    return status;
}

PROF_FREE_ROWS(prof_size_summary)
PROF_FREE_ROWS(prof_transfer_summary)
