/* The replay of calls and operations; see replay.h. One pass over the items in order of their
 * calls, with a clock for each thread and each stream, as they were and as they are now. */
#include <stdlib.h>

#include "libprof/analysis/rules/replay.h"
#include "libprof/base/saturate.h"

#define MOST_ITEMS 400000 /* the head of the window stands for the rest */
#define NEAR_NS 20000     /* an operation so soon after another's end may have waited for it */
#define NODE_NS 600       /* a graph's node, on the host and between two */
#define SAMPLES 4096

/* ---- items ----------------------------------------------------------------------------------- */

static bool number(struct prof_map *map, uint32_t id, uint32_t *dense)
{
    bool fresh;
    *dense = prof_group_number(map, id, &fresh);
    return *dense != PROF_NO_GROUP;
}

/* Times here are analysed time of the phase: what lies between its intervals is cut out. */
static int64_t elapsed(const struct prof_facts *f, int64_t time)
{
    return prof_phase_before(f->phase, time);
}

static int64_t lasts(const struct prof_facts *f, int64_t start, int64_t duration)
{
    return elapsed(f, prof_add(start, duration)) - elapsed(f, start);
}

static bool add_ops(struct prof_replay *r)
{
    const struct prof_facts *f = r->facts;
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    prof_facts_seek(f, &walk, f->begin);
    while (r->items.count < MOST_ITEMS && (op = prof_facts_next(f, &walk, &kind)) &&
           op->start < f->end) {
        if (!prof_facts_has(f, op->start))
            continue;
        struct prof_replay_item *item = prof_array_add(&r->items);
        if (!item)
            return false;
        bool known = op->call != PROF_UNKNOWN;
        int64_t call = known ? op->call : op->start, start = elapsed(f, op->start);
        int64_t end = elapsed(f, op->start + op->duration);
        *item = (struct prof_replay_item){.start = elapsed(f, call),
                                          .duration = known ? lasts(f, call, op->call_duration) : 0,
                                          .op_start = start,
                                          .op_duration = end - start,
                                          .shape = op->shape,
                                          .has_op = true,
                                          .known_call = known};
        if (!number(&r->threads, op->thread, &item->thread) ||
            !number(&r->streams, op->stream, &item->stream))
            return false;
        r->span_ns = end > r->span_ns ? end : r->span_ns;
    }
    return true;
}

static bool add_calls(struct prof_replay *r)
{
    const struct prof_facts *f = r->facts;
    for (size_t i = 0; i < f->calls.count; i++) {
        const struct prof_call *call = &f->calls.data[i];
        if (call->class_ == WIRE_CLASS_TRANSFER || !prof_facts_has(f, call->start) ||
            elapsed(f, call->start) >= r->span_ns)
            continue;
        struct prof_replay_item *item = prof_array_add(&r->items);
        if (!item)
            return false;
        *item = (struct prof_replay_item){.start = elapsed(f, call->start),
                                          .duration = lasts(f, call->start, call->duration),
                                          .class_ = call->class_};
        if (!number(&r->threads, call->thread, &item->thread))
            return false;
    }
    return true;
}

PROF_ORDER(by_replay_start, struct prof_replay_item, PROF_ASCENDING(start))

/* Of the waits in a step, the last one is where the host needs the result. */
static void mark_waits(struct prof_replay *r)
{
    const struct prof_facts *f = r->facts;
    int64_t waits = 0, seen = 0;
    for (size_t i = 0; i < r->items.count; i++)
        waits += !r->items.data[i].has_op && r->items.data[i].class_ == WIRE_CLASS_SYNC;
    int64_t steps = f->steps > 0 && f->steps < waits ? f->steps : waits;
    for (size_t i = 0; i < r->items.count; i++) {
        struct prof_replay_item *item = &r->items.data[i];
        if (item->has_op || item->class_ != WIRE_CLASS_SYNC)
            continue;
        seen++;
        item->last_wait = seen * steps / waits != (seen - 1) * steps / waits;
    }
}

/* 10th percentile of the times from a call to the start. */
static int64_t typical_launch_latency(const struct prof_replay *r)
{
    static const int64_t otherwise = 5000;
    int64_t *samples = malloc(SAMPLES * sizeof *samples);
    size_t count = 0;
    for (size_t i = 0; samples && i < r->items.count && count < SAMPLES; i++) {
        const struct prof_replay_item *item = &r->items.data[i];
        if (item->has_op && item->known_call)
            samples[count++] = item->op_start - item->start;
    }
    if (count)
        qsort(samples, count, sizeof *samples, prof_ascending_int64);
    int64_t result = count ? samples[count / 10] : otherwise;
    free(samples);
    return result;
}

bool prof_replay_open(struct prof_replay *r, const struct prof_facts *facts)
{
    *r = (struct prof_replay){.facts = facts};
    if (!add_ops(r) || !add_calls(r))
        return false;
    if (r->items.count)
        qsort(r->items.data, r->items.count, sizeof *r->items.data, by_replay_start);
    mark_waits(r);
    r->typical_ns = typical_launch_latency(r);
    return true;
}

void prof_replay_close(struct prof_replay *r)
{
    prof_array_free(&r->items);
    prof_map_free(&r->threads);
    prof_map_free(&r->streams);
}

/* ---- running --------------------------------------------------------------------------------- */

struct clock {
    int64_t was, is; /* end of the last call or operation: as recorded, as replayed */
};

