/* Interval algebra on half-open intervals [begin, end) of nanoseconds.
 *
 * A set is an array of disjoint, non-touching, non-empty intervals in rising order. Functions that
 * make one append to an empty PROF_ARRAY of the caller. For streams too long to keep there is
 * struct prof_sweep, which does the same sums in constant memory. */
#ifndef PERFKIT_ANALYSIS_INTERVALS_H
#define PERFKIT_ANALYSIS_INTERVALS_H

#include "libprof/base/array.h"

struct prof_interval {
    int64_t begin, end;
};

struct prof_intervals {
    struct prof_interval *data;
    size_t count, capacity;
};

/* For qsort of struct prof_interval. */
int prof_by_interval_begin(const void *a, const void *b);

/* Append an interval, but for the empty and the inverted: a set only where it is the last one.
 * False: out of memory. */
bool prof_intervals_add(struct prof_intervals *set, int64_t begin, int64_t end);

/* Make a set of any intervals, in place: sorts, joins what overlaps or touches, drops the empty and
 * the inverted. */
void prof_intervals_normalise(struct prof_intervals *set);

/* Append a u b, a n b, or the window without a, to *out (empty before). False: out of memory. */
bool prof_intervals_union(const struct prof_intervals *a, const struct prof_intervals *b,
                          struct prof_intervals *out);
bool prof_intervals_intersection(const struct prof_intervals *a, const struct prof_intervals *b,
                                 struct prof_intervals *out);
bool prof_intervals_gaps(const struct prof_intervals *a, struct prof_interval window,
                         struct prof_intervals *out);

/* How many of them begin at `time` or before. */
static inline size_t prof_intervals_begun(const struct prof_intervals *set, int64_t time)
{
    size_t low;
    PROF_FIND_FIRST(low, at, set->count, set->data[at].begin > time);
    return low;
}

static inline bool prof_intervals_has(const struct prof_intervals *set, int64_t time)
{
    size_t begun = prof_intervals_begun(set, time);
    return begun && time < set->data[begun - 1].end;
}

/* For each interval of a set the length of those before it, to be freed; NULL: out of memory. */
int64_t *prof_intervals_sums(const struct prof_intervals *set);

/* Length of the set before `time`, by its sums. */
int64_t prof_intervals_before(const struct prof_intervals *set, const int64_t *sums, int64_t time);

/* ---- sweep: unions of two classes of intervals that come in order of begin ------------------- */

/* Called for each stretch [begin, end) in which `active` (bit 0: first class, bit 1: second) does
 * not change and is not 0; in order. */
typedef void prof_sweep_span(void *user, int64_t begin, int64_t end, unsigned active);

struct prof_sweep {
    int64_t covered[2]; /* where the union so far of each class ends */
    int64_t done;       /* all before this is reported */
    bool started;
    int64_t *ends; /* heap of ends of class 0 intervals still running */
    size_t running, capacity;
    size_t most_running;
    prof_sweep_span *span;
    void *user;
};

/* Begin; `span` is called from the two below. */
void prof_sweep_open(struct prof_sweep *sweep, prof_sweep_span *span, void *user);

/* One interval of class 0 or 1; begins must not fall from call to call. Empty ones are ignored.
 * False: out of memory. */
bool prof_sweep_add(struct prof_sweep *sweep, unsigned class_index, int64_t begin, int64_t end);

/* Report the rest and free. most_running then is the largest number of class 0 intervals that
 * overlapped at one moment. */
void prof_sweep_close(struct prof_sweep *sweep);

#endif
