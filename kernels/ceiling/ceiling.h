/* Kernels that do one thing as fast as a device can: the ceilings that other kernels are held
 * against.
 *
 * Kernels (groups of CEILING_GROUP_ITEMS items on a GPU; of 1, but for triad, on a CPU):
 *   ceiling_read    from, out, quads: every group reads CEILING_GROUP_QUADS quads (16 bytes each)
 * of memory that is read once ceiling_triad   a, b, c, quads, s: a = b + s * c ceiling_cache from,
 * out, quads, rounds: all items together read `quads` quads (a power of two) again and again, past
 * the caches of single units; CEILING_CACHE_QUADS quads an item and round ceiling_shared  out,
 * rounds: reads of group memory ceiling_fp64, _fp32, _fp16     out, rounds: chains of multiply-adds
 * that do not wait for each other ceiling_tensor_fp64, _tf32, _fp16, _bf16, _fp8 (CUDA): out,
 * rounds: products of small matrices ceiling_empty   out: nothing `out` is CEILING_OUT_BYTES long.
 * The kernels with `rounds` write there, as 32-bit words, the FLOP (ceiling_shared: bytes) of one
 * group in one round and how it was done: only the device knows which of a binary's variants it
 * runs. What they compute is written nowhere, unless it has a value that it never has; the compiler
 * does not know that.
 */
#ifndef KERNELS_CEILING_H
#define KERNELS_CEILING_H

#include "kernels/ceiling/ceiling_shape.h"
#include "kernels/device/device.h"

extern const struct dev_module ceiling_module;
/* Products of matrices: CUDA only, no kernels elsewhere. */
extern const struct dev_module ceiling_tensor_module;

/* ---- measuring ------------------------------------------------------------------------------- */

struct ceiling_result {
    const char *name; /* as libprof's table of ceilings calls it: "dram_copy" */
    const char *pipe; /* products of matrices: the ceiling of what computes them; else NULL */
    double value;     /* bytes/s, FLOP/s, or ns for launches */
    double sustained; /* arithmetic: after a second of nothing else; 0 = not measured */
    char how[160];    /* what was run; or why there is no value */
    bool ok;
};

/* Told of each ceiling as soon as it is known. */
typedef void ceiling_seen(void *user, const struct ceiling_result *result);

struct ceiling_plan {
    const char *only; /* names separated by commas; NULL = all */
    bool quick;       /* small arrays, short runs: to see that it works */
};

/* Measures all ceilings of the device that it can; each is the best of several runs. -1 when no
 * queue could be made. */
int ceiling_measure(struct dev *dev, const struct ceiling_plan *plan, ceiling_seen *seen,
                    void *user);

/* What cuBLAS reaches with products of matrices: matmul_fp64, matmul_fp32, ... `object`: dlopen of
 * libcublas. -1 and a reason when it cannot be used. */
int ceiling_matmul(struct dev *dev, void *object, const struct ceiling_plan *plan,
                   ceiling_seen *seen, void *user, char *why, size_t why_bytes);
/* Whether the plan names one of them. */
bool ceiling_matmul_wanted(const struct ceiling_plan *plan);

/* The time of calls that perfkit records, under the names of the ceilings record_*: of the calls, not
 * of recording them. */
int ceiling_calls(struct dev *dev, const struct ceiling_plan *plan, ceiling_seen *seen, void *user);

/* Every way of copying within the device's memory that dram_copy is the best of, each under that
 * name. */
int ceiling_copies(struct dev *dev, const struct ceiling_plan *plan, ceiling_seen *seen,
                   void *user);

/* Is `name` among the names of the plan? */
bool ceiling_wanted(const struct ceiling_plan *plan, const char *name);

#endif
