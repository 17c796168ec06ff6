/* The place of synthetic points under known roofs, by declared work. */
#include <math.h>
#include <string.h>

#include "tests/analysis/roofline_scene.h"

/* One kernel of 10,000 ns with this work, under the roofs above. */
static struct prof_roofline_point one(const char *flop, const char *read, const char *written)
{
    char sql[4000] = ROOFS;
    roofline_declare(sql, 1, 0, flop, read, written);
    roofline_kernel(sql, 1, 20000, 10000, 50);
    return roofline_point(sql, NULL);
}

START_TEST(a_stream_is_bound_by_dram)
{
    struct prof_roofline_point p = one("1e6", "6e6", "3e6");
    ck_assert_int_eq(p.bound, PROF_BOUND_DRAM);
    ck_assert_ptr_null(p.why);
    ck_assert_int_eq(p.worked, 1);
    ck_assert_int_eq(p.worked_ns, 10000);
    ck_assert_int_eq(p.flop_source, PROF_WORK_DECLARED);
    const struct prof_roof *dram = &p.roofs[PROF_ROOF_DRAM];
    ck_near(dram->bytes, 9e6);
    ck_near(dram->rate, 0.9e12);
    ck_near(dram->ceiling, 1e12); /* the best of copy and read */
    ck_near(dram->share, 0.9);
    ck_near(dram->intensity, 1.0 / 9);
    ck_near(p.attainable, 1e12 / 9);
    ck_near(p.flop_rate, 1e11);
    ck_near(p.roof_share, 0.9);
    ck_near(p.bound_ns, 9000);
    ck_assert_int_eq(p.roofs[PROF_ROOF_L2].source, PROF_WORK_NONE);
    ck_assert(isnan(p.roofs[PROF_ROOF_L2].share));
}
END_TEST

START_TEST(arithmetic_is_bound_by_its_pipe)
{
    struct prof_roofline_point p = one("8e7", "1e6", "1e6");
    ck_assert_int_eq(p.bound, PROF_BOUND_COMPUTE);
    ck_assert_int_eq(p.pipe, PROF_CEILING_FP32);
    ck_assert(p.pipe_assumed);
    ck_near(p.pipe_share, 0.8);
    ck_near(p.attainable, 1e13);
    p = one("1.2e8", "2e6", "1e6"); /* more than FP32 can, and no higher roof is known */
    ck_assert_int_eq(p.bound, PROF_BOUND_NONE);
    ck_assert_ptr_nonnull(strstr(p.why, "more than any roof"));
}
END_TEST

START_TEST(a_rate_above_fp32_is_held_against_the_next_pipe)
{
    char sql[4000] =
        ROOFS "INSERT INTO ceiling(device, name, value) VALUES(1, 'tensor_tf32', 4e13),"
              "(1, 'tensor_fp16', 8e13);";
    roofline_declare(sql, 1, 0, "3e8", "2e6", "1e6");
    roofline_kernel(sql, 1, 20000, 10000, 50);
    struct prof_roofline_point p = roofline_point(sql, NULL);
    ck_assert_int_eq(p.pipe, PROF_CEILING_TENSOR_TF32);
    ck_near(p.pipe_share, 0.75);
    ck_assert_int_eq(p.bound, PROF_BOUND_COMPUTE);
}
END_TEST

START_TEST(near_no_roof_is_latency_only_when_all_is_known)
{
    struct prof_roofline_point p = one("1e6", "1e6", "1e6");
    ck_assert_int_eq(p.bound, PROF_BOUND_LATENCY);
    ck_near(p.roof_share, 0.2);
    ck_near(p.bound_ns, 2000);
    p = one("1e6", "NULL", "1e6");
    ck_assert_int_eq(p.bound, PROF_BOUND_NONE);
    ck_assert(isnan(p.roofs[PROF_ROOF_DRAM].bytes));
    ck_assert_ptr_nonnull(strstr(p.why, "bytes are not declared"));
    p = one("NULL", "1e6", "1e6");
    ck_assert_int_eq(p.bound, PROF_BOUND_NONE);
    ck_assert(isnan(p.flop));
    ck_assert_ptr_nonnull(strstr(p.why, "FLOP are not declared"));
    p = one("NULL", "4e6", "4e6"); /* near a roof, the other does not matter */
    ck_assert_int_eq(p.bound, PROF_BOUND_DRAM);
    p = one("0", "4e6", "4e6"); /* a copy */
    ck_assert_int_eq(p.bound, PROF_BOUND_DRAM);
    ck_assert(isnan(p.attainable));
    p = one("-5", "1e999", "1"); /* no work at all */
    ck_assert(isnan(p.flop) && isnan(p.roofs[PROF_ROOF_DRAM].bytes));
}
END_TEST

