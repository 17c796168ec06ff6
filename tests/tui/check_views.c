/* The screens of perfkit top, cell by cell, without a terminal: what each view says of a known
 * capture. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libprof/base/utf8.h"
#include "tests/tui/screens.h"

static void compare_golden(const char *name, int width, int height)
{
    char path[400], *text = screen(width, height), *expected = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "%s/golden/%s", TUI_TESTS, name);
    if (getenv("TUI_ACCEPT")) {
        FILE *out = fopen(path, "w");
        fputs(text, out);
        fclose(out);
    }
    FILE *in = fopen(path, "r");
    ck_assert_msg(in != NULL, "no %s: write it with TUI_ACCEPT=1\n%s", path, text);
    ck_assert_int_ge(getdelim(&expected, &size, '\0', in), 0);
    fclose(in);
    ck_assert_msg(!strcmp(text, expected), "%s differs: now\n%s\nexpected\n%s", path, text,
                  expected);
    free(text);
    free(expected);
}

static void compare_views(bool ascii)
{
    open_finished(ascii);
    for (int view = 0; view < TUI_VIEWS; view++) {
        char name[80];
        if (view == TUI_VIEW_HEALTH || view == TUI_VIEW_FINDINGS || view == TUI_VIEW_HOST)
            continue;
        tui_app_show(&app, view);
        tui_app_fill(&app);
        snprintf(name, sizeof name, "%s-%s.txt", tui_views[view].key, ascii ? "80-ascii" : "160");
        compare_golden(name, ascii ? 80 : 160, 24);
    }
    tui_app_show(&app, TUI_VIEW_FINDINGS);
    tui_app_fill(&app);
    shows("The device waits for the host", 120, 24);
    tui_app_key(&app, TUI_KEY_ENTER);
    shows("Why it is slow", 120, 40);
    tui_app_show(&app, TUI_VIEW_HEALTH);
    tui_app_fill(&app);
    shows("no loss known", 120, 24); /* the scene counts no calls */
    shows("rollup (sums by second)", 120, 24);
    tui_app_key(&app, '0');
    shows("Where threads are: not recorded", 120, 24);
    shows("Which lines launch: not recorded", 120, 24);
    close_scene();
}

START_TEST(every_view_as_it_was)
{
    compare_views(false);
    compare_views(true);
}
END_TEST

START_TEST(a_kernel_in_full)
{
    open_finished(true);
    ck_assert_uint_ne(tui_app_key(&app, TUI_KEY_ENTER), 0);
    ck_assert(app.drilled);
    compare_golden("kernel-100-ascii.txt", 100, 40);
    tui_app_key(&app, TUI_KEY_ESCAPE);
    ck_assert(!app.drilled);
    close_scene();
}
END_TEST

/* No byte of a screen may be a control character but the line's end, no text turned around. */
static void is_harmless(const char *text)
{
    for (const char *at = text; *at;) {
        uint32_t code;
        size_t length = prof_report_utf8(at, strlen(at), &code);
        ck_assert_msg(length > 0, "broken UTF-8: %s", text);
        ck_assert_msg(code == '\n' || (code >= 32 && (code < 127 || code > 0x9f)), "control %x: %s",
                      code, text);
        ck_assert_msg(!(code >= 0x202a && code <= 0x202e) && !(code >= 0x2066 && code <= 0x2069),
                      "turned text: %s", text);
        at += length;
    }
}

START_TEST(hostile_names_are_text)
{
    open_finished(false);
    for (int view = 0; view < TUI_VIEWS; view++) {
        tui_app_show(&app, view);
        tui_app_fill(&app);
        char *text = screen(220, 50);
        is_harmless(text);
        free(text);
    }
    tui_app_show(&app, TUI_VIEW_KERNELS);
    tui_app_fill(&app);
    shows("evil\\x1b]0;owned", 220, 50);
    app.places[0].chosen = 2;
    app.places[0].has_id = false;
    tui_app_key(&app, TUI_KEY_ENTER);
    char *text = screen(220, 50);
    is_harmless(text);
    ck_assert(strstr(text, "owned"));
    free(text);
    close_scene();
}
END_TEST

