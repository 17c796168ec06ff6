/* Devices and contexts as definitions. A device is described when the first context or queue names
 * it, with queries that every driver answers without complaint: a vendor's own queries are made
 * only where its extension is listed, because some drivers print about queries they do not know. */
#include <sched.h>
#include <string.h>

#include "collectors/opencl/ocl.h"

static struct ocl_table devices, contexts;
static _Atomic(struct ocl_device *) all_devices;

/* ---- queries --------------------------------------------------------------------------------- */

static uint64_t device_info_number(cl_device_id device, cl_device_info what)
{
    union {
        uint64_t wide;
        uint32_t narrow;
    } value = {.wide = 0};
    size_t size = 0;
    if (OCL_CALL(clGetDeviceInfo, device, what, sizeof value, &value, &size) != CL_SUCCESS)
        return 0;
    return size == sizeof value.narrow ? value.narrow : value.wide;
}

static void device_info_text(cl_device_id device, cl_device_info what, char *out, size_t room)
{
    char value[1024] = "";
    if (OCL_CALL(clGetDeviceInfo, device, what, sizeof value, value, NULL) != CL_SUCCESS)
        value[0] = '\0';
    size_t length = strnlen(value, room - 1);
    memcpy(out, value, length);
    out[length] = '\0';
}

