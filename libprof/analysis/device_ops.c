/* Walks the device tables once, in file order; see device_ops.h. The call of a graph launch stands
 * in api_call under a correlation number that its device records share; those calls are few and
 * are kept in a map. */
#include "libprof/analysis/device_ops.h"
#include "libprof/base/saturate.h"

struct work {
    struct prof_capture *capture;
    const struct prof_scope *scope;
    struct prof_graph_calls calls;
};

enum prof_status prof_graph_calls_read(struct prof_graph_calls *calls, struct prof_capture *capture,
                                       struct prof_error *err)
{
    sqlite3_stmt *row;
    enum prof_status status =
        prof_query(capture,
                   "SELECT start, thread, name, correlation, duration, stack FROM api_call "
                   "WHERE correlation NOT NULL",
                   &row, err);
    if (status)
        return status;
    while (prof_row(row)) {
        const struct prof_thread *thread = prof_thread(capture, prof_column_id(row, 1));
        uint64_t key = prof_call_key(thread ? thread->process : 0, sqlite3_column_int64(row, 3));
        struct prof_graph_call *call = prof_array_add(&calls->list);
        if (!call || !prof_map_put(&calls->by_key, key, calls->list.count - 1)) {
            sqlite3_finalize(row);
            return prof_out_of_memory(err);
        }
        *call = (struct prof_graph_call){.start_ns = prof_column_int(row, 0),
                                         .thread = prof_column_id(row, 1),
                                         .name = prof_column_id(row, 2),
                                         .duration_ns = prof_column_size(row, 4),
                                         .stack = prof_column_id(row, 5)};
    }
    return prof_query_end(capture, row, err);
}

const struct prof_graph_call *prof_graph_call(const struct prof_graph_calls *calls, int64_t process,
                                              int64_t correlation)
{
    uint64_t *found = calls->list.count
                          ? prof_map_get(&calls->by_key, prof_call_key(process, correlation))
                          : NULL;
    return found ? &calls->list.data[*found] : NULL;
}

void prof_graph_calls_free(struct prof_graph_calls *calls)
{
    prof_map_free(&calls->by_key);
    prof_array_free(&calls->list);
}

enum {
    START,
    DURATION,
    STREAM,
    THREAD,
    API_NAME,
    LEAD,
    CORRELATION,
    STACK,
    SPECIAL,
    API_DURATION,
    GRAPH_NODE,
    BYTES,
    TARGET_KIND,
    SOURCE_KIND,
    BLOCKING
};
#define COMMON "SELECT start, duration, stream, thread, api_name, api_lead, correlation, stack, "
static const char *const queries[] = {
    [PROF_OP_KERNEL] = COMMON "config, api_duration, graph_node FROM kernel",
    [PROF_OP_TRANSFER] = COMMON "kind, api_duration, graph_node, bytes, target_kind, source_kind, "
                                "blocking FROM transfer",
    [PROF_OP_MEMSET] = COMMON "100, api_duration, graph_node, bytes, memory_kind FROM memset",
    [PROF_OP_GRAPH] = "SELECT start, duration, stream, NULL, NULL, NULL, correlation, NULL, graph, "
                      "NULL, NULL FROM graph_launch",
};

static void take_graph_call(const struct work *w, int64_t correlation, struct prof_device_op *op)
{
    const struct prof_stream *stream = prof_stream(w->capture, op->stream);
    const struct prof_graph_call *call =
        prof_graph_call(&w->calls, stream ? stream->process : 0, correlation);
    op->in_graph = true;
    if (!call)
        return;
    op->call_ns = call->start_ns;
    op->thread = call->thread;
    op->api_name = call->name;
    op->launch_ns = call->duration_ns;
    op->stack = call->stack;
}

static void read_copy(enum prof_op_kind kind, sqlite3_stmt *row, struct prof_device_op *op)
{
    op->copy_kind = sqlite3_column_int(row, SPECIAL);
    op->bytes = prof_column_size(row, BYTES);
    op->target_kind = sqlite3_column_int(row, TARGET_KIND);
    if (kind != PROF_OP_TRANSFER)
        return;
    op->source_kind = sqlite3_column_int(row, SOURCE_KIND);
    op->blocking = prof_column_int(row, BLOCKING);
}

