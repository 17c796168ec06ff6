/* Who allocates: peak holders, leaks told from state, churn and growth by call path. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/include/prof_memory.h"
#include "tests/analysis/fixture.h"

#define STEPS 10
#define STEP_NS 50000
enum { TRAIN = 10, STEP, MALLOC, FREE };

/* A capture as SQL, written by a program of one thread. */
struct program {
    FILE *out;
    char *text;
    size_t size;
};

static void begin(struct program *p)
{
    p->out = open_memstream(&p->text, &p->size);
    ck_assert_ptr_nonnull(p->out);
    fputs("INSERT INTO string(id, value) VALUES(10, 'train'), (11, 'step'), (12, 'cudaMalloc'), "
          "(13, 'cudaFree'); UPDATE device SET memory_bytes = 1000000;",
          p->out);
}

static struct prof_capture *end(struct program *p)
{
    fclose(p->out);
    struct prof_capture *capture = fixture_with_base(p->text);
    free(p->text);
    return capture;
}

static void range(struct program *p, int name, int begin_ns, int end_ns, int depth)
{
    fprintf(p->out,
            "INSERT INTO range(start, duration, thread, name, depth) VALUES(%d, %d, 1, %d, %d);",
            begin_ns, end_ns - begin_ns, name, depth);
}

static void call(struct program *p, int name, int start, int duration)
{
    fprintf(p->out,
            "INSERT INTO api_call(start, duration, thread, name, source) VALUES(%d, %d, 1, %d, 1);",
            start, duration, name);
}

/* kind 3 device, 2 pinned; until < 0: never freed. The calls take 10 ns each. */
static void memory(struct program *p, int start, int until, int bytes, int kind)
{
    call(p, MALLOC, start - 5, 10);
    if (until >= 0)
        call(p, FREE, until - 5, 10);
    fprintf(p->out,
            "INSERT INTO allocation(process, start, \"end\", bytes, kind, thread, end_thread, "
            "device) VALUES(1, %d, nullif(%d, -1), %d, %d, 1, 1, 1);",
            start, until < 0 ? -1 : until, bytes, kind);
}

static const struct prof_memory_site *site(const struct prof_memory_profile *m, const char *path,
                                           int kind)
{
    for (size_t i = 0; i < m->site_count; i++) {
        if (!strcmp(m->sites[i].path, path) && m->sites[i].kind == kind)
            return &m->sites[i];
    }
    ck_abort_msg("nothing allocates at %s", path);
    return NULL;
}

/* Ten steps: weights before them, a cache that is full after three, 1000 bytes that every step
 * forgets, and a work space that every step frees. */
static struct prof_capture *training(void)
{
    struct program p;
    begin(&p);
    range(&p, TRAIN, 1000, 10000 + STEPS * STEP_NS, 0);
    memory(&p, 2000, 900000, 400000, 3);
    memory(&p, 2500, 900000, 7000, 2);
    for (int i = 0; i < STEPS; i++) {
        int at = 10000 + i * STEP_NS;
        range(&p, STEP, at, at + STEP_NS - 100, 1);
        memory(&p, at + 1000, -1, 1000, 3);
        memory(&p, at + 2000, at + 3000, 50000, 3);
    }
    return end(&p);
}

START_TEST(a_leak_is_found_where_it_is_made)
{
    struct prof_capture *c = training();
    struct prof_memory_profile m;
    ck_ok(prof_memory_profile(c, NULL, &m, &err));
    ck_assert_ptr_null(m.why_none);
    ck_assert_str_eq(m.step_name, "step");
    ck_assert_int_eq(m.steps, STEPS - 1);
    const struct prof_memory_site *in_step = site(&m, "train > step > cudaMalloc", 3);
    ck_assert_int_eq(in_step->verdict, PROF_MEMORY_LEAK);
    ck_assert_str_eq(in_step->name, "cudaMalloc");
    ck_assert_int_eq(in_step->use.kept_bytes, STEPS * 1000);
    ck_assert_int_eq(in_step->steps_keeping, STEPS - 1);
    ck_near(in_step->growth_bytes, 1000);
    const struct prof_memory_site *weights = site(&m, "train > cudaMalloc", 3);
    ck_assert_int_eq(weights->verdict, PROF_MEMORY_FREED);
    ck_assert_int_eq(weights->use.held_bytes, 400000);
    ck_assert_ptr_eq(weights, &m.sites[0]);
    prof_memory_profile_free(&m);
    prof_close(c);
}
END_TEST

