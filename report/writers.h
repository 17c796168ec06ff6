/* The writers that the table in report.c lists, and what they share. */
#ifndef PERFKIT_REPORT_WRITERS_H
#define PERFKIT_REPORT_WRITERS_H

#include "report/data.h"
#include "libprof/base/json.h"
#include "report/table.h"

/* Every format: the writer prof_report_write_FUNCTION, its name, the extension of its files,
 * whether it is a --format of `perfkit report`, and what it is. A new one is a row here and a file.
 */
/* clang-format off */
#define PROF_REPORT_WRITERS(WRITER)                                                                \
    WRITER(text, "text", ".txt", true, "tables for people, on a terminal")                         \
    WRITER(json, "json", ".json", true, "every summary with exact numbers, for programs")          \
    WRITER(csv, "csv", ".csv", true, "the summary tables, for spreadsheets")                       \
    WRITER(markdown, "markdown", ".md", true, "the summary tables, to paste into an issue")        \
    WRITER(html, "html", ".html", false,                                                           \
           "one self-contained page: tables, timeline, flame graph")                               \
    WRITER(chrome_trace, "chrome-trace", ".json", false,                                           \
           "every event in Chrome's trace format, for Perfetto and the like")                      \
    WRITER(perfetto, "perfetto", ".pftrace", false,                                                \
           "the same in Perfetto's own format, for large captures")                                \
    WRITER(flamegraph, "flamegraph", ".folded", false,                                             \
           "folded stacks of ranges, calls and kernels, weighted by device ns")                    \
    WRITER(speedscope, "speedscope", ".speedscope.json", false,                                    \
           "the same stacks by time, bytes and number, for speedscope")                            \
    WRITER(pprof, "pprof", ".pb.gz", false, "the same stacks in pprof's format")                   \
    WRITER(otlp, "otlp", ".otlp", false, "the same stacks as OTLP profiles, for OpenTelemetry")    \
    WRITER(prometheus, "prometheus", ".prom", false,                                               \
           "totals of kernels, memcpys, memsets and devices, for Prometheus")                             \
    WRITER(roofline_svg, "roofline-svg", ".svg", false, "the roofline, drawn by gnuplot")          \
    WRITER(roofline_png, "roofline-png", ".png", false, "the roofline, drawn by gnuplot")          \
    WRITER(roofline_script, "roofline-script", ".gp", false,                                       \
           "the gnuplot script of that figure, to be changed by hand")
/* clang-format on */

#define PROF_REPORT_DECLARE_WRITER(function, name, extension, summary, description)                \
    enum prof_status prof_report_write_##function(struct prof_capture *capture,                    \
                                                  const struct prof_report_options *options,       \
                                                  FILE *out, struct prof_error *err);
PROF_REPORT_WRITERS(PROF_REPORT_DECLARE_WRITER)

/* Prose in Markdown, escaped and cut to 1000 columns. */
void prof_report_markdown_prose(FILE *out, const char *text);
void prof_report_markdown_notes(FILE *out, const struct prof_report_notes *notes); /* a list */
void prof_report_markdown_head(FILE *out, const struct prof_report_data *data);

/* "from 1.00 s to 2.00 s, process 4711, GPU 0, kernels with \"gemm\"", cut to `size`; "" when
 * everything is reported. Names of the program are clean (utf8.h). */
void prof_report_filter_words(const struct prof_capture *capture, const struct prof_filter *filter,
                              char *out, size_t size);

/* The member "filter" of our JSON. NULL = everything. */
void prof_report_json_filter(struct prof_json *json, const struct prof_filter *filter);

/* Families of Prometheus' formats, without _total, in the order of `perfkit report --prometheus`;
 * `perfkit serve` writes some of them too. */
struct prof_report_family {
    const char *name, *type, *unit, *help; /* unit: the end of the name, NULL = none */
    int decimals;                          /* of its integers: 9 = ns, 3 = mJ */
};
enum prof_report_family_id {
    PROF_FAMILY_CAPTURE,
    PROF_FAMILY_COMPLETE,
    PROF_FAMILY_START,
    PROF_FAMILY_DURATION,
    PROF_FAMILY_BUSY_RATIO,
    PROF_FAMILY_BUSY_TIME,
    PROF_FAMILY_ENERGY,
    PROF_FAMILY_KERNELS,
    PROF_FAMILY_KERNEL_TIME,
    PROF_FAMILY_MEMCPYS, /* number, time and bytes follow each other */
    PROF_FAMILY_MEMCPY_TIME,
    PROF_FAMILY_MEMCPY_BYTES,
    PROF_FAMILY_MEMSETS, /* likewise */
    PROF_FAMILY_MEMSET_TIME,
    PROF_FAMILY_MEMSET_BYTES,
    PROF_FAMILY_MEMORY_PEAK,
    PROF_FAMILIES
};
extern const struct prof_report_family prof_report_families[];
/* The comments before the samples. `open`: in OpenMetrics, which names the family without _total;
 * its samples end with the suffix in both. */
