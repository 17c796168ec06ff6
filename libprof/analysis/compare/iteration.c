/* Choosing the iteration; see iteration.h. A comparison per iteration is right for runs of
 * different length too, and what happens once, outside, is told apart from what happens again and
 * again. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/compare/iteration.h"
#include "libprof/base/saturate.h"

#define LEAST_REPEATED 3
#define DECLARED_DOMAIN "perfkit" /* of perfkit/annotate.h */
#define LEAST_TO_SKIP 4           /* of so many iterations the first may be left out */

bool prof_lane_declares_work(const struct prof_facts *f, const struct prof_range_lane *lane)
{
    const char *domain = prof_string(f->capture, lane->domain, NULL);
    return domain && !strcmp(domain, DECLARED_DOMAIN);
}

static bool is_instance(const struct prof_facts *f, const struct prof_range_node *node)
{
    return node->begin >= f->begin_ns && node->end <= f->end_ns;
}

/* Inside a range of its own name: counted with that. */
static bool is_nested(const struct prof_facts *f, const struct prof_range_node *node)
{
    const struct prof_range_node *nodes = f->ranges.nodes.data;
    for (uint32_t up = node->parent; up != PROF_NO_RANGE; up = nodes[up].parent) {
        if (nodes[up].group == node->group)
            return true;
    }
    return false;
}

/* ---- which range ------------------------------------------------------------------------------
 */

struct total {
    int64_t count, sum_ns;
};

static uint32_t group_named(const struct prof_facts *f, const char *name,
                            const struct total *totals)
{
    for (uint32_t g = 0; g < f->range_texts.list.count; g++) {
        const char *text = f->range_texts.list.data[g];
        if (text && !strcmp(text, name) && totals[g].count)
            return g;
    }
    return PROF_NO_GROUP;
}

/* The name whose ranges take the longest time together; of two that take as long, the one that was
 * seen first, which is the outer one. */
static uint32_t longest_repeating(const struct prof_facts *f, const struct total *totals)
{
    uint32_t best = PROF_NO_GROUP;
    for (uint32_t g = 0; g < f->range_texts.list.count; g++) {
        if (totals[g].count < LEAST_REPEATED || !f->range_texts.list.data[g])
            continue;
        if (best == PROF_NO_GROUP || totals[g].sum_ns > totals[best].sum_ns)
            best = g;
    }
    return best;
}

static void sum_lane(const struct prof_facts *f, const struct prof_range_lane *lane,
                     struct total *totals)
{
    for (size_t i = 0; i < lane->count; i++) {
        const struct prof_range_node *node = &f->ranges.nodes.data[lane->nodes[i]];
        if (!is_instance(f, node) || is_nested(f, node))
            continue;
        struct total *total = &totals[node->group];
        total->count++;
        total->sum_ns = prof_add(total->sum_ns, prof_subtract(node->end, node->begin));
    }
}

static struct total *sum_groups(const struct prof_facts *f)
{
    struct total *totals = calloc(f->range_texts.list.count + 1, sizeof *totals);
    for (size_t t = 0; totals && t < f->ranges.threads.count; t++) {
        const struct prof_range_thread *thread = &f->ranges.threads.data[t];
        for (size_t l = 0; l < thread->lanes.count; l++) {
            if (!prof_lane_declares_work(f, &thread->lanes.data[l]))
                sum_lane(f, &thread->lanes.data[l], totals);
        }
    }
    return totals;
}

static enum prof_status choose(struct prof_iterations *it, const struct prof_facts *f,
                               const char *asked, struct prof_error *err)
{
    struct total *totals = sum_groups(f);
    if (!totals)
        return prof_out_of_memory(err);
    it->source = PROF_ITERATION_ASKED;
    it->group = group_named(f, asked ? asked : "step", totals);
    if (!asked) {
        it->source = PROF_ITERATION_STEP;
        if (it->group == PROF_NO_GROUP) {
            it->source = PROF_ITERATION_REPEATING;
            it->group = longest_repeating(f, totals);
        }
        if (it->group == PROF_NO_GROUP)
            it->source = PROF_ITERATION_RUN;
    }
    free(totals);
    if (asked && it->group == PROF_NO_GROUP)
        return prof_fail(err, PROF_NOTFOUND,
                         "no NVTX range is called '%.80s': see the ranges with perfkit report",
                         asked);
    it->name = it->group == PROF_NO_GROUP ? NULL : f->range_texts.list.data[it->group];
    return PROF_OK;
}

/* ---- its instances ----------------------------------------------------------------------------
 */

static bool add_instances(struct prof_iterations *it, const struct prof_facts *f, uint32_t thread)
{
    const struct prof_range_thread *t = &f->ranges.threads.data[thread];
    for (size_t l = 0; l < t->lanes.count; l++) {
        if (prof_lane_declares_work(f, &t->lanes.data[l]))
            continue;
        for (size_t i = 0; i < t->lanes.data[l].count; i++) {
            const struct prof_range_node *node = &f->ranges.nodes.data[t->lanes.data[l].nodes[i]];
            if (node->group != it->group || !is_instance(f, node) || is_nested(f, node))
                continue;
            struct prof_iteration *slot = prof_array_add(&it->list);
            if (!slot)
                return false;
            *slot = (struct prof_iteration){
                .begin = node->begin, .end = node->end, .thread = thread, .covered = INT64_MIN};
        }
    }
    return true;
}

