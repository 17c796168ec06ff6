/* What host calls are for, by name: calls of the CUDA runtime, the CUDA driver and OpenCL that do
 * the same are one class, so that a rule is written once. */
#include <string.h>

#include "libprof/analysis/rules/facts.h"

/* A name, or with a final '*' a beginning; the first that fits counts. */
static const struct {
    const char *pattern;
    enum prof_call_class class_;
} classes[] = {
    {"cudaStreamWaitEvent", PROF_CALL_OTHER}, /* the stream waits, the host does not */
    {"cuStreamWaitEvent", PROF_CALL_OTHER},
    {"cudaDeviceSynchronize", PROF_CALL_SYNC},
    {"cudaStreamSynchronize", PROF_CALL_SYNC},
    {"cudaEventSynchronize", PROF_CALL_SYNC},
    {"cudaThreadSynchronize", PROF_CALL_SYNC},
    {"cuCtxSynchronize", PROF_CALL_SYNC},
    {"cuStreamSynchronize", PROF_CALL_SYNC},
    {"cuEventSynchronize", PROF_CALL_SYNC},
    {"clFinish", PROF_CALL_SYNC},
    {"clWaitForEvents", PROF_CALL_SYNC},

    {"cudaMallocHost", PROF_CALL_ALLOC_HOST},
    {"cudaHostAlloc", PROF_CALL_ALLOC_HOST},
    {"cudaHostRegister", PROF_CALL_ALLOC_HOST},
    {"cuMemHostAlloc", PROF_CALL_ALLOC_HOST},
    {"cuMemAllocHost*", PROF_CALL_ALLOC_HOST},
    {"cuMemHostRegister*", PROF_CALL_ALLOC_HOST},
    {"cudaFreeHost", PROF_CALL_FREE_HOST},
    {"cudaHostUnregister", PROF_CALL_FREE_HOST},
    {"cuMemFreeHost", PROF_CALL_FREE_HOST},
    {"cuMemHostUnregister", PROF_CALL_FREE_HOST},
    {"cudaMallocAsync", PROF_CALL_ALLOC_ASYNC},
    {"cudaMallocFromPoolAsync", PROF_CALL_ALLOC_ASYNC},
    {"cudaFreeAsync", PROF_CALL_ALLOC_ASYNC},
    {"cuMemAllocAsync*", PROF_CALL_ALLOC_ASYNC},
    {"cuMemAllocFromPoolAsync*", PROF_CALL_ALLOC_ASYNC},
    {"cuMemFreeAsync*", PROF_CALL_ALLOC_ASYNC},
    {"cudaMalloc*", PROF_CALL_ALLOC},
    {"cuMemAlloc*", PROF_CALL_ALLOC},
    {"cuMemCreate", PROF_CALL_ALLOC},
    {"cuArrayCreate*", PROF_CALL_ALLOC},
    {"cuArray3DCreate*", PROF_CALL_ALLOC},
    {"clCreateBuffer*", PROF_CALL_ALLOC},
    {"clCreateImage*", PROF_CALL_ALLOC},
    {"clCreatePipe", PROF_CALL_ALLOC},
    {"clSVMAlloc", PROF_CALL_ALLOC},
    {"cudaFree*", PROF_CALL_FREE},
    {"cuMemFree*", PROF_CALL_FREE},
    {"cuMemRelease", PROF_CALL_FREE},
    {"cuArrayDestroy", PROF_CALL_FREE},
    {"clReleaseMemObject", PROF_CALL_FREE},
    {"clSVMFree", PROF_CALL_FREE},

    {"cudaLibraryLoad*", PROF_CALL_BUILD},
    {"cuModuleLoad*", PROF_CALL_BUILD},
    {"cuLibraryLoad*", PROF_CALL_BUILD},
    {"cuLinkComplete", PROF_CALL_BUILD},
    {"cuLinkAdd*", PROF_CALL_BUILD},
    {"clBuildProgram", PROF_CALL_BUILD},
    {"clCompileProgram", PROF_CALL_BUILD},
    {"clLinkProgram", PROF_CALL_BUILD},
    {"clCreateProgramWith*", PROF_CALL_BUILD},
    {"cudaGraphInstantiate*", PROF_CALL_GRAPH_MAKE},
    {"cuGraphInstantiate*", PROF_CALL_GRAPH_MAKE},
    {"cudaGraphLaunch*", PROF_CALL_GRAPH_LAUNCH},
    {"cuGraphLaunch*", PROF_CALL_GRAPH_LAUNCH},
    {"cudaStreamCreate*", PROF_CALL_CREATE},
    {"cudaEventCreate*", PROF_CALL_CREATE},
    {"cuStreamCreate*", PROF_CALL_CREATE},
    {"cuCtxCreate*", PROF_CALL_CREATE},
    {"clCreateCommandQueue*", PROF_CALL_CREATE},
    {"clCreateContext*", PROF_CALL_CREATE},
    {"clCreateKernel*", PROF_CALL_CREATE},
};

static bool name_matches(const char *pattern, const char *name)
{
    size_t length = strlen(pattern);
    return pattern[length - 1] == '*' ? !strncmp(pattern, name, length - 1)
                                      : !strcmp(pattern, name);
}

enum prof_call_class prof_call_classify(const char *name)
{
    for (size_t i = 0; name && i < sizeof classes / sizeof classes[0]; i++) {
        if (name_matches(classes[i].pattern, name))
            return classes[i].class_;
    }
    return PROF_CALL_OTHER;
}
