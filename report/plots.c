/* Pictures of a capture for people who write reports: every figure of a table as SVG and PNG, by
 * gnuplot. The data is loaded once; each figure is a script over it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/format.h"
#include "libprof/base/utf8.h"
#include "libprof/include/prof_summaries.h"
#include "report/data.h"
#include "report/figures.h"
#include "report/report.h"
#include "report/writers.h"

struct prof_plots {
    struct prof_capture *capture;
    const struct prof_report_options *options;
    struct prof_utilisation utilisation;
    struct prof_kernel_summary kernels;
    struct prof_transfer_summary transfers;
    struct prof_memory_timeline memory;
    struct prof_roofline roofline;
    enum prof_status status; /* of a figure that reads events; with why it failed */
    struct prof_error err;
};

/* Writes the script but for its terminal. Says why there is nothing to draw, or NULL. */
typedef const char *prof_plot(struct prof_plots *plots, FILE *out);

/* What an axis is divided by, so that its numbers are small. */
struct prof_plot_unit {
    double size;
    const char *name;
};

/* Different also for people who see few colours (Okabe and Ito, 2008). */
#define PROF_PLOT_COLOURS 7
static const char *const plot_colours[PROF_PLOT_COLOURS] = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#707070"};

/* The picture's frame: heading, margins, labels of the axes. left: of the plot, 0 to 1. */
static void put_plot_frame(FILE *out, double left, const char *title, const char *below,
                           const char *x_label, const char *y_label)
{
    prof_gnuplot_print(out,
                       "set encoding utf8\nset lmargin at screen %f\nset rmargin at screen %f\n"
                       "set bmargin at screen %f\nset tmargin at screen %f\nset xlabel '%s'\n"
                       "set ylabel '%s' offset 0,0\n" PROF_GNUPLOT_LOOK "unset key\n",
                       left, 0.965, PROF_GNUPLOT_BOTTOM, PROF_GNUPLOT_TOP - 0.02, x_label, y_label);
    prof_gnuplot_heading(out, title, below);
}

/* A row of numbers of a block of data. */
static void put_plot_row(FILE *out, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fputs(i ? " " : "", out);
        if (isfinite(values[i]))
            prof_gnuplot_print(out, "%f", values[i]);
        else
            fputs("NaN", out);
    }
    fputc('\n', out);
}

/* ---- figures --------------------------------------------------------------------------------- */

#define NAME_CELLS 34
#define DEVICES PROF_PLOT_COLOURS
#define BARS 12
#define CURVES 5
#define DOTS 20000 /* transfers that are drawn at most */

#define SECONDS(ns) ((double)(ns) / 1e9)

/* Gnuplot's %c gives the prefix of 1000; on a logarithmic axis, whose tics are round. */
#define TIME_FORMAT "'%.0s %cs'"

static struct prof_plot_unit time_unit(int64_t most_ns)
{
    return most_ns >= 1000000000 ? (struct prof_plot_unit){1e9, "s"}
           : most_ns >= 1000000  ? (struct prof_plot_unit){1e6, "ms"}
           : most_ns >= 1000     ? (struct prof_plot_unit){1e3, "us"}
                                 : (struct prof_plot_unit){1, "ns"};
}

static struct prof_plot_unit byte_unit(int64_t most)
{
    return most >= INT64_C(1) << 30   ? (struct prof_plot_unit){1024.0 * 1024 * 1024, "GiB"}
           : most >= INT64_C(1) << 20 ? (struct prof_plot_unit){1024 * 1024, "MiB"}
           : most >= 1024             ? (struct prof_plot_unit){1024, "KiB"}
                                      : (struct prof_plot_unit){1, "bytes"};
}

static void put_axis_range(FILE *out, const char *axis, double from, double to)
{
    prof_gnuplot_print(out, "set %srange [%f:%f]\n", axis, from, to > from ? to : from + 1);
}

