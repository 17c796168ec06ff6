/* Many small launches, the same as one graph, and a computation that cannot be one.
 *
 *   launch-many    a chain of short kernels, launched one by one
 *   graph-replay   the same chain recorded once and replayed with one call
 *   graph-dynamic  Newton's iteration for square roots until the largest change is small: the host
 *                  reads the change and decides whether to go on, which no graph can record; it
 *                  says why and launches one by one
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/reduction/reduction.h"
#include "kernels/stream/stream.h"
#include "workloads/patterns/workload.h"

/* ---- the chain ------------------------------------------------------------------------------- */

#define SCALE 0.96875f
#define SHIFT 0.03125f

struct chain {
    struct session *session;
    uint32_t n, launches;
    float *in;
    struct dev_buffer *from, *side[2]; /* the input, and the two that the chain alternates */
    struct dev_kernel *kernel;
    struct dev_graph *graph; /* NULL: launched one by one */
};

static void chain_close(void *argument)
{
    struct chain *s = argument;

    dev_graph_free(s->graph);
    free(s->in);
    dev_free(s->from);
    dev_free(s->side[0]);
    dev_free(s->side[1]);
    free(s);
}

static struct work chain_work(const struct chain *s, double launches)
{
    return (struct work){"chain", 2.0 * s->n * launches, 4.0 * s->n * launches,
                         4.0 * s->n * launches};
}

static int launch_chain(struct chain *s)
{
    const struct work work = chain_work(s, 1);
    int result = 0;

    for (uint32_t i = 0; i < s->launches && result == 0; i++) {
        const struct dev_arg args[] = {dev_arg_buffer(i ? s->side[(i - 1) % 2] : s->from),
                                       dev_arg_buffer(s->side[i % 2]), dev_arg_u32(s->n),
                                       dev_arg_f32(SCALE), dev_arg_f32(SHIFT)};

        result = session_launch(s->session, s->session->queue, s->kernel,
                                dev_grid_for(s->n, STREAM_GROUP_ITEMS), args, 5, &work);
    }
    return result;
}

static int record_chain(struct chain *s)
{
    struct dev_queue *queue = s->session->queue;
    struct dev_graph *graph = NULL;
    int result;

    /* Once for real: what a first launch loads cannot be recorded. */
    if (launch_chain(s) != 0 || dev_queue_finish(queue) != 0 ||
        session_graph_begin(s->session, queue) != 0)
        return -1;
    result = launch_chain(s);
    if (session_graph_end(s->session, queue, &graph) != 0)
        return -1;
    s->graph = graph;
    return result;
}

static int chain_open(struct run *run, int as_graph, void **out)
{
    const struct dev_info *info = dev_info(run->session->dev);
    struct chain *s;
    size_t bytes;

    if (as_graph && !info->graphs)
        return unavailable(run, "not available: %s has no graphs here",
                           dev_backend_name(info->backend));
    s = calloc(1, sizeof *s);
    if (!s)
        return -1;
    s->session = run->session;
    s->n = run->options->chain_floats;
    s->launches = run->options->launches;
    bytes = s->n * sizeof(float);
    s->in = random_floats(run, 6, s->n);
    if (upload(s->session, s->in, bytes, &s->from) != 0 ||
        alloc_poisoned(s->session, bytes, &s->side[0]) != 0 ||
        alloc_poisoned(s->session, bytes, &s->side[1]) != 0 ||
        dev_kernel(s->session->dev, &stream_module, "scale_scalar", &s->kernel) != 0 ||
        (as_graph && record_chain(s) != 0)) {
        chain_close(s);
        return -1;
    }
    *out = s;
    return 0;
}

static int chain_step(void *argument)
{
    struct chain *s = argument;
    const struct work work = chain_work(s, s->launches);

    if (!s->graph)
        return launch_chain(s);
    return session_graph_launch(s->session, s->session->queue, s->graph, &work);
}

static int chain_verify(void *argument, struct check *check)
{
    struct chain *s = argument;
    double *reference = malloc(s->n * sizeof reference[0]);
    int result = -1;

    check->tolerance = 1e-5;
    for (uint32_t i = 0; reference && i < s->n; i++) {
        reference[i] = (double)s->in[i];
        for (uint32_t launch = 0; launch < s->launches; launch++)
            reference[i] = (double)SCALE * reference[i] + (double)SHIFT;
    }
    if (reference && dev_fill(s->session->queue, s->side[0], 0xff, NULL) == 0 &&
        dev_fill(s->session->queue, s->side[1], 0xff, NULL) == 0 && chain_step(s) == 0)
        result = check_buffer(s->session, s->side[(s->launches - 1) % 2], reference, s->n, check);
    free(reference);
    return result;
}

/* ---- Newton's iteration ---------------------------------------------------------------------- */

#define MOST_STEPS 64
#define SMALL_CHANGE 1e-6f
#define NEWTON_FLOP 6.0

struct newton {
    struct session *session;
    uint32_t n;
    float *a;
    struct dev_buffer *a_buffer, *y, *change, *partial, *largest;
    struct dev_host *host;
    struct dev_kernel *step, *max;
};

static void newton_close(void *argument)
{
    struct newton *s = argument;

    free(s->a);
    dev_free(s->a_buffer);
    dev_free(s->y);
    dev_free(s->change);
    dev_free(s->partial);
    dev_free(s->largest);
    dev_free_host(s->host);
    free(s);
}

