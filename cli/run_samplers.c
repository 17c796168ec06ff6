/* What is sampled beside the program: hardware counters (--counters) and where its threads run
 * (--cpu-sample). The sampler of counters is a program of its own: a crash or a hang inside a
 * vendor's library must not reach the recorder, and a program that loads CUDA is best not the one
 * that forks targets. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/installed.h"
#include "cli/process.h"
#include "cli/run.h"
#include "libprof/base/clock.h"
#include "libprof/base/format.h"
#include "samplers/counters/sets.h"

#define SAMPLER "perfkit_sampler"
#define START_MS 15000 /* initialising CUDA on a machine with many GPUs takes seconds */
#define LOOK_MS 50
#define MOST_PATTERN_BYTES 300u /* each may take three in the collector's options */
#define STOP_NS 5000000000ull   /* to decode the last burst */
#define LEAST_INTERVAL_NS 5000u /* what the hardware was seen to keep up with */

static void list_sets(char *out, size_t size)
{
    out[0] = '\0';
    for (size_t i = 0; i < counter_set_count; i++)
        prof_append(out, size, "%s%s", i ? ", " : "", counter_sets[i].name);
}

/* Per cent, to a share; 0 when it is none. */
static double duty_of(const char *text)
{
    char *end;
    double percent = strtod(text, &end);
    if (*end == '%')
        end++;
    return end != text && !*end && percent > 0 && percent <= 100 ? percent / 100 : 0;
}

/* The pattern of exact:PATTERN, or NULL. */
static const char *exact_pattern(const struct counters_options *options)
{
    size_t length = strlen(COUNTERS_EXACT);
    return options->set && strncmp(options->set, COUNTERS_EXACT, length) == 0
               ? options->set + length
               : NULL;
}

static bool check_exact(const char *command, const struct counters_options *options,
                        const char *trace)
{
    const char *pattern = exact_pattern(options);
    if (!*pattern || strlen(pattern) > MOST_PATTERN_BYTES)
        return cli_refuse(
            command, "--counters=exact: %s: give a pattern of the kernels' names, as in exact:gemm",
            *pattern ? "the pattern is too long" : "which kernels?");
    if (options->interval_ns != COUNTERS_OWN_INTERVAL || options->duty)
        return cli_refuse(command,
                          "--counters=exact samples nothing: leave out --counters-interval and "
                          "--counters-duty");
    if (!trace_names_domain(trace, "cuda"))
        return cli_refuse(command, "--counters=exact counts kernels of CUDA: add cuda to --trace");
    return scope_check_pattern(command, "--counters=exact:", pattern);
}

static bool hand_over_counters(const struct run *run, char *text, size_t size)
{
    const char *pattern = exact_pattern(&run->options.counters);
    if (!pattern)
        return true;
    size_t used = (size_t)snprintf(text, size, ",exact=");
    return used < size && scope_append_escaped(text, used, size, pattern, strlen(pattern)) < size;
}

static bool check_counters_options(struct run *run)
{
    const struct counters_options *options = &run->options.counters;
    const char *command = run->name, *trace = run->options.trace;
    bool own_interval = options->interval_ns == COUNTERS_OWN_INTERVAL;
    if (!options->set) {
        if (!own_interval || options->duty)
            cli_say(command, "--counters-interval and --counters-duty need --counters: say which "
                             "counters, as in --counters=roofline");
        return own_interval && !options->duty;
    }
    if (exact_pattern(options))
        return check_exact(command, options, trace);
    if (!counter_set_find(options->set)) {
        char sets[256];
        list_sets(sets, sizeof sets);
        return cli_refuse(command,
                          "--counters: there is no set '%s': give one of %s, or exact:KERNEL",
                          options->set, sets);
    }
    if (!trace_names_domain(trace, "cuda") && !trace_names_domain(trace, "opencl"))
        return cli_refuse(command, "--counters needs recorded kernels: add cuda to --trace");
    if (!own_interval && options->interval_ns < LEAST_INTERVAL_NS)
        return cli_refuse(command, "--counters-interval is out of range: give 5us to 100ms");
    if (options->duty && duty_of(options->duty) == 0)
        return cli_refuse(
            command,
            "--counters-duty: '%s' is not a share of the time: give per cent, above 0 "
            "and up to 100, as in 2%%",
            options->duty);
    return true;
}

