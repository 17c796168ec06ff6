/* Ordered event cursors: one ordered row source per table and meaning, merged by time. Adding a
 * kind of event is one row in `sources` and one decoder. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/ordered.h"
#include "libprof/analysis/scope.h"
#include "libprof/base/saturate.h"

struct source;

struct prof_events {
    struct prof_capture *capture;
    struct prof_scope scope;
    struct stream *streams;
    size_t count;
};

struct stream {
    const struct source *source;
    struct prof_ordered *rows;
    const struct prof_ordered_row *head; /* NULL at the end */
    int64_t head_key;
};

/* Fills what the kind knows; `event` is blank (everything unknown). False: not in scope. */
typedef bool decode(struct prof_events *events, const struct source *source,
                    const struct prof_ordered_row *row, struct prof_event *event);

struct source {
    enum prof_event_kind kind;
    enum prof_event_kind record_kind; /* API: whose rows these are */
    struct prof_ordered_query query;
    decode *decode;
};

/* ---- reading cells ------------------------------------------------------------------------------
 */

static int small_int(int64_t cell)
{
    return cell < 0 || cell > INT32_MAX ? 0 : (int)cell;
}

static const struct prof_event blank = {
    .start_ns = PROF_UNKNOWN,
    .duration_ns = PROF_UNKNOWN,
    .api_start_ns = PROF_UNKNOWN,
    .api_duration_ns = PROF_UNKNOWN,
    .correlation = PROF_UNKNOWN,
    .result = PROF_UNKNOWN,
    .queue_delay_ns = PROF_UNKNOWN,
    .submit_delay_ns = PROF_UNKNOWN,
    .graph_node = PROF_UNKNOWN,
    .bytes = PROF_UNKNOWN,
    .graph = PROF_UNKNOWN,
    .faults = PROF_UNKNOWN,
    .blocking = PROF_UNKNOWN,
    .value = PROF_UNKNOWN,
    .address = PROF_UNKNOWN,
    .end_ns = PROF_UNKNOWN,
    .sync_event = PROF_UNKNOWN,
    .category = PROF_UNKNOWN,
    .color = PROF_UNKNOWN,
    .depth = PROF_UNKNOWN,
};

static void set_place(const struct prof_events *events, struct prof_event *e, int64_t stream_id,
                      int64_t thread_id)
{
    const struct prof_stream *stream = prof_stream(events->capture, stream_id);
    const struct prof_thread *thread = prof_thread(events->capture, thread_id);
    e->stream = stream_id;
    e->thread = thread_id;
    if (stream) {
        e->process = stream->process;
        e->device = stream->device;
        e->context = stream->context;
    } else if (thread) {
        e->process = thread->process;
    }
}

static bool in_place(const struct prof_events *events, const struct prof_event *e)
{
    return prof_scope_place(&events->scope, e->stream, e->thread, e->process, e->device);
}

/* Of what a thread did at `start`. */
static bool event_in_scope(const struct prof_events *events, const struct prof_event *e,
                           int64_t start)
{
    return in_place(events, e) &&
           prof_scope_called(&events->scope, e->thread, start, 0, PROF_UNKNOWN);
}

/* ---- device events ------------------------------------------------------------------------------
 */

#define ANY_START "coalesce(start, api_lead)"
#define DEVICE_COLUMNS                                                                             \
    "start, duration, stream, thread, api_name, api_lead, api_duration, correlation, "             \
    "queue_delay, submit_delay, flags, graph_node, stack"

enum {
    KEY,
    ID,
    START,
    DURATION,
    STREAM,
    THREAD,
    API_NAME,
    API_LEAD,
    API_DURATION,
    CORRELATION,
    QUEUE_DELAY,
    SUBMIT_DELAY,
    FLAGS,
    GRAPH_NODE,
    STACK,
    SPECIAL /* first column of the kind itself */
};

static bool decode_device(struct prof_events *events, const struct prof_ordered_row *row,
                          struct prof_event *e)
{
    const int64_t *c = row->cells;
    set_place(events, e, prof_cell_id(c[STREAM]), prof_cell_id(c[THREAD]));
    if (!in_place(events, e))
        return false;
    e->start_ns = c[START];
    e->duration_ns = c[START] == PROF_UNKNOWN ? PROF_UNKNOWN : prof_size(c[DURATION]);
    e->api_name = prof_string(events->capture, c[API_NAME], NULL);
    e->api_name_id = prof_cell_id(c[API_NAME]);
    e->api_start_ns = prof_call_start(c[START], c[API_LEAD]);
    if (!prof_scope_called(&events->scope, e->thread, e->api_start_ns, e->stream, c[CORRELATION]))
        return false;
    e->api_duration_ns = prof_size(c[API_DURATION]);
    e->correlation = c[CORRELATION];
    e->queue_delay_ns = c[QUEUE_DELAY];
    e->submit_delay_ns = c[SUBMIT_DELAY];
    e->flags = prof_cell_id(c[FLAGS]);
    e->graph_node = c[GRAPH_NODE];
    e->stack = prof_cell_id(c[STACK]);
    e->record_kind = e->kind;
    e->record_id = e->id;
    return true;
}

