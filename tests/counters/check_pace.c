/* How often is sampled: within the budget whatever decoding costs, at the duty that was asked for,
 * and never at fixed distances. */
#include <math.h>

#include "collectors/counters/pace.h"
#include "tests/check_main.h"

#define INTERVAL 20000u
#define BURSTS 2000

/* Bursts one after the other, each of which costs `cpu` ns and ends `after` ns later than it was
 * over; returns the time from the first to the last. */
static uint64_t play(struct pace *pace, uint64_t cpu, uint64_t after, double *spread)
{
    uint64_t at = 1000, least = UINT64_MAX, most = 0;
    for (int i = 0; i < BURSTS; i++) {
        uint64_t next = pace_next(pace, at, pace->burst_ns, cpu);
        if (next < at + pace->burst_ns + after)
            next = at + pace->burst_ns + after;
        least = next - at < least ? next - at : least;
        most = next - at > most ? next - at : most;
        at = next;
    }
    *spread = (double)most / (double)least;
    return at - 1000;
}

START_TEST(decoding_stays_within_its_budget)
{
    static const uint64_t costs_ns[] = {10000000, 40000000, 100000000, 180000000};
    for (int i = 0; i < 4; i++) {
        struct pace pace;
        double spread;
        pace_begin(&pace, INTERVAL, 0, 42);
        uint64_t time = play(&pace, costs_ns[i], costs_ns[i], &spread);
        double used = (double)costs_ns[i] * BURSTS / (double)time;
        ck_assert_msg(used < PACE_BUDGET * 1.03 && used > PACE_BUDGET * 0.9, "%g", used);
        ck_assert_double_gt(spread, 1.5);
    }
}
END_TEST

START_TEST(a_duty_is_kept_whatever_it_costs)
{
    static const double duties[] = {0.01, 0.2, 0.5, 1};
    for (int i = 0; i < 4; i++) {
        struct pace pace;
        double spread;
        pace_begin(&pace, INTERVAL, duties[i], 42);
        uint64_t time = play(&pace, 1000000000, 0, &spread);
        double duty = (double)pace.burst_ns * BURSTS / (double)time;
        ck_assert_msg(fabs(duty / duties[i] - 1) < 0.03, "%g", duty);
    }
}
END_TEST

START_TEST(cheap_bursts_follow_each_other)
{
    struct pace pace;
    pace_begin(&pace, INTERVAL, 0, 1);
    ck_assert_uint_eq(pace_next(&pace, 500, pace.burst_ns, 1000), 500 + pace.burst_ns);
}
END_TEST

START_TEST(a_burst_is_so_many_samples)
{
    struct pace pace;
    pace_begin(&pace, INTERVAL, 0, 1);
    ck_assert_uint_eq(pace.burst_ns, 400ull * INTERVAL);
    pace_begin(&pace, 100000000, 0, 1);
    ck_assert_uint_eq(pace.burst_ns, 1000000000);
}
END_TEST

CHECK_MAIN("pace", decoding_stays_within_its_budget, a_duty_is_kept_whatever_it_costs,
           cheap_bursts_follow_each_other, a_burst_is_so_many_samples)
