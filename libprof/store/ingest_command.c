/* The rows of device records (kernels, memcpys, memsets, synchronizations and whole graphs, each
 * with its API call), and of calls without one. What becomes one row is decided in ingest_event.c.
 */
#include "libprof/store/ingest_private.h"

enum prof_status ingest_write_call(struct prof_ingest *ingest, struct ingest_spool *spool,
                                   uint32_t tid, const struct wire_call *call)
{
    struct ingest_thread *thread = ingest_thread_of(ingest, spool, tid);
    if (!thread)
        return ingest->error.status;
    struct ingest_row *out = ingest_row_begin(ingest, SCHEMA_api_call);
    row_set(out, COLUMN_AT(api_call, start), (int64_t)(call->start - ingest->zero_ns));
    row_set(out, COLUMN_AT(api_call, duration), (int64_t)(call->end - call->start));
    row_set(out, COLUMN_AT(api_call, thread), thread->row);
    row_known(out, COLUMN_AT(api_call, name), ingest_global(spool, call->name, WIRE_STRING));
    row_known(out, COLUMN_AT(api_call, result), call->result);
    row_set(out, COLUMN_AT(api_call, source), call->head.flags);
    row_set(out, COLUMN_AT(api_call, class), call->klass);
    row_known(out, COLUMN_AT(api_call, correlation),
              call->expects == WIRE_EXPECTS_MANY ? (int64_t)call->correlation : 0);
    row_known(out, COLUMN_AT(api_call, stack), ingest_stack_of(spool, call->stack));
    return ingest_row_end(ingest, SCHEMA_api_call);
}

/* What the rows of all device records share. */
struct device_row {
    bool has_start, has_end;
    int64_t start, duration;           /* capture time */
    int64_t queue_delay, submit_delay; /* 0 = unknown */
    int64_t stream;
    int64_t api_name, api_lead, api_duration, thread;
    bool has_call;
    int64_t correlation;
    int64_t flags;
};

static struct ingest_clock *clock_of(struct ingest_spool *spool, const struct ingest_local *stream)
{
    return stream && stream->extra ? ingest_clock_of(spool, stream->extra, false) : NULL;
}

static uint64_t convert(struct ingest_clock *clock, uint64_t ns)
{
    return ns && clock ? prof_clockmap_convert(&clock->map, ns) : ns;
}

uint64_t ingest_device_time(struct ingest_spool *spool, uint32_t stream, uint64_t ns)
{
    return convert(clock_of(spool, ingest_lookup(spool, stream, WIRE_STREAM)), ns);
}

/* How far the device's records have come, for those of a process that was killed. */
static void note_newest(struct ingest_spool *spool, uint64_t ns)
{
    if (ns > spool->tally[TALLY_DEVICE_NEWEST_NS])
        spool->tally[TALLY_DEVICE_NEWEST_NS] = ns;
}

/* Device times to capture time, put back into order where the device's stamps (or rounding) are
 * not: queued <= submitted <= start <= end. */
static void set_device_times(struct prof_ingest *ingest, struct ingest_spool *spool,
                             uint32_t stream, const struct wire_times *raw, struct device_row *row)
{
    const struct ingest_local *local = ingest_lookup(spool, stream, WIRE_STREAM);
    struct ingest_clock *clock = clock_of(spool, local);
    uint64_t queued = convert(clock, raw->queued), submitted = convert(clock, raw->submitted);
    uint64_t start = convert(clock, raw->start), end = convert(clock, raw->end);
    row->stream = local ? local->global : 0;
    if (start == 0)
        return;
    bool repaired = false;
    if (submitted > start) {
        submitted = start;
        repaired = true;
    }
    if (queued > (submitted ? submitted : start)) {
        queued = submitted ? submitted : start;
        repaired = true;
    }
    if (end && end < start) {
        end = start;
        repaired = true;
    }
    spool->tally[TALLY_REPAIRED] += repaired;
    note_newest(spool, end ? end : start);
    row->has_start = true;
    row->start = (int64_t)(start - ingest->zero_ns);
    if (end) {
        row->has_end = true;
        row->duration = (int64_t)(end - start);
    }
    row->queue_delay = queued ? (int64_t)(start - queued) : 0;
    row->submit_delay = submitted ? (int64_t)(start - submitted) : 0;
}

