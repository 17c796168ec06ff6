/* The replay of calls and operations; see replay.h. One pass over the items of each process in
 * order of their calls, with a clock for each thread and each stream, as they were and as they are
 * now. */
#include <math.h>
#include <stdlib.h>

#include "libprof/analysis/rules/replay.h"
#include "libprof/base/saturate.h"

#define NODE_NS 600     /* a graph's node, on the host and between two */
#define CLOCK_NS 1000   /* by how much device times of two streams may disagree */
#define LATELY 32       /* streams used last, which an operation or a wait may wait for */
#define RECENT 8        /* operations of a stream likewise: it may be ahead of who waits for it */
#define HANDED_NS 50000 /* a thread that was idle for longer may have waited for another */

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
    uint32_t recent[RECENT]; /* 1 + item, of its operations by turns; 0 = none */
    uint32_t next;
};

/* Of a process: ranks wait for each other, and else each is run by itself. */
struct cursor {
    size_t at, end;          /* items */
    bool arrived;            /* at what is next, where it waits for other ranks */
    uint32_t lately[LATELY]; /* streams, the last used first */
    size_t lately_count;
    uint32_t last_thread; /* whose last call ended last; PROF_NO_ITEM = none yet */
};

/* What ranks do together begins when the last one has come. */
struct meeting_clock {
    struct moment last;
    uint32_t missing; /* that have not come */
};

