/* Host stacks in the flame graph and what is read off it: lines top-down, callers bottom-up, the
 * idle time that work ended, places that made the nodes of CUDA graphs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libprof/include/prof_stack.h"
#include "tests/analysis/fixture.h"

/* main (a.c:10) -> step (a.c:20) -> launch (a.c:30), and main -> step (a.c:21); step calls itself
 * once. Strings: 20 main, 21 step, 22 launch, 23 a.c. Stacks: 3 = launch from line 20, 5 = launch
 * from a step in a step, 6 = main alone. */
static const char stacks_sql[] =
    "INSERT INTO string(id, value) VALUES(20, 'main'), (21, 'step'), (22, 'launch'), (23, 'a.c'), "
    "(30, 'cuLaunchKernel'), (31, 'cudaGraphLaunch');"
    "INSERT INTO frame(id, process, kind, address) VALUES(1, 1, 1, 1), (2, 1, 1, 2), (3, 1, 1, 3), "
    "(4, 1, 1, 4);"
    "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 20, 23, 10), "
    "(2, 0, 21, 23, 20), (3, 0, 22, 23, 30), (4, 0, 21, 23, 21);"
    "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, 1, 2, 2), (3, 2, 3, "
    "3), "
    "(4, 2, 2, 3), (5, 4, 3, 4), (6, 1, 4, 2);";

/* Kernels alpha: 100 ns at 1000 from stack 3, 50 ns at 2000 from stack 5; beta: 10 ns at 2010 (the
 * device is busy then) from stack 6; a copy without a stack, 40 ns at 2100. */
static const char work_sql[] =
    "INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread, "
    "stack) VALUES(1000, 100, 1, 1, 30, 10, 5, 1, 3), (2000, 50, 1, 1, 30, 10, 5, 1, 5), "
    "(2010, 10, 2, 3, 30, 10, 5, 1, 6);"
    "INSERT INTO transfer(start, duration, stream, bytes, kind, api_name, api_lead, api_duration, "
    "thread) VALUES(2100, 40, 1, 4096, 1, 30, 10, 5, 1);";

static struct prof_capture *made(const char *more)
{
    static char sql[8192];
    snprintf(sql, sizeof sql, "%s%s%s", stacks_sql, work_sql, more);
    return fixture_with_base(sql);
}

static int64_t self_of(const struct prof_flame *flame, const char *path)
{
    char text[400];
    int64_t sum = 0;
    for (size_t i = 1; i < flame->count; i++) {
        prof_flame_path(flame, i, text, sizeof text);
        if (strcmp(text, path) == 0)
            sum += flame->nodes[i].self;
    }
    return sum;
}

START_TEST(stacks_stand_above_the_call)
{
    struct prof_capture *c = made("INSERT INTO range(start, duration, thread, name, depth) "
                                  "VALUES(900, 200, 1, 5, 0);");
    struct prof_flame f;
    ck_ok(prof_flame(c, NULL, PROF_FLAME_DEVICE_NS, &f, &err));
    ck_assert_int_eq(self_of(&f, "main;step;launch;epsilon;cuLaunchKernel;alpha"), 100);
    ck_assert_int_eq(self_of(&f, "main;step;step;launch;cuLaunchKernel;alpha"), 50);
    ck_assert_int_eq(self_of(&f, "main;step;cuLaunchKernel;beta"), 10);
    ck_assert_int_eq(self_of(&f, "cuLaunchKernel;HtoD"), 40);
    size_t frames = 0;
    for (size_t i = 1; i < f.count; i++) {
        const struct prof_frame *place = f.nodes[i].frame;
        ck_assert_int_eq(place != NULL, f.nodes[i].kind == PROF_FLAME_FRAME);
        if (place)
            ck_assert_str_eq(place->file, "a.c");
        frames += place != NULL;
    }
    ck_assert_uint_eq(frames, 6); /* main, step:20, launch, step:20 in it, launch, step:21 */
    prof_flame_free(&f);
    ck_ok(prof_flame_of_ranges(c, NULL, PROF_FLAME_DEVICE_NS, &f, &err));
    ck_assert_int_eq(self_of(&f, "epsilon;cuLaunchKernel;alpha"), 100);
    ck_assert_int_eq(self_of(&f, "cuLaunchKernel;alpha"), 50);
    prof_flame_free(&f);
    prof_close(c);
}
END_TEST

