/* Shared by the ingest's files only; see ingest.h for what it does.
 *
 *   ingest.c           open, step, commit, finish
 *   ingest_capture.c   the row of the capture, the kernel filter
 *   ingest_process.c   the lifecycle table: processes, who is alive
 *   ingest_pid.c       pids of containers
 *   ingest_define.c    the definition stream of a spool: local ids to rows
 *   ingest_name.c      names of threads, and of objects known by the program's handles
 *   ingest_event.c     calls and device records, joined by correlation id
 *   ingest_command.c   the rows made of them
 *   ingest_activity.c  graph nodes, events, pools, managed memory, JIT, overhead, recording windows
 *   ingest_counter.c   samples of hardware counters     ingest_cpu.c   samples of threads
 *   ingest_range.c     NVTX   ingest_memory.c  allocations   rollup_sums.c    per-second sums
 *   ingest_module.c    object files a process has mapped, asked of the kernel
 *   ingest_image.c     what is mapped where   ingest_stack.c    call stacks (ingest_stack.h)
 *   ingest_python.c    Python frames of stacks
 *   ingest_batch.c     many rows a statement
 *   ingest_state.c     what must survive a killed perfkit: cursors, maps, unfinished records
 *   ingest_health.c    the trust block
 *   ingest_foreign.c   records of other tools' files
 *
 * Unfinished things are kept as the wire records they came in, so that they can be written into the
 * store with each commit and fed again through the same code after a crash. */
#ifndef PERFKIT_STORE_INGEST_PRIVATE_H
#define PERFKIT_STORE_INGEST_PRIVATE_H

#include <regex.h>

#include <sqlite3.h>

#include "libprof/base/array.h"
#include "libprof/base/clockmap.h"
#include "libprof/base/map.h"
#include "libprof/spool/lifecycle.h"
#include "libprof/spool/reader.h"
#include "libprof/store/ingest.h"
#include "libprof/store/ingest_foreign.h"
#include "libprof/store/ingest_stack.h"
#include "libprof/store/rollup_sums.h"
#include "libprof/wire/wire.h"

