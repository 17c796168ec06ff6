/* The screen: meters, tabs, the table, notes, the keys; and the page of help. Pure: the app and a
 * size in, cells out. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/error.h"
#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "libprof/base/utf8.h"
#include "tui/app.h"
#include "tui/table.h"

/* ---- cells ----------------------------------------------------------------------------------- */

/* Every text is cleaned here, whatever its source: the one place that a hostile name would have to
 * pass. */

static void tui_grid_clear(struct tui_grid *grid)
{
    for (int i = 0; i < grid->width * grid->height; i++)
        grid->glyphs[i] = (struct tui_glyph){.code = ' '};
}

bool tui_grid_make(struct tui_grid *grid, int width, int height, bool ascii)
{
    *grid = (struct tui_grid){.ascii = ascii};
    if (width < 1 || height < 1 || width > 4096 || height > 4096)
        return false;
    grid->glyphs = calloc((size_t)width * (size_t)height, sizeof *grid->glyphs);
    if (!grid->glyphs)
        return false;
    grid->width = width;
    grid->height = height;
    tui_grid_clear(grid);
    return true;
}

void tui_grid_free(struct tui_grid *grid)
{
    free(grid->glyphs);
    *grid = (struct tui_grid){0};
}

static struct tui_glyph *at(struct tui_grid *grid, int x, int y)
{
    if (x < 0 || y < 0 || x >= grid->width || y >= grid->height)
        return NULL;
    return &grid->glyphs[y * grid->width + x];
}

static void grid_set_glyph(struct tui_grid *grid, int x, int y, uint32_t code, enum tui_style style)
{
    struct tui_glyph *glyph = at(grid, x, y);
    if (glyph)
        *glyph = (struct tui_glyph){.code = code, .style = style};
}

/* Columns of one character of clean text. */
static int count_cells(const char *text, size_t length)
{
    char one[8] = {0};
    memcpy(one, text, length < 7 ? length : 7);
    return (int)prof_report_cells(one);
}

static int put_clean(struct tui_grid *grid, int x, int y, int room, enum tui_style style,
                     const char *text)
{
    int used = 0;
    size_t left = strlen(text);
    while (left) {
        uint32_t code;
        size_t length = prof_report_utf8(text, left, &code);
        if (!length) { /* clean text has none */
            length = 1;
            code = '?';
        }
        int cells = count_cells(text, length);
        bool plain = !grid->ascii || code < 127;
        if (cells == 0 && used > 0 && plain) {
            struct tui_glyph *before = at(grid, x + used - 1, y);
            if (before && before->code)
                before->mark = code;
        }
        if (used + cells > room)
            break;
        for (int i = 0; i < cells; i++)
            grid_set_glyph(grid, x + used + i, y, !plain ? '?' : i ? 0 : code, style);
        used += cells;
        text += length;
        left -= length;
    }
    return used;
}

int tui_grid_put(struct tui_grid *grid, int x, int y, int room, enum tui_style style,
                 const char *text)
{
    if (y < 0 || y >= grid->height || x < 0 || x >= grid->width || !text || !*text)
        return 0;
    if (room > grid->width - x)
        room = grid->width - x;
    PROF_FREED char *clean = prof_report_clean(text);
    return clean ? put_clean(grid, x, y, room, style, clean) : 0;
}

void tui_grid_style(struct tui_grid *grid, int x, int y, int room, enum tui_style style)
{
    for (int i = 0; i < room; i++) {
        struct tui_glyph *glyph = at(grid, x + i, y);
        if (glyph)
            glyph->style = style;
    }
}

/* Eighths of a column's width and of its height. */
static const uint32_t widths[] = {' ',    0x258f, 0x258e, 0x258d, 0x258c,
                                  0x258b, 0x258a, 0x2589, 0x2588};
static const uint32_t heights[] = {' ',    0x2581, 0x2582, 0x2583, 0x2584,
                                   0x2585, 0x2586, 0x2587, 0x2588};
static const char ascii_heights[] = " .:-=+*#@";

void tui_grid_bar(struct tui_grid *grid, int x, int y, int room, double share, enum tui_style style)
{
    double eighths = isnan(share) || share <= 0 ? 0 : fmin(share, 1) * room * 8;
    for (int i = 0; i < room; i++) {
        double here = eighths - i * 8.0;
        int level = here >= 8 ? 8 : here > 0 ? (int)here : 0;
        if (i == 0 && level == 0 && share > 0)
            level = 1; /* little is not nothing */
        grid_set_glyph(grid, x + i, y,
                       grid->ascii ? (level >= 4 || (i == 0 && level) ? '|' : ' ') : widths[level],
                       style);
    }
}

