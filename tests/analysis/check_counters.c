/* Counter summary on captures whose kernels have known rates: what a sample says is computed here
 * from the kernels, so that the analysis must give back the rates that were put in. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/include/prof_counter_lines.h"
#include "tests/analysis/fixture.h"

#define CYCLES_PER_NS 2
#define PEAK 10 /* counts a cycle */

/* Device work and what it makes the first counter count. */
struct work {
    int64_t start, end;
    int stream, config; /* config 0: a copy */
    double rate;        /* counts per ns */
};

static char sql[1 << 20];
static size_t used;

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    used += (size_t)vsnprintf(sql + used, sizeof sql - used, format, arguments);
    va_end(arguments);
    ck_assert_uint_lt(used, sizeof sql);
}

/* Device 1 of the fixture sampled every 100 ns: c0 bytes, c1 cycles of the clock, c2 a level. */
static void begin(void)
{
    used = 0;
    put("INSERT INTO counter_device(uuid, ordinal, chip, metric_set, interval) "
        "VALUES('GPU-1', 0, 'GH100', 'roofline', 100);"
        "INSERT INTO counter(counter_device, slot, name, unit, metric, kind, clock, peak) VALUES"
        "(1, 0, 'bytes', 'byte', 'dram__bytes.sum', 1, 1, %d),"
        "(1, 1, 'cycles', 'cycle', 'sm__cycles_elapsed.max', 2, NULL, NULL),"
        "(1, 2, 'level', 'percent', 'x.avg.pct', 3, NULL, NULL);",
        PEAK);
}

static void put_work(const struct work *work, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        long long start = work[i].start, duration = work[i].end - work[i].start;
        if (work[i].config)
            put("INSERT INTO kernel(start, duration, stream, config) VALUES(%lld, %lld, %d, %d);",
                start, duration, work[i].stream, work[i].config);
        else
            put("INSERT INTO transfer(start, duration, stream, bytes, kind) "
                "VALUES(%lld, %lld, %d, 1000000, 1);",
                start, duration, work[i].stream);
    }
}

static double counted(const struct work *work, size_t count, int64_t begin_ns, int64_t end_ns)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t from = work[i].start > begin_ns ? work[i].start : begin_ns;
        int64_t to = work[i].end < end_ns ? work[i].end : end_ns;
        sum += to > from ? (double)(to - from) * work[i].rate : 0;
    }
    return sum;
}

/* Samples of counter device `device` from begin_ns on, as one burst. */
static void put_samples(int device, const struct work *work, size_t count, int64_t begin_ns,
                        int64_t end_ns)
{
    for (int64_t at = begin_ns; at < end_ns; at += 100)
        put("INSERT INTO counter_sample(counter_device, start, duration, c0, c1, c2) "
            "VALUES(%d, %lld, 100, %.17g, %d, 50);",
            device, (long long)at, counted(work, count, at, at + 100), 100 * CYCLES_PER_NS);
    put("INSERT INTO counter_burst(counter_device, start, duration, samples, others) "
        "VALUES(%d, %lld, %lld, %lld, 0);",
        device, (long long)begin_ns, (long long)(end_ns - begin_ns),
        (long long)((end_ns - begin_ns) / 100));
}

static struct prof_capture *open_case(void)
{
    return fixture_with_base(sql);
}

static const struct prof_counter_row *row_named(const struct prof_counter_summary *s,
                                                const char *name)
{
    for (size_t i = 0; i < s->count; i++) {
        if (!strcmp(s->rows[i].name, name))
            return &s->rows[i];
    }
    ck_abort_msg("there is no row of %s", name);
}

