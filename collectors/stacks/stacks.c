/* When a stack is taken and how it gets its number. A stack is known by a hash of 96 bits, so that
 * the table holds 16 bytes for each and no frames; two different stacks of one run are the same in
 * it with a probability of 1e-18 for a million of them. Who finds an empty slot defines the stack;
 * a thread that comes meanwhile does not wait but defines it too, under a number that is not kept.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "collectors/core/collector.h"
#include "collectors/stacks/modules.h"
#include "collectors/stacks/stacks.h"
#include "collectors/stacks/unwind.h"

#define SLOTS (1u << 18) /* a power of two; used up to three quarters */
#define PROBES 64u
#define DEFAULT_DEPTH 128u

struct stacks_state {
    _Atomic uint32_t used; /* slots */
    _Atomic uint32_t last; /* number given */
    struct stacks_modules modules;
    struct unwind_rules rules;
    struct {
        _Atomic uint64_t key;   /* 0 = empty */
        _Atomic uint64_t value; /* more of the hash << 32 | number; 0 = being defined */
    } slots[SLOTS];
};
#define NOT_DEFINED UINT32_MAX /* number of a stack that found no room: tried again */

uint32_t stacks_every[STACKS_KINDS];
static uint32_t depth = DEFAULT_DEPTH;
static _Atomic(struct stacks_state *) the_state;
static stacks_merge *merge;
static __thread uint32_t calls[STACKS_KINDS] __attribute__((tls_model("initial-exec")));

enum stacks_kind stacks_kind_of(enum wire_class klass)
{
    switch (klass) {
    case WIRE_CLASS_LAUNCH:
    case WIRE_CLASS_GRAPH_LAUNCH:
    case WIRE_CLASS_TRANSFER:
    case WIRE_CLASS_MEMSET:
        return STACKS_LAUNCH;
    case WIRE_CLASS_ALLOC:
    case WIRE_CLASS_ALLOC_HOST:
    case WIRE_CLASS_ALLOC_ASYNC:
    case WIRE_CLASS_SUBALLOC:
        return STACKS_ALLOC;
    case WIRE_CLASS_SYNC:
    case WIRE_CLASS_STREAM_WAIT:
        return STACKS_SYNC;
    case WIRE_CLASS_BUILD:
    case WIRE_CLASS_GRAPH_MAKE:
        return STACKS_BUILD;
    default:
        return STACKS_NONE;
    }
}

void stacks_set_merge(stacks_merge *function)
{
    merge = function;
}

/* Mapped at the first stack of the process; a forked child finds it empty. */
static struct stacks_state *make_state(void)
{
    struct stacks_state *none = NULL;
    struct stacks_state *fresh = mmap(NULL, sizeof *fresh, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fresh == MAP_FAILED)
        return NULL;
    if (madvise(fresh, sizeof *fresh, MADV_WIPEONFORK) != 0 ||
        !atomic_compare_exchange_strong(&the_state, &none, fresh)) {
        munmap(fresh, sizeof *fresh);
        return none;
    }
    return fresh;
}

static struct stacks_state *stacks_state_of_process(void)
{
    struct stacks_state *known = atomic_load_explicit(&the_state, memory_order_acquire);
    return known ? known : make_state();
}

static void unloaded(void)
{
    struct stacks_state *known = atomic_load_explicit(&the_state, memory_order_acquire);
    if (known)
        stacks_modules_look(&known->modules);
}

static void stacks_tick(void)
{
    struct stacks_state *known = stacks_state_of_process();
    if (known)
        stacks_modules_look(&known->modules);
}

static const struct collector_source source = {
    .source = WIRE_SOURCE_HOST, .tick = stacks_tick, .unloaded = unloaded};

/* "launch:10+alloc+sync" */
static void read_kinds(const char *list)
{
    static const char *const names[] = {"", "launch", "alloc", "sync"};
    while (*list) {
        size_t length = strcspn(list, ":+");
        for (unsigned kind = 1; kind < sizeof names / sizeof names[0]; kind++) {
            if (strlen(names[kind]) == length && memcmp(list, names[kind], length) == 0)
                stacks_every[kind] =
                    list[length] == ':' ? (uint32_t)strtoul(list + length + 1, NULL, 10) : 1;
        }
        list += strcspn(list, "+");
        list += *list == '+';
    }
    stacks_every[STACKS_BUILD] = stacks_every[STACKS_LAUNCH] != 0;
}

__attribute__((constructor)) static void start(void)
{
    char text[64];
    int saved = errno;
    if (collector_option("stacks", text, sizeof text)) {
        read_kinds(text);
        if (collector_option("stack-depth", text, sizeof text))
            depth = (uint32_t)strtoul(text, NULL, 10);
        stack_bounds_start();
        stacks_modules_start();
        collector_register(&source);
    }
    errno = saved;
}

static bool of_driver(const struct stacks_state *stacks, uint64_t frame)
{
    uint32_t module = unwind_module(frame);
    return module != 0 && module != MODULE_BEYOND && stacks->modules.slots[module - 1].driver;
}

/* Without the frames of perfkit and the driver that the call went through. What consists of nothing
 * else is left as it is: a thread of the driver's own. */
static uint32_t first_of_program(const struct stacks_state *stacks, const struct unwound *unwound)
{
    for (uint32_t i = 0; i < unwound->count; i++) {
        if (!of_driver(stacks, unwound->frame[i]))
            return i;
    }
    return 0;
}

