/* The processes of the target: who they are and what started them. One is known by its entry in the
 * lifecycle table, by its spool, by the samples of its threads, or by several of these: the row is
 * the same. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/store/ingest_private.h"
#include "libprof/base/regular.h"

/* enum lifecycle_end of what process.end_reason has. */
static uint32_t ingest_process_end_of(const char *reason);

/* From the start of a program to the moment when its libraries are loaded; pids are used again
 * later. */
#define CLAIM_PATIENCE_NS 10000000000u

/* ---- pids of containers ---------------------------------------------------------------------- */

/* Processes in a pid namespace of their own (containers, unshare) know themselves by another number
 * than the one we must watch. Looked up once for each such process. */

static uint64_t space_of(const char *pid)
{
    char path[64];
    struct stat info;
    snprintf(path, sizeof path, "/proc/%.20s/ns/pid", pid);
    return stat(path, &info) == 0 ? info.st_ino : 0;
}

/* The number in the innermost namespace: the last of the line "NSpid:". */
static uint32_t own_number(const char *pid)
{
    char path[64], line[256];
    uint32_t number = 0;
    snprintf(path, sizeof path, "/proc/%.40s/status", pid);
    PROF_FILE_CLOSED FILE *in = fopen(path, "re");
    while (in && fgets(line, sizeof line, in)) {
        const char *last = strncmp(line, "NSpid:", 6) == 0 ? strrchr(line, '\t') : NULL;
        if (last) {
            number = (uint32_t)strtoul(last, NULL, 10);
            break;
        }
    }
    return number;
}

uint32_t ingest_own_tid(pid_t pid, uint32_t tid)
{
    char task[64];
    snprintf(task, sizeof task, "%d/task/%u", (int)pid, (unsigned)tid);
    return own_number(task);
}

/* Our number of the process that calls itself `pid` in a pid namespace; 0 = none such. */
static pid_t pid_in_space(uint32_t pid, uint64_t space)
{
    if (pid == 0 || pid > INT_MAX)
        return 0;
    if (space == 0 || space == space_of("self"))
        return (pid_t)pid;
    pid_t found = 0;
    PROF_DIR_CLOSED DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            space_of(entry->d_name) == space && own_number(entry->d_name) == pid)
            found = (pid_t)strtol(entry->d_name, NULL, 10);
    }
    return found;
}

/* ---- processes ------------------------------------------------------------------------------- */

