/* What keys and clicks change on the screens of perfkit top, at any size, without a terminal. */
#include <stdlib.h>
#include <string.h>

#include "tests/tui/screens.h"

START_TEST(layout_uses_every_line_once)
{
    for (int height = 1; height <= 100; height++) {
        for (int notes = 0; notes < 8; notes++) {
            struct tui_layout l = tui_lay_out(height, notes, 0);
            int used = (l.meters >= 0 ? 3 : 0) + (l.tabs >= 0) + 1 + l.row_lines + l.note_lines +
                       (l.keys >= 0);
            ck_assert_int_eq(used, height);
            ck_assert_int_eq(l.rows, l.titles + 1);
            ck_assert_int_eq(l.notes, l.rows + l.row_lines);
        }
    }
    struct tui_layout l = tui_lay_out(24, 0, 0);
    ck_assert_int_eq(l.row_lines, 18);
}
END_TEST

START_TEST(keys_move_sort_and_filter)
{
    open_finished(false);
    struct tui_place *place = &app.places[TUI_VIEW_KERNELS];
    ck_assert_uint_eq(app.table.order.count, 3);
    tui_app_key(&app, TUI_KEY_DOWN);
    ck_assert_uint_eq(place->chosen, 1);
    tui_app_key(&app, TUI_KEY_END);
    ck_assert_uint_eq(place->chosen, 2);
    tui_app_key(&app, TUI_KEY_DOWN);
    ck_assert_uint_eq(place->chosen, 2);
    tui_app_key(&app, TUI_KEY_HOME);
    size_t first = app.table.order.data[0];
    tui_app_key(&app, 'r');
    ck_assert_uint_eq(app.table.order.data[2], first);
    tui_app_key(&app, 'r');
    ck_assert_uint_eq(app.table.order.data[0], first);
    tui_app_key(&app, '\\');
    for (const char *c = "BETA"; *c; c++)
        tui_app_key(&app, *c);
    ck_assert_uint_eq(app.table.order.count, 1);
    lacks("alpha", 100, 24);
    tui_app_key(&app, TUI_KEY_ENTER);
    shows("only: BETA", 80, 24);
    tui_app_key(&app, TUI_KEY_ESCAPE);
    ck_assert_uint_eq(app.table.order.count, 3);
    tui_app_key(&app, '\\');
    tui_app_key(&app, '#');
    shows("No row holds '#' (Esc: all rows)", 80, 24);
    tui_app_key(&app, TUI_KEY_ESCAPE);
    ck_assert_uint_eq(app.table.order.count, 3);
    tui_app_key(&app, '/');
    tui_app_key(&app, 'e');
    tui_app_key(&app, 'v');
    tui_app_key(&app, TUI_KEY_ENTER);
    ck_assert_int_eq(app.prompt, TUI_NO_PROMPT);
    size_t row = app.table.order.data[place->chosen];
    ck_assert_ptr_nonnull(
        strstr(app.model->kernels.data[app.table.rows.data[row].id].name, "evil"));
    tui_app_key(&app, '/');
    tui_app_key(&app, 'x');
    shows("not found", 80, 24);
    tui_app_key(&app, TUI_KEY_ESCAPE);
    ck_assert_uint_eq(tui_app_key(&app, 'q'), TUI_QUIT);
    ck_assert_uint_eq(tui_app_key(&app, TUI_KEY_F10), TUI_QUIT);
    close_scene();
}
END_TEST

/* Words that have a rank go by it, the highest first, and then by the order they came in. */
START_TEST(words_by_rank)
{
    static const struct tui_column column[] = {TUI_COLUMN("severity", "", WORD, 8, 0)};
    static const char *const words[] = {"info", "critical", "warning", "critical"};
    static const int64_t ranks[] = {0, 2, 1, 2};
    struct tui_table table = {0};
    tui_table_begin(&table, column, 1);
    for (size_t i = 0; i < 4; i++) {
        tui_table_row(&table, (int64_t)i, 0, TUI_NORMAL);
        tui_table_text(&table, 0, words[i]);
        tui_table_rank(&table, 0, ranks[i]);
    }
    tui_table_arrange(&table, "", 0, false);
    for (size_t i = 0; i < 4; i++)
        ck_assert_uint_eq(table.order.data[i], ((size_t[]){1, 3, 2, 0})[i]);
    tui_table_arrange(&table, "", 0, true);
    ck_assert_uint_eq(table.order.data[0], 0);
    tui_table_free(&table);
}
END_TEST

