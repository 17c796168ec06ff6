/* The NVIDIA driver, its devices, CUPTI and the right to read counters. The driver and CUPTI are
 * loaded in a child, by name and without their headers, so that this works in every build. */
#include <dlfcn.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/build.h"
#include "cli/doctor.h"
#include "cli/run_environment.h"

#define GROUP "cuda"

/* First line: driver version and number of devices; then a device each. "!text" on failure. */
static void probe_driver(void *context, char *reply, size_t size)
{
    (void)context;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(reply, size, "!%s", dlerror());
        return;
    }
    int (*init)(unsigned) = (int (*)(unsigned))(uintptr_t)dlsym(library, "cuInit");
    int (*version)(int *) = (int (*)(int *))(uintptr_t)dlsym(library, "cuDriverGetVersion");
    int (*count)(int *) = (int (*)(int *))(uintptr_t)dlsym(library, "cuDeviceGetCount");
    int (*name)(char *, int, int) =
        (int (*)(char *, int, int))(uintptr_t)dlsym(library, "cuDeviceGetName");
    if (!init || !version || !count || !name) {
        snprintf(reply, size, "!libcuda.so.1 lacks cuInit or its friends");
        return;
    }
    int code = init(0), number = 0, supported = 0;
    if (code) {
        snprintf(reply, size, "!cuInit returned %d", code);
        return;
    }
    version(&supported);
    count(&number);
    size_t used = (size_t)snprintf(reply, size, "CUDA %d.%d, %d device%s", supported / 1000,
                                   supported % 1000 / 10, number, number == 1 ? "" : "s");
    for (int i = 0; i < number && used < size; i++) {
        char text[128] = "";
        if (name(text, sizeof text, i) == 0)
            used += (size_t)snprintf(reply + used, size - used, "%s%s", i ? ", " : ": ", text);
    }
}

/* Where the collector looks by itself, in its order; then, marked so, where CUPTI may be as well.
 */
static const struct {
    const char *place; /* a name for the loader, or a pattern of paths; "~" stands for CUDA_HOME */
    bool collector;
} cupti_places[] = {
    {"libcupti.so.13", true},
    {"libcupti.so.12", true},
    {"libcupti.so", true},
#ifdef PERFKIT_CUPTI_LIBDIR
    {PERFKIT_CUPTI_LIBDIR "/libcupti.so*", true},
#endif
    {"/usr/local/cuda/lib64/libcupti.so*", true},
    {"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so*", true},
    {"/usr/lib/x86_64-linux-gnu/libcupti.so*", true},
    {"~/lib64/libcupti.so*", false},
    {"~/extras/CUPTI/lib64/libcupti.so*", false},
    {"/usr/local/cuda-1*/extras/CUPTI/lib64/libcupti.so*", false},
    {"/usr/lib/python3*/*-packages/nvidia/*/lib/libcupti.so*", false},
    {"/usr/local/lib/python3*/*-packages/nvidia/*/lib/libcupti.so*", false},
};

