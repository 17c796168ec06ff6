/* The lines of findings' places: of what begins there, of the call that ends with it, of what comes
 * next. */
#include <stdio.h>
#include <string.h>

#include "libprof/analysis/rules/judge.h"
#include "tests/analysis/fixture.h"

/* A launch (kernel at 1000, called at 990 from step:20 < main), a wait that ends at 3000 (stack of
 * main), a call of a library at 5000. */
static const char sql[] =
    "INSERT INTO string(id, value) VALUES(20, 'main'), (21, 'step'), (22, '/src/a.c'), (23, "
    "'clFinish'), "
    "(24, 'gemm');"
    "INSERT INTO module(id, process, path, address, bytes) VALUES(1, 1, '/usr/lib/libblas.so', 1, "
    "99);"
    "INSERT INTO frame(id, process, kind, address, module) VALUES(1, 1, 1, 1, NULL), "
    "(2, 1, 1, 2, NULL), (3, 1, 1, 3, 1);"
    "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 20, 22, 10), "
    "(2, 0, 21, 22, 20), (3, 0, 24, NULL, NULL);"
    "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, 1, 2, 2), (3, NULL, 3, "
    "1);"
    "INSERT INTO kernel(start, duration, stream, config, api_lead, api_duration, thread, stack) "
    "VALUES"
    "(1000, 100, 1, 1, 10, 5, 1, 2), (5000, 100, 1, 1, 10, 5, 1, 3);"
    "INSERT INTO sync(start, duration, api_name, api_lead, api_duration, thread, stack) VALUES"
    "(2000, 1000, 23, 0, 1000, 1, 1);";

static struct prof_place place_at(struct prof_capture *c, int64_t start, int64_t duration,
                                  int64_t stream, int64_t thread)
{
    struct prof_finding row = {.place_count = 1};
    struct prof_findings findings = {.rows = &row, .count = 1};
    row.places[0] = (struct prof_place){
        .start_ns = start, .duration_ns = duration, .stream = stream, .thread = thread};
    ck_ok(prof_place_lines(c, &findings, &err));
    return row.places[0];
}

START_TEST(places_have_lines)
{
    struct prof_capture *c = fixture_with_base(sql);
    const struct {
        int64_t start, duration, stream, thread;
        const char *line;
        bool ends_it;
    } cases[] = {
        {1000, 100, 1, 1, "step (a.c:20) < main", false}, /* the kernel */
        {990, 5, 0, 1, "step (a.c:20) < main", false},    /* its call */
        {2500, 500, 1, 1, "main (a.c:10)", false},        /* the wait's last part */
        {900, 100, 1, 1, "step (a.c:20) < main", true},   /* idle until the kernel */
        {900, 90, 1, 1, "step (a.c:20) < main", true},    /* ... until its call */
        {1000, 100, 2, 1, "", false},                     /* another stream */
        {2500, 500, 1, 2, "", false},                     /* another thread's wait */
        {5000, 100, 1, 1, "", false},                     /* a library tells nothing */
        {4000, 10, 1, 1, "", false},                      /* nothing there */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct prof_place place =
            place_at(c, cases[i].start, cases[i].duration, cases[i].stream, cases[i].thread);
        ck_assert_msg(!strcmp(place.line, cases[i].line), "%zu: %s", i, place.line);
        ck_assert_int_eq(place.line_ends_it, cases[i].ends_it);
    }
    prof_close(c);
}
END_TEST

/* Three lines launch through one function: theirs stand first. */
START_TEST(a_wrapper_comes_last)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO string(id, value) VALUES(20, 'main'), (21, 'step'), (22, '/src/a.c'), "
        "(23, 'enqueue');"
        "INSERT INTO frame(id, process, kind, address) VALUES(1, 1, 1, 1), (2, 1, 1, 2), "
        "(3, 1, 1, 3), (4, 1, 1, 4), (5, 1, 1, 5);"
        "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 20, 22, 10), "
        "(2, 0, 21, 22, 20), (3, 0, 21, 22, 21), (4, 0, 21, 22, 22), (5, 0, 23, 22, 30);"
        "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, 1, 2, 2), "
        "(3, 1, 3, 2), (4, 1, 4, 2), (5, 2, 5, 3), (6, 3, 5, 3), (7, 4, 5, 3);"
        "INSERT INTO kernel(start, duration, stream, config, api_lead, api_duration, thread, "
        "stack) VALUES(1000, 100, 1, 1, 10, 5, 1, 5), (2000, 100, 1, 1, 10, 5, 1, 6), "
        "(3000, 100, 1, 1, 10, 5, 1, 7);");
    ck_assert_str_eq(place_at(c, 2000, 100, 1, 1).line, "step (a.c:21) < main via enqueue");
    prof_close(c);
}
END_TEST

START_TEST(without_stacks_nothing_is_told)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO kernel(start, duration, stream, config) VALUES(1000, 100, 1, 1);");
    ck_assert_str_eq(place_at(c, 1000, 100, 1, 1).line, "");
    prof_close(c);
}
END_TEST

CHECK_MAIN("place lines", places_have_lines, a_wrapper_comes_last, without_stacks_nothing_is_told)
