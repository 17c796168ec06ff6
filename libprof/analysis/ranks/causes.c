/* Why a rank came last to a collective. Since the last collective of the iteration before, each
 * rank's device computed, copied, waited for its host, or for others in collectives. What the last
 * one did longer than the others (than their median), and what did not make it late before, is the
 * cause.
 *
 * Where computing goes on beside collectives, a rank that fell behind comes late to all of them
 * until the iteration ends: that is one lateness, with the cause that it had at first. */
#include <math.h>

#include "libprof/analysis/ranks/ranks.h"

const char *prof_rank_cause_text(enum prof_rank_cause cause)
{
    static const char *const texts[PROF_CAUSES] = {"unknown", "compute", "copy", "host"};
    return (unsigned)cause < PROF_CAUSES ? texts[cause] : "unknown";
}

double rank_median(int64_t *values, size_t count)
{
    if (count == 0)
        return NAN;
    qsort(values, count, sizeof *values, prof_ascending_int64);
    return count % 2 ? (double)values[count / 2]
                     : ((double)values[count / 2 - 1] + (double)values[count / 2]) / 2;
}

/* A unit on its way through the collectives of a communicator. */
struct course {
    int64_t came;               /* to the collective before; window's begin at first */
    int64_t iteration;          /* since when: */
    int64_t base;               /* when it came to the last collective before that iteration */
    int64_t told[PROF_CAUSES];  /* what it did longer since then, and was late for already */
    int64_t late;               /* the worst of that iteration, */
    enum prof_rank_cause cause; /* and its cause */
};

struct causes {
    struct rank_work *w;
    struct course *courses;       /* per unit */
    int64_t *values[PROF_CAUSES]; /* of the other ranks */
};

static void begin_course_iteration(struct course *course, int64_t iteration)
{
    if (iteration != PROF_UNKNOWN && iteration == course->iteration)
        return;
    *course = (struct course){.came = course->came, .iteration = iteration, .base = course->came};
}

/* What the unit's device did in [begin, end). */
static void split(const struct rank_unit *unit, int64_t begin, int64_t end,
                  int64_t parts[PROF_CAUSES])
{
    int64_t all = end > begin ? prof_subtract(end, begin) : 0;
    parts[PROF_CAUSE_UNKNOWN] = rank_cover_length(&unit->exposed, begin, end);
    parts[PROF_CAUSE_COMPUTE] = rank_cover_length(&unit->compute, begin, end);
    parts[PROF_CAUSE_COPY] = rank_cover_length(&unit->copies, begin, end);
    parts[PROF_CAUSE_HOST] = prof_subtract(all, rank_cover_length(&unit->busy, begin, end));
}

static enum prof_rank_cause cause_of(const struct causes *c, const struct rank_set *set,
                                     int64_t excess[PROF_CAUSES])
{
    struct rank_work *w = c->w;
    struct course *course = &c->courses[w->events.data[set->last].unit];
    int64_t mine[PROF_CAUSES] = {0};
    size_t others = 0;
    for (size_t i = 0; i < set->count; i++) {
        uint32_t number = w->members.data[set->first + i];
        const struct rank_event *event = &w->events.data[number];
        int64_t parts[PROF_CAUSES];
        split(&w->units.data[event->unit], c->courses[event->unit].base, event->start, parts);
        for (int k = 0; k < PROF_CAUSES; k++)
            if (number == set->last)
                mine[k] = parts[k];
            else
                c->values[k][others] = parts[k];
        others += number != set->last;
    }
    enum prof_rank_cause cause = PROF_CAUSE_UNKNOWN;
    excess[PROF_CAUSE_UNKNOWN] = 0;
    for (int k = PROF_CAUSE_COMPUTE; k < PROF_CAUSES; k++) {
        int64_t more = prof_subtract(mine[k], (int64_t)rank_median(c->values[k], others));
        excess[k] = more > course->told[k] ? more - course->told[k] : 0;
        course->told[k] = more > course->told[k] ? more : course->told[k];
        if (excess[k] > excess[cause])
            cause = (enum prof_rank_cause)k;
    }
    return cause;
}

