/* Calls and device records, joined by correlation id.
 *
 * A call that makes one device record and that record arrive apart and in any order; they wait for
 * each other in a table and become one row. Commands of OpenCL come in three parts (call, command
 * without times, times). What never finds its other half becomes a row with NULL where the missing
 * part would stand, and is counted. */
#include <string.h>

#include "libprof/store/ingest_private.h"

#define MAX_NODES 1000000u
#define MUCH_WAITS 262144u
#define COMMAND_AGE_NS 5000000000u
#define CALL_AGE_NS 30000000000u /* a device may be that far behind */

/* Columns count from 1, as in the SQL. */
static inline void row_set(struct ingest_row *row, int at, int64_t value)
{
    row->values[at - 1] = value;
}

static inline void row_null(struct ingest_row *row, int at)
{
    row->nulls |= 1u << (at - 1);
}

static inline void row_known(struct ingest_row *row, int at, int64_t value)
{
    row->values[at - 1] = value;
    if (!value)
        row_null(row, at);
}

static uint64_t key_of(uint64_t correlation, bool opencl)
{
    return correlation << 1 | opencl;
}

static struct ingest_pending *pending_get(struct prof_ingest *ingest, struct ingest_spool *spool,
                                          uint64_t key)
{
    uint64_t *known = prof_map_get(&spool->pending, key);
    if (known)
        return &spool->pending_list.data[*known];
    size_t at;
    if (spool->pending_holes.count)
        at = spool->pending_holes.data[--spool->pending_holes.count];
    else {
        if (!prof_array_reserve(&spool->pending_list, 1))
            return NULL;
        at = spool->pending_list.count++;
    }
    if (!prof_map_put(&spool->pending, key, at))
        return NULL;
    struct ingest_pending *pending = &spool->pending_list.data[at];
    *pending = (struct ingest_pending){.key = key, .arrived_ns = ingest->now_ns};
    return pending;
}

static bool pending_drop(struct ingest_spool *spool, struct ingest_pending *pending)
{
    uint32_t at = (uint32_t)(pending - spool->pending_list.data);
    prof_map_remove(&spool->pending, pending->key, NULL);
    pending->has_call = pending->has_command = pending->has_done = 0;
    uint32_t *hole = prof_array_add(&spool->pending_holes);
    if (hole)
        *hole = at;
    return hole != NULL;
}

static bool write_call(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                       const struct wire_call *call)
{
    struct ingest_thread *thread = ingest_thread_of(ingest, spool, tid);
    if (!thread)
        return false;
    struct ingest_row *out = ingest_row_begin(ingest, INGEST_BATCH_CALL);
    row_set(out, 1, (int64_t)(call->start - ingest->zero_ns));
    row_set(out, 2, (int64_t)(call->end - call->start));
    row_set(out, 3, thread->row);
    row_known(out, 4, ingest_global(spool, call->name, WIRE_STRING));
    row_known(out, 5, call->result);
    row_set(out, 6, call->head.flags);
    row_known(out, 7,
                      call->expects == WIRE_EXPECTS_MANY ? (int64_t)call->correlation : 0);
    row_known(out, 8, call->stack);
    return ingest_row_end(ingest, INGEST_BATCH_CALL);
}

/* What the rows of all device records share. */
struct device_row {
    bool has_start, has_end;
    int64_t start, duration; /* capture time */
    int64_t queue_delay, submit_delay; /* 0 = unknown */
    int64_t stream;
    int64_t api_name, api_lead, api_duration, thread;
    bool has_call;
    int64_t correlation;
    int64_t flags;
};

static uint64_t convert(struct ingest_clock *clock, uint64_t ns)
{
    return ns && clock ? prof_clockmap_convert(&clock->map, ns) : ns;
}

/* Device times to capture time, put back into order where the device's stamps (or rounding) are
 * not: queued <= submitted <= start <= end. */
