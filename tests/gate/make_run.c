/* Writes a capture of a small training program as perfkit run would leave it, for tests of the gate
 * that need many runs with known changes on a machine without a device:
 *
 *     gate_make_run OUT SEED [CHANGE...]
 *
 * A run is 3 + 40 iterations of the range "step": an upload, three kernels, a small download. Times
 * have noise of a run's own (0.3 %) and of each launch (1 %), drawn from SEED: the same seed gives
 * the same run. Each CHANGE is one that a careless commit makes; `changes` lists them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check_main.h"
#include "tests/diagnosis/scene.h"

#define ITERATIONS 43

enum change {
    ONE_MORE_LAUNCH,
    FOUR_MORE_BYTES,
    ONE_MORE_SYNC,
    LEAK,
    PAGEABLE,
    SLOW,
    FAST,
    SPLIT,
    RENAMED,
    HOSTILE,
    OTHER_DEVICE,
    INCOMPLETE,
    NO_RANGES,
    CHANGES
};

static const char *const changes[] = {
    "one-more-launch",
    "four-more-bytes",
    "one-more-sync",
    "leak",
    "pageable",
    "slow",
    "fast",
    "split",
    "renamed",
    "hostile",
    "other-device",
    "incomplete",
    "no-ranges",
};

struct program {
    struct scene scene;
    bool has[CHANGES];
    uint64_t state;
    double of_run; /* factor on all times */
    int gemm, relu, reduce[2];
};

/* splitmix64 */
static double uniform(struct program *p)
{
    uint64_t z = p->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(struct program *p)
{
    return sqrt(-2 * log(uniform(p))) * cos(2 * M_PI * uniform(p));
}

static int64_t with_noise(struct program *p, double ns)
{
    return (int64_t)(ns * p->of_run * exp(0.01 * normal(p)));
}

static void make_configs(struct program *p)
{
    const char *gemm = p->has[RENAMED] ? "void gemm<half, 128>(int)" : "void gemm<float, 128>(int)";
    const char *relu = p->has[HOSTILE]
                           ? "relu\n::error::owned ]]> <b>&\"'\x1b[31m %0A ##[error]x\x01\xff"
                           : "relu";
    p->gemm = scene_config(&p->scene, gemm, 264, 256, 128);
    p->relu = scene_config(&p->scene, relu, 528, 256, 16);
    p->reduce[0] = scene_config(&p->scene, p->has[SPLIT] ? "reduce_first" : "reduce", 132, 256, 32);
    if (p->has[SPLIT])
        p->reduce[1] = scene_config(&p->scene, "reduce_second", 132, 256, 32);
}

static void step(struct program *p)
{
    struct scene *s = &p->scene;
    double factor = p->has[SLOW] ? 1.05 : p->has[FAST] ? 0.9 : 1;
    int64_t bytes = (1 << 20) + (p->has[FOUR_MORE_BYTES] ? 4 : 0);
    if (!p->has[NO_RANGES])
        scene_push(s, "step");
    scene_copy(s, 0, SCENE_UP, p->has[PAGEABLE] ? SCENE_PAGEABLE : SCENE_PINNED, bytes,
               with_noise(p, p->has[PAGEABLE] ? 120000 : 45000), p->has[PAGEABLE]);
    scene_kernel(s, 0, p->gemm, with_noise(p, 400000 * factor));
    for (int i = 0; i < (p->has[ONE_MORE_LAUNCH] ? 2 : 1); i++)
        scene_kernel(s, 0, p->relu, with_noise(p, 60000));
    if (p->has[SPLIT]) {
        scene_kernel(s, 0, p->reduce[0], with_noise(p, 70000));
        scene_kernel(s, 0, p->reduce[1], with_noise(p, 70000));
    } else {
        scene_kernel(s, 0, p->reduce[0], with_noise(p, 120000));
    }
    scene_copy(s, 0, SCENE_DOWN, SCENE_PINNED, 4, with_noise(p, 1500), false);
    for (int i = 0; i < (p->has[ONE_MORE_SYNC] ? 2 : 1); i++)
        scene_sync(s);
    if (!p->has[NO_RANGES])
        scene_pop(s);
    scene_host(s, 5000);
}

static void run(struct program *p)
{
    scene_open(&p->scene, "cuda", "gpu");
    make_configs(p);
    int64_t start = p->scene.host;
    for (int i = 0; i < ITERATIONS; i++)
        step(p);
    scene_lifetime(&p->scene, start, p->scene.host, 1 << 22, 3);
    if (p->has[LEAK])
        scene_lifetime(&p->scene, start + 1000, PROF_UNKNOWN, 1024, 3);
}

static bool save(struct program *p, const char *path, long number)
{
    char sql[1024];
    snprintf(sql, sizeof sql,
             "UPDATE capture SET host = 'maker', boot_id = 'boot', command = './train', "
             "perfkit_version = '0.1.0', trace = 'cuda,nvtx', cpu = 'cpu', cpu_count = 2, "
             "exit_status = 0, kernel = 'Linux', start_realtime_ns = 1760000000000000000 + %ld;"
             "UPDATE device SET name = '%s', driver = '580.1', uuid = 'GPU-1';"
             "INSERT INTO capture_health(process, subject, item, value) SELECT 1, subject, item, n "
             "FROM (SELECT 'launch' AS subject, count(*) AS n FROM kernel UNION ALL SELECT "
             "'transfer', count(*) FROM transfer), (SELECT 'called' AS item UNION ALL SELECT "
             "'recorded');%s",
             number, p->has[OTHER_DEVICE] ? "other device" : "device",
             p->has[INCOMPLETE]
                 ? "INSERT INTO capture_health(process, subject, item, value) VALUES(1, 'record', "
                   "'dropped', 7);"
                 : "");
    return scene_save(&p->scene, path, sql);
}

static struct program program;
static const char *out_path;
static long seed;

/* Scenes are made of Check's assertions, which hold within a test only. */
START_TEST(make)
{
    program.of_run = exp(0.003 * normal(&program));
    run(&program);
    ck_assert(save(&program, out_path, seed));
}
END_TEST

static bool take_change(const char *name)
{
    int change = 0;
    while (change < CHANGES && strcmp(name, changes[change]))
        change++;
    if (change == CHANGES)
        return false;
    program.has[change] = true;
    return true;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s OUT SEED [CHANGE...]\n", argv[0]);
        return 2;
    }
    for (int i = 3; i < argc; i++)
        if (!take_change(argv[i])) {
            fprintf(stderr, "no change is called %s\n", argv[i]);
            return 2;
        }
    out_path = argv[1];
    seed = strtol(argv[2], NULL, 10);
    program.state = (uint64_t)seed * 1000003u;
    return check_run_here(make);
}
