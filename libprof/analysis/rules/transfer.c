/* Rules about copies between host and device. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/rules/judge.h"
#include "libprof/base/format.h"
#include "libprof/wire/wire.h"

#define SCALAR_BYTES 256
/* Faster than any bus to a host: PCIe 5.0 x16, 32 GT/s x 16 lanes x 128/130. */
#define BEST_LINK 63.0e9
/* Of a copy that small the call and the start are nearly all of the time. */
#define BIG_BYTES (1 << 20)

static bool is_upload(const struct prof_shape *shape)
{
    return prof_is_copy(shape) && shape->copy_kind == WIRE_COPY_HTOD;
}

static bool is_download(const struct prof_shape *shape)
{
    return prof_is_copy(shape) && shape->copy_kind == WIRE_COPY_DTOH;
}

static bool is_link_copy(const struct prof_shape *shape)
{
    return is_upload(shape) || is_download(shape);
}

static bool is_scalar_readback(const struct prof_shape *shape)
{
    return is_download(shape) && shape->bytes >= 0 && shape->bytes <= SCALAR_BYTES;
}

static int host_memory(const struct prof_shape *shape)
{
    return is_upload(shape) ? shape->source_kind : shape->target_kind;
}

static enum prof_slice slice_of(const struct prof_shape *shape)
{
    int kind = host_memory(shape);
    return kind == WIRE_MEMORY_PAGEABLE ? PROF_SLICE_COPY_PAGEABLE
           : kind == WIRE_MEMORY_PINNED ? PROF_SLICE_COPY_PINNED
                                        : PROF_SLICE_COPY_OTHER;
}

static struct prof_spot spot_of(const struct prof_judge *judge, const struct prof_shape *shape)
{
    return (struct prof_spot){shape->longest.start, shape->longest.duration, shape->longest.stream,
                              shape->longest.thread,
                              (uint32_t)(shape - judge->facts->shapes.data)};
}

/* Idle time on both sides of a copy that its call and the wait for it made. */
static const enum prof_slice around[] = {PROF_SLICE_SYNC, PROF_SLICE_COPY_CALL, PROF_SLICE_LAUNCH,
                                         PROF_SLICE_DISPATCH};
#define AROUND (sizeof around / sizeof around[0])

/* What the calls took of their own: one that waits takes as long as what it waits for. */
static int64_t own_call_ns(const struct prof_shape *shape)
{
    return shape->waits ? shape->idle_ns[PROF_SLICE_COPY_CALL] : shape->call_ns;
}

struct sums {
    int64_t count, bytes, sum_ns, alone_ns, call_ns;
    int64_t alone[PROF_SLICES], before[PROF_SLICES], after[PROF_SLICES];
    struct prof_spots spots;
};

static void add(const struct prof_judge *judge, struct sums *sums, const struct prof_shape *shape)
{
    sums->count += shape->count;
    if (shape->bytes > 0)
        sums->bytes += shape->bytes * shape->count;
    sums->sum_ns += shape->sum_ns;
    sums->alone_ns += shape->alone_ns;
    sums->alone[slice_of(shape)] += shape->alone_ns;
    sums->call_ns += own_call_ns(shape);
    for (int i = PROF_SLICE_FIRST_IDLE; i < PROF_SLICES; i++) {
        sums->before[i] += shape->idle_ns[i];
        sums->after[i] += shape->after_ns[i];
    }
    prof_spots_add(&sums->spots, spot_of(judge, shape));
}

static void claim_alone(struct prof_draft *draft, const struct sums *sums, double part)
{
    for (int i = 0; i < PROF_SLICE_FIRST_IDLE; i++)
        prof_claim(draft, i, (int64_t)((double)sums->alone[i] * part));
}

static void claim_around(struct prof_draft *draft, const struct sums *sums, bool before, bool after,
                         double part)
{
    for (size_t i = 0; i < AROUND; i++) {
        int64_t ns = (before ? sums->before[around[i]] : 0) + (after ? sums->after[around[i]] : 0);
        prof_claim(draft, around[i], (int64_t)((double)ns * part));
    }
}

/* ---- data that comes down and goes up again ------------------------------------------------------ */

#define REMEMBERED 16
#define LEAST_DOWN 4096 /* bytes; smaller ones are results and flags */
#define LEAST_UP 256
/* The host cannot have read and written the data in between at more than this. */
#define HOST_RATE 20.0e9

