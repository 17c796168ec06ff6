/* Matrix products: one call each against one call for all, and small batches against large ones.
 *
 *   gemm-loop     gemm_count products of small square matrices, one launch each
 *   gemm-batched  the same products in one launch
 *   gemm-none     one product of 1 x 1 by our own kernel: what a launch and the wait for it cost
 *   batch-32      samples through a linear layer (width x width), 32 at a time
 *   batch-256     the same samples, 256 at a time
 *
 * By cuBLAS where it is (--gemm), else by our own kernel.
 */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/gemm/gemm.h"
#include "workloads/patterns/workload.h"

enum mode { LOOP, BATCHED, NONE, BATCH_32, BATCH_256 };

struct state {
    struct session *session;
    struct gemm_shape shape;
    uint32_t products;   /* in all */
    uint32_t per_launch; /* products per launch */
    bool one_right;      /* all products have the same right matrix: the layer's weights */
    float *a, *b;
    struct dev_buffer *a_buffer, *b_buffer, *c_buffer;
    struct dev_buffer **a_part, **c_part; /* the layer's batches: the parts of A and C */
    struct dev_kernel *kernel;
    struct gemm_library *library;
};

static void gemm_close(void *argument)
{
    struct state *s = argument;

    for (uint32_t i = 0; s->a_part && i < s->products; i++)
        dev_free(s->a_part[i]);
    for (uint32_t i = 0; s->c_part && i < s->products; i++)
        dev_free(s->c_part[i]);
    free(s->a_part);
    free(s->c_part);
    dev_free(s->a_buffer);
    dev_free(s->b_buffer);
    dev_free(s->c_buffer);
    gemm_library_close(s->library);
    free(s->a);
    free(s->b);
    free(s);
}

/* cuBLAS or our own kernel: 0, -1, or UNAVAILABLE. */
static int choose(struct run *run, enum mode mode, struct state *s)
{
    char why[160];

    if (run->options->gemm != GEMM_OWN && mode != NONE)
        s->library = gemm_library_open(s->session->dev, why, sizeof why);
    if (s->library) {
        snprintf(run->row->note, NOTE_BYTES, "by %s", gemm_library_name(s->library));
        return 0;
    }
    if (run->options->gemm == GEMM_LIBRARY && mode != NONE)
        return unavailable(run, "not available: %s", why);
    snprintf(run->row->note, NOTE_BYTES, "by our own kernel");
    return dev_kernel(s->session->dev, &gemm_module, "gemm", &s->kernel);
}

static void set_shape(struct state *s, const struct pattern_options *options, enum mode mode)
{
    uint32_t rows = mode == BATCH_32 ? 32 : 256;

    s->one_right = mode >= BATCH_32;
    if (s->one_right) {
        s->shape = (struct gemm_shape){rows, options->width, options->width, false, 0};
        s->products = (options->samples + rows - 1) / rows;
    } else {
        uint32_t size = mode == NONE ? 1 : options->gemm_size;
        uint32_t depth = mode != NONE && options->gemm_depth ? options->gemm_depth : size;

        s->shape = (struct gemm_shape){size, size, depth, false, 0};
        s->products = mode == NONE ? 1 : options->gemm_count;
    }
    s->per_launch = mode == BATCHED ? s->products : 1;
}

/* Handles of the layer's batches, of `floats` floats each. */
static int open_parts(struct state *s, struct dev_buffer *whole, size_t floats,
                      struct dev_buffer ***out)
{
    *out = calloc(s->products, sizeof **out);
    if (!*out)
        return -1;
    for (uint32_t i = 0; i < s->products; i++)
        if (dev_view(whole, i * floats * 4, floats * 4, &(*out)[i]) != 0)
            return -1;
    return 0;
}

