/* Shared by the ingest's files only; see ingest.h for what it does.
 *
 * - ingest.c: open, step, commit, finish; ingest_row.c: rows, and records that are one
 * - ingest_capture.c: the row of the capture, the kernel filter
 * - ingest_lifecycle.c: the table in which processes announce themselves; ingest_process.c: who
 *   they are, who is alive, how they ended
 * - ingest_define.c: the definition stream of a spool, local ids to rows; ingest_name.c: names of
 *   threads, and of objects known by the program's handles
 * - ingest_event.c: calls and device records, joined by correlation id; ingest_command.c: the rows
 *   made of them; ingest_range.c: NVTX; ingest_memory.c: allocations, PyTorch's
 * - ingest_image.c: object files and where they are mapped; ingest_stack.c: call stacks, Python
 * - ingest_sampler.c: records of perfkit's samplers, hardware counters and samples of threads
 * - ingest_machine.c: what perfkit reads of GPUs and network ports beside the target
 * - ingest_ring.c: what leaves a recording with --ring; ingest_keep.c: what it keeps
 * - ingest_state.c: what must survive a killed perfkit: cursors, maps, unfinished records
 * - ingest_health.c: the trust block; ingest_foreign.c: records of other tools' files
 *
 * Unfinished things are kept as the wire records they came in, so that they can be written into the
 * store with each commit and fed again through the same code after a crash. */
#ifndef PERFKIT_STORE_INGEST_PRIVATE_H
#define PERFKIT_STORE_INGEST_PRIVATE_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <sqlite3.h>

#include "libprof/base/array.h"
#include "libprof/base/error.h"
#include "libprof/base/map.h"
#include "libprof/spool/layout.h"
#include "libprof/spool/lifecycle.h"
#include "libprof/store/health.h"
#include "libprof/store/ingest.h"
#include "libprof/store/ingest_spool.h"
#include "libprof/store/ingest_stack.h"
#include "libprof/store/rollup_sums.h"
#include "libprof/store/schema.h"
#include "libprof/wire/sampler.h"

struct prof_ingest;

/* ---- statements ------------------------------------------------------------------------------ */

/* What no insert into a table of the capture is: name, SQL. */
#define INGEST_SQL_MAP(X)                                                                          \
    X(PROCESS_END, "UPDATE process SET end=?2,end_reason=?3,exit_status=?4,exit_signal=?5 WHERE "  \
                   "id=?1")                                                                        \
    X(PROCESS_SPOOL,                                                                               \
      "UPDATE process SET spool=?2,rank=?3,local_rank=?4,world_size=?5,job=?6 WHERE "              \
      "id=?1")                                                                                     \
    X(THREAD_NAME, "UPDATE thread SET name=?2 WHERE id=?1")                                        \
    X(DEVICE_NAME, "UPDATE device SET label=?2 WHERE id=?1")                                       \
    X(CONTEXT_NAME, "UPDATE context SET name=?2 WHERE id=?1")                                      \
    X(STREAM_NAME, "UPDATE stream SET name=?2 WHERE id=?1")                                        \
    X(MODULE_END, "UPDATE module SET end=?2 WHERE id=?1")                                          \
    X(STREAM_CLOCK, "UPDATE stream SET clock=?2 WHERE id=?1")                                      \
    X(SPOOL, "INSERT INTO ingest_spool(id,name,process,finished) VALUES(?1,?2,?3,0)")              \
    X(SPOOL_FINISHED, "UPDATE ingest_spool SET finished=1 WHERE id=?1")                            \
    X(DEVICE_AT, "SELECT min(id) FROM device WHERE process = ?1 AND ordinal = ?2 AND api = "       \
                 "'cuda'")                                                                         \
    X(PROCESS_LAST, "SELECT max(id) FROM process WHERE pid = ?1")                                  \
    X(REALTIME, "SELECT start_realtime_ns FROM capture WHERE ?1 = 0")                              \
    X(BLOCK_END, "UPDATE block SET end=?2 WHERE id=?1")                                            \
    X(DEVICE_OF, "SELECT min(id) FROM device WHERE uuid = ?1")                                     \
    X(FIRST_OF_RANKS,                                                                              \
      "SELECT min(id) FROM process WHERE EXISTS(SELECT 1 FROM process WHERE rank NOT NULL) "       \
      "OR EXISTS(SELECT 1 FROM string WHERE value = 'NCCL')")                                      \
    X(PROCESS_OF, "SELECT 1 FROM process WHERE pid = ?1 LIMIT 1")                                  \
    X(FREED, "UPDATE allocation SET end=?2,end_thread=?3 WHERE id=?1")                             \
    X(CURSOR, "INSERT OR REPLACE INTO ingest_cursor(spool,chunk,generation,offset,tid) "           \
              "VALUES(?1,?2,?3,?4,?5)")                                                            \
    X(MAP, "INSERT INTO ingest_map(spool,local,kind,global,extra) VALUES(?1,?2,?3,?4,?5)")         \
    X(RING_DURATION, "UPDATE ring_trigger SET duration=?2 WHERE id=?1 AND window IS NULL")         \
    X(RING_ROLLUPS, "SELECT count(*) FROM ring_rollup WHERE ?1 IS NULL")                           \
    X(STATE, "INSERT OR REPLACE INTO ingest_state(key,value) VALUES(?1,?2)")

