/* Runs the ceilings' kernels and takes the best time of each: one table of what there is, and one
 * function for each way of measuring. A ceiling that a device does not have (no half precision, no
 * tensor cores) is told as such and the rest goes on.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ceiling/ceiling.h"
#include "kernels/ceiling/sustain.h"
#include "kernels/device/clock.h"
#include "kernels/stream/stream.h"

#define ROUNDS 7
#define GROUPS_PER_UNIT 8
#define REST_MS 400 /* before arithmetic: what was sustained before lowered the clock */
#define FIRST_ROUNDS (CEILING_GROUP_QUADS / CEILING_CACHE_QUADS) /* the least, and the step */

struct bench {
    struct dev *dev;
    struct dev_queue *queue;
    const struct ceiling_plan *plan;
    struct dev_buffer *out;
    uint64_t target_ns; /* that a measured launch is to take */
};

struct row {
    const char *name;
    int (*run)(struct bench *bench, const struct row *row, struct ceiling_result *result);
    const char *kernel;
    /* CUDA_TENSOR: in the tensor module */
    enum { ANYWHERE, WITH_HALF, WITH_PEERS, CUDA, CUDA_TENSOR } where;
};

/* ---- one launch, many times ------------------------------------------------------------------ */

static int timed(struct bench *bench, struct dev_kernel *kernel, struct dev_grid grid,
                 const struct dev_arg *args, size_t count, uint64_t *ns)
{
    struct dev_event *event = NULL;
    int result = dev_launch(bench->queue, kernel, grid, args, count, &event);

    if (result == 0)
        result = dev_event_wait(event);
    if (result == 0)
        result = dev_event_duration_ns(event, ns);
    dev_event_release(event);
    return result;
}

static int best_of(struct bench *bench, struct dev_kernel *kernel, struct dev_grid grid,
                   const struct dev_arg *args, size_t count, uint64_t *best_ns)
{
    int result = 0;

    *best_ns = UINT64_MAX;
    for (int i = 0; i < ROUNDS && result == 0; i++) {
        uint64_t ns = 0;

        result = timed(bench, kernel, grid, args, count, &ns);
        if (ns > 0 && ns < *best_ns)
            *best_ns = ns;
    }
    return result == 0 && *best_ns == UINT64_MAX ? -1 : result;
}

static double per_second(double work, uint64_t ns)
{
    return work / ((double)ns * 1e-9);
}

/* Fills the device; a group is one item where a compute unit is a core. */
static struct dev_grid full_grid(const struct bench *bench)
{
    const struct dev_info *info = dev_info(bench->dev);

