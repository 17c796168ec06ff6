/* Clock conversion: exact at anchors, linear between, monotone everywhere, bounded memory. */
#include <stdlib.h>

#include "libprof/store/clockmap.h"
#include "tests/check_main.h"

#define AN_HOUR 3600000000000ull

static struct prof_clockmap map;

static void add(uint64_t source, uint64_t mono, uint64_t error)
{
    ck_assert(prof_clockmap_add(&map, source, mono, error));
}

static uint64_t at(uint64_t source)
{
    return prof_clockmap_convert(&map, source);
}

START_TEST(no_anchor_is_the_identity)
{
    ck_assert_uint_eq(at(123), 123);
}
END_TEST

START_TEST(one_anchor_is_an_offset)
{
    add(1000, 5000, 7);
    ck_assert_uint_eq(at(1000), 5000);
    ck_assert_uint_eq(at(1500), 5500);
    ck_assert_uint_eq(at(0), 4000);
    ck_assert_uint_eq(at(UINT64_MAX), UINT64_MAX); /* clamped */
    prof_clockmap_free(&map);
    add(5000, 1000, 0);
    ck_assert_uint_eq(at(10), 0); /* clamped */
    prof_clockmap_free(&map);
}
END_TEST

START_TEST(between_anchors_it_is_linear)
{
    add(0, 1000, 1);
    add(1000000, 1001500, 3); /* 500 ppm faster */
    add(2000000, 2001500, 2);
    ck_assert_uint_eq(at(0), 1000);
    ck_assert_uint_eq(at(500000), 501250);
    ck_assert_uint_eq(at(1000000), 1001500);
    ck_assert_uint_eq(at(1500000), 1501500);
    prof_clockmap_free(&map);
}
END_TEST

START_TEST(the_order_of_anchors_does_not_matter)
{
    add(2000000, 2001500, 2);
    add(0, 1000, 1);
    add(1000000, 1001500, 3);
    ck_assert_uint_eq(at(500000), 501250);
    ck_assert_uint_eq(at(1500000), 1501500);
    prof_clockmap_free(&map);
}
END_TEST

START_TEST(outside_the_slope_goes_on_within_limits)
{
    add(1000000, 1000000, 0);
    add(2000000, 2000500, 0); /* 500 ppm: goes on */
    ck_assert_uint_eq(at(4000000), 4001500);
    ck_assert_uint_eq(at(0), 0); /* 1000000 - 1000500, clamped */
    prof_clockmap_free(&map);
    add(1000000, 9000000, 0);
    add(1000100, 9000150, 30); /* 50 %: two anchors close together; held at 1e-3 */
    ck_assert_uint_eq(at(2000100), 9000150 + 1001000);
    ck_assert_uint_eq(at(0), 9000000 - 1001000);
    prof_clockmap_free(&map);
}
END_TEST

START_TEST(contradictions_are_settled_by_error)
{
    add(1000, 5000, 10);
    add(1000, 5003, 20); /* same source time, worse */
    ck_assert_uint_eq(at(1000), 5000);
    add(1000, 5001, 5); /* better */
    ck_assert_uint_eq(at(1000), 5001);
    add(2000, 4000, 50); /* backwards, worse */
    ck_assert_uint_eq(map.count, 1);
    add(2000, 4000, 1); /* backwards, better */
    ck_assert_uint_eq(map.count, 1);
    ck_assert_uint_eq(at(2000), 4000);
    ck_assert_uint_eq(map.rejected, 4);
    prof_clockmap_free(&map);
}
END_TEST

/* A drifting clock read with noise: never backwards, never off by more than noise and bend. */
START_TEST(it_is_monotone_and_close)
{
    srand(1);
    uint64_t source = 1000000000000ull, mono = 5000000000000ull;
    for (int i = 0; i < 500; i++) {
        add(source, mono + (uint64_t)(rand() % 400), 200);
        source += 1000000000;
        mono += 1000000000 + 30000 + (uint64_t)(rand() % 2000);
    }
    uint64_t last = 0;
    for (uint64_t s = 999000000000ull; s < source + 5000000000ull; s += 9999991) {
        uint64_t t = at(s);
        ck_assert_uint_ge(t, last);
        last = t;
    }
    for (uint64_t s = 1000999999000ull; s < 1001000001000ull; s++) {
        ck_assert_uint_ge(at(s + 1), at(s));
        ck_assert_uint_le(at(s + 1) - at(s), 2);
    }
    prof_clockmap_free(&map);
}
END_TEST

START_TEST(memory_is_bounded)
{
    for (uint64_t i = 0; i < 20000; i++)
        add(i * 1000000000, i * 1000010000 + 77, i == 3 ? 999 : 5);
    ck_assert_uint_lt(map.count, PROF_CLOCKMAP_ANCHORS);
    for (uint64_t i = 0; i < 20000; i += 7)
        ck_assert_uint_eq(at(i * 1000000000), i * 1000010000 + 77);
    prof_clockmap_free(&map);
}
END_TEST

START_TEST(times_near_the_end_of_64_bits)
{
    add(UINT64_MAX - AN_HOUR, UINT64_MAX - 2 * AN_HOUR, 1);
    add(UINT64_MAX - 10, UINT64_MAX - AN_HOUR - 10, 1);
    ck_assert_uint_eq(at(UINT64_MAX - AN_HOUR), UINT64_MAX - 2 * AN_HOUR);
    ck_assert_uint_eq(at(UINT64_MAX), UINT64_MAX - AN_HOUR);
    ck_assert_uint_eq(at(0), 0);
    prof_clockmap_free(&map);
}
END_TEST

CHECK_MAIN("clockmap", no_anchor_is_the_identity, one_anchor_is_an_offset,
           between_anchors_it_is_linear, the_order_of_anchors_does_not_matter,
           outside_the_slope_goes_on_within_limits, contradictions_are_settled_by_error,
           it_is_monotone_and_close, memory_is_bounded, times_near_the_end_of_64_bits)
