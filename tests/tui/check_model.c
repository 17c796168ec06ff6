/* The model of perfkit top: what it adds up from pieces is what the reports say of the whole, while
 * a capture grows, when it ends, and whatever happens to its file. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libprof/include/prof_cpu.h"
#include "tests/tui/scene.h"
#include "tui/model.h"
#include "tui/views.h"

static void same_kernels(const struct tui_model *model, struct prof_capture *capture)
{
    struct prof_kernel_summary kernels;
    ck_ok(prof_kernel_summary(capture, NULL, PROF_BY_NAME, &kernels, err));
    ck_assert_uint_eq(model->kernels.count, kernels.count);
    for (size_t i = 0; i < kernels.count; i++) {
        const struct prof_kernel_row *row = &kernels.rows[i];
        const struct tui_kernel *found = NULL;
        for (size_t k = 0; k < model->kernels.count; k++) {
            if (!strcmp(model->kernels.data[k].name, row->name))
                found = &model->kernels.data[k];
        }
        ck_assert_msg(found != NULL, "no kernel %s", row->name);
        ck_assert_int_eq(found->total.count, row->duration_ns.count);
        ck_assert_int_eq(found->total.sum_ns, row->duration_ns.sum);
        ck_assert_int_eq(found->total.min_ns, row->duration_ns.min);
        ck_assert_int_eq(found->total.max_ns, row->duration_ns.max);
        ck_assert_int_eq(found->configs, row->configs);
        double p95 = tui_quantile(&found->total, 0.95);
        ck_assert_msg(p95 >= row->duration_ns.p95 / 1.5 && p95 <= row->duration_ns.p95 * 1.5,
                      "p95 %g, not near %g", p95, row->duration_ns.p95);
    }
    ck_assert_int_eq(model->total.sum_ns, kernels.listed_ns);
    prof_kernel_summary_free(&kernels);
}

static void same_copies(const struct tui_model *model, struct prof_capture *capture)
{
    struct prof_transfer_summary copies;
    ck_ok(prof_transfer_summary(capture, NULL, &copies, err));
    ck_assert_uint_eq(model->copies.count, copies.count);
    for (size_t i = 0; i < copies.count; i++) {
        const struct prof_transfer_row *row = &copies.rows[i];
        const struct tui_copies *found = NULL;
        for (size_t k = 0; k < model->copies.count; k++) {
            const struct tui_copies *c = &model->copies.data[k];
            if (c->kind == row->kind && c->source_kind == row->source_kind &&
                c->target_kind == row->target_kind)
                found = c;
        }
        ck_assert_msg(found != NULL, "no copies %s", row->kind_text);
        ck_assert_int_eq(found->all.count, row->duration_ns.count);
        ck_assert_int_eq(found->all.ns, row->duration_ns.sum);
        ck_assert_int_eq(found->unfinished, row->unfinished);
        ck_assert_int_eq(
            (int64_t)((double)found->all.rated_bytes * 1e9 / (double)found->all.rated_ns),
            (int64_t)row->mean_rate);
    }
    prof_transfer_summary_free(&copies);
}

static void same_memory(const struct tui_model *model, struct prof_capture *capture)
{
    struct prof_memory_summary memory;
    int64_t allocations = 0, freed = 0;
    ck_ok(prof_memory_summary(capture, NULL, 10, &memory, err));
    ck_assert_int_eq(model->peak_bytes, memory.total.peak_bytes);
    ck_assert_int_eq(model->peak_ns, memory.total.peak_ns);
    for (size_t i = 0; i < model->memory.count; i++) {
        allocations += model->memory.data[i].all.count;
        freed += model->memory.data[i].freed;
    }
    ck_assert_int_eq(allocations, memory.total.bytes.count);
    ck_assert_int_eq(freed, memory.total.freed);
    prof_memory_summary_free(&memory);
}

/* As `perfkit report` reads it now. */
static void same_as_report(const struct tui_model *model, const char *path)
{
    struct prof_capture *capture;
    ck_ok(prof_open(path, &capture, err));
    same_kernels(model, capture);
    same_copies(model, capture);
    same_memory(model, capture);
    if (model->phase == TUI_FINISHED)
        ck_assert_int_eq(model->wall_ns, prof_wall_ns(capture, NULL));
    prof_close(capture);
}

static void look(struct tui_model *model)
{
    do
        ck_ok(tui_model_look(model, 0, err));
    while (model->phase == TUI_FINISHED && !model->caught_up);
}