void ingest_processes_close(struct prof_ingest *ingest)
{
    for (size_t i = 0; i < ingest->processes.count; i++) {
        if (ingest->processes.data[i].pidfd >= 0)
            close(ingest->processes.data[i].pidfd);
    }
    prof_array_free(&ingest->processes);
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

/* Get hold of the process itself, if it still is there. */
static void find_process(const struct prof_ingest *ingest, struct ingest_process *process)
{
    const struct lifecycle_entry *entry = ingest_lifecycle_entry(ingest, process->entry);
    process->seen_pid = pid_in_space(process->pid, entry ? entry->pid_space : 0);
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

static enum prof_status write_process(struct prof_ingest *ingest,
                                      const struct ingest_process *process, bool is_there,
                                      uint32_t parent, const char *command, uint32_t bytes)
{
    PROF_FREED char *line = command_line(command, bytes);
    sqlite3_stmt *sql = ingest->insert[SCHEMA_process];
    if (!line)
        return ingest_no_memory(ingest, "a command line");
    ingest_bind(sql, COLUMN_AT(process, id), process->row);
    ingest_bind(sql, COLUMN_AT(process, pid), process->pid);
    ingest_bind_known(sql, COLUMN_AT(process, parent_pid), parent);
    ingest_bind_text(ingest, sql, COLUMN_AT(process, command), line);
    ingest_bind_text(ingest, sql, COLUMN_AT(process, birth), process->forked ? "fork" : "start");
    if (is_there) /* its start stays what the sampler saw */
        sqlite3_bind_null(sql, COLUMN_AT(process, start));
    else
        ingest_bind(sql, COLUMN_AT(process, start), (int64_t)(process->start_ns - ingest->zero_ns));
    return ingest_insert(ingest, SCHEMA_process);
}

struct ingest_process *ingest_process_add(struct prof_ingest *ingest, uint32_t entry, uint32_t pid,
                                          uint32_t parent, bool forked, uint64_t start_ns,
                                          const char *command, uint32_t bytes)
{
    struct ingest_process made = {
        .entry = entry, .pid = pid, .start_ns = start_ns, .forked = forked};
    find_process(ingest, &made);
    struct ingest_process *process = sampled_before(ingest, &made, forked);
    bool is_there = process != NULL;
    made.row = process ? process->row : ++ingest->last_process;
    if (!process && !(process = prof_array_add(&ingest->processes))) {
        ingest_no_memory(ingest, "processes");
        return NULL;
    }
    *process = made;
    enum prof_status status = write_process(ingest, process, is_there, parent, command, bytes);
    if (!status && entry != UINT32_MAX)
        status = ingest_state_process(ingest, entry, process->row);
    return status ? NULL : process;
}

void ingest_process_restore(struct prof_ingest *ingest, struct ingest_process *process,
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
        .how = reason ? ingest_process_end_of(reason) : LIFECYCLE_UNSEEN,
    };
    if (sqlite3_column_type(row, 8) != SQLITE_NULL)
        process->end_ns = ingest->zero_ns + (uint64_t)sqlite3_column_int64(row, 8);
    process->gone = process->ended && process->how != LIFECYCLE_EXEC;
    if (!process->gone) {
        find_process(ingest, process);
        process->unwatched = process->gone;
    }
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
static void bind_rank(struct prof_ingest *ingest, sqlite3_stmt *sql, int at,
                      const struct spool_header *header)
{
    const uint32_t numbers[] = {header->rank, header->local_rank, header->world_size};
    for (int i = 0; i < 3; i++) {
        ingest_bind_if(sql, at + i, numbers[i], (int64_t)numbers[i] - 1);
    }
    char job[sizeof header->job + 1] = "";
    memcpy(job, header->job, sizeof header->job);
    ingest_bind_text(ingest, sql, at + 3, *job ? job : NULL);
}

/* Of the images of a pid the one that began with the record, or next after it: a process announces
 * itself when its libraries are loaded. Else one that began before and still is. */
static struct ingest_process *find_process_image(struct prof_ingest *ingest,
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
    struct ingest_process *process = find_process_image(ingest, record);
    if (process)
        return process->row;
    process = prof_array_add(&ingest->processes);
    if (!process) {
        ingest_no_memory(ingest, "processes");
        return 0;
    }
    /* Its end is not reported, and nothing waits for it. */
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
    return write_process(ingest, process, false, record->parent, name, (uint32_t)strlen(name))
               ? 0
               : row;
}

int64_t ingest_process_of_spool(struct prof_ingest *ingest, const struct spool_header *header,
                                const char *name)
{
    struct ingest_process *best = NULL;
    /* By its entry, never by its pid where it has one: an image before exec has the same. */
    for (size_t i = ingest->processes.count; i-- > 0 && !best;) {
        struct ingest_process *process = &ingest->processes.data[i];
        if (process->pid == header->pid &&
            (header->entry
                 ? process->entry == header->entry - 1
                 : process->entry == UINT32_MAX && !process->has_spool && !process->sampled))
            best = process;
    }
    if (!best) {
        uint32_t bytes = header->command_bytes;
        if (bytes > sizeof header->command)
            bytes = sizeof header->command;
        best = ingest_process_add(ingest, UINT32_MAX, header->pid, header->parent, header->forked,
                                  header->start_ns, header->command, bytes);
    }
    if (!best)
        return 0;
    best->has_spool = true;
    sqlite3_stmt *sql = ingest->sql[INGEST_SQL_PROCESS_SPOOL];
    ingest_bind(sql, 1, best->row);
    ingest_bind_text(ingest, sql, 2, name);
    bind_rank(ingest, sql, 3, header);
    int64_t row = best->row;
    return ingest_run(ingest, INGEST_SQL_PROCESS_SPOOL) ? 0 : row;
}

/* ---- ranks that only NCCL knows -------------------------------------------------------------- */

/* Programs that start their ranks themselves (torch.multiprocessing) number them while they run;
 * the variables of a launcher are then those of the program, the same in all ranks. The program
 * gives NCCL the rank in ncclCommInitRank, and passes it on in the payload of its NVTX range. */

/* declared: of each call. sizes: of the communicators of one size of a process. largest: the
 * largest of each process (SQLite takes the other columns from the row of the max). fit: those that
 * want one.
 */
#define DECLARED                                                                                   \
    "WITH declared AS (SELECT f.range, max(CASE WHEN f.name IN (SELECT id FROM string WHERE "      \
    "value = 'Rank') THEN f.value END) AS rank, max(CASE WHEN f.name IN (SELECT id FROM string "   \
    "WHERE value = 'No. of ranks') THEN f.value END) AS size FROM range_field f WHERE f.name IN "  \
    "(SELECT id FROM string WHERE value IN ('Rank', 'No. of ranks')) GROUP BY 1), "                \
    "sizes AS (SELECT t.process, declared.size, min(declared.rank) AS rank, max(declared.rank) "   \
    "AS other "                                                                                    \
    "FROM declared JOIN range r ON r.id = declared.range JOIN string d ON d.id = r.domain AND "    \
    "d.value = 'NCCL' JOIN thread t ON t.id = r.thread WHERE typeof(declared.rank) = 'integer' "   \
    "AND "                                                                                         \
    "typeof(declared.size) = 'integer' AND declared.rank BETWEEN 0 AND declared.size - 1 GROUP "   \
    "BY 1, 2), "                                                                                   \
    "largest AS (SELECT process, max(size) AS size, rank, other FROM sizes GROUP BY 1), "          \
    "fit AS (SELECT l.process, l.size, l.rank FROM largest l JOIN process p ON p.id = l.process "  \
    "WHERE l.rank = l.other AND l.size = (SELECT max(size) FROM largest) AND (p.rank IS NULL OR "  \
    "1 < (SELECT count(*) FROM largest m JOIN process q ON q.id = m.process WHERE q.rank = "       \
    "p.rank))) "                                                                                   \
    "SELECT process, rank, size FROM fit f WHERE 1 = (SELECT count(*) FROM fit g WHERE g.rank = "  \
    "f.rank)"

/* A local rank beside a rank that was not this process's own is not its own either. */
#define SET                                                                                        \
    "UPDATE process SET local_rank = CASE WHEN rank = ?2 THEN local_rank END, rank = ?2, "         \
    "world_size = ?3 WHERE id = ?1"

struct declared {
    int64_t process, rank, size;
};
struct declared_list {
    PROF_ARRAY(struct declared) rows;
};

static enum prof_status read_declared(struct prof_ingest *ingest, struct declared_list *list)
{
    sqlite3_stmt *row;
    enum prof_status status = ingest_query(ingest, DECLARED, &row);
    while (!status && sqlite3_step(row) == SQLITE_ROW) {
        struct declared *declared = prof_array_add(&list->rows);
        status = ingest_memory(ingest, declared != NULL, "ranks");
        if (declared)
            *declared =
                (struct declared){sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1),
                                  sqlite3_column_int64(row, 2)};
    }
    return ingest_query_end(ingest, row, status);
}

static enum prof_status write_declared(struct prof_ingest *ingest, const struct declared_list *list)
{
    sqlite3_stmt *set;
    PROF_TRY(ingest_query(ingest, SET, &set));
    enum prof_status status = PROF_OK;
    for (size_t i = 0; !status && i < list->rows.count; i++) {
        sqlite3_bind_int64(set, 1, list->rows.data[i].process);
        sqlite3_bind_int64(set, 2, list->rows.data[i].rank);
        sqlite3_bind_int64(set, 3, list->rows.data[i].size);
        sqlite3_step(set);
        status = ingest_check(ingest, sqlite3_reset(set));
    }
    return ingest_query_end(ingest, set, status);
}

enum prof_status ingest_ranks_of_nccl(struct prof_ingest *ingest)
{
    struct declared_list list = {.rows = {0}};
    enum prof_status status = read_declared(ingest, &list);
    if (!status && list.rows.count)
        status = write_declared(ingest, &list);
    prof_array_free(&list.rows);
    return status;
}

/* ---- how processes end ----------------------------------------------------------------------- */

/* Which processes of the target still live, and how each ended. They say in the lifecycle table how
 * they leave; those that cannot (killed, or left by a raw system call) are noticed through a pidfd,
 * which on Linux 6.15 and later also has the status of a process that is not our child. */

#define STATUS_PATIENCE_NS 300000000u
/* An exec is announced before it is tried: it may fail, and until it succeeds the other threads go
 * on recording. */
#define EXEC_PATIENCE_NS 1000000000u

static const char *const end_reasons[] = {
#define X(name, text) text,
    LIFECYCLE_END_MAP(X)
#undef X
};

static uint32_t ingest_process_end_of(const char *reason)
{
    for (uint32_t how = 0; how < LIFECYCLE_ENDS; how++) {
        if (strcmp(reason, end_reasons[how]) == 0)
            return how;
    }
    return LIFECYCLE_UNSEEN;
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
    if (process->pidfd < 0 || ioctl(process->pidfd, PIDFD_GET_INFORMATION, &information) != 0 ||
        !(information.mask & PIDFD_INFORMATION_EXIT))
        return false;
    set_wait_status(process, information.exit_code);
    return true;
}

static enum prof_status write_end(struct prof_ingest *ingest, struct ingest_process *process)
{
    sqlite3_stmt *sql = ingest->sql[INGEST_SQL_PROCESS_END];
    process->ended = true;
    const char *reason = process->gone || process->how == LIFECYCLE_EXEC
                             ? end_reasons[process->how < LIFECYCLE_ENDS ? process->how : 0]
                             : "running";
    ingest_bind(sql, 1, process->row);
    ingest_bind_if(sql, 2, process->end_ns, (int64_t)(process->end_ns - ingest->zero_ns));
    ingest_bind_text(ingest, sql, 3, reason);
    ingest_bind_if(sql, 4, process->has_status, process->status);
    ingest_bind_known(sql, 5, process->signal);
    if (process->pidfd >= 0 && process->gone) {
        close(process->pidfd);
        process->pidfd = -1;
    }
    return ingest_run(ingest, INGEST_SQL_PROCESS_END);
}

/* What the process itself said, if it did. */
static void read_process_end(const struct prof_ingest *ingest, struct ingest_process *process)
{
    const struct lifecycle_entry *entry = ingest_lifecycle_entry(ingest, process->entry);
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

static enum prof_status watch(struct prof_ingest *ingest, struct ingest_process *process)
{
    if (!process->gone && is_gone(process)) {
        process->gone = true;
        process->gone_ns = ingest->now_ns;
    }
    if (process->ended)
        return PROF_OK;
    read_process_end(ingest, process);
    if (!process->gone &&
        (process->how != LIFECYCLE_EXEC || ingest->now_ns < process->end_ns + EXEC_PATIENCE_NS))
        return PROF_OK;
    if (!process->reaped && process->how == LIFECYCLE_UNSEEN && !learn_status(process) &&
        process->pidfd >= 0 && ingest->now_ns - process->gone_ns < STATUS_PATIENCE_NS)
        return PROF_OK; /* its parent may still have to reap it */
    if (!process->end_ns && !process->unwatched)
        process->end_ns = ingest->now_ns;
    return write_end(ingest, process);
}

enum prof_status ingest_processes_step(struct prof_ingest *ingest)
{
    PROF_TRY(ingest_lifecycle_look(ingest));
    for (size_t i = ingest->processes_done; i < ingest->processes.count; i++) {
        PROF_TRY(watch(ingest, &ingest->processes.data[i]));
    }
    while (ingest->processes_done < ingest->processes.count &&
           ingest->processes.data[ingest->processes_done].ended &&
           ingest->processes.data[ingest->processes_done].gone)
        ingest->processes_done++;
    return PROF_OK;
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

enum prof_status ingest_processes_finish(struct prof_ingest *ingest)
{
    for (size_t i = 0; i < ingest->processes.count; i++) {
        struct ingest_process *process = &ingest->processes.data[i];
        if (process->ended)
            continue;
        read_process_end(ingest, process);
        if (process->gone && !process->end_ns && !process->unwatched)
            process->end_ns = process->gone_ns ? process->gone_ns : ingest->now_ns;
        PROF_TRY(write_end(ingest, process));
    }
    return PROF_OK;
}

/* The parent's word is the best there is: it replaces what was known, also in a row already
 * written. */
enum prof_status ingest_process_reaped(struct prof_ingest *ingest, uint32_t pid, int wait_status)
{
    struct ingest_process *process = NULL;
    for (size_t i = ingest->processes.count; i-- > 0 && !process;) {
        if (ingest->processes.data[i].pid == pid && ingest->processes.data[i].how != LIFECYCLE_EXEC)
            process = &ingest->processes.data[i];
    }
    if (!process)
        process = ingest_process_add(ingest, UINT32_MAX, pid, (uint32_t)getpid(), false,
                                     ingest->zero_ns, "", 0);
    if (!process)
        return ingest->error.status;
    read_process_end(ingest, process);
    set_wait_status(process, wait_status);
    const struct lifecycle_entry *entry = ingest_lifecycle_entry(ingest, process->entry);
    if (process->how == LIFECYCLE_UNSEEN && entry && (entry->facts & LIFECYCLE_HOOKED))
        process->how = LIFECYCLE_FAST_EXIT; /* it returned a status without passing our hooks */
    process->reaped = process->gone = true;
    if (!process->end_ns)
        process->end_ns = ingest->now_ns;
    return write_end(ingest, process);
}
