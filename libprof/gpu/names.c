/* What a kernel's name says about the type it computes in, its library and its operation, and what
 * NVTX ranges are by theirs. */
#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "libprof/base/cxx_name.h"
#include "libprof/gpu/collective_name.h"
#include "libprof/gpu/names.h"

/* Of CUDA, PyTorch, Triton, cuBLAS, cuDNN and CUTLASS; the instruction shapes are those of mma. */
static const struct {
    const char *word;
    enum prof_precision precision;
} words[] = {
    {"half", PROF_PRECISION_NARROW},       {"half2", PROF_PRECISION_NARROW},
    {"fp16", PROF_PRECISION_NARROW},       {"f16", PROF_PRECISION_NARROW},
    {"bf16", PROF_PRECISION_NARROW},       {"bfloat16", PROF_PRECISION_NARROW},
    {"bfloat162", PROF_PRECISION_NARROW},  {"hgemm", PROF_PRECISION_NARROW},
    {"fp8", PROF_PRECISION_NARROW},        {"fp6", PROF_PRECISION_NARROW},
    {"fp4", PROF_PRECISION_NARROW},        {"tf32", PROF_PRECISION_NARROW},
    {"tf32f32", PROF_PRECISION_NARROW},    {"tf32tf32", PROF_PRECISION_NARROW},
    {"f16f16", PROF_PRECISION_NARROW},     {"f16f32", PROF_PRECISION_NARROW},
    {"bf16f32", PROF_PRECISION_NARROW},    {"bf16bf16", PROF_PRECISION_NARROW},
    {"hmma", PROF_PRECISION_NARROW},       {"wgmma", PROF_PRECISION_NARROW},
    {"tensorop", PROF_PRECISION_NARROW},   {"s16816gemm", PROF_PRECISION_NARROW},
    {"h16816gemm", PROF_PRECISION_NARROW}, {"s1688gemm", PROF_PRECISION_NARROW},
    {"h1688gemm", PROF_PRECISION_NARROW},  {"h884gemm", PROF_PRECISION_NARROW},
    {"s884gemm", PROF_PRECISION_NARROW},   {"hcudnn", PROF_PRECISION_NARROW},
    {"h884cudnn", PROF_PRECISION_NARROW},  {"s884cudnn", PROF_PRECISION_NARROW},
    {"h1688cudnn", PROF_PRECISION_NARROW}, {"s1688cudnn", PROF_PRECISION_NARROW},
    {"float", PROF_PRECISION_WIDE},        {"float2", PROF_PRECISION_WIDE},
    {"float4", PROF_PRECISION_WIDE},       {"fp32", PROF_PRECISION_WIDE},
    {"f32", PROF_PRECISION_WIDE},          {"f32f32", PROF_PRECISION_WIDE},
    {"double", PROF_PRECISION_WIDE},       {"fp64", PROF_PRECISION_WIDE},
    {"f64", PROF_PRECISION_WIDE},          {"f64f64", PROF_PRECISION_WIDE},
    {"sgemm", PROF_PRECISION_WIDE},        {"dgemm", PROF_PRECISION_WIDE},
    {"ffma", PROF_PRECISION_WIDE},         {"simt", PROF_PRECISION_WIDE},
    {"scudnn", PROF_PRECISION_WIDE},       {"dcudnn", PROF_PRECISION_WIDE},
};

/* Floating point of 4, 6 or 8 bits is named after its exponent and mantissa: float_e2m1_t,
 * Float4_e2m1fn_x2 (two of them in a byte; float4 is CUDA's vector of four floats), ue8m0xe4m3. */
static bool names_a_small_type(const char *word, size_t length)
{
    static const char *const types[] = {"e2m1", "e2m3", "e3m2", "e4m3", "e5m2", "e8m0"};
    for (size_t i = 0; i + 4 <= length; i++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            if (!strncasecmp(word + i, types[t], 4))
                return true;
    return false;
}

static enum prof_precision word_precision(const char *word, size_t length)
{
    if (names_a_small_type(word, length))
        return PROF_PRECISION_NARROW;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i].word) == length && !strncasecmp(words[i].word, word, length))
            return words[i].precision;
    return PROF_PRECISION_UNKNOWN;
}

