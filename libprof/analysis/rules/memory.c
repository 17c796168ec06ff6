/* Rules about device memory: which call paths held the peak, what is never freed, how near the
 * limit is, and memsets that are never read. All but the last are about bytes and have no price in
 * time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/rules/judge.h"
#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "libprof/base/utf8.h"
#include "libprof/wire/command.h"
#include "libprof/wire/memory.h"

static bool on_device(const struct prof_judge *judge, const struct prof_lifetime *l)
{
    return l->kind != WIRE_MEMORY_PINNED && l->kind != WIRE_MEMORY_PAGEABLE &&
           (!l->device || l->device == judge->device->id);
}

/* Findings about bytes are reported of the main phase only. */
static bool judges_main_phase(const struct prof_judge *judge)
{
    const struct prof_phases *phases = &judge->facts->phases;
    return judge->facts->phase == &phases->list.data[phases->main];
}

/* ---- the peak -------------------------------------------------------------------------------- */

struct peak {
    int64_t bytes, time;
    int64_t steady;                               /* of it, made before the iterations */
    const struct prof_lifetime *top[PROF_PLACES]; /* largest that live then */
    const struct prof_memory_site *holder;        /* call path that held most; NULL = none */
};

static const struct prof_memory_place *device_memory_place(const struct prof_judge *judge)
{
    for (size_t i = 0; i < judge->memory->place_count; i++) {
        const struct prof_memory_place *place = &judge->memory->places[i];
        if (place->kind < 0 && !place->host &&
            (!place->device || place->device == judge->device->id))
            return place;
    }
    return NULL;
}

static bool is_here(const struct prof_judge *judge, const struct prof_memory_site *site)
{
    return !site->host && (!site->device || site->device == judge->device->id);
}

static void add_top(struct peak *peak, const struct prof_lifetime *l)
{
    for (int k = 0; k < PROF_PLACES && l; k++) {
        if (peak->top[k] && peak->top[k]->bytes >= l->bytes)
            continue;
        const struct prof_lifetime *less = peak->top[k];
        peak->top[k] = l;
        l = less;
    }
}

static struct peak find_peak(const struct prof_judge *judge)
{
    const struct prof_facts *f = judge->facts;
    const struct prof_memory_place *place = device_memory_place(judge);
    struct peak peak = {0};
    if (!judges_main_phase(judge) || !place || place->peak_bytes == PROF_UNKNOWN)
        return peak;
    peak.bytes = place->peak_bytes;
    peak.time = place->peak_ns;
    for (size_t i = 0; i < judge->memory->site_count && !peak.holder; i++) {
        const struct prof_memory_site *site = &judge->memory->sites[i];
        if (is_here(judge, site) && site->use.held_bytes > 0)
            peak.holder = site;
    }
    for (size_t i = 0; i < f->lifetimes.count; i++) {
        const struct prof_lifetime *l = &f->lifetimes.data[i];
        if (!on_device(judge, l) || l->start > peak.time || l->end <= peak.time)
            continue;
        if (l->start < f->begin)
            peak.steady = prof_add(peak.steady, l->bytes);
        add_top(&peak, l);
    }
    return peak;
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
    struct peak peak = find_peak(judge);
    const struct prof_device *device = judge->device->device;
    if (peak.bytes <= 0 || !device || device->memory_bytes <= 0 ||
        peak.bytes < device->memory_bytes / 20)
        return;
    int64_t largest = peak.top[0] ? peak.top[0]->bytes : 0;
    struct prof_draft *draft = prof_found(judge, 0.9);
    prof_numbers(draft, {"peak_bytes", (double)peak.bytes},
                 {"peak_share", (double)peak.bytes / (double)device->memory_bytes},
                 {"peak_at_ns", (double)peak.time}, {"largest_bytes", (double)largest},
                 {"steady_bytes", (double)peak.steady});
    prof_say(
        draft,
        "At the peak {peak_bytes} were allocated at once, {peak_share} of the device's memory; the "
        "largest block is {largest_bytes}, {steady_bytes} were made before the iterations");
    if (peak.holder) {
        prof_numbers(draft, {"holder_share", peak.holder->held_share});
        prof_say(draft, "; {holder_share} is held by %s", prof_short_name(peak.holder->brief).text);
    }
    prof_say(draft, ".");
    draft->about_memory = true;
    draft->most = PROF_SEVERITY_INFO;
    draft->finding.bytes = peak.bytes;
    place_holders(judge, draft, &peak);
}

