/* Interval algebra against a bitmap: every set of small integers can be drawn as bits. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/intervals.h"
#include "tests/check_main.h"

enum { LENGTH = 200, ROUNDS = 1000 };

static void draw(const struct prof_intervals *set, bool bits[LENGTH])
{
    memset(bits, 0, LENGTH);
    for (size_t i = 0; i < set->count; i++)
        for (int64_t t = set->data[i].begin; t < set->data[i].end; t++)
            bits[t] = true;
}

static struct prof_intervals random_intervals(void)
{
    struct prof_intervals set = {0};
    int count = rand() % 12;
    for (int i = 0; i < count; i++) {
        int64_t begin = rand() % LENGTH, length = rand() % 30;
        int64_t end = begin + length > LENGTH ? LENGTH : begin + length;
        *prof_array_add(&set) = (struct prof_interval){begin, rand() % 8 ? end : begin - 1};
    }
    return set;
}

static void check_is_set(const struct prof_intervals *set, const bool bits[LENGTH])
{
    bool drawn[LENGTH];
    int64_t length = 0;
    draw(set, drawn);
    ck_assert_mem_eq(drawn, bits, LENGTH);
    for (int t = 0; t < LENGTH; t++)
        length += bits[t];
    for (size_t i = 0; i < set->count; i++) {
        length -= set->data[i].end - set->data[i].begin;
        ck_assert_int_lt(set->data[i].begin, set->data[i].end);
        if (i)
            ck_assert_int_gt(set->data[i].begin, set->data[i - 1].end);
    }
    ck_assert_int_eq(length, 0);
}

START_TEST(algebra_is_that_of_sets)
{
    srand(1);
    for (int round = 0; round < ROUNDS; round++) {
        struct prof_intervals a = random_intervals(), b = random_intervals();
        struct prof_intervals either = {0}, both = {0}, gaps = {0};
        bool x[LENGTH], y[LENGTH], expected[LENGTH];
        draw(&a, x);
        draw(&b, y);
        prof_intervals_normalise(&a);
        prof_intervals_normalise(&b);
        check_is_set(&a, x);
        ck_assert(prof_intervals_union(&a, &b, &either));
        for (int t = 0; t < LENGTH; t++)
            expected[t] = x[t] || y[t];
        check_is_set(&either, expected);
        ck_assert(prof_intervals_intersection(&a, &b, &both));
        for (int t = 0; t < LENGTH; t++)
            expected[t] = x[t] && y[t];
        check_is_set(&both, expected);
        struct prof_interval window = {rand() % LENGTH, rand() % LENGTH};
        ck_assert(prof_intervals_gaps(&a, window, &gaps));
        for (int t = 0; t < LENGTH; t++)
            expected[t] = !x[t] && t >= window.begin && t < window.end;
        check_is_set(&gaps, expected);
        struct prof_intervals *all[] = {&a, &b, &either, &both, &gaps};
        for (int i = 0; i < 5; i++)
            prof_array_free(all[i]);
    }
}
END_TEST

static unsigned char painted[LENGTH];
static int64_t last_end;

static void paint(void *user, int64_t begin, int64_t end, unsigned active)
{
    ck_assert_ptr_eq(user, painted);
    ck_assert_int_lt(begin, end);
    ck_assert_int_ge(begin, last_end);
    ck_assert_uint_ne(active, 0);
    for (int64_t t = begin; t < end; t++)
        painted[t] = (unsigned char)active;
    last_end = end;
}

START_TEST(the_sweep_tells_who_is_active_when)
{
    srand(2);
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char expected[LENGTH] = {0};
        int depth[LENGTH] = {0}, most = 0;
        struct prof_sweep sweep;
        memset(painted, 0, sizeof painted);
        last_end = INT64_MIN;
        prof_sweep_open(&sweep, paint, painted);
        for (int64_t begin = 0; begin < LENGTH; begin += rand() % 9) {
            unsigned class_index = rand() % 2 ? 1 : 0;
            int64_t end = begin + rand() % 25;
            if (end > LENGTH)
                end = LENGTH;
            ck_assert(prof_sweep_add(&sweep, class_index, begin, end));
            for (int64_t t = begin; t < end; t++) {
                expected[t] |= (unsigned char)(1u << class_index);
                depth[t] += !class_index;
                most = depth[t] > most ? depth[t] : most;
            }
        }
        prof_sweep_close(&sweep);
        ck_assert_mem_eq(painted, expected, LENGTH);
        ck_assert_uint_eq(sweep.most_running, (size_t)most);
    }
}
END_TEST

START_TEST(extremes_stay_apart)
{
    struct prof_intervals set = {0};
    *prof_array_add(&set) = (struct prof_interval){INT64_MIN + 1, 0};
    *prof_array_add(&set) = (struct prof_interval){10, INT64_MAX};
    prof_intervals_normalise(&set);
    ck_assert_uint_eq(set.count, 2);
    prof_array_free(&set);
}
END_TEST

CHECK_MAIN("intervals", algebra_is_that_of_sets, the_sweep_tells_who_is_active_when,
           extremes_stay_apart)
