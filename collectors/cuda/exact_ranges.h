/* Counting what one launch does, by CUPTI's range profiler: a device and the passes of its chip.
 * For one thread at a time, the one that launches; nothing here waits, but for CUPTI. */
#ifndef PERFKIT_COLLECTORS_CUDA_EXACT_RANGES_H
#define PERFKIT_COLLECTORS_CUDA_EXACT_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/cuda/exact_sets.h"

#define EXACT_WHY_BYTES 256u

struct exact_ranges;

/* Has exact_ranges_of been called for the device of the current context? Then it is quick. */
bool exact_ranges_known(void);

/* That of the device of a context, which is current; made at the first call, which takes about a
 * second. NULL: nothing can be counted there, and `why` is a sentence the first time, "" later; or
 * not now. */
struct exact_ranges *exact_ranges_of(void *context, char why[EXACT_WHY_BYTES]);

/* Did the last call fail because another tool holds the counters? It may succeed later. */
bool exact_ranges_busy(void);

/* Passes of the device's chip, those that are not of tensors first. */
const struct exact_pass *exact_ranges_passes(const struct exact_ranges *ranges, size_t *count);

/* The pass that the device is set up for in this context; SIZE_MAX = none. Another pass, or another
 * context, costs a sixth of a second (H200). */
size_t exact_ranges_ready(const struct exact_ranges *ranges, const void *context);

/* Before the launch and after it, on the same thread; both want the context idle, and may block
 * forever where it is not. The counters are then held until exact_ranges_release. End: values[count
 * of the pass]; false also when not exactly one kernel ran in between. False: `why`, "" where the
 * next launch may do better. */
bool exact_ranges_begin(struct exact_ranges *ranges, void *context, size_t pass,
                        char why[EXACT_WHY_BYTES]);
bool exact_ranges_end(struct exact_ranges *ranges, size_t pass, double *values,
                      char why[EXACT_WHY_BYTES]);

/* The context in which the counters are held; NULL = they are not. */
void *exact_ranges_context(void);

/* Give the counters back. In an idle context too. */
void exact_ranges_release(void);

/* In a forked child: what was made is the parent's. */
void exact_ranges_forked(void);

#endif
