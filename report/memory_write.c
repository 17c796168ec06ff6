/* `perfkit report --memory` in all formats: the same tables, each with the words of its format. */
#include <stdio.h>
#include <stdlib.h>

#include "report/filter.h"
#include "report/memory.h"
#include "report/text.h"
#include "report/writers.h"
#include "libprof/base/utf8.h"

#define SHAPE 1

struct writing {
    const struct prof_report_data *data;
    const struct prof_report_options *options;
    FILE *out;
    size_t top;
};

static enum prof_status write_memory_text(const struct writing *w, struct prof_error *err)
{
    struct prof_report_page page = {
        .out = w->out,
        .width = !w->options || !w->options->width ? 100
                 : w->options->width < 60          ? 60
                                                   : w->options->width,
        .colour = w->options && w->options->colour,
        .top = w->top,
        .all = true,
    };
    char notes[PROF_REPORT_MEMORY_NOTES][PROF_REPORT_MEMORY_NOTE_BYTES], only[600];
    size_t count = prof_report_memory_notes(w->data, notes);
    char *command = prof_report_cut(w->data->info->command, 2 * (page.width - 11));
    prof_report_wrap(&page, 11, "Command", command ? command : "");
    free(command);
    prof_report_filter_words(w->data->capture, w->data->filter, only, sizeof only);
    if (only[0])
        prof_report_wrap(&page, 11, "Only", only);
    if (!w->data->trust.complete)
        prof_report_wrap(
            &page, 11, "Trust",
            w->data->trust.status == PROF_TRUST_AT_RISK
                ? "AT RISK: `perfkit report` says what may be missing"
                : "INCOMPLETE: `perfkit report` says what was lost; figures may be too low");
    for (size_t i = 0; i < count; i++)
        prof_report_wrap(&page, 11, i ? "" : "Notes", notes[i]);
    enum prof_status status = PROF_OK;
    for (const struct prof_report_table *const *table = prof_report_memory_tables;
         *table && !status; table++) {
        if (w->data->usage->profile.why_none || !prof_report_worth(w->data, *table))
            continue;
        fputc('\n', w->out);
        status = prof_report_text_table(&page, w->data, *table, 0, err);
    }
    return status;
}

static void write_memory_csv(const struct writing *w)
{
    for (const struct prof_report_table *const *table = prof_report_memory_tables; *table; table++)
        prof_report_csv_table(w->out, w->data, *table, w->top);
    prof_report_csv_trust(w->out, &w->data->trust);
}

static enum prof_status write_memory_json(const struct writing *w, struct prof_error *err)
{
    const struct prof_memory_profile *profile = &w->data->usage->profile;
    struct prof_json json;
    prof_json_to_file(&json, w->out, 2);
    prof_json_object(&json, NULL);
    prof_json_int(&json, "perfkit_memory", SHAPE);
    prof_report_json_capture(&json, w->data);
    prof_report_json_filter(&json, w->data->filter);
    prof_report_json_trust(&json, w->data);
    prof_json_object(&json, "steps");
    prof_json_known(&json, "count", profile->steps);
    prof_json_string(&json, "name", profile->step_name);
    prof_json_end(&json);
    prof_json_string(&json, "why_none", profile->why_none);
    prof_json_known(&json, "failed", profile->failed);
    for (const struct prof_report_table *const *table = prof_report_memory_tables; *table; table++)
        prof_report_json_table(&json, w->data, *table, w->top);
    prof_json_end(&json);
    return prof_json_finish(&json, err);
}

static void write_memory_markdown(const struct writing *w)
{
    char notes[PROF_REPORT_MEMORY_NOTES][PROF_REPORT_MEMORY_NOTE_BYTES], only[600];
    size_t count = prof_report_memory_notes(w->data, notes);
    fputs("# Memory of ", w->out);
    prof_report_markdown_prose(w->out, w->data->info->command);
    const char *bold = w->data->trust.complete ? "" : "**";
    fprintf(w->out, "\n\ncapture: %s%s%s\n", bold, prof_trust_status_words(w->data->trust.status),
            bold);
    prof_report_filter_words(w->data->capture, w->data->filter, only, sizeof only);
    if (only[0]) {
        fputs("\nOnly ", w->out);
        prof_report_markdown_prose(w->out, only);
        fputc('\n', w->out);
    }
    for (size_t i = 0; i < count; i++) {
        fputs(i ? "- " : "\n- ", w->out);
        prof_report_markdown_prose(w->out, notes[i]);
        fputc('\n', w->out);
    }
    for (const struct prof_report_table *const *table = prof_report_memory_tables; *table;
         table++) {
        if (!w->data->usage->profile.why_none && prof_report_worth(w->data, *table))
            prof_report_markdown_table(w->out, w->data, *table, w->top);
    }
}

static enum prof_status load_memory_data(struct prof_capture *capture,
                                         const struct prof_report_options *options,
                                         struct prof_report_data *data, struct prof_error *err)
{
    *data = (struct prof_report_data){
        .capture = capture, .filter = options ? options->filter : NULL, .info = prof_info(capture)};
    enum prof_status status = prof_trust(capture, &data->trust, err);
    if (!status)
        status = prof_pool_summary(capture, data->filter, &data->pools, err);
    return status ? status : prof_report_load_memory(data, err);
}

enum prof_status prof_report_write_memory(struct prof_capture *capture,
                                          const struct prof_report_options *options,
                                          enum prof_report_format format, FILE *out,
                                          struct prof_error *err)
{
    struct prof_report_data data;
    struct writing w = {&data, options, out, options ? options->top : 0};
    enum prof_status status = load_memory_data(capture, options, &data, err);
    if (!status && format == PROF_REPORT_TEXT)
        status = write_memory_text(&w, err);
    else if (!status && format == PROF_REPORT_JSON)
        status = write_memory_json(&w, err);
    else if (!status && format == PROF_REPORT_CSV)
        write_memory_csv(&w);
    else if (!status)
        write_memory_markdown(&w);
    if (!status)
        status = prof_report_flush(out, err);
    prof_report_unload(&data);
    return status;
}
