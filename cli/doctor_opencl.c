/* The OpenCL loader, the drivers it is told of (ICD files), their devices, and whether the loader
 * brings in a layer: old ones know nothing of layers and say nothing about it. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/build.h"
#include "cli/doctor.h"
#include "cli/opencl_loader.h"

#define GROUP "opencl"
#define LOADER OPENCL_LOADER_NAME
#define PLATFORMS 16
#define DEVICES 32
#define ALL_DEVICES 0xFFFFFFFFull /* CL_DEVICE_TYPE_ALL */
#define DEVICE_NAME 0x102B        /* CL_DEVICE_NAME */

typedef void *handle;

struct loader {
    int (*platforms)(uint32_t, handle *, uint32_t *);
    int (*devices)(handle, uint64_t, uint32_t, handle *, uint32_t *);
    int (*info)(handle, uint32_t, size_t, void *, size_t *);
};

static bool load_opencl_icd(struct loader *loader, char *reply, size_t size)
{
    void *library = dlopen(LOADER, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(reply, size, "!%s", dlerror());
        return false;
    }
    *(void **)&loader->platforms = dlsym(library, "clGetPlatformIDs");
    *(void **)&loader->devices = dlsym(library, "clGetDeviceIDs");
    *(void **)&loader->info = dlsym(library, "clGetDeviceInfo");
    if (loader->platforms && loader->devices && loader->info)
        return true;
    snprintf(reply, size, "!" LOADER " lacks clGetPlatformIDs or its friends");
    return false;
}

/* "N devices: names" */
static void probe_devices(void *context, char *reply, size_t size)
{
    (void)context;
    struct loader loader;
    if (!load_opencl_icd(&loader, reply, size))
        return;
    handle platforms[PLATFORMS], devices[DEVICES];
    uint32_t platform_count = 0, total = 0;
    char names[300] = "";
    size_t used = 0;
    if (loader.platforms(PLATFORMS, platforms, &platform_count) != 0)
        platform_count = 0;
    for (uint32_t p = 0; p < platform_count && p < PLATFORMS; p++) {
        uint32_t count = 0;
        if (loader.devices(platforms[p], ALL_DEVICES, DEVICES, devices, &count) != 0)
            continue;
        for (uint32_t d = 0; d < count && d < DEVICES; d++) {
            char name[100] = "";
            loader.info(devices[d], DEVICE_NAME, sizeof name - 1, name, NULL);
            if (used < sizeof names)
                used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                         total ? ", " : "", name);
            total++;
        }
    }
    if (total)
        snprintf(reply, size, "%u: %s", total, names);
    else
        snprintf(reply, size, "!the loader finds no device");
}

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
    struct loader loader;
    handle platforms[PLATFORMS];
    uint32_t count;
    unsetenv("PERFKIT_DIR"); /* this is no program to record */
    setenv("OPENCL_LAYERS", context, 1);
    if (!load_opencl_icd(&loader, reply, size))
        return;
    loader.platforms(PLATFORMS, platforms, &count);
    snprintf(reply, size, "%s", is_mapped(context) ? "loaded" : "!the loader did not load it");
}

static unsigned count_icds(char *folder, size_t size)
{
    const char *vendors = getenv("OCL_ICD_VENDORS");
    const char *files = getenv("OCL_ICD_FILENAMES");
    snprintf(folder, size, "%s", vendors && *vendors ? vendors : "/etc/OpenCL/vendors");
    unsigned count = files && *files ? 1 : 0;
    size_t length = strlen(folder);
    if (length > 4 && strcmp(folder + length - 4, ".icd") == 0)
        return count + 1;
    DIR *dir = opendir(folder);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        length = strlen(entry->d_name);
        count += length > 4 && strcmp(entry->d_name + length - 4, ".icd") == 0;
    }
    if (dir)
        closedir(dir);
    return count;
}

static void check_layer(struct doctor *doctor, const struct opencl_loader *loader, bool devices)
{
    char reply[PROBE_REPLY];
    if (!PERFKIT_HAVE_OPENCL) {
        doctor_add(doctor, GROUP, "layer", DOCTOR_FAIL,
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
    doctor_add(doctor, GROUP, "layer", loaded ? DOCTOR_OK : DOCTOR_FAIL, loaded ? NULL : remedy,
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
    bool devices = probe_run(probe_devices, NULL, reply, sizeof reply) && reply[0] != '!';
    const char *why = reply[0] == '!' ? reply + 1 : reply;
    unsigned icds = count_icds(folder, sizeof folder);
    struct opencl_loader loader;
    opencl_loader_find(&loader);
    if (!loader.path[0]) {
        doctor_add(doctor, GROUP, "loader", DOCTOR_ABSENT,
                   icds ? "install ocl-icd-libopencl1" : NULL, "no OpenCL here (" LOADER ")");
        return;
    }
    doctor_add(doctor, GROUP, "loader", DOCTOR_OK, NULL, "%s", loader.path);
    doctor_add(doctor, GROUP, "drivers", icds ? DOCTOR_OK : DOCTOR_WARN,
               icds ? NULL : "install the ICD of your device, or pocl-opencl-icd for the processor",
               "%u ICD file%s in %s", icds, icds == 1 ? "" : "s", folder);
    doctor_add(doctor, GROUP, "devices", devices ? DOCTOR_OK : DOCTOR_WARN,
               devices ? NULL : "install pocl-opencl-icd to use the processor as a device", "%s",
               why);
    check_layer(doctor, &loader, devices);
}