START_TEST(precision_that_would_decide_is_not_guessed)
{
    char sql[4000] = ROOFS "INSERT INTO ceiling(device, name, value) VALUES(1, 'fp64', 5e12);";
    roofline_declare(sql, 1, 0, "4e7", "1e6", "1e6");
    roofline_kernel(sql, 1, 20000, 10000, 50);
    struct prof_roofline_point p = roofline_point(sql, NULL);
    ck_assert_int_eq(p.bound, PROF_BOUND_NONE);
    ck_assert_ptr_nonnull(strstr(p.why, "FP64"));
}
END_TEST

START_TEST(bytes_faster_than_dram_came_from_the_cache)
{
    struct prof_roofline_point p = one("1e6", "3e7", "0");
    ck_assert_int_eq(p.bound, PROF_BOUND_L2);
    ck_near(p.roofs[PROF_ROOF_L2].share, 0.75);
    ck_assert(isnan(p.roofs[PROF_ROOF_DRAM].share));
    char sql[4000] = "INSERT INTO ceiling(device, name, value) VALUES(1, 'dram_read', 1e12);";
    roofline_declare(sql, 1, 0, "1e6", "3e7", "0");
    roofline_kernel(sql, 1, 20000, 10000, 50);
    p = roofline_point(sql, NULL);
    ck_assert_int_eq(p.bound, PROF_BOUND_NONE);
    ck_assert_ptr_nonnull(strstr(p.why, "L2"));
}
END_TEST

START_TEST(bytes_that_the_cache_may_hold_are_not_judged)
{
    char sql[4000] = ROOFS;
    roofline_declare(sql, 1, 0, "1e3", "9e5", "0"); /* of a cache of 1e6 */
    roofline_kernel(sql, 1, 20000, 1200, 50);
    struct prof_roofline_point p = roofline_point(sql, NULL);
    ck_assert_int_eq(p.bound, PROF_BOUND_NONE);
    ck_assert_ptr_nonnull(strstr(p.why, "L2 may hold"));
    ck_near(p.roofs[PROF_ROOF_DRAM].share, 0.75);
}
END_TEST

START_TEST(shorter_than_its_launch)
{
    char sql[4000] = ROOFS;
    roofline_declare(sql, 1, 0, "1e3", "2e6", "0");
    roofline_kernel(sql, 1, 20000, 900, 50);
    ck_assert_int_eq(roofline_point(sql, NULL).bound, PROF_BOUND_LAUNCH);
    char graph[4000] = ROOFS "INSERT INTO kernel(start, duration, stream, config) "
                             "VALUES(20000, 900, 1, 1);";
    struct prof_roofline_point p = roofline_point(graph, NULL); /* a graph's kernel has no launch */
    ck_assert_int_eq(p.bound, PROF_BOUND_NONE);
    char unmeasured[4000] = ""; /* the calls themselves took 2,000 ns */
    roofline_kernel(unmeasured, 1, 20000, 1900, 50);
    ck_assert_int_eq(roofline_point(unmeasured, NULL).bound, PROF_BOUND_LAUNCH);
    char loaded[4000] = ""; /* the first call, which loaded the kernel, took far longer */
    roofline_kernel(loaded, 1, 20000, 2100, 50);
    roofline_kernel(loaded, 1, 30000, 2100, 25000);
    strcat(loaded, "UPDATE kernel SET api_duration = 16000 WHERE start = 20000;");
    ck_assert_int_ne(roofline_point(loaded, NULL).bound, PROF_BOUND_LAUNCH);
}
END_TEST

START_TEST(what_is_missing_is_said)
{
    char sql[4000] = ROOFS;
    roofline_kernel(sql, 1, 20000, 10000, 50);
    struct prof_roofline_point p = roofline_point(sql, NULL);
    ck_assert_int_eq(p.bound, PROF_BOUND_NONE);
    ck_assert_ptr_nonnull(strstr(p.why, "no work declared"));
    ck_assert(isnan(p.flop) && isnan(p.flop_rate) && isnan(p.roof_share) && isnan(p.bound_ns));
    char none[4000] = "";
    roofline_declare(none, 1, 0, "1e6", "6e6", "3e6");
    roofline_kernel(none, 1, 20000, 10000, 50);
    p = roofline_point(none, NULL);
    ck_assert_int_eq(p.bound, PROF_BOUND_NONE);
    ck_assert_ptr_nonnull(strstr(p.why, "no ceilings of this device"));
    ck_near(p.flop_rate, 1e11);
    roofline_declare(sql, 1, 200, "1e6", "6e6", "3e6"); /* 10,000 of 30,000 ns */
    roofline_kernel(sql, 1, 40000, 10000, 250);
    roofline_kernel(sql, 1, 60000, 10000, 450);
    p = roofline_point(sql, NULL);
    ck_assert_int_eq(p.worked, 1);
    ck_assert_int_eq(p.count, 3);
    ck_near(p.roofs[PROF_ROOF_DRAM].share, 0.9);
    ck_assert_ptr_nonnull(strstr(p.why, "less than half"));
}
END_TEST

