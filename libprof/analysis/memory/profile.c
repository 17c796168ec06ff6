/* Who allocates: every allocation goes to its call path and its kind of memory, which then knows
 * what is live at its peak, what it never frees, and what it frees at once. heaptrack's questions,
 * for the memory of GPUs. */
#include <math.h>
#include <stdlib.h>

#include "libprof/analysis/memory/profile.h"
#include "libprof/base/saturate.h"
#include "libprof/wire/memory.h"

bool memory_on_host(int kind)
{
    return kind == WIRE_MEMORY_PINNED || kind == WIRE_MEMORY_PAGEABLE;
}

/* ---- places and sites ------------------------------------------------------------------------ */

static uint32_t memory_place_number(struct memory_work *w, int64_t device, bool host, int kind)
{
    bool fresh;
    uint64_t key = prof_map_mix(prof_map_mix((uint64_t)device, host), kind + 1);
    uint32_t number = prof_group_number(&w->place_index, key, &fresh);
    if (number == PROF_NO_GROUP || !fresh)
        return number;
    struct memory_place *place = prof_array_add(&w->places);
    if (!place)
        return PROF_NO_GROUP;
    const struct prof_device *its = host ? NULL : prof_device(w->capture, device);
    *place = (struct memory_place){
        .all = number,
        .row = {.device = device,
                .host = host,
                .kind = kind,
                .kind_text = kind < 0 ? "all" : prof_memory_kind_text(kind),
                .use.brief_call_ns = PROF_UNKNOWN,
                .peak_ns = PROF_UNKNOWN,
                .peak_bytes = PROF_UNKNOWN,
                .capacity_bytes = its ? its->memory_bytes : PROF_UNKNOWN,
                .growth_bytes = NAN},
    };
    return number;
}

uint32_t memory_site_of(struct memory_work *w, uint32_t node, int64_t device, int kind)
{
    bool fresh, host = memory_on_host(kind);
    device = host ? 0 : device;
    uint64_t key = prof_map_mix(prof_map_mix(node, device), kind);
    uint32_t number = prof_group_number(&w->site_index, key, &fresh);
    if (number == PROF_NO_GROUP || !fresh)
        return number;
    uint32_t all = memory_place_number(w, device, host, -1),
             its = memory_place_number(w, device, host, kind);
    struct memory_site *site =
        all == PROF_NO_GROUP || its == PROF_NO_GROUP ? NULL : prof_array_add(&w->sites);
    if (!site)
        return PROF_NO_GROUP;
    w->places.data[its].all = all;
    *site = (struct memory_site){
        .place = all,
        .kind_place = its,
        .row = {.node = node,
                .device = device,
                .host = host,
                .kind = kind,
                .kind_text = prof_memory_kind_text(kind),
                .use.brief_call_ns = PROF_UNKNOWN,
                .growth_bytes = NAN,
                .held_share = NAN},
    };
    return number;
}

#define NESTED 8 /* calls within one, at most */

/* ---- the calls that allocate and free -------------------------------------------------------- */

/* How many of the calls, in order, began until then. */
static size_t begun(const struct prof_call *calls, size_t count, int64_t time)
{
    size_t low;
    PROF_FIND_FIRST(low, at, count, calls[at].start > time);
    return low;
}

const struct prof_call *memory_call_before(const struct prof_facts *f, uint32_t thread,
                                           int64_t time)
{
    size_t count;
    const struct prof_call *calls = prof_facts_calls(f, thread, &count);
    size_t low = begun(calls, count, time);
    return low ? &calls[low - 1] : NULL;
}

const struct prof_call *memory_call_around(const struct prof_facts *f, uint32_t thread,
                                           int64_t time)
{
    size_t count;
    const struct prof_call *calls = prof_facts_calls(f, thread, &count);
    size_t low = begun(calls, count, time);
    /* A call of the runtime has calls of the driver in it, which may be over: the outermost counts.
     */
    const struct prof_call *found = NULL;
    for (size_t i = 0; i < low && i < NESTED; i++) {
        const struct prof_call *call = &calls[low - 1 - i];
        if (prof_subtract(time, call->start) <= call->duration)
            found = call;
    }
    return found;
}

static int64_t add_known_call(int64_t sum, const struct prof_call *call)
{
    return !call ? sum : sum == PROF_UNKNOWN ? call->duration : prof_add(sum, call->duration);
}

/* ---- items ----------------------------------------------------------------------------------- */

static bool lifetime_in_scope(const struct memory_work *w, const struct prof_lifetime *l)
{
    return prof_scope_place(w->scope, 0, l->thread, l->process, l->device) &&
           prof_scope_called(w->scope, l->thread, l->start, 0, PROF_UNKNOWN) &&
           (!w->scope->by_time || (l->start < w->scope->end_ns && l->end > w->scope->begin_ns));
}

