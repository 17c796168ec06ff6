/* perfkit's own process for the counters of all GPUs of a run. It is not the target's business: PM
 * sampling takes a device, not a context, so nothing of this runs in the program that is profiled.
 *
 * One thread: burst, decode, write, sleep, GPU after GPU. What it may cost is in sampler.c. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/base/distribution.h"
#include "libprof/base/regular.h"
#include "libprof/spool/control.h"
#include "samplers/counters/device.h"
#include "samplers/counters/pm_api.h"
#include "samplers/counters/sampler.h"
#include "samplers/counters/spool_out.h"

#define MAX_GPUS 16u
#define MAX_FAILURES 3u
#define CLOSED_WAIT_NS 20000000ull /* between looks while nothing is to be recorded */
#define IDLE_WAIT_NS 200000000ull  /* and while no process uses a GPU */

struct sampled_gpu {
    unsigned index;
    uint32_t id; /* counter device id */
    char uuid[CUDA_UUID_BYTES], name[96];
    struct counter_gpu *gpu;
    void *nvml;
    int lock;
    bool defined; /* its counters are */
    bool failed;
    unsigned failures; /* bursts in a row that could not be read */
    unsigned unread;   /* in all */
    char why[COUNTER_WHY_BYTES];
    struct others others;
    /* the burst that is being decoded */
    uint64_t first_ns, last_ns;
    uint32_t samples;
};

struct sampler {
    const struct sampler_options *options;
    const struct counter_set *set;
    struct spool_out out;
    struct control_page *control;
    struct sampled_gpu gpus[MAX_GPUS];
    unsigned count, next;
    struct pace pace;
    uint64_t cpu_began_ns, began_ns, sampled_ns, samples, bursts;
};

static volatile sig_atomic_t stop_asked;

void sampler_stop(void)
{
    stop_asked = 1;
}

/* ---- opening --------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void
say(struct sampler *sampler, enum wire_health_state state, const char *format, ...)
{
    char text[480];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    spool_out_health(&sampler->out, state, text);
}

static void name_gpu(struct sampled_gpu *gpu)
{
    int device = 0;
    uint8_t bytes[16] = {0};
    cuda_driver.DeviceGet(&device, (int)gpu->index);
    cuda_driver.DeviceGetName(gpu->name, sizeof gpu->name, device);
    cuda_driver.DeviceGetUuid(bytes, device);
    cuda_uuid_text(bytes, gpu->uuid);
}

static bool start_gpu(const struct sampler *sampler, struct sampled_gpu *gpu,
                      char why[COUNTER_WHY_BYTES])
{
    struct counter_plan plan = {.interval_ns = sampler->options->interval_ns};
    gpu->gpu = counter_gpu_open(gpu->index, sampler->set, &plan, why);
    return gpu->gpu != NULL;
}

static bool open_gpu(struct sampler *sampler, struct sampled_gpu *gpu)
{
    char why[COUNTER_WHY_BYTES];
    name_gpu(gpu);
    if (!gpu_lock_take(gpu->uuid, &gpu->lock)) {
        say(sampler, WIRE_HEALTH_DEGRADED,
            "GPU %u: another perfkit run samples its counters; run it again when that one has "
            "ended",
            gpu->index);
        return false;
    }
    if (!start_gpu(sampler, gpu, why)) {
        say(sampler, WIRE_HEALTH_DEGRADED, "GPU %u: %s", gpu->index, why);
        close(gpu->lock);
        return false;
    }
    gpu->nvml = others_device(gpu->uuid);
    gpu->id = gpu->index + 1;
    struct wire_counter_device device = {
        .head = {sizeof device, WIRE_COUNTER_DEVICE, 0, gpu->id},
        .interval_ns = sampler->options->interval_ns,
        .uuid = spool_out_text(&sampler->out, gpu->uuid),
        .name = spool_out_text(&sampler->out, gpu->name),
        .chip = spool_out_text(&sampler->out, counter_gpu_chip(gpu->gpu)),
        .set = spool_out_text(&sampler->out, sampler->set->name),
        .ordinal = gpu->index,
    };
    spool_out_define(&sampler->out, &device);
    return true;
}

static bool load_libraries(struct sampler *sampler)
{
    char why[COUNTER_WHY_BYTES];
    if (!cuda_driver_load(why, sizeof why) || !pm_load(sampler->options->cupti, why, sizeof why)) {
        say(sampler, WIRE_HEALTH_DEGRADED, "nothing was sampled: %s", why);
        return false;
    }
    const char *call = "cuptiActivityRegisterTimestampCallback"; /* samples in CLOCK_MONOTONIC */
    int result = pm.ActivityRegisterTimestampCallback(prof_now_ns);
    if (result == PM_OK) {
        call = "cuptiProfilerInitialize";
        result = pm.ProfilerInitialize(&(struct pm_nothing){.size = PM_SIZE(pm_nothing, priv)});
    }
    if (result == PM_OK)
        return true;
    pm_explain(result, call, why, sizeof why);
    say(sampler, WIRE_HEALTH_DEGRADED, "nothing was sampled: %s", why);
    return false;
}

