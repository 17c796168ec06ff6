/* The trust block. For every kind of call, two independent sides are compared: what the collector
 * counted in shared memory at the moment of the call, and what became rows. What remains is written
 * down, not explained away. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/base/format.h"
#include "libprof/base/regular.h"
#include "libprof/store/ingest_private.h"

static enum prof_status write_row(struct prof_ingest *ingest, int64_t process,
                                  enum prof_health_code code, const char *subject, const char *item,
                                  const int64_t *value, const char *note)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_capture_health];
    ingest_bind_known(sql, COLUMN_AT(capture_health, process), process);
    ingest_bind_text(ingest, sql, COLUMN_AT(capture_health, subject), subject);
    ingest_bind_text(ingest, sql, COLUMN_AT(capture_health, item), item);
    ingest_bind_if(sql, COLUMN_AT(capture_health, value), value, value ? *value : 0);
    ingest_bind_text(ingest, sql, COLUMN_AT(capture_health, note), note);
    ingest_bind_text(ingest, sql, COLUMN_AT(capture_health, level),
                     prof_health_level_text(prof_health[code].level));
    ingest_bind_text(ingest, sql, COLUMN_AT(capture_health, code), prof_health[code].code);
    return ingest_insert(ingest, SCHEMA_capture_health);
}

enum prof_status ingest_health_line(struct prof_ingest *ingest, int64_t process,
                                    enum prof_health_code code, const char *item,
                                    const int64_t *value, const char *note)
{
    return write_row(ingest, process, code, prof_health[code].subject,
                     item ? item : prof_health[code].item, value, note);
}

/* What the process wrote of itself; false when it wrote nothing. */
static bool read_lifecycle_entry(const struct prof_ingest *ingest,
                                 const struct ingest_process *process,
                                 struct lifecycle_entry *entry)
{
    off_t at = (off_t)(LIFECYCLE_HEADER_BYTES + (uint64_t)process->entry * sizeof *entry);
    return process->entry < LIFECYCLE_MAX_ENTRIES &&
           pread(ingest->lifecycle_fd, entry, sizeof *entry, at) == (ssize_t)sizeof *entry;
}

/* Did it end without a chance to hand over what the device had done last? */
static bool was_cut_off(const struct prof_ingest *ingest, const struct ingest_process *process)
{
    struct lifecycle_entry entry;
    if (process->how == LIFECYCLE_FAST_EXIT && process->has_spool)
        return read_lifecycle_entry(ingest, process, &entry) &&
               atomic_load(&entry.state) != LIFECYCLE_ENDED;
    return process->how == LIFECYCLE_UNSEEN || process->how == LIFECYCLE_SIGNAL;
}

struct balance {
    const char *subject;
    /* While a process runs on, it calls: what is known lies between the count before its records
     * were read and the one after. */
    uint64_t called_before, called, recorded, failed, captured, dropped, outstanding;
    uint64_t unanswered; /* part of outstanding: the call is known, its command is not */
    uint64_t filtered;   /* recorded, and left out of the capture by the kernel filter */
    uint64_t uncalled;   /* device records without their call */
};

/* `cut_off`: the process ended before it could hand over all it had. Then the last device records
 * may be there without their calls. *inside: threads that may have ended inside a call that was
 * counted when it began and would have been recorded when it returned (so many are left to be
 * explained so); any further rest is a loss. */
