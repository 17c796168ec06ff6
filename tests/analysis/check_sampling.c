/* Captures of runs with a budget (--overhead=PERCENT): programs whose whole truth is known,
 * recorded in rows of iterations. Intervals hold the truth as often as they say, what is the same
 * in every iteration comes out exactly, and what recording costs comes back. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/base/distribution.h"
#include "tests/check_main.h"
#include "tests/diagnosis/scene.h"

#define MS INT64_C(1000000)
#define SAMPLE 7 /* recording.reason */

static struct scene scene;
static int always, rare;
static uint64_t random_state;
static bool wild; /* recording an iteration costs anything */
static bool bare; /* before the first recorded one, iterations take 8 ms */
static struct prof_estimates estimates;
static struct prof_findings findings;

/* What the program really did. */
static struct truth {
    int64_t always, always_ns, rare, rare_ns, copies;
} truth;

static int64_t drawn(int64_t below)
{
    return (int64_t)((double)below * prof_random_share(&random_state));
}

static void run_kernel(bool recorded, int config, int64_t ns, int64_t *count, int64_t *sum_ns)
{
    ++*count;
    *sum_ns += ns;
    if (recorded)
        scene_kernel(&scene, 0, config, ns);
}

/* 10 ms, recorded 13; the rare kernel in two of seven, twice. */
static void iterate(bool recorded, const char *name)
{
    scene_push(&scene, name);
    run_kernel(recorded, always, MS / 2 + drawn(MS), &truth.always, &truth.always_ns);
    run_kernel(recorded, always, MS / 4, &truth.always, &truth.always_ns);
    for (int i = 0; drawn(7) < 2 && i < 2; i++)
        run_kernel(recorded, rare, MS / 10 + drawn(MS), &truth.rare, &truth.rare_ns);
    truth.copies++;
    if (recorded)
        scene_copy(&scene, 0, SCENE_UP, SCENE_PINNED, 4096, 1000, true);
    if (recorded)
        scene_sync(&scene);
    int64_t added = recorded ? 3 * MS + (wild ? drawn(60 * MS) : 0) : 0;
    int64_t alone = bare ? 8 * MS : 10 * MS;
    bare &= !recorded;
    scene_host(&scene, scene.ranges[0] + alone + added - scene.host);
    scene_pop(&scene);
}

static void mark(bool begins)
{
    scene_sql(&scene,
              "INSERT INTO recording(process, start, begins, reason) VALUES(1, %lld, %d, %d)",
              (long long)scene.host, begins, SAMPLE);
}

/* `first` recorded ones, then `rows` times a gap of `gap` on average and `row` recorded ones. */
static struct prof_capture *sample(uint64_t seed, int first, int rows, int row, int gap,
                                   bool numbered)
{
    struct prof_error err = {0};
    char name[32] = "step";
    int number = 0;
    random_state = seed + 1;
    memset(&truth, 0, sizeof truth);
    scene_open(&scene, "cuda", "gpu");
    always = scene_config(&scene, "always", 64, 256, 32);
    rare = scene_config(&scene, "rare", 64, 256, 32);
    run_kernel(true, rare, MS, &truth.rare, &truth.rare_ns); /* outside of iterations */
    for (int r = 0; r <= rows; r++) {
        int left_out = r ? gap / 2 + (int)drawn(gap + 1) : 0;
        if (left_out)
            mark(false);
        for (int i = 0; i < left_out + (r ? row : first); i++) {
            if (numbered)
                snprintf(name, sizeof name, "step %d", number++);
            if (left_out && i == left_out)
                mark(true);
            iterate(i >= left_out, name);
        }
    }
    struct prof_capture *capture = scene_close(&scene);
    ck_assert_msg(!prof_estimates(capture, &estimates, &err), "%s", err.message);
    ck_assert_msg(!prof_findings(capture, NULL, &findings, &err), "%s", err.message);
    return capture;
}

static void done(struct prof_capture *capture)
{
    prof_estimates_free(&estimates);
    scene_done(capture, &findings);
}

static const struct prof_estimate_row *row_of(const char *name)
{
    for (size_t i = 0; i < estimates.count; i++)
        if (!strcmp(estimates.rows[i].name, name))
            return &estimates.rows[i];
    ck_abort_msg("no %s", name);
}

static bool holds(struct prof_estimate estimate, int64_t value)
{
    ck_assert_double_le(estimate.low, estimate.value);
    ck_assert_double_le(estimate.value, estimate.high);
    return estimate.low <= (double)value && (double)value <= estimate.high;
}

