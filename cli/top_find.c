/* Which capture `perfkit top` shows, and what perfkit itself costs. What is started is a `perfkit
 * run` like any other: it may be left alone, watched by a second top, controlled by `perfkit ctl`.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/find_capture.h"
#include "cli/run.h"
#include "cli/spool_folder.h"
#include "cli/top.h"
#include "libprof/base/clock.h"
#include "libprof/base/format.h"
#include "libprof/base/regular.h"
#include "libprof/base/utf8.h"
#include "libprof/include/prof.h"
#include "libprof/spool/layout.h"
#include "libprof/spool/owner.h"

#define LOOK_NS 20000000l
#define MOST_COMMAND 60

static void show_found(struct top_capture *capture, const struct spool_found *found)
{
    snprintf(capture->path, PATH_MAX, "%s", found->capture.live);
    if (strcmp(found->capture.live, found->capture.final) != 0)
        snprintf(capture->final, PATH_MAX, "%s", found->capture.final);
}

void top_named(const char *file, struct top_capture *capture)
{
    char real[PATH_MAX];
    struct spool_found found;
    memset(capture, 0, sizeof *capture);
    snprintf(capture->path, PATH_MAX, "%s", file);
    if (realpath(file, real) && spool_find_running_of(real, &found))
        show_found(capture, &found);
}

/* "  2  run.sqlite  ./train --steps 9, for 3.20 s" */
static void show_choice(size_t number, const struct spool_capture *choice)
{
    struct prof_capture *capture = NULL;
    PROF_FREED char *name = prof_report_clean(choice->final);
    fprintf(stderr, "  %zu  %s", number, name ? name : "");
    if (!prof_open(choice->live, &capture, NULL)) {
        const struct prof_info *info = prof_info(capture);
        PROF_FREED char *command =
            info->command ? prof_report_cut(info->command, MOST_COMMAND) : NULL;
        int64_t since = info->start_mono_ns == PROF_UNKNOWN
                            ? PROF_UNKNOWN
                            : (int64_t)prof_now_ns() - info->start_mono_ns;
        fprintf(stderr, "  %s, for %s", command ? command : "n/a", prof_duration_ns(since).text);
        prof_close(capture);
    }
    fputc('\n', stderr);
}

/* The user's answer; -1 = none of them. */
static int prompt_for_capture(const struct spool_list *list)
{
    char line[32];
    fprintf(stderr, "Captures that are being recorded:\n");
    for (size_t i = 0; i < list->count; i++)
        show_choice(i + 1, &list->data[i].capture);
    for (;;) {
        fprintf(stderr, "Which one (1-%zu)? ", list->count);
        if (!fgets(line, sizeof line, stdin) || line[0] == 'q' || line[0] == '\n')
            return -1;
        long number = strtol(line, NULL, 10);
        if (number >= 1 && (size_t)number <= list->count)
            return (int)number - 1;
    }
}

static enum prof_status choose_capture(const struct spool_list *list, bool choose,
                                       struct top_capture *capture, struct prof_error *err)
{
    int which = list->count == 1 ? 0 : choose && list->count ? prompt_for_capture(list) : -1;
    if (!list->count)
        return prof_fail(err, PROF_NOTFOUND,
                         "no capture is being recorded by this user: name a file, or record a "
                         "program with perfkit run -- COMMAND");
    if (which < 0)
        return prof_fail(err, PROF_INVALID,
                         "%zu captures are being recorded, %s the first: name one", list->count,
                         list->data[0].capture.final);
    memset(capture, 0, sizeof *capture);
    show_found(capture, &list->data[which]);
    return PROF_OK;
}

enum prof_status top_running(bool choose, struct top_capture *capture, struct prof_error *err)
{
    PROF_FREED struct spool_list list = {0};
    spool_find_running(&list);
    return choose_capture(&list, choose, capture, err);
}

