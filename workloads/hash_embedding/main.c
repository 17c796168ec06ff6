/* hash_embedding: the hot spots of a species-distribution trainer, each in the form that was
 * found slow and in the form that replaced it. Options, the choice of variants and devices, and
 * the exit status: 0, 1 for a failed verification, 2 for usage or a device that failed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gather/gather.h"
#include "perfkit/annotate.h"
#include "workloads/common/program.h"
#include "workloads/common/report.h"
#include "workloads/hash_embedding/workload.h"

static const char *const order_names[] = {"sorted", "random", NULL};

#define OWN(member) offsetof(struct hash_options, member)

static const struct option_row rows[] = {
    {"records", OPTION_U32, "N", OWN(records), NULL, "species records", 1, 1 << 30},
    {"plots", OPTION_U32, "N", OWN(plots), NULL, "plots they were made on", 1, 1 << 28},
    {"order", OPTION_CHOICE, NULL, OWN(order), order_names, "how the records stand", 0, 0},
    {"dim", OPTION_U32, "N", OWN(dim), NULL, "columns of the hashed embedding", 1, 65536},
    {"genera", OPTION_U32, "N", OWN(genera), NULL, "different genera", 1, 1 << 24},
    {"families", OPTION_U32, "N", OWN(families), NULL, "different families", 1, 1 << 24},
    {"top-k", OPTION_U32, "N", OWN(top_k), NULL, "genera and families looked up per plot", 1, 1024},
    {"embed", OPTION_U32, "N", OWN(embed), NULL, "columns of a looked-up embedding, a power of two",
     1, 4096},
    {"batch", OPTION_U32, "PLOTS", OWN(batch), NULL,
     "batch size; 0: 1024, and for prefetch 512 to 65536", 0, 1 << 28},
    {"sweep", OPTION_FLAG, NULL, OWN(sweep), NULL,
     "compare the hash kernels with the choice of auto over many shapes", 0, 0},
    {"sweep-to", OPTION_U32, "N", OWN(sweep_to), NULL,
     "records of its largest shape; 0: 16777216 on a GPU, 1048576 on a CPU", 0, 1 << 28},
};

static void apply_preset(int preset, void *values)
{
    struct hash_options *options = values;

    if (preset == PRESET_SMALL) {
        options->records = 10000;
        options->plots = 800;
        options->common.iterations = 5;
    } else { /* the prefetch benchmark of the seed document */
        options->records = 625000;
        options->plots = 50000;
    }
}

static const char *describe_variant(size_t index, const char **summary)
{
    const struct variant *variant = variant_at(index);

    if (variant)
        *summary = variant->summary;
    return variant ? variant->name : NULL;
}

const struct variant *variant_at(size_t index)
{
    const struct {
        const struct variant *variants;
        size_t count;
    } groups[] = {
        {hash_variants, hash_variant_count},
        {lookup_variants, lookup_variant_count},
        {batch_variants, batch_variant_count},
        {loss_variants, loss_variant_count},
    };

    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        if (index < groups[i].count)
            return &groups[i].variants[index];
        index -= groups[i].count;
    }
    return NULL;
}

static int run_selected(const struct hash_options *options, struct dev *dev,
                        struct results *results)
{
    const struct hash_shape shape = {.records = options->records,
                                     .plots = options->plots,
                                     .dim = options->dim,
                                     .sorted = options->order == ORDER_SORTED};
    const struct variant *variant;

    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        size_t together = variant->with_next && !options->common.variant ? RUN_TOGETHER : 1;

        if (options->common.variant && strcmp(options->common.variant, variant->name) != 0)
            continue;
        if (run_variants(options, dev, variant, together, &shape, results) != 0)
            return -1;
        i += together - 1;
    }
    return 0;
}

/* The device's choice of kernel against the CPU's, at the seed's sizes. */
static int run_sizes(const struct hash_options *options, struct dev *dev, struct results *results)
{
    static const uint32_t sizes[] = {10000, 100000, 1000000};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct hash_shape shape = {.records = sizes[i],
                                   .plots = sizes[i] * 2 / 25,
                                   .dim = options->dim,
                                   .sorted = options->order == ORDER_SORTED};

        if (run_variants(options, dev, &hash_variants[HASH_AUTO], 1, &shape, results) != 0)
            return -1;
    }
    return 0;
}

/* What the CPU contributes: on the CPU backend everything on one core as well; next to a device
 * the sizes of the device-over-CPU claim, on all cores and on one. */
static int run_on_cpu(const struct hash_options *options, const struct dev_info *info,
                      struct results *results)
{
    for (uint32_t threads = info->backend == DEV_CPU; threads <= 1; threads++) {
        struct dev *cpu = open_device("hash_embedding", DEV_CPU, threads);
        int status;

        if (!cpu)
            return -1;
        status = info->backend == DEV_CPU ? run_selected(options, cpu, results) : 0;
        if (status == 0 && !options->common.variant)
            status = run_sizes(options, cpu, results);
        close_device(cpu);
        if (status != 0)
            return -1;
    }
    return 0;
}

static int run_everything(const void *values, struct dev *dev)
{
    const struct hash_options *options = values;
    struct results results = {0};
    int status;

    if (options->sweep)
        return sweep(options, dev);
    status = run_selected(options, dev, &results);
    if (status == 0 && !options->common.variant)
        status = run_sizes(options, dev, &results);
    if (status == 0 && (dev_info(dev)->backend == DEV_CPU || !options->common.variant))
        status = run_on_cpu(options, dev_info(dev), &results);
    if (status == 0) {
        perfkit_range_push("output");
        print_results(options, dev_info(dev), &results);
        for (size_t i = 0; i < results.count; i++) {
            const struct result *row = &results.rows[i];

            if (check_failed("hash_embedding", row->variant, &row->check))
                status = 1;
        }
        perfkit_range_pop();
    }
    free(results.rows);
    return status < 0 ? 2 : status;
}

static int check_options(void *values)
{
    const struct hash_options *options = values;

    if (gather_embed_log2(options->embed) < 0) {
        fprintf(stderr, "hash_embedding: --embed %u: not a power of two: take 16 or 32\n",
                options->embed);
        return -1;
    }
    if ((uint64_t)options->plots * options->embed * 2 * options->top_k > UINT32_MAX) {
        fprintf(stderr, "hash_embedding: --plots x --embed x --top-k: the lookups exceed 2^32 "
                        "elements: take fewer\n");
        return -1;
    }
    return 0;
}

static const struct program program = {
    .options =
        {
            .program = "hash_embedding",
            .summary = "Species records hashed into plot embeddings, the lookups, batches and "
                       "loss around it.",
            .rows = rows,
            .row_count = sizeof rows / sizeof rows[0],
            .apply_preset = apply_preset,
            .variant = describe_variant,
        },
    .check = check_options,
    .run = run_everything,
};

int main(int argc, char **argv)
{
    struct hash_options options = {
        .common = {.iterations = 9, .warmup = 2, .seed = 1},
        .records = 100000,
        .plots = 8000,
        .genera = 2000,
        .families = 200,
        .dim = 32,
        .top_k = 3,
        .embed = 16,
    };

    return program_main(&program, argc, argv, &options, sizeof options);
}
