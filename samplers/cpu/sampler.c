/* The thread. It wakes for each sample and ten times a second, which bounds how far behind the
 * capture is; where Python runs also twice in a period, to see threads that stopped. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/base/format.h"
#include "samplers/cpu/perf_events.h"
#include "samplers/cpu/records.h"
#include "samplers/cpu/sampler.h"

#define ROUND_MS 100
#define LEAST_ROUND_MS 2
#define MAX_READING_S 10 /* after the end of the target */
/* A record's time is taken a moment before it can be seen in its buffer. */
#define SETTLE_NS 1000000u

struct cpu_sampler {
    struct cpu_perf perf;
    struct cpu_queue queue;
    struct cpu_records records;
    struct pollfd *polled; /* the rings, then `stop` */
    int stop;
    pthread_t thread;
    bool running;
    bool out_of_memory;
    uint64_t cpu_ns; /* that the thread took */
};

static void report_cpu_state(struct cpu_sampler *sampler, enum wire_health_state state,
                             const char *format, ...) __attribute__((format(printf, 3, 4)));

static void report_cpu_state(struct cpu_sampler *sampler, enum wire_health_state state,
                             const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    spool_out_health(&sampler->records.out.spool, state, text);
}

static struct prof_text counted(uint64_t count, const char *one, const char *many)
{
    return prof_counted(count > INT64_MAX ? INT64_MAX : (int64_t)count, one, many);
}

/* What the user requested and a user without rights does not get. */
static void say_limits(struct cpu_sampler *sampler)
{
    if (sampler->perf.kernel)
        return;
    int level = 0;
    cpu_perf_paranoid(&level);
    report_cpu_state(
        sampler, WIRE_HEALTH_NOTE,
        "time inside the kernel and the places where threads block are not in the samples: "
        "kernel.perf_event_paranoid is %d (sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON for "
        "perfkit)",
        level);
}

static void say_losses(struct cpu_sampler *sampler)
{
    const struct cpu_records *records = &sampler->records;
    if (records->lost)
        report_cpu_state(
            sampler, WIRE_HEALTH_DEGRADED,
            "%s lost because the sampler was too slow: lower the rate (--cpu-sample=99), or leave "
            "out blocked time (--cpu-sample-blocked=off)",
            counted(records->lost, "record was", "records were").text);
    if (records->throttled)
        report_cpu_state(sampler, WIRE_HEALTH_DEGRADED,
                         "the kernel held samples back %s: lower the rate, or raise "
                         "kernel.perf_event_max_sample_rate",
                         counted(records->throttled, "time", "times").text);
    if (records->out.spool.dropped)
        report_cpu_state(sampler, WIRE_HEALTH_DEGRADED, "%s no room in the spool",
                         counted(records->out.spool.dropped, "record found", "records found").text);
    if (sampler->queue.damaged || sampler->out_of_memory)
        report_cpu_state(sampler, WIRE_HEALTH_DEGRADED, "samples are missing: %s",
                         sampler->out_of_memory ? "out of memory"
                                                : "the kernel's buffers could not be read");
}

/* What of Python's functions is in the samples. */
static void say_pythons(struct cpu_sampler *sampler)
{
    const struct cpu_pythons *pythons = &sampler->records.pythons;
    for (size_t i = 0; i < pythons->refusals.count; i++) {
        unsigned version = pythons->refusals.data[i].version;
        report_cpu_state(sampler, WIRE_HEALTH_NOTE,
                         "Python's functions are not in CPU samples of Python %u.%u: %s "
                         "(from Python 3.12 on -X perf names them, without lines)",
                         version >> 8, version & 255u, pythons->refusals.data[i].why);
    }
    if (pythons->memory.refused)
        report_cpu_state(sampler, WIRE_HEALTH_NOTE,
                         "%s of Python's frames not done: what they need is not in the program's "
                         "memory (userfaultfd)",
                         counted(pythons->memory.refused, "reading", "readings").text);
    if (pythons->untold)
        report_cpu_state(sampler, WIRE_HEALTH_NOTE, "%s no room for a name",
                         counted(pythons->untold, "frame of Python in CPU samples found",
                                 "frames of Python in CPU samples found")
                             .text);
    if (pythons->readings || pythons->late || pythons->torn)
        report_cpu_state(
            sampler, WIRE_HEALTH_NOTE,
            "Python's functions were read %.0f us after the sample on the average, "
            "for %s; not for %s that came too late, and %s under which they changed",
            pythons->readings ? (double)pythons->delay_ns / (double)pythons->readings / 1e3 : 0,
            counted(pythons->readings, "sample", "samples").text,
            counted(pythons->late, "sample", "samples").text,
            counted(pythons->torn, "reading", "readings").text);
}

