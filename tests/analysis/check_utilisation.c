/* Utilisation by unions: overlapping streams, several devices, windows, and random intervals
 * against a bitmap. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/include/prof_iterations.h"
#include "tests/analysis/fixture.h"

START_TEST(overlap_is_counted_once)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO kernel(start, duration, stream, config) VALUES"
        "(100, 100, 1, 1), (150, 100, 2, 1), (400, 100, 1, 1), (NULL, NULL, 1, 1), (600, NULL, 1, "
        "1);"
        "INSERT INTO transfer(start, duration, stream, bytes, kind) VALUES(200, 100, 2, 1, 1);"
        "INSERT INTO memset(start, duration, stream, bytes) VALUES(900, 50, 2, 1)");
    struct prof_utilisation u;
    ck_ok(prof_utilisation(c, NULL, 5, 0, &u, &err));
    ck_assert_uint_eq(u.count, 1);
    const struct prof_utilisation_row *r = &u.rows[0];
    ck_assert_int_eq(r->device, 1);
    ck_assert_int_eq(r->first_ns, 100);
    ck_assert_int_eq(r->last_ns, 950);
    ck_assert_int_eq(r->window_ns, 1000000);
    ck_assert_int_eq(r->kernel_ns, 250);
    ck_assert_int_eq(r->memcpy_memset_ns, 150);
    ck_assert_int_eq(r->overlap_ns, 50);
    ck_assert_int_eq(r->busy_ns, 350);
    ck_assert_int_eq(r->idle_ns, 999650);
    ck_assert_int_eq(r->kernel_sum_ns, 300);
    ck_assert_int_eq(r->max_concurrent_kernels, 2);
    ck_assert_int_eq(r->kernels, 3);
    ck_assert_int_eq(r->memcpys + r->memsets, 2);
    ck_assert_int_eq(r->unfinished, 2);
    ck_assert_int_eq(r->gap_count, 2);
    ck_assert_int_eq(r->gap_ns, 500);
    ck_assert_uint_eq(r->gaps_listed, 2);
    ck_assert_int_eq(r->gaps[0].start_ns, 500);
    ck_assert_int_eq(r->gaps[0].duration_ns, 400);
    ck_assert_int_eq(r->gaps[0].before_ns, 100);
    ck_assert_int_eq(r->gaps[1].start_ns, 300);
    ck_assert_ptr_null(r->busy_share);
    prof_utilisation_free(&u);
    prof_close(c);
}
END_TEST

START_TEST(devices_are_apart_and_hardware_is_one)
{
    struct prof_capture *c =
        fixture_with_base("INSERT INTO process(pid) VALUES(200);"
                          "INSERT INTO device(process, uuid) VALUES(1, 'GPU-2'), (2, 'GPU-1');"
                          "INSERT INTO stream(process, device) VALUES(1, 2), (2, 3), (1, NULL);"
                          "INSERT INTO kernel(start, duration, stream, config) VALUES"
                          "(100, 100, 1, 1), (150, 100, 4, 1)," /* one GPU seen by two processes */
                          "(100, 10, 3, 1), (100, 7, 5, 1), (100, 7, NULL, 1)");
    struct prof_utilisation u;
    ck_ok(prof_utilisation(c, NULL, 0, 0, &u, &err));
    ck_assert_uint_eq(u.count, 3);
    ck_assert_int_eq(u.rows[0].device, 0);
    ck_assert_int_eq(u.rows[0].busy_ns, 7);
    ck_assert_int_eq(u.rows[1].device, 1);
    ck_assert_int_eq(u.rows[1].busy_ns, 150);
    ck_assert_int_eq(u.rows[1].max_concurrent_kernels, 2);
    ck_assert_int_eq(u.rows[2].device, 2);
    ck_assert_int_eq(u.rows[2].busy_ns, 10);
    prof_utilisation_free(&u);
    ck_ok(prof_utilisation(c, &(struct prof_filter){.device = 3}, 0, 0, &u, &err));
    ck_assert_uint_eq(u.count, 1);
    ck_assert_int_eq(u.rows[0].busy_ns, 150);
    prof_utilisation_free(&u);
    prof_close(c);
}
END_TEST

