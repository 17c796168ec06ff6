/* allreduce: training of the transformer by several processes, each on a device and a part of the
 * batch of its own, which add up their gradients in every step. It starts its processes itself
 * (--ranks), or is started by torchrun, mpirun or srun. Options and the exit status: 0, 1 for a
 * failed verification, 2 for usage or a device that failed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device/parallel.h"
#include "perfkit/annotate.h"
#include "workloads/allreduce/workload.h"
#include "workloads/common/program.h"
#include "workloads/common/report.h"

#define OWN(member) offsetof(struct allreduce_options, member)

static const char *const slow_ways[] = {[SLOW_BY_DEVICE] = "device", [SLOW_BY_HOST] = "host", NULL};

static const struct option_row rows[] = {
    {"ranks", OPTION_U32, "N", OWN(ranks), NULL,
     "processes to start, unless torchrun, mpirun or srun did", 1, MEET_RANKS},
    {"sequences", OPTION_U32, "N", OWN(sequences), NULL,
     "of a batch of all ranks; rounded up to a multiple of them", 1, 4096},
    {"length", OPTION_U32, "N", OWN(length), NULL, "tokens of a sequence", 2, 4096},
    {"width", OPTION_U32, "N", OWN(width), NULL, "d_model", 8, 4096},
    {"heads", OPTION_U32, "N", OWN(heads), NULL, "of the attention; divides the width", 1, 128},
    {"layers", OPTION_U32, "N", OWN(layers), NULL, "up to 8", 1, MAX_LAYERS},
    {"vocabulary", OPTION_U32, "N", OWN(vocabulary), NULL, "different tokens", 2, 1 << 20},
    {"bucket", OPTION_BYTES, "SIZE", OWN(bucket_bytes), NULL,
     "of gradients that are added up in one operation", 1024, (uint64_t)1 << 40},
    {"slow-rank", OPTION_U32, "R", OWN(slow_rank), NULL,
     "which one is slow in the variants of that name; the last one otherwise", 0, MEET_RANKS - 1},
    {"slow-by", OPTION_CHOICE, NULL, OWN(slow_by), slow_ways,
     "more work of its device, or a host that sleeps", 0, 0},
    {"slow-amount", OPTION_U32, "N", OWN(slow_amount), NULL,
     "forward passes more in each step, or milliseconds of sleep", 1, 10000},
    {"patience", OPTION_U32, "SECONDS", OWN(meet.patience_s), NULL,
     "to wait for ranks that another launcher starts", 1, 86400},
};

static void apply_preset(int preset, void *values)
{
    struct allreduce_options *options = values;

    if (preset == PRESET_SMALL) {
        options->sequences = 4;
        options->length = 16;
        options->width = 64;
        options->layers = 1;
        options->vocabulary = 200;
        options->bucket_bytes = 64 << 10;
        options->common.iterations = 2;
        options->common.warmup = 1;
    } else { /* gradients of 0.5 GB, as a small language model has them */
        options->sequences = 64;
        options->length = 256;
        options->width = 1024;
        options->heads = 16;
        options->layers = 8;
        options->vocabulary = 16384;
        options->bucket_bytes = 25 << 20; /* PyTorch's */
        options->common.iterations = 10;
        options->common.warmup = 3;
    }
}

static const char *describe_variant(size_t index, const char **summary)
{
    if (index >= variant_count)
        return NULL;
    *summary = variants[index].summary;
    return variants[index].name;
}

static int check_options(void *values)
{
    struct allreduce_options *options = values;
    struct shape shape;
    uint32_t ranks = options->ranks;
    char why[160] = "";
    int known = meet_identity(&options->meet, why, sizeof why);

    if (known < 0) {
        fprintf(stderr, "allreduce: %s\n", why);
        return -1;
    }
    if (known > 0)
        ranks = options->meet.ranks;
    options->sequences = (options->sequences + ranks - 1) / ranks * ranks;
    shape = whole_shape(options);
    if (shape.width % 4 || shape.width % shape.heads) {
        fprintf(stderr,
                "allreduce: --width %u --heads %u: the heads share the width, which is a "
                "multiple of 4: take 512 and 8\n",
                shape.width, shape.heads);
        return -1;
    }
    if (weights_of(&shape) >= 0x1p31 || largest_matrix_of(&shape) >= 0x1p31) {
        fprintf(stderr, "allreduce: a matrix of 2^31 numbers or more: take a smaller --vocabulary, "
                        "--length or --sequences\n");
        return -1;
    }
    if (options->slow_rank != SLOW_LAST_RANK && options->slow_rank >= ranks) {
        fprintf(stderr, "allreduce: --slow-rank %u: there are %u ranks: take one from 0 to %u\n",
                options->slow_rank, ranks, ranks - 1);
        return -1;
    }
    return 0;
}

