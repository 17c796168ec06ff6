/* prof_ranks: who takes part, what each did, and what they did together. */
#include <math.h>

#include "libprof/analysis/ranks/ranks.h"

/* ---- iterations of each rank ----------------------------------------------------------------- */

/* Those of the thread of its process that has most (facts/iterations.h), without warm-up, numbered
 * from 0. Only ranges show them: that the launches of two ranks have one period does not say which
 * of them belong together. */

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

static enum prof_status rank_iterations_read(struct rank_work *w, const struct prof_facts *facts,
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
    size_t low;
    PROF_FIND_FIRST(low, at, unit->iterations->count, unit->iterations->data[at].end > time);
    return low < unit->iterations->count && unit->iterations->data[low].begin <= time
               ? (int64_t)low
               : PROF_UNKNOWN;
}

/* ---- who takes part -------------------------------------------------------------------------- */

static void mark_kernels(struct rank_work *w)
{
    for (size_t i = 0; i < w->kernels.count; i++) {
        const struct rank_kernel *kernel = &w->kernels.data[i];
        size_t at = prof_index_of(&w->capture->processes, kernel->process);
        if (at == SIZE_MAX)
            continue;
        int64_t *device = &w->collective_device[at];
        w->takes_part[at] = true;
        *device = *device == 0 || *device == kernel->device ? kernel->device : PROF_SEVERAL;
    }
}

/* A launcher's variables are inherited by every child; what a rank does on a device, or with
 * others, is what makes it one: see unit_of in operations.c. */
static bool mark_processes(struct rank_work *w)
{
    size_t count = w->capture->processes.count;
    w->takes_part = calloc(count + 1, sizeof *w->takes_part);
    w->iterations = calloc(count + 1, sizeof *w->iterations);
    w->collective_device = calloc(count + 1, sizeof *w->collective_device);
    if (!w->takes_part || !w->iterations || !w->collective_device)
        return false;
    for (size_t i = 0; i < count; i++)
        w->takes_part[i] = w->capture->processes.data[i].rank != PROF_UNKNOWN;
    for (size_t i = 0; i < w->calls.count; i++) {
        size_t at = prof_index_of(&w->capture->processes, w->calls.data[i].process);
        if (at != SIZE_MAX)
            w->takes_part[at] = true;
    }
    mark_kernels(w);
    return true;
}

PROF_ORDER(by_unit_rank, struct rank_unit,
           PROF_COMPARE(x->rank == PROF_UNKNOWN, y->rank == PROF_UNKNOWN), PROF_ASCENDING(rank),
           PROF_ASCENDING(process), PROF_ASCENDING(device))

/* In order of rank, before anything but events and counts refers to units by number. */
static bool sort_units(struct rank_work *w)
{
    PROF_FREED uint32_t *place = calloc(w->units.count + 1, sizeof *place);
    if (!place)
        return false;
    for (size_t i = 0; i < w->units.count; i++)
        w->units.data[i].number = (uint32_t)i;
    prof_array_sort(&w->units, by_unit_rank);
    for (size_t i = 0; i < w->units.count; i++)
        place[w->units.data[i].number] = (uint32_t)i;
    for (size_t i = 0; i < w->events.count; i++)
        w->events.data[i].unit = place[w->events.data[i].unit];
    for (size_t i = 0; i < w->counts.count; i++)
        w->counts.data[i].unit = place[w->counts.data[i].unit];
    return true;
}

/* ---- clocks ---------------------------------------------------------------------------------- */

static bool see_part(void *user, sqlite3_stmt *row)
{
    struct rank_work *w = user;
    int64_t error = prof_column_int(row, 0);
    w->clock_unknown |= error == PROF_UNKNOWN;
    if (error > w->clock_error)
        w->clock_error = error;
    return true;
}

