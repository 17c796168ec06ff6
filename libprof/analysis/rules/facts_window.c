/* Which part of the run the findings are about: where the program repeats itself. Start-up, warm-up
 * and the measuring of other things are no faults of a loop that runs for hours; a capture of a
 * test run consists mostly of them.
 *
 * A thing that happens again and again (a launch configuration, a copy of one size, an NVTX range
 * of one name) has a run: its occurrences without the outliers at the ends. The run with the
 * greatest length x log2(occurrences) is the window, with the runs that overlap it: of two phases
 * as long, the one that repeats more. NVTX is not needed for it; where ranges repeat they say how
 * many steps the window has. */
#include <math.h>
#include <stdlib.h>

#include "libprof/analysis/rules/facts.h"
#include "libprof/base/saturate.h"

#define CANDIDATES 64
#define LEAST 5       /* occurrences of something that repeats */
#define ARRIVALS 8192 /* kept per candidate; beyond, every second one */

struct run {
    int64_t begin, end; /* first occurrence, last one */
    int64_t count;
    uint32_t group;  /* NVTX group, or PROF_NO_GROUP */
    int64_t covered; /* sum of the ranges' durations */
};

struct arrivals {
    int64_t *times;
    size_t count, capacity;
    int64_t stride, seen;
};

/* Room grows with the occurrences: of a million names most have one. */
static bool make_room(struct arrivals *a)
{
    size_t wanted = a->capacity ? a->capacity * 2 : 8;
    int64_t *grown = realloc(a->times, wanted * sizeof *grown);
    if (!grown)
        return false;
    a->times = grown;
    a->capacity = wanted;
    return true;
}

