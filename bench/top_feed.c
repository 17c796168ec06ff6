/* A program that makes events at a steady pace for `perfkit top` to be measured on, without a GPU:
 * launches as CUDA makes them (an API call and a kernel, two events) and a copy for every ten of
 * them, through the collector's core. Between them it computes, always the same amount.
 *
 *     perfkit run -- bench_top_feed EVENTS_PER_SECOND SECONDS     prints JSON, one line */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "bench/device_scene.h"
#include "collectors/core/collector.h"
#include "libprof/base/clock.h"

#define SLICE_NS 1000000u
#define KERNELS 40

static uint32_t configs[KERNELS], stream_id, launch_name, copy_name;

static void define_things(void)
{
    stream_id = define_stream_and_kernels(configs, KERNELS);
    launch_name = collector_text("cudaLaunchKernel");
    copy_name = collector_text("cudaMemcpyAsync");
}

static void emit(uint64_t number)
{
    uint64_t now = prof_now_ns(), jitter = number * 2654435761u % 4000;
    bool copy = number % 10 == 0;
    struct wire_call call = {.head = {sizeof call, WIRE_CALL, WIRE_SOURCE_CUDA, 0},
                             .correlation = number,
                             .start = now - 20000,
                             .end = now - 18000,
                             .name = copy ? copy_name : launch_name,
                             .expects = WIRE_EXPECTS_ONE,
                             .klass = copy ? WIRE_CLASS_TRANSFER : WIRE_CLASS_LAUNCH};
    struct wire_times times = {0, 0, now - 15000 + jitter, now - 10000 + 2 * jitter};
    collector_count(copy ? WIRE_COUNT_TRANSFER_CALLED : WIRE_COUNT_LAUNCH_CALLED, 1);
    collector_emit(&call);
    if (copy) {
        struct wire_transfer transfer = {.head = {sizeof transfer, WIRE_TRANSFER, 0, stream_id},
                                         .correlation = number,
                                         .times = times,
                                         .bytes = 4096 << number % 12,
                                         .copy_kind = (uint8_t)(1 + number % 2),
                                         .blocking = 255};
        collector_emit(&transfer);
        return;
    }
    struct wire_kernel kernel = {.head = {sizeof kernel, WIRE_KERNEL, 0, stream_id},
                                 .correlation = number,
                                 .times = times,
                                 .config = configs[number % KERNELS]};
    collector_emit(&kernel);
}

/* About 5 us that no compiler removes. */
static uint64_t compute(uint64_t x)
{
    for (int i = 0; i < 4000; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

int main(int argc, char **argv)
{
    uint64_t rate = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
    uint64_t seconds = argc > 2 ? strtoull(argv[2], NULL, 10) : 10, made = 0, x = 1;
    uint64_t launches = rate / 2 * SLICE_NS / 1000000000u, slices = seconds * 1000;
    if (collector_active())
        define_things();
    uint64_t start = prof_now_ns();
    for (uint64_t i = 0; i < slices; i++) {
        for (uint64_t k = 0; k < launches; k++)
            emit(++made);
        for (int k = 0; k < 20; k++)
            x = compute(x);
        uint64_t next = start + (i + 1) * SLICE_NS, now = prof_now_ns();
        if (now < next)
            nanosleep(&(struct timespec){.tv_nsec = (long)(next - now)}, NULL);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"events\": %llu, \"seconds\": %.3f, \"cpu_s\": %.3f, \"check\": %u}\n",
           (unsigned long long)made * 2, (double)(prof_now_ns() - start) / 1e9,
           seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime), (unsigned)(x >> 60));
    return 0;
}
