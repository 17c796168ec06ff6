/* What the sampler of the host is measured on: a fixed amount of computing in a deep stack, threads
 * that hand a byte to and fro, children that start and end. Prints ns a round; the way into main is
 * not in it.
 *
 *     bench_host_work compute|switch|children ROUNDS */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/clock.h"

#define DEPTH 30
#define INNER 10000u

static volatile unsigned sink;

static __attribute__((noinline)) void compute(unsigned depth, unsigned long rounds)
{
    if (depth) {
        compute(depth - 1, rounds);
        sink++; /* no tail call */
        return;
    }
    for (unsigned long round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < INNER; i++)
            sink += i;
    }
}

struct pipes {
    int there[2], back[2];
    unsigned long rounds;
};

static bool hand_over(int from, int to)
{
    char byte = 0;
    return (from < 0 || read(from, &byte, 1) == 1) && (to < 0 || write(to, &byte, 1) == 1);
}

static void *answer(void *argument)
{
    const struct pipes *pipes = argument;
    for (unsigned long i = 0; i < pipes->rounds && hand_over(pipes->there[0], pipes->back[1]);
         i++) {
    }
    return NULL;
}

static void ping_pong(unsigned long rounds)
{
    struct pipes pipes = {.rounds = rounds};
    pthread_t thread;
    if (pipe(pipes.there) != 0 || pipe(pipes.back) != 0 ||
        pthread_create(&thread, NULL, answer, &pipes) != 0)
        exit(1);
    for (unsigned long i = 0; i < rounds; i++) {
        if (!hand_over(-1, pipes.there[1]) || !hand_over(pipes.back[0], -1))
            exit(1);
    }
    pthread_join(thread, NULL);
}

static void start_children(unsigned long rounds)
{
    for (unsigned long i = 0; i < rounds; i++) {
        pid_t child = fork();
        if (child == 0) {
            execlp("true", "true", (char *)NULL);
            _exit(1);
        }
        waitpid(child, NULL, 0);
    }
}

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (rounds == 0) {
        fprintf(stderr, "usage: bench_host_work compute|switch|children ROUNDS\n");
        return 2;
    }
    uint64_t began = prof_now_ns(), used = prof_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (!strcmp(argv[1], "compute"))
        compute(DEPTH, rounds);
    else if (!strcmp(argv[1], "switch"))
        ping_pong(rounds);
    else
        start_children(rounds);
    printf("%.1f %.1f\n", (double)(prof_now_ns() - began) / (double)rounds,
           (double)(prof_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - used) / (double)rounds);
    return 0;
}
