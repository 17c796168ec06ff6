/* The flame graph. Its tree as text, a line for each distinct stack: folded stacks for flamegraph.pl,
 * speedscope and their kin, "range;range;call;kernel NANOSECONDS", sorted by bytes so that two
 * captures can be compared with diff; the same of two captures in one file, `stack BASE CAND` (a
 * stack that one side lacks has 0 there). Weights that are 0 are left out: no tool shows them.
 * And as samples for profile formats: frames are numbered and stacks in the order of a walk over
 * the tree, so that viewers which draw samples one after another show equal callers as one. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/array.h"
#include "libprof/base/map.h"
#include "libprof/base/saturate.h"
#include "libprof/base/utf8.h"
#include "libprof/include/prof_stack.h"
#include "report/flame.h"
#include "report/gate.h"
#include "report/html.h"
#include "report/writers.h"

struct prof_flame_line {
    char *stack;    /* "range;range;call;kernel", clean */
    int64_t weight; /* more than 0 */
};

struct prof_flame_lines {
    struct prof_flame_line *rows;
    size_t count;
};

PROF_ORDER(by_stack, struct prof_flame_line, strcmp(x->stack, y->stack))

static char *flame_line_path(const struct prof_flame *flame, size_t node)
{
    size_t length = prof_flame_path(flame, node, NULL, 0);
    PROF_FREED char *stack = malloc(length + 1);
    if (!stack)
        return NULL;
    prof_flame_path(flame, node, stack, length + 1);
    char *clean = prof_report_clean(stack); /* the tools put names into SVG as they are */
    return clean;
}

static bool collect_flame_lines(const struct prof_flame *flame, struct prof_flame_lines *result)
{
    for (size_t i = 1; i < flame->count; i++) {
        if (flame->nodes[i].self <= 0)
            continue;
        char *stack = flame_line_path(flame, i);
        if (!stack)
            return false;
        result->rows[result->count++] = (struct prof_flame_line){stack, flame->nodes[i].self};
    }
    return true;
}

/* Different names may fold to the same text (';' becomes ':'): such lines are one. */
static void merge_flame_lines(struct prof_flame_lines *lines)
{
    size_t kept = 0;
    for (size_t i = 0; i < lines->count; i++) {
        if (kept && !strcmp(lines->rows[kept - 1].stack, lines->rows[i].stack)) {
            lines->rows[kept - 1].weight += lines->rows[i].weight;
            free(lines->rows[i].stack);
        } else {
            lines->rows[kept++] = lines->rows[i];
        }
    }
    lines->count = kept;
}

static void free_flame_lines(struct prof_flame_lines *result)
{
    for (size_t i = 0; i < result->count; i++)
        free(result->rows[i].stack);
    free(result->rows);
    *result = (struct prof_flame_lines){0};
}

static enum prof_status load_flame_lines(struct prof_capture *capture,
                                         const struct prof_filter *filter,
                                         enum prof_flame_weight weight,
                                         struct prof_flame_lines *result, struct prof_error *err)
{
    struct prof_flame flame = {0};
    *result = (struct prof_flame_lines){0};
    enum prof_status status = prof_flame(capture, filter, weight, &flame, err);
    if (!status && flame.count) {
        result->rows = calloc(flame.count, sizeof *result->rows);
        if (!result->rows || !collect_flame_lines(&flame, result))
            status = prof_fail(err, PROF_NOMEM, "cannot write the flame graph: out of memory");
    }
    if (!status && result->count) {
        qsort(result->rows, result->count, sizeof *result->rows, by_stack);
        merge_flame_lines(result);
    }
    prof_flame_free(&flame);
    if (status)
        free_flame_lines(result);
    return status;
}

/* ---- folded stacks --------------------------------------------------------------------------- */

