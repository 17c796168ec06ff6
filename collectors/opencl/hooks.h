/* The OpenCL functions that the layer wraps, in one table: the dispatch table, the prototypes, the
 * names and the classes of the recorded calls all come from it. NONE = the call itself makes no
 * CALL record (it defines an object or hides something). */
#ifndef PERFKIT_COLLECTORS_OPENCL_HOOKS_H
#define PERFKIT_COLLECTORS_OPENCL_HOOKS_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl_layer.h>

#define OCL_HOOKS(X)                                                                               \
    X(clEnqueueNDRangeKernel, LAUNCH)                                                              \
    X(clEnqueueTask, LAUNCH)                                                                       \
    X(clEnqueueNativeKernel, LAUNCH)                                                               \
    X(clEnqueueReadBuffer, TRANSFER)                                                               \
    X(clEnqueueWriteBuffer, TRANSFER)                                                              \
    X(clEnqueueCopyBuffer, TRANSFER)                                                               \
    X(clEnqueueReadBufferRect, TRANSFER)                                                           \
    X(clEnqueueWriteBufferRect, TRANSFER)                                                          \
    X(clEnqueueCopyBufferRect, TRANSFER)                                                           \
    X(clEnqueueReadImage, TRANSFER)                                                                \
    X(clEnqueueWriteImage, TRANSFER)                                                               \
    X(clEnqueueCopyImage, TRANSFER)                                                                \
    X(clEnqueueCopyImageToBuffer, TRANSFER)                                                        \
    X(clEnqueueCopyBufferToImage, TRANSFER)                                                        \
    X(clEnqueueMapBuffer, TRANSFER)                                                                \
    X(clEnqueueMapImage, TRANSFER)                                                                 \
    X(clEnqueueUnmapMemObject, TRANSFER)                                                           \
    X(clEnqueueMigrateMemObjects, TRANSFER)                                                        \
    X(clEnqueueSVMMemcpy, TRANSFER)                                                                \
    X(clEnqueueSVMMap, TRANSFER)                                                                   \
    X(clEnqueueSVMUnmap, TRANSFER)                                                                 \
    X(clEnqueueSVMMigrateMem, TRANSFER)                                                            \
    X(clEnqueueFillBuffer, MEMSET)                                                                 \
    X(clEnqueueFillImage, MEMSET)                                                                  \
    X(clEnqueueSVMMemFill, MEMSET)                                                                 \
    X(clFinish, SYNC)                                                                              \
    X(clWaitForEvents, SYNC)                                                                       \
    X(clFlush, OTHER)                                                                              \
    X(clEnqueueMarker, OTHER)                                                                      \
    X(clEnqueueMarkerWithWaitList, OTHER)                                                          \
    X(clEnqueueBarrier, OTHER)                                                                     \
    X(clEnqueueBarrierWithWaitList, OTHER)                                                         \
    X(clEnqueueWaitForEvents, OTHER)                                                               \
    X(clCreateBuffer, ALLOC)                                                                       \
    X(clCreateBufferWithProperties, ALLOC)                                                         \
    X(clCreateSubBuffer, SUBALLOC)                                                                 \
    X(clCreateImage, ALLOC)                                                                        \
    X(clCreateImageWithProperties, ALLOC)                                                          \
    X(clCreateImage2D, ALLOC)                                                                      \
    X(clCreateImage3D, ALLOC)                                                                      \
    X(clCreatePipe, ALLOC)                                                                         \
    X(clSVMAlloc, ALLOC)                                                                           \
    X(clRetainMemObject, NONE)                                                                     \
    X(clReleaseMemObject, FREE)                                                                    \
    X(clSVMFree, FREE)                                                                             \
    X(clEnqueueSVMFree, FREE_ASYNC)                                                                \
    X(clBuildProgram, BUILD)                                                                       \
    X(clCompileProgram, BUILD)                                                                     \
    X(clLinkProgram, BUILD)                                                                        \
    X(clCreateContext, NONE)                                                                       \
    X(clCreateContextFromType, NONE)                                                               \
    X(clReleaseContext, NONE)                                                                      \
    X(clCreateCommandQueue, NONE)                                                                  \
    X(clCreateCommandQueueWithProperties, NONE)                                                    \
    X(clReleaseCommandQueue, NONE)                                                                 \
    X(clSetCommandQueueProperty, NONE)                                                             \
    X(clCreateKernel, NONE)                                                                        \
    X(clCreateKernelsInProgram, NONE)                                                              \
    X(clCloneKernel, NONE)                                                                         \
    X(clReleaseKernel, NONE)                                                                       \
    X(clSetKernelArg, NONE)                                                                        \
    X(clGetCommandQueueInfo, NONE)                                                                 \
    X(clGetContextInfo, NONE)                                                                      \
    X(clGetMemObjectInfo, NONE)                                                                    \
    X(clGetKernelInfo, NONE)                                                                       \
    X(clGetProgramInfo, NONE)                                                                      \
    X(clGetEventInfo, NONE)                                                                        \
    X(clGetEventProfilingInfo, NONE)                                                               \
    X(clRetainEvent, NONE)                                                                         \
    X(clReleaseEvent, NONE)                                                                        \
    X(clSetEventCallback, NONE)                                                                    \
    X(clSetUserEventStatus, NONE)                                                                  \
    X(clGetExtensionFunctionAddress, NONE)                                                         \
    X(clGetExtensionFunctionAddressForPlatform, NONE)