static bool decode_kernel(struct prof_events *events, const struct source *source,
                          const struct prof_ordered_row *row, struct prof_event *e)
{
    (void)source;
    int64_t config = prof_cell_id(row->cells[SPECIAL]);
    if (!prof_scope_config(&events->scope, config) || !decode_device(events, row, e))
        return false;
    e->config = prof_config(events->capture, config);
    e->name = e->config ? e->config->name : NULL;
    return true;
}

static bool decode_transfer(struct prof_events *events, const struct source *source,
                            const struct prof_ordered_row *row, struct prof_event *e)
{
    (void)source;
    const int64_t *c = row->cells + SPECIAL;
    if (!decode_device(events, row, e))
        return false;
    e->bytes = prof_size(c[0]);
    e->copy_kind = small_int(c[1]);
    e->source_kind = small_int(c[2]);
    e->target_kind = small_int(c[3]);
    e->blocking = c[4];
    e->peer_device = prof_cell_id(c[5]);
    e->name = prof_copy_kind_text(e->copy_kind);
    return true;
}

static bool decode_memset(struct prof_events *events, const struct source *source,
                          const struct prof_ordered_row *row, struct prof_event *e)
{
    (void)source;
    const int64_t *c = row->cells + SPECIAL;
    if (!decode_device(events, row, e))
        return false;
    e->bytes = prof_size(c[0]);
    e->value = c[1];
    e->target_kind = small_int(c[2]);
    e->name = prof_copy_kind_text(PROF_COPY_MEMSET);
    return true;
}

static bool decode_sync(struct prof_events *events, const struct source *source,
                        const struct prof_ordered_row *row, struct prof_event *e)
{
    (void)source;
    const int64_t *c = row->cells + SPECIAL;
    if (!decode_device(events, row, e))
        return false;
    e->sync_kind = small_int(c[0]);
    e->sync_event = c[1];
    e->name = prof_sync_kind_text(e->sync_kind);
    return true;
}

static bool decode_graph(struct prof_events *events, const struct source *source,
                         const struct prof_ordered_row *row, struct prof_event *e)
{
    (void)source;
    if (!decode_device(events, row, e))
        return false;
    e->graph = row->cells[SPECIAL];
    e->name = "CUDA graph";
    return true;
}

/* ---- API calls ----------------------------------------------------------------------------------
 */

#define CALL_START "CASE WHEN start IS NULL THEN api_lead ELSE start - api_lead END"
#define CALL_COLUMNS "api_duration, thread, api_name, NULL, NULL, correlation, stack, stream"
enum {
    CALL_DURATION = 2,
    CALL_THREAD,
    CALL_NAME,
    CALL_RESULT,
    CALL_SOURCE,
    CALL_CORRELATION,
    CALL_STACK,
    CALL_STREAM,
    CALL_CONFIG
};

static bool decode_call(struct prof_events *events, const struct source *source,
                        const struct prof_ordered_row *row, struct prof_event *e)
{
    const int64_t *c = row->cells;
    if (source->record_kind == PROF_EVENT_KERNEL &&
        !prof_scope_config(&events->scope, prof_cell_id(c[CALL_CONFIG])))
        return false;
    set_place(events, e, prof_cell_id(c[CALL_STREAM]), prof_cell_id(c[CALL_THREAD]));
    if (!event_in_scope(events, e, c[KEY]))
        return false;
    e->start_ns = e->api_start_ns = c[KEY];
    e->duration_ns = e->api_duration_ns = prof_size(c[CALL_DURATION]);
    e->name = e->api_name = prof_string(events->capture, c[CALL_NAME], NULL);
    e->api_name_id = prof_cell_id(c[CALL_NAME]);
    e->result = c[CALL_RESULT];
    e->source = small_int(c[CALL_SOURCE]);
    e->correlation = c[CALL_CORRELATION];
    e->stack = prof_cell_id(c[CALL_STACK]);
    e->record_kind = source->record_kind;
    e->record_id = e->id;
    return true;
}

