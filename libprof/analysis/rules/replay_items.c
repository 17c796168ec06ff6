/* What the replay runs: the calls and operations of an interval or a phase, in the order of their
 * calls, with what held each of them up; see replay.h. */
#include <stdlib.h>

#include "libprof/analysis/rules/replay.h"
#include "libprof/base/saturate.h"

#define MOST_ITEMS 400000 /* the head of the window stands for the rest */
#define SAMPLES 4096
#define FULL_QUEUE 64 /* operations behind which a launch that takes PROF_NEAR_NS is blocked */

static bool number(struct prof_map *map, uint32_t id, uint32_t *dense)
{
    bool fresh;
    *dense = prof_group_number(map, id, &fresh);
    return *dense != PROF_NO_GROUP;
}

static bool number_thread(struct prof_replay *r, uint32_t id, uint32_t *dense)
{
    bool fresh;
    uint32_t process;
    *dense = prof_group_number(&r->threads, id, &fresh);
    if (*dense == PROF_NO_GROUP || !fresh)
        return *dense != PROF_NO_GROUP;
    const struct prof_thread *thread = prof_thread(r->facts->capture, id);
    return number(&r->processes, thread ? (uint32_t)thread->process : 0, &process) &&
           prof_array_push(&r->process_of, process);
}

/* What is replayed: all in an interval, in time from its begin; or a phase, in its analysed time:
 * what lies between its intervals is cut out. */
struct selection {
    const struct prof_facts *facts;
    const struct prof_iterations *iterations; /* NULL: a phase */
    int64_t begin, end;
    struct prof_rank_parts parts; /* borrowed */
};

static int64_t elapsed(const struct selection *s, int64_t time)
{
    return s->iterations ? time - s->begin : prof_phase_before(s->facts->phase, time);
}

static int64_t lasts(const struct selection *s, int64_t start, int64_t duration)
{
    return elapsed(s, prof_add(start, duration)) - elapsed(s, start);
}

static bool selects(const struct selection *s, int64_t time)
{
    return s->iterations ? time >= s->begin && time < s->end : prof_facts_has(s->facts, time);
}

static uint32_t replayed_iteration(const struct prof_replay *r, const struct selection *s,
                                   uint32_t thread, int64_t time)
{
    size_t at = s->iterations ? prof_iteration_at(s->iterations, thread, time) : PROF_NO_ITERATION;
    at = at == PROF_NO_ITERATION || at < s->iterations->main_begin ? SIZE_MAX
                                                                   : at - s->iterations->main_begin;
    return at < r->iterations.count ? (uint32_t)at : UINT32_MAX;
}

/* The index by phase is of use for the phase of the facts, not for an interval. */
static const struct prof_op *next_op(const struct selection *s, struct prof_op_walk *walk,
                                     enum prof_op_kind *kind)
{
    return s->iterations ? prof_facts_next(s->facts, walk, kind)
                         : prof_facts_next_in_phase(s->facts, walk, kind);
}

static bool add_ops(struct prof_replay *r, const struct selection *s)
{
    const struct prof_facts *f = r->facts;
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    prof_facts_seek(f, &walk, s->begin);
    while (r->items.count < MOST_ITEMS && (op = next_op(s, &walk, &kind)) && op->start < s->end) {
        if (!selects(s, op->start))
            continue;
        struct prof_replay_item *item = prof_array_add(&r->items);
        if (!item)
            return false;
        bool known = op->call != PROF_UNKNOWN;
        int64_t call = known ? op->call : op->start, start = elapsed(s, op->start);
        int64_t end = elapsed(s, op->start + op->duration);
        *item = (struct prof_replay_item){.start = elapsed(s, call),
                                          .duration = known ? lasts(s, call, op->call_duration) : 0,
                                          .op_start = start,
                                          .op_duration = end - start,
                                          .shape = op->shape,
                                          .iteration = replayed_iteration(r, s, op->thread, call),
                                          .released_by = PROF_NO_ITEM,
                                          .meeting =
                                              prof_rank_operation(&s->parts, op->start, op->stream),
                                          .kind = PROF_REPLAY_OP,
                                          .known_call = known};
        if (!number_thread(r, op->thread, &item->thread) ||
            !number(&r->streams, op->stream, &item->stream))
            return false;
        r->span_ns = end > r->span_ns ? end : r->span_ns;
    }
    return true;
}

