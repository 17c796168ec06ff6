/* A table of values: their order, their JSON, and how they are drawn. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/error.h"
#include "libprof/base/format.h"
#include "libprof/base/utf8.h"
#include "tui/table.h"

#define MOST_COLUMNS 32

void tui_table_begin(struct tui_table *table, const struct tui_column *columns, size_t count)
{
    table->columns = columns;
    table->column_count = count;
    table->rows.count = table->values.count = table->texts.count = 0;
    table->order.count = table->notes.count = 0;
    table->in_order = table->failed = false;
    table->sort = 0;
}

void tui_table_free(struct tui_table *table)
{
    prof_array_free(&table->rows);
    prof_array_free(&table->values);
    prof_array_free(&table->texts);
    prof_array_free(&table->order);
    prof_array_free(&table->notes);
}

#define COPY(to, from)                                                                             \
    ((to)->count = 0,                                                                              \
     prof_array_reserve(to, (from)->count)                                                         \
         ? ((from)->count ? memcpy((to)->data, (from)->data, (from)->count * sizeof *(to)->data)   \
                          : NULL,                                                                  \
            (to)->count = (from)->count, true)                                                     \
         : false)

void tui_table_copy(struct tui_table *table, const struct tui_table *from)
{
    tui_table_begin(table, from->columns, from->column_count);
    table->in_order = from->in_order;
    table->sort = from->sort;
    table->failed = from->failed;
    if (COPY(&table->rows, &from->rows) && COPY(&table->values, &from->values) &&
        COPY(&table->texts, &from->texts) && COPY(&table->notes, &from->notes))
        return;
    tui_table_begin(table, from->columns, from->column_count);
    table->failed = true;
}

void tui_table_row(struct tui_table *table, int64_t id, int depth, enum tui_style style)
{
    if (!prof_array_reserve(&table->rows, 1) ||
        !prof_array_reserve(&table->values, table->column_count)) {
        table->failed = true;
        return;
    }
    table->rows.data[table->rows.count++] = (struct tui_row){id, depth, style};
    memset(table->values.data + table->values.count, 0,
           table->column_count * sizeof *table->values.data);
    table->values.count += table->column_count;
}

static struct tui_value *last_row_value(struct tui_table *table, size_t column)
{
    static struct tui_value nowhere;
    if (!table->rows.count || column >= table->column_count)
        return &nowhere;
    return &table->values.data[(table->rows.count - 1) * table->column_count + column];
}

static bool add_text(struct tui_table *table, const void *bytes, size_t size, size_t *offset)
{
    size_t start = (table->texts.count + 7) & ~(size_t)7; /* sparklines are numbers */
    if (!prof_array_reserve(&table->texts, size + 8)) {
        table->failed = true;
        return false;
    }
    memcpy(table->texts.data + start, bytes, size);
    table->texts.count = start + size;
    *offset = start;
    return true;
}

void tui_table_text(struct tui_table *table, size_t column, const char *text)
{
    struct tui_value *value = last_row_value(table, column);
    value->kind = text && add_text(table, text, strlen(text) + 1, &value->text) ? PROF_VALUE_TEXT
                                                                                : PROF_VALUE_NONE;
}

void tui_table_number(struct tui_table *table, size_t column, int64_t number)
{
    struct tui_value *value = last_row_value(table, column);
    value->kind = number != PROF_UNKNOWN ? PROF_VALUE_INT : PROF_VALUE_NONE;
    value->integer = number;
}

void tui_table_put(struct tui_table *table, size_t column, struct prof_report_value value)
{
    if (value.kind == PROF_VALUE_TEXT)
        tui_table_text(table, column, value.text);
    else if (value.kind == PROF_VALUE_REAL)
        tui_table_real(table, column, value.real);
    else if (value.kind == PROF_VALUE_INT)
        tui_table_number(table, column, value.integer);
}

void tui_table_rank(struct tui_table *table, size_t column, int64_t rank)
{
    last_row_value(table, column)->integer = rank;
}

void tui_table_real(struct tui_table *table, size_t column, double real)
{
    struct tui_value *value = last_row_value(table, column);
    value->kind = !isnan(real) ? PROF_VALUE_REAL : PROF_VALUE_NONE;
    value->real = real;
}

void tui_table_spark(struct tui_table *table, size_t column, const uint32_t values[TUI_SPARK],
                     double full)
{
    struct tui_value *value = last_row_value(table, column);
    value->real = full;
    if (add_text(table, values, TUI_SPARK * sizeof *values, &value->text))
        value->kind = PROF_VALUE_TEXT;
}

void tui_table_blank(struct tui_table *table, size_t column)
{
    last_row_value(table, column)->blank = true;
}

