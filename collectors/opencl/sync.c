/* Waits of the program, flushes, markers, barriers and program builds: calls that put no command
 * with times of its own into the capture. Where the program has waited, commands have finished, so
 * these are also the places to harvest. */
#include "collectors/opencl/ocl.h"

static void end_sync(const struct ocl_call *call, cl_int result, enum wire_sync_kind kind,
                     uint32_t stream)
{
    if (!call->on)
        return;
    ocl_call_end(call, result, WIRE_EXPECTS_ONE);
    if (result != CL_SUCCESS)
        return;
    struct wire_sync sync = {
        .head = {sizeof sync, WIRE_SYNC, WIRE_OPENCL, stream},
        .correlation = call->correlation,
        .start = call->start,
        .end = call->end,
        .kind = kind,
    };
    int saved = errno;
    collector_emit(&sync);
    errno = saved;
}

cl_int CL_API_CALL ocl_clFinish(cl_command_queue handle)
{
    struct ocl_call call;
    ocl_call_begin(&call, OCL_clFinish);
    struct ocl_queue *queue = call.on     ? ocl_queue_of(handle)
                              : call.live ? ocl_queue_known(handle)
                                          : NULL;
    cl_int result = OCL_TIMED(&call, clFinish, handle);
    end_sync(&call, result, WIRE_SYNC_STREAM, queue && call.on ? ocl_queue_stream(queue) : 0);
    if (queue)
        ocl_harvest(queue, 0);
    return result;
}

/* The queues are looked up before the wait: after it another thread that waited for the same event
 * may have released it. */
cl_int CL_API_CALL ocl_clWaitForEvents(cl_uint count, const cl_event *list)
{
    struct ocl_call call;
    struct ocl_queue *queues[8];
    unsigned distinct = 0;
    bool all = false;
    ocl_call_begin(&call, OCL_clWaitForEvents);
    for (cl_uint i = 0; call.on && list && i < count && !all; i++) {
        struct ocl_queue *queue = list[i] ? ocl_queue_of_event(list[i]) : NULL;
        unsigned j = 0;
        while (j < distinct && queues[j] != queue)
            j++;
        all = queue && j == distinct && distinct == sizeof queues / sizeof queues[0];
        if (queue && j == distinct && !all)
            queues[distinct++] = queue;
    }
    cl_int result = OCL_TIMED(&call, clWaitForEvents, count, list);
    end_sync(&call, result, WIRE_SYNC_EVENT,
             distinct == 1 && !all ? ocl_queue_stream(queues[0]) : 0);
    for (unsigned i = 0; i < distinct && !all; i++)
        ocl_harvest(queues[i], 0);
    if (all)
        ocl_harvest_all(0);
    return result;
}

cl_int CL_API_CALL ocl_clFlush(cl_command_queue handle)
{
    struct ocl_call call;
    ocl_call_begin(&call, OCL_clFlush);
    cl_int result = OCL_TIMED(&call, clFlush, handle);
    ocl_call_end(&call, result, WIRE_EXPECTS_NONE);
    struct ocl_queue *queue = call.on ? ocl_queue_known(handle) : NULL;
    if (queue)
        ocl_harvest(queue, 4 * OCL_POLL_EVERY);
    return result;
}

/* The wrapper of a call that is recorded on its own, by its parameters and its arguments. */
#define PLAIN(function, parameters, ...)                                                           \
    cl_int CL_API_CALL ocl_##function parameters                                                   \
    {                                                                                              \
        struct ocl_call call;                                                                      \
        ocl_call_begin(&call, OCL_##function);                                                     \
        cl_int result = OCL_TIMED(&call, function, __VA_ARGS__);                                   \
        ocl_call_end(&call, result, WIRE_EXPECTS_NONE);                                            \
        return result;                                                                             \
    }

PLAIN(clEnqueueMarker, (cl_command_queue queue, cl_event *event), queue, event)

PLAIN(clEnqueueMarkerWithWaitList,
      (cl_command_queue queue, cl_uint waits, const cl_event *wait_list, cl_event *event), queue,
      waits, wait_list, event)

PLAIN(clEnqueueBarrier, (cl_command_queue queue), queue)

PLAIN(clEnqueueBarrierWithWaitList,
      (cl_command_queue queue, cl_uint waits, const cl_event *wait_list, cl_event *event), queue,
      waits, wait_list, event)

PLAIN(clEnqueueWaitForEvents, (cl_command_queue queue, cl_uint waits, const cl_event *wait_list),
      queue, waits, wait_list)

PLAIN(clBuildProgram,
      (cl_program program, cl_uint count, const cl_device_id *list, const char *options,
       void(CL_CALLBACK *notify)(cl_program, void *), void *data),
      program, count, list, options, notify, data)

PLAIN(clCompileProgram,
      (cl_program program, cl_uint count, const cl_device_id *list, const char *options,
       cl_uint headers, const cl_program *header_list, const char **header_names,
       void(CL_CALLBACK *notify)(cl_program, void *), void *data),
      program, count, list, options, headers, header_list, header_names, notify, data)

cl_program CL_API_CALL ocl_clLinkProgram(cl_context context, cl_uint count,
                                         const cl_device_id *list, const char *options,
                                         cl_uint programs, const cl_program *program_list,
                                         void(CL_CALLBACK *notify)(cl_program, void *), void *data,
                                         cl_int *error)
{
    struct ocl_call call;
    cl_int result = CL_SUCCESS;
    ocl_call_begin(&call, OCL_clLinkProgram);
    cl_program program = OCL_TIMED(&call, clLinkProgram, context, count, list, options, programs,
                                   program_list, notify, data, &result);
    ocl_call_end(&call, result, WIRE_EXPECTS_NONE);
    if (error)
        *error = result;
    return program;
}

/* Not recorded; a signal that ends the process inside them must find that we know (harvest.c). */
#define PASSED(function, parameters, ...)                                                          \
    cl_int CL_API_CALL ocl_##function parameters                                                   \
    {                                                                                              \
        return OCL_CALL(function, __VA_ARGS__);                                                    \
    }
PASSED(clRetainEvent, (cl_event event), event)

PASSED(clReleaseEvent, (cl_event event), event)

PASSED(clSetEventCallback,
       (cl_event event, cl_int status, void(CL_CALLBACK *notify)(cl_event, cl_int, void *),
        void *data),
       event, status, notify, data)

PASSED(clSetUserEventStatus, (cl_event event, cl_int status), event, status)
