/* Allocations: peaks, leaks and the timeline, also against a plain simulation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/include/prof_memory.h"
#include "tests/analysis/fixture.h"

static const char sql[] =
    "INSERT INTO allocation(process, start, \"end\", bytes, kind, thread, device, address) VALUES"
    "(1, 100, 500, 1000, 3, 1, 1, 4096), (1, 200, NULL, 4000, 3, 2, 1, NULL),"
    "(1, 300, 400, 500, 2, 1, NULL, NULL), (1, 500, 600, 1500, 3, 1, 1, NULL),"
    "(1, 700, NULL, 10, 2, 1, NULL, NULL)";

START_TEST(peaks_and_leaks)
{
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_memory_summary s;
    ck_ok(prof_memory_summary(c, NULL, 10, &s, &err));
    ck_assert_uint_eq(s.count, 2);
    const struct prof_memory_row *d = &s.rows[0], *p = &s.rows[1];
    ck_assert_str_eq(d->kind_text, "device");
    ck_assert_int_eq(d->bytes.count, 3);
    ck_assert_int_eq(d->bytes.sum, 6500);
    ck_assert_int_eq(d->freed, 2);
    ck_assert_int_eq(d->peak_bytes, 5500); /* at 500 the first is freed before the next is made */
    ck_assert_int_eq(d->peak_ns, 500);
    ck_assert_int_eq(d->leaks, 1);
    ck_assert_int_eq(d->leaked_bytes, 4000);
    ck_assert_str_eq(p->kind_text, "pinned");
    ck_assert_int_eq(p->peak_bytes, 500);
    ck_assert_int_eq(s.total.kind, -1);
    ck_assert_int_eq(s.total.peak_bytes, 5500);
    ck_assert_int_eq(s.total.peak_ns, 300);
    ck_assert_int_eq(s.total.leaked_bytes, 4010);
    ck_assert_uint_eq(s.leak_count, 2);
    ck_assert_int_eq(s.leaks[0].bytes, 4000);
    ck_assert_int_eq(s.leaks[0].thread, 2);
    ck_assert_int_eq(s.leaks[0].start_ns, 200);
    ck_assert_int_eq(s.leaks[0].end_ns, PROF_UNKNOWN);
    prof_memory_summary_free(&s);
    ck_ok(prof_memory_summary(c, &(struct prof_filter){.begin_ns = 250}, 1, &s, &err));
    ck_assert_int_eq(s.total.bytes.count, 3);
    ck_assert_uint_eq(s.leak_count, 1);
    prof_memory_summary_free(&s);
    ck_ok(prof_memory_summary(c, &(struct prof_filter){.device = 1}, 0, &s, &err));
    ck_assert_int_eq(s.total.bytes.count, 3);
    ck_assert_uint_eq(s.leak_count, 0);
    prof_memory_summary_free(&s);
    prof_close(c);
}
END_TEST

/* What a peak is made of sums to it; what was freed at that moment is not of it. */
START_TEST(what_has_no_bytes_does_not_leak)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO allocation(process, start, end, bytes, kind, device) VALUES(1, 100, 900, "
        "4096, 3, 1), "
        "(1, 200, NULL, 0, 3, 1), (1, 300, 400, 0, 3, 1);"); /* sub-buffers of the first */
    struct prof_memory_summary s;
    ck_ok(prof_memory_summary(c, NULL, 10, &s, &err));
    ck_assert_int_eq(s.total.bytes.count, 3);
    ck_assert_int_eq(s.total.leaks, 0);
    ck_assert_uint_eq(s.leak_count, 0);
    prof_memory_summary_free(&s);
    struct prof_memory_profile profile;
    ck_ok(prof_memory_profile(c, NULL, &profile, &err));
    ck_assert_int_eq(profile.places[0].use.count, 3);
    ck_assert_int_eq(profile.places[0].use.kept_count, 0);
    prof_memory_profile_free(&profile);
    prof_close(c);
}
END_TEST

START_TEST(alive_at_a_moment)
{
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_alive a;
    ck_ok(prof_memory_alive(c, NULL, -1, 300, 2, &a, &err));
    ck_assert_uint_eq(a.count, 2);
    ck_assert_int_eq(a.total, 3);
    ck_assert_int_eq(a.total_bytes, 5500);
    ck_assert_int_eq(a.rows[0].bytes, 4000);
    ck_assert_int_eq(a.rows[0].thread, 2);
    ck_assert_int_eq(a.rows[1].bytes, 1000);
    ck_assert_int_eq(a.rows[1].end_ns, 500);
    ck_assert_int_eq(a.rows[1].address, 4096);
    prof_alive_free(&a);
    ck_ok(prof_memory_alive(c, NULL, 3, 500, 10, &a, &err));
    ck_assert_int_eq(a.total, 2);
    ck_assert_int_eq(a.total_bytes, 5500);
    prof_alive_free(&a);
    ck_ok(prof_memory_alive(c, &(struct prof_filter){.thread = 2}, -1, 300, 10, &a, &err));
    ck_assert_int_eq(a.total, 1);
    prof_alive_free(&a);
    ck_ok(prof_memory_alive(c, &(struct prof_filter){.kernel = "alpha"}, -1, 300, 10, &a, &err));
    ck_assert_int_eq(a.total, 0);
    prof_alive_free(&a);
    ck_ok(prof_memory_alive(c, NULL, -1, 99, 10, &a, &err));
    ck_assert_uint_eq(a.count, 0);
    prof_alive_free(&a);
    prof_close(c);
}
END_TEST

