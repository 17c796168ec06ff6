/* The documents of the summary formats: the report, and those about ranks and about memory alone.
 * Each is a list of tables with what is before and after them. (--stats: stats.c.) */
#include <stdio.h>
#include <stdlib.h>

#include "libprof/base/format.h"
#include "libprof/base/utf8.h"
#include "report/columns.h"
#include "report/data.h"
#include "report/findings.h"
#include "report/writers.h"

/* ---- filter ---------------------------------------------------------------------------------- */

#define NAME_CELLS 80

#define ADD_FILTER(format, ...) prof_append(out, size, "%s" format, *out ? ", " : "", __VA_ARGS__)

static void append_named_filter(char *out, size_t size, const char *before, const char *name,
                                const char *after)
{
    PROF_FREED char *clean = prof_report_cut(name, NAME_CELLS);
    ADD_FILTER("%s%s%s", before, clean ? clean : "", after);
}

static void append_stream_filter(char *out, size_t size, const struct prof_capture *capture,
                                 int64_t id)
{
    const struct prof_stream *stream = prof_stream(capture, id);
    if (stream && stream->native != PROF_UNKNOWN)
        ADD_FILTER("stream %lld", (long long)stream->native);
    else
        ADD_FILTER("%s", "stream n/a");
}

static void append_device_filter(char *out, size_t size, const struct prof_capture *capture,
                                 int64_t id)
{
    const struct prof_device *device = prof_device(capture, id);
    const char *label = prof_report_device_label(device);
    ADD_FILTER("%s", label);
    if (device && device->name)
        append_named_filter(out, size, "", device->name, "");
}

void prof_report_filter_words(const struct prof_capture *capture, const struct prof_filter *filter,
                              char *out, size_t size)
{
    out[0] = 0;
    if (!filter)
        return;
    if (filter->begin_ns || filter->end_ns)
        ADD_FILTER("from %s to %s", prof_duration_ns(filter->begin_ns).text,
                   filter->end_ns ? prof_duration_ns(filter->end_ns).text : "the end");
    if (filter->process) {
        const struct prof_process *process = prof_process(capture, filter->process);
        ADD_FILTER("process %lld", process ? (long long)process->pid : 0);
    }
    if (filter->device)
        append_device_filter(out, size, capture, filter->device);
    if (filter->stream)
        append_stream_filter(out, size, capture, filter->stream);
    for (size_t i = 0; i < filter->stream_count && i < 3; i++)
        append_stream_filter(out, size, capture, filter->streams[i]);
    if (filter->stream_count > 3)
        ADD_FILTER("and %zu more streams", filter->stream_count - 3);
    if (filter->thread) {
        const struct prof_thread *thread = prof_thread(capture, filter->thread);
        ADD_FILTER("thread %lld", thread ? (long long)thread->tid : 0);
    }
    if (filter->kernel)
        append_named_filter(out, size, "kernels with \"", filter->kernel, "\"");
    if (filter->kernel_pattern)
        append_named_filter(out, size, "kernels matching \"", filter->kernel_pattern, "\"");
    if (filter->range)
        append_named_filter(out, size, "inside NVTX range \"", filter->range, "\"");
    if (filter->range_domain)
        append_named_filter(out, size, "of domain \"", filter->range_domain, "\"");
}

static void put_id(struct prof_json *json, const char *key, int64_t id)
{
    prof_json_known(json, key, id ? id : PROF_UNKNOWN);
}

void prof_report_json_filter(struct prof_json *json, const struct prof_filter *filter)
{
    static const struct prof_filter all;
    if (!filter)
        filter = &all;
    prof_json_object(json, "filter");
    prof_json_int(json, "begin_ns", filter->begin_ns);
    put_id(json, "end_ns", filter->end_ns);
    put_id(json, "process", filter->process);
    put_id(json, "device", filter->device);
    put_id(json, "stream", filter->stream);
    put_id(json, "thread", filter->thread);
    prof_json_string(json, "kernel", filter->kernel);
    prof_json_string(json, "kernel_pattern", filter->kernel_pattern);
    prof_json_string(json, "range", filter->range);
    prof_json_string(json, "range_domain", filter->range_domain);
    prof_json_ints(json, "streams", filter->streams, filter->stream_count);
    prof_json_end(json);
}

