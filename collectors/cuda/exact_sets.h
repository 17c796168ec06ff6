/* What is counted of single launches, on which chip. */
#ifndef PERFKIT_COLLECTORS_CUDA_EXACT_SETS_H
#define PERFKIT_COLLECTORS_CUDA_EXACT_SETS_H

#include <stdbool.h>
#include <stddef.h>

#define EXACT_MAX_COUNTS 10u /* of a pass */
#define EXACT_MAX_PASSES 12u /* of a chip */

struct exact_counter {
    const char *name;   /* the same on every chip */
    const char *unit;   /* instruction (of one thread), flop, byte; "warp-instruction" */
    const char *metric; /* CUPTI's */
};

/* Counters that the hardware counts in one run of a kernel. */
struct exact_pass {
    const struct exact_counter *counters;
    size_t count;
    bool tensor; /* wanted of kernels that use the tensor pipe only */
};

/* What is said beside the counts of the launch with which every pass of a configuration that
 * matters for its kernel was counted once: its FLOP are known from then on. */
#define EXACT_COMPLETE "complete"

/* Name of the counter that shows whether a kernel uses the tensor pipe. */
#define EXACT_TENSOR "tensor_instructions"

/* The passes of a chip by CUPTI's name of it ("GH100"), `*count` of them; NULL where FLOP cannot be
 * counted in passes of one run each, or the chip has not been examined. Those that are not of
 * tensors come first.
 *  */
const struct exact_pass *exact_passes_of(const char *chip, size_t *count);

#endif
