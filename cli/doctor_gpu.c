/* What perfkit doctor finds out of CUDA and OpenCL. */
#include <dirent.h>
#include <dlfcn.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/device.h"
#include "cli/doctor.h"
#include "cli/installed.h"
#include "cli/run.h"
#include "libprof/base/regular.h"

/* ---- CUDA ------------------------------------------------------------------------------------ */

/* The NVIDIA driver, its devices, CUPTI and the right to read counters. The driver and CUPTI are
 * loaded in a child, by name and without their headers, so that this works in every build. */

/* Where the collector looks by itself, in its order; then, marked so, where CUPTI may be as well.
 */
static const struct {
    const char *place; /* a name for the loader, or a pattern of paths; "~" means CUDA_HOME */
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
                 "!not found by the loader, in CUDA_HOME, /usr/local/cuda or the Python packages");
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
        doctor_add(doctor, "cuda", "CUPTI", DOCTOR_FAIL, remedy,
                   "%s is where the collector does not look", reply + 1);
        return false;
    }
    bool ok = answered && reply[0] != '!';
    doctor_add(doctor, "cuda", "CUPTI", ok ? DOCTOR_OK : DOCTOR_FAIL,
               ok ? NULL
                  : "install the CUDA toolkit's CUPTI (package cuda-cupti), or set " CUPTI_VARIABLE
                    " to the path of libcupti.so",
               "%s", reply[0] == '!' ? reply + 1 : reply);
    return ok;
}

static bool check_kernel_driver(struct doctor *doctor)
{
    char line[256];
    bool here = prof_first_line("/proc/driver/nvidia/version", line, sizeof line);
    if (here)
        doctor_add(doctor, "cuda", "kernel driver", DOCTOR_OK, NULL, "%s", line);
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
        doctor_add(doctor, "cuda", "counters", DOCTOR_WARN,
                   "put `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into "
                   "/etc/modprobe.d/perfkit.conf and reboot, or run as root",
                   "only root may read hardware counters; timelines need no such right");
    else if (admin_only >= 0)
        doctor_add(doctor, "cuda", "counters", DOCTOR_OK, NULL, "may be read by you");
}

void doctor_cuda(struct doctor *doctor)
{
    char reply[PROBE_REPLY];
    bool kernel_driver = check_kernel_driver(doctor);
    bool loaded = device_probe_cuda(NULL, reply);
    if (!kernel_driver && !loaded) {
        doctor_add(doctor, "cuda", "driver", DOCTOR_ABSENT, NULL, "no NVIDIA driver here");
        return;
    }
    doctor_add(doctor, "cuda", "driver", loaded ? DOCTOR_OK : DOCTOR_FAIL,
               loaded ? NULL
                      : "install the driver's user part (libcuda.so.1) of the same version; in a "
                        "container, start it with the NVIDIA runtime",
               "%s", reply);
    if (!PERFKIT_HAVE_CUDA) {
        doctor_add(doctor, "cuda", "collector", DOCTOR_FAIL,
                   "build again with cuda.h and cupti.h: set CUDA_HOME to a toolkit, then cmake "
                   "-DPERFKIT_CUDA_COLLECTOR=ON",
                   "this perfkit is built without the CUDA collector");
        return;
    }
    bool cupti = check_cupti(doctor);
    check_counters(doctor);
    doctor->can_cuda = loaded && cupti && doctor->collector[0];
}

/* ---- OpenCL ---------------------------------------------------------------------------------- */

/* The OpenCL loader, the drivers that its ICD files name, their devices, and whether the loader
 * brings in a layer: old ones know nothing of layers and say nothing about it. */

#define LOADER OPENCL_LOADER_NAME
#define PLATFORMS 16

static bool is_mapped(const char *path)
{
    char line[PATH_MAX + 128];
    bool found = false;
    FILE *in = fopen("/proc/self/maps", "re");
    while (in && !found && fgets(line, sizeof line, in))
        found = strstr(line, path) != NULL;
    if (in)
        fclose(in);
    return found;
}