struct hash {
    uint64_t first, second;
};

static inline uint64_t mix_stack_hash(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The modules are part of it: another library may come to lie where one was. */
static struct hash hash_stack(const uint64_t *entries, size_t count, uint8_t flags)
{
    uint64_t a = 0x9e3779b97f4a7c15u ^ flags, b = 0xc2b2ae3d27d4eb4fu ^ count;
    size_t i = 0;
    for (; i + 1 < count; i += 2) {
        a = mix_stack_hash(a ^ entries[i], 0xff51afd7ed558ccdu);
        b = mix_stack_hash(b ^ entries[i + 1], 0xc4ceb9fe1a85ec53u);
    }
    if (i < count)
        a = mix_stack_hash(a ^ entries[i], 0xff51afd7ed558ccdu);
    uint64_t first = mix_stack_hash(a ^ 0x2545f4914f6cdd1du, b ^ 0xd6e8feb86659fd93u);
    return (struct hash){first ? first : 1, mix_stack_hash(a ^ first, b + 0x9fb21c651e98df25u)};
}

static __attribute__((noinline)) uint32_t
define(struct stacks_state *stacks, const uint64_t *entries, size_t count, uint8_t flags)
{
    _Alignas(8) unsigned char room[sizeof(struct wire_stack) + UNWIND_DEPTH * sizeof(uint64_t)];
    struct wire_stack *record = (struct wire_stack *)(void *)room;
    uint32_t number = atomic_fetch_add(&stacks->last, 1) + 1;
    size_t bytes = sizeof *record + count * sizeof entries[0];
    *record = (struct wire_stack){
        .head = {(uint16_t)bytes, WIRE_STACK, flags, number},
        .count = (uint32_t)count,
    };
    for (size_t i = 0; i < count; i++) {
        bool python = entries[i] >> WIRE_ENTRY_SHIFT == WIRE_ENTRY_PYTHON;
        record->entries[i] =
            python ? entries[i] : entries[i] & ~((uint64_t)0xfff << UNWIND_MODULE_SHIFT);
    }
    return collector_define(record) ? number : 0;
}

/* The number of the stack; 0 = it found no room. */
static uint32_t stack_number(struct stacks_state *stacks, const uint64_t *entries, size_t count,
                             uint8_t flags)
{
    struct hash hash = hash_stack(entries, count, flags);
    for (uint32_t probe = 0; probe < PROBES; probe++) {
        uint32_t at = ((uint32_t)hash.first + probe) & (SLOTS - 1);
        uint64_t key = atomic_load_explicit(&stacks->slots[at].key, memory_order_acquire);
        uint64_t value = 0;
        if (key == hash.first) {
            value = atomic_load_explicit(&stacks->slots[at].value, memory_order_acquire);
            if (value && value >> 32 != hash.second >> 32)
                continue;
            if ((uint32_t)value != NOT_DEFINED && value)
                return (uint32_t)value;
            if (!value) /* another thread is defining it */
                return define(stacks, entries, count, flags);
        } else if (key != 0) {
            continue;
        } else if (atomic_load(&stacks->used) >= SLOTS / 4 * 3) {
            return 0;
        } else if (!atomic_compare_exchange_strong(&stacks->slots[at].key, &key, hash.first)) {
            probe--; /* look at it again */
            continue;
        } else {
            atomic_fetch_add_explicit(&stacks->used, 1, memory_order_relaxed);
        }
        uint32_t number = define(stacks, entries, count, flags);
        value = (hash.second >> 32) << 32 | (number ? number : NOT_DEFINED);
        atomic_store_explicit(&stacks->slots[at].value, value, memory_order_release);
        return number;
    }
    return 0;
}

static uint32_t take_call_stack(struct stacks_state *stacks, const struct unwind_start *start)
{
    struct unwound unwound;
    uint64_t merged[UNWIND_DEPTH];
    unwind(&stacks->rules, &stacks->modules, start, depth, &unwound);
    uint32_t first = first_of_program(stacks, &unwound);
    const uint64_t *entries = unwound.frame + first;
    size_t count = unwound.count - first;
    if (merge) {
        count = merge(entries, unwound.cfa + first, count, merged, UNWIND_DEPTH);
        entries = merged;
        unwound.cut |= count > UNWIND_DEPTH;
        count = count > UNWIND_DEPTH ? UNWIND_DEPTH : count;
    }
    if (count == 0)
        return 0;
    if (unwound.cut)
        collector_count(WIRE_COUNT_STACK_CUT, 1);
    if (unwound.ended)
        collector_count(unwound.no_slot ? WIRE_COUNT_STACK_BEYOND : WIRE_COUNT_STACK_ENDED, 1);
    uint8_t flags = (unwound.cut ? WIRE_STACK_CUT : 0) | (unwound.ended ? WIRE_STACK_ENDED : 0);
    uint32_t number = stack_number(stacks, entries, count, flags);
    if (!number)
        collector_count(WIRE_COUNT_STACK_UNSENT, 1);
    return number;
}

uint32_t stacks_take(enum stacks_kind kind)
{
    uint32_t every = stacks_every[kind];
    if (every == 0 || calls[kind]++ % every != 0)
        return 0;
    int saved = errno;
    struct stacks_state *stacks = stacks_state_of_process();
    struct unwind_start here;
    UNWIND_START(&here);
    uint32_t number = stacks ? take_call_stack(stacks, &here) : 0;
    errno = saved;
    return number;
}
