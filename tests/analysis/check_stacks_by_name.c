/* prof_stack.h over made captures: order, inlined functions, what stands for names that are not
 * known, and damaged tables. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libprof/include/prof_stack.h"
#include "tests/analysis/fixture.h"

/* main (gamma.c:10) -> step (inlined into main's callee) -> a library without names */
static const char stacks_sql[] =
    "INSERT INTO string(id, value) VALUES(20, 'main'), (21, 'outer'), (22, 'inner'), "
    "(23, '/src/gamma.c'), (24, '/src/step.h'), (25, 'forward'), (26, 'model.py');"
    "INSERT INTO module(id, process, path, address, bytes) VALUES(1, 1, '/usr/bin/prog', 4096, "
    "8192), "
    "(2, 1, '/usr/lib/libx.so.1', 65536, 4096);"
    "INSERT INTO frame(id, process, kind, address, module, offset) VALUES(1, 1, 1, 4100, 1, 4), "
    "(2, 1, 1, 4200, 1, 104), (3, 1, 1, 65552, 2, 16), (4, 1, 2, NULL, NULL, NULL), "
    "(5, 1, 0, NULL, NULL, NULL), (6, 1, 1, 999, NULL, NULL), (7, 1, 3, -4096, NULL, NULL);"
    "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 20, 23, 10), "
    "(2, 1, 21, 23, 30), (2, 0, 22, 24, 5), (4, 0, 25, 26, 77);"
    "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, 1, 2, 2), (3, 2, 3, "
    "3), "
    "(4, NULL, 5, 1), (5, 4, 4, 2), (6, 5, 6, 3), (7, 6, 7, 4);";

static void text_is(const struct prof_frame *frame, const char *expected)
{
    char text[128];
    ck_assert_uint_eq(prof_frame_text(frame, text, sizeof text), strlen(expected));
    ck_assert_str_eq(text, expected);
}

START_TEST(frames_come_outermost_first)
{
    struct prof_capture *c = fixture_with_base(stacks_sql);
    struct prof_stacks *s;
    const struct prof_frame *f;
    ck_ok(prof_stacks_open(c, &s, &err));
    ck_assert_uint_eq(prof_stacks_count(s), 7);
    ck_assert_uint_eq(prof_stack_frames(s, 3, &f), 4);
    text_is(&f[0], "main (gamma.c:10)");
    text_is(&f[1], "outer (gamma.c:30)");
    text_is(&f[2], "inner (step.h:5)");
    text_is(&f[3], "libx.so.1+0x10");
    ck_assert(!f[0].inlined && !f[1].inlined && f[2].inlined && !f[3].inlined);
    ck_assert(f[2].named && !f[3].named);
    ck_assert_str_eq(f[3].module, "/usr/lib/libx.so.1");
    ck_assert_uint_eq(f[1].address, 4200);
    ck_assert_int_eq(f[3].line, PROF_UNKNOWN);
    ck_assert_ptr_null(f[3].file);
    text_is(prof_stack_place(s, 3), "inner (step.h:5)");
    ck_assert_uint_eq(prof_stack_frames(s, 1, &f), 1);
    ck_assert_str_eq(f[0].function, "main");
    prof_stacks_close(s);
    prof_close(c);
}
END_TEST

START_TEST(kinds_of_frames)
{
    struct prof_capture *c = fixture_with_base(stacks_sql);
    struct prof_stacks *s;
    const struct prof_frame *f;
    ck_ok(prof_stacks_open(c, &s, &err));
    ck_assert_uint_eq(prof_stack_frames(s, 7, &f), 4);
    ck_assert_int_eq(f[0].kind, PROF_FRAME_MISSING);
    text_is(&f[0], "[callers unknown]");
    ck_assert_int_eq(f[1].kind, PROF_FRAME_PYTHON);
    text_is(&f[1], "forward (model.py:77)");
    text_is(&f[2], "0x3e7");
    ck_assert_int_eq(f[3].kind, PROF_FRAME_KERNEL);
    text_is(&f[3], "0xfffffffffffff000");
    char two[2];
    ck_assert_uint_eq(prof_frame_text(&f[2], two, sizeof two), 5);
    ck_assert_str_eq(two, "0");
    text_is(prof_stack_place(s, 7), "forward (model.py:77)");
    prof_stacks_close(s);
    prof_close(c);
}
END_TEST

