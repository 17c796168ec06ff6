/* The ceilings of the processor itself, on threads; ceiling.h describes the kernels. The chains of
 * multiply-adds exist for each width of its vector units, and the widest one that is there is taken
 * at run time: a library built for any processor would measure the oldest.
 */
#include <string.h>

#include "kernels/ceiling/ceiling.h"

#define CHAINS 12
#define STEPS 128 /* of each in a round: between rounds they may be in memory */

typedef float quad __attribute__((vector_size(16)));

static uint32_t number(const struct dev_cpu_launch *launch, int index)
{
    return *(const uint32_t *)launch->arg[index];
}

static void tell(uint32_t *out, uint32_t first, uint32_t work)
{
    if (first > 0)
        return;
    out[CEILING_OUT_WORK] = work;
    out[CEILING_OUT_PATH] = CEILING_PATH_CHAINS;
}

/* Never true, which only a run can tell. */
static void keep(uint32_t *out, float value)
{
    if (value == -1.2345e33f)
        memcpy(&out[CEILING_OUT_SINK], &value, sizeof value);
}

static float sum(quad v)
{
    return (v[0] + v[1]) + (v[2] + v[3]);
}

/* Eight sums, or each addition would wait for the one before. */
static quad sum_up(const quad *from, size_t begin, size_t end)
{
    quad part[8] = {0};
    size_t i = begin;

    for (; i + 8 <= end; i += 8)
        for (size_t j = 0; j < 8; j++)
            part[j] += from[i + j];
    for (; i < end; i++)
        part[0] += from[i];
    return ((part[0] + part[1]) + (part[2] + part[3])) +
           ((part[4] + part[5]) + (part[6] + part[7]));
}

static void ceiling_read(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    size_t quads = number(launch, 2);
    size_t begin = (size_t)first * CEILING_GROUP_QUADS, end = (size_t)last * CEILING_GROUP_QUADS;

    end = end > quads ? quads : end;
    if (begin < end)
        keep(launch->arg[1], sum(sum_up(launch->arg[0], begin, end)));
}

static void ceiling_triad(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    quad *restrict a = launch->arg[0];
    const quad *restrict b = launch->arg[1], *restrict c = launch->arg[2];
    size_t quads = number(launch, 3), end = (size_t)last * launch->group_items;
    float s = *(const float *)launch->arg[4];

    end = end > quads ? quads : end;
    for (size_t i = (size_t)first * launch->group_items; i < end; i++)
        a[i] = b[i] + s * c[i];
}

static void ceiling_cache(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    uint32_t quads = number(launch, 2), rounds = number(launch, 3), step = CEILING_CACHE_QUADS;
    quad total = {0};

    tell(launch->arg[1], first, launch->group_items * step * 16);
    for (uint32_t group = first; group < last; group++) {
        uint32_t at = group * (quads / launch->groups / step) * step; /* each its own part */

        for (uint32_t r = 0; r < rounds; r++, at += step)
            total += sum_up((const quad *)launch->arg[0] + (at & (quads - 1)), 0, step);
    }
    keep(launch->arg[1], sum(total));
}

/* ---- multiply-adds --------------------------------------------------------------------------- */

/* The compiler makes one instruction of x * factor + term where the target has one. */
#define DEFINE_CHAINS(name, element, bytes, attributes)                                            \
    attributes static float name(uint32_t rounds, uint32_t *work)                                  \
    {                                                                                              \
        typedef element vector __attribute__((vector_size(bytes)));                                \
        volatile element start = (element)0.5;                                                     \
        vector term = start - (vector){0}, factor = term * (element)0.5, x[CHAINS];                \
                                                                                                   \
        for (int c = 0; c < CHAINS; c++)                                                           \
            x[c] = term * (element)(c + 1);                                                        \
        for (uint32_t r = 0; r < rounds; r++)                                                      \
            for (int step = 0; step < STEPS; step++)                                               \
                _Pragma("GCC unroll 12") for (int c = 0; c < CHAINS; c++) x[c] =                   \
                    x[c] * factor + term;                                                          \
        for (int c = 1; c < CHAINS; c++)                                                           \
            x[0] += x[c];                                                                          \
        *work = CHAINS * STEPS * 2 * (uint32_t)(sizeof(vector) / sizeof(element));                 \
        return (float)x[0][0];                                                                     \
    }

DEFINE_CHAINS(fp32_plain, float, 16, )
DEFINE_CHAINS(fp64_plain, double, 16, )
#ifdef __x86_64__
DEFINE_CHAINS(fp32_avx2, float, 32, __attribute__((target("avx2,fma"))))
DEFINE_CHAINS(fp64_avx2, double, 32, __attribute__((target("avx2,fma"))))
DEFINE_CHAINS(fp32_avx512, float, 64, __attribute__((target("avx512f"))))
DEFINE_CHAINS(fp64_avx512, double, 64, __attribute__((target("avx512f"))))
#endif

typedef float chains(uint32_t rounds, uint32_t *work);

static chains *widest(chains *plain, chains *avx2, chains *avx512)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        return avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return avx2;
#else
    (void)avx2;
    (void)avx512;
#endif
    return plain;
}

static void run(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last, chains *chain)
{
    uint32_t work = 0;

    for (uint32_t group = first; group < last; group++)
        keep(launch->arg[0], chain(number(launch, 1), &work));
    tell(launch->arg[0], first, work);
}

#ifdef __x86_64__
#define WIDEST(name) widest(name##_plain, name##_avx2, name##_avx512)
#else
#define WIDEST(name) widest(name##_plain, NULL, NULL)
#endif

static void ceiling_fp32(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    run(launch, first, last, WIDEST(fp32));
}

static void ceiling_fp64(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    run(launch, first, last, WIDEST(fp64));
}

static void ceiling_empty(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    (void)launch;
    (void)first;
    (void)last;
}

static const struct dev_cpu_kernel ceiling_cpu_kernels[] = {
    {"ceiling_read", ceiling_read},
    {"ceiling_triad", ceiling_triad},
    {"ceiling_cache", ceiling_cache},
    {"ceiling_fp64", ceiling_fp64},
    {"ceiling_fp32", ceiling_fp32},
    {"ceiling_empty", ceiling_empty},
    {NULL, NULL},
};

DEV_MODULE(ceiling);

static const struct dev_cpu_kernel no_kernels[] = {{NULL, NULL}};

#ifdef PERFKIT_HAVE_CUDA
extern const struct dev_cuda_kernel ceiling_tensor_cuda_kernels[];
#endif
const struct dev_module ceiling_tensor_module = {
    .name = "ceiling_tensor",
    .cuda = DEV_WITH_CUDA(ceiling_tensor_cuda_kernels),
    .cpu = no_kernels,
};
