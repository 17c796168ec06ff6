/* Points under known roofs whose work was counted: exactly by launch, or sampled. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/analysis/roofline_scene.h"

/* A counter of the launch that was called at `start`. */
static void counted(char *sql, int config, int start, const char *name, double value)
{
    sprintf(sql + strlen(sql),
            "INSERT INTO exact_count(start, config, stream, name, value) "
            "VALUES(%d, %d, 1, '%s', %.17g);",
            start, config, name, value);
}

static void arithmetic_counted(char *sql, int config, int start, double fma, double half_fma)
{
    counted(sql, config, start, "fp32_add", 1e6);
    counted(sql, config, start, "fp32_fma", fma);
    counted(sql, config, start, "fp16_fma", half_fma);
    counted(sql, config, start, "fp64_fma", 0);
}

static void memory_counted(char *sql, int config, int start, double tensor)
{
    counted(sql, config, start, "dram_read_bytes", 5e5);
    counted(sql, config, start, "dram_write_bytes", 5e5);
    counted(sql, config, start, "l2_bytes", 4e6);
    counted(sql, config, start, "tensor_instructions", tensor);
}

/* FLOP and bytes of some launches stand for all of the configuration, before what is declared. */
START_TEST(exact_counts_make_a_point)
{
    char sql[6000] = ROOFS;
    roofline_declare(sql, 1, 0, "1", "1", "1");
    roofline_kernel(sql, 1, 20000, 10000, 50);
    roofline_kernel(sql, 1, 40000, 10000, 39000);
    memory_counted(sql, 1, 50, 0);
    arithmetic_counted(sql, 1, 39000, 3.9e7, 0);
    arithmetic_counted(sql, 1, 59000, 4.1e7, 0);
    counted(sql, 1, 59000, "complete", 1);
    struct prof_roofline_point p = roofline_point(sql, NULL);
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

/* Not every kind of FLOP was counted yet: the bytes are known, the FLOP are those declared or none.
 */
START_TEST(half_counted_is_not_counted)
{
    char sql[6000] = ROOFS;
    roofline_kernel(sql, 1, 20000, 10000, 50);
    memory_counted(sql, 1, 50, 7);
    arithmetic_counted(sql, 1, 50, 4e7, 0);
    struct prof_roofline_point p = roofline_point(sql, NULL);
    ck_assert_int_eq(p.flop_source, PROF_WORK_NONE);
    ck_assert(isnan(p.flop));
    ck_assert_int_eq(p.roofs[PROF_ROOF_DRAM].source, PROF_WORK_COUNTERS);
    roofline_declare(sql, 1, 0, "8e7", "1e6", "1e6");
    p = roofline_point(sql, NULL);
    ck_assert_int_eq(p.flop_source, PROF_WORK_DECLARED);
    ck_near(p.roofs[PROF_ROOF_DRAM].bytes, 2e6);
}
END_TEST

/* By pipe, with the spread between launches; configurations of a name are summed each by its own.
 */
START_TEST(exact_counts_by_configuration)
{
    char sql[8000] = ROOFS;
    roofline_kernel(sql, 1, 20000, 10000, 50);
    roofline_kernel(sql, 2, 40000, 10000, 39000);
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
    "INSERT INTO kernel(start, duration, stream, config, api_lead, thread, api_duration) "
    "VALUES"
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
    roofline_declare(sql, 1, 0, "9e6", "1", "1");
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

CHECK_MAIN("roofline_counters", exact_counts_make_a_point, half_counted_is_not_counted,
           exact_counts_by_configuration, counters_place_what_was_not_declared,
           counters_tell_the_pipe_and_latency, what_only_moves_bytes_has_no_pipe,
           counted_bytes_take_the_place_of_declared_ones)