enum ingest_sql {
#define X(name, sql) INGEST_SQL_##name,
    INGEST_SQL_MAP(X)
#undef X
        INGEST_SQLS
};

/* ---- rows of the big tables ------------------------------------------------------------------ */

/* The tables with millions of rows are written many rows a statement: half the cost of SQLite is
 * per statement. */
#define INGEST_BATCH_ROWS 32
#define INGEST_ROW_COLUMNS 32

struct ingest_row {
    int64_t values[INGEST_ROW_COLUMNS];
    uint32_t nulls; /* bit per column */
    uint32_t bound; /* the same: it is bound to the statement already, as texts are */
};

/* Of a table with many rows. */
struct ingest_batch {
    sqlite3_stmt *many; /* INGEST_BATCH_ROWS rows; NULL: rows are written one by one */
    int count;
    struct ingest_row *rows;
};

/* `at` as COLUMN_AT. */
static inline void row_set(struct ingest_row *row, int at, int64_t value)
{
    row->values[at - 1] = value;
    row->nulls &= ~(1u << (at - 1));
}
static inline void row_bound(struct ingest_row *row, int at)
{
    row->bound |= 1u << (at - 1);
}
static inline void row_null(struct ingest_row *row, int at)
{
    row->nulls |= 1u << (at - 1);
}
static inline void row_set_if(struct ingest_row *row, int at, bool known, int64_t value)
{
    row_set(row, at, value);
    if (!known)
        row_null(row, at);
}
static inline void row_known(struct ingest_row *row, int at, int64_t value)
{
    row_set_if(row, at, value != 0, value);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* A process of the target as the lifecycle table shows it. */
struct ingest_process {
    int64_t row;
    uint32_t entry; /* number in the lifecycle table, UINT32_MAX = not from there */
    uint32_t pid;   /* as the process itself knows it */
    pid_t seen_pid; /* as we see it: another number when it runs in a container; 0 = not found */
    int pidfd;      /* -1: none */
    bool ended;     /* its row says how */
    bool gone;      /* the kernel has no such process any more */
    bool reaped;    /* its status came from wait() */
    bool forked;    /* a child that runs on, not a program that was started */
    bool sampled;   /* its row was made for its samples: more is not known of it */
    bool unwatched; /* it was gone when perfkit came back: its end is unknown */
    bool has_status;
    uint32_t how; /* enum lifecycle_end */
    int status;   /* exit status */
    int signal;
    uint64_t start_ns, end_ns, gone_ns;
    bool has_spool;
};

/* ---- object files ---------------------------------------------------------------------------- */

struct ingest_spool;
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

/* ---- a recording that keeps its last part ---------------------------------------------------- */

/* The newest row numbers of the tables whose rows leave, at a moment. */
struct ingest_mark {
    uint64_t ns;
    int64_t last[SCHEMA_TABLES];
};

#define INGEST_JUDGED 256u
/* Durations of what repeats, the last ones, and what is slow by them; 0 = not known yet. */
struct ingest_detector {
    uint64_t recent[INGEST_JUDGED];
    uint64_t usual, threshold;
    uint64_t calm;        /* the median when the machine was least busy */
    uint64_t seen, count; /* in all, in `recent` */
};

struct ingest_ring {
    uint64_t ns;      /* 0 = all rows stay */
    bool window;      /* this ingest finishes a kept window: others read the spools */
    unsigned reasons; /* bits */
    double times, sigmas, most_times;     /* most_times 0 = no limit */
    uint64_t least_ns;                    /* above the median */
    char *iteration;                      /* or NULL */
    uint64_t left;                        /* rows */
    int64_t windows;                      /* kept so far */
    uint64_t kept_ns;                     /* when the last one was */
    uint64_t due_ns;                      /* of the next; 0 = none */
    struct ingest_mark cut;               /* rows up to it have left; ns 0 = none yet */
    PROF_ARRAY(struct ingest_mark) marks; /* younger ones */
    PROF_ARRAY(struct ingest_detector) detectors;
    struct prof_names detector_at; /* thread, name, domain -> index */
    struct prof_names
        iteration_names;         /* name and domain, or simple name -> number, 0 = no iteration */
    struct prof_map collectives; /* launch_config.id -> 1 = a collective */
};

/* ---- the ingest ------------------------------------------------------------------------------ */

struct prof_ingest {
    struct prof_store *store;
    sqlite3 *db;
    sqlite3_stmt *sql[INGEST_SQLS];
    sqlite3_stmt *insert[SCHEMA_TABLES];
    struct ingest_batch batches[SCHEMA_TABLES];
    struct ingest_row row;        /* of a table without a batch */
    uint8_t table_of[WIRE_TYPES]; /* enum schema_table of the records that are its rows */
    char *directory;
    uint64_t zero_ns;  /* capture.start_mono_ns */
    const char *doing; /* for messages: "cannot <doing> FILE" */
    /* The first failure since the state was loaded. Each function that fails fills it; while it is
     * set no row is written and nothing is committed. */
    struct prof_error error;
    bool stale; /* memory was thrown away after a failure: load before going on */

    PROF_ARRAY(struct ingest_process) processes;
    unsigned char *lifecycle;
    size_t lifecycle_bytes;
    uint32_t lifecycle_entries; /* that the file has room for */
    int lifecycle_fd;
    uint32_t lifecycle_next;             /* entries consumed */
    PROF_ARRAY(uint32_t) lifecycle_gaps; /* taken by a process, not yet filled */
    size_t processes_done;               /* all before are gone */
    uint64_t lifecycle_dropped;

    PROF_ARRAY(struct ingest_spool *) spools;
    struct prof_names spool_names; /* file name -> 1 */

    struct prof_names strings; /* text -> string.id */
    struct prof_names configs; /* bytes of the row -> launch_config.id */
    int64_t last_string, last_config, last_process, last_thread, last_device, last_context,
        last_stream, last_spool, last_counter_device, last_stall_context, last_stall_function,
        last_stall;
    struct prof_names frames; /* what makes a frame -> frame.id */
    struct prof_map stacks;   /* parent, frame -> stack.id */
    int64_t last_frame, last_stack;
    struct prof_names thread_rows; /* process.id and tid -> thread.id */
    struct prof_map image_at;      /* process.id -> index in images */
    PROF_ARRAY(struct ingest_image) images;
    struct rollup_sums rollup;
    struct ingest_ring ring;

    regex_t kernel_filter;
    bool has_kernel_filter;

    uint64_t total;
    uint64_t batch_records;
    uint64_t now_ns;
    uint32_t primary_pid;
    int primary_status; /* as in waitpid */
    bool has_primary;
};

/* ---- functions ------------------------------------------------------------------------------- */

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
/* NULL unless `known`. */
static inline void ingest_bind_if(sqlite3_stmt *sql, int at, bool known, int64_t value)
{
    if (known)
        sqlite3_bind_int64(sql, at, value);
    else
        sqlite3_bind_null(sql, at);
}
/* Without memory for the copy ingest->error is set: the row is not written with a NULL instead. */
void ingest_bind_text(struct prof_ingest *ingest, sqlite3_stmt *sql, int at, const char *text);

/* Both fill ingest->error, unless an earlier failure is there, and return its status. */
enum prof_status ingest_sql_failed(struct prof_ingest *ingest, int code);
enum prof_status ingest_no_memory(struct prof_ingest *ingest, const char *what);
static inline enum prof_status ingest_memory(struct prof_ingest *ingest, bool there,
                                             const char *what)
{
    return there ? PROF_OK : ingest_no_memory(ingest, what);
}
/* PROF_OK when SQLite's code is none of a failure. */
enum prof_status ingest_check(struct prof_ingest *ingest, int code);

/* A query: prepare, step through the rows while `status` is PROF_OK, end. The end returns `status`
 * if that is a failure, or the reason when not all rows were read. */
enum prof_status ingest_query(struct prof_ingest *ingest, const char *sql, sqlite3_stmt **row);
enum prof_status ingest_query_end(struct prof_ingest *ingest, sqlite3_stmt *row,
                                  enum prof_status status);
/* The first column of a prepared query's first row, whose parameters are bound; 0 = no row. */
enum prof_status ingest_query_number(struct prof_ingest *ingest, enum ingest_sql which,
                                     int64_t *number);
/* Statements that return no rows. */
enum prof_status ingest_exec(struct prof_ingest *ingest, const char *sql);

/* Step and reset. Bindings stay. */
enum prof_status ingest_run(struct prof_ingest *ingest, enum ingest_sql which);
/* The same of ingest->insert[table], whose parameters are COLUMN_AT. */
enum prof_status ingest_insert(struct prof_ingest *ingest, enum schema_table table);

/* ingest.c */
enum prof_status ingest_statements_prepare(struct prof_ingest *ingest);
void ingest_statements_finalize(struct prof_ingest *ingest);

/* ingest_row.c */
enum prof_status ingest_batches_prepare(struct prof_ingest *ingest);
void ingest_batches_close(struct prof_ingest *ingest);
/* A row to fill, no column NULL but `id`; ingest_row_end adds it. */
struct ingest_row *ingest_row_begin(struct prof_ingest *ingest, enum schema_table table);
enum prof_status ingest_row_end(struct prof_ingest *ingest, enum schema_table table);
enum prof_status ingest_batches_flush(struct prof_ingest *ingest);

/* ingest.c */
/* With the state of the last commit again, after a failure. */
enum prof_status ingest_refresh(struct prof_ingest *ingest, struct prof_error *err);
/* After a failure: back to the last commit, and hand it to the caller. */
enum prof_status ingest_roll_back(struct prof_ingest *ingest, struct prof_error *err);
/* Go on with a copy of the capture that `of` writes, to finish it as a kept window. */
enum prof_status ingest_open_window(struct prof_store *store, const struct prof_ingest *of,
                                    struct prof_ingest **out, struct prof_error *err);
/* Write the sums per second that changed. */
enum prof_status ingest_rollup_flush(struct prof_ingest *ingest);
enum prof_status ingest_begin(struct prof_ingest *ingest); /* a transaction */
/* NULL: out of memory. Where the file cannot be opened, `err` (may be NULL) says why. */
struct ingest_spool *ingest_spool_add(struct prof_ingest *ingest, const char *name, int64_t id,
                                      struct prof_error *err);
/* After opendir of the spool directory failed: PROF_OK when it is no longer there. */
enum prof_status ingest_folder_unreadable(struct prof_ingest *ingest);
enum prof_status ingest_feed(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                             const struct wire_head *head);

/* ingest_lifecycle.c: the table of processes. A spool directory without one (recover) is no error.
 */
enum prof_status ingest_lifecycle_open(struct prof_ingest *ingest);
void ingest_lifecycle_close(struct prof_ingest *ingest);
/* NULL when the table does not have that entry, or is gone. */
struct lifecycle_entry *ingest_lifecycle_entry(const struct prof_ingest *ingest, uint32_t number);
enum prof_status ingest_lifecycle_look(struct prof_ingest *ingest); /* take new entries */
enum prof_status
ingest_lifecycle_gaps(struct prof_ingest *ingest); /* after loading: what was not yet filled */

/* ingest_process.c */
struct ingest_process *ingest_process_add(struct prof_ingest *ingest, uint32_t entry, uint32_t pid,
                                          uint32_t parent, bool forked, uint64_t start_ns,
                                          const char *command, uint32_t bytes);
/* From a row of load_processes (ingest_state.c). */
void ingest_process_restore(struct prof_ingest *ingest, struct ingest_process *process,
                            sqlite3_stmt *row);
struct ingest_process *ingest_process_find(struct prof_ingest *ingest, int64_t row);
/* The row of a process that the CPU sampler saw, made when there is none; 0 = failed.
 */
int64_t ingest_process_sampled(struct prof_ingest *ingest, const struct wire_cpu_process *record,
                               const char *name);
/* The row of the process that writes a spool; 0 = failed. */
int64_t ingest_process_of_spool(struct prof_ingest *ingest, const struct spool_header *header,
                                const char *name);
void ingest_processes_close(struct prof_ingest *ingest);
enum prof_status ingest_processes_step(struct prof_ingest *ingest);
uint32_t ingest_processes_alive(const struct prof_ingest *ingest);
/* Write the end of those that have none: as gone, or as running still. */
enum prof_status ingest_processes_finish(struct prof_ingest *ingest);
/* What wait() says of the child that we started. */
enum prof_status ingest_process_reaped(struct prof_ingest *ingest, uint32_t pid, int wait_status);

/* The number that a thread of the process, both as we see them, has for itself; 0 = it is gone */
uint32_t ingest_own_tid(pid_t pid, uint32_t tid);

/* ingest_image.c */
enum prof_status ingest_modules(struct prof_ingest *ingest, struct ingest_spool *spool);
/* What the process has at an address now; NULL = nothing known. Valid until the next mapping. */
const struct ingest_object *ingest_object_at(struct prof_ingest *ingest, int64_t process,
                                             uint64_t address);
enum prof_status ingest_images_load(struct prof_ingest *ingest);
/* The process ended long ago. */
void ingest_image_forget(struct prof_ingest *ingest, int64_t process);
void ingest_images_free(struct prof_ingest *ingest);

/* ingest_define.c */
enum prof_status ingest_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                                   const struct wire_head *head);
/* From a row of load_configs (ingest_state.c): known again, not written again. */
enum prof_status ingest_config_restore(struct prof_ingest *ingest, sqlite3_stmt *row);
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
enum prof_status ingest_thread_rows_load(struct prof_ingest *ingest);
struct ingest_clock *ingest_clock_of(struct ingest_spool *spool, uint32_t id, bool make);
enum prof_status ingest_clocks_finish(struct prof_ingest *ingest, struct ingest_spool *spool);