struct run {
    const struct prof_replay *replay;
    const struct prof_edit *edit;
    struct thread_clock *threads;
    struct stream_clock *streams;
    struct cursor *cursors; /* by process */
    struct meeting_clock *meetings;
    struct moment *ends;           /* by item: of operations, as replayed */
    struct moment *begins, *dones; /* by iteration */
    int64_t rest; /* of what recording the item took: what the pause before its call was too short
                     for */
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

static bool is_call(const struct prof_replay_item *item)
{
    return item->kind == PROF_REPLAY_CALL || (item->kind == PROF_REPLAY_OP && item->known_call);
}

/* What is left of the pause before an item without its recording; the rest is of its call. */
static int64_t unrecorded_gap(struct run *run, const struct prof_replay_item *item, int64_t gap)
{
    double each = run->edit->recording_ns;
    if (!(each > 0))
        return gap;
    int64_t took = take_share(item->ranges + (is_call(item) ? 1u : 0u), each);
    if (is_call(item))
        run->rest = prof_min(prof_max(took - gap, 0), (int64_t)each);
    return prof_max(gap - took, 0);
}

/* The time of its call without recording. */
static int64_t unrecorded_call_ns(const struct run *run, int64_t ns)
{
    return prof_max(ns - run->rest, 0);
}

/* When the thread gets to the item; `without` a pause before it up to so long. */
static struct moment host_time(struct run *run, const struct prof_replay_item *item,
                               int64_t without)
{
    const struct prof_edit *edit = run->edit;
    const struct thread_clock *thread = &run->threads[item->thread], *from = thread;
    run->rest = 0;
    if (item->start < thread->was) /* within its last call */
        return spend_on(
            thread->call_is, PROF_LIMIT_CALL,
            prof_min(item->start - thread->call_was, thread->is.at - thread->call_is.at));
    uint32_t last = run->cursors[item->process].last_thread;
    if (last != PROF_NO_ITEM && item->start - thread->was > HANDED_NS &&
        run->threads[last].was > thread->was && run->threads[last].was <= item->start)
        from = &run->threads[last];
    int64_t gap = item->start - from->was, net = unrecorded_gap(run, item, gap);
    int64_t launching = edit->launching_ns ? edit->launching_ns : PROF_NEAR_NS;
    bool launches = item->kind == PROF_REPLAY_OP;
    if ((edit->no_host_gaps && gap > launching) ||
        (edit->free_launch && launches && gap <= launching) || gap <= without)
        net = 0;
    net = take_share(net, 1 - edit->cut_host);
    return later(spend_on(from->is, PROF_LIMIT_HOST, net), thread->is);
}

/* The host waits for all that had ended when the wait did. */
static struct moment replay_wait(const struct run *run, const struct prof_replay_item *item,
                                 struct moment now)
{
    int64_t end = item->start + item->duration, was = item->start;
    const struct cursor *cursor = &run->cursors[item->process];
    for (size_t i = 0; i < cursor->lately_count; i++) {
        const struct stream_clock *stream = &run->streams[cursor->lately[i]];
        if (stream->was > end)
            continue;
        was = prof_max(was, stream->was);
        now = later(now, stream->is);
    }
    return spend_on(now, PROF_LIMIT_CALL, unrecorded_call_ns(run, end - was));
}

/* An end as it was, and as it is now. */
struct ended {
    int64_t was;
    const struct moment *is;
};

/* What the operation was seen to wait for: the one before it in its stream, or one of another
 * stream that ended just before. */
static struct ended waited_for(const struct run *run, const struct prof_replay_item *item)
{
    const struct stream_clock *own = &run->streams[item->stream];
    const struct cursor *cursor = &run->cursors[item->process];
    struct ended found = {own->was, &own->is};
    for (size_t i = 0; i < cursor->lately_count; i++) {
        const struct stream_clock *stream = &run->streams[cursor->lately[i]];
        for (size_t k = 0; stream != own && k < RECENT && stream->recent[k]; k++) {
            const struct prof_replay_item *op = &run->replay->items.data[stream->recent[k] - 1];
            int64_t was = op->op_start + op->op_duration, idle = item->op_start - was;
            if (was > found.was && -idle <= CLOCK_NS && idle < PROF_NEAR_NS)
                found = (struct ended){was, &run->ends[stream->recent[k] - 1]};
        }
    }
    return found;
}

/* `stays`: the share of a copy whose call waits: what is longer than launching is part of it. */
static struct moment begin_op(const struct run *run, const struct prof_replay_item *item,
                              struct moment now, double stays)
{
    const struct ended before = waited_for(run, item);
    int64_t way = item->op_start - item->start, typical = run->replay->typical_ns;
    bool queued = before.was > item->start + typical / 2;
    if (way > typical && queued)
        way = typical;
    if (way > typical)
        way = typical + (int64_t)((double)(way - typical) * stays);
    if (run->edit->free_launch)
        way = prof_min(way, NODE_NS);
    const struct stream_clock *own = &run->streams[item->stream];
    int64_t gap = queued && (item->op_start > before.was || before.is != &own->is)
                      ? item->op_start - before.was
                      : 0;
    if (run->edit->free_launch)
        gap = prof_min(gap, NODE_NS);
    /* Nodes of a graph, and queues without order. */
    int64_t beside = prof_max(own->was - item->op_start, 0);
    struct moment start =
        later(spend_on(now, PROF_LIMIT_LAUNCH, way), spend_on(own->is, PROF_LIMIT_KERNEL, -beside));
    return queued && !beside ? later(start, spend_on(*before.is, PROF_LIMIT_LAUNCH, gap)) : start;
}

/* What it takes once the last rank has come; below 0: it did not wait for that. */
static int64_t after_last(const struct run *run, const struct prof_replay_item *item)
{
    return item->meeting ? item->op_start + item->op_duration -
                               run->replay->meetings.data[item->meeting - 1].last_start
                         : -1;
}

static int64_t edited_duration(const struct run *run, const struct prof_replay_item *item,
                               const struct prof_op_edit *edit, bool merged)
{
    int64_t transfer = after_last(run, item);
    if (edit->fused && edit->together)
        return merged ? 0 : edit->each_ns;
    return edit->each_ns ? edit->each_ns
                         : take_share(transfer >= 0 ? transfer : item->op_duration, 1 - edit->cut);
}

static int64_t launch_call(const struct run *run, const struct prof_replay_item *item)
{
    const struct prof_edit *edit = run->edit;
    int64_t takes = unrecorded_call_ns(run, item->duration);
    if (edit->free_launch)
        return prof_min(takes, NODE_NS);
    return edit->launch_ns ? edit->launch_ns : take_share(takes, 1 - edit->cut_launch);
}

static void use_stream(struct cursor *cursor, uint32_t stream)
{
    size_t at = 0;
    while (at < cursor->lately_count && cursor->lately[at] != stream)
        at++;
    if (at == cursor->lately_count && at < LATELY)
        cursor->lately_count++;
    at = at < LATELY ? at : LATELY - 1;
    for (; at; at--)
        cursor->lately[at] = cursor->lately[at - 1];
    cursor->lately[0] = stream;
}

/* The call copies through memory of the driver: it lasts until most of it is done. */
static bool is_staged(const struct prof_shape *shape, const struct prof_replay_item *item)
{
    return prof_is_copy(shape) && item->known_call && item->duration > PROF_NEAR_NS &&
           item->start + item->duration > item->op_start + item->op_duration / 2;
}

/* A copy that waits for its call goes as that does: the share of it that stays. */
static double staged_share(const struct prof_replay_item *item, const struct prof_shape *shape,
                           const struct prof_op_edit *edit)
{
    return shape->waits || is_staged(shape, item) ? fmin(1 - edit->cut, 1) : 1;
}

static struct moment *copies_beside(const struct run *run, const struct prof_replay_item *item)
{
    return &run->streams[run->replay->streams.count + item->process].is;
}

/* When the operation begins, whatever other ranks do. */
static struct moment own_begin(const struct run *run, const struct prof_replay_item *item,
                               struct moment now, const struct prof_op_edit *edit, bool merged)
{
    const struct prof_shape *shape = &run->replay->facts->shapes.data[item->shape];
    if ((edit->cut >= 1 && !item->meeting) || merged)
        return run->streams[item->stream].is;
    return edit->beside ? later(spend_on(now, PROF_LIMIT_LAUNCH, run->replay->typical_ns),
                                *copies_beside(run, item))
                        : begin_op(run, item, now, staged_share(item, shape, edit));
}

/* Returns when the thread goes on. */
static struct moment replay_op(struct run *run, size_t index, struct moment now,
                               const struct prof_op_edit *edit, bool merged)
{
    const struct prof_replay *r = run->replay;
    const struct prof_replay_item *item = &r->items.data[index];
    const struct prof_shape *shape = &r->facts->shapes.data[item->shape];
    struct stream_clock *stream = &run->streams[item->stream];
    int64_t was = item->op_start + item->op_duration, call_end = item->start + item->duration;
    bool gone = edit->cut >= 1;
    bool staged = shape->waits || is_staged(shape, item);
    double stays = staged_share(item, shape, edit);
    enum prof_limit what = prof_is_copy(shape) ? PROF_LIMIT_COPY : PROF_LIMIT_KERNEL;
    struct moment end = own_begin(run, item, now, edit, merged);
    if (!merged && after_last(run, item) >= 0)
        end = later(end, run->meetings[item->meeting - 1].last);
    end = spend_on(end, what, gone ? 0 : edited_duration(run, item, edit, merged));
    run->ends[index] = end;
    stream->was = prof_max(stream->was, was);
    stream->recent[stream->next++ % RECENT] = (uint32_t)index + 1;
    use_stream(&run->cursors[item->process], item->stream);
    if (edit->beside)
        *copies_beside(run, item) = end;
    else
        stream->is = later(stream->is, end);
    if (item->iteration < r->iterations.count && !gone)
        run->dones[item->iteration] = later(run->dones[item->iteration], end);
    if (gone || merged)
        return now;
    if (shape->waits && !edit->beside && !edit->async)
        return spend_on(later(now, end), PROF_LIMIT_CALL,
                        (int64_t)((double)unrecorded_call_ns(run, call_end - was) * stays));
    if (staged && (edit->beside || edit->async))
        return spend_on(now, PROF_LIMIT_LAUNCH, prof_min(item->duration, NODE_NS));
    if (staged)
        return spend_on(now, PROF_LIMIT_COPY,
                        (int64_t)((double)unrecorded_call_ns(run, item->duration) * stays));
    if (item->released_by == PROF_NO_ITEM)
        return spend_on(now, PROF_LIMIT_LAUNCH, launch_call(run, item));
    const struct prof_replay_item *by = &r->items.data[item->released_by];
    return later(spend_on(now, PROF_LIMIT_LAUNCH, prof_min(item->duration, r->typical_ns)),
                 spend_on(run->ends[item->released_by], PROF_LIMIT_LAUNCH,
                          call_end - by->op_start - by->op_duration));
}

static struct moment replay_call(const struct run *run, const struct prof_replay_item *item,
                                 struct moment now)
{
    if (after_last(run, item) >= 0)
        return spend_on(later(now, run->meetings[item->meeting - 1].last), PROF_LIMIT_CALL,
                        after_last(run, item));
    bool dropped = run->edit->drop_classes & 1u << item->class_;
    double cut = dropped ? 1 : run->edit->cut_calls[item->class_];
    bool skipped = cut >= 1 || (run->edit->one_wait_a_step && !item->last_wait);
    bool sync = item->class_ == WIRE_CLASS_SYNC;
    if (sync ? !skipped : item->class_ == WIRE_CLASS_FREE && cut == 0)
        return replay_wait(run, item, now);
    return spend_on(now, PROF_LIMIT_CALL,
                    sync ? 0 : take_share(unrecorded_call_ns(run, item->duration), 1 - cut));
}

/* False: other ranks have to come first. Of what is gone the waiting stays; what is merged waits
 * with its first part. */
static bool meets(struct run *run, const struct prof_replay_item *item, struct moment now,
                  const struct prof_op_edit *edit, bool merged)
{
    if (!item->meeting)
        return true;
    struct cursor *cursor = &run->cursors[item->process];
    struct meeting_clock *meeting = &run->meetings[item->meeting - 1];
    if (!cursor->arrived) {
        bool is_op = item->kind == PROF_REPLAY_OP;
        if (!merged)
            meeting->last =
                later(meeting->last, is_op ? own_begin(run, item, now, edit, merged) : now);
        meeting->missing -= meeting->missing > 0;
    }
    cursor->arrived = meeting->missing > 0;
    return !cursor->arrived;
}

/* False: not yet, other ranks have to come first. */
static bool replay_item(struct run *run, size_t index)
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
    if (!meets(run, item, now, &edit, merged))
        return false;
    bool whole = item->iteration < run->replay->iterations.count;
    if (item->kind == PROF_REPLAY_BEGIN && whole)
        run->begins[item->iteration] = now;
    else if (item->kind == PROF_REPLAY_END && whole)
        run->dones[item->iteration] = later(run->dones[item->iteration], now);
    if (item->kind == PROF_REPLAY_BEGIN || item->kind == PROF_REPLAY_END)
        return true;
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
    uint32_t *last = &run->cursors[item->process].last_thread;
    if (*last == PROF_NO_ITEM || run->threads[*last].was <= thread->was)
        *last = item->thread;
    return true;
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
    for (size_t i = 0; i < r->streams.count + r->processes.count; i++)
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
        if (result->begins)
            result->begins[i] = run->begins[i].at;
        done = later(done, run->dones[i]);
    }
}

