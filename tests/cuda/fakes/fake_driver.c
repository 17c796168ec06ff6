/* The part of the fake libcupti that turns handles of the driver into CUPTI's numbers. Handles of
 * graphs and nodes point to a struct fake_handle; those of streams and contexts are whatever the
 * callback in progress says. */
#include <time.h>

#include "tests/cuda/fakes/internal.h"

static __thread const struct fake_handle *the_stream, *the_context;

void fake_present(const struct fake_handle *stream, const struct fake_handle *context)
{
    the_stream = stream;
    the_context = context;
}

static uint32_t number_at(const void *handle)
{
    return (uint32_t)((const struct fake_handle *)handle)->number;
}

EXPORT CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t *id)
{
    *id = number_at(graph);
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t *id)
{
    *id = ((const struct fake_handle *)(const void *)node)->number;
    return CUPTI_SUCCESS;
}

static CUptiResult context_number(CUcontext context, uint32_t *id)
{
    if (!the_context || the_context->handle != (uintptr_t)context)
        return CUPTI_ERROR_INVALID_CONTEXT;
    *id = (uint32_t)the_context->number;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetContextId(CUcontext context, uint32_t *id)
{
    return context_number(context, id);
}

EXPORT CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t *id)
{
    uint32_t number;
    *id = (uint32_t)fake_knob("device", 0); /* one device */
    return context_number(context, &number);
}

static CUptiResult stream_number(CUcontext context, CUstream stream, uint32_t *id)
{
    uint32_t number;
    if (context_number(context, &number) != CUPTI_SUCCESS)
        return CUPTI_ERROR_INVALID_CONTEXT;
    if (!the_stream || the_stream->handle != (uintptr_t)stream)
        return CUPTI_ERROR_INVALID_STREAM;
    *id = (uint32_t)the_stream->number;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t *id)
{
    return stream_number(context, stream, id);
}

EXPORT CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t per_thread,
                                      uint32_t *id)
{
    (void)per_thread;
    return stream_number(context, stream, id);
}

EXPORT CUptiResult cuptiGetTimestamp(uint64_t *now)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    *now = fake_record_clock((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec);
    return CUPTI_SUCCESS;
}

#ifndef FAKE_CUPTI_OLD
EXPORT CUptiResult cuptiGetGraphExecId(CUgraphExec graph, uint32_t *id)
{
    *id = number_at(graph);
    return CUPTI_SUCCESS;
}
#endif