/* The forgotten blocks and the buffers that live for four steps are all freed when the steps are
 * over: only the first were kept by all of the run. */
START_TEST(what_is_freed_in_the_end_was_kept_too)
{
    enum { AFTER = 10000 + (STEPS + 1) * STEP_NS };
    struct program p;
    begin(&p);
    for (int i = 0; i < STEPS; i++) {
        int at = 10000 + i * STEP_NS;
        range(&p, STEP, at, at + STEP_NS - 100, 0);
        memory(&p, at + 1000, AFTER, 1000, 3);
        range(&p, TRAIN, at + 1500, at + 2500, 1);
        memory(&p, at + 2000, i + 4 < STEPS ? at + 4 * STEP_NS + 3000 : AFTER, 5000, 3);
    }
    struct prof_capture *c = end(&p);
    struct prof_memory_profile m;
    ck_ok(prof_memory_profile(c, NULL, &m, &err));
    ck_assert_str_eq(m.step_name, "step");
    const struct prof_memory_site *forgotten = site(&m, "step > cudaMalloc", 3);
    ck_assert_int_eq(forgotten->verdict, PROF_MEMORY_LEAK);
    ck_assert_int_eq(forgotten->use.kept_count, STEPS);
    ck_near(forgotten->growth_bytes, 1000);
    const struct prof_memory_site *turns = site(&m, "step > train > cudaMalloc", 3);
    ck_assert_int_eq(turns->verdict, PROF_MEMORY_FREED);
    ck_assert_int_eq(turns->use.kept_count, 0);
    prof_memory_profile_free(&m);
    prof_close(c);
}
END_TEST

START_TEST(the_peak_is_shared_out)
{
    struct prof_capture *c = training();
    struct prof_memory_profile m;
    ck_ok(prof_memory_profile(c, NULL, &m, &err));
    const struct prof_memory_place *gpu = &m.places[0];
    ck_assert_int_eq(gpu->kind, -1);
    ck_assert(!gpu->host);
    ck_assert_int_eq(gpu->peak_bytes, 400000 + STEPS * 1000 + 50000);
    ck_assert_int_eq(gpu->peak_ns, 10000 + (STEPS - 1) * STEP_NS + 2000);
    ck_assert_int_eq(gpu->capacity_bytes, 1000000);
    ck_near(gpu->growth_bytes, 1000);
    ck_assert_int_eq(m.places[1].kind, 3);
    ck_assert_int_eq(m.places[1].use.held_bytes, gpu->peak_bytes);
    ck_assert(m.places[2].host);
    ck_assert_int_eq(m.places[2].peak_bytes, 7000);
    int64_t held = 0;
    for (size_t i = 0; i < m.site_count; i++)
        held += m.sites[i].host ? 0 : m.sites[i].use.held_bytes;
    ck_assert_int_eq(held, gpu->peak_bytes);
    struct prof_flame f;
    ck_ok(prof_flame(c, NULL, PROF_FLAME_HELD, &f, &err));
    ck_assert_int_eq(f.nodes[0].total, gpu->peak_bytes + 7000);
    prof_flame_free(&f);
    ck_ok(prof_flame(c, NULL, PROF_FLAME_ALLOCATED, &f, &err));
    ck_assert_int_eq(f.nodes[0].total, 407000 + STEPS * 51000);
    prof_flame_free(&f);
    prof_memory_profile_free(&m);
    prof_close(c);
}
END_TEST

START_TEST(what_lives_briefly_has_its_price)
{
    struct prof_capture *c = training();
    struct prof_memory_profile m;
    ck_ok(prof_memory_profile(c, NULL, &m, &err));
    const struct prof_memory_site *in_step = site(&m, "train > step > cudaMalloc", 3);
    ck_assert_int_eq(in_step->use.brief_count, STEPS);
    ck_assert_int_eq(in_step->use.brief_bytes, STEPS * 50000);
    ck_assert_int_eq(in_step->use.brief_call_ns, STEPS * 20);
    ck_near(in_step->lifetime_median_ns, 1000);
    ck_assert_int_eq(m.places[0].lifetime_ns.count, STEPS + 1);
    const struct prof_memory_longest *longest = &m.places[0].longest[9]; /* 512 ns to 1.02 us */
    ck_assert_int_eq(longest->lived_ns, 1000);
    ck_assert_int_eq((longest->start_ns - 10000) % STEP_NS, 2000);
    ck_assert_int_eq(m.places[0].longest[8].start_ns, 0);
    prof_memory_profile_free(&m);
    prof_close(c);
}
END_TEST

