/* Ceilings, theoretical peaks, and the place of synthetic points under known roofs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/analysis/fixture.h"

/* Per ns: DRAM 1,000 bytes, L2 4,000 bytes, FP32 10,000 FLOP; a launch takes 1,000 ns; L2 of 1 MB.
 */
#define ROOFS                                                                                      \
    "UPDATE device SET l2_bytes = 1000000;"                                                        \
    "INSERT INTO ceiling(device, name, value, measured_at, how) VALUES"                            \
    "(1, 'dram_copy', 0.9e12, 1700000000, 'a copy'), (1, 'dram_read', 1e12, 1700000000, NULL),"    \
    "(1, 'l2_read', 4e12, 1700000000, NULL), (1, 'fp32', 1e13, 1700000000, NULL),"                 \
    "(1, 'htod_pinned', 1e10, 1700000000, NULL), (1, 'launch', 1000, 1700000000, NULL);"

/* A kernel of 10,000 ns, called at `call`. */
static const char *kernel(char *sql, int config, int start, int duration, int call)
{
    sprintf(sql + strlen(sql),
            "INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, "
            "thread) VALUES(%d, %d, 1, %d, 5, %d, 2000, 1);",
            start, duration, config, start - call);
    return sql;
}

/* Work declared by thread 1 during [begin, begin + 100), in the domain "iota". */
static void declare(char *sql, int id, int begin, const char *flop, const char *read,
                    const char *written)
{
    sprintf(sql + strlen(sql),
            "INSERT INTO range(id, start, duration, thread, name, domain, depth) "
            "VALUES(%d, %d, 100, 1, 4, 9, 0);"
            "INSERT INTO work(range, flop, bytes_read, bytes_written) VALUES(%d, %s, %s, %s);",
            id, begin, id, flop, read, written);
}

static struct prof_roofline_point only_point(const char *sql, const struct prof_filter *filter)
{
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_roofline r;
    ck_ok(prof_roofline(c, filter, PROF_ROOFLINE_KERNELS, &r, &err));
    ck_assert_uint_eq(r.count, 1);
    struct prof_roofline_point p = r.points[0];
    prof_roofline_free(&r);
    prof_close(c);
    return p;
}

/* One kernel of 10,000 ns with this work, under the roofs above. */
static struct prof_roofline_point one(const char *flop, const char *read, const char *written)
{
    char sql[4000] = ROOFS;
    declare(sql, 1, 0, flop, read, written);
    kernel(sql, 1, 20000, 10000, 50);
    return only_point(sql, NULL);
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
    declare(sql, 1, 0, "3e8", "2e6", "1e6");
    kernel(sql, 1, 20000, 10000, 50);
    struct prof_roofline_point p = only_point(sql, NULL);
    ck_assert_int_eq(p.pipe, PROF_CEILING_TENSOR_TF32);
    ck_near(p.pipe_share, 0.75);
    ck_assert_int_eq(p.bound, PROF_BOUND_COMPUTE);
}
END_TEST

/* A counter of the launch that was called at `start`. */
static void counted(char *sql, int config, int start, const char *name, double value)
{
    sprintf(sql + strlen(sql),
            "INSERT INTO exact_count(start, config, stream, name, value) "
            "VALUES(%d, %d, 1, '%s', %.17g);",
            start, config, name, value);
}

static char *arithmetic_counted(char *sql, int config, int start, double fma, double half_fma)
{
    counted(sql, config, start, "fp32_add", 1e6);
    counted(sql, config, start, "fp32_fma", fma);
    counted(sql, config, start, "fp16_fma", half_fma);
    counted(sql, config, start, "fp64_fma", 0);
    return sql;
}

static char *memory_counted(char *sql, int config, int start, double tensor)
{
    counted(sql, config, start, "dram_read_bytes", 5e5);
    counted(sql, config, start, "dram_write_bytes", 5e5);
    counted(sql, config, start, "l2_bytes", 4e6);
    counted(sql, config, start, "tensor_instructions", tensor);
    return sql;
}

