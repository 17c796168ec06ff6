/* What a run is reduced to: which range is its iteration, what counts as inside, where things
 * happen. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/check_main.h"
#include "libprof/include/prof_compare.h"
#include "tests/diagnosis/scene.h"

#define US 1000

static struct prof_run extract(struct scene *s, const char *iteration)
{
    struct prof_run run;
    struct prof_error err = {0};
    struct prof_run_options options = {.iteration = iteration, .skip = PROF_UNKNOWN};
    struct prof_capture *capture = scene_close(s);
    ck_assert_msg(!prof_run_extract(capture, &options, &run, &err), "%s", err.message);
    prof_close(capture);
    return run;
}

static const struct prof_metric *find(const struct prof_run *run, enum prof_metric_family family,
                                      const char *name, const char *place)
{
    for (size_t i = 0; i < run->count; i++) {
        const struct prof_metric *m = &run->metrics[i];
        if (m->family == family && !strcmp(m->name, name) && (!place || !strcmp(m->place, place)))
            return m;
    }
    return NULL;
}

/* A set-up that launches twice, then `count` ranges of that name with two kernels each. */
static void loop(struct scene *s, const char *name, int count, int config)
{
    scene_kernel(s, 0, config, 10 * US);
    scene_kernel(s, 0, config, 10 * US);
    scene_sync(s);
    for (int i = 0; i < count; i++) {
        scene_push(s, name);
        scene_push(s, "inner");
        scene_kernel(s, 0, config, 20 * US);
        scene_pop(s);
        scene_kernel(s, 0, config, 30 * US);
        scene_sync(s);
        scene_pop(s);
    }
}

START_TEST(step_by_name)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 64, 128, 32);
    scene_push(&s, "everything");
    loop(&s, "step", 10, config);
    scene_pop(&s);
    struct prof_run run = extract(&s, NULL);
    ck_assert_int_eq(run.iteration_source, PROF_ITERATION_STEP);
    ck_assert_str_eq(run.iteration, "step");
    ck_assert_int_eq(run.iterations, 9);
    ck_assert_int_eq(run.skipped, 1);
    const struct prof_metric *launches = find(&run, PROF_METRIC_LAUNCHES, "work", NULL);
    ck_assert_int_eq(launches->inside, 18);
    ck_assert_int_eq(launches->outside, 4); /* set-up and warm-up */
    ck_assert_str_eq(launches->place, "everything/step/inner");
    ck_assert_int_eq(find(&run, PROF_METRIC_RANGE_LAUNCHES, "", "everything/step")->inside, 9);
    ck_assert_int_eq(find(&run, PROF_METRIC_RANGE_LAUNCHES, "", "everything")->outside, 2);
    ck_assert_int_eq(find(&run, PROF_METRIC_REGISTERS, "work", NULL)->outside, 32);
    const struct prof_metric *kernel = find(&run, PROF_METRIC_KERNEL, "work", NULL);
    ck_assert_int_eq(kernel->sketch.count, 18);
    ck_assert_int_eq(kernel->inside, 9 * 50 * US);
    ck_assert(fabs(kernel->iteration_ns - 50 * US) < 1e-3);
    ck_assert_int_eq(find(&run, PROF_METRIC_BUSY, "", NULL)->inside, 9 * 50 * US);
    const struct prof_metric *wall = find(&run, PROF_METRIC_WALL, "", NULL);
    const struct prof_metric *idle = find(&run, PROF_METRIC_IDLE, "", NULL);
    ck_assert_int_eq(wall->sketch.count, 9);
    ck_assert_int_eq(wall->inside, run.steady_ns);
    ck_assert_int_eq(idle->inside, wall->inside - 9 * 50 * US);
    ck_assert_int_eq(find(&run, PROF_METRIC_RANGE, "everything/step/inner", NULL)->sketch.count, 9);
    ck_assert_ptr_null(find(&run, PROF_METRIC_RANGE, "everything/step", NULL)); /* that is wall */
    ck_assert_int_eq(
        find(&run, PROF_METRIC_SYNCS, "cudaDeviceSynchronize", "everything/step")->inside, 9);
    ck_assert_int_eq(find(&run, PROF_METRIC_API_CALLS, "cudaLaunchKernel", NULL)->inside, 18);
    prof_run_free(&run);
}
END_TEST

