/* The OpenCL backend (1.2): one context with one device, in-order queues with profiling (device
 * times are the point of the workloads), programs built from the text embedded in the binary.
 * Devices are taken in the order GPU, accelerator, CPU over all platforms, so that a machine with
 * PoCL and a real GPU driver uses the GPU.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device/backend.h"

struct program {
    struct program *next;
    const struct dev_module *module;
    cl_program handle;
};

struct opencl_dev {
    struct dev base;
    cl_context context;
    cl_device_id device;
    struct program *programs;
    cl_command_queue map_queue; /* for mapping host memory only; made at its first use */
};

static struct opencl_dev *self(struct dev *dev)
{
    return (struct opencl_dev *)dev;
}

static int fail(struct dev *dev, const char *call, cl_int status)
{
    static const struct {
        cl_int status;
        const char *text;
    } texts[] = {
        {CL_DEVICE_NOT_AVAILABLE, "device not available"},
        {CL_MEM_OBJECT_ALLOCATION_FAILURE, "out of device memory"},
        {CL_OUT_OF_RESOURCES, "out of resources"},
        {CL_OUT_OF_HOST_MEMORY, "out of host memory"},
        {CL_BUILD_PROGRAM_FAILURE, "the program does not build"},
        {CL_INVALID_VALUE, "invalid value"},
        {CL_INVALID_BUFFER_SIZE, "buffer larger than the device allows"},
        {CL_INVALID_KERNEL_ARGS, "arguments missing"},
        {CL_INVALID_ARG_SIZE, "argument of the wrong size"},
        {CL_INVALID_WORK_GROUP_SIZE, "work-group too large for this kernel"},
        {CL_INVALID_KERNEL_NAME, "no such kernel"},
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].status == status)
            return dev_fail(dev, call, "%s (%d)", texts[i].text, (int)status);
    return dev_fail(dev, call, "error %d", (int)status);
}

