/* Energy by the driver's counter: a recording of an H200 against the integral of its sampled power,
 * a counter made up whose truth is known exactly, and what is said where it was not read. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/energy.h"
#include "tests/analysis/fixture.h"

#define S 1000000000.0

static struct prof_capture *with_rows(char **sql, FILE *out)
{
    fclose(out);
    struct prof_capture *c = fixture_with_base(*sql);
    free(*sql);
    return c;
}

static void put_sample(FILE *out, int64_t at, int64_t mj)
{
    fprintf(out, "INSERT INTO device_clock(device, start, energy_mj) VALUES(1, %lld, %lld);",
            (long long)at, (long long)mj);
}

/* ---- an H200 --------------------------------------------------------------------------------- */

struct truth {
    int64_t at;
    double joules;
};

static struct prof_capture *read_h200(struct truth *truth, size_t room, size_t *count)
{
    char *sql = NULL, line[200];
    size_t size = 0;
    FILE *out = open_memstream(&sql, &size), *in = fopen(TEST_DATA "/energy_h200.txt", "r");
    ck_assert(out && in);
    *count = 0;
    while (fgets(line, sizeof line, in)) {
        char kind;
        long long at, value;
        if (sscanf(line, "%c %lld %lld", &kind, &at, &value) != 3)
            continue;
        if (kind == 'r')
            put_sample(out, at, value);
        else if (*count < room)
            truth[(*count)++] = (struct truth){at, (double)value / 1000};
    }
    fclose(in);
    return with_rows(&sql, out);
}

/* The integral is of samples 20 ms apart, at some 700 W. */
#define TRUTH_J 15

START_TEST(sixty_seconds_of_an_h200)
{
    struct truth truth[700];
    size_t count, sharp = 0;
    struct prof_capture *c = read_h200(truth, 700, &count);
    struct prof_energy_counters counters = {0};
    ck_ok(prof_energy_read(c, &counters, &err));
    ck_assert_uint_ge(count, 650);
    for (size_t i = 0; i + 600 < count; i++) { /* every 60 s of it */
        struct prof_energy e = prof_energy_between(&counters, 1, truth[i].at, truth[i + 600].at);
        ck_assert_double_eq_tol(e.joules / (truth[i + 600].joules - truth[i].joules), 1, 0.005);
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = i + 1; k < count && k < i + 50; k++) {
            struct prof_energy e = prof_energy_between(&counters, 1, truth[i].at, truth[k].at);
            double used = truth[k].joules - truth[i].joules;
            ck_assert_double_ge(used, e.low - TRUTH_J);
            ck_assert_double_le(used, e.high + TRUTH_J);
            sharp += prof_energy_is_sharp(&e);
            if (prof_energy_is_sharp(&e))
                ck_assert_double_eq_tol(e.joules / used, 1, 0.25);
        }
    }
    ck_assert_uint_ge(sharp, 20000); /* from some 0.7 s on */
    prof_energy_free(&counters);
    prof_close(c);
}
END_TEST

/* ---- a counter made up ----------------------------------------------------------------------- */

/* 100 W, and 700 W in every second half of a second. */
static double used_at(double t)
{
    double whole = floor(t / S), part = t / S - whole;
    return whole * 400 + (part < 0.5 ? part * 100 : 50 + (part - 0.5) * 700);
}

static int64_t counter_at(int64_t at)
{
    int64_t step = 100000000, moved = (at + 37000000) / step * step - 37000000;
    return 1000000 + (int64_t)(used_at((double)(moved < 0 ? 0 : moved)) * 1000);
}

static struct prof_capture *make_up(const char *more)
{
    char *sql = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&sql, &size);
    srand(1);
    for (int64_t at = 1000000; at < 20 * 1000000000ll; at += 90000000 + rand() % 60000000)
        put_sample(out, at, counter_at(at));
    fputs("UPDATE capture SET duration = 20000000000;", out);
    fputs("INSERT INTO kernel(start, duration, stream, config) VALUES(1000000000, 9, 1, 1);", out);
    fputs(more, out);
    return with_rows(&sql, out);
}

START_TEST(what_was_used_lies_between)
{
    struct prof_capture *c = make_up("");
    struct prof_energy_counters counters = {0};
    ck_ok(prof_energy_read(c, &counters, &err));
    for (int i = 0; i < 20000; i++) {
        int64_t begin = 10000000 + rand() % 1900 * 10000000ll;
        int64_t end = begin + (1 + rand() % 12000) * 1000000ll;
        if (end > 19500000000)
            continue;
        struct prof_energy e = prof_energy_between(&counters, 1, begin, end);
        double used = used_at((double)end) - used_at((double)begin);
        ck_assert_double_le(e.low, used + 0.01); /* counted in mJ */
        ck_assert_double_ge(e.high, used - 0.01);
        ck_assert(e.joules >= 0 && e.joules <= e.high);
        if (end - begin >= 10000000000)
            ck_assert_double_eq_tol(e.joules / used, 1, 0.02);
    }
    prof_energy_free(&counters);
    prof_close(c);
}
END_TEST

/* Two recorders of one device, each of which reads every 0.1 s: nothing is lost, and a reading
 * whose time was written down late is no reset. */
