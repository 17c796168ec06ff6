/* The facts under the rules: states of a device to the nanosecond, their sum, the part of a run
 * that is judged, and the replay of what was recorded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/rules/replay.h"
#include "tests/check_main.h"
#include "tests/diagnosis/scene.h"

#define US INT64_C(1000)

static void load(struct scene *scene, struct prof_capture **capture, struct prof_facts *facts)
{
    struct prof_error err = {0};
    *capture = scene_close(scene);
    ck_assert_msg(!prof_facts_load(facts, *capture, NULL, &err), "%s", err.message);
}

static void unload(struct prof_capture *capture, struct prof_facts *facts)
{
    prof_facts_free(facts);
    prof_close(capture);
}

static int64_t sum_of(const struct prof_device_facts *device)
{
    int64_t sum = 0;
    for (int i = 0; i < PROF_SLICES; i++)
        sum += device->slice_ns[i];
    return sum;
}

/* Rows of their own, so that every instant is known. Nothing repeats: all of the run is judged,
 * from the first call on. */
START_TEST(each_instant_has_its_state)
{
    struct scene s;
    struct prof_capture *capture;
    struct prof_facts f;
    scene_open(&s, "cuda", "gpu");
    scene_config(&s, "k", 8, 256, 32);
    scene_sql(&s, "INSERT INTO string(id, value) VALUES(50, 'cudaLaunchKernel'), "
                  "(51, 'cudaMalloc'), (52, 'cudaDeviceSynchronize'), (53, 'cudaMemcpyAsync')");
    scene_sql(&s, "INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, "
                  "api_duration, thread) VALUES"
                  "(1010000, 100000, 1, 1, 50, 10000, 4000, 1),"  /* call 1,000,000 */
                  "(1115000, 45000, 1, 1, 50, 105000, 4000, 1),"  /* queued: call 1,010,000 */
                  "(1500000, 100000, 1, 1, 50, 20000, 4000, 1)"); /* call 1,480,000 */
    scene_sql(&s, "INSERT INTO transfer(start, duration, stream, bytes, kind, source_kind, "
                  "target_kind, api_name, api_lead, api_duration, thread) VALUES"
                  "(1550000, 100000, 2, 4096, 1, 1, 3, 53, 5000, 3000, 1)");
    scene_sql(&s, "INSERT INTO sync(start, duration, kind, api_name, api_lead, api_duration, "
                  "thread) VALUES(1100000, 70000, 4, 52, 0, 70000, 1)"); /* to 1,170,000 */
    scene_sql(&s, "INSERT INTO api_call(start, duration, thread, name, source) "
                  "VALUES(1300000, 100000, 1, 51, 1)");
    s.host = 1700000;
    load(&s, &capture, &f);
    ck_assert_int_eq(f.begin, 1000000);
    ck_assert_uint_eq(f.devices.count, 1);
    const int64_t *slice = f.devices.data[0].slice_ns;
    ck_assert_int_eq(slice[PROF_SLICE_DISPATCH], 5000);
    ck_assert_int_eq(slice[PROF_SLICE_SYNC], 10000 + 50000); /* the rest of the wait, waking up */
    ck_assert_int_eq(slice[PROF_SLICE_ALLOC], 100000);
    ck_assert_int_eq(slice[PROF_SLICE_LAUNCH], 10000 + 20000);
    ck_assert_int_eq(slice[PROF_SLICE_KERNEL], 100000 + 45000 + 50000);
    ck_assert_int_eq(slice[PROF_SLICE_BOTH], 50000);
    ck_assert_int_eq(slice[PROF_SLICE_COPY_PAGEABLE], 50000);
    /* 1,220,000 to 1,300,000, 1,400,000 to 1,480,000, and after the last operation */
    ck_assert_int_eq(slice[PROF_SLICE_HOST], 160000 + f.end - 1650000);
    ck_assert_int_eq(sum_of(&f.devices.data[0]), f.end - f.begin);
    unload(capture, &f);
}
END_TEST

/* A wait's bubble ends with the first launch after it; each stretch between two calls is launching
 * or the host's own work by its own length. */
