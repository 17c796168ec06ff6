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
enum { STACK_STEP = 1, STACK_GC, STACK_LOCK, STACK_LOG, STACK_TOUCH };

struct program {
    struct scene s;
    enum slow_kind kind;
    int form;
    uint64_t random;
    double sigma;
    int touches; /* samples of them */
    int steps, slow, kernels, configs[MAX_KERNELS], flush, reduce, grow;
    int64_t kernel_ns[MAX_KERNELS], copy_ns, host_ns, all_ns, extra_ns;
    bool ranks, ranges;
};

/* A moment in the planted step, and the thread whose iteration must be explained. */
static int64_t planted_at, planted_thread;

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
    "(910, 'garbage collection, generation 2'), (911, 'garbage collection, generation 0'), "
    "(912, 'touch_pages');"
    "INSERT INTO frame(id, process, kind, address) VALUES(1, 1, 1, 1), (2, 1, 1, 2), (3, 1, 1, 3), "
    "(4, 1, 1, 4), (5, 1, 1, 5);"
    "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 901, 902, 40), "
    "(2, 0, 903, 904, 12), (3, 0, 905, 906, 77), (4, 0, 907, 908, 5), (5, 0, 912, 902, 9);"
    "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, 1, 2, 2), (3, 1, 3, "
    "2), "
    "(4, 1, 4, 2), (5, 1, 5, 2);";

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

/* The host is busy or off the processor. */
static void pause_host(struct program *p, int kind, int stack, int64_t ns)
{
    if (kind == 2 || kind == 3) {
        sample(p, p->s.host, kind, ns, stack);
    } else {
        for (int64_t t = 0; t < ns; t += 100 * US)
            sample(p, p->s.host + t, kind, 0, stack);
    }
    scene_host(&p->s, ns);
}

/* One count for the pause, as between two readings. */
static void count_faults(struct program *p, int64_t ns, int64_t count)
{
    scene_sql(&p->s,
              "INSERT INTO page_faults(start, duration, thread, count, major) "
              "VALUES(%lld, %lld, 1, %lld, 0)",
              (long long)p->s.host, (long long)ns, (long long)count);
}

/* The host takes page faults; of ten samples, `others` find it elsewhere. */
static void touch_pages(struct program *p, int64_t ns, int others)
{
    count_faults(p, ns, ns / US + 1);
    for (int64_t t = 100 * US; t <= ns; t += 100 * US) {
        bool other = p->touches++ * 7 % 10 < others;
        sample(p, p->s.host + t, other ? 1 : 5, 0, STACK_TOUCH);
    }
    scene_host(&p->s, ns);
}

static void collect_garbage(struct program *p, int name, int64_t ns)
{ /* a range as --pytorch makes one */
    scene_sql(&p->s,
              "INSERT INTO range(start, duration, thread, name, domain, depth) "
              "VALUES(%lld, %lld, 1, %d, %s, 0)",
              (long long)p->s.host, (long long)ns, name,
              p->form ? "NULL" : "909"); /* imported traces have no domain */
    scene_host(&p->s, ns);
}

static void compile(struct program *p, int64_t ns)
{
    scene_sql(&p->s,
              "INSERT INTO jit(start, duration, process, thread, input, operation) "
              "VALUES(%lld, %lld, 1, 1, 1, 3)",
              (long long)p->s.host, (long long)ns);
}

