/* Runs of programs beside runs of the same ones with a kernel that does more work: whether the gate
 * finds a slowdown that is real. A corpus of CORPUS_SET=slow: commands in pairs, the changed one
 * after the other. Inputs are larger too, which counts of bytes tell; so it is the kernel's own row
 * that must FAIL. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/gate_power.h"

#define MOST 8

struct found {
    long gates, fails;
    double effect_sum; /* ln, of the changed kernel between all runs of a gate */
};

/* The kernel of a tenth of the time or more that the two sides share and that grew most. */
static const struct prof_compared *slowest(const struct prof_comparison *result)
{
    const struct prof_compared *most = NULL;
    for (size_t i = 0; i < result->count; i++) {
        const struct prof_compared *row = &result->rows[i];
        if (row->family == PROF_METRIC_KERNEL && row->gated && row->share >= GATE_LARGE &&
            row->base && row->cand && (!most || row->effect > most->effect))
            most = row;
    }
    return most;
}

static bool try_pair(const struct corpus_run *base, const struct corpus_run *cand, size_t a_side,
                     struct found *found)
{
    struct prof_compare_options options = {.interleaved = true};
    struct prof_run sides[2][MOST];
    struct prof_comparison result;
    struct prof_error err = {0};
    for (size_t i = 0; i < a_side; i++) {
        sides[0][i] = base[i].run;
        sides[1][i] = cand[i].run;
    }
    if (prof_compare((struct prof_runs){sides[0], a_side}, (struct prof_runs){sides[1], a_side},
                     &options, &result, &err)) {
        fprintf(stderr, "gate_power: %s\n", err.message);
        return false;
    }
    const struct prof_compared *row = slowest(&result);
    if (row) {
        found->gates++;
        found->fails += row->verdict == PROF_VERDICT_FAIL;
        found->effect_sum += log1p(row->effect);
    }
    prof_comparison_free(&result);
    return true;
}

static size_t end_of_command(const struct corpus *corpus, size_t from)
{
    size_t to = from;
    while (to < corpus->count && !strcmp(corpus->runs[to].label, corpus->runs[from].label))
        to++;
    return to;
}

static void print_found(const char *what, const struct found *f)
{
    struct bounds b = bounds_of(f->fails, f->gates);
    printf("  %-100s +%.2f %%, FAIL %3ld of %3ld  %5.1f %%  [%.1f, %.1f]\n", what,
           100 * expm1(f->effect_sum / (double)(f->gates ? f->gates : 1)), f->fails, f->gates,
           f->gates ? 100.0 * (double)f->fails / (double)f->gates : 0, 100 * b.low, 100 * b.high);
}

static bool replay_changed(const struct corpus *corpus, size_t a_side)
{
    struct found all = {0};
    printf("a kernel that does more work: %zu against %zu, in turns\n", a_side, a_side);
    for (size_t from = 0; from < corpus->count;) {
        size_t changed = end_of_command(corpus, from), to = end_of_command(corpus, changed);
        size_t pairs = to - changed < changed - from ? to - changed : changed - from;
        struct found one = {0};
        for (size_t at = 0; at + a_side <= pairs; at += a_side) {
            if (!try_pair(corpus->runs + from + at, corpus->runs + changed + at, a_side, &one))
                return false;
        }
        if (changed < corpus->count)
            print_found(corpus->runs[changed].label, &one);
        all.gates += one.gates;
        all.fails += one.fails;
        all.effect_sum += one.effect_sum;
        from = to;
    }
    print_found("all", &all);
    return true;
}

bool changed_all(const char *path)
{
    static const size_t sides[] = {3, 5, MOST};
    struct corpus corpus;
    bool ok = corpus_read(path, &corpus);
    for (size_t i = 0; ok && i < sizeof sides / sizeof sides[0]; i++)
        ok = replay_changed(&corpus, sides[i]);
    corpus_free(&corpus);
    return ok;
}