START_TEST(what_the_host_does_between_calls)
{
    struct scene s;
    struct prof_capture *capture;
    struct prof_facts f;
    scene_open(&s, "cuda", "gpu");
    scene_config(&s, "k", 8, 256, 32);
    scene_sql(&s, "INSERT INTO string(id, value) VALUES(50, 'cudaLaunchKernel'), "
                  "(51, 'cudaMalloc'), (52, 'cudaDeviceSynchronize')");
    scene_sql(&s, "INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, "
                  "api_duration, thread) VALUES"
                  "(1005000, 95000, 1, 1, 50, 5000, 2000, 1),"
                  "(1115000, 2000, 1, 1, 50, 3000, 2000, 1),"  /* call 1,112,000 */
                  "(1128000, 2000, 1, 1, 50, 3000, 2000, 1),"  /* call 1,125,000 */
                  "(1173000, 2000, 1, 1, 50, 3000, 2000, 1)"); /* call 1,170,000 */
    scene_sql(&s, "INSERT INTO sync(start, duration, kind, api_name, api_lead, api_duration, "
                  "thread) VALUES(1002000, 108000, 4, 52, 0, 108000, 1)"); /* to 1,110,000 */
    scene_sql(&s, "INSERT INTO api_call(start, duration, thread, name, source) "
                  "VALUES(1140000, 5000, 1, 51, 1)");
    s.host = 1175000;
    load(&s, &capture, &f);
    const int64_t *slice = f.devices.data[0].slice_ns;
    ck_assert_int_eq(slice[PROF_SLICE_SYNC], 12000); /* 1,100,000 to 1,112,000 */
    ck_assert_int_eq(slice[PROF_SLICE_ALLOC], 5000);
    ck_assert_int_eq(slice[PROF_SLICE_LAUNCH], 5000 + 3000 + 8000 + 3000 + 10000 + 3000);
    ck_assert_int_eq(slice[PROF_SLICE_HOST], 25000 + f.end - 1175000);
    ck_assert_int_eq(sum_of(&f.devices.data[0]), f.end - f.begin);
    unload(capture, &f);
}
END_TEST

/* Threads 1 and 2 launch, and compile at the same time: 1 from 1,100,000 to 1,300,000, 2 from
 * before that until 1,400,000. Each stretch is its thread's, and so is a module that 1 loads
 * meanwhile. */
START_TEST(threads_compile_each_for_themselves)
{
    struct scene s;
    struct prof_capture *capture;
    struct prof_facts f;
    scene_open(&s, "cuda", "gpu");
    scene_second(&s, false, false);
    scene_config(&s, "k", 8, 256, 32);
    scene_sql(&s, "INSERT INTO string(id, value) VALUES(50, 'cudaLaunchKernel'), "
                  "(51, 'cuModuleLoadData'), (52, 'XlaCompile:#module=f#')");
    scene_sql(&s, "INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, "
                  "api_duration, thread) VALUES(1005000, 45000, 1, 1, 50, 5000, 4000, 1), "
                  "(1005000, 45000, 9, 1, 50, 5000, 4000, 2), "
                  "(1505000, 45000, 1, 1, 50, 5000, 4000, 1)");
    scene_sql(&s, "INSERT INTO range(start, duration, thread, name, depth) VALUES"
                  "(1060000, 340000, 2, 52, 0), (1100000, 200000, 1, 52, 0)");
    scene_sql(&s, "INSERT INTO api_call(start, duration, thread, name, source) "
                  "VALUES(1350000, 20000, 1, 51, 1)");
    s.host = 1550000;
    load(&s, &capture, &f);
    const int64_t *slice = f.devices.data[0].slice_ns;
    const struct prof_call_totals *builds = &f.devices.data[0].calls[WIRE_CLASS_BUILD];
    ck_assert_int_eq(slice[PROF_SLICE_BUILD], 200000 + 20000);
    ck_assert_int_eq(slice[PROF_SLICE_HOST], 100000 + 130000 + f.end - 1550000);
    ck_assert_int_eq(builds->count, 3);
    ck_assert_int_eq(builds->sum_ns, 340000 + 200000 + 20000);
    unload(capture, &f);
}
END_TEST

