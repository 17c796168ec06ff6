/* See prof_stack.h. Lines and callers are read off the flame graph's tree, so they agree with
 * it; calls are summed as they pass by. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/call_tree.h"
#include "libprof/analysis/events.h"
#include "libprof/analysis/group.h"
#include "libprof/analysis/launch_wrappers.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_stack.h"

static struct prof_stack_cost cost_of(const struct prof_flame_node *node)
{
    return (struct prof_stack_cost){node->count, node->device_ns, node->bytes, node->idle_ns};
}

static void add_stack_cost(struct prof_stack_cost *to, const struct prof_stack_cost *cost)
{
    to->count = prof_add(to->count, cost->count);
    to->device_ns = prof_add(to->device_ns, cost->device_ns);
    to->bytes = prof_add(to->bytes, cost->bytes);
    to->idle_ns = prof_add(to->idle_ns, cost->idle_ns);
}

/* The places of a capture; NULL when it has no stacks. */
static enum prof_status read_places(struct prof_capture *capture, const struct prof_frame **places,
                                    size_t *count, struct prof_error *err)
{
    struct prof_stacks *stacks = NULL;
    *places = NULL;
    *count = 0;
    enum prof_status status = prof_capture_stacks(capture, &stacks, err);
    if (!status && stacks)
        *count = prof_stacks_places(stacks, places);
    return status;
}

/* ---- by line --------------------------------------------------------------------------------- */

struct lines {
    const struct prof_flame *flame;
    struct prof_line_row *rows; /* by number of place */
    uint32_t *seen;             /* node that last added to a place's total, + 1 */
    struct prof_line_sums *result;
};

/* A node where work ends gives its cost to every place on its way, once. */
static void add_node_lines(struct lines *l, uint32_t node)
{
    const struct prof_flame_node *nodes = l->flame->nodes;
    struct prof_stack_cost cost = cost_of(&nodes[node]);
    bool any = false;
    for (uint32_t at = node; at; at = nodes[at].parent) {
        if (nodes[at].kind != PROF_FLAME_FRAME || !nodes[at].frame)
            continue;
        uint32_t place = nodes[at].frame->number;
        if (!any)
            add_stack_cost(&l->rows[place].self, &cost);
        any = true;
        if (l->seen[place] == node + 1)
            continue;
        l->seen[place] = node + 1;
        add_stack_cost(&l->rows[place].total, &cost);
    }
    add_stack_cost(&l->result->all, &cost);
    if (!any)
        add_stack_cost(&l->result->without, &cost);
}

PROF_ORDER(by_line_time, struct prof_line_row, PROF_DESCENDING(total.device_ns),
           PROF_ASCENDING(place->number))

enum prof_status prof_line_sums(struct prof_capture *capture, const struct prof_filter *filter,
                                struct prof_line_sums *result, struct prof_error *err)
{
    struct prof_flame flame = {0};
    const struct prof_frame *places;
    size_t count;
    *result = (struct prof_line_sums){0};
    enum prof_status status = read_places(capture, &places, &count, err);
    status = status ?: prof_flame_of_work(capture, filter, PROF_FLAME_COUNT, true, &flame, err);
    struct lines l = {&flame, calloc(count + 1, sizeof *l.rows), calloc(count + 1, sizeof *l.seen),
                      result};
    if (!status && (!l.rows || !l.seen))
        status = prof_out_of_memory(err);
    for (uint32_t i = 0; !status && i < flame.count; i++) {
        if (flame.nodes[i].count)
            add_node_lines(&l, i);
    }
    for (size_t i = 0; !status && i < count; i++) {
        if (!l.rows[i].total.count)
            continue;
        l.rows[i].place = &places[i];
        l.rows[result->count++] = l.rows[i];
    }
    if (!status && result->count)
        qsort(l.rows, result->count, sizeof *l.rows, by_line_time);
    free(l.seen);
    prof_flame_free(&flame);
    if (status)
        free(l.rows);
    else
        result->rows = l.rows;
    return status;
}

PROF_FREE_ROWS(prof_line_sums)

/* ---- by kernel ------------------------------------------------------------------------------- */

static bool is_device_work_node(enum prof_flame_kind kind)
{
    return kind == PROF_FLAME_KERNEL || kind == PROF_FLAME_TRANSFER || kind == PROF_FLAME_MEMSET;
}

/* The places on a node's way, innermost first, as the key of its row. */
static bool path_of(const struct prof_flame *flame, uint32_t node, uint32_t **path, size_t *depth)
{
    size_t count = 0;
    for (uint32_t at = node; at; at = flame->nodes[at].parent)
        count += flame->nodes[at].kind == PROF_FLAME_FRAME && flame->nodes[at].frame;
    *depth = count;
    *path = malloc((count + 1) * sizeof **path);
    if (!*path)
        return false;
    count = 0;
    for (uint32_t at = node; at; at = flame->nodes[at].parent)
        if (flame->nodes[at].kind == PROF_FLAME_FRAME && flame->nodes[at].frame)
            (*path)[count++] = flame->nodes[at].frame->number;
    return true;
}

