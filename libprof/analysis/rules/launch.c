/* Rules about launching: kernels so short, or so small, that starting them is the work. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "libprof/analysis/rules/judge.h"
#include "libprof/analysis/capture.h"
#include "libprof/base/format.h"
#include "libprof/gpu/names.h"

/* What a node of a graph takes to start where launching singly is replaced; 0.5 to 1 us are seen.
 */
#define GRAPH_NODE_NS 600
#define SHORT_NS 10000
#define ROW 8 /* launches of one kernel in a row that could be one */
#define LONG_NS 100000

struct launches {
    int64_t kernels, in_graphs, sum_ns, call_ns;
    int64_t idle[PROF_SLICES];
    double median_ns, launch_ns; /* mean duration by launches; mean of a launching call */
    struct prof_spots spots;
};

/* Median over launches, from the shapes' means: shapes are narrow. */
struct mean {
    double ns;
    int64_t count;
};

PROF_ORDER(by_ns, struct mean, PROF_ASCENDING(ns))

static double weighted_median(struct mean *means, size_t count, int64_t total)
{
    int64_t seen = 0;
    if (count)
        qsort(means, count, sizeof *means, by_ns);
    for (size_t i = 0; i < count; i++) {
        seen += means[i].count;
        if (2 * seen >= total)
            return means[i].ns;
    }
    return 0;
}

static bool sum_launches(struct prof_judge *judge, struct launches *l)
{
    PROF_ARRAY(struct mean) means = {0};
    const struct prof_shape *shape;
    *l = (struct launches){0};
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (!prof_is_kernel(shape))
            continue;
        struct mean *mean = prof_array_add(&means);
        if (!mean) {
            judge->failed = true;
            break;
        }
        *mean = (struct mean){(double)shape->sum_ns / (double)shape->count, shape->count};
        l->kernels += shape->count;
        l->in_graphs += shape->in_graph ? shape->count : 0;
        l->sum_ns += shape->sum_ns;
        l->call_ns += shape->call_ns;
        for (int i = PROF_SLICE_FIRST_IDLE; i < PROF_SLICES; i++)
            l->idle[i] += shape->idle_ns[i];
    }
    l->median_ns = weighted_median(means.data, means.count, l->kernels);
    l->launch_ns = l->kernels ? (double)l->call_ns / (double)l->kernels : 0;
    prof_array_free(&means);
    return l->kernels > 0;
}

/* Of the idle time before kernels, what launching makes and not the device's own way from one to
 * the next, which a faster host would not shorten: it stands in front of those that came late too.
 * *queued_ns: the part of it in front of work that was queued. */
static int64_t launching_idle(const struct prof_judge *judge, const struct launches *l,
                              int64_t *queued_ns)
{
    int64_t own = judge->device->dispatch_floor_ns * l->kernels;
    int64_t queued = l->idle[PROF_SLICE_DISPATCH] - own;
    int64_t all = l->idle[PROF_SLICE_LAUNCH] + queued;
    *queued_ns = queued > 0 ? queued : 0;
    return all > 0 ? all : 0;
}

/* ---- many launches of one kernel ------------------------------------------------------------- */

/* How many blocks of a kernel the device holds at once; one a unit where that is not known. */
static int64_t room_for(const struct prof_judge *judge, const struct prof_shape *shape)
{
    const struct prof_device *device = judge->device->device;
    struct prof_occupancy occupancy;
    int64_t units = device && device->units > 0 ? device->units : 0;
    return prof_occupancy_of(device, shape->config, &occupancy) ? units * occupancy.blocks : units;
}

/* Launches of a kernel one after the other, in the mean; 0 where they cannot be gathered. Two
 * kernels in turn may well depend on each other: they are a row where this one fills half of the
 * device at most. */
static double launch_row_length(const struct prof_judge *judge, const struct prof_shape *shape)
{
    if (shape->kind != PROF_OP_KERNEL || shape->in_graph)
        return 0;
    const struct prof_device *device = judge->device->device;
    int64_t blocks = prof_config_blocks(shape->config);
    bool small = device && blocks && 2 * blocks <= device->units;
    int64_t rows = shape->count - shape->runs - (small ? shape->turns : 0);
    return rows > 0 ? (double)shape->count / (double)rows : (double)shape->count;
}

