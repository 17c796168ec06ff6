/* Writes tables by their description: CSV, JSON and Markdown here, text in table_text.c, HTML in
 * html_tables.c. */
#include <stdlib.h>
#include <string.h>

#include "libprof/base/utf8.h"
#include "report/writers.h"

#define MARKDOWN_ROWS 10
#define MARKDOWN_NAME 80    /* columns of a name */
#define MARKDOWN_PROSE 1000 /* and of a sentence */
#define PROGRESS_ROWS 65536
/* Rows that are left out are counted no further: an event trace may have a hundred million. */
#define MAX_COUNTED 1000000

/* ---- values ---------------------------------------------------------------------------------- */

struct prof_report_value prof_report_shown_value(const struct prof_report_output *o,
                                                 const struct prof_report_column *column,
                                                 const void *row)
{
    return o->table->nsys ? prof_report_nsys_value(o->data, column, row)
                          : prof_report_value(o->data, column, row);
}

static void group_digits(const char *plain, char out[PROF_FIGURE_BYTES])
{
    size_t sign = plain[0] == '-', whole = strcspn(plain + sign, "."), used = 0;
    for (size_t i = 0; i < sign + whole; i++) {
        out[used++] = plain[i];
        size_t left = sign + whole - i - 1;
        if (i >= sign && left && left % 3 == 0)
            out[used++] = ',';
    }
    strcpy(out + used, plain + sign + whole);
}

/* nsys' way: all digits, grouped; one decimal for what is divided, three for MB. */
static void nsys_figure(const struct prof_report_column *column, struct prof_report_value value,
                        char out[PROF_FIGURE_BYTES])
{
    char plain[64];
    bool megabytes = column->unit == PROF_UNIT_BYTES || column->unit == PROF_UNIT_RATE;
    if (value.kind == PROF_VALUE_INT)
        prof_print_int(plain, value.integer);
    else if (value.real > -1e17 && value.real < 1e17)
        prof_print_fixed(plain, value.real, megabytes ? 3 : 1);
    else
        prof_print_real(plain, value.real);
    if (column->unit == PROF_UNIT_NUMBER || strchr(plain, 'e'))
        strcpy(out, plain);
    else
        group_digits(plain, out);
}

void prof_report_figure(const struct prof_report_output *o, const struct prof_report_column *column,
                        struct prof_report_value value, char out[PROF_FIGURE_BYTES])
{
    if (value.kind == PROF_VALUE_NONE && column->blank)
        out[0] = 0;
    else if (o->table->nsys && (value.kind == PROF_VALUE_INT || value.kind == PROF_VALUE_REAL))
        nsys_figure(column, value, out);
    else
        snprintf(out, PROF_FIGURE_BYTES, "%s", prof_report_number(column->unit, value).text);
}

/* ---- sentences of tables that are walked ----------------------------------------------------- */

void prof_report_more(const struct prof_report_output *o)
{
    if (o->more < MAX_COUNTED)
        fprintf(o->page.out, "... and %s more (--top %zu)", prof_count((int64_t)o->more).text,
                o->rows + o->more);
    else
        fprintf(o->page.out, "... and more than %s more (--top)", prof_count(MAX_COUNTED - 1).text);
}

void prof_report_nothing(const struct prof_report_output *o)
{
    const struct prof_info *info = o->data ? o->data->info : NULL;
    const char *trace = info ? info->trace : NULL;
    if (!o->table->nsys) {
        fprintf(o->page.out, "%s\n", o->table->none);
        return;
    }
    if (info && info->summary) {
        fputs(PROF_REPORT_NO_EVENTS ".\n", o->page.out);
        return;
    }
    fputs("Nothing of this kind was recorded", o->page.out);
    if (o->table->needs)
        fprintf(o->page.out, "; it takes perfkit run %s", o->table->needs);
    else if (trace && *trace && strcmp(trace, "cuda,nvtx,opencl"))
        fprintf(o->page.out, "; perfkit run --trace=%s records no other sources", trace);
    fputs(".\n", o->page.out);
}