static void finish(struct scene *scene, struct tui_model *model, int seconds)
{
    scene_state(scene, "closing", 0);
    ck_assert(tui_model_tick(model));
    look(model);
    ck_assert_int_eq(model->phase, TUI_LET_GO);
    ck_assert_ptr_null(model->capture);
    scene_state(scene, "complete", (int64_t)seconds * 1000000000);
    scene_publish(scene); /* fails within its 3 s if anybody holds the file */
    ck_assert(tui_model_tick(model));
    look(model);
    ck_assert_int_eq(model->phase, TUI_FINISHED);
}

static void follow(const char *name, bool rollup)
{
    struct scene scene;
    scene_make(&scene, name);
    struct tui_model *model = tui_model_new(scene.path);
    look(model);
    ck_assert_int_eq(model->phase, TUI_WATCHING);
    for (int second = 0; second < 20; second++) {
        scene_second(&scene, second, rollup);
        if (second % 3 == 0) /* a second that is seen half, then whole */
            look(model);
        scene_kernel(&scene, (int64_t)second * 1000000000 + 999000000, 7777, 2, 1, rollup);
        look(model);
        same_as_report(model, scene.path);
    }
    ck_assert_int_eq(model->from_rollup, rollup);
    finish(&scene, model, 20);
    same_as_report(model, scene.path);
    tui_model_free(model);
    scene_remove(&scene);
}

START_TEST(totals_are_those_of_the_report)
{
    follow("rollup", true);
}
END_TEST

START_TEST(a_capture_without_rollup_is_read_by_its_kernels)
{
    follow("kernels", false);
}
END_TEST

START_TEST(a_finished_capture_is_read_in_pieces)
{
    struct scene scene;
    scene_make(&scene, "pieces");
    for (int second = 0; second < 100; second++)
        scene_second(&scene, second, true);
    scene_state(&scene, "complete", 100000000000);
    scene_publish(&scene);
    struct tui_model *model = tui_model_new(scene.path);
    unsigned looks = 0;
    do { /* 1 ns: one piece of each kind a look */
        ck_ok(tui_model_look(model, 1, err));
        looks++;
    } while (!model->caught_up && looks < 1000);
    ck_assert(model->caught_up);
    ck_assert_int_eq(model->phase, TUI_FINISHED);
    ck_assert_ptr_null(model->capture);
    same_as_report(model, scene.path);
    tui_model_free(model);
    scene_remove(&scene);
}
END_TEST

START_TEST(a_window_is_its_seconds)
{
    struct scene scene;
    struct prof_capture *capture;
    struct prof_kernel_summary kernels;
    scene_make(&scene, "window");
    for (int second = 0; second < 40; second++)
        scene_second(&scene, second, true);
    scene_state(&scene, "complete", 39500000000);
    scene_publish(&scene);
    struct tui_model *model = tui_model_new(scene.path);
    look(model);
    tui_model_window(model, 10); /* seconds 29 .. 39 */
    ck_assert(fabs(model->window_length_s - 10.5) < 1e-6);
    ck_ok(prof_open(scene.path, &capture, err));
    ck_ok(prof_kernel_summary(capture, &(struct prof_filter){.begin_ns = 29000000000}, PROF_BY_NAME,
                              &kernels, err));
    ck_assert_int_eq(model->window.sum_ns, kernels.listed_ns);
    ck_assert_int_eq(model->window.count, kernels.kernels);
    prof_kernel_summary_free(&kernels);
    prof_close(capture);
    tui_model_window(model, 0);
    ck_assert_int_eq(model->window.count, model->total.count);
    tui_model_free(model);
    scene_remove(&scene);
}
END_TEST

START_TEST(what_was_read_survives_the_file)
{
    struct scene scene, other;
    scene_make(&scene, "gone");
    scene_second(&scene, 0, true);
    struct tui_model *model = tui_model_new(scene.path);
    look(model);
    int64_t kernels = model->total.count;
    ck_assert_int_gt(kernels, 0);
    unlink(scene.path);
    ck_assert(tui_model_tick(model));
    look(model);
    ck_assert_int_eq(model->phase, TUI_GONE);
    ck_assert_int_eq(model->total.count, kernels);
    ck_assert(!tui_model_tick(model));
    scene_remove(&scene);
    scene_make(&other, "gone"); /* the same name, another capture */
    scene_second(&other, 0, true);
    scene_second(&other, 1, true);
    ck_assert(tui_model_tick(model));
    look(model);
    ck_assert_int_eq(model->phase, TUI_WATCHING);
    ck_assert(model->replaced);
    same_as_report(model, other.path);
    tui_model_free(model);
    scene_remove(&other);
}
END_TEST

