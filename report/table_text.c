/* Tables for a terminal: numbers to the right, names to the left and shortened into what is left of
 * the line; columns leave by importance when the terminal is narrow. Tables of nsys keep all their
 * columns and digits. */
#include <stdlib.h>
#include <string.h>

#include "libprof/base/utf8.h"
#include "report/writers.h"

#define MARGIN 2
#define NSYS_MARGIN 1
#define SPACE 2
#define MAX_COLUMNS 48
/* Below this a name says too little; the least important number goes first. */
#define MIN_NAME 24
#define LAST_RESORT 8
/* Rows that decide how wide the columns of a walked table are; further ones go out as they come. */
#define MEASURED_ROWS 1000
#define NSYS_NAME 60 /* of a name with columns behind it */

struct prof_report_layout {
    const struct prof_report_column *columns[MAX_COLUMNS];
    size_t widths[MAX_COLUMNS]; /* 0 = the column is left out */
    bool said[MAX_COLUMNS];     /* some row has a value that is not 0 */
    size_t count;
    size_t
        prose; /* the first column of sentences, which are wrapped below each other; count = none */
    char **cells; /* row by row, clean */
    char **names; /* as the program gave them, where a cell may be shortened; NULL elsewhere */
    size_t rows, room;
    bool printing;
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

struct prof_report_page prof_report_page(const struct prof_report_options *options, FILE *out)
{
    struct prof_report_page page = {.out = out};
    if (options) {
        page.top = options->top;
        page.colour = options->colour;
        page.all = options->all;
        page.width = options->width;
    }
    page.width = !page.width ? 100 : page.width < 60 ? 60 : page.width;
    return page;
}

static void pad_cells(FILE *out, size_t cells)
{
    fprintf(out, "%*s", (int)cells, "");
}

/* ---- prose ----------------------------------------------------------------------------------- */

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

/* A CI service may take a line that begins so for a command; names of the program are in here. */
static bool is_ci_command(const char *word)
{
    return !strncmp(word, "::", 2) || !strncmp(word, "##[", 3);
}

/* Text behind `indent` columns of each line; `over` more are taken on the first. */
static void wrap_behind(const struct prof_report_page *page, size_t indent, size_t over,
                        const char *text)
{
    size_t room = page->width > indent + 20 ? page->width - indent : 20, used = 0;
    while (*text) {
        size_t word = first_word_length(text);
        char piece[512];
        if (word >= sizeof piece)
            word = sizeof piece - 1;
        memcpy(piece, text, word);
        piece[word] = 0;
        size_t cells = prof_report_cells(piece);
        if (used && over + used + 1 + cells > room && !is_ci_command(piece)) {
            fputc('\n', page->out);
            pad_cells(page->out, indent);
            used = over = 0;
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

void prof_report_wrap(const struct prof_report_page *page, size_t indent, const char *label,
                      const char *text)
{
    size_t label_cells = prof_report_cells(label);
    fputs(label, page->out);
    pad_cells(page->out, indent > label_cells ? indent - label_cells : 0);
    wrap_behind(page, indent, label_cells > indent ? label_cells - indent : 0, text);
}

/* ---- cells ----------------------------------------------------------------------------------- */

static bool is_name(const struct prof_report_column *column)
{
    return column->unit == PROF_UNIT_NAME;
}

/* Sentences have what the other columns leave of the line and take as many lines as they need. */
static bool is_wrapped(const struct prof_report_output *o, const struct prof_report_column *column)
{
    return column->unit == PROF_UNIT_PROSE && !o->table->nsys;
}

static char *make_cell(const struct prof_report_output *o, const struct prof_report_column *column,
                       struct prof_report_value value)
{
    char figure[PROF_FIGURE_BYTES];
    if (value.kind != PROF_VALUE_TEXT) {
        prof_report_figure(o, column, value, figure);
        return strdup(figure);
    }
    return o->table->nsys && column[1].key && is_name(column)
               ? prof_report_fit(value.text, NSYS_NAME)
               : prof_report_clean(value.text);
}

static void free_texts(char **texts, size_t count)
{
    for (size_t c = 0; texts && c < count; c++)
        free(texts[c]);
}

/* A count that is 0 in every row says nothing, nor a word or a share that no row has. */
static bool says_something(const struct prof_report_column *column, struct prof_report_value value)
{
    if (value.kind == PROF_VALUE_NONE)
        return column->unit == PROF_UNIT_COUNT;
    return value.kind != PROF_VALUE_INT || value.integer;
}

static bool grow_layout(struct prof_report_layout *l)
{
    if (l->rows < l->room)
        return true;
    size_t room = l->room ? l->room * 2 : 64;
    char **cells = realloc(l->cells, room * l->count * sizeof *cells);
    l->cells = cells ? cells : l->cells;
    char **names = realloc(l->names, room * l->count * sizeof *names);
    l->names = names ? names : l->names;
    if (cells && names)
        l->room = room;
    return cells && names;
}

/* ---- widths ---------------------------------------------------------------------------------- */

static size_t line_width(const struct prof_report_layout *l)
{
    size_t width = MARGIN - SPACE;
    for (size_t c = 0; c < l->count; c++)
        width += l->widths[c] ? l->widths[c] + SPACE : 0;
    return width;
}

/* The widest name of a layout; l->count when there is none. */
static size_t widest_name(const struct prof_report_layout *l)
{
    size_t name = l->count;
    for (size_t c = 0; c < l->count; c++) {
        if (l->widths[c] && is_name(l->columns[c]) &&
            (name == l->count || l->widths[c] > l->widths[name]))
            name = c;
    }
    return name;
}

/* Shorten the names to bring the line to `width`, the widest first, none below `min` cells. */
static void shorten_names(struct prof_report_layout *l, size_t width, size_t min)
{
    size_t name = widest_name(l);
    for (size_t now = line_width(l); name < l->count && now > width; now--) {
        if (l->widths[name] <= min)
            return;
        l->widths[name]--;
        name = widest_name(l);
    }
}

/* A table's own minimum, in a terminal that has room for it. */
static size_t wide_name(const struct prof_report_page *page, size_t cells)
{
    size_t max = page->width * 2 / 5;
    return max < MIN_NAME ? MIN_NAME : cells < max ? cells : max;
}

/* The cells of the longest name once it is cut to `cells`: where that makes all names short, no
 * column has to leave for them. */
static size_t min_name_width(const struct prof_report_layout *l, size_t cells)
{
    size_t min = LAST_RESORT;
    for (size_t i = 0; i < l->rows * l->count; i++) {
        PROF_FREED char *cut = l->names[i] ? prof_report_fit(l->names[i], cells) : NULL;
        size_t wide = cut ? prof_report_cells(cut) : 0;
        min = wide > min ? wide : min;
    }
    return min;
}

/* Bring the line down to `width`: names give first, to `min` cells; then columns leave by
 * importance, and in the end names say next to nothing. */
static void shrink_to_width(struct prof_report_layout *l, size_t width, size_t min)
{
    size_t natural[MAX_COLUMNS];
    for (;;) {
        size_t worst = l->count;
        memcpy(natural, l->widths, sizeof natural);
        shorten_names(l, width, min);
        if (line_width(l) <= width)
            return;
        for (size_t c = 0; c < l->count; c++) {
            if (l->widths[c] && l->columns[c]->rank > 1 &&
                (worst == l->count || l->columns[c]->rank > l->columns[worst]->rank))
                worst = c;
        }
        if (worst == l->count)
            break;
        memcpy(l->widths, natural, sizeof natural);
        l->widths[worst] = 0;
    }
    shorten_names(l, width, LAST_RESORT);
}

static void choose_widths(const struct prof_report_output *o)
{
    struct prof_report_layout *l = o->layout;
    for (size_t c = 0; c < l->count; c++) {
        size_t widest = strlen(l->columns[c]->title);
        for (size_t r = 0; r < l->rows; r++) {
            size_t wide = prof_report_cells(l->cells[r * l->count + c]);
            widest = wide > widest ? wide : widest;
        }
        size_t max = o->table->nsys ? NSYS_NAME : o->name_max;
        if (max && is_name(l->columns[c]) && widest > max)
            widest = max;
        bool hidden = !o->table->nsys && !l->said[c] && prof_report_hides_zero(l->columns[c]);
        l->widths[c] = hidden                          ? 0
                       : !is_wrapped(o, l->columns[c]) ? widest
                       : c == l->prose                 ? MIN_NAME
                                                       : 0;
    }
    if (o->table->nsys)
        return;
    size_t min = o->table->name_cells ? o->table->name_cells : MIN_NAME;
    min = min > MIN_NAME ? wide_name(&o->page, min) : min;
    shrink_to_width(l, o->page.width, min_name_width(l, min));
}

/* ---- printing -------------------------------------------------------------------------------- */

/* The name in `width` cells; two rows with different names do not look the same, in tables that
 * people read as a whole. */
static char *fit_name(const struct prof_report_layout *l, size_t c, const char *name, size_t width)
{
    enum { ROWS_READ = 100, ROOM_FOR_BOTH = 24 };
    char *cut = prof_report_fit(name, width);
    for (size_t i = 0; cut && i < l->rows && l->rows <= ROWS_READ && width >= ROOM_FOR_BOTH; i++) {
        const char *other = l->names[i * l->count + c];
        PROF_FREED char *of_other =
            other && strcmp(other, name) != 0 ? prof_report_fit(other, width) : NULL;
        if (of_other && strcmp(cut, of_other) == 0) {
            free(cut);
            return prof_report_fit_apart(name, other, width);
        }
    }
    return cut;
}

/* `name`: to be shortened where the cell is too wide; NULL = it is not. */
static bool print_cell(const struct prof_report_output *o, size_t c, bool first, bool last,
                       const char *cell, const char *name)
{
    PROF_FREED char *cut = NULL;
    size_t cells = prof_report_cells(cell), width = o->layout->widths[c];
    if (name && cells > width) {
        cut = fit_name(o->layout, c, name, width);
        if (!cut)
            return false;
        cell = cut;
        cells = prof_report_cells(cell);
    }
    size_t space = width > cells ? width - cells : 0;
    bool left = prof_report_is_left(o->layout->columns[c]);
    pad_cells(o->page.out, !first ? SPACE : o->flush ? 0 : o->table->nsys ? NSYS_MARGIN : MARGIN);
    if (!left)
        pad_cells(o->page.out, space);
    fputs(cell, o->page.out);
    if (left && !last)
        pad_cells(o->page.out, space);
    return true;
}

/* NULL cells: the headings, without the end of the line. */
static bool print_line(const struct prof_report_output *o, char *const *cells, char *const *names)
{
    const struct prof_report_layout *l = o->layout;
    size_t first = 0, last = l->count, end = cells ? l->prose : l->count;
    bool ok = true;
    while (first < l->count && !l->widths[first])
        first++;
    while (last && !l->widths[last - 1])
        last--;
    for (size_t c = first; c < last && c < end && ok; c++) {
        if (l->widths[c])
            ok = print_cell(o, c, c == first, c + 1 == last,
                            cells ? cells[c] : l->columns[c]->title, cells ? names[c] : NULL);
    }
    if (!cells)
        return ok;
    if (l->prose == l->count)
        fputc('\n', o->page.out);
    size_t indent = line_width(l) - (l->prose < l->count ? MIN_NAME : 0);
    for (size_t c = l->prose; c < l->count && ok; c++) {
        bool is_first = c == l->prose;
        if (!is_first && !*cells[c])
            continue;
        if (l->prose + 1 == c) /* those after the first say more of it */
            indent += MARGIN;
        pad_cells(o->page.out, !is_first ? indent : first == c ? MARGIN : SPACE);
        wrap_behind(&o->page, indent, 0, cells[c]);
    }
    return ok;
}

static void print_dashes(const struct prof_report_output *o)
{
    static const char dashes[] =
        "----------------------------------------------------------------------------------------";
    for (size_t c = 0; c < o->layout->count; c++) {
        size_t width = o->layout->widths[c];
        pad_cells(o->page.out, c ? SPACE : NSYS_MARGIN);
        fprintf(o->page.out, "%.*s", (int)(width < sizeof dashes ? width : sizeof dashes - 1),
                dashes);
    }
    fputc('\n', o->page.out);
}

/* The headings and the rows so far. */
static bool begin_printing(struct prof_report_output *o)
{
    struct prof_report_layout *l = o->layout;
    bool nsys = o->table->nsys, ok;
    l->printing = true;
    choose_widths(o);
    fputs(nsys ? "" : prof_report_tone(&o->page, PROF_TONE_FAINT), o->page.out);
    ok = print_line(o, NULL, NULL);
    fprintf(o->page.out, "%s\n", nsys ? "" : prof_report_plain(&o->page));
    if (nsys)
        print_dashes(o);
    for (size_t r = 0; r < l->rows && ok; r++) {
        ok = print_line(o, l->cells + r * l->count, l->names + r * l->count);
    }
    free_texts(l->cells, l->rows * l->count);
    free_texts(l->names, l->rows * l->count);
    l->rows = 0;
    return ok;
}

/* ---- the writer ------------------------------------------------------------------------------ */

static void print_heading(const struct prof_report_output *o)
{
    const struct prof_report_table *table = o->table;
    bool empty = !o->total && !table->walk;
    if (table->nsys) {
        fprintf(o->page.out, "%s ** %s (%s):\n\n", o->tables ? "\n" : "", table->title,
                table->name);
        return;
    }
    if (!table->title) {
        if (empty)
            fprintf(o->page.out, "%s\n", table->none);
        return;
    }
    fprintf(o->page.out, "%s%s%s", prof_report_tone(&o->page, PROF_TONE_HEAD), table->title,
            prof_report_plain(&o->page));
    if (empty) {
        fprintf(o->page.out, ": %s", prof_report_none(o->data, table));
    } else if (table->totals) {
        char line[256] = "";
        table->totals(o->data, line, sizeof line);
        fputs(": ", o->page.out);
        wrap_behind(&o->page, MARGIN, prof_report_cells(table->title) + 2 - MARGIN, line);
        return;
    }
    fputc('\n', o->page.out);
}

void prof_report_text_head(struct prof_report_output *o)
{
    struct prof_report_layout *l = o->layout = calloc(1, sizeof *l);
    o->no_memory |= !l;
    print_heading(o);
    for (const struct prof_report_column *c = o->table->columns; l && c->key; c++) {
        if (l->count == MAX_COLUMNS || !(o->table->nsys || c->rank))
            continue;
        if (!is_wrapped(o, c))
            l->prose = l->count + 1; /* they are the last ones */
        l->columns[l->count++] = c;
    }
}

bool prof_report_text_row(struct prof_report_output *o, const void *row)
{
    struct prof_report_layout *l = o->layout;
    bool ok = true;
    if (!l || (o->table->walk && !l->printing && l->rows == MEASURED_ROWS && !begin_printing(o)) ||
        !grow_layout(l))
        return false;
    char **cells = l->cells + l->rows * l->count, **names = l->names + l->rows * l->count;
    for (size_t c = 0; c < l->count; c++) {
        struct prof_report_value value = prof_report_shown_value(o, l->columns[c], row);
        bool cut = !o->table->nsys && is_name(l->columns[c]) && value.kind == PROF_VALUE_TEXT;
        cells[c] = make_cell(o, l->columns[c], value);
        names[c] = cut ? strdup(value.text) : NULL;
        ok &= cells[c] && (names[c] || !cut);
        l->said[c] |= says_something(l->columns[c], value);
    }
    l->rows++; /* freed with the others */
    if (l->printing && ok) {
        ok = print_line(o, cells, names);
    }
    if (l->printing) {
        free_texts(cells, l->count);
        free_texts(names, l->count);
        l->rows = 0;
    }
    return ok;
}

static void print_more(const struct prof_report_output *o)
{
    const char *faint = o->table->nsys ? "" : prof_report_tone(&o->page, PROF_TONE_FAINT);
    fputs(o->table->nsys ? " " : "  ", o->page.out);
    fputs(faint, o->page.out);
    prof_report_more(o);
    fprintf(o->page.out, "%s\n", *faint ? prof_report_plain(&o->page) : "");
}

void prof_report_text_tail(struct prof_report_output *o)
{
    struct prof_report_layout *l = o->layout;
    if (o->rows && l && !o->no_memory && !l->printing && !begin_printing(o))
        o->no_memory = true;
    if (!o->rows && o->table->walk) {
        fputs(o->table->nsys ? " " : "", o->page.out);
        prof_report_nothing(o);
    }
    if (o->more)
        print_more(o);
    prof_report_nsys_remarks(o);
    struct prof_report_notes notes = {.count = 0};
    if (o->table->notes && !o->notes_apart)
        o->table->notes(o->data, &notes);
    for (size_t i = 0; i < notes.count; i++)
        prof_report_wrap(&o->page, MARGIN, "", notes.text[i]);
}

void prof_report_text_end(struct prof_report_output *o)
{
    struct prof_report_layout *l = o->layout;
    if (!l)
        return;
    free_texts(l->cells, l->rows * l->count);
    free_texts(l->names, l->rows * l->count);
    free(l->cells);
    free(l->names);
    free(l);
    o->layout = NULL;
}
