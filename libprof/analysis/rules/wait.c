/* Rules about waiting: for the device where that is not needed, and of streams for each other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/rules/judge.h"
#include "libprof/analysis/capture.h"
#include "libprof/analysis/events.h"
#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "libprof/gpu/names.h"

/* ---- explicit waits -------------------------------------------------------------------------- */

#define SURE_WAITS 3.5 /* idle ones per iteration; three may be two in the next run */

static void sync_stall(struct prof_judge *judge)
{
    const struct prof_call_totals *calls = &judge->device->calls[WIRE_CLASS_SYNC];
    int64_t idle = judge->device->slice_ns[PROF_SLICE_SYNC];
    int64_t steps = prof_steps(judge) ? prof_steps(judge) : 1;
    /* A thread with several devices waits for each: what is avoidable, shows in how often this one
     * ran empty. That is a matter of time, the number of waits is not. */
    int64_t waits = calls->count, gaps = judge->device->awaited_gaps;
    gaps = gaps < waits ? gaps : waits;
    /* Waits for numbers that are read back are scalar-readback's. */
    struct prof_copies readbacks = prof_scalar_readbacks(judge);
    gaps -= readbacks.awaited;
    idle -= readbacks.after[PROF_SLICE_SYNC];
    if (gaps < 5 || gaps < 2 * steps || idle <= 0 || prof_misses_work(judge))
        return;
    double part = 1 - (double)steps / (double)gaps; /* one a step is needed to see the result */
    struct prof_draft *draft = prof_found(judge, 0.5);
    prof_numbers(draft, {"waits", (double)waits}, {"idle_waits", (double)gaps},
                 {"waited_ns", (double)calls->sum_ns}, {"idle_ns", (double)idle},
                 {"avoidable_share", part});
    prof_claim(judge, draft, "avoidable_idle_ns", PROF_SLICE_SYNC, (int64_t)((double)idle * part));
    /* The way into the next launch is hidden too when the queue never runs empty. */
    prof_claim(judge, draft, "idle_launch_ns", PROF_SLICE_LAUNCH,
               (int64_t)((double)judge->device->relaunch_ns * part));
    prof_say(draft, "The host waits for the device {waits|time|times}");
    prof_say_per_iteration(judge, draft, "waits_per_iteration", "waits");
    prof_say(draft,
             ", and {idle_waits|time|times} the device runs empty: it is idle {idle_ns} until the "
             "host launches again, {avoidable_share} of it avoidable with one wait per iteration.");
    if ((double)gaps < SURE_WAITS * (double)steps)
        draft->most = PROF_SEVERITY_INFO; /* in the next run it may be one */
    prof_mend(draft, (struct prof_edit){.one_wait_a_step = true});
    prof_places(judge, draft, &judge->device->spots[PROF_SLICE_SYNC]);
}

/* ---- streams side by side -------------------------------------------------------------------- */

#define STREAMS 64

struct stream_sum {
    uint32_t stream;
    int64_t ns;
};

/* The longest stream: no schedule is shorter. */
static int64_t longest_stream(const struct prof_judge *judge)
{
    const struct prof_facts *f = judge->facts;
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    struct stream_sum sums[STREAMS];
    size_t count = 0;
    int64_t longest = 0;
    while ((op = prof_facts_next_in_phase(f, &walk, &kind))) {
        size_t s = 0;
        if (kind != PROF_OP_KERNEL || !prof_facts_has(f, op->start) ||
            f->shapes.data[op->shape].device != judge->device_index)
            continue;
        while (s < count && sums[s].stream != op->stream)
            s++;
        if (s == STREAMS)
            continue;
        if (s == count)
            sums[count++] = (struct stream_sum){op->stream, 0};
        sums[s].ns += op->duration;
        longest = sums[s].ns > longest ? sums[s].ns : longest;
    }
    return longest;
}

/* How long the kernels take side by side at least: as long as the longest stream, or as they fill
 * the device. */
