/* The exclusive waterfall: each instant of each device within the window has one state. Busy time
 * is divided by what ran, idle time by what the host did until the next operation came: a queued
 * one was waited for by the device (dispatch, dependency), one that was launched later waited for
 * the host. The states sum to the window, so gains taken from them never exceed it. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/facts/facts.h"
#include "libprof/analysis/facts/iteration_parts.h"
#include "libprof/base/saturate.h"
#include "libprof/wire/command.h"
#include "libprof/wire/memory.h"

/* ---- the waterfall --------------------------------------------------------------------------- */

/* How long after a wait the host's next launch still counts as the wait's cost: the thread is woken
 * and starts over. */
#define AFTER_SYNC_NS 50000
/* Shorter pauses of the host between two launches are what launching costs it: the program's own
 * way to the call. */
#define BETWEEN_LAUNCHES_NS 20000
#define NOT_BEHIND UINT32_MAX
#define BEHIND_A_WAIT (UINT32_MAX - 1)
/* Kernels that repeat in turn and still are a row: split-K and its reduction. */
#define PERIODS 2

struct sweep {
    struct prof_device_facts *facts;
    int64_t done; /* all before this is reported */
    int64_t kernel_end, copy_end;
    uint32_t kernel_shape, copy_shape;
    uint32_t last_stream, last_shape; /* of the operation before; UINT32_MAX = none */
    uint32_t last_thread;             /* that launched it */
    bool last_launched;               /* it counts: it was launched in the phase */
    size_t interval;                  /* of the phase */
    uint32_t kernels[PERIODS];        /* shapes of the last ones with nothing in between */
    size_t iteration;                 /* that the last of them was launched in */
    uint32_t as_before[PERIODS];      /* kernels in a row that are what was 1, 2 before them */
    bool waited;                      /* the host waited since the operation before */
    uint32_t behind; /* shape whose call the host waited in, or a wait; nothing was queued since */
    int64_t launching;        /* since then, but for the first launch */
    int64_t interpreting;     /* likewise, of PROF_SLICE_HOST in brief pauses */
    bool began;               /* an operation began since then */
    int64_t stood, lead;      /* ns in the last wait; in the one that `behind` names */
    int64_t copying;          /* ns in the call of the operation before: staging is a wait too */
    int64_t last_call;        /* when the latest of the operations so far was launched */
    int64_t gap[PROF_SLICES]; /* the idle time being reported */
    int64_t woken;            /* of its PROF_SLICE_SYNC, after the wait */
    bool reading;             /* the operation before was one that read_waits is true of */
    bool blocked;             /* the host is, in no call */
    int64_t read_since;       /* when what came before the first such in a row was launched, or 0 */
    uint32_t call;            /* name of the call in which the host is, 0 = none */
    struct prof_map streams;
    struct prof_typical_idle *idle;
};

struct work {
    struct prof_facts *facts;
    struct sweep *sweeps;
    prof_piece_seen *seen; /* instead of the sums of a phase; NULL = those */
    void *user;
};

/* ---- busy time ------------------------------------------------------------------------------- */

enum prof_slice prof_copy_slice(const struct prof_shape *shape)
{
    int host = shape->copy_kind == WIRE_COPY_HTOD   ? shape->source_kind
               : shape->copy_kind == WIRE_COPY_DTOH ? shape->target_kind
                                                    : 0;
    if (shape->kind == PROF_OP_MEMSET)
        return PROF_SLICE_FILL;
    if (shape->copy_kind == WIRE_COPY_DTOD)
        return PROF_SLICE_COPY_DEVICE;
    return host == WIRE_MEMORY_PAGEABLE ? PROF_SLICE_COPY_PAGEABLE
           : host == WIRE_MEMORY_PINNED ? PROF_SLICE_COPY_PINNED
                                        : PROF_SLICE_COPY_OTHER;
}

/* Within the window only: mostly within the interval that the sweep is in. */
static int64_t within(const struct prof_facts *f, const struct sweep *s, int64_t begin, int64_t end)
{
    const struct prof_intervals *all = &f->phase->intervals;
    const struct prof_interval *own = s->interval < all->count ? &all->data[s->interval] : NULL;
    bool last = s->interval + 1 >= all->count;
    if (own && begin >= own->begin && (end <= own->end || last || end <= own[1].begin)) {
        end = end < own->end ? end : own->end;
        return end > begin ? end - begin : 0;
    }
    return end > begin && end > f->begin && begin < f->end
               ? prof_phase_before(f->phase, end) - prof_phase_before(f->phase, begin)
               : 0;
}

