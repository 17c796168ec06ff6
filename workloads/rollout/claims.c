/* What the seed document claims: pairs of variants by their time per image and step, and what the
 * rows say about memory and the roofline. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "workloads/rollout/workload.h"

#define PRESSURE                                                                                   \
    0.5               /* of the capacity, from which on the document saw a larger batch slow down  \
                       */
#define BANDWIDTH 0.5 /* of a copy's, from which on the memory is what bounds a kernel */
#define BANDWIDTH_BEYOND_CACHE 0.8 /* the same where launches and caches have no part in it */

static const char stored_only[] =
    "fp16 and bf16 are how fields are stored here: the arithmetic is in float";
static const char no_group_norm_gain[] =
    "the statistics are one pass over the same bytes with either grouping";

static const struct {
    const char *claim, *before, *after;
    enum claim_test test;
    double claimed;
    const char *seed;
    const char *on_cpu; /* what a device does instead that is the host's cores */
    const char *excuse; /* what this program does instead on any */
} pairs[] = {
    {"half precision", "fp32", "fp16", CLAIM_GAIN_AT_LEAST, HALF_PRECISION_TARGET,
     "1.89x, 19.01 s to 10.07 s", stored_only, NULL},
    {"half precision", "fp32", "bf16", CLAIM_GAIN_AT_LEAST, HALF_PRECISION_TARGET,
     "1.78x, 19.01 s to 10.69 s", stored_only, NULL},
    {"half precision by the library", "conv-cudnn-best", "conv-cudnn-fp16", CLAIM_GAIN_AT_LEAST,
     HALF_PRECISION_TARGET, "1.89x, 19.01 s to 10.07 s", NULL, NULL},
    {"own convolution against the library", "conv-direct", "conv-cudnn", CLAIM_GAIN_AT_LEAST,
     CLAIM_BETTER, "up to 80x", NULL, NULL},
    {"own convolution by tiles", "conv-direct", "conv-tiled", CLAIM_GAIN_AT_LEAST, 0, "none given",
     NULL, NULL},
    {"algorithm search", "conv-cudnn", "conv-cudnn-best", CLAIM_GAIN_AT_LEAST, 1.05, "1.05-1.10x",
     NULL, NULL},
    {"normalisation", "instance-norm", "group-norm", CLAIM_GAIN_AT_LEAST, 1.1, "1.1-1.2x",
     no_group_norm_gain, no_group_norm_gain},
    {"larger batch", "batch-2", "batch-3", CLAIM_GAIN_AT_MOST, 0.68, "0.68x under memory pressure",
     NULL, NULL},
    {"compile once, gain per step", "eager", "compile-graph", CLAIM_GAIN_AT_LEAST, 1.09,
     "1.09x after 15-18 s", NULL, NULL},
};

static const struct result *find(const struct results *results, const char *name)
{
    for (size_t i = 0; i < results->count; i++)
        if (strcmp(results->rows[i].variant->name, name) == 0)
            return &results->rows[i];
    return NULL;
}

/* The document's batch of three had filled half of the memory. */
static void note_memory(struct claim *claim, const struct results *results,
                        const struct result *row)
{
    double share = (double)memory_sum(row->memory) / (double)results->capacity;

    snprintf(claim->figure, sizeof claim->figure, "%s takes %.2g %% of the capacity",
             row->variant->name, 100 * share);
    if (share < PRESSURE)
        claim->excuse = "there is no memory pressure here";
}

static void note_compilation(struct claim *claim, const struct result *eager,
                             const struct result *graph)
{
    double steps = break_even_steps(eager, graph);

    if (isnan(steps))
        snprintf(claim->figure, sizeof claim->figure, "compiled in %.1f ms, never earned",
                 graph->compile_ns / 1e6);
    else
        snprintf(claim->figure, sizeof claim->figure, "compiled in %.1f ms, break-even step %.0f",
                 graph->compile_ns / 1e6, steps);
}