static char *formatted(const char *format, va_list arguments)
{
    char *text;
    if (vasprintf(&text, format, arguments) >= 0)
        return text;
    prof_note(PROF_NOMEM);
    return NULL;
}

void tui_table_format(struct tui_table *table, size_t column, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    PROF_FREED char *text = formatted(format, arguments);
    va_end(arguments);
    tui_table_text(table, column, text);
}

void tui_table_line(struct tui_table *table, enum tui_style style, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    PROF_FREED char *text = formatted(format, arguments);
    va_end(arguments);
    tui_table_row(table, (int64_t)table->rows.count, 0, style);
    tui_table_text(table, 0, text);
}

void tui_table_note(struct tui_table *table, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    PROF_FREED char *text = formatted(format, arguments);
    va_end(arguments);
    size_t *note = prof_array_add(&table->notes);
    if (!note || !text || !add_text(table, text, strlen(text) + 1, note)) {
        table->failed = true;
        table->notes.count -= note != NULL;
    }
}

void tui_table_failure(struct tui_table *table, const struct prof_error *err)
{
    prof_note_error(err);
    tui_table_note(table, "%s", err->message);
}

const struct tui_value *tui_table_value(const struct tui_table *table, size_t row, size_t column)
{
    return &table->values.data[row * table->column_count + column];
}

const char *tui_table_text_of(const struct tui_table *table, const struct tui_value *value)
{
    return value->kind == PROF_VALUE_TEXT ? table->texts.data + value->text : NULL;
}

/* ---- order ----------------------------------------------------------------------------------- */

static bool holds(const struct tui_table *table, size_t row, const char *text)
{
    if (!*text)
        return true;
    for (size_t c = 0; c < table->column_count; c++) {
        const struct tui_column *column = &table->columns[c];
        const char *its = column->column.title && !column->spark
                              ? tui_table_text_of(table, tui_table_value(table, row, c))
                              : NULL;
        if (its && strcasestr(its, text))
            return true;
    }
    return false;
}

struct sorting {
    const struct tui_table *table;
    size_t column;
    bool rising;
};

/* Unknown ones last, whichever the direction. */
static int compare_values(const struct sorting *s, const struct tui_value *a,
                          const struct tui_value *b)
{
    int sign = s->rising ? 1 : -1;
    if (!a->kind || !b->kind)
        return (a->kind == PROF_VALUE_NONE) - (b->kind == PROF_VALUE_NONE);
    if (a->kind == PROF_VALUE_REAL)
        return sign * ((a->real > b->real) - (a->real < b->real));
    if (a->kind == PROF_VALUE_INT || a->integer != b->integer)
        return sign * ((a->integer > b->integer) - (a->integer < b->integer));
    /* words begin with A unless turned */
    return -sign * strcmp(tui_table_text_of(s->table, a), tui_table_text_of(s->table, b));
}

static int compare_table_rows(const void *x, const void *y, void *context)
{
    const struct sorting *s = context;
    size_t a = *(const size_t *)x, b = *(const size_t *)y;
    int order = compare_values(s, tui_table_value(s->table, a, s->column),
                               tui_table_value(s->table, b, s->column));
    return order ? order : (a > b) - (a < b);
}

void tui_table_arrange(struct tui_table *table, const char *filter, size_t sort, bool rising)
{
    struct sorting sorting = {table, sort < table->column_count ? sort : table->sort, rising};
    table->order.count = 0;
    if (!prof_array_reserve(&table->order, table->rows.count)) {
        table->failed = true;
        return;
    }
    for (size_t i = 0; i < table->rows.count; i++) {
        if (holds(table, i, filter))
            table->order.data[table->order.count++] = i;
    }
    if (!table->in_order && table->order.count)
        qsort_r(table->order.data, table->order.count, sizeof *table->order.data,
                compare_table_rows, &sorting);
}

