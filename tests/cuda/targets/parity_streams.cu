/* cuda_parity: streams, events, threads, and the names that programs give them. */
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>

#include "parity.h"

extern "C" __global__ void parity_stream(float *data)
{
    data[0] += 1.0f;
}

extern "C" __global__ void parity_thread(float *data)
{
    atomicAdd(data, 1.0f);
}

void mode_events()
{
    cudaStream_t one, two;
    DO(cudaStreamCreateWithFlags, &one, cudaStreamNonBlocking);
    DO(cudaStreamCreateWithFlags, &two, cudaStreamNonBlocking);
    cudaEvent_t event, other;
    DO(cudaEventCreate, &event);
    DO(cudaEventCreateWithFlags, &other, cudaEventDisableTiming);
    float *data = (float *)device_memory(4096);
    for (int i = 0; i < 10; i++) {
        launch_plain(data, one);
        DO(cudaEventRecord, event, one);
        WAIT(cudaStreamWaitEvent, 2, two, event, 0);
        launch_plain(data, two);
    }
    launched("parity_plain", 1, 32, 0, 20);
    done.n("events", "all", 10);
    DO(cudaEventRecord, other, two);
    done.n("events", "all");
    WAIT(cudaEventSynchronize, 1, other);
    WAIT(cudaEventSynchronize, 1, event);
    WAIT(cudaStreamSynchronize, 3, one);
    DO(cudaEventDestroy, event);
    DO(cudaEventDestroy, other);
    free_device(data);
    DO(cudaStreamDestroy, one);
    DO(cudaStreamDestroy, two);
}

void mode_streams()
{
    int least = 0, greatest = 0;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    float *data = (float *)device_memory(4096);
    struct {
        const char *name;
        unsigned flags;
        int priority;
    } wanted[] = {{"parity low", cudaStreamDefault, least},
                  {"parity high", cudaStreamNonBlocking, greatest},
                  {"parity middle", cudaStreamNonBlocking, (least + greatest) / 2}};
    for (auto &w : wanted) {
        cudaStream_t stream;
        DO(cudaStreamCreateWithPriority, &stream, w.flags, w.priority);
        nvtxNameCudaStreamA(stream, w.name);
        parity_stream<<<1, 1, 0, stream>>>(data);
        WAIT(cudaStreamSynchronize, 3, stream);
        DO(cudaStreamDestroy, stream);
        done.has("streams", format("%s priority %d non_blocking %d", w.name, w.priority,
                                   w.flags == cudaStreamNonBlocking));
    }
    parity_stream<<<1, 1>>>(data); /* the default stream */
    launched("parity_stream", 1, 1, 0, 4);
    WAIT_DEVICE_NOW();
    done.n("launching_streams", "all", 4);
    free_device(data);
}

static void *named_thread(void *argument)
{
    int number = *(int *)argument;
    std::string name = format("parity-%d", number);
    if (number % 2 == 0)
        nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), name.c_str());
    else
        pthread_setname_np(pthread_self(), name.c_str());
    float *data;
    CHECK(cudaMalloc(&data, 4096));
    for (int i = 0; i < 100; i++) {
        nvtxRangePushA("parity launch");
        parity_thread<<<1, 32>>>(data);
        nvtxRangePop();
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(data));
    usleep(600000); /* a name given to the kernel alone is read from /proc while the thread lives */
    return NULL;
}

void mode_threads()
{
    enum { THREADS = 4 };
    DO(cudaFree, NULL);
    pthread_t thread[THREADS];
    int number[THREADS];
    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        pthread_create(&thread[i], NULL, named_thread, &number[i]);
        done.has("threads", format("parity-%d", i));
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    launched("parity_thread", 1, 32, 0, THREADS * 100);
    done.n("launching_threads", "all", THREADS);
    done.n("api", "cudaDeviceSynchronize", THREADS);
    done.n("waits", "cudaDeviceSynchronize 4", THREADS);
    done.n("api", "cudaMalloc", THREADS);
    done.n("api", "cudaFree", THREADS);
    done.n("ranges", "parity launch", THREADS * 100);
    for (int i = 0; i < THREADS; i++) {
        allocated(DEVICE, 4096);
        freed();
    }
}

void mode_nvtx()
{
    nvtxDomainHandle_t domain = nvtxDomainCreateA("parity domain");
    nvtxStringHandle_t registered = nvtxDomainRegisterStringA(domain, "parity registered");
    for (int i = 0; i < 5; i++) {
        nvtxRangePushA("parity outer");
        nvtxRangePushW(L"parity inner");
        nvtxMarkA("parity mark");
        nvtxRangePop();
        nvtxRangePop();
        nvtxEventAttributes_t attributes = {};
        attributes.version = NVTX_VERSION;
        attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
        attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
        attributes.message.registered = registered;
        attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
        attributes.payload.llValue = i;
        attributes.category = 7;
        nvtxDomainRangePushEx(domain, &attributes);
        nvtxDomainRangePop(domain);
        nvtxRangeEnd(nvtxRangeStartA("parity started"));
    }
    for (const char *text : {"parity outer", "parity inner", "parity registered", "parity started"})
        done.n("ranges", text, 5);
    done.n("marks", "parity mark", 5);
}
