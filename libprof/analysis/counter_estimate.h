/* What is known of a kernel's counters from its samples, and how well.
 *
 * Two ratios are made of the same counts: counts per second, over the kernel time that the samples
 * cover, and counts per launch, over the launches that they cover (a launch of which a fifth was
 * seen is a fifth). A launch that takes longer for a slower clock counts the same, so the second
 * does not follow the first: with a clock that changes it is the better known by far.
 *
 * The standard errors are those of a ratio estimator over clusters (Cochran, Sampling Techniques,
 * 3rd ed., eq. 6.10 and 9.1): samples of one launch are not independent of each other, nor are
 * launches of one burst, which have the same clock and the same error of the times that a burst
 * begins and ends by. So both are tried, and the larger is reported. */
#ifndef PERFKIT_ANALYSIS_COUNTER_ESTIMATE_H
#define PERFKIT_ANALYSIS_COUNTER_ESTIMATE_H

#include "libprof/include/prof.h"

/* Sums over samples. */
struct counter_tally {
    int64_t samples;
    double kernel_ns; /* of the group's kernels, or busy time of the device */
    double busy_ns;   /* the same without counting twice what ran side by side */
    double length_ns;
    double launches; /* covered */
    double *sums;    /* per counter */
};

/* Moments of both ratios over clusters, and the cluster that is being filled. */
struct counter_clusters {
    int64_t count;
    double time_time, launch_launch;
    double *value_value, *value_time, *value_launch; /* per counter */
    uint64_t open;                                   /* key of the cluster */
    double time, launches;
    double *values;
};

struct counter_estimate {
    struct counter_tally alone; /* samples with this kernel and no other */
    struct counter_tally own;   /* what the values rest on */
    struct counter_tally all;   /* whole samples, whatever else ran in them */
    struct counter_clusters by_launch, by_burst;
    bool others;
};

/* What a sample says of a kernel. */
struct counter_part {
    const double *values; /* per counter */
    double kernel_ns, busy_ns, length_ns;
    double launches; /* covered by the sample, of this kernel */
    uint32_t launch, burst;
};

/* Estimates for `groups` kernels and the counters of `summary`, and the one block of memory that
 * all their sums lie in; free both. False: out of memory. */
bool counter_estimates_make(const struct prof_counter_summary *summary, size_t groups,
                            struct counter_estimate **estimates, double **memory);

/* Levels weigh by time, so that a sum of them over a sum of times is their mean. */
void counter_tally_add(const struct prof_counter_summary *summary, struct counter_tally *tally,
                       const struct counter_part *part);
/* To `own`, in the order of time. */
void counter_estimate_add(const struct prof_counter_summary *summary,
                          struct counter_estimate *estimate, const struct counter_part *part);
void counter_estimate_end(const struct prof_counter_summary *summary,
                          struct counter_estimate *estimate);

/* Counter i by this tally of the estimate, without its share. */
struct prof_counter_value counter_value(const struct prof_counter_summary *summary,
                                        const struct counter_estimate *estimate,
                                        const struct counter_tally *tally, size_t i);

#endif