START_TEST(two_recorders_of_one_device)
{
    char *sql = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&sql, &size);
    for (int64_t at = 1000000; at < 20 * 1000000000ll; at += 50000000)
        put_sample(out, at, counter_at(at));
    put_sample(out, 5064000000, counter_at(5062000000)); /* the counter moves at 5.063 s */
    put_sample(out, 5063500000, counter_at(5063500000));
    struct prof_capture *c = with_rows(&sql, out);
    struct prof_energy_counters counters = {0};
    ck_ok(prof_energy_read(c, &counters, &err));
    ck_assert_uint_ge(counters.list.data[0].samples.count, 190);
    for (int64_t begin = 500000000; begin < 15000000000; begin += 110000000) {
        struct prof_energy e = prof_energy_between(&counters, 1, begin, begin + 3000000000);
        double used = used_at((double)begin + 3e9) - used_at((double)begin);
        ck_assert(e.low <= used + 0.01 && e.high >= used - 0.01);
        ck_assert(prof_energy_is_sharp(&e));
    }
    prof_energy_free(&counters);
    prof_close(c);
}
END_TEST

/* A counter that moves every 0.35 s: three to four readings are the same, and the last is up to
 * that old. */
START_TEST(slow_counter)
{
    char *sql = NULL;
    size_t size = 0, sharp = 0;
    FILE *out = open_memstream(&sql, &size);
    for (int64_t at = 40000000; at < 20 * 1000000000ll; at += 100000000)
        put_sample(out, at, (int64_t)(used_at((double)(at / 350000000 * 350000000)) * 1000));
    struct prof_capture *c = with_rows(&sql, out);
    struct prof_energy_counters counters = {0};
    ck_ok(prof_energy_read(c, &counters, &err));
    for (int64_t begin = 500000000; begin < 15000000000; begin += 1000000) {
        struct prof_energy e = prof_energy_between(&counters, 1, begin, begin + 4500000000);
        double used = used_at((double)begin + 4.5e9) - used_at((double)begin);
        ck_assert_double_le(e.low, used + 0.01);
        ck_assert_double_ge(e.high, used - 0.01);
        sharp += prof_energy_is_sharp(&e);
    }
    ck_assert_uint_gt(sharp, 0);
    prof_energy_free(&counters);
    prof_close(c);
}
END_TEST

START_TEST(devices_and_ranges_have_theirs)
{
    struct prof_capture *c = make_up(
        "INSERT INTO range(start, duration, thread, name) VALUES(1000000000, 8000000000, 1, 1),"
        "(10000000000, 2000000000, 1, 1), (13000000000, 20000000, 1, 2),"
        "(2000000000, 6000000000, 1, 1);"); /* nested: its energy is that of the outer one */
    struct prof_utilisation u;
    struct prof_range_summary ranges;
    ck_ok(prof_utilisation(c, NULL, 0, 10, &u, &err));
    ck_assert_double_eq_tol(u.rows[0].energy.joules * S / (double)u.rows[0].energy_ns, 400, 20);
    for (int i = 2; i < 8; i++)
        ck_assert_double_eq_tol(u.rows[0].power_w[i], 400, 40);
    ck_assert_int_ge(u.rows[0].energy_ns, 19800000000);
    ck_ok(prof_range_summary(c, NULL, &ranges, &err));
    ck_assert_uint_eq(ranges.count, 2);
    ck_assert_double_eq_tol(ranges.rows[0].energy.joules, 4000, 120);
    ck_assert_double_le(ranges.rows[0].energy.low, 4000);
    ck_assert_double_ge(ranges.rows[0].energy.high, 4000);
    ck_assert(isnan(ranges.rows[1].energy.joules)); /* too short for the counter's steps */
    prof_range_summary_free(&ranges);
    prof_utilisation_free(&u);
    prof_close(c);
}
END_TEST

START_TEST(nothing_is_said_without_readings)
{
    static const char *const sqls[] = {
        "DELETE FROM device_clock",
        "DELETE FROM device_clock WHERE id > 1",
        "UPDATE device_clock SET energy_mj = 5 WHERE id = 50", /* the driver was loaded again */
        "UPDATE device_clock SET energy_mj = -5",
        "UPDATE device_clock SET energy_mj = 1000000",      /* it never moved */
        "DELETE FROM device_clock WHERE start > 400000000", /* too short */
    };
    for (size_t i = 0; i < sizeof sqls / sizeof sqls[0]; i++) {
        struct prof_capture *c = make_up(sqls[i]);
        struct prof_energy_counters counters = {0};
        struct prof_utilisation u;
        ck_ok(prof_energy_read(c, &counters, &err));
        ck_assert(isnan(prof_energy_between(&counters, 1, 1000000000, 9000000000).joules));
        ck_ok(prof_utilisation(c, NULL, 0, 0, &u, &err));
        ck_assert(isnan(u.rows[0].energy.joules));
        ck_assert_int_eq(u.rows[0].energy_ns, PROF_UNKNOWN);
        prof_utilisation_free(&u);
        prof_energy_free(&counters);
        prof_close(c);
    }
    struct prof_capture *c = make_up("");
    struct prof_energy_counters counters = {0};
    ck_ok(prof_energy_read(c, &counters, &err));
    ck_assert(isnan(prof_energy_between(&counters, 1, 1000000000, 30000000000).joules));
    ck_assert(isnan(prof_energy_between(&counters, 2, 1000000000, 9000000000).joules));
    prof_energy_free(&counters);
    prof_close(c);
}
END_TEST

CHECK_MAIN("energy", sixty_seconds_of_an_h200, what_was_used_lies_between,
           two_recorders_of_one_device, slow_counter, devices_and_ranges_have_theirs,
           nothing_is_said_without_readings)