/* Since when the host is behind the device, `stood_ns` of which it was blocked in the wait: no wait
 * costs more of its lead. */
static void begin_behind(struct sweep *s, uint32_t whose, int64_t stood_ns)
{
    s->behind = whose;
    s->launching = s->interpreting = 0;
    s->lead = stood_ns;
    s->began = false;
}

/* What the wait cost of the launches behind it: until the host is ahead of the device again, or
 * waits again. */
static void end_behind(struct work *w, struct sweep *s)
{
    if (s->behind == NOT_BEHIND)
        return;
    int64_t late = prof_min(s->launching, s->lead);
    s->facts->relaunch_ns += late;
    if (s->behind != BEHIND_A_WAIT) {
        struct prof_shape *behind = &w->facts->shapes.data[s->behind];
        behind->catch_up_ns += late;
        behind->woken_brief_ns += prof_min(s->interpreting, s->lead - late);
    }
    begin_behind(s, NOT_BEHIND, 0);
}

static void note_wait(struct work *w, struct sweep *s, enum prof_slice slice)
{
    struct prof_shape *last =
        s->last_shape == PROF_NO_SHAPE ? NULL : &w->facts->shapes.data[s->last_shape];
    if (!s->waited && last && slice == PROF_SLICE_SYNC)
        last->awaited++;
    if (!s->waited && (s->began || s->behind != s->last_shape)) {
        bool copy = last && prof_is_copy(last);
        end_behind(w, s);
        begin_behind(s, copy ? s->last_shape : BEHIND_A_WAIT, s->stood + (copy ? s->copying : 0));
    }
    s->waited = true;
}

/* Until the host is ahead of the device again, a wait costs every launch. */
static void note_launching(struct sweep *s, int64_t length)
{
    if (s->behind == NOT_BEHIND)
        return;
    if (s->waited || s->behind == s->last_shape)
        s->facts->relaunch_ns += length;
    else
        s->launching += length;
}

static void spend(struct work *w, struct sweep *s, enum prof_slice slice, int64_t begin,
                  int64_t end, const struct prof_op *op, uint32_t shape)
{
    int64_t length = within(w->facts, s, begin, end);
    if (!length)
        return;
    if (w->seen) {
        struct prof_piece piece = {.slice = slice,
                                   .device = (uint32_t)(s - w->sweeps),
                                   .shape = shape,
                                   .call = s->call,
                                   .stream = op ? op->stream : 0,
                                   .thread = op ? op->thread : 0,
                                   .begin = begin,
                                   .end = end};
        w->seen(w->user, &piece);
        return;
    }
    s->facts->slice_ns[slice] += length;
    s->gap[slice] += length;
    if (slice == PROF_SLICE_SYNC || slice == PROF_SLICE_COPY_CALL)
        note_wait(w, s, slice);
    if (slice == PROF_SLICE_LAUNCH)
        note_launching(s, length);
    if (slice >= PROF_SLICE_FIRST_IDLE) {
        if (s->last_shape != PROF_NO_SHAPE)
            w->facts->shapes.data[s->last_shape].after_ns[slice] += length;
        if (shape == PROF_NO_SHAPE)
            return;
        w->facts->shapes.data[shape].idle_ns[slice] += length;
        if (slice == PROF_SLICE_HOST && w->facts->step_name &&
            prof_iteration_at(&w->facts->phase->iterations, op->thread,
                              begin + (end - begin) / 2) == PROF_NO_ITERATION)
            s->facts->outside_ns += length;
        prof_spots_add(&s->facts->spots[slice],
                       (struct prof_spot){begin, length, op->stream, op->thread, shape});
    } else {
        w->facts->shapes.data[shape].alone_ns += length;
    }
}

/* Report the busy time up to `time`; afterwards the device is idle from s->done on, if before it.
 */
