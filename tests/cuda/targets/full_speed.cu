/* Launches as fast as it can until it is killed, and keeps in a shared file what it had done by
 * when, so that a capture can be compared with it after a SIGKILL.
 *
 *     cuda_full_speed FILE [SECONDS]
 *
 * FILE: struct progress below, little-endian 64-bit words. Samples are of the count of launches
 * known to be complete on the device, one about every millisecond; the newest is number `samples`
 * - 1. */
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "did.h"

#define SAMPLES 65536u
#define BATCH 128u
#define EVENTS 8u

struct progress {
    uint64_t pid;
    uint64_t launched, launched_ns; /* last launch that returned */
    uint64_t complete, complete_ns; /* last one known complete, and when that was known */
    uint64_t samples;
    uint64_t reserved[2];
    struct {
        uint64_t complete, ns;
    } sample[SAMPLES];
};

extern "C" __global__ void full_speed()
{
}

static uint64_t now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void completed(struct progress *to, uint64_t count)
{
    uint64_t time = now();
    to->complete = count;
    to->complete_ns = time;
    uint64_t last = to->samples ? to->sample[(to->samples - 1) % SAMPLES].ns : 0;
    if (time - last < 1000000u)
        return;
    to->sample[to->samples % SAMPLES].complete = count;
    to->sample[to->samples % SAMPLES].ns = time;
    __atomic_store_n(&to->samples, to->samples + 1, __ATOMIC_RELEASE);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    uint64_t end = argc > 2 ? now() + (uint64_t)(atof(argv[2]) * 1e9) : UINT64_MAX;
    int file = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(struct progress)) != 0)
        return 2;
    struct progress *to =
        (struct progress *)mmap(NULL, sizeof *to, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (to == MAP_FAILED)
        return 2;
    cudaStream_t stream;
    cudaEvent_t event[EVENTS];
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (cudaEvent_t &e : event)
        CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    to->pid = (uint64_t)getpid();
    uint64_t recorded = 0, seen = 0; /* batches */
    for (uint64_t i = 1; now() < end; i++) {
        full_speed<<<1, 1, 0, stream>>>();
        to->launched_ns = now();
        __atomic_store_n(&to->launched, i, __ATOMIC_RELEASE);
        if (i % BATCH != 0)
            continue;
        if (recorded - seen ==
            EVENTS) { /* the oldest must be over before its event is used again */
            CHECK(cudaEventSynchronize(event[seen % EVENTS]));
            seen++;
        }
        CHECK(cudaEventRecord(event[recorded++ % EVENTS], stream));
        while (seen < recorded && cudaEventQuery(event[seen % EVENTS]) == cudaSuccess)
            seen++;
        completed(to, seen * BATCH);
    }
    CHECK(cudaDeviceSynchronize());
    completed(to, to->launched);
    return 0;
}
