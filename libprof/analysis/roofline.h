/* The parts of the roofline: gathering (roofline.c, roofline_ranges.c) and judging a point
 * (roofline_place.c). */
#ifndef PERFKIT_ANALYSIS_ROOFLINE_H
#define PERFKIT_ANALYSIS_ROOFLINE_H

#include "libprof/analysis/events.h"
#include "libprof/analysis/group.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_roofline.h"

/* Declared work (table `work`): which declaration a launch belongs to, and what its launches took.
 *
 * A declaration belongs to the launches that its thread made inside it. Declarations of a thread do
 * not nest (perfkit/annotate.h). */
struct prof_declaration {
    int64_t range;              /* range.id */
    int64_t thread, begin, end; /* end: INT64_MAX while open */
    double flop, bytes;         /* NaN = not declared, or not wholly */
    /* Filled by prof_declared_launch: */
    int64_t launches, duration_ns;
    uint32_t point;  /* that all launches are of */
    bool mixed;      /* of several points */
    bool incomplete; /* some launch is not in view, or was not seen to end */
};

struct prof_declared {
    PROF_ARRAY(struct prof_declaration) list; /* by thread, begin */
};

/* The caller keeps a transaction. */
enum prof_status prof_declared_open(struct prof_declared *declared, struct prof_capture *capture,
                                    struct prof_error *err);
void prof_declared_close(struct prof_declared *declared);

/* The declaration that a call of this thread at this time is inside; NULL = none. */
struct prof_declaration *prof_declared_at(struct prof_declared *declared, int64_t thread,
                                          int64_t call_ns);

/* A launch of `point` inside the declaration. `counted` is false when it is not to be looked at:
 * the declaration can then not be shared out. */
void prof_declared_launch(struct prof_declaration *declaration, uint32_t point, bool counted,
                          int64_t duration_ns);

/* Is its work that of one point alone? */
static inline bool prof_declared_whole(const struct prof_declaration *d)
{
    return d->launches > 0 && !d->mixed && !d->incomplete;
}

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

/* From work and times to rates, roofs and a bound. Fills everything from flop_rate on. */
void prof_roofline_place(struct prof_roofline_point *point, const struct prof_roofline_facts *facts,
                         const struct prof_ceilings *ceilings, const struct prof_device *device);

/* The points of ranges into result->points; ceilings are there. */
enum prof_status prof_roofline_ranges(struct prof_capture *capture,
                                      const struct prof_filter *filter,
                                      struct prof_roofline *result, struct prof_error *err);

/* The roofline of kernels or configurations from a walk that others share: open, give it every
 * kernel and graph of the capture (as prof_event_row_seen, the gather as user) with the fields
 * PROF_FIELDS_ROOFLINE, those outside of the filter marked, then finish, which fills the result as
 * prof_roofline does. Close in any case. */
#define PROF_FIELDS_ROOFLINE                                                                       \
    (PROF_FIELD(DURATION) | PROF_FIELD(STREAM) | PROF_FIELD(THREAD) | PROF_FIELD(CALL_DURATION) |  \
     PROF_FIELD(CONFIG) | PROF_FIELD(LAUNCH))
struct prof_roofline_gather;
enum prof_status prof_roofline_gather_open(struct prof_roofline_gather **gather,
                                           struct prof_capture *capture,
                                           const struct prof_filter *filter,
                                           enum prof_roofline_group by, struct prof_error *err);
bool prof_roofline_gather_op(void *gather, const struct prof_event_row *op);
enum prof_status prof_roofline_gather_finish(struct prof_roofline_gather *gather,
                                             struct prof_roofline *result, struct prof_error *err);
void prof_roofline_gather_close(struct prof_roofline_gather *gather);

/* A point with nothing known. */
struct prof_roofline_point prof_roofline_blank(void);

/* The roofline's view of the hardware counters: bytes per second through each level, and the
 * busiest pipe, of each kernel or launch configuration that was sampled often enough and alone. */

/* What is said of one kernel; doubles are NaN where unknown. */
struct prof_roofline_rates {
    double dram, l2;             /* bytes/s of kernel time */
    enum prof_ceiling_kind pipe; /* the busiest; PROF_CEILINGS = none counted */
    bool pipe_assumed;           /* of the tensor pipe no counter shows the precision */
    double pipe_share;           /* of that pipe's peak, 0..1 */
};

struct prof_roofline_counters {
    struct prof_counter_summary summary;
    struct prof_map by_config; /* (index of configuration, index of device) -> row */
    const struct prof_capture *capture;
};

enum prof_status prof_roofline_counters_open(struct prof_roofline_counters *counters,
                                             struct prof_capture *capture,
                                             const struct prof_filter *filter,
                                             enum prof_group group, struct prof_error *err);
void prof_roofline_counters_close(struct prof_roofline_counters *counters);

/* Rates of a kernel by name (config NULL), or of a launch configuration, on a device. False: not
 * counted, too seldom, or never alone. */
bool prof_roofline_counted(const struct prof_roofline_counters *counters, const char *name,
                           const struct prof_config *config, int64_t device,
                           struct prof_roofline_rates *rates);

#endif
