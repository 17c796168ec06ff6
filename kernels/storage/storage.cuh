/* Elements of the three storages in CUDA: conversion to and from float, and packs of PACK
 * elements that are read and written with as few wide accesses as the type allows. */
#ifndef KERNELS_STORAGE_CUH
#define KERNELS_STORAGE_CUH

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/device/cuda_kernel.h"

__device__ __forceinline__ float to_float(float value)
{
    return value;
}

__device__ __forceinline__ float to_float(__half value)
{
    return __half2float(value);
}

__device__ __forceinline__ float to_float(__nv_bfloat16 value)
{
    return __bfloat162float(value);
}

template <typename T> __device__ __forceinline__ T from_float(float value);

template <> __device__ __forceinline__ float from_float<float>(float value)
{
    return value;
}

template <> __device__ __forceinline__ __half from_float<__half>(float value)
{
    return __float2half_rn(value);
}

template <> __device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float value)
{
    return __float2bfloat16_rn(value);
}

constexpr uint32_t pack_elements = 8;

/* 8 elements: 32 bytes of float, 16 of the short types. */
template <typename T> struct __align__(16) pack
{
    T element[pack_elements];
};

/* A pack in global memory at an address that is a multiple of 16, by accesses of 16 bytes. Writing
 * is spelled out: where another branch stores the same elements one by one, the compiler makes one
 * of the two and takes the single ones (nvcc 13.0; a kernel of 16 stores of 2 bytes ran at 1.6
 * of 4.3 TB/s). */
template <typename T> __device__ __forceinline__ pack<T> read_pack(const T *from)
{
    pack<T> result;

#pragma unroll
    for (uint32_t i = 0; i < sizeof result / sizeof(uint4); i++)
        reinterpret_cast<uint4 *>(&result)[i] = reinterpret_cast<const uint4 *>(from)[i];
    return result;
}

__device__ __forceinline__ uint32_t bits_of(float value)
{
    return __float_as_uint(value);
}

__device__ __forceinline__ uint32_t bits_of(__half value)
{
    return __half_as_ushort(value);
}

__device__ __forceinline__ uint32_t bits_of(__nv_bfloat16 value)
{
    return __bfloat16_as_ushort(value);
}

template <typename T> __device__ __forceinline__ void write_pack(T *to, const pack<T> &value)
{
    constexpr uint32_t in_word = sizeof(uint32_t) / sizeof(T), words = pack_elements / in_word;
    uint32_t word[words];

#pragma unroll
    for (uint32_t i = 0; i < words; i++) {
        word[i] = bits_of(value.element[i * in_word]);
        if constexpr (in_word == 2)
            word[i] |= bits_of(value.element[2 * i + 1]) << 16;
    }
#pragma unroll
    for (uint32_t i = 0; i < words; i += 4)
        asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to + i * in_word),
                     "r"(word[i]), "r"(word[i + 1]), "r"(word[i + 2]), "r"(word[i + 3])
                     : "memory");
}

/* Applies `function(value, index)` to elements [pack*8, pack*8+8) of `from`, as far as there are
 * n; whole packs go by wide accesses when the arrays allow it. */
template <typename T, typename F>
__device__ __forceinline__ void map_pack(const T *from, T *to, uint32_t index, uint32_t n,
                                         F function)
{
    uint32_t first = index * pack_elements;

    if (first >= n)
        return;
    if (n - first >= pack_elements &&
        ((reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to)) & 15) == 0) {
        pack<T> in = read_pack(from + first), out;

#pragma unroll
        for (uint32_t i = 0; i < pack_elements; i++)
            out.element[i] = from_float<T>(function(to_float(in.element[i]), first + i));
        write_pack(to + first, out);
        return;
    }
    for (uint32_t i = first; i < n && i < first + pack_elements; i++)
        to[i] = from_float<T>(function(to_float(from[i]), i));
}

/* Instantiates `name<T>` under C names for the three storages, with the parameters as they stand
 * in `signature` (which may use the type T) and in `call`. */
#define STORAGE_KERNELS(name, signature, call)                                                     \
    extern "C" __global__ void __launch_bounds__(256) name##_f32 signature(float)                  \
    {                                                                                              \
        name<float> call;                                                                          \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(256) name##_f16 signature(__half)                 \
    {                                                                                              \
        name<__half> call;                                                                         \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(256) name##_bf16 signature(__nv_bfloat16)         \
    {                                                                                              \
        name<__nv_bfloat16> call;                                                                  \
    }

/* clang-format off */
#define STORAGE_ROW(name) {#name, (const void *)(name)}
/* clang-format on */
#define STORAGE_ROWS(name)                                                                         \
    STORAGE_ROW(name##_f32), STORAGE_ROW(name##_f16), STORAGE_ROW(name##_bf16)

#endif
