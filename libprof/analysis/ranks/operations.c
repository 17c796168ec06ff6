/* What each rank's device did, as sets of intervals, and counts of what is exact. */
#include <math.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/ranks/ranks.h"

/* ---- sets with lengths ----------------------------------------------------------------------- */

bool rank_cover_finish(struct rank_cover *cover)
{
    prof_intervals_normalise(&cover->set);
    cover->before = prof_intervals_sums(&cover->set);
    return cover->before != NULL;
}

int64_t rank_cover_length(const struct rank_cover *cover, int64_t begin, int64_t end)
{
    return end > begin ? prof_subtract(prof_intervals_before(&cover->set, cover->before, end),
                                       prof_intervals_before(&cover->set, cover->before, begin))
                       : 0;
}

void rank_cover_free(struct rank_cover *cover)
{
    prof_array_free(&cover->set);
    free(cover->before);
    cover->before = NULL;
}

/* ---- units ----------------------------------------------------------------------------------- */

static struct rank_unit *unit_of(struct rank_work *w, int64_t process, int64_t device)
{
    bool fresh;
    size_t at = prof_index_of(&w->capture->processes, process);
    if (at == SIZE_MAX)
        return NULL;
    uint64_t key = prof_call_key(process, w->collective_device[at] == PROF_SEVERAL ? device : 0);
    uint32_t unit = prof_group_number(&w->unit_at, key, &fresh);
    if (unit == PROF_NO_GROUP || !prof_array_reserve(&w->units, 1))
        return NULL;
    if (fresh)
        w->units.data[w->units.count++] = (struct rank_unit){.process = process,
                                                             .device = device,
                                                             .rank = PROF_UNKNOWN,
                                                             .iterations = &w->iterations[at]};
    if (w->units.data[unit].device == 0)
        w->units.data[unit].device = device;
    return &w->units.data[unit];
}

/* The first unit of a process, for what happens on the host; one without a device when it has none.
 */
static struct rank_unit *host_unit(struct rank_work *w, int64_t process)
{
    for (size_t i = 0; i < w->units.count; i++)
        if (w->units.data[i].process == process)
            return &w->units.data[i];
    return unit_of(w, process, 0);
}

static bool append_rank_interval(struct prof_intervals *set, int64_t begin, int64_t end)
{
    return prof_array_push(set, (struct prof_interval){begin, end});
}

static bool count_add(struct rank_work *w, struct rank_count count)
{
    struct {
        int64_t key, key2;
        uint32_t unit, kind;
    } text = {count.key, count.key2, count.unit, count.kind};
    const uint32_t *at = prof_names_get(&w->count_at, (const char *)&text, sizeof text);
    if (at) {
        struct rank_count *known = &w->counts.data[*at];
        known->count = prof_add(known->count, count.count);
        known->sum_ns = prof_add(known->sum_ns, count.sum_ns);
        return true;
    }
    return prof_array_push(&w->counts, count) &&
           prof_names_put(&w->count_at, (const char *)&text, sizeof text,
                          (uint32_t)(w->counts.count - 1));
}

/* Is it of the iterations, by the moment at which it was launched? Everything is without them. */
static bool in_iterations(const struct rank_unit *unit, int64_t time)
{
    const struct prof_intervals *all = unit->iterations;
    return !all->count || (time >= all->data[0].begin && time < all->data[all->count - 1].end);
}

static bool count_operation(struct rank_work *w, const struct rank_unit *unit,
                            const struct prof_event_row *op)
{
    uint32_t number = (uint32_t)(unit - w->units.data);
    if (!in_iterations(unit, op->call_ns == PROF_UNKNOWN ? op->start_ns : op->call_ns))
        return true;
    struct rank_count count = {.unit = number};
    if (op->kind == PROF_OP_KERNEL) {
        count.kind = PROF_DIFFERS_LAUNCHES;
        count.key = op->config;
        count.count = 1;
        count.sum_ns = op->duration_ns;
    } else if (op->kind == PROF_OP_TRANSFER && op->bytes != PROF_UNKNOWN) {
        count.kind = PROF_DIFFERS_COPIED;
        count.key = op->copy_kind;
        count.count = op->bytes;
    } else {
        return true;
    }
    return count_add(w, count);
}

