/* The roofline's view of the hardware counters: bytes per second through each level, and the
 * busiest pipe, of each kernel or launch configuration that was sampled often enough and alone. */
#ifndef PERFKIT_ANALYSIS_ROOFLINE_COUNTERS_H
#define PERFKIT_ANALYSIS_ROOFLINE_COUNTERS_H

#include "libprof/analysis/roofline.h"

/* What is said of one kernel; doubles are NaN where unknown. */
struct prof_roofline_rates {
    double dram, l2;             /* bytes/s of kernel time */
    enum prof_ceiling_kind pipe; /* the busiest; PROF_CEILINGS = none counted */
    bool pipe_assumed;           /* of the tensor pipe no counter tells the precision */
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

/* Put rates into a point that has its times and its declared work: bytes of counters take the place
 * of declared ones. The rates stand for all launches, as a sample does. */
void prof_roofline_count(struct prof_roofline_point *point, struct prof_roofline_facts *facts,
                         const struct prof_roofline_rates *rates);

#endif
