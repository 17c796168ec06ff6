/* The class of an API call, by the name of its function: the one list of such names. The collector
 * for CUDA classes functions by it, imports of other tools' files and captures of earlier versions
 * class their calls by it, and everything else reads the class that is stored. Calls of the CUDA
 * runtime, the CUDA driver and OpenCL that do the same are one class. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "libprof/wire/command.h"

/* A name, or with a final '*' a beginning; the first that matches counts. */
static const struct {
    const char *pattern;
    enum wire_class klass;
} patterns[] = {
    {"cudaLaunchKernel", WIRE_CLASS_LAUNCH},
    {"cudaLaunchKernelExC", WIRE_CLASS_LAUNCH},
    {"cudaLaunchCooperativeKernel*", WIRE_CLASS_LAUNCH},
    {"cudaLaunch", WIRE_CLASS_LAUNCH},
    {"cudaGraphLaunch", WIRE_CLASS_GRAPH_LAUNCH},
    {"cudaMemcpy*", WIRE_CLASS_TRANSFER},
    {"cudaMemset*", WIRE_CLASS_MEMSET},
    {"cudaMallocHost", WIRE_CLASS_ALLOC_HOST},
    {"cudaHostAlloc", WIRE_CLASS_ALLOC_HOST},
    {"cudaHostRegister", WIRE_CLASS_HOST_REGISTER},
    {"cudaHostUnregister", WIRE_CLASS_HOST_UNREGISTER},
    {"cudaMallocAsync", WIRE_CLASS_ALLOC_ASYNC},
    {"cudaMallocFromPoolAsync", WIRE_CLASS_ALLOC_ASYNC},
    {"cudaMalloc*", WIRE_CLASS_ALLOC},
    {"cudaFreeHost", WIRE_CLASS_FREE_HOST},
    {"cudaFreeAsync", WIRE_CLASS_FREE_ASYNC},
    {"cudaFree*", WIRE_CLASS_FREE},
    {"cudaStreamWaitEvent", WIRE_CLASS_STREAM_WAIT},
    {"cudaDeviceSynchronize", WIRE_CLASS_SYNC},
    {"cudaThreadSynchronize", WIRE_CLASS_SYNC},
    {"cudaStreamSynchronize", WIRE_CLASS_SYNC},
    {"cudaEventSynchronize", WIRE_CLASS_SYNC},
    {"cudaLibraryLoad*", WIRE_CLASS_BUILD},
    {"cudaGraphInstantiate*", WIRE_CLASS_GRAPH_MAKE},
    {"cudaStreamCreate*", WIRE_CLASS_CREATE},
    {"cudaEventCreate*", WIRE_CLASS_CREATE},
    {"cudaStreamQuery", WIRE_CLASS_QUERY},
    {"cudaEventQuery", WIRE_CLASS_QUERY},

    {"cuLaunchKernel", WIRE_CLASS_LAUNCH},
    {"cuLaunchKernelEx", WIRE_CLASS_LAUNCH},
    {"cuLaunchCooperativeKernel*", WIRE_CLASS_LAUNCH},
    {"cuLaunch", WIRE_CLASS_LAUNCH},
    {"cuLaunchGrid", WIRE_CLASS_LAUNCH},
    {"cuLaunchGridAsync", WIRE_CLASS_LAUNCH},
    {"cuGraphLaunch", WIRE_CLASS_GRAPH_LAUNCH},
    {"cuMemcpy*", WIRE_CLASS_TRANSFER},
    {"cuMemset*", WIRE_CLASS_MEMSET},
    {"cuMemHostAlloc", WIRE_CLASS_ALLOC_HOST},
    {"cuMemAllocHost", WIRE_CLASS_ALLOC_HOST},
    {"cuMemHostRegister", WIRE_CLASS_HOST_REGISTER},
    {"cuMemHostUnregister", WIRE_CLASS_HOST_UNREGISTER},
    {"cuMemAllocAsync", WIRE_CLASS_ALLOC_ASYNC},
    {"cuMemAllocFromPoolAsync", WIRE_CLASS_ALLOC_ASYNC},
    {"cuMemAlloc*", WIRE_CLASS_ALLOC},
    {"cuMemCreate", WIRE_CLASS_ALLOC},
    {"cuArrayCreate", WIRE_CLASS_ALLOC},
    {"cuArray3DCreate", WIRE_CLASS_ALLOC},
    {"cuMemFreeHost", WIRE_CLASS_FREE_HOST},
    {"cuMemFreeAsync", WIRE_CLASS_FREE_ASYNC},
    {"cuMemFree*", WIRE_CLASS_FREE},
    {"cuMemRelease", WIRE_CLASS_FREE},
    {"cuArrayDestroy", WIRE_CLASS_FREE},
    {"cuStreamWaitEvent", WIRE_CLASS_STREAM_WAIT},
    {"cuCtxSynchronize", WIRE_CLASS_SYNC},
    {"cuStreamSynchronize", WIRE_CLASS_SYNC},
    {"cuEventSynchronize", WIRE_CLASS_SYNC},
    {"cuModuleLoad*", WIRE_CLASS_BUILD},
    {"cuLibraryLoad*", WIRE_CLASS_BUILD},
    {"cuLinkAdd*", WIRE_CLASS_BUILD},
    {"cuLinkComplete", WIRE_CLASS_BUILD},
    {"cuGraphInstantiate*", WIRE_CLASS_GRAPH_MAKE},
    {"cuStreamCreate*", WIRE_CLASS_CREATE},
    {"cuEventCreate", WIRE_CLASS_CREATE},
    {"cuCtxCreate", WIRE_CLASS_CREATE},
    {"cuStreamQuery", WIRE_CLASS_QUERY},
    {"cuEventQuery", WIRE_CLASS_QUERY},

    {"clEnqueueNDRangeKernel", WIRE_CLASS_LAUNCH},
    {"clEnqueueTask", WIRE_CLASS_LAUNCH},
    {"clEnqueueNativeKernel", WIRE_CLASS_LAUNCH},
    {"clEnqueueRead*", WIRE_CLASS_TRANSFER},
    {"clEnqueueWrite*", WIRE_CLASS_TRANSFER},
    {"clEnqueueCopy*", WIRE_CLASS_TRANSFER},
    {"clEnqueueMap*", WIRE_CLASS_TRANSFER},
    {"clEnqueueUnmap*", WIRE_CLASS_TRANSFER},
    {"clEnqueueMigrateMemObjects", WIRE_CLASS_TRANSFER},
    {"clEnqueueFill*", WIRE_CLASS_MEMSET},
    {"clEnqueueSVMMemFill", WIRE_CLASS_MEMSET},
    {"clEnqueueSVMFree", WIRE_CLASS_FREE_ASYNC},
    {"clEnqueueSVM*", WIRE_CLASS_TRANSFER}, /* copy, map, unmap, migrate */
    {"clFinish", WIRE_CLASS_SYNC},
    {"clWaitForEvents", WIRE_CLASS_SYNC},
    {"clGetEventInfo", WIRE_CLASS_QUERY},
    {"clCreateSubBuffer", WIRE_CLASS_SUBALLOC},
    {"clCreateBuffer*", WIRE_CLASS_ALLOC},
    {"clCreateImage*", WIRE_CLASS_ALLOC},
    {"clCreatePipe", WIRE_CLASS_ALLOC},
    {"clSVMAlloc", WIRE_CLASS_ALLOC},
    {"clReleaseMemObject", WIRE_CLASS_FREE},
    {"clSVMFree", WIRE_CLASS_FREE},
    {"clBuildProgram", WIRE_CLASS_BUILD},
    {"clCompileProgram", WIRE_CLASS_BUILD},
    {"clLinkProgram", WIRE_CLASS_BUILD},
    {"clCreateProgramWith*", WIRE_CLASS_BUILD},
    {"clCreateCommandQueue*", WIRE_CLASS_CREATE},
    {"clCreateContext*", WIRE_CLASS_CREATE},
    {"clCreateKernel*", WIRE_CLASS_CREATE},
};

