/* patterns: one pair of variants for each piece of advice of a quick start guide, as small as the
 * advice allows. Options, the choice of variants and devices, and the exit status: 0, 1 for a
 * failed verification, 2 for usage or a device that failed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gemm/gemm.h"
#include "perfkit/annotate.h"
#include "workloads/common/program.h"
#include "workloads/common/report.h"
#include "workloads/patterns/workload.h"

static const char *const gemm_names[] = {"auto", "own", "library", NULL};

#define OWN(member) offsetof(struct pattern_options, member)

static const struct option_row rows[] = {
    {"copy-bytes", OPTION_BYTES, "BYTES", OWN(copy_bytes), NULL, "size of the copied block", 4,
     (uint64_t)1 << 40},
    {"batches", OPTION_U32, "N", OWN(batches), NULL, "batches of the preallocation pair", 1,
     1 << 20},
    {"batch-bytes", OPTION_BYTES, "BYTES", OWN(batch_bytes), NULL, "size of one of those", 4,
     (uint64_t)1 << 33},
    {"gemm-size", OPTION_U32, "N", OWN(gemm_size), NULL, "rows and columns of the small matrices",
     1, 16384},
    {"gemm-depth", OPTION_U32, "N", OWN(gemm_depth), NULL,
     "columns of the left and rows of the right ones: more make the same launch slower; 0: as "
     "--gemm-size",
     0, 1 << 20},
    {"gemm-count", OPTION_U32, "N", OWN(gemm_count), NULL, "how many of them are multiplied", 1,
     65536},
    {"gemm", OPTION_CHOICE, NULL, OWN(gemm), gemm_names,
     "multiplied by cuBLAS or our own kernel; auto takes cuBLAS where it is", 0, 0},
    {"width", OPTION_U32, "N", OWN(width), NULL,
     "rows and columns of the layer of the batch size pair", 1, 16384},
    {"samples", OPTION_U32, "N", OWN(samples), NULL,
     "samples that go through it, rounded up to 256", 1, 1 << 24},
    {"floats", OPTION_U32, "N", OWN(floats), NULL,
     "length of the arrays of the kernel pairs, rounded up to 4096", 1, 1u << 31},
    {"launches", OPTION_U32, "N", OWN(launches), NULL, "length of the chain of short kernels", 1,
     1 << 20},
    {"chain-floats", OPTION_U32, "N", OWN(chain_floats), NULL, "floats in each of them", 1,
     1 << 30},
    {"memory-limit", OPTION_BYTES, "BYTES", OWN(memory_limit), NULL,
     "device memory of the accumulation pair; 0: all there is", 0, 0},
    {"large-batch", OPTION_U32, "N", OWN(large_batch), NULL, "samples of its large batch", 1,
     1 << 26},
    {"micro-batch", OPTION_U32, "N", OWN(micro_batch), NULL, "samples at a time", 1, 1 << 26},
    {"features", OPTION_U32, "N", OWN(features), NULL, "rows and columns of its layer", 1, 16384},
};

static void apply_preset(int preset, void *values)
{
    struct pattern_options *options = values;

    if (preset == PRESET_SMALL) {
        options->common.iterations = 5;
        options->copy_bytes = 1 << 20;
        options->batches = 8;
        options->batch_bytes = 64 << 10;
        options->width = 128;
        options->floats = 1 << 18;
        options->launches = 50;
        options->memory_limit = (uint64_t)3 << 19;
        options->large_batch = 4096;
        options->micro_batch = 512;
        options->features = 64;
    } else { /* the guide names no sizes but 40 products and batches of 32 and 256 */
        options->copy_bytes = (uint64_t)256 << 20;
        options->floats = 64 << 20;
        options->samples = 8192;
        options->memory_limit = 256 << 20;
        options->large_batch = 3 << 18;
        options->micro_batch = 3 << 15;
        options->features = 64;
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
        {transfer_variants, transfer_variant_count},     {gemm_variants, gemm_variant_count},
        {kernel_variants, kernel_variant_count},         {graph_variants, graph_variant_count},
        {accumulate_variants, accumulate_variant_count},
    };

    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        if (index < groups[i].count)
            return &groups[i].variants[index];
        index -= groups[i].count;
    }
    return NULL;
}

/* How many variants are compared with each other, from this one on. */
static size_t chain_of(const struct variant *variant)
{
    size_t count = 1;

    for (; variant->with_next && count < RUN_TOGETHER; variant++)
        count++;
    return count;
}

