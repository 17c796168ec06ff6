/* transformer: training of a small language model, with what was found slow in it in both forms:
 * embeddings and losses by way of the host, transfers that are waited for, an allocation for each
 * operation, small tiles. Options and the exit status: 0, 1 for a failed verification, 2 for usage
 * or a device that failed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "perfkit/annotate.h"
#include "workloads/common/program.h"
#include "workloads/common/report.h"
#include "workloads/transformer/workload.h"

#define OWN(member) offsetof(struct transformer_options, member)

static const struct option_row rows[] = {
    {"sequences", OPTION_U32, "N", OWN(sequences), NULL, "of a batch", 1, 4096},
    {"length", OPTION_U32, "N", OWN(length), NULL, "tokens of a sequence", 2, 4096},
    {"width", OPTION_U32, "N", OWN(width), NULL, "d_model, of the variants that do not say", 8,
     4096},
    {"heads", OPTION_U32, "N", OWN(heads), NULL, "of the attention; divides every width", 1, 128},
    {"layers", OPTION_U32, "N", OWN(layers), NULL, "up to 8", 1, MAX_LAYERS},
    {"vocabulary", OPTION_U32, "N", OWN(vocabulary), NULL, "different tokens", 2, 1 << 20},
};

static void apply_preset(int preset, void *values)
{
    struct transformer_options *options = values;

    if (preset == PRESET_SMALL) {
        options->sequences = 2;
        options->length = 16;
        options->width = 64;
        options->vocabulary = 200;
        options->common.iterations = 2;
        options->common.warmup = 1;
    } else { /* tables of 24 MB, 32 sequences, 512 bytes of token numbers for each */
        options->sequences = 32;
        options->length = 128;
        options->width = 512;
        options->vocabulary = 12288 - 128;
        options->common.iterations = 5;
        options->common.warmup = 2;
    }
}

static const char *describe_variant(size_t index, const char **summary)
{
    if (index >= variant_count)
        return NULL;
    *summary = variants[index].summary;
    return variants[index].name;
}

static int check_width(const struct transformer_options *options, uint32_t width)
{
    struct shape shape = shape_of(options, width);

    if (shape.width % 4 || shape.width % shape.heads) {
        fprintf(stderr,
                "transformer: --width %u --heads %u: the heads share the width, which is a "
                "multiple of 4: take 512 and 8\n",
                shape.width, shape.heads);
        return -1;
    }
    if (weights_of(&shape) >= 0x1p31 || largest_matrix_of(&shape) >= 0x1p31) {
        fprintf(stderr,
                "transformer: a matrix of 2^31 numbers or more: take a smaller --vocabulary, "
                "--length or --sequences\n");
        return -1;
    }
    return 0;
}

static int check_options(void *values)
{
    const struct transformer_options *options = values;

    for (size_t i = 0; i < variant_count; i++)
        if (check_width(options, variants[i].width) != 0)
            return -1;
    return 0;
}

static int run_everything(const void *values, struct dev *dev)
{
    const struct transformer_options *options = values;
    struct session session;
    struct results results = {.ceiling = copy_bandwidth(dev, 0)};
    struct run run = {.options = options, .session = &session, .results = &results};
    int status;

    if (session_open(&session, dev) != 0) {
        fprintf(stderr, "transformer: %s\n", dev_error_text(dev));
        return 2;
    }
    status = run_variants(&run) == 0 ? 0 : 2;
    if (status == 0) {
        perfkit_range_push("output");
        print_results(options, dev_info(dev), &results);
        perfkit_range_pop();
    }
    for (size_t i = 0; i < results.count && status != 2; i++) {
        const struct result *row = &results.rows[i];

        if (check_failed("transformer", row->variant->name, &row->check) ||
            check_failed("transformer", row->variant->name, &row->curve))
            status = 1;
    }
    session_close(&session);
    free(results.rows);
    return status;
}

int main(int argc, char **argv)
{
    static const struct program program = {
        .options = {.program = "transformer",
                    .summary = "Training of a small transformer, from naive to tuned.",
                    .rows = rows,
                    .row_count = sizeof rows / sizeof rows[0],
                    .apply_preset = apply_preset,
                    .variant = describe_variant},
        .check = check_options,
        .run = run_everything,
    };
    struct transformer_options options = {
        .common = {.iterations = 3, .warmup = 1, .seed = 1},
        .sequences = 2,
        .length = 16,
        .width = 128,
        .heads = 8,
        .layers = 1,
        .vocabulary = 1024,
    };

    return program_main(&program, argc, argv, &options, sizeof options);
}