/* Also where each iteration has a name of its own, and where rows are longer than gaps. */
START_TEST(intervals_hold_the_truth)
{
    static const struct {
        int row, gap;
        bool numbered;
    } shapes[] = {{1, 8, false}, {3, 12, true}, {9, 2, false}};
    int times = 0, counts = 0, often = 0, runs = 40;
    for (int seed = 0; seed < runs; seed++) {
        struct prof_capture *capture =
            sample((uint64_t)seed, 5, 25, shapes[_i].row, shapes[_i].gap, shapes[_i].numbered);
        const struct prof_estimate_row *same = row_of("always"), *other = row_of("rare");
        ck_assert_int_eq(estimates.iterations, truth.copies);
        ck_assert_int_eq(estimates.recorded, 5 + 25 * shapes[_i].row);
        ck_assert_double_eq_tol(same->count.value, (double)truth.always, 1e-6);
        ck_assert_double_eq_tol(same->count.low, (double)truth.always, 1e-6);
        ck_assert_double_eq_tol(same->count.high, (double)truth.always, 1e-6);
        ck_assert_int_eq(same->recorded, 2 * estimates.recorded);
        ck_assert_double_eq_tol(row_of("HtoD")->count.value, (double)truth.copies, 1e-6);
        times += holds(same->total_ns, truth.always_ns);
        counts += holds(other->count, truth.rare);
        often += holds(other->total_ns, truth.rare_ns);
        ck_assert_double_gt(other->count.high, other->count.low);
        done(capture);
    }
    ck_assert_int_ge(times, runs * 85 / 100);
    ck_assert_int_ge(counts, runs * 85 / 100);
    ck_assert_int_ge(often, runs * 85 / 100);
}
END_TEST

START_TEST(the_cost_comes_back)
{
    struct prof_capture *capture = sample(3, 5, 20, 2, 10, false);
    const struct prof_overhead *o = &findings.overhead;
    ck_assert_int_eq(o->source, PROF_OVERHEAD_SAMPLED);
    ck_assert_double_eq_tol(o->ratio, 1.3, 0.01);
    ck_assert_double_le(o->low, o->ratio);
    ck_assert_double_le(o->ratio, o->high);
    ck_assert_double_eq_tol(o->bare_ns, 10e6, 1e5);
    ck_assert_int_eq(o->recorded, 45);
    ck_assert_int_eq(o->recorded + o->unrecorded, truth.copies);
    ck_assert_double_eq_tol(o->of_run, 0.3 * 45 / (double)truth.copies, 0.005);
    /* Iterations that were left out are in no finding. */
    ck_assert_int_eq(findings.phases[0].iterations + findings.phases[0].skipped, 45);
    done(capture);
}
END_TEST

/* Without gaps there is nothing to estimate; with one row there is no interval yet. */
/* Nothing is recorded at first, and CUPTI is not on; then it goes on costing 2 ms an iteration,
 * also where that is left out. */
START_TEST(what_is_left_of_cupti_counts)
{
    bare = true;
    struct prof_capture *capture = sample(3, 0, 20, 2, 20, false);
    const struct prof_overhead *o = &findings.overhead;
    double all = (double)truth.copies, first = (double)(o->unrecorded) / 20;
    ck_assert_int_eq(o->source, PROF_OVERHEAD_SAMPLED);
    ck_assert_double_eq_tol(o->ratio, 1.3, 0.01);
    ck_assert_double_eq_tol(o->paused, 1.25, 0.01);
    ck_assert_double_eq_tol(o->of_run, (0.625 * 40 + 0.25 * (all - 40 - first)) / all, 0.01);
    ck_assert_int_eq(o->recorded, 40);
    done(capture);
}
END_TEST

START_TEST(too_few)
{
    struct prof_capture *capture = sample(1, 20, 0, 1, 8, false);
    ck_assert_uint_eq(estimates.count, 0);
    ck_assert_int_eq(findings.overhead.source, PROF_OVERHEAD_UNKNOWN);
    done(capture);
    capture = sample(1, 20, 1, 2, 8, false);
    ck_assert_int_eq(findings.overhead.source, PROF_OVERHEAD_UNKNOWN);
    ck_assert(isinf(row_of("always")->count.high));
    done(capture);
    capture = sample(1, 20, 1, 0, 8, false); /* it ends in the first gap */
    ck_assert_int_eq(estimates.recorded, 20);
    ck_assert_double_eq_tol(row_of("always")->count.value, (double)truth.always, 1e-6);
    ck_assert(isinf(row_of("always")->count.high));
    done(capture);
}
END_TEST

/* However wide intervals of few rows are: an iteration takes some time, and what was recorded
 * happened. */
START_TEST(wide_intervals_are_possible)
{
    int cut = 0;
    wild = true;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct prof_capture *capture = sample(seed, 2, 4, 1, 8, false);
        const struct prof_overhead *o = &findings.overhead;
        ck_assert_int_eq(o->source, PROF_OVERHEAD_SAMPLED);
        ck_assert_double_ge(o->low, 0);
        ck_assert_double_le(o->low, o->ratio);
        cut += o->low == 0;
        for (size_t i = 0; i < findings.count; i++)
            ck_assert_int_le(findings.rows[i].net_min_ns, findings.rows[i].net_max_ns);
        for (size_t i = 0; i < estimates.count; i++)
            ck_assert_double_ge(estimates.rows[i].count.low, (double)estimates.rows[i].recorded);
        done(capture);
    }
    wild = false;
    ck_assert_int_gt(cut, 0);
}
END_TEST

