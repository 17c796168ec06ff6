/* What a view shows: rows of typed values under titled columns. The screen, sorting, filters and
 * --json are made from it, so that a view is only the code that fills it. */
#ifndef PERFKIT_TUI_TABLE_H
#define PERFKIT_TUI_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "libprof/base/array.h"
#include "libprof/base/json.h"
#include "report/table.h"
#include "tui/model.h"

/* ---- cells ----------------------------------------------------------------------------------- */

/* A screen of characters with a style each: what views draw into and what a terminal, or a test,
 * reads. Nothing gets in that could move a terminal's cursor. */

enum tui_style {
    TUI_NORMAL,
    TUI_STRONG,
    TUI_DIM,
    TUI_HEADER, /* titles of columns */
    TUI_CHOSEN, /* the row under the cursor */
    TUI_TAB,    /* the view that is shown */
    TUI_KEY,    /* what a function key does */
    TUI_BAR,    /* meters and sparklines */
    TUI_GOOD,
    TUI_WARN,
    TUI_BAD,
    TUI_STYLES
};

struct tui_glyph {
    uint32_t code; /* 0 = the right half of a wide character */
    uint32_t mark; /* a combining one on it, or 0 */
    enum tui_style style;
};

struct tui_grid {
    int width, height;
    bool ascii; /* only characters that every terminal has */
    struct tui_glyph *glyphs;
};

/* A blank screen; false: out of memory (the grid is then empty). */
bool tui_grid_make(struct tui_grid *grid, int width, int height, bool ascii);
void tui_grid_free(struct tui_grid *grid);

/* Write UTF-8 from (x, y) into at most `room` columns; what does not fit or is outside is cut.
 * Control characters, turned text and broken bytes come out as escapes. Returns columns used. */
int tui_grid_put(struct tui_grid *grid, int x, int y, int room, enum tui_style style,
                 const char *text);
/* Style a whole stretch of a line. */
void tui_grid_style(struct tui_grid *grid, int x, int y, int room, enum tui_style style);

/* A bar of `share` 0..1 over `room` columns. */
void tui_grid_bar(struct tui_grid *grid, int x, int y, int room, double share,
                  enum tui_style style);
/* The last `room` of `count` values as a line of eight heights; `full` = what fills a cell. */
void tui_grid_spark(struct tui_grid *grid, int x, int y, int room, const uint32_t *values,
                    int count, double full);

/* Bytes of the first line of a text that is `width` columns wide, cut at a space where there is
 * one. */
size_t tui_line_length(const char *text, int width);

/* UTF-8 of a glyph (at most 8 bytes and NUL). */
void tui_glyph_text(const struct tui_glyph *glyph, char out[9]);
/* The screen as text, trailing blanks cut. */
void tui_grid_print(const struct tui_grid *grid, FILE *out);

/* ---- tables ---------------------------------------------------------------------------------- */

/* A column as a report's tables describe theirs (rank 0: never left out of a narrow screen), and
 * what the screen needs besides. */
struct tui_column {
    struct prof_report_column column; /* key NULL = not in JSON; title NULL = not on the screen */
    int width;                        /* of a NAME: the smallest; 0 = 20 */
    bool if_known;                    /* left out of the screen while no row has it */
    bool spark;                       /* the last minute; not in JSON */
};

