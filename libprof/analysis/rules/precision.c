/* The rule about numbers that are wider than they might be. Which type a kernel computes in is seen
 * by counters, else known by its name, as libraries and compilers write it; else it is not known.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libprof/analysis/rules/judge.h"
#include "libprof/gpu/names.h"

/* Of the roof of 32 bits: below, neither arithmetic nor bytes hold the kernel back, and narrower
 * numbers alone change little. */
#define FAR 0.25

enum evidence {
    NONE,
    MAYBE, /* held back by what narrower numbers halve, of an unknown type */
    NAMED, /* of 32 bits or more by its name, held back by something else */
    SURE,  /* computes in 32 bits or more, and that counts */
};

struct narrowed {
    int64_t time_ns[SURE + 1], kernels[SURE + 1];
    const struct prof_roofline_point *worst[SURE + 1];
    struct prof_spots spots[SURE + 1];
    bool any, moves_only;
};

static bool is_wide_pipe(const struct prof_roofline_point *point)
{
    return point->pipe == PROF_CEILING_FP32 || point->pipe == PROF_CEILING_FP64;
}

static enum evidence evidence_of(const struct prof_shape *shape,
                                 const struct prof_roofline_point *point)
{
    enum prof_precision named = prof_name_precision(shape->config ? shape->config->name : NULL);
    if (named == PROF_PRECISION_NARROW || !point ||
        (point->pipe != PROF_CEILINGS && !is_wide_pipe(point)))
        return NONE;
    bool counted = point->pipe != PROF_CEILINGS && !point->pipe_assumed;
    bool near = point->pipe != PROF_CEILINGS && point->pipe_share >= FAR;
    bool bound = point->bound == PROF_BOUND_DRAM || point->bound == PROF_BOUND_COMPUTE;
    if (near && (counted || named == PROF_PRECISION_WIDE))
        return SURE;
    if (is_wide_pipe(point) && (bound || near))
        return MAYBE;
    return named == PROF_PRECISION_WIDE ? NAMED : NONE;
}

static void find_wide(struct prof_judge *judge, struct narrowed *found)
{
    const struct prof_shape *shape;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        const struct prof_roofline_point *point = prof_roof_of(judge, shape);
        enum evidence evidence = evidence_of(shape, point);
        bool placed = point && (point->bound != PROF_BOUND_NONE || point->flop_source);
        found->any |= placed;
        found->moves_only |=
            placed && point->bound == PROF_BOUND_DRAM && point->pipe == PROF_CEILINGS;
        if (!evidence)
            continue;
        found->time_ns[evidence] += shape->alone_ns;
        found->kernels[evidence]++;
        const struct prof_roofline_point **worst = &found->worst[evidence];
        if (!*worst || point->time_ns > (*worst)->time_ns)
            *worst = point;
        prof_spots_add(&found->spots[evidence], prof_longest_spot(judge, shape));
    }
}

/* What is computed in a second with 16 bits at most, products of matrices as the vendor's library
 * computes them; NaN = not known. */
static double narrow_rate(const struct prof_judge *judge, const struct prof_roofline_point *point)
{
    static const enum prof_ceiling_kind kinds[] = {PROF_CEILING_MATMUL_FP16,
                                                   PROF_CEILING_TENSOR_FP16, PROF_CEILING_FP16};
    bool product = !isnan(point->matmul_ceiling);
    for (size_t i = product ? 0u : 1u; i < sizeof kinds / sizeof kinds[0]; i++) {
        const struct prof_ceiling *ceiling =
            prof_ceiling_find(judge->ceilings, judge->device->id, kinds[i]);
        if (ceiling)
            return ceiling->value;
    }
    return NAN;
}

/* Kernels that mostly move bytes keep half of their time. Those that mostly compute keep what their
 * arithmetic takes in 16 bits, or half of their bytes at the roof that those have. */
