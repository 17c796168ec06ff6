/* One stack of two: each loop of the interpreter lies in one native frame, known by its address on
 * the C stack; the Python frames it runs take that frame's place. */
#include "collectors/core/collector.h"
#include "collectors/python/interpreter.h"
#include "collectors/stacks/unwind.h"

/* State of the calling thread whose frames may be read now, or 0. */
static uint64_t python_own_thread(void)
{
    const struct python_interpreter *it = &python_interpreter;
    if (it->finalizing()) /* states of other threads are being freed */
        return 0;
    void *thread = it->attached ? it->attached() : NULL;
    return (uint64_t)(uintptr_t)(thread ? thread : it->own_thread());
}

#define MAX_FAILURES 4u /* of the proof, before it is given up */

struct merging {
    const uint64_t *entries, *cfas;
    size_t count, at; /* native frames, and the next of them */
    uint64_t *out;
    size_t room, used; /* used may pass room */
};

static void put_merged_entry(struct merging *m, uint64_t entry)
{
    if (m->used < m->room)
        m->out[m->used] = entry;
    m->used++;
}

static bool of_interpreter(uint64_t entry)
{
    uint64_t address = entry & UNWIND_ADDRESS;
    return address >= python_interpreter.machine_low && address < python_interpreter.machine_high;
}

/* Native frames before number `end`, which is left out; with it the generated code that called it
 * (-X perf puts a trampoline before each loop). */
static void put_native(struct merging *m, size_t end)
{
    for (; m->at < end; m->at++) {
        if (!of_interpreter(m->entries[m->at]))
            put_merged_entry(m, m->entries[m->at]);
    }
    m->at += m->at < m->count;
    m->at += m->at < m->count && unwind_module(m->entries[m->at]) == 0 &&
             !of_interpreter(m->entries[m->at]);
}

/* Number of the native frame, of those left, that spans `address`; count = none does. Frames are
 * found from the inside, so it is the first that ends above it; but an address before the innermost
 * of them begins is on another stack (of a coroutine library). */
static size_t spanning(const struct merging *m, uint64_t address)
{
    size_t i = m->at;
    if (!address || (i > 0 && address < m->cfas[i - 1]))
        return m->count;
    while (i < m->count && m->cfas[i] <= address)
        i++;
    return i;
}

static void put_python(struct merging *m, const struct python_frame *frame)
{
    /* One without an id, for lack of room, is a Python frame still. */
    bool ending = python_interpreter.finalizing(), fits = m->used < m->room;
    uint64_t id = fits && !ending ? python_code_id(frame->code) : 0;
    if (id == 0 && fits)
        collector_count(WIRE_COUNT_PYTHON_UNTOLD, 1);
    put_merged_entry(m, (uint64_t)WIRE_ENTRY_PYTHON << WIRE_ENTRY_SHIFT | id << 32 | frame->offset);
}

static size_t merge_frames(struct merging *m, const struct python_walk *walk)
{
    unsigned frame = 0;
    for (unsigned i = 0; i < walk->loop_count; i++) {
        put_native(m, spanning(m, walk->loops[i].address));
        for (; frame < walk->loops[i].end; frame++)
            put_python(m, &walk->frames[frame]);
    }
    if (walk->cut)
        m->used = m->used > m->room ? m->used : m->room + 1;
    else
        put_native(m, m->count);
    return m->used;
}

/* Proved already, or by this call. Threads that come meanwhile prove it too, each for itself: no
 * thread loses its frames, and one that has no frames to prove it with does not hold up the others.
 */
static bool proved(uint64_t thread)
{
    static _Atomic unsigned failures;
    unsigned phase = atomic_load_explicit(&python_phase, memory_order_acquire);
    if (phase != PYTHON_FOUND)
        return phase == PYTHON_READY;
    const char *why;
    int result = python_check(thread, &why);
    if (result > 0)
        atomic_compare_exchange_strong(&python_phase, &phase, PYTHON_READY);
    else if (result < 0 && atomic_fetch_add(&failures, 1) + 1 == MAX_FAILURES &&
             atomic_load(&python_phase) == PYTHON_FOUND)
        python_refuse(python_interpreter.layout->version, why);
    return result > 0;
}

size_t python_merge(const uint64_t *entries, const uint64_t *cfas, size_t count, uint64_t *out,
                    size_t room)
{
    struct merging m = {.entries = entries, .cfas = cfas, .count = count, .out = out, .room = room};
    uint64_t thread = python_here() && !collector_ended() ? python_own_thread() : 0;
    struct python_walk walk;
    walk.frame_count = 0;
    if (thread && proved(thread))
        python_walk(&python_interpreter, (uint64_t)(uintptr_t)python_interpreter.main_interpreter(),
                    NULL, thread, &walk);
    if (walk.frame_count)
        return merge_frames(&m, &walk);
    if (atomic_load_explicit(&python_phase, memory_order_relaxed) == PYTHON_REFUSED)
        python_report_refusal();
    for (size_t i = 0; i < count; i++)
        put_merged_entry(&m, entries[i]);
    return m.used;
}
