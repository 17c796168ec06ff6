/* What is slow in a recording with --ring, and what is not: iterations and collectives of made up
 * lengths, thousands of them, whose times lie ahead of the clock so that nothing depends on it. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/store/store.h"
#include "tests/check_main.h"
#include "tests/ingest/harness.h"

#define MS 1000000ull
#define NUMBER(sql) run_number(&run, sql)
#define ALL_REASONS ((1u << PROF_RING_SIGNAL) - 1)

/* A program's iterations. */
struct iterations {
    const char *name;
    int count;
    uint64_t usual_ns;
    double jitter;    /* share of the usual length, evenly */
    double tail;      /* so much longer are the longest of those ... */
    int tail_every;   /* ... that come every so often; 0 = none */
    int slow_every;   /* 0 = none */
    uint64_t slow_ns; /* in all */
    int warm_up;      /* of five times the usual length, before */
    int others;       /* ranges of the name, each in a domain of its own, before these */
    const struct iterations *then; /* NULL = nothing */
};

static uint64_t random_state = 88172645463325252ull;

static double random_share(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (double)(random_state >> 11) / 9007199254740992.0;
}

static void emit_iterations(void *argument)
{
    const struct iterations *it = argument;
    uint64_t at = prof_now_ns() + 3600000 * MS;
    for (int i = 0; i < it->others; i++) {
        char domain[32];
        snprintf(domain, sizeof domain, "domain %d", i);
        uint32_t id = collector_text(domain);
        struct wire_range push = {.head = {sizeof push, WIRE_RANGE_PUSH, 0, id},
                                  .time = at,
                                  .message = collector_text(it->name)};
        struct wire_range_end pop = {.head = {sizeof pop, WIRE_RANGE_POP, 0, id}, .time = at + MS};
        collector_emit(&push);
        collector_emit(&pop);
        at += 2 * MS;
    }
    for (int i = -it->warm_up; i < it->count; i++) {
        uint64_t length = (uint64_t)((double)it->usual_ns * (1 + it->jitter * random_share()));
        if (i < 0)
            length *= 5;
        else if (it->slow_every && i % it->slow_every == it->slow_every - 1)
            length = it->slow_ns;
        else if (it->tail_every && i % it->tail_every == 0)
            length += (uint64_t)((double)it->usual_ns * it->tail * random_share());
        struct wire_range push = {
            .head = {sizeof push, WIRE_RANGE_PUSH, 0, 0},
            .time = at,
            .message = collector_text(it->name),
        };
        struct wire_range_end pop = {.head = {sizeof pop, WIRE_RANGE_POP, 0, 0},
                                     .time = at + length};
        collector_emit(&push);
        collector_emit(&pop);
        at = pop.time + 10000;
    }
    if (it->then)
        emit_iterations((void *)(uintptr_t)it->then);
}

static int count_ranges(const struct iterations *it)
{
    return it ? it->count + it->warm_up + it->others + count_ranges(it->then) : 0;
}

static unsigned long long only_longer_ns; /* the triggers that count */

static int64_t count_triggers(const struct iterations *it, const struct prof_ingest_ring *ring)
{
    struct run run;
    run_prepare(&run, NULL);
    run.ring = ring;
    run_start(&run, emit_iterations, (void *)(uintptr_t)it);
    run_ingest(&run, 1000);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM range"), count_ranges(it));
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM ring_trigger WHERE reason<>'slow' OR thread IS "
                            "NULL OR name IS NULL OR duration<=threshold OR usual>threshold"),
                     0);
    char sql[80];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM ring_trigger WHERE duration>%llu",
             only_longer_ns);
    int64_t count = NUMBER(sql);
    run_done(&run);
    return count;
}

static const struct prof_ingest_ring by_default = {.ns = 3600000 * MS, .reasons = ALL_REASONS};

