/* What the seed document claims, beside what was measured. Its numbers are those of one machine and
 * one size, so bytes and times are held against them only at the sizes of --preset seed. Where it
 * only expects a number and did not measure it, that number stands beside ours and is not held
 * against it; its whole is held against the 7.1x of its own breakdown. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "workloads/common/claims.h"
#include "workloads/transformer/workload.h"

#define SEED_TABLE_BYTES 24e6 /* tables at least that large are the document's */

#define NAIVE_WIDTH 512

enum metric { STEP_NS, TOKEN_NS, KERNEL_NS, MOVED_BYTES, SAVED_BYTES, CACHE_MISSES, ALLOCATIONS };

static const struct {
    const char *claim;
    const char *at;
    const char *before, *after; /* variants */
    enum metric metric;
    enum claim_test test;
    double claimed; /* at the sizes of the document; 0: no number */
    const char *seed;
    const char *on_cpu; /* what a device does instead whose memory and cores are the host's */
    const char *on_gpu; /* and what another does where the claim fails there */
} pairs[] = {
    {"all together", "", "naive", "tuned", TOKEN_NS, CLAIM_GAIN_AT_LEAST, 7.1,
     "7.1x by its breakdown; 22-45x tokens/s expected",
     "copies and allocations are memory operations of the host, small beside the computation",
     NULL},
    {"all together", "sequences in one pass", "naive", "tuned-batched", TOKEN_NS,
     CLAIM_GAIN_AT_LEAST, 7.1, "7.1x by its breakdown; 22-45x tokens/s expected",
     "copies and allocations are memory operations of the host, small beside the computation",
     NULL},
    {"embeddings", "bytes per batch", "embed-host", "embed-device", MOVED_BYTES,
     CLAIM_GAIN_AT_LEAST, 1500, "800 MB to 0.5 KB, 1500x less", NULL, NULL},
    {"embeddings", "time per batch", "embed-host", "embed-device", STEP_NS, CLAIM_GAIN_AT_LEAST, 0,
     "70-80 ms saved", NULL, NULL},
    {"read-only access", "bytes less per batch", "reupload", "cached", SAVED_BYTES, CLAIM_AT_LEAST,
     190e6, "about 200 MB saved", NULL, NULL},
    {"read-only access", "time per batch", "reupload", "cached", STEP_NS, CLAIM_GAIN_AT_LEAST, 0,
     "-", NULL, NULL},
    {"loss on the device", "bytes per batch", "cached", "tuned", MOVED_BYTES, CLAIM_GAIN_AT_LEAST,
     0, "30 ms to 2 ms of copies to the host", NULL, NULL},
    {"transfers", "time per batch", "blocking", "async", STEP_NS, CLAIM_GAIN_AT_LEAST,
     CLAIM_SAVED(0.30), "30-40 % hidden",
     "the device is the host's cores: there is nothing to hide behind",
     "the copies are too small a part of the time"},
    {"allocation", "time per batch", "alloc-per-op", "pool", STEP_NS, CLAIM_GAIN_AT_LEAST, 0,
     "150 ms to 5 ms", NULL, NULL},
    {"allocation", "in a batch, and in all", "alloc-per-op", "pool", ALLOCATIONS, CLAIM_AT_MOST, 10,
     "320 to about 10 in all", NULL, NULL},
    {"tiles", "time per batch", "tile16", "tile-adaptive", STEP_NS, CLAIM_GAIN_AT_LEAST, 2,
     "2-3x on small matrices, 1.5x on large ones",
     "a compiler for CPUs runs the items of a group one after the other",
     "a tile of 8x8 reads each element twice as often as one of 16x16, and that is what it waits "
     "for"},
    {"tiles", "blocks per item", "tile16", "tuned", STEP_NS, CLAIM_GAIN_AT_LEAST, 0,
     "not in the document", NULL, NULL},
    {"products", "ours and cuBLAS's", "batched-cublas", "tuned-batched", KERNEL_NS,
     CLAIM_GAIN_AT_LEAST, 0, "not in the document", NULL, NULL},
    {"model shape", "512", "naive", "shape-512", TOKEN_NS, CLAIM_GAIN_AT_LEAST, 7.1,
     "56 to 400 tokens/s, expected", NULL, NULL},
    {"model shape", "384", "naive", "shape-384", TOKEN_NS, CLAIM_GAIN_AT_LEAST, 0,
     "56 to 600 tokens/s, expected", NULL, NULL},
    {"model shape", "256", "naive", "shape-256", TOKEN_NS, CLAIM_GAIN_AT_LEAST, 0,
     "56 to 800 tokens/s, expected", NULL, NULL},
    {"model shape", "512 to 384", "shape-512", "shape-384", TOKEN_NS, CLAIM_GAIN_AT_LEAST, 0,
     "400 to 600 tokens/s, expected", NULL, NULL},
    {"model shape", "512 to 256", "shape-512", "shape-256", TOKEN_NS, CLAIM_GAIN_AT_LEAST, 0,
     "400 to 800 tokens/s, expected", NULL, NULL},
    {"host cache", "misses", "cpu-512", "cpu-384", CACHE_MISSES, CLAIM_AT_MOST, 0.15,
     "about 50 % to below 15 %", NULL, NULL},
    {"host cache", "time per token", "cpu-512", "cpu-384", TOKEN_NS, CLAIM_GAIN_AT_LEAST, 0,
     "half of the slowdown", NULL, NULL},
};

