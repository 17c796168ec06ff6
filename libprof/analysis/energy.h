/* The energy that devices took, by the counter of their driver, which perfkit read beside the
 * program. */
#ifndef PERFKIT_ANALYSIS_ENERGY_H
#define PERFKIT_ANALYSIS_ENERGY_H

#include "libprof/analysis/capture.h"
#include "libprof/base/array.h"

struct prof_energy_sample {
    int64_t at; /* when the counter was read, ns since capture start */
    double joules;
};

struct prof_energy_counter {
    int64_t device; /* prof_device.physical */
    PROF_ARRAY(struct prof_energy_sample) samples;
    double age_ns; /* the counter's value is at most this old when it is read */
    double most_watts;
    /* While it is read: the last reading, when the newest value was read first, and the reading
     * before that. */
    int64_t read_at, still_since, moved_after;
    bool reset; /* it went back: nothing is known */
};

struct prof_energy_counters {
    PROF_ARRAY(struct prof_energy_counter) list;
};

/* Few rows: each user reads them anew. Free the result also after a failure. */
enum prof_status prof_energy_read(struct prof_capture *capture,
                                  struct prof_energy_counters *counters, struct prof_error *err);
void prof_energy_free(struct prof_energy_counters *counters);

/* Cut [*begin, *end) to the time in which the device's counter was read; false: it was not. */
bool prof_energy_covers(const struct prof_energy_counters *counters, int64_t device, int64_t *begin,
                        int64_t *end);

/* What the device took from `begin` to `end`: between the readings by straight lines, and the least
 * and the most that it can have been. NaN where the counter was not read all the time. */
struct prof_energy prof_energy_between(const struct prof_energy_counters *counters, int64_t device,
                                       int64_t begin, int64_t end);

/* Is it known well enough to be said of one stretch of time? Half of the interval is then at most a
 * quarter of it. */
bool prof_energy_is_sharp(const struct prof_energy *energy);

#endif
