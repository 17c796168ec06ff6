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
    PROF_ARRAY(int64_t) ends; /* of the slices open here, outermost first; one when not nesting */
    size_t next;              /* index + 1 of the next lane of the same key, 0 = none */
    int64_t tid;              /* the caller's */
};

/* Starts as {0}. Memory: the lanes and the depth of what is open in them. */
struct prof_report_lanes {
    PROF_ARRAY(struct prof_report_lane) lanes;
    struct prof_map first; /* key -> index + 1 */
};

/* Place the slice [start, end) of lane `key`; slices come in order of start, longer ones first.
 * `nests`: slices may lie inside each other. *number says which lane of the key it is (0 = the
 * first), *fresh that it was not used before. NULL: out of memory. Valid until the next call. */
struct prof_report_lane *prof_report_lane(struct prof_report_lanes *lanes, uint64_t key,
                                          int64_t start, int64_t end, bool nests, size_t *number,
                                          bool *fresh);
void prof_report_lanes_free(struct prof_report_lanes *lanes);

#endif
