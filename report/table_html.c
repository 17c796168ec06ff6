/* Tables of the HTML page: as data, which its script sorts and formats by unit without knowing any
 * of them, and as markup for a reader without scripts. */
#include "report/html.h"
#include "report/writers.h"

#define MARKUP_ROWS 25

static void copy_totals(const struct prof_report_output *o, char *line, size_t size)
{
    line[0] = 0;
    if (o->totals)
        snprintf(line, size, "%s", o->totals);
    else if (o->table->totals && o->total)
        o->table->totals(o->data, line, size);
}

/* ---- data ------------------------------------------------------------------------------------ */

static void put_page_columns(struct prof_json *json, const struct prof_report_table *table)
{
    static const char *const units[] = {
        [PROF_UNIT_NAME] = "name",     [PROF_UNIT_WORD] = "word",   [PROF_UNIT_NUMBER] = "number",
        [PROF_UNIT_COUNT] = "count",   [PROF_UNIT_NS] = "ns",       [PROF_UNIT_MOMENT] = "moment",
        [PROF_UNIT_BYTES] = "bytes",   [PROF_UNIT_RATE] = "rate",   [PROF_UNIT_SHARE] = "share",
        [PROF_UNIT_FLOPS] = "flops",   [PROF_UNIT_RATIO] = "ratio", [PROF_UNIT_PROSE] = "name",
        [PROF_UNIT_JOULES] = "joules", [PROF_UNIT_CHANGE] = "ns",   [PROF_UNIT_DATE] = "date",
    };
    prof_json_array(json, "columns");
    for (const struct prof_report_column *column = table->columns; column->key; column++) {
        prof_json_object(json, NULL);
        prof_json_string(json, "key", column->key);
        prof_json_string(json, "title", column->title);
        prof_json_string(json, "unit", units[column->unit]);
        prof_json_bool(json, "shown", column->rank != 0);
        if (prof_report_hides_zero(column))
            prof_json_bool(json, "hides_zero", true);
        if (column->bar)
            prof_json_bool(json, "bar", true);
        prof_json_end(json);
    }
    prof_json_end(json);
}

void prof_report_page_head(struct prof_report_output *o)
{
    static const char *const parts[] = {
        [PROF_PART_HOST] = "part-host",           [PROF_PART_RANKS] = "part-ranks",
        [PROF_PART_KERNELS] = "part-kernels",     [PROF_PART_ROOFLINE] = "part-roofline",
        [PROF_PART_TRANSFERS] = "part-transfers", [PROF_PART_MEMORY] = "part-memory",
        [PROF_PART_DEVICES] = "part-devices",     [PROF_PART_MACHINE] = "machine",
    };
    const struct prof_report_table *table = o->table;
    struct prof_json *json = o->json;
    char totals[256];
    copy_totals(o, totals, sizeof totals);
    prof_json_object(json, o->key);
    prof_json_string(json, "name", table->name);
    prof_json_string(json, "part", table->part == PROF_PART_NONE ? NULL : parts[table->part]);
    prof_json_int(json, "order", table->part_order);
    prof_json_bool(json, "unfolds", table->unfolds);
    prof_json_string(json, "title", table->title);
    prof_json_string(json, "none", prof_report_none(o->data, table));
    prof_json_string(json, "help", table->help);
    prof_json_string(json, "totals", totals);
    put_page_columns(json, table);
    prof_json_uint(json, "total_rows", o->total);
    prof_json_array(json, "rows");
}

bool prof_report_page_row(struct prof_report_output *o, const void *row)
{
    prof_json_array(o->json, NULL);
    for (const struct prof_report_column *column = o->table->columns; column->key; column++)
        prof_report_json_value(o->json, NULL, prof_report_value(o->data, column, row));
    prof_json_end(o->json);
    return true;
}

void prof_report_page_tail(struct prof_report_output *o)
{
    prof_json_end(o->json);
    prof_json_end(o->json);
}

/* ---- markup ---------------------------------------------------------------------------------- */

static void put_markup_headings(FILE *out, const struct prof_report_table *table)
{
    fputs("<thead><tr>", out);
    for (const struct prof_report_column *column = table->columns; column->key; column++) {
        if (column->rank)
            prof_html_print(out, "<th scope=\"col\" class=\"%s\">%s</th>",
                            prof_report_is_left(column) ? "left plain" : "plain", column->title);
    }
    fputs("</tr></thead>\n", out);
}

void prof_report_markup_head(struct prof_report_output *o)
{
    FILE *out = o->page.out;
    char totals[256];
    prof_html_print(out, "<h3>%s</h3>", o->table->title);
    if (!o->total) {
        prof_html_print(out, "<p class=\"none\">%s</p>", prof_report_none(o->data, o->table));
        return;
    }
    copy_totals(o, totals, sizeof totals);
    prof_html_print(out, totals[0] ? "\n<p class=\"faint\">%s. " : "\n<p class=\"faint\">", totals);
    prof_html_print(out, "%s</p>\n<div class=\"scroll\"><table>", o->table->help);
    put_markup_headings(out, o->table);
    fputs("<tbody>\n", out);
}

bool prof_report_markup_row(struct prof_report_output *o, const void *row)
{
    FILE *out = o->page.out;
    if (o->rows >= MARKUP_ROWS)
        return true;
    fputs("<tr>", out);
    for (const struct prof_report_column *column = o->table->columns; column->key; column++) {
        if (!column->rank)
            continue;
        struct prof_report_value value = prof_report_value(o->data, column, row);
        if (!prof_report_is_left(column))
            prof_html_print(out, "<td>%s</td>", prof_report_number(column->unit, value).text);
        else
            prof_html_print(out, "<td class=\"%s\">%s</td>",
                            column->unit == PROF_UNIT_NAME ? "left name" : "left",
                            value.kind == PROF_VALUE_TEXT ? value.text : NULL);
    }
    fputs("</tr>\n", out);
    return true;
}

void prof_report_markup_tail(struct prof_report_output *o)
{
    size_t shown = o->rows < MARKUP_ROWS ? o->rows : MARKUP_ROWS;
    if (!o->total)
        return;
    fputs("</tbody></table></div>\n", o->page.out);
    if (shown < o->total)
        fprintf(o->page.out, "<p class=\"faint\">%s of %s rows</p>\n",
                prof_count((int64_t)shown).text, prof_count((int64_t)o->total).text);
}