START_TEST(declarations_of_several_launches)
{
    char sql[6000] = ROOFS;
    roofline_declare(sql, 1, 0, "2e6", "1.2e7", "6e6");
    roofline_kernel(sql, 1, 20000, 10000, 20); /* alpha, two configurations */
    roofline_kernel(sql, 2, 30000, 10000, 60);
    roofline_declare(sql, 2, 1000, "5e6", "5e6", "5e6");
    roofline_kernel(sql, 1, 50000, 10000, 1020); /* alpha and beta */
    roofline_kernel(sql, 3, 60000, 10000, 1060);
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_roofline r;
    ck_ok(prof_roofline(c, NULL, PROF_ROOFLINE_KERNELS, &r, &err));
    ck_assert_uint_eq(r.count, 2);
    ck_assert_str_eq(r.points[0].name, "alpha");
    ck_assert_int_eq(r.points[0].count, 3);
    ck_assert_int_eq(r.points[0].worked, 2);
    ck_near(r.points[0].flop, 2e6);
    ck_near(r.points[0].roofs[PROF_ROOF_DRAM].share, 0.9);
    ck_assert_ptr_null(r.points[0].config);
    ck_assert_int_eq(r.points[1].worked, 0);
    ck_assert_int_eq(r.time_ns, 40000);
    ck_assert_uint_eq(r.placed, 1);
    prof_roofline_free(&r);
    ck_ok(prof_roofline(c, NULL, PROF_ROOFLINE_CONFIGS, &r, &err));
    ck_assert_uint_eq(r.count, 3);
    for (size_t i = 0; i < r.count; i++)
        ck_assert_int_eq(r.points[i].worked, 0);
    prof_roofline_free(&r);
    /* A filter that leaves out a part of a declaration must not give all of its work to the rest.
     */
    ck_ok(prof_roofline(c, &(struct prof_filter){.begin_ns = 25000}, PROF_ROOFLINE_KERNELS, &r,
                        &err));
    ck_assert_int_eq(r.points[0].count, 2);
    ck_assert_int_eq(r.points[0].worked, 0);
    prof_roofline_free(&r);
    prof_close(c);
}
END_TEST

START_TEST(devices_are_apart)
{
    char sql[6000] =
        ROOFS "INSERT INTO device(process, api, name, uuid) VALUES(1, 'cuda', 'small', 'GPU-2');"
              "INSERT INTO stream(process, device) VALUES(1, 2);"
              "INSERT INTO ceiling(device, name, value) VALUES(2, 'dram_read', 2e12);"
              "INSERT INTO kernel(start, duration, stream, config, api_lead, thread) "
              "VALUES(20000, 10000, 3, 1, 19950, 1);";
    roofline_declare(sql, 1, 0, "NULL", "1.6e7", "0");
    roofline_kernel(sql, 1, 50000, 20000, 450);
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_roofline r;
    ck_ok(prof_roofline(c, NULL, PROF_ROOFLINE_KERNELS, &r, &err));
    ck_assert_uint_eq(r.count, 2);
    ck_assert_int_eq(r.points[0].device, 1);
    ck_assert_int_eq(r.points[1].device, 2);
    ck_near(r.points[1].roofs[PROF_ROOF_DRAM].share, 0.8);
    ck_assert_int_eq(r.points[1].bound, PROF_BOUND_DRAM);
    prof_roofline_free(&r);
    prof_close(c);
}
END_TEST

static const struct prof_roofline_point *range_of(const struct prof_roofline *r, const char *name)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->points[i].name && !strcmp(r->points[i].name, name))
            return &r->points[i];
    ck_abort_msg("no range %s", name);
    return NULL;
}

