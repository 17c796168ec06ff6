/* Iterations one by one: what each did against what the program did, states that add up to the
 * nanosecond, and which are slow. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/iterations/iterations.h"
#include "libprof/base/distribution.h"
#include "tests/check_main.h"
#include "tests/diagnosis/scene.h"
#include "tests/diagnosis/slow_steps.h"

#define US INT64_C(1000)
#define STEPS 60

static struct prof_capture *capture;
static struct prof_iteration_list list;

static void list_scene(struct scene *s)
{
    struct prof_error err = {0};
    capture = scene_close(s);
    ck_assert_msg(!prof_iteration_list(capture, NULL, NULL, &list, &err), "%s", err.message);
}

static void drop(void)
{
    prof_iteration_list_free(&list);
    prof_close(capture);
}

static int64_t state_sum(const struct prof_iteration_row *row)
{
    int64_t sum = 0;
    for (int i = 0; i < PROF_SLICES; i++)
        sum += row->ns[i];
    return sum;
}

/* A step of a memcpy, two kernels and a wait; step `slow` has a cudaMalloc of 2 ms more, and step k
 * 100 ns more per `drift` than the one before. */
static void run_steps(struct scene *s, int steps, int slow, int every, int64_t drift)
{
    int config = scene_config(s, "work", 64, 256, 32);
    for (int k = 0; k < steps; k++) {
        scene_push(s, "step");
        scene_copy(s, 0, SCENE_UP, SCENE_PINNED, 4096, 20 * US, false);
        if (k == slow || (every && k % every == every - 1)) {
            scene_call(s, "cudaMalloc", 2000 * US);
            scene_lifetime(s, s->host, PROF_UNKNOWN, 1 << 20, 3);
        }
        scene_kernel(s, 0, config, 100 * US + k * 100 * drift);
        scene_kernel(s, 0, config, (50 + k % 3) * US);
        scene_sync(s);
        scene_pop(s);
        scene_host(s, 5 * US);
    }
}

START_TEST(each_row_is_what_the_step_did)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    run_steps(&s, STEPS, 30, 0, 0);
    list_scene(&s);
    ck_assert_ptr_null(list.why_none);
    ck_assert_uint_eq(list.count, STEPS);
    ck_assert_uint_eq(list.series_count, 1);
    ck_assert_int_eq(list.series[0].count, STEPS - 1);
    ck_assert_int_eq(list.series[0].warm_up, 1);
    ck_assert_int_eq(list.series[0].slow, 1);
    for (size_t i = 0; i < list.count; i++) {
        const struct prof_iteration_row *row = &list.rows[i];
        ck_assert_int_eq(row->number, (int64_t)i + 1);
        ck_assert_int_eq(state_sum(row), row->duration_ns);
        ck_assert_int_eq(row->launches, 2);
        ck_assert_int_eq(row->transfers, 1);
        ck_assert_int_eq(row->bytes, 4096);
        ck_assert_int_eq(row->synchronizations, 1);
        ck_assert_int_eq(row->device_ns, (170 + (int64_t)i % 3) * US);
        ck_assert_int_eq(row->allocations, i == 30);
        ck_assert_int_eq(row->allocated_bytes, i == 30 ? 1 << 20 : 0);
        ck_assert_int_eq(row->slow, i == 30);
        ck_assert_int_eq(row->warm_up, i == 0);
        ck_assert_int_eq(row->ns[PROF_SLICE_ALLOC] > 0, i == 30);
        ck_assert_int_ge(row->api_ns, row->sync_ns);
        ck_assert_int_le(row->api_ns, row->duration_ns);
    }
    drop();
}
END_TEST

/* A program that only queues work: an iteration takes as long as the device needs for it. */
START_TEST(queued_work_is_its_iterations)
{
    struct scene s;
    int64_t sum = 0;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 64, 256, 32);
    for (int k = 0; k < STEPS; k++) {
        scene_push(&s, "step");
        scene_kernel(&s, 0, config, 500 * US);
        scene_kernel(&s, 1, config, 300 * US);
        scene_pop(&s);
    }
    scene_sync(&s);
    list_scene(&s);
    ck_assert_uint_eq(list.count, STEPS);
    for (size_t i = 0; i < list.count; i++) {
        ck_assert_int_eq(state_sum(&list.rows[i]), list.rows[i].duration_ns);
        sum += list.rows[i].duration_ns;
    }
    ck_assert_int_eq(sum, list.rows[STEPS - 1].start_ns + list.rows[STEPS - 1].duration_ns -
                              list.rows[0].start_ns);
    drop();
}
END_TEST