/* Prepared statements, one table: name, SQL */
#define INGEST_SQL_MAP(X)                                                                          \
    X(STRING, "INSERT INTO string(id,value) VALUES(?1,?2)")                                        \
    X(CONFIG, "INSERT INTO launch_config(id,name,demangled,grid_x,grid_y,grid_z,block_x,block_y,"  \
              "block_z,cluster_x,cluster_y,cluster_z,registers,shared_static,shared_dynamic,"      \
              "local_bytes,ragged) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16," \
              "?17)")                                                                              \
    X(PROCESS, "INSERT INTO process(id,pid,parent_pid,command,birth,start) "                       \
               "VALUES(?1,?2,?3,?4,?5,?6)")                                                        \
    X(PROCESS_END, "UPDATE process SET end=?2,end_reason=?3,exit_status=?4,exit_signal=?5 "        \
                   "WHERE id=?1")                                                                  \
    X(PROCESS_SPOOL, "UPDATE process SET spool=?2,rank=?3,local_rank=?4,world_size=?5,job=?6 "     \
                     "WHERE id=?1")                                                                \
    X(THREAD, "INSERT INTO thread(id,process,tid,name) VALUES(?1,?2,?3,?4)")                       \
    X(THREAD_NAME, "UPDATE thread SET name=?2 WHERE id=?1")                                        \
    /* REPLACE: defined again, now that more is known; the name that the program gave stays. */    \
    X(DEVICE, "REPLACE INTO device(id,process,api,ordinal,name,vendor,driver,uuid,kind,integrated," \
              "compute_major,compute_minor,units,warp,clock_khz,memory_clock_khz,memory_bus_bits," \
              "memory_bytes,memory_bandwidth,l2_bytes,shared_per_unit_bytes,"                      \
              "shared_per_block_bytes,registers_per_unit,max_threads_per_unit,max_block,label) "   \
              "VALUES("                                                                            \
              "?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,"    \
              "?23,?24,?25,(SELECT label FROM device WHERE id=?1))")                               \
    X(DEVICE_NAME, "UPDATE device SET label=?2 WHERE id=?1")                                       \
    X(CONTEXT, "REPLACE INTO context(id,process,device,api,native,green,parent,units,name) "       \
               "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,(SELECT name FROM context WHERE id=?1))")           \
    X(CONTEXT_NAME, "UPDATE context SET name=?2 WHERE id=?1")                                      \
    X(STREAM, "REPLACE INTO stream(id,process,device,context,api,native,name,priority,is_default,"  \
              "out_of_order,non_blocking,clock) VALUES(?1,?2,?3,?4,?5,?6,"                         \
              "coalesce(?7,(SELECT name FROM stream WHERE id=?1)),?8,?9,?10,?11,?12)")             \
    X(STREAM_NAME, "UPDATE stream SET name=?2 WHERE id=?1")                                        \
    X(OBJECT_NAME, "INSERT INTO object_name(process,kind,handle,name) VALUES(?1,?2,?3,?4)")        \
    X(CATEGORY, "INSERT INTO category(process,domain,category,name) VALUES(?1,?2,?3,?4)")          \
    X(MODULE, "INSERT INTO module(process,start,path,build_id,address,bytes,segment) "             \
              "VALUES(?1,?2,?3,?4,?5,?6,?7)")                                                      \
    X(MODULE_END, "UPDATE module SET end=?2 WHERE id=?1")                                          \
    X(STACK, "INSERT INTO stack(id,parent,frame,depth) VALUES(?1,?2,?3,?4)")                       \
    X(FRAME, "INSERT INTO frame(id,process,kind,address,module,offset) VALUES(?1,?2,?3,?4,?5,?6)") \
    X(SYMBOL, "INSERT INTO symbol(frame,level,function,file,line) VALUES(?1,?2,?3,?4,?5)")         \
    X(CLOCK, "INSERT INTO clock_sync(process,device,clock,source_ns,mono_ns,error_ns) "            \
             "VALUES(?1,?2,?3,?4,?5,?6)")                                                          \
    X(STREAM_CLOCK, "UPDATE stream SET clock=?2 WHERE id=?1")                                      \
    X(HEALTH, "INSERT INTO capture_health(process,subject,item,value,note) "                       \
              "VALUES(?1,?2,?3,?4,?5)")                                                            \
    X(SPOOL, "INSERT INTO ingest_spool(id,name,process,finished) VALUES(?1,?2,?3,0)")              \
    X(SPOOL_FINISHED, "UPDATE ingest_spool SET finished=1 WHERE id=?1")                            \
    X(KERNEL, "INSERT INTO kernel(start,duration,stream,config,api_name,api_lead,api_duration,"    \
              "thread,correlation,queue_delay,submit_delay,graph_node,flags,stack) "               \
              "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)")                            \
    X(TRANSFER, "INSERT INTO transfer(start,duration,stream,bytes,kind,api_name,api_lead,"         \
                "api_duration,thread,correlation,queue_delay,submit_delay,source_kind,"            \
                "target_kind,blocking,peer,graph_node,flags,stack) "                               \
                "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19)")      \
    X(MEMSET, "INSERT INTO memset(start,duration,stream,bytes,value,api_name,api_lead,"            \
              "api_duration,thread,correlation,queue_delay,submit_delay,memory_kind,graph_node,"   \
              "flags,stack) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16)")       \
    X(SYNC, "INSERT INTO sync(start,duration,stream,kind,api_name,api_lead,api_duration,thread,"   \
            "correlation,event,stack,recorded) "                                                   \
            "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)")                                      \
    X(CALL, "INSERT INTO api_call(start,duration,thread,name,result,source,correlation,stack) "    \
            "VALUES(?1,?2,?3,?4,?5,?6,?7,?8)")                                                     \
    X(GRAPH_LAUNCH, "INSERT INTO graph_launch(start,duration,stream,graph,correlation,queue_delay," \
                    "submit_delay) VALUES(?1,?2,?3,?4,?5,?6,?7)")                                  \
    X(GRAPH_NODE, "INSERT INTO graph_node(start,thread,node,graph,original,class,stack) "          \
                  "VALUES(?1,?2,?3,?4,?5,?6,?7)")                                                  \
    X(EVENT_RECORD, "INSERT INTO event_record(start,stream,event,recorded,correlation) "           \
                    "VALUES(?1,?2,?3,?4,?5)")                                                      \
    X(OVERHEAD, "INSERT INTO overhead(start,duration,process,thread,kind,stream,correlation) "     \
                "VALUES(?1,?2,?3,?4,?5,?6,?7)")                                                    \
    X(MIGRATION, "INSERT INTO migration(start,duration,process,kind,bytes,faults,address,source,"  \
                 "target,cause,stream) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)")                \
    X(POOL, "INSERT INTO memory_pool(process,start,pool,operation,device,bytes,used_bytes,"        \
            "kept_bytes,threshold_bytes,thread,correlation) "                                      \
            "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)")                                          \
    X(JIT, "INSERT INTO jit(start,duration,process,thread,device,input,operation,cache_bytes,path," \
           "correlation) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)")                                  \
    X(RECORDING, "INSERT INTO recording(process,start,begins,reason) VALUES(?1,?2,?3,?4)")         \
    X(COUNTER_DEVICE, "REPLACE INTO counter_device(id,uuid,ordinal,name,chip,metric_set,interval) "   \
                      "VALUES(?1,?2,?3,?4,?5,?6,?7)")                                              \
    X(COUNTER, "INSERT INTO counter(counter_device,slot,name,unit,metric,kind,clock,peak) "        \
               "VALUES(?1,?2,?3,?4,?5,?6,?7,?8)")                                                  \
    X(COUNTER_BURST, "INSERT INTO counter_burst(counter_device,start,duration,samples,others,"     \
                     "overflow,decode) VALUES(?1,?2,?3,?4,?5,?6,?7)")                              \
    X(COUNTER_SAMPLE, "INSERT INTO counter_sample(counter_device,start,duration,c0,c1,c2,c3,c4,c5," \
                      "c6,c7,c8,c9,c10,c11,c12,c13,c14,c15,c16,c17,c18,c19,c20,c21,c22,c23) "      \
                      "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,"     \
                      "?19,?20,?21,?22,?23,?24,?25,?26,?27)")                                      \
    X(CPU_SAMPLE, "INSERT INTO cpu_sample(start,thread,cpu,kind,duration,weight,stack) "           \
                  "VALUES(?1,?2,?3,?4,?5,?6,?7)")                                                  \
    X(PROCESS_CLAIM, "UPDATE process SET pid=?2,parent_pid=?3,command=?4,birth=?5 WHERE id=?1")    \
    X(ALLOCATION, "INSERT INTO allocation(process,start,bytes,kind,native,address,source,device,"  \
                  "context,thread,stack) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)")              \
    X(DEVICE_AT, "SELECT min(id) FROM device WHERE process = ?1 AND ordinal = ?2 AND api = 'cuda'") \
    X(PROCESS_LAST, "SELECT max(id) FROM process WHERE pid = ?1")                                  \
    X(REALTIME, "SELECT start_realtime_ns FROM capture WHERE ?1 = 0")                              \
    X(BLOCK, "INSERT INTO block(process,device,start,bytes,address,stack) "                        \
             "VALUES(?1,?2,?3,?4,?5,?6)")                                                          \
    X(BLOCK_END, "UPDATE block SET end=?2 WHERE id=?1")                                            \
    X(DEVICE_OF, "SELECT min(id) FROM device WHERE uuid = ?1")                                     \
    X(PROCESS_OF, "SELECT 1 FROM process WHERE pid = ?1 LIMIT 1")                                  \
    X(DEVICE_MEMORY, "INSERT INTO device_memory(device,start,total,used,process_used) "            \
                     "VALUES(?1,?2,?3,?4,?5)")                                                     \
    X(ALLOCATION_FAILURE, "INSERT INTO allocation_failure(process,start,thread,device,context,"    \
                          "kind,bytes,result,source,stack) "                                       \
                          "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)")                                \
    X(FREED, "UPDATE allocation SET end=?2,end_thread=?3 WHERE id=?1")                             \
    X(RANGE, "INSERT INTO range(start,duration,thread,name,domain,depth,end_thread,category,"      \
             "color,payload) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)")                              \
    X(MARKER, "INSERT INTO marker(start,thread,name,domain,category,color,payload) "               \
              "VALUES(?1,?2,?3,?4,?5,?6,?7)")                                                      \
    X(RANGE_FIELD, "INSERT INTO range_field(range,name,value) VALUES(?1,?2,?3)")                   \
    X(WORK, "INSERT INTO work(range,flop,bytes_read,bytes_written) VALUES(?1,?2,?3,?4)")           \
    X(ROLLUP, ROLLUP_INSERT)                                                                       \
    X(CURSOR, "INSERT OR REPLACE INTO ingest_cursor(spool,chunk,generation,offset,tid) "           \
              "VALUES(?1,?2,?3,?4,?5)")                                                            \
    X(MAP, "INSERT INTO ingest_map(spool,local,kind,global,extra) VALUES(?1,?2,?3,?4,?5)")         \
    X(STATE, "INSERT OR REPLACE INTO ingest_state(key,value) VALUES(?1,?2)")

