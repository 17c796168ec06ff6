/* The correlation table: what is known of an API call by its id, until the records of the device
 * that need it have been read. A column for each fact, indexed by the low bits of the id: a later
 * call overwrites an earlier one. A word holds the id and the fact together, so that the program's
 * threads write while the helper thread reads without a lock.
 *
 * A fact that is overwritten before it was read is reported in the capture's health: for stacks
 * when that happens, since each is needed once; for the others when a record needs it, since most
 * calls have none that does. Facts of launches that are counted one by one come late by design, and
 * are kept by exact_launches.c too.
 *
 * Apart from the columns: whether an id belongs to a recording window. The device may take seconds,
 * so that is kept for 64 times as many ids; a word for each would take 32 MiB of the program's
 * memory, two bits take 1 MiB. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/map.h"
#include "collectors/cuda/parts.h"

#define MAX_AGE (1u << 29)    /* ids; older facts are removed before their ids come again */
#define WINDOW_IDS (1u << 22) /* seconds of launches */

#define CALLS 65536u /* a flush of launches */
/* Those of 0.3 s (a flush, and CUDA_HOLD_TICKS) at 542,000 launches a second fit. */
#define STACKS (1u << 18)

struct cuda_fact_column cuda_fact_columns[CUDA_FACTS] = {
    [CUDA_OUTER_CALL].mask = CALLS - 1,
    [CUDA_CALL_THREAD].mask = CALLS - 1,
    [CUDA_LAUNCH_NAME].mask = CALLS - 1,
    [CUDA_CALL_STACK].mask = STACKS - 1,
};

static const struct {
    uint32_t (*kept_elsewhere)(uint32_t id);
    const char *lost; /* NULL: not counted */
} overwritten[CUDA_FACTS] = {
    [CUDA_OUTER_CALL] = {cuda_exact_outer,
                         "records of the GPU came more than 65,536 calls after their own: those of "
                         "driver calls inside runtime calls are without it, and so without its "
                         "stack"},
    [CUDA_LAUNCH_NAME] = {cuda_exact_name,
                          "kernels came more than 65,536 calls after their launch, and after code "
                          "had been unloaded: their names may be those of other kernels"},
    [CUDA_CALL_STACK] = {NULL, "calls lost their stacks, because 262,144 others came before their "
                               "records"},
};

static size_t column_bytes(const struct cuda_fact_column *c)
{
    return sizeof *c->words * ((size_t)c->mask + 1);
}

bool cuda_correlation_reserve(enum cuda_fact fact)
{
    struct cuda_fact_column *c = &cuda_fact_columns[fact];
    return c->words || (c->words = cuda_reserve(column_bytes(c)));
}

void cuda_correlation_use(enum cuda_fact fact)
{
    atomic_store_explicit(&cuda_fact_columns[fact].used, true, memory_order_relaxed);
}

static uint32_t find_overwritten_fact(enum cuda_fact fact, uint32_t id)
{
    uint32_t value = overwritten[fact].kept_elsewhere ? overwritten[fact].kept_elsewhere(id) : 0;
    if (!value && fact != CUDA_CALL_STACK && overwritten[fact].lost)
        atomic_fetch_add_explicit(&cuda_fact_columns[fact].lost, 1, memory_order_relaxed);
    return value;
}

uint32_t cuda_correlation_find(enum cuda_fact fact, uint32_t id)
{
    struct cuda_fact_column *c = &cuda_fact_columns[fact];
    if (!id || !atomic_load_explicit(&c->used, memory_order_relaxed))
        return 0;
    uint64_t word = atomic_load_explicit(&c->words[id & c->mask], memory_order_acquire);
    uint32_t owner = (uint32_t)(word >> 32);
    if (owner != id)
        return word && (int32_t)(owner - id) > 0 ? find_overwritten_fact(fact, id) : 0;
    if (fact != CUDA_CALL_STACK)
        return (uint32_t)word;
    uint64_t seen = word; /* left as it is where another one has taken its place just now */
    if (!(word & CUDA_FACT_READ))
        atomic_compare_exchange_strong(&c->words[id & c->mask], &seen, word | CUDA_FACT_READ);
    return (uint32_t)word & ~CUDA_FACT_READ;
}

/* ---- Ids in 64 bits: the helper thread ------------------------------------------------------- */

static uint64_t newest; /* highest id of a call seen */
static uint64_t aged;   /* what it was when old facts were last removed */

/* CUPTI counts correlation in 32 bits, which wrap after 2.2 h at 542,000 launches a second. Two
 * ids in flight are never 2^31 apart, so the nearest value to the newest one is the true one. */
static uint64_t widen(uint32_t id)
{
    int32_t distance = (int32_t)(id - (uint32_t)newest);
    int64_t wide = (int64_t)newest + distance;
    return wide > 0 ? (uint64_t)wide : id;
}

uint64_t cuda_correlation(uint32_t id)
{
    uint32_t outer = cuda_correlation_find(CUDA_OUTER_CALL, id);
    return id ? widen(outer ? outer : id) : 0;
}

static void remove_old_facts(struct cuda_fact_column *c)
{
    for (uint32_t i = 0; i <= c->mask; i++) {
        uint64_t word = atomic_load_explicit(&c->words[i], memory_order_relaxed);
        int32_t age = (int32_t)((uint32_t)newest - (uint32_t)(word >> 32));
        if (word && age > (int32_t)MAX_AGE)
            atomic_compare_exchange_strong(&c->words[i], &word, 0);
    }
}