/* The text of a local string id, from the store; NULL = none. Free it. For definitions that want
 * text: they are few. */
char *ingest_text_of(struct prof_ingest *ingest, const struct ingest_spool *spool, uint32_t local);

/* The same, bound. */
void ingest_bind_local_text(struct prof_ingest *ingest, const struct ingest_spool *spool,
                            sqlite3_stmt *sql, int at, uint32_t local);
/* stack.id of a spool's stack; 0 = none, or its definition was lost. */
int64_t ingest_stack_of(const struct ingest_spool *spool, uint32_t local);
/* A row of ingest_map: what the state keeps of a local id. */
enum prof_status ingest_map_row(struct prof_ingest *ingest, int64_t spool, int64_t local,
                                uint32_t kind, int64_t global, uint32_t extra);
/* Remember what a local id stands for, in memory and in the store. */
enum prof_status ingest_define_local(struct prof_ingest *ingest, struct ingest_spool *spool,
                                     uint32_t local, uint32_t kind, int64_t global, uint32_t extra);

/* ingest_name.c */
enum prof_status ingest_name(struct prof_ingest *ingest, struct ingest_spool *spool,
                             const struct wire_name *name);
enum prof_status ingest_handle(struct prof_ingest *ingest, struct ingest_spool *spool,
                               const struct wire_handle *handle);
