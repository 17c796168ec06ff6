/* The hot path: one test, a copy into this thread's chunk, a release store. See collector.h for the
 * promises and state.h for what fork does to them. */
#include <errno.h>
#include <stddef.h>

#include "collectors/core/collector.h"
#include "collectors/core/state.h"
#include "libprof/base/clock.h"

/* The state when this thread may write now, else NULL. */
static inline struct core_state *ready(void)
{
    struct core_state *state = core_state();
    if (!state)
        return NULL;
    uint32_t epoch = atomic_load_explicit(&state->epoch, memory_order_acquire);
    if (__builtin_expect(epoch != 0 && core_thread.epoch == epoch, 1))
        return state;
    if (epoch == 0 && !core_start(state))
        return NULL;
    int saved = errno;
    core_bind_thread(state);
    errno = saved;
    return state;
}

bool collector_active(void)
{
    return ready() != NULL;
}

void collector_count(enum wire_count which, uint64_t n)
{
    struct core_state *state = ready();
    if (!state)
        return;
    _Atomic uint64_t *counters =
        (_Atomic uint64_t *)(void *)((unsigned char *)state->spool.header + SPOOL_HEADER_BYTES);
    atomic_fetch_add_explicit(&counters[core_thread.row * WIRE_COUNT_SLOTS + which], n,
                              memory_order_relaxed);
}

static void count_drop(struct core_state *state, const struct wire_head *head)
{
    atomic_fetch_add_explicit(&state->spool.header->dropped[head->type % 64u], 1,
                              memory_order_relaxed);
}

static void close_chunk(struct spool_chunk *chunk)
{
    if (chunk)
        atomic_store_explicit(&chunk->state, SPOOL_EVENTS_FULL, memory_order_release);
}

/* A thread's first chunk may be one that an ended thread left; the THREAD record names the new
 * owner. Later ones are always fresh (order, see layout.h). */
static void take_first(struct core_state *state, struct core_thread *self)
{
    self->chunk = self->had_chunk ? NULL : spool_writer_take_partial(&state->spool);
    if (self->chunk) {
        struct wire_head owner = {sizeof owner, WIRE_THREAD, 0, self->tid};
        spool_append(self->chunk, &owner, sizeof owner);
    } else {
        self->chunk = core_take_chunk(state, self->tid, SPOOL_EVENTS);
    }
    self->had_chunk |= self->chunk != NULL;
}

/* The chunk after `full`; a signal handler may have gone on to another one meanwhile. */
static struct spool_chunk *next_chunk(struct core_state *state, struct core_thread *self,
                                      struct spool_chunk *full)
{
    struct collector_shield shield;
    int saved = errno;
    collector_shield(&shield);
    if (self->chunk == full) {
        if (full != self->interrupted)
            close_chunk(full);
        take_first(state, self);
    }
    struct spool_chunk *chunk = self->chunk;
    collector_unshield(&shield);
    errno = saved;
    return chunk;
}

/* ---- writes inside writes --------------------------------------------------------------------
 *
 * A signal handler that interrupts a write and writes itself goes on in another chunk: the one that
 * was interrupted is finished where it was begun, or never, when the handler jumps out. `busy` is
 * the stack frame of the innermost write, `outer` that of the first that was interrupted.
 *
 * Only a write that was surely left has its chunk gone on with: one whose frame lies a little
 * below. Further away it may lie on another stack, of a thread of the program's own making that a
 * timer has taken the processor from and that goes on later: then the chunk stays as it is, for
 * good. */

#define NEAR ((uintptr_t)16 << 10)

/* The write that was interrupted has come to its end, one way or the other. */
static void settle_interrupted_chunk(struct core_thread *self)
{
    struct spool_chunk *chunk = self->interrupted;
    self->interrupted = NULL;
    self->outer = 0;
    if (chunk != self->chunk)
        close_chunk(chunk);
}

/* Go on in another chunk. Not `for_good`: the write is remembered as the outer one if it is the
 * first; that of a handler whose handler is interrupted is not. */
static void leave_chunk(struct core_state *state, struct core_thread *self, bool for_good)
{
    struct collector_shield shield;
    int saved = errno;
    collector_shield(&shield);
    if (for_good) {
        self->outer = 0;
        self->interrupted = NULL;
    } else if (self->outer == 0) {
        self->outer = self->busy;
        self->interrupted = self->chunk;
    }
    if (self->chunk)
        self->chunk = core_take_chunk(state, self->tid, SPOOL_EVENTS);
    collector_unshield(&shield);
    errno = saved;
}