/* A process takes its memory with it. */
static int64_t alive_until(const struct memory_work *w, const struct prof_lifetime *l)
{
    if (l->end != INT64_MAX)
        return l->end < l->start ? l->start : l->end;
    const struct prof_process *process = prof_process(w->capture, l->process);
    return process && process->end_ns != PROF_UNKNOWN && process->end_ns > l->start
               ? process->end_ns
               : INT64_MAX;
}

bool memory_in_one_step(const struct memory_work *w, uint32_t thread, int64_t made, int64_t freed)
{
    if (!memory_has_steps(w))
        return false;
    size_t step = prof_iteration_at(&w->iterations, thread, made);
    return step != PROF_NO_ITERATION && step == prof_iteration_at(&w->iterations, thread, freed);
}

static void add_memory_use(struct prof_memory_use *use, const struct memory_item *item)
{
    use->count++;
    use->bytes = prof_add(use->bytes, item->bytes);
    if (!item->kept)
        return;
    use->kept_count++;
    use->kept_bytes = prof_add(use->kept_bytes, item->bytes);
}

static void add_brief(struct prof_memory_use *use, int64_t bytes, const struct prof_call *made,
                      const struct prof_call *freed)
{
    use->brief_count++;
    use->brief_bytes = prof_add(use->brief_bytes, bytes);
    use->brief_call_ns = add_known_call(add_known_call(use->brief_call_ns, made), freed);
}

/* Of those that lived as long, to within a factor of two, the longest. */
static void keep_longest(struct prof_memory_place *place, const struct memory_item *item,
                         int64_t lived)
{
    unsigned power = lived > 1 ? 63u - (unsigned)__builtin_clzll((uint64_t)lived) : 0;
    struct prof_memory_longest *longest = &place->longest[power];
    if (lived >= longest->lived_ns)
        *longest = (struct prof_memory_longest){item->start, lived};
}

void memory_gather(struct memory_work *w, const struct memory_item *item, bool brief,
                   const struct prof_call *made, const struct prof_call *freed)
{
    struct memory_site *site = &w->sites.data[item->site];
    struct memory_place *kind = &w->places.data[site->kind_place];
    struct memory_place *all = item->block ? NULL : &w->places.data[site->place];
    struct prof_memory_use *uses[] = {&site->row.use, &kind->row.use, all ? &all->row.use : NULL};
    for (int i = 0; i < 3 && uses[i]; i++) {
        add_memory_use(uses[i], item);
        if (brief)
            add_brief(uses[i], item->bytes, made, freed);
    }
    if (item->kept || item->fixed)
        return;
    int64_t lived = prof_subtract(item->until, item->start);
    prof_gather_add(&site->lifetime, &w->budget, lived);
    prof_gather_add(&kind->lifetime, &w->budget, lived);
    keep_longest(&kind->row, item, lived);
    if (all) {
        prof_gather_add(&all->lifetime, &w->budget, lived);
        keep_longest(&all->row, item, lived);
    }
}

static void gather_lifetime(struct memory_work *w, const struct prof_lifetime *l,
                            const struct memory_item *item, const struct prof_call *made)
{
    bool freed = l->end != INT64_MAX;
    bool brief = freed && (prof_subtract(item->until, item->start) <= PROF_MEMORY_BRIEF_NS ||
                           memory_in_one_step(w, l->thread, l->start, l->end));
    memory_gather(w, item, brief, made,
                  brief ? memory_call_around(w->facts, l->end_thread, l->end) : NULL);
}

static bool add_memory_item(struct memory_work *w, uint32_t lifetime)
{
    const struct prof_lifetime *l = &w->facts->lifetimes.data[lifetime];
    const struct prof_call *call = memory_call_around(w->facts, l->thread, l->start);
    struct prof_call_site from = {
        .process = l->process,
        .thread = l->thread,
        .call_ns = call ? call->start : l->start,
        .api_name = call ? call->name : 0,
        .stack = l->stack,
    };
    uint32_t node = prof_call_tree_call(&w->tree, &from);
    uint32_t site = node == PROF_NO_GROUP ? node : memory_site_of(w, node, l->device, l->kind);
    struct memory_item *item = site == PROF_NO_GROUP ? NULL : prof_array_add(&w->items);
    if (!item)
        return false;
    bool fixed = prof_memory_is_static(l->kind);
    *item = (struct memory_item){
        .start = l->start,
        .until = alive_until(w, l),
        .bytes = l->bytes,
        .site = site,
        .thread = l->thread,
        .lifetime = lifetime,
        .inside = MEMORY_NONE,
        .kept = l->end == INT64_MAX && l->bytes && !fixed, /* a sub-buffer has no bytes */
        .fixed = fixed,
    };
    gather_lifetime(w, l, item, call);
    return true;
}