START_TEST(another_file_in_its_place_begins_anew)
{
    struct scene scene, next;
    char path[200];
    scene_make(&scene, "first");
    for (int second = 0; second < 5; second++)
        scene_second(&scene, second, true);
    struct tui_model *model = tui_model_new(scene.path);
    look(model);
    scene_make(&next, "second");
    scene_second(&next, 0, true);
    scene_state(&next, "complete", 1000000000);
    scene_publish(&next);
    snprintf(path, sizeof path, "%s", scene.path);
    scene_remove(&scene);
    ck_assert_int_eq(rename(next.path, path), 0);
    ck_assert(tui_model_tick(model));
    look(model);
    ck_assert(model->replaced);
    ck_assert_int_eq(model->phase, TUI_FINISHED);
    same_as_report(model, path);
    tui_model_free(model);
    unlink(path);
}
END_TEST

static bool nobody(void *context, const char *spool)
{
    (void)context;
    ck_assert_str_eq(spool, "/nowhere");
    return false;
}

START_TEST(a_recorder_that_died_is_noticed)
{
    struct scene scene;
    scene_make(&scene, "abandoned");
    scene_second(&scene, 3, true);
    struct tui_model *model = tui_model_new(scene.path);
    model->is_served = nobody;
    look(model);
    ck_assert_int_eq(model->phase, TUI_ABANDONED);
    ck_assert_ptr_null(model->capture);          /* recover has its way */
    ck_assert_int_lt(model->now_ns, 5000000000); /* its last event, not the clock */
    ck_assert_int_gt(model->total.count, 0);
    tui_model_free(model);
    scene_remove(&scene);
}
END_TEST

static int known_memory(const struct tui_dashboard *dashboard)
{
    int count = 0;
    for (int i = 0; i < TUI_SPARK; i++)
        count += dashboard->memory_kib[i] > 0;
    return count;
}

START_TEST(memory_before_the_first_look_is_not_drawn)
{
    struct scene scene;
    struct tui_dashboard dashboard = {0};
    scene_make(&scene, "watched");
    scene_second(&scene, 0, true);
    struct tui_model *model = tui_model_new(scene.path);
    look(model);
    ck_assert(tui_model_is_live(model));
    model->live_bytes = 1 << 20;
    static const int64_t seconds[] = {100, 100, 103, 103}, known[] = {1, 1, 4, 4};
    for (int i = 0; i < 4; i++) {
        model->now_ns = seconds[i] * 1000000000;
        tui_dashboard_sample(&dashboard, model, NULL);
        ck_assert_int_eq(known_memory(&dashboard), known[i]);
    }
    tui_model_free(model);
    scene_remove(&scene);
}
END_TEST

/* The running second is part of the window, for as long as it has lasted, as for the other shares.
 */
START_TEST(a_device_is_busy_for_a_share_of_the_window)
{
    struct scene scene;
    struct tui_dashboard dashboard = {0};
    struct tui_device_history device = {0};
    scene_make(&scene, "busy");
    scene_second(&scene, 0, true);
    struct tui_model *model = tui_model_new(scene.path);
    look(model);
    for (int i = 0; i < TUI_SPARK; i++)
        device.busy_us[i] = i == TUI_SPARK - 1 ? 250000 : 500000;
    static const int64_t now_ms[] = {100500, 4500, 300};
    for (int i = 0; i < 3; i++)
        for (unsigned window = 0; window <= 60; window += 10) {
            model->now_ns = now_ms[i] * 1000000;
            tui_model_window(model, window);
            double busy = now_ms[i] == 300 ? 0.25 / 0.3 : 0.5;
            ck_assert_double_eq_tol(tui_dashboard_busy(&dashboard, model, &device), busy, 1e-9);
        }
    /* Nine tenths of each of these seconds were left out. */
    struct prof_unrecorded gaps[] = {{90100000000, 91000000000, 0}, {91100000000, 92000000000, 0}};
    model->now_ns = 92000000000;
    model->unrecorded = (struct prof_unrecorded_list){gaps, 2, 2};
    for (int i = 0; i < TUI_SPARK; i++)
        device.busy_us[i] = i >= TUI_SPARK - 3 && i < TUI_SPARK - 1 ? 50000 : 0;
    tui_model_window(model, 2);
    ck_assert_double_eq_tol(model->window_length_s, 0.2, 1e-9);
    ck_assert_double_eq_tol(tui_dashboard_busy(&dashboard, model, &device), 0.5, 1e-9);
    model->unrecorded = (struct prof_unrecorded_list){0};
    dashboard.whole = true;
    device.busy = 0.3;
    ck_assert_double_eq_tol(tui_dashboard_busy(&dashboard, model, &device), 0.3, 1e-9);
    tui_model_free(model);
    scene_remove(&scene);
}
END_TEST

