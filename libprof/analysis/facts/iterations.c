/* From candidates to phases with iterations and analysed intervals; see iterations.h. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/facts/iteration_parts.h"
#include "libprof/base/format.h"
#include "libprof/base/saturate.h"

#define LEAST_TO_SKIP 4 /* of so many iterations the first may be left out */

const char *prof_iteration_source_text(enum prof_iteration_source source)
{
    static const char *const words[PROF_ITERATION_SOURCES] = {"asked", "step", "repeating", "run",
                                                              "launches"};
    return words[source];
}

/* ---- iterations of a phase ------------------------------------------------------------------- */

/* What compiles among the first quarter of the iterations and never again was warming up until
 * then. The iterations [from, to) are one thread's. */
static size_t compiling(const struct prof_iterations *it, const struct prof_facts *f, size_t from,
                        size_t to)
{
    size_t count, calm = from, quarter = from + (to - from) / 4;
    const struct prof_call *calls = prof_facts_calls(f, it->list.data[from].thread, &count);
    for (size_t i = 0, at = from; i < count; i++) {
        if (!prof_call_builds(&calls[i]) || calls[i].start < it->list.data[from].begin)
            continue;
        while (at < to && it->list.data[at].end <= calls[i].start)
            at++;
        if (at == to)
            break;
        if (at >= quarter)
            return from;
        calm = at + 1;
    }
    return calm;
}

/* The iterations [from, to) are one thread's. skip: PROF_UNKNOWN = the first one, and what
 * compiles. */
static void skip_warm_up(struct prof_iterations *it, const struct prof_facts *f, size_t from,
                         size_t to, int64_t skip)
{
    int64_t count = (int64_t)(to - from);
    if (skip == PROF_UNKNOWN) {
        int64_t compiled = (int64_t)(compiling(it, f, from, to) - from);
        skip = count >= LEAST_TO_SKIP ? 1 : 0;
        skip = compiled > skip ? compiled : skip;
    }
    for (size_t i = from; i < to; i++)
        it->list.data[i].steady = (int64_t)(i - from) >= skip;
}

size_t prof_iterations_thread_end(const struct prof_iterations *it, size_t from)
{
    size_t to = from;
    while (to < it->list.count && it->list.data[to].thread == it->list.data[from].thread)
        to++;
    return to;
}

static int64_t thread_process(const struct prof_facts *f, int64_t thread)
{
    const struct prof_thread *row = prof_thread(f->capture, thread);
    return row ? row->process : 0;
}

/* Threads without iterations of their own have those of the thread of their process that has most.
 */
static bool lend_iterations(struct prof_iterations *it, const struct prof_facts *f)
{
    struct prof_map best = {0}; /* process -> as of_thread */
    size_t at = 0;
    uint64_t thread, value;
    bool ok = true;
    while (ok && prof_map_next(&it->of_thread, &at, &thread, &value)) {
        uint64_t process = (uint64_t)thread_process(f, (int64_t)thread);
        const uint64_t *known = prof_map_get(&best, process);
        uint32_t most = known ? (uint32_t)*known : 0;
        if ((uint32_t)value > most || ((uint32_t)value == most && known && value < *known))
            ok = prof_map_put(&best, process, value);
    }
    for (size_t i = 0; ok && best.count > 1 && i < f->capture->threads.count; i++) {
        const struct prof_thread *row = &f->capture->threads.data[i];
        const uint64_t *known = prof_map_get(&best, (uint64_t)row->process);
        if (known && !prof_map_get(&it->of_thread, (uint64_t)row->id))
            ok = prof_map_put(&it->of_thread, (uint64_t)row->id, *known);
    }
    prof_map_free(&best);
    return ok;
}

/* Warm-up is what comes first in the run, whatever time was selected. */
static void keep_in_time(struct prof_iterations *it, const struct prof_facts *f, int64_t skip)
{
    size_t kept = 0;
    for (size_t from = 0, to; from < it->list.count; from = to) {
        to = prof_iterations_thread_end(it, from);
        skip_warm_up(it, f, from, to, skip);
    }
    for (size_t i = 0; i < it->list.count; i++) {
        const struct prof_iteration one = it->list.data[i];
        if (one.begin >= f->begin_ns && one.end <= f->end_ns &&
            !prof_is_paused(f, one.thread, one.begin, one.end))
            it->list.data[kept++] = one;
    }
    it->list.count = kept;
}

