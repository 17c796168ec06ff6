/* Variants from data to result rows. */
#include <stdio.h>

#include "perfkit/annotate.h"
#include "workloads/common/grow.h"
#include "workloads/hash_embedding/workload.h"

static const uint32_t batch_sizes[] = {512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};

#define BATCH_SIZES (sizeof batch_sizes / sizeof batch_sizes[0])
#define DEFAULT_BATCH 1024

/* Adds `count` adjacent rows, zeroed; NULL when memory ran out. */
static struct result *add_rows(struct results *results, size_t count)
{
    void *rows = results->rows;
    struct result *first =
        grow(&rows, &results->count, &results->capacity, count, sizeof results->rows[0]);

    results->rows = rows;
    return first;
}

static int failed(const struct variant *variant, const struct dev *dev)
{
    const char *why = dev_error_text(dev);

    fprintf(stderr, "hash_embedding: %s: %s\n", variant->name, *why ? why : "out of memory");
    return -1;
}

/* Opens, verifies, measures and closes variants whose data stands ready. */
static int run_at(struct run *run, const struct variant *variants, size_t count,
                  struct result *rows)
{
    const struct common_options *common = &run->options->common;
    struct subject subjects[RUN_TOGETHER] = {{0}};
    size_t opened = 0;
    int status = 0;

    while (opened < count && status == 0) {
        const struct variant *variant = &variants[opened];
        struct subject *subject = &subjects[opened];

        *subject = (struct subject){.name = variant->name, .step = variant->step};
        perfkit_range_push(variant->name);
        perfkit_range_push("setup");
        status = variant->open(run, variant->argument, &subject->context);
        perfkit_range_pop();
        if (status == 0 && common->verify) {
            perfkit_range_push("verify");
            status = variant->verify(subject->context, &rows[opened].check);
            perfkit_range_pop();
        }
        perfkit_range_pop();
        opened += subject->context != NULL;
    }
    if (status == 0)
        status = measure(run->session, subjects, count, common->iterations, common->warmup);
    perfkit_range_push("teardown");
    for (size_t i = 0; i < opened; i++) {
        rows[i].measured = subjects[i].result;
        variants[i].close(subjects[i].context);
    }
    perfkit_range_pop();
    return status;
}

/* The shape that a variant runs at, given the one asked for. */
static struct hash_shape shape_for(const struct variant *variant, const struct dev_info *info,
                                   struct hash_shape shape)
{
    if (variant->shape == SHAPE_BATCH || variant->shape == SHAPE_BATCHES)
        shape.sorted = true;
    if (variant->shape == SHAPE_SMALL && !hash_applies(info, &shape, HASH_SHARED)) {
        uint32_t records_per_plot = shape.records / shape.plots;

        while (shape.plots > 1 && !hash_applies(info, &shape, HASH_SHARED))
            shape.plots /= 2;
        shape.records = shape.plots * (records_per_plot ? records_per_plot : 1);
    }
    return shape;
}

static void describe(struct result *row, const struct variant *variant, const struct dev_info *info,
                     const struct hash_shape *shape, uint32_t batch)
{
    row->variant = variant->name;
    snprintf(row->device, sizeof row->device, "%s", info->name);
    row->cores = info->backend == DEV_CPU ? info->compute_units : 0;
    row->records = shape->records;
    row->plots = shape->plots;
    row->sorted = shape->sorted;
    row->batch = batch;
    if (variant->step == hash_variants[0].step)
        row->kernel = hash_variant_name(variant->argument == HASH_AUTO
                                            ? hash_choose(info, shape, NULL)
                                            : (enum hash_variant)variant->argument);
}

/* A hash kernel that cannot compute the shape gets a row that says why. */
static bool skipped(const struct variant *variant, const struct dev_info *info,
                    const struct hash_shape *shape, struct results *results)
{
    struct result *row;

    if (variant->step != hash_variants[0].step ||
        hash_applies(info, shape, (enum hash_variant)variant->argument))
        return false;
    row = add_rows(results, 1);
    if (row) {
        describe(row, variant, info, shape, 0);
        row->skipped = variant->argument == HASH_CHUNKED ? "needs records sorted by plot"
                                                         : "the output exceeds group memory";
    }
    return true;
}

/* The batch sizes to measure; 0 for a variant that does not work in batches. */
static size_t batches_of(const struct variant *variant, const struct hash_options *options,
                         uint32_t plots, uint32_t sizes[BATCH_SIZES])
{
    size_t count = 0;

    sizes[0] = 0;
    if (variant->shape == SHAPE_BATCH || variant->shape == SHAPE_BATCHES)
        sizes[0] = options->batch ? options->batch : DEFAULT_BATCH;
    if (variant->shape != SHAPE_BATCHES || options->batch)
        return 1;
    do { /* up to the first that takes all plots at once */
        sizes[count] = batch_sizes[count];
        count++;
    } while (count < BATCH_SIZES && batch_sizes[count - 1] < plots);
    return count;
}

int run_variants(const struct hash_options *options, struct dev *dev,
                 const struct variant *variants, size_t count, const struct hash_shape *asked,
                 struct results *results)
{
    const struct dev_info *info = dev_info(dev);
    struct hash_shape shape = shape_for(variants, info, *asked);
    uint32_t sizes[BATCH_SIZES];
    size_t size_count = batches_of(variants, options, shape.plots, sizes);
    struct session session;
    struct dataset data;
    int status;

    dev_clear_error(dev);
    if (skipped(variants, info, &shape, results))
        return 0;
    perfkit_range_push("data");
    status = dataset_make(options, &shape, &data);
    perfkit_range_pop();
    if (status != 0)
        return failed(variants, dev);
    status = session_open(&session, dev);
    for (size_t i = 0; i < size_count && status == 0; i++) {
        struct run run = {options, &data, &session, sizes[i]};
        struct result *rows = add_rows(results, count);

        if (!rows) {
            status = -1;
            break;
        }
        for (size_t v = 0; v < count; v++)
            describe(&rows[v], &variants[v], info, &shape, sizes[i]);
        status = run_at(&run, variants, count, rows);
    }
    if (status != 0)
        failed(variants, dev);
    perfkit_range_push("teardown");
    session_close(&session);
    dataset_free(&data);
    perfkit_range_pop();
    return status;
}