/* All in one bucket: what 95 % are below is not in its middle. */
START_TEST(a_quantile_is_by_rank)
{
    struct tui_sum sum = {.count = 100, .sum_ns = 5600, .min_ns = 45, .max_ns = 63};
    sum.histogram.counts[5] = 100; /* 32 to 63 */
    double half = tui_quantile(&sum, 0.5), p95 = tui_quantile(&sum, 0.95);
    ck_assert_double_eq_tol(half, 53.24, 0.01); /* sqrt(45 * 63) */
    ck_assert_double_eq_tol(p95, 61.95, 0.01);  /* 45 * (63 / 45)^0.95 */
    ck_assert_double_eq_tol(tui_quantile(&sum, 1), 63, 1e-6);
}
END_TEST

/* What a process allocates on two devices is live on each. */
START_TEST(memory_is_of_its_device)
{
    struct scene scene;
    struct tui_dashboard dashboard = {0};
    scene_make(&scene, "devices");
    scene_sql(&scene, "UPDATE device SET uuid = 'GPU-2' WHERE id = 2");
    scene_second(&scene, 0, true);
    scene_sql(&scene, "INSERT INTO allocation(process, device, start, bytes, kind, thread) VALUES"
                      "(1, 1, 1000, 1048576, 3, 1), (2, 2, 2000, 3145728, 3, 2), "
                      "(2, 2, 3000, 1048576, 2, 2)");
    struct tui_model *model = tui_model_new(scene.path);
    look(model);
    tui_dashboard_sample(&dashboard, model, NULL);
    ck_assert_uint_eq(dashboard.device_count, 2);
    for (size_t i = 0; i < 2; i++)
        ck_assert_uint_eq(dashboard.devices[i].memory_kib[TUI_SPARK - 1],
                          dashboard.devices[i].device == 1 ? 1024 : 4096);
    tui_model_free(model);
    scene_remove(&scene);
}
END_TEST

/* As the report's "everything freed": no call can free a variable, the end of the program does. */
START_TEST(variables_end_with_the_program)
{
    struct scene scene;
    int64_t live = 0;
    scene_make(&scene, "variables");
    scene_second(&scene, 0, true);
    scene_sql(&scene, "INSERT INTO allocation(process, device, start, bytes, kind, thread) VALUES"
                      "(1, 1, 1000, 144, 6, 1), (1, 1, 1000, 96, 7, 1), (1, 1, 2000, 4096, 3, 1)");
    scene_state(&scene, "complete", 5000000000);
    scene_publish(&scene);
    struct tui_model *model = tui_model_new(scene.path);
    look(model);
    for (size_t i = 0; i < model->live.count; i++) {
        ck_assert(!prof_memory_is_static(model->live.data[i].kind));
        live += model->live.data[i].bytes;
    }
    ck_assert_int_ge(live, 4096);
    ck_assert_int_eq(model->live_bytes, live);
    tui_model_free(model);
    scene_remove(&scene);
}
END_TEST

static int slow_columns(const struct tui_dashboard *d)
{
    int count = 0;
    for (int i = 0; i < TUI_SPARK; i++)
        count += d->is_slow[i];
    return count;
}

/* 100 iterations of which the 60th and the 99th are slow: live the last 60, else all in 60 columns.
 */
