/* Call stacks of the program where it calls a GPU API (`perfkit run --stacks`).
 *
 * A source takes one where a call begins, on the program's thread, and puts the number into its
 * record. Signal-safe; no lock that a driver call could hold, no allocation; errno is kept. Each
 * different stack is sent once (WIRE_STACK) and known by its number afterwards. */
#ifndef PERFKIT_COLLECTORS_STACKS_STACKS_H
#define PERFKIT_COLLECTORS_STACKS_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/wire/command.h"

enum stacks_kind {
    STACKS_NONE,
    STACKS_LAUNCH, /* what gives the device work: kernels, graphs, copies, fills */
    STACKS_ALLOC,
    STACKS_SYNC,  /* waits */
    STACKS_BUILD, /* what makes code for launches: few and long, so with launches every one */
    STACKS_KINDS,
};

/* Of a class of calls. */
enum stacks_kind stacks_kind_of(enum wire_class klass);

/* Every how manieth call of a kind has its stack taken; 0 = none. */
extern uint32_t stacks_every[STACKS_KINDS];

/* Are stacks of this kind requested? One load. */
static inline bool stacks_wanted(enum stacks_kind kind)
{
    return stacks_every[kind] != 0;
}

/* The number of the calling thread's stack, from the program's innermost frame outwards; 0 = not
 * taken (not requested, not this one's turn, no room). */
uint32_t stacks_take(enum stacks_kind kind);

/* The frames of another language are put in between by its own reader. frames: as in unwind.h (kind
 * at WIRE_ENTRY_SHIFT, address in the low 48 bits), innermost first; cfas: the stack pointer of
 * each frame's caller, 0 = not known. Writes at most `room` entries to `merged` and returns how
 * many there are in all. Set before the first stack. */
typedef size_t stacks_merge(const uint64_t *frames, const uint64_t *cfas, size_t count,
                            uint64_t *merged, size_t room);
void stacks_set_merge(stacks_merge *merge);

#endif
