/* The event cursor of prof.h sorts events of one instant by kind and id; an NVTX range and the call
 * inside it then come in the wrong order for drawing. Events of one start are few, so they pass
 * through a small buffer here that sorts them by what encloses what. */
#include <stdlib.h>

#include "report/thread.h"
#include "report/walk.h"

/* More events than this at one nanosecond are sorted piece by piece. */
#define BATCH 256
#define PROGRESS_MASK 0xffff

/* Reading ahead: blocks of events between the two threads. */
#define BLOCK 256
#define BLOCKS 8

struct block {
    size_t count;
    struct prof_event events[BLOCK];
};

struct prof_report_walk {
    struct prof_events *events;
    const struct prof_report_options *options;
    int64_t done, total;
    size_t at, count;
    bool has_next;
    struct prof_event *batch[BATCH + 1];    /* of one start; behind them the event read ahead */
    struct prof_event events_of[BATCH + 1]; /* what they point at: events are large to copy */

    bool ahead; /* a thread reads; all below is for that */
    pthread_t reader;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct block *blocks; /* a ring */
    size_t filled, taken; /* blocks so far, by each side */
    bool ended, stopped;  /* the reader has no more; nobody wants more */
    size_t place;         /* in the block that is being read from */
};

static int64_t enclosing_duration(const struct prof_event *event)
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
    if (enclosing_duration(x) != enclosing_duration(y))
        return enclosing_duration(x) < enclosing_duration(y) ? 1 : -1;
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

/* The next event, in order, on the thread that reads. */
static const struct prof_event *read_next(struct prof_report_walk *walk)
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
    return walk->batch[walk->at++];
}

/* ---- reading ahead -------------------------------------------------------------------------- */

/* Wait until there is a block to fill; false when nobody wants more. */
static bool wait_for_room(struct prof_report_walk *walk)
{
    pthread_mutex_lock(&walk->lock);
    while (!walk->stopped && walk->filled - walk->taken == BLOCKS)
        pthread_cond_wait(&walk->changed, &walk->lock);
    bool go_on = !walk->stopped;
    pthread_mutex_unlock(&walk->lock);
    return go_on;
}

static void publish_block(struct prof_report_walk *walk, bool ended)
{
    pthread_mutex_lock(&walk->lock);
    walk->filled++;
    walk->ended = ended;
    pthread_cond_signal(&walk->changed);
    pthread_mutex_unlock(&walk->lock);
}

static void *read_ahead(void *argument)
{
    struct prof_report_walk *walk = argument;
    bool more = true;
    while (more && wait_for_room(walk)) {
        struct block *block = &walk->blocks[walk->filled % BLOCKS];
        const struct prof_event *event = NULL;
        for (block->count = 0; block->count < BLOCK && (event = read_next(walk)); block->count++)
            block->events[block->count] = *event;
        more = event != NULL;
        publish_block(walk, !more);
    }
    return NULL;
}

/* The block in front of the one that is given back; NULL at the end. */
static const struct block *next_block(struct prof_report_walk *walk, bool give_back)
{
    const struct block *block = NULL;
    pthread_mutex_lock(&walk->lock);
    if (give_back) {
        walk->taken++;
        pthread_cond_signal(&walk->changed);
    }
    while (walk->filled == walk->taken && !walk->ended)
        pthread_cond_wait(&walk->changed, &walk->lock);
    if (walk->filled != walk->taken)
        block = &walk->blocks[walk->taken % BLOCKS];
    pthread_mutex_unlock(&walk->lock);
    return block;
}

static const struct prof_event *next_ahead(struct prof_report_walk *walk)
{
    const struct block *block = &walk->blocks[walk->taken % BLOCKS];
    if (walk->place == 0 || walk->place == block->count) {
        block = next_block(walk, walk->place != 0);
        walk->place = 0;
        if (!block || !block->count)
            return NULL;
    }
    return &block->events[walk->place++];
}

void prof_report_walk_ahead(struct prof_report_walk *walk)
{
    walk->blocks = malloc(BLOCKS * sizeof *walk->blocks);
    if (!walk->blocks)
        return;
    pthread_mutex_init(&walk->lock, NULL);
    pthread_cond_init(&walk->changed, NULL);
    walk->ahead = prof_report_thread(&walk->reader, read_ahead, walk);
}

static void stop_ahead(struct prof_report_walk *walk)
{
    pthread_mutex_lock(&walk->lock);
    walk->stopped = true;
    pthread_cond_signal(&walk->changed);
    pthread_mutex_unlock(&walk->lock);
    pthread_join(walk->reader, NULL);
}

const struct prof_event *prof_report_walk_next(struct prof_report_walk *walk)
{
    if (!(++walk->done & PROGRESS_MASK) && walk->options && walk->options->progress)
        walk->options->progress(walk->options->progress_context, walk->done, walk->total);
    return walk->ahead ? next_ahead(walk) : read_next(walk);
}

enum prof_status prof_report_walk_close(struct prof_report_walk *walk, struct prof_error *err)
{
    if (!walk)
        return PROF_OK;
    if (walk->ahead)
        stop_ahead(walk);
    if (walk->blocks) {
        pthread_cond_destroy(&walk->changed);
        pthread_mutex_destroy(&walk->lock);
        free(walk->blocks);
    }
    enum prof_status status = prof_events_close(walk->events, err);
    free(walk);
    return status;
}
