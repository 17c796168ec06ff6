/* Lays a table out for a terminal: numbers to the right, names to the left and shortened into what
 * is left of the line; columns give way by rank when the terminal is narrow. */
#include <stdlib.h>
#include <string.h>

#include "report/text.h"
#include "libprof/base/utf8.h"

#define MARGIN 2
#define SPACE 2
#define MAX_COLUMNS 48
/* Below this a name says too little; the least important number goes first. */
#define LEAST_NAME 24
#define LAST_RESORT 8

struct layout {
    const struct prof_report_column *columns[MAX_COLUMNS];
    size_t widths[MAX_COLUMNS];
    size_t count;
    char **cells; /* row by row, clean; NULL for names, which are cut when they are printed */
    const char **names;
    size_t rows;
};

const char *prof_report_tone(const struct prof_report_page *page, enum prof_report_tone tone)
{
    static const char *const codes[] = {
        [PROF_TONE_HEAD] = "\033[1m",
        [PROF_TONE_GOOD] = "\033[32m",
        [PROF_TONE_BAD] = "\033[1;31m",
        [PROF_TONE_FAINT] = "\033[2m",
    };
    return page->colour ? codes[tone] : "";
}

const char *prof_report_plain(const struct prof_report_page *page)
{
    return page->colour ? "\033[0m" : "";
}

static bool is_name(const struct prof_report_column *column)
{
    return column->unit == PROF_UNIT_NAME;
}

static bool to_the_left(const struct prof_report_column *column)
{
    return is_name(column) || column->unit == PROF_UNIT_WORD;
}

static enum prof_status fill_layout(struct layout *layout, const struct prof_report_data *data,
                                    const struct prof_report_table *table, const char *rows)
{
    layout->cells = calloc(layout->rows * layout->count, sizeof *layout->cells);
    layout->names = calloc(layout->rows * layout->count, sizeof *layout->names);
    if (!layout->cells || !layout->names)
        return PROF_NOMEM;
    for (size_t c = 0; c < layout->count; c++) {
        const struct prof_report_column *column = layout->columns[c];
        layout->widths[c] = strlen(column->title);
        for (size_t r = 0; r < layout->rows; r++) {
            size_t at = r * layout->count + c, wide;
            struct prof_report_value value =
                prof_report_value(data, column, rows + r * table->row_bytes);
            struct prof_text number = prof_report_number(column->unit, value);
            char *cell =
                prof_report_clean(value.kind == PROF_VALUE_TEXT ? value.text : number.text);
            if (!cell)
                return PROF_NOMEM;
            wide = prof_report_cells(cell);
            if (is_name(column) && value.kind == PROF_VALUE_TEXT)
                layout->names[at] = value.text;
            layout->cells[at] = cell;
            if (wide > layout->widths[c])
                layout->widths[c] = wide;
        }
    }
    return PROF_OK;
}

/* A count that is 0 in every row says nothing, nor a word or a share that no row has; where the
 * column is worth its room, another row has it. */
static bool all_zero(const struct layout *layout, const struct prof_report_data *data,
                     const struct prof_report_table *table, const char *rows, size_t c)
{
    const struct prof_report_column *column = layout->columns[c];
    bool word = column->unit == PROF_UNIT_WORD || column->unit == PROF_UNIT_SHARE;
    if ((column->unit != PROF_UNIT_COUNT && !word) || column->rank < 4)
        return false;
    for (size_t r = 0; r < layout->rows; r++) {
        struct prof_report_value value =
            prof_report_value(data, column, rows + r * table->row_bytes);
        bool absent = word && value.kind == PROF_VALUE_NONE;
        if (!absent && (value.kind != PROF_VALUE_INT || value.integer))
            return false;
    }
    return true;
}

static size_t line_width(const struct layout *layout)
{
    size_t width = MARGIN;
    for (size_t c = 0; c < layout->count; c++)
        width += layout->widths[c] + (c ? SPACE : 0);
    return width;
}

