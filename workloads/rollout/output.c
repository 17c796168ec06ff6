/* What the results hold: times and their parts, the error table, the memory by kind and what the
 * next batch would take.
 */
#include <math.h>
#include <string.h>

#include "workloads/common/report.h"
#include "workloads/rollout/workload.h"

#define MIB (1024.0 * 1024.0)

struct printed {
    const struct rollout_options *options;
    const struct results *results;
};

static double launches(const struct result *row)
{
    double sum = 0;

    for (int part = 0; part < PART_KINDS; part++)
        sum += row->tally[part].launches;
    return sum;
}

static void errors_json(struct json *json, const char *key, const struct errors *errors)
{
    if (!errors->done)
        return;
    json_object_begin(json, key);
    json_number(json, "max_absolute", errors->max_absolute);
    json_number(json, "mean_absolute", errors->mean_absolute);
    json_number(json, "mean_relative", errors->mean_relative);
    json_number(json, "norm_relative", errors->norm);
    json_object_end(json);
}

static void parts_json(struct json *json, const struct result *row, double ceiling)
{
    json_object_begin(json, "parts");
    for (int part = 0; part < PART_KINDS; part++) {
        const struct tally *tally = &row->tally[part];

        json_object_begin(json, part_names[part]);
        json_number(json, "step_ns", row->part_ns[part]);
        json_integer(json, "launches", tally->launches);
        json_number(json, "flop", tally->flop);
        json_number(json, "bytes_read", tally->bytes_read);
        json_number(json, "bytes_written", tally->bytes_written);
        if (part == PART_NORM || part == PART_ACTIVATION || part == PART_NOISE)
            json_number(json, "share_of_copy_bandwidth",
                        part_bandwidth(row, (enum part)part) / ceiling);
        json_object_end(json);
    }
    json_object_end(json);
}

/* The members that only JSON has. */
static void result_json(struct json *json, const struct result *row, double ceiling)
{
    json_integer(json, "steps", row->steps);
    stats_json(json, "wall_ns", &row->wall);
    stats_json(json, "device_ns", &row->device);
    parts_json(json, row, ceiling);
    json_number(json, "empty_launch_ns", row->empty_ns);
    json_object_begin(json, "memory_bytes");
    for (int kind = 0; kind < MEMORY_KINDS; kind++)
        json_integer(json, memory_names[kind], row->memory[kind]);
    json_object_end(json);
    if (row->variant->graph)
        json_number(json, "compile_ns", row->compile_ns);
    errors_json(json, "errors_against_fp32", &row->fp32);
    errors_json(json, "errors_against_reference", &row->reference);
    if (row->reference.done) {
        json_number(json, "tolerance", row->tolerance);
        json_bool(json, "verified", result_passed(row));
    }
}

static void result_row(struct output *out, const void *context, size_t index)
{
    const struct printed *printed = context;
    const struct result *row = &printed->results->rows[index];

    output_text(out, "variant", "<variant", row->variant->name);
    output_text(out, "storage", "<storage", storage_name(row->storage));
    output_count(out, "images", "images", row->images);
    output_count(out, "batch", NULL, row->batch);
    if (output_skipped(out, row->skipped)) {
        output_note(out, "%s: %s", row->variant->name, row->skipped);
        return;
    }
    output_duration(out, NULL, "rollout", row->wall.median);
    output_duration(out, NULL, "+-", row->wall.mad);
    output_duration(out, NULL, "device", row->device.median);
    output_duration(out, NULL, "step", step_ns(row));
    output_number(out, "image_steps_per_s", "images x steps/s", 1, 1, 1e9 / image_step_ns(row));
    if (output_json(out))
        result_json(output_json(out), row, printed->results->ceiling);
}

/* Where a step's time goes on the device, and how fast the part moves the bytes it declares. */
static void parts_row(struct output *out, const void *context, size_t index)
{
    static const char *const headers[PART_KINDS] = {[PART_CONVOLUTION] = "convolution",
                                                    [PART_NORM] = "norm",
                                                    [PART_ACTIVATION] = "activation",
                                                    [PART_NOISE] = "noise",
                                                    [PART_STEP] = "step"};
    const struct printed *printed = context;
    const struct result *row = &printed->results->rows[index];
    double ceiling = printed->results->ceiling, sum = 0;

    if (row->skipped[0])
        return;
    output_text(out, NULL, "<variant", row->variant->name);
    for (int part = 0; part < PART_KINDS; part++) {
        double bandwidth = part_bandwidth(row, (enum part)part);

        sum += row->part_ns[part];
        output_duration(out, NULL, headers[part], row->part_ns[part]);
        if (part == PART_CONVOLUTION)
            output_cell(out, "GFLOP/s", "%.1f", row->tally[part].flop / row->part_ns[part]);
        else if (part != PART_STEP && isnan(ceiling))
            output_cell(out, "GB/s", "%.2f", bandwidth / 1e9);
        else if (part != PART_STEP)
            output_cell(out, "GB/s", "%.2f, %.0f %%", bandwidth / 1e9, 100 * bandwidth / ceiling);
    }
    output_duration(out, NULL, "sum", sum);
    output_cell(out, "launches", "%.0f", launches(row));
}

