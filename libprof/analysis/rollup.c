/* Totals from the table `rollup`, which ingest keeps per second, stream and configuration: what a
 * live view can afford every refresh. Readers add rows of one key up (a crash may leave two). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/group.h"
#include "libprof/analysis/scope.h"
#include "libprof/base/saturate.h"

#define BUCKETS 48

struct sum {
    const struct prof_config *config;
    int64_t count, sum_ns, min_ns, max_ns;
    uint64_t histogram[BUCKETS];
};

struct work {
    struct prof_capture *capture;
    struct prof_scope scope;
    struct prof_names by_name;
    PROF_ARRAY(struct sum) sums;
    PROF_ARRAY(struct prof_rollup_second) seconds;
    struct prof_map by_second;
};

enum { SECOND, STREAM, CONFIG, COUNT, SUM, MIN, MAX, HISTOGRAM };

static struct sum *rollup_sum_of(struct work *w, int64_t id)
{
    const struct prof_config *config = prof_config(w->capture, id);
    const char *name = config && config->name ? config->name : "";
    uint32_t *known = prof_names_get(&w->by_name, name, strlen(name));
    if (known)
        return &w->sums.data[*known];
    struct sum *s = prof_array_add(&w->sums);
    if (!s || !prof_names_put(&w->by_name, name, strlen(name), (uint32_t)w->sums.count - 1))
        return NULL;
    *s = (struct sum){.config = config, .min_ns = INT64_MAX, .max_ns = INT64_MIN};
    return s;
}

static void add_histogram(struct sum *s, sqlite3_stmt *row)
{
    const unsigned char *bytes = sqlite3_column_blob(row, HISTOGRAM);
    int count = bytes ? sqlite3_column_bytes(row, HISTOGRAM) / 4 : 0;
    for (int i = 0; i < count && i < BUCKETS; i++)
        s->histogram[i] += (uint64_t)bytes[4 * i] | (uint64_t)bytes[4 * i + 1] << 8 |
                           (uint64_t)bytes[4 * i + 2] << 16 | (uint64_t)bytes[4 * i + 3] << 24;
}

static bool add_second(struct work *w, int64_t second, int64_t count, int64_t sum)
{
    bool fresh;
    uint32_t number = prof_group_number(&w->by_second, (uint64_t)second, &fresh);
    if (number == PROF_NO_GROUP)
        return false;
    if (fresh) {
        struct prof_rollup_second *slot = prof_array_add(&w->seconds);
        if (!slot)
            return false;
        *slot = (struct prof_rollup_second){.second = second};
    }
    struct prof_rollup_second *s = &w->seconds.data[number];
    s->count = prof_add(s->count, count);
    s->sum_ns = prof_add(s->sum_ns, sum);
    return true;
}

static bool add_rollup_row(struct work *w, sqlite3_stmt *row)
{
    int64_t second = sqlite3_column_int64(row, SECOND), config = prof_column_id(row, CONFIG);
    if (w->scope.by_time &&
        (second < w->scope.begin_ns / 1000000000 ||
         (w->scope.end_ns != INT64_MAX && second > (w->scope.end_ns - 1) / 1000000000)))
        return true;
    if (!prof_scope_place(&w->scope, prof_column_id(row, STREAM), 0, 0, 0) ||
        !prof_scope_config(&w->scope, config))
        return true;
    struct sum *s = rollup_sum_of(w, config);
    if (!s)
        return false;
    int64_t count = sqlite3_column_int64(row, COUNT), sum = sqlite3_column_int64(row, SUM);
    int64_t min = sqlite3_column_int64(row, MIN), max = sqlite3_column_int64(row, MAX);
    s->count = prof_add(s->count, count);
    s->sum_ns = prof_add(s->sum_ns, sum);
    s->min_ns = min < s->min_ns ? min : s->min_ns;
    s->max_ns = max > s->max_ns ? max : s->max_ns;
    add_histogram(s, row);
    return add_second(w, second, count, sum);
}

/* Geometric middle of the bucket that holds the middle value, within what was seen. */
static double histogram_median(const struct sum *s)
{
    uint64_t total = 0, seen = 0;
    for (int i = 0; i < BUCKETS; i++)
        total += s->histogram[i];
    if (!total)
        return NAN;
    for (int i = 0; i < BUCKETS; i++) {
        seen += s->histogram[i];
        if (seen > total / 2) {
            double middle = ldexp(sqrt(2), i);
            return middle < (double)s->min_ns   ? (double)s->min_ns
                   : middle > (double)s->max_ns ? (double)s->max_ns
                                                : middle;
        }
    }
    return NAN;
}

static int by_rollup_sum(const void *a, const void *b)
{
    const struct prof_rollup_row *x = a, *y = b;
    if (x->sum_ns != y->sum_ns)
        return x->sum_ns < y->sum_ns ? 1 : -1;
    return strcmp(x->name ? x->name : "", y->name ? y->name : "");
}

static int by_second(const void *a, const void *b)
{
    const struct prof_rollup_second *x = a, *y = b;
    return (x->second > y->second) - (x->second < y->second);
}

static enum prof_status scan_rollup(struct work *w, struct prof_error *err)
{
    sqlite3_stmt *row;
    enum prof_status status = prof_query(w->capture,
                                         "SELECT second, stream, config, count, sum, min, max, "
                                         "histogram FROM rollup WHERE " PROF_SOUND_ROLLUP,
                                         &row, err);
    if (status)
        return status;
    while (prof_row(row)) {
        if (!add_rollup_row(w, row)) {
            sqlite3_finalize(row);
            return prof_out_of_memory(err);
        }
    }
    return prof_query_end(w->capture, row, err);
}

static bool make_rollup_rows(struct work *w, struct prof_rollup *result)
{
    result->rows = calloc(w->sums.count + 1, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->sums.count; i++) {
        const struct sum *s = &w->sums.data[i];
        result->rows[result->count++] =
            (struct prof_rollup_row){s->config,          s->config ? s->config->name : NULL,
                                     s->count,           s->sum_ns,
                                     s->min_ns,          s->max_ns,
                                     histogram_median(s)};
        result->kernels = prof_add(result->kernels, s->count);
        result->sum_ns = prof_add(result->sum_ns, s->sum_ns);
    }
    qsort(result->rows, result->count, sizeof *result->rows, by_rollup_sum);
    if (w->seconds.count)
        qsort(w->seconds.data, w->seconds.count, sizeof *w->seconds.data, by_second);
    result->seconds = w->seconds.data;
    result->second_count = w->seconds.count;
    w->seconds.data = NULL;
    return true;
}

enum prof_status prof_rollup(struct prof_capture *capture, const struct prof_filter *filter,
                             struct prof_rollup *result, struct prof_error *err)
{
    struct work w = {.capture = capture};
    *result = (struct prof_rollup){0};
    enum prof_status status = prof_scope_open(&w.scope, capture, filter, err);
    if (!status && w.scope.by_range)
        status = prof_fail(err, PROF_INVALID, "totals per second know no NVTX ranges");
    if (!status)
        status = scan_rollup(&w, err);
    if (!status && !make_rollup_rows(&w, result))
        status = prof_out_of_memory(err);
    prof_array_free(&w.sums);
    free(w.seconds.data);
    prof_names_free(&w.by_name);
    prof_map_free(&w.by_second);
    prof_scope_close(&w.scope);
    return status;
}

void prof_rollup_free(struct prof_rollup *result)
{
    free(result->rows);
    free(result->seconds);
    *result = (struct prof_rollup){0};
}