void tui_grid_spark(struct tui_grid *grid, int x, int y, int room, const uint32_t *values,
                    int count, double full)
{
    if (room > count) {
        x += room - count;
        room = count;
    }
    for (int i = 0; i < room; i++) {
        double share = full > 0 ? (double)values[count - room + i] / full : 0;
        int level = share >= 1 ? 8 : (int)ceil(share * 8);
        grid_set_glyph(grid, x + i, y,
                       grid->ascii ? (uint32_t)ascii_heights[level] : heights[level], TUI_BAR);
    }
}

static size_t encode_utf8_glyph(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(lead[length] | code);
    return length;
}

void tui_glyph_text(const struct tui_glyph *glyph, char out[9])
{
    size_t length = glyph->code ? encode_utf8_glyph(glyph->code, out) : 0;
    if (glyph->code && glyph->mark)
        length += encode_utf8_glyph(glyph->mark, out + length);
    out[length] = '\0';
}

void tui_grid_print(const struct tui_grid *grid, FILE *out)
{
    for (int y = 0; y < grid->height; y++) {
        const struct tui_glyph *line = &grid->glyphs[y * grid->width];
        int last = grid->width;
        while (last > 0 && line[last - 1].code == ' ')
            last--;
        for (int x = 0; x < last; x++) {
            char text[9];
            tui_glyph_text(&line[x], text);
            fputs(text, out);
        }
        fputc('\n', out);
    }
}

/* ---- the screen ------------------------------------------------------------------------------ */

#define METERS 3

struct tui_layout tui_lay_out(int height, int notes, int dashboard)
{
    struct tui_layout l = {
        .meters = -1, .tabs = -1, .rows = 1, .notes = -1, .keys = -1, .dashboard = -1};
    int y = 0, below = 0;
    if (height >= 10) {
        l.meters = 0;
        y = METERS;
    }
    if (dashboard) {
        l.dashboard = y;
        y += dashboard;
    }
    if (height >= 6)
        l.tabs = y++;
    if (height >= 5) {
        l.keys = height - 1;
        below = 1;
    }
    l.titles = y++;
    l.rows = y;
    int left = height - y - below;
    l.note_lines = notes < left / 3 ? notes : left / 3;
    l.note_lines = l.note_lines < 0 ? 0 : l.note_lines;
    l.row_lines = left - l.note_lines > 0 ? left - l.note_lines : 0;
    l.notes = height - below - l.note_lines;
    return l;
}

/* Long titles where there is room for all of them, else their beginnings. */
static void tab_text(int view, int width, char *out, size_t size)
{
    int all = 0;
    for (int i = 0; i < TUI_VIEWS; i++)
        all += (int)strlen(tui_views[i].title) + 2;
    snprintf(out, size, "%d%.*s", (view + 1) % 10,
             width >= all  ? 40
             : width >= 60 ? 4
                           : 1,
             tui_views[view].title);
}

int tui_tab_at(int view, int width, int *x)
{
    char text[40];
    int at = 0;
    for (int i = 0; i <= view; i++) {
        tab_text(i, width, text, sizeof text);
        *x = at;
        at += (int)strlen(text) + 1;
    }
    return at - 1;
}

static void draw_tabs(const struct tui_app *app, struct tui_grid *grid, int y)
{
    for (int i = 0; i < TUI_VIEWS; i++) {
        char text[40];
        int x, end = tui_tab_at(i, grid->width, &x);
        tab_text(i, grid->width, text, sizeof text);
        tui_grid_put(grid, x, y, end - x, i == app->view ? TUI_TAB : TUI_NORMAL, text);
    }
}

/* ---- meters ---------------------------------------------------------------------------------- */

static const char *recording_state_text(const struct tui_model *model, enum tui_style *style)
{
    static const struct {
        const char *text;
        enum tui_style style;
    } states[] = {
        [TUI_OPENING] = {"opening", TUI_DIM},   [TUI_WATCHING] = {"recording", TUI_GOOD},
        [TUI_LET_GO] = {"finishing", TUI_WARN}, [TUI_FINISHED] = {"finished", TUI_STRONG},
        [TUI_GONE] = {"file deleted", TUI_BAD}, [TUI_ABANDONED] = {"interrupted", TUI_BAD}};
    *style = states[model->phase].style;
    return states[model->phase].text;
}

