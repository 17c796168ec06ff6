/* The loss: smape plus band penalty. Separate, each part writes its terms, sums them and ends
 * the sum, seven launches in all; fused, the predictions are read once, in two launches.
 */
#include <stdlib.h>

#include "kernels/loss/loss.h"
#include "perfkit/annotate.h"
#include "workloads/hash_embedding/workload.h"

#define EPS 1e-6f
#define BAND 0.2f

enum { SMAPE_TERMS, BAND_TERMS, SUM, SUM_FINISH, TOTAL, FUSED, FUSED_FINISH, KERNELS };

static const char *const kernel_names[KERNELS] = {
    [SMAPE_TERMS] = "loss_smape_terms",   [BAND_TERMS] = "loss_band_terms", [SUM] = "loss_sum",
    [SUM_FINISH] = "loss_sum_finish",     [TOTAL] = "loss_total",           [FUSED] = "loss_fused",
    [FUSED_FINISH] = "loss_fused_finish",
};

struct state {
    struct session *session;
    const struct dataset *data;
    struct dev_buffer *pred, *target, *terms, *partial, *result;
    struct dev_kernel *kernel[KERNELS];
    uint32_t n;
    uint32_t groups; /* of the sums */
    bool fused;
};

static void loss_close(void *argument)
{
    struct state *s = argument;

    dev_free(s->pred);
    dev_free(s->target);
    dev_free(s->terms);
    dev_free(s->partial);
    dev_free(s->result);
    free(s);
}

static int loss_open(struct run *run, int fused, void **out)
{
    struct session *session = run->session;
    size_t bytes = run->data->shape.records * sizeof(float);
    struct state *s = calloc(1, sizeof *s);
    int result = -1;

    if (!s)
        return -1;
    s->session = session;
    s->data = run->data;
    s->fused = fused;
    s->n = run->data->shape.records;
    s->groups = loss_sum_grid(s->n).groups;
    if (upload(session, run->data->pred, bytes, &s->pred) == 0 &&
        upload(session, run->data->target, bytes, &s->target) == 0 &&
        alloc_poisoned(session, bytes, &s->terms) == 0 &&
        alloc_poisoned(session, 2 * s->groups * sizeof(float), &s->partial) == 0 &&
        alloc_poisoned(session, LOSS_RESULTS * sizeof(float), &s->result) == 0)
        result = 0;
    for (int i = 0; i < KERNELS && result == 0; i++)
        result = dev_kernel(session->dev, &loss_module, kernel_names[i], &s->kernel[i]);
    if (result != 0) {
        loss_close(s);
        return -1;
    }
    *out = s;
    return 0;
}

static int launch(struct state *s, int kernel, struct dev_grid grid, const struct dev_arg *args,
                  size_t arg_count, double flop, double bytes_read, double bytes_written)
{
    struct work work = {kernel_names[kernel], flop, bytes_read, bytes_written};

    return session_launch(s->session, s->session->queue, s->kernel[kernel], grid, args, arg_count,
                          &work);
}

#define LAUNCH(s, kernel, grid, flop, bytes_read, bytes_written, ...)                              \
    launch(s, kernel, grid, (const struct dev_arg[]){__VA_ARGS__},                                 \
           sizeof((const struct dev_arg[]){__VA_ARGS__}) / sizeof(struct dev_arg), flop,           \
           bytes_read, bytes_written)

/* The mean of the terms into result[index]. */
static int mean_of_terms(struct state *s, uint32_t index)
{
    struct dev_grid sums = loss_sum_grid(s->n), one = {1, LOSS_GROUP_ITEMS};
    struct dev_arg local = dev_arg_local(LOSS_GROUP_ITEMS * sizeof(float));
    double n = s->n, groups = s->groups;

    if (LAUNCH(s, SUM, sums, n, 4 * n, 4 * groups, dev_arg_buffer(s->terms),
               dev_arg_buffer(s->partial), dev_arg_u32(s->n), local) != 0)
        return -1;
    return LAUNCH(s, SUM_FINISH, one, groups + 1, 4 * groups, 4, dev_arg_buffer(s->partial),
                  dev_arg_buffer(s->result), dev_arg_u32(s->groups), dev_arg_u32(index),
                  dev_arg_f32(1.0f / (float)s->n), local);
}

