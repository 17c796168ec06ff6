/* This process's line in the shared table of processes (libprof/spool/lifecycle.h), and the end of
 * the process as it sees it itself. Costs two small mappings and no spool: `make -j` under perfkit
 * starts thousands of children that never touch a GPU. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/core/state.h"
#include "libprof/base/clock.h"

static bool hooked; /* stays in a forked child, as the hooks do */

/* Our entry, in a child that got none that of its nearest parent; not wiped by fork. */
static struct lifecycle_entry *nearest;

/* Map `bytes` at any offset; the page around it stays mapped as a whole. */
static void *map_at(int fd, uint64_t offset, size_t bytes)
{
    uint64_t in_page = offset % (uint64_t)sysconf(_SC_PAGESIZE);
    char *at = mmap(NULL, bytes + in_page, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                    (off_t)(offset - in_page));
    return at == MAP_FAILED ? NULL : at + in_page;
}

/* Take an entry, or NULL (counted in the header) when the table has no room. */
static struct lifecycle_entry *claim_lifecycle_entry(int fd, uint32_t *number_and_one)
{
    struct lifecycle_header *header = map_at(fd, 0, sizeof *header);
    if (!header)
        return NULL;
    struct lifecycle_entry *entry = NULL;
    if (header->magic == LIFECYCLE_MAGIC && header->entry_bytes == sizeof *entry) {
        uint32_t number = atomic_fetch_add(&header->next, 1);
        if (number < atomic_load(&header->reserved)) {
            uint64_t at = LIFECYCLE_HEADER_BYTES + (uint64_t)number * sizeof *entry;
            entry = map_at(fd, at, sizeof *entry);
            *number_and_one = number + 1;
        }
        if (!entry)
            atomic_fetch_add(&header->dropped, 1);
    }
    munmap(header, sizeof *header);
    return entry;
}

/* In a container our pid is not the one that perfkit sees. */
static uint64_t pid_space(void)
{
    struct stat info;
    return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

static void note_lifecycle_fact(struct lifecycle_entry *entry, uint32_t fact, int why)
{
    uint32_t seen = atomic_load(&entry->facts), wanted;
    do {
        wanted = seen | fact;
        if (wanted >> LIFECYCLE_ERRNO_SHIFT == 0)
            wanted |= (uint32_t)why << LIFECYCLE_ERRNO_SHIFT;
    } while (!atomic_compare_exchange_weak(&entry->facts, &seen, wanted));
}

void core_lifecycle_refused(struct core_state *state, int why)
{
    if (state->entry)
        note_lifecycle_fact(state->entry, LIFECYCLE_REFUSED, why);
    else if (nearest)
        note_lifecycle_fact(nearest, LIFECYCLE_CHILD_REFUSED, why);
}

/* The path of the table of processes into path[size]; false when there is none. */
static bool table_path(char *path, size_t size)
{
    const char *directory = collector_directory();
    int length = directory ? snprintf(path, size, "%s/" LIFECYCLE_FILE, directory) : -1;
    return length >= 0 && (size_t)length < size;
}

void collector_check_reach(void)
{
    char path[240];
    int saved = errno;
    if (nearest && !core_in_new_sandbox() && table_path(path, sizeof path)) {
        int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        /* What a program may that has become another user and kept its capabilities, the next one
         * may not. */
        if (fd < 0 || (getuid() == geteuid() && access(path, R_OK | W_OK) != 0))
            note_lifecycle_fact(nearest, LIFECYCLE_CHILD_UNSEEN, errno);
        if (fd >= 0)
            close(fd);
    }
    errno = saved;
}

void core_lifecycle_hello(struct core_state *state, const char *command, uint32_t bytes,
                          enum lifecycle_birth birth)
{
    if (atomic_exchange(&state->greeted, 1))
        return;
    char path[240];
    if (!table_path(path, sizeof path))
        return;
    state->greeted_pid = (uint32_t)syscall(SYS_getpid);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        if (nearest)
            note_lifecycle_fact(nearest, LIFECYCLE_CHILD_UNSEEN, errno);
        return;
    }
    struct lifecycle_entry *entry = claim_lifecycle_entry(fd, &state->entry_number);
    close(fd);
    if (!entry)
        return;
    entry->pid = state->greeted_pid;
    entry->parent = (uint32_t)getppid();
    entry->birth = birth;
    atomic_store(&entry->facts, hooked ? LIFECYCLE_HOOKED : 0);
    entry->pid_space = pid_space();
    entry->start_ns = prof_now_ns();
    entry->command_bytes = bytes < sizeof entry->command ? bytes : (uint32_t)sizeof entry->command;
    memcpy(entry->command, command, entry->command_bytes);
    state->entry = nearest = entry;
    atomic_store_explicit(&entry->state, LIFECYCLE_ALIVE, memory_order_release);
}