static bool add_items(struct memory_work *w)
{
    for (uint32_t i = 0; i < w->facts->lifetimes.count; i++) {
        if (lifetime_in_scope(w, &w->facts->lifetimes.data[i]) && !add_memory_item(w, i))
            return false;
    }
    return true;
}

/* ---- the result ------------------------------------------------------------------------------ */

PROF_ORDER(by_held, struct prof_memory_site, PROF_DESCENDING(use.held_bytes),
           PROF_DESCENDING(use.bytes), PROF_ASCENDING(node), PROF_ASCENDING(kind),
           PROF_ASCENDING(device))

static bool put_sites(struct memory_work *w, struct prof_memory_profile *result)
{
    result->sites = calloc(w->sites.count + 1, sizeof *result->sites);
    w->site_order = calloc(w->sites.count + 1, sizeof *w->site_order);
    if (!result->sites || !w->site_order)
        return false;
    for (size_t i = 0; i < w->sites.count; i++) {
        struct memory_site *site = &w->sites.data[i];
        struct prof_flame_node *node = &w->tree.nodes.data[site->row.node];
        int64_t peak = w->places.data[site->place].row.peak_bytes;
        site->row.held_share = prof_share(site->row.use.held_bytes, peak);
        site->row.lifetime_median_ns = prof_gather_median(&site->lifetime);
        node->self = prof_add(node->self, site->row.use.held_bytes);
        node->bytes = prof_add(node->bytes, site->row.use.bytes);
        node->count += site->row.use.count;
        result->sites[result->site_count++] = site->row;
    }
    qsort(result->sites, result->site_count, sizeof *result->sites, by_held);
    for (size_t i = 0; i < result->site_count; i++) {
        const struct prof_memory_site *site = &result->sites[i];
        w->site_order[memory_site_of(w, site->node, site->device, site->kind)] = (uint32_t)i;
    }
    return true;
}

/* A device's row is before its kinds; devices by their peak. */
struct ordered_place {
    const struct prof_memory_place *row, *all;
};

PROF_ORDER(by_place_peak, struct ordered_place, PROF_DESCENDING(all->peak_bytes),
           PROF_ASCENDING(all), PROF_COMPARE(y->row == y->all, x->row == x->all),
           PROF_DESCENDING(row->peak_bytes), PROF_ASCENDING(row->kind))

static bool put_places(struct memory_work *w, struct prof_memory_profile *result)
{
    PROF_FREED struct ordered_place *order = calloc(w->places.count + 1, sizeof *order);
    result->places = calloc(w->places.count + 1, sizeof *result->places);
    bool ok = order && result->places;
    for (size_t i = 0; ok && i < w->places.count; i++) {
        struct memory_place *place = &w->places.data[i];
        place->row.lifetime_ns = prof_gather_result(&place->lifetime);
        ok = prof_gather_histogram(&place->lifetime, &place->row.lifetimes);
        order[i] = (struct ordered_place){&place->row, &w->places.data[place->all].row};
    }
    if (ok) {
        qsort(order, w->places.count, sizeof *order, by_place_peak);
        for (size_t i = 0; i < w->places.count; i++)
            result->places[result->place_count++] = *order[i].row;
    } else {
        for (size_t i = 0; i < w->places.count; i++)
            prof_histogram_free(&w->places.data[i].row.lifetimes);
    }
    return ok;
}

static enum prof_status work_through(struct memory_work *w, struct prof_memory_profile *result,
                                     struct prof_error *err)
{
    if (!add_items(w))
        return prof_out_of_memory(err);
    PROF_TRY(memory_blocks(w, err));
    if (!memory_sweep(w))
        return prof_out_of_memory(err);
    memory_hold(w);
    if (!memory_judge(w) || !put_sites(w, result) || !put_places(w, result))
        return prof_out_of_memory(err);
    struct prof_pool_summary pools;
    enum prof_status status = prof_pool_summary(w->capture, &w->scope->filter, &pools, err);
    result->pools = pools.rows;
    result->pool_count = pools.count;
    status = status ?: memory_failures(w, result, err);
    status = status ?: memory_drivers(w, result, err);
    const struct prof_launch_wrappers *wrappers;
    status = status ?: prof_capture_wrappers(w->capture, PROF_STACK_MEMORY, &wrappers, err);
    if (status)
        return status;
    prof_call_tree_take(&w->tree, &result->tree);
    return memory_write_paths(result, w->failure_nodes.data, wrappers) ? PROF_OK
                                                                       : prof_out_of_memory(err);
}