static bool index_threads(struct prof_iterations *it, const struct prof_facts *f)
{
    for (size_t from = 0, to; from < it->list.count; from = to) {
        to = prof_iterations_thread_end(it, from);
        if (to - from > it->main_end - it->main_begin) {
            it->main_begin = from;
            it->main_end = to;
        }
        if (!prof_map_put(&it->of_thread, it->list.data[from].thread,
                          (uint64_t)from << 32 | (to - from)))
            return false;
    }
    for (size_t i = 0; i < it->list.count; i++) {
        it->steady += it->list.data[i].steady;
        it->skipped += !it->list.data[i].steady;
    }
    return lend_iterations(it, f);
}

/* Iterations that are parted by what else belongs to them last until the next one begins. */
static void tile(struct prof_iterations *it)
{
    for (size_t i = 0; i + 1 < it->list.count; i++) {
        struct prof_iteration *one = &it->list.data[i];
        if (one->thread == one[1].thread)
            one->end = one[1].begin;
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

static void free_phase(struct prof_phase *phase)
{
    prof_iterations_free(&phase->iterations);
    prof_array_free(&phase->intervals);
    prof_array_free(&phase->host);
    prof_array_free(&phase->paused);
    free(phase->before);
    free(phase->label);
}

static bool is_step(const struct prof_phase *phase)
{
    return phase->iterations.source == PROF_ITERATION_STEP;
}

PROF_ORDER(by_phase_begin, struct prof_phase, PROF_ASCENDING(begin))

static bool uses_cuda(const struct prof_facts *f)
{
    for (size_t d = 0; d < f->devices.count; d++) {
        const struct prof_device *device = f->devices.data[d].device;
        if (device && device->api && strcmp(device->api, "cuda") == 0)
            return true;
    }
    return false;
}

/* By the thread that has most iterations. In a pause only those that were recorded to be timed
 * count. */
static bool measure_overhead(struct prof_phase *phase, const struct prof_facts *f)
{
    const struct prof_iterations *it = &phase->iterations;
    PROF_ARRAY(struct prof_iteration) all = {0};
    if (f->sampled.count) {
        size_t length = strlen(f->sampled.range.name);
        if (it->name && strncmp(it->name, f->sampled.range.name, length) == 0)
            prof_sampled_overhead(&f->sampled, &phase->overhead);
        return true;
    }
    size_t first = 0, most = 0;
    bool ok = true;
    for (size_t from = 0, to; f->pauses.count && from < it->list.count; from = to) {
        to = prof_iterations_thread_end(it, from);
        first = to - from > most ? from : first;
        most = to - from > most ? to - from : most;
    }
    for (size_t i = first; ok && i < first + most; i++)
        ok = prof_is_paused(f, it->list.data[i].thread, it->list.data[i].begin,
                            it->list.data[i].end) ||
             prof_array_push(&all, it->list.data[i]);
    for (size_t i = 0; ok && most && i < phase->paused.count; i++) {
        if (phase->paused.data[i].thread == it->list.data[first].thread)
            ok = prof_array_push(&all, phase->paused.data[i]);
    }
    if (ok && all.count) {
        prof_array_sort(&all, prof_by_thread_and_begin);
        ok = prof_overhead_measure(all.data, all.count, &f->pauses, &phase->overhead);
    }
    prof_array_free(&all);
    return ok;
}

/* Phases without analysed time (in another one's) go; the others in order of time. The main one has
 * a name for iterations and most operations, launched under that name; of several, the first. */
static void order_phases(struct prof_phases *phases)
{
    size_t kept = 0;
    int64_t most = -1;
    for (size_t p = 0; p < phases->list.count; p++) {
        struct prof_phase phase = phases->list.data[p];
        if (phase.time_ns > 0) {
            phases->list.data[kept++] = phase;
            continue;
        }
        free_phase(&phase);
    }
    phases->list.count = kept;
    if (kept)
        qsort(phases->list.data, kept, sizeof *phases->list.data, by_phase_begin);
    phases->time_ns = 0;
    for (size_t p = 0; p < kept; p++) {
        const struct prof_phase *phase = &phases->list.data[p];
        const struct prof_phase *main = &phases->list.data[phases->main];
        phases->time_ns += phase->time_ns;
        int64_t ops = 0;
        for (size_t k = 0; k < kept; k++) {
            const struct prof_phase *other = &phases->list.data[k];
            if (k == p ||
                (phase->iterations.name && other->iterations.group == phase->iterations.group))
                ops += other->ops;
        }
        if (most < 0 || is_step(phase) > is_step(main) ||
            (is_step(phase) == is_step(main) && ops > most)) {
            phases->main = p;
            most = ops;
        }
    }
}

static bool add_compiles(struct prof_intervals *set, const struct prof_facts *f)
{
    bool ok = true;
    for (size_t i = 0; ok && i < f->compiles.count; i++)
        ok = prof_intervals_add(set, f->compiles.data[i].begin, f->compiles.data[i].end);
    return ok;
}

/* Where the ranges that repeat hold less than half of the work, the sequence of launches shows the
 * rest. */
static bool find_launches(struct prof_phases *phases, const struct prof_facts *f,
                          const struct prof_intervals *set_up)
{
    struct prof_intervals known = {0};
    int64_t all = 0, inside = 0;
    bool ok = true;
    for (size_t p = 0; ok && p < phases->list.count; p++) {
        const struct prof_iterations *it = &phases->list.data[p].iterations;
        for (size_t i = 0; ok && i < it->list.count; i++)
            ok = prof_intervals_add(&known, it->list.data[i].begin, it->list.data[i].end);
    }
    for (size_t i = 0; ok && i < set_up->count; i++)
        ok = prof_intervals_add(&known, set_up->data[i].begin, set_up->data[i].end);
    ok = ok && add_compiles(&known, f);
    prof_intervals_normalise(&known);
    for (enum prof_op_kind kind = PROF_OP_KERNEL; kind <= PROF_OP_GRAPH; kind++)
        all += (int64_t)f->ops[kind].count;
    for (enum prof_op_kind kind = PROF_OP_KERNEL; ok && kind <= PROF_OP_GRAPH; kind++) {
        for (size_t i = 0; known.count && 2 * inside <= all && i < f->ops[kind].count; i++) {
            struct prof_op op = prof_facts_op(f, kind, i);
            inside += prof_intervals_has(&known, prof_op_asked_at(&op));
        }
    }
    if (ok && 2 * inside <= all)
        ok = prof_phases_by_launches(phases, f, &known);
    prof_array_free(&known);
    return ok;
}

/* From the first launch to the end. */
static bool whole_run(struct prof_phases *phases, const struct prof_facts *f)
{
    int64_t begin = INT64_MAX;
    for (enum prof_op_kind kind = PROF_OP_KERNEL; kind <= PROF_OP_GRAPH; kind++) {
        for (size_t i = 0; i < f->ops[kind].count; i++) {
            struct prof_op op = prof_facts_op(f, kind, i);
            int64_t asked = prof_op_asked_at(&op);
            begin = asked < begin ? asked : begin;
        }
    }
    if (begin == INT64_MAX || begin < f->begin_ns)
        begin = f->begin_ns;
    struct prof_phase *phase = prof_array_add(&phases->list);
    if (!phase)
        return false;
    *phase =
        (struct prof_phase){.iterations = {.source = PROF_ITERATION_RUN, .group = PROF_NO_GROUP}};
    struct prof_intervals run = {
        .data = &(struct prof_interval){begin, f->end_ns > begin ? f->end_ns : begin + 1},
        .count = 1};
    phase->begin = begin;
    phase->end = phase->device_end = f->end_ns;
    if (!prof_intervals_intersection(&run, &f->recorded, &phase->intervals) ||
        !prof_intervals_intersection(&run, &f->recorded, &phase->host) ||
        !prof_phase_measure(phase))
        return false;
    phases->time_ns = phase->time_ns;
    return true;
}

/* The most iterations that a thread has in any phase, before those outside of the filter's time go.
 */
static int64_t most_iterations(const struct prof_phases *phases, const char **label)
{
    int64_t most = 0;
    *label = NULL;
    for (size_t p = 0; p < phases->list.count; p++) {
        const struct prof_iterations *it = &phases->list.data[p].iterations;
        for (size_t from = 0, to; from < it->list.count; from = to) {
            to = prof_iterations_thread_end(it, from);
            if ((int64_t)(to - from) <= most)
                continue;
            most = (int64_t)(to - from);
            *label = phases->list.data[p].label;
        }
    }
    return most;
}

static enum prof_status check_skip(const struct prof_phases *phases, int64_t skip,
                                   struct prof_error *err)
{
    const char *label;
    int64_t most = most_iterations(phases, &label);
    if (skip <= 0 || skip < most)
        return PROF_OK;
    if (!most)
        return prof_fail(err, PROF_NOTFOUND,
                         "--skip %lld: nothing repeats in this capture: it has no iterations",
                         (long long)skip);
    return prof_fail(err, PROF_NOTFOUND, "--skip %lld leaves none: there are %s%s%s%.80s%s",
                     (long long)skip, phases->list.count > 1 ? "at most " : "",
                     prof_counted(most, "iteration", "iterations").text, label ? " of '" : "",
                     label ? label : "", label ? "'" : "");
}

enum prof_status prof_phases_find(struct prof_phases *phases, const struct prof_facts *f,
                                  const struct prof_filter *filter, struct prof_error *err)
{
    struct prof_intervals set_up = {0};
    struct prof_intervals skipped = {0};
    const char *asked = filter ? filter->iteration : NULL;
    int64_t skip = filter && filter->skips ? filter->skip : PROF_UNKNOWN;
    *phases = (struct prof_phases){0};
    struct prof_range_paths paths;
    bool ok =
        prof_range_paths_read(&paths, f) && prof_phases_by_ranges(phases, &paths, asked, &set_up);
    bool missing = ok && asked && !phases->list.count;
    ok = ok && (asked || find_launches(phases, f, &set_up));
    enum prof_status status = ok && !missing ? check_skip(phases, skip, err) : PROF_OK;
    if (status)
        goto out;
    for (size_t p = 0; ok && p < phases->list.count; p++) {
        struct prof_phase *phase = &phases->list.data[p];
        ok = measure_overhead(phase, f);
        phase->overhead.in_part = phase->overhead.source != PROF_OVERHEAD_UNKNOWN &&
                                  phase->overhead.paused <= 0 && uses_cuda(f);
        if (phase->tiled)
            tile(&phase->iterations);
        keep_in_time(&phase->iterations, f, skip);
        ok = ok && index_threads(&phase->iterations, f);
    }
    /* Compiling between the iterations is set-up, within one of them it is the iteration's. */
    ok = ok && prof_phases_intervals(phases, f, &set_up) && add_compiles(&set_up, f) &&
         prof_phases_skipped(phases, &skipped);
    prof_intervals_normalise(&set_up);
    if (ok)
        order_phases(phases);
    missing |= ok && asked && !phases->list.count;
    ok = ok && (phases->list.count || whole_run(phases, f)) &&
         prof_phases_cover(phases, &paths, &skipped, &set_up);
    if (missing)
        status = prof_fail(err, PROF_NOTFOUND,
                           "--iteration: no NVTX range of this capture is called '%.80s': `perfkit "
                           "report --stats nvtx_sum` lists them",
                           asked);
    else if (!ok)
        status = prof_out_of_memory(err);
out:
    prof_range_paths_free(&paths);
    prof_array_free(&set_up);
    prof_array_free(&skipped);
    return status;
}

bool prof_phase_rows(const struct prof_phases *phases, struct prof_phase_row **rows, size_t *count)
{
    size_t bytes = phases->list.count * sizeof **rows;
    for (size_t p = 0; p < phases->list.count; p++)
        bytes += phases->list.data[p].label ? strlen(phases->list.data[p].label) + 1 : 0;
    *rows = malloc(bytes + 1);
    *count = *rows ? phases->list.count : 0;
    char *text = (char *)(*rows + *count);
    for (size_t p = 0; p < *count; p++) {
        const struct prof_phase *phase = &phases->list.data[p];
        bool repeats = phase->iterations.source != PROF_ITERATION_RUN;
        (*rows)[p] = (struct prof_phase_row){
            .name = phase->label ? strcpy(text, phase->label) : NULL,
            .domain = phase->iterations.domain,
            .source = phase->iterations.source,
            .iterations = repeats ? phase->iterations.steady : 0,
            .skipped = phase->iterations.skipped,
            .begin_ns = phase->begin,
            .end_ns = phase->end,
            .analysed_ns = phase->time_ns,
            .device_ns = phase->device_ns,
        };
        text += phase->label ? strlen(phase->label) + 1 : 0;
    }
    return *rows != NULL;
}

enum prof_status prof_iterations_check(struct prof_capture *capture,
                                       const struct prof_filter *filter, struct prof_error *err)
{
    struct prof_facts facts;
    enum prof_status status = prof_facts_load_phases(&facts, capture, filter, err);
    prof_facts_free(&facts);
    return status;
}

void prof_phases_free(struct prof_phases *phases)
{
    for (size_t p = 0; p < phases->list.count; p++)
        free_phase(&phases->list.data[p]);
    prof_array_free(&phases->list);
    prof_array_free(&phases->others);
    *phases = (struct prof_phases){0};
}

/* ---- one kind of iterations ------------------------------------------------------------------ */

int prof_by_thread_and_begin(const void *a, const void *b)
{
    const struct prof_iteration *x = a, *y = b;
    return PROF_COMPARE(x->thread, y->thread) ?: PROF_COMPARE(x->begin, y->begin);
}

/* Each phase's own warm-up is left out, as everywhere: `steady` stays. */
static bool copy_iterations(struct prof_iterations *it, const struct prof_phases *phases,
                            size_t phase)
{
    const struct prof_iterations *from = &phases->list.data[phase].iterations;
    if (!prof_array_reserve(&it->list, from->list.count))
        return false;
    for (size_t i = 0; i < from->list.count; i++) {
        struct prof_iteration *one = &it->list.data[it->list.count++];
        *one = from->list.data[i];
        one->phase = phase & INT32_MAX;
    }
    return true;
}

static bool put_in_order(struct prof_iterations *it, const struct prof_facts *f)
{
    prof_array_sort(&it->list, prof_by_thread_and_begin);
    return index_threads(it, f);
}

/* What happened between stretches of recording is not known: the longest one stands for the run. */
static bool take_run(struct prof_iterations *it, const struct prof_facts *f)
{
    struct prof_interval run = {f->begin_ns, f->begin_ns + 1};
    for (size_t i = 0; i < f->recorded.count; i++) {
        struct prof_interval one = f->recorded.data[i];
        run = one.end - one.begin > run.end - run.begin ? one : run;
    }
    if (!prof_array_push(&it->list, (struct prof_iteration){.begin = run.begin,
                                                            .end = run.end,
                                                            .steady = true,
                                                            .covered = INT64_MIN}))
        return false;
    it->main_end = 1;
    it->steady = 1;
    return true;
}

enum prof_status prof_iterations_find(struct prof_iterations *it, const struct prof_facts *f,
                                      bool of_work, struct prof_error *err)
{
    const struct prof_phases *phases = &f->phases;
    static const struct prof_iterations run = {.source = PROF_ITERATION_RUN,
                                               .group = PROF_NO_GROUP};
    const struct prof_phase *phase = phases->list.count ? &phases->list.data[phases->main] : NULL;
    /* One launch after the other says nothing of how much an iteration does. */
    bool single = of_work && phase && phase->iterations.source == PROF_ITERATION_LAUNCHES &&
                  phase->ops < 2 * phase->iterations.steady;
    const struct prof_iterations *main = phase && !single ? &phase->iterations : &run;
    *it = (struct prof_iterations){
        .source = main->source, .group = main->group, .name = main->name, .domain = main->domain};
    if (main->source == PROF_ITERATION_RUN)
        return take_run(it, f) ? PROF_OK : prof_out_of_memory(err);
    bool ok = true;
    for (size_t p = 0; ok && p < phases->list.count; p++) {
        const struct prof_iterations *own = &phases->list.data[p].iterations;
        if (own == main || (main->name && own->group == main->group))
            ok = copy_iterations(it, phases, p);
    }
    return ok && put_in_order(it, f) ? PROF_OK : prof_out_of_memory(err);
}

enum prof_status prof_iterations_of_phases(struct prof_iterations *it, const struct prof_facts *f,
                                           struct prof_error *err)
{
    bool ok = true;
    *it = (struct prof_iterations){.source = PROF_ITERATION_RUN, .group = PROF_NO_GROUP};
    for (size_t p = 0; ok && p < f->phases.list.count; p++)
        ok = copy_iterations(it, &f->phases, p);
    return ok && put_in_order(it, f) ? PROF_OK : prof_out_of_memory(err);
}

void prof_iterations_free(struct prof_iterations *it)
{
    prof_array_free(&it->list);
    prof_map_free(&it->of_thread);
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
        one->from = from;
        one->time_ns = prof_subtract(to, from);
        done = to > done ? to : done;
    }
    return true;
}

bool prof_iterations_time(struct prof_iterations *it)
{
    if (time_to_completion(it))
        return true;
    for (size_t i = 0; i < it->list.count; i++) {
        struct prof_iteration *one = &it->list.data[i];
        one->from = one->begin;
        one->time_ns = prof_subtract(one->end, one->begin);
    }
    return false;
}

static bool is_last_begun(const struct prof_iterations *it, const struct prof_iteration_search *s,
                          int64_t time)
{
    return s->first < s->end && it->list.data[s->at].begin <= time &&
           (s->at + 1 == s->end || it->list.data[s->at + 1].begin > time);
}

/* Of the iterations that count for the thread, the index after the last that had begun by then;
 * *first: of them. A thread's events come nearly in order. */
static size_t begun_by(const struct prof_iterations *it, int64_t thread, int64_t time,
                       size_t *first)
{
    struct prof_iteration_search *searches =
                                     (struct prof_iteration_search *)(uintptr_t)it->searches,
                                 *s = &searches[(uint64_t)thread % PROF_ITERATION_SEARCHES];
    if (thread != s->thread || !s->end) {
        uint64_t *own = it->of_thread.count ? prof_map_get(&it->of_thread, (uint64_t)thread) : NULL;
        s->thread = thread;
        s->first = s->at = own ? (size_t)(*own >> 32) : it->main_begin;
        s->end = own ? s->first + (size_t)(uint32_t)*own : it->main_end;
    }
    size_t low;
    const struct prof_iteration *own = &it->list.data[ *first = s->first];
    s->at += s->at + 1 < s->end && it->list.data[s->at + 1].begin <= time;
    if (is_last_begun(it, s, time))
        return s->at + 1;
    PROF_FIND_FIRST(low, at, s->end - s->first, own[at].begin > time);
    low += s->first;
    s->at = low > *first ? low - 1 : *first;
    return low;
}

size_t prof_iteration_at(const struct prof_iterations *it, int64_t thread, int64_t time)
{
    size_t first, after = begun_by(it, thread, time, &first);
    return after > first && time < it->list.data[after - 1].end ? after - 1 : PROF_NO_ITERATION;
}

size_t prof_iteration_since(const struct prof_iterations *it, int64_t thread, int64_t time)
{
    size_t first, after = begun_by(it, thread, time, &first);
    return after > first ? after - 1 : PROF_NO_ITERATION;
}
