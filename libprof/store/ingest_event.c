/* Calls and device records, joined by correlation id.
 *
 * A call that makes one device record and that record arrive apart and in any order; they wait for
 * each other in a table and become one row. Commands of OpenCL come in three parts (call, command
 * without times, times). What never finds its other half becomes a row with NULL where the missing
 * part would stand, and is counted. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "libprof/store/ingest_private.h"

#define MAX_NODES 1000000u
#define MUCH_WAITS 262144u
#define COMMAND_AGE_NS 5000000000u
#define CALL_AGE_NS 30000000000u /* a device may be that far behind */

static const char waiting[] = "records that wait for their other half";

static uint64_t correlation_key(uint64_t correlation, bool opencl)
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
        if (ingest_memory(ingest, prof_array_reserve(&spool->pending_list, 1), waiting) != PROF_OK)
            return NULL;
        at = spool->pending_list.count++;
    }
    if (ingest_memory(ingest, prof_map_put(&spool->pending, key, at), waiting) != PROF_OK)
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

static bool command_complete(const struct ingest_pending *pending)
{
    return pending->has_command &&
           (!(pending->command.head.flags & WIRE_PENDING) || pending->has_done);
}

static enum prof_status write_complete_command(struct prof_ingest *ingest,
                                               struct ingest_spool *spool,
                                               struct ingest_pending *pending)
{
    if (!pending->has_call || !command_complete(pending))
        return PROF_OK;
    PROF_TRY(ingest_write_command(ingest, spool, pending, false));
    return ingest_memory(ingest, pending_drop(spool, pending), waiting);
}