/* Load what a place names; the path goes to path[size]. */
static void *open_library_path(const char *place, char *path, size_t size)
{
    if (!strchr(place, '/')) {
        snprintf(path, size, "%s", place);
        return dlopen(place, RTLD_NOW | RTLD_LOCAL);
    }
    char pattern[1024];
    const char *home = getenv("CUDA_HOME");
    if (place[0] == '~' && !home)
        return NULL;
    snprintf(pattern, sizeof pattern, "%s%s", place[0] == '~' ? home : "",
             place + (place[0] == '~'));
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0)
        return NULL;
    snprintf(path, size, "%s", found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* "PATH, API version N"; "?PATH" when it is where the collector does not look. */
static void probe_cupti(void *context, char *reply, size_t size)
{
    (void)context;
    char path[1024];
    const char *given = getenv(CUPTI_VARIABLE);
    void *library = given && *given ? open_library_path(given, path, sizeof path) : NULL;
    bool known = true;
    for (size_t i = 0; !library && i < sizeof cupti_places / sizeof cupti_places[0]; i++) {
        library = open_library_path(cupti_places[i].place, path, sizeof path);
        known = cupti_places[i].collector;
    }
    if (!library) {
        snprintf(reply, size,
                 "!not found by the loader, in CUDA_HOME, /usr/local/cuda or the "
                 "Python packages");
        return;
    }
    uint32_t version = 0;
    int (*get)(uint32_t *) = (int (*)(uint32_t *))(uintptr_t)dlsym(library, "cuptiGetVersion");
    if (get)
        get(&version);
    if (known)
        snprintf(reply, size, "%s, API version %u", path, version);
    else
        snprintf(reply, size, "?%s", path);
}

static bool check_cupti(struct doctor *doctor)
{
    char reply[PROBE_REPLY], remedy[PROBE_REPLY + 64];
    bool answered = probe_run(probe_cupti, NULL, reply, sizeof reply);
    if (answered && reply[0] == '?') {
        snprintf(remedy, sizeof remedy, "export " CUPTI_VARIABLE "=%s", reply + 1);
        doctor_add(doctor, GROUP, "CUPTI", DOCTOR_FAIL, remedy,
                   "%s is where the collector does not look", reply + 1);
        return false;
    }
    bool ok = answered && reply[0] != '!';
    doctor_add(doctor, GROUP, "CUPTI", ok ? DOCTOR_OK : DOCTOR_FAIL,
               ok ? NULL
                  : "install the CUDA toolkit's CUPTI (package cuda-cupti), or set " CUPTI_VARIABLE
                    " to the path of libcupti.so",
               "%s", reply[0] == '!' ? reply + 1 : reply);
    return ok;
}

static bool check_kernel_driver(struct doctor *doctor)
{
    char line[256] = "";
    FILE *in = fopen("/proc/driver/nvidia/version", "re");
    bool here = in && fgets(line, sizeof line, in);
    if (in)
        fclose(in);
    line[strcspn(line, "\n")] = '\0';
    if (here)
        doctor_add(doctor, GROUP, "kernel driver", DOCTOR_OK, NULL, "%s", line);
    return here;
}

static void check_counters(struct doctor *doctor)
{
    char line[256];
    int admin_only = -1;
    FILE *in = fopen("/proc/driver/nvidia/params", "re");
    while (in && fgets(line, sizeof line, in))
        sscanf(line, "RmProfilingAdminOnly: %d", &admin_only);
    if (in)
        fclose(in);
    if (admin_only == 1 && geteuid() != 0)
        doctor_add(doctor, GROUP, "counters", DOCTOR_WARN,
                   "put `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into "
                   "/etc/modprobe.d/perfkit.conf and reboot, or run as root",
                   "only root may read hardware counters; timelines need no such right");
    else if (admin_only >= 0)
        doctor_add(doctor, GROUP, "counters", DOCTOR_OK, NULL, "may be read by you");
}

void doctor_cuda(struct doctor *doctor)
{
    char reply[PROBE_REPLY];
    bool kernel_driver = check_kernel_driver(doctor);
    bool loaded = probe_run(probe_driver, NULL, reply, sizeof reply) && reply[0] != '!';
    if (!kernel_driver && !loaded) {
        doctor_add(doctor, GROUP, "driver", DOCTOR_ABSENT, NULL, "no NVIDIA driver here");
        return;
    }
    doctor_add(doctor, GROUP, "driver", loaded ? DOCTOR_OK : DOCTOR_FAIL,
               loaded ? NULL
                      : "install the driver's user part (libcuda.so.1) of the same version; in a "
                        "container, start it with the NVIDIA runtime",
               "%s", reply[0] == '!' ? reply + 1 : reply);
    if (!PERFKIT_HAVE_CUDA) {
        doctor_add(doctor, GROUP, "collector", DOCTOR_FAIL,
                   "build again with cuda.h and cupti.h: set CUDA_HOME to a toolkit, then "
                   "cmake -DPERFKIT_CUDA_COLLECTOR=ON",
                   "this perfkit is built without the CUDA collector");
        return;
    }
    bool cupti = check_cupti(doctor);
    check_counters(doctor);
    doctor->can_cuda = loaded && cupti && doctor->collector[0];
}