enum prof_precision prof_name_precision(const char *name)
{
    enum prof_precision found = PROF_PRECISION_UNKNOWN;
    if (name && strstr(name, "nvjet")) /* cuBLAS's for tensor cores; letters stand for types */
        return PROF_PRECISION_NARROW;
    while (name && *name) {
        size_t length = 0;
        /* Mangled names put a word's length in front of it: no word here begins with a digit. */
        while (isdigit((unsigned char)*name))
            name++;
        while (isalnum((unsigned char)name[length]))
            length++;
        enum prof_precision precision = length ? word_precision(name, length) : found;
        if (precision == PROF_PRECISION_NARROW)
            return precision;
        found = precision ? precision : found;
        name += length;
        while (*name && !isalnum((unsigned char)*name))
            name++;
    }
    return found;
}

static bool is_whole_word(const char *at, const char *name, size_t length)
{
    return (at == name || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[length]);
}

bool prof_name_is_matmul(const char *name)
{
    /* whole: as a word of its own only, since "mm" stands in many */
    static const struct {
        const char *text;
        bool whole;
    } all[] = {{"gemm", false}, {"matmul", false}, {"nvjet", false},
               {"mm", true},    {"bmm", true},     {"addmm", true}};
    for (size_t i = 0; name && i < sizeof all / sizeof all[0]; i++) {
        const char *at = strcasestr(name, all[i].text);
        for (; at; at = strcasestr(at + 1, all[i].text))
            if (!all[i].whole || is_whole_word(at, name, strlen(all[i].text)))
                return true;
    }
    return false;
}

/* Is one of `words`, ended by NULL, in the name, whatever its case? */
static bool holds_one(const char *name, const char *const *list)
{
    for (; name && *list; list++)
        if (strcasestr(name, *list))
            return true;
    return false;
}

/* Words in the names of a library's kernels: the first row that fits decides. A name `begins` after
 * its return type. cuBLAS brings CUTLASS's kernels under "Kernel2<cutlass_"; PyTorch's compiler and
 * XLA name what they made after what it computes. */
static const struct {
    enum prof_library library;
    const char *text;
    bool begins;
} library_words[] = {
    {PROF_LIBRARY_CUDNN, "cudnn", false},
    {PROF_LIBRARY_CUDNN, "_convolve_sgemm", false},
    {PROF_LIBRARY_CUDNN, "convolve_common_engine", false},
    {PROF_LIBRARY_CUDNN, "2d_grouped_direct_kernel", false},
    {PROF_LIBRARY_CUDNN, "wgrad_alg", false},
    {PROF_LIBRARY_CUDNN, "dgrad_engine", false},
    {PROF_LIBRARY_CUDNN, "dgrad2d_", true},
    {PROF_LIBRARY_CUDNN, "wgrad2d_", true},
    {PROF_LIBRARY_CUDNN, "fft2d_r2c_", true},
    {PROF_LIBRARY_CUDNN, "fft2d_c2r_", true},
    {PROF_LIBRARY_CUDNN, "pointwise_mult_and_sum_complex", true},
    {PROF_LIBRARY_CUDNN, "flip_filter", true},
    {PROF_LIBRARY_CUDNN, "_xmma_fprop", false},
    {PROF_LIBRARY_CUDNN, "_xmma_dgrad", false},
    {PROF_LIBRARY_CUDNN, "_xmma_wgrad", false},
    {PROF_LIBRARY_CUDNN, "_elementWise_fp", false},
    {PROF_LIBRARY_CUDNN, "_elementWise_bp", false},
    {PROF_LIBRARY_CUDNN, "RNN_blockPersist", true},
    {PROF_LIBRARY_CUDNN, "elemWiseRNNcell", false},
    {PROF_LIBRARY_CUFFT, "cufft", false},
    {PROF_LIBRARY_CUFFT, "vector_fft", true},
    {PROF_LIBRARY_CUFFT, "regular_fft", true},
    {PROF_LIBRARY_CUSOLVER, "cusolver", false},
    {PROF_LIBRARY_CUSOLVER, "getrf_wo_pivot_params_", false},
    {PROF_LIBRARY_CUBLAS, "cublas", false},
    {PROF_LIBRARY_CUBLAS, "kernel_trsm_l_mul", true},
    {PROF_LIBRARY_CUBLAS, "nvjet_", true},
    {PROF_LIBRARY_CUBLAS, "ampere_", true},
    {PROF_LIBRARY_CUBLAS, "volta_", true},
    {PROF_LIBRARY_CUBLAS, "turing_", true},
    {PROF_LIBRARY_CUBLAS, "hopper_", true},
    {PROF_LIBRARY_CUBLAS, "maxwell_", true},
    {PROF_LIBRARY_CUBLAS, "gemmSN_", true},
    {PROF_LIBRARY_CUBLAS, "gemv2T_", true},
    {PROF_LIBRARY_CUBLAS, "gemv2N_", true},
    {PROF_LIBRARY_CUBLAS, "sgemm_largek", true},
    {PROF_LIBRARY_CUBLAS, "_xmma_", false},
    {PROF_LIBRARY_CUBLAS, "<cutlass_", false},
    {PROF_LIBRARY_FLASH, "fmha_", false},
    {PROF_LIBRARY_FLASH, "flash_fwd", false},
    {PROF_LIBRARY_FLASH, "flash_bwd", false},
    {PROF_LIBRARY_INDUCTOR, "triton_poi_", true},
    {PROF_LIBRARY_INDUCTOR, "triton_red_", true},
    {PROF_LIBRARY_INDUCTOR, "triton_per_", true},
    {PROF_LIBRARY_INDUCTOR, "triton_tem_", true},
    {PROF_LIBRARY_XLA, "triton_gemm", true},
    {PROF_LIBRARY_XLA, "triton_softmax", true},
    {PROF_LIBRARY_XLA, "gemm_fusion", true},
    {PROF_LIBRARY_XLA, "input_", true}, /* with "_fusion": input_add_reduce_fusion_5 */
    {PROF_LIBRARY_XLA, "loop_", true},  /* likewise */
    {PROF_LIBRARY_XLA, "wrapped_", true},
    {PROF_LIBRARY_NCCL, "nccl", false},
    {PROF_LIBRARY_ATEN, "at::native", false},
    {PROF_LIBRARY_ATEN, "2at6native", false},
    {PROF_LIBRARY_ATEN, "at_cuda_detail", false},
    {PROF_LIBRARY_ATEN, "c10::", false},
    {PROF_LIBRARY_CUB, "cub::", false},
    {PROF_LIBRARY_CUB, "thrust::", false},
    {PROF_LIBRARY_CUTLASS, "cutlass", false},
};

