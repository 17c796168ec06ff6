/* Which NVTX ranges were open on a thread at a moment.
 *
 * Ranges of a thread are laid into lanes in which they nest properly: one lane per domain for
 * push/pop ranges, as many as it takes for start/end ranges that cross. A lane is a forest in order
 * of start; the innermost range around a moment is found by binary search and parent links. */
#ifndef PERFKIT_ANALYSIS_RANGE_INDEX_H
#define PERFKIT_ANALYSIS_RANGE_INDEX_H

#include "libprof/analysis/events.h"
#include "libprof/analysis/group.h"

#define PROF_NO_RANGE UINT32_MAX

struct prof_range_node {
    int64_t begin, end; /* end: INT64_MAX while open */
    uint32_t parent;    /* index of the directly enclosing range of the lane, or PROF_NO_RANGE */
    uint32_t group;     /* of the caller: name, or name and domain and style */
    uint32_t sequence;  /* order of reading within its thread: outer ranges of one start first */
    uint32_t thread;    /* index into the index' threads */
};

struct prof_range_lane {
    uint32_t *nodes; /* indices into the index' nodes, by begin */
    size_t count, capacity;
    uint32_t top; /* while building: innermost open range */
    size_t hint;  /* position of the last search */
    int64_t domain;
    bool push_pop;
};

struct prof_range_thread {
    int64_t thread;
    PROF_ARRAY(struct prof_range_lane) lanes;
};

struct prof_range_index {
    PROF_ARRAY(struct prof_range_node) nodes;
    PROF_ARRAY(struct prof_range_thread) threads;
    struct prof_map by_thread;
};

/* Called once per range in scope, in order of start; returns the group number to keep with it, or
 * PROF_NO_GROUP for out of memory. */
typedef uint32_t prof_range_grouper(void *user, const struct prof_event_row *row);

/* Read all ranges that pass the scope's place (its time is not looked at: a range that began before
 * the window encloses calls within it). */
enum prof_status prof_range_index_open(struct prof_range_index *index, struct prof_capture *capture,
                                       const struct prof_scope *scope, prof_range_grouper *grouper,
                                       void *user, struct prof_error *err);
void prof_range_index_close(struct prof_range_index *index);

/* The thread's lanes; NULL when it has no ranges. */
struct prof_range_thread *prof_range_thread(struct prof_range_index *index, int64_t thread);

/* Innermost range of the lane that is open at `time`, or PROF_NO_RANGE. */
uint32_t prof_range_at(const struct prof_range_index *index, struct prof_range_lane *lane,
                       int64_t time);

/* NVTX ranges grouped as reports list them: by name, domain and style. */

struct prof_range_group {
    const char *name, *domain; /* NULL = unknown; default domain */
    enum prof_range_style style;
};

struct prof_range_groups {
    struct prof_capture *capture; /* set before use */
    struct prof_texts texts;
    struct prof_map by_key;
    PROF_ARRAY(struct prof_range_group) list; /* by group number */
};

/* The ranges of a filter's place with what is called in them, which may run after its time. */
struct prof_ranges {
    struct prof_capture *capture;
    struct prof_scope scope, any_time;
    struct prof_range_groups names; /* of which the index' nodes are */
    struct prof_range_index index;
};

/* Close it also after a failure. */
enum prof_status prof_ranges_open(struct prof_ranges *ranges, struct prof_capture *capture,
                                  const struct prof_filter *filter, struct prof_error *err);
void prof_ranges_close(struct prof_ranges *ranges);

#endif
