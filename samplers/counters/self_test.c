/* `perfkit_sampler --self-test`: the way to the counters step by step, with what each call took,
 * for a machine on which sampling does not do what it should. Nothing is recorded. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/base/regular.h"
#include "samplers/counters/device.h"
#include "samplers/counters/pm_api.h"
#include "samplers/counters/sampler.h"

#define BUSY_BYTES_PER_NS 200.0 /* DRAM reads above this: a copy runs */

struct seen {
    struct counter_gpu *gpu;
    uint64_t samples, first_ns, last_ns, shortest_ns, longest_ns, gaps, timeless, empty;
    uint64_t previous_end;
    double sums[COUNTER_SET_MAX];
    uint64_t from_ns, to_ns;
    bool edges, was_busy;
};

/* When DRAM reads set in and end: to be laid beside what a program says of its own copies. */
static void show_edge(struct seen *seen, const struct counter_sample *sample)
{
    for (size_t i = 0; i < counter_gpu_count(seen->gpu); i++) {
        if (strcmp(counter_gpu_row(seen->gpu, i)->name, "dram_read_bytes") != 0)
            continue;
        double length = (double)(sample->end_ns - sample->start_ns);
        bool busy = sample->values[i] > BUSY_BYTES_PER_NS * length;
        if (busy != seen->was_busy)
            printf("  edge %s %" PRIu64 " %" PRIu64 "\n", busy ? "up  " : "down", sample->start_ns,
                   sample->end_ns);
        seen->was_busy = busy;
    }
}

static void count_seen_sample(void *context, const struct counter_sample *sample)
{
    struct seen *seen = context;
    uint64_t length = sample->end_ns - sample->start_ns;
    seen->timeless += sample->start_ns == 0;
    seen->empty += length == 0;
    if (sample->start_ns == 0 || length == 0)
        return;
    if (seen->samples++ == 0) {
        seen->first_ns = sample->start_ns;
        printf("  first sample: %" PRIu64 " ns long, starts %.3f ms after start\n", length,
               ((double)sample->start_ns - (double)seen->from_ns) / 1e6);
        seen->previous_end = sample->end_ns;
        return; /* its length is not to be trusted */
    }
    if (sample->start_ns != seen->previous_end)
        seen->gaps++;
    seen->previous_end = sample->end_ns;
    seen->last_ns = sample->end_ns;
    if (seen->shortest_ns == 0 || length < seen->shortest_ns)
        seen->shortest_ns = length;
    if (length > seen->longest_ns)
        seen->longest_ns = length;
    for (size_t i = 0; i < counter_gpu_count(seen->gpu); i++)
        seen->sums[i] += sample->values[i];
    if (seen->edges)
        show_edge(seen, sample);
}

static double since_ms(uint64_t from)
{
    return (double)(prof_now_ns() - from) / 1e6;
}

static void nap(double ms)
{
    struct timespec t = {(time_t)(ms / 1e3), (long)((ms - 1e3 * floor(ms / 1e3)) * 1e6)};
    nanosleep(&t, NULL);
}

/* Resident memory of this process, in KiB. */
static long resident_kib(void)
{
    long pages = 0;
    char line[128];
    if (!prof_first_line("/proc/self/statm", line, sizeof line) ||
        sscanf(line, "%*d %ld", &pages) != 1)
        pages = 0;
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static bool test_burst(struct counter_gpu *gpu, const struct counter_self_test *options)
{
    char why[COUNTER_WHY_BYTES];
    struct seen seen = {.gpu = gpu, .from_ns = prof_now_ns(), .edges = options->edges};
    if (!counter_gpu_start(gpu, why)) {
        printf("start: %s\n", why);
        return false;
    }
    double start_ms = since_ms(seen.from_ns);
    nap(options->burst_ms);
    uint64_t at = prof_now_ns();
    if (!counter_gpu_stop(gpu, why)) {
        printf("stop: %s\n", why);
        return false;
    }
    seen.to_ns = prof_now_ns();
    printf("burst: start took %.2f ms, stop %.2f ms, CLOCK_MONOTONIC %" PRIu64 " to %" PRIu64 "\n",
           start_ms, since_ms(at), seen.from_ns, seen.to_ns);
    bool overflow = false;
    int batches = 0, got;
    uint64_t cpu = prof_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    at = prof_now_ns();
    while ((got = counter_gpu_decode(gpu, count_seen_sample, &seen, &overflow, why)) > 0)
        batches++;
    cpu = prof_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
    if (got < 0)
        printf("decode: %s\n", why);
    printf("  %ld KiB resident\n", resident_kib());
    printf("  %" PRIu64 " samples in %d batches%s, %.1f us of CPU and %.1f us of time a sample\n",
           seen.samples, batches, overflow ? ", OVERFLOW" : "",
           seen.samples ? (double)cpu / 1e3 / (double)seen.samples : 0.0,
           seen.samples ? since_ms(at) * 1e3 / (double)seen.samples : 0.0);
    printf("  samples from %+.3f ms to %+.3f ms of the burst's start, %" PRIu64 " to %" PRIu64
           " ns long, %" PRIu64 " gaps, %" PRIu64 " without times, %" PRIu64 " of no length\n",
           ((double)seen.first_ns - (double)seen.from_ns) / 1e6,
           ((double)seen.last_ns - (double)seen.from_ns) / 1e6, seen.shortest_ns, seen.longest_ns,
           seen.gaps, seen.timeless, seen.empty);
    for (size_t i = 0; i < counter_gpu_count(gpu); i++)
        printf("  %-22s %16.6g %-12s peak/cycle %-10g %s\n", counter_gpu_row(gpu, i)->name,
               seen.sums[i], counter_gpu_row(gpu, i)->unit, counter_gpu_peak(gpu, i),
               counter_gpu_metric(gpu, i));
    return got == 0;
}

/* Of the set, those that `names` lists (NULL = all). */
static bool metric_is_listed(const char *names, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = names; at && *at; at += strcspn(at, ","), at += *at == ',') {
        if (strcspn(at, ",") == length && strncmp(at, name, length) == 0)
            return true;
    }
    return !names;
}