/* An object of the program has a row: a name that waits for it becomes its own. `object` is the
 * number of a device or context, or ingest_stream_object(). */
enum prof_status ingest_object(struct prof_ingest *ingest, struct ingest_spool *spool,
                               enum wire_named kind, uint64_t object, int64_t row);
static inline uint64_t ingest_stream_object(uint64_t context, uint64_t stream)
{
    return context << 32 | (uint32_t)stream;
}
/* The handle that the name's object had, as a record; false when the object is not known by one. */
bool ingest_handle_of(const struct ingest_unclaimed *unclaimed, struct wire_handle *handle);
enum prof_status ingest_handles_load(struct prof_ingest *ingest, struct ingest_spool *spool);
enum prof_status ingest_names_finish(struct prof_ingest *ingest, struct ingest_spool *spool);
/* The name a thread gave itself, when it is not that of its process; false = none. */
bool ingest_comm(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                 char name[16]);
/* Look once more at threads that had no name of their own when they were first seen. */
enum prof_status ingest_threads_look(struct prof_ingest *ingest, struct ingest_spool *spool,
                                     bool last);

/* ingest_stack.c */
enum prof_status ingest_python_code(struct prof_ingest *ingest, struct ingest_spool *spool,
                                    const struct wire_python_code *code);
enum prof_status ingest_python_load(struct prof_ingest *ingest, struct ingest_spool *spool);
/* A stack's entry of kind WIRE_ENTRY_PYTHON. False = failed. */
enum prof_status ingest_python_entry(struct prof_ingest *ingest, struct ingest_spool *spool,
                                     uint64_t value, struct ingest_entry *entry);
