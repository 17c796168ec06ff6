/* Counter summary on captures whose kernels have known rates (counter_scene.h). */
#include <math.h>

#include "libprof/include/prof_counters.h"
#include "tests/analysis/counter_scene.h"

START_TEST(lines_are_sums_over_spans)
{
    static const struct scene_work work[] = {{1000, 2000, 1, 1, 7}};
    counters_begin();
    scene_put_work(work, 1);
    scene_samples(1, work, 1, 500, 2500);
    scene_samples(1, NULL, 0, 9000, 9500); /* idle; in between nothing was sampled */
    struct prof_capture *c = scene_open();
    struct prof_counter_lines lines;
    struct prof_filter all = {.end_ns = 10000};
    ck_ok(prof_counter_lines(c, &all, 100, &lines, &err));
    const struct prof_counter_line *sum = &lines.rows[0], *clock = &lines.rows[1];
    ck_assert_uint_eq(lines.count, 3);
    ck_assert_int_eq(lines.rows[2].scale, PROF_COUNTER_LEVEL);
    ck_assert_int_eq(clock->scale, PROF_COUNTER_RATE);
    ck_assert_double_eq_tol(clock->points[0].value, SCENE_CYCLES_PER_NS * 1e9, 1);
    ck_assert_int_gt(sum->device, 0);
    double counted_in_all = 0;
    int64_t before = INT64_MIN;
    bool gap = false;
    for (size_t i = 0; i < sum->count; i++) {
        const struct prof_counter_point *p = &sum->points[i];
        ck_assert_int_ge(p->start_ns, before);
        ck_assert(p->end_ns > p->start_ns && p->peak >= p->value);
        gap |= before != INT64_MIN && p->start_ns - before > 6000;
        counted_in_all += p->value * (double)(p->end_ns - p->start_ns);
        before = p->end_ns;
    }
    ck_assert(gap);
    /* share x time, put back into counts by the peak in its clock */
    ck_assert_int_eq(sum->scale, PROF_COUNTER_SHARE);
    ck_assert_double_eq_tol(counted_in_all * SCENE_CYCLES_PER_NS * SCENE_PEAK, 7000, 1e-6 * 7000);
    prof_counter_lines_free(&lines);
    struct prof_filter late = {.begin_ns = 5000, .end_ns = 9200};
    ck_ok(prof_counter_lines(c, &late, 16, &lines, &err));
    ck_assert_int_eq(lines.rows[0].points[0].start_ns, 9000);
    ck_assert_double_eq(lines.rows[0].points[0].value, 0);
    prof_counter_lines_free(&lines);
    prof_close(c);
}
END_TEST

START_TEST(a_kernel_alone_has_its_rate_whatever_its_edges)
{
    static const struct scene_work work[] = {{1030, 2970, 1, 1, 7}};
    counters_begin();
    scene_put_work(work, 1);
    scene_samples(1, work, 1, 500, 3500);
    const struct prof_counter_summary *s = scene_summary(PROF_BY_CONFIG);
    ck_assert_int_eq(s->samples, 30);
    ck_assert_int_eq(s->sampled_ns, 3000);
    ck_assert_int_eq(s->bursts, 1);
    ck_assert_int_eq(s->interval_ns, 100);
    ck_assert_uint_eq(s->counter_count, 3);
    ck_assert_int_eq(prof_counter_find(s, "cycles"), 1);
    ck_assert_int_eq(prof_counter_find(s, "other"), -1);
    ck_assert_str_eq(s->counters[0].metric, "dram__bytes.sum");
    ck_assert_uint_eq(s->count, 1);
    const struct prof_counter_row *r = &s->rows[0];
    ck_assert_str_eq(r->name, "alpha");
    ck_assert_int_eq(r->config->id, 1);
    ck_assert_int_eq(r->device, 1);
    ck_assert_int_eq(r->launches, 1);
    ck_assert_int_eq(r->covered, 1);
    ck_assert_int_eq(r->covered_ns, 1940);
    ck_near(r->coverage, 1);
    ck_assert_int_eq(r->samples, 20);
    ck_assert(r->known && !r->joint && !r->shared);
    ck_near(r->joint_share, 0);
    ck_near(r->values[0].rate, 7e9);
    ck_near(r->values[0].per_launch, 7 * 1940);
    ck_near(r->values[0].share, 7.0 / (10 * SCENE_CYCLES_PER_NS));
    ck_near(r->values[0].rate_error, NAN); /* one launch tells nothing of its spread */
    ck_near(r->values[1].rate, SCENE_CYCLES_PER_NS * 1e9);
    ck_near(r->values[1].share, NAN);
    ck_near(r->values[2].rate, 50);
    ck_near(r->values[2].per_launch, NAN);
    scene_close();
}
END_TEST