/* Of each variant two rows: the state against double precision, and against fp32. */
static void errors_row(struct output *out, const void *context, size_t index)
{
    const struct printed *printed = context;
    const struct result *row = &printed->results->rows[index / 2];
    bool reference = index % 2 == 0;
    const struct errors *errors = reference ? &row->reference : &row->fp32;

    if (!errors->done)
        return;
    output_text(out, NULL, "<variant", row->variant->name);
    output_text(out, NULL, "<storage", storage_name(row->storage));
    output_text(out, NULL, "<against", reference ? "double reference" : "fp32");
    output_count(out, NULL, "steps", reference ? row->checked_steps : row->steps);
    output_cell(out, "max absolute", "%.2e", errors->max_absolute);
    output_cell(out, "mean absolute", "%.2e", errors->mean_absolute);
    output_cell(out, "mean relative", "%.2e", errors->mean_relative);
    output_cell(out, "norm relative", "%.2e", errors->norm);
    if (reference)
        output_cell(out, "<", "%s (%.0e)", result_passed(row) ? "ok" : "FAILED", row->tolerance);
}

static void memory_row(struct output *out, const void *context, size_t index)
{
    static const char *const headers[MEMORY_KINDS] = {"states", "weights", "activations",
                                                      "workspace", "trajectories"};
    const struct printed *printed = context;
    const struct result *row = &printed->results->rows[index];
    double capacity = (double)printed->results->capacity;
    uint64_t bytes[MEMORY_KINDS], next[MEMORY_KINDS];

    rollout_estimate(printed->options, row->storage, row->batch, bytes);
    rollout_estimate(printed->options, row->storage, row->batch + 1, next);
    if (!row->skipped[0])
        memcpy(bytes, row->memory, sizeof bytes);
    output_text(out, NULL, "<variant", row->variant->name);
    for (int kind = 0; kind < MEMORY_KINDS; kind++)
        output_cell(out, headers[kind], "%.1f", (double)bytes[kind] / MIB);
    output_cell(out, "total", "%.1f%s", (double)memory_sum(bytes) / MIB,
                row->skipped[0] ? " (projected)" : "");
    output_cell(out, "of capacity", "%.1f %%", 100 * (double)memory_sum(bytes) / capacity);
    output_cell(out, "one batch more", "%.1f%s", (double)memory_sum(next) / MIB,
                (double)memory_sum(next) > capacity ? " exceeds it" : "");
}

static const char *arithmetic(const struct dev_info *info)
{
    if (info->backend == DEV_CUDA)
        return "convolutions of fp16 and bf16 on tensor cores, summed in float";
    return "fp16 and bf16 are how fields are stored; arithmetic is in float";
}

static void print_sizes(struct output *out, const struct rollout_options *options,
                        const struct dev_info *info, const struct results *results)
{
    output_setting(out, "grid", options->grid);
    output_setting(out, "channels", options->channels);
    output_setting(out, "layers", options->layers);
    output_setting(out, "realisations", options->realisations);
    output_setting(out, "capacity_bytes", results->capacity);
    if (output_json(out)) {
        json_number(&out->json, "copy_bytes_per_s", results->ceiling);
        json_text(&out->json, "arithmetic", arithmetic(info));
    }
    output_line(out,
                "%u steps of %u realisations, %ux%u, %u layers of %u channels; medians of %u "
                "rollouts after %u for warm-up; %s",
                options->steps, options->realisations, options->grid, options->grid,
                options->layers, options->channels, options->common.iterations,
                options->common.warmup, arithmetic(info));
    if (options->compare_steps && options->compare_steps < options->steps)
        output_line(out, "%u steps where other things than precisions are compared",
                    options->compare_steps);
}

void print_results(const struct rollout_options *options, const struct dev_info *info,
                   const struct results *results)
{
    struct printed printed = {options, results};
    struct claims claims = {0};
    struct output out;
    char title[160] = "";

    output_begin(&out, "rollout", info, &options->common);
    print_sizes(&out, options, info, results);
    output_rows(&out, "results", "\n", results->count, result_row, &printed);
    if (!isnan(results->ceiling))
        snprintf(title, sizeof title, "; bandwidths in %% of a copy's, %.1f GB/s",
                 results->ceiling / 1e9);
    output_line(&out, "\nparts of a step, device times with an event for each launch%s", title);
    output_rows(&out, NULL, NULL, results->count, parts_row, &printed);
    output_rows(&out, NULL, "\nerrors of the state\n", 2 * results->count, errors_row, &printed);
    output_line(&out, "\ndevice memory in MiB, of %.1f MiB%s", (double)results->capacity / MIB,
                results->limited ? " (--memory-limit)" : "");
    output_rows(&out, NULL, NULL, results->count, memory_row, &printed);
    claims_evaluate(results, info, &claims);
    output_end(&out, &claims);
    claims_free(&claims);
}
