/* First-fit placement of slices on lanes; see lanes.h. First fit keeps the outermost slices on the
 * first lane, which is what a reader expects; the number of lanes is the largest number of slices
 * that overlap, so the search is short. */
#include "report/lanes.h"

static bool fits(struct prof_report_lane *lane, int64_t start, int64_t end, bool nests)
{
    while (lane->ends.count && lane->ends.data[lane->ends.count - 1] <= start)
        lane->ends.count--;
    if (!lane->ends.count)
        return true;
    return nests && end <= lane->ends.data[lane->ends.count - 1];
}

static struct prof_report_lane *add_lane(struct prof_report_lanes *lanes)
{
    struct prof_report_lane *lane = prof_array_add(&lanes->lanes);
    if (lane)
        *lane = (struct prof_report_lane){0};
    return lane;
}

struct prof_report_lane *prof_report_lane(struct prof_report_lanes *lanes, uint64_t key,
                                          int64_t start, int64_t end, bool nests, size_t *number,
                                          bool *fresh)
{
    struct prof_report_lane *lane = NULL;
    uint64_t *first = prof_map_get(&lanes->first, key);
    size_t at = first ? (size_t)*first : 0, last = 0;
    *number = 0;
    *fresh = false;
    while (at) {
        lane = &lanes->lanes.data[at - 1];
        if (fits(lane, start, end, nests))
            break;
        last = at;
        at = lane->next;
        ++*number;
    }
    if (!at) {
        *fresh = true;
        if (!add_lane(lanes))
            return NULL;
        at = lanes->lanes.count;
        lane = &lanes->lanes.data[at - 1];
        if (last)
            lanes->lanes.data[last - 1].next = at;
        else if (!prof_map_put(&lanes->first, key, at))
            return NULL;
    }
    int64_t *open = prof_array_add(&lane->ends);
    if (!open)
        return NULL;
    *open = end;
    return lane;
}

void prof_report_lanes_free(struct prof_report_lanes *lanes)
{
    for (size_t i = 0; i < lanes->lanes.count; i++)
        prof_array_free(&lanes->lanes.data[i].ends);
    prof_array_free(&lanes->lanes);
    prof_map_free(&lanes->first);
}