PROF_ORDER(worst_lateness_first, struct prof_rank_late, PROF_DESCENDING(caused_ns),
           PROF_ASCENDING(start_ns))

/* Keep the worst; the last place of a full list is the least of them. */
static void keep_late(struct prof_ranks *result, const struct prof_rank_late *late)
{
    if (result->late_count < PROF_RANKS_LATE)
        result->late[result->late_count++] = *late;
    else if (worst_lateness_first(late, &result->late[PROF_RANKS_LATE - 1]) < 0)
        result->late[PROF_RANKS_LATE - 1] = *late;
    else
        return;
    qsort(result->late, result->late_count, sizeof *result->late, worst_lateness_first);
}

/* Is the unit still late for the reason that it had before? What it did longer since then does not
 * explain it. */
static bool is_carried(const struct course *course, const struct rank_set *set, int64_t excess)
{
    return course->cause != PROF_CAUSE_UNKNOWN && course->iteration != PROF_UNKNOWN &&
           excess < set->late / 2 && set->late <= prof_add(course->late, excess);
}

/* The cause, and in *fresh what of the lateness is new. */
static enum prof_rank_cause follow(struct course *course, const struct rank_set *set,
                                   const int64_t excess[PROF_CAUSES], enum prof_rank_cause cause,
                                   int64_t *fresh)
{
    int64_t all = prof_add(excess[PROF_CAUSE_COMPUTE],
                           prof_add(excess[PROF_CAUSE_COPY], excess[PROF_CAUSE_HOST]));
    *fresh = set->late;
    if (is_carried(course, set, excess[cause])) {
        *fresh = all < set->late ? all : set->late;
        return course->cause;
    }
    if (set->late > course->late) {
        course->late = set->late;
        course->cause = cause;
    }
    return cause;
}

static void judge_set(struct causes *c, const struct rank_set *set, struct prof_ranks *result)
{
    struct rank_work *w = c->w;
    const struct rank_event *last = &w->events.data[set->last];
    struct rank_unit *unit = &w->units.data[last->unit];
    int64_t excess[PROF_CAUSES], fresh;
    if (last->start < unit->begin || last->start >= unit->end)
        return;
    for (size_t i = 0; i < set->count; i++)
        w->units.data[w->events.data[w->members.data[set->first + i]].unit].row.analysed++;
    if (w->clock_unknown || set->late <= w->clock_error)
        return;
    enum prof_rank_cause cause = cause_of(c, set, excess);
    cause = follow(&c->courses[last->unit], set, excess, cause, &fresh);
    unit->row.last_count++;
    unit->row.last_ns = prof_add(unit->row.last_ns, fresh);
    unit->row.caused_ns = prof_add(unit->row.caused_ns, set->caused);
    for (int k = 0; k < PROF_CAUSES; k++)
        unit->row.excess_ns[k] = prof_add(unit->row.excess_ns[k], excess[k]);
    struct prof_rank_late late = {.rank = last->unit,
                                  .start_ns = last->start,
                                  .iteration = c->courses[last->unit].iteration,
                                  .operation = last->said.operation,
                                  .bytes = last->said.bytes,
                                  .sequence = last->sequence,
                                  .late_ns = set->late,
                                  .skew_ns = set->skew,
                                  .caused_ns = set->caused,
                                  .cause = cause,
                                  .excess_ns = excess[cause]};
    keep_late(result, &late);
}

static void start_courses(struct causes *c)
{
    for (size_t u = 0; u < c->w->units.count; u++) {
        int64_t begin = c->w->units.data[u].begin;
        c->courses[u] = (struct course){.came = begin, .iteration = PROF_UNKNOWN, .base = begin};
    }
}

