/* prof_roofline.h: what a device can do, what single launches counted (perfkit run
 * --counters=exact:KERNEL), and how near kernels and ranges come to their ceilings. Conventions as
 * in prof.h. */
#ifndef PERFKIT_PROF_ROOFLINE_H
#define PERFKIT_PROF_ROOFLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/include/prof_capture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- ceilings -------------------------------------------------------------------------------- */

/* Kind, name in files and JSON, unit, words for people. Bandwidths of memory count bytes read plus
 * written, those between memories bytes moved. What fp64 .. tensor_fp8 stand for is what the
 * hardware issues; matmul_* is what the vendor's library makes of it with matrices in memory;
 * record_* is what recording adds to a call. */
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
    X(LAUNCH_LATENCY, "launch_latency", NS, "launch, until seen done")                             \
    X(RECORD_LAUNCH, "record_launch", NS, "to record a launch")                                    \
    X(RECORD_MEMCPY, "record_memcpy", NS, "to record a memcpy")                                    \
    X(RECORD_MEMSET, "record_memset", NS, "to record a memset")                                    \
    X(RECORD_SYNC, "record_sync", NS, "to record a synchronization")                               \
    X(RECORD_CALL, "record_call", NS, "to record another API call")                                \
    X(RECORD_RANGE, "record_range", NS, "to record an NVTX range")                                 \
    X(RECORD_NODE, "record_node", NS, "to record a node of a graph")                               \
    X(RECORD_STACK, "record_stack", NS, "to record a call stack")

enum prof_ceiling_kind {
#define PROF_CEILING_ROW(kind, name, unit, text) PROF_CEILING_##kind,
    PROF_CEILING_KINDS(PROF_CEILING_ROW)
#undef PROF_CEILING_ROW
        PROF_CEILINGS
};

enum prof_ceiling_unit {
    PROF_CEILING_BYTES, /* bytes/s */
    PROF_CEILING_FLOP,  /* floating-point operations/s; a multiply-add is two */
    PROF_CEILING_NS,    /* ns; where less is better */
};

