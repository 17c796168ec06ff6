/* What if: a program with a change against the prediction for the program without it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libprof/include/prof_what_if.h"
#include "tests/check_main.h"
#include "tests/diagnosis/scene.h"

#define US 1000
#define STEPS 12

/* A step of training: an upload that waits, two products, many small kernels, a wait, an
 * allocation. */
struct shape_of_step {
    int64_t upload, product, alloc, host, launch;
    int small;
    bool upload_is_async;
    bool overlaps; /* kernels of one stream, as nodes of a graph do */
    int64_t first; /* of the first step: what its last kernel takes */
    bool blocking; /* each launch returns when its kernel is done */
};

static const struct shape_of_step usual = {.upload = 300 * US,
                                           .product = 400 * US,
                                           .alloc = 150 * US,
                                           .host = 200 * US,
                                           .launch = 4 * US,
                                           .small = 24};

static void run_kernel(struct scene *s, const struct shape_of_step *step, int config, int64_t takes)
{
    scene_kernel(s, 0, config, takes);
    if (!step->blocking)
        return;
    scene_sync(s);
    scene_sql(s, "UPDATE kernel SET api_duration = api_lead - start + (SELECT start + duration "
                 "FROM sync ORDER BY id DESC LIMIT 1) WHERE id = (SELECT max(id) FROM kernel)");
    scene_sql(s, "DELETE FROM sync WHERE id = (SELECT max(id) FROM sync)");
}

static struct prof_capture *run_steps(const struct shape_of_step *step, int steps)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    int product = scene_config(&s, "void big_gemm<float>(int)", 13200, 256, 32);
    int small = scene_config(&s, "add_bias", 132, 256, 32);
    s.launch_ns = step->launch;
    for (int k = 0; k < steps; k++) {
        scene_push(&s, "step");
        if (step->alloc)
            scene_call(&s, "cudaMalloc", step->alloc);
        scene_host(&s, step->host);
        if (step->upload)
            scene_copy(&s, 0, SCENE_UP, SCENE_PINNED, 1 << 22, step->upload,
                       !step->upload_is_async);
        for (int i = 0; i < 2 && step->product; i++)
            run_kernel(&s, step, product, step->product);
        for (int i = 0; i < step->small; i++)
            run_kernel(&s, step, small, 3 * US);
        if (!k && step->first)
            scene_kernel(&s, 0, product, step->first);
        scene_sync(&s);
        scene_pop(&s);
    }
    if (step->overlaps)
        scene_sql(&s, "UPDATE kernel SET duration = duration * 3 / 2");
    return scene_close(&s);
}

static struct prof_what_if predict(struct prof_capture *capture, const char *first,
                                   const char *second)
{
    const char *const changes[] = {first, second};
    struct prof_error err = {0};
    struct prof_what_if result;
    size_t count = first && second ? 2 : first ? 1 : 0;
    ck_assert_msg(!prof_what_if(capture, NULL, changes, count, &result, &err), "%s", err.message);
    ck_assert_str_eq(result.why_none, "");
    return result;
}

static const struct known_change {
    const char *change, *second;
    struct shape_of_step after;
} known_changes[] = {
    {"kernel:*gemm*=0.5x",
     NULL,
     {300 * US, 200 * US, 150 * US, 200 * US, 4 * US, 24, false, false, 0, false}},
    {"kernel:big_gemm<float>=100us",
     NULL,
     {300 * US, 100 * US, 150 * US, 200 * US, 4 * US, 24, false, false, 0, false}},
    {"h2d=0", NULL, {0, 400 * US, 150 * US, 200 * US, 4 * US, 24, false, false, 0, false}},
    {"memcpy=2x",
     NULL,
     {600 * US, 400 * US, 150 * US, 200 * US, 4 * US, 24, false, false, 0, false}},
    {"async:h2d",
     NULL,
     {300 * US, 400 * US, 150 * US, 200 * US, 4 * US, 24, true, false, 0, false}},
    {"alloc=0", NULL, {300 * US, 400 * US, 0, 200 * US, 4 * US, 24, false, false, 0, false}},
    {"host=0.5x",
     NULL,
     {300 * US, 400 * US, 150 * US, 100 * US, 4 * US, 24, false, false, 0, false}},
    {"kernel:add_bias=0",
     NULL,
     {300 * US, 400 * US, 150 * US, 200 * US, 4 * US, 0, false, false, 0, false}},
    {"kernel:*gemm*=0.25x",
     "alloc=0",
     {300 * US, 100 * US, 0, 200 * US, 4 * US, 24, false, false, 0, false}},
};

