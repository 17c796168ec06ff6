/* The chain of frames of a thread.
 *
 * 3.10 has a frame object for each call and runs each in a native frame of its own. From 3.11 on
 * one native frame, a loop, runs many Python frames; a flag of its outermost frame (3.11) or a
 * frame that lies on the C stack itself (3.12, 3.13) marks where it ends. Loops have a record on
 * the C stack in 3.10 and 3.11. These addresses say which native frame a loop is, exactly.
 *
 * Frames that are being set up are skipped, as tracebacks do.
 *
 * When the interpreter is taken down it frees the states of the threads that are left: of daemon
 * threads, and only what such a thread reads without the interpreter's lock is at risk. The mark of
 * the end is set before, so it is looked at before each frame; between that look and the reads of
 * one frame, some ns, the other thread would have to get from the mark to the freeing (unlinking
 * all states and taking their objects down lies between). 4,000 interpreters whose four threads did
 * nothing but walk when it ended came to no harm (tests/python: test_the_end). */
#include "collectors/core/collector.h"
#include "collectors/python/interpreter.h"
#include "collectors/stacks/unwind.h"

#define MAX_STEPS 4096u /* frames looked at for the end of a loop */

static inline bool push_python_frame(const struct python_interpreter *it, python_reader read,
                                     struct python_walk *walk, uint64_t code, int64_t offset)
{
    if (!python_is(read, code, it->code_type))
        return false;
    if (walk->frame_count == PYTHON_MAX) {
        walk->cut = true;
        return true;
    }
    walk->frames[walk->frame_count++] = (struct python_frame){
        .code = code,
        .offset = offset < 0 || offset >= INT32_MAX ? PYTHON_NO_OFFSET : (uint32_t)offset,
    };
    return true;
}

static inline void close_loop(struct python_walk *walk, uint64_t address)
{
    if (walk->loop_count < PYTHON_MAX)
        walk->loops[walk->loop_count++] =
            (struct python_loop){.address = address, .end = walk->frame_count};
}

static inline bool step_objects(const struct python_interpreter *it, python_reader read,
                                struct python_walk *walk, uint64_t *frame, uint64_t *loop)
{
    const struct python_layout *layout = it->layout;
    uint64_t code;
    int32_t instruction; /* index of a two-byte unit */
    if (!python_pointer(read, *frame, layout->frame_code, &code) ||
        !python_load(read, *frame + layout->frame_instruction, &instruction, sizeof instruction) ||
        !push_python_frame(it, read, walk, code, (int64_t)instruction * 2))
        return false;
    close_loop(walk, *loop);
    return python_pointer(read, *loop, layout->loop_previous, loop) &&
           python_pointer(read, *frame, layout->frame_previous, frame);
}

/* The part that 3.11 to 3.13 share: a frame that runs Python code. */
static inline bool push_frame(const struct python_interpreter *it, python_reader read,
                              struct python_walk *walk, uint64_t frame, unsigned owner)
{
    const struct python_layout *layout = it->layout;
    uint64_t code, instruction;
    int32_t traceable;
    if (!python_pointer(read, frame, layout->frame_code, &code) ||
        !python_load(read, frame + layout->frame_instruction, &instruction, sizeof instruction) ||
        !python_is(read, code, it->code_type) ||
        !python_load(read, code + layout->code_traceable, &traceable, sizeof traceable))
        return false;
    int64_t offset = (int64_t)(instruction - (code + layout->code_bytes));
    if (owner != PYTHON_OWNER_GENERATOR && offset < (int64_t)traceable * 2) {
        walk->skipped++;
        return true;
    }
    return push_python_frame(it, read, walk, code, offset);
}

static inline bool step_flagged(const struct python_interpreter *it, python_reader read,
                                struct python_walk *walk, uint64_t *frame, uint64_t *loop)
{
    const struct python_layout *layout = it->layout;
    uint8_t entry, owner;
    if (!python_load(read, *frame + layout->frame_entry, &entry, 1) ||
        !python_load(read, *frame + layout->frame_owner, &owner, 1) ||
        !push_frame(it, read, walk, *frame, owner))
        return false;
    if (entry) {
        close_loop(walk, *loop);
        if (!python_pointer(read, *loop, layout->loop_previous, loop))
            return false;
    }
    return python_pointer(read, *frame, layout->frame_previous, frame);
}