static void drop(struct layout *layout, size_t index, size_t full_count)
{
    for (size_t r = 0; r < layout->rows; r++) {
        char **cells = layout->cells + r * full_count;
        const char **names = layout->names + r * full_count;
        free(cells[index]);
        for (size_t c = index; c + 1 < layout->count; c++) {
            cells[c] = cells[c + 1];
            names[c] = names[c + 1];
        }
        cells[layout->count - 1] = NULL;
    }
    for (size_t c = index; c + 1 < layout->count; c++) {
        layout->columns[c] = layout->columns[c + 1];
        layout->widths[c] = layout->widths[c + 1];
    }
    layout->count--;
}

/* The widest name of a layout; layout->count when there is none. */
static size_t widest_name(const struct layout *layout)
{
    size_t name = layout->count;
    for (size_t c = 0; c < layout->count; c++) {
        if (is_name(layout->columns[c]) &&
            (name == layout->count || layout->widths[c] > layout->widths[name]))
            name = c;
    }
    return name;
}

/* Names give in to `width`, the widest first, none below `least` cells. */
static void shorten_names(struct layout *layout, size_t width, size_t least)
{
    size_t name = widest_name(layout);
    for (size_t now = line_width(layout); name < layout->count && now > width; now--) {
        if (layout->widths[name] <= least)
            return;
        layout->widths[name]--;
        name = widest_name(layout);
    }
}

/* A table's own least, in a terminal that has room for it. */
static size_t wide_name(const struct prof_report_page *page, size_t cells)
{
    size_t most = page->width * 2 / 5;
    return most < LEAST_NAME ? LEAST_NAME : cells < most ? cells : most;
}

/* What the longest name needs to be told in `cells` at most: short once its arguments are gone, it
 * pushes out no column. */
static size_t min_name_width(const struct layout *layout, size_t full_count, size_t cells)
{
    size_t least = LAST_RESORT;
    for (size_t i = 0; i < layout->rows * full_count; i++) {
        char *cut = layout->names[i] ? prof_report_fit(layout->names[i], cells) : NULL;
        size_t wide = cut ? prof_report_cells(cut) : 0;
        least = wide > least ? wide : least;
        free(cut);
    }
    return least;
}

/* Bring the line down to `width`: names give first, to `least` cells; then columns leave by rank,
 * and in the end names say next to nothing. */
static void shrink_to_width(struct layout *layout, size_t width, size_t full_count, size_t least)
{
    size_t natural[MAX_COLUMNS];
    for (;;) {
        size_t worst = layout->count;
        memcpy(natural, layout->widths, sizeof natural);
        shorten_names(layout, width, least);
        if (line_width(layout) <= width)
            return;
        for (size_t c = 0; c < layout->count; c++) {
            if (layout->columns[c]->rank > 1 &&
                (worst == layout->count || layout->columns[c]->rank > layout->columns[worst]->rank))
                worst = c;
        }
        if (worst == layout->count)
            break;
        memcpy(layout->widths, natural, sizeof natural);
        drop(layout, worst, full_count);
    }
    shorten_names(layout, width, LAST_RESORT);
}

void prof_report_pad(FILE *out, size_t cells)
{
    fprintf(out, "%*s", (int)cells, "");
}

static enum prof_status print_cell(const struct prof_report_page *page, const struct layout *layout,
                                   size_t c, const char *cell, const char *name)
{
    char *cut = NULL;
    size_t cells = prof_report_cells(cell), width = layout->widths[c];
    if (name && cells > width) {
        cut = prof_report_fit(name, width);
        if (!cut)
            return PROF_NOMEM;
        cell = cut;
        cells = prof_report_cells(cell);
    }
    size_t space = width > cells ? width - cells : 0;
    bool left = to_the_left(layout->columns[c]), last = c + 1 == layout->count;
    prof_report_pad(page->out, c ? SPACE : MARGIN);
    if (!left)
        prof_report_pad(page->out, space);
    fputs(cell, page->out);
    if (left && !last)
        prof_report_pad(page->out, space);
    free(cut);
    return PROF_OK;
}

static enum prof_status print_layout(const struct prof_report_page *page,
                                     const struct layout *layout, size_t full_count)
{
    enum prof_status status = PROF_OK;
    fputs(prof_report_tone(page, PROF_TONE_FAINT), page->out);
    for (size_t c = 0; c < layout->count && !status; c++)
        status = print_cell(page, layout, c, layout->columns[c]->title, NULL);
    fprintf(page->out, "%s\n", prof_report_plain(page));
    for (size_t r = 0; r < layout->rows && !status; r++) {
        for (size_t c = 0; c < layout->count && !status; c++) {
            size_t at = r * full_count + c;
            status = print_cell(page, layout, c, layout->cells[at], layout->names[at]);
        }
        fputc('\n', page->out);
    }
    return status;
}