#define TUI_COLUMN(key_, title_, unit_, width_, rank_, ...)                                        \
    {                                                                                              \
        .column = {.key = key_, .title = title_, .unit = PROF_UNIT_##unit_, .rank = rank_},        \
        .width = width_, __VA_ARGS__                                                               \
    }

/* The columns of a view from a list of COLUMN(number, what TUI_COLUMN takes): a constant of each
 * column's number, and the array. */
#define TUI_COLUMN_NUMBER(number, ...) number,
#define TUI_NUMBERED_COLUMN(number, ...) [number] = TUI_COLUMN(__VA_ARGS__),
#define TUI_COLUMNS(name, LIST)                                                                    \
    enum { LIST(TUI_COLUMN_NUMBER) };                                                              \
    static const struct tui_column name[] = {LIST(TUI_NUMBERED_COLUMN)};

struct tui_value {
    enum prof_report_kind kind; /* NONE: not known */
    bool blank;                 /* there is no such thing: nothing is drawn */
    int64_t integer;            /* TEXT: its rank */
    double real;                /* sparkline: what fills a cell */
    size_t text;                /* offset in texts; sparkline: its values */
};

struct tui_row {
    int64_t id; /* what the row is about, the same from look to look */
    int depth;  /* indentation of the NAME column */
    enum tui_style style;
};

struct tui_table {
    const struct tui_column *columns;
    size_t column_count;
    PROF_ARRAY(struct tui_row) rows;
    PROF_ARRAY(struct tui_value) values; /* column_count a row */
    PROF_ARRAY(char) texts;
    PROF_ARRAY(size_t) order; /* rows as they are shown */
    PROF_ARRAY(size_t) notes; /* offsets: sentences under the table */
    bool in_order;            /* a tree or a text: never sorted */
    size_t sort;              /* column it is sorted by unless the user chose another */
    bool failed;              /* out of memory: something is missing */
};

/* Empty it and set its columns. */
void tui_table_begin(struct tui_table *table, const struct tui_column *columns, size_t count);
void tui_table_free(struct tui_table *table);
/* Make `table` the same as `from`; not its order. */
void tui_table_copy(struct tui_table *table, const struct tui_table *from);

/* A new last row, every value unknown. */
void tui_table_row(struct tui_table *table, int64_t id, int depth, enum tui_style style);
/* Into the last row, by the column's number. Unknown numbers and NULL stay unknown. */
void tui_table_text(struct tui_table *table, size_t column, const char *text);
void tui_table_number(struct tui_table *table, size_t column, int64_t number);
/* Words of the last row are sorted by it, the highest first, before they are by the alphabet. */
void tui_table_rank(struct tui_table *table, size_t column, int64_t rank);
void tui_table_real(struct tui_table *table, size_t column, double real);
/* A value of a report's table: a number or a text. */
void tui_table_put(struct tui_table *table, size_t column, struct prof_report_value value);
/* There is no such thing in the last row. */
void tui_table_blank(struct tui_table *table, size_t column);
void tui_table_spark(struct tui_table *table, size_t column, const uint32_t values[TUI_SPARK],
                     double full);
void tui_table_format(struct tui_table *table, size_t column, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A new row of a page of text (tui_text_column): one line. */
void tui_table_line(struct tui_table *table, enum tui_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void tui_table_note(struct tui_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What could not be read, as a note; and noted for the end (tui_app_whole), since JSON has no
 * notes. */
void tui_table_failure(struct tui_table *table, const struct prof_error *err);

const struct tui_value *tui_table_value(const struct tui_table *table, size_t row, size_t column);
/* NULL = unknown. */
const char *tui_table_text_of(const struct tui_table *table, const struct tui_value *value);

/* Choose and order the rows: those in which a TEXT or NAME holds `filter` ("" = all; case does not
 * matter), by a column (SIZE_MAX: the table's own), largest first unless `rising`. */
void tui_table_arrange(struct tui_table *table, const char *filter, size_t sort, bool rising);
/* The place in `order` of the first row at or after `from` that holds `text`, wrapping; SIZE_MAX.
 */
size_t tui_table_search(const struct tui_table *table, const char *text, size_t from);

/* Draw the titles at `y` and `lines` rows below, from the `scroll`th on. `chosen`: place in `order`
 * under the cursor, SIZE_MAX = none. `sort`: as for arrange, marked in its title. */
void tui_table_draw(const struct tui_table *table, struct tui_grid *grid, int y, int lines,
                    size_t scroll, size_t chosen, size_t sort, bool rising);
/* The column whose title is at `x` of a grid so wide; SIZE_MAX. */
size_t tui_table_column_at(const struct tui_table *table, int width, int x);

/* The rows in the order of `order`, as a member of the object that is open. */
enum prof_status tui_table_json(const struct tui_table *table, struct prof_json *json,
                                const char *name, struct prof_error *err);

#endif
