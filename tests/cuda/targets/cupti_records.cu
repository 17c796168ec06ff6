/* What this machine's CUPTI makes of single calls, printed record by record: the device check behind
 * the choices in collectors/cuda (which callback id a launch has, whether a driver call inside a
 * runtime call has a record and which correlation id, whether a copy of 0 bytes has one).
 *
 *     cupti_records            (without perfkit) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>

__global__ void probe_kernel(int *data)
{
    data[0]++;
}

static uint64_t monotonic()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void request(uint8_t **buffer, size_t *size, size_t *most)
{
    *size = 1 << 20;
    *most = 0;
    *buffer = (uint8_t *)aligned_alloc(8, *size);
    memset(*buffer, 0, *size);
}

static void print_call(const CUpti_ActivityAPI *call)
{
    const char *name = "?";
    bool runtime = call->kind == CUPTI_ACTIVITY_KIND_RUNTIME;
    cuptiGetCallbackName(runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API,
                         call->cbid, &name);
    printf("  %-8s id %-6u %llu..%llu cbid %u %s = %u\n", runtime ? "runtime" : "driver",
           call->correlationId, (unsigned long long)call->start, (unsigned long long)call->end,
           call->cbid, name, call->returnValue);
}

static void print(const CUpti_Activity *record)
{
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        print_call((const CUpti_ActivityAPI *)record);
        break;
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const CUpti_ActivityKernel10 *k = (const CUpti_ActivityKernel10 *)record;
        printf("  kernel   id %-6u %llu..%llu stream %u %s graph %u node %llu\n", k->correlationId,
               (unsigned long long)k->start, (unsigned long long)k->end, k->streamId, k->name,
               k->graphId, (unsigned long long)k->graphNodeId);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const CUpti_ActivityMemcpy6 *m = (const CUpti_ActivityMemcpy6 *)record;
        printf("  copy     id %-6u kind %u %u->%u bytes %llu copies %llu\n", m->correlationId,
               m->copyKind, m->srcKind, m->dstKind, (unsigned long long)m->bytes,
               (unsigned long long)m->copyCount);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
        const CUpti_ActivityMemset4 *m = (const CUpti_ActivityMemset4 *)record;
        printf("  fill     id %-6u bytes %llu\n", m->correlationId, (unsigned long long)m->bytes);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMORY2: {
        const CUpti_ActivityMemory4 *m = (const CUpti_ActivityMemory4 *)record;
        printf("  memory   id %-6u operation %d kind %d bytes %llu pool %d\n", m->correlationId,
               (int)m->memoryOperationType, (int)m->memoryKind, (unsigned long long)m->bytes,
               (int)m->memoryPoolConfig.memoryPoolType);
        break;
    }
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
        const CUpti_ActivitySynchronization2 *s = (const CUpti_ActivitySynchronization2 *)record;
        printf("  wait     id %-6u type %d stream %d event %d\n", s->correlationId, (int)s->type,
               (int)s->streamId, (int)s->cudaEventId);
        break;
    }
    default:
        printf("  kind %d\n", (int)record->kind);
    }
}

static void complete(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid)
{
    CUpti_Activity *record = NULL;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        print(record);
    free(buffer);
}

static void step(const char *what)
{
    cuptiActivityFlushAll(1);
    printf("%s\n", what);
}

int main()
{
    uint32_t version = 0;
    cuptiGetVersion(&version);
    printf("CUPTI %u\n", version);
    cuptiActivityRegisterTimestampCallback(monotonic);
    cuptiActivityRegisterCallbacks(request, complete);
    const CUpti_ActivityKind kinds[] = {
        CUPTI_ACTIVITY_KIND_DEVICE,  CUPTI_ACTIVITY_KIND_CONTEXT, CUPTI_ACTIVITY_KIND_STREAM,
        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMORY2,
        CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_RUNTIME,
        CUPTI_ACTIVITY_KIND_DRIVER};
    cuptiActivityEnableAllSyncRecords(0);
    for (CUpti_ActivityKind kind : kinds)
        printf("enable kind %d: %d\n", (int)kind, (int)cuptiActivityEnable(kind));

    int *data, *host;
    cudaStream_t stream;
    step("cudaFree(NULL), the first call");
    cudaFree(NULL);
    step("cudaMalloc");
    cudaMalloc(&data, 1 << 20);
    step("cudaMalloc of 0 bytes");
    void *nothing;
    cudaMalloc(&nothing, 0);
    step("cudaMallocHost");
    cudaMallocHost(&host, 1 << 20);
    step("cudaStreamCreate");
    cudaStreamCreate(&stream);
    step("first launch");
    probe_kernel<<<1, 1>>>(data);
    cudaDeviceSynchronize();
    step("second launch");
    probe_kernel<<<1, 1>>>(data);
    cudaDeviceSynchronize();
    step("cudaMemcpy, pinned to device");
    cudaMemcpy(data, host, 4096, cudaMemcpyHostToDevice);
    step("cudaMemcpy of 0 bytes");
    cudaMemcpy(data, host, 0, cudaMemcpyHostToDevice);
    step("cudaMemcpy, host to host");
    cudaMemcpy(host, host + 1024, 1024, cudaMemcpyHostToHost);
    step("cudaMemcpy, pageable, 16 MB");
    void *big = calloc(1, 16 << 20), *device_big;
    cudaMalloc(&device_big, 16 << 20);
    cudaMemcpy(device_big, big, 16 << 20, cudaMemcpyHostToDevice);
    step("cudaMemset of 0 bytes");
    cudaMemset(data, 0, 0);
    step("cudaMemset");
    cudaMemset(data, 0, 64);
    step("cudaMemset2D");
    cudaMemset2D(data, 512, 0, 100, 10);
    step("cudaMallocAsync, cudaFreeAsync");
    cudaMallocAsync(&nothing, 256, stream);
    cudaFreeAsync(nothing, stream);
    cudaStreamSynchronize(stream);
    step("event record, stream wait, event synchronize");
    cudaEvent_t event;
    cudaEventCreate(&event);
    cudaEventRecord(event, stream);
    cudaStreamWaitEvent(0, event, 0);
    cudaEventSynchronize(event);
    step("capture, instantiate, launch");
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    probe_kernel<<<1, 1, 0, stream>>>(data);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphLaunch(exec, stream);
    cudaStreamSynchronize(stream);
    step("end");
    return 0;
}