static void lifecycle_end(struct core_state *state, unsigned how, int status)
{
    uint64_t now = prof_now_ns();
    if (atomic_load(&state->epoch) != 0) {
        struct spool_header *header = state->spool.header;
        atomic_store(&header->status, status);
        atomic_store(&header->end_ns, now);
        atomic_store_explicit(&header->ended, how + 1, memory_order_release);
    }
    struct lifecycle_entry *entry = state->entry;
    if (!entry)
        return;
    atomic_store(&entry->status, status);
    atomic_store(&entry->how, how);
    atomic_store(&entry->end_ns, now);
    atomic_store_explicit(&entry->state, LIFECYCLE_ENDED, memory_order_release);
}

static void lifecycle_revive(struct core_state *state)
{
    if (atomic_load(&state->epoch) != 0) {
        atomic_store(&state->spool.header->ended, 0);
        atomic_store(&state->spool.header->final_ns, 0);
    }
    if (state->entry)
        atomic_store_explicit(&state->entry->state, LIFECYCLE_ALIVE, memory_order_release);
}

/* A forked child is a process of its own from the start, events or not. */
static void in_forked_child(void)
{
    struct core_state *state = core_state();
    uint32_t bytes;
    if (!state || !collector_directory())
        return;
    core_window_forked();
    int saved = errno, cancel;
    if (core_in_new_sandbox()) { /* what it calls is refused, and noted in its parent's entry */
        errno = saved;
        return;
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* fork is no place to end in */
    const char *command = core_command(&bytes);
    core_lifecycle_hello(state, command, bytes, LIFECYCLE_BIRTH_FORK);
    pthread_setcancelstate(cancel, NULL);
    errno = saved;
}

void collector_hooked(void)
{
    hooked = true;
}

void collector_note_fact(uint32_t facts)
{
    struct core_state *state = facts && collector_directory() ? core_state() : NULL;
    struct lifecycle_entry *entry = state && state->entry ? state->entry : nearest;
    if (state && entry)
        atomic_fetch_or(&entry->facts, facts);
}

bool core_hooked(void)
{
    return hooked;
}

void collector_hello(int argc, char *const *argv)
{
    (void)argc;
    (void)argv;
    struct core_state *state = collector_directory() ? core_state() : NULL;
    if (!state)
        return;
    int saved = errno;
    uint32_t bytes;
    const char *command = core_command(&bytes);
    if (!atomic_load(&state->greeted))
        pthread_atfork(NULL, NULL, in_forked_child);
    core_lifecycle_hello(state, command, bytes, LIFECYCLE_BIRTH_START);
    errno = saved;
}

/* True in a vfork child: it runs on its parent's memory and must leave it alone. */
bool core_borrowed(const struct core_state *state)
{
    uint32_t owner = state->greeted_pid ? state->greeted_pid : state->pid;
    return owner != (uint32_t)syscall(SYS_getpid);
}

void collector_end(unsigned how, int status)
{
    struct core_state *state = collector_directory() ? core_state() : NULL;
    if (!state || core_borrowed(state))
        return;
    int saved = errno, cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* else _exit might not end it */
    /* host/ calls twice at exit(): in the destructor, and with the status once that is known. */
    if (!atomic_exchange(&state->ended, 1) && atomic_load(&state->epoch) != 0) {
        core_window_follow();
        core_threads_look(state);
        core_run_at_exit(state);
    }
    lifecycle_end(state, how, status);
    pthread_setcancelstate(cancel, NULL);
    errno = saved;
}

void collector_revive(void)
{
    struct core_state *state = collector_directory() ? core_state() : NULL;
    if (!state || core_borrowed(state))
        return;
    int saved = errno;
    lifecycle_revive(state);
    atomic_store(&state->ended, 0);
    errno = saved;
}

bool collector_ended(void)
{
    struct core_state *state = collector_directory() ? core_state() : NULL;
    return state && atomic_load(&state->ended);
}
