/* Sampling the counters of one GPU in bursts. Who hosts this (a process of perfkit, or one process
 * of the target) does not matter here: nothing below talks to a spool, to perfkit or to a user. */
#ifndef PERFKIT_SAMPLERS_COUNTERS_DEVICE_H
#define PERFKIT_SAMPLERS_COUNTERS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "samplers/counters/sets.h"

#define COUNTER_WHY_BYTES 256u

struct counter_gpu;

struct counter_sample {
    uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
    const double *values;      /* [counters of the GPU], in the order of counter_gpu_row */
};

/* How to sample; 0 = the usual. */
struct counter_plan {
    uint64_t interval_ns;
    uint64_t hardware_bytes; /* of the buffer that the device writes during a burst */
    uint32_t batch;          /* samples that are decoded at a time: more than a burst has */
    bool keep_oldest;        /* when that buffer is full, else the newest stay */
    bool no_peaks;           /* do not read peak rates */
};

/* Open GPU number `index` (as CUDA numbers them in this process) for `set`. NULL: `why` is a
 * sentence with its remedy. pm_load and cuInit must have succeeded. */
struct counter_gpu *counter_gpu_open(unsigned index, const struct counter_set *set,
                                     const struct counter_plan *plan, char why[COUNTER_WHY_BYTES]);
void counter_gpu_close(struct counter_gpu *gpu);

/* Were the counters chosen without an availability image of the device? */
bool counter_gpu_blind(const struct counter_gpu *gpu);
const char *counter_gpu_chip(const struct counter_gpu *gpu);
/* Counters that this chip has of the set. */
size_t counter_gpu_count(const struct counter_gpu *gpu);
const struct counter_row *counter_gpu_row(const struct counter_gpu *gpu, size_t n);
const char *counter_gpu_metric(const struct counter_gpu *gpu, size_t n);

/* The peak rate of counter n per cycle of its clock; NAN when unknown. Known after the first
 * decoded sample. */
double counter_gpu_peak(const struct counter_gpu *gpu, size_t n);

/* One burst: start, (the caller waits), stop. False: `why`. */
bool counter_gpu_start(struct counter_gpu *gpu, char why[COUNTER_WHY_BYTES]);
bool counter_gpu_stop(struct counter_gpu *gpu, char why[COUNTER_WHY_BYTES]);

/* Decode a batch of what a burst left and hand each sample to `take`. Returns the number of samples
 * in this batch, 0 when nothing is left, -1 with `why`: then the GPU must be closed and may be
 * opened anew. *overflow is set when the hardware's buffer was too small for the burst. */
int counter_gpu_decode(struct counter_gpu *gpu,
                       void (*take)(void *context, const struct counter_sample *sample),
                       void *context, bool *overflow, char why[COUNTER_WHY_BYTES]);

/* Called with the text of each call into CUPTI before it is made; NULL = not wanted. For the
 * self-test: a crash inside CUPTI has no other witness. */
extern void (*counter_gpu_step)(const char *call);

#endif