START_TEST(kernels_in_turn_are_told_apart)
{
    struct scene_work work[40];
    int64_t at = 1000;
    for (int i = 0; i < 40; i++) {
        int64_t length = i % 2 ? 1150 : 950; /* so that their ends wander through the samples */
        work[i] = (struct scene_work){at, at + length, 1, i % 2 ? 3 : 1, i % 2 ? 1 : 7};
        at += length;
    }
    counters_begin();
    scene_put_work(work, 40);
    scene_samples(1, work, 40, 0, at + 1000);
    const struct prof_counter_summary *s = scene_summary(PROF_BY_NAME);
    ck_assert_uint_eq(s->count, 2);
    const struct prof_counter_row *a = scene_row(s, "alpha"), *b = scene_row(s, "beta");
    ck_assert(!a->joint && !b->joint);
    ck_near(a->values[0].rate, 7e9);
    ck_near(b->values[0].rate, 1e9);
    ck_near(a->joint_share, 0); /* the samples with both were divided, none left out */
    ck_assert_int_eq(a->covered, 20);
    ck_near(a->values[0].rate_error, 0);
    scene_close();
}
END_TEST

START_TEST(side_by_side_is_joint)
{
    static const struct scene_work work[] = {{1000, 9000, 1, 1, 3}, {1000, 9000, 2, 3, 5}};
    counters_begin();
    scene_put_work(work, 2);
    scene_samples(1, work, 2, 0, 10000);
    const struct prof_counter_summary *s = scene_summary(PROF_BY_NAME);
    ck_assert_uint_eq(s->count, 2);
    for (size_t i = 0; i < 2; i++) {
        ck_assert(s->rows[i].joint && s->rows[i].known);
        ck_near(s->rows[i].joint_share, 1);
        ck_near(s->rows[i].values[0].rate, 8e9); /* of both together */
        ck_near(s->rows[i].values[0].per_launch, NAN);
        ck_near(s->rows[i].values[0].rate_error, NAN);
    }
    scene_close();
}
END_TEST

START_TEST(a_share_is_of_the_device_and_a_rate_of_a_launch)
{
    static const struct scene_work work[] = {{1000, 9000, 1, 1, 3}, {1000, 9000, 2, 1, 3}};
    counters_begin();
    scene_put_work(work, 2);
    scene_samples(1, work, 2, 0, 10000);
    const struct prof_counter_summary *s = scene_summary(PROF_BY_NAME);
    ck_assert(!s->rows[0].joint);
    ck_near(s->rows[0].values[0].rate, 3e9);
    ck_near(s->rows[0].values[0].per_launch, 3 * 8000);
    ck_near(s->rows[0].values[0].share, 6.0 / (10 * SCENE_CYCLES_PER_NS));
    scene_close();
}
END_TEST

START_TEST(values_rest_on_the_time_alone)
{
    /* Half of alpha runs beside beta, then a copy comes, then it is alone. */
    static const struct scene_work work[] = {
        {1000, 9000, 1, 1, 3}, {1000, 5000, 2, 3, 5}, {5000, 6000, 2, 0, 11}};
    counters_begin();
    scene_put_work(work, 3);
    scene_samples(1, work, 3, 0, 10000);
    const struct prof_counter_summary *s = scene_summary(PROF_BY_NAME);
    const struct prof_counter_row *a = scene_row(s, "alpha");
    ck_assert(!a->joint);
    ck_assert_int_eq(a->samples, 30);
    ck_near(a->joint_share, 5.0 / 8);
    ck_near(a->values[0].rate, 3e9);
    ck_assert(scene_row(s, "beta")->joint);
    scene_close();
}
END_TEST

