/* Writes statistics as text, CSV, JSON and Markdown, row by row. */
#include <stdlib.h>
#include <string.h>

#include "report/filter.h"
#include "report/stats.h"
#include "libprof/base/utf8.h"
#include "report/text.h"
#include "report/writers.h"

#define MAX_COLUMNS 40
#define PROGRESS_ROWS 65536
/* Rows that are left out are counted no further: an event trace may have a hundred million. */
#define MOST_COUNTED 1000000
/* Rows that decide how wide the columns of a text table are; further ones go out as they come. */
#define MEASURED_ROWS 1000
#define WIDEST_NAME 60 /* of a name with columns behind it */

struct output;

struct format {
    bool brief; /* for people: names and stacks are shortened */
    void (*open)(struct output *output);
    void (*head)(struct output *output);
    bool (*row)(struct output *output, const void *row); /* false: out of memory */
    void (*tail)(struct output *output);
    void (*close)(struct output *output);
};

struct output {
    FILE *out;
    const struct prof_report_options *options;
    const struct format *format;
    struct prof_report_data data; /* its capture, filter, info and trust only */
    const struct prof_report_stat *stat;
    struct prof_report_stat_walk *walk;
    size_t tables; /* before this one */
    bool several;
    size_t rows;
    size_t more; /* than --top lets through, counted up to MOST_COUNTED */
    bool no_memory;
    struct prof_json json;
    /* text: the first rows, as cells */
    char **cells;
    size_t cell_rows, columns, widths[MAX_COLUMNS];
    bool printing;
};

static size_t column_count(const struct prof_report_stat *stat)
{
    size_t count = 0;
    while (stat->columns[count].key)
        count++;
    return count;
}

/* ---- numbers for people ---------------------------------------------------------------------- */

static void group_digits(const char *plain, char out[96])
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

static int decimals(enum prof_report_unit unit)
{
    switch (unit) {
    case PROF_UNIT_BYTES:
    case PROF_UNIT_RATE:
        return 3;
    default:
        return 1;
    }
}

/* nsys' way: all digits, grouped; one decimal for what is divided, three for MB. */
static void print_number(const struct prof_report_column *column, struct prof_report_value value,
                         char out[96])
{
    char plain[64];
    if (value.kind == PROF_VALUE_INT)
        prof_print_int(plain, value.integer);
    else if (value.real > -1e17 && value.real < 1e17)
        prof_print_fixed(plain, value.real, decimals(column->unit));
    else
        prof_print_real(plain, value.real);
    if (column->unit == PROF_UNIT_NUMBER || strchr(plain, 'e'))
        strcpy(out, plain);
    else
        group_digits(plain, out);
}

