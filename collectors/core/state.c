/* Birth of the spool: at a process's first GPU or NVTX event, and again in each forked child that
 * has one. Everything that follows an event assumes this file did its part: state in a page that
 * fork wipes, one thread that starts it while the others wait a moment, and a clear "no" for
 * processes that do not run under perfkit. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/core/state.h"
#include "libprof/base/clock.h"

#define FIRST_CHUNKS 16u /* 1 MiB, reserved before the first record */

_Atomic(struct core_state *) core_the_state;
static _Atomic uint32_t last_epoch; /* not wiped: a child's epoch differs from its parent's */
static _Atomic uint32_t key_made;
static pthread_key_t thread_key;

__thread struct core_thread core_thread __attribute__((tls_model("initial-exec")));

static void *map_wiped(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    if (madvise(at, bytes, MADV_WIPEONFORK) != 0) { /* Linux < 4.14: better nothing than copies */
        munmap(at, bytes);
        return NULL;
    }
    return at;
}

struct core_state *core_make_state(void)
{
    struct core_state *state = atomic_load_explicit(&core_the_state, memory_order_acquire);
    if (state)
        return state;
    int saved = errno;
    struct core_state *fresh = map_wiped(sizeof *fresh);
    if (fresh && !atomic_compare_exchange_strong(&core_the_state, &state, fresh)) {
        munmap(fresh, sizeof *fresh);
        fresh = state;
    }
    errno = saved;
    return fresh;
}

/* A thread ends: another thread may go on with its chunk. A write that it began it will not end. */
static void thread_ended(void *unused)
{
    (void)unused;
    struct core_state *state = atomic_load_explicit(&core_the_state, memory_order_acquire);
    struct core_thread *self = &core_thread;
    if (!state || self->epoch == 0 || self->epoch != atomic_load(&state->epoch))
        return;
    core_threads_refresh_name(state);
    struct collector_shield shield;
    collector_shield(&shield);
    if (self->interrupted && self->interrupted != self->chunk)
        atomic_store_explicit(&self->interrupted->state, SPOOL_EVENTS_FULL, memory_order_release);
    self->interrupted = NULL;
    self->busy = self->outer = 0;
    if (self->chunk) {
        spool_writer_leave(&state->spool, self->chunk);
        self->chunk = NULL;
        self->left_epoch = self->epoch;
        self->epoch = 0;
    }
    collector_unshield(&shield);
}

static bool make_key(void)
{
    uint32_t made = atomic_load(&key_made);
    if (made == 2)
        return true;
    uint32_t none = 0;
    if (!atomic_compare_exchange_strong(&key_made, &none, 1))
        return none == 2;
    bool ok = pthread_key_create(&thread_key, thread_ended) == 0;
    atomic_store(&key_made, ok ? 2 : 0);
    return ok;
}

/* The key is made when the library is loaded: an early key needs no allocation to be set later. */
__attribute__((constructor)) static void early(void)
{
    make_key();
}

void core_bind_thread(struct core_state *state)
{
    struct core_thread *self = &core_thread;
    uint32_t epoch = atomic_load_explicit(&state->epoch, memory_order_acquire);
    if (self->epoch == epoch)
        return;
    struct collector_shield shield;
    collector_shield(&shield);
    self->chunk = self->interrupted = NULL;
    self->busy = self->outer = 0;
    /* An exit handler of the thread that comes after ours: what it left must not be overtaken. */
    self->had_chunk = self->left_epoch == epoch;
    self->tid = (uint32_t)syscall(SYS_gettid);
    self->row = atomic_fetch_add(&state->next_row, 1) % SPOOL_COUNTER_ROWS;
    self->epoch = epoch;
    if (atomic_load(&key_made) == 2)
        pthread_setspecific(thread_key, self);
    collector_unshield(&shield);
    core_threads_refresh_name(state);
}

/* In a forked child the parent's mappings are still there, their addresses wiped with the state:
 * they are kept here, outside it, to be let go. */
