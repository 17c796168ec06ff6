/* Findings in the words of each summary format. */
#ifndef PERFKIT_REPORT_FINDINGS_H
#define PERFKIT_REPORT_FINDINGS_H

#include "libprof/base/json.h"
#include "report/table.h"

/* The section in front of the tables. */
void prof_report_text_findings(const struct prof_report_page *page,
                               const struct prof_report_data *data,
                               enum prof_report_findings how_many);

/* Likewise; put_prose quotes text for markdown. */
void prof_report_markdown_findings(FILE *out, const struct prof_report_data *data,
                                   enum prof_report_findings how_many,
                                   void (*put_prose)(FILE *out, const char *text));

/* "saves at most 22.7 ms, 23.9 % of 94.8 ms, in 12 phases": the row that stands for all phases of
 * its rule has their sum. "" = it is about nothing that has a size. */
void prof_report_finding_saving(const struct prof_findings *findings,
                                const struct prof_finding *finding, char *out, size_t size);
void prof_report_finding_price(const struct prof_report_data *data,
                               const struct prof_finding *finding, char *out, size_t size);
/* Does the row stand for its rule? A rule's rows, one a phase, stand together, the worst phase
 * first, whose price has the sum of them all; lists of the first findings show that one only. */
bool prof_report_finding_is_worst_phase(const struct prof_findings *findings,
                                        const struct prof_finding *finding);
/* The recording overhead of the main phase; "" where it was not to be measured. */
void prof_report_overhead(const struct prof_report_data *data, char *out, size_t size);
/* What the capture says of the budget of --overhead=PERCENT: "budget_kept", "budget_exceeded" or
 * "budget_unknown" (prof_statement.code). NULL = there was none. */
const struct prof_statement *prof_report_budget(const struct prof_report_data *data);
/* 'analysed: 123 ms to 1.21 s (1.09 s), 10 iterations of "data"': the part of the run that was
 * judged. */
void prof_report_findings_analysed(const struct prof_findings *findings, char *out, size_t size);

/* Where one of its places is: "12 us at 139 ms in train/step, gemm, stream 7". */
void prof_report_finding_place(const struct prof_report_data *data, const struct prof_place *place,
                               char *out, size_t size);

/* What formats say of a finding, each in its own order and words before it; "" where there is
 * nothing to say. Names in them are clean, but for those of `lines`. */
struct prof_report_finding {
    char lines[600];  /* of the program behind its places, each once */
    char worst[600];  /* the first place */
    char bound[600];  /* its terms: "28.7 ms idle around + 89.3 ms exposed memcpy" */
    char net[200];    /* the bound without the recording overhead */
    char replay[200]; /* what a simulation saves, where that is less than the bound */
    const char *with; /* the call to use on its device, or its framework's */
};
void prof_report_describe_finding(const struct prof_report_data *data,
                                  const struct prof_finding *finding,
                                  struct prof_report_finding *words);

/* "info", "warning", "critical" */
const char *prof_report_severity(enum prof_severity severity);

/* The member "findings": all of them, with what the rules abstained from. */
void prof_report_json_findings(struct prof_json *json, const struct prof_report_data *data);

#endif
