/* The sampler: all GPUs of a run, in bursts, until a stop is requested. */
#ifndef PERFKIT_SAMPLERS_COUNTERS_SAMPLER_H
#define PERFKIT_SAMPLERS_COUNTERS_SAMPLER_H

#include <stdint.h>

struct sampler_options {
    const char *directory; /* the run's spool folder */
    const char *set;       /* name of a metric set */
    const char *cupti;     /* libcupti to use, or NULL */
    uint64_t interval_ns;  /* 0 = SAMPLER_INTERVAL_NS */
    double duty;           /* share of the time to sample; 0 = by the budget */
    int stop_fd;           /* end of file: stop */
    int ready_fd;          /* closed once sampling has begun, or cannot */
};

#define SAMPLER_INTERVAL_NS 20000ull

/* Runs until stop_fd ends or a request to end comes. What goes wrong is said in the spool: there is
 * always a capture to say it in, and the run goes on without counters. Returns the exit status. */
int sampler_run(const struct sampler_options *options);

/* From a signal handler: stop soon. */
void sampler_stop(void);

#endif
