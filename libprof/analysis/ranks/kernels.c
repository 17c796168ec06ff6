/* Kernels of collective operations, and which calls each of them serves.
 *
 * NCCL launches a kernel inside the call, or, for calls between ncclGroupStart and ncclGroupEnd,
 * inside the end of the outermost group: one kernel may then serve several calls. Calls that were
 * captured into a CUDA graph made its nodes instead, and serve every kernel that runs as a clone of
 * theirs. A communicator that does not block launches on a thread of its own: such kernels go to
 * the calls of their kind in order, where there are as many of both. */
#include "libprof/analysis/ranks/ranks.h"

#define MOST_CLONINGS 8 /* a circle is damage */

bool rank_configs(struct rank_work *w, bool *any)
{
    size_t count = w->capture->configs.count;
    *any = false;
    w->config_operation = calloc(count + 1, sizeof *w->config_operation);
    if (!w->config_operation)
        return false;
    for (size_t i = 0; i < count; i++) {
        w->config_operation[i] = prof_collective_kernel(w->capture->configs.data[i].name);
        *any |= w->config_operation[i] != PROF_COLLECTIVE_NONE;
    }
    return true;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool add_collective_kernel(void *user, const struct prof_event_row *row)
{
    struct rank_work *w = user;
    size_t config = prof_config_index(w->capture, row->config);
    const struct prof_stream *stream = prof_stream(w->capture, row->stream);
    if (config == SIZE_MAX || !w->config_operation[config] || !stream ||
        row->start_ns == PROF_UNKNOWN || row->duration_ns == PROF_UNKNOWN)
        return true;
    return prof_array_push(&w->kernels, (struct rank_kernel){
                                            .id = row->id,
                                            .start = row->start_ns,
                                            .end = prof_add(row->start_ns, row->duration_ns),
                                            .stream = row->stream,
                                            .thread = row->thread,
                                            .call = row->call_ns,
                                            .process = stream->process,
                                            .device = stream->device,
                                            .operation = w->config_operation[config],
                                            .node = row->graph_node,
                                        });
}

static enum prof_status read_collective_kernels(struct rank_work *w, struct prof_error *err)
{
    char *list = sqlite3_mprintf("config IN (");
    for (size_t i = 0, n = 0; list && i < w->capture->configs.count; i++) {
        if (w->config_operation[i])
            list = sqlite3_mprintf("%z%s%lld", list, n++ ? "," : "",
                                   (long long)w->capture->configs.data[i].id);
    }
    PROF_SQL_FREED char *where = list ? sqlite3_mprintf("%z)", list) : NULL;
    struct prof_event_query query = {
        .tables = PROF_OPS(KERNEL),
        .fields = PROF_FIELD(ID) | PROF_FIELD(DURATION) | PROF_FIELD(STREAM) | PROF_FIELD(THREAD) |
                  PROF_FIELD(CALL) | PROF_FIELD(CONFIG) | PROF_FIELD(GRAPH_NODE),
        .scope = &w->scope,
        .where = where};
    enum prof_status status =
        where ? prof_event_rows(w->capture, &query, add_collective_kernel, w, err)
              : prof_out_of_memory(err);
    return status;
}

/* ---- nodes of graphs ------------------------------------------------------------------------- */

struct node {
    int64_t process, node, thread, start, original;
    enum prof_collective operation; /* of the kernels that ran as its clones; NONE: no collective */
    struct rank_said said;
};

struct nodes {
    struct rank_work *w;
    PROF_ARRAY(struct node) list;
    struct prof_map at; /* prof_call_key(process, node) -> index */
};

static bool add_graph_launch_node(void *user, sqlite3_stmt *row)
{
    struct nodes *nodes = user;
    const struct prof_thread *thread = prof_thread(nodes->w->capture, prof_column_id(row, 0));
    struct node node = {.process = thread ? thread->process : 0,
                        .node = prof_column_int(row, 1),
                        .thread = thread ? thread->id : 0,
                        .original = prof_column_int(row, 2),
                        .start = prof_column_int(row, 3)};
    return prof_array_push(&nodes->list, node) &&
           prof_map_put(&nodes->at, prof_call_key(node.process, node.node), nodes->list.count - 1);
}

static struct node *find_original_node(const struct nodes *nodes, int64_t process, int64_t number)
{
    struct node *found = NULL;
    for (int i = 0; i < MOST_CLONINGS && number != PROF_UNKNOWN; i++) {
        const uint64_t *at = prof_map_get(&nodes->at, prof_call_key(process, number));
        if (!at)
            break;
        found = &nodes->list.data[*at];
        number = found->original;
    }
    return found;
}

static enum prof_status read_nodes(struct nodes *nodes, struct prof_error *err)
{
    struct rank_work *w = nodes->w;
    bool any = false;
    for (size_t i = 0; i < w->kernels.count; i++)
        any |= w->kernels.data[i].node != PROF_UNKNOWN;
    /* CUPTI reports a clone twice: as created, and then as cloned. */
    enum prof_status status =
        any ? prof_scan(
                  w->capture,
                  "SELECT thread, node, max(original), start FROM graph_node GROUP BY thread, "
                  "node",
                  add_graph_launch_node, nodes, err)
            : PROF_OK;
    for (size_t i = 0; !status && i < w->kernels.count; i++) {
        const struct rank_kernel *kernel = &w->kernels.data[i];
        struct node *node = find_original_node(nodes, kernel->process, kernel->node);
        if (node)
            node->operation = kernel->operation;
    }
    return status;
}

/* ---- which calls a kernel serves ------------------------------------------------------------- */

/* Something that happens on a thread. Kernels and nodes lie within what begins at the same time. */
enum moment_kind { BEGINS, LAUNCHES, ENDS };
struct moment {
    int64_t thread, time;
    enum moment_kind kind;
    struct rank_call *call;
    /* LAUNCHES: */
    enum prof_collective operation;
    struct rank_said *said;
};

struct sweep {
    PROF_ARRAY(struct moment) moments;
    /* Since nothing was open: */
    PROF_ARRAY(struct rank_call *) calls;
    PROF_ARRAY(const struct moment *) launches;
};

PROF_ORDER(by_moment, struct moment, PROF_ASCENDING(thread), PROF_ASCENDING(time),
           PROF_ASCENDING(kind))

static bool serves(enum prof_collective kernel, enum prof_collective call)
{
    if (kernel == PROF_COLLECTIVE_SEND_RECV)
        return call == PROF_COLLECTIVE_SEND || call == PROF_COLLECTIVE_RECV ||
               call == PROF_COLLECTIVE_ALL_TO_ALL || call == PROF_COLLECTIVE_GATHER ||
               call == PROF_COLLECTIVE_SCATTER || call == PROF_COLLECTIVE_SEND_RECV;
    return kernel == call || kernel == PROF_COLLECTIVE_OTHER;
}

static void say(struct rank_said *said, struct rank_call *call, enum prof_collective kernel)
{
    call->served = true;
    if (said->operation == PROF_COLLECTIVE_NONE) {
        *said = (struct rank_said){call->operation, 1,          call->bytes,
                                   call->bytes,     call->peer, call->communicator,
                                   call->reduction};
        return;
    }
    said->calls++;
    said->bytes = said->bytes == PROF_UNKNOWN || call->bytes == PROF_UNKNOWN
                      ? PROF_UNKNOWN
                      : prof_add(said->bytes, call->bytes);
    if (said->message != call->bytes)
        said->message = PROF_UNKNOWN;
    if (said->operation != call->operation)
        said->operation = kernel;
    if (said->peer != call->peer)
        said->peer = PROF_UNKNOWN;
    if (said->communicator != call->communicator)
        said->communicator = 0;
    if (said->reduction != call->reduction)
        said->reduction = NULL;
}

/* The launch of this kind that belongs to a call of the same communicator, where that is required;
 * else the first without a call. */
static struct rank_said *launch_for(const struct sweep *s, const struct rank_call *call,
                                    bool by_communicator)
{
    struct rank_said *fresh = NULL;
    for (size_t i = 0; i < s->launches.count; i++) {
        const struct moment *launch = s->launches.data[i];
        if (!serves(launch->operation, call->operation))
            continue;
        if (launch->said->operation == PROF_COLLECTIVE_NONE)
            fresh = fresh ? fresh : launch->said;
        else if (by_communicator && launch->said->communicator == call->communicator)
            return launch->said;
    }
    return fresh;
}

static size_t launches_for(const struct sweep *s, enum prof_collective operation)
{
    size_t count = 0;
    for (size_t i = 0; i < s->launches.count; i++)
        count += serves(s->launches.data[i]->operation, operation);
    return count;
}

static size_t calls_like(const struct sweep *s, enum prof_collective operation)
{
    size_t count = 0;
    for (size_t i = 0; i < s->calls.count; i++)
        count += s->calls.data[i]->operation == operation;
    return count;
}

static enum prof_collective launched_operation(const struct sweep *s, const struct rank_said *said)
{
    for (size_t i = 0; i < s->launches.count; i++)
        if (s->launches.data[i]->said == said)
            return s->launches.data[i]->operation;
    return PROF_COLLECTIVE_OTHER;
}

/* A group is over. One kernel for all calls, one for each, or one for each communicator: else it is
 * not known which serves which, and they stay apart. */
static void flush(struct sweep *s)
{
    for (size_t i = 0; i < s->calls.count; i++) {
        struct rank_call *call = s->calls.data[i];
        size_t launches = launches_for(s, call->operation);
        bool each = launches == calls_like(s, call->operation);
        struct rank_said *said = launches ? launch_for(s, call, !each) : NULL;
        if (!said && launches == 1) {
            for (size_t k = 0; k < s->launches.count; k++)
                if (serves(s->launches.data[k]->operation, call->operation))
                    said = s->launches.data[k]->said;
        }
        if (said)
            say(said, call, launched_operation(s, said));
    }
    s->calls.count = 0;
    s->launches.count = 0;
}

static bool sweep_moments(struct sweep *s)
{
    int open = 0, depth = 0;
    int64_t thread = 0;
    for (size_t i = 0; i < s->moments.count; i++) {
        const struct moment *m = &s->moments.data[i];
        if (m->thread != thread) {
            flush(s);
            open = depth = 0;
            thread = m->thread;
        }
        if (m->kind == LAUNCHES) {
            if (open <= 0)
                continue; /* not by one of these calls */
            if (!prof_array_push(&s->launches, m))
                return false;
            continue;
        }
        bool group_start = m->call->kind == RANK_CALL_GROUP_START;
        bool group_end = m->call->kind == RANK_CALL_GROUP_END;
        open += m->kind == BEGINS ? 1 : -1;
        if (m->kind == BEGINS && group_start)
            depth++;
        if (m->kind == ENDS && group_end && depth > 0)
            depth--;
        if (m->kind == BEGINS && m->call->kind == RANK_CALL_OPERATION) {
            if (!prof_array_push(&s->calls, m->call))
                return false;
        }
        if (open <= 0 && depth == 0)
            flush(s);
    }
    flush(s);
    return true;
}

static bool add_sweep_moment(struct sweep *s, struct moment moment)
{
    return prof_array_push(&s->moments, moment);
}

static bool add_moments(struct rank_work *w, struct nodes *nodes, struct sweep *s)
{
    bool ok = true;
    for (size_t i = 0; ok && i < w->calls.count; i++) {
        struct rank_call *call = &w->calls.data[i];
        if (call->on_host || call->kind == RANK_CALL_INIT)
            continue;
        ok = add_sweep_moment(s,
                              (struct moment){call->thread, call->start, BEGINS, call, 0, NULL}) &&
             add_sweep_moment(s, (struct moment){call->thread, call->end, ENDS, call, 0, NULL});
    }
    for (size_t i = 0; ok && i < w->kernels.count; i++) {
        struct rank_kernel *kernel = &w->kernels.data[i];
        if (kernel->call != PROF_UNKNOWN && kernel->thread && kernel->node == PROF_UNKNOWN)
            ok = add_sweep_moment(s, (struct moment){kernel->thread, kernel->call, LAUNCHES, NULL,
                                                     kernel->operation, &kernel->said});
    }
    for (size_t i = 0; ok && i < nodes->list.count; i++) {
        struct node *node = &nodes->list.data[i];
        if (node->operation)
            ok = add_sweep_moment(s, (struct moment){node->thread, node->start, LAUNCHES, NULL,
                                                     node->operation, &node->said});
    }
    prof_array_sort(&s->moments, by_moment);
    return ok && sweep_moments(s);
}

/* ---- what is left ---------------------------------------------------------------------------- */

/* Calls and kernels of one process and kind that found nothing, in order. */
struct left {
    int64_t process, time;
    enum prof_collective operation;
    struct rank_call *call;
    struct rank_kernel *kernel;
};

/* All calls, then all kernels. */
PROF_ORDER(by_kind_and_time, struct left, PROF_ASCENDING(process), PROF_ASCENDING(operation),
           PROF_COMPARE(!x->call, !y->call), PROF_ASCENDING(time))

static void pair_left(struct rank_work *w, const struct left *left, size_t count)
{
    for (size_t i = 0; i < count;) {
        size_t end = i, calls = 0;
        for (; end < count && left[end].process == left[i].process &&
               left[end].operation == left[i].operation;
             end++)
            calls += left[end].call != NULL;
        if (calls * 2 == end - i)
            for (size_t k = 0; k < calls; k++)
                say(&left[i + calls + k].kernel->said, left[i + k].call, left[i].operation);
        else
            w->unserved += (int64_t)calls;
        i = end;
    }
}

static bool pair_rest(struct rank_work *w)
{
    PROF_FREED PROF_ARRAY(struct left) left = {0};
    bool ok = prof_array_reserve(&left, w->calls.count + w->kernels.count + 1);
    for (size_t i = 0; ok && i < w->calls.count; i++) {
        struct rank_call *call = &w->calls.data[i];
        if (call->kind == RANK_CALL_OPERATION && !call->on_host && !call->served)
            left.data[left.count++] =
                (struct left){call->process, call->start, call->operation, call, NULL};
    }
    for (size_t i = 0; ok && i < w->kernels.count; i++) {
        struct rank_kernel *kernel = &w->kernels.data[i];
        if (kernel->said.operation == PROF_COLLECTIVE_NONE && kernel->node == PROF_UNKNOWN)
            left.data[left.count++] =
                (struct left){kernel->process, kernel->start, kernel->operation, NULL, kernel};
    }
    prof_array_sort(&left, by_kind_and_time);
    if (ok)
        pair_left(w, left.data, left.count);
    return ok;
}

/* What is known of the graph's node, and what the name alone shows. */
static void finish_kernels(struct rank_work *w, const struct nodes *nodes)
{
    for (size_t i = 0; i < w->kernels.count; i++) {
        struct rank_kernel *kernel = &w->kernels.data[i];
        const struct node *node = find_original_node(nodes, kernel->process, kernel->node);
        if (node && node->said.operation)
            kernel->said = node->said;
        if (kernel->said.operation == PROF_COLLECTIVE_NONE)
            kernel->said = (struct rank_said){
                kernel->operation, PROF_UNKNOWN, PROF_UNKNOWN, PROF_UNKNOWN, PROF_UNKNOWN, 0, NULL};
    }
}

enum prof_status rank_kernels_read(struct rank_work *w, struct prof_error *err)
{
    struct nodes nodes = {.w = w};
    struct sweep sweep = {0};
    enum prof_status status = read_collective_kernels(w, err);
    status = status ?: read_nodes(&nodes, err);
    if (!status && (!add_moments(w, &nodes, &sweep) || !pair_rest(w)))
        status = prof_out_of_memory(err);
    if (!status)
        finish_kernels(w, &nodes);
    prof_array_free(&sweep.moments);
    prof_array_free(&sweep.calls);
    prof_array_free(&sweep.launches);
    prof_array_free(&nodes.list);
    prof_map_free(&nodes.at);
    return status;
}