/* A cache that is full after three of ten steps keeps its memory, and is no leak. */
START_TEST(a_cache_that_fills_is_state)
{
    struct program p;
    begin(&p);
    for (int i = 0; i < STEPS; i++) {
        int at = 10000 + i * STEP_NS;
        range(&p, STEP, at, at + STEP_NS - 100, 0);
        if (i < 4)
            memory(&p, at + 1000, -1, 1000, 3);
    }
    struct prof_capture *c = end(&p);
    struct prof_memory_profile m;
    ck_ok(prof_memory_profile(c, NULL, &m, &err));
    ck_assert_int_eq(site(&m, "step > cudaMalloc", 3)->verdict, PROF_MEMORY_STATE);
    ck_assert_int_eq(site(&m, "step > cudaMalloc", 3)->use.kept_bytes, 4000);
    ck_near(m.places[0].growth_bytes, 125); /* pairs of steps: 500, 250, 0, 0 */
    prof_memory_profile_free(&m);
    prof_close(c);
}
END_TEST

/* Two phases, each with memory of its own that is there before its steps: nothing grows. Where it
 * leaks, the steps of the second forget 1000 bytes each: it is named. */
static void two_phases(bool leaks)
{
    enum { TEST = 14, LENGTH = STEP_NS / 2, SECOND = 20000 + (STEPS + 1) * LENGTH };
    struct program p;
    begin(&p);
    fputs("INSERT INTO string(id, value) VALUES(14, 'test');", p.out);
    for (int k = 0; k < 2; k++) {
        int from = k ? SECOND : 10000, over = from + STEPS * LENGTH;
        range(&p, k ? TEST : TRAIN, from - 5000, over + 3000, 0);
        memory(&p, from - 4000, over + 2000, k ? 300000 : 1000, 3);
        for (int i = 0; i < STEPS; i++) {
            int at = from + i * LENGTH;
            range(&p, STEP, at, at + LENGTH - 100, 1);
            memory(&p, at + 2000, at + 3000, 50000, 3);
            if (k && leaks)
                memory(&p, at + 4000, -1, 1000, 3);
        }
    }
    struct prof_capture *c = end(&p);
    struct prof_memory_profile m;
    ck_ok(prof_memory_profile(c, NULL, &m, &err));
    ck_assert_uint_eq(m.phase_count, 2);
    ck_assert_int_eq(m.steps, 2 * (STEPS - 1));
    ck_near(m.places[0].growth_bytes, leaks ? 1000 : 0);
    ck_assert_str_eq(m.places[0].growth_phase, leaks ? "test/step" : "train/step");
    ck_assert_int_eq(m.places[0].use.kept_count, leaks ? STEPS : 0);
    ck_assert_int_eq(site(&m, "train > step > cudaMalloc", 3)->verdict, PROF_MEMORY_FREED);
    const struct prof_memory_site *second = site(&m, "test > step > cudaMalloc", 3);
    ck_assert_int_eq(second->verdict, leaks ? PROF_MEMORY_LEAK : PROF_MEMORY_FREED);
    if (leaks) {
        ck_assert_str_eq(second->phase, "test/step");
        ck_assert_int_eq(second->steps, STEPS - 1);
        ck_assert_int_eq(second->steps_keeping, STEPS - 1);
        ck_near(second->growth_bytes, 1000);
    }
    prof_memory_profile_free(&m);
    prof_close(c);
}

START_TEST(phases_grow_and_leak_apart)
{
    two_phases(false);
    two_phases(true);
}
END_TEST

