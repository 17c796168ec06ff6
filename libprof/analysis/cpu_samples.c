/* Where the host was while the devices had nothing to do. A sample on a processor is a point that
 * stands for a period; one off the processor is a stretch, of which that part counts as idle time
 * in which no device worked. */
#include "libprof/analysis/call_tree.h"
#include "libprof/analysis/capture.h"
#include "libprof/analysis/cpu_samples.h"
#include "libprof/analysis/events.h"
#include "libprof/analysis/scope.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_cpu.h"
#include "libprof/include/prof_stack.h"
#include "libprof/wire/sampler.h"

/* ---- rows of the file ------------------------------------------------------------------------ */

/* So that sums of a damaged capture's samples stay within integers. */
#define PROF_CPU_SAMPLE_MOST_NS (INT64_MAX / 16)

/* Of a kind that the file knows. */
static bool cpu_state(int64_t kind, bool off, enum prof_cpu_state *state)
{
    static const enum prof_cpu_state states[] = {[WIRE_CPU_USER] = PROF_CPU_USER,
                                                 [WIRE_CPU_KERNEL] = PROF_CPU_KERNEL,
                                                 [WIRE_CPU_BLOCKED] = PROF_CPU_BLOCKED,
                                                 [WIRE_CPU_PREEMPTED] = PROF_CPU_PREEMPTED};
    bool known = kind >= WIRE_CPU_USER && kind < (int64_t)(sizeof states / sizeof *states);
    *state = known ? states[kind] : PROF_CPU_USER;
    if (kind == WIRE_CPU_FAULT)
        *state = off ? PROF_CPU_BLOCKED : PROF_CPU_KERNEL;
    return known || kind == WIRE_CPU_FAULT;
}

/* Take off what was not recorded; false when nothing is left. */
static bool cut(struct prof_cpu_sample *sample, const struct prof_recorded *recorded)
{
    int64_t length = sample->duration_ns > 0 ? sample->duration_ns : 1;
    if (!recorded->in_part)
        return true;
    int64_t inside =
        prof_recorded_length(recorded, sample->start_ns, prof_add(sample->start_ns, length));
    if (inside < length)
        sample->weight_ns =
            (int64_t)((double)sample->weight_ns * ((double)inside / (double)length));
    return inside > 0 && sample->weight_ns > 0;
}

static bool sample_is_valid(const struct prof_cpu_sample *sample, const struct prof_scope *scope)
{
    return sample->weight_ns > 0 && sample->weight_ns <= PROF_CPU_SAMPLE_MOST_NS &&
           sample->duration_ns <= PROF_CPU_SAMPLE_MOST_NS &&
           prof_scope_time(scope, sample->start_ns) &&
           prof_scope_place(scope, 0, sample->thread, 0, 0);
}

#define CPU_SAMPLES "SELECT start, thread, kind, duration, weight, stack FROM cpu_sample"

static enum prof_status read_cpu_sample_rows(struct prof_capture *capture,
                                             const struct prof_scope *scope,
                                             const struct prof_recorded *recorded, bool ordered,
                                             prof_on_cpu_sample *seen, void *user,
                                             struct prof_error *err)
{
    sqlite3_stmt *row;
    enum prof_status status =
        prof_query(capture, ordered ? CPU_SAMPLES " ORDER BY start" : CPU_SAMPLES, &row, err);
    bool ok = true;
    if (status)
        return status;
    while (ok && prof_row(row)) {
        struct prof_cpu_sample sample = {.start_ns = prof_column_int(row, 0),
                                         .thread = prof_column_id(row, 1),
                                         .duration_ns = prof_column_id(row, 3),
                                         .weight_ns = prof_column_id(row, 4),
                                         .stack = prof_column_id(row, 5)};
        if (cpu_state(prof_column_int(row, 2), sample.duration_ns > 0, &sample.state) &&
            sample_is_valid(&sample, scope) && cut(&sample, recorded))
            ok = seen(user, &sample);
    }
    status = prof_query_end(capture, row, err);
    return status ? status : ok ? PROF_OK : prof_out_of_memory(err);
}

/* All samples in scope. The sampler does not know windows that the program opens itself
 * (--capture-range): what lies outside is left out here, a stretch by its part. `seen` returns
 * false when memory ran out. */
static enum prof_status cpu_sample_rows(struct prof_capture *capture,
                                        const struct prof_scope *scope, bool ordered,
                                        prof_on_cpu_sample *seen, void *user,
                                        struct prof_error *err)
{
    struct prof_recorded recorded;
    enum prof_status status = prof_recorded(capture, NULL, &recorded, err);
    status = status ?: read_cpu_sample_rows(capture, scope, &recorded, ordered, seen, user, err);
    prof_recorded_free(&recorded);
    return status;
}

