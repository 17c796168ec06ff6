/* See call_tree.h. Nodes are looked up by number until one was not cloned from another, then
 * calls by thread and time. */
#include <stdlib.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/call_tree.h"
#include "libprof/analysis/group.h"
#include "libprof/base/saturate.h"

#define MOST_CLONINGS 8 /* a graph within a graph is cloned with it; a circle is damage */

struct work {
    struct prof_capture *capture;
    struct prof_graph_node **nodes;
    size_t count;
    struct prof_map wanted; /* (process, node) mixed -> index of the first that wants it, + 1 */
    uint32_t *next;         /* index + 1 of another that wants the same */
    bool moved;             /* some were led on to another node */
};

static uint64_t graph_node_key(int64_t process, int64_t node)
{
    return (uint64_t)node * 0x9e3779b97f4a7c15ull + (uint64_t)process;
}

static bool want_all(struct work *w)
{
    prof_map_clear(&w->wanted);
    w->moved = false;
    for (size_t i = 0; i < w->count; i++) {
        const struct prof_graph_node *node = w->nodes[i];
        if (node->settled)
            continue;
        uint64_t key = graph_node_key(node->process, node->node),
                 *first = prof_map_get(&w->wanted, key);
        w->next[i] = first ? (uint32_t)*first : 0;
        if (!prof_map_put(&w->wanted, key, i + 1))
            return false;
    }
    return true;
}

static bool see_node(void *user, sqlite3_stmt *row)
{
    struct work *w = user;
    const struct prof_thread *thread = prof_thread(w->capture, prof_column_id(row, 0));
    int64_t node = prof_column_int(row, 1), original = prof_column_int(row, 2);
    int64_t process = thread ? thread->process : 0;
    uint64_t *first = prof_map_get(&w->wanted, graph_node_key(process, node));
    for (uint32_t at = first ? (uint32_t)*first : 0; at; at = w->next[at - 1]) {
        struct prof_graph_node *wanted = w->nodes[at - 1];
        if (wanted->settled || wanted->process != process || wanted->node != node)
            continue;
        w->moved |= original != PROF_UNKNOWN;
        wanted->settled = original == PROF_UNKNOWN;
        wanted->node = wanted->settled ? node : original;
        wanted->thread = thread ? thread->id : 0;
        wanted->start = prof_column_int(row, 3);
    }
    return true;
}

PROF_POINTER_ORDER(by_node_thread_and_start, struct prof_graph_node, PROF_ASCENDING(thread),
                   PROF_ASCENDING(start))

/* The outermost call counts: the one that the program wrote. */
static bool see_call(void *user, const struct prof_event_row *row)
{
    struct work *w = user;
    int64_t thread = row->thread, start = row->start_ns, duration = row->duration_ns;
    if (start == PROF_UNKNOWN || duration == PROF_UNKNOWN)
        return true;
    size_t low;
    PROF_FIND_FIRST(low, at, w->count,
                    w->nodes[at]->thread > thread ||
                        (w->nodes[at]->thread == thread && w->nodes[at]->start >= start));
    for (; low < w->count && w->nodes[low]->thread == thread &&
           w->nodes[low]->start <= prof_add(start, duration);
         low++) {
        struct prof_graph_node *node = w->nodes[low];
        if (node->created_by && node->call_duration >= duration)
            continue;
        node->created_by = row->name;
        node->call_duration = duration;
    }
    return true;
}

/* CUPTI reports a clone twice: as created, and then as cloned. max() takes its row's columns along.
 */
static const char nodes_sql[] =
    "SELECT thread, node, max(original), start FROM graph_node GROUP BY thread, node";

enum prof_status prof_graph_creators(struct prof_capture *capture, struct prof_graph_node **nodes,
                                     size_t count, struct prof_error *err)
{
    struct work w = {.capture = capture, .nodes = nodes, .count = count, .moved = true};
    enum prof_status status = PROF_OK;
    w.next = calloc(count, sizeof *w.next);
    if (!w.next)
        return prof_out_of_memory(err);
    for (int i = 0; !status && w.moved && i < MOST_CLONINGS; i++)
        status = !want_all(&w) ? prof_out_of_memory(err)
                               : prof_scan(capture, nodes_sql, see_node, &w, err);
    if (!status) {
        qsort(nodes, count, sizeof *nodes, by_node_thread_and_start);
        static const struct prof_event_query calls = {
            .tables = PROF_OPS(CALL),
            .fields =
                PROF_FIELD(THREAD) | PROF_FIELD(START) | PROF_FIELD(DURATION) | PROF_FIELD(NAME),
        };
        status = prof_event_rows(capture, &calls, see_call, &w, err);
    }
    free(w.next);
    prof_map_free(&w.wanted);
    return status;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

enum prof_status prof_node_stacks_read(struct prof_node_stacks *stacks,
                                       struct prof_capture *capture, struct prof_error *err)
{
    sqlite3_stmt *row;
    enum prof_status status =
        prof_query(capture,
                   "SELECT thread, node, max(original), max(stack) FROM graph_node WHERE EXISTS "
                   "(SELECT 1 FROM graph_node WHERE stack NOT NULL) GROUP BY thread, node",
                   &row, err);
    while (!status && prof_row(row)) {
        const struct prof_thread *thread = prof_thread(capture, prof_column_id(row, 0));
        struct prof_node_stack *node = prof_array_add(&stacks->list);
        if (node)
            *node = (struct prof_node_stack){thread ? thread->process : 0, prof_column_int(row, 1),
                                             prof_column_int(row, 2), prof_column_id(row, 3)};
        if (!node || !prof_map_put(&stacks->by_key, graph_node_key(node->process, node->node),
                                   stacks->list.count - 1))
            status = prof_out_of_memory(err);
    }
    enum prof_status end = prof_query_end(capture, row, status ? NULL : err);
    return status ? status : end;
}

int64_t prof_node_stack_of(const struct prof_node_stacks *stacks, int64_t process, int64_t node)
{
    for (int i = 0; i <= MOST_CLONINGS; i++) {
        const uint64_t *at = prof_map_get(&stacks->by_key, graph_node_key(process, node));
        const struct prof_node_stack *found = at ? &stacks->list.data[*at] : NULL;
        if (!found || found->process != process || found->node != node)
            return 0;
        if (found->original == PROF_UNKNOWN)
            return found->stack;
        node = found->original;
    }
    return 0;
}

void prof_node_stacks_free(struct prof_node_stacks *stacks)
{
    prof_map_free(&stacks->by_key);
    prof_array_free(&stacks->list);
}
