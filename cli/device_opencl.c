/* OpenCL's devices, described as its collector describes them, in the order in which
 * perfkit-measure counts them: GPUs of all platforms, then accelerators, then the rest. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cli/device.h"
#include "cli/opencl_loader.h"

#define PLATFORMS 16
#define PER_PLATFORM 32

/* cl.h, cl_ext.h */
enum {
    DEVICE_TYPE = 0x1000,
    UNITS = 0x1002,
    MAX_GROUP = 0x1004,
    CLOCK_MHZ = 0x100C,
    CACHE_BYTES = 0x101E,
    MEMORY_BYTES = 0x101F,
    LOCAL_BYTES = 0x1023,
    NAME = 0x102B,
    VENDOR = 0x102C,
    DRIVER = 0x102D,
    EXTENSIONS = 0x1030,
    UUID = 0x106A,
    NV_MAJOR = 0x4000,
    NV_MINOR = 0x4001,
    NV_WARP = 0x4003,
};
#define TYPE_CPU 2ull
#define TYPE_GPU 4ull
#define TYPE_ACCELERATOR 8ull
#define TYPE_ALL 0xFFFFFFFFull

typedef void *handle;

struct loader {
    int (*platforms)(uint32_t, handle *, uint32_t *);
    int (*devices)(handle, uint64_t, uint32_t, handle *, uint32_t *);
    int (*info)(handle, uint32_t, size_t, void *, size_t *);
};

static bool load_opencl_loader(struct loader *loader)
{
    void *library = dlopen(OPENCL_LOADER_NAME, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    *(void **)&loader->platforms = dlsym(library, "clGetPlatformIDs");
    *(void **)&loader->devices = dlsym(library, "clGetDeviceIDs");
    *(void **)&loader->info = dlsym(library, "clGetDeviceInfo");
    return loader->platforms && loader->devices && loader->info;
}

/* Answers are 4 or 8 bytes wide; machines that perfkit runs on have the low ones first. */
static int64_t opencl_device_number(const struct loader *loader, handle device, uint32_t what)
{
    uint64_t value = 0;
    return loader->info(device, what, sizeof value, &value, NULL) == 0 ? (int64_t)value
                                                                       : PROF_UNKNOWN;
}

static void opencl_device_text(const struct loader *loader, handle device, uint32_t what, char *out,
                               size_t size)
{
    char value[1024] = "";
    if (loader->info(device, what, sizeof value - 1, value, NULL) != 0)
        value[0] = '\0';
    snprintf(out, size, "%.*s", (int)size - 1, value);
}

static void describe_vendor_part(const struct loader *loader, handle device,
                                 struct device_entry *entry)
{
    char extensions[8192] = "";
    unsigned char uuid[16];
    if (loader->info(device, EXTENSIONS, sizeof extensions - 1, extensions, NULL) != 0)
        return;
    if (strstr(extensions, "cl_nv_device_attribute_query")) {
        entry->device.compute_major = opencl_device_number(loader, device, NV_MAJOR);
        entry->device.compute_minor = opencl_device_number(loader, device, NV_MINOR);
        entry->device.warp = opencl_device_number(loader, device, NV_WARP);
    }
    if (strstr(extensions, "cl_khr_device_uuid") &&
        loader->info(device, UUID, sizeof uuid, uuid, NULL) == 0)
        for (size_t i = 0; i < sizeof uuid; i++)
            snprintf(entry->uuid + 2 * i, 3, "%02x", uuid[i]);
}

static const char *opencl_device_kind(uint64_t type)
{
    return type & TYPE_GPU ? "gpu" : type & TYPE_CPU ? "cpu" : "other";
}

static void describe_opencl_device(const struct loader *loader, handle device,
                                   struct device_entry *entry)
{
    struct prof_device *d = &entry->device;
    int64_t mhz = opencl_device_number(loader, device, CLOCK_MHZ),
            type = opencl_device_number(loader, device, DEVICE_TYPE);
    opencl_device_text(loader, device, NAME, entry->name, sizeof entry->name);
    opencl_device_text(loader, device, VENDOR, entry->vendor, sizeof entry->vendor);
    opencl_device_text(loader, device, DRIVER, entry->driver, sizeof entry->driver);
    d->units = opencl_device_number(loader, device, UNITS);
    d->clock_khz = mhz == PROF_UNKNOWN ? PROF_UNKNOWN : mhz * 1000;
    d->max_block = opencl_device_number(loader, device, MAX_GROUP);
    d->memory_bytes = opencl_device_number(loader, device, MEMORY_BYTES);
    d->l2_bytes = opencl_device_number(loader, device, CACHE_BYTES);
    d->shared_per_block_bytes = opencl_device_number(loader, device, LOCAL_BYTES);
    d->kind = type == PROF_UNKNOWN ? "other" : opencl_device_kind((uint64_t)type);
    d->ordinal = entry->nth;
    describe_vendor_part(loader, device, entry);
}

static bool is_wanted_device(const struct loader *loader, handle device, uint64_t wanted)
{
    uint64_t type = (uint64_t)opencl_device_number(loader, device, DEVICE_TYPE);
    return wanted != TYPE_ALL || !(type & (TYPE_GPU | TYPE_ACCELERATOR));
}

void device_add_opencl(struct device_list *list)
{
    static const uint64_t order[] = {TYPE_GPU, TYPE_ACCELERATOR, TYPE_ALL};
    struct loader loader;
    handle platforms[PLATFORMS], devices[PER_PLATFORM];
    uint32_t platform_count = 0, nth = 0;
    if (!load_opencl_loader(&loader) ||
        loader.platforms(PLATFORMS, platforms, &platform_count) != 0)
        return;
    for (size_t kind = 0; kind < sizeof order / sizeof order[0]; kind++) {
        for (uint32_t p = 0; p < platform_count && p < PLATFORMS; p++) {
            uint32_t count = 0;
            if (loader.devices(platforms[p], order[kind], PER_PLATFORM, devices, &count) != 0)
                continue;
            for (uint32_t i = 0; i < count && i < PER_PLATFORM; i++) {
                struct device_entry *entry = is_wanted_device(&loader, devices[i], order[kind])
                                                 ? device_add(list, "opencl", nth++)
                                                 : NULL;
                if (entry)
                    describe_opencl_device(&loader, devices[i], entry);
            }
        }
    }
}
