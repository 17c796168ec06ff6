/* Rules about data that comes down to the host and goes up again in the same step: because the host
 * works on it, or because the program does not know that the device still has it. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/rules/judge.h"
#include "libprof/base/format.h"

#define REMEMBERED 16
#define LEAST_DOWN 4096 /* bytes; smaller ones are results and flags */
#define LEAST_UP 256
/* The host cannot have read and written the data in between at more than this. */
#define HOST_RATE 20.0e9
/* Nor in less: what a program does between two calls that follow each other. */
#define TURN_NS 5000

struct download {
    int64_t bytes, end, call, known; /* known: when its call had returned, too */
    uint32_t thread, shape;
    bool used; /* an upload has been taken for the way back of it */
};

/* Uploads, or trips, of one kind. */
struct uploads {
    int64_t count, bytes, iterations;
    size_t latest; /* iteration with some */
};

struct trip {
    uint32_t down, up; /* shapes */
    size_t step;
    int64_t bytes;
};

/* Of a shape. */
struct trip_shape {
    struct uploads same;  /* as many bytes as came before, too soon to be changed */
    struct uploads other; /* those of the other trips */
    struct uploads fresh; /* uploads that nothing had come before in their iteration */
    bool in_trip;         /* takes part in other trips that count */
};

struct trips {
    struct download last_down[REMEMBERED];
    size_t next;
    struct trip_shape *shapes;
    PROF_ARRAY(struct trip) others;
    bool failed;
};

/* Where no range separates iterations, the result of one step and the input of the next look like a
 * trip. */
static bool same_step(const struct prof_facts *f, const struct download *down,
                      const struct prof_op *up)
{
    const struct prof_thread *to = prof_thread(f->capture, down->thread);
    const struct prof_thread *from = prof_thread(f->capture, up->thread);
    if (to && from && to->process != from->process)
        return false; /* two programs on one device */
    if (!f->step_name)
        return true;
    const struct prof_iterations *it = &f->phase->iterations;
    size_t step = prof_iteration_at(it, up->thread, up->call);
    return step != PROF_NO_ITERATION && step == prof_iteration_at(it, down->thread, down->call);
}

static void count_upload(struct uploads *list, size_t step, int64_t bytes)
{
    list->iterations += !list->count || step != list->latest;
    list->latest = step;
    list->count++;
    list->bytes += bytes;
}

static void see_upload(const struct prof_judge *judge, struct trips *trips,
                       const struct prof_op *op, const struct prof_shape *shape)
{
    const struct prof_facts *f = judge->facts;
    size_t best = REMEMBERED;
    bool first = true; /* nothing had come before in its step */
    for (size_t i = 0; i < REMEMBERED; i++) {
        const struct download *down = &trips->last_down[i];
        if (!down->bytes || down->end > op->start || !same_step(f, down, op))
            continue;
        first = false;
        if (down->used)
            continue;
        if (best == REMEMBERED || down->bytes == shape->bytes ||
            (trips->last_down[best].bytes != shape->bytes &&
             down->end > trips->last_down[best].end))
            best = i;
    }
    struct trip_shape *of = &trips->shapes[shape - f->shapes.data];
    size_t step = prof_iteration_since(&f->phase->iterations, op->thread, op->call);
    if (first && step != PROF_NO_ITERATION)
        count_upload(&of->fresh, step, shape->bytes);
    if (best == REMEMBERED)
        return;
    struct download *down = &trips->last_down[best];
    double needed = (double)shape->bytes / HOST_RATE * 1e9;
    bool had_time = (double)(op->call - down->known) > (needed > TURN_NS ? needed : TURN_NS);
    bool same = down->bytes == shape->bytes && !had_time;
    if (same) {
        count_upload(&of->same, step, shape->bytes);
    } else {
        struct trip *trip = prof_array_add(&trips->others);
        trips->failed |= !trip;
        if (trip)
            *trip = (struct trip){down->shape, op->shape, step, shape->bytes + down->bytes};
        count_upload(&of->other, step, shape->bytes);
    }
    down->used = true;
}

