/* A program has few different stacks, and they share their outer frames; see stacks.h. */
#include "report/stacks.h"

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