/* FLOP and bytes of some launches stand for all of the configuration, before what is declared. */
START_TEST(exact_counts_make_a_point)
{
    char sql[6000] = ROOFS;
    declare(sql, 1, 0, "1", "1", "1");
    kernel(sql, 1, 20000, 10000, 50);
    kernel(sql, 1, 40000, 10000, 39000);
    memory_counted(sql, 1, 50, 0);
    arithmetic_counted(sql, 1, 39000, 3.9e7, 0);
    arithmetic_counted(sql, 1, 59000, 4.1e7, 0);
    counted(sql, 1, 59000, "complete", 1);
    struct prof_roofline_point p = only_point(sql, NULL);
    ck_assert_int_eq(p.flop_source, PROF_WORK_COUNTERS);
    ck_assert_int_eq(p.worked, 2);
    ck_near(p.flop, 2 * 8.1e7); /* a multiply-add is two, an addition one */
    ck_near(p.flop_rate, 8.1e12);
    ck_assert_int_eq(p.pipe, PROF_CEILING_FP32);
    ck_assert(!p.pipe_assumed);
    ck_near(p.pipe_share, 0.81);
    ck_assert_int_eq(p.bound, PROF_BOUND_COMPUTE);
    ck_assert_int_eq(p.roofs[PROF_ROOF_DRAM].source, PROF_WORK_COUNTERS);
    ck_near(p.roofs[PROF_ROOF_DRAM].bytes, 2e6);
    ck_near(p.roofs[PROF_ROOF_L2].bytes, 8e6);
    ck_near(p.roofs[PROF_ROOF_DRAM].intensity, 81);
}
END_TEST

/* Not every kind of FLOP was counted yet: the bytes are known, the FLOP are those declared or none. */
START_TEST(half_counted_is_not_counted)
{
    char sql[6000] = ROOFS;
    kernel(sql, 1, 20000, 10000, 50);
    memory_counted(sql, 1, 50, 7);
    arithmetic_counted(sql, 1, 50, 4e7, 0);
    struct prof_roofline_point p = only_point(sql, NULL);
    ck_assert_int_eq(p.flop_source, PROF_WORK_NONE);
    ck_assert(isnan(p.flop));
    ck_assert_int_eq(p.roofs[PROF_ROOF_DRAM].source, PROF_WORK_COUNTERS);
    declare(sql, 1, 0, "8e7", "1e6", "1e6");
    p = only_point(sql, NULL);
    ck_assert_int_eq(p.flop_source, PROF_WORK_DECLARED);
    ck_near(p.roofs[PROF_ROOF_DRAM].bytes, 2e6);
}
END_TEST

/* By pipe, with the spread between launches; configurations of a name are summed each by its own. */
START_TEST(exact_counts_by_configuration)
{
    char sql[8000] = ROOFS;
    kernel(sql, 1, 20000, 10000, 50);
    kernel(sql, 2, 40000, 10000, 39000);
    for (int i = 0; i < 3; i++) {
        memory_counted(sql, 1, 100 + i, 9);
        arithmetic_counted(sql, 1, 200 + i, 1e6 * (i + 1), 1e6);
        counted(sql, 1, 300 + i, "tensor_bf16", 5e6);
    }
    counted(sql, 1, 302, "complete", 1);
    strcat(sql, "INSERT INTO exact_count(start, config, stream, name, value) VALUES"
                "(300, 1, 1, 'fp32_fma', NULL), (300, 1, 1, NULL, 1), (300, 99, 1, 'fp32_fma', 1),"
                "(300, 1, 1, 'fp32_fma', -1);");
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_exact exact;
    ck_ok(prof_exact(c, &exact, &err));
    ck_assert_uint_eq(exact.count, 1);
    const struct prof_exact_row *row = prof_exact_find(&exact, prof_config(c, 1), 1);
    ck_assert_ptr_eq(row, exact.rows);
    ck_assert_ptr_null(prof_exact_find(&exact, prof_config(c, 2), 1));
    ck_assert_ptr_null(prof_exact_find(&exact, prof_config(c, 1), 7));
    ck_assert_int_eq(row->launches, 9);
    ck_assert(row->complete);
    ck_near(row->pipe[PROF_CEILING_FP32], 1e6 + 2 * 2e6);
    ck_near(row->pipe[PROF_CEILING_FP16], 4e6); /* two halves of two operations each */
    ck_near(row->pipe[PROF_CEILING_TENSOR_BF16], 5e6);
    ck_near(row->flop, 14e6);
    ck_near(row->flop_error, 2 * 1e6 / sqrt(3)); /* 1, 2, 3: their deviation is 1 */
    ck_near(row->dram_read, 5e5);
    prof_exact_free(&exact);
    struct prof_roofline r;
    ck_ok(prof_roofline(c, NULL, PROF_ROOFLINE_KERNELS, &r, &err));
    for (size_t i = 0; i < r.count; i++) /* of whatever names they are: one of two launches */
        ck_assert(r.points[i].flop_source != PROF_WORK_COUNTERS || r.points[i].worked == 1);
    prof_roofline_free(&r);
    prof_close(c);
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
    declare(sql, 1, 0, "4e7", "1e6", "1e6");
    kernel(sql, 1, 20000, 10000, 50);
    struct prof_roofline_point p = only_point(sql, NULL);
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
    declare(sql, 1, 0, "1e6", "3e7", "0");
    kernel(sql, 1, 20000, 10000, 50);
    p = only_point(sql, NULL);
    ck_assert_int_eq(p.bound, PROF_BOUND_NONE);
    ck_assert_ptr_nonnull(strstr(p.why, "L2"));
}
END_TEST