/* By what part the launches of a row become shorter as one launch of as many blocks; negative where
 * there is no row to gather. */
static double gathered_gain(const struct prof_judge *judge, const struct prof_shape *shape,
                            int64_t start_ns)
{
    double row = launch_row_length(judge, shape);
    if (row < ROW)
        return -1;
    int64_t blocks = prof_config_blocks(shape->config), room = room_for(judge, shape);
    double share = blocks && blocks < room ? (double)blocks / (double)room : 1; /* of the device */
    double gain = row * share <= 1 ? 1 - 1 / row : 1 - share;
    double mean = (double)shape->sum_ns / (double)shape->count;
    if (mean > LONG_NS && gain <= 0)
        return -1; /* long and filling the device: nothing to gather */
    if (mean > SHORT_NS)
        return gain;
    double start = fmin((double)start_ns / fmax(mean, 1), 1);
    return fmax(gain, start * (1 - 1 / row)); /* all but one need not start */
}

bool prof_is_unbatched(const struct prof_judge *judge, const struct prof_shape *shape)
{
    return launch_row_length(judge, shape) >= ROW;
}

static void unbatched_kernels(struct prof_judge *judge)
{
    const struct prof_shape *shape;
    int64_t kernels = 0, sum_ns = 0, most = 0, idle[PROF_SLICES] = {0};
    int64_t start_ns = prof_kernel_start_ns(judge, PROF_MOST_START_NS);
    const struct prof_shape *worst = NULL;
    struct prof_spots spots = {0};
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (gathered_gain(judge, shape, start_ns) < 0)
            continue;
        kernels += shape->count;
        sum_ns += shape->sum_ns;
        for (int i = PROF_SLICE_FIRST_IDLE; i < PROF_SLICES; i++)
            idle[i] += shape->idle_ns[i]; /* of the first too: the host is ahead with so few */
        prof_spots_add(&spots, prof_longest_spot(judge, shape));
        if (!worst || shape->sum_ns > worst->sum_ns)
            worst = shape;
        most = shape->longest_run > most ? shape->longest_run : most;
    }
    if (!worst)
        return;
    struct prof_draft *draft = prof_found(judge, 0.7);
    prof_numbers(draft, {"launches", (double)kernels}, {"longest_row", (double)most},
                 {"mean_kernel_ns", (double)worst->sum_ns / (double)worst->count},
                 {"kernel_ns", (double)sum_ns});
    int64_t blocks = prof_config_blocks(worst->config); /* 0 = not known */
    if (blocks)
        prof_numbers(draft, {"blocks", (double)blocks});
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));)
        prof_claim_kernel(judge, draft, shape, gathered_gain(judge, shape, start_ns));
    prof_claim(judge, draft, "idle_launch_ns", PROF_SLICE_LAUNCH, idle[PROF_SLICE_LAUNCH]);
    prof_claim(judge, draft, "idle_queued_ns", PROF_SLICE_DISPATCH, idle[PROF_SLICE_DISPATCH]);
    prof_claim(judge, draft, "idle_host_ns", PROF_SLICE_HOST, idle[PROF_SLICE_HOST]);
    prof_say(draft,
             "{launches|launch|launches} of the same kernel one after the other, up to "
             "{longest_row} in a row (%s: ",
             prof_short_name(prof_shape_name(worst)).text);
    if (blocks)
        prof_say(draft, "{blocks|block|blocks}, ");
    prof_say(draft, "{mean_kernel_ns} each): one launch could do the work of a row.");
    prof_places(judge, draft, &spots);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Do all kernels come equally often in each step? A graph replays what is always the same. */
static bool is_steady(const struct prof_judge *judge)
{
    const struct prof_shape *shape;
    int64_t steady = 0, all = 0, steps = prof_steps(judge);
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (!prof_is_kernel(shape))
            continue;
        all += shape->count;
        int64_t per_step = (shape->count + steps / 2) / steps,
                off = shape->count - per_step * steps;
        if (per_step && (off < 0 ? -off : off) <= (per_step > steps / 10 ? per_step : steps / 10))
            steady += shape->count;
    }
    return steady * 10 >= all * 9;
}