/* What another thread begins at the moment of a change names no iteration. */
START_TEST(one_stray_range)
{
    struct prof_error err = {0};
    random_state = 9;
    memset(&truth, 0, sizeof truth);
    scene_open(&scene, "cuda", "gpu");
    always = scene_config(&scene, "always", 64, 256, 32);
    rare = scene_config(&scene, "rare", 64, 256, 32);
    for (int i = 0; i < 40; i++) {
        if (i % 10 == 4 || i % 10 == 0)
            mark(i % 10 == 0);
        if (i == 4) {
            scene_push(&scene, "a");
            scene_pop(&scene);
        }
        iterate(i % 10 < 4, "step");
    }
    struct prof_capture *capture = scene_close(&scene);
    ck_assert_msg(!prof_estimates(capture, &estimates, &err), "%s", err.message);
    ck_assert_msg(!prof_findings(capture, NULL, &findings, &err), "%s", err.message);
    ck_assert_int_eq(estimates.recorded, 16);
    ck_assert_int_eq(estimates.iterations, 40);
    done(capture);
}
END_TEST

/* Another process that leaves out everything takes nothing from the first one. */
START_TEST(processes_are_kept_apart)
{
    struct prof_error err = {0};
    random_state = 9;
    memset(&truth, 0, sizeof truth);
    scene_open(&scene, "cuda", "gpu");
    scene_second(&scene, true, false);
    always = scene_config(&scene, "always", 64, 256, 32);
    rare = scene_config(&scene, "rare", 64, 256, 32);
    scene_sql(&scene, "INSERT INTO recording(process, start, begins, reason) VALUES(2, 5, 0, 7)");
    for (int i = 0; i < 40; i++) {
        if (i % 10 == 4 || i % 10 == 0)
            mark(i % 10 == 0);
        iterate(i % 10 < 4, "step");
    }
    struct prof_capture *capture = scene_close(&scene);
    ck_assert_msg(!prof_estimates(capture, &estimates, &err), "%s", err.message);
    ck_assert_msg(!prof_findings(capture, NULL, &findings, &err), "%s", err.message);
    ck_assert_int_eq(estimates.recorded, 16);
    ck_assert_double_eq_tol(row_of("always")->count.value, (double)truth.always, 1e-6);
    ck_assert_int_eq(findings.phases[0].iterations + findings.phases[0].skipped, 16);
    done(capture);
}
END_TEST

/* Windows of others, a gap without an end and without iterations, times that cannot be. */
START_TEST(strange_windows)
{
    static const char *const rows[] = {
        "INSERT INTO recording(process, start, begins, reason) VALUES(1, 5, 0, 2)",
        "UPDATE recording SET begins = 0",
        "UPDATE recording SET begins = 1",
        "DELETE FROM range",
        "UPDATE recording SET start = -start",
        "UPDATE range SET start = 9223372036854775807 - id",
        "UPDATE recording SET process = 77",
        "UPDATE range SET duration = NULL",
        "UPDATE kernel SET duration = NULL",
    };
    struct prof_error err = {0};
    struct prof_capture *capture = sample(1, 20, 6, 2, 8, false);
    done(capture);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[] = "/tmp/perfkit-sampling-XXXXXX";
        int fd = mkstemp(path);
        ck_assert_int_ge(fd, 0);
        random_state = 5;
        scene_open(&scene, "cuda", "gpu");
        always = scene_config(&scene, "always", 64, 256, 32);
        rare = scene_config(&scene, "rare", 64, 256, 32);
        for (int k = 0; k < 40; k++) {
            if (k % 8 == 2 || k % 8 == 7)
                mark(k % 8 == 7);
            iterate(k % 8 < 2 || k % 8 == 7, "step");
        }
        ck_assert(scene_save(&scene, path, rows[i]));
        ck_assert_msg(!prof_open(path, &capture, &err), "%s", err.message);
        ck_assert_msg(!prof_estimates(capture, &estimates, &err), "%s", err.message);
        for (size_t k = 0; k < estimates.count; k++)
            ck_assert(!isnan(estimates.rows[k].count.value));
        prof_estimates_free(&estimates);
        prof_close(capture);
        close(fd);
        unlink(path);
    }
}
END_TEST

CHECK_MAIN_LOOPS("sampling", {intervals_hold_the_truth, 3}, {the_cost_comes_back, 1},
                 {what_is_left_of_cupti_counts, 1}, {too_few, 1}, {wide_intervals_are_possible, 1},
                 {one_stray_range, 1}, {processes_are_kept_apart, 1}, {strange_windows, 1})
