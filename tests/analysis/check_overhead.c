/* What recording cost, from pauses: known ratios come back, whatever the capture holds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/facts/iteration_parts.h"
#include "tests/check_main.h"
#include "tests/diagnosis/scene.h"

#define MS INT64_C(1000000)
#define OVERHEAD 6 /* recording.reason */

/* ---- by itself: iterations of one thread and pauses ------------------------------------------ */

static PROF_ARRAY(struct prof_iteration) list;
static struct prof_intervals pauses;
static struct prof_overhead overhead;

static void forget(void)
{
    list.count = pauses.count = 0;
}

static uint64_t random_state;

static double random_share(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 11) / 9007199254740992.0;
}

/* About normal, of standard deviation 1. */
static double noise(void)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += random_share();
    return sum;
}

static unsigned hiccups;

static int64_t iterate(int64_t at, double length_ns)
{
    if (hiccups && list.count % hiccups == 0)
        length_ns *= 3;
    struct prof_iteration one = {.begin = at, .end = at + (int64_t)length_ns / 2};
    ck_assert(prof_array_push(&list, one));
    return at + (int64_t)length_ns;
}

/* `count` pauses of 100 ms, 400 ms apart, in a program of 10 ms an iteration, which takes `ratio`
 * times as long recorded, with noise of `spread`. It takes 25 ms from the begin or the end of a
 * pause until the program feels it. */
static void make_run(int count, double ratio, double spread)
{
    int64_t at = 0;
    for (int p = 0; p < count; p++) {
        int64_t begin = (500 * p + 400) * MS, end = begin + 100 * MS;
        while (at < begin + 15 * MS)
            at = iterate(at, 10e6 * ratio * (1 + spread * noise()));
        while (at < end + 15 * MS)
            at = iterate(at, 10e6 * (1 + spread * noise()));
        ck_assert(prof_intervals_add(&pauses, begin, end));
    }
    while (at < 500 * MS * count + 400 * MS)
        at = iterate(at, 10e6 * ratio * (1 + spread * noise()));
}

static void measure(void)
{
    ck_assert(prof_overhead_measure(list.data, list.count, &pauses, &overhead));
}

START_TEST(a_known_ratio_comes_back)
{
    static const double ratios[] = {1.42, 1.0, 2.5};
    make_run(10, ratios[_i], 0);
    measure();
    ck_assert_int_eq(overhead.source, PROF_OVERHEAD_MEASURED);
    ck_assert_int_eq(overhead.pauses, 10);
    ck_assert_int_eq(overhead.pauses_used, 10);
    ck_assert_double_eq_tol(overhead.ratio, ratios[_i], 1e-6);
    ck_assert_double_eq_tol(overhead.low, ratios[_i], 1e-6);
    ck_assert_double_eq_tol(overhead.high, ratios[_i], 1e-6);
    ck_assert_double_eq_tol(overhead.bare_ns, 10e6, 10);
    ck_assert_double_eq_tol(overhead.recorded_ns, 10e6 * ratios[_i], 10);
    ck_assert_int_gt(overhead.recorded, overhead.unrecorded);
    ck_assert_int_ge(overhead.unrecorded, 10 * 5);
    forget();
}
END_TEST

START_TEST(its_interval_holds_the_truth)
{
    int inside = 0;
    for (unsigned seed = 0; seed < 100; seed++) {
        random_state = seed;
        make_run(8, 1.3, 0.1);
        measure();
        inside += overhead.low <= 1.3 && 1.3 <= overhead.high;
        ck_assert_double_lt(overhead.high - overhead.low, 0.4);
        forget();
    }
    ck_assert_int_ge(inside, 90);
}
END_TEST

/* Every 13th iteration takes three times as long. */
START_TEST(hiccups_do_not_count)
{
    hiccups = 13;
    make_run(10, 1.3, 0);
    measure();
    hiccups = 0;
    ck_assert_int_eq(overhead.pauses_used, 10);
    ck_assert_double_eq_tol(overhead.ratio, 1.3, 1e-6);
    forget();
}
END_TEST