static int64_t side_by_side_ns(const struct prof_judge *judge, int64_t units)
{
    const struct prof_shape *shape;
    double filled = (double)prof_collective_ns(judge); /* they wait for ranks, not for a stream */
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        int64_t blocks = prof_config_most_blocks(shape->config);
        if (prof_is_kernel(shape))
            filled += (double)shape->sum_ns *
                      (blocks && blocks < units ? (double)blocks / (double)units : 1);
    }
    int64_t longest = longest_stream(judge);
    return longest > (int64_t)filled ? longest : (int64_t)filled;
}

static int64_t in_kernels_ns(const struct prof_judge *judge)
{
    const int64_t *slices = judge->device->slice_ns;
    return slices[PROF_SLICE_KERNEL] + slices[PROF_SLICE_BOTH];
}

/* ---- calls that wait without saying so ------------------------------------------------------- */

/* Calls to free or page-lock memory that took long: those wait for the whole device. */
static struct prof_call_totals hidden_waits(const struct prof_judge *judge)
{
    static const enum wire_class waits[] = {WIRE_CLASS_FREE, WIRE_CLASS_FREE_HOST,
                                            WIRE_CLASS_ALLOC_HOST};
    struct prof_call_totals found = {0};
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        const struct prof_call_totals *calls = &judge->device->calls[waits[i]];
        found.long_count += calls->long_count;
        found.long_ns = prof_add(found.long_ns, calls->long_ns);
        for (int k = 0; k < PROF_PLACES; k++)
            if (calls->spots.worst[k].duration >= PROF_LONG_CALL_NS)
                prof_spots_add(&found.spots, calls->spots.worst[k]);
    }
    return found;
}

/* Kernels in the legacy default stream beside others in streams that wait for it, of one process:
 * another program's streams have a default stream of their own. */
static bool mixes_default_stream(struct prof_judge *judge)
{
    enum { IN_DEFAULT = 1, IN_OTHERS = 2, BOTH = 3 };
    const struct prof_facts *f = judge->facts;
    struct prof_map found = {0}; /* process -> those */
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    bool mixes = false;
    while (!mixes && !judge->failed && (op = prof_facts_next_in_phase(f, &walk, &kind))) {
        const struct prof_stream *stream = prof_stream(f->capture, op->stream);
        if (kind != PROF_OP_KERNEL || !prof_facts_has(f, op->start) || !stream ||
            f->shapes.data[op->shape].device != judge->device_index)
            continue;
        const uint64_t *known = prof_map_get(&found, (uint64_t)stream->process);
        uint64_t now = (known ? *known : 0) | (stream->is_default      ? IN_DEFAULT
                                               : !stream->non_blocking ? IN_OTHERS
                                                                       : 0);
        mixes = now == BOTH;
        judge->failed = !prof_map_put(&found, (uint64_t)stream->process, now);
    }
    prof_map_free(&found);
    return mixes;
}

/* Their idle time, and that they do not run side by side. */
static void claim_waiting_streams(struct prof_judge *judge, struct prof_draft *draft)
{
    const struct prof_device *device = judge->device->device;
    prof_claim(judge, draft, "idle_dependency_ns", PROF_SLICE_DEPENDENCY,
               judge->device->slice_ns[PROF_SLICE_DEPENDENCY]);
    if (device && device->units > 0)
        prof_claim(judge, draft, "side_by_side_ns", PROF_SLICE_KERNEL,
                   in_kernels_ns(judge) - side_by_side_ns(judge, device->units));
}

