/* The table of statistics, made of the list in stats_columns.h; --stats list; and writing those
 * that were named, one after the other. Then the texts that rows of several of them have in common.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/writers.h"
#include "report/stats_columns.h"

#define NSYS_TABLE(name_, function, title_, help_, needs_)                                         \
    {.name = #name_,                                                                               \
     .title = title_,                                                                              \
     .help = help_,                                                                                \
     .columns = prof_stat_##function##_columns,                                                    \
     .walk = prof_stat_##function,                                                                 \
     .needs = needs_,                                                                              \
     .nsys = true},
#define STAT(name, function, title, help) NSYS_TABLE(name, function, title, help, NULL)
#define STAT_BY(name, function, title, help, needs)                                                \
    NSYS_TABLE(name, function, title, help " (run " needs ")", needs)

const struct prof_report_table prof_report_stats[] = {PROF_STATS(STAT, STAT_BY){0}};

const struct prof_report_table *prof_report_stat_find(const char *name, size_t length)
{
    for (const struct prof_report_table *stat = prof_report_stats; stat->name; stat++) {
        if (strlen(stat->name) == length && !memcmp(stat->name, name, length))
            return stat;
    }
    return NULL;
}

/* The next name of a list with commas and its length; NULL at the end. */
static const char *next_stat_name(const char **list, size_t *length)
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
    while ((name = next_stat_name(&names, &length))) {
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
    for (const struct prof_report_table *stat = prof_report_stats; stat->name; stat++)
        widest = (int)strlen(stat->name) > widest ? (int)strlen(stat->name) : widest;
    for (const struct prof_report_table *stat = prof_report_stats; stat->name; stat++)
        fprintf(out, "%-*s  %s\n", widest, stat->name, stat->help);
}

static void list_markdown(FILE *out)
{
    fputs("| name | what it lists | columns |\n|:--|:--|:--|\n", out);
    for (const struct prof_report_table *stat = prof_report_stats; stat->name; stat++) {
        fprintf(out, "| `%s` | %s | ", stat->name, stat->help);
        for (const struct prof_report_column *column = stat->columns; column->key; column++)
            fprintf(out, "%s%s", column == stat->columns ? "" : ", ", column->title);
        fputs(" |\n", out);
    }
}