#define PRESSURE 0.8

static void memory_pressure(struct prof_judge *judge)
{
    const struct prof_device *device = judge->device->device;
    if (!device || device->memory_bytes <= 0) {
        prof_abstain(judge, "needs the device's memory size");
        return;
    }
    struct peak peak = find_peak(judge);
    double share = (double)peak.bytes / (double)device->memory_bytes;
    if (share < PRESSURE)
        return;
    int64_t moving = peak.bytes - peak.steady;
    struct prof_draft *draft = prof_found(judge, 0.7);
    prof_numbers(draft, {"peak_bytes", (double)peak.bytes},
                 {"capacity_bytes", (double)device->memory_bytes}, {"peak_share", share},
                 {"next_bytes", (double)prof_add(peak.bytes, moving)});
    prof_say(draft, "{peak_bytes} of {capacity_bytes} of device memory were allocated at the peak "
                    "({peak_share}). Twice the work in an iteration would need {next_bytes} if "
                    "what the iterations allocate doubles; other processes' memory comes on top.");
    draft->about_memory = true;
    draft->most = PROF_SEVERITY_WARNING;
    draft->finding.bytes = peak.bytes;
    place_holders(judge, draft, &peak);
}

/* ---- kept ------------------------------------------------------------------------------------ */

/* Which of the blocks of a path are shown as places: the largest that outlive the steps. */
static void spot_kept(const struct prof_judge *judge, struct prof_spots *spots)
{
    const struct prof_facts *f = judge->facts;
    for (size_t i = 0; i < f->lifetimes.count; i++) {
        const struct prof_lifetime *l = &f->lifetimes.data[i];
        if (on_device(judge, l) && l->end >= f->end && prof_facts_called(f, l->start) &&
            l->kind != WIRE_MEMORY_DEVICE_STATIC)
            prof_spots_add(spots,
                           (struct prof_spot){l->start, f->end_ns - l->start, 0, l->thread, 0});
    }
}

/* What leaks: call paths that go on keeping memory from step to step. Of several phases the one
 * that grows most: an iteration of one keeps nothing of another. */
#define ENDLESS 1e7 /* iterations: a leak that fills no memory until then is info */

struct leaks {
    int64_t paths, count, bytes;
    double growth;
    const char *phase;
    const struct prof_memory_site *worst;
};

static struct leaks sum_leaks(const struct prof_judge *judge)
{
    const struct prof_memory_profile *m = judge->memory;
    struct leaks leaks = {0};
    leaks.growth =
        prof_memory_leak_growth(m, m->sites, m->site_count, judge->device->id, &leaks.phase);
    for (size_t i = 0; i < m->site_count; i++) {
        const struct prof_memory_site *site = &m->sites[i];
        if (!is_here(judge, site) || site->verdict != PROF_MEMORY_LEAK ||
            site->phase != leaks.phase)
            continue;
        leaks.paths++;
        leaks.count += site->use.kept_count;
        leaks.bytes = prof_add(leaks.bytes, site->use.kept_bytes);
        if (!leaks.worst || site->growth_bytes > leaks.worst->growth_bytes)
            leaks.worst = site;
    }
    return leaks;
}

/* Within the iterations that a run may have? */
static bool fills_memory(const struct prof_judge *judge, double growth)
{
    const struct prof_device *device = judge->device->device;
    return !device || device->memory_bytes <= 0 || growth * ENDLESS >= (double)device->memory_bytes;
}

