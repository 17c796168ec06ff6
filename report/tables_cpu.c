/* The tables of the host's time, from samples of the processors: by function and by thread. */
#include <stdio.h>

#include "libprof/base/saturate.h"
#include "report/columns.h"

#define FUNCTION(row) ((const struct prof_cpu_function *)(row))
#define THREAD(row) ((const struct prof_cpu_thread *)(row))

static struct prof_report_value cpu_idle_share(const struct prof_report_data *data, bool launches,
                                               const struct prof_cpu_times *times)
{
    const struct prof_cpu_times *all = launches ? &data->cpu.launching : &data->cpu.others;
    int64_t sum = prof_cpu_total(all->idle_ns);
    if (sum <= 0)
        return (struct prof_report_value){.kind = PROF_VALUE_NONE};
    return (struct prof_report_value){.kind = PROF_VALUE_REAL,
                                      .real = (double)prof_cpu_total(times->idle_ns) / (double)sum};
}

/* Idle time is not known where no device did anything. */
static struct prof_report_value idle(const struct prof_report_data *data, int64_t ns)
{
    return prof_report_int(data->cpu.idle_ns == PROF_UNKNOWN ? PROF_UNKNOWN : ns);
}

static struct prof_report_value role(bool launches)
{
    return prof_report_text(launches ? "launches" : "other");
}

static int64_t running(const int64_t ns[PROF_CPU_STATES])
{
    return ns[PROF_CPU_USER] + ns[PROF_CPU_KERNEL];
}

/* ---- functions ------------------------------------------------------------------------------- */

static struct prof_report_value function_idle(const struct prof_report_data *data, const void *row)
{
    return idle(data, prof_cpu_total(FUNCTION(row)->times.idle_ns));
}

static struct prof_report_value function_share(const struct prof_report_data *data, const void *row)
{
    return cpu_idle_share(data, FUNCTION(row)->launches, &FUNCTION(row)->times);
}

static struct prof_report_value function_idle_running(const struct prof_report_data *data,
                                                      const void *row)
{
    return idle(data, running(FUNCTION(row)->times.idle_ns));
}

static struct prof_report_value function_idle_blocked(const struct prof_report_data *data,
                                                      const void *row)
{
    return idle(data, FUNCTION(row)->times.idle_ns[PROF_CPU_BLOCKED]);
}

static struct prof_report_value function_idle_preempted(const struct prof_report_data *data,
                                                        const void *row)
{
    return idle(data, FUNCTION(row)->times.idle_ns[PROF_CPU_PREEMPTED]);
}

static struct prof_report_value function_running(const struct prof_report_data *data,
                                                 const void *row)
{
    (void)data;
    return prof_report_int(running(FUNCTION(row)->times.ns));
}

static struct prof_report_value function_role(const struct prof_report_data *data, const void *row)
{
    (void)data;
    return role(FUNCTION(row)->launches);
}

static const struct prof_report_column host_columns[] = {
    COMPUTED("idle_ns", "Device idle", NS, 1, function_idle),
    COMPUTED("idle_share", "Share", SHARE, 4, function_share),
    COMPUTED("idle_running_ns", "Running", NS, 2, function_idle_running),
    COMPUTED("idle_blocked_ns", "Blocked", NS, 2, function_idle_blocked),
    COMPUTED("idle_preempted_ns", "Preempted", NS, 2, function_idle_preempted),
    COMPUTED("running_ns", "All running", NS, 5, function_running),
    INT64("kernel_ns", "In the kernel", NS, 0, prof_cpu_function, times.ns[PROF_CPU_KERNEL]),
    INT64("blocked_ns", "All blocked", NS, 6, prof_cpu_function, times.ns[PROF_CPU_BLOCKED]),
    INT64("preempted_ns", "All preempted", NS, 0, prof_cpu_function, times.ns[PROF_CPU_PREEMPTED]),
    INT64("samples", "Samples", COUNT, 7, prof_cpu_function, times.samples),
    COMPUTED("thread", "Thread", WORD, 3, function_role),
    INT64("line", "Line", NUMBER, 0, prof_cpu_function, line),
    STRING("file", "File", NAME, 0, prof_cpu_function, file),
    STRING("module", "Module", NAME, 0, prof_cpu_function, module),
    STRING("name", "Function", NAME, 0, prof_cpu_function, function),
    STRING("where", "Where", NAME, 1, prof_cpu_function, where),
    {0},
};

static const void *host_rows(const struct prof_report_data *data, size_t *count)
{
    *count = data->cpu.function_count;
    return data->cpu.functions;
}

