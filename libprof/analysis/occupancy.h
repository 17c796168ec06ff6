/* How many blocks of a kernel fit on one multiprocessor, and what limits them. */
#ifndef PERFKIT_ANALYSIS_OCCUPANCY_H
#define PERFKIT_ANALYSIS_OCCUPANCY_H

#include "libprof/include/prof.h"

enum prof_occupancy_limit {
    PROF_LIMIT_THREADS, /* block size */
    PROF_LIMIT_BLOCKS,
    PROF_LIMIT_REGISTERS,
    PROF_LIMIT_SHARED,
};

struct prof_occupancy {
    int64_t blocks; /* per unit */
    double share;   /* of the unit's threads, 0..1 */
    enum prof_occupancy_limit limit;
};

/* CUDA programming guide, "Occupancy": threads per unit, blocks per unit (by compute capability),
 * registers in steps of 256 per warp, shared memory in steps of 128 bytes with 1 KiB per block that
 * the system keeps from 8.0 on. False where the device or the launch reports too little. */
bool prof_occupancy_of(const struct prof_device *device, const struct prof_config *config,
                       struct prof_occupancy *result);

const char *prof_occupancy_limit_text(enum prof_occupancy_limit limit);

/* Blocks (work-groups) of a launch; 0 = unknown. Threads of a block; 0 = chosen by the runtime. */
int64_t prof_config_blocks(const struct prof_config *config);
int64_t prof_config_threads(const struct prof_config *config);

#endif
