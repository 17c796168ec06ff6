/* What if, and why, of ranks that wait for each other: what comes is known by arithmetic. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libprof/include/prof_iterations.h"
#include "libprof/include/prof_what_if.h"
#include "tests/analysis/rank_fixture.h"
#include "tests/check_main.h"

#define RANKS 3
#define TRANSFER 100

/* Steps in which rank r computes work[r] us and the host waits for the all-reduce that follows,
 * which takes TRANSFER us once all have come: each takes 10 + longest work + TRANSFER + 10 us. */
static struct prof_capture *train(const long work[RANKS], bool on_host, int here)
{
    long longest = 0, step;
    scene_begin();
    for (int r = 0; r < RANKS; r++)
        longest = work[r] > longest ? work[r] : longest;
    step = 10 + longest + TRANSFER + 10;
    for (int r = 0; r < here; r++) {
        scene_rank(r);
        scene_comm_init(r, COMMUNICATOR, RANKS);
        for (long k = 0; k < 4 * STEPS; k++) {
            long at = 1000 + k * step, came = at + 10 + work[r], end = at + step - 10;
            scene_range(r, STEP, 0, at, at + step);
            scene_kernel(r, GEMM_CONFIG, at + 4, at + 10, came);
            if (on_host) {
                scene_range(r, MPI_BARRIER, 0, came + 2, end);
            } else {
                scene_all_reduce(r, at + 6, COMMUNICATOR, 8 * MEBI);
                scene_kernel(r, ALL_REDUCE_CONFIG, at + 7, came, end);
            }
            long wait = on_host ? came + 1 : end;
            scene_add("INSERT INTO sync(start, duration, kind, api_name, api_lead, api_duration, "
                      "thread) VALUES(%ld, %ld, 3, %d, 0, %ld, %d)",
                      (at + 12) * US, (wait - at - 12) * US, GEMM, (wait - at - 12) * US, r + 1);
        }
    }
    return scene_made();
}

static struct prof_what_if predict(struct prof_capture *capture, const char *change)
{
    struct prof_what_if result;
    ck_ok(prof_what_if(capture, NULL, &change, 1, &result, &err));
    ck_assert_str_eq(result.why_none, "");
    ck_assert_uint_eq(result.count, 1);
    return result;
}

static const struct known_change {
    const char *change;
    bool on_host;
    long work[RANKS], after; /* after: the longest work of a rank, and the transfer less */
} known_changes[] = {
    {"kernel:gemm=0.5x", false, {200, 500, 260}, 250 + TRANSFER},
    {"kernel:gemm=100us", false, {200, 500, 260}, 100 + TRANSFER},
    {"kernel:gemm=2x", false, {200, 500, 260}, 1000 + TRANSFER},
    /* The wait is no part of what a collective can save. */
    {"kernel:nccl*=0.5x", false, {200, 500, 260}, 500 + TRANSFER / 2},
    {"kernel:nccl*=0", false, {200, 500, 260}, 500},
    {"rank1:kernel:gemm=0.4x", false, {200, 500, 260}, 260 + TRANSFER},
    {"rank0:kernel:gemm=0.4x", false, {200, 500, 260}, 500 + TRANSFER},
    {"rank2:kernel:gemm=3x", false, {200, 500, 260}, 780 + TRANSFER},
    {"kernel:gemm=0.5x", true, {200, 500, 260}, 250 + TRANSFER},
};

START_TEST(the_last_rank_decides)
{
    const struct known_change *known = &known_changes[_i];
    struct prof_capture *capture = train(known->work, known->on_host, RANKS);
    struct prof_what_if got = predict(capture, known->change);
    ck_assert_int_eq(got.joined, RANKS * 4 * STEPS);
    ck_assert(strstr(got.ranks, "wait for the last rank") != NULL);
    ck_assert(fabs(got.replayed_ns - 620 * US) < 2 * US);
    ck_assert_msg(fabs(got.rows[0].predicted_ns - (double)(20 + known->after) * US) < 6 * US,
                  "%s: %.1f us, not %ld us", known->change, got.rows[0].predicted_ns / 1e3,
                  20 + known->after);
    prof_what_if_free(&got);
    prof_close(capture);
}
END_TEST

/* Steps of four ranks: each computes, two and two reduce, then all do. A step takes 10 + longest
 * work
 * + twice TRANSFER + 10 us. lacks: the recording of rank 3 began later, by so many steps. */
static struct prof_capture *train_groups(const long work[4], int lacks)
{
    scene_begin();
    for (int r = 0; r < 4; r++) {
        const long *pair = &work[r / 2 * 2];
        long own = pair[0] > pair[1] ? pair[0] : pair[1], all = 0;
        for (int i = 0; i < 4; i++)
            all = work[i] > all ? work[i] : all;
        scene_rank(r);
        for (long k = r == 3 ? lacks : 0; k < 4 * STEPS; k++) {
            long step = 10 + all + 2 * TRANSFER + 10, at = 1000 + k * step, end = at + step - 10;
            scene_range(r, STEP, 0, at, at + step);
            scene_kernel(r, GEMM_CONFIG, at + 2, at + 10, at + 10 + work[r]);
            scene_all_reduce(r, at + 4, COMMUNICATOR + 1 + r / 2, MEBI);
            scene_kernel(r, ALL_REDUCE_CONFIG, at + 5, at + 10 + work[r], at + 10 + own + TRANSFER);
            scene_all_reduce(r, at + 10, COMMUNICATOR, 8 * MEBI);
            scene_kernel(r, ALL_REDUCE_CONFIG, at + 11, at + 10 + own + TRANSFER, end);
            scene_add("INSERT INTO sync(start, duration, kind, api_name, api_lead, api_duration, "
                      "thread) VALUES(%ld, %ld, 3, %d, 0, %ld, %d)",
                      (at + 16) * US, (end - at - 16) * US, GEMM, (end - at - 16) * US, r + 1);
        }
    }
    return scene_made();
}