START_TEST(slow_iterations_are_marked)
{
    struct scene scene;
    struct tui_dashboard d = {0};
    struct tui_grid grid;
    struct prof_filter filter = {0};
    scene_make(&scene, "slow");
    scene_sql(&scene,
              "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99) "
              "INSERT INTO range(start, duration, thread, name, depth) "
              "SELECT i * 10000000, 6000000 + 3000000 * (i IN (59, 98)), 1, 4, 0 FROM n;"
              "INSERT INTO kernel(start, duration, stream, config, thread, api_lead, api_duration) "
              "SELECT start + 100000, duration - 200000, 1, 1, 1, 5000, 3000 FROM range;");
    scene_state(&scene, "complete", 1000000000);
    scene_publish(&scene);
    struct prof_capture *capture;
    ck_ok(prof_open(scene.path, &capture, err));
    tui_dashboard_read(&d, capture, &filter, false);
    ck_assert_str_eq(d.iteration, "step");
    ck_assert_uint_eq(d.iterations, 60);
    ck_assert_uint_eq(d.slow, 2);
    ck_assert(d.is_slow[19] && d.is_slow[58]);
    ck_assert_uint_gt(d.iteration_us[58], d.iteration_us[57]);
    tui_dashboard_read(&d, capture, &filter, true);
    ck_assert_uint_eq(d.iterations, 100);
    ck_assert_uint_eq(d.slow, 2);
    ck_assert(d.is_slow[59 * 60 / 100] && d.is_slow[98 * 60 / 100]);
    ck_assert_int_eq(slow_columns(&d), 2);
    ck_assert_ptr_nonnull(strstr(d.why, "kernel alpha: "));
    ck_assert_int_eq(strncmp(d.why, "Slowest: 9.00 ms, usually 6.00 ms: ", 35), 0);
    struct tui_model *model = tui_model_new(scene.path);
    look(model);
    ck_assert(tui_grid_make(&grid, 120, 40, true));
    d.finding_count = 0; /* they have the same style */
    tui_dashboard_draw(&d, model, &grid, 0, 12);
    int marked = 0;
    for (int i = 0; i < grid.width * 12; i++)
        marked += grid.glyphs[i].style == TUI_BAD;
    ck_assert_int_eq(marked, 2);
    tui_grid_free(&grid);
    /* A narrow screen has fewer cells, and the whole run in them all the same. */
    ck_assert(tui_grid_make(&grid, 80, 24, true));
    int curves = tui_dashboard_lines(&d, 80, 24);
    ck_assert_int_eq(curves, 2);
    ck_assert_int_eq(tui_dashboard_lines(&d, 80, 23), 0);
    tui_dashboard_draw(&d, model, &grid, 0, curves);
    marked = 0;
    for (int i = 0; i < grid.width * curves; i++)
        marked += grid.glyphs[i].style == TUI_BAD;
    ck_assert_int_eq(marked, 2);
    tui_grid_free(&grid);
    tui_model_free(model);
    prof_close(capture);
    scene_remove(&scene);
}
END_TEST

START_TEST(no_capture_is_an_error)
{
    struct prof_error err = {0};
    struct tui_model *model = tui_model_new("/nowhere/run.sqlite");
    ck_assert_int_eq(tui_model_look(model, 0, &err), PROF_NOTFOUND);
    tui_model_free(model);
    model = tui_model_new("/proc/self/exe");
    ck_assert_int_eq(tui_model_look(model, 0, &err), PROF_FORMAT);
    tui_model_free(model);
}
END_TEST

START_TEST(absurd_numbers_do_no_harm)
{
    struct scene scene;
    scene_make(&scene, "absurd");
    scene_sql(
        &scene,
        "INSERT INTO rollup(second, stream, config, count, sum, min, max, histogram) VALUES"
        "(9223372036854775807, 1, 1, 9223372036854775807, 9223372036854775807, -5, 7, 'x'),"
        "(-9223372036854775808, 99, 99, 1, 1, 1, 1, NULL), (1, NULL, NULL, -4, -4, 0, 0, x'01'),"
        "(1, 1, 1, 9223372036854775807, 9223372036854775807, 1, 1, zeroblob(4000));"
        "INSERT INTO transfer(start, duration, stream, bytes, kind) VALUES"
        "(9223372036854775807, 9223372036854775807, 77, 9223372036854775807, 9999999999),"
        "(-1, -1, 1, -1, -1), (5, 9223372036854775807, 1, 9223372036854775807, 1);"
        "INSERT INTO allocation(process, start, \"end\", bytes, kind) VALUES"
        "(-1, 9223372036854775807, 1, 9223372036854775807, -1),"
        "(1, 1, -5, 9223372036854775807, 3), (NULL, NULL, NULL, NULL, NULL)");
    struct tui_model *model = tui_model_new(scene.path);
    look(model);
    tui_model_window(model, 60);
    look(model);
    tui_model_free(model);
    scene_remove(&scene);
}
END_TEST