void prof_report_prometheus_head(FILE *out, const struct prof_report_family *family, bool open);
const char *prof_report_prometheus_suffix(const struct prof_report_family *family);
/* Labels of Prometheus' formats, with a comma unless it is the first. A name of the program becomes
 * valid UTF-8 without control characters, and short: one that is cut carries its hash, so that two
 * of them stay two. */
void prof_report_prometheus_label(FILE *out, bool first, const char *label, const char *name);
/* gpu="0",UUID="...",model="...",hostname="...". `device`, `host` NULL: not known. */
void prof_report_prometheus_device(FILE *out, const struct prof_device *device, const char *host);
/* Exactly, and the end of the line: a double would round large times. `time`: ns, as seconds. */
void prof_report_prometheus_value(FILE *out, bool time, int64_t value);

/* What a document of the summary formats is made of: tables, and what is before and after them. */
struct prof_report_document {
    const char *key; /* in JSON: its version, `shape` */
    int shape;
    const struct prof_report_table *const *tables; /* ended by NULL */
    enum prof_status (*load)(struct prof_capture *capture,
                             const struct prof_report_options *options,
                             struct prof_report_data *data, struct prof_error *err);
    bool whole; /* the report: with findings, and notes below their tables */
    bool (*has_nothing)(const struct prof_report_data *data); /* no tables for people; NULL = no */
    /* A report about a part begins with the command, the filter, whether the capture is whole, and
     * these notes; the heading of Markdown with `part`: "Memory of ". */
    const char *part;
    void (*describe)(const struct prof_report_data *data, struct prof_report_notes *notes);
    /* Others: heads of their own. */
    void (*text_head)(const struct prof_report_page *page, const struct prof_report_data *data);
    void (*text_tail)(const struct prof_report_page *page, const struct prof_report_data *data);
    void (*json_members)(struct prof_json *json, const struct prof_report_data *data);
    void (*markdown_head)(FILE *out, const struct prof_report_data *data);
};
extern const struct prof_report_document prof_report_ranks_document, prof_report_memory_document,
    prof_report_iterations_document, prof_report_why_document;

/* PROF_IO, PROF_FULL on a full disk: a write failed with errno. The message has the name of the
 * file that is being saved. */
enum prof_status prof_report_write_failed(struct prof_error *err);
/* Flush and say whether everything was written. */
enum prof_status prof_report_flush(FILE *out, struct prof_error *err);

/* The members "capture" and "trust" of our JSON, into an open object: also the head of the HTML
 * page's data. */
void prof_report_json_capture(struct prof_json *json, const struct prof_report_data *data);
void prof_report_json_trust(struct prof_json *json, const struct prof_report_data *data);
/* The member "devices_seen": every device with its properties. */
void prof_report_json_devices(struct prof_json *json, const struct prof_report_data *data);

/* ---- writers of tables ----------------------------------------------------------------------- */

/* What table_write.c, table_text.c and html_tables.c share. */
void prof_report_text_head(struct prof_report_output *output);
bool prof_report_text_row(struct prof_report_output *output,
                          const void *row); /* no memory: false */
void prof_report_text_tail(struct prof_report_output *output);
void prof_report_text_end(struct prof_report_output *output);

void prof_report_page_head(struct prof_report_output *output);
bool prof_report_page_row(struct prof_report_output *output, const void *row);
void prof_report_page_tail(struct prof_report_output *output);

void prof_report_markup_head(struct prof_report_output *output);
bool prof_report_markup_row(struct prof_report_output *output, const void *row);
void prof_report_markup_tail(struct prof_report_output *output);

/* The column's value in the units of the table. */
struct prof_report_value prof_report_shown_value(const struct prof_report_output *output,
                                                 const struct prof_report_column *column,
                                                 const void *row);

/* A value that is no text, for people. */
#define PROF_FIGURE_BYTES 96
void prof_report_figure(const struct prof_report_output *output,
                        const struct prof_report_column *column, struct prof_report_value value,
                        char out[PROF_FIGURE_BYTES]);

/* "... and 12 more (--top 22)", without an end of line. */
void prof_report_more(const struct prof_report_output *output);

/* In place of the rows of a walk: what is not there, and which option would have brought it. */
void prof_report_nothing(const struct prof_report_output *output);

/* Below a table of nsys: what its shares are of, and which column could not be filled. */
void prof_report_nsys_remarks(const struct prof_report_output *output);

#endif