static void open_cursors(struct run *run)
{
    const struct prof_replay *r = run->replay;
    for (size_t i = 0; i < r->processes.count; i++)
        run->cursors[i] = (struct cursor){.last_thread = PROF_NO_ITEM};
    for (size_t i = r->items.count; i--;) {
        struct cursor *cursor = &run->cursors[r->items.data[i].process];
        cursor->end = cursor->end ? cursor->end : i + 1;
        cursor->at = i;
    }
    for (size_t i = 0; i < r->meetings.count; i++)
        run->meetings[i].missing = r->meetings.data[i].count;
}

/* Each process goes on until it waits for others. Where all do, as they met in another order than
 * that of their calls, the first meeting goes on without those that are missing. */
static void run_processes(struct run *run)
{
    const struct prof_replay *r = run->replay;
    for (bool done = false; !done;) {
        const struct prof_replay_item *stuck = NULL;
        bool moved = false;
        done = true;
        for (size_t p = 0; p < r->processes.count; p++) {
            struct cursor *cursor = &run->cursors[p];
            for (; cursor->at < cursor->end && replay_item(run, cursor->at); cursor->at++)
                moved = true;
            if (cursor->at == cursor->end)
                continue;
            const struct prof_replay_item *item = &r->items.data[cursor->at];
            stuck = !stuck || item->op_start < stuck->op_start ? item : stuck;
            done = false;
        }
        if (!done && !moved)
            run->meetings[stuck->meeting - 1].missing = 0;
    }
}

bool prof_replay_run(const struct prof_replay *r, const struct prof_edit *edit,
                     struct prof_replayed *result)
{
    struct run run = {.replay = r, .edit = edit};
    run.threads = calloc(r->threads.count + 1, sizeof *run.threads);
    run.streams = calloc(r->streams.count + r->processes.count + 1, sizeof *run.streams);
    run.cursors = malloc((r->processes.count + 1) * sizeof *run.cursors);
    run.meetings = calloc(r->meetings.count + 1, sizeof *run.meetings);
    run.ends = malloc((r->items.count + 1) * sizeof *run.ends);
    run.begins = calloc(2 * r->iterations.count + 1, sizeof *run.begins);
    run.dones = run.begins ? run.begins + r->iterations.count : NULL;
    bool ok = run.threads && run.streams && run.cursors && run.meetings && run.ends && run.begins &&
              merge_fused(&run);
    if (ok) {
        open_cursors(&run);
        run_processes(&run);
        sum_up_run(&run, result);
    }
    free(run.threads);
    free(run.streams);
    free(run.cursors);
    free(run.meetings);
    free(run.ends);
    free(run.begins);
    free(run.merged);
    return ok;
}
