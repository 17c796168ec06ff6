/* Kernels in two forms that differ in one habit: launch bounds, the width of a load, group
 * memory, restrict.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/device/parallel.h"
#include "kernels/stream/stream.h"
#include "workloads/patterns/workload.h"

#define SCALE 1.5f
#define SHIFT -0.25f

enum form {
    BOUNDS_NONE,
    BOUNDS_256_8,
    LOAD_SCALAR,
    LOAD_FLOAT4,
    SMEM_NONE,
    SMEM_PREFETCH,
    RESTRICT_OFF,
    RESTRICT_ON,
};

/* What a form launches: one item for `per_item` elements, and its declared FLOP per element. */
static const struct {
    const char *kernel;
    uint32_t per_item;
    double flop;
    const char *only; /* why a backend lacks it */
} forms[] = {
    [BOUNDS_NONE] = {"hadamard_plain", STREAM_HADAMARD, 4,
                     "launch bounds are a property of CUDA kernels"},
    [BOUNDS_256_8] = {"hadamard_bounds", STREAM_HADAMARD, 4,
                      "launch bounds are a property of CUDA kernels"},
    [LOAD_SCALAR] = {"scale_scalar", 1, 2, NULL},
    [LOAD_FLOAT4] = {"scale_float4", 4, 2, "the compiler chooses the width of loads on a CPU"},
    [SMEM_NONE] = {"window_direct", 1, 2 * STREAM_WEIGHTS, NULL},
    [SMEM_PREFETCH] = {"window_local", 4, 2 * STREAM_WEIGHTS,
                       "the threads of a CPU share no memory but the caches"},
    [RESTRICT_OFF] = {"mix_plain", STREAM_MIX_STEPS, 2, NULL},
    [RESTRICT_ON] = {"mix_restrict", STREAM_MIX_STEPS, 2, NULL},
};

struct state {
    struct session *session;
    enum form form;
    uint32_t n;
    float *in;
    float weights[STREAM_WEIGHTS];
    struct dev_buffer *in_buffer, *out_buffer;
    struct dev_buffer *small[2]; /* weights; gain and shift */
    struct dev_kernel *kernel;
};

static void kernel_close(void *argument)
{
    struct state *s = argument;

    free(s->in);
    dev_free(s->in_buffer);
    dev_free(s->out_buffer);
    dev_free(s->small[0]);
    dev_free(s->small[1]);
    free(s);
}

static bool has_form(const struct dev_info *info, enum form form)
{
    if (form <= BOUNDS_256_8)
        return info->backend == DEV_CUDA;
    return info->backend != DEV_CPU || !forms[form].only;
}

/* The small inputs: a window's weights, whose sum is about one, or gain and shift. */
static int open_small(struct state *s)
{
    const float gain = SCALE, shift = SHIFT;

    if (s->form == SMEM_NONE || s->form == SMEM_PREFETCH) {
        for (int i = 0; i < STREAM_WEIGHTS; i++)
            s->weights[i] = 1.0f / (float)(2 + abs(i - STREAM_RADIUS));
        return upload(s->session, s->weights, sizeof s->weights, &s->small[0]);
    }
    if (s->form != RESTRICT_OFF && s->form != RESTRICT_ON)
        return 0;
    if (upload(s->session, &gain, sizeof gain, &s->small[0]) != 0)
        return -1;
    return upload(s->session, &shift, sizeof shift, &s->small[1]);
}

static void note_shape(struct run *run, struct state *s)
{
    struct dev_kernel_shape shape;

    if (dev_kernel_shape(s->kernel, STREAM_GROUP_ITEMS, 0, &shape) != 0)
        return;
    run->row->occupancy = shape.occupancy;
    run->row->registers = shape.registers;
    if (shape.spill_bytes)
        snprintf(run->row->note, NOTE_BYTES, "%zu bytes of registers per item spilled",
                 shape.spill_bytes);
}

static int kernel_open(struct run *run, int form, void **out)
{
    const struct dev_info *info = dev_info(run->session->dev);
    struct state *s;
    size_t bytes;

    if (!has_form(info, (enum form)form))
        return unavailable(run, "not available on %s: %s", dev_backend_name(info->backend),
                           forms[form].only);
    s = calloc(1, sizeof *s);
    if (!s)
        return -1;
    s->session = run->session;
    s->form = (enum form)form;
    s->n = (run->options->floats + STREAM_UNIT - 1) / STREAM_UNIT * STREAM_UNIT;
    bytes = s->n * sizeof(float);
    s->in = random_floats(run, 5, s->n);
    if (upload(s->session, s->in, bytes, &s->in_buffer) != 0 ||
        alloc_poisoned(s->session, bytes, &s->out_buffer) != 0 || open_small(s) != 0 ||
        dev_kernel(s->session->dev, &stream_module, forms[form].kernel, &s->kernel) != 0) {
        kernel_close(s);
        return -1;
    }
    run->row->memory_bound = true;
    note_shape(run, s);
    *out = s;
    return 0;
}

