/* Parts of finding the iterations; see iterations.h. */
#ifndef PERFKIT_ANALYSIS_FACTS_ITERATION_PARTS_H
#define PERFKIT_ANALYSIS_FACTS_ITERATION_PARTS_H

#include "libprof/analysis/facts/facts.h"

#define PROF_LEAST_REPEATED 3

/* ---- paths of ranges ------------------------------------------------------------------------- */

#define PROF_NO_RANGE_PATH UINT32_MAX

struct prof_range_path {
    uint32_t parent, name; /* index of the path around it; canonical number of the name */
    uint32_t group;        /* of its first instance; PROF_NO_GROUP: of a collective */
    int64_t domain;        /* string id */
    bool preferred, set_up, chosen, inside; /* set_up: also by a range around it */
    bool holds_chosen;
    int64_t count, launching;  /* instances in time; of those, with device work */
    int64_t most;              /* instances on one thread */
    int64_t on_thread, thread; /* while counting */
    int64_t ops, ns;           /* device work launched inside */
    int64_t host_ns;           /* from begin to end, over instances in time */
    int64_t preferred_ops;     /* of it, in chosen paths of preferred names */
    int64_t set_up_ops;        /* of it, in set-up of its own */
};

struct prof_range_name {
    uint32_t canonical;     /* "step 1" and "step 2" are one name */
    bool preferred, set_up; /* of iterations; of warm-up, setup, teardown */
};

#define PROF_RANGE_CACHED 8
struct prof_range_cached {
    uint32_t thread;
    struct prof_range_thread *ranges;
};

struct prof_range_paths {
    const struct prof_facts *facts;
    struct prof_range_name *names; /* by group of facts.range_texts */
    struct prof_names canonical;
    PROF_ARRAY(struct prof_range_path) list; /* parents before what they contain */
    struct prof_map index;
    uint32_t *of_node; /* by range node: index in list, or PROF_NO_RANGE_PATH */
    bool *launches;    /* likewise: device work */
    size_t *proxy;     /* by process: index of its thread that has most ranges, SIZE_MAX = none */
    struct prof_range_cached cached[PROF_RANGE_CACHED]; /* by thread id */
    int64_t ops, ns;                                    /* all device work */
    int64_t host_ns;                                    /* of the outermost ranges, per thread */
};

/* The paths of all ranges, but of libraries' own, and the device work in them; chosen and inside
 * are for the function that chooses. Free them also after a failure, which is out of memory. */
bool prof_range_paths_read(struct prof_range_paths *paths, const struct prof_facts *facts);
void prof_range_paths_free(struct prof_range_paths *paths);

/* "train/step", to be freed, or NULL without memory. */
char *prof_range_path_label(const struct prof_range_paths *paths, uint32_t path);

/* The innermost path around an operation's call, in the first domain of its thread that has one; or
 * PROF_NO_RANGE_PATH. */
uint32_t prof_range_path_at(struct prof_range_paths *paths, const struct prof_op *op);

/* Some of it was timed only, in the process of a thread. */
bool prof_is_paused(const struct prof_facts *facts, int64_t thread, int64_t begin, int64_t end);

/* Ended, and recorded whole: also outside of the analysed time, so that the choice does not
 * depend on it. */
static inline bool prof_range_is_instance(const struct prof_facts *facts, int64_t thread,
                                          const struct prof_range_node *node)
{
    return node->end != INT64_MAX && !prof_is_paused(facts, thread, node->begin, node->end);
}

/* ---- what recording cost (overhead.c) -------------------------------------------------------- */

/* The pauses of --overhead=measure, as a set. Free it also after a failure. */
enum prof_status prof_pauses_read(struct prof_capture *capture, struct prof_intervals *pauses,
                                  struct prof_error *err);

/* From all iterations of one thread, in order of begin, in pauses too. False: out of memory. */
bool prof_overhead_measure(const struct prof_iteration *list, size_t count,
                           const struct prof_intervals *pauses, struct prof_overhead *out);

/* Where the overhead of the phase that the facts are about was not measured, what events cost on
 * this machine, if that is known (overhead.c). */
enum prof_status prof_overhead_estimate(struct prof_facts *facts, struct prof_phase *phase,
                                        struct prof_error *err);

/* ---- phases ---------------------------------------------------------------------------------- */

/* Phases by NVTX ranges, appended to phases->list with their iterations, threads in order; none
 * where no range repeats. The ranges that were left out by their names (warm-up, setup, teardown)
 * are appended to *set_up, as they are, by begin. filter: "RANGE" or "RANGE@DOMAIN", NULL = choose.
 * False: out of memory. */
bool prof_phases_by_ranges(struct prof_phases *phases, struct prof_range_paths *paths,
                           const char *filter, struct prof_intervals *set_up);

/* Phases by the sequence of launches of the thread that launches most, of those that lie in none of
 * `known` (a set of intervals). False: out of memory. */
bool prof_phases_by_launches(struct prof_phases *phases, const struct prof_facts *facts,
                             const struct prof_intervals *known);

/* The analysed intervals of phases whose iterations are known, and their sums. False: out of
 * memory.
 */
bool prof_phases_intervals(struct prof_phases *phases, const struct prof_facts *facts,
                           const struct prof_intervals *set_up);
/* prof_phase.before and its sums, from its intervals. */
bool prof_phase_measure(struct prof_phase *phase);

/* The set of all iterations that are left out as warm-up. */
bool prof_phases_skipped(const struct prof_phases *phases, struct prof_intervals *skipped);

/* Where the device work lies: sums of the phases and of the run. `skipped` and `set_up` are sets.
 * False: out of memory. */
bool prof_phases_cover(struct prof_phases *phases, struct prof_range_paths *paths,
                       const struct prof_intervals *skipped, const struct prof_intervals *set_up);

/* The end of the iterations of one thread that begin at `from` in the list. */
size_t prof_iterations_thread_end(const struct prof_iterations *iterations, size_t from);

static inline int64_t prof_op_asked_at(const struct prof_op *op)
{
    return op->call == PROF_UNKNOWN ? op->start : op->call;
}

#endif