START_TEST(windows_and_pause)
{
    open_finished(false);
    shows("Window all", 100, 24); /* it was finished when it was opened */
    tui_app_key(&app, 'w');
    shows("last 1 s", 100, 24);
    tui_app_key(&app, 'w');
    tui_app_key(&app, 'w');
    shows("last 60 s", 100, 24);
    tui_app_key(&app, 'w');
    shows("Window all", 100, 24);
    tui_app_key(&app, TUI_KEY_F1 + 4);
    shows("last 1 s", 100, 24);
    tui_app_key(&app, 'p');
    shows("PAUSED", 100, 24);
    ck_assert(tui_app_key(&app, ' ') & TUI_REFRESH);
    tui_app_key(&app, '?');
    shows("any key goes back", 100, 30);
    tui_app_key(&app, 'q');
    lacks("any key goes back", 100, 30);
    close_scene();
}
END_TEST

START_TEST(clicks_choose)
{
    open_finished(false);
    free(screen(100, 24));
    struct tui_layout l = tui_app_layout(&app);
    int x;
    tui_tab_at(TUI_VIEW_MEMORY, 100, &x);
    tui_app_click(&app, x + 1, l.tabs, false);
    ck_assert_int_eq(app.view, TUI_VIEW_MEMORY);
    tui_app_key(&app, '1');
    free(screen(100, 24));
    tui_app_click(&app, 3, l.rows + 1, false);
    ck_assert_uint_eq(app.places[0].chosen, 1);
    tui_app_click(&app, 0, l.titles, false); /* by name */
    ck_assert_uint_eq(app.places[0].sort, 0);
    tui_app_click(&app, 3, l.rows, true);
    ck_assert(app.drilled);
    tui_app_click(&app, 3, 500, true); /* outside */
    close_scene();
}
END_TEST

START_TEST(the_cursor_stays_on_its_row)
{
    struct scene live;
    struct tui_app other;
    scene_make(&live, "cursor");
    scene_second(&live, 0, true);
    ck_assert(tui_app_make(&other, live.path, false));
    other.model->window_s = 0;
    ck_ok(tui_app_refresh(&other, 0, err));
    tui_app_key(&other, TUI_KEY_END);
    size_t row = other.table.order.data[other.places[0].chosen];
    int64_t id = other.table.rows.data[row].id;
    for (int i = 0; i < 50; i++) /* the last becomes the first */
        scene_kernel(&live, 500000000 + i, 90000000, 1, 4, true);
    scene_kernel(&live, 500000000, 1, 1, 1, true);
    ck_ok(tui_app_refresh(&other, 0, err));
    row = other.table.order.data[other.places[0].chosen];
    ck_assert_int_eq(other.table.rows.data[row].id, id);
    tui_app_free(&other);
    scene_remove(&live);
}
END_TEST

START_TEST(any_size_will_do)
{
    open_finished(false);
    for (int view = 0; view < TUI_VIEWS; view++) {
        tui_app_show(&app, view);
        tui_app_fill(&app);
        for (int width = 1; width <= 300; width += width < 20 ? 1 : 17) {
            for (int height = 1; height <= 60; height += height < 16 ? 1 : 11)
                free(screen(width, height));
        }
    }
    tui_app_show(&app, TUI_VIEW_KERNELS);
    tui_app_fill(&app);
    shows("alpha", 80, 24);
    shows("alpha", 40, 5);
    app.help = true;
    free(screen(1, 1));
    shows("any key goes back", 80, 24);
    close_scene();
}
END_TEST

START_TEST(cells_take_what_they_get)
{
    struct tui_grid grid;
    char text[9];
    ck_assert(tui_grid_make(&grid, 10, 2, false));
    ck_assert_int_eq(tui_grid_put(&grid, 8, 0, 100, TUI_NORMAL, "\xe4\xb8\xad\xe4\xb8\xad"), 2);
    ck_assert_uint_eq(grid.glyphs[9].code, 0); /* the right half */
    ck_assert_int_eq(tui_grid_put(&grid, 9, 1, 5, TUI_NORMAL, "\xe4\xb8\xad"), 0); /* no room */
    tui_grid_put(&grid, 0, 1, 5, TUI_NORMAL, "e\xcc\x81x");
    tui_glyph_text(&grid.glyphs[10], text);
    ck_assert_str_eq(text, "e\xcc\x81");
    ck_assert_uint_eq(grid.glyphs[11].code, 'x');
    tui_grid_put(&grid, -1, 0, 5, TUI_NORMAL, "x");
    tui_grid_put(&grid, 0, 5, 5, TUI_NORMAL, "x");
    tui_grid_bar(&grid, 5, 0, 100, 2, TUI_BAR);
    tui_grid_bar(&grid, 0, 0, 10, __builtin_nan(""), TUI_BAR);
    ck_assert_uint_eq(grid.glyphs[0].code, ' ');
    tui_grid_free(&grid);
    ck_assert(!tui_grid_make(&grid, 0, 5, false));
    ck_assert(!tui_grid_make(&grid, 100000, 100000, false));
}
END_TEST

CHECK_MAIN("tui.keys", layout_uses_every_line_once, keys_move_sort_and_filter, words_by_rank,
           windows_and_pause, clicks_choose, the_cursor_stays_on_its_row, any_size_will_do,
           cells_take_what_they_get)
