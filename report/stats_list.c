/* Which statistics there are: `--stats list` in every format, and whether a list of names is good.
 */
#include <string.h>

#include "report/stats.h"
#include "report/writers.h"

const char *prof_report_stat_next(const char **list, size_t *length)
{
    const char *name = *list;
    *length = strcspn(name, ",");
    *list += *length + (name[*length] == ',');
    return *name ? name : NULL;
}

enum prof_status prof_report_stats_check(const char *names, struct prof_error *err)
{
    size_t length;
    const char *name;
    if (!*names)
        return prof_fail(err, PROF_NOTFOUND, "no statistic was named");
    while ((name = prof_report_stat_next(&names, &length))) {
        if (!prof_report_stat_find(name, length))
            return prof_fail(err, PROF_NOTFOUND, "there is no statistic '%.*s'",
                             (int)(length < 80 ? length : 80), name);
    }
    return PROF_OK;
}

const char *prof_report_stats_name(size_t i)
{
    for (size_t k = 0; prof_report_stats[k].name; k++) {
        if (k == i)
            return prof_report_stats[k].name;
    }
    return NULL;
}

static void list_stats_text(FILE *out)
{
    int widest = 0;
    for (const struct prof_report_stat *stat = prof_report_stats; stat->name; stat++)
        widest = (int)strlen(stat->name) > widest ? (int)strlen(stat->name) : widest;
    for (const struct prof_report_stat *stat = prof_report_stats; stat->name; stat++)
        fprintf(out, "%-*s  %s\n", widest, stat->name, stat->summary);
}

static void list_markdown(FILE *out)
{
    fputs("| name | what it lists | columns |\n|:--|:--|:--|\n", out);
    for (const struct prof_report_stat *stat = prof_report_stats; stat->name; stat++) {
        fprintf(out, "| `%s` | %s | ", stat->name, stat->summary);
        for (const struct prof_report_column *column = stat->columns; column->key; column++)
            fprintf(out, "%s%s", column == stat->columns ? "" : ", ", column->title);
        fputs(" |\n", out);
    }
}

static void list_csv(FILE *out)
{
    fputs("name,title,summary\r\n", out);
    for (const struct prof_report_stat *stat = prof_report_stats; stat->name; stat++) {
        const char *const texts[] = {stat->name, stat->title, stat->summary};
        for (int i = 0; i < 3; i++) {
            fputs(i ? "," : "", out);
            prof_report_csv_value(
                out, (struct prof_report_value){.kind = PROF_VALUE_TEXT, .text = texts[i]});
        }
        fputs("\r\n", out);
    }
}

static enum prof_status list_json(FILE *out, struct prof_error *err)
{
    struct prof_json json;
    prof_json_to_file(&json, out, 2);
    prof_json_array(&json, NULL);
    for (const struct prof_report_stat *stat = prof_report_stats; stat->name; stat++) {
        prof_json_object(&json, NULL);
        prof_json_string(&json, "name", stat->name);
        prof_json_string(&json, "title", stat->title);
        prof_json_string(&json, "summary", stat->summary);
        prof_json_array(&json, "columns");
        for (const struct prof_report_column *column = stat->columns; column->key; column++)
            prof_json_string(&json, NULL, column->key);
        prof_json_end(&json);
        prof_json_end(&json);
    }
    prof_json_end(&json);
    return prof_json_finish(&json, err);
}

enum prof_status prof_report_list_stats(enum prof_report_format format, FILE *out,
                                        struct prof_error *err)
{
    if (format == PROF_REPORT_JSON)
        return list_json(out, err);
    if (format == PROF_REPORT_CSV)
        list_csv(out);
    else if (format == PROF_REPORT_MARKDOWN)
        list_markdown(out);
    else
        list_stats_text(out);
    return prof_report_flush(out, err);
}
