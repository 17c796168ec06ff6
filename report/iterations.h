/* What `perfkit report --iterations` shows. */
#ifndef PERFKIT_REPORT_ITERATIONS_H
#define PERFKIT_REPORT_ITERATIONS_H

#include "report/table.h"

/* Ended by NULL. Static. */
extern const struct prof_report_table *const prof_report_iteration_tables[];
extern const struct prof_report_table *const prof_report_why_tables[];

#endif