bool top_is_served(void *context, const char *spool)
{
    struct stat info;
    (void)context;
    if (!spool)
        return true; /* not known */
    if (stat(spool, &info) != 0)
        return errno != ENOENT;
    return info.st_uid != geteuid() || spool_owner(spool) == SPOOL_OWNER_LIVES;
}

/* ---- starting -------------------------------------------------------------------------------- */

static _Noreturn void become_recorder(char **command, char **run_options,
                                      const struct top_capture *capture, int output)
{
    char *arguments[4] = {(char *)(uintptr_t) "perfkit", (char *)(uintptr_t) "run",
                          (char *)(uintptr_t) "-o", (char *)(uintptr_t)capture->path};
    size_t count = 0, options = 0;
    while (command[count])
        count++;
    while (run_options[options])
        options++;
    char **argv = calloc(count + options + 6, sizeof *argv);
    int null = open("/dev/null", O_RDONLY);
    if (!argv || null < 0)
        _exit(125);
    memcpy(argv, arguments, sizeof arguments);
    memcpy(argv + 4, run_options, options * sizeof *argv);
    argv[4 + options] = (char *)(uintptr_t) "--";
    memcpy(argv + 5 + options, command, count * sizeof *argv);
    setpgid(0, 0);
    dup2(null, 0);
    dup2(output, 1);
    dup2(output, 2);
    execv("/proc/self/exe", argv);
    _exit(125);
}

/* The capture is made before the program is started, and taken away again when it cannot be. One
 * that is to be replaced has the inode `old`. */
static bool has_started(const char *path, ino_t old)
{
    CLI_CLOSED struct prof_capture *capture = NULL;
    const struct prof_process *list;
    struct stat info;
    if (stat(path, &info) || info.st_ino == old || access(path, R_OK) != 0 ||
        prof_open(path, &capture, NULL))
        return false;
    return prof_processes(capture, &list) > 0;
}