static enum prof_status set_call(struct prof_ingest *ingest, struct ingest_spool *spool,
                                 const struct ingest_pending *pending, struct device_row *row)
{
    if (!pending->has_call)
        return PROF_OK;
    const struct wire_call *call = &pending->call;
    struct ingest_thread *thread = ingest_thread_of(ingest, spool, pending->tid);
    if (!thread)
        return ingest->error.status;
    row->has_call = true;
    row->api_name = ingest_global(spool, call->name, WIRE_STRING);
    row->thread = thread->row;
    row->api_duration = (int64_t)(call->end - call->start);
    int64_t called = (int64_t)(call->start - ingest->zero_ns);
    row->api_lead = row->has_start ? row->start - called : called;
    return PROF_OK;
}

/* All tables of device records begin with DEVICE_TIMES (tables.def). */
static void bind_times(struct ingest_row *out, const struct device_row *row)
{
    row_set_if(out, COLUMN_AT(kernel, start), row->has_start, row->start);
    row_set_if(out, COLUMN_AT(kernel, duration), row->has_end, row->duration);
    row_known(out, COLUMN_AT(kernel, stream), row->stream);
}

/* The columns API [and DELAYS] of tables.def; `at` is that of api_name. */
static void bind_api(struct ingest_row *out, int at, const struct device_row *row, bool delays)
{
    if (row->has_call) {
        row_known(out, at, row->api_name);
        row_set(out, at + 1, row->api_lead);
        row_set(out, at + 2, row->api_duration);
        row_set(out, at + 3, row->thread);
    } else {
        for (int i = 0; i < 4; i++)
            row_null(out, at + i);
    }
    row_known(out, at + 4, row->correlation);
    if (delays) {
        row_known(out, at + 5, row->queue_delay);
        row_known(out, at + 6, row->submit_delay);
    }
}

static int64_t row_flags(uint8_t command, uint8_t done)
{
    return (command & WIRE_COOPERATIVE ? 1 : 0) | (command & WIRE_DEVICE_LAUNCHED ? 2 : 0) |
           (done & WIRE_FAILED ? 4 : 0) | (done & WIRE_ABANDONED ? 8 : 0) |
           (command & WIRE_SAME ? PROF_FLAG_SAME : 0);
}

static int64_t pending_stack(const struct ingest_spool *spool, const struct ingest_pending *pending)
{
    return pending->has_call ? ingest_stack_of(spool, pending->call.stack) : 0;
}

static enum prof_status write_kernel(struct prof_ingest *ingest, struct ingest_spool *spool,
                                     const struct ingest_pending *pending, struct device_row *row)
{
    const struct wire_kernel *kernel = &pending->command.kernel;
    struct ingest_row *out = ingest_row_begin(ingest, SCHEMA_kernel);
    int64_t config = ingest_global(spool, kernel->config, WIRE_CONFIG);
    bind_times(out, row);
    row_known(out, COLUMN_AT(kernel, config), config);
    bind_api(out, COLUMN_AT(kernel, api_name), row, true);
    row_known(out, COLUMN_AT(kernel, graph_node), (int64_t)kernel->graph_node);
    row_known(out, COLUMN_AT(kernel, flags), row->flags);
    row_known(out, COLUMN_AT(kernel, stack), pending_stack(spool, pending));
    if (row->has_end &&
        !rollup_sums_add(&ingest->rollup, row->stream, config, row->start, (uint64_t)row->duration))
        return ingest_no_memory(ingest, "sums per second");
    if (row->has_end && ingest->ring.ns)
        PROF_TRY(ingest_ring_kernel(ingest, spool, config, row->stream, (uint64_t)row->duration));
    return ingest_row_end(ingest, SCHEMA_kernel);
}

