/* The writers that the table in report.c lists, and what they share. */
#ifndef PERFKIT_REPORT_WRITERS_H
#define PERFKIT_REPORT_WRITERS_H

#include "report/data.h"
#include "libprof/base/json.h"
#include "report/table.h"

#define PROF_REPORT_WRITER(name)                                                                   \
    enum prof_status prof_report_write_##name(struct prof_capture *capture,                        \
                                              const struct prof_report_options *options,           \
                                              FILE *out, struct prof_error *err)

PROF_REPORT_WRITER(text);
PROF_REPORT_WRITER(json);
PROF_REPORT_WRITER(csv);
PROF_REPORT_WRITER(markdown);
PROF_REPORT_WRITER(chrome_trace);
PROF_REPORT_WRITER(flamegraph);
PROF_REPORT_WRITER(html);
PROF_REPORT_WRITER(perfetto);
PROF_REPORT_WRITER(pprof);
PROF_REPORT_WRITER(prometheus);
PROF_REPORT_WRITER(roofline_svg);
PROF_REPORT_WRITER(roofline_png);
PROF_REPORT_WRITER(roofline_script);
PROF_REPORT_WRITER(speedscope);

/* A field of CSV (RFC 4180), empty when unknown. */
void prof_report_csv_value(FILE *out, struct prof_report_value value);

/* Texts in Markdown, escaped: a name is cut to 80 columns, prose to 1000. */
void prof_report_markdown_name(FILE *out, const char *name);
void prof_report_markdown_prose(FILE *out, const char *text);

/* Parts that the report about ranks has too. A table's rows: `top` of them, 0 = the format's own choice. */
void prof_report_json_table(struct prof_json *json, const struct prof_report_data *data,
                            const struct prof_report_table *table, size_t top);
void prof_report_csv_table(FILE *out, const struct prof_report_data *data,
                           const struct prof_report_table *table, size_t top);
void prof_report_csv_trust(FILE *out, const struct prof_trust *trust);
void prof_report_markdown_head(FILE *out, const struct prof_report_data *data);
void prof_report_markdown_table(FILE *out, const struct prof_report_data *data,
                                const struct prof_report_table *table, size_t top);
void prof_report_markdown_rank_notes(FILE *out, const struct prof_report_data *data);

/* Flush and say whether everything was written. */
enum prof_status prof_report_flush(FILE *out, struct prof_error *err);

/* The members "capture" and "trust" of our JSON, into an open object: also the head of the HTML
 * page's data. */
void prof_report_json_capture(struct prof_json *json, const struct prof_report_data *data);
void prof_report_json_trust(struct prof_json *json, const struct prof_report_data *data);
/* The member "devices_seen": every device with its properties. */
void prof_report_json_devices(struct prof_json *json, const struct prof_report_data *data);

#endif
