/* prof_iterations.h: what an iteration of a run is, and which parts of the run are analysed.
 * Conventions as in prof.h.
 *
 * A phase is a part of a run that repeats: the instances of one NVTX range, or the period of a
 * thread's launches where no range repeats. A run may have several phases, one after the other or
 * in turn; findings, memory, comparisons and ranks all use the same ones. */
#ifndef PERFKIT_PROF_ITERATIONS_H
#define PERFKIT_PROF_ITERATIONS_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/include/prof_capture.h"

#ifdef __cplusplus
extern "C" {
#endif

enum prof_iteration_source {
    PROF_ITERATION_ASKED,     /* the range that prof_filter.iteration names */
    PROF_ITERATION_STEP,      /* ranges called "step", "iteration", "batch" or alike */
    PROF_ITERATION_REPEATING, /* the outermost range that repeats and launches device work */
    PROF_ITERATION_RUN,       /* nothing repeats: the whole run is one */
    PROF_ITERATION_LAUNCHES,  /* no range repeats: the period of the launches */
    PROF_ITERATION_SOURCES
};

/* "asked", "step", ...: fixed words, never NULL. */
const char *prof_iteration_source_text(enum prof_iteration_source source);

/* Columns that a phase's name has in sentences of a report (prof_report_fit cuts it); what is
 * printed is accepted as prof_filter.iteration. */
#define PROF_PHASE_CELLS 40

struct prof_phase_row {
    const char *name; /* the range with those around it as far as it takes to tell the phases apart,
                         "train/step"; NULL = none, see source. Lives as long as the result */
    const char *domain; /* NVTX domain of the range; NULL = the default one, or no range */
    enum prof_iteration_source source;
    int64_t iterations;       /* analysed; 0 = the phase does not repeat */
    int64_t skipped;          /* iterations before those, as warm-up */
    int64_t begin_ns, end_ns; /* from the first analysed iteration to the last one */
    int64_t analysed_ns;      /* of that time: what other phases and pauses of recording leave */
    int64_t device_ns;        /* device work that starts in it, summed */
};

/* Device work launched in a range. */
struct prof_coverage_range {
    const char *name; /* of the outermost range around it that holds no iterations, borrowed of the
                         capture; NULL = in no range */
    int64_t device_ns;
};
#define PROF_COVERAGE_RANGES 3

/* Where the device work of the run lies, ns summed over operations. */
struct prof_coverage {
    int64_t device_ns;   /* all of it */
    int64_t analysed_ns; /* in the analysed intervals */
    int64_t skipped_ns;  /* in iterations that are left out as warm-up */
    int64_t set_up_ns;   /* in ranges named as warm-up, setup or teardown */
    struct prof_coverage_range other[PROF_COVERAGE_RANGES]; /* of the rest, the largest first */
    size_t other_count;
};

/* Whether what `filter` says of iterations fits the capture, for those who report nothing by
 * iterations. PROF_NOTFOUND: no such range, or no iteration is left after `skip`; as whoever
 * reports by iterations says it. */
enum prof_status prof_iterations_check(struct prof_capture *capture,
                                       const struct prof_filter *filter, struct prof_error *err);

#ifdef __cplusplus
}
#endif

#endif