START_TEST(extremes_are_cut_to_the_window)
{
    struct prof_capture *c =
        fixture_with_base("INSERT INTO kernel(start, duration, stream, config) VALUES"
                          "(-50, 100, 1, 1), (999990, 9223372036854775807, 1, 1), "
                          "(9223372036854775807, 9223372036854775807, 1, 1), (500, -100, 1, 1), "
                          "(-9223372036854775807, 5, 1, 1)");
    struct prof_utilisation u;
    ck_ok(prof_utilisation(c, NULL, 3, 4, &u, &err));
    const struct prof_utilisation_row *r = &u.rows[0];
    ck_assert_int_eq(r->first_ns, 0);
    ck_assert_int_eq(r->last_ns, 1000000);
    ck_assert_int_eq(r->busy_ns, 60);
    ck_assert_int_eq(r->idle_ns, 999940);
    ck_near(r->busy_share[0], 50.0 / 250000);
    ck_near(r->busy_share[3], 10.0 / 250000);
    prof_utilisation_free(&u);
    prof_close(c);
}
END_TEST

START_TEST(it_matches_a_bitmap)
{
    enum { TIME = 4000, COUNT = 120, BUCKETS = 40 };
    static unsigned char bits[TIME];
    static int depth[TIME];
    srand(11);
    for (int round = 0; round < 20; round++) {
        FILE *out;
        char *text = NULL;
        size_t size;
        memset(bits, 0, sizeof bits);
        memset(depth, 0, sizeof depth);
        ck_assert_ptr_nonnull(out = open_memstream(&text, &size));
        fprintf(out, "UPDATE capture SET duration = %d;", TIME);
        for (int i = 0; i < COUNT; i++) {
            bool kernel = rand() % 2;
            int start = rand() % TIME, duration = rand() % (round < 10 ? 30 : 200);
            fprintf(out, "INSERT INTO %s(start, duration, stream) VALUES(%d, %d, %d);",
                    kernel ? "kernel" : "transfer", start, duration, 1 + rand() % 2);
            for (int t = start; t < start + duration && t < TIME; t++) {
                bits[t] |= kernel ? 1 : 2;
                depth[t] += kernel;
            }
        }
        fclose(out);
        struct prof_capture *c = fixture_with_base(text);
        free(text);
        int begin = round % 3 ? 0 : 500, end = round % 4 ? TIME : 3300;
        int64_t busy = 0, kernel = 0, transfer = 0, both = 0, first = -1, last = -1;
        int most = 0;
        for (int t = begin; t < end; t++) {
            busy += bits[t] != 0;
            kernel += bits[t] & 1;
            transfer += bits[t] >> 1;
            both += bits[t] == 3;
            most = depth[t] > most ? depth[t] : most;
            first = first < 0 && bits[t] ? t : first;
            last = bits[t] ? t + 1 : last;
        }
        struct prof_utilisation u;
        struct prof_filter filter = {.begin_ns = begin, .end_ns = end};
        ck_ok(prof_utilisation(c, &filter, 1000, BUCKETS, &u, &err));
        const struct prof_utilisation_row *r = &u.rows[0];
        ck_assert_int_eq(r->busy_ns, busy);
        ck_assert_int_eq(r->kernel_ns, kernel);
        ck_assert_int_eq(r->memcpy_memset_ns, transfer);
        ck_assert_int_eq(r->overlap_ns, both);
        ck_assert_int_eq(r->max_concurrent_kernels, most);
        ck_assert_int_eq(r->idle_ns, end - begin - busy);
        ck_assert_int_eq(r->gap_ns, last - first - busy);
        ck_assert_int_eq(r->idle_ns, r->lead_ns + r->gap_ns + r->tail_ns);
        ck_assert_int_eq(r->idle_ns + r->busy_ns, r->window_ns);
        int64_t gaps = 0;
        for (size_t i = 0; i < r->gaps_listed; i++) {
            gaps += r->gaps[i].duration_ns;
            if (i)
                ck_assert_int_le(r->gaps[i].duration_ns, r->gaps[i - 1].duration_ns);
            for (int64_t t = 0; t < r->gaps[i].duration_ns; t++)
                ck_assert_int_eq(bits[r->gaps[i].start_ns + t], 0);
        }
        ck_assert_int_eq(gaps, r->gap_ns);
        double shares = 0;
        for (int i = 0; i < BUCKETS; i++) {
            ck_assert(r->busy_share[i] >= 0 && r->busy_share[i] <= 1);
            shares += r->busy_share[i] * (end - begin) / BUCKETS;
        }
        ck_assert_double_lt(fabs(shares - (double)busy), 1e-6);
        prof_utilisation_free(&u);
        prof_close(c);
    }
}
END_TEST