START_TEST(idle_time_belongs_to_what_ends_it)
{
    struct prof_capture *c = made("");
    struct prof_flame f;
    ck_ok(prof_flame(c, NULL, PROF_FLAME_IDLE_NS, &f, &err));
    ck_assert_int_eq(self_of(&f, "main;step;launch;cuLaunchKernel;alpha"), 0); /* the first */
    ck_assert_int_eq(self_of(&f, "main;step;step;launch;cuLaunchKernel;alpha"), 900);
    ck_assert_int_eq(self_of(&f, "main;step;cuLaunchKernel;beta"), 0);
    ck_assert_int_eq(self_of(&f, "cuLaunchKernel;HtoD"), 50);
    ck_assert_int_eq(f.nodes[0].total, 950); /* 1000 .. 2140 less 190 busy */
    prof_flame_free(&f);
    /* Two devices idle each for themselves. */
    prof_close(c);
    c = made("INSERT INTO device(id, process, api, ordinal, uuid) VALUES(2, 1, 'cuda', 1, 'GPU-2');"
             "INSERT INTO stream(id, process, device, api) VALUES(3, 1, 2, 'cuda');"
             "INSERT INTO memset(start, duration, stream, bytes) VALUES(1500, 10, 3, 1), "
             "(1600, 10, 3, 1);");
    ck_ok(prof_flame(c, NULL, PROF_FLAME_IDLE_NS, &f, &err));
    ck_assert_int_eq(f.nodes[0].total, 950 + 90);
    prof_flame_free(&f);
    /* A filter leaves out work, not the time that it kept the device busy. */
    ck_ok(prof_flame(c, &(struct prof_filter){.begin_ns = 2050}, PROF_FLAME_IDLE_NS, &f, &err));
    ck_assert_int_eq(f.nodes[0].total, 50);
    prof_flame_free(&f);
    /* One of kernels leaves out memcpys. */
    ck_ok(prof_flame(c, &(struct prof_filter){.kernel = "a"}, PROF_FLAME_IDLE_NS, &f, &err));
    ck_assert_int_eq(f.nodes[0].total, 900);
    prof_flame_free(&f);
    prof_close(c);
}
END_TEST

static const struct prof_line_row *line_at(const struct prof_line_sums *sums, const char *function,
                                           int64_t line)
{
    for (size_t i = 0; i < sums->count; i++) {
        const struct prof_frame *place = sums->rows[i].place;
        if (!strcmp(place->function, function) && place->line == line)
            return &sums->rows[i];
    }
    ck_abort_msg("no line %s:%lld", function, (long long)line);
    return NULL;
}

START_TEST(lines_top_down)
{
    struct prof_capture *c = made("");
    struct prof_line_sums sums;
    ck_ok(prof_line_sums(c, NULL, &sums, &err));
    ck_assert_uint_eq(sums.count, 4);
    ck_assert_int_eq(sums.all.device_ns, 200);
    ck_assert_int_eq(sums.all.count, 4);
    ck_assert_int_eq(sums.without.device_ns, 40);
    ck_assert_int_eq(sums.without.bytes, 4096);
    const struct prof_line_row *line = line_at(&sums, "main", 10);
    ck_assert_ptr_eq(line, &sums.rows[0]);
    ck_assert_int_eq(line->total.device_ns, 160);
    ck_assert_int_eq(line->self.count, 0);
    line = line_at(&sums, "step", 20); /* its recursion counts once */
    ck_assert_int_eq(line->total.device_ns, 150);
    ck_assert_int_eq(line->total.count, 2);
    ck_assert_int_eq(line->self.device_ns, 0);
    line = line_at(&sums, "launch", 30);
    ck_assert_int_eq(line->self.device_ns, 150);
    ck_assert_int_eq(line->self.idle_ns, 900);
    line = line_at(&sums, "step", 21);
    ck_assert_int_eq(line->self.device_ns, 10);
    prof_line_sums_free(&sums);
    prof_close(c);
}
END_TEST

START_TEST(callers_bottom_up)
{
    struct prof_capture *c = made("");
    struct prof_caller_sums sums;
    ck_ok(prof_caller_sums(c, NULL, &sums, &err));
    ck_assert_uint_eq(sums.count, 4);
    ck_assert_str_eq(sums.rows[0].work, "alpha");
    ck_assert_str_eq(sums.rows[1].work, "alpha");
    ck_assert_int_eq(sums.rows[0].work_ns, 150);
    ck_assert_int_eq(sums.rows[0].cost.device_ns, 100);
    ck_assert_uint_eq(sums.rows[0].depth, 3);
    ck_assert_str_eq(sums.places[sums.rows[0].path[0]].function, "launch");
    ck_assert_str_eq(sums.places[sums.rows[0].path[2]].function, "main");
    ck_assert_uint_eq(sums.rows[1].depth, 4);
    ck_assert_str_eq(sums.rows[2].work, "HtoD");
    ck_assert_uint_eq(sums.rows[2].depth, 0);
    ck_assert_str_eq(sums.rows[3].work, "beta");
    ck_assert_int_eq(sums.all.device_ns, 200);
    prof_caller_sums_free(&sums);
    prof_close(c);
}
END_TEST