static void advance_busy_time(struct work *w, struct sweep *s, int64_t time)
{
    while (s->done < time) {
        bool kernel = s->kernel_end > s->done, copy = s->copy_end > s->done;
        if (!kernel && !copy)
            return;
        int64_t end = time;
        if (kernel && s->kernel_end < end)
            end = s->kernel_end;
        if (copy && s->copy_end < end)
            end = s->copy_end;
        if (kernel)
            spend(w, s, copy ? PROF_SLICE_BOTH : PROF_SLICE_KERNEL, s->done, end, NULL,
                  s->kernel_shape);
        else
            spend(w, s, prof_copy_slice(&w->facts->shapes.data[s->copy_shape]), s->done, end, NULL,
                  s->copy_shape);
        s->done = end;
    }
}

/* ---- idle time ------------------------------------------------------------------------------- */

enum prof_slice prof_call_slice(uint8_t class_)
{
    switch (class_) {
    case WIRE_CLASS_SYNC:
        return PROF_SLICE_SYNC;
    case WIRE_CLASS_ALLOC:
    case WIRE_CLASS_FREE:
    case WIRE_CLASS_ALLOC_HOST:
    case WIRE_CLASS_FREE_HOST:
    case WIRE_CLASS_ALLOC_ASYNC:
    case WIRE_CLASS_FREE_ASYNC:
        return PROF_SLICE_ALLOC;
    case WIRE_CLASS_BUILD:
    case WIRE_CLASS_GRAPH_MAKE:
    case WIRE_CLASS_CREATE:
        return PROF_SLICE_BUILD;
    case WIRE_CLASS_TRANSFER:
        return PROF_SLICE_COPY_CALL;
    case WIRE_CLASS_GRAPH_LAUNCH:
        return PROF_SLICE_LAUNCH;
    default:
        return PROF_SLICE_HOST;
    }
}

/* The host's own way from one call to the next. */
static void spend_between(struct work *w, struct sweep *s, int64_t begin, int64_t end,
                          const struct prof_op *op)
{
    bool brief = end - begin < BETWEEN_LAUNCHES_NS && op->shape != PROF_NO_SHAPE;
    enum prof_slice slice = s->blocked ? PROF_SLICE_SYNC
                            : brief    ? PROF_SLICE_LAUNCH
                                       : PROF_SLICE_HOST;
    spend(w, s, slice, begin, end, op, op->shape);
}

/* What follows a wait is its cost until the host has launched something again. */
static int64_t bubble_of(const struct sweep *s, const struct prof_call *call, int64_t call_end)
{
    bool waits = call->class_ == WIRE_CLASS_SYNC || call->class_ == WIRE_CLASS_TRANSFER;
    return waits && call_end > s->last_call ? AFTER_SYNC_NS : 0;
}

/* The host's own time from `begin` to `end`, where the call that launches begins: backwards over
 * the thread's calls. */
static void spend_calls(struct work *w, struct sweep *s, int64_t begin, int64_t end,
                        const struct prof_op *op)
{
    const struct prof_call *calls = w->facts->calls.data;
    size_t at;
    PROF_FIND_FIRST(at, i, w->facts->calls.count,
                    calls[i].thread > op->thread ||
                        (calls[i].thread == op->thread && calls[i].start >= end));
    while (at && end > begin && calls[at - 1].thread == op->thread) {
        const struct prof_call *call = &calls[--at];
        int64_t call_end = prof_add(call->start, call->duration);
        int64_t after = bubble_of(s, call, call_end);
        if (after && !s->waited)
            s->stood = call->duration;
        if (prof_add(call_end, after) <= begin)
            break; /* earlier ones may be longer, but calls of a thread do not overlap */
        int64_t bubble_end = prof_add(call_end, after) < end ? prof_add(call_end, after) : end;
        int64_t own_end = call_end < end ? call_end : end;
        int64_t own = call->start > begin ? call->start : begin;
        spend_between(w, s, bubble_end, end, op);
        s->call = call->name;
        spend(w, s, PROF_SLICE_SYNC, own_end > begin ? own_end : begin, bubble_end, op, op->shape);
        s->woken += within(w->facts, s, own_end > begin ? own_end : begin, bubble_end);
        spend(w, s, prof_call_slice(call->class_), own, own_end, op, op->shape);
        s->call = 0;
        end = own;
    }
    spend_between(w, s, begin, end, op);
}

