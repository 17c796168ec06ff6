/* must.h: CUDA programs of bench/ end when a call fails. */
#ifndef PERFKIT_BENCH_MUST_H
#define PERFKIT_BENCH_MUST_H

#include <cstdio>
#include <cstdlib>

static void must(cudaError_t result, const char *what)
{
    if (result == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
    exit(1);
}
#define MUST(call) must(call, #call)

#endif
