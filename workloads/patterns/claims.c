/* What the seed document claims, as pairs of results. */
#include <math.h>
#include <string.h>

#include "workloads/patterns/workload.h"

#define GAIN 1.1 /* from which on a claim holds, and needs no word about why it does not */

enum metric { WALL, KERNEL, OCCUPANCY };

static const struct {
    const char *claim;
    const char *before, *after; /* variants */
    enum metric metric;
    const char *seed;
    const char *on_cpu; /* what a device does instead whose memory and cores are the host's */
} claims[] = {
    {"pinned memory", "copy-pageable", "copy-pinned", WALL, "2-6x",
     "the device's memory is the host's: both are a memcpy"},
    {"preallocation", "alloc-each-iteration", "alloc-once", WALL, "210 ms of CPU time gone; 1.5-2x",
     "an allocation is a malloc; its pages are faulted in anew"},
    {"batched GEMM", "gemm-loop", "gemm-batched", WALL, "31x (40 calls)",
     "one product occupies one core: the batch fills all, and launches are saved"},
    {"batch size (FLOP rate)", "batch-32", "batch-256", WALL, "8.5x (32 to 256)",
     "a batch of 32 fills the cores already"},
    {"launch bounds", "bounds-none", "bounds-256-8", OCCUPANCY, "better occupancy", NULL},
    {"launch bounds", "bounds-none", "bounds-256-8", KERNEL, "better occupancy", NULL},
    {"vector access", "load-scalar", "load-float4", KERNEL, "1.28x bandwidth",
     "the compiler makes vectors of neighbouring items by itself"},
    {"shared memory", "smem-none", "smem-prefetch", KERNEL, "1.24x",
     "group memory is ordinary memory: the copy into it is extra work"},
    {"restrict", "restrict-off", "restrict-on", KERNEL, "more aggressive loads",
     "OpenCL's compiler makes gathers of an item's strided loop then; in C the memory is the "
     "limit"},
    {"CUDA graphs", "launch-many", "graph-replay", WALL, "up to 195x micro, 1.1-2x end to end",
     NULL},
    {"gradient accumulation", "batch-large", "accumulate", WALL, "fits in the limit", NULL},
};

static const struct result *row_of(const struct results *results, const char *variant)
{
    for (size_t i = 0; i < results->count; i++)
        if (strcmp(results->rows[i].variant, variant) == 0)
            return &results->rows[i];
    return NULL;
}

static double value_of(const struct result *row, enum metric metric)
{
    if (row->skipped[0])
        return NAN;
    switch (metric) {
    case WALL:
        return row->measured.wall.median;
    case KERNEL:
        return row->measured.kernel.median;
    case OCCUPANCY:
        return row->occupancy;
    }
    return NAN;
}

void claims_evaluate(const struct results *results, const struct dev_info *info,
                     void (*emit)(void *context, const struct evidence *evidence), void *context)
{
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
        struct evidence e = {.claim = claims[i].claim,
                             .seed = claims[i].seed,
                             .before = row_of(results, claims[i].before),
                             .after = row_of(results, claims[i].after),
                             .is_time = claims[i].metric != OCCUPANCY,
                             .why = info->is_cpu ? claims[i].on_cpu : NULL};

        if (!e.before || !e.after)
            continue;
        e.before_value = value_of(e.before, claims[i].metric);
        e.after_value = value_of(e.after, claims[i].metric);
        if (!e.is_time && isnan(e.before_value) && isnan(e.after_value))
            continue; /* the time of the same pair says why */
        if (e.why && e.before_value >= GAIN * e.after_value)
            e.why = NULL;
        if (e.after->skipped[0])
            e.why = e.after->skipped;
        else if (e.before->skipped[0])
            e.why = e.before->skipped;
        emit(context, &e);
    }
}