enum ingest_sql {
#define X(name, sql) INGEST_SQL_##name,
    INGEST_SQL_MAP(X)
#undef X
        INGEST_SQLS
};

/* The tables with millions of rows are written many rows a statement: half the cost of SQLite is
 * per statement. Columns are those of the SQL of the same name. */
#define INGEST_BATCH_MAP(X)                                                                        \
    X(KERNEL) X(TRANSFER) X(MEMSET) X(SYNC) X(CALL) X(GRAPH_LAUNCH) X(GRAPH_NODE) X(EVENT_RECORD)  \
    X(OVERHEAD) X(MIGRATION) X(CPU_SAMPLE)
enum ingest_batch_table {
#define X(name) INGEST_BATCH_##name,
    INGEST_BATCH_MAP(X)
#undef X
        INGEST_BATCHES
};
#define INGEST_BATCH_ROWS 32
#define INGEST_BATCH_COLUMNS 20

struct ingest_row {
    int64_t values[INGEST_BATCH_COLUMNS];
    uint32_t nulls; /* bit per column */
};

struct ingest_batch {
    sqlite3_stmt *many; /* INGEST_BATCH_ROWS rows */
    int columns, count;
    struct ingest_row rows[INGEST_BATCH_ROWS];
};

/* A local id of a spool and what it stands for. */
struct ingest_local {
    uint32_t kind; /* enum wire_type: STRING, CONFIG, DEVICE, CONTEXT, STREAM, CLOCK,
                      COUNTER_DEVICE, CPU_PROCESS, CPU_STACK; 0 = none */
    uint32_t extra; /* STREAM: clock id; CONTEXT: native; CONFIG: INGEST_CONFIG_FILTERED;
                       COUNTER_DEVICE: how many counters it has */
    int64_t global;  /* row id */
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
    TALLY_ORPHAN_TIMES, /* DONE without its command */
    TALLY_DAMAGED,      /* spool stretches that could not be read */
    TALLY_REPAIRED,     /* device times put back into order */
    TALLY_LAUNCH_UNANSWERED, /* part of OUTSTANDING: the call came, its command did not */
    TALLY_TRANSFER_UNANSWERED,
    TALLY_MEMSET_UNANSWERED,
    TALLY_LAUNCH_FILTERED,
    TALLY_DEVICE_NEWEST_NS, /* no count: CLOCK_MONOTONIC of the newest device record's end */
    TALLY_FETCHED_NS,       /* when the process last asked for its device records */
    TALLY_KERNEL_FILTERED,   /* every kernel left out, nodes of graphs too */
    TALLY_LAUNCH_UNRECORDED, /* launches called without a device record, known at the end */
    TALLY_LAUNCH_UNCALLED,   /* device records whose call was not seen; part of RECORDED */
    TALLY_TRANSFER_UNCALLED,
    TALLY_MEMSET_UNCALLED,
    TALLY_GRAPH_LAUNCHED,    /* graph launches that the API took */
    TALLY_GRAPH_KERNELS,     /* rows of device records of graphs */
    TALLY_GRAPH_TRANSFERS,
    TALLY_GRAPH_MEMSETS,
    TALLY_GRAPH_WHOLE,       /* executions recorded as a whole */
    TALLY_GRAPH_FILTERED,    /* kernels of graphs left out as the kernel filter asks */
    TALLY_DEVICE_CALLED,     /* launches, copies and fills called, known at the end */
    TALLIES                 /* new ones at the end: captures under way keep them as an array */
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

/* A Python code object (ingest_python.c). */
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
    bool named;     /* for good */
    uint8_t looked; /* how often its name was asked of the kernel */
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
    struct prof_map stacks;    /* local stack id -> stack.id */
    struct prof_map code_at;   /* local code id -> index in codes */
    PROF_ARRAY(struct ingest_code) codes;
    uint64_t modules_ns;       /* when they were last looked for */
    struct prof_map handles; /* kind and handle -> the object that has it now */
    struct prof_map objects; /* kind and object -> row */
    PROF_ARRAY(struct ingest_unclaimed) unclaimed;
    struct prof_map unclaimed_at; /* kind and object -> index in unclaimed */
    char comm[16];       /* the process's own name, as of comm_ns */
    uint64_t comm_ns;
    uint64_t threads_ns; /* when threads' names were last looked at */
    uint64_t tally[TALLIES];
    bool restoring; /* waiting records are fed again: what they wrote at first stands in the store */
    bool dirty;    /* consumed something since the last commit */
    bool finished; /* process gone, all read, trust block written: the file may go */
    bool unlinked;
};