START_TEST(bytes_that_the_cache_may_hold_are_not_judged)
{
    char sql[4000] = ROOFS;
    declare(sql, 1, 0, "1e3", "9e5", "0"); /* of a cache of 1e6 */
    kernel(sql, 1, 20000, 1200, 50);
    struct prof_roofline_point p = only_point(sql, NULL);
    ck_assert_int_eq(p.bound, PROF_BOUND_NONE);
    ck_assert_ptr_nonnull(strstr(p.why, "L2 may hold"));
    ck_near(p.roofs[PROF_ROOF_DRAM].share, 0.75);
}
END_TEST

START_TEST(shorter_than_its_launch)
{
    char sql[4000] = ROOFS;
    declare(sql, 1, 0, "1e3", "2e6", "0");
    kernel(sql, 1, 20000, 900, 50);
    ck_assert_int_eq(only_point(sql, NULL).bound, PROF_BOUND_LAUNCH);
    char graph[4000] = ROOFS "INSERT INTO kernel(start, duration, stream, config) "
                             "VALUES(20000, 900, 1, 1);";
    struct prof_roofline_point p = only_point(graph, NULL); /* a graph's kernel has no launch */
    ck_assert_int_eq(p.bound, PROF_BOUND_NONE);
    char unmeasured[4000] = ""; /* the calls themselves took 2,000 ns */
    kernel(unmeasured, 1, 20000, 1900, 50);
    ck_assert_int_eq(only_point(unmeasured, NULL).bound, PROF_BOUND_LAUNCH);
}
END_TEST

START_TEST(what_is_missing_is_said)
{
    char sql[4000] = ROOFS;
    kernel(sql, 1, 20000, 10000, 50);
    struct prof_roofline_point p = only_point(sql, NULL);
    ck_assert_int_eq(p.bound, PROF_BOUND_NONE);
    ck_assert_ptr_nonnull(strstr(p.why, "no work declared"));
    ck_assert(isnan(p.flop) && isnan(p.flop_rate) && isnan(p.roof_share) && isnan(p.bound_ns));
    char none[4000] = "";
    declare(none, 1, 0, "1e6", "6e6", "3e6");
    kernel(none, 1, 20000, 10000, 50);
    p = only_point(none, NULL);
    ck_assert_int_eq(p.bound, PROF_BOUND_NONE);
    ck_assert_ptr_nonnull(strstr(p.why, "perfkit device --measure"));
    ck_near(p.flop_rate, 1e11);
    declare(sql, 1, 200, "1e6", "6e6", "3e6"); /* 10,000 of 30,000 ns */
    kernel(sql, 1, 40000, 10000, 250);
    kernel(sql, 1, 60000, 10000, 450);
    p = only_point(sql, NULL);
    ck_assert_int_eq(p.worked, 1);
    ck_assert_int_eq(p.count, 3);
    ck_near(p.roofs[PROF_ROOF_DRAM].share, 0.9);
    ck_assert_ptr_nonnull(strstr(p.why, "less than half"));
}
END_TEST