/* Likewise, but for the time in which a library compiles: what it calls then is a part of that. */
static void spend_host(struct work *w, struct sweep *s, int64_t begin, int64_t end,
                       const struct prof_op *op)
{
    const struct prof_compile *one;
    while (end > begin && (one = prof_facts_compile_before(w->facts, op->thread, end - 1)) &&
           one->end > begin) {
        int64_t from = one->begin > begin ? one->begin : begin;
        int64_t to = one->end < end ? one->end : end;
        spend_calls(w, s, to, end, op);
        spend(w, s, PROF_SLICE_BUILD, from, to, op, op->shape);
        end = from;
    }
    spend_calls(w, s, begin, end, op);
}

static void begin_gap(struct sweep *s)
{
    memset(s->gap, 0, sizeof s->gap);
    s->woken = 0;
}

/* asked_at: when its next operation was launched, by that thread. */
static void record_idle_gap(const struct work *w, struct sweep *s, uint32_t thread,
                            int64_t asked_at)
{
    const struct prof_iterations *iterations = &w->facts->phase->iterations;
    if (s->idle)
        prof_typical_idle_add(s->idle, prof_iteration_since(iterations, thread, asked_at), s->gap);
    for (int i = PROF_SLICE_FIRST_IDLE; i < PROF_SLICES; i++) {
        s->facts->beside_alloc_ns[i] += s->gap[PROF_SLICE_ALLOC] ? s->gap[i] : 0;
        s->facts->beside_build_ns[i] += s->gap[PROF_SLICE_BUILD] ? s->gap[i] : 0;
    }
    s->facts->woken_ns += s->gap[PROF_SLICE_HOST] ? s->woken : 0;
    if (s->gap[PROF_SLICE_HOST] >= PROF_BRIEF_NS &&
        s->gap[PROF_SLICE_HOST] > s->gap[PROF_SLICE_LAUNCH])
        s->facts->launch_behind_host_ns += s->gap[PROF_SLICE_LAUNCH];
    s->facts->awaited_gaps += s->gap[PROF_SLICE_SYNC] > 0;
}

/* launches: what came next was a kernel, or an argument of one. */
static void note_pause(struct work *w, struct sweep *s, bool launches)
{
    struct prof_device_facts *d = s->facts;
    bool woken = s->gap[PROF_SLICE_SYNC] || s->gap[PROF_SLICE_COPY_CALL];
    if (woken && s->gap[PROF_SLICE_HOST] < PROF_BRIEF_NS && s->last_shape != PROF_NO_SHAPE)
        w->facts->shapes.data[s->last_shape].woken_brief_ns += s->gap[PROF_SLICE_HOST];
    else if (s->gap[PROF_SLICE_HOST] < PROF_BRIEF_NS)
        s->interpreting += s->gap[PROF_SLICE_HOST];
    bool other = s->gap[PROF_SLICE_SYNC] || s->gap[PROF_SLICE_COPY_CALL] ||
                 s->gap[PROF_SLICE_ALLOC] || s->gap[PROF_SLICE_BUILD];
    if (launches && !other && s->gap[PROF_SLICE_HOST] < PROF_BRIEF_NS)
        d->brief_ns += s->gap[PROF_SLICE_HOST];
    if (!d->kernels && !d->copies)
        d->lead_ns += s->gap[PROF_SLICE_HOST];
    else if (s->gap[PROF_SLICE_HOST] > d->longest_pause_ns)
        d->longest_pause_ns = s->gap[PROF_SLICE_HOST];
}

static void begin_row(struct sweep *s)
{
    for (size_t p = 0; p < PERIODS; p++) {
        s->kernels[p] = UINT32_MAX;
        s->as_before[p] = 0;
    }
}

/* After its last operation in an interval: what the thread did that had launched that one. */
static void spend_tail(struct work *w, struct sweep *s, struct prof_interval interval)
{
    struct prof_op none = {.start = interval.end, .thread = s->last_thread, .shape = PROF_NO_SHAPE};
    int64_t begin = s->done > interval.begin ? s->done : interval.begin;
    if (begin >= interval.end)
        return;
    begin_gap(s);
    spend_host(w, s, begin, interval.end, &none);
    record_idle_gap(w, s, s->last_thread, interval.end);
    s->facts->tail_ns = s->gap[PROF_SLICE_HOST];
    s->done = interval.end;
}

