/* Samples of the processors over device time that is known: what counts as idle, which function and
 * thread gets it, filters, the flame graph, damage; and the finding that names the function. */
#include <math.h>
#include <string.h>

#include "libprof/include/prof_cpu.h"
#include "tests/analysis/fixture.h"

/* The device works in [100,200) and [300,400) us, launched by thread 1: 100 us of 300 are idle.
 * Stack 2: load (data.c:7), stack 3: wait (data.c:9), stack 4: another thread's decode. */
#define DEVICE                                                                                     \
    "INSERT INTO kernel(start, duration, stream, config, api_lead, api_duration, thread) VALUES"   \
    "(100000, 100000, 1, 1, 2000, 1000, 1), (300000, 100000, 1, 1, 2000, 1000, 1);"
#define STACKS                                                                                     \
    "INSERT INTO string(id, value) VALUES(20, 'main'), (21, 'load'), (22, 'wait'), (23, "          \
    "'decode'), "                                                                                  \
    "(24, '/src/data.c');"                                                                         \
    "INSERT INTO frame(id, process, kind, address) VALUES(1, 1, 1, 10), (2, 1, 1, 20), "           \
    "(3, 1, 1, 30), (4, 1, 1, 40);"                                                                \
    "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 20, 24, 1), "             \
    "(2, 0, 21, 24, 7), (3, 0, 22, 24, 9), (4, 0, 23, 24, 11);"                                    \
    "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, 1, 2, 2), (3, 1, 3, "  \
    "2), "                                                                                         \
    "(4, NULL, 4, 1);"
#define SAMPLES                                                                                    \
    "INSERT INTO cpu_sample(start, thread, kind, duration, weight, stack) VALUES"                  \
    "(50000, 1, 1, NULL, 10000, 2),"  /* before the device began */                                \
    "(150000, 1, 1, NULL, 10000, 2)," /* while it works */                                         \
    "(250000, 1, 1, NULL, 10000, 2)," /* while it is idle */                                       \
    "(260000, 1, 4, NULL, 10000, 2),"                                                              \
    "(180000, 1, 2, 40000, 40000, 3)," /* half of it idle */                                       \
    "(280000, 1, 3, 10000, 20000, NULL),"                                                          \
    "(255000, 2, 1, NULL, 70000, 4),"                                                              \
    "(200000, 2, 2, 100000, 100000, NULL);"

static const struct prof_cpu_function *function(const struct prof_cpu *cpu, const char *name,
                                                bool launches)
{
    for (size_t i = 0; i < cpu->function_count; i++) {
        if (cpu->functions[i].launches == launches && strcmp(cpu->functions[i].function, name) == 0)
            return &cpu->functions[i];
    }
    ck_abort_msg("no function %s", name);
    return NULL;
}

START_TEST(idle_time_is_where_no_device_works)
{
    struct prof_capture *c = fixture_with_base(DEVICE STACKS SAMPLES);
    struct prof_cpu cpu;
    ck_ok(prof_cpu(c, NULL, &cpu, &err));
    ck_assert_int_eq(cpu.window_ns, 300000);
    ck_assert_int_eq(cpu.idle_ns, 100000);
    const struct prof_cpu_function *load = function(&cpu, "load", true);
    ck_assert_int_eq(load->times.samples, 4);
    ck_assert_int_eq(load->times.ns[PROF_CPU_USER], 30000);
    ck_assert_int_eq(load->times.idle_ns[PROF_CPU_USER], 10000);
    ck_assert_int_eq(load->times.idle_ns[PROF_CPU_KERNEL], 10000);
    ck_assert_str_eq(load->file, "/src/data.c");
    ck_assert_int_eq(load->line, 7);
    const struct prof_cpu_function *wait = function(&cpu, "wait", true);
    ck_assert_int_eq(wait->times.ns[PROF_CPU_BLOCKED], 40000);
    ck_assert_int_eq(wait->times.idle_ns[PROF_CPU_BLOCKED], 20000);
    ck_assert_int_eq(cpu.launching.idle_ns[PROF_CPU_PREEMPTED], 20000);
    ck_assert_int_eq(cpu.others.idle_ns[PROF_CPU_BLOCKED], 100000);
    prof_cpu_free(&cpu);
    prof_close(c);
}
END_TEST

START_TEST(launching_threads_first_and_workers_by_work)
{
    struct prof_capture *c = fixture_with_base(DEVICE STACKS SAMPLES);
    struct prof_cpu cpu;
    ck_ok(prof_cpu(c, NULL, &cpu, &err));
    ck_assert_uint_eq(cpu.thread_count, 2);
    ck_assert(cpu.threads[0].launches && cpu.threads[0].thread == 1);
    ck_assert(!cpu.threads[1].launches && cpu.threads[1].thread == 2);
    ck_assert_uint_eq(cpu.function_count, 5);
    ck_assert(cpu.functions[2].launches && !cpu.functions[3].launches);
    ck_assert_str_eq(cpu.functions[3].function, "decode"); /* it ran; the other waited longer */
    prof_cpu_free(&cpu);
    prof_close(c);
}
END_TEST