/* When the host could read what came: the download was done, and its call had returned. */
static int64_t returned_at(const struct prof_op *op)
{
    int64_t end = op->start + op->duration, returned = op->call + op->call_duration;
    return returned > end ? returned : end;
}

static bool find_trips(const struct prof_judge *judge, struct trips *trips)
{
    const struct prof_facts *f = judge->facts;
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    *trips = (struct trips){.shapes = calloc(f->shapes.count + 1, sizeof *trips->shapes)};
    while (trips->shapes && (op = prof_facts_next_in_phase(f, &walk, &kind))) {
        const struct prof_shape *shape = &f->shapes.data[op->shape];
        if (kind != PROF_OP_TRANSFER || shape->device != judge->device_index ||
            op->call == PROF_UNKNOWN || !prof_facts_called(f, op->call))
            continue;
        if (prof_is_download(shape) && shape->bytes >= LEAST_DOWN)
            trips->last_down[trips->next++ % REMEMBERED] =
                (struct download){.bytes = shape->bytes,
                                  .end = op->start + op->duration,
                                  .call = op->call,
                                  .known = returned_at(op),
                                  .thread = op->thread,
                                  .shape = op->shape};
        else if (prof_is_upload(shape) && shape->bytes >= LEAST_UP)
            see_upload(judge, trips, op, shape);
    }
    return trips->shapes && !trips->failed;
}

static void free_trips(struct trips *trips)
{
    free(trips->shapes);
    prof_array_free(&trips->others);
}

static const struct trip_shape *trip_shape(const struct prof_judge *judge,
                                           const struct trips *trips,
                                           const struct prof_shape *shape)
{
    return &trips->shapes[shape - judge->facts->shapes.data];
}

/* Uploads with which iterations also begin, before anything came back, bring new data: results that
 * came in between are not what goes up. */
static bool brings_new_data(const struct trip_shape *of, const struct uploads *trips)
{
    return 2 * of->fresh.iterations >= trips->iterations;
}

static struct uploads sum_same(const struct prof_judge *judge, const struct trips *trips,
                               struct prof_copies *sums)
{
    const struct prof_shape *shape;
    struct uploads all = {0};
    *sums = (struct prof_copies){0};
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        const struct trip_shape *of = trip_shape(judge, trips, shape);
        if (!of->same.count || brings_new_data(of, &of->same))
            continue;
        all.count += of->same.count;
        all.bytes += of->same.bytes;
        all.iterations =
            of->same.iterations > all.iterations ? of->same.iterations : all.iterations;
        prof_copies_add(judge, sums, shape);
    }
    return all;
}

static struct uploads sum_others(const struct prof_judge *judge, struct trips *trips,
                                 struct prof_copies *sums)
{
    const struct prof_shape *shape;
    struct uploads all = {0};
    *sums = (struct prof_copies){0};
    for (size_t i = 0; i < trips->others.count; i++) {
        const struct trip *trip = &trips->others.data[i];
        struct trip_shape *of = &trips->shapes[trip->up];
        if (brings_new_data(of, &of->other))
            continue;
        of->in_trip = trips->shapes[trip->down].in_trip = true;
        count_upload(&all, trip->step, trip->bytes);
    }
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));)
        if (trip_shape(judge, trips, shape)->in_trip)
            prof_copies_add(judge, sums, shape);
    return all;
}

/* Idle time behind uploads that the host waits for: without the trip it launches what follows while
 * the device still works. Launches later than that are catch_up_ns of all copies. */
static void claim_waits_behind(struct prof_judge *judge, struct prof_draft *draft,
                               const struct trips *trips)
{
    const struct prof_shape *shape;
    struct prof_copies sums = {0};
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));)
        if (trip_shape(judge, trips, shape)->in_trip && shape->waits && prof_is_upload(shape))
            prof_copies_add(judge, &sums, shape);
    struct prof_copies behind = {0};
    memcpy(behind.after, sums.after, sizeof behind.after);
    behind.after[PROF_SLICE_LAUNCH] -= sums.catch_up_ns;
    prof_copies_claim_around(judge, draft, "idle_behind_ns", &behind, true, 1);
}

