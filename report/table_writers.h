/* What the writers of tables share (table_write.c, table_text.c). */
#ifndef PERFKIT_REPORT_TABLE_WRITERS_H
#define PERFKIT_REPORT_TABLE_WRITERS_H

#include "report/table.h"

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