/* ---- parts of JSON --------------------------------------------------------------------------- */

void prof_report_json_capture(struct prof_json *json, const struct prof_report_data *data)
{
    const struct prof_info *info = data->info;
    char ending[96], when[32];
    prof_report_ending(info, ending, sizeof ending);
    prof_report_when(info->start_realtime_ns, when, sizeof when);
    prof_json_object(json, "capture");
    prof_json_string(json, "path", info->path);
    prof_json_known(json, "file_bytes", info->file_bytes);
    prof_json_int(json, "format_version", info->format_version);
    prof_json_string(json, "state", prof_state_text(info->state));
    prof_json_string(json, "perfkit_version", info->perfkit_version);
    prof_json_string(json, "command", info->command);
    prof_json_string(json, "directory", info->directory);
    prof_json_string(json, "host", info->host);
    prof_json_string(json, "boot_id", info->boot_id);
    prof_json_string(json, "kernel", info->kernel);
    prof_json_string(json, "cpu", info->cpu);
    prof_json_known(json, "cpu_count", info->cpu_count);
    prof_json_known(json, "start_realtime_ns", info->start_realtime_ns);
    prof_json_string(json, "start_utc", info->start_realtime_ns == PROF_UNKNOWN ? NULL : when);
    prof_json_known(json, "start_mono_ns", info->start_mono_ns);
    prof_json_known(json, "duration_ns", info->duration_ns);
    prof_json_known(json, "exit_status", info->exit_status);
    prof_json_known(json, "exit_signal", info->exit_signal);
    prof_json_string(json, "ending", ending);
    prof_json_string(json, "trace", info->trace);
    prof_json_string(json, "kernel_filter", info->kernel_filter);
    prof_json_bool(json, "summary", info->summary);
    prof_json_end(json);
}

static const char *const trust_levels[] = {[PROF_TRUST_NOTE] = "note",
                                           [PROF_TRUST_WARNING] = "warning",
                                           [PROF_TRUST_RISK] = "risk",
                                           [PROF_TRUST_LOSS] = "loss"};

static void put_balances(struct prof_json *json, const char *key, const struct prof_balance *rows,
                         size_t count)
{
    prof_json_array(json, key);
    for (size_t i = 0; i < count; i++) {
        const struct prof_balance *row = &rows[i];
        prof_json_object(json, NULL);
        prof_json_string(json, "subject", row->subject);
        put_id(json, "process", row->process);
        prof_json_known(json, "called", row->called);
        prof_json_known(json, "recorded", row->recorded);
        prof_json_known(json, "failed", row->failed);
        prof_json_known(json, "captured", row->captured);
        prof_json_known(json, "dropped", row->dropped);
        prof_json_known(json, "outstanding", row->outstanding);
        prof_json_known(json, "filtered", row->filtered);
        prof_json_known(json, "uncalled", row->uncalled);
        prof_json_known(json, "unanswered", row->unanswered);
        prof_json_known(json, "unreturned", row->unreturned);
        prof_json_known(json, "remainder", row->remainder);
        prof_json_end(json);
    }
    prof_json_end(json);
}

/* A capture of an earlier version does not count it, one without graphs neither. */
static void put_graph_work(struct prof_json *json, const struct prof_graph_work *work)
{
    if (!(work->launched | work->kernels | work->memcpys | work->memsets | work->whole |
          work->filtered)) {
        prof_json_null(json, "graphs");
        return;
    }
    prof_json_object(json, "graphs");
    prof_json_int(json, "launched", work->launched);
    prof_json_int(json, "kernels", work->kernels);
    prof_json_int(json, "memcpys", work->memcpys);
    prof_json_int(json, "memsets", work->memsets);
    prof_json_int(json, "whole", work->whole);
    prof_json_int(json, "filtered", work->filtered);
    prof_json_end(json);
}