/* ---- device time ----------------------------------------------------------------------------- */

bool prof_cpu_device_works(struct prof_cpu_device_time *time, int64_t start, int64_t end,
                           int64_t thread)
{
    if (thread && !prof_map_get(&time->launching, (uint64_t)thread) &&
        !prof_map_put(&time->launching, (uint64_t)thread, 1))
        return false;
    struct prof_intervals *busy = &time->busy;
    struct prof_interval *last = busy->count ? &busy->data[busy->count - 1] : NULL;
    if (end <= start)
        return true;
    if (last && start <= last->end) {
        last->end = end > last->end ? end : last->end;
        return true;
    }
    struct prof_interval *more = prof_array_add(busy);
    if (more)
        *more = (struct prof_interval){start, end};
    return more != NULL;
}

void prof_cpu_device_time_free(struct prof_cpu_device_time *time)
{
    prof_array_free(&time->busy);
    free(time->before);
    prof_map_free(&time->launching);
}

/* How long devices worked before `moment`. */
static int64_t busy_before(const struct prof_cpu_device_time *time, int64_t moment)
{
    return prof_intervals_before(&time->busy, time->before, moment);
}

/* Idle time of the window within [begin, end). */
static int64_t idle_within(const struct prof_cpu_device_time *time, int64_t begin, int64_t end)
{
    begin = begin > time->window.begin ? begin : time->window.begin;
    end = end < time->window.end ? end : time->window.end;
    if (end <= begin)
        return 0;
    int64_t busy = prof_subtract(busy_before(time, end), busy_before(time, begin));
    return prof_subtract(prof_subtract(end, begin), busy);
}

/* ---- samples --------------------------------------------------------------------------------- */

struct seen {
    struct prof_cpu_function row;
    struct prof_frame best; /* the place that is shown */
    int64_t best_ns;
};

struct place {
    struct prof_frame frame; /* function NULL: nothing is known */
    bool in_interpreter;     /* and of nothing that the program has of its own */
};

struct work {
    struct prof_capture *capture;
    const struct prof_scope *scope;
    const struct prof_cpu_device_time *time;
    struct prof_cpu *result;
    struct prof_groups functions; /* struct seen, by function and whether the thread launches */
    struct prof_map place_ns;     /* place and the same -> time */
    struct prof_groups places;    /* by stack */
    struct prof_groups threads;   /* struct prof_cpu_thread */
};

/* What of the sample's weight lies in idle time. */
static int64_t idle_weight(const struct work *w, const struct prof_cpu_sample *sample)
{
    if (sample->duration_ns <= 0)
        return idle_within(w->time, sample->start_ns, prof_add(sample->start_ns, 1)) > 0
                   ? sample->weight_ns
                   : 0;
    int64_t idle =
        idle_within(w->time, sample->start_ns, prof_add(sample->start_ns, sample->duration_ns));
    if (idle >= sample->duration_ns)
        return sample->weight_ns;
    return (int64_t)((double)sample->weight_ns * ((double)idle / (double)sample->duration_ns));
}

static void add_ns(int64_t *sum, int64_t ns)
{
    *sum = ns < PROF_CPU_SAMPLE_MOST_NS - *sum ? *sum + ns : PROF_CPU_SAMPLE_MOST_NS;
}

static void add_cpu_times(struct prof_cpu_times *times, const struct prof_cpu_sample *sample,
                          int64_t idle)
{
    times->samples++;
    add_ns(&times->ns[sample->state], sample->weight_ns);
    add_ns(&times->idle_ns[sample->state], idle);
}

static struct prof_cpu_thread *cpu_thread_row(struct work *w, int64_t thread, bool launches)
{
    bool fresh;
    struct prof_cpu_thread *row = prof_group_of_number(&w->threads, (uint64_t)thread, &fresh);
    if (row && fresh)
        *row = (struct prof_cpu_thread){.thread = thread, .launches = launches};
    return row;
}

static struct seen *function_row(struct work *w, const struct prof_frame *place, bool launches)
{
    uint64_t key = (place ? (uint64_t)place->function_number + 1 : 0) << 1 | launches;
    bool fresh;
    struct seen *row = prof_group_of_number(&w->functions, key, &fresh);
    if (!row || !fresh)
        return row;
    row->row = (struct prof_cpu_function){.function = place ? place->function : "(not known)",
                                          .line = PROF_UNKNOWN,
                                          .module = place ? place->module : NULL,
                                          .launches = launches};
    row->best = place ? *place : (struct prof_frame){.function = row->row.function};
    return row;
}

