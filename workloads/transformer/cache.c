/* How often the host's cache is asked and misses, by perf_event_open where the machine has such
 * counters and lets us read them. They count the user's side of this process's threads, those that
 * are made after cache_open included. */
#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "workloads/transformer/workload.h"

static int open_counter(uint64_t config)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
                                   .size = sizeof attr,
                                   .config = config,
                                   .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
                                                  PERF_FORMAT_TOTAL_TIME_RUNNING,
                                   .inherit = 1,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};

    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static const char *reason_of(int error)
{
    switch (error) {
    case ENOENT:
    case EOPNOTSUPP:
        return "this machine shows no hardware counters";
    case EACCES:
    case EPERM:
        return "not permitted: /proc/sys/kernel/perf_event_paranoid must be 2 or less";
    case ENOSYS:
        return "this kernel has no perf_event_open";
    default:
        return strerror(error);
    }
}

int cache_open(struct cache_counters *counters, char *why, size_t why_bytes)
{
    counters->references = open_counter(PERF_COUNT_HW_CACHE_REFERENCES);
    counters->misses = counters->references < 0 ? -1 : open_counter(PERF_COUNT_HW_CACHE_MISSES);
    if (counters->misses >= 0)
        return 0;
    snprintf(why, why_bytes, "no counters of the cache: %s", reason_of(errno));
    cache_close(counters);
    return -1;
}

void cache_close(struct cache_counters *counters)
{
    if (counters->references >= 0)
        close(counters->references);
    if (counters->misses >= 0)
        close(counters->misses);
    counters->references = counters->misses = -1;
}

/* Scaled up where the counter shared the hardware with others. */
static double read_counter(int counter)
{
    uint64_t value[3]; /* the count, the time enabled, the time counting */

    if (counter < 0 || read(counter, value, sizeof value) != (ssize_t)sizeof value || !value[2])
        return NAN;
    return (double)value[0] * (double)value[1] / (double)value[2];
}

void cache_read(const struct cache_counters *counters, double *references, double *misses)
{
    *references = read_counter(counters->references);
    *misses = read_counter(counters->misses);
}
