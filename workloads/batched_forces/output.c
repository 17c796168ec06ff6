/* The results as tables for people or as one JSON object. */
#include <math.h>
#include <stdio.h>

#include "workloads/batched_forces/workload.h"
#include "workloads/common/json.h"
#include "workloads/common/table.h"

/* ---- tables --------------------------------------------------------------------------------- */

/* Bytes per second of the device's time, both ways together. */
static double bandwidth_of(const struct result *row)
{
    const struct measurement *m = &row->measured;

    return 1e9 * (m->tally.bytes_read + m->tally.bytes_written) / m->kernel.median;
}

static void bandwidth_cells(struct table *table, const struct results *results,
                            const struct result *row)
{
    double bandwidth = bandwidth_of(row);

    if (isnan(bandwidth)) {
        table_cell(table, "n/a");
        table_cell(table, "n/a");
        return;
    }
    table_cell(table, "%.2f", bandwidth / 1e9);
    /* Message passing multiplies matrices: the copy bandwidth is no ceiling for the whole. */
    if (row->variant->operation == COMPONENTS || isnan(results->ceiling))
        table_cell(table, "-");
    else
        table_cell(table, "%.0f %%", 100 * bandwidth / results->ceiling);
}

static void result_row(struct table *table, const struct results *results, const struct result *row,
                       bool verified)
{
    const struct measurement *m = &row->measured;
    bool whole = row->variant->operation == COMPONENTS;

    table_row(table);
    table_cell(table, "%s", row->variant->name);
    table_cell(table, "%u", row->batch);
    table_cell(table, "%u", m->tally.launches);
    table_duration(table, m->kernel.median);
    table_duration(table, m->kernel.mad);
    table_duration(table, m->transfer.median);
    table_duration(table, m->wall.median);
    table_duration(table, m->wall.mad);
    table_duration(table, m->wall.median / (whole ? row->molecules : OPERATIONS_PER_STEP));
    table_cell(table, "%s", whole ? "molecule" : "operation");
    table_cell(table, "%.2f", m->tally.flop / m->wall.median);
    bandwidth_cells(table, results, row);
    if (verified)
        table_cell(table, "%.1e %s", row->check.error, check_passed(&row->check) ? "ok" : "FAILED");
}

static double total_of(const struct result *row)
{
    double ns = 0;

    for (int c = 0; c < COMPONENTS; c++)
        ns += row->component_ns[c];
    return ns;
}

static void component_rows(struct table *table, const struct result *row)
{
    double total = total_of(row);

    for (int c = 0; c <= COMPONENTS; c++) {
        double ns = c < COMPONENTS ? row->component_ns[c] : total;

        table_row(table);
        table_cell(table, "%s", row->variant->name);
        table_cell(table, "%u", row->batch);
        table_cell(table, "%s", c < COMPONENTS ? component_names[c] : "total");
        table_cell(table, "%.4f", ns / 1e6);
        table_duration(table, ns / row->molecules);
        table_cell(table, "%.1f %%", 100 * ns / total);
    }
}

static void claim_row(void *context, const struct evidence *e)
{
    struct table *table = context;

    table_row(table);
    table_cell(table, "%s", e->claim);
    table_cell(table, "%s", e->before->variant->name);
    table_cell(table, "%u", e->before->batch);
    table_duration(table, e->before_ns);
    table_cell(table, "%s", e->after->variant->name);
    table_cell(table, "%u", e->after->batch);
    table_duration(table, e->after_ns);
    table_cell(table, "%.2fx", e->before_ns / e->after_ns);
    table_cell(table, "%s", e->seed);
}

static void print_components(const struct results *results)
{
    static const char *const header[] = {"<variant",     "batch", "<component", "ms",
                                         "per molecule", "share", NULL};
    struct table table;

    table_begin(&table, header);
    for (size_t i = 0; i < results->count; i++)
        if (results->rows[i].variant->form.apart)
            component_rows(&table, &results->rows[i]);
    if (table.rows > 1)
        putchar('\n');
    else
        table.rows = 0;
    table_end(&table);
}