/* Sums of what no program took stop at the end; the sanitizers watch. */
START_TEST(damaged_numbers)
{
    scene_make(&scene, "damaged");
    scene_second(&scene, 0, true);
    scene_second(&scene, 1, true);
    scene_sql(&scene, "UPDATE kernel SET duration = 9223372036854775807, api_duration = duration;"
                      "UPDATE transfer SET duration = 9223372036854775807, bytes = duration;"
                      "UPDATE memset SET duration = 9223372036854775807, bytes = duration;"
                      "UPDATE range SET duration = 9223372036854775807");
    scene_state(&scene, "complete", 2000000000);
    scene_publish(&scene);
    ck_assert(tui_app_make(&app, scene.path, false));
    do
        ck_ok(tui_app_refresh(&app, 0, err));
    while (!app.model->caught_up);
    for (int view = 0; view < TUI_VIEWS; view++) {
        tui_app_show(&app, view);
        tui_app_fill(&app);
        free(screen(160, 40));
    }
    close_scene();
}
END_TEST

START_TEST(json_is_the_table)
{
    char *text = NULL;
    size_t size = 0;
    open_finished(false);
    FILE *out = open_memstream(&text, &size);
    ck_ok(tui_app_json(&app, (1u << TUI_VIEWS) - 1, out, err));
    fclose(out);
    ck_assert_ptr_eq(strchr(text, '\n'), text + size - 1); /* one line */
    ck_assert_ptr_null(strchr(text, 27));
    static const char *const parts[] = {"\"state\":\"finished\"",
                                        "\"whole\":true",
                                        "\"kernels\":{\"total_rows\":",
                                        "\"streams\":{\"total_rows\":",
                                        "\"transfers\":{\"total_rows\":",
                                        "\"memory\":{\"total_rows\":",
                                        "\"ranges\":{\"total_rows\":",
                                        "\"processes\":{\"total_rows\":",
                                        "\"findings\":{\"total_rows\":",
                                        "\"devices\":{\"total_rows\":",
                                        "\"health\":{\"total_rows\":",
                                        "\"host\":{\"total_rows\":",
                                        "\"all_count\":",
                                        "\"gpu_share\":null"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        ck_assert_msg(strstr(text, parts[i]) != NULL, "no %s in %s", parts[i], text);
    /* Columns of the report's table that top has too: this one is known for a kernel of the scene.
     */
    size_t columns = 0;
    for (const struct prof_report_column *c = prof_report_table("kernels")->columns; c->key; c++) {
        char key[64];
        if (!c->in_top)
            continue;
        columns++;
        snprintf(key, sizeof key, "\"%s\":", c->key);
        ck_assert_msg(strstr(text, key) != NULL, "no column %s in %s", c->key, text);
    }
    ck_assert_uint_ge(columns, 2);
    ck_assert_ptr_nonnull(strstr(text, "\"registers\":32"));
    ck_assert_int_eq(app.view, TUI_VIEW_KERNELS);
    free(text);
    close_scene();
}
END_TEST

/* Two devices that work all the time are 100 % of two, not 200 %; each has its rank beside it. */
START_TEST(several_devices)
{
    scene_make(&scene, "several");
    scene_sql(&scene,
              "UPDATE device SET uuid = NULL, ordinal = 0; UPDATE process SET rank = id + 6");
    for (int i = 0; i < 100; i++) {
        scene_kernel(&scene, i * 10000000, 10000000, 1, 1, true);
        scene_kernel(&scene, i * 10000000, 10000000, 3, 3, true);
    }
    scene_state(&scene, "complete", 1000000000);
    scene_publish(&scene);
    ck_assert(tui_app_make(&app, scene.path, true));
    app.model->window_s = 0;
    ck_ok(tui_app_refresh(&app, 0, err));
    shows("] 100.0 % of 2 devices", 80, 24);
    tui_app_show(&app, TUI_VIEW_DEVICES);
    tui_app_fill(&app);
    shows("GPU 0 (rank 7)", 80, 24);
    shows("GPU 0 (rank 8)", 80, 24);
    close_scene();
}
END_TEST

/* Call stacks name the lines that launch a kernel and that hold memory. */
START_TEST(lines_of_stacks)
{
    scene_make(&scene, "lines");
    scene_second(&scene, 0, true);
    scene_sql(
        &scene,
        "INSERT INTO string(id, value) VALUES(50, 'step'), (51, '/src/train.c'), (52, 'main'),"
        "(53, '\033[31mred');"
        "INSERT INTO frame(id, process, kind, address) VALUES(1, 1, 1, 4096), (2, 1, 1, 8192), "
        "(3, 1, 1, 9000);"
        "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 52, 51, 80), "
        "(2, 0, 50, 51, 36), (3, 0, 53, 51, 7);"
        "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, 1, 2, 2), "
        "(3, 2, 3, 3);"
        "UPDATE kernel SET stack = 2 WHERE config = 1;"
        "UPDATE kernel SET stack = 3 WHERE config = 2;"
        "UPDATE allocation SET stack = 2;"
        "INSERT INTO cpu_sample(start, thread, kind, weight, stack) "
        "VALUES(1000, 1, 1, 1000000, 3), (2000, 1, 1, 1000000, 3);"
        "INSERT INTO cpu_sample(start, thread, kind, duration, weight, stack) "
        "VALUES(3000, 1, 2, 5000000, 5000000, 2);");
    for (int i = 0; i < 200; i++) /* shorter than their launches */
        scene_kernel(&scene, 900000000 + i * 4000, 1000, 1, 4, true);
    scene_state(&scene, "complete", 1000000000);
    scene_publish(&scene);
    ck_assert(tui_app_make(&app, scene.path, true));
    app.model->window_s = 0;
    ck_ok(tui_app_refresh(&app, 0, err));
    shows("bound", 160, 24);
    shows(" launch ", 160, 24); /* of the hostile one; the others are not known */
    tui_app_key(&app, TUI_KEY_ENTER);
    shows("Launched by (call stacks), all of the capture", 100, 60);
    shows("  step (train.c:36)", 100, 60);
    shows("by main (train.c:80)", 100, 60);
    shows("\\x1b[31mred (train.c:7)", 100, 60);
    lacks("by which lines", 100, 60);
    tui_app_show(&app, TUI_VIEW_MEMORY);
    tui_app_fill(&app);
    shows("step (train.c:36) since 10 ns", 120, 24);
    tui_app_key(&app, '0');
    shows("GPU idle", 120, 24);
    shows("\\x1b[31mred (train.c:7)", 120, 24); /* sampled, and it launches */
    shows("launching", 140, 24);
    lacks("not recorded", 120, 24);
    close_scene();
}
END_TEST

/* What perfkit report says of a finished capture, whatever the window; Enter opens the row. */
START_TEST(findings_are_of_the_whole_capture)
{
    scene_make(&scene, "findings");
    scene_second(&scene, 0, true);
    for (int i = 0; i < 9000;
         i++) /* shorter than their launches, and more than a first look reads */
        scene_kernel(&scene, 100000000 + i * 4000, 1000, 1, 4, true);
    scene_kernel(&scene, 80000000000, 1000, 1, 4, true);
    scene_state(&scene, "complete", 90000000000);
    scene_publish(&scene);
    ck_assert(tui_app_make(&app, scene.path, true));
    app.model->window_s = 1;
    tui_app_show(&app, TUI_VIEW_FINDINGS);
    do
        ck_ok(tui_app_refresh(&app, 0, err));
    while (!app.model->caught_up);
    shows("Analysed: 36.0 ms from 100 ms on", 120, 24);
    lacks("perfkit report", 120, 24);
    size_t rows = app.table.order.count;
    ck_assert_uint_ge(rows, 2);
    for (size_t i = 0; i < rows; i++) {
        char title[80];
        tui_app_key(&app, TUI_KEY_ESCAPE);
        tui_app_key(&app, TUI_KEY_HOME);
        for (size_t k = 0; k < i; k++)
            tui_app_key(&app, TUI_KEY_DOWN);
        const struct tui_value *value = tui_table_value(&app.table, app.table.order.data[i], 1);
        snprintf(title, sizeof title, "%s", tui_table_text_of(&app.table, value));
        tui_app_key(&app, TUI_KEY_ENTER);
        ck_assert(app.drilled);
        shows(title, 100, 60);
        shows("Where it is worst", 100, 60);
        shows("Analysed: 36.0 ms from 100 ms on", 100, 60);
    }
    app.target = 1; /* of no rule and device that is there */
    app.stale = true;
    tui_app_fill(&app);
    shows("No longer found", 100, 60);
    close_scene();
}
END_TEST

static bool known(const struct tui_app *of, const char *key)
{
    size_t column = 0;
    while (!of->table.columns[column].column.key ||
           strcmp(of->table.columns[column].column.key, key) != 0)
        column++;
    return tui_table_value(&of->table, 0, column)->kind;
}

/* What a thread reads beside the keys is what a view reads itself, and is read once. */
START_TEST(a_finished_capture_is_read_beside_the_keys)
{
    const struct timespec tick = {.tv_nsec = 1000000};
    for (int view = 0; view < TUI_VIEWS; view++) {
        char *texts[2];
        if (view == TUI_VIEW_HEALTH) /* shows what reading took */
            continue;
        for (int beside = 0; beside < 2; beside++) {
            open_finished(true);
            app.beside = beside;
            tui_app_show(&app, view);
            tui_app_fill(&app);
            while (app.reader) {
                if (tui_app_has_read(&app))
                    ck_ok(tui_app_refresh(&app, 0, err));
                else
                    nanosleep(&tick, NULL);
            }
            ck_assert(!app.stale);
            texts[beside] = screen(160, 50);
            ck_assert_int_eq(app.readings[view].done, beside && tui_views[view].details);
            tui_app_show(&app, view);
            tui_app_fill(&app);
            ck_assert_ptr_null(app.reader);
            close_scene();
        }
        ck_assert_str_eq(texts[0], texts[1]);
        free(texts[0]);
        free(texts[1]);
    }
}
END_TEST

static int64_t steps(int count, int64_t at, int64_t length, bool recorded)
{
    for (int i = 0; i < count; i++, at += length) {
        char sql[200];
        snprintf(sql, sizeof sql,
                 "INSERT INTO range(start, duration, thread, name, depth) VALUES(%lld, %lld, 1, "
                 "900, 0)",
                 (long long)at, (long long)length - 10000);
        scene_sql(&scene, sql);
        for (int k = 0; recorded && k < 10; k++)
            scene_kernel(&scene, at + k * 800000, 100000, 1, 1, true);
    }
    return at;
}

static void pause_at(int64_t at, bool ends)
{
    char sql[120];
    snprintf(sql, sizeof sql,
             "INSERT INTO recording(process, start, begins, reason) VALUES(1, %lld, %d, 6)",
             (long long)at, ends);
    scene_sql(&scene, sql);
}

/* Iterations of 12 ms, and of 10 in pauses and before CUPTI was on. */
START_TEST(findings_have_the_recording_overhead)
{
    scene_make(&scene, "overhead");
    scene_sql(&scene, "INSERT INTO string VALUES (900, 'step')");
    int64_t at = 100000000;
    pause_at(at, false);
    at = steps(12, at, 10000000, false);
    pause_at(at, true);
    for (int pause = 0; pause < 4; pause++) {
        at = steps(30, at, 12000000, true);
        pause_at(at, false);
        at = steps(12, at + 30000000, 10000000, false);
        pause_at(at, true);
    }
    at = steps(30, at, 12000000, true);
    scene_state(&scene, "complete", at);
    scene_publish(&scene);
    ck_assert(tui_app_make(&app, scene.path, true));
    tui_app_show(&app, TUI_VIEW_FINDINGS);
    do
        ck_ok(tui_app_refresh(&app, 0, err));
    while (!app.model->caught_up);
    shows("Recording overhead: iterations take 1.20x [1.20, 1.20] as long", 140, 30);
    tui_app_key(&app, TUI_KEY_ENTER);
    shows("Of it without the recording overhead", 140, 50);
    close_scene();
}
END_TEST

/* Rules find the same in several phases: each row has a page of its own. */
START_TEST(findings_of_phases)
{
    scene_make(&scene, "phases");
    scene_sql(&scene, "INSERT INTO string VALUES (900, 'loop-a'), (901, 'loop-b')");
    for (int phase = 0; phase < 2; phase++) {
        for (int i = 0; i < 20; i++) {
            int64_t start = 100000000 + phase * 1000000000 + i * 10000000;
            char sql[200];
            snprintf(sql, sizeof sql,
                     "INSERT INTO range(start, duration, thread, name, depth) VALUES(%lld, %lld, "
                     "1, %d, 0)",
                     (long long)start, 9000000LL, 900 + phase);
            scene_sql(&scene, sql);
            for (int k = 0; k < 100; k++)
                scene_kernel(&scene, start + k * 80000, 70000, 1, 1, true);
        }
    }
    scene_state(&scene, "complete", 2000000000);
    scene_publish(&scene);
    ck_assert(tui_app_make(&app, scene.path, true));
    tui_app_show(&app, TUI_VIEW_FINDINGS);
    do
        ck_ok(tui_app_refresh(&app, 0, err));
    while (!app.model->caught_up);
    shows("in 2 phases", 140, 30);
    shows("all phases", 80, 24);
    tui_app_show(&app, TUI_VIEW_KERNELS);
    shows("perfkit top", 140, 40);
    ck_ok(tui_app_refresh(&app, 0, err));
    shows(", in 2 phases): ", 140, 40); /* the dashboard has the sum, as the report */
    tui_app_show(&app, TUI_VIEW_FINDINGS);
    ck_ok(tui_app_refresh(&app, 0, err));
    const char *names[] = {"loop-a", "loop-b"};
    unsigned seen = 0;
    for (size_t i = 0, rows = app.table.order.count; i < rows; i++) {
        tui_app_key(&app, TUI_KEY_ESCAPE);
        tui_app_key(&app, TUI_KEY_HOME);
        for (size_t k = 0; k < i; k++)
            tui_app_key(&app, TUI_KEY_DOWN);
        const struct tui_value *value = tui_table_value(&app.table, app.table.order.data[i], 6);
        const char *text = tui_table_text_of(&app.table, value);
        int phase = text && !strcmp(text, names[1]);
        ck_assert(!text || !strcmp(text, names[phase]));
        tui_app_key(&app, TUI_KEY_ENTER);
        ck_assert(app.drilled);
        if (!text)
            continue;
        seen |= 1u << phase;
        shows(names[phase], 100, 60);
        lacks(names[1 - phase], 100, 60);
    }
    ck_assert_uint_eq(seen, 3);
    close_scene();
}
END_TEST

/* Columns without data take no room; the driver (tests/counters/fake_nvml.c) fills some. */
START_TEST(devices_as_the_driver_reports)
{
    struct scene live;
    struct tui_app other;
    for (int with = 0; with < 2; with++) {
        struct tui_grid grid;
        char *text = NULL;
        size_t size = 0;
        setenv("FAKE_GPM", with ? "yes" : "none", 1);
        scene_make(&live, "devices");
        scene_second(&live, 0, true);
        ck_assert(tui_app_make(&other, live.path, true));
        tui_app_show(&other, TUI_VIEW_DEVICES);
        ck_ok(tui_app_refresh(&other, 0, err));
        /* two samples, however slow the machine is */
        for (int i = 0; i < 20 && other.table.rows.count && !known(&other, "sm_share"); i++) {
            nanosleep(&(struct timespec){.tv_nsec = 110000000}, NULL);
            ck_ok(tui_app_refresh(&other, 0, err));
            if (!with)
                break;
        }
        ck_assert(tui_grid_make(&grid, 200, 24, true));
        tui_app_draw(&other, &grid);
        FILE *out = open_memstream(&text, &size);
        tui_grid_print(&grid, out);
        fclose(out);
        ck_assert_msg(!strstr(text, "    SM%") == !with, "%s", text);
        ck_assert_msg(!strstr(text, "  2.0 %   3.0 %   5.0 %  10.0 %") == !with, "%s", text);
        ck_assert_ptr_null(strstr(text, "FP32% ")); /* an error of this GPU's */
        ck_assert_ptr_null(strstr(text, "temp C")); /* not in the fake */
        free(text);
        tui_grid_free(&grid);
        tui_app_free(&other);
        scene_remove(&live);
    }
}
END_TEST

static void recorder(void *context, struct tui_health *health)
{
    *health = (struct tui_health){.dropped = 0,
                                  .spools = *(int64_t *)context ? 2 : PROF_UNKNOWN,
                                  .spool_bytes = 2048,
                                  .recorder_pid = *(int64_t *)context ? 1234567 : PROF_UNKNOWN,
                                  .recorder_cpu = 0.02,
                                  .recorder_bytes = 4096};
}

/* A pid is no amount: without separators; and where nothing records, one n/a. */
START_TEST(health_of_the_recorder)
{
    for (int64_t running = 0; running < 2; running++) {
        char *text = NULL;
        size_t size = 0;
        open_finished(true);
        app.measure = recorder;
        app.measure_context = &running;
        tui_app_show(&app, TUI_VIEW_HEALTH);
        ck_ok(tui_app_refresh(&app, 0, err));
        tui_app_fill(&app);
        FILE *out = open_memstream(&text, &size);
        ck_ok(tui_app_print(&app, 100, 40, out, err));
        fclose(out);
        ck_assert_msg(!strstr(text, "(pid 1234567)") == !running, "%s", text);
        ck_assert_msg(!strstr(text, "2.00 KiB in 2 spools") == !running, "%s", text);
        ck_assert_ptr_null(strstr(text, "n/a in"));
        free(text);
        close_scene();
    }
}
END_TEST

CHECK_MAIN("tui.views", every_view_as_it_was, a_kernel_in_full, hostile_names_are_text,
           damaged_numbers, json_is_the_table, several_devices, lines_of_stacks,
           findings_are_of_the_whole_capture, a_finished_capture_is_read_beside_the_keys,
           findings_of_phases, findings_have_the_recording_overhead, devices_as_the_driver_reports,
           health_of_the_recorder)
