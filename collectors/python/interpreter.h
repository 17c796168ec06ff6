/* The interpreter of this process and reading it: shared by the files of this folder. */
#ifndef PERFKIT_COLLECTORS_PYTHON_INTERPRETER_H
#define PERFKIT_COLLECTORS_PYTHON_INTERPRETER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PYTHON_3_10 0x030au
#define PYTHON_3_11 0x030bu
#define PYTHON_3_12 0x030cu
#define PYTHON_3_13 0x030du

/* Owner of a frame that the interpreter's loop keeps on the C stack, under the frames it runs. */
#define PYTHON_OWNER_GENERATOR 1u
#define PYTHON_OWNER_C_STACK 3u

/* Offsets in bytes. 0xffff = this version has no such thing. */
#define PYTHON_NONE 0xffffu
struct python_layout {
    uint16_t version; /* major << 8 | minor */
    /* _PyRuntime, the state of an interpreter: where the threads' states hang */
    uint16_t runtime_main, interpreter_threads;
    /* thread state */
    uint16_t thread_next, thread_id, thread_native_id; /* pthread_t, number of the kernel's */
    uint16_t thread_interpreter;
    uint16_t thread_loop;  /* the innermost loop's record on the C stack (3.10 to 3.12) */
    uint16_t thread_frame; /* the innermost frame; NONE = by way of the loop's record */
    /* loop record */
    uint16_t loop_frame, loop_previous;
    /* frame */
    uint16_t frame_code, frame_previous, frame_instruction;
    uint16_t frame_entry; /* bool: the outermost frame of its loop */
    uint16_t frame_owner;
    /* code object */
    uint16_t code_name, code_file, code_lines, code_first_line, code_bytes, code_version;
    uint16_t code_traceable; /* index of the first instruction at which the frame is whole */
    uint16_t code_constants, code_names;
    /* text objects: where the characters begin */
    uint16_t text_ascii, text_compact;
};

/* The same in all of them. */
#define PYTHON_OBJECT_TYPE 8u
#define PYTHON_OBJECT_SIZE 16u
#define PYTHON_TYPE_BASIC_SIZE 32u
#define PYTHON_BYTES_DATA 32u
#define PYTHON_TEXT_LENGTH 16u
#define PYTHON_TEXT_HASH 24u
#define PYTHON_TEXT_STATE 32u

/* The layout of a version (major << 8 | minor), or NULL. */
const struct python_layout *python_layout(unsigned version);

/* Does the table of offsets that CPython 3.13 keeps at the start of _PyRuntime agree with ours? */
bool python_layout_confirmed(const struct python_layout *layout, const void *runtime,
                             const char **why);

/* Where the threads' states hang, by that table: of 3.13 it may change in a later patch release.
 * `runtime`: PYTHON_TABLE_BYTES of it. False: not plausible. */
#define PYTHON_TABLE_BYTES 352u
bool python_layout_threads(struct python_layout *layout, const void *runtime);

enum python_phase {
    PYTHON_UNSEEN,
    PYTHON_FOUND, /* of a version that is known; not yet proved */
    PYTHON_READY,
    PYTHON_REFUSED,
};

struct python_interpreter {
    const struct python_layout *layout;
    void *(*own_thread)(void); /* state of the calling thread, with and without the lock */
    void *(*attached)(void);   /* state with which the calling thread runs now; NULL before 3.12 */
    void *(*main_interpreter)(void);
    int (*finalizing)(void);
    int (*line)(void *code, int offset);
    uint64_t code_type, text_type, bytes_type;
    uint64_t machine_low, machine_high; /* its own machine code */
};
extern struct python_interpreter python_interpreter;
extern _Atomic unsigned python_phase; /* enum python_phase */

/* In a forked child: the thread that looked for an interpreter is not there. */
void python_look_forget(void);

/* No frames of this interpreter, for a reason that the trust block gives once a stack is taken. */
void python_refuse(unsigned version, const char *why);
void python_report_refusal(void);

/* ---- reading --------------------------------------------------------------------------------- */

/* How memory is read: NULL = directly. */
struct python_memory {
    bool (*read)(const struct python_memory *memory, uint64_t address, void *to, size_t bytes);
};
typedef const struct python_memory *python_reader;

#if defined(__x86_64__)
#define PYTHON_ADDRESS_BITS 47
#else
#define PYTHON_ADDRESS_BITS 52
#endif

static inline bool python_load(python_reader read, uint64_t address, void *to, size_t bytes)
{
    if (address < 4096 || address >> PYTHON_ADDRESS_BITS)
        return false;
    if (read)
        return read->read(read, address, to, bytes);
    memcpy(to, (const void *)(uintptr_t)address, bytes);
    return true;
}

