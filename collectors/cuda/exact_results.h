/* Counts of launches, kept until their kernel records arrive with the configuration. CUPTI may
 * deliver these at the end only, since they have no times, so whatever other tables forget of a
 * launch by then is kept here too. */
#ifndef PERFKIT_COLLECTORS_CUDA_EXACT_RESULTS_H
#define PERFKIT_COLLECTORS_CUDA_EXACT_RESULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "collectors/cuda/exact_sets.h"

bool exact_results_start(void); /* takes the table; false: no memory */

/* A launch by CUPTI's correlation ids of the driver's call, and of the runtime's around (0 = none);
 * `completes`: every pass that its kernel needs was counted now. Called by the thread that has the
 * turn. */
struct exact_launch {
    uint32_t own, outer;
    uint64_t time;
    const struct exact_pass *pass;
    bool completes;
};
void exact_results_keep(const struct exact_launch *launch, const double *values);

/* Launches whose record has not come, or that there was no room for. */
uint32_t exact_results_lost(void);

void exact_results_forked(void);

#endif