static void open_gpus(struct sampler *sampler)
{
    int count = 0;
    cuda_driver.DeviceGetCount(&count);
    if (count <= 0)
        say(sampler, WIRE_HEALTH_DEGRADED, "nothing was sampled: %s", cuda_no_gpu);
    others_open();
    for (int i = 0; i < count && sampler->count < MAX_GPUS; i++) {
        struct sampled_gpu *gpu = &sampler->gpus[sampler->count];
        *gpu = (struct sampled_gpu){.index = (unsigned)i, .lock = -1};
        sampler->count += open_gpu(sampler, gpu);
    }
}

/* ---- a burst --------------------------------------------------------------------------------- */

static uint32_t clock_slot(const struct counter_gpu *gpu, const char *clock)
{
    for (uint32_t i = 0; clock && i < counter_gpu_count(gpu); i++) {
        if (strcmp(counter_gpu_row(gpu, i)->name, clock) == 0)
            return i + 1;
    }
    return 0;
}

/* Once the peaks are known: with the first sample. */
static void define_counters(struct sampler *sampler, struct sampled_gpu *gpu)
{
    enum counter_family family = counter_family_of(counter_gpu_chip(gpu->gpu));
    uint32_t version = 0;
    pm.GetVersion(&version);
    for (uint32_t i = 0; i < counter_gpu_count(gpu->gpu); i++) {
        const struct counter_row *row = counter_gpu_row(gpu->gpu, i);
        struct wire_counter counter = {
            .head = {sizeof counter, WIRE_COUNTER, (uint8_t)row->kind, gpu->id},
            .peak = counter_gpu_peak(gpu->gpu, i),
            .slot = i,
            .name = spool_out_text(&sampler->out, row->name),
            .unit = spool_out_text(&sampler->out, row->unit),
            .metric = spool_out_text(&sampler->out, counter_gpu_metric(gpu->gpu, i)),
            .clock = clock_slot(gpu->gpu, row->clock),
            .traced = counter_traced(family, row->name, version),
        };
        spool_out_define(&sampler->out, &counter);
    }
    gpu->defined = true;
}

struct taking {
    struct sampler *sampler;
    struct sampled_gpu *gpu;
    bool first;
};

static void spool_counter_sample(void *context, const struct counter_sample *sample)
{
    struct taking *taking = context;
    struct sampled_gpu *gpu = taking->gpu;
    if (!gpu->defined)
        define_counters(taking->sampler, gpu);
    if (sample->start_ns == 0 || sample->end_ns <= sample->start_ns)
        return;          /* of no time: CUPTI adds some after a stop */
    if (taking->first) { /* it reaches back to before the burst */
        taking->first = false;
        return;
    }
    struct wire_counter_sample record = {
        .head = {sizeof record, WIRE_COUNTER_SAMPLE, 0, gpu->id},
        .start = sample->start_ns,
        .end = sample->end_ns,
    };
    memcpy(record.values, sample->values, counter_gpu_count(gpu->gpu) * sizeof record.values[0]);
    if (!spool_out_emit(&taking->sampler->out, &record))
        return;
    if (gpu->samples++ == 0)
        gpu->first_ns = sample->start_ns;
    gpu->last_ns = sample->end_ns;
}

