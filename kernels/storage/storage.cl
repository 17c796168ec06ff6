/* Put before a source of kernels once per storage, with STORAGE_f32, STORAGE_f16 or STORAGE_bf16
 * defined: `element` is the stored type, NAME(x) is x with the storage's ending. The source that
 * follows is compiled three times, so whatever it defines needs NAME. Half is used as a type of
 * storage only, which OpenCL 1.2 has without cl_khr_fp16. */
#undef element
#undef load
#undef store
#undef NAME
#ifdef STORAGE_f32
#define element float
#define load(i, p) ((p)[i])
#define store(v, i, p) ((p)[i] = (v))
#define NAME(name) name##_f32
#endif
#ifdef STORAGE_f16
#define element half
#define load(i, p) vload_half(i, p)
#define store(v, i, p) vstore_half_rte(v, i, p)
#define NAME(name) name##_f16
#endif
#ifdef STORAGE_bf16
#define element ushort
#define load(i, p) as_float((uint)(p)[i] << 16)
#define store(v, i, p) ((p)[i] = storage_bf16(v))
#define NAME(name) name##_bf16
#ifndef STORAGE_bf16_function
#define STORAGE_bf16_function
ushort storage_bf16(float value)
{
    uint bits = as_uint(value);
    uint rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;

    return (ushort)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded);
}
#endif
#endif