static inline bool step_shimmed(const struct python_interpreter *it, python_reader read,
                                struct python_walk *walk, uint64_t *frame)
{
    const struct python_layout *layout = it->layout;
    uint8_t owner;
    if (!python_load(read, *frame + layout->frame_owner, &owner, 1))
        return false;
    if (owner == PYTHON_OWNER_C_STACK)
        close_loop(walk, *frame);
    else if (!push_frame(it, read, walk, *frame, owner))
        return false;
    return python_pointer(read, *frame, layout->frame_previous, frame);
}

/* Not of a subinterpreter? Ids of code objects differ within one interpreter only. */
static inline bool of_main(const struct python_interpreter *it, python_reader read, uint64_t thread)
{
    uint64_t interpreter;
    return python_load(read, thread + it->layout->thread_interpreter, &interpreter,
                       sizeof interpreter) &&
           interpreter == (uint64_t)(uintptr_t)it->main_interpreter();
}

static inline __attribute__((always_inline)) void walk_all(const struct python_interpreter *it,
                                                           python_reader read, uint64_t thread,
                                                           struct python_walk *walk)
{
    const struct python_layout *layout = it->layout;
    uint64_t loop = 0, frame = 0;
    walk->frame_count = walk->loop_count = walk->skipped = 0;
    walk->cut = walk->ended = false;
    if (!of_main(it, read, thread))
        return;
    bool ok = layout->thread_loop == PYTHON_NONE ||
              python_pointer(read, thread, layout->thread_loop, &loop);
    ok = ok && (layout->thread_frame == PYTHON_NONE
                    ? python_pointer(read, loop, layout->loop_frame, &frame)
                    : python_pointer(read, thread, layout->thread_frame, &frame));
    unsigned steps = 0;
    while (ok && frame && steps++ < MAX_STEPS && walk->loop_count < PYTHON_MAX) {
        unsigned loops = walk->loop_count;
        if (!read && it->finalizing()) {
            walk->frame_count = walk->loop_count = 0;
            return;
        }
        ok = layout->version == PYTHON_3_10   ? step_objects(it, read, walk, &frame, &loop)
             : layout->version == PYTHON_3_11 ? step_flagged(it, read, walk, &frame, &loop)
                                              : step_shimmed(it, read, walk, &frame);
        if (walk->cut && walk->loop_count > loops)
            break; /* where the last frames belong is known */
    }
    walk->ended = !ok;
    walk->cut = walk->cut || (ok && frame);
    if (!walk->loop_count || walk->loops[walk->loop_count - 1].end < walk->frame_count)
        close_loop(walk, 0);
}

void python_walk(uint64_t thread, struct python_walk *walk)
{
    walk_all(&python_interpreter, NULL, thread, walk);
}

void python_walk_by(python_reader read, uint64_t thread, struct python_walk *walk)
{
    walk_all(&python_interpreter, read, thread, walk);
}

/* State of the calling thread whose frames may be read now, or 0. */
static uint64_t python_own_thread(void)
{
    const struct python_interpreter *it = &python_interpreter;
    if (it->finalizing()) /* states of other threads are being freed */
        return 0;
    void *thread = it->attached ? it->attached() : NULL;
    return (uint64_t)(uintptr_t)(thread ? thread : it->own_thread());
}

/* ---- One stack of two -------------------------------------------------------------------------
 *
 * Each loop of the interpreter lies in one native frame, known by its address on the C stack; the
 * Python frames it runs take that frame's place. */

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
        python_walk(thread, &walk);
    if (walk.frame_count)
        return merge_frames(&m, &walk);
    if (atomic_load_explicit(&python_phase, memory_order_relaxed) == PYTHON_REFUSED)
        python_report_refusal();
    for (size_t i = 0; i < count; i++)
        put_merged_entry(&m, entries[i]);
    return m.used;
}