static cl_event *event_slot(struct dev_event *event)
{
    return event ? (cl_event *)&event->handle : NULL;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int opencl_alloc(struct dev *dev, struct dev_buffer *buffer)
{
    cl_int status;

    buffer->handle =
        clCreateBuffer(self(dev)->context, CL_MEM_READ_WRITE, buffer->bytes, NULL, &status);
    return buffer->handle ? 0 : fail(dev, "clCreateBuffer", status);
}

static int opencl_view(struct dev_buffer *view, size_t offset)
{
    cl_buffer_region region = {.origin = offset, .size = view->bytes};
    cl_int status;

    view->handle = clCreateSubBuffer(view->parent->handle, CL_MEM_READ_WRITE,
                                     CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
    return view->handle ? 0 : fail(view->dev, "clCreateSubBuffer", status);
}

static void opencl_free(struct dev_buffer *buffer)
{
    clReleaseMemObject(buffer->handle);
}

static int opencl_alloc_host(struct dev *dev, struct dev_host *host)
{
    struct opencl_dev *cl = self(dev);
    cl_int status;

    if (!cl->map_queue) {
        cl->map_queue = clCreateCommandQueue(cl->context, cl->device, 0, &status);
        if (!cl->map_queue)
            return fail(dev, "clCreateCommandQueue", status);
    }
    host->handle = clCreateBuffer(cl->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                  host->bytes, NULL, &status);
    if (!host->handle)
        return fail(dev, "clCreateBuffer", status);
    host->pointer =
        clEnqueueMapBuffer(cl->map_queue, host->handle, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                           host->bytes, 0, NULL, NULL, &status);
    if (!host->pointer) {
        clReleaseMemObject(host->handle);
        return fail(dev, "clEnqueueMapBuffer", status);
    }
    return 0;
}

static void opencl_free_host(struct dev_host *host)
{
    struct opencl_dev *cl = self(host->dev);

    clEnqueueUnmapMemObject(cl->map_queue, host->handle, host->pointer, 0, NULL, NULL);
    clFinish(cl->map_queue);
    clReleaseMemObject(host->handle);
}

/* ---- queues and commands --------------------------------------------------------------------- */

static int opencl_queue_create(struct dev_queue *queue)
{
    struct opencl_dev *cl = self(queue->dev);
    cl_int status;

    queue->handle = clCreateCommandQueue(cl->context, cl->device,
                                         queue->untimed ? 0 : CL_QUEUE_PROFILING_ENABLE, &status);
    return queue->handle ? 0 : fail(queue->dev, "clCreateCommandQueue", status);
}

static void opencl_queue_destroy(struct dev_queue *queue)
{
    clReleaseCommandQueue(queue->handle);
}

static int opencl_queue_finish(struct dev_queue *queue)
{
    cl_int status = clFinish(queue->handle);

    return status == CL_SUCCESS ? 0 : fail(queue->dev, "clFinish", status);
}

static int opencl_queue_flush(struct dev_queue *queue)
{
    cl_int status = clFlush(queue->handle);

    return status == CL_SUCCESS ? 0 : fail(queue->dev, "clFlush", status);
}

static int opencl_queue_wait(struct dev_queue *queue, struct dev_event *event)
{
    cl_event handle = event->handle;
    cl_command_queue producer = NULL;
    cl_int status;

    /* A queue that waits for a command which was never submitted would wait for ever. */
    status = clGetEventInfo(handle, CL_EVENT_COMMAND_QUEUE, sizeof producer, &producer, NULL);
    if (status == CL_SUCCESS && producer && producer != (cl_command_queue)queue->handle)
        status = clFlush(producer);
    if (status == CL_SUCCESS)
        status = clEnqueueBarrierWithWaitList(queue->handle, 1, &handle, NULL);
    return status == CL_SUCCESS ? 0 : fail(queue->dev, "clEnqueueBarrierWithWaitList", status);
}

static int opencl_write(struct dev_queue *queue, struct dev_buffer *to, size_t offset,
                        const void *from, size_t bytes, enum dev_sync sync, struct dev_event *event)
{
    cl_int status =
        clEnqueueWriteBuffer(queue->handle, to->handle, sync == DEV_BLOCKING ? CL_TRUE : CL_FALSE,
                             offset, bytes, from, 0, NULL, event_slot(event));

    return status == CL_SUCCESS ? 0 : fail(queue->dev, "clEnqueueWriteBuffer", status);
}

static int opencl_read(struct dev_queue *queue, const struct dev_buffer *from, size_t offset,
                       void *to, size_t bytes, enum dev_sync sync, struct dev_event *event)
{
    cl_int status =
        clEnqueueReadBuffer(queue->handle, from->handle, sync == DEV_BLOCKING ? CL_TRUE : CL_FALSE,
                            offset, bytes, to, 0, NULL, event_slot(event));

    return status == CL_SUCCESS ? 0 : fail(queue->dev, "clEnqueueReadBuffer", status);
}

static int opencl_fill(struct dev_queue *queue, struct dev_buffer *to, uint8_t byte,
                       struct dev_event *event)
{
    cl_int status = clEnqueueFillBuffer(queue->handle, to->handle, &byte, 1, 0, to->bytes, 0, NULL,
                                        event_slot(event));

    return status == CL_SUCCESS ? 0 : fail(queue->dev, "clEnqueueFillBuffer", status);
}

static int opencl_copy(struct dev_queue *queue, const struct dev_buffer *from, size_t from_offset,
                       struct dev_buffer *to, size_t to_offset, size_t bytes,
                       struct dev_event *event)
{
    cl_int status = clEnqueueCopyBuffer(queue->handle, from->handle, to->handle, from_offset,
                                        to_offset, bytes, 0, NULL, event_slot(event));

    return status == CL_SUCCESS ? 0 : fail(queue->dev, "clEnqueueCopyBuffer", status);
}

static int opencl_mark(struct dev_queue *queue, struct dev_event *event)
{
    cl_int status = clEnqueueMarkerWithWaitList(queue->handle, 0, NULL, event_slot(event));

    return status == CL_SUCCESS ? 0 : fail(queue->dev, "clEnqueueMarkerWithWaitList", status);
}

static int build_fail(struct dev *dev, const struct dev_module *module, cl_program program)
{
    cl_device_id device = self(dev)->device;
    size_t bytes = 0; /* of the whole log: a smaller buffer would get nothing of it */
    char *log = NULL;

    if (clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) == CL_SUCCESS)
        log = calloc(1, bytes + 1);
    if (log)
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log, NULL);
    dev_fail(dev, module->name, "the OpenCL source does not build: %s", log ? log : "no log");
    free(log);
    return -1;
}

static bool has_extension(cl_device_id device, const char *name)
{
    size_t bytes = 0;
    char *extensions = NULL;
    bool found;

    if (clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 0, NULL, &bytes) == CL_SUCCESS)
        extensions = calloc(1, bytes + 1);
    if (extensions)
        clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, bytes, extensions, NULL);
    found = extensions && strstr(extensions, name);
    free(extensions);
    return found;
}