/* Its writer names call stacks after it is complete, and only then makes one file of it. */
START_TEST(a_capture_is_finished_when_it_is_one_file)
{
    struct scene scene;
    scene_make(&scene, "naming");
    scene_second(&scene, 0, true);
    struct tui_model *model = tui_model_new(scene.path);
    ck_ok(tui_model_look(model, 0, err));
    ck_assert_int_eq(model->phase, TUI_WATCHING);
    scene_state(&scene, "complete", 1000000000);
    ck_ok(tui_model_look(model, 0, err));
    ck_assert_int_eq(model->phase, TUI_LET_GO);
    ck_assert_ptr_null(model->capture);
    ck_ok(tui_model_look(model, 0, err));
    ck_assert_int_eq(model->phase, TUI_LET_GO);
    scene_publish(&scene);
    ck_ok(tui_model_look(model, 0, err));
    ck_assert_int_eq(model->phase, TUI_FINISHED);
    tui_model_free(model);
    scene_remove(&scene);
}
END_TEST

/* The end of a capture holds no more of anything than was asked for, also of what has no time of
 * its own: declared work. */
START_TEST(the_end_of_a_capture_is_short)
{
    struct scene scene;
    struct prof_capture *whole, *tail;
    struct prof_cpu all, last;
    struct prof_roofline declared;
    int64_t begin = 0;
    scene_make(&scene, "tail");
    scene_second(&scene, 0, true);
    scene_sql(
        &scene,
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999) "
        "INSERT INTO cpu_sample(start, thread, kind, weight) SELECT i * 1000, 1, 1, 1000 FROM n;"
        "INSERT INTO range(id, start, duration, thread, name, depth) "
        "VALUES(500, 899900000, 200000, 1, 4, 0);"
        "INSERT INTO work(id, range, flop) VALUES(1, 500, 7);"
        "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 100) "
        "INSERT INTO work(id, range, flop) SELECT i, NULL, 1 FROM n");
    scene_kernel(&scene, 900000000, 50000, 1, 4, true);
    scene_state(&scene, "complete", 1000000000);
    scene_publish(&scene);
    ck_ok(prof_open(scene.path, &whole, err));
    ck_ok(prof_cpu(whole, NULL, &all, err));
    ck_assert_int_eq(all.launching.samples, 1000);
    ck_ok(prof_roofline(whole, NULL, PROF_ROOFLINE_KERNELS, &declared, err));
    size_t known = 0;
    for (size_t i = 0; i < declared.count; i++)
        known += declared.points[i].flop > 0;
    ck_assert_uint_eq(known, 1);
    prof_roofline_free(&declared);
    ck_ok(prof_open(scene.path, &tail, err));
    ck_ok(prof_live_tail(tail, 10, &begin, err));
    ck_ok(prof_cpu(tail, NULL, &last, err));
    ck_assert_int_eq(last.launching.samples, 10);
    ck_assert_int_ge(begin, 989000); /* samples reach back that far only */
    ck_ok(prof_roofline(tail, NULL, PROF_ROOFLINE_KERNELS, &declared, err));
    for (size_t i = 0; i < declared.count; i++)
        ck_assert(!(declared.points[i].flop > 0));
    prof_roofline_free(&declared);
    prof_cpu_free(&all);
    prof_cpu_free(&last);
    prof_close(whole);
    prof_close(tail);
    scene_remove(&scene);
}
END_TEST

CHECK_MAIN("tui.model", totals_are_those_of_the_report,
           a_capture_without_rollup_is_read_by_its_kernels, a_finished_capture_is_read_in_pieces,
           a_window_is_its_seconds, what_was_read_survives_the_file,
           another_file_in_its_place_begins_anew, a_recorder_that_died_is_noticed,
           a_quantile_is_by_rank, a_device_is_busy_for_a_share_of_the_window,
           memory_before_the_first_look_is_not_drawn, memory_is_of_its_device,
           variables_end_with_the_program, slow_iterations_are_marked, no_capture_is_an_error,
           absurd_numbers_do_no_harm, the_end_of_a_capture_is_short,
           a_capture_is_finished_when_it_is_one_file)