static int by_thread_and_begin(const void *a, const void *b)
{
    const struct prof_iteration *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Ranges of the name in two lanes of a thread may cross: the one that begins later goes. */
static void drop_crossing(struct prof_iterations *it)
{
    size_t kept = 0;
    for (size_t i = 0; i < it->list.count; i++) {
        const struct prof_iteration *one = &it->list.data[i];
        const struct prof_iteration *last = kept ? &it->list.data[kept - 1] : NULL;
        if (!last || last->thread != one->thread || one->begin >= last->end)
            it->list.data[kept++] = *one;
    }
    it->list.count = kept;
}

/* The instances [from, to) are one thread's. */
static bool take_thread(struct prof_iterations *it, int64_t thread, size_t from, size_t to,
                        int64_t skip)
{
    int64_t count = (int64_t)(to - from);
    if (skip == PROF_UNKNOWN)
        skip = count >= LEAST_TO_SKIP ? 1 : 0;
    if (skip >= count)
        skip = count - 1;
    if (skip < 0)
        skip = 0;
    for (size_t i = from; i < to; i++)
        it->list.data[i].steady = (int64_t)(i - from) >= skip;
    it->skipped += skip;
    it->steady += count - skip;
    if (to - from > it->main_end - it->main_begin) {
        it->main_begin = from;
        it->main_end = to;
    }
    return prof_map_put(&it->of_thread, (uint64_t)thread, (uint64_t)from << 32 | (to - from));
}

static bool find_instances(struct prof_iterations *it, const struct prof_facts *f, int64_t skip)
{
    for (uint32_t t = 0; t < f->ranges.threads.count; t++) {
        if (!add_instances(it, f, t))
            return false;
    }
    if (it->list.count)
        qsort(it->list.data, it->list.count, sizeof *it->list.data, by_thread_and_begin);
    drop_crossing(it);
    for (size_t from = 0, to; from < it->list.count; from = to) {
        uint32_t thread = it->list.data[from].thread;
        for (to = from; to < it->list.count && it->list.data[to].thread == thread;)
            to++;
        if (!take_thread(it, f->ranges.threads.data[thread].thread, from, to, skip))
            return false;
    }
    return true;
}

static bool take_run(struct prof_iterations *it, const struct prof_facts *f)
{
    struct prof_iteration *slot = prof_array_add(&it->list);
    if (!slot)
        return false;
    *slot = (struct prof_iteration){.begin = f->begin_ns,
                                    .end = f->end_ns > f->begin_ns ? f->end_ns : f->begin_ns + 1,
                                    .steady = true,
                                    .covered = INT64_MIN};
    it->main_end = 1;
    it->steady = 1;
    return true;
}

enum prof_status prof_iterations_find(struct prof_iterations *it, const struct prof_facts *facts,
                                      const struct prof_run_options *options,
                                      struct prof_error *err)
{
    *it = (struct prof_iterations){.group = PROF_NO_GROUP};
    enum prof_status status = choose(it, facts, options ? options->iteration : NULL, err);
    if (status)
        return status;
    bool ok = it->source == PROF_ITERATION_RUN
                  ? take_run(it, facts)
                  : find_instances(it, facts, options ? options->skip : PROF_UNKNOWN);
    return ok ? PROF_OK : prof_out_of_memory(err);
}

/* False: one has no time of its own. */
static bool time_to_completion(struct prof_iterations *it)
{
    int64_t done = INT64_MIN;
    for (size_t i = 0; i < it->list.count; i++) {
        struct prof_iteration *one = &it->list.data[i];
        if (i && one->thread != it->list.data[i - 1].thread)
            done = INT64_MIN;
        int64_t from = one->begin > done ? one->begin : done;
        int64_t to = one->end > one->covered ? one->end : one->covered;
        if (to <= from && one->steady)
            return false;
        one->time_ns = prof_subtract(to, from);
        done = to > done ? to : done;
    }
    return true;
}

void prof_iterations_time(struct prof_iterations *it)
{
    if (time_to_completion(it))
        return;
    for (size_t i = 0; i < it->list.count; i++)
        it->list.data[i].time_ns = prof_subtract(it->list.data[i].end, it->list.data[i].begin);
}

void prof_iterations_free(struct prof_iterations *it)
{
    prof_array_free(&it->list);
    prof_map_free(&it->of_thread);
}

size_t prof_iteration_at(const struct prof_iterations *it, int64_t thread, int64_t time)
{
    uint64_t *own = it->of_thread.count ? prof_map_get(&it->of_thread, (uint64_t)thread) : NULL;
    size_t low = own ? (size_t)(*own >> 32) : it->main_begin;
    size_t high = own ? low + (size_t)(uint32_t)*own : it->main_end, first = low;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (it->list.data[middle].begin <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return low > first && time < it->list.data[low - 1].end ? low - 1 : PROF_NO_ITERATION;
}
