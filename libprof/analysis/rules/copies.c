/* Sums over copies; see judge.h. */
#include "libprof/analysis/rules/judge.h"
#include "libprof/base/saturate.h"
#include "libprof/wire/command.h"
#include "libprof/wire/memory.h"

bool prof_is_upload(const struct prof_shape *shape)
{
    return prof_is_copy(shape) && shape->copy_kind == WIRE_COPY_HTOD;
}

bool prof_is_download(const struct prof_shape *shape)
{
    return prof_is_copy(shape) && shape->copy_kind == WIRE_COPY_DTOH;
}

bool prof_is_link_copy(const struct prof_shape *shape)
{
    return prof_is_upload(shape) || prof_is_download(shape);
}

bool prof_is_scalar_readback(const struct prof_shape *shape)
{
    return prof_is_download(shape) && shape->bytes >= 0 && shape->bytes <= PROF_SCALAR_BYTES;
}

bool prof_is_awaited(const struct prof_shape *shape)
{
    return shape->waits || 2 * (int64_t)shape->awaited > shape->count;
}

int prof_host_memory(const struct prof_shape *shape)
{
    return prof_is_upload(shape) ? shape->source_kind : shape->target_kind;
}

/* Idle time on both sides of a copy that its call and the wait for it made. */
static const enum prof_slice around[] = {PROF_SLICE_SYNC, PROF_SLICE_COPY_CALL, PROF_SLICE_LAUNCH,
                                         PROF_SLICE_DISPATCH};
#define AROUND (sizeof around / sizeof around[0])

int64_t prof_own_call_ns(const struct prof_shape *shape)
{
    return shape->waits ? shape->idle_ns[PROF_SLICE_COPY_CALL] : shape->call_ns;
}

void prof_copies_add(const struct prof_judge *judge, struct prof_copies *sums,
                     const struct prof_shape *shape)
{
    sums->count = prof_add(sums->count, shape->count);
    sums->packable = prof_add(sums->packable, shape->packable);
    sums->awaited = prof_add(sums->awaited, shape->awaited);
    int64_t bytes;
    if (__builtin_mul_overflow(shape->bytes > 0 ? shape->bytes : 0, shape->count, &bytes))
        bytes = INT64_MAX;
    sums->bytes = prof_add(sums->bytes, bytes);
    sums->sum_ns = prof_add(sums->sum_ns, shape->sum_ns);
    sums->alone_ns = prof_add(sums->alone_ns, shape->alone_ns);
    sums->alone[prof_copy_slice(shape)] =
        prof_add(sums->alone[prof_copy_slice(shape)], shape->alone_ns);
    sums->call_ns = prof_add(sums->call_ns, prof_own_call_ns(shape));
    for (int i = PROF_SLICE_FIRST_IDLE; i < PROF_SLICES; i++) {
        sums->before[i] = prof_add(sums->before[i], shape->idle_ns[i]);
        sums->after[i] = prof_add(sums->after[i], shape->after_ns[i]);
    }
    sums->catch_up_ns = prof_add(sums->catch_up_ns, shape->catch_up_ns);
    sums->after[PROF_SLICE_LAUNCH] = prof_add(sums->after[PROF_SLICE_LAUNCH], shape->catch_up_ns);
    if (prof_is_python(judge))
        sums->python_ns = prof_add(sums->python_ns, shape->woken_brief_ns);
    prof_spots_add(&sums->spots, prof_longest_spot(judge, shape));
}

void prof_copies_claim(struct prof_judge *judge, struct prof_draft *draft,
                       const struct prof_copies *sums, double part)
{
    for (int i = 0; i < PROF_SLICE_FIRST_IDLE; i++)
        prof_claim(judge, draft, "exposed_memcpy_ns", i, (int64_t)((double)sums->alone[i] * part));
}

void prof_copies_claim_around(struct prof_judge *judge, struct prof_draft *draft, const char *term,
                              const struct prof_copies *sums, bool after, double part)
{
    for (size_t i = 0; i < AROUND; i++) {
        int64_t ns = sums->before[around[i]] + (after ? sums->after[around[i]] : 0);
        ns = prof_min(ns, judge->device->slice_ns[around[i]]); /* two copies have the same pause */
        prof_claim(judge, draft, term, around[i], (int64_t)((double)ns * part));
    }
    if (after && sums->python_ns)
        prof_claim(judge, draft, "python_ns", PROF_SLICE_HOST,
                   (int64_t)((double)sums->python_ns * part));
}

int64_t prof_copies_idle_around(const struct prof_copies *sums)
{
    int64_t idle = sums->python_ns;
    for (size_t i = 0; i < AROUND; i++)
        idle = prof_add(idle, prof_add(sums->before[around[i]], sums->after[around[i]]));
    return idle;
}

double prof_copies_part_around(const struct prof_copies *sums, int64_t copies_ns)
{
    int64_t idle = prof_copies_idle_around(sums);
    return idle > copies_ns ? (double)copies_ns / (double)idle : 1;
}

struct prof_copies prof_scalar_readbacks(const struct prof_judge *judge)
{
    struct prof_copies sums = {0};
    const struct prof_shape *shape;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));)
        if (prof_is_scalar_readback(shape) && prof_is_awaited(shape))
            prof_copies_add(judge, &sums, shape);
    if (sums.count < 10 || sums.count < 2 * prof_steps(judge))
        return (struct prof_copies){0}; /* one a step is how results are read */
    return sums;
}
