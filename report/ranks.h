/* The report about ranks: which tables it has, and the sentences between them. */
#ifndef PERFKIT_REPORT_RANKS_H
#define PERFKIT_REPORT_RANKS_H

#include "report/table.h"

/* Names of the tables about ranks, in their order; ended by NULL. */
extern const char *const prof_report_rank_tables[];

#define PROF_REPORT_RANK_NOTES 6
#define PROF_REPORT_RANK_NOTE_BYTES 400

/* What the tables do not say by themselves: who holds the others up, what could not be matched, who
 * is missing. Returns how many. Names inside are cleaned and shortened. */
size_t prof_report_rank_notes(const struct prof_report_data *data,
                              char notes[PROF_REPORT_RANK_NOTES][PROF_REPORT_RANK_NOTE_BYTES]);

#endif
