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

/* A thread's first chunk may be one that an ended thread left; the THREAD record names the new
 * owner. Later ones are always fresh (order, see layout.h). */
static bool next_chunk(struct core_state *state, struct core_thread *self)
{
    int saved = errno;
    if (self->chunk) {
        atomic_store_explicit(&self->chunk->state, SPOOL_EVENTS_FULL, memory_order_release);
        self->chunk = NULL;
    }
    if (!self->had_chunk) {
        self->chunk = spool_writer_take_partial(&state->spool, &self->offset);
        if (self->chunk) {
            struct wire_head owner = {sizeof owner, WIRE_THREAD, 0, self->tid};
            spool_append(self->chunk, &self->offset, &owner, sizeof owner);
        }
    }
    if (!self->chunk) {
        self->chunk = core_take_chunk(state, self->tid, SPOOL_EVENTS);
        self->offset = 0;
    }
    if (self->chunk)
        self->had_chunk = 1;
    errno = saved;
    return self->chunk != NULL;
}

bool collector_emit(const void *record)
{
    struct core_state *state = ready();
    if (!state)
        return false;
    const struct wire_head *head = record;
    struct core_thread *self = &core_thread;
    if (self->busy) {
        collector_count(WIRE_COUNT_REENTERED, 1);
        return false;
    }
    self->busy = 1;
    atomic_signal_fence(memory_order_acq_rel);
    bool ok = self->chunk && spool_append(self->chunk, &self->offset, record, head->size);
    if (!ok) {
        ok = next_chunk(state, self) &&
             spool_append(self->chunk, &self->offset, record, head->size);
        if (!ok)
            count_drop(state, head);
    }
    atomic_signal_fence(memory_order_acq_rel);
    self->busy = 0;
    return ok;
}

bool core_define_locked(struct core_state *state, const void *record)
{
    const struct wire_head *head = record;
    if (state->define_chunk &&
        spool_append(state->define_chunk, &state->define_offset, record, head->size))
        return true;
    struct spool_chunk *fresh = core_take_chunk(state, 0, SPOOL_DEFINITIONS);
    if (fresh) {
        /* The full one is closed after the new one exists, so the reader sees no gap. */
        if (state->define_chunk)
            atomic_store_explicit(&state->define_chunk->state, SPOOL_DEFINITIONS_FULL,
                                  memory_order_release);
        state->define_chunk = fresh;
        state->define_offset = 0;
        if (spool_append(fresh, &state->define_offset, record, head->size))
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
    struct core_thread *self = &core_thread;
    if (self->busy) {
        collector_count(WIRE_COUNT_REENTERED, 1);
        return false;
    }
    int saved = errno;
    self->busy = 1;
    core_lock(&state->define_lock);
    bool ok = core_define_locked(state, record);
    core_unlock(&state->define_lock);
    self->busy = 0;
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