/* A process of the target as the lifecycle table shows it. */
struct ingest_process {
    int64_t row;
    uint32_t entry;  /* number in the lifecycle table, UINT32_MAX = not from there */
    uint32_t pid;    /* as the process itself knows it */
    pid_t seen_pid;  /* as we see it: another number when it runs in a container; 0 = not found */
    int pidfd;       /* -1: none */
    bool ended;      /* its row says how */
    bool gone;       /* the kernel has no such process any more */
    bool reaped;     /* wait() told us */
    bool forked;     /* a child that runs on, not a program that was started */
    bool sampled;    /* its row was made for its samples: more is not known of it */
    bool unwatched;  /* it was gone when perfkit came back: nobody knows when it ended */
    bool has_status;
    uint32_t how;    /* enum lifecycle_end */
    int status;      /* exit status */
    int signal;
    uint64_t start_ns, end_ns, gone_ns;
    bool has_spool;
};

/* A module of a process. */
struct ingest_object {
    uint64_t start, end;
    int64_t row, segment; /* as in ingest_mapping */
    char build_id[48];    /* "" = unknown; longer ones are compared as far as this goes */
};

struct ingest_image {
    PROF_ARRAY(struct ingest_object) objects; /* all that it ever had */
    PROF_ARRAY(uint32_t) live;                /* numbers of those it has, by address, apart */
    struct prof_names known;                  /* address, segment, path -> newest number */
};

