/* Totals from the table `rollup`, which ingest keeps per second, stream and configuration: what a
 * live view can afford every refresh. Readers add rows of one key up (a crash may leave two). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/group.h"
#include "libprof/analysis/rollup.h"
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
    struct prof_groups sums;    /* by name */
    struct prof_groups seconds; /* rows of the result */
};

enum { SECOND, STREAM, CONFIG, COUNT, SUM, MIN, MAX, HISTOGRAM };

static struct sum *rollup_sum_of(struct work *w, int64_t id)
{
    const struct prof_config *config = prof_config(w->capture, id);
    const char *name = config && config->name ? config->name : "";
    bool fresh;
    struct sum *s = prof_group_of_bytes(&w->sums, name, strlen(name), &fresh);
    if (s && fresh)
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
    struct prof_rollup_second *s = prof_group_of_number(&w->seconds, (uint64_t)second, &fresh);
    if (!s)
        return false;
    s->second = second;
    s->count = prof_add(s->count, count);
    s->sum_ns = prof_add(s->sum_ns, sum);
    return true;
}

static bool add_rollup_row(void *user, sqlite3_stmt *row)
{
    struct work *w = user;
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

static bool make_rollup_rows(struct work *w, struct prof_rollup *result)
{
    result->rows = calloc(w->sums.count + 1, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->sums.count; i++) {
        const struct sum *s = prof_group_at(&w->sums, i);
        result->rows[result->count++] =
            (struct prof_rollup_row){s->config,          s->config ? s->config->name : NULL,
                                     s->count,           s->sum_ns,
                                     s->min_ns,          s->max_ns,
                                     histogram_median(s)};
        result->kernels = prof_add(result->kernels, s->count);
        result->sum_ns = prof_add(result->sum_ns, s->sum_ns);
    }
    qsort(result->rows, result->count, sizeof *result->rows, by_rollup_sum);
    result->second_count = w->seconds.count;
    result->seconds = prof_groups_take(&w->seconds);
    if (result->second_count)
        qsort(result->seconds, result->second_count, sizeof *result->seconds, by_second);
    return true;
}

enum prof_status prof_rollup(struct prof_capture *capture, const struct prof_filter *filter,
                             struct prof_rollup *result, struct prof_error *err)
{
    struct work w = {.capture = capture,
                     .sums = PROF_GROUPS(struct sum, 0),
                     .seconds = PROF_GROUPS(struct prof_rollup_second, 0)};
    *result = (struct prof_rollup){0};
    enum prof_status status = prof_scope_open(&w.scope, capture, filter, err);
    if (!status && w.scope.by_range)
        status = prof_fail(err, PROF_INVALID, "totals per second know no NVTX ranges");
    if (!status)
        status = prof_scan(capture,
                           "SELECT second, stream, config, count, sum, min, max, histogram FROM "
                           "rollup WHERE " PROF_SOUND_ROLLUP,
                           add_rollup_row, &w, err);
    if (!status && !make_rollup_rows(&w, result))
        status = prof_out_of_memory(err);
    prof_groups_free(&w.sums);
    prof_groups_free(&w.seconds);
    prof_scope_close(&w.scope);
    return status;
}

void prof_rollup_free(struct prof_rollup *result)
{
    free(result->rows);
    free(result->seconds);
    *result = (struct prof_rollup){0};
}

/* ---- kernels of captures that have only these --------------------------------------------------
 */

/* Totals of a thousand ranks are worth a table, though no single kernel is known. */
bool prof_has_sums_only(struct prof_capture *capture)
{
    sqlite3_stmt *row;
    bool only = false;
    if (prof_query(capture,
                   "SELECT NOT EXISTS(SELECT 1 FROM kernel) AND EXISTS(SELECT 1 FROM rollup)", &row,
                   NULL))
        return false;
    if (prof_row(row))
        only = sqlite3_column_int(row, 0) != 0;
    sqlite3_finalize(row);
    return only;
}

static struct prof_kernel_row kernel_sum_row(const struct prof_rollup_row *sum)
{
    return (struct prof_kernel_row){
        .name = sum->name,
        .full_name = sum->config ? sum->config->full_name : NULL,
        .duration_ns = {.count = sum->count,
                        .sum = sum->sum_ns,
                        .min = sum->min_ns,
                        .max = sum->max_ns,
                        .mean = sum->count ? (double)sum->sum_ns / (double)sum->count : NAN,
                        .median = sum->median_ns,
                        .p95 = NAN,
                        .p99 = NAN,
                        .stddev = NAN,
                        .quantile_error = sqrt(2) - 1},
        .queue_delay_ns = NAN,
        .submit_delay_ns = NAN,
        .launch_delay_ns = NAN,
        .api_ns = NAN,
    };
}

static int by_kernel_duration(const void *a, const void *b)
{
    const struct prof_kernel_row *x = a, *y = b;
    return prof_order(x->duration_ns.sum, y->duration_ns.sum, x->name, y->name);
}

enum prof_status prof_kernel_sums(struct prof_capture *capture, const struct prof_filter *filter,
                                  struct prof_kernel_summary *result, struct prof_error *err)
{
    struct prof_rollup sums;
    enum prof_status status = prof_rollup(capture, filter, &sums, err);
    if (status)
        return status;
    result->rows = sums.count ? calloc(sums.count, sizeof *result->rows) : NULL;
    if (sums.count && !result->rows)
        status = prof_out_of_memory(err);
    for (size_t i = 0; !status && i < sums.count; i++)
        result->rows[result->count++] = kernel_sum_row(&sums.rows[i]);
    result->kernels = sums.kernels;
    static const struct prof_row_shape shape = PROF_ROW_SHAPE(prof_kernel_row, by_kernel_duration);
    if (!status)
        result->listed_ns = prof_finish_rows(&shape, result->rows, result->count, result->wall_ns);
    prof_rollup_free(&sums);
    return status;
}