/* Types of these libraries are arguments of any kernel: c10::Half of an extension of PyTorch,
 * cub::Sum. The word says something only in the kernel's own name, and c10 also behind an anonymous
 * namespace, in which ATen has its kernels. */
static bool is_only_an_argument(const char *own, const char *text)
{
    static const char *const types[] = {"c10::", "cub::", "thrust::", "cutlass"};
    bool is_type = false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        is_type |= !strcmp(text, types[i]);
    const char *end = own + strcspn(own, "<("), *at = strcasestr(own, text);
    return is_type && end != own && at && at >= end;
}

enum prof_library prof_name_library(const char *name)
{
    const char *own = name ? prof_name_without_type(name) : NULL;
    for (size_t i = 0; own && i < sizeof library_words / sizeof library_words[0]; i++) {
        const char *text = library_words[i].text;
        bool fits = library_words[i].begins ? !strncmp(own, text, strlen(text))
                                            : strcasestr(name, text) != NULL;
        bool fuses = !strcmp(text, "loop_") || !strcmp(text, "input_");
        if (fits && (!fuses || strstr(own, "_fusion")) && !is_only_an_argument(own, text))
            return library_words[i].library;
    }
    return PROF_LIBRARY_NONE;
}

const char *prof_library_text(enum prof_library library)
{
    static const char *const texts[] = {
#define PROF_LIBRARY_TEXT(id, text) text,
        PROF_LIBRARIES(PROF_LIBRARY_TEXT)
#undef PROF_LIBRARY_TEXT
    };
    return texts[library];
}

/* NVIDIA's names: implicit products of matrices (fprop, dgrad, wgrad; scudnn is cuDNN's sgemm),
 * Winograd's transforms and Fourier's. Groups of one channel each gain nothing from a product's
 * units. */
bool prof_name_is_convolution(const char *name)
{
    static const char *const parts[] = {
        "fprop",       "dgrad",    "wgrad",  "convolve",
        "scudnn",      "winograd", "fft2d_", "pointwise_mult_and_sum_complex",
        "flip_filter", NULL};
    static const char *const others[] = {"grouped_direct", "flash", NULL};
    return prof_name_library(name) == PROF_LIBRARY_CUDNN && holds_one(name, parts) &&
           !holds_one(name, others);
}