/* Of the places in a function the one is shown where most time was spent. */
static bool note_place(struct work *w, struct seen *row, const struct prof_frame *place,
                       int64_t weight)
{
    uint64_t key = (uint64_t)place->number << 1 | row->row.launches;
    uint64_t *known = prof_map_get(&w->place_ns, key);
    int64_t sum = prof_add(known ? (int64_t)*known : 0, weight);
    if (!prof_map_put(&w->place_ns, key, (uint64_t)sum))
        return false;
    if (sum > row->best_ns) {
        row->best_ns = sum;
        row->best = *place;
        row->row.file = place->file;
        row->row.line = place->line;
    }
    return true;
}

/* Where a stack has nothing nearer than the interpreter, what Python does is not shown; but a wait
 * for its lock is, which otherwise is one more wait of the C library's. */
static struct place find_place(struct prof_stacks *stacks, int64_t stack)
{
    const struct prof_frame *frames, *found = prof_stack_place(stacks, stack);
    struct place place = {.frame = {.function = NULL}};
    if (!found)
        return place;
    place.frame = *found;
    if (prof_frame_nearness(found) < PROF_NEAR_RUNTIME)
        return place;
    size_t count = prof_stack_frames(stacks, stack, &frames);
    for (size_t i = 0; i < count; i++) {
        if (!prof_frame_is_interpreter(&frames[i]))
            continue;
        place.in_interpreter = true;
        if (strcmp(frames[i].function, "take_gil") == 0)
            place.frame = frames[i];
    }
    return place;
}

/* Looked up once for each stack. */
static const struct place *stack_location(struct work *w, int64_t stack)
{
    bool fresh;
    struct place *kept = prof_group_of_number(&w->places, (uint64_t)stack, &fresh);
    if (kept && fresh)
        *kept = find_place(w->result->stacks, stack);
    return kept;
}

static bool add_cpu_sample(void *user, const struct prof_cpu_sample *sample)
{
    struct work *w = user;
    bool launches = prof_map_get(&w->time->launching, (uint64_t)sample->thread) != NULL;
    int64_t idle = idle_weight(w, sample);
    const struct place *known = stack_location(w, sample->stack);
    if (!known)
        return false;
    const struct prof_frame *place = known->frame.function ? &known->frame : NULL;
    if (known->in_interpreter)
        add_ns(&w->result->interpreter_ns, sample->weight_ns);
    struct prof_cpu_thread *thread = cpu_thread_row(w, sample->thread, launches);
    struct seen *function = thread ? function_row(w, place, launches) : NULL;
    if (!function)
        return false;
    add_cpu_times(&thread->times, sample, idle);
    add_cpu_times(&function->row.times, sample, idle);
    add_cpu_times(launches ? &w->result->launching : &w->result->others, sample, idle);
    return !place || note_place(w, function, place, sample->weight_ns);
}

/* ---- results --------------------------------------------------------------------------------- */

/* That threads wait which launch nothing is no news: it is what a pool of workers does. */
static int64_t weigh(bool launches, const int64_t ns[PROF_CPU_STATES])
{
    return launches ? prof_cpu_total(ns) : prof_cpu_total(ns) - ns[PROF_CPU_BLOCKED];
}

static int by_times(bool a_launches, const struct prof_cpu_times *a, bool b_launches,
                    const struct prof_cpu_times *b)
{
    if (a_launches != b_launches)
        return a_launches ? -1 : 1;
    int64_t a_idle = weigh(a_launches, a->idle_ns), b_idle = weigh(b_launches, b->idle_ns);
    int64_t a_ns = weigh(a_launches, a->ns), b_ns = weigh(b_launches, b->ns);
    if (a_idle != b_idle)
        return a_idle > b_idle ? -1 : 1;
    return (a_ns < b_ns) - (a_ns > b_ns);
}

PROF_ORDER(compare_functions, struct prof_cpu_function,
           by_times(x->launches, &x->times, y->launches, &y->times),
           strcmp(x->function, y->function))

PROF_ORDER(compare_threads, struct prof_cpu_thread,
           by_times(x->launches, &x->times, y->launches, &y->times), PROF_ASCENDING(thread))

