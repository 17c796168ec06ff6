/* What calls cost, each many times in a row: run with and without perfkit, the difference is what
 * recording one costs (cli/device_measure.c).
 *
 * A batch ends when the device is done, so that what is paid then (the times of the device, records
 * that are fetched) counts too. There is a second thread, as in most programs: without one the C
 * library skips its locks, until perfkit's helper thread runs. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ceiling/ceiling.h"
#include "kernels/device/clock.h"
#include "perfkit/annotate.h"

#define CALLS 500
#define NODES 100
#define BATCHES 41      /* the first ones warm up */
#define COPY_BYTES 4096 /* CEILING_OUT_BYTES and more */

struct work {
    struct dev *dev;
    struct dev_queue *queue;
    struct dev_buffer *from, *to;
    struct dev_kernel *kernel;
    struct dev_graph *graph;
};

static int call_launch(struct work *w)
{
    const struct dev_arg args[] = {dev_arg_buffer(w->to)};

    return dev_launch(w->queue, w->kernel, (struct dev_grid){1, 1}, args, 1, NULL);
}

static int call_copy(struct work *w)
{
    return dev_copy(w->queue, w->from, 0, w->to, 0, COPY_BYTES, NULL);
}

static int call_memset(struct work *w)
{
    return dev_fill(w->queue, w->to, 0, NULL);
}

static int call_sync(struct work *w)
{
    return dev_queue_finish(w->queue);
}

static int call_other(struct work *w)
{
    struct dev_event *event = NULL;
    int status = dev_mark(w->queue, &event);

    dev_event_release(event);
    return status;
}

static int call_range(struct work *w)
{
    (void)w;
    perfkit_range_push("calibration");
    perfkit_range_pop();
    return 0;
}

static int call_graph(struct work *w)
{
    return dev_graph_launch(w->queue, w->graph, NULL);
}

static const struct {
    const char *name;
    int (*call)(struct work *w);
    int events; /* of this kind in a call */
} kinds[] = {
    {"record_launch", call_launch, 1},  {"record_memcpy", call_copy, 1},
    {"record_memset", call_memset, 1},  {"record_sync", call_sync, 1},
    {"record_call", call_other, 1},     {"record_range", call_range, 1},
    {"record_node", call_graph, NODES},
};

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Median over the batches, of a call. */
static int time_calls(struct work *w, int (*call)(struct work *w), int calls, double *ns)
{
    double times[BATCHES];
    int status = 0;

    for (int b = 0; b < BATCHES && status == 0; b++) {
        uint64_t start = now_ns();

        for (int i = 0; i < calls && status == 0; i++)
            status = call(w);
        if (status == 0)
            status = dev_queue_finish(w->queue);
        times[b] = (double)(now_ns() - start) / calls;
    }
    qsort(times + BATCHES / 4, BATCHES - BATCHES / 4, sizeof *times, ascending);
    *ns = times[BATCHES / 4 + (BATCHES - BATCHES / 4) / 2];
    return status;
}

static void *wait_for_end(void *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

static int make_graph(struct work *w)
{
    int status = dev_graph_begin(w->queue);

    for (int i = 0; i < NODES && status == 0; i++)
        status = call_launch(w);
    return status == 0 ? dev_graph_end(w->queue, &w->graph) : status;
}

static int prepare(struct work *w)
{
    int status = dev_queue_create_untimed(w->dev, &w->queue);

    if (status == 0)
        status = dev_alloc(w->dev, COPY_BYTES, &w->from);
    if (status == 0)
        status = dev_alloc(w->dev, COPY_BYTES, &w->to);
    if (status == 0)
        status = dev_kernel(w->dev, &ceiling_module, "ceiling_empty", &w->kernel);
    if (status == 0)
        status = call_launch(w);
    return status == 0 ? dev_queue_finish(w->queue) : status;
}

static int time_kinds(struct work *w, const struct ceiling_plan *plan, ceiling_seen *seen,
                      void *user)
{
    int status = prepare(w);

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && status == 0; i++) {
        struct ceiling_result result = {.name = kinds[i].name, .ok = true};
        bool graph = kinds[i].call == call_graph;
        bool wanted = ceiling_wanted(plan, kinds[i].name);

        if (kinds[i].call == call_launch) /* stacks are taken of them */
            wanted = wanted || ceiling_wanted(plan, "record_stack");
        if (!wanted || (graph && !dev_info(w->dev)->graphs))
            continue;
        if (graph)
            status = make_graph(w);
        if (status == 0)
            status = time_calls(w, kinds[i].call, plan->quick ? 5 : CALLS / kinds[i].events,
                                &result.value);
        result.value /= kinds[i].events;
        if (status == 0)
            seen(user, &result);
    }
    return status;
}

int ceiling_calls(struct dev *dev, const struct ceiling_plan *plan, ceiling_seen *seen, void *user)
{
    struct work w = {.dev = dev};
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_t second;

    pthread_mutex_lock(&lock);
    if (pthread_create(&second, NULL, wait_for_end, &lock) != 0)
        return dev_fail(dev, "pthread_create", "no second thread");
    int status = time_kinds(&w, plan, seen, user);
    pthread_mutex_unlock(&lock);
    pthread_join(second, NULL);
    dev_graph_free(w.graph);
    dev_free(w.to);
    dev_free(w.from);
    dev_queue_destroy(w.queue);
    return status;
}