/* Within 2 %, and the critical path adds up. */
START_TEST(a_change_is_predicted)
{
    const struct known_change *known = &known_changes[_i];
    struct prof_capture *before = run_steps(&usual, STEPS),
                        *after = run_steps(&known->after, STEPS);
    struct prof_what_if got = predict(before, known->change, known->second);
    struct prof_what_if is = predict(after, NULL, NULL);
    ck_assert_int_eq(got.iterations, STEPS - 1);
    ck_assert(fabs(got.replayed_ns / got.median_ns - 1) < 1e-6);
    ck_assert_uint_eq(got.count, known->second ? 3 : 1);
    const struct prof_what_if_row *row = &got.rows[got.count - 1];
    ck_assert_msg(fabs(row->predicted_ns / is.median_ns - 1) < 0.02, "%s: %.1f us, is %.1f us",
                  known->change, row->predicted_ns / 1e3, is.median_ns / 1e3);
    double sum = 0;
    for (int limit = 0; limit < PROF_LIMITS; limit++)
        sum += row->share[limit];
    ck_assert(fabs(sum - 1) < 1e-9);
    ck_assert(row->low_ns <= row->predicted_ns && row->predicted_ns <= row->high_ns);
    prof_what_if_free(&got);
    prof_what_if_free(&is);
    prof_close(before);
    prof_close(after);
}
END_TEST

/* A launch that runs its kernel gets shorter with it: the kernel limits, not the launch. */
START_TEST(a_blocking_launch_takes_as_long_as_its_kernel)
{
    struct shape_of_step slow = usual, fast = usual;
    slow.blocking = fast.blocking = true;
    slow.small = fast.small = 0; /* else what recording takes of a launch counts */
    fast.product /= 2;
    struct prof_capture *before = run_steps(&slow, STEPS), *after = run_steps(&fast, STEPS);
    struct prof_what_if got = predict(before, "kernel:*gemm*=0.5x", NULL);
    struct prof_what_if is = predict(after, NULL, NULL);
    ck_assert(fabs(got.replayed_ns / got.median_ns - 1) < 1e-6);
    ck_assert_int_eq(got.limit, PROF_LIMIT_KERNEL);
    ck_assert_msg(fabs(got.rows[0].predicted_ns / is.median_ns - 1) < 0.02, "%.1f us, is %.1f us",
                  got.rows[0].predicted_ns / 1e3, is.median_ns / 1e3);
    prof_what_if_free(&got);
    prof_what_if_free(&is);
    prof_close(before);
    prof_close(after);
}
END_TEST

/* What depends on the host is said: how short an iteration is if it does nothing between calls. */
START_TEST(the_part_of_the_host_is_known)
{
    struct shape_of_step busy = usual;
    busy.host = 4000 * US;
    struct prof_capture *capture = run_steps(&busy, STEPS);
    struct prof_what_if got = predict(capture, "kernel:*gemm*=0.5x", "host=0");
    ck_assert_int_eq(got.rows[0].limit, PROF_LIMIT_HOST);
    ck_assert(fabs(got.rows[0].host_free_ns / got.rows[2].predicted_ns - 1) < 1e-9);
    ck_assert(got.rows[0].host_free_ns < got.rows[0].predicted_ns - 0.9 * 4000 * US);
    ck_assert(fabs(got.rows[1].host_free_ns / got.rows[1].predicted_ns - 1) < 1e-9);
    prof_what_if_free(&got);
    prof_close(capture);
}
END_TEST

/* 24 launches of 4 us each become 3, and their kernels take what they took. */
START_TEST(fused_launches_are_saved)
{
    struct shape_of_step small = {.small = 240, .launch = 6 * US, .host = 5 * US};
    struct prof_capture *before = run_steps(&small, STEPS);
    struct prof_what_if got = predict(before, "fuse/8:add_bias", "batch/8:add_bias");
    double launches = 240.0 * 6 * US;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(got.rows[i].changed, 240);
        ck_assert(got.rows[i].predicted_ns < got.median_ns - 0.4 * launches);
        ck_assert(got.rows[i].predicted_ns >= 240.0 * 3 * US);
        ck_assert_int_eq(got.rows[i].limit, PROF_LIMIT_KERNEL);
    }
    prof_what_if_free(&got);
    prof_close(before);
}
END_TEST

