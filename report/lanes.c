/* First-fit placement of slices on lanes; see lanes.h. First fit keeps the outermost slices on the
 * first lane, which is what a reader expects. As many lanes as slices overlap may be 2, or, where
 * ranges lie in each other, as deep as these: disjoint slices find theirs by bisection. */
#include "report/lanes.h"

#define FEWEST 4 /* leaves of a tree */

static bool lane_fits(struct prof_report_lane *lane, int64_t start, int64_t end)
{
    while (lane->ends.count && lane->ends.data[lane->ends.count - 1] <= start)
        lane->ends.count--;
    return !lane->ends.count || end <= lane->ends.data[lane->ends.count - 1];
}

static struct prof_report_lane_group *lane_group(struct prof_report_lanes *lanes, uint64_t key)
{
    const uint64_t *known = prof_map_get(&lanes->groups_of, key);
    if (known)
        return &lanes->groups.data[*known];
    struct prof_report_lane_group *group = prof_array_add(&lanes->groups);
    if (!group)
        return NULL;
    *group = (struct prof_report_lane_group){0};
    return prof_map_put(&lanes->groups_of, key, lanes->groups.count - 1) ? group : NULL;
}

/* ---- the tree: node n has the least of 2n and 2n + 1, the leaves are the ends of the lanes ------
 */

static int64_t min_child_end(const struct prof_report_lane_group *group, size_t node)
{
    int64_t left = group->least.data[2 * node], right = group->least.data[2 * node + 1];
    return left < right ? left : right;
}

static void set_end(struct prof_report_lane_group *group, size_t number, int64_t end)
{
    size_t node = group->leaves + number;
    group->least.data[node] = end;
    while (node /= 2)
        group->least.data[node] = min_child_end(group, node);
}

/* Room for one lane more. */
static bool grow_lane_group(struct prof_report_lane_group *group)
{
    size_t before = group->leaves, leaves = before ? 2 * before : FEWEST;
    if (group->lanes.count < before)
        return true;
    group->least.count = 0;
    if (!prof_array_reserve(&group->least, 2 * leaves))
        return false;
    for (size_t i = before; i-- > 0;)
        group->least.data[leaves + i] = group->least.data[before + i];
    for (size_t i = before; i < leaves; i++)
        group->least.data[leaves + i] = INT64_MAX; /* no lane */
    group->leaves = leaves;
    for (size_t node = leaves; --node;)
        group->least.data[node] = min_child_end(group, node);
    return true;
}

/* The first lane that is free at `start`; as many as there are when none is. */
static size_t first_free(const struct prof_report_lane_group *group, int64_t start)
{
    size_t node = 1;
    if (!group->lanes.count || group->least.data[1] > start)
        return group->lanes.count;
    while (node < group->leaves)
        node = group->least.data[2 * node] <= start ? 2 * node : 2 * node + 1;
    size_t number = node - group->leaves;
    return number < group->lanes.count ? number : group->lanes.count;
}

/* ---- both kinds ------------------------------------------------------------------------------ */

static size_t first_around(struct prof_report_lanes *lanes,
                           const struct prof_report_lane_group *group, int64_t start, int64_t end)
{
    size_t number = 0;
    while (number < group->lanes.count &&
           !lane_fits(&lanes->lanes.data[group->lanes.data[number]], start, end))
        number++;
    return number;
}

static bool add_lane(struct prof_report_lanes *lanes, struct prof_report_lane_group *group)
{
    struct prof_report_lane *lane = prof_array_add(&lanes->lanes);
    if (!lane)
        return false;
    *lane = (struct prof_report_lane){0}; /* before what may fail: all lanes are freed */
    if (!grow_lane_group(group))
        return false;
    size_t *slot = prof_array_add(&group->lanes);
    if (slot)
        *slot = lanes->lanes.count - 1;
    return slot != NULL;
}

struct prof_report_lane *prof_report_lane(struct prof_report_lanes *lanes, uint64_t key,
                                          int64_t start, int64_t end, bool nests, size_t *number,
                                          bool *fresh)
{
    struct prof_report_lane_group *group = lane_group(lanes, key);
    if (!group)
        return NULL;
    *number = nests ? first_around(lanes, group, start, end) : first_free(group, start);
    *fresh = *number == group->lanes.count;
    if (*fresh && !add_lane(lanes, group))
        return NULL;
    struct prof_report_lane *lane = &lanes->lanes.data[group->lanes.data[*number]];
    if (!nests) {
        set_end(group, *number, end);
        return lane;
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
    for (size_t i = 0; i < lanes->groups.count; i++) {
        prof_array_free(&lanes->groups.data[i].lanes);
        prof_array_free(&lanes->groups.data[i].least);
    }
    prof_array_free(&lanes->lanes);
    prof_array_free(&lanes->groups);
    prof_map_free(&lanes->groups_of);
}
