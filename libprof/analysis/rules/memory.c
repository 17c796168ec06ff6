/* Rules about device memory: who held the peak, what is never freed, how near the limit is, and
 * fills that nobody reads. All but the last are about bytes and have no price in time. */
#include <stdlib.h>

#include "libprof/analysis/rules/judge.h"
#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "libprof/wire/wire.h"

static bool on_device(const struct prof_judge *judge, const struct prof_lifetime *l)
{
    return l->kind != WIRE_MEMORY_PINNED && l->kind != WIRE_MEMORY_PAGEABLE &&
           (!l->device || l->device == judge->device->id);
}

/* ---- the peak -------------------------------------------------------------------------------- */

struct change {
    int64_t time, bytes;
};

static int by_time(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* frees first */
}

struct peak {
    int64_t bytes, time;
    int64_t steady;                               /* of it, made before the part that repeats */
    const struct prof_lifetime *top[PROF_PLACES]; /* largest that live then */
};

static bool find_peak(const struct prof_judge *judge, struct peak *peak)
{
    const struct prof_facts *f = judge->facts;
    PROF_ARRAY(struct change) changes = {0};
    *peak = (struct peak){0};
    for (size_t i = 0; i < f->lifetimes.count; i++) {
        const struct prof_lifetime *l = &f->lifetimes.data[i];
        if (!on_device(judge, l))
            continue;
        if (!prof_array_reserve(&changes, 2)) {
            prof_array_free(&changes);
            return false;
        }
        changes.data[changes.count++] = (struct change){l->start, l->bytes};
        if (l->end != INT64_MAX)
            changes.data[changes.count++] = (struct change){l->end, -l->bytes};
    }
    if (changes.count)
        qsort(changes.data, changes.count, sizeof *changes.data, by_time);
    int64_t live = 0;
    for (size_t i = 0; i < changes.count; i++) {
        live = prof_add(live, changes.data[i].bytes);
        if (live > peak->bytes) {
            peak->bytes = live;
            peak->time = changes.data[i].time;
        }
    }
    prof_array_free(&changes);
    for (size_t i = 0; i < f->lifetimes.count; i++) {
        const struct prof_lifetime *l = &f->lifetimes.data[i];
        if (!on_device(judge, l) || l->start > peak->time || l->end <= peak->time)
            continue;
        if (l->start < f->begin)
            peak->steady = prof_add(peak->steady, l->bytes);
        for (int k = 0; k < PROF_PLACES; k++) {
            if (peak->top[k] && peak->top[k]->bytes >= l->bytes)
                continue;
            const struct prof_lifetime *less = peak->top[k];
            peak->top[k] = l;
            l = less;
            if (!l)
                break;
        }
    }
    return true;
}

static void place_holders(struct prof_judge *judge, struct prof_draft *draft,
                          const struct peak *peak)
{
    for (int i = 0; i < PROF_PLACES && peak->top[i]; i++) {
        const struct prof_lifetime *l = peak->top[i];
        int64_t end = l->end < judge->facts->end_ns ? l->end : judge->facts->end_ns;
        prof_place(judge, draft,
                   &(struct prof_spot){l->start, prof_subtract(end, l->start), 0, l->thread, 0});
    }
}

static void memory_peak(struct prof_judge *judge)
{
    struct peak peak;
    if (!find_peak(judge, &peak)) {
        judge->failed = true;
        return;
    }
    const struct prof_device *device = judge->device->device;
    if (peak.bytes <= 0 || !device || device->memory_bytes <= 0 ||
        peak.bytes < device->memory_bytes / 20)
        return;
    struct prof_draft *draft = prof_found(
        judge, 0.9,
        "At the peak %s were allocated at once, %s of the device's memory; the largest block is "
        "%s, "
        "%s were made before the part that repeats.",
        prof_bytes_of(peak.bytes).text,
        prof_percent((double)peak.bytes / (double)device->memory_bytes).text,
        prof_bytes_of(peak.top[0] ? peak.top[0]->bytes : 0).text, prof_bytes_of(peak.steady).text);
    draft->about_memory = true;
    draft->most = PROF_SEVERITY_INFO;
    draft->finding.bytes = peak.bytes;
    prof_number(draft, "peak_bytes", (double)peak.bytes, PROF_NUMBER_BYTES);
    prof_number(draft, "peak_at_ns", (double)peak.time, PROF_NUMBER_NS);
    place_holders(judge, draft, &peak);
}

