/* Which time of a run belongs to which phase, and where its device work lies; see iterations.h. The
 * analysed intervals of a phase go from the first to the last of its steady iterations in a row,
 * where nothing of another phase or of set-up comes between, and on to the end of the device work
 * that they launch. */
#include <stdlib.h>

#include "libprof/analysis/facts/iteration_parts.h"
#include "libprof/base/saturate.h"

struct mark {
    int64_t begin;
    size_t phase; /* SIZE_MAX: set-up */
};

/* Begins of iterations of all phases, and of set-up: where another phase's stands between two
 * iterations of a phase, the time between them is not the phase's. */
struct marks {
    PROF_ARRAY(struct mark) list;
};

static int by_mark_begin(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;
    return PROF_COMPARE(x->begin, y->begin) ?: PROF_COMPARE(x->phase, y->phase);
}

static bool list_marks(struct marks *marks, const struct prof_phases *phases,
                       const struct prof_intervals *set_up)
{
    for (size_t p = 0; p < phases->list.count; p++) {
        const struct prof_iterations *it = &phases->list.data[p].iterations;
        for (size_t i = 0; i < it->list.count; i++) {
            struct mark *slot = prof_array_add(&marks->list);
            if (!slot)
                return false;
            *slot = (struct mark){it->list.data[i].begin, p};
        }
    }
    for (size_t i = 0; i < set_up->count; i++)
        if (!prof_array_push(&marks->list, (struct mark){set_up->data[i].begin, SIZE_MAX}))
            return false;
    for (size_t i = 0; i < phases->others.count; i++)
        if (!prof_array_push(&marks->list, (struct mark){phases->others.data[i], SIZE_MAX}))
            return false;
    if (marks->list.count)
        qsort(marks->list.data, marks->list.count, sizeof *marks->list.data, by_mark_begin);
    return true;
}

static bool is_interrupted(const struct marks *marks, size_t phase, int64_t from, int64_t to)
{
    size_t low;
    PROF_FIND_FIRST(low, at, marks->list.count, marks->list.data[at].begin >= from);
    for (; low < marks->list.count && marks->list.data[low].begin < to; low++)
        if (marks->list.data[low].phase != phase)
            return true;
    return false;
}

/* The pause before an iteration; where iterations last until the next one begins, the pause is
 * within them. */
static int64_t pause_at(const struct prof_phase *phase, size_t at)
{
    const struct prof_iteration *one = &phase->iterations.list.data[at];
    return phase->tiled                          ? one->end - one->begin
           : at && one[-1].thread == one->thread ? one->begin - one[-1].end
                                                 : 0;
}

/* From how long on a pause of a thread's iterations is a break: a quarter of their time, and a
 * hundred times as long as an iteration. The loop was over, and began again or something else came:
 * far from what pauses of loops are. Time of breaks is not theirs, so that a long one hides no
 * shorter one. */
static int64_t shortest_break(const struct prof_phase *phase, size_t from)
{
    const struct prof_iteration *list = phase->iterations.list.data;
    size_t to = prof_iterations_thread_end(&phase->iterations, from), count = to - from;
    int64_t left = list[to - 1].end - list[from].begin, limit = INT64_MAX;
    for (;;) {
        int64_t longest = 0, sum = 0;
        for (size_t i = from; i < to; i++) {
            int64_t pause = pause_at(phase, i);
            if (pause < limit && pause > longest) {
                longest = pause;
                sum = 0;
            }
            sum += pause == longest ? pause : 0;
        }
        if (longest <= 0 || longest < left / 4 || longest / 100 < (left - sum) / (int64_t)count)
            return limit;
        left -= sum;
        limit = longest;
    }
}

/* From the first to the last of the steady iterations in a row, over all threads. Where one lasts
 * until the next begins, a pause is within it. */
static bool span_rows(struct prof_phase *phase, const struct marks *marks, size_t number)
{
    const struct prof_iterations *it = &phase->iterations;
    struct prof_intervals rows = {0};
    int64_t limit = INT64_MAX;
    bool ok = true, goes_on = false;
    for (size_t i = 0; ok && i < it->list.count; i++) {
        const struct prof_iteration *one = &it->list.data[i];
        bool first = !i || one[-1].thread != one->thread;
        if (first)
            limit = shortest_break(phase, i);
        bool breaks = pause_at(phase, i) >= limit;
        if (first || breaks || is_interrupted(marks, number, one[-1].end, one->begin))
            goes_on = false;
        if (!one->steady || (phase->tiled && breaks)) {
            goes_on = false;
            continue;
        }
        if (goes_on)
            rows.data[rows.count - 1].end = one->end;
        else
            ok = prof_intervals_add(&rows, one->begin, one->end);
        goes_on = rows.count > 0;
    }
    prof_intervals_normalise(&rows);
    phase->intervals = rows;
    return ok;
}

