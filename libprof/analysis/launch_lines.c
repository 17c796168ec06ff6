/* Device work by the line that launched it. A program has few stacks beside its launches:
 * operations are summed by stack and name as they pass, and stacks are looked at once, at the end.
 */
#include <stdlib.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/call_tree.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_stack.h"

/* Work of one name from one stack. */
struct line_work {
    int64_t stack;
    bool backward;
    uint32_t name;                    /* number of it */
    const char *text;                 /* itself */
    int64_t count, ns, within, bytes; /* within: as in prof_event_row */
    uint32_t row;                     /* at the end */
};

struct work {
    struct prof_capture *capture;
    struct prof_scope scope;
    struct prof_stacks *stacks;
    struct prof_node_stacks nodes; /* of CUDA graphs */
    struct prof_torch torch;
    int64_t
        *forward_stacks;   /* of the first work of each forward operator, by its number; 0 = none */
    struct prof_map names; /* address of a name -> its number: a kernel's name has one address */
    PROF_ARRAY(const char *) name_list;
    struct prof_groups works; /* struct line_work by struct work_key */
    struct prof_groups rows;  /* of the result, by struct row_key */
    struct prof_launch_lines *result;
};

/* ---- summing up ------------------------------------------------------------------------------ */

static int64_t launch_stack(struct work *w, const struct prof_event_row *op)
{
    const struct prof_stream *stream = prof_stream(w->capture, op->stream);
    int64_t made_by = op->graph_node == PROF_UNKNOWN || !stream
                          ? 0
                          : prof_node_stack_of(&w->nodes, stream->process, op->graph_node);
    return made_by ? made_by : op->stack;
}

/* The stack of an operation; in the backward pass that of the forward operator, where it is known.
 */
static int64_t find_stack(struct work *w, const struct prof_event_row *op, bool *backward)
{
    uint32_t at;
    int64_t stack = launch_stack(w, op);
    *backward = false;
    if (op->call_ns == PROF_UNKNOWN)
        return stack;
    enum prof_torch_part part = prof_torch_find(&w->torch, op->thread, op->call_ns, &at);
    if (part == PROF_TORCH_OUTSIDE || at == PROF_NO_RANGE)
        return stack;
    if (part == PROF_TORCH_FORWARD) {
        if (!w->forward_stacks[at])
            w->forward_stacks[at] = stack;
        return stack;
    }
    for (; at != PROF_NO_RANGE; at = w->torch.index.nodes.data[at].parent) {
        if (w->forward_stacks[at]) {
            *backward = true;
            return w->forward_stacks[at];
        }
    }
    return stack;
}

static const char *launched_name(const struct work *w, const struct prof_event_row *op)
{
    if (op->kind == PROF_OP_GRAPH)
        return "CUDA graph";
    if (op->kind != PROF_OP_KERNEL)
        return prof_copy_kind_text(op->copy_kind);
    const struct prof_config *config = prof_config(w->capture, op->config);
    return config && config->name ? config->name : "unknown kernel";
}

/* What counts as different work: kernels by their name, copies and fills also by the power of two
 * that their size is of. */
static uint64_t kind_of_work(const char *name, const struct prof_event_row *op)
{
    unsigned size = 0;
    if (op->kind != PROF_OP_KERNEL && op->bytes > 0)
        size = 64 - (unsigned)__builtin_clzll((unsigned long long)op->bytes);
    return (uint64_t)(uintptr_t)name << 7 | size; /* addresses have 57 bits at most */
}

static uint32_t launched_name_number(struct work *w, const struct prof_event_row *op)
{
    const char *name = launched_name(w, op);
    uint64_t kind = kind_of_work(name, op);
    const uint64_t *known = prof_map_get(&w->names, kind);
    if (known)
        return (uint32_t)*known;
    const char **slot = prof_array_add(&w->name_list);
    if (!slot || !prof_map_put(&w->names, kind, w->name_list.count - 1))
        return PROF_NO_GROUP;
    *slot = name;
    return (uint32_t)(w->name_list.count - 1);
}

