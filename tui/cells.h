/* A screen of characters with a style each: what views draw into and what a terminal, or a test,
 * reads. Nothing gets in that could move a terminal's cursor. */
#ifndef PERFKIT_TUI_CELLS_H
#define PERFKIT_TUI_CELLS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

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
void tui_grid_clear(struct tui_grid *grid);

/* Write UTF-8 from (x, y) into at most `room` columns; what does not fit or is outside is cut.
 * Control characters, turned text and broken bytes come out as escapes. Returns columns used. */
int tui_grid_put(struct tui_grid *grid, int x, int y, int room, enum tui_style style,
                 const char *text);
int tui_grid_printf(struct tui_grid *grid, int x, int y, int room, enum tui_style style,
                    const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Style a whole stretch of a line. */
void tui_grid_style(struct tui_grid *grid, int x, int y, int room, enum tui_style style);

/* A bar of `share` 0..1 over `room` columns. */
void tui_grid_bar(struct tui_grid *grid, int x, int y, int room, double share,
                  enum tui_style style);
/* The last `room` of `count` values as a line of eight heights; `full` = what fills a cell. */
void tui_grid_spark(struct tui_grid *grid, int x, int y, int room, const uint32_t *values,
                    int count, double full);

/* UTF-8 of a glyph (at most 8 bytes and NUL). */
void tui_glyph_text(const struct tui_glyph *glyph, char out[9]);
/* The screen as text, trailing blanks cut. */
void tui_grid_print(const struct tui_grid *grid, FILE *out);

#endif
