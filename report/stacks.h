/* The host's call stacks that a writer tells, each once: a tree of places, which grows as events
 * name their stacks. */
#ifndef PERFKIT_REPORT_STACKS_H
#define PERFKIT_REPORT_STACKS_H

#include "libprof/base/array.h"
#include "libprof/base/map.h"
#include "libprof/include/prof_stack.h"

struct prof_report_stack_node {
    uint32_t parent; /* number of the caller's node, 0 = outermost */
    uint32_t place;  /* in prof_report_stacks.places */
};

struct prof_report_stacks {
    struct prof_stacks *stacks; /* NULL = the capture has none */
    struct prof_map leaves;     /* stack.id -> number of a node */
    struct prof_map children;   /* parent and place -> number of a node */
    PROF_ARRAY(struct prof_report_stack_node)
    nodes;                       /* number 1 is the first; parents before children */
    struct prof_map place_of;    /* number of prof_stacks_places -> place */
    PROF_ARRAY(uint32_t) places; /* numbers of prof_stacks_places */
};

/* Close it also after a failure. */
enum prof_status prof_report_stacks_open(struct prof_report_stacks *stacks,
                                         struct prof_capture *capture, struct prof_error *err);
void prof_report_stacks_close(struct prof_report_stacks *stacks);

/* The number of the node of a stack's innermost frame; 0 = nothing is known of it. False: out of
 * memory. */
bool prof_report_stacks_node(struct prof_report_stacks *stacks, int64_t stack, uint32_t *node);

/* The frame of a place. */
const struct prof_frame *prof_report_stacks_frame(const struct prof_report_stacks *stacks,
                                                  uint32_t place);

#endif