static void fail_gpu(struct sampler *sampler, struct sampled_gpu *gpu, const char *why)
{
    say(sampler, WIRE_HEALTH_DEGRADED, "GPU %u: sampling ended early: %s", gpu->index, why);
    gpu->failed = true;
}

/* What a device has may change with what else is done on it (MIG, other tools). */
static bool has_counters(const struct counter_gpu *gpu, const struct counter_row *const *rows,
                         size_t count)
{
    bool same = counter_gpu_count(gpu) == count;
    for (size_t i = 0; same && i < count; i++)
        same = counter_gpu_row(gpu, i) == rows[i];
    return same;
}

/* A burst that could not be read is lost; CUPTI is then set up anew, until that is of no use. */
static void lose_burst(struct sampler *sampler, struct sampled_gpu *gpu, const char *why)
{
    char again[COUNTER_WHY_BYTES];
    snprintf(gpu->why, sizeof gpu->why, "%s", why);
    gpu->unread++;
    if (++gpu->failures >= MAX_FAILURES) {
        fail_gpu(sampler, gpu, gpu->why);
        return;
    }
    struct counter_gpu *old = gpu->gpu;
    const struct counter_row *rows[COUNTER_SET_MAX];
    size_t count = counter_gpu_count(old);
    for (size_t i = 0; i < count; i++)
        rows[i] = counter_gpu_row(old, i);
    counter_gpu_close(old);
    if (!start_gpu(sampler, gpu, again))
        fail_gpu(sampler, gpu, again);
    else if (gpu->defined && !has_counters(gpu->gpu, rows, count))
        fail_gpu(sampler, gpu, "it no longer has the counters that it began with");
}

/* True when a stop is requested within that time. */
static bool wait_until(const struct sampler *sampler, uint64_t when_ns)
{
    for (;;) {
        uint64_t now = prof_now_ns();
        if (stop_asked)
            return true;
        if (now >= when_ns)
            return false;
        struct timespec left = {(time_t)((when_ns - now) / 1000000000u),
                                (long)((when_ns - now) % 1000000000u)};
        struct pollfd stop = {.fd = sampler->options->stop_fd, .events = POLLIN};
        int ready = ppoll(&stop, 1, &left, NULL);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            stop_asked = 1;
    }
}

static void write_burst(struct sampler *sampler, const struct sampled_gpu *gpu, bool overflow,
                        uint64_t decode_ns)
{
    struct wire_counter_burst burst = {
        .head = {sizeof burst, WIRE_COUNTER_BURST,
                 (uint8_t)((overflow ? WIRE_BURST_OVERFLOW : 0) |
                           (gpu->others.known ? WIRE_BURST_OTHERS : 0)),
                 gpu->id},
        .start = gpu->first_ns,
        .end = gpu->last_ns,
        .samples = gpu->samples,
        .others = gpu->others.others,
        .decode_ns = decode_ns,
    };
    if (gpu->samples)
        spool_out_emit(&sampler->out, &burst);
    sampler->bursts += gpu->samples != 0;
    sampler->samples += gpu->samples;
}

static void decode(struct sampler *sampler, struct sampled_gpu *gpu)
{
    char why[COUNTER_WHY_BYTES];
    struct taking taking = {sampler, gpu, true};
    uint64_t before = prof_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    bool overflow = false;
    int got;
    gpu->samples = 0;
    while ((got = counter_gpu_decode(gpu->gpu, spool_counter_sample, &taking, &overflow, why)) > 0)
        spool_out_heartbeat(&sampler->out);
    write_burst(sampler, gpu, overflow, prof_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before);
    if (gpu->samples)
        gpu->failures = 0;
    if (got < 0)
        lose_burst(sampler, gpu, why);
    else if (overflow) /* it stays so until sampling is set up anew */
        lose_burst(sampler, gpu, "the device's buffer for samples overflowed");
}

