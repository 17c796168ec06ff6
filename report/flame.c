/* The flame graph's tree as text, a line for each distinct stack: folded stacks for flamegraph.pl,
 * speedscope and their kin, "range;range;call;kernel NANOSECONDS", sorted by bytes so that two
 * captures can be compared with diff; the same of two captures in one file, `stack BASE CAND` (a
 * stack that one side lacks has 0 there). Weights that are 0 are left out: no tool shows them.
 * And as samples for profile formats: frames are numbered and stacks in the order of a walk over
 * the tree, so that viewers which draw samples one after another show equal callers as one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/array.h"
#include "libprof/base/map.h"
#include "libprof/base/utf8.h"
#include "libprof/include/prof_stack.h"
#include "report/flame.h"
#include "report/gate.h"
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