/* 0: compiling that the end of the run cuts off, and what a damaged capture has behind it. 1: in a
 * run of more than a year, it takes as long as any call may. */
START_TEST(compiling_ends_with_the_run)
{
    struct scene s;
    struct prof_capture *capture;
    struct prof_facts f;
    scene_open(&s, "cuda", "gpu");
    scene_config(&s, "k", 8, 256, 32);
    scene_sql(&s, "INSERT INTO string(id, value) VALUES(50, 'cudaLaunchKernel'), "
                  "(52, 'XlaCompile:#module=f#')");
    scene_sql(&s, "INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, "
                  "api_duration, thread) VALUES(1005000, 45000, 1, 1, 50, 5000, 4000, 1)");
    scene_sql(&s, "INSERT INTO range(start, duration, thread, name, depth) VALUES"
                  "(1100000, 4000000000000000000, 1, 52, 0), "
                  "(5000000000000000000, 4000000000000000000, 1, 52, 0)");
    s.host = _i ? INT64_C(1) << 56 : 1550000;
    load(&s, &capture, &f);
    ck_assert(!f.impossible);
    ck_assert_uint_eq(f.compiles.count, 1);
    ck_assert_int_eq(f.compiles.data[0].end, f.end_ns);
    ck_assert_int_eq(f.total_ns, 45000 + f.end_ns - 1100000);
    const struct prof_call_totals *builds = &f.devices.data[0].calls[WIRE_CLASS_BUILD];
    ck_assert_int_eq(builds->count, 1);
    ck_assert_int_eq(builds->sum_ns, _i ? PROF_LONGEST_CALL_NS : f.end_ns - 1100000);
    unload(capture, &f);
}
END_TEST

/* A library's thread, 2, reads what a kernel of thread 1 made. 0: thread 1 was blocked for 50 us
 * before the read, and from its end to 1,250,000. 1: likewise, the read was queued. 2: what is
 * queued behind the read is launched by a program that did not wait. 3: the run begins with the
 * read: how long that was waited for is not known, and launching behind it costs as much as its
 * call at most. */
START_TEST(only_what_follows_a_read_waited_for_it)
{
    static const struct {
        const char *rows; /* start, duration, lead of what thread 1 launches; then the read's */
        const char *read;
        int64_t sync, relaunch;
    } all[] = {
        {"(1005000, 95000, 5000), (1505000, 95000, 5000)", "(1155000, 45000, 5000)", 50000 + 50000,
         10000},
        {"(1005000, 95000, 5000), (1505000, 95000, 5000)", "(1105000, 95000, 50000)", 50000, 5000},
        {"(1005000, 95000, 5000), (1200000, 100000, 20000), (1505000, 95000, 5000)",
         "(1155000, 45000, 5000)", 50000, 5000},
        {"(1505000, 95000, 5000), (1625000, 95000, 15000), (1720000, 10000, 80000)",
         "(1005000, 195000, 5000)", 50000, 5000 + 4000},
    };
    struct scene s;
    struct prof_capture *capture;
    struct prof_facts f;
    scene_open(&s, "cuda", "gpu");
    scene_second(&s, false, false);
    scene_config(&s, "loop_add_fusion", 8, 256, 32);
    scene_sql(&s, "INSERT INTO string(id, value) VALUES(50, 'cudaLaunchKernel'), "
                  "(53, 'cudaMemcpyAsync')");
    scene_sql(&s,
              "WITH launched(start, duration, lead) AS (VALUES %s) INSERT INTO kernel(start, "
              "duration, stream, config, api_name, api_lead, api_duration, thread) "
              "SELECT start, duration, 1, 1, 50, lead, 4000, 1 FROM launched",
              all[_i].rows);
    scene_sql(&s,
              "WITH read(start, duration, lead) AS (VALUES %s) INSERT INTO transfer(start, "
              "duration, stream, bytes, kind, source_kind, target_kind, api_name, api_lead, "
              "api_duration, thread) SELECT start, duration, 1, 4, 2, 3, 2, 53, lead, 4000, 2 "
              "FROM read",
              all[_i].read);
    s.host = 1750000;
    load(&s, &capture, &f);
    ck_assert_int_eq(f.devices.data[0].slice_ns[PROF_SLICE_SYNC], all[_i].sync);
    ck_assert_int_eq(f.devices.data[0].relaunch_ns, all[_i].relaunch);
    ck_assert_int_eq(sum_of(&f.devices.data[0]), f.end - f.begin);
    unload(capture, &f);
}
END_TEST

