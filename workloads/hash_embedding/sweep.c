/* The measurement behind the table of rules in kernels/hash_embedding/plan.c: all kernels that
 * apply, interleaved, at shapes from tiny to large, sorted and not.
 */
#include <stdio.h>
#include <string.h>

#include "workloads/common/json.h"
#include "workloads/common/table.h"
#include "workloads/hash_embedding/workload.h"

#define ALLOWED_LOSS 1.10 /* a choice may be this much slower than the best */

static const uint32_t record_counts[] = {1000, 4000, 16000, 64000, 250000, 1000000};

/* Records per plot: what the seed's data has; and so many that the output is tiny. */
enum density { TYPICAL, DENSE, DENSITIES };

struct point {
    struct hash_shape shape;
    struct subject subjects[HASH_AUTO];
    enum hash_variant variants[HASH_AUTO];
    struct check checks[HASH_AUTO];
    size_t count;
    size_t best, chosen; /* into the arrays above */
};

static const struct variant *variant_of(enum hash_variant variant)
{
    for (size_t i = 0; i < hash_variant_count; i++)
        if (hash_variants[i].argument == (int)variant)
            return &hash_variants[i];
    return NULL;
}

/* Measures one shape; the variants stay open until all were measured, because interleaving them
 * is what makes them comparable. */
static int measure_point(const struct hash_options *options, struct session *session,
                         struct point *point)
{
    const struct dev_info *info = dev_info(session->dev);
    enum hash_variant choice = hash_choose(info, &point->shape, NULL);
    struct dataset data;
    struct run run = {options, &data, session, 0};
    int status = dataset_make(options, &point->shape, &data);

    if (status != 0)
        return -1;
    for (int v = 0; v < HASH_AUTO && status == 0; v++) {
        const struct variant *variant = variant_of((enum hash_variant)v);
        struct subject *subject = &point->subjects[point->count];

        if (!hash_applies(info, &point->shape, (enum hash_variant)v))
            continue;
        *subject = (struct subject){.name = variant->name, .step = variant->step};
        status = variant->open(&run, v, &subject->context);
        if (status != 0)
            break;
        if ((enum hash_variant)v == choice)
            point->chosen = point->count;
        point->variants[point->count] = (enum hash_variant)v;
        if (options->common.verify)
            status = variant->verify(subject->context, &point->checks[point->count]);
        point->count++;
    }
    if (status == 0)
        status = measure(session, point->subjects, point->count, options->common.iterations,
                         options->common.warmup);
    for (size_t i = 0; i < point->count; i++) {
        hash_variants[0].close(point->subjects[i].context);
        if (point->subjects[i].result.kernel.median <
            point->subjects[point->best].result.kernel.median)
            point->best = i;
    }
    dataset_free(&data);
    return status;
}

static double loss_of(const struct point *point)
{
    return point->subjects[point->chosen].result.kernel.median /
           point->subjects[point->best].result.kernel.median;
}

static bool point_passed(const struct point *point)
{
    for (size_t i = 0; i < point->count; i++)
        if (point->checks[i].done && !check_passed(&point->checks[i]))
            return false;
    return loss_of(point) <= ALLOWED_LOSS;
}

static void point_row(struct table *table, const struct point *point)
{
    table_row(table);
    table_cell(table, "%u", point->shape.records);
    table_cell(table, "%u", point->shape.plots);
    table_cell(table, "%s", point->shape.sorted ? "sorted" : "random");
    for (int v = 0; v < HASH_AUTO; v++) {
        size_t i = 0;

        while (i < point->count && point->variants[i] != (enum hash_variant)v)
            i++;
        if (i < point->count)
            table_duration(table, point->subjects[i].result.kernel.median);
        else
            table_cell(table, "-");
    }
    table_cell(table, "%s", hash_variant_name(point->variants[point->chosen]));
    table_cell(table, "%.2f", loss_of(point));
    table_cell(table, "%s", point_passed(point) ? "PASSED" : "FAILED");
}

static void point_json(struct json *json, const struct point *point)
{
    json_object_begin(json, NULL);
    json_integer(json, "records", point->shape.records);
    json_integer(json, "plots", point->shape.plots);
    json_bool(json, "sorted", point->shape.sorted);
    json_object_begin(json, "kernel_ns");
    for (size_t i = 0; i < point->count; i++)
        json_number(json, hash_variant_name(point->variants[i]),
                    point->subjects[i].result.kernel.median);
    json_object_end(json);
    json_object_begin(json, "relative_error");
    for (size_t i = 0; i < point->count; i++)
        if (point->checks[i].done)
            json_number(json, hash_variant_name(point->variants[i]), point->checks[i].error);
    json_object_end(json);
    json_text(json, "auto", hash_variant_name(point->variants[point->chosen]));
    json_text(json, "best", hash_variant_name(point->variants[point->best]));
    json_number(json, "auto_over_best", loss_of(point));
    json_bool(json, "passed", point_passed(point));
    json_object_end(json);
}

int sweep(const struct hash_options *options, struct dev *dev)
{
    static const char *const header[] = {"records", "plots", "<order",    "basic",        "shared",
                                         "chunked", "<auto", "auto/best", "<within 10 %", NULL};
    const struct dev_info *info = dev_info(dev);
    struct json json = {.file = stdout};
    struct session session;
    struct table table;
    int status = 0, result = 0;

    if (session_open(&session, dev) != 0) {
        fprintf(stderr, "hash_embedding: sweep: %s\n", dev_error_text(dev));
        return 2;
    }
    if (options->common.json) {
        json_object_begin(&json, NULL);
        json_text(&json, "workload", "hash_embedding");
        json_text(&json, "device", info->name);
        json_array_begin(&json, "sweep");
    } else {
        printf("hash_embedding --sweep on %s: %s; kernel times, dim %u\n\n",
               dev_backend_name(info->backend), info->name, options->dim);
        table_begin(&table, header);
    }
    for (size_t r = 0; r < sizeof record_counts / sizeof record_counts[0]; r++) {
        for (int kind = 0; kind < 2 * DENSITIES && status == 0; kind++) {
            uint32_t records = record_counts[r];
            struct point point = {.shape = {.records = records,
                                            .plots = kind / 2 == DENSE ? 64 : records * 2 / 25,
                                            .dim = options->dim,
                                            .sorted = kind % 2 == 0}};

            status = measure_point(options, &session, &point);
            if (status != 0)
                break;
            if (!point_passed(&point))
                result = 1;
            if (options->common.json)
                point_json(&json, &point);
            else
                point_row(&table, &point);
        }
    }
    if (options->common.json) {
        json_array_end(&json);
        json_bool(&json, "passed", status == 0 && result == 0);
        json_object_end(&json);
    } else {
        table_end(&table);
    }
    session_close(&session);
    if (status != 0) {
        fprintf(stderr, "hash_embedding: sweep: %s\n", dev_error_text(dev));
        return 2;
    }
    return result;
}