void prof_report_json_trust(struct prof_json *json, const struct prof_report_data *data)
{
    const struct prof_trust *trust = &data->trust;
    prof_json_object(json, "trust");
    prof_json_string(json, "status", prof_trust_status_name(trust->status));
    prof_json_bool(json, "complete", trust->complete);
    prof_json_int(json, "calls_without_records", trust->lacking);
    prof_json_known(json, "clock_error_ns", trust->clock_error_ns);
    prof_json_int(json, "windows", trust->windows);
    prof_json_known(json, "recorded_ns", trust->recorded_ns);
    put_balances(json, "totals", trust->totals, trust->total_count);
    put_balances(json, "balances", trust->balances, trust->balance_count);
    put_graph_work(json, &trust->graphs);
    prof_json_array(json, "statements");
    for (size_t i = 0; i < trust->statement_count; i++) {
        const struct prof_statement *statement = &trust->statements[i];
        prof_json_object(json, NULL);
        prof_json_string(json, "level", trust_levels[statement->level]);
        prof_json_string(json, "code", statement->code);
        put_id(json, "process", statement->process);
        prof_json_string(json, "text", statement->text);
        prof_json_end(json);
    }
    prof_json_end(json);
    prof_json_end(json);
}

void prof_report_json_devices(struct prof_json *json, const struct prof_report_data *data)
{
    const struct prof_device *devices;
    size_t count = prof_devices(data->capture, &devices);
    prof_json_array(json, "devices_seen");
    for (size_t i = 0; i < count; i++) {
        const struct prof_device *device = &devices[i];
        const char *label = prof_report_device_label(device);
        prof_json_object(json, NULL);
        prof_json_int(json, "id", device->id);
        prof_json_int(json, "process", device->process);
        prof_json_int(json, "physical", device->physical);
        prof_json_string(json, "label", label);
        prof_json_string(json, "given_name", device->label);
        prof_json_string(json, "api", device->api);
        prof_json_known(json, "ordinal", device->ordinal);
        prof_json_string(json, "name", device->name);
        prof_json_string(json, "vendor", device->vendor);
        prof_json_string(json, "driver", device->driver);
        prof_json_string(json, "uuid", device->uuid);
        prof_json_string(json, "kind", device->kind);
        prof_json_known(json, "units", device->units);
        prof_json_known(json, "clock_khz", device->clock_khz);
        prof_json_known(json, "memory_bytes", device->memory_bytes);
        prof_json_known(json, "memory_bandwidth_bytes_per_s", device->memory_bandwidth);
        prof_json_end(json);
    }
    prof_json_end(json);
}

/* ---- parts of CSV and Markdown --------------------------------------------------------------- */

/* The verdict of the trust block has its table too: a spreadsheet must not hide it. */
static void csv_trust(FILE *out, const struct prof_trust *trust)
{
    fprintf(out, "table,level,text\r\ntrust,%s,\r\n", prof_trust_status_name(trust->status));
    for (size_t i = 0; i < trust->statement_count; i++) {
        const char *text = trust->statements[i].text;
        fprintf(out, "trust,%s,", trust_levels[trust->statements[i].level]);
        prof_report_csv_value(out, prof_report_text(text));
        fputs("\r\n", out);
    }
}

/* What is left out by a filter; nothing without one. */
static void put_markdown_filter(FILE *out, const struct prof_report_data *data)
{
    char only[600];
    prof_report_filter_words(data->capture, data->filter, only, sizeof only);
    if (only[0]) {
        fputs("\nOnly ", out);
        prof_report_markdown_prose(out, only);
        fputc('\n', out);
    }
}

void prof_report_markdown_head(FILE *out, const struct prof_report_data *data)
{
    char ending[96], when[32];
    prof_report_ending(data->info, ending, sizeof ending);
    prof_report_when(data->info->start_realtime_ns, when, sizeof when);
    fputs("# ", out);
    prof_report_markdown_prose(out, data->info->command);
    fprintf(out, "\n\n%s from %s on ", prof_duration_ns(data->info->duration_ns).text, when);
    prof_report_markdown_prose(out, data->info->host);
    const char *bold = data->trust.complete ? "" : "**";
    fprintf(out, "; %s; capture: %s%s%s\n", ending, bold,
            prof_trust_status_words(data->trust.status), bold);
    put_markdown_filter(out, data);
    for (size_t i = 0; i < data->trust.statement_count; i++) {
        const struct prof_statement *statement = &data->trust.statements[i];
        if (statement->level == PROF_TRUST_NOTE)
            continue;
        fputs(i ? "- " : "\n- ", out);
        prof_report_markdown_prose(out, statement->text);
        fputc('\n', out);
    }
}

