/* The one reader of the tables of events: rows of any of them, with the columns that are wanted,
 * in the file's order or merged by time. prof_events.h is this reader with names for the ids. */
#ifndef PERFKIT_ANALYSIS_EVENTS_H
#define PERFKIT_ANALYSIS_EVENTS_H

#include "libprof/analysis/capture.h"
#include "libprof/analysis/scope.h"
#include "libprof/include/prof_memory.h"

/* ---- rows in order --------------------------------------------------------------------------- */

/* Rows of one SELECT in order of a key, in bounded memory.
 *
 * Rows lie in the file nearly, not strictly, in time order. A first scan of the key alone measures
 * the disorder; rows then pass through a heap as wide as that, and the few that come much later
 * than their time (a range is written when it closes) are held aside. Files in no such order, and
 * small ones, are sorted by SQLite.
 *
 * A row that is two events, a call and what it launched, is read once: rows of the one scan go to
 * both orders. Where one of them would have to hold too many rows it reads by itself from then
 * on. */

#define PROF_ORDERED_COLUMNS 24

/* The columns of a row: integers, NULL = PROF_UNKNOWN. `is_real`: the cell of the query's
 * real_column holds the bits of a double. */
struct prof_ordered_row {
    bool is_real;
    uint8_t users; /* orders that hold it; 0 = not in use */
    int64_t cells[PROF_ORDERED_COLUMNS];
};

struct prof_ordered_entry {
    int64_t key, id;
    struct prof_ordered_row *row;
};

struct prof_ordered_query {
    const char *key;     /* SQL expression, integer; NULL sorts first */
    const char *columns; /* besides key and id */
    const char *table;
    const char *where;     /* a condition; "1": all */
    int64_t small;         /* up to so many rows SQLite sorts; 0 = default */
    int real_column;       /* index of a column that may hold reals (NVTX payloads); -1 = none */
    const char *other_key; /* of a second order, of the rows of which other_where holds, too; or */
    const char *other_where; /* NULL */
};

struct prof_ordered;

/* A row of another query: SELECT prof_cells(?1, COLUMNS) with a pointer to it, of the type
 * PROF_CELLS, bound to ?1 puts the values there. Half the cost of one SQLite call for each. */
struct prof_cells {
    int count, real_column; /* as in struct prof_ordered_query */
    struct prof_ordered_row row;
};
#define PROF_CELLS "prof_cells"

/* Once for each capture, when it is opened: the SQL functions that hand rows over. */
enum prof_status prof_ordered_init(struct prof_capture *capture, struct prof_error *err);

/* Begin; orders[1] only where there is an other_key. The caller keeps a transaction (prof_begin)
 * from before this until after the close, so that all scans see the same rows. */
enum prof_status prof_ordered_open(struct prof_capture *capture,
                                   const struct prof_ordered_query *query,
                                   struct prof_ordered *orders[2], struct prof_error *err);

/* The next row in order of (key, id); NULL at the end or on an error. Valid until the next call
 * for the same order. */
const struct prof_ordered_entry *prof_ordered_next(struct prof_ordered *ordered);

/* PROF_OK, or what stopped it. NULL allowed. */
enum prof_status prof_ordered_close(struct prof_ordered *ordered, struct prof_error *err);

/* What a row is. The first four are work of the device: operations. */
enum prof_op_kind {
    PROF_OP_KERNEL,
    PROF_OP_TRANSFER,
    PROF_OP_MEMSET,
    PROF_OP_GRAPH,
    PROF_OP_SYNC,
    PROF_OP_CALL,        /* a row of api_call */
    PROF_OP_KERNEL_CALL, /* the call in a row of that table: start, duration and name are its */
    PROF_OP_TRANSFER_CALL,
    PROF_OP_MEMSET_CALL,
    PROF_OP_SYNC_CALL,
    PROF_OP_RANGE,
    PROF_OP_MARKER,
    PROF_OP_ALLOCATION,
    PROF_OP_FREE, /* an allocation at its end */
    PROF_OP_OVERHEAD,
    PROF_OP_MIGRATION,
    PROF_OP_JIT,
    PROF_OP_KINDS
};

struct prof_op_table {
    const char *name;
    enum prof_event_kind event, record; /* `record` of calls: whose rows they are in */
};
struct prof_op_table prof_op_table(enum prof_op_kind kind);