enum prof_status prof_report_write_flamegraph(struct prof_capture *capture,
                                              const struct prof_report_options *options, FILE *out,
                                              struct prof_error *err)
{
    struct prof_flame_lines lines;
    PROF_TRY(load_flame_lines(capture, options ? options->filter : NULL,
                              options ? options->weight : PROF_FLAME_DEVICE_NS, &lines, err));
    if (options && options->stacks)
        *options->stacks = lines.count;
    for (size_t i = 0; i < lines.count; i++)
        fprintf(out, "%s %" PRId64 "\n", lines.rows[i].stack, lines.rows[i].weight);
    free_flame_lines(&lines);
    return prof_report_flush(out, err);
}

/* ---- of two captures ------------------------------------------------------------------------- */

enum prof_status prof_gate_flamegraph(struct prof_capture *base, struct prof_capture *cand,
                                      FILE *out, bool is_empty[2], struct prof_error *err)
{
    struct prof_flame_lines a = {0}, b = {0};
    enum prof_status status = load_flame_lines(base, NULL, PROF_FLAME_DEVICE_NS, &a, err);
    status = status ?: load_flame_lines(cand, NULL, PROF_FLAME_DEVICE_NS, &b, err);
    is_empty[0] = a.count == 0;
    is_empty[1] = b.count == 0;
    for (size_t i = 0, j = 0; !status && (i < a.count || j < b.count);) {
        int order = i == a.count ? 1 : j == b.count ? -1 : strcmp(a.rows[i].stack, b.rows[j].stack);
        const char *stack = order <= 0 ? a.rows[i].stack : b.rows[j].stack;
        int64_t before = order <= 0 ? a.rows[i++].weight : 0;
        int64_t after = order >= 0 ? b.rows[j++].weight : 0;
        fprintf(out, "%s %" PRId64 " %" PRId64 "\n", stack, before, after);
    }
    free_flame_lines(&a);
    free_flame_lines(&b);
    return status ? status : prof_report_flush(out, err);
}

/* ---- samples --------------------------------------------------------------------------------- */

static const char *const kind_words[] = {
    [PROF_FLAME_ROOT] = "all",         [PROF_FLAME_PROCESS] = "process",
    [PROF_FLAME_RANGE] = "NVTX range", [PROF_FLAME_API] = "API call",
    [PROF_FLAME_KERNEL] = "kernel",    [PROF_FLAME_TRANSFER] = "memcpy",
    [PROF_FLAME_MEMSET] = "memset",    [PROF_FLAME_MEMORY] = "memory",
    [PROF_FLAME_FRAME] = "function",   [PROF_FLAME_THREAD] = "thread",
};

/* Ranks of one run have the same command: their pids differ. */
static bool name_processes(struct prof_report_samples *samples, const struct prof_capture *capture)
{
    const struct prof_process *all;
    samples->process_count = prof_processes(capture, &all);
    samples->process_names = calloc(samples->process_count + 1, sizeof *samples->process_names);
    if (!samples->process_names)
        return false;
    for (size_t i = 0; i < samples->process_count; i++) {
        const char *command = all[i].command ? all[i].command : "process";
        size_t size = strlen(command) + 64;
        char *name = samples->process_names[i] = malloc(size);
        if (!name)
            return false;
        if (all[i].rank == PROF_UNKNOWN)
            snprintf(name, size, "%s (pid %lld)", command, (long long)all[i].pid);
        else
            snprintf(name, size, "%s (pid %lld, rank %lld)", command, (long long)all[i].pid,
                     (long long)all[i].rank);
    }
    return true;
}

static const char *sample_frame_name(const struct prof_report_samples *samples,
                                     const struct prof_capture *capture,
                                     const struct prof_flame_node *node)
{
    const struct prof_process *all;
    prof_processes(capture, &all);
    const struct prof_process *its = prof_process(capture, node->process);
    if (node->kind == PROF_FLAME_PROCESS && its)
        return samples->process_names[its - all];
    return node->name ? node->name : "unknown";
}

