/* The results as tables for people or as one JSON object. */
#include <math.h>
#include <stdio.h>

#include "workloads/common/report.h"
#include "workloads/patterns/workload.h"

double share_of_ceiling(const struct results *results, const struct result *row)
{
    const struct measurement *m = &row->measured;

    if (!row->memory_bound || isnan(results->ceiling))
        return NAN;
    return (m->tally.bytes_read + m->tally.bytes_written) / m->kernel.median * 1e9 /
           results->ceiling;
}

/* The device's time in all that the step gave it. */
static double device_ns(const struct measurement *m)
{
    return m->kernel.median + (isnan(m->transfer.median) ? 0 : m->transfer.median);
}

/* ---- tables --------------------------------------------------------------------------------- */

static void share_cell(struct table *table, double share)
{
    if (isnan(share))
        table_cell(table, "-");
    else
        table_cell(table, "%.0f %%", 100 * share);
}

static void rate_cell(struct table *table, double per_step, double ns)
{
    if (per_step > 0 && ns > 0)
        table_cell(table, "%.2f", per_step / ns);
    else
        table_cell(table, "-");
}

static void result_row(struct table *table, const struct results *results, const struct result *row,
                       bool verified)
{
    const struct measurement *m = &row->measured;

    table_row(table);
    table_cell(table, "%s", row->variant);
    if (row->skipped[0]) {
        for (int i = 0; i < 10; i++)
            table_cell(table, "n/a");
        if (verified)
            table_cell(table, "-");
        return;
    }
    table_duration(table, m->wall.median);
    table_duration(table, m->wall.mad);
    table_duration(table, device_ns(m));
    table_cell(table, "%u", m->tally.launches);
    table_cell(table, "%u", m->tally.allocations);
    rate_cell(table, (double)m->tally.transfer_bytes, m->wall.median);
    rate_cell(table, m->tally.bytes_read + m->tally.bytes_written, m->kernel.median);
    share_cell(table, share_of_ceiling(results, row));
    rate_cell(table, m->tally.flop, m->kernel.median);
    if (row->registers)
        table_cell(table, "%.0f %% (%u)", 100 * row->occupancy, row->registers);
    else
        table_cell(table, "-");
    if (verified)
        check_cell(table, &row->check);
}

/* Notes are sentences: below the table, not in it. */
static void print_notes(const struct results *results)
{
    for (size_t i = 0; i < results->count; i++) {
        const struct result *row = &results->rows[i];

        if (row->skipped[0] || row->note[0])
            printf("  %s: %s\n", row->variant, row->skipped[0] ? row->skipped : row->note);
    }
}

static void print_tables(const struct pattern_options *options, const struct dev_info *info,
                         const struct results *results, const struct claims *claims)
{
    static const char *const plain[] = {"<variant", "wall",    "+-",          "device",
                                        "launches", "allocs",  "copies GB/s", "GB/s",
                                        "of copy",  "GFLOP/s", "occupancy",   NULL};
    static const char *const checked[] = {
        "<variant", "wall",    "+-",      "device",    "launches",       "allocs", "copies GB/s",
        "GB/s",     "of copy", "GFLOP/s", "occupancy", "relative error", NULL};
    struct table table;

    report_title("patterns", info);
    printf("medians of %u iterations after %u for warm-up, +- is the median deviation",
           options->common.iterations, options->common.warmup);
    if (!isnan(results->ceiling))
        printf("; a copy reaches %.1f GB/s", results->ceiling / 1e9);
    printf("\n\n");
    table_begin(&table, options->common.verify ? checked : plain);
    for (size_t i = 0; i < results->count; i++)
        result_row(&table, results, &results->rows[i], options->common.verify);
    table_end(&table);
    print_notes(results);
    claims_print(claims);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void result_json(struct json *json, const struct results *results, const struct result *row)
{
    json_object_begin(json, NULL);
    json_text(json, "variant", row->variant);
    if (row->skipped[0]) {
        json_text(json, "skipped", row->skipped);
        json_object_end(json);
        return;
    }
    measurement_json(json, &row->measured);
    json_number(json, "share_of_copy_bandwidth", share_of_ceiling(results, row));
    json_number(json, "occupancy", row->occupancy);
    if (row->registers)
        json_integer(json, "registers", row->registers);
    if (row->note[0])
        json_text(json, "note", row->note);
    check_json(json, &row->check);
    json_object_end(json);
}

static void print_json(const struct pattern_options *options, const struct dev_info *info,
                       const struct results *results, const struct claims *claims)
{
    struct json json;

    report_json_begin(&json, "patterns", info, &options->common);
    json_number(&json, "copy_bytes_per_s", results->ceiling);
    json_array_begin(&json, "results");
    for (size_t i = 0; i < results->count; i++)
        result_json(&json, results, &results->rows[i]);
    json_array_end(&json);
    claims_json(&json, claims);
    json_object_end(&json);
}

void print_results(const struct pattern_options *options, const struct dev_info *info,
                   const struct results *results)
{
    struct claims claims = {0};

    claims_evaluate(results, info, &claims);
    if (options->common.json)
        print_json(options, info, results, &claims);
    else
        print_tables(options, info, results, &claims);
    claims_free(&claims);
}