/* Was a graph node created inside this call? Then the call was captured. */
static bool take_nodes(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                       const struct wire_call *call)
{
    struct ingest_thread *thread = ingest_thread_of(ingest, spool, tid);
    if (!thread || !thread->nodes.count)
        return false;
    size_t low;
    PROF_FIND_FIRST(low, at, thread->nodes.count, thread->nodes.data[at].node.time >= call->start);
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

/* Who keeps the device busy? */
static void note_caller(struct ingest_spool *spool, uint32_t tid, const struct wire_call *call)
{
    bool device = (call->klass >= WIRE_CLASS_LAUNCH && call->klass <= WIRE_CLASS_MEMSET) ||
                  call->klass == WIRE_CLASS_GRAPH_LAUNCH;
    if (!device || call->head.flags == WIRE_SOURCE_OPENCL ||
        (spool->tally[TALLY_CALLERS] && spool->tally[TALLY_CALLER_TID] == tid))
        return;
    spool->tally[TALLY_CALLERS] = spool->tally[TALLY_CALLERS] ? 2 : 1;
    spool->tally[TALLY_CALLER_TID] = tid;
}

static enum prof_status call_event(struct prof_ingest *ingest, struct ingest_spool *spool,
                                   uint32_t tid, const struct wire_call *call)
{
    if (call->head.aux)
        tid = call->head.aux;
    note_caller(spool, tid, call);
    spool->tally[TALLY_GRAPH_LAUNCHED] += call->klass == WIRE_CLASS_GRAPH_LAUNCH && !call->result;
    if (call->result != 0 || call->expects != WIRE_EXPECTS_ONE)
        return ingest_write_call(ingest, spool, tid, call);
    if (take_nodes(ingest, spool, tid, call)) {
        tally_captured(spool, call->klass);
        return ingest_write_call(ingest, spool, tid, call);
    }
    bool opencl = call->head.flags == WIRE_SOURCE_OPENCL;
    struct ingest_pending *pending =
        pending_get(ingest, spool, correlation_key(call->correlation, opencl));
    if (!pending)
        return ingest->error.status;
    if (pending->has_call) /* a number used twice: keep both calls */
        return ingest_write_call(ingest, spool, tid, call);
    pending->has_call = 1;
    pending->tid = tid;
    pending->call = *call;
    /* A wait recorded inside a copy shares its number and stands alone. */
    if (pending->has_command && pending->command.head.type == WIRE_SYNC &&
        !wire_class_waits(call->klass)) {
        struct ingest_pending alone = *pending;
        alone.has_call = 0;
        pending->has_command = 0;
        return ingest_write_command(ingest, spool, &alone, false);
    }
    return write_complete_command(ingest, spool, pending);
}

static enum prof_status command_event(struct prof_ingest *ingest, struct ingest_spool *spool,
                                      const struct wire_head *head, size_t bytes,
                                      uint64_t correlation, bool of_graph)
{
    struct ingest_pending single = {0};
    struct ingest_pending *pending = NULL;
    if (!of_graph && correlation != 0) {
        pending =
            pending_get(ingest, spool, correlation_key(correlation, head->flags & WIRE_OPENCL));
        if (!pending)
            return ingest->error.status;
        bool sync = head->type == WIRE_SYNC;
        if (pending->has_command && !sync && pending->command.head.type == WIRE_SYNC) {
            struct ingest_pending alone = *pending;
            alone.has_call = 0;
            pending->has_command = 0;
            PROF_TRY(ingest_write_command(ingest, spool, &alone, false));
        } else if (pending->has_command ||
                   (sync && pending->has_call && !wire_class_waits(pending->call.klass)))
            pending = NULL; /* a second record of one call stands alone */
    }
    if (!pending) {
        memcpy(&single.command, head, bytes);
        single.has_command = 1;
        return ingest_write_command(ingest, spool, &single, of_graph);
    }
    memcpy(&pending->command, head, bytes);
    pending->has_command = 1;
    return write_complete_command(ingest, spool, pending);
}

/* Times may be harvested by another thread and then arrive before their command. */
static enum prof_status done_event(struct prof_ingest *ingest, struct ingest_spool *spool,
                                   const struct wire_done *done)
{
    struct ingest_pending *pending = pending_get(
        ingest, spool, correlation_key(done->correlation, done->head.flags & WIRE_OPENCL));
    if (!pending)
        return ingest->error.status;
    pending->done = *done;
    pending->has_done = 1;
    return write_complete_command(ingest, spool, pending);
}

static enum prof_status node_event(struct prof_ingest *ingest, struct ingest_spool *spool,
                                   uint32_t tid, const struct wire_graph_node *node)
{
    struct ingest_thread *thread = ingest_thread_of(ingest, spool, node->tid ? node->tid : tid);
    if (!thread)
        return ingest->error.status;
    if (node->original) /* a clone: no captured call made it */
        return ingest_record_row(ingest, spool, tid, &node->head);
    if (thread->nodes.count >= MAX_NODES)
        thread->nodes.count = 0; /* built by hand, not captured: no call will take them */
    struct ingest_node *kept = prof_array_add(&thread->nodes);
    if (!kept)
        return ingest_no_memory(ingest, "nodes of graphs");
    *kept = (struct ingest_node){*node, false};
    return spool->restoring ? PROF_OK : ingest_record_row(ingest, spool, tid, &node->head);
}

enum prof_status ingest_event(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
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
    case WIRE_ALLOC_FAILED:
        return ingest_alloc_failed(ingest, spool, tid, record);
    case WIRE_FREE:
        return ingest_free(ingest, spool, tid, record);
    case WIRE_GRAPH_NODE:
        return node_event(ingest, spool, tid, record);
    case WIRE_GRAPH:
        return ingest_graph(ingest, spool, record);
    case WIRE_POOL:
        return ingest_pool(ingest, spool, tid, record);
    case WIRE_MIGRATION:
        return ingest_migration(ingest, spool, record);
    case WIRE_CPU_SAMPLE:
        return ingest_cpu_sample(ingest, spool, record);
    case WIRE_CPU_FAULTS:
        return ingest_cpu_faults(ingest, spool, record);
    case WIRE_STALL:
    case WIRE_STALL_CONTEXT:
        return ingest_stall(ingest, spool, head);
    case WIRE_EXACT_COUNT:
        return ingest_exact_count(ingest, spool, record);
    case WIRE_COUNTER_BURST:
    case WIRE_COUNTER_SAMPLE:
        return ingest_counter_event(ingest, spool, head);
    case WIRE_RANGE_PUSH:
    case WIRE_RANGE_POP:
    case WIRE_RANGE_START:
    case WIRE_RANGE_END:
    case WIRE_MARK:
    case WIRE_WORK:
    case WIRE_FIELD:
        return ingest_range(ingest, spool, tid, head);
    default:
        return ingest_record_row(ingest, spool, tid, head);
    }
}