static void __attribute__((format(printf, 2, 3)))
note_degraded_counters(struct prof_ingest *ingest, const char *format, ...)
{
    char text[200];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    prof_ingest_note(ingest, PROF_HEALTH_collector_degraded, "counters degraded", text, NULL);
}

struct arguments {
    char path[PATH_MAX];
    char texts[5][PATH_MAX + 16];
    char *list[7];
    size_t count; /* of texts */
    char **environment;
};

static void __attribute__((format(printf, 2, 3)))
add_argument(struct arguments *arguments, const char *format, ...)
{
    char *text = arguments->texts[arguments->count];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof arguments->texts[0], format, values);
    va_end(values);
    arguments->list[++arguments->count] = text;
}

static void make_arguments(struct arguments *arguments, const struct counters_options *options,
                           const char *spool)
{
    const char *cupti = getenv(CUPTI_VARIABLE);
    arguments->list[0] = arguments->path;
    add_argument(arguments, "dir=%s", spool);
    add_argument(arguments, "set=%s", options->set);
    if (cupti && *cupti)
        add_argument(arguments, "cupti=%s", cupti);
    if (options->interval_ns != COUNTERS_OWN_INTERVAL)
        add_argument(arguments, "interval=%llu", (unsigned long long)options->interval_ns);
    if (options->duty)
        add_argument(arguments, "duty=%.9g", duty_of(options->duty));
}

/* Under an outer perfkit the collector is in every process of this one, and takes part where
 * PERFKIT_DIR names a folder. It puts the variable back where it is missing, so it is set to none.
 */
static bool make_environment(struct arguments *arguments)
{
    static char no_folder[] = "PERFKIT_DIR=";
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    arguments->environment = calloc(count + 2, sizeof *arguments->environment);
    for (size_t i = 0; arguments->environment && i < count; i++) {
        if (strncmp(environ[i], no_folder, sizeof no_folder - 1) != 0)
            arguments->environment[kept++] = environ[i];
    }
    if (arguments->environment)
        arguments->environment[kept] = no_folder;
    return arguments->environment;
}

/* In the child; only what is async-signal-safe. */
static _Noreturn void become_sampler(const struct arguments *arguments,
                                     const struct inherited_fds *inherited, int stop, int ready)
{
    setpgid(0, 0); /* the terminal's keys are for the program */
    for (int i = 0; i < inherited->count; i++)
        close(inherited->fds[i]);
    if (dup2(stop, STDIN_FILENO) >= 0 && dup2(ready, STDOUT_FILENO) >= 0)
        execve(arguments->path, arguments->list, arguments->environment);
    _exit(127);
}

/* Until the other end is closed, the user wants to end, or for START_MS. */
static bool wait_ready(int fd)
{
    struct pollfd end = {.fd = fd};
    for (int waited = 0; waited < START_MS; waited += LOOK_MS) {
        if (poll(&end, 1, LOOK_MS) > 0 || signals_pending_end())
            return true;
    }
    return false;
}

static int spawn_sampler(struct counters *counters, const struct arguments *arguments,
                         const struct inherited_fds *inherited, int *ready)
{
    int stop[2], up[2];
    if (pipe2(stop, O_CLOEXEC) != 0)
        return errno;
    if (pipe2(up, O_CLOEXEC) != 0) {
        int saved = errno;
        close(stop[0]);
        close(stop[1]);
        return saved;
    }
    counters->pid = fork();
    if (counters->pid == 0)
        become_sampler(arguments, inherited, stop[0], up[1]);
    int saved = errno;
    close(stop[0]);
    close(up[1]);
    if (counters->pid > 0) {
        counters->stop = stop[1];
        *ready = up[0];
        return 0;
    }
    close(stop[1]);
    close(up[0]);
    counters->pid = 0;
    return saved;
}

/* Start the sampler, where the options select one, and wait until it samples, has said why it
 * cannot, or the user wants perfkit to end (signals_pending_end). What goes wrong is a note of the
 * capture: the run goes on. */
