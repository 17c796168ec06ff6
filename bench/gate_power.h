/* What the parts of bench/gate_power share. */
#ifndef PERFKIT_BENCH_GATE_POWER_H
#define PERFKIT_BENCH_GATE_POWER_H

#include <stdint.h>

#include "libprof/include/prof_compare.h"

/* ---- random numbers: the same on every machine */

struct dice {
    uint64_t state;
};
double dice_uniform(struct dice *dice); /* (0, 1) */
double dice_normal(struct dice *dice);
double dice_exponential(struct dice *dice, double mean);
double dice_t3(struct dice *dice); /* Student's t with 3 degrees of freedom, variance 1 */

/* ---- simulated programs (gate_model.c) */

struct model {
    const char *name;
    double common, key;                 /* sd between units: of all kernels, of each */
    double session_common, session_key; /* and between sessions */
    double within_correlation;          /* of neighbouring launches */
    double bimodal;                     /* share of kernels with a second mode, 15 % slower */
    double drift;                       /* sd of a linear drift over a run, of everything */
    bool heavy;                         /* t with 3 degrees of freedom between units */
};
extern const struct model models[];
extern const size_t model_count;

#define KERNELS 50
struct program {
    const struct model *model;
    struct dice dice;
    double share[KERNELS], spread[KERNELS], within[KERNELS];
    int launches[KERNELS];
    bool bimodal[KERNELS], shaped[KERNELS];
    uint64_t shapes[KERNELS]; /* seeds of what depends on the place in the run */
    double session_common, session_key[KERNELS];
};
void program_make(struct program *program, const struct model *model, uint64_t seed);
void program_session(struct program *program); /* another session begins */
struct prof_run program_run(struct program *program);

/* Multiply the times of one metric, KERNEL or COPY, by a factor, and what follows for the whole. */
void inject(struct prof_run *run, const struct prof_metric *which, double factor);

/* ---- real runs (gate_corpus.c) */

struct corpus_run {
    char label[160]; /* the command, without its folder */
    struct prof_run run;
};
struct corpus {
    struct corpus_run *runs; /* as they were recorded, configuration by configuration */
    size_t count;
};
bool corpus_read(const char *path, struct corpus *corpus);
void corpus_free(struct corpus *corpus);
/* Reduce captures, given in the order in which they were recorded, into a corpus. */
bool corpus_write(const char *path, char **captures, int count);

/* ---- real slowdowns (gate_changed.c) */

#define GATE_LARGE 0.1 /* of the time: a kernel that must be judged */

/* Print, for a corpus of commands in pairs, how often the changed kernel is found. */
bool changed_all(const char *path);

/* ---- counting (gate_trials.c) */

struct tally {
    long gates, verdicts[PROF_VERDICT_COUNT];
};
void tally_add(struct tally *tally, enum prof_verdict verdict);
/* Bounds of a share of which `hits` of `trials` were seen (Clopper and Pearson 1934): two-sided 95
 * %, and the one-sided 95 % upper bound. */
struct bounds {
    double low, high, upper;
};
struct bounds bounds_of(long hits, long trials);

#endif
