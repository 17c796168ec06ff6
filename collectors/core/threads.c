/* The names that the program gives its threads (pthread_setname_np, prctl). A name is read when a
 * thread makes its first event, when it ends, once a second by the helper thread, and when the
 * process ends; it is defined when it changed. A thread that was never named has the program's
 * name, which says nothing: it is left out. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/core/state.h"

#define NAME_BYTES 16u /* TASK_COMM_LEN */

/* Of the main thread when the library was loaded; stays in a forked child. */
static char program[NAME_BYTES];
static int sandbox; /* PR_GET_SECCOMP then: a container may have a filter of its own */

static bool read_thread_name(uint32_t tid, char name[NAME_BYTES])
{
    char path[48];
    snprintf(path, sizeof path, "/proc/self/task/%u/comm", tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    memset(name, 0, NAME_BYTES);
    ssize_t got = read(fd, name, NAME_BYTES);
    close(fd);
    for (ssize_t i = 0; i < got; i++)
        if (name[i] == '\n')
            name[i] = '\0';
    name[NAME_BYTES - 1] = '\0';
    return got > 0;
}

__attribute__((constructor)) static void load(void)
{
    int saved = errno;
    sandbox = prctl(PR_GET_SECCOMP);
    if (syscall(SYS_gettid) == syscall(SYS_getpid))
        prctl(PR_GET_NAME, program);
    else
        read_thread_name((uint32_t)syscall(SYS_getpid), program);
    errno = saved;
}

/* The slot of the thread, taken over from another one when they fall together: that one is then
 * looked at only when it begins and ends. */
static struct core_named *slot_of(struct core_state *state, uint32_t tid)
{
    struct core_named *slot = &state->named[tid % CORE_NAMED];
    if (atomic_load_explicit(&slot->tid, memory_order_acquire) != tid) {
        uint64_t name[2];
        memcpy(name, program, sizeof name);
        atomic_store_explicit(&slot->name[0], name[0], memory_order_relaxed);
        atomic_store_explicit(&slot->name[1], name[1], memory_order_relaxed);
        atomic_store_explicit(&slot->tid, tid, memory_order_release);
    }
    return slot;
}

/* Two threads at once may define the same name twice, which does no harm. */
static void update_thread_name(struct core_named *slot, uint32_t tid, const char name[NAME_BYTES])
{
    uint64_t words[2];
    memcpy(words, name, sizeof words);
    uint64_t first = atomic_exchange_explicit(&slot->name[0], words[0], memory_order_relaxed);
    uint64_t second = atomic_exchange_explicit(&slot->name[1], words[1], memory_order_relaxed);
    if (first == words[0] && second == words[1])
        return;
    struct wire_name record = {
        .head = {sizeof record, WIRE_NAME, 0, WIRE_NAMED_THREAD},
        .object = tid,
        .name = collector_text(name),
    };
    collector_define(&record);
}

void core_threads_refresh_name(struct core_state *state)
{
    char name[NAME_BYTES] = "";
    if (collector_is_helper() || prctl(PR_GET_NAME, name) != 0)
        return;
    uint32_t tid = core_thread.tid;
    update_thread_name(slot_of(state, tid), tid, name);
}

bool core_in_new_sandbox(void)
{
    return prctl(PR_GET_SECCOMP) != sandbox;
}

void core_threads_look(struct core_state *state)
{
    int saved = errno;
    if (!collector_is_helper() && core_in_new_sandbox()) {
        core_threads_refresh_name(state);
        errno = saved;
        return;
    }
    for (unsigned i = 0; i < CORE_NAMED; i++) {
        struct core_named *slot = &state->named[i];
        uint32_t tid = atomic_load_explicit(&slot->tid, memory_order_acquire);
        char name[NAME_BYTES];
        if (tid == 0)
            continue;
        if (read_thread_name(tid, name))
            update_thread_name(slot, tid, name);
        else if (atomic_compare_exchange_strong(&slot->tid, &tid, 0))
            continue; /* it has ended */
    }
    errno = saved;
}

void collector_saw_thread(uint32_t tid)
{
    struct core_state *state = core_state();
    if (state && tid != 0 && atomic_load_explicit(&state->epoch, memory_order_acquire) != 0)
        slot_of(state, tid);
}
