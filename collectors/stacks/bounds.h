/* What of a stack may be read. */
#ifndef PERFKIT_COLLECTORS_STACKS_BOUNDS_H
#define PERFKIT_COLLECTORS_STACKS_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

struct stack_bounds {
    uint64_t low, high; /* these bytes can be read */
    bool grows;         /* what lies above has to be probed: not the thread's own stack */
};

/* Of the stack that the calling thread has `sp` on. No system call when it is the thread's own and
 * was probed before, at this depth or a deeper one. */
struct stack_bounds stack_bounds_at(uint64_t sp);

/* Make [address, address + bytes) part of the bounds if it lies above and can be read. */
bool stack_bounds_reach(struct stack_bounds *bounds, uint64_t address, uint64_t bytes);

static inline bool stack_bounds_hold(struct stack_bounds *bounds, uint64_t address, uint64_t bytes)
{
    uint64_t size = bounds->high - bounds->low;
    if (__builtin_expect(address - bounds->low <= size - bytes, 1) && size >= bytes)
        return true;
    return bounds->grows && stack_bounds_reach(bounds, address, bytes);
}

/* Choose the probe that works on this system, once and before anything else. */
void stack_bounds_start(void);

/* Can the eight bytes at `address` be read? One system call that changes nothing. */
bool stack_readable(uint64_t address);

#endif