/* Frames of the host's stacks say where they are, the others what they are: that is what viewers
 * show beside a name. */
static struct prof_report_frame make_sample_frame(const struct prof_flame_node *node,
                                                  const char *name)
{
    const struct prof_frame *place = node->kind == PROF_FLAME_FRAME ? node->frame : NULL;
    struct prof_report_frame frame = {name, kind_words[node->kind], kind_words[node->kind],
                                      PROF_UNKNOWN};
    if (place && (place->file || place->module))
        frame.file = place->file ? place->file : place->module;
    if (place && place->file)
        frame.line = place->line;
    return frame;
}

/* The key is the name with its kind and, for places in source, their number. */
static bool number_frame(struct prof_report_samples *samples, const struct prof_capture *capture,
                         struct prof_names *known, size_t node)
{
    const struct prof_flame_node *n = &samples->flame.nodes[node];
    const char *name = sample_frame_name(samples, capture, n);
    uint32_t place = n->frame ? n->frame->number : 0;
    size_t length = strlen(name);
    PROF_FREED char *key = malloc(length + 1 + sizeof place);
    if (!key)
        return false;
    memcpy(key, name, length);
    key[length] = (char)n->kind;
    memcpy(key + length + 1, &place, sizeof place);
    length += 1 + sizeof place;
    uint32_t *number = prof_names_get(known, key, length);
    bool ok = true;
    if (number) {
        samples->frame_of[node] = *number;
    } else {
        samples->frame_of[node] = (uint32_t)samples->frame_count;
        samples->frames[samples->frame_count] = make_sample_frame(n, name);
        ok = prof_names_put(known, key, length, (uint32_t)samples->frame_count++);
    }
    return ok;
}

static bool number_frames(struct prof_report_samples *samples, const struct prof_capture *capture)
{
    struct prof_names known = {0};
    bool ok = true;
    for (size_t i = 1; ok && i < samples->flame.count; i++)
        ok = number_frame(samples, capture, &known, i);
    prof_names_free(&known);
    return ok;
}

/* Preorder. Parents stand before their children, so children can be linked in one walk backwards.
 */
static bool order_stacks(struct prof_report_samples *samples)
{
    size_t count = samples->flame.count;
    PROF_FREED uint32_t *child = calloc(count, sizeof *child),
                        *sibling = calloc(count, sizeof *sibling);
    bool ok = child && sibling;
    for (size_t i = count; ok && i-- > 1;) {
        uint32_t parent = samples->flame.nodes[i].parent;
        sibling[i] = child[parent];
        child[parent] = (uint32_t)i;
    }
    for (uint32_t at = ok ? child[0] : 0; at;) {
        if (samples->flame.nodes[at].count)
            samples->nodes[samples->count++] = at;
        if (child[at]) {
            at = child[at];
            continue;
        }
        while (at && !sibling[at])
            at = samples->flame.nodes[at].parent;
        at = sibling[at];
    }
    return ok;
}

/* The nodes of `more` behind those that are there, below the same root. */
static bool append_flame(struct prof_flame *flame, const struct prof_flame *more)
{
    if (more->count < 2)
        return true;
    struct prof_flame_node *nodes =
        realloc(flame->nodes, (flame->count + more->count) * sizeof *nodes);
    if (!nodes)
        return false;
    flame->nodes = nodes;
    uint32_t shift = (uint32_t)flame->count - 1;
    for (size_t i = 1; i < more->count; i++) {
        nodes[flame->count] = more->nodes[i];
        nodes[flame->count++].parent += more->nodes[i].parent ? shift : 0;
    }
    return true;
}

static enum prof_status add_host_flame(struct prof_report_samples *samples,
                                       struct prof_capture *capture,
                                       const struct prof_filter *filter,
                                       enum prof_flame_weight weight, struct prof_error *err)
{
    struct prof_flame flame;
    enum prof_status status = prof_flame(capture, filter, weight, &flame, err);
    if (!status && !append_flame(&samples->flame, &flame))
        status = prof_fail(err, PROF_NOMEM, "cannot write the flame graph: out of memory");
    prof_flame_free(&flame);
    return status;
}

