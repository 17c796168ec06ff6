/* prof_memory.h: what was allocated at one moment. Conventions as in prof.h. */
#ifndef PERFKIT_PROF_MEMORY_H
#define PERFKIT_PROF_MEMORY_H

#include "libprof/include/prof.h"

#ifdef __cplusplus
extern "C" {
#endif

struct prof_alive {
    struct prof_allocation *rows; /* by bytes, largest first; at most `limit` */
    size_t count;
    int64_t total, total_bytes; /* all that were alive, listed or not */
};

/* The allocations of one memory kind (-1 = all) that were alive just after `at_ns`: made until then
 * and not freed yet. filter: process, device, thread, NVTX range of the allocating call; its times
 * play no part; one that chooses kernels or streams leaves nothing. One scan; memory grows with the
 * number alive. */
enum prof_status prof_memory_alive(struct prof_capture *capture, const struct prof_filter *filter,
                                   int kind, int64_t at_ns, size_t limit, struct prof_alive *result,
                                   struct prof_error *err);
void prof_alive_free(struct prof_alive *result);

#ifdef __cplusplus
}
#endif

#endif
