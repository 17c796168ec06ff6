/* What an NVTX range costs the program: ns for a push and a pop, with a fixed name and with
 * declared work. Alone it tells what the header itself takes; under `perfkit run` the difference is
 * perfkit's.
 *
 *     bench_nvtx_push [PAIRS] */
#include <stdio.h>
#include <stdlib.h>

#include "libprof/base/clock.h"
#include "libprof/include/perfkit/annotate.h"

static void push_range(void)
{
    perfkit_range_push("step");
    perfkit_range_pop();
}

static void push_work(void)
{
    perfkit_work_push("step", 1e6, 4096, 4096);
    perfkit_work_pop();
}

static double ns_each(void (*pair)(void), unsigned long pairs)
{
    for (unsigned long i = 0; i < pairs / 10; i++)
        pair();
    uint64_t begin = prof_now_ns();
    for (unsigned long i = 0; i < pairs; i++)
        pair();
    return (double)(prof_now_ns() - begin) / (double)pairs;
}

int main(int argc, char **argv)
{
    unsigned long pairs = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
    if (!pairs) {
        fprintf(stderr, "usage: bench_nvtx_push [PAIRS]\n");
        return 2;
    }
    printf("{\"range_ns\": %.1f, \"work_ns\": %.1f}\n", ns_each(push_range, pairs),
           ns_each(push_work, pairs));
    return 0;
}
