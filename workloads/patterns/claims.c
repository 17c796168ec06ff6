/* What the seed document claims, as pairs of results. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "workloads/patterns/workload.h"

#define LIKE 1.1 /* times that are alike */

enum metric { WALL, KERNEL, HOST, OCCUPANCY };

static const struct {
    const char *claim;
    const char *before, *after; /* variants */
    enum metric metric;
    const char *seed;
    double claimed;
    const char *on_cpu; /* what a device does instead whose memory and cores are the host's */
} pairs[] = {
    {"pinned memory", "copy-pageable", "copy-pinned", WALL, "2-6x", 2,
     "the device's memory is the host's: both are a memcpy"},
    {"preallocation", "alloc-each-iteration", "alloc-once", WALL, "210 ms of CPU time gone; 1.5-2x",
     1.5, "an allocation is a malloc; its pages are faulted in anew"},
    {"batched GEMM", "gemm-loop", "gemm-batched", WALL, "31x (40 calls)", 31,
     "one product occupies one core: the batch fills all, and launches are saved"},
    {"batch size (FLOP rate)", "batch-32", "batch-256", WALL, "8.5x (32 to 256)", 8.5,
     "a batch of 32 fills the cores already"},
    {"launch bounds", "bounds-none", "bounds-256-8", OCCUPANCY, "better occupancy", CLAIM_BETTER,
     NULL},
    {"launch bounds, time", "bounds-none", "bounds-256-8", KERNEL, "none given", 0, NULL},
    {"vector access", "load-scalar", "load-float4", KERNEL, "1.28x bandwidth", 1.28,
     "the compiler makes vectors of neighbouring items by itself"},
    {"shared memory", "smem-none", "smem-prefetch", KERNEL, "1.24x", 1.24,
     "group memory is ordinary memory: the copy into it is extra work"},
    {"restrict", "restrict-off", "restrict-on", KERNEL, "more aggressive loads", CLAIM_BETTER,
     "OpenCL's compiler makes gathers of an item's strided loop then; in C the memory is the "
     "limit"},
    {"CUDA graphs, end to end", "launch-many", "graph-replay", WALL, "1.1-2x end to end", 1.1,
     NULL},
    {"CUDA graphs, the host's launches", "launch-many", "graph-replay", HOST, "up to 195x micro", 0,
     NULL},
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
    case HOST:
        return row->measured.host.median;
    case OCCUPANCY:
        return row->occupancy;
    }
    return NAN;
}

/* How near the variant is to what limits it. */
static void note_limit(struct claim *claim, const struct results *results,
                       const struct result *before, const struct result *after)
{
    double share = share_of_ceiling(results, after);

    if (after->skipped[0] || before->skipped[0])
        return;
    if (!isnan(share))
        snprintf(claim->figure, sizeof claim->figure,
                 "%s moves its bytes at %.0f %% of the copy bandwidth, %s at %.0f %%",
                 before->variant, 100 * share_of_ceiling(results, before), after->variant,
                 100 * share);
    else if (before->measured.tally.launches > after->measured.tally.launches)
        snprintf(claim->figure, sizeof claim->figure,
                 "%u launches of %.1f us before, %u of %.1f us after",
                 before->measured.tally.launches,
                 before->measured.wall.median / before->measured.tally.launches / 1e3,
                 after->measured.tally.launches,
                 after->measured.wall.median / after->measured.tally.launches / 1e3);
}

/* Where each launch takes as long before as after, it is their number alone that gains. */
static void excuse_launches(struct claim *claim, const struct result *before,
                            const struct result *after)
{
    double launches = before->measured.tally.launches;
    double fewer = launches / after->measured.tally.launches;
    double longer = claim->after_value / claim->before_value * fewer; /* of one launch */

    if (!claim->excuse && after->measured.tally.launches > 1 && longer < LIKE &&
        fewer < claim->claimed)
        claim->excuse = "every launch takes as long before as after: fewer of them gain no more "
                        "than their number";
}

/* A launch and the wait for it remain however much is put into the launch. Without them on either
 * side the gain may be what was claimed; how much of the time after they are is said with it. */