static enum prof_status read_flames(struct prof_report_samples *samples,
                                    struct prof_capture *capture, const struct prof_filter *filter,
                                    struct prof_error *err)
{
    enum prof_status status = prof_flame(capture, filter, PROF_FLAME_COUNT, &samples->flame, err);
    samples->cpu = samples->flame.count;
    status = status ?: add_host_flame(samples, capture, filter, PROF_FLAME_CPU, err);
    samples->blocked = samples->flame.count;
    status = status ?: add_host_flame(samples, capture, filter, PROF_FLAME_BLOCKED, err);
    samples->has_host = samples->flame.count > samples->cpu;
    return status;
}

int64_t prof_report_sample_weight(const struct prof_report_samples *samples, size_t index,
                                  enum prof_report_weight weight)
{
    uint32_t at = samples->nodes[index];
    const struct prof_flame_node *node = &samples->flame.nodes[at];
    if (at >= samples->cpu) {
        enum prof_report_weight its =
            at >= samples->blocked ? PROF_REPORT_WEIGHT_BLOCKED_NS : PROF_REPORT_WEIGHT_CPU_NS;
        return weight == its ? node->self : 0;
    }
    switch (weight) {
    case PROF_REPORT_WEIGHT_COUNT:
        return node->count;
    case PROF_REPORT_WEIGHT_DEVICE_NS:
        return node->device_ns;
    case PROF_REPORT_WEIGHT_BYTES:
        return node->bytes;
    case PROF_REPORT_WEIGHT_IDLE_NS:
        return node->idle_ns;
    case PROF_REPORT_WEIGHT_CPU_NS:
    case PROF_REPORT_WEIGHT_BLOCKED_NS:
        break;
    }
    return 0;
}

enum prof_status prof_report_samples(struct prof_capture *capture,
                                     const struct prof_report_options *options,
                                     struct prof_report_samples *samples, struct prof_error *err)
{
    *samples = (struct prof_report_samples){0};
    PROF_TRY(read_flames(samples, capture, options ? options->filter : NULL, err));
    size_t count = samples->flame.count;
    samples->frames = calloc(count, sizeof *samples->frames);
    samples->frame_of = calloc(count, sizeof *samples->frame_of);
    samples->nodes = calloc(count, sizeof *samples->nodes);
    if (!samples->frames || !samples->frame_of || !samples->nodes ||
        !name_processes(samples, capture) || !number_frames(samples, capture) ||
        !order_stacks(samples))
        return prof_fail(err, PROF_NOMEM, "cannot write the flame graph: out of memory");
    return PROF_OK;
}

void prof_report_samples_free(struct prof_report_samples *samples)
{
    prof_flame_free(&samples->flame);
    for (size_t i = 0; samples->process_names && i < samples->process_count; i++)
        free(samples->process_names[i]);
    free(samples->process_names);
    free(samples->frames);
    free(samples->frame_of);
    free(samples->nodes);
    *samples = (struct prof_report_samples){0};
}

size_t prof_report_sample_stack(const struct prof_report_samples *samples, size_t index,
                                uint32_t frames[PROF_REPORT_STACK])
{
    size_t depth = 0;
    for (uint32_t at = samples->nodes[index]; at && depth < PROF_REPORT_STACK;
         at = samples->flame.nodes[at].parent)
        frames[depth++] = samples->frame_of[at];
    return depth;
}

/* ---- for the page ---------------------------------------------------------------------------- */

/* The flame graph as data: the stacks that launched the device's work, moved its bytes and
 * made it wait. One tree for all: a node has its sums with all below it. And the callers of each
 * kernel. */

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
