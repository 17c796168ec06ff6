/* What the seed document claims, as pairs of results. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "workloads/hash_embedding/workload.h"

#define PREFETCH_PAYS 16384 /* plots per batch, from which on the document has a gain */

enum metric { WALL, KERNEL };

static const struct {
    const char *claim;
    const char *before, *after; /* variants */
    enum metric metric;
    const char *seed;
    double claimed;
    const char *on_cpu; /* what a device does instead that is the host's cores */
} pairs[] = {
    {"many lookups in a loop", "lookup-loop", "lookup-fused", WALL,
     "30-50 % of the encoder's forward pass", CLAIM_SAVED(0.30),
     "a launch and an allocation cost the cores little beside the lookups themselves"},
    {"many small transfers", "batch-small-copies", "batch-collated", WALL, "10-20 %",
     CLAIM_SAVED(0.10),
     "a transfer is a memcpy without a bus to cross: collating them is one more copy"},
    {"prefetch on its own stream", "prefetch-off", "prefetch-on", WALL,
     "slower below 16384, +48 % above", 1.48,
     "the cores that would copy ahead are those that compute"},
    {"loss in several reductions", "loss-separate", "loss-fused", WALL, "20-40 % of the loss",
     CLAIM_SAVED(0.20), NULL},
};

#define PAIRS (sizeof pairs / sizeof pairs[0])

static const struct {
    uint32_t records;
    double claimed;
    const char *seed;
} gpu_over_cpu[] = {
    {10000, 6, "6x, 0.08 ms to 0.01 ms"},
    {100000, 51, "51x, 1.4 ms to 0.03 ms"},
    {1000000, 440, "440x, 30 ms to 0.07 ms"},
};

static double time_of(const struct result *row, enum metric metric)
{
    return metric == WALL ? row->measured.wall.median : row->measured.kernel.median;
}

/* "1 core", "16 cores", or "" for a device. */
static void cores_text(const struct result *row, char *text, size_t bytes)
{
    text[0] = '\0';
    if (row->cores)
        snprintf(text, bytes, "%u core%s", row->cores, row->cores == 1 ? "" : "s");
}

static void describe_pair(struct claim *claim, const struct result *before,
                          const struct result *after)
{
    char cores[24];

    cores_text(before, cores, sizeof cores);
    snprintf(claim->at, sizeof claim->at, "%s %u%s%s", before->batch ? "batch" : "rows",
             before->batch ? before->batch : before->records, cores[0] ? ", " : "", cores);
    snprintf(claim->before, sizeof claim->before, "%s", before->variant);
    snprintf(claim->after, sizeof claim->after, "%s", after->variant);
}

static bool is_prefetch(const struct result *row)
{
    return strcmp(row->variant, "prefetch-off") == 0;
}

/* Prefetching can hide the copies and no more: what that would gain at the most. On the document's
 * machine the second stream cost more than it hid in small batches. */
static void prefetch_bound(struct claim *claim, const struct result *before)
{
    double copies = before->measured.transfer.median, wall = before->measured.wall.median;
    double bound = copies < wall ? wall / (wall - copies) : NAN;

    if (before->batch < PREFETCH_PAYS) {
        claim->test = CLAIM_GAIN_AT_MOST;
        claim->claimed = 1;
        if (!claim->excuse)
            claim->excuse = "a second queue costs too little here to lose by it";
    } else if (!claim->excuse && bound < claim->claimed) {
        claim->excuse = "the copies are too small a part of the time";
    }
    if (copies < wall)
        snprintf(claim->figure, sizeof claim->figure,
                 "copies are %.0f %% of the time before: hiding them alone gains at most %.2fx",
                 100 * copies / wall, bound);
}

static bool fill_pair(const struct results *results, const struct dev_info *info, size_t pair,
                      const struct result *before, struct claim *claim)
{
    for (size_t i = 0; i < results->count; i++) {
        const struct result *after = &results->rows[i];

        if (strcmp(after->variant, pairs[pair].after) != 0 || after->batch != before->batch ||
            after->cores != before->cores || after->records != before->records)
            continue;
        *claim = (struct claim){.claim = pairs[pair].claim,
                                .seed = pairs[pair].seed,
                                .before_value = time_of(before, pairs[pair].metric),
                                .after_value = time_of(after, pairs[pair].metric),
                                .claimed = pairs[pair].claimed,
                                .excuse = info->is_cpu ? pairs[pair].on_cpu : NULL};
        describe_pair(claim, before, after);
        if (is_prefetch(before))
            prefetch_bound(claim, before);
        return true;
    }
    return false;
}