/* Of ten thousand that scatter as iterations do none is slow. */
START_TEST(normal_iterations)
{
    static const struct iterations programs[] = {
        {"step", 10000, 20 * MS, 0.1, 1, 100, 0, 0, 10, 0, NULL}, /* steady, with a tail */
        {"Step#1", 10000, 3 * MS, 0.5, 6, 20, 0, 0, 0, 0, NULL},  /* short */
        {"iteration 7", 10000, 400 * MS, 0.02, 1.5, 10, 0, 0, 40, 0, NULL}, /* long */
        {"batch", 10000, 100 * MS, 1.5, 0, 0, 0, 0, 0, 0, NULL},            /* of all lengths */
    };
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        ck_assert_int_eq(count_triggers(&programs[i], &by_default), 0);
}
END_TEST

/* All of a hundred slow ones are. */
START_TEST(slow_iterations)
{
    static const struct iterations programs[] = {
        {"step", 10000, 20 * MS, 0.1, 1, 100, 100, 80 * MS, 10, 0, NULL},
        {"Step#1", 10000, 3 * MS, 0.5, 6, 40, 100, 60 * MS, 0, 0, NULL},
        {"iteration 7", 10000, 400 * MS, 0.02, 1.5, 10, 100, 3000 * MS, 0, 0, NULL},
        {"batch", 10000, 20 * MS, 0.1, 6, 5, 100, 210 * MS, 0, 0, NULL}, /* on a busy machine */
    };
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        ck_assert_int_eq(count_triggers(&programs[i], &by_default), 100);
}
END_TEST

/* A machine that becomes busy makes all iterations longer, and some much longer: what was slow
 * before is slow all the same. A program whose iterations become longer for good has no slow ones.
 */
START_TEST(busier_than_before)
{
    static const struct iterations busy = {"step", 10000,    27 * MS, 0.3, 4,   5,
                                           100,    220 * MS, 0,       0,   NULL},
                                   longer = {"step", 5000, 35 * MS, 0.1, 0, 0, 0, 0, 0, 0, NULL};
    struct iterations it = {"step", 2000, 20 * MS, 0.1, 1, 100, 100, 220 * MS, 0, 0, &busy};
    /* The first busy ones are slow by those before them; no other is as long as the planted ones.
     */
    only_longer_ns = 200 * MS;
    ck_assert_int_eq(count_triggers(&it, &by_default), 120);
    only_longer_ns = 0;
    it.slow_every = 0;
    it.then = &longer;
    ck_assert_int_eq(count_triggers(&it, &by_default), 0);
}
END_TEST

START_TEST(thresholds_and_names_are_as_given)
{
    struct prof_ingest_ring ring = by_default;
    struct iterations it = {"step", 1000, MS, 0.1, 0, 0, 100, 5 * MS, 0, 0, NULL};
    ck_assert_int_eq(count_triggers(&it, &ring), 0); /* 4 ms more are nothing */
    ring.times = 3;
    ck_assert_int_eq(count_triggers(&it, &ring), 10);
    ring.times = 6;
    ck_assert_int_eq(count_triggers(&it, &ring), 0);
    ring.times = 1;
    ring.sigmas = 1000;
    ck_assert_int_eq(count_triggers(&it, &ring), 0);
    ring = by_default;
    it.slow_ns = 100 * MS;
    it.name = "request";
    ck_assert_int_eq(count_triggers(&it, &ring), 0);
    ring.iteration = "request";
    ck_assert_int_eq(count_triggers(&it, &ring), 10);
    ring.iteration = "request@other";
    ck_assert_int_eq(count_triggers(&it, &ring), 0);
    ring.iteration = NULL;
    ring.reasons = 1u << PROF_RING_END;
    it.name = "step";
    ck_assert_int_eq(count_triggers(&it, &ring), 0);
}
END_TEST

/* Threads and domains that come and go for days leave room for those that are there. */
START_TEST(ever_new_places_of_iterations)
{
    struct iterations it = {
        .name = "step", .count = 1000, .usual_ns = MS, .slow_every = 100, .slow_ns = 100 * MS};
    it.others = 5000;
    ck_assert_int_eq(count_triggers(&it, &by_default), 10);
}
END_TEST