/* Sets of one communicator stand together, in order. */
static void judge_sets(struct causes *c, struct prof_ranks *result)
{
    struct rank_work *w = c->w;
    uint32_t communicator = PROF_NO_GROUP;
    for (size_t s = 0; s < w->sets.count; s++) {
        const struct rank_set *set = &w->sets.data[s];
        const uint32_t *members = &w->members.data[set->first];
        if (set->communicator != communicator)
            start_courses(c);
        communicator = set->communicator;
        for (size_t i = 0; i < set->count; i++) {
            const struct rank_event *event = &w->events.data[members[i]];
            begin_course_iteration(&c->courses[event->unit],
                                   rank_iteration_at(&w->units.data[event->unit], event->call));
        }
        judge_set(c, set, result);
        for (size_t i = 0; i < set->count; i++) {
            const struct rank_event *event = &w->events.data[members[i]];
            struct course *course = &c->courses[event->unit];
            course->came = event->start > course->came ? event->start : course->came;
        }
    }
}

static void name_cause(struct prof_rank_row *row)
{
    for (int k = PROF_CAUSE_COMPUTE; k < PROF_CAUSES; k++) {
        if (row->excess_ns[k] > row->excess_ns[row->cause])
            row->cause = (enum prof_rank_cause)k;
    }
}

bool rank_causes(struct rank_work *w, struct prof_ranks *result)
{
    struct causes c = {.w = w};
    size_t units = w->units.count + 1;
    bool ok = (c.courses = calloc(units, sizeof *c.courses)) != NULL &&
              (result->late = calloc(PROF_RANKS_LATE, sizeof *result->late)) != NULL;
    for (int k = 0; k < PROF_CAUSES; k++)
        ok = ok && (c.values[k] = calloc(units, sizeof *c.values[k])) != NULL;
    if (ok)
        judge_sets(&c, result);
    for (size_t i = 0; ok && i < w->units.count; i++)
        name_cause(&w->units.data[i].row);
    free(c.courses);
    for (int k = 0; k < PROF_CAUSES; k++)
        free(c.values[k]);
    return ok;
}

/* ---- what a rank did otherwise than most ----------------------------------------------------- */

/* What a rank did otherwise than most: launches of each kernel configuration, bytes copied,
 * collectives. These are exact and the same on every rank of a program that treats its ranks alike,
 * so any difference is one. Also the kernel that is slower on a rank than on the others. */

PROF_ORDER(by_what, struct rank_count, PROF_ASCENDING(kind), PROF_ASCENDING(key),
           PROF_ASCENDING(key2), PROF_ASCENDING(unit))

static bool is_same(const struct rank_count *a, const struct rank_count *b)
{
    return a->kind == b->kind && a->key == b->key && a->key2 == b->key2;
}

/* The value that most units have; of two, that of the first unit. `scratch` has room for all. */
static int64_t usual_of(const int64_t *values, int64_t *scratch, size_t count, int64_t *ranks)
{
    int64_t usual = values[0];
    memcpy(scratch, values, count * sizeof *values);
    qsort(scratch, count, sizeof *scratch, prof_ascending_int64);
    *ranks = 0;
    for (size_t i = 0; i < count; i++) /* how many have the first unit's */
        *ranks += values[i] == values[0];
    for (size_t i = 0; i < count;) {
        size_t end = i;
        while (end < count && scratch[end] == scratch[i])
            end++;
        if ((int64_t)(end - i) > *ranks) {
            *ranks = (int64_t)(end - i);
            usual = scratch[i];
        }
        i = end;
    }
    return usual;
}

struct differing {
    struct rank_work *w;
    struct prof_ranks *result;
    int64_t *values, *scratch; /* by unit */
    int64_t *sums;
    PROF_ARRAY(struct prof_rank_difference) list;
};

static void describe_difference(const struct rank_work *w, const struct rank_count *count,
                                struct prof_rank_difference *difference)
{
    difference->kind = count->kind;
    switch (count->kind) {
    case PROF_DIFFERS_LAUNCHES:
        difference->config = prof_config(w->capture, count->key);
        difference->name = difference->config ? difference->config->name : NULL;
        difference->shape = prof_launch_shape(difference->config);
        break;
    case PROF_DIFFERS_COPIED:
        difference->name = prof_copy_kind_text((int)count->key);
        break;
    case PROF_DIFFERS_COLLECTIVES:
        difference->name = prof_collective_name((enum prof_collective)count->key);
        break;
    }
}

