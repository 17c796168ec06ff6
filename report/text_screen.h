/* The report for a terminal of few lines: text_screen.c; and what it takes from text.c. */
#ifndef PERFKIT_REPORT_TEXT_SCREEN_H
#define PERFKIT_REPORT_TEXT_SCREEN_H

#include "report/data.h"
#include "report/text.h"

/* Of `lines` lines at most, unless what must be said takes more. */
void prof_report_text_screen(const struct prof_report_page *page, size_t lines,
                             const struct prof_report_data *data);

/* What was left out on request, a line each. */
void prof_report_text_scope(const struct prof_report_page *page,
                            const struct prof_report_data *data);

/* How busy the device was over time, one character for each span of it. */
void prof_report_text_strip(const struct prof_report_page *page,
                            const struct prof_report_data *data,
                            const struct prof_utilisation_row *row);

#endif
