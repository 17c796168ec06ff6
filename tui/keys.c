/* What keys and clicks do, as in htop: letters and function keys, a line to type for searching. */
#include <stdio.h>
#include <string.h>

#include "tui/app.h"

static size_t page(const struct tui_app *app)
{
    int lines = tui_app_layout(app).row_lines;
    return lines > 1 ? (size_t)lines - 1 : 1;
}

static void remember_selection(struct tui_app *app)
{
    struct tui_place *place = tui_app_cursor(app);
    const struct tui_table *table = &app->table;
    place->has_id = place->chosen < table->order.count;
    if (place->has_id)
        place->chosen_id = table->rows.data[table->order.data[place->chosen]].id;
}

static unsigned move_selection(struct tui_app *app, long by)
{
    struct tui_place *place = tui_app_cursor(app);
    size_t count = app->table.order.count;
    if (!count)
        return TUI_REDRAW;
    if (by < 0)
        place->chosen = place->chosen > (size_t)-by ? place->chosen - (size_t)-by : 0;
    else
        place->chosen =
            (size_t)by < count - 1 - place->chosen ? place->chosen + (size_t)by : count - 1;
    remember_selection(app);
    return TUI_REDRAW;
}

/* ---- sorting --------------------------------------------------------------------------------- */

static unsigned apply_sort_keys(struct tui_app *app)
{
    struct tui_place *place = tui_app_cursor(app);
    tui_table_arrange(&app->table, place->filter, place->sort, place->rising);
    place->chosen = place->scroll = 0;
    remember_selection(app);
    return TUI_REDRAW;
}

static unsigned sort_by(struct tui_app *app, size_t column)
{
    struct tui_place *place = tui_app_cursor(app);
    size_t now = place->sort < app->table.column_count ? place->sort : app->table.sort;
    if (app->table.in_order || column >= app->table.column_count) {
        snprintf(app->message, sizeof app->message, "this view has an order of its own");
        return TUI_REDRAW;
    }
    place->rising = column == now ? !place->rising : false;
    place->sort = column;
    return apply_sort_keys(app);
}

static unsigned next_sort(struct tui_app *app, int step)
{
    struct tui_place *place = tui_app_cursor(app);
    size_t count = app->table.column_count;
    size_t column = place->sort < count ? place->sort : app->table.sort;
    for (size_t i = 0; count && i < count; i++) {
        column = (column + (step > 0 ? 1 : count - 1)) % count;
        const struct tui_column *c = &app->table.columns[column];
        if (c->column.title && !c->spark)
            break;
    }
    place->rising = false;
    if (app->table.in_order)
        return sort_by(app, column);
    place->sort = column;
    return apply_sort_keys(app);
}

/* ---- search and filter ----------------------------------------------------------------------- */

static unsigned find_next(struct tui_app *app, size_t from)
{
    size_t found = *app->search ? tui_table_search(&app->table, app->search, from) : SIZE_MAX;
    app->message[0] = '\0';
    if (found == SIZE_MAX && !*app->search)
        return TUI_REDRAW;
    if (found == SIZE_MAX) {
        snprintf(app->message, sizeof app->message, "not found: %.80s", app->search);
        return TUI_REDRAW;
    }
    tui_app_cursor(app)->chosen = found;
    remember_selection(app);
    return TUI_REDRAW;
}

static unsigned open_prompt(struct tui_app *app, enum tui_prompt prompt)
{
    app->prompt = prompt;
    snprintf(app->line, sizeof app->line, "%s",
             prompt == TUI_FILTER ? tui_app_cursor(app)->filter : app->search);
    return TUI_REDRAW;
}

static unsigned follow_line(struct tui_app *app)
{
    if (app->prompt == TUI_SEARCH) {
        snprintf(app->search, sizeof app->search, "%s", app->line);
        return find_next(app, tui_app_cursor(app)->chosen);
    }
    snprintf(tui_app_cursor(app)->filter, TUI_LINE, "%s", app->line);
    return apply_sort_keys(app);
}