static void implicit_sync(struct prof_judge *judge)
{
    if (!prof_is_cuda(judge)) {
        prof_abstain(judge, "CUDA only");
        return;
    }
    struct prof_call_totals found = hidden_waits(judge);
    bool mixes = mixes_default_stream(judge);
    if (found.long_count < 3 && !mixes)
        return;
    int64_t idle = judge->device->slice_ns[PROF_SLICE_ALLOC];
    struct prof_draft *draft = prof_found(judge, 0.5);
    prof_numbers(draft, {"calls", (double)found.long_count}, {"call_ns", (double)found.long_ns},
                 {"long_call_ns", PROF_LONG_CALL_NS});
    prof_number(draft, "default_stream", mixes, PROF_NUMBER_PLAIN);
    if (found.long_count >= 3) {
        prof_claim(judge, draft, "idle_ns", PROF_SLICE_ALLOC,
                   found.long_ns < idle ? found.long_ns : idle);
        prof_say(draft, "{calls|call|calls} to free or page-lock memory took more than "
                        "{long_call_ns} ({call_ns} in all, the device idle for {idle_ns} of it): "
                        "they wait for the whole device. ");
    }
    if (mixes) {
        claim_waiting_streams(judge, draft);
        prof_say(draft, "Kernels in the legacy default stream make every other stream wait: the "
                        "device is idle for {idle_dependency_ns} with work queued behind another "
                        "stream's.");
    }
    prof_places(judge, draft, &found.spots);
}

/* ---- streams one after the other ------------------------------------------------------------- */

/* Threads that launch what the device runs, or processes: but threads that only copy. */
static size_t count_launchers(struct prof_judge *judge, bool processes)
{
    const struct prof_facts *f = judge->facts;
    struct prof_map found = {0};
    size_t at = 0, count = 0;
    uint64_t key, launches;
    while (prof_map_next(&f->launchers, &at, &key, &launches)) {
        const struct prof_thread *thread = prof_thread(f->capture, (int64_t)(key >> 32));
        if ((uint32_t)key == judge->device_index && thread &&
            !prof_facts_only_copies(f, (uint32_t)(key >> 32)) &&
            !prof_map_put(&found, (uint64_t)(processes ? thread->process : thread->id), 1))
            judge->failed = true;
    }
    count = found.count;
    prof_map_free(&found);
    return count;
}

/* Side by side, only one stream's way from kernel to kernel is seen: `part` of them all goes, but
 * no more than `most_ns`. One thread's own work and copies cannot overlap,
 * nor what Python does on several. */
static void claim_between(struct prof_judge *judge, struct prof_draft *draft, double part,
                          int64_t most_ns)
{
    static const enum prof_slice ways[] = {PROF_SLICE_DEPENDENCY, PROF_SLICE_DISPATCH,
                                           PROF_SLICE_SYNC,       PROF_SLICE_LAUNCH,
                                           PROF_SLICE_COPY_CALL,  PROF_SLICE_HOST};
    enum { ALL_WAYS = sizeof ways / sizeof *ways, OF_ONE_THREAD = ALL_WAYS - 2 };
    size_t count =
        count_launchers(judge, false) > 1 && !prof_is_python(judge) ? ALL_WAYS : OF_ONE_THREAD;
    const struct prof_shape *shape;
    double idle[ALL_WAYS] = {0}, sum = 0;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));)
        for (size_t i = 0; prof_is_kernel(shape) && i < count; i++)
            idle[i] += (double)shape->idle_ns[ways[i]] * part;
    for (size_t i = 0; i < count; i++)
        sum += idle[i];
    double kept = sum > (double)most_ns ? (double)most_ns / sum : 1;
    for (size_t i = 0; i < count; i++)
        prof_claim(judge, draft, "idle_between_ns", ways[i], (int64_t)(idle[i] * kept));
}

/* Time of kernels that a vendor's library launches into streams of its own choice. */
static int64_t vendor_kernels_ns(struct prof_judge *judge)
{
    const struct prof_shape *shape;
    int64_t ns = 0;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));)
        if (prof_is_kernel(shape) && prof_name_is_vendor(prof_shape_name(shape)))
            ns = prof_add(ns, shape->alone_ns);
    return ns;
}

struct ready {
    const struct prof_judge *judge;
    int64_t ns;
};

