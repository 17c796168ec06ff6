/* Where a slice is drawn. Viewers show a lane (a thread, a stream) as one row of slices that must
 * be disjoint, or nest; Perfetto drops what overlaps only in part. A lane whose slices do not fit
 * gets further lanes, so that every slice is shown with its true times. */
#ifndef PERFKIT_REPORT_LANES_H
#define PERFKIT_REPORT_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/array.h"
#include "libprof/base/map.h"

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

#endif
