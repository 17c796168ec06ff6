/* Which processes of the target still live, and how each ended. They say in the lifecycle table how
 * they leave; those that cannot (killed, or left by a raw system call) are noticed through a pidfd,
 * which on Linux 6.15 and later also has the status of a process that is not our child. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/store/ingest_private.h"

#define STATUS_PATIENCE_NS 300000000u
/* An exec is announced before it is tried: it may fail, and until it succeeds the other threads go
 * on recording. */
#define EXEC_PATIENCE_NS 1000000000u

static const char *const end_reasons[] = {
#define X(name, text) text,
    LIFECYCLE_END_MAP(X)
#undef X
};

uint32_t ingest_process_end_of(const char *reason)
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