static int largest_change(struct newton *s, float *out)
{
    struct dev_queue *queue = s->session->queue;
    struct dev_grid grid = reduction_grid(s->n), one = {1, REDUCTION_GROUP_ITEMS};
    struct dev_arg local = dev_arg_local(REDUCTION_GROUP_ITEMS * sizeof(float));
    const struct dev_arg first[] = {dev_arg_buffer(s->change), dev_arg_buffer(s->partial),
                                    dev_arg_u32(s->n), local};
    const struct dev_arg second[] = {dev_arg_buffer(s->partial), dev_arg_buffer(s->largest),
                                     dev_arg_u32(grid.groups), local};
    const struct work work_first = {"reduction", s->n, 4.0 * s->n, 4.0 * grid.groups};
    const struct work work_second = {"reduction", grid.groups, 4.0 * grid.groups, 4};

    if (session_launch(s->session, queue, s->max, grid, first, 4, &work_first) != 0 ||
        session_launch(s->session, queue, s->max, one, second, 4, &work_second) != 0 ||
        session_read(s->session, queue, s->largest, dev_host_pointer(s->host), sizeof *out,
                     DEV_BLOCKING) != 0)
        return -1;
    *out = *(const float *)dev_host_pointer(s->host);
    return 0;
}

static int newton_step(void *argument)
{
    struct newton *s = argument;
    struct dev_queue *queue = s->session->queue;
    const struct work work = {"newton", NEWTON_FLOP * s->n, 8.0 * s->n, 8.0 * s->n};
    const struct dev_arg args[] = {dev_arg_buffer(s->a_buffer), dev_arg_buffer(s->y),
                                   dev_arg_buffer(s->change), dev_arg_u32(s->n)};
    float largest = INFINITY;

    if (dev_copy(queue, s->a_buffer, 0, s->y, 0, s->n * sizeof(float), NULL) != 0)
        return -1;
    for (int i = 0; i < MOST_STEPS && !(largest <= SMALL_CHANGE); i++) {
        if (session_launch(s->session, queue, s->step, dev_grid_for(s->n, STREAM_GROUP_ITEMS), args,
                           4, &work) != 0 ||
            largest_change(s, &largest) != 0)
            return -1;
    }
    return 0;
}

/* Tries to record the iteration; the note says why it is launched one by one. 0, or -1 when the
 * attempt was not refused, which it must be. */
static int try_graph(struct run *run, struct newton *s)
{
    struct session *session = run->session;
    struct dev *dev = session->dev;
    char why[NOTE_BYTES / 2];

    if (session_graph_begin(session, session->queue) != 0) {
        snprintf(why, sizeof why, "%s", dev_error_text(dev));
    } else {
        struct dev_graph *graph = NULL;
        int result = newton_step(s);

        snprintf(why, sizeof why, "%s", dev_error_text(dev));
        if (session_graph_end(session, session->queue, &graph) == 0) {
            dev_graph_free(graph);
            if (result == 0)
                return -1;
        }
    }
    snprintf(run->row->note, NOTE_BYTES, "no graph (%s), launched one by one", why);
    return 0;
}

static int newton_open(struct run *run, int argument, void **out)
{
    struct newton *s = calloc(1, sizeof *s);
    struct dev *dev = run->session->dev;
    size_t bytes;

    (void)argument;
    if (!s)
        return -1;
    s->session = run->session;
    s->n = run->options->chain_floats;
    bytes = s->n * sizeof(float);
    s->a = random_floats(run, 7, s->n);
    for (uint32_t i = 0; s->a && i < s->n; i++)
        s->a[i] += 0.5f; /* 0.5 to 1.5: a few steps are enough, how many the data decides */
    if (upload(s->session, s->a, bytes, &s->a_buffer) != 0 ||
        alloc_poisoned(s->session, bytes, &s->y) != 0 ||
        alloc_poisoned(s->session, bytes, &s->change) != 0 ||
        alloc_poisoned(s->session, REDUCTION_MAX_GROUPS * sizeof(float), &s->partial) != 0 ||
        alloc_poisoned(s->session, sizeof(float), &s->largest) != 0 ||
        dev_alloc_host(dev, sizeof(float), &s->host) != 0 ||
        dev_kernel(dev, &stream_module, "newton_step", &s->step) != 0 ||
        dev_kernel(dev, &reduction_module, "reduction_max", &s->max) != 0 || newton_step(s) != 0 ||
        try_graph(run, s) != 0) {
        newton_close(s);
        return -1;
    }
    *out = s;
    return 0;
}

static int newton_verify(void *argument, struct check *check)
{
    struct newton *s = argument;
    double *reference = malloc(s->n * sizeof reference[0]);
    int result = -1;

    check->tolerance = 1e-6;
    for (uint32_t i = 0; reference && i < s->n; i++)
        reference[i] = sqrt((double)s->a[i]);
    if (reference && dev_fill(s->session->queue, s->y, 0xff, NULL) == 0 && newton_step(s) == 0)
        result = check_buffer(s->session, s->y, reference, s->n, check);
    free(reference);
    return result;
}

const struct variant graph_variants[] = {
    {.name = "launch-many",
     .summary = "a chain of short kernels, launched one by one",
     .open = chain_open,
     .step = chain_step,
     .verify = chain_verify,
     .close = chain_close,
     .argument = false,
     .whole = true,
     .with_next = true},
    {.name = "graph-replay",
     .summary = "the same chain recorded once, replayed with one call",
     .open = chain_open,
     .step = chain_step,
     .verify = chain_verify,
     .close = chain_close,
     .argument = true,
     .whole = true},
    {.name = "graph-dynamic",
     .summary = "an iteration whose end the host decides: says why it is no graph",
     .open = newton_open,
     .step = newton_step,
     .verify = newton_verify,
     .close = newton_close,
     .whole = true},
};
const size_t graph_variant_count = sizeof graph_variants / sizeof graph_variants[0];