static void ck_same_row(const struct prof_utilisation_row *a, const struct prof_utilisation_row *b,
                        size_t buckets)
{
    ck_assert_int_eq(a->device, b->device);
    ck_assert_int_eq(a->window_ns, b->window_ns);
    ck_assert_int_eq(a->first_ns, b->first_ns);
    ck_assert_int_eq(a->last_ns, b->last_ns);
    ck_assert_int_eq(a->busy_ns, b->busy_ns);
    ck_assert_int_eq(a->idle_ns, b->idle_ns);
    ck_assert_int_eq(a->kernel_ns, b->kernel_ns);
    ck_assert_int_eq(a->memcpy_memset_ns, b->memcpy_memset_ns);
    ck_assert_int_eq(a->overlap_ns, b->overlap_ns);
    ck_assert_int_eq(a->kernel_sum_ns, b->kernel_sum_ns);
    ck_assert_int_eq(a->memcpy_memset_sum_ns, b->memcpy_memset_sum_ns);
    ck_assert_int_eq(a->max_concurrent_kernels, b->max_concurrent_kernels);
    ck_assert_int_eq(a->kernels, b->kernels);
    ck_assert_int_eq(a->graphs, b->graphs);
    ck_assert_int_eq(a->memcpys + a->memsets, b->memcpys + b->memsets);
    ck_assert_int_eq(a->unfinished, b->unfinished);
    ck_assert_int_eq(a->gap_count, b->gap_count);
    ck_assert_int_eq(a->gap_ns, b->gap_ns);
    ck_assert_uint_eq(a->gaps_listed, b->gaps_listed);
    for (size_t i = 0; i < a->gaps_listed; i++) {
        ck_assert_int_eq(a->gaps[i].start_ns, b->gaps[i].start_ns);
        ck_assert_int_eq(a->gaps[i].duration_ns, b->gaps[i].duration_ns);
        ck_assert_int_eq(a->gaps[i].before_ns, b->gaps[i].before_ns);
    }
    for (size_t i = 0; i < buckets; i++) {
        ck_assert_int_eq(isnan(a->busy_share[i]), isnan(b->busy_share[i]));
        if (!isnan(a->busy_share[i]))
            ck_near(a->busy_share[i], b->busy_share[i]);
    }
}

/* Two processes with a device each: a device is idle only while its own process is recorded. */
START_TEST(what_was_not_recorded_is_not_idle)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO process(pid, start, \"end\", spool) VALUES(7, 0, 1000000, 'x');"
        "INSERT INTO device(process, uuid) VALUES(2, 'GPU-2');"
        "INSERT INTO stream(process, device) VALUES(2, 2);"
        "INSERT INTO recording(process, start, begins, reason) VALUES(1, 200000, 0, 6), "
        "(1, 400000, 1, 6), (1, 700000, 0, 1), (2, 0, 0, 4), (2, 100000, 1, 4);"
        "INSERT INTO kernel(start, duration, stream, config) VALUES(150000, 100000, 1, 1), "
        "(450000, 50000, 1, 1), (50000, 150000, 3, 1), (500000, 100000, 3, 1)");
    struct prof_utilisation u;
    ck_ok(prof_utilisation(c, NULL, 5, 10, &u, &err));
    ck_assert_uint_eq(u.count, 2);
    const struct prof_utilisation_row *a = &u.rows[0], *b = &u.rows[1];
    ck_assert_int_eq(a->window_ns, 500000); /* 0-200, 400-700 */
    ck_assert_int_eq(a->busy_ns, 100000);   /* of the first kernel 150-200 */
    ck_assert_int_eq(a->idle_ns, 400000);
    ck_assert_int_eq(a->late_ns, 50000); /* 200-250 */
    ck_assert_int_eq(a->lead_ns, 150000);
    ck_assert_int_eq(a->gap_ns, 50000); /* 400-450 */
    ck_assert_int_eq(a->gaps[0].start_ns, 400000);
    ck_assert_int_eq(a->tail_ns, 200000);
    ck_near(a->busy_share[1], 0.5);
    ck_assert(isnan(a->busy_share[2]) && isnan(a->busy_share[3]) && isnan(a->busy_share[9]));
    ck_near(a->busy_share[4], 0.5);
    ck_assert_int_eq(b->window_ns, 900000);
    ck_assert_int_eq(b->busy_ns, 200000);
    ck_assert_int_eq(b->late_ns, 50000); /* 50-100 */
    ck_assert_int_eq(b->gap_ns, 300000);
    ck_assert(isnan(b->busy_share[0]));
    ck_near(b->busy_share[2], 0);
    prof_utilisation_free(&u);
    prof_close(c);
}
END_TEST

