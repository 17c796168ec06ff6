/* What the seed document claims, as pairs of results. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "workloads/batched_forces/workload.h"

enum metric { OPERATION, TOTAL, FORWARD };

static const char on_cpu[] =
    "the work of one molecule occupies the cores already: only what launches cost is saved";
static const char own_backward[] =
    "the way back is written by hand here, not recorded operation by operation";

static const struct {
    const char *claim;
    const char *before, *after; /* variants, at the same batch */
    enum metric metric;
    const char *seed;
    double claimed;
} pairs[] = {
    {"radial basis and cutoff", "rbf-separate", "rbf-fused", OPERATION,
     "5.88x, 0.164 ms to 0.027 ms", 5.88},
    {"edge features", "edge-separate", "edge-fused", OPERATION, "1.54x, 0.097 ms to 0.063 ms",
     1.54},
    {"both fused, forward pass", "components-separate", "components-fused", FORWARD,
     "1.08x, 3.57 ms to 3.30 ms", 1.08},
    {"both fused, with forces", "separate", "fused", TOTAL, "3.4 % of the total",
     CLAIM_SAVED(0.034)},
};

static const struct {
    uint32_t batch;
    const char *seed;
    double claimed;
} batches[] = {
    {4, "2.98x, 13.4 ms to 4.5 ms", 2.98},
    {8, "4.79x, 13.4 ms to 2.8 ms", 4.79},
    {16, "6.7x, 13.4 ms to 2.0 ms", 6.7},
    {32, "not measured", 0},
};

static double forward_ns(const struct result *row)
{
    double ns = 0;

    for (int c = NEIGHBOURS; c <= READOUT; c++)
        ns += row->component_ns[c];
    return ns;
}

/* Of one operation, or of one molecule. */
static double time_of(const struct result *row, enum metric metric)
{
    switch (metric) {
    case OPERATION:
        return row->measured.wall.median / OPERATIONS_PER_STEP;
    case TOTAL:
        return row->measured.wall.median / row->molecules;
    case FORWARD:
        return forward_ns(row) / row->molecules;
    }
    return NAN;
}

static const struct result *find(const struct results *results, const char *variant, uint32_t batch)
{
    for (size_t i = 0; i < results->count; i++)
        if (strcmp(results->rows[i].variant->name, variant) == 0 && results->rows[i].batch == batch)
            return &results->rows[i];
    return NULL;
}

static struct claim *add(struct claims *claims, const char *name, const char *seed,
                         const struct result *before, const struct result *after)
{
    struct claim *claim = claims_add(claims, name, seed);

    if (!claim)
        return NULL;
    snprintf(claim->at, sizeof claim->at, "batch %u", after->batch);
    snprintf(claim->after, sizeof claim->after, "%s", after->variant->name);
    if (before->batch == after->batch)
        snprintf(claim->before, sizeof claim->before, "%s", before->variant->name);
    else
        snprintf(claim->before, sizeof claim->before, "%s, batch %u", before->variant->name,
                 before->batch);
    return claim;
}

/* Why two large gains are a small one together: their parts of the whole, and what is left then
 * (Amdahl). */
static void note_shares(struct claim *claim, const struct result *before,
                        const struct result *after)
{
    double whole = forward_ns(before);
    double parts = before->component_ns[RBF] + before->component_ns[EDGES];
    double left = after->component_ns[RBF] + after->component_ns[EDGES];

    snprintf(claim->figure, sizeof claim->figure,
             "basis and edges are %.0f %% of the forward pass: %.2fx faster they gain %.2fx of it",
             100 * parts / whole, parts / left, whole / (whole - parts + left));
}

static void add_pairs(const struct results *results, const struct dev_info *info, size_t pair,
                      struct claims *claims)
{
    for (size_t i = 0; i < results->count; i++) {
        const struct result *before = &results->rows[i];
        const struct result *after = find(results, pairs[pair].after, before->batch);
        struct claim *claim;

        if (strcmp(before->variant->name, pairs[pair].before) != 0 || !after)
            continue;
        claim = add(claims, pairs[pair].claim, pairs[pair].seed, before, after);
        if (!claim)
            return;
        claim->before_value = time_of(before, pairs[pair].metric);
        claim->after_value = time_of(after, pairs[pair].metric);
        claim->claimed = pairs[pair].claimed;
        claim->excuse = info->is_cpu ? on_cpu : NULL;
        if (pairs[pair].metric == FORWARD)
            note_shares(claim, before, after);
    }
}

static void add_batches(const struct results *results, const struct dev_info *info,
                        struct claims *claims)
{
    const struct result *one = find(results, "fused", 1);

    for (size_t b = 0; one && b < sizeof batches / sizeof batches[0]; b++) {
        const struct result *many = find(results, "fused", batches[b].batch);
        struct claim *claim =
            many ? add(claims, "molecules together", batches[b].seed, one, many) : NULL;

        if (!claim)
            continue;
        claim->before_value = time_of(one, TOTAL);
        claim->after_value = time_of(many, TOTAL);
        claim->claimed = batches[b].claimed;
        claim->excuse = info->is_cpu ? on_cpu : NULL;
    }
}

/* The component table of one molecule at a time: which part is the largest, and that the parts
 * are the whole. */
static void add_components(const struct results *results, struct claims *claims)
{
    const struct result *row = find(results, "components-fused", 1);
    struct claim *backward, *sum;

    if (!row)
        return;
    backward = claims_add(claims, "the real cause: backward", "75 % of the time");
    if (backward) {
        snprintf(backward->at, sizeof backward->at, "batch 1");
        snprintf(backward->after, sizeof backward->after, "%s", row->variant->name);
        backward->after_value = row->component_ns[BACKWARD] / components_total_ns(row);
        backward->unit = CLAIM_SHARE;
        backward->test = CLAIM_AT_LEAST;
        backward->claimed = 0.75;
        backward->excuse = own_backward;
    }
    sum = claims_add(claims, "component table", "sums to the total");
    if (sum) {
        snprintf(sum->at, sizeof sum->at, "batch 1");
        snprintf(sum->after, sizeof sum->after, "components over the step");
        sum->after_value = components_total_ns(row) / row->measured.wall.mean;
        sum->unit = CLAIM_SHARE;
        sum->test = CLAIM_AT_LEAST;
        sum->claimed = 0.98;
    }
}

void claims_evaluate(const struct results *results, const struct dev_info *info,
                     struct claims *claims)
{
    for (size_t c = 0; c < sizeof pairs / sizeof pairs[0]; c++)
        add_pairs(results, info, c, claims);
    add_batches(results, info, claims);
    add_components(results, claims);
}