static void draw_title(const struct tui_app *app, struct tui_grid *grid, int y)
{
    const struct tui_model *model = app->model;
    enum tui_style style;
    const char *state = recording_state_text(model, &style);
    char right[120];
    int length = snprintf(right, sizeof right, "%s%s %s", app->paused ? "PAUSED " : "", state,
                          prof_duration_ns(model->now_ns).text);
    int x = grid->width - length;
    tui_grid_put(grid, 0, y, grid->width, TUI_STRONG, "perfkit top");
    if (x > 13) {
        PROF_FREED char *command = prof_report_cut(
            model->info.command ? tui_short_command(model->info.command) : model->path,
            (size_t)(x - 14 > 8 ? x - 14 : 8));
        tui_grid_put(grid, 12, y, x - 13, TUI_NORMAL, command ? command : "");
    }
    tui_grid_put(grid, x > 0 ? x : 0, y, length, app->paused ? TUI_WARN : style, right);
}

/* Devices that did something. */
static size_t device_count(const struct tui_model *model)
{
    size_t count = 0;
    for (size_t i = 0; i < model->devices.count; i++) {
        int64_t physical = model->devices.data[i].physical;
        bool used = false;
        for (size_t k = 0; k < model->streams.count && !used; k++) {
            const struct tui_stream *stream = &model->streams.data[k];
            const struct prof_device *device = tui_model_device(model, stream->values.device);
            used = device && device->physical == physical &&
                   (stream->kernels.count > 0 || stream->copies.count > 0);
        }
        count += used && physical == model->devices.data[i].id;
    }
    return count;
}

/* Where the next word of a line goes. */
struct pen {
    struct tui_grid *grid;
    int x, y;
};

static void __attribute__((format(printf, 3, 4)))
pen_print(struct pen *pen, enum tui_style style, const char *format, ...)
{
    PROF_FREED char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0) {
        prof_note(PROF_NOMEM);
        return;
    }
    pen->x += tui_grid_put(pen->grid, pen->x, pen->y, pen->grid->width - pen->x, style, text);
}

static void draw_load(const struct tui_app *app, struct tui_grid *grid, int y)
{
    const struct tui_model *model = app->model;
    size_t devices = device_count(model);
    double share = tui_wall_share(model, model->window.sum_ns) / (double)(devices ? devices : 1);
    double launches = tui_per_second(model, model->window.count);
    int bar = grid->width >= 120 ? 30 : grid->width >= 90 ? 12 : 6;
    int64_t copied = 0;
    struct pen pen = {grid, 0, y};
    for (size_t i = 0; i < model->copies.count; i++)
        if (model->copies.data[i].kind != PROF_COPY_MEMSET)
            copied = prof_add(copied, model->copies.data[i].window.bytes);
    pen_print(&pen, TUI_NORMAL, "Kernels [");
    tui_grid_bar(grid, pen.x, y, bar, share, TUI_BAR);
    pen.x += bar;
    pen_print(&pen, TUI_NORMAL, "] %s", prof_percent(share).text);
    if (devices > 1)
        pen_print(&pen, TUI_NORMAL, " of %zu devices", devices);
    pen_print(&pen, TUI_NORMAL, "  %s/s  Memcpy %s",
              isnan(launches) ? "n/a" : prof_count((int64_t)launches).text,
              prof_rate(tui_per_second(model, copied)).text);
    char peak[80];
    int length = snprintf(peak, sizeof peak, " (peak %s)", prof_bytes_of(model->peak_bytes).text);
    struct prof_text live = prof_bytes_of(model->live_bytes);
    bool fits = (int)(strlen("  Memory ") + strlen(live.text)) + length <= grid->width - pen.x;
    pen_print(&pen, TUI_NORMAL, "  Memory %s%s", live.text, fits ? peak : "");
}

static void draw_numbers(const struct tui_app *app, struct tui_grid *grid, int y)
{
    const struct tui_model *model = app->model;
    struct pen pen = {grid, 0, y};
    if (model->window_s)
        pen_print(&pen, TUI_KEY, "Window last %u s", model->window_s);
    else
        pen_print(&pen, TUI_KEY, "Window all");
    pen_print(&pen, TUI_NORMAL, "  All: %s, %s; %s, %s",
              prof_counted(model->total.count, "kernel", "kernels").text,
              prof_duration_ns(model->total.sum_ns).text,
              prof_counted(model->moved.memcpys, "memcpy", "memcpys").text,
              prof_counted(model->moved.memsets, "memset", "memsets").text);
    if (!model->caught_up && model->ever_read)
        pen_print(&pen, TUI_WARN, "  reading %s", prof_percent(model->progress).text);
    if (app->health.dropped > 0)
        pen_print(&pen, TUI_BAD, "  dropped %s", prof_count(app->health.dropped).text);
    if (model->error.message[0])
        pen_print(&pen, TUI_WARN, "  %s", model->error.message);
}