static void memory_leak(struct prof_judge *judge)
{
    enum prof_state state = prof_info(judge->facts->capture)->state;
    struct leaks leaks = judges_main_phase(judge) ? sum_leaks(judge) : (struct leaks){0};
    int64_t steps = leaks.worst ? leaks.worst->steps : 0;
    if (state == PROF_STATE_RECORDING || state == PROF_STATE_CLOSING || state == PROF_STATE_KEPT ||
        leaks.count < 5 || leaks.count < steps / 2)
        return;
    struct prof_spots spots = {0};
    spot_kept(judge, &spots);
    bool several = judge->memory->phase_count > 1 && leaks.phase;
    char *phase = several ? prof_report_fit(leaks.phase, PROF_PHASE_CELLS) : NULL;
    struct prof_draft *draft = prof_found(judge, 0.7);
    prof_numbers(draft, {"blocks", (double)leaks.count}, {"bytes", (double)leaks.bytes},
                 {"paths", (double)leaks.paths});
    prof_number(draft, "bytes_per_iteration", leaks.growth, PROF_NUMBER_BYTES);
    prof_say(
        draft,
        "{blocks|block|blocks} ({bytes}) of {paths|call path|call paths} are kept, and every "
        "iteration%s%s keeps {bytes_per_iteration} more: memory grows without end. Most of it: %s.",
        phase ? " of " : "", phase ? phase : "", leaks.worst->brief);
    free(phase);
    draft->about_memory = true;
    draft->most = fills_memory(judge, leaks.growth) ? PROF_SEVERITY_WARNING : PROF_SEVERITY_INFO;
    draft->finding.bytes = leaks.bytes;
    prof_places(judge, draft, &spots);
}

/* ---- no room --------------------------------------------------------------------------------- */

/* Of a call path, its innermost call. */
static struct prof_short innermost_caller(const char *brief)
{
    char call[256];
    const char *end = strstr(brief, " < ");
    size_t length = end ? (size_t)(end - brief) : strlen(brief);
    snprintf(call, sizeof call, "%.*s", (int)(length < sizeof call ? length : sizeof call), brief);
    return prof_short_name(call);
}

static void out_of_memory(struct prof_judge *judge)
{
    const struct prof_memory_profile *m = judge->memory;
    if (!m->failure_count)
        return;
    const struct prof_memory_failure *f = &m->failures[0];
    const struct prof_memory_site *holder = f->holder_count ? &m->sites[f->holders[0].site] : NULL;
    struct prof_draft *draft = prof_found(judge, 1);
    prof_numbers(
        draft, {"failures", (double)m->failed},
        {"asked_bytes", f->bytes == PROF_UNKNOWN ? NAN : (double)f->bytes},
        {"live_bytes", f->live_bytes == PROF_UNKNOWN ? NAN : (double)f->live_bytes},
        {"capacity_bytes", f->capacity_bytes == PROF_UNKNOWN ? NAN : (double)f->capacity_bytes});
    prof_say(draft,
             "{failures|allocation|allocations} failed for lack of memory. The first, by %s, "
             "requested {asked_bytes} while {live_bytes} of {capacity_bytes} were allocated%s%s.",
             innermost_caller(f->brief).text, holder ? ", most of it by " : "",
             holder ? innermost_caller(holder->brief).text : "");
    draft->about_memory = true;
    draft->most = PROF_SEVERITY_WARNING;
    draft->finding.bytes = f->bytes;
    prof_place(judge, draft, &(struct prof_spot){f->time_ns, 1, 0, (uint32_t)f->thread, 0});
}

/* ---- kept, and not used ---------------------------------------------------------------------- */

#define UNUSED_SHARE 0.25
#define UNUSED_OF_DEVICE 0.05

/* What PyTorch's allocator had of the driver at the peak, and what of it was in blocks. */
static void see_through(const struct prof_judge *judge, int64_t *reserved, int64_t *used)
{
    for (size_t i = 0; i < judge->memory->place_count; i++) {
        const struct prof_memory_place *place = &judge->memory->places[i];
        if (place->host || place->device != judge->device->id)
            continue;
        if (place->kind == WIRE_MEMORY_BLOCK)
            *used = place->use.held_bytes;
        else if (place->kind == WIRE_MEMORY_DEVICE)
            *reserved = place->use.held_bytes;
    }
}