/* The arguments of each kernel; returns their number. */
static size_t arguments(const struct state *s, struct dev_arg *args)
{
    size_t count = 0;

    args[count++] = dev_arg_buffer(s->in_buffer);
    if (s->small[0])
        args[count++] = dev_arg_buffer(s->small[0]);
    if (s->small[1])
        args[count++] = dev_arg_buffer(s->small[1]);
    args[count++] = dev_arg_buffer(s->out_buffer);
    switch (s->form) {
    case BOUNDS_NONE:
    case BOUNDS_256_8:
        args[count++] = dev_arg_u32(s->n / STREAM_HADAMARD);
        break;
    case LOAD_SCALAR:
    case LOAD_FLOAT4:
        args[count++] = dev_arg_u32(s->form == LOAD_FLOAT4 ? s->n / 4 : s->n);
        args[count++] = dev_arg_f32(SCALE);
        args[count++] = dev_arg_f32(SHIFT);
        break;
    default:
        args[count++] = dev_arg_u32(s->n);
    }
    return count;
}

static int kernel_step(void *argument)
{
    struct state *s = argument;
    const struct work work = {forms[s->form].kernel, forms[s->form].flop * s->n, 4.0 * s->n,
                              4.0 * s->n};
    struct dev_arg args[DEV_MAX_ARGS];
    size_t count = arguments(s, args);

    return session_launch(s->session, s->session->queue, s->kernel,
                          dev_grid_for(s->n / forms[s->form].per_item, STREAM_GROUP_ITEMS), args,
                          count, &work);
}

/* ---- the references in double ---------------------------------------------------------------- */

struct reference {
    const struct state *state;
    double *out;
};

static void hadamard_reference(void *context, uint64_t first, uint64_t end)
{
    const struct reference *reference = context;
    const float *in = reference->state->in;
    size_t columns = reference->state->n / STREAM_HADAMARD;

    for (size_t i = first; i < end; i++) {
        for (unsigned int row = 0; row < STREAM_HADAMARD; row++) {
            double sum = 0;

            for (unsigned int j = 0; j < STREAM_HADAMARD; j++) {
                double v = (double)in[i + j * columns];

                sum += __builtin_parity(row & j) ? -v : v;
            }
            reference->out[i + row * columns] = sum;
        }
    }
}

static void window_reference(void *context, uint64_t first, uint64_t end)
{
    const struct reference *reference = context;
    const struct state *s = reference->state;

    for (size_t i = first; i < end; i++) {
        double sum = 0;

        for (size_t j = 0; j < STREAM_WEIGHTS; j++)
            if (i + j >= STREAM_RADIUS && i + j - STREAM_RADIUS < s->n)
                sum += (double)s->weights[j] * (double)s->in[i + j - STREAM_RADIUS];
        reference->out[i] = sum;
    }
}

static void scale_reference(void *context, uint64_t first, uint64_t end)
{
    const struct reference *reference = context;

    for (size_t i = first; i < end; i++)
        reference->out[i] = (double)SCALE * (double)reference->state->in[i] + (double)SHIFT;
}

static void compute_reference(const struct state *s, double *out)
{
    struct reference reference = {s, out};

    if (s->form <= BOUNDS_256_8)
        parallel_for(0, s->n / STREAM_HADAMARD, hadamard_reference, &reference);
    else if (s->form == SMEM_NONE || s->form == SMEM_PREFETCH)
        parallel_for(0, s->n, window_reference, &reference);
    else
        parallel_for(0, s->n, scale_reference, &reference);
}

static int kernel_verify(void *argument, struct check *check)
{
    struct state *s = argument;
    double *reference = malloc(s->n * sizeof reference[0]);
    int result = -1;

    check->tolerance = 1e-6;
    if (!reference)
        return -1;
    compute_reference(s, reference);
    if (dev_fill(s->session->queue, s->out_buffer, 0xff, NULL) == 0 && kernel_step(s) == 0)
        result = check_buffer(s->session, s->out_buffer, reference, s->n, check);
    free(reference);
    return result;
}

#define KERNEL(name_, form_, with_next_, summary_)                                                 \
    {                                                                                              \
        .name = name_, .summary = summary_, .open = kernel_open, .step = kernel_step,              \
        .verify = kernel_verify, .close = kernel_close, .argument = form_, .with_next = with_next_ \
    }

const struct variant kernel_variants[] = {
    KERNEL("bounds-none", BOUNDS_NONE, true,
           "a transform in registers, as many as the compiler likes"),
    KERNEL("bounds-256-8", BOUNDS_256_8, false,
           "the same, compiled for 256 items and 8 groups per unit"),
    KERNEL("load-scalar", LOAD_SCALAR, true, "a scaled copy, one float per item"),
    KERNEL("load-float4", LOAD_FLOAT4, false, "the same, four floats per item and access"),
    KERNEL("smem-none", SMEM_NONE, true, "a weighted window, every item reads its neighbours"),
    KERNEL("smem-prefetch", SMEM_PREFETCH, false, "the same from group memory, filled once"),
    KERNEL("restrict-off", RESTRICT_OFF, true, "a scaled copy through pointers that may overlap"),
    KERNEL("restrict-on", RESTRICT_ON, false, "the same through pointers that do not"),
};
const size_t kernel_variant_count = sizeof kernel_variants / sizeof kernel_variants[0];