START_TEST(lines_are_sums_over_spans)
{
    static const struct work work[] = {{1000, 2000, 1, 1, 7}};
    begin();
    put_work(work, 1);
    put_samples(1, work, 1, 500, 2500);
    put_samples(1, NULL, 0, 9000, 9500); /* idle; in between nothing was sampled */
    struct prof_capture *c = open_case();
    struct prof_counter_lines lines;
    struct prof_filter all = {.end_ns = 10000};
    ck_ok(prof_counter_lines(c, &all, 100, &lines, &err));
    const struct prof_counter_line *sum = &lines.rows[0], *clock = &lines.rows[1];
    ck_assert_uint_eq(lines.count, 3);
    ck_assert_int_eq(lines.rows[2].scale, PROF_COUNTER_LEVEL);
    ck_assert_int_eq(clock->scale, PROF_COUNTER_RATE);
    ck_assert_double_eq_tol(clock->points[0].value, CYCLES_PER_NS * 1e9, 1);
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
    ck_assert_double_eq_tol(counted_in_all * CYCLES_PER_NS * PEAK, 7000, 1e-6 * 7000);
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
    static const struct work work[] = {{1030, 2970, 1, 1, 7}};
    begin();
    put_work(work, 1);
    put_samples(1, work, 1, 500, 3500);
    struct prof_capture *c = open_case();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_CONFIG, &s, &err));
    ck_assert_int_eq(s.samples, 30);
    ck_assert_int_eq(s.sampled_ns, 3000);
    ck_assert_int_eq(s.bursts, 1);
    ck_assert_int_eq(s.interval_ns, 100);
    ck_assert_uint_eq(s.counter_count, 3);
    ck_assert_int_eq(prof_counter_find(&s, "cycles"), 1);
    ck_assert_int_eq(prof_counter_find(&s, "other"), -1);
    ck_assert_str_eq(s.counters[0].metric, "dram__bytes.sum");
    ck_assert_uint_eq(s.count, 1);
    const struct prof_counter_row *r = &s.rows[0];
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
    ck_near(r->values[0].share, 7.0 / (10 * CYCLES_PER_NS));
    ck_near(r->values[0].rate_error, NAN); /* one launch tells nothing of its spread */
    ck_near(r->values[1].rate, CYCLES_PER_NS * 1e9);
    ck_near(r->values[1].share, NAN);
    ck_near(r->values[2].rate, 50);
    ck_near(r->values[2].per_launch, NAN);
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(kernels_in_turn_are_told_apart)
{
    struct work work[40];
    int64_t at = 1000;
    for (int i = 0; i < 40; i++) {
        int64_t length = i % 2 ? 1150 : 950; /* so that their ends wander through the samples */
        work[i] = (struct work){at, at + length, 1, i % 2 ? 3 : 1, i % 2 ? 1 : 7};
        at += length;
    }
    begin();
    put_work(work, 40);
    put_samples(1, work, 40, 0, at + 1000);
    struct prof_capture *c = open_case();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_assert_uint_eq(s.count, 2);
    const struct prof_counter_row *a = row_named(&s, "alpha"), *b = row_named(&s, "beta");
    ck_assert(!a->joint && !b->joint);
    ck_near(a->values[0].rate, 7e9);
    ck_near(b->values[0].rate, 1e9);
    ck_near(a->joint_share, 0); /* the samples with both were divided, none left out */
    ck_assert_int_eq(a->covered, 20);
    ck_near(a->values[0].rate_error, 0);
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(side_by_side_is_joint)
{
    static const struct work work[] = {{1000, 9000, 1, 1, 3}, {1000, 9000, 2, 3, 5}};
    begin();
    put_work(work, 2);
    put_samples(1, work, 2, 0, 10000);
    struct prof_capture *c = open_case();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_assert_uint_eq(s.count, 2);
    for (size_t i = 0; i < 2; i++) {
        ck_assert(s.rows[i].joint && s.rows[i].known);
        ck_near(s.rows[i].joint_share, 1);
        ck_near(s.rows[i].values[0].rate, 8e9); /* of both together */
        ck_near(s.rows[i].values[0].per_launch, NAN);
        ck_near(s.rows[i].values[0].rate_error, NAN);
    }
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(a_share_is_of_the_device_and_a_rate_of_a_launch)
{
    static const struct work work[] = {{1000, 9000, 1, 1, 3}, {1000, 9000, 2, 1, 3}};
    begin();
    put_work(work, 2);
    put_samples(1, work, 2, 0, 10000);
    struct prof_capture *c = open_case();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_assert(!s.rows[0].joint);
    ck_near(s.rows[0].values[0].rate, 3e9);
    ck_near(s.rows[0].values[0].per_launch, 3 * 8000);
    ck_near(s.rows[0].values[0].share, 6.0 / (10 * CYCLES_PER_NS));
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(values_rest_on_the_time_alone)
{
    /* Half of alpha runs beside beta, then a copy comes, then it is alone. */
    static const struct work work[] = {
        {1000, 9000, 1, 1, 3}, {1000, 5000, 2, 3, 5}, {5000, 6000, 2, 0, 11}};
    begin();
    put_work(work, 3);
    put_samples(1, work, 3, 0, 10000);
    struct prof_capture *c = open_case();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    const struct prof_counter_row *a = row_named(&s, "alpha");
    ck_assert(!a->joint);
    ck_assert_int_eq(a->samples, 30);
    ck_near(a->joint_share, 5.0 / 8);
    ck_near(a->values[0].rate, 3e9);
    ck_assert(row_named(&s, "beta")->joint);
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(a_copy_that_is_over_at_once_is_no_company)
{
    static const struct work work[] = {{1000, 9000, 1, 1, 3}, {4010, 4014, 2, 0, 3}};
    begin();
    put_work(work, 2);
    put_samples(1, work, 1, 0, 10000);
    struct prof_capture *c = open_case();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_assert_int_eq(s.rows[0].samples, 80);
    ck_near(s.rows[0].values[0].rate, 3e9);
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

/* As cuBLAS clears a word before each product. A fill of many bytes is company. */
START_TEST(a_fill_of_a_word_is_no_company)
{
    struct work work[40];
    for (int i = 0; i < 20; i++) {
        work[2 * i] = (struct work){1000 + i * 1000, 1950 + i * 1000, 1, 1, 5};
        work[2 * i + 1] = (struct work){1970 + i * 1000, 1985 + i * 1000, 1, 0, 0};
    }
    begin();
    put_work(work, 40);
    put_samples(1, work, 40, 900, 21100);
    strcat(sql, "UPDATE transfer SET bytes = 4;");
    struct prof_capture *c = open_case();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_near(s.rows[0].joint_share, 0);
    ck_assert_int_eq(s.rows[0].samples, 200);
    ck_near(s.rows[0].values[0].per_launch, 5 * 950);
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(short_kernels_are_pooled)
{
    struct work work[50]; /* 20 ns each, five of them in two samples */
    for (int i = 0; i < 50; i++)
        work[i] = (struct work){1005 + i * 40, 1025 + i * 40, 1, 1, 9};
    begin();
    put_work(work, 50);
    put_samples(1, work, 50, 1000, 3000);
    struct prof_capture *c = open_case();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_assert_int_eq(s.rows[0].samples, 20);
    ck_assert_int_eq(s.rows[0].covered, 50);
    ck_near(s.rows[0].values[0].rate, 9e9);
    ck_near(s.rows[0].values[0].per_launch, 9 * 20);
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(too_few_samples_say_nothing)
{
    static const struct work work[] = {{1000, 1900, 1, 1, 3}};
    begin();
    put_work(work, 1);
    put_samples(1, work, 1, 1000, 1900);
    struct prof_capture *c = open_case();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_assert_uint_eq(s.count, 1);
    ck_assert_int_eq(s.rows[0].samples, PROF_COUNTER_MIN_SAMPLES - 1);
    ck_assert(!s.rows[0].known);
    ck_near(s.rows[0].values[0].rate, NAN);
    ck_near(s.rows[0].values[0].per_launch, NAN);
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

/* Launches of one kernel that do 4, 6, 4, 6 ... per ns: the error must be that of the ratio
 * estimator over launches, computed here by its definition. */
START_TEST(the_error_is_that_between_launches)
{
    struct work work[20];
    double v = 0, o = 0, squares = 0;
    for (int i = 0; i < 20; i++)
        work[i] = (struct work){1000 + i * 1000, 1500 + i * 1000, 1, 1, i % 2 ? 6 : 4};
    begin();
    put_work(work, 20);
    put_samples(1, work, 20, 1000, 21000);
    for (int i = 0; i < 20; i++) {
        v += 500 * work[i].rate;
        o += 500;
    }
    for (int i = 0; i < 20; i++)
        squares += pow(500 * work[i].rate - v / o * 500, 2);
    struct prof_capture *c = open_case();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_near(s.rows[0].values[0].rate, 5e9);
    ck_near(s.rows[0].values[0].rate_error, sqrt(squares * 20 / 19) / o * 1e9);
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

/* A launch that several bursts saw is as many clusters. */
START_TEST(bursts_of_one_launch_tell_of_its_spread)
{
    static const struct work parts[] = {{1000, 3000, 1, 1, 4}, {3000, 5000, 1, 1, 6}};
    static const struct work whole[] = {{1000, 5000, 1, 1, 0}};
    begin();
    put_work(whole, 1);
    put_samples(1, parts, 2, 1000, 2000);
    put_samples(1, parts, 2, 4000, 5000);
    struct prof_capture *c = open_case();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_near(s.rows[0].values[0].rate, 5e9);
    /* residuals of -1000 and 1000 counts over 2000 ns, times n / (n - 1) = 2 */
    ck_near(s.rows[0].values[0].rate_error, sqrt(2e6 * 2) / 2000 * 1e9);
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

/* A clock that changes between bursts changes the rate, but not what a launch counts: the launches of
 * a burst are no independent word on the rate, and a slow launch is one launch. */
START_TEST(a_launch_counts_the_same_at_any_clock)
{
    struct work work[40], slow[20];
    for (int i = 0; i < 20; i++) {
        work[i] = (struct work){1000 + i * 500, 1500 + i * 500, 1, 1, 6};
        slow[i] = work[20 + i] = (struct work){20000 + i * 1000, 21000 + i * 1000, 1, 1, 3};
    }
    begin();
    put_work(work, 40);
    put_samples(1, work, 20, 1300, 10000); /* begins within a launch */
    put_samples(1, slow, 20, 20000, 40000);
    struct prof_capture *c = open_case();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    const struct prof_counter_value *v = &s.rows[0].values[0];
    ck_assert(!s.rows[0].joint);
    ck_near(v->per_launch, 3000);
    ck_assert_double_lt(v->per_launch_error, 1e-6 * 3000);
    /* by its definition over two bursts of 8,700 and 20,000 ns */
    double rate = (8700. * 6 + 20000. * 3) / 28700, a = 8700 * (6 - rate), b = 20000 * (3 - rate);
    ck_near(v->rate, rate * 1e9);
    ck_near(v->rate_error, sqrt((a * a + b * b) * 2) / 28700 * 1e9);
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

/* What two kernels do together says nothing of either, however often each is alone too. */
START_TEST(together_is_not_in_turn)
{
    static const struct work work[] = {{1000, 3000, 1, 1, 3},
                                       {3000, 5000, 1, 3, 5},
                                       {5000, 7000, 1, 1, 10},
                                       {5000, 7000, 2, 3, 10}};
    begin();
    put_work(work, 4);
    put_samples(1, work, 4, 1000, 7000);
    struct prof_capture *c = open_case();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_near(row_named(&s, "alpha")->values[0].rate, 3e9);
    ck_near(row_named(&s, "beta")->values[0].rate, 5e9);
    ck_near(row_named(&s, "beta")->joint_share, 0.5);
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(joint_values_have_no_error)
{
    static const struct work work[] = {
        {1000, 1300, 1, 1, 3}, {2000, 2300, 1, 1, 4}, {3000, 5000, 1, 1, 3}, {3000, 5000, 2, 3, 5}};
    begin();
    put_work(work, 4);
    put_samples(1, work, 4, 1000, 5000);
    struct prof_capture *c = open_case();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    const struct prof_counter_row *a = row_named(&s, "alpha");
    ck_assert(a->joint && a->known);
    ck_assert_int_eq(a->samples, 26);
    ck_near(a->values[0].rate_error, NAN);
    ck_near(a->values[0].rate, (3. * 300 + 4 * 300 + 8 * 2000) / 2600 * 1e9);
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(coverage_counts_what_bursts_saw)
{
    struct work work[10];
    for (int i = 0; i < 10; i++)
        work[i] = (struct work){1000 + i * 2000, 2500 + i * 2000, 1, 1, 4};
    begin();
    put_work(work, 10);
    put_samples(1, work, 10, 2000, 6000); /* half of the first, the second, most of the third */
    put_samples(1, work, 10, 15500, 16000);
    struct prof_capture *c = open_case();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_assert_int_eq(s.bursts, 2);
    ck_assert_int_eq(s.rows[0].launches, 10);
    ck_assert_int_eq(s.rows[0].covered, 4);
    ck_assert_int_eq(s.rows[0].covered_ns, 500 + 1500 + 1000 + 500);
    ck_near(s.rows[0].coverage, 3500.0 / 15000);
    ck_near(s.rows[0].values[0].rate, 4e9);
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(a_sample_that_spans_a_pause_is_left_out)
{
    static const struct work work[] = {{1000, 9000, 1, 1, 3}};
    begin();
    put_work(work, 1);
    put("INSERT INTO counter_sample(counter_device, start, duration, c0, c1, c2) "
        "VALUES(1, 0, 3000, 1e12, 1, 1);");
    put_samples(1, work, 1, 3000, 9000);
    struct prof_capture *c = open_case();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_assert_int_eq(s.rows[0].samples, 60);
    ck_near(s.rows[0].values[0].rate, 3e9);
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

/* Between alphas ran what has no row: no idle time, though it looks like it. */
START_TEST(what_a_kernel_filter_left_out_is_not_of_its_neighbours)
{
    struct work work[40];
    int64_t at = 1030;
    for (int i = 0; i < 40; i++, at += 650)
        work[i] = (struct work){at, at + 650, 1, i % 2 ? 3 : 1, i % 2 ? 50 : 7};
    begin();
    for (int i = 0; i < 40; i += 2)
        put_work(&work[i], 1);
    put_samples(1, work, 40, 1000, at);
    put("UPDATE capture SET kernel_filter = 'alpha';");
    struct prof_capture *c = open_case();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_assert_uint_eq(s.count, 1);
    ck_assert(s.rows[0].known && !s.rows[0].joint);
    ck_near(s.rows[0].values[0].rate, 7e9);
    ck_near(s.rows[0].coverage, 1);
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

/* Recorded from 3000 to 7000, what was launched then until 7560; before and after that ran others.
 */
START_TEST(what_ran_outside_a_window_is_not_of_what_ran_inside)
{
    static const struct work work[] = {{1000, 3250, 2, 3, 50},
                                       {3250, 5010, 1, 1, 7},
                                       {5090, 7560, 1, 1, 7},
                                       {7560, 9000, 1, 3, 50}};
    begin();
    put_work(&work[1], 2);
    put_samples(1, work, 4, 1000, 9000);
    put("INSERT INTO recording(process, start, begins) VALUES(1, 0, 0), (1, 3000, 1), (1, 7000, "
        "0);");
    struct prof_capture *c = open_case();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_assert_uint_eq(s.count, 1);
    ck_near(s.rows[0].values[0].rate, 7e9);
    ck_assert_int_eq(s.rows[0].samples, 42); /* of 44: between its launches it was idle indeed */
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(a_peak_that_cannot_be_is_none)
{
    static const struct work work[] = {{1000, 3000, 1, 1, 3}};
    static const char *const peaks[] = {"0", "-1", "'text'", "NULL"};
    for (size_t i = 0; i < sizeof peaks / sizeof peaks[0]; i++) {
        begin();
        put_work(work, 1);
        put_samples(1, work, 1, 1000, 3000);
        put("UPDATE counter SET peak = %s WHERE slot = 0;", peaks[i]);
        struct prof_capture *c = open_case();
        struct prof_counter_summary s;
        ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
        ck_near(s.rows[0].values[0].rate, 3e9);
        ck_near(s.rows[0].values[0].share, NAN);
        prof_counter_summary_free(&s);
        prof_close(c);
    }
}
END_TEST

START_TEST(others_on_the_device_are_told)
{
    static const struct work work[] = {{1000, 3000, 1, 1, 3}, {5000, 7000, 1, 3, 3}};
    begin();
    put_work(work, 2);
    put_samples(1, work, 2, 1000, 3000);
    put_samples(1, work, 2, 5000, 7000);
    put("UPDATE counter_burst SET others = 2 WHERE id = 2;");
    struct prof_capture *c = open_case();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_NAME, &s, &err));
    ck_assert(!row_named(&s, "alpha")->shared);
    ck_assert(row_named(&s, "beta")->shared);
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(devices_are_apart)
{
    static const struct work one[] = {{1000, 5000, 1, 1, 3}}, two[] = {{1000, 5000, 3, 1, 8}};
    begin();
    put("INSERT INTO device(process, uuid) VALUES(1, 'GPU-2');"
        "INSERT INTO stream(process, device) VALUES(1, 2);"
        "INSERT INTO counter_device(uuid, interval) VALUES('GPU-2', 100), ('GPU-9', 100);"
        "INSERT INTO counter(counter_device, slot, name, unit, metric, kind) VALUES"
        "(2, 0, 'bytes', 'byte', 'x', 1);");
    put_work(one, 1);
    put_work(two, 1);
    put_samples(1, one, 1, 1000, 5000);
    put_samples(2, two, 1, 1000, 5000);
    put_samples(3, two, 1, 1000, 5000); /* nobody used that one */
    struct prof_capture *c = open_case();
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
    static const struct work work[] = {
        {1000, 3000, 1, 1, 3}, {3000, 6000, 1, 3, 5}, {6000, 8000, 1, 1, 4}};
    begin();
    put_work(work, 3);
    put_samples(1, work, 3, 1000, 8000);
    struct prof_capture *c = open_case();
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
    static const struct work work[] = {{1000, 3000, 1, 1, 3}, {3000, 6000, 1, 2, 5}};
    begin();
    put_work(work, 2);
    put_samples(1, work, 2, 4000, 6000);
    put_samples(1, work, 2, 1000, 4000);
    struct prof_capture *c = open_case();
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

START_TEST(damage_is_survived)
{
    static const struct work work[] = {{1000, 3000, 1, 1, 3}};
    begin();
    put_work(work, 1);
    put("INSERT INTO counter(counter_device, slot, name, kind, clock, peak) VALUES"
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
    put("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) "
        "INSERT INTO counter_device(uuid, interval) SELECT 'GPU-1', 100 FROM n;"
        "INSERT INTO counter(counter_device, slot, name, kind) "
        "SELECT d.id, s.slot, 'n' || d.id || s.slot, 1 FROM counter_device d, "
        "(SELECT 6 AS slot UNION SELECT 7) s;");
    struct prof_capture *c = open_case();
    struct prof_counter_summary s;
    ck_ok(prof_counter_summary(c, NULL, PROF_BY_CONFIG, &s, &err));
    prof_counter_summary_free(&s);
    prof_close(c);
}
END_TEST

CHECK_MAIN("counters", lines_are_sums_over_spans,
           a_kernel_alone_has_its_rate_whatever_its_edges,
           kernels_in_turn_are_told_apart, side_by_side_is_joint,
           a_share_is_of_the_device_and_a_rate_of_a_launch, values_rest_on_the_time_alone,
           a_copy_that_is_over_at_once_is_no_company,
           a_fill_of_a_word_is_no_company, short_kernels_are_pooled,
           too_few_samples_say_nothing, the_error_is_that_between_launches,
           bursts_of_one_launch_tell_of_its_spread,
           a_launch_counts_the_same_at_any_clock, together_is_not_in_turn,
           joint_values_have_no_error, coverage_counts_what_bursts_saw,
           a_sample_that_spans_a_pause_is_left_out,
           what_a_kernel_filter_left_out_is_not_of_its_neighbours,
           what_ran_outside_a_window_is_not_of_what_ran_inside, a_peak_that_cannot_be_is_none,
           others_on_the_device_are_told, devices_are_apart, filters_choose_kernels_not_samples,
           order_in_the_file_does_not_matter, nothing_sampled_is_nothing, damage_is_survived)
