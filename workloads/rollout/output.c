/* The results as tables for people or as one JSON object: times and their parts, the error table,
 * the memory by kind and what the next batch would take, and the seed document's claims.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "workloads/common/json.h"
#include "workloads/common/table.h"
#include "workloads/rollout/workload.h"

#define MIB (1024.0 * 1024.0)
#define TARGET 1.5 /* of half precision over fp32, the seed document's */

static const struct {
    const char *claim, *before, *after;
    double target; /* printed as PASSED or FAILED; 0: none */
    const char *seed;
} claims[] = {
    {"half precision", "fp32", "fp16", TARGET, "1.89x, 19.01 s to 10.07 s"},
    {"half precision", "fp32", "bf16", TARGET, "1.78x, 19.01 s to 10.69 s"},
    {"half precision by the library", "conv-cudnn-best", "conv-cudnn-fp16", TARGET,
     "1.89x, 19.01 s to 10.07 s"},
    {"own convolution against the library", "conv-direct", "conv-cudnn", 0, "up to 80x"},
    {"own convolution by tiles", "conv-direct", "conv-tiled", 0, "-"},
    {"algorithm search", "conv-cudnn", "conv-cudnn-best", 0, "1.05-1.10x"},
    {"normalisation", "instance-norm", "group-norm", 0, "1.1-1.2x"},
    {"larger batch", "batch-2", "batch-3", 0, "0.68x under memory pressure"},
    {"compile once, gain per step", "eager", "compile-graph", 0, "1.09x after 15-18 s"},
};

#define CLAIMS (sizeof claims / sizeof claims[0])

struct results {
    const struct result *rows;
    size_t count;
    double ceiling; /* bytes per second of a copy, or NaN */
};

static const struct result *find(const struct results *results, const char *name)
{
    for (size_t i = 0; i < results->count; i++)
        if (strcmp(results->rows[i].variant->name, name) == 0 && !results->rows[i].skipped[0])
            return &results->rows[i];
    return NULL;
}

/* Time per image and step: what a batch of another size is compared by. */
static double image_step_ns(const struct result *row)
{
    return row->wall.median / row->steps / row->images;
}

static double step_ns(const struct result *row)
{
    return row->wall.median / row->steps;
}

/* The step at which the graph has earned its compilation; NaN when it never does. */
static double break_even_steps(const struct result *eager, const struct result *graph)
{
    double gain_ns = step_ns(eager) - step_ns(graph);

    return gain_ns > 0 ? ceil(graph->compile_ns / gain_ns) : NAN;
}

/* Bytes per second that a part moves of those it declares. */
static double bandwidth(const struct result *row, int part)
{
    const struct tally *tally = &row->tally[part];

    return (tally->bytes_read + tally->bytes_written) / row->part_ns[part] * 1e9;
}

static double launches(const struct result *row)
{
    double sum = 0;

    for (int part = 0; part < PART_KINDS; part++)
        sum += row->tally[part].launches;
    return sum;
}

static uint64_t memory_sum(const uint64_t bytes[MEMORY_KINDS])
{
    uint64_t sum = 0;

    for (int kind = 0; kind < MEMORY_KINDS; kind++)
        sum += bytes[kind];
    return sum;
}

