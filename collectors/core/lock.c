/* Locks and shields that survive being left: see lock.h. Apart from the rest of the core, because
 * the tests of the sources bring a core of their own. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/core/lock.h"

#define PATIENCE_NS 1000000000u

void collector_shield(struct collector_shield *before)
{
    /* A thread that blocks what it causes itself is killed: by a sandbox that answers calls so, or
     * where its stack ends. */
    static const int own[] = {SIGSYS, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    sigset_t all;
    sigfillset(&all);
    for (unsigned i = 0; i < sizeof own / sizeof own[0]; i++)
        sigdelset(&all, own[i]);
    pthread_sigmask(SIG_BLOCK, &all, &before->signals);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before->cancel);
}

void collector_unshield(const struct collector_shield *before)
{
    pthread_setcancelstate(before->cancel, NULL);
    pthread_sigmask(SIG_SETMASK, &before->signals, NULL);
}

bool collector_left(uintptr_t here, uintptr_t frame)
{
    stack_t signals = {.ss_flags = SS_DISABLE};
    int saved = errno;
    syscall(SYS_sigaltstack, NULL, &signals);
    errno = saved;
    uintptr_t from = (uintptr_t)signals.ss_sp;
    bool there =
        !(signals.ss_flags & SS_DISABLE) && frame >= from && frame - from < signals.ss_size;
    if (signals.ss_flags & SS_ONSTACK)
        return there && here >= frame;
    return there || here >= frame;
}

static bool has_ended(uint32_t tid)
{
    return syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH;
}

static bool take_from_ended(struct collector_lock *lock, uint32_t owner, uint32_t self)
{
    return has_ended(owner) && atomic_compare_exchange_strong(&lock->owner, &owner, self);
}

/* Another thread holds it. */
static bool wait_for_lock(struct collector_lock *lock, uint32_t self)
{
    uint64_t begun = collector_now();
    for (unsigned spins = 1;; spins++) {
        uint32_t owner = 0;
        if (atomic_compare_exchange_strong(&lock->owner, &owner, self))
            return true;
        bool doubted = atomic_load(&lock->doubted);
        if ((doubted || spins % 1024 == 0) && take_from_ended(lock, owner, self))
            return true;
        if (doubted)
            return false;
        if (spins % 1024 == 0 && collector_now() - begun > PATIENCE_NS)
            atomic_store(&lock->doubted, 1);
        if (spins % 64 == 0)
            sched_yield();
    }
}

enum patience { AT_ONCE, THOROUGH, WAIT };

static inline bool lock_acquire(struct collector_lock *lock, uintptr_t here, enum patience patience)
{
    uint32_t self = collector_tid(), owner = 0;
    if (__builtin_expect(!atomic_compare_exchange_strong_explicit(&lock->owner, &owner, self,
                                                                  memory_order_acquire,
                                                                  memory_order_acquire),
                         0)) {
        int saved = errno;
        bool ours = owner == self          ? collector_left(here, atomic_load(&lock->frame))
                    : patience == WAIT     ? wait_for_lock(lock, self)
                    : patience == THOROUGH ? take_from_ended(lock, owner, self)
                                           : false;
        errno = saved;
        if (!ours)
            return false;
    }
    atomic_store_explicit(&lock->frame, here, memory_order_relaxed);
    if (__builtin_expect(atomic_load_explicit(&lock->doubted, memory_order_relaxed), 0))
        atomic_store(&lock->doubted, 0);
    return true;
}

bool collector_lock(struct collector_lock *lock)
{
    return lock_acquire(lock, COLLECTOR_FRAME(), WAIT);
}

bool collector_try_lock(struct collector_lock *lock, bool thorough)
{
    return lock_acquire(lock, COLLECTOR_FRAME(), thorough ? THOROUGH : AT_ONCE);
}

bool collector_holds(const struct collector_lock *lock)
{
    return atomic_load(&lock->owner) == collector_tid();
}

void collector_unlock(struct collector_lock *lock)
{
    uint32_t self = collector_tid();
    atomic_store_explicit(&lock->frame, 0, memory_order_relaxed);
    /* Not when another thread has taken over meanwhile. */
    atomic_compare_exchange_strong_explicit(&lock->owner, &self, 0, memory_order_release,
                                            memory_order_relaxed);
}