/* A range that only queues work takes as long as the device needs for it. */
START_TEST(step_that_queues)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 64, 128, 32);
    for (int i = 0; i < 10; i++) {
        scene_push(&s, "step");
        scene_kernel(&s, 0, config, 200 * US);
        scene_kernel(&s, 0, config, 300 * US);
        scene_pop(&s);
    }
    scene_sync(&s);
    struct prof_run run = extract(&s, NULL);
    const struct prof_metric *wall = find(&run, PROF_METRIC_WALL, "", NULL);
    const struct prof_metric *busy = find(&run, PROF_METRIC_BUSY, "", NULL);
    ck_assert_int_eq(wall->sketch.count, 9);
    ck_assert_int_eq(busy->inside, 9 * 500 * US);
    ck_assert_int_ge(wall->inside, busy->inside);
    ck_assert_int_le(wall->inside, busy->inside + 9 * 20 * US); /* gaps between kernels */
    ck_assert_int_eq(run.steady_ns, wall->inside);
    prof_run_free(&run);
}
END_TEST

/* An iteration whose work begins beside that of the one before: what runs before that one is done
 * is of its time. */
START_TEST(steps_side_by_side)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 64, 128, 32);
    for (int i = 0; i < 10; i++) {
        scene_push(&s, "step");
        scene_kernel(&s, i % 2, config, 500 * US);
        scene_pop(&s);
        scene_host(&s, 200 * US);
    }
    scene_sync(&s);
    struct prof_run run = extract(&s, NULL);
    const struct prof_metric *wall = find(&run, PROF_METRIC_WALL, "", NULL);
    const struct prof_metric *busy = find(&run, PROF_METRIC_BUSY, "", NULL);
    const struct prof_metric *idle = find(&run, PROF_METRIC_IDLE, "", NULL);
    ck_assert_int_lt(wall->inside, 9 * 500 * US);
    ck_assert_int_le(busy->inside, wall->inside);
    ck_assert_int_eq(idle->inside, wall->inside - busy->inside);
    for (int q = 0; q < PROF_SKETCH_QUANTILES; q++)
        ck_assert(busy->sketch.quantile[q] <= wall->sketch.quantile[q]);
    prof_run_free(&run);
}
END_TEST

/* Where some iterations queue nothing, and are over before the device is, ranges are what they are.
 */
START_TEST(steps_that_queue_nothing)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 64, 128, 32);
    for (int i = 0; i < 10; i++) {
        scene_push(&s, "step");
        if (i % 2)
            scene_host(&s, 7 * US);
        else
            scene_kernel(&s, 0, config, 500 * US);
        scene_pop(&s);
    }
    scene_sync(&s);
    struct prof_run run = extract(&s, NULL);
    const struct prof_metric *wall = find(&run, PROF_METRIC_WALL, "", NULL);
    ck_assert_int_ge(wall->inside, 5 * 7 * US);
    ck_assert_int_le(wall->inside, 9 * 100 * US);
    ck_assert_ptr_nonnull(find(&run, PROF_METRIC_BUSY, "", NULL));
    ck_assert_ptr_null(find(&run, PROF_METRIC_IDLE, "", NULL)); /* of what has no end */
    prof_run_free(&run);
}
END_TEST

START_TEST(iteration_asked_for)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 64, 128, 32);
    loop(&s, "step", 5, config);
    loop(&s, "batch", 6, config);
    struct prof_run run = extract(&s, "batch");
    ck_assert_int_eq(run.iteration_source, PROF_ITERATION_ASKED);
    ck_assert_int_eq(run.iterations, 5);
    ck_assert_int_eq(find(&run, PROF_METRIC_LAUNCHES, "work", NULL)->inside, 10);
    prof_run_free(&run);
}
END_TEST

START_TEST(iteration_not_there)
{
    struct scene s;
    struct prof_run run;
    struct prof_error err = {0};
    struct prof_run_options options = {.iteration = "epoch", .skip = PROF_UNKNOWN};
    scene_open(&s, "cuda", "gpu");
    loop(&s, "step", 5, scene_config(&s, "work", 64, 128, 32));
    struct prof_capture *capture = scene_close(&s);
    ck_assert_int_eq(prof_run_extract(capture, &options, &run, &err), PROF_NOTFOUND);
    ck_assert(strstr(err.message, "epoch"));
    prof_close(capture);
}
END_TEST