struct prof_ingest {
    struct prof_store *store;
    sqlite3 *db;
    sqlite3_stmt *sql[INGEST_SQLS];
    struct ingest_batch batches[INGEST_BATCHES];
    char *directory;
    uint64_t zero_ns; /* capture.start_mono_ns */
    bool stale;       /* memory was thrown away after a failure: load before going on */

    PROF_ARRAY(struct ingest_process) processes;
    unsigned char *lifecycle;
    size_t lifecycle_bytes;
    uint32_t lifecycle_entries; /* that the file has room for */
    int lifecycle_fd;
    uint32_t lifecycle_next; /* entries consumed */
    PROF_ARRAY(uint32_t) lifecycle_gaps; /* taken by a process, not yet filled */
    size_t processes_done; /* all before are gone */
    uint64_t lifecycle_dropped;

    PROF_ARRAY(struct ingest_spool *) spools;
    struct prof_names spool_names; /* file name -> 1 */

    struct prof_names strings;     /* text -> string.id */
    struct prof_names configs;     /* bytes of the row -> launch_config.id */
    int64_t last_string, last_config, last_process, last_thread, last_device, last_context,
        last_stream, last_spool, last_counter_device;
    struct prof_names frames; /* what makes a frame -> frame.id */
    struct prof_map stacks;   /* parent, frame -> stack.id */
    int64_t last_frame, last_stack;
    struct prof_names thread_rows; /* process.id and tid -> thread.id */
    struct prof_map image_at; /* process.id -> index in images */
    PROF_ARRAY(struct ingest_image) images;
    struct rollup_sums rollup;

    regex_t kernel_filter;
    bool has_kernel_filter;

    uint64_t total;
    uint64_t batch_records;
    uint64_t now_ns;
    uint32_t primary_pid;
    int primary_status; /* as in waitpid */
    bool has_primary;
};

