/* The tables of what did the work: processes, streams, contexts, threads; and what CPU samples say
 * of the host. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libprof/base/saturate.h"
#include "report/columns.h"

/* ---- processes --------------------------------------------------------------------- */

static const struct prof_report_column process_columns[] = {
    INT64("pid", "Process", NUMBER, 1, prof_process, pid),
    INT64("parent_pid", "Parent", NUMBER, 3, prof_process, parent_pid),
    INT64("start_ns", "Start", MOMENT, 2, prof_process, start_ns),
    INT64("end_ns", "End", MOMENT, 2, prof_process, end_ns),
    STRING("end_reason", "Ended by", WORD, 1, prof_process, end_reason),
    INT64("exit_status", "Status", NUMBER, 1, prof_process, exit_status),
    INT64("exit_signal", "Signal", NUMBER, 2, prof_process, exit_signal),
    INT64("rank", "Rank", NUMBER, 0, prof_process, rank),
    STRING("host", "Host", NAME, 0, prof_process, host),
    STRING("name", "Command", NAME, 1, prof_process, command),
    {0},
};

const struct prof_report_table prof_report_processes_table = {
    .name = "processes",
    .part = PROF_PART_MACHINE,
    .title = "Processes",
    .none = "no processes",
    .help = "The processes of the run.",
    .screen_rows = 5,
    .least_rows = 2,
    ROWS(prof_process, process, processes, process_count),
};

/* ---- PyTorch --------------------------------------------------------------------------------- */

#define OF_RANGE(kind, key, title, unit, rank, member)                                             \
    INDIRECT(kind, key, title, unit, rank, prof_pytorch_part, range, member)

static const struct prof_report_column pytorch_columns[] = {
    OF_RANGE(INT64, "total_ns", "Total", NS, 1, duration_ns.sum),
    OF_RANGE(DOUBLE, "wall_share", "Of wall", SHARE, 3, wall_share),
    OF_RANGE(INT64, "count", "Count", COUNT, 1, duration_ns.count),
    OF_RANGE(DOUBLE, "average_ns", "Average", NS, 0, duration_ns.mean),
    OF_RANGE(DOUBLE, "median_ns", "Median", NS, 1, duration_ns.median),
    OF_RANGE(INT64, "max_ns", "Max", NS, 3, duration_ns.max),
    OF_RANGE(INT64, "kernel_ns", "GPU time", NS, 1, kernel_ns),
    STRING("part", "Part", WORD, 1, prof_pytorch_part, what),
    PROF_COLUMN("which", "Which", WORD, 1, PROF_STORED(CHARS, prof_pytorch_part, which),
                .blank = true),
    OF_RANGE(STRING, "name", "Range", NAME, 0, name),
    {0},
};

const struct prof_report_table prof_report_pytorch_table = {
    .name = "pytorch",
    .title = "PyTorch",
    .none = "no ranges of PyTorch's own (perfkit run --pytorch)",
    .help =
        "What PyTorch does beside the model's operators: waiting for data, the optimizer, which "
        "attention runs, compiled code, collectives, Python's garbage collections. Total is "
        "time on the host, GPU time that of the kernels launched inside.",
    .optional = true,
    .screen_rows = 6,
    ROWS(prof_pytorch_part, pytorch, pytorch_parts, pytorch_part_count),
};

ROW_CELL(
    flop_phase, prof_pytorch_flop_row, flop,
    prof_report_text(data->iterations.series[flop->series].phase < data->iterations.phase_count
                         ? data->iterations.phases[data->iterations.series[flop->series].phase].name
                         : NULL))
ROW_CELL(flop_pipe, prof_pytorch_flop_row, flop,
         prof_report_text(flop->pipe < PROF_CEILINGS ? prof_ceiling_of(flop->pipe).name : NULL))

