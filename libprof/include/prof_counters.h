/* prof_counters.h: what the hardware counted while kernels ran, and over time. Conventions as in
 * prof.h. */
#ifndef PERFKIT_PROF_COUNTERS_H
#define PERFKIT_PROF_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/include/prof_summaries.h"

#ifdef __cplusplus
extern "C" {
#endif

enum prof_counter_kind {
    PROF_COUNTER_SUM = 1, /* events: bytes, instructions, busy cycles; belongs to what ran */
    PROF_COUNTER_CLOCK,   /* cycles that pass whether anything runs or not */
    PROF_COUNTER_MEAN,    /* a level (percent): averaged over time, never added up */
};

/* One counter of the set that was sampled. The same name means the same on every device. */
struct prof_counter {
    const char *name;   /* "dram_read_bytes", see `perfkit run --help` */
    const char *unit;   /* "byte", "cycle", "instruction", "warp-cycle" */
    const char *metric; /* CUPTI's name on the first device that has it */
    enum prof_counter_kind kind;
    /* What a kernel counts in each of its warps because it is traced: taken off the values of
     * kernels whose launch configuration gives their warps. 0 = nothing that is known. */
    double traced;
};

/* One counter over the covered time of a row. Doubles are NaN where they are not known. */
struct prof_counter_value {
    double rate; /* per second of kernel time: sum over samples / sum of the kernel time in them;
                    CLOCK: per second; MEAN: the mean level */
    double rate_error; /* its standard error (docs/guide/counters.md) */
    double per_launch; /* sum over samples / launches in them, a part of a launch being that part;
                          CLOCK: while a launch runs; MEAN: NaN */
    double per_launch_error; /* its standard error */
    double share; /* of the peak rate at the clock the device had meanwhile, 0..1: of the device
                     while it ran the kernel, also when several launches ran side by side */
};

struct prof_counter_row {
    const char *name;                 /* kernel */
    const struct prof_config *config; /* the row's only configuration; NULL when it has several */
    int64_t device;                   /* prof_device.physical */
    int64_t launches;                 /* with known start and end */
    int64_t time_ns;                  /* sum of their durations */
    int64_t covered;                  /* launches of which samples were taken */
    int64_t covered_ns;               /* how much of time_ns lies in samples */
    double coverage;                  /* covered_ns / time_ns */
    int64_t samples;                  /* that the values rest on: n */
    /* In too few samples it ran alone: the values are those of all that ran in its samples, other
     * kernels and copies too. `joint_share`: how much of covered_ns was like that in any case. */
    bool joint;
    double joint_share;
    bool shared; /* other programs used the device in some of the samples: values may hold theirs */
    bool known;  /* there were enough samples (PROF_COUNTER_MIN_SAMPLES); else values are NaN */
    struct prof_counter_value *values; /* [counter_count], in the order of counters */
};

#define PROF_COUNTER_MIN_SAMPLES 10

struct prof_counter_summary {
    struct prof_counter *counters;
    size_t counter_count;
    struct prof_counter_row *rows; /* by time_ns, largest first; only kernels with covered > 0 */
    size_t count;
    int64_t samples;     /* all of them, also those without a kernel */
    int64_t sampled_ns;  /* their time */
    int64_t bursts;      /* 0 = nothing was sampled: rows is empty */
    int64_t interval_ns; /* between samples, as requested; PROF_UNKNOWN without samples */
    int64_t wall_ns;
};

/* Samples of hardware counters (perfkit run --counters) attributed to the kernels that ran while
 * they were taken, by name or launch configuration and device. A sample in which one kernel ran
 * belongs to it whole, also when part of it was idle, unless kernels without a row may have run
 * there (a capture with kernel_filter, edges of recording windows); where kernels follow each other
 * within a sample it is divided by their time in it and their rates elsewhere; where they run side
 * by side it is joint. filter->process,
 * ->stream and ->thread choose kernels, not samples: what others ran in them counts as joint.
 * Without samples the result is empty and PROF_OK. Two scans of the samples, one of the kernels. */
enum prof_status prof_counter_summary(struct prof_capture *capture,
                                      const struct prof_filter *filter, enum prof_group group,
                                      struct prof_counter_summary *result, struct prof_error *err);
void prof_counter_summary_free(struct prof_counter_summary *result);

/* The place of a counter in `counters` and in each row's values; -1 = this capture has none. */
int prof_counter_find(const struct prof_counter_summary *summary, const char *name);

/* ---- counters over time ---------------------------------------------------------------------- */

enum prof_counter_scale {
    PROF_COUNTER_SHARE, /* of the peak rate at the clock the device had meanwhile, 0..1 */
    PROF_COUNTER_RATE,  /* `unit` per second */
    PROF_COUNTER_LEVEL, /* `unit`, mean over time */
};

/* What was counted between the first and the last sample of a span of time. */
struct prof_counter_point {
    int64_t start_ns, end_ns;
    double value; /* over the time that was sampled */
    double peak;  /* the most of any one sample */
};

struct prof_counter_line {
    const char *name, *unit; /* of the capture, as in struct prof_counter */
    int64_t device;          /* prof_device.physical; 0 = one that the target did not use */
    int64_t ordinal;         /* as the sampler counts devices, PROF_UNKNOWN if not reported */
    enum prof_counter_scale scale;
    struct prof_counter_point *points; /* by time, apart from each other: between them nothing was
                                          sampled */
    size_t count;
};

struct prof_counter_lines {
    struct prof_counter_line *rows; /* by device, then as the set lists its counters */
    size_t count;
};

/* Each counter of each sampled device, in at most max_points (at least 16) spans of equal length
 * over the capture's or the filter's time. filter: times, and the device; a device counts for
 * everything that runs on it, so nothing else plays a part. No samples: no rows, PROF_OK. One scan;
 * memory: 400 bytes a span and device. */
enum prof_status prof_counter_lines(struct prof_capture *capture, const struct prof_filter *filter,
                                    size_t max_points, struct prof_counter_lines *result,
                                    struct prof_error *err);
void prof_counter_lines_free(struct prof_counter_lines *result);

#ifdef __cplusplus
}
#endif

#endif