static enum prof_status write_lonely_call(struct prof_ingest *ingest, struct ingest_spool *spool,
                                          const struct ingest_pending *pending)
{
    /* The node may have been read after its call. */
    if (take_nodes(ingest, spool, pending->tid, &pending->call))
        tally_captured(spool, pending->call.klass);
    else if (pending->call.klass == WIRE_CLASS_LAUNCH) {
        spool->tally[TALLY_LAUNCH_OUTSTANDING]++;
        spool->tally[TALLY_LAUNCH_UNANSWERED]++;
        tally_lacking(spool, pending->call.start);
    } else if (pending->call.klass == WIRE_CLASS_TRANSFER) {
        spool->tally[TALLY_TRANSFER_OUTSTANDING]++;
        spool->tally[TALLY_TRANSFER_UNANSWERED]++;
    } else if (pending->call.klass == WIRE_CLASS_MEMSET) {
        spool->tally[TALLY_MEMSET_OUTSTANDING]++;
        spool->tally[TALLY_MEMSET_UNANSWERED]++;
    }
    return ingest_write_call(ingest, spool, pending->tid, &pending->call);
}

/* What has waited long for its other half is written without it once very much waits: memory and
 * what is saved with each commit stay bounded. A command whose times are to come stays. */
enum prof_status ingest_events_age(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    if (spool->pending_list.count - spool->pending_holes.count < MUCH_WAITS)
        return PROF_OK;
    for (size_t i = 0; i < spool->pending_list.count; i++) {
        struct ingest_pending *pending = &spool->pending_list.data[i];
        uint64_t age = ingest->now_ns - pending->arrived_ns;
        if (!pending->has_call && command_complete(pending) && age > COMMAND_AGE_NS)
            PROF_TRY(ingest_write_command(ingest, spool, pending, false));
        else if (pending->has_call && !pending->has_command && age > CALL_AGE_NS)
            PROF_TRY(write_lonely_call(ingest, spool, pending));
        else
            continue;
        PROF_TRY(ingest_memory(ingest, pending_drop(spool, pending), waiting));
    }
    return PROF_OK;
}

enum prof_status ingest_events_finish(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    for (size_t i = 0; i < spool->pending_list.count; i++) {
        struct ingest_pending *pending = &spool->pending_list.data[i];
        if (pending->has_command)
            PROF_TRY(ingest_write_command(ingest, spool, pending, false));
        else if (pending->has_call)
            PROF_TRY(write_lonely_call(ingest, spool, pending));
        else if (pending->has_done)
            spool->tally[TALLY_ORPHAN_TIMES]++;
    }
    spool->pending_list.count = 0;
    spool->pending_holes.count = 0;
    prof_map_clear(&spool->pending);
    return PROF_OK;
}

/* Where recording is switched off while a CUDA graph is replayed again and again, CUPTI 13.0 gives
 * the kernels of its last recorded replay the ends of a later one, which is not recorded (seen on
 * an H200: 60 kernels of 2 us that all took 69 ms). Such ends are not known. */
static const char find_late_replays[] =
    "CREATE TEMP TABLE pausing(process INTEGER, correlation INTEGER, called INTEGER, pause "
    "INTEGER, "
    "PRIMARY KEY(process, correlation)) WITHOUT ROWID; "
    "CREATE TEMP TABLE late(process INTEGER, correlation INTEGER, graph INTEGER, "
    "PRIMARY KEY(process, correlation, graph)) WITHOUT ROWID; "
    "CREATE TEMP TABLE cell(stream INTEGER, config INTEGER, second INTEGER, "
    "PRIMARY KEY(stream, config, second)) WITHOUT ROWID; "
    /* The last graph launches before each pause: a graph's kernels are by far more. */
    "WITH times AS (SELECT process, start AS time, start AS pause, NULL AS correlation FROM "
    "recording WHERE NOT begins AND reason IN (6, 7) UNION ALL SELECT t.process, c.start, NULL, "
    "c.correlation FROM api_call c JOIN thread t ON t.id = c.thread WHERE c.class = 4), "
    "next AS (SELECT process, correlation, time AS called, min(pause) OVER (PARTITION BY process "
    "ORDER BY time DESC) AS pause FROM times), "
    "numbered AS (SELECT *, row_number() OVER (PARTITION BY process, pause ORDER BY called DESC) "
    "AS back FROM next WHERE correlation NOT NULL AND pause NOT NULL) "
    "INSERT OR IGNORE INTO pausing SELECT process, correlation, called, pause FROM numbered WHERE "
    "back <= 100; "
    "WITH replay AS MATERIALIZED (SELECT p.process, p.correlation, k.graph_node >> 32 AS graph, "
    "called, pause, max(k.start + k.duration) AS ended FROM kernel k CROSS JOIN stream s ON s.id = "
    "k.stream CROSS JOIN pausing p ON p.process = s.process AND p.correlation = k.correlation "
    "WHERE "
    "k.graph_node NOT NULL GROUP BY 1, 2, 3), "
    "ranked AS (SELECT *, max(called) OVER (PARTITION BY process, graph, pause) AS newest FROM "
    "replay) "
    "INSERT INTO late SELECT process, correlation, graph FROM ranked WHERE called = newest AND "
    "ended > pause";

