/* The NVTX range that repeats on every rank: the steps of a training, mostly. One called "step"
 * comes first; else the one that takes the longest time together. Its instances on a rank are those
 * of the thread that has most, apart from each other, and are numbered from 0. */
#include "libprof/analysis/ranks/private.h"

#define LEAST_REPEATED 3

struct candidate {
    int64_t process, count, sum;
    uint32_t text;
};

struct search {
    struct rank_work *w;
    struct prof_texts texts;
    PROF_ARRAY(struct candidate) list;
    uint32_t chosen;
    PROF_ARRAY(struct rank_call) found; /* only start, end, thread, process */
};

static bool is_step(const char *name)
{
    return name && prof_collective_range(NULL, name) == PROF_COLLECTIVE_NONE;
}

static bool add_candidate(void *user, sqlite3_stmt *row)
{
    struct search *s = user;
    const struct prof_thread *thread = prof_thread(s->w->capture, prof_column_id(row, 1));
    uint32_t text = prof_texts_number(&s->texts, s->w->capture, prof_column_id(row, 0));
    if (text == PROF_NO_GROUP || !prof_array_reserve(&s->list, 1))
        return false;
    if (thread && is_step(s->texts.list.data[text]))
        s->list.data[s->list.count++] = (struct candidate){.process = thread->process,
                                                           .count = prof_column_int(row, 2),
                                                           .sum = prof_column_int(row, 3),
                                                           .text = text};
    return true;
}

static int by_text_and_process(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->text != y->text)
        return x->text < y->text ? -1 : 1;
    return (x->process > y->process) - (x->process < y->process);
}

static bool takes_part(const struct rank_work *w, int64_t process)
{
    size_t at = prof_index_of(&w->capture->processes, process);
    return at != SIZE_MAX && w->takes_part[at];
}

/* Processes that take part and have ranges at all. */
static size_t processes_with_ranges(const struct search *s, bool *seen)
{
    size_t processes = 0;
    for (size_t i = 0; i < s->list.count; i++) {
        size_t at = prof_index_of(&s->w->capture->processes, s->list.data[i].process);
        processes += at != SIZE_MAX && s->w->takes_part[at] && !seen[at];
        if (at != SIZE_MAX)
            seen[at] = true;
    }
    return processes;
}

/* Of the candidates from `first` on, those of one text: how many processes have it often enough on
 * one thread, and the time in all of them. Returns the next text's first. */
static size_t sum_text(const struct search *s, size_t first, size_t *processes, int64_t *sum)
{
    size_t i = first;
    int64_t counted = 0; /* the last process that was counted; candidates of one stand together */
    *processes = 0;
    *sum = 0;
    for (; i < s->list.count && s->list.data[i].text == s->list.data[first].text; i++) {
        const struct candidate *c = &s->list.data[i];
        if (!takes_part(s->w, c->process))
            continue;
        *sum = prof_add(*sum, c->sum);
        if (c->count >= LEAST_REPEATED && c->process != counted) {
            ++*processes;
            counted = c->process;
        }
    }
    return i;
}

/* Every process that has ranges must have it. */
static bool choose(struct search *s)
{
    bool *seen = calloc(s->w->capture->processes.count + 1, sizeof *seen);
    if (!seen)
        return false;
    size_t all = processes_with_ranges(s, seen);
    int64_t longest = -1;
    free(seen);
    if (s->list.count)
        qsort(s->list.data, s->list.count, sizeof *s->list.data, by_text_and_process);
    s->chosen = PROF_NO_GROUP;
    for (size_t i = 0; all && i < s->list.count;) {
        uint32_t text = s->list.data[i].text;
        size_t processes;
        int64_t sum;
        i = sum_text(s, i, &processes, &sum);
        if (processes < all)
            continue;
        if (strcmp(s->texts.list.data[text], "step") == 0)
            sum = INT64_MAX;
        if (sum > longest) {
            longest = sum;
            s->chosen = text;
        }
    }
    return true;
}