/* Where nothing was recorded nothing is idle: grey, where it is wide enough to be seen. */
static void put_unrecorded_bands(const struct prof_plots *plots, FILE *out, int64_t begin_ns,
                                 int64_t end_ns, double unit)
{
    struct prof_unrecorded_list list;
    const struct prof_filter *filter = plots->options ? plots->options->filter : NULL;
    bool any = false;
    if (prof_unrecorded(plots->capture, filter, &list, NULL))
        list.count = 0;
    for (size_t i = 0; i < list.count; i++) {
        const struct prof_unrecorded *span = &list.data[i];
        int64_t from = span->begin_ns > begin_ns ? span->begin_ns : begin_ns;
        int64_t to = span->end_ns < end_ns ? span->end_ns : end_ns;
        if (to - from <= (end_ns - begin_ns) / PROF_GNUPLOT_WIDTH)
            continue;
        prof_gnuplot_print(out,
                           "set object rectangle from %f, graph 0 to %f, graph 1 behind fillcolor "
                           "rgb '#e3e6ea' fillstyle solid noborder\n",
                           (double)from / unit, (double)to / unit);
        any = true;
    }
    free(list.data);
    if (any)
        fputs("set label 'grey: not recorded' at graph 0.99, graph 0.03 right noenhanced font "
              "',9' tc rgb '" PROF_GNUPLOT_FAINT "'\n",
              out);
}

static struct prof_plot_unit put_time_axis(const struct prof_plots *plots, FILE *out,
                                           int64_t begin_ns, int64_t end_ns)
{
    struct prof_plot_unit unit = time_unit(end_ns);
    put_axis_range(out, "x", (double)begin_ns / unit.size, (double)end_ns / unit.size);
    fprintf(out,
            "set xlabel 'time since the start of the capture, %s'\nset format x '%%g'\n"
            "set style fill solid 1 noborder\n",
            unit.name);
    put_unrecorded_bands(plots, out, begin_ns, end_ns, unit.size);
    return unit;
}

/* A key in one line above the plot. */
static void put_key(FILE *out)
{
    fputs("set key at screen 0.965, screen 0.925 right bottom horizontal noenhanced samplen 2\n",
          out);
}

/* ---- utilisation ----------------------------------------------------------------------------- */

static void put_utilisation_data(const struct prof_plots *plots, FILE *out,
                                 struct prof_plot_unit unit, size_t number, const double *shares)
{
    const struct prof_utilisation *u = &plots->utilisation;
    double begin = (double)u->begin_ns / unit.size;
    double width = (double)(u->end_ns - u->begin_ns) / unit.size / (double)u->buckets;
    fprintf(out, "$d%zu << END\n", number);
    for (size_t i = 0; i <= u->buckets; i++)
        put_plot_row(out,
                     (double[]){begin + width * (double)i,
                                100 * shares[i < u->buckets ? i : u->buckets - 1]},
                     2);
    fputs("END\n", out);
}

/* One device: what it did. Several: how busy each was. */
static const char *plot_utilisation(struct prof_plots *plots, FILE *out)
{
    const struct prof_utilisation *u = &plots->utilisation;
    size_t count = u->count < DEVICES ? u->count : DEVICES;
    if (!count || !u->buckets || u->end_ns <= u->begin_ns)
        return "no device work was recorded";
    char below[200];
    if (u->count == 1)
        snprintf(below, sizeof below, "busy %s of %s",
                 prof_percent((double)u->rows[0].busy_ns / (double)u->rows[0].window_ns).text,
                 prof_duration_ns(u->rows[0].window_ns).text);
    else
        snprintf(below, sizeof below, "%zu devices%s", u->count,
                 count < u->count ? ", the first of them drawn" : "");
    put_plot_frame(out, PROF_GNUPLOT_LEFT, "Utilisation over time", below, "", "busy");
    struct prof_plot_unit unit = put_time_axis(plots, out, u->begin_ns, u->end_ns);
    fputs("set yrange [0:100]\nset format y '%g %%'\n", out);
    put_key(out);
    if (u->count == 1) {
        put_utilisation_data(plots, out, unit, 0, u->rows[0].busy_share);
        put_utilisation_data(plots, out, unit, 1, u->rows[0].kernel_share);
        put_utilisation_data(plots, out, unit, 2, u->rows[0].memcpy_memset_share);
        fputs("plot $d0 using 1:2 with fillsteps lc rgb '#d0e2ee' title 'busy', $d1 using 1:2 with "
              "steps lw 1.5 lc rgb '#0072b2' title 'kernels', $d2 using 1:2 with steps lw 1.5 lc "
              "rgb '#d55e00' title 'memcpy and memset'\n",
              out);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        put_utilisation_data(plots, out, unit, i, u->rows[i].busy_share);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%s$d%zu using 1:2 with steps lw 1.5 lc rgb '%s' title ", i ? ", " : "plot ",
                i, plot_colours[i]);
        const char *label =
            prof_report_device_label(prof_device(plots->capture, u->rows[i].device));
        prof_gnuplot_quoted(out, label, 20);
    }
    fputc('\n', out);
    return NULL;
}