static void arrive(struct arrivals *a, int64_t time)
{
    if (!a->stride)
        a->stride = 1;
    if (a->seen++ % a->stride)
        return;
    if (a->count == a->capacity && a->capacity < ARRIVALS && !make_room(a)) {
        prof_note(PROF_NOMEM);
        return;
    }
    if (a->count == ARRIVALS) {
        for (size_t i = 0; i < ARRIVALS / 2; i++)
            a->times[i] = a->times[2 * i];
        a->count = ARRIVALS / 2;
        a->stride *= 2;
    }
    a->times[a->count++] = time;
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Warm-up: pauses among the first quarter that are twice as long as any of the others. */
static size_t after_warm_up(const struct arrivals *a)
{
    size_t quarter = a->count / 4 + 1, first = 0;
    int64_t longest = 0;
    for (size_t i = quarter; i + 1 < a->count; i++) {
        int64_t pause = a->times[i + 1] - a->times[i];
        longest = pause > longest ? pause : longest;
    }
    for (size_t i = 0; longest && i < quarter && i + 1 < a->count; i++) {
        if ((a->times[i + 1] - a->times[i]) / 2 > longest)
            first = i + 1;
    }
    return first;
}

/* Cut off what stands apart from the rest: as long as one pause is much longer than every other and
 * either takes a quarter of the time or parts off a quarter of the occurrences at most, the larger
 * part goes on alone. */
static struct run find_run(struct arrivals *a)
{
    if (a->count)
        qsort(a->times, a->count, sizeof *a->times, by_time);
    size_t first = after_warm_up(a), last = a->count;
    while (last - first >= LEAST) {
        int64_t longest = 0, second = 0;
        size_t at = first;
        for (size_t i = first; i + 1 < last; i++) {
            int64_t pause = a->times[i + 1] - a->times[i];
            if (pause > longest) {
                second = longest;
                longest = pause;
                at = i + 1;
            } else if (pause > second) {
                second = pause;
            }
        }
        size_t left = at - first, right = last - at, less = left < right ? left : right;
        int64_t span = a->times[last - 1] - a->times[first];
        if (longest <= 4 * second || (longest < span / 4 && less > (last - first) / 4))
            break;
        if (left > right)
            last = at;
        else
            first = at;
    }
    if (last - first < LEAST)
        return (struct run){0};
    return (struct run){a->times[first], a->times[last - 1], (int64_t)(last - first) * a->stride,
                        PROF_NO_GROUP, 0};
}

/* ---- candidates ------------------------------------------------------------------------------ */

/* The shapes that occur most often, since each of them may be the loop's own. */
static size_t choose_shapes(const struct prof_facts *f, uint32_t *chosen)
{
    size_t count = 0;
    for (uint32_t i = 0; i < f->shapes.count; i++) {
        int64_t total = f->shapes.data[i].total;
        if (total < LEAST)
            continue;
        size_t at = count < CANDIDATES ? count++ : CANDIDATES;
        for (; at && f->shapes.data[chosen[at - 1]].total < total; at--) {
            if (at < CANDIDATES)
                chosen[at] = chosen[at - 1];
        }
        if (at < CANDIDATES)
            chosen[at] = i;
    }
    return count;
}

static int64_t asked_at(const struct prof_op *op)
{
    return op->call == PROF_UNKNOWN ? op->start : op->call;
}

static size_t shape_runs(const struct prof_facts *f, struct run *runs)
{
    uint32_t chosen[CANDIDATES];
    struct arrivals arrivals[CANDIDATES] = {{0}};
    size_t count = choose_shapes(f, chosen), made = 0;
    unsigned char *slot = calloc(f->shapes.count + 1, 1);
    if (!slot)
        prof_note(PROF_NOMEM);
    for (size_t i = 0; slot && i < count; i++)
        slot[chosen[i]] = (unsigned char)(i + 1);
    for (enum prof_op_kind kind = PROF_OP_KERNEL; slot && kind <= PROF_OP_GRAPH; kind++) {
        for (size_t i = 0; i < f->ops[kind].count; i++) {
            struct prof_op op = prof_facts_op(f, kind, i);
            if (slot[op.shape])
                arrive(&arrivals[slot[op.shape] - 1], asked_at(&op));
        }
    }
    free(slot);
    for (size_t i = 0; i < count; i++) {
        struct run run = arrivals[i].count ? find_run(&arrivals[i]) : (struct run){0};
        if (run.count)
            runs[made++] = run;
        free(arrivals[i].times);
    }
    return made;
}

/* The ranges of the threads that launch; of all where none of those has any. Workers that prepare
 * data have ranges of their own, which are no steps. */
struct node_walk {
    const struct prof_facts *f;
    struct prof_map launching; /* threads */
    bool all;
    size_t thread, lane, node;
};

static bool is_walked(const struct node_walk *walk, const struct prof_range_thread *thread)
{
    return walk->all || prof_map_get(&walk->launching, (uint32_t)thread->thread);
}

/* False: out of memory. The walk's map is the caller's to free. */
static bool begin_walk(struct node_walk *walk, const struct prof_facts *f)
{
    *walk = (struct node_walk){.f = f, .all = false};
    for (size_t i = 0; i < f->places.count; i++) {
        if (!prof_map_put(&walk->launching, f->places.data[i].thread, 1))
            return false;
    }
    bool any = false;
    for (size_t t = 0; t < f->ranges.threads.count && !any; t++)
        any = is_walked(walk, &f->ranges.threads.data[t]);
    walk->all = !any;
    return true;
}

static void walk_again(struct node_walk *walk)
{
    walk->thread = walk->lane = walk->node = 0;
}

static const struct prof_range_node *next_node(struct node_walk *walk)
{
    const struct prof_range_index *index = &walk->f->ranges;
    for (; walk->thread < index->threads.count; walk->thread++, walk->lane = 0) {
        const struct prof_range_thread *thread = &index->threads.data[walk->thread];
        for (; is_walked(walk, thread) && walk->lane < thread->lanes.count; walk->lane++) {
            const struct prof_range_lane *lane = &thread->lanes.data[walk->lane];
            if (walk->node < lane->count)
                return &index->nodes.data[lane->nodes[walk->node++]];
            walk->node = 0;
        }
    }
    return NULL;
}

static size_t range_runs(const struct prof_facts *f, struct run *runs)
{
    size_t groups = f->range_texts.list.count, made = 0;
    struct arrivals *arrivals = calloc(groups + 1, sizeof *arrivals);
    int64_t *ends = calloc(groups + 1, sizeof *ends);
    const struct prof_range_node *node;
    struct node_walk walk;
    bool ok = begin_walk(&walk, f) && arrivals && ends;
    if (!ok)
        prof_note(PROF_NOMEM);
    while (ok && (node = next_node(&walk))) {
        if (node->group < groups && node->end <= f->end_ns && node->begin >= 0)
            arrive(&arrivals[node->group], node->begin);
    }
    for (size_t g = 0; ok && g < groups; g++) {
        struct run run = arrivals[g].count >= LEAST ? find_run(&arrivals[g]) : (struct run){0};
        free(arrivals[g].times);
        if (!run.count || made == CANDIDATES)
            continue;
        run.group = (uint32_t)g;
        runs[made++] = run;
    }
    /* A run of ranges lasts to the end of the last one. */
    walk_again(&walk);
    while (ok && made && (node = next_node(&walk))) {
        for (size_t r = 0; r < made; r++) {
            if (runs[r].group != node->group || node->begin > runs[r].end ||
                node->begin < runs[r].begin || node->end > f->end_ns)
                continue;
            ends[r] = node->end > ends[r] ? node->end : ends[r];
            runs[r].covered = prof_add(runs[r].covered, prof_subtract(node->end, node->begin));
        }
    }
    for (size_t r = 0; r < made; r++)
        runs[r].end = ends[r] > runs[r].end ? ends[r] : runs[r].end;
    prof_map_free(&walk.launching);
    free(arrivals);
    free(ends);
    return made;
}

/* ---- the window ------------------------------------------------------------------------------ */

static int64_t overlap(struct run a, int64_t begin, int64_t end)
{
    int64_t from = a.begin > begin ? a.begin : begin, to = a.end < end ? a.end : end;
    return to > from ? to - from : 0;
}

/* Where the first and the last of the repeating things happen inside a range that repeats too, the
 * whole range belongs to it: its own start and end are part of the step. */
static void whole_ranges(struct prof_facts *f, const struct run *runs, size_t count)
{
    int64_t begin = f->begin, end = f->end;
    for (size_t i = 0; i < f->ranges.nodes.count; i++) {
        const struct prof_range_node *node = &f->ranges.nodes.data[i];
        bool head = node->begin <= f->begin && node->end > f->begin;
        bool tail = node->begin <= f->end && node->end > f->end;
        for (size_t r = 0; (head || tail) && r < count; r++) {
            if (runs[r].group != node->group || node->end > f->end_ns ||
                prof_subtract(node->end, node->begin) / 2 > runs[r].covered / runs[r].count)
                continue; /* another, or one that is not like the others: set-up */
            begin = head && node->begin < begin ? node->begin : begin;
            end = tail && node->end > end ? node->end : end;
        }
    }
    f->begin = begin > f->begin_ns ? begin : f->begin_ns; /* a range may be older than recording */
    f->end = end;
}

/* What compiles in its first quarter and never again was warming up until then. */
static void skip_compilation(struct prof_facts *f)
{
    int64_t quarter = f->begin + (f->end - f->begin) / 4, begin = f->begin;
    for (size_t i = 0; i < f->calls.count; i++) {
        const struct prof_call *call = &f->calls.data[i];
        bool builds = call->class_ == PROF_CALL_BUILD || call->class_ == PROF_CALL_GRAPH_MAKE;
        if (!builds || call->start < f->begin || call->start >= f->end)
            continue;
        if (call->start >= quarter)
            return;
        int64_t end = prof_add(call->start, call->duration);
        begin = end > begin && end < f->end ? end : begin;
    }
    f->begin = begin;
}

/* Operations asked for in the window belong to it to their end. */
static void whole_operations(struct prof_facts *f)
{
    int64_t end = f->end;
    for (enum prof_op_kind kind = PROF_OP_KERNEL; kind <= PROF_OP_GRAPH; kind++) {
        for (size_t i = 0; i < f->ops[kind].count; i++) {
            struct prof_op op = prof_facts_op(f, kind, i);
            int64_t asked = asked_at(&op);
            if (asked >= f->begin && asked <= f->end && op.start + op.duration > end)
                end = op.start + op.duration;
        }
    }
    f->end = end;
}

/* What comes before the first step and after the last is left out: the last iteration of a warm-up
 * under another name, say. Then what is told per step is a step's. */
static void only_steps(struct prof_facts *f, const struct run *step)
{
    f->begin = step->begin > f->begin ? step->begin : f->begin;
    f->end = step->end < f->end ? step->end : f->end;
    whole_operations(f);
}

/* How often it comes in the window, where it comes evenly. */
static int64_t times_in(const struct prof_facts *f, const struct run *run)
{
    int64_t length = run->end - run->begin;
    double part = (double)overlap(*run, f->begin, f->end) / (double)(length > 0 ? length : 1);
    return (int64_t)((double)run->count * part + 0.5);
}

/* The step: of the ranges that fill the window, the one with the fewest repetitions; of those with
 * as many, the longest. Without ranges, what is asked for least often. What comes less than twice
 * in the window repeats around it, not in it. */
static void count_steps(struct prof_facts *f, const struct run *runs, size_t count)
{
    int64_t length = f->end - f->begin;
    const struct run *step = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct run *run = &runs[i];
        if (overlap(*run, f->begin, f->end) < length / 10 * 8 || times_in(f, run) < 2)
            continue;
        bool named = run->group != PROF_NO_GROUP, has = step && step->group != PROF_NO_GROUP;
        if (!step || (named && !has) ||
            (named == has && (run->count < step->count ||
                              (run->count == step->count && run->covered > step->covered))))
            step = run;
    }
    if (!step)
        return;
    f->steps = times_in(f, step);
    if (step->group != PROF_NO_GROUP) {
        f->step_name = f->range_texts.list.data[step->group];
        only_steps(f, step);
    }
}

