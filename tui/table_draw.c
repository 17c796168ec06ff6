/* Drawing a table: which columns a screen has room for, and how each kind of value reads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/format.h"
#include "libprof/base/utf8.h"
#include "tui/table.h"

#define MOST_COLUMNS 24
#define LEAST_NAME 20

struct layout {
    int x[MOST_COLUMNS], width[MOST_COLUMNS]; /* width 0: left out */
};

static bool column_is_shown(const struct tui_table *table, size_t column)
{
    if (!table->columns[column].title || !table->columns[column].if_known)
        return table->columns[column].title != NULL;
    for (size_t row = 0; row < table->rows.count; row++) {
        if (tui_table_value(table, row, column)->known)
            return true;
    }
    return false;
}

static int width_of(const struct tui_column *column)
{
    return column->kind == TUI_NAME && !column->width ? LEAST_NAME : column->width;
}

static int needed(const struct tui_table *table, const struct layout *layout)
{
    int sum = 0;
    for (size_t c = 0; c < table->column_count && c < MOST_COLUMNS; c++)
        sum += layout->width[c] ? layout->width[c] + 1 : 0;
    return sum - 1;
}

/* Cells that the longest name takes, as far as `most`: numbers far from their name are hard to
 * read. */
static int longest_name(const struct tui_table *table, size_t column, int most)
{
    int longest = 0;
    for (size_t row = 0; row < table->rows.count && longest < most; row++) {
        const char *text = tui_table_text_of(table, tui_table_value(table, row, column));
        char *clean = text ? prof_report_clean(text) : NULL; /* escapes are longer */
        int cells = clean ? (int)prof_report_cells(clean) + table->rows.data[row].depth * 2 : 0;
        free(clean);
        longest = cells > longest ? cells : longest;
    }
    return longest < most ? longest : most;
}

/* Leave out the highest rank until the rest fits; the name gets what it needs of what is left. */
static void lay_out(const struct tui_table *table, int width, struct layout *layout)
{
    *layout = (struct layout){0};
    size_t count = table->column_count < MOST_COLUMNS ? table->column_count : MOST_COLUMNS;
    for (size_t c = 0; c < count; c++)
        layout->width[c] = column_is_shown(table, c) ? width_of(&table->columns[c]) : 0;
    while (needed(table, layout) > width) {
        size_t worst = count;
        for (size_t c = 0; c < count; c++) {
            if (layout->width[c] && table->columns[c].rank &&
                (worst == count || table->columns[c].rank > table->columns[worst].rank))
                worst = c;
        }
        if (worst == count)
            break;
        layout->width[worst] = 0;
    }
    int left = width - needed(table, layout), x = 0;
    for (size_t c = 0; c < count; c++) {
        if (layout->width[c] && table->columns[c].kind == TUI_NAME && left > 0) {
            int longest = longest_name(table, c, layout->width[c] + left);
            if (longest > layout->width[c])
                layout->width[c] = longest;
        }
        layout->x[c] = x;
        x += layout->width[c] ? layout->width[c] + 1 : 0;
    }
}

size_t tui_table_column_at(const struct tui_table *table, int width, int x)
{
    struct layout layout;
    lay_out(table, width, &layout);
    for (size_t c = 0; c < table->column_count && c < MOST_COLUMNS; c++) {
        if (layout.width[c] && x >= layout.x[c] && x <= layout.x[c] + layout.width[c])
            return c;
    }
    return SIZE_MAX;
}

static bool column_is_left_aligned(enum tui_kind kind)
{
    return kind == TUI_TEXT || kind == TUI_NAME || kind == TUI_SPARKLINE;
}

static void put_aligned(struct tui_grid *grid, int x, int y, int width, bool left,
                        enum tui_style style, const char *text)
{
    int cells = (int)prof_report_cells(text);
    int skip = !left && cells < width ? width - cells : 0;
    tui_grid_put(grid, x + skip, y, width - skip, style, text);
}

