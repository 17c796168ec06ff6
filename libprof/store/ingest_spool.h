/* What is known of one spool: its numbers, its unfinished records, its counts.
 * For the ingest's files only, see ingest_private.h. */
#ifndef PERFKIT_STORE_INGEST_SPOOL_H
#define PERFKIT_STORE_INGEST_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/base/array.h"
#include "libprof/store/clockmap.h"
#include "libprof/base/map.h"
#include "libprof/spool/reader.h"
#include "libprof/wire/wire.h"

struct prof_ingest;

/* A local id of a spool and what it stands for. */
struct ingest_local {
    uint32_t kind;  /* enum wire_type: STRING, CONFIG, DEVICE, CONTEXT, STREAM, CLOCK,
                       COUNTER_DEVICE, CPU_PROCESS, CPU_STACK; 0 = none */
    uint32_t extra; /* STREAM: clock id; CONTEXT: native; CONFIG: INGEST_CONFIG_FILTERED;
                       COUNTER_DEVICE: how many counters it has */
    int64_t global; /* row id */
};

#define INGEST_CONFIG_FILTERED 1u /* not wanted by the kernel filter: it has no row */

/* Counts of what became rows, per process: one side of the conservation equations. */
enum ingest_tally {
    TALLY_LAUNCH_RECORDED,
    TALLY_LAUNCH_OUTSTANDING,
    TALLY_LAUNCH_CAPTURED,
    TALLY_TRANSFER_RECORDED,
    TALLY_TRANSFER_OUTSTANDING,
    TALLY_TRANSFER_CAPTURED,
    TALLY_MEMSET_RECORDED,
    TALLY_MEMSET_OUTSTANDING,
    TALLY_MEMSET_CAPTURED,
    TALLY_ALLOC_RECORDED,
    TALLY_FREE_RECORDED,
    TALLY_FREE_UNMATCHED,
    TALLY_RANGE_PUSHED,
    TALLY_RANGE_POPPED,
    TALLY_RANGE_STARTED,
    TALLY_RANGE_ENDED,
    TALLY_MARKED,
    TALLY_ORPHAN_TIMES,      /* DONE without its command */
    TALLY_DAMAGED,           /* chunks cut short, records of no known type */
    TALLY_REPAIRED,          /* device times put back into order */
    TALLY_LAUNCH_UNANSWERED, /* part of OUTSTANDING: the call came, its command did not */
    TALLY_TRANSFER_UNANSWERED,
    TALLY_MEMSET_UNANSWERED,
    TALLY_LAUNCH_FILTERED,
    TALLY_DEVICE_NEWEST_NS,  /* no count: CLOCK_MONOTONIC of the newest device record's end */
    TALLY_FETCHED_NS,        /* device records of what ended before then have been handed over */
    TALLY_KERNEL_FILTERED,   /* every kernel left out, nodes of graphs too */
    TALLY_LAUNCH_UNRECORDED, /* launches called without a device record, known at the end */
    TALLY_LAUNCH_UNCALLED,   /* device records whose call was not seen; part of RECORDED */
    TALLY_TRANSFER_UNCALLED,
    TALLY_MEMSET_UNCALLED,
    TALLY_GRAPH_LAUNCHED, /* graph launches that the API took */
    TALLY_GRAPH_KERNELS,  /* rows of device records of graphs */
    TALLY_GRAPH_TRANSFERS,
    TALLY_GRAPH_MEMSETS,
    TALLY_GRAPH_WHOLE,      /* executions recorded as a whole */
    TALLY_GRAPH_FILTERED,   /* kernels of graphs left out by the kernel filter */
    TALLY_DEVICE_CALLED,    /* launches, copies and fills called, known at the end */
    TALLY_COPY_UNRECORDED,  /* the same of copies and fills, known at the end */
    TALLY_FINAL_NS,         /* no count: when the last flush of an end began, 0 = there was none */
    TALLY_DEATH_TID,        /* the thread that a deadly signal stopped */
    TALLY_CUDA_STARTED,     /* 1: CUPTI collects in it: its calls are known when they are fetched */
    TALLY_CALLER_TID,       /* of CUDA's launches, copies and fills */
    TALLY_CALLERS,          /* 0, 1 or, for more than one thread, 2 */
    TALLY_LACKING_SINCE_NS, /* no count: when the first call was made that lacks its device record
                             */
    TALLIES                 /* new ones at the end: unfinished captures keep them as an array */
};
_Static_assert(TALLY_MEMSET_UNANSWERED == 22 && TALLY_GRAPH_WHOLE == 35,
               "tallies keep their places");

/* A call and its device record on the way to each other. */
struct ingest_pending {
    uint64_t key; /* correlation << 1 | opencl */
    uint32_t tid;
    uint8_t has_call, has_command, has_done;
    uint64_t arrived_ns;
    struct wire_call call;
    union {
        struct wire_head head;
        struct wire_kernel kernel;
        struct wire_transfer transfer;
        struct wire_memset memset;
        struct wire_sync sync;
    } command;
    struct wire_done done;
};