struct callers {
    const struct prof_flame *flame;
    struct prof_names known; /* kind, name and path -> row */
    struct prof_names works; /* kind and name -> index in work_ns */
    PROF_ARRAY(int64_t) work_ns;
    PROF_ARRAY(struct prof_caller_row) rows;
};

static bool caller_number(struct prof_names *names, enum prof_flame_kind kind, const char *name,
                          const uint32_t *path, size_t depth, uint32_t *number, bool *is_new)
{
    size_t length = strlen(name), size = 1 + length + 1 + depth * sizeof *path;
    PROF_FREED char *key = malloc(size);
    if (!key)
        return false;
    key[0] = (char)kind;
    memcpy(key + 1, name, length + 1);
    if (depth)
        memcpy(key + length + 2, path, depth * sizeof *path);
    uint32_t *known = prof_names_get(names, key, size);
    *is_new = !known;
    *number = known ? *known : (uint32_t)names->count;
    return known || prof_names_put(names, key, size, *number);
}

/* The same work from the same stack within other ranges is the same row. */
static bool add_caller(struct callers *c, uint32_t node)
{
    const struct prof_flame_node *n = &c->flame->nodes[node];
    const char *name = n->name ? n->name : "unknown";
    struct prof_stack_cost cost = cost_of(n);
    struct prof_caller_row row = {.work = name, .kind = n->kind};
    uint32_t number, work;
    bool is_new, is_new_work;
    if (!path_of(c->flame, node, &row.path, &row.depth))
        return false;
    bool ok = caller_number(&c->works, n->kind, name, NULL, 0, &work, &is_new_work) &&
              caller_number(&c->known, n->kind, name, row.path, row.depth, &number, &is_new);
    if (ok && is_new_work) {
        int64_t *ns = prof_array_add(&c->work_ns);
        ok = ns != NULL;
        if (ns)
            *ns = 0;
    }
    struct prof_caller_row *added = ok && is_new ? prof_array_add(&c->rows) : NULL;
    if (added)
        *added = row;
    else
        free(row.path);
    if (!ok || (is_new && !added))
        return false;
    add_stack_cost(&c->rows.data[number].cost, &cost);
    c->work_ns.data[work] = prof_add(c->work_ns.data[work], cost.device_ns);
    return true;
}

static bool fill_work_ns(struct callers *c)
{
    for (size_t i = 0; i < c->rows.count; i++) {
        struct prof_caller_row *row = &c->rows.data[i];
        uint32_t work;
        bool is_new;
        if (!caller_number(&c->works, row->kind, row->work, NULL, 0, &work, &is_new))
            return false;
        row->work_ns = c->work_ns.data[work];
    }
    return true;
}

static int path_order(const uint32_t *x, size_t x_depth, const uint32_t *y, size_t y_depth)
{
    size_t common = x_depth < y_depth ? x_depth : y_depth;
    return (common ? memcmp(x, y, common * sizeof *x) : 0) ?: PROF_COMPARE(x_depth, y_depth);
}

PROF_ORDER(by_caller_work, struct prof_caller_row, PROF_DESCENDING(work_ns),
           strcmp(x->work, y->work), PROF_ASCENDING(kind), PROF_DESCENDING(cost.device_ns),
           path_order(x->path, x->depth, y->path, y->depth))

enum prof_status prof_caller_sums_of(struct prof_capture *capture, const struct prof_flame *flame,
                                     struct prof_caller_sums *result, struct prof_error *err)
{
    size_t count;
    *result = (struct prof_caller_sums){0};
    enum prof_status status = read_places(capture, &result->places, &count, err);
    struct callers c = {.flame = flame};
    for (uint32_t i = 0; !status && i < flame->count; i++) {
        if (!flame->nodes[i].count || !is_device_work_node(flame->nodes[i].kind))
            continue;
        struct prof_stack_cost cost = cost_of(&flame->nodes[i]);
        add_stack_cost(&result->all, &cost);
        if (!add_caller(&c, i))
            status = prof_out_of_memory(err);
    }
    if (!status && !fill_work_ns(&c))
        status = prof_out_of_memory(err);
    const struct prof_launch_wrappers *wrappers = NULL;
    status = status ?: prof_capture_wrappers(capture, PROF_STACK_WORK, &wrappers, err);
    for (size_t i = 0; !status && i < c.rows.count; i++)
        c.rows.data[i].told = prof_launch_wrappers_skip_path(
            wrappers, result->places, c.rows.data[i].path, c.rows.data[i].depth);
    prof_array_sort(&c.rows, by_caller_work);
    result->rows = c.rows.data;
    result->count = c.rows.count;
    prof_names_free(&c.known);
    prof_names_free(&c.works);
    prof_array_free(&c.work_ns);
    if (status)
        prof_caller_sums_free(result);
    return status;
}

enum prof_status prof_caller_sums(struct prof_capture *capture, const struct prof_filter *filter,
                                  struct prof_caller_sums *result, struct prof_error *err)
{
    struct prof_flame flame;
    *result = (struct prof_caller_sums){0};
    enum prof_status status =
        prof_flame_of_work(capture, filter, PROF_FLAME_COUNT, true, &flame, err);
    status = status ?: prof_caller_sums_of(capture, &flame, result, err);
    prof_flame_free(&flame);
    return status;
}

