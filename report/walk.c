/* Events in the order in which slices nest, the lanes on which they are drawn, and their stacks.
 * The event cursor of prof.h sorts events of one instant by kind and id; an NVTX range and the call
 * inside it then come in the wrong order for drawing. Events of one start are few, so they pass
 * through a small buffer here that sorts them by what encloses what.
 * First fit keeps the outermost slices on the first lane, which is what a reader expects. As many
 * lanes as slices overlap may be 2, or, where ranges are inside each other, as deep as these:
 * disjoint slices find theirs by bisection. */
#include <signal.h>
#include <stdlib.h>

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

/* Two threads that write into one cache line wait for each other at every event. */
#define APART 128

struct prof_report_walk {
    struct prof_events *events;
    const struct prof_report_options *options;
    int64_t total;

    /* The side that reads the capture. */
    size_t at, count;
    bool has_next;
    struct prof_event *batch[BATCH + 1];    /* of one start; behind them the event read ahead */
    struct prof_event events_of[BATCH + 1]; /* what they point at: events are large to copy */

    /* Reading ahead, when `ahead`; the ring changes once a block. */
    char apart[APART];
    bool ahead;
    struct prof_report_ring ring; /* of blocks */
    struct block *blocks;

    /* The side that wants the events. */
    char apart_too[APART];
    int64_t done;
    const struct block *block; /* that is being read from; NULL = none */
    size_t place;              /* in it */
    char apart_from_others[APART];
};

static int64_t enclosing_duration(const struct prof_event *event)
{
    return event->duration_ns == PROF_UNKNOWN ? INT64_MAX : event->duration_ns;
}

static int nesting(const struct prof_event *event)
{
    return event->kind == PROF_EVENT_RANGE ? 0 : event->kind == PROF_EVENT_API ? 1 : 2;
}

PROF_POINTER_ORDER(enclosing_first, struct prof_event, PROF_COMPARE(nesting(x), nesting(y)),
                   PROF_COMPARE(enclosing_duration(y), enclosing_duration(x)),
                   PROF_ASCENDING(depth), PROF_ASCENDING(id))

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

/* ---- a ring between two threads -------------------------------------------------------------- */

bool prof_report_ring_start(struct prof_report_ring *ring, size_t slots, void *(*run)(void *),
                            void *argument)
{
    sigset_t all, before;
    *ring = (struct prof_report_ring){.slots = slots};
    pthread_mutex_init(&ring->lock, NULL);
    pthread_cond_init(&ring->changed, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&ring->thread, NULL, run, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!started) {
        pthread_cond_destroy(&ring->changed);
        pthread_mutex_destroy(&ring->lock);
    }
    return started;
}

bool prof_report_ring_room(struct prof_report_ring *ring, size_t *slot)
{
    pthread_mutex_lock(&ring->lock);
    while (!ring->stopped && ring->filled - ring->taken == ring->slots)
        pthread_cond_wait(&ring->changed, &ring->lock);
    bool go_on = !ring->stopped;
    *slot = ring->filled % ring->slots;
    pthread_mutex_unlock(&ring->lock);
    return go_on;
}

bool prof_report_ring_next(struct prof_report_ring *ring, size_t *slot)
{
    pthread_mutex_lock(&ring->lock);
    while (ring->filled == ring->taken && !ring->ended)
        pthread_cond_wait(&ring->changed, &ring->lock);
    bool any = ring->filled != ring->taken;
    *slot = ring->taken % ring->slots;
    pthread_mutex_unlock(&ring->lock);
    return any;
}

void prof_report_ring_change(struct prof_report_ring *ring, enum prof_report_ring_change change)
{
    pthread_mutex_lock(&ring->lock);
    ring->filled += change == PROF_RING_FILLED;
    ring->taken += change == PROF_RING_TAKEN;
    ring->ended |= change == PROF_RING_ENDED;
    ring->stopped |= change == PROF_RING_STOPPED;
    pthread_cond_signal(&ring->changed);
    pthread_mutex_unlock(&ring->lock);
}

void prof_report_ring_join(struct prof_report_ring *ring)
{
    pthread_join(ring->thread, NULL);
    pthread_cond_destroy(&ring->changed);
    pthread_mutex_destroy(&ring->lock);
}

/* ---- reading ahead --------------------------------------------------------------------------- */