/* The document's breakdown of a batch, ms. */
static const struct {
    enum component component; /* COMPONENTS: the total */
    const char *claim;
    double gain;
    const char *seed;
} breakdown[] = {
    {TRANSFER_IN, "per batch: transfer in", 16, "80 ms to 5 ms"},
    {COMPUTE, "per batch: compute", 0, "20 ms to 20 ms"},
    {TRANSFER_OUT, "per batch: transfer out", 15, "30 ms to 2 ms"},
    {ALLOCATION, "per batch: allocation", 30, "150 ms to 5 ms"},
    {HOST, "per batch: host", 0, "10 ms to 10 ms"},
    {COMPONENTS, "per batch: total", 7.1, "370 ms to 52 ms, with 80 ms to 10 ms of cache misses"},
};

static double value_of(const struct result *row, enum metric metric)
{
    switch (metric) {
    case STEP_NS:
        return row->measured.wall.median;
    case TOKEN_NS:
        return token_ns(row);
    case KERNEL_NS:
        return row->measured.kernel.median;
    case MOVED_BYTES:
    case SAVED_BYTES:
        return (double)row->measured.tally.transfer_bytes;
    case CACHE_MISSES:
        return row->cache_misses / row->cache_references;
    case ALLOCATIONS: /* a pool's of all batches: its first one makes them all */
        return row->variant->form.alloc_per_op ? row->measured.tally.allocations
                                               : (double)row->pool_allocations;
    }
    return NAN;
}

static enum claim_unit unit_of(enum metric metric)
{
    static const enum claim_unit units[] = {
        [STEP_NS] = CLAIM_NS,        [TOKEN_NS] = CLAIM_NS,       [KERNEL_NS] = CLAIM_NS,
        [MOVED_BYTES] = CLAIM_BYTES, [SAVED_BYTES] = CLAIM_BYTES, [CACHE_MISSES] = CLAIM_SHARE,
        [ALLOCATIONS] = CLAIM_COUNT};

    return units[metric];
}

static bool at_seed_sizes(const struct shape *shape)
{
    return 4.0 * shape->width * (shape->vocabulary + shape->length) >= SEED_TABLE_BYTES;
}

/* What explains a claim: numbers that stand beside it. */
static void explain(const struct results *results, enum metric metric, const struct result *before,
                    const struct result *after, struct claim *c)
{
    double copies = before->measured.transfer.median, wall = before->measured.wall.median;

    if (metric == MOVED_BYTES)
        snprintf(c->figure, sizeof c->figure, "%.3f MB less in each batch",
                 (c->before_value - c->after_value) / 1e6);
    else if (metric == ALLOCATIONS)
        snprintf(c->figure, sizeof c->figure, "%u in a batch after the first",
                 after->measured.tally.allocations);
    else if (metric == CACHE_MISSES && isnan(c->after_value))
        c->unavailable = results->no_cache;
    else if (strcmp(c->before, "blocking") == 0 && copies < wall)
        snprintf(c->figure, sizeof c->figure,
                 "copies are %.1f %% of the time before: hiding them alone gains at most %.2fx",
                 100 * copies / wall, wall / (wall - copies));
}

/* The document's shapes are set against its naive program, which had a width of 512. */
static bool comparable(const struct result *before, const struct result *after)
{
    return !after->variant->width || before->variant->width || before->shape.width == NAIVE_WIDTH;
}

static int add_pair(const struct results *results, const struct dev_info *info, size_t index,
                    struct claims *claims)
{
    const struct result *before = find_result(results, pairs[index].before);
    const struct result *after = find_result(results, pairs[index].after);
    enum metric metric = pairs[index].metric;
    struct claim *c;

    if (!before || !after || !comparable(before, after))
        return 0;
    c = claims_add(claims, pairs[index].claim, pairs[index].seed);
    if (!c)
        return -1;
    snprintf(c->at, sizeof c->at, "%s", pairs[index].at);
    snprintf(c->after, sizeof c->after, "%s", pairs[index].after);
    c->after_value = value_of(after, metric);
    if (metric == SAVED_BYTES) {
        c->after_value = value_of(before, metric) - c->after_value;
    } else {
        snprintf(c->before, sizeof c->before, "%s", pairs[index].before);
        c->before_value = value_of(before, metric);
    }
    c->unit = unit_of(metric);
    c->test = pairs[index].test;
    c->claimed = at_seed_sizes(&before->shape) || metric == CACHE_MISSES ? pairs[index].claimed : 0;
    c->excuse = info->is_cpu ? pairs[index].on_cpu : pairs[index].on_gpu;
    explain(results, metric, before, after, c);
    return 0;
}

static double component(const struct result *row, enum component which)
{
    double ns = 0;

    for (int c = 0; c < COMPONENTS; c++)
        if (which == COMPONENTS || which == (enum component)c)
            ns += row->component_ns[c];
    return ns;
}

static int add_breakdown(const struct results *results, size_t index, struct claims *claims)
{
    const struct result *before = find_result(results, "breakdown-naive");
    const struct result *after = find_result(results, "breakdown-tuned");
    struct claim *c;

    if (!before || !after)
        return 0;
    c = claims_add(claims, breakdown[index].claim, breakdown[index].seed);
    if (!c)
        return -1;
    snprintf(c->before, sizeof c->before, "%s", before->variant->name);
    snprintf(c->after, sizeof c->after, "%s", after->variant->name);
    c->before_value = component(before, breakdown[index].component);
    c->after_value = component(after, breakdown[index].component);
    c->claimed = at_seed_sizes(&before->shape) ? breakdown[index].gain : 0;
    return 0;
}

int claims_make(const struct results *results, const struct dev_info *info, struct claims *claims)
{
    int result = 0;

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0] && result == 0; i++)
        result = add_pair(results, info, i, claims);
    for (size_t i = 0; i < sizeof breakdown / sizeof breakdown[0] && result == 0; i++)
        result = add_breakdown(results, i, claims);
    return result;
}