static bool see_operation(void *user, const struct prof_event_row *op)
{
    struct rank_work *w = user;
    const struct prof_stream *stream = prof_stream(w->capture, op->stream);
    size_t process = stream ? prof_index_of(&w->capture->processes, stream->process) : SIZE_MAX;
    if (process == SIZE_MAX || !w->takes_part[process] || op->start_ns == PROF_UNKNOWN ||
        op->duration_ns == PROF_UNKNOWN || op->duration_ns < 0)
        return true;
    struct rank_unit *unit = unit_of(w, stream->process, stream->device);
    if (!unit)
        return false;
    bool kernel = op->kind == PROF_OP_KERNEL || op->kind == PROF_OP_GRAPH;
    size_t config =
        op->kind == PROF_OP_KERNEL ? prof_config_index(w->capture, op->config) : SIZE_MAX;
    unit->kernels += kernel;
    if (config != SIZE_MAX && w->config_operation[config])
        return true; /* kernels.c has it */
    return append_rank_interval(kernel ? &unit->compute.set : &unit->copies.set, op->start_ns,
                                prof_add(op->start_ns, op->duration_ns)) &&
           count_operation(w, unit, op);
}

enum prof_status rank_operations_read(struct rank_work *w, struct prof_error *err)
{
    struct prof_event_query query = {.tables = PROF_OPS_DEVICE,
                                     .fields = PROF_FIELD(START) | PROF_FIELD(DURATION) |
                                               PROF_FIELD(STREAM) | PROF_FIELD(CONFIG) |
                                               PROF_FIELD(BYTES) | PROF_FIELD(COPY_KIND) |
                                               PROF_FIELD(LAUNCH),
                                     .scope = &w->scope};
    return prof_event_rows(w->capture, &query, see_operation, w, err);
}

/* ---- collectives ----------------------------------------------------------------------------- */

static uint32_t communicator_of(struct rank_work *w, uint64_t number)
{
    bool fresh;
    uint32_t at = prof_group_number(&w->communicator_at, number, &fresh);
    if (at == PROF_NO_GROUP || !prof_array_reserve(&w->communicators, 1))
        return PROF_NO_GROUP;
    if (fresh)
        w->communicators.data[w->communicators.count++] =
            (struct rank_communicator){number, PROF_UNKNOWN, NAN};
    return at;
}

static bool add_rank_event(struct rank_work *w, struct rank_unit *unit, struct rank_event event)
{
    if (!unit)
        return false;
    event.unit = (uint32_t)(unit - w->units.data);
    event.communicator = communicator_of(w, event.said.communicator);
    event.sequence = event.wait = PROF_UNKNOWN;
    if (event.communicator == PROF_NO_GROUP || !prof_array_reserve(&w->events, 1))
        return false;
    w->events.data[w->events.count++] = event;
    struct rank_count count = {.kind = PROF_DIFFERS_COLLECTIVES,
                               .key = event.said.operation,
                               .key2 = event.said.message,
                               .unit = event.unit,
                               .count = 1};
    return append_rank_interval(&unit->collectives.set, event.start, event.end) &&
           (!in_iterations(unit, event.call) || count_add(w, count));
}

static bool kernel_events(struct rank_work *w)
{
    bool ok = true;
    for (size_t i = 0; ok && i < w->kernels.count; i++) {
        const struct rank_kernel *kernel = &w->kernels.data[i];
        struct rank_event event = {.start = kernel->start,
                                   .end = kernel->end,
                                   .call =
                                       kernel->call == PROF_UNKNOWN ? kernel->start : kernel->call,
                                   .stream = kernel->stream,
                                   .thread = kernel->thread,
                                   .in_graph = kernel->node != PROF_UNKNOWN,
                                   .said = kernel->said};
        ok = add_rank_event(w, unit_of(w, kernel->process, kernel->device), event);
    }
    return ok;
}

static bool host_events(struct rank_work *w)
{
    bool ok = true;
    int64_t process = 0; /* of the call before, and its unit: a thread's calls stand together */
    size_t unit = 0;
    for (size_t i = 0; ok && i < w->calls.count; i++) {
        const struct rank_call *call = &w->calls.data[i];
        if (!call->on_host || call->end == INT64_MAX)
            continue;
        if (call->process != process) {
            struct rank_unit *found = host_unit(w, call->process);
            if (!found)
                return false;
            unit = (size_t)(found - w->units.data);
            process = call->process;
        }
        struct rank_event event = {.start = call->start,
                                   .end = call->end,
                                   .call = call->start,
                                   .thread = call->thread,
                                   .said = {call->operation, 1, call->bytes, call->bytes,
                                            call->peer, call->communicator, call->reduction}};
        ok = add_rank_event(w, &w->units.data[unit], event);
    }
    return ok;
}

/* As the launchers said it to the processes. */
static int64_t world_of(const struct prof_capture *capture)
{
    int64_t world = PROF_UNKNOWN;
    for (size_t i = 0; i < capture->processes.count; i++) {
        int64_t size = capture->processes.data[i].world_size;
        world = size > 0 && size > world ? size : world;
    }
    return world;
}

/* What a communicator's ranks were when it was made. NCCL before 2.23 does not say which it is;
 * where none was made (MPI, the program's own), it is all ranks. */
