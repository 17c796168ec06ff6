/* The results as tables for people: times and their parts, the error table, the memory by kind and
 * what the next batch would take.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "workloads/common/report.h"
#include "workloads/rollout/workload.h"

#define MIB (1024.0 * 1024.0)

static double launches(const struct result *row)
{
    double sum = 0;

    for (int part = 0; part < PART_KINDS; part++)
        sum += row->tally[part].launches;
    return sum;
}

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
                table_cell(&table, "%.2f", part_bandwidth(row, (enum part)part) / 1e9);
            else if (part != PART_STEP)
                table_cell(&table, "%.2f, %.0f %%", part_bandwidth(row, (enum part)part) / 1e9,
                           100 * part_bandwidth(row, (enum part)part) / results->ceiling);
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

static void print_memory(const struct rollout_options *options, const struct results *results)
{
    static const char *const header[] = {
        "<variant",     "states", "weights",     "activations",    "workspace",
        "trajectories", "total",  "of capacity", "one batch more", NULL};
    double capacity = (double)results->capacity;
    struct table table;

    printf("\ndevice memory in MiB, of %.1f MiB%s\n", capacity / MIB,
           results->limited ? " (--memory-limit)" : "");
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

const char *arithmetic(const struct dev_info *info)
{
    if (info->backend == DEV_CUDA)
        return "convolutions of fp16 and bf16 on tensor cores, summed in float";
    return "fp16 and bf16 are how fields are stored; arithmetic is in float";
}

void print_tables(const struct rollout_options *options, const struct dev_info *info,
                  const struct results *results, const struct claims *claims)
{
    report_title("rollout", info);
    printf("%u steps of %u realisations, %ux%u, %u layers of %u channels; medians of %u rollouts "
           "after %u for warm-up; %s\n",
           options->steps, options->realisations, options->grid, options->grid, options->layers,
           options->channels, options->common.iterations, options->common.warmup, arithmetic(info));
    if (options->compare_steps && options->compare_steps < options->steps)
        printf("%u steps where other things than precisions are compared\n",
               options->compare_steps);
    putchar('\n');
    print_times(results);
    print_parts(results);
    print_errors(results);
    print_memory(options, results);
    claims_print(claims);
}
