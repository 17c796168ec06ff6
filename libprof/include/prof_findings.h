/* prof_findings.h: which parts of a run are analysed, where the time of a device went there, what
 * is slow, why, and what a fix can bring. Conventions as in prof.h. */
#ifndef PERFKIT_PROF_FINDINGS_H
#define PERFKIT_PROF_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/include/prof_capture.h"
#include "libprof/include/prof_what_if.h"
#include "libprof/include/prof_summaries.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- waterfall ------------------------------------------------------------------------------- */

/* Each instant of the part of a run that the rules analyse has exactly one state, so that the
 * states of a device add up to it (docs/reference/rules.md). */

/* State, name in files and JSON, words for people. Idle time is divided by what the host did until
 * the next operation arrived. From COPY_PAGEABLE on no kernel runs, from DEPENDENCY on nothing. */
#define PROF_WATERFALL_STATES(X)                                                                   \
    X(BOTH, "both", "kernels, with memcpy or memset at once")                                      \
    X(KERNEL, "kernel", "kernels")                                                                 \
    X(COPY_PAGEABLE, "memcpy_pageable", "memcpy, pageable memory")                                 \
    X(COPY_PINNED, "memcpy_pinned", "memcpy, page-locked memory")                                  \
    X(COPY_DEVICE, "memcpy_device", "memcpy within the device")                                    \
    X(COPY_OTHER, "memcpy_other", "other memcpy")                                                  \
    X(FILL, "memset", "memset")                                                                    \
    X(DEPENDENCY, "dependency", "idle: work queued behind another stream's")                       \
    X(DISPATCH, "queued", "idle: work submitted but not started")                                  \
    X(SYNC, "sync", "idle: host blocked in a synchronization, or just woken")                      \
    X(ALLOC, "alloc", "idle: host allocated or freed memory")                                      \
    X(BUILD, "build", "idle: host compiled or loaded code, or made a graph")                       \
    X(COPY_CALL, "memcpy_call", "idle: host blocked in a synchronous memcpy")                      \
    X(LAUNCH, "launch", "idle: launch overhead")                                                   \
    X(HOST, "host", "idle: host busy with other work")

enum prof_slice {
#define PROF_WATERFALL_STATE(state, name, text) PROF_SLICE_##state,
    PROF_WATERFALL_STATES(PROF_WATERFALL_STATE)
#undef PROF_WATERFALL_STATE
        PROF_SLICES
};
#define PROF_SLICE_FIRST_IDLE PROF_SLICE_DEPENDENCY

/* One device that did something; see prof_findings.waterfalls. */
struct prof_waterfall {
    int64_t device;          /* prof_device.physical, 0 = unknown */
    int64_t ns[PROF_SLICES]; /* sum: prof_findings.window_ns */
};

/* Fixed words, never NULL. */
const char *prof_slice_name(enum prof_slice slice);
const char *prof_slice_text(enum prof_slice slice);

/* ---- iterations ------------------------------------------------------------------------------ */

/* A phase is a part of a run that repeats: the instances of one NVTX range, or the period of a
 * thread's launches where no range repeats. A run may have several phases, one after the other or
 * in turn; findings, memory, comparisons and ranks all use the same ones. */

enum prof_iteration_source {
    PROF_ITERATION_ASKED,     /* the range that prof_filter.iteration names */
    PROF_ITERATION_STEP,      /* ranges called "step", "iteration", "batch" or alike */
    PROF_ITERATION_REPEATING, /* the outermost range that repeats and launches device work */
    PROF_ITERATION_RUN,       /* nothing repeats: the whole run is one */
    PROF_ITERATION_LAUNCHES,  /* no range repeats: the period of the launches */
    PROF_ITERATION_SOURCES
};

/* As in JSON ("step", "repeating"); never NULL. */
const char *prof_iteration_source_text(enum prof_iteration_source source);

/* Columns that a phase's name has in sentences of a report (prof_report_fit cuts it); what is
 * printed is accepted as prof_filter.iteration. */
#define PROF_PHASE_CELLS 40

