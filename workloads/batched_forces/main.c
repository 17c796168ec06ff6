/* batched_forces: energies and forces of molecules by a message-passing network, with the parts
 * that were found slow in both forms, one molecule at a time and many together. Options, the
 * choice of variants, and the exit status: 0, 1 for a failed verification, 2 for usage or a device
 * that failed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/rbf/rbf.h"
#include "perfkit/annotate.h"
#include "workloads/batched_forces/workload.h"
#include "workloads/common/program.h"
#include "workloads/common/report.h"

static const char *const set_names[] = {"benzene", "mixed", NULL};

#define OWN(member) offsetof(struct forces_options, member)

static const struct option_row rows[] = {
    {"set", OPTION_CHOICE, NULL, OWN(set), set_names, "which molecules", 0, 0},
    {"molecules", OPTION_U32, "N", OWN(molecules), NULL, "how many", 1, 65536},
    {"atoms", OPTION_U32, "N", OWN(atoms), NULL, "of the largest mixed molecule", 2, 4096},
    {"batch", OPTION_U32, "N", OWN(batch), NULL, "molecules per launch; 0: 1, 4, 8, 16, 32", 0,
     65536},
    {"width", OPTION_U32, "N", OWN(width), NULL, "features of an atom: 32, 64, 128 or 256", 32,
     256},
    {"functions", OPTION_U32, "N", OWN(functions), NULL, "of the radial basis, a multiple of 4", 4,
     RBF_MAX_FUNCTIONS},
    {"layers", OPTION_U32, "N", OWN(layers), NULL, "of message passing, up to 8", 1, MAX_LAYERS},
};

static void apply_preset(int preset, void *values)
{
    struct forces_options *options = values;

    if (preset == PRESET_SMALL) {
        options->molecules = 4;
        options->width = 32;
        options->layers = 2;
        options->common.iterations = 2;
        options->common.warmup = 1;
    } else { /* the network of the seed document, on benzene */
        options->molecules = 32;
        options->width = 128;
    }
}

static const char *describe_variant(size_t index, const char **summary)
{
    if (index >= variant_count)
        return NULL;
    *summary = variants[index].summary;
    return variants[index].name;
}

/* The `together` variants at the batch asked for, or at each of their own up to the number of
 * molecules. */
static int run_batches(const struct run *run, const struct variant *first, size_t together,
                       struct results *results)
{
    const uint32_t asked[] = {run->options->batch, 0};
    const uint32_t *batches = asked[0] ? asked : first->batches;
    struct choice choices[RUN_TOGETHER];
    size_t count = 0;

    for (size_t b = 0; batches[b] && (b == 0 || batches[b] <= run->set->count); b++)
        for (size_t v = 0; v < together && count < RUN_TOGETHER; v++)
            choices[count++] = (struct choice){&first[v], batches[b]};
    return run_choices(run, choices, count, results);
}

static int run_selected(const struct run *run, struct results *results)
{
    const char *name = run->options->common.variant;

    for (size_t i = 0; i < variant_count; i++) {
        size_t together = variants[i].with_next && !name ? 2 : 1;

        if (name && strcmp(name, variants[i].name) != 0)
            continue;
        if (run_batches(run, &variants[i], together, results) != 0)
            return -1;
        i += together - 1;
    }
    return 0;
}

static int check_results(const struct reference *reference, const struct results *results)
{
    int status = 0;

    if (!(reference->difference_error <= DIFFERENCE_TOLERANCE)) {
        fprintf(stderr, "batched_forces: reference forces differ by %g from central differences\n",
                reference->difference_error);
        status = 1;
    }
    for (size_t i = 0; i < results->count; i++) {
        const struct result *row = &results->rows[i];

        if (check_failed("batched_forces", row->variant->name, &row->check))
            status = 1;
    }
    return status;
}

static int run_on(const struct forces_options *options, struct dev *dev,
                  const struct molecules *set, const struct network *network,
                  const struct reference *reference)
{
    struct session session;
    struct results results = {0};
    struct run run = {.options = options,
                      .set = set,
                      .network = network,
                      .reference = reference,
                      .session = &session};
    int status;

    if (session_open(&session, dev) != 0) {
        fprintf(stderr, "batched_forces: %s\n", dev_error_text(dev));
        return 2;
    }
    results.ceiling = copy_bandwidth(dev, 0);
    status = run_selected(&run, &results) == 0 ? 0 : 2;
    if (status == 0) {
        perfkit_range_push("output");
        print_results(options, dev_info(dev), reference, &results);
        perfkit_range_pop();
        if (reference)
            status = check_results(reference, &results);
    }
    session_close(&session);
    free(results.rows);
    return status;
}

static int run_everything(const void *values, struct dev *dev)
{
    const struct forces_options *options = values;
    struct molecules set = {0};
    struct network network = {0};
    struct reference reference = {0};
    int status = 2;

    perfkit_range_push("data");
    if (molecules_make(options, &set) == 0 && network_make(options, &network) == 0)
        status = 0;
    perfkit_range_pop();
    if (status == 0 && options->common.verify) {
        perfkit_range_push("reference");
        if (reference_make(&network, &set, options->common.seed, &reference) != 0)
            status = 2;
        perfkit_range_pop();
    }
    if (status == 0)
        status = run_on(options, dev, &set, &network, options->common.verify ? &reference : NULL);
    else
        fprintf(stderr, "batched_forces: out of memory: take fewer or smaller molecules\n");
    reference_free(&reference);
    network_free(&network);
    molecules_free(&set);
    return status;
}

static int check_options(void *values)
{
    const struct forces_options *options = values;

    if (options->width & (options->width - 1)) {
        fprintf(stderr, "batched_forces: --width %u: take 32, 64, 128 or 256\n", options->width);
        return -1;
    }
    if (options->functions % 4) {
        fprintf(stderr, "batched_forces: --functions %u: take a multiple of 4\n",
                options->functions);
        return -1;
    }
    return 0;
}

static const struct program program = {
    .options =
        {
            .program = "batched_forces",
            .summary = "Energies and forces of molecules by a message-passing network.",
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
    struct forces_options options = {
        .common = {.iterations = 9, .warmup = 2, .seed = 1},
        .molecules = 32,
        .atoms = 40,
        .width = 64,
        .functions = 20,
        .layers = 3,
    };

    return program_main(&program, argc, argv, &options, sizeof options);
}
