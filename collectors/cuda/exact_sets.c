/* The counters of --counters=exact. Every pass is one that the hardware counts while a kernel runs
 * once: nothing has to be replayed, and no memory saved and put back. That is why the tensor pipe's
 * FLOP are a pass for each type of number: CUPTI cannot count two of them together.
 *
 * Left out: integers (int8, int4, int1 of the tensor pipe), which are no FLOP, and chips on which
 * some type of number needs two passes (GB100). tests/counters checks each with CUPTI's host
 * library. */
#include <string.h>

#include "collectors/cuda/exact_sets.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SASS(name, op)                                                                             \
    {                                                                                              \
        name, "instruction", "sm__sass_thread_inst_executed_op_" op "_pred_on.sum"                 \
    }
#define TENSOR(name, what)                                                                         \
    {                                                                                              \
        name, "flop", "sm__ops_path_tensor_" what ".sum"                                           \
    }

static const struct exact_counter arithmetic[] = {
    SASS("fp64_add", "dadd"), SASS("fp64_mul", "dmul"), SASS("fp64_fma", "dfma"),
    SASS("fp32_add", "fadd"), SASS("fp32_mul", "fmul"), SASS("fp32_fma", "ffma"),
    SASS("fp16_add", "hadd"), SASS("fp16_mul", "hmul"), SASS("fp16_fma", "hfma"),
};
static const struct exact_counter memory[] = {
    {"dram_read_bytes", "byte", "dram__bytes_read.sum"},
    {"dram_write_bytes", "byte", "dram__bytes_write.sum"},
    {"l2_bytes", "byte", "lts__t_bytes.sum"},
    {"instructions", "warp-instruction", "sm__inst_executed.sum"},
    {EXACT_TENSOR, "warp-instruction", "sm__inst_executed_pipe_tensor.sum"},
};
static const struct exact_counter fp64[] = {TENSOR("tensor_fp64", "src_fp64")};
static const struct exact_counter bf16[] = {TENSOR("tensor_bf16", "src_bf16_dst_fp32")};
static const struct exact_counter tf32[] = {TENSOR("tensor_tf32", "src_tf32_dst_fp32")};
static const struct exact_counter fp8[] = {TENSOR("tensor_fp8", "src_fp8")};
static const struct exact_counter fp16_to_16[] = {TENSOR("tensor_fp16", "src_fp16_dst_fp16")};
static const struct exact_counter fp16_to_32[] = {TENSOR("tensor_fp16_fp32", "src_fp16_dst_fp32")};
/* GH100 has the two together only, in two passes; the instructions apart are one each. */
static const struct exact_counter hopper_wgmma[] = {
    TENSOR("tensor_fp16_wgmma", "op_hgmma_src_fp16")};
static const struct exact_counter hopper_to_16[] = {
    TENSOR("tensor_fp16", "op_hmma_src_fp16_dst_fp16")};
static const struct exact_counter hopper_to_32[] = {
    TENSOR("tensor_fp16_fp32", "op_hmma_src_fp16_dst_fp32")};

#define PASS(list, tensor)                                                                         \
    {                                                                                              \
        list, COUNT(list), tensor                                                                  \
    }
#define EVERY_CHIP                                                                                 \
    PASS(memory, false), PASS(arithmetic, false), PASS(bf16, true), PASS(tf32, true),              \
        PASS(fp64, true)

static const struct exact_pass ga100[] = {EVERY_CHIP, PASS(fp16_to_32, true),
                                          PASS(fp16_to_16, true)};
static const struct exact_pass ad102[] = {EVERY_CHIP, PASS(fp16_to_32, true),
                                          PASS(fp16_to_16, true), PASS(fp8, true)};
static const struct exact_pass gh100[] = {EVERY_CHIP, PASS(hopper_wgmma, true),
                                          PASS(hopper_to_32, true), PASS(hopper_to_16, true),
                                          PASS(fp8, true)};

static const struct {
    const char *prefix; /* of the chip's name */
    const struct exact_pass *passes;
    size_t count;
} chips[] = {
    {"GA10", ga100, COUNT(ga100)},
    {"AD10", ad102, COUNT(ad102)},
    {"GH100", gh100, COUNT(gh100)},
};

_Static_assert(COUNT(arithmetic) <= EXACT_MAX_COUNTS && COUNT(gh100) <= EXACT_MAX_PASSES, "room");

const struct exact_pass *exact_passes_of(const char *chip, size_t *count)
{
    for (size_t i = 0; i < COUNT(chips); i++) {
        if (strncmp(chip, chips[i].prefix, strlen(chips[i].prefix)) != 0)
            continue;
        *count = chips[i].count;
        return chips[i].passes;
    }
    *count = 0;
    return NULL;
}
