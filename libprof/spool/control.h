/* The control page: by which `perfkit run` and `perfkit ctl` switch recording in the processes of
 * the target. One small file in the spool directory, made by perfkit before the program starts,
 * mapped read-only by every process of the target and never made shorter. A process that finds
 * none, or one that is short, foreign or of another version, records always.
 *
 * A writer holds flock on the file, writes the moment of the change into its slot and
 * then publishes by a release store of `state`. Each change flips open to closed or back, so the
 * state before is known from the generation alone, and a reader that comes late can follow the
 * changes it missed as far back as there are slots. */
#ifndef PERFKIT_SPOOL_CONTROL_H
#define PERFKIT_SPOOL_CONTROL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "libprof/wire/activity.h"

#define CONTROL_FILE "control"
#define CONTROL_MAGIC 0x4c54434b46524550ull /* "PERFKCTL" */
#define CONTROL_VERSION 1u
#define CONTROL_BYTES 4096u
#define CONTROL_CHANGES 16u

struct control_page {
    _Atomic uint64_t magic; /* stored last: the page is complete */
    uint32_t version;
    uint32_t owner;                      /* pid of perfkit run */
    _Atomic uint32_t target;             /* pid of the command, 0 = not started yet */
    uint32_t limited;                    /* 1 = made with an option that closes it or may */
    uint64_t start_ns;                   /* CLOCK_MONOTONIC when the page was made */
    _Alignas(64) _Atomic uint64_t state; /* generation << 1 | open */
    /* Slot of a generation modulo CONTROL_CHANGES: CLOCK_MONOTONIC << 8 | enum wire_window_reason
     */
    _Alignas(64) _Atomic uint64_t change[CONTROL_CHANGES];
    char range[512]; /* --capture-range as given, NUL-terminated, "" = none */
    uint32_t ring;   /* 1 = made with --ring: can keep what it holds */
    /* Counted by `perfkit ctl keep`; then by perfkit run how many of these are kept, or are not. */
    _Atomic uint32_t keeps, kept, unkept;
    /* --overhead=measure: the NVTX range that is one iteration, which is recorded in pauses too:
     * its name and its domain ("" = the default one). Written once, by perfkit run, before the
     * first pause; the flag is stored last. */
    char iteration[256], iteration_domain[128];
    uint32_t numbered; /* 1 = a number follows the name: each instance has its own */
    uint32_t pauses;   /* 1 = there will be pauses: processes look at the page often */
    _Atomic uint32_t has_iteration;
    /* --overhead=PERCENT: so many iterations in a row are recorded, then about so many left out,
     * and so on: recorded << 32 | left out; 0 = all are recorded. */
    _Atomic uint64_t sampling;
    /* --overhead=measure: 1 = CUPTI was not switched on yet. Once it was, launches cost more also
     * while nothing is recorded (docs/dev/cupti-notes.md), so the first iterations are timed
     * before.
     */
    _Atomic uint32_t bare;
};
_Static_assert(sizeof(struct control_page) <= CONTROL_BYTES, "control_page");

/* Map the page of a spool directory, read-only. Only a whole page of our own version is believed,
 * else NULL. Async-signal-safe; never unmapped by its users. */
struct control_page *control_map(const char *directory);

static inline bool control_open(uint64_t state)
{
    return state & 1;
}

static inline uint64_t control_generation(uint64_t state)
{
    return state >> 1;
}

/* Closed, to time the program without recording. */
static inline bool control_paused(const struct control_page *page, uint64_t state)
{
    return !control_open(state) &&
           (atomic_load_explicit(&page->change[control_generation(state) % CONTROL_CHANGES],
                                 memory_order_relaxed) &
            255u) == WIRE_WINDOW_OVERHEAD;
}

/* How often it has been open, now included. */
static inline uint64_t control_windows(uint64_t state)
{
    uint64_t generation = control_generation(state);
    bool first = control_open(state) ^ (generation & 1);
    return first ? generation / 2 + 1 : generation / 2 + (generation & 1);
}

/* The next state and its slot; the caller holds the file's lock. */
static inline void control_flip(struct control_page *page, uint64_t now_ns, uint32_t reason)
{
    uint64_t state = atomic_load(&page->state);
    uint64_t generation = control_generation(state) + 1;
    atomic_store(&page->change[generation % CONTROL_CHANGES], now_ns << 8 | (reason & 255u));
    atomic_store_explicit(&page->state, generation << 1 | !control_open(state),
                          memory_order_release);
}

/* Makes a pause a stop, which only `perfkit ctl start` ends; the caller holds the file's lock. */
static inline void control_stop_pause(struct control_page *page, uint32_t reason)
{
    uint64_t generation = control_generation(atomic_load(&page->state));
    _Atomic uint64_t *slot = &page->change[generation % CONTROL_CHANGES];
    atomic_store(slot, (atomic_load(slot) & ~(uint64_t)255u) | (reason & 255u));
}

#endif