static int gemm_open(struct run *run, int mode, void **out)
{
    struct state *s = calloc(1, sizeof *s);
    size_t a_one, b_one, c_one, right;
    int status;

    if (!s)
        return -1;
    s->session = run->session;
    set_shape(s, run->options, (enum mode)mode);
    a_one = (size_t)s->shape.m * s->shape.k;
    b_one = (size_t)s->shape.k * s->shape.n;
    c_one = (size_t)s->shape.m * s->shape.n;
    right = s->one_right ? 1 : s->products;
    status = choose(run, (enum mode)mode, s);
    if (status == 0) {
        s->a = random_floats(run, 3, s->products * a_one);
        s->b = random_floats(run, 4, right * b_one);
        if (upload(s->session, s->a, s->products * a_one * 4, &s->a_buffer) != 0 ||
            upload(s->session, s->b, right * b_one * 4, &s->b_buffer) != 0 ||
            alloc_poisoned(s->session, s->products * c_one * 4, &s->c_buffer) != 0 ||
            (s->one_right && (open_parts(s, s->a_buffer, a_one, &s->a_part) != 0 ||
                              open_parts(s, s->c_buffer, c_one, &s->c_part) != 0)))
            status = -1;
    }
    if (status != 0) {
        gemm_close(s);
        return status;
    }
    *out = s;
    return 0;
}

/* Products first .. first + per_launch - 1 in one launch. */
static int one_launch(struct state *s, uint32_t first)
{
    const struct gemm_shape *shape = &s->shape;
    double read = 4.0 * shape->k * ((double)shape->m + shape->n),
           written = 4.0 * shape->m * shape->n;
    const struct work work = {"gemm", gemm_flop(shape, s->per_launch), read * s->per_launch,
                              written * s->per_launch};
    struct dev_buffer *a = s->a_part ? s->a_part[first] : s->a_buffer;
    struct dev_buffer *c = s->c_part ? s->c_part[first] : s->c_buffer;
    struct dev_queue *queue = s->session->queue;

    first = s->one_right ? 0 : first;
    if (s->library) {
        struct gemm_library_job job = {s->library, *shape, first, s->per_launch, a, s->b_buffer, c};

        return session_call(s->session, queue, gemm_library_call, &job, &work);
    }
    const struct dev_arg args[] = {dev_arg_buffer(a),     dev_arg_buffer(s->b_buffer),
                                   dev_arg_buffer(c),     dev_arg_u32(shape->m),
                                   dev_arg_u32(shape->n), dev_arg_u32(shape->k),
                                   dev_arg_u32(first),    dev_arg_u32(0),
                                   dev_arg_f32(0)};

    return session_launch(s->session, queue, s->kernel, gemm_grid(shape, s->per_launch), args,
                          sizeof args / sizeof args[0], &work);
}

static int gemm_step(void *argument)
{
    struct state *s = argument;
    int result = 0;

    for (uint32_t i = 0; i < s->products && result == 0; i += s->per_launch)
        result = one_launch(s, i);
    return result;
}

static int gemm_verify(void *argument, struct check *check)
{
    struct state *s = argument;
    size_t a_one = (size_t)s->shape.m * s->shape.k, b_one = (size_t)s->shape.k * s->shape.n;
    size_t c_one = (size_t)s->shape.m * s->shape.n;
    double *reference = calloc(s->products * c_one, sizeof reference[0]);
    int result = -1;

    check->tolerance = 1e-5;
    for (size_t i = 0; reference && i < s->products; i++)
        gemm_reference(&s->shape, s->a + i * a_one, s->b + (s->one_right ? 0 : i * b_one),
                       reference + i * c_one);
    if (reference && dev_fill(s->session->queue, s->c_buffer, 0xff, NULL) == 0 && gemm_step(s) == 0)
        result = check_buffer(s->session, s->c_buffer, reference, s->products * c_one, check);
    free(reference);
    return result;
}

#define GEMM(name_, mode_, with_next_, summary_)                                                   \
    {                                                                                              \
        .name = name_, .summary = summary_, .open = gemm_open, .step = gemm_step,                  \
        .verify = gemm_verify, .close = gemm_close, .argument = mode_, .whole = true,              \
        .with_next = with_next_                                                                    \
    }

const struct variant gemm_variants[] = {
    GEMM("gemm-loop", LOOP, true, "small matrix products, one launch each"),
    GEMM("gemm-batched", BATCHED, true, "the same products in one launch"),
    GEMM("gemm-none", NONE, false, "one product of 1 x 1: a launch and the wait for it"),
    GEMM("batch-32", BATCH_32, true, "samples through a linear layer, 32 at a time"),
    GEMM("batch-256", BATCH_256, false, "the same samples, 256 at a time"),
};
const size_t gemm_variant_count = sizeof gemm_variants / sizeof gemm_variants[0];