/* The first second went by before CUPTI was on: 8 ms an iteration, after a warm-up. What the pauses
 * take longer than that is part of the overhead. A start that is slower than the pauses, as a
 * warm-up is, says nothing. */
START_TEST(a_first_pause_without_cupti)
{
    static const double starts[] = {8e6, 10e6, 12e6};
    make_run(10, 1.3, 0);
    int64_t shift = 1000 * MS, at = 0;
    for (size_t i = 0; i < list.count; i++)
        list.data[i].begin += shift, list.data[i].end += shift;
    for (size_t p = 0; p < pauses.count; p++)
        pauses.data[p].begin += shift, pauses.data[p].end += shift;
    while (at < shift)
        at = iterate(at, at < 300 * MS ? 50e6 : starts[_i]);
    qsort(list.data, list.count, sizeof *list.data, prof_by_thread_and_begin);
    ck_assert(prof_intervals_add(&pauses, 0, shift));
    prof_intervals_normalise(&pauses);
    measure();
    double left = fmax(10e6 / starts[_i], 1);
    ck_assert_int_eq(overhead.source, PROF_OVERHEAD_MEASURED);
    ck_assert_int_eq(overhead.pauses, 11);
    ck_assert_int_eq(overhead.pauses_used, 10);
    ck_assert_double_eq_tol(overhead.paused, left, 1e-6);
    ck_assert_double_eq_tol(overhead.ratio, 1.3 * left, 1e-6);
    ck_assert_double_eq_tol(overhead.bare_ns, 10e6 / left, 10);
    ck_assert_double_eq_tol(overhead.high, 1.3 * left, 1e-6);
    forget();
}
END_TEST

/* The pace changes from one pause to the next: how sure the comparison with the start is. */
START_TEST(its_interval_holds_what_the_start_says)
{
    int inside = 0;
    for (unsigned seed = 0; seed < 100; seed++) {
        random_state = seed;
        double pace = 1 + 0.05 * noise();
        int64_t at = 0;
        ck_assert(prof_intervals_add(&pauses, 0, 1000 * MS));
        while (at < 1000 * MS)
            at = iterate(at, 8e6 * pace);
        for (int p = 0; p < 8; p++) {
            pace = 1 + 0.05 * noise();
            int64_t begin = at + 400 * MS;
            while (at < begin)
                at = iterate(at, 13e6 * pace);
            ck_assert(prof_intervals_add(&pauses, begin, begin + 200 * MS));
            while (at < begin + 200 * MS)
                at = iterate(at, 10e6 * pace);
            begin = at + 400 * MS;
            while (at < begin)
                at = iterate(at, 13e6 * pace);
        }
        measure();
        inside += overhead.low <= 1.625 && 1.625 <= overhead.high;
        ck_assert_double_lt(overhead.high - overhead.low, 1.0);
        forget();
    }
    ck_assert_int_ge(inside, 90);
}
END_TEST

START_TEST(too_few_say_nothing)
{
    make_run(_i, 1.3, 0);
    measure();
    ck_assert_int_eq(overhead.source, _i < 3 ? PROF_OVERHEAD_UNKNOWN : PROF_OVERHEAD_MEASURED);
    ck_assert_int_eq(overhead.pauses, _i);
    ck_assert_int_eq(overhead.pauses_used, _i);
    forget();
    /* Iterations as long as a pause: none has two in it. */
    for (int64_t i = 0; i < 100; i++)
        iterate(i * 100 * MS, 100e6);
    for (int64_t p = 0; p < _i; p++)
        ck_assert(prof_intervals_add(&pauses, (500 * p + 400) * MS, (500 * p + 500) * MS));
    measure();
    ck_assert_int_eq(overhead.source, PROF_OVERHEAD_UNKNOWN);
    ck_assert_int_eq(overhead.pauses_used, 0);
    forget();
}
END_TEST

