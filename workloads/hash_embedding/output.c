/* What the results hold. */
#include "workloads/common/report.h"
#include "workloads/hash_embedding/workload.h"

struct printed {
    const struct hash_options *options;
    const struct result *rows;
};

static void shape_cells(struct output *out, const struct result *row)
{
    struct json *json = output_json(out);

    if (row->cores == 0)
        output_cell(out, "<on", "device");
    else
        output_cell(out, "<on", "%u core%s", row->cores, row->cores == 1 ? "" : "s");
    output_count(out, "records", "records", row->records);
    output_count(out, "plots", "plots", row->plots);
    if (row->batch)
        output_count(out, "batch", "batch", row->batch);
    else
        output_cell(out, "batch", "-");
    if (!json)
        return;
    json_text(json, "device", row->device);
    if (row->cores)
        json_integer(json, "cores", row->cores);
    json_bool(json, "sorted", row->sorted);
}

static void result_row(struct output *out, const void *context, size_t index)
{
    const struct printed *printed = context;
    const struct result *row = &printed->rows[index];
    const struct measurement *m = &row->measured;

    output_text(out, "variant", "<variant", row->variant);
    shape_cells(out, row);
    if (output_skipped(out, row->skipped)) {
        output_note(out, "%s: not available: %s", row->variant, row->skipped);
        return;
    }
    output_measurement(out, m);
    output_duration(out, NULL, "kernels", m->kernel.median);
    output_duration(out, NULL, "+-", m->kernel.mad);
    output_duration(out, NULL, "min", m->kernel.min);
    output_duration(out, NULL, "max", m->kernel.max);
    output_duration(out, NULL, "copies", m->transfer.median);
    output_duration(out, NULL, "wall", m->wall.median);
    output_cell(out, "GB/s", "%.2f",
                (m->tally.bytes_read + m->tally.bytes_written) / m->kernel.median);
    if (printed->options->common.verify)
        output_check(out, NULL, "relative error", &row->check);
    output_text(out, "hash_kernel", "<hash by", row->kernel);
}

void print_results(const struct hash_options *options, const struct dev_info *info,
                   const struct results *results)
{
    struct printed printed = {options, results->rows};
    struct claims claims = {0};
    struct output out;

    output_begin(&out, "hash_embedding", info, &options->common);
    output_setting(&out, "dim", options->dim);
    output_line(&out,
                "medians of %u iterations after %u for warm-up, +- is the median deviation; dim "
                "%u, %s records",
                options->common.iterations, options->common.warmup, options->dim,
                options->order == ORDER_SORTED ? "sorted" : "unsorted");
    output_rows(&out, "results", "\n", results->count, result_row, &printed);
    claims_evaluate(results, info, &claims);
    output_end(&out, &claims);
    claims_free(&claims);
}
