/* See counters.h. */
#include <math.h>
#include <stdlib.h>

#include "libprof/analysis/counters.h"

#define ARRAYS 11 /* of sums: three tallies, two times four of clusters */

static bool is_level(const struct prof_counter_summary *summary, size_t i)
{
    return summary->counters[i].kind == PROF_COUNTER_MEAN;
}

static double *slice_memory(const struct prof_counter_summary *summary, double *memory,
                            size_t *used)
{
    double *at = memory + *used;
    *used += summary->counter_count;
    return at;
}

static void make_clusters(const struct prof_counter_summary *summary,
                          struct counter_clusters *clusters, double *memory, size_t *used)
{
    clusters->value_value = slice_memory(summary, memory, used);
    clusters->value_time = slice_memory(summary, memory, used);
    clusters->value_launch = slice_memory(summary, memory, used);
    clusters->values = slice_memory(summary, memory, used);
}

bool counter_estimates_make(const struct prof_counter_summary *summary, size_t groups,
                            struct counter_estimate **estimates, double **memory)
{
    size_t used = 0;
    *estimates = calloc(groups + 1, sizeof **estimates);
    *memory = calloc(groups * summary->counter_count * ARRAYS + 1, sizeof **memory);
    if (!*estimates || !*memory)
        return false;
    for (size_t i = 0; i < groups; i++) {
        struct counter_estimate *e = &(*estimates)[i];
        e->alone.sums = slice_memory(summary, *memory, &used);
        e->own.sums = slice_memory(summary, *memory, &used);
        e->all.sums = slice_memory(summary, *memory, &used);
        make_clusters(summary, &e->by_launch, *memory, &used);
        make_clusters(summary, &e->by_burst, *memory, &used);
    }
    return true;
}

void counter_tally_add(const struct prof_counter_summary *summary, struct counter_tally *tally,
                       const struct counter_part *part)
{
    tally->samples++;
    tally->kernel_ns += part->kernel_ns;
    tally->busy_ns += part->busy_ns;
    tally->length_ns += part->length_ns;
    tally->launches += part->launches;
    for (size_t i = 0; i < summary->counter_count; i++)
        tally->sums[i] += part->values[i] * (is_level(summary, i) ? part->kernel_ns : 1);
}

static void close_cluster(const struct prof_counter_summary *summary, struct counter_clusters *c)
{
    if (c->time <= 0)
        return;
    c->count++;
    c->time_time += c->time * c->time;
    c->launch_launch += c->launches * c->launches;
    for (size_t i = 0; i < summary->counter_count; i++) {
        c->value_value[i] += c->values[i] * c->values[i];
        c->value_time[i] += c->values[i] * c->time;
        c->value_launch[i] += c->values[i] * c->launches;
        c->values[i] = 0;
    }
    c->time = c->launches = 0;
}

static void cluster_add(const struct prof_counter_summary *summary, struct counter_clusters *c,
                        uint64_t key, const struct counter_part *part)
{
    if (c->open != key)
        close_cluster(summary, c);
    c->open = key;
    c->time += part->kernel_ns;
    c->launches += part->launches;
    for (size_t i = 0; i < summary->counter_count; i++)
        c->values[i] += part->values[i] * (is_level(summary, i) ? part->kernel_ns : 1);
}

void counter_estimate_add(const struct prof_counter_summary *summary, struct counter_estimate *e,
                          const struct counter_part *part)
{
    counter_tally_add(summary, &e->own, part);
    /* a launch that two bursts saw is two clusters */
    cluster_add(summary, &e->by_launch, (uint64_t)part->launch << 32 | part->burst, part);
    cluster_add(summary, &e->by_burst, part->burst, part);
}

void counter_estimate_end(const struct prof_counter_summary *summary, struct counter_estimate *e)
{
    close_cluster(summary, &e->by_launch);
    close_cluster(summary, &e->by_burst);
}

/* Standard error of sum(v) / sum(o) over n clusters, from the sums of v v, v o and o o. */
static double ratio_error(int64_t n, double vv, double vo, double oo, double ratio, double sum)
{
    if (n < 2 || !(sum > 0))
        return NAN;
    double squares = vv - 2 * ratio * vo + ratio * ratio * oo;
    return sqrt((squares > 0 ? squares : 0) * (double)n / (double)(n - 1)) / sum;
}

static double rate_error(const struct counter_clusters *c, size_t i, double ratio, double sum)
{
    return ratio_error(c->count, c->value_value[i], c->value_time[i], c->time_time, ratio, sum);
}

static double launch_error(const struct counter_clusters *c, size_t i, double ratio, double sum)
{
    return ratio_error(c->count, c->value_value[i], c->value_launch[i], c->launch_launch, ratio,
                       sum);
}

struct prof_counter_value counter_value(const struct prof_counter_summary *summary,
                                        const struct counter_estimate *e,
                                        const struct counter_tally *tally, size_t i)
{
    struct prof_counter_value v = {NAN, NAN, NAN, NAN, NAN};
    enum prof_counter_kind kind = summary->counters[i].kind;
    bool own = tally == &e->own;
    double time = kind == PROF_COUNTER_CLOCK ? tally->length_ns : tally->kernel_ns;
    double scale = kind == PROF_COUNTER_MEAN ? 1 : 1e9;
    if (time <= 0)
        return v;
    double ratio = tally->sums[i] / time;
    v.rate = fmax(0, ratio) * scale; /* what tracing adds is taken off by its mean */
    if (own && kind != PROF_COUNTER_CLOCK)
        v.rate_error = scale * fmax(rate_error(&e->by_launch, i, ratio, tally->kernel_ns),
                                    rate_error(&e->by_burst, i, ratio, tally->kernel_ns));
    if (!own || kind == PROF_COUNTER_MEAN || !(tally->launches > 0))
        return v;
    if (kind == PROF_COUNTER_CLOCK) {
        v.per_launch = ratio * tally->kernel_ns / tally->launches;
        return v;
    }
    ratio = tally->sums[i] / tally->launches;
    v.per_launch = fmax(0, ratio);
    v.per_launch_error = fmax(launch_error(&e->by_launch, i, ratio, tally->launches),
                              launch_error(&e->by_burst, i, ratio, tally->launches));
    return v;
}