/* ---- NVTX ---------------------------------------------------------------------------------------
 */

enum {
    RANGE_DURATION = 2,
    RANGE_THREAD,
    RANGE_NAME,
    RANGE_DOMAIN,
    RANGE_CATEGORY,
    RANGE_COLOR,
    RANGE_PAYLOAD,
    RANGE_DEPTH,
    RANGE_END_THREAD
};

static bool decode_range(struct prof_events *events, const struct source *source,
                         const struct prof_ordered_row *row, struct prof_event *e)
{
    const int64_t *c = row->cells;
    set_place(events, e, 0, prof_cell_id(c[RANGE_THREAD]));
    if (!event_in_scope(events, e, c[KEY]))
        return false;
    e->start_ns = c[KEY];
    e->duration_ns = source->kind == PROF_EVENT_MARKER ? 0 : prof_size(c[RANGE_DURATION]);
    e->name = prof_string(events->capture, c[RANGE_NAME], NULL);
    e->domain = prof_string(events->capture, c[RANGE_DOMAIN], NULL);
    e->category = c[RANGE_CATEGORY];
    e->color = c[RANGE_COLOR];
    if (e->category != PROF_UNKNOWN)
        e->category_name = prof_category_name(events->capture, e->process,
                                              prof_cell_id(c[RANGE_DOMAIN]), e->category);
    if (row->is_real) {
        e->payload = PROF_PAYLOAD_REAL;
        memcpy(&e->payload_real, &c[RANGE_PAYLOAD], sizeof e->payload_real);
    } else if (c[RANGE_PAYLOAD] != PROF_UNKNOWN) {
        e->payload = PROF_PAYLOAD_INT;
        e->payload_int = c[RANGE_PAYLOAD];
    }
    if (source->kind == PROF_EVENT_RANGE) {
        e->depth = c[RANGE_DEPTH];
        e->end_thread = prof_cell_id(c[RANGE_END_THREAD]);
    }
    return true;
}

/* ---- allocations --------------------------------------------------------------------------------
 */

enum {
    ALLOC_OTHER_END = 2,
    ALLOC_THREAD,
    ALLOC_PROCESS,
    ALLOC_DEVICE,
    ALLOC_CONTEXT,
    ALLOC_BYTES,
    ALLOC_KIND,
    ALLOC_ADDRESS,
    ALLOC_STACK,
    ALLOC_END_THREAD
};

static bool decode_allocation(struct prof_events *events, const struct source *source,
                              const struct prof_ordered_row *row, struct prof_event *e)
{
    const int64_t *c = row->cells;
    set_place(events, e, 0, prof_cell_id(c[ALLOC_THREAD]));
    if (!e->process)
        e->process = prof_cell_id(c[ALLOC_PROCESS]);
    e->device = prof_cell_id(c[ALLOC_DEVICE]);
    e->context = prof_cell_id(c[ALLOC_CONTEXT]);
    /* What was allocated inside: the freeing of it belongs to it, wherever it happens. */
    if (!event_in_scope(events, e, source->kind == PROF_EVENT_FREE ? c[ALLOC_OTHER_END] : c[KEY]))
        return false;
    e->start_ns = c[KEY];
    e->duration_ns = 0;
    e->end_ns = c[ALLOC_OTHER_END];
    e->bytes = prof_size(c[ALLOC_BYTES]);
    e->target_kind = small_int(c[ALLOC_KIND]);
    e->name = prof_memory_kind_text(e->target_kind);
    e->address = c[ALLOC_ADDRESS];
    e->stack = prof_cell_id(c[ALLOC_STACK]);
    e->end_thread = source->kind == PROF_EVENT_FREE ? prof_cell_id(c[ALLOC_END_THREAD]) : 0;
    return true;
}

/* ---- overhead, unified memory, JIT
 * ---------------------------------------------------------------- */

enum {
    ACTIVITY_DURATION = 2,
    ACTIVITY_THREAD,
    ACTIVITY_PROCESS,
    ACTIVITY_STREAM,
    ACTIVITY_DEVICE,
    ACTIVITY_KIND,
    ACTIVITY_BYTES,
    ACTIVITY_FAULTS
};

static const char *activity_name(enum prof_event_kind kind, int what)
{
    return kind == PROF_EVENT_OVERHEAD    ? prof_overhead_kind_text(what)
           : kind == PROF_EVENT_MIGRATION ? prof_migration_kind_text(what)
                                          : prof_jit_operation_text(what);
}