static const struct {
    const char *change;
    int lacks;
    long after; /* as above */
} grouped[] = {
    {"kernel:gemm=0.5x", 0, 250 + 2 * TRANSFER},
    {"kernel:nccl*=0.5x", 0, 500 + TRANSFER},
    {"rank1:kernel:gemm=0.4x", 0, 260 + 2 * TRANSFER},
    {"rank3:kernel:gemm=4x", 0, 800 + 2 * TRANSFER},
    {"kernel:gemm=0.5x", 2, 250 + 2 * TRANSFER},
};

START_TEST(groups_wait_among_themselves)
{
    struct prof_capture *capture =
        train_groups((const long[]){100, 500, 260, 200}, grouped[_i].lacks);
    struct prof_what_if got = predict(capture, grouped[_i].change);
    /* Of the pair and of all, what rank 3 lacks no rank waits for. */
    ck_assert_int_eq(got.joined, 8 * 4 * STEPS - 6 * grouped[_i].lacks);
    ck_assert_msg(strstr(got.ranks, "for the last rank to arrive") != NULL, "%s", got.ranks);
    ck_assert(strstr(got.ranks, "not in this capture") == NULL);
    ck_assert(!strstr(got.ranks, "different numbers of collectives") == !grouped[_i].lacks);
    ck_assert(fabs(got.replayed_ns - 720 * US) < 2 * US);
    ck_assert_msg(fabs(got.rows[0].predicted_ns - (double)(20 + grouped[_i].after) * US) < 6 * US,
                  "%s: %.1f us, not %ld us", grouped[_i].change, got.rows[0].predicted_ns / 1e3,
                  20 + grouped[_i].after);
    prof_what_if_free(&got);
    prof_close(capture);
}
END_TEST

/* With some ranks only, what the others were waited for is in no prediction: that is said. */
START_TEST(missing_ranks_are_said)
{
    const long work[RANKS] = {200, 500, 260};
    struct prof_capture *capture = train(work, false, 2);
    struct prof_what_if got = predict(capture, "kernel:gemm=0.5x");
    ck_assert_int_eq(got.joined, 2 * 4 * STEPS);
    ck_assert_msg(strstr(got.ranks, "2 of 4 ranks are not in this capture") != NULL, "%s",
                  got.ranks);
    prof_what_if_free(&got);
    prof_close(capture);
}
END_TEST

/* Two and two ranks reduce. In one step rank 0 waits for rank 1; rank 3 comes later than that to
 * the other pair. */
START_TEST(a_rank_of_another_group_is_not_waited_for)
{
    const struct prof_iteration_choice slow = {.slow = 4};
    struct prof_iteration_list list;
    int first = 0, second = 0;
    scene_begin();
    for (int r = 0; r < 4; r++) {
        scene_rank(r);
        for (long k = 0, at = 1000, step; k < 4 * STEPS; k++, at += step) {
            bool late = k == 2 * STEPS;
            long came = at + (!late || r % 2 == 0 ? 200 : r == 1 ? 1200 : 1500);
            long end = at + (!late ? 300 : r < 2 ? 1800 : 1600);
            step = late ? 1900 : 400;
            scene_range(r, STEP, 0, at, at + step);
            scene_kernel(r, GEMM_CONFIG, at + 2, at + 10, came);
            scene_all_reduce(r, at + 4, COMMUNICATOR + r / 2, MEBI);
            scene_kernel(r, ALL_REDUCE_CONFIG, at + 5, came, end);
        }
    }
    struct prof_capture *capture = scene_made();
    ck_ok(prof_iteration_list(capture, NULL, &slow, &list, &err));
    for (size_t i = 0; i < list.why_count; i++) {
        first += strstr(list.whys[i].seen, "waited for rank 1, which came 1.00 ms later") != NULL;
        second += strstr(list.whys[i].seen, "waited for rank 3, which came 1.30 ms later") != NULL;
    }
    ck_assert_msg(first == 1 && second == 1, "%d, %d", first, second);
    prof_iteration_list_free(&list);
    prof_close(capture);
}
END_TEST

/* What is not in the capture is said, and what concerns no rank is refused. */
START_TEST(what_is_not_known_is_said)
{
    static const char *const wrong[] = {"rank7:kernel:gemm=0.5x", "rank1:host=0.5x",
                                        "rank1:kernel:none=0", "rank:kernel:gemm=0"};
    const long work[RANKS] = {200, 500, 260};
    struct prof_capture *capture = train(work, false, 1);
    struct prof_what_if got = predict(capture, "kernel:gemm=0.5x");
    ck_assert_int_eq(got.joined, 0);
    ck_assert_msg(strstr(got.ranks, "the other ranks are not in this capture") != NULL, "%s",
                  got.ranks);
    prof_what_if_free(&got);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct prof_error err = {0};
        ck_assert_msg(prof_what_if(capture, NULL, &wrong[i], 1, &got, &err) == PROF_INVALID, "%s",
                      wrong[i]);
    }
    prof_close(capture);
}
END_TEST

CHECK_MAIN_LOOPS("what-if of ranks",
                 {the_last_rank_decides, sizeof known_changes / sizeof known_changes[0]},
                 {groups_wait_among_themselves, sizeof grouped / sizeof grouped[0]},
                 {missing_ranks_are_said, 1}, {a_rank_of_another_group_is_not_waited_for, 1},
                 {what_is_not_known_is_said, 1})