static void *read_ahead(void *argument)
{
    struct prof_report_walk *walk = argument;
    const struct prof_event *event = NULL;
    size_t slot;
    do {
        if (!prof_report_ring_room(&walk->ring, &slot))
            return NULL;
        struct block *block = &walk->blocks[slot];
        for (block->count = 0; block->count < BLOCK && (event = read_next(walk)); block->count++)
            block->events[block->count] = *event;
        prof_report_ring_change(&walk->ring, PROF_RING_FILLED);
    } while (event);
    prof_report_ring_change(&walk->ring, PROF_RING_ENDED);
    return NULL;
}

static const struct prof_event *next_ahead(struct prof_report_walk *walk)
{
    size_t slot;
    if (!walk->block || walk->place == walk->block->count) {
        if (walk->block)
            prof_report_ring_change(&walk->ring, PROF_RING_TAKEN);
        bool any = prof_report_ring_next(&walk->ring, &slot);
        walk->block = any && walk->blocks[slot].count ? &walk->blocks[slot] : NULL;
        walk->place = 0;
        if (!walk->block)
            return NULL;
    }
    return &walk->block->events[walk->place++];
}

void prof_report_walk_ahead(struct prof_report_walk *walk)
{
    walk->blocks = malloc(BLOCKS * sizeof *walk->blocks);
    walk->ahead = walk->blocks && prof_report_ring_start(&walk->ring, BLOCKS, read_ahead, walk);
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
    if (walk->ahead) {
        prof_report_ring_change(&walk->ring, PROF_RING_STOPPED);
        prof_report_ring_join(&walk->ring);
    }
    free(walk->blocks);
    enum prof_status status = prof_events_close(walk->events, err);
    free(walk);
    return status;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

#define FEWEST 4 /* leaves of a tree */

static bool lane_fits(struct prof_report_lane *lane, int64_t start, int64_t end)
{
    while (lane->ends.count && lane->ends.data[lane->ends.count - 1] <= start)
        lane->ends.count--;
    return !lane->ends.count || end <= lane->ends.data[lane->ends.count - 1];
}

static struct prof_report_lane_group *lane_group(struct prof_report_lanes *lanes, uint64_t key)
{
    const uint64_t *known = prof_map_get(&lanes->groups_of, key);
    if (known)
        return &lanes->groups.data[*known];
    struct prof_report_lane_group *group = prof_array_add(&lanes->groups);
    if (!group)
        return NULL;
    *group = (struct prof_report_lane_group){0};
    return prof_map_put(&lanes->groups_of, key, lanes->groups.count - 1) ? group : NULL;
}

/* ---- the tree: node n has the minimum of 2n and 2n + 1, leaves are the ends of lanes --------- */

static int64_t min_child_end(const struct prof_report_lane_group *group, size_t node)
{
    int64_t left = group->least.data[2 * node], right = group->least.data[2 * node + 1];
    return left < right ? left : right;
}

static void set_end(struct prof_report_lane_group *group, size_t number, int64_t end)
{
    size_t node = group->leaves + number;
    group->least.data[node] = end;
    while (node /= 2)
        group->least.data[node] = min_child_end(group, node);
}

/* Room for one lane more. */
static bool grow_lane_group(struct prof_report_lane_group *group)
{
    size_t before = group->leaves, leaves = before ? 2 * before : FEWEST;
    if (group->lanes.count < before)
        return true;
    group->least.count = 0;
    if (!prof_array_reserve(&group->least, 2 * leaves))
        return false;
    for (size_t i = before; i-- > 0;)
        group->least.data[leaves + i] = group->least.data[before + i];
    for (size_t i = before; i < leaves; i++)
        group->least.data[leaves + i] = INT64_MAX; /* no lane */
    group->leaves = leaves;
    for (size_t node = leaves; --node;)
        group->least.data[node] = min_child_end(group, node);
    return true;
}

/* The first lane that is free at `start`; as many as there are when none is. */
static size_t first_free(const struct prof_report_lane_group *group, int64_t start)
{
    size_t node = 1;
    if (!group->lanes.count || group->least.data[1] > start)
        return group->lanes.count;
    while (node < group->leaves)
        node = group->least.data[2 * node] <= start ? 2 * node : 2 * node + 1;
    size_t number = node - group->leaves;
    return number < group->lanes.count ? number : group->lanes.count;
}

/* ---- both kinds ------------------------------------------------------------------------------ */

static size_t first_around(struct prof_report_lanes *lanes,
                           const struct prof_report_lane_group *group, int64_t start, int64_t end)
{
    size_t number = 0;
    while (number < group->lanes.count &&
           !lane_fits(&lanes->lanes.data[group->lanes.data[number]], start, end))
        number++;
    return number;
}

static bool add_lane(struct prof_report_lanes *lanes, struct prof_report_lane_group *group)
{
    struct prof_report_lane *lane = prof_array_add(&lanes->lanes);
    if (!lane)
        return false;
    *lane = (struct prof_report_lane){0}; /* before what may fail: all lanes are freed */
    if (!grow_lane_group(group))
        return false;
    size_t *slot = prof_array_add(&group->lanes);
    if (slot)
        *slot = lanes->lanes.count - 1;
    return slot != NULL;
}

struct prof_report_lane *prof_report_lane(struct prof_report_lanes *lanes, uint64_t key,
                                          int64_t start, int64_t end, bool nests, size_t *number,
                                          bool *fresh)
{
    struct prof_report_lane_group *group = lane_group(lanes, key);
    if (!group)
        return NULL;
    *number = nests ? first_around(lanes, group, start, end) : first_free(group, start);
    *fresh = *number == group->lanes.count;
    if (*fresh && !add_lane(lanes, group))
        return NULL;
    struct prof_report_lane *lane = &lanes->lanes.data[group->lanes.data[*number]];
    if (!nests) {
        set_end(group, *number, end);
        return lane;
    }
    int64_t *open = prof_array_add(&lane->ends);
    if (!open)
        return NULL;
    *open = end;
    return lane;
}

void prof_report_lanes_free(struct prof_report_lanes *lanes)
{
    for (size_t i = 0; i < lanes->lanes.count; i++)
        prof_array_free(&lanes->lanes.data[i].ends);
    for (size_t i = 0; i < lanes->groups.count; i++) {
        prof_array_free(&lanes->groups.data[i].lanes);
        prof_array_free(&lanes->groups.data[i].least);
    }
    prof_array_free(&lanes->lanes);
    prof_array_free(&lanes->groups);
    prof_map_free(&lanes->groups_of);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

enum prof_status prof_report_stacks_open(struct prof_report_stacks *s, struct prof_capture *capture,
                                         struct prof_error *err)
{
    *s = (struct prof_report_stacks){0};
    enum prof_status status = prof_stacks_open(capture, &s->stacks, err);
    if (!status && !prof_stacks_count(s->stacks)) {
        prof_stacks_close(s->stacks);
        s->stacks = NULL;
    }
    return status;
}

void prof_report_stacks_close(struct prof_report_stacks *s)
{
    prof_stacks_close(s->stacks);
    prof_map_free(&s->leaves);
    prof_map_free(&s->children);
    prof_map_free(&s->place_of);
    prof_array_free(&s->nodes);
    prof_array_free(&s->places);
    *s = (struct prof_report_stacks){0};
}

static bool frame_number(struct prof_report_stacks *s, uint32_t number, uint32_t *place)
{
    const uint64_t *known = prof_map_get(&s->place_of, number);
    if (known) {
        *place = (uint32_t)*known;
        return true;
    }
    uint32_t *slot = prof_array_add(&s->places);
    if (!slot)
        return false;
    *slot = number;
    *place = (uint32_t)(s->places.count - 1);
    return prof_map_put(&s->place_of, number, *place);
}

static bool child_of(struct prof_report_stacks *s, uint32_t parent, uint32_t number, uint32_t *node)
{
    uint32_t place;
    if (!frame_number(s, number, &place))
        return false;
    uint64_t key = (uint64_t)parent << 32 | place;
    const uint64_t *known = prof_map_get(&s->children, key);
    if (known) {
        *node = (uint32_t)*known;
        return true;
    }
    struct prof_report_stack_node *slot = prof_array_add(&s->nodes);
    if (!slot)
        return false;
    *slot = (struct prof_report_stack_node){parent, place};
    *node = (uint32_t)s->nodes.count;
    return prof_map_put(&s->children, key, *node);
}

bool prof_report_stacks_node(struct prof_report_stacks *s, int64_t stack, uint32_t *node)
{
    const struct prof_frame *frames;
    *node = 0;
    if (!s->stacks || stack <= 0)
        return true;
    const uint64_t *known = prof_map_get(&s->leaves, (uint64_t)stack);
    if (known) {
        *node = (uint32_t)*known;
        return true;
    }
    size_t count = prof_stack_frames(s->stacks, stack, &frames);
    for (size_t i = 0; i < count; i++) {
        if (!child_of(s, *node, frames[i].number, node))
            return false;
    }
    return prof_map_put(&s->leaves, (uint64_t)stack, *node);
}

const struct prof_frame *prof_report_stacks_frame(const struct prof_report_stacks *s,
                                                  uint32_t place)
{
    const struct prof_frame *places;
    prof_stacks_places(s->stacks, &places);
    return &places[s->places.data[place]];
}
