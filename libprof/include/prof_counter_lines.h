/* prof_counter_lines.h: hardware counters over time, for pictures. Conventions as in prof.h; what a
 * kernel did is prof_counter_summary's to say. */
#ifndef PERFKIT_PROF_COUNTER_LINES_H
#define PERFKIT_PROF_COUNTER_LINES_H

#include "libprof/include/prof.h"

#ifdef __cplusplus
extern "C" {
#endif

enum prof_counter_scale {
    PROF_COUNTER_SHARE, /* of the peak rate at the clock the device had meanwhile, 0..1 */
    PROF_COUNTER_RATE,  /* `unit` per second */
    PROF_COUNTER_LEVEL, /* `unit`, mean over time */
};

/* What was counted between the first and the last sample of a span of time. */
struct prof_counter_point {
    int64_t start_ns, end_ns;
    double value; /* over the time that was sampled */
    double peak;  /* the most of any one sample */
};

struct prof_counter_line {
    const char *name, *unit; /* of the capture, as in struct prof_counter */
    int64_t device;          /* prof_device.physical; 0 = one that the target did not use */
    int64_t ordinal;         /* as the sampler counts devices, PROF_UNKNOWN if not told */
    enum prof_counter_scale scale;
    struct prof_counter_point *points; /* by time, apart from each other: between them nothing was
                                          sampled */
    size_t count;
};

struct prof_counter_lines {
    struct prof_counter_line *rows; /* by device, then as the set lists its counters */
    size_t count;
};

/* Each counter of each sampled device, in at most max_points (at least 16) spans of equal length
 * over the capture's or the filter's time. filter: times, and the device; a device counts for
 * everything that runs on it, so nothing else plays a part. No samples: no rows, PROF_OK. One scan;
 * memory: 400 bytes a span and device. */
enum prof_status prof_counter_lines(struct prof_capture *capture, const struct prof_filter *filter,
                                    size_t max_points, struct prof_counter_lines *result,
                                    struct prof_error *err);
void prof_counter_lines_free(struct prof_counter_lines *result);

#ifdef __cplusplus
}
#endif

#endif
