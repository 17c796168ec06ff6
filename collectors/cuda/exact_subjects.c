/* Changing the pass takes the device a sixth of a second, so launches of all
 * kernels that need the same pass are counted together, as far as they come by. */
#include <stdio.h>
#include <string.h>

#include "collectors/cuda/exact_subjects.h"
#include "collectors/cuda/map.h"

#define SUBJECTS 4096u /* a power of 2; half of them are used at most */

static struct exact_subject *subjects; /* [SUBJECTS] */
static uint32_t subject_count, passed_over;

bool exact_subjects_start(void)
{
    return subjects || (subjects = cuda_reserve(sizeof *subjects * SUBJECTS));
}

struct exact_subject *exact_subject_of(uint32_t name, const struct exact_shape *shape, bool *fresh)
{
    uint32_t words[sizeof *shape / sizeof(uint32_t)], hash = name;
    memcpy(words, shape, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        hash = (hash ^ words[i]) * 0x9E3779B1u;
    *fresh = false;
    for (uint32_t at = hash >> 7;; at++) {
        struct exact_subject *s = &subjects[at % SUBJECTS];
        if (s->name == name && memcmp(&s->shape, shape, sizeof *shape) == 0)
            return s;
        if (s->name)
            continue;
        if (!name || subject_count >= SUBJECTS / 2)
            return NULL;
        subject_count++;
        *s = (struct exact_subject){.name = name, .shape = *shape};
        *fresh = true;
        return s;
    }
}

static bool needs(const struct exact_subject *s, const struct exact_pass *passes, size_t pass)
{
    bool tensor = passes[pass].tensor;
    return s->wanted && !s->given_up && (!tensor || s->tensor) &&
           s->done[pass] < (tensor ? EXACT_TENSOR_REPEATS : EXACT_REPEATS);
}

static size_t first_needed(const struct exact_subject *s, const struct exact_pass *passes,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (needs(s, passes, i))
            return i;
    }
    return SIZE_MAX;
}

static bool others_need(const struct exact_pass *passes, size_t pass)
{
    for (size_t i = 0; i < SUBJECTS; i++) {
        if (subjects[i].name && needs(&subjects[i], passes, pass))
            return true;
    }
    return false;
}

size_t exact_choose(const struct exact_subject *subject, const struct exact_pass *passes,
                    size_t count, size_t ready)
{
    size_t next = first_needed(subject, passes, count);
    if (next == SIZE_MAX)
        return next;
    if (ready < count && needs(subject, passes, ready))
        next = ready;
    else if (ready < count && others_need(passes, ready) && ++passed_over < EXACT_PATIENCE)
        return SIZE_MAX;
    passed_over = 0;
    return next;
}

static bool uses_tensors(const struct exact_pass *pass, const double *values)
{
    for (size_t i = 0; i < pass->count; i++) {
        if (strcmp(pass->counters[i].name, EXACT_TENSOR) == 0)
            return values[i] > 0;
    }
    return false;
}

bool exact_counted(struct exact_subject *s, const struct exact_pass *passes, size_t count,
                   size_t pass, const double *values)
{
    s->done[pass]++;
    s->tensor |= uses_tensors(&passes[pass], values);
    if (s->complete)
        return false;
    s->complete = true;
    for (size_t i = 0; i < count; i++)
        s->complete &= s->done[i] > 0 || (passes[i].tensor && !s->tensor);
    return s->complete;
}

bool exact_anybody_needs(const struct exact_pass *passes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (others_need(passes, i))
            return true;
    }
    return false;
}

void exact_subjects_give_up(uint32_t name)
{
    for (size_t i = 0; i < SUBJECTS; i++)
        subjects[i].given_up |= subjects[i].name == name;
}

void exact_subjects_forget(void)
{
    subject_count = passed_over = 0;
    cuda_wipe(subjects, sizeof *subjects * SUBJECTS);
}

/* ---- Counters and passes ---------------------------------------------------------------------
 *
 * The counters of --counters=exact. Every pass is one that the hardware counts while a kernel runs
 * once: nothing has to be replayed, and no memory saved and put back. That is why the tensor pipe's
 * FLOP are a pass for each type of number: CUPTI cannot count two of them together.
 *
 * Left out: integers (int8, int4, int1 of the tensor pipe), which are no FLOP, and chips on which
 * some type of number needs two passes (GB100). tests/counters checks each with CUPTI's host
 * library. */

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

/* ---- Names of kernels ------------------------------------------------------------------------
 *
 * Just enough of the Itanium C++ ABI's mangling (section 5.1) to give a kernel the name that its
 * author knows: the C++ runtime's demangler allocates, and is not among what the collector links.
 */

#define ANONYMOUS "_GLOBAL__N_"

/* <source-name>: its length in decimal, then so many bytes. NULL at anything else. */
static const char *source_name(const char **at, size_t *bytes)
{
    const char *text = *at;
    *bytes = 0;
    while (*text >= '0' && *text <= '9' && *bytes < 4096)
        *bytes = *bytes * 10 + (size_t)(*text++ - '0');
    if (!*bytes || strnlen(text, *bytes) < *bytes)
        return NULL;
    *at = text + *bytes;
    return text;
}

bool cuda_kernel_plain_name(const char *symbol, char *out, size_t size)
{
    size_t used = 0, bytes;
    if (strncmp(symbol, "_Z", 2) != 0)
        return false;
    const char *at = symbol + 2;
    bool nested = *at == 'N';
    at += nested ? 1 + strspn(at + 1, "rVK") : 0; /* of a member function */
    do {
        if (strncmp(at, "St", 2) == 0) {
            at += 2;
            used += (size_t)snprintf(out + used, size - used, "%sstd", used ? "::" : "");
            nested = true; /* "St" is followed by a name also outside N..E */
            continue;
        }
        at += *at == 'L'; /* static */
        const char *name = source_name(&at, &bytes);
        if (!name)
            break;
        bool anonymous = strncmp(name, ANONYMOUS, sizeof ANONYMOUS - 1) == 0;
        used += (size_t)snprintf(out + used, size - used, "%s%.*s", used ? "::" : "",
                                 anonymous ? 21 : (int)bytes,
                                 anonymous ? "(anonymous namespace)" : name);
    } while (nested && used < size);
    return used > 0 && used < size;
}
