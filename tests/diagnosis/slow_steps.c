/* Programs with one slow step; see slow_steps.h. What is planted lasts 0.4 to 3 times the step. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libprof/base/distribution.h"
#include "tests/diagnosis/scene.h"
#include "tests/diagnosis/slow_steps.h"

#define US INT64_C(1000)
#define MAX_KERNELS 12

/* Rows of stacks, by what they lead to. */
enum { STACK_STEP = 1, STACK_GC, STACK_LOCK, STACK_LOG };

struct program {
    struct scene s;
    enum slow_kind kind;
    uint64_t random;
    double sigma;
    int steps, slow, kernels, configs[MAX_KERNELS], flush, reduce;
    int64_t kernel_ns[MAX_KERNELS], copy_ns, host_ns, extra_ns;
    bool ranks;
};

static int64_t planted_at; /* a moment in the planted step, on the first thread */

static double share(struct program *p)
{
    return prof_random_share(&p->random);
}

/* Log-normal noise. */
static int64_t noisy(struct program *p, int64_t ns)
{
    double sum = -6;
    for (int k = 0; k < 12; k++)
        sum += share(p);
    return (int64_t)((double)ns * exp(p->sigma * sum));
}

/* The host's pauses have a longer tail: exponential. */
static int64_t noisy_pause(struct program *p, int64_t ns)
{
    return noisy(p, ns) + (int64_t)(-0.2 * (double)ns * log(1 - share(p)));
}

static const char setup_sql[] =
    "INSERT INTO string(id, value) VALUES(901, 'train_step'), (902, '/home/me/train.c'), "
    "(903, 'gc_collect'), (904, '/home/me/gc.c'), (905, 'lock_queue'), (906, '/home/me/queue.c'), "
    "(907, 'write_log'), (908, '/home/me/log.c'), (909, 'Python'), "
    "(910, 'garbage collection, generation 2');"
    "INSERT INTO frame(id, process, kind, address) VALUES(1, 1, 1, 1), (2, 1, 1, 2), (3, 1, 1, 3), "
    "(4, 1, 1, 4);"
    "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 901, 902, 40), "
    "(2, 0, 903, 904, 12), (3, 0, 905, 906, 77), (4, 0, 907, 908, 5);"
    "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, 1, 2, 2), (3, 1, 3, "
    "2), "
    "(4, 1, 4, 2);";

static void sample(struct program *p, int64_t start, int kind, int64_t duration, int stack)
{
    char length[32] = "NULL";
    if (duration)
        snprintf(length, sizeof length, "%lld", (long long)duration);
    scene_sql(&p->s,
              "INSERT INTO cpu_sample(start, thread, kind, duration, weight, stack) "
              "VALUES(%lld, 1, %d, %s, %lld, %d)",
              (long long)start, kind, length, (long long)(duration ? duration : 100 * US), stack);
}

/* The host is busy or off the processor for the planted time. */
static void pause_host(struct program *p, int kind, int stack)
{
    if (kind == 2 || kind == 3) {
        sample(p, p->s.host, kind, p->extra_ns, stack);
    } else {
        for (int64_t t = 0; t < p->extra_ns; t += 100 * US)
            sample(p, p->s.host + t, kind, 0, stack);
    }
    scene_host(&p->s, p->extra_ns);
}

static void pause_in_range(struct program *p, const char *name)
{
    scene_push(&p->s, name);
    scene_host(&p->s, p->extra_ns);
    scene_pop(&p->s);
}