START_TEST(declarations_of_several_launches)
{
    char sql[6000] = ROOFS;
    declare(sql, 1, 0, "2e6", "1.2e7", "6e6");
    kernel(sql, 1, 20000, 10000, 20); /* alpha, two configurations */
    kernel(sql, 2, 30000, 10000, 60);
    declare(sql, 2, 1000, "5e6", "5e6", "5e6");
    kernel(sql, 1, 50000, 10000, 1020); /* alpha and beta */
    kernel(sql, 3, 60000, 10000, 1060);
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
    declare(sql, 1, 0, "NULL", "1.6e7", "0");
    kernel(sql, 1, 50000, 20000, 450);
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

/* ---- counters ----------------------------------------------------------------------------------
 */

/* Samples of 1,000 ns (2,000 cycles) over [begin, begin + 100,000), with counts per ns. */
static void sample(char *sql, int begin, int dram, int l2, double fma, double tensor)
{
    sprintf(sql + strlen(sql),
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99) "
            "INSERT INTO counter_sample(counter_device, start, duration, c0, c1, c2, c3, c4, c5) "
            "SELECT 1, %d + i * 1000, 1000, 2000, %d, %d, %d, %g, %g FROM n;",
            begin, dram * 600, dram * 400, l2 * 1000, fma * 2000 * 4, tensor * 2000 * 4);
}

/* alpha and beta of 100,000 ns each, sampled without pause. */
static const char sampled_sql[] = ROOFS
    "INSERT INTO ceiling(device, name, value) VALUES(1, 'tensor_fp16', 8e13);"
    "INSERT INTO kernel(start, duration, stream, config, api_lead, thread, api_duration) VALUES"
    "(100000, 100000, 1, 1, 99950, 1, 10), (200000, 100000, 1, 3, 199900, 1, 10);"
    "INSERT INTO counter_device(uuid, ordinal, chip, metric_set, interval) "
    "VALUES('GPU-1', 0, 'GH100', 'roofline', 1000);"
    "INSERT INTO counter(counter_device, slot, name, unit, metric, kind, clock, peak) VALUES"
    "(1, 0, 'sm_cycles', 'cycle', 'a', 2, NULL, NULL), (1, 1, 'dram_read_bytes', 'byte', 'b', 1, "
    "NULL, NULL),"
    "(1, 2, 'dram_write_bytes', 'byte', 'c', 1, NULL, NULL), (1, 3, 'l2_bytes', 'byte', 'd', 1, "
    "NULL, NULL),"
    "(1, 4, 'fma', 'instruction', 'e', 1, 0, 4), (1, 5, 'tensor', 'cycle', 'f', 1, 0, 4);"
    "INSERT INTO counter_burst(counter_device, start, duration, samples, others, decode) "
    "VALUES(1, 100000, 200000, 200, 0, 1);";

