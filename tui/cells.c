/* See cells.h. Every text is cleaned here, whoever wrote it: the one place that a hostile name
 * would have to pass. */
#include "tui/cells.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/error.h"
#include "libprof/base/utf8.h"

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

void tui_grid_clear(struct tui_grid *grid)
{
    for (int i = 0; i < grid->width * grid->height; i++)
        grid->glyphs[i] = (struct tui_glyph){.code = ' '};
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
    char *clean = prof_report_clean(text);
    int used = clean ? put_clean(grid, x, y, room, style, clean) : 0;
    free(clean);
    return used;
}

int tui_grid_printf(struct tui_grid *grid, int x, int y, int room, enum tui_style style,
                    const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0) {
        prof_note(PROF_NOMEM);
        return 0;
    }
    int used = tui_grid_put(grid, x, y, room, style, text);
    free(text);
    return used;
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
