/* What the results hold. */
#include <math.h>
#include <string.h>

#include "workloads/common/report.h"
#include "workloads/transformer/workload.h"

/* What --verify did with each variant: verify_steps in run.c. */
#define COMPARED                                                                                   \
    "training in double precision, on all sequences: losses and gradients of step 1, losses of "   \
    "two more, and then the weights"

_Static_assert(VERIFY_STEPS == 3, "the text above counts them");

struct printed {
    const struct transformer_options *options;
    const struct results *results;
};

double token_ns(const struct result *row)
{
    return row->measured.wall.median / (double)rows_of(&row->shape);
}

const struct result *find_result(const struct results *results, const char *variant)
{
    for (size_t i = 0; i < results->count; i++)
        if (strcmp(results->rows[i].variant->name, variant) == 0 && !results->rows[i].skipped[0])
            return &results->rows[i];
    return NULL;
}

static double total_of(const struct result *row)
{
    double ns = 0;

    for (int c = 0; c < COMPONENTS; c++)
        ns += row->component_ns[c];
    return ns;
}

static void note_cache(struct output *out, const struct results *results, const struct result *row)
{
    const char *name = row->variant->name;
    struct json *json = output_json(out);

    if (json) {
        json_number(json, "cache_references", row->cache_references);
        json_number(json, "cache_misses", row->cache_misses);
        json_text(json, "no_cache_counters", results->no_cache[0] ? results->no_cache : NULL);
    } else if (isnan(row->cache_misses)) {
        output_note(out, "%s: %s", name, results->no_cache);
    } else {
        output_note(out, "%s: %.3g cache references per step, %.1f %% missed", name,
                    row->cache_references, 100 * row->cache_misses / row->cache_references);
    }
}

static void step_cells(struct output *out, const struct result *row)
{
    const struct measurement *m = &row->measured;

    output_measurement(out, m);
    output_count(out, NULL, "launches", m->tally.launches);
    output_count(out, NULL, "allocs", m->tally.allocations);
    output_count(out, NULL, "copies", m->tally.transfers);
    output_number(out, NULL, "MB", 3, 1e-6, (double)m->tally.transfer_bytes);
    output_duration(out, NULL, "kernels", m->kernel.median);
    output_duration(out, NULL, "copying", m->transfer.median);
    output_duration(out, NULL, "wall", m->wall.median);
    output_duration(out, NULL, "+-", m->wall.mad);
    output_number(out, "tokens_per_second", "tokens/s", 0, 1, 1e9 / token_ns(row));
    output_number(out, NULL, "GFLOP/s", 1, 1, m->tally.flop / m->kernel.median);
    output_number(out, "first_loss", "loss", 3, 1, row->first_loss);
    output_number(out, "last_loss", "to", 3, 1, row->last_loss);
}

static void result_row(struct output *out, const void *context, size_t index)
{
    const struct printed *printed = context;
    const struct result *row = &printed->results->rows[index];

    output_text(out, "variant", "<variant", row->variant->name);
    output_count(out, "sequences", NULL, row->shape.sequences);
    output_count(out, "width", "d_model", row->shape.width);
    if (output_skipped(out, row->skipped)) {
        output_note(out, "%s: not available: %s", row->variant->name, row->skipped);
        return;
    }
    step_cells(out, row);
    if (!row->variant->form.alloc_per_op)
        output_count(out, "pool_allocations", NULL, row->pool_allocations);
    if (row->variant->on_cpu)
        note_cache(out, printed->results, row);
    if (row->variant->form.apart)
        output_components(out, component_names, row->component_ns, COMPONENTS);
    if (printed->options->common.verify) {
        output_check(out, NULL, "gradient error", &row->check);
        output_check(out, "training", "training error", &row->curve);
    }
}

/* What a step gains over the one before, and its part of all that is gained. */
static void ladder_row(struct output *out, const void *context, size_t index)
{
    const struct printed *printed = context;
    const struct results *results = printed->results;
    const struct result *naive = find_result(results, "naive");
    const struct result *tuned = find_result(results, "tuned");
    const struct result *row = find_result(results, ladder_step(index));
    const struct result *before = index ? find_result(results, ladder_step(index - 1)) : row;

    output_text(out, "variant", "<from naive to tuned", ladder_step(index));
    if (output_skipped(out, row && before ? NULL : "not measured"))
        return;
    output_duration(out, "wall_ns", "wall", row->measured.wall.median);
    output_cell(out, "over the last", "%.2fx",
                before->measured.wall.median / row->measured.wall.median);
    output_cell(out, "over naive", "%.2fx",
                naive->measured.wall.median / row->measured.wall.median);
    output_cell(out, "of the time saved", "%.1f %%",
                100 * (before->measured.wall.median - row->measured.wall.median) /
                    (naive->measured.wall.median - tuned->measured.wall.median));
}

/* One component of a variant that waits between them, or their sum. */
static void component_row(struct output *out, const void *context, size_t index)
{
    const struct printed *printed = context;
    const struct result *row = &printed->results->rows[index / (COMPONENTS + 1)];
    size_t c = index % (COMPONENTS + 1);
    double total = total_of(row), ns = c < COMPONENTS ? row->component_ns[c] : total;

    if (!row->variant->form.apart || row->skipped[0])
        return;
    output_text(out, NULL, "<variant", row->variant->name);
    output_text(out, NULL, "<component", c < COMPONENTS ? component_names[c] : "total");
    output_number(out, NULL, "ms per batch", 4, 1e-6, ns);
    output_cell(out, "share", "%.1f %%", 100 * ns / total);
}

static void print_sizes(struct output *out, const struct transformer_options *options)
{
    output_setting(out, "sequences", options->sequences);
    output_setting(out, "length", options->length);
    output_setting(out, "width", options->width);
    output_setting(out, "heads", options->heads);
    output_setting(out, "layers", options->layers);
    output_setting(out, "vocabulary", options->vocabulary);
    output_line(out, "%u sequences of %u tokens, %u different ones; %u layer%s, %u heads",
                options->sequences, options->length, options->vocabulary, options->layers,
                options->layers == 1 ? "" : "s", options->heads);
    output_line(out,
                "medians of %u steps after %u for warm-up, +- is the median deviation; MB and "
                "counts are those of a step",
                options->common.iterations, options->common.warmup);
    output_compared(out, options->common.verify ? COMPARED : NULL);
}

void print_results(const struct transformer_options *options, const struct dev_info *info,
                   const struct results *results)
{
    struct printed printed = {options, results};
    struct claims claims = {0};
    struct output out;
    size_t steps = 0;

    output_begin(&out, "transformer", info, &options->common);
    print_sizes(&out, options);
    if (output_json(&out))
        json_number(&out.json, "copy_bytes_per_s", results->ceiling);
    output_rows(&out, "results", "\n", results->count, result_row, &printed);
    while (find_result(results, "naive") && find_result(results, "tuned") && ladder_step(steps))
        steps++;
    output_rows(&out, "ladder", "\n", steps, ladder_row, &printed);
    output_rows(&out, NULL, "\n", results->count * (COMPONENTS + 1), component_row, &printed);
    claims_make(results, info, &claims);
    output_end(&out, &claims);
    claims_free(&claims);
}