/* ---- the lowest lines ------------------------------------------------------------------------ */

/* What else the lowest line has to say, in front: the keys take all of a narrow screen. */
static int draw_message(const struct tui_app *app, struct tui_grid *grid, int y)
{
    struct pen pen = {grid, 0, y};
    if (app->message[0])
        pen_print(&pen, TUI_WARN, "%s", app->message);
    else if (!app->drilled && *app->places[app->view].filter)
        pen_print(&pen, TUI_WARN, "only: %s", app->places[app->view].filter);
    return pen.x ? pen.x + 1 : 0;
}

static void draw_keys(const struct tui_app *app, struct tui_grid *grid, int y)
{
    static const char *const keys[][2] = {{"F1", "Help"},   {"F3", "Search"},  {"F4", "Filter"},
                                          {"F5", "Window"}, {"F6", "Sort"},    {"F8", "Turn"},
                                          {"F9", "Pause"},  {"Enter", "Open"}, {"F10", "Quit"}};
    int x = draw_message(app, grid, y);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && x < grid->width; i++) {
        if (!strcmp(keys[i][0], "Enter") && !app->drilled && !tui_views[app->view].drill)
            continue;
        bool leave = app->drilled && !strcmp(keys[i][0], "Enter");
        x += tui_grid_put(grid, x, y, grid->width - x, TUI_NORMAL, leave ? "Esc" : keys[i][0]);
        x += tui_grid_put(grid, x, y, grid->width - x, TUI_KEY, leave ? "Back" : keys[i][1]) + 1;
    }
}

static void draw_prompt(const struct tui_app *app, struct tui_grid *grid, int y)
{
    int x = tui_grid_put(grid, 0, y, grid->width, TUI_KEY,
                         app->prompt == TUI_SEARCH ? "Search:" : "Filter:");
    x += 1 + tui_grid_put(grid, x + 1, y, grid->width - x - 1, TUI_STRONG, app->line);
    tui_grid_put(grid, x, y, 1, TUI_CHOSEN, "_");
    if (app->message[0])
        tui_grid_put(grid, x + 3, y, grid->width - x - 3, TUI_WARN, app->message);
}

static void draw_help(const struct tui_app *app, struct tui_grid *grid)
{
    static const char *const lines[] = {
        "0-9 Tab Left Right   another view",
        "Up Down PgUp Home .. another row (also j k, the wheel)",
        "Enter, Esc           all about a row (in 1, 4, 7); back, or no filter",
        "/ F3, n              search, the next one",
        "\\ f F4               only rows that hold a text",
        "w F5                 window: 1 s, 10 s, 60 s, since the start",
        "> < F6 F7            sort by another column (also a click on its title)",
        "r I F8               the other way round",
        "p Space F9           pause: the screen stops, the program keeps running",
        "q F10                leave; a program that is being recorded runs on",
        "Shares: kern% of all kernel time, wall% of the time of one device.",
        "~p95: from a histogram of powers of two. n/a: not known, never 0.",
    };
    int y = 0;
    tui_grid_clear(grid);
    tui_grid_put(grid, 0, y++, grid->width, TUI_STRONG, "perfkit top: keys (any key goes back)");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        tui_grid_put(grid, 1, y++, grid->width - 1, TUI_NORMAL, lines[i]);
    for (int i = 0; i < TUI_VIEWS; i++)
        pen_print(&(struct pen){grid, 1, y++}, i == app->view ? TUI_STRONG : TUI_NORMAL,
                  "%d %-10s %s", (i + 1) % 10, tui_views[i].title, tui_views[i].about);
}

/* ---- notes ----------------------------------------------------------------------------------- */

size_t tui_line_length(const char *text, int width)
{
    size_t length = 0, space = 0;
    for (int x = 0; text[length] && x < width; length++) {
        if (((unsigned char)text[length] & 0xc0) != 0x80)
            x++;
        if (text[length] == ' ')
            space = length;
    }
    while (((unsigned char)text[length] & 0xc0) == 0x80)
        length++;
    return text[length] && text[length] != ' ' && space ? space : length;
}

