/* prof_rollup.h: cheap totals for live views.
 * Conventions as in prof.h. */
#ifndef PERFKIT_PROF_ROLLUP_H
#define PERFKIT_PROF_ROLLUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/include/prof_capture.h"

#ifdef __cplusplus
extern "C" {
#endif

struct prof_rollup_row {
    const struct prof_config *config; /* any one of the kernel's configurations */
    const char *name;
    int64_t count, sum_ns, min_ns, max_ns;
    double median_ns; /* from the log histogram: off by at most a factor of sqrt(2) */
};

struct prof_rollup_second {
    int64_t second; /* whole seconds since capture start; seconds without kernels are left out */
    int64_t count, sum_ns;
};

struct prof_rollup {
    struct prof_rollup_row *rows; /* per kernel name, by sum, largest first */
    size_t count;
    struct prof_rollup_second *seconds; /* rising */
    size_t second_count;
    int64_t kernels, sum_ns;
};

/* Kernel totals from the table `rollup`: milliseconds whatever the number of kernels. The filter's
 * times are taken in whole seconds; the table knows no calls: PROF_INVALID with filter->range. */
enum prof_status prof_rollup(struct prof_capture *capture, const struct prof_filter *filter,
                             struct prof_rollup *result, struct prof_error *err);
void prof_rollup_free(struct prof_rollup *result);

#ifdef __cplusplus
}
#endif

#endif
