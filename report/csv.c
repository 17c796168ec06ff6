/* The summary tables for spreadsheets, by RFC 4180. A capture has several tables with different
 * columns, so the file has one block for each: a line of headings, then the rows, then an empty
 * line. The first field of every line names its table, so that grep takes one block out.
 * Control characters of names, and bytes that are not UTF-8, are escaped as in text: who looks at a
 * file in a terminal must not have it obey what a name says. */
#include <stdlib.h>
#include <string.h>

#include "report/table.h"
#include "libprof/base/utf8.h"
#include "report/writers.h"

/* Quotes only where needed. */
static void put_csv_field(FILE *out, const char *text)
{
    char *clean = *text ? prof_report_clean(text) : NULL; /* not "(empty)" */
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
    free(clean);
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
    }
    fputs(number, out);
}

void prof_report_csv_table(FILE *out, const struct prof_report_data *data,
                           const struct prof_report_table *table, size_t top)
{
    size_t count = 0;
    const char *rows = table->rows(data, &count);
    if (!count && table->optional)
        return;
    fputs("table", out);
    for (const struct prof_report_column *column = table->columns; column->key; column++)
        fprintf(out, ",%s", column->key);
    fputs("\r\n", out);
    for (size_t i = 0; i < prof_report_limit(count, top, 0); i++) {
        fputs(table->name, out);
        for (const struct prof_report_column *column = table->columns; column->key; column++) {
            fputc(',', out);
            prof_report_csv_value(out,
                                  prof_report_value(data, column, rows + i * table->row_bytes));
        }
        fputs("\r\n", out);
    }
    fputs("\r\n", out);
}

/* The verdict of the trust block has its table too: a spreadsheet must not hide it. */
void prof_report_csv_trust(FILE *out, const struct prof_trust *trust)
{
    static const char *const levels[] = {[PROF_TRUST_NOTE] = "note",
                                         [PROF_TRUST_WARNING] = "warning",
                                         [PROF_TRUST_RISK] = "risk",
                                         [PROF_TRUST_LOSS] = "loss"};
    fprintf(out, "table,level,text\r\ntrust,%s,\r\n", prof_trust_status_name(trust->status));
    for (size_t i = 0; i < trust->statement_count; i++) {
        fprintf(out, "trust,%s,", levels[trust->statements[i].level]);
        put_csv_field(out, trust->statements[i].text ? trust->statements[i].text : "");
        fputs("\r\n", out);
    }
}

enum prof_status prof_report_write_csv(struct prof_capture *capture,
                                       const struct prof_report_options *options, FILE *out,
                                       struct prof_error *err)
{
    struct prof_report_data data;
    enum prof_status status = prof_report_load(capture, options, &data, err);
    if (!status) {
        for (const struct prof_report_table *const *table = prof_report_tables; *table; table++)
            prof_report_csv_table(out, &data, *table, options ? options->top : 0);
        prof_report_csv_trust(out, &data.trust);
        status = prof_report_flush(out, err);
    }
    prof_report_unload(&data);
    return status;
}
