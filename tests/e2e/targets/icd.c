/* An OpenCL driver without a device: commands have ended when they are enqueued. It takes no lock
 * and no memory after its start, so that a signal handler may jump out of it at any place, which no
 * real driver bears. Loaded by OCL_ICD_VENDORS. What an event's last release was is never
 * forgotten: one release too many ends the program with status 90. */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl_icd.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/opencl/answer.h"

#define EXPORT __attribute__((visibility("default")))
#define EVENTS (1u << 21)

static struct _cl_icd_dispatch functions;
/* Each kind of object begins with the table, as the loader wants it. */
struct object {
    struct _cl_icd_dispatch *dispatch;
};
static struct object the_platform = {&functions}, the_device = {&functions},
                     the_context = {&functions}, the_queues[16], the_memory = {&functions};
static struct event {
    struct _cl_icd_dispatch *dispatch;
    cl_ulong time;
    struct object *queue;
    _Atomic int references;
} events[EVENTS];
static _Atomic uint32_t events_used, queues_used;

static cl_ulong now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (cl_ulong)time.tv_sec * 1000000000u + (cl_ulong)time.tv_nsec;
}

static cl_int CL_API_CALL get_platforms(cl_uint room, cl_platform_id *list, cl_uint *count)
{
    if (list && room)
        list[0] = (cl_platform_id)(void *)&the_platform;
    if (count)
        *count = 1;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL platform_info(cl_platform_id platform, cl_platform_info what, size_t size,
                                        void *value, size_t *size_ret)
{
    (void)platform;
    const char *text = what == CL_PLATFORM_VERSION       ? "OpenCL 1.2 fake"
                       : what == CL_PLATFORM_EXTENSIONS  ? "cl_khr_icd"
                       : what == 0x0920 /* ICD_SUFFIX */ ? "FAKE"
                                                         : "fake";
    return answer(text, strlen(text) + 1, size, value, size_ret);
}

static cl_int CL_API_CALL get_devices(cl_platform_id platform, cl_device_type type, cl_uint room,
                                      cl_device_id *list, cl_uint *count)
{
    (void)platform, (void)type;
    if (list && room)
        list[0] = (cl_device_id)(void *)&the_device;
    if (count)
        *count = 1;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t size,
                                      void *value, size_t *size_ret)
{
    (void)device;
    static const cl_ulong number = 1;
    void *platform = &the_platform, *none = NULL;
    if (what == CL_DEVICE_PLATFORM || what == CL_DEVICE_PARENT_DEVICE)
        return answer(what == CL_DEVICE_PLATFORM ? &platform : &none, sizeof platform, size, value,
                      size_ret);
    if (what == CL_DEVICE_NAME || what == CL_DEVICE_VENDOR || what == CL_DRIVER_VERSION)
        return answer("fake", 5, size, value, size_ret);
    return answer(&number, size && size < sizeof number ? size : sizeof number, size, value,
                  size_ret);
}

static cl_context CL_API_CALL create_context(const cl_context_properties *properties, cl_uint count,
                                             const cl_device_id *list,
                                             void(CL_CALLBACK *notify)(const char *, const void *,
                                                                       size_t, void *),
                                             void *data, cl_int *error)
{
    (void)properties, (void)count, (void)list, (void)notify, (void)data;
    if (error)
        *error = CL_SUCCESS;
    return (cl_context)(void *)&the_context;
}

static cl_int CL_API_CALL context_info(cl_context context, cl_context_info what, size_t size,
                                       void *value, size_t *size_ret)
{
    (void)context;
    void *device = &the_device;
    cl_uint one = 1;
    return what == CL_CONTEXT_DEVICES ? answer(&device, sizeof device, size, value, size_ret)
                                      : answer(&one, sizeof one, size, value, size_ret);
}

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                                 cl_command_queue_properties bits, cl_int *error)
{
    (void)context, (void)device, (void)bits;
    struct object *queue = &the_queues[atomic_fetch_add(&queues_used, 1) % 16];
    queue->dispatch = &functions;
    if (error)
        *error = CL_SUCCESS;
    return (cl_command_queue)(void *)queue;
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes,
                                        void *host, cl_int *error)
{
    (void)context, (void)flags, (void)bytes, (void)host;
    if (error)
        *error = CL_SUCCESS;
    return (cl_mem)(void *)&the_memory;
}