/* The layer is loaded at the first question about platforms. */
static void probe_layer(void *context, char *reply, size_t size)
{
    struct opencl_calls loader;
    opencl_handle platforms[PLATFORMS];
    uint32_t count;
    unsetenv("PERFKIT_DIR"); /* this is no program to record */
    setenv("OPENCL_LAYERS", context, 1);
    const char *why = opencl_load(&loader);
    if (why) {
        snprintf(reply, size, "!%s", why);
        return;
    }
    loader.platforms(PLATFORMS, platforms, &count);
    snprintf(reply, size, "%s", is_mapped(context) ? "loaded" : "!the loader did not load it");
}

static unsigned count_icds(char *folder, size_t size)
{
    const char *vendors = getenv("OCL_ICD_VENDORS");
    const char *files = getenv("OCL_ICD_FILENAMES");
    snprintf(folder, size, "%s", vendors && *vendors ? vendors : "/etc/OpenCL/vendors");
    unsigned count = files && *files ? 1 : 0;
    if (prof_ends_with(folder, ".icd"))
        return count + 1;
    DIR *dir = opendir(folder);
    struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        count += prof_ends_with(entry->d_name, ".icd");
    if (dir)
        closedir(dir);
    return count;
}

static void check_layer(struct doctor *doctor, const struct opencl_loader *loader, bool devices)
{
    char reply[PROBE_REPLY];
    if (!PERFKIT_HAVE_OPENCL) {
        doctor_add(doctor, "opencl", "layer", DOCTOR_FAIL,
                   "build again with the OpenCL headers (Debian: ocl-icd-opencl-dev)",
                   "this perfkit is built without the OpenCL layer");
        return;
    }
    if (!doctor->collector[0] || !devices)
        return;
    bool loaded = probe_run(probe_layer, doctor->collector, reply, sizeof reply) && reply[0] != '!';
    char remedy[PATH_MAX + 128];
    if (loader->better[0])
        snprintf(remedy, sizeof remedy,
                 "export LD_LIBRARY_PATH=%s:$LD_LIBRARY_PATH (the loader there has layers)",
                 loader->better);
    else
        snprintf(remedy, sizeof remedy,
                 "use a loader with layers: ocl-icd 2.3 or the Khronos loader 2022 or newer");
    doctor_add(doctor, "opencl", "layer", loaded ? DOCTOR_OK : DOCTOR_FAIL, loaded ? NULL : remedy,
               "%s",
               loaded            ? "the loader brings perfkit's layer in"
               : !loader->layers ? "this loader knows no layers, so OpenCL is not recorded"
               : reply[0] == '!' ? reply + 1
                                 : reply);
    doctor->can_opencl = loaded;
}

void doctor_opencl(struct doctor *doctor)
{
    char reply[PROBE_REPLY], folder[PATH_MAX];
    bool devices = device_probe_opencl(NULL, reply);
    unsigned icds = count_icds(folder, sizeof folder);
    struct opencl_loader loader;
    opencl_loader_find(&loader);
    if (!loader.path[0]) {
        doctor_add(doctor, "opencl", "loader", DOCTOR_ABSENT,
                   icds ? "install ocl-icd-libopencl1" : NULL, "no OpenCL here (" LOADER ")");
        return;
    }
    doctor_add(doctor, "opencl", "loader", DOCTOR_OK, NULL, "%s", loader.path);
    doctor_add(doctor, "opencl", "drivers", icds ? DOCTOR_OK : DOCTOR_WARN,
               icds ? NULL : "install the ICD of your device, or pocl-opencl-icd for the processor",
               "%u ICD file%s in %s", icds, icds == 1 ? "" : "s", folder);
    doctor_add(doctor, "opencl", "devices", devices ? DOCTOR_OK : DOCTOR_WARN,
               devices ? NULL : "install pocl-opencl-icd to use the processor as a device", "%s",
               reply);
    check_layer(doctor, &loader, devices);
}