/* A launch of 2 ms each 3 ms; of each kernel one takes 200 ms. */
static void emit_collectives(void *unused)
{
    (void)unused;
    uint64_t at = prof_now_ns();
    uint32_t stream = define_stream(0), launch = collector_text("cudaLaunchKernel");
    uint32_t configs[] = {define_config("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 24, 512),
                          define_config("gemm", 24, 512)};
    for (unsigned i = 0; i < 2000; i++) {
        uint64_t length = i / 2 == 700 ? 200 * MS : 2 * MS + i % 7 * 1000;
        struct wire_kernel kernel = {.head = {sizeof kernel, WIRE_KERNEL, 0, stream},
                                     .correlation = i + 1,
                                     .times = {0, 0, at + 5000, at + 5000 + length},
                                     .config = configs[i % 2]};
        collector_count(WIRE_COUNT_LAUNCH_CALLED, 1);
        emit_call(i + 1, at, at + 4000, launch, WIRE_EXPECTS_ONE, WIRE_CLASS_LAUNCH);
        collector_emit(&kernel);
        at += length + MS;
    }
}

START_TEST(late_collectives)
{
    struct run run;
    run_prepare(&run, NULL);
    run.ring = &by_default;
    run_start(&run, emit_collectives, NULL);
    run_ingest(&run, 1000);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM kernel"), 2000);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM ring_trigger"), 1);
    ck_assert_str_eq(run_text(&run, "SELECT reason FROM ring_trigger"), "collective");
    ck_assert_int_eq(NUMBER("SELECT duration FROM ring_trigger"), 200 * MS);
    /* What the ring still had is summed up at the end. */
    ck_assert_int_eq(NUMBER("SELECT sum(count) FROM ring_rollup WHERE kind=1"), 2000);
    ck_assert_int_eq(NUMBER("SELECT sum(count) FROM ring_rollup WHERE kind=5"), 2000);
    ck_assert_int_eq(NUMBER("SELECT count(DISTINCT name) FROM ring_rollup WHERE kind=1"), 2);
    ck_assert_int_eq(NUMBER("SELECT sum(sum) FROM ring_rollup WHERE kind=1") -
                         NUMBER("SELECT sum(duration) FROM kernel"),
                     0);
    ck_assert_int_eq(NUMBER("SELECT max(max) FROM ring_rollup WHERE kind=1"), 200 * MS);
    run_done(&run);
}
END_TEST

/* Bytes and durations of damaged records, whose sums are no 64-bit numbers. */
static void emit_huge_work(void *unused)
{
    (void)unused;
    uint32_t stream = define_stream(0), call = collector_text("clEnqueueFillBuffer");
    uint64_t at = prof_now_ns();
    for (unsigned i = 0; i < 4; i++) {
        struct wire_memset fill = {.head = {sizeof fill, WIRE_MEMSET, 0, stream},
                                   .correlation = i + 1,
                                   .times = {0, 0, at, i < 2 ? at + 10 : INT64_MAX},
                                   .bytes = INT64_MAX};
        collector_count(WIRE_COUNT_MEMSET_CALLED, 1);
        emit_call(i + 1, at - 20, at - 10, call, WIRE_EXPECTS_ONE, WIRE_CLASS_MEMSET);
        collector_emit(&fill);
    }
    run_await_reader();
}

START_TEST(sums_beyond_64_bits)
{
    static const struct prof_ingest_ring rings[] = {{.ns = 3600000 * MS}, {.ns = MS}};
    for (size_t i = 0; i < sizeof rings / sizeof *rings; i++) {
        struct run run;
        run_prepare(&run, NULL);
        run.ring = &rings[i];
        run_start(&run, emit_huge_work, NULL);
        run_ingest(&run, 1000);
        ck_assert_int_eq(NUMBER("SELECT sum(count) FROM ring_rollup WHERE kind=3"), 4);
        ck_assert_int_eq(NUMBER("SELECT max(bytes) FROM ring_rollup WHERE kind=3"), INT64_MAX);
        run_done(&run);
    }
}
END_TEST

