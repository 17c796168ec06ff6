/* Rules about how a program calls libraries, by the names of their kernels: products whose rows are
 * not aligned, and convolutions whose tensors cuDNN converts. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/rules/judge.h"
#include "libprof/gpu/names.h"

static bool has_any_word(const char *name, const char *const *words)
{
    for (; name && *words; words++)
        if (strcasestr(name, *words))
            return true;
    return false;
}

/* ---- products that are not aligned ----------------------------------------------------------- */

#define ALIGNED_BYTES 16 /* that a thread loads at once, and that TMA needs */
#define COPIED_BYTES 4   /* below, cp.async cannot load: kernels are those of the GPUs before it */

/* What such a product takes longer, at most. On an H200 with 2 bytes 6.4x as long as with 16. */
#define COPIED_FACTOR 4.0
#define UNCOPIED_FACTOR 8.0

/* Bytes of an operand's element, by the name of a product on tensor cores; 0 = not known. */
static int operand_bytes(const char *name)
{
    static const char *const one[] = {"e4m3", "e5m2", "_s8", "_u8", "i8", NULL};
    static const char *const two[] = {"f16", "h16816", "h1688", "h884", "s16816", NULL};
    static const char *const four[] = {"tf32", "s1688gemm", NULL};
    return has_any_word(name, one)    ? 1
           : has_any_word(name, two)  ? 2
           : has_any_word(name, four) ? 4
                                      : 0;
}

#define MOST_ELEMENTS 64 /* that a name can mean: more is something else */

/* Elements of an operand that it loads at once: "_align8", "_aligna2_alignc4". The fewest count;
 * 0 = not known. The result, c, has elements of a size of its own, and is no operand. */
static int loaded_elements(const char *name)
{
    static const char word[] = "_align";
    long fewest = 0;
    for (const char *at = name; (at = strstr(at, word));) {
        at += sizeof word - 1;
        if (*at == 'c')
            continue;
        at += *at == 'a' || *at == 'b';
        long elements = strtol(at, NULL, 10);
        if (elements >= 1 && elements <= MOST_ELEMENTS && (!fewest || elements < fewest))
            fewest = elements;
    }
    return (int)fewest;
}

/* By how much a product of a library's is slower than an aligned one, at most; 1 = it is none, or
 * aligned. Without tensor cores every kernel loads single elements. */
static double unaligned_factor(const struct prof_shape *shape)
{
    static const char *const tensor[] = {"tensorop", "tensor16", "tensor8", "gmma", NULL};
    const char *name = prof_shape_name(shape);
    if (!prof_name_is_library(name) || !prof_name_is_matmul(name) ||
        prof_name_is_convolution(name) || !has_any_word(name, tensor))
        return 1;
    int bytes = operand_bytes(name) * loaded_elements(name);
    return bytes == 0 || bytes >= ALIGNED_BYTES ? 1
           : bytes < COPIED_BYTES               ? UNCOPIED_FACTOR
                                                : COPIED_FACTOR;
}

static void unaligned_product(struct prof_judge *judge)
{
    const struct prof_shape *shape, *worst = NULL;
    int64_t count = 0, ns = 0;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (unaligned_factor(shape) <= 1)
            continue;
        count += shape->count;
        ns += shape->alone_ns;
        worst = worst && worst->sum_ns > shape->sum_ns ? worst : shape;
    }
    if (!worst)
        return;
    int elements = loaded_elements(prof_shape_name(worst));
    struct prof_draft *draft = prof_found(judge, 0.6);
    prof_numbers(draft, {"launches", (double)count}, {"kernel_ns", (double)ns},
                 {"kernel_share", prof_of_window(judge, ns)},
                 {"loaded_bytes", (double)(elements * operand_bytes(prof_shape_name(worst)))},
                 {"needed_bytes", ALIGNED_BYTES},
                 {"multiple", ALIGNED_BYTES / operand_bytes(prof_shape_name(worst))});
    prof_say(draft,
             "{launches|product|products} of matrices, {kernel_share} of the time, in kernels for "
             "rows that are not aligned, by their names: the costliest (%s) loads {loaded_bytes} "
             "at once. Tensor cores are fed at full speed with {needed_bytes}: by rows that are "
             "multiples of {multiple} elements long.",
             prof_short_name(prof_shape_name(worst)).text);
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));)
        if (unaligned_factor(shape) > 1)
            prof_claim_kernel(judge, draft, shape, 1 - 1 / unaligned_factor(shape));
    struct prof_spot spot = prof_longest_spot(judge, worst);
    prof_place(judge, draft, &spot);
}

/* ---- layouts that are converted -------------------------------------------------------------- */

/* PyTorch's batch norm takes this much longer with channels first, at most: on an H200 3.6x
 * backward, 1.7x forward. */
#define NORM_FACTOR 4.0

/* The part of a kernel that goes once all tensors have the channels last. */
static double part_of_layout(const struct prof_shape *shape)
{
    static const char *const conversions[] = {"nchwToNhwc", "nhwcToNchw", NULL};
    static const char *const norms[] = {"batch_norm_", NULL};
    static const char *const last[] = {"channels_last", NULL};
    const char *name = prof_shape_name(shape);
    if (has_any_word(name, conversions))
        return 1;
    return prof_name_library(name) == PROF_LIBRARY_ATEN && has_any_word(name, norms) &&
                   !has_any_word(name, last)
               ? 1 - 1 / NORM_FACTOR
               : 0;
}