/* Uploads of bytes that their destination was given before, as the recording compared them. */
static bool same_uploads(struct prof_judge *judge)
{
    const struct prof_shape *shape;
    struct prof_copies sums = {0};
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));)
        if (shape->same_bytes)
            prof_copies_add(judge, &sums, shape);
    if (!prof_in_loop(judge, sums.count, sums.count))
        return false;
    struct prof_draft *draft = prof_found(judge, 0.9);
    prof_numbers(draft, {"uploads", (double)sums.count}, {"bytes", (double)sums.bytes},
                 {"memcpy_ns", (double)sums.sum_ns});
    prof_copies_claim(judge, draft, &sums, 1);
    prof_copies_claim_around(judge, draft, "idle_around_ns", &sums, true,
                             prof_copies_part_around(&sums, sums.sum_ns));
    prof_say(draft, "{uploads|upload|uploads} brought bytes that their destination had been given "
                    "by the upload before: {bytes}");
    prof_say_per_iteration(judge, draft, "bytes_per_iteration", "bytes");
    prof_say(draft,
             ", {memcpy_ns} of copying. Upload them once; where kernels overwrite them, copy "
             "them from a second buffer of the device.");
    prof_places(judge, draft, &sums.spots);
    return true;
}

static void repeated_upload(struct prof_judge *judge)
{
    if (same_uploads(judge))
        return;
    struct trips trips;
    struct prof_copies sums;
    if (!find_trips(judge, &trips)) {
        free_trips(&trips);
        judge->failed = true;
        return;
    }
    const struct uploads same = sum_same(judge, &trips, &sums);
    if (prof_in_loop(judge, same.count, same.iterations)) {
        struct prof_draft *draft = prof_found(judge, 0.8);
        prof_numbers(draft, {"uploads", (double)same.count}, {"bytes", (double)same.bytes},
                     {"memcpy_ns", (double)sums.sum_ns});
        prof_copies_claim(judge, draft, &sums, 1);
        prof_copies_claim_around(judge, draft, "idle_until_then_ns", &sums, false, 1);
        prof_claim(judge, draft, "idle_launch_after_ns", PROF_SLICE_LAUNCH, sums.catch_up_ns);
        prof_say(draft,
                 "{uploads|time|times} data came to the host and as many bytes went back up in the "
                 "same iteration, too soon for the host to have changed them: {bytes}");
        prof_say_per_iteration(judge, draft, "bytes_per_iteration", "bytes");
        prof_say(draft, "; {memcpy_ns} of copying, and the device idle {idle_until_then_ns} until "
                        "then. If the host only read them, the device still has them.");
        prof_places(judge, draft, &sums.spots);
    }
    free_trips(&trips);
}

static void host_round_trip(struct prof_judge *judge)
{
    struct trips trips;
    struct prof_copies sums;
    if (!find_trips(judge, &trips)) {
        free_trips(&trips);
        judge->failed = true;
        return;
    }
    const struct uploads other = sum_others(judge, &trips, &sums);
    if (prof_in_loop(judge, other.count, other.iterations) && judge->device->kernels) {
        struct prof_draft *draft = prof_found(judge, judge->facts->step_name ? 0.8 : 0.4);
        prof_numbers(draft, {"trips", (double)other.count}, {"bytes", (double)other.bytes},
                     {"memcpy_ns", (double)sums.sum_ns});
        prof_copies_claim(judge, draft, &sums, 1);
        prof_copies_claim_around(judge, draft, "idle_until_then_ns", &sums, false, 1);
        prof_claim(judge, draft, "idle_launch_after_ns", PROF_SLICE_LAUNCH, sums.catch_up_ns);
        claim_waits_behind(judge, draft, &trips);
        prof_claim(judge, draft, "host_ns", PROF_SLICE_HOST, sums.before[PROF_SLICE_HOST]);
        prof_say(draft, "{trips|time|times} data came to the host, was worked on there and went "
                        "back up: {bytes}");
        prof_say_per_iteration(judge, draft, "bytes_per_iteration", "bytes");
        prof_say(draft, "; {memcpy_ns} of copying, {host_ns} of the host's own time in between.");
        prof_places(judge, draft, &sums.spots);
    }
    free_trips(&trips);
}

