/* The helper thread: reserves chunks ahead of the program's threads and runs the sources' ticks.
 * One per process with a spool, all signals but SIGSYS blocked, asleep on a futex. It is the only
 * thread of ours in the target and the only one that may call CUPTI. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/core/state.h"
#include "libprof/base/clock.h"

#define TICK_NS 100000000u
#define PAUSE_LOOK_NS 5000000u /* with pauses of --overhead=measure, which are short */
#define NAMES_NS 1000000000u   /* between two looks at the threads' names */
#define LOW_WATER 32u          /* chunks kept free: 2 MiB */
#define GROW_STEP 32u
#define HELPER_STACK_BYTES (1u << 20)
#define MAX_SOURCES 8u

static const struct collector_source *sources[MAX_SOURCES];
static _Atomic uint32_t source_count;
static __thread bool is_helper __attribute__((tls_model("initial-exec")));

void collector_register(const struct collector_source *source)
{
    uint32_t n = atomic_load(&source_count);
    for (uint32_t i = 0; i < n && i < MAX_SOURCES; i++) {
        if (sources[i] == source)
            return;
    }
    n = atomic_fetch_add(&source_count, 1);
    if (n < MAX_SOURCES)
        __atomic_store_n(&sources[n], source, __ATOMIC_RELEASE);
}

#define FOR_SOURCES(source)                                                                        \
    for (uint32_t i_ = 0; i_ < MAX_SOURCES && i_ < atomic_load(&source_count); i_++)               \
        for (const struct collector_source *source =                                               \
                 __atomic_load_n(&sources[i_], __ATOMIC_ACQUIRE);                                  \
             source; source = NULL)

bool collector_attached(enum wire_source wanted)
{
    FOR_SOURCES(source)
    {
        if (source->source == wanted)
            return true;
    }
    return false;
}

void core_run_forked(void)
{
    FOR_SOURCES(source)
    {
        if (source->forked)
            source->forked();
    }
}

void core_run_at_exit(struct core_state *state)
{
    uint64_t begun = prof_now_ns();
    atomic_store(&state->unflushed, 0);
    FOR_SOURCES(source)
    {
        if (source->at_exit)
            source->at_exit();
    }
    atomic_store(&state->spool.header->final_ns, atomic_load(&state->unflushed) ? 0 : begun);
}

void core_run_born(void)
{
    FOR_SOURCES(source)
    {
        if (source->born)
            source->born();
    }
}

void core_run_recording(bool on)
{
    FOR_SOURCES(source)
    {
        if (source->recording)
            source->recording(on);
    }
}

void collector_unloaded(void)
{
    struct core_state *state = atomic_load_explicit(&core_the_state, memory_order_acquire);
    if (!state || atomic_load(&state->epoch) == 0)
        return;
    int saved = errno;
    FOR_SOURCES(source)
    {
        if (source->unloaded)
            source->unloaded();
    }
    errno = saved;
}

static void run_ticks(void)
{
    FOR_SOURCES(source)
    {
        if (source->tick)
            source->tick();
    }
}

static void reserve_ahead(struct core_state *state)
{
    struct spool_header *header = state->spool.header;
    spool_writer_check(&state->spool, GROW_STEP);
    while (atomic_load(&header->free_count) < LOW_WATER) {
        if (!collector_lock(&state->grow_lock))
            break;
        bool grown = spool_writer_grow(&state->spool, GROW_STEP);
        collector_unlock(&state->grow_lock);
        if (!grown)
            break; /* tried again at the next tick */
    }
}

/* Is no thread left but ours and a main thread that ended by pthread_exit (a zombie until the end)?
 * The C library ends a process with its last thread and counts ours: returning then lets the
 * process exit as it would without us. One stat a tick. */
static bool alone(void)
{
    struct stat tasks;
    char text[64];
    if (stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink > 2 + 2)
        return false;
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end && name_end[1] == ' ' && name_end[2] == 'Z';
}

static void *helper(void *argument)
{
    struct core_state *state = argument;
    uint32_t epoch = atomic_load(&state->epoch);
    sigset_t signals;
    is_helper = true;
    sigfillset(&signals);
    sigdelset(&signals, SIGSYS); /* as in core_start, whatever the starting thread blocks */
    pthread_sigmask(SIG_SETMASK, &signals, NULL);
    prctl(PR_SET_NAME, "perfkit");
    atomic_store(&state->helper_runs, 1);
    uint64_t last_tick = prof_now_ns(), last_names = last_tick;
    uint32_t every = collector_pauses() ? PAUSE_LOOK_NS : TICK_NS;
    bool recording = collector_recording();
    while (atomic_load(&state->epoch) == epoch && !alone()) {
        uint32_t seen = atomic_load(&state->wake);
        core_death_look(state);
        reserve_ahead(state);
        uint64_t now = prof_now_ns();
        bool dying = state->death_end_ns != 0; /* a tick would be cut off in the middle of it */
        bool wanted = !dying && atomic_exchange(&state->tick_wanted, 0);
        bool awaits = collector_awaits_iteration();
        wanted |= !dying && !awaits && collector_recording() != recording;
        if (wanted || (!dying && now - last_tick >= TICK_NS)) {
            last_tick = now;
            if (!awaits) {
                recording = collector_recording();
                core_window_look(); /* before the heartbeat, by which `perfkit ctl` knows that we
                                     * know */
            }
            atomic_store(&state->spool.header->heartbeat_ns, now);
            run_ticks();
            if (now - last_names >= NAMES_NS) {
                last_names = now;
                core_threads_look(state);
            }
        }
        struct timespec pause = {.tv_nsec = every};
        syscall(SYS_futex, &state->wake, FUTEX_WAIT_PRIVATE, seen, &pause, NULL, 0);
    }
    atomic_store(&state->helper_runs, 0);
    return NULL;
}

bool core_helper_start(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, HELPER_STACK_BYTES);
    bool ok = pthread_create(&thread, &attributes, helper, core_state()) == 0;
    pthread_attr_destroy(&attributes);
    return ok;
}

void core_helper_wake(struct core_state *state)
{
    uint32_t seen = atomic_fetch_add(&state->wake, 1);
    (void)seen;
    syscall(SYS_futex, &state->wake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void collector_wake(void)
{
    int saved = errno;
    struct core_state *state = core_state();
    if (state && atomic_load(&state->epoch) != 0 && !atomic_exchange(&state->tick_wanted, 1))
        core_helper_wake(state);
    errno = saved;
}

bool collector_is_helper(void)
{
    return is_helper;
}
