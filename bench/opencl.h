/* What OpenCL programs of bench/ begin with; a call that fails ends the program. */
#ifndef PERFKIT_BENCH_OPENCL_H
#define PERFKIT_BENCH_OPENCL_H

#include <CL/cl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static inline void must(cl_int error, const char *what)
{
    if (error == CL_SUCCESS)
        return;
    fprintf(stderr, "%s: %s: error %d\n", program_invocation_short_name, what, error);
    exit(1);
}

/* Of the first device of any kind. */
static inline cl_context make_context(cl_device_id *device)
{
    cl_platform_id platform;
    cl_int error;
    must(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, device, NULL), "clGetDeviceIDs");
    cl_context context = clCreateContext(NULL, 1, device, NULL, NULL, &error);
    must(error, "clCreateContext");
    return context;
}

static inline cl_program make_program(cl_context context, cl_device_id device, cl_uint count,
                                      const char **texts)
{
    cl_int error;
    cl_program program = clCreateProgramWithSource(context, count, texts, NULL, &error);
    must(error, "clCreateProgramWithSource");
    must(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
    return program;
}

static inline cl_command_queue make_queue(cl_context context, cl_device_id device,
                                          cl_command_queue_properties properties)
{
    cl_int error;
    cl_command_queue queue = clCreateCommandQueue(context, device, properties, &error);
    must(error, "clCreateCommandQueue");
    return queue;
}

static inline cl_kernel make_kernel(cl_program program, const char *name)
{
    cl_int error;
    cl_kernel kernel = clCreateKernel(program, name, &error);
    must(error, name);
    return kernel;
}

/* With what `data` points at, or with anything. */
static inline cl_mem make_buffer(cl_context context, size_t bytes, void *data)
{
    cl_int error;
    cl_mem_flags flags = CL_MEM_READ_WRITE | (data ? CL_MEM_COPY_HOST_PTR : 0);
    cl_mem memory = clCreateBuffer(context, flags, bytes, data, &error);
    must(error, "clCreateBuffer");
    return memory;
}

#endif