#define PRESSURE 0.8

static void memory_pressure(struct prof_judge *judge)
{
    struct peak peak;
    const struct prof_device *device = judge->device->device;
    if (!device || device->memory_bytes <= 0) {
        prof_abstain(judge, "needs the device's memory size");
        return;
    }
    if (!find_peak(judge, &peak)) {
        judge->failed = true;
        return;
    }
    double share = (double)peak.bytes / (double)device->memory_bytes;
    if (share < PRESSURE)
        return;
    int64_t moving = peak.bytes - peak.steady;
    struct prof_draft *draft = prof_found(
        judge, 0.7,
        "%s of %s of device memory were allocated at the peak (%s). Twice the work in a step would "
        "need %s if what the steps allocate doubles; other processes' memory comes on top.",
        prof_bytes_of(peak.bytes).text, prof_bytes_of(device->memory_bytes).text,
        prof_percent(share).text, prof_bytes_of(prof_add(peak.bytes, moving)).text);
    draft->about_memory = true;
    draft->most = PROF_SEVERITY_WARNING;
    draft->finding.bytes = peak.bytes;
    prof_number(draft, "peak_bytes", (double)peak.bytes, PROF_NUMBER_BYTES);
    prof_number(draft, "capacity_bytes", (double)device->memory_bytes, PROF_NUMBER_BYTES);
    prof_number(draft, "next_bytes", (double)prof_add(peak.bytes, moving), PROF_NUMBER_BYTES);
    place_holders(judge, draft, &peak);
}

/* ---- never freed ----------------------------------------------------------------------------- */

static void memory_leak(struct prof_judge *judge)
{
    const struct prof_facts *f = judge->facts;
    int64_t count = 0, bytes = 0;
    struct prof_spots spots = {0};
    enum prof_state state = prof_info(f->capture)->state;
    if (state == PROF_STATE_RECORDING || state == PROF_STATE_CLOSING || !f->steps)
        return;
    for (size_t i = 0; i < f->lifetimes.count; i++) {
        const struct prof_lifetime *l = &f->lifetimes.data[i];
        if (!on_device(judge, l) || l->end != INT64_MAX || l->start < f->begin ||
            l->start >= f->end || l->kind == WIRE_MEMORY_DEVICE_STATIC)
            continue;
        count++;
        bytes = prof_add(bytes, l->bytes);
        prof_spots_add(&spots, (struct prof_spot){l->start, f->end_ns - l->start, 0, l->thread, 0});
    }
    if (count < 5 || count < f->steps / 2)
        return; /* a cache that fills up once is no leak */
    struct prof_draft *draft = prof_found(
        judge, 0.7,
        "%s blocks (%s) are allocated in the part that repeats and never freed, %s a step: memory "
        "grows without end.",
        prof_count(count).text, prof_bytes_of(bytes).text,
        prof_bytes((double)bytes / (double)f->steps).text);
    draft->about_memory = true;
    draft->most = PROF_SEVERITY_WARNING;
    draft->finding.bytes = bytes;
    prof_number(draft, "blocks", (double)count, PROF_NUMBER_COUNT);
    prof_number(draft, "bytes", (double)bytes, PROF_NUMBER_BYTES);
    prof_places(judge, draft, &spots);
}

/* ---- fills that are written over ------------------------------------------------------------- */