static double part_narrower(const struct prof_judge *judge, const struct prof_roofline_point *point)
{
    double rate =
        isnan(point->flop_rate) ? point->pipe_share * point->pipe_ceiling : point->flop_rate;
    double bytes = fmax(point->roofs[PROF_ROOF_DRAM].rate, point->roofs[PROF_ROOF_L2].rate);
    double arithmetic = rate / narrow_rate(judge, point);
    if (isnan(arithmetic) || rate < PROF_STREAMING * bytes)
        return 0.5;
    double kept = fmax(arithmetic, 0.5 * fmax(point->roofs[PROF_ROOF_DRAM].share,
                                              point->roofs[PROF_ROOF_L2].share));
    return 1 - fmin(kept, 1);
}

static void claim_narrower(struct prof_judge *judge, struct prof_draft *draft, enum evidence least)
{
    const struct prof_shape *shape;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        const struct prof_roofline_point *point = prof_roof_of(judge, shape);
        enum evidence evidence = evidence_of(shape, point);
        if (evidence >= least)
            prof_claim_kernel(judge, draft, shape, part_narrower(judge, point));
    }
}

/* ---- products in 32 bits, by their names ---- */

/* Tensor cores multiply in TF32 this much faster than the pipe of 32 bits (7.4 on an H200, 8 on an
 * A100), and in BF16 and FP16 twice as fast as that. */
#define TF32_FACTOR 8.0
#define BF16_FACTOR 16.0

static bool is_wide_product(const struct prof_shape *shape)
{
    const char *name = shape->config ? shape->config->name : NULL;
    return shape->kind == PROF_OP_KERNEL &&
           (prof_name_is_matmul(name) || prof_name_is_convolution(name)) &&
           prof_name_is_library(name) && prof_name_precision(name) == PROF_PRECISION_WIDE &&
           !strcasestr(name, "dgemm") && !strcasestr(name, "dcudnn") && !strcasestr(name, "f64") &&
           !strcasestr(name, "double");
}

/* A library that multiplies in 32 bits without tensor cores was not allowed to use TF32. */
static bool wide_products(struct prof_judge *judge)
{
    const struct prof_shape *shape, *worst = NULL;
    int64_t ns = 0, kernels = 0;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (!is_wide_product(shape))
            continue;
        ns += shape->alone_ns;
        kernels++;
        worst = worst && worst->sum_ns > shape->sum_ns ? worst : shape;
    }
    if (!worst || judge->device->device->compute_major < 8)
        return false;
    struct prof_draft *draft = prof_found(judge, 0.6);
    draft->most = PROF_SEVERITY_WARNING; /* a name says so, and the fix changes results */
    prof_numbers(draft, {"kernels", (double)kernels}, {"kernel_ns", (double)ns},
                 {"kernel_share", prof_of_window(judge, ns)}, {"most_factor", TF32_FACTOR},
                 {"bf16_factor", BF16_FACTOR});
    prof_say(
        draft,
        "{kernels|kernel|kernels} of a library, {kernel_share} of the time, multiply matrices or "
        "convolve in FP32 without tensor cores, by their names (the costliest %s): in TF32, which "
        "rounds the factors and adds up in FP32, up to {most_factor}x faster, in BF16 up to "
        "{bf16_factor}x.",
        prof_short_name(prof_shape_name(worst)).text);
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));)
        if (is_wide_product(shape))
            prof_claim_kernel(judge, draft, shape, 1 - 1 / BF16_FACTOR);
    struct prof_spot spot = prof_longest_spot(judge, worst);
    prof_place(judge, draft, &spot);
    return true;
}

