/* See program.h. */
#include <math.h>
#include <string.h>

#include "tests/check_main.h"
#include "tests/compare/program.h"
#include "tests/diagnosis/scene.h"

#define KERNELS 12
#define US 1000

static const struct {
    const char *name;
    int blocks;
    int64_t ns;
} kernels[KERNELS] = {
    {"void gemm<128>(float const*)", 264, 400 * US},
    {"relu_1(float*)", 132, 40 * US},
    {"relu_2(float*)", 132, 44 * US},
    {"relu_3(float*)", 132, 48 * US},
    {"norm_1(float*)", 64, 60 * US},
    {"norm_2(float*)", 64, 66 * US},
    {"softmax(float*)", 128, 120 * US},
    {"attention(float*)", 256, 180 * US},
    {"loss(float*)", 32, 30 * US},
    {"adam_1(float*)", 96, 52 * US},
    {"adam_2(float*)", 96, 56 * US},
    {"void gemm<32>(float const*)", 66, 90 * US},
};
enum { GEMM = 0, RELU_1 = 1, RELU_3 = 3, SOFTMAX = 6, ATTENTION = 7 };

struct dice {
    uint64_t state;
};

static double uniform(struct dice *d)
{
    d->state += 0x9e3779b97f4a7c15u;
    uint64_t z = d->state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(struct dice *d)
{
    return sqrt(-2 * log(uniform(d))) * cos(6.283185307179586 * uniform(d));
}

struct program {
    struct scene scene;
    enum change change;
    struct dice dice;
    double common, own[KERNELS];
    double hot; /* factor of this iteration */
    int config[KERNELS], extra, other;
};

static int64_t jitter(struct program *p, double ns)
{
    return (int64_t)(ns * exp(p->common + 0.01 * normal(&p->dice)) * p->hot);
}

static void make_configs(struct program *p)
{
    for (int k = 0; k < KERNELS; k++) {
        const char *name = kernels[k].name;
        int blocks = kernels[k].blocks, registers = 32;
        if (k == GEMM && p->change == TEMPLATE)
            name = "void gemm<64, 2>(float const*)";
        if (k == SOFTMAX && p->change == SPLIT_KERNEL)
            name = "softmax_max(float*)";
        if (k == RELU_3 && p->change == RENAMED_KERNEL)
            name = "activation(float*)";
        if (k == RELU_3 && p->change == OTHER_GRID)
            blocks /= 2;
        if (k == RELU_1 && p->change == PIECES)
            blocks /= 10;
        if (k == RELU_3 && p->change == MORE_REGISTERS)
            registers = 40;
        p->config[k] = scene_config(&p->scene, name, blocks, 256, registers);
    }
    p->other = scene_config(&p->scene, "check(float*)", 1, 256, 32);
    p->extra = scene_config(&p->scene, "softmax_sum(float*)", 128, 256, 32);
}

static void launch(struct program *p, int kernel)
{
    double ns = (double)kernels[kernel].ns * exp(p->own[kernel]);
    if (kernel == GEMM && p->change == SLOWER_KERNEL)
        ns *= 1.05;
    if (kernel == GEMM && p->change == FASTER_KERNEL)
        ns *= 0.92;
    if (kernel == SOFTMAX && p->change == SPLIT_KERNEL) {
        scene_kernel(&p->scene, 0, p->config[kernel], jitter(p, ns * 0.55));
        scene_kernel(&p->scene, 0, p->extra, jitter(p, ns * 0.5));
        return;
    }
    int pieces = kernel == RELU_1 && p->change == PIECES ? 10 : 1;
    for (int i = 0; i < pieces; i++)
        scene_kernel(&p->scene, 0, p->config[kernel], jitter(p, ns / pieces));
}

static void iterate(struct program *p)
{
    struct scene *s = &p->scene;
    int64_t bytes = 4096 + (p->change == LARGER_COPY ? 4 : 0);
    scene_push(s, "step");
    scene_push(s, p->change == RENAMED_RANGE ? "send" : "upload");
    scene_copy(s, 0, SCENE_UP, p->change == PAGEABLE ? SCENE_PAGEABLE : SCENE_PINNED, bytes,
               jitter(p, 3 * US), false);
    scene_pop(s);
    scene_push(s, "forward");
    for (int k = 0; k <= SOFTMAX; k++) {
        if (k == RELU_3 && p->change == NEW_RANGE)
            scene_push(s, "inner");
        launch(p, k);
    }
    if (p->change == NEW_RANGE)
        scene_pop(s);
    if (p->change == NEW_KERNEL)
        scene_kernel(s, 0, p->other, jitter(p, 8 * US));
    if (p->change == EXTRA_LAUNCH)
        launch(p, RELU_3);
    scene_pop(s);
    scene_push(s, "backward");
    for (int k = ATTENTION; k < KERNELS; k++)
        launch(p, k);
    if (p->change == EXTRA_SYNC)
        scene_sync(s);
    scene_pop(s);
    scene_sync(s);
    scene_pop(s);
}

struct prof_run program_run(enum change change, unsigned seed, int iterations)
{
    struct program p = {.change = change, .dice = {seed * 7919u + 17}, .hot = 1};
    struct prof_run run;
    struct prof_error err = {0};
    scene_open(&p.scene, "cuda", "gpu");
    make_configs(&p);
    p.common = 0.003 * normal(&p.dice);
    for (int k = 0; k < KERNELS; k++)
        p.own[k] = 0.003 * normal(&p.dice);
    scene_lifetime(&p.scene, 1000, 900000000, 1 << 20, 3);
    if (change == LEAK)
        scene_lifetime(&p.scene, 2000, PROF_UNKNOWN, 1024, 3);
    p.scene.host += (int64_t)(50000 * uniform(&p.dice));
    for (int i = 0; i <= iterations; i++) {
        p.hot = change == HOT ? 1 + 0.12 * i / iterations : 1;
        iterate(&p);
    }
    if (change == OTHER_SYNC)
        scene_sql(&p.scene, "UPDATE string SET value = 'cudaStreamSynchronize' "
                            "WHERE value = 'cudaDeviceSynchronize'");
    struct prof_capture *capture = scene_close(&p.scene);
    ck_assert_msg(!prof_run_extract(capture, NULL, &run, &err), "%s", err.message);
    prof_close(capture);
    return run;
}

struct program_runs program_runs(enum change change, unsigned seed, int count)
{
    struct program_runs all = {{{0}}};
    for (int i = 0; i < count; i++)
        all.runs[i] = program_run(change, seed + (unsigned)i, 20);
    return all;
}

void program_free(struct program_runs *runs)
{
    for (int i = 0; i < RUNS; i++)
        prof_run_free(&runs->runs[i]);
}

static bool holds(const char *text, const char *part)
{
    return text && strstr(text, part);
}

struct prof_comparison program_compare(struct prof_run *base, size_t bases, struct prof_run *cand,
                                       size_t cands, const struct prof_compare_options *options)
{
    struct prof_comparison result;
    struct prof_error err = {0};
    ck_assert_msg(!prof_compare((struct prof_runs){base, bases}, (struct prof_runs){cand, cands},
                                options, &result, &err),
                  "%s", err.message);
    return result;
}

const struct prof_compared *row_named(const struct prof_comparison *result,
                                      enum prof_metric_family family, const char *part)
{
    for (size_t i = 0; i < result->count; i++) {
        const struct prof_compared *row = &result->rows[i];
        if (row->family == family &&
            (holds(row->base_name, part) || holds(row->cand_name, part) || holds(row->place, part)))
            return row;
    }
    return NULL;
}

size_t rows_of(const struct prof_comparison *result, enum prof_verdict verdict)
{
    size_t count = 0;
    for (size_t i = 0; i < result->count; i++)
        count += result->rows[i].gated && result->rows[i].verdict == verdict;
    return count;
}