    return (struct dev_grid){.groups = info->compute_units * GROUPS_PER_UNIT,
                             .group_items = info->is_cpu ? 1 : CEILING_GROUP_ITEMS};
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Much more than any cache holds, and little enough to be there: 4 GiB on a GPU, 128 MiB on a CPU,
 * whose caches are small and whose memory others use. */
static size_t array_bytes(const struct bench *bench)
{
    const struct dev_info *info = dev_info(bench->dev);
    size_t most = info->is_cpu ? (size_t)128 << 20 : (size_t)4 << 30;
    size_t bytes = info->global_bytes / 8 < most ? info->global_bytes / 8 : most;

    if (bench->plan->quick && bytes > (size_t)4 << 20)
        bytes = (size_t)4 << 20;
    return bytes - bytes % (1 << 20);
}

static int run_copy(struct bench *bench, const struct row *row, struct ceiling_result *result)
{
    size_t bytes = array_bytes(bench);
    double ways[STREAM_COPIES];
    enum stream_copy best = 0;
    int status = stream_copies(bench->dev, bench->queue, bytes, ways);

    (void)row;
    for (enum stream_copy way = 1; way < STREAM_COPIES; way++)
        if (ways[way] > ways[best])
            best = way;
    result->value = ways[best];
    snprintf(result->how, sizeof result->how, "the best of several: %s, %zu MiB",
             stream_copy_text(best), bytes >> 20);
    return status;
}

static int run_pass(struct bench *bench, const struct row *row, struct ceiling_result *result)
{
    size_t bytes = array_bytes(bench);
    uint32_t quads = (uint32_t)(bytes / 16);
    bool triad = strcmp(row->kernel, "ceiling_triad") == 0;
    int arrays = triad ? 3 : 1;
    struct dev_buffer *array[3] = {NULL};
    struct dev_kernel *kernel;
    uint64_t ns = 0;
    int status = dev_kernel(bench->dev, &ceiling_module, row->kernel, &kernel);

    for (int i = 0; i < arrays && status == 0; i++) {
        status = dev_alloc(bench->dev, bytes, &array[i]);
        if (status == 0)
            status = dev_fill(bench->queue, array[i], 1, NULL);
    }
    if (status == 0 && triad) {
        const struct dev_arg args[] = {dev_arg_buffer(array[0]), dev_arg_buffer(array[1]),
                                       dev_arg_buffer(array[2]), dev_arg_u32(quads),
                                       dev_arg_f32(0.5f)};
        status = best_of(bench, kernel, dev_grid_for(quads, CEILING_GROUP_ITEMS), args, 5, &ns);
    } else if (status == 0) {
        const struct dev_arg args[] = {dev_arg_buffer(array[0]), dev_arg_buffer(bench->out),
                                       dev_arg_u32(quads)};
        struct dev_grid grid = dev_grid_for(quads, CEILING_GROUP_QUADS);
        grid.group_items = full_grid(bench).group_items;
        status = best_of(bench, kernel, grid, args, 3, &ns);
    }
    for (int i = 0; i < arrays; i++)
        dev_free(array[i]);
    if (status == 0)
        result->value = per_second((double)bytes * arrays, ns);
    snprintf(result->how, sizeof result->how, "16 bytes an item, %d x %zu MiB", arrays,
             bytes >> 20);
    return status;
}

/* ---- kernels that repeat themselves ---------------------------------------------------------- */

/* Finds out how many rounds take the time that a launch is to take, with runs that double. */
static int calibrate(struct bench *bench, struct dev_kernel *kernel, struct dev_grid grid,
                     struct dev_arg *args, size_t count, struct dev_arg *rounds)
{
    uint64_t ns = 0;

    rounds->value.u32 = FIRST_ROUNDS;
    for (;;) {
        if (timed(bench, kernel, grid, args, count, &ns) != 0)
            return -1;
        if (ns >= bench->target_ns / 4 || rounds->value.u32 >= 1u << 28)
            break;
        rounds->value.u32 *= 2;
    }
    double scaled = (double)rounds->value.u32 * (double)bench->target_ns / (double)(ns ? ns : 1);
    if (scaled > rounds->value.u32)
        rounds->value.u32 =
            scaled < 1e9 ? (uint32_t)scaled / FIRST_ROUNDS * FIRST_ROUNDS : 1u << 30;
    return 0;
}

struct launch {
    struct dev_kernel *kernel;
    struct dev_grid grid;
    const struct dev_arg *args;
    size_t count;
};

static int enqueue(void *context, struct dev_queue *queue, struct dev_event **event)
{
    const struct launch *l = context;

    return dev_launch(queue, l->kernel, l->grid, l->args, l->count, event);
}

/* Not on a processor: a second of all its cores is much to ask for what others would spoil. */
static void run_on(struct bench *bench, struct launch launch, uint64_t best_ns,
                   struct ceiling_result *result)
{
    double mean_ns;