/* Ranges of two domains mark iterations, and cross: a call is in the one that began last. */
START_TEST(a_call_is_in_one_of_two_iterations)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 64, 256, 32);
    for (int k = 0; k < STEPS; k++) {
        scene_push(&s, "step");
        scene_kernel(&s, 0, config, 50 * US);
        scene_push(&s, "step");
        scene_kernel(&s, 0, config, 50 * US);
        scene_sync(&s);
        scene_pop(&s);
        scene_pop(&s);
        scene_host(&s, 50 * US);
    }
    scene_sql(&s, "INSERT INTO string(id, value) VALUES(9001, 'lib');"
                  "UPDATE range SET domain = 9001, depth = 0, duration = duration + 20000 "
                  "WHERE depth = 1");
    list_scene(&s);
    ck_assert_uint_eq(list.count, 2 * STEPS);
    for (size_t i = 0; i < list.count; i++) {
        ck_assert_int_eq(list.rows[i].synchronizations, i % 2);
        ck_assert_int_lt(list.rows[i].api_ns, 50 * US); /* the wait, in the time of the other */
    }
    drop();
}
END_TEST

static void rows_add_up(void)
{
    for (size_t i = 0; i < list.count; i++) {
        ck_assert_int_eq(state_sum(&list.rows[i]), list.rows[i].duration_ns);
        ck_assert_int_le(list.rows[i].api_ns, list.rows[i].duration_ns);
    }
}

/* Ranges that end inside a call have of it what is inside. */
START_TEST(iterations_end_inside_calls)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 64, 256, 32);
    for (int k = 0; k < STEPS; k++) {
        scene_push(&s, "step");
        scene_kernel(&s, 0, config, 10 * US);
        scene_call(&s, "cudaMalloc", 200 * US);
        s.host -= 100 * US;
        scene_pop(&s);
        s.host += 100 * US;
        scene_sync(&s);
    }
    list_scene(&s);
    ck_assert_uint_eq(list.count, STEPS);
    rows_add_up();
    drop();
}
END_TEST

/* Ranges inside iterations that are found by their launches. */
START_TEST(iterations_overlap)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 64, 256, 32), other = scene_config(&s, "b", 9, 64, 32);
    for (int k = 0; k < 2 * STEPS; k++) {
        if (k < STEPS)
            scene_push(&s, "step");
        scene_kernel(&s, 0, config, 100 * US);
        scene_kernel(&s, 0, other, 50 * US);
        scene_host(&s, 20 * US);
        if (k >= STEPS && k % 3 == 0) {
            scene_push(&s, "step");
            scene_pop(&s);
        }
        scene_host(&s, 20 * US);
        scene_kernel(&s, 0, config, 50 * US);
        scene_sync(&s);
        if (k < STEPS)
            scene_pop(&s);
    }
    list_scene(&s);
    ck_assert_uint_gt(list.count, STEPS + STEPS / 2);
    rows_add_up();
    drop();
}
END_TEST

/* As in traces of other profilers that lack the launches. */
START_TEST(without_launches_the_time_in_calls_is_not_known)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    run_steps(&s, STEPS, -1, 0, 0);
    scene_sql(&s, "UPDATE kernel SET thread = NULL, api_lead = NULL, api_duration = NULL;"
                  "DELETE FROM range; DELETE FROM transfer");
    list_scene(&s);
    ck_assert_uint_gt(list.count, STEPS / 2);
    for (size_t i = 0; i < list.count; i++)
        ck_assert_int_eq(list.rows[i].api_ns, PROF_UNKNOWN);
    drop();
}
END_TEST

START_TEST(what_comes_back_and_what_grows)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    run_steps(&s, STEPS, -1, 10, 0);
    list_scene(&s);
    ck_assert_int_eq(list.series[0].slow, 6);
    ck_assert_int_eq(list.series[0].period, 10);
    ck_assert_int_eq(list.series[0].period_first, 10);
    ck_assert(list.series[0].drift == 0);
    drop();
    scene_open(&s, "cuda", "gpu");
    run_steps(&s, STEPS, -1, 0, 5); /* 29.5 us more in all, of some 190 */
    list_scene(&s);
    ck_assert_int_eq(list.series[0].slow, 0);
    ck_assert_int_eq(list.series[0].period, 0);
    ck_assert(list.series[0].drift > 0.12 && list.series[0].drift < 0.18);
    drop();
}
END_TEST

START_TEST(nothing_repeats)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    scene_kernel(&s, 0, scene_config(&s, "once", 64, 256, 32), 10 * US);
    list_scene(&s);
    ck_assert_uint_eq(list.count, 0);
    ck_assert_ptr_nonnull(list.why_none);
    drop();
}
END_TEST