static void set_times(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t stream,
                      const struct wire_times *raw, struct device_row *row)
{
    const struct ingest_local *local = ingest_lookup(spool, stream, WIRE_STREAM);
    struct ingest_clock *clock =
        local && local->extra ? ingest_clock_of(spool, local->extra, false) : NULL;
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
    row->has_start = true;
    row->start = (int64_t)(start - ingest->zero_ns);
    if (end) {
        row->has_end = true;
        row->duration = (int64_t)(end - start);
    }
    row->queue_delay = queued ? (int64_t)(start - queued) : 0;
    row->submit_delay = submitted ? (int64_t)(start - submitted) : 0;
}

static bool set_call(struct prof_ingest *ingest, struct ingest_spool *spool,
                     const struct ingest_pending *pending, struct device_row *row)
{
    if (!pending->has_call)
        return true;
    const struct wire_call *call = &pending->call;
    struct ingest_thread *thread = ingest_thread_of(ingest, spool, pending->tid);
    if (!thread)
        return false;
    row->has_call = true;
    row->api_name = ingest_global(spool, call->name, WIRE_STRING);
    row->thread = thread->row;
    row->api_duration = (int64_t)(call->end - call->start);
    int64_t called = (int64_t)(call->start - ingest->zero_ns);
    row->api_lead = row->has_start ? row->start - called : called;
    return true;
}

static void bind_times(struct ingest_row *out, const struct device_row *row)
{
    if (row->has_start)
        row_set(out, 1, row->start);
    else
        row_null(out, 1);
    if (row->has_end)
        row_set(out, 2, row->duration);
    else
        row_null(out, 2);
    row_known(out, 3, row->stream);
}

/* api_name, api_lead, api_duration, thread, correlation [, queue_delay, submit_delay] from `at` */
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
           (done & WIRE_FAILED ? 4 : 0) | (done & WIRE_ABANDONED ? 8 : 0);
}

static bool write_kernel(struct prof_ingest *ingest, struct ingest_spool *spool,
                         const struct ingest_pending *pending, struct device_row *row)
{
    const struct wire_kernel *kernel = &pending->command.kernel;
    struct ingest_row *out = ingest_row_begin(ingest, INGEST_BATCH_KERNEL);
    int64_t config = ingest_global(spool, kernel->config, WIRE_CONFIG);
    bind_times(out, row);
    row_known(out, 4, config);
    bind_api(out, 5, row, true);
    row_known(out, 12, (int64_t)kernel->graph_node);
    row_known(out, 13, row->flags);
    row_known(out, 14, pending->has_call ? pending->call.stack : 0);
    if (row->has_end && !ingest_rollup_add(ingest, row->stream, config, row->start,
                                           (uint64_t)row->duration))
        return false;
    return ingest_row_end(ingest, INGEST_BATCH_KERNEL);
}

static bool write_transfer(struct prof_ingest *ingest, struct ingest_spool *spool,
                           const struct ingest_pending *pending, const struct device_row *row)
{
    const struct wire_transfer *transfer = &pending->command.transfer;
    struct ingest_row *out = ingest_row_begin(ingest, INGEST_BATCH_TRANSFER);
    bind_times(out, row);
    row_set(out, 4, (int64_t)transfer->bytes);
    row_set(out, 5, transfer->copy_kind);
    bind_api(out, 6, row, true);
    row_known(out, 13, transfer->source_kind);
    row_known(out, 14, transfer->target_kind);
    if (transfer->blocking == 255)
        row_null(out, 15);
    else
        row_set(out, 15, transfer->blocking);
    row_known(out, 16, ingest_global(spool, transfer->peer_device, WIRE_DEVICE));
    row_known(out, 17, (int64_t)transfer->graph_node);
    row_known(out, 18, row->flags);
    row_known(out, 19, pending->has_call ? pending->call.stack : 0);
    return ingest_row_end(ingest, INGEST_BATCH_TRANSFER);
}

static bool write_memset(struct prof_ingest *ingest, const struct ingest_pending *pending,
                         const struct device_row *row)
{
    const struct wire_memset *fill = &pending->command.memset;
    struct ingest_row *out = ingest_row_begin(ingest, INGEST_BATCH_MEMSET);
    bind_times(out, row);
    row_set(out, 4, (int64_t)fill->bytes);
    row_set(out, 5, fill->value);
    bind_api(out, 6, row, true);
    row_known(out, 13, fill->memory_kind);
    row_known(out, 14, (int64_t)fill->graph_node);
    row_known(out, 15, row->flags);
    row_known(out, 16, pending->has_call ? pending->call.stack : 0);
    return ingest_row_end(ingest, INGEST_BATCH_MEMSET);
}