static bool hand_over(struct work *w)
{
    struct prof_cpu *result = w->result;
    result->functions = calloc(w->functions.count + 1, sizeof *result->functions);
    if (!result->functions)
        return false;
    result->function_count = w->functions.count;
    for (size_t i = 0; i < w->functions.count; i++) {
        const struct seen *function = prof_group_at(&w->functions, i);
        result->functions[i] = function->row;
        result->functions[i].where = prof_frame_text_new(&function->best, "");
        if (!result->functions[i].where)
            return false;
    }
    result->thread_count = w->threads.count;
    result->threads = prof_groups_take(&w->threads);
    if (result->function_count)
        qsort(result->functions, result->function_count, sizeof *result->functions,
              compare_functions);
    if (result->thread_count)
        qsort(result->threads, result->thread_count, sizeof *result->threads, compare_threads);
    return true;
}

static enum prof_status sum_cpu_samples(struct work *w, struct prof_error *err)
{
    struct prof_cpu *result = w->result;
    enum prof_status status = prof_stacks_open(w->capture, &result->stacks, err);
    status = status ?: cpu_sample_rows(w->capture, w->scope, false, add_cpu_sample, w, err);
    if (!status && !hand_over(w))
        status = prof_out_of_memory(err);
    prof_groups_free(&w->functions);
    prof_groups_free(&w->places);
    prof_groups_free(&w->threads);
    prof_map_free(&w->place_ns);
    return status;
}

enum prof_status prof_cpu_of(struct prof_capture *capture, const struct prof_scope *scope,
                             struct prof_cpu_device_time *time, struct prof_cpu *result,
                             struct prof_error *err)
{
    *result = (struct prof_cpu){.window_ns = PROF_UNKNOWN, .idle_ns = PROF_UNKNOWN};
    if (!time->before)
        time->before = prof_intervals_sums(&time->busy);
    if (!time->before)
        return prof_out_of_memory(err);
    if (time->window.end > time->window.begin) {
        result->window_ns = prof_subtract(time->window.end, time->window.begin);
        result->idle_ns = idle_within(time, time->window.begin, time->window.end);
    }
    struct work w = {.capture = capture,
                     .scope = scope,
                     .time = time,
                     .result = result,
                     .functions = PROF_GROUPS(struct seen, 0),
                     .places = PROF_GROUPS(struct place, 0),
                     .threads = PROF_GROUPS(struct prof_cpu_thread, 0)};
    enum prof_status status = sum_cpu_samples(&w, err);
    if (status)
        prof_cpu_free(result);
    return status;
}

void prof_cpu_free(struct prof_cpu *result)
{
    for (size_t i = 0; i < result->function_count; i++)
        free(result->functions[i].where);
    free(result->functions);
    free(result->threads);
    prof_stacks_close(result->stacks);
    *result = (struct prof_cpu){.window_ns = PROF_UNKNOWN, .idle_ns = PROF_UNKNOWN};
}

/* ---- of a capture ---------------------------------------------------------------------------- */

bool prof_cpu_sampled(struct prof_capture *capture)
{
    return prof_sql_number(capture->db, 0, "SELECT 1 FROM cpu_sample LIMIT 1");
}

static bool note_device_work(void *user, const struct prof_event_row *op)
{
    return op->duration_ns == PROF_UNKNOWN ||
           prof_cpu_device_works(user, op->start_ns, prof_add(op->start_ns, op->duration_ns),
                                 op->thread);
}

static enum prof_status read_devices(struct prof_capture *capture, const struct prof_filter *filter,
                                     struct prof_cpu_device_time *time, struct prof_error *err)
{
    struct prof_event_query query = {.tables = PROF_OPS_DEVICE,
                                     .fields = PROF_FIELD(DURATION) | PROF_FIELD(THREAD) |
                                               PROF_FIELD(LAUNCH),
                                     .filter = filter,
                                     .started = true,
                                     .in_order = true};
    enum prof_status status = prof_event_rows(capture, &query, note_device_work, time, err);
    if (!status && time->busy.count)
        time->window = (struct prof_interval){time->busy.data[0].begin,
                                              time->busy.data[time->busy.count - 1].end};
    return status;
}

static struct prof_filter filter_of_host(const struct prof_filter *filter)
{
    struct prof_filter samples = filter ? *filter : (struct prof_filter){0};
    samples.device = samples.stream = 0; /* the host has none */
    samples.streams = NULL;
    samples.stream_count = 0;
    return samples;
}