static enum prof_status wait_for_capture(struct top_capture *capture, ino_t old, int *status,
                                         struct prof_error *err)
{
    for (;;) {
        if (has_started(capture->path, old))
            return PROF_OK;
        if (waitpid(capture->recorder, status, WNOHANG) == capture->recorder) {
            *status = WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
            capture->recorder = 0;
            if (access(capture->path, R_OK) == 0)
                return PROF_OK;
            return prof_fail(err, PROF_SYSTEM, "perfkit run ended without a capture: see %s",
                             capture->output);
        }
        /* Where the capture grows elsewhere, its recorder says so. */
        struct spool_found found;
        if (spool_find_running_of(capture->path, &found))
            show_found(capture, &found);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
}

static enum prof_status name_output(struct top_capture *capture, const char *output,
                                    struct prof_error *err)
{
    static const char suffix[] = ".sqlite";
    size_t length = strlen(capture->path);
    if (output) {
        snprintf(capture->output, PATH_MAX, "%s", output);
        return PROF_OK;
    }
    if (prof_ends_with(capture->path, suffix))
        length -= sizeof suffix - 1;
    if (snprintf(capture->output, PATH_MAX, "%.*s.out", (int)length, capture->path) >= PATH_MAX)
        return prof_fail(err, PROF_INVALID, "the name of the capture is too long");
    return PROF_OK;
}

enum prof_status top_start(char **command, char **run_options, bool force, const char *file,
                           const char *output, struct top_capture *capture, int *status,
                           struct prof_error *err)
{
    PROF_FREED struct run_output *place = calloc(1, sizeof *place);
    memset(capture, 0, sizeof *capture);
    if (!place)
        return prof_out_of_memory(err);
    char subject[PATH_MAX];
    output_subject(command, subject);
    enum prof_status result = output_choose(place, file, subject, force, err);
    snprintf(capture->path, PATH_MAX, "%s", place->final);
    if (!result)
        result = name_output(capture, output, err);
    if (result)
        return result;
    int out = open(capture->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (out < 0)
        return prof_fail_errno(err, PROF_IO, "cannot write what the program prints to %s",
                               capture->output);
    struct stat info;
    ino_t old = stat(capture->path, &info) ? 0 : info.st_ino;
    capture->recorder = fork();
    if (capture->recorder == 0)
        become_recorder(command, run_options, capture, out);
    close(out);
    if (capture->recorder < 0)
        return prof_fail_errno(err, PROF_SYSTEM, "cannot start perfkit run");
    setpgid(capture->recorder, capture->recorder);
    return wait_for_capture(capture, old, status, err);
}

/* ---- what perfkit costs ---------------------------------------------------------------------- */

/* The counters of dropped records are at the head of each spool. */

#define LEAST_SPAN_NS 500000000ull /* shorter ones say little of a load */

/* CPU seconds and resident bytes of a process; false when it is gone. */
static bool usage_of(int64_t pid, double *cpu_s, int64_t *bytes)
{
    char path[64], line[1024];
    unsigned long user, system;
    long pages;
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    const char *rest = prof_first_line(path, line, sizeof line)
                           ? strrchr(line, ')') /* the name may hold anything */
                           : NULL;
    if (!rest || sscanf(rest + 2,
                        "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %*d "
                        "%*d %*u %*u %ld",
                        &user, &system, &pages) != 3)
        return false;
    *cpu_s = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
    *bytes = (int64_t)pages * sysconf(_SC_PAGESIZE);
    return true;
}

static void measure_process_usage(struct top_usage *usage, int64_t pid, double *share,
                                  int64_t *bytes)
{
    double cpu;
    uint64_t now = prof_now_ns();
    if (pid != usage->pid) {
        *usage = (struct top_usage){.pid = pid};
        *share = NAN;
    }
    if (pid <= 0 || !usage_of(pid, &cpu, bytes)) {
        *share = NAN;
        *bytes = PROF_UNKNOWN;
        return;
    }
    if (usage->at_ns && now - usage->at_ns < LEAST_SPAN_NS)
        return;
    if (usage->at_ns)
        *share = (cpu - usage->cpu_s) * 1e9 / (double)(now - usage->at_ns);
    usage->cpu_s = cpu;
    usage->at_ns = now;
}

static void add_spool(void *context, const struct spool_header *header, int64_t disk_bytes)
{
    struct tui_health *health = context;
    for (size_t i = 0; i < sizeof header->dropped / sizeof header->dropped[0]; i++)
        health->dropped += (int64_t)header->dropped[i];
    health->spools++;
    health->spool_bytes += disk_bytes;
}

/* The first line of /proc/stat: ticks in user, nice, system, idle, iowait, irq, softirq, steal. */
static void measure_machine(struct top_measure *m, double *share)
{
    unsigned long long t[8], all = 0;
    char line[512];
    if (!prof_first_line("/proc/stat", line, sizeof line) ||
        sscanf(line, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3],
               &t[4], &t[5], &t[6], &t[7]) != 8)
        return;
    for (int i = 0; i < 8; i++)
        all += t[i];
    unsigned long long busy = all - t[3] - t[4];
    if (m->all_ticks && all > m->all_ticks)
        *share = (double)(busy - m->busy_ticks) / (double)(all - m->all_ticks);
    m->busy_ticks = busy;
    m->all_ticks = all;
}

void top_measure(void *context, struct tui_health *health)
{
    struct top_measure *m = context;
    const char *spool = m->model->info.spool;
    struct control control;
    health->recorder_pid = PROF_UNKNOWN;
    if (tui_model_is_live(m->model) && spool) {
        health->dropped = health->spools = health->spool_bytes = 0;
        if (!spool_headers(spool, add_spool, health))
            health->dropped = health->spools = health->spool_bytes = PROF_UNKNOWN;
        if (!control_find(&control, spool, NULL)) {
            health->recorder_pid = control.page->owner;
            control_close(&control);
        }
    }
    measure_process_usage(&m->recorder, health->recorder_pid, &health->recorder_cpu,
                          &health->recorder_bytes);
    measure_machine(m, &health->machine_cpu);
    measure_process_usage(&m->own, getpid(), &health->own_cpu, &health->own_bytes);
}
