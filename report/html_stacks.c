/* Call stacks for the page: a program has few different ones, and they share their outer frames. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/utf8.h"
#include "report/html_stacks.h"

#define FUNCTION_CELLS 240 /* names of C++ may have kilobytes */

enum prof_status prof_html_stacks_open(struct prof_html_stacks *s, struct prof_capture *capture,
                                       struct prof_error *err)
{
    *s = (struct prof_html_stacks){0};
    enum prof_status status = prof_stacks_open(capture, &s->stacks, err);
    if (!status && !prof_stacks_count(s->stacks)) {
        prof_stacks_close(s->stacks);
        s->stacks = NULL;
    }
    return status;
}

void prof_html_stacks_close(struct prof_html_stacks *s)
{
    prof_stacks_close(s->stacks);
    prof_map_free(&s->numbers);
    prof_array_free(&s->list);
    *s = (struct prof_html_stacks){0};
}

bool prof_html_stacks_number(struct prof_html_stacks *s, int64_t stack, uint32_t *number)
{
    *number = 0;
    if (!s->stacks || stack <= 0)
        return true;
    const uint64_t *known = prof_map_get(&s->numbers, (uint64_t)stack);
    if (!known) {
        int64_t *slot = prof_array_add(&s->list);
        if (!slot || !prof_map_put(&s->numbers, (uint64_t)stack, s->list.count))
            return false;
        *slot = stack;
    }
    *number = known ? (uint32_t)*known : (uint32_t)s->list.count;
    return true;
}

/* ---- the tree ----------------------------------------------------------------------------------
 */

struct node {
    uint32_t parent; /* + 1 */
    uint32_t place;  /* as written */
};

struct tree {
    struct prof_map known; /* parent and place -> node */
    PROF_ARRAY(struct node) nodes;
    PROF_ARRAY(uint32_t) leaves;
    struct prof_map written; /* number of prof_stacks_places -> as written */
    PROF_ARRAY(uint32_t) places;
};

static bool place_of(struct tree *t, uint32_t number, uint32_t *place)
{
    const uint64_t *known = prof_map_get(&t->written, number);
    if (known) {
        *place = (uint32_t)*known;
        return true;
    }
    uint32_t *slot = prof_array_add(&t->places);
    if (!slot)
        return false;
    *slot = number;
    *place = (uint32_t)(t->places.count - 1);
    return prof_map_put(&t->written, number, *place);
}

static bool add_node(struct tree *t, uint32_t parent, uint32_t number, uint32_t *node)
{
    uint32_t place;
    if (!place_of(t, number, &place))
        return false;
    uint64_t key = (uint64_t)parent << 32 | place;
    const uint64_t *known = prof_map_get(&t->known, key);
    if (known) {
        *node = (uint32_t)*known;
        return true;
    }
    struct node *slot = prof_array_add(&t->nodes);
    if (!slot)
        return false;
    *slot = (struct node){parent, place};
    *node = (uint32_t)t->nodes.count; /* + 1 */
    return prof_map_put(&t->known, key, *node);
}

static bool add_stack(struct tree *t, struct prof_html_stacks *s, int64_t stack)
{
    const struct prof_frame *frames;
    size_t count = prof_stack_frames(s->stacks, stack, &frames);
    uint32_t node = 0;
    for (size_t i = 0; i < count; i++) {
        if (!add_node(t, node, frames[i].number, &node))
            return false;
    }
    uint32_t *leaf = prof_array_add(&t->leaves);
    if (leaf)
        *leaf = node;
    return leaf != NULL;
}

static bool put_place(struct prof_json *json, const struct prof_frame *place)
{
    char *function = prof_report_fit(place->function, FUNCTION_CELLS);
    if (!function)
        return false;
    prof_json_array(json, NULL);
    prof_json_string(json, NULL, function);
    prof_json_string(json, NULL, place->file);
    prof_json_known(json, NULL, place->line);
    prof_json_string(json, NULL, place->module);
    prof_json_int(json, NULL, prof_frame_nearness(place));
    prof_json_end(json);
    free(function);
    return true;
}

static bool put_tree(struct prof_json *json, struct prof_html_stacks *s, const struct tree *t)
{
    const struct prof_frame *places;
    bool ok = true;
    prof_stacks_places(s->stacks, &places);
    prof_json_object(json, "stacks");
    prof_json_array(json, "places");
    for (size_t i = 0; ok && i < t->places.count; i++)
        ok = put_place(json, &places[t->places.data[i]]);
    prof_json_end(json);
    prof_json_array(json, "nodes");
    for (size_t i = 0; i < t->nodes.count; i++) {
        prof_json_uint(json, NULL, t->nodes.data[i].parent);
        prof_json_uint(json, NULL, t->nodes.data[i].place);
    }
    prof_json_end(json);
    prof_json_array(json, "leaves");
    for (size_t i = 0; i < t->leaves.count; i++)
        prof_json_uint(json, NULL, t->leaves.data[i]);
    prof_json_end(json);
    prof_json_end(json);
    return ok;
}

bool prof_html_stacks_put(struct prof_json *json, struct prof_html_stacks *s)
{
    struct tree t = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < s->list.count; i++)
        ok = add_stack(&t, s, s->list.data[i]);
    ok = ok && put_tree(json, s, &t);
    prof_map_free(&t.known);
    prof_map_free(&t.written);
    prof_array_free(&t.nodes);
    prof_array_free(&t.leaves);
    prof_array_free(&t.places);
    return ok;
}
