/* How a benchmark program takes turns with others. bench/overhead starts one process for each
 * configuration, all at once, and lets one after the other run a short round: what is compared is
 * seconds apart, and a process starts once for many rounds.
 *
 * BENCH_TURNS names two FIFOs, NAME.go (a byte for each round; anything but 'g', or its end, ends
 * the program) and NAME.out (our lines of JSON). Without it the program runs `rounds` rounds by
 * itself and prints to stdout. */
#ifndef PERFKIT_BENCH_TURNS_H
#define PERFKIT_BENCH_TURNS_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct turns {
    int go;
    FILE *out;
    long left; /* without FIFOs */
};

static inline uint64_t turns_now_ns(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

static inline void turns_open(struct turns *turns, long rounds)
{
    const char *name = getenv("BENCH_TURNS");
    char path[4096];
    turns->go = -1;
    turns->out = stdout;
    turns->left = rounds;
    if (!name)
        return;
    snprintf(path, sizeof path, "%s.out", name);
    turns->out = fopen(path, "w");
    snprintf(path, sizeof path, "%s.go", name);
    turns->go = open(path, O_RDONLY | O_CLOEXEC);
    if (!turns->out || turns->go < 0) {
        perror(path);
        exit(3);
    }
    fprintf(turns->out, "{\"ready\": true, \"pid\": %ld}\n", (long)getpid());
    fflush(turns->out);
}

/* Wait for our turn; 0: there are no more. */
static inline int turns_next(struct turns *turns)
{
    char byte = 0;
    if (turns->go < 0)
        return turns->left-- > 0;
    return read(turns->go, &byte, 1) == 1 && byte == 'g';
}

/* The most memory this process ever had resident, in KiB. Not ru_maxrss, which survives exec. */
static inline long turns_peak_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) {
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = atol(line + 6);
    }
    if (status)
        fclose(status);
    return kib;
}

/* The last line: what was done in all, and the memory at the end. */
static inline void turns_end(struct turns *turns, uint64_t operations, uint64_t gpu_used_bytes)
{
    fprintf(turns->out,
            "{\"end\": true, \"pid\": %ld, \"operations\": %llu, \"peak_kib\": %ld, "
            "\"gpu_used_bytes\": %llu, \"mono_ns\": %llu}\n",
            (long)getpid(), (unsigned long long)operations, turns_peak_kib(),
            (unsigned long long)gpu_used_bytes, (unsigned long long)turns_now_ns());
    fflush(turns->out);
}

#endif