struct work_key {
    int64_t stack;
    uint32_t name, backward;
};

static struct line_work *work_of(struct work *w, int64_t stack, bool backward, uint32_t name)
{
    struct work_key key = {stack, name, backward};
    bool fresh;
    struct line_work *work = prof_group_of_bytes(&w->works, &key, sizeof key, &fresh);
    if (work && fresh)
        *work = (struct line_work){
            .stack = stack, .backward = backward, .name = name, .text = w->name_list.data[name]};
    return work;
}

static bool add_launched_operation(void *user, const struct prof_event_row *op)
{
    struct work *w = user;
    bool backward;
    int64_t ns = op->duration_ns == PROF_UNKNOWN || op->duration_ns < 0 ? 0 : op->duration_ns;
    int64_t stack = find_stack(w, op, &backward);
    uint32_t name = launched_name_number(w, op);
    struct line_work *work = name == PROF_NO_GROUP ? NULL : work_of(w, stack, backward, name);
    if (!work)
        return false;
    work->count++;
    work->ns = prof_add(work->ns, ns);
    work->within = prof_add(work->within, op->within_ns < ns ? op->within_ns : ns);
    if (op->bytes != PROF_UNKNOWN)
        work->bytes = prof_add(work->bytes, op->bytes);
    return true;
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct row_key {
    uint32_t place, via, backward;
};

static struct prof_launch_line *launch_line_row(struct work *w, const struct prof_frame *frame,
                                                const struct prof_frame *wrapper, bool backward)
{
    struct row_key key = {frame->number, wrapper ? wrapper->number : frame->number, backward};
    bool fresh;
    struct prof_launch_line *row = prof_group_of_bytes(&w->rows, &key, sizeof key, &fresh);
    if (row && fresh)
        *row = (struct prof_launch_line){
            .where = prof_frame_text_new(frame, backward ? "backward of " : ""),
            .function = frame->function,
            .file = frame->file,
            .line = frame->line,
            .module = frame->module,
            .via = wrapper ? wrapper->function : NULL,
            .backward = backward};
    return row && row->where ? row : NULL;
}

static bool add_line_work_to_rows(struct work *w, struct line_work *work)
{
    struct prof_launch_lines *result = w->result;
    const struct prof_frame *frames, *via;
    result->operations += work->count;
    result->device_ns = prof_add(result->device_ns, work->ns);
    if (!prof_stack_callers(w->capture, PROF_STACK_WORK, work->stack, &frames, &via)) {
        result->unknown_operations += work->count;
        result->unknown_ns = prof_add(result->unknown_ns, work->ns);
        return true;
    }
    struct prof_launch_line *row = launch_line_row(w, frames, via, work->backward);
    if (!row)
        return false;
    row->count += work->count;
    row->device_ns = prof_add(row->device_ns, work->ns);
    row->wall_share += (double)work->within; /* divided by the wall time at the end */
    row->bytes = prof_add(row->bytes, work->bytes);
    work->row = (uint32_t)(row - (struct prof_launch_line *)prof_group_at(&w->rows, 0)) + 1;
    return true;
}

/* A name has one address: texts of the capture are read once. */
PROF_ORDER(by_row_and_name, struct line_work, PROF_ASCENDING(row), PROF_ASCENDING(text))

/* Which name takes most of each row; of equal ones the first by the alphabet. */
static void find_most(struct work *w)
{
    struct line_work *works = prof_group_at(&w->works, 0);
    size_t count = w->works.count;
    if (count)
        qsort(works, count, sizeof *works, by_row_and_name);
    for (size_t i = 0, next; i < count; i = next) {
        int64_t ns = 0;
        for (next = i; next < count && !by_row_and_name(&works[i], &works[next]); next++)
            ns = prof_add(ns, works[next].ns);
        struct prof_launch_line *row =
            works[i].row ? prof_group_at(&w->rows, works[i].row - 1) : NULL;
        if (!row)
            continue;
        row->works++;
        if (!row->work || prof_order(ns, row->work_ns, works[i].text, row->work) < 0) {
            row->work = works[i].text;
            row->work_ns = ns;
        }
    }
}

static bool make_launch_line_rows(struct work *w)
{
    bool ok = true;
    for (size_t i = 0; ok && i < w->works.count; i++)
        ok = add_line_work_to_rows(w, prof_group_at(&w->works, i));
    if (ok)
        find_most(w);
    return ok;
}

PROF_ORDER(by_launch_line_time, struct prof_launch_line,
           prof_order(x->device_ns, y->device_ns, x->where, y->where),
           prof_compare_texts(x->file, y->file))

static void finish_launch_lines(struct work *w, const struct prof_filter *filter)
{
    struct prof_launch_lines *result = w->result;
    int64_t wall_ns = prof_wall_ns(w->capture, filter);
    result->count = w->rows.count;
    result->rows = prof_groups_take(&w->rows);
    if (result->count)
        qsort(result->rows, result->count, sizeof *result->rows, by_launch_line_time);
    for (size_t i = 0; i < result->count; i++) {
        result->rows[i].share = prof_share(result->rows[i].device_ns, result->device_ns);
        result->rows[i].wall_share = prof_share((int64_t)result->rows[i].wall_share, wall_ns);
    }
}

static enum prof_status scan_launch_lines(struct work *w, const struct prof_filter *filter,
                                          struct prof_error *err)
{
    enum prof_status status = prof_scope_open(&w->scope, w->capture, filter, err);
    status = status ?: prof_node_stacks_read(&w->nodes, w->capture, err);
    status = status ?: prof_torch_open(&w->torch, w->capture, &w->scope, err);
    size_t count = w->torch.operators.count;
    w->forward_stacks = calloc(count + 1, sizeof *w->forward_stacks);
    if (!status && !w->forward_stacks)
        status = prof_out_of_memory(err);
    struct prof_event_query query = {
        .tables = PROF_OPS_DEVICE,
        .fields = PROF_FIELD(DURATION) | PROF_FIELD(STREAM) | PROF_FIELD(THREAD) |
                  PROF_FIELD(STACK) | PROF_FIELD(CONFIG) | PROF_FIELD(GRAPH_NODE) |
                  PROF_FIELD(BYTES) | PROF_FIELD(COPY_KIND) | PROF_FIELD(LAUNCH),
        .scope = &w->scope};
    return status ? status : prof_event_rows(w->capture, &query, add_launched_operation, w, err);
}

static void close_launch_lines(struct work *w)
{
    for (size_t i = 0; i < w->rows.count; i++)
        free(((struct prof_launch_line *)prof_group_at(&w->rows, i))->where);
    prof_groups_free(&w->rows);
    prof_groups_free(&w->works);
    prof_array_free(&w->name_list);
    prof_map_free(&w->names);
    free(w->forward_stacks);
    prof_torch_close(&w->torch);
    prof_node_stacks_free(&w->nodes);
    prof_scope_close(&w->scope);
}

enum prof_status prof_launch_lines(struct prof_capture *capture, const struct prof_filter *filter,
                                   struct prof_launch_lines *result, struct prof_error *err)
{
    struct work w = {.capture = capture,
                     .works = PROF_GROUPS(struct line_work, 0),
                     .rows = PROF_GROUPS(struct prof_launch_line, 0),
                     .result = result};
    *result = (struct prof_launch_lines){0};
    enum prof_status status = prof_capture_stacks(capture, &w.stacks, err);
    if (status || !w.stacks)
        return status;
    status = scan_launch_lines(&w, filter, err);
    if (!status && !make_launch_line_rows(&w))
        status = prof_out_of_memory(err);
    if (!status) /* a caller that could not be read is kept for the next query, and there is none */
        status = prof_query_end(capture, NULL, err);
    if (!status)
        finish_launch_lines(&w, filter);
    close_launch_lines(&w);
    return status;
}

void prof_launch_lines_free(struct prof_launch_lines *result)
{
    for (size_t i = 0; i < result->count; i++)
        free(result->rows[i].where);
    free(result->rows);
    *result = (struct prof_launch_lines){0};
}
