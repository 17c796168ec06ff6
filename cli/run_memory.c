/* Samples of the driver's own count of GPU memory, and of the clocks, for the capture. A sample of
 * memory that says what the last one said is left out, but for one a second. perfkit asks, not the
 * target: nothing of it is on the program's threads, and nothing on a machine without an NVIDIA
 * driver. */
#include <string.h>
#include <sys/stat.h>

#include "cli/run_memory.h"
#include "libprof/base/clock.h"
#include "libprof/base/format.h"

#define EVERY_NS 50000000u
#define AT_LEAST_NS 1000000000u
#define CLOCKS_NS 100000000u
#define PROCESSES 128

#define FIRST_PID_NAMESPACE 0xeffffffcu /* include/linux/proc_ns.h: PROC_PID_INIT_INO */

void memory_watch_init(struct memory_watch *watch, const char *trace)
{
    struct stat info;
    *watch = (struct memory_watch){.wanted = !trace || strstr(trace, "cuda")};
    /* In a container the driver tells the host's pids, or none. */
    watch->pids_are_real =
        stat("/proc/self/ns/pid", &info) == 0 && info.st_ino == FIRST_PID_NAMESPACE;
}

static void open_driver(struct memory_watch *watch)
{
    watch->tried = true;
    watch->nvml = prof_nvml_open();
    while (watch->count < WATCHED_DEVICES &&
           prof_nvml_uuid(watch->nvml, watch->count, watch->devices[watch->count].uuid))
        watch->count++;
}

static bool is_memory_change(const struct watched_device *device,
                             const struct prof_ingest_memory *sample)
{
    return !device->kept_ns || device->used_bytes != sample->used_bytes ||
           sample->mono_ns - device->kept_ns >= AT_LEAST_NS;
}

static void sample_device_memory(struct memory_watch *watch, struct watched_device *device,
                                 struct prof_ingest *ingest)
{
    struct prof_nvml_process processes[PROCESSES];
    struct prof_ingest_memory sample = {
        .uuid = device->uuid, .mono_ns = prof_now_ns(), .process_count = -1};
    if (!prof_nvml_memory(watch->nvml, device->uuid, &sample.used_bytes, &sample.total_bytes))
        return;
    if (!device->has_before) {
        device->before = sample;
        device->has_before = true;
    }
    bool met = !device->known && prof_ingest_has_device(ingest, device->uuid);
    if (met)
        prof_ingest_device_memory(ingest, &device->before, 1, NULL);
    device->known |= met;
    if (!device->known || !is_memory_change(device, &sample))
        return;
    if (watch->pids_are_real) {
        sample.process_count = prof_nvml_processes(watch->nvml, device->uuid, processes, PROCESSES);
        sample.processes = processes;
    }
    if (prof_ingest_device_memory(ingest, &sample, 1, NULL))
        return;
    device->used_bytes = sample.used_bytes;
    device->kept_ns = sample.mono_ns;
}

/* Clocks are those of a GPU at work: nothing is asked before the program has found it. */
static void look_at_clocks(struct memory_watch *watch, struct watched_device *device,
                           struct prof_ingest *ingest)
{
    uint64_t now = prof_now_ns();
    if (!device->known || now - device->clocks_ns < CLOCKS_NS)
        return;
    struct prof_nvml_reading reading = prof_nvml_clocks(watch->nvml, device->uuid);
    if (reading.sm_mhz != PROF_UNKNOWN || reading.throttle != PROF_UNKNOWN)
        prof_ingest_device_clock(ingest, device->uuid, now, &reading, NULL);
    device->clocks_ns = now;
}

void memory_watch_step(struct memory_watch *watch, struct prof_ingest *ingest)
{
    uint64_t now = prof_now_ns();
    if (!watch->wanted || now < watch->next_ns)
        return;
    watch->next_ns = now + EVERY_NS;
    if (!watch->tried)
        open_driver(watch);
    for (unsigned i = 0; i < watch->count; i++) {
        sample_device_memory(watch, &watch->devices[i], ingest);
        look_at_clocks(watch, &watch->devices[i], ingest);
    }
}

void memory_watch_end(struct memory_watch *watch)
{
    prof_nvml_close(watch->nvml);
    *watch = (struct memory_watch){0};
}