static bool decode_activity(struct prof_events *events, const struct source *source,
                            const struct prof_ordered_row *row, struct prof_event *e)
{
    const int64_t *c = row->cells;
    set_place(events, e, prof_cell_id(c[ACTIVITY_STREAM]), prof_cell_id(c[ACTIVITY_THREAD]));
    if (!e->process)
        e->process = prof_cell_id(c[ACTIVITY_PROCESS]);
    if (!e->device)
        e->device = prof_cell_id(c[ACTIVITY_DEVICE]);
    if (!event_in_scope(events, e, c[KEY]))
        return false;
    e->start_ns = c[KEY];
    e->duration_ns = prof_size(c[ACTIVITY_DURATION]);
    e->activity_kind = small_int(prof_cell_id(c[ACTIVITY_KIND]));
    e->name = activity_name(source->kind, e->activity_kind);
    e->bytes = prof_size(c[ACTIVITY_BYTES]);
    e->faults = c[ACTIVITY_FAULTS];
    return true;
}

/* ---- sources ------------------------------------------------------------------------------------
 */

#define ALLOC_COLUMNS "thread, process, device, context, bytes, kind, address, stack, end_thread"
#define RANGE_COLUMNS "thread, name, domain, category, color, payload"

static const struct source sources[] = {
    {PROF_EVENT_KERNEL, 0, {ANY_START, DEVICE_COLUMNS ", config", "kernel", "", 0}, decode_kernel},
    {PROF_EVENT_TRANSFER,
     0,
     {ANY_START, DEVICE_COLUMNS ", bytes, kind, source_kind, target_kind, blocking, peer",
      "transfer", "", 0},
     decode_transfer},
    {PROF_EVENT_MEMSET,
     0,
     {ANY_START, DEVICE_COLUMNS ", bytes, value, memory_kind", "memset", "", 0},
     decode_memset},
    {PROF_EVENT_SYNC,
     0,
     {ANY_START,
      "start, duration, stream, thread, api_name, api_lead, api_duration, correlation, NULL, NULL, "
      "NULL, NULL, stack, kind, event",
      "sync", "", 0},
     decode_sync},
    {PROF_EVENT_API,
     PROF_EVENT_API,
     {"start", "duration, thread, name, result, source, correlation, stack, NULL", "api_call", "",
      0},
     decode_call},
    {PROF_EVENT_API,
     PROF_EVENT_KERNEL,
     {CALL_START, CALL_COLUMNS ", config", "kernel", "api_name NOT NULL", 0},
     decode_call},
    {PROF_EVENT_API,
     PROF_EVENT_TRANSFER,
     {CALL_START, CALL_COLUMNS, "transfer", "api_name NOT NULL", 0},
     decode_call},
    {PROF_EVENT_API,
     PROF_EVENT_MEMSET,
     {CALL_START, CALL_COLUMNS, "memset", "api_name NOT NULL", 0},
     decode_call},
    {PROF_EVENT_API,
     PROF_EVENT_SYNC,
     {CALL_START, CALL_COLUMNS, "sync", "api_name NOT NULL", 0},
     decode_call},
    {PROF_EVENT_RANGE,
     0,
     {"start", "duration, " RANGE_COLUMNS ", depth, end_thread", "range", "", RANGE_PAYLOAD},
     decode_range},
    {PROF_EVENT_MARKER,
     0,
     {"start", "NULL, " RANGE_COLUMNS, "marker", "", RANGE_PAYLOAD},
     decode_range},
    {PROF_EVENT_ALLOC,
     0,
     {"start", "\"end\", " ALLOC_COLUMNS, "allocation", "", 0},
     decode_allocation},
    {PROF_EVENT_FREE,
     0,
     {"\"end\"", "start, " ALLOC_COLUMNS, "allocation", "\"end\" NOT NULL", 0},
     decode_allocation},
    {PROF_EVENT_GRAPH,
     0,
     {"start",
      "start, duration, stream, NULL, NULL, NULL, NULL, correlation, queue_delay, submit_delay, "
      "NULL, NULL, NULL, graph",
      "graph_launch", "", 0},
     decode_graph},
    {PROF_EVENT_OVERHEAD,
     0,
     {"start", "duration, thread, process, stream, NULL, kind, NULL, NULL", "overhead", "", 0},
     decode_activity},
    {PROF_EVENT_MIGRATION,
     0,
     {"start", "duration, NULL, process, stream, coalesce(target, source), kind, bytes, faults",
      "migration", "", 0},
     decode_activity},
    {PROF_EVENT_JIT,
     0,
     {"start", "duration, thread, process, NULL, device, operation, NULL, NULL", "jit", "", 0},
     decode_activity},
};
enum { SOURCES = sizeof sources / sizeof sources[0] };

