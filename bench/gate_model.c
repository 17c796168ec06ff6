/* Programs that do not exist, with noise that is known: fifty kernels, few of which take most of
 * the time, launched some ten to some hundred times each. What noise is made of: a part that all
 * kernels of a run share (clock, neighbours), one of each kernel and run (placement), and one of
 * each launch, which depends on the launch before, has two modes in some kernels, follows the size
 * of the input in others, and now and then is a preemption. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/gate_power.h"

#define ITERATIONS 20
#define TOTAL_NS 200e6

const struct model models[] = {
    {"locked", .common = 0.001, .key = 0.002, .within_correlation = 0.5, .bimodal = 0.3,
     .drift = 0.001},
    {"typical", .common = 0.005, .key = 0.004, .within_correlation = 0.5, .bimodal = 0.3,
     .drift = 0.003},
    {"typical-sessions", .common = 0.005, .key = 0.004, .session_common = 0.005,
     .session_key = 0.003, .within_correlation = 0.5, .bimodal = 0.3, .drift = 0.003},
    {"white", .common = 0.005, .key = 0.004},
    {"autocorrelated", .common = 0.005, .key = 0.004, .within_correlation = 0.95},
    {"bimodal", .common = 0.005, .key = 0.004, .within_correlation = 0.5, .bimodal = 1},
    {"drifting", .common = 0.005, .key = 0.004, .within_correlation = 0.5, .bimodal = 0.3,
     .drift = 0.02},
    {"heavy-tailed", .common = 0.005, .key = 0.004, .within_correlation = 0.5, .bimodal = 0.3,
     .drift = 0.003, .heavy = true},
    {"noisy", .common = 0.02, .key = 0.01, .within_correlation = 0.5, .bimodal = 0.3,
     .drift = 0.005},
};
const size_t model_count = sizeof models / sizeof models[0];

static const char *kernel_name(int k)
{
    static char names[KERNELS][16];
    if (!*names[k])
        snprintf(names[k], sizeof names[k], "kernel_%02d", k);
    return names[k];
}

void program_make(struct program *p, const struct model *model, uint64_t seed)
{
    double sum = 0;
    *p = (struct program){.model = model, .dice = {seed * 0x2545f4914f6cdd1du + 1}};
    for (int k = 0; k < KERNELS; k++)
        sum += 1.0 / (k + 1);
    for (int k = 0; k < KERNELS; k++) {
        p->share[k] = 1 / ((k + 1) * sum);
        p->spread[k] = exp(0.4 * dice_normal(&p->dice));
        p->within[k] = 0.01 + 0.005 * dice_uniform(&p->dice);
        p->launches[k] = (int)(20 * exp(3 * dice_uniform(&p->dice))); /* 20 ... 400 */
        p->bimodal[k] = dice_uniform(&p->dice) < model->bimodal;
        p->shaped[k] = dice_uniform(&p->dice) < 0.3;
        p->shapes[k] = (uint64_t)(dice_uniform(&p->dice) * 1e15);
    }
    program_session(p);
}

void program_session(struct program *p)
{
    p->session_common = p->model->session_common * dice_normal(&p->dice);
    for (int k = 0; k < KERNELS; k++)
        p->session_key[k] = p->model->session_key * p->spread[k] * dice_normal(&p->dice);
}

static double between(struct program *p, double sd)
{
    return sd * (p->model->heavy ? dice_t3(&p->dice) : dice_normal(&p->dice));
}

/* Times of a kernel's launches in one run, whose level is `level` (ln). */
static void make_launches(struct program *p, int k, double level, double drift, double *out)
{
    struct dice shapes = {p->shapes[k]};
    double rho = p->model->within_correlation, w = p->within[k] * dice_normal(&p->dice);
    double weight = 0.3 + 0.03 * dice_normal(&p->dice);
    int n = p->launches[k];
    for (int i = 0; i < n; i++) {
        double x = level + w + drift * ((double)i / n - 0.5);
        if (p->shaped[k])
            x += 0.2 * dice_normal(&shapes);
        if (p->bimodal[k] && dice_uniform(&p->dice) < weight)
            x += log(1.15);
        out[i] = exp(x);
        if (dice_uniform(&p->dice) < 0.005)
            out[i] *= 1 + dice_exponential(&p->dice, 0.5);
        w = rho * w + sqrt(1 - rho * rho) * p->within[k] * dice_normal(&p->dice);
    }
}