/* Also where iterations overlap, since the host does not wait for the device. */
START_TEST(shares_are_shares)
{
    struct shape_of_step light = {
        .host = 3000 * US, .launch = 4 * US, .small = 24, .first = 20000 * US};
    struct prof_capture *capture = run_steps(&light, STEPS);
    struct prof_what_if got = predict(capture, "sync=0", "launch=100us");
    for (size_t i = 0; i < got.count; i++) {
        double sum = 0;
        for (int limit = 0; limit < PROF_LIMITS; limit++) {
            ck_assert_msg(got.rows[i].share[limit] >= 0 && got.rows[i].share[limit] <= 1, "%zu: %g",
                          i, got.rows[i].share[limit]);
            sum += got.rows[i].share[limit];
        }
        ck_assert(fabs(sum - 1) < 1e-9);
    }
    prof_what_if_free(&got);
    prof_close(capture);
}
END_TEST

/* Of all at once: each is made, in whatever order; of two values the later one holds. */
START_TEST(changes_do_not_undo_each_other)
{
    static const struct {
        const char *first, *second;
        int as; /* as `first` and `second` swapped: -1; as the second one by itself: 1 */
    } pairs[] = {
        {"fuse/8:add_bias", "device=V100", -1},
        {"launch=20us", "launch=0us", 1},
        {"launch=0.5x", "launch=20us", 1},
    };
    struct shape_of_step small = {.small = 240, .launch = 6 * US, .host = 5 * US};
    struct prof_capture *capture = run_steps(&small, STEPS);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct prof_what_if got = predict(capture, pairs[i].first, pairs[i].second);
        struct prof_what_if swapped = predict(capture, pairs[i].second, pairs[i].first);
        double expected = pairs[i].as < 0 ? swapped.rows[2].predicted_ns : got.rows[1].predicted_ns;
        ck_assert_msg(fabs(got.rows[2].predicted_ns / expected - 1) < 1e-6, "%s: %.0f, %.0f",
                      pairs[i].first, got.rows[2].predicted_ns, expected);
        ck_assert(fabs(got.rows[0].predicted_ns / got.rows[2].predicted_ns - 1) > 0.01);
        prof_what_if_free(&got);
        prof_what_if_free(&swapped);
    }
    prof_close(capture);
}
END_TEST

/* The largest values there may be, of long operations. */
START_TEST(no_prediction_overflows)
{
    struct shape_of_step slow = {.small = 24, .launch = 5 * US, .host = 3600000000ll * US};
    struct prof_capture *capture = run_steps(&slow, STEPS);
    struct prof_what_if got = predict(capture, "host=1000000x", "kernel:*=10000s");
    for (size_t i = 0; i < got.count; i++)
        ck_assert(got.rows[i].predicted_ns > got.median_ns && got.rows[i].saved_ns < 0);
    prof_what_if_free(&got);
    prof_close(capture);
}
END_TEST

START_TEST(kernels_of_a_stream_may_overlap)
{
    struct shape_of_step step = usual;
    step.overlaps = true;
    struct prof_capture *capture = run_steps(&step, STEPS);
    struct prof_what_if got = predict(capture, NULL, NULL);
    ck_assert(fabs(got.replayed_ns / got.median_ns - 1) < 1e-3);
    prof_what_if_free(&got);
    prof_close(capture);
}
END_TEST

/* A host that works, launches and waits; recording takes `costs` before each call and range. In a
 * pause (--overhead=measure) there are only the ranges. */
#define PAUSES 4
struct recorded_loop {
    int64_t costs;
    int launches;
    int64_t host;
    enum { NO_PAUSES, TOO_FEW, PAUSES_LATER, FROM_THE_START } pauses;
};

static void run_one(struct scene *s, const struct recorded_loop *loop, int config, bool paused)
{
    int64_t costs = paused ? 0 : loop->costs;
    scene_push(s, "step");
    scene_host(s, costs + loop->host);
    for (int i = 0; i < loop->launches; i++) {
        scene_host(s, costs + 20 * US);
        if (paused)
            scene_host(s, s->launch_ns);
        else
            scene_kernel(s, 0, config, 2 * US);
    }
    scene_host(s, costs);
    if (paused)
        scene_host(s, 12 * US); /* as the wait takes */
    else
        scene_sync(s);
    scene_pop(s);
}

