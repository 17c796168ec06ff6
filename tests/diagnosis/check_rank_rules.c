/* The rules about ranks, each on ranks that have its fault and on such that do not. */
#include <stdio.h>
#include <string.h>

#include "tests/analysis/rank_fixture.h"

static const struct prof_finding *find(const struct prof_findings *findings, const char *rule)
{
    for (size_t i = 0; i < findings->count; i++) {
        if (strcmp(findings->rows[i].rule->id, rule) == 0)
            return &findings->rows[i];
    }
    return NULL;
}

static size_t count_of(const struct prof_findings *findings, const char *rule)
{
    size_t count = 0;
    for (size_t i = 0; i < findings->count; i++)
        count += strcmp(findings->rows[i].rule->id, rule) == 0;
    return count;
}

static struct prof_findings judged(struct prof_capture *capture)
{
    struct prof_findings findings;
    struct prof_filter all = {.skips = true}; /* the first iterations too */
    ck_ok(prof_findings(capture, &all, &findings, &err));
    ck_assert_msg(!findings.why_none, "%s", findings.why_none);
    return findings;
}

static void done(struct prof_capture *capture, struct prof_findings *findings)
{
    prof_findings_free(findings);
    prof_close(capture);
}

START_TEST(one_rank_holds_the_others_up)
{
    scene_training(4, (long[]){200, 200, 500, 260}, (long[]){0, 0, 0, 0}, COMMUNICATOR);
    struct prof_capture *capture = scene_made();
    struct prof_findings findings = judged(capture);
    const struct prof_finding *finding = find(&findings, "rank-straggler");
    ck_assert_ptr_nonnull(finding);
    ck_assert_uint_eq(count_of(&findings, "rank-straggler"), 1);
    ck_assert_int_eq(finding->device, 3);
    ck_assert_msg(strstr(finding->seen, "Rank 2 came last to 5 of 5 collectives, 1.20 ms") != NULL,
                  "%s", finding->seen);
    ck_assert_ptr_nonnull(strstr(finding->seen, "its kernels took longer, most of all gemm"));
    /* With the second slowest as it is, every step is 240 us shorter. */
    ck_assert_int_le(finding->bound_ns, STEPS * 240 * US);
    ck_assert_int_ge(finding->bound_ns, (STEPS - 1) * 240 * US);
    ck_assert_uint_eq(finding->place_count, 3);
    ck_assert_ptr_null(find(&findings, "uneven-ranks"));
    done(capture, &findings);

    scene_training(3, (long[]){200, 200, 200}, (long[]){0, 150, 0}, COMMUNICATOR);
    capture = scene_made();
    findings = judged(capture);
    finding = find(&findings, "rank-straggler");
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->seen, "its device waited for the host"));
    done(capture, &findings);

    scene_training(4, (long[]){200, 200, 200, 200}, (long[]){0, 0, 0, 0}, COMMUNICATOR);
    capture = scene_made();
    findings = judged(capture);
    ck_assert_ptr_null(find(&findings, "rank-straggler"));
    ck_assert_ptr_null(find(&findings, "uneven-ranks"));
    done(capture, &findings);
}
END_TEST

/* The steps of `count` ranks, of which another one computes 300 us longer each time. */
START_TEST(ranks_that_wait_in_turn)
{
    scene_begin();
    for (int r = 0; r < 3; r++) {
        scene_rank(r);
        for (long step = 0; step < 9; step++) {
            long at = 1000 * (step + 1), arrival = at + 210 + (step % 3 == r ? 300 : 0);
            scene_range(r, STEP, 0, at, at + 1000);
            scene_kernel(r, GEMM_CONFIG, at + 1, at + 10, arrival);
            scene_all_reduce(r, at + 3, COMMUNICATOR, MEBI);
            scene_kernel(r, ALL_REDUCE_CONFIG, at + 4, arrival, at + 520);
        }
    }
    struct prof_capture *capture = scene_made();
    struct prof_findings findings = judged(capture);
    const struct prof_finding *finding = find(&findings, "uneven-ranks");
    ck_assert_ptr_nonnull(finding);
    ck_assert_uint_eq(count_of(&findings, "uneven-ranks"), 1);
    ck_assert_int_le(finding->bound_ns, 6 * 300 * US);
    ck_assert_int_gt(finding->bound_ns, 4 * 300 * US);
    ck_assert_ptr_null(find(&findings, "rank-straggler"));
    done(capture, &findings);
}
END_TEST