START_TEST(longest_repeating)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    loop(&s, "chunk", 3, scene_config(&s, "work", 64, 128, 32));
    struct prof_run run = extract(&s, NULL);
    ck_assert_int_eq(run.iteration_source, PROF_ITERATION_REPEATING);
    ck_assert_str_eq(run.iteration, "chunk");
    ck_assert_int_eq(run.iterations, 3); /* of so few none is left out */
    prof_run_free(&run);
}
END_TEST

START_TEST(whole_run)
{
    struct scene s;
    scene_open(&s, "opencl", "cpu");
    int config = scene_config(&s, "work", 64, 128, 32);
    for (int i = 0; i < 8; i++)
        scene_kernel(&s, 0, config, 20 * US);
    scene_sync(&s);
    struct prof_run run = extract(&s, NULL);
    ck_assert_int_eq(run.iteration_source, PROF_ITERATION_RUN);
    ck_assert_ptr_null(run.iteration);
    ck_assert_int_eq(run.iterations, 1);
    ck_assert_int_eq(find(&run, PROF_METRIC_LAUNCHES, "work", NULL)->inside, 8);
    /* the first launch is warm-up */
    ck_assert_int_eq(find(&run, PROF_METRIC_KERNEL, "work", NULL)->sketch.count, 7);
    prof_run_free(&run);
}
END_TEST

/* Nothing of a device, nothing at all: a run all the same. */
START_TEST(empty)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    struct prof_run run = extract(&s, NULL);
    struct prof_comparison result;
    ck_assert_int_eq(run.iteration_source, PROF_ITERATION_RUN);
    ck_assert_ptr_null(find(&run, PROF_METRIC_BUSY, "", NULL));
    ck_assert(!prof_compare((struct prof_runs){&run, 1}, (struct prof_runs){&run, 1}, NULL, &result,
                            NULL));
    ck_assert_int_ne(result.verdict, PROF_VERDICT_FAIL);
    prof_comparison_free(&result);
    prof_run_free(&run);
}
END_TEST

/* What a CPU device has of memory is what is free at the moment: no property of it. */
START_TEST(memory_of_devices)
{
    const char *const kinds[] = {"gpu", "cpu"};
    for (int k = 0; k < 2; k++) {
        struct scene s;
        scene_open(&s, "opencl", kinds[k]);
        scene_kernel(&s, 0, scene_config(&s, "work", 64, 128, 32), 20 * US);
        scene_sync(&s);
        struct prof_run run = extract(&s, NULL);
        size_t units = 0, bytes = 0;
        for (size_t i = 0; i < run.environment_count; i++) {
            const struct prof_environment *e = &run.environment[i];
            units += !strcmp(e->name, "device units") && e->value;
            bytes += !strcmp(e->name, "device memory") && e->value;
        }
        ck_assert_uint_eq(units, 1);
        ck_assert_uint_eq(bytes, k == 0);
        prof_run_free(&run);
    }
}
END_TEST

/* A range that declares a launch's work lies around it, and is no place in the program. */
START_TEST(declared_work)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 64, 128, 32);
    for (int i = 0; i < 6; i++) {
        scene_push(&s, "step");
        scene_push(&s, "declared");
        scene_kernel(&s, 0, config, 20 * US);
        scene_pop(&s);
        scene_sync(&s);
        scene_pop(&s);
    }
    scene_sql(&s, "INSERT INTO string(id, value) VALUES(900, 'perfkit');"
                  "UPDATE range SET domain = 900, depth = 0 WHERE name = "
                  "(SELECT id FROM string WHERE value = 'declared')");
    struct prof_run run = extract(&s, NULL);
    ck_assert_str_eq(find(&run, PROF_METRIC_LAUNCHES, "work", NULL)->place, "step");
    ck_assert_ptr_null(find(&run, PROF_METRIC_RANGE, "declared", NULL));
    prof_run_free(&run);
}
END_TEST

/* Hundreds of places that only allocations have: what holds the places moves while they come. */
START_TEST(places_of_allocations)
{
    enum { PLACES = 300 };
    struct scene s;
    char name[32];
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 64, 128, 32);
    loop(&s, "step", 4, config);
    scene_push(&s, "last");
    for (int i = 0; i < PLACES; i++) {
        snprintf(name, sizeof name, "place %d", i);
        scene_push(&s, name);
        scene_lifetime(&s, s.host + US, s.host + 2 * US, 1024, 3);
        scene_call(&s, "cudaMalloc", 10 * US);
        scene_pop(&s);
    }
    scene_kernel(&s, 0, config, 10 * US);
    scene_sync(&s);
    scene_pop(&s);
    struct prof_run run = extract(&s, NULL);
    for (int i = 0; i < PLACES; i++) {
        snprintf(name, sizeof name, "last/place %d", i);
        const struct prof_metric *m = NULL;
        for (size_t k = 0; k < run.count && !m; k++)
            if (run.metrics[k].family == PROF_METRIC_ALLOCATIONS &&
                !strcmp(run.metrics[k].place, name))
                m = &run.metrics[k];
        ck_assert_msg(m, "%s", name);
        ck_assert_int_eq(m->inside + m->outside, 1);
    }
    prof_run_free(&run);
}
END_TEST