static void run_pause(struct scene *s, const struct recorded_loop *loop, int config)
{
    static const char row[] =
        "INSERT INTO recording(process, start, begins, reason) VALUES(1, %lld, %d, 6)";
    scene_sql(s, row, (long long)s->host, 0);
    for (int k = 0; k < 90; k++)
        run_one(s, loop, config, true);
    scene_sql(s, row, (long long)s->host, 1);
}

static struct prof_capture *run_recorded(const struct recorded_loop *loop)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "add_bias", 132, 256, 32);
    s.launch_ns = 4 * US;
    if (loop->pauses == FROM_THE_START)
        run_pause(&s, loop, config);
    for (int pause = 0; pause < PAUSES; pause++) {
        for (int k = 0; k < 150; k++)
            run_one(&s, loop, config, false);
        if (loop->pauses > TOO_FEW || (loop->pauses == TOO_FEW && pause == 0))
            run_pause(&s, loop, config);
    }
    for (int k = 0; k < 150; k++)
        run_one(&s, loop, config, false);
    return scene_close(&s);
}

/* The overhead was measured: the program without perfkit is predicted, also after the change. What
 * the recording of what goes took goes with it. */
START_TEST(a_change_is_predicted_without_recording)
{
    static const struct {
        const char *change;
        struct recorded_loop after;
    } known[] = {
        {"host=1x", {0, 20, 300 * US, NO_PAUSES}},
        {"kernel:add_bias=0", {0, 0, 320 * US, NO_PAUSES}}, /* a pause of 320 us stays */
        {"fuse/4:add_bias=2us", {0, 5, 300 * US, NO_PAUSES}},
        {"kernel:add_bias=0.5x", {0, 20, 300 * US, NO_PAUSES}},
    };
    struct recorded_loop loop = {12 * US, 20, 300 * US, FROM_THE_START};
    struct prof_capture *recorded = run_recorded(&loop), *after = run_recorded(&known[_i].after);
    struct prof_what_if got = predict(recorded, known[_i].change, NULL);
    struct prof_what_if is = predict(after, NULL, NULL);
    const struct prof_what_if_row *row = &got.rows[0];
    ck_assert_str_eq(got.why_no_bare, "");
    ck_assert(got.overhead > 1.2 && !got.estimated);
    ck_assert_msg(fabs(got.recording_ns / (12 * US) - 1) < 0.1, "%.0f ns", got.recording_ns);
    ck_assert_msg(fabs(row->bare_ns / is.median_ns - 1) < 0.02, "%s: %.1f us, is %.1f us",
                  known[_i].change, row->bare_ns / 1e3, is.median_ns / 1e3);
    ck_assert(row->bare_low_ns <= row->bare_ns && row->bare_ns <= row->bare_high_ns);
    ck_assert(!row->why_none && row->predicted_ns > row->bare_ns);
    prof_what_if_free(&got);
    prof_what_if_free(&is);
    prof_close(recorded);
    prof_close(after);
}
END_TEST

/* It was not, in too few pauses, or without what CUPTI costs in a pause: what rests on the host's
 * time is not predicted, the rest is. */
START_TEST(nothing_is_predicted_from_what_recording_may_have_made)
{
    static const char *const why[] = {[NO_PAUSES] = "was not measured: record with",
                                      [TOO_FEW] = "too few pauses beside iterations",
                                      [PAUSES_LATER] = "lacks what CUPTI costs in a pause"};
    struct recorded_loop loop = {2 * US, 20, 0, _i};
    struct prof_capture *capture = run_recorded(&loop);
    struct prof_what_if got = predict(capture, "kernel:add_bias=0.5x", "kernel:add_bias=400us");
    ck_assert_ptr_nonnull(got.rows[0].why_none);
    ck_assert(isnan(got.rows[0].predicted_ns) && isnan(got.rows[0].bare_ns));
    ck_assert(got.rows[0].bare_low_ns < 0.95 * got.rows[0].bare_high_ns);
    ck_assert(!got.rows[1].why_none && got.rows[1].predicted_ns > 20 * 400 * US);
    ck_assert_msg(strstr(got.why_no_bare, why[_i]) != NULL, "%s", got.why_no_bare);
    prof_what_if_free(&got);
    prof_close(capture);
}
END_TEST

