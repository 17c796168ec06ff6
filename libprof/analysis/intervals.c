/* Interval algebra; see intervals.h. Utilisation, overlap and gaps must never be sums of durations:
 * two kernels side by side keep a device busy once. */
#include <stdlib.h>

#include "libprof/analysis/intervals.h"
#include "libprof/base/saturate.h"

int prof_by_interval_begin(const void *a, const void *b)
{
    const struct prof_interval *x = a, *y = b;
    return PROF_COMPARE(x->begin, y->begin);
}

void prof_intervals_normalise(struct prof_intervals *set)
{
    if (!set->count)
        return;
    prof_array_sort(set, prof_by_interval_begin);
    size_t kept = 0;
    for (size_t i = 0; i < set->count; i++) {
        struct prof_interval next = set->data[i];
        if (next.begin >= next.end)
            continue;
        if (kept && next.begin <= set->data[kept - 1].end) {
            if (next.end > set->data[kept - 1].end)
                set->data[kept - 1].end = next.end;
        } else {
            set->data[kept++] = next;
        }
    }
    set->count = kept;
}

bool prof_intervals_add(struct prof_intervals *out, int64_t begin, int64_t end)
{
    if (begin >= end)
        return true;
    struct prof_interval *slot = prof_array_add(out);
    if (slot)
        *slot = (struct prof_interval){begin, end};
    return slot != NULL;
}

bool prof_intervals_union(const struct prof_intervals *a, const struct prof_intervals *b,
                          struct prof_intervals *out)
{
    size_t i = 0, j = 0;
    while (i < a->count || j < b->count) {
        bool first = j == b->count || (i < a->count && a->data[i].begin <= b->data[j].begin);
        struct prof_interval next = first ? a->data[i++] : b->data[j++];
        struct prof_interval *last = out->count ? &out->data[out->count - 1] : NULL;
        if (last && next.begin <= last->end) {
            if (next.end > last->end)
                last->end = next.end;
        } else if (!prof_intervals_add(out, next.begin, next.end)) {
            return false;
        }
    }
    return true;
}

bool prof_intervals_intersection(const struct prof_intervals *a, const struct prof_intervals *b,
                                 struct prof_intervals *out)
{
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        struct prof_interval x = a->data[i], y = b->data[j];
        if (!prof_intervals_add(out, x.begin > y.begin ? x.begin : y.begin,
                                x.end < y.end ? x.end : y.end))
            return false;
        if (x.end < y.end)
            i++;
        else
            j++;
    }
    return true;
}

bool prof_intervals_gaps(const struct prof_intervals *a, struct prof_interval window,
                         struct prof_intervals *out)
{
    int64_t at = window.begin;
    for (size_t i = 0; i < a->count && at < window.end; i++) {
        struct prof_interval x = a->data[i];
        if (x.end <= at)
            continue;
        if (!prof_intervals_add(out, at, x.begin < window.end ? x.begin : window.end))
            return false;
        at = x.end;
    }
    return prof_intervals_add(out, at, window.end);
}

int64_t *prof_intervals_sums(const struct prof_intervals *set)
{
    int64_t *sums = malloc((set->count + 1) * sizeof *sums), sum = 0;
    for (size_t i = 0; sums && i < set->count; i++) {
        sums[i] = sum;
        sum = prof_add(sum, prof_subtract(set->data[i].end, set->data[i].begin));
    }
    return sums;
}

int64_t prof_intervals_before(const struct prof_intervals *set, const int64_t *sums, int64_t time)
{
    size_t begun = prof_intervals_begun(set, time);
    if (!begun)
        return 0;
    struct prof_interval last = set->data[begun - 1];
    return prof_add(sums[begun - 1], prof_subtract(time < last.end ? time : last.end, last.begin));
}

void prof_sweep_open(struct prof_sweep *sweep, prof_sweep_span *span, void *user)
{
    *sweep = (struct prof_sweep){
        .covered = {INT64_MIN, INT64_MIN}, .done = INT64_MIN, .span = span, .user = user};
}

/* Report all stretches up to `until`: nothing that begins before it can come any more. */
static void advance_sweep(struct prof_sweep *s, int64_t until)
{
    while (s->done < until) {
        unsigned active = 0;
        int64_t stop = until;
        for (unsigned c = 0; c < 2; c++) {
            if (s->covered[c] > s->done) {
                active |= 1u << c;
                if (s->covered[c] < stop)
                    stop = s->covered[c];
            }
        }
        if (active)
            s->span(s->user, s->done, stop, active);
        s->done = stop;
    }
}

static bool is_earlier(const int64_t *a, const int64_t *b)
{
    return *a < *b;
}

static bool start_running(struct prof_sweep *s, int64_t begin, int64_t end)
{
    while (s->running && s->ends[0] <= begin) {
        int64_t last = s->ends[--s->running];
        PROF_HEAP_SINK(s->ends, s->running, last, is_earlier);
    }
    if (!prof_array_room(&s->ends, &s->capacity, s->running + 1, sizeof *s->ends))
        return false;
    PROF_HEAP_PUSH(s->ends, s->running, end, is_earlier);
    if (s->running > s->most_running)
        s->most_running = s->running;
    return true;
}

bool prof_sweep_add(struct prof_sweep *s, unsigned class_index, int64_t begin, int64_t end)
{
    if (begin >= end)
        return true;
    if (!s->started)
        s->done = begin;
    s->started = true;
    advance_sweep(s, begin);
    if (end > s->covered[class_index])
        s->covered[class_index] = end;
    return class_index || start_running(s, begin, end);
}

void prof_sweep_close(struct prof_sweep *s)
{
    int64_t last = s->covered[0] > s->covered[1] ? s->covered[0] : s->covered[1];
    if (s->started)
        advance_sweep(s, last);
    free(s->ends);
    s->ends = NULL;
    s->running = s->capacity = 0;
}