/* A launch as nvcc compiles it: main calls the kernel's name, which is a stub, which calls a
 * runtime that is part of the program. */
START_TEST(launches_of_nvcc)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO string(id, value) VALUES(20, 'main'), (21, 'ns::axpy(float, float*)'), "
        "(22, '__device_stub__ZN2ns4axpyEfPf'), (23, '/src/axpy.cu'), (24, 'cudaLaunchKernel'), "
        "(25, 'cudart_helper'), (26, '/tmp/stub.c');"
        "INSERT INTO module(id, process, path, address, bytes) VALUES(1, 1, '/usr/bin/prog', 4096, "
        "8192);"
        "INSERT INTO frame(id, process, kind, address, module, offset) VALUES(1, 1, 1, 4100, 1, "
        "4), "
        "(2, 1, 1, 4200, 1, 104), (3, 1, 1, 4300, 1, 204), (4, 1, 1, 4400, 1, 304);"
        "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 20, 23, 40), "
        "(2, 1, 21, 23, 7), (2, 0, 22, 26, 3), (3, 0, 24, NULL, NULL), (4, 0, 25, 23, 9);"
        "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, 1, 2, 2), (3, 2, "
        "3, 3), "
        "(4, 1, 4, 2);");
    struct prof_stacks *s;
    ck_ok(prof_stacks_open(c, &s, &err));
    text_is(prof_stack_place(s, 3), "main (axpy.cu:40)");
    text_is(prof_stack_place(s, 2), "main (axpy.cu:40)");
    text_is(prof_stack_place(s, 4), "cudart_helper (axpy.cu:9)"); /* one of the program's own */
    prof_stacks_close(s);
    prof_close(c);
}
END_TEST

/* What a person would call their own: __libc_start_main (with a line, as where its debug
 * information is installed) -> main (no line) -> train.py:8 -> torch's functional.py -> a library's
 * launch. */
START_TEST(the_program_is_nearer_than_what_is_installed)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO string(id, value) VALUES(20, '__libc_start_main'), (21, 'main'), (22, "
        "'step'), "
        "(23, 'relu'), (24, 'launch'), (30, 'libc-start.c'), (31, '/home/me/train.py'), "
        "(32, '/venv/lib/python3.12/site-packages/torch/functional.py');"
        "INSERT INTO module(id, process, path, address, bytes) VALUES"
        "(1, 1, '/lib/x86_64-linux-gnu/libc.so.6', 4096, 8192), (2, 1, '/home/me/prog', 65536, "
        "4096), "
        "(3, 1, '/usr/lib/libblas.so.3', 131072, 4096);"
        "INSERT INTO frame(id, process, kind, address, module) VALUES(1, 1, 1, 4100, 1), "
        "(2, 1, 1, 65540, 2), (3, 1, 2, NULL, NULL), (4, 1, 2, NULL, NULL), (5, 1, 1, 131080, 3);"
        "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 20, 30, 360), "
        "(2, 0, 21, NULL, NULL), (3, 0, 22, 31, 8), (4, 0, 23, 32, 1700), (5, 0, 24, NULL, NULL);"
        "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, 1, 2, 2), (3, 2, "
        "3, 3), "
        "(4, 3, 4, 4), (5, 4, 5, 5), (6, 1, 5, 2), (7, 2, 5, 3), (8, 7, 4, 4);");
    struct prof_stacks *s;
    const struct prof_frame *f;
    ck_ok(prof_stacks_open(c, &s, &err));
    text_is(prof_stack_place(s, 5), "step (train.py:8)");
    text_is(prof_stack_place(s, 8), "relu (functional.py:1700)"); /* a line, if not one's own */
    text_is(prof_stack_place(s, 7), "main (prog)");
    text_is(prof_stack_place(s, 6), "launch (libblas.so.3)");
    text_is(prof_stack_place(s, 1), "__libc_start_main (libc-start.c:360)");
    static const enum prof_nearness expected[] = {PROF_NEAR_RUNTIME, PROF_NEAR_OWN_NAME,
                                                  PROF_NEAR_OWN_LINE, PROF_NEAR_LIBRARY_LINE,
                                                  PROF_NEAR_LIBRARY_NAME};
    ck_assert_uint_eq(prof_stack_frames(s, 5, &f), 5);
    for (size_t i = 0; i < 5; i++)
        ck_assert_int_eq(prof_frame_nearness(&f[i]), expected[i]);
    ck_assert_uint_eq(prof_stack_near(s, 5, &f), 1);
    prof_stacks_close(s);
    prof_close(c);
}
END_TEST