/* A tenth of the time that threads ran or waited. */
static bool python_matters(const struct prof_cpu *cpu)
{
    int64_t all = prof_add(prof_cpu_total(cpu->launching.ns), prof_cpu_total(cpu->others.ns));
    return cpu->interpreter_ns > all / 10;
}

static void host_totals(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_cpu *cpu = &data->cpu;
    struct prof_text counted =
        prof_counted(cpu->launching.samples + cpu->others.samples, "sample", "samples");
    size_t n;
    if (cpu->idle_ns == PROF_UNKNOWN)
        n = (size_t)snprintf(out, size, "%s, no device work", counted.text);
    else
        n = (size_t)snprintf(out, size, "%s; no device worked for %s of %s", counted.text,
                             prof_duration_ns(cpu->idle_ns).text,
                             prof_duration_ns(cpu->window_ns).text);
    if (python_matters(cpu) && n < size)
        snprintf(out + n, size - n, "; Python's functions n/a (python3.12 -X perf names them)");
}

const struct prof_report_table prof_report_host_table = {
    .name = "host",
    .part_order = 2,
    .title = "Where the host was",
    .none = "the host was not sampled (--cpu-sample)",
    .help =
        "Time of threads by samples: those that launch device work first, by their time while no "
        "device worked (Device idle: running, blocked and preempted then), the others by what they "
        "ran.",
    .screen_rows = 8,
    .optional = true,
    .totals = host_totals,
    .first_rows = 3,
    ROWS(prof_cpu_function, host),
};

/* ---- threads --------------------------------------------------------------------------------- */

static struct prof_report_value thread_idle(const struct prof_report_data *data, const void *row)
{
    return idle(data, prof_cpu_total(THREAD(row)->times.idle_ns));
}

static struct prof_report_value thread_running(const struct prof_report_data *data, const void *row)
{
    (void)data;
    return prof_report_int(running(THREAD(row)->times.ns));
}

static struct prof_report_value thread_role(const struct prof_report_data *data, const void *row)
{
    (void)data;
    return role(THREAD(row)->launches);
}

static struct prof_report_value thread_tid(const struct prof_report_data *data, const void *row)
{
    const struct prof_thread *thread = prof_thread(data->capture, THREAD(row)->thread);
    return prof_report_int(thread ? thread->tid : PROF_UNKNOWN);
}

static struct prof_report_value cpu_thread_pid(const struct prof_report_data *data, const void *row)
{
    const struct prof_thread *thread = prof_thread(data->capture, THREAD(row)->thread);
    const struct prof_process *process =
        thread ? prof_process(data->capture, thread->process) : NULL;
    return prof_report_int(process ? process->pid : PROF_UNKNOWN);
}

static struct prof_report_value cpu_thread_name(const struct prof_report_data *data,
                                                const void *row)
{
    const struct prof_thread *thread = prof_thread(data->capture, THREAD(row)->thread);
    const struct prof_process *process =
        thread ? prof_process(data->capture, thread->process) : NULL;
    return prof_report_text(thread && thread->name ? thread->name
                            : process              ? process->command
                                                   : NULL);
}

static const struct prof_report_column host_thread_columns[] = {
    COMPUTED("running_ns", "Running", NS, 1, thread_running),
    INT64("kernel_ns", "In the kernel", NS, 3, prof_cpu_thread, times.ns[PROF_CPU_KERNEL]),
    INT64("blocked_ns", "Blocked", NS, 1, prof_cpu_thread, times.ns[PROF_CPU_BLOCKED]),
    INT64("preempted_ns", "Preempted", NS, 2, prof_cpu_thread, times.ns[PROF_CPU_PREEMPTED]),
    COMPUTED("idle_ns", "Device idle", NS, 2, thread_idle),
    INT64("samples", "Samples", COUNT, 4, prof_cpu_thread, times.samples),
    COMPUTED("thread", "Thread", WORD, 2, thread_role),
    COMPUTED("pid", "Process", NUMBER, 3, cpu_thread_pid),
    COMPUTED("tid", "Number", NUMBER, 3, thread_tid),
    COMPUTED("name", "Name", NAME, 1, cpu_thread_name),
    {0},
};

static const void *host_thread_rows(const struct prof_report_data *data, size_t *count)
{
    *count = data->cpu.thread_count;
    return data->cpu.threads;
}

const struct prof_report_table prof_report_host_threads_table = {
    .name = "host_threads",
    .part_order = 2,
    .title = "Time of threads",
    .none = "the host was not sampled (--cpu-sample)",
    .help =
        "Running includes the kernel's time for the thread; preempted is ready to run without a "
        "processor.",
    .screen_rows = 6,
    .optional = true,
    ROWS(prof_cpu_thread, host_thread),
};