static void handle_perf_record(void *context, const struct perf_event_header *record,
                               uint64_t time_ns)
{
    struct cpu_sampler *sampler = context;
    cpu_records_take(&sampler->records, record, time_ns);
}

static void note_perf_record(void *context, const struct perf_event_header *record,
                             uint64_t time_ns)
{
    struct cpu_sampler *sampler = context;
    cpu_python_note(&sampler->records.pythons, &sampler->perf, record, time_ns);
    cpu_records_note(&sampler->records, record);
}

static void drain_perf_buffers(struct cpu_sampler *sampler, bool last)
{
    uint64_t began = prof_now_ns();
    for (unsigned i = 0; i < sampler->perf.count; i++) {
        if (!cpu_queue_take(&sampler->queue, &sampler->perf, &sampler->perf.rings[i],
                            note_perf_record, sampler))
            sampler->out_of_memory = true;
    }
    cpu_python_read(&sampler->records.pythons);
    cpu_records_count_faults(&sampler->records);
    cpu_queue_hand_over(&sampler->queue, last ? UINT64_MAX : began - SETTLE_NS, handle_perf_record,
                        sampler);
}

static int round_ms(const struct cpu_sampler *sampler)
{
    int half = (int)(sampler->perf.period_ns / 2000000u);
    if (!sampler->records.tasks.pythons || !sampler->perf.switches)
        return ROUND_MS;
    return half < LEAST_ROUND_MS ? LEAST_ROUND_MS : half > ROUND_MS ? ROUND_MS : half;
}

static void *run_cpu_sampler(void *context)
{
    struct cpu_sampler *sampler = context;
    unsigned count = sampler->perf.count;
    pthread_setname_np(pthread_self(), "perfkit-cpu");
    while (!sampler->polled[count].revents) {
        if (poll(sampler->polled, count + 1, round_ms(sampler)) < 0 && errno != EINTR)
            break;
        for (unsigned i = 0; i < count; i++) {
            if (sampler->polled[i].revents & POLLHUP)
                sampler->polled[i].fd = -1; /* no thread of the target is left */
        }
        drain_perf_buffers(sampler, false);
        spool_out_heartbeat(&sampler->records.out.spool);
    }
    cpu_tasks_mark_gone(&sampler->records.tasks);
    drain_perf_buffers(sampler, true);
    sampler->cpu_ns = prof_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

static bool prepare_cpu_sampler(struct cpu_sampler *sampler, const char *directory)
{
    unsigned count = sampler->perf.count;
    sampler->polled = calloc(count + 1u, sizeof *sampler->polled);
    sampler->stop = eventfd(0, EFD_CLOEXEC);
    if (!sampler->polled || sampler->stop < 0 || !cpu_out_open(&sampler->records.out, directory))
        return false;
    for (unsigned i = 0; i < count; i++)
        sampler->polled[i] = (struct pollfd){.fd = sampler->perf.rings[i].clock, .events = POLLIN};
    sampler->polled[count] = (struct pollfd){.fd = sampler->stop, .events = POLLIN};
    sampler->records.perf = &sampler->perf;
    sampler->records.control = control_map(directory);
    sampler->records.tasks.period_ns = sampler->perf.period_ns;
    sampler->records.pythons.spool = &sampler->records.out.spool;
    sampler->records.pythons.tasks = &sampler->records.tasks;
    sampler->records.pythons.late_ns = sampler->perf.period_ns / 2;
    return true;
}

struct cpu_sampler *cpu_sampler_open(const struct cpu_sampler_options *options, char *why,
                                     size_t size)
{
    struct cpu_sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler) {
        snprintf(why, size, "out of memory");
        return NULL;
    }
    sampler->stop = -1;
    if (!cpu_perf_open(&sampler->perf, &options->perf, why, size)) {
        free(sampler);
        return NULL;
    }
    if (!prepare_cpu_sampler(sampler, options->directory)) {
        snprintf(why, size, "no room for the samples' spool");
        cpu_sampler_close(sampler);
        return NULL;
    }
    say_limits(sampler);
    return sampler;
}

