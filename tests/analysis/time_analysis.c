/* Times every analysis on one capture and prints seconds and the peak of memory: run by hand on a
 * file of perfkit_big_capture. Not a test by itself. */
#include <stdio.h>
#include <sys/resource.h>

#include "libprof/base/clock.h"
#include "libprof/include/prof.h"

static uint64_t begun, begun_cpu;

static void lap(const char *what, long long rows)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%-24s %7.2f s (processor %6.2f s) %9lld rows  peak %5ld MiB\n", what,
           (double)(prof_now_ns() - begun) / 1e9,
           (double)(prof_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begun_cpu) / 1e9, rows,
           usage.ru_maxrss / 1024);
    fflush(stdout);
    begun = prof_now_ns();
    begun_cpu = prof_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static long long walk(struct prof_capture *capture, uint32_t kinds)
{
    struct prof_events *events;
    struct prof_event event;
    struct prof_error err = {0};
    long long count = 0;
    if (prof_events_open(capture, NULL, kinds, &events, &err))
        return -1;
    while (prof_events_next(events, &event))
        count++;
    return prof_events_close(events, &err) ? -1 : count;
}

int main(int argc, char **argv)
{
    struct prof_capture *capture;
    struct prof_error err = {0};
    begun = prof_now_ns();
    if (argc != 2 || prof_open(argv[1], &capture, &err)) {
        fprintf(stderr, "usage: %s CAPTURE: %s\n", argv[0], err.message);
        return 2;
    }
    lap("open", 0);
#define TIME(type, call)                                                                           \
    do {                                                                                           \
        struct type r;                                                                             \
        if (call)                                                                                  \
            fprintf(stderr, "%s: %s\n", #type, err.message);                                       \
        lap(#type, (long long)r.count);                                                            \
        type##_free(&r);                                                                           \
    } while (0)
    TIME(prof_kernel_summary, prof_kernel_summary(capture, NULL, PROF_BY_NAME, &r, &err));
    TIME(prof_transfer_summary, prof_transfer_summary(capture, NULL, &r, &err));
    TIME(prof_api_summary, prof_api_summary(capture, NULL, &r, &err));
    TIME(prof_sync_summary, prof_sync_summary(capture, NULL, &r, &err));
    TIME(prof_range_summary, prof_range_summary(capture, NULL, &r, &err));
    TIME(prof_memory_summary, prof_memory_summary(capture, NULL, 10, &r, &err));
    TIME(prof_memory_timeline, prof_memory_timeline(capture, NULL, -1, 1000, &r, &err));
    TIME(prof_utilisation, prof_utilisation(capture, NULL, 10, 1000, &r, &err));
    TIME(prof_flame, prof_flame(capture, NULL, PROF_FLAME_DEVICE_NS, &r, &err));
    TIME(prof_findings, prof_findings(capture, NULL, &r, &err));
    lap("events, device", walk(capture, PROF_EVENTS_DEVICE));
    lap("events, all", walk(capture, PROF_EVENTS_ALL));
    prof_close(capture);
    return 0;
}
