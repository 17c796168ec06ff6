/* The results as tables for people or as one JSON object. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "workloads/common/claims.h"
#include "workloads/common/report.h"
#include "workloads/transformer/workload.h"

/* What --verify did with each variant: verify_steps in run.c. */
#define COMPARED                                                                                   \
    "training in double precision, on all sequences: losses and gradients of step 1, losses of "   \
    "two more, and then the weights"

_Static_assert(VERIFY_STEPS == 3, "the text above counts them");

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

/* ---- tables --------------------------------------------------------------------------------- */

static void result_row(struct table *table, const struct result *row, bool verified)
{
    const struct measurement *m = &row->measured;

    table_row(table);
    table_cell(table, "%s", row->variant->name);
    table_cell(table, "%u", row->shape.width);
    if (row->skipped[0]) {
        for (int i = 0; i < (verified ? 14 : 12); i++)
            table_cell(table, "n/a");
        return;
    }
    table_cell(table, "%u", m->tally.launches);
    table_cell(table, "%u", m->tally.allocations);
    table_cell(table, "%u", m->tally.transfers);
    table_cell(table, "%.3f", (double)m->tally.transfer_bytes / 1e6);
    table_duration(table, m->kernel.median);
    table_duration(table, m->transfer.median);
    table_duration(table, m->wall.median);
    table_duration(table, m->wall.mad);
    table_cell(table, "%.0f", 1e9 / token_ns(row));
    if (isnan(m->kernel.median))
        table_cell(table, "n/a");
    else
        table_cell(table, "%.1f", m->tally.flop / m->kernel.median);
    table_cell(table, "%.3f", row->first_loss);
    table_cell(table, "%.3f", row->last_loss);
    if (verified) {
        check_cell(table, &row->check);
        check_cell(table, &row->curve);
    }
}

/* What each step gains over the one before, and its part of all that is gained. */
static void print_ladder(const struct results *results)
{
    static const char *const header[] = {
        "<from naive to tuned", "wall", "over the last", "over naive", "of the time saved", NULL};
    const struct result *naive = find_result(results, "naive"), *before = naive;
    const struct result *tuned = find_result(results, "tuned");
    struct table table;
    const char *name;

    if (!naive || !tuned)
        return;
    putchar('\n');
    table_begin(&table, header);
    for (size_t i = 0; (name = ladder_step(i)) != NULL; i++) {
        const struct result *row = find_result(results, name);
        double all = naive->measured.wall.median - tuned->measured.wall.median;

        table_row(&table);
        table_cell(&table, "%s", name);
        table_duration(&table, row->measured.wall.median);
        table_cell(&table, "%.2fx", before->measured.wall.median / row->measured.wall.median);
        table_cell(&table, "%.2fx", naive->measured.wall.median / row->measured.wall.median);
        table_cell(&table, "%.1f %%",
                   100 * (before->measured.wall.median - row->measured.wall.median) / all);
        before = row;
    }
    table_end(&table);
}

static void component_rows(struct table *table, const struct result *row)
{
    double total = total_of(row);

    for (int c = 0; c <= COMPONENTS; c++) {
        double ns = c < COMPONENTS ? row->component_ns[c] : total;

        table_row(table);
        table_cell(table, "%s", row->variant->name);
        table_cell(table, "%s", c < COMPONENTS ? component_names[c] : "total");
        table_cell(table, "%.4f", ns / 1e6);
        table_cell(table, "%.1f %%", 100 * ns / total);
    }
}

static void print_components(const struct results *results)
{
    static const char *const header[] = {"<variant", "<component", "ms per batch", "share", NULL};
    struct table table;

    table_begin(&table, header);
    for (size_t i = 0; i < results->count; i++)
        if (results->rows[i].variant->form.apart && !results->rows[i].skipped[0])
            component_rows(&table, &results->rows[i]);
    if (table.rows > 1)
        putchar('\n');
    else
        table.rows = 0;
    table_end(&table);
}

/* Sentences stand below the table. */
static void print_notes(const struct results *results)
{
    for (size_t i = 0; i < results->count; i++) {
        const struct result *row = &results->rows[i];

        if (row->skipped[0])
            printf("  %s: not available: %s\n", row->variant->name, row->skipped);
        if (!row->variant->on_cpu)
            continue;
        if (isnan(row->cache_misses))
            printf("  %s: %s\n", row->variant->name, results->no_cache);
        else
            printf("  %s: %.3g cache references per step, %.1f %% missed\n", row->variant->name,
                   row->cache_references, 100 * row->cache_misses / row->cache_references);
    }
}