/* Binding helpers: 0-valued "unknown" becomes NULL with ingest_bind_known. */
static inline void ingest_bind(sqlite3_stmt *sql, int at, int64_t value)
{
    sqlite3_bind_int64(sql, at, value);
}
static inline void ingest_bind_known(sqlite3_stmt *sql, int at, int64_t value)
{
    if (value)
        sqlite3_bind_int64(sql, at, value);
    else
        sqlite3_bind_null(sql, at);
}
static inline void ingest_bind_text(sqlite3_stmt *sql, int at, const char *text)
{
    if (text)
        sqlite3_bind_text(sql, at, text, -1, SQLITE_TRANSIENT);
    else
        sqlite3_bind_null(sql, at);
}
/* Columns of a batch row count from 1, as in the SQL. */
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

/* Step and reset. Bindings stay. */
bool ingest_run(struct prof_ingest *ingest, enum ingest_sql which);

/* ingest_batch.c */
bool ingest_batches_prepare(struct prof_ingest *ingest);
void ingest_batches_close(struct prof_ingest *ingest);
/* A row to fill, no column NULL; ingest_row_end adds it. */
struct ingest_row *ingest_row_begin(struct prof_ingest *ingest, enum ingest_batch_table table);
bool ingest_row_end(struct prof_ingest *ingest, enum ingest_batch_table table);
bool ingest_batches_flush(struct prof_ingest *ingest);

/* ingest_process.c */
enum prof_status ingest_processes_open(struct prof_ingest *ingest, struct prof_error *err);
bool ingest_processes_step(struct prof_ingest *ingest);
bool ingest_processes_look(struct prof_ingest *ingest); /* take new entries of the table */
bool ingest_processes_gaps(struct prof_ingest *ingest); /* after loading: what was not yet filled */
uint32_t ingest_processes_alive(const struct prof_ingest *ingest);
bool ingest_processes_finish(struct prof_ingest *ingest);
int64_t ingest_process_of_spool(struct prof_ingest *ingest, const struct spool_header *header,
                                const char *name);
void ingest_processes_close(struct prof_ingest *ingest);
bool ingest_process_reaped(struct prof_ingest *ingest, uint32_t pid, int wait_status);
/* From a row of load_processes (ingest_state.c). */
bool ingest_process_restore(struct prof_ingest *ingest, struct ingest_process *process,
                            sqlite3_stmt *row);
struct ingest_process *ingest_process_find(struct prof_ingest *ingest, int64_t row);
/* The row of a process as the sampler of CPUs tells of it, made when nobody else did; 0 = failed. */
int64_t ingest_process_sampled(struct prof_ingest *ingest, const struct wire_cpu_process *record,
                               const char *name);
struct ingest_process *ingest_process_add(struct prof_ingest *ingest, uint32_t entry, uint32_t pid,
                                          uint32_t parent, bool forked, uint64_t start_ns,
                                          const char *command, uint32_t bytes);

/* ingest_pid.c: our number of the process that calls itself `pid` in a pid namespace; 0 = none such */
pid_t ingest_pid_in_space(uint32_t pid, uint64_t space);
/* The number that a thread of the process, both as we see them, has for itself; 0 = it is gone */
uint32_t ingest_own_tid(pid_t pid, uint32_t tid);

/* ingest_define.c */
bool ingest_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                       const struct wire_head *head);
/* From a row of load_configs (ingest_state.c): known again, not written again. */
bool ingest_config_restore(struct prof_ingest *ingest, sqlite3_stmt *row);
int64_t ingest_string_row(struct prof_ingest *ingest, const char *text, size_t length);
const struct ingest_local *ingest_lookup(const struct ingest_spool *spool, uint32_t local,
                                         uint32_t kind);
int64_t ingest_global(const struct ingest_spool *spool, uint32_t local, uint32_t kind);
bool ingest_set_local(struct ingest_spool *spool, uint32_t local, uint32_t kind, int64_t global,
                      uint32_t extra);
struct ingest_thread *ingest_thread_of(struct prof_ingest *ingest, struct ingest_spool *spool,
                                       uint32_t tid);
/* The thread's row, made with `name` (or NULL) when it has none; 0 = failed. */
int64_t ingest_thread_row(struct prof_ingest *ingest, int64_t process, uint32_t tid,
                          const char *name, bool *is_new);