enum ocl_hook {
#define X(function, klass) OCL_##function,
    OCL_HOOKS(X)
#undef X
        OCL_HOOK_COUNT
};

/* The hook of function clFoo is ocl_clFoo, of clFoo's type. */
#define X(function, klass) extern __typeof__(function) ocl_##function;
OCL_HOOKS(X)
#undef X

/* ---- layer.c: what has no slot in the layer's table ------------------------------------------
 *
 * Extension functions: the program fetches their addresses, so the layer hands out its own. */

/* The functions whose commands or memory the layer does not record, with what it takes to pass a
 * call on: return type, name, parameters, arguments. */
#define OCL_UNSEEN(X)                                                                              \
    X(cl_int, clEnqueueCommandBufferKHR,                                                           \
      (cl_uint queues, cl_command_queue * list, void *buffer, cl_uint waits,                       \
       const cl_event *wait_list, cl_event *event),                                                \
      (queues, list, buffer, waits, wait_list, event))                                             \
    X(void *, clHostMemAllocINTEL,                                                                 \
      (cl_context context, const cl_bitfield *properties, size_t bytes, cl_uint alignment,         \
       cl_int *error),                                                                             \
      (context, properties, bytes, alignment, error))                                              \
    X(void *, clDeviceMemAllocINTEL,                                                               \
      (cl_context context, cl_device_id device, const cl_bitfield *properties, size_t bytes,       \
       cl_uint alignment, cl_int *error),                                                          \
      (context, device, properties, bytes, alignment, error))                                      \
    X(void *, clSharedMemAllocINTEL,                                                               \
      (cl_context context, cl_device_id device, const cl_bitfield *properties, size_t bytes,       \
       cl_uint alignment, cl_int *error),                                                          \
      (context, device, properties, bytes, alignment, error))                                      \
    X(cl_int, clMemFreeINTEL, (cl_context context, void *at), (context, at))                       \
    X(cl_int, clMemBlockingFreeINTEL, (cl_context context, void *at), (context, at))               \
    X(cl_int, clEnqueueMemcpyINTEL,                                                                \
      (cl_command_queue queue, cl_bool blocking, void *to, const void *from, size_t bytes,         \
       cl_uint waits, const cl_event *wait_list, cl_event *event),                                 \
      (queue, blocking, to, from, bytes, waits, wait_list, event))                                 \
    X(cl_int, clEnqueueMemFillINTEL,                                                               \
      (cl_command_queue queue, void *to, const void *pattern, size_t pattern_bytes, size_t bytes,  \
       cl_uint waits, const cl_event *wait_list, cl_event *event),                                 \
      (queue, to, pattern, pattern_bytes, bytes, waits, wait_list, event))                         \
    X(cl_int, clEnqueueMigrateMemINTEL,                                                            \
      (cl_command_queue queue, const void *at, size_t bytes, cl_bitfield flags, cl_uint waits,     \
       const cl_event *wait_list, cl_event *event),                                                \
      (queue, at, bytes, flags, waits, wait_list, event))

#endif
