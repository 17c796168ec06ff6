/* What the seed document claims, as pairs of results. */
#include <math.h>
#include <string.h>

#include "workloads/batched_forces/workload.h"

enum metric { OPERATION, TOTAL, FORWARD };

static const struct {
    const char *claim;
    const char *before, *after; /* variants, at the same batch */
    enum metric metric;
    const char *seed;
} claims[] = {
    {"radial basis and cutoff", "rbf-separate", "rbf-fused", OPERATION,
     "5.88x, 0.164 ms to 0.027 ms"},
    {"edge features", "edge-separate", "edge-fused", OPERATION, "1.54x, 0.097 ms to 0.063 ms"},
    {"both fused, forward pass", "components-separate", "components-fused", FORWARD,
     "1.08x, 3.57 ms to 3.30 ms"},
    {"both fused, with forces", "separate", "fused", TOTAL, "3.4 % of the total"},
};

static const struct {
    uint32_t batch;
    const char *seed;
} batches[] = {
    {4, "2.98x, 13.4 ms to 4.5 ms"},
    {8, "4.79x, 13.4 ms to 2.8 ms"},
    {16, "6.7x, 13.4 ms to 2.0 ms"},
    {32, "not measured"},
};

/* Of one operation, or of one molecule. */
static double time_of(const struct result *row, enum metric metric)
{
    double ns = 0;

    switch (metric) {
    case OPERATION:
        return row->measured.wall.median / OPERATIONS_PER_STEP;
    case TOTAL:
        return row->measured.wall.median / row->molecules;
    case FORWARD:
        for (int c = NEIGHBOURS; c <= READOUT; c++)
            ns += row->component_ns[c];
        return ns / row->molecules;
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

static void emit_batches(const struct results *results,
                         void (*emit)(void *context, const struct evidence *evidence),
                         void *context)
{
    const struct result *one = find(results, "fused", 1);

    for (size_t b = 0; one && b < sizeof batches / sizeof batches[0]; b++) {
        const struct result *many = find(results, "fused", batches[b].batch);
        struct evidence evidence = {.claim = "molecules together", .seed = batches[b].seed};

        if (!many)
            continue;
        evidence.before = one;
        evidence.after = many;
        evidence.before_ns = time_of(one, TOTAL);
        evidence.after_ns = time_of(many, TOTAL);
        emit(context, &evidence);
    }
}

void claims_evaluate(const struct results *results,
                     void (*emit)(void *context, const struct evidence *evidence), void *context)
{
    for (size_t c = 0; c < sizeof claims / sizeof claims[0]; c++) {
        for (size_t i = 0; i < results->count; i++) {
            const struct result *before = &results->rows[i];
            const struct result *after = find(results, claims[c].after, before->batch);
            struct evidence evidence = {.claim = claims[c].claim, .seed = claims[c].seed};

            if (strcmp(before->variant->name, claims[c].before) != 0 || !after)
                continue;
            evidence.before = before;
            evidence.after = after;
            evidence.before_ns = time_of(before, claims[c].metric);
            evidence.after_ns = time_of(after, claims[c].metric);
            emit(context, &evidence);
        }
    }
    emit_batches(results, emit, context);
}
