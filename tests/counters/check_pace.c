/* How often is sampled: within the budget whatever decoding costs and from the second burst on, at
 * the duty that was asked for, and never at fixed distances. */
#include <math.h>

#include "samplers/counters/sampler.h"
#include "tests/check_main.h"

#define INTERVAL 20000u
#define BURSTS 2000
#define MS 1000000ull

static struct pace pace;
static uint64_t now, cpu;  /* ns */
static double least, most; /* distance of two bursts */
static double worst;       /* share of a core, at the end of any burst but the first */
static double owed;        /* CPU time beyond the budget, likewise */

static void begin(double duty)
{
    now = 5000 * MS, cpu = 700 * MS; /* of what came before nothing counts */
    least = INFINITY, most = worst = owed = 0;
    pace_begin(&pace, INTERVAL, duty, 42, now, cpu);
    ck_assert_uint_eq(pace.next_ns, now);
}

/* One burst at its time, which costs so much and takes as long after it was over. */
static void burst(uint64_t cost)
{
    uint64_t began = pace.next_ns > now ? pace.next_ns : now;
    double elapsed;
    pace_spend(&pace, began, cpu);
    now = began + pace.burst_ns + cost;
    cpu += cost;
    elapsed = (double)(now - 5000 * MS);
    worst = fmax(worst, cost == cpu - 700 * MS ? 0 : (double)(cpu - 700 * MS) / elapsed);
    owed =
        fmax(owed, cost == cpu - 700 * MS ? 0 : (double)(cpu - 700 * MS) - PACE_BUDGET * elapsed);
    uint64_t next = pace_next(&pace, began, pace.burst_ns, now, cpu);
    least = fmin(least, (double)next - (double)began);
    most = fmax(most, (double)next - (double)began);
}

static double used(void)
{
    return (double)(cpu - 700 * MS) / (double)(now - 5000 * MS);
}

START_TEST(what_it_costs_stays_within_the_budget)
{
    static const uint64_t costs_ms[] = {10, 40, 100, 180};
    for (int i = 0; i < 4; i++) {
        begin(0);
        for (int n = 0; n < BURSTS; n++)
            burst(costs_ms[i] * MS);
        ck_assert_msg(owed < 1000 && used() > PACE_BUDGET * 0.95, "%g %g", owed, used());
        ck_assert_double_gt(most / least, 1.5);
    }
}
END_TEST

START_TEST(over_a_short_run_too)
{
    /* as seen on an H200: runs of two seconds used 11.6 % when each burst was paid by itself */
    static const uint64_t costs_ms[] = {124, 43, 65, 68, 72, 47};
    begin(0);
    for (int n = 0; n < 6; n++)
        burst(costs_ms[n] * MS);
    ck_assert_msg(worst <= PACE_BUDGET && used() > PACE_BUDGET * 0.5, "%g %g", worst, used());
}
END_TEST

START_TEST(costs_that_change_are_followed)
{
    begin(0);
    for (int n = 0; n < BURSTS; n++)
        burst((40 + 90 * (uint64_t)((n * 7919) % 101) / 100) * MS); /* 40 to 130 ms */
    ck_assert_msg(used() < PACE_BUDGET && used() > PACE_BUDGET * 0.95, "%g", used());
    ck_assert_msg(owed < 90e6, "%g", owed);
    for (int n = 0; n < 3; n++)
        burst(500 * MS);
    ck_assert_msg(owed < 500e6, "%g", owed); /* one burst was not expected */
    for (int n = 0; n < 50; n++)
        burst(20 * MS);
    double owed_before = owed;
    for (int n = 0; n < 50; n++)
        burst(20 * MS);
    ck_assert_double_eq(owed, owed_before);
}
END_TEST

START_TEST(a_quiet_time_is_not_made_up_for)
{
    begin(0);
    for (int n = 0; n < 10; n++)
        burst(50 * MS);
    now += 3600000 * MS;
    uint64_t before = now;
    for (int n = 0; n < 11; n++)
        burst(50 * MS);
    /* one at once, one that was saved up, and nine that were earned */
    ck_assert_uint_gt(now - before, 9 * 500 * MS - 60 * MS);
}
END_TEST

START_TEST(looking_around_is_paid_too)
{
    begin(0);
    burst(50 * MS);
    uint64_t paid = pace.next_ns;
    begin(0);
    burst(50 * MS);
    now += 100 * MS, cpu += 20 * MS;
    burst(50 * MS);
    ck_assert_double_lt(pace.credit_ns, 0);
    ck_assert_uint_gt(pace.next_ns, paid);
}
END_TEST

START_TEST(a_duty_is_kept_whatever_it_costs)
{
    static const double duties[] = {0.01, 0.2, 0.5, 1};
    for (int i = 0; i < 4; i++) {
        begin(duties[i]);
        uint64_t first = now;
        for (int n = 0; n < BURSTS; n++)
            burst(0);
        double duty = (double)pace.burst_ns * BURSTS / (double)(pace.next_ns - first);
        ck_assert_msg(fabs(duty / duties[i] - 1) < 0.03, "%g", duty);
    }
}
END_TEST

START_TEST(cheap_bursts_follow_each_other)
{
    begin(0);
    burst(1000);
    ck_assert_uint_eq(pace.next_ns, now);
}
END_TEST

START_TEST(a_burst_is_so_many_samples)
{
    pace_begin(&pace, INTERVAL, 0, 1, 0, 0);
    ck_assert_uint_eq(pace.burst_ns, 400ull * INTERVAL);
    pace_begin(&pace, 100000000, 0, 1, 0, 0);
    ck_assert_uint_eq(pace.burst_ns, 1000000000);
}
END_TEST

CHECK_MAIN("pace", what_it_costs_stays_within_the_budget, over_a_short_run_too,
           costs_that_change_are_followed, a_quiet_time_is_not_made_up_for,
           looking_around_is_paid_too, a_duty_is_kept_whatever_it_costs,
           cheap_bursts_follow_each_other, a_burst_is_so_many_samples)