static unsigned type(struct tui_app *app, int key)
{
    size_t length = strlen(app->line);
    switch (key) {
    case TUI_KEY_ESCAPE:
        app->line[0] = '\0';
        if (app->prompt == TUI_FILTER)
            follow_line(app);
        app->prompt = TUI_NO_PROMPT;
        return TUI_REDRAW;
    case TUI_KEY_ENTER:
        follow_line(app);
        app->prompt = TUI_NO_PROMPT;
        return TUI_REDRAW;
    case TUI_KEY_BACKSPACE:
        while (length && ((unsigned char)app->line[length - 1] & 0xc0) == 0x80)
            length--;
        app->line[length ? length - 1 : 0] = '\0';
        break;
    default:
        if (key >= ' ' && key < 0x110000 && key != 127 && length + 5 < sizeof app->line) {
            struct tui_glyph glyph = {.code = (uint32_t)key};
            tui_glyph_text(&glyph, app->line + length);
        }
    }
    return follow_line(app);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static unsigned drill(struct tui_app *app)
{
    const struct tui_place *place = tui_app_cursor(app);
    const struct tui_table *table = &app->table;
    if (app->drilled || !tui_views[app->view].drill || place->chosen >= table->order.count ||
        table->columns == tui_text_column) /* a sentence instead of rows */
        return 0;
    app->target = table->rows.data[table->order.data[place->chosen]].id;
    if (app->view == TUI_VIEW_KERNELS && (size_t)app->target < app->model->kernels.count)
        snprintf(app->target_name, sizeof app->target_name, "%s",
                 app->model->kernels.data[app->target].name);
    app->drilled = app->stale = true;
    app->drill_place = (struct tui_place){.sort = SIZE_MAX};
    tui_app_fill(app);
    return TUI_REDRAW;
}

static unsigned show_view(struct tui_app *app, int view)
{
    tui_app_show(app, view);
    tui_app_fill(app);
    return TUI_REDRAW;
}

static unsigned back(struct tui_app *app)
{
    if (app->drilled)
        return show_view(app, app->view);
    struct tui_place *place = tui_app_cursor(app);
    app->message[0] = '\0';
    if (!*place->filter)
        return TUI_REDRAW;
    place->filter[0] = '\0';
    return apply_sort_keys(app);
}

static unsigned next_window(struct tui_app *app)
{
    static const unsigned windows[] = {1, 10, 60, 0};
    size_t i = 0;
    if (tui_app_is_reading(app)) {
        snprintf(app->message, sizeof app->message, "%s",
                 "The capture is being read: the window changes after that");
        return TUI_REDRAW;
    }
    while (i < 3 && windows[i] != app->model->window_s)
        i++;
    tui_model_window(app->model, windows[(i + 1) % 4]);
    app->stale = true;
    tui_app_fill(app);
    return TUI_REDRAW;
}

static unsigned pause_or_go(struct tui_app *app)
{
    app->paused = !app->paused;
    return TUI_REDRAW | (app->paused ? 0 : TUI_REFRESH);
}

static unsigned letter(struct tui_app *app, int key)
{
    switch (key) {
    case 'q':
        return app->drilled ? back(app) : TUI_QUIT;
    case 'h':
    case '?':
        app->help = true;
        return TUI_REDRAW;
    case '/':
        return open_prompt(app, TUI_SEARCH);
    case 'n':
        return find_next(app, tui_app_cursor(app)->chosen + 1);
    case '\\':
    case 'f':
        return open_prompt(app, TUI_FILTER);
    case 'w':
        return next_window(app);
    case '>':
    case 's':
        return next_sort(app, 1);
    case '<':
        return next_sort(app, -1);
    case 'r':
    case 'I':
        return sort_by(app, tui_app_cursor(app)->sort < app->table.column_count
                                ? tui_app_cursor(app)->sort
                                : app->table.sort);
    case 'p':
    case ' ':
        return pause_or_go(app);
    case 'j':
        return move_selection(app, 1);
    case 'k':
        return move_selection(app, -1);
    default:
        return key >= '0' && key <= '9' ? show_view(app, (key - '0' + 9) % 10) : 0;
    }
}

static unsigned function_key(struct tui_app *app, int number)
{
    static const char letters[] = {'h', 0, '/', '\\', 'w', '>', '<', 'r', 'p', 0};
    return number == 10 ? TUI_QUIT : letters[number - 1] ? letter(app, letters[number - 1]) : 0;
}

unsigned tui_app_key(struct tui_app *app, int key)
{
    if (app->prompt && key < TUI_KEY_UP)
        return type(app, key);
    app->prompt = TUI_NO_PROMPT;
    if (app->help) {
        app->help = false;
        return TUI_REDRAW;
    }
    if (key >= TUI_KEY_F1 && key <= TUI_KEY_F10)
        return function_key(app, key - TUI_KEY_F1 + 1);
    switch (key) {
    case TUI_KEY_UP:
        return move_selection(app, -1);
    case TUI_KEY_DOWN:
        return move_selection(app, 1);
    case TUI_KEY_WHEEL_UP:
        return move_selection(app, -3);
    case TUI_KEY_WHEEL_DOWN:
        return move_selection(app, 3);
    case TUI_KEY_PAGE_UP:
        return move_selection(app, -(long)page(app));
    case TUI_KEY_PAGE_DOWN:
        return move_selection(app, (long)page(app));
    case TUI_KEY_HOME:
        return move_selection(app, -(long)app->table.order.count);
    case TUI_KEY_END:
        return move_selection(app, (long)app->table.order.count);
    case TUI_KEY_TAB:
    case TUI_KEY_RIGHT:
        return show_view(app, app->view + 1);
    case TUI_KEY_BACK_TAB:
    case TUI_KEY_LEFT:
        return show_view(app, app->view - 1);
    case TUI_KEY_ENTER:
        return drill(app);
    case TUI_KEY_ESCAPE:
    case TUI_KEY_BACKSPACE:
        return back(app);
    default:
        return letter(app, key);
    }
}

unsigned tui_app_click(struct tui_app *app, int x, int y, bool twice)
{
    struct tui_layout layout = tui_app_layout(app);
    if (app->help || app->prompt)
        return tui_app_key(app, TUI_KEY_ESCAPE);
    if (y == layout.tabs) {
        for (int view = 0; view < TUI_VIEWS; view++) {
            int from, to = tui_tab_at(view, app->width, &from);
            if (x >= from && x < to)
                return show_view(app, view);
        }
    } else if (y == layout.titles)
        return sort_by(app, tui_table_column_at(&app->table, app->width, x));
    else if (y >= layout.rows && y < layout.rows + layout.row_lines) {
        struct tui_place *place = tui_app_cursor(app);
        size_t chosen = place->scroll + (size_t)(y - layout.rows);
        if (chosen >= app->table.order.count)
            return 0;
        place->chosen = chosen;
        remember_selection(app);
        return twice ? drill(app) | TUI_REDRAW : TUI_REDRAW;
    }
    return 0;
}
