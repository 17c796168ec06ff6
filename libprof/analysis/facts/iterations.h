/* What an iteration of a run is, for every report, rule, view and gate. See prof_findings.h for
 * the words.
 *
 * The choice rests on counts and on structure, never on durations, so that it is the same in every
 * run of a program: ranges by their path (iteration_paths.c, iteration_ranges.c), else the sequence
 * of launches (iteration_launches.c), else the run as a whole. */
#ifndef PERFKIT_ANALYSIS_FACTS_ITERATIONS_H
#define PERFKIT_ANALYSIS_FACTS_ITERATIONS_H

#include <stdbool.h>

#include "libprof/analysis/group.h"
#include "libprof/analysis/intervals.h"
#include "libprof/include/prof_findings.h"

#define PROF_NO_ITERATION SIZE_MAX

struct prof_facts;
struct prof_range_lane;

struct prof_iteration {
    int64_t begin, end;
    uint32_t thread;       /* id */
    uint32_t phase : 31;   /* index in facts.phases */
    bool steady : 1;       /* not warm-up */
    int64_t busy_ns;       /* union of the device work launched in it: of the sum that takes it */
    int64_t covered;       /* while summing that: where it ends so far */
    int64_t from, time_ns; /* set by prof_iterations_time: where its time begins, how long it is */
};

#define PROF_ITERATION_SEARCHES 8

/* The last search for a thread, which shortens the next: among which of the list, and what was
 * found. */
struct prof_iteration_search {
    int64_t thread;
    size_t first, end, at;
};

struct prof_iterations {
    enum prof_iteration_source source;
    uint32_t group;   /* number in facts.range_texts; PROF_NO_GROUP = no range */
    const char *name; /* borrowed of the capture; NULL = no range */
    const char *domain;
    PROF_ARRAY(struct prof_iteration) list; /* by thread, then begin; they do not overlap there */
    size_t main_begin, main_end;            /* those of the thread that has most */
    struct prof_map of_thread;              /* thread id -> first index << 32 | count */
    int64_t steady, skipped;
    struct prof_iteration_search searches[PROF_ITERATION_SEARCHES]; /* by thread id */
};

struct prof_phase {
    struct prof_iterations iterations;
    char *label;                     /* as prof_phase_row.name */
    bool tiled;                      /* each iteration lasts until the next one begins */
    struct prof_intervals intervals; /* analysed; apart from those of other phases */
    struct prof_intervals host;      /* the part of them in which the host launched: what was called
                                        then counts, however far behind the device was */
    int64_t device_end;              /* of all that was launched then */
    int64_t *before;                 /* analysed time of the phase before each of them */
    int64_t begin, end, time_ns;     /* first begin, last end, analysed time */
    int64_t ops, device_ns;          /* device work that starts in them */
    PROF_ARRAY(struct prof_iteration)
    paused; /* instances that were timed only; none of the others */
    struct prof_overhead overhead;
};

struct prof_phases {
    PROF_ARRAY(struct prof_phase) list; /* in order of time; at least one */
    size_t main;                        /* the one that stands for all where there can be but one */
    int64_t time_ns;                    /* analysed time of all */
    PROF_ARRAY(int64_t) others; /* begins of iterations that were not selected; see list_marks */
    struct prof_coverage coverage;
};

struct prof_filter;

/* Find the phases; facts hold operations, calls and ranges by then. Free the result also after a
 * failure. PROF_NOTFOUND: no range of the name in filter->iteration. */
enum prof_status prof_phases_find(struct prof_phases *phases, const struct prof_facts *facts,
                                  const struct prof_filter *filter, struct prof_error *err);
void prof_phases_free(struct prof_phases *phases);

/* What is said of them, to be freed as one: labels live behind the rows. False: out of memory. */
bool prof_phase_rows(const struct prof_phases *phases, struct prof_phase_row **rows, size_t *count);

/* Analysed time of the phase before a moment. */
int64_t prof_phase_before(const struct prof_phase *phase, int64_t time);

/* The iterations for those who take one kind of them only: of the main phase, with those of all
 * phases that are instances of the same range. of_work: for what an iteration does; where that is
 * one launch, the run is one iteration. Free the result also after a failure. */
enum prof_status prof_iterations_find(struct prof_iterations *iterations,
                                      const struct prof_facts *facts, bool of_work,
                                      struct prof_error *err);

/* The iterations of all phases, for readers that keep phases apart (prof_iteration.phase): searched
 * likewise. main_begin and what says where they come from is of no phase. */
enum prof_status prof_iterations_of_phases(struct prof_iterations *iterations,
                                           const struct prof_facts *facts, struct prof_error *err);
void prof_iterations_free(struct prof_iterations *iterations);

/* How long each took, once device work is summed: from its begin, or from when the one before was
 * done where that is later, until it and all device work launched in it is done. For a range that
 * waits for its work that is the range; one that only queues work takes as long as devices need,
 * not as long as queueing. Where one of them would take no time at all (some queue nothing), the
 * ranges themselves: false, and device work is no part of their time. */
bool prof_iterations_time(struct prof_iterations *iterations);

/* Ranges that declare a launch's FLOP and bytes (perfkit/annotate.h) are no place in the program.
 */
bool prof_lane_declares_work(const struct prof_facts *facts, const struct prof_range_lane *lane);

/* The iteration in which something happened: by the thread's own iterations; for threads that have
 * none by those of the thread that has most, of their process where it has any. PROF_NO_ITERATION =
 * in none. */
size_t prof_iteration_at(const struct prof_iterations *iterations, int64_t thread, int64_t time);

/* For qsort of struct prof_iteration. */
int prof_by_thread_and_begin(const void *a, const void *b);

/* The last one that had begun by then, whether it was over or not: a pause belongs to the iteration
 * before it. */
size_t prof_iteration_since(const struct prof_iterations *iterations, int64_t thread, int64_t time);

#endif
