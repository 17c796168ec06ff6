/* NVIDIA's devices as its driver describes them, by name and without its headers, so that every
 * build of perfkit lists them. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <math.h>

#include "cli/device.h"

/* CUdevice_attribute */
enum {
    MAX_BLOCK = 1,
    SHARED_PER_BLOCK = 8,
    WARP = 10,
    CLOCK_KHZ = 13,
    UNITS = 16,
    INTEGRATED = 18,
    MEMORY_CLOCK_KHZ = 36,
    MEMORY_BUS_BITS = 37,
    L2_BYTES = 38,
    THREADS_PER_UNIT = 39,
    MAJOR = 75,
    MINOR = 76,
    SHARED_PER_UNIT = 81,
    REGISTERS_PER_UNIT = 82,
};

struct driver {
    int (*init)(unsigned);
    int (*count)(int *);
    int (*get)(int *, int);
    int (*name)(char *, int, int);
    int (*uuid)(unsigned char[16], int);
    int (*total)(size_t *, int);
    int (*attribute)(int *, int, int);
    int (*bus)(char *, int, int);
};

static bool load_cuda_driver(struct driver *driver)
{
    const struct {
        const char *name;
        void *slot;
    } symbols[] = {
        {"cuInit", &driver->init},
        {"cuDeviceGetCount", &driver->count},
        {"cuDeviceGet", &driver->get},
        {"cuDeviceGetName", &driver->name},
        {"cuDeviceGetUuid", &driver->uuid},
        {"cuDeviceTotalMem_v2", &driver->total},
        {"cuDeviceGetAttribute", &driver->attribute},
        {"cuDeviceGetPCIBusId", &driver->bus},
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *symbol = library ? dlsym(library, symbols[i].name) : NULL;
        if (!symbol)
            return false;
        memcpy(symbols[i].slot, &symbol, sizeof symbol);
    }
    return true;
}

/* As the collector takes it. */
static void read_driver_version(char *out, size_t size)
{
    FILE *in = fopen("/sys/module/nvidia/version", "re");
    if (in && !fgets(out, (int)size, in))
        out[0] = '\0';
    if (in)
        fclose(in);
    out[strcspn(out, "\n ")] = '\0';
}

/* As nvidia-smi prints it. */
static void format_cuda_uuid(const unsigned char bytes[16], char *out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, "GPU-");
    for (int i = 0; i < 16 && at + 3 < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%02x",
                               i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
}

static double read_pci_number(const char *bus, const char *file)
{
    char path[256];
    double number = NAN;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", bus, file);
    FILE *in = fopen(path, "re");
    if (in && fscanf(in, "%lf", &number) != 1)
        number = NAN;
    if (in)
        fclose(in);
    return number;
}

/* Lanes x transfers per second x what the line code leaves of 8 bits (PCIe base specification:
 * 8b/10b up to 5 GT/s, 128b/130b above). Of packets about 90 % is payload. */
static double link_bandwidth(const struct driver *driver, int handle)
{
    char bus[32] = "";
    if (driver->bus(bus, sizeof bus, handle) != 0)
        return NAN;
    for (char *c = bus; *c; c++)
        *c = *c >= 'A' && *c <= 'F' ? (char)(*c - 'A' + 'a') : *c;
    double transfers = read_pci_number(bus, "max_link_speed"),
           lanes = read_pci_number(bus, "max_link_width");
    return lanes * transfers * 1e9 / 8 * (transfers > 5 ? 128.0 / 130 : 0.8);
}

static void describe_cuda_device(const struct driver *driver, int handle,
                                 struct device_entry *entry)
{
    struct prof_device *d = &entry->device;
    const struct {
        int attribute;
        int64_t *value;
    } rows[] = {
        {MAX_BLOCK, &d->max_block},
        {SHARED_PER_BLOCK, &d->shared_per_block_bytes},
        {WARP, &d->warp},
        {CLOCK_KHZ, &d->clock_khz},
        {UNITS, &d->units},
        {INTEGRATED, &d->integrated},
        {MEMORY_CLOCK_KHZ, &d->memory_clock_khz},
        {MEMORY_BUS_BITS, &d->memory_bus_bits},
        {L2_BYTES, &d->l2_bytes},
        {THREADS_PER_UNIT, &d->max_threads_per_unit},
        {MAJOR, &d->compute_major},
        {MINOR, &d->compute_minor},
        {SHARED_PER_UNIT, &d->shared_per_unit_bytes},
        {REGISTERS_PER_UNIT, &d->registers_per_unit},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int value;
        if (driver->attribute(&value, rows[i].attribute, handle) == 0)
            *rows[i].value = value;
    }
    size_t total;
    if (driver->total(&total, handle) == 0)
        d->memory_bytes = (int64_t)total;
    if (d->memory_clock_khz > 0 && d->memory_bus_bits > 0) /* two transfers a clock */
        d->memory_bandwidth = 2 * d->memory_clock_khz * 1000 * (d->memory_bus_bits / 8);
    d->ordinal = entry->nth;
    d->kind = "gpu";
}

void device_add_cuda(struct device_list *list)
{
    struct driver driver;
    int count = 0;
    if (!load_cuda_driver(&driver) || driver.init(0) != 0 || driver.count(&count) != 0)
        return;
    for (int i = 0; i < count; i++) {
        struct device_entry *entry = device_add(list, "cuda", (uint32_t)i);
        int handle;
        unsigned char uuid[16];
        if (!entry || driver.get(&handle, i) != 0)
            return;
        driver.name(entry->name, sizeof entry->name, handle);
        if (driver.uuid(uuid, handle) == 0)
            format_cuda_uuid(uuid, entry->uuid, sizeof entry->uuid);
        read_driver_version(entry->driver, sizeof entry->driver);
        snprintf(entry->vendor, sizeof entry->vendor, "NVIDIA");
        describe_cuda_device(&driver, handle, entry);
        entry->link_bandwidth = link_bandwidth(&driver, handle);
    }
}