static enum prof_status write_balance(struct prof_ingest *ingest, int64_t process, bool cut_off,
                                      uint64_t *inside, const struct balance *balance)
{
    uint64_t called = balance->called;
    if (!balance->called && !balance->recorded && !balance->dropped && !balance->outstanding &&
        !balance->filtered)
        return PROF_OK;
    /* A call whose device record was dropped shows up as never answered: it is counted once. */
    uint64_t twice =
        balance->dropped < balance->unanswered ? balance->dropped : balance->unanswered;
    uint64_t outstanding = balance->outstanding - twice;
    uint64_t known = balance->recorded + balance->failed + balance->captured + balance->dropped +
                     outstanding + balance->filtered;
    if (called > known)
        called = known > balance->called_before ? known : balance->called_before;
    int64_t remainder = (int64_t)(called - known);
    uint64_t uncalled = 0;
    if (cut_off && remainder < 0) {
        uint64_t surplus = 0 - (uint64_t)remainder;
        uncalled = surplus < balance->uncalled ? surplus : balance->uncalled;
    }
    remainder += (int64_t)uncalled;
    uint64_t unreturned = 0;
    if (remainder > 0 && (uint64_t)remainder <= *inside) {
        unreturned = (uint64_t)remainder;
        *inside -= unreturned;
        outstanding += unreturned;
        remainder = 0;
    }
    const struct {
        const char *item;
        int64_t value;
        bool rare; /* 0 needs no line */
    } lines[] = {
        {"called", (int64_t)called, false},
        {"recorded", (int64_t)balance->recorded, false},
        {"failed", (int64_t)balance->failed, false},
        {"captured", (int64_t)balance->captured, false},
        {"dropped", (int64_t)balance->dropped, false},
        {"outstanding", (int64_t)outstanding, false},
        {"remainder", remainder, false},
        {"filtered", (int64_t)balance->filtered, true},
        {"uncalled", (int64_t)uncalled, true},
        {"unanswered", (int64_t)(balance->unanswered - twice), true},
        {"unreturned", (int64_t)unreturned, true},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (lines[i].rare && !lines[i].value)
            continue;
        PROF_TRY(write_row(ingest, process, PROF_HEALTH_count, balance->subject, lines[i].item,
                           &lines[i].value, NULL));
    }
    return PROF_OK;
}

static const char *const type_text[] = {
#define X(name, definition, record, first, now, text) text,
    WIRE_TYPE_MAP(X)
#undef X
};

static const char *const count_text[] = {
#define X(name, text) text,
    WIRE_COUNT_MAP(X)
#undef X
};

static enum prof_status write_record_line(struct prof_ingest *ingest, int64_t process,
                                          enum prof_health_code code, uint64_t value,
                                          const char *note)
{
    int64_t count = (int64_t)value;
    return value ? ingest_health_line(ingest, process, code, NULL, &count, note) : PROF_OK;
}

/* Why the spool had no room when records were dropped. */
static const char *why_no_room(const struct prof_spool *reader, char *out, size_t size)
{
    const struct spool_header *header = prof_spool_header(reader);
    uint32_t why = atomic_load(&header->room_error);
    switch (why) {
    case SPOOL_AT_LIMIT:
        snprintf(out, size, "the spool was full: %llu MiB (--spool-limit, or a share of ulimit -v)",
                 (unsigned long long)header->max_chunks * SPOOL_CHUNK_BYTES >> 20);
        break;
    case EFBIG:
        snprintf(out, size, "the spool reached the program's limit of file sizes (ulimit -f)");
        break;
    case ENOSPC:
    case EDQUOT:
        snprintf(out, size, "the spool's disk was full: name another one with --spool-dir");
        break;
    case ENOENT:
    case EACCES:
    case EPERM:
        snprintf(out, size,
                 "the program could not open its spool any more (%s): it has another user, root "
                 "folder or sandbox than at its start",
                 strerror((int)why));
        break;
    default:
        snprintf(out, size, "the spool could not grow (%s)", strerror((int)why));
    }
    return out;
}