struct prof_phase_row {
    const char *name; /* the range with those around it as far as it takes to keep the phases apart,
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
 * iterations. PROF_NOTFOUND: no such range, or no iteration is left after `skip`; as reports by
 * iterations say it. */
enum prof_status prof_iterations_check(struct prof_capture *capture,
                                       const struct prof_filter *filter, struct prof_error *err);

/* ---- findings -------------------------------------------------------------------------------- */

enum prof_severity { PROF_SEVERITY_INFO, PROF_SEVERITY_WARNING, PROF_SEVERITY_CRITICAL };

/* A rule and what is to be said about it. Static texts, never NULL unless said so. */
struct prof_rule_page {
    const char *id;                            /* "pageable-copy" */
    const char *title;                         /* "Copies from and to pageable memory" */
    const char *fires;                         /* what must be seen, with the limits */
    const char *why;                           /* why that is slow */
    const char *fix;                           /* what to change */
    const char *cuda, *opencl, *pytorch, *jax; /* the calls to use there; NULL = there is none */
    const char *bound;                         /* how the upper bound of the gain is computed */
    const char *limits;                        /* what the rule cannot see */
    const char *needs;                         /* what must have been recorded */
};

/* All rules, in the order of the registry; NULL after the last. */
const struct prof_rule_page *prof_rule_page(size_t index);
/* NULL when there is none of that id. */
const struct prof_rule_page *prof_rule_find(const char *id);

enum prof_number_unit {
    PROF_NUMBER_COUNT,
    PROF_NUMBER_NS,
    PROF_NUMBER_BYTES,
    PROF_NUMBER_RATE, /* bytes/s */
    PROF_NUMBER_SHARE,
    PROF_NUMBER_PLAIN,
};

/* One of the figures that a finding rests on. */
struct prof_number {
    const char *name; /* "median_kernel_ns"; static */
    double value;
    enum prof_number_unit unit;
    int term; /* of the bound: bound_ns is the sum of term x value over all numbers; +1, -1, or 0
                 where the number is none of its terms */
};
#define PROF_FINDING_NUMBERS 16

/* The name of the number that takes from a bound what other findings have: bound_ns is less than
 * alone_ns by that much. */
#define PROF_NUMBER_ELSEWHERE "counted_in_other_findings_ns"

/* The value as sentences have it: "12.3 ms", "1,234", "0.42". */
struct prof_text prof_number_text(const struct prof_number *number);
/* The name without its unit, as words: "median kernel". `out`: at least 64 bytes. */
void prof_number_label(const struct prof_number *number, char *out, size_t size);

/* Where it is worst. */
struct prof_place {
    char path[160];         /* NVTX ranges around it, "train/step/forward"; "" = none */
    const char *name;       /* kernel, copy or call; NULL = none */
    int64_t stream, thread; /* ids, 0 = unknown */
    int64_t start_ns, duration_ns;
    char line[160]; /* what the host called it from, innermost first: "launch (a.c:5) < step"; "" =
                       not known */
    bool line_ends_it; /* the line is that of what comes right behind it: who let a device wait */
};
#define PROF_FINDING_PLACES 3

struct prof_finding {
    const struct prof_rule_page *rule;
    const char *fix;     /* what to do: the rule's, or what users of the program's framework call.
                            Static */
    const char *subject; /* of rules that report kernels one by one: "gather: long_scoreboard", the
                            kernel and what it waits for; else NULL */
    size_t phase;        /* index into prof_findings.phases */
    enum prof_severity severity; /* of the rule over all phases, alike in all of its rows that are
                                    hints or in all that are none */
    int64_t device;              /* prof_device.physical, 0 = none in particular */
    size_t devices; /* that the rule speaks of; reported is the one that it costs most */
    bool hint;      /* no fault by itself (one kernel decides, memory is the limit): never more than
                       info, and listed after faults */
    bool names_no_cause; /* says where the time goes and not why: listed after those that say why. A
                            hint where findings before it were given most of that time */
    double confidence;   /* 0..1: the part of the bound that fixing it likely saves. Estimated */
    char seen[600]; /* what was seen; each figure in it is one of the numbers. Names of the program
                       as they are */
    struct prof_number numbers[PROF_FINDING_NUMBERS];
    size_t number_count;
    struct prof_place places[PROF_FINDING_PLACES];
    size_t place_count;
    /* Upper bound of the time that fixing it can save. Bounds of one report are of different
     * instants: they add up to no more than prof_findings.window_ns. PROF_UNKNOWN = the finding is
     * about something other than time. */
    int64_t bound_ns;
    double bound_share; /* of the window; NaN likewise */
    int64_t slowed_ns;  /* the part of bound_ns, and of alone_ns, by which kernels of the host's
                           processors are slower than the fastest of their kind: fixing it may not
                           save that part */
    /* The same where nothing else is fixed: remedies of the same time overlap, and bound_ns leaves
     * what another finding was given already. At least bound_ns; these do not add up. */
    int64_t alone_ns;
    double alone_share;
    /* Where the recording overhead was measured: bound_ns of the program without it lies in
     * [net_min_ns, net_max_ns]. The overhead lengthened the time in which the device waits for
     * the host, by how much is known for all of it, and not for which part. PROF_UNKNOWN = not
     * measured, or no such time is in the bound. */
    int64_t net_min_ns, net_max_ns;
    const struct prof_rule_page *same_cause; /* the finding that was given more than half of the
                                                time that this one is about, or that says why what
                                                this one names no cause of; NULL = none */
    int64_t whatif_ns; /* what a replay of the calls and operations without this fault, and with all
                          others, saves: may be more than the bound. PROF_UNKNOWN = not replayed, or
                          the replay does not reproduce what was measured within 2 % */
    enum prof_limit whatif_limit; /* what the critical path of that is spent on most */
    double whatif_limit_share;    /* how much of it */
    int64_t bytes;                /* findings about memory; PROF_UNKNOWN otherwise */
    /* What the severity goes by, times the confidence: the part of bound_ns that is not due to
     * single iterations, nor likely to recording (none that the device waits for the host, where
     * recording may have made all of it), and of what time of the phase, likewise.
     * PROF_UNKNOWN likewise. */
    int64_t typical_ns, typical_phase_ns;
    /* Of all phases in which the rule found something. Their rows stand together, the worst phase's
     * first; phases that are less than 1 % of the run have none. */
    size_t phases;
    int64_t rule_bound_ns;  /* the bounds of all of them summed; PROF_UNKNOWN likewise */
    double rule_confidence; /* the first one's */
};

/* How the numbers make the bound: "idle_launch_ns + saved_kernel_ns"; "" where it has none. */
void prof_finding_formula(const struct prof_finding *finding, char *out, size_t size);

/* A rule that could not judge. */
struct prof_abstention {
    const struct prof_rule_page *rule;
    int64_t device;  /* 0 = none in particular */
    const char *why; /* "needs the device's number of units". Static */
};

#define PROF_MISSING_WORK 0.01

/* The NVTX range whose instances are the iterations of the main phase. */
struct prof_iteration_range {
    char name[256], domain[128]; /* domain "": the default one */
    bool numbered;               /* a number follows the name: each instance has its own */
    int64_t period_ns;           /* from one begin to the next: of four in a row, their median */
};

/* By the newest 131,072 rows of each table, which the capture is then cut to (prof_live_tail).
 * PROF_NOTFOUND: no range repeats there; PROF_INVALID: its name or domain is too long. */
enum prof_status prof_iteration_range(struct prof_capture *capture,
                                      const struct prof_filter *filter,
                                      struct prof_iteration_range *range, struct prof_error *err);

/* ---- what recording cost --------------------------------------------------------------------- */

enum prof_overhead_source {
    PROF_OVERHEAD_UNKNOWN,
    PROF_OVERHEAD_MEASURED,  /* in pauses, in which the program ran unrecorded (--overhead=measure)
                              */
    PROF_OVERHEAD_SAMPLED,   /* by rows of iterations that were left out (--overhead=PERCENT) */
    PROF_OVERHEAD_ESTIMATED, /* from counted events and what recording one costs on this machine */
};

/* What follows a begin or end of a pause is not compared: a process looks every 5 ms, then switches
 * its sources. */
#define PROF_OVERHEAD_SETTLE_NS 25000000

/* How much slower the iterations of the main phase are while they are recorded. Times of an
 * iteration are from its begin to the next one's; medians within a stretch, geometric means over
 * the pauses. */
struct prof_overhead {
    enum prof_overhead_source source; /* UNKNOWN: the figures up to bare_ns are 0 */
    double ratio, low, high;          /* recorded / unrecorded; 95 % interval (Student's t over the
                                         pauses, of the logarithm); estimated: what is possible */
    double recorded_ns, bare_ns;      /* of an iteration */
    double paused; /* MEASURED, SAMPLED: an unrecorded iteration / one before CUPTI was switched on
                      (MEASURED: ratio and bare_ns include it; SAMPLED: of_run); 0 = not known */
    bool in_part;  /* CUDA, and `paused` is not known: the true ratio and of_run are at least these,
                      and bare_ns is the time in a pause */
    int64_t recorded, unrecorded; /* iterations compared */
    int64_t pauses, pauses_used;  /* all; those with iterations inside and beside */
    double of_run;  /* SAMPLED: what recording added to the time of all iterations, as a share */
    int64_t events; /* ESTIMATED: counted, of the thread that launches most */
};

/* For the controller of a budget: what recording costs by the instances of `range` that the
 * capture, which is being written, has by now. *after: 0 at first, then as the look before left it;
 * only the newest rows are read again. Of the thread that has most. */
enum prof_status prof_sampling_look(struct prof_capture *capture,
                                    const struct prof_iteration_range *range, int64_t *after,
                                    struct prof_overhead *out, struct prof_error *err);

/* For a live view: each instance of `range` that has ended and that the capture has after row
 * *after (0 at first, then as the look before left it). */
enum prof_status prof_live_iterations(struct prof_capture *capture,
                                      const struct prof_iteration_range *range, int64_t *after,
                                      void (*on_iteration)(void *context, int64_t duration_ns),
                                      void *context, struct prof_error *err);

struct prof_waterfall;
/* What the replay without the fault of a finding predicts, per iteration of its phase (of the
 * phase, where nothing repeats). */
struct prof_prediction {
    const struct prof_rule_page *rule;
    const char *subject;                         /* as prof_finding.subject */
    size_t phase;                                /* index into prof_findings.phases */
    double iteration_ns, predicted_ns, saved_ns; /* means */
    double speedup;
    enum prof_limit limit; /* what limits it then */
    double limit_share;    /* of the critical path */
};
#define PROF_PREDICTIONS 8 /* of the first findings that are replayed, the largest saving first */

struct prof_findings {
    struct prof_finding *rows; /* by severity, faults before hints, those that name a cause before
                                  others, then by the rule's bound x confidence, largest first; the
                                  phases of a rule together */
    size_t count;
    struct prof_abstention *abstentions;
    size_t abstention_count;
    /* What was analysed, in order of time; none where why_none. The main phase is the whole run
     * where nothing repeats. */
    struct prof_phase_row *phases;
    size_t phase_count;
    /* Of the main phase, which has a name for iterations and most operations: */
    int64_t begin_ns;
    int64_t steps;         /* iterations; 0 = it does not repeat */
    const char *step_name; /* its NVTX range; NULL = none */
    int64_t window_ns;     /* analysed time of all of them */
    int64_t typical_ns;    /* of it, without what is due to single iterations */
    struct prof_overhead overhead;
    struct prof_coverage coverage;
    double missing_share; /* of the devices' work, that was not recorded: from PROF_MISSING_WORK on
                             idle time is not judged */
    const char *why_none; /* why nothing was judged; static; NULL = it was */
    struct prof_waterfall *waterfalls; /* prof_findings.h: where that time went, a row a device */
    size_t waterfall_count;
    struct prof_prediction predictions[PROF_PREDICTIONS];
    size_t prediction_count;
};

/* Judge a capture by all rules. Reads each table once; about 48 bytes per device operation. A
 * filter may choose time, process and device; where single kernels, streams or threads were chosen,
 * here or when recording, idle time is not known and nothing is judged. All stretches of recording
 * are analysed; time between them belongs to none. */
enum prof_status prof_findings(struct prof_capture *capture, const struct prof_filter *filter,
                               struct prof_findings *result, struct prof_error *err);
void prof_findings_free(struct prof_findings *result);

#ifdef __cplusplus
}
#endif

#endif
