/* The steps of a rollout as launches. Every operation has an output of its own, as a framework
 * makes them that runs operation after operation.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/activation/activation.h"
#include "kernels/noise/noise.h"
#include "perfkit/annotate.h"
#include "workloads/rollout/rollout.h"

#define HEAD_START 16 /* convolutions */

/* Where the event of the next launch goes: nowhere unless the parts are being timed. */
static int event_slot(struct rollout *r, enum part part, struct dev_event ***out)
{
    *out = NULL;
    if (!r->timed)
        return 0;
    if (r->timed_count == r->timed_capacity) {
        size_t capacity = 2 * r->timed_capacity;
        void *timed = realloc(r->timed, capacity * sizeof r->timed[0]);

        if (!timed)
            return dev_fail(r->dev, "events", "out of host memory");
        r->timed = timed;
        r->timed_capacity = capacity;
    }
    r->timed[r->timed_count] = (struct timed){.part = part};
    *out = &r->timed[r->timed_count++].event;
    return 0;
}

static void declare(struct rollout *r, enum part part, const struct work *work)
{
    struct tally *tally = &r->tally[part];

    perfkit_work_push(work->label, work->flop, work->bytes_read, work->bytes_written);
    tally->launches++;
    tally->flop += work->flop;
    tally->bytes_read += work->bytes_read;
    tally->bytes_written += work->bytes_written;
}

/* The whole step as one piece of work, for the launch of a recorded one. */
static struct work step_work(const struct rollout *r)
{
    struct work work = {.label = "step"};

    for (int part = 0; part < PART_KINDS; part++) {
        work.flop += r->tally[part].flop;
        work.bytes_read += r->tally[part].bytes_read;
        work.bytes_written += r->tally[part].bytes_written;
    }
    return work;
}

static int launch(struct rollout *r, enum part part, struct dev_kernel *kernel,
                  struct dev_grid grid, const struct dev_arg *args, size_t count,
                  const struct work *work)
{
    struct dev_event **event;
    int result;

    if (event_slot(r, part, &event) != 0)
        return -1;
    declare(r, part, work);
    result = dev_launch(r->queue, kernel, grid, args, count, event);
    perfkit_work_pop();
    return result;
}

static int convolve(struct rollout *r, uint32_t index, struct dev_buffer *in)
{
    struct layer *l = &r->layer[index];
    struct work work = {"convolution", l->plan.flop, l->plan.bytes_read, l->plan.bytes_written};
    struct dev_arg args[DEV_MAX_ARGS];
    struct dev_event **event;
    int result;

    if (!l->cudnn)
        return launch(r, PART_CONVOLUTION, r->conv[index], l->plan.grid, args,
                      conv2d_arguments(&l->plan, &l->shape, in, l->weight, l->out[CONV], args),
                      &work);
    if (event_slot(r, PART_CONVOLUTION, &event) != 0)
        return -1;
    declare(r, PART_CONVOLUTION, &work);
    result =
        conv2d_cudnn_launch(r->queue, l->cudnn, in, l->weight, l->out[CONV], r->workspace, event);
    perfkit_work_pop();
    return result;
}

static int normalise(struct rollout *r, struct layer *l)
{
    const struct norm_shape *s = &r->norm;
    double elements = r->hidden, bytes = elements * (double)storage_bytes(r->storage);
    double partial_bytes = (double)norm_partial_floats(s) * sizeof(float);
    struct work partial_work = {"norm statistics", NORM_PARTIAL_FLOP * elements, bytes,
                                partial_bytes};
    struct work apply_work = {"norm", NORM_APPLY_FLOP * elements, bytes + partial_bytes, bytes};
    const struct dev_arg partial[] = {dev_arg_buffer(l->out[CONV]), dev_arg_buffer(r->partial),
                                      dev_arg_u32(s->plane), dev_arg_u32(norm_chunks(s)),
                                      dev_arg_local(NORM_LOCAL_BYTES)};
    const struct dev_arg apply[] = {dev_arg_buffer(l->out[CONV]),   dev_arg_buffer(r->partial),
                                    dev_arg_buffer(r->scale),       dev_arg_buffer(r->shift),
                                    dev_arg_buffer(l->out[NORM]),   dev_arg_u32(s->plane),
                                    dev_arg_u32(norm_chunks(s)),    dev_arg_u32(s->channels),
                                    dev_arg_u32(s->group_channels), dev_arg_f32(NORM_EPS),
                                    dev_arg_local(NORM_LOCAL_BYTES)};

    return launch(r, PART_NORM, r->norm_partial, norm_grid(s), partial,
                  sizeof partial / sizeof partial[0], &partial_work) ||
           launch(r, PART_NORM, r->norm_apply, norm_grid(s), apply, sizeof apply / sizeof apply[0],
                  &apply_work);
}