/* However many calls there are between two launches, each is time of its own state. */
START_TEST(each_of_many_calls_has_its_state)
{
    enum { PAIRS = 500 };
    struct scene s;
    struct prof_capture *capture;
    struct prof_facts f;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "k", 8, 256, 32);
    scene_kernel(&s, 0, config, 1 * US);
    scene_host(&s, 30 * US);
    for (int i = 0; i < PAIRS; i++) {
        scene_call(&s, "cudaMalloc", 40 * US);
        scene_host(&s, 30 * US);
        scene_call(&s, "cudaFree", 80 * US);
        scene_host(&s, 30 * US);
    }
    scene_kernel(&s, 0, config, 1 * US);
    scene_sync(&s);
    load(&s, &capture, &f);
    const int64_t *slice = f.devices.data[0].slice_ns;
    ck_assert_int_eq(slice[PROF_SLICE_ALLOC], PAIRS * 120 * US);
    ck_assert_int_le(slice[PROF_SLICE_HOST], PAIRS * 62 * US);
    ck_assert_int_eq(sum_of(&f.devices.data[0]), f.end - f.begin);
    unload(capture, &f);
}
END_TEST

/* After a copy that the host waits for, each launch finds the device idle until one is queued. */
START_TEST(a_wait_costs_until_the_host_is_ahead)
{
    struct scene s;
    struct prof_capture *capture;
    struct prof_facts f;
    scene_open(&s, "cuda", "gpu");
    int brief = scene_config(&s, "brief", 8, 256, 32), lasts = scene_config(&s, "long", 8, 256, 32);
    scene_kernel(&s, 0, lasts, 50 * US);
    scene_copy(&s, 0, SCENE_DOWN, SCENE_PINNED, 4096, 2 * US, true);
    for (int i = 0; i < 3; i++)
        scene_kernel(&s, 0, brief, 1 * US);
    scene_kernel(&s, 0, lasts, 50 * US);
    scene_kernel(&s, 0, brief, 1 * US); /* queued */
    scene_host(&s, 60 * US);
    scene_kernel(&s, 0, brief, 1 * US); /* late, for another reason */
    load(&s, &capture, &f);
    const struct prof_shape *copy = NULL;
    for (size_t i = 0; i < f.shapes.count; i++)
        copy = prof_is_copy(&f.shapes.data[i]) ? &f.shapes.data[i] : copy;
    ck_assert_ptr_nonnull(copy);
    int64_t first = copy->after_ns[PROF_SLICE_LAUNCH];
    ck_assert_int_gt(first, 0);
    /* Calls come each 4 us; what they ask for runs for 1 us: 3 us of each are idle. */
    ck_assert_int_eq(copy->catch_up_ns, 3 * 3 * US);
    ck_assert_int_eq(f.devices.data[0].relaunch_ns, first + copy->catch_up_ns);
    unload(capture, &f);
}
END_TEST

/* A kernel that had come to the device before it was idle waits for the device, also where the host
 * is only a little ahead: the way there is what launches on an idle device take. */
START_TEST(what_has_arrived_is_queued)
{
    enum { ALONE = 8, ROW = 10 };
    struct scene s;
    struct prof_capture *capture;
    struct prof_facts f;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "brief", 8, 256, 32);
    s.gap_ns = 7 * US;
    for (int i = 0; i < ALONE; i++) { /* each 1 us from the end of its call of 4 us to its start */
        scene_kernel(&s, 0, config, 1 * US);
        scene_host(&s, 100 * US);
    }
    for (int i = 0; i < ROW; i++)
        scene_kernel(&s, 0, config, 1 * US);
    load(&s, &capture, &f);
    const struct prof_device_facts *d = &f.devices.data[0];
    ck_assert_int_eq(d->launch_way_ns, 1100);
    /* Of the row, the first one finds the device idle, and the next one arrives 3.1 us after it. */
    ck_assert_int_eq(d->slice_ns[PROF_SLICE_DISPATCH], 7 * US - 3100 + (ROW - 2) * 7 * US);
    ck_assert_int_eq(sum_of(d), f.end - f.begin);
    unload(capture, &f);
}
END_TEST

