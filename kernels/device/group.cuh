/* Sums and largest values over the threads of a CUDA group, by shuffles and one value per warp.
 * All threads of the group call; all get the result. Groups are whole warps. */
#ifndef KERNELS_DEVICE_GROUP_CUH
#define KERNELS_DEVICE_GROUP_CUH

#include <cstdint>

struct group_sum {
    static __device__ __forceinline__ float join(float a, float b)
    {
        return a + b;
    }
};

struct group_max {
    static __device__ __forceinline__ float join(float a, float b)
    {
        return fmaxf(a, b);
    }
};

template <typename Operation> __device__ __forceinline__ float group_reduce(float value)
{
    __shared__ float warp_value[32];
    uint32_t warps = blockDim.x / 32, lane = threadIdx.x % 32;

#pragma unroll
    for (uint32_t span = 16; span > 0; span /= 2)
        value = Operation::join(value, __shfl_xor_sync(0xffffffffu, value, span));
    __syncthreads(); /* the last call's values have been read */
    if (lane == 0)
        warp_value[threadIdx.x / 32] = value;
    __syncthreads();
    value = warp_value[0];
    for (uint32_t warp = 1; warp < warps; warp++)
        value = Operation::join(value, warp_value[warp]);
    return value;
}

#endif
