/* What the fake GPU counts; see fake_pm.c. */
#ifndef PERFKIT_TESTS_CUDA_FAKE_PM_H
#define PERFKIT_TESTS_CUDA_FAKE_PM_H

#define FAKE_PM_CYCLES 2.0 /* cycles of every clock in a nanosecond */
#define FAKE_PM_PEAK 100.0 /* of every counter, per cycle */

#include <stdbool.h>
#include <stdint.h>

struct pm_host_evaluate;

/* A number of FAKE_PM ("name=value,..."). */
long fake_pm_knob(const char *name, long otherwise);

/* ---- fake_range.c */
/* A kernel of so many blocks runs now. */
void fake_range_kernel(uint32_t blocks);
bool fake_range_started(void); /* are kernels ranges now? */
/* The context ends: its counters must not be held any more. */
void fake_range_context_ends(void);
/* Fill the values when the image is one of ranges. */
bool fake_range_evaluate(const struct pm_host_evaluate *p);

#endif
