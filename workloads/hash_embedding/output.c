/* The results as tables for people or as one JSON object. */
#include <stdio.h>

#include "workloads/common/report.h"
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
        check_cell(table, &row->check);
    table_cell(table, "%s", row->kernel ? row->kernel : "");
}

static void print_tables(const struct hash_options *options, const struct dev_info *info,
                         const struct results *results, const struct claims *claims)
{
    static const char *const plain[] = {"<variant", "<on",  "records",  "plots", "batch",
                                        "kernels",  "+-",   "min",      "max",   "copies",
                                        "wall",     "GB/s", "<hash by", NULL};
    static const char *const checked[] = {
        "<variant", "<on",    "records", "plots", "batch",          "kernels",  "+-", "min",
        "max",      "copies", "wall",    "GB/s",  "relative error", "<hash by", NULL};
    struct table table;

    report_title("hash_embedding", info);
    printf("medians of %u iterations after %u for warm-up, +- is the median deviation; dim %u, "
           "%s records\n\n",
           options->common.iterations, options->common.warmup, options->dim,
           options->order == ORDER_SORTED ? "sorted" : "unsorted");
    table_begin(&table, options->common.verify ? checked : plain);
    for (size_t i = 0; i < results->count; i++)
        result_row(&table, &results->rows[i], options->common.verify);
    table_end(&table);
    claims_print(claims);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void result_json(struct json *json, const struct result *row)
{
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
    measurement_json(json, &row->measured);
    check_json(json, &row->check);
    json_object_end(json);
}

static void print_json(const struct hash_options *options, const struct dev_info *info,
                       const struct results *results, const struct claims *claims)
{
    struct json json;

    report_json_begin(&json, "hash_embedding", info, &options->common);
    json_integer(&json, "dim", options->dim);
    json_array_begin(&json, "results");
    for (size_t i = 0; i < results->count; i++)
        result_json(&json, &results->rows[i]);
    json_array_end(&json);
    claims_json(&json, claims);
    json_object_end(&json);
}

void print_results(const struct hash_options *options, const struct dev_info *info,
                   const struct results *results)
{
    struct claims claims = {0};

    claims_evaluate(results, info, &claims);
    if (options->common.json)
        print_json(options, info, results, &claims);
    else
        print_tables(options, info, results, &claims);
    claims_free(&claims);
}