/* Nothing repeats: what is kept is told, and not called a leak. */
START_TEST(without_steps_nothing_is_accused)
{
    struct program p;
    begin(&p);
    memory(&p, 1000, -1, 500, 3);
    memory(&p, 2000, 500000, 100, 3);
    fputs("INSERT INTO allocation(process, start, bytes, kind, device) VALUES(1, 10, 64, 6, 1);",
          p.out);
    struct prof_capture *c = end(&p);
    struct prof_memory_profile m;
    ck_ok(prof_memory_profile(c, NULL, &m, &err));
    ck_assert_int_eq(m.steps, 0);
    const struct prof_memory_site *one = site(&m, "cudaMalloc", 3);
    ck_assert_int_eq(one->verdict, PROF_MEMORY_KEPT);
    ck_assert(isnan(one->growth_bytes));
    ck_assert_int_eq(one->use.kept_bytes, 500);
    const struct prof_memory_site *fixed = site(&m, "unknown", 6); /* a module's variable */
    ck_assert_int_eq(fixed->verdict, PROF_MEMORY_FREED);
    ck_assert_int_eq(m.places[0].use.kept_count, 1);
    prof_memory_profile_free(&m);
    prof_close(c);
}
END_TEST

START_TEST(filters_choose_allocations)
{
    struct prof_capture *c = training();
    struct prof_memory_profile m;
    ck_ok(prof_memory_profile(c, &(struct prof_filter){.range = "step"}, &m, &err));
    ck_assert_int_eq(m.places[0].peak_bytes, STEPS * 1000 + 50000);
    prof_memory_profile_free(&m);
    ck_ok(prof_memory_profile(c, &(struct prof_filter){.begin_ns = 10000, .end_ns = 12500}, &m,
                              &err));
    ck_assert_int_eq(m.places[0].peak_bytes, 451000); /* the weights were there already */
    prof_memory_profile_free(&m);
    ck_ok(prof_memory_profile(c, &(struct prof_filter){.kernel = "alpha"}, &m, &err));
    ck_assert_ptr_nonnull(m.why_none);
    ck_assert_uint_eq(m.site_count, 0);
    prof_memory_profile_free(&m);
    ck_ok(prof_memory_profile(c, &(struct prof_filter){.thread = 2}, &m, &err));
    ck_assert_uint_eq(m.place_count, 0);
    prof_memory_profile_free(&m);
    prof_close(c);
}
END_TEST

/* Two lines of one function, called from one line of main, are two places. */
START_TEST(host_stacks_tell_lines)
{
    struct program p;
    begin(&p);
    fputs("INSERT INTO string(id, value) VALUES(20, 'main'), (21, 'grow'), (22, '/src/a.c');"
          "INSERT INTO frame(id, process, kind, address) VALUES(1, 1, 1, 16), (2, 1, 1, 32), "
          "(3, 1, 1, 48);"
          "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 20, 22, 5), "
          "(2, 0, 21, 22, 10), (3, 0, 21, 22, 11);"
          "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, 1, 2, 2), "
          "(3, 1, 3, 2);",
          p.out);
    range(&p, STEP, 500, 5000, 0);
    memory(&p, 1000, -1, 500, 3);
    memory(&p, 2000, -1, 100, 3);
    fputs("UPDATE allocation SET stack = id + 1;", p.out);
    struct prof_capture *c = end(&p);
    struct prof_memory_profile m;
    ck_ok(prof_memory_profile(c, NULL, &m, &err));
    ck_assert_uint_eq(m.site_count, 2);
    const struct prof_memory_site *large =
        site(&m, "main (a.c:5) > grow (a.c:10) > step > cudaMalloc", 3);
    ck_assert_int_eq(large->use.held_bytes, 500);
    ck_assert_str_eq(large->name, "grow (a.c:10)");
    ck_assert_int_eq(site(&m, "main (a.c:5) > grow (a.c:11) > step > cudaMalloc", 3)->use.bytes,
                     100);
    prof_memory_profile_free(&m);
    prof_close(c);
}
END_TEST

