/* The roofline's view of matrix products: which of them a kernel computes by its name, and what the
 * vendor's library makes of the pipe that it runs on. */
#include <math.h>
#include <string.h>

#include "libprof/analysis/roofline.h"
#include "libprof/gpu/kernel_name.h"

/* Operands of 16 bits and fewer, and TF32, are multiplied by tensor cores, as far as there are any;
 * FP16 is what has no word of its own in the name. */
static enum prof_ceiling_kind tensor_pipe(const char *name)
{
    static const struct {
        const char *word;
        enum prof_ceiling_kind pipe;
    } words[] = {
        {"bf16", PROF_CEILING_TENSOR_BF16},   {"bfloat16", PROF_CEILING_TENSOR_BF16},
        {"tf32", PROF_CEILING_TENSOR_TF32},   {"e4m3", PROF_CEILING_TENSOR_FP8},
        {"e5m2", PROF_CEILING_TENSOR_FP8},    {"fp8", PROF_CEILING_TENSOR_FP8},
        {"_tst_", PROF_CEILING_TENSOR_BF16}, /* nvjet_tst_..., nvjet_sm90_tst_... */
        {"_qqtst_", PROF_CEILING_TENSOR_FP8},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasestr(name, words[i].word))
            return words[i].pipe;
    return PROF_CEILING_TENSOR_FP16;
}

enum prof_ceiling_kind prof_roofline_matmul_pipe(const struct prof_roofline_point *point)
{
    return prof_name_is_matmul(point->name) &&
                   prof_name_precision(point->name) == PROF_PRECISION_NARROW
               ? tensor_pipe(point->name)
               : PROF_CEILINGS;
}

void prof_roofline_matmul(struct prof_roofline_point *point, const struct prof_ceilings *ceilings)
{
    enum prof_ceiling_kind kind = prof_matmul_of_pipe(point->pipe);
    const struct prof_ceiling *library = kind != PROF_CEILINGS && prof_name_is_matmul(point->name)
                                             ? prof_ceiling_find(ceilings, point->device, kind)
                                             : NULL;
    if (!library)
        return;
    point->matmul_ceiling = library->value;
    point->matmul_share = point->pipe_share * point->pipe_ceiling / library->value;
}