static void dead_memset(struct prof_judge *judge)
{
    const struct prof_facts *f = judge->facts;
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    struct prof_op fill = {0};
    bool filled = false;
    enum prof_op_kind kind;
    int64_t count = 0, ns = 0;
    struct prof_spots spots = {0};
    while ((op = prof_facts_next(f, &walk, &kind))) {
        const struct prof_shape *shape = &f->shapes.data[op->shape];
        if (shape->device != judge->device_index || op->start < f->begin || op->start >= f->end)
            continue;
        bool covers = filled && kind == PROF_OP_TRANSFER && op->stream == fill.stream &&
                      shape->copy_kind == WIRE_COPY_HTOD && shape->bytes > 0 &&
                      shape->bytes == f->shapes.data[fill.shape].bytes;
        if (covers) {
            count++;
            ns += fill.duration;
            prof_spots_add(&spots, (struct prof_spot){fill.start, fill.duration, fill.stream,
                                                      fill.thread, fill.shape});
        }
        filled = kind == PROF_OP_MEMSET;
        fill = filled ? *op : fill;
    }
    if (count < 3)
        return;
    struct prof_draft *draft = prof_found(
        judge, 0.6,
        "%s fills are followed at once by an upload of as many bytes: %s for values that "
        "nobody reads.",
        prof_count(count).text, prof_duration_ns(ns).text);
    prof_number(draft, "fills", (double)count, PROF_NUMBER_COUNT);
    prof_number(draft, "fill_ns", (double)ns, PROF_NUMBER_NS);
    prof_claim(draft, PROF_SLICE_FILL, ns);
    prof_places(judge, draft, &spots);
}

/* ---- registry -------------------------------------------------------------------------------- */

const struct prof_rule prof_rules_memory[] = {
    {.page = {.id = "dead-memset",
              .title = "Memory filled and then written over",
              .fires = "Three fills or more that are followed in their stream at once by a copy to "
                       "the device of as many bytes.",
              .why = "The fill's values are never read.",
              .fix = "Leave the fill out.",
              .cuda = "No cudaMemset before a cudaMemcpy of the whole buffer.",
              .opencl = "No clEnqueueFillBuffer before a write of the whole buffer.",
              .pytorch = "torch.empty instead of torch.zeros before copy_().",
              .bound = "The fills' time.",
              .limits = "Addresses are not recorded: that it is the same buffer is concluded from "
                        "order and size.",
              .needs = "fills and transfers"},
     .judge = dead_memset},
    {.page = {.id = "memory-leak",
              .title = "Memory that grows with every step",
              .fires = "Five blocks or more, one in every second step, allocated in the part that "
                       "repeats and not freed when the process ended.",
              .why = "The run ends when the memory does.",
              .fix = "Free at the end of the step, or keep one buffer.",
              .cuda = "cudaFree; compute-sanitizer --leak-check full tells where.",
              .opencl = "clReleaseMemObject for each clCreateBuffer and clRetainMemObject.",
              .pytorch =
                  "`loss.item()` instead of keeping `loss`; no lists of tensors with graphs.",
              .bound = "None in time; bytes.",
              .limits = "A framework's cache that still grows looks alike.",
              .needs = "allocations, and a part that repeats"},
     .judge = memory_leak},
    {.page = {.id = "memory-pressure",
              .title = "Device memory is nearly full",
              .fires = "At the peak 80 % of the device's memory or more is allocated.",
              .why = "The next larger batch, another process, or fragmentation ends the run; "
                     "libraries fall back to slower algorithms that need less workspace.",
              .fix =
                  "Smaller batches with accumulated gradients, narrower types, recomputation, or "
                  "earlier frees; the places are the largest blocks at the peak.",
              .cuda = "cudaMemGetInfo before choosing a batch; cudaMallocAsync with "
                      "cudaMemPoolTrimTo.",
              .opencl = "CL_DEVICE_GLOBAL_MEM_SIZE before choosing a batch.",
              .pytorch = "torch.utils.checkpoint; gradient accumulation; "
                         "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
              .bound = "None in time; bytes. The projection adds what steps allocate once more.",
              .limits =
                  "Memory of the context, of other processes and of libraries' static data is "
                  "not counted.",
              .needs = "allocations, and the device's memory size"},
     .judge = memory_pressure},
    {.page = {.id = "memory-peak",
              .title = "Who held the memory at its peak",
              .fires = "The peak is 5 % of the device's memory or more. Always info.",
              .why = "To need less, begin with what is largest when most is allocated.",
              .fix = "Free or shrink the blocks in the places, or make them later.",
              .cuda = "cudaFreeAsync as soon as the last use is queued.",
              .opencl = "clReleaseMemObject as soon as the last use is queued.",
              .pytorch = "torch.cuda.memory._record_memory_history for the stacks.",
              .bound = "None in time; bytes.",
              .limits = "A framework's pool is seen as its large blocks.",
              .needs = "allocations"},
     .judge = memory_peak},
    {.judge = NULL},
};
