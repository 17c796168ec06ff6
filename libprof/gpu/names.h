/* What the names of kernels and of NVTX ranges say about them. */
#ifndef PERFKIT_GPU_NAMES_H
#define PERFKIT_GPU_NAMES_H

#include <stdbool.h>

enum prof_precision {
    PROF_PRECISION_UNKNOWN,
    PROF_PRECISION_NARROW, /* 16 bits or fewer, or TF32: tensor cores compute in it */
    PROF_PRECISION_WIDE,   /* floating point of 32 bits or more */
};

/* What type a kernel computes in by its name, mangled or not: words such as f32, float, sgemm,
 * half, s16816. A narrow word beside a wide one is the type of the operands: they add up in 32
 * bits. NULL allowed. */
enum prof_precision prof_name_precision(const char *name);

/* Whose kernel: id, text for people. By its name alone: the program's own kernels, and what is not
 * known, are NONE. Inductor is PyTorch's compiler; CUTLASS what programs build with it themselves.
 */
#define PROF_LIBRARIES(X)                                                                          \
    X(NONE, NULL)                                                                                  \
    X(CUBLAS, "cuBLAS")                                                                            \
    X(CUDNN, "cuDNN")                                                                              \
    X(CUFFT, "cuFFT")                                                                              \
    X(CUSOLVER, "cuSOLVER")                                                                        \
    X(FLASH, "FlashAttention")                                                                     \
    X(INDUCTOR, "Inductor")                                                                        \
    X(XLA, "XLA")                                                                                  \
    X(NCCL, "NCCL")                                                                                \
    X(ATEN, "ATen")                                                                                \
    X(CUB, "CUB")                                                                                  \
    X(CUTLASS, "CUTLASS")

enum prof_library {
#define PROF_LIBRARY_ID(id, text) PROF_LIBRARY_##id,
    PROF_LIBRARIES(PROF_LIBRARY_ID)
#undef PROF_LIBRARY_ID
};

enum prof_library prof_name_library(const char *name);    /* NULL allowed */
const char *prof_library_text(enum prof_library library); /* static; NULL for NONE */

/* Whether a kernel came compiled with cuBLAS, cuDNN, cuFFT or cuSOLVER. */
bool prof_name_is_vendor(const char *name);

/* Whether it is any library's or compiler's: the program calls it and cannot change how it is
 * built, as it can what it builds with CUTLASS. */
bool prof_name_is_library(const char *name);

/* Whether a kernel passes over its data once and computes next to nothing on it, by the names that
 * PyTorch, its compiler and CUB give theirs: elementwise, reductions, softmax, norms, copies. */
bool prof_name_is_streaming(const char *name);
/* A softmax, or its backward pass; not the logarithm of one, which losses take. */
bool prof_name_is_softmax(const char *name);

/* Whether a kernel multiplies matrices by its name: gemm, matmul, nvjet (cuBLAS), mm, bmm, addmm,
 * mangled or not. A product with a vector (gemv) is none. NULL allowed. */
bool prof_name_is_matmul(const char *name);

/* Whether it is a convolution of cuDNN's that works as a product of matrices. NULL allowed. */
bool prof_name_is_convolution(const char *name);

/* ---- NVTX ranges ----------------------------------------------------------------------------- */

#define PROF_RANGE_NAME_ROOM 48

/* In lower case, letters and digits only, no digits at the end: "step 1" and "Step 2" are one name.
 * False: the name is too long to be one that is looked for. */
bool prof_simplify_range_name(const char *text, char out[PROF_RANGE_NAME_ROOM]);

/* Do programs call what repeats so ("step", "iteration")? `simple`: a simplified name. */
bool prof_range_name_is_iteration(const char *simple);

/* Is it an operator of PyTorch, as its profiler and its NVTX ranges write them: "aten::mm",
 * "AddmmBackward0"? */
bool prof_range_name_is_operator(const char *name);

#endif