/* What happens on the host before the second kernel of the slow step. */
static void plant_on_host(struct program *p)
{
    struct scene *s = &p->s;
    switch (p->kind) {
    case SLOW_KIND_EXTRA_ALLOCATION:
        scene_call(s, "cudaMalloc", p->extra_ns);
        scene_lifetime(s, s->host, PROF_UNKNOWN, 1 << 20, 3);
        break;
    case SLOW_KIND_COMPILED:
        scene_sql(s,
                  "INSERT INTO jit(start, duration, process, thread, input, operation) "
                  "VALUES(%lld, %lld, 1, 1, 1, 3)",
                  (long long)s->host, (long long)p->extra_ns);
        scene_host(s, p->extra_ns);
        break;
    case SLOW_KIND_MODULE_LOAD:
        scene_sql(s,
                  "INSERT INTO overhead(start, duration, process, thread, kind) "
                  "VALUES(%lld, %lld, 1, 1, 6)",
                  (long long)s->host, (long long)p->extra_ns);
        scene_host(s, p->extra_ns);
        break;
    case SLOW_KIND_COLLECTION: /* a range as --pytorch makes one */
        scene_sql(s,
                  "INSERT INTO range(start, duration, thread, name, domain, depth) "
                  "VALUES(%lld, %lld, 1, 910, 909, 0)",
                  (long long)s->host, (long long)p->extra_ns);
        scene_host(s, p->extra_ns);
        break;
    case SLOW_KIND_GC_PAUSE:
        pause_host(p, 1, STACK_GC);
        break;
    case SLOW_KIND_BLOCKED_LOCK:
        pause_host(p, 2, STACK_LOCK);
        break;
    case SLOW_KIND_PREEMPTED_THREAD:
        pause_host(p, 3, STACK_STEP);
        break;
    case SLOW_KIND_LOGGING:
        pause_host(p, 4, STACK_LOG);
        break;
    case SLOW_KIND_PYTHON_RANGE:
        pause_in_range(p, "load_batch");
        break;
    case SLOW_KIND_CHECKPOINT:
        scene_push(s, "checkpoint");
        for (int i = 0; i < 4; i++)
            scene_copy(s, 0, SCENE_DOWN, SCENE_PINNED, 1 << 20, p->extra_ns / 5, true);
        scene_host(s, p->extra_ns / 5);
        scene_pop(s);
        break;
    case SLOW_KIND_EXTRA_LAUNCHES:
        for (int i = 0; i < 4; i++)
            scene_kernel(s, 0, p->configs[1], p->extra_ns / 4);
        break;
    default:
        break;
    }
}

static void run_kernel(struct program *p, int k, bool slow)
{
    struct scene *s = &p->s;
    int64_t ns = noisy(p, p->kernel_ns[k]), start = s->stream[0] > s->host ? s->stream[0] : s->host;
    if (slow && p->kind == SLOW_KIND_CLOCK_DROP)
        ns += ns * p->extra_ns / (p->kernels * p->kernel_ns[1]);
    if (slow && k == 2 && p->kind == SLOW_KIND_PAGE_FAULTS) {
        ns += p->extra_ns;
        for (int i = 0; i < 50; i++)
            scene_sql(s,
                      "INSERT INTO migration(start, duration, process, kind, faults, target) "
                      "VALUES(%lld, %lld, 1, 4, 7, 1)",
                      (long long)(start + 10 * US + i * p->extra_ns / 50),
                      (long long)(p->extra_ns / 55));
    }
    if (slow && k == 2 && p->kind == SLOW_KIND_CACHE_FLUSH) {
        scene_kernel(s, 1, p->flush, p->extra_ns);
        s->stream[1] = 0;
        ns += p->extra_ns;
    }
    scene_kernel(s, 0, p->configs[k], ns);
}

static void run_compute(struct program *p, bool slow)
{
    struct scene *s = &p->s;
    int64_t copy = noisy(p, p->copy_ns);
    scene_copy(s, 0, SCENE_UP, SCENE_PINNED, 1 << 20,
               copy + (slow && p->kind == SLOW_KIND_SLOW_COPY ? p->extra_ns : 0), false);
    scene_host(s, noisy_pause(p, p->host_ns));
    for (int k = 0; k < p->kernels; k++) {
        if (slow && k == 1)
            plant_on_host(p);
        run_kernel(p, k, slow);
        scene_host(s, noisy_pause(p, 2 * US));
    }
}

static int64_t next_start(const struct scene *s)
{
    int64_t ready = s->host + s->launch_ns / 2 + s->latency_ns, idle = s->stream[0] + s->gap_ns;
    return ready > idle ? ready : idle;
}

/* Both ranks leave the collective together. */
static void run_ranks(struct program *p, bool slow)
{
    struct scene *s = &p->s;
    int64_t starts[2], comm = noisy(p, 60 * US);
    for (int side = 0; side < 2; side++) {
        scene_as(s, side);
        scene_push(s, "step");
        s->depth--;
        run_compute(p, false);
        if (slow && side == 1) /* its last kernel took longer */
            scene_kernel(s, 0, p->configs[0], p->extra_ns);
        starts[side] = next_start(s);
    }
    int64_t end = (starts[0] > starts[1] ? starts[0] : starts[1]) + comm;
    for (int side = 0; side < 2; side++) {
        scene_as(s, side);
        scene_kernel(s, 0, p->reduce, end - starts[side]);
        scene_sync(s);
    }
}