static cl_int CL_API_CALL fill(cl_command_queue queue, cl_mem buffer, const void *pattern,
                               size_t pattern_bytes, size_t offset, size_t bytes, cl_uint waits,
                               const cl_event *list, cl_event *out)
{
    (void)buffer, (void)pattern, (void)pattern_bytes, (void)offset, (void)bytes, (void)waits,
        (void)list;
    uint32_t number = atomic_fetch_add(&events_used, 1);
    if (number >= EVENTS)
        _exit(91);
    if (out) {
        events[number].dispatch = &functions;
        events[number].time = now();
        events[number].queue = (struct object *)(void *)queue;
        atomic_store(&events[number].references, 1);
        *out = (cl_event)(void *)&events[number];
    }
    return CL_SUCCESS;
}

static cl_int CL_API_CALL on_queue(cl_command_queue queue)
{
    (void)queue;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL retain_event(cl_event event)
{
    atomic_fetch_add(&((struct event *)(void *)event)->references, 1);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release_event(cl_event event)
{
    if (atomic_fetch_sub(&((struct event *)(void *)event)->references, 1) <= 0)
        _exit(90);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL event_info(cl_event event, cl_event_info what, size_t size, void *value,
                                     size_t *size_ret)
{
    cl_int complete = CL_COMPLETE;
    return what == CL_EVENT_COMMAND_QUEUE
               ? answer(&((struct event *)(void *)event)->queue, sizeof(void *), size, value,
                        size_ret)
               : answer(&complete, sizeof complete, size, value, size_ret);
}

static cl_int CL_API_CALL profiling_info(cl_event event, cl_profiling_info what, size_t size,
                                         void *value, size_t *size_ret)
{
    (void)what;
    return answer(&((struct event *)(void *)event)->time, sizeof(cl_ulong), size, value, size_ret);
}

static cl_int CL_API_CALL memory_info(cl_mem memory, cl_mem_info what, size_t size, void *value,
                                      size_t *size_ret)
{
    (void)memory, (void)what;
    static const size_t bytes = 4096;
    return answer(&bytes, sizeof bytes, size, value, size_ret);
}

static struct _cl_icd_dispatch functions = {
    .clGetPlatformIDs = get_platforms,
    .clGetPlatformInfo = platform_info,
    .clGetDeviceIDs = get_devices,
    .clGetDeviceInfo = device_info,
    .clCreateContext = create_context,
    .clGetContextInfo = context_info,
    .clCreateCommandQueue = create_queue,
    .clCreateBuffer = create_buffer,
    .clEnqueueFillBuffer = fill,
    .clFinish = on_queue,
    .clFlush = on_queue,
    .clRetainEvent = retain_event,
    .clReleaseEvent = release_event,
    .clGetEventInfo = event_info,
    .clGetEventProfilingInfo = profiling_info,
    .clGetMemObjectInfo = memory_info,
};

EXPORT void *CL_API_CALL clGetExtensionFunctionAddress(const char *name);
EXPORT cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint room, cl_platform_id *list,
                                                 cl_uint *count);

EXPORT cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint room, cl_platform_id *list, cl_uint *count)
{
    return get_platforms(room, list, count);
}

EXPORT void *CL_API_CALL clGetExtensionFunctionAddress(const char *name)
{
    cl_int(CL_API_CALL * platforms)(cl_uint, cl_platform_id *, cl_uint *) = clIcdGetPlatformIDsKHR;
    cl_int(CL_API_CALL * info)(cl_platform_id, cl_platform_info, size_t, void *, size_t *) =
        platform_info;
    void *found = NULL;
    if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0)
        memcpy(&found, &platforms, sizeof found);
    if (strcmp(name, "clGetPlatformInfo") == 0)
        memcpy(&found, &info, sizeof found);
    return found;
}