/* Of the worst places those in front of kernels. */
static void place_kernels(struct prof_judge *judge, struct prof_draft *draft,
                          const struct prof_spots *spots)
{
    for (int i = 0; i < PROF_PLACES; i++)
        if (spots->worst[i].duration &&
            prof_is_kernel(&judge->facts->shapes.data[spots->worst[i].shape]))
            prof_place(judge, draft, &spots->worst[i]);
}

/* Launched ahead, a kernel starts beside the end of the one before. What that is of its time is not
 * seen; no more than the shortest kernel takes. */
static void claim_starts(struct prof_judge *judge, struct prof_draft *draft)
{
    const struct prof_shape *shape;
    int64_t start = prof_kernel_start_ns(judge, PROF_MOST_START_NS);
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        int64_t mean = shape->sum_ns / shape->count, most = mean - GRAPH_NODE_NS;
        if (prof_is_kernel(shape) && most > 0 && start > 0)
            prof_claim_kernel(judge, draft, shape,
                              (double)(start < most ? start : most) / (double)mean);
    }
}

/* The way of an interpreter from one launch to the next goes with the launches. */
static int64_t interpreting_ns(const struct prof_judge *judge)
{
    return prof_is_python(judge) ? judge->device->brief_ns : 0;
}

/* `idle_ns` is not needed, `queued_ns` of it between queued kernels. */
static void claim_launching(struct prof_judge *judge, struct prof_draft *draft,
                            const struct launches *l, int64_t idle_ns, int64_t queued_ns)
{
    int64_t nodes = GRAPH_NODE_NS * l->kernels - judge->device->kernel_sum_ns;
    double part = idle_ns > 0 && nodes > 0 ? 1 - (double)nodes / (double)idle_ns : 1;
    part = part < 0 ? 0 : part;
    prof_numbers(draft, {"kernels", (double)l->kernels}, {"median_kernel_ns", l->median_ns},
                 {"launch_call_ns", l->launch_ns > 0 ? l->launch_ns : NAN});
    prof_claim(judge, draft, "idle_launch_ns", PROF_SLICE_LAUNCH,
               (int64_t)((double)(idle_ns - queued_ns) * part));
    prof_claim(judge, draft, "idle_queued_ns", PROF_SLICE_DISPATCH,
               (int64_t)((double)queued_ns * part));
    if (interpreting_ns(judge))
        prof_claim(judge, draft, "python_ns", PROF_SLICE_HOST, interpreting_ns(judge));
    claim_starts(judge, draft);
    prof_mend(draft, (struct prof_edit){.free_launch = true,
                                        .launching_ns = prof_is_python(judge) ? PROF_BRIEF_NS : 0});
    place_kernels(judge, draft, &judge->device->spots[PROF_SLICE_LAUNCH]);
    place_kernels(judge, draft, &judge->device->spots[PROF_SLICE_DISPATCH]);
}

/* Are most launches rows of one product of matrices, or of one and another kernel in turn?
 * Libraries have a call for all of a row, which leaves nothing for a graph to launch. */
static bool is_rows_of_products(const struct prof_judge *judge, const struct launches *l)
{
    const struct prof_shape *shape;
    int64_t in_rows = 0, products = 0;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (!prof_is_unbatched(judge, shape))
            continue;
        in_rows += shape->count;
        products += prof_name_is_matmul(prof_shape_name(shape)) ? shape->count : 0;
    }
    return 2 * in_rows > l->kernels && 3 * products >= in_rows;
}

/* Could a step be one graph, its many short kernels being the same each time? */
static bool is_graph(const struct prof_judge *judge, const struct launches *l)
{
    const struct prof_call_totals *calls = judge->device->calls;
    int64_t steps = prof_steps(judge);
    int64_t waits = calls[WIRE_CLASS_SYNC].count + calls[WIRE_CLASS_TRANSFER].count;
    return prof_is_cuda(judge) && steps >= 3 && l->kernels / steps >= 10 &&
           l->in_graphs * 2 <= l->kernels && waits <= 2 * steps + 2 &&
           /* no graph waits for the host */
           prof_scalar_readbacks(judge).count < prof_max(2 * steps, 1) &&
           !is_rows_of_products(judge, l) && !calls[WIRE_CLASS_ALLOC].count &&
           l->median_ns <= 2 * SHORT_NS && is_steady(judge);
}