/* Times of a damaged capture: no figure that is no number, and no overflow (for UBSan). */
START_TEST(hostile_times)
{
    static const int64_t times[] = {INT64_MIN + 1, -5, 0, 1, 400 * MS, INT64_MAX - 1, INT64_MAX};
    for (size_t a = 0; a < 7; a++) {
        for (size_t b = a + 1; b < 7; b++) {
            for (size_t c = 0; c < 7; c++) {
                for (int i = 0; i < 8; i++) {
                    struct prof_iteration one = {.begin = times[i < 4 ? a : c], .end = times[b]};
                    ck_assert(prof_array_push(&list, one));
                }
                ck_assert(prof_intervals_add(&pauses, times[a], times[b]));
            }
        }
        measure();
        if (overhead.source != PROF_OVERHEAD_UNKNOWN)
            ck_assert(isfinite(overhead.ratio) && overhead.ratio > 0);
        prof_intervals_normalise(&pauses);
        measure();
        forget();
    }
    make_run(4, 1.3, 0);
    ck_assert(prof_intervals_add(&pauses, INT64_MIN + 1, INT64_MIN + 2));
    ck_assert(prof_intervals_add(&pauses, INT64_MAX - 1, INT64_MAX));
    prof_intervals_normalise(&pauses);
    measure();
    ck_assert_int_eq(overhead.pauses_used, 4);
    ck_assert_double_eq_tol(overhead.ratio, 1.3, 1e-6);
    forget();
}
END_TEST

/* ---- in captures ----------------------------------------------------------------------------- */

static struct scene scene;
static struct prof_findings findings;
static int config;

static void begin(void)
{
    scene_open(&scene, "opencl", "cpu");
    config = scene_config(&scene, "work", 64, 256, 32);
}

static struct prof_capture *find(void)
{
    struct prof_error err = {0};
    struct prof_capture *capture = scene_close(&scene);
    ck_assert_msg(!prof_findings(capture, NULL, &findings, &err), "%s", err.message);
    return capture;
}

static void mark(int process, bool begins, int reason)
{
    scene_sql(&scene,
              "INSERT INTO recording(process, start, begins, reason) VALUES(%d, %lld, %d, %d)",
              process, (long long)scene.host, begins, reason);
}

/* Recorded ones take 13 ms, of which the device works 3. */
static void recorded_step(void)
{
    scene_push(&scene, "step");
    scene_kernel(&scene, 0, config, 3 * MS);
    scene_sync(&scene);
    scene_host(&scene, scene.ranges[0] + 13 * MS - scene.host);
    scene_pop(&scene);
}

static void bare_step(void)
{
    scene_push(&scene, "step");
    scene_host(&scene, 10 * MS);
    scene_pop(&scene);
}

/* Recorded ones take 20 ms; memcpys and waits share what the device is idle for. */
static void copying_step(void)
{
    scene_push(&scene, "step");
    for (int i = 0; i < 4; i++) {
        if (i)
            scene_copy(&scene, 0, SCENE_UP, SCENE_PAGEABLE, 4 << 20, MS, true);
        scene_kernel(&scene, 0, config, 500000);
        scene_sync(&scene);
        scene_host(&scene, MS);
        scene_copy(&scene, 0, SCENE_DOWN, SCENE_PAGEABLE, 4 << 20, MS, true);
    }
    scene_host(&scene, scene.ranges[0] + 20 * MS - scene.host);
    scene_pop(&scene);
}

/* 4 stretches of 30 recorded iterations with `count` pauses of 12 between them. */
static void run_with_pauses(int count, int reason, void (*step)(void))
{
    for (int stretch = 0; stretch < 4; stretch++) {
        for (int i = 0; i < 30; i++)
            step();
        if (stretch >= count)
            continue;
        mark(1, false, reason);
        for (int i = 0; i < 2; i++)
            scene_host(&scene, 13 * MS); /* until the program feels it */
        for (int i = 0; i < 12; i++)
            bare_step();
        mark(1, true, reason);
    }
}

