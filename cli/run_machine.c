/* What perfkit itself reads of the machine while the program runs: samples of the driver's own
 * count of GPU memory and of the clocks, and two readings of the network ports' counters. A sample
 * of memory that says what the last one said is left out, but for one a second. Nothing of it is on
 * the program's threads, and nothing on a machine without an NVIDIA driver or network ports. */
#include <string.h>
#include <sys/stat.h>

#include "cli/run.h"
#include "libprof/base/clock.h"
#include "libprof/base/format.h"

#define EVERY_NS 50000000u
#define AT_LEAST_NS 1000000000u
#define CLOCKS_NS 100000000u
#define PROCESSES 128

#define FIRST_PID_NAMESPACE 0xeffffffcu /* include/linux/proc_ns.h: PROC_PID_INIT_INO */

static void start_memory_watch(struct run *run)
{
    struct stat info;
    const char *trace = run->options.trace;
    run->memory = (struct memory_watch){.wanted = !trace || strstr(trace, "cuda")};
    /* In a container the driver tells the host's pids, or none. */
    run->memory.pids_are_real =
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

/* Some microseconds, a few times a second. Trouble with the capture file is the next ingest step's
 * to report, here and below. */
static void step_memory_watch(struct run *run)
{
    struct memory_watch *watch = &run->memory;
    uint64_t now = prof_now_ns();
    if (!watch->wanted || now < watch->next_ns)
        return;
    watch->next_ns = now + EVERY_NS;
    if (!watch->tried)
        open_driver(watch);
    for (unsigned i = 0; i < watch->count; i++) {
        sample_device_memory(watch, &watch->devices[i], run->ingest);
        look_at_clocks(watch, &watch->devices[i], run->ingest);
    }
}

static void stop_memory_watch(struct run *run, bool ran)
{
    (void)ran;
    prof_nvml_close(run->memory.nvml);
    run->memory = (struct memory_watch){0};
}

const struct run_feature run_memory = {.name = "memory",
                                       .start = start_memory_watch,
                                       .step = step_memory_watch,
                                       .stop = stop_memory_watch};

/* ---- network -------------------------------------------------------------------------------- */

#define SYS_CLASS "/sys/class"

static void start_network_watch(struct run *run)
{
    run->network.begin_ns = prof_now_ns();
    run->network.count = prof_network_read(SYS_CLASS, run->network.before);
}

static const struct prof_network_port *find_port_before(const struct network_watch *watch,
                                                        const char *name)
{
    for (size_t i = 0; i < watch->count; i++) {
        if (strcmp(watch->before[i].name, name) == 0)
            return &watch->before[i];
    }
    return NULL;
}

/* Writes a row for each port that carried something, where the program had ranks. Counters that
 * went back were reset by somebody: then nothing is known. */
static void stop_network_watch(struct run *run, bool ran)
{
    const struct network_watch *watch = &run->network;
    struct prof_network_port now[PROF_NETWORK_PORTS];
    size_t count = ran ? prof_network_read(SYS_CLASS, now) : 0, kept = 0;
    for (size_t i = 0; i < count; i++) {
        const struct prof_network_port *then = find_port_before(watch, now[i].name);
        if (!then || now[i].received < then->received || now[i].sent < then->sent)
            continue;
        now[kept] = now[i];
        now[kept].received -= then->received;
        now[kept].sent -= then->sent;
        kept += now[kept].received > 0 || now[kept].sent > 0;
    }
    if (ran)
        prof_ingest_network(run->ingest, now, kept, watch->begin_ns, prof_now_ns(), NULL);
}

const struct run_feature run_network = {
    .name = "network", .started = start_network_watch, .stop = stop_network_watch};
