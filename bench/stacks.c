/* What a call stack costs: ns per stack by depth and way of unwinding, and bytes per distinct
 * stack.
 *
 *   rules     collectors/stacks as the target uses it (rules known by address)
 *
 *   asking    the same where dlclose is not seen (--no-preload): is each module still there?
 *
 *   taken     the same with everything around: hash, table, number; what a launch pays
 *
 *   first     the same where every rule has to be read from the tables
 *
 *   glibc     backtrace(3): _Unwind_Backtrace of libgcc, for comparison
 *
 *   pointers  following rbp and nothing else: right only where all code keeps it
 *
 *     bench_stacks [REPEATS]      prints JSON, one line a depth */
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/stacks/stacks.h"
#include "collectors/stacks/unwind.h"
#include "libprof/base/clock.h"
#include "tests/stacks/fake_core.h"

static struct unwind_rules rules;
static struct stacks_modules modules;
static struct unwound seen;
static unsigned long repeats = 200000;

static __attribute__((noinline)) void take_rules(unsigned depth)
{
    struct unwind_start here;
    UNWIND_START(&here);
    unwind(&rules, &modules, &here, depth, &seen);
}

static __attribute__((noinline)) void take_whole(unsigned depth)
{
    (void)depth; /* --stack-depth, given before */
    stacks_take(STACKS_LAUNCH);
    __asm__ volatile("");
}

static __attribute__((noinline)) void take_first(unsigned depth)
{
    atomic_fetch_add(&modules.generation, 1); /* what is known counts no more */
    take_rules(depth);
}

static __attribute__((noinline)) void take_glibc(unsigned depth)
{
    static void *frames[256];
    backtrace(frames, (int)depth);
    __asm__ volatile("");
}

static __attribute__((noinline)) void take_pointers(unsigned depth)
{
    static uint64_t frames[256];
    uint64_t *at = __builtin_frame_address(0);
    for (unsigned i = 0; i < depth; i++) {
        frames[i] = at[1];
        at = (uint64_t *)(uintptr_t)at[0];
    }
    __asm__ volatile("" : : "r"(frames) : "memory");
}

static double time_of(void (*take)(unsigned), unsigned depth, unsigned long times)
{
    double best = 1e9;
    take(depth);
    for (unsigned round = 0; round < 5; round++) {
        uint64_t start = prof_now_ns();
        for (unsigned long i = 0; i < times; i++)
            take(depth);
        double ns = (double)(prof_now_ns() - start) / (double)times;
        best = ns < best ? ns : best;
    }
    return best;
}

/* Not one function alone: three, of different frames. */
static __attribute__((noinline)) void descend(unsigned left, unsigned depth);
static __attribute__((noinline)) void descend_far(unsigned left, unsigned depth)
{
    char room[400];
    __asm__ volatile("" : : "r"(room) : "memory");
    descend(left, depth);
    __asm__ volatile("");
}

static __attribute__((noinline)) void measure(unsigned depth)
{
    printf("{\"depth\": %u, \"rules_ns\": %.1f, \"first_ns\": %.1f, \"glibc_ns\": %.1f, "
           "\"pointers_ns\": %.1f, ",
           depth, time_of(take_rules, depth, repeats), time_of(take_first, depth, repeats / 100),
           time_of(take_glibc, depth, repeats / 10), time_of(take_pointers, depth, repeats));
    stacks_unloads_seen = false;
    printf("\"asking_ns\": %.1f, ", time_of(take_rules, depth, repeats));
    stacks_unloads_seen = true;
}

static void descend(unsigned left, unsigned depth)
{
    if (left == 0)
        measure(depth);
    else if (left % 2)
        descend_far(left - 1, depth);
    else
        descend(left - 1, depth);
    __asm__ volatile("");
}

/* Of the program's frames the whole stack has `depth` in all: the C library's and ours are among
 * them. */
static __attribute__((noinline)) void whole(unsigned left, uint32_t *entries)
{
    if (left > 0) {
        whole(left - 1, entries);
    } else {
        printf("\"taken_ns\": %.1f, ", time_of(take_whole, 0, repeats));
        *entries = fake_core_stack(stacks_take(STACKS_LAUNCH))->count;
    }
    __asm__ volatile("");
}

int main(int argc, char **argv)
{
    static const unsigned depths[] = {1, 10, 30, 60, 120};
    repeats = argc > 1 ? strtoul(argv[1], NULL, 10) : repeats;
    if (repeats < 100)
        return 2;
    stacks_modules_start();
    stacks_unloads_seen = true; /* as in a program with the library preloaded */
    stacks_every[STACKS_LAUNCH] = 1;
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        uint32_t entries = 0;
        descend(depths[i] + 10, depths[i]);
        whole(depths[i] > 8 ? depths[i] - 8 : 0, &entries);
        printf("\"taken_depth\": %u, \"table_bytes\": 16, \"spool_bytes\": %zu}\n", entries,
               sizeof(struct wire_stack) + entries * sizeof(uint64_t));
    }
    return 0;
}
