/* The writers that the tables in gate.c list. */
#ifndef PERFKIT_REPORT_GATE_WRITERS_H
#define PERFKIT_REPORT_GATE_WRITERS_H

#include "report/gate_words.h"

#define PROF_GATE_WRITER(name)                                                                     \
    enum prof_status name(const struct prof_gate_report *report, FILE *out, struct prof_error *err)

PROF_GATE_WRITER(prof_gate_write_text);
PROF_GATE_WRITER(prof_gate_write_markdown);
PROF_GATE_WRITER(prof_gate_write_junit);
PROF_GATE_WRITER(prof_gate_write_github);
PROF_GATE_WRITER(prof_gate_write_json);
PROF_GATE_WRITER(prof_diff_write_text);
PROF_GATE_WRITER(prof_diff_write_markdown);

#endif