static int get_program(struct dev *dev, const struct dev_module *module, cl_program *out)
{
    struct opencl_dev *cl = self(dev);
    struct program *program;
    cl_program handle;
    cl_int status;

    for (program = cl->programs; program; program = program->next) {
        if (program->module == module) {
            *out = program->handle;
            return 0;
        }
    }
    if (!module->opencl_source)
        return dev_fail(dev, module->name, "has no OpenCL kernels");
    handle = clCreateProgramWithSource(cl->context, 1, (const char **)&module->opencl_source, NULL,
                                       &status);
    if (!handle)
        return fail(dev, "clCreateProgramWithSource", status);
    program = calloc(1, sizeof *program);
    if (!program || clBuildProgram(handle, 1, &cl->device, "-cl-std=CL1.2", NULL, NULL)) {
        int result = build_fail(dev, module, handle);

        free(program);
        clReleaseProgram(handle);
        return result;
    }
    *program = (struct program){.next = cl->programs, .module = module, .handle = handle};
    cl->programs = program;
    *out = handle;
    return 0;
}

static int opencl_kernel(struct dev *dev, const struct dev_module *module,
                         struct dev_kernel *kernel)
{
    cl_program program = NULL;
    cl_int status;

    if (get_program(dev, module, &program) != 0)
        return -1;
    kernel->handle = clCreateKernel(program, kernel->name, &status);
    return kernel->handle ? 0 : fail(dev, kernel->name, status);
}

static void opencl_kernel_free(struct dev_kernel *kernel)
{
    clReleaseKernel(kernel->handle);
}

static cl_int set_arg(cl_kernel kernel, cl_uint index, const struct dev_arg *arg)
{
    switch (arg->kind) {
    case DEV_ARG_BUFFER:
        return clSetKernelArg(kernel, index, sizeof(cl_mem), &arg->value.buffer->handle);
    case DEV_ARG_U32:
        return clSetKernelArg(kernel, index, sizeof arg->value.u32, &arg->value.u32);
    case DEV_ARG_F32:
        return clSetKernelArg(kernel, index, sizeof arg->value.f32, &arg->value.f32);
    case DEV_ARG_LOCAL:
        return clSetKernelArg(kernel, index, arg->value.local_bytes, NULL);
    }
    return CL_INVALID_ARG_VALUE;
}

static int opencl_launch(struct dev_queue *queue, struct dev_kernel *kernel, struct dev_grid grid,
                         const struct dev_arg *args, size_t arg_count, struct dev_event *event)
{
    size_t group_items = grid.group_items;
    size_t items = (size_t)grid.groups * grid.group_items;
    cl_int status;

    for (size_t i = 0; i < arg_count; i++) {
        status = set_arg(kernel->handle, (cl_uint)i, &args[i]);
        if (status != CL_SUCCESS)
            return fail(queue->dev, kernel->name, status);
    }
    status = clEnqueueNDRangeKernel(queue->handle, kernel->handle, 1, NULL, &items, &group_items, 0,
                                    NULL, event_slot(event));
    return status == CL_SUCCESS ? 0 : fail(queue->dev, kernel->name, status);
}

/* ---- events ---------------------------------------------------------------------------------- */

static int opencl_event_wait(struct dev_event *event)
{
    cl_event handle = event->handle;
    cl_int status = clWaitForEvents(1, &handle);

    return status == CL_SUCCESS ? 0 : fail(event->dev, "clWaitForEvents", status);
}

static int opencl_event_duration_ns(struct dev_event *event, uint64_t *out_ns)
{
    cl_ulong start = 0, end = 0;
    cl_int status;

    status = clGetEventProfilingInfo(event->handle, CL_PROFILING_COMMAND_START, sizeof start,
                                     &start, NULL);
    if (status == CL_SUCCESS)
        status = clGetEventProfilingInfo(event->handle, CL_PROFILING_COMMAND_END, sizeof end, &end,
                                         NULL);
    if (status != CL_SUCCESS)
        return fail(event->dev, "clGetEventProfilingInfo", status);
    *out_ns = end > start ? end - start : 0;
    return 0;
}

static int opencl_elapsed_ns(struct dev_event *from, struct dev_event *to, uint64_t *out_ns)
{
    cl_ulong first = 0, last = 0;
    cl_int status =
        clGetEventProfilingInfo(from->handle, CL_PROFILING_COMMAND_END, sizeof first, &first, NULL);

    if (status == CL_SUCCESS)
        status =
            clGetEventProfilingInfo(to->handle, CL_PROFILING_COMMAND_END, sizeof last, &last, NULL);
    if (status != CL_SUCCESS)
        return fail(from->dev, "clGetEventProfilingInfo", status);
    *out_ns = last > first ? last - first : 0;
    return 0;
}

