/* Which kernels ran while each sample of hardware counters was taken. Shared by counters.c, which
 * puts the values to it, and counter_touch.c, which finds it out. */
#ifndef PERFKIT_ANALYSIS_COUNTERS_H
#define PERFKIT_ANALYSIS_COUNTERS_H

#include "libprof/analysis/scope.h"
#include "libprof/wire/sampler.h"
#include "libprof/include/prof.h"

struct counter_burst {
    int64_t start_ns, end_ns;
    bool others; /* programs that are not of the target were on the device */
};

/* A sampled device that the target used. */
struct counter_source {
    int64_t id;       /* counter_device.id */
    int64_t physical; /* prof_device.physical; 0 = the target never used it */
    int64_t interval_ns;
    PROF_ARRAY(struct counter_burst) bursts;
};

/* A kernel in a sample. */
struct counter_touch {
    uint32_t group;      /* COUNTER_OTHER: copies, fills, whole graphs */
    uint32_t overlap_ns; /* summed over its launches in the sample */
    double launches;     /* that lie in the sample: of each the share of its duration */
    double warps;        /* of these, of kernels that tracing has added to */
    uint32_t launch;     /* number of the last of them, within its group */
};
#define COUNTER_OTHER UINT32_MAX

enum counter_sample_kind {
    COUNTER_IDLE,     /* nothing ran */
    COUNTER_UNKNOWN,  /* in a part of it ran what has no row, as far as the capture can show */
    COUNTER_ALONE,    /* one group of kernels */
    COUNTER_SEQUENCE, /* several, one after the other */
    COUNTER_TOGETHER, /* several side by side, or with copies */
};

struct counter_sampled {
    size_t first; /* in touches */
    uint32_t count;
    uint32_t busy_ns;   /* union of the kernels */
    uint32_t length_ns; /* of the sample; 0 = it is left out */
    uint32_t burst;     /* index in the bursts of its source; UINT32_MAX = not known */
    uint16_t source;    /* index */
    uint8_t kind;       /* enum counter_sample_kind */
    bool others;
};

/* Kernels of a name or configuration on a device. */
struct counter_group {
    const struct prof_config *config; /* first seen */
    bool several_configs;
    uint16_t source;
    bool wanted; /* its kernels pass the filter */
    int64_t launches, time_ns, covered, covered_ns;
};

struct counter_work {
    struct prof_capture *capture;
    struct prof_scope scope;
    enum prof_group by;
    PROF_ARRAY(struct counter_source) sources;
    PROF_ARRAY(struct counter_group) groups;
    struct prof_map group_of;   /* key -> index */
    uint32_t *kernel_of_config; /* prof_kernel_of_configs */
    PROF_ARRAY(struct counter_touch) touches;
    PROF_ARRAY(struct counter_sampled) samples; /* in the order of counter_samples_sql */
    int64_t count, sampled_ns;                  /* of all samples */
    bool disordered; /* samples are not in the order of their time in the file */
};

/* "SELECT counter_device, start, duration<columns> FROM counter_sample" in order of time. */
void counter_samples_sql(const struct counter_work *work, const char *columns, char *out,
                         size_t size);

/* Fill groups, touches and samples. The caller holds a read transaction. */
enum prof_status counter_touches(struct counter_work *work, struct prof_error *err);

/* prof_device.physical of the sampled device with that uuid (NULL allowed); 0 = not of the
 * target. */
int64_t counter_physical(const struct prof_capture *capture, const char *uuid);

/* A text of the capture's small tables, kept until prof_close; NULL for none or no memory. */
const char *counter_text(struct prof_capture *capture, sqlite3_stmt *row, int column);

/* Index in sources, SIZE_MAX when there is none. */
size_t counter_source_of(const struct counter_work *work, int64_t counter_device);

/* ---- estimates (counters.c) ---------------------------------------------------------- */

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

/* Counter i by this tally of the estimate, without its share. */
struct prof_counter_value counter_value(const struct prof_counter_summary *summary,
                                        const struct counter_estimate *estimate,
                                        const struct counter_tally *tally, size_t i);

#endif