/* Operations of every kind, in no order, some of them not seen to end, some longer than 32 bits of
 * nanoseconds. */
#define ANY_OPERATIONS                                                                             \
    "UPDATE capture SET duration = 20000000000;"                                                   \
    "INSERT INTO device(process, uuid) VALUES(1, 'GPU-2');"                                        \
    "INSERT INTO stream(process, device) VALUES(1, 2);"                                            \
    "CREATE TEMP TABLE n AS WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c "       \
    "WHERE i < 400) SELECT i, i * 7919 % 10007 AS r FROM c;"                                       \
    "INSERT INTO kernel(start, duration, stream, config, thread, api_lead, api_duration) SELECT "  \
    "r * 100000, CASE WHEN i % 50 = 0 THEN NULL WHEN i % 97 = 0 THEN 5000000000 ELSE r END, "      \
    "1 + i % 3, 1 + i % 2, 1, CASE WHEN i % 5 THEN r * 50 END, 10 FROM n;"                         \
    "INSERT INTO transfer(start, duration, stream, bytes, kind) SELECT r * 90000, r * 3, 2, i, 1 " \
    "FROM n;"                                                                                      \
    "INSERT INTO memset(start, duration, stream, bytes) SELECT r * 150000, 5, 1, 1 FROM n;"        \
    "INSERT INTO graph_launch(start, duration, stream) SELECT r * 120000, r, 3 FROM n "            \
    "WHERE i < 20;"

/* And what only the tables can tell, so that they are read: what began before the capture, what
 * cannot be, what came after its end, and a part that was not recorded. */
START_TEST(the_overview_tells_the_same)
{
    static const char *const more[] = {
        "", "INSERT INTO kernel(start, duration, stream, config) VALUES(-50, 100, 1, 1);",
        "INSERT INTO kernel(start, duration, stream, config) VALUES(500, -3, 1, 1);",
        "INSERT INTO kernel(start, duration, stream, config) VALUES(30000000000, 7, 1, 1);",
        "INSERT INTO recording(process, start, begins) VALUES(1, 0, 1), (1, 500000000, 0);"};
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        char sql[4096];
        struct prof_utilisation apart, shared;
        struct prof_findings findings;
        const struct prof_stream *streams;
        snprintf(sql, sizeof sql, "%s%s", ANY_OPERATIONS, more[i]);
        struct prof_capture *c = fixture_with_base(sql);
        ck_ok(prof_utilisation(c, NULL, 4, 16, &apart, &err));
        ck_ok(prof_overview(
            c, NULL,
            &(struct prof_overview_parts){
                .findings = &findings, .utilisation = &shared, .gaps = 4, .buckets = 16},
            &err));
        ck_assert_uint_eq(apart.count, shared.count);
        ck_assert_int_eq(apart.end_ns, shared.end_ns);
        for (size_t k = 0; k < apart.count; k++)
            ck_same_row(&shared.rows[k], &apart.rows[k], 16);
        for (size_t k = 0; k < prof_streams(c, &streams); k++)
            ck_assert_int_eq(apart.stream_operations[k], shared.stream_operations[k]);
        prof_utilisation_free(&apart);
        prof_utilisation_free(&shared);
        prof_findings_free(&findings);
        prof_close(c);
    }
}
END_TEST

CHECK_MAIN("utilisation", overlap_is_counted_once, devices_are_apart_and_hardware_is_one,
           extremes_are_cut_to_the_window, it_matches_a_bitmap, what_was_not_recorded_is_not_idle,
           the_overview_tells_the_same)