/* Whatever a program does, the states add up and a replay takes as long. */
START_TEST(states_add_up_and_the_replay_reproduces)
{
    srand((unsigned)_i + 1);
    struct scene s;
    struct prof_capture *capture;
    struct prof_facts f;
    struct prof_replay replay;
    static const struct prof_edit nothing = {0};
    int config[4];
    scene_open(&s, _i % 2 ? "opencl" : "cuda", "gpu");
    for (int i = 0; i < 4; i++)
        config[i] = scene_config(&s, i % 2 ? "a" : "b", 1 + rand() % 500, 256, 32);
    for (int i = 0; i < 400; i++) {
        int stream = rand() % 4;
        switch (rand() % 8) {
        case 0:
            scene_copy(&s, stream, 1 + rand() % 2, 1 + rand() % 2, 1 + rand() % 100000,
                       rand() % 50 * US, rand() % 2);
            break;
        case 1:
            scene_host(&s, rand() % 200 * US);
            break;
        case 2:
            scene_sync(&s);
            break;
        case 3:
            scene_call(&s, "cudaMalloc", rand() % 30 * US);
            break;
        case 4:
            scene_fill(&s, stream, 4096, rand() % 5 * US);
            break;
        default:
            scene_kernel(&s, stream, config[rand() % 4], 500 + rand() % 60 * US);
        }
    }
    load(&s, &capture, &f);
    ck_assert_int_eq(sum_of(&f.devices.data[0]), f.end - f.begin);
    struct prof_replayed out = {0};
    ck_assert(prof_replay_open(&replay, &f, NULL, NULL));
    ck_assert(prof_replay_run(&replay, &nothing, &out));
    int64_t base = out.span_ns;
    double off = (double)(base - replay.span_ns) / (double)replay.span_ns;
    ck_assert_msg(off > -0.02 && off < 0.02, "replayed %.3f ms, measured %.3f ms",
                  (double)base / 1e6, (double)replay.span_ns / 1e6);
    prof_replay_close(&replay);
    unload(capture, &f);
}
END_TEST

static void loop(struct scene *s, int config, int steps)
{
    for (int i = 0; i < steps; i++) {
        scene_kernel(s, 0, config, 50 * US);
        scene_kernel(s, 0, config + 1, 50 * US);
        scene_sync(s);
    }
}

/* Start-up with work of its own, a slow first step, then the loop: the loop is judged. */
START_TEST(the_part_that_repeats_is_judged)
{
    struct scene s;
    struct prof_capture *capture;
    struct prof_facts f;
    bool ranges = _i == 1;
    scene_open(&s, "cuda", "gpu");
    int other = scene_config(&s, "probe", 8, 256, 32);
    int config = scene_config(&s, "one", 8, 256, 32);
    scene_config(&s, "two", 8, 256, 32);
    for (int i = 0; i < 7; i++)
        scene_kernel(&s, 0, other, 300 * US);
    scene_sync(&s);
    scene_call(&s, "cuModuleLoadData", 9000 * US);
    loop(&s, config, 1);
    scene_call(&s, "cuModuleLoadData", 7000 * US);
    int64_t begin = s.host;
    for (int i = 0; i < 40; i++) {
        if (ranges && i == 1)
            begin = s.host; /* the first of the ranges is left out, as warm-up */
        if (ranges)
            scene_push(&s, "step");
        loop(&s, config, 1);
        if (ranges)
            scene_pop(&s);
    }
    int64_t end = s.host;
    scene_host(&s, 5000 * US);
    load(&s, &capture, &f);
    ck_assert_int_eq(f.begin, begin);
    ck_assert_int_le(f.end, end);
    ck_assert_int_ge(f.end, end - s.wake_ns);
    ck_assert_int_ge(f.steps, 39);
    ck_assert_int_le(f.steps, 40);
    ck_assert_int_eq(f.step_name != NULL, ranges);
    ck_assert_int_eq(f.devices.data[0].calls[WIRE_CLASS_BUILD].count, 0);
    unload(capture, &f);
}
END_TEST

