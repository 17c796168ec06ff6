/* What a reader without scripts gets: every table as markup, cut to a screenful each, and the trust
 * block. It stands in a noscript element, so that it costs a page with scripts nothing. */
#include <stdio.h>

#include "report/html_markup.h"
#include "report/html_panels.h"
#include "report/writers.h"

#define ROWS 25

static void put_plain_header(FILE *out, const struct prof_report_table *table)
{
    fputs("<thead><tr>", out);
    for (const struct prof_report_column *column = table->columns; column->key; column++) {
        if (column->rank)
            prof_html_element(out, "th",
                              prof_report_is_left(column) ? "scope=\"col\" class=\"left plain\""
                                                          : "scope=\"col\" class=\"plain\"",
                              column->title);
    }
    fputs("</tr></thead>\n", out);
}

static void put_plain_row(FILE *out, const struct prof_report_data *data,
                          const struct prof_report_table *table, const char *row)
{
    fputs("<tr>", out);
    for (const struct prof_report_column *column = table->columns; column->key; column++) {
        if (!column->rank)
            continue;
        struct prof_report_value value = prof_report_value(data, column, row);
        if (!prof_report_is_left(column))
            prof_html_element(out, "td", NULL, prof_report_number(column->unit, value).text);
        else
            prof_html_element(out, "td",
                              column->unit == PROF_UNIT_NAME ? "class=\"left name\""
                                                             : "class=\"left\"",
                              value.kind == PROF_VALUE_TEXT ? value.text : NULL);
    }
    fputs("</tr>\n", out);
}

static void put_plain_table(FILE *out, const struct prof_report_data *data,
                            const struct prof_html_table *t)
{
    size_t shown = t->count < ROWS ? t->count : ROWS;
    prof_html_element(out, "h3", NULL, t->table->title);
    if (!t->count) {
        prof_html_element(out, "p", "class=\"none\"", prof_report_none(data, t->table));
        return;
    }
    fputs("\n<p class=\"faint\">", out);
    if (t->totals[0]) {
        prof_html_text(out, t->totals);
        fputs(". ", out);
    }
    prof_html_text(out, t->table->help);
    fputs("</p>\n<div class=\"scroll\"><table>", out);
    put_plain_header(out, t->table);
    fputs("<tbody>\n", out);
    for (size_t i = 0; i < shown; i++)
        put_plain_row(out, data, t->table, (const char *)t->rows + i * t->table->row_bytes);
    fputs("</tbody></table></div>\n", out);
    if ((int64_t)shown < t->total_rows)
        fprintf(out, "<p class=\"faint\">%s of %s rows</p>\n", prof_count((int64_t)shown).text,
                prof_count(t->total_rows).text);
}

static void put_trust(FILE *out, const struct prof_trust *trust)
{
    static const char *const levels[] = {[PROF_TRUST_NOTE] = "Note",
                                         [PROF_TRUST_WARNING] = "Warning",
                                         [PROF_TRUST_RISK] = "Risk",
                                         [PROF_TRUST_LOSS] = "Loss"};
    fprintf(out, "<h3>Trust</h3>\n<p>This capture: <b>%s</b>.</p>\n<ul>\n",
            prof_trust_status_words(trust->status));
    for (size_t i = 0; i < trust->statement_count; i++) {
        fprintf(out, "<li>%s: ", levels[trust->statements[i].level]);
        prof_html_text(out, trust->statements[i].text);
        fputs("</li>\n", out);
    }
    fputs("</ul>\n", out);
}

void prof_html_put_plain(FILE *out, const struct prof_html_page *page)
{
    const struct prof_info *info = page->data->info;
    struct prof_html_table table;
    char ending[96];
    prof_report_ending(info, ending, sizeof ending);
    fputs("<p>Command <code>", out);
    prof_html_text(out, info->command);
    fputs("</code>, ", out);
    prof_html_text(out, ending);
    fprintf(out, ", %s.</p>\n", prof_duration_ns(page->data->wall_ns).text);
    put_trust(out, &page->data->trust);
    for (size_t i = 0; prof_html_table(page, i, &table); i++)
        put_plain_table(out, page->data, &table);
}
