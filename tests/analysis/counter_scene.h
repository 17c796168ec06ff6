/* Captures whose kernels count at known rates: what a sample says is computed from the kernels, so
 * that the analysis must give back the rates that were put in. One scene at a time. */
#ifndef PERFKIT_TESTS_ANALYSIS_COUNTER_SCENE_H
#define PERFKIT_TESTS_ANALYSIS_COUNTER_SCENE_H

#include "tests/analysis/fixture.h"

#define SCENE_CYCLES_PER_NS 2
#define SCENE_PEAK 10 /* counts a cycle */

/* Device work and what it makes the first counter count. */
struct scene_work {
    int64_t start, end;
    int stream, config; /* config 0: a copy */
    double rate;        /* counts per ns */
};

/* A new scene: device 1 of the fixture sampled every 100 ns: c0 bytes, c1 cycles of the clock, c2 a
 * level. */
void counters_begin(void);
/* SQL of the test's own. */
__attribute__((format(printf, 1, 2))) void scene_put(const char *format, ...);
void scene_put_work(const struct scene_work *work, size_t count);
/* Samples of counter device `device` from begin_ns on, as one burst. */
void scene_samples(int device, const struct scene_work *work, size_t count, int64_t begin_ns,
                   int64_t end_ns);

/* The capture of the scene; the caller closes it. */
struct prof_capture *scene_open(void);
/* Its kernels by `group`, without a filter; until scene_close. */
const struct prof_counter_summary *scene_summary(enum prof_group group);
void scene_close(void);

const struct prof_counter_row *scene_row(const struct prof_counter_summary *s, const char *name);

#endif