static int separate(struct state *s)
{
    struct dev_grid each = dev_grid_for(s->n, LOSS_GROUP_ITEMS), one = {1, 1};
    double n = s->n;

    if (LAUNCH(s, SMAPE_TERMS, each, (LOSS_SMAPE_FLOP - 1) * n, 8 * n, 4 * n,
               dev_arg_buffer(s->pred), dev_arg_buffer(s->target), dev_arg_buffer(s->terms),
               dev_arg_u32(s->n), dev_arg_f32(EPS)) != 0 ||
        mean_of_terms(s, LOSS_SMAPE) != 0)
        return -1;
    if (LAUNCH(s, BAND_TERMS, each, (LOSS_BAND_FLOP - 1) * n, 8 * n, 4 * n, dev_arg_buffer(s->pred),
               dev_arg_buffer(s->target), dev_arg_buffer(s->terms), dev_arg_u32(s->n),
               dev_arg_f32(EPS), dev_arg_f32(BAND)) != 0 ||
        mean_of_terms(s, LOSS_BAND) != 0)
        return -1;
    return LAUNCH(s, TOTAL, one, 1, 8, 4, dev_arg_buffer(s->result));
}

static int fused(struct state *s)
{
    struct dev_grid sums = loss_sum_grid(s->n), one = {1, LOSS_GROUP_ITEMS};
    struct dev_arg local = dev_arg_local(2 * LOSS_GROUP_ITEMS * sizeof(float));
    double n = s->n, groups = s->groups;

    if (LAUNCH(s, FUSED, sums, (LOSS_SMAPE_FLOP + LOSS_BAND_FLOP) * n, 8 * n, 8 * groups,
               dev_arg_buffer(s->pred), dev_arg_buffer(s->target), dev_arg_buffer(s->partial),
               dev_arg_u32(s->n), dev_arg_f32(EPS), dev_arg_f32(BAND), local) != 0)
        return -1;
    return LAUNCH(s, FUSED_FINISH, one, 2 * groups + 4, 8 * groups, 12, dev_arg_buffer(s->partial),
                  dev_arg_buffer(s->result), dev_arg_u32(s->groups),
                  dev_arg_f32(1.0f / (float)s->n), local);
}

static int loss_step(void *argument)
{
    struct state *s = argument;
    int result;

    perfkit_range_push("loss");
    result = s->fused ? fused(s) : separate(s);
    perfkit_range_pop();
    return result;
}

static int loss_verify(void *argument, struct check *check)
{
    struct state *s = argument;
    struct dev_queue *queue = s->session->queue;
    double reference[LOSS_RESULTS];
    float out[LOSS_RESULTS];

    check->tolerance = 1e-5;
    loss_reference(s->data->pred, s->data->target, s->n, (double)EPS, (double)BAND, reference);
    if (dev_fill(queue, s->result, 0xff, NULL) != 0 ||
        dev_fill(queue, s->partial, 0xff, NULL) != 0 ||
        dev_fill(queue, s->terms, 0xff, NULL) != 0 || loss_step(s) != 0 ||
        dev_read(queue, s->result, 0, out, sizeof out, DEV_BLOCKING, NULL) != 0)
        return -1;
    for (int i = 0; i < LOSS_RESULTS; i++) /* each by itself: a norm would hide the small one */
        check_note(check, relative_error(&out[i], &reference[i], 1));
    return 0;
}

const struct variant loss_variants[] = {
    {.name = "loss-separate",
     .summary = "smape and band penalty as separate passes and reductions",
     .open = loss_open,
     .step = loss_step,
     .verify = loss_verify,
     .close = loss_close,
     .argument = false,
     .with_next = true,
     .shape = SHAPE_MAIN},
    {.name = "loss-fused",
     .summary = "smape and band penalty in one pass",
     .open = loss_open,
     .step = loss_step,
     .verify = loss_verify,
     .close = loss_close,
     .argument = true,
     .shape = SHAPE_MAIN},
};
const size_t loss_variant_count = sizeof loss_variants / sizeof loss_variants[0];