/* ---- heads of the reports about a part ------------------------------------------------------- */

#define LABEL 11 /* columns of the labels on the left */

static void put_part_head(const struct prof_report_page *page, const struct prof_report_data *data,
                          const struct prof_report_notes *notes)
{
    char only[600];
    PROF_FREED char *command = prof_report_cut(data->info->command, 2 * (page->width - LABEL));
    prof_report_wrap(page, LABEL, "Command", command ? command : "");
    prof_report_filter_words(data->capture, data->filter, only, sizeof only);
    if (only[0])
        prof_report_wrap(page, LABEL, "Only", only);
    if (!data->trust.complete)
        prof_report_wrap(
            page, LABEL, "Trust",
            data->trust.status == PROF_TRUST_AT_RISK
                ? "AT RISK: `perfkit report` says what may be missing"
                : "INCOMPLETE: `perfkit report` says what was lost; figures may be too low");
    for (size_t i = 0; i < notes->count; i++)
        prof_report_wrap(page, LABEL, i ? "" : "Notes", notes->text[i]);
}

static void put_markdown_part_head(FILE *out, const char *part, const struct prof_report_data *data,
                                   const struct prof_report_notes *notes)
{
    const char *bold = data->trust.complete ? "" : "**";
    fprintf(out, "# %s", part);
    prof_report_markdown_prose(out, data->info->command);
    fprintf(out, "\n\ncapture: %s%s%s\n", bold, prof_trust_status_words(data->trust.status), bold);
    put_markdown_filter(out, data);
    prof_report_markdown_notes(out, notes);
}

/* ---- formats --------------------------------------------------------------------------------- */

static bool table_is_shown(const struct prof_report_document *document,
                           const struct prof_report_data *data,
                           const struct prof_report_table *table)
{
    return !(document->has_nothing && document->has_nothing(data)) &&
           prof_report_worth(data, table);
}

/* Of text, or of Markdown. */
static void put_document_head(const struct prof_report_document *document,
                              const struct prof_report_output *output)
{
    struct prof_report_notes notes;
    bool markdown = output->format == PROF_REPORT_MARKDOWN;
    if (document->describe)
        document->describe(output->data, &notes);
    if (markdown && document->describe)
        put_markdown_part_head(output->page.out, document->part, output->data, &notes);
    else if (markdown)
        document->markdown_head(output->page.out, output->data);
    else if (document->describe)
        put_part_head(&output->page, output->data, &notes);
    else
        document->text_head(&output->page, output->data);
}

static enum prof_status put_document_text(const struct prof_report_document *document,
                                          struct prof_report_output *output, struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    put_document_head(document, output);
    for (size_t i = 0; document->tables[i] && !status; i++) {
        if (!table_is_shown(document, output->data, document->tables[i]))
            continue;
        fputc('\n', output->page.out);
        status = prof_report_put_table(output, document->tables[i], err);
    }
    if (!status && document->text_tail)
        document->text_tail(&output->page, output->data);
    return status;
}

static enum prof_status put_document_markdown(const struct prof_report_document *document,
                                              const struct prof_report_options *options,
                                              struct prof_report_output *output,
                                              struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    put_document_head(document, output);
    if (document->whole)
        prof_report_markdown_findings(output->page.out, output->data,
                                      options ? options->findings : PROF_REPORT_FINDINGS_TOP,
                                      prof_report_markdown_prose);
    for (size_t i = 0; document->tables[i] && !status; i++) {
        if (table_is_shown(document, output->data, document->tables[i]))
            status = prof_report_put_table(output, document->tables[i], err);
    }
    return status;
}

/* A capture has several tables with different columns, so the file has one block for each: a line
 * of headings, then the rows, then an empty line. */