/* Device work of an interval belongs to it to its end, unless another interval begins before. */
struct owner {
    int64_t begin, end, until;
    size_t phase;
};

struct owners {
    PROF_ARRAY(struct owner) list;
};

static int by_owner(const void *a, const void *b)
{
    const struct owner *x = a, *y = b;
    return PROF_COMPARE(x->begin, y->begin) ?: PROF_COMPARE(x->phase, y->phase);
}

/* Phases of different threads may overlap in time: whoever began first has it until it ends. */
static bool list_owners(struct owners *owners, struct prof_phases *phases)
{
    size_t kept = 0;
    for (size_t p = 0; p < phases->list.count; p++) {
        const struct prof_intervals *own = &phases->list.data[p].intervals;
        for (size_t i = 0; i < own->count; i++)
            if (!prof_array_push(&owners->list, (struct owner){own->data[i].begin, own->data[i].end,
                                                               own->data[i].end, p}))
                return false;
        prof_array_free(&phases->list.data[p].intervals);
    }
    if (owners->list.count)
        qsort(owners->list.data, owners->list.count, sizeof *owners->list.data, by_owner);
    for (size_t i = 0; i < owners->list.count; i++) {
        struct owner one = owners->list.data[i];
        int64_t taken = kept ? owners->list.data[kept - 1].end : INT64_MIN;
        one.begin = one.begin > taken ? one.begin : taken;
        if (one.begin < one.end)
            owners->list.data[kept++] = one;
    }
    owners->list.count = kept;
    return true;
}

/* Only what was recorded. */
static bool give_intervals(const struct owners *owners, struct prof_phases *phases,
                           const struct prof_facts *f)
{
    for (size_t i = 0; i < owners->list.count; i++) {
        const struct owner *one = &owners->list.data[i];
        struct prof_intervals own = {.data = &(struct prof_interval){one->begin, one->end},
                                     .count = 1};
        struct prof_intervals recorded = {0};
        if (!prof_intervals_intersection(&own, &f->recorded, &recorded))
            return false;
        for (size_t k = 0; k < recorded.count; k++)
            if (!prof_intervals_add(&phases->list.data[one->phase].intervals,
                                    recorded.data[k].begin, recorded.data[k].end))
                return false;
        prof_array_free(&recorded);
    }
    return true;
}

bool prof_phase_measure(struct prof_phase *phase)
{
    const struct prof_intervals *set = &phase->intervals;
    phase->before = prof_intervals_sums(set);
    phase->time_ns = 0;
    if (phase->before && set->count) {
        phase->begin = set->data[0].begin;
        phase->end = set->data[set->count - 1].end;
        phase->time_ns = prof_intervals_before(set, phase->before, phase->end);
    }
    return phase->before != NULL;
}

bool prof_phases_intervals(struct prof_phases *phases, const struct prof_facts *f,
                           const struct prof_intervals *set_up)
{
    struct marks marks = {0};
    struct owners owners = {0};
    bool ok = list_marks(&marks, phases, set_up);
    for (size_t p = 0; ok && p < phases->list.count; p++)
        ok = span_rows(&phases->list.data[p], &marks, p);
    ok = ok && list_owners(&owners, phases);
    if (ok) {
        for (enum prof_op_kind kind = PROF_OP_KERNEL; kind <= PROF_OP_GRAPH; kind++) {
            for (size_t i = 0; i < f->ops[kind].count; i++) {
                struct prof_op op = prof_facts_op(f, kind, i);
                int64_t time = prof_op_asked_at(&op);
                size_t low;
                PROF_FIND_FIRST(low, at, owners.list.count, owners.list.data[at].begin > time);
                struct owner *owner =
                    low && time < owners.list.data[low - 1].end ? &owners.list.data[low - 1] : NULL;
                int64_t end = prof_add(op.start, op.duration);
                if (owner && end > owner->until)
                    owner->until = end;
            }
        }
        for (size_t i = 0; i < owners.list.count; i++) {
            struct owner *one = &owners.list.data[i];
            int64_t most = i + 1 < owners.list.count ? one[1].begin : f->end_ns;
            one->end = one->until < most ? one->until : most > one->end ? most : one->end;
        }
    }
    ok = ok && give_intervals(&owners, phases, f);
    for (size_t p = 0; ok && p < phases->list.count; p++)
        ok = prof_phase_measure(&phases->list.data[p]);
    prof_array_free(&marks.list);
    prof_array_free(&owners.list);
    return ok;
}

