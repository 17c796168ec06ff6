/* See top_measure.h. The counters of dropped records stand at the head of each spool. */
#include "cli/top_measure.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/control.h"
#include "libprof/base/clock.h"
#include "libprof/spool/layout.h"

#define LEAST_SPAN_NS 500000000ull /* shorter ones say little of a load */

/* CPU seconds and resident bytes of a process; false when it is gone. */
static bool usage_of(int64_t pid, double *cpu_s, int64_t *bytes)
{
    char path[64], line[1024];
    unsigned long user, system;
    long pages;
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    FILE *file = fopen(path, "re");
    bool read = file && fgets(line, sizeof line, file);
    if (file)
        fclose(file);
    const char *rest = read ? strrchr(line, ')') : NULL; /* the name may hold anything */
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

static bool add_spool(int folder, const char *name, struct tui_health *health)
{
    struct spool_header header;
    struct stat info;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool whole = pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header &&
                 header.magic == SPOOL_MAGIC && fstat(fd, &info) == 0;
    close(fd);
    if (!whole)
        return false;
    for (size_t i = 0; i < sizeof header.dropped / sizeof header.dropped[0]; i++)
        health->dropped += (int64_t)header.dropped[i];
    health->spools++;
    health->spool_bytes += (int64_t)info.st_blocks * 512;
    return true;
}

static void look_at_spools(const char *folder, struct tui_health *health)
{
    DIR *dir = opendir(folder);
    size_t suffix = strlen(SPOOL_SUFFIX);
    health->dropped = health->spools = health->spool_bytes = dir ? 0 : PROF_UNKNOWN;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        size_t length = strlen(entry->d_name);
        if (length > suffix && !strcmp(entry->d_name + length - suffix, SPOOL_SUFFIX))
            add_spool(dirfd(dir), entry->d_name, health);
    }
    if (dir)
        closedir(dir);
}

/* The first line of /proc/stat: ticks in user, nice, system, idle, iowait, irq, softirq, steal. */
static void measure_machine(struct top_measure *m, double *share)
{
    unsigned long long t[8], all = 0;
    FILE *file = fopen("/proc/stat", "re");
    int read = file ? fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1],
                             &t[2], &t[3], &t[4], &t[5], &t[6], &t[7])
                    : 0;
    if (file)
        fclose(file);
    if (read != 8)
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
        look_at_spools(spool, health);
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