START_TEST(places_are_numbered)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO string(id, value) VALUES(20, 'main'), (21, 'a.c');"
        "INSERT INTO frame(id, process, kind, address) VALUES(1, 1, 1, 1), (2, 1, 1, 2), (3, 1, 1, "
        "3);"
        "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 20, 21, 10), "
        "(2, 0, 20, 21, 10), (3, 0, 20, 21, 11);"
        "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, NULL, 2, 1), "
        "(3, NULL, 3, 1);");
    struct prof_stacks *s;
    const struct prof_frame *f, *places;
    uint32_t number[3], function[3];
    ck_ok(prof_stacks_open(c, &s, &err));
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(prof_stack_frames(s, i + 1, &f), 1);
        number[i] = f->number;
        function[i] = f->function_number;
        ck_assert_uint_eq(f->address, (unsigned)i + 1);
    }
    ck_assert(number[0] == number[1] && number[1] != number[2]);
    ck_assert(function[0] == function[1] && function[1] == function[2]);
    ck_assert_uint_eq(prof_stacks_places(s, &places), 2);
    ck_assert_int_eq(places[number[2]].line, 11);
    prof_stacks_close(s);
    prof_close(c);
}
END_TEST

START_TEST(damaged_tables_end_the_stack)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO frame(id, process, kind, address, module, offset) VALUES(1, 1, 1, 1, 99, 5), "
        "(2, 1, 42, NULL, NULL, NULL), (3, 1, NULL, 'text', 'text', 'text');"
        "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 9999, 9998, -5), "
        "(7, 0, 1, 1, 1);"
        "INSERT INTO stack(id, parent, frame, depth) VALUES(1, 2, 1, 1), (2, 1, 2, 1), (3, 3, 3, "
        "1), "
        "(4, 99, 1, 1), (5, NULL, 99, 1), (6, -1, NULL, 1), (-7, NULL, 1, 1);");
    struct prof_stacks *s;
    const struct prof_frame *f;
    ck_ok(prof_stacks_open(c, &s, &err));
    ck_assert_uint_eq(prof_stack_frames(s, 1, &f), 1);
    ck_assert_uint_eq(prof_stack_frames(s, 2, &f), 2);
    ck_assert_uint_eq(prof_stack_frames(s, 3, &f), 1);
    ck_assert_str_eq(f->function, "[callers unknown]");
    ck_assert_uint_eq(prof_stack_frames(s, 4, &f), 1);
    const int64_t none[] = {5, 6, -7, 0, 1000, PROF_UNKNOWN, INT64_MAX};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        ck_assert_uint_eq(prof_stack_frames(s, none[i], &f), 0);
        ck_assert_ptr_null(prof_stack_place(s, none[i]));
    }
    prof_stacks_close(s);
    prof_close(c);
}
END_TEST

START_TEST(a_capture_without_stacks)
{
    struct prof_capture *c = fixture_with_base(NULL);
    struct prof_stacks *s;
    const struct prof_frame *f;
    ck_ok(prof_stacks_open(c, &s, &err));
    ck_assert_uint_eq(prof_stacks_count(s), 0);
    ck_assert_uint_eq(prof_stack_frames(s, 1, &f), 0);
    ck_assert_uint_eq(prof_stacks_places(s, &f), 0);
    prof_stacks_close(s);
    prof_stacks_close(NULL);
    prof_close(c);
}
END_TEST

CHECK_MAIN("stacks", frames_come_outermost_first, kinds_of_frames, launches_of_nvcc,
           the_program_is_nearer_than_what_is_installed, places_are_numbered,
           damaged_tables_end_the_stack, a_capture_without_stacks)