/* ---- coverage -------------------------------------------------------------------------------- */

int64_t prof_phase_before(const struct prof_phase *phase, int64_t time)
{
    return prof_intervals_before(&phase->intervals, phase->before, time);
}

/* False: it is other work. */
static bool cover_op(struct prof_phases *phases, const struct prof_intervals *skipped,
                     const struct prof_intervals *set_up, const struct prof_op *op)
{
    struct prof_coverage *coverage = &phases->coverage;
    int64_t asked = prof_op_asked_at(op);
    coverage->device_ns = prof_add(coverage->device_ns, op->duration);
    for (size_t p = 0; p < phases->list.count; p++) {
        struct prof_phase *phase = &phases->list.data[p];
        if (!prof_intervals_has(&phase->intervals, op->start))
            continue;
        phase->ops++;
        phase->device_ns = prof_add(phase->device_ns, op->duration);
        coverage->analysed_ns = prof_add(coverage->analysed_ns, op->duration);
        return true;
    }
    int64_t *sum = prof_intervals_has(skipped, asked)  ? &coverage->skipped_ns
                   : prof_intervals_has(set_up, asked) ? &coverage->set_up_ns
                                                       : NULL;
    if (sum)
        *sum = prof_add(*sum, op->duration);
    return sum != NULL;
}

bool prof_phases_skipped(const struct prof_phases *phases, struct prof_intervals *skipped)
{
    for (size_t p = 0; p < phases->list.count; p++) {
        const struct prof_iterations *it = &phases->list.data[p].iterations;
        for (size_t i = 0; i < it->list.count; i++)
            if (!it->list.data[i].steady &&
                !prof_intervals_add(skipped, it->list.data[i].begin, it->list.data[i].end))
                return false;
    }
    prof_intervals_normalise(skipped);
    return true;
}

static void keep_largest(struct prof_coverage *coverage, struct prof_coverage_range one)
{
    size_t at = coverage->other_count;
    while (at && coverage->other[at - 1].device_ns < one.device_ns)
        at--;
    if (at == PROF_COVERAGE_RANGES)
        return;
    coverage->other_count += coverage->other_count < PROF_COVERAGE_RANGES;
    for (size_t i = coverage->other_count - 1; i > at; i--)
        coverage->other[i] = coverage->other[i - 1];
    coverage->other[at] = one;
}

bool prof_phases_cover(struct prof_phases *phases, struct prof_range_paths *paths,
                       const struct prof_intervals *skipped, const struct prof_intervals *set_up)
{
    const struct prof_facts *f = paths->facts;
    size_t names = f->range_texts.list.count;
    int64_t *other = calloc(names + 1, sizeof *other); /* by name; the last: in no range */
    if (!other)
        return false;
    for (size_t p = paths->list.count; p--;) {
        const struct prof_range_path *path = &paths->list.data[p];
        if ((path->chosen || path->holds_chosen) && path->parent != PROF_NO_RANGE_PATH)
            paths->list.data[path->parent].holds_chosen = true;
    }
    for (size_t p = 0; p < phases->list.count; p++)
        phases->list.data[p].ops = 0;
    for (enum prof_op_kind kind = PROF_OP_KERNEL; kind <= PROF_OP_GRAPH; kind++) {
        for (size_t i = 0; i < f->ops[kind].count; i++) {
            struct prof_op op = prof_facts_op(f, kind, i);
            if (cover_op(phases, skipped, set_up, &op))
                continue;
            /* Of the paths around an operation, the outermost one that holds no iterations; else
             * the innermost.
             */
            uint32_t path = prof_range_path_at(paths, &op), parent;
            while (path != PROF_NO_RANGE_PATH &&
                   (parent = paths->list.data[path].parent) != PROF_NO_RANGE_PATH &&
                   !paths->list.data[parent].holds_chosen)
                path = parent;
            size_t name = path == PROF_NO_RANGE_PATH ? names : paths->list.data[path].name;
            other[name] = prof_add(other[name], op.duration);
        }
    }
    for (size_t i = 0; i <= names; i++) {
        const char *name = i < names ? f->range_texts.list.data[i] : NULL;
        if (other[i])
            keep_largest(&phases->coverage, (struct prof_coverage_range){name, other[i]});
    }
    free(other);
    return true;
}