START_TEST(counters_place_what_was_not_declared)
{
    char sql[8000];
    strcpy(sql, sampled_sql);
    sample(sql, 100000, 900, 1000, 0.1, 0);
    sample(sql, 200000, 100, 3000, 0.1, 0);
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_roofline r;
    for (enum prof_roofline_group by = PROF_ROOFLINE_KERNELS; by <= PROF_ROOFLINE_CONFIGS; by++) {
        ck_ok(prof_roofline(c, NULL, by, &r, &err));
        ck_assert_uint_eq(r.count, 2);
        const struct prof_roofline_point *a = &r.points[0], *b = &r.points[1];
        ck_assert_str_eq(a->name, "alpha");
        ck_assert_int_eq(a->bound, PROF_BOUND_DRAM);
        ck_assert_int_eq(a->roofs[PROF_ROOF_DRAM].source, PROF_WORK_COUNTERS);
        ck_near(a->roofs[PROF_ROOF_DRAM].share, 0.9);
        ck_near(a->roofs[PROF_ROOF_DRAM].bytes, 9e7);
        ck_near(a->roofs[PROF_ROOF_L2].share, 0.25);
        ck_assert_int_eq(a->pipe, PROF_CEILING_FP32);
        ck_assert(!a->pipe_assumed);
        ck_near(a->pipe_share, 0.1);
        ck_assert_int_eq(a->worked_ns, 100000);
        ck_assert(isnan(a->flop)); /* pipes are no FLOP */
        ck_assert_int_eq(b->bound, PROF_BOUND_L2);
        ck_near(b->roofs[PROF_ROOF_L2].share, 0.75);
        prof_roofline_free(&r);
    }
    prof_close(c);
}
END_TEST

START_TEST(counters_tell_the_pipe_and_latency)
{
    char sql[8000];
    strcpy(sql, sampled_sql);
    sample(sql, 100000, 100, 500, 0.2, 0.8);
    sample(sql, 200000, 100, 500, 0.2, 0.1);
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_roofline r;
    ck_ok(prof_roofline(c, NULL, PROF_ROOFLINE_KERNELS, &r, &err));
    ck_assert_int_eq(r.points[0].bound, PROF_BOUND_COMPUTE);
    ck_assert_int_eq(r.points[0].pipe, PROF_CEILING_TENSOR_FP16);
    ck_assert(r.points[0].pipe_assumed);
    ck_near(r.points[0].roof_share, 0.8);
    ck_assert_int_eq(r.points[1].bound, PROF_BOUND_LATENCY);
    ck_near(r.points[1].roof_share, 0.2);
    prof_roofline_free(&r);
    prof_close(c);
}
END_TEST

/* Addresses go through the FMA pipe too. */
START_TEST(what_only_moves_bytes_has_no_pipe)
{
    char sql[8000];
    strcpy(sql, sampled_sql);
    sample(sql, 100000, 900, 1000, 0.01, 0);
    sample(sql, 200000, 100, 500, 0.001, 0);
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_roofline r;
    ck_ok(prof_roofline(c, NULL, PROF_ROOFLINE_KERNELS, &r, &err));
    ck_assert_int_eq(r.points[0].bound, PROF_BOUND_DRAM);
    ck_assert_int_eq(r.points[1].bound, PROF_BOUND_LATENCY); /* counted all the same */
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(r.points[i].pipe, PROF_CEILINGS);
        ck_assert(isnan(r.points[i].pipe_share) && isnan(r.points[i].pipe_ceiling));
    }
    prof_roofline_free(&r);
    prof_close(c);
}
END_TEST

START_TEST(counted_bytes_take_the_place_of_declared_ones)
{
    char sql[8000];
    strcpy(sql, sampled_sql);
    sample(sql, 100000, 900, 1800, 0.1, 0);
    sample(sql, 200000, 100, 500, 0.1, 0);
    declare(sql, 1, 0, "9e6", "1", "1");
    strcat(sql, "INSERT INTO range(id, start, duration, thread, name, depth) "
                "VALUES(11, 0, 250000, 1, 6, 0);");
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_roofline r;
    ck_ok(prof_roofline(c, NULL, PROF_ROOFLINE_KERNELS, &r, &err));
    ck_assert_int_eq(r.points[0].flop_source, PROF_WORK_DECLARED);
    ck_assert_int_eq(r.points[0].roofs[PROF_ROOF_DRAM].source, PROF_WORK_COUNTERS);
    ck_near(r.points[0].roofs[PROF_ROOF_DRAM].intensity, 0.1);
    ck_near(r.points[0].roofs[PROF_ROOF_L2].intensity, 0.05);
    prof_roofline_free(&r);
    /* The range holds both kernels; FLOP of one of them would not go with the bytes of both. */
    ck_ok(prof_roofline(c, NULL, PROF_ROOFLINE_RANGES, &r, &err));
    const struct prof_roofline_point *p = &r.points[0];
    ck_assert_str_eq(p->name, "zeta");
    ck_near(p->roofs[PROF_ROOF_DRAM].bytes, 1e8);
    ck_assert_int_eq(p->worked_ns, 200000);
    ck_assert(isnan(p->flop));
    prof_roofline_free(&r);
    prof_close(c);
}
END_TEST

