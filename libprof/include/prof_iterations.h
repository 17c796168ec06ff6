/* prof_iterations.h: the iterations of a run one by one, which of them are slow, and why. Part of
 * prof.h's interface; its conventions hold. What an iteration is: prof_findings.h. */
#ifndef PERFKIT_PROF_ITERATIONS_H
#define PERFKIT_PROF_ITERATIONS_H

#include "libprof/include/prof_findings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of more iterations none is listed. */
#define PROF_MOST_ITERATIONS (1 << 20)

struct prof_iteration_row {
    int64_t number; /* from 1: of all iterations of the capture in order of start */
    size_t series;  /* index into prof_iteration_list.series */
    int64_t thread; /* id of the one that ran it */
    int64_t device; /* that this thread launches most on (prof_device.physical); 0 = unknown */
    /* From its begin, or from when the one before was done where that is later, until it and all
     * device work launched in it is done. */
    int64_t start_ns, duration_ns;
    bool warm_up;            /* it takes part in no figure of its series */
    bool slow;               /* longer than prof_iteration_series.limit_ns */
    int64_t ns[PROF_SLICES]; /* of `device`: sum: duration_ns */
    int64_t device_ns; /* of it, while an operation ran: union of kernels, memcpys and memsets */
    int64_t api_ns;    /* union of its thread's calls that launch, copy, wait, allocate or build;
                          PROF_UNKNOWN = which thread launched is not known */
    int64_t sync_ns;   /* sum of its synchronizations */
    int64_t launches;  /* kernels, and graphs that were recorded whole */
    int64_t transfers; /* memcpys and memsets */
    int64_t bytes;     /* of them */
    int64_t allocations, allocated_bytes;
    int64_t synchronizations;
    struct prof_energy energy; /* of `device`; NaN also where it is known too badly */
};

/* The iterations of one phase on one thread: each is compared with these only. */
struct prof_iteration_series {
    size_t phase;            /* index into prof_iteration_list.phases */
    int64_t thread, process; /* ids */
    int64_t count, warm_up;  /* iterations with and without these */
    int64_t total_ns;
    double median_ns;        /* of those after warm-up, as all that follows; NaN without */
    int64_t low_ns, high_ns; /* quartiles; PROF_UNKNOWN without */
    int64_t min_ns, max_ns;
    int64_t
        limit_ns; /* longer ones are slow (iterations/series.c); PROF_UNKNOWN = too few to say */
    int64_t slow;
    double drift;   /* change of the duration from the first to the last, a share of the median, by
                       the slope of Theil and Sen; 0 = no trend (Mann and Kendall); NaN = too few */
    int64_t period; /* every so-and-so-many-th is slow; 0 = they come without a rule */
    int64_t period_first;      /* number of the first of those; 0 = none */
    struct prof_energy energy; /* of an iteration after warm-up, the mean, with the time between */
};

/* What the time of an iteration is divided by: each nanosecond is in one part. Kind, name in JSON,
 * words for people. Up to MEMSET the device works, then it is idle; MIGRATION is both. */
#define PROF_ITERATION_PARTS(X)                                                                    \
    X(KERNEL, "kernel", "kernel")                                                                  \
    X(COLLECTIVE, "collective", "collective")                                                      \
    X(MEMCPY, "memcpy", "memcpy")                                                                  \
    X(MEMSET, "memset", "memset")                                                                  \
    X(DEPENDENCY, "dependency", "queued behind another stream")                                    \
    X(QUEUED, "queued", "submitted but not started")                                               \
    X(SYNC, "sync", "blocked in synchronization")                                                  \
    X(ALLOC, "alloc", "allocation or free")                                                        \
    X(BUILD, "build", "build, load or graph")                                                      \
    X(MEMCPY_CALL, "memcpy_call", "blocked in memcpy")                                             \
    X(LAUNCH, "launch", "launch overhead")                                                         \
    X(HOST, "host", "host busy")                                                                   \
    X(JIT, "jit", "compiled at run time")                                                          \
    X(LOAD, "load", "code load by the driver")                                                     \
    X(GC, "gc", "garbage collection of Python")                                                    \
    X(MIGRATION, "migration", "unified memory")                                                    \
    X(PREEMPTED, "preempted", "host preempted")                                                    \
    X(BLOCKED, "blocked", "host blocked")                                                          \
    X(FAULTS, "page_faults", "page faults")