static void note_target(struct claim *claim)
{
    snprintf(claim->figure, sizeof claim->figure, "%s: %.2fx, target %.2fx",
             claim_verdict(claim) == VERDICT_REACHED ? "PASSED" : "FAILED", claim_gain(claim),
             claim->claimed);
}

static void add_pair(const struct results *results, const struct dev_info *info, size_t pair,
                     const struct result *before, const struct result *after, struct claims *claims)
{
    bool measured = !before->skipped[0] && !after->skipped[0];
    struct claim *claim = claims_add(claims, pairs[pair].claim, pairs[pair].seed);

    if (!claim)
        return;
    snprintf(claim->at, sizeof claim->at, "per image and step");
    snprintf(claim->before, sizeof claim->before, "%s", before->variant->name);
    snprintf(claim->after, sizeof claim->after, "%s", after->variant->name);
    claim->test = pairs[pair].test;
    claim->claimed = pairs[pair].claimed;
    claim->excuse = info->is_cpu ? pairs[pair].on_cpu : pairs[pair].excuse;
    if (!measured) {
        claim->unavailable = before->skipped[0] ? before->skipped : after->skipped;
        return;
    }
    claim->before_value = image_step_ns(before);
    claim->after_value = image_step_ns(after);
    if (pairs[pair].claimed == HALF_PRECISION_TARGET)
        note_target(claim);
    else if (after->variant->graph)
        note_compilation(claim, before, after);
    else if (pairs[pair].test == CLAIM_GAIN_AT_MOST)
        note_memory(claim, results, after);
}

/* A claim about one value of a row, a share. */
static struct claim *add_share(struct claims *claims, const char *name, const char *seed,
                               const struct result *row, const char *what, double share,
                               double claimed)
{
    struct claim *claim = claims_add(claims, name, seed);

    if (!claim)
        return NULL;
    snprintf(claim->after, sizeof claim->after, "%s, %s", row->variant->name, what);
    claim->after_value = share;
    claim->unit = CLAIM_SHARE;
    claim->test = CLAIM_AT_LEAST;
    claim->claimed = claimed;
    return claim;
}

static void add_memory(const struct result *row, struct claims *claims)
{
    double total = (double)memory_sum(row->memory);
    struct claim *claim =
        add_share(claims, "memory breakdown", "activations dominate: 1.5 of 2.8 GB", row,
                  "activations", (double)row->memory[MEMORY_ACTIVATIONS] / total, 0.5);

    if (!claim)
        return;
    claim->excuse = "every operation's output is kept once, not once for each step to come";
    snprintf(claim->figure, sizeof claim->figure,
             "activations %.3g MB, trajectories %.3g MB, states %.3g MB, weights %.3g MB",
             (double)row->memory[MEMORY_ACTIVATIONS] / 1e6,
             (double)row->memory[MEMORY_TRAJECTORIES] / 1e6,
             (double)row->memory[MEMORY_STATES] / 1e6, (double)row->memory[MEMORY_WEIGHTS] / 1e6);
}

/* What bounds a kernel on a GPU whose cache holds the fields: launches of a few microseconds, when
 * beside them the bytes move as fast as is asked. */
static void note_launches(struct claim *claim, const struct results *results,
                          const struct dev_info *info, const struct result *row, enum part part)
{
    double beside = part_bandwidth_beside_launches(row, part) / results->ceiling;
    uint32_t launches = row->tally[part].launches;
    size_t used = strlen(claim->figure);

    snprintf(claim->figure + used, sizeof claim->figure - used,
             "; %u launches of %.1f us, an empty one takes %.1f us", launches,
             row->part_ns[part] / launches / 1e3, row->empty_ns / 1e3);
    used = strlen(claim->figure);
    if (isfinite(beside))
        snprintf(claim->figure + used, sizeof claim->figure - used, ": %.0f %% beside that",
                 100 * beside);
    if (2 * field_bytes(row) <= (double)info->cache_bytes && beside >= claim->claimed)
        claim->excuse = "the cache holds the fields, and what a launch takes in any case is what "
                        "bounds these";
}