START_TEST(a_copy_that_is_over_at_once_is_no_company)
{
    static const struct scene_work work[] = {{1000, 9000, 1, 1, 3}, {4010, 4014, 2, 0, 3}};
    counters_begin();
    scene_put_work(work, 2);
    scene_samples(1, work, 1, 0, 10000);
    const struct prof_counter_summary *s = scene_summary(PROF_BY_NAME);
    ck_assert_int_eq(s->rows[0].samples, 80);
    ck_near(s->rows[0].values[0].rate, 3e9);
    scene_close();
}
END_TEST

/* As cuBLAS clears a word before each product. A fill of many bytes is company. */
START_TEST(a_fill_of_a_word_is_no_company)
{
    struct scene_work work[40];
    for (int i = 0; i < 20; i++) {
        work[2 * i] = (struct scene_work){1000 + i * 1000, 1950 + i * 1000, 1, 1, 5};
        work[2 * i + 1] = (struct scene_work){1970 + i * 1000, 1985 + i * 1000, 1, 0, 0};
    }
    counters_begin();
    scene_put_work(work, 40);
    scene_samples(1, work, 40, 900, 21100);
    scene_put("UPDATE transfer SET bytes = 4;");
    const struct prof_counter_summary *s = scene_summary(PROF_BY_NAME);
    ck_near(s->rows[0].joint_share, 0);
    ck_assert_int_eq(s->rows[0].samples, 200);
    ck_near(s->rows[0].values[0].per_launch, 5 * 950);
    scene_close();
}
END_TEST

START_TEST(short_kernels_are_pooled)
{
    struct scene_work work[50]; /* 20 ns each, five of them in two samples */
    for (int i = 0; i < 50; i++)
        work[i] = (struct scene_work){1005 + i * 40, 1025 + i * 40, 1, 1, 9};
    counters_begin();
    scene_put_work(work, 50);
    scene_samples(1, work, 50, 1000, 3000);
    const struct prof_counter_summary *s = scene_summary(PROF_BY_NAME);
    ck_assert_int_eq(s->rows[0].samples, 20);
    ck_assert_int_eq(s->rows[0].covered, 50);
    ck_near(s->rows[0].values[0].rate, 9e9);
    ck_near(s->rows[0].values[0].per_launch, 9 * 20);
    scene_close();
}
END_TEST

/* What two kernels do together says nothing of either, however often each is alone too. */
START_TEST(together_is_not_in_turn)
{
    static const struct scene_work work[] = {{1000, 3000, 1, 1, 3},
                                             {3000, 5000, 1, 3, 5},
                                             {5000, 7000, 1, 1, 10},
                                             {5000, 7000, 2, 3, 10}};
    counters_begin();
    scene_put_work(work, 4);
    scene_samples(1, work, 4, 1000, 7000);
    const struct prof_counter_summary *s = scene_summary(PROF_BY_NAME);
    ck_near(scene_row(s, "alpha")->values[0].rate, 3e9);
    ck_near(scene_row(s, "beta")->values[0].rate, 5e9);
    ck_near(scene_row(s, "beta")->joint_share, 0.5);
    scene_close();
}
END_TEST

START_TEST(a_sample_that_spans_a_pause_is_left_out)
{
    static const struct scene_work work[] = {{1000, 9000, 1, 1, 3}};
    counters_begin();
    scene_put_work(work, 1);
    scene_put("INSERT INTO counter_sample(counter_device, start, duration, c0, c1, c2) "
              "VALUES(1, 0, 3000, 1e12, 1, 1);");
    scene_samples(1, work, 1, 3000, 9000);
    const struct prof_counter_summary *s = scene_summary(PROF_BY_NAME);
    ck_assert_int_eq(s->rows[0].samples, 60);
    ck_near(s->rows[0].values[0].rate, 3e9);
    scene_close();
}
END_TEST