/* Kernels of a second that is over for long, read together with the first one of a later second. */
static void emit_late_kernels(void *unused)
{
    (void)unused;
    uint64_t early = prof_now_ns() - 4000 * MS, late = early + 3600000 * MS;
    uint32_t stream = define_stream(0);
    uint32_t configs[] = {define_config("reduce", 1, 1), define_config("gemm", 1, 1)};
    emit_launch(1, early, stream, configs[0]);
    emit_launch(2, early, stream, configs[1]);
    run_await_reader();
    emit_launch(3, early, stream, configs[0]);
    emit_launch(4, late, stream, configs[1]);
    run_await_reader();
}

START_TEST(late_kernels_count_once)
{
    static const struct prof_ingest_ring ring = {.ns = MS};
    struct run run;
    run_prepare(&run, NULL);
    run.ring = &ring;
    run_start(&run, emit_late_kernels, NULL);
    run_ingest(&run, 50000); /* both of the second part in one step */
    ck_assert_int_eq(NUMBER("SELECT sum(count) FROM ring_rollup WHERE kind=1"), 4);
    ck_assert_int_eq(NUMBER("SELECT sum(sum) FROM ring_rollup WHERE kind=1"), 400);
    run_done(&run);
}
END_TEST

static void keep(struct prof_ingest *ingest, const struct run *run, const char *name)
{
    struct prof_error err = {0};
    struct prof_store *window;
    char path[120], why[200];
    snprintf(path, sizeof path, "%s/%s", run->folder, name);
    ck_assert_int_eq(prof_ingest_trigger(ingest, PROF_RING_CTL, &err), PROF_OK);
    ck_assert_int_eq(prof_ingest_keep(ingest, path, &window, why, sizeof why, &err), PROF_OK);
    prof_store_close(window);
}

static void fail_step(struct prof_ingest *ingest, const struct run *run)
{
    struct prof_error err = {0};
    char away[100];
    snprintf(away, sizeof away, "%s.away", run->directory);
    ck_assert_int_eq(rename(run->directory, away), 0);
    fclose(fopen(run->directory, "w"));
    ck_assert_int_ne(prof_ingest_step(ingest, NULL, &err), PROF_OK);
    ck_assert_int_eq(remove(run->directory), 0);
    ck_assert_int_eq(rename(away, run->directory), 0);
}

static struct prof_ingest *open_ingest(const struct run *run, struct prof_store **store)
{
    struct prof_error err = {0};
    struct prof_ingest *ingest;
    struct prof_ingest_about about = {
        .command = "test", .directory = "/", .start_mono_ns = 1, .ring = run->ring};
    ck_assert_int_eq(prof_store_create(run->capture, false, store, &err), PROF_OK);
    ck_assert_int_eq(prof_ingest_open(*store, run->directory, &about, &ingest, &err), PROF_OK);
    return ingest;
}

static void finish_ingest(struct prof_ingest *ingest, struct prof_store *store)
{
    struct prof_error err = {0};
    ck_assert_int_eq(prof_ingest_finish(ingest, "complete", true, &err), PROF_OK);
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_ingest_close(ingest);
    prof_store_close(store);
}

/* Steps that fail leave the ring a ring, the first one too, and windows their numbers. */
START_TEST(steps_that_fail)
{
    struct run run;
    struct prof_error err = {0};
    struct prof_store *store;
    run_prepare(&run, NULL);
    run.ring = &by_default;
    struct prof_ingest *ingest = open_ingest(&run, &store);
    fail_step(ingest, &run);
    ck_assert_int_eq(prof_ingest_step(ingest, NULL, &err), PROF_OK);
    keep(ingest, &run, "a");
    fail_step(ingest, &run);
    keep(ingest, &run, "b");
    finish_ingest(ingest, store);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM capture_health WHERE code='capture_ring'"), 1);
    ck_assert_str_eq(run_text(&run, "SELECT group_concat(window) FROM ring_trigger"), "1,2");
    run_done(&run);
}
END_TEST

/* The window that is due within 10 s, as `name`; its number of ranges longer than 50 ms.
 * -1: none is due. */
