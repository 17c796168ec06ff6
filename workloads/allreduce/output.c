/* What the results hold, printed by rank 0. */
#include <math.h>

#include "workloads/allreduce/workload.h"
#include "workloads/common/report.h"

/* What --verify did with each variant: verify_steps in run.c. */
#define COMPARED                                                                                   \
    "one process's training in double precision on the whole batch: losses and summed gradients "  \
    "of step 1, losses of two more, and then the weights, which are the same on all ranks"

_Static_assert(VERIFY_STEPS == 3, "the text above counts them");

struct printed {
    const struct allreduce_options *options;
    const struct result *rows;
};

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

static void note_slow_rank(struct output *out, const struct allreduce_options *options,
                           const struct result *row)
{
    if (options->slow_by == SLOW_BY_HOST)
        output_note(out, "%s: rank %u sleeps %u ms before each step", row->variant->name,
                    row->slow_rank, options->slow_amount);
    else
        output_note(out, "%s: rank %u runs the forward pass %u more time%s in each step",
                    row->variant->name, row->slow_rank, options->slow_amount,
                    options->slow_amount == 1 ? "" : "s");
}

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

static void result_row(struct output *out, const void *context, size_t index)
{
    const struct printed *printed = context;
    const struct allreduce_options *options = printed->options;
    const struct result *row = &printed->rows[index];

    output_text(out, "variant", "<variant", row->variant->name);
    if (output_skipped(out, row->skipped)) {
        output_note(out, "%s: not available: %s", row->variant->name, row->skipped);
        return;
    }
    output_measurement(out, &row->measured);
    output_count(out, "all_reduces", "all-reduces", row->reductions);
    output_count(out, "all_reduce_bytes", NULL, row->bytes);
    output_number(out, NULL, "MB", 3, 1e-6, (double)row->bytes);
    output_duration(out, NULL, "adding up", row->ranks[0].busy);
    output_duration(out, NULL, "exposed", row->ranks[0].exposed);
    output_number(out, "bus_bytes_per_s", "bus GB/s", 2, 1e-9,
                  bus_bandwidth(row, options->meet.ranks));
    output_duration(out, NULL, "wall", row->measured.wall.median);
    output_number(out, "tokens_per_second", "tokens/s", 0, 1, tokens_per_second(options, row));
    output_number(out, "first_loss", "loss", 3, 1, row->first_loss);
    output_number(out, "last_loss", "to", 3, 1, row->last_loss);
    if (row->variant->slow) {
        output_count(out, "slow_rank", NULL, row->slow_rank);
        note_slow_rank(out, options, row);
    }
    if (output_json(out))
        ranks_json(output_json(out), row, options->meet.ranks);
    if (options->common.verify) {
        output_check(out, NULL, "gradient error", &row->check);
        output_check(out, "training", "training error", &row->curve);
        output_check(out, "replicas", "ranks differ", &row->replicas);
    }
}

void print_results(const struct allreduce_options *options, const struct dev_info *info,
                   const struct results *results)
{
    struct printed printed = {options, results->rows};
    struct output out;

    output_begin(&out, "allreduce", info, &options->common);
    output_setting(&out, "ranks", options->meet.ranks);
    output_setting(&out, "sequences", options->sequences);
    output_setting(&out, "length", options->length);
    output_setting(&out, "width", options->width);
    output_setting(&out, "heads", options->heads);
    output_setting(&out, "layers", options->layers);
    output_setting(&out, "vocabulary", options->vocabulary);
    output_line(&out,
                "%u ranks; %u sequences of %u tokens in all, %u different ones; width %u, %u "
                "layer%s",
                options->meet.ranks, options->sequences, options->length, options->vocabulary,
                options->width, options->layers, options->layers == 1 ? "" : "s");
    output_line(&out,
                "medians of %u steps after %u for warm-up; adding up and exposed are means of a "
                "step on rank 0:\nthe time in all-reduces, and from the end of the backward pass "
                "until the sums are there",
                options->common.iterations, options->common.warmup);
    output_compared(&out, options->common.verify ? COMPARED : NULL);
    output_rows(&out, "results", "\n", results->count, result_row, &printed);
    output_end(&out, NULL);
}