static bool compare_rank_count(struct differing *d, const struct rank_count *count)
{
    int64_t ranks, usual = usual_of(d->values, d->scratch, d->w->units.count, &ranks);
    for (uint32_t unit = 0; unit < d->w->units.count; unit++) {
        if (d->values[unit] == usual)
            continue;
        struct prof_rank_difference *difference = prof_array_add(&d->list);
        if (!difference)
            return false;
        *difference = (struct prof_rank_difference){
            .rank = unit, .here = d->values[unit], .usual = usual, .usual_ranks = ranks};
        describe_difference(d->w, count, difference);
    }
    return true;
}

/* By how much the kernel took longer on each unit than on the median of the others. */
static void find_slow(struct differing *d, const struct rank_count *count)
{
    const struct prof_config *config = prof_config(d->w->capture, count->key);
    size_t units = d->w->units.count;
    for (size_t unit = 0; unit < units; unit++) {
        size_t others = 0;
        for (size_t i = 0; i < units; i++)
            if (i != unit)
                d->scratch[others++] = d->sums[i];
        if (others == 0)
            return;
        struct prof_rank_row *row = &d->w->units.data[unit].row;
        int64_t more = prof_subtract(d->sums[unit], (int64_t)rank_median(d->scratch, others));
        if (more > row->slow_kernel_ns) {
            row->slow_kernel_ns = more;
            row->slow_kernel = config ? config->name : NULL;
        }
    }
}

static int by_rank_and_kind(const void *a, const void *b)
{
    const struct prof_rank_difference *x = a, *y = b;
    int64_t left = prof_subtract(x->here, x->usual), right = prof_subtract(y->here, y->usual);
    left = left < 0 ? -left : left;
    right = right < 0 ? -right : right;
    return PROF_COMPARE(x->rank, y->rank) ?: PROF_COMPARE(x->kind, y->kind) ?:
           PROF_COMPARE(right, left) ?: prof_compare_texts(x->name, y->name) ?:
           strcmp(x->shape.text, y->shape.text);
}

static bool compare_all(struct differing *d)
{
    struct rank_work *w = d->w;
    for (size_t i = 0; i < w->counts.count;) {
        const struct rank_count *first = &w->counts.data[i];
        memset(d->values, 0, w->units.count * sizeof *d->values);
        memset(d->sums, 0, w->units.count * sizeof *d->sums);
        for (; i < w->counts.count && is_same(first, &w->counts.data[i]); i++) {
            d->values[w->counts.data[i].unit] = w->counts.data[i].count;
            d->sums[w->counts.data[i].unit] = w->counts.data[i].sum_ns;
        }
        if (!compare_rank_count(d, first))
            return false;
        if (first->kind == PROF_DIFFERS_LAUNCHES)
            find_slow(d, first);
    }
    return true;
}

bool rank_differences(struct rank_work *w, struct prof_ranks *result)
{
    struct differing d = {.w = w, .result = result};
    size_t units = w->units.count + 1;
    bool ok = (d.values = calloc(units, sizeof *d.values)) != NULL &&
              (d.scratch = calloc(units, sizeof *d.scratch)) != NULL &&
              (d.sums = calloc(units, sizeof *d.sums)) != NULL;
    prof_array_sort(&w->counts, by_what);
    ok = ok && (w->units.count < 2 || compare_all(&d));
    prof_array_sort(&d.list, by_rank_and_kind);
    result->differences = d.list.data;
    result->difference_count = d.list.count;
    if (d.list.count > PROF_RANKS_DIFFERENCES) {
        result->differences_left_out = (int64_t)(d.list.count - PROF_RANKS_DIFFERENCES);
        result->difference_count = PROF_RANKS_DIFFERENCES;
    }
    free(d.values);
    free(d.scratch);
    free(d.sums);
    return ok;
}