/* ---- kernels --------------------------------------------------------------------------------- */

static const char *plotted_kernel_name(const struct prof_kernel_row *row)
{
    return row->name ? row->name : "n/a";
}

/* The text of a tic is a format of printf to gnuplot. */
static void put_tic(FILE *out, const char *name)
{
    PROF_FREED char *fitted = prof_report_fit(name, NAME_CELLS), *text = NULL;
    size_t size;
    FILE *escaped = fitted ? prof_open_memory(&text, &size) : NULL;
    for (const char *c = fitted; escaped && *c; c++) {
        if (*c == '%')
            fputc('%', escaped);
        fputc(*c, escaped);
    }
    if (!escaped || !prof_close_stream(escaped))
        prof_note(PROF_NOMEM);
    prof_gnuplot_quoted(out, text ? text : "n/a", 2 * NAME_CELLS);
}

static const char *plot_kernels(struct prof_plots *plots, FILE *out)
{
    const struct prof_kernel_summary *k = &plots->kernels;
    size_t count = k->count < BARS ? k->count : BARS;
    char below[200];
    while (count && !k->rows[count - 1].duration_ns.count)
        count--;
    if (!count || k->rows[0].duration_ns.sum <= 0)
        return "no kernels";
    snprintf(below, sizeof below, "%s in %s of %s kernels", prof_duration_ns(k->listed_ns).text,
             prof_counted(k->kernels, "execution", "executions").text,
             prof_count((int64_t)k->count).text);
    struct prof_plot_unit unit = time_unit(k->rows[0].duration_ns.sum);
    put_plot_frame(out, 0.34, "Kernels by time", below, "", "");
    fprintf(out, "set xlabel 'time on the device of all executions, %s'\n", unit.name);
    put_axis_range(out, "x", 0, (double)k->rows[0].duration_ns.sum / unit.size * 1.22);
    put_axis_range(out, "y", 0.4, (double)count + 0.6);
    fputs("set format x '%g'\nset ytics noenhanced (", out);
    for (size_t i = 0; i < count; i++) {
        if (i)
            fputs(", ", out);
        put_tic(out, plotted_kernel_name(&k->rows[i]));
        fprintf(out, " %zu", count - i);
    }
    fputs(")\nset style fill solid 1 noborder\nunset grid\nset grid xtics back lt 1 lw 0.7 lc rgb "
          "'#d8d8d8'\n$bars << END\n",
          out);
    for (size_t i = 0; i < count; i++)
        put_plot_row(
            out, (double[]){(double)k->rows[i].duration_ns.sum / unit.size, (double)(count - i)},
            2);
    fputs("END\n", out);
    for (size_t i = 0; i < count; i++) {
        double length = (double)k->rows[i].duration_ns.sum;
        prof_gnuplot_print(out,
                           "set label '%s, %s' at %f,%zu left offset character 0.6,0 noenhanced "
                           "font ',10'\n",
                           prof_duration(length).text, prof_percent(k->rows[i].share).text,
                           length / unit.size, count - i);
    }
    fputs("plot $bars using ($1/2):2:($1/2):(0.36) with boxxyerror lc rgb '#0072b2' notitle\n",
          out);
    return NULL;
}

