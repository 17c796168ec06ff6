/* The links of a chain: one for each thing that compilers describe differently. Compiled as C and
 * as C++. */
#include <alloca.h>
#include <stdarg.h>
#include <string.h>

#include "tests/stacks/chain.h"

#define LINK static __attribute__((noinline)) void

typedef void link_function(struct chain *chain);

static void next(struct chain *chain);

/* What the compiler must not leave out or turn into a jump. */
static volatile unsigned sink;
static inline void used(void *at)
{
    __asm__ volatile("" : : "r"(at) : "memory");
    sink++;
}

#define HERE(chain)                                                                                \
    ((chain)->returns[(chain)->count++] = (uint64_t)(uintptr_t)__builtin_return_address(0))

LINK small(struct chain *chain)
{
    HERE(chain);
    next(chain);
    used(chain);
}

LINK large(struct chain *chain)
{
    char room[20000];
    HERE(chain);
    used(room);
    next(chain);
    used(room);
}

LINK of_a_size(struct chain *chain)
{
    HERE(chain);
    char *room = (char *)alloca(16 + chain->count % 16 * 40);
    used(room);
    next(chain);
    used(room);
}

/* The stack pointer is rounded: where the caller is only another register knows. */
LINK aligned(struct chain *chain)
{
    HERE(chain);
    __attribute__((aligned(64))) char room[128];
    used(room);
    next(chain);
    used(room);
}

LINK aligned_of_a_size(struct chain *chain)
{
    HERE(chain);
    __attribute__((aligned(128))) char room[128];
    char *more = (char *)alloca(16 + chain->count % 16 * 24);
    used(room);
    used(more);
    next(chain);
    used(room);
}

/* All registers that a call keeps are in use. */
LINK crowded(struct chain *chain)
{
    HERE(chain);
    unsigned a = sink, b = a + 1, c = a ^ 2, d = a + 3, e = a ^ 4, f = a + 5, g = a ^ 6;
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    next(chain);
    __asm__ volatile("" : : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
    sink += a + b + c + d + e + f + g;
}

static __attribute__((noinline)) void many(struct chain *chain, long a, long b, long c, long d,
                                           long e, long f, long g, long h)
{
    HERE(chain);
    next(chain);
    sink += (unsigned)(a + b + c + d + e + f + g + h);
}

LINK arguments_on_the_stack(struct chain *chain)
{
    HERE(chain);
    many(chain, 1, 2, 3, 4, 5, 6, 7, (long)sink);
    used(chain);
}

static __attribute__((noinline)) void variadic(struct chain *chain, unsigned n, ...)
{
    va_list list;
    HERE(chain);
    va_start(list, n);
    sink += (unsigned)va_arg(list, unsigned);
    next(chain);
    va_end(list);
    used(chain);
}

LINK with_variadic(struct chain *chain)
{
    HERE(chain);
    variadic(chain, 1, sink, 2.0);
    used(chain);
}

/* Returns early or goes on: the frame is made in one branch only. */
LINK early(struct chain *chain)
{
    HERE(chain);
    if (chain->left == 12345)
        return;
    char room[300];
    used(room);
    next(chain);
    used(room);
}

static inline __attribute__((always_inline)) void inner_most(struct chain *chain)
{
    next(chain);
    used(chain);
}

static inline __attribute__((always_inline)) void inner(struct chain *chain)
{
    char room[80];
    used(room);
    inner_most(chain);
    used(room);
}

LINK with_inlines(struct chain *chain)
{
    HERE(chain);
    inner(chain);
    used(chain);
}

LINK bottom(struct chain *chain)
{
    HERE(chain);
    chain->innermost(chain);
    used(chain);
}

static link_function *const links[] = {
    small,         large,        of_a_size, aligned, aligned_of_a_size,      crowded,
    with_variadic, with_inlines, early,     small,   arguments_on_the_stack,
};

/* Part of the chain, so it writes its place down too. */
static __attribute__((noinline)) void next(struct chain *chain)
{
    HERE(chain);
    if (chain->left-- == 0)
        bottom(chain);
    else
        links[chain->left % (sizeof links / sizeof links[0])](chain);
    used(chain);
}

void CHAIN_NAME(struct chain *chain)
{
    HERE(chain);
    next(chain);
    used(chain);
}