/* A Python code object (ingest_stack.c). */
struct ingest_code {
    int64_t function, file; /* string.id, 0 = unknown */
    uint32_t first_line, version;
    PROF_ARRAY(uint8_t) table;
};

/* What of a wire_field is not its range's. */
struct ingest_field {
    uint64_t value;
    uint32_t name;
    uint8_t type;
};
#define INGEST_FIELDS 8u /* most of a range; the collector sends no more of one payload */

struct ingest_open_range {
    uint32_t tid;
    int depth; /* open ranges of its domain below it */
    uint8_t has_work, field_count;
    int64_t trigger; /* ring_trigger.id: it was slow before it ended; 0 = it was not */
    struct ingest_field fields[INGEST_FIELDS];
    struct wire_range range;
    struct wire_work work;
};

struct ingest_ended {
    uint32_t tid;
    struct wire_range_end end;
};

struct ingest_node {
    struct wire_graph_node node;
    bool taken; /* its call was found */
};

struct ingest_thread {
    uint32_t tid;
    int64_t row;
    PROF_ARRAY(struct ingest_open_range) stack;
    PROF_ARRAY(struct ingest_node) nodes; /* graph nodes made on this thread, by time */
    bool named;                           /* for good */
    uint8_t looked;                       /* how often its name was read from /proc */
    uint64_t first_ns;
};

struct ingest_live {
    uint64_t start;
    int64_t row;
    uint32_t source;
    uint64_t id;
    uint32_t next; /* index + 1 of an older allocation with the same id */
};

/* The name of an object that has no row yet. */
struct ingest_unclaimed {
    struct wire_name name;
    uint64_t object; /* as in ingest_object */
};

struct ingest_freed {
    uint32_t tid;
    struct wire_free free;
};

struct ingest_clock {
    uint32_t id;
    struct prof_clockmap map;
    PROF_ARRAY(struct wire_clock) recent; /* newest, for the state blob */
    uint64_t stored_mono_ns;              /* of the last clock_sync row */
    struct wire_clock last;
    bool last_stored;
};

/* One spool = one process image that had events. */
struct ingest_spool {
    char name[64];
    int64_t id; /* number in the state tables */
    struct prof_spool *reader;
    int64_t process; /* process.id; 0 = of the sampler */
    PROF_ARRAY(struct ingest_local) locals;
    uint64_t defined; /* local ids seen defined */
    PROF_ARRAY(struct ingest_clock) clocks;
    struct prof_map threads; /* tid -> index in thread_list */
    PROF_ARRAY(struct ingest_thread) thread_list;
    uint32_t last_tid;
    size_t last_thread; /* index + 1 */
    /* a long name whose end is still to come */
    uint32_t partial_id;
    PROF_ARRAY(char) partial;
    struct prof_map pending; /* key -> index in pending_list */
    PROF_ARRAY(struct ingest_pending) pending_list;
    PROF_ARRAY(uint32_t) pending_holes;
    PROF_ARRAY(struct ingest_open_range) started; /* start/end ranges */
    struct prof_map started_at;                   /* range id -> index in started */
    PROF_ARRAY(struct ingest_ended) ended;        /* ends seen before their start */
    struct prof_map ended_at;                     /* range id -> index in ended */
    struct prof_map live;                         /* hash of (source, id) -> index + 1 */
    PROF_ARRAY(struct ingest_live) live_list;
    PROF_ARRAY(uint32_t) live_holes;
    PROF_ARRAY(struct ingest_freed) freed; /* frees seen before their allocation */
    struct prof_map stacks;                /* local stack id -> stack.id */
    struct prof_map foreign_modules;       /* of an import: string.id of the path -> module.id */
    struct prof_map code_at;               /* local code id -> index in codes */
    PROF_ARRAY(struct ingest_code) codes;
    uint64_t modules_ns;     /* when they were last looked for */
    struct prof_map handles; /* kind and handle -> the object that has it now */
    struct prof_map objects; /* kind and object -> row */
    PROF_ARRAY(struct ingest_unclaimed) unclaimed;
    struct prof_map unclaimed_at; /* kind and object -> index in unclaimed */
    char comm[16];                /* the process's own name, as of comm_ns */
    uint64_t comm_ns;
    uint64_t threads_ns; /* when threads' names were last looked at */
    uint64_t tally[TALLIES];
    uint64_t counted[WIRE_COUNTS]; /* by its process, before its last records were read */
    bool
        restoring; /* waiting records are fed again: what they wrote at first stands in the store */
    bool dirty;    /* consumed something since the last commit */
    int64_t unclosed; /* ranges that were written without an end */
    bool finished;    /* process gone, all read, trust block written: the file may go */
    bool unlinked;
};

static inline void tally_lacking(struct ingest_spool *spool, uint64_t called_ns)
{
    uint64_t *since = &spool->tally[TALLY_LACKING_SINCE_NS];
    if (called_ns && (!*since || called_ns < *since))
        *since = called_ns;
}

#endif
