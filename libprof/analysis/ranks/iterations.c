/* The iterations of each rank (facts/iterations.h): those of the thread of its process
 * that has most, without warm-up, numbered from 0. Only ranges tell them: that the launches of two
 * ranks have one period does not say which of them belong together. */
#include "libprof/analysis/ranks/private.h"

/* The stretch of the list that is of the process's busiest thread. */
static size_t busiest_thread(const struct rank_work *w, const struct prof_iterations *it,
                             int64_t process, size_t *count)
{
    size_t first = 0;
    *count = 0;
    for (size_t i = 0, end; i < it->list.count; i = end) {
        for (end = i; end < it->list.count && it->list.data[end].thread == it->list.data[i].thread;)
            end++;
        const struct prof_thread *thread = prof_thread(w->capture, it->list.data[i].thread);
        if (thread && thread->process == process && end - i > *count) {
            *count = end - i;
            first = i;
        }
    }
    return first;
}

static bool keep_process_iterations(const struct rank_work *w, const struct prof_iterations *it,
                                    int64_t process, struct prof_intervals *iterations)
{
    size_t count, first = busiest_thread(w, it, process, &count);
    if (!prof_array_reserve(iterations, count))
        return false;
    for (size_t i = first; i < first + count; i++) {
        if (it->list.data[i].steady)
            iterations->data[iterations->count++] =
                (struct prof_interval){it->list.data[i].begin, it->list.data[i].end};
    }
    return true;
}

enum prof_status rank_iterations_read(struct rank_work *w, const struct prof_facts *facts,
                                      struct prof_error *err)
{
    struct prof_iterations it;
    enum prof_status status = prof_iterations_find(&it, facts, false, err);
    w->iteration_name = it.name;
    for (size_t i = 0; !status && it.name && i < w->capture->processes.count; i++) {
        if (w->takes_part[i] &&
            !keep_process_iterations(w, &it, w->capture->processes.data[i].id, &w->iterations[i]))
            status = prof_out_of_memory(err);
    }
    prof_iterations_free(&it);
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
