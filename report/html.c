/* One page that needs nothing else: markup, style, scripts and data in a single file. The page is a
 * template with the marks @STYLE@, @DATA@, @EVENTS@ and @SCRIPT@, each alone on its line, and those of
 * the panels that are written as markup (html_panels.h). Events are packed bytes as base64
 * (html_pack.h).
 *
 * The data is JSON inside a script element of a type that browsers do not run. Only one character
 * could end that element: '<', which stands nowhere in JSON but in strings, so it is written as an
 * escape of JSON there. The page's own script puts texts into the document as text, never as
 * markup. */
#include <string.h>

#include "report/html.h"
#include "report/html_panels.h"
#include "report/memory.h"
#include "report/writers.h"

static void put_data(FILE *out, const char *json, size_t length)
{
    for (size_t i = 0; i < length;) {
        const char *less = memchr(json + i, '<', length - i);
        size_t plain = less ? (size_t)(less - (json + i)) : length - i;
        fwrite(json + i, 1, plain, out);
        i += plain;
        if (less) {
            fputs("\\u003c", out);
            i++;
        }
    }
}

static void put_files(FILE *out, const char *ending)
{
    for (const struct prof_html_file *file = prof_html_files; file->name; file++) {
        const char *dot = strrchr(file->name, '.');
        if (dot && !strcmp(dot, ending))
            fwrite(file->bytes, 1, file->length, out);
    }
}

/* Returns the mark's length; 0: it is none. */
static size_t put_panel(FILE *out, const char *mark, const struct prof_html_page *panels)
{
    for (const struct prof_html_panel *panel = prof_html_panels; panel->mark; panel++) {
        size_t length = strlen(panel->mark);
        if (strncmp(mark, panel->mark, length) != 0)
            continue;
        panel->put(out, panels);
        return length;
    }
    return 0;
}

static enum prof_status put_page(FILE *out, const struct prof_json *json,
                                 const struct prof_html_pack *events,
                                 const struct prof_html_page *panels, struct prof_error *err)
{
    const char *page = (const char *)prof_html_files[0].bytes;
    enum prof_status status = PROF_OK;
    while (*page && !status) {
        const char *mark = strchr(page, '@');
        size_t plain = mark ? (size_t)(mark - page) : strlen(page);
        fwrite(page, 1, plain, out);
        page += plain;
        if (!mark)
            break;
        size_t panel = put_panel(out, mark, panels);
        page += panel;
        if (panel)
            continue;
        if (!strncmp(mark, "@STYLE@", 7)) {
            put_files(out, ".css");
            page += 7;
        } else if (!strncmp(mark, "@DATA@", 6)) {
            put_data(out, json->data, json->count);
            page += 6;
        } else if (!strncmp(mark, "@EVENTS@", 8)) {
            status = prof_html_pack_write(events, out, err);
            page += 8;
        } else if (!strncmp(mark, "@SCRIPT@", 8)) {
            put_files(out, ".js");
            page += 8;
        } else {
            fputc(*page++, out);
        }
    }
    return status;
}

static enum prof_status put_all(struct prof_json *json, struct prof_html_pack *events,
                                const struct prof_html_page *panels,
                                const struct prof_report_options *options, struct prof_error *err)
{
    const struct prof_report_data *data = panels->data;
    prof_json_object(json, NULL);
    prof_html_put_summary(json, panels);
    prof_html_put_memory(json, panels);
    enum prof_status status = prof_html_put_flame(json, panels, err);
    if (!status)
        status = prof_html_put_timeline(json, events, data, options, err);
    prof_json_end(json);
    return status;
}

enum prof_status prof_report_write_html(struct prof_capture *capture,
                                        const struct prof_report_options *options, FILE *out,
                                        struct prof_error *err)
{
    struct prof_report_data data;
    struct prof_html_pack events = {0};
    struct prof_html_page panels = {0};
    struct prof_json json;
    prof_json_to_memory(&json, 0);
    enum prof_status status = prof_report_load(capture, options, &data, err);
    if (!status)
        status = prof_report_load_memory(&data, err);
    if (!status)
        status = prof_html_load(&data, options, &panels, err);
    if (!status)
        status = put_all(&json, &events, &panels, options, err);
    if (!status)
        status = prof_json_finish(&json, err);
    if (!status)
        status = put_page(out, &json, &events, &panels, err);
    if (!status)
        status = prof_report_flush(out, err);
    prof_html_pack_free(&events);
    prof_json_free(&json);
    prof_html_unload(&panels);
    prof_report_unload(&data);
    return status;
}