    if (bench->plan->quick || dev_info(bench->dev)->is_cpu)
        return;
    if (sustain(bench->queue, enqueue, &launch, best_ns, &mean_ns) == 0)
        result->sustained = result->value * (double)best_ns / mean_ns;
}

/* The last member of `args` is the number of rounds. */
static int run_rounds(struct bench *bench, struct dev_kernel *kernel, struct dev_grid grid,
                      struct dev_arg *args, size_t count, struct ceiling_result *result,
                      uint64_t *best_ns)
{
    static const char *const paths[CEILING_PATHS] = {"chains", "mma.sync", "wgmma"};
    uint32_t told[CEILING_OUT_BYTES / 4] = {0};

    if (calibrate(bench, kernel, grid, args, count, &args[count - 1]) != 0 ||
        dev_read(bench->queue, bench->out, 0, told, sizeof told, DEV_BLOCKING, NULL) != 0)
        return -1;
    uint32_t path = told[CEILING_OUT_PATH], arch = dev_info(bench->dev)->arch;
    if (path >= CEILING_PATHS || told[CEILING_OUT_WORK] == 0)
        return dev_fail(bench->dev, result->name, "this device has none");
    if (path == CEILING_PATH_MMA && (arch == 90 || arch / 10 == 10) &&
        strcmp(result->name, "tensor_fp64") != 0)
        return dev_fail(bench->dev, result->name, "%s",
                        arch == 90 ? "built without code for sm_90a, which alone has its rate"
                                   : "the rate of this device needs tcgen05, which is not here");
    if (best_of(bench, kernel, grid, args, count, best_ns) != 0)
        return -1;
    result->value = per_second(
        (double)told[CEILING_OUT_WORK] * grid.groups * args[count - 1].value.u32, *best_ns);
    snprintf(result->how, sizeof result->how, "%s, %u groups of %u", paths[path], grid.groups,
             grid.group_items);
    return 0;
}

static int run_chains(struct bench *bench, const struct row *row, struct ceiling_result *result)
{
    struct dev_kernel *kernel;
    struct dev_arg args[] = {dev_arg_buffer(bench->out), dev_arg_u32(1)};
    const struct dev_module *module =
        row->where == CUDA_TENSOR ? &ceiling_tensor_module : &ceiling_module;
    uint64_t best_ns;

    if (dev_kernel(bench->dev, module, row->kernel, &kernel) != 0)
        return -1;
    if (!bench->plan->quick && !dev_info(bench->dev)->is_cpu)
        sustain_rest(REST_MS);
    if (run_rounds(bench, kernel, full_grid(bench), args, 2, result, &best_ns) != 0)
        return -1;
    if (strcmp(row->name, "shared") != 0)
        run_on(bench, (struct launch){kernel, full_grid(bench), args, 2}, best_ns, result);
    return 0;
}

/* A quarter of the cache, so that it stays there whatever else goes through it. */
static int run_cache(struct bench *bench, const struct row *row, struct ceiling_result *result)
{
    size_t cache = dev_info(bench->dev)->cache_bytes, bytes = 1 << 16;
    struct dev_buffer *array = NULL;
    struct dev_kernel *kernel;
    uint64_t best_ns;

    if (cache < 4 * bytes)
        return dev_fail(bench->dev, row->name, "the size of the cache is not known");
    while (2 * bytes <= cache / 4)
        bytes *= 2;
    int status = dev_kernel(bench->dev, &ceiling_module, row->kernel, &kernel);
    if (status == 0)
        status = dev_alloc(bench->dev, bytes, &array);
    if (status == 0)
        status = dev_fill(bench->queue, array, 1, NULL);
    if (status == 0) {
        struct dev_arg args[] = {dev_arg_buffer(array), dev_arg_buffer(bench->out),
                                 dev_arg_u32((uint32_t)(bytes / 16)), dev_arg_u32(1)};
        status = run_rounds(bench, kernel, full_grid(bench), args, 4, result, &best_ns);
    }
    dev_free(array);
    snprintf(result->how, sizeof result->how, "%zu KiB of %zu, read again and again", bytes >> 10,
             cache >> 10);
    return status;
}

/* ---- host and device ------------------------------------------------------------------------- */

/* Pinned copies by the device's clock, pageable ones by the host's: the driver stages them. */
static int copy_once(struct bench *bench, bool to_device, bool pinned, struct dev_buffer *buffer,
                     void *host, size_t bytes, uint64_t *ns)
{
    enum dev_sync sync = pinned ? DEV_ASYNC : DEV_BLOCKING;
    struct dev_event *event = NULL;
    uint64_t start = now_ns();
    int status = to_device ? dev_write(bench->queue, buffer, 0, host, bytes, sync, &event)
                           : dev_read(bench->queue, buffer, 0, host, bytes, sync, &event);

    if (status == 0)
        status = dev_event_wait(event);
    *ns = now_ns() - start;
    if (status == 0 && pinned)
        status = dev_event_duration_ns(event, ns);
    dev_event_release(event);
    return status;
}

static int run_transfer(struct bench *bench, const struct row *row, struct ceiling_result *result)
{
    bool to_device = strncmp(row->name, "htod", 4) == 0, pinned = strstr(row->name, "pinned");
    size_t bytes = (size_t)(bench->plan->quick ? 1 : 256) << 20;
    struct dev_buffer *buffer = NULL;
    struct dev_host *locked = NULL;
    void *pageable = NULL, *host = NULL;
    uint64_t best_ns = UINT64_MAX;
    int status = dev_alloc(bench->dev, bytes, &buffer);

    if (status == 0)
        status = dev_fill(bench->queue, buffer, 1, NULL);
    if (status == 0 && pinned) {
        status = dev_alloc_host(bench->dev, bytes, &locked);
        host = status == 0 ? dev_host_pointer(locked) : NULL;
    } else if (status == 0) {
        host = pageable = malloc(bytes);
        status = host ? 0 : dev_fail(bench->dev, row->name, "out of memory");
    }
    if (status == 0)
        memset(host, 1, bytes);
    for (int i = 0; i < ROUNDS && status == 0; i++) {
        uint64_t ns = 0;

        status = copy_once(bench, to_device, pinned, buffer, host, bytes, &ns);
        if (ns > 0 && ns < best_ns)
            best_ns = ns;
    }
    dev_free_host(locked);
    dev_free(buffer);
    free(pageable);
    result->value = per_second((double)bytes, best_ns);
    snprintf(result->how, sizeof result->how, "%zu MiB at once", bytes >> 20);
    return status;
}

/* ---- device and device ----------------------------------------------------------------------- */

/* To the nearest one: what links two of them, not what links all. */
static int run_peer(struct bench *bench, const struct row *row, struct ceiling_result *result)
{
    size_t bytes = (size_t)(bench->plan->quick ? 1 : 256) << 20;
    struct dev_peer best = {.best_ns = UINT64_MAX};
    int status = 0;

    for (uint32_t i = 0; i < dev_peers(bench->dev) && status == 0; i++) {
        struct dev_peer peer;

        status = dev_peer_copy(bench->queue, i, bytes, ROUNDS, &peer);
        if (status == 0 && peer.best_ns < best.best_ns)
            best = peer;
    }
    if (status == 0 && best.best_ns == UINT64_MAX)
        return dev_fail(bench->dev, row->name, "there is no other device");
    result->value = per_second((double)bytes, best.best_ns);
    snprintf(result->how, sizeof result->how, "%zu MiB at once to device %u, %s", bytes >> 20,
             best.ordinal, best.direct ? "directly" : "by way of the host");
    return status;
}

/* ---- launches -------------------------------------------------------------------------------- */

#define LAUNCHES 512 /* fewer than a queue holds, so that none waits for room */

static int run_launch(struct bench *bench, const struct row *row, struct ceiling_result *result)
{
    bool latency = strcmp(row->name, "launch_latency") == 0;
    uint32_t launches = latency ? 1 : LAUNCHES;
    const struct dev_arg args[] = {dev_arg_buffer(bench->out)};
    const struct dev_grid grid = {1, 1};
    struct dev_kernel *kernel;
    uint64_t best_ns = UINT64_MAX;
    int status = dev_kernel(bench->dev, &ceiling_module, row->kernel, &kernel);

    for (int i = 0; i < 10 * ROUNDS && status == 0; i++) {
        uint64_t start = now_ns(), ns;

        for (uint32_t j = 0; j < launches && status == 0; j++)
            status = dev_launch(bench->queue, kernel, grid, args, 1, NULL);
        ns = now_ns() - start;
        if (status == 0)
            status = dev_queue_finish(bench->queue);
        if (latency)
            ns = now_ns() - start;
        if (ns < best_ns)
            best_ns = ns;
    }
    result->value = (double)best_ns / launches;
    snprintf(result->how, sizeof result->how, "empty kernel, %s",
             latency ? "launched and waited for" : "launched in a row");
    return status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static const struct row rows[] = {
    {"dram_copy", run_copy, NULL, ANYWHERE},
    {"dram_read", run_pass, "ceiling_read", ANYWHERE},
    {"dram_triad", run_pass, "ceiling_triad", ANYWHERE},
    {"l2_read", run_cache, "ceiling_cache", ANYWHERE},
    {"shared", run_chains, "ceiling_shared", CUDA},
    {"fp64", run_chains, "ceiling_fp64", ANYWHERE},
    {"fp32", run_chains, "ceiling_fp32", ANYWHERE},
    {"fp16", run_chains, "ceiling_fp16", WITH_HALF},
    {"tensor_fp64", run_chains, "ceiling_tensor_fp64", CUDA_TENSOR},
    {"tensor_tf32", run_chains, "ceiling_tensor_tf32", CUDA_TENSOR},
    {"tensor_fp16", run_chains, "ceiling_tensor_fp16", CUDA_TENSOR},
    {"tensor_bf16", run_chains, "ceiling_tensor_bf16", CUDA_TENSOR},
    {"tensor_fp8", run_chains, "ceiling_tensor_fp8", CUDA_TENSOR},
    {"htod_pinned", run_transfer, NULL, ANYWHERE},
    {"dtoh_pinned", run_transfer, NULL, ANYWHERE},
    {"htod_pageable", run_transfer, NULL, ANYWHERE},
    {"dtoh_pageable", run_transfer, NULL, ANYWHERE},
    {"peer_copy", run_peer, NULL, WITH_PEERS},
    {"launch", run_launch, "ceiling_empty", ANYWHERE},
    {"launch_latency", run_launch, "ceiling_empty", ANYWHERE},
};

/* NULL: the device may have it. */
static const char *lacks(const struct dev *dev, const struct row *row)
{
    const struct dev_info *info = dev_info(dev);

    if (row->where == WITH_HALF && (!info->fp16 || info->backend == DEV_CPU))
        return "no arithmetic in half precision here";
    if (row->where == WITH_PEERS && dev_peers(dev) == 0)
        return "no other device to copy to";
    if (row->where >= CUDA && info->backend != DEV_CUDA)
        return "reached through CUDA only";
    return NULL;
}

static void measure_row(struct bench *bench, const struct row *row, ceiling_seen *seen, void *user)
{
    struct ceiling_result result = {.name = row->name};

    dev_clear_error(bench->dev);
    const char *why = lacks(bench->dev, row);
    if (why && !bench->plan->only)
        return; /* nobody expects it */
    result.ok = !why && row->run(bench, row, &result) == 0;
    if (why)
        snprintf(result.how, sizeof result.how, "%s: %s", row->name, why);
    else if (!result.ok)
        snprintf(result.how, sizeof result.how, "%.*s", (int)sizeof result.how - 1,
                 dev_error_text(bench->dev));
    seen(user, &result);
}

int ceiling_copies(struct dev *dev, const struct ceiling_plan *plan, ceiling_seen *seen, void *user)
{
    struct bench bench = {.dev = dev, .plan = plan};
    double ways[STREAM_COPIES];
    int status = dev_queue_create(dev, &bench.queue);

    if (status == 0)
        status = stream_copies(dev, bench.queue, array_bytes(&bench), ways);
    for (enum stream_copy way = 0; way < STREAM_COPIES && status == 0; way++) {
        struct ceiling_result result = {.name = "dram_copy", .value = ways[way], .ok = true};

        snprintf(result.how, sizeof result.how, "%s", stream_copy_text(way));
        if (!isnan(ways[way]))
            seen(user, &result);
    }
    dev_queue_destroy(bench.queue);
    return status;
}

int ceiling_measure(struct dev *dev, const struct ceiling_plan *plan, ceiling_seen *seen,
                    void *user)
{
    struct bench bench = {.dev = dev, .plan = plan};

    bench.target_ns = plan->quick ? 1000000 : dev_info(dev)->is_cpu ? 50000000 : 20000000;
    int status = dev_queue_create(dev, &bench.queue);
    if (status == 0)
        status = dev_alloc(dev, CEILING_OUT_BYTES, &bench.out);
    if (status == 0)
        status = dev_fill(bench.queue, bench.out, 0, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && status == 0; i++)
        if (ceiling_wanted(plan, rows[i].name))
            measure_row(&bench, &rows[i], seen, user);
    dev_free(bench.out);
    dev_queue_destroy(bench.queue);
    return status;
}