/* On to the interval that `time` lies in, or to the last: what lies between two is of no phase, or
 * of another one. */
static void pass_intervals(struct work *w, struct sweep *s, int64_t time)
{
    const struct prof_intervals *all = &w->facts->phase->intervals;
    while (s->interval + 1 < all->count && all->data[s->interval + 1].begin <= time) {
        struct prof_interval old = all->data[s->interval];
        int64_t begin = all->data[s->interval + 1].begin;
        advance_busy_time(w, s, old.end);
        spend_tail(w, s, old);
        advance_busy_time(w, s, begin);
        s->interval++;
        s->done = s->done > begin ? s->done : begin;
        s->last_shape = PROF_NO_SHAPE;
        s->waited = false;
        begin_behind(s, NOT_BEHIND, 0);
        begin_row(s);
    }
}

/* When work that was launched before the device was idle had come to it: until then launching held
 * it up, from then on the device did, however close behind the device the host is. */
static int64_t arrival_of(const struct sweep *s, const struct prof_op *op, int64_t begin,
                          int64_t end)
{
    if (op->call == PROF_UNKNOWN || !op->call_duration)
        return begin;
    int64_t there = prof_add(prof_add(op->call, op->call_duration), s->facts->launch_way_ns);
    return there < begin ? begin : there < end ? there : end;
}

/* Does a library read for the program, on a thread that only copies? The program's own thread is
 * blocked until that is done, in no API call. */
static bool read_waits(const struct work *w, const struct prof_op *op)
{
    const struct prof_shape *shape = &w->facts->shapes.data[op->shape];
    return shape->copy_kind == WIRE_COPY_DTOH && prof_is_copy(shape) &&
           prof_facts_only_copies(w->facts, op->thread) &&
           !prof_facts_compile_at(w->facts, op->thread, op->call);
}

/* While last_call is still that of the operations before. */
static void note_read(const struct work *w, struct sweep *s, const struct prof_op *op)
{
    bool reads = read_waits(w, op);
    if (reads && !s->reading)
        s->read_since = s->last_call;
    s->reading = reads;
}

static void spend_blocked(struct work *w, struct sweep *s, int64_t begin, int64_t end,
                          const struct prof_op *op)
{
    s->blocked = true;
    spend_host(w, s, begin, end, op);
    s->blocked = false;
}

/* From `begin` to the call of an operation. The last PROF_BRIEF_NS before a read count as blocked:
 * the library begins with it; what a gap has before those is the program's own work. Reads in a row
 * begin together: what follows the last one is launched by a program that has waited for it. */
static void spend_until_call(struct work *w, struct sweep *s, int64_t begin,
                             const struct prof_op *op)
{
    bool reads = read_waits(w, op);
    if (reads == s->reading) {
        spend_host(w, s, begin, op->call, op);
    } else if (reads) {
        int64_t from = prof_max(begin, op->call - PROF_BRIEF_NS);
        spend_host(w, s, begin, from, op);
        spend_blocked(w, s, from, op->call, op);
    } else {
        int64_t woken = prof_min(begin + AFTER_SYNC_NS, op->call);
        s->stood = s->read_since ? begin - s->read_since : 0;
        spend_blocked(w, s, begin, woken, op);
        spend_host(w, s, woken, op->call, op);
    }
}

static void spend_idle(struct work *w, struct sweep *s, const struct prof_op *op)
{
    const struct prof_shape *shape = &w->facts->shapes.data[op->shape];
    int64_t begin = s->done, end = op->start;
    if (within(w->facts, s, begin, end))
        s->facts->gaps++;
    enum prof_slice slice = shape->waits ? PROF_SLICE_COPY_CALL : PROF_SLICE_LAUNCH;
    if (op->call != PROF_UNKNOWN && op->call > begin) {
        spend_until_call(w, s, begin, op);
        spend(w, s, slice, op->call, end, op, op->shape);
        return;
    }
    int64_t there = arrival_of(s, op, begin, end);
    bool other = s->last_stream && s->last_stream != op->stream;
    if (there == begin)
        end_behind(w, s);
    spend(w, s, slice, begin, there, op, op->shape);
    spend(w, s, other ? PROF_SLICE_DEPENDENCY : PROF_SLICE_DISPATCH, there, end, op, op->shape);
}

