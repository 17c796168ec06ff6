/* The variants, in the order in which they are measured. */
#include "workloads/rollout/workload.h"

const struct variant variants[] = {
    {"fp32", "fields and weights in float", STORAGE_F32, .set = SET_PRECISION},
    {"fp16", "fields and weights in half, sums in float", STORAGE_F16, .set = SET_PRECISION},
    {"bf16", "fields and weights in bfloat16, sums in float", STORAGE_BF16, .set = SET_PRECISION},
    {"conv-direct", "convolutions as the formula says, one item per output (fp32)", STORAGE_F32,
     CONVOLUTION_DIRECT, .set = SET_CONVOLUTION},
    {"conv-tiled", "our convolutions by tiles (fp32)", STORAGE_F32, CONVOLUTION_TILED,
     .set = SET_CONVOLUTION},
    {"conv-cudnn", "convolutions by cuDNN, its heuristic's algorithm (fp32)", STORAGE_F32,
     CONVOLUTION_CUDNN, .set = SET_CONVOLUTION},
    {"conv-cudnn-best", "convolutions by cuDNN, the best of all its algorithms (fp32)", STORAGE_F32,
     CONVOLUTION_CUDNN_BEST, .set = SET_CONVOLUTION},
    {"conv-cudnn-fp16", "convolutions by cuDNN, the best of all its algorithms (fp16)", STORAGE_F16,
     CONVOLUTION_CUDNN_BEST, .set = SET_CONVOLUTION},
    {"instance-norm", "each channel normalised by itself (fp16)", STORAGE_F16, .set = SET_NORM},
    {"group-norm", "channels normalised in --norm-groups groups (fp16)", STORAGE_F16,
     .group_norm = true, .set = SET_NORM},
    {"batch-2", "two initial states at a time (fp16)", STORAGE_F16, .batch = 2, .set = SET_BATCH_2},
    {"batch-3", "three initial states at a time (fp16)", STORAGE_F16, .batch = 3,
     .set = SET_BATCH_3},
    {"eager", "every operation launched in every step (fp16)", STORAGE_F16, .set = SET_GRAPH},
    {"compile-graph", "a step recorded once, replayed with one call (fp16)", STORAGE_F16,
     .graph = true, .set = SET_GRAPH},
    {"beyond-cache", "fields of four times the device's cache, a few steps (fp16)", STORAGE_F16,
     .set = SET_BEYOND_CACHE},
};
const size_t variant_count = sizeof variants / sizeof variants[0];

const char *const memory_names[MEMORY_KINDS] = {"states", "weights", "activations", "workspace",
                                                "trajectories"};
const char *const part_names[PART_KINDS] = {"convolution", "norm", "activation", "noise", "step"};