static bool add_instance(void *user, sqlite3_stmt *row)
{
    struct search *s = user;
    int64_t start = prof_column_int(row, 0), duration = prof_column_size(row, 1);
    const struct prof_thread *thread = prof_thread(s->w->capture, prof_column_id(row, 2));
    uint32_t text = prof_texts_number(&s->texts, s->w->capture, prof_column_id(row, 3));
    if (text == PROF_NO_GROUP || !prof_array_reserve(&s->found, 1))
        return false;
    if (thread && text == s->chosen && start != PROF_UNKNOWN && duration > 0 &&
        prof_scope_time(&s->w->scope, start) &&
        prof_scope_place(&s->w->scope, 0, thread->id, thread->process, 0))
        s->found.data[s->found.count++] = (struct rank_call){.start = start,
                                                             .end = prof_add(start, duration),
                                                             .thread = thread->id,
                                                             .process = thread->process};
    return true;
}

static int by_thread_and_start(const void *a, const void *b)
{
    const struct rank_call *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->start > y->start) - (x->start < y->start);
}

/* The stretch of `found` that is of the process's busiest thread. */
static size_t busiest_thread(const struct search *s, int64_t process, size_t *count)
{
    size_t first = 0;
    *count = 0;
    for (size_t i = 0; i < s->found.count;) {
        size_t end = i;
        while (end < s->found.count && s->found.data[end].thread == s->found.data[i].thread)
            end++;
        if (s->found.data[i].process == process && end - i > *count) {
            *count = end - i;
            first = i;
        }
        i = end;
    }
    return first;
}

static bool keep(const struct search *s, int64_t process, struct prof_intervals *iterations)
{
    size_t count, first = busiest_thread(s, process, &count);
    if (!prof_array_reserve(iterations, count))
        return false;
    for (size_t i = first; i < first + count; i++) {
        const struct rank_call *range = &s->found.data[i];
        size_t have = iterations->count;
        if (have && range->start < iterations->data[have - 1].end)
            continue; /* inside another of its name */
        iterations->data[iterations->count++] = (struct prof_interval){range->start, range->end};
    }
    return true;
}

/* Ranges that a library puts around its own calls, and those that declare work, are no steps. */
#define SELECTED                                                                                   \
    "FROM range WHERE duration NOT NULL AND (domain IS NULL OR domain NOT IN (SELECT id FROM "     \
    "string WHERE value IN ('NCCL', 'perfkit', 'perfkit.collective')))"

enum prof_status rank_iterations_read(struct rank_work *w, struct prof_error *err)
{
    struct search s = {.w = w};
    enum prof_status status =
        prof_scan(w->capture,
                  "SELECT name, thread, count(*), "
                  "CAST(min(total(duration), 9e18) AS INTEGER) " SELECTED " GROUP BY 1, 2",
                  add_candidate, &s, err);
    if (!status && !choose(&s))
        status = prof_out_of_memory(err);
    if (!status && s.chosen != PROF_NO_GROUP) {
        w->iteration_name = s.texts.list.data[s.chosen];
        status = prof_scan(w->capture, "SELECT start, duration, thread, name " SELECTED,
                           add_instance, &s, err);
    }
    if (s.found.count)
        qsort(s.found.data, s.found.count, sizeof *s.found.data, by_thread_and_start);
    for (size_t i = 0; !status && i < w->capture->processes.count; i++) {
        if (w->takes_part[i] && !keep(&s, w->capture->processes.data[i].id, &w->iterations[i]))
            status = prof_out_of_memory(err);
    }
    prof_texts_free(&s.texts);
    prof_array_free(&s.list);
    prof_array_free(&s.found);
    return status;
}

int64_t rank_iteration_at(const struct rank_unit *unit, int64_t time)
{
    size_t low = 0, high = unit->iterations->count;
    while (low < high) { /* the first that ends after it */
        size_t middle = low + (high - low) / 2;
        if (unit->iterations->data[middle].end <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return low < unit->iterations->count && unit->iterations->data[low].begin <= time
               ? (int64_t)low
               : PROF_UNKNOWN;
}