/* The device says whose idle time is meant, not whose samples; the thread says the opposite. */
static enum prof_status of_scope(struct prof_capture *capture, const struct prof_filter *filter,
                                 struct prof_cpu_device_time *time, struct prof_cpu *result,
                                 struct prof_error *err)
{
    struct prof_filter devices = filter ? *filter : (struct prof_filter){0};
    struct prof_filter samples = filter_of_host(filter);
    struct prof_scope scope;
    devices.thread = 0;
    PROF_TRY(read_devices(capture, &devices, time, err));
    enum prof_status status = prof_scope_open(&scope, capture, &samples, err);
    status = status ?: prof_cpu_of(capture, &scope, time, result, err);
    prof_scope_close(&scope);
    return status;
}

enum prof_status prof_cpu(struct prof_capture *capture, const struct prof_filter *filter,
                          struct prof_cpu *result, struct prof_error *err)
{
    *result = (struct prof_cpu){.window_ns = PROF_UNKNOWN, .idle_ns = PROF_UNKNOWN};
    struct prof_cpu_device_time time = {0};
    PROF_TRY(prof_begin(capture, err)); /* the devices' work, and the samples in between */
    enum prof_status status =
        prof_cpu_sampled(capture) ? of_scope(capture, filter, &time, result, err) : PROF_OK;
    prof_end(capture);
    prof_cpu_device_time_free(&time);
    return status;
}

static enum prof_status filtered_samples(struct prof_capture *capture,
                                         const struct prof_filter *filter, bool ordered,
                                         prof_on_cpu_sample *seen, void *user,
                                         struct prof_error *err)
{
    struct prof_filter samples = filter_of_host(filter);
    struct prof_scope scope;
    enum prof_status status = prof_scope_open(&scope, capture, &samples, err);
    status = status ?: cpu_sample_rows(capture, &scope, ordered, seen, user, err);
    prof_scope_close(&scope);
    return status;
}

enum prof_status prof_cpu_samples(struct prof_capture *capture, const struct prof_filter *filter,
                                  prof_on_cpu_sample *seen, void *user, struct prof_error *err)
{
    return filtered_samples(capture, filter, true, seen, user, err);
}

/* ---- flame graph ----------------------------------------------------------------------------- */

static const char *flame_thread_name(const struct prof_thread *thread,
                                     const struct prof_process *process)
{
    if (thread->name)
        return thread->name;
    return process && thread->tid == process->pid ? "main thread" : "thread";
}

/* PROF_NO_GROUP: out of memory. */
static uint32_t cpu_flame_node(struct prof_call_tree *tree, int64_t id, int64_t stack)
{
    const struct prof_thread *thread = prof_thread(tree->capture, id);
    if (!thread)
        return 0;
    struct prof_call_site site = {.process = thread->process, .call_ns = PROF_UNKNOWN};
    uint32_t node = prof_call_tree_call(tree, &site);
    if (node != PROF_NO_GROUP)
        node = prof_call_tree_child(
            tree, node, PROF_FLAME_THREAD, (uint64_t)id,
            flame_thread_name(thread, prof_process(tree->capture, thread->process)));
    return node == PROF_NO_GROUP || !stack || !tree->stacks
               ? node
               : prof_call_tree_frames(tree, node, stack);
}

static bool weight_includes_state(enum prof_flame_weight weight, enum prof_cpu_state state)
{
    return weight == PROF_FLAME_BLOCKED ? state == PROF_CPU_BLOCKED
                                        : state == PROF_CPU_USER || state == PROF_CPU_KERNEL;
}

struct flame_work {
    struct prof_call_tree tree;
    enum prof_flame_weight weight;
};

static bool add_flame_sample(void *user, const struct prof_cpu_sample *sample)
{
    struct flame_work *w = user;
    if (!weight_includes_state(w->weight, sample->state))
        return true;
    uint32_t node = cpu_flame_node(&w->tree, sample->thread, sample->stack);
    if (node == PROF_NO_GROUP)
        return false;
    struct prof_flame_node *leaf = &w->tree.nodes.data[node];
    leaf->self = prof_add(leaf->self, sample->weight_ns);
    leaf->count++;
    return true;
}

enum prof_status prof_cpu_flame(struct prof_capture *capture, const struct prof_filter *filter,
                                enum prof_flame_weight weight, struct prof_flame *result,
                                struct prof_error *err)
{
    struct flame_work w = {.weight = weight};
    *result = (struct prof_flame){0};
    enum prof_status status = prof_call_tree_open(&w.tree, capture, NULL, NULL, err);
    status = status ?: filtered_samples(capture, filter, false, add_flame_sample, &w, err);
    if (!status)
        prof_call_tree_take(&w.tree, result);
    prof_call_tree_close(&w.tree);
    return status;
}
