/* A training loop as a capture, with noise, and changed in one way at a time: what a comparison
 * must find and name. */
#ifndef PERFKIT_TESTS_COMPARE_PROGRAM_H
#define PERFKIT_TESTS_COMPARE_PROGRAM_H

#include "libprof/include/prof_compare.h"

enum change {
    UNCHANGED,
    EXTRA_LAUNCH,   /* relu_3 once more in an iteration */
    LARGER_COPY,    /* 4 bytes more up */
    EXTRA_SYNC,     /* in step/backward */
    LEAK,           /* 1 kB, never freed */
    PAGEABLE,       /* the copy up, from pinned memory before */
    SLOWER_KERNEL,  /* gemm 5 % */
    SPLIT_KERNEL,   /* softmax as softmax_max and softmax_sum */
    TEMPLATE,       /* gemm<128> is gemm<64, 2> */
    RENAMED_KERNEL, /* relu_3 is activation */
    OTHER_GRID,     /* relu_3 in half as many blocks */
    RENAMED_RANGE,  /* step/upload is step/send */
    FASTER_KERNEL,  /* gemm 8 % */
    HOT,            /* everything grows slower while it runs, by 12 % */
    MORE_REGISTERS, /* relu_3 */
    PIECES,         /* relu_1 in ten launches of a tenth each */
    NEW_RANGE,      /* step/forward/inner around half of step/forward */
    NEW_KERNEL,     /* check in step/forward, 8 us */
    OTHER_SYNC,     /* cudaStreamSynchronize */
    CHANGES
};

/* One run. The seed decides its noise: 0.3 % that all kernels share, 0.3 % of each kernel, 1 % of
 * each launch. `iterations` of them, after one of warm-up. */
struct prof_run program_run(enum change change, unsigned seed, int iterations);

#define RUNS 5
struct program_runs {
    struct prof_run runs[RUNS];
};
/* `count` runs with noise of their own. */
struct program_runs program_runs(enum change change, unsigned seed, int count);
void program_free(struct program_runs *runs);

/* The verdicts of two sides, which the caller frees. A failure fails the test. */
struct prof_comparison program_compare(struct prof_run *base, size_t bases, struct prof_run *cand,
                                       size_t cands, const struct prof_compare_options *options);
/* Runs that were made in turns, as `perfkit ab` does. */
static const struct prof_compare_options in_turns = {.interleaved = true};

/* The row of a family whose text or other side's name holds `part`; NULL when there is none. */
const struct prof_compared *row_named(const struct prof_comparison *result,
                                      enum prof_metric_family family, const char *part);
/* Rows of a verdict that are gated. */
size_t rows_of(const struct prof_comparison *result, enum prof_verdict verdict);

#endif
