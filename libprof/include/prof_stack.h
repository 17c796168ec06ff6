/* prof_stack.h: host call stacks of a capture, by name. Part of prof.h's interface; its conventions
 * hold. Rows that carry a stack.id (launches, copies, waits, allocations, CPU samples) are asked
 * here what it means.
 *
 *     struct prof_stacks *stacks;
 *     if (!prof_stacks_open(capture, &stacks, &err)) {
 *         const struct prof_frame *frames;
 *         size_t count = prof_stack_frames(stacks, stack, &frames);
 *         for (size_t i = 0; i < count; i++)
 *             ... frames[i].function, frames[i].file, frames[i].line ...
 *     }
 *     prof_stacks_close(stacks);
 */
#ifndef PERFKIT_PROF_STACK_H
#define PERFKIT_PROF_STACK_H

#include "libprof/include/prof.h"

enum prof_frame_kind {
    PROF_FRAME_MISSING, /* stands for callers that are not known; outermost */
    PROF_FRAME_NATIVE,
    PROF_FRAME_PYTHON,
    PROF_FRAME_KERNEL, /* of Linux */
};

struct prof_frame {
    enum prof_frame_kind kind;
    bool named;               /* false: `function` is made of the module and an offset */
    bool inlined;             /* by the compiler, into the frame before it */
    uint32_t function_number; /* the same for places in one function: to group by */
    uint32_t number;      /* the same for one function, file and line; below prof_stacks_places */
    const char *function; /* readable; never NULL */
    const char *file;     /* as the compiler was given it, or as Python has it; NULL = unknown */
    int64_t line;         /* where the call is made; PROF_UNKNOWN */
    const char *module;   /* path of the object file, NULL = unknown or Python */
    int64_t process;      /* process.id */
    uint64_t address;     /* within the instruction, in the process; 0 = none (Python) */
};

struct prof_stacks;

/* Read all stacks of a capture: the file's distinct frames and prefixes, not its events. Close also
 * after a failure (NULL then). Belongs to the capture: closed before it, read again after
 * prof_refresh. */
enum prof_status prof_stacks_open(struct prof_capture *capture, struct prof_stacks **stacks,
                                  struct prof_error *err);
void prof_stacks_close(struct prof_stacks *stacks);

/* How many stacks (with every prefix) there are; 0 = the capture was made without. */
size_t prof_stacks_count(const struct prof_stacks *stacks);

/* All distinct places (functions with file and line). frames[i].number == i; address and process
 * are 0: a place may be in several. */
size_t prof_stacks_places(const struct prof_stacks *stacks, const struct prof_frame **frames);

/* The frames of a stack, outermost first, inlined functions as frames of their own. Returns how
 * many; 0 when `stack` is 0 or PROF_UNKNOWN, is not in the file, or memory ran out. Valid until the
 * next call with the same `stacks`. */
size_t prof_stack_frames(struct prof_stacks *stacks, int64_t stack,
                         const struct prof_frame **frames);

/* How near a frame is to the person who reads: lines of the program itself, then of what is
 * installed (the system's libraries, Python's packages), then functions without a line in the same
 * order. By the paths of the module and the file. */
enum prof_nearness {
    PROF_NEAR_OWN_LINE,
    PROF_NEAR_LIBRARY_LINE,
    PROF_NEAR_OWN_NAME,
    PROF_NEAR_LIBRARY_NAME,
    PROF_NEAR_NOTHING, /* an address */
    PROF_NEAR_RUNTIME, /* the C library and the like, which every program has */
};
enum prof_nearness prof_frame_nearness(const struct prof_frame *frame);
/* Is it native code of CPython's interpreter? Told by the module's name. */
bool prof_frame_is_interpreter(const struct prof_frame *frame);

/* The frame that tells a person best where a stack is: the innermost of the nearest; outside of the
 * C library and the like, of nvcc's launch stubs, and of a CUDA runtime that is part of the
 * program. Where there is nothing else, one of the C library. NULL as above. Valid until the next
 * call. */
const struct prof_frame *prof_stack_place(struct prof_stacks *stacks, int64_t stack);

/* The place and those of its callers that are as near, innermost first; otherwise as
 * prof_stack_frames. */
size_t prof_stack_near(struct prof_stacks *stacks, int64_t stack, const struct prof_frame **frames);

/* What was done where a stack was taken. */
enum prof_stack_use {
    PROF_STACK_WORK,   /* work of a device: kernels, copies, memsets */
    PROF_STACK_MEMORY, /* allocations */
    PROF_STACK_WAITS,  /* synchronizations */
    PROF_STACK_CALLS,  /* any API call */
    PROF_STACK_USES
};

/* The frames of prof_stack_near from the one on that tells callers apart: the functions through
 * which a program launches or allocates everything are skipped, judged over the whole capture.
 * *via is the innermost frame where some were skipped, else NULL. Returns how many; 0 also when the
 * capture has no stacks. Valid until the next call for this capture. */
size_t prof_stack_callers(struct prof_capture *capture, enum prof_stack_use use, int64_t stack,
                          const struct prof_frame **frames, const struct prof_frame **via);

/* "function (file.c:42)", "function (libx.so)" or "libx.so+0x1f3", the folders of paths left out.
 * Writes at most `size` bytes, NUL included; returns the length that it would have, as snprintf. */
size_t prof_frame_text(const struct prof_frame *frame, char *out, size_t size);
/* The same behind `before`, to be freed by the caller; NULL when memory ran out. */
char *prof_frame_text_new(const struct prof_frame *frame, const char *before);

#endif
