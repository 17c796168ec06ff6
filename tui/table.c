/* See table.h: the values, their order, and their JSON. Drawing is in table_draw.c. */
#include "tui/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/error.h"

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
    value->known = text && add_text(table, text, strlen(text) + 1, &value->text);
}

void tui_table_number(struct tui_table *table, size_t column, int64_t number)
{
    struct tui_value *value = last_row_value(table, column);
    value->known = number != PROF_UNKNOWN;
    value->number = number;
}

void tui_table_rank(struct tui_table *table, size_t column, int64_t rank)
{
    last_row_value(table, column)->number = rank;
}

void tui_table_real(struct tui_table *table, size_t column, double real)
{
    struct tui_value *value = last_row_value(table, column);
    value->known = !isnan(real);
    value->real = real;
}

void tui_table_spark(struct tui_table *table, size_t column, const uint32_t values[TUI_SPARK],
                     double full)
{
    struct tui_value *value = last_row_value(table, column);
    value->real = full;
    value->known = add_text(table, values, TUI_SPARK * sizeof *values, &value->text);
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
    char *text = formatted(format, arguments);
    va_end(arguments);
    tui_table_text(table, column, text);
    free(text);
}

void tui_table_line(struct tui_table *table, enum tui_style style, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = formatted(format, arguments);
    va_end(arguments);
    tui_table_row(table, (int64_t)table->rows.count, 0, style);
    tui_table_text(table, 0, text);
    free(text);
}

void tui_table_note(struct tui_table *table, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = formatted(format, arguments);
    va_end(arguments);
    size_t *note = prof_array_add(&table->notes);
    if (!note || !text || !add_text(table, text, strlen(text) + 1, note)) {
        table->failed = true;
        table->notes.count -= note != NULL;
    }
    free(text);
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
    return value->known ? table->texts.data + value->text : NULL;
}

/* ---- order --------------------------------------------------------------------------------- */

static bool column_is_text(enum tui_kind kind)
{
    return kind == TUI_TEXT || kind == TUI_NAME;
}

static bool holds(const struct tui_table *table, size_t row, const char *text)
{
    if (!*text)
        return true;
    for (size_t c = 0; c < table->column_count; c++) {
        const char *its = column_is_text(table->columns[c].kind) && table->columns[c].title
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
    enum tui_kind kind = s->table->columns[s->column].kind;
    int sign = s->rising ? 1 : -1;
    if (a->known != b->known)
        return a->known ? -1 : 1;
    if (!a->known)
        return 0;
    if (column_is_text(kind) && a->number != b->number)
        return sign * (a->number > b->number ? 1 : -1);
    if (column_is_text(kind)) /* words begin with A unless turned */
        return -sign * strcmp(tui_table_text_of(s->table, a), tui_table_text_of(s->table, b));
    if (kind == TUI_COUNT || kind == TUI_ID || kind == TUI_NS || kind == TUI_BYTES)
        return sign * ((a->number > b->number) - (a->number < b->number));
    return sign * ((a->real > b->real) - (a->real < b->real));
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

/* ---- JSON ---------------------------------------------------------------------------------- */

static void put_json_value(const struct tui_table *table, const struct tui_value *value,
                           const struct tui_column *column, struct prof_json *json)
{
    switch (column->kind) {
    case TUI_TEXT:
    case TUI_NAME:
        prof_json_string(json, column->key, tui_table_text_of(table, value));
        break;
    case TUI_COUNT:
    case TUI_ID:
    case TUI_NS:
    case TUI_BYTES:
        prof_json_known(json, column->key, value->known ? value->number : PROF_UNKNOWN);
        break;
    case TUI_RATE:
    case TUI_SHARE:
    case TUI_REAL:
        prof_json_real(json, column->key, value->known ? value->real : NAN);
        break;
    case TUI_SPARKLINE:
        break;
    }
}

void tui_table_json(const struct tui_table *table, struct prof_json *json, const char *key)
{
    prof_json_array(json, key);
    for (size_t i = 0; i < table->order.count; i++) {
        prof_json_object(json, NULL);
        for (size_t c = 0; c < table->column_count; c++) {
            if (table->columns[c].key)
                put_json_value(table, tui_table_value(table, table->order.data[i], c),
                               &table->columns[c], json);
        }
        prof_json_end(json);
    }
    prof_json_end(json);
}
