/* Which frame of a stack distinguishes callers. Programs and frameworks launch, copy, allocate and
 * wait through a few functions that do nothing else: the line in such a wrapper says nothing, its
 * caller's does. Every table that names a line for a stack calls this (prof_stack_callers). */
#ifndef PERFKIT_ANALYSIS_LAUNCH_WRAPPERS_H
#define PERFKIT_ANALYSIS_LAUNCH_WRAPPERS_H

#include "libprof/analysis/capture.h"
#include "libprof/include/prof_stack.h"

/* A place that is on stacks: what was done through it, and who reached it. */
struct launch_place {
    uint32_t names;   /* different ones of what was done */
    uint32_t callers; /* different places that called it */
    int64_t count;    /* how often something was done through it */
    int64_t most;     /* of that the part of the caller that did most */
    uint32_t seen_in; /* the last stack it was counted in */
};

struct prof_launch_wrappers {
    struct prof_stacks *stacks; /* NULL = the capture has none */
    struct prof_names names;    /* place and name */
    struct prof_names calls;    /* place and caller -> place in call_counts */
    PROF_ARRAY(int64_t) call_counts;
    PROF_ARRAY(struct launch_place) places; /* by number */
    int64_t count;                          /* in all */
    uint32_t stacks_seen;
};

/* What a stack was used for in the whole capture, read at first use and kept until prof_refresh. */
enum prof_status prof_capture_wrappers(struct prof_capture *capture, enum prof_stack_use use,
                                       const struct prof_launch_wrappers **wrappers,
                                       struct prof_error *err);
void prof_launch_wrappers_free(struct prof_launch_wrappers *wrappers);

/* Of places, innermost first and all equally near to the reader, the one that distinguishes
 * callers.
 *
 * A place is a wrapper when three or more places call it, none of which makes most of its calls,
 * and either several names or nearly everything went through it: its caller is looked at instead.
 * And of nested places the one with the fewest names shows most, as long as they do not grow. */
size_t prof_launch_wrappers_skip(const struct prof_launch_wrappers *wrappers,
                                 const uint32_t *places, size_t count);

/* The same for a whole path, innermost first: an index into it. */
size_t prof_launch_wrappers_skip_path(const struct prof_launch_wrappers *wrappers,
                                      const struct prof_frame *places, const uint32_t *path,
                                      size_t depth);

#endif