/* All-reduces of 300 us on two ranks, under a kernel or not. */
static struct prof_findings with_cover(struct prof_capture **capture, bool covered)
{
    scene_begin();
    for (int r = 0; r < 2; r++) {
        scene_rank(r);
        for (long step = 0; step < 6; step++) {
            long at = 1000 * (step + 1);
            scene_range(r, STEP, 0, at, at + 1000);
            scene_kernel(r, GEMM_CONFIG, at + 1, at + 10, at + (covered ? 900 : 500));
            scene_all_reduce(r, at + 3, COMMUNICATOR, MEBI);
            scene_kernel(r, ALL_REDUCE_CONFIG, at + 4, at + 500, at + 800);
        }
    }
    *capture = scene_made();
    return judged(*capture);
}

START_TEST(collectives_that_nothing_covers)
{
    struct prof_capture *capture;
    struct prof_findings findings = with_cover(&capture, false);
    const struct prof_finding *finding = find(&findings, "exposed-collectives");
    ck_assert_ptr_nonnull(finding);
    ck_assert_uint_eq(count_of(&findings, "exposed-collectives"), 1);
    ck_assert_int_le(finding->bound_ns, 6 * 300 * US);
    ck_assert_int_ge(finding->bound_ns, 5 * 300 * US);
    done(capture, &findings);
    findings = with_cover(&capture, true);
    ck_assert_ptr_null(find(&findings, "exposed-collectives"));
    done(capture, &findings);
}
END_TEST

/* Few blocks that wait for each other are what a collective is: no fault of a kernel, and streams
 * that take turns with them are no streams that could run side by side. */
START_TEST(collectives_are_not_judged_as_kernels)
{
    scene_begin();
    for (int r = 0; r < 2; r++) {
        scene_rank(r);
        for (long step = 0; step < 30; step++) {
            long at = 1000 * (step + 1);
            scene_range(r, STEP, 0, at, at + 1000);
            scene_kernel(r, GEMM_CONFIG, at + 1, at + 10, at + 200);
            scene_kernel(r, ALL_REDUCE_CONFIG, at + 4, at + 200, at + 900);
        }
    }
    scene_add(
        "UPDATE device SET units = 132, warp = 32, compute_major = 9, max_threads_per_unit = 2048, "
        "registers_per_unit = 65536, shared_per_unit_bytes = 233472");
    scene_add(
        "UPDATE launch_config SET grid_x = 13200, block_x = 256, registers = 32 WHERE id = %d",
        GEMM_CONFIG);
    scene_add("UPDATE launch_config SET grid_x = 24, block_x = 512, registers = 96 WHERE id = %d",
              ALL_REDUCE_CONFIG);
    struct prof_capture *capture = scene_made();
    struct prof_findings findings = judged(capture);
    for (size_t i = 0; i < findings.count; i++)
        ck_assert_msg(strstr(findings.rows[i].seen, "nccl") == NULL, "%s: %s",
                      findings.rows[i].rule->id, findings.rows[i].seen);
    ck_assert_ptr_null(find(&findings, "serial-streams"));
    ck_assert_ptr_nonnull(find(&findings, "exposed-collectives"));
    done(capture, &findings);
}
END_TEST

static struct prof_findings with_pairs(struct prof_capture **capture, long slow_us)
{
    scene_pairs(slow_us);
    *capture = scene_made();
    return judged(*capture);
}

START_TEST(one_way_is_slower)
{
    struct prof_capture *capture;
    struct prof_findings findings = with_pairs(&capture, 400);
    const struct prof_finding *finding = find(&findings, "slow-link");
    ck_assert_ptr_nonnull(finding);
    ck_assert_int_eq(finding->severity, PROF_SEVERITY_WARNING);
    ck_assert_ptr_nonnull(strstr(finding->seen, "communicator 0x3e9"));
    ck_assert_ptr_nonnull(strstr(finding->seen, "25.0 %"));
    ck_assert_int_eq(finding->bound_ns, PROF_UNKNOWN);
    done(capture, &findings);
    findings = with_pairs(&capture, 110);
    ck_assert_ptr_null(find(&findings, "slow-link"));
    done(capture, &findings);
}
END_TEST

START_TEST(one_rank_does_more)
{
    scene_training(3, (long[]){200, 200, 200}, (long[]){0, 0, 0}, COMMUNICATOR);
    scene_kernel(1, EXTRA_CONFIG, 2500, 2600, 2610);
    struct prof_capture *capture = scene_made();
    struct prof_findings findings = judged(capture);
    const struct prof_finding *finding = find(&findings, "rank-differs");
    ck_assert_ptr_nonnull(finding);
    ck_assert_int_eq(finding->severity, PROF_SEVERITY_INFO);
    ck_assert_msg(
        strstr(finding->seen, "Rank 1 does something other than most: 1 launches of extra") != NULL,
        "%s", finding->seen);
    done(capture, &findings);
}
END_TEST

CHECK_MAIN("rank rules", one_rank_holds_the_others_up, ranks_that_wait_in_turn,
           collectives_that_nothing_covers, collectives_are_not_judged_as_kernels,
           one_way_is_slower, one_rank_does_more)