/* Into `lines` lines from y on; returns how many they would need. grid NULL: draws nothing. */
static int draw_notes(const struct tui_table *table, int width, struct tui_grid *grid, int y,
                      int lines)
{
    int used = 0;
    width = width > 8 ? width : 8;
    for (size_t i = 0; i < table->notes.count; i++) {
        const char *text = table->texts.data + table->notes.data[i];
        do {
            char line[600];
            size_t length = tui_line_length(text, width);
            snprintf(line, sizeof line, "%.*s", (int)length, text);
            if (grid && used < lines)
                tui_grid_put(grid, 0, y + used, grid->width, TUI_DIM, line);
            used++;
            text += length;
            text += *text == ' ';
        } while (*text);
    }
    return used;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void draw_meters(const struct tui_app *app, struct tui_grid *grid, int y)
{
    draw_title(app, grid, y);
    draw_load(app, grid, y + 1);
    draw_numbers(app, grid, y + 2);
}

static void scroll_to(struct tui_place *place, int lines, size_t count)
{
    size_t room = lines > 0 ? (size_t)lines : 1;
    if (place->chosen < place->scroll)
        place->scroll = place->chosen;
    if (place->chosen >= place->scroll + room)
        place->scroll = place->chosen - room + 1;
    if (place->scroll + room > count)
        place->scroll = count > room ? count - room : 0;
}

/* Of a page of text, whose one column has no title: how much of it is on the screen. */
static void draw_extent(const struct tui_table *table, struct tui_grid *grid,
                        const struct tui_layout *l, size_t scroll)
{
    char text[60];
    size_t end = scroll + (size_t)l->row_lines, count = table->order.count;
    if (table->columns != tui_text_column || end - scroll >= count)
        return;
    int length = snprintf(text, sizeof text, "lines %zu-%zu of %zu", scroll + 1,
                          end < count ? end : count, count);
    tui_grid_put(grid, grid->width > length ? grid->width - length : 0, l->titles, length,
                 TUI_HEADER, text);
}

static void draw_nothing_left(const struct tui_table *table, const struct tui_place *place,
                              struct tui_grid *grid, const struct tui_layout *l)
{
    if (table->order.count || !table->rows.count || !*place->filter || l->row_lines < 1)
        return;
    pen_print(&(struct pen){grid, 0, l->rows}, TUI_DIM, "No row holds '%s' (Esc: all rows)",
              place->filter);
}

static int dashboard_lines(const struct tui_app *app)
{
    bool shown = !app->drilled && app->view != TUI_VIEW_FINDINGS;
    return shown ? tui_dashboard_lines(&app->dashboard, app->width, app->height) : 0;
}

struct tui_layout tui_app_layout(const struct tui_app *app)
{
    return tui_lay_out(app->height, draw_notes(&app->table, app->width, NULL, 0, 0),
                       dashboard_lines(app));
}

void tui_app_draw(struct tui_app *app, struct tui_grid *grid)
{
    struct tui_place *place = tui_app_cursor(app);
    app->width = grid->width;
    app->height = grid->height;
    struct tui_layout l = tui_app_layout(app);
    tui_grid_clear(grid);
    if (app->help) {
        draw_help(app, grid);
        return;
    }
    if (l.meters >= 0)
        draw_meters(app, grid, l.meters);
    if (l.dashboard >= 0)
        tui_dashboard_draw(&app->dashboard, app->model, grid, l.dashboard, dashboard_lines(app));
    if (l.tabs >= 0)
        draw_tabs(app, grid, l.tabs);
    scroll_to(place, l.row_lines, app->table.order.count);
    tui_table_draw(&app->table, grid, l.titles, l.row_lines, place->scroll, place->chosen,
                   place->sort, place->rising);
    draw_nothing_left(&app->table, place, grid, &l);
    draw_extent(&app->table, grid, &l, place->scroll);
    draw_notes(&app->table, grid->width, grid, l.notes, l.note_lines);
    if (l.keys >= 0)
        (app->prompt ? draw_prompt : draw_keys)(app, grid, l.keys);
}

enum prof_status tui_app_print(struct tui_app *app, int width, size_t rows, FILE *out,
                               struct prof_error *err)
{
    const struct tui_table *table = &app->table;
    struct tui_grid grid;
    size_t lines = table->order.count < rows ? table->order.count : rows;
    int notes = draw_notes(table, width, NULL, 0, 0), titles = METERS + 1;
    if (!tui_grid_make(&grid, width, titles + 1 + (int)lines + notes, app->ascii))
        return prof_out_of_memory(err);
    draw_meters(app, &grid, 0);
    tui_table_draw(table, &grid, titles, (int)lines, 0, SIZE_MAX, SIZE_MAX, false);
    draw_notes(table, width, &grid, titles + 1 + (int)lines, notes);
    tui_grid_print(&grid, out);
    tui_grid_free(&grid);
    const struct tui_model *model = app->model;
    if (!model->ever_read && model->error.status)
        return prof_fail(err, model->error.status, "%s", model->error.message);
    return tui_app_whole(app, err);
}
