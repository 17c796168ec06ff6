/* The parts of the roofline: gathering (roofline.c, roofline_ranges.c) and judging a point
 * (roofline_place.c). */
#ifndef PERFKIT_ANALYSIS_ROOFLINE_H
#define PERFKIT_ANALYSIS_ROOFLINE_H

#include "libprof/analysis/capture.h"
#include "libprof/analysis/declared.h"
#include "libprof/analysis/events.h"
#include "libprof/analysis/group.h"
#include "libprof/analysis/scope.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_exact.h"

/* What a point's place depends on besides the point itself. */
struct prof_roofline_facts {
    double launch_ns;         /* mean time of the launching calls; NaN = they had none (graphs) */
    int64_t launches;         /* ranges: kernels with such a call */
    int64_t kernel_ns;        /* ranges: union of the kernels called inside */
    int64_t transfer_only_ns; /* ranges: copies and fills that no kernel of the range hides */
    bool range;
    bool narrow;          /* ranges: kernels of 16 bits by their names are among those inside */
    bool pipe_counted;    /* point->pipe and its share come from counters */
    bool several_devices; /* ranges */
};

struct prof_roofline_sum {
    double flop, bytes; /* NaN as soon as one part is not known */
    int64_t worked, worked_ns;
};

static inline void prof_roofline_add(struct prof_roofline_sum *sum,
                                     const struct prof_declaration *d)
{
    sum->flop += d->flop;
    sum->bytes += d->bytes;
    sum->worked = prof_add(sum->worked, d->launches);
    sum->worked_ns = prof_add(sum->worked_ns, d->duration_ns);
}

/* Exact counts of single launches, for every launch of their configuration. */
struct prof_roofline_exact {
    double flop, dram, l2; /* NaN as soon as one part is not known */
    double pipe[PROF_CEILINGS];
    int64_t worked, worked_ns;
};

/* A launch of this configuration took so long. */
void prof_roofline_exact_add(struct prof_roofline_exact *sum, const struct prof_exact_row *row,
                             int64_t duration_ns);

/* Put the sums into the point: they take the place of declared work. */
void prof_roofline_exact_put(struct prof_roofline_point *point, struct prof_roofline_facts *facts,
                             const struct prof_roofline_exact *sum,
                             const struct prof_ceilings *ceilings);

/* Put the declared work into the point: FLOP, bytes of DRAM, their sources. */
void prof_roofline_declared(struct prof_roofline_point *point, const struct prof_roofline_sum *sum);

/* The tensor pipe that a matrix product of 16 bits or fewer runs on by its name; PROF_CEILINGS for
 * others. */
enum prof_ceiling_kind prof_roofline_matmul_pipe(const struct prof_roofline_point *point);
/* Put what a library reaches into the point, whose pipe and share are known. */
void prof_roofline_matmul(struct prof_roofline_point *point, const struct prof_ceilings *ceilings);

/* From work and times to rates, roofs and a bound. Fills everything from flop_rate on. */
void prof_roofline_place(struct prof_roofline_point *point, const struct prof_roofline_facts *facts,
                         const struct prof_ceilings *ceilings, const struct prof_device *device);

/* The points of ranges into result->points; ceilings are there. */
enum prof_status prof_roofline_ranges(struct prof_capture *capture,
                                      const struct prof_filter *filter,
                                      struct prof_roofline *result, struct prof_error *err);

/* The roofline of kernels or configurations from a walk that others share: open, give it every
 * kernel and graph of the capture (as prof_event_row_seen, the gather as user) with these fields,
 * also those that the filter leaves out, then finish, which fills the result as prof_roofline does.
 * Close in any case. */
struct prof_roofline_gather;
enum prof_status prof_roofline_gather_open(struct prof_roofline_gather **gather,
                                           struct prof_capture *capture,
                                           const struct prof_filter *filter,
                                           enum prof_roofline_group by, struct prof_error *err);
uint64_t prof_roofline_gather_fields(const struct prof_roofline_gather *gather);
bool prof_roofline_gather_op(void *gather, const struct prof_event_row *op);
enum prof_status prof_roofline_gather_finish(struct prof_roofline_gather *gather,
                                             struct prof_roofline *result, struct prof_error *err);
void prof_roofline_gather_close(struct prof_roofline_gather *gather);

/* A point with nothing known. */
struct prof_roofline_point prof_roofline_blank(void);

#endif