static bool add_calls(struct prof_replay *r, const struct selection *s)
{
    const struct prof_facts *f = r->facts;
    static const struct prof_phase_items all = {0};
    const struct prof_phase_items *of = s->iterations ? &all : &f->phase_calls;
    for (size_t at = 0, i; prof_facts_next_item(f, of, f->calls.count, &at, &i);) {
        const struct prof_call *call = &f->calls.data[i];
        if (call->class_ == WIRE_CLASS_TRANSFER || !selects(s, call->start) ||
            elapsed(s, call->start) >= r->span_ns)
            continue;
        struct prof_replay_item *item = prof_array_add(&r->items);
        if (!item)
            return false;
        *item = (struct prof_replay_item){.start = elapsed(s, call->start),
                                          .duration = lasts(s, call->start, call->duration),
                                          .iteration = UINT32_MAX,
                                          .released_by = PROF_NO_ITEM,
                                          .kind = PROF_REPLAY_CALL,
                                          .class_ = call->class_};
        if (!number_thread(r, call->thread, &item->thread))
            return false;
    }
    return true;
}

/* Operations of ranks that have no kernel: their time is that of their range. */
static bool add_host_parts(struct prof_replay *r, const struct selection *s)
{
    bool cut_short = r->items.count >= MOST_ITEMS;
    for (size_t i = 0; i < s->parts.count; i++) {
        const struct prof_rank_part *part = &s->parts.data[i];
        if (part->stream || !selects(s, part->start) ||
            (cut_short && elapsed(s, part->start) >= r->span_ns))
            continue;
        struct prof_replay_item item = {.start = elapsed(s, part->start),
                                        .duration = part->end - part->start,
                                        .iteration = UINT32_MAX,
                                        .released_by = PROF_NO_ITEM,
                                        .meeting = part->operation,
                                        .kind = PROF_REPLAY_CALL};
        item.op_start = item.start;
        item.op_duration = item.duration;
        if (!number_thread(r, (uint32_t)part->thread, &item.thread) ||
            !prof_array_push(&r->items, item))
            return false;
    }
    return true;
}

/* The begin and the end of each iteration whose work is among the items. */
static bool add_marks(struct prof_replay *r, const struct selection *s)
{
    const struct prof_iterations *it = s->iterations;
    for (size_t i = it->main_begin; i < it->main_end; i++) {
        const struct prof_iteration *one = &it->list.data[i];
        uint32_t index = (uint32_t)(i - it->main_begin);
        struct prof_replay_item mark = {.iteration = index, .released_by = PROF_NO_ITEM};
        if (!number_thread(r, one->thread, &mark.thread))
            return false;
        mark.start = r->iterations.data[index].begin = elapsed(s, one->begin);
        mark.kind = PROF_REPLAY_BEGIN;
        if (!prof_array_push(&r->items, mark))
            return false;
        mark.start = r->iterations.data[index].end = elapsed(s, one->end);
        mark.kind = PROF_REPLAY_END;
        if (!prof_array_push(&r->items, mark))
            return false;
    }
    return true;
}

PROF_ORDER(by_process_and_start, struct prof_replay_item, PROF_ASCENDING(process),
           PROF_ASCENDING(start), PROF_ASCENDING(kind), PROF_ASCENDING(op_start))

static void order_items(struct prof_replay *r)
{
    for (size_t i = 0; i < r->items.count; i++)
        r->items.data[i].process = r->process_of.data[r->items.data[i].thread];
    prof_array_sort(&r->items, by_process_and_start);
}

/* Numbers what ranks did together and is among the items, and finds when the last one came. What
 * only one process takes part in, or one process twice, is no meeting. */
static bool find_meetings(struct prof_replay *r)
{
    struct prof_map numbers = {0};
    bool ok = true, fresh;
    for (size_t i = 0; ok && i < r->items.count; i++) {
        struct prof_replay_item *item = &r->items.data[i];
        uint32_t number = item->meeting ? prof_group_number(&numbers, item->meeting, &fresh) : 0;
        if (!item->meeting)
            continue;
        ok = number != PROF_NO_GROUP &&
             (!fresh || prof_array_push(&r->meetings, (struct prof_replay_meeting){0}));
        if (!ok)
            break;
        struct prof_replay_meeting *meeting = &r->meetings.data[number];
        meeting->last_start =
            meeting->count ? prof_max(meeting->last_start, item->op_start) : item->op_start;
        meeting->several |= meeting->count && meeting->process == item->process;
        meeting->process = item->process;
        meeting->count++;
        item->meeting = number + 1;
    }
    for (size_t i = 0; ok && i < r->items.count; i++) {
        struct prof_replay_item *item = &r->items.data[i];
        const struct prof_replay_meeting *meeting =
            item->meeting ? &r->meetings.data[item->meeting - 1] : NULL;
        if (meeting && (meeting->count < 2 || meeting->several))
            item->meeting = 0;
        r->met += item->meeting != 0;
    }
    prof_map_free(&numbers);
    return ok;
}

