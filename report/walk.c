/* The event cursor of prof.h sorts events of one instant by kind and id; an NVTX range and the call
 * inside it then come in the wrong order for drawing. Events of one start are few, so they pass
 * through a small buffer here that sorts them by what encloses what. */
#include <stdlib.h>

#include "report/walk.h"

/* More events than this at one nanosecond are sorted piece by piece. */
#define BATCH 256
#define PROGRESS_MASK 0xffff

struct prof_report_walk {
    struct prof_events *events;
    const struct prof_report_options *options;
    int64_t done, total;
    size_t at, count;
    bool has_next;
    struct prof_event *batch[BATCH + 1];    /* of one start; behind them the event read ahead */
    struct prof_event events_of[BATCH + 1]; /* what they point at: events are large to copy */
};

static int64_t span(const struct prof_event *event)
{
    return event->duration_ns == PROF_UNKNOWN ? INT64_MAX : event->duration_ns;
}

static int nesting(const struct prof_event *event)
{
    return event->kind == PROF_EVENT_RANGE ? 0 : event->kind == PROF_EVENT_API ? 1 : 2;
}

static int enclosing_first(const void *a, const void *b)
{
    const struct prof_event *x = *(struct prof_event *const *)a;
    const struct prof_event *y = *(struct prof_event *const *)b;
    if (nesting(x) != nesting(y))
        return nesting(x) - nesting(y);
    if (span(x) != span(y))
        return span(x) < span(y) ? 1 : -1;
    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

enum prof_status prof_report_walk_open(struct prof_capture *capture,
                                       const struct prof_report_options *options, uint32_t kinds,
                                       struct prof_report_walk **walk, struct prof_error *err)
{
    struct prof_report_walk *w = calloc(1, sizeof *w);
    *walk = NULL;
    if (!w)
        return prof_fail(err, PROF_NOMEM, "cannot read the events: out of memory");
    w->options = options;
    enum prof_status status =
        prof_events_open(capture, options ? options->filter : NULL, kinds, &w->events, err);
    if (status) {
        free(w);
        return status;
    }
    if (options && options->progress)
        w->total = prof_events_estimate(capture, kinds);
    for (size_t i = 0; i <= BATCH; i++)
        w->batch[i] = &w->events_of[i];
    w->has_next = prof_events_next(w->events, w->batch[0]);
    *walk = w;
    return PROF_OK;
}

const struct prof_event *prof_report_walk_next(struct prof_report_walk *walk)
{
    if (walk->at == walk->count) {
        struct prof_event *ahead = walk->batch[walk->count];
        walk->batch[walk->count] = walk->batch[0];
        walk->batch[0] = ahead;
        walk->at = walk->count = 0;
        while (walk->has_next && walk->count < BATCH &&
               (!walk->count || walk->batch[walk->count]->start_ns == walk->batch[0]->start_ns)) {
            walk->count++;
            walk->has_next = prof_events_next(walk->events, walk->batch[walk->count]);
        }
        if (walk->count > 1)
            qsort(walk->batch, walk->count, sizeof *walk->batch, enclosing_first);
        if (!walk->count)
            return NULL;
    }
    if (!(++walk->done & PROGRESS_MASK) && walk->options && walk->options->progress)
        walk->options->progress(walk->options->progress_context, walk->done, walk->total);
    return walk->batch[walk->at++];
}

enum prof_status prof_report_walk_close(struct prof_report_walk *walk, struct prof_error *err)
{
    if (!walk)
        return PROF_OK;
    enum prof_status status = prof_events_close(walk->events, err);
    free(walk);
    return status;
}
