/* The memory of stacks that can be read without a fault. Unwinding follows what tables say, and
 * tables and stacks can be wrong: every address is checked against these bounds first.
 *
 * The end of a thread's own stack is known without a system call: the thread's control block, which
 * the C library puts at the upper end, and for the main thread what the kernel put above its
 * frames. The pages between are probed once; those of a live thread's own stack never go away. Any
 * other stack (sigaltstack, coroutines, a thread whose end is too far off) may be unmapped behind
 * our back, so there each page is probed each time, which costs some 0.1 us a page.
 *
 * A probe: rt_sigprocmask with an operation that does not exist reads the new mask first and then
 * refuses, so its error shows whether eight bytes can be read. Where a kernel (or an emulation of
 * it) checks the operation first, a copy within the process is the probe; where that is forbidden,
 * no page but the current one counts as readable. */
#include <errno.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "collectors/stacks/unwind.h"

#define PAGE 4096u            /* probed in steps of this; pages may be larger */
#define MAX_OWN (64ull << 20) /* probed at once: 16384 system calls, about 1 ms, once */
#define MAX_OTHER (8ull << 20)

#define OTHERS 4u

struct range {
    uint64_t low, high;
};
struct known_stack {
    uint64_t low, high;          /* the thread's own, as far as it was probed */
    struct range others[OTHERS]; /* readable, and known not to lead to it */
    unsigned next;               /* of them, to be forgotten */
};
static __thread struct known_stack known __attribute__((tls_model("initial-exec")));

static bool by_mask(uint64_t address)
{
    return syscall(SYS_rt_sigprocmask, ~0, address, NULL, 8) != 0 && errno != EFAULT;
}

static bool by_copy(uint64_t address)
{
    uint64_t copy;
    struct iovec to = {&copy, sizeof copy}, from = {(void *)(uintptr_t)address, sizeof copy};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)sizeof copy;
}

static bool by_nothing(uint64_t address)
{
    (void)address;
    return false;
}

static bool (*can_read)(uint64_t address) = by_mask;

bool stack_readable(uint64_t address)
{
    int saved = errno;
    bool readable = can_read(address);
    errno = saved;
    return readable;
}

static bool probe_works(bool (*probe)(uint64_t address))
{
    static const uint64_t here = 1;
    return probe((uint64_t)(uintptr_t)&here) && !probe(8);
}

void stack_bounds_start(void)
{
    int saved = errno;
    can_read = probe_works(by_mask) ? by_mask : probe_works(by_copy) ? by_copy : by_nothing;
    errno = saved;
}

static uint64_t page_start(uint64_t address)
{
    return address & ~(uint64_t)(PAGE - 1);
}

/* The first page at or above `from` and below `to` that cannot be read, or `to`. */
static uint64_t readable_until(uint64_t from, uint64_t to)
{
    while (from < to && stack_readable(from))
        from += PAGE;
    return from < to ? from : to;
}

static struct range *other_at(uint64_t address)
{
    for (unsigned i = 0; i < OTHERS; i++) {
        if (address >= known.others[i].low && address < known.others[i].high)
            return &known.others[i];
    }
    return NULL;
}

/* Can all be read from `page` up to `to`? If not, what can is another stack's, or one's that lies
 * below it: no page is probed twice, however many coroutines there are. */
static bool leads_to(uint64_t page, uint64_t to)
{
    uint64_t until = page;
    while (until < to) {
        struct range *other = other_at(until);
        if (other) {
            other->low = page;
            return false;
        }
        if (!stack_readable(until)) {
            known.others[known.next++ % OTHERS] = (struct range){page, until};
            return false;
        }
        until += PAGE;
    }
    return true;
}

/* Where the thread's own stack ends, if `sp` is on it: the lower of the two ends above sp. */
static uint64_t own_end(uint64_t sp)
{
    uint64_t thread = (uint64_t)(uintptr_t)pthread_self();
    uint64_t process = getauxval(AT_RANDOM);
    if (thread <= sp)
        return process > sp ? process : 0;
    return process > sp && process < thread ? process : thread;
}

static bool find_own(uint64_t sp)
{
    uint64_t page = page_start(sp), end = known.high;
    bool below = known.high != 0 && sp < known.low;
    if (!below)
        end = own_end(sp) & ~7ull;
    uint64_t to = below ? known.low : page_start(end);
    if (end == 0 || to - page > MAX_OWN || other_at(sp) || !leads_to(page, to))
        return false;
    known.low = page;
    known.high = end;
    return true;
}

struct stack_bounds stack_bounds_at(uint64_t sp)
{
    if ((sp >= known.low && sp < known.high) || find_own(sp))
        return (struct stack_bounds){page_start(sp), known.high, false};
    return (struct stack_bounds){page_start(sp), page_start(sp) + PAGE, true};
}

bool stack_bounds_reach(struct stack_bounds *bounds, uint64_t address, uint64_t bytes)
{
    if (address < bounds->low || address - bounds->low > MAX_OTHER)
        return false;
    bounds->high = readable_until(bounds->high, page_start(address + bytes - 1) + PAGE);
    return address + bytes <= bounds->high;
}
