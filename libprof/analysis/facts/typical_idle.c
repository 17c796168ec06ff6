/* How much of a device's idle time a typical iteration has: what happens in single iterations, as
 * when another program takes the processor, comes otherwise in the next run, and must not decide
 * how severe a finding is. What comes back evenly, as a log line every tenth iteration, is typical.
 */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/facts/facts.h"
#include "libprof/base/saturate.h"

#define IDLE_STATES (PROF_SLICES - PROF_SLICE_FIRST_IDLE)
#define MIN_ITERATIONS 4     /* of fewer nothing is typical */
#define MAX_ITERATIONS 65536 /* of more, single ones decide nothing */
#define FAR 2                /* times what three of four iterations do not exceed: out of line */

struct prof_typical_idle {
    size_t count, first, last; /* iterations; those that were seen */
    bool any;
    int64_t *ns; /* by iteration and state */
};

struct prof_typical_idle *prof_typical_idle_new(const struct prof_facts *f, bool *failed)
{
    size_t count = f->phase->iterations.list.count;
    if (count < MIN_ITERATIONS || count > MAX_ITERATIONS)
        return NULL;
    struct prof_typical_idle *idle = calloc(1, sizeof *idle);
    if (idle) {
        *idle = (struct prof_typical_idle){.count = count,
                                           .ns = calloc(count * IDLE_STATES, sizeof *idle->ns)};
    }
    if (!idle || !idle->ns) {
        free(idle);
        *failed = true;
        return NULL;
    }
    return idle;
}

void prof_typical_idle_free(struct prof_typical_idle *idle)
{
    if (idle)
        free(idle->ns);
    free(idle);
}

void prof_typical_idle_add(struct prof_typical_idle *idle, size_t iteration,
                           const int64_t slice_ns[PROF_SLICES])
{
    if (!idle || iteration >= idle->count)
        return;
    for (size_t i = 0; i < IDLE_STATES; i++) {
        int64_t *sum = &idle->ns[iteration * IDLE_STATES + i];
        *sum = prof_add(*sum, slice_ns[PROF_SLICE_FIRST_IDLE + i]);
    }
    idle->first = !idle->any || iteration < idle->first ? iteration : idle->first;
    idle->last = !idle->any || iteration > idle->last ? iteration : idle->last;
    idle->any = true;
}

/* Three or more, all as far apart as the first two. */
static bool has_even_idle(const struct prof_typical_idle *idle, size_t state, int64_t limit)
{
    size_t seen = 0, before = 0, distance = 0;
    for (size_t i = idle->first; i <= idle->last; i++) {
        if (idle->ns[i * IDLE_STATES + state] <= limit)
            continue;
        if (seen == 1)
            distance = i - before;
        if (seen > 1 && i - before != distance)
            return false;
        before = i;
        seen++;
    }
    return seen >= 3;
}

/* `sorted`: room for as many as there are iterations. */
static int64_t out_of_line(const struct prof_typical_idle *idle, size_t state, int64_t *sorted)
{
    size_t count = idle->last - idle->first + 1;
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sorted[i] = idle->ns[(idle->first + i) * IDLE_STATES + state];
    qsort(sorted, count, sizeof *sorted, prof_ascending_int64);
    int64_t limit = sorted[(count - 1) * 3 / 4];
    limit = limit > INT64_MAX / FAR ? INT64_MAX : FAR * limit;
    if (has_even_idle(idle, state, limit))
        return 0;
    for (size_t i = count; i-- && sorted[i] > limit;)
        sum = prof_add(sum, sorted[i] - limit);
    return sum;
}

bool prof_typical_idle_finish(const struct prof_typical_idle *idle,
                              const int64_t slice_ns[PROF_SLICES], int64_t typical_ns[PROF_SLICES])
{
    memcpy(typical_ns, slice_ns, PROF_SLICES * sizeof *typical_ns);
    if (!idle || !idle->any || idle->last - idle->first + 1 < MIN_ITERATIONS)
        return true;
    PROF_FREED int64_t *sorted = malloc((idle->last - idle->first + 1) * sizeof *sorted);
    for (size_t i = 0; sorted && i < IDLE_STATES; i++) {
        int64_t *typical = &typical_ns[PROF_SLICE_FIRST_IDLE + i];
        int64_t left = prof_subtract(*typical, out_of_line(idle, i, sorted));
        *typical = left > 0 ? left : 0;
    }
    return sorted != NULL;
}
