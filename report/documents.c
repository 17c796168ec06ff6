/* The documents of the summary formats: the report, and those about ranks and about memory alone.
 * Each is a list of tables with what is before and after them. (--stats: stats.c.) */
#include <string.h>

#include "report/columns.h"
#include "report/filter.h"
#include "report/findings.h"
#include "report/memory.h"
#include "report/writers.h"

/* ---- parts of CSV and Markdown ----------------------------------------------------------------
 */

/* The verdict of the trust block has its table too: a spreadsheet must not hide it. */
static void csv_trust(FILE *out, const struct prof_trust *trust)
{
    static const char *const levels[] = {[PROF_TRUST_NOTE] = "note",
                                         [PROF_TRUST_WARNING] = "warning",
                                         [PROF_TRUST_RISK] = "risk",
                                         [PROF_TRUST_LOSS] = "loss"};
    fprintf(out, "table,level,text\r\ntrust,%s,\r\n", prof_trust_status_name(trust->status));
    for (size_t i = 0; i < trust->statement_count; i++) {
        const char *text = trust->statements[i].text;
        fprintf(out, "trust,%s,", levels[trust->statements[i].level]);
        prof_report_csv_value(out, prof_report_text(text));
        fputs("\r\n", out);
    }
}

void prof_report_markdown_filter(FILE *out, const struct prof_report_data *data)
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
    prof_report_markdown_filter(out, data);
    for (size_t i = 0; i < data->trust.statement_count; i++) {
        const struct prof_statement *statement = &data->trust.statements[i];
        if (statement->level == PROF_TRUST_NOTE)
            continue;
        fputs(i ? "- " : "\n- ", out);
        prof_report_markdown_prose(out, statement->text);
        fputc('\n', out);
    }
}

/* ---- formats ----------------------------------------------------------------------------------
 */

static bool table_is_shown(const struct prof_report_document *document,
                           const struct prof_report_data *data,
                           const struct prof_report_table *table)
{
    return !(document->has_nothing && document->has_nothing(data)) &&
           prof_report_worth(data, table);
}

static enum prof_status put_document_text(const struct prof_report_document *document,
                                          struct prof_report_output *output, struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    document->text_head(&output->page, output->data);
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
    document->markdown_head(output->page.out, output->data);
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
    if (!status)
        status = prof_report_flush(out, err);
    prof_report_unload(&data);
    return status;
}

/* ---- the documents ----------------------------------------------------------------------------
 */

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

enum prof_status prof_report_write_ranks(struct prof_capture *capture,
                                         const struct prof_report_options *options,
                                         enum prof_report_format format, FILE *out,
                                         struct prof_error *err)
{
    return write_document(&prof_report_ranks_document, capture, options, format, out, err);
}

enum prof_status prof_report_write_memory(struct prof_capture *capture,
                                          const struct prof_report_options *options,
                                          enum prof_report_format format, FILE *out,
                                          struct prof_error *err)
{
    return write_document(&prof_report_memory_document, capture, options, format, out, err);
}