static bool is_sync(const struct prof_replay_item *item)
{
    return item->kind == PROF_REPLAY_CALL && item->class_ == WIRE_CLASS_SYNC;
}

/* How many ranges a thread began since its last call, for each of its items. */
static bool count_begun_ranges(struct prof_replay *r, const struct selection *s)
{
    /* Searching moves a lane's hint only: the facts stay what they are. */
    struct prof_range_index *index = (struct prof_range_index *)(uintptr_t)&r->facts->ranges;
    struct thread_ranges {
        const struct prof_range_thread *of;
        size_t *next; /* by lane, the first node that is not counted */
        uint32_t begun;
    } *threads = calloc(r->threads.count + 1, sizeof *threads);
    uint64_t id, thread;
    size_t at = 0;
    bool ok = threads != NULL;
    while (ok && prof_map_next(&r->threads, &at, &id, &thread)) {
        struct thread_ranges *one = &threads[thread];
        one->of = prof_range_thread(index, (int64_t)id);
        one->next = one->of ? calloc(one->of->lanes.count + 1, sizeof *one->next) : NULL;
        ok = one->next || !one->of;
        for (size_t l = 0; ok && one->of && l < one->of->lanes.count; l++) {
            const struct prof_range_lane *lane = &one->of->lanes.data[l];
            PROF_FIND_FIRST(one->next[l], k, lane->count,
                            index->nodes.data[lane->nodes[k]].begin >= s->begin);
        }
    }
    for (size_t i = 0; ok && i < r->items.count; i++) {
        struct prof_replay_item *item = &r->items.data[i];
        struct thread_ranges *one = &threads[item->thread];
        for (size_t l = 0; one->of && l < one->of->lanes.count; l++) {
            const struct prof_range_lane *lane = &one->of->lanes.data[l];
            for (; one->next[l] < lane->count; one->next[l]++) {
                int64_t begin = index->nodes.data[lane->nodes[one->next[l]]].begin;
                if (elapsed(s, begin) > item->start)
                    break;
                one->begun++;
            }
        }
        item->ranges = one->begun;
        if (item->kind == PROF_REPLAY_OP || item->kind == PROF_REPLAY_CALL)
            one->begun = 0;
    }
    for (size_t t = 0; threads && t < r->threads.count; t++)
        free(threads[t].next);
    free(threads);
    return ok;
}

/* Of the waits in a step of a process, the last one is where the host needs the result. */
static void mark_waits(struct prof_replay *r)
{
    const struct prof_facts *f = r->facts;
    for (size_t first = 0, end; first < r->items.count; first = end) {
        int64_t waits = 0, seen = 0;
        for (end = first;
             end < r->items.count && r->items.data[end].process == r->items.data[first].process;
             end++)
            waits += is_sync(&r->items.data[end]);
        int64_t steps = r->iterations.count ? (int64_t)r->iterations.count : f->steps;
        steps = steps > 0 && steps < waits ? steps : waits;
        for (size_t i = first; i < end; i++) {
            if (!is_sync(&r->items.data[i]))
                continue;
            seen++;
            r->items.data[i].last_wait = seen * steps / waits != (seen - 1) * steps / waits;
        }
    }
}

/* 10th percentile of the times from a call to the start, of operations whose stream was idle at
 * their call; the shortest of all where none was. */
static bool find_typical_latency(struct prof_replay *r)
{
    static const int64_t otherwise = 5000;
    int64_t *samples = malloc(SAMPLES * sizeof *samples), shortest = INT64_MAX;
    int64_t *ends = calloc(r->streams.count + 1, sizeof *ends);
    size_t count = 0;
    for (size_t i = 0; samples && ends && i < r->items.count; i++) {
        const struct prof_replay_item *item = &r->items.data[i];
        if (item->kind != PROF_REPLAY_OP || !item->known_call)
            continue;
        int64_t way = item->op_start - item->start, *end = &ends[item->stream];
        shortest = prof_min(shortest, way);
        if (*end && *end <= item->start && count < SAMPLES)
            samples[count++] = way;
        *end = prof_max(*end, item->op_start + item->op_duration);
    }
    if (count)
        qsort(samples, count, sizeof *samples, prof_ascending_int64);
    r->typical_ns = count                   ? samples[count / 10]
                    : shortest != INT64_MAX ? prof_max(shortest, 0)
                                            : otherwise;
    bool ok = samples && ends;
    free(samples);
    free(ends);
    return ok;
}

/* A call that runs its kernel, as with CUDA_LAUNCH_BLOCKING or on a CPU: most of it is the
 * operation, which is over when it returns. */
static bool runs_within_call(const struct prof_replay_item *item)
{
    return item->known_call && item->duration >= PROF_NEAR_NS &&
           item->op_duration >= item->duration / 2 && item->op_start >= item->start &&
           item->op_start + item->op_duration <= item->start + item->duration;
}

