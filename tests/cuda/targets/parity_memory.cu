/* cuda_parity: memory of every kind, taken and given back. */
#include "parity.h"

void mode_memory()
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

void mode_pool()
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
void mode_managed()
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
        launch_plain((float *)p);
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

void mode_vmm()
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