START_TEST(ranges_by_what_holds_them_back)
{
    char sql[8000] = ROOFS
        "INSERT INTO range(id, start, duration, thread, name, depth) VALUES"
        "(11, 0, 20000, 1, 1, 0), (12, 0, 20000, 1, 1, 1)," /* alpha in alpha: kernels */
        "(13, 20000, 20000, 1, 2, 0),"                      /* beta: copies */
        "(14, 40000, 100000, 1, 3, 0),"                     /* gamma: the host */
        "(15, 140000, 1000, 1, 5, 0),"                      /* epsilon: launches */
        "(16, 150000, 100, 1, 6, 0);"                       /* zeta: nothing */
        "INSERT INTO transfer(start, duration, stream, bytes, kind, api_lead, thread) VALUES"
        "(25000, 10000, 1, 80000, 1, 4000, 1)," /* called at 21000 */
        "(30000, 10000, 2, 100, 8, 8000, 1),"   /* device to device, at 22000 */
        "(60000, 1000, 1, 1000, 2, 10000, 1);"  /* at 50000 */
        "INSERT INTO kernel(start, duration, stream, config, api_lead, api_duration, "
        "thread) "
        "VALUES(38000, 2000, 1, 3, 15000, 10, 1),"                         /* at 23000 */
        "(141000, 10, 1, 3, 900, 10, 1), (141100, 10, 1, 3, 900, 10, 1);"; /* at 140100, 140200 */
    roofline_declare(sql, 1, 1000, "1e6", "6e6", "3e6");
    roofline_kernel(sql, 1, 2000, 10000, 1050);
    roofline_declare(sql, 2, 1200, "1e6", "6e6", "3e6");
    roofline_kernel(sql, 1, 12000, 10000, 1250);
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_roofline r;
    ck_ok(prof_roofline(c, NULL, PROF_ROOFLINE_RANGES, &r, &err));
    const struct prof_roofline_point *p = range_of(&r, "alpha");
    ck_assert_int_eq(p->bound, PROF_BOUND_DRAM);
    ck_assert_int_eq(p->count, 2);
    ck_assert_int_eq(p->busy_ns, 20000);
    ck_near(p->flop, 2e6); /* once, although alpha is in alpha */
    ck_near(p->roofs[PROF_ROOF_DRAM].share, 0.9);
    p = range_of(&r, "beta");
    ck_assert_int_eq(p->bound, PROF_BOUND_TRANSFER);
    ck_assert_int_eq(p->busy_ns, 15000); /* a union, not a sum */
    ck_assert_int_eq(p->roofs[PROF_ROOF_LINK].source, PROF_WORK_TRACED);
    ck_near(p->roofs[PROF_ROOF_LINK].bytes, 80000);
    ck_near(p->roofs[PROF_ROOF_LINK].share, 80000 / 15e-6 / 1e10);
    ck_assert_int_eq(range_of(&r, "gamma")->bound, PROF_BOUND_HOST);
    ck_assert_int_eq(range_of(&r, "epsilon")->bound, PROF_BOUND_LAUNCH);
    p = range_of(&r, "zeta");
    ck_assert_int_eq(p->bound, PROF_BOUND_NONE);
    ck_assert_ptr_nonnull(strstr(p->why, "no device work"));
    for (size_t i = 0; i < r.count; i++) /* declarations of one kernel stand with the kernels */
        ck_assert_str_ne(r.points[i].name, "delta");
    prof_roofline_free(&r);
    prof_close(c);
}
END_TEST

START_TEST(a_declaration_of_several_kernels_is_a_range)
{
    char sql[8000] = ROOFS;
    roofline_declare(sql, 1, 0, "1e6", "1.2e7", "6e6");
    roofline_kernel(sql, 1, 20000, 10000, 20);
    roofline_kernel(sql, 3, 30000, 10000, 60);
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_roofline r;
    ck_ok(prof_roofline(c, NULL, PROF_ROOFLINE_RANGES, &r, &err));
    ck_assert_uint_eq(r.count, 1);
    ck_assert_str_eq(r.points[0].name, "delta");
    ck_assert_str_eq(r.points[0].domain, "iota");
    ck_assert_int_eq(r.points[0].bound, PROF_BOUND_DRAM);
    prof_roofline_free(&r);
    prof_close(c);
}
END_TEST

CHECK_MAIN("roofline", a_stream_is_bound_by_dram, arithmetic_is_bound_by_its_pipe,
           a_rate_above_fp32_is_held_against_the_next_pipe,
           near_no_roof_is_latency_only_when_all_is_known,
           precision_that_would_decide_is_not_guessed, bytes_faster_than_dram_came_from_the_cache,
           bytes_that_the_cache_may_hold_are_not_judged, shorter_than_its_launch,
           what_is_missing_is_said, declarations_of_several_launches, devices_are_apart,
           ranges_by_what_holds_them_back, a_declaration_of_several_kernels_is_a_range)