static bool write_sync(struct prof_ingest *ingest, const struct ingest_pending *pending,
                       const struct device_row *row)
{
    const struct wire_sync *sync = &pending->command.sync;
    struct ingest_row *out = ingest_row_begin(ingest, INGEST_BATCH_SYNC);
    bind_times(out, row);
    row_set(out, 4, sync->kind);
    bind_api(out, 5, row, false);
    row_known(out, 10, (int64_t)sync->event);
    row_known(out, 11, pending->has_call ? pending->call.stack : 0);
    return ingest_row_end(ingest, INGEST_BATCH_SYNC);
}

static void tally_command(struct ingest_spool *spool, const struct ingest_pending *pending,
                          bool of_graph, bool outstanding)
{
    static const uint8_t recorded[WIRE_TYPES] = {
        [WIRE_KERNEL] = TALLY_LAUNCH_RECORDED,
        [WIRE_TRANSFER] = TALLY_TRANSFER_RECORDED,
        [WIRE_MEMSET] = TALLY_MEMSET_RECORDED,
    };
    uint8_t type = pending->command.head.type;
    if (of_graph || type == WIRE_SYNC || pending->command.head.flags & WIRE_DEVICE_LAUNCHED)
        return;
    spool->tally[recorded[type] + (outstanding ? 1 : 0)]++; /* OUTSTANDING follows RECORDED */
}

/* Write the row of a device record with what is known of it. `correlation` is kept when the call
 * has a row of its own. */
static bool write_command(struct prof_ingest *ingest, struct ingest_spool *spool,
                          const struct ingest_pending *pending, bool of_graph)
{
    const struct wire_head *head = &pending->command.head;
    struct device_row row = {0};
    bool late = head->flags & WIRE_PENDING;
    uint8_t done_flags = pending->has_done ? pending->done.head.flags : 0;
    bool outstanding =
        late && (!pending->has_done || done_flags & WIRE_ABANDONED);
    if (head->type == WIRE_SYNC) {
        const struct wire_sync *sync = &pending->command.sync;
        struct wire_times times = {0, 0, sync->start, sync->end};
        set_times(ingest, spool, 0, &times, &row);
        row.stream = ingest_global(spool, head->aux, WIRE_STREAM);
    } else if (late)
        set_times(ingest, spool, head->aux, &pending->done.times, &row);
    else
        set_times(ingest, spool, head->aux, &pending->command.kernel.times, &row);
    row.flags = row_flags(head->flags, done_flags);
    if (of_graph)
        row.correlation = (int64_t)pending->command.kernel.correlation;
    if (!set_call(ingest, spool, pending, &row))
        return false;
    tally_command(spool, pending, of_graph, outstanding);
    switch (head->type) {
    case WIRE_KERNEL:
        return write_kernel(ingest, spool, pending, &row);
    case WIRE_TRANSFER:
        return write_transfer(ingest, spool, pending, &row);
    case WIRE_MEMSET:
        return write_memset(ingest, pending, &row);
    default:
        return write_sync(ingest, pending, &row);
    }
}

static bool command_complete(const struct ingest_pending *pending)
{
    return pending->has_command &&
           (!(pending->command.head.flags & WIRE_PENDING) || pending->has_done);
}

static bool settle(struct prof_ingest *ingest, struct ingest_spool *spool,
                   struct ingest_pending *pending)
{
    if (!pending->has_call || !command_complete(pending))
        return true;
    return write_command(ingest, spool, pending, false) && pending_drop(spool, pending);
}

/* Was a graph node created inside this call? Then the call was captured. */
static bool take_nodes(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                       const struct wire_call *call)
{
    struct ingest_thread *thread = ingest_thread_of(ingest, spool, tid);
    if (!thread || !thread->nodes.count)
        return false;
    size_t low = 0, high = thread->nodes.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (thread->nodes.data[middle].node.time < call->start)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = false;
    for (; low < thread->nodes.count && thread->nodes.data[low].node.time <= call->end; low++) {
        found |= !thread->nodes.data[low].taken;
        thread->nodes.data[low].taken = true;
    }
    return found;
}