void ingest_python_free(struct ingest_spool *spool);

/* ingest_stack.c */
enum prof_status ingest_stacks_load(struct prof_ingest *ingest);
void ingest_stacks_free(struct prof_ingest *ingest);

/* ingest_command.c */
enum prof_status ingest_write_call(struct prof_ingest *ingest, struct ingest_spool *spool,
                                   uint32_t tid, const struct wire_call *call);
/* Write the row of a device record with what is known of it. */
enum prof_status ingest_write_command(struct prof_ingest *ingest, struct ingest_spool *spool,
                                      const struct ingest_pending *pending, bool of_graph);
enum prof_status ingest_graph(struct prof_ingest *ingest, struct ingest_spool *spool,
                              const struct wire_graph *graph);
/* A time of the stream's device as CLOCK_MONOTONIC; 0 stays 0. */
uint64_t ingest_device_time(struct ingest_spool *spool, uint32_t stream, uint64_t ns);

/* A row of a table without .many gets a text, which is static. */
static inline void row_text(struct prof_ingest *ingest, struct ingest_row *row,
                            enum schema_table table, int at, const char *text)
{
    sqlite3_bind_text(ingest->insert[table], at, text, -1, SQLITE_STATIC);
    row_bound(row, at);
}
const char *ingest_api_name(uint32_t source);
/* The row of a record, its columns filled as the table says that names the record's type as its
 * own (prof_table.record); ingest_row_end adds it. */