void prof_caller_sums_free(struct prof_caller_sums *result)
{
    for (size_t i = 0; i < result->count; i++)
        free(result->rows[i].path);
    free(result->rows);
    *result = (struct prof_caller_sums){0};
}

/* ---- by call --------------------------------------------------------------------------------- */

/* Calls of one name from one stack, on the way to rows: stacks of other addresses may be the same
 * lines. */
struct call_key {
    int64_t name, stack;
};

struct call_group {
    const char *name;
    int64_t stack, count, total_ns, max_ns;
};

struct calls {
    struct prof_capture *capture;
    struct prof_groups groups; /* by struct call_key */
    struct prof_names known;   /* name and path -> row */
    PROF_ARRAY(struct prof_call_row) rows;
};

static bool add_caller_event(void *user, const struct prof_event_row *call)
{
    struct calls *c = user;
    struct call_key key = {call->name, call->stack};
    bool fresh;
    if (call->duration_ns == PROF_UNKNOWN)
        return true;
    struct call_group *group = prof_group_of_bytes(&c->groups, &key, sizeof key, &fresh);
    if (!group)
        return false;
    if (fresh) {
        const char *name = prof_string(c->capture, call->name, NULL);
        group->name = name ? name : "unknown";
        group->stack = call->stack;
    }
    group->count++;
    group->total_ns = prof_add(group->total_ns, call->duration_ns);
    if (call->duration_ns > group->max_ns)
        group->max_ns = call->duration_ns;
    return true;
}

static enum prof_status read_calls(struct calls *c, const struct prof_filter *filter,
                                   struct prof_error *err)
{
    struct prof_event_query query = {
        .tables = PROF_OPS_CALLS,
        .fields = PROF_FIELD(DURATION) | PROF_FIELD(NAME) | PROF_FIELD(STACK),
        .filter = filter,
    };
    return prof_event_rows(c->capture, &query, add_caller_event, c, err);
}

static bool add_group(struct calls *c, struct prof_stacks *stacks, const struct call_group *group)
{
    const struct prof_frame *frames = NULL;
    size_t depth = stacks ? prof_stack_frames(stacks, group->stack, &frames) : 0;
    uint32_t *path = malloc((depth + 1) * sizeof *path), number;
    bool is_new;
    for (size_t i = 0; path && i < depth; i++)
        path[i] = frames[depth - 1 - i].number;
    if (!path ||
        !caller_number(&c->known, PROF_FLAME_API, group->name, path, depth, &number, &is_new)) {
        free(path);
        return false;
    }
    struct prof_call_row *row = is_new ? prof_array_add(&c->rows) : &c->rows.data[number];
    if (row && is_new)
        *row = (struct prof_call_row){.name = group->name, .path = path, .depth = depth};
    else
        free(path);
    if (!row)
        return false;
    row->count += group->count;
    row->total_ns = prof_add(row->total_ns, group->total_ns);
    if (group->max_ns > row->max_ns)
        row->max_ns = group->max_ns;
    return true;
}

PROF_ORDER(by_call_total, struct prof_call_row, PROF_DESCENDING(total_ns), strcmp(x->name, y->name),
           path_order(x->path, x->depth, y->path, y->depth))

enum prof_status prof_call_sums(struct prof_capture *capture, const struct prof_filter *filter,
                                struct prof_call_sums *result, struct prof_error *err)
{
    struct calls c = {.capture = capture, .groups = PROF_GROUPS(struct call_group, 0)};
    struct prof_stacks *stacks = NULL;
    const struct prof_launch_wrappers *wrappers = NULL;
    *result = (struct prof_call_sums){0};
    PROF_TRY(prof_begin(capture, err)); /* the calls, and the stacks that they name */
    enum prof_status status = prof_capture_stacks(capture, &stacks, err);
    status = status ?: read_calls(&c, filter, err);
    status = status ?: prof_capture_wrappers(capture, PROF_STACK_CALLS, &wrappers, err);
    prof_end(capture);
    for (size_t i = 0; !status && i < c.groups.count; i++) {
        const struct call_group *group = prof_group_at(&c.groups, i);
        result->total_ns = prof_add(result->total_ns, group->total_ns);
        if (!add_group(&c, stacks, group))
            status = prof_out_of_memory(err);
    }
    if (stacks)
        prof_stacks_places(stacks, &result->places);
    for (size_t i = 0; !status && i < c.rows.count; i++)
        c.rows.data[i].told = prof_launch_wrappers_skip_path(
            wrappers, result->places, c.rows.data[i].path, c.rows.data[i].depth);
    prof_array_sort(&c.rows, by_call_total);
    result->rows = c.rows.data;
    result->count = c.rows.count;
    prof_groups_free(&c.groups);
    prof_names_free(&c.known);
    if (status)
        prof_call_sums_free(result);
    return status;
}

void prof_call_sums_free(struct prof_call_sums *result)
{
    for (size_t i = 0; i < result->count; i++)
        free(result->rows[i].path);
    free(result->rows);
    *result = (struct prof_call_sums){0};
}