/* ---- operations ------------------------------------------------------------------------------ */

static bool count_launched(struct work *w, struct sweep *s, const struct prof_op *op)
{
    struct prof_shape *shape = &w->facts->shapes.data[op->shape];
    bool kernel = prof_is_kernel(shape);
    if (!shape->count || op->duration < shape->min_ns)
        shape->min_ns = op->duration;
    if (op->duration > shape->longest.duration || !shape->count)
        shape->longest = *op;
    shape->count++;
    shape->sum_ns += op->duration;
    shape->call_ns += op->call_duration;
    ++*(kernel ? &s->facts->kernels : &s->facts->copies);
    if (kernel && !prof_map_put(&s->streams, op->stream, 1))
        return false;
    uint64_t launcher = (uint64_t)op->thread << 32 | shape->device;
    uint64_t *launches = prof_map_get(&w->facts->launchers, launcher);
    return prof_map_put(&w->facts->launchers, launcher, launches ? *launches + 1 : 1);
}

/* How often the same kernel, or the same two in turn, follow each other with nothing else and no
 * wait in between. A row ends where the program says that an iteration does: what the next one
 * computes has its data only then; and where a launch works on what the one before has left. */
static void count_row(struct work *w, struct sweep *s, const struct prof_op *op)
{
    uint32_t number = op->shape;
    struct prof_shape *shape = &w->facts->shapes.data[number];
    size_t iteration = w->facts->step_name ? prof_iteration_since(&w->facts->phase->iterations,
                                                                  op->thread, prof_op_asked_at(op))
                                           : 0;
    if (s->waited || s->iteration != iteration || op->again)
        begin_row(s);
    s->iteration = iteration;
    for (size_t p = 0; p < PERIODS; p++)
        s->as_before[p] = s->kernels[p] == number ? s->as_before[p] + 1 : 0;
    s->kernels[1] = s->kernels[0];
    s->kernels[0] = number;
    uint32_t row = s->as_before[0] ? s->as_before[0] + 1 : s->as_before[1] / 2 + 1;
    shape->runs += s->as_before[0] > 0;
    shape->turns += !s->as_before[0] && s->as_before[1] > 1;
    if (row > shape->longest_run)
        shape->longest_run = row;
}

/* Copies one after the other could be one, whatever streams they are in. */
static void count_packable(struct work *w, const struct sweep *s, uint32_t number)
{
    struct prof_shape *shape = &w->facts->shapes.data[number];
    const struct prof_shape *before =
        s->last_shape == PROF_NO_SHAPE ? NULL : &w->facts->shapes.data[s->last_shape];
    shape->packable += before && s->last_launched && before->kind == PROF_OP_TRANSFER &&
                       before->copy_kind == shape->copy_kind;
}

/* No piece of what passes until then is wanted. */
static bool is_between_pieces(const struct work *w, const struct sweep *s, int64_t time)
{
    const struct prof_intervals *all = &w->facts->phase->intervals;
    const struct prof_interval *own = &all->data[s->interval];
    return w->seen && s->done >= own->end && (s->interval + 1 == all->count || time < own[1].begin);
}

