#ifndef PERFKIT_SAMPLERS_COUNTERS_SELF_TEST_H
#define PERFKIT_SAMPLERS_COUNTERS_SELF_TEST_H

#include <stdbool.h>
#include <stdint.h>

struct counter_self_test {
    unsigned device, bursts;
    double burst_ms, pause_ms;
    uint64_t interval_ns;
    bool own_clock; /* samples in CLOCK_MONOTONIC by CUPTI's timestamp callback */
    bool context;   /* with a CUDA context of its own on the GPU */
    bool edges;     /* print when DRAM reads start and end */
    bool steps;     /* print each call into CUPTI before it is made */
    bool keep_oldest, no_peaks;
    uint64_t hardware_bytes; /* 0 = as the sampler */
    uint32_t batch;
    const char *counters;   /* names separated by commas; NULL = the whole set */
    const char *cupti_path; /* or NULL */
};

/* Prints on stdout. Exit status: 0 when samples came. */
int counter_self_test(const struct counter_self_test *options);

#endif