/* Returns how long the GPU was sampled. */
static uint64_t sample_burst(struct sampler *sampler, struct sampled_gpu *gpu)
{
    char why[COUNTER_WHY_BYTES];
    uint64_t began = prof_now_ns();
    if (!counter_gpu_start(gpu->gpu, why)) {
        lose_burst(sampler, gpu, why);
        return 0;
    }
    wait_until(sampler, prof_now_ns() + sampler->pace.burst_ns);
    uint64_t length = prof_now_ns() - began;
    if (!counter_gpu_stop(gpu->gpu, why)) {
        lose_burst(sampler, gpu, why);
        return length;
    }
    decode(sampler, gpu);
    return length;
}

/* Of all threads, CUPTI's too, and of the child that learns the peaks. */
static uint64_t cpu_used(void)
{
    struct rusage children = {.ru_maxrss = 0};
    getrusage(RUSAGE_CHILDREN, &children);
    uint64_t seconds = (uint64_t)(children.ru_utime.tv_sec + children.ru_stime.tv_sec);
    uint64_t us = (uint64_t)(children.ru_utime.tv_usec + children.ru_stime.tv_usec);
    return prof_clock_ns(CLOCK_PROCESS_CPUTIME_ID) + seconds * 1000000000u + us * 1000u;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static bool is_recording(const struct sampler *sampler)
{
    return !sampler->control || control_open(atomic_load(&sampler->control->state));
}

/* The next GPU that a process uses, or whose users are not known. */
static struct sampled_gpu *next_gpu(struct sampler *sampler)
{
    for (unsigned i = 0; i < sampler->count; i++) {
        struct sampled_gpu *gpu = &sampler->gpus[sampler->next++ % sampler->count];
        if (gpu->failed)
            continue;
        gpu->others = others_look(gpu->nvml, sampler->options->directory);
        if (!gpu->others.known || gpu->others.ours)
            return gpu;
    }
    return NULL;
}

static bool any_works(const struct sampler *sampler)
{
    for (unsigned i = 0; i < sampler->count; i++) {
        if (!sampler->gpus[i].failed)
            return true;
    }
    return false;
}

/* A burst, when it is time for one. Returns when to look again. */
static uint64_t sample_when_due(struct sampler *sampler)
{
    uint64_t began = prof_now_ns();
    if (!is_recording(sampler))
        return began + CLOSED_WAIT_NS;
    if (began < sampler->pace.next_ns)
        return sampler->pace.next_ns;
    struct sampled_gpu *gpu = next_gpu(sampler);
    if (!gpu)
        return began + IDLE_WAIT_NS;
    pace_spend(&sampler->pace, began, cpu_used());
    uint64_t length = sample_burst(sampler, gpu);
    sampler->sampled_ns += length;
    return pace_next(&sampler->pace, began, length, prof_now_ns(), cpu_used());
}

static void sample_gpus(struct sampler *sampler)
{
    uint64_t now = prof_now_ns();
    sampler->began_ns = now;
    sampler->cpu_began_ns = cpu_used();
    pace_begin(&sampler->pace, sampler->options->interval_ns, sampler->options->duty, now, now,
               sampler->cpu_began_ns);
    for (uint64_t next = now; any_works(sampler) && !wait_until(sampler, next);) {
        spool_out_heartbeat(&sampler->out);
        next = sample_when_due(sampler);
    }
}

static void say_what_was_done(struct sampler *sampler)
{
    double seconds = (double)(prof_now_ns() - sampler->began_ns) / 1e9;
    double cpu = (double)(cpu_used() - sampler->cpu_began_ns) / 1e9;
    if (sampler->out.dropped)
        say(sampler, WIRE_HEALTH_DEGRADED, "%llu records found no room in the spool",
            (unsigned long long)sampler->out.dropped);
    for (unsigned i = 0; i < sampler->count; i++) {
        const struct sampled_gpu *gpu = &sampler->gpus[i];
        if (gpu->unread && !gpu->failed)
            say(sampler, WIRE_HEALTH_DEGRADED,
                "GPU %u: %u of its bursts could not be read whole: %s", gpu->index, gpu->unread,
                gpu->why);
    }
    say(sampler, WIRE_HEALTH_NOTE,
        "%llu samples in %llu bursts, %.1f %% of the time; the sampler used %.1f %% of a core",
        (unsigned long long)sampler->samples, (unsigned long long)sampler->bursts,
        100.0 * (double)sampler->sampled_ns / 1e9 / seconds, 100.0 * cpu / seconds);
}

int sampler_run(const struct sampler_options *options)
{
    static struct sampler sampler;
    sampler.options = options;
    sampler.set = counter_set_find(options->set);
    if (!sampler.set ||
        !spool_out_open(&sampler.out, options->directory, "perfkit_sampler", WIRE_SOURCE_COUNTERS))
        return 1;
    sampler.control = control_map(options->directory);
    if (load_libraries(&sampler))
        open_gpus(&sampler);
    close(options->ready_fd);
    if (sampler.count) {
        sample_gpus(&sampler);
        say_what_was_done(&sampler);
    }
    for (unsigned i = 0; i < sampler.count; i++) {
        counter_gpu_close(sampler.gpus[i].gpu);
        close(sampler.gpus[i].lock);
    }
    spool_out_close(&sampler.out);
    return 0;
}

/* ---- when a burst begins --------------------------------------------------------------------- */

/* A burst begins when the account will be even at its end, or as the duty cycle says that the user
 * chose. What a burst costs is known only afterwards and differs by a factor of two (40 to 130 ms
 * on an H200, the first twice the others): the dearest of the last ones is expected. The whole
 * account is looked at and not each burst by itself, since over the few bursts of a short run
 * chance does not level out, and the first one is never earned before.
 *
 * Moments are spread at random: bursts at a fixed distance would see the same part of every step of
 * a program whose steps are as long. */

#define SPREAD 0.5  /* of the distance of two bursts */
#define FORGET 0.25 /* of the expected cost, with each cheaper burst */

void pace_begin(struct pace *pace, uint64_t interval_ns, double duty, uint64_t seed,
                uint64_t now_ns, uint64_t cpu_ns)
{
    *pace = (struct pace){
        .burst_ns = interval_ns * PACE_BURST_SAMPLES,
        .duty = duty,
        .random = seed | 1,
        .next_ns = now_ns,
        .at_ns = now_ns,
        .cpu_ns = cpu_ns,
    };
    if (pace->burst_ns > PACE_MOST_NS)
        pace->burst_ns = PACE_MOST_NS;
}

void pace_spend(struct pace *pace, uint64_t now_ns, uint64_t cpu_ns)
{
    pace->credit_ns += PACE_BUDGET * (double)(now_ns - pace->at_ns);
    if (pace->credit_ns > (1.0 + SPREAD) * pace->cost_ns) /* what the latest burst needs */
        pace->credit_ns = (1.0 + SPREAD) * pace->cost_ns;
    pace->credit_ns -= (double)(cpu_ns - pace->cpu_ns);
    pace->at_ns = now_ns;
    pace->cpu_ns = cpu_ns;
}

static void expect(struct pace *pace, double cost_ns)
{
    double forgotten = pace->cost_ns + FORGET * (cost_ns - pace->cost_ns);
    pace->cost_ns = cost_ns > forgotten ? cost_ns : forgotten;
}

static double by_duty(struct pace *pace, uint64_t length_ns)
{
    double pause = (double)length_ns / pace->duty - (double)length_ns;
    return pause * (1.0 - SPREAD + 2.0 * SPREAD * prof_random_share(&pace->random));
}

/* From now; negative = it might have begun before. A burst takes as long as it costs, at least. */
static double by_budget(struct pace *pace, uint64_t length_ns)
{
    double even = (pace->cost_ns - pace->credit_ns) / PACE_BUDGET;
    double spread = SPREAD * pace->cost_ns / PACE_BUDGET * prof_random_share(&pace->random);
    return even - (double)length_ns - pace->cost_ns + spread;
}

uint64_t pace_next(struct pace *pace, uint64_t began_ns, uint64_t length_ns, uint64_t now_ns,
                   uint64_t cpu_ns)
{
    expect(pace, (double)(cpu_ns - pace->cpu_ns));
    pace_spend(pace, now_ns, cpu_ns);
    uint64_t from = pace->duty > 0 ? began_ns + length_ns : now_ns;
    double pause = pace->duty > 0 ? by_duty(pace, length_ns) : by_budget(pace, length_ns);
    pace->next_ns = pause > 0 ? from + (uint64_t)pause : from;
    return pace->next_ns;
}

/* ---- who else runs on a device --------------------------------------------------------------- */

/* Counters count whatever runs on the device. NVML lists its processes; the run's are known by the
 * environment they were started with, or, for those that have written their title over it, by their
 * spools. In a container NVML gives pids of the host, or 0, or none: then it is not known who is
 * there. */

#define MAX_PROCESSES 128u

struct nvml_process { /* nvmlProcessInfo_t of the _v3 call */
    uint32_t pid;
    uint64_t used_bytes;
    uint32_t gpu_instance, compute_instance;
};

static int (*nvml_by_uuid)(const char *uuid, void **device);
static int (*nvml_processes)(void *device, unsigned *count, struct nvml_process *processes);

static bool symbol(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

#define FIRST_PID_NAMESPACE 0xeffffffcu /* include/linux/proc_ns.h: PROC_PID_INIT_INO */

/* In a container the list is of the host's pids, or empty. */
static bool pids_are_real(void)
{
    struct stat info;
    return stat("/proc/self/ns/pid", &info) == 0 && info.st_ino == FIRST_PID_NAMESPACE;
}

bool others_open(void)
{
    int (*init)(void);
    if (!pids_are_real())
        return false;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    bool ok = library && symbol(library, "nvmlInit_v2", &init) &&
              symbol(library, "nvmlDeviceGetHandleByUUID", &nvml_by_uuid) &&
              symbol(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml_processes) &&
              init() == 0;
    if (!ok)
        nvml_by_uuid = NULL;
    return ok;
}

void *others_device(const char *uuid)
{
    void *device = NULL;
    return nvml_by_uuid && nvml_by_uuid(uuid, &device) == 0 ? device : NULL;
}

enum whose { OF_THE_RUN, OF_ANOTHER, NOT_TOLD };

/* Does the collector record it? A spool is called PID-STARTNS.spool. */
static bool has_spool(uint32_t pid, const char *directory)
{
    char prefix[16];
    int length = snprintf(prefix, sizeof prefix, "%u-", pid);
    PROF_DIR_CLOSED DIR *spools = opendir(directory);
    bool found = false;
    for (struct dirent *entry; spools && !found && (entry = readdir(spools));)
        found = strncmp(entry->d_name, prefix, (size_t)length) == 0;
    return found;
}

static enum whose whose_is(uint32_t pid, const char *directory)
{
    char path[64], *text = NULL, wanted[300];
    size_t room = 0;
    enum whose answer = OF_ANOTHER;
    snprintf(path, sizeof path, "/proc/%u/environ", pid);
    if (pid == 0 || access("/proc/self/environ", R_OK) != 0)
        return NOT_TOLD;
    if (has_spool(pid, directory))
        return OF_THE_RUN;
    FILE *file = fopen(path, "re");
    if (!file) /* there, and of another run; or not there: a pid of another namespace */
        return access(path, F_OK) == 0 ? OF_ANOTHER : NOT_TOLD;
    snprintf(wanted, sizeof wanted, "PERFKIT_DIR=%s", directory);
    while (answer != OF_THE_RUN && getdelim(&text, &room, '\0', file) > 0)
        answer = strcmp(text, wanted) == 0 ? OF_THE_RUN : OF_ANOTHER;
    free(text);
    fclose(file);
    return answer;
}

struct others others_look(void *device, const char *directory)
{
    struct nvml_process processes[MAX_PROCESSES];
    unsigned count = MAX_PROCESSES;
    struct others result = {0};
    if (!device || !nvml_processes || nvml_processes(device, &count, processes) != 0)
        return result;
    result.known = true;
    for (unsigned i = 0; i < count && i < MAX_PROCESSES; i++) {
        if (processes[i].pid == (uint32_t)getpid())
            continue;
        enum whose whose = whose_is(processes[i].pid, directory);
        result.known &= whose != NOT_TOLD;
        result.ours += whose == OF_THE_RUN;
        result.others += whose == OF_ANOTHER;
    }
    return result;
}