START_TEST(calls_by_stack)
{
    struct prof_capture *c = made(
        /* frame 5 is another address of frame 2's line */
        "INSERT INTO frame(id, process, kind, address) VALUES(5, 1, 1, 5);"
        "INSERT INTO symbol(frame, level, function, file, line) VALUES(5, 0, 21, 23, 20);"
        "INSERT INTO stack(id, parent, frame, depth) VALUES(7, 1, 5, 2);"
        "INSERT INTO api_call(start, duration, thread, name, stack) VALUES(5000, 70, 1, 31, 2), "
        "(5100, 20, 1, 31, 7), (5200, 5, 1, 31, NULL), (5300, NULL, 1, 31, 2);");
    struct prof_call_sums sums;
    ck_ok(prof_call_sums(c, NULL, &sums, &err));
    ck_assert_str_eq(sums.rows[0].name, "cudaGraphLaunch");
    ck_assert_int_eq(sums.rows[0].total_ns, 90);
    ck_assert_int_eq(sums.rows[0].count, 2);
    ck_assert_int_eq(sums.rows[0].max_ns, 70);
    ck_assert_uint_eq(sums.rows[0].depth, 2);
    ck_assert_str_eq(sums.places[sums.rows[0].path[0]].function, "step");
    int64_t total = 0, without = 0;
    for (size_t i = 0; i < sums.count; i++) {
        total += sums.rows[i].total_ns;
        without += sums.rows[i].depth ? 0 : sums.rows[i].count;
    }
    ck_assert_int_eq(total, sums.total_ns);
    ck_assert_int_eq(total, 95 + 4 * 5); /* the calls in device records' rows, too */
    ck_assert_int_eq(without, 2);
    prof_call_sums_free(&sums);
    prof_close(c);
}
END_TEST

/* Node 8 of the graph that runs was cloned from node 7, which was captured at stack 6; the launch
 * has stack 3. */
START_TEST(graph_nodes_name_the_place_that_made_them)
{
    struct prof_capture *c =
        made("INSERT INTO graph_node(start, thread, node, graph, original, class, stack) VALUES"
             "(10, 1, 7, 1, NULL, 1, 6), (20, 1, 8, 2, NULL, 1, NULL), (20, 1, 8, 2, 7, 1, NULL), "
             "(30, 1, 9, 2, 9, 1, NULL);"
             "INSERT INTO api_call(start, duration, thread, name, correlation, stack) "
             "VALUES(2990, 5, 1, 31, 77, 3);"
             "INSERT INTO kernel(start, duration, stream, config, correlation, graph_node) VALUES"
             "(3000, 7, 1, 3, 77, 8), (3010, 3, 1, 3, 77, 9), (3020, 2, 1, 3, 77, 12345);");
    struct prof_flame f;
    ck_ok(prof_flame(c, NULL, PROF_FLAME_DEVICE_NS, &f, &err));
    ck_assert_int_eq(self_of(&f, "main;step;launch;cudaGraphLaunch;step;beta"), 7);
    ck_assert_int_eq(self_of(&f, "main;step;launch;cudaGraphLaunch;beta"),
                     5); /* a circle; unknown */
    prof_flame_free(&f);
    prof_close(c);
}
END_TEST

START_TEST(a_capture_without_stacks)
{
    struct prof_capture *c =
        fixture_with_base("INSERT INTO kernel(start, duration, stream, config) "
                          "VALUES(5, 5, 1, 1);");
    struct prof_line_sums lines;
    struct prof_caller_sums callers;
    struct prof_call_sums calls;
    ck_ok(prof_call_sums(c, NULL, &calls, &err));
    ck_assert_uint_eq(calls.count, 0);
    prof_call_sums_free(&calls);
    ck_ok(prof_line_sums(c, NULL, &lines, &err));
    ck_ok(prof_caller_sums(c, NULL, &callers, &err));
    ck_assert_uint_eq(lines.count, 0);
    ck_assert_int_eq(lines.without.device_ns, 5);
    ck_assert_uint_eq(callers.count, 1);
    ck_assert_uint_eq(callers.rows[0].depth, 0);
    prof_line_sums_free(&lines);
    prof_caller_sums_free(&callers);
    prof_close(c);
}
END_TEST

CHECK_MAIN("stack sums", stacks_stand_above_the_call, idle_time_belongs_to_what_ends_it,
           lines_top_down, callers_bottom_up, calls_by_stack,
           graph_nodes_name_the_place_that_made_them, a_capture_without_stacks)