static void layout_conversion(struct prof_judge *judge)
{
    /* Layers that compute with channels first only: they would convert instead. */
    static const char *const first_only[] = {"GroupNorm", NULL};
    const struct prof_shape *shape, *worst = NULL;
    int64_t count = 0, ns = 0, norm_ns = 0;
    bool stays = false;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        double part = part_of_layout(shape);
        stays |= has_any_word(prof_shape_name(shape), first_only);
        norm_ns += part > 0 && part < 1 ? shape->alone_ns : 0;
        if (part < 1)
            continue;
        count += shape->count;
        ns += shape->alone_ns;
        worst = worst && worst->sum_ns > shape->sum_ns ? worst : shape;
    }
    if (!worst || !prof_in_loop(judge, count, prof_steps(judge)))
        return;
    struct prof_draft *draft = prof_found(judge, stays ? 0.3 : 0.5);
    prof_numbers(draft, {"conversions", (double)count}, {"conversion_ns", (double)ns},
                 {"conversion_share", prof_of_window(judge, ns)});
    prof_say(draft, "cuDNN converts tensors between channels first (NCHW) and channels last (NHWC) "
                    "{conversions|time|times}");
    prof_say_per_iteration(judge, draft, "conversions_per_iteration", "conversions");
    prof_say(draft, ", {conversion_share} of the time: its convolutions for tensor cores compute "
                    "with channels last.");
    if (norm_ns) {
        prof_numbers(draft, {"norm_ns", (double)norm_ns},
                     {"norm_share", prof_of_window(judge, norm_ns)});
        prof_say(draft, " Batch norm, {norm_share} of the time, is faster so, too.");
    }
    if (stays)
        prof_say(draft, " Group norm computes with channels first only, and converts instead.");
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));)
        prof_claim_kernel(judge, draft, shape, part_of_layout(shape));
    struct prof_spot spot = prof_longest_spot(judge, worst);
    prof_place(judge, draft, &spot);
}

/* ---- registry -------------------------------------------------------------------------------- */

const struct prof_rule prof_rules_library[] = {
    {.page = {.id = "unaligned-product",
              .title = "Products of matrices whose rows are not aligned",
              .fires = "Kernels of a library that multiply on tensor cores and load fewer than 16 "
                       "bytes at once, by their names (align1 to align4 with 16 bits, align1 and "
                       "align2 with TF32).",
              .why = "Rows that are not a multiple of 16 bytes long cannot be loaded 16 bytes at "
                     "once, nor by the units that feed tensor cores of newer GPUs: the library "
                     "takes slower kernels.",
              .fix = "Pad the sizes of matrices to multiples of 64 elements, at least of 8. 8 are "
                     "enough in 16 bits, 4 in TF32, 16 in 8 bits.",
              .cuda = "Leading dimensions and pointers that are multiples of 16 bytes for "
                      "cublasGemmEx and cublasLtMatmul; CUTLASS with an alignment of 128 bits.",
              .pytorch = "A vocabulary, widths and batch sizes that are multiples of 64: "
                         "nn.Linear(width, 64 * ceil(n / 64)); torch.nn.functional.pad for data. "
                         "torch.compile pads where it finds it worth it "
                         "(torch._inductor.config.shape_padding).",
              .jax = "Widths, vocabularies and batches that are multiples of 64: jnp.pad.",
              .bound = "Three quarters of those kernels, of those that load 2 bytes or less at "
                       "once seven eighths (an aligned kernel was 6.4x as fast on an H200).",
              .limits = "How fast an aligned kernel would be depends on the sizes, which are not "
                        "known: products of few rows are held back by bytes and gain less. Names "
                        "of libraries other than cuBLAS and CUTLASS say nothing.",
              .needs = "kernels' names"},
     .judge = unaligned_product},
    {.page = {.id = "layout-conversion",
              .title = "cuDNN converts the layout of tensors around convolutions",
              .fires = "cuDNN's kernels nchwToNhwc and nhwcToNchw in the iterations.",
              .why = "Convolutions on tensor cores want the channels of a pixel side by side. Of "
                     "tensors with channels first cuDNN copies operands and results each time.",
              .fix = "Keep all tensors with channels last, from the input to the loss.",
              .cuda = "CUDNN_TENSOR_NHWC for tensors and filters (in cudnn_frontend: strides with "
                      "channels last).",
              .pytorch = "model.to(memory_format=torch.channels_last), and the input "
                         "`.to(memory_format=torch.channels_last)` (channels_last_3d for "
                         "volumes), with torch.autocast.",
              .jax = "dimension_numbers=(\"NHWC\", \"HWIO\", \"NHWC\") in "
                     "jax.lax.conv_general_dilated; flax's nn.Conv has channels last.",
              .bound = "All of those conversions, and three quarters of PyTorch's batch norm with "
                       "channels first (1.7x to 3.6x as slow on an H200).",
              .limits = "A layer that has no kernel for channels last converts by itself: known of "
                        "group norm, which lowers the confidence.",
              .needs = "kernels' names"},
     .judge = layout_conversion},
    {.judge = NULL},
};