static void print_tables(const struct forces_options *options, const struct dev_info *info,
                         const struct reference *reference, const struct results *results)
{
    static const char *const plain[] = {"<variant", "batch", "launches", "kernels", "+-",
                                        "copies",   "wall",  "+-",       "time",    "<per",
                                        "GFLOP/s",  "GB/s",  "of copy",  NULL};
    static const char *const checked[] = {"<variant", "batch", "launches", "kernels", "+-",
                                          "copies",   "wall",  "+-",       "time",    "<per",
                                          "GFLOP/s",  "GB/s",  "of copy",  "error",   NULL};
    static const char *const claim_header[] = {"<claim", "<before", "batch",    "time",  "<after",
                                               "batch",  "time",    "speed-up", "<seed", NULL};
    const struct result *any = results->count ? &results->rows[0] : NULL;
    struct table table;

    printf("batched_forces on %s: %s (%s), %u compute units\n", dev_backend_name(info->backend),
           info->name, info->platform, info->compute_units);
    if (any)
        printf("%u molecules, %u atoms, %u edges; width %u, %u functions, %u layers\n",
               any->molecules, any->atoms, any->edges, options->width, options->functions,
               options->layers);
    printf(
        "medians of %u iterations after %u for warm-up, +- is the median deviation; an iteration "
        "takes all molecules, or %d operations\n",
        options->common.iterations, options->common.warmup, OPERATIONS_PER_STEP);
    if (!isnan(results->ceiling))
        printf("copies within the device run at %.1f GB/s\n", results->ceiling / 1e9);
    if (reference)
        printf("forces in double against central differences: %.1e, allowed %.0e\n",
               reference->difference_error, DIFFERENCE_TOLERANCE);
    putchar('\n');
    table_begin(&table, options->common.verify ? checked : plain);
    for (size_t i = 0; i < results->count; i++)
        result_row(&table, results, &results->rows[i], options->common.verify);
    table_end(&table);
    print_components(results);
    table_begin(&table, claim_header);
    claims_evaluate(results, claim_row, &table);
    if (table.rows > 1)
        putchar('\n');
    else
        table.rows = 0; /* a single variant proves no claim: no header without rows */
    table_end(&table);
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

static void components_json(struct json *json, const struct result *row)
{
    double total = total_of(row);

    json_array_begin(json, "components");
    for (int c = 0; c < COMPONENTS; c++) {
        json_object_begin(json, NULL);
        json_text(json, "component", component_names[c]);
        json_number(json, "mean_ns", row->component_ns[c]);
        json_number(json, "share", row->component_ns[c] / total);
        json_object_end(json);
    }
    json_array_end(json);
    json_number(json, "components_total_ns", total);
}

static void result_json(struct json *json, const struct results *results, const struct result *row)
{
    const struct measurement *m = &row->measured;
    bool whole = row->variant->operation == COMPONENTS;

    json_object_begin(json, NULL);
    json_text(json, "variant", row->variant->name);
    json_integer(json, "batch", row->batch);
    stats_json(json, "kernel_ns", &m->kernel);
    stats_json(json, "transfer_ns", &m->transfer);
    stats_json(json, "wall_ns", &m->wall);
    if (whole)
        json_number(json, "molecules_per_second", 1e9 * row->molecules / m->wall.median);
    else
        json_number(json, "operation_ns", m->wall.median / OPERATIONS_PER_STEP);
    json_integer(json, "launches", m->tally.launches);
    json_integer(json, "transfers", m->tally.transfers);
    json_integer(json, "allocations", m->tally.allocations);
    json_integer(json, "transfer_bytes", m->tally.transfer_bytes);
    json_number(json, "flop", m->tally.flop);
    json_number(json, "bytes_read", m->tally.bytes_read);
    json_number(json, "bytes_written", m->tally.bytes_written);
    json_number(json, "bytes_per_second", bandwidth_of(row));
    if (!whole)
        json_number(json, "share_of_copy_bandwidth", bandwidth_of(row) / results->ceiling);
    if (row->variant->form.apart)
        components_json(json, row);
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
    json_text(json, "before", e->before->variant->name);
    json_integer(json, "before_batch", e->before->batch);
    json_text(json, "after", e->after->variant->name);
    json_integer(json, "after_batch", e->after->batch);
    json_number(json, "before_ns", e->before_ns);
    json_number(json, "after_ns", e->after_ns);
    json_number(json, "speedup", e->before_ns / e->after_ns);
    json_text(json, "seed", e->seed);
    json_object_end(json);
}

static void print_json(const struct forces_options *options, const struct dev_info *info,
                       const struct reference *reference, const struct results *results)
{
    struct json json = {.file = stdout};

    json_object_begin(&json, NULL);
    json_text(&json, "workload", "batched_forces");
    json_text(&json, "backend", dev_backend_name(info->backend));
    json_text(&json, "device", info->name);
    json_text(&json, "platform", info->platform);
    json_integer(&json, "compute_units", info->compute_units);
    json_integer(&json, "iterations", options->common.iterations);
    json_integer(&json, "warmup", options->common.warmup);
    json_integer(&json, "seed", options->common.seed);
    json_integer(&json, "width", options->width);
    json_integer(&json, "functions", options->functions);
    json_integer(&json, "layers", options->layers);
    if (results->count) {
        json_integer(&json, "molecules", results->rows[0].molecules);
        json_integer(&json, "atoms", results->rows[0].atoms);
        json_integer(&json, "edges", results->rows[0].edges);
    }
    if (reference) {
        json_number(&json, "difference_error", reference->difference_error);
        json_number(&json, "difference_tolerance", DIFFERENCE_TOLERANCE);
    }
    json_number(&json, "copy_bytes_per_second", results->ceiling);
    json_array_begin(&json, "results");
    for (size_t i = 0; i < results->count; i++)
        result_json(&json, results, &results->rows[i]);
    json_array_end(&json);
    json_array_begin(&json, "claims");
    claims_evaluate(results, claim_json, &json);
    json_array_end(&json);
    json_object_end(&json);
}

void print_results(const struct forces_options *options, const struct dev_info *info,
                   const struct reference *reference, const struct results *results)
{
    if (options->common.json)
        print_json(options, info, reference, results);
    else
        print_tables(options, info, reference, results);
}