/* ---- ranges ------------------------------------------------------------------------------------
 */

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
        "INSERT INTO kernel(start, duration, stream, config, api_lead, api_duration, thread) "
        "VALUES(38000, 2000, 1, 3, 15000, 10, 1),"                         /* at 23000 */
        "(141000, 10, 1, 3, 900, 10, 1), (141100, 10, 1, 3, 900, 10, 1);"; /* at 140100, 140200 */
    declare(sql, 1, 1000, "1e6", "6e6", "3e6");
    kernel(sql, 1, 2000, 10000, 1050);
    declare(sql, 2, 1200, "1e6", "6e6", "3e6");
    kernel(sql, 1, 12000, 10000, 1250);
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
    declare(sql, 1, 0, "1e6", "1.2e7", "6e6");
    kernel(sql, 1, 20000, 10000, 20);
    kernel(sql, 3, 30000, 10000, 60);
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

/* ---- ceilings ----------------------------------------------------------------------------------
 */

static double peak(const struct prof_ceiling *rows, size_t count, enum prof_ceiling_kind kind)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].kind == kind)
            return rows[i].value;
    return NAN;
}

START_TEST(theoretical_peaks)
{
    struct prof_ceiling out[PROF_CEILINGS];
    struct prof_device h200 = {
        .compute_major = 9, .units = 132, .clock_khz = 1980000, .memory_bandwidth = 4916000000000};
    size_t count = prof_peaks(&h200, out);
    ck_near(peak(out, count, PROF_CEILING_FP32), 132 * 128 * 2 * 1.98e9);
    ck_near(peak(out, count, PROF_CEILING_FP64), 132 * 64 * 2 * 1.98e9);
    ck_near(peak(out, count, PROF_CEILING_TENSOR_FP16), 132 * 2048 * 2 * 1.98e9);
    ck_near(peak(out, count, PROF_CEILING_DRAM_COPY), 4.916e12);
    ck_assert(isnan(peak(out, count, PROF_CEILING_L2_READ)));
    ck_assert(isnan(peak(out, count, PROF_CEILING_LAUNCH)));
    for (size_t i = 0; i < count; i++)
        ck_assert(!out[i].measured && out[i].date_s == PROF_UNKNOWN && out[i].how);
    struct prof_device t4 = h200;
    t4.compute_major = 7;
    t4.compute_minor = 5;
    count = prof_peaks(&t4, out);
    ck_assert(isnan(peak(out, count, PROF_CEILING_TENSOR_FP8)));
    struct prof_device cpu = {.compute_major = PROF_UNKNOWN,
                              .compute_minor = PROF_UNKNOWN,
                              .units = 2,
                              .clock_khz = 3000000,
                              .memory_bandwidth = PROF_UNKNOWN};
    ck_assert_uint_eq(prof_peaks(&cpu, out), 0);
    h200.clock_khz = PROF_UNKNOWN;
    count = prof_peaks(&h200, out);
    ck_assert(isnan(peak(out, count, PROF_CEILING_FP32)));
    h200.compute_major = 99;
    ck_assert_uint_eq(prof_peaks(&h200, out), 3);
}
END_TEST