static void tally_captured(struct ingest_spool *spool, uint8_t klass)
{
    if (klass == WIRE_CLASS_LAUNCH)
        spool->tally[TALLY_LAUNCH_CAPTURED]++;
    else if (klass == WIRE_CLASS_TRANSFER)
        spool->tally[TALLY_TRANSFER_CAPTURED]++;
    else if (klass == WIRE_CLASS_MEMSET)
        spool->tally[TALLY_MEMSET_CAPTURED]++;
}

static bool call_event(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                       const struct wire_call *call)
{
    if (call->head.aux)
        tid = call->head.aux;
    if (call->result != 0 || call->expects != WIRE_EXPECTS_ONE)
        return write_call(ingest, spool, tid, call);
    if (take_nodes(ingest, spool, tid, call)) {
        tally_captured(spool, call->klass);
        return write_call(ingest, spool, tid, call);
    }
    bool opencl = call->head.flags == WIRE_SOURCE_OPENCL;
    struct ingest_pending *pending =
        pending_get(ingest, spool, key_of(call->correlation, opencl));
    if (!pending)
        return false;
    if (pending->has_call) /* a number used twice: keep both calls */
        return write_call(ingest, spool, tid, call);
    pending->has_call = 1;
    pending->tid = tid;
    pending->call = *call;
    /* A wait recorded inside a copy shares its number and stands alone. */
    if (pending->has_command && pending->command.head.type == WIRE_SYNC &&
        call->klass != WIRE_CLASS_SYNC) {
        struct ingest_pending alone = *pending;
        alone.has_call = 0;
        pending->has_command = 0;
        return write_command(ingest, spool, &alone, false);
    }
    return settle(ingest, spool, pending);
}

static bool command_event(struct prof_ingest *ingest, struct ingest_spool *spool,
                          const struct wire_head *head, size_t bytes, uint64_t correlation,
                          bool of_graph)
{
    struct ingest_pending single = {0};
    struct ingest_pending *pending = NULL;
    if (!of_graph && correlation != 0) {
        pending = pending_get(ingest, spool, key_of(correlation, head->flags & WIRE_OPENCL));
        if (!pending)
            return false;
        bool sync = head->type == WIRE_SYNC;
        if (pending->has_command && !sync && pending->command.head.type == WIRE_SYNC) {
            struct ingest_pending alone = *pending;
            alone.has_call = 0;
            pending->has_command = 0;
            if (!write_command(ingest, spool, &alone, false))
                return false;
        } else if (pending->has_command ||
                   (sync && pending->has_call && pending->call.klass != WIRE_CLASS_SYNC))
            pending = NULL; /* a second record of one call stands alone */
    }
    if (!pending) {
        memcpy(&single.command, head, bytes);
        single.has_command = 1;
        return write_command(ingest, spool, &single, of_graph);
    }
    memcpy(&pending->command, head, bytes);
    pending->has_command = 1;
    return settle(ingest, spool, pending);
}

/* Times may be harvested by another thread and then arrive before their command. */
static bool done_event(struct prof_ingest *ingest, struct ingest_spool *spool,
                       const struct wire_done *done)
{
    struct ingest_pending *pending =
        pending_get(ingest, spool, key_of(done->correlation, done->head.flags & WIRE_OPENCL));
    if (!pending)
        return false;
    pending->done = *done;
    pending->has_done = 1;
    return settle(ingest, spool, pending);
}

static bool node_event(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                       const struct wire_graph_node *node)
{
    struct ingest_thread *thread =
        ingest_thread_of(ingest, spool, node->tid ? node->tid : tid);
    if (!thread)
        return false;
    if (thread->nodes.count >= MAX_NODES)
        thread->nodes.count = 0; /* built by hand, not captured: nobody comes for them */
    struct ingest_node *kept = prof_array_add(&thread->nodes);
    if (kept)
        *kept = (struct ingest_node){*node, false};
    return kept != NULL;
}