struct download {
    int64_t bytes, end, call;
    uint32_t thread, shape;
};

struct trips {
    struct download last[REMEMBERED];
    size_t next;
    int64_t had_time; /* of same_count: the host could have read and written it in between */
    int64_t same_count, other_count;
    int64_t same_bytes, other_bytes;
    bool *shapes; /* that take part: [0] same, [1] other, per shape */
};

/* The step around a call: index of the range node, or PROF_NO_RANGE. */
static uint32_t step_at(const struct prof_facts *f, uint32_t thread, int64_t time)
{
    struct prof_range_index *ranges = (struct prof_range_index *)(uintptr_t)&f->ranges;
    struct prof_range_thread *lanes = prof_range_thread(ranges, thread);
    for (size_t l = 0; lanes && l < lanes->lanes.count; l++) {
        uint32_t at = prof_range_at(ranges, &lanes->lanes.data[l], time);
        for (; at != PROF_NO_RANGE; at = ranges->nodes.data[at].parent) {
            const char *name = f->range_texts.list.data[ranges->nodes.data[at].group];
            if (name && f->step_name && !strcmp(name, f->step_name))
                return at;
        }
    }
    return PROF_NO_RANGE;
}

/* Where no range tells steps apart, the result of one step and the input of the next look like a
 * trip. */
static bool same_step(const struct prof_facts *f, const struct download *down,
                      const struct prof_op *up)
{
    if (!f->step_name)
        return true;
    uint32_t step = step_at(f, up->thread, up->call);
    return step != PROF_NO_RANGE && step == step_at(f, down->thread, down->call);
}

static void see_upload(const struct prof_judge *judge, struct trips *trips,
                       const struct prof_op *op, const struct prof_shape *shape)
{
    const struct prof_facts *f = judge->facts;
    size_t best = REMEMBERED;
    for (size_t i = 0; i < REMEMBERED; i++) {
        const struct download *down = &trips->last[i];
        if (!down->bytes || down->end > op->start || !same_step(f, down, op))
            continue;
        if (best == REMEMBERED || down->bytes == shape->bytes ||
            (trips->last[best].bytes != shape->bytes && down->end > trips->last[best].end))
            best = i;
    }
    if (best == REMEMBERED)
        return;
    struct download *down = &trips->last[best];
    bool same = down->bytes == shape->bytes;
    if (same && (double)(op->call - down->end) > (double)shape->bytes / HOST_RATE * 1e9)
        trips->had_time++;
    uint32_t number = (uint32_t)(shape - f->shapes.data);
    trips->shapes[2 * number + !same] = true;
    if (!same)
        trips->shapes[2 * down->shape + 1] = true;
    *(same ? &trips->same_count : &trips->other_count) += 1;
    *(same ? &trips->same_bytes : &trips->other_bytes) += shape->bytes + (same ? 0 : down->bytes);
    down->bytes = 0;
}

static bool find_trips(const struct prof_judge *judge, struct trips *trips)
{
    const struct prof_facts *f = judge->facts;
    struct prof_op_walk walk = {{0}};
    const struct prof_op *op;
    enum prof_op_kind kind;
    *trips = (struct trips){.shapes = calloc(2 * f->shapes.count + 2, sizeof *trips->shapes)};
    while (trips->shapes && (op = prof_facts_next(f, &walk, &kind))) {
        const struct prof_shape *shape = &f->shapes.data[op->shape];
        if (kind != PROF_OP_TRANSFER || shape->device != judge->device_index ||
            op->start < f->begin || op->start >= f->end || op->call == PROF_UNKNOWN)
            continue;
        if (is_download(shape) && shape->bytes >= LEAST_DOWN)
            trips->last[trips->next++ % REMEMBERED] = (struct download){
                shape->bytes, op->start + op->duration, op->call, op->thread, op->shape};
        else if (is_upload(shape) && shape->bytes >= LEAST_UP)
            see_upload(judge, trips, op, shape);
    }
    return trips->shapes != NULL;
}

static void sum_trips(const struct prof_judge *judge, const struct trips *trips, int which,
                      struct sums *sums)
{
    const struct prof_shape *shape;
    *sums = (struct sums){0};
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (trips->shapes[2 * (size_t)(shape - judge->facts->shapes.data) + (size_t)which])
            add(judge, sums, shape);
    }
}

