/* Samples of the processors as rows of the file: of a scope, and of the windows that were recorded.
 */
#ifndef PERFKIT_ANALYSIS_CPU_SAMPLE_ROWS_H
#define PERFKIT_ANALYSIS_CPU_SAMPLE_ROWS_H

#include "libprof/analysis/scope.h"

struct prof_cpu_sample {
    int64_t start;
    int64_t duration;      /* 0 = a point, on a processor */
    int64_t weight;        /* ns; above 0 */
    int64_t thread, stack; /* ids, 0 = unknown */
    int64_t kind;          /* enum wire_cpu_kind, or damage */
};

/* So that sums of a damaged capture's samples stay within integers. */
#define PROF_CPU_SAMPLE_MOST_NS (INT64_MAX / 16)

typedef bool prof_cpu_sample_seen(void *user, const struct prof_cpu_sample *sample);

/* All samples in scope. The sampler does not know windows that the program opens itself
 * (--capture-range): what lies outside is left out here, a stretch by its part. `seen` returns
 * false when memory ran out. */
enum prof_status prof_cpu_sample_rows(struct prof_capture *capture, const struct prof_scope *scope,
                                      prof_cpu_sample_seen *seen, void *user,
                                      struct prof_error *err);

#endif
