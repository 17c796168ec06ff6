/* What the figures of --plots are drawn from, loaded once (plots.c), and the figures (plot_*.c). */
#ifndef PERFKIT_REPORT_PLOTS_PRIVATE_H
#define PERFKIT_REPORT_PLOTS_PRIVATE_H

#include "report/data.h"

struct prof_plots {
    struct prof_capture *capture;
    const struct prof_report_options *options;
    struct prof_utilisation utilisation;
    struct prof_kernel_summary kernels;
    struct prof_transfer_summary transfers;
    struct prof_memory_timeline memory;
    struct prof_roofline roofline;
};

/* What an axis is divided by, so that its numbers are small. */
struct prof_plot_unit {
    double size;
    const char *name;
};

/* Writes the script but for its terminal. Says why there is nothing to draw, or NULL. */
typedef const char *prof_plot(const struct prof_plots *plots, FILE *out);
prof_plot prof_plot_utilisation, prof_plot_kernels, prof_plot_durations, prof_plot_memory;

/* Reads the transfers one by one, hence the status. */
enum prof_status prof_plot_transfers(const struct prof_plots *plots, FILE *out,
                                     const char **nothing, struct prof_error *err);

/* Told apart by people who see few colours, too (Okabe and Ito, 2008). */
#define PROF_PLOT_COLOURS 7
extern const char *const prof_plot_colours[PROF_PLOT_COLOURS];

/* The picture's frame: heading, margins, labels of the axes. left: of the plot, 0 to 1. */
void prof_plot_frame(FILE *out, double left, const char *title, const char *below,
                     const char *x_label, const char *y_label);

/* A row of numbers of a block of data. */
void prof_plot_row(FILE *out, const double *values, size_t count);

#endif
