/* The processes of the target: who they are, who still lives, how each ended.
 *
 * Processes announce themselves in the lifecycle table (libprof/spool/lifecycle.h) and say there
 * how they leave; those that cannot (killed, or left by a raw system call) are noticed through a
 * pidfd, which on Linux 6.15 and later also tells the status of a process that is not our child. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/store/ingest_private.h"
#include "libprof/store/ingest_state.h"

#define RESERVE_AHEAD 2048u /* entries: 512 KiB */
#define STATUS_PATIENCE_NS 300000000u
/* An exec is announced before it is tried: it may fail, and until it succeeds the other threads go on
 * recording. */
#define EXEC_PATIENCE_NS 1000000000u

/* From the start of a program to the moment when its libraries are loaded; pids are used again later. */
#define CLAIM_PATIENCE_NS 10000000000u

#define LIFECYCLE_MAP_BYTES                                                                        \
    (LIFECYCLE_HEADER_BYTES + (size_t)LIFECYCLE_MAX_ENTRIES * sizeof(struct lifecycle_entry))

static const char *const end_reasons[] = {
#define X(name, text) text,
    LIFECYCLE_END_MAP(X)
#undef X
};

static char *path_in(const char *directory, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

static bool reserve_entries(int fd, struct lifecycle_header *header, uint32_t entries)
{
    uint32_t have = atomic_load(&header->reserved);
    if (entries > LIFECYCLE_MAX_ENTRIES)
        entries = LIFECYCLE_MAX_ENTRIES;
    if (entries <= have)
        return true;
    off_t from = (off_t)(LIFECYCLE_HEADER_BYTES + (uint64_t)have * sizeof(struct lifecycle_entry));
    off_t bytes = (off_t)((uint64_t)(entries - have) * sizeof(struct lifecycle_entry));
    if (fallocate(fd, 0, from, bytes) != 0 && posix_fallocate(fd, from, bytes) != 0)
        return false;
    atomic_store(&header->reserved, entries);
    return true;
}

enum prof_status prof_ingest_prepare(const char *directory, struct prof_error *err)
{
    char *path = path_in(directory, LIFECYCLE_FILE);
    if (!path)
        return prof_fail(err, PROF_NOMEM, "out of memory");
    enum prof_status status = PROF_OK;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    void *page = MAP_FAILED;
    if (fd >= 0 && posix_fallocate(fd, 0, LIFECYCLE_HEADER_BYTES) == 0)
        page = mmap(NULL, LIFECYCLE_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        status = prof_fail_errno(err, PROF_IO, "cannot prepare the spool directory %s", directory);
    else {
        struct lifecycle_header *header = page;
        header->version = LIFECYCLE_VERSION;
        header->entry_bytes = sizeof(struct lifecycle_entry);
        header->magic = LIFECYCLE_MAGIC;
        for (uint32_t ahead = RESERVE_AHEAD; ahead && !reserve_entries(fd, header, ahead);)
            ahead /= 2;
        munmap(page, LIFECYCLE_HEADER_BYTES);
    }
    if (fd >= 0)
        close(fd);
    free(path);
    return status;
}

static uint32_t entries_in(const struct stat *st)
{
    uint64_t bytes = (uint64_t)st->st_size, entries = 0;
    if (bytes > LIFECYCLE_HEADER_BYTES)
        entries = (bytes - LIFECYCLE_HEADER_BYTES) / sizeof(struct lifecycle_entry);
    return entries < LIFECYCLE_MAX_ENTRIES ? (uint32_t)entries : LIFECYCLE_MAX_ENTRIES;
}

enum prof_status ingest_processes_open(struct prof_ingest *ingest, struct prof_error *err)
{
    char *path = path_in(ingest->directory, LIFECYCLE_FILE);
    if (!path)
        return prof_fail(err, PROF_NOMEM, "out of memory");
    ingest->lifecycle_fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    free(path);
    struct stat st;
    void *base = MAP_FAILED;
    if (ingest->lifecycle_fd >= 0 && fstat(ingest->lifecycle_fd, &st) == 0 &&
        st.st_size >= (off_t)LIFECYCLE_HEADER_BYTES)
        base = mmap(NULL, LIFECYCLE_MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                    ingest->lifecycle_fd, 0);
    if (base == MAP_FAILED) {
        /* recover of a spool directory that lost its table: the spools speak for themselves */
        if (ingest->lifecycle_fd >= 0)
            close(ingest->lifecycle_fd);
        ingest->lifecycle_fd = -1;
        return PROF_OK;
    }
    ingest->lifecycle = base;
    ingest->lifecycle_bytes = LIFECYCLE_MAP_BYTES;
    ingest->lifecycle_entries = entries_in(&st);
    const struct lifecycle_header *header = base;
    if (header->magic != LIFECYCLE_MAGIC || header->version != LIFECYCLE_VERSION ||
        header->entry_bytes != sizeof(struct lifecycle_entry))
        return prof_fail(err, PROF_CORRUPT, "%s: damaged table of processes", ingest->directory);
    return PROF_OK;
}

void ingest_processes_close(struct prof_ingest *ingest)
{
    for (size_t i = 0; i < ingest->processes.count; i++) {
        if (ingest->processes.data[i].pidfd >= 0)
            close(ingest->processes.data[i].pidfd);
    }
    prof_array_free(&ingest->processes);
    prof_array_free(&ingest->lifecycle_gaps);
    if (ingest->lifecycle)
        munmap(ingest->lifecycle, ingest->lifecycle_bytes);
    if (ingest->lifecycle_fd >= 0)
        close(ingest->lifecycle_fd);
    ingest->lifecycle = NULL;
    ingest->lifecycle_fd = -1;
}

/* Arguments joined by NUL to one line. */
static char *command_line(const char *command, uint32_t bytes)
{
    char *line = malloc(bytes + 1u);
    if (!line)
        return NULL;
    memcpy(line, command, bytes);
    while (bytes > 0 && line[bytes - 1] == '\0')
        bytes--;
    for (uint32_t i = 0; i < bytes; i++) {
        if (line[i] == '\0')
            line[i] = ' ';
    }
    line[bytes] = '\0';
    return line;
}

/* NULL when the table does not have that entry, or is gone. */
static struct lifecycle_entry *entry_at(const struct prof_ingest *ingest, uint32_t number)
{
    if (!ingest->lifecycle || number >= ingest->lifecycle_entries)
        return NULL;
    return (struct lifecycle_entry *)(void *)(ingest->lifecycle + LIFECYCLE_HEADER_BYTES +
                                              (size_t)number * sizeof(struct lifecycle_entry));
}

/* Get hold of the process itself, if it still is there. */
static void find_process(const struct prof_ingest *ingest, struct ingest_process *process)
{
    const struct lifecycle_entry *entry = entry_at(ingest, process->entry);
    process->seen_pid = ingest_pid_in_space(process->pid, entry ? entry->pid_space : 0);
    process->pidfd = process->seen_pid ? (int)syscall(SYS_pidfd_open, process->seen_pid, 0) : -1;
    process->gone = !process->seen_pid || (process->pidfd < 0 && errno == ESRCH);
}

/* As the sampler of CPUs numbers processes: from where we are. */
static bool is_seen_as(const struct ingest_process *process, uint32_t pid)
{
    return process->seen_pid ? process->seen_pid == (pid_t)pid : process->pid == pid;
}

/* The sampler came before the process's own word of itself: the row is the same. */
static struct ingest_process *sampled_before(struct prof_ingest *ingest,
                                             const struct ingest_process *claim, bool forked)
{
    for (size_t i = ingest->processes.count; i-- > 0;) {
        struct ingest_process *process = &ingest->processes.data[i];
        if (!process->sampled || process->forked != forked || !is_seen_as(claim, process->pid) ||
            process->start_ns > claim->start_ns ||
            claim->start_ns - process->start_ns > CLAIM_PATIENCE_NS)
            continue;
        if (ingest->processes_done > i)
            ingest->processes_done = i;
        return process;
    }
    return NULL;
}

static bool write_process(struct prof_ingest *ingest, enum ingest_sql which,
                          const struct ingest_process *process, uint32_t parent,
                          const char *command, uint32_t bytes)
{
    char *line = command_line(command, bytes);
    sqlite3_stmt *sql = ingest->sql[which];
    if (!line)
        return false;
    ingest_bind(sql, 1, process->row);
    ingest_bind(sql, 2, process->pid);
    ingest_bind_known(sql, 3, parent);
    ingest_bind_text(sql, 4, line);
    ingest_bind_text(sql, 5, process->forked ? "fork" : "start");
    if (which == INGEST_SQL_PROCESS)
        ingest_bind(sql, 6, (int64_t)(process->start_ns - ingest->zero_ns));
    free(line);
    return ingest_run(ingest, which);
}

struct ingest_process *ingest_process_add(struct prof_ingest *ingest, uint32_t entry, uint32_t pid,
                                          uint32_t parent, bool forked, uint64_t start_ns,
                                          const char *command, uint32_t bytes)
{
    struct ingest_process made = {
        .entry = entry, .pid = pid, .start_ns = start_ns, .forked = forked};
    find_process(ingest, &made);
    struct ingest_process *process = sampled_before(ingest, &made, forked);
    enum ingest_sql which = process ? INGEST_SQL_PROCESS_CLAIM : INGEST_SQL_PROCESS;
    made.row = process ? process->row : ++ingest->last_process;
    if (!process)
        process = prof_array_add(&ingest->processes);
    if (!process)
        return NULL;
    *process = made;
    if (!write_process(ingest, which, process, parent, command, bytes) ||
        (entry != UINT32_MAX && !ingest_state_process(ingest, entry, process->row)))
        return NULL;
    return process;
}

bool ingest_process_restore(struct prof_ingest *ingest, struct ingest_process *process,
                            sqlite3_stmt *row)
{
    const char *reason = (const char *)sqlite3_column_text(row, 3);
    *process = (struct ingest_process){
        .row = sqlite3_column_int64(row, 0),
        .pid = (uint32_t)sqlite3_column_int64(row, 1),
        .start_ns = ingest->zero_ns + (uint64_t)sqlite3_column_int64(row, 2),
        .status = sqlite3_column_int(row, 4),
        .has_status = sqlite3_column_type(row, 4) != SQLITE_NULL,
        .signal = sqlite3_column_int(row, 5),
        .has_spool = sqlite3_column_type(row, 6) != SQLITE_NULL,
        .entry = (uint32_t)sqlite3_column_int64(row, 7),
        .pidfd = -1,
        .ended = reason != NULL,
    };
    for (uint32_t how = 0; reason && how < LIFECYCLE_ENDS; how++) {
        if (strcmp(reason, end_reasons[how]) == 0)
            process->how = how;
    }
    if (sqlite3_column_type(row, 8) != SQLITE_NULL)
        process->end_ns = ingest->zero_ns + (uint64_t)sqlite3_column_int64(row, 8);
    process->gone = process->ended && process->how != LIFECYCLE_EXEC;
    if (!process->gone) {
        find_process(ingest, process);
        process->unwatched = process->gone;
    }
    return true;
}

/* False only on failure; *published says whether the entry was there to be taken. */
static bool take_entry(struct prof_ingest *ingest, uint32_t number, bool *published)
{
    const struct lifecycle_entry *entry = entry_at(ingest, number);
    *published =
        entry && atomic_load_explicit(&entry->state, memory_order_acquire) != LIFECYCLE_EMPTY;
    if (!*published)
        return true;
    uint32_t bytes = entry->command_bytes;
    if (bytes > sizeof entry->command)
        bytes = sizeof entry->command;
    return ingest_process_add(ingest, number, entry->pid, entry->parent,
                              entry->birth == LIFECYCLE_BIRTH_FORK, entry->start_ns, entry->command, bytes) != NULL;
}

static bool add_gap(struct prof_ingest *ingest, uint32_t number)
{
    uint32_t *gap = prof_array_add(&ingest->lifecycle_gaps);
    if (gap)
        *gap = number;
    return gap != NULL;
}

bool ingest_processes_gaps(struct prof_ingest *ingest)
{
    uint32_t seen = ingest->lifecycle_next;
    if (seen > ingest->lifecycle_entries)
        seen = ingest->lifecycle_entries;
    bool *known = calloc(seen + 1u, sizeof *known);
    bool ok = known != NULL;
    for (size_t i = 0; ok && i < ingest->processes.count; i++) {
        if (ingest->processes.data[i].entry < seen)
            known[ingest->processes.data[i].entry] = true;
    }
    for (uint32_t number = 0; ok && number < seen; number++)
        ok = known[number] || add_gap(ingest, number);
    free(known);
    return ok;
}

bool ingest_processes_look(struct prof_ingest *ingest)
{
    struct lifecycle_header *header = (struct lifecycle_header *)(void *)ingest->lifecycle;
    struct stat st;
    if (!header || fstat(ingest->lifecycle_fd, &st) != 0)
        return true;
    uint32_t end = atomic_load(&header->next), reserved = atomic_load(&header->reserved);
    ingest->lifecycle_entries = entries_in(&st);
    if (reserved > ingest->lifecycle_entries)
        reserved = ingest->lifecycle_entries;
    if (end > reserved)
        end = reserved;
    /* Numbers taken but not yet filled are looked at again; a killed process never fills its. */
    size_t kept = 0;
    for (size_t i = 0; i < ingest->lifecycle_gaps.count; i++) {
        bool published;
        if (!take_entry(ingest, ingest->lifecycle_gaps.data[i], &published))
            return false;
        if (!published)
            ingest->lifecycle_gaps.data[kept++] = ingest->lifecycle_gaps.data[i];
    }
    ingest->lifecycle_gaps.count = kept;
    for (; ingest->lifecycle_next < end; ingest->lifecycle_next++) {
        bool published;
        if (!take_entry(ingest, ingest->lifecycle_next, &published))
            return false;
        if (!published && !add_gap(ingest, ingest->lifecycle_next))
            return false;
    }
    reserve_entries(ingest->lifecycle_fd, header, ingest->lifecycle_next + RESERVE_AHEAD);
    ingest->lifecycle_dropped = atomic_load(&header->dropped);
    return true;
}

/* Linux 6.15: the exit status of any process behind a pidfd, once it is reaped. */
struct pidfd_information {
    uint64_t mask, cgroup;
    uint32_t ids[11];
    int32_t exit_code;
};
#define PIDFD_INFORMATION_EXIT 8u
#define PIDFD_GET_INFORMATION _IOWR(0xFF, 11, struct pidfd_information)

static void set_wait_status(struct ingest_process *process, int wait_status)
{
    if (WIFSIGNALED(wait_status)) {
        process->how = LIFECYCLE_SIGNAL;
        process->signal = WTERMSIG(wait_status);
        process->has_status = false;
    } else {
        process->status = WEXITSTATUS(wait_status);
        process->has_status = true;
    }
}

static bool learn_status(struct ingest_process *process)
{
    struct pidfd_information information = {.mask = PIDFD_INFORMATION_EXIT};
    if (process->pidfd < 0 ||
        ioctl(process->pidfd, PIDFD_GET_INFORMATION, &information) != 0 ||
        !(information.mask & PIDFD_INFORMATION_EXIT))
        return false;
    set_wait_status(process, information.exit_code);
    return true;
}

static bool write_end(struct prof_ingest *ingest, struct ingest_process *process)
{
    sqlite3_stmt *sql = ingest->sql[INGEST_SQL_PROCESS_END];
    process->ended = true;
    const char *reason = process->gone || process->how == LIFECYCLE_EXEC
                             ? end_reasons[process->how < LIFECYCLE_ENDS ? process->how : 0]
                             : "running";
    ingest_bind(sql, 1, process->row);
    if (process->end_ns)
        ingest_bind(sql, 2, (int64_t)(process->end_ns - ingest->zero_ns));
    else
        sqlite3_bind_null(sql, 2);
    ingest_bind_text(sql, 3, reason);
    if (process->has_status)
        ingest_bind(sql, 4, process->status);
    else
        sqlite3_bind_null(sql, 4);
    ingest_bind_known(sql, 5, process->signal);
    if (process->pidfd >= 0 && process->gone) {
        close(process->pidfd);
        process->pidfd = -1;
    }
    return ingest_run(ingest, INGEST_SQL_PROCESS_END);
}

/* What the process itself said, if it did. */
static void read_entry(const struct prof_ingest *ingest, struct ingest_process *process)
{
    const struct lifecycle_entry *entry = entry_at(ingest, process->entry);
    if (!entry || process->reaped)
        return;
    if (atomic_load_explicit(&entry->state, memory_order_acquire) != LIFECYCLE_ENDED) {
        if (process->how == LIFECYCLE_EXEC) { /* it failed: the process goes on */
            process->how = LIFECYCLE_UNSEEN;
            process->end_ns = 0;
        }
        return;
    }
    uint32_t how = atomic_load(&entry->how);
    process->how = how < LIFECYCLE_ENDS ? how : LIFECYCLE_UNSEEN;
    process->end_ns = atomic_load(&entry->end_ns);
    if (process->how != LIFECYCLE_EXEC) {
        process->status = atomic_load(&entry->status) & 0xff;
        process->has_status = true;
    }
}

static bool is_gone(const struct ingest_process *process)
{
    if (process->pidfd >= 0) {
        struct pollfd poller = {.fd = process->pidfd, .events = POLLIN};
        return poll(&poller, 1, 0) > 0 && poller.revents;
    }
    return kill(process->seen_pid, 0) != 0 && errno == ESRCH;
}

static bool watch(struct prof_ingest *ingest, struct ingest_process *process)
{
    if (!process->gone && is_gone(process)) {
        process->gone = true;
        process->gone_ns = ingest->now_ns;
    }
    if (process->ended)
        return true;
    read_entry(ingest, process);
    if (!process->gone && (process->how != LIFECYCLE_EXEC ||
                           ingest->now_ns < process->end_ns + EXEC_PATIENCE_NS))
        return true;
    if (!process->reaped && process->how == LIFECYCLE_UNSEEN && !learn_status(process) &&
        process->pidfd >= 0 && ingest->now_ns - process->gone_ns < STATUS_PATIENCE_NS)
        return true; /* its parent may still have to reap it */
    if (!process->end_ns && !process->unwatched)
        process->end_ns = ingest->now_ns;
    return write_end(ingest, process);
}

bool ingest_processes_step(struct prof_ingest *ingest)
{
    if (!ingest_processes_look(ingest))
        return false;
    for (size_t i = ingest->processes_done; i < ingest->processes.count; i++) {
        if (!watch(ingest, &ingest->processes.data[i]))
            return false;
    }
    while (ingest->processes_done < ingest->processes.count &&
           ingest->processes.data[ingest->processes_done].ended &&
           ingest->processes.data[ingest->processes_done].gone)
        ingest->processes_done++;
    return true;
}

uint32_t ingest_processes_alive(const struct prof_ingest *ingest)
{
    uint32_t alive = 0;
    for (size_t i = ingest->processes_done; i < ingest->processes.count; i++) {
        const struct ingest_process *process = &ingest->processes.data[i];
        bool replaced = process->ended && process->how == LIFECYCLE_EXEC; /* has its own entry */
        alive += !process->gone && !replaced;
    }
    return alive;
}

bool ingest_processes_finish(struct prof_ingest *ingest)
{
    for (size_t i = 0; i < ingest->processes.count; i++) {
        struct ingest_process *process = &ingest->processes.data[i];
        if (process->ended)
            continue;
        read_entry(ingest, process);
        if (process->gone && !process->end_ns && !process->unwatched)
            process->end_ns = process->gone_ns ? process->gone_ns : ingest->now_ns;
        if (!write_end(ingest, process))
            return false;
    }
    return true;
}

struct ingest_process *ingest_process_find(struct prof_ingest *ingest, int64_t row)
{
    for (size_t i = ingest->processes.count; i-- > 0;) {
        if (ingest->processes.data[i].row == row)
            return &ingest->processes.data[i];
    }
    return NULL;
}

/* Which part of a distributed run it is. */
static void bind_rank(sqlite3_stmt *sql, int at, const struct spool_header *header)
{
    const uint32_t numbers[] = {header->rank, header->local_rank, header->world_size};
    for (int i = 0; i < 3; i++) {
        if (numbers[i])
            ingest_bind(sql, at + i, (int64_t)numbers[i] - 1);
        else
            sqlite3_bind_null(sql, at + i);
    }
    char job[sizeof header->job + 1] = "";
    memcpy(job, header->job, sizeof header->job);
    ingest_bind_text(sql, at + 3, *job ? job : NULL);
}

/* Of the images of a pid the one that began with the record, or next after it: who tells of itself does
 * so when its libraries are loaded. Else one that began before and still is. */
static struct ingest_process *image_of(struct prof_ingest *ingest,
                                       const struct wire_cpu_process *record)
{
    bool program = record->head.flags & WIRE_CPU_PROCESS_EXEC;
    struct ingest_process *after = NULL, *before = NULL;
    for (size_t i = 0; i < ingest->processes.count; i++) {
        struct ingest_process *process = &ingest->processes.data[i];
        if (process->sampled || !is_seen_as(process, record->pid))
            continue;
        if (process->start_ns >= record->start) {
            after = !after || process->start_ns < after->start_ns ? process : after;
        } else if (process->how != LIFECYCLE_EXEC && !(program && process->forked) &&
                   (!process->end_ns || process->end_ns > record->start)) {
            before = process;
        }
    }
    return after ? after : before;
}

int64_t ingest_process_sampled(struct prof_ingest *ingest, const struct wire_cpu_process *record,
                               const char *name)
{
    struct ingest_process *process = image_of(ingest, record);
    if (process)
        return process->row;
    process = prof_array_add(&ingest->processes);
    if (!process)
        return 0;
    /* When it ends nobody tells, and nobody is to wait for it. */
    *process = (struct ingest_process){
        .row = ++ingest->last_process,
        .entry = UINT32_MAX,
        .pid = record->pid,
        .pidfd = -1,
        .start_ns = record->start,
        .forked = !(record->head.flags & WIRE_CPU_PROCESS_EXEC),
        .sampled = true,
        .ended = true,
        .gone = true,
        .unwatched = true,
    };
    int64_t row = process->row;
    return write_process(ingest, INGEST_SQL_PROCESS, process, record->parent, name,
                         (uint32_t)strlen(name))
               ? row
               : 0;
}

int64_t ingest_process_of_spool(struct prof_ingest *ingest, const struct spool_header *header,
                                const char *name)
{
    struct ingest_process *best = NULL;
    /* By its entry, never by its pid where it has one: an image before exec has the same. */
    for (size_t i = ingest->processes.count; i-- > 0 && !best;) {
        struct ingest_process *process = &ingest->processes.data[i];
        if (process->pid == header->pid &&
            (header->entry ? process->entry == header->entry - 1
                           : process->entry == UINT32_MAX && !process->has_spool &&
                                  !process->sampled))
            best = process;
    }
    if (!best) {
        uint32_t bytes = header->command_bytes;
        if (bytes > sizeof header->command)
            bytes = sizeof header->command;
        best = ingest_process_add(ingest, UINT32_MAX, header->pid, header->parent,
                                  header->forked, header->start_ns,
                                  header->command, bytes);
    }
    if (!best)
        return 0;
    best->has_spool = true;
    sqlite3_stmt *sql = ingest->sql[INGEST_SQL_PROCESS_SPOOL];
    ingest_bind(sql, 1, best->row);
    ingest_bind_text(sql, 2, name);
    bind_rank(sql, 3, header);
    int64_t row = best->row;
    return ingest_run(ingest, INGEST_SQL_PROCESS_SPOOL) ? row : 0;
}

/* The parent's word is the best there is: it replaces what was known, also in a row already
 * written. */
bool ingest_process_reaped(struct prof_ingest *ingest, uint32_t pid, int wait_status)
{
    struct ingest_process *process = NULL;
    for (size_t i = ingest->processes.count; i-- > 0 && !process;) {
        if (ingest->processes.data[i].pid == pid &&
            ingest->processes.data[i].how != LIFECYCLE_EXEC)
            process = &ingest->processes.data[i];
    }
    if (!process)
        process = ingest_process_add(ingest, UINT32_MAX, pid, (uint32_t)getpid(), false,
                                     ingest->zero_ns, "", 0);
    if (!process)
        return false;
    read_entry(ingest, process);
    set_wait_status(process, wait_status);
    const struct lifecycle_entry *entry = entry_at(ingest, process->entry);
    if (process->how == LIFECYCLE_UNSEEN && entry && (entry->facts & LIFECYCLE_HOOKED))
        process->how = LIFECYCLE_FAST_EXIT; /* it returned a status without passing our hooks */
    process->reaped = process->gone = true;
    if (!process->end_ns)
        process->end_ns = ingest->now_ns;
    return write_end(ingest, process);
}