static void add(struct prof_run *run, enum prof_metric_family family, const char *name,
                const double *values, int count)
{
    struct prof_metric *metric = &run->metrics[run->count++];
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    *metric =
        (struct prof_metric){.family = family, .name = name, .place = "", .inside = (int64_t)sum};
    if (!prof_sketch_make(values, (size_t)count, &metric->sketch))
        exit(2);
}

static void add_whole(struct program *p, struct prof_run *run, double level, double drift)
{
    double wall[ITERATIONS], busy[ITERATIONS], host = between(p, p->model->common);
    for (int i = 0; i < ITERATIONS; i++) {
        double x = level + drift * ((double)i / ITERATIONS - 0.5) + 0.005 * dice_normal(&p->dice);
        busy[i] = TOTAL_NS / ITERATIONS * exp(x);
        wall[i] = busy[i] * 1.2 * exp(host + 0.005 * dice_normal(&p->dice));
    }
    add(run, PROF_METRIC_WALL, "", wall, ITERATIONS);
    add(run, PROF_METRIC_BUSY, "", busy, ITERATIONS);
}

struct prof_run program_run(struct program *p)
{
    struct prof_run run = {.iteration_source = PROF_ITERATION_RUN,
                           .iterations = ITERATIONS,
                           .complete = true,
                           .clock_hz = NAN};
    double common = p->session_common + between(p, p->model->common);
    double drift = between(p, p->model->drift), whole = common, values[512];
    double own[KERNELS];
    for (int k = 0; k < KERNELS; k++) {
        own[k] = p->session_key[k] + between(p, p->model->key * p->spread[k]);
        whole += p->share[k] * own[k];
    }
    run.metrics = calloc(KERNELS + 2, sizeof *run.metrics);
    if (!run.metrics)
        exit(2);
    add_whole(p, &run, whole, drift);
    for (int k = 0; k < KERNELS; k++) {
        double mean = TOTAL_NS * p->share[k] / p->launches[k];
        make_launches(p, k, log(mean) + common + own[k], drift, values);
        add(&run, PROF_METRIC_KERNEL, kernel_name(k), values, p->launches[k]);
    }
    run.steady_ns = run.metrics[0].inside;
    run.wall_ns = run.steady_ns;
    return run;
}

/* ---- injections ------------------------------------------------------------------------------ */

static void scale(struct prof_metric *metric, double factor)
{
    double shift = log(factor);
    metric->sketch.sum *= factor;
    metric->sketch.log_mean += shift;
    metric->inside = (int64_t)((double)metric->inside * factor);
    for (int b = 0; b < metric->sketch.batches; b++)
        metric->sketch.batch[b] += (float)shift;
    for (int q = 0; q < PROF_SKETCH_QUANTILES; q++)
        metric->sketch.quantile[q] *= (float)factor;
}

void inject(struct prof_run *run, const struct prof_metric *which, double factor)
{
    double more = 0;
    for (size_t i = 0; i < run->count; i++) {
        struct prof_metric *metric = &run->metrics[i];
        if (metric->family != which->family || strcmp(metric->name, which->name) ||
            memcmp(metric->grid, which->grid, sizeof metric->grid) ||
            memcmp(metric->block, which->block, sizeof metric->block))
            continue;
        more += (double)metric->inside * (factor - 1);
        scale(metric, factor);
    }
    for (size_t i = 0; i < run->count; i++) {
        struct prof_metric *metric = &run->metrics[i];
        bool whole = metric->family == PROF_METRIC_WALL || metric->family == PROF_METRIC_BUSY;
        if (whole && metric->inside > 0)
            scale(metric, 1 + more / (double)metric->inside);
    }
}