/* A filter that a source can never satisfy saves reading it. */
static bool excluded(const struct prof_scope *scope, const struct source *source)
{
    bool device = source->kind <= PROF_EVENT_SYNC || source->kind == PROF_EVENT_GRAPH ||
                  (source->kind == PROF_EVENT_API && source->record_kind != PROF_EVENT_API);
    bool kernel = source->kind == PROF_EVENT_KERNEL ||
                  (source->kind == PROF_EVENT_API && source->record_kind == PROF_EVENT_KERNEL);
    bool memory = source->kind == PROF_EVENT_ALLOC || source->kind == PROF_EVENT_FREE ||
                  source->kind == PROF_EVENT_MIGRATION || source->kind == PROF_EVENT_JIT;
    bool call = source->kind == PROF_EVENT_API;
    if ((device || call) && !kernel && prof_scope_only_kernels(scope))
        return true;
    return scope->by_device && !device &&
           !(memory && !scope->filter.stream && !scope->filter.stream_count);
}

/* ---- cursor -------------------------------------------------------------------------------------
 */

static void advance_stream(struct stream *s)
{
    s->head = prof_ordered_next(s->rows);
    s->head_key = s->head ? s->head->cells[0] : 0;
}

static enum prof_status open_streams(struct prof_events *events, uint32_t kinds,
                                     struct prof_error *err)
{
    events->streams = calloc(SOURCES, sizeof *events->streams);
    if (!events->streams)
        return prof_out_of_memory(err);
    enum prof_status status = PROF_OK;
    for (size_t i = 0; !status && i < SOURCES; i++) {
        if (!(kinds & PROF_EVENTS(sources[i].kind)) || excluded(&events->scope, &sources[i]))
            continue;
        struct stream *s = &events->streams[events->count];
        s->source = &sources[i];
        status = prof_ordered_open(events->capture, &sources[i].query, 0, &s->rows, err);
        if (!status) {
            events->count++;
            advance_stream(s);
        }
    }
    return status;
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
    if (!status)
        status = prof_begin(capture, err);
    if (status) {
        prof_scope_close(&e->scope);
        free(e);
        *events = NULL;
        return status;
    }
    status = open_streams(e, kinds, err);
    if (status) {
        prof_events_close(e, NULL);
        *events = NULL;
    }
    return status;
}

static struct stream *earliest(struct prof_events *events)
{
    struct stream *first = NULL;
    for (size_t i = 0; i < events->count; i++) {
        struct stream *s = &events->streams[i];
        if (s->head && (!first || s->head_key < first->head_key))
            first = s;
    }
    return first;
}

bool prof_events_next(struct prof_events *events, struct prof_event *event)
{
    for (struct stream *s; (s = earliest(events)); advance_stream(s)) {
        if (events->scope.by_time && s->head_key >= events->scope.end_ns)
            return false; /* all others are later */
        if (!prof_scope_time(&events->scope, s->head_key))
            continue;
        *event = blank;
        event->kind = s->source->kind;
        event->id = s->head->cells[1];
        if (!s->source->decode(events, s->source, s->head, event))
            continue;
        advance_stream(s);
        return true;
    }
    return false;
}

enum prof_status prof_events_close(struct prof_events *events, struct prof_error *err)
{
    if (!events)
        return PROF_OK;
    enum prof_status status = PROF_OK;
    for (size_t i = 0; i < events->count; i++) {
        enum prof_status end = prof_ordered_close(events->streams[i].rows, status ? NULL : err);
        status = status ? status : end;
    }
    prof_end(events->capture);
    free(events->streams);
    prof_scope_close(&events->scope);
    free(events);
    return status;
}

int64_t prof_events_estimate(struct prof_capture *capture, uint32_t kinds)
{
    int64_t sum = 0;
    for (size_t i = 0; i < SOURCES; i++) {
        if (!(kinds & PROF_EVENTS(sources[i].kind)))
            continue;
        sqlite3_stmt *row;
        char *sql = sqlite3_mprintf("SELECT max(id) FROM %s", sources[i].query.table);
        if (sql && !prof_query(capture, sql, &row, NULL)) {
            if (prof_row(row))
                sum = prof_add(sum, sqlite3_column_int64(row, 0));
            sqlite3_finalize(row);
        }
        sqlite3_free(sql);
    }
    return sum;
}