static enum prof_status write_losses(struct prof_ingest *ingest, const struct ingest_spool *spool)
{
    const struct prof_spool *reader = spool->reader;
    char why[240];
    uint64_t dropped = 0;
    for (uint32_t type = 1; type < WIRE_TYPES; type++)
        dropped += prof_spool_dropped(reader, (enum wire_type)type);
    if (atomic_load(&prof_spool_header(reader)->room_error))
        PROF_TRY(write_record_line(ingest, spool->process, PROF_HEALTH_record_room, dropped,
                                   why_no_room(reader, why, sizeof why)));
    for (uint32_t type = 1; type < WIRE_TYPES; type++)
        PROF_TRY(write_record_line(
            ingest, spool->process,
            type == WIRE_WINDOW ? PROF_HEALTH_record_marks_dropped : PROF_HEALTH_record_dropped,
            prof_spool_dropped(reader, (enum wire_type)type), type_text[type]));
    static const struct {
        enum prof_health_code code;
        enum wire_count count;
    } counters[] = {
        {PROF_HEALTH_record_definitions_dropped, WIRE_COUNT_DEFINITION_DROPPED},
        {PROF_HEALTH_record_unprofiled, WIRE_COUNT_UNPROFILED},
        {PROF_HEALTH_record_unseen, WIRE_COUNT_UNSEEN},
        {PROF_HEALTH_record_backend_dropped, WIRE_COUNT_BACKEND_DROPPED},
        {PROF_HEALTH_record_times_repaired, WIRE_COUNT_TIME_REPAIRED},
        {PROF_HEALTH_record_times_missing, WIRE_COUNT_TIME_MISSING},
        {PROF_HEALTH_record_outside, WIRE_COUNT_OUTSIDE},
        {PROF_HEALTH_record_stacks_unsent, WIRE_COUNT_STACK_UNSENT},
        {PROF_HEALTH_record_stacks_cut, WIRE_COUNT_STACK_CUT},
        {PROF_HEALTH_record_stacks_ended, WIRE_COUNT_STACK_ENDED},
        {PROF_HEALTH_record_stacks_beyond, WIRE_COUNT_STACK_BEYOND},
        {PROF_HEALTH_record_python_untold, WIRE_COUNT_PYTHON_UNTOLD},
    };
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        uint64_t value = prof_spool_count(reader, counters[i].count);
        if (counters[i].count == WIRE_COUNT_TIME_REPAIRED)
            value += spool->tally[TALLY_REPAIRED];
        PROF_TRY(write_record_line(ingest, spool->process, counters[i].code, value,
                                   count_text[counters[i].count]));
    }
    PROF_TRY(write_record_line(ingest, spool->process, PROF_HEALTH_record_orphan_times,
                               spool->tally[TALLY_ORPHAN_TIMES],
                               "device times whose command was dropped"));
    PROF_TRY(write_record_line(ingest, spool->process, PROF_HEALTH_record_filtered,
                               spool->tally[TALLY_KERNEL_FILTERED],
                               "kernels left out by the kernel filter"));
    return write_record_line(ingest, spool->process, PROF_HEALTH_record_damaged,
                             spool->tally[TALLY_DAMAGED],
                             "spool chunks and records that could not be read");
}

/* The work of graphs has no call of its own: nothing to balance, but who sums up a capture must not
 * have to read millions of rows. */
static enum prof_status write_graphs(struct prof_ingest *ingest, const struct ingest_spool *spool)
{
    static const struct {
        const char *item;
        enum ingest_tally tally;
    } lines[] = {
        {"launched", TALLY_GRAPH_LAUNCHED},   {"kernels", TALLY_GRAPH_KERNELS},
        {"transfers", TALLY_GRAPH_TRANSFERS}, {"memsets", TALLY_GRAPH_MEMSETS},
        {"whole", TALLY_GRAPH_WHOLE},         {"filtered", TALLY_GRAPH_FILTERED},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        int64_t value = (int64_t)spool->tally[lines[i].tally];
        if (value)
            PROF_TRY(write_row(ingest, spool->process, PROF_HEALTH_count, "graph", lines[i].item,
                               &value, NULL));
    }
    return PROF_OK;
}

/* Calls whose device record is known to lack: it did not come, or the work had not ended. A device
 * record without its call is not that of another call: launches that were not answered are at least
 * so many. */
static uint64_t without_record(const struct balance *b, uint64_t at_least)
{
    uint64_t known = b->recorded + b->failed + b->captured + b->dropped + b->filtered;
    uint64_t lacking = b->called > known ? b->called - known : 0;
    uint64_t unanswered = at_least > b->dropped ? at_least - b->dropped : 0;
    return lacking > unanswered ? lacking : unanswered;
}