/* A rate: three digits that matter, no exponents. */
static struct prof_text plain_number(double value)
{
    struct prof_text text;
    if (fabs(value) >= 999.5)
        return prof_count((int64_t)fmin(value, 9e15));
    prof_print_fixed(text.text, value, value == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
    return text;
}

static struct prof_text number_text(const struct tui_value *value, enum tui_kind kind)
{
    struct prof_text unknown = prof_count(PROF_UNKNOWN), plain;
    if (!value->known)
        return unknown;
    switch (kind) {
    case TUI_COUNT:
        return prof_count(value->number);
    case TUI_ID:
        prof_print_int(plain.text, value->number);
        return plain;
    case TUI_NS:
        return prof_duration_ns(value->number);
    case TUI_BYTES:
        return prof_bytes_of(value->number);
    case TUI_RATE:
        return prof_rate(value->real);
    case TUI_SHARE:
        return prof_percent(value->real);
    case TUI_REAL:
        return plain_number(value->real);
    default:
        return unknown;
    }
}

static void draw_name(const struct tui_table *table, struct tui_grid *grid, int x, int y, int width,
                      const struct tui_row *row, const char *text, enum tui_style style)
{
    int indent = row->depth * 2 < width - 8 ? row->depth * 2 : width - 8;
    int room = width - (indent > 0 ? indent : 0);
    (void)table;
    char *fitted = text ? prof_report_fit(text, (size_t)(room > 8 ? room : 8)) : NULL;
    tui_grid_put(grid, x + width - room, y, room, style, fitted ? fitted : "n/a");
    free(fitted);
}

static void draw_value(const struct tui_table *table, struct tui_grid *grid, int x, int y,
                       int width, size_t row, size_t column, enum tui_style style)
{
    const struct tui_value *value = tui_table_value(table, row, column);
    enum tui_kind kind = table->columns[column].kind;
    const char *text = tui_table_text_of(table, value);
    if (value->blank)
        return;
    if (kind == TUI_NAME)
        draw_name(table, grid, x, y, width, &table->rows.data[row], text, style);
    else if (kind == TUI_SPARKLINE && value->known)
        tui_grid_spark(grid, x, y, width, (const uint32_t *)(const void *)text, TUI_SPARK,
                       value->real);
    else if (kind == TUI_TEXT && text && !*text)
        return; /* an empty line of a page */
    else if (kind == TUI_TEXT) {
        char *cut = text ? prof_report_cut(text, (size_t)(width > 8 ? width : 8)) : NULL;
        tui_grid_put(grid, x, y, width, style, cut ? cut : "n/a");
        free(cut);
    } else if (kind != TUI_SPARKLINE)
        put_aligned(grid, x, y, width, false, value->known ? style : TUI_DIM,
                    number_text(value, kind).text);
}

static void draw_titles(const struct tui_table *table, struct tui_grid *grid, int y,
                        const struct layout *layout, size_t sort, bool rising)
{
    tui_grid_style(grid, 0, y, grid->width, TUI_HEADER);
    for (size_t c = 0; c < table->column_count && c < MOST_COLUMNS; c++) {
        char title[48];
        if (!layout->width[c])
            continue;
        const char *mark = c != sort || table->in_order ? ""
                           : grid->ascii                ? (rising ? "^" : "v")
                           : rising                     ? "\xe2\x96\xb4"
                                                        : "\xe2\x96\xbe";
        snprintf(title, sizeof title, "%s%s", table->columns[c].title, mark);
        put_aligned(grid, layout->x[c], y, layout->width[c],
                    column_is_left_aligned(table->columns[c].kind), TUI_HEADER, title);
    }
}

void tui_table_draw(const struct tui_table *table, struct tui_grid *grid, int y, int lines,
                    size_t scroll, size_t chosen, size_t sort, bool rising)
{
    struct layout layout;
    lay_out(table, grid->width, &layout);
    draw_titles(table, grid, y, &layout, sort < table->column_count ? sort : table->sort, rising);
    for (int i = 0; i < lines && scroll + (size_t)i < table->order.count; i++) {
        size_t place = scroll + (size_t)i, row = table->order.data[place];
        enum tui_style style = place == chosen ? TUI_CHOSEN : table->rows.data[row].style;
        for (size_t c = 0; c < table->column_count && c < MOST_COLUMNS; c++) {
            if (layout.width[c])
                draw_value(table, grid, layout.x[c], y + 1 + i, layout.width[c], row, c, style);
        }
        if (place == chosen)
            tui_grid_style(grid, 0, y + 1 + i, grid->width, TUI_CHOSEN);
    }
}