static void idle_pool(struct prof_judge *judge)
{
    const struct prof_device *device = judge->device->device;
    int64_t reserved = 0, used = 0;
    if (!device || device->memory_bytes <= 0)
        return;
    see_through(judge, &reserved, &used);
    bool blocks = used > 0;
    for (size_t i = 0; i < judge->memory->pool_count && !blocks; i++) {
        const struct prof_pool *pool = &judge->memory->pools[i];
        const struct prof_device *its = prof_device(judge->facts->capture, pool->device);
        if (!its || its->physical != judge->device->id || pool->unused_bytes == PROF_UNKNOWN ||
            pool->unused_bytes <= reserved - used)
            continue;
        reserved = pool->peak_bytes;
        used = pool->peak_bytes - pool->unused_bytes;
    }
    int64_t unused = reserved && (used || !blocks) ? reserved - used : 0;
    if (!(blocks || judge->memory->pool_count) ||
        (double)unused < UNUSED_SHARE * (double)reserved ||
        (double)unused < UNUSED_OF_DEVICE * (double)device->memory_bytes)
        return;
    struct prof_draft *draft = prof_found(judge, 0.5);
    prof_numbers(draft, {"reserved_bytes", (double)reserved}, {"used_bytes", (double)used},
                 {"unused_bytes", (double)unused},
                 {"unused_share", (double)unused / (double)device->memory_bytes});
    prof_say(
        draft,
        "%s holds {reserved_bytes} and uses {used_bytes} of it: {unused_bytes}, {unused_share} of "
        "the device's memory, is idle, in pieces that may be too small for the next allocation.",
        blocks ? "PyTorch's allocator" : "A memory pool");
    draft->about_memory = true;
    draft->most = PROF_SEVERITY_INFO;
    draft->finding.bytes = unused;
}

/* ---- fills that are written over ------------------------------------------------------------- */

/* Smaller fills prepare counters and flags. */
#define LEAST_FILL (64 << 10)

/* Does the launch have a thread for each element of so many bytes, of a usual size? Its threads are
 * as many, or up to a whole block more. */
static bool has_thread_for_each(const struct prof_config *config, int64_t bytes)
{
    int64_t items = prof_config_items(config), block = prof_config_threads(config);
    static const int64_t elements[] = {1, 2, 4, 8, 12, 16, 32};
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) {
        int64_t count = bytes / elements[i];
        if (bytes % elements[i] == 0 && items >= count && items < count + (block ? block : 1))
            return true;
    }
    return false;
}

/* Fills that what comes next in their stream writes over: a memcpy of as many bytes, or as it seems
 * a kernel. */
struct fills {
    int64_t copied, computed, copied_ns, computed_ns;
    struct prof_spots spots;
};

static struct fills find_dead_fills(const struct prof_judge *judge)
{
    const struct prof_facts *f = judge->facts;
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    struct prof_op fill = {0};
    bool filled = false;
    enum prof_op_kind kind;
    struct fills found = {0};
    while ((op = prof_facts_next_in_phase(f, &walk, &kind))) {
        const struct prof_shape *shape = &f->shapes.data[op->shape];
        if (shape->device != judge->device_index || !prof_facts_launched(f, op))
            continue;
        int64_t bytes = filled ? f->shapes.data[fill.shape].bytes : 0;
        bool next = filled && op->stream == fill.stream;
        bool copied = next && kind == PROF_OP_TRANSFER && shape->copy_kind == WIRE_COPY_HTOD &&
                      shape->bytes > 0 && shape->bytes == bytes;
        bool computed = next && kind == PROF_OP_KERNEL && bytes >= LEAST_FILL &&
                        has_thread_for_each(shape->config, bytes);
        found.copied += copied;
        found.copied_ns += copied ? fill.duration : 0;
        found.computed += computed;
        found.computed_ns += computed ? fill.duration : 0;
        if (copied || computed)
            prof_spots_add(&found.spots, (struct prof_spot){fill.start, fill.duration, fill.stream,
                                                            fill.thread, fill.shape});
        filled = kind == PROF_OP_MEMSET;
        fill = filled ? *op : fill;
    }
    return found;
}