static enum prof_status put_document_csv(const struct prof_report_document *document,
                                         struct prof_report_output *output, struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    for (size_t i = 0; document->tables[i] && !status; i++)
        status = prof_report_put_table(output, document->tables[i], err);
    csv_trust(output->page.out, &output->data->trust);
    return status;
}

/* `shape` is the version: it grows by new members without a new number, and takes a new number when
 * a member changes its meaning or goes. Every quantity has its unit in its name; what is not known
 * is null and never 0. */
static enum prof_status put_document_json(const struct prof_report_document *document,
                                          struct prof_report_output *output, struct prof_error *err)
{
    const struct prof_report_data *data = output->data;
    enum prof_status status = PROF_OK;
    struct prof_json json;
    prof_json_to_file(&json, output->page.out, 2);
    output->json = &json;
    prof_json_object(&json, NULL);
    prof_json_int(&json, document->key, document->shape);
    prof_report_json_capture(&json, data);
    prof_report_json_filter(&json, data->filter);
    if (document->whole)
        prof_json_known(&json, "wall_ns", data->wall_ns);
    prof_report_json_trust(&json, data);
    document->json_members(&json, data);
    for (size_t i = 0; document->tables[i] && !status; i++)
        status = prof_report_put_table(output, document->tables[i], err);
    prof_json_end(&json);
    enum prof_status ended = prof_json_finish(&json, status ? NULL : err);
    return status ? status : ended;
}

static enum prof_status write_document(const struct prof_report_document *document,
                                       struct prof_capture *capture,
                                       const struct prof_report_options *options,
                                       enum prof_report_format format, FILE *out,
                                       struct prof_error *err)
{
    struct prof_report_data data;
    struct prof_report_output output = {.format = format,
                                        .page = prof_report_page(options, out),
                                        .data = &data,
                                        .notes_apart = !document->whole};
    enum prof_status status = document->load(capture, options, &data, err);
    if (!status && format == PROF_REPORT_TEXT)
        status = put_document_text(document, &output, err);
    else if (!status && format == PROF_REPORT_JSON)
        status = put_document_json(document, &output, err);
    else if (!status && format == PROF_REPORT_CSV)
        status = put_document_csv(document, &output, err);
    else if (!status)
        status = put_document_markdown(document, options, &output, err);
    status = status ?: prof_report_flush(out, err);
    prof_report_unload(&data);
    return status;
}

/* ---- the documents --------------------------------------------------------------------------- */

static void report_json_members(struct prof_json *json, const struct prof_report_data *data)
{
    prof_report_json_devices(json, data);
    prof_report_json_findings(json, data);
}

/* Its text is text.c's. */
static const struct prof_report_document report_document = {
    .key = "perfkit_report",
    .shape = 3,
    .tables = prof_report_tables,
    .load = prof_report_load,
    .whole = true,
    .json_members = report_json_members,
    .markdown_head = prof_report_markdown_head,
};

#define WRITE_REPORT(name, format)                                                                 \
    enum prof_status prof_report_write_##name(struct prof_capture *capture,                        \
                                              const struct prof_report_options *options,           \
                                              FILE *out, struct prof_error *err)                   \
    {                                                                                              \
        return write_document(&report_document, capture, options, format, out, err);               \
    }
WRITE_REPORT(json, PROF_REPORT_JSON)
WRITE_REPORT(csv, PROF_REPORT_CSV)
WRITE_REPORT(markdown, PROF_REPORT_MARKDOWN)

#define WRITE_IN_FORMAT(name, document)                                                            \
    enum prof_status prof_report_write_##name(                                                     \
        struct prof_capture *capture, const struct prof_report_options *options,                   \
        enum prof_report_format format, FILE *out, struct prof_error *err)                         \
    {                                                                                              \
        return write_document(document, capture, options, format, out, err);                       \
    }
WRITE_IN_FORMAT(ranks, &prof_report_ranks_document)
WRITE_IN_FORMAT(memory, &prof_report_memory_document)
WRITE_IN_FORMAT(iterations, options && options->why ? &prof_report_why_document
                                                    : &prof_report_iterations_document)