struct run {
    const struct prof_replay *replay;
    const struct prof_edit *edit;
    struct clock *threads, *streams;
};

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* When the thread gets to the item's call. */
static int64_t host_time(const struct run *run, const struct prof_replay_item *item)
{
    const struct clock *thread = &run->threads[item->thread];
    int64_t gap = item->start - thread->was;
    int64_t launching = run->edit->launching_ns ? run->edit->launching_ns : NEAR_NS;
    if (gap < 0 || (run->edit->no_host_gaps && gap > launching) ||
        (run->edit->free_launch && item->has_op && gap <= launching))
        gap = 0;
    return thread->is + gap;
}

/* The host waits for all that had ended when the wait did. */
static int64_t replay_wait(const struct run *run, const struct prof_replay_item *item, int64_t now)
{
    int64_t end = item->start + item->duration, was = item->start, is = now;
    for (size_t s = 0; s <= run->replay->streams.count; s++) {
        if (run->streams[s].was > end)
            continue;
        was = later(was, run->streams[s].was);
        is = later(is, run->streams[s].is);
    }
    return is + (end - was);
}

/* The stream that the operation was seen to wait for: its own, or another that ended just before.
 */
static uint32_t waited_for(const struct run *run, const struct prof_replay_item *item)
{
    int64_t start = item->op_start, best = run->streams[item->stream].was;
    uint32_t found = item->stream;
    for (uint32_t s = 0; s < run->replay->streams.count; s++) {
        int64_t was = run->streams[s].was;
        if (was > best && was <= start && start - was < NEAR_NS) {
            best = was;
            found = s;
        }
    }
    return found;
}

static int64_t begin_op(const struct run *run, const struct prof_replay_item *item, int64_t now)
{
    uint32_t before = waited_for(run, item);
    const struct clock *stream = &run->streams[before];
    int64_t way = item->op_start - item->start, typical = run->replay->typical_ns;
    bool queued = stream->was > item->start + typical / 2;
    if (way > typical && queued)
        way = typical;
    if (run->edit->free_launch && way > NODE_NS)
        way = NODE_NS;
    int64_t gap = queued && item->op_start > stream->was ? item->op_start - stream->was : 0;
    if (run->edit->free_launch && gap > NODE_NS)
        gap = NODE_NS;
    int64_t start = later(now + way, run->streams[item->stream].is);
    return queued ? later(start, stream->is + gap) : start;
}

/* Returns when the thread goes on. */
static int64_t replay_op(const struct run *run, const struct prof_replay_item *item, int64_t now)
{
    const struct prof_edit *edit = run->edit;
    const struct prof_shape *shape = &run->replay->facts->shapes.data[item->shape];
    bool chosen = edit->shapes && edit->shapes(shape), beside = chosen && edit->no_wait;
    struct clock *stream = &run->streams[item->stream];
    struct clock *copies = &run->streams[run->replay->streams.count]; /* beside all others */
    int64_t was = item->op_start + item->op_duration, call_end = item->start + item->duration;
    int64_t duration = item->op_duration;
    if (chosen && !beside)
        duration = (int64_t)((double)duration * edit->keep);
    bool gone = chosen && !beside && edit->keep <= 0;
    int64_t begin = gone     ? stream->is
                    : beside ? later(now + run->replay->typical_ns, copies->is)
                             : begin_op(run, item, now);
    stream->was = later(stream->was, was);
    if (beside)
        copies->is = begin + duration;
    else
        stream->is = later(stream->is, begin + duration);
    if (gone)
        return now;
    if (shape->waits && !beside)
        return later(now, begin + duration) + (call_end > was ? call_end - was : 0);
    if (shape->waits || edit->free_launch)
        return now + (item->duration < NODE_NS ? item->duration : NODE_NS);
    return now + item->duration;
}

static void replay_item(const struct run *run, const struct prof_replay_item *item)
{
    struct clock *thread = &run->threads[item->thread];
    int64_t now = host_time(run, item);
    bool skipped = run->edit->one_wait_a_step && !item->last_wait;
    if (item->has_op)
        thread->is = replay_op(run, item, now);
    else if (run->edit->drop_classes & 1u << item->class_)
        thread->is = now;
    else if (item->class_ == WIRE_CLASS_SYNC)
        thread->is = skipped ? now : replay_wait(run, item, now);
    else
        thread->is = now + item->duration;
    thread->was = later(thread->was, item->start + item->duration);
}

int64_t prof_replay_run(const struct prof_replay *r, const struct prof_edit *edit)
{
    struct run run = {.replay = r, .edit = edit};
    int64_t begin = 0, end = begin;
    run.threads = calloc(r->threads.count + 1, sizeof *run.threads);
    run.streams = calloc(r->streams.count + 1, sizeof *run.streams);
    if (run.threads && run.streams) {
        for (size_t i = 0; i < r->threads.count; i++)
            run.threads[i] = (struct clock){begin, begin};
        for (size_t i = 0; i <= r->streams.count; i++)
            run.streams[i] = (struct clock){begin, begin};
        for (size_t i = 0; i < r->items.count; i++)
            replay_item(&run, &r->items.data[i]);
        for (size_t i = 0; i < r->threads.count; i++)
            end = later(end, run.threads[i].is);
        for (size_t i = 0; i <= r->streams.count; i++)
            end = later(end, run.streams[i].is);
    }
    bool ok = run.threads && run.streams;
    free(run.threads);
    free(run.streams);
    return ok ? end - begin : PROF_UNKNOWN;
}
