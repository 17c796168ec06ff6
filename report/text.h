/* Parts of the text report that share one page: what it is written to and how wide it is. */
#ifndef PERFKIT_REPORT_TEXT_H
#define PERFKIT_REPORT_TEXT_H

#include "report/table.h"

struct prof_report_page {
    FILE *out;
    size_t width; /* columns */
    bool colour;
    size_t top;
    bool all; /* every table with all that is known; else the one screen */
};

enum prof_report_tone { PROF_TONE_HEAD, PROF_TONE_GOOD, PROF_TONE_BAD, PROF_TONE_FAINT };

/* Escape sequence to begin a tone and to end it; "" without colour. */
const char *prof_report_tone(const struct prof_report_page *page, enum prof_report_tone tone);
const char *prof_report_plain(const struct prof_report_page *page);

/* Writes that many spaces. */
void prof_report_pad(FILE *out, size_t cells);

/* Heading with its line of totals, then the table; or one line when it is empty. `rows`: how many
 * when nobody asks for a number, 0 = the table's own choice, or PROF_HEADING_ONLY. */
enum prof_status prof_report_text_table(const struct prof_report_page *page,
                                        const struct prof_report_data *data,
                                        const struct prof_report_table *table, size_t rows,
                                        struct prof_error *err);

/* The trust block, with its heading. */
void prof_report_text_trust(const struct prof_report_page *page,
                            const struct prof_report_data *data);

/* `text` (clean) in lines of the page's width: the first after `label`, the others indented below
 * it. `label` takes `indent` columns. */
void prof_report_wrap(const struct prof_report_page *page, size_t indent, const char *label,
                      const char *text);

#endif
