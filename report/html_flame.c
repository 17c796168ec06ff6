/* The flame graph as data: the stacks that launched the device's work, moved its bytes and
 * made it wait. One tree for all: a node has its sums with all below it. And the callers of each
 * kernel. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/saturate.h"
#include "report/html.h"

/* What a page can draw without becoming slow. */
#define NODES 20000
#define CALLERS 10 /* stacks of a kernel */
#define CALLED_KERNELS 100

struct sums {
    int64_t ns, bytes, idle;
};

struct tree {
    const struct prof_flame *flame;
    struct sums *sums; /* of each node, with all below it */
    double *weight;    /* its largest share of a measure */
    uint32_t *place;   /* among those that are written */
};

/* Parents stand before their children, so backwards every node is whole when it is added. */
static void sum_flame_weights(struct tree *t)
{
    const struct prof_flame_node *nodes = t->flame->nodes;
    for (size_t i = t->flame->count; i-- > 0;) {
        struct sums *sums = &t->sums[i], *above = &t->sums[nodes[i].parent];
        sums->ns = prof_add(sums->ns, nodes[i].device_ns);
        sums->bytes = prof_add(sums->bytes, nodes[i].bytes);
        sums->idle = prof_add(sums->idle, nodes[i].idle_ns);
        if (!i)
            continue;
        above->ns = prof_add(above->ns, sums->ns);
        above->bytes = prof_add(above->bytes, sums->bytes);
        above->idle = prof_add(above->idle, sums->idle);
    }
}

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

PROF_ORDER(largest_weight_first, double, PROF_COMPARE(*y, *x))

/* The smallest weight that is drawn: with it at most NODES stay. A parent's is never below its
 * child's, so what stays is a tree. NaN = out of memory. */
static double min_drawn_weight(const struct tree *t)
{
    size_t count = t->flame->count;
    if (count <= NODES)
        return 0;
    PROF_FREED double *sorted = malloc(count * sizeof *sorted);
    if (!sorted)
        return NAN;
    for (size_t i = 0; i < count; i++)
        sorted[i] = t->weight[i];
    qsort(sorted, count, sizeof *sorted, largest_weight_first);
    return nextafter(sorted[NODES], INFINITY);
}

/* Of the host's frames: where in the source, else in which object. */
static void put_frame_location(struct prof_json *json, const struct prof_flame_node *node)
{
    const struct prof_frame *place = node->kind == PROF_FLAME_FRAME ? node->frame : NULL;
    if (!place || !(place->file || place->module))
        return;
    prof_json_string(json, NULL, place->file ? place->file : place->module);
    if (place->file && place->line != PROF_UNKNOWN)
        prof_json_int(json, NULL, place->line);
}

static void put_nodes(struct prof_json *json, struct tree *t, double floor)
{
    static const char *const kinds[] = {
        [PROF_FLAME_ROOT] = "root",     [PROF_FLAME_PROCESS] = "process",
        [PROF_FLAME_RANGE] = "range",   [PROF_FLAME_API] = "api",
        [PROF_FLAME_KERNEL] = "kernel", [PROF_FLAME_TRANSFER] = "transfer",
        [PROF_FLAME_MEMSET] = "memset", [PROF_FLAME_MEMORY] = "memory",
        [PROF_FLAME_FRAME] = "frame",   [PROF_FLAME_THREAD] = "thread",
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
        prof_json_int(json, NULL, t->sums[i].ns);
        prof_json_int(json, NULL, t->sums[i].bytes);
        prof_json_int(json, NULL, node->count);
        prof_json_int(json, NULL, t->sums[i].idle);
        put_frame_location(json, node);
        prof_json_end(json);
    }
    prof_json_end(json);
    prof_json_uint(json, "left_out", t->flame->count - next);
}

/* Of each kernel the stacks that launched most of it. */
static void put_callers(struct prof_json *json, const struct prof_caller_sums *sums)
{
    size_t kernels = 0, of_kernel = 0;
    prof_json_array(json, "callers");
    for (size_t i = 0; i < sums->count; i++) {
        const struct prof_caller_row *row = &sums->rows[i], *before = i ? row - 1 : NULL;
        bool same = before && before->kind == row->kind && strcmp(before->work, row->work) == 0;
        of_kernel = same ? of_kernel + 1 : 0;
        kernels += !same && row->kind == PROF_FLAME_KERNEL;
        if (row->kind != PROF_FLAME_KERNEL || !row->depth || of_kernel >= CALLERS ||
            kernels > CALLED_KERNELS)
            continue;
        prof_json_array(json, NULL);
        prof_json_string(json, NULL, row->work);
        prof_json_int(json, NULL, row->cost.device_ns);
        prof_json_int(json, NULL, row->cost.count);
        prof_json_int(json, NULL, row->cost.idle_ns);
        prof_json_array(json, NULL);
        for (size_t k = row->told; k < row->depth; k++) {
            char text[400];
            prof_frame_text(&sums->places[row->path[k]], text, sizeof text);
            prof_json_string(json, NULL, text);
        }
        prof_json_end(json);
        prof_json_end(json);
    }
    prof_json_end(json);
}

enum prof_status prof_html_put_flame_tree(struct prof_json *json, const struct prof_flame *flame,
                                          struct prof_error *err)
{
    size_t room = flame->count + 1;
    struct tree t = {flame, calloc(room, sizeof *t.sums), calloc(room, sizeof *t.weight),
                     calloc(room, sizeof *t.place)};
    double floor = NAN;
    if (t.sums && t.weight && t.place) {
        sum_flame_weights(&t);
        for (size_t i = 0; i < flame->count; i++)
            t.weight[i] = fmax(
                fmax(share(t.sums[i].ns, t.sums[0].ns), share(t.sums[i].bytes, t.sums[0].bytes)),
                share(t.sums[i].idle, t.sums[0].idle));
        floor = min_drawn_weight(&t);
    }
    bool failed = isnan(floor);
    if (!failed) {
        prof_json_object(json, "flame");
        put_nodes(json, &t, floor);
        prof_json_end(json);
    }
    free(t.sums);
    free(t.weight);
    free(t.place);
    return failed ? prof_fail(err, PROF_NOMEM, "cannot write the flame graph: out of memory")
                  : PROF_OK;
}

enum prof_status prof_html_put_flame(struct prof_json *json, const struct prof_html_page *page,
                                     struct prof_error *err)
{
    enum prof_status status = prof_html_put_flame_tree(json, &page->flame, err);
    if (!status)
        put_callers(json, &page->callers);
    return status;
}