static bool communicator_sizes(struct rank_work *w)
{
    int64_t unknown = PROF_UNKNOWN;
    bool several = false;
    for (size_t i = 0; i < w->calls.count; i++) {
        const struct rank_call *call = &w->calls.data[i];
        if (call->kind != RANK_CALL_INIT || call->ranks == PROF_UNKNOWN)
            continue;
        uint32_t at = communicator_of(w, call->communicator);
        if (at == PROF_NO_GROUP)
            return false;
        if (call->communicator)
            w->communicators.data[at].ranks = call->ranks;
        several |= unknown != PROF_UNKNOWN && unknown != call->ranks;
        unknown = call->ranks;
    }
    uint32_t none = communicator_of(w, 0);
    if (none == PROF_NO_GROUP)
        return false;
    if (unknown == PROF_UNKNOWN)
        unknown = world_of(w->capture);
    w->communicators.data[none].ranks = several ? PROF_UNKNOWN : unknown;
    return true;
}

static size_t process_unit_count(const struct rank_work *w, int64_t process)
{
    size_t count = 0;
    for (size_t i = 0; i < w->units.count; i++)
        count += w->units.data[i].process == process;
    return count;
}

/* The launcher's word; for several devices of a process, and without a launcher, NCCL's: of the
 * largest communicator that the device was given. */
static void name_unit(const struct rank_work *w, struct rank_unit *unit)
{
    const struct prof_process *process = prof_process(w->capture, unit->process);
    const struct prof_device *device = prof_device(w->capture, unit->device);
    bool alone = process_unit_count(w, unit->process) == 1;
    int64_t largest = 0;
    unit->rank = process && alone ? process->rank : PROF_UNKNOWN;
    for (size_t i = 0; unit->rank == PROF_UNKNOWN && i < w->calls.count; i++) {
        const struct rank_call *call = &w->calls.data[i];
        if (call->kind != RANK_CALL_INIT || call->process != unit->process ||
            call->ranks <= largest || (!alone && (!device || device->ordinal != call->device)))
            continue;
        largest = call->ranks;
        unit->row.rank = call->rank;
    }
    if (unit->rank == PROF_UNKNOWN && largest > 0)
        unit->rank = unit->row.rank;
}

bool rank_events_make(struct rank_work *w)
{
    if (!kernel_events(w) || !host_events(w) || !communicator_sizes(w))
        return false;
    for (size_t i = 0; i < w->units.count; i++)
        name_unit(w, &w->units.data[i]);
    return true;
}

/* ---- windows --------------------------------------------------------------------------------- */

static void widen_span(const struct prof_intervals *set, struct prof_interval *span)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->data[i].begin < span->begin)
            span->begin = set->data[i].begin;
        if (set->data[i].end > span->end)
            span->end = set->data[i].end;
    }
}

/* The copies that no kernel covers, the collectives likewise, and everything at once. */
static bool finish_sets(struct rank_unit *unit)
{
    PROF_FREED struct prof_intervals idle = {0}, copies = {0}, work = {0};
    struct prof_interval all = {INT64_MIN, INT64_MAX};
    prof_intervals_normalise(&unit->copies.set);
    bool ok = rank_cover_finish(&unit->compute) && rank_cover_finish(&unit->collectives) &&
              prof_intervals_gaps(&unit->compute.set, all, &idle) &&
              prof_intervals_intersection(&unit->copies.set, &idle, &copies) &&
              prof_intervals_intersection(&unit->collectives.set, &idle, &unit->exposed.set) &&
              prof_intervals_union(&unit->compute.set, &copies, &work) &&
              prof_intervals_union(&work, &unit->collectives.set, &unit->busy.set);
    prof_array_free(&unit->copies.set);
    return ok && prof_intervals_union(&copies, &(struct prof_intervals){0}, &unit->copies.set) &&
           rank_cover_finish(&unit->copies) && rank_cover_finish(&unit->exposed) &&
           rank_cover_finish(&unit->busy);
}

bool rank_windows(struct rank_work *w)
{
    struct prof_interval span = {INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < w->units.count; i++) {
        widen_span(&w->units.data[i].compute.set, &span);
        widen_span(&w->units.data[i].copies.set, &span);
        widen_span(&w->units.data[i].collectives.set, &span);
    }
    for (size_t i = 0; i < w->units.count; i++) {
        struct rank_unit *unit = &w->units.data[i];
        const struct prof_intervals *steps = unit->iterations;
        unit->begin = steps->count ? steps->data[0].begin : span.begin;
        unit->end = steps->count ? steps->data[steps->count - 1].end : span.end;
        if (unit->end < unit->begin)
            unit->begin = unit->end = 0;
        if (!finish_sets(unit))
            return false;
    }
    return true;
}
