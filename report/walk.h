/* Walks a capture's events in the order in which slices nest: by start, and among events that start
 * at the same nanosecond the enclosing one first. Constant memory. With it where a slice is drawn:
 * a viewer shows a lane (a thread, a stream) as one row of slices that must be disjoint, or nest;
 * Perfetto drops what overlaps only in part. A lane whose slices do not fit gets further lanes, so
 * that every slice is shown with its true times. And the host's call stacks that a writer needs,
 * each once: a tree of places, which grows as events name their stacks. */
#ifndef PERFKIT_REPORT_WALK_H
#define PERFKIT_REPORT_WALK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/array.h"
#include "libprof/base/map.h"
#include "libprof/include/prof_stack.h"
#include "report/report.h"

struct prof_report_walk;

/* The walk calls options->progress about every 65,536 events. */
enum prof_status prof_report_walk_open(struct prof_capture *capture,
                                       const struct prof_report_options *options, uint32_t kinds,
                                       struct prof_report_walk **walk, struct prof_error *err);

/* Read from now on in a thread of its own, up to 2048 events ahead: for walks whose caller is busy
 * with each event. Until the close the caller uses of the capture only the lookups that take it
 * const. Without memory or threads the walk goes on as before. */
void prof_report_walk_ahead(struct prof_report_walk *walk);

/* The next event, NULL at the end or on an error. Lives until the next call. */
const struct prof_event *prof_report_walk_next(struct prof_report_walk *walk);

/* PROF_OK, or what ended the walk early. NULL allowed. */
enum prof_status prof_report_walk_close(struct prof_report_walk *walk, struct prof_error *err);

/* ---- a ring between two threads -------------------------------------------------------------- */

/* Slots that one thread fills and another takes, in order. */
struct prof_report_ring {
    pthread_t thread; /* the other side's */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t slots, filled, taken; /* slots so far, by each side */
    bool ended, stopped;         /* there will be no more; no more is wanted */
};
enum prof_report_ring_change {
    PROF_RING_FILLED,
    PROF_RING_TAKEN,
    PROF_RING_ENDED,
    PROF_RING_STOPPED,
};

/* Start `run` as the other side, with all signals blocked. False: there is no thread to be had. */
bool prof_report_ring_start(struct prof_report_ring *ring, size_t slots, void *(*run)(void *),
                            void *argument);
/* Wait for a slot to fill; false: no more is wanted. Or for one to take; false: there is no more.
 */
bool prof_report_ring_room(struct prof_report_ring *ring, size_t *slot);
bool prof_report_ring_next(struct prof_report_ring *ring, size_t *slot);
void prof_report_ring_change(struct prof_report_ring *ring, enum prof_report_ring_change change);
/* Wait until the other side has ended. */
void prof_report_ring_join(struct prof_report_ring *ring);

/* ---- lanes ----------------------------------------------------------------------------------- */

struct prof_report_lane {
    PROF_ARRAY(int64_t) ends; /* of the slices open here, outermost first; of those that nest */
    int64_t tid;              /* the caller's */
};

/* The lanes of a key. */
struct prof_report_lane_group {
    PROF_ARRAY(size_t) lanes;  /* indices, the first lane first */
    PROF_ARRAY(int64_t) least; /* of those that do not nest: a tree of the earliest ends */
    size_t leaves;
};

/* Starts as {0}. Memory: the lanes and the depth of what is open in them. */
struct prof_report_lanes {
    PROF_ARRAY(struct prof_report_lane) lanes;
    PROF_ARRAY(struct prof_report_lane_group) groups;
    struct prof_map groups_of; /* key -> index */
};

/* Place the slice [start, end) of lane `key`; slices come in order of start, longer ones first.
 * `nests`: slices may lie inside each other; the same for all slices of a key. *number says which
 * lane of the key it is (0 = the first), *fresh that it was not used before. NULL: out of memory.
 * Valid until the next call. */
struct prof_report_lane *prof_report_lane(struct prof_report_lanes *lanes, uint64_t key,
                                          int64_t start, int64_t end, bool nests, size_t *number,
                                          bool *fresh);
void prof_report_lanes_free(struct prof_report_lanes *lanes);

/* ---- stacks ---------------------------------------------------------------------------------- */

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
