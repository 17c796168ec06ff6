/* The collector library and the system around it: limits, shared memory, kernel features. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/collector_path.h"
#include "cli/doctor.h"
#include "samplers/cpu/perf_open.h"
#include "cli/stack_names.h"
#include "libprof/base/format.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

static const struct {
    const char *symbol, *domain;
} entry_points[] = {
    {"InitializeInjection", "cuda"},
    {"InitializeInjectionNvtx2", "nvtx"},
    {"clGetLayerInfo", "opencl"},
};

/* Loads the collector and lists the domains whose entry point it has. */
static void probe_collector(void *context, char *reply, size_t size)
{
    void *library = dlopen(context, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(reply, size, "!%s", dlerror());
        return;
    }
    size_t used = 0;
    for (size_t i = 0; i < sizeof entry_points / sizeof entry_points[0]; i++)
        if (dlsym(library, entry_points[i].symbol))
            used += (size_t)snprintf(reply + used, size - used, "%s%s", used ? ", " : "",
                                     entry_points[i].domain);
}

void doctor_collector(struct doctor *doctor)
{
    struct prof_error err = {0};
    char reply[PROBE_REPLY];
    if (collector_path(doctor->collector, &err)) {
        doctor->collector[0] = '\0';
        doctor_add(doctor, "collector", "library", DOCTOR_FAIL,
                   "install perfkit again, or set PERFKIT_COLLECTOR", "%s", err.message);
        return;
    }
    if (!probe_run(probe_collector, doctor->collector, reply, sizeof reply) || reply[0] == '!') {
        doctor_add(doctor, "collector", "library", DOCTOR_FAIL,
                   "build perfkit on this machine, or for its C library", "%s cannot be loaded: %s",
                   doctor->collector, reply[0] == '!' ? reply + 1 : reply);
        doctor->collector[0] = '\0';
        return;
    }
    doctor->can_nvtx = strstr(reply, "nvtx") != NULL;
    doctor_add(doctor, "collector", "library", DOCTOR_OK, NULL, "%s", doctor->collector);
    if (strpbrk(doctor->collector, " :"))
        doctor_add(doctor, "collector", "path", DOCTOR_WARN,
                   "install perfkit, or move it, to a path without blanks and colons",
                   "LD_PRELOAD%s cannot express it: %show processes end and short-lived children "
                   "are not seen",
                   strchr(doctor->collector, ':') ? " and OPENCL_LAYERS" : "",
                   strchr(doctor->collector, ':') ? "OpenCL is not recorded, and " : "");
    doctor_add(doctor, "collector", "sources", *reply ? DOCTOR_OK : DOCTOR_FAIL,
               *reply ? NULL : "build perfkit again", "built in: %s", *reply ? reply : "none");
}

static void check_shm(struct doctor *doctor)
{
    struct statvfs info;
    if (statvfs("/dev/shm", &info) < 0 || access("/dev/shm", W_OK) < 0) {
        doctor_add(doctor, "system", "/dev/shm", DOCTOR_WARN,
                   "mount a tmpfs there; until then the spool goes to TMPDIR or /tmp",
                   "cannot be written");
        return;
    }
    double bytes = (double)info.f_bavail * (double)info.f_frsize;
    bool small = bytes < 256.0 * 1024 * 1024;
    doctor_add(doctor, "system", "/dev/shm", small ? DOCTOR_WARN : DOCTOR_OK,
               small
                   ? "give it more (mount -o remount,size=1G /dev/shm; docker run --shm-size=1g); "
                     "until then the spool goes to TMPDIR or /tmp"
                   : NULL,
               "%s free", prof_bytes(bytes).text);
}

static void check_limit(struct doctor *doctor, const char *name, int which, const char *effect)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)which, &limit) < 0)
        return;
    if (limit.rlim_cur == RLIM_INFINITY)
        doctor_add(doctor, "system", name, DOCTOR_OK, NULL, "unlimited");
    else
        doctor_add(doctor, "system", name, effect ? DOCTOR_WARN : DOCTOR_OK, effect, "%s",
                   prof_bytes((double)limit.rlim_cur).text);
}