static void dead_memset(struct prof_judge *judge)
{
    struct fills found = find_dead_fills(judge);
    bool computed = found.computed > found.copied;
    if (found.copied + found.computed < 3)
        return;
    struct prof_draft *draft = prof_found(judge, computed ? 0.4 : 0.6);
    prof_numbers(draft, {"memsets", (double)(found.copied + found.computed)},
                 {"before_kernels", (double)found.computed});
    prof_claim(judge, draft, "memset_ns", PROF_SLICE_FILL, found.copied_ns + found.computed_ns);
    if (!found.computed)
        prof_say(draft, "{memsets|memset is|memsets are} followed at once by an H2D memcpy of as "
                        "many bytes: {memset_ns} for values that are never read.");
    else
        prof_say(draft,
                 "{memsets|memset is|memsets are} followed at once by what seems to write "
                 "all of those bytes, {before_kernels} of them by a kernel with a thread for "
                 "each element: {memset_ns} for values that nothing may read.");
    prof_places(judge, draft, &found.spots);
}

/* ---- registry -------------------------------------------------------------------------------- */

const struct prof_rule prof_rules_memory[] = {
    {.page = {.id = "dead-memset",
              .title = "Memset that is written over at once",
              .fires = "Three memsets or more that are followed in their stream at once by an H2D "
                       "memcpy of as many bytes; or, of 64 KiB or more, by a kernel with a thread "
                       "for each 1, 2, 4, 8, 12, 16 or 32 of these bytes.",
              .why = "The memset's values are never read.",
              .fix = "Remove the memset where what follows it writes every element. A kernel that "
                     "adds to zeros can write instead.",
              .cuda = "No cudaMemset or cudaMemsetAsync before the cudaMemcpy, or the kernel, "
                      "that writes the whole buffer.",
              .opencl = "No clEnqueueFillBuffer before the clEnqueueWriteBuffer, or the kernel, "
                        "that writes the whole buffer.",
              .pytorch = "torch.empty instead of torch.zeros for what `copy_()` or a kernel fills.",
              .bound = "The memsets' time.",
              .limits = "Addresses are not recorded: that it is the same buffer is concluded from "
                        "order and size. Whether a kernel writes all of it is not seen, which "
                        "lowers the confidence.",
              .needs = "memcpys and memsets"},
     .slows_kernels = true,
     .judge = dead_memset},
    {.page = {.id = "memory-leak",
              .title = "Memory that grows with every step",
              .fires =
                  "Call paths whose blocks steps go on keeping: in three steps or more, in the "
                  "second half of the run at least half as often as in the first, and five blocks "
                  "or more, one in every second step. What stops growing is no leak.",
              .why = "The run fails when memory is exhausted.",
              .fix = "Free at the end of each iteration, or keep one buffer for all of "
                     "them.",
              .cuda = "A cudaFree for each cudaMalloc of the places; compute-sanitizer "
                      "--leak-check full PROGRAM lists what is never freed.",
              .opencl = "A clReleaseMemObject for each clCreateBuffer and "
                        "clRetainMemObject.",
              .pytorch = "Keep `loss.item()` or `loss.detach()` instead of `loss`, and no "
                         "lists of tensors with graphs; "
                         "torch.cuda.memory._record_memory_history() shows who allocates.",
              .jax = "Keep float(loss) every k steps, not lists of arrays; jax.live_arrays() "
                     "lists what is alive.",
              .bound = "None in time; bytes.",
              .limits = "A framework's cache that still grows looks alike. perfkit report --memory "
                        "lists every path, with perfkit run --stacks=alloc by source line.",
              .needs = "allocations, and iterations"},
     .judge = memory_leak},
    {.page = {.id = "out-of-memory",
              .title = "Allocations that failed for lack of memory",
              .fires = "An allocation fails for lack of memory.",
              .why =
                  "The program ends, or does without and is slower; a framework empties its cache "
                  "and tries again.",
              .fix = "Free or shrink what the largest holders keep, before the call "
                     "that failed.",
              .cuda = "cudaMemGetInfo before a batch is chosen; cudaMemPoolTrimTo before "
                      "large allocations outside of the pool.",
              .opencl = "Split the buffer: CL_DEVICE_MAX_MEM_ALLOC_SIZE limits one, often "
                        "to a quarter of the device.",
              .pytorch = "A smaller batch with gradient accumulation; "
                         "torch.utils.checkpoint; "
                         "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True against "
                         "fragmentation.",
              .jax = "jax.jit(step, donate_argnums=0) for the state; jax.checkpoint for the "
                     "largest layers; a smaller batch with gradients summed by jax.lax.scan.",
              .bound = "None in time; the bytes that were requested.",
              .limits = "CUPTI does not report how much a failed cudaMallocAsync requested.",
              .needs = "API calls and allocations"},
     .per_capture = true,
     .judge = out_of_memory},
    {.page = {.id = "idle-pool",
              .title = "Memory that a pool keeps unused",
              .fires =
                  "Of what a pool, or PyTorch's caching allocator at the peak, holds a quarter or "
                  "more is not used, and that is 5 % of the device's memory or more.",
              .why = "Other allocations fail although memory is free: the pool keeps it, or it is "
                     "in pieces.",
              .fix = "Trim the pool between phases, or allocate the large buffers first.",
              .cuda = "cudaMemPoolTrimTo(pool, 0) between phases; a smaller "
                      "cudaMemPoolAttrReleaseThreshold.",
              .pytorch = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or "
                         "max_split_size_mb:128; torch.cuda.empty_cache() between phases, "
                         "not in the loop.",
              .jax = "XLA_PYTHON_CLIENT_PREALLOCATE=false, or a smaller "
                     "XLA_CLIENT_MEM_FRACTION.",
              .bound = "None in time; bytes.",
              .limits = "PyTorch's blocks are known with perfkit run --pytorch only; the size of a "
                        "pool is known when memory is allocated from it or freed to it.",
              .needs = "memory pools, or PyTorch's blocks"},
     .judge = idle_pool},
    {.page = {.id = "memory-pressure",
              .title = "Device memory is nearly full",
              .fires = "At the peak 80 % of the device's memory or more is allocated.",
              .why = "The next larger batch, another process, or fragmentation ends the run; "
                     "libraries fall back to slower algorithms that need less workspace.",
              .fix = "Use smaller batches or narrower types, or free earlier. The "
                     "places are the largest blocks at the peak; recomputing them "
                     "instead of keeping them helps too.",
              .cuda = "cudaMemGetInfo before a batch is chosen; cudaFreeAsync right "
                      "after the last use; cudaMemPoolTrimTo(pool, 0) between phases.",
              .opencl = "CL_DEVICE_GLOBAL_MEM_SIZE before a batch is chosen; "
                        "clReleaseMemObject right after the last use.",
              .pytorch = "torch.utils.checkpoint for the largest layers; gradient "
                         "accumulation over smaller batches; "
                         "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
              .jax = "jax.jit(step, donate_argnums=0) for the state; jax.checkpoint for the "
                     "largest layers; XLA_PYTHON_CLIENT_PREALLOCATE=false allocates only what is "
                     "used.",
              .bound = "None in time; bytes. The projection adds what steps allocate once more.",
              .limits = "Memory of the context, of other processes and of libraries' static data "
                        "is not counted.",
              .needs = "allocations, and the device's memory size"},
     .judge = memory_pressure},
    {.page = {.id = "memory-peak",
              .title = "Who held the memory at its peak",
              .fires = "The peak is 5 % of the device's memory or more. Always info.",
              .why = "To lower the peak, begin with the largest blocks that are live at it.",
              .fix = "Free or shrink the blocks in the places, or allocate them later.",
              .cuda = "cudaFreeAsync(block, stream) as soon as the last use is queued.",
              .opencl = "clReleaseMemObject as soon as the last use is queued.",
              .pytorch = "`del` of tensors that the rest of the step does not need; "
                         "torch.cuda.memory._record_memory_history() shows the stack of "
                         "each block.",
              .jax = "jax.jit(step, donate_argnums=0) for the state; jax.checkpoint for the "
                     "largest layers; jax.profiler.save_device_memory_profile() shows who holds "
                     "the arrays.",
              .bound = "None in time; bytes.",
              .limits = "A framework's pool is seen as its large blocks, but for PyTorch's with "
                        "perfkit run --pytorch.",
              .needs = "allocations"},
     .judge = memory_peak},
    {.judge = NULL},
};
