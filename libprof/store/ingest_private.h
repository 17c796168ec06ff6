/* Shared by the ingest's files only; see ingest.h for what it does.
 *
 *   ingest.c           open, step, commit, finish
 *   ingest_capture.c   the row of the capture, the kernel filter
 *   ingest_lifecycle.c the table in which processes announce themselves
 *   ingest_process.c   who they are   ingest_process_end.c  who is alive, how they ended
 *   ingest_rank.c      ranks that only NCCL was told
 *   ingest_pid.c       pids of containers
 *   ingest_define.c    the definition stream of a spool: local ids to rows
 *   ingest_name.c      names of threads, and of objects known by the program's handles
 *   ingest_event.c     calls and device records, joined by correlation id
 *   ingest_command.c   the rows made of them
 *   ingest_activity.c  graph nodes, events, pools, managed memory, JIT, overhead, recording windows
 *   ingest_counter.c   hardware counters   ingest_cpu.c   samples of threads
 *   ingest_range.c     NVTX   ingest_memory.c  allocations   rollup_sums.c    per-second sums
 *   ingest_module.c    object files a process has mapped, asked of the kernel
 *   ingest_image.c     what is mapped where   ingest_stack.c    call stacks (ingest_stack.h)
 *   ingest_python.c    Python frames of stacks
 *   ingest_batch.c     many rows a statement
 *   ingest_state.c     what must survive a killed perfkit: cursors, maps, unfinished records
 *   ingest_health.c    the trust block
 *   ingest_foreign.c   records of other tools' files
 *
 * Their headers are a family each: what every file needs is here, the others a file includes that
 * uses them.
 *
 * Unfinished things are kept as the wire records they came in, so that they can be written into the
 * store with each commit and fed again through the same code after a crash. */
#ifndef PERFKIT_STORE_INGEST_PRIVATE_H
#define PERFKIT_STORE_INGEST_PRIVATE_H

#include <regex.h>

#include <sqlite3.h>

#include "libprof/base/array.h"
#include "libprof/base/map.h"
#include "libprof/store/ingest.h"
#include "libprof/store/ingest_batch.h"
#include "libprof/store/ingest_image.h"
#include "libprof/store/ingest_process.h"
#include "libprof/store/ingest_spool.h"
#include "libprof/store/ingest_sql.h"
#include "libprof/store/rollup_sums.h"

struct prof_ingest {
    struct prof_store *store;
    sqlite3 *db;
    sqlite3_stmt *sql[INGEST_SQLS];
    sqlite3_stmt *insert[SCHEMA_TABLES];
    struct ingest_batch batches[INGEST_BATCHES];
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
        last_stream, last_spool, last_counter_device;
    struct prof_names frames; /* what makes a frame -> frame.id */
    struct prof_map stacks;   /* parent, frame -> stack.id */
    int64_t last_frame, last_stack;
    struct prof_names thread_rows; /* process.id and tid -> thread.id */
    struct prof_map image_at;      /* process.id -> index in images */
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

static inline enum prof_status ingest_rollup_flush(struct prof_ingest *ingest)
{
    return ingest_check(ingest, rollup_sums_flush(&ingest->rollup, ingest->insert[SCHEMA_rollup]));
}

/* ingest.c */
enum prof_status ingest_begin(struct prof_ingest *ingest); /* a transaction */
/* NULL: out of memory. Where the file cannot be opened, `err` (may be NULL) says why. */
struct ingest_spool *ingest_spool_add(struct prof_ingest *ingest, const char *name, int64_t id,
                                      struct prof_error *err);
/* After opendir of the spool directory failed: PROF_OK when it is no longer there. */
enum prof_status ingest_folder_unreadable(struct prof_ingest *ingest);
enum prof_status ingest_feed(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                             const struct wire_head *head, bool definition);

#endif