static void free_memory_work(struct memory_work *w)
{
    for (size_t i = 0; i < w->sites.count; i++)
        prof_gather_free(&w->sites.data[i].lifetime);
    for (size_t i = 0; i < w->places.count; i++)
        prof_gather_free(&w->places.data[i].lifetime);
    prof_iterations_free(&w->iterations);
    prof_call_tree_close(&w->tree);
    prof_array_free(&w->items);
    prof_array_free(&w->sites);
    prof_map_free(&w->site_index);
    prof_array_free(&w->places);
    prof_map_free(&w->place_index);
    free(w->site_order);
    prof_array_free(&w->failure_nodes);
}

enum prof_status prof_memory_profile_of(const struct prof_facts *facts,
                                        const struct prof_filter *filter,
                                        struct prof_memory_profile *result, struct prof_error *err)
{
    struct prof_scope scope;
    struct memory_work w = {.capture = facts->capture, .facts = facts, .scope = &scope};
    *result = (struct prof_memory_profile){0};
    if (facts->impossible) {
        result->why_none = "the capture holds times or sizes that cannot be";
        return PROF_OK;
    }
    enum prof_status status = prof_scope_open(&scope, facts->capture, filter, err);
    if (!status && (scope.configs || scope.filter.stream || scope.filter.stream_count))
        result->why_none = "kernels or streams were chosen, which have no memory of their own";
    status = status ?: prof_iterations_of_phases(&w.iterations, facts, err);
    if (!status && !prof_phase_rows(&facts->phases, &result->phases, &result->phase_count))
        status = prof_out_of_memory(err);
    w.phases = result->phases;
    /* Searching moves a lane's hint, and names of calls join the ranges': the facts stay what they
     * are. */
    struct prof_facts *own = (struct prof_facts *)(uintptr_t)facts;
    if (!status)
        status = prof_call_tree_open(&w.tree, facts->capture, &own->ranges, &own->range_texts, err);
    if (!status && !result->why_none)
        status = work_through(&w, result, err);
    if (!status && !result->why_none && !w.items.count && prof_info(w.capture)->summary)
        result->why_none = "a summary (perfkit merge --summary) has no allocations";
    result->steps = w.iterations.steady;
    result->warm_up = w.iterations.skipped;
    result->step_name = facts->phases.list.data[facts->phases.main].iterations.name;
    free_memory_work(&w);
    prof_scope_close(&scope);
    if (status)
        prof_memory_profile_free(result);
    return status;
}

enum prof_status prof_memory_profile(struct prof_capture *capture, const struct prof_filter *filter,
                                     struct prof_memory_profile *result, struct prof_error *err)
{
    struct prof_facts facts;
    *result = (struct prof_memory_profile){0};
    enum prof_status status = prof_facts_load(&facts, capture, filter, err);
    status = status ?: prof_memory_profile_of(&facts, filter, result, err);
    prof_facts_free(&facts);
    return status;
}

static bool leaks_in(const struct prof_memory_site *site, int64_t device, const char *phase)
{
    bool here =
        device == PROF_UNKNOWN || (!site->host && (!site->device || site->device == device));
    return here && site->verdict == PROF_MEMORY_LEAK && site->phase == phase;
}

double prof_memory_leak_growth(const struct prof_memory_profile *profile,
                               const struct prof_memory_site *sites, size_t count, int64_t device,
                               const char **phase)
{
    double most = 0;
    *phase = NULL;
    for (size_t k = 0; k < profile->phase_count; k++) {
        double growth = 0;
        for (size_t i = 0; i < count; i++)
            if (leaks_in(&sites[i], device, profile->phases[k].name))
                growth += sites[i].growth_bytes;
        if (growth > most) {
            most = growth;
            *phase = profile->phases[k].name;
        }
    }
    return most;
}

void prof_memory_profile_free(struct prof_memory_profile *result)
{
    for (size_t i = 0; i < result->place_count; i++)
        prof_histogram_free(&result->places[i].lifetimes);
    free(result->places);
    free(result->sites);
    free(result->failures);
    free(result->drivers);
    free(result->pools);
    free(result->texts);
    free(result->phases);
    prof_flame_free(&result->tree);
    *result = (struct prof_memory_profile){0};
}

const char *prof_memory_verdict_text(enum prof_memory_verdict verdict)
{
    static const char *const words[] = {"freed", "kept", "state", "leak"};
    return words[verdict];
}