enum prof_status prof_report_text_table(const struct prof_report_page *page,
                                        const struct prof_report_data *data,
                                        const struct prof_report_table *table, size_t most,
                                        struct prof_error *err)
{
    size_t total = 0;
    const char *rows = table->rows(data, &total);
    bool heading_only = most == PROF_HEADING_ONLY && !page->top;
    if (!most || most == PROF_HEADING_ONLY)
        most = table->screen_rows;
    struct layout layout = {.rows = prof_report_limit(total, page->top, most)};
    if (!page->top && layout.rows + 1 == total)
        layout.rows = total; /* the row takes no more room than the line that leaves it out */
    fprintf(page->out, "%s%s%s", prof_report_tone(page, PROF_TONE_HEAD), table->title,
            prof_report_plain(page));
    if (!total) {
        fprintf(page->out, ": %s\n", prof_report_none(data, table));
        return PROF_OK;
    }
    if (table->totals) {
        char line[256] = "";
        table->totals(data, line, sizeof line);
        fprintf(page->out, ": %s", line);
    }
    fputc('\n', page->out);
    if (heading_only)
        return PROF_OK;
    for (const struct prof_report_column *c = table->columns; c->key; c++) {
        if (c->rank && layout.count < MAX_COLUMNS)
            layout.columns[layout.count++] = c;
    }
    size_t full_count = layout.count;
    enum prof_status status = fill_layout(&layout, data, table, rows);
    if (!status) {
        for (size_t c = layout.count; c-- > 0;) {
            if (all_zero(&layout, data, table, rows, c))
                drop(&layout, c, full_count);
        }
        size_t least = table->name_cells ? table->name_cells : LEAST_NAME;
        least = least > LEAST_NAME ? wide_name(page, least) : least;
        shrink_to_width(&layout, page->width, full_count,
                        min_name_width(&layout, full_count, least));
        status = print_layout(page, &layout, full_count);
    }
    if (!status && layout.rows < total)
        fprintf(page->out, "  %s... and %s more (--top %zu)%s\n",
                prof_report_tone(page, PROF_TONE_FAINT),
                prof_count((int64_t)(total - layout.rows)).text, total, prof_report_plain(page));
    for (size_t i = 0; layout.cells && i < layout.rows * full_count; i++)
        free(layout.cells[i]);
    free(layout.cells);
    free(layout.names);
    return status ? prof_fail(err, status, "cannot write the report: out of memory") : PROF_OK;
}

/* Of the first word: a number and its unit are one. */
static size_t first_word_length(const char *text)
{
    static const char *const units[] = {"%", "ns", "us", "ms", "s", "B", "KiB", "MiB", "GiB"};
    size_t word = strcspn(text, " ");
    if (text[word] != ' ' || !word || text[word - 1] < '0' || text[word - 1] > '9')
        return word;
    const char *next = text + word + 1;
    size_t length = strcspn(next, " ,;:.)");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (length == strlen(units[i]) && !memcmp(next, units[i], length))
            return word + 1 + strcspn(next, " ");
    }
    return word;
}

void prof_report_wrap(const struct prof_report_page *page, size_t indent, const char *label,
                      const char *text)
{
    size_t room = page->width > indent + 20 ? page->width - indent : 20, used = 0;
    size_t label_cells = prof_report_cells(label);
    fputs(label, page->out);
    prof_report_pad(page->out, indent > label_cells ? indent - label_cells : 0);
    while (*text) {
        size_t word = first_word_length(text);
        char piece[512];
        if (word >= sizeof piece)
            word = sizeof piece - 1;
        memcpy(piece, text, word);
        piece[word] = 0;
        size_t cells = prof_report_cells(piece);
        if (used && used + 1 + cells > room) {
            fputc('\n', page->out);
            prof_report_pad(page->out, indent);
            used = 0;
        }
        if (used) {
            fputc(' ', page->out);
            used++;
        }
        fputs(piece, page->out);
        used += cells;
        text += word;
        text += strspn(text, " ");
    }
    fputc('\n', page->out);
}
