/* Kernels of captures that have only what each took in each second; see kernel_sums.h. Totals of a
 * thousand ranks are worth a table, though no single kernel is known. */
#include <math.h>
#include <stdlib.h>

#include "libprof/analysis/group.h"
#include "libprof/analysis/kernel_sums.h"

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