static void opencl_event_release(struct dev_event *event)
{
    if (event->handle)
        clReleaseEvent(event->handle);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void opencl_close(struct dev *dev)
{
    struct opencl_dev *cl = self(dev);

    while (cl->programs) {
        struct program *program = cl->programs;

        cl->programs = program->next;
        clReleaseProgram(program->handle);
        free(program);
    }
    if (cl->map_queue)
        clReleaseCommandQueue(cl->map_queue);
    if (cl->context)
        clReleaseContext(cl->context);
    free(cl);
}

static const struct dev_ops opencl_ops = {
    .close = opencl_close,
    .alloc = opencl_alloc,
    .view = opencl_view,
    .free = opencl_free,
    .alloc_host = opencl_alloc_host,
    .free_host = opencl_free_host,
    .queue_create = opencl_queue_create,
    .queue_destroy = opencl_queue_destroy,
    .queue_finish = opencl_queue_finish,
    .queue_flush = opencl_queue_flush,
    .queue_wait = opencl_queue_wait,
    .write = opencl_write,
    .read = opencl_read,
    .fill = opencl_fill,
    .copy = opencl_copy,
    .mark = opencl_mark,
    .elapsed_ns = opencl_elapsed_ns,
    .kernel = opencl_kernel,
    .kernel_free = opencl_kernel_free,
    .launch = opencl_launch,
    .event_wait = opencl_event_wait,
    .event_duration_ns = opencl_event_duration_ns,
    .event_release = opencl_event_release,
};

/* Is a device of the third pass one that an earlier pass has had? */
static bool counted_before(cl_device_id device)
{
    cl_device_type type = 0;

    clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    return (type & (CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR)) != 0;
}

static bool find_device(uint32_t nth, cl_device_id *device, cl_platform_id *platform)
{
    static const cl_device_type preference[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ACCELERATOR,
                                                CL_DEVICE_TYPE_ALL};
    cl_platform_id platforms[16];
    cl_device_id devices[32];
    cl_uint count = 0;

    if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS)
        return false;
    if (count > 16)
        count = 16;
    for (size_t kind = 0; kind < sizeof preference / sizeof preference[0]; kind++) {
        for (cl_uint i = 0; i < count; i++) {
            cl_uint found = 0;

            if (clGetDeviceIDs(platforms[i], preference[kind], 32, devices, &found) != CL_SUCCESS)
                continue;
            for (cl_uint j = 0; j < found && j < 32; j++) {
                if (preference[kind] == CL_DEVICE_TYPE_ALL && counted_before(devices[j]))
                    continue;
                if (nth-- == 0) {
                    *device = devices[j];
                    *platform = platforms[i];
                    return true;
                }
            }
        }
    }
    return false;
}

static void read_info(struct opencl_dev *cl, cl_platform_id platform)
{
    struct dev_info *info = &cl->base.info;
    cl_device_type type = 0;
    cl_uint units = 0;
    cl_ulong local = 0, global = 0, cache = 0;
    size_t group_items = 1;

    clGetDeviceInfo(cl->device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    clGetDeviceInfo(cl->device, CL_DEVICE_NAME, sizeof info->name - 1, info->name, NULL);
    clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof info->platform - 1, info->platform,
                      NULL);
    clGetDeviceInfo(cl->device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL);
    clGetDeviceInfo(cl->device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof local, &local, NULL);
    clGetDeviceInfo(cl->device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof global, &global, NULL);
    clGetDeviceInfo(cl->device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof group_items, &group_items,
                    NULL);
    clGetDeviceInfo(cl->device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, sizeof cache, &cache, NULL);
    info->cache_bytes = cache;
    info->backend = DEV_OPENCL;
    info->fp16 = has_extension(cl->device, "cl_khr_fp16");
    info->is_cpu = (type & CL_DEVICE_TYPE_CPU) != 0;
    info->compute_units = units;
    info->local_bytes = local;
    info->global_bytes = global;
    info->max_group_items = (uint32_t)group_items;
}

struct dev *dev_open_opencl(uint32_t nth, char *why, size_t why_bytes)
{
    struct opencl_dev *cl = calloc(1, sizeof *cl);
    cl_platform_id platform = NULL;
    cl_int status;

    if (!cl) {
        snprintf(why, why_bytes, "out of host memory");
        return NULL;
    }
    cl->base.ops = &opencl_ops;
    if (!find_device(nth, &cl->device, &platform)) {
        if (nth)
            snprintf(why, why_bytes, "no OpenCL device %u", nth);
        else
            snprintf(why, why_bytes,
                     "no OpenCL device (Debian: pocl-opencl-icd makes the CPU one)");
        free(cl);
        return NULL;
    }
    cl->context = clCreateContext(NULL, 1, &cl->device, NULL, NULL, &status);
    if (!cl->context) {
        snprintf(why, why_bytes, "clCreateContext: error %d", (int)status);
        free(cl);
        return NULL;
    }
    read_info(cl, platform);
    return &cl->base;
}