START_TEST(filters_choose)
{
    struct prof_capture *c = fixture_with_base(DEVICE STACKS SAMPLES);
    struct prof_cpu cpu;
    struct prof_filter thread = {.thread = 2}, time = {.begin_ns = 240000, .end_ns = 262000};
    ck_ok(prof_cpu(c, &thread, &cpu, &err));
    ck_assert_int_eq(cpu.launching.samples, 0);
    ck_assert_int_eq(cpu.others.samples, 2);
    ck_assert_int_eq(cpu.idle_ns, 100000); /* of the device, whose thread another is */
    prof_cpu_free(&cpu);
    ck_ok(prof_cpu(c, &time, &cpu, &err));
    ck_assert_int_eq(cpu.launching.samples + cpu.others.samples, 3);
    prof_cpu_free(&cpu);
    prof_close(c);
}
END_TEST

START_TEST(without_samples_or_devices)
{
    struct prof_capture *c = fixture_with_base(DEVICE);
    struct prof_cpu cpu;
    ck_ok(prof_cpu(c, NULL, &cpu, &err));
    ck_assert_uint_eq(cpu.function_count, 0);
    ck_assert_int_eq(cpu.idle_ns, PROF_UNKNOWN);
    prof_cpu_free(&cpu);
    prof_close(c);
    c = fixture_with_base(STACKS SAMPLES);
    ck_ok(prof_cpu(c, NULL, &cpu, &err));
    ck_assert_int_eq(cpu.idle_ns, PROF_UNKNOWN);
    ck_assert_int_eq(cpu.others.samples, 8);
    ck_assert_int_eq(function(&cpu, "load", false)->times.idle_ns[PROF_CPU_USER], 0);
    prof_cpu_free(&cpu);
    prof_close(c);
}
END_TEST

/* The sampler does not know of windows that the program opens: recorded from 200 to 270 us. */
START_TEST(windows_count)
{
    struct prof_capture *c =
        fixture_with_base(DEVICE STACKS SAMPLES "INSERT INTO recording(process, start, begins) "
                                                "VALUES(1, 0, 0), (1, 200000, 1), (1, 270000, 0);");
    struct prof_cpu cpu;
    ck_ok(prof_cpu(c, NULL, &cpu, &err));
    const struct prof_cpu_function *load = function(&cpu, "load", true);
    ck_assert_int_eq(load->times.samples, 2); /* at 250 and 260 us */
    ck_assert_int_eq(load->times.ns[PROF_CPU_USER], 10000);
    const struct prof_cpu_function *wait = function(&cpu, "wait", true);
    ck_assert_int_eq(wait->times.ns[PROF_CPU_BLOCKED], 20000); /* of 40, from 180 us on */
    prof_cpu_free(&cpu);
    struct prof_flame flame;
    ck_ok(prof_flame(c, NULL, PROF_FLAME_CPU, &flame, &err));
    ck_assert_int_eq(flame.nodes[0].total, 90000);
    prof_flame_free(&flame);
    prof_close(c);
}
END_TEST

START_TEST(damage_stays_within_integers)
{
    struct prof_capture *c = fixture_with_base(
        DEVICE STACKS
        "INSERT INTO cpu_sample(start, thread, kind, duration, weight, stack) VALUES"
        "(9223372036854775807, 1, 1, NULL, 9223372036854775807, 1),"
        "(NULL, 1, 1, NULL, 400000000000000000, 1), (0, 1, 1, NULL, 400000000000000000, 99),"
        "(5, 1, 1, NULL, 400000000000000000, 1), (-9223372036854775807, 1, 2, 9223372036854775807, "
        "5, 1),"
        "(1, 1, 2, -7, 5, 1), (1, 77, 2, 9, -5, 1), (1, 77, 9, 9, 5, 1), (1, NULL, 1, NULL, 5, "
        "NULL),"
        "('x', 'y', 'z', 'a', 'b', 'c');"
        "INSERT INTO kernel(start, duration, stream, config, thread) VALUES"
        "(-9223372036854775807, 9223372036854775807, 1, 1, 1), "
        "(9223372036854775800, 9223372036854775807, 1, 1, 1);");
    struct prof_cpu cpu;
    struct prof_flame flame;
    ck_ok(prof_cpu(c, NULL, &cpu, &err));
    ck_assert_int_ge(prof_cpu_total(cpu.launching.ns), 0);
    prof_cpu_free(&cpu);
    ck_ok(prof_flame(c, NULL, PROF_FLAME_CPU, &flame, &err));
    prof_flame_free(&flame);
    prof_close(c);
}
END_TEST

/* Python whose functions nobody names: how long is told, and a wait for the interpreter's lock is
 * no wait like others. */
