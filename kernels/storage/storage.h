/* How the elements of a field stand in memory: float, half (IEEE binary16) or bfloat16. Every
 * kernel of the field operators exists once per storage, under the names <kernel>_f32,
 * <kernel>_f16 and <kernel>_bf16; arithmetic is in float, except where a device multiplies the
 * short types in hardware and adds in float (tensor cores).
 *
 * Conversions round to nearest, ties to even, as the devices do. NaN stays NaN.
 */
#ifndef KERNELS_STORAGE_H
#define KERNELS_STORAGE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum storage { STORAGE_F32, STORAGE_F16, STORAGE_BF16, STORAGE_COUNT };

static inline size_t storage_bytes(enum storage storage)
{
    return storage == STORAGE_F32 ? 4 : 2;
}

/* The ending of the kernels' names. */
static inline const char *storage_name(enum storage storage)
{
    static const char *const names[] = {"f32", "f16", "bf16"};

    return names[storage];
}

static inline uint32_t storage_bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float storage_float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float storage_load_f32(float element)
{
    return element;
}

static inline float storage_store_f32(float value)
{
    return value;
}

static inline float storage_load_bf16(uint16_t element)
{
    return storage_float_of((uint32_t)element << 16);
}

static inline uint16_t storage_store_bf16(float value)
{
    uint32_t bits = storage_bits_of(value);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;

    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded);
}

/* The exponent is mended by a multiplication (exact for subnormal halves too), so that the loop
 * around this stays free of branches and vectorises. */
static inline float storage_load_f16(uint16_t element)
{
    uint32_t sign = (uint32_t)(element & 0x8000u) << 16, rest = element & 0x7fffu;
    uint32_t scaled = storage_bits_of(storage_float_of(rest << 13) * 0x1p112f);

    return storage_float_of(sign | (rest >= 0x7c00u ? rest << 13 | 0x7f800000u : scaled));
}

static inline uint16_t storage_store_f16(float value)
{
    uint32_t bits = storage_bits_of(value), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
    uint32_t normal = (rest + 0xfffu + (rest >> 13 & 1) - 0x38000000u) >> 13;
    /* Adding 0.5 lets the float unit round at the place of a half's smallest bit, 2^-24. */
    uint32_t small = storage_bits_of(storage_float_of(rest) + 0.5f) - 0x3f000000u;
    uint32_t result = rest < 0x38800000u ? small : normal;

    result = rest >= 0x477ff000u ? 0x7c00u : result;
    result = rest > 0x7f800000u ? 0x7e00u : result;
    return (uint16_t)(sign | result);
}

/* Arrays, for what the host prepares and checks. */
static inline void storage_store(enum storage storage, const float *from, size_t count, void *to)
{
    for (size_t i = 0; i < count; i++) {
        if (storage == STORAGE_F32)
            ((float *)to)[i] = from[i];
        else
            ((uint16_t *)to)[i] =
                storage == STORAGE_F16 ? storage_store_f16(from[i]) : storage_store_bf16(from[i]);
    }
}

static inline void storage_load(enum storage storage, const void *from, size_t count, float *to)
{
    for (size_t i = 0; i < count; i++) {
        if (storage == STORAGE_F32)
            to[i] = ((const float *)from)[i];
        else
            to[i] = storage == STORAGE_F16 ? storage_load_f16(((const uint16_t *)from)[i])
                                           : storage_load_bf16(((const uint16_t *)from)[i]);
    }
}

#endif
