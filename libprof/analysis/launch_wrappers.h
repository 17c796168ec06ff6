/* Which line of a stack launched, when launches go through functions of the program's own that do
 * nothing else: the line in such a function says nothing, its caller's does. */
#ifndef PERFKIT_ANALYSIS_LAUNCH_WRAPPERS_H
#define PERFKIT_ANALYSIS_LAUNCH_WRAPPERS_H

#include "libprof/analysis/capture.h"
#include "libprof/include/prof_stack.h"

/* Numbers of prof_stacks_places. */
struct prof_launch_place {
    uint32_t place; /* the line that launched */
    uint32_t via;   /* the program's innermost; the same where there is no wrapper */
};

struct launch_caller {
    uint32_t names;   /* different ones that were launched through the place */
    uint32_t caller;  /* its only caller, + 1; 0 = none */
    bool has_several; /* callers */
};

struct prof_launch_wrappers {
    struct prof_stacks *stacks;
    struct prof_names seen;                   /* place and name */
    PROF_ARRAY(struct launch_caller) callers; /* by place */
};

void prof_launch_wrappers_init(struct prof_launch_wrappers *wrappers, struct prof_stacks *stacks);
void prof_launch_wrappers_free(struct prof_launch_wrappers *wrappers);

/* First tell of each stack what was launched by it, each name by a number. False: out of memory. */
bool prof_launch_wrappers_add(struct prof_launch_wrappers *wrappers, int64_t stack, uint32_t name);

/* Then ask. False: nothing is known of the stack.
 *
 * From the innermost line outwards: a line through which several kernels were launched, and that is
 * reached from several places, gives way to the place that reached it, if fewer kernels were
 * launched through that one. */
bool prof_launch_wrappers_find(const struct prof_launch_wrappers *wrappers, int64_t stack,
                               struct prof_launch_place *found);

#endif