/* The variants of one kind (limited or not) that are asked for. */
static int run_selected(const struct pattern_options *options, struct dev *dev, bool limited,
                        struct results *results)
{
    const struct variant *variant;

    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        size_t together = options->common.variant ? 1 : chain_of(variant);

        if (variant->limited != limited ||
            (options->common.variant && strcmp(options->common.variant, variant->name) != 0))
            continue;
        if (run_variants(options, dev, variant, together, results) != 0)
            return -1;
        i += together - 1;
    }
    return 0;
}

/* Loading a program takes device memory: before the limit, or it would have to fit into it. */
static int load_gemm(struct dev *dev)
{
    const struct gemm_shape shape = {1, 1, 1, false, 0};
    struct dev_kernel *kernel;
    struct dev_buffer *one = NULL;
    struct dev_queue *queue = NULL;
    int result = -1;

    if (dev_kernel(dev, &gemm_module, "gemm", &kernel) == 0 && dev_queue_create(dev, &queue) == 0 &&
        dev_alloc(dev, 3 * sizeof(float), &one) == 0 && dev_fill(queue, one, 0, NULL) == 0) {
        const struct dev_arg args[] = {
            dev_arg_buffer(one), dev_arg_buffer(one), dev_arg_buffer(one),
            dev_arg_u32(1),      dev_arg_u32(1),      dev_arg_u32(1),
            dev_arg_u32(0),      dev_arg_u32(0),      dev_arg_f32(0)};

        result = dev_launch(queue, kernel, gemm_grid(&shape, 1), args, sizeof args / sizeof args[0],
                            NULL);
        if (dev_queue_finish(queue) != 0)
            result = -1;
    }
    dev_free(one);
    dev_queue_destroy(queue);
    return result;
}

/* The variants about memory, on a device of their own. */
static int run_limited(const struct pattern_options *options, struct results *results)
{
    struct dev *dev = open_device("patterns", (enum dev_backend)options->common.backend, 0);
    int status;

    if (!dev)
        return -1;
    perfkit_range_push("limit");
    status = load_gemm(dev);
    if (status == 0 && options->memory_limit)
        status = dev_limit(dev, options->memory_limit);
    perfkit_range_pop();
    if (status != 0)
        fprintf(stderr, "patterns: --memory-limit: %s\n", dev_error_text(dev));
    else
        status = run_selected(options, dev, true, results);
    close_device(dev);
    return status;
}

static bool wants_limited(const struct pattern_options *options)
{
    for (size_t i = 0; i < accumulate_variant_count; i++)
        if (!options->common.variant ||
            strcmp(options->common.variant, accumulate_variants[i].name) == 0)
            return true;
    return false;
}

static int run_everything(const void *values, struct dev *dev)
{
    const struct pattern_options *options = values;
    struct results results = {.ceiling =
                                  copy_bandwidth(dev, (size_t)options->floats * sizeof(float)),
                              .large_batch = options->large_batch};
    int status = run_selected(options, dev, false, &results);

    if (status == 0 && wants_limited(options))
        status = run_limited(options, &results);
    if (status == 0) {
        perfkit_range_push("output");
        print_results(options, dev_info(dev), &results);
        for (size_t i = 0; i < results.count; i++) {
            const struct result *row = &results.rows[i];

            if (check_failed("patterns", row->variant, &row->check))
                status = 1;
        }
        perfkit_range_pop();
    }
    free(results.rows);
    return status < 0 ? 2 : status;
}

static int check_options(void *values)
{
    struct pattern_options *options = values;

    if (options->width % 2 != 0) { /* parts of a buffer begin at multiples of 256 bytes */
        fprintf(stderr, "patterns: --width %u: not even: take 512\n", options->width);
        return -1;
    }
    options->samples = (options->samples + 255) / 256 * 256;
    return 0;
}

static const struct program program = {
    .options =
        {
            .program = "patterns",
            .summary = "One pair of variants for each piece of advice of a performance guide.",
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
    struct pattern_options options = {
        .common = {.iterations = 9, .warmup = 2, .seed = 1},
        .copy_bytes = 32 << 20,
        .batches = 40,
        .batch_bytes = 1 << 20,
        .gemm_size = 64,
        .gemm_count = 40,
        .width = 512,
        .samples = 1024,
        .floats = 4 << 20,
        .launches = 200,
        .chain_floats = 4096,
        .memory_limit = 24 << 20,
        .large_batch = 16384,
        .micro_batch = 2048,
        .features = 256,
    };

    return program_main(&program, argc, argv, &options, sizeof options);
}