static enum prof_status write_transfer(struct prof_ingest *ingest, struct ingest_spool *spool,
                                       const struct ingest_pending *pending,
                                       const struct device_row *row)
{
    const struct wire_transfer *transfer = &pending->command.transfer;
    struct ingest_row *out = ingest_row_begin(ingest, SCHEMA_transfer);
    bind_times(out, row);
    row_set(out, COLUMN_AT(transfer, bytes), (int64_t)transfer->bytes);
    row_set(out, COLUMN_AT(transfer, kind), transfer->copy_kind);
    bind_api(out, COLUMN_AT(transfer, api_name), row, true);
    row_known(out, COLUMN_AT(transfer, source_kind), transfer->source_kind);
    row_known(out, COLUMN_AT(transfer, target_kind), transfer->target_kind);
    row_set_if(out, COLUMN_AT(transfer, blocking), transfer->blocking != 255, transfer->blocking);
    row_known(out, COLUMN_AT(transfer, peer),
              ingest_global(spool, transfer->peer_device, WIRE_DEVICE));
    row_known(out, COLUMN_AT(transfer, graph_node), (int64_t)transfer->graph_node);
    row_known(out, COLUMN_AT(transfer, flags), row->flags);
    row_known(out, COLUMN_AT(transfer, stack), pending_stack(spool, pending));
    return ingest_row_end(ingest, SCHEMA_transfer);
}

static enum prof_status write_memset(struct prof_ingest *ingest, const struct ingest_spool *spool,
                                     const struct ingest_pending *pending,
                                     const struct device_row *row)
{
    const struct wire_memset *fill = &pending->command.memset;
    struct ingest_row *out = ingest_row_begin(ingest, SCHEMA_memset);
    bind_times(out, row);
    row_set(out, COLUMN_AT(memset, bytes), (int64_t)fill->bytes);
    row_set(out, COLUMN_AT(memset, value), fill->value);
    bind_api(out, COLUMN_AT(memset, api_name), row, true);
    row_known(out, COLUMN_AT(memset, memory_kind), fill->memory_kind);
    row_known(out, COLUMN_AT(memset, graph_node), (int64_t)fill->graph_node);
    row_known(out, COLUMN_AT(memset, flags), row->flags);
    row_known(out, COLUMN_AT(memset, stack), pending_stack(spool, pending));
    return ingest_row_end(ingest, SCHEMA_memset);
}

static enum prof_status write_sync(struct prof_ingest *ingest, const struct ingest_spool *spool,
                                   const struct ingest_pending *pending,
                                   const struct device_row *row)
{
    const struct wire_sync *sync = &pending->command.sync;
    struct ingest_row *out = ingest_row_begin(ingest, SCHEMA_sync);
    bind_times(out, row);
    row_set(out, COLUMN_AT(sync, kind), sync->kind);
    bind_api(out, COLUMN_AT(sync, api_name), row, false);
    row_known(out, COLUMN_AT(sync, event), (int64_t)sync->event);
    row_known(out, COLUMN_AT(sync, stack), pending_stack(spool, pending));
    row_known(out, COLUMN_AT(sync, recorded), (int64_t)sync->recorded);
    return ingest_row_end(ingest, SCHEMA_sync);
}

/* Left out by the kernel filter: then its call is, too. */
static bool is_filtered(const struct ingest_spool *spool, const struct wire_head *head,
                        const struct ingest_pending *pending)
{
    const struct ingest_local *config =
        head->type == WIRE_KERNEL
            ? ingest_lookup(spool, pending->command.kernel.config, WIRE_CONFIG)
            : NULL;
    return config && config->extra == INGEST_CONFIG_FILTERED;
}

