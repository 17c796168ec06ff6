/* The call stack of the calling thread: from the registers of this moment to the thread's first
 * function. Signal-safe, no lock, no allocation; a stack or table that is wrong ends it early. */
#ifndef PERFKIT_COLLECTORS_STACKS_UNWIND_H
#define PERFKIT_COLLECTORS_STACKS_UNWIND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectors/stacks/cfi.h"
#include "collectors/stacks/modules.h"

#define UNWIND_DEPTH 250u /* most frames */
#define UNWIND_RULES (1u << 15)

/* Where the callers of instructions are, by their addresses: a word each for the rule and for rule
 * ^ address, so that a rule that is just being replaced is not believed. Zeroed memory that fork
 * wipes. */
struct unwind_rules {
    struct {
        _Atomic uint64_t key, rule;
    } slots[UNWIND_RULES];
};

/* The registers that a call keeps, and where we are. */
struct unwind_start {
    uint64_t pc, sp, frame; /* frame: rbp, x29 */
    uint64_t rbx, r12, r13, r14, r15;
};

#if defined(__x86_64__)
#define UNWIND_START(start)                                                                        \
    __asm__ volatile("leaq 0(%%rip), %%rax\n\tmovq %%rax, %0\n\tmovq %%rsp, %1\n\t"                \
                     "movq %%rbp, %2\n\tmovq %%rbx, %3\n\tmovq %%r12, %4\n\t"                      \
                     "movq %%r13, %5\n\tmovq %%r14, %6\n\tmovq %%r15, %7"                          \
                     : "=m"((start)->pc), "=m"((start)->sp), "=m"((start)->frame),                 \
                       "=m"((start)->rbx), "=m"((start)->r12), "=m"((start)->r13),                 \
                       "=m"((start)->r14), "=m"((start)->r15)                                      \
                     :                                                                             \
                     : "rax")
#elif defined(__aarch64__)
#define UNWIND_START(start)                                                                        \
    __asm__ volatile("adr x9, .\n\tstr x9, %0\n\tmov x9, sp\n\tstr x9, %1\n\tstr x29, %2"          \
                     : "=m"((start)->pc), "=m"((start)->sp), "=m"((start)->frame)                  \
                     :                                                                             \
                     : "x9")
#else
#error "say how registers are read on this architecture"
#endif

/* A frame: its kind (WIRE_ENTRY_RETURN, WIRE_ENTRY_PC) at WIRE_ENTRY_SHIFT, its module's number (0
 * = none, MODULE_BEYOND), its address. */
#define UNWIND_MODULE_SHIFT 48u
#define UNWIND_ADDRESS ((1ull << UNWIND_MODULE_SHIFT) - 1)
static inline uint32_t unwind_module(uint64_t frame)
{
    return frame >> UNWIND_MODULE_SHIFT & 0xfff;
}

struct unwound {
    uint32_t count;
    bool cut;                     /* deeper than requested */
    bool ended;                   /* a caller could not be found */
    bool no_slot;                 /* ... because it is in a module without a slot */
    uint64_t frame[UNWIND_DEPTH]; /* innermost first */
    uint64_t cfa[UNWIND_DEPTH];   /* stack pointer of the caller after the return; 0 = not known */
};

/* Fills *out with at most `depth` frames. start's own function is the first. */
void unwind(struct unwind_rules *rules, struct stacks_modules *modules,
            const struct unwind_start *start, uint32_t depth, struct unwound *out);

/* ---- bounds.c: what of a stack may be read --------------------------------------------------- */

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
