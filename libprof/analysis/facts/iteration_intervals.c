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
    size_t other; /* the next one of another phase */
};

/* Begins of iterations of all phases, and of set-up: where another phase's stands between two
 * iterations of a phase, the time between them is not the phase's. */
struct marks {
    PROF_ARRAY(struct mark) list;
};

PROF_ORDER(by_mark_begin, struct mark, PROF_ASCENDING(begin), PROF_ASCENDING(phase))

static bool list_marks(struct marks *marks, const struct prof_phases *phases,
                       const struct prof_intervals *set_up)
{
    for (size_t p = 0; p < phases->list.count; p++) {
        const struct prof_iterations *it = &phases->list.data[p].iterations;
        for (size_t i = 0; i < it->list.count; i++) {
            struct mark *slot = prof_array_add(&marks->list);
            if (!slot)
                return false;
            *slot = (struct mark){it->list.data[i].begin, p, 0};
        }
    }
    for (size_t i = 0; i < set_up->count; i++)
        if (!prof_array_push(&marks->list, (struct mark){set_up->data[i].begin, SIZE_MAX, 0}))
            return false;
    for (size_t i = 0; i < phases->others.count; i++)
        if (!prof_array_push(&marks->list, (struct mark){phases->others.data[i], SIZE_MAX, 0}))
            return false;
    prof_array_sort(&marks->list, by_mark_begin);
    for (size_t count = marks->list.count, i = count; i--;) {
        struct mark *one = &marks->list.data[i];
        one->other = i + 1 < count && one[1].phase == one->phase ? one[1].other : i + 1;
    }
    return true;
}

static bool is_interrupted(const struct marks *marks, size_t phase, int64_t from, int64_t to)
{
    size_t low;
    PROF_FIND_FIRST(low, at, marks->list.count, marks->list.data[at].begin >= from);
    if (low < marks->list.count && marks->list.data[low].phase == phase)
        low = marks->list.data[low].other;
    return low < marks->list.count && marks->list.data[low].begin < to;
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
            if (one->steady) { /* its time is not the phase's, what it launches is */
                ok = prof_intervals_add(&phase->host, one->begin, one->end);
                phase->device_end = INT64_MAX;
            }
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
    int64_t host_end; /* of its iterations, and of the waits that follow the last one */
    int64_t next;     /* when its thread launched the device's next operation after `end` */
    uint32_t thread;  /* of the iteration that ends last */
    int64_t waits;    /* in the pause before that one */
    size_t phase;
};

struct owners {
    PROF_ARRAY(struct owner) list;
};

PROF_ORDER(by_owner, struct owner, PROF_ASCENDING(begin), PROF_ASCENDING(phase))

static bool list_owners(struct owners *owners, const struct prof_phases *phases)
{
    for (size_t p = 0; p < phases->list.count; p++) {
        const struct prof_intervals *own = &phases->list.data[p].intervals;
        for (size_t i = 0; i < own->count; i++)
            if (!prof_array_push(&owners->list, (struct owner){.begin = own->data[i].begin,
                                                               .end = own->data[i].end,
                                                               .until = own->data[i].end,
                                                               .host_end = own->data[i].end,
                                                               .next = INT64_MAX,
                                                               .phase = p}))
                return false;
    }
    prof_array_sort(&owners->list, by_owner);
    return true;
}

/* Phases of different threads may overlap in time: the one that began first has it until it ends.
 */
static void keep_owners_apart(struct owners *owners)
{
    size_t kept = 0;
    for (size_t i = 0; i < owners->list.count; i++) {
        struct owner one = owners->list.data[i];
        int64_t taken = kept ? owners->list.data[kept - 1].end : INT64_MIN;
        one.begin = one.begin > taken ? one.begin : taken;
        if (one.begin < one.end)
            owners->list.data[kept++] = one;
    }
    owners->list.count = kept;
}

/* The last one that had begun by then. */
static struct owner *owner_begun(const struct owners *owners, int64_t time)
{
    size_t low;
    PROF_FIND_FIRST(low, at, owners->list.count, owners->list.data[at].begin > time);
    return low ? &owners->list.data[low - 1] : NULL;
}

/* A thread's waits from one time to another, but no more than `most` and none after another call;
 * *last: when the last one begins. */
static int64_t count_waits(const struct prof_facts *f, uint32_t thread, int64_t from, int64_t to,
                           int64_t most, int64_t *last)
{
    size_t count, low;
    int64_t waits = 0;
    const struct prof_call *calls = prof_facts_calls(f, thread, &count);
    PROF_FIND_FIRST(low, at, count, calls[at].start >= from);
    for (; low < count && calls[low].class_ == WIRE_CLASS_SYNC && calls[low].start < to &&
           waits < most;
         low++, waits++)
        *last = calls[low].start;
    return waits;
}