/* The bytes that a kernel declares over what a copy moves in its time. */
static void add_bounds(const struct results *results, const struct dev_info *info,
                       const struct result *row, double wanted, struct claims *claims)
{
    static const enum part parts[] = {PART_NORM, PART_ACTIVATION};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const struct tally *tally = &row->tally[parts[i]];
        struct claim *claim = add_share(claims, "memory bound, not compute bound", "memory-bound",
                                        row, part_names[parts[i]],
                                        part_bandwidth(row, parts[i]) / results->ceiling, wanted);

        if (!claim)
            return;
        snprintf(claim->at, sizeof claim->at, "fields of %.3g MB", field_bytes(row) / 1e6);
        snprintf(claim->figure, sizeof claim->figure, "%.2f FLOP a byte; of the copy bandwidth",
                 tally->flop / (tally->bytes_read + tally->bytes_written));
        if (info->is_cpu)
            claim->excuse = "the cores' exponential functions are what takes the time";
        else
            note_launches(claim, results, info, row, parts[i]);
    }
}

/* Precisions that the device lacks, or was said to lack: what was computed with instead. */
static void add_fallbacks(const struct results *results, struct claims *claims)
{
    for (size_t i = 0; i < results->count; i++) {
        const struct result *row = &results->rows[i];
        struct claim *claim;

        if (row->storage == row->variant->storage)
            continue;
        claim = claims_add(claims, "precision fallback", "bf16 to fp16 to fp32, with a warning");
        if (!claim)
            return;
        snprintf(claim->after, sizeof claim->after, "%s, steps down", row->variant->name);
        snprintf(claim->figure, sizeof claim->figure, "requested %s, computed in %s",
                 storage_name(row->variant->storage), storage_name(row->storage));
        claim->after_value = (double)row->variant->storage - (double)row->storage;
        claim->unit = CLAIM_COUNT;
        claim->test = CLAIM_AT_LEAST;
        claim->claimed = 1;
    }
}

/* Under a limit: the batch that fits, and the next one, which must be told not to. */
static void add_capacity(const struct results *results, struct claims *claims)
{
    const struct result *two = find(results, "batch-2"), *three = find(results, "batch-3");
    struct claim *claim;

    if (!results->limited || !two || !three || two->skipped[0])
        return;
    claim = claims_add(claims, "capacity, not only bandwidth", "out of memory from a batch on");
    if (!claim)
        return;
    snprintf(claim->before, sizeof claim->before, "%s", two->variant->name);
    snprintf(claim->after, sizeof claim->after, "%s", three->variant->name);
    claim->before_value = (double)memory_sum(two->memory);
    claim->after_value = three->projected_bytes;
    claim->unit = CLAIM_BYTES;
    claim->test = CLAIM_AT_LEAST;
    claim->claimed = (double)results->capacity;
    snprintf(claim->figure, sizeof claim->figure, "%.120s",
             three->skipped[0] ? three->skipped : "the next batch fits");
}

void claims_evaluate(const struct results *results, const struct dev_info *info,
                     struct claims *claims)
{
    const struct result *fp32 = find(results, "fp32"), *norm = find(results, "instance-norm"),
                        *beyond = find(results, "beyond-cache");

    for (size_t c = 0; c < sizeof pairs / sizeof pairs[0]; c++) {
        const struct result *before = find(results, pairs[c].before);
        const struct result *after = find(results, pairs[c].after);

        if (before && after)
            add_pair(results, info, c, before, after, claims);
    }
    if (fp32 && !fp32->skipped[0])
        add_memory(fp32, claims);
    if (norm && !norm->skipped[0])
        add_bounds(results, info, norm, BANDWIDTH, claims);
    if (beyond && !beyond->skipped[0])
        add_bounds(results, info, beyond, BANDWIDTH_BEYOND_CACHE, claims);
    add_fallbacks(results, claims);
    add_capacity(results, claims);
}
