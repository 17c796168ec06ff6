/* What the program must not notice: that its queues stamp times which it did not request, and that
 * the layer holds events until they are harvested. Queues are created with profiling forced on and
 * queries about them answer as the program created them; its own profiling queries fail as they
 * would have; and before a reference count is returned or an object may end, finished events are
 * released. What remains held then are commands in flight, which a driver holds anyway. */
#include <string.h>

#include "collectors/opencl/ocl.h"

/* ---- creating queues ------------------------------------------------------------------------- */

static cl_command_queue make_old(void *real, cl_context context, cl_device_id device,
                                 const cl_queue_properties *list, cl_int *error)
{
    (void)real;
    return OCL_CALL(clCreateCommandQueue, context, device, list[1], error);
}

static cl_command_queue make_from_list(void *real, cl_context context, cl_device_id device,
                                       const cl_queue_properties *list, cl_int *error)
{
    (void)real;
    return OCL_CALL(clCreateCommandQueueWithProperties, context, device, list, error);
}

cl_command_queue CL_API_CALL ocl_clCreateCommandQueue(cl_context context, cl_device_id device,
                                                      cl_command_queue_properties bits,
                                                      cl_int *error)
{
    const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, bits, 0};
    return ocl_queue_create(make_old, NULL, context, device, list, false, error);
}

cl_command_queue CL_API_CALL ocl_clCreateCommandQueueWithProperties(cl_context context,
                                                                    cl_device_id device,
                                                                    const cl_queue_properties *list,
                                                                    cl_int *error)
{
    return ocl_queue_create(make_from_list, NULL, context, device, list, true, error);
}

/* The release may be the last: the queue, and the context with it, must end now if it would end
 * now without us. Afterwards the handle may be dead, its state here is not. */
cl_int CL_API_CALL ocl_clReleaseCommandQueue(cl_command_queue handle)
{
    struct ocl_queue *queue = ocl_on() ? ocl_queue_known(handle) : NULL;
    if (queue && ocl_settle(queue))
        ocl_settled(queue);
    cl_int result = OCL_CALL(clReleaseCommandQueue, handle);
    if (queue)
        ocl_harvest(queue, 0);
    return result;
}

static void settle_all(void)
{
    int saved = errno;
    for (struct ocl_queue *queue = ocl_queue_all(); queue && ocl_on(); queue = queue->next) {
        if (atomic_load_explicit(&queue->pending, memory_order_relaxed) && ocl_settle(queue))
            ocl_settled(queue);
    }
    errno = saved;
}

cl_int CL_API_CALL ocl_clReleaseContext(cl_context context)
{
    settle_all();
    return OCL_CALL(clReleaseContext, context);
}

/* The program turns profiling on or off by the function of OpenCL 1.0. */
cl_int CL_API_CALL ocl_clSetCommandQueueProperty(cl_command_queue handle,
                                                 cl_command_queue_properties bits, cl_bool enable,
                                                 cl_command_queue_properties *before)
{
    cl_int result = OCL_CALL(clSetCommandQueueProperty, handle, bits, enable, before);
    struct ocl_queue *queue = result == CL_SUCCESS ? ocl_queue_known(handle) : NULL;
    if (queue) {
        if (before && !atomic_load(&queue->profiling_requested))
            *before &= ~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE;
        if (bits & CL_QUEUE_PROFILING_ENABLE)
            atomic_store(&queue->profiling_requested, enable != CL_FALSE);
    }
    return result;
}

/* ---- answers --------------------------------------------------------------------------------- */

static cl_int own_list(const struct ocl_queue *queue, size_t size, void *value, size_t *size_ret)
{
    size_t bytes = queue->list_count * sizeof queue->list[0];
    if (value && size < bytes)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, queue->list, bytes);
    if (size_ret)
        *size_ret = bytes;
    return CL_SUCCESS;
}

/* What the driver would return for the list. Drivers differ (PoCL repeats it, NVIDIA's returns only
 * the properties it acted on), so an unknown driver is queried about a queue made as the program
 * wanted it, which is released at once. Programs rarely query it. */