/* A call that takes longer than a driver needs to start something was held up by something else, as
 * where other threads use the processors: no kernel is short beside it. */
static bool is_launch_bound(const struct prof_judge *judge, const struct launches *l)
{
    double call_ns = l->launch_ns - prof_recorded_call_ns(judge);
    double least = fmax(SHORT_NS, 2 * fmin(call_ns, PROF_LONG_CALL_NS));
    int64_t queued, idle = launching_idle(judge, l, &queued);
    return l->in_graphs * 2 <= l->kernels && !is_graph(judge, l) &&
           !is_rows_of_products(judge, l) && l->kernels >= 20 && l->median_ns < least && idle > 0;
}

int64_t prof_interpreting_ns(struct prof_judge *judge)
{
    struct launches l;
    bool told = sum_launches(judge, &l) && (is_graph(judge, &l) || is_launch_bound(judge, &l) ||
                                            is_rows_of_products(judge, &l));
    return told ? interpreting_ns(judge) : 0;
}

static void graph_candidate(struct prof_judge *judge)
{
    struct launches l;
    if (!prof_is_cuda(judge)) {
        prof_abstain(judge, "CUDA only");
        return;
    }
    if (!sum_launches(judge, &l) || !is_graph(judge, &l) || prof_misses_work(judge))
        return;
    struct prof_draft *draft = prof_found(judge, 0.8);
    /* All of it: nodes of a graph follow each other within 0.3 us. */
    int64_t queued = l.idle[PROF_SLICE_DISPATCH], steps = prof_steps(judge);
    claim_launching(judge, draft, &l, l.idle[PROF_SLICE_LAUNCH] + queued, queued);
    prof_numbers(draft, {"kernels_per_iteration", (double)((l.kernels + steps / 2) / steps)});
    prof_say(draft,
             "Every iteration launches the same {kernels_per_iteration|kernel|kernels} without "
             "waiting in between; the median kernel takes {median_kernel_ns}, the call that "
             "launches one {launch_call_ns}: a graph would launch them with one call");
    prof_say(draft, interpreting_ns(judge) ? ", without {python_ns} of Python." : ".");
}

static void launch_bound(struct prof_judge *judge)
{
    struct launches l;
    if (!sum_launches(judge, &l) || !is_launch_bound(judge, &l) || prof_misses_work(judge))
        return;
    int64_t queued, idle = launching_idle(judge, &l, &queued);
    struct prof_draft *draft = prof_found(judge, 0.7);
    claim_launching(judge, draft, &l, idle, queued);
    prof_numbers(draft, {"idle_ns", (double)idle}, {"idle_share", prof_of_window(judge, idle)});
    prof_say(draft, "{kernels|kernel|kernels} of {median_kernel_ns} (median), and {launch_call_ns} "
                    "for the call that launches one: the device ends each before the next arrives "
                    "and is idle {idle_ns}, {idle_share} of the time");
    prof_say(draft,
             interpreting_ns(judge) ? ", and {python_ns} while Python gets to the next one." : ".");
}

/* ---- registry -------------------------------------------------------------------------------- */

