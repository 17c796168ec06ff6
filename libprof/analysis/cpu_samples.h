/* Samples of the processors against the time in which devices work. */
#ifndef PERFKIT_ANALYSIS_CPU_SAMPLES_H
#define PERFKIT_ANALYSIS_CPU_SAMPLES_H

#include "libprof/analysis/intervals.h"
#include "libprof/analysis/scope.h"
#include "libprof/include/prof_cpu.h"

/* When devices work, and who gives them work. Starts as {0}. */
struct prof_cpu_device_time {
    struct prof_intervals busy;  /* a set */
    int64_t *before;             /* prof_intervals_sums of it */
    struct prof_map launching;   /* thread ids */
    struct prof_interval window; /* time that counts as idle lies in it */
};

/* An operation; starts must not fall. False: out of memory. */
bool prof_cpu_device_works(struct prof_cpu_device_time *time, int64_t start, int64_t end,
                           int64_t thread);
void prof_cpu_device_time_free(struct prof_cpu_device_time *time);

bool prof_cpu_sampled(struct prof_capture *capture);

/* As prof_cpu, for device time that is known. Sets time->before. */
enum prof_status prof_cpu_of(struct prof_capture *capture, const struct prof_scope *scope,
                             struct prof_cpu_device_time *time, struct prof_cpu *result,
                             struct prof_error *err);

#endif
