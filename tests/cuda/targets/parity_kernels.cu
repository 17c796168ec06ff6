/* cuda_parity: launches of every shape. */
#include "parity.h"

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

void launch_plain(float *data, cudaStream_t stream)
{
    parity_plain<<<1, 32, 0, stream>>>(data);
}

void *plain_kernel()
{
    return (void *)parity_plain;
}

static void described(const char *name, const void *kernel)
{
    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, kernel));
    done.n("registers", name, attributes.numRegs);
    done.n("shared_static", name, (long long)attributes.sharedSizeBytes);
    done.n("local_bytes", name, (long long)attributes.localSizeBytes);
}

void mode_kernels()
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

void mode_cooperative()
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

void mode_cluster()
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