bool ingest_thread_rows_load(struct prof_ingest *ingest);
struct ingest_clock *ingest_clock_of(struct ingest_spool *spool, uint32_t id, bool make);
bool ingest_clocks_finish(struct prof_ingest *ingest, struct ingest_spool *spool);

/* The text of a local string id, from the store; NULL = none. Free it. For definitions that want text:
 * they are few. */
char *ingest_text_of(struct prof_ingest *ingest, const struct ingest_spool *spool, uint32_t local);

/* The same, bound. */
void ingest_bind_local_text(struct prof_ingest *ingest, const struct ingest_spool *spool,
                            sqlite3_stmt *sql, int at, uint32_t local);
/* stack.id of a spool's stack; 0 = none, or its definition was lost. */
int64_t ingest_stack_of(const struct ingest_spool *spool, uint32_t local);
/* Remember what a local id stands for, in memory and in the store. */
bool ingest_define_local(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t local,
                         uint32_t kind, int64_t global, uint32_t extra);

/* ingest_name.c */
bool ingest_name(struct prof_ingest *ingest, struct ingest_spool *spool,
                 const struct wire_name *name);
bool ingest_handle(struct prof_ingest *ingest, struct ingest_spool *spool,
                   const struct wire_handle *handle);
/* An object of the program has a row: a name that waits for it becomes its own. `object` is the number
 * of a device or context, or ingest_stream_object(). */
bool ingest_object(struct prof_ingest *ingest, struct ingest_spool *spool, enum wire_named kind,
                   uint64_t object, int64_t row);
static inline uint64_t ingest_stream_object(uint64_t context, uint64_t stream)
{
    return context << 32 | (uint32_t)stream;
}
/* The handle that the name's object had, as a record; false when the object is not known by one. */
bool ingest_handle_of(const struct ingest_unclaimed *unclaimed, struct wire_handle *handle);
bool ingest_handles_load(struct prof_ingest *ingest, struct ingest_spool *spool);
bool ingest_names_finish(struct prof_ingest *ingest, struct ingest_spool *spool);
/* The name a thread gave itself, when it is not that of its process; false = none. */
bool ingest_comm(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid, char name[16]);
/* Look once more at threads that had no name of their own when they were first seen. */
bool ingest_threads_look(struct prof_ingest *ingest, struct ingest_spool *spool, bool last);

/* ingest_command.c */
bool ingest_write_call(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                       const struct wire_call *call);
/* Write the row of a device record with what is known of it. */
bool ingest_write_command(struct prof_ingest *ingest, struct ingest_spool *spool,
                          const struct ingest_pending *pending, bool of_graph);
bool ingest_graph(struct prof_ingest *ingest, struct ingest_spool *spool,
                  const struct wire_graph *graph);
/* A time of the stream's device as CLOCK_MONOTONIC; 0 stays 0. */
uint64_t ingest_device_time(struct ingest_spool *spool, uint32_t stream, uint64_t ns);

/* ingest_activity.c: records that become a row each, whatever else comes */
bool ingest_activity(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                     const struct wire_head *head);

/* ingest_event.c */
bool ingest_event(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                  const struct wire_head *head);
bool ingest_events_age(struct prof_ingest *ingest, struct ingest_spool *spool);
bool ingest_events_finish(struct prof_ingest *ingest, struct ingest_spool *spool);

/* ingest_counter.c */
bool ingest_counter_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                               const struct wire_head *head);
bool ingest_counter_event(struct prof_ingest *ingest, const struct ingest_spool *spool,
                          const struct wire_head *head);
bool ingest_sampler_is_over(const struct ingest_spool *spool);

/* ingest_cpu.c */
bool ingest_cpu_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                           const struct wire_head *head);
bool ingest_cpu_sample(struct prof_ingest *ingest, const struct ingest_spool *spool,
                       const struct wire_cpu_sample *record);

/* ingest_range.c */
bool ingest_range(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                  const struct wire_head *head);
bool ingest_ranges_finish(struct prof_ingest *ingest, struct ingest_spool *spool);
/* The i-th field of an open range as the record that it came in. */
struct wire_field ingest_field_record(const struct ingest_open_range *open, unsigned i);

