/* prof_roofline.h: how near kernels and ranges come to what their device can do.
 * Conventions as in prof.h. */
#ifndef PERFKIT_PROF_ROOFLINE_H
#define PERFKIT_PROF_ROOFLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/include/prof_ceilings.h"

#ifdef __cplusplus
extern "C" {
#endif

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
    PROF_BOUND_NONE, /* abstained: `why` tells what is missing */
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
    bool pipe_assumed;     /* nobody told the precision: FP32, or the first roof above it */
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
