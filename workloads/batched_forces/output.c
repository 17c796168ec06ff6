/* What the results hold. */
#include <math.h>

#include "workloads/batched_forces/workload.h"
#include "workloads/common/report.h"

struct printed {
    const struct forces_options *options;
    const struct results *results;
};

/* Bytes per second of the device's time, both ways together. */
static double bandwidth_of(const struct result *row)
{
    const struct measurement *m = &row->measured;

    return 1e9 * (m->tally.bytes_read + m->tally.bytes_written) / m->kernel.median;
}

double components_total_ns(const struct result *row)
{
    double ns = 0;

    for (int c = 0; c < COMPONENTS; c++)
        ns += row->component_ns[c];
    return ns;
}

/* Message passing multiplies matrices: the copy bandwidth is no ceiling for the whole. */
static void bandwidth_cells(struct output *out, const struct result *row, double ceiling)
{
    double bandwidth = bandwidth_of(row);
    bool whole = row->variant->operation == COMPONENTS;

    output_number(out, "bytes_per_second", "GB/s", 2, 1e-9, bandwidth);
    if (whole || (isnan(ceiling) && !isnan(bandwidth)))
        output_cell(out, "of copy", isnan(bandwidth) ? "n/a" : "-");
    else if (isnan(bandwidth))
        output_cell(out, "of copy", "n/a");
    else
        output_cell(out, "of copy", "%.0f %%", 100 * bandwidth / ceiling);
    if (!whole && output_json(out))
        json_number(output_json(out), "share_of_copy_bandwidth", bandwidth / ceiling);
}

static void result_row(struct output *out, const void *context, size_t index)
{
    const struct printed *printed = context;
    const struct result *row = &printed->results->rows[index];
    const struct measurement *m = &row->measured;
    bool whole = row->variant->operation == COMPONENTS;

    output_text(out, "variant", "<variant", row->variant->name);
    output_count(out, "batch", "batch", row->batch);
    output_measurement(out, m);
    output_count(out, NULL, "launches", m->tally.launches);
    output_duration(out, NULL, "kernels", m->kernel.median);
    output_duration(out, NULL, "+-", m->kernel.mad);
    output_duration(out, NULL, "copies", m->transfer.median);
    output_duration(out, NULL, "wall", m->wall.median);
    output_duration(out, NULL, "+-", m->wall.mad);
    output_duration(out, whole ? NULL : "operation_ns", "time",
                    m->wall.median / (whole ? row->molecules : OPERATIONS_PER_STEP));
    output_text(out, NULL, "<per", whole ? "molecule" : "operation");
    output_number(out, NULL, "GFLOP/s", 2, 1, m->tally.flop / m->wall.median);
    if (whole)
        output_number(out, "molecules_per_second", NULL, 0, 1,
                      1e9 * row->molecules / m->wall.median);
    bandwidth_cells(out, row, printed->results->ceiling);
    if (row->variant->form.apart)
        output_components(out, component_names, row->component_ns, COMPONENTS);
    if (printed->options->common.verify)
        output_check(out, NULL, "error", &row->check);
}

/* One component of a variant that waits between them, or their sum. */
static void component_row(struct output *out, const void *context, size_t index)
{
    const struct printed *printed = context;
    const struct result *row = &printed->results->rows[index / (COMPONENTS + 1)];
    size_t c = index % (COMPONENTS + 1);
    double total = components_total_ns(row), ns = c < COMPONENTS ? row->component_ns[c] : total;

    if (!row->variant->form.apart)
        return;
    output_text(out, NULL, "<variant", row->variant->name);
    output_count(out, NULL, "batch", row->batch);
    output_text(out, NULL, "<component", c < COMPONENTS ? component_names[c] : "total");
    output_number(out, NULL, "ms", 4, 1e-6, ns);
    output_duration(out, NULL, "per molecule", ns / row->molecules);
    output_cell(out, "share", "%.1f %%", 100 * ns / total);
}

static void print_shapes(struct output *out, const struct forces_options *options,
                         const struct results *results)
{
    const struct result *any = results->rows;

    output_setting(out, "width", options->width);
    output_setting(out, "functions", options->functions);
    output_setting(out, "layers", options->layers);
    if (!results->count)
        return;
    output_setting(out, "molecules", any->molecules);
    output_setting(out, "atoms", any->atoms);
    output_setting(out, "edges", any->edges);
    output_line(out, "%u molecules, %u atoms, %u edges; width %u, %u functions, %u layers",
                any->molecules, any->atoms, any->edges, options->width, options->functions,
                options->layers);
}

void print_results(const struct forces_options *options, const struct dev_info *info,
                   const struct reference *reference, const struct results *results)
{
    struct printed printed = {options, results};
    struct claims claims = {0};
    struct output out;

    output_begin(&out, "batched_forces", info, &options->common);
    print_shapes(&out, options, results);
    output_line(&out,
                "medians of %u iterations after %u for warm-up, +- is the median deviation; an "
                "iteration takes all molecules, or %d operations",
                options->common.iterations, options->common.warmup, OPERATIONS_PER_STEP);
    if (!isnan(results->ceiling))
        output_line(&out, "copies within the device run at %.1f GB/s", results->ceiling / 1e9);
    if (reference)
        output_line(&out, "forces in double against central differences: %.1e, allowed %.0e",
                    reference->difference_error, DIFFERENCE_TOLERANCE);
    if (output_json(&out) && reference) {
        json_number(&out.json, "difference_error", reference->difference_error);
        json_number(&out.json, "difference_tolerance", DIFFERENCE_TOLERANCE);
    }
    if (output_json(&out))
        json_number(&out.json, "copy_bytes_per_second", results->ceiling);
    output_rows(&out, "results", "\n", results->count, result_row, &printed);
    output_rows(&out, NULL, "\n", results->count * (COMPONENTS + 1), component_row, &printed);
    claims_evaluate(results, info, &claims);
    output_end(&out, &claims);
    claims_free(&claims);
}
