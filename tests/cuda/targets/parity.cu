/* Does what a profiler of CUDA programs is expected to record, one thing a mode, and says exactly
 * what it did, as JSON: device_check.py compares a capture of it with that.
 *
 *     cuda_parity list
 *     cuda_parity MODE...        (all = every mode; what the machine cannot do is told as skipped)
 *
 * Launches by the device itself are left out: they need relocatable device code and a device link.
 *
 * Tables that it prints: kernels (by name), launches (name, grid, block, cluster, dynamic shared
 * memory, c = cooperative), registers, shared_static, local_bytes (by kernel), transfers (by kind:
 * count, bytes), copies_between (source kind > target kind), memsets, allocations (by kind), freed,
 * api (calls by name), waits (function and kind), events, streams, ranges, marks, threads, pools,
 * graph_launches, graph_kernels, captured, green, migrations, jit, skipped. */
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>

#include "did.h"

static did done;

enum {
    COPY_HTOD = 1,
    COPY_DTOH = 2,
    COPY_HTOA,
    COPY_ATOH,
    COPY_ATOA,
    COPY_ATOD,
    COPY_DTOA,
    COPY_DTOD,
    COPY_HTOH,
    COPY_PTOP
};
enum { PAGEABLE = 1, PINNED, DEVICE, ARRAY, MANAGED, POOL = 9 };

