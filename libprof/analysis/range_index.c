/* The index of NVTX ranges by thread and time; see range_index.h. It holds ranges (about 48 bytes
 * each), never the calls and kernels, of which there are many more: those stream past and look
 * themselves up. */
#include <stdlib.h>

#include "libprof/analysis/range_index.h"
#include "libprof/base/saturate.h"

#define MAX_LANES 256 /* per thread; ranges after those enclose nothing */

static struct prof_range_thread *range_thread_of(struct prof_range_index *index, int64_t thread)
{
    bool fresh;
    uint32_t number = prof_group_number(&index->by_thread, (uint64_t)thread, &fresh);
    if (number == PROF_NO_GROUP)
        return NULL;
    if (fresh) {
        struct prof_range_thread *t = prof_array_add(&index->threads);
        if (!t)
            return NULL;
        *t = (struct prof_range_thread){.thread = thread};
    }
    return &index->threads.data[number];
}

/* Close what ended; true when the node then nests in this lane. */
static bool nests(struct prof_range_index *index, struct prof_range_lane *lane,
                  const struct prof_range_node *node)
{
    const struct prof_range_node *nodes = index->nodes.data;
    while (lane->top != PROF_NO_RANGE && nodes[lane->top].end <= node->begin &&
           nodes[lane->top].begin < node->begin)
        lane->top = nodes[lane->top].parent;
    return lane->top == PROF_NO_RANGE || node->end <= nodes[lane->top].end;
}

static struct prof_range_lane *lane_for(struct prof_range_index *index,
                                        struct prof_range_thread *thread,
                                        const struct prof_range_node *node, int64_t domain,
                                        bool push_pop)
{
    for (size_t i = 0; i < thread->lanes.count; i++) {
        struct prof_range_lane *lane = &thread->lanes.data[i];
        if (lane->domain == domain && lane->push_pop == push_pop && nests(index, lane, node))
            return lane;
    }
    struct prof_range_lane *lane = prof_array_add(&thread->lanes);
    if (lane)
        *lane =
            (struct prof_range_lane){.top = PROF_NO_RANGE, .domain = domain, .push_pop = push_pop};
    return lane;
}

static bool append_range_node(struct prof_range_index *index, const struct prof_event_row *row,
                              uint32_t group)
{
    struct prof_range_thread *thread = range_thread_of(index, row->thread);
    struct prof_range_node *node = prof_array_add(&index->nodes);
    if (!thread || !node)
        return false;
    uint32_t number = (uint32_t)(index->nodes.count - 1);
    *node = (struct prof_range_node){
        .begin = row->start_ns,
        .end = row->duration_ns == PROF_UNKNOWN ? INT64_MAX
                                                : prof_add(row->start_ns, row->duration_ns),
        .parent = PROF_NO_RANGE,
        .group = group,
        .sequence = number,
        .thread = (uint32_t)(thread - index->threads.data),
    };
    bool push_pop = row->depth != PROF_UNKNOWN;
    struct prof_range_lane *lane = lane_for(index, thread, node, row->domain, push_pop);
    if (!lane)
        return false;
    if (thread->lanes.count > MAX_LANES) {
        thread->lanes.count--;
        return true;
    }
    uint32_t *slot = NULL;
    if (prof_array_room(&lane->nodes, &lane->capacity, lane->count + 1, sizeof *lane->nodes))
        slot = &lane->nodes[lane->count++];
    if (!slot)
        return false;
    *slot = number;
    node->parent = lane->top;
    lane->top = number;
    return true;
}

/* Ranges of one start come from the file in order of id, which is that of their ends: inner first.
 * They are gathered and taken outer first. */
struct batch {
    PROF_ARRAY(struct prof_event_row) rows;
};

static int outer_range_first(const void *a, const void *b)
{
    const struct prof_event_row *x = a, *y = b;
    int64_t dx = x->duration_ns == PROF_UNKNOWN ? INT64_MAX : x->duration_ns;
    int64_t dy = y->duration_ns == PROF_UNKNOWN ? INT64_MAX : y->duration_ns;
    return PROF_COMPARE(dy, dx) ?: PROF_COMPARE(x->depth, y->depth) ?: PROF_COMPARE(y->id, x->id);
}

static bool take_batch(struct prof_range_index *index, struct batch *batch,
                       prof_range_grouper *grouper, void *user)
{
    if (batch->rows.count > 1)
        prof_array_sort(&batch->rows, outer_range_first);
    for (size_t i = 0; i < batch->rows.count; i++) {
        uint32_t group = grouper(user, &batch->rows.data[i]);
        if (group == PROF_NO_GROUP || !append_range_node(index, &batch->rows.data[i], group))
            return false;
    }
    batch->rows.count = 0;
    return true;
}

struct reading {
    struct prof_range_index *index;
    struct batch batch;
    prof_range_grouper *grouper;
    void *user;
};

static bool read_range(void *user, const struct prof_event_row *row)
{
    struct reading *r = user;
    bool ends_batch = r->batch.rows.count && r->batch.rows.data[0].start_ns != row->start_ns;
    if (ends_batch && !take_batch(r->index, &r->batch, r->grouper, r->user))
        return false;
    return prof_array_push(&r->batch.rows, *row) && r->index->nodes.count < PROF_NO_RANGE - 2;
}

