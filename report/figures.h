/* Pictures by gnuplot, all with one look: what their scripts share, and how they are drawn.
 *
 * What is data stays data: names stand in single quotes, in which gnuplot reads neither commands
 * nor variables, and lose the few characters that could end the quotes or the line. */
#ifndef PERFKIT_REPORT_FIGURES_H
#define PERFKIT_REPORT_FIGURES_H

#include <stdio.h>

#include "libprof/base/error.h"
#include "report/table.h"

#define PROF_GNUPLOT_WIDTH 1100
#define PROF_GNUPLOT_HEIGHT 640
#define PROF_GNUPLOT_LEFT 0.085 /* of the plot within the picture */
#define PROF_GNUPLOT_BOTTOM 0.11
#define PROF_GNUPLOT_TOP 0.89

#define PROF_GNUPLOT_LOOK                                                                          \
    "set grid back lt 1 lw 0.7 lc rgb '#d8d8d8'\nset border 3\nset tics nomirror\n"
#define PROF_GNUPLOT_FAINT "#606060"

/* A text in quotes, cut to `cells` columns. */
void prof_gnuplot_quoted(FILE *out, const char *text, size_t cells);
/* A part of a script (prof_print_quoted): texts of ours as they are, and reals whose decimal point
 * is a point in every locale. */
void prof_gnuplot_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The title of a picture with the line below it. */
void prof_gnuplot_heading(FILE *out, const char *title, const char *below);

/* Has gnuplot draw a script into `out` for this terminal. `otherwise`: what to do where there is no
 * gnuplot, besides installing it. PROF_UNSUPPORTED: it is not installed. */
enum prof_status prof_gnuplot_draw(const char *script, const char *terminal, const char *otherwise,
                                   FILE *out, struct prof_error *err);

/* ---- the roofline, beside its tables (tables_roofline.c) ------------------------------------- */

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