static void load_module(struct program *p, int64_t ns)
{
    scene_sql(&p->s,
              "INSERT INTO overhead(start, duration, process, thread, kind) "
              "VALUES(%lld, %lld, 1, 1, 6)",
              (long long)p->s.host, (long long)ns);
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
        compile(p, p->extra_ns);
        scene_host(s, p->extra_ns);
        break;
    case SLOW_KIND_MODULE_LOAD:
        load_module(p, p->extra_ns);
        scene_host(s, p->extra_ns);
        break;
    case SLOW_KIND_COLLECTION:
        collect_garbage(p, 910, p->extra_ns);
        break;
    case SLOW_KIND_GC_PAUSE:
        pause_host(p, 1, STACK_GC, p->extra_ns);
        break;
    case SLOW_KIND_BLOCKED_LOCK:
        pause_host(p, 2, STACK_LOCK, p->extra_ns);
        break;
    case SLOW_KIND_PREEMPTED_THREAD:
        pause_host(p, 3, STACK_STEP, p->extra_ns);
        break;
    case SLOW_KIND_LOGGING:
        pause_host(p, 4, STACK_LOG, p->extra_ns);
        break;
    case SLOW_KIND_HOST_FAULTS:
        touch_pages(p, p->extra_ns, 3);
        break;
    case SLOW_KIND_FAULTS_ASIDE: /* a buffer that is touched first, then written */
        touch_pages(p, p->extra_ns / 4, 0);
        pause_host(p, 1, STACK_LOG, p->extra_ns * 3 / 4);
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

/* The second forms: what comes in many small pieces, before each kernel of the slow step. The
 * device works meanwhile, so the pieces are longer by what it has to do. */
static void plant_piece(struct program *p, int k)
{
    struct scene *s = &p->s;
    int64_t ns = (p->extra_ns + p->all_ns) / p->kernels;
    switch (p->kind) {
    case SLOW_KIND_EXTRA_ALLOCATION:
        scene_call(s, "cudaFree", ns);
        break;
    case SLOW_KIND_PAGE_FAULTS: /* the host reads what the device has written */
        scene_sql(s,
                  "INSERT INTO migration(start, duration, process, kind, bytes, target) "
                  "VALUES(%lld, %lld, 1, 2, 65536, 1)",
                  (long long)s->host, (long long)ns);
        scene_host(s, ns);
        break;
    case SLOW_KIND_BLOCKED_LOCK:
        pause_host(p, 2, STACK_LOCK, ns);
        break;
    case SLOW_KIND_PREEMPTED_THREAD:
        pause_host(p, 3, STACK_STEP, ns);
        break;
    case SLOW_KIND_HOST_FAULTS:
        touch_pages(p, ns, 3);
        break;
    case SLOW_KIND_FAULTS_ASIDE:
        touch_pages(p, ns / 4, 0);
        pause_host(p, 1, STACK_LOG, ns * 3 / 4);
        break;
    case SLOW_KIND_LOGGING: /* who works longer is preempted more often */
        for (int i = 0; i < 8; i++) {
            pause_host(p, 1, STACK_LOG, ns / 8);
            pause_host(p, 3, STACK_STEP, ns / 6);
        }
        break;
    case SLOW_KIND_COLLECTION:
        collect_garbage(p, 911, ns);
        break;
    case SLOW_KIND_CACHE_FLUSH:
        if (k == 1 || k == 3) {
            scene_fill(s, 1, 1 << 28, p->extra_ns / 2);
            s->stream[1] = 0;
        }
        break;
    default:
        break;
    }
}

/* The second forms: what comes at once. */
static void plant_at_once(struct program *p)
{
    struct scene *s = &p->s;
    int64_t launch_ns = s->launch_ns;
    switch (p->kind) {
    case SLOW_KIND_COMPILED:
        compile(p, p->extra_ns);
        scene_call(s, "cuModuleLoadData", p->extra_ns);
        break;
    case SLOW_KIND_MODULE_LOAD: /* at the first launch of a kernel, inside the call */
        load_module(p, p->extra_ns);
        s->launch_ns += p->extra_ns;
        scene_kernel(s, 0, p->grow, 10 * US);
        s->launch_ns = launch_ns;
        break;
    case SLOW_KIND_EXTRA_LAUNCHES:
        for (int i = 0; i < 3; i++)
            scene_kernel(s, 0, p->grow, p->extra_ns / 3);
        break;
    case SLOW_KIND_CHECKPOINT:
        scene_push(s, "save_state");
        scene_copy(s, 0, SCENE_DOWN, SCENE_PAGEABLE, 1 << 22, p->extra_ns * 2 / 5, true);
        pause_host(p, 4, STACK_STEP, p->extra_ns * 3 / 5);
        scene_pop(s);
        break;
    case SLOW_KIND_PYTHON_RANGE:
        scene_push(s, "load_batch");
        scene_host(s, p->extra_ns / 20);
        pause_in_range(p, "decode");
        scene_pop(s);
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
    if (slow && !p->form && k == 2 && p->kind == SLOW_KIND_PAGE_FAULTS) {
        ns += p->extra_ns;
        for (int i = 0; i < 50; i++)
            scene_sql(s,
                      "INSERT INTO migration(start, duration, process, kind, faults, target) "
                      "VALUES(%lld, %lld, 1, 4, 7, 1)",
                      (long long)(start + 10 * US + i * p->extra_ns / 50),
                      (long long)(p->extra_ns / 55));
    }
    if (slow && !p->form && k == 2 && p->kind == SLOW_KIND_CACHE_FLUSH) {
        scene_kernel(s, 1, p->flush, p->extra_ns);
        s->stream[1] = 0;
        ns += p->extra_ns;
    }
    if (slow && p->form && (k == 1 || k == 3) && p->kind == SLOW_KIND_CACHE_FLUSH)
        ns += p->extra_ns / 2;
    scene_kernel(s, 0, p->configs[k], ns);
}

static void run_compute(struct program *p, bool slow)
{
    struct scene *s = &p->s;
    int64_t copy = noisy(p, p->copy_ns), slower = p->kind == SLOW_KIND_SLOW_COPY ? p->extra_ns : 0;
    scene_copy(s, 0, SCENE_UP, SCENE_PINNED, 1 << 20, copy + (slow && !p->form ? slower : 0),
               false);
    scene_host(s, noisy_pause(p, p->host_ns));
    for (int k = 0; k < p->kernels; k++) {
        if (slow && k == 1) {
            planted_at = s->host;
            if (p->form)
                plant_at_once(p);
            else
                plant_on_host(p);
        }
        if (slow && p->form)
            plant_piece(p, k);
        run_kernel(p, k, slow);
        scene_host(s, noisy_pause(p, 2 * US));
    }
    if (p->form && p->kind == SLOW_KIND_SLOW_COPY)
        scene_copy(s, 0, SCENE_DOWN, SCENE_PAGEABLE, 4096, noisy(p, 5 * US) + (slow ? slower : 0),
                   true);
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
    bool late = slow && p->kind == SLOW_KIND_STRAGGLER;
    comm += slow && !late ? p->extra_ns : 0;
    for (int side = 0; side < 2; side++) {
        scene_as(s, side);
        scene_push(s, "step");
        s->depth--;
        run_compute(p, false);
        if (late && !p->form && side == 1) /* its last kernel took longer */
            scene_kernel(s, 0, p->configs[0], p->extra_ns);
        if (late && p->form && side == 0) { /* its host came late to the launch */
            scene_sync(s);
            scene_host(s, p->extra_ns);
        }
        starts[side] = next_start(s);
    }
    int64_t end = (starts[0] > starts[1] ? starts[0] : starts[1]) + comm;
    for (int side = 0; side < 2; side++) {
        scene_as(s, side);
        scene_kernel(s, 0, p->reduce, end - starts[side]);
        scene_sync(s);
    }
}

static void record_clock(struct program *p, bool low)
{
    scene_sql(&p->s,
              "INSERT INTO device_clock(device, start, sm_mhz, sm_max_mhz, reasons) "
              "VALUES(1, %lld, %d, 1980, %d)",
              (long long)p->s.host + 5 * US, low ? 1200 : 1755, low ? 4 : 0);
}

static void run_step(struct program *p, int step)
{
    struct scene *s = &p->s;
    /* In the second form the clock is low for some steps and read in every fourth. */
    bool drops = p->form && p->kind == SLOW_KIND_CLOCK_DROP;
    bool slow =
        p->kind != SLOW_KIND_NOTHING && step >= p->slow - 2 * drops && step <= p->slow + 2 * drops;
    int64_t begin[2] = {s->host, 0};
    scene_as(s, 0);
    begin[0] = s->host;
    sample(p, s->host, 1, 0, STACK_STEP);
    if (p->kind == SLOW_KIND_NOTHING || p->kind >= SLOW_KIND_HOST_FAULTS) {
        count_faults(p, 20 * US, 1 + step % 5);
        if (step % 7 == 3)
            sample(p, s->host + 2 * US, 5, 0, STACK_TOUCH);
    }
    if (!p->form || step % 4 == 0)
        record_clock(p, slow && p->kind == SLOW_KIND_CLOCK_DROP);
    if (!p->ranks) {
        int64_t before = planted_at;
        if (p->ranges)
            scene_push(s, "step");
        run_compute(p, slow);
        if (slow && step != p->slow)
            planted_at = before;
        scene_sync(s);
        if (slow && p->form && p->kind == SLOW_KIND_GC_PAUSE)
            pause_host(p, 1, STACK_GC, p->extra_ns);
        if (p->ranges)
            scene_pop(s);
        scene_host(s, noisy_pause(p, 5 * US));
        return;
    }
    scene_as(s, 1);
    begin[1] = s->host;
    if (slow)
        planted_at = begin[planted_thread - 1] + US;
    run_ranks(p, slow);
    for (int side = 0; side < 2; side++) {
        scene_as(s, side);
        scene_push(s, "step");
        s->ranges[s->depth - 1] = begin[side];
        scene_pop(s);
        scene_host(s, noisy_pause(p, 5 * US));
    }
}

static struct scene run_program(enum slow_kind kind, int form, uint64_t seed)
{
    static const char *const names[] = {"embed", "matmul", "softmax", "norm"};
    struct program p = {.kind = kind,
                        .form = form,
                        .random = (seed * 1000003u + (uint64_t)kind) * 2654435761u + 1,
                        .ranks = kind == SLOW_KIND_STRAGGLER || kind == SLOW_KIND_SLOW_COLLECTIVE,
                        .ranges = !form || seed % 2};
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
    p.all_ns = p.copy_ns + p.host_ns;
    for (int k = 0; k < p.kernels; k++) {
        p.configs[k] = k < 4 ? scene_config(&p.s, names[k], 264, 256, 32) : p.configs[k % 4];
        p.kernel_ns[k] = k < 4 ? (int64_t)(10e3 + 150e3 * share(&p)) : p.kernel_ns[k % 4];
        p.all_ns += p.kernel_ns[k];
    }
    p.flush = scene_config(&p.s, "flush_cache", 264, 256, 32);
    p.grow = scene_config(&p.s, "grow_table", 264, 256, 32);
    p.reduce = scene_config(&p.s, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 8, 512, 96);
    p.extra_ns = (int64_t)((double)p.all_ns * (0.4 + 2.6 * share(&p)));
    if (p.ranks) {
        scene_second(&p.s, true, true);
        scene_sql(&p.s, "UPDATE process SET rank = id - 1, world_size = 2");
    }
    planted_at = PROF_UNKNOWN;
    planted_thread = p.ranks && form ? 2 : 1;
    for (int step = 0; step < p.steps; step++)
        run_step(&p, step);
    return p.s;
}

struct prof_capture *slow_steps_record(enum slow_kind kind, int form, uint64_t seed)
{
    struct scene s = run_program(kind, form, seed);
    return scene_close(&s);
}

bool slow_steps_save(enum slow_kind kind, int form, uint64_t seed, const char *path)
{
    struct scene s = run_program(kind, form, seed);
    return scene_save(&s, path, "");
}

const struct prof_iteration_row *slow_steps_planted(const struct prof_iteration_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct prof_iteration_row *row = &list->rows[i];
        if (row->thread == planted_thread && planted_at >= row->start_ns &&
            planted_at < row->start_ns + row->duration_ns)
            return row;
    }
    return NULL;
}

const char *slow_kind_name(enum slow_kind kind)
{
    static const char *const names[] = {
#define SLOW_KIND(kind, ...) #kind,
        SLOW_KINDS_LIST(SLOW_KIND)
#undef SLOW_KIND
    };
    return names[kind];
}

bool slow_kind_is_named(enum slow_kind kind, int form, const struct prof_iteration_why *why)
{
    static const struct {
        enum prof_part_kind part;
        const char *text;
    } expected[][2] = {
#define SLOW_KIND(kind, part, text, part_2, text_2)                                                \
    {{PROF_PART_OF_##part, text}, {PROF_PART_OF_##part_2, text_2}},
        SLOW_KINDS_LIST(SLOW_KIND)
#undef SLOW_KIND
    };
    if (!why->has_cause)
        return false;
    const struct prof_iteration_part *part = &why->parts[why->cause];
    const char *text = expected[kind][form].text;
    /* What disturbs the others may be named itself. */
    bool itself = kind == SLOW_KIND_CACHE_FLUSH && part->kind == PROF_PART_OF_MEMSET;
    return (part->kind == expected[kind][form].part || itself) &&
           (strstr(why->seen, text) || strstr(why->place.path, text));
}
