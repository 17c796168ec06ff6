/* Private state of the core, shared by its files. All of it lives in one anonymous mapping with
 * MADV_WIPEONFORK: a forked child finds zeros, whatever way it was forked (raw clone too), and
 * starts anew at its first event. */
#ifndef PERFKIT_COLLECTORS_CORE_STATE_H
#define PERFKIT_COLLECTORS_CORE_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectors/core/lock.h"
#include "libprof/spool/lifecycle.h"
#include "libprof/spool/writer.h"
#include "libprof/wire/wire.h"

#define CORE_STRING_SLOTS (1u << 16)  /* both: a power of two fewer under a limit (state.c) */
#define CORE_STRING_ARENA (64u << 20) /* address space, touched as names come */
#define CORE_CONFIG_SLOTS (1u << 14)
#define CORE_NAMED 1024u   /* threads whose names are followed */
#define CORE_WINDOWS 8192u /* changes remembered for collector_recorded_at; a power of two */

enum core_phase {
    CORE_UNBORN = 0, /* no event yet; also a forked child (wiped) */
    CORE_STARTING,
    CORE_READY,
    CORE_REFUSED, /* not under perfkit, or no spool could be made: for good */
};

struct core_string {
    _Atomic uint32_t id; /* 0 = empty; stored last */
    uint32_t length;
    uint64_t hash;
    const char *text;
};

struct core_config {
    _Atomic uint32_t id;
    uint32_t pad;
    struct wire_config config;
};

struct core_named {
    _Atomic uint32_t tid; /* 0 = free */
    uint32_t pad;
    _Atomic uint64_t name[2]; /* 16 bytes, as the kernel has it */
};

struct core_state {
    _Atomic uint32_t epoch;   /* 0 = no spool; else that of this spool. Tested once per record */
    _Atomic uint32_t phase;   /* enum core_phase */
    _Atomic uint32_t starter; /* tid of the thread that brings the spool up */
    uint32_t pid;
    bool forked; /* this spool is that of a forked child */
    _Atomic uint32_t next_id;
    _Atomic uint64_t next_correlation;
    _Atomic uint32_t next_row; /* counter row of the next thread */
    _Atomic uint32_t ended;    /* collector_end ran */
    struct spool_writer spool;

    struct collector_lock define_lock; /* definition stream and intern tables; shielded */
    struct spool_chunk *define_chunk;
    struct collector_lock grow_lock;

    _Atomic uint32_t wake; /* futex word of the helper thread */
    _Atomic uint32_t tick_wanted;
    _Atomic uint32_t helper_runs;

    /* Deaths (death.c) */
    _Atomic uint32_t death_owner;     /* tid of the thread that a deadly signal stopped first */
    _Atomic uint32_t death_requested; /* flushes */
    _Atomic uint32_t death_begun;
    _Atomic uint32_t death_done; /* futex word */
    uint64_t death_end_ns;       /* helper thread only: when it had done so */
    _Atomic uint32_t unflushed;  /* a source could not fetch all in its last flush */

    /* Lifecycle (lifecycle.c); independent of the spool */
    _Atomic uint32_t greeted;
    uint32_t greeted_pid;
    struct lifecycle_entry *entry;
    uint32_t entry_number; /* + 1 */

    /* Windows (window.c) */
    struct collector_lock window_lock;
    _Atomic uint32_t window_requests; /* changes that the sources do not know yet */
    uint64_t window_seen;             /* state of the control page at the last look */
    bool window_inside;               /* was a capture range open then? */
    _Atomic bool bare;                /* born while CUPTI was not switched on yet */
    _Atomic bool window_reported;     /* what the sources know */
    _Atomic uint64_t window_count;    /* changes so far, at window_change[n % CORE_WINDOWS]: */
    _Atomic uint64_t window_change[CORE_WINDOWS]; /* CLOCK_MONOTONIC << 1 | open */

    struct core_named named[CORE_NAMED]; /* at tid % CORE_NAMED (threads.c) */

    char *arena;
    size_t arena_used, arena_bytes;
    uint32_t strings_used, configs_used;
    uint32_t string_slots, config_slots;
    struct core_string *strings; /* [string_slots] */
    struct core_config *configs; /* [config_slots] */
};

/* Per thread; initial-exec TLS, so it is kept small. */
struct core_thread {
    struct spool_chunk *volatile chunk;
    volatile uintptr_t busy;  /* inside a write: its stack frame (emit.c) */
    volatile uintptr_t outer; /* of the write that a signal handler interrupted and now writes */
    struct spool_chunk *interrupted; /* the chunk of that one */
    uint32_t epoch;
    uint32_t tid;
    uint32_t row;
    uint32_t had_chunk;
    uint32_t left_epoch; /* of the spool in which thread_ended has run */
};
extern __thread struct core_thread core_thread __attribute__((tls_model("initial-exec")));

/* The state, mapped at the first call; NULL when no memory could be had. Every record starts with
 * it, so the usual way is inline. */
extern _Atomic(struct core_state *) core_the_state;
struct core_state *core_make_state(void);
static inline struct core_state *core_state(void)
{
    struct core_state *state = atomic_load_explicit(&core_the_state, memory_order_acquire);
    return __builtin_expect(state != NULL, 1) ? state : core_make_state();
}

/* Bring the spool up (or learn that there is none). True when ready. */
bool core_start(struct core_state *state);

/* Bind the calling thread to the current spool. */
void core_bind_thread(struct core_state *state);

/* A chunk, growing the spool when none is free. NULL = no room. Shielded. */
struct spool_chunk *core_take_chunk(struct core_state *state, uint32_t tid,
                                    enum spool_chunk_state kind);

/* The definition stream and the tables of what is in it, to itself; false: counted as dropped. */
bool core_define_begin(struct core_state *state, struct collector_shield *shield);
void core_define_end(struct core_state *state, const struct collector_shield *shield);
/* Append to the definition stream, in between. */
bool core_define_locked(struct core_state *state, const void *record);

/* The helper thread (helper.c) */
bool core_helper_start(void);
void core_helper_wake(struct core_state *state);
void core_run_forked(void);
void core_run_at_exit(struct core_state *state); /* and says in the spool whether all came */
void core_run_recording(bool on);
void core_run_born(void);

/* window.c */
void core_window_born(struct core_state *state, uint64_t now); /* before the epoch is published */
void core_window_forked(void);   /* in the child, as early as can be */
void core_window_announce(void); /* and after: what it was at birth, and what the page did since */
void core_window_follow(void);   /* write down what the control page did */
void core_window_look(void);     /* and notify the sources */

/* threads.c */
void core_threads_refresh_name(
    struct core_state *state); /* the name of the calling thread, bound */
/* Has this thread entered a seccomp filter since the library was loaded? It may answer any system
 * call but this one, prctl, by death. */
bool core_in_new_sandbox(void);
void core_threads_look(struct core_state *state); /* those of all threads seen so far */

/* lifecycle.c: mark this process's entry */
void core_lifecycle_hello(struct core_state *state, const char *command, uint32_t bytes,
                          enum lifecycle_birth birth);
void core_lifecycle_refused(struct core_state *state, int why); /* no spool; `why` is an errno */
bool core_hooked(void);                                         /* was the library preloaded? */

bool core_borrowed(const struct core_state *state); /* a vfork child, on its parent's memory */

/* death.c: what the helper thread does for a thread that waits to die */
void core_death_look(struct core_state *state);

/* options.c */
uint64_t core_spool_limit(void);
const char *core_command(uint32_t *bytes);
const struct prof_rank *core_rank(void);

#endif
