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
#include "collectors/python/interpreter.h"

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
static inline bool of_main(const struct python_interpreter *it, uint64_t main, python_reader read,
                           uint64_t thread)
{
    uint64_t interpreter;
    return python_load(read, thread + it->layout->thread_interpreter, &interpreter,
                       sizeof interpreter) &&
           interpreter == main;
}

static inline __attribute__((always_inline)) void walk_all(const struct python_interpreter *it,
                                                           uint64_t main, python_reader read,
                                                           uint64_t thread,
                                                           struct python_walk *walk)
{
    const struct python_layout *layout = it->layout;
    uint64_t loop = 0, frame = 0;
    walk->frame_count = walk->loop_count = walk->skipped = 0;
    walk->cut = walk->ended = false;
    if (!of_main(it, main, read, thread))
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

void python_walk(const struct python_interpreter *it, uint64_t main, python_reader read,
                 uint64_t thread, struct python_walk *walk)
{
    if (read)
        walk_all(it, main, read, thread, walk);
    else
        walk_all(it, main, NULL, thread, walk); /* the launch path: no call for each word */
}