const struct prof_rule prof_rules_launch[] = {
    {.page = {.id = "graph-candidate",
              .title = "The same kernels in every step, launched one by one",
              .fires =
                  "On CUDA: ten kernels a step or more, equally often in each, 20 us or less in "
                  "the median, with at most two waits a step, no allocation, not in graphs.",
              .why = "The host launches each kernel anew, with the same arguments; a graph is "
                     "launched once for all of them.",
              .fix = "Capture one iteration into a graph, and launch that instead of "
                     "its kernels.",
              .cuda = "cudaStreamBeginCapture and cudaStreamEndCapture around the "
                      "iteration and cudaGraphInstantiate, once; then cudaGraphLaunch; "
                      "cudaGraphExecKernelNodeSetParams where an argument changes.",
              .opencl = NULL,
              .pytorch = "torch.compile(mode=\"reduce-overhead\"), "
                         "torch.cuda.make_graphed_callables(module, args), or "
                         "torch.cuda.graph() around the step; a larger batch does more with "
                         "as many launches.",
              .jax = "jax.jit around the whole step: XLA makes graphs of its kernels by itself; "
                     "jax.lax.scan or jax.lax.fori_loop in place of a Python loop runs many "
                     "steps in one call.",
              .bound = "Idle time between kernels that launching makes, less 0.6 us per node as "
                       "far as the kernels do not hide it, and of each kernel what starting it "
                       "takes: as long as the shortest one, 2 us at most. In Python also the "
                       "host's pauses below 500 us from kernel to kernel.",
              .limits = "Whether arguments and shapes stay the same is not seen, nor what Python "
                        "does between two kernels.",
              .needs = "kernels with their calls, and iterations"},
     .advice = PROF_ADVICE_LAUNCHES,
     .judge = graph_candidate},
    {.page =
         {.id = "launch-bound",
          .title = "Kernels are shorter than their launches",
          .fires =
              "Twenty kernels or more whose median is below 10 us or twice the launching "
              "call (of which 20 us count, and not what recording is likely to have added), and "
              "the device idle because of launching. Silent where "
              "graph-candidate says what to do about it.",
          .why = "The device finishes a kernel before the host has launched the next one.",
          .fix = "Launch fewer, larger kernels: fuse, batch, or launch an iteration "
                 "at once.",
          .cuda = "A CUDA graph of the iteration (cudaStreamBeginCapture, "
                  "cudaGraphLaunch); one kernel with a loop inside; programmatic "
                  "dependent launch "
                  "(cudaLaunchAttributeProgrammaticStreamSerialization).",
          .opencl = "Fuse kernels; a larger global_work_size; a queue with "
                    "CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE; clFlush right after "
                    "queueing.",
          .pytorch = "torch.compile(mode=\"reduce-overhead\"); a larger batch; fused "
                     "optimizers, as torch.optim.AdamW(..., fused=True).",
          .jax = "jax.jit around the whole step, the optimizer's update too; jax.lax.scan or "
                 "jax.lax.fori_loop in place of a Python loop; jax.vmap over a larger batch.",
          .bound =
              "Idle time between kernels that launching makes, less what the device takes from "
              "one kernel to the next where they are queued, and 0.6 us per kernel as far as "
              "the kernels do not hide it, and of each kernel what starting it takes: as long "
              "as the shortest one, 2 us at most. "
              "In Python also the host's pauses below 500 us from kernel to kernel.",
          .limits = "What recording the launches costs is part of it.",
          .needs = "kernels with their calls"},
     .advice = PROF_ADVICE_LAUNCHES,
     .judge = launch_bound},
    {.page =
         {.id = "unbatched-kernels",
          .title = "One kernel launched again and again on small pieces",
          .fires = "Rows of eight launches or more of one kernel with one configuration, no other "
                   "kernel and no end of a marked iteration in between, that are short (100 us) or "
                   "have fewer blocks than the device "
                   "holds at once; or of two in turn with blocks for half of its units at most.",
          .why = "Each launch fills a part of the device for a short time and pays for its start; "
                 "one launch over all pieces fills it once.",
          .fix = "Launch the kernel once, with a dimension of the grid that counts "
                 "the pieces.",
          .cuda = "blockIdx.z is the piece; for matrix products "
                  "cublasSgemmStridedBatched or cublasGemmGroupedBatchedEx.",
          .opencl = "get_global_id(2) is the piece: one clEnqueueNDRangeKernel with "
                    "work_dim 3.",
          .pytorch = "torch.stack the inputs and call the operator once: torch.bmm, "
                     "torch.vmap, torch._foreach_*.",
          .jax = "jax.vmap of the function over the stacked pieces; jax.lax.scan where a piece "
                 "needs the one before, both under jax.jit.",
          .bound = "The kernels' time x the part of the device that one launch leaves unused (by "
                   "the occupancy formula; of kernels shorter than 10 us at least what starting "
                   "them takes: as long as the shortest one, 2 us at most), and the idle time "
                   "before them, whatever the host does: "
                   "it is ahead of the device with a launch for each row.",
          .limits = "Launches that depend on each other (a time step after the other) cannot be "
                    "one. With OpenCL a launch with the arguments of one of the two before it "
                    "ends a row, as it works on what they left; other dependences are not seen. "
                    "Kernels that run side by side in streams are not counted as alone.",
          .needs = "kernels with their configuration"},
     .advice = PROF_ADVICE_LAUNCHES,
     .judge = unbatched_kernels},
    {.judge = NULL},
};
