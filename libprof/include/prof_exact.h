/* prof_exact.h: what single launches counted (perfkit run --counters=exact:KERNEL).
 * Conventions as in prof.h. */
#ifndef PERFKIT_PROF_EXACT_H
#define PERFKIT_PROF_EXACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/include/prof_ceilings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A launch configuration on a device. Each counter is a mean over the launches that it was counted
 * in; different counters are counted in different launches. NaN = not counted. */
struct prof_exact_row {
    const struct prof_config *config;
    int64_t device;    /* prof_device.physical; 0 = not known */
    int64_t launches;  /* that something was counted in */
    bool complete;     /* every counter that FLOP are made of was counted */
    double flop;       /* floating-point operations a launch, a multiply-add is two; NaN unless
                          complete */
    double flop_error; /* its standard error; NaN where a counter was counted once only */
    double pipe[PROF_CEILINGS];   /* the FLOP of each compute roof (FP64 .. TENSOR_FP8), else 0 */
    double dram_read, dram_write; /* bytes a launch */
    double l2;                    /* bytes a launch */
};

struct prof_exact {
    struct prof_exact_row *rows; /* in the order of launch_config.id, then device */
    size_t count;
};

/* What the capture's table exact_count holds, by launch configuration and device. Without it the
 * result is empty and PROF_OK. Formulas: docs/guide/counters.md. */
enum prof_status prof_exact(struct prof_capture *capture, struct prof_exact *result,
                            struct prof_error *err);
void prof_exact_free(struct prof_exact *result);

/* The row of a configuration on a device; NULL = not counted. */
const struct prof_exact_row *prof_exact_find(const struct prof_exact *exact,
                                             const struct prof_config *config, int64_t device);

#ifdef __cplusplus
}
#endif

#endif