enum prof_status prof_range_index_open(struct prof_range_index *index, struct prof_capture *capture,
                                       const struct prof_scope *scope, prof_range_grouper *grouper,
                                       void *user, struct prof_error *err)
{
    *index = (struct prof_range_index){0};
    struct prof_scope any_time = *scope;
    any_time.by_time = false;
    struct prof_event_query query = {
        .tables = PROF_OPS(RANGE),
        .fields = PROF_FIELD(DURATION) | PROF_FIELD(THREAD) | PROF_FIELD(NAME) |
                  PROF_FIELD(DOMAIN) | PROF_FIELD(DEPTH),
        .scope = &any_time,
        .started = true,
        .in_order = true,
    };
    struct reading r = {index, {{0}}, grouper, user};
    enum prof_status status = prof_event_rows(capture, &query, read_range, &r, err);
    if (!status && !take_batch(index, &r.batch, grouper, user))
        status = prof_out_of_memory(err);
    prof_array_free(&r.batch.rows);
    return status;
}

void prof_range_index_close(struct prof_range_index *index)
{
    for (size_t i = 0; i < index->threads.count; i++) {
        struct prof_range_thread *t = &index->threads.data[i];
        for (size_t l = 0; l < t->lanes.count; l++)
            free(t->lanes.data[l].nodes);
        prof_array_free(&t->lanes);
    }
    prof_array_free(&index->threads);
    prof_array_free(&index->nodes);
    prof_map_free(&index->by_thread);
}

struct prof_range_thread *prof_range_thread(struct prof_range_index *index, int64_t thread)
{
    uint64_t *number = prof_map_get(&index->by_thread, (uint64_t)thread);
    return number ? &index->threads.data[*number] : NULL;
}

/* Position of the last node of the lane that begins at or before `time`, or -1. Calls come nearly
 * in order, so the answer is mostly where the last one was. */
static ptrdiff_t last_begun(const struct prof_range_index *index, struct prof_range_lane *lane,
                            int64_t time)
{
    const struct prof_range_node *nodes = index->nodes.data;
    size_t hint = lane->hint;
    hint += hint + 1 < lane->count && nodes[lane->nodes[hint + 1]].begin <= time;
    lane->hint = hint;
    if (hint < lane->count && nodes[lane->nodes[hint]].begin <= time &&
        (hint + 1 == lane->count || nodes[lane->nodes[hint + 1]].begin > time))
        return (ptrdiff_t)hint;
    size_t low;
    PROF_FIND_FIRST(low, at, lane->count, nodes[lane->nodes[at]].begin > time);
    lane->hint = low ? low - 1 : 0;
    return (ptrdiff_t)low - 1;
}

uint32_t prof_range_at(const struct prof_range_index *index, struct prof_range_lane *lane,
                       int64_t time)
{
    ptrdiff_t at = last_begun(index, lane, time);
    uint32_t node = at < 0 ? PROF_NO_RANGE : lane->nodes[at];
    while (node != PROF_NO_RANGE && index->nodes.data[node].end <= time)
        node = index->nodes.data[node].parent;
    return node;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* A prof_range_grouper; `user` is the struct prof_range_groups. */
static uint32_t range_group_of(void *user, const struct prof_event_row *row)
{
    struct prof_range_groups *groups = user;
    uint32_t name = prof_texts_number(&groups->texts, groups->capture, row->name);
    uint32_t domain = prof_texts_number(&groups->texts, groups->capture, row->domain);
    if (name == PROF_NO_GROUP || domain == PROF_NO_GROUP)
        return PROF_NO_GROUP;
    enum prof_range_style style =
        row->depth == PROF_UNKNOWN ? PROF_RANGE_START_END : PROF_RANGE_PUSH_POP;
    bool fresh;
    uint64_t key = (uint64_t)name << 32 | (uint64_t)domain << 1 | (uint64_t)style;
    uint32_t number = prof_group_number(&groups->by_key, key, &fresh);
    if (fresh && number != PROF_NO_GROUP) {
        struct prof_range_group *group = prof_array_add(&groups->list);
        if (!group)
            return PROF_NO_GROUP;
        *group = (struct prof_range_group){groups->texts.list.data[name],
                                           groups->texts.list.data[domain], style};
    }
    return number;
}

enum prof_status prof_ranges_open(struct prof_ranges *ranges, struct prof_capture *capture,
                                  const struct prof_filter *filter, struct prof_error *err)
{
    *ranges = (struct prof_ranges){.capture = capture, .names.capture = capture};
    PROF_TRY(prof_scope_open(&ranges->scope, capture, filter, err));
    ranges->any_time = ranges->scope;
    ranges->any_time.by_time = false;
    struct prof_scope places = prof_scope_of_ranges(&ranges->scope);
    return prof_range_index_open(&ranges->index, capture, &places, range_group_of, &ranges->names,
                                 err);
}

void prof_ranges_close(struct prof_ranges *ranges)
{
    prof_array_free(&ranges->names.list);
    prof_map_free(&ranges->names.by_key);
    prof_texts_free(&ranges->names.texts);
    prof_range_index_close(&ranges->index);
    prof_scope_close(&ranges->scope);
}