static bool repeats(const struct prof_judge *judge, int64_t count)
{
    return count >= 3 && count >= judge->facts->steps / 2;
}

static void repeated_upload(struct prof_judge *judge)
{
    struct trips trips;
    struct sums sums;
    if (!find_trips(judge, &trips)) {
        judge->failed = true;
        return;
    }
    if (repeats(judge, trips.same_count)) {
        sum_trips(judge, &trips, 0, &sums);
        struct prof_draft *draft = prof_found(
            judge, 2 * trips.had_time > trips.same_count ? 0.4 : 0.8,
            "%s times data came to the host and as many bytes went back up in the same step%s: %s, "
            "%s of copying. If the host only read them, the device still has them.",
            prof_count(trips.same_count).text,
            2 * trips.had_time > trips.same_count ? ""
                                                  : ", too soon for the host to have changed them",
            prof_bytes_of(trips.same_bytes).text, prof_duration_ns(sums.sum_ns).text);
        prof_number(draft, "uploads", (double)trips.same_count, PROF_NUMBER_COUNT);
        prof_number(draft, "bytes", (double)trips.same_bytes, PROF_NUMBER_BYTES);
        prof_number(draft, "copy_ns", (double)sums.sum_ns, PROF_NUMBER_NS);
        claim_alone(draft, &sums, 1);
        claim_around(draft, &sums, true, false, 1);
        prof_places(judge, draft, &sums.spots);
    }
    free(trips.shapes);
}

static void host_round_trip(struct prof_judge *judge)
{
    struct trips trips;
    struct sums sums;
    if (!find_trips(judge, &trips)) {
        judge->failed = true;
        return;
    }
    if (repeats(judge, trips.other_count) && judge->device->kernels) {
        sum_trips(judge, &trips, 1, &sums);
        struct prof_draft *draft = prof_found(
            judge, judge->facts->step_name ? 0.8 : 0.4,
            "%s times data came to the host, was worked on there and data went back up: %s in all, "
            "%s of copying, %s of the host's own time in between.",
            prof_count(trips.other_count).text, prof_bytes_of(trips.other_bytes).text,
            prof_duration_ns(sums.sum_ns).text,
            prof_duration_ns(sums.before[PROF_SLICE_HOST]).text);
        prof_number(draft, "trips", (double)trips.other_count, PROF_NUMBER_COUNT);
        prof_number(draft, "bytes", (double)trips.other_bytes, PROF_NUMBER_BYTES);
        prof_number(draft, "copy_ns", (double)sums.sum_ns, PROF_NUMBER_NS);
        prof_number(draft, "host_ns", (double)sums.before[PROF_SLICE_HOST], PROF_NUMBER_NS);
        claim_alone(draft, &sums, 1);
        claim_around(draft, &sums, true, false, 1);
        prof_claim(draft, PROF_SLICE_HOST, sums.before[PROF_SLICE_HOST]);
        prof_places(judge, draft, &sums.spots);
    }
    free(trips.shapes);
}

/* ---- a number that decides ------------------------------------------------------------------------ */

static void scalar_readback(struct prof_judge *judge)
{
    struct sums sums = {0};
    const struct prof_shape *shape;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (is_scalar_readback(shape))
            add(judge, &sums, shape);
    }
    int64_t steps = judge->facts->steps;
    if (sums.count < 10 || sums.count < 2 * steps)
        return; /* one a step is how results are read */
    struct prof_draft *draft = prof_found(
        judge, 0.7,
        "%s copies of at most %d bytes to the host%s, each of which the host waits for before it "
        "goes on: the device is idle %s around them.",
        prof_count(sums.count).text, SCALAR_BYTES, steps ? ", several in every step" : "",
        prof_duration_ns(sums.after[PROF_SLICE_SYNC] + sums.after[PROF_SLICE_COPY_CALL] +
                         sums.before[PROF_SLICE_COPY_CALL] + sums.after[PROF_SLICE_LAUNCH])
            .text);
    prof_number(draft, "readbacks", (double)sums.count, PROF_NUMBER_COUNT);
    prof_number(draft, "idle_after_ns", (double)sums.after[PROF_SLICE_SYNC], PROF_NUMBER_NS);
    claim_alone(draft, &sums, 1);
    claim_around(draft, &sums, true, true, 1);
    prof_places(judge, draft, &sums.spots);
}