#define PROF_OPS(name) (1u << PROF_OP_##name)
#define PROF_OPS_MEMORY (PROF_OPS(TRANSFER) | PROF_OPS(MEMSET))
#define PROF_OPS_DEVICE (PROF_OPS(KERNEL) | PROF_OPS_MEMORY | PROF_OPS(GRAPH))
#define PROF_OPS_CALLS                                                                             \
    (PROF_OPS(CALL) | PROF_OPS(KERNEL_CALL) | PROF_OPS(TRANSFER_CALL) | PROF_OPS(MEMSET_CALL) |    \
     PROF_OPS(SYNC_CALL))

/* Columns that a query can select: name, what a cell holds, member of struct prof_event_row. */
#define PROF_EVENT_FIELDS(X)                                                                       \
    X(ID, ID, id)                                                                                  \
    X(START, INTEGER, start_ns)                                                                    \
    X(DURATION, SIZE, duration_ns)                                                                 \
    X(STREAM, ID, stream)                                                                          \
    X(THREAD, ID, thread)                                                                          \
    X(PROCESS, ID, process)                                                                        \
    X(DEVICE, ID, device)                                                                          \
    X(CONTEXT, ID, context)                                                                        \
    X(NAME, ID, name)                                                                              \
    X(CALL, INTEGER, lead_ns)                                                                      \
    X(CALL_DURATION, SIZE, call_duration_ns)                                                       \
    X(CORRELATION, INTEGER, correlation)                                                           \
    X(QUEUE_DELAY, INTEGER, queue_delay_ns)                                                        \
    X(SUBMIT_DELAY, INTEGER, submit_delay_ns)                                                      \
    X(FLAGS, ID, flags)                                                                            \
    X(GRAPH_NODE, INTEGER, graph_node)                                                             \
    X(STACK, ID, stack)                                                                            \
    X(CONFIG, ID, config)                                                                          \
    X(GRAPH, INTEGER, graph)                                                                       \
    X(BYTES, SIZE, bytes)                                                                          \
    X(COPY_KIND, CODE, copy_kind)                                                                  \
    X(SOURCE_KIND, CODE, source_kind)                                                              \
    X(TARGET_KIND, CODE, target_kind)                                                              \
    X(BLOCKING, INTEGER, blocking)                                                                 \
    X(PEER, ID, peer)                                                                              \
    X(VALUE, INTEGER, value)                                                                       \
    X(KIND, CODE, what)                                                                            \
    X(SYNC_EVENT, INTEGER, sync_event)                                                             \
    X(RESULT, INTEGER, result)                                                                     \
    X(SOURCE, CODE, source)                                                                        \
    X(CLASS, CODE, class_)                                                                         \
    X(DOMAIN, ID, domain)                                                                          \
    X(CATEGORY, INTEGER, category)                                                                 \
    X(COLOR, INTEGER, color)                                                                       \
    X(PAYLOAD, PAYLOAD, payload)                                                                   \
    X(DEPTH, INTEGER, depth)                                                                       \
    X(END_THREAD, ID, end_thread)                                                                  \
    X(END, INTEGER, other_ns)                                                                      \
    X(ADDRESS, INTEGER, address)                                                                   \
    X(FAULTS, INTEGER, faults)

#define PROF_FIELD_NAME_OF(name, type, member) PROF_FIELD_##name,
enum prof_event_field {
    PROF_EVENT_FIELDS(PROF_FIELD_NAME_OF) PROF_FIELDS,
    /* Not a column: operations of a CUDA graph get call, thread, name and stack of its launch. */
    PROF_FIELD_LAUNCH = PROF_FIELDS
};
#define PROF_FIELD(name) (UINT64_C(1) << PROF_FIELD_##name)
#define PROF_FIELDS_ALL (PROF_FIELD(LAUNCH) - 1)

/* A row. What its table does not have, or was not selected, is 0 in ids and kinds and PROF_UNKNOWN
 * in all else. */