/* Times of one host are exact; those of several are as merging could bring them together. */
static enum prof_status read_merged_clocks(struct rank_work *w, struct prof_error *err)
{
    return prof_scan(
        w->capture,
        "SELECT clock_error FROM merged_part WHERE coalesce(boot_id, host) IS NOT (SELECT "
        "coalesce(boot_id, host) FROM merged_part ORDER BY id LIMIT 1)",
        see_part, w, err);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static double iteration_median(const struct prof_intervals *iterations)
{
    PROF_FREED int64_t *values = calloc(iterations->count + 1, sizeof *values);
    if (!values)
        prof_note(PROF_NOMEM);
    for (size_t i = 0; values && i < iterations->count; i++)
        values[i] = prof_subtract(iterations->data[i].end, iterations->data[i].begin);
    return values ? rank_median(values, iterations->count) : NAN;
}

static void fill_row(struct rank_work *w, const struct rank_unit *unit, struct prof_rank_row *row)
{
    const struct prof_process *process = prof_process(w->capture, unit->process);
    int64_t begin = unit->begin, end = unit->end;
    *row = unit->row; /* what causes.c and causes.c found */
    row->process = unit->process;
    row->device = unit->device;
    row->rank = unit->rank;
    row->host = process ? process->host : NULL;
    row->pid = process ? process->pid : PROF_UNKNOWN;
    row->begin_ns = begin;
    row->window_ns = prof_subtract(end, begin);
    row->iterations = (int64_t)unit->iterations->count;
    row->iteration_ns = iteration_median(unit->iterations);
    row->busy_ns = rank_cover_length(&unit->busy, begin, end);
    row->compute_ns = rank_cover_length(&unit->compute, begin, end);
    row->copy_ns = rank_cover_length(&unit->copies, begin, end);
    row->idle_ns = prof_subtract(row->window_ns, row->busy_ns);
    row->collective_ns = rank_cover_length(&unit->collectives, begin, end);
    row->exposed_ns = rank_cover_length(&unit->exposed, begin, end);
    row->wait_ns = rank_cover_length(&unit->waits, begin, end);
    row->kernels = unit->kernels;
    row->collective_share = prof_share(row->collective_ns, row->window_ns);
    row->exposed_share = prof_share(row->exposed_ns, row->window_ns);
    row->wait_share = prof_share(row->wait_ns, row->window_ns);
    row->idle_share = prof_share(row->idle_ns, row->window_ns);
}

static bool fill_rows(struct rank_work *w, struct prof_ranks *result)
{
    result->rows = calloc(w->units.count + 1, sizeof *result->rows);
    if (!result->rows)
        return false;
    result->count = w->units.count;
    int64_t most = 0;
    double sum = 0;
    for (size_t i = 0; i < w->units.count; i++) {
        fill_row(w, &w->units.data[i], &result->rows[i]);
        most = result->rows[i].compute_ns > most ? result->rows[i].compute_ns : most;
        sum += (double)result->rows[i].compute_ns;
    }
    for (size_t i = 0; i < w->events.count; i++)
        result->rows[w->events.data[i].unit].collectives++;
    result->imbalance =
        sum > 0 && result->count > 1 ? (double)most / (sum / (double)result->count) - 1 : NAN;
    return true;
}

static void fill_iteration(const struct rank_unit *unit, struct prof_rank_iteration *row)
{
    struct prof_interval range = unit->iterations->data[row->iteration];
    row->start_ns = range.begin;
    row->duration_ns = prof_subtract(range.end, range.begin);
    row->compute_ns = rank_cover_length(&unit->compute, range.begin, range.end);
    row->copy_ns = rank_cover_length(&unit->copies, range.begin, range.end);
    row->exposed_ns = rank_cover_length(&unit->exposed, range.begin, range.end);
    row->wait_ns = rank_cover_length(&unit->waits, range.begin, range.end);
    row->idle_ns =
        prof_subtract(row->duration_ns, rank_cover_length(&unit->busy, range.begin, range.end));
}

#define LEAST_UNEVEN 0.01 /* of an iteration: less between the ranks' waiting is no difference */

/* The others wait for the rank that waits least. */
static void mark_slowest(struct prof_rank_iteration *rows, size_t count)
{
    size_t least = 0, most = 0;
    for (size_t i = 1; i < count; i++) {
        least = rows[i].wait_ns < rows[least].wait_ns ? i : least;
        most = rows[i].wait_ns > rows[most].wait_ns ? i : most;
    }
    if (count > 1 && (double)prof_subtract(rows[most].wait_ns, rows[least].wait_ns) >
                         LEAST_UNEVEN * (double)rows[least].duration_ns)
        rows[least].slowest = true;
}

static bool fill_iterations(struct rank_work *w, struct prof_ranks *result)
{
    size_t total = 0, longest = 0;
    for (size_t i = 0; i < w->units.count; i++) {
        size_t count = w->units.data[i].iterations->count;
        total += count;
        longest = count > longest ? count : longest;
    }
    result->iteration_name = total ? w->iteration_name : NULL;
    result->iterations = calloc(total + 1, sizeof *result->iterations);
    for (size_t k = 0; result->iterations && k < longest; k++) {
        size_t first = result->iteration_count;
        for (uint32_t i = 0; i < w->units.count; i++) {
            if (k >= w->units.data[i].iterations->count)
                continue;
            struct prof_rank_iteration *row = &result->iterations[result->iteration_count++];
            row->rank = i;
            row->iteration = (int64_t)k;
            fill_iteration(&w->units.data[i], row);
        }
        mark_slowest(&result->iterations[first], result->iteration_count - first);
    }
    return result->iterations != NULL;
}

static void count_world(const struct rank_work *w, int64_t *world_size, int64_t *missing)
{
    int64_t here = 0, before = PROF_UNKNOWN;
    *world_size = *missing = PROF_UNKNOWN;
    for (size_t i = 0; i < w->capture->processes.count; i++) {
        int64_t size = w->capture->processes.data[i].world_size;
        if (size != PROF_UNKNOWN && size > *world_size)
            *world_size = size;
    }
    for (size_t i = 0; *world_size == PROF_UNKNOWN && i < w->calls.count; i++)
        if (w->calls.data[i].ranks > *world_size)
            *world_size = w->calls.data[i].ranks;
    for (size_t i = 0; i < w->units.count; i++) { /* in order of rank */
        here += w->units.data[i].rank != PROF_UNKNOWN && w->units.data[i].rank != before;
        before = w->units.data[i].rank;
    }
    if (*world_size != PROF_UNKNOWN && here > 0)
        *missing = *world_size > here ? *world_size - here : 0;
}

static bool fill_result(struct rank_work *w, struct prof_ranks *result)
{
    if (!rank_causes(w, result) || !rank_collectives(w, result) || !rank_links(w, result) ||
        !rank_differences(w, result) || !fill_rows(w, result) || !fill_iterations(w, result))
        return false;
    count_world(w, &result->world_size, &result->missing);
    for (size_t i = 0; i < w->events.count; i++)
        result->matched += w->events.data[i].wait != PROF_UNKNOWN;
    result->operations = (int64_t)w->events.count;
    result->why_unmatched = w->why_unmatched;
    result->calls_without_kernel = w->unserved;
    result->clock_error_ns = w->clock_unknown ? PROF_UNKNOWN : w->clock_error;
    return true;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool any_rank(const struct prof_capture *capture)
{
    bool any = false;
    for (size_t i = 0; i < capture->processes.count; i++)
        any |= capture->processes.data[i].rank != PROF_UNKNOWN;
    return any;
}

enum prof_status prof_ranks_present(struct prof_capture *capture, bool *present,
                                    struct prof_error *err)
{
    *present = any_rank(capture);
    for (size_t i = 0; !*present && i < capture->configs.count; i++)
        *present = prof_collective_kernel(capture->configs.data[i].name) != PROF_COLLECTIVE_NONE;
    return *present ? PROF_OK : rank_calls_exist(capture, present, err);
}

static void free_rank_work(struct rank_work *w)
{
    for (size_t i = 0; i < w->units.count; i++) {
        struct rank_unit *unit = &w->units.data[i];
        rank_cover_free(&unit->compute);
        rank_cover_free(&unit->copies);
        rank_cover_free(&unit->collectives);
        rank_cover_free(&unit->waits);
        rank_cover_free(&unit->exposed);
        rank_cover_free(&unit->busy);
    }
    for (size_t i = 0; w->iterations && i < w->capture->processes.count; i++)
        prof_array_free(&w->iterations[i]);
    prof_array_free(&w->calls);
    prof_array_free(&w->kernels);
    prof_array_free(&w->events);
    prof_array_free(&w->communicators);
    prof_map_free(&w->communicator_at);
    prof_array_free(&w->units);
    prof_map_free(&w->unit_at);
    free(w->takes_part);
    free(w->collective_device);
    free(w->iterations);
    free(w->config_operation);
    prof_array_free(&w->counts);
    prof_names_free(&w->count_at);
    prof_array_free(&w->members);
    prof_array_free(&w->sets);
    prof_array_free(&w->texts);
}

static enum prof_status read_rank_events(struct rank_work *w, const struct prof_facts *facts,
                                         struct prof_error *err)
{
    bool kernels;
    enum prof_status status = read_merged_clocks(w, err);
    status = status ?: rank_calls_read(w, err);
    if (!status && !rank_configs(w, &kernels))
        status = prof_out_of_memory(err);
    if (!status && (kernels || w->calls.count))
        status = rank_kernels_read(w, err);
    if (!status && !mark_processes(w))
        status = prof_out_of_memory(err);
    status = status ?: rank_iterations_read(w, facts, err);
    return status ?: rank_operations_read(w, err);
}

/* Operations of all ranks, matched. Close it in any case. */
static enum prof_status open_rank_work(struct rank_work *w, const struct prof_facts *facts,
                                       const struct prof_filter *filter, struct prof_error *err)
{
    *w = (struct rank_work){.capture = facts->capture};
    enum prof_status status = prof_scope_open(&w->scope, w->capture, filter, err);
    status = status ?: read_rank_events(w, facts, err);
    if (!status && (!rank_events_make(w) || !sort_units(w) || !rank_windows(w) || !rank_match(w)))
        status = prof_out_of_memory(err);
    return status;
}

static void close_rank_work(struct rank_work *w)
{
    prof_scope_close(&w->scope);
    free_rank_work(w);
}

static enum prof_status compute_ranks(const struct prof_facts *facts,
                                      const struct prof_filter *filter, struct prof_ranks *result,
                                      struct prof_error *err)
{
    struct rank_work w;
    enum prof_status status = open_rank_work(&w, facts, filter, err);
    status = status ?: rank_link_rates(&w, err);
    status = status ?: rank_ports(&w, result, err);
    if (!status && !fill_result(&w, result))
        status = prof_out_of_memory(err);
    close_rank_work(&w);
    if (status)
        prof_ranks_free(result);
    return status;
}

PROF_ORDER(by_part_start, struct prof_rank_part, PROF_ASCENDING(start), PROF_ASCENDING(stream))

enum prof_status prof_rank_parts_read(const struct prof_facts *facts,
                                      const struct prof_filter *filter,
                                      struct prof_rank_parts *parts, struct prof_error *err)
{
    struct rank_work w;
    bool present;
    *parts = (struct prof_rank_parts){0};
    PROF_TRY(prof_ranks_present(facts->capture, &present, err));
    if (!present)
        return PROF_OK;
    enum prof_status status = open_rank_work(&w, facts, filter, err);
    for (size_t i = 0; !status && !w.clock_unknown && i < w.events.count; i++) {
        const struct rank_event *event = &w.events.data[i];
        struct prof_rank_part part = {event->start, event->end, event->stream, event->thread,
                                      event->joined};
        if (event->joined && !prof_array_push(parts, part))
            status = prof_out_of_memory(err);
    }
    prof_array_sort(parts, by_part_start);
    count_world(&w, &parts->world_size, &parts->missing);
    parts->why_unmatched =
        w.clock_unknown ? "clocks of the hosts were not compared" : w.why_unmatched;
    close_rank_work(&w);
    return status;
}

uint32_t prof_rank_operation(const struct prof_rank_parts *parts, int64_t start, int64_t stream)
{
    const struct prof_rank_part sought = {.start = start, .stream = stream}, *found = NULL;
    if (parts->count)
        found = bsearch(&sought, parts->data, parts->count, sizeof sought, by_part_start);
    return found ? found->operation : 0;
}

enum prof_status prof_ranks_of(const struct prof_facts *facts, const struct prof_filter *filter,
                               struct prof_ranks *result, struct prof_error *err)
{
    bool present;
    *result =
        (struct prof_ranks){.world_size = PROF_UNKNOWN, .missing = PROF_UNKNOWN, .imbalance = NAN};
    enum prof_status status = prof_ranks_present(facts->capture, &present, err);
    return status || !present ? status : compute_ranks(facts, filter, result, err);
}

enum prof_status prof_ranks(struct prof_capture *capture, const struct prof_filter *filter,
                            struct prof_ranks *result, struct prof_error *err)
{
    struct prof_facts facts;
    bool present;
    *result =
        (struct prof_ranks){.world_size = PROF_UNKNOWN, .missing = PROF_UNKNOWN, .imbalance = NAN};
    enum prof_status status = prof_ranks_present(capture, &present, err);
    if (status || !present)
        return status;
    status = prof_facts_load(&facts, capture, filter, err);
    status = status ?: compute_ranks(&facts, filter, result, err);
    prof_facts_free(&facts);
    return status;
}

void prof_ranks_free(struct prof_ranks *result)
{
    free(result->rows);
    free(result->collectives);
    free(result->late);
    free(result->iterations);
    free(result->differences);
    free(result->links);
    free(result->ports);
    *result = (struct prof_ranks){0};
}
