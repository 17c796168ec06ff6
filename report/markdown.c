/* The summary tables as GitHub-flavoured Markdown, to paste into an issue. Names of the program are
 * escaped so that no name can end a cell, start markup or mention somebody. */
#include <stdlib.h>
#include <string.h>

#include "report/filter.h"
#include "report/findings.h"
#include "report/ranks.h"
#include "report/roofline.h"
#include "report/table.h"
#include "libprof/base/utf8.h"
#include "report/writers.h"

#define NAME_CELLS 80
#define PROSE_CELLS 1000
#define ROWS 10

/* Takes `cut`. */
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

void prof_report_markdown_name(FILE *out, const char *name)
{
    put_markdown_escaped(out, prof_report_fit(name, NAME_CELLS));
}

void prof_report_markdown_prose(FILE *out, const char *text)
{
    put_markdown_escaped(out, prof_report_cut(text, PROSE_CELLS));
}

static void put_headings(FILE *out, const struct prof_report_table *table)
{
    for (const struct prof_report_column *column = table->columns; column->key; column++) {
        if (column->rank)
            fprintf(out, "| %s ", column->title);
    }
    fputs("|\n", out);
    for (const struct prof_report_column *column = table->columns; column->key; column++) {
        if (column->rank)
            fputs(prof_report_is_left(column) ? "| :-- " : "| --: ", out);
    }
    fputs("|\n", out);
}

void prof_report_markdown_table(FILE *out, const struct prof_report_data *data,
                                const struct prof_report_table *table, size_t top)
{
    size_t count = 0;
    const char *rows = table->rows(data, &count);
    fprintf(out, "\n## %s\n\n", table->title);
    if (!count) {
        fprintf(out, "%s\n", prof_report_none(data, table));
        return;
    }
    if (table->totals) {
        char line[256] = "";
        table->totals(data, line, sizeof line);
        fprintf(out, "%s\n\n", line);
    }
    put_headings(out, table);
    size_t shown = prof_report_limit(count, top, ROWS);
    for (size_t i = 0; i < shown; i++) {
        for (const struct prof_report_column *column = table->columns; column->key; column++) {
            if (!column->rank)
                continue;
            struct prof_report_value value =
                prof_report_value(data, column, rows + i * table->row_bytes);
            fputs("| ", out);
            if (value.kind == PROF_VALUE_TEXT)
                prof_report_markdown_name(out, value.text);
            else
                fputs(prof_report_number(column->unit, value).text, out);
            fputc(' ', out);
        }
        fputs("|\n", out);
    }
    if (shown < count)
        fprintf(out, "\n... and %zu more\n", count - shown);
}

/* Sentences as a list; `bytes` from one to the next. */
static void put_markdown_notes(FILE *out, const char *notes, size_t count, size_t bytes)
{
    for (size_t i = 0; i < count; i++) {
        fputs(i ? "- " : "\n- ", out);
        prof_report_markdown_prose(out, notes + i * bytes);
        fputc('\n', out);
    }
}

static void put_roofline_notes(FILE *out, const struct prof_report_data *data)
{
    char notes[PROF_REPORT_NOTES][PROF_REPORT_NOTE_BYTES];
    put_markdown_notes(out, notes[0], prof_report_roofline_notes(data, notes), sizeof notes[0]);
}

void prof_report_markdown_rank_notes(FILE *out, const struct prof_report_data *data)
{
    char notes[PROF_REPORT_RANK_NOTES][PROF_REPORT_RANK_NOTE_BYTES];
    put_markdown_notes(out, notes[0], prof_report_rank_notes(data, notes), sizeof notes[0]);
}

void prof_report_markdown_head(FILE *out, const struct prof_report_data *data)
{
    char ending[96], when[32], only[600];
    prof_report_ending(data->info, ending, sizeof ending);
    prof_report_when(data->info->start_realtime_ns, when, sizeof when);
    fputs("# ", out);
    prof_report_markdown_prose(out, data->info->command);
    fprintf(out, "\n\n%s from %s on ", prof_duration_ns(data->info->duration_ns).text, when);
    prof_report_markdown_prose(out, data->info->host);
    const char *bold = data->trust.complete ? "" : "**";
    fprintf(out, "; %s; capture: %s%s%s\n", ending, bold,
            prof_trust_status_words(data->trust.status), bold);
    prof_report_filter_words(data->capture, data->filter, only, sizeof only);
    if (only[0]) {
        fputs("\nOnly ", out);
        prof_report_markdown_prose(out, only);
        fputc('\n', out);
    }
    for (size_t i = 0; i < data->trust.statement_count; i++) {
        const struct prof_statement *statement = &data->trust.statements[i];
        if (statement->level == PROF_TRUST_NOTE)
            continue;
        fputs(i ? "- " : "\n- ", out);
        prof_report_markdown_prose(out, statement->text);
        fputc('\n', out);
    }
}

enum prof_status prof_report_write_markdown(struct prof_capture *capture,
                                            const struct prof_report_options *options, FILE *out,
                                            struct prof_error *err)
{
    struct prof_report_data data;
    enum prof_status status = prof_report_load(capture, options, &data, err);
    if (!status) {
        prof_report_markdown_head(out, &data);
        prof_report_markdown_findings(out, &data,
                                      options ? options->findings : PROF_REPORT_FINDINGS_TOP,
                                      prof_report_markdown_prose);
        for (const struct prof_report_table *const *next = prof_report_tables; *next; next++) {
            const struct prof_report_table *table = *next;
            if (prof_report_worth(&data, table)) {
                prof_report_markdown_table(out, &data, table, options ? options->top : 0);
                if (!strcmp(table->name, "roofline"))
                    put_roofline_notes(out, &data);
                if (!strcmp(table->name, "ranks"))
                    prof_report_markdown_rank_notes(out, &data);
            }
        }
        status = prof_report_flush(out, err);
    }
    prof_report_unload(&data);
    return status;
}