static const struct prof_report_column pytorch_flop_columns[] = {
    REAL("utilisation", "MFU", SHARE, 1, prof_pytorch_flop_row, utilisation),
    REAL("flop_per_s", "FLOP/s", FLOPS, 1, prof_pytorch_flop_row, rate),
    REAL("flop", "FLOP per iteration", RATIO, 1, prof_pytorch_flop_row, flop),
    REAL("iteration_ns", "Iteration", NS, 1, prof_pytorch_flop_row, iteration_ns),
    INT64("iterations", "Iterations", COUNT, 2, prof_pytorch_flop_row, iterations),
    REAL("counted_flop_per_s", "In products", FLOPS, 2, prof_pytorch_flop_row, counted_rate),
    REAL("counted_share", "GPU time counted", SHARE, 1, prof_pytorch_flop_row, counted_share),
    REAL("lacking_share", "Inputs missing", SHARE, 1, prof_pytorch_flop_row, lacking_share),
    REAL("other_share", "No formula", SHARE, 1, prof_pytorch_flop_row, other_share),
    COMPUTED("pipe", "Pipe", WORD, 0, flop_pipe),
    REAL("pipe_share", "Of the pipe", SHARE, 0, prof_pytorch_flop_row, pipe_share),
    REAL("peak_flop_per_s", "Peak", FLOPS, 0, prof_pytorch_flop_row, peak),
    OF_ID("device", "Device", NAME, 3, prof_pytorch_flop_row, device, prof_report_device_name),
    COMPUTED("phase", "Phase", NAME, 3, flop_phase),
    CHARS("basis", "Of", NAME, 0, prof_pytorch_flop_row, basis),
    {0},
};

static void pytorch_flop_notes(const struct prof_report_data *data, struct prof_report_notes *notes)
{
    const struct prof_pytorch_flop_row *rows = data->pytorch_flop.rows;
    for (size_t i = 0; i < data->pytorch_flop.count && notes->count + 1 < PROF_REPORT_NOTES; i++)
        snprintf(notes->text[notes->count++], PROF_REPORT_NOTE_BYTES, "MFU %s: %s%s.",
                 prof_percent(rows[i].utilisation).text, isnan(rows[i].utilisation) ? "" : "of ",
                 rows[i].basis);
    if (data->pytorch_flop.unreadable)
        snprintf(notes->text[notes->count++], PROF_REPORT_NOTE_BYTES,
                 "%s calls of operators are not counted: their inputs were too long or are broken.",
                 prof_count(data->pytorch_flop.unreadable).text);
}

const struct prof_report_table prof_report_pytorch_flop_table = {
    .name = "pytorch_flop",
    .title = "Model FLOP utilisation (MFU)",
    .none = "no inputs of PyTorch's operators (perfkit run --pytorch=shapes)",
    .help = "FLOP of an iteration after warm-up, by the inputs of PyTorch's operators (products of "
            "matrices, convolutions, attention), over what the device could compute in its time, "
            "without sparsity. GPU time counted: that of these operators; Inputs missing: of those "
            "whose inputs do not say enough; No formula: the rest.",
    .optional = true,
    .screen_rows = 4,
    .notes = pytorch_flop_notes,
    ROWS(prof_pytorch_flop_row, pytorch_flop, pytorch_flop.rows, pytorch_flop.count),
};

/* ---- trust ----------------------------------------------------------------------------------- */

static const struct prof_report_column balance_columns[] = {
    INT64("called", "Called", COUNT, 1, prof_balance, called),
    INT64("recorded", "Recorded", COUNT, 1, prof_balance, recorded),
    INT64("failed", "Failed", COUNT, 1, prof_balance, failed),
    INT64("captured", "In graphs", COUNT, 1, prof_balance, captured),
    INT64("dropped", "Dropped", COUNT, 1, prof_balance, dropped),
    INT64("outstanding", "Outstanding", COUNT, 1, prof_balance, outstanding),
    INT64("filtered", "Filtered", COUNT, 4, prof_balance, filtered),
    INT64("uncalled", "Uncalled", COUNT, 5, prof_balance, uncalled),
    INT64("remainder", "Missing", COUNT, 1, prof_balance, remainder),
    STRING("name", "What", WORD, 1, prof_balance, subject),
    {0},
};

const struct prof_report_table prof_report_balance_table = {
    .name = "balance",
    .part = PROF_PART_NONE,
    .title = "Calls and records",
    .none = "no calls were counted",
    .help = "Called = recorded + failed + in graphs + dropped + outstanding + missing; missing and "
            "dropped must be 0.",
    .not_in_text = true,
    ROWS(prof_balance, balance, trust.totals, trust.total_count),
};

/* ---- streams, contexts, threads -------------------------------------------------------------- */

#define STREAM(row) (&((const struct prof_report_stream *)(row))->stream)
#define CONTEXT(row) ((const struct prof_context *)(row))
#define THREAD(row) ((const struct prof_thread *)(row))

static struct prof_report_value stream_kind(const struct prof_report_data *data, const void *row)
{
    const char *api = STREAM(row)->api;
    (void)data;
    if (api && !strcmp(api, "opencl"))
        return prof_report_text(STREAM(row)->out_of_order ? "out of order" : "in order");
    return prof_report_text(STREAM(row)->is_default     ? "default"
                            : STREAM(row)->non_blocking ? "non-blocking"
                                                        : NULL);
}