static struct {
    void *spool;
    size_t spool_bytes;
    void *tables;
    size_t arena_bytes;
    unsigned halvings; /* of the tables' slots */
} kept;

/* A program that lives under a limit of its address space (ulimit -v) or of its data (ulimit -d)
 * needs it for itself: of what it has not taken yet, we reserve at most a sixteenth. When that is
 * full, records are dropped and counted, and names are sent again. */
#define SHARE 16u
#define MIN_SPOOL (1u << 20)
#define MIN_ARENA (1u << 16)
#define MAX_HALVINGS 6u /* of the slots, as long as they take more than the names themselves */

/* Field `number` (from 0) of /proc/self/statm in bytes, 0 = unknown. */
static uint64_t used_memory(unsigned number)
{
    char text[128];
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    char *at = text;
    for (unsigned i = 0; i < number; i++)
        at += strcspn(at, " ") + (at[strcspn(at, " ")] != '\0');
    return strtoull(at, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t share_of_limit(__rlimit_resource_t resource, unsigned field)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    uint64_t used = used_memory(field);
    return used < limit.rlim_cur ? (limit.rlim_cur - used) / SHARE : 0;
}

static uint64_t between(uint64_t value, uint64_t min, uint64_t max)
{
    return value < min ? min : value > max ? max : value;
}

#define STRING_BYTES (sizeof(struct core_string) * CORE_STRING_SLOTS)
#define SLOT_BYTES (STRING_BYTES + sizeof(struct core_config) * CORE_CONFIG_SLOTS)

/* *spool_bytes: what the spool may reserve. */
static bool map_tables(struct core_state *state, uint64_t *spool_bytes)
{
    uint64_t space = share_of_limit(RLIMIT_AS, 0), data = share_of_limit(RLIMIT_DATA, 5);
    uint64_t limit = core_spool_limit();
    *spool_bytes = space == UINT64_MAX ? limit : between(space / 4 * 3, MIN_SPOOL, limit);
    if (!kept.tables) {
        uint64_t arena = between(space / 4 < data ? space / 4 : data, MIN_ARENA, CORE_STRING_ARENA);
        kept.arena_bytes = (size_t)arena & ~(size_t)4095;
        kept.halvings = 0;
        while (kept.halvings < MAX_HALVINGS && SLOT_BYTES >> kept.halvings > arena)
            kept.halvings++;
        kept.tables = map_wiped((SLOT_BYTES >> kept.halvings) + kept.arena_bytes);
    }
    char *at = kept.tables;
    if (!at)
        return false;
    state->string_slots = CORE_STRING_SLOTS >> kept.halvings;
    state->config_slots = CORE_CONFIG_SLOTS >> kept.halvings;
    state->strings = (struct core_string *)(void *)at;
    state->configs = (struct core_config *)(void *)(at + (STRING_BYTES >> kept.halvings));
    state->arena = at + (SLOT_BYTES >> kept.halvings);
    state->arena_bytes = kept.arena_bytes;
    return true;
}

static bool give_birth(struct core_state *state)
{
    const char *directory = collector_directory();
    if (!directory || !make_key())
        return false;
    if (kept.spool) {
        munmap(kept.spool, kept.spool_bytes);
        kept.spool = NULL;
        state->forked = true;
        core_run_forked();
    }
    state->pid = (uint32_t)syscall(SYS_getpid);
    struct spool_about about = {
        .pid = state->pid,
        .parent = (uint32_t)getppid(),
        .forked = state->forked,
        .realtime_ns = prof_clock_ns(CLOCK_REALTIME),
        .raw_ns = prof_clock_ns(CLOCK_MONOTONIC_RAW),
    };
    about.command = core_command(&about.command_bytes);
    about.rank = core_rank();
    /* The process is known before its spool is: perfkit reads them in this order. */
    core_lifecycle_hello(state, about.command, about.command_bytes,
                         state->forked ? LIFECYCLE_BIRTH_FORK : LIFECYCLE_BIRTH_START);
    about.start_ns = prof_now_ns();
    about.entry = state->entry ? state->entry_number : 0;
    uint64_t spool_bytes;
    errno = 0;
    if (!map_tables(state, &spool_bytes) ||
        !spool_writer_create(&state->spool, directory, &about, spool_bytes, FIRST_CHUNKS)) {
        core_lifecycle_refused(state, errno); /* the only place left where it can be said */
        return false;
    }
    kept.spool = state->spool.header;
    kept.spool_bytes = state->spool.mapped_bytes;
    if (state->entry)
        atomic_fetch_or(&state->entry->facts, LIFECYCLE_MADE_SPOOL);
    return true;
}

static void start_here(struct core_state *state)
{
    atomic_store(&state->starter, (uint32_t)syscall(SYS_gettid));
    bool born = give_birth(state);
    if (born) {
        core_window_born(state, state->spool.header->start_ns);
        uint32_t epoch = atomic_fetch_add(&last_epoch, 1) + 1;
        atomic_store_explicit(&state->epoch, epoch, memory_order_release);
    }
    atomic_store_explicit(&state->phase, born ? CORE_READY : CORE_REFUSED, memory_order_release);
    if (born) {
        core_window_announce();
        core_run_born();
    }
    if (born && !core_helper_start())
        collector_health(WIRE_SOURCE_HOST, WIRE_HEALTH_DEGRADED,
                         "the helper thread could not be started: nothing is flushed until the "
                         "process ends",
                         0);
}

bool core_start(struct core_state *state)
{
    uint32_t phase = atomic_load_explicit(&state->phase, memory_order_acquire);
    if (phase == CORE_READY || phase == CORE_REFUSED)
        return phase == CORE_READY;
    int saved = errno;
    uint32_t expected = CORE_UNBORN;
    if (phase == CORE_UNBORN &&
        core_in_new_sandbox()) { /* no other call may come before this one */
        if (atomic_compare_exchange_strong(&state->phase, &expected, CORE_REFUSED))
            core_lifecycle_refused(state, EPERM);
        errno = saved;
        return atomic_load(&state->phase) == CORE_READY;
    }
    struct collector_shield shield;
    collector_shield(
        &shield); /* before the claim: a handler in between would wait for its thread */
    bool mine = atomic_compare_exchange_strong(&state->phase, &expected, CORE_STARTING);
    if (mine)
        start_here(state);
    collector_unshield(&shield);
    if (!mine && atomic_load(&state->starter) != (uint32_t)syscall(SYS_gettid)) {
        /* Another thread is doing it; a fraction of a millisecond. */
        for (unsigned i = 0; i < 100000 && atomic_load(&state->phase) == CORE_STARTING; i++)
            sched_yield();
    }
    errno = saved;
    return atomic_load(&state->phase) == CORE_READY;
}

struct spool_chunk *core_take_chunk(struct core_state *state, uint32_t tid,
                                    enum spool_chunk_state kind)
{
    struct spool_header *header = state->spool.header;
    /* Without room the helper tries again at each tick; woken for every dropped record it would
     * cost the program a system call each. */
    if (atomic_load_explicit(&header->free_count, memory_order_relaxed) < FIRST_CHUNKS / 2 &&
        !atomic_load_explicit(&header->no_room, memory_order_relaxed))
        core_helper_wake(state);
    struct spool_chunk *chunk = spool_writer_take(&state->spool, tid, kind);
    while (!chunk && (!atomic_load(&header->no_room) || spool_writer_was_granted(&state->spool))) {
        /* The helper did not keep up: better a page fault now than a record lost. */
        if (!collector_lock(&state->grow_lock))
            break;
        chunk = spool_writer_take(&state->spool, tid, kind);
        if (!chunk && spool_writer_grow(&state->spool, FIRST_CHUNKS))
            chunk = spool_writer_take(&state->spool, tid, kind);
        collector_unlock(&state->grow_lock);
    }
    return chunk;
}