/* What was counted without pauses is counted with them: iterations that were only timed are in no
 * phase, in no coverage and in no finding's number. */
START_TEST(pauses_leave_the_rest_as_it_was)
{
    begin();
    run_with_pauses(0, OVERHEAD, recorded_step);
    struct prof_capture *capture = find();
    struct prof_phase_row without = findings.phases[0];
    ck_assert_int_eq(findings.overhead.source, PROF_OVERHEAD_UNKNOWN);
    ck_assert_int_eq(findings.overhead.pauses, 0);
    for (size_t i = 0; i < findings.count; i++)
        ck_assert_int_eq(findings.rows[i].net_min_ns, PROF_UNKNOWN);
    scene_done(capture, &findings);

    begin();
    run_with_pauses(4, OVERHEAD, recorded_step);
    capture = find();
    ck_assert_uint_eq(findings.phase_count, 1);
    ck_assert_int_eq(findings.phases[0].iterations, without.iterations);
    ck_assert_int_eq(findings.phases[0].device_ns, without.device_ns);
    ck_assert_int_eq(findings.phases[0].skipped, without.skipped);
    ck_assert_int_eq(findings.phases[0].analysed_ns, without.analysed_ns);
    ck_assert_int_eq(findings.overhead.source, PROF_OVERHEAD_MEASURED);
    ck_assert_int_eq(findings.overhead.pauses, 4);
    ck_assert_double_eq_tol(findings.overhead.ratio, 1.3, 1e-3);
    ck_assert(!findings.overhead.in_part);
    int net = 0;
    for (size_t i = 0; i < findings.count; i++) {
        const struct prof_finding *finding = &findings.rows[i];
        if (finding->net_min_ns == PROF_UNKNOWN)
            continue;
        ck_assert_int_le(0, finding->net_min_ns);
        ck_assert_int_le(finding->net_min_ns, finding->net_max_ns);
        ck_assert_int_le(finding->net_max_ns, finding->bound_ns);
        net += finding->net_max_ns > 0;
    }
    ck_assert_int_gt(net, 0); /* the host's time: 10 of 13 ms, of which recording made 3 */
    scene_done(capture, &findings);
}
END_TEST

static const struct prof_finding *finding_of(const char *rule)
{
    for (size_t i = 0; i < findings.count; i++)
        if (!strcmp(findings.rows[i].rule->id, rule))
            return &findings.rows[i];
    ck_abort_msg("no %s", rule);
}

static double number_of(const struct prof_finding *finding, const char *name)
{
    for (size_t i = 0; i < finding->number_count; i++)
        if (!strcmp(finding->numbers[i].name, name))
            return finding->numbers[i].value;
    ck_abort_msg("no %s", name);
}

/* What the overhead may have made of a finding is no more than the idle time that the finding was
 * given: what others were given before is not taken twice, and of memcpys and kernels nothing is.
 */
START_TEST(only_idle_time_that_a_bound_has_is_of_the_overhead)
{
    scene_open(&scene, "cuda", "gpu");
    config = scene_config(&scene, "work", 64, 256, 32);
    mark(1, false, OVERHEAD); /* before CUPTI is on */
    for (int i = 0; i < 12; i++)
        bare_step();
    mark(1, true, OVERHEAD);
    run_with_pauses(4, OVERHEAD, copying_step);
    struct prof_capture *capture = find();
    const struct prof_finding *first = finding_of("repeated-upload");
    const struct prof_finding *rest = finding_of("pageable-copy");
    int64_t given = (int64_t)number_of(first, "idle_until_then_ns");
    int64_t idle = (int64_t)number_of(rest, "idle_around_ns");
    ck_assert_int_lt(0, given);
    ck_assert_int_lt(given, idle);
    ck_assert_int_eq(first->bound_ns - first->net_min_ns, given);
    ck_assert_int_eq(rest->bound_ns - rest->net_min_ns, idle - given);
    ck_assert_int_eq(finding_of("no-overlap")->net_min_ns, PROF_UNKNOWN);
    scene_done(capture, &findings);
}
END_TEST

