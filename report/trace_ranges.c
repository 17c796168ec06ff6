/* See trace_ranges.h. Push/pop ranges of a thread nest, start/end ranges need not: a thread has as
 * many lanes as it takes for those of one lane to nest. The ranges of a lane around a moment are
 * found among those that lead up from the last one that had begun by then. */
#include "report/trace_ranges.h"

static struct prof_trace_thread_ranges *find_thread_ranges(struct prof_trace_ranges *r,
                                                           int64_t thread, bool make)
{
    const uint64_t *known = prof_map_get(&r->thread_of, (uint64_t)thread);
    if (known)
        return &r->threads.data[*known];
    struct prof_trace_thread_ranges *slot = make ? prof_array_add(&r->threads) : NULL;
    if (!slot)
        return NULL;
    *slot = (struct prof_trace_thread_ranges){0};
    return prof_map_put(&r->thread_of, (uint64_t)thread, r->threads.count - 1) ? slot : NULL;
}

/* The first lane into which [start, end) nests, its ended ranges closed. NULL: out of memory. */
static struct prof_trace_range_lane *find_range_lane(struct prof_trace_ranges *r,
                                                     struct prof_trace_thread_ranges *t,
                                                     int64_t start, int64_t end)
{
    for (size_t i = 0; i < t->lanes.count; i++) {
        struct prof_trace_range_lane *lane = &t->lanes.data[i];
        while (lane->open && r->all.data[lane->open - 1].end_ns <= start)
            lane->open = r->all.data[lane->open - 1].around;
        if (!lane->open || end <= r->all.data[lane->open - 1].end_ns)
            return lane;
    }
    struct prof_trace_range_lane *lane = prof_array_add(&t->lanes);
    if (lane)
        *lane = (struct prof_trace_range_lane){0};
    return lane;
}

bool prof_trace_ranges_add(struct prof_trace_ranges *r, int64_t thread,
                           const struct prof_trace_range *range)
{
    struct prof_trace_thread_ranges *t = find_thread_ranges(r, thread, true);
    struct prof_trace_range_lane *lane =
        t ? find_range_lane(r, t, range->start_ns, range->end_ns) : NULL;
    struct prof_trace_range *slot = lane ? prof_array_add(&r->all) : NULL;
    uint32_t *place = slot ? prof_array_add(&lane->ranges) : NULL;
    if (!place)
        return false;
    *slot = *range;
    slot->around = lane->open;
    slot->first = 0;
    *place = (uint32_t)r->all.count - 1;
    lane->open = (uint32_t)r->all.count;
    return true;
}

/* Index + 1 of the last range of the lane that began at `time` or before. Calls come nearly in
 * order. */
static uint32_t last_range_begun(const struct prof_trace_ranges *r,
                                 struct prof_trace_range_lane *lane, int64_t time)
{
    size_t at = lane->hint < lane->ranges.count ? lane->hint : lane->ranges.count;
#define BEGIN_OF(i) r->all.data[lane->ranges.data[i]].start_ns
    size_t low = 0, high = lane->ranges.count;
    if (at && BEGIN_OF(at - 1) <= time)
        low = at;
    if (low < high && at < high && BEGIN_OF(at) > time)
        high = at;
    for (size_t step = 1; low + step < high && BEGIN_OF(low + step - 1) <= time; step *= 2)
        low += step;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (BEGIN_OF(middle) <= time)
            low = middle + 1;
        else
            high = middle;
    }
#undef BEGIN_OF
    lane->hint = low;
    return low ? lane->ranges.data[low - 1] + 1 : 0;
}

static bool project_range(struct prof_trace_ranges *r, uint32_t range, int64_t stream,
                          int64_t start, int64_t end)
{
    for (uint32_t at = r->all.data[range].first; at; at = r->projections.data[at - 1].next) {
        struct prof_trace_projection *p = &r->projections.data[at - 1];
        if (p->stream != stream)
            continue;
        p->start_ns = start < p->start_ns ? start : p->start_ns;
        p->end_ns = end > p->end_ns ? end : p->end_ns;
        p->operations++;
        return true;
    }
    struct prof_trace_projection *p = prof_array_add(&r->projections);
    if (!p)
        return false;
    *p = (struct prof_trace_projection){.name = r->all.data[range].name,
                                        .domain = r->all.data[range].domain,
                                        .stream = stream,
                                        .start_ns = start,
                                        .end_ns = end,
                                        .operations = 1,
                                        .range = range,
                                        .next = r->all.data[range].first};
    r->all.data[range].first = (uint32_t)r->projections.count;
    return true;
}

bool prof_trace_ranges_work(struct prof_trace_ranges *r, int64_t thread, int64_t call_ns,
                            int64_t stream, int64_t start_ns, int64_t end_ns)
{
    struct prof_trace_thread_ranges *t = find_thread_ranges(r, thread, false);
    for (size_t i = 0; t && i < t->lanes.count; i++) {
        uint32_t at = last_range_begun(r, &t->lanes.data[i], call_ns);
        for (; at; at = r->all.data[at - 1].around) {
            if (r->all.data[at - 1].end_ns > call_ns &&
                !project_range(r, at - 1, stream, start_ns, end_ns))
                return false;
        }
    }
    return true;
}

static int by_projection_start(const void *a, const void *b)
{
    const struct prof_trace_projection *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns > y->end_ns ? -1 : 1;
    return (x->range > y->range) - (x->range < y->range);
}

void prof_trace_ranges_sort(struct prof_trace_ranges *r)
{
    if (r->projections.count)
        qsort(r->projections.data, r->projections.count, sizeof *r->projections.data,
              by_projection_start);
}

void prof_trace_ranges_free(struct prof_trace_ranges *r)
{
    for (size_t i = 0; i < r->threads.count; i++) {
        for (size_t k = 0; k < r->threads.data[i].lanes.count; k++)
            prof_array_free(&r->threads.data[i].lanes.data[k].ranges);
        prof_array_free(&r->threads.data[i].lanes);
    }
    prof_array_free(&r->threads);
    prof_array_free(&r->all);
    prof_array_free(&r->projections);
    prof_map_free(&r->thread_of);
}