static void list_csv(FILE *out)
{
    fputs("name,title,summary\r\n", out);
    for (const struct prof_report_table *stat = prof_report_stats; stat->name; stat++) {
        const char *const texts[] = {stat->name, stat->title, stat->help};
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
    for (const struct prof_report_table *stat = prof_report_stats; stat->name; stat++) {
        prof_json_object(&json, NULL);
        prof_json_string(&json, "name", stat->name);
        prof_json_string(&json, "title", stat->title);
        prof_json_string(&json, "summary", stat->help);
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

/* ---- writing --------------------------------------------------------------------------------- */

static void begin_stats(struct prof_report_output *o)
{
    char only[600];
    if (o->format == PROF_REPORT_JSON) {
        prof_json_to_file(o->json, o->page.out, 2);
        prof_json_object(o->json, NULL);
        prof_json_int(o->json, "perfkit_stats", 1);
        prof_report_json_capture(o->json, o->data);
        prof_report_json_filter(o->json, o->data->filter);
        prof_report_json_trust(o->json, o->data);
        prof_json_array(o->json, "stats");
        return;
    }
    prof_report_filter_words(o->data->capture, o->data->filter, only, sizeof only);
    if (o->format == PROF_REPORT_CSV || !only[0])
        return;
    fputs("Only ", o->page.out);
    if (o->format == PROF_REPORT_MARKDOWN)
        prof_report_markdown_prose(o->page.out, only);
    else
        fputs(only, o->page.out);
    fputs("\n\n", o->page.out);
}

static enum prof_status end_stats(struct prof_report_output *o, enum prof_status status,
                                  struct prof_error *err)
{
    bool incomplete = !o->data->trust.complete;
    if (o->format == PROF_REPORT_JSON) {
        prof_json_end(o->json);
        prof_json_end(o->json);
        enum prof_status ended = prof_json_finish(o->json, status ? NULL : err);
        return status ? status : ended;
    }
    if (incomplete && o->format == PROF_REPORT_TEXT)
        fputs("\n The capture is not known to be complete: `perfkit report` says why.\n",
              o->page.out);
    if (incomplete && o->format == PROF_REPORT_MARKDOWN)
        fputs("\n**The capture is not known to be complete.**\n", o->page.out);
    return status ? status : prof_report_flush(o->page.out, err);
}

enum prof_status prof_report_write_stats(struct prof_capture *capture,
                                         const struct prof_report_options *options,
                                         const char *names, enum prof_report_format format,
                                         FILE *out, struct prof_error *err)
{
    struct prof_report_data data = {
        .capture = capture, .filter = options ? options->filter : NULL, .info = prof_info(capture)};
    struct prof_json json;
    struct prof_report_output o = {.format = format,
                                   .page = prof_report_page(options, out),
                                   .data = &data,
                                   .json = &json,
                                   .several = strchr(names, ',') != NULL,
                                   .progress = options ? options->progress : NULL,
                                   .progress_context = options ? options->progress_context : NULL};
    size_t length;
    const char *name;
    enum prof_status status = prof_report_stats_check(names, err);
    status = status ?: prof_trust(capture, &data.trust, err);
    if (status)
        return status;
    begin_stats(&o);
    while (!status && (name = next_stat_name(&names, &length)))
        status = prof_report_put_table(&o, prof_report_stat_find(name, length), err);
    status = end_stats(&o, status, err);
    prof_trust_free(&data.trust);
    return status;
}

/* ---- texts ----------------------------------------------------------------------------------- */

const char *prof_stat_print(struct prof_stat_text *text, const char *format, ...)
{
    va_list first, again;
    va_start(first, format);
    va_copy(again, first);
    int length = vsnprintf(text->text, text->room, format, first);
    va_end(first);
    if (length >= 0 && (size_t)length >= text->room) {
        size_t room = (size_t)length + 1;
        char *grown = realloc(text->text, room + room / 2);
        if (grown) {
            text->text = grown;
            text->room = room + room / 2;
            vsnprintf(text->text, text->room, format, again);
        } else {
            length = -1;
        }
    }
    va_end(again);
    return length < 0 ? NULL : text->text;
}

bool prof_stat_range_name(struct prof_stat_text *text, const char *domain, const char *name,
                          const char **out)
{
    *out = name ? prof_stat_print(text, "%s:%s", domain ? domain : "", name) : NULL;
    return !name || *out;
}

const char *prof_stat_style(enum prof_range_style style)
{
    return style == PROF_RANGE_PUSH_POP ? "PushPop" : "StartEnd";
}

/* In the order of transfer.kind. */
#define OPERATIONS(api)                                                                            \
    {                                                                                              \
        "[" api " memcpy Unknown]", "[" api " memcpy Host-to-Device]",                             \
            "[" api " memcpy Device-to-Host]", "[" api " memcpy Host-to-Array]",                   \
            "[" api " memcpy Array-to-Host]", "[" api " memcpy Array-to-Array]",                   \
            "[" api " memcpy Array-to-Device]", "[" api " memcpy Device-to-Array]",                \
            "[" api " memcpy Device-to-Device]", "[" api " memcpy Host-to-Host]",                  \
            "[" api " memcpy Peer-to-Peer]", "[" api " map]", "[" api " unmap]",                   \
            "[" api " migrate]", "[" api " memset]",                                               \
    }
enum { COPY_KINDS = 14, MEMSET = COPY_KINDS };

const char *prof_stat_operation(const char *api, int kind)
{
    static const char *const cuda[] = OPERATIONS("CUDA"), *const opencl[] = OPERATIONS("OpenCL"),
                             *const other[] = OPERATIONS("GPU");
    const char *const *names = api && !strcmp(api, "cuda")     ? cuda
                               : api && !strcmp(api, "opencl") ? opencl
                                                               : other;
    if (kind == PROF_COPY_MEMSET)
        return names[MEMSET];
    return names[kind > 0 && kind < COPY_KINDS ? kind : 0];
}

const char *prof_stat_xyz(const int64_t xyz[3], char *out, size_t size)
{
    for (int i = 0; i < 3; i++) {
        if (xyz[i] == PROF_UNKNOWN)
            return NULL;
    }
    snprintf(out, size, "%4lld %4lld %4lld", (long long)xyz[0], (long long)xyz[1],
             (long long)xyz[2]);
    return out;
}