/* Shares of a kernel's own executions: one that runs often does not hide the others. */
static void put_curve(FILE *out, size_t number, const struct prof_histogram *h, int64_t total)
{
    fprintf(out, "$c%zu << END\n", number);
    put_plot_row(out, (double[]){prof_histogram_low(h->first) / 1e9, 0}, 2);
    for (uint32_t i = 0; i < h->count; i++)
        put_plot_row(out,
                     (double[]){prof_histogram_low(h->first + i) / 1e9,
                                100 * (double)h->counts[i] / (double)total},
                     2);
    put_plot_row(out, (double[]){prof_histogram_low(h->first + h->count) / 1e9, 0}, 2);
    fputs("END\n", out);
}

static const char *plot_durations(struct prof_plots *plots, FILE *out)
{
    const struct prof_kernel_summary *k = &plots->kernels;
    const struct prof_kernel_row *rows[CURVES];
    size_t count = 0;
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < k->count && count < CURVES; i++) {
        const struct prof_histogram *h = &k->rows[i].histogram;
        if (!h->count)
            continue;
        rows[count++] = &k->rows[i];
        least = fmin(least, fmax(prof_histogram_low(h->first), 1));
        most = fmax(most, prof_histogram_low(h->first + h->count));
    }
    if (!count)
        return "no kernels";
    put_plot_frame(out, PROF_GNUPLOT_LEFT, "How long kernels run",
                   "share of each kernel's own executions, by steps of an eighth; the kernels that "
                   "took most time",
                   "duration of one execution", "executions");
    fputs("set logscale x\nset format x " TIME_FORMAT "\nset format y '%g %%'\n", out);
    put_axis_range(out, "x", pow(10, floor(log10(least))) / 1e9,
                   pow(10, ceil(log10(fmax(most, 2)))) / 1e9);
    fputs("set yrange [0:*]\nset key at screen 0.95, screen 0.86 right top vertical noenhanced "
          "samplen 2\n",
          out);
    for (size_t i = 0; i < count; i++)
        put_curve(out, i, &rows[i]->histogram, rows[i]->duration_ns.count);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%s$c%zu using 1:2 with steps lw 2 lc rgb '%s' title ", i ? ", " : "plot ", i,
                plot_colours[i]);
        prof_gnuplot_quoted(out, plotted_kernel_name(rows[i]), NAME_CELLS);
    }
    fputc('\n', out);
    return NULL;
}

/* ---- transfers ------------------------------------------------------------------------------- */

enum { KINDS = 5 };

static size_t transfer_class(const char *kind)
{
    static const char *const kinds[] = {"HtoD", "DtoH", "DtoD", "PtoP"};
    for (size_t i = 0; kind && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!strcmp(kind, kinds[i]))
            return i;
    }
    return KINDS - 1;
}

struct dots {
    int64_t drawn[KINDS];
    double least_size, most_size, least_rate, most_rate;
};

/* Of many, every n-th: the picture stays the same, and small. */
static enum prof_status put_dots(struct prof_plots *plots, FILE *out, int64_t stride,
                                 struct dots *dots)
{
    const struct prof_filter *filter = plots->options ? plots->options->filter : NULL;
    struct prof_events *events;
    struct prof_event event;
    PROF_TRY(prof_events_open(plots->capture, filter, PROF_EVENTS(PROF_EVENT_TRANSFER), &events,
                              &plots->err));
    fputs("$dots << END\n", out);
    for (int64_t i = 0; prof_events_next(events, &event);) {
        if (event.bytes <= 0 || event.duration_ns <= 0 || i++ % stride)
            continue;
        size_t class_ = transfer_class(event.name);
        double size = (double)event.bytes, rate = size / SECONDS(event.duration_ns);
        dots->drawn[class_]++;
        dots->least_size = fmin(dots->least_size, size);
        dots->most_size = fmax(dots->most_size, size);
        dots->least_rate = fmin(dots->least_rate, rate);
        dots->most_rate = fmax(dots->most_rate, rate);
        put_plot_row(out, (double[]){size, rate, (double)class_}, 3);
    }
    fputs("END\n", out);
    return prof_events_close(events, &plots->err);
}

