/* Calls of CUDA as CUPTI tells of them, and the clock of the test program. */
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/cuda/fakes/program.h"

/* The replayer's clock (fake_clock_fn). Ours comes before the C library's for the whole process, so
 * the collector too finds the time of the dump while a callback of the dump is played. */
static __thread uint64_t lent_time;

void fake_clock(uint64_t monotonic_ns);
void fake_clock(uint64_t monotonic_ns)
{
    lent_time = monotonic_ns;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (clock != CLOCK_MONOTONIC || lent_time == 0)
        return (int)syscall(SYS_clock_gettime, clock, time);
    time->tv_sec = (time_t)(lent_time / 1000000000u);
    time->tv_nsec = (long)(lent_time % 1000000000u);
    return 0;
}

static _Atomic uint32_t next_id = 1;

uint32_t play_id(void)
{
    return next_id++;
}

void play_skip_ids(uint32_t count)
{
    next_id += count;
}

uint64_t play_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void play_pause_ms(unsigned ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

void play_call(CUpti_ActivityKind kind, uint32_t cbid, uint32_t id, uint64_t start, uint64_t end,
               uint32_t result)
{
    CUpti_ActivityAPI api = {.kind = kind,
                             .cbid = cbid,
                             .start = start,
                             .end = end,
                             .processId = (uint32_t)getpid(),
                             .threadId = (uint32_t)syscall(SYS_gettid),
                             .correlationId = id,
                             .returnValue = result};
    fake.record(&api, sizeof api);
}

void play_runtime(uint32_t cbid, uint32_t id, uint64_t start)
{
    play_call(CUPTI_ACTIVITY_KIND_RUNTIME, cbid, id, start, start + 1000, 0);
}

void play_kernel_of(const char *name, uint32_t blocks, uint32_t id, uint64_t start, uint64_t end)
{
    CUpti_ActivityKernel10 k;
    memset(&k, 0, sizeof k);
    k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    k.registersPerThread = 32;
    k.start = start;
    k.end = end;
    k.contextId = 1;
    k.streamId = 7;
    k.gridX = (int32_t)blocks, k.gridY = k.gridZ = 1;
    k.blockX = 256, k.blockY = k.blockZ = 1;
    k.dynamicSharedMemory = 1024;
    k.correlationId = id;
    k.name = name;
    k.isDeviceLaunched = 0;
    fake.record(&k, sizeof k);
}

void play_kernel(const char *name, uint32_t id, uint64_t start, uint64_t end)
{
    play_kernel_of(name, 10, id, start, end);
}

void play_launch(const char *name)
{
    uint32_t id = play_id();
    uint64_t start = play_now();
    play_runtime(NOISE_CBID, id, start); /* must not be recorded */
    play_runtime(LAUNCH_CBID, id, start);
    play_kernel(name, id, start + 2000, start + 3000);
}

void play_copy(uint64_t bytes)
{
    uint32_t id = play_id();
    uint64_t start = play_now();
    play_runtime(COPY_CBID, id, start);
    CUpti_ActivityMemcpy6 m;
    memset(&m, 0, sizeof m);
    m.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    m.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    m.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
    m.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    m.bytes = bytes;
    m.start = start + 100, m.end = start + 900;
    m.contextId = 1, m.streamId = 7;
    m.correlationId = id;
    fake.record(&m, sizeof m);
}

void play_set(uint64_t bytes)
{
    uint32_t id = play_id();
    uint64_t start = play_now();
    play_runtime(MEMSET_CBID, id, start);
    CUpti_ActivityMemset4 m;
    memset(&m, 0, sizeof m);
    m.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    m.value = 0xab;
    m.bytes = bytes;
    m.start = start + 100, m.end = start + 900;
    m.contextId = 1, m.streamId = 7;
    m.correlationId = id;
    m.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    fake.record(&m, sizeof m);
}

void play_memory(CUpti_ActivityMemoryOperationType operation, uint64_t address, uint64_t bytes)
{
    uint32_t id = play_id();
    uint64_t start = play_now();
    CUpti_ActivityMemory4 m;
    memset(&m, 0, sizeof m);
    m.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
    m.memoryOperationType = operation;
    m.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    m.correlationId = id;
    m.address = address;
    m.bytes = bytes;
    m.timestamp = start + 500;
    m.contextId = 1;
    fake.record(&m, sizeof m);
    play_runtime(operation == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION ? MALLOC_CBID
                                                                              : FREE_CBID,
                 id, start);
}

void play_topology(void)
{
    CUpti_ActivityDevice5 d;
    memset(&d, 0, sizeof d);
    d.kind = CUPTI_ACTIVITY_KIND_DEVICE;
    d.name = "Fake H200";
    fake.uuid((unsigned char *)d.uuid.bytes, 0);
    d.numMultiprocessors = 132;
    d.globalMemorySize = 1u << 30;
    fake.record(&d, sizeof d);
    CUpti_ActivityContext3 c;
    memset(&c, 0, sizeof c);
    c.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
    c.contextId = 1;
    c.nullStreamId = 7;
    fake.record(&c, sizeof c);
}
