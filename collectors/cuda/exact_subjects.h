/* Which launches are counted, and by which pass: the counters of a chip, the kernels in their
 * launch configurations that were seen, and what was counted of each. No CUDA in here; for one
 * thread at a time. */
#ifndef PERFKIT_COLLECTORS_CUDA_EXACT_SUBJECTS_H
#define PERFKIT_COLLECTORS_CUDA_EXACT_SUBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
 * tensors come first. */
const struct exact_pass *exact_passes_of(const char *chip, size_t *count);

#define EXACT_REPEATS 3u        /* launches that a pass is counted of */
#define EXACT_TENSOR_REPEATS 2u /* ... that is one of many */
#define EXACT_PATIENCE 16u      /* launches that go uncounted before a pass is taken from others */

struct exact_shape {
    uint32_t grid[3], block[3], shared;
};

struct exact_subject {
    uint32_t name; /* string id; 0 = free */
    struct exact_shape shape;
    bool wanted; /* its name matches */
    bool given_up;
    bool tensor; /* it uses the tensor pipe, as far as was counted */
    bool complete;
    bool sure; /* of a kernel: it ends without work of other threads */
    uint8_t failures, late;
    uint8_t done[EXACT_MAX_PASSES];
};

bool exact_subjects_start(void); /* takes the table; false: no memory */

/* That of a kernel's name and shape; *fresh = it was made now, and `wanted` is to be said. NULL:
 * there is no room for more. */
struct exact_subject *exact_subject_of(uint32_t name, const struct exact_shape *shape, bool *fresh);

/* The pass to count a launch by, when the device is set up for pass `ready` (SIZE_MAX = none);
 * SIZE_MAX = none now. Prefers the one that it is set up for, and lets a few launches go uncounted
 * while others need that one. */
size_t exact_choose(const struct exact_subject *subject, const struct exact_pass *passes,
                    size_t count, size_t ready);

/* The pass was counted. True when with it every one that the kernel needs was, for the first time.
 */
bool exact_counted(struct exact_subject *subject, const struct exact_pass *passes, size_t count,
                   size_t pass, const double *values);

/* Is there anything to count as yet, of all that was seen? */
bool exact_anybody_needs(const struct exact_pass *passes, size_t count);

/* A kernel is given up, in all of its shapes. */
void exact_subjects_give_up(uint32_t name);

void exact_subjects_forget(void);

/* "at::native::reduce_kernel" of the symbol _ZN2at6native13reduce_kernelILi512E...: scopes and
 * name, up to the first template argument, without parameters. False for what is no C++ symbol of
 * that kind, or does not fit. */
bool cuda_kernel_plain_name(const char *symbol, char *out, size_t size);

#endif