static void excuse_wait(struct claim *claim, const struct results *results,
                        const struct result *before, const struct result *after)
{
    const struct result *none = row_of(results, "gemm-none");
    size_t used = strlen(claim->figure);
    double wait_ns, rest;

    if (strcmp(after->variant, "gemm-batched") != 0 || before->skipped[0] || after->skipped[0] ||
        !none || none->skipped[0])
        return;
    wait_ns = none->measured.wall.median;
    rest = (claim->before_value - wait_ns) / (claim->after_value - wait_ns);
    if (wait_ns >= claim->after_value)
        rest = INFINITY;
    snprintf(claim->figure + used, sizeof claim->figure - used,
             "; an empty launch and its wait are %.1f us, %.0f %% of that", wait_ns / 1e3,
             100 * wait_ns / claim->after_value);
    if (!claim->excuse && rest >= claim->claimed)
        claim->excuse = "the launch and the wait for it that no batching removes: beside them it "
                        "gains what was claimed";
}

static void add_pair(const struct results *results, const struct dev_info *info, size_t pair,
                     const struct result *before, const struct result *after, struct claims *claims)
{
    double values[] = {value_of(before, pairs[pair].metric), value_of(after, pairs[pair].metric)};
    struct claim *claim;

    if (pairs[pair].metric == OCCUPANCY && isnan(values[0]) && isnan(values[1]) &&
        !before->skipped[0] && !after->skipped[0])
        return; /* this backend does not tell: the time of the same pair stands alone */
    claim = claims_add(claims, pairs[pair].claim, pairs[pair].seed);
    if (!claim)
        return;
    snprintf(claim->before, sizeof claim->before, "%s", before->variant);
    snprintf(claim->after, sizeof claim->after, "%s", after->variant);
    claim->before_value = values[0];
    claim->after_value = values[1];
    claim->unit = pairs[pair].metric == OCCUPANCY ? CLAIM_SHARE : CLAIM_NS;
    claim->claimed = pairs[pair].claimed;
    claim->excuse = info->is_cpu ? pairs[pair].on_cpu : NULL;
    if (before->skipped[0] || after->skipped[0])
        claim->unavailable = after->skipped[0] ? after->skipped : before->skipped;
    note_limit(claim, results, before, after);
    excuse_launches(claim, before, after);
    excuse_wait(claim, results, before, after);
}

/* The large batch must not fit, and the same number of samples be trained on in parts. */
static void add_accumulation(const struct results *results, struct claims *claims)
{
    const struct result *large = row_of(results, "batch-large"),
                        *parts = row_of(results, "accumulate");
    struct claim *claim =
        large && parts ? claims_add(claims, "gradient accumulation", "fits in the limit") : NULL;

    if (!claim)
        return;
    snprintf(claim->before, sizeof claim->before, "batch-large, samples");
    snprintf(claim->after, sizeof claim->after, "accumulate, samples");
    claim->before_value = large->skipped[0] ? 0 : results->large_batch;
    claim->after_value = parts->skipped[0] ? 0 : results->large_batch;
    claim->unit = CLAIM_COUNT;
    claim->test = CLAIM_AT_LEAST;
    claim->claimed = results->large_batch;
    if (large->skipped[0])
        snprintf(claim->figure, sizeof claim->figure, "%.*s", (int)sizeof claim->figure - 1,
                 large->skipped);
    else
        claim->unavailable = "the large batch fits here: no limit to stay within";
}

/* A step that a graph cannot record has to run, and to say why it was not recorded. */
static void add_fallback(const struct results *results, struct claims *claims)
{
    const struct result *dynamic = row_of(results, "graph-dynamic");
    struct claim *claim =
        dynamic ? claims_add(claims, "a graph that cannot be captured", "falls back and says why")
                : NULL;

    if (!claim)
        return;
    snprintf(claim->after, sizeof claim->after, "graph-dynamic, launches");
    claim->after_value = dynamic->note[0] ? (double)dynamic->measured.tally.launches : NAN;
    claim->unit = CLAIM_COUNT;
    claim->test = CLAIM_AT_LEAST;
    claim->claimed = 1;
    snprintf(claim->figure, sizeof claim->figure, "%.*s", (int)sizeof claim->figure - 1,
             dynamic->note);
    if (!dynamic->note[0])
        claim->unavailable = dynamic->skipped[0] ? dynamic->skipped : "it gave no reason";
}

void claims_evaluate(const struct results *results, const struct dev_info *info,
                     struct claims *claims)
{
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const struct result *before = row_of(results, pairs[i].before),
                            *after = row_of(results, pairs[i].after);

        if (before && after)
            add_pair(results, info, i, before, after, claims);
    }
    add_fallback(results, claims);
    add_accumulation(results, claims);
}