static const char *plot_transfers(struct prof_plots *plots, FILE *out)
{
    static const char *const prefixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    static const char *const names[KINDS] = {"host to device", "device to host", "within a device",
                                             "between devices", "other"};
    struct dots dots = {.least_size = INFINITY, .least_rate = INFINITY};
    int64_t total = plots->transfers.total.memcpys;
    int64_t stride = total > DOTS ? (total + DOTS - 1) / DOTS : 1;
    plots->status = put_dots(plots, out, stride, &dots);
    bool any = false;
    for (size_t i = 0; i < KINDS; i++)
        any |= dots.drawn[i] > 0;
    if (plots->status || !any)
        return "no memcpys of known size and duration";
    char below[200];
    snprintf(below, sizeof below, "%s copied%s",
             prof_bytes_of(plots->transfers.total.memcpy_bytes).text,
             stride > 1 ? ", one of several drawn: there are too many" : "");
    put_plot_frame(out, PROF_GNUPLOT_LEFT, "Memcpys by size and bandwidth", below, "size", "");
    put_axis_range(out, "x", dots.least_size / 2, dots.most_size * 2);
    put_axis_range(out, "y", dots.least_rate / 2, dots.most_rate * 2);
    fputs("set logscale xy\nset format y '%.0s %cB/s'\nset xtics (", out);
    for (int bits = 0; bits <= 60; bits += 5)
        fprintf(out, "%s'%d %sB' %lld", bits ? ", " : "", bits % 10 ? 32 : 1, prefixes[bits / 10],
                1LL << bits);
    fputs(")\n", out);
    put_key(out);
    const char *separator = "plot ";
    for (size_t i = 0; i < KINDS; i++) {
        if (!dots.drawn[i])
            continue;
        fprintf(out,
                "%s$dots using ($3==%zu?$1:NaN):2 with points pt 7 ps 0.6 lc rgb '%s' title '%s'",
                separator, i, plot_colours[i], names[i]);
        separator = ", ";
    }
    fputc('\n', out);
    return NULL;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static const char *plot_memory(struct prof_plots *plots, FILE *out)
{
    const struct prof_memory_timeline *m = &plots->memory;
    int64_t end = prof_end_ns(plots->capture);
    const struct prof_filter *filter = plots->options ? plots->options->filter : NULL;
    if (!m->count || m->peak_bytes <= 0)
        return "no allocations";
    if (filter && filter->end_ns)
        end = filter->end_ns;
    if (end < m->points[m->count - 1].time_ns)
        end = m->points[m->count - 1].time_ns;
    char below[200];
    snprintf(below, sizeof below, "all kinds of memory; most: %s at %s",
             prof_bytes_of(m->peak_bytes).text, prof_duration_ns(m->peak_ns).text);
    put_plot_frame(out, PROF_GNUPLOT_LEFT, "Allocated memory over time", below, "", "");
    struct prof_plot_unit time = put_time_axis(plots, out, filter ? filter->begin_ns : 0, end);
    struct prof_plot_unit size = byte_unit(m->peak_bytes);
    put_axis_range(out, "y", 0, (double)m->peak_bytes / size.size * 1.08);
    fprintf(out, "set ylabel '%s'\nset format y '%%g'\n$memory << END\n", size.name);
    for (size_t i = 0; i < m->count; i++)
        put_plot_row(out,
                     (double[]){(double)m->points[i].time_ns / time.size,
                                (double)m->points[i].bytes / size.size,
                                (double)m->points[i].peak_bytes / size.size},
                     3);
    const struct prof_memory_point *last = &m->points[m->count - 1];
    put_plot_row(out,
                 (double[]){(double)end / time.size, (double)last->bytes / size.size,
                            (double)last->bytes / size.size},
                 3);
    fputs("END\nplot $memory using 1:3 with fillsteps lc rgb '#d0e2ee' notitle, $memory using 1:2 "
          "with steps lw 1.5 lc rgb '#0072b2' notitle\n",
          out);
    return NULL;
}

/* ---- roofline -------------------------------------------------------------------------------- */

static const char *plot_roofline(struct prof_plots *plots, FILE *out)
{
    bool any = prof_report_roofline_script(&plots->roofline, plots->capture, out, NULL) == PROF_OK;
    return any ? NULL : "no kernel has both FLOP and bytes: see docs/guide/roofline.md";
}

/* ---- pictures -------------------------------------------------------------------------------- */

#define BUCKETS 400 /* of the utilisation: the plot has about 900 pixels */
#define MEMORY_POINTS 4000

static const struct figure {
    const char *name, *title;
    prof_plot *plot;
} figures[] = {
    {"utilisation", "Utilisation over time", plot_utilisation},
    {"kernel-time", "Kernels by time", plot_kernels},
    {"kernel-durations", "How long kernels run", plot_durations},
    {"transfers", "Memcpys by size and bandwidth", plot_transfers},
    {"memory", "Allocated memory over time", plot_memory},
    {"roofline", "Roofline", plot_roofline},
};

/* Instead of a figure: that there is nothing, and why. */
static void put_empty_figure(FILE *out, const char *title, const char *why)
{
    char text[500];
    fputs("set encoding utf8\nunset border\nunset tics\nunset key\nset xrange [0:1]\nset yrange "
          "[0:1]\n",
          out);
    prof_gnuplot_heading(out, title, "");
    fputs("set label ", out);
    snprintf(text, sizeof text, "n/a: %s", why);
    prof_gnuplot_quoted(out, text, 150);
    fputs(" at screen 0.5, screen 0.5 center noenhanced tc rgb '" PROF_GNUPLOT_FAINT "'\n"
          "plot -1 notitle\n",
          out);
}

struct picture {
    const char *script, *terminal;
};

static enum prof_status draw_picture(void *context, FILE *out, struct prof_error *err)
{
    const struct picture *picture = context;
    return prof_gnuplot_draw(picture->script, picture->terminal, "", out, err);
}

static enum prof_status save_picture(const char *script, const char *folder, const char *name,
                                     bool png, struct prof_error *err)
{
    struct picture picture = {script, png ? "pngcairo" : "svg"};
    PROF_FREED char *path = NULL;
    if (asprintf(&path, "%s/%s.%s", folder, name, png ? "png" : "svg") < 0)
        return prof_fail(err, PROF_NOMEM, "cannot draw: out of memory");
    return prof_report_save_as(path, &picture, draw_picture, err);
}

/* Both pictures of a figure; *written grows by those that were. */
static enum prof_status save_figure(struct prof_plots *plots, const struct figure *figure,
                                    const char *folder, size_t *written, struct prof_error *err)
{
    PROF_FREED char *script = NULL;
    size_t size;
    FILE *out = prof_open_memory(&script, &size);
    if (!out)
        return prof_fail(err, PROF_NOMEM, "cannot draw: out of memory");
    const char *nothing = figure->plot(plots, out);
    if (nothing)
        put_empty_figure(out, figure->title, nothing);
    enum prof_status status = plots->status;
    if (status && err)
        *err = plots->err;
    if (!prof_close_stream(out) && !status)
        status = prof_fail(err, PROF_NOMEM, "cannot draw: out of memory");
    for (int png = 0; png < 2 && !status; png++) {
        status = save_picture(script, folder, figure->name, png, err);
        *written += !status;
    }
    return status;
}

/* ---- all ------------------------------------------------------------------------------------- */

static enum prof_status load_plots(struct prof_plots *plots, struct prof_error *err)
{
    struct prof_capture *capture = plots->capture;
    const struct prof_filter *filter = plots->options ? plots->options->filter : NULL;
    PROF_TRY(prof_utilisation(capture, filter, 0, BUCKETS, &plots->utilisation, err));
    PROF_TRY(prof_kernel_summary(capture, filter, PROF_BY_NAME, &plots->kernels, err));
    PROF_TRY(prof_transfer_summary(capture, filter, &plots->transfers, err));
    PROF_TRY(prof_memory_timeline(capture, filter, -1, MEMORY_POINTS, &plots->memory, err));
    return prof_roofline(capture, filter, PROF_ROOFLINE_KERNELS, &plots->roofline, err);
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
    for (size_t i = 0; !status && i < sizeof figures / sizeof figures[0]; i++)
        status = save_figure(&plots, &figures[i], folder, written, err);
    if (status && made)
        rmdir(folder); /* when it is empty */
    prof_utilisation_free(&plots.utilisation);
    prof_kernel_summary_free(&plots.kernels);
    prof_transfer_summary_free(&plots.transfers);
    prof_memory_timeline_free(&plots.memory);
    prof_roofline_free(&plots.roofline);
    return status;
}