START_TEST(measured_ceilings_come_first)
{
    struct prof_capture *c = fixture_with_base(
        "UPDATE device SET compute_major = 9, compute_minor = 0, clock_khz = 1980000,"
        " memory_bandwidth = 4916000000000;" ROOFS
        "INSERT INTO ceiling(device, name, value) VALUES(1, 'of tomorrow', 5), (1, 'fp16', -1),"
        "(1, 'fp64', 1e300), (9, 'fp32', 3), (1, NULL, 3), (1, 'fp16', 'x'), (1, 'fp32', 5);");
    struct prof_ceilings all;
    ck_ok(prof_ceilings(c, &all, &err));
    const struct prof_ceiling *copy = prof_ceiling_find(&all, 1, PROF_CEILING_DRAM_COPY);
    ck_assert(copy->measured);
    ck_near(copy->value, 0.9e12);
    ck_assert_int_eq(copy->date_s, 1700000000);
    ck_assert_str_eq(copy->how, "a copy");
    ck_near(prof_ceiling_find(&all, 1, PROF_CEILING_FP32)->value, 1e13);
    ck_assert(!prof_ceiling_find(&all, 1, PROF_CEILING_FP16)->measured);
    ck_assert(!prof_ceiling_find(&all, 1, PROF_CEILING_FP64)->measured);
    ck_assert_ptr_null(prof_ceiling_find(&all, 1, PROF_CEILING_LAUNCH_LATENCY));
    ck_assert_ptr_null(prof_ceiling_find(&all, 2, PROF_CEILING_FP32));
    prof_ceilings_free(&all);
    prof_close(c);
}
END_TEST

/* 132 units x 128 bytes x 1.98 GHz are 33.45 TB/s of shared memory, 64 x 2 FLOP 33.45 TFLOP/s. */
START_TEST(what_is_above_a_peak_was_not_measured)
{
    struct prof_capture *c = fixture_with_base(
        "UPDATE device SET compute_major = 9, compute_minor = 0, clock_khz = 1980000, units = 132,"
        " memory_bandwidth = 4916000000000;"
        "INSERT INTO ceiling(device, name, value) VALUES(1, 'shared', 509e12),"
        "(1, 'fp64', 35e12), (1, 'dram_read', 5.17e12), (1, 'l2_read', 509e12);");
    struct prof_ceilings all;
    ck_ok(prof_ceilings(c, &all, &err));
    ck_assert(!prof_ceiling_find(&all, 1, PROF_CEILING_SHARED)->measured);
    ck_near(prof_ceiling_find(&all, 1, PROF_CEILING_SHARED)->value, 132 * 128 * 1.98e9);
    ck_assert(prof_ceiling_find(&all, 1, PROF_CEILING_FP64)->measured);
    ck_assert(!prof_ceiling_find(&all, 1, PROF_CEILING_DRAM_READ)->measured);
    ck_assert(prof_ceiling_find(&all, 1, PROF_CEILING_L2_READ)->measured);
    prof_ceilings_free(&all);
    prof_close(c);
}
END_TEST

START_TEST(every_kind_has_its_name)
{
    for (enum prof_ceiling_kind kind = 0; kind < PROF_CEILINGS; kind++) {
        struct prof_ceiling row = prof_ceiling_of(kind);
        ck_assert_int_eq(prof_ceiling_named(row.name), kind);
        ck_assert(row.text && *row.text && isnan(row.value));
    }
    ck_assert_int_eq(prof_ceiling_named("nothing"), PROF_CEILINGS);
    for (int bound = 0; bound <= PROF_BOUND_HOST; bound++)
        ck_assert_ptr_nonnull(prof_bound_text((enum prof_bound)bound));
}
END_TEST

CHECK_MAIN("roofline", a_stream_is_bound_by_dram, arithmetic_is_bound_by_its_pipe,
           a_rate_above_fp32_is_held_against_the_next_pipe, exact_counts_make_a_point,
           half_counted_is_not_counted, exact_counts_by_configuration,
           near_no_roof_is_latency_only_when_all_is_known,
           precision_that_would_decide_is_not_guessed, bytes_faster_than_dram_came_from_the_cache,
           bytes_that_the_cache_may_hold_are_not_judged, shorter_than_its_launch,
           what_is_missing_is_said, declarations_of_several_launches, devices_are_apart,
           counters_place_what_was_not_declared, counters_tell_the_pipe_and_latency,
           what_only_moves_bytes_has_no_pipe, counted_bytes_take_the_place_of_declared_ones,
           ranges_by_what_holds_them_back, a_declaration_of_several_kernels_is_a_range,
           theoretical_peaks, measured_ceilings_come_first, what_is_above_a_peak_was_not_measured,
           every_kind_has_its_name)