static uint64_t capacity_of(const struct dev *dev)
{
    struct dev_memory memory = dev_memory(dev);

    return memory.limit_bytes ? memory.limit_bytes : dev_info(dev)->global_bytes;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void print_times(const struct results *results)
{
    static const char *const header[] = {"<variant", "<storage", "images", "rollout",
                                         "+-",       "device",   "step",   "images x steps/s",
                                         "<",        NULL};
    struct table table;

    table_begin(&table, header);
    for (size_t i = 0; i < results->count; i++) {
        const struct result *row = &results->rows[i];

        table_row(&table);
        table_cell(&table, "%s", row->variant->name);
        table_cell(&table, "%s", storage_name(row->storage));
        table_cell(&table, "%u", row->images);
        if (row->skipped[0]) {
            for (int c = 0; c < 5; c++)
                table_cell(&table, "n/a");
            table_cell(&table, "%s", row->skipped);
            continue;
        }
        table_duration(&table, row->wall.median);
        table_duration(&table, row->wall.mad);
        table_duration(&table, row->device.median);
        table_duration(&table, step_ns(row));
        table_cell(&table, "%.1f", 1e9 / image_step_ns(row));
    }
    table_end(&table);
}

/* Where a step's time goes on the device, and how fast the part moves the bytes it declares. */
static void print_parts(const struct results *results)
{
    static const char *const header[] = {"<variant",   "convolution", "GFLOP/s", "norm", "GB/s",
                                         "activation", "GB/s",        "noise",   "GB/s", "step",
                                         "sum",        "launches",    NULL};
    struct table table;

    printf("\nparts of a step, device times with an event for each launch");
    if (!isnan(results->ceiling))
        printf("; bandwidths in %% of a copy's, %.1f GB/s", results->ceiling / 1e9);
    putchar('\n');
    table_begin(&table, header);
    for (size_t i = 0; i < results->count; i++) {
        const struct result *row = &results->rows[i];
        double sum = 0;

        if (row->skipped[0])
            continue;
        table_row(&table);
        table_cell(&table, "%s", row->variant->name);
        for (int part = 0; part < PART_KINDS; part++) {
            const struct tally *tally = &row->tally[part];

            sum += row->part_ns[part];
            table_duration(&table, row->part_ns[part]);
            if (part == PART_CONVOLUTION)
                table_cell(&table, "%.1f", tally->flop / row->part_ns[part]);
            else if (part != PART_STEP && isnan(results->ceiling))
                table_cell(&table, "%.2f", bandwidth(row, part) / 1e9);
            else if (part != PART_STEP)
                table_cell(&table, "%.2f, %.0f %%", bandwidth(row, part) / 1e9,
                           100 * bandwidth(row, part) / results->ceiling);
        }
        table_duration(&table, sum);
        table_cell(&table, "%.0f", launches(row));
    }
    table_end(&table);
}

static void error_cells(struct table *table, const struct result *row, const char *against,
                        uint32_t steps, const struct errors *errors)
{
    table_row(table);
    table_cell(table, "%s", row->variant->name);
    table_cell(table, "%s", storage_name(row->storage));
    table_cell(table, "%s", against);
    table_cell(table, "%u", steps);
    table_cell(table, "%.2e", errors->max_absolute);
    table_cell(table, "%.2e", errors->mean_absolute);
    table_cell(table, "%.2e", errors->mean_relative);
    table_cell(table, "%.2e", errors->norm);
}

static void print_errors(const struct results *results)
{
    static const char *const header[] = {
        "<variant",      "<storage",      "<against",      "steps", "max absolute",
        "mean absolute", "mean relative", "norm relative", "<",     NULL};
    struct table table;

    table_begin(&table, header);
    for (size_t i = 0; i < results->count; i++) {
        const struct result *row = &results->rows[i];

        if (row->reference.done) {
            error_cells(&table, row, "double reference", row->checked_steps, &row->reference);
            table_cell(&table, "%s (%.0e)", result_passed(row) ? "ok" : "FAILED", row->tolerance);
        }
        if (row->fp32.done)
            error_cells(&table, row, "fp32", row->steps, &row->fp32);
    }
    if (table.rows > 1)
        printf("\nerrors of the state\n");
    else
        table.rows = 0;
    table_end(&table);
}

static void print_memory(const struct rollout_options *options, const struct dev *dev,
                         const struct results *results)
{
    static const char *const header[] = {
        "<variant",     "states", "weights",     "activations",    "workspace",
        "trajectories", "total",  "of capacity", "one batch more", NULL};
    double capacity = (double)capacity_of(dev);
    struct table table;

    printf("\ndevice memory in MiB, of %.1f MiB%s\n", capacity / MIB,
           dev_memory(dev).limit_bytes ? " (--memory-limit)" : "");
    table_begin(&table, header);
    for (size_t i = 0; i < results->count; i++) {
        const struct result *row = &results->rows[i];
        uint64_t bytes[MEMORY_KINDS], next[MEMORY_KINDS];

        rollout_estimate(options, row->storage, row->batch, bytes);
        rollout_estimate(options, row->storage, row->batch + 1, next);
        if (!row->skipped[0])
            memcpy(bytes, row->memory, sizeof bytes);
        table_row(&table);
        table_cell(&table, "%s", row->variant->name);
        for (int kind = 0; kind < MEMORY_KINDS; kind++)
            table_cell(&table, "%.1f", (double)bytes[kind] / MIB);
        table_cell(&table, "%.1f%s", (double)memory_sum(bytes) / MIB,
                   row->skipped[0] ? " (projected)" : "");
        table_cell(&table, "%.1f %%", 100 * (double)memory_sum(bytes) / capacity);
        table_cell(&table, "%.1f%s", (double)memory_sum(next) / MIB,
                   (double)memory_sum(next) > capacity ? " exceeds it" : "");
    }
    table_end(&table);
}

static void print_claims(const struct results *results)
{
    static const char *const header[] = {
        "<claim", "<before", "step/image", "<after", "step/image", "speed-up", "<seed", "<", NULL};
    struct table table;

    table_begin(&table, header);
    for (size_t c = 0; c < CLAIMS; c++) {
        const struct result *before = find(results, claims[c].before);
        const struct result *after = find(results, claims[c].after);
        double speedup;

        if (!before || !after)
            continue;
        speedup = image_step_ns(before) / image_step_ns(after);
        table_row(&table);
        table_cell(&table, "%s", claims[c].claim);
        table_cell(&table, "%s", claims[c].before);
        table_duration(&table, image_step_ns(before));
        table_cell(&table, "%s", claims[c].after);
        table_duration(&table, image_step_ns(after));
        table_cell(&table, "%.2fx", speedup);
        table_cell(&table, "%s", claims[c].seed);
        if (claims[c].target > 0)
            table_cell(&table, "%s: %.2fx, target %.2fx",
                       speedup >= claims[c].target ? "PASSED" : "FAILED", speedup,
                       claims[c].target);
        else if (after->variant->graph)
            table_cell(&table, "compiled in %.1f ms, break-even step %.0f", after->compile_ns / 1e6,
                       break_even_steps(before, after));
    }
    if (table.rows > 1)
        putchar('\n');
    else
        table.rows = 0; /* a single variant proves no claim */
    table_end(&table);
}

/* How the short storages are computed with here. */
static const char *arithmetic(const struct dev_info *info)
{
    if (info->backend == DEV_CUDA)
        return "convolutions of fp16 and bf16 on tensor cores, summed in float";
    return "fp16 and bf16 are how fields are stored; arithmetic is in float";
}

static void print_tables(const struct rollout_options *options, const struct dev *dev,
                         const struct results *results)
{
    const struct dev_info *info = dev_info(dev);

    printf("rollout on %s: %s (%s), %u compute units\n", dev_backend_name(info->backend),
           info->name, info->platform, info->compute_units);
    printf("%u steps of %u realisations, %ux%u, %u layers of %u channels; medians of %u rollouts "
           "after %u for warm-up; %s\n\n",
           options->steps, options->realisations, options->grid, options->grid, options->layers,
           options->channels, options->common.iterations, options->common.warmup, arithmetic(info));
    print_times(results);
    print_parts(results);
    print_errors(results);
    print_memory(options, dev, results);
    print_claims(results);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

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
            json_number(json, "share_of_copy_bandwidth", bandwidth(row, part) / ceiling);
        json_object_end(json);
    }
    json_object_end(json);
}