#define LATE_KERNELS                                                                               \
    "kernel k CROSS JOIN stream s ON s.id = k.stream CROSS JOIN late l ON l.process = s.process "  \
    "AND l.correlation = k.correlation AND l.graph = k.graph_node >> 32 WHERE k.graph_node NOT "   \
    "NULL"

/* The sums of the seconds in which the late kernels began, once more without these. */
static enum prof_status sum_up_without_late(struct prof_ingest *ingest)
{
    PROF_TRY(ingest_rollup_flush(ingest));
    rollup_sums_free(&ingest->rollup);
    PROF_TRY(ingest_exec(
        ingest,
        "INSERT OR IGNORE INTO cell SELECT k.stream, ifnull(k.config, 0), k.start / 1000000000 "
        "FROM " LATE_KERNELS "; DELETE FROM rollup WHERE (stream, ifnull(config, 0), second) IN "
        "(SELECT stream, config, second FROM cell)"));
    sqlite3_stmt *row;
    PROF_TRY(ingest_query(
        ingest,
        "SELECT k.stream, k.config, k.start, k.duration FROM kernel k CROSS JOIN cell c ON "
        "c.stream = k.stream AND c.config = ifnull(k.config, 0) AND c.second = k.start / "
        "1000000000 WHERE k.duration NOT NULL",
        &row));
    bool ok = true;
    while (ok && sqlite3_step(row) == SQLITE_ROW)
        ok = rollup_sums_add(&ingest->rollup, sqlite3_column_int64(row, 0),
                             sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2),
                             (uint64_t)sqlite3_column_int64(row, 3));
    PROF_TRY(ingest_query_end(ingest, row, PROF_OK));
    return ok ? PROF_OK : ingest_no_memory(ingest, "sums per second");
}

enum prof_status ingest_graph_ends(struct prof_ingest *ingest)
{
    static_assert(WIRE_WINDOW_OVERHEAD == 6 && WIRE_WINDOW_SAMPLE == 7 &&
                      WIRE_CLASS_GRAPH_LAUNCH == 4,
                  "numbers in find_late_replays");
    PROF_TRY(ingest_batches_flush(ingest));
    sqlite3_stmt *some;
    PROF_TRY(
        ingest_query(ingest,
                     "SELECT 1 FROM recording WHERE NOT begins AND reason IN (6, 7) AND EXISTS "
                     "(SELECT 1 FROM kernel WHERE graph_node NOT NULL)",
                     &some));
    bool paused = sqlite3_step(some) == SQLITE_ROW;
    PROF_TRY(ingest_query_end(ingest, some, PROF_OK));
    if (!paused)
        return PROF_OK;
    PROF_TRY(ingest_exec(ingest, find_late_replays));
    PROF_TRY(ingest_exec(
        ingest,
        "UPDATE kernel SET duration = NULL WHERE id IN (SELECT k.id FROM " LATE_KERNELS ")"));
    char note[160];
    int kernels = sqlite3_changes(ingest->db);
    snprintf(note, sizeof note,
             "the end of %d kernel%s of CUDA graphs is not known: recording paused, and the graph "
             "was replayed again",
             kernels, kernels == 1 ? "" : "s");
    if (kernels && !ingest->ring.ns) /* a ring has thrown kernels of these seconds away */
        PROF_TRY(sum_up_without_late(ingest));
    PROF_TRY(ingest_exec(ingest, "DROP TABLE pausing; DROP TABLE late; DROP TABLE cell"));
    return kernels ? ingest_health_line(ingest, 0, PROF_HEALTH_graph_ends, NULL, NULL, note)
                   : PROF_OK;
}
