/* Rows of the tables of events with names for their ids: prof_events.h. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/events.h"

struct prof_events {
    struct prof_capture *capture;
    struct prof_scope scope;
    struct prof_event_cursor *cursor;
};

/* Tables of these kinds of events. Not all that a filter by device excludes is known as such from
 * columns: these two are about the host, whatever they name. */
static uint32_t event_tables(uint32_t kinds, const struct prof_scope *scope)
{
    uint32_t wanted = 0;
    for (size_t i = 0; i < PROF_OP_KINDS; i++)
        wanted |= (kinds & PROF_EVENTS(prof_op_table(i).event)) ? 1u << i : 0;
    if (scope->by_device)
        wanted &= ~PROF_OPS(OVERHEAD);
    if (scope->filter.stream || scope->filter.stream_count)
        wanted &= ~PROF_OPS(MIGRATION);
    return wanted;
}

enum prof_status prof_events_open(struct prof_capture *capture, const struct prof_filter *filter,
                                  uint32_t kinds, struct prof_events **events,
                                  struct prof_error *err)
{
    struct prof_events *e = *events = calloc(1, sizeof *e);
    if (!e)
        return prof_out_of_memory(err);
    e->capture = capture;
    enum prof_status status = prof_scope_open(&e->scope, capture, filter, err);
    struct prof_event_query query = {.tables = event_tables(kinds, &e->scope),
                                     .fields = PROF_FIELDS_ALL,
                                     .scope = &e->scope,
                                     .in_order = true};
    status = status ?: prof_event_cursor_open(capture, &query, &e->cursor, err);
    if (status) {
        prof_events_close(e, NULL);
        *events = NULL;
    }
    return status;
}

static void set_event_name(struct prof_capture *capture, const struct prof_event_row *row,
                           struct prof_event *e)
{
    switch (e->kind) {
    case PROF_EVENT_KERNEL:
        e->config = prof_config(capture, row->config);
        e->name = e->config ? e->config->name : NULL;
        break;
    case PROF_EVENT_TRANSFER:
    case PROF_EVENT_MEMSET:
        e->name = prof_copy_kind_text(row->copy_kind);
        break;
    case PROF_EVENT_SYNC:
        e->name = prof_sync_kind_text(e->sync_kind = row->what);
        break;
    case PROF_EVENT_API:
        e->name = e->api_name;
        break;
    case PROF_EVENT_RANGE:
    case PROF_EVENT_MARKER:
        e->name = prof_string(capture, row->name, NULL);
        e->domain = prof_string(capture, row->domain, NULL);
        if (row->category != PROF_UNKNOWN)
            e->category_name = prof_category_name(capture, e->process, row->domain, row->category);
        break;
    case PROF_EVENT_ALLOC:
    case PROF_EVENT_FREE:
        e->name = prof_memory_kind_text(row->target_kind);
        break;
    case PROF_EVENT_GRAPH:
        e->name = "CUDA graph";
        break;
    case PROF_EVENT_OVERHEAD:
        e->name = prof_overhead_kind_text(e->activity_kind = row->what);
        break;
    case PROF_EVENT_MIGRATION:
        e->name = prof_migration_kind_text(e->activity_kind = row->what);
        break;
    case PROF_EVENT_JIT:
        e->name = prof_jit_operation_text(e->activity_kind = row->what);
        break;
    case PROF_EVENT_KINDS:
        break;
    }
}

bool prof_events_next(struct prof_events *events, struct prof_event *e)
{
    const struct prof_event_row *row = prof_event_cursor_next(events->cursor);
    if (!row)
        return false;
    struct prof_op_table table = prof_op_table(row->kind);
    bool is_call = table.event == PROF_EVENT_API, is_alloc = table.event == PROF_EVENT_ALLOC;
    bool is_moment = is_alloc || table.event == PROF_EVENT_FREE || table.event == PROF_EVENT_MARKER;
    bool has_call = row->kind <= PROF_OP_SYNC_CALL;
    /* Where it happened its stream shows, or its thread, or its own columns. */
    const struct prof_stream *stream = prof_stream(events->capture, row->stream);
    const struct prof_thread *thread = prof_thread(events->capture, row->thread);
    bool never_began = row->kind <= PROF_OP_SYNC && row->start_ns == PROF_UNKNOWN;
    *e = (struct prof_event){
        .kind = table.event,
        .id = row->id,
        .stream = row->stream,
        .thread = row->thread,
        .process = stream   ? stream->process
                   : thread ? thread->process
                            : row->process,
        .device = stream ? stream->device : row->device,
        .context = stream ? stream->context : row->context,
        .start_ns = row->start_ns,
        .duration_ns = is_moment     ? 0
                       : never_began ? PROF_UNKNOWN
                                     : row->duration_ns,
        .api_start_ns = is_call ? row->start_ns : row->call_ns,
        .api_duration_ns = is_call ? row->duration_ns : row->call_duration_ns,
        .correlation = row->correlation,
        .record_kind = is_call    ? table.record
                       : has_call ? table.event
                                  : 0,
        .record_id = has_call ? row->id : 0,
        .result = row->result,
        .source = row->source,
        .queue_delay_ns = row->queue_delay_ns,
        .submit_delay_ns = row->submit_delay_ns,
        .flags = row->flags,
        .graph_node = row->graph_node,
        .bytes = row->bytes,
        .copy_kind = row->kind == PROF_OP_TRANSFER ? row->copy_kind : 0,
        .source_kind = row->source_kind,
        .target_kind = row->target_kind,
        .blocking = row->blocking,
        .peer_device = row->peer,
        .value = row->value,
        .address = row->address,
        .end_ns = row->other_ns,
        .graph = row->graph,
        .faults = row->faults,
        .sync_event = row->sync_event,
        .category = row->category,
        .color = row->color,
        .depth = row->depth,
        .end_thread = is_alloc ? 0 : row->end_thread,
        .stack = row->stack,
    };
    if (has_call) {
        e->api_name = prof_string(events->capture, row->name, NULL);
        e->api_name_id = row->name;
    }
    set_event_name(events->capture, row, e);
    if (row->payload_is_real) {
        e->payload = PROF_PAYLOAD_REAL;
        memcpy(&e->payload_real, &row->payload, sizeof e->payload_real);
    } else if (row->payload != PROF_UNKNOWN) {
        e->payload = PROF_PAYLOAD_INT;
        e->payload_int = row->payload;
    }
    return true;
}

enum prof_status prof_events_close(struct prof_events *events, struct prof_error *err)
{
    if (!events)
        return PROF_OK;
    enum prof_status status = prof_event_cursor_close(events->cursor, err);
    prof_scope_close(&events->scope);
    free(events);
    return status;
}

int64_t prof_events_estimate(struct prof_capture *capture, uint32_t kinds)
{
    int64_t sum = 0;
    for (size_t i = 0; i < PROF_OP_KINDS; i++) {
        struct prof_op_table table = prof_op_table(i);
        if (kinds & PROF_EVENTS(table.event))
            sum = prof_add(sum,
                           prof_sql_number(capture->db, 0, "SELECT max(id) FROM %s", table.name));
    }
    return sum;
}
