/* The results as tables for people or as one JSON object, by rank 0. */
#include <math.h>
#include <stdio.h>

#include "workloads/allreduce/workload.h"
#include "workloads/common/report.h"

/* What --verify did with each variant: verify_steps in run.c. */
#define COMPARED                                                                                   \
    "one process's training in double precision on the whole batch: losses and summed gradients "  \
    "of step 1, losses of two more, and then the weights, which are the same on all ranks"

_Static_assert(VERIFY_STEPS == 3, "the text above counts them");

/* Bus bandwidth of an all-reduce, bytes/s, as nccl-tests counts it: what each link of a ring
 * carries, 2 (n - 1) / n of the message. */
static double bus_bandwidth(const struct result *row, uint32_t ranks)
{
    double slowest = 0;

    for (uint32_t r = 0; r < ranks; r++)
        slowest = fmax(slowest, row->ranks[r].busy);
    if (ranks < 2 || !(slowest > 0))
        return NAN;
    return 2.0 * (ranks - 1) / ranks * (double)row->bytes / (slowest / 1e9);
}

/* Tokens of all ranks in the time of a step. */
static double tokens_per_second(const struct allreduce_options *options, const struct result *row)
{
    double tokens = (double)options->sequences * options->length;

    return 1e9 * tokens / row->measured.wall.median;
}

/* ---- tables --------------------------------------------------------------------------------- */

static void bandwidth_cell(struct table *table, double bytes_per_s)
{
    if (isnan(bytes_per_s))
        table_cell(table, "n/a");
    else
        table_cell(table, "%.2f", bytes_per_s / 1e9);
}

static void result_row(struct table *table, const struct allreduce_options *options,
                       const struct result *row)
{
    const struct rank_result *first = row->ranks;
    bool verified = options->common.verify;

    table_row(table);
    table_cell(table, "%s", row->variant->name);
    if (row->skipped[0]) {
        for (int i = 0; i < (verified ? 12 : 9); i++)
            table_cell(table, "n/a");
        return;
    }
    table_cell(table, "%u", row->reductions);
    table_cell(table, "%.3f", (double)row->bytes / 1e6);
    table_duration(table, first->busy);
    table_duration(table, first->exposed);
    bandwidth_cell(table, bus_bandwidth(row, options->meet.ranks));
    table_duration(table, row->measured.wall.median);
    table_cell(table, "%.0f", tokens_per_second(options, row));
    table_cell(table, "%.3f", row->first_loss);
    table_cell(table, "%.3f", row->last_loss);
    if (verified) {
        check_cell(table, &row->check);
        check_cell(table, &row->curve);
        check_cell(table, &row->replicas);
    }
}

/* Sentences stand below the table. */
static void print_notes(const struct allreduce_options *options, const struct results *results)
{
    for (size_t i = 0; i < results->count; i++) {
        const struct result *row = &results->rows[i];

        if (row->skipped[0])
            printf("  %s: not available: %s\n", row->variant->name, row->skipped);
        else if (row->variant->slow && options->slow_by == SLOW_BY_HOST)
            printf("  %s: rank %u sleeps %u ms before each step\n", row->variant->name,
                   row->slow_rank, options->slow_amount);
        else if (row->variant->slow)
            printf("  %s: rank %u runs the forward pass %u more time%s in each step\n",
                   row->variant->name, row->slow_rank, options->slow_amount,
                   options->slow_amount == 1 ? "" : "s");
    }
}

static void print_tables(const struct allreduce_options *options, const struct dev_info *info,
                         const struct results *results)
{
    static const char *const plain[] = {"<variant", "all-reduces", "MB",   "adding up",
                                        "exposed",  "bus GB/s",    "wall", "tokens/s",
                                        "loss",     "to",          NULL};
    static const char *const checked[] = {
        "<variant", "all-reduces", "MB", "adding up",      "exposed",        "bus GB/s",     "wall",
        "tokens/s", "loss",        "to", "gradient error", "training error", "ranks differ", NULL};
    struct table table;

    report_title("allreduce", info);
    printf("%u ranks; %u sequences of %u tokens in all, %u different ones; width %u, %u layer%s\n",
           options->meet.ranks, options->sequences, options->length, options->vocabulary,
           options->width, options->layers, options->layers == 1 ? "" : "s");
    printf("medians of %u steps after %u for warm-up; adding up and exposed are means of a step on "
           "rank 0:\nthe time in all-reduces, and from the end of the backward pass until the sums "
           "are there\n",
           options->common.iterations, options->common.warmup);
    if (options->common.verify)
        printf("compared with %s\n", COMPARED);
    putchar('\n');
    table_begin(&table, options->common.verify ? checked : plain);
    for (size_t i = 0; i < results->count; i++)
        result_row(&table, options, &results->rows[i]);
    table_end(&table);
    print_notes(options, results);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void ranks_json(struct json *json, const struct result *row, uint32_t ranks)
{
    json_array_begin(json, "ranks");
    for (uint32_t r = 0; r < ranks; r++) {
        const struct rank_result *rank = &row->ranks[r];

        json_object_begin(json, NULL);
        json_integer(json, "rank", r);
        json_number(json, "wall_ns", rank->wall);
        json_number(json, "kernel_ns", rank->kernel);
        json_number(json, "all_reduce_ns", rank->busy);
        json_number(json, "exposed_ns", rank->exposed);
        json_object_end(json);
    }
    json_array_end(json);
}

static void result_json(struct json *json, const struct allreduce_options *options,
                        const struct result *row)
{
    json_object_begin(json, NULL);
    json_text(json, "variant", row->variant->name);
    if (row->skipped[0]) {
        json_text(json, "skipped", row->skipped);
        json_object_end(json);
        return;
    }
    measurement_json(json, &row->measured);
    json_integer(json, "all_reduces", row->reductions);
    json_integer(json, "all_reduce_bytes", row->bytes);
    json_number(json, "bus_bytes_per_s", bus_bandwidth(row, options->meet.ranks));
    json_number(json, "tokens_per_second", tokens_per_second(options, row));
    json_number(json, "first_loss", row->first_loss);
    json_number(json, "last_loss", row->last_loss);
    if (row->variant->slow)
        json_integer(json, "slow_rank", row->slow_rank);
    ranks_json(json, row, options->meet.ranks);
    check_json(json, &row->check);
    if (row->curve.done) {
        json_object_begin(json, "training");
        check_json(json, &row->curve);
        json_object_end(json);
        json_object_begin(json, "replicas");
        check_json(json, &row->replicas);
        json_object_end(json);
    }
    json_object_end(json);
}

static void print_json(const struct allreduce_options *options, const struct dev_info *info,
                       const struct results *results)
{
    struct json json;

    report_json_begin(&json, "allreduce", info, &options->common);
    json_integer(&json, "ranks", options->meet.ranks);
    json_integer(&json, "sequences", options->sequences);
    json_integer(&json, "length", options->length);
    json_integer(&json, "width", options->width);
    json_integer(&json, "heads", options->heads);
    json_integer(&json, "layers", options->layers);
    json_integer(&json, "vocabulary", options->vocabulary);
    if (options->common.verify)
        json_text(&json, "compared_with", COMPARED);
    json_array_begin(&json, "results");
    for (size_t i = 0; i < results->count; i++)
        result_json(&json, options, &results->rows[i]);
    json_array_end(&json);
    json_object_end(&json);
}

void print_results(const struct allreduce_options *options, const struct dev_info *info,
                   const struct results *results)
{
    if (options->common.json)
        print_json(options, info, results);
    else
        print_tables(options, info, results);
}