static void tally_command(struct ingest_spool *spool, const struct ingest_pending *pending,
                          bool of_graph, bool outstanding, bool filtered)
{
    static const struct {
        uint8_t recorded, uncalled, of_graph;
    } tallies[WIRE_TYPES] = {
        [WIRE_KERNEL] = {TALLY_LAUNCH_RECORDED, TALLY_LAUNCH_UNCALLED, TALLY_GRAPH_KERNELS},
        [WIRE_TRANSFER] = {TALLY_TRANSFER_RECORDED, TALLY_TRANSFER_UNCALLED, TALLY_GRAPH_TRANSFERS},
        [WIRE_MEMSET] = {TALLY_MEMSET_RECORDED, TALLY_MEMSET_UNCALLED, TALLY_GRAPH_MEMSETS},
    };
    uint8_t type = pending->command.head.type;
    if (type == WIRE_SYNC || pending->command.head.flags & WIRE_DEVICE_LAUNCHED)
        return;
    if (of_graph) {
        spool->tally[filtered ? TALLY_GRAPH_FILTERED : tallies[type].of_graph]++;
        return;
    }
    spool->tally[tallies[type].uncalled] += !pending->has_call;
    if (outstanding && pending->has_call)
        tally_lacking(spool, pending->call.start);
    if (filtered)
        spool->tally[TALLY_LAUNCH_FILTERED]++;
    else /* OUTSTANDING follows RECORDED */
        spool->tally[tallies[type].recorded + (outstanding ? 1 : 0)]++;
}

/* `correlation` is kept when the call has a row of its own. */
enum prof_status ingest_write_command(struct prof_ingest *ingest, struct ingest_spool *spool,
                                      const struct ingest_pending *pending, bool of_graph)
{
    const struct wire_head *head = &pending->command.head;
    struct device_row row = {0};
    bool late = head->flags & WIRE_PENDING;
    uint8_t done_flags = pending->has_done ? pending->done.head.flags : 0;
    bool outstanding = late && (!pending->has_done || done_flags & WIRE_ABANDONED);
    if (head->type == WIRE_SYNC) {
        const struct wire_sync *sync = &pending->command.sync;
        struct wire_times times = {0, 0, sync->start, sync->end};
        set_device_times(ingest, spool, 0, &times, &row);
        row.stream = ingest_global(spool, head->aux, WIRE_STREAM);
    } else if (late)
        set_device_times(ingest, spool, head->aux, &pending->done.times, &row);
    else
        set_device_times(ingest, spool, head->aux, &pending->command.kernel.times, &row);
    row.flags = row_flags(head->flags, done_flags);
    if (of_graph)
        row.correlation = (int64_t)pending->command.kernel.correlation;
    PROF_TRY(set_call(ingest, spool, pending, &row));
    bool filtered = is_filtered(spool, head, pending);
    spool->tally[TALLY_KERNEL_FILTERED] += filtered;
    tally_command(spool, pending, of_graph, outstanding, filtered);
    if (filtered)
        return PROF_OK;
    switch (head->type) {
    case WIRE_KERNEL:
        return write_kernel(ingest, spool, pending, &row);
    case WIRE_TRANSFER:
        return write_transfer(ingest, spool, pending, &row);
    case WIRE_MEMSET:
        return write_memset(ingest, spool, pending, &row);
    default:
        return write_sync(ingest, spool, pending, &row);
    }
}

enum prof_status ingest_graph(struct prof_ingest *ingest, struct ingest_spool *spool,
                              const struct wire_graph *graph)
{
    struct device_row row = {0};
    set_device_times(ingest, spool, graph->head.aux, &graph->times, &row);
    spool->tally[TALLY_GRAPH_WHOLE]++;
    struct ingest_row *out = ingest_row_begin(ingest, SCHEMA_graph_launch);
    bind_times(out, &row);
    row_known(out, COLUMN_AT(graph_launch, graph), graph->graph);
    row_known(out, COLUMN_AT(graph_launch, correlation), (int64_t)graph->correlation);
    row_known(out, COLUMN_AT(graph_launch, queue_delay), row.queue_delay);
    row_known(out, COLUMN_AT(graph_launch, submit_delay), row.submit_delay);
    return ingest_row_end(ingest, SCHEMA_graph_launch);
}
