/* What the results hold. */
#include <math.h>

#include "workloads/common/report.h"
#include "workloads/patterns/workload.h"

struct printed {
    const struct pattern_options *options;
    const struct results *results;
};

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

static void rate_cell(struct output *out, const char *header, double per_step, double ns)
{
    if (per_step > 0 && ns > 0)
        output_cell(out, header, "%.2f", per_step / ns);
    else
        output_cell(out, header, "-");
}

static void limit_cells(struct output *out, const struct result *row, double share)
{
    const struct measurement *m = &row->measured;

    if (isnan(share))
        output_cell(out, "of copy", "-");
    else
        output_cell(out, "of copy", "%.0f %%", 100 * share);
    rate_cell(out, "GFLOP/s", m->tally.flop, m->kernel.median);
    if (row->registers)
        output_cell(out, "occupancy", "%.0f %% (%u)", 100 * row->occupancy, row->registers);
    else
        output_cell(out, "occupancy", "-");
    if (!output_json(out))
        return;
    json_number(&out->json, "share_of_copy_bandwidth", share);
    json_number(&out->json, "occupancy", row->occupancy);
    if (row->registers)
        json_integer(&out->json, "registers", row->registers);
}

static void result_row(struct output *out, const void *context, size_t index)
{
    const struct printed *printed = context;
    const struct result *row = &printed->results->rows[index];
    const struct measurement *m = &row->measured;

    output_text(out, "variant", "<variant", row->variant);
    if (output_skipped(out, row->skipped)) {
        output_note(out, "%s: %s", row->variant, row->skipped);
        return;
    }
    output_measurement(out, m);
    output_duration(out, NULL, "wall", m->wall.median);
    output_duration(out, NULL, "+-", m->wall.mad);
    output_duration(out, NULL, "device", device_ns(m));
    output_count(out, NULL, "launches", m->tally.launches);
    output_count(out, NULL, "allocs", m->tally.allocations);
    rate_cell(out, "copies GB/s", (double)m->tally.transfer_bytes, m->wall.median);
    rate_cell(out, "GB/s", m->tally.bytes_read + m->tally.bytes_written, m->kernel.median);
    limit_cells(out, row, share_of_ceiling(printed->results, row));
    if (row->note[0]) {
        output_text(out, "note", NULL, row->note);
        output_note(out, "%s: %s", row->variant, row->note);
    }
    if (printed->options->common.verify)
        output_check(out, NULL, "relative error", &row->check);
}

void print_results(const struct pattern_options *options, const struct dev_info *info,
                   const struct results *results)
{
    struct printed printed = {options, results};
    struct claims claims = {0};
    struct output out;

    output_begin(&out, "patterns", info, &options->common);
    output_line(&out, "medians of %u iterations after %u for warm-up, +- is the median deviation",
                options->common.iterations, options->common.warmup);
    if (!isnan(results->ceiling))
        output_line(&out, "copies within the device run at %.1f GB/s", results->ceiling / 1e9);
    if (output_json(&out))
        json_number(&out.json, "copy_bytes_per_s", results->ceiling);
    output_rows(&out, "results", "\n", results->count, result_row, &printed);
    claims_evaluate(results, info, &claims);
    output_end(&out, &claims);
    claims_free(&claims);
}