static int64_t slow_ranges_of_window(struct prof_ingest *ingest, const struct run *run,
                                     const char *name)
{
    struct prof_error err = {0};
    struct prof_store *store;
    struct run window = *run;
    char why[200];
    for (int i = 0; !prof_ingest_window_due(ingest); i++) {
        if (i == 1000)
            return -1;
        ck_assert_int_eq(prof_ingest_step(ingest, NULL, &err), PROF_OK);
        usleep(10000);
    }
    snprintf(window.capture, sizeof window.capture, "%s/%s", run->folder, name);
    ck_assert_int_eq(prof_ingest_keep(ingest, window.capture, &store, why, sizeof why, &err),
                     PROF_OK);
    prof_store_close(store);
    return run_number(&window, "SELECT count(*) FROM range WHERE duration>50000000");
}

/* perfkit was stopped for longer than a ring, with a window due. */
START_TEST(a_window_that_is_overdue)
{
    static const struct prof_ingest_ring ring = {.ns = 100 * MS, .reasons = ALL_REASONS};
    struct iterations it = {
        .name = "step", .count = 150, .usual_ns = MS, .slow_every = 100, .slow_ns = 100 * MS};
    struct run run;
    struct prof_error err = {0};
    struct prof_store *store;
    run_prepare(&run, NULL);
    run.ring = &ring;
    run_start(&run, emit_iterations, &it);
    ck_assert_int_eq(waitpid(run.target, &run.wait_status, 0), run.target);
    struct prof_ingest *ingest = open_ingest(&run, &store);
    ck_assert_int_eq(prof_ingest_step(ingest, NULL, &err), PROF_OK);
    usleep(300000);
    ck_assert_int_eq(prof_ingest_step(ingest, NULL, &err), PROF_OK);
    ck_assert_int_eq(slow_ranges_of_window(ingest, &run, "a"), 1);
    ck_assert_int_eq(prof_ingest_step(ingest, NULL, &err), PROF_OK);
    finish_ingest(ingest, store);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM range WHERE duration>50000000"), 0);
    run_done(&run);
}
END_TEST

static int open_until[2];

static void emit_open_iteration(void *argument)
{
    char byte;
    emit_iterations(argument);
    struct wire_range push = {.head = {sizeof push, WIRE_RANGE_PUSH, 0, 0},
                              .time = prof_now_ns() - 5000 * MS,
                              .message = collector_text("step")};
    collector_emit(&push);
    ck_assert_int_eq(read(open_until[0], &byte, 1), 1);
    struct wire_range_end pop = {.head = {sizeof pop, WIRE_RANGE_POP, 0, 0}, .time = prof_now_ns()};
    collector_emit(&pop);
}

/* A slow iteration that has not ended when it is kept is kept whole when it has. */
START_TEST(a_window_before_the_end_of_an_iteration)
{
    static const struct prof_ingest_ring ring = {.ns = 1200 * MS, .reasons = ALL_REASONS};
    struct iterations it = {.name = "step", .count = 100, .usual_ns = MS};
    struct run run;
    struct prof_store *store;
    ck_assert_int_eq(pipe(open_until), 0);
    run_prepare(&run, NULL);
    run.ring = &ring;
    run_start(&run, emit_open_iteration, &it);
    struct prof_ingest *ingest = open_ingest(&run, &store);
    ck_assert_int_eq(slow_ranges_of_window(ingest, &run, "a"), 0);
    ck_assert_int_eq(write(open_until[1], "", 1), 1);
    ck_assert_int_eq(waitpid(run.target, &run.wait_status, 0), run.target);
    ck_assert_int_eq(slow_ranges_of_window(ingest, &run, "b"), 1);
    finish_ingest(ingest, store);
    ck_assert_str_eq(run_text(&run, "SELECT group_concat(window) FROM ring_trigger"), "1,2");
    close(open_until[0]);
    close(open_until[1]);
    run_done(&run);
}
END_TEST

CHECK_MAIN("ring", normal_iterations, slow_iterations, busier_than_before,
           thresholds_and_names_are_as_given, ever_new_places_of_iterations, late_collectives,
           sums_beyond_64_bits, late_kernels_count_once, steps_that_fail, a_window_that_is_overdue,
           a_window_before_the_end_of_an_iteration)