/* ---- many small ones ------------------------------------------------------------------------------ */

/* Bytes that a copy needs for its transfer to take as long as its start: fixed cost x rate. */
static double half_bytes(const struct prof_judge *judge, double *fixed_ns)
{
    const struct prof_shape *shape;
    double rate = 0;
    *fixed_ns = 0;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (!is_link_copy(shape) || shape->bytes <= 0 || shape->sum_ns <= 0)
            continue;
        double mean = (double)shape->sum_ns / (double)shape->count;
        if (shape->bytes >= BIG_BYTES && (double)shape->bytes / mean * 1e9 > rate)
            rate = (double)shape->bytes / mean * 1e9;
        double cost = (double)(shape->sum_ns + own_call_ns(shape)) / (double)shape->count;
        if (shape->bytes <= 4096 && (!*fixed_ns || cost < *fixed_ns))
            *fixed_ns = cost;
    }
    if (rate <= 0)
        rate = BEST_LINK / 2;
    return *fixed_ns > 0 ? *fixed_ns * rate / 1e9 : 32768;
}

static void small_transfers(struct prof_judge *judge)
{
    double fixed_ns, half = half_bytes(judge, &fixed_ns);
    struct sums sums = {0};
    int64_t all = 0, steps = judge->facts->steps;
    const struct prof_shape *shape;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (!is_link_copy(shape) || is_scalar_readback(shape))
            continue;
        all += shape->count;
        if (shape->bytes >= 0 && (double)shape->bytes < half && shape->bytes < BIG_BYTES)
            add(judge, &sums, shape);
    }
    if (sums.count < 20 || 2 * sums.count < all || sums.count < 4 * steps)
        return;
    int64_t kept = steps ? steps : 1;
    double part = 1 - (double)kept / (double)sums.count;
    struct prof_draft *draft = prof_found(
        judge, 0.8,
        "%s of %s copies are smaller than %s, from where on the bytes and not the call would take "
        "the time: %s on average, %s each with its call%s.",
        prof_count(sums.count).text, prof_count(all).text, prof_bytes(half).text,
        prof_bytes((double)sums.bytes / (double)sums.count).text,
        prof_duration((double)(sums.sum_ns + sums.call_ns) / (double)sums.count).text,
        steps ? "" : "; one copy could carry many of them");
    prof_number(draft, "copies", (double)sums.count, PROF_NUMBER_COUNT);
    prof_number(draft, "mean_bytes", (double)sums.bytes / (double)sums.count, PROF_NUMBER_BYTES);
    prof_number(draft, "worthwhile_bytes", half, PROF_NUMBER_BYTES);
    prof_number(draft, "copy_ns", (double)sums.sum_ns, PROF_NUMBER_NS);
    prof_number(draft, "call_ns", (double)sums.call_ns, PROF_NUMBER_NS);
    claim_alone(draft, &sums, part);
    claim_around(draft, &sums, true, true, part);
    prof_places(judge, draft, &sums.spots);
}

/* ---- memory that must be staged ------------------------------------------------------------------- */

/* The best rate that page-locked memory was seen, measured or can be imagined to reach. */
static double pinned_rate(const struct prof_judge *judge, bool up, const char **source)
{
    const struct prof_shape *shape;
    double rate = 0;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (!is_link_copy(shape) || is_upload(shape) != up || shape->bytes < BIG_BYTES ||
            host_memory(shape) != WIRE_MEMORY_PINNED || shape->min_ns <= 0)
            continue;
        double seen = (double)shape->bytes / (double)shape->min_ns * 1e9;
        rate = seen > rate ? seen : rate;
    }
    *source = rate > 0 ? "as page-locked copies of this capture do" : "the fastest link there is";
    return rate > 0 ? rate : BEST_LINK;
}