static void whole_run(struct prof_facts *f)
{
    f->begin = INT64_MAX;
    for (enum prof_op_kind kind = PROF_OP_KERNEL; kind <= PROF_OP_GRAPH; kind++) {
        for (size_t i = 0; i < f->ops[kind].count; i++) {
            struct prof_op op = prof_facts_op(f, kind, i);
            int64_t asked = asked_at(&op);
            f->begin = asked < f->begin ? asked : f->begin;
        }
    }
    if (f->begin == INT64_MAX)
        f->begin = f->begin_ns;
    f->end = f->begin;
}

void prof_facts_window(struct prof_facts *f)
{
    struct run runs[2 * CANDIDATES], best = {0};
    size_t shaped = shape_runs(f, runs), count = shaped + range_runs(f, runs + shaped);
    double most = 0;
    for (size_t i = 0; i < shaped; i++) {
        double weight = (double)(runs[i].end - runs[i].begin) * log2((double)runs[i].count);
        if (weight <= most)
            continue;
        most = weight;
        best = runs[i];
    }
    if (!best.count) {
        whole_run(f);
        f->end = f->end_ns;
        whole_operations(f);
        return;
    }
    f->begin = best.begin;
    f->end = best.end;
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < shaped; i++) {
            int64_t length = runs[i].end - runs[i].begin;
            if (overlap(runs[i], f->begin, f->end) * 2 < length || !length)
                continue;
            f->begin = runs[i].begin < f->begin ? runs[i].begin : f->begin;
            f->end = runs[i].end > f->end ? runs[i].end : f->end;
        }
    }
    whole_ranges(f, runs + shaped, count - shaped);
    skip_compilation(f);
    whole_operations(f);
    count_steps(f, runs, count);
}