bool prof_name_is_vendor(const char *name)
{
    enum prof_library library = prof_name_library(name);
    return library == PROF_LIBRARY_CUBLAS || library == PROF_LIBRARY_CUDNN ||
           library == PROF_LIBRARY_CUFFT || library == PROF_LIBRARY_CUSOLVER;
}

bool prof_name_is_library(const char *name)
{
    enum prof_library library = prof_name_library(name);
    return library != PROF_LIBRARY_NONE && library != PROF_LIBRARY_CUTLASS;
}

bool prof_name_is_streaming(const char *name)
{
    static const char *const own[] = {"softmax_warp_", "cunn_SoftMax", "triton_poi_",
                                      "triton_red_",   "triton_per_",  NULL};
    static const char *const holds[] = {"elementwise_kernel", "reduce_kernel",  "softmax",
                                        "layer_norm",         "RowwiseMoments", "LayerNormForward",
                                        "CatArray",           "dropout",        "masked_fill",
                                        "DeviceReduce",       "batch_norm",     NULL};
    return holds_one(name, own) || (prof_name_is_library(name) && holds_one(name, holds));
}

bool prof_name_is_softmax(const char *name)
{
    static const char *const logarithms[] = {"LogSoftMax", "log_softmax", NULL};
    const char *warp =
        name ? strstr(name, "softmax_warp_") : NULL; /* <in, out, sum, size, log, ..> */
    for (int comma = 0; warp && comma < 4; comma++)
        warp = (warp = strchr(warp, ',')) ? warp + 1 : NULL;
    return name && strcasestr(name, "softmax") && !holds_one(name, logarithms) &&
           !(warp && !strncmp(warp, " true", 5));
}

/* ---- NVTX ranges ----------------------------------------------------------------------------- */

static const char *const iteration_names[] = {
    "step",     "iteration",    "iter",      "batch",          "minibatch",    "trainstep",
    "timestep", "trainingstep", "trainiter", "trainiteration", "profilerstep",
};

bool prof_simplify_range_name(const char *text, char out[PROF_RANGE_NAME_ROOM])
{
    size_t used = 0;
    if (strlen(text) >= PROF_RANGE_NAME_ROOM)
        return false;
    for (; *text; text++) {
        if (isalnum((unsigned char)*text))
            out[used++] = (char)tolower((unsigned char)*text);
    }
    while (used && isdigit((unsigned char)out[used - 1]))
        used--;
    out[used] = 0;
    return true;
}

bool prof_range_name_is_iteration(const char *simple)
{
    for (size_t i = 0; i < sizeof iteration_names / sizeof *iteration_names; i++) {
        if (!strcmp(simple, iteration_names[i]))
            return true;
    }
    return false;
}

bool prof_range_name_is_operator(const char *name)
{
    static const char *const spaces[] = {
        "aten::",
        "autograd::",
        "c10::",
        "c10d::",
        "c10d_functional::",
        "_c10d_functional::",
        "fbgemm::",
        "gloo:",
        "inductor::",
        "mkldnn::",
        "nccl:",
        "onednn::",
        "prim::",
        "prims::",
        "profiler::",
        "quantized::",
        "record_param_comms",
        "torch::",
        "torchvision::",
        "xformers::",
    };
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (!strncmp(name, spaces[i], strlen(spaces[i])))
            return true;
    const char *backward = strstr(name, "Backward");
    return isupper((unsigned char)*name) && backward &&
           !backward[8 + strspn(backward + 8, "0123456789")];
}

/* ---- collectives ----------------------------------------------------------------------------- */

/* What the names of kernels and NVTX ranges say about collective operations, in one place: used by
 * merging, the analyses of ranks and the rules. Names are NCCL's own (src/device and
 * src/collectives.cc of its releases), MPI's, and perfkit's for programs that declare theirs. */

const char *prof_collective_name(enum prof_collective operation)
{
    static const char *const names[] = {
#define X(operation, name) name,
        PROF_COLLECTIVE_MAP(X)
#undef X
    };
    return (unsigned)operation < PROF_COLLECTIVES ? names[operation] : "other";
}