START_TEST(what_did_not_fit)
{
    struct program p;
    begin(&p);
    range(&p, STEP, 500, 500000, 0);
    memory(&p, 1000, 900000, 700000, 3);
    memory(&p, 2000, 2500, 200000, 3);
    call(&p, MALLOC, 2990, 20);
    fputs("UPDATE api_call SET result = 2 WHERE start = 2990;" /* told with its size */
          "INSERT INTO allocation_failure(process, start, thread, device, kind, bytes, result, "
          "source) VALUES(1, 3012, 1, 1, 3, 600000, 2, 1);"
          "INSERT INTO device_memory(device, start, total, used) VALUES(1, 10, 1000000, 5), "
          "(1, 2900, 1000000, 750000);"
          "INSERT INTO api_call(start, duration, thread, name, source, result) VALUES"
          "(2993, 2, 1, 12, 2, 2), (5000, 20, 1, 12, 1, 2), (5005, 2, 1, 12, 2, 2), "
          "(5100, 20, 1, 12, 1, 2), (6000, 20, 1, 1, 1, 2), (7000, 20, 1, 12, 1, 1);"
          "INSERT INTO string(id, value) VALUES(40, 'clCreateBuffer');" /* of 0 bytes */
          "INSERT INTO api_call(start, duration, thread, name, source, result) "
          "VALUES(8000, 20, 1, 40, 3, -61);",
          p.out);
    struct prof_capture *c = end(&p);
    struct prof_memory_profile m;
    ck_ok(prof_memory_profile(c, NULL, &m, &err));
    ck_assert_int_eq(m.failed,
                     2); /* not a call that allocates nothing, nor one refused for another reason */
    ck_assert_uint_eq(m.failure_count, 2);
    const struct prof_memory_failure *f = &m.failures[0];
    ck_assert_int_eq(f->bytes, 600000);
    ck_assert_int_eq(f->live_bytes, 700000);
    ck_assert_int_eq(f->free_bytes, 250000);
    ck_assert_int_eq(f->capacity_bytes, 1000000);
    ck_assert_str_eq(f->result_text, "out of memory");
    ck_assert_str_eq(f->path, "step > cudaMalloc");
    ck_assert_uint_eq(f->holder_count, 1);
    ck_assert_int_eq(f->holders[0].bytes, 700000);
    ck_assert_str_eq(m.sites[f->holders[0].site].path, "step > cudaMalloc");
    ck_assert_int_eq(m.failures[1].bytes, PROF_UNKNOWN);
    ck_assert_int_eq(m.failures[1].time_ns, 5000);
    ck_assert_int_eq(m.failures[0].tries, 1);
    ck_assert_int_eq(m.failures[1].tries, 2); /* without the driver's call in the first */
    prof_memory_profile_free(&m);
    prof_close(c);
}
END_TEST

/* Forty sizes in turns, each asked for three times in a row: what is not listed counts as what is.
 */
START_TEST(retries_count_once_beyond_the_list)
{
    struct program p;
    begin(&p);
    for (int i = 0; i < 120; i++)
        fprintf(p.out,
                "INSERT INTO allocation_failure(process, start, thread, device, kind, bytes, "
                "result, source) VALUES(1, %d, 1, 1, 3, %d, 2, 1);",
                10000 + i * 100, i / 3 % 2 ? 1000 : 2000);
    struct prof_capture *c = end(&p);
    struct prof_memory_profile m;
    ck_ok(prof_memory_profile(c, NULL, &m, &err));
    ck_assert_int_eq(m.failed, 40);
    ck_assert_uint_eq(m.failure_count, 16);
    for (size_t i = 0; i < m.failure_count; i++)
        ck_assert_int_eq(m.failures[i].tries, 3);
    prof_memory_profile_free(&m);
    prof_close(c);
}
END_TEST

#define MIB (1024 * 1024)