static bool add_ready_kernel(void *user, const struct prof_event_row *row)
{
    struct ready *ready = user;
    const struct prof_device *device = ready->judge->device->device;
    const struct prof_stream *stream = prof_stream(ready->judge->facts->capture, row->stream);
    if (stream && stream->device == device->id && row->submit_delay_ns > 0 &&
        prof_facts_has(ready->judge->facts, row->start_ns))
        ready->ns = prof_add(ready->ns, row->submit_delay_ns);
    return true;
}

/* How long kernels had been handed to the device before they started, summed: nothing in the
 * program kept them apart. A runtime for the host's processors hands over what waits for nothing
 * more; on other devices, that it was handed over says nothing: 0. */
static int64_t ready_kernels_ns(struct prof_judge *judge)
{
    static const struct prof_event_query kernels = {
        .tables = PROF_OPS(KERNEL),
        .fields = PROF_FIELD(START) | PROF_FIELD(STREAM) | PROF_FIELD(SUBMIT_DELAY),
        .started = true};
    struct ready ready = {.judge = judge};
    if (!prof_shares_memory(judge))
        return 0;
    if (prof_event_rows(judge->facts->capture, &kernels, add_ready_kernel, &ready, NULL))
        judge->failed = true;
    return ready.ns;
}

static void serial_streams(struct prof_judge *judge)
{
    const struct prof_device_facts *d = judge->device;
    int64_t kernel = in_kernels_ns(judge), units = d->device ? d->device->units : 0;
    if (d->streams < 2 || !kernel || (double)d->kernel_sum_ns > 1.05 * (double)kernel)
        return;
    if (units <= 0) {
        prof_abstain(judge, "needs the device's number of units");
        return;
    }
    int64_t least = side_by_side_ns(judge, units);
    if (kernel - least <= 0)
        return;
    if (2 * ready_kernels_ns(judge) > kernel - least) {
        prof_abstain(judge, "kernels of several streams were ready at once: their processors had "
                            "other work");
        return;
    }
    size_t processes = count_launchers(judge, true);
    struct prof_draft *draft = prof_found(judge, 0.5);
    prof_numbers(draft, {"streams", (double)d->streams}, {"processes", (double)processes},
                 {"kernel_ns", (double)kernel}, {"side_by_side_ns", (double)least});
    prof_claim(judge, draft, "overlap_ns", PROF_SLICE_KERNEL, kernel - least);
    claim_between(judge, draft, 1 - (double)longest_stream(judge) / (double)kernel, kernel - least);
    prof_say(draft, "Kernels of {streams|stream|streams}");
    if (processes > 1)
        prof_say(draft, " of {processes|process|processes}");
    prof_say(draft, " run one after the other though they do not fill the device: {kernel_ns} that "
                    "side by side could take {side_by_side_ns}, where none needs what "
                    "another computes: that is not recorded.");
    if (2 * vendor_kernels_ns(judge) > kernel) {
        prof_say(draft, " Most of them are a library's, which chooses its streams.");
        draft->most = PROF_SEVERITY_INFO;
    }
    struct prof_spots spots = d->spots[PROF_SLICE_DEPENDENCY];
    const struct prof_shape *shape;
    for (size_t at = 0; !spots.worst[0].duration && (shape = prof_next_shape(judge, &at));)
        if (prof_is_kernel(shape)) /* no kernel waits for another stream's */
            spots.worst[0] = prof_longest_spot(judge, shape);
    prof_places(judge, draft, &spots);
}

/* ---- registry -------------------------------------------------------------------------------- */

