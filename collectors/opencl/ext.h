/* Extension functions: the program fetches their addresses, so the layer hands out its own. */
#ifndef PERFKIT_COLLECTORS_OPENCL_EXT_H
#define PERFKIT_COLLECTORS_OPENCL_EXT_H

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
