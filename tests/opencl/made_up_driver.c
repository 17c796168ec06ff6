/* See made_up_driver.h. */
#include <stdlib.h>
#include <string.h>

#include "tests/opencl/made_up_driver.h"

#include "tests/opencl/answer.h"

struct made_up_driver driver;
static struct event *spare;
static int queue_object[64];
int context_object, device_object, kernel_object, memory_object[2];

uint64_t read_clock(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static cl_ulong stamp(void)
{
    if (driver.clock == SHIFTED)
        return read_clock(CLOCK_MONOTONIC) - 1000000; /* no clock of the host: a millisecond off */
    if (driver.clock == NEARLY) /* the time of day at first, then a millisecond off */
        return read_clock(CLOCK_REALTIME) - (driver.stamps++ > 2000 ? 1000000 : 0);
    return read_clock(driver.clock == RAW ? CLOCK_MONOTONIC_RAW : CLOCK_MONOTONIC);
}

void complete(struct event *event)
{
    event->times[1] = event->times[2] = stamp();
    event->times[3] = stamp();
    event->status = CL_COMPLETE;
}

static cl_int CL_API_CALL release_event(cl_event handle)
{
    struct event *event = (struct event *)(void *)handle;
    if (--event->references == 0) {
        driver.live_events--;
        event->next = spare;
        spare = event;
    }
    return CL_SUCCESS;
}

static cl_int CL_API_CALL retain_event(cl_event handle)
{
    ((struct event *)(void *)handle)->references++;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                 const size_t *offset, const size_t *global, const size_t *local,
                                 cl_uint waits, const cl_event *wait_list, cl_event *out)
{
    (void)kernel, (void)dimensions, (void)offset, (void)global, (void)local, (void)wait_list;
    struct event *event = spare;
    if (!out)
        return CL_SUCCESS;
    if (event)
        spare = event->next;
    else
        event = calloc(1, sizeof *event);
    driver.live_events++;
    *event = (struct event){.references = 1, .status = CL_QUEUED, .queue = queue};
    event->times[0] = stamp();
    if (!driver.hold && waits == 0)
        complete(event);
    *out = (cl_event)(void *)event;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL upload(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                 size_t offset, size_t bytes, const void *host, cl_uint waits,
                                 const cl_event *wait_list, cl_event *out)
{
    (void)buffer, (void)blocking, (void)offset, (void)bytes, (void)host;
    return launch(queue, NULL, 0, NULL, NULL, NULL, waits, wait_list, out);
}

static cl_int CL_API_CALL read_back(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                    size_t offset, size_t bytes, void *host, cl_uint waits,
                                    const cl_event *wait_list, cl_event *out)
{
    return upload(queue, buffer, blocking, offset, bytes, host, waits, wait_list, out);
}

static cl_int CL_API_CALL read_rectangle(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                         const size_t *buffer_origin, const size_t *host_origin,
                                         const size_t *region, size_t buffer_row,
                                         size_t buffer_slice, size_t host_row, size_t host_slice,
                                         void *host, cl_uint waits, const cl_event *wait_list,
                                         cl_event *out)
{
    (void)buffer_origin, (void)host_origin, (void)region;
    (void)buffer_row, (void)buffer_slice, (void)host_row, (void)host_slice;
    return upload(queue, buffer, blocking, 0, 0, host, waits, wait_list, out);
}

static cl_int CL_API_CALL launch_native(cl_command_queue queue, void(CL_CALLBACK *function)(void *),
                                        void *arguments, size_t bytes, cl_uint objects,
                                        const cl_mem *list, const void **places, cl_uint waits,
                                        const cl_event *wait_list, cl_event *out)
{
    (void)function, (void)arguments, (void)bytes, (void)objects, (void)list, (void)places;
    return launch(queue, NULL, 0, NULL, NULL, NULL, waits, wait_list, out);
}

static cl_int CL_API_CALL event_info(cl_event handle, cl_event_info what, size_t size, void *value,
                                     size_t *size_ret)
{
    struct event *event = (struct event *)(void *)handle;
    cl_uint references = (cl_uint)event->references;
    switch (what) {
    case CL_EVENT_COMMAND_EXECUTION_STATUS:
        return answer(&event->status, sizeof event->status, size, value, size_ret);
    case CL_EVENT_COMMAND_QUEUE:
        return answer(&event->queue, sizeof event->queue, size, value, size_ret);
    case CL_EVENT_REFERENCE_COUNT:
        return answer(&references, sizeof references, size, value, size_ret);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL profiling_info(cl_event handle, cl_profiling_info what, size_t size,
                                         void *value, size_t *size_ret)
{
    struct event *event = (struct event *)(void *)handle;
    if (event->status != CL_COMPLETE)
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    return answer(&event->times[what - CL_PROFILING_COMMAND_QUEUED], sizeof event->times[0], size,
                  value, size_ret);
}

static cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                                 cl_command_queue_properties bits, cl_int *error)
{
    (void)context, (void)device;
    bool refused = driver.refuse && (bits & CL_QUEUE_PROFILING_ENABLE);
    *error = refused ? CL_INVALID_QUEUE_PROPERTIES : CL_SUCCESS;
    if (refused)
        return NULL;
    driver.made_with_profiling += (bits & CL_QUEUE_PROFILING_ENABLE) != 0;
    return (cl_command_queue)(void *)&queue_object[driver.created++ % 64];
}

static cl_int CL_API_CALL timer(cl_device_id device, cl_ulong *device_time, cl_ulong *host_time)
{
    (void)device;
    if (!driver.timer)
        return CL_INVALID_OPERATION;
    *device_time = stamp();
    *host_time = read_clock(CLOCK_MONOTONIC);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL context_info(cl_context context, cl_context_info what, size_t size,
                                       void *value, size_t *size_ret)
{
    (void)context, (void)what;
    cl_device_id device = (cl_device_id)(void *)&device_object;
    return answer(&device, sizeof device, size, value, size_ret);
}

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t size,
                                      void *value, size_t *size_ret)
{
    (void)device;
    if (what == CL_DEVICE_NAME)
        return answer("made up", 8, size, value, size_ret);
    return CL_INVALID_VALUE;
}

static cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, size_t size,
                                       const void *value)
{
    (void)kernel, (void)index, (void)size, (void)value;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL kernel_info(cl_kernel kernel, cl_kernel_info what, size_t size,
                                      void *value, size_t *size_ret)
{
    static const char name[] = "kernel_of_the_test";
    static const cl_uint arguments = 2;
    (void)kernel;
    if (what == CL_KERNEL_NUM_ARGS)
        return answer(&arguments, sizeof arguments, size, value, size_ret);
    return answer(name, sizeof name, size, value, size_ret);
}

static cl_int CL_API_CALL on_queue(cl_command_queue queue)
{
    (void)queue;
    return CL_SUCCESS;
}

static cl_mem CL_API_CALL create_buffer(cl_context context, cl_mem_flags flags, size_t bytes,
                                        void *host, cl_int *error)
{
    (void)context, (void)flags, (void)bytes, (void)host;
    *error = driver.no_room;
    if (driver.no_room)
        return NULL;
    driver.mem_references[0] = 1;
    return (cl_mem)(void *)&memory_object[0];
}

static int *references_of(cl_mem memory)
{
    return &driver.mem_references[memory == (cl_mem)(void *)&memory_object[1]];
}

static cl_mem CL_API_CALL create_sub_buffer(cl_mem buffer, cl_mem_flags flags,
                                            cl_buffer_create_type type, const void *about,
                                            cl_int *error)
{
    (void)flags, (void)type, (void)about;
    *error = CL_SUCCESS;
    ++*references_of(buffer);
    driver.mem_references[1] = 1;
    return (cl_mem)(void *)&memory_object[1];
}

static cl_int CL_API_CALL mem_info(cl_mem memory, cl_mem_info what, size_t size, void *value,
                                   size_t *size_ret)
{
    (void)what;
    return answer(references_of(memory), sizeof(cl_uint), size, value, size_ret);
}

static cl_int CL_API_CALL retain_mem(cl_mem memory)
{
    ++*references_of(memory);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release_mem(cl_mem memory)
{
    int *references = references_of(memory);
    if (*references == 0)
        return CL_INVALID_MEM_OBJECT;
    --*references;
    return CL_SUCCESS;
}

unsigned char mapped[4096];
static void *CL_API_CALL map(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                             cl_map_flags flags, size_t offset, size_t bytes, cl_uint waits,
                             const cl_event *wait_list, cl_event *event, cl_int *error)
{
    (void)queue, (void)memory, (void)blocking, (void)flags, (void)bytes, (void)waits,
        (void)wait_list;
    if (event)
        *event = NULL;
    *error = CL_SUCCESS;
    return mapped + offset;
}

static cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem memory, void *at, cl_uint waits,
                                const cl_event *wait_list, cl_event *event)
{
    (void)queue, (void)memory, (void)at, (void)waits, (void)wait_list;
    if (event)
        *event = NULL;
    return CL_SUCCESS;
}

static cl_int unseen_calls;
static cl_int CL_API_CALL mem_free(cl_context context, void *at)
{
    (void)context, (void)at;
    return ++unseen_calls;
}

static void *CL_API_CALL extension(const char *name)
{
    cl_int(CL_API_CALL * function)(cl_context, void *) = mem_free;
    void *found = NULL;
    if (strcmp(name, "clMemFreeINTEL") == 0 || strcmp(name, "clCommandSomethingKHR") == 0)
        memcpy(&found, &function, sizeof found);
    return found;
}

const struct _cl_icd_dispatch below = {
    .clCreateCommandQueue = create_queue,
    .clReleaseCommandQueue = on_queue,
    .clFinish = on_queue,
    .clFlush = on_queue,
    .clGetContextInfo = context_info,
    .clGetDeviceInfo = device_info,
    .clGetKernelInfo = kernel_info,
    .clSetKernelArg = set_argument,
    .clEnqueueNDRangeKernel = launch,
    .clEnqueueWriteBuffer = upload,
    .clEnqueueReadBuffer = read_back,
    .clEnqueueMapBuffer = map,
    .clEnqueueUnmapMemObject = unmap,
    .clEnqueueReadBufferRect = read_rectangle,
    .clEnqueueNativeKernel = launch_native,
    .clRetainEvent = retain_event,
    .clReleaseEvent = release_event,
    .clGetEventInfo = event_info,
    .clGetEventProfilingInfo = profiling_info,
    .clGetDeviceAndHostTimer = timer,
    .clCreateBuffer = create_buffer,
    .clCreateSubBuffer = create_sub_buffer,
    .clGetMemObjectInfo = mem_info,
    .clRetainMemObject = retain_mem,
    .clReleaseMemObject = release_mem,
    .clGetExtensionFunctionAddress = extension,
};
