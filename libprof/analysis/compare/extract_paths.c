/* Where things happen: the names of the NVTX ranges around them, outermost first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/compare/extract.h"

#define MAX_BYTES 480

/* The last path that there is room for holds all that come after it. */
static const char others[] = "(others)";

static uint32_t path_number(struct prof_extract *x, const char *text, size_t length)
{
    uint32_t *known = prof_names_get(&x->path_index, text, length);
    if (!known && x->paths.count >= PROF_EXTRACT_MAX_PATHS - 1) {
        text = others;
        length = sizeof others - 1;
        known = prof_names_get(&x->path_index, text, length);
    }
    if (known)
        return *known;
    const char **slot = prof_array_add(&x->paths);
    if (!slot) {
        x->failed = true;
        return 0;
    }
    *slot = prof_run_text(x->run, text, length, &x->failed);
    if (!*slot || !prof_names_put(&x->path_index, text, length, (uint32_t)x->paths.count - 1)) {
        x->failed = true;
        *slot = "";
    }
    return (uint32_t)x->paths.count - 1;
}

/* Parents stand before their children in the index: no recursion deeper than what is not made yet.
 */
uint32_t prof_extract_path_of_node(struct prof_extract *x, uint32_t node)
{
    const struct prof_range_node *n = &x->facts.ranges.nodes.data[node];
    if (x->path_of_node[node])
        return x->path_of_node[node] - 1;
    uint32_t chain[64];
    size_t depth = 0;
    uint32_t up = node;
    for (; up != PROF_NO_RANGE && !x->path_of_node[up] && depth < 64;
         up = x->facts.ranges.nodes.data[up].parent)
        chain[depth++] = up;
    uint32_t path = up == PROF_NO_RANGE || !x->path_of_node[up] ? 0 : x->path_of_node[up] - 1;
    while (depth--) {
        char text[2 * MAX_BYTES];
        n = &x->facts.ranges.nodes.data[chain[depth]];
        const char *name = x->facts.range_texts.list.data[n->group];
        const char *around = x->paths.data[path];
        int length = snprintf(text, MAX_BYTES, "%s%s%s", around, *around ? "/" : "",
                              name ? name : "(unnamed)");
        path = path_number(x, text, length < MAX_BYTES ? (size_t)length : MAX_BYTES - 1);
        x->path_of_node[chain[depth]] = path + 1;
    }
    return path;
}

uint32_t prof_extract_path(struct prof_extract *x, int64_t thread, int64_t time)
{
    struct prof_range_thread *t = prof_range_thread(&x->facts.ranges, thread);
    uint32_t best = PROF_NO_RANGE;
    const struct prof_range_node *nodes = x->facts.ranges.nodes.data;
    for (size_t l = 0; t && l < t->lanes.count; l++) {
        if (t->lanes.data[l].domain && prof_lane_declares_work(&x->facts, &t->lanes.data[l]))
            continue;
        uint32_t node = prof_range_at(&x->facts.ranges, &t->lanes.data[l], time);
        if (node != PROF_NO_RANGE &&
            (best == PROF_NO_RANGE || nodes[node].begin > nodes[best].begin))
            best = node;
    }
    return best == PROF_NO_RANGE ? 0 : prof_extract_path_of_node(x, best);
}
