/* The results as tables for people or as one JSON object. */
#include <math.h>
#include <stdio.h>

#include "workloads/common/json.h"
#include "workloads/common/table.h"
#include "workloads/hash_embedding/workload.h"

/* ---- tables --------------------------------------------------------------------------------- */

static void where_cell(struct table *table, const struct result *row)
{
    if (row->cores == 0)
        table_cell(table, "device");
    else
        table_cell(table, "%u core%s", row->cores, row->cores == 1 ? "" : "s");
}

static void result_row(struct table *table, const struct result *row, bool verified)
{
    const struct measurement *m = &row->measured;

    table_row(table);
    table_cell(table, "%s", row->variant);
    where_cell(table, row);
    table_cell(table, "%u", row->records);
    table_cell(table, "%u", row->plots);
    if (row->batch)
        table_cell(table, "%u", row->batch);
    else
        table_cell(table, "-");
    if (row->skipped) {
        for (int i = 0; i < 7; i++)
            table_cell(table, "n/a");
        if (verified)
            table_cell(table, "-");
        table_cell(table, "%s", row->skipped);
        return;
    }
    table_duration(table, m->kernel.median);
    table_duration(table, m->kernel.mad);
    table_duration(table, m->kernel.min);
    table_duration(table, m->kernel.max);
    table_duration(table, m->transfer.median);
    table_duration(table, m->wall.median);
    table_cell(table, "%.2f", (m->tally.bytes_read + m->tally.bytes_written) / m->kernel.median);
    if (verified)
        table_cell(table, "%.1e %s", row->check.error, check_passed(&row->check) ? "ok" : "FAILED");
    table_cell(table, "%s", row->kernel ? row->kernel : "");
}

static void claim_row(void *context, const struct evidence *e)
{
    struct table *table = context;

    table_row(table);
    table_cell(table, "%s", e->claim);
    if (e->before->batch)
        table_cell(table, "batch %u", e->before->batch);
    else
        table_cell(table, "%u rows", e->before->records);
    where_cell(table, e->before);
    table_duration(table, e->before_ns);
    where_cell(table, e->after);
    table_duration(table, e->after_ns);
    table_cell(table, "%.2fx", e->before_ns / e->after_ns);
    table_cell(table, "%+.0f %%", 100 * (e->after_ns / e->before_ns - 1));
    table_cell(table, "%s", e->seed);
}

static void print_tables(const struct hash_options *options, const struct dev_info *info,
                         const struct results *results)
{
    static const char *const plain[] = {"<variant", "<on",  "records",  "plots", "batch",
                                        "kernels",  "+-",   "min",      "max",   "copies",
                                        "wall",     "GB/s", "<hash by", NULL};
    static const char *const checked[] = {
        "<variant", "<on",    "records", "plots", "batch",          "kernels",  "+-", "min",
        "max",      "copies", "wall",    "GB/s",  "relative error", "<hash by", NULL};
    static const char *const claim_header[] = {"<claim", "<at",      "<before", "time",  "<after",
                                               "time",   "speed-up", "change",  "<seed", NULL};
    struct table table;

    printf("hash_embedding on %s: %s (%s), %u compute units\n", dev_backend_name(info->backend),
           info->name, info->platform, info->compute_units);
    printf("medians of %u iterations after %u for warm-up, +- is the median deviation; dim %u, "
           "%s records\n\n",
           options->common.iterations, options->common.warmup, options->dim,
           options->order == ORDER_SORTED ? "sorted" : "unsorted");
    table_begin(&table, options->common.verify ? checked : plain);
    for (size_t i = 0; i < results->count; i++)
        result_row(&table, &results->rows[i], options->common.verify);
    table_end(&table);
    table_begin(&table, claim_header);
    claims_evaluate(results, claim_row, &table);
    if (table.rows > 1)
        putchar('\n');
    if (table.rows <= 1)
        table.rows = 0; /* a single variant proves no claim: no header without rows */
    table_end(&table);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

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

static void result_json(struct json *json, const struct result *row)
{
    const struct measurement *m = &row->measured;

    json_object_begin(json, NULL);
    json_text(json, "variant", row->variant);
    json_text(json, "device", row->device);
    if (row->cores)
        json_integer(json, "cores", row->cores);
    json_integer(json, "records", row->records);
    json_integer(json, "plots", row->plots);
    json_bool(json, "sorted", row->sorted);
    if (row->batch)
        json_integer(json, "batch", row->batch);
    if (row->kernel)
        json_text(json, "hash_kernel", row->kernel);
    if (row->skipped) {
        json_text(json, "skipped", row->skipped);
        json_object_end(json);
        return;
    }
    stats_json(json, "kernel_ns", &m->kernel);
    stats_json(json, "transfer_ns", &m->transfer);
    stats_json(json, "wall_ns", &m->wall);
    json_integer(json, "launches", m->tally.launches);
    json_integer(json, "transfers", m->tally.transfers);
    json_integer(json, "allocations", m->tally.allocations);
    json_integer(json, "transfer_bytes", m->tally.transfer_bytes);
    json_number(json, "flop", m->tally.flop);
    json_number(json, "bytes_read", m->tally.bytes_read);
    json_number(json, "bytes_written", m->tally.bytes_written);
    if (row->check.done) {
        json_number(json, "relative_error", row->check.error);
        json_number(json, "tolerance", row->check.tolerance);
        json_bool(json, "verified", check_passed(&row->check));
    }
    json_object_end(json);
}

static void claim_json(void *context, const struct evidence *e)
{
    struct json *json = context;

    json_object_begin(json, NULL);
    json_text(json, "claim", e->claim);
    json_text(json, "before", e->before->variant);
    if (e->before->cores)
        json_integer(json, "before_cores", e->before->cores);
    json_text(json, "after", e->after->variant);
    json_integer(json, "records", e->before->records);
    if (e->before->batch)
        json_integer(json, "batch", e->before->batch);
    json_number(json, "before_ns", e->before_ns);
    json_number(json, "after_ns", e->after_ns);
    json_number(json, "speedup", e->before_ns / e->after_ns);
    json_text(json, "seed", e->seed);
    json_object_end(json);
}

static void print_json(const struct hash_options *options, const struct dev_info *info,
                       const struct results *results)
{
    struct json json = {.file = stdout};

    json_object_begin(&json, NULL);
    json_text(&json, "workload", "hash_embedding");
    json_text(&json, "backend", dev_backend_name(info->backend));
    json_text(&json, "device", info->name);
    json_text(&json, "platform", info->platform);
    json_integer(&json, "compute_units", info->compute_units);
    json_integer(&json, "iterations", options->common.iterations);
    json_integer(&json, "warmup", options->common.warmup);
    json_integer(&json, "seed", options->common.seed);
    json_integer(&json, "dim", options->dim);
    json_array_begin(&json, "results");
    for (size_t i = 0; i < results->count; i++)
        result_json(&json, &results->rows[i]);
    json_array_end(&json);
    json_array_begin(&json, "claims");
    claims_evaluate(results, claim_json, &json);
    json_array_end(&json);
    json_object_end(&json);
}

void print_results(const struct hash_options *options, const struct dev_info *info,
                   const struct results *results)
{
    if (options->common.json)
        print_json(options, info, results);
    else
        print_tables(options, info, results);
}