static bool is_near(uintptr_t here, uintptr_t frame)
{
    return here >= frame && here - frame < NEAR;
}

/* A write of this thread was begun and is not ended. What `busy` is to be after the one that begins
 * now: the frame of the write that it interrupts. */
static uintptr_t enter_emitter(struct core_state *state, struct core_thread *self, uintptr_t here)
{
    bool left = collector_left(here, self->busy);
    if (!left) {
        if (self->busy != self->outer)
            leave_chunk(state, self, false);
        return self->outer;
    }
    if (!is_near(here, self->busy)) {
        leave_chunk(state, self, true);
        return 0;
    }
    if (self->outer != 0 && self->busy != self->outer && !is_near(here, self->outer))
        return self->outer; /* only the innermost was left */
    settle_interrupted_chunk(self);
    return 0;
}

bool collector_emit(const void *record)
{
    struct core_state *state = ready();
    if (!state)
        return false;
    const struct wire_head *head = record;
    struct core_thread *self = &core_thread;
    uintptr_t here = COLLECTOR_FRAME(), after = 0;
    if (__builtin_expect(self->busy != 0, 0))
        after = enter_emitter(state, self, here);
    self->busy = here;
    atomic_signal_fence(memory_order_acq_rel);
    struct spool_chunk *chunk = self->chunk;
    bool ok = chunk && spool_append(chunk, record, head->size);
    while (!ok && (chunk = next_chunk(state, self, chunk)))
        ok = spool_append(chunk, record, head->size);
    if (!ok)
        count_drop(state, head);
    atomic_signal_fence(memory_order_acq_rel);
    if (__builtin_expect(self->busy == here, 1))
        self->busy = after;
    if (__builtin_expect(self->outer == here, 0))
        settle_interrupted_chunk(self);
    return ok;
}

bool core_define_begin(struct core_state *state, struct collector_shield *shield)
{
    collector_shield(shield);
    if (collector_lock(&state->define_lock))
        return true;
    collector_unshield(shield);
    collector_count(WIRE_COUNT_DEFINITION_DROPPED, 1);
    return false;
}

void core_define_end(struct core_state *state, const struct collector_shield *shield)
{
    collector_unlock(&state->define_lock);
    collector_unshield(shield);
}

bool core_define_locked(struct core_state *state, const void *record)
{
    const struct wire_head *head = record;
    if (state->define_chunk && spool_append(state->define_chunk, record, head->size))
        return true;
    struct spool_chunk *fresh = core_take_chunk(state, 0, SPOOL_DEFINITIONS);
    if (fresh) {
        /* The full one is closed after the new one exists, so the reader sees no gap. */
        if (state->define_chunk)
            atomic_store_explicit(&state->define_chunk->state, SPOOL_DEFINITIONS_FULL,
                                  memory_order_release);
        state->define_chunk = fresh;
        if (spool_append(fresh, record, head->size))
            return true;
    }
    collector_count(WIRE_COUNT_DEFINITION_DROPPED, 1);
    count_drop(state, head);
    return false;
}

bool collector_define(const void *record)
{
    struct core_state *state = ready();
    if (!state)
        return false;
    struct collector_shield shield;
    int saved = errno;
    bool ok = core_define_begin(state, &shield);
    if (ok) {
        ok = core_define_locked(state, record);
        core_define_end(state, &shield);
    }
    errno = saved;
    return ok;
}

uint32_t collector_new_id(void)
{
    struct core_state *state = ready();
    return state ? atomic_fetch_add(&state->next_id, 1) + 1 : 0;
}

uint64_t collector_correlation(void)
{
    struct core_state *state = ready();
    return state ? atomic_fetch_add_explicit(&state->next_correlation, 1, memory_order_relaxed) + 1
                 : 0;
}

uint64_t collector_now(void)
{
    return prof_now_ns();
}

uint32_t collector_tid(void)
{
    return ready() ? core_thread.tid : 0;
}

void collector_health(enum wire_source source, enum wire_health_state what, const char *why,
                      uint32_t value)
{
    struct wire_health health = {
        .head = {sizeof health, WIRE_HEALTH, (uint8_t)what, source},
        .time = prof_now_ns(),
        .why = why ? collector_text(why) : 0,
        .value = value,
    };
    collector_define(&health);
}