/* ingest_memory.c */
bool ingest_alloc(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                  const struct wire_alloc *alloc);
bool ingest_blocks_finish(struct prof_ingest *ingest);
bool ingest_device_memory(struct prof_ingest *ingest, const struct prof_ingest_memory *sample);
bool ingest_alloc_failed(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                         const struct wire_alloc_failed *failed);
bool ingest_free(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                 const struct wire_free *free_record);
bool ingest_live_add(struct ingest_spool *spool, uint32_t source, uint64_t id, uint64_t start,
                     int64_t row);

/* ingest_module.c */
bool ingest_modules(struct prof_ingest *ingest, struct ingest_spool *spool);

/* ingest_image.c */
/* What the process has at an address now; NULL = nothing known. Valid until the next mapping. */
const struct ingest_object *ingest_object_at(struct prof_ingest *ingest, int64_t process,
                                             uint64_t address);
/* Was the object seen before at this place? (Without a build id: in whatever version.) */
bool ingest_is_mapped(struct prof_ingest *ingest, int64_t process,
                      const struct ingest_mapping *mapping);
bool ingest_images_load(struct prof_ingest *ingest);
void ingest_images_free(struct prof_ingest *ingest);

/* ingest_python.c */
bool ingest_python_code(struct prof_ingest *ingest, struct ingest_spool *spool,
                        const struct wire_python_code *code);
bool ingest_python_load(struct prof_ingest *ingest, struct ingest_spool *spool);
/* A stack's entry of kind WIRE_ENTRY_PYTHON. False = failed. */
bool ingest_python_entry(struct prof_ingest *ingest, struct ingest_spool *spool, uint64_t value,
                         struct ingest_entry *entry);
void ingest_python_free(struct ingest_spool *spool);

/* ingest_stack.c */
bool ingest_stacks_load(struct prof_ingest *ingest);
void ingest_stacks_free(struct prof_ingest *ingest);

static inline bool ingest_rollup_flush(struct prof_ingest *ingest)
{
    return rollup_sums_flush(&ingest->rollup, ingest->sql[INGEST_SQL_ROLLUP]);
}

/* ingest_state.c */
enum prof_status ingest_state_create(struct prof_ingest *ingest, struct prof_error *err);
enum prof_status ingest_state_load(struct prof_ingest *ingest, struct prof_error *err);
bool ingest_state_save(struct prof_ingest *ingest);
bool ingest_state_process(struct prof_ingest *ingest, uint32_t entry, int64_t row);
enum prof_status ingest_state_drop(struct prof_ingest *ingest, struct prof_error *err);

/* ingest_health.c */
bool ingest_health_spool(struct prof_ingest *ingest, struct ingest_spool *spool);
bool ingest_health_finish(struct prof_ingest *ingest);
bool ingest_health_line(struct prof_ingest *ingest, int64_t process, const char *subject,
                        const char *item, const int64_t *value, const char *note);

/* ingest_capture.c */
enum prof_status ingest_capture_begin(struct prof_ingest *ingest,
                                      const struct prof_ingest_about *about,
                                      struct prof_error *err);
bool ingest_capture_end(struct prof_ingest *ingest, const char *state);
/* The same for a capture that is imported: what the machine was, `about` tells; an end that is not known
 * is < 0. */
enum prof_status ingest_capture_foreign(struct prof_ingest *ingest, const struct foreign_about *about,
                                        struct prof_error *err);
bool ingest_capture_close(struct prof_ingest *ingest, const char *state, int64_t duration_ns);
/* Read the filter back from the capture's row, or compile it anew. */
enum prof_status ingest_filter_load(struct prof_ingest *ingest, struct prof_error *err);
void ingest_filter_free(struct prof_ingest *ingest);
/* Is a kernel of this readable name to be left out? */
bool ingest_filters(const struct prof_ingest *ingest, const char *name);

/* ingest.c */
enum prof_status ingest_statements_prepare(struct prof_ingest *ingest, struct prof_error *err);
void ingest_statements_finalize(struct prof_ingest *ingest);
bool ingest_begin(struct prof_ingest *ingest); /* a transaction */
struct ingest_spool *ingest_spool_add(struct prof_ingest *ingest, const char *name, int64_t id);
bool ingest_feed(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                 const struct wire_head *head, bool definition);

#endif