static bool sweep_operation(struct work *w, const struct prof_op *op)
{
    struct prof_shape *shape = &w->facts->shapes.data[op->shape];
    struct sweep *s = &w->sweeps[shape->device];
    int64_t end = op->start + op->duration;
    bool launched = !w->seen && prof_facts_launched(w->facts, op);
    pass_intervals(w, s, op->start);
    if (is_between_pieces(w, s, op->start))
        s->done = s->done > op->start ? s->done : op->start;
    advance_busy_time(w, s, op->start);
    if (s->done < op->start) {
        begin_gap(s);
        spend_idle(w, s, op);
        record_idle_gap(w, s, op->thread, prof_op_asked_at(op));
        note_pause(w, s,
                   prof_is_kernel(shape) || prof_facts_is_argument(w->facts, shape, op->thread));
        s->done = op->start;
    } else {
        end_behind(w, s);
    }
    bool kernel = prof_is_kernel(shape);
    int64_t *until = kernel ? &s->kernel_end : &s->copy_end;
    if (end > *until) {
        *until = end;
        *(kernel ? &s->kernel_shape : &s->copy_shape) = op->shape;
    }
    int64_t *sum = kernel ? &s->facts->kernel_sum_ns : &s->facts->copy_sum_ns;
    *sum += within(w->facts, s, op->start, end);
    if (launched && kernel)
        count_row(w, s, op);
    else if (!kernel)
        begin_row(s);
    if (launched && prof_is_copy(shape))
        count_packable(w, s, op->shape);
    s->last_stream = op->stream;
    s->last_shape = op->shape;
    s->last_launched = launched;
    s->last_thread = op->thread;
    note_read(w, s, op);
    s->waited = false;
    s->last_call = op->call > s->last_call ? op->call : s->last_call;
    s->copying = op->call_duration;
    s->began = true;
    if (shape->waits) {
        end_behind(w, s);
        begin_behind(s, op->shape, op->call_duration);
    }
    return !launched || count_launched(w, s, op);
}

/* ---- results --------------------------------------------------------------------------------- */

static bool finish_device_sweep(struct work *w, struct sweep *s)
{
    const struct prof_intervals *all = &w->facts->phase->intervals;
    pass_intervals(w, s, INT64_MAX);
    advance_busy_time(w, s, INT64_MAX);
    if (all->count)
        spend_tail(w, s, all->data[all->count - 1]);
    s->facts->streams = s->streams.count;
    prof_map_free(&s->streams);
    bool ok = prof_typical_idle_finish(s->idle, s->facts->slice_ns, s->facts->typical_ns);
    prof_typical_idle_free(s->idle);
    return ok;
}

/* Counts the operations that the phase launched and that start after its end. */
static bool count_started_later(struct work *w)
{
    struct prof_facts *f = w->facts;
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    bool ok = true;
    prof_facts_seek(f, &walk, f->end);
    while (ok && (op = prof_facts_next_in_phase(f, &walk, &kind)) &&
           op->start < f->phase->device_end) {
        struct sweep *s = &w->sweeps[f->shapes.data[op->shape].device];
        if (op->start >= f->end && prof_facts_launched(f, op))
            ok = count_launched(w, s, op);
    }
    return ok;
}

static bool sweep_devices(struct work *w)
{
    struct prof_facts *f = w->facts;
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    w->sweeps = calloc(f->devices.count + 1, sizeof *w->sweeps);
    bool ok = w->sweeps != NULL, failed = false;
    for (size_t i = 0; ok && i < f->devices.count; i++) {
        w->sweeps[i].facts = &f->devices.data[i];
        w->sweeps[i].done = f->begin;
        w->sweeps[i].last_shape = PROF_NO_SHAPE;
        w->sweeps[i].behind = NOT_BEHIND;
        w->sweeps[i].idle = w->seen ? NULL : prof_typical_idle_new(f, &failed);
        begin_row(&w->sweeps[i]);
    }
    ok = ok && !failed;
    prof_facts_seek(f, &walk, f->begin);
    while (ok && (op = prof_facts_next(f, &walk, &kind)) && op->start < f->end)
        ok = sweep_operation(w, op);
    ok = ok && (w->seen || count_started_later(w));
    for (size_t i = 0; w->sweeps && i < f->devices.count; i++)
        ok = finish_device_sweep(w, &w->sweeps[i]) && ok;
    free(w->sweeps);
    return ok;
}

bool prof_facts_waterfall(struct prof_facts *f)
{
    struct work w = {.facts = f};
    return sweep_devices(&w);
}

bool prof_facts_pieces(struct prof_facts *f, const struct prof_intervals *intervals,
                       prof_piece_seen *seen, void *user)
{
    struct prof_phase phase = {.intervals = *intervals};
    struct work w = {.facts = f, .seen = seen, .user = user};
    bool ok = prof_phase_measure(&phase);
    if (ok && intervals->count) {
        phase.device_end = phase.end;
        f->phase = &phase;
        f->begin = phase.begin;
        f->end = phase.end;
        f->steps = 0;
        f->step_name = NULL;
        ok = sweep_devices(&w);
        f->phase = &f->phases.list.data[f->phases.main];
    }
    free(phase.before);
    return ok;
}