/* The share that people take for one of the whole run; and rows whose caller is not known. */
void prof_report_nsys_remarks(const struct prof_report_output *o)
{
    const struct prof_report_row_walk *walk = o->walk;
    if (!walk || !o->rows)
        return;
    if (walk->listed_ns != PROF_UNKNOWN) {
        fprintf(o->page.out, "\n Time (%%) is of the listed rows: %s",
                prof_duration_ns(walk->listed_ns).text);
        if (walk->wall_ns != PROF_UNKNOWN && walk->wall_ns > 0)
            fprintf(o->page.out, ", %s of the wall time, %s",
                    prof_percent((double)walk->listed_ns / (double)walk->wall_ns).text,
                    prof_duration_ns(walk->wall_ns).text);
        fputc('\n', o->page.out);
    }
    if (o->table->needs && walk->stackless)
        fprintf(o->page.out, "\n Called From is n/a: it takes perfkit run %s.\n", o->table->needs);
}

/* ---- CSV (RFC 4180) -------------------------------------------------------------------------- */

/* Quotes only where needed. Control characters of names, and bytes that are not UTF-8, are escaped
 * as in text: a file shown in a terminal must not control it. */
static void put_csv_field(FILE *out, const char *text)
{
    PROF_FREED char *clean = *text ? prof_report_clean(text) : NULL; /* not "(empty)" */
    const char *field = clean ? clean : *text ? "n/a" : "";
    bool quoted = field[strcspn(field, ",\"")] || field[0] == ' ';
    if (quoted)
        fputc('"', out);
    for (const char *c = field; *c; c++) {
        if (*c == '"')
            fputc('"', out);
        fputc(*c, out);
    }
    if (quoted)
        fputc('"', out);
}

void prof_report_csv_value(FILE *out, struct prof_report_value value)
{
    char number[64];
    switch (value.kind) {
    case PROF_VALUE_NONE:
        return;
    case PROF_VALUE_TEXT:
        put_csv_field(out, value.text);
        return;
    case PROF_VALUE_INT:
        prof_print_int(number, value.integer);
        break;
    case PROF_VALUE_REAL:
        prof_print_real(number, value.real);
        break;
    case PROF_VALUE_BOOL:
    case PROF_VALUE_XYZ:
        fputs(prof_report_number(PROF_UNIT_WORD, value).text, out);
        return;
    }
    fputs(number, out);
}

/* The first field of every line names its table, so that grep takes one block out. Tables of nsys
 * have nsys' columns; where there are several, a line with the name is before each. */
static void csv_head(struct prof_report_output *o)
{
    FILE *out = o->page.out;
    if (o->table->nsys && o->several)
        fprintf(out, "%s%s\r\n", o->tables ? "\r\n" : "", o->table->name);
    if (!o->table->nsys && !o->bare)
        fputs("table,", out);
    for (const struct prof_report_column *column = o->table->columns; column->key; column++) {
        fputs(column == o->table->columns ? "" : ",", out);
        put_csv_field(out, column->key);
    }
    fputs("\r\n", out);
}

static bool csv_row(struct prof_report_output *o, const void *row)
{
    FILE *out = o->page.out;
    if (!o->table->nsys && !o->bare)
        fprintf(out, "%s,", o->table->name);
    for (const struct prof_report_column *column = o->table->columns; column->key; column++) {
        if (column != o->table->columns)
            fputc(',', out);
        prof_report_csv_value(out, prof_report_shown_value(o, column, row));
    }
    fputs("\r\n", out);
    return true;
}