void cuda_correlation_tick(bool last)
{
    (void)last;
    if (newest - aged < MAX_AGE)
        return;
    aged = newest;
    for (size_t i = 0; i < CUDA_FACTS; i++) {
        if (atomic_load_explicit(&cuda_fact_columns[i].used, memory_order_relaxed))
            remove_old_facts(&cuda_fact_columns[i]);
    }
}

void cuda_correlation_end(void)
{
    char text[256];
    for (size_t i = 0; i < CUDA_FACTS; i++) {
        uint32_t count = atomic_exchange(&cuda_fact_columns[i].lost, 0);
        if (!count)
            continue;
        snprintf(text, sizeof text, "%u %s", count, overwritten[i].lost);
        collector_health(WIRE_SOURCE_CUDA, WIRE_HEALTH_DEGRADED, text, count);
    }
}

/* ---- Recording windows: the helper thread ---------------------------------------------------- */

/* Which ids belong outside the recording windows, by their low bits. The first record of an id
 * decides for all others: a call and what it made on the device are recorded together or not at
 * all, whichever CUPTI brings first and however long the device takes. Not decided but outside: an
 * id of several calls, whose records go each by its own time. Untouched, and so without memory,
 * when there are no windows. */
static struct window_bits {
    uint64_t decided[WINDOW_IDS / 64], outside[WINDOW_IDS / 64];
} * bits;
static uint64_t front;  /* highest id with a bit; those WINDOW_IDS behind it have lost theirs */
static uint64_t before; /* ids up to this one came when there was no window yet: recorded */
static bool watching;

bool cuda_correlation_start(void)
{
    return (bits || (bits = cuda_reserve(sizeof *bits))) &&
           cuda_correlation_reserve(CUDA_OUTER_CALL) && cuda_correlation_reserve(CUDA_CALL_THREAD);
}

static void start_watching_calls(void)
{
    if (!watching && cuda_kinds_windows()) {
        watching = true;
        before = front = newest;
    }
}

uint64_t cuda_correlation_of_call(uint32_t id)
{
    if (id == 0)
        return 0;
    start_watching_calls();
    uint64_t wide = widen(id);
    if (wide > newest)
        newest = wide;
    return wide;
}

/* Make room for the bits of an id. One that is far ahead of the calls is not believed. */
static bool has_bits(uint64_t correlation)
{
    if (correlation == 0 || correlation > newest + WINDOW_IDS / 2)
        return false;
    if (correlation > front + WINDOW_IDS) {
        memset(bits, 0, sizeof *bits);
        front = correlation;
    }
    while (front < correlation) {
        front++;
        bits->decided[front % WINDOW_IDS / 64] &= ~(1ull << (front % 64));
        bits->outside[front % WINDOW_IDS / 64] &= ~(1ull << (front % 64));
    }
    return correlation + WINDOW_IDS > front;
}

bool cuda_correlation_is_outside(uint64_t correlation, uint64_t time)
{
    if (!cuda_kinds_windows())
        return false;
    start_watching_calls();
    bool late = time != 0 && (cuda_kinds_were_off(time) || !collector_recorded_at(time));
    if (!has_bits(correlation))
        return late;
    if (correlation <= before)
        return false;
    uint64_t bit = 1ull << (correlation % 64);
    uint64_t at = correlation % WINDOW_IDS / 64;
    if (bits->decided[at] & bit)
        return bits->outside[at] & bit;
    if (time != 0 && !(bits->outside[at] & bit)) {
        bits->decided[at] |= bit;
        bits->outside[at] |= late ? bit : 0;
    }
    return late;
}

/* The last call of some threads: CUPTI 13.0 may lose count in a thread when it is switched, and
 * gives all its later calls one id (kinds.c). */
#define LAST_CALLS 256u
static struct {
    uint32_t tid, id;
} last_call[LAST_CALLS];
static bool reported;

bool cuda_correlation_repeats(uint32_t tid, uint64_t correlation)
{
    uint32_t at = tid % LAST_CALLS, id = (uint32_t)correlation;
    bool again = id && last_call[at].tid == tid && last_call[at].id == id;
    last_call[at].tid = tid;
    last_call[at].id = id;
    if (again && cuda_kinds_windows() && has_bits(correlation) && correlation > before) {
        bits->decided[correlation % WINDOW_IDS / 64] &= ~(1ull << (correlation % 64));
        bits->outside[correlation % WINDOW_IDS / 64] |= 1ull << (correlation % 64);
    }
    if (again && !reported)
        collector_health(WIRE_SOURCE_CUDA, WIRE_HEALTH_DEGRADED,
                         "CUPTI gives all calls of a thread the same id since recording was "
                         "switched off and on: what they did on the GPU is missing, or is that of "
                         "another call",
                         tid);
    reported |= again;
    return again;
}

bool cuda_calls_recorded(uint64_t correlation, uint64_t time)
{
    if (!cuda_correlation_is_outside(correlation, time))
        return true;
    collector_count(WIRE_COUNT_OUTSIDE, 1);
    return false;
}

void cuda_correlation_forked(void)
{
    for (size_t i = 0; i < CUDA_FACTS; i++) {
        cuda_wipe(cuda_fact_columns[i].words, column_bytes(&cuda_fact_columns[i]));
        atomic_store(&cuda_fact_columns[i].used, false);
        atomic_store(&cuda_fact_columns[i].lost, 0);
    }
    cuda_wipe(bits, sizeof *bits);
    newest = aged = front = before = 0;
    memset(last_call, 0, sizeof last_call);
    reported = false;
    watching = false;
}