/* Ranges of more names than places are kept for: those after the last are one place, and no launch
 * is lost. */
START_TEST(numbered_ranges)
{
    const int counts[] = {4095, 4096, 5000};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        struct scene s;
        char name[32];
        scene_open(&s, "cuda", "gpu");
        int config = scene_config(&s, "work", 64, 128, 32);
        for (int i = 0; i < counts[c]; i++) {
            snprintf(name, sizeof name, "request %d", i);
            scene_push(&s, name);
            scene_kernel(&s, 0, config, 20 * US);
            scene_pop(&s);
        }
        scene_sync(&s);
        struct prof_run run = extract(&s, NULL);
        int64_t launches = 0, places = 0, others = 0;
        for (size_t i = 0; i < run.count; i++) {
            const struct prof_metric *m = &run.metrics[i];
            if (m->family != PROF_METRIC_RANGE_LAUNCHES)
                continue;
            places++;
            launches += m->inside + m->outside;
            others += strcmp(m->place, "(others)") ? 0 : m->inside + m->outside;
        }
        ck_assert_int_eq(launches, counts[c]);
        ck_assert_int_eq(others, counts[c] > 4095 ? counts[c] - 4095 : 0);
        ck_assert_int_eq(places, counts[c] > 4095 ? 4096 : counts[c]);
        prof_run_free(&run);
    }
}
END_TEST

/* A program that makes kernels as it runs: those launched least often are one, unless they take
 * time. None of their time and no launch is lost. */
START_TEST(a_kernel_for_each_launch)
{
    enum { KERNELS = 17000 };
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    int often = scene_config(&s, "often", 64, 128, 32),
        slow = scene_config(&s, "slow", 64, 128, 32);
    for (int i = 0; i < 10; i++)
        scene_kernel(&s, 0, often, 20 * US);
    scene_kernel(&s, 0, slow, 50000 * US);
    scene_sync(&s);
    scene_sql(&s,
              "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
              "INSERT INTO string(id, value) SELECT 100000 + i, 'made_' || i FROM n",
              KERNELS);
    scene_sql(&s, "INSERT INTO launch_config(id, name, grid_x, grid_y, grid_z) "
                  "SELECT id, id, 1, 1, 1 FROM string WHERE id > 100000");
    scene_sql(&s,
              "INSERT INTO kernel(start, duration, stream, config, thread) "
              "SELECT %lld + 2000 * (id - 100000), 1000, 1, id, 1 FROM string WHERE id > 100000",
              (long long)s.host);
    scene_host(&s, 2 * US * (KERNELS + 2));
    struct prof_run run = extract(&s, NULL);
    const struct prof_metric *others = find(&run, PROF_METRIC_KERNEL, "(others)", NULL);
    ck_assert_int_eq(others->inside, KERNELS * US);
    ck_assert_int_eq(others->sketch.count, 0);
    ck_assert_int_eq(find(&run, PROF_METRIC_LAUNCHES, "often", NULL)->inside, 10);
    ck_assert_int_eq(find(&run, PROF_METRIC_KERNEL, "slow", NULL)->inside, 50000 * US);
    ck_assert_ptr_null(find(&run, PROF_METRIC_LAUNCHES, "(others)", NULL));
    ck_assert_ptr_null(find(&run, PROF_METRIC_LAUNCHES, "made_1", NULL));
    ck_assert_int_eq(find(&run, PROF_METRIC_RANGE_LAUNCHES, "", NULL)->inside, KERNELS + 11);
    ck_assert_uint_lt(run.count, 100);
    prof_run_free(&run);
}
END_TEST

