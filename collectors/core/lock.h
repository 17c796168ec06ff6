/* Short critical sections in a thread that may leave them without returning: a signal handler jumps
 * out (interpreters and time-out guards do), or the thread is cancelled. Two ways:
 *
 * The shield, for what is rare: no signal handler and no cancellation comes while it is up, but for
 * signals that the thread itself causes. Two system calls, a fifth of a microsecond.
 *
 * The lock, for what is frequent: it knows its holder. A thread that finds itself the holder, in a
 * frame that the holder's must have been left for, takes over; so does any thread from a holder
 * that has ended. No thread takes it from a holder that lives and does not come back: a thread that
 * waits for it gives up after a second, and after that at once. What a lock protects must bear
 * being left half-way, and its memory a holder that was given up too early. */
#ifndef PERFKIT_COLLECTORS_CORE_LOCK_H
#define PERFKIT_COLLECTORS_CORE_LOCK_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct collector_shield {
    sigset_t signals;
    int cancel;
};
void collector_shield(struct collector_shield *before);
void collector_unshield(const struct collector_shield *before);

struct collector_lock {
    _Atomic uint32_t owner;   /* tid of the holder, 0 = free */
    _Atomic uint32_t doubted; /* a thread timed out waiting for the holder */
    _Atomic uintptr_t frame;  /* of the holder's stack, 0 = not noted yet */
};
/* False: held by this thread further up (a signal handler came), or by one that does not let go.
 * Keeps errno, as do the others. */
bool collector_lock(struct collector_lock *lock);
/* The same without waiting. `thorough`: check whether the holder has ended (a system call). */
bool collector_try_lock(struct collector_lock *lock, bool thorough);
bool collector_holds(const struct collector_lock *lock); /* does this thread, further up or left? */
void collector_unlock(struct collector_lock *lock);

/* Was the function with stack frame `frame` left without returning? Called on the same thread by a
 * function with frame `here`: one that a handler called lies below on the same stack, or on the
 * stack for signals. One system call. */
bool collector_left(uintptr_t here, uintptr_t frame);
#define COLLECTOR_FRAME() ((uintptr_t)__builtin_frame_address(0))

#endif