/* ---- registry -------------------------------------------------------------------------------- */

const struct prof_rule prof_rules_round_trip[] = {
    {.page =
         {.id = "repeated-upload",
          .title = "Data uploaded again that the device still has",
          .fires = "At least three times, and in half of the steps, a copy to the device "
                   "carries as many bytes as one of 4 KiB or more that came from it before in "
                   "the same step, and the host had no time to read and write them in between "
                   "(20 GB/s, and 5 us); not where half of those steps begin with such an upload "
                   "before anything came. On OpenCL, as often, an upload brings the bytes that "
                   "its destination was given before: 64 words of each upload are compared, "
                   "all bytes of every eighth that looks the same.",
          .why = "A read of device data does not change it. Where the program marks the device's "
                 "copy as stale nevertheless, the next use uploads the same bytes again.",
          .fix = "Upload only after the host has written: keep a flag of who wrote "
                 "last.",
          .cuda = "Skip the cudaMemcpy to the device after a read-only access of the "
                  "host; with managed memory cudaMemAdvise with "
                  "cudaMemAdviseSetReadMostly.",
          .opencl = "clEnqueueMapBuffer with CL_MAP_READ where the host only reads: "
                    "unmapping then writes nothing.",
          .pytorch = "Keep the tensor on the device and use that one again: `.cpu()` of "
                     "it is a copy, not a move.",
          .jax = "jax.device_put once, before the loop, and that array as the argument, not "
                 "NumPy's; a jitted function's results stay on the device.",
          .bound = "The time of those uploads in which no kernel runs, and the idle time "
                   "around their calls (where bytes were compared, no more than they take).",
          .limits = "On CUDA, and for maps and images, addresses and contents are not recorded: "
                    "that the bytes are the same is concluded from size and time.",
          .needs = "transfers with their calls"},
     .slows_kernels = true,
     .judge = repeated_upload},
    {.page = {.id = "host-round-trip",
              .title = "Data goes to the host and back within a step",
              .fires =
                  "At least three times, and in half of the steps, a copy to the host of 4 KiB or "
                  "more is followed in the same step by a copy to the device of another size, or "
                  "of the "
                  "same size when the host had time to change the data; not where half of those "
                  "steps begin with such an upload before anything came.",
              .why = "Work that sits between two kernels on the host costs the way down, the way "
                     "up and the host's slower memory, and the device waits meanwhile.",
              .fix = "Do the part in between on the device, or move all of the work to "
                     "the host.",
              .cuda = "A kernel in place of cudaMemcpy down, host code and cudaMemcpy "
                      "up: gather, sort, select, reduce of CUB or Thrust.",
              .opencl = "A kernel in place of clEnqueueReadBuffer, host code and "
                        "clEnqueueWriteBuffer.",
              .pytorch = "Index, gather and reduce on the device (torch.nn.Embedding on "
                         "cuda, torch.where, torch.topk); no `.cpu()`, `.numpy()` or "
                         "`.item()` inside the step.",
              .jax = "Index, gather and reduce by jnp under jax.jit (jnp.take, jnp.where, "
                     "jax.lax.top_k); no numpy.asarray or jax.device_get inside the step.",
              .bound =
                  "The time of those copies in which no kernel runs, the idle time before each of "
                  "them with the host's own work in it, that behind uploads whose call waits, "
                  "and that of the launches after them until work is queued again.",
              .limits = "Where no NVTX range marks the iterations, the result of one step and the "
                        "input of the next look like a trip: confidence is low then.",
              .needs = "transfers with their calls; NVTX ranges help"},
     .slows_kernels = true,
     .judge = host_round_trip},
    {.judge = NULL},
};