START_TEST(copies_and_memory)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    scene_lifetime(&s, 1000, 50000000, 1 << 20, 3);
    scene_lifetime(&s, 2000, PROF_UNKNOWN, 512, 3);
    for (int i = 0; i < 6; i++) {
        scene_push(&s, "step");
        scene_copy(&s, 0, SCENE_UP, SCENE_PAGEABLE, 1 << 16, 20 * US, true);
        scene_copy(&s, 0, SCENE_UP, SCENE_PINNED, 1 << 16, 10 * US, false);
        scene_copy(&s, 0, SCENE_DOWN, SCENE_PINNED, 1 << 10, 5 * US, false);
        scene_fill(&s, 0, 4096, 2 * US);
        scene_call(&s, "cudaEventQuery", US);
        scene_call(&s, "cudaSetDevice", US);
        scene_sync(&s);
        scene_pop(&s);
    }
    struct prof_run run = extract(&s, NULL);
    ck_assert_int_eq(find(&run, PROF_METRIC_COPIES, "HtoD", "step")->inside, 10);
    ck_assert_int_eq(find(&run, PROF_METRIC_COPY_BYTES, "HtoD", "step")->inside, 10 << 16);
    ck_assert_int_eq(find(&run, PROF_METRIC_PAGEABLE_BYTES, "HtoD", "step")->inside, 5 << 16);
    ck_assert_int_eq(find(&run, PROF_METRIC_PAGEABLE_BYTES, "DtoH", "step")->inside, 0);
    ck_assert_int_eq(find(&run, PROF_METRIC_COPIES, "memset", "step")->inside, 5);
    const struct prof_metric *copy =
        find(&run, PROF_METRIC_COPY, "HtoD pageable > device, 2^16 bytes", NULL);
    ck_assert_int_eq(copy->sketch.count, 5);
    ck_assert(fabs(exp(copy->sketch.log_mean) - 20.0 * US / (1 << 16)) < 1e-6);
    ck_assert_int_eq(find(&run, PROF_METRIC_PEAK_BYTES, "device", NULL)->outside, (1 << 20) + 512);
    ck_assert_int_eq(find(&run, PROF_METRIC_LEAKED_BYTES, "device", NULL)->outside, 512);
    ck_assert_int_eq(find(&run, PROF_METRIC_ALLOCATIONS, "device", NULL)->outside, 2);
    ck_assert_int_eq(find(&run, PROF_METRIC_API_CALLS, "cudaSetDevice", NULL)->inside, 5);
    ck_assert_ptr_null(find(&run, PROF_METRIC_API_CALLS, "cudaEventQuery", NULL)); /* polling */
    prof_run_free(&run);
}
END_TEST

/* 500 W by a counter that was read each 0.1 s; an iteration takes 0.5 s. */
static void extract_energy(const char *marks, struct prof_run *run)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 64, 128, 32);
    for (int i = 0; i < 20; i++) {
        scene_push(&s, "step");
        scene_kernel(&s, 0, config, 500000 * US);
        scene_sync(&s);
        scene_pop(&s);
    }
    for (int i = 0; i < 103; i++)
        scene_sql(&s,
                  "INSERT INTO device_clock(device, start, energy_mj) VALUES(1, %d00000000, "
                  "%d0000)",
                  i, 700 + 5 * i);
    scene_sql(&s, "%s", marks);
    *run = extract(&s, NULL);
}

START_TEST(energy_of_iterations)
{
    struct prof_run run;
    extract_energy("", &run);
    const struct prof_metric *energy = find(&run, PROF_METRIC_ENERGY, "", NULL);
    ck_assert_ptr_nonnull(energy);
    ck_assert_int_eq(energy->sketch.count, 1); /* a mean: the counter is too slow for more */
    ck_assert_double_eq_tol(exp(energy->sketch.log_mean), 250000, 10000);
    prof_run_free(&run);
    /* Between two windows ran iterations that were not counted. */
    extract_energy("INSERT INTO recording(process, start, begins) VALUES(1, 0, 1), "
                   "(1, 4000000000, 0), (1, 5000000000, 1)",
                   &run);
    ck_assert_ptr_null(find(&run, PROF_METRIC_ENERGY, "", NULL));
    prof_run_free(&run);
}
END_TEST

CHECK_MAIN("extract", energy_of_iterations, step_by_name, step_that_queues,
           steps_that_queue_nothing, steps_side_by_side, iteration_asked_for, iteration_not_there,
           longest_repeating, whole_run, empty, declared_work, places_of_allocations,
           numbered_ranges, memory_of_devices, a_kernel_for_each_launch, copies_and_memory)