enum prof_status ingest_health_spool(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    const struct prof_spool *r = spool->reader;
    uint64_t *tally = spool->tally;
    const struct ingest_process *process = ingest_process_find(ingest, spool->process);
    bool runs_on = process && !process->gone && process->how != LIFECYCLE_EXEC;
#define COUNT(name) prof_spool_count(r, WIRE_COUNT_##name)
#define CALLED(name) (runs_on ? spool->counted[WIRE_COUNT_##name] : COUNT(name))
#define DROPPED(name) prof_spool_dropped(r, WIRE_##name)
    const struct balance balances[] = {
        {"launch", CALLED(LAUNCH_CALLED), COUNT(LAUNCH_CALLED), tally[TALLY_LAUNCH_RECORDED],
         COUNT(LAUNCH_FAILED), COUNT(LAUNCH_CAPTURED) + tally[TALLY_LAUNCH_CAPTURED],
         DROPPED(KERNEL), tally[TALLY_LAUNCH_OUTSTANDING], tally[TALLY_LAUNCH_UNANSWERED],
         tally[TALLY_LAUNCH_FILTERED], tally[TALLY_LAUNCH_UNCALLED]},
        {"transfer", CALLED(TRANSFER_CALLED), COUNT(TRANSFER_CALLED),
         tally[TALLY_TRANSFER_RECORDED], COUNT(TRANSFER_FAILED),
         COUNT(TRANSFER_CAPTURED) + tally[TALLY_TRANSFER_CAPTURED], DROPPED(TRANSFER),
         tally[TALLY_TRANSFER_OUTSTANDING], tally[TALLY_TRANSFER_UNANSWERED], 0,
         tally[TALLY_TRANSFER_UNCALLED]},
        {"memset", CALLED(MEMSET_CALLED), COUNT(MEMSET_CALLED), tally[TALLY_MEMSET_RECORDED],
         COUNT(MEMSET_FAILED), COUNT(MEMSET_CAPTURED) + tally[TALLY_MEMSET_CAPTURED],
         DROPPED(MEMSET), tally[TALLY_MEMSET_OUTSTANDING], tally[TALLY_MEMSET_UNANSWERED], 0,
         tally[TALLY_MEMSET_UNCALLED]},
        {"allocation", CALLED(ALLOC_CALLED), COUNT(ALLOC_CALLED), tally[TALLY_ALLOC_RECORDED],
         COUNT(ALLOC_FAILED), 0, DROPPED(ALLOC), 0, 0, 0, 0},
        {"free", CALLED(FREE_CALLED), COUNT(FREE_CALLED),
         tally[TALLY_FREE_RECORDED] + tally[TALLY_FREE_UNMATCHED] + spool->freed.count, 0, 0,
         DROPPED(FREE), 0, 0, 0, 0},
        {"range", CALLED(RANGE_PUSHED) + CALLED(RANGE_STARTED) + CALLED(MARKED),
         COUNT(RANGE_PUSHED) + COUNT(RANGE_STARTED) + COUNT(MARKED),
         tally[TALLY_RANGE_PUSHED] + tally[TALLY_RANGE_STARTED] + tally[TALLY_MARKED], 0, 0,
         DROPPED(RANGE_PUSH) + DROPPED(RANGE_START) + DROPPED(MARK), 0, 0, 0, 0},
        {"range_end", CALLED(RANGE_POPPED) + CALLED(RANGE_ENDED),
         COUNT(RANGE_POPPED) + COUNT(RANGE_ENDED),
         tally[TALLY_RANGE_POPPED] + tally[TALLY_RANGE_ENDED], 0, 0,
         DROPPED(RANGE_POP) + DROPPED(RANGE_END), 0, 0, 0, 0},
    };
#undef CALLED
#undef COUNT
#undef DROPPED
    tally[TALLY_DEVICE_CALLED] = balances[0].called + balances[1].called + balances[2].called;
    tally[TALLY_LAUNCH_UNRECORDED] = without_record(&balances[0], balances[0].unanswered);
    tally[TALLY_COPY_UNRECORDED] =
        without_record(&balances[1], 0) + without_record(&balances[2], 0);
    bool cut_off = !process || !process->gone || was_cut_off(ingest, process);
    /* The thread that ends the process in an orderly way is in no call of ours; the others may be.
     */
    uint64_t threads = spool->thread_list.count ? spool->thread_list.count : 1;
    uint64_t inside = cut_off ? threads : threads - 1;
    PROF_TRY(write_losses(ingest, spool));
    PROF_TRY(write_graphs(ingest, spool));
    for (size_t i = 0; i < sizeof balances / sizeof balances[0]; i++)
        PROF_TRY(write_balance(ingest, spool->process, cut_off, &inside, &balances[i]));
    return PROF_OK;
}

/* ---- spools that could not be read ----------------------------------------------------------- */

static enum prof_status state_unreadable(struct prof_ingest *ingest, int64_t process)
{
    int64_t one = 1;
    return ingest_health_line(ingest, process, PROF_HEALTH_record_damaged, NULL, &one,
                              "spool file that could not be read: its records are missing");
}