static int activate(struct rollout *r, struct layer *l, uint32_t index)
{
    double elements = r->hidden, bytes = elements * (double)storage_bytes(r->storage);
    struct work gelu_work = {"gelu", GELU_FLOP * elements, bytes, bytes};
    struct work noise_work = {"noise", NOISE_FLOP * elements, bytes, bytes};
    const struct dev_arg gelu[] = {dev_arg_buffer(l->out[NORM]), dev_arg_buffer(l->out[GELU]),
                                   dev_arg_u32(r->hidden)};
    const struct dev_arg noise[] = {dev_arg_buffer(l->out[GELU]),
                                    dev_arg_buffer(l->out[NOISE]),
                                    dev_arg_buffer(r->counter),
                                    dev_arg_u32(r->hidden),
                                    dev_arg_u32(r->model->seed),
                                    dev_arg_u32(index),
                                    dev_arg_u32(DROP),
                                    dev_arg_f32(KEEP_SCALE),
                                    dev_arg_f32(SIGMA)};

    return launch(r, PART_ACTIVATION, r->gelu, activation_grid(r->hidden), gelu,
                  sizeof gelu / sizeof gelu[0], &gelu_work) ||
           launch(r, PART_NOISE, r->noise, noise_grid(r->hidden), noise,
                  sizeof noise / sizeof noise[0], &noise_work);
}

static int advance(struct rollout *r)
{
    struct dev_buffer *update = r->layer[r->model->layers - 1].out[CONV];
    double elements = r->states, bytes = elements * (double)storage_bytes(r->storage);
    struct work advance_work = {"step", NOISE_ADVANCE_FLOP * elements,
                                elements * sizeof(float) + bytes,
                                elements * sizeof(float) + 2 * bytes};
    struct work count_work = {"step count", 0, sizeof(uint32_t), sizeof(uint32_t)};
    const struct dev_arg step[] = {dev_arg_buffer(r->state),   dev_arg_buffer(update),
                                   dev_arg_buffer(r->field),   dev_arg_buffer(r->trajectory),
                                   dev_arg_buffer(r->counter), dev_arg_u32(r->states),
                                   dev_arg_u32(r->slots),      dev_arg_f32(ALPHA)};
    const struct dev_arg count[] = {dev_arg_buffer(r->counter)};

    return launch(r, PART_STEP, r->advance, noise_grid(r->states), step,
                  sizeof step / sizeof step[0], &advance_work) ||
           launch(r, PART_STEP, r->count, (struct dev_grid){1, 1}, count, 1, &count_work);
}

int rollout_enqueue_step(struct rollout *r)
{
    struct dev_buffer *in = r->field;

    memset(r->tally, 0, sizeof r->tally);
    for (uint32_t index = 0; index < r->model->layers; index++) {
        struct layer *l = &r->layer[index];

        if (convolve(r, index, in) != 0)
            return -1;
        if (index + 1 == r->model->layers)
            break;
        if (normalise(r, l) != 0 || activate(r, l, index) != 0)
            return -1;
        in = l->out[NOISE];
    }
    return advance(r);
}

int rollout_steps(struct rollout *r, uint32_t steps)
{
    int result = 0;

    for (uint32_t i = 0; i < steps && result == 0; i++) {
        perfkit_range_push("step");
        if (r->graph) {
            struct work work = step_work(r);

            perfkit_work_push(work.label, work.flop, work.bytes_read, work.bytes_written);
            result = dev_graph_launch(r->queue, r->graph, NULL);
            perfkit_work_pop();
        } else {
            result = rollout_enqueue_step(r);
        }
        perfkit_range_pop();
    }
    return result;
}

/* Events around a launch count the time that its queue waits for the host to give it. So that it
 * never does, a GPU gets something to do first, untimed, while the host enqueues the rest. */
static int head_start(struct rollout *r)
{
    uint32_t launches = dev_info(r->dev)->is_cpu ? 0 : HEAD_START;
    int result = 0;

    for (uint32_t i = 0; i < launches && result == 0; i++)
        result = convolve(r, 1, r->layer[0].out[NOISE]);
    return result;
}

int rollout_profile(struct rollout *r, uint32_t steps, double part_ns[PART_KINDS], double *empty_ns)
{
    int result = head_start(r);

    r->timed_capacity = 64;
    r->timed_count = 0;
    r->timed = malloc(r->timed_capacity * sizeof r->timed[0]);
    if (!r->timed)
        return dev_fail(r->dev, "events", "out of host memory");
    for (uint32_t i = 0; i < steps && result == 0; i++)
        result = rollout_enqueue_step(r);
    if (dev_queue_finish(r->queue) != 0)
        result = -1;
    for (size_t i = 0; i < r->timed_count; i++) {
        uint64_t ns = 0;

        if (result == 0 && r->timed[i].event)
            result = dev_event_duration_ns(r->timed[i].event, &ns);
        if (i == 0 || (double)ns < *empty_ns)
            *empty_ns = (double)ns;
        part_ns[r->timed[i].part] += (double)ns / steps;
        dev_event_release(r->timed[i].event);
    }
    free(r->timed);
    r->timed = NULL;
    return result;
}