struct prof_ceiling {
    int64_t device; /* prof_device.physical */
    enum prof_ceiling_kind kind;
    enum prof_ceiling_unit unit;
    const char *name; /* "dram_copy" */
    const char *text; /* "device memory, copy" */
    double value;
    double sustained; /* arithmetic, measured: after a second of nothing else; NaN = not known */
    bool measured;    /* by `perfkit device --measure`; else theoretical, from device attributes */
    int64_t date_s;   /* of the measurement, seconds since 1970; PROF_UNKNOWN when theoretical */
    const char *how;  /* what was run, or the formula; NULL = not known */
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
 * attributes do not give are left out; for devices that are not NVIDIA's that is all arithmetic. */
size_t prof_peaks(const struct prof_device *device, struct prof_ceiling out[PROF_CEILINGS]);
/* The one of this kind, of a matmul_* that of its pipe; its value is NaN where attributes do not
 * give it. */
struct prof_ceiling prof_peak(const struct prof_device *device, enum prof_ceiling_kind kind);

/* Whether a device can have done what was measured: not when that is more than 105 % of its peak.
 * (Attributes are rounded; what is above was never reached: a compiler may have removed the work.)
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

/* ---- exact counts of launches ---------------------------------------------------------------- */

/* A launch configuration on a device. Each counter is a mean over the launches that it was counted
 * in; different counters are counted in different launches. NaN = not counted. */
struct prof_exact_row {
    const struct prof_config *config;
    int64_t device;    /* prof_device.physical; 0 = not known */
    int64_t launches;  /* that something was counted in */
    bool complete;     /* every counter that FLOP are made of was counted */
    double flop;       /* floating-point operations a launch, a multiply-add is two; NaN unless
                          complete */
    double flop_error; /* its standard error; NaN where a counter was counted once only */
    double pipe[PROF_CEILINGS];   /* the FLOP of each compute roof (FP64 .. TENSOR_FP8), else 0 */
    double dram_read, dram_write; /* bytes a launch */
    double l2;                    /* bytes a launch */
};

struct prof_exact {
    struct prof_exact_row *rows; /* in the order of launch_config.id, then device */
    size_t count;
};

/* What the capture's table exact_count holds, by launch configuration and device. Without it the
 * result is empty and PROF_OK. Formulas: docs/guide/counters.md. */
enum prof_status prof_exact(struct prof_capture *capture, struct prof_exact *result,
                            struct prof_error *err);
void prof_exact_free(struct prof_exact *result);

/* The row of a configuration on a device; NULL = not counted. */
const struct prof_exact_row *prof_exact_find(const struct prof_exact *exact,
                                             const struct prof_config *config, int64_t device);

/* ---- roofline -------------------------------------------------------------------------------- */

enum prof_roof_level {
    PROF_ROOF_DRAM,
    PROF_ROOF_L2,
    PROF_ROOF_LINK, /* host to device and back; of ranges only */
    PROF_ROOF_LEVELS
};

enum prof_work_source {
    PROF_WORK_NONE,
    PROF_WORK_DECLARED, /* by the program, perfkit/annotate.h */
    PROF_WORK_COUNTERS, /* hardware counters */
    PROF_WORK_TRACED,   /* bytes of recorded copies */
};

/* What holds a point back. */
enum prof_bound {
    PROF_BOUND_NONE, /* abstained: `why` says what is missing */
    PROF_BOUND_DRAM,
    PROF_BOUND_L2,
    PROF_BOUND_COMPUTE,  /* the pipe in `pipe` */
    PROF_BOUND_LATENCY,  /* none of the roofs is near: dependent work, too few threads, imbalance */
    PROF_BOUND_LAUNCH,   /* shorter than what launching it takes */
    PROF_BOUND_TRANSFER, /* ranges: copies that no kernel hides */
    PROF_BOUND_HOST,     /* ranges: the device had nothing to do */
};

enum prof_roofline_group { PROF_ROOFLINE_KERNELS, PROF_ROOFLINE_CONFIGS, PROF_ROOFLINE_RANGES };

/* Bytes through one level; doubles are NaN and source NONE where unknown. */
struct prof_roof {
    enum prof_work_source source;
    double bytes;     /* within prof_roofline_point.worked_ns (link: within busy_ns) */
    double rate;      /* bytes/s */
    double intensity; /* FLOP per byte; NaN without FLOP */
    double ceiling;   /* bytes/s; NaN = not known */
    double share;     /* rate / ceiling */
};

struct prof_roofline_point {
    const char *name;                 /* kernel, or range */
    const char *domain;               /* ranges; NULL = default */
    const struct prof_config *config; /* the only launch configuration of the point, else NULL */
    int64_t device;                   /* prof_device.physical */
    int64_t count;                    /* kernels of the point; ranges: ranges */
    int64_t time_ns;   /* of all of them: kernels sum of durations; ranges: sum of durations on the
                          host */
    int64_t busy_ns;   /* ranges: union of the device work called inside; kernels: time_ns */
    int64_t worked;    /* kernels for which work is known */
    int64_t worked_ns; /* their time: what rates refer to */
    double mean_ns;    /* time_ns / count */
    enum prof_work_source flop_source;
    double flop, flop_rate;
    enum prof_ceiling_kind
        pipe;              /* the compute roof: FP64 .. TENSOR_FP8; PROF_CEILINGS = not known */
    bool pipe_assumed;     /* the precision is not known: FP32, or the first roof above it */
    double pipe_ceiling;   /* FLOP/s */
    double pipe_share;     /* flop_rate / pipe_ceiling, or the pipe's busy share by counters */
    double matmul_ceiling; /* matrix products, by their name: FLOP/s that the vendor's library
                              reaches with this pipe (matmul_*); NaN of others, or not measured */
    double matmul_share;   /* of that */
    struct prof_roof roofs[PROF_ROOF_LEVELS];
    double
        attainable; /* FLOP/s: min(pipe_ceiling, ceiling x intensity of each level); NaN without */
    double
        roof_share; /* largest share of a roof, 0..1: how near the nearest roof is; NaN = unknown */
    double bound_ns; /* worked_ns x roof_share: the time that the nearest roof alone would take */
    enum prof_bound bound;
    const char *why; /* bound NONE: what is missing or does not fit. Static; NULL otherwise */
};

struct prof_roofline {
    struct prof_roofline_point *points; /* by time_ns, largest first */
    size_t count;
    size_t placed;                 /* of them, how many have a bound */
    struct prof_ceilings ceilings; /* what the roofs were taken from */
    int64_t time_ns; /* sum over all points; of ranges, nested time counts in each level */
};

/* Where each kernel, launch configuration or range stands under the roofs of its device:
 * P <= min(P_pipe, B_level x FLOP / bytes_level) (Williams, Waterman, Patterson 2009; levels as in
 * Yang, Kurth, Williams 2020). Work comes from counters where they cover it, else from what the
 * program declared, else the point abstains. The formula and the classes: docs/guide/roofline.md.
 * A declaration with several launches is counted where all of them are of the same point. */
enum prof_status prof_roofline(struct prof_capture *capture, const struct prof_filter *filter,
                               enum prof_roofline_group group, struct prof_roofline *result,
                               struct prof_error *err);
void prof_roofline_free(struct prof_roofline *result);

/* The roof over a level, bytes/s: of DRAM and the link the best that was measured of copy, read and
 * triad (of either direction), theoretical only where nothing was measured; NaN = not known. */
double prof_roof_ceiling(const struct prof_ceilings *ceilings, int64_t device,
                         enum prof_roof_level level);

/* Fixed words, never NULL: "DRAM", "declared", "memory (DRAM)". */
const char *prof_roof_level_text(enum prof_roof_level level);
const char *prof_work_source_text(enum prof_work_source source);
const char *prof_bound_text(enum prof_bound bound);

#ifdef __cplusplus
}
#endif

#endif