static size_t cut_name_suffix(const char *name, size_t length, const char *suffix)
{
    size_t bytes = strlen(suffix);
    return length > bytes && memcmp(name + length - bytes, suffix, bytes) == 0 ? length - bytes
                                                                               : length;
}

static size_t cut_name_version(const char *name, size_t length)
{
    size_t at = length;
    while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
        at--;
    return at < length && at > 2 && name[at - 1] == 'v' && name[at - 2] == '_' ? at - 2 : length;
}

/* Without what names a version or a variant of the function: cuMemcpyHtoD_v2_ptds,
 * cudaMemcpy_ptds_v7000. */
static size_t length_of_plain_name(const char *name)
{
    size_t length = cut_name_version(name, strlen(name));
    length = cut_name_suffix(name, length, "_ptsz");
    length = cut_name_suffix(name, length, "_ptds");
    return cut_name_version(name, length);
}

/* A function of HIP does what that of CUDA does that is named alike: hipLaunchKernel,
 * hipModuleLaunchKernel. */
static enum wire_class class_of_hip(const char *name)
{
    static const char *const prefixes[] = {"cuda", "cu"};
    enum wire_class found = WIRE_CLASS_OTHER;
    char other[128];
    if (!strncmp(name, "Module", 6) && !strncmp(name + 6, "Launch", 6))
        name += 6;
    name += strncmp(name, "Ext", 3) ? 0 : 3;
    for (int i = 0; i < 2 && found == WIRE_CLASS_OTHER && strlen(name) + 5 < sizeof other; i++) {
        snprintf(other, sizeof other, "%s%s", prefixes[i], name);
        found = wire_call_class(other);
    }
    return found;
}

enum wire_class wire_call_class(const char *name)
{
    size_t length = length_of_plain_name(name);
    if (!strncmp(name, "hip", 3) && name[3] >= 'A' && name[3] <= 'Z')
        return class_of_hip(name + 3);
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        const char *pattern = patterns[i].pattern;
        size_t bytes = strlen(pattern);
        bool begins = pattern[bytes - 1] == '*';
        bytes -= begins;
        if ((begins ? length >= bytes : length == bytes) && !memcmp(pattern, name, bytes))
            return patterns[i].klass;
    }
    return WIRE_CLASS_OTHER;
}

bool wire_call_is_asynchronous(const char *name)
{
    return strstr(name, "Async") || strstr(name, "Batch");
}