static const struct prof_report_column stream_columns[] = {
    INT64("native", "Stream", NUMBER, 1, prof_report_stream, stream.native),
    INT64("operations", "Operations", COUNT, 1, prof_report_stream, operations),
    INT64("priority", "Priority", NUMBER, 1, prof_report_stream, stream.priority),
    COMPUTED("kind", "Kind", WORD, 2, stream_kind),
    BY_ID(INT64, "units", "SMs", NUMBER, 3, prof_report_stream, stream.context, context, units),
    INT64("id", "Id", NUMBER, 0, prof_report_stream, stream.id),
    BY_ID(INT64, "pid", "Process", NUMBER, 4, prof_report_stream, stream.process, process, pid),
    OF_ID("device", "Device", NAME, 3, prof_report_stream, stream.device, prof_report_device_name),
    STRING("name", "Name", NAME, 1, prof_report_stream, stream.name),
    {0},
};

static bool stream_worth(const void *row)
{
    const struct prof_stream *stream = &((const struct prof_report_stream *)row)->stream;
    return stream->name || (stream->priority != PROF_UNKNOWN && stream->priority != 0);
}

const struct prof_report_table prof_report_streams_table = {
    .name = "streams",
    .part = PROF_PART_DEVICES,
    .title = "Streams",
    .none = "no streams",
    .help = "Streams and queues that did something, or have a name; a lower priority number goes "
            "first.",
    .screen_rows = 8,
    .optional = true,
    .row_worth = stream_worth,
    ROWS(prof_report_stream, stream, streams, stream_count),
};

CELL(context_kind, prof_report_text(CONTEXT(row)->green ? "green" : "whole device"))

static const struct prof_report_column context_columns[] = {
    INT64("native", "Context", NUMBER, 1, prof_context, native),
    COMPUTED("kind", "Kind", WORD, 1, context_kind),
    INT64("units", "SMs", NUMBER, 1, prof_context, units),
    BY_ID(INT64, "parent", "Of context", NUMBER, 2, prof_context, parent, context, native),
    INT64("id", "Id", NUMBER, 0, prof_context, id),
    BY_ID(INT64, "pid", "Process", NUMBER, 4, prof_context, process, process, pid),
    OF_ID("device", "Device", NAME, 3, prof_context, device, prof_report_device_name),
    STRING("name", "Name", NAME, 1, prof_context, name),
    {0},
};

static const void *context_rows(const struct prof_report_data *data, size_t *count)
{
    const struct prof_context *list;
    *count = prof_contexts(data->capture, &list);
    return list;
}

static bool context_worth(const void *row)
{
    return CONTEXT(row)->green || CONTEXT(row)->name;
}

const struct prof_report_table prof_report_contexts_table = {
    .name = "contexts",
    .part = PROF_PART_DEVICES,
    .title = "Contexts",
    .none = "no contexts",
    .help = "A green context has some of its device's SMs.",
    .screen_rows = 6,
    .optional = true,
    .row_worth = context_worth,
    COMPUTED_ROWS(prof_context, context),
};

static const struct prof_report_column thread_columns[] = {
    BY_ID(INT64, "pid", "Process", NUMBER, 1, prof_thread, process, process, pid),
    INT64("tid", "Thread", NUMBER, 1, prof_thread, tid),
    INT64("id", "Id", NUMBER, 0, prof_thread, id),
    STRING("name", "Name", NAME, 1, prof_thread, name),
    {0},
};

static const void *thread_rows(const struct prof_report_data *data, size_t *count)
{
    const struct prof_thread *list;
    *count = prof_threads(data->capture, &list);
    return list;
}

static bool thread_worth(const void *row)
{
    return ((const struct prof_thread *)row)->name;
}

const struct prof_report_table prof_report_threads_table = {
    .name = "threads",
    .part = PROF_PART_MACHINE,
    .part_order = 1,
    .title = "Threads",
    .none = "no threads",
    .help = "Threads that made calls or ranges, by the names the program gave them.",
    .screen_rows = 6,
    .optional = true,
    .row_worth = thread_worth,
    .not_in_text = true,
    COMPUTED_ROWS(prof_thread, thread),
};

/* ---- the host's functions and threads -------------------------------------------------------- */