static void csv_tail(struct prof_report_output *o)
{
    if (!o->table->nsys && !o->bare)
        fputs("\r\n", o->page.out);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void prof_report_json_value(struct prof_json *json, const char *key, struct prof_report_value value)
{
    switch (value.kind) {
    case PROF_VALUE_NONE:
        prof_json_null(json, key);
        break;
    case PROF_VALUE_INT:
        prof_json_int(json, key, value.integer);
        break;
    case PROF_VALUE_REAL:
        prof_json_real(json, key, value.real);
        break;
    case PROF_VALUE_TEXT:
        prof_json_string(json, key, value.text);
        break;
    case PROF_VALUE_BOOL:
        prof_json_bool(json, key, value.integer != 0);
        break;
    case PROF_VALUE_XYZ:
        prof_json_ints(json, key, value.xyz, 3);
        break;
    }
}

void prof_report_json_members(struct prof_json *json, const struct prof_report_column *columns,
                              const void *row)
{
    for (; columns->key; columns++)
        prof_report_json_value(json, columns->key, prof_report_value(NULL, columns, row));
}

void prof_report_json_rows(struct prof_json *json, const char *key,
                           const struct prof_report_table *table, const void *rows, size_t count)
{
    prof_json_array(json, key);
    for (size_t i = 0; i < count; i++) {
        prof_json_object(json, NULL);
        prof_report_json_members(json, table->columns, (const char *)rows + i * table->row_bytes);
        prof_json_end(json);
    }
    prof_json_end(json);
}

static void put_json_row(struct prof_report_output *o, const char *key, const void *row)
{
    prof_json_object(o->json, key);
    for (const struct prof_report_column *column = o->table->columns; column->key; column++)
        prof_report_json_value(o->json, column->key, prof_report_shown_value(o, column, row));
    prof_json_end(o->json);
}

static void json_head(struct prof_report_output *o)
{
    const struct prof_report_table *table = o->table;
    if (o->bare) {
        prof_json_array(o->json, table->name);
        return;
    }
    prof_json_object(o->json, table->nsys ? NULL : table->name);
    if (table->nsys) {
        prof_json_string(o->json, "name", table->name);
        prof_json_string(o->json, "title", table->title);
    } else if (!table->walk) {
        prof_json_uint(o->json, "total_rows", o->total);
    }
    if (table->total_row)
        put_json_row(o, "all", table->total_row(o->data));
    prof_json_array(o->json, "rows");
}

static bool json_row(struct prof_report_output *o, const void *row)
{
    put_json_row(o, NULL, row);
    return true;
}

static void json_tail(struct prof_report_output *o)
{
    prof_json_end(o->json);
    if (o->bare)
        return;
    if (o->walk) {
        prof_json_known(o->json, "listed_ns", o->walk->listed_ns);
        prof_json_known(o->json, "wall_ns", o->walk->wall_ns);
        prof_json_bool(o->json, "cut", o->more > 0);
    }
    prof_json_end(o->json);
}

/* ---- Markdown -------------------------------------------------------------------------------- */

/* No name can end a cell, start markup or mention a user. Takes `cut`. */
static void put_markdown_escaped(FILE *out, char *cut)
{
    for (const char *p = cut; p && *p; p++) {
        if (*p == '<' || *p == '>' || *p == '&' || *p == '@')
            fprintf(out, "&#%d;", *p);
        else if (strchr("\\`*_{}[]()#+-!|~$", *p))
            fprintf(out, "\\%c", *p);
        else
            fputc(*p, out);
    }
    free(cut);
}

void prof_report_markdown_prose(FILE *out, const char *text)
{
    put_markdown_escaped(out, prof_report_cut(text, MARKDOWN_PROSE));
}

void prof_report_markdown_notes(FILE *out, const struct prof_report_notes *notes)
{
    for (size_t i = 0; i < notes->count; i++) {
        fputs(i ? "- " : "\n- ", out);
        prof_report_markdown_prose(out, notes->text[i]);
        fputc('\n', out);
    }
}

static bool in_markdown(const struct prof_report_output *o, const struct prof_report_column *column)
{
    return column->rank || o->table->nsys;
}

static void markdown_head(struct prof_report_output *o)
{
    const struct prof_report_table *table = o->table;
    FILE *out = o->page.out;
    if (table->nsys)
        fprintf(out, "%s## %s (`%s`)\n\n", o->tables ? "\n" : "", table->title, table->name);
    else if (!o->bare)
        fprintf(out, "\n%.*s %s\n\n", o->level ? o->level : 2, "####", table->title);
    if (!o->total && !table->walk) {
        fprintf(out, "%s\n", prof_report_none(o->data, table));
        return;
    }
    if (table->totals) {
        char line[256] = "";
        table->totals(o->data, line, sizeof line);
        fprintf(out, "%s\n\n", line);
    }
    for (const struct prof_report_column *column = table->columns; column->key; column++) {
        if (!in_markdown(o, column))
            continue;
        fputs("| ", out);
        prof_report_markdown_prose(out, column->title);
        fputc(' ', out);
    }
    fputs("|\n", out);
    for (const struct prof_report_column *column = table->columns; column->key; column++) {
        if (in_markdown(o, column))
            fputs(prof_report_is_left(column) ? "| :-- " : "| --: ", out);
    }
    fputs("|\n", out);
}

static bool markdown_row(struct prof_report_output *o, const void *row)
{
    FILE *out = o->page.out;
    for (const struct prof_report_column *column = o->table->columns; column->key; column++) {
        char figure[PROF_FIGURE_BYTES];
        if (!in_markdown(o, column))
            continue;
        struct prof_report_value value = prof_report_shown_value(o, column, row);
        fputs("| ", out);
        if (value.kind == PROF_VALUE_TEXT && column->unit == PROF_UNIT_PROSE) {
            prof_report_markdown_prose(out, value.text);
        } else if (value.kind == PROF_VALUE_TEXT) {
            put_markdown_escaped(out, prof_report_fit(value.text, MARKDOWN_NAME));
        } else {
            prof_report_figure(o, column, value, figure);
            fputs(figure, out);
        }
        fputc(' ', out);
    }
    fputs("|\n", out);
    return true;
}

static void markdown_tail(struct prof_report_output *o)
{
    if (!o->rows && o->table->walk) {
        fputc('\n', o->page.out);
        prof_report_nothing(o);
    }
    if (o->more) {
        fputc('\n', o->page.out);
        prof_report_more(o);
        fputc('\n', o->page.out);
    }
    prof_report_nsys_remarks(o);
    struct prof_report_notes notes = {.count = 0};
    if (o->table->notes && !o->notes_apart)
        o->table->notes(o->data, &notes);
    prof_report_markdown_notes(o->page.out, &notes);
}

/* ---- all formats ----------------------------------------------------------------------------- */

static void nothing_to_free(struct prof_report_output *o)
{
    (void)o;
}

static const struct table_format {
    bool brief; /* for people: names and stacks are shortened, what is left out is counted */
    void (*head)(struct prof_report_output *o);
    bool (*row)(struct prof_report_output *o, const void *row); /* false: out of memory */
    void (*tail)(struct prof_report_output *o);
    void (*end)(struct prof_report_output *o);
} formats[] = {
    [PROF_REPORT_TEXT] = {true, prof_report_text_head, prof_report_text_row, prof_report_text_tail,
                          prof_report_text_end},
    [PROF_REPORT_JSON] = {false, json_head, json_row, json_tail, nothing_to_free},
    [PROF_REPORT_CSV] = {false, csv_head, csv_row, csv_tail, nothing_to_free},
    [PROF_REPORT_MARKDOWN] = {true, markdown_head, markdown_row, markdown_tail, nothing_to_free},
    [PROF_REPORT_PAGE] = {false, prof_report_page_head, prof_report_page_row, prof_report_page_tail,
                          nothing_to_free},
    [PROF_REPORT_MARKUP] = {true, prof_report_markup_head, prof_report_markup_row,
                            prof_report_markup_tail, nothing_to_free},
};

static void begin_table(struct prof_report_output *o, const struct prof_report_table *table,
                        struct prof_report_row_walk *walk, size_t total)
{
    size_t width = o->page.width;
    o->page.width = !width ? 100 : width < 60 ? 60 : width;
    o->table = table;
    o->walk = walk;
    o->total = total;
    o->rows = o->more = 0;
    o->no_memory = false;
    formats[o->format].head(o);
}

static enum prof_status end_table(struct prof_report_output *o, enum prof_status status,
                                  struct prof_error *err)
{
    if (!status && !o->no_memory)
        formats[o->format].tail(o);
    formats[o->format].end(o);
    o->tables++;
    return !status && o->no_memory
               ? prof_fail(err, PROF_NOMEM, "cannot write the report: out of memory")
               : status;
}

/* How many rows of `total`: --top, or the choice of the format. */
static size_t rows_to_write(const struct prof_report_output *o,
                            const struct prof_report_table *table, size_t total)
{
    size_t screen =
        o->screen_rows && o->screen_rows != PROF_HEADING_ONLY ? o->screen_rows : table->screen_rows;
    if (o->format == PROF_REPORT_MARKDOWN)
        return prof_report_limit(total, o->page.top, MARKDOWN_ROWS);
    if (o->format != PROF_REPORT_TEXT)
        return prof_report_limit(total, o->page.top, 0);
    size_t limit = prof_report_limit(total, o->page.top, screen);
    /* One more row takes no more room than the line that leaves it out. */
    return !o->page.top && limit + 1 == total ? total : limit;
}

enum prof_status prof_report_put_rows(struct prof_report_output *o,
                                      const struct prof_report_table *table, const void *rows,
                                      size_t count, struct prof_error *err)
{
    bool heading_only =
        o->format == PROF_REPORT_TEXT && o->screen_rows == PROF_HEADING_ONLY && !o->page.top;
    if (o->format == PROF_REPORT_CSV && !count && table->optional)
        return PROF_OK;
    size_t limit = heading_only ? 0 : rows_to_write(o, table, count);
    begin_table(o, table, NULL, o->all_rows ? o->all_rows : count);
    for (size_t i = 0; i < limit && !o->no_memory; i++) {
        o->no_memory = !formats[o->format].row(o, (const char *)rows + i * table->row_bytes);
        o->rows++;
    }
    o->more = heading_only ? 0 : o->total - limit;
    return end_table(o, PROF_OK, err);
}

static bool write_walked_row(void *user, const void *row)
{
    struct prof_report_output *o = user;
    if (o->page.top && o->rows == o->page.top)
        return ++o->more < MAX_COUNTED && formats[o->format].brief;
    if (!formats[o->format].row(o, row)) {
        o->no_memory = true;
        return false;
    }
    if (++o->rows % PROGRESS_ROWS == 0 && o->progress)
        o->progress(o->progress_context, (int64_t)o->rows, 0);
    return !ferror(o->page.out);
}

enum prof_status prof_report_put_table(struct prof_report_output *o,
                                       const struct prof_report_table *table,
                                       struct prof_error *err)
{
    size_t count = 0;
    if (!table->walk) {
        const void *rows = prof_report_rows(o->data, table, &count);
        return prof_report_put_rows(o, table, rows, count, err);
    }
    struct prof_report_row_walk walk = {.capture = o->data ? o->data->capture : NULL,
                                        .filter = o->data ? o->data->filter : NULL,
                                        .source = o->source,
                                        .row = write_walked_row,
                                        .user = o,
                                        .brief = formats[o->format].brief,
                                        .listed_ns = PROF_UNKNOWN,
                                        .wall_ns = PROF_UNKNOWN};
    begin_table(o, table, &walk, 0);
    enum prof_status status = end_table(o, table->walk(&walk, err), err);
    o->walk = NULL;
    return status;
}