/* Twenty steps that copy, launch and allocate, with waits in between (or one at the end), and then
 * what a program does when its loop is over. */
static void run_steps(struct scene *s, bool waits, int64_t kernel_ns)
{
    int config = scene_config(s, "k", 8, 256, 32);
    for (int i = 0; i < 20; i++) {
        scene_push(s, "step");
        scene_call(s, "cudaMalloc", 5 * US);
        for (int k = 0; k < 3; k++)
            scene_copy(s, 0, SCENE_UP, SCENE_PINNED, 4096, 1 * US, false);
        for (int k = 0; k < 4; k++)
            scene_kernel(s, 0, config, kernel_ns);
        scene_pop(s);
        for (int k = 0; waits && k < 2; k++)
            scene_sync(s);
    }
    scene_sync(s);
    for (int i = 0; i < 7; i++)
        scene_call(s, "cudaMalloc", 5 * US);
    scene_kernel(s, 0, config, kernel_ns);
    scene_sync(s);
}

/* How far the device is behind the host decides no count: neither of work that was launched before
 * the part that repeats and is done in it, nor of calls after it. */
START_TEST(counts_do_not_follow_the_device)
{
    static const int64_t kernel_ns[] = {1 * US, 20 * US, 2000 * US};
    for (size_t i = 0; i < sizeof kernel_ns / sizeof *kernel_ns; i++) {
        struct scene s;
        struct prof_capture *capture;
        struct prof_facts f;
        scene_open(&s, "cuda", "gpu");
        run_steps(&s, _i, kernel_ns[i]);
        load(&s, &capture, &f);
        const struct prof_device_facts *d = &f.devices.data[0];
        ck_assert_int_eq(d->steps, 19);
        ck_assert_int_eq(d->kernels, 19 * 4);
        ck_assert_int_eq(d->copies, 19 * 3);
        ck_assert_int_eq(d->calls[WIRE_CLASS_ALLOC].count, 19);
        ck_assert_int_eq(d->calls[WIRE_CLASS_SYNC].count, _i ? 19 * 2 : 0);
        for (size_t k = 0; k < f.shapes.count; k++) {
            const struct prof_shape *shape = &f.shapes.data[k];
            ck_assert_int_eq(shape->count, prof_is_copy(shape) ? 19 * 3 : 19 * 4);
            ck_assert_int_eq(shape->sum_ns,
                             shape->count * (prof_is_copy(shape) ? 1 * US : kernel_ns[i]));
            ck_assert_int_eq(shape->packable, prof_is_copy(shape) ? 19 * 2 : 0);
        }
        ck_assert_int_eq(sum_of(d), prof_facts_window_ns(&f));
        unload(capture, &f);
    }
}
END_TEST

/* The time of a break is not the phase's; what the iteration launches is: where the host stood for
 * a while, as many launches count as where it did not. */
START_TEST(a_break_takes_no_count)
{
    struct scene s;
    struct prof_capture *capture;
    struct prof_facts f;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "k", 8, 256, 32), last = scene_config(&s, "last", 8, 256, 32);
    for (int i = 0; i < 40; i++) {
        for (int k = 0; k < 3; k++) {
            if (_i && i % 20 == 10 && k == 1)
                scene_host(&s, 500000 * US);
            scene_kernel(&s, 0, config, 20 * US);
        }
        scene_kernel(&s, 0, last, 20 * US);
    }
    scene_sync(&s);
    load(&s, &capture, &f);
    ck_assert_int_eq(f.phase->iterations.source, PROF_ITERATION_LAUNCHES);
    ck_assert_int_lt(prof_facts_window_ns(&f), 100000 * US);
    const struct prof_device_facts *d = &f.devices.data[0];
    ck_assert_int_eq(d->steps, 39);
    ck_assert_int_eq(d->kernels, 39 * 4);
    unload(capture, &f);
}
END_TEST

