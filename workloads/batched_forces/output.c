/* The results as tables for people or as one JSON object. */
#include <math.h>
#include <stdio.h>

#include "workloads/batched_forces/workload.h"
#include "workloads/common/report.h"

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
        check_cell(table, &row->check);
}

double components_total_ns(const struct result *row)
{
    double ns = 0;

    for (int c = 0; c < COMPONENTS; c++)
        ns += row->component_ns[c];
    return ns;
}

static void component_rows(struct table *table, const struct result *row)
{
    double total = components_total_ns(row);

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
                         const struct reference *reference, const struct results *results,
                         const struct claims *claims)
{
    static const char *const plain[] = {"<variant", "batch", "launches", "kernels", "+-",
                                        "copies",   "wall",  "+-",       "time",    "<per",
                                        "GFLOP/s",  "GB/s",  "of copy",  NULL};
    static const char *const checked[] = {"<variant", "batch", "launches", "kernels", "+-",
                                          "copies",   "wall",  "+-",       "time",    "<per",
                                          "GFLOP/s",  "GB/s",  "of copy",  "error",   NULL};
    const struct result *any = results->count ? &results->rows[0] : NULL;
    struct table table;

    report_title("batched_forces", info);
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
    claims_print(claims);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void result_json(struct json *json, const struct results *results, const struct result *row)
{
    const struct measurement *m = &row->measured;
    bool whole = row->variant->operation == COMPONENTS;

    json_object_begin(json, NULL);
    json_text(json, "variant", row->variant->name);
    json_integer(json, "batch", row->batch);
    measurement_json(json, m);
    if (whole)
        json_number(json, "molecules_per_second", 1e9 * row->molecules / m->wall.median);
    else
        json_number(json, "operation_ns", m->wall.median / OPERATIONS_PER_STEP);
    json_number(json, "bytes_per_second", bandwidth_of(row));
    if (!whole)
        json_number(json, "share_of_copy_bandwidth", bandwidth_of(row) / results->ceiling);
    if (row->variant->form.apart)
        components_json(json, component_names, row->component_ns, COMPONENTS);
    check_json(json, &row->check);
    json_object_end(json);
}

static void print_json(const struct forces_options *options, const struct dev_info *info,
                       const struct reference *reference, const struct results *results,
                       const struct claims *claims)
{
    struct json json;

    report_json_begin(&json, "batched_forces", info, &options->common);
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
    claims_json(&json, claims);
    json_object_end(&json);
}

void print_results(const struct forces_options *options, const struct dev_info *info,
                   const struct reference *reference, const struct results *results)
{
    struct claims claims = {0};

    claims_evaluate(results, info, &claims);
    if (options->common.json)
        print_json(options, info, reference, results, &claims);
    else
        print_tables(options, info, reference, results, &claims);
    claims_free(&claims);
}