static void parts_add_up(const struct prof_iteration_why *why)
{
    int64_t here = 0, usual = 0, more = 0;
    for (size_t p = 0; p < why->part_count; p++) {
        here += why->parts[p].ns;
        usual += why->parts[p].usual_ns;
        more += why->parts[p].more_ns;
        ck_assert_int_eq(why->parts[p].ns - why->parts[p].usual_ns, why->parts[p].more_ns);
    }
    ck_assert_int_eq(here, why->duration_ns);
    ck_assert_int_eq(usual, why->usual_ns);
    ck_assert_int_eq(more, why->duration_ns - why->usual_ns);
}

/* Each planted cause is named, and none where nothing was planted. */
START_TEST(the_first_cause_is_named)
{
    enum slow_kind kind = (enum slow_kind)(_i % SLOW_KINDS);
    int form = _i / SLOW_KINDS % 2, seed = 1 + 4 * form + _i / SLOW_KINDS / 2;
    struct prof_error err = {0};
    struct prof_iteration_choice explain = {.slow = 1000};
    capture = slow_steps_record(kind, form, (uint64_t)seed);
    ck_assert_msg(!prof_iteration_list(capture, NULL, &explain, &list, &err), "%s", err.message);
    const struct prof_iteration_row *planted = slow_steps_planted(&list);
    for (size_t i = 0; i < list.why_count; i++) {
        parts_add_up(&list.whys[i]);
        ck_assert_msg(planted || !list.whys[i].has_cause, "%s", list.whys[i].seen);
        ck_assert_msg(!planted || list.whys[i].number != planted->number ||
                          slow_kind_is_named(kind, form, &list.whys[i]),
                      "%s: %s; %s", slow_kind_name(kind), list.whys[i].seen,
                      list.whys[i].place.path);
    }
    ck_assert(!planted || planted->slow);
    for (size_t i = 0; i < list.count; i += 7) { /* also those that are not slow */
        struct prof_iteration_list one;
        explain = (struct prof_iteration_choice){.number = (int64_t)i + 1};
        ck_assert(!prof_iteration_list(capture, NULL, &explain, &one, &err));
        ck_assert_uint_eq(one.why_count, 1);
        parts_add_up(one.whys);
        ck_assert_int_eq(one.whys->duration_ns, list.rows[i].duration_ns);
        ck_assert(list.rows[i].slow || list.rows[i].warm_up || !one.whys->has_cause);
        prof_iteration_list_free(&one);
    }
    explain.number = (int64_t)list.count + 1;
    struct prof_iteration_list none;
    ck_assert_int_eq(prof_iteration_list(capture, NULL, &explain, &none, &err), PROF_NOTFOUND);
    drop();
}
END_TEST

static const struct prof_iteration_why *why_of(size_t step)
{
    struct prof_error err = {0};
    struct prof_iteration_choice explain = {.number = (int64_t)step + 1};
    ck_assert_msg(!prof_iteration_list(capture, NULL, &explain, &list, &err), "%s", err.message);
    ck_assert_uint_eq(list.why_count, 1);
    ck_assert_msg(list.whys[0].has_cause, "%s", list.whys[0].seen);
    return &list.whys[0];
}

/* Hundreds of calls before one launch are as much a cause as one. */
START_TEST(many_calls_before_a_launch_are_a_cause)
{
    enum { SLOW = 40, CALLS = 90 };
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 64, 256, 32);
    for (int k = 0; k < STEPS; k++) {
        scene_push(&s, "step");
        for (int i = 0; k == SLOW && i < CALLS; i++) {
            scene_call(&s, "cudaMalloc", 40 * US);
            scene_host(&s, 2 * US);
            scene_call(&s, "cudaFree", 80 * US);
            scene_host(&s, 2 * US);
        }
        scene_kernel(&s, 0, config, (300 + k % 7) * US);
        scene_sync(&s);
        scene_pop(&s);
    }
    capture = scene_close(&s);
    const struct prof_iteration_why *why = why_of(SLOW);
    ck_assert_int_eq(why->parts[why->cause].kind, PROF_PART_OF_ALLOC);
    ck_assert_str_eq(why->parts[why->cause].name, "cudaMalloc");
    ck_assert_int_eq(why->parts[why->cause].ns, CALLS * 40 * US);
    ck_assert_msg(strstr(why->seen, "called 90 times, usually never"), "%s", why->seen);
    parts_add_up(why);
    drop();
}
END_TEST

/* The host works, is blocked for a moment, and works again before it launches: in a library that
 * the program calls, in the interpreter alone, and below a function of Python that -X perf names.
 */
