/* What the seed document claims, as pairs of results. */
#include <string.h>

#include "workloads/hash_embedding/workload.h"

enum metric { WALL, KERNEL };

static const struct {
    const char *claim;
    const char *before, *after; /* variants */
    enum metric metric;
    const char *seed;
} claims[] = {
    {"many lookups in a loop", "lookup-loop", "lookup-fused", WALL,
     "30-50 % of the encoder's forward pass"},
    {"many small transfers", "batch-small-copies", "batch-collated", WALL, "10-20 %"},
    {"prefetch on its own stream", "prefetch-off", "prefetch-on", WALL,
     "slower below 16384, +48 % above"},
    {"loss in several reductions", "loss-separate", "loss-fused", WALL, "20-40 % of the loss"},
};

static const struct {
    uint32_t records;
    const char *seed;
} gpu_over_cpu[] = {
    {10000, "6x, 0.08 ms to 0.01 ms"},
    {100000, "51x, 1.4 ms to 0.03 ms"},
    {1000000, "440x, 30 ms to 0.07 ms"},
};

static double time_of(const struct result *row, enum metric metric)
{
    return metric == WALL ? row->measured.wall.median : row->measured.kernel.median;
}

static void emit_pair(const struct results *results, size_t claim, const struct result *before,
                      void (*emit)(void *context, const struct evidence *evidence), void *context)
{
    for (size_t i = 0; i < results->count; i++) {
        const struct result *after = &results->rows[i];

        if (strcmp(after->variant, claims[claim].after) == 0 && after->batch == before->batch &&
            after->cores == before->cores && after->records == before->records) {
            struct evidence evidence = {
                .claim = claims[claim].claim,
                .seed = claims[claim].seed,
                .before = before,
                .after = after,
                .before_ns = time_of(before, claims[claim].metric),
                .after_ns = time_of(after, claims[claim].metric),
            };

            emit(context, &evidence);
            return;
        }
    }
}

/* The device against the CPU backend (all cores and one) at the seed's numbers of rows. */
static void emit_gpu_over_cpu(const struct results *results, const struct result *before,
                              void (*emit)(void *context, const struct evidence *evidence),
                              void *context)
{
    for (size_t i = 0; i < results->count; i++) {
        const struct result *after = &results->rows[i];

        if (after->cores != 0 || strcmp(after->variant, "auto") != 0 ||
            after->records != before->records)
            continue;
        for (size_t c = 0; c < sizeof gpu_over_cpu / sizeof gpu_over_cpu[0]; c++) {
            if (gpu_over_cpu[c].records == before->records) {
                struct evidence evidence = {
                    .claim = "device over CPU",
                    .seed = gpu_over_cpu[c].seed,
                    .before = before,
                    .after = after,
                    .before_ns = time_of(before, KERNEL),
                    .after_ns = time_of(after, KERNEL),
                };

                emit(context, &evidence);
            }
        }
        return; /* the same shape was measured for other claims too */
    }
}

void claims_evaluate(const struct results *results,
                     void (*emit)(void *context, const struct evidence *evidence), void *context)
{
    for (size_t c = 0; c < sizeof claims / sizeof claims[0]; c++)
        for (size_t i = 0; i < results->count; i++)
            if (strcmp(results->rows[i].variant, claims[c].before) == 0)
                emit_pair(results, c, &results->rows[i], emit, context);
    for (size_t i = 0; i < results->count; i++)
        if (results->rows[i].cores != 0 && strcmp(results->rows[i].variant, "auto") == 0)
            emit_gpu_over_cpu(results, &results->rows[i], emit, context);
}