static const struct counter_set *chosen(const char *names)
{
    static struct counter_row rows[COUNTER_SET_MAX * 2];
    static struct counter_set set = {.name = "self-test", .rows = rows};
    const struct counter_set *all = counter_set_find("roofline");
    for (size_t i = 0; i < all->count && set.count < sizeof rows / sizeof rows[0]; i++) {
        if (metric_is_listed(names, all->rows[i].name))
            rows[set.count++] = all->rows[i];
    }
    return &set;
}

/* Each call a few times: a burst makes thousands. */
static void show_step(const char *call)
{
    static struct {
        const char *call;
        unsigned times;
    } seen[32];
    for (unsigned i = 0; i < sizeof seen / sizeof seen[0]; i++) {
        if (seen[i].call && seen[i].call != call)
            continue;
        seen[i].call = call;
        if (seen[i].times++ < 3)
            printf("    %s\n", call);
        return;
    }
}

static void show_missing(const struct counter_gpu *gpu, const struct counter_set *set)
{
    enum counter_family family = counter_family_of(counter_gpu_chip(gpu));
    for (size_t i = 0, n = 0; i < set->count; i++) {
        if (n < counter_gpu_count(gpu) && counter_gpu_row(gpu, n) == &set->rows[i])
            n++;
        else if (set->rows[i].metric[family])
            printf("  this device has no %s\n", set->rows[i].metric[family]);
    }
}

int counter_self_test(const struct counter_self_test *options)
{
    char why[COUNTER_WHY_BYTES];
    uint64_t at = prof_now_ns();
    int count = 0;
    uint32_t version = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!cuda_driver_load(why, sizeof why) || !pm_load(options->cupti_path, why, sizeof why)) {
        printf("%s\n", why);
        return 1;
    }
    pm.GetVersion(&version);
    cuda_driver.DeviceGetCount(&count);
    printf("driver and CUPTI %" PRIu32 " loaded in %.1f ms, %d GPUs\n", version, since_ms(at),
           count);
    if (options->own_clock)
        printf("timestamp callback: %d\n", pm.ActivityRegisterTimestampCallback(prof_now_ns));
    uint64_t stamp = 0, before = prof_now_ns();
    int result = pm.GetTimestamp(&stamp);
    printf("cuptiGetTimestamp: %d, %+.3f us of CLOCK_MONOTONIC\n", result,
           ((double)stamp - (double)before) / 1e3);
    at = prof_now_ns();
    result = pm.ProfilerInitialize(&(struct pm_nothing){.size = PM_SIZE(pm_nothing, priv)});
    printf("cuptiProfilerInitialize: %d in %.1f ms\n", result, since_ms(at));
    if (options->context) {
        void *context = NULL;
        at = prof_now_ns();
        result = cuda_driver.DevicePrimaryCtxRetain(&context, (int)options->device);
        printf("primary context: %d, current: %d, in %.1f ms\n", result,
               cuda_driver.CtxSetCurrent(context), since_ms(at));
    }
    at = prof_now_ns();
    const struct counter_set *set = chosen(options->counters);
    struct counter_plan plan = {.interval_ns = options->interval_ns,
                                .hardware_bytes = options->hardware_bytes,
                                .batch = options->batch,
                                .keep_oldest = options->keep_oldest,
                                .no_peaks = options->no_peaks};
    if (options->steps)
        counter_gpu_step = show_step;
    struct counter_gpu *gpu = counter_gpu_open(options->device, set, &plan, why);
    if (!gpu) {
        printf("open: %s\n", why);
        return 1;
    }
    printf("%s opened in %.1f ms, %zu counters, every %" PRIu64 " ns\n", counter_gpu_chip(gpu),
           since_ms(at), counter_gpu_count(gpu), options->interval_ns);
    if (counter_gpu_blind(gpu))
        printf("  the availability image could not be used\n");
    show_missing(gpu, set);
    bool ok = true;
    for (unsigned i = 0; i < options->bursts && ok; i++) {
        ok = test_burst(gpu, options);
        nap(options->pause_ms);
    }
    at = prof_now_ns();
    counter_gpu_close(gpu);
    printf("closed in %.1f ms\n", since_ms(at));
    return ok ? 0 : 1;
}
