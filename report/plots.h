/* The pictures of `--plots DIR`. */
#ifndef PERFKIT_REPORT_PLOTS_H
#define PERFKIT_REPORT_PLOTS_H

#include "report/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Draws every figure as FOLDER/NAME.svg and FOLDER/NAME.png by gnuplot; the folder is made
 * unless it is there. A figure without data says "n/a" and why. *written: how many pictures; those
 * before an error stay. PROF_UNSUPPORTED: gnuplot is not installed. */
enum prof_status prof_report_plots(struct prof_capture *capture,
                                   const struct prof_report_options *options, const char *folder,
                                   size_t *written, struct prof_error *err);

#ifdef __cplusplus
}
#endif

#endif