/* A pointer out of a structure at `base`; false also when it cannot be one to an object. */
static inline bool python_pointer(python_reader read, uint64_t base, unsigned offset, uint64_t *to)
{
    return python_load(read, base + offset, to, sizeof *to) && *to % sizeof(void *) == 0;
}

/* Is there an object of that type at `address`? */
static inline bool python_is(python_reader read, uint64_t address, uint64_t type)
{
    uint64_t found;
    return address % sizeof(void *) == 0 &&
           python_load(read, address + PYTHON_OBJECT_TYPE, &found, sizeof found) && found == type;
}

/* ---- frames (walk.c) ------------------------------------------------------------------------- */

#define PYTHON_MAX 256u             /* frames of a stack */
#define PYTHON_NO_OFFSET UINT32_MAX /* nothing of the code has run yet */

struct python_frame {
    uint64_t code;
    uint32_t offset; /* bytes, of the instruction within the code */
};

struct python_loop {
    uint64_t address; /* on the C stack, within the native frame of the loop; 0 = not known */
    uint32_t end;     /* frames[] before this one are its own, and no later loop's */
};

struct python_walk {
    unsigned frame_count, loop_count;
    unsigned skipped; /* frames that are being set up */
    bool cut;         /* there are more frames */
    bool ended;       /* something was not what it should be: outer frames are missing */
    struct python_frame frames[PYTHON_MAX]; /* innermost first */
    struct python_loop loops[PYTHON_MAX];
};

/* The frames of a thread of the interpreter whose main state is at `main`. `read` may refuse, and
 * may belong to another process: then nothing of `it` but the layout and the types is used. */
void python_walk(const struct python_interpreter *it, uint64_t main, python_reader read,
                 uint64_t thread, struct python_walk *walk);

/* ---- texts (text.c) -------------------------------------------------------------------------- */

#define PYTHON_TEXT_MOST 2000u /* bytes of a name */

/* The text of a str object, as UTF-8; what is longer than `room` is cut. Returns its bytes. */
size_t python_text(const struct python_interpreter *it, python_reader read, uint64_t object,
                   char *text, size_t room);

/* Addresses are used again after code is freed, often for code that differs in a line or two (a
 * loop around exec, a recompiled cell). So each entry of a cache has a print of the code: the
 * number that 3.12 and later give every code object of a process, else a hash over what its lines
 * and names are made of. */
uint64_t python_code_print(const struct python_layout *layout, python_reader read, uint64_t code);

/* ---- proof (find.c) ------------------------------------------------------------------------- */

/* Prove on a thread's frames that the layout is right, touching nothing that might not be there.
 * 1 = proved, 0 = no frames to prove it on, -1 = not proved (*why), which the odd stack may be (one
 * whose frame is being set up) without any fault of the layout. */
int python_check(uint64_t thread, const char **why);

/* ---- code objects (code.c) ------------------------------------------------------------------- */

/* The id under which the spool knows a code object, defined at first sight; 0 = no room, for good
 * or for now. An address that is used again for other code gets another id. */
uint32_t python_code_id(uint64_t code);
void python_code_forget(void);

/* ---- find.c, merge.c: for stacks -------------------------------------------------------------
 *
 * Python frames of the calling thread, merged into its native stack. Reads the interpreter's own
 * structures (CPython 3.10 to 3.13, found by symbol, nothing linked): no call that could run Python
 * code, no reference counting, no lock, no allocation. A thread's frames are changed by the thread
 * alone, so they may be read while it holds the interpreter's lock or not.
 *
 * Abstains, and says so in the trust block: other versions, free-threaded builds, an interpreter
 * whose structures fail the check of layout (find.c). Frames of a subinterpreter are left out. */

/* Look whether an interpreter is in the process. Takes the dynamic loader's lock: to be called from
 * a constructor or on the helper thread, never on the launch path. Cheap once one is found. */
void python_look(void);

/* Is there one whose frames can be read, as far as is known? One load. */
bool python_here(void);

/* Merge. entries[0..count): the thread's native frames, innermost first (libprof/wire: kind in the
 * top bits); cfas[i]: the stack pointer of frame i's caller after the return into it, 0 = not
 * known. out[room] gets the merged stack, innermost first: the Python frames replace the
 * interpreter's loop that runs them, native frames of the interpreter's own code are left out, and
 * Python frames outside of all native ones found follow at the end. A thread without Python frames
 * gets its native ones unchanged. Returns how many entries the whole stack has: more than `room` =
 * the outermost are missing in out. */
size_t python_merge(const uint64_t *entries, const uint64_t *cfas, size_t count, uint64_t *out,
                    size_t room);

#endif
