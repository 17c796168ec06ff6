/* Parts of the text report that share one page: what it is written to and how wide it is. */
#ifndef PERFKIT_REPORT_TEXT_H
#define PERFKIT_REPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct prof_report_data;
struct prof_report_options;
struct prof_utilisation_row;

struct prof_report_page {
    FILE *out;
    size_t width; /* columns; 0 = 100, below 60 counts as 60 */
    bool colour;
    size_t top;
    bool all; /* every table with all that is known; else the one screen */
};

/* {out, width, colour, top, all} of the options, NULL = none. */
struct prof_report_page prof_report_page(const struct prof_report_options *options, FILE *out);

enum prof_report_tone { PROF_TONE_HEAD, PROF_TONE_GOOD, PROF_TONE_BAD, PROF_TONE_FAINT };

/* Escape sequence to begin a tone and to end it; "" without colour. */
const char *prof_report_tone(const struct prof_report_page *page, enum prof_report_tone tone);
const char *prof_report_plain(const struct prof_report_page *page);

/* The trust block, with its heading. */
void prof_report_text_trust(const struct prof_report_page *page,
                            const struct prof_report_data *data);

/* `text` (clean) in lines of the page's width: the first after `label`, the others indented below
 * it. `label` takes `indent` columns. */
void prof_report_wrap(const struct prof_report_page *page, size_t indent, const char *label,
                      const char *text);

/* ---- one screen (text_screen.c) -------------------------------------------------------------- */

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