static void own_operations(struct owners *owners, const struct prof_phases *phases,
                           const struct prof_facts *f)
{
    for (size_t p = 0; p < phases->list.count; p++) {
        const struct prof_iterations *it = &phases->list.data[p].iterations;
        for (size_t i = 0; i < it->list.count; i++) {
            const struct prof_iteration *one = &it->list.data[i];
            struct owner *owner = owner_begun(owners, one->end - 1);
            if (!owner || owner->phase != p || owner->end != one->end)
                continue;
            int64_t last;
            owner->thread = one->thread;
            owner->waits =
                i && one[-1].thread == one->thread
                    ? count_waits(f, one->thread, one[-1].end, one->begin, INT64_MAX, &last)
                    : 0;
        }
    }
    for (enum prof_op_kind kind = PROF_OP_KERNEL; kind <= PROF_OP_GRAPH; kind++) {
        for (size_t i = 0; i < f->ops[kind].count; i++) {
            struct prof_op op = prof_facts_op(f, kind, i);
            int64_t end = prof_add(op.start, op.duration), asked = prof_op_asked_at(&op);
            struct owner *owner = owner_begun(owners, asked);
            if (owner && asked < owner->end)
                owner->until = end > owner->until ? end : owner->until;
            else if (owner && op.thread == owner->thread && asked < owner->next)
                owner->next = asked;
        }
    }
    for (size_t i = 0; i < owners->list.count; i++) {
        struct owner *one = &owners->list.data[i];
        int64_t most = i + 1 < owners->list.count ? one[1].begin : f->end_ns;
        /* The pause after the last iteration belongs to it: where the host waits for the device
         * between the ranges, it waits there too. */
        int64_t last = one->host_end - 1;
        count_waits(f, one->thread, one->end, one->next < most ? one->next : most, one->waits,
                    &last);
        one->host_end = last + 1;
        one->end = one->until < most ? one->until : most > one->end ? most : one->end;
    }
}

/* Only what was recorded. */
static bool add_recorded(struct prof_intervals *set, int64_t begin, int64_t end,
                         const struct prof_facts *f)
{
    struct prof_intervals own = {.data = &(struct prof_interval){begin, end}, .count = 1};
    struct prof_intervals recorded = {0};
    bool ok = prof_intervals_intersection(&own, &f->recorded, &recorded);
    for (size_t k = 0; ok && k < recorded.count; k++)
        ok = prof_intervals_add(set, recorded.data[k].begin, recorded.data[k].end);
    prof_array_free(&recorded);
    return ok;
}

static bool give_intervals(const struct owners *owners, struct prof_phases *phases,
                           const struct prof_facts *f)
{
    for (size_t i = 0; i < owners->list.count; i++) {
        const struct owner *one = &owners->list.data[i];
        struct prof_phase *phase = &phases->list.data[one->phase];
        phase->device_end = one->until > phase->device_end ? one->until : phase->device_end;
        if (!add_recorded(&phase->intervals, one->begin, one->end, f) ||
            !prof_intervals_add(&phase->host, one->begin, one->host_end))
            return false;
    }
    bool ok = true;
    for (size_t p = 0; ok && p < phases->list.count; p++) {
        struct prof_phase *phase = &phases->list.data[p];
        struct prof_intervals host = phase->host;
        phase->host = (struct prof_intervals){0};
        prof_intervals_normalise(&host);
        ok = prof_intervals_intersection(&host, &f->recorded, &phase->host);
        prof_array_free(&host);
    }
    return ok;
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
    for (size_t p = 0; p < phases->list.count; p++)
        prof_array_free(&phases->list.data[p].intervals);
    keep_owners_apart(&owners);
    if (ok)
        own_operations(&owners, phases, f);
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
static bool cover_op(struct prof_phases *phases, const struct owners *owners,
                     const struct prof_intervals *skipped, const struct prof_intervals *set_up,
                     const struct prof_op *op)
{
    struct prof_coverage *coverage = &phases->coverage;
    int64_t asked = prof_op_asked_at(op);
    coverage->device_ns = prof_add(coverage->device_ns, op->duration);
    const struct owner *owner = owner_begun(owners, op->start);
    if (owner && op->start < owner->end) {
        struct prof_phase *phase = &phases->list.data[owner->phase];
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

/* Of the paths around an operation, the outermost one that holds no iterations; else the innermost.
 */
static uint32_t naming_path(struct prof_range_paths *paths, const struct prof_op *op)
{
    uint32_t at = prof_range_path_at(paths, op), parent;
    while (at != PROF_NO_RANGE_PATH &&
           (parent = paths->list.data[at].parent) != PROF_NO_RANGE_PATH &&
           !paths->list.data[parent].holds_chosen)
        at = parent;
    return at;
}

static void mark_holders(struct prof_range_paths *paths)
{
    for (size_t p = paths->list.count; p--;) {
        const struct prof_range_path *path = &paths->list.data[p];
        if ((path->chosen || path->holds_chosen) && path->parent != PROF_NO_RANGE_PATH)
            paths->list.data[path->parent].holds_chosen = true;
    }
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
    PROF_FREED int64_t *other =
        calloc(names + 1, sizeof *other); /* by name; the last: in no range */
    struct owners owners = {0};
    if (!other || !list_owners(&owners, phases)) {
        prof_array_free(&owners.list);
        return false;
    }
    mark_holders(paths);
    for (size_t p = 0; p < phases->list.count; p++)
        phases->list.data[p].ops = 0;
    for (enum prof_op_kind kind = PROF_OP_KERNEL; kind <= PROF_OP_GRAPH; kind++) {
        for (size_t i = 0; i < f->ops[kind].count; i++) {
            struct prof_op op = prof_facts_op(f, kind, i);
            if (cover_op(phases, &owners, skipped, set_up, &op))
                continue;
            uint32_t path = naming_path(paths, &op);
            size_t name = path == PROF_NO_RANGE_PATH ? names : paths->list.data[path].name;
            other[name] = prof_add(other[name], op.duration);
        }
    }
    prof_array_free(&owners.list);
    for (size_t i = 0; i <= names; i++) {
        const char *name = i < names ? f->range_texts.list.data[i] : NULL;
        if (other[i])
            keep_largest(&phases->coverage, (struct prof_coverage_range){name, other[i]});
    }
    return true;
}
