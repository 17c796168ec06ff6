/* What programs that keep an account of their calls begin with: an NVTX mark with a payload, and an
 * OpenCL device. Without OpenCL (HAVE_OPENCL) open_device ends the program: status 77. */
#ifndef PERFKIT_TESTS_E2E_TARGETS_CALLS_H
#define PERFKIT_TESTS_E2E_TARGETS_CALLS_H

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "perfkit/annotate.h"
#ifdef HAVE_OPENCL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#endif

static inline void mark_payload(uint64_t payload, const char *name)
{
    pk_nvtx_mark_ex_fn handler =
        (pk_nvtx_mark_ex_fn)perfkit_annotate_slot(PK_NVTX_MODULE_CORE, PK_NVTX_CORE_MARK_EX);
    struct pk_nvtx_event_attributes event = {
        .version = PK_NVTX_VERSION,
        .size = sizeof event,
        .payload_type = PK_NVTX_PAYLOAD_UINT64,
        .payload.u64 = payload,
        .message_type = PK_NVTX_MESSAGE_ASCII,
        .message.ascii = name,
    };
    if (handler)
        handler(&event);
}

#ifdef HAVE_OPENCL
static cl_context context;
static cl_device_id device;

static inline void must(cl_int error, const char *what)
{
    if (error) {
        fprintf(stderr, "%s: %d\n", what, error);
        _exit(99);
    }
}

static inline void open_device(void)
{
    cl_platform_id platform;
    cl_int error;
    must(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    must(error, "clCreateContext");
}

/* A queue and a buffer of 4,096 bytes. */
static inline cl_command_queue open_queue(cl_mem *memory)
{
    cl_int error;
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    must(error, "clCreateCommandQueue");
    *memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &error);
    must(error, "clCreateBuffer");
    return queue;
}
#else
static inline void open_device(void)
{
    _exit(77);
}
#endif

#endif