/* Call a runtime function and count the call under its name. */
#define DO(function, ...)                                                                          \
    do {                                                                                           \
        CHECK(function(__VA_ARGS__));                                                              \
        done.n("api", #function);                                                                  \
    } while (0)
#define DO_DRIVER(function, ...)                                                                   \
    do {                                                                                           \
        DRIVER_CHECK(DRIVER(function)(__VA_ARGS__));                                               \
        done.n("api", #function);                                                                  \
    } while (0)
#define WAIT(function, kind, ...)                                                                  \
    do {                                                                                           \
        DO(function, __VA_ARGS__);                                                                 \
        done.n("waits", #function " " #kind);                                                      \
    } while (0)
#define WAIT_EVENT 1
#define WAIT_STREAM_FOR_EVENT 2
#define WAIT_STREAM 3
#define WAIT_DEVICE 4
#define WAIT_DEVICE_NOW()                                                                          \
    do {                                                                                           \
        CHECK(cudaDeviceSynchronize());                                                            \
        done.n("api", "cudaDeviceSynchronize");                                                    \
        done.n("waits", "cudaDeviceSynchronize 4");                                                \
    } while (0)

static std::string kind_text(int kind)
{
    return format("%d", kind);
}

static void allocated(int kind, size_t bytes)
{
    done.amount_of("allocations", kind_text(kind), 1, (long long)bytes);
}

static void freed(int count = 1)
{
    done.n("freed", "all", count);
}

static void copied(int kind, int from, int to, size_t bytes, int times = 1)
{
    done.amount_of("transfers", kind_text(kind), times, (long long)bytes * times);
    done.n("copies_between", format("%d>%d", from, to), times);
}

static void filled(size_t bytes, int times = 1)
{
    done.amount_of("memsets", "all", times, (long long)bytes * times);
}

static char *device_memory(size_t bytes)
{
    void *p;
    DO(cudaMalloc, &p, bytes);
    allocated(DEVICE, bytes);
    return (char *)p;
}

static char *pinned_memory(size_t bytes)
{
    void *p;
    CHECK(cudaMallocHost(&p, bytes));
    allocated(PINNED, bytes);
    memset(p, 1, bytes);
    return (char *)p;
}

static void free_device(void *p)
{
    DO(cudaFree, p);
    freed();
}

static void free_pinned(void *p)
{
    DO(cudaFreeHost, p);
    freed();
}

/* ---- kernels --------------------------------------------------------------------------------- */

extern "C" __global__ void parity_plain(float *data)
{
    data[threadIdx.x] += 1.0f;
}

extern "C" __global__ void parity_shared(float *data, int n)
{
    __shared__ float fixed[64];
    extern __shared__ float more[];
    fixed[threadIdx.x % 64] = data[threadIdx.x];
    more[threadIdx.x] = (float)n;
    __syncthreads();
    data[threadIdx.x] = fixed[(threadIdx.x + 1) % 64] + more[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void parity_local(float *data, int n)
{
    float many[96]; /* indexed by what is known at run time: local memory */
    for (int i = 0; i < 96; i++)
        many[i] = data[i] * (float)n;
    for (int i = 0; i < n; i++)
        many[(i * 7 + n) % 96] += data[i];
    data[threadIdx.x] = many[n % 96];
}

template <typename T, int N> __global__ void parity_template(T *data)
{
    data[threadIdx.x] = (T)(data[threadIdx.x] * N);
}

extern "C" __global__ void parity_grid(float *data)
{
    if (threadIdx.x == 0)
        atomicAdd(data, 1.0f);
}

extern "C" __global__ void parity_cluster(float *data)
{
    if (threadIdx.x == 0)
        atomicAdd(data, 1.0f);
}

extern "C" __global__ void parity_node(float *data)
{
    data[threadIdx.x] *= 2.0f;
}

extern "C" __global__ void parity_stream(float *data)
{
    data[0] += 1.0f;
}

extern "C" __global__ void parity_thread(float *data)
{
    atomicAdd(data, 1.0f);
}

static void launched(const char *name, dim3 grid, dim3 block, size_t dynamic, int times,
                     unsigned cluster = 0, bool cooperative = false)
{
    done.n("kernels", name, times);
    done.n("launches",
           format("%s grid %u,%u,%u block %u,%u,%u cluster %u dynamic %zu%s", name, grid.x, grid.y,
                  grid.z, block.x, block.y, block.z, cluster, dynamic, cooperative ? " c" : ""),
           times);
}

static void described(const char *name, const void *kernel)
{
    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, kernel));
    done.n("registers", name, attributes.numRegs);
    done.n("shared_static", name, (long long)attributes.sharedSizeBytes);
    done.n("local_bytes", name, (long long)attributes.localSizeBytes);
}

static void kernels()
{
    float *data = (float *)device_memory(65536);
    filled(65536);
    DO(cudaMemset, data, 0, 65536);
    for (unsigned i = 1; i <= 20; i++) {
        parity_plain<<<i, 32>>>(data);
        launched("parity_plain", i, 32, 0, 1);
    }
    for (int i = 0; i < 50; i++)
        parity_shared<<<dim3(4, 3, 2), dim3(16, 4), 1024>>>(data, i);
    launched("parity_shared", dim3(4, 3, 2), dim3(16, 4), 1024, 50);
    for (int i = 0; i < 10; i++)
        parity_local<<<2, 64>>>(data, 5);
    launched("parity_local", 2, 64, 0, 10);
    for (int i = 0; i < 7; i++)
        parity_template<float, 3><<<1, 128>>>(data);
    launched("void parity_template<float, 3>(float*)", 1, 128, 0, 7);
    for (int i = 0; i < 3; i++)
        parity_template<int, -1><<<1, 128>>>((int *)data);
    launched("void parity_template<int, -1>(int*)", 1, 128, 0, 3);
    CHECK(cudaGetLastError());
    WAIT_DEVICE_NOW();
    described("parity_plain", (const void *)parity_plain);
    described("parity_shared", (const void *)parity_shared);
    described("parity_local", (const void *)parity_local);
    free_device(data);
}

static void cooperative()
{
    int can = 0;
    CHECK(cudaDeviceGetAttribute(&can, cudaDevAttrCooperativeLaunch, 0));
    if (!can) {
        done.skip("cooperative", "the device has no cooperative launch");
        return;
    }
    float *data = (float *)device_memory(4096);
    void *arguments[] = {&data};
    for (int i = 0; i < 6; i++)
        DO(cudaLaunchCooperativeKernel, (const void *)parity_grid, dim3(8), dim3(64), arguments, 0,
           0);
    launched("parity_grid", 8, 64, 0, 6, 0, true);
    WAIT_DEVICE_NOW();
    free_device(data);
}

static void cluster()
{
    int can = 0;
    CHECK(cudaDeviceGetAttribute(&can, cudaDevAttrClusterLaunch, 0));
    if (!can) {
        done.skip("cluster", "the device has no thread block clusters");
        return;
    }
    float *data = (float *)device_memory(4096);
    void *arguments[] = {&data};
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 4;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(16);
    config.blockDim = dim3(64);
    config.attrs = &attribute;
    config.numAttrs = 1;
    for (int i = 0; i < 5; i++)
        DO(cudaLaunchKernelExC, &config, (const void *)parity_cluster, arguments);
    launched("parity_cluster", 16, 64, 0, 5, 4);
    WAIT_DEVICE_NOW();
    free_device(data);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void memory()
{
    void *all[10];
    for (int i = 0; i < 10; i++)
        all[i] = device_memory(1000 * (size_t)(i + 1));
    for (int i = 0; i < 10; i++)
        free_device(all[i]);
    size_t pitch;
    void *pitched;
    DO(cudaMallocPitch, &pitched, &pitch, 1000, 16);
    allocated(DEVICE, pitch * 16);
    free_device(pitched);
    void *pinned = pinned_memory(123456);
    free_pinned(pinned);
    void *mapped;
    CHECK(cudaHostAlloc(&mapped, 65536, cudaHostAllocMapped));
    allocated(PINNED, 65536);
    free_pinned(mapped);
    DO(cudaFree, NULL); /* ends nothing */
    /* CUPTI reports registered memory as a pinned allocation, as long as it is registered. */
    void *own = aligned_alloc(4096, 1 << 20);
    DO(cudaHostRegister, own, 1 << 20, cudaHostRegisterDefault);
    allocated(PINNED, 1 << 20);
    char *device = device_memory(1 << 20);
    DO(cudaMemcpy, device, own, 1 << 20, cudaMemcpyHostToDevice);
    copied(COPY_HTOD, PINNED, DEVICE, 1 << 20);
    DO(cudaHostUnregister, own);
    freed();
    free_device(device);
    free(own);
}

static void pool()
{
    cudaStream_t stream;
    DO(cudaStreamCreate, &stream);
    void *p[4];
    for (int i = 0; i < 4; i++) {
        DO(cudaMallocAsync, &p[i], 1 << 20, stream);
        allocated(POOL, 1 << 20);
    }
    for (int i = 0; i < 4; i++) {
        DO(cudaFreeAsync, p[i], stream);
        freed();
    }
    WAIT(cudaStreamSynchronize, 3, stream);

    cudaMemPool_t own;
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = 0;
    DO(cudaMemPoolCreate, &own, &properties);
    done.n("pools", "1");
    unsigned long long keep = 64ull << 20;
    DO(cudaMemPoolSetAttribute, own, cudaMemPoolAttrReleaseThreshold, &keep);
    for (int i = 0; i < 3; i++) {
        DO(cudaMallocFromPoolAsync, &p[i], 2 << 20, own, stream);
        allocated(POOL, 2 << 20);
    }
    for (int i = 0; i < 3; i++) {
        DO(cudaFreeAsync, p[i], stream);
        freed();
    }
    WAIT(cudaStreamSynchronize, 3, stream);
    DO(cudaMemPoolTrimTo, own, 0);
    done.n("pools", "3");
    DO(cudaMemPoolDestroy, own);
    done.n("pools", "2");
    DO(cudaStreamDestroy, stream);
}

/* Managed memory, tiny: touched by the CPU, moved to the GPU, touched there, touched by the CPU. */
static void managed()
{
    int can = 0;
    CHECK(cudaDeviceGetAttribute(&can, cudaDevAttrConcurrentManagedAccess, 0));
    enum { BYTES = 2 << 20 };
    char *p;
    DO(cudaMallocManaged, (void **)&p, BYTES);
    allocated(MANAGED, BYTES);
    memset(p, 1, BYTES);
    if (can) {
#if CUDART_VERSION >= 13000
        cudaMemLocation here = {};
        here.type = cudaMemLocationTypeDevice;
        here.id = 0;
        DO(cudaMemPrefetchAsync, p, BYTES, here, 0, 0);
#else
        DO(cudaMemPrefetchAsync, p, BYTES, 0, 0);
#endif
        WAIT_DEVICE_NOW();
    }
    for (int i = 0; i < 3; i++)
        parity_plain<<<1, 32>>>((float *)p);
    launched("parity_plain", 1, 32, 0, 3);
    WAIT_DEVICE_NOW();
    long long sum = 0;
    for (int i = 0; i < BYTES; i += 4096)
        sum += p[i];
    if (sum == 0)
        exit(5);
    if (can) {
        done.amount_of("migrations", "1", 1, BYTES); /* at least */
        done.amount_of("migrations", "2", 1, 4096);
    } else {
        done.skip("managed migrations", "no concurrent managed access");
    }
    free_device(p);
}

static void vmm()
{
    DO(cudaFree, NULL);
    if (!DRIVER_HAS(cuMemCreate)) {
        done.skip("vmm", "the driver has no cuMemCreate");
        return;
    }
    CUmemAllocationProp property = {};
    property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    property.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    size_t unit;
    DRIVER_CHECK(
        DRIVER(cuMemGetAllocationGranularity)(&unit, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CUmemAccessDesc access = {};
    access.location = property.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    for (int i = 0; i < 3; i++) {
        CUdeviceptr at;
        CUmemGenericAllocationHandle handle;
        DRIVER_CHECK(DRIVER(cuMemAddressReserve)(&at, unit, 0, 0, 0));
        DO_DRIVER(cuMemCreate, &handle, unit, &property, 0);
        done.amount_of("virtual", "all", 1, (long long)unit);
        DRIVER_CHECK(DRIVER(cuMemMap)(at, unit, 0, handle, 0));
        DRIVER_CHECK(DRIVER(cuMemSetAccess)(at, unit, &access, 1));
        DO(cudaMemset, (void *)at, 0, unit);
        filled(unit);
        WAIT_DEVICE_NOW();
        DRIVER_CHECK(DRIVER(cuMemUnmap)(at, unit));
        DO_DRIVER(cuMemRelease, handle);
        DRIVER_CHECK(DRIVER(cuMemAddressFree)(at, unit));
    }
}

/* ---- copies and fills -------------------------------------------------------------------------
 */

static void copies()
{
    enum { BYTES = 1 << 20, SMALL = 4096 };
    cudaStream_t stream;
    DO(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
    char *a = device_memory(BYTES), *b = device_memory(BYTES), *pinned = pinned_memory(BYTES);
    char *pageable = (char *)calloc(1, BYTES), *other = (char *)calloc(1, BYTES);
    DO(cudaMemcpyAsync, a, pinned, BYTES, cudaMemcpyHostToDevice, stream);
    copied(COPY_HTOD, PINNED, DEVICE, BYTES);
    DO(cudaMemcpyAsync, pinned, a, BYTES / 2, cudaMemcpyDeviceToHost, stream);
    copied(COPY_DTOH, DEVICE, PINNED, BYTES / 2);
    DO(cudaMemcpyAsync, b, a, BYTES / 4, cudaMemcpyDeviceToDevice, stream);
    copied(COPY_DTOD, DEVICE, DEVICE, BYTES / 4);
    WAIT(cudaStreamSynchronize, 3, stream);
    DO(cudaMemcpy, a, pageable, SMALL, cudaMemcpyHostToDevice);
    copied(COPY_HTOD, PAGEABLE, DEVICE, SMALL);
    DO(cudaMemcpy, pageable, a, SMALL / 2, cudaMemcpyDeviceToHost);
    copied(COPY_DTOH, DEVICE, PAGEABLE, SMALL / 2);
    DO(cudaMemcpy, other, pageable, 1234, cudaMemcpyHostToHost);
    copied(COPY_HTOH, PAGEABLE, PAGEABLE, 1234);
    DO(cudaMemcpy, a, pinned, 777, cudaMemcpyDefault);
    copied(COPY_HTOD, PINNED, DEVICE, 777);
    /* rows of 1000 bytes */
    DO(cudaMemcpy2DAsync, a, 2048, pinned, 1024, 1000, 100, cudaMemcpyHostToDevice, stream);
    copied(COPY_HTOD, PINNED, DEVICE, 100000);
    DO(cudaMemcpy2DAsync, b, 2048, a, 2048, 1000, 50, cudaMemcpyDeviceToDevice, stream);
    copied(COPY_DTOD, DEVICE, DEVICE, 50000);
    cudaMemcpy3DParms box = {};
    box.srcPtr = make_cudaPitchedPtr(a, 512, 400, 16);
    box.dstPtr = make_cudaPitchedPtr(b, 1024, 400, 32);
    box.extent = make_cudaExtent(400, 10, 5);
    box.kind = cudaMemcpyDeviceToDevice;
    DO(cudaMemcpy3DAsync, &box, stream);
    copied(COPY_DTOD, DEVICE, DEVICE, 400 * 10 * 5);
    WAIT(cudaStreamSynchronize, 3, stream);
    free_device(a);
    free_device(b);
    free_pinned(pinned);
    DO(cudaStreamDestroy, stream);
    free(pageable);
    free(other);
}

static void arrays()
{
    enum { WIDTH = 256, HEIGHT = 64, BYTES = WIDTH * HEIGHT };
    cudaStream_t stream;
    DO(cudaStreamCreate, &stream);
    cudaChannelFormatDesc format_ = cudaCreateChannelDesc<unsigned char>();
    cudaArray_t one, two;
    DO(cudaMallocArray, &one, &format_, WIDTH, HEIGHT, 0);
    DO(cudaMallocArray, &two, &format_, WIDTH, HEIGHT, 0);
    done.n("arrays", "all", 2);
    char *pinned = pinned_memory(BYTES), *device = device_memory(BYTES);
    DO(cudaMemcpy2DToArrayAsync, one, 0, 0, pinned, WIDTH, WIDTH, HEIGHT, cudaMemcpyHostToDevice,
       stream);
    copied(COPY_HTOA, PINNED, ARRAY, BYTES);
    DO(cudaMemcpy2DFromArrayAsync, pinned, WIDTH, one, 0, 0, WIDTH, HEIGHT, cudaMemcpyDeviceToHost,
       stream);
    copied(COPY_ATOH, ARRAY, PINNED, BYTES);
    DO(cudaMemcpy2DToArrayAsync, two, 0, 0, device, WIDTH, WIDTH, HEIGHT, cudaMemcpyDeviceToDevice,
       stream);
    copied(COPY_DTOA, DEVICE, ARRAY, BYTES);
    DO(cudaMemcpy2DFromArrayAsync, device, WIDTH, two, 0, 0, WIDTH, HEIGHT,
       cudaMemcpyDeviceToDevice, stream);
    copied(COPY_ATOD, ARRAY, DEVICE, BYTES);
    WAIT(cudaStreamSynchronize, 3, stream);
    DO(cudaMemcpy2DArrayToArray, two, 0, 0, one, 0, 0, WIDTH, HEIGHT, cudaMemcpyDeviceToDevice);
    copied(COPY_ATOA, ARRAY, ARRAY, BYTES);
    WAIT_DEVICE_NOW();
    DO(cudaFreeArray, one);
    DO(cudaFreeArray, two);
    free_device(device);
    free_pinned(pinned);
    DO(cudaStreamDestroy, stream);
}

static void fills()
{
    enum { BYTES = 1 << 20 };
    cudaStream_t stream;
    DO(cudaStreamCreate, &stream);
    char *p = device_memory(BYTES);
    DO(cudaMemset, p, 1, 100001);
    filled(100001);
    DO(cudaMemsetAsync, p, 2, 4096, stream);
    filled(4096);
    DO(cudaMemset2D, p, 2048, 3, 1000, 100);
    filled(100000);
    DO(cudaMemset2DAsync, p, 2048, 4, 500, 10, stream);
    filled(5000);
    WAIT(cudaStreamSynchronize, 3, stream);
    WAIT_DEVICE_NOW();
    free_device(p);
    DO(cudaStreamDestroy, stream);
}

static void peer()
{
    int devices = 0;
    CHECK(cudaGetDeviceCount(&devices));
    if (devices < 2) {
        done.skip("peer", "one GPU");
        return;
    }
    enum { BYTES = 1 << 20 };
    char *here = device_memory(BYTES);
    CHECK(cudaSetDevice(1));
    char *there = device_memory(BYTES);
    CHECK(cudaSetDevice(0));
    int can = 0;
    CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
    if (can)
        CHECK(cudaDeviceEnablePeerAccess(1, 0));
    for (int i = 0; i < 4; i++)
        DO(cudaMemcpyPeerAsync, there, 1, here, 0, BYTES, 0);
    copied(COPY_PTOP, DEVICE, DEVICE, BYTES, 4);
    WAIT_DEVICE_NOW();
    free_device(here);
    CHECK(cudaSetDevice(1));
    parity_plain<<<1, 32>>>((float *)there);
    launched("parity_plain", 1, 32, 0, 1);
    WAIT_DEVICE_NOW();
    free_device(there);
    CHECK(cudaSetDevice(0));
    done.n("devices", "working", 2);
}

/* ---- streams, events, names -------------------------------------------------------------------
 */

static void events()
{
    cudaStream_t one, two;
    DO(cudaStreamCreateWithFlags, &one, cudaStreamNonBlocking);
    DO(cudaStreamCreateWithFlags, &two, cudaStreamNonBlocking);
    cudaEvent_t event, other;
    DO(cudaEventCreate, &event);
    DO(cudaEventCreateWithFlags, &other, cudaEventDisableTiming);
    float *data = (float *)device_memory(4096);
    for (int i = 0; i < 10; i++) {
        parity_plain<<<1, 32, 0, one>>>(data);
        DO(cudaEventRecord, event, one);
        WAIT(cudaStreamWaitEvent, 2, two, event, 0);
        parity_plain<<<1, 32, 0, two>>>(data);
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

static void streams()
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

static void threads()
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

static void nvtx()
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

/* ---- graphs -----------------------------------------------------------------------------------
 */

static void replay(cudaGraph_t graph, cudaStream_t stream, int launches)
{
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < launches; i++)
        DO(cudaGraphLaunch, exec, stream);
    done.n("graph_launches", "all", launches);
    WAIT(cudaStreamSynchronize, 3, stream);
    DO(cudaGraphExecDestroy, exec);
}

static void node_kernels(const char *name, int count, int launches)
{
    launched(name, 1, 32, 0, count * launches);
    done.n("graph_kernels", name, count * launches);
}

/* 3 kernels, a copy and a fill, captured; instantiated twice; then a clone. */
static void graph_capture()
{
    cudaStream_t stream;
    DO(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
    float *data = (float *)device_memory(4096), *other = (float *)device_memory(4096);
    cudaGraph_t graph, clone;
    DO(cudaStreamBeginCapture, stream, cudaStreamCaptureModeThreadLocal);
    for (int i = 0; i < 3; i++)
        parity_node<<<1, 32, 0, stream>>>(data);
    DO(cudaMemcpyAsync, other, data, 256, cudaMemcpyDeviceToDevice, stream);
    DO(cudaMemsetAsync, data, 0, 512, stream);
    DO(cudaStreamEndCapture, stream, &graph);
    done.n("captured", "launch", 3);
    done.n("captured", "transfer");
    done.n("captured", "memset");
    replay(graph, stream, 10);
    replay(graph, stream, 5);
    DO(cudaGraphClone, &clone, graph);
    replay(clone, stream, 4);
    node_kernels("parity_node", 3, 19);
    copied(COPY_DTOD, DEVICE, DEVICE, 256, 19);
    filled(512, 19);
    DO(cudaGraphDestroy, clone);
    DO(cudaGraphDestroy, graph);
    free_device(data);
    free_device(other);
    DO(cudaStreamDestroy, stream);
}

static void graph_manual()
{
    cudaStream_t stream;
    DO(cudaStreamCreate, &stream);
    float *data = (float *)device_memory(4096), *other = (float *)device_memory(4096);
    cudaGraph_t graph;
    DO(cudaGraphCreate, &graph, 0);
    cudaGraphNode_t fill, first, copy, second;
    cudaMemsetParams fill_of = {};
    fill_of.dst = data;
    fill_of.elementSize = 4;
    fill_of.width = 256;
    fill_of.height = 1;
    DO(cudaGraphAddMemsetNode, &fill, graph, NULL, 0, &fill_of);
    void *arguments[] = {&data};
    cudaKernelNodeParams kernel = {};
    kernel.func = (void *)parity_plain;
    kernel.gridDim = dim3(1);
    kernel.blockDim = dim3(32);
    kernel.kernelParams = arguments;
    DO(cudaGraphAddKernelNode, &first, graph, &fill, 1, &kernel);
    DO(cudaGraphAddMemcpyNode1D, &copy, graph, &first, 1, other, data, 1024,
       cudaMemcpyDeviceToDevice);
    DO(cudaGraphAddKernelNode, &second, graph, &copy, 1, &kernel);
    replay(graph, stream, 3);
    replay(graph, stream, 2);
    node_kernels("parity_plain", 2, 5);
    copied(COPY_DTOD, DEVICE, DEVICE, 1024, 5);
    filled(1024, 5);
    DO(cudaGraphDestroy, graph);
    free_device(data);
    free_device(other);
    DO(cudaStreamDestroy, stream);
}

/* ---- modules, contexts, the profiler's own switch -----------------------------------------------
 */

/* Load, launch, unload; in the context that is current. */
static void launch_module(const char *name, CUstream stream, int times)
{
    CUmodule module;
    CUfunction function;
    CUdeviceptr nothing = 0;
    void *arguments[] = {&nothing};
    DO_DRIVER(cuModuleLoadData, &module, ptx_of(name).c_str());
    DRIVER_CHECK(DRIVER(cuModuleGetFunction)(&function, module, name));
    for (int i = 0; i < times; i++)
        DO_DRIVER(cuLaunchKernel, function, 2, 1, 1, 64, 1, 1, 0, stream, arguments, NULL);
    DRIVER_CHECK(DRIVER(cuCtxSynchronize)());
    DRIVER_CHECK(DRIVER(cuModuleUnload)(module));
    launched(name, 2, 64, 0, times);
}

static void module()
{
    DO(cudaFree, NULL);
    for (int i = 0; i < 5; i++)
        launch_module(format("parity_module_%d", i).c_str(), NULL, i + 1);
    done.n("jit", "at least");
}

static void green()
{
#if CUDA_VERSION >= 12040
    DO(cudaFree, NULL);
    if (!DRIVER_HAS(cuGreenCtxCreate) || !DRIVER_HAS(cuGreenCtxStreamCreate)) {
        done.skip("green", "the driver has no green contexts");
        return;
    }
    CUdevResource all = {}, part = {}, rest = {};
    CUdevResourceDesc description;
    CUgreenCtx green_context;
    CUcontext context, before;
    CUstream stream;
    unsigned groups = 1;
    CUresult result = DRIVER(cuDeviceGetDevResource)(0, &all, CU_DEV_RESOURCE_TYPE_SM);
    if (result == CUDA_SUCCESS)
        result = DRIVER(cuDevSmResourceSplitByCount)(&part, &groups, &all, &rest, 0, 16);
    if (result == CUDA_SUCCESS)
        result = DRIVER(cuDevResourceGenerateDesc)(&description, &part, 1);
    if (result == CUDA_SUCCESS)
        result =
            DRIVER(cuGreenCtxCreate)(&green_context, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    if (result != CUDA_SUCCESS) {
        done.skip("green", format("no green context can be made: error %d", (int)result));
        return;
    }
    DRIVER_CHECK(DRIVER(cuGreenCtxStreamCreate)(&stream, green_context, CU_STREAM_NON_BLOCKING, 0));
    DRIVER_CHECK(DRIVER(cuCtxFromGreenCtx)(&context, green_context));
    DRIVER_CHECK(DRIVER(cuCtxPushCurrent)(context));
    launch_module("parity_green", stream, 3);
    DRIVER_CHECK(DRIVER(cuCtxPopCurrent)(&before));
    done.n("green", format("%u", part.sm.smCount));
    DRIVER_CHECK(DRIVER(cuStreamDestroy)(stream));
    DRIVER_CHECK(DRIVER(cuGreenCtxDestroy)(green_context));
#else
    done.skip("green", "built with a CUDA older than 12.4");
#endif
}

static void profiler()
{
    DO(cudaFree, NULL);
    for (int i = 0; i < 3; i++) {
        DO(cudaProfilerStart);
        DO(cudaProfilerStop);
    }
}

static const struct {
    const char *name;
    void (*run)();
} modes[] = {
    {"kernels", kernels},
    {"cooperative", cooperative},
    {"cluster", cluster},
    {"memory", memory},
    {"pool", pool},
    {"managed", managed},
    {"vmm", vmm},
    {"copies", copies},
    {"arrays", arrays},
    {"fills", fills},
    {"peer", peer},
    {"events", events},
    {"streams", streams},
    {"threads", threads},
    {"nvtx", nvtx},
    {"graph_capture", graph_capture},
    {"graph_manual", graph_manual},
    {"module", module},
    {"green", green},
    {"profiler", profiler},
};

int main(int argc, char **argv)
{
    setenv("CUDA_CACHE_DISABLE", "1", 1); /* every module is compiled anew */
    int ran = 0;
    for (auto &mode : modes) {
        if (argc == 2 && strcmp(argv[1], "list") == 0) {
            printf("%s\n", mode.name);
            ran++;
            continue;
        }
        for (int i = 1; i < argc; i++) {
            if (strcmp(argv[i], mode.name) == 0 || strcmp(argv[i], "all") == 0) {
                mode.run();
                ran++;
                break;
            }
        }
    }
    if (!ran) {
        fprintf(stderr, "usage: %s list | all | MODE...\n", argv[0]);
        return 2;
    }
    if (argc != 2 || strcmp(argv[1], "list") != 0)
        done.print();
    return 0;
}