#define FUNCTION(row) ((const struct prof_cpu_function *)(row))
#define HOST_THREAD(row) ((const struct prof_cpu_thread *)(row))

static struct prof_report_value cpu_idle_share(const struct prof_report_data *data, bool launches,
                                               const struct prof_cpu_times *times)
{
    const struct prof_cpu_times *all = launches ? &data->cpu.launching : &data->cpu.others;
    int64_t sum = prof_cpu_total(all->idle_ns);
    return prof_report_real(sum > 0 ? (double)prof_cpu_total(times->idle_ns) / (double)sum
                                    : (double)NAN);
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

CELL(function_idle, idle(data, prof_cpu_total(FUNCTION(row)->times.idle_ns)))
CELL(function_share, cpu_idle_share(data, FUNCTION(row)->launches, &FUNCTION(row)->times))
CELL(function_idle_running, idle(data, running(FUNCTION(row)->times.idle_ns)))
CELL(function_idle_blocked, idle(data, FUNCTION(row)->times.idle_ns[PROF_CPU_BLOCKED]))
CELL(function_idle_preempted, idle(data, FUNCTION(row)->times.idle_ns[PROF_CPU_PREEMPTED]))
CELL(function_running, prof_report_int(running(FUNCTION(row)->times.ns)))
CELL(function_role, role(FUNCTION(row)->launches))

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

/* From a tenth of the time on that threads ran or waited: what is missing. */
static void append_unnamed_python(const struct prof_cpu *cpu, char *out, size_t size)
{
    int64_t all = prof_add(prof_cpu_total(cpu->launching.ns), prof_cpu_total(cpu->others.ns));
    if (cpu->interpreter_ns > all / 10)
        prof_append(out, size, "; Python's functions n/a for %s of the time (see the trust block)",
                    prof_percent((double)cpu->interpreter_ns / (double)all).text);
}

static void host_totals(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_cpu *cpu = &data->cpu;
    struct prof_text counted =
        prof_counted(cpu->launching.samples + cpu->others.samples, "sample", "samples");
    if (cpu->idle_ns == PROF_UNKNOWN)
        snprintf(out, size, "%s, no device work", counted.text);
    else
        snprintf(out, size, "%s; no device worked for %s of %s", counted.text,
                 prof_duration_ns(cpu->idle_ns).text, prof_duration_ns(cpu->window_ns).text);
    append_unnamed_python(cpu, out, size);
}

const struct prof_report_table prof_report_host_table = {
    .name = "host",
    .part_order = 2,
    .title = "Where the host was",
    .none = "the host was not sampled (--cpu-sample)",
    .help = "Time of threads by samples: those that launch device work first, by their time while "
            "no device worked (Device idle: running, blocked and preempted then), the others by "
            "what they ran.",
    .screen_rows = 8,
    .optional = true,
    .totals = host_totals,
    .first_rows = 3,
    ROWS(prof_cpu_function, host, cpu.functions, cpu.function_count),
};

/* ---- threads --------------------------------------------------------------------------------- */

CELL(thread_idle, idle(data, prof_cpu_total(HOST_THREAD(row)->times.idle_ns)))
CELL(thread_running, prof_report_int(running(HOST_THREAD(row)->times.ns)))
CELL(thread_role, role(HOST_THREAD(row)->launches))

static struct prof_report_value cpu_thread_pid(const struct prof_report_data *data, const void *row)
{
    const struct prof_thread *thread = prof_thread(data->capture, HOST_THREAD(row)->thread);
    const struct prof_process *process =
        thread ? prof_process(data->capture, thread->process) : NULL;
    return prof_report_int(process ? process->pid : PROF_UNKNOWN);
}

static struct prof_report_value cpu_thread_name(const struct prof_report_data *data,
                                                const void *row)
{
    const struct prof_thread *thread = prof_thread(data->capture, HOST_THREAD(row)->thread);
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
    BY_ID(INT64, "tid", "Number", NUMBER, 3, prof_cpu_thread, thread, thread, tid),
    COMPUTED("name", "Name", NAME, 1, cpu_thread_name),
    {0},
};

const struct prof_report_table prof_report_host_threads_table = {
    .name = "host_threads",
    .part_order = 2,
    .title = "Time of threads",
    .none = "the host was not sampled (--cpu-sample)",
    .help = "Running includes the kernel's time for the thread; preempted is ready to run without "
            "a processor.",
    .screen_rows = 6,
    .optional = true,
    ROWS(prof_cpu_thread, host_thread, cpu.threads, cpu.thread_count),
};