bool ingest_event(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                  const struct wire_head *head)
{
    const void *record = head;
    switch (head->type) {
    case WIRE_CALL:
        return call_event(ingest, spool, tid, record);
    case WIRE_KERNEL: {
        const struct wire_kernel *kernel = record;
        return command_event(ingest, spool, head, sizeof *kernel, kernel->correlation,
                             kernel->graph_node != 0 || kernel->graph != 0);
    }
    case WIRE_TRANSFER: {
        const struct wire_transfer *transfer = record;
        return command_event(ingest, spool, head, sizeof *transfer, transfer->correlation,
                             transfer->graph_node != 0);
    }
    case WIRE_MEMSET: {
        const struct wire_memset *fill = record;
        return command_event(ingest, spool, head, sizeof *fill, fill->correlation,
                             fill->graph_node != 0);
    }
    case WIRE_SYNC: {
        const struct wire_sync *sync = record;
        return command_event(ingest, spool, head, sizeof *sync, sync->correlation, false);
    }
    case WIRE_DONE:
        return done_event(ingest, spool, record);
    case WIRE_ALLOC:
        return ingest_alloc(ingest, spool, tid, record);
    case WIRE_FREE:
        return ingest_free(ingest, spool, tid, record);
    case WIRE_GRAPH_NODE:
        return node_event(ingest, spool, tid, record);
    case WIRE_RANGE_PUSH:
    case WIRE_RANGE_POP:
    case WIRE_RANGE_START:
    case WIRE_RANGE_END:
    case WIRE_MARK:
    case WIRE_WORK:
        return ingest_range(ingest, spool, tid, head);
    default:
        return true; /* PAD, THREAD, and types of a later version */
    }
}

static bool write_lonely_call(struct prof_ingest *ingest, struct ingest_spool *spool,
                              const struct ingest_pending *pending)
{
    /* The node may have been read after its call. */
    if (take_nodes(ingest, spool, pending->tid, &pending->call))
        tally_captured(spool, pending->call.klass);
    else if (pending->call.klass == WIRE_CLASS_LAUNCH) {
        spool->tally[TALLY_LAUNCH_OUTSTANDING]++;
        spool->tally[TALLY_LAUNCH_UNANSWERED]++;
    } else if (pending->call.klass == WIRE_CLASS_TRANSFER) {
        spool->tally[TALLY_TRANSFER_OUTSTANDING]++;
        spool->tally[TALLY_TRANSFER_UNANSWERED]++;
    } else if (pending->call.klass == WIRE_CLASS_MEMSET) {
        spool->tally[TALLY_MEMSET_OUTSTANDING]++;
        spool->tally[TALLY_MEMSET_UNANSWERED]++;
    }
    return write_call(ingest, spool, pending->tid, &pending->call);
}

/* What has waited long for its other half is written without it once very much waits: memory and what
 * is saved with each commit stay bounded. A command whose times are to come stays. */
bool ingest_events_age(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    if (spool->pending_list.count - spool->pending_holes.count < MUCH_WAITS)
        return true;
    bool ok = true;
    for (size_t i = 0; ok && i < spool->pending_list.count; i++) {
        struct ingest_pending *pending = &spool->pending_list.data[i];
        uint64_t age = ingest->now_ns - pending->arrived_ns;
        if (!pending->has_call && command_complete(pending) && age > COMMAND_AGE_NS)
            ok = write_command(ingest, spool, pending, false) && pending_drop(spool, pending);
        else if (pending->has_call && !pending->has_command && age > CALL_AGE_NS)
            ok = write_lonely_call(ingest, spool, pending) && pending_drop(spool, pending);
    }
    return ok;
}

bool ingest_events_finish(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    bool ok = true;
    for (size_t i = 0; ok && i < spool->pending_list.count; i++) {
        struct ingest_pending *pending = &spool->pending_list.data[i];
        if (pending->has_command)
            ok = write_command(ingest, spool, pending, false);
        else if (pending->has_call)
            ok = write_lonely_call(ingest, spool, pending);
        else if (pending->has_done)
            spool->tally[TALLY_ORPHAN_TIMES]++;
    }
    spool->pending_list.count = 0;
    spool->pending_holes.count = 0;
    prof_map_clear(&spool->pending);
    return ok;
}