/* Between alphas ran what has no row: no idle time, though it looks like it. */
START_TEST(what_a_kernel_filter_left_out_is_not_of_its_neighbours)
{
    struct scene_work work[40];
    int64_t at = 1030;
    for (int i = 0; i < 40; i++, at += 650)
        work[i] = (struct scene_work){at, at + 650, 1, i % 2 ? 3 : 1, i % 2 ? 50 : 7};
    counters_begin();
    for (int i = 0; i < 40; i += 2)
        scene_put_work(&work[i], 1);
    scene_samples(1, work, 40, 1000, at);
    scene_put("UPDATE capture SET kernel_filter = 'alpha';");
    const struct prof_counter_summary *s = scene_summary(PROF_BY_NAME);
    ck_assert_uint_eq(s->count, 1);
    ck_assert(s->rows[0].known && !s->rows[0].joint);
    ck_near(s->rows[0].values[0].rate, 7e9);
    ck_near(s->rows[0].coverage, 1);
    scene_close();
}
END_TEST

/* Recorded from 3000 to 7000, what was launched then until 7560; before and after that ran others.
 */
START_TEST(what_ran_outside_a_window_is_not_of_what_ran_inside)
{
    static const struct scene_work work[] = {{1000, 3250, 2, 3, 50},
                                             {3250, 5010, 1, 1, 7},
                                             {5090, 7560, 1, 1, 7},
                                             {7560, 9000, 1, 3, 50}};
    counters_begin();
    scene_put_work(&work[1], 2);
    scene_samples(1, work, 4, 1000, 9000);
    scene_put(
        "INSERT INTO recording(process, start, begins) VALUES(1, 0, 0), (1, 3000, 1), (1, 7000, "
        "0);");
    const struct prof_counter_summary *s = scene_summary(PROF_BY_NAME);
    ck_assert_uint_eq(s->count, 1);
    ck_near(s->rows[0].values[0].rate, 7e9);
    ck_assert_int_eq(s->rows[0].samples, 42); /* of 44: between its launches it was idle indeed */
    scene_close();
}
END_TEST

START_TEST(a_peak_that_cannot_be_is_none)
{
    static const struct scene_work work[] = {{1000, 3000, 1, 1, 3}};
    static const char *const peaks[] = {"0", "-1", "'text'", "NULL"};
    for (size_t i = 0; i < sizeof peaks / sizeof peaks[0]; i++) {
        counters_begin();
        scene_put_work(work, 1);
        scene_samples(1, work, 1, 1000, 3000);
        scene_put("UPDATE counter SET peak = %s WHERE slot = 0;", peaks[i]);
        const struct prof_counter_summary *s = scene_summary(PROF_BY_NAME);
        ck_near(s->rows[0].values[0].rate, 3e9);
        ck_near(s->rows[0].values[0].share, NAN);
        scene_close();
    }
}
END_TEST

START_TEST(others_on_the_device_are_told)
{
    static const struct scene_work work[] = {{1000, 3000, 1, 1, 3}, {5000, 7000, 1, 3, 3}};
    counters_begin();
    scene_put_work(work, 2);
    scene_samples(1, work, 2, 1000, 3000);
    scene_samples(1, work, 2, 5000, 7000);
    scene_put("UPDATE counter_burst SET others = 2 WHERE id = 2;");
    const struct prof_counter_summary *s = scene_summary(PROF_BY_NAME);
    ck_assert(!scene_row(s, "alpha")->shared);
    ck_assert(scene_row(s, "beta")->shared);
    scene_close();
}
END_TEST

