/* Pictures of a capture for people who write reports: every figure of a table as SVG and PNG, by
 * gnuplot. The data is loaded once; each figure is a script over it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/gnuplot.h"
#include "report/plots.h"
#include "report/plots_private.h"
#include "report/roofline.h"
#include "report/writers.h"

#define BUCKETS 400 /* of the utilisation: the plot has about 900 pixels */
#define MEMORY_POINTS 4000

const char *const prof_plot_colours[PROF_PLOT_COLOURS] = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#707070"};

static const struct figure {
    const char *name, *title;
    prof_plot *plot; /* NULL: one of those that may fail */
} figures[] = {
    {"utilisation", "Utilisation over time", prof_plot_utilisation},
    {"kernel-time", "Kernels by time", prof_plot_kernels},
    {"kernel-durations", "How long kernels run", prof_plot_durations},
    {"transfers", "Memcpys by size and bandwidth", NULL},
    {"memory", "Allocated memory over time", prof_plot_memory},
    {"roofline", "Roofline", NULL},
};
enum { TRANSFERS = 3, ROOFLINE = 5, FIGURES = sizeof figures / sizeof figures[0] };

/* ---- what scripts share -----------------------------------------------------------------------
 */

void prof_plot_frame(FILE *out, double left, const char *title, const char *below,
                     const char *x_label, const char *y_label)
{
    fputs("set encoding utf8\nset lmargin at screen ", out);
    prof_gnuplot_real(out, left);
    fprintf(out,
            "\nset rmargin at screen 0.965\nset bmargin at screen %.2f\n"
            "set tmargin at screen %.2f\nset xlabel '%s'\nset ylabel '%s' offset "
            "0,0\n" PROF_GNUPLOT_LOOK "unset key\n",
            PROF_GNUPLOT_BOTTOM, PROF_GNUPLOT_TOP - 0.02, x_label, y_label);
    prof_gnuplot_heading(out, title, below);
}

void prof_plot_row(FILE *out, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i)
            fputc(' ', out);
        if (isfinite(values[i]))
            prof_gnuplot_real(out, values[i]);
        else
            fputs("NaN", out);
    }
    fputc('\n', out);
}

/* Instead of a figure: that there is nothing, and why. */
static void put_empty_figure(FILE *out, const char *title, const char *why)
{
    fputs("set encoding utf8\nunset border\nunset tics\nunset key\nset xrange [0:1]\nset yrange "
          "[0:1]\n",
          out);
    prof_gnuplot_heading(out, title, "");
    fputs("set label ", out);
    char text[500];
    snprintf(text, sizeof text, "n/a: %s", why);
    prof_gnuplot_quoted(out, text, 150);
    fputs(" at screen 0.5, screen 0.5 center noenhanced tc rgb '" PROF_GNUPLOT_FAINT "'\n"
          "plot -1 notitle\n",
          out);
}

/* ---- one picture ------------------------------------------------------------------------------
 */

struct picture {
    const struct prof_plots *plots;
    size_t figure;
    const char *terminal;
};

/* The figure into a text of its own: where it says that there is nothing, it is thrown away. */
static enum prof_status figure_text(const struct picture *picture, FILE *out, const char **nothing,
                                    struct prof_error *why)
{
    const struct prof_plots *plots = picture->plots;
    if (picture->figure == TRANSFERS)
        return prof_plot_transfers(plots, out, nothing, why);
    if (picture->figure != ROOFLINE) {
        *nothing = figures[picture->figure].plot(plots, out);
        return PROF_OK;
    }
    enum prof_status status =
        prof_report_roofline_script(&plots->roofline, plots->capture, NULL, out, why);
    if (status == PROF_NOTFOUND) {
        *nothing = "no kernel has both FLOP and bytes: see docs/guide/roofline.md";
        return PROF_OK;
    }
    return status;
}

static enum prof_status write_figure_script(void *context, const char *terminal, FILE *out,
                                            struct prof_error *err)
{
    const struct picture *picture = context;
    char *text = NULL;
    size_t size = 0;
    const char *nothing = NULL;
    FILE *memory = prof_open_memory(&text, &size);
    if (!memory)
        return prof_fail(err, PROF_NOMEM, "cannot draw: out of memory");
    enum prof_status status = figure_text(picture, memory, &nothing, err);
    bool kept = prof_close_stream(memory);
    prof_gnuplot_terminal(out, terminal);
    if (!status && !kept)
        status = prof_fail(err, PROF_NOMEM, "cannot draw: out of memory");
    else if (!status && nothing)
        put_empty_figure(out, figures[picture->figure].title, nothing);
    else if (!status)
        fwrite(text, 1, size, out);
    free(text);
    return status;
}

static enum prof_status draw_figure(void *context, FILE *out, struct prof_error *err)
{
    const struct picture *picture = context;
    return prof_gnuplot_draw(write_figure_script, context, picture->terminal, "", out, err);
}

static enum prof_status save_figure(const struct prof_plots *plots, const char *folder,
                                    size_t figure, bool png, struct prof_error *err)
{
    struct picture picture = {plots, figure, png ? "pngcairo" : "svg"};
    char *path = NULL;
    if (asprintf(&path, "%s/%s.%s", folder, figures[figure].name, png ? "png" : "svg") < 0)
        return prof_fail(err, PROF_NOMEM, "cannot draw: out of memory");
    enum prof_status status = prof_report_save_as(path, &picture, draw_figure, err);
    free(path);
    return status;
}

/* ---- all --------------------------------------------------------------------------------------
 */

static enum prof_status load_plots(struct prof_plots *plots, struct prof_error *err)
{
    struct prof_capture *capture = plots->capture;
    const struct prof_filter *filter = plots->options ? plots->options->filter : NULL;
    enum prof_status status =
        prof_utilisation(capture, filter, 0, BUCKETS, &plots->utilisation, err);
    if (!status)
        status = prof_kernel_summary(capture, filter, PROF_BY_NAME, &plots->kernels, err);
    if (!status)
        status = prof_transfer_summary(capture, filter, &plots->transfers, err);
    if (!status)
        status = prof_memory_timeline(capture, filter, -1, MEMORY_POINTS, &plots->memory, err);
    if (!status)
        status = prof_roofline(capture, filter, PROF_ROOFLINE_KERNELS, &plots->roofline, err);
    return status;
}

enum prof_status prof_report_plots(struct prof_capture *capture,
                                   const struct prof_report_options *options, const char *folder,
                                   size_t *written, struct prof_error *err)
{
    struct prof_plots plots = {.capture = capture, .options = options};
    *written = 0;
    bool made = !mkdir(folder, 0777);
    if (!made && errno != EEXIST)
        return prof_fail_errno(err, PROF_IO, "cannot make the folder %s", folder);
    enum prof_status status = load_plots(&plots, err);
    for (size_t i = 0; !status && i < 2 * FIGURES; i++) {
        status = save_figure(&plots, folder, i / 2, i % 2, err);
        *written += !status;
    }
    if (status && made)
        rmdir(folder); /* when it is empty */
    prof_utilisation_free(&plots.utilisation);
    prof_kernel_summary_free(&plots.kernels);
    prof_transfer_summary_free(&plots.transfers);
    prof_memory_timeline_free(&plots.memory);
    prof_roofline_free(&plots.roofline);
    return status;
}