START_TEST(own_work_has_a_place_and_the_line_that_ends_it)
{
    enum { SLOW = 40 };
    static const struct {
        int stack;
        const char *seen;
    } cases[] = {
        {3, "in train (train.c:30), computing, in libcompiler.so.12"},
        {5, "in dtoa (python3.12), computing; Python's function n/a (see the trust block)"},
        {7, "in write_log (log.py), computing, in libcompiler.so.12"},
    };
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 64, 256, 32);
    scene_sql(&s,
              "INSERT INTO string(id, value) VALUES(901, 'train'), (902, '/home/me/train.c'), "
              "(903, 'compile_program'), (904, 'dtoa'), (905, 'write_log'), "
              "(906, '/home/me/log.py'), (907, '/build/compile.c');"
              "INSERT INTO module(id, process, path, address, bytes) "
              "VALUES(9, 1, '/usr/lib/libcompiler.so.12', 4096, 4096), "
              "(10, 1, '/usr/bin/python3.12', 16384, 4096);"
              "INSERT INTO frame(id, process, kind, address, module) VALUES(1, 1, 1, 1, NULL), "
              "(2, 1, 1, 2, NULL), (3, 1, 1, 5000, 9), (4, 1, 1, 16400, 10), (5, 1, 1, 5, NULL), "
              "(6, 1, 1, 5010, 9);"
              "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 901, 902, 40), "
              "(2, 0, 901, 902, 30), (3, 0, 903, NULL, NULL), (4, 0, 904, NULL, NULL), "
              "(5, 0, 905, 906, NULL), (6, 0, 903, 907, 8);"
              "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), "
              "(2, NULL, 2, 1), (3, 2, 3, 2), (5, NULL, 4, 1), (6, 5, 5, 2), (7, 6, 6, 3);");
    for (int k = 0; k < STEPS; k++) {
        scene_push(&s, "step");
        for (int i = 0; k == SLOW && i < 21; i++) {
            scene_sql(&s,
                      "INSERT INTO cpu_sample(start, thread, kind, duration, weight, stack) "
                      "VALUES(%lld, 1, %d, %s, 100000, %d)",
                      (long long)s.host, i == 10 ? 2 : 1, i == 10 ? "100000" : "NULL",
                      cases[_i].stack);
            scene_host(&s, 100 * US);
        }
        scene_kernel(&s, 0, config, (300 + k % 7) * US);
        scene_sync(&s);
        scene_pop(&s);
    }
    scene_sql(&s, "UPDATE kernel SET stack = 1");
    capture = scene_close(&s);
    const struct prof_iteration_why *why = why_of(SLOW);
    ck_assert_int_eq(why->parts[why->cause].kind, PROF_PART_OF_HOST);
    ck_assert_str_eq(why->place.line, "train (train.c:40)");
    ck_assert(why->place.line_ends_it);
    ck_assert_msg(strstr(why->seen, cases[_i].seen), "%s", why->seen);
    drop();
}
END_TEST

/* Where nothing is wrong, at most 1 % is beyond the fence; exponential values are the worst that
 * are looked at. */
START_TEST(the_fence_holds_what_is_usual)
{
    enum { RUNS = 20000 };
    static const size_t sizes[] = {7, 8, 11, 15, 30, 100};
    uint64_t state = 1;
    for (int kind = 0; kind < 3; kind++) {
        for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++) {
            int beyond = 0;
            for (int run = 0; run < RUNS; run++) {
                int64_t values[101];
                for (size_t i = 0; i <= sizes[n]; i++) {
                    double sum = 0; /* Irwin and Hall */
                    for (int k = 0; k < 12; k++)
                        sum += prof_random_share(&state);
                    double x = kind == 0   ? sum - 6
                               : kind == 1 ? exp(0.3 * (sum - 6))
                                           : -log(1 - prof_random_share(&state));
                    values[i] = (int64_t)(1e6 * (20 + x));
                }
                int64_t last = values[sizes[n]];
                qsort(values, sizes[n], sizeof *values, prof_ascending_int64);
                beyond += last > prof_upper_fence(values, sizes[n]);
            }
            ck_assert_msg(beyond <= RUNS * (kind == 2 ? 0.018 : 0.01), "kind %d, %zu values: %d",
                          kind, sizes[n], beyond);
        }
    }
    ck_assert_int_eq(prof_upper_fence(&(int64_t){1}, 1), PROF_UNKNOWN);
}
END_TEST

CHECK_MAIN_LOOPS("iteration_rows", {each_row_is_what_the_step_did, 1},
                 {queued_work_is_its_iterations, 1}, {iterations_end_inside_calls, 1},
                 {a_call_is_in_one_of_two_iterations, 1}, {iterations_overlap, 1},
                 {without_launches_the_time_in_calls_is_not_known, 1},
                 {what_comes_back_and_what_grows, 1}, {nothing_repeats, 1},
                 {the_fence_holds_what_is_usual, 1}, {many_calls_before_a_launch_are_a_cause, 1},
                 {own_work_has_a_place_and_the_line_that_ends_it, 3},
                 {the_first_cause_is_named, 4 * SLOW_KINDS})
