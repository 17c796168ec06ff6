/* What the parts of an extraction share: the facts of the capture, the iterations, the paths of
 * NVTX ranges, and the metrics that are being made. */
#ifndef PERFKIT_ANALYSIS_COMPARE_EXTRACT_H
#define PERFKIT_ANALYSIS_COMPARE_EXTRACT_H

#include "libprof/analysis/compare/metric.h"
#include "libprof/analysis/facts/facts.h"

struct prof_extract {
    struct prof_capture *capture;
    struct prof_facts facts;
    struct prof_iterations iterations;
    struct prof_run *run;
    PROF_ARRAY(struct prof_metric) metrics;
    struct prof_names metric_index;  /* of exact metrics: by family, name and place */
    struct prof_map metric_pointers; /* the same by the texts' addresses */
    struct prof_names path_index;
    PROF_ARRAY(const char *) paths; /* 0 = "": texts of the run */
    uint32_t *path_of_node;         /* per range: its path + 1, 0 = not made yet */
    int64_t call_name;              /* string id of the call before this one */
    const char *call_text;          /* its name; NULL = not counted */
    bool to_completion;             /* iterations last until their device work is done */
    bool failed;                    /* out of memory: sticks */
};

/* ---- paths of ranges (extract_paths.c) */

/* Programs that number their ranges have a path for each: those after the first so many are counted
 * together, in "(others)". */
#define PROF_EXTRACT_MAX_PATHS 4097

/* The path of the innermost range that is open on the thread: an index into paths. */
uint32_t prof_extract_path(struct prof_extract *x, int64_t thread, int64_t time);
/* The path of a range itself. */
uint32_t prof_extract_path_of_node(struct prof_extract *x, uint32_t node);

/* ---- metrics */

/* A text that the run keeps; "" when out of memory. */
const char *prof_extract_text(struct prof_extract *x, const char *text);

/* A new metric, valid until the next call; NULL when out of memory. */
struct prof_metric *prof_extract_add(struct prof_extract *x, enum prof_metric_family family,
                                     const char *name, const char *place);

/* Count `amount` of an exact metric that happened at `time`, or for PROF_NO_ITERATION outside. */
void prof_extract_count(struct prof_extract *x, enum prof_metric_family family, const char *name,
                        const char *place, size_t iteration, int64_t amount);

/* A noisy metric from values in order of their events; nothing for none. */
void prof_extract_sketch(struct prof_extract *x, struct prof_metric *metric, const double *values,
                         size_t count);

/* Sums by iteration. */
struct prof_iteration_sum {
    size_t iteration;
    double sum;
};
struct prof_iteration_sums {
    PROF_ARRAY(struct prof_iteration_sum) list;
};
/* False: out of memory. */
bool prof_iteration_sums_add(struct prof_iteration_sums *sums, size_t iteration, double value);
/* Their prof_metric.iteration_ns; frees them. */
double prof_iteration_sums_finish(struct prof_extract *x, struct prof_iteration_sums *sums);

static inline bool prof_extract_is_steady(const struct prof_extract *x, size_t iteration)
{
    return iteration != PROF_NO_ITERATION && x->iterations.list.data[iteration].steady;
}

/* ---- parts: each adds its families */

void prof_extract_device(struct prof_extract *x); /* kernels, copies, times of iterations */
void prof_extract_ranges(struct prof_extract *x); /* wall, idle, ranges */
enum prof_status prof_extract_host(struct prof_extract *x, struct prof_error *err);

#endif