static void run_step(struct program *p, int step)
{
    struct scene *s = &p->s;
    bool slow = step == p->slow && p->kind != SLOW_KIND_NOTHING;
    int64_t begin[2] = {s->host, 0};
    scene_as(s, 0);
    begin[0] = s->host;
    if (slow)
        planted_at = s->host + US;
    sample(p, s->host, 1, 0, STACK_STEP);
    scene_sql(s,
              "INSERT INTO device_clock(device, start, sm_mhz, sm_max_mhz, reasons) "
              "VALUES(1, %lld, %d, 1980, %d)",
              (long long)s->host + 5 * US, slow && p->kind == SLOW_KIND_CLOCK_DROP ? 1200 : 1755,
              slow && p->kind == SLOW_KIND_CLOCK_DROP ? 4 : 0);
    if (!p->ranks) {
        scene_push(s, "step");
        run_compute(p, slow);
        scene_sync(s);
        scene_pop(s);
        scene_host(s, noisy_pause(p, 5 * US));
        return;
    }
    scene_as(s, 1);
    begin[1] = s->host;
    run_ranks(p, slow);
    for (int side = 0; side < 2; side++) {
        scene_as(s, side);
        scene_push(s, "step");
        s->ranges[s->depth - 1] = begin[side];
        scene_pop(s);
        scene_host(s, noisy_pause(p, 5 * US));
    }
}

struct prof_capture *slow_steps_record(enum slow_kind kind, uint64_t seed)
{
    static const char *const names[] = {"embed", "matmul", "softmax", "norm"};
    struct program p = {.kind = kind,
                        .random = (seed * 1000003u + (uint64_t)kind) * 2654435761u + 1,
                        .ranks = kind == SLOW_KIND_STRAGGLER};
    for (int i = 0; i < 16; i++)
        share(&p);
    p.sigma = 0.01 + 0.07 * share(&p);
    p.steps = 40 + (int)(60 * share(&p));
    p.slow = 10 + (int)((double)(p.steps - 12) * share(&p));
    p.kernels = 4 + (int)((MAX_KERNELS - 4) * share(&p));
    p.copy_ns = (int64_t)(10e3 + 200e3 * share(&p));
    p.host_ns = (int64_t)(5e3 + 50e3 * share(&p));
    scene_open(&p.s, "cuda", "gpu");
    scene_sql(&p.s, "%s", setup_sql);
    p.s.strings = 1000;
    int64_t all = p.copy_ns + p.host_ns;
    for (int k = 0; k < p.kernels; k++) {
        p.configs[k] = k < 4 ? scene_config(&p.s, names[k], 264, 256, 32) : p.configs[k % 4];
        p.kernel_ns[k] = k < 4 ? (int64_t)(10e3 + 150e3 * share(&p)) : p.kernel_ns[k % 4];
        all += p.kernel_ns[k];
    }
    p.flush = scene_config(&p.s, "flush_cache", 264, 256, 32);
    p.reduce = scene_config(&p.s, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 8, 512, 96);
    p.extra_ns = (int64_t)((double)all * (0.4 + 2.6 * share(&p)));
    if (p.ranks) {
        scene_second(&p.s, true, true);
        scene_sql(&p.s, "UPDATE process SET rank = id - 1, world_size = 2");
    }
    planted_at = PROF_UNKNOWN;
    for (int step = 0; step < p.steps; step++)
        run_step(&p, step);
    return scene_close(&p.s);
}

const struct prof_iteration_row *slow_steps_planted(const struct prof_iteration_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct prof_iteration_row *row = &list->rows[i];
        if (row->thread == 1 && planted_at >= row->start_ns &&
            planted_at < row->start_ns + row->duration_ns)
            return row;
    }
    return NULL;
}

const char *slow_kind_name(enum slow_kind kind)
{
    static const char *const names[] = {
#define SLOW_KIND(kind, part, text) #kind,
        SLOW_KINDS_LIST(SLOW_KIND)
#undef SLOW_KIND
    };
    return names[kind];
}

bool slow_kind_is_named(enum slow_kind kind, const struct prof_iteration_why *why)
{
    static const struct {
        enum prof_part_kind part;
        const char *text;
    } expected[] = {
#define SLOW_KIND(kind, part, text) {PROF_PART_OF_##part, text},
        SLOW_KINDS_LIST(SLOW_KIND)
#undef SLOW_KIND
    };
    if (!why->has_cause)
        return false;
    const struct prof_iteration_part *part = &why->parts[why->cause];
    return part->kind == expected[kind].part &&
           (strstr(why->seen, expected[kind].text) || strstr(why->place.path, expected[kind].text));
}