static bool has_extension(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

/* The device's place in its platform's list; a sub-device has its parent's. */
static uint32_t device_ordinal(cl_device_id device)
{
    cl_platform_id platform = NULL;
    cl_device_id list[64], parent;
    cl_uint count = 0;
    for (int depth = 0; depth < 8; depth++) {
        parent = NULL;
        if (!ocl_next.clCreateSubDevices ||
            OCL_CALL(clGetDeviceInfo, device, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent,
                     NULL) != CL_SUCCESS ||
            !parent)
            break;
        device = parent;
    }
    if (OCL_CALL(clGetDeviceInfo, device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL) !=
            CL_SUCCESS ||
        OCL_CALL(clGetDeviceIDs, platform, CL_DEVICE_TYPE_ALL, 64, list, &count) != CL_SUCCESS)
        return 0;
    for (cl_uint i = 0; i < count && i < 64; i++)
        if (list[i] == device)
            return i;
    return 0;
}

#define NV_COMPUTE_MAJOR 0x4000
#define NV_COMPUTE_MINOR 0x4001
#define NV_WARP_SIZE 0x4003
#define AMD_WAVEFRONT_WIDTH 0x4043
#define KHR_DEVICE_UUID 0x106A

static void read_vendor_info(struct ocl_device *device)
{
    cl_device_id handle = device->handle;
    char list[8192] = "";
    if (OCL_CALL(clGetDeviceInfo, handle, CL_DEVICE_EXTENSIONS, sizeof list, list, NULL) !=
        CL_SUCCESS)
        return;
    if (has_extension(list, "cl_nv_device_attribute_query")) {
        device->about.compute_major = (uint32_t)device_info_number(handle, NV_COMPUTE_MAJOR);
        device->about.compute_minor = (uint32_t)device_info_number(handle, NV_COMPUTE_MINOR);
        device->about.warp = (uint32_t)device_info_number(handle, NV_WARP_SIZE);
    }
    if (has_extension(list, "cl_amd_device_attribute_query"))
        device->about.warp = (uint32_t)device_info_number(handle, AMD_WAVEFRONT_WIDTH);
    unsigned char uuid[16];
    if (has_extension(list, "cl_khr_device_uuid") &&
        OCL_CALL(clGetDeviceInfo, handle, KHR_DEVICE_UUID, sizeof uuid, uuid, NULL) == CL_SUCCESS) {
        static const char digits[] = "0123456789abcdef";
        for (size_t i = 0; i < sizeof uuid; i++) {
            device->uuid[2 * i] = digits[uuid[i] >> 4];
            device->uuid[2 * i + 1] = digits[uuid[i] & 15];
        }
    }
}

/* Query the driver, once in the life of a process and its forked children: after a fork some
 * drivers crash in queries. */
static void read_device_info(struct ocl_device *device)
{
    cl_device_id handle = device->handle;
    uint64_t type = device_info_number(handle, CL_DEVICE_TYPE);
    device->about = (struct wire_device){
        .head = {sizeof device->about, WIRE_DEVICE, 0, 0},
        .source = WIRE_SOURCE_OPENCL,
        .ordinal = device_ordinal(handle),
        .units = (uint32_t)device_info_number(handle, CL_DEVICE_MAX_COMPUTE_UNITS),
        .clock_khz = (uint32_t)device_info_number(handle, CL_DEVICE_MAX_CLOCK_FREQUENCY) * 1000u,
        .max_block = (uint32_t)device_info_number(handle, CL_DEVICE_MAX_WORK_GROUP_SIZE),
        .memory_bytes = device_info_number(handle, CL_DEVICE_GLOBAL_MEM_SIZE),
        .shared_per_block_bytes = device_info_number(handle, CL_DEVICE_LOCAL_MEM_SIZE),
        .l2_bytes = device_info_number(handle, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE),
    };
    device_info_text(handle, CL_DEVICE_NAME, device->name, sizeof device->name);
    device_info_text(handle, CL_DEVICE_VENDOR, device->vendor, sizeof device->vendor);
    device_info_text(handle, CL_DRIVER_VERSION, device->driver, sizeof device->driver);
    if (type & CL_DEVICE_TYPE_GPU)
        device->about.head.flags |= WIRE_DEVICE_GPU;
    if (type & CL_DEVICE_TYPE_CPU)
        device->about.head.flags |= WIRE_DEVICE_CPU;
    if ((type & CL_DEVICE_TYPE_GPU) && device_info_number(handle, CL_DEVICE_HOST_UNIFIED_MEMORY))
        device->about.head.flags |= WIRE_DEVICE_INTEGRATED;
    read_vendor_info(device);
    device->known = true;
}

static uint32_t text_id(const char *text_of)
{
    return text_of[0] ? collector_text(text_of) : 0;
}

static void record_device_definition(struct ocl_device *device)
{
    if (!device->known)
        read_device_info(device);
    struct wire_device record = device->about;
    record.head.aux = collector_new_id();
    record.name = text_id(device->name);
    record.vendor = text_id(device->vendor);
    record.driver = text_id(device->driver);
    record.uuid = text_id(device->uuid);
    collector_define(&record);
    atomic_store(&device->id, record.head.aux);
    atomic_store(&device->clock, collector_new_id());
}

/* ---- devices --------------------------------------------------------------------------------- */

static struct ocl_device *add_ocl_device(cl_device_id handle)
{
    struct ocl_device *device = ocl_alloc(sizeof *device);
    if (!device)
        return NULL;
    device->handle = handle;
    ocl_clock_reset(device);
    uint64_t there = ocl_table_add(&devices, handle, (uintptr_t)device);
    if (there != (uintptr_t)device)
        return (struct ocl_device *)(uintptr_t)there; /* another thread was first */
    struct ocl_device *first = atomic_load(&all_devices);
    do
        device->next = first;
    while (!atomic_compare_exchange_weak(&all_devices, &first, device));
    return device;
}

struct ocl_device *ocl_device_of(cl_device_id handle)
{
    if (!handle)
        return NULL;
    struct ocl_device *device = (struct ocl_device *)(uintptr_t)ocl_table_get(&devices, handle);
    if (!device)
        device = add_ocl_device(handle);
    uint32_t epoch = atomic_load_explicit(&ocl_epoch, memory_order_relaxed);
    if (!device || atomic_load_explicit(&device->epoch, memory_order_acquire) == epoch)
        return device;
    /* One thread describes it; another that comes meanwhile waits for a few queries. */
    uint32_t before = atomic_load(&device->defining);
    struct collector_shield shield;
    collector_shield(&shield); /* it would block forever if a signal handler jumped out */
    bool mine =
        before != epoch && atomic_compare_exchange_strong(&device->defining, &before, epoch);
    if (mine) {
        record_device_definition(device);
        atomic_store_explicit(&device->epoch, epoch, memory_order_release);
    }
    collector_unshield(&shield);
    if (!mine) {
        while (atomic_load_explicit(&device->epoch, memory_order_acquire) != epoch)
            sched_yield();
    }
    return device;
}

uint32_t ocl_device_id(cl_device_id handle)
{
    struct ocl_device *device = ocl_device_of(handle);
    return device ? atomic_load(&device->id) : 0;
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* Replaced in place when the handle is used again. */
struct context {
    _Atomic(cl_device_id) device; /* its only one; NULL = several */
    _Atomic uint32_t id;
    _Atomic uint32_t epoch; /* of the id; written last */
    _Atomic uint32_t known; /* the driver has been queried about it */
};

static void list_context_devices(struct context *context, cl_context handle)
{
    cl_device_id list[64];
    size_t size = 0;
    if (OCL_CALL(clGetContextInfo, handle, CL_CONTEXT_DEVICES, sizeof list, list, &size) !=
        CL_SUCCESS)
        size = 0;
    for (size_t i = 0; i < size / sizeof list[0]; i++)
        ocl_device_id(list[i]);
    atomic_store(&context->device, size == sizeof list[0] ? list[0] : NULL);
    atomic_store(&context->known, 1);
}

/* Two threads at once define two ids for one context; the later one stays. */
static void record_context_definition(struct context *context, cl_context handle)
{
    uint32_t epoch = atomic_load(&ocl_epoch);
    if (!atomic_load(&context->known))
        list_context_devices(context, handle);
    cl_device_id device = atomic_load(&context->device);
    struct wire_context record = {
        .head = {sizeof record, WIRE_CONTEXT, 0, collector_new_id()},
        .native = (uintptr_t)handle,
        .source = WIRE_SOURCE_OPENCL,
        .device = device ? ocl_device_id(device) : 0,
    };
    collector_define(&record);
    atomic_store(&context->id, record.head.aux);
    atomic_store_explicit(&context->epoch, epoch, memory_order_release);
}

/* NULL: no handle or no memory. */
static struct context *context_of(cl_context handle, bool fresh)
{
    if (!handle)
        return NULL;
    struct context *context = (struct context *)(uintptr_t)ocl_table_get(&contexts, handle);
    if (!context) {
        context = ocl_alloc(sizeof *context);
        if (!context)
            return NULL;
        context = (struct context *)(uintptr_t)ocl_table_add(&contexts, handle, (uintptr_t)context);
        if (!context)
            return NULL;
    }
    if (fresh)
        atomic_store(&context->known, 0);
    if (fresh || atomic_load_explicit(&context->epoch, memory_order_acquire) !=
                     atomic_load_explicit(&ocl_epoch, memory_order_relaxed))
        record_context_definition(context, handle);
    return context;
}

static void context_new(cl_context handle)
{
    context_of(handle, true);
}

uint32_t ocl_context_id(cl_context handle)
{
    struct context *context = context_of(handle, false);
    return context ? atomic_load(&context->id) : 0;
}

uint32_t ocl_context_device(cl_context handle)
{
    struct context *context = context_of(handle, false);
    cl_device_id device = context ? atomic_load(&context->device) : NULL;
    return device ? ocl_device_id(device) : 0;
}

void ocl_device_forked(void)
{
    ocl_table_forked(&devices);
    ocl_table_forked(&contexts);
    for (struct ocl_device *device = atomic_load(&all_devices); device; device = device->next) {
        atomic_store(&device->id, 0);
        atomic_store(&device->defining, 0);
        ocl_clock_reset(device);
    }
}

/* ---- hooks ----------------------------------------------------------------------------------- */

cl_context CL_API_CALL ocl_clCreateContext(const cl_context_properties *properties, cl_uint count,
                                           const cl_device_id *list,
                                           void(CL_CALLBACK *notify)(const char *, const void *,
                                                                     size_t, void *),
                                           void *data, cl_int *error)
{
    cl_context context = OCL_CALL(clCreateContext, properties, count, list, notify, data, error);
    if (context && ocl_on()) {
        int saved = errno;
        context_new(context);
        errno = saved;
    }
    return context;
}

cl_context CL_API_CALL
ocl_clCreateContextFromType(const cl_context_properties *properties, cl_device_type type,
                            void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
                            void *data, cl_int *error)
{
    cl_context context = OCL_CALL(clCreateContextFromType, properties, type, notify, data, error);
    if (context && ocl_on()) {
        int saved = errno;
        context_new(context);
        errno = saved;
    }
    return context;
}