enum prof_status ingest_record_begin(struct prof_ingest *ingest, struct ingest_spool *spool,
                                     uint32_t tid, const struct wire_head *head,
                                     struct ingest_row **row);
enum prof_status ingest_migration(struct prof_ingest *ingest, struct ingest_spool *spool,
                                  const struct wire_migration *record);
enum prof_status ingest_pool(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                             const struct wire_pool *record);
/* The same, added; nothing where no table names the type. */
enum prof_status ingest_record_row(struct prof_ingest *ingest, struct ingest_spool *spool,
                                   uint32_t tid, const struct wire_head *head);

/* ingest_event.c */
enum prof_status ingest_event(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                              const struct wire_head *head);
enum prof_status ingest_events_age(struct prof_ingest *ingest, struct ingest_spool *spool);
enum prof_status ingest_events_finish(struct prof_ingest *ingest, struct ingest_spool *spool);
/* Once all is written: ends of kernels that CUPTI did not see become NULL. */
enum prof_status ingest_graph_ends(struct prof_ingest *ingest);

/* ingest_sampler.c */
enum prof_status ingest_counter_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                                           const struct wire_head *head);
enum prof_status ingest_counter_event(struct prof_ingest *ingest, const struct ingest_spool *spool,
                                      const struct wire_head *head);
enum prof_status ingest_exact_count(struct prof_ingest *ingest, struct ingest_spool *spool,
                                    const struct wire_exact_count *record);
enum prof_status ingest_stall(struct prof_ingest *ingest, struct ingest_spool *spool,
                              const struct wire_head *head);
bool ingest_sampler_is_over(const struct ingest_spool *spool);

/* ingest_sampler.c */
enum prof_status ingest_cpu_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                                       const struct wire_head *head);
enum prof_status ingest_cpu_sample(struct prof_ingest *ingest, const struct ingest_spool *spool,
                                   const struct wire_cpu_sample *record);
enum prof_status ingest_cpu_faults(struct prof_ingest *ingest, const struct ingest_spool *spool,
                                   const struct wire_cpu_faults *record);

/* ingest_range.c */
enum prof_status ingest_range(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                              const struct wire_head *head);
enum prof_status ingest_ranges_finish(struct prof_ingest *ingest, struct ingest_spool *spool);
/* The i-th field of an open range as the record that it came in. */
struct wire_field ingest_field_record(const struct ingest_open_range *open, unsigned i);