/* 100 MiB of others before, 300 MiB of context, and allocations in granules of 2 MiB. */
START_TEST(the_driver_counts_too)
{
    struct program p;
    begin(&p);
    memory(&p, 10000000, -1, 3 * MIB, 3);
    memory(&p, 20000000, -1, 1000, 3);
    fprintf(p.out,
            "INSERT INTO device_memory(device, start, total, used) VALUES"
            "(1, 1000, 1000000000, %d), (1, 15000000, 1000000000, %d), "
            "(1, 20000100, 1000000000, 1), " /* while something is allocated: not compared */
            "(1, 25000000, 1000000000, %d), (1, 30000000, 1000000000, %d);",
            100 * MIB, 404 * MIB, 406 * MIB, 410 * MIB);
    struct prof_capture *c = end(&p);
    struct prof_memory_profile m;
    ck_ok(prof_memory_profile(c, NULL, &m, &err));
    ck_assert_uint_eq(m.driver_count, 1);
    const struct prof_memory_driver *d = &m.drivers[0];
    ck_assert_int_eq(d->samples, 5);
    ck_assert_int_eq(d->compared, 3);
    ck_assert_int_eq(d->used_bytes, 410 * MIB);
    ck_assert_int_eq(d->other_bytes, 100 * MIB);
    ck_assert_int_eq(d->tracked_bytes, 3 * MIB + 1000);
    ck_assert_int_eq(d->granularity_bytes, 3 * MIB - 1000);
    ck_assert_int_eq(d->context_bytes, 300 * MIB);
    ck_assert_int_eq(d->rest_bytes, 4 * MIB); /* nobody told of it */
    ck_near(d->worst_share, 4.0 / 410);
    prof_memory_profile_free(&m);
    prof_close(c);
}
END_TEST

/* What a pool reserves counts, not what is taken from it. */
START_TEST(pools_count_by_what_they_reserve)
{
    struct program p;
    begin(&p);
    memory(&p, 10000000, -1, 1000, 9);
    fprintf(p.out,
            "INSERT INTO memory_pool(process, start, pool, operation, device, bytes, used_bytes) "
            "VALUES(1, 10000000, 7, 4, 1, %d, 1000), (1, 20000000, 7, 4, 1, %d, 1000);"
            "INSERT INTO device_memory(device, start, total, used, process_used) VALUES"
            "(1, 15000000, 1000000000, %d, %d), (1, 25000000, 1000000000, %d, %d);",
            32 * MIB, 64 * MIB, 90 * MIB, 82 * MIB, 122 * MIB, 114 * MIB);
    struct prof_capture *c = end(&p);
    struct prof_memory_profile m;
    ck_ok(prof_memory_profile(c, NULL, &m, &err));
    const struct prof_memory_driver *d = &m.drivers[0];
    ck_assert_int_eq(d->tracked_bytes, 64 * MIB);
    ck_assert_int_eq(d->other_bytes, 8 * MIB);
    ck_assert_int_eq(d->context_bytes, 50 * MIB);
    ck_assert_int_eq(d->rest_bytes, 0);
    prof_memory_profile_free(&m);
    prof_close(c);
}
END_TEST

/* A segment of 100,000 bytes with two blocks in it at the peak: what is left is the allocator's. */
START_TEST(blocks_are_inside_segments)
{
    struct program p;
    begin(&p);
    for (int i = 0; i < STEPS; i++)
        range(&p, STEP, 10000 + i * STEP_NS, 10000 + (i + 1) * STEP_NS - 100, 0);
    memory(&p, 5000, -1, 100000, 3);
    fputs("UPDATE allocation SET address = 4096;"
          "INSERT INTO string(id, value) VALUES(20, 'forward'), (21, 'model.py');"
          "INSERT INTO frame(id, process, kind) VALUES(1, 1, 2);"
          "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 20, 21, 7);"
          "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1);"
          "INSERT INTO block(process, device, start, \"end\", bytes, address, stack) VALUES"
          "(1, 1, 4500, NULL, 60000, 5000, 1), (1, 1, 4600, 900000, 10000, 65000, NULL), "
          "(1, 1, 90000, NULL, 31000, 70000, NULL), " /* no room: of later */
          "(1, 1, 4700, NULL, 512, 900000, NULL);",   /* in no segment that is known */
          p.out);
    struct prof_capture *c = end(&p);
    struct prof_memory_profile m;
    ck_ok(prof_memory_profile(c, NULL, &m, &err));
    ck_assert_int_eq(m.places[0].peak_bytes, 100000);
    ck_assert_int_eq(m.places[0].use.count, 1); /* nothing twice */
    const struct prof_memory_site *forward = site(&m, "forward (model.py:7)", 10);
    ck_assert_str_eq(forward->kind_text, "PyTorch block");
    ck_assert_int_eq(forward->use.held_bytes, 60000);
    ck_assert_int_eq(forward->verdict, PROF_MEMORY_STATE);
    ck_assert_ptr_eq(forward, &m.sites[0]);
    ck_assert_int_eq(site(&m, "unknown", 10)->use.held_bytes, 10000);
    ck_assert_int_eq(site(&m, "unknown", 10)->use.kept_bytes, 512);
    ck_assert_int_eq(site(&m, "cudaMalloc", 3)->use.held_bytes, 30000);
    int64_t held = 0;
    for (size_t i = 0; i < m.site_count; i++)
        held += m.sites[i].use.held_bytes;
    ck_assert_int_eq(held, m.places[0].peak_bytes);
    prof_memory_profile_free(&m);
    prof_close(c);
}
END_TEST