START_TEST(python_without_names)
{
    struct prof_capture *c = fixture_with_base(
        DEVICE
        "INSERT INTO string(id, value) VALUES(20, '_PyEval_EvalFrameDefault'), (21, 'take_gil'), "
        "(22, 'futex_wait'), (23, 'load'), (24, '/src/data.c');"
        "INSERT INTO module(id, process, path) VALUES(1, 1, '/opt/libpython3.11.so.1.0'), "
        "(2, 1, '/usr/lib/libc.so.6');"
        "INSERT INTO frame(id, process, kind, address, module) VALUES(1, 1, 1, 10, 1), "
        "(2, 1, 1, 20, 1), (3, 1, 1, 30, 2), (4, 1, 1, 40, NULL);"
        "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 20, NULL, NULL), "
        "(2, 0, 21, NULL, NULL), (3, 0, 22, NULL, NULL), (4, 0, 23, 24, 7);"
        "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, 1, 2, 2), "
        "(3, 2, 3, 3), (4, 1, 3, 2), (5, 1, 4, 2), (6, NULL, 3, 1);"
        "INSERT INTO cpu_sample(start, thread, kind, duration, weight, stack) VALUES"
        "(250000, 1, 2, 10000, 10000, 3), (260000, 1, 2, 10000, 20000, 4), "
        "(250000, 1, 1, NULL, 40000, 5), (250000, 1, 2, 10000, 80000, 6);");
    struct prof_cpu cpu;
    ck_ok(prof_cpu(c, NULL, &cpu, &err));
    ck_assert_int_eq(function(&cpu, "take_gil", true)->times.ns[PROF_CPU_BLOCKED], 10000);
    ck_assert_int_eq(function(&cpu, "load", true)->times.ns[PROF_CPU_USER], 40000);
    ck_assert_int_eq(function(&cpu, "futex_wait", true)->times.ns[PROF_CPU_BLOCKED], 100000);
    ck_assert_int_eq(cpu.interpreter_ns, 30000); /* not the program's own, not a C program's */
    prof_cpu_free(&cpu);
    prof_close(c);
}
END_TEST

static int64_t weight_of(const struct prof_flame *flame, const char *path)
{
    char text[256];
    for (size_t i = 1; i < flame->count; i++) {
        prof_flame_path(flame, i, text, sizeof text);
        if (flame->nodes[i].self > 0 && strcmp(text, path) == 0)
            return flame->nodes[i].self;
    }
    return 0;
}

START_TEST(flame_graphs)
{
    struct prof_capture *c = fixture_with_base(
        DEVICE STACKS SAMPLES "UPDATE thread SET tid=100, name=NULL WHERE id=1;"
                              "UPDATE thread SET tid=102, name='workers' WHERE id=2;");
    struct prof_flame flame;
    ck_ok(prof_flame(c, NULL, PROF_FLAME_CPU, &flame, &err));
    ck_assert_int_eq(weight_of(&flame, "main thread;main;load"), 40000);
    ck_assert_int_eq(weight_of(&flame, "workers;decode"), 70000);
    ck_assert_int_eq(flame.nodes[0].total, 110000);
    prof_flame_free(&flame);
    ck_ok(prof_flame(c, NULL, PROF_FLAME_BLOCKED, &flame, &err));
    ck_assert_int_eq(weight_of(&flame, "main thread;main;wait"), 40000);
    ck_assert_int_eq(weight_of(&flame, "workers"), 100000);
    prof_flame_free(&flame);
    prof_close(c);
}
END_TEST

/* Twenty steps of 1 ms in which the device works 100 us and the host is in load() for the rest. */
START_TEST(the_finding_names_the_function)
{
    struct prof_capture *c = fixture_with_base(
        STACKS
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 39) "
        "INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, "
        "thread) "
        "SELECT 1000000 + i * 1000000, 100000, 1, 1, 1, 5000, 2000, 1 FROM n;"
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 399) "
        "INSERT INTO cpu_sample(start, thread, kind, weight, stack) "
        "SELECT 1000000 + i * 100000 + 50000, 1, 1, 100000, CASE WHEN i % 5 THEN 2 END FROM n;"
        "UPDATE capture SET duration = 42000000;");
    struct prof_findings findings;
    const char *seen = NULL;
    ck_ok(prof_findings(c, NULL, &findings, &err));
    for (size_t i = 0; i < findings.count; i++) {
        if (strcmp(findings.rows[i].rule->id, "host-starvation") == 0)
            seen = findings.rows[i].seen;
    }
    ck_assert_msg(seen && strstr(seen, "The host was in load (data.c:7) for "), "%s",
                  seen ? seen : "no finding");
    ck_assert_ptr_nonnull(strstr(seen, "mostly computing."));
    prof_findings_free(&findings);
    prof_close(c);
}
END_TEST

CHECK_MAIN("cpu samples", idle_time_is_where_no_device_works, windows_count,
           launching_threads_first_and_workers_by_work, filters_choose, without_samples_or_devices,
           damage_stays_within_integers, python_without_names, flame_graphs,
           the_finding_names_the_function)