const struct prof_rule prof_rules_wait[] = {
    {.page =
         {.id = "implicit-sync",
          .title = "API calls that synchronize implicitly",
          .fires = "On CUDA: three calls or more in the iterations that free device memory or "
                   "page-lock or free host memory and take more than 20 us; or kernels in the "
                   "legacy default stream beside kernels in streams that wait for it.",
          .why =
              "cudaFree, cudaFreeHost and cudaHostAlloc wait until the device is done, and the "
              "legacy default stream waits for all others, and they for it: the queue runs empty.",
          .fix = "Free outside of the loop or in stream order; use no legacy "
                 "default stream.",
          .cuda = "cudaFreeAsync instead of cudaFree; cudaStreamCreateWithFlags with "
                  "cudaStreamNonBlocking, or nvcc --default-stream per-thread.",
          .opencl = NULL,
          .pytorch = "No torch.cuda.empty_cache() in the loop; side work in `with "
                     "torch.cuda.stream(side):`.",
          .jax = "No XLA_PYTHON_CLIENT_ALLOCATOR=platform, which frees by cudaFree; keep results "
                 "as device arrays, and read them by one jax.device_get every k steps.",
          .bound = "Idle time of the device in those calls, and, of streams that wait for each "
                   "other, the idle time in which work was queued behind another stream's and what "
                   "kernels would save side by side (as serial-streams).",
          .limits = "CUDA does not report why a call took long.",
          .needs = "API calls; streams with their flags"},
     .judge = implicit_sync},
    {.page =
         {.id = "sync-stall",
          .title = "The host waits for the device more often than once a step",
          .fires = "Five waits or more after which the device is idle, two a step or more: while "
                   "the host wakes up (50 us at most) and launches again.",
          .why = "When the wait ends the queue is empty; whatever the host does until the next "
                 "kernel runs is lost for the device.",
          .fix = "Wait once per iteration, for an event of the iteration before.",
          .cuda = "cudaStreamWaitEvent between streams instead of "
                  "cudaStreamSynchronize or cudaDeviceSynchronize; "
                  "cudaEventSynchronize on the previous iteration's event where the "
                  "host needs its data.",
          .opencl = "Events in wait lists instead of clFinish; clWaitForEvents on the "
                    "iteration before where the host needs its data.",
          .pytorch = "No torch.cuda.synchronize(), `.item()`, `.cpu()` or `print(loss)` "
                     "in the loop: log every k steps.",
          .jax = "No block_until_ready(), float(loss) or print(loss) in the loop: keep the "
                 "arrays, and read them by one jax.device_get every k steps.",
          .bound =
              "(1 - steps / waits) of the idle time after waits and in the launches that follow.",
          .limits = "A wait that hides behind the next one costs nothing when it is removed: the "
                    "replayed figure takes that into account.",
          .needs = "API calls and kernels"},
     .slows_kernels = true,
     .advice = PROF_ADVICE_WAITS,
     .judge = sync_stall},
    {.page =
         {.id = "serial-streams",
          .title = "Streams that run one after the other",
          .fires = "Two streams or more with kernels, at most 5 % of whose time overlaps, and "
                   "grids that do not fill the device. On a device that is the host's "
                   "processors: and half of that time or more no kernel was ready that did not "
                   "run.",
          .why = "Small kernels of several streams can share the device; a false dependency, the "
                 "default stream or waits on the host keep them apart; processes take turns on a "
                 "device unless a server (MPS) lets them share it.",
          .fix = "Remove what orders them: the default stream, a host wait, a "
                 "shared queue.",
          .cuda = "cudaStreamCreateWithFlags with cudaStreamNonBlocking; "
                  "cudaStreamWaitEvent instead of cudaStreamSynchronize; launch "
                  "breadth-first, a kernel on each stream in turn; between processes "
                  "nvidia-cuda-mps-control -d.",
          .opencl = "Several in-order queues with clFlush on each, or a queue with "
                    "CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE.",
          .pytorch = "torch.cuda.Stream() for each branch, and wait_stream where one "
                     "needs the other's result.",
          .bound =
              "Kernel time - max(longest stream, sum of time x min(1, blocks / units)), and the "
              "part of the other streams' of the idle time before kernels, at most as much again; "
              "the host's own work and copies count only where several threads launch.",
          .limits = "Real dependencies between the streams are not seen.",
          .needs = "kernels with configuration, and the device's units"},
     .judge = serial_streams},
    {.judge = NULL},
};