struct prof_event_row {
    enum prof_op_kind kind;
    int64_t id;
    int64_t start_ns, duration_ns;
    int64_t within_ns; /* of duration_ns, what lies before the end of the query's time */
    int64_t stream, thread, process, device, context;
    int64_t name;             /* string id: of a range, of the call of everything else */
    int64_t lead_ns, call_ns; /* column api_lead; start of the call */
    int64_t call_duration_ns; /* unknown for what graphs ran */
    int64_t launch_ns;        /* the same, for what graphs ran that of the launch */
    bool in_graph;            /* it ran as a node of a CUDA graph */
    bool in_scope;            /* of the query; false only where it marks */
    int64_t correlation;
    int64_t queue_delay_ns, submit_delay_ns;
    int64_t flags;
    int64_t graph_node; /* graph_node.node of its process */
    int64_t stack;      /* stack.id of the call, of a graph's launch */
    int64_t config;     /* kernels: launch_config id, one for all that are not kept apart */
    int64_t graph;      /* whole graphs: the graph's id */
    int64_t bytes;
    int copy_kind;                /* memsets: PROF_COPY_MEMSET */
    int source_kind, target_kind; /* memory kinds; all but transfers: target only */
    int64_t blocking;             /* transfers: 1, 0 */
    int64_t peer;
    int64_t value;      /* memsets */
    int what;           /* sync.kind, overhead.kind, migration.kind, jit.operation */
    int64_t sync_event; /* synchronizations */
    int64_t result;     /* calls */
    int source, class_;
    int64_t domain, category, color, depth, end_thread; /* NVTX; frees: end_thread */
    int64_t payload;
    bool payload_is_real; /* `payload` holds the bits of a double */
    int64_t other_ns;     /* allocations: their end; frees: the allocation's start */
    int64_t address, faults;
};

/* When the host began to wait, of a row of PROF_OP_SYNC with PROF_FIELD(CALL): its call did, where
 * that is known. */
static inline int64_t prof_sync_begin(const struct prof_event_row *row)
{
    return row->call_ns == PROF_UNKNOWN ? row->start_ns : row->call_ns;
}

/* What prof_allocation_of_row needs. */
#define PROF_FIELDS_ALLOCATION                                                                     \
    (PROF_FIELD(ID) | PROF_FIELD(PROCESS) | PROF_FIELD(THREAD) | PROF_FIELD(DEVICE) |              \
     PROF_FIELD(CONTEXT) | PROF_FIELD(START) | PROF_FIELD(END) | PROF_FIELD(BYTES) |               \
     PROF_FIELD(ADDRESS) | PROF_FIELD(TARGET_KIND))

/* Of a row of PROF_OP_ALLOCATION; kinds are 0 to 255. */
struct prof_allocation prof_allocation_of_row(const struct prof_event_row *row);

struct prof_event_query {
    uint32_t tables;                  /* PROF_OPS(...) | ... */
    uint64_t fields;                  /* PROF_FIELD(...) | ... */
    const struct prof_scope *scope;   /* rows that pass; NULL = all */
    const struct prof_filter *filter; /* the same where no scope is open */
    bool mark;                        /* those that do not pass come too, with `in_scope` false */
    bool started;                     /* only rows with a known start */
    int64_t last; /* only so many rows of each table, the last by number; 0 = all */
    /* A condition on their columns, or NULL. It comes last, behind AND: no OR outside parentheses;
     * where rows are not in order, ORDER BY id and LIMIT may follow, but nothing that SQLite sorts:
     * the cells of a row are kept as it is read (prof_cells). */
    const char *where;
    bool in_order; /* by start, or the call's where that is not known; then table, then id */
};

/* Rows one by one, valid until the next. Not in order, tables come one after another and rows as
 * the file has them. In order it takes the memory of events.h, and holds a read transaction.
 * prof_event_cursor_close reports what made it stop early. */
struct prof_event_cursor;
enum prof_status prof_event_cursor_open(struct prof_capture *capture,
                                        const struct prof_event_query *query,
                                        struct prof_event_cursor **cursor, struct prof_error *err);
const struct prof_event_row *prof_event_cursor_next(struct prof_event_cursor *cursor);
enum prof_status prof_event_cursor_close(struct prof_event_cursor *cursor, struct prof_error *err);

/* False: out of memory, stop. */
typedef bool prof_event_row_seen(void *user, const struct prof_event_row *row);

/* All rows of a query. */
enum prof_status prof_event_rows(struct prof_capture *capture, const struct prof_event_query *query,
                                 prof_event_row_seen *seen, void *user, struct prof_error *err);

#endif
