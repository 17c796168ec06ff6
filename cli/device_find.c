/* The devices of this machine. Drivers are queried in children, which write into memory that they
 * share with us: one that crashes or hangs costs its own devices only. */
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/device.h"
#include "cli/installed.h"
#include "libprof/base/regular.h"

/* ---- ceilings -------------------------------------------------------------------------------- */

/* The ceilings of one device: its theoretical peaks, and that nothing measured is above them. A
 * benchmark that the compiler optimised away gives a figure that looks like any other; once kept,
 * every roofline of the device would be drawn under it. */

/* The next entry, blank, with everything unknown; NULL when the list is full. */
static struct device_entry *device_add(struct device_list *list, const char *api, uint32_t nth)
{
    if (list->count == DEVICES)
        return NULL;
    struct device_entry *entry = &list->entries[list->count++];
    *entry = (struct device_entry){.api = api, .nth = nth, .link_bandwidth = NAN};
    prof_device_unknown(&entry->device);
    return entry;
}

struct prof_ceiling device_peak(const struct device_entry *entry, enum prof_ceiling_kind kind)
{
    struct prof_ceiling peak = prof_peak(&entry->device, kind);
    if ((kind == PROF_CEILING_HTOD_PINNED || kind == PROF_CEILING_DTOH_PINNED) &&
        !isnan(entry->link_bandwidth)) {
        peak.value = entry->link_bandwidth;
        peak.how = "lanes x transfers per second of the PCIe link";
    }
    return peak;
}

struct prof_text device_figure(enum prof_ceiling_kind kind, double value)
{
    switch (prof_ceiling_of(kind).unit) {
    case PROF_CEILING_BYTES:
        return prof_rate(value);
    case PROF_CEILING_FLOP:
        return prof_flop_rate(value);
    case PROF_CEILING_NS:
        break;
    }
    return prof_duration(value);
}

/* Leaves out of entry->measured what is above a peak: earlier versions kept that. */
static void device_drop_impossible(struct device_entry *entry)
{
    struct prof_ceiling_file *file = &entry->measured;
    size_t kept = 0;
    for (size_t i = 0; i < file->count; i++) {
        enum prof_ceiling_kind kind = prof_ceiling_named(file->rows[i].name);
        if (kind == PROF_CEILINGS ||
            prof_ceiling_possible(file->rows[i].value, device_peak(entry, kind).value))
            file->rows[kept++] = file->rows[i];
    }
    file->count = kept;
}

/* ---- where ceilings are kept ----------------------------------------------------------------- */

/* The user's data, not the cache: measuring again takes a quiet machine. */

bool ceiling_folder(char out[PATH_MAX])
{
    const struct {
        const char *variable, *below;
    } places[] = {{CEILING_FOLDER_VARIABLE, ""},
                  {"XDG_DATA_HOME", "/perfkit/ceilings"},
                  {"HOME", "/.local/share/perfkit/ceilings"}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *value = getenv(places[i].variable);
        if (!value || !*value)
            continue;
        int length = snprintf(out, PATH_MAX, "%s%s", value, places[i].below);
        return length > 0 && length < PATH_MAX;
    }
    return false;
}

bool ceiling_folder_make(const char *folder)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", folder);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    return (mkdir(path, 0777) == 0 || errno == EEXIST) && access(path, W_OK | X_OK) == 0;
}

/* ---- CUDA ------------------------------------------------------------------------------------ */

/* NVIDIA's devices as its driver describes them, by name and without its headers, so that every
 * build of perfkit lists them. */

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
    int (*version)(int *);
    int (*count)(int *);
    int (*get)(int *, int);
    int (*name)(char *, int, int);
    int (*uuid)(unsigned char[16], int);
    int (*total)(size_t *, int);
    int (*attribute)(int *, int, int);
    int (*bus)(char *, int, int);
};

