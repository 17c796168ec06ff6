/* Which launches are to be counted: kernels whose name matches the pattern of --counters=exact. */
#ifndef PERFKIT_COLLECTORS_CUDA_EXACT_WANTED_H
#define PERFKIT_COLLECTORS_CUDA_EXACT_WANTED_H

#include <stdbool.h>
#include <stdint.h>

#include "collectors/cuda/exact_subjects.h"
#include "collectors/cuda/parts.h"

/* Is exact counting requested? Reports a pattern that is not valid in the capture's health. Within
 * cuInit. */
bool exact_wanted_start(void);

/* The shape of a launch by the driver's function `name`; false: it is not one of a kernel. */
bool exact_wanted_shape(const char *name, const CUpti_CallbackData *call, struct exact_shape *out);

/* The subject of a launch, and that of its kernel whatever the shape. NULL: the kernel is not
 * wanted, or (*full) there is no room to remember it. Called by the thread that has the turn. */
struct exact_subject *exact_wanted_subject(const char *symbol, const struct exact_shape *shape,
                                           struct exact_subject **kernel, bool *full);

#endif