size_t tui_table_search(const struct tui_table *table, const char *text, size_t from)
{
    size_t count = table->order.count;
    for (size_t i = 0; i < count; i++) {
        size_t place = (from + i) % count;
        if (holds(table, table->order.data[place], text))
            return place;
    }
    return SIZE_MAX;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct prof_report_value report_value(const struct tui_table *table,
                                             const struct tui_value *value)
{
    return (struct prof_report_value){.kind = value->kind,
                                      .integer = value->integer,
                                      .real = value->real,
                                      .text = tui_table_text_of(table, value)};
}

enum prof_status tui_table_json(const struct tui_table *table, struct prof_json *json,
                                const char *name, struct prof_error *err)
{
    struct prof_report_column columns[MOST_COLUMNS + 1] = {0};
    size_t from[MOST_COLUMNS], used = 0, cells = 0;
    for (size_t c = 0; c < table->column_count && used < MOST_COLUMNS; c++) {
        if (!table->columns[c].column.key)
            continue;
        columns[used] = table->columns[c].column;
        columns[used].storage = PROF_STORED_VALUE;
        columns[used].via = 0;
        columns[used].object = PROF_OBJECT_none;
        columns[used].offset = used * sizeof(struct prof_report_value);
        from[used++] = c;
    }
    PROF_FREED struct prof_report_value *rows = calloc(table->order.count * used + 1, sizeof *rows);
    if (!rows)
        return prof_fail(err, PROF_NOMEM, "out of memory for the rows of %s", name);
    for (size_t i = 0; i < table->order.count; i++)
        for (size_t c = 0; c < used; c++)
            rows[cells++] =
                report_value(table, tui_table_value(table, table->order.data[i], from[c]));
    const struct prof_report_table described = {
        .name = name, .columns = columns, .row_bytes = used * sizeof *rows};
    struct prof_report_output output = {.format = PROF_REPORT_JSON, .json = json};
    enum prof_status status =
        prof_report_put_rows(&output, &described, rows, table->order.count, err);
    return status;
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* Drawing a table: which columns a screen has room for, and how each kind of value reads. */

#define LEAST_NAME 20

struct layout {
    int x[MOST_COLUMNS], width[MOST_COLUMNS]; /* width 0: left out */
};

static bool column_is_shown(const struct tui_table *table, size_t column)
{
    if (!table->columns[column].column.title || !table->columns[column].if_known)
        return table->columns[column].column.title != NULL;
    for (size_t row = 0; row < table->rows.count; row++) {
        if (tui_table_value(table, row, column)->kind)
            return true;
    }
    return false;
}

static int width_of(const struct tui_column *column)
{
    return column->column.unit == PROF_UNIT_NAME && !column->width ? LEAST_NAME : column->width;
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
        PROF_FREED char *clean = text ? prof_report_clean(text) : NULL; /* escapes are longer */
        int cells = clean ? (int)prof_report_cells(clean) + table->rows.data[row].depth * 2 : 0;
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
            int rank = table->columns[c].column.rank;
            if (layout->width[c] && rank &&
                (worst == count || rank > table->columns[worst].column.rank))
                worst = c;
        }
        if (worst == count)
            break;
        layout->width[worst] = 0;
    }
    int left = width - needed(table, layout), x = 0;
    for (size_t c = 0; c < count; c++) {
        if (layout->width[c] && table->columns[c].column.unit == PROF_UNIT_NAME && left > 0) {
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

static void draw_name(struct tui_grid *grid, int x, int y, int width, const struct tui_row *row,
                      const char *text, enum tui_style style)
{
    int indent = row->depth * 2 < width - 8 ? row->depth * 2 : width - 8;
    int room = width - (indent > 0 ? indent : 0);
    PROF_FREED char *fitted = text ? prof_report_fit(text, (size_t)(room > 8 ? room : 8)) : NULL;
    tui_grid_put(grid, x + width - room, y, room, style, fitted ? fitted : "n/a");
}

static struct prof_text number_text(const struct tui_table *table, const struct tui_value *value,
                                    enum prof_report_unit unit)
{
    if (unit == PROF_UNIT_RATIO && value->kind == PROF_VALUE_REAL)
        return plain_number(value->real);
    return prof_report_number(unit, report_value(table, value));
}

static void draw_value(const struct tui_table *table, struct tui_grid *grid, int x, int y,
                       int width, size_t row, size_t column, enum tui_style style)
{
    const struct tui_value *value = tui_table_value(table, row, column);
    const struct tui_column *described = &table->columns[column];
    const char *text = tui_table_text_of(table, value);
    if (value->blank || (described->spark && !text))
        return;
    if (described->spark)
        tui_grid_spark(grid, x, y, width, (const uint32_t *)(const void *)text, TUI_SPARK,
                       value->real);
    else if (described->column.unit == PROF_UNIT_NAME)
        draw_name(grid, x, y, width, &table->rows.data[row], text, style);
    else if (described->column.unit == PROF_UNIT_WORD && text && !*text)
        return; /* an empty line of a page */
    else if (described->column.unit == PROF_UNIT_WORD) {
        PROF_FREED char *cut = text ? prof_report_cut(text, (size_t)(width > 8 ? width : 8)) : NULL;
        tui_grid_put(grid, x, y, width, style, cut ? cut : "n/a");
    } else
        put_aligned(grid, x, y, width, false, value->kind ? style : TUI_DIM,
                    number_text(table, value, described->column.unit).text);
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
        snprintf(title, sizeof title, "%s%s", table->columns[c].column.title, mark);
        put_aligned(grid, layout->x[c], y, layout->width[c],
                    prof_report_is_left(&table->columns[c].column), TUI_HEADER, title);
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