static void read_op(const struct work *w, enum prof_op_kind kind, sqlite3_stmt *row,
                    struct prof_device_op *op)
{
    int64_t lead = prof_column_int(row, LEAD);
    *op = (struct prof_device_op){
        .kind = kind,
        .start_ns = prof_column_int(row, START),
        .duration_ns = prof_column_size(row, DURATION),
        .call_ns = PROF_UNKNOWN,
        .stream = prof_column_id(row, STREAM),
        .thread = prof_column_id(row, THREAD),
        .api_name = prof_column_id(row, API_NAME),
        .call_duration_ns = prof_column_size(row, API_DURATION),
        .launch_ns = prof_column_size(row, API_DURATION),
        .bytes = PROF_UNKNOWN,
        .blocking = PROF_UNKNOWN,
        .stack = prof_column_id(row, STACK),
        .graph_node = prof_column_int(row, GRAPH_NODE),
    };
    if (kind == PROF_OP_KERNEL)
        op->config = prof_column_id(row, SPECIAL);
    else if (kind == PROF_OP_GRAPH)
        op->graph = prof_column_id(row, SPECIAL);
    else
        read_copy(kind, row, op);
    if (lead != PROF_UNKNOWN)
        op->call_ns = op->start_ns == PROF_UNKNOWN ? lead : prof_subtract(op->start_ns, lead);
    else if (w->calls.list.count && sqlite3_column_type(row, CORRELATION) != SQLITE_NULL)
        take_graph_call(w, sqlite3_column_int64(row, CORRELATION), op);
}

static enum prof_status walk_table(struct work *w, enum prof_op_kind kind,
                                   prof_device_op_seen *seen, void *user, struct prof_error *err)
{
    sqlite3_stmt *row;
    enum prof_status status = prof_query(w->capture, queries[kind], &row, err);
    if (status)
        return status;
    while (prof_row(row)) {
        struct prof_device_op op;
        read_op(w, kind, row, &op);
        if (!prof_scope_op(w->scope, &op))
            continue;
        const struct prof_config *config =
            kind == PROF_OP_KERNEL ? prof_config(w->capture, op.config) : NULL;
        if (config)
            op.config = config->id; /* one for all that are not told apart */
        if (!seen(user, &op)) {
            sqlite3_finalize(row);
            return prof_out_of_memory(err);
        }
    }
    return prof_query_end(w->capture, row, err);
}

enum prof_status prof_device_ops(struct prof_capture *capture, const struct prof_scope *scope,
                                 prof_device_op_seen *seen, void *user, struct prof_error *err)
{
    struct work w = {.capture = capture, .scope = scope};
    enum prof_status status = prof_graph_calls_read(&w.calls, capture, err);
    enum prof_op_kind last = prof_scope_only_kernels(scope) ? PROF_OP_KERNEL : PROF_OP_GRAPH;
    for (enum prof_op_kind kind = PROF_OP_KERNEL; !status && kind <= last; kind++)
        status = walk_table(&w, kind, seen, user, err);
    prof_graph_calls_free(&w.calls);
    return status;
}

static void read_event(const struct work *w, const struct prof_event *event,
                       struct prof_device_op *op)
{
    static const enum prof_op_kind kinds[PROF_EVENT_KINDS] = {
        [PROF_EVENT_KERNEL] = PROF_OP_KERNEL,
        [PROF_EVENT_TRANSFER] = PROF_OP_TRANSFER,
        [PROF_EVENT_MEMSET] = PROF_OP_MEMSET,
        [PROF_EVENT_GRAPH] = PROF_OP_GRAPH,
    };
    *op = (struct prof_device_op){
        .kind = kinds[event->kind],
        .start_ns = event->start_ns,
        .duration_ns = event->duration_ns,
        .call_ns = event->api_start_ns,
        .stream = event->stream,
        .thread = event->thread,
        .api_name = event->api_name_id,
        .config = event->config ? event->config->id : 0,
        .copy_kind = event->kind == PROF_EVENT_MEMSET ? PROF_COPY_MEMSET : event->copy_kind,
        .bytes = event->bytes,
        .graph = event->graph,
        .stack = event->stack,
        .graph_node = event->graph_node,
    };
    if (op->call_ns == PROF_UNKNOWN && event->correlation != PROF_UNKNOWN)
        take_graph_call(w, event->correlation, op);
}

enum prof_status prof_device_ops_by_start(struct prof_capture *capture, prof_device_op_seen *seen,
                                          void *user, struct prof_error *err)
{
    struct work w = {.capture = capture};
    struct prof_events *events = NULL;
    struct prof_event event;
    bool ok = true;
    enum prof_status status = prof_graph_calls_read(&w.calls, capture, err);
    if (!status)
        status = prof_events_open(capture, NULL, PROF_EVENTS_DEVICE, &events, err);
    while (!status && ok && prof_events_next(events, &event)) {
        struct prof_device_op op;
        if (event.start_ns == PROF_UNKNOWN)
            continue;
        read_event(&w, &event, &op);
        ok = seen(user, &op);
    }
    enum prof_status ended = events ? prof_events_close(events, err) : PROF_OK;
    prof_graph_calls_free(&w.calls);
    return !ok ? prof_out_of_memory(err) : status ? status : ended;
}