static void pageable_copy(struct prof_judge *judge)
{
    struct sums sums = {0};
    const struct prof_shape *shape;
    const char *source = "";
    double saved = 0, best = 0;
    if (prof_shares_memory(judge)) {
        prof_abstain(judge, "the device's memory is the host's: no bus, nothing to stage for");
        return;
    }
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (!is_link_copy(shape) || host_memory(shape) != WIRE_MEMORY_PAGEABLE || shape->bytes <= 0)
            continue;
        add(judge, &sums, shape);
        best = pinned_rate(judge, is_upload(shape), &source);
        double least = (double)shape->bytes * (double)shape->count / best * 1e9;
        if (shape->sum_ns > 0 && (double)shape->sum_ns > least)
            saved += (double)shape->alone_ns * (1 - least / (double)shape->sum_ns);
    }
    if (!sums.count || prof_of_window(judge, sums.sum_ns) < 0.01)
        return;
    struct prof_draft *draft = prof_found(
        judge, 0.8,
        "%s copies of %s from or to pageable memory run at %s; page-locked memory would reach %s "
        "(%s), and the call would return at once.",
        prof_count(sums.count).text, prof_bytes_of(sums.bytes).text,
        prof_rate((double)sums.bytes / (double)sums.sum_ns * 1e9).text, prof_rate(best).text,
        source);
    prof_number(draft, "copies", (double)sums.count, PROF_NUMBER_COUNT);
    prof_number(draft, "bytes", (double)sums.bytes, PROF_NUMBER_BYTES);
    prof_number(draft, "rate", (double)sums.bytes / (double)sums.sum_ns * 1e9, PROF_NUMBER_RATE);
    prof_number(draft, "pinned_rate", best, PROF_NUMBER_RATE);
    prof_claim(draft, PROF_SLICE_COPY_PAGEABLE, (int64_t)saved);
    claim_around(draft, &sums, true, true, 1);
    prof_places(judge, draft, &sums.spots);
}

/* ---- copies that the host waits for --------------------------------------------------------------- */

static void blocking_copy(struct prof_judge *judge)
{
    struct sums sums = {0};
    const struct prof_shape *shape;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (is_link_copy(shape) && shape->waits && !is_scalar_readback(shape))
            add(judge, &sums, shape);
    }
    /* One a step is how a result is handed over: the host needs it. */
    if (sums.count < 3 || sums.count <= judge->facts->steps)
        return;
    int64_t kernel = judge->device->slice_ns[PROF_SLICE_KERNEL];
    double hidden = sums.alone_ns > kernel ? (double)kernel / (double)sums.alone_ns : 1;
    if (prof_shares_memory(judge))
        hidden = 0; /* the same processors copy and compute */
    struct prof_draft *draft = prof_found(
        judge, 0.5,
        "The host waits for %s copies (%s), one after the other; while it does, no kernel is "
        "launched: %s of copying that could run beside %s of kernels.",
        prof_count(sums.count).text, prof_bytes_of(sums.bytes).text,
        prof_duration_ns(sums.alone_ns).text, prof_duration_ns(kernel).text);
    prof_number(draft, "copies", (double)sums.count, PROF_NUMBER_COUNT);
    prof_number(draft, "bytes", (double)sums.bytes, PROF_NUMBER_BYTES);
    prof_number(draft, "exposed_copy_ns", (double)sums.alone_ns, PROF_NUMBER_NS);
    prof_number(draft, "kernel_ns", (double)kernel, PROF_NUMBER_NS);
    claim_alone(draft, &sums, hidden);
    claim_around(draft, &sums, true, true, 1);
    prof_places(judge, draft, &sums.spots);
}

/* ---- copies that hide behind nothing -------------------------------------------------------------- */

#define CHUNKS 4.0

static void no_overlap(struct prof_judge *judge)
{
    struct sums sums = {0};
    const struct prof_shape *shape;
    const struct prof_device_facts *d = judge->device;
    if (prof_shares_memory(judge)) {
        prof_abstain(judge, "the same processors copy and compute: nothing to overlap");
        return;
    }
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (is_link_copy(shape) && !is_scalar_readback(shape))
            add(judge, &sums, shape);
    }
    int64_t kernel = d->slice_ns[PROF_SLICE_KERNEL], both = d->slice_ns[PROF_SLICE_BOTH];
    int64_t less = kernel + both < sums.alone_ns + both ? kernel + both : sums.alone_ns + both;
    if (!sums.count || prof_of_window(judge, sums.alone_ns) < 0.05 || !kernel ||
        (double)both > 0.1 * (double)less)
        return;
    int64_t gain = kernel < sums.alone_ns ? kernel : sums.alone_ns;
    double part = (double)gain / (double)sums.alone_ns * (1 - 1 / CHUNKS);
    struct prof_draft *draft = prof_found(
        judge, 0.6,
        "Copies take %s in which no kernel runs, kernels %s in which no copy runs; both at once: %s.",
        prof_duration_ns(sums.alone_ns).text, prof_duration_ns(kernel).text,
        prof_duration_ns(both).text);
    prof_number(draft, "exposed_copy_ns", (double)sums.alone_ns, PROF_NUMBER_NS);
    prof_number(draft, "kernel_ns", (double)kernel, PROF_NUMBER_NS);
    prof_number(draft, "overlap_ns", (double)both, PROF_NUMBER_NS);
    prof_number(draft, "streams", (double)d->streams, PROF_NUMBER_COUNT);
    claim_alone(draft, &sums, part);
    prof_places(judge, draft, &sums.spots);
}

