/* rollout: a stochastic neural operator that evolves fields step by step, in the precisions and
 * with the convolutions and normalisations that its project tried. Options, the device, and the
 * exit status: 0, 1 for a failed verification, 2 for usage or a device that failed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "perfkit/annotate.h"
#include "workloads/common/program.h"
#include "workloads/rollout/workload.h"

static const char *const without_names[] = {"none", "bf16", "fp16", NULL};

#define OWN(member) offsetof(struct rollout_options, member)

static const struct option_row rows[] = {
    {"grid", OPTION_U32, "N", OWN(grid), NULL, "rows and columns of the fields", 1, 16384},
    {"fields", OPTION_U32, "N", OWN(fields), NULL, "channels of the state", 1, 4096},
    {"channels", OPTION_U32, "N", OWN(channels), NULL, "channels between the layers", 1, 4096},
    {"layers", OPTION_U32, "N", OWN(layers), NULL, "layers of the operator, 2 to 16", 2,
     MAX_LAYERS},
    {"steps", OPTION_U32, "N", OWN(steps), NULL, "time steps of a rollout", 1, 1000000},
    {"realisations", OPTION_U32, "N", OWN(realisations), NULL,
     "rollouts of one initial state, each with its own noise", 1, 4096},
    {"batch", OPTION_U32, "N", OWN(batch), NULL, "initial states at a time", 1, 4096},
    {"norm-groups", OPTION_U32, "N", OWN(norm_groups), NULL,
     "groups of group-norm; divides the channels", 1, 4096},
    {"verify-steps", OPTION_U32, "N", OWN(verify_steps), NULL,
     "steps that --verify compares with double precision", 1, 1000000},
    {"compare-steps", OPTION_U32, "N", OWN(compare_steps), NULL,
     "steps of the rollouts that compare anything but precisions; 0: as --steps", 0, 1000000},
    {"memory-limit", OPTION_BYTES, "BYTES", OWN(memory_limit), NULL,
     "leave this much device memory (8G, 512M); 0: all there is", 0, 0},
    {"without", OPTION_CHOICE, NULL, OWN(without), without_names,
     "act as on a device without bf16, or without fp16 and bf16", 0, 0},
};

static void apply_preset(int preset, void *values)
{
    struct rollout_options *options = values;

    if (preset == PRESET_SMALL) {
        options->grid = 32;
        options->channels = 16;
        options->layers = 4;
        options->steps = 3;
        options->verify_steps = 3;
        options->realisations = 2;
        options->common.iterations = 3;
    } else { /* the benchmark of the seed document */
        options->grid = 128;
        options->channels = 64;
        options->layers = 5;
        options->steps = 500;
        options->compare_steps = 50; /* 500 of each would take minutes */
        options->realisations = 5;
    }
}

static const char *describe_variant(size_t index, const char **summary)
{
    if (index >= variant_count)
        return NULL;
    *summary = variants[index].summary;
    return variants[index].name;
}

static int complain(const char *option, const char *what)
{
    fprintf(stderr, "rollout: --%s: %s\n", option, what);
    return -1;
}

static int check_options(void *values)
{
    struct rollout_options *options = values;
    uint64_t widest = options->channels > options->fields ? options->channels : options->fields;
    uint64_t images = (options->batch > 3 ? options->batch : 3) * (uint64_t)options->realisations;
    uint64_t plane = (uint64_t)options->grid * options->grid;

    if (options->channels % options->norm_groups != 0)
        return complain("norm-groups", "does not divide the channels: take 1, 2, 4 or 8");
    if (plane * widest > UINT32_MAX / 4 || plane * widest * images > UINT32_MAX / 4)
        return complain("grid", "the fields exceed 2^30 elements: take fewer or smaller ones");
    if (options->verify_steps > options->steps)
        options->verify_steps = options->steps;
    if (options->compare_steps == 0 || options->compare_steps > options->steps)
        options->compare_steps = options->steps;
    if (options->compare_steps < options->verify_steps)
        options->compare_steps = options->verify_steps;
    return 0;
}

static void print_measured(const struct rollout_options *options, struct dev *dev,
                           const struct result *measured, size_t count)
{
    const struct dev_info *info = dev_info(dev);
    struct dev_memory memory = dev_memory(dev);
    struct results results = {.rows = measured,
                              .count = count,
                              .ceiling = copy_bandwidth(dev, 0),
                              .capacity =
                                  memory.limit_bytes ? memory.limit_bytes : info->global_bytes,
                              .limited = memory.limit_bytes != 0};

    perfkit_range_push("output");
    print_results(options, info, &results);
    perfkit_range_pop();
}

static int run_everything(const void *values, struct dev *dev)
{
    const struct rollout_options *options = values;
    struct result *results = calloc(variant_count, sizeof results[0]);
    struct model model = {0};
    size_t count = 0;
    int status = -1;

    if (options->memory_limit && dev_limit(dev, options->memory_limit) != 0) {
        fprintf(stderr, "rollout: --memory-limit: %s\n", dev_error_text(dev));
        free(results);
        return 2;
    }
    perfkit_range_push("data");
    if (results)
        status = model_make(options, &model);
    perfkit_range_pop();
    if (status != 0)
        fprintf(stderr, "rollout: out of memory: take fewer --channels\n");
    if (status == 0)
        status = run_variants(options, &model, dev, results, &count);
    if (status == 0)
        print_measured(options, dev, results, count);
    for (size_t i = 0; i < count && status >= 0; i++) {
        if (result_passed(&results[i]))
            continue;
        fprintf(stderr, "rollout: %s: relative error %g, allowed %g\n", results[i].variant->name,
                results[i].reference.norm, results[i].tolerance);
        status = 1;
    }
    model_free(&model);
    free(results);
    return status < 0 ? 2 : status;
}

static const struct program program = {
    .options =
        {
            .program = "rollout",
            .summary = "Fields evolved by a stochastic neural operator: convolution, "
                       "normalisation, GELU, dropout and noise.",
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
    struct rollout_options options = {
        .common = {.iterations = 3, .warmup = 1, .seed = 1},
        .grid = 128,
        .fields = 3,
        .channels = 16,
        .layers = 4,
        .steps = 3,
        .realisations = 2,
        .batch = 1,
        .norm_groups = 8,
        .verify_steps = 2,
    };

    return program_main(&program, argc, argv, &options, sizeof options);
}