/* Nothing but zeros: a process was killed while it made its spool, before any record. */
static bool is_unborn(int directory, const char *name)
{
    unsigned char head[sizeof(struct spool_header)];
    int fd = prof_open_regular(directory, name, O_RDONLY | O_NOFOLLOW);
    ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof head);
    if (fd >= 0)
        close(fd);
    for (ssize_t i = 0; i < n; i++) {
        if (head[i])
            return false;
    }
    return n >= 0;
}

/* Did the process say that it made a spool, and none was found? */
static bool misses_spool(const struct prof_ingest *ingest, const struct ingest_process *process)
{
    struct lifecycle_entry entry;
    return !process->has_spool && read_lifecycle_entry(ingest, process, &entry) &&
           (entry.facts & LIFECYCLE_MADE_SPOOL);
}

static bool is_missed(const struct prof_ingest *ingest, uint32_t pid)
{
    for (size_t i = 0; i < ingest->processes.count; i++) {
        if (ingest->processes.data[i].pid == pid &&
            misses_spool(ingest, &ingest->processes.data[i]))
            return true;
    }
    return false;
}

/* Files that were never taken for a spool, of processes that are not stated as missing theirs. */
static enum prof_status state_refused_files(struct prof_ingest *ingest)
{
    PROF_DIR_CLOSED DIR *directory = opendir(ingest->directory);
    enum prof_status status = directory ? PROF_OK : ingest_folder_unreadable(ingest);
    for (struct dirent *entry; !status && directory && (entry = readdir(directory));) {
        if (prof_ends_with(entry->d_name, SPOOL_SUFFIX) &&
            !prof_names_get(&ingest->spool_names, entry->d_name, strlen(entry->d_name)) &&
            !is_unborn(dirfd(directory), entry->d_name) &&
            !is_missed(ingest, (uint32_t)strtoul(entry->d_name, NULL, 10)))
            status = state_unreadable(ingest, 0);
    }
    return status;
}

static enum prof_status state_missing_spools(struct prof_ingest *ingest)
{
    for (size_t i = 0; i < ingest->processes.count; i++) {
        const struct ingest_process *process = &ingest->processes.data[i];
        if (misses_spool(ingest, process))
            PROF_TRY(state_unreadable(ingest, process->row));
    }
    return PROF_OK;
}

/* What the process noted of itself, or children that could not note it of themselves. */
static enum prof_status state_facts(struct prof_ingest *ingest,
                                    const struct ingest_process *process,
                                    const struct lifecycle_entry *entry)
{
#define ANOTHER(variable)                                                                          \
    "not recorded in this process or in one that it started: " variable                            \
    " was set to another value inside the run; leave it as perfkit run sets it"
    static const struct {
        uint32_t fact;
        const char *item, *text;
        bool has_reason;
    } lines[] = {
        {LIFECYCLE_REFUSED, "spool refused",
         "it made GPU or NVTX calls and could make no spool for them", true},
        {LIFECYCLE_CHILD_REFUSED, "spool refused",
         "a process that it started made GPU or NVTX calls and could make no spool for them", true},
        {LIFECYCLE_CHILD_UNSEEN, "host refused",
         "it started processes that cannot reach the spool folder (another user, root folder or "
         "/dev/shm): what they did is not known",
         true},
        {LIFECYCLE_OTHER_CUDA, "cuda refused", ANOTHER("CUDA_INJECTION64_PATH"), false},
        {LIFECYCLE_OTHER_NVTX, "nvtx refused", ANOTHER("NVTX_INJECTION64_PATH"), false},
        {LIFECYCLE_OTHER_OPENCL, "opencl refused", ANOTHER("OPENCL_LAYERS"), false},
    };
#undef ANOTHER
    uint32_t facts = atomic_load(&entry->facts);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char note[240];
        if (!(facts & lines[i].fact) || (lines[i].fact == LIFECYCLE_REFUSED && process->has_spool))
            continue;
        snprintf(note, sizeof note, "%s%s%s%s", lines[i].text, lines[i].has_reason ? " (" : "",
                 lines[i].has_reason ? strerror((int)(facts >> LIFECYCLE_ERRNO_SHIFT)) : "",
                 lines[i].has_reason ? ")" : "");
        PROF_TRY(ingest_health_line(ingest, process->row, PROF_HEALTH_collector_refused,
                                    lines[i].item, NULL, note));
    }
    return PROF_OK;
}

/* Processes that had something to record and could not: no descriptors left, a limit of file sizes
 * or of address space, another user or another root folder than at their start. */