static const char *absent(const struct prof_report_column *column)
{
    return column->rank == PROF_STAT_BLANK ? "" : "n/a";
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_cells(struct output *o, char *const *cells)
{
    for (size_t c = 0; c < o->columns; c++) {
        size_t wide = prof_report_cells(cells[c]), width = o->widths[c];
        size_t space = wide < width ? width - wide : 0;
        bool left = prof_report_is_left(&o->stat->columns[c]);
        prof_report_pad(o->out, c ? 2 : 1);
        if (!left)
            prof_report_pad(o->out, space);
        fputs(cells[c], o->out);
        if (left && c + 1 < o->columns)
            prof_report_pad(o->out, space);
    }
    fputc('\n', o->out);
}

static char *make_cell(const struct output *o, const struct prof_report_column *column,
                       const void *row)
{
    char number[96];
    struct prof_report_value value = prof_report_stat_value(&o->data, column, row);
    if (value.kind == PROF_VALUE_TEXT)
        return column[1].key && column->unit == PROF_UNIT_NAME
                   ? prof_report_fit(value.text, WIDEST_NAME)
                   : prof_report_clean(value.text);
    if (value.kind == PROF_VALUE_NONE)
        return strdup(absent(column));
    print_number(column, value, number);
    return strdup(number);
}

static bool make_cells(const struct output *o, const void *row, char **cells)
{
    bool ok = true;
    for (size_t c = 0; c < o->columns; c++)
        ok &= (cells[c] = make_cell(o, &o->stat->columns[c], row)) != NULL;
    return ok;
}

static void free_cells(char **cells, size_t count)
{
    for (size_t c = 0; c < count; c++)
        free(cells[c]);
}

static void measure_columns(struct output *o)
{
    for (size_t c = 0; c < o->columns; c++) {
        const struct prof_report_column *column = &o->stat->columns[c];
        size_t widest = strlen(column->title), limit = SIZE_MAX;
        if (column->unit == PROF_UNIT_NAME)
            limit = WIDEST_NAME;
        for (size_t r = 0; r < o->cell_rows; r++) {
            size_t wide = prof_report_cells(o->cells[r * o->columns + c]);
            widest = wide > widest ? wide : widest;
        }
        o->widths[c] = widest < limit ? widest : limit;
    }
}

static void print_headings(struct output *o)
{
    static const char dashes[] =
        "----------------------------------------------------------------------------------------";
    for (int line = 0; line < 2; line++) {
        for (size_t c = 0; c < o->columns; c++) {
            const char *title = o->stat->columns[c].title;
            size_t width = o->widths[c], space = width > strlen(title) ? width - strlen(title) : 0;
            bool left = prof_report_is_left(&o->stat->columns[c]), last = c + 1 == o->columns;
            prof_report_pad(o->out, c ? 2 : 1);
            if (line) {
                fprintf(o->out, "%.*s", (int)(width < sizeof dashes ? width : sizeof dashes - 1),
                        dashes);
                continue;
            }
            prof_report_pad(o->out, left ? 0 : space);
            fputs(title, o->out);
            prof_report_pad(o->out, left && !last ? space : 0);
        }
        fputc('\n', o->out);
    }
}

static void begin_printing(struct output *o)
{
    if (o->printing)
        return;
    o->printing = true;
    measure_columns(o);
    print_headings(o);
    for (size_t r = 0; r < o->cell_rows; r++)
        print_cells(o, o->cells + r * o->columns);
    free_cells(o->cells, o->cell_rows * o->columns);
    o->cell_rows = 0;
}

static void text_open(struct output *o)
{
    char line[600];
    prof_report_filter_words(o->data.capture, o->data.filter, line, sizeof line);
    if (line[0])
        fprintf(o->out, "Only %s\n\n", line);
}

static void text_head(struct output *o)
{
    fprintf(o->out, "%s ** %s (%s):\n\n", o->tables ? "\n" : "", o->stat->title, o->stat->name);
}

static bool text_row(struct output *o, const void *row)
{
    if (!o->cells && !(o->cells = calloc(MEASURED_ROWS * MAX_COLUMNS, sizeof *o->cells)))
        return false;
    if (o->cell_rows == MEASURED_ROWS)
        begin_printing(o);
    char **cells = o->cells + o->cell_rows * o->columns;
    bool ok = make_cells(o, row, cells);
    if (!o->printing) {
        o->cell_rows++; /* freed with the others */
        return ok;
    }
    if (ok)
        print_cells(o, cells);
    free_cells(cells, o->columns);
    return ok;
}

/* The share that people take for one of the whole run. */
static void print_shares(const struct output *o)
{
    const struct prof_report_stat_walk *walk = o->walk;
    if (!o->rows || walk->listed_ns == PROF_UNKNOWN)
        return;
    fprintf(o->out, "\n Time (%%) is of the listed rows: %s",
            prof_duration_ns(walk->listed_ns).text);
    if (walk->wall_ns != PROF_UNKNOWN && walk->wall_ns > 0)
        fprintf(o->out, ", %s of the wall time, %s",
                prof_percent((double)walk->listed_ns / (double)walk->wall_ns).text,
                prof_duration_ns(walk->wall_ns).text);
    fputc('\n', o->out);
}

/* In place of rows: what is not there, and which option of perfkit run would have brought it. */
static void print_nothing(const struct output *o)
{
    const char *trace = o->data.info->trace;
    if (o->data.info->summary) {
        fputs(PROF_REPORT_NO_EVENTS ".\n", o->out);
        return;
    }
    fputs("Nothing of this kind was recorded", o->out);
    if (o->stat->needs)
        fprintf(o->out, "; it takes perfkit run %s", o->stat->needs);
    else if (trace && *trace && strcmp(trace, "cuda,nvtx,opencl"))
        fprintf(o->out, "; perfkit run --trace=%s records no other sources", trace);
    fputs(".\n", o->out);
}

/* Rows are there, but the column that they were asked for is empty. */
static void print_missing_stack(const struct output *o)
{
    if (o->rows && o->stat->needs && o->walk->stackless)
        fprintf(o->out, "\n Called From is n/a: it takes perfkit run %s.\n", o->stat->needs);
}

static void print_more(const struct output *o, const char *before)
{
    if (o->more < MOST_COUNTED)
        fprintf(o->out, "%s... and %s more (--top %zu)\n", before,
                prof_count((int64_t)o->more).text, o->rows + o->more);
    else
        fprintf(o->out, "%s... and more than %s more (--top)\n", before,
                prof_count(MOST_COUNTED - 1).text);
}

static void text_tail(struct output *o)
{
    if (o->rows) {
        begin_printing(o);
    } else {
        fputc(' ', o->out);
        print_nothing(o);
    }
    if (o->more)
        print_more(o, " ");
    print_shares(o);
    print_missing_stack(o);
}

static void text_close(struct output *o)
{
    free(o->cells);
    if (!o->data.trust.complete)
        fputs("\n The capture is not known to be complete: `perfkit report` says why.\n", o->out);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static void print_no_header(struct output *o)
{
    (void)o;
}

/* Several tables cannot share one heading: each then has a line with its name before it. */
static void csv_head(struct output *o)
{
    if (o->several)
        fprintf(o->out, "%s%s\r\n", o->tables ? "\r\n" : "", o->stat->name);
    for (size_t c = 0; c < o->columns; c++)
        fprintf(o->out, "%s%s", c ? "," : "", o->stat->columns[c].title);
    fputs("\r\n", o->out);
}

static bool csv_row(struct output *o, const void *row)
{
    for (size_t c = 0; c < o->columns; c++) {
        if (c)
            fputc(',', o->out);
        prof_report_csv_value(o->out, prof_report_stat_value(&o->data, &o->stat->columns[c], row));
    }
    fputs("\r\n", o->out);
    return true;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_open(struct output *o)
{
    prof_json_to_file(&o->json, o->out, 2);
    prof_json_object(&o->json, NULL);
    prof_json_int(&o->json, "perfkit_stats", 1);
    prof_report_json_capture(&o->json, &o->data);
    prof_report_json_filter(&o->json, o->data.filter);
    prof_report_json_trust(&o->json, &o->data);
    prof_json_array(&o->json, "stats");
}

static void json_head(struct output *o)
{
    prof_json_object(&o->json, NULL);
    prof_json_string(&o->json, "name", o->stat->name);
    prof_json_string(&o->json, "title", o->stat->title);
    prof_json_array(&o->json, "rows");
}

static bool json_row(struct output *o, const void *row)
{
    prof_json_object(&o->json, NULL);
    for (size_t c = 0; c < o->columns; c++) {
        const struct prof_report_column *column = &o->stat->columns[c];
        prof_report_json_value(&o->json, column->key,
                               prof_report_stat_value(&o->data, column, row));
    }
    prof_json_end(&o->json);
    return true;
}

static void json_tail(struct output *o)
{
    prof_json_end(&o->json);
    prof_json_known(&o->json, "listed_ns", o->walk->listed_ns);
    prof_json_known(&o->json, "wall_ns", o->walk->wall_ns);
    prof_json_bool(&o->json, "cut", o->more > 0);
    prof_json_end(&o->json);
}

static void json_close(struct output *o)
{
    prof_json_end(&o->json);
    prof_json_end(&o->json);
}

/* ---- Markdown -------------------------------------------------------------------------------- */

static void markdown_head(struct output *o)
{
    fprintf(o->out, "%s## %s (`%s`)\n\n", o->tables ? "\n" : "", o->stat->title, o->stat->name);
    for (size_t c = 0; c < o->columns; c++)
        fprintf(o->out, "| %s ", o->stat->columns[c].title);
    fputs("|\n", o->out);
    for (size_t c = 0; c < o->columns; c++)
        fputs(prof_report_is_left(&o->stat->columns[c]) ? "| :-- " : "| --: ", o->out);
    fputs("|\n", o->out);
}

static bool markdown_row(struct output *o, const void *row)
{
    for (size_t c = 0; c < o->columns; c++) {
        const struct prof_report_column *column = &o->stat->columns[c];
        struct prof_report_value value = prof_report_stat_value(&o->data, column, row);
        char number[96];
        fputs("| ", o->out);
        if (value.kind == PROF_VALUE_TEXT) {
            prof_report_markdown_name(o->out, value.text);
        } else if (value.kind == PROF_VALUE_NONE) {
            fputs(absent(column), o->out);
        } else {
            print_number(column, value, number);
            fputs(number, o->out);
        }
        fputc(' ', o->out);
    }
    fputs("|\n", o->out);
    return true;
}

static void markdown_tail(struct output *o)
{
    if (!o->rows) {
        fputc('\n', o->out);
        print_nothing(o);
    }
    if (o->more)
        print_more(o, "\n");
    print_shares(o);
    print_missing_stack(o);
}

static void markdown_open(struct output *o)
{
    char line[600];
    prof_report_filter_words(o->data.capture, o->data.filter, line, sizeof line);
    if (!line[0])
        return;
    fputs("Only ", o->out);
    prof_report_markdown_prose(o->out, line);
    fputs("\n\n", o->out);
}

static void markdown_close(struct output *o)
{
    if (!o->data.trust.complete)
        fputs("\n**The capture is not known to be complete.**\n", o->out);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static const struct format formats[] = {
    [PROF_REPORT_TEXT] = {true, text_open, text_head, text_row, text_tail, text_close},
    [PROF_REPORT_JSON] = {false, json_open, json_head, json_row, json_tail, json_close},
    [PROF_REPORT_CSV] = {false, print_no_header, csv_head, csv_row, print_no_header,
                         print_no_header},
    [PROF_REPORT_MARKDOWN] = {true, markdown_open, markdown_head, markdown_row, markdown_tail,
                              markdown_close},
};

static bool write_walked_row(void *user, const void *row)
{
    struct output *o = user;
    size_t top = o->options ? o->options->top : 0;
    if (top && o->rows == top)
        return ++o->more < MOST_COUNTED && o->format->brief;
    if (!o->format->row(o, row)) {
        o->no_memory = true;
        return false;
    }
    if (++o->rows % PROGRESS_ROWS == 0 && o->options && o->options->progress)
        o->options->progress(o->options->progress_context, (int64_t)o->rows, 0);
    return !ferror(o->out);
}

static enum prof_status write_table(struct output *o, const struct prof_report_stat *stat,
                                    struct prof_error *err)
{
    struct prof_report_stat_walk walk = {.capture = o->data.capture,
                                         .filter = o->data.filter,
                                         .row = write_walked_row,
                                         .user = o,
                                         .brief = o->format->brief,
                                         .listed_ns = PROF_UNKNOWN,
                                         .wall_ns = PROF_UNKNOWN};
    o->stat = stat;
    o->walk = &walk;
    o->columns = column_count(stat);
    o->rows = 0;
    o->more = 0;
    o->printing = false;
    o->format->head(o);
    enum prof_status status = stat->walk(&walk, err);
    if (!status && o->no_memory)
        status = prof_fail(err, PROF_NOMEM, "cannot write the report: out of memory");
    if (!status)
        o->format->tail(o);
    o->tables++;
    return status;
}

enum prof_status prof_report_write_stats(struct prof_capture *capture,
                                         const struct prof_report_options *options,
                                         const char *names, enum prof_report_format format,
                                         FILE *out, struct prof_error *err)
{
    struct output o = {.out = out,
                       .options = options,
                       .format = &formats[format],
                       .several = strchr(names, ',') != NULL,
                       .data = {.capture = capture,
                                .filter = options ? options->filter : NULL,
                                .info = prof_info(capture)}};
    size_t length;
    const char *name;
    enum prof_status status = prof_report_stats_check(names, err);
    if (!status)
        status = prof_trust(capture, &o.data.trust, err);
    if (status)
        return status;
    o.format->open(&o);
    while (!status && (name = prof_report_stat_next(&names, &length)))
        status = write_table(&o, prof_report_stat_find(name, length), err);
    o.format->close(&o);
    if (format == PROF_REPORT_JSON) {
        enum prof_status ended = prof_json_finish(&o.json, status ? NULL : err);
        status = status ? status : ended;
    } else if (!status) {
        status = prof_report_flush(out, err);
    }
    prof_trust_free(&o.data.trust);
    return status;
}
