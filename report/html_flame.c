/* The flame graph as data: who asked for the device's time, and for the bytes that it moved. One
 * tree for both: a node has its time and its bytes with all below it. */
#include <math.h>
#include <stdlib.h>

#include "libprof/base/saturate.h"
#include "report/html_panels.h"

/* What a page can draw without becoming slow. */
#define NODES 20000

struct tree {
    const struct prof_flame *flame;
    int64_t *bytes;  /* of each node, with all below it */
    double *weight;  /* its share of time or of bytes, whichever is more */
    uint32_t *place; /* among those that are written */
};

/* Parents stand before their children, so backwards every node is whole when it is added. */
static void sum_bytes(struct tree *t)
{
    const struct prof_flame_node *nodes = t->flame->nodes;
    for (size_t i = t->flame->count; i-- > 0;) {
        t->bytes[i] = prof_add(t->bytes[i], nodes[i].bytes);
        if (i)
            t->bytes[nodes[i].parent] = prof_add(t->bytes[nodes[i].parent], t->bytes[i]);
    }
}

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static int largest_first(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* The smallest weight that is drawn: with it at most NODES stay. A parent's is never below its
 * child's, so what stays is a tree. NaN = out of memory. */
static double floor_of(const struct tree *t)
{
    size_t count = t->flame->count;
    if (count <= NODES)
        return 0;
    double *sorted = malloc(count * sizeof *sorted);
    if (!sorted)
        return NAN;
    for (size_t i = 0; i < count; i++)
        sorted[i] = t->weight[i];
    qsort(sorted, count, sizeof *sorted, largest_first);
    double floor = nextafter(sorted[NODES], INFINITY);
    free(sorted);
    return floor;
}

static void put_nodes(struct prof_json *json, struct tree *t, double floor)
{
    static const char *const kinds[] = {
        [PROF_FLAME_ROOT] = "root",     [PROF_FLAME_PROCESS] = "process",
        [PROF_FLAME_RANGE] = "range",   [PROF_FLAME_API] = "api",
        [PROF_FLAME_KERNEL] = "kernel", [PROF_FLAME_TRANSFER] = "transfer",
        [PROF_FLAME_MEMSET] = "memset", [PROF_FLAME_MEMORY] = "memory",
        [PROF_FLAME_FRAME] = "frame",
    };
    uint32_t next = 0;
    prof_json_array(json, "nodes");
    for (size_t i = 0; i < t->flame->count; i++) {
        const struct prof_flame_node *node = &t->flame->nodes[i];
        if (i && t->weight[i] < floor)
            continue;
        t->place[i] = next++;
        prof_json_array(json, NULL);
        prof_json_int(json, NULL, i ? (int64_t)t->place[node->parent] : -1);
        prof_json_string(json, NULL, kinds[node->kind]);
        prof_json_string(json, NULL, i ? node->name : "all");
        prof_json_int(json, NULL, node->total);
        prof_json_int(json, NULL, t->bytes[i]);
        prof_json_int(json, NULL, node->count);
        prof_json_end(json);
    }
    prof_json_end(json);
    prof_json_uint(json, "left_out", t->flame->count - next);
}

enum prof_status prof_html_put_flame(struct prof_json *json, const struct prof_html_page *page,
                                     struct prof_error *err)
{
    const struct prof_flame *flame = &page->flame;
    size_t room = flame->count + 1;
    struct tree t = {flame, calloc(room, sizeof *t.bytes), calloc(room, sizeof *t.weight),
                     calloc(room, sizeof *t.place)};
    double floor = NAN;
    if (t.bytes && t.weight && t.place) {
        sum_bytes(&t);
        for (size_t i = 0; i < flame->count; i++)
            t.weight[i] = fmax(share(flame->nodes[i].total, flame->nodes[0].total),
                               share(t.bytes[i], t.bytes[0]));
        floor = floor_of(&t);
    }
    bool failed = isnan(floor);
    if (!failed) {
        prof_json_object(json, "flame");
        put_nodes(json, &t, floor);
        prof_json_end(json);
    }
    free(t.bytes);
    free(t.weight);
    free(t.place);
    return failed ? prof_fail(err, PROF_NOMEM, "cannot write the flame graph: out of memory")
                  : PROF_OK;
}