/* A process that is no rank starts them and has nothing more to do. */
static int start(void *values, char **argv)
{
    struct allreduce_options *options = values;
    char why[160] = "";

    if (options->meet.ranks == 0)
        return meet_launch("allreduce", options->ranks, argv);
    if (meet_open(&options->meet, why, sizeof why) == 0)
        return -1;
    fprintf(stderr, "allreduce: rank %u: %s\n", options->meet.rank, why);
    return 2;
}

/* ---- devices --------------------------------------------------------------------------------- */

/* A device of this rank: its own, else the first, which ranks then share; NCCL does not take that,
 * but all else does. (A scheduler may also show each rank one device only.) */
static struct dev *open_own(const struct meet *meet, enum dev_backend backend, char *why,
                            size_t why_bytes)
{
    uint32_t here = meet->local_ranks ? meet->local_ranks : meet->ranks;
    uint32_t threads = parallel_cores() / here;
    struct dev *dev = NULL;

    if (backend == DEV_CPU)
        dev_open_nth(backend, 0, threads ? threads : 1, &dev, why, why_bytes);
    else if (dev_open_nth(backend, meet->local_rank, 0, &dev, why, why_bytes) != 0)
        dev_open_nth(backend, 0, 0, &dev, why, why_bytes);
    return dev;
}

/* The same kind for all ranks, or none. */
static struct dev *open_together(const struct allreduce_options *options, enum dev_backend backend,
                                 char *why, size_t why_bytes)
{
    struct meet meet = options->meet;
    struct dev *dev = open_own(&meet, backend, why, why_bytes);

    if (meet_agree(&meet, dev != NULL, why, why_bytes))
        return dev;
    if (dev)
        close_device(dev);
    return NULL;
}

static struct dev *open_ranks_device(const void *values)
{
    const struct allreduce_options *options = values;
    enum dev_backend asked = (enum dev_backend)options->common.backend;
    enum dev_backend first = asked == DEV_AUTO ? DEV_CUDA : asked;
    enum dev_backend last = asked == DEV_AUTO ? DEV_CPU : asked;
    struct dev *dev = NULL;
    char why[160] = "";

    perfkit_range_push("open device");
    for (int backend = (int)first; backend <= (int)last && !dev; backend++)
        dev = open_together(options, (enum dev_backend)backend, why, sizeof why);
    perfkit_range_pop();
    if (!dev && options->meet.rank == 0)
        fprintf(
            stderr,
            "allreduce: no device for --backend %s on each of %u ranks: %s: try --backend auto\n",
            dev_backend_name(asked), options->meet.ranks, why);
    return dev;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int failed_checks(const struct results *results)
{
    bool failed = false;

    for (size_t i = 0; i < results->count; i++) {
        const struct result *row = &results->rows[i];

        failed |= check_failed("allreduce", row->variant->name, &row->check);
        failed |= check_failed("allreduce", row->variant->name, &row->curve);
        failed |= check_failed("allreduce", row->variant->name, &row->replicas);
    }
    return failed ? 1 : 0;
}

static int run_everything(const void *values, struct dev *dev)
{
    const struct allreduce_options *options = values;
    struct meet meet = options->meet;
    struct session session;
    struct results results = {.rows = NULL};
    struct run run = {.options = options, .meet = &meet, .session = &session, .results = &results};
    int status;

    if (session_open(&session, dev) != 0) {
        fprintf(stderr, "allreduce: rank %u: %s\n", meet.rank, dev_error_text(dev));
        return 2;
    }
    status = run_variants(&run) == 0 ? 0 : 2;
    if (status == 0 && meet.rank == 0) {
        perfkit_range_push("output");
        print_results(options, dev_info(dev), &results);
        perfkit_range_pop();
        status = failed_checks(&results);
    }
    session_close(&session);
    for (size_t i = 0; i < results.count; i++)
        free(results.rows[i].ranks);
    free(results.rows);
    return status;
}

int main(int argc, char **argv)
{
    static const struct program program = {
        .options = {.program = "allreduce",
                    .summary = "Training of a small transformer by several processes that add up "
                               "their gradients.",
                    .rows = rows,
                    .row_count = sizeof rows / sizeof rows[0],
                    .apply_preset = apply_preset,
                    .variant = describe_variant},
        .check = check_options,
        .start = start,
        .open = open_ranks_device,
        .run = run_everything,
    };
    struct allreduce_options options = {
        .common = {.iterations = 5, .warmup = 2, .seed = 1},
        .ranks = 2,
        .sequences = 8,
        .length = 16,
        .width = 128,
        .heads = 8,
        .layers = 2,
        .vocabulary = 1024,
        .bucket_bytes = 512 << 10,
        .slow_rank = SLOW_LAST_RANK,
        .slow_amount = 4,
        .meet = {.patience_s = 60},
    };
    int status = program_main(&program, argc, argv, &options, sizeof options);

    meet_close(&options.meet);
    return status;
}
