/* prof_ceilings.h: what a device can do.
 * Conventions as in prof.h. */
#ifndef PERFKIT_PROF_CEILINGS_H
#define PERFKIT_PROF_CEILINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/include/prof_capture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kind, name in files and JSON, unit, words for people. Bandwidths of memory count bytes read plus
 * written, those between memories bytes moved. What fp64 .. tensor_fp8 stand for is what the
 * hardware issues; matmul_* is what the vendor's library makes of it with matrices in memory. */
#define PROF_CEILING_KINDS(X)                                                                      \
    X(DRAM_COPY, "dram_copy", BYTES, "device memory, copy")                                        \
    X(DRAM_READ, "dram_read", BYTES, "device memory, read")                                        \
    X(DRAM_TRIAD, "dram_triad", BYTES, "device memory, triad")                                     \
    X(L2_READ, "l2_read", BYTES, "L2 cache, read")                                                 \
    X(SHARED, "shared", BYTES, "shared memory, read")                                              \
    X(FP64, "fp64", FLOP, "FP64 multiply-add")                                                     \
    X(FP32, "fp32", FLOP, "FP32 multiply-add")                                                     \
    X(FP16, "fp16", FLOP, "FP16 multiply-add, packed")                                             \
    X(TENSOR_FP64, "tensor_fp64", FLOP, "tensor FP64")                                             \
    X(TENSOR_TF32, "tensor_tf32", FLOP, "tensor TF32")                                             \
    X(TENSOR_FP16, "tensor_fp16", FLOP, "tensor FP16")                                             \
    X(TENSOR_BF16, "tensor_bf16", FLOP, "tensor BF16")                                             \
    X(TENSOR_FP8, "tensor_fp8", FLOP, "tensor FP8")                                                \
    X(MATMUL_FP64, "matmul_fp64", FLOP, "matrix product, FP64")                                    \
    X(MATMUL_FP32, "matmul_fp32", FLOP, "matrix product, FP32")                                    \
    X(MATMUL_TF32, "matmul_tf32", FLOP, "matrix product, TF32")                                    \
    X(MATMUL_FP16, "matmul_fp16", FLOP, "matrix product, FP16")                                    \
    X(MATMUL_BF16, "matmul_bf16", FLOP, "matrix product, BF16")                                    \
    X(MATMUL_FP8, "matmul_fp8", FLOP, "matrix product, FP8")                                       \
    X(HTOD_PINNED, "htod_pinned", BYTES, "host to device, pinned")                                 \
    X(DTOH_PINNED, "dtoh_pinned", BYTES, "device to host, pinned")                                 \
    X(HTOD_PAGEABLE, "htod_pageable", BYTES, "host to device, pageable")                           \
    X(DTOH_PAGEABLE, "dtoh_pageable", BYTES, "device to host, pageable")                           \
    X(PEER_COPY, "peer_copy", BYTES, "device to another device, copy")                             \
    X(LAUNCH, "launch", NS, "launch, one of many")                                                 \
    X(LAUNCH_LATENCY, "launch_latency", NS, "launch, until seen done")

enum prof_ceiling_kind {
#define PROF_CEILING_ROW(kind, name, unit, text) PROF_CEILING_##kind,
    PROF_CEILING_KINDS(PROF_CEILING_ROW)
#undef PROF_CEILING_ROW
        PROF_CEILINGS
};

enum prof_ceiling_unit {
    PROF_CEILING_BYTES, /* bytes/s */
    PROF_CEILING_FLOP,  /* floating-point operations/s; a multiply-add is two */
    PROF_CEILING_NS,    /* ns; the one kind where less is better */
};

struct prof_ceiling {
    int64_t device; /* prof_device.physical */
    enum prof_ceiling_kind kind;
    enum prof_ceiling_unit unit;
    const char *name; /* "dram_copy" */
    const char *text; /* "device memory, copy" */
    double value;
    double sustained; /* arithmetic, measured: after a second of nothing else; NaN = not known */
    bool measured;   /* by `perfkit device --measure`; else theoretical, from device attributes */
    int64_t date_s;  /* of the measurement, seconds since 1970; PROF_UNKNOWN when theoretical */
    const char *how; /* what was run, or the formula; NULL = not told */
};

struct prof_ceilings {
    struct prof_ceiling *rows; /* by device, kind; a measured one before the theoretical one */
    size_t count;
};

/* Name, unit and words of a kind, value NaN; what a table of all kinds is made from. */
struct prof_ceiling prof_ceiling_of(enum prof_ceiling_kind kind);
/* The kind with this name, PROF_CEILINGS when there is none. */
enum prof_ceiling_kind prof_ceiling_named(const char *name);

/* The pipe that computes a matmul_* (TENSOR_BF16 of MATMUL_BF16; of MATMUL_FP64 the tensor pipe,
 * which not every device has), and the other way round; PROF_CEILINGS where there is none. */
enum prof_ceiling_kind prof_pipe_of_matmul(enum prof_ceiling_kind matmul);
enum prof_ceiling_kind prof_matmul_of_pipe(enum prof_ceiling_kind pipe);

/* Of the name of a row that holds what is sustained ("tensor_bf16_sustained"), the kind that it is
 * of; PROF_CEILINGS of other names. */
enum prof_ceiling_kind prof_ceiling_sustained(const char *name);
#define PROF_CEILING_SUSTAINED "_sustained"

/* Theoretical peaks from a device's attributes, into `out` (PROF_CEILINGS long); returns how many.
 * Bandwidth: prof_device.memory_bandwidth. Arithmetic: units x results per clock and unit of its
 * compute capability (CUDA programming guide, arithmetic throughput) x 2 x clock_khz. Kinds that
 * attributes do not tell are left out; for devices that are not NVIDIA's that is all arithmetic. */
size_t prof_peaks(const struct prof_device *device, struct prof_ceiling out[PROF_CEILINGS]);
/* The one of this kind, of a matmul_* that of its pipe; its value is NaN where attributes do not
 * tell it. */
struct prof_ceiling prof_peak(const struct prof_device *device, enum prof_ceiling_kind kind);

/* Whether a device can have done what was measured: not when that is more than 105 % of its peak.
 * (Attributes are rounded; what is beyond was never done: a compiler may have removed the work.)
 * True where the peak is NaN. */
bool prof_ceiling_possible(double measured, double peak);

/* Ceilings of the devices in the capture: measured ones that `perfkit run` found on its machine
 * (table `ceiling`) and that are possible, and theoretical peaks. */
enum prof_status prof_ceilings(struct prof_capture *capture, struct prof_ceilings *result,
                               struct prof_error *err);
void prof_ceilings_free(struct prof_ceilings *result);

/* The measured one, else the theoretical one; NULL when neither is known. `device`: physical. */
const struct prof_ceiling *prof_ceiling_find(const struct prof_ceilings *ceilings, int64_t device,
                                             enum prof_ceiling_kind kind);

#ifdef __cplusplus
}
#endif

#endif