/* ingest_memory.c */
enum prof_status ingest_alloc(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                              const struct wire_alloc *alloc);
enum prof_status ingest_blocks_finish(struct prof_ingest *ingest);
enum prof_status ingest_alloc_failed(struct prof_ingest *ingest, struct ingest_spool *spool,
                                     uint32_t tid, const struct wire_alloc_failed *failed);
enum prof_status ingest_free(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                             const struct wire_free *free_record);
bool ingest_live_add(struct ingest_spool *spool, uint32_t source, uint64_t id, uint64_t start,
                     int64_t row);

/* ingest_state.c */
enum prof_status ingest_state_create(struct prof_ingest *ingest);
/* PROF_INVALID when the capture is finished, PROF_VERSION when a newer perfkit began it. */
enum prof_status ingest_state_check(struct prof_ingest *ingest);
enum prof_status ingest_state_load(struct prof_ingest *ingest);
enum prof_status ingest_state_save(struct prof_ingest *ingest);
enum prof_status ingest_state_process(struct prof_ingest *ingest, uint32_t entry, int64_t row);
enum prof_status ingest_state_drop(struct prof_ingest *ingest);

/* ingest_health.c */
enum prof_status ingest_health_spool(struct prof_ingest *ingest, struct ingest_spool *spool);
enum prof_status ingest_health_finish(struct prof_ingest *ingest);
/* A row of capture_health; `item` NULL = that of the code. */
enum prof_status ingest_health_line(struct prof_ingest *ingest, int64_t process,
                                    enum prof_health_code code, const char *item,
                                    const int64_t *value, const char *note);

/* ingest_capture.c */
enum prof_status ingest_capture_begin(struct prof_ingest *ingest,
                                      const struct prof_ingest_about *about);
enum prof_status ingest_capture_end(struct prof_ingest *ingest, const char *state);
/* The same for a capture that is imported: `about` describes the machine; an unknown end is < 0. */
enum prof_status ingest_capture_foreign(struct prof_ingest *ingest,
                                        const struct foreign_about *about);
enum prof_status ingest_capture_close(struct prof_ingest *ingest, const char *state,
                                      int64_t duration_ns);
/* Read the filter back from the capture's row, or compile it anew. */
enum prof_status ingest_filter_load(struct prof_ingest *ingest);
void ingest_filter_free(struct prof_ingest *ingest);
/* Is a kernel of this readable name to be left out? */
bool ingest_filters(const struct prof_ingest *ingest, const char *name);

/* ingest_ring.c */
enum prof_status ingest_ring_step(struct prof_ingest *ingest);
enum prof_status ingest_ring_finish(struct prof_ingest *ingest);

/* ingest_keep.c: does nothing without --ring */
enum prof_status ingest_ring_options(struct prof_ingest *ingest,
                                     const struct prof_ingest_ring *options);
void ingest_ring_free(struct prof_ingest *ingest); /* but for the options */
enum prof_status ingest_ring_trigger(struct prof_ingest *ingest, enum prof_ring_reason reason,
                                     int64_t process, int64_t thread);
/* A process has, whose spool was read to its end. */
enum prof_status ingest_ring_end(struct prof_ingest *ingest, const struct ingest_spool *spool);
/* A range has ended, a kernel has. */
enum prof_status ingest_ring_range(struct prof_ingest *ingest, const struct ingest_spool *spool,
                                   int64_t thread, const struct ingest_open_range *open,
                                   uint64_t end);
enum prof_status ingest_ring_kernel(struct prof_ingest *ingest, const struct ingest_spool *spool,
                                    int64_t config, int64_t stream, uint64_t duration);
/* Is one of the spool's open ranges slow already? After all of the spool was read. */
enum prof_status ingest_ring_look(struct prof_ingest *ingest, struct ingest_spool *spool);

/* ingest_process.c */
/* When all rows are in: a process without a rank, or with one that others of NCCL's processes have
 * too, gets what it gave NCCL for its largest communicator: process.rank and world_size.
 * Only where that leaves no doubt: one rank in the process, no other process with the same one, no
 * larger communicator elsewhere. */
enum prof_status ingest_ranks_of_nccl(struct prof_ingest *ingest);

#endif