/* ---- registry ------------------------------------------------------------------------------------- */

const struct prof_rule prof_rules_transfer[] = {
    {.page = {.id = "repeated-upload",
              .title = "Data uploaded again that the device still has",
              .fires = "At least three times, and in half of the steps, a copy to the device carries "
                       "as many bytes as one of 4 KiB or more that came from it before in the same "
                       "step. Confidence is high where the host had no time to read and write them "
                       "in between (20 GB/s).",
              .why = "A read of device data does not change it. Where the program marks the device's "
                     "copy as stale nevertheless, the next use uploads the same bytes again.",
              .fix = "Keep a flag of who wrote last, and upload only after the host has written.",
              .cuda = "Skip the cudaMemcpy to the device after a read-only access; with managed "
                      "memory cudaMemAdvise(cudaMemAdviseSetReadMostly).",
              .opencl = "clEnqueueMapBuffer with CL_MAP_READ only: unmapping then writes nothing.",
              .pytorch = "Keep the tensor on the device; `.cpu()` of it is a copy, not a move.",
              .bound = "The time of those uploads in which no kernel runs, and the idle time around "
                       "their calls.",
              .limits = "Addresses and contents are not recorded: that the bytes are the same is "
                        "concluded from size and time.",
              .needs = "transfers with their calls"},
     .judge = repeated_upload},
    {.page = {.id = "host-round-trip",
              .title = "Data goes to the host and back within a step",
              .fires = "At least three times, and in half of the steps, a copy to the host of 4 KiB "
                       "or more is followed in the same step by a copy to the device of another size.",
              .why = "Work that sits between two kernels on the host costs the way down, the way up "
                     "and the host's slower memory, and the device waits meanwhile.",
              .fix = "Do that part of the work on the device, or move the whole of it to the host.",
              .cuda = "A kernel for the part in between (gather, sort, reduce: CUB, Thrust).",
              .opencl = "A kernel for the part in between.",
              .pytorch = "Index, embedding and reduction on the device: torch.nn.Embedding on cuda, "
                         "no `.cpu()`, `.numpy()` or `.item()` inside the step.",
              .bound = "The time of those copies in which no kernel runs, and the idle time until "
                       "the upload.",
              .limits = "Where no NVTX range tells steps apart, the result of one step and the input "
                        "of the next look like a trip: confidence is low then.",
              .needs = "transfers with their calls; NVTX ranges help"},
     .judge = host_round_trip},
    {.page = {.id = "scalar-readback",
              .title = "Small values read back to decide what to do next",
              .fires = "At least ten copies to the host of at most 256 bytes, two or more a step.",
              .why = "The host learns of the value only after all queued work, decides, and launches "
                     "anew: the device is idle for the whole way to the host and back.",
              .fix = "Decide on the device, or test every k-th iteration only.",
              .cuda = "Conditional graph nodes (cudaGraphConditionalHandleCreate), a flag that the "
                      "next kernel reads, or cudaMemcpyAsync to page-locked memory read one "
                      "iteration later.",
              .opencl = "Leave the flag in a buffer that the next kernel reads; read it with "
                        "CL_FALSE and look at it one iteration later.",
              .pytorch = "No `.item()`, `if tensor:` or print of a tensor in the loop; torch.where, "
                         "or test every k steps.",
              .bound = "Those copies and the idle time around them.",
              .limits = "That the value decides is not seen, only that the host waits for it.",
              .needs = "transfers with their calls"},
     .judge = scalar_readback},
    {.page = {.id = "small-transfers",
              .title = "Many small copies",
              .fires = "More than half of the copies over the bus, at least twenty and four a step, "
                       "are smaller than the size at which transferring takes as long as starting: "
                       "the least cost of a small copy with its call times the best rate of a large "
                       "one.",
              .why = "Every copy pays for its call and its start; below that size it pays for hardly "
                     "anything else.",
              .fix = "Pack what belongs to a step into one buffer and copy it once.",
              .cuda = "One page-locked staging buffer and one cudaMemcpyAsync; cudaMemcpyBatchAsync; "
                      "small constants as kernel arguments.",
              .opencl = "One clEnqueueWriteBuffer of a packed buffer, or clEnqueueMapBuffer once.",
              .pytorch = "Collate into one tensor before `.to(device, non_blocking=True)`.",
              .bound = "(1 - steps / copies) of the copies' exposed time and of the idle time around "
                       "them.",
              .limits = "Whether the pieces could be made at one time is not seen.",
              .needs = "transfers with their calls"},
     .judge = small_transfers},
    {.page = {.id = "pageable-copy",
              .title = "Copies from and to pageable memory",
              .fires = "Copies between pageable host memory and the device take 1 % of the time or "
                       "more. Not on devices that share the host's memory.",
              .why = "The driver copies pageable memory through a page-locked buffer of its own, "
                     "piece by piece; the call returns when the last piece is staged, so nothing "
                     "overlaps even if it is called asynchronous.",
              .fix = "Allocate what is copied page-locked, once, and copy asynchronously.",
              .cuda = "cudaHostAlloc or cudaHostRegister, then cudaMemcpyAsync on a stream.",
              .opencl = "A buffer with CL_MEM_ALLOC_HOST_PTR, mapped once, as the host's side.",
              .pytorch = "DataLoader(pin_memory=True) and `.to(device, non_blocking=True)`.",
              .bound = "Exposed time of those copies x (1 - their rate / the rate of page-locked "
                       "copies in this capture, else of the fastest link), and the idle time around "
                       "their calls.",
              .limits = "Page-locking itself costs: it pays for memory that is used again.",
              .needs = "transfers with memory kinds"},
     .judge = pageable_copy},
    {.page = {.id = "blocking-copy",
              .title = "The host waits for every copy",
              .fires = "Three or more copies, and more than one a step, whose call returns when the "
                       "data has arrived; single values are scalar-readback's.",
              .why = "While the host waits it launches nothing: the device is idle between the copy "
                     "and the next launch, and copies never run beside kernels.",
              .fix = "Copy asynchronously in a stream of its own, with two buffers, and wait once "
                     "per step.",
              .cuda = "cudaMemcpyAsync from page-locked memory, cudaEventRecord and "
                      "cudaStreamWaitEvent instead of waiting on the host.",
              .opencl = "blocking_write = CL_FALSE, and events in the wait lists of what follows.",
              .pytorch = "`.to(device, non_blocking=True)` from pinned memory.",
              .bound = "The smaller of their exposed time and the kernels' time, and the idle time "
                       "around their calls.",
              .limits = "Data that the host needs at once must be waited for.",
              .needs = "transfers with their calls"},
     .judge = blocking_copy},
    {.page = {.id = "no-overlap",
              .title = "Copies and kernels never run at once",
              .fires = "Copies over the bus take 5 % of the time or more while no kernel runs, and at "
                       "most a tenth of what could overlap does. Not on devices that share the host's "
                       "memory.",
              .why = "The copy engines and the multiprocessors work side by side; used in turn, one "
                     "of them is always idle.",
              .fix = "Copy the next batch while this one is computed: two buffers, two streams.",
              .cuda = "cudaStreamCreateWithFlags(cudaStreamNonBlocking), cudaMemcpyAsync from "
                      "page-locked memory, cudaStreamWaitEvent.",
              .opencl = "A second queue for copies and event wait lists between the two.",
              .pytorch = "A prefetching loader on torch.cuda.Stream, record_stream, "
                         "non_blocking=True.",
              .bound = "min(copies alone, kernels alone) x (1 - 1/4), as for four pieces.",
              .limits = "Whether the next step's input is known early enough is not seen.",
              .needs = "kernels and transfers"},
     .judge = no_overlap},
    {.judge = NULL},
};