/* NULL, or why not. */
static const char *load_cuda_driver(struct driver *driver)
{
    const struct {
        const char *name;
        void *slot;
    } symbols[] = {
        {"cuInit", &driver->init},
        {"cuDriverGetVersion", &driver->version},
        {"cuDeviceGetCount", &driver->count},
        {"cuDeviceGet", &driver->get},
        {"cuDeviceGetName", &driver->name},
        {"cuDeviceGetUuid", &driver->uuid},
        {"cuDeviceTotalMem_v2", &driver->total},
        {"cuDeviceGetAttribute", &driver->attribute},
        {"cuDeviceGetPCIBusId", &driver->bus},
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return dlerror();
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol)
            return "libcuda.so.1 lacks cuInit or its friends";
        memcpy(symbols[i].slot, &symbol, sizeof symbol);
    }
    return NULL;
}

/* As nvidia-smi prints it. */
static void format_cuda_uuid(const unsigned char bytes[16], char *out, size_t size)
{
    snprintf(out, size, "GPU-");
    for (int i = 0; i < 16; i++)
        prof_append(out, size, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                    bytes[i]);
}

static double read_pci_number(const char *bus, const char *file)
{
    char path[256], line[64];
    double number;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", bus, file);
    bool any = prof_first_line(path, line, sizeof line) && sscanf(line, "%lf", &number) == 1;
    return any ? number : (double)NAN;
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

static void device_add_cuda(struct device_list *list, char *reply, size_t size)
{
    struct driver driver;
    const char *why = load_cuda_driver(&driver);
    int code = why ? 0 : driver.init(0), version = 0, count = 0;
    if (why)
        snprintf(reply, size, "!%s", why);
    else if (code)
        snprintf(reply, size, "!cuInit returned %d", code);
    if (why || code)
        return;
    driver.version(&version);
    driver.count(&count);
    snprintf(reply, size, "CUDA %d.%d, %d device%s", version / 1000, version % 1000 / 10, count,
             count == 1 ? "" : "s");
    for (int i = 0; i < count; i++) {
        struct device_entry *entry = device_add(list, "cuda", (uint32_t)i);
        int handle;
        unsigned char uuid[16];
        if (!entry || driver.get(&handle, i) != 0)
            return;
        driver.name(entry->name, sizeof entry->name, handle);
        prof_append(reply, size, "%s%s", i ? ", " : ": ", entry->name);
        if (driver.uuid(uuid, handle) == 0)
            format_cuda_uuid(uuid, entry->uuid, sizeof entry->uuid);
        prof_first_line("/sys/module/nvidia/version", entry->driver, sizeof entry->driver);
        entry->driver[strcspn(entry->driver, " ")] = '\0'; /* as the collector takes it */
        snprintf(entry->vendor, sizeof entry->vendor, "NVIDIA");
        describe_cuda_device(&driver, handle, entry);
        entry->link_bandwidth = link_bandwidth(&driver, handle);
    }
}

/* ---- OpenCL ---------------------------------------------------------------------------------- */

/* OpenCL's devices, described as its collector describes them, in the order in which
 * perfkit-measure counts them: GPUs of all platforms, then accelerators, then the rest. */

#define PLATFORMS 16
#define PER_PLATFORM 32

/* cl.h, cl_ext.h */
enum {
    DEVICE_TYPE = 0x1000,
    COMPUTE_UNITS = 0x1002,
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

/* Answers are 4 or 8 bytes wide; machines that perfkit runs on have the low ones first. */
static int64_t opencl_device_number(const struct opencl_calls *loader, opencl_handle device,
                                    uint32_t what)
{
    uint64_t value = 0;
    return loader->info(device, what, sizeof value, &value, NULL) == 0 ? (int64_t)value
                                                                       : PROF_UNKNOWN;
}

static void opencl_device_text(const struct opencl_calls *loader, opencl_handle device,
                               uint32_t what, char *out, size_t size)
{
    char value[1024] = "";
    if (loader->info(device, what, sizeof value - 1, value, NULL) != 0)
        value[0] = '\0';
    snprintf(out, size, "%.*s", (int)size - 1, value);
}

static void describe_vendor_part(const struct opencl_calls *loader, opencl_handle device,
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

static void describe_opencl_device(const struct opencl_calls *loader, opencl_handle device,
                                   struct device_entry *entry)
{
    struct prof_device *d = &entry->device;
    int64_t mhz = opencl_device_number(loader, device, CLOCK_MHZ),
            type = opencl_device_number(loader, device, DEVICE_TYPE);
    opencl_device_text(loader, device, NAME, entry->name, sizeof entry->name);
    opencl_device_text(loader, device, VENDOR, entry->vendor, sizeof entry->vendor);
    opencl_device_text(loader, device, DRIVER, entry->driver, sizeof entry->driver);
    d->units = opencl_device_number(loader, device, COMPUTE_UNITS);
    d->clock_khz = mhz == PROF_UNKNOWN ? PROF_UNKNOWN : mhz * 1000;
    d->max_block = opencl_device_number(loader, device, MAX_GROUP);
    d->memory_bytes = opencl_device_number(loader, device, MEMORY_BYTES);
    d->l2_bytes = opencl_device_number(loader, device, CACHE_BYTES);
    d->shared_per_block_bytes = opencl_device_number(loader, device, LOCAL_BYTES);
    uint64_t bits = type == PROF_UNKNOWN ? 0 : (uint64_t)type;
    d->kind = bits & TYPE_GPU ? "gpu" : bits & TYPE_CPU ? "cpu" : "other";
    d->ordinal = entry->nth;
    describe_vendor_part(loader, device, entry);
}

static bool is_wanted_device(const struct opencl_calls *loader, opencl_handle device,
                             uint64_t wanted)
{
    uint64_t type = (uint64_t)opencl_device_number(loader, device, DEVICE_TYPE);
    return wanted != TYPE_ALL || !(type & (TYPE_GPU | TYPE_ACCELERATOR));
}

/* Append the devices of an API. Loads vendor libraries: to be called in a child. */
static void device_add_opencl(struct device_list *list, char *reply, size_t size)
{
    static const uint64_t order[] = {TYPE_GPU, TYPE_ACCELERATOR, TYPE_ALL};
    struct opencl_calls loader;
    opencl_handle platforms[PLATFORMS], devices[PER_PLATFORM];
    uint32_t platform_count = 0, nth = 0;
    const char *why = opencl_load(&loader);
    if (!why && (loader.platforms(PLATFORMS, platforms, &platform_count) != 0 || !platform_count))
        why = "the loader finds no device";
    snprintf(reply, size, "!%s", why ? why : "the loader finds no device");
    if (why)
        return;
    char names[PROBE_REPLY - 16] = "";
    for (size_t kind = 0; kind < sizeof order / sizeof order[0]; kind++) {
        for (uint32_t p = 0; p < platform_count && p < PLATFORMS; p++) {
            uint32_t count = 0;
            if (loader.devices(platforms[p], order[kind], PER_PLATFORM, devices, &count) != 0)
                continue;
            for (uint32_t i = 0; i < count && i < PER_PLATFORM; i++) {
                struct device_entry *entry = is_wanted_device(&loader, devices[i], order[kind])
                                                 ? device_add(list, "opencl", nth++)
                                                 : NULL;
                if (!entry)
                    continue;
                describe_opencl_device(&loader, devices[i], entry);
                prof_append(names, sizeof names, "%s%s", nth > 1 ? ", " : "", entry->name);
            }
        }
    }
    if (nth)
        snprintf(reply, size, "%u: %s", nth, names);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int64_t read_khz(const char *path)
{
    char line[64];
    long long value = prof_first_line(path, line, sizeof line) ? strtoll(line, NULL, 10) : 0;
    return value > 0 ? value : PROF_UNKNOWN;
}

/* "model name : ..." */
static void cpu_name(char *out, size_t size)
{
    char line[256];
    PROF_FILE_CLOSED FILE *in = fopen("/proc/cpuinfo", "re");
    while (in && !*out && fgets(line, sizeof line, in)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, "model name", 10) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(out, size, "%s", colon + 1 + strspn(colon + 1, " "));
    }
    if (!*out)
        snprintf(out, size, "processor");
}

static void add_cpu(struct device_list *list)
{
    struct device_entry *entry = device_add(list, "cpu", 0);
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    if (!entry)
        return;
    cpu_name(entry->name, sizeof entry->name);
    entry->device.kind = "cpu";
    entry->device.units = sysconf(_SC_NPROCESSORS_ONLN);
    entry->device.clock_khz = read_khz("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
    if (pages > 0 && page_bytes > 0)
        entry->device.memory_bytes = (int64_t)pages * page_bytes;
}

struct question {
    struct device_list *answer; /* shared with the child */
    void (*add)(struct device_list *list, char *reply, size_t size);
};

static void answer_question(void *context, char *reply, size_t size)
{
    const struct question *question = context;
    question->add(question->answer, reply, size);
}

static bool probe_in_child(struct device_list *list, char *reply,
                           void (*add)(struct device_list *list, char *reply, size_t size))
{
    struct question question = {.add = add};
    reply[0] = '\0';
    question.answer =
        mmap(NULL, sizeof *list, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (question.answer == MAP_FAILED)
        return false;
    bool answered = probe_run(answer_question, &question, reply, PROBE_REPLY);
    bool refused = reply[0] == '!';
    if (refused)
        memmove(reply, reply + 1, strlen(reply));
    for (size_t i = 0; list && answered && i < question.answer->count && list->count < DEVICES; i++)
        list->entries[list->count++] = question.answer->entries[i];
    munmap(question.answer, sizeof *list);
    return answered && !refused;
}

bool device_probe_cuda(struct device_list *list, char *reply)
{
    return probe_in_child(list, reply, device_add_cuda);
}

bool device_probe_opencl(struct device_list *list, char *reply)
{
    return probe_in_child(list, reply, device_add_opencl);
}

static const char *text_or_null(const char *text)
{
    return *text ? text : NULL;
}

/* Constant texts of the child have the same addresses here: a fork, no exec. */
static void complete_device_entry(struct device_entry *entry, const char *folder, int64_t id)
{
    struct prof_device *d = &entry->device;
    struct prof_ceiling_file *file = &entry->measured;
    entry->name[sizeof entry->name - 1] = entry->vendor[sizeof entry->vendor - 1] = '\0';
    entry->driver[sizeof entry->driver - 1] = entry->uuid[sizeof entry->uuid - 1] = '\0';
    d->id = d->physical = id;
    d->api = entry->api;
    d->name = text_or_null(entry->name);
    d->vendor = text_or_null(entry->vendor);
    d->driver = text_or_null(entry->driver);
    d->uuid = text_or_null(entry->uuid);
    snprintf(file->api, sizeof file->api, "%s", entry->api);
    snprintf(file->name, sizeof file->name, "%s", entry->name);
    snprintf(file->uuid, sizeof file->uuid, "%s", entry->uuid);
    snprintf(file->driver, sizeof file->driver, "%s", entry->driver);
    struct prof_error err = {0};
    enum prof_status status = folder ? prof_ceiling_read(folder, file, &err) : PROF_NOTFOUND;
    if (status && status != PROF_NOTFOUND) /* it has no rows then */
        cli_say("device", "note: %s", err.message);
    device_drop_impossible(entry);
}

void device_find_all(struct device_list *list, const char *folder)
{
    char reply[PROBE_REPLY];
    list->count = 0;
    device_probe_cuda(list, reply);
    device_probe_opencl(list, reply);
    add_cpu(list);
    for (size_t i = 0; i < list->count; i++)
        complete_device_entry(&list->entries[i], folder, (int64_t)i + 1);
}