static enum prof_status state_refused_spools(struct prof_ingest *ingest)
{
    for (size_t i = 0; i < ingest->processes.count; i++) {
        const struct ingest_process *process = &ingest->processes.data[i];
        struct lifecycle_entry entry;
        if (read_lifecycle_entry(ingest, process, &entry))
            PROF_TRY(state_facts(ingest, process, &entry));
    }
    return PROF_OK;
}

/* Spools that were read before perfkit was killed and cannot be opened any more. */
static enum prof_status state_lost_spools(struct prof_ingest *ingest)
{
    sqlite3_stmt *sql;
    enum prof_status status =
        ingest_query(ingest, "SELECT process FROM ingest_spool WHERE finished=0", &sql);
    while (!status && sqlite3_step(sql) == SQLITE_ROW)
        status = state_unreadable(ingest, sqlite3_column_int64(sql, 0));
    return ingest_query_end(ingest, sql, status);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static const struct ingest_spool *process_spool(const struct prof_ingest *ingest, int64_t process)
{
    for (size_t i = 0; i < ingest->spools.count; i++) {
        if (ingest->spools.data[i]->process == process)
            return ingest->spools.data[i];
    }
    return NULL;
}

/* Did it have a device do anything, as far as either side of the balance knows? */
static bool used_device(const struct ingest_spool *spool)
{
    return spool->tally[TALLY_DEVICE_NEWEST_NS] || spool->tally[TALLY_GRAPH_LAUNCHED] ||
           spool->tally[TALLY_LAUNCH_RECORDED] || spool->tally[TALLY_TRANSFER_RECORDED] ||
           spool->tally[TALLY_MEMSET_RECORDED] || spool->tally[TALLY_DEVICE_CALLED];
}

/* Can device records be missing at the end of such a process? With CUDA, whose calls are known only
 * when they are fetched, not if the last flush came and only the thread that died made calls;
 * otherwise each call was counted when it was made. */
static bool device_records_at_risk(const struct prof_ingest *ingest,
                                   const struct ingest_process *process,
                                   const struct ingest_spool *spool)
{
    const uint64_t *tally = spool->tally;
    bool flushed = tally[TALLY_FINAL_NS] != 0, cut_off = was_cut_off(ingest, process);
    bool lacks = tally[TALLY_LAUNCH_UNRECORDED] || tally[TALLY_COPY_UNRECORDED];
    if (!process->gone && process->how != LIFECYCLE_EXEC) /* it runs on */
        return lacks || (tally[TALLY_CUDA_STARTED] && used_device(spool));
    if (!cut_off)
        return tally[TALLY_CUDA_STARTED] && !flushed;
    if (!tally[TALLY_CUDA_STARTED])
        return lacks;
    bool alone = tally[TALLY_CALLERS] == 0 ||
                 (tally[TALLY_CALLERS] == 1 && tally[TALLY_CALLER_TID] == tally[TALLY_DEATH_TID]);
    return !flushed || lacks || !alone;
}

static void append_count(char *out, size_t size, uint64_t count, const char *one, const char *many,
                         const char *before)
{
    if (count)
        prof_append(out, size, "%s%llu %s", before, (unsigned long long)count,
                    count == 1 ? one : many);
}

/* The records that may be missing are those of what the device did since all were fetched, and of
 * the calls that are known to lack theirs: with OpenCL these are all calls. */
static enum prof_status write_risk(struct prof_ingest *ingest, const struct ingest_process *process,
                                   const struct ingest_spool *spool)
{
    const uint64_t *tally = spool->tally;
    uint64_t since = tally[TALLY_FINAL_NS] ? tally[TALLY_FINAL_NS] : tally[TALLY_FETCHED_NS];
    uint64_t launches = tally[TALLY_LAUNCH_UNRECORDED], copies = tally[TALLY_COPY_UNRECORDED];
    uint64_t end = process->end_ns, lacking_since = tally[TALLY_LACKING_SINCE_NS];
    int64_t lacking = (int64_t)(launches + copies);
    char note[400], window[80] = "since they were last fetched"; /* its end was not seen */
    if (since < process->start_ns)
        since = process->start_ns;
    if (!tally[TALLY_CUDA_STARTED] && tally[TALLY_DEVICE_NEWEST_NS] > since)
        since = tally[TALLY_DEVICE_NEWEST_NS];
    if (lacking_since && (lacking_since < since || !tally[TALLY_CUDA_STARTED]))
        since = lacking_since; /* of several queues, the newest record is that of one */
    if (end)
        snprintf(window, sizeof window, "of its last %llu ms",
                 (unsigned long long)(end > since ? (end - since + 999999) / 1000000 : 0));
    snprintf(note, sizeof note, "%sdevice records %s may be missing",
             !used_device(spool) ? "CUDA was started and no device record arrived before the end: "
                                 : "",
             window);
    append_count(note, sizeof note, launches, "launch", "launches", "; ");
    append_count(note, sizeof note, copies, "memcpy or memset", "memcpys and memsets",
                 launches ? " and " : "; ");
    prof_append(note, sizeof note, "%s",
                lacking == 1                ? " is known to have none"
                : lacking                   ? " are known to have none"
                : tally[TALLY_CUDA_STARTED] ? "; calls made since then are not counted"
                                            : "");
    return ingest_health_line(ingest, process->row, PROF_HEALTH_risk_device_records, NULL, &lacking,
                              note);
}

static enum prof_status write_end_line(struct prof_ingest *ingest,
                                       const struct ingest_process *process)
{
    static const char *const notes[] = {
        [LIFECYCLE_UNSEEN] = "ended without an exit hook (killed by a signal, or left by a raw "
                             "system call)",
        [LIFECYCLE_EXIT] = "return from main or exit()",
        [LIFECYCLE_FAST_EXIT] = "_exit(), or an end that passed no exit hook",
        [LIFECYCLE_QUICK_EXIT] = "quick_exit()",
        [LIFECYCLE_EXEC] = "replaced by another program",
        [LIFECYCLE_SIGNAL] = "killed by a signal",
    };
    static const char *const items[] = {
#define X(name, text) text,
        LIFECYCLE_END_MAP(X)
#undef X
    };
    int64_t value = process->signal ? process->signal : process->status;
    const int64_t *known = process->signal || process->has_status ? &value : NULL;
    const struct ingest_spool *spool = process_spool(ingest, process->row);
    bool runs_on = !process->gone && process->how != LIFECYCLE_EXEC;
    /* A kept window ends where it was kept, by request: of what runs on it lacks nothing. */
    bool risk = spool && !(ingest->ring.window && runs_on) &&
                device_records_at_risk(ingest, process, spool);
    if (runs_on) {
        PROF_TRY(ingest_health_line(ingest, process->row, PROF_HEALTH_end_running, NULL, known,
                                    "still running when the capture was closed"));
        return risk ? write_risk(ingest, process, spool) : PROF_OK;
    }
    bool fetched = !risk && spool && used_device(spool) && was_cut_off(ingest, process);
    char note[200];
    bool stranger = process->how == LIFECYCLE_UNSEEN && process->has_status &&
                    process->entry == UINT32_MAX && !process->has_spool;
    snprintf(note, sizeof note, "%s%s",
             stranger ? "it never announced itself: linked statically, not preloaded, or run as a "
                        "user that cannot open the spool folder"
                      : notes[process->how],
             fetched ? "; no device record is missing" : "");
    enum prof_health_code code = process->how == LIFECYCLE_UNSEEN   ? PROF_HEALTH_end_unseen
                                 : process->how == LIFECYCLE_SIGNAL ? PROF_HEALTH_end_signal
                                                                    : PROF_HEALTH_end_normal;
    PROF_TRY(ingest_health_line(ingest, process->row, code, items[process->how], known, note));
    return risk ? write_risk(ingest, process, spool) : PROF_OK;
}

/* How the processes that had events (and the command itself) ended. */
enum prof_status ingest_health_finish(struct prof_ingest *ingest)
{
    PROF_TRY(state_refused_files(ingest));
    PROF_TRY(state_missing_spools(ingest));
    PROF_TRY(state_refused_spools(ingest));
    PROF_TRY(state_lost_spools(ingest));
    for (size_t i = 0; i < ingest->processes.count; i++) {
        const struct ingest_process *process = &ingest->processes.data[i];
        if (process->has_spool || process->reaped)
            PROF_TRY(write_end_line(ingest, process));
    }
    int64_t dropped = (int64_t)ingest->lifecycle_dropped;
    if (!dropped)
        return PROF_OK;
    return ingest_health_line(ingest, 0, PROF_HEALTH_process_dropped, NULL, &dropped,
                              "processes that found no room in the table of processes");
}