/* What calls the API is a library's: the program's own lines come first. */
START_TEST(own_lines_come_before_those_of_libraries)
{
    struct program p;
    begin(&p);
    fputs("INSERT INTO string(id, value) VALUES(20, 'train'), (21, '/home/me/train.py'), "
          "(22, 'forward'), (23, '/x/site-packages/torch/nn/linear.py'), (24, 'main');"
          "INSERT INTO module(id, process, path) VALUES(1, 1, '/usr/lib/libc10_cuda.so');"
          "INSERT INTO frame(id, process, kind, address, module, offset) VALUES"
          "(1, 1, 2, NULL, NULL, NULL), (2, 1, 2, NULL, NULL, NULL), (3, 1, 2, NULL, NULL, NULL), "
          "(4, 1, 1, 4096, 1, 16);"
          "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 24, 21, 50), "
          "(2, 0, 20, 21, 30), (3, 0, 22, 23, 125);"
          "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, 1, 2, 2), "
          "(3, 2, 3, 3), (4, 3, 4, 4);",
          p.out);
    range(&p, STEP, 500, 5000, 0);
    memory(&p, 1000, -1, 500, 3);
    fputs("UPDATE allocation SET stack = 4;", p.out);
    struct prof_capture *c = end(&p);
    struct prof_memory_profile m;
    ck_ok(prof_memory_profile(c, NULL, &m, &err));
    ck_assert_uint_eq(m.site_count, 1);
    ck_assert_str_eq(m.sites[0].name, "train (train.py:30)");
    ck_assert_str_eq(m.sites[0].brief, "train (train.py:30) < main (train.py:50) via "
                                       "libc10_cuda.so+0x10 in step");
    prof_memory_profile_free(&m);
    prof_close(c);
}
END_TEST

/* A program without lines whose CUDA runtime is part of it. */
START_TEST(frames_of_the_runtime_tell_nothing)
{
    struct program p;
    begin(&p);
    fputs("INSERT INTO string(id, value) VALUES(20, 'cudaMalloc'), (21, 'weights()'), (22, 'main');"
          "INSERT INTO module(id, process, path) VALUES(1, 1, '/home/me/train');"
          "INSERT INTO frame(id, process, kind, address, module, offset) VALUES"
          "(1, 1, 1, 4096, 1, 16), (2, 1, 1, 4128, 1, 48), (3, 1, 1, 4160, 1, 80);"
          "INSERT INTO symbol(frame, level, function) VALUES(1, 0, 22), (2, 0, 21), (3, 0, 20);"
          "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, 1, 2, 2), "
          "(3, 2, 3, 3);",
          p.out);
    memory(&p, 1000, -1, 500, 3);
    fputs("UPDATE allocation SET stack = 3;", p.out);
    struct prof_capture *c = end(&p);
    struct prof_memory_profile m;
    ck_ok(prof_memory_profile(c, NULL, &m, &err));
    ck_assert_uint_eq(m.site_count, 1);
    ck_assert_str_eq(m.sites[0].brief, "weights() (train) < main (train)");
    prof_memory_profile_free(&m);
    prof_close(c);
}
END_TEST

CHECK_MAIN("memory profile", own_lines_come_before_those_of_libraries,
           frames_of_the_runtime_tell_nothing, blocks_are_inside_segments, host_stacks_tell_lines,
           what_did_not_fit, retries_count_once_beyond_the_list, the_driver_counts_too,
           pools_count_by_what_they_reserve, a_leak_is_found_where_it_is_made,
           what_is_freed_in_the_end_was_kept_too, the_peak_is_shared_out,
           what_lives_briefly_has_its_price, a_cache_that_fills_is_state,
           without_steps_nothing_is_accused, filters_choose_allocations, phases_grow_and_leak_apart)