static void start_counters(struct run *run)
{
    const struct counters_options *options = &run->options.counters;
    static const char *const places[] = {SAMPLER, "../lib*/perfkit/" SAMPLER,
                                         "../lib/*/perfkit/" SAMPLER, NULL};
    struct arguments arguments = {0};
    int ready = -1;
    if (!options->set || exact_pattern(options))
        return;
    if (!beside_self(places, arguments.path)) {
        note_degraded_counters(run->ingest, "nothing was sampled: " SAMPLER
                                            " is not beside perfkit: install perfkit again");
        return;
    }
    make_arguments(&arguments, options, run->spool.path);
    int error = make_environment(&arguments)
                    ? spawn_sampler(&run->counters, &arguments, &run->inherited, &ready)
                    : ENOMEM;
    free(arguments.environment);
    if (error) {
        note_degraded_counters(run->ingest, "nothing was sampled: cannot start " SAMPLER ": %s",
                               strerror(error));
        return;
    }
    if (!wait_ready(ready))
        note_degraded_counters(
            run->ingest, "the sampler was slow to start: the program's beginning has no samples");
    close(ready);
}

/* Wait for the end of the sampler; kill it when it does not come. */
static int see_off(pid_t pid)
{
    int status = 0;
    bool killed = false;
    for (uint64_t until = prof_now_ns() + STOP_NS;;) {
        pid_t got = waitpid(pid, &status, killed ? 0 : WNOHANG);
        if (got == pid || (got < 0 && errno != EINTR))
            return status;
        if (!killed && prof_now_ns() > until)
            killed = kill(pid, SIGKILL) == 0;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

/* Let the sampler write what it has, and see it off. */
static void stop_counters(struct run *run, bool ran)
{
    struct counters *counters = &run->counters;
    if (counters->pid == 0)
        return;
    if (!ran)
        kill(counters->pid, SIGKILL);
    close(counters->stop);
    int status = see_off(counters->pid);
    counters->pid = 0;
    if (ran && WIFSIGNALED(status))
        note_degraded_counters(run->ingest,
                               "the sampler was ended by signal %d: samples may be missing "
                               "(`" SAMPLER " --self-test` shows what fails)",
                               WTERMSIG(status));
    else if (ran && WEXITSTATUS(status))
        note_degraded_counters(run->ingest,
                               "the sampler failed with status %d: nothing was sampled",
                               WEXITSTATUS(status));
}

const struct run_feature run_counters = {.name = "counters",
                                         .check = check_counters_options,
                                         .hand_over = hand_over_counters,
                                         .start = start_counters,
                                         .stop = stop_counters};

/* ---- stalls: sampled by the collector -------------------------------------------------------- */

static bool check_stalls_options(struct run *run)
{
    unsigned period = run->options.stalls;
    if (!period)
        return true;
    if (period < 32 || (period & (period - 1)))
        return cli_refuse(
            run->name,
            "--stalls: %u is no power of two from 32 up: give one, as in --stalls=" STALLS_PERIOD,
            period);
    if (run->options.counters.set)
        return cli_refuse(run->name,
                          "--stalls and --counters need the same hardware: give one of them");
    if (!trace_names_domain(run->options.trace, "cuda"))
        return cli_refuse(run->name, "--stalls samples kernels of CUDA: add cuda to --trace");
    return true;
}

static bool hand_over_stalls(const struct run *run, char *text, size_t size)
{
    unsigned period = run->options.stalls;
    return !period || (size_t)snprintf(text, size, ",stalls=%d", __builtin_ctz(period)) < size;
}

static bool note_stalls(const struct run *run, char *text, size_t size)
{
    snprintf(text, size, "instructions of CUDA's kernels are sampled every %s cycles",
             prof_count(run->options.stalls).text);
    return run->options.stalls;
}

const struct run_feature run_stalls = {.name = "stalls",
                                       .check = check_stalls_options,
                                       .hand_over = hand_over_stalls,
                                       .note = note_stalls};

/* ---- --cpu-sample ---------------------------------------------------------------------------- */

enum { STACK_DWARF, STACK_FP };
const char *const cpu_stack_words[] = {[STACK_DWARF] = "dwarf", [STACK_FP] = "fp", NULL};
const char *const cpu_blocked_words[] = {"on", "off", NULL};

/* Copied of each stack. At high rates less, for the buffers hold no more of them. */
static uint32_t copied_bytes(unsigned hz)
{
    return hz <= 250 ? 16384 : hz <= 1000 ? 8192 : 4096;
}

static bool check_cpu_options(struct run *run)
{
    const struct cpu_options *options = &run->options.cpu;
    if (options->hz == 0 && (options->blocked || options->stack))
        return cli_refuse(run->name, "--cpu-sample-%s needs --cpu-sample: give that too",
                          options->blocked ? "blocked" : "stack");
    return true;
}

/* The events are opened while the target's process still is perfkit's own, so that they begin with
 * its program; the thread starts when nothing is forked any more. */
void cpu_attach(void *context, pid_t pid)
{
    struct run *run = context;
    const struct cpu_options *wanted = &run->options.cpu;
    struct cpu_sampler_options options = {
        .directory = run->spool.path,
        .perf = {.pid = pid,
                 .hz = wanted->hz,
                 .stack_bytes = wanted->stack == STACK_DWARF ? copied_bytes(wanted->hz) : 0,
                 .switches = wanted->blocked == 0},
    };
    run->cpu.sampler = cpu_sampler_open(&options, run->cpu.why_not, sizeof run->cpu.why_not);
}

/* What went wrong is a note of the capture and is said on stderr. */
static void start_cpu(struct run *run)
{
    struct cpu *cpu = &run->cpu;
    if (cpu->sampler && !cpu_sampler_start(cpu->sampler)) {
        snprintf(cpu->why_not, sizeof cpu->why_not, "cannot start a thread: %s", strerror(errno));
        cpu_sampler_close(cpu->sampler);
        cpu->sampler = NULL;
    }
    if (!cpu->why_not[0])
        return;
    char note[480];
    snprintf(note, sizeof note, "--cpu-sample was given, but nothing is sampled: %s", cpu->why_not);
    prof_ingest_note(run->ingest, PROF_HEALTH_collector_degraded, "cpu-sample degraded", note,
                     NULL);
    cli_say(run->name, "%s", note);
}

static void stop_cpu(struct run *run, bool ran)
{
    (void)ran;
    cpu_sampler_close(run->cpu.sampler);
    run->cpu.sampler = NULL;
}

const struct run_feature run_cpu = {
    .name = "cpu-sample", .check = check_cpu_options, .started = start_cpu, .stop = stop_cpu};

/* ---- the machine ----------------------------------------------------------------------------- */

/* What perfkit itself reads of the machine while the program runs: samples of the driver's own
 * count of GPU memory and of the clocks, and two readings of the network ports' counters. A sample
 * of memory that says what the last one said is left out, but for one a second. Nothing of it is on
 * the program's threads, and nothing on a machine without an NVIDIA driver or network ports. */

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
    /* In a container the driver reports the host's pids, or none. */
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

/* Clocks are those of a GPU at work: they are not read before the program has found it. The driver
 * takes milliseconds for the counter of energy: the more GPUs it has found, the less often. */
static void look_at_clocks(struct memory_watch *watch, struct watched_device *device,
                           struct prof_ingest *ingest)
{
    uint64_t now = prof_now_ns();
    if (!device->known || now - device->clocks_ns < CLOCKS_NS)
        return;
    struct prof_nvml_reading reading = prof_nvml_clocks(watch->nvml, device->uuid);
    unsigned known = 0;
    for (unsigned i = 0; i < watch->count; i++)
        known += watch->devices[i].known;
    if (now - device->energy_ns >= CLOCKS_NS * known) {
        reading.energy_mj = prof_nvml_energy(watch->nvml, device->uuid);
        device->energy_ns = now;
        now = prof_now_ns(); /* the counter is never newer than its time */
    }
    if (reading.sm_mhz != PROF_UNKNOWN || reading.throttle != PROF_UNKNOWN ||
        reading.energy_mj != PROF_UNKNOWN)
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

/* The counter of energy is read once more, so that the program's last part has its share. */
static void stop_memory_watch(struct run *run, bool ran)
{
    for (unsigned i = 0; ran && i < run->memory.count; i++) {
        run->memory.devices[i].clocks_ns = run->memory.devices[i].energy_ns = 0;
        look_at_clocks(&run->memory, &run->memory.devices[i], run->ingest);
    }
    prof_nvml_close(run->memory.nvml);
    run->memory = (struct memory_watch){0};
}

const struct run_feature run_memory = {.name = "memory",
                                       .start = start_memory_watch,
                                       .step = step_memory_watch,
                                       .stop = stop_memory_watch};

/* ---- network --------------------------------------------------------------------------------- */

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
 * went back were reset: then nothing is known. */
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
