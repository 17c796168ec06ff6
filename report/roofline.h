/* The roofline in words and as a figure, beside its tables (tables_roofline.c). */
#ifndef PERFKIT_REPORT_ROOFLINE_H
#define PERFKIT_REPORT_ROOFLINE_H

#include "report/table.h"

/* "measured 2026-11-20", "theoretical", "measured 2026-11-20 and theoretical": where the roofs of a
 * device come from; out: at least 64 bytes. False: it has none. */
bool prof_report_roof_source(const struct prof_ceilings *ceilings, int64_t device, char *out,
                             size_t size);

/* The level whose bytes give a point its place in the figure: DRAM, or L2 where DRAM's bytes are
 * not known. */
enum prof_roof_level prof_report_roof_level(const struct prof_roofline_point *point);

/* A gnuplot script, but for its terminal, that draws the roofline of the device with the most time.
 * Names are in single quotes, without characters that gnuplot interprets. PROF_NOTFOUND: no point
 * has a place in the figure; nothing is written. */
enum prof_status prof_report_roofline_script(const struct prof_roofline *roofline,
                                             struct prof_capture *capture, FILE *out,
                                             struct prof_error *err);

#endif