/* Words as NCCL and MPI write them, but for case. Longer ones first where one begins another. */
static const struct {
    const char *word;
    enum prof_collective operation;
} collective_words[] = {
    {"AllReduce", PROF_COLLECTIVE_ALL_REDUCE},
    {"AllGather", PROF_COLLECTIVE_ALL_GATHER},
    {"AllGatherv", PROF_COLLECTIVE_ALL_GATHER},
    {"ReduceScatter", PROF_COLLECTIVE_REDUCE_SCATTER},
    {"Reduce_scatter", PROF_COLLECTIVE_REDUCE_SCATTER},
    {"Reduce_scatter_block", PROF_COLLECTIVE_REDUCE_SCATTER},
    {"Broadcast", PROF_COLLECTIVE_BROADCAST},
    {"Bcast", PROF_COLLECTIVE_BROADCAST},
    {"Reduce", PROF_COLLECTIVE_REDUCE},
    {"AllToAll", PROF_COLLECTIVE_ALL_TO_ALL},
    {"AllToAllv", PROF_COLLECTIVE_ALL_TO_ALL},
    {"Gather", PROF_COLLECTIVE_GATHER},
    {"Gatherv", PROF_COLLECTIVE_GATHER},
    {"Scatter", PROF_COLLECTIVE_SCATTER},
    {"Scatterv", PROF_COLLECTIVE_SCATTER},
    {"Barrier", PROF_COLLECTIVE_BARRIER},
    {"SendRecv", PROF_COLLECTIVE_SEND_RECV},
    {"Send", PROF_COLLECTIVE_SEND},
    {"Recv", PROF_COLLECTIVE_RECV},
    {"Wait", PROF_COLLECTIVE_WAIT},
    {"Waitall", PROF_COLLECTIVE_WAIT},
    {"Waitany", PROF_COLLECTIVE_WAIT},
    {"Waitsome", PROF_COLLECTIVE_WAIT},
    {"PutSignal", PROF_COLLECTIVE_OTHER},
    {"Signal", PROF_COLLECTIVE_OTHER},
    {"WaitSignal", PROF_COLLECTIVE_OTHER},
    {"Generic", PROF_COLLECTIVE_OTHER},
};
#define WORDS (sizeof collective_words / sizeof *collective_words)

static enum prof_collective whole_word(const char *text, size_t length)
{
    for (size_t i = 0; i < WORDS; i++)
        if (strlen(collective_words[i].word) == length &&
            strncasecmp(text, collective_words[i].word, length) == 0)
            return collective_words[i].operation;
    return PROF_COLLECTIVE_NONE;
}

/* Kernels before 2.8 are ncclAllReduceRingLLKernel_sum_f32: the longest word that it begins with.
 */
static enum prof_collective first_word(const char *text)
{
    enum prof_collective found = PROF_COLLECTIVE_OTHER;
    size_t longest = 0;
    for (size_t i = 0; i < WORDS; i++) {
        size_t length = strlen(collective_words[i].word);
        if (length > longest && strncmp(text, collective_words[i].word, length) == 0) {
            found = collective_words[i].operation;
            longest = length;
        }
    }
    return found;
}

static const char *after(const char *text, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

/* "void name<...>(...)" begins with what it returns. */
static const char *plain_name(const char *name)
{
    const char *rest = after(name, "void ");
    return rest ? rest : name;
}

enum prof_collective prof_collective_kernel(const char *name)
{
    static const char *const prefixes[] = {"ncclDevKernel_", "ncclKernel_", "ncclSymkDevKernel_",
                                           "ncclSymDevKernel_"};
    static const char *const one_node[] = {"one_shot_all_reduce_kernel",
                                           "two_shot_all_reduce_kernel",
                                           "multimem_all_reduce_kernel", "cross_device_reduce_"};
    if (!name)
        return PROF_COLLECTIVE_NONE;
    const char *plain = plain_name(name);
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        const char *rest = after(plain, prefixes[i]);
        enum prof_collective found =
            rest ? whole_word(rest, strcspn(rest, "_(< ")) : PROF_COLLECTIVE_NONE;
        if (rest)
            return found ? found : PROF_COLLECTIVE_OTHER;
    }
    const char *old = after(plain, "nccl");
    const char *end = plain + strcspn(plain, "(< ");
    const char *kernel = old ? strstr(old, "Kernel_") : NULL;
    if (kernel && kernel < end)
        return first_word(old);
    for (size_t i = 0; i < sizeof one_node / sizeof *one_node; i++)
        if (strstr(plain, one_node[i]))
            return PROF_COLLECTIVE_ALL_REDUCE;
    return PROF_COLLECTIVE_NONE;
}