static cl_int list_beneath(const struct ocl_queue *queue, size_t size, void *value,
                           size_t *size_ret)
{
    cl_int result = CL_SUCCESS;
    const cl_queue_properties *list = queue->list_count ? queue->list : NULL;
    cl_command_queue twin = NULL;
    if (queue->device && ocl_next.clCreateCommandQueueWithProperties)
        twin = OCL_CALL(clCreateCommandQueueWithProperties, queue->context, queue->device->handle,
                        list, &result);
    if (!twin)
        return own_list(queue, size, value, size_ret);
    result =
        OCL_CALL(clGetCommandQueueInfo, twin, CL_QUEUE_PROPERTIES_ARRAY, size, value, size_ret);
    OCL_CALL(clReleaseCommandQueue, twin);
    return result;
}

cl_int CL_API_CALL ocl_clGetCommandQueueInfo(cl_command_queue handle, cl_command_queue_info what,
                                             size_t size, void *value, size_t *size_ret)
{
    struct ocl_queue *queue = ocl_queue_known(handle);
    if (!queue)
        return OCL_CALL(clGetCommandQueueInfo, handle, what, size, value, size_ret);
    bool hidden = queue->profiled && !atomic_load(&queue->profiling_requested);
    bool alone = what == CL_QUEUE_REFERENCE_COUNT && ocl_on() && ocl_settle(queue);
    cl_int result;
    if (what == CL_QUEUE_PROPERTIES_ARRAY && hidden && queue->has_list) {
        result = list_beneath(queue, size, value, size_ret);
    } else {
        result = OCL_CALL(clGetCommandQueueInfo, handle, what, size, value, size_ret);
        if (what == CL_QUEUE_PROPERTIES && hidden && result == CL_SUCCESS && value) {
            cl_command_queue_properties bits;
            memcpy(&bits, value, sizeof bits);
            bits &= ~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE;
            memcpy(value, &bits, sizeof bits);
        }
    }
    if (alone)
        ocl_settled(queue);
    return result;
}

cl_int CL_API_CALL ocl_clGetEventProfilingInfo(cl_event event, cl_profiling_info what, size_t size,
                                               void *value, size_t *size_ret)
{
    struct ocl_queue *queue = event ? ocl_queue_of_event(event) : NULL;
    if (queue && queue->profiled && !atomic_load(&queue->profiling_requested))
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    return OCL_CALL(clGetEventProfilingInfo, event, what, size, value, size_ret);
}

cl_int CL_API_CALL ocl_clGetEventInfo(cl_event event, cl_event_info what, size_t size, void *value,
                                      size_t *size_ret)
{
    struct ocl_queue *queue = NULL;
    if (what == CL_EVENT_REFERENCE_COUNT && event && ocl_on())
        queue = ocl_queue_of_event(event);
    bool alone = queue && ocl_settle(queue);
    cl_int result = OCL_CALL(clGetEventInfo, event, what, size, value, size_ret);
    if (queue && result == CL_SUCCESS && value && ocl_holds(queue, event)) {
        cl_uint count;
        memcpy(&count, value, sizeof count);
        count -= count > 1;
        memcpy(value, &count, sizeof count);
    }
    if (alone)
        ocl_settled(queue);
    return result;
}

/* Objects that commands hold. */
#define COUNTED(function, type, info, counted)                                                     \
    cl_int CL_API_CALL ocl_##function(type object, info what, size_t size, void *value,            \
                                      size_t *size_ret)                                            \
    {                                                                                              \
        if (what == (counted))                                                                     \
            settle_all();                                                                          \
        return OCL_CALL(function, object, what, size, value, size_ret);                            \
    }
COUNTED(clGetContextInfo, cl_context, cl_context_info, CL_CONTEXT_REFERENCE_COUNT)
COUNTED(clGetMemObjectInfo, cl_mem, cl_mem_info, CL_MEM_REFERENCE_COUNT)
COUNTED(clGetKernelInfo, cl_kernel, cl_kernel_info, CL_KERNEL_REFERENCE_COUNT)
COUNTED(clGetProgramInfo, cl_program, cl_program_info, CL_PROGRAM_REFERENCE_COUNT)