static void print_tables(const struct transformer_options *options, const struct dev_info *info,
                         const struct results *results, const struct claims *claims)
{
    static const char *const plain[] = {"<variant", "d_model", "launches", "allocs", "copies",
                                        "MB",       "kernels", "copying",  "wall",   "+-",
                                        "tokens/s", "GFLOP/s", "loss",     "to",     NULL};
    static const char *const checked[] = {
        "<variant",       "d_model",        "launches", "allocs",   "copies",  "MB",   "kernels",
        "copying",        "wall",           "+-",       "tokens/s", "GFLOP/s", "loss", "to",
        "gradient error", "training error", NULL};
    struct table table;

    report_title("transformer", info);
    printf("%u sequences of %u tokens, %u different ones; %u layer%s, %u heads\n",
           options->sequences, options->length, options->vocabulary, options->layers,
           options->layers == 1 ? "" : "s", options->heads);
    printf("medians of %u steps after %u for warm-up, +- is the median deviation; MB and counts "
           "are those of a step\n",
           options->common.iterations, options->common.warmup);
    if (options->common.verify)
        printf("compared with %s\n", COMPARED);
    putchar('\n');
    table_begin(&table, options->common.verify ? checked : plain);
    for (size_t i = 0; i < results->count; i++)
        result_row(&table, &results->rows[i], options->common.verify);
    table_end(&table);
    print_notes(results);
    print_ladder(results);
    print_components(results);
    claims_print(claims);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void result_json(struct json *json, const struct results *results, const struct result *row)
{
    json_object_begin(json, NULL);
    json_text(json, "variant", row->variant->name);
    json_integer(json, "sequences", row->shape.sequences);
    json_integer(json, "width", row->shape.width);
    if (row->skipped[0]) {
        json_text(json, "skipped", row->skipped);
        json_object_end(json);
        return;
    }
    measurement_json(json, &row->measured);
    json_number(json, "tokens_per_second", 1e9 / token_ns(row));
    json_number(json, "first_loss", row->first_loss);
    json_number(json, "last_loss", row->last_loss);
    if (!row->variant->form.alloc_per_op)
        json_integer(json, "pool_allocations", row->pool_allocations);
    if (row->variant->on_cpu) {
        json_number(json, "cache_references", row->cache_references);
        json_number(json, "cache_misses", row->cache_misses);
        json_text(json, "no_cache_counters", results->no_cache[0] ? results->no_cache : NULL);
    }
    if (row->variant->form.apart)
        components_json(json, component_names, row->component_ns, COMPONENTS);
    check_json(json, &row->check);
    if (row->curve.done) {
        json_object_begin(json, "training");
        check_json(json, &row->curve);
        json_object_end(json);
    }
    json_object_end(json);
}

static void ladder_json(struct json *json, const struct results *results)
{
    const char *name;

    json_array_begin(json, "ladder");
    for (size_t i = 0; (name = ladder_step(i)) != NULL; i++) {
        const struct result *row = find_result(results, name);

        if (!row)
            continue;
        json_object_begin(json, NULL);
        json_text(json, "variant", name);
        json_number(json, "wall_ns", row->measured.wall.median);
        json_object_end(json);
    }
    json_array_end(json);
}

static void print_json(const struct transformer_options *options, const struct dev_info *info,
                       const struct results *results, const struct claims *claims)
{
    struct json json;

    report_json_begin(&json, "transformer", info, &options->common);
    json_integer(&json, "sequences", options->sequences);
    json_integer(&json, "length", options->length);
    json_integer(&json, "width", options->width);
    json_integer(&json, "heads", options->heads);
    json_integer(&json, "layers", options->layers);
    json_integer(&json, "vocabulary", options->vocabulary);
    if (options->common.verify)
        json_text(&json, "compared_with", COMPARED);
    json_number(&json, "copy_bytes_per_s", results->ceiling);
    json_array_begin(&json, "results");
    for (size_t i = 0; i < results->count; i++)
        result_json(&json, results, &results->rows[i]);
    json_array_end(&json);
    ladder_json(&json, results);
    claims_json(&json, claims);
    json_object_end(&json);
}

void print_results(const struct transformer_options *options, const struct dev_info *info,
                   const struct results *results)
{
    struct claims claims = {0};

    claims_make(results, info, &claims);
    if (options->common.json)
        print_json(options, info, results, &claims);
    else
        print_tables(options, info, results, &claims);
    claims_free(&claims);
}