/* Launches that are long return when an operation ends: their own, if it ran within the call; where
 * many operations are queued in their stream, one of these. */
static bool find_blocked(struct prof_replay *r)
{
    struct queue {
        uint32_t tail, depth, last;
    } *queues = malloc((r->streams.count + 1) * sizeof *queues);
    uint32_t *next = malloc((r->items.count + 1) * sizeof *next);
    for (size_t s = 0; queues && s < r->streams.count; s++)
        queues[s] = (struct queue){PROF_NO_ITEM, 0, PROF_NO_ITEM};
    for (size_t i = 0; queues && next && i < r->items.count; i++) {
        struct prof_replay_item *item = &r->items.data[i];
        if (item->kind != PROF_REPLAY_OP)
            continue;
        struct queue *queue = &queues[item->stream];
        int64_t returned = item->start + item->duration;
        uint32_t ended = PROF_NO_ITEM;
        while (queue->tail != PROF_NO_ITEM) {
            const struct prof_replay_item *first = &r->items.data[queue->tail];
            if (first->op_start + first->op_duration > returned)
                break;
            ended = first->op_start + first->op_duration > item->start ? queue->tail : ended;
            queue->tail = next[queue->tail];
            queue->depth--;
        }
        if (runs_within_call(item))
            item->released_by = (uint32_t)i;
        else if (item->known_call && item->duration >= PROF_NEAR_NS && queue->depth >= FULL_QUEUE)
            item->released_by = ended;
        next[i] = PROF_NO_ITEM;
        if (queue->tail == PROF_NO_ITEM)
            queue->tail = (uint32_t)i;
        else
            next[queue->last] = (uint32_t)i;
        queue->last = (uint32_t)i;
        queue->depth++;
    }
    bool ok = queues && next;
    free(queues);
    free(next);
    return ok;
}

/* Iterations that last longer than the items are not whole. */
static void measure_recorded(struct prof_replay *r)
{
    for (size_t i = 0; i < r->items.count; i++) {
        const struct prof_replay_item *item = &r->items.data[i];
        if (item->kind != PROF_REPLAY_OP || item->iteration == UINT32_MAX)
            continue;
        struct prof_replay_iteration *it = &r->iterations.data[item->iteration];
        it->end = prof_max(it->end, item->op_start + item->op_duration);
    }
}

int64_t prof_replay_iteration_time(const struct prof_replay_iteration *it, int64_t *done)
{
    int64_t from = it->begin > *done ? it->begin : *done;
    *done = it->end > *done ? it->end : *done;
    return it->end > from ? it->end - from : 0;
}

static bool add_replay_items(struct prof_replay *r, const struct selection *s)
{
    if (s->iterations) {
        size_t count = s->iterations->main_end - s->iterations->main_begin;
        if (!prof_array_reserve(&r->iterations, count))
            return false;
        for (size_t i = 0; i < count; i++)
            r->iterations.data[i] = (struct prof_replay_iteration){
                .steady = s->iterations->list.data[s->iterations->main_begin + i].steady};
        r->iterations.count = count;
    }
    return add_ops(r, s) && add_calls(r, s) && add_host_parts(r, s) &&
           (!s->iterations || add_marks(r, s));
}

bool prof_replay_open(struct prof_replay *r, const struct prof_facts *facts,
                      const struct prof_phase *phase, const struct prof_rank_parts *parts)
{
    *r = (struct prof_replay){.facts = facts};
    struct selection s = {.facts = facts};
    if (parts)
        s.parts = *parts;
    if (phase) {
        const struct prof_iterations *it = s.iterations = &phase->iterations;
        s.begin = it->list.data[it->main_begin].begin;
        s.end = prof_max(it->list.data[it->main_end - 1].end, phase->device_end);
    } else {
        s.begin = facts->begin;
        s.end = facts->end;
    }
    if (!add_replay_items(r, &s))
        return false;
    order_items(r);
    if (!find_meetings(r))
        return false;
    mark_waits(r);
    if (phase && !count_begun_ranges(r, &s))
        return false;
    measure_recorded(r);
    while (r->items.count >= MOST_ITEMS && r->iterations.count &&
           r->iterations.data[r->iterations.count - 1].end >= r->span_ns)
        r->iterations.count--;
    return find_typical_latency(r) && find_blocked(r);
}

void prof_replay_close(struct prof_replay *r)
{
    prof_array_free(&r->items);
    prof_array_free(&r->iterations);
    prof_array_free(&r->meetings);
    prof_array_free(&r->process_of);
    prof_map_free(&r->threads);
    prof_map_free(&r->streams);
    prof_map_free(&r->processes);
}