/* A kernel of a second stream waits for one of the first stream, which waits for it or, if `ahead`,
 * has been given more by then; the device's times of two streams differ by half a microsecond. */
static struct prof_capture *run_beside(int64_t kernel, bool ahead)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    int product = scene_config(&s, "void big_gemm<float>(int)", 13200, 256, 32);
    for (int k = 0; k < STEPS; k++) {
        scene_push(&s, "step");
        scene_host(&s, 800 * US);
        scene_kernel(&s, 0, product, kernel);
        int64_t wanted = s.stream[0] - s.gap_ns - US / 2;
        if (ahead)
            scene_kernel(&s, 0, product, 5 * kernel);
        s.stream[1] = wanted > s.stream[1] ? wanted : s.stream[1];
        scene_kernel(&s, 1, product, kernel);
        if (!ahead) {
            s.stream[0] = s.stream[1];
            scene_kernel(&s, 0, product, 5 * kernel);
        }
        scene_pop(&s);
    }
    return scene_close(&s);
}

START_TEST(waiting_for_another_stream_is_no_launch_overhead)
{
    struct prof_capture *before = run_beside(400 * US, _i), *after = run_beside(200 * US, _i);
    struct prof_what_if got = predict(before, "kernel:*gemm*=0.5x", NULL);
    struct prof_what_if is = predict(after, NULL, NULL);
    ck_assert_int_eq(got.rows[0].limit, PROF_LIMIT_KERNEL);
    ck_assert_msg(fabs(got.rows[0].predicted_ns / is.median_ns - 1) < 0.02, "%.1f us, is %.1f us",
                  got.rows[0].predicted_ns / 1e3, is.median_ns / 1e3);
    prof_what_if_free(&got);
    prof_what_if_free(&is);
    prof_close(before);
    prof_close(after);
}
END_TEST

START_TEST(what_fits_nothing_is_refused)
{
    static const char *const wrong[] = {"kernel:none*=0", "p2p=0.5x",      "kernel:add_bias=fast",
                                        "speed=2x",       "device=Abacus", "fuse/1:add_bias",
                                        "sync=3us",       "memcpy=1e9x",   "kernel:add_bias=1e9s",
                                        "launch",         "sync=0.5x"};
    struct prof_capture *capture = run_steps(&usual, STEPS);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct prof_error err = {0};
        struct prof_what_if result;
        ck_assert_msg(prof_what_if(capture, NULL, &wrong[i], 1, &result, &err) == PROF_INVALID,
                      "%s", wrong[i]);
        ck_assert_msg(strstr(err.message, "add_bias") || strlen(err.message) > 10, "%s",
                      err.message);
    }
    prof_close(capture);
}
END_TEST

START_TEST(without_iterations_nothing_is_predicted)
{
    struct prof_error err = {0};
    struct prof_what_if result;
    struct prof_capture *capture = run_steps(&(struct shape_of_step){.small = 1, .launch = US}, 1);
    ck_assert(!prof_what_if(capture, NULL, NULL, 0, &result, &err));
    ck_assert_str_eq(result.why_none, "nothing repeats in this capture");
    ck_assert_uint_eq(result.count, 0);
    ck_assert(isnan(result.low_ns) && isnan(result.high_ns) && isnan(result.share[0]));
    prof_what_if_free(&result);
    prof_close(capture);
}
END_TEST

CHECK_MAIN_LOOPS("what-if", {a_change_is_predicted, sizeof known_changes / sizeof known_changes[0]},
                 {a_blocking_launch_takes_as_long_as_its_kernel, 1},
                 {the_part_of_the_host_is_known, 1}, {fused_launches_are_saved, 1},
                 {waiting_for_another_stream_is_no_launch_overhead, 2},
                 {a_change_is_predicted_without_recording, 4},
                 {nothing_is_predicted_from_what_recording_may_have_made, 3},
                 {shares_are_shares, 1}, {changes_do_not_undo_each_other, 1},
                 {no_prediction_overflows, 1}, {kernels_of_a_stream_may_overlap, 1},
                 {what_fits_nothing_is_refused, 1}, {without_iterations_nothing_is_predicted, 1})