enum prof_part_kind {
#define PROF_ITERATION_PART(kind, name, text) PROF_PART_OF_##kind,
    PROF_ITERATION_PARTS(PROF_ITERATION_PART)
#undef PROF_ITERATION_PART
        PROF_PART_KINDS
};

/* Fixed words, never NULL. */
const char *prof_part_kind_name(enum prof_part_kind kind);
const char *prof_part_kind_text(enum prof_part_kind kind);

struct prof_iteration_part {
    enum prof_part_kind kind;
    const char *name; /* kernel, kind of memcpy, API call, NVTX range; NULL = none. Lives as long as
                         the result */
    int64_t ns, usual_ns, more_ns; /* in this iteration, in the others, the difference */
    int64_t count;      /* operations or calls that begin in it; PROF_UNKNOWN = of none */
    double usual_count; /* NaN likewise */
};

/* Why an iteration takes longer, or less, than the others of its series. */
struct prof_iteration_why {
    int64_t number;      /* prof_iteration_row.number */
    int64_t duration_ns; /* the sum of ns over its parts */
    int64_t usual_ns;    /* median of the others: the sum of usual_ns */
    int64_t compared;    /* others that `usual_ns` of a part rests on: those nearest the median */
    struct prof_iteration_part *parts; /* by |more_ns|, largest first; they are all */
    size_t part_count;
    /* What deviates first in time, of the parts that make the iteration slow. */
    bool has_cause;
    size_t cause;            /* index into parts */
    struct prof_place place; /* where in the run, and from which line */
    char seen[600];          /* the cause in a sentence; or why none is named */
    char *texts;             /* owned */
};

/* What prof_iteration_list explains: one iteration by its number, or as many of the slow ones, by
 * what they take more. {0}: none. */
struct prof_iteration_choice {
    int64_t number;
    size_t slow;
};

struct prof_iteration_list {
    struct prof_iteration_row *rows; /* by number */
    size_t count;
    struct prof_iteration_series *series; /* by time */
    size_t series_count;
    struct prof_phase_row *phases;
    size_t phase_count;
    struct prof_iteration_why *whys; /* as chosen, by number */
    size_t why_count;
    int64_t left_out;     /* iterations that were not recorded, to keep a budget: not in `rows` */
    const char *why_none; /* static; NULL = there are some */
};

/* Reads the operations once; 24 bytes for each while it runs, and 16 for their calls. A filter may
 * choose time, process and device, and say what an iteration is. explain: NULL = none.
 * PROF_NOTFOUND: no iteration has that number. */
enum prof_status prof_iteration_list(struct prof_capture *capture, const struct prof_filter *filter,
                                     const struct prof_iteration_choice *explain,
                                     struct prof_iteration_list *result, struct prof_error *err);
void prof_iteration_list_free(struct prof_iteration_list *result);

/* ---- what a report begins with --------------------------------------------------------------- */

/* What prof_overview fills, each as its own function does, and is freed as theirs. */
struct prof_overview_parts {
    struct prof_findings *findings;
    struct prof_utilisation *utilisation;   /* NULL = not wanted */
    size_t gaps, buckets;                   /* as prof_utilisation takes them */
    struct prof_iteration_list *iterations; /* NULL = not wanted */
    struct prof_iteration_choice explain;
};

/* In one pass over the device tables, which all of them read. Needs 24 bytes for each operation
 * while it runs, and with iterations 16 for their calls. */
enum prof_status prof_overview(struct prof_capture *capture, const struct prof_filter *filter,
                               const struct prof_overview_parts *parts, struct prof_error *err);

#ifdef __cplusplus
}
#endif

#endif