/* With CUDA a pause says nothing of what CUPTI costs in it, and so no bound without recording. */
START_TEST(pauses_alone_are_a_part_with_cuda)
{
    scene_open(&scene, "cuda", "gpu");
    config = scene_config(&scene, "work", 64, 256, 32);
    run_with_pauses(4, OVERHEAD, recorded_step);
    struct prof_capture *capture = find();
    ck_assert(findings.overhead.in_part);
    ck_assert_double_eq_tol(findings.overhead.ratio, 1.3, 1e-3);
    for (size_t i = 0; i < findings.count; i++)
        ck_assert_int_eq(findings.rows[i].net_min_ns, PROF_UNKNOWN);
    scene_done(capture, &findings);
}
END_TEST

/* Iterations by launches that go on in pauses were recorded: they say nothing of the program bare.
 */
START_TEST(recorded_iterations_are_not_bare)
{
    begin();
    int other = scene_config(&scene, "other", 64, 256, 32);
    for (int i = 0; i < 200; i++) {
        if (i % 40 == 20 || i % 40 == 32)
            mark(1, i % 40 == 32, OVERHEAD);
        scene_kernel(&scene, 0, config, 3 * MS);
        scene_kernel(&scene, 0, other, MS);
        scene_sync(&scene);
        scene_host(&scene, 6 * MS);
    }
    struct prof_capture *capture = find();
    ck_assert_int_eq(findings.phases[0].source, PROF_ITERATION_LAUNCHES);
    ck_assert_int_eq(findings.overhead.pauses, 5);
    ck_assert_int_eq(findings.overhead.pauses_used, 0);
    ck_assert_int_eq(findings.overhead.source, PROF_OVERHEAD_UNKNOWN);
    scene_done(capture, &findings);
}
END_TEST

/* Every third one takes twice as long, or every second one three times, and the first one ten
 * times: a pause of four periods has four iterations in it. */
START_TEST(a_period_is_that_of_iterations_in_a_row)
{
    static const int64_t turns[] = {1, 3, 2}, times[] = {1, 2, 3};
    struct prof_iteration_range range;
    struct prof_error err = {0};
    int64_t turn = turns[_i], most = 0, sum = 0, begins[64];
    begin();
    for (int i = 0; i < 64; i++) {
        begins[i] = scene.host;
        scene_push(&scene, "step");
        scene_kernel(&scene, 0, config, MS);
        scene_sync(&scene);
        int64_t length = 10 * MS * (i % turn == turn - 1 ? times[_i] : 1) * (i ? 1 : 10);
        scene_host(&scene, scene.ranges[0] + length - scene.host);
        scene_pop(&scene);
    }
    struct prof_capture *capture = scene_close(&scene);
    ck_assert_msg(!prof_iteration_range(capture, NULL, &range, &err), "%s", err.message);
    ck_assert_str_eq(range.name, "step");
    for (int i = 4; i + 5 < 64; i++) {
        sum = begins[i + 4] - begins[i];
        most = sum > most ? sum : most;
    }
    ck_assert_int_le(4 * range.period_ns, most + 4);
    ck_assert_int_ge(4 * range.period_ns, most - 10 * MS - 4);
    ck_assert_int_ge(range.period_ns, 10 * MS * (turn - 1 + times[_i]) / turn * 9 / 10);
    prof_close(capture);
}
END_TEST