/* What findings tell of it is the same, for the devices that did something. */
START_TEST(findings_tell_the_waterfall)
{
    struct scene s;
    struct prof_capture *capture;
    struct prof_facts f;
    struct prof_findings findings;
    struct prof_error err = {0};
    scene_open(&s, "cuda", "gpu");
    loop(&s, scene_config(&s, "one", 8, 256, 32), 40);
    load(&s, &capture, &f);
    ck_assert(!prof_findings(capture, NULL, &findings, &err));
    ck_assert_uint_eq(findings.waterfall_count, 1);
    int64_t sum = 0;
    for (int i = 0; i < PROF_SLICES; i++) {
        ck_assert_int_eq(findings.waterfalls[0].ns[i], f.devices.data[0].slice_ns[i]);
        sum += findings.waterfalls[0].ns[i];
        ck_assert(prof_slice_name(i)[0] && prof_slice_text(i)[0]);
    }
    ck_assert_int_eq(sum, findings.window_ns);
    prof_findings_free(&findings);
    unload(capture, &f);
}
END_TEST

START_TEST(filters_that_leave_work_out_are_not_judged)
{
    struct scene s;
    struct prof_findings findings;
    struct prof_error err = {0};
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "one", 8, 256, 32);
    scene_config(&s, "two", 8, 256, 32);
    loop(&s, config, 40);
    struct prof_capture *capture = scene_close(&s);
    struct prof_filter filter = {.kernel = "one"};
    ck_assert(!prof_findings(capture, &filter, &findings, &err));
    ck_assert_ptr_nonnull(findings.why_none);
    ck_assert_uint_eq(findings.count, 0);
    prof_findings_free(&findings);
    filter = (struct prof_filter){.begin_ns = 1, .end_ns = prof_end_ns(capture)};
    ck_assert(!prof_findings(capture, &filter, &findings, &err));
    ck_assert_ptr_null(findings.why_none);
    ck_assert_uint_gt(findings.count, 0);
    scene_done(capture, &findings);
}
END_TEST

START_TEST(what_is_judged_lies_within_the_filter)
{
    struct scene s;
    struct prof_findings findings;
    struct prof_error err = {0};
    scene_open(&s, "cuda", "gpu");
    loop(&s, scene_config(&s, "one", 8, 256, 32), 40);
    struct prof_capture *capture = scene_close(&s);
    int64_t end = prof_end_ns(capture);
    const struct prof_filter filters[] = {{.end_ns = end / 2},
                                          {.begin_ns = end / 2},
                                          {.begin_ns = 1, .end_ns = 2},
                                          {.begin_ns = end - 1, .end_ns = end},
                                          {.begin_ns = end + 5}};
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        int64_t last = filters[i].end_ns ? filters[i].end_ns : end;
        ck_assert(!prof_findings(capture, &filters[i], &findings, &err));
        ck_assert_int_ge(findings.window_ns, 0);
        ck_assert_int_le(findings.begin_ns + findings.window_ns, last);
        ck_assert_int_ge(findings.begin_ns + findings.window_ns,
                         filters[i].begin_ns < last ? filters[i].begin_ns : last);
        prof_findings_free(&findings);
    }
    prof_close(capture);
}
END_TEST

CHECK_MAIN_LOOPS("waterfall", {each_instant_has_its_state, 1},
                 {what_the_host_does_between_calls, 1}, {only_what_follows_a_read_waited_for_it, 4},
                 {threads_compile_each_for_themselves, 1}, {compiling_ends_with_the_run, 2},
                 {each_of_many_calls_has_its_state, 1}, {a_wait_costs_until_the_host_is_ahead, 1},
                 {what_has_arrived_is_queued, 1}, {states_add_up_and_the_replay_reproduces, 20},
                 {the_part_that_repeats_is_judged, 2}, {counts_do_not_follow_the_device, 2},
                 {a_break_takes_no_count, 2}, {findings_tell_the_waterfall, 1},
                 {filters_that_leave_work_out_are_not_judged, 1},
                 {what_is_judged_lies_within_the_filter, 1})