bool cpu_sampler_start(struct cpu_sampler *sampler)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&sampler->thread, NULL, run_cpu_sampler, sampler);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    sampler->running = error == 0;
    errno = error;
    return sampler->running;
}

/* False: a process keeps the thread in a reading of its memory (userfaultfd), and it was left
 * there.
 */
static bool join_cpu_sampler(struct cpu_sampler *sampler)
{
    struct cpu_memory *memory = &sampler->records.pythons.memory;
    uint64_t gate = 0;
    for (int same = 0; same < MAX_READING_S;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        if (pthread_timedjoin_np(sampler->thread, NULL, &until) == 0)
            return true;
        uint64_t now = atomic_load(&memory->gate);
        same = now % 2 && now == gate ? same + 1 : 0;
        gate = now;
        if (same == MAX_READING_S && !cpu_memory_leave(memory, gate))
            same = 0;
    }
    return false;
}

/* False: the thread still uses the sampler. */
static bool stop_cpu_sampler(struct cpu_sampler *sampler)
{
    uint64_t one = 1;
    if (write(sampler->stop, &one, sizeof one) != (ssize_t)sizeof one)
        return false; /* cannot be: the counter is 0 */
    if (!join_cpu_sampler(sampler)) {
        say_losses(sampler);
        report_cpu_state(sampler, WIRE_HEALTH_DEGRADED,
                         "samples are missing: reading the memory of a process of Python blocked "
                         "until the end (userfaultfd)");
        return false;
    }
    /* An end that found no room in the buffers would look like a sleep until now. */
    uint64_t unseen = cpu_tasks_forget_gone(&sampler->records.tasks);
    if (sampler->records.lost < unseen)
        sampler->records.lost = unseen;
    cpu_records_end(&sampler->records, prof_now_ns());
    say_losses(sampler);
    say_pythons(sampler);
    char deep[96] = "";
    if (sampler->records.unwinder.cut)
        snprintf(deep, sizeof deep, ", %s of them with stacks deeper than what is copied of one",
                 prof_count((int64_t)sampler->records.unwinder.cut).text);
    report_cpu_state(sampler, WIRE_HEALTH_NOTE, "%s%s; the sampler used %.2f s of a core",
                     counted(sampler->records.out.samples, "sample", "samples").text, deep,
                     (double)sampler->cpu_ns / 1e9);
    return true;
}

void cpu_sampler_close(struct cpu_sampler *sampler)
{
    if (!sampler)
        return;
    bool left = sampler->running && !stop_cpu_sampler(sampler);
    cpu_out_close(&sampler->records.out);
    if (left)
        return; /* what it holds ends with perfkit */
    cpu_perf_close(&sampler->perf);
    cpu_tasks_free(&sampler->records.tasks);
    cpu_pythons_free(&sampler->records.pythons);
    cpu_unwinder_free(&sampler->records.unwinder);
    prof_array_free(&sampler->records.sampled);
    cpu_queue_free(&sampler->queue);
    if (sampler->stop >= 0)
        close(sampler->stop);
    free(sampler->polled);
    free(sampler);
}