/* Windows of others (perfkit ctl) are no pauses; two pauses are too few. */
START_TEST(other_windows_are_no_pauses)
{
    begin();
    run_with_pauses(_i ? 2 : 4, _i ? OVERHEAD : 2, recorded_step);
    struct prof_capture *capture = find();
    ck_assert_int_eq(findings.overhead.source, PROF_OVERHEAD_UNKNOWN);
    ck_assert_int_eq(findings.overhead.pauses, _i ? 2 : 0);
    scene_done(capture, &findings);
}
END_TEST

/* A second process ends in the last pause, which nothing ends; the first one's are as before. And a
 * pause that stops twice is one, without an end it lasts as long as the process, and without a
 * begin since its start: as timelines have it. */
START_TEST(pauses_without_an_end)
{
    begin();
    scene_second(&scene, true, false);
    scene_sql(&scene, "UPDATE process SET \"end\" = 200000000 WHERE id = 2");
    scene_sql(&scene, "INSERT INTO recording(process, start, begins, reason) VALUES"
                      "(2, 5, 1, 6), (2, 199000000, 0, 6), (2, 199500000, 0, 2)");
    run_with_pauses(4, OVERHEAD, recorded_step);
    recorded_step();
    mark(1, false, OVERHEAD);
    for (int i = 0; i < 12; i++)
        bare_step();
    struct prof_capture *capture = find();
    ck_assert_int_eq(findings.overhead.pauses, 7);
    ck_assert_int_eq(findings.phases[0].iterations + findings.phases[0].skipped,
                     121 - 1); /* one in the pause of 2 */
    scene_done(capture, &findings);
}
END_TEST

/* ---- estimates ------------------------------------------------------------------------------- */

#define COSTS                                                                                      \
    "INSERT INTO ceiling(device, name, value, measured_at) VALUES(1, 'record_launch', 1000, 1), "  \
    "(1, 'record_range', 200, 1), (1, 'record_sync', 300, 1)"

/* 40 iterations of 20 launches and a synchronization, of kernels that take `kernel_ns`. */
static void launch_iterations(int64_t kernel_ns, const char *name)
{
    for (int i = 0; i < 40; i++) {
        scene_push(&scene, name);
        for (int k = 0; k < 20; k++)
            scene_kernel(&scene, 0, config, kernel_ns);
        scene_sync(&scene);
        scene_pop(&scene);
    }
}

/* The host is behind: all that recording costs it costs the program. */
START_TEST(an_estimate_of_a_host_bound_program)
{
    begin();
    launch_iterations(500, "step");
    scene_sql(&scene, COSTS);
    /* of CUPTI, a buffer; what the driver compiled is not of the recording */
    scene_sql(&scene, "INSERT INTO overhead(start, duration, process, thread, kind) SELECT "
                      "start, 80000, 1, 1, 2 FROM kernel ORDER BY start LIMIT 1 OFFSET 400");
    scene_sql(&scene, "INSERT INTO overhead(start, duration, process, thread, kind) SELECT "
                      "start, 900000, 1, 1, 1 FROM kernel ORDER BY start LIMIT 1 OFFSET 400");
    struct prof_capture *capture = find();
    const struct prof_overhead *o = &findings.overhead;
    double steps = (double)findings.steps, added = 20 * 1000 + 200 + 300 + 80000 / steps;
    ck_assert_int_eq(o->source, PROF_OVERHEAD_ESTIMATED);
    ck_assert_int_eq(o->events, (int64_t)steps * 22);
    ck_assert_double_eq_tol(o->recorded_ns - o->bare_ns, added, 0.05 * added);
    ck_assert_double_eq_tol(o->ratio, o->recorded_ns / o->bare_ns, 1e-9);
    ck_assert(1 < o->low && o->low < o->ratio && o->ratio < o->high);
    int net = 0;
    for (size_t i = 0; i < findings.count; i++)
        net += findings.rows[i].net_min_ns != PROF_UNKNOWN;
    ck_assert_int_gt(net, 0);
    scene_done(capture, &findings);
}
END_TEST

/* Of two devices with costs of their own, those of the one with most operations hold; where it has
 * none, the other's do if they are of the same API. */