START_TEST(devices_are_apart)
{
    static const struct scene_work one[] = {{1000, 5000, 1, 1, 3}}, two[] = {{1000, 5000, 3, 1, 8}};
    counters_begin();
    scene_put("INSERT INTO device(process, uuid) VALUES(1, 'GPU-2');"
              "INSERT INTO stream(process, device) VALUES(1, 2);"
              "INSERT INTO counter_device(uuid, interval) VALUES('GPU-2', 100), ('GPU-9', 100);"
              "INSERT INTO counter(counter_device, slot, name, unit, metric, kind) VALUES"
              "(2, 0, 'bytes', 'byte', 'x', 1);");
    scene_put_work(one, 1);
    scene_put_work(two, 1);
    scene_samples(1, one, 1, 1000, 5000);
    scene_samples(2, two, 1, 1000, 5000);
    scene_samples(3, two, 1, 1000, 5000); /* nobody used that one */
    struct prof_capture *c = scene_open();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_assert_uint_eq(s.count, 2);
    ck_assert_int_eq(s.rows[0].device, 1);
    ck_near(s.rows[0].values[0].rate, 3e9);
    ck_assert_int_eq(s.rows[1].device, 2);
    ck_near(s.rows[1].values[0].rate, 8e9);
    ck_near(s.rows[1].values[0].share, NAN); /* its peak is not known */
    ck_near(s.rows[1].values[1].rate, NAN);  /* it has no such counter */
    prof_counter_summary_free(&s);
    ck_ok(prof_counter_summary(c, &(struct prof_filter){.device = 2}, PROF_BY_NAME, &s, &err));
    ck_assert_uint_eq(s.count, 1);
    ck_near(s.rows[0].values[0].rate, 8e9);
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(filters_choose_kernels_not_samples)
{
    static const struct scene_work work[] = {
        {1000, 3000, 1, 1, 3}, {3000, 6000, 1, 3, 5}, {6000, 8000, 1, 1, 4}};
    counters_begin();
    scene_put_work(work, 3);
    scene_samples(1, work, 3, 1000, 8000);
    struct prof_capture *c = scene_open();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, &(struct prof_filter){.kernel = "bet"}, PROF_BY_NAME, &s, &err));
    ck_assert_uint_eq(s.count, 1);
    ck_near(s.rows[0].values[0].rate, 5e9);
    prof_counter_summary_free(&s);
    ck_ok(prof_counter_summary(c, &(struct prof_filter){.begin_ns = 5000}, PROF_BY_NAME, &s, &err));
    ck_assert_uint_eq(s.count, 1);
    ck_assert_str_eq(s.rows[0].name, "alpha");
    ck_assert_int_eq(s.rows[0].launches, 1);
    ck_near(s.rows[0].values[0].rate, 4e9);
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(order_in_the_file_does_not_matter)
{
    static const struct scene_work work[] = {{1000, 3000, 1, 1, 3}, {3000, 6000, 1, 2, 5}};
    counters_begin();
    scene_put_work(work, 2);
    scene_samples(1, work, 2, 4000, 6000);
    scene_samples(1, work, 2, 1000, 4000);
    struct prof_capture *c = scene_open();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_CONFIG, &s, &err));
    ck_assert_uint_eq(s.count, 2);
    ck_near(s.rows[0].values[0].rate, 5e9);
    ck_near(s.rows[1].values[0].rate, 3e9);
    prof_counter_summary_free(&s);
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_assert_uint_eq(s.count, 1);
    ck_assert_ptr_null(s.rows[0].config);
    ck_near(s.rows[0].values[0].rate, (3e9 * 2 + 5e9 * 3) / 5);
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(nothing_sampled_is_nothing)
{
    struct prof_capture *c =
        fixture_with_base("INSERT INTO kernel(start, duration, stream, config) VALUES(1, 5, 1, 1)");
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_assert_uint_eq(s.count, 0);
    ck_assert_int_eq(s.bursts, 0);
    ck_assert_int_eq(s.interval_ns, PROF_UNKNOWN);
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

/* 32 and 64 warps of alpha, each of which counted five more; of beta nobody knows. */
static const struct prof_counter_summary *traced_summary(enum prof_group group, const char *api)
{
    struct scene_work work[40];
    for (int i = 0; i < 40; i++) {
        int config = i % 4 == 3 ? 3 : i % 4 == 2 ? 2 : 1;
        double added = config == 1 ? 5 * 32 / 1e3 : config == 2 ? 5 * 64 / 1e3 : 0;
        work[i] = (struct scene_work){1000 + 1030 * i, 2000 + 1030 * i, 1, config, 7 + added};
    }
    counters_begin();
    scene_put("UPDATE counter SET traced = 5 WHERE slot = 0; UPDATE device SET api = '%s';", api);
    scene_put_work(work, 40);
    scene_samples(1, work, 40, 0, 43000);
    return scene_summary(group);
}

START_TEST(what_tracing_adds_is_taken_off)
{
    const struct prof_counter_summary *s = traced_summary(PROF_BY_NAME, "cuda");
    const struct prof_counter_row *a = scene_row(s, "alpha"), *b = scene_row(s, "beta");
    ck_near(s->counters[0].traced, 5);
    ck_near(s->counters[1].traced, 0);
    ck_assert_int_eq(a->covered, 30);
    ck_near(a->values[0].rate, 7e9);
    ck_near(a->values[0].per_launch, 7000);
    ck_near(a->values[0].share, 7.0 / (10 * SCENE_CYCLES_PER_NS));
    ck_near(b->values[0].rate, 7e9);
    scene_close();
    s = traced_summary(PROF_BY_CONFIG, "cuda");
    ck_assert_uint_eq(s->count, 3);
    for (size_t i = 0; i < s->count; i++)
        ck_near(s->rows[i].values[0].per_launch, 7000);
    scene_close();
    s = traced_summary(PROF_BY_CONFIG, "opencl"); /* not traced by CUPTI */
    ck_near(scene_row(s, "alpha")->values[0].per_launch, 7000 + 5 * 32);
    scene_close();
}
END_TEST

START_TEST(damage_is_survived)
{
    static const struct scene_work work[] = {{1000, 3000, 1, 1, 3}};
    counters_begin();
    scene_put_work(work, 1);
    scene_put(
        "INSERT INTO counter(counter_device, slot, name, kind, clock, peak) VALUES"
        "(1, -1, 'a', 1, 0, 1), (1, 24, 'b', 1, 0, 1), (77, 0, 'c', 1, 0, 1), (1, 3, NULL, 9, 9, "
        "0),"
        "(1, NULL, 'd', 1, NULL, NULL), (1, 4, 'e', 99, 99, 'text'), (1, 5, 'f', 1, 23, -1);"
        "INSERT INTO counter_sample(counter_device, start, duration, c0) VALUES"
        "(NULL, NULL, NULL, NULL), (1, NULL, 100, 1), (1, 900, NULL, 1), (1, 900, -5, 1),"
        "(1, 9223372036854775807, 9223372036854775807, 1), (1, -9223372036854775807, 100, 1),"
        "(99, 1000, 100, 1), (1, 1000, 100, NULL);"
        "INSERT INTO counter_burst(counter_device, start, duration, samples, others) VALUES"
        "(NULL, NULL, NULL, NULL, NULL), (1, 5, -9, 1, 1), (1, 9223372036854775807, 5, 1, 1);"
        "INSERT INTO kernel(start, duration, stream, config) VALUES(1500, -7, 1, 1),"
        "(9223372036854775807, 9223372036854775807, 1, 1), (1500, 10, 99, 99);"
        "INSERT INTO kernel(start, duration, stream, config) VALUES(1200, 10, 1, 99);");
    scene_put("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) "
              "INSERT INTO counter_device(uuid, interval) SELECT 'GPU-1', 100 FROM n;"
              "INSERT INTO counter(counter_device, slot, name, kind) "
              "SELECT d.id, s.slot, 'n' || d.id || s.slot, 1 FROM counter_device d, "
              "(SELECT 6 AS slot UNION SELECT 7) s;");
    scene_summary(PROF_BY_CONFIG);
    scene_close();
}
END_TEST

CHECK_MAIN("counters", lines_are_sums_over_spans, a_kernel_alone_has_its_rate_whatever_its_edges,
           kernels_in_turn_are_told_apart, side_by_side_is_joint,
           a_share_is_of_the_device_and_a_rate_of_a_launch, values_rest_on_the_time_alone,
           a_copy_that_is_over_at_once_is_no_company, a_fill_of_a_word_is_no_company,
           short_kernels_are_pooled, together_is_not_in_turn,
           a_sample_that_spans_a_pause_is_left_out,
           what_a_kernel_filter_left_out_is_not_of_its_neighbours,
           what_ran_outside_a_window_is_not_of_what_ran_inside, a_peak_that_cannot_be_is_none,
           others_on_the_device_are_told, devices_are_apart, filters_choose_kernels_not_samples,
           order_in_the_file_does_not_matter, nothing_sampled_is_nothing,
           what_tracing_adds_is_taken_off, damage_is_survived)