static void check_linux_kernel(struct doctor *doctor)
{
    struct utsname name;
    uname(&name);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool wipe = page != MAP_FAILED && madvise(page, 4096, MADV_WIPEONFORK) == 0;
    if (page != MAP_FAILED)
        munmap(page, 4096);
    doctor_add(doctor, "system", "fork", wipe ? DOCTOR_OK : DOCTOR_FAIL,
               wipe ? NULL : "use Linux 4.14 or newer (and no sandbox that lacks madvise)",
               "MADV_WIPEONFORK %s (%s %s)", wipe ? "works" : "is missing", name.sysname,
               name.release);
    long fd = syscall(SYS_pidfd_open, getpid(), 0);
    if (fd >= 0)
        close((int)fd);
    doctor_add(doctor, "system", "pidfd", fd >= 0 ? DOCTOR_OK : DOCTOR_WARN,
               fd >= 0 ? NULL : "use Linux 5.3 or newer; until then ends of processes are polled",
               "%s", fd >= 0 ? "works" : "is missing");
}

/* By trying: what the level says is not what a sandbox allows. */
static void check_perf_events(struct doctor *doctor)
{
    struct cpu_perf perf;
    struct cpu_perf_options options = {.pid = getpid(), .hz = 1, .switches = true};
    char why[300];
    int level = 0;
    bool known = cpu_perf_paranoid(&level);
    if (!cpu_perf_open(&perf, &options, why, sizeof why)) {
        doctor_add(doctor, "system", "perf events", known ? DOCTOR_WARN : DOCTOR_ABSENT,
                   known ? why : NULL, "perfkit run --cpu-sample samples nothing%s%s",
                   known ? "" : ": ", known ? "" : why);
        return;
    }
    bool kernel = perf.kernel;
    cpu_perf_close(&perf);
    doctor_add(doctor, "system", "perf events", kernel ? DOCTOR_OK : DOCTOR_WARN,
               kernel
                   ? NULL
                   : "sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON for perfkit: until then "
                     "--cpu-sample does not see where threads block, nor time in the kernel",
               "perf_event_paranoid is %d; perfkit run --cpu-sample works", level);
}

/* What names can be found for host stacks. */
static void check_symbolizer(struct doctor *doctor)
{
    char path[PATH_MAX], command[PATH_MAX + 32], reads[32] = "";
    FILE *out = NULL;
    if (stack_names_helper(path) && !strpbrk(path, "'\\")) {
        snprintf(command, sizeof command, "exec '%s' --reads", path);
        out = popen(command, "re");
    }
    if (out) {
        if (!fgets(reads, sizeof reads, out))
            reads[0] = '\0';
        pclose(out);
    }
    reads[strcspn(reads, "\n")] = '\0';
    bool lines = strcmp(reads, "lines") == 0;
    if (!reads[0])
        doctor_add(doctor, "system", "stack names", DOCTOR_WARN, "install perfkit whole",
                   "%s is missing or does not run: frames of stacks stay addresses", SYMBOLIZER);
    else
        doctor_add(doctor, "system", "stack names", lines ? DOCTOR_OK : DOCTOR_WARN,
                   lines ? NULL : "build perfkit with elfutils (Debian: libdw-dev)", "%s",
                   lines ? "functions, inlined functions, files and lines"
                         : "functions only: perfkit was built without libdw");
}

void doctor_system(struct doctor *doctor)
{
    check_shm(doctor);
    check_limit(doctor, "file size", RLIMIT_FSIZE,
                "raise it (ulimit -f unlimited): a spool cannot grow past it, and records are then "
                "dropped");
    check_limit(doctor, "locked memory", RLIMIT_MEMLOCK, NULL);
    check_linux_kernel(doctor);
    check_perf_events(doctor);
    check_symbolizer(doctor);
}