static void add_claim(struct claims *claims, const struct claim *claim)
{
    struct claim *row = claims_add(claims, claim->claim, claim->seed);

    if (row)
        *row = *claim;
}

/* The document's two statements about prefetching, below and from PREFETCH_PAYS on: each by the
 * batch that contradicts it most, with the gains of all. */
static void add_prefetch(const struct results *results, const struct dev_info *info, size_t pair,
                         bool pays, struct claims *claims)
{
    struct claim worst = {0}, claim;
    uint32_t first = 0, last = 0;
    char gains[100] = "";

    for (size_t i = 0; i < results->count; i++) {
        const struct result *before = &results->rows[i];
        double gain, most = claim_gain(&worst);
        size_t used = strlen(gains);

        if (!is_prefetch(before) || (before->batch >= PREFETCH_PAYS) != pays ||
            !fill_pair(results, info, pair, before, &claim))
            continue;
        gain = claim_gain(&claim);
        if (!first || (pays ? gain < most : gain > most))
            worst = claim;
        first = first ? first : before->batch;
        last = before->batch;
        snprintf(gains + used, sizeof gains - used, "%s%.2fx", used ? ", " : "", gain);
    }
    if (!first)
        return;
    snprintf(worst.figure + strlen(worst.figure), sizeof worst.figure - strlen(worst.figure),
             "%sbatch %u to %u: %s", worst.figure[0] ? "; " : "", first, last, gains);
    add_claim(claims, &worst);
}

/* The document compares with one implementation on the CPU: ours on one core; what all cores
 * reach stands beside it. */
static void add_gpu_over_cpu(const struct results *results, const struct dev_info *info,
                             const struct result *before, struct claims *claims)
{
    const struct result *after = NULL;

    for (size_t i = 0; i < results->count && !after; i++)
        if (results->rows[i].cores == 0 && strcmp(results->rows[i].variant, "auto") == 0 &&
            results->rows[i].records == before->records)
            after = &results->rows[i];
    for (size_t c = 0; after && c < sizeof gpu_over_cpu / sizeof gpu_over_cpu[0]; c++) {
        struct claim *claim;

        if (gpu_over_cpu[c].records != before->records)
            continue;
        claim = claims_add(claims, "device over CPU", gpu_over_cpu[c].seed);
        if (!claim)
            return;
        snprintf(claim->at, sizeof claim->at, "rows %u", before->records);
        cores_text(before, claim->before, sizeof claim->before);
        snprintf(claim->after, sizeof claim->after, "device");
        claim->before_value = time_of(before, KERNEL);
        claim->after_value = time_of(after, KERNEL);
        claim->claimed = before->cores == 1 ? gpu_over_cpu[c].claimed : 0;
        claim->excuse = info->is_cpu ? "the device is the CPU itself" : NULL;
    }
}

void claims_evaluate(const struct results *results, const struct dev_info *info,
                     struct claims *claims)
{
    for (size_t c = 0; c < PAIRS; c++) {
        struct claim claim;

        for (size_t i = 0; i < results->count; i++)
            if (strcmp(results->rows[i].variant, pairs[c].before) == 0 &&
                !is_prefetch(&results->rows[i]) &&
                fill_pair(results, info, c, &results->rows[i], &claim))
                add_claim(claims, &claim);
        if (strcmp(pairs[c].before, "prefetch-off") == 0) {
            add_prefetch(results, info, c, false, claims);
            add_prefetch(results, info, c, true, claims);
        }
    }
    for (size_t i = 0; i < results->count; i++)
        if (results->rows[i].cores != 0 && strcmp(results->rows[i].variant, "auto") == 0)
            add_gpu_over_cpu(results, info, &results->rows[i], claims);
}
