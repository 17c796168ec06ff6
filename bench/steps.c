/* A program whose steps last exactly as long as said: each sleeps, then computes until its time is
 * over. What a comparison of two of them must find is known.
 *
 *     bench_steps STEPS NS [SPREAD_NS]
 *
 * SPREAD_NS: all steps of a run are longer by a normally distributed share of it, as runs of real
 * programs differ. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/include/perfkit/annotate.h"

static double uniform(void)
{
    return ((double)random() + 0.5) / ((double)RAND_MAX + 1);
}

static void make_step(uint64_t ns)
{
    uint64_t end = prof_now_ns() + ns;
    struct timespec half = {0, (long)(ns / 2)};
    nanosleep(&half, NULL);
    while (prof_now_ns() < end) {
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: bench_steps STEPS NS [SPREAD_NS]\n");
        return 2;
    }
    double spread = argc > 3 ? strtod(argv[3], NULL) : 0;
    srandom((unsigned)(prof_now_ns() ^ (uint64_t)getpid()));
    double shift = spread * sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
    for (int i = atoi(argv[1]); i > 0; i--) {
        perfkit_range_push("step");
        make_step((uint64_t)(strtod(argv[2], NULL) + shift));
        perfkit_range_pop();
    }
    return 0;
}
