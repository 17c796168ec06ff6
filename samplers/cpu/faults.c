/* The page faults of a thread, as /proc/PID/task/TID/stat has them: the kernel counts them anyway,
 * so that the program pays nothing, the numbers are exact and need no rights. Events of the kernel
 * would cost the program a record for each fault, or be inexact. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "samplers/cpu/tasks.h"

#define MOST_KEPT_FILE 512 /* descriptors from this one on are left to the rest of perfkit */

void cpu_faults_close(struct cpu_faults *faults)
{
    if (faults->file)
        close(faults->file - 1);
    faults->file = 0;
}

/* Behind the name, which may hold anything, are 7 fields, the minor faults, those of children, and
 * the major ones (proc(5)). */
bool cpu_faults_parse(const char *stat, uint64_t *count, uint64_t *major)
{
    const char *end = strrchr(stat, ')');
    uint64_t minor;
    if (!end || sscanf(end + 1, " %*c %*s %*s %*s %*s %*s %*s %" SCNu64 " %*s %" SCNu64, &minor,
                       major) != 2)
        return false;
    *count = minor + *major;
    return true;
}

static bool read_counts(struct cpu_faults *faults, uint32_t pid, uint32_t tid, uint64_t *count,
                        uint64_t *major)
{
    char path[64], text[1024];
    int file = faults->file - 1;
    if (file < 0) {
        snprintf(path, sizeof path, "/proc/%u/task/%u/stat", pid, tid);
        file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0)
            return false;
        faults->file = file < MOST_KEPT_FILE ? file + 1 : 0;
    }
    ssize_t got = pread(file, text, sizeof text - 1, 0);
    if (!faults->file)
        close(file);
    text[got > 0 ? got : 0] = '\0';
    return cpu_faults_parse(text, count, major);
}

bool cpu_faults_read(struct cpu_faults *faults, uint32_t pid, uint32_t tid,
                     struct cpu_fault_stretch *stretch)
{
    uint64_t count, major;
    if (!read_counts(faults, pid, tid, &count, &major))
        return false;
    return cpu_faults_take(faults, prof_now_ns(), count, major, stretch);
}

bool cpu_faults_take(struct cpu_faults *faults, uint64_t now_ns, uint64_t count, uint64_t major,
                     struct cpu_fault_stretch *stretch)
{
    const struct cpu_faults last = *faults;
    faults->read_ns = now_ns;
    faults->count = count;
    faults->major = major;
    if (!last.read_ns || now_ns <= last.read_ns || count < last.count || major < last.major)
        return false;
    *stretch =
        (struct cpu_fault_stretch){last.read_ns, now_ns, count - last.count, major - last.major};
    if (stretch->count) {
        if (faults->rises[faults->rise].to_ns != last.read_ns) {
            faults->rise = (faults->rise + 1) % CPU_RISES;
            faults->rises[faults->rise].from_ns = last.read_ns;
        }
        faults->rises[faults->rise].to_ns = now_ns;
    }
    bool wanted = stretch->count || !last.told;
    faults->told = true;
    return wanted;
}

bool cpu_faults_rise(const struct cpu_faults *faults, uint64_t time_ns)
{
    for (unsigned i = 0; i < CPU_RISES; i++) {
        if (faults->rises[i].from_ns <= time_ns && time_ns <= faults->rises[i].to_ns)
            return true;
    }
    return false;
}
