/* The report about ranks: which tables it has, and the sentences between them. */
#ifndef PERFKIT_REPORT_RANKS_H
#define PERFKIT_REPORT_RANKS_H

#include "report/table.h"

/* What the tables do not say by themselves: who holds the others up, what could not be matched, who
 * is missing. Names inside are cleaned and shortened. */
void prof_report_rank_notes(const struct prof_report_data *data, struct prof_report_notes *notes);

#endif
