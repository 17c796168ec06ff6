/* The results as tables for people or as one JSON object. */
#include <math.h>
#include <stdio.h>

#include "workloads/common/json.h"
#include "workloads/common/table.h"
#include "workloads/patterns/workload.h"

/* The least time that the declared bytes take at the copy bandwidth, over the measured one. */
static double share_of_ceiling(const struct results *results, const struct result *row)
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
        table_cell(table, "%.1e %s", row->check.error, check_passed(&row->check) ? "ok" : "FAILED");
}

static void value_cell(struct table *table, const struct evidence *e, double value)
{
    if (e->is_time)
        table_duration(table, value);
    else
        share_cell(table, value);
}

static double gain(const struct evidence *e)
{
    return e->is_time ? e->before_value / e->after_value : e->after_value / e->before_value;
}

static void claim_row(void *context, const struct evidence *e)
{
    struct table *table = context;

    table_row(table);
    table_cell(table, "%s", e->claim);
    table_cell(table, "%s", e->before->variant);
    value_cell(table, e, e->before_value);
    table_cell(table, "%s", e->after->variant);
    value_cell(table, e, e->after_value);
    if (isnan(gain(e)))
        table_cell(table, "n/a");
    else
        table_cell(table, "%.2fx", gain(e));
    table_cell(table, "%s", e->seed);
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

static void print_why(void *context, const struct evidence *e)
{
    (void)context;
    if (e->why && !e->after->skipped[0] && !e->before->skipped[0])
        printf("  %s: %s\n", e->claim, e->why);
}

static void print_tables(const struct pattern_options *options, const struct dev_info *info,
                         const struct results *results)
{
    static const char *const plain[] = {"<variant", "wall",    "+-",          "device",
                                        "launches", "allocs",  "copies GB/s", "GB/s",
                                        "of copy",  "GFLOP/s", "occupancy",   NULL};
    static const char *const checked[] = {
        "<variant", "wall",    "+-",      "device",    "launches",       "allocs", "copies GB/s",
        "GB/s",     "of copy", "GFLOP/s", "occupancy", "relative error", NULL};
    static const char *const claim_header[] = {"<claim", "<before", "",      "<after",
                                               "",       "gain",    "<seed", NULL};
    struct table table;

    printf("patterns on %s: %s (%s), %u compute units\n", dev_backend_name(info->backend),
           info->name, info->platform, info->compute_units);
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
    table_begin(&table, claim_header);
    claims_evaluate(results, info, claim_row, &table);
    if (table.rows > 1)
        putchar('\n');
    else
        table.rows = 0; /* a single variant proves no claim: no header without rows */
    table_end(&table);
    claims_evaluate(results, info, print_why, NULL);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void stats_json(struct json *json, const char *key, const struct stats *s)
{
    json_object_begin(json, key);
    json_number(json, "median", s->median);
    json_number(json, "min", s->min);
    json_number(json, "max", s->max);
    json_number(json, "mad", s->mad);
    json_integer(json, "count", s->count);
    json_object_end(json);
}

static void result_json(struct json *json, const struct results *results, const struct result *row)
{
    const struct measurement *m = &row->measured;

    json_object_begin(json, NULL);
    json_text(json, "variant", row->variant);
    if (row->skipped[0]) {
        json_text(json, "skipped", row->skipped);
        json_object_end(json);
        return;
    }
    stats_json(json, "kernel_ns", &m->kernel);
    stats_json(json, "transfer_ns", &m->transfer);
    stats_json(json, "wall_ns", &m->wall);
    json_integer(json, "launches", m->tally.launches);
    json_integer(json, "transfers", m->tally.transfers);
    json_integer(json, "allocations", m->tally.allocations);
    json_integer(json, "transfer_bytes", m->tally.transfer_bytes);
    json_number(json, "flop", m->tally.flop);
    json_number(json, "bytes_read", m->tally.bytes_read);
    json_number(json, "bytes_written", m->tally.bytes_written);
    json_number(json, "share_of_copy_bandwidth", share_of_ceiling(results, row));
    json_number(json, "occupancy", row->occupancy);
    if (row->registers)
        json_integer(json, "registers", row->registers);
    if (row->note[0])
        json_text(json, "note", row->note);
    if (row->check.done) {
        json_number(json, "relative_error", row->check.error);
        json_number(json, "tolerance", row->check.tolerance);
        json_bool(json, "verified", check_passed(&row->check));
    }
    json_object_end(json);
}

static void claim_json(void *context, const struct evidence *e)
{
    struct json *json = context;

    json_object_begin(json, NULL);
    json_text(json, "claim", e->claim);
    json_text(json, "before", e->before->variant);
    json_text(json, "after", e->after->variant);
    json_number(json, e->is_time ? "before_ns" : "before_share", e->before_value);
    json_number(json, e->is_time ? "after_ns" : "after_share", e->after_value);
    json_number(json, e->is_time ? "speedup" : "gain", gain(e));
    json_text(json, "seed", e->seed);
    json_text(json, "why", e->why);
    json_object_end(json);
}

static void print_json(const struct pattern_options *options, const struct dev_info *info,
                       const struct results *results)
{
    struct json json = {.file = stdout};

    json_object_begin(&json, NULL);
    json_text(&json, "workload", "patterns");
    json_text(&json, "backend", dev_backend_name(info->backend));
    json_text(&json, "device", info->name);
    json_text(&json, "platform", info->platform);
    json_integer(&json, "compute_units", info->compute_units);
    json_integer(&json, "iterations", options->common.iterations);
    json_integer(&json, "warmup", options->common.warmup);
    json_integer(&json, "seed", options->common.seed);
    json_number(&json, "copy_bytes_per_s", results->ceiling);
    json_array_begin(&json, "results");
    for (size_t i = 0; i < results->count; i++)
        result_json(&json, results, &results->rows[i]);
    json_array_end(&json);
    json_array_begin(&json, "claims");
    claims_evaluate(results, info, claim_json, &json);
    json_array_end(&json);
    json_object_end(&json);
}

void print_results(const struct pattern_options *options, const struct dev_info *info,
                   const struct results *results)
{
    if (options->common.json)
        print_json(options, info, results);
    else
        print_tables(options, info, results);
}