static void low_precision(struct prof_judge *judge)
{
    const struct prof_device *device = judge->device->device;
    struct narrowed found = {0};
    if (!device || device->compute_major < 7) {
        prof_abstain(judge, "needs a GPU with half-precision units (compute capability 7.0)");
        return;
    }
    find_wide(judge, &found);
    if (!found.worst[SURE] && wide_products(judge))
        return;
    if (!found.any)
        prof_abstain(judge, "needs declared work or counters, and the device's ceilings");
    else if (found.moves_only && !found.worst[SURE] && !found.worst[MAYBE])
        prof_abstain(judge, "counters show next to no arithmetic where bytes take the time");
    bool sure = found.worst[SURE] != NULL;
    enum evidence told = sure ? SURE : MAYBE;
    const struct prof_roofline_point *worst = found.worst[told];
    if (!worst)
        return;
    int64_t others = sure ? found.kernels[NAMED] + found.kernels[MAYBE] : 0;
    int64_t with_others = found.time_ns[SURE] + found.time_ns[MAYBE] + found.time_ns[NAMED];
    struct prof_draft *draft = prof_found(judge, sure ? 0.4 : 0.2);
    if (worst->pipe_assumed)
        draft->most = PROF_SEVERITY_WARNING; /* a name says so, and the fix changes results */
    prof_numbers(draft, {"kernels", (double)found.kernels[told]},
                 {"kernel_ns", (double)found.time_ns[told]},
                 {"kernel_share", prof_of_window(judge, found.time_ns[told])},
                 {"pipe_share", worst->pipe_share});
    if (sure)
        prof_say(
            draft,
            "Arithmetic in FP32 or wider in {kernels|kernel|kernels}, {kernel_share} of the time");
    else
        prof_say(draft,
                 "Bytes or arithmetic limit {kernels|kernel|kernels}, {kernel_share} of the time");
    if (others) {
        prof_numbers(draft, {"likely_kernels", (double)others},
                     {"with_likely_share", prof_of_window(judge, with_others)});
        prof_say(draft, " ({with_likely_share} with {likely_kernels} likely so)");
    }
    prof_say(draft, ", the costliest %s", prof_short_name(worst->name).text);
    if (sure)
        prof_say(draft, " at {pipe_share} of what it allows: in FP16 or BF16 tensor cores are many "
                        "times as fast, and bytes halve, where the result allows.");
    else
        prof_say(draft, ". If it works in FP32, which nothing recorded shows, FP16 or BF16 halve "
                        "both, where the result allows.");
    claim_narrower(judge, draft, sure ? NAMED : MAYBE);
    prof_places(judge, draft, &found.spots[told]);
}

/* ---- registry -------------------------------------------------------------------------------- */

const struct prof_rule prof_rules_precision[] = {
    {.page =
         {.id = "low-precision",
          .title = "32-bit arithmetic where 16 bits might do",
          .fires = "Kernels that compute in 32 bits or more at a quarter or more of what those "
                   "allow, on a GPU of compute capability 7.0 or newer; counters of the pipes say "
                   "so, or declared FLOP and the kernel's name (f32, float, sgemm). Without "
                   "either, a library's products and convolutions that are FP32 by their "
                   "names. As info kernels that memory or arithmetic holds back, where neither "
                   "gives the type. "
                   "Kernels in which counters saw next to no arithmetic are left out.",
          .why = "Half the bytes and twice (tensor cores: many times) the arithmetic rate.",
          .fix = "Store in bfloat16 or half, add up in 32 bits, and compare the "
                 "results.",
          .cuda = "cublasGemmEx with CUDA_R_16BF and CUBLAS_COMPUTE_32F; TF32 by "
                  "cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH); "
                  "__nv_bfloat162 or __half2 in kernels of your own.",
          .opencl = "half with cl_khr_fp16; vload_half and vstore_half where only "
                    "storage is half.",
          .pytorch = "torch.autocast(\"cuda\", torch.bfloat16) around the forward pass; "
                     "or torch.set_float32_matmul_precision(\"high\"), and for "
                     "convolutions torch.backends.cudnn.allow_tf32 = True.",
          .jax = "Arguments and weights as jnp.bfloat16; or "
                 "jax.default_matmul_precision(\"tensorfloat32\"), and not \"highest\" or "
                 "\"float32\".",
          .bound = "Half of the time alone of kernels below 4 FLOP per byte; of the others all but "
                   "what their FLOP take on tensor cores in 16 bits, or half their bytes. With "
                   "them all others that are of 32 bits by their names. 15/16 of a library's "
                   "products that are known by their names only.",
          .limits = "Whether the accuracy suffices only the program knows. Where only the kernel's "
                    "name gives the type, it may be wrong; integers are multiplied in the pipe of "
                    "32 bits too.",
          .needs = "declared work or counters, and the device's ceilings"},
     .judge = low_precision},
    {.judge = NULL},
};