START_TEST(an_estimate_by_the_costs_of_its_device)
{
    static const struct {
        const char *sql;
        double launch_ns; /* 0 = no estimate */
    } cases[] = {
        {"INSERT INTO ceiling(device, name, value, measured_at) VALUES"
         "(1, 'record_launch', 9000, 1), (2, 'record_launch', 1000, 1)",
         1000},
        {"INSERT INTO ceiling(device, name, value, measured_at) VALUES(1, 'record_launch', 800, 1)",
         800},
        {"INSERT INTO ceiling(device, name, value, measured_at) VALUES(1, 'record_launch', 800, "
         "1); "
         "UPDATE device SET api = 'cuda' WHERE id = 1",
         0},
    };
    begin();
    scene_second(&scene, false, true);
    scene_as(&scene, 1);
    launch_iterations(500, "step");
    scene_sql(&scene, "%s", cases[_i].sql);
    if (cases[_i].launch_ns == 0)
        scene_sql(&scene, "UPDATE device SET api = 'cuda' WHERE id = 1");
    struct prof_capture *capture = find();
    const struct prof_overhead *o = &findings.overhead;
    ck_assert_int_eq(o->source,
                     cases[_i].launch_ns > 0 ? PROF_OVERHEAD_ESTIMATED : PROF_OVERHEAD_UNKNOWN);
    ck_assert_double_eq_tol(o->recorded_ns - o->bare_ns, 22 * cases[_i].launch_ns,
                            1 + 0.05 * 22 * cases[_i].launch_ns);
    scene_done(capture, &findings);
}
END_TEST

/* The host waits for the device: it would only wait for longer. */
START_TEST(an_estimate_of_a_device_bound_program)
{
    begin();
    launch_iterations(MS, "step");
    scene_sql(&scene, COSTS);
    struct prof_capture *capture = find();
    ck_assert_int_eq(findings.overhead.source, PROF_OVERHEAD_ESTIMATED);
    ck_assert_double_eq_tol(findings.overhead.low, 1, 1e-9);
    ck_assert_double_lt(findings.overhead.high, 1.002);
    scene_done(capture, &findings);
}
END_TEST

/* Nothing was measured on the machine, or not launches, or PyTorch's names cost time as well. */
START_TEST(no_estimate_without_its_costs)
{
    static const struct {
        const char *name, *sql;
    } cases[] = {
        {"step", "SELECT 1"},
        {"step", "INSERT INTO ceiling(device, name, value) VALUES(1, 'record_range', 1000)"},
        {"aten::mm", COSTS},
    };
    begin();
    launch_iterations(500, cases[_i].name);
    scene_sql(&scene, cases[_i].sql);
    struct prof_capture *capture = find();
    ck_assert_int_eq(findings.overhead.source, PROF_OVERHEAD_UNKNOWN);
    scene_done(capture, &findings);
}
END_TEST

CHECK_MAIN_LOOPS("overhead", {a_known_ratio_comes_back, 3}, {its_interval_holds_the_truth, 1},
                 {a_first_pause_without_cupti, 3}, {its_interval_holds_what_the_start_says, 1},
                 {hiccups_do_not_count, 1}, {too_few_say_nothing, 4}, {hostile_times, 1},
                 {pauses_leave_the_rest_as_it_was, 1},
                 {only_idle_time_that_a_bound_has_is_of_the_overhead, 1},
                 {pauses_alone_are_a_part_with_cuda, 1}, {recorded_iterations_are_not_bare, 1},
                 {a_period_is_that_of_iterations_in_a_row, 3}, {other_windows_are_no_pauses, 2},
                 {pauses_without_an_end, 1}, {an_estimate_of_a_host_bound_program, 1},
                 {an_estimate_by_the_costs_of_its_device, 3},
                 {an_estimate_of_a_device_bound_program, 1}, {no_estimate_without_its_costs, 3})
