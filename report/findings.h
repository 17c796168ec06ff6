/* Findings in the words of each summary format. */
#ifndef PERFKIT_REPORT_FINDINGS_H
#define PERFKIT_REPORT_FINDINGS_H

#include "libprof/base/json.h"
#include "report/text.h"

/* The section in front of the tables. */
void prof_report_text_findings(const struct prof_report_page *page,
                               const struct prof_report_data *data,
                               enum prof_report_findings how_many);

/* Likewise; put_prose quotes text for markdown. */
void prof_report_markdown_findings(FILE *out, const struct prof_report_data *data,
                                   enum prof_report_findings how_many,
                                   void (*put_prose)(FILE *out, const char *text));

/* The member "findings": all of them, with what the rules abstained from. */
void prof_report_json_findings(struct prof_json *json, const struct prof_report_data *data);

#endif
