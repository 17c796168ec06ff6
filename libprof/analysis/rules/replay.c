/* The replay of calls and operations; see replay.h. One pass over the items in order of their
 * calls, with a clock for each thread and each stream, as they were and as they are now. */
#include <math.h>
#include <stdlib.h>

#include "libprof/analysis/rules/replay.h"
#include "libprof/base/saturate.h"

#define MOST_ITEMS 400000 /* the head of the window stands for the rest */
#define NEAR_NS 20000     /* an operation so soon after another's end may have waited for it */
#define NODE_NS 600       /* a graph's node, on the host and between two */
#define SAMPLES 4096
#define NO_ITEM UINT32_MAX
#define LATELY 32       /* streams used last, which an operation or a wait may wait for */
#define FULL_QUEUE 64   /* operations behind which a launch that takes NEAR_NS is blocked */
#define HANDED_NS 50000 /* a thread that was idle for longer may have waited for another */

/* ---- items ----------------------------------------------------------------------------------- */

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

static bool add_ops(struct prof_replay *r, const struct selection *s)
{
    const struct prof_facts *f = r->facts;
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    prof_facts_seek(f, &walk, s->begin);
    while (r->items.count < MOST_ITEMS && (op = prof_facts_next(f, &walk, &kind)) &&
           op->start < s->end) {
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
                                          .released_by = NO_ITEM,
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
    for (size_t i = 0; i < f->calls.count; i++) {
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
                                          .released_by = NO_ITEM,
                                          .kind = PROF_REPLAY_CALL,
                                          .class_ = call->class_};
        if (!number_thread(r, call->thread, &item->thread))
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
        struct prof_replay_item mark = {.iteration = index, .released_by = NO_ITEM};
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

PROF_ORDER(by_replay_start, struct prof_replay_item, PROF_ASCENDING(start), PROF_ASCENDING(kind),
           PROF_ASCENDING(op_start))

/* Of the waits in a step, the last one is where the host needs the result. */
static void mark_waits(struct prof_replay *r)
{
    const struct prof_facts *f = r->facts;
    int64_t waits = 0, seen = 0;
    for (size_t i = 0; i < r->items.count; i++)
        waits +=
            r->items.data[i].kind == PROF_REPLAY_CALL && r->items.data[i].class_ == WIRE_CLASS_SYNC;
    int64_t steps = r->iterations.count ? (int64_t)r->iterations.count : f->steps;
    steps = steps > 0 && steps < waits ? steps : waits;
    for (size_t i = 0; i < r->items.count; i++) {
        struct prof_replay_item *item = &r->items.data[i];
        if (item->kind != PROF_REPLAY_CALL || item->class_ != WIRE_CLASS_SYNC)
            continue;
        seen++;
        item->last_wait = seen * steps / waits != (seen - 1) * steps / waits;
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

/* Launches that are long while many operations are queued in their stream return when one of these
 * ends. */
static bool find_blocked(struct prof_replay *r)
{
    struct queue {
        uint32_t tail, depth, last;
    } *queues = malloc((r->streams.count + 1) * sizeof *queues);
    uint32_t *next = malloc((r->items.count + 1) * sizeof *next);
    for (size_t s = 0; queues && s < r->streams.count; s++)
        queues[s] = (struct queue){NO_ITEM, 0, NO_ITEM};
    for (size_t i = 0; queues && next && i < r->items.count; i++) {
        struct prof_replay_item *item = &r->items.data[i];
        if (item->kind != PROF_REPLAY_OP)
            continue;
        struct queue *queue = &queues[item->stream];
        int64_t returned = item->start + item->duration;
        uint32_t ended = NO_ITEM;
        while (queue->tail != NO_ITEM) {
            const struct prof_replay_item *first = &r->items.data[queue->tail];
            if (first->op_start + first->op_duration > returned)
                break;
            ended = first->op_start + first->op_duration > item->start ? queue->tail : ended;
            queue->tail = next[queue->tail];
            queue->depth--;
        }
        if (item->known_call && item->duration >= NEAR_NS && queue->depth >= FULL_QUEUE)
            item->released_by = ended;
        next[i] = NO_ITEM;
        if (queue->tail == NO_ITEM)
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
    return add_ops(r, s) && add_calls(r, s) && (!s->iterations || add_marks(r, s));
}

bool prof_replay_open(struct prof_replay *r, const struct prof_facts *facts,
                      const struct prof_phase *phase)
{
    *r = (struct prof_replay){.facts = facts};
    struct selection s = {.facts = facts};
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
    if (r->items.count)
        qsort(r->items.data, r->items.count, sizeof *r->items.data, by_replay_start);
    mark_waits(r);
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
    prof_array_free(&r->process_of);
    prof_map_free(&r->threads);
    prof_map_free(&r->streams);
    prof_map_free(&r->processes);
}

/* ---- running --------------------------------------------------------------------------------- */

/* A time in the replay, and what the way to it was spent on: adds up to it. */
struct moment {
    int64_t at, of[PROF_LIMITS];
};

struct thread_clock {
    int64_t was; /* end of its last call, as recorded */
    int64_t call_was;
    struct moment is, call_is; /* as replayed: that end, and the begin of the call */
};

struct stream_clock {
    int64_t was;
    struct moment is;
    uint32_t process;
};

struct run {
    const struct prof_replay *replay;
    const struct prof_edit *edit;
    struct thread_clock *threads;
    struct stream_clock *streams;
    uint32_t *last_thread;   /* by process: whose last call ended last; NO_ITEM = none yet */
    struct moment *ends;     /* by item: of operations, as replayed */
    uint32_t lately[LATELY]; /* streams, the last used first */
    size_t lately_count;
    struct moment *begins, *dones; /* by iteration */
    bool *merged; /* by item: with the operation before it, or a call between two such; NULL = none
                     is */
};

static struct moment spend_on(struct moment moment, enum prof_limit what, int64_t ns)
{
    moment.at = prof_add(moment.at, ns);
    moment.of[what] = prof_add(moment.of[what], ns);
    return moment;
}

/* A share may be a million: of what is long, a year is as good as all. */
static int64_t take_share(int64_t ns, double share)
{
    return (int64_t)fmin((double)ns * share, 3.2e16);
}

static struct moment later(struct moment a, struct moment b)
{
    return a.at >= b.at ? a : b;
}

static struct prof_op_edit edit_of(const struct run *run, const struct prof_replay_item *item)
{
    const struct prof_edit *edit = run->edit;
    if (edit->ops)
        return edit->ops[item->shape];
    if (!edit->shapes || !edit->shapes(&run->replay->facts->shapes.data[item->shape]))
        return (struct prof_op_edit){0};
    return (struct prof_op_edit){.cut = edit->no_wait ? 0 : 1 - edit->keep,
                                 .beside = edit->no_wait};
}

/* When the thread gets to the item; `without` a pause before it up to so long. */
static struct moment host_time(const struct run *run, const struct prof_replay_item *item,
                               int64_t without)
{
    const struct prof_edit *edit = run->edit;
    const struct thread_clock *thread = &run->threads[item->thread], *from = thread;
    if (item->start < thread->was) /* within its last call */
        return spend_on(
            thread->call_is, PROF_LIMIT_CALL,
            prof_min(item->start - thread->call_was, thread->is.at - thread->call_is.at));
    uint32_t last = run->last_thread[run->replay->process_of.data[item->thread]];
    if (last != NO_ITEM && item->start - thread->was > HANDED_NS &&
        run->threads[last].was > thread->was && run->threads[last].was <= item->start)
        from = &run->threads[last];
    int64_t gap = item->start - from->was;
    int64_t launching = edit->launching_ns ? edit->launching_ns : NEAR_NS;
    bool launches = item->kind == PROF_REPLAY_OP;
    if ((edit->no_host_gaps && gap > launching) ||
        (edit->free_launch && launches && gap <= launching) || gap <= without)
        gap = 0;
    gap = take_share(gap, 1 - edit->cut_host);
    return later(spend_on(from->is, PROF_LIMIT_HOST, gap), thread->is);
}

/* The host waits for all that had ended when the wait did. */
static struct moment replay_wait(const struct run *run, const struct prof_replay_item *item,
                                 struct moment now)
{
    int64_t end = item->start + item->duration, was = item->start;
    uint32_t process = run->replay->process_of.data[item->thread];
    for (size_t i = 0; i < run->lately_count; i++) {
        const struct stream_clock *stream = &run->streams[run->lately[i]];
        if (stream->was > end || stream->process != process)
            continue;
        was = prof_max(was, stream->was);
        now = later(now, stream->is);
    }
    return spend_on(now, PROF_LIMIT_CALL, end - was);
}

/* The stream that the operation was seen to wait for: its own, or another that ended just before.
 */
static uint32_t waited_for(const struct run *run, const struct prof_replay_item *item)
{
    int64_t start = item->op_start, best = run->streams[item->stream].was;
    uint32_t found = item->stream;
    for (size_t i = 0; i < run->lately_count; i++) {
        int64_t was = run->streams[run->lately[i]].was;
        if (was > best && was <= start && start - was < NEAR_NS) {
            best = was;
            found = run->lately[i];
        }
    }
    return found;
}

/* `stays`: the share of a copy whose call waits: what is longer than launching is part of it. */
static struct moment begin_op(const struct run *run, const struct prof_replay_item *item,
                              struct moment now, double stays)
{
    const struct stream_clock *stream = &run->streams[waited_for(run, item)];
    int64_t way = item->op_start - item->start, typical = run->replay->typical_ns;
    bool queued = stream->was > item->start + typical / 2;
    if (way > typical && queued)
        way = typical;
    if (way > typical)
        way = typical + (int64_t)((double)(way - typical) * stays);
    if (run->edit->free_launch)
        way = prof_min(way, NODE_NS);
    int64_t gap = queued && item->op_start > stream->was ? item->op_start - stream->was : 0;
    if (run->edit->free_launch)
        gap = prof_min(gap, NODE_NS);
    const struct stream_clock *own = &run->streams[item->stream];
    /* Nodes of a graph, and queues without order. */
    int64_t beside = prof_max(own->was - item->op_start, 0);
    struct moment start =
        later(spend_on(now, PROF_LIMIT_LAUNCH, way), spend_on(own->is, PROF_LIMIT_KERNEL, -beside));
    return queued && !beside ? later(start, spend_on(stream->is, PROF_LIMIT_LAUNCH, gap)) : start;
}

static int64_t edited_duration(const struct prof_replay_item *item, const struct prof_op_edit *edit,
                               bool merged)
{
    if (edit->fused && edit->together)
        return merged ? 0 : edit->each_ns;
    return edit->each_ns ? edit->each_ns : take_share(item->op_duration, 1 - edit->cut);
}

static int64_t launch_call(const struct run *run, const struct prof_replay_item *item)
{
    const struct prof_edit *edit = run->edit;
    if (edit->free_launch)
        return prof_min(item->duration, NODE_NS);
    return edit->launch_ns ? edit->launch_ns : take_share(item->duration, 1 - edit->cut_launch);
}

static void use_stream(struct run *run, uint32_t stream)
{
    size_t at = 0;
    while (at < run->lately_count && run->lately[at] != stream)
        at++;
    if (at == run->lately_count && at < LATELY)
        run->lately_count++;
    at = at < LATELY ? at : LATELY - 1;
    for (; at; at--)
        run->lately[at] = run->lately[at - 1];
    run->lately[0] = stream;
}

/* The call copies through memory of the driver: it lasts until most of it is done. */
static bool is_staged(const struct prof_shape *shape, const struct prof_replay_item *item)
{
    return prof_is_copy(shape) && item->known_call && item->duration > NEAR_NS &&
           item->start + item->duration > item->op_start + item->op_duration / 2;
}

/* Returns when the thread goes on. */
static struct moment replay_op(struct run *run, size_t index, struct moment now,
                               const struct prof_op_edit *edit, bool merged)
{
    const struct prof_replay *r = run->replay;
    const struct prof_replay_item *item = &r->items.data[index];
    const struct prof_shape *shape = &r->facts->shapes.data[item->shape];
    struct stream_clock *stream = &run->streams[item->stream];
    struct moment *copies = &run->streams[r->streams.count].is; /* beside all others */
    int64_t was = item->op_start + item->op_duration, call_end = item->start + item->duration;
    bool gone = edit->cut >= 1;
    bool staged = shape->waits || is_staged(shape, item);
    double stays = staged ? fmin(1 - edit->cut, 1) : 1;
    enum prof_limit what = prof_is_copy(shape) ? PROF_LIMIT_COPY : PROF_LIMIT_KERNEL;
    struct moment end = gone || merged ? stream->is
                        : edit->beside
                            ? later(spend_on(now, PROF_LIMIT_LAUNCH, r->typical_ns), *copies)
                            : begin_op(run, item, now, stays);
    end = spend_on(end, what, gone ? 0 : edited_duration(item, edit, merged));
    run->ends[index] = end;
    stream->was = prof_max(stream->was, was);
    stream->process = r->process_of.data[item->thread];
    use_stream(run, item->stream);
    if (edit->beside)
        *copies = end;
    else
        stream->is = later(stream->is, end);
    if (item->iteration < r->iterations.count && !gone)
        run->dones[item->iteration] = later(run->dones[item->iteration], end);
    if (gone || merged)
        return now;
    if (shape->waits && !edit->beside && !edit->async)
        return spend_on(later(now, end), PROF_LIMIT_CALL,
                        call_end > was ? (int64_t)((double)(call_end - was) * stays) : 0);
    if (staged && (edit->beside || edit->async))
        return spend_on(now, PROF_LIMIT_LAUNCH, prof_min(item->duration, NODE_NS));
    if (staged)
        return spend_on(now, PROF_LIMIT_COPY, (int64_t)((double)item->duration * stays));
    if (item->released_by == NO_ITEM)
        return spend_on(now, PROF_LIMIT_LAUNCH, launch_call(run, item));
    const struct prof_replay_item *by = &r->items.data[item->released_by];
    return later(spend_on(now, PROF_LIMIT_LAUNCH, prof_min(item->duration, r->typical_ns)),
                 spend_on(run->ends[item->released_by], PROF_LIMIT_LAUNCH,
                          call_end - by->op_start - by->op_duration));
}

static struct moment replay_call(const struct run *run, const struct prof_replay_item *item,
                                 struct moment now)
{
    bool dropped = run->edit->drop_classes & 1u << item->class_;
    double cut = dropped ? 1 : run->edit->cut_calls[item->class_];
    bool skipped = cut >= 1 || (run->edit->one_wait_a_step && !item->last_wait);
    bool sync = item->class_ == WIRE_CLASS_SYNC;
    if (sync ? !skipped : item->class_ == WIRE_CLASS_FREE && cut == 0)
        return replay_wait(run, item, now);
    return spend_on(now, PROF_LIMIT_CALL, sync ? 0 : take_share(item->duration, 1 - cut));
}

static void replay_item(struct run *run, size_t index)
{
    const struct prof_replay_item *item = &run->replay->items.data[index];
    struct thread_clock *thread = &run->threads[item->thread];
    bool is_op = item->kind == PROF_REPLAY_OP;
    struct prof_op_edit edit = is_op ? edit_of(run, item) : (struct prof_op_edit){0};
    bool merged = run->merged && run->merged[index];
    struct moment now = host_time(run, item,
                                  merged          ? PROF_BRIEF_NS
                                  : edit.cut >= 1 ? HANDED_NS
                                                  : -1);
    bool whole = item->iteration < run->replay->iterations.count;
    if (item->kind == PROF_REPLAY_BEGIN && whole)
        run->begins[item->iteration] = now;
    else if (item->kind == PROF_REPLAY_END && whole)
        run->dones[item->iteration] = later(run->dones[item->iteration], now);
    if (item->kind == PROF_REPLAY_BEGIN || item->kind == PROF_REPLAY_END)
        return;
    bool nested = item->start < thread->was;
    struct moment end = is_op    ? replay_op(run, index, now, &edit, merged)
                        : merged ? now
                                 : replay_call(run, item, now);
    if (!nested) {
        thread->call_was = item->start;
        thread->call_is = now;
    }
    thread->is = later(thread->is, end);
    thread->was = prof_max(thread->was, item->start + item->duration);
    uint32_t *last = &run->last_thread[run->replay->process_of.data[item->thread]];
    if (*last == NO_ITEM || run->threads[*last].was <= thread->was)
        *last = item->thread;
}

#define BETWEEN 64 /* items, of all threads, between two operations that are merged */

struct last_op {
    size_t item;
    uint32_t count; /* operations that it stands for */
    bool any;
};

/* Does the host wait between two operations, or did it do so much that they are not in a row? */
static bool is_waited_between(const struct run *run, size_t from, size_t to)
{
    const struct prof_replay_item *items = run->replay->items.data, *op = &items[to];
    bool waits = to - from > BETWEEN;
    for (size_t i = from + 1; i < to && !waits; i++)
        waits = items[i].thread == op->thread && items[i].kind == PROF_REPLAY_CALL &&
                items[i].class_ == WIRE_CLASS_SYNC;
    return waits;
}

static bool joins(const struct run *run, const struct last_op *last, size_t index)
{
    const struct prof_replay_item *items = run->replay->items.data, *op = &items[index];
    const struct prof_op_edit *ops = run->edit->ops, *edit = &ops[op->shape];
    const struct prof_replay_item *before = &items[last->item];
    return edit->fused && last->any && before->iteration == op->iteration &&
           ops[before->shape].fused == edit->fused && (!edit->most || last->count < edit->most) &&
           (edit->batched ||
            (before->stream == op->stream && !is_waited_between(run, last->item, index)));
}

/* Marks the item, and what its thread called since its operation before. */
static void mark_merged(struct run *run, size_t from, size_t index)
{
    const struct prof_replay_item *items = run->replay->items.data;
    run->merged[index] = true;
    if (!is_waited_between(run, from, index))
        for (size_t i = from + 1; i < index; i++)
            run->merged[i] |= items[i].thread == items[index].thread;
}

/* Fused operations: those in a row on one thread and stream, within an iteration and without a wait
 * in between; or so many of one shape. */
static bool merge_fused(struct run *run)
{
    const struct prof_replay *r = run->replay;
    const struct prof_op_edit *ops = run->edit->ops;
    bool any = false;
    for (size_t i = 0; ops && i < r->facts->shapes.count; i++)
        any |= ops[i].fused != 0;
    if (!any)
        return true;
    struct last_op *of_thread = calloc(r->threads.count + 1, sizeof *of_thread);
    struct last_op *of_shape = calloc(r->facts->shapes.count + 1, sizeof *of_shape);
    run->merged = calloc(r->items.count + 1, sizeof *run->merged);
    bool ok = of_thread && of_shape && run->merged;
    for (size_t i = 0; ok && i < r->items.count; i++) {
        const struct prof_replay_item *item = &r->items.data[i];
        if (item->kind != PROF_REPLAY_OP)
            continue;
        struct last_op *before = &of_thread[item->thread];
        struct last_op *last = ops[item->shape].batched ? &of_shape[item->shape] : before;
        bool fits = joins(run, last, i);
        if (fits)
            mark_merged(run, before->item, i);
        uint32_t count = fits ? last->count + 1 : 1;
        *before = (struct last_op){i, count, true};
        *last = *before;
    }
    free(of_thread);
    free(of_shape);
    return ok;
}

static void sum_up_run(const struct run *run, struct prof_replayed *result)
{
    const struct prof_replay *r = run->replay;
    struct moment end = {0};
    for (size_t i = 0; i < r->threads.count; i++)
        end = later(end, run->threads[i].is);
    for (size_t i = 0; i <= r->streams.count; i++)
        end = later(end, run->streams[i].is);
    result->span_ns = end.at;
    memcpy(result->path, end.of, sizeof end.of);
    memset(result->in_steady, 0, sizeof result->in_steady);
    struct moment done = {.at = INT64_MIN};
    for (size_t i = 0; i < r->iterations.count; i++) {
        struct moment from = later(run->begins[i], done);
        int64_t time = prof_max(run->dones[i].at - from.at, 0);
        for (int b = 0; b < PROF_LIMITS && time && r->iterations.data[i].steady; b++)
            result->in_steady[b] += run->dones[i].of[b] - from.of[b];
        if (result->iterations)
            result->iterations[i] = time;
        done = later(done, run->dones[i]);
    }
}

bool prof_replay_run(const struct prof_replay *r, const struct prof_edit *edit,
                     struct prof_replayed *result)
{
    struct run run = {.replay = r, .edit = edit};
    run.threads = calloc(r->threads.count + 1, sizeof *run.threads);
    run.streams = calloc(r->streams.count + 1, sizeof *run.streams);
    run.last_thread = malloc((r->processes.count + 1) * sizeof *run.last_thread);
    run.ends = malloc((r->items.count + 1) * sizeof *run.ends);
    run.begins = calloc(2 * r->iterations.count + 1, sizeof *run.begins);
    run.dones = run.begins ? run.begins + r->iterations.count : NULL;
    bool ok = run.threads && run.streams && run.last_thread && run.ends && run.begins &&
              merge_fused(&run);
    for (size_t i = 0; ok && i < r->processes.count; i++)
        run.last_thread[i] = NO_ITEM;
    for (size_t i = 0; ok && i < r->items.count; i++)
        replay_item(&run, i);
    if (ok)
        sum_up_run(&run, result);
    free(run.threads);
    free(run.streams);
    free(run.last_thread);
    free(run.ends);
    free(run.begins);
    free(run.merged);
    return ok;
}
