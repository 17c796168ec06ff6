/* The measurement behind the table of rules in kernels/hash_embedding/plan.c, and the seed's claim
 * about the choice of kernel: all kernels that apply, interleaved, at every power of two of records
 * from tiny to large, in typical and in dense plots, sorted and not.
 */
#include <stdio.h>

#include "perfkit/annotate.h"
#include "workloads/common/report.h"
#include "workloads/hash_embedding/workload.h"

#define ALLOWED_LOSS 1.10 /* a choice may be this much slower than the best */

#define FIRST_RECORDS (1u << 10)
#define LAST_ON_GPU (1u << 24)
#define LAST_ON_CPU (1u << 20) /* whose memory such a sweep would fill, and its time */

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
    int status;

    perfkit_range_push("setup");
    status = dataset_make(options, &point->shape, &data);
    if (status != 0) {
        perfkit_range_pop();
        return dev_fail(session->dev, "data", "out of host memory");
    }
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
    perfkit_range_pop();
    if (status == 0)
        status = measure(session, point->subjects, point->count, options->common.iterations,
                         options->common.warmup);
    perfkit_range_push("teardown");
    for (size_t i = 0; i < point->count; i++) {
        hash_variants[0].close(point->subjects[i].context);
        if (point->subjects[i].result.kernel.median <
            point->subjects[point->best].result.kernel.median)
            point->best = i;
    }
    dataset_free(&data);
    perfkit_range_pop();
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

/* The sweep as it goes on: rows are printed when all were measured, JSON at once. */
struct progress {
    const struct hash_options *options;
    struct session *session;
    struct json json;
    struct table table;
    uint32_t points, passed;
    double worst; /* of auto over best */
    uint32_t last_records;
};

static void note_point(struct progress *progress, const struct point *point)
{
    progress->points++;
    progress->passed += point_passed(point);
    if (!(loss_of(point) <= progress->worst)) /* NaN stays */
        progress->worst = loss_of(point);
    if (progress->options->common.json)
        point_json(&progress->json, point);
    else
        point_row(&progress->table, point);
}

static int measure_size(struct progress *progress, uint32_t records)
{
    for (int kind = 0; kind < 2 * DENSITIES; kind++) {
        struct point point = {.shape = {.records = records,
                                        .plots = kind / 2 == DENSE ? 64 : records * 2 / 25,
                                        .dim = progress->options->dim,
                                        .sorted = kind % 2 == 0}};

        if (measure_point(progress->options, progress->session, &point) != 0)
            return -1;
        note_point(progress, &point);
    }
    return 0;
}

static int measure_all(struct progress *progress)
{
    static const char *const header[] = {"records", "plots", "<order",    "basic",        "shared",
                                         "chunked", "<auto", "auto/best", "<within 10 %", NULL};
    const struct hash_options *options = progress->options;
    const struct dev_info *info = dev_info(progress->session->dev);
    int status = 0;

    if (options->common.json) {
        report_json_begin(&progress->json, "hash_embedding", info, &options->common);
        json_integer(&progress->json, "dim", options->dim);
        json_array_begin(&progress->json, "sweep");
    } else {
        report_title("hash_embedding --sweep", info);
        printf("kernel times, medians of %u iterations after %u for warm-up; dim %u\n\n",
               options->common.iterations, options->common.warmup, options->dim);
        table_begin(&progress->table, header);
    }
    for (uint64_t records = FIRST_RECORDS; records <= progress->last_records && status == 0;
         records *= 2)
        status = measure_size(progress, (uint32_t)records);
    if (options->common.json)
        json_array_end(&progress->json);
    else
        table_end(&progress->table);
    return status;
}

static void conclude(struct progress *progress, bool passed)
{
    struct claims claims = {0};
    struct claim *claim = claims_add(&claims, "kernel choice", "the best of three");

    if (claim) {
        snprintf(claim->at, sizeof claim->at, "rows %u to %u", FIRST_RECORDS,
                 progress->last_records);
        snprintf(claim->after, sizeof claim->after, "auto over best, the worst");
        claim->after_value = progress->worst;
        claim->unit = CLAIM_RATIO;
        claim->test = CLAIM_AT_MOST;
        claim->claimed = ALLOWED_LOSS;
        snprintf(claim->figure, sizeof claim->figure, "within 10 %% of the best at %u of %u shapes",
                 progress->passed, progress->points);
    }
    if (progress->options->common.json) {
        claims_json(&progress->json, &claims);
        json_bool(&progress->json, "passed", passed);
        json_object_end(&progress->json);
    } else {
        claims_print(&claims);
        printf("\n%s: auto within 10 %% of the best at %u of %u shapes\n",
               passed ? "PASSED" : "FAILED", progress->passed, progress->points);
    }
    claims_free(&claims);
}

int sweep(const struct hash_options *options, struct dev *dev)
{
    struct session session;
    struct progress progress = {.options = options, .session = &session};
    int status = session_open(&session, dev);
    bool passed;

    if (status == 0) {
        progress.last_records = options->sweep_to       ? options->sweep_to
                                : dev_info(dev)->is_cpu ? LAST_ON_CPU
                                                        : LAST_ON_GPU;
        status = measure_all(&progress);
        passed = status == 0 && progress.points > 0 && progress.passed == progress.points;
        conclude(&progress, passed);
        session_close(&session);
    }
    if (status != 0) {
        fprintf(stderr, "hash_embedding: sweep: %s\n", dev_error_text(dev));
        return 2;
    }
    return passed ? 0 : 1;
}