static void expect_points(const struct prof_memory_timeline *t, size_t count,
                          const int64_t (*points)[2])
{
    ck_assert_uint_eq(t->count, count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(t->points[i].time_ns, points[i][0]);
        ck_assert_int_eq(t->points[i].bytes, points[i][1]);
        ck_assert_int_eq(t->points[i].peak_bytes, points[i][1]);
    }
}

START_TEST(the_timeline_is_a_step_function)
{
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_memory_timeline t;
    ck_ok(prof_memory_timeline(c, NULL, -1, 0, &t, &err));
    expect_points(&t, 8,
                  (int64_t[][2]){{0, 0},
                                 {100, 1000},
                                 {200, 5000},
                                 {300, 5500},
                                 {400, 5000},
                                 {500, 5500},
                                 {600, 4000},
                                 {700, 4010}});
    ck_assert(!t.thinned);
    ck_assert_int_eq(t.peak_bytes, 5500);
    ck_assert_int_eq(t.peak_ns, 300);
    prof_memory_timeline_free(&t);
    ck_ok(prof_memory_timeline(c, NULL, 2, 0, &t, &err));
    expect_points(&t, 4, (int64_t[][2]){{0, 0}, {300, 500}, {400, 0}, {700, 10}});
    prof_memory_timeline_free(&t);
    ck_ok(prof_memory_timeline(c, &(struct prof_filter){.begin_ns = 350, .end_ns = 550}, -1, 0, &t,
                               &err));
    expect_points(&t, 3, (int64_t[][2]){{350, 5500}, {400, 5000}, {500, 5500}});
    ck_assert_int_eq(t.peak_bytes, 5500);
    ck_assert_int_eq(t.peak_ns, 350);
    prof_memory_timeline_free(&t);
    prof_close(c);
}
END_TEST

/* A point says of the time to the next one exactly how high it was at most, and on average. */
static void expect_span(const struct prof_memory_point *point, int64_t next, const int64_t *live)
{
    int64_t highest = 0, sum = 0;
    for (int64_t t = point->time_ns; t < next; t++) {
        highest = live[t] > highest ? live[t] : highest;
        sum += live[t];
    }
    ck_assert_int_eq(point->peak_bytes, highest);
    ck_assert_int_le(llabs(point->bytes - sum / (next - point->time_ns)), 1);
}

/* Random allocations: levels and peak against adding up every moment. */
START_TEST(it_matches_a_plain_simulation)
{
    enum { COUNT = 400, TIME = 3000 };
    static int64_t live[TIME];
    srand(5);
    for (int round = 0; round < 10; round++) {
        FILE *out;
        char *text = NULL;
        size_t size;
        memset(live, 0, sizeof live);
        ck_assert_ptr_nonnull(out = open_memstream(&text, &size));
        for (int i = 0; i < COUNT; i++) {
            int start = rand() % (TIME - 1), end = start + 1 + rand() % (TIME - 1 - start);
            int bytes = 1 + rand() % 1000;
            if (rand() % 10 == 0)
                end = TIME;
            fprintf(out,
                    "INSERT INTO allocation(process, start, \"end\", bytes, kind) "
                    "VALUES(1, %d, nullif(%d, %d), %d, 3);",
                    start, end, TIME, bytes);
            for (int t = start; t < end; t++)
                live[t] += bytes;
        }
        fclose(out);
        struct prof_capture *c = fixture_with_base(text);
        free(text);
        int64_t peak = 0;
        for (int t = 0; t < TIME; t++)
            peak = live[t] > peak ? live[t] : peak;
        struct prof_memory_summary s;
        struct prof_memory_timeline whole, thin;
        ck_ok(prof_memory_summary(c, NULL, 0, &s, &err));
        ck_ok(prof_memory_timeline(c, NULL, -1, 0, &whole, &err));
        ck_ok(prof_memory_timeline(c, NULL, -1, 50, &thin, &err));
        ck_assert_int_eq(s.total.peak_bytes, peak);
        ck_assert_int_eq(live[s.total.peak_ns], peak);
        for (size_t i = 0; i < whole.count; i++)
            ck_assert_int_eq(whole.points[i].bytes, live[whole.points[i].time_ns]);
        ck_assert_uint_le(thin.count, 50);
        ck_assert(thin.thinned);
        int64_t highest = 0;
        for (size_t i = 0; i < thin.count; i++) {
            if (i)
                ck_assert_int_gt(thin.points[i].time_ns, thin.points[i - 1].time_ns);
            highest = thin.points[i].peak_bytes > highest ? thin.points[i].peak_bytes : highest;
            int64_t next = i + 1 < thin.count ? thin.points[i + 1].time_ns : TIME;
            expect_span(&thin.points[i], next, live);
        }
        ck_assert_int_eq(highest, peak);
        ck_assert_int_eq(thin.peak_bytes, peak);
        ck_assert_int_eq(thin.points[thin.count - 1].bytes, live[TIME - 1]);
        prof_memory_summary_free(&s);
        prof_memory_timeline_free(&whole);
        prof_memory_timeline_free(&thin);
        prof_close(c);
    }
}
END_TEST

CHECK_MAIN("memory", peaks_and_leaks, what_has_no_bytes_does_not_leak, alive_at_a_moment,
           the_timeline_is_a_step_function, it_matches_a_plain_simulation)