static enum prof_collective declared(const char *name)
{
    for (int i = PROF_COLLECTIVE_NONE + 1; i < PROF_COLLECTIVES; i++) {
        if (strcmp(name, prof_collective_name((enum prof_collective)i)) == 0)
            return (enum prof_collective)i;
    }
    return PROF_COLLECTIVE_NONE;
}

enum prof_collective prof_collective_range(const char *domain, const char *name)
{
    if (!name)
        return PROF_COLLECTIVE_NONE;
    const char *mpi = after(name, "MPI_");
    if (mpi)
        return whole_word(mpi, strlen(mpi));
    if (!domain)
        return PROF_COLLECTIVE_NONE;
    if (strcmp(domain, "perfkit.collective") == 0)
        return declared(name);
    const char *nccl = after(name, "nccl");
    return nccl && strcmp(domain, "NCCL") == 0 ? whole_word(nccl, strlen(nccl))
                                               : PROF_COLLECTIVE_NONE;
}

enum prof_collective prof_collective_pytorch(const char *name)
{
    static const char *const ends[] = {"base", "coalesced"};
    char plain[32];
    size_t length = 0;
    for (; *name && length < sizeof plain - 1; name++)
        if (*name != '_')
            plain[length++] = *name;
    for (size_t i = 0; i < 2; i++) {
        size_t end = strlen(ends[i]);
        length -= length > end && !memcmp(plain + length - end, ends[i], end) ? end : 0;
    }
    if (length == strlen("reducescatter") && !strncmp(plain, "reducescatter", length))
        return PROF_COLLECTIVE_REDUCE_SCATTER;
    return whole_word(plain, length);
}

bool prof_collective_joins_all(enum prof_collective operation)
{
    return operation == PROF_COLLECTIVE_ALL_REDUCE || operation == PROF_COLLECTIVE_ALL_GATHER ||
           operation == PROF_COLLECTIVE_REDUCE_SCATTER || operation == PROF_COLLECTIVE_ALL_TO_ALL ||
           operation == PROF_COLLECTIVE_BARRIER;
}

double prof_collective_bytes(enum prof_collective operation, int64_t bytes, int64_t ranks)
{
    if (bytes < 0)
        return NAN;
    switch (operation) {
    case PROF_COLLECTIVE_ALL_REDUCE:
    case PROF_COLLECTIVE_BROADCAST:
    case PROF_COLLECTIVE_REDUCE:
    case PROF_COLLECTIVE_SEND:
    case PROF_COLLECTIVE_RECV:
    case PROF_COLLECTIVE_SEND_RECV:
        return (double)bytes;
    case PROF_COLLECTIVE_ALL_GATHER: /* a message is what one rank gives, or gets */
    case PROF_COLLECTIVE_REDUCE_SCATTER:
    case PROF_COLLECTIVE_ALL_TO_ALL:
    case PROF_COLLECTIVE_GATHER:
    case PROF_COLLECTIVE_SCATTER:
        return ranks > 0 ? (double)bytes * (double)ranks : NAN;
    default:
        return NAN;
    }
}

double prof_collective_bus_factor(enum prof_collective operation, int64_t ranks)
{
    double n = (double)ranks;
    switch (operation) {
    case PROF_COLLECTIVE_ALL_REDUCE:
        return ranks > 0 ? 2 * (n - 1) / n : NAN;
    case PROF_COLLECTIVE_ALL_GATHER:
    case PROF_COLLECTIVE_REDUCE_SCATTER:
    case PROF_COLLECTIVE_ALL_TO_ALL:
    case PROF_COLLECTIVE_GATHER:
    case PROF_COLLECTIVE_SCATTER:
        return ranks > 0 ? (n - 1) / n : NAN;
    case PROF_COLLECTIVE_BROADCAST:
    case PROF_COLLECTIVE_REDUCE:
    case PROF_COLLECTIVE_SEND:
    case PROF_COLLECTIVE_RECV:
    case PROF_COLLECTIVE_SEND_RECV:
        return 1;
    default:
        return NAN;
    }
}
