/* What the host waited for, or lost time to: synchronisations, events, CUPTI's and the driver's own
 * overhead, compilation of device code. CUPTI's records to wire records. */
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/parts.h"

#define MAX_PATH_BYTES 4096u

void cuda_sync_record(const struct record_sync *record)
{
    uint64_t correlation = cuda_correlation(record->correlation);
    if (!cuda_calls_recorded(correlation, record->start))
        return;
    bool ordered = record->end >= record->start;
    struct wire_sync out = {
        .head = {sizeof out, WIRE_SYNC, 0, 0},
        .correlation = correlation,
        .start = ordered ? record->start : 0,
        .end = ordered ? record->end : 0,
        .event = record->event == RECORD_NONE ? 0 : record->event,
        .kind = record->type <= WIRE_SYNC_CONTEXT ? record->type : WIRE_SYNC_UNKNOWN,
        .recorded = cuda_cupti_version() >= RECORD_SINCE_RECORDED ? record->recorded : 0,
    };
    if (record->stream != RECORD_NONE && record->context != RECORD_NONE)
        out.head.aux = cuda_stream(record->context, record->stream, CUDA_NO_DEVICE);
    if (!ordered)
        collector_count(WIRE_COUNT_TIME_MISSING, 1);
    collector_emit(&out);
}

void cuda_event_record(const struct record_event *record)
{
    uint64_t correlation = cuda_correlation(record->correlation);
    if (!cuda_calls_recorded(correlation, 0))
        return;
    bool newer = cuda_cupti_version() >= RECORD_SINCE_RECORDED;
    struct wire_event out = {
        .head = {sizeof out, WIRE_EVENT, WIRE_SOURCE_CUDA,
                 cuda_stream(record->context, record->stream,
                             newer ? record->device : CUDA_NO_DEVICE)},
        .correlation = correlation,
        .event = record->event,
        .recorded = newer ? record->recorded : 0,
        .time = newer ? record->time : 0,
    };
    collector_emit(&out);
}

static uint32_t overhead_kind(uint32_t kind)
{
    uint32_t upper = kind >> 16;
    if (kind == 1)
        return WIRE_OVERHEAD_COMPILER;
    return upper >= 1 && upper <= 8 ? WIRE_OVERHEAD_COMPILER + upper : WIRE_OVERHEAD_UNKNOWN;
}

/* overheadData is the client's to free, and is left: a few bytes, against the risk of the wrong
 * allocator. */
void cuda_overhead_record(const struct record_overhead *record)
{
    uint64_t correlation = cuda_cupti_version() >= RECORD_SINCE_OVERHEAD_CALL
                               ? cuda_correlation(record->correlation)
                               : 0;
    if ((record->start == 0 && record->end == 0) ||
        !cuda_calls_recorded(correlation, record->start))
        return;
    struct wire_overhead out = {
        .head = {sizeof out, WIRE_OVERHEAD, WIRE_SOURCE_CUDA, 0},
        .correlation = correlation,
        .start = record->start,
        .end = record->end < record->start ? record->start : record->end,
        .kind = overhead_kind(record->overhead),
    };
    if (record->object_kind == RECORD_OBJECT_THREAD)
        out.head.aux = record->object[1];
    else if (record->object_kind == RECORD_OBJECT_STREAM && record->object[1] != RECORD_NONE &&
             record->object[2] != RECORD_NONE)
        out.stream = cuda_stream(record->object[1], record->object[2], record->object[0]);
    collector_emit(&out);
}

void cuda_jit_record(const struct record_jit *record)
{
    uint64_t correlation = cuda_correlation(record->correlation);
    if (!cuda_calls_recorded(correlation, record->start))
        return;
    struct wire_jit out = {
        .head = {sizeof out, WIRE_JIT, WIRE_SOURCE_CUDA,
                 cuda_cupti_version() >= RECORD_SINCE_JIT_THREAD ? record->thread : 0},
        .correlation = correlation,
        .start = record->start,
        .end = record->end < record->start ? record->start : record->end,
        .cache_bytes = record->cache_bytes,
        .device = cuda_device(record->device),
        .path = record->path ? collector_string(record->path, strnlen(record->path, MAX_PATH_BYTES))
                             : 0,
        .input = record->input <= WIRE_JIT_NVVM ? record->input : WIRE_JIT_UNKNOWN,
        .operation =
            record->operation <= WIRE_JIT_COMPILE ? record->operation : WIRE_JIT_OPERATION_UNKNOWN,
    };
    collector_emit(&out);
}