static void result_json(struct json *json, const struct result *row, double ceiling)
{
    json_object_begin(json, NULL);
    json_text(json, "variant", row->variant->name);
    json_text(json, "storage", storage_name(row->storage));
    json_integer(json, "images", row->images);
    json_integer(json, "batch", row->batch);
    if (row->skipped[0]) {
        json_text(json, "skipped", row->skipped);
        json_object_end(json);
        return;
    }
    json_integer(json, "steps", row->steps);
    stats_json(json, "wall_ns", &row->wall);
    stats_json(json, "device_ns", &row->device);
    json_number(json, "image_steps_per_s", 1e9 / image_step_ns(row));
    parts_json(json, row, ceiling);
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
    json_object_end(json);
}

static void claims_json(struct json *json, const struct results *results)
{
    json_array_begin(json, "claims");
    for (size_t c = 0; c < CLAIMS; c++) {
        const struct result *before = find(results, claims[c].before);
        const struct result *after = find(results, claims[c].after);
        double speedup;

        if (!before || !after)
            continue;
        speedup = image_step_ns(before) / image_step_ns(after);
        json_object_begin(json, NULL);
        json_text(json, "claim", claims[c].claim);
        json_text(json, "before", claims[c].before);
        json_text(json, "after", claims[c].after);
        json_number(json, "before_ns", image_step_ns(before));
        json_number(json, "after_ns", image_step_ns(after));
        json_number(json, "speedup", speedup);
        json_text(json, "seed", claims[c].seed);
        if (claims[c].target > 0) {
            json_number(json, "target", claims[c].target);
            json_bool(json, "passed", speedup >= claims[c].target);
        }
        if (after->variant->graph)
            json_number(json, "break_even_steps", break_even_steps(before, after));
        json_object_end(json);
    }
    json_array_end(json);
}

static void print_json(const struct rollout_options *options, const struct dev *dev,
                       const struct results *results)
{
    const struct dev_info *info = dev_info(dev);
    struct json json = {.file = stdout};

    json_object_begin(&json, NULL);
    json_text(&json, "workload", "rollout");
    json_text(&json, "backend", dev_backend_name(info->backend));
    json_text(&json, "device", info->name);
    json_text(&json, "platform", info->platform);
    json_integer(&json, "compute_units", info->compute_units);
    json_integer(&json, "iterations", options->common.iterations);
    json_integer(&json, "warmup", options->common.warmup);
    json_integer(&json, "seed", options->common.seed);
    json_integer(&json, "grid", options->grid);
    json_integer(&json, "channels", options->channels);
    json_integer(&json, "layers", options->layers);
    json_integer(&json, "realisations", options->realisations);
    json_integer(&json, "capacity_bytes", capacity_of(dev));
    json_number(&json, "copy_bytes_per_s", results->ceiling);
    json_text(&json, "arithmetic", arithmetic(info));
    json_array_begin(&json, "results");
    for (size_t i = 0; i < results->count; i++)
        result_json(&json, &results->rows[i], results->ceiling);
    json_array_end(&json);
    claims_json(&json, results);
    json_object_end(&json);
}

void print_results(const struct rollout_options *options, const struct dev *dev, double ceiling,
                   const struct result *rows, size_t count)
{
    const struct results results = {rows, count, ceiling};

    if (options->common.json)
        print_json(options, dev, &results);
    else
        print_tables(options, dev, &results);
}
