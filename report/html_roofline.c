/* The roofline as a picture in markup (SVG): read with scripts off and on paper; with scripts its
 * points show more by mouse and keyboard. Both axes are logarithmic; a disc's area is its share of
 * the time of what is drawn; its number leads to the list below, so that nothing is said by colour
 * alone. */
#include <math.h>
#include <stdio.h>

#include "libprof/base/format.h"
#include "report/html.h"
#include "report/columns.h"
#include "report/figures.h"

#define POINTS 20
#define LEAST_SHARE 0.002 /* of the time of those before it */
#define DEVICES 8
#define WIDTH 960.0
#define HEIGHT 440.0
#define LEFT 112.0
#define RIGHT 926.0
#define TOP 16.0
#define BOTTOM 392.0
#define DECADES 40 /* lines that can be distinguished; wilder numbers are not drawn */

struct figure {
    const struct prof_report_data *data;
    FILE *out;
    int64_t device;
    const struct prof_roofline_point *points[POINTS];
    size_t count, left_out;
    double sum_ns;
    double x_min, x_max, y_min, y_max; /* powers of ten */
};

static double point_intensity(const struct prof_roofline_point *point)
{
    return point->roofs[prof_report_roof_level(point)].intensity;
}

static bool is_svg_drawable(const struct prof_roofline_point *point)
{
    double x = point_intensity(point), y = point->flop_rate;
    return isfinite(x) && isfinite(y) && x > 1e-12 && x < 1e12 && y > 1 && y < 1e24;
}

/* By time, largest first; what takes next to none would stretch the axes for nothing. */
static void choose_svg_points(struct figure *f)
{
    const struct prof_roofline *roofline = &f->data->roofline;
    double most = 0;
    for (size_t i = 0; i < roofline->count; i++) {
        const struct prof_roofline_point *point = &roofline->points[i];
        if (point->device != f->device || !is_svg_drawable(point))
            continue;
        most += (double)point->time_ns;
        if (f->count < POINTS && (double)point->time_ns >= LEAST_SHARE * most) {
            f->points[f->count++] = point;
            f->sum_ns += (double)point->time_ns;
        } else {
            f->left_out++;
        }
    }
}

static void stretch(double *low, double *high, double value)
{
    if (!isfinite(value) || value <= 0)
        return;
    *low = fmin(*low, log10(value));
    *high = fmax(*high, log10(value));
}

/* NAN: not known. */
static double ceiling_of_pipe(const struct figure *f, enum prof_ceiling_kind pipe)
{
    const struct prof_ceiling *c = prof_ceiling_find(&f->data->roofline.ceilings, f->device, pipe);
    return c && c->value > 0 ? c->value : NAN;
}

/* The pipe that the point is held against; where it is not known, the highest that it may be, so
 * that the point is below something. */
static enum prof_ceiling_kind pipe_above(const struct prof_roofline_point *point)
{
    return point->pipe == PROF_CEILINGS ? PROF_CEILING_TENSOR_FP16 : point->pipe;
}

/* Whole decades around the points and their ridges; to the right, room for the words of the roofs.
 */
static void set_axes(struct figure *f)
{
    f->x_min = f->y_min = INFINITY;
    f->x_max = f->y_max = -INFINITY;
    for (size_t i = 0; i < f->count; i++) {
        const struct prof_roofline_point *p = f->points[i];
        double roof = p->roofs[prof_report_roof_level(p)].ceiling;
        stretch(&f->x_min, &f->x_max, point_intensity(p));
        stretch(&f->y_min, &f->y_max, p->flop_rate);
        double pipe = ceiling_of_pipe(f, pipe_above(p));
        stretch(&f->y_min, &f->y_max, pipe);
        stretch(&f->x_min, &f->x_max, pipe / roof);
    }
    f->x_min = floor(f->x_min - 0.1);
    f->x_max = ceil(f->x_max + 0.7);
    f->y_min = floor(f->y_min - 0.1);
    f->y_max = ceil(f->y_max + 0.1);
    f->x_max = fmin(f->x_max, f->x_min + DECADES);
    f->y_max = fmin(f->y_max, f->y_min + DECADES);
}

static double x_of(const struct figure *f, double intensity)
{
    return LEFT + (log10(intensity) - f->x_min) / (f->x_max - f->x_min) * (RIGHT - LEFT);
}

static double y_of(const struct figure *f, double rate)
{
    return BOTTOM - (log10(rate) - f->y_min) / (f->y_max - f->y_min) * (BOTTOM - TOP);
}

/* ---- drawing --------------------------------------------------------------------------------- */

static void put_svg_line(FILE *out, const char *class_, double x1, double y1, double x2, double y2)
{
    prof_html_print(out, "<line class=\"%s\" x1=\"%f\" y1=\"%f\" x2=\"%f\" y2=\"%f\"/>\n", class_,
                    x1, y1, x2, y2);
}

static void put_svg_label(FILE *out, const char *class_, double x, double y, const char *text)
{
    prof_html_print(out, "<text class=\"%s\" x=\"%f\" y=\"%f\">%s</text>\n", class_, x, y, text);
}

/* "0.01", "1", "1e+06" */
static struct prof_text decade_text(double decade)
{
    struct prof_text text = prof_ratio(pow(10, decade));
    if (decade >= 0 && decade < 6)
        return prof_count((int64_t)pow(10, decade));
    if (decade < 0 && decade > -5)
        snprintf(text.text, sizeof text.text, "0.%0*d", (int)-decade, 1);
    return text;
}

static void put_svg_axes(const struct figure *f)
{
    int every = (int)ceil((f->x_max - f->x_min) / 12);
    for (double decade = f->x_min; decade <= f->x_max; decade += every) {
        double x = x_of(f, pow(10, decade));
        put_svg_line(f->out, "grid", x, TOP, x, BOTTOM);
        put_svg_label(f->out, "tick middle", x, BOTTOM + 18, decade_text(decade).text);
    }
    every = (int)ceil((f->y_max - f->y_min) / 10);
    for (double decade = f->y_min; decade <= f->y_max; decade += every) {
        double y = y_of(f, pow(10, decade));
        put_svg_line(f->out, "grid", LEFT, y, RIGHT, y);
        put_svg_label(f->out, "tick end", LEFT - 6, y + 4, prof_flop_rate(pow(10, decade)).text);
    }
    put_svg_label(f->out, "tick middle", (LEFT + RIGHT) / 2, HEIGHT - 10,
                  "FLOP per byte (arithmetic intensity)");
}

/* The pipes above the points, each once. */
static double highest_svg_pipe(const struct figure *f, bool seen[PROF_CEILINGS + 1])
{
    double highest = NAN;
    for (size_t i = 0; i < f->count; i++) {
        enum prof_ceiling_kind pipe = pipe_above(f->points[i]);
        double roof = ceiling_of_pipe(f, pipe);
        if (!isfinite(roof))
            continue;
        seen[pipe] = true;
        highest = fmax(highest, roof);
    }
    return highest;
}

/* A bandwidth: a line of slope one up to the highest pipe, or to the frame. */
static void put_slope(const struct figure *f, enum prof_roof_level level, double highest,
                      double off)
{
    char text[80];
    double bandwidth = prof_roof_ceiling(&f->data->roofline.ceilings, f->device, level);
    if (!isfinite(bandwidth) || bandwidth <= 0)
        return;
    double top = isfinite(highest) ? highest : pow(10, f->y_max);
    double from = fmax(pow(10, f->x_min), pow(10, f->y_min) / bandwidth);
    double to = fmin(pow(10, f->x_max), top / bandwidth);
    if (!(to > from))
        return;
    put_svg_line(f->out, "roof", x_of(f, from), y_of(f, from * bandwidth), x_of(f, to),
                 y_of(f, to * bandwidth));
    snprintf(text, sizeof text, "%s %s", prof_roof_level_text(level), prof_rate(bandwidth).text);
    double at = sqrt(from * to), x = x_of(f, at), y = y_of(f, at * bandwidth);
    double slope =
        (y_of(f, to * bandwidth) - y_of(f, from * bandwidth)) / (x_of(f, to) - x_of(f, from));
    prof_html_print(
        f->out, "<text class=\"tick middle\" transform=\"translate(%f %f) rotate(%f)\">%s</text>\n",
        x, y + off, atan(slope) * 180 / acos(-1), text);
}

/* Of matrix products that are drawn, what the vendor's library reaches: a line below the pipe's
 * roof, and words behind its own. */
static void put_product(const struct figure *f, enum prof_ceiling_kind pipe, double from,
                        char *text, size_t size)
{
    double value = NAN;
    for (size_t i = 0; i < f->count; i++)
        if (f->points[i]->pipe == pipe && f->points[i]->matmul_ceiling > 0)
            value = f->points[i]->matmul_ceiling;
    if (!isfinite(value))
        return;
    double y = y_of(f, value);
    put_svg_line(f->out, "roof product", from, y, RIGHT, y);
    prof_append(text, size, ", matmul %s (dashed)", prof_flop_rate(value).text);
}

/* Pipes from the lowest roof up; a label that would lie on the one below it moves up. */
static void put_svg_pipes(const struct figure *f, bool seen[PROF_CEILINGS + 1])
{
    char text[160];
    double dram = prof_roof_ceiling(&f->data->roofline.ceilings, f->device, PROF_ROOF_DRAM);
    double label = INFINITY;
    for (;;) {
        enum prof_ceiling_kind lowest = PROF_CEILINGS;
        for (enum prof_ceiling_kind pipe = 0; pipe < PROF_CEILINGS; pipe++)
            if (seen[pipe] &&
                (lowest == PROF_CEILINGS || ceiling_of_pipe(f, pipe) < ceiling_of_pipe(f, lowest)))
                lowest = pipe;
        if (lowest == PROF_CEILINGS)
            return;
        seen[lowest] = false;
        double roof = ceiling_of_pipe(f, lowest), y = y_of(f, roof);
        double from = isfinite(dram) ? fmax(x_of(f, roof / dram), LEFT) : LEFT;
        put_svg_line(f->out, "roof", from < RIGHT ? from : LEFT, y, RIGHT, y);
        label = fmin(y - 5, label - 15);
        snprintf(text, sizeof text, "%s %s", prof_ceiling_of(lowest).text,
                 prof_flop_rate(roof).text);
        put_product(f, lowest, from < RIGHT ? from : LEFT, text, sizeof text);
        put_svg_label(f->out, "tick end", RIGHT - 4, label, text);
    }
}

static void put_roofs(const struct figure *f)
{
    bool seen[PROF_CEILINGS + 1] = {false};
    double highest = highest_svg_pipe(f, seen);
    put_svg_pipes(f, seen);
    put_slope(f, PROF_ROOF_DRAM, highest, 18);
    put_slope(f, PROF_ROOF_L2, highest, -7);
}

/* "34 FLOP/B, 1.2 TFLOP/s, 45 % of the nearest roof; bound by memory (DRAM); 12 ms in 40 launches"
 */
static void describe_point(const struct prof_roofline_point *p, char *out, size_t size)
{
    snprintf(out, size, "%s FLOP/B, %s", prof_ratio(point_intensity(p)).text,
             prof_flop_rate(p->flop_rate).text);
    if (isfinite(p->roof_share))
        prof_append(out, size, ", %s of the nearest roof", prof_percent(p->roof_share).text);
    if (isfinite(p->matmul_share))
        prof_append(out, size, ", %s of what the library's matrix products reach",
                    prof_percent(p->matmul_share).text);
    if (p->bound)
        prof_append(out, size, "; held back by %s", prof_bound_text(p->bound));
    else if (p->why)
        prof_append(out, size, "; %s", p->why);
    prof_append(out, size, "; %s in %s", prof_duration_ns(p->time_ns).text,
                prof_counted(p->count, "launch", "launches").text);
}

static const char *bound_class(enum prof_bound bound)
{
    switch (bound) {
    case PROF_BOUND_DRAM:
    case PROF_BOUND_L2:
        return "memory";
    case PROF_BOUND_COMPUTE:
        return "compute";
    case PROF_BOUND_NONE:
        return "open";
    default:
        return "latency";
    }
}

static void put_point(const struct figure *f, size_t i)
{
    const struct prof_roofline_point *p = f->points[i];
    char text[400], number[24];
    double x = x_of(f, point_intensity(p)), y = y_of(f, p->flop_rate);
    double share = f->sum_ns > 0 ? (double)p->time_ns / f->sum_ns : 0;
    describe_point(p, text, sizeof text);
    prof_html_print(f->out,
                    "<g class=\"point %s\" tabindex=\"0\" role=\"img\" data-point=\"%zu\" "
                    "aria-label=\"%s: %s\"><circle cx=\"%f\" cy=\"%f\" r=\"%f\"/>",
                    bound_class(p->bound), i + 1, p->name, text, x, y, 8 + 11 * sqrt(share));
    snprintf(number, sizeof number, "%zu", i + 1);
    put_svg_label(f->out, "number middle", x, y + 4, number);
    fputs("</g>\n", f->out);
}

static void put_svg_list(const struct figure *f)
{
    char text[400];
    fputs("<ol class=\"points\">\n", f->out);
    for (size_t i = 0; i < f->count; i++) {
        describe_point(f->points[i], text, sizeof text);
        prof_html_print(f->out,
                        "<li data-point=\"%zu\"><span class=\"mono short\">%s</span>: %s</li>\n",
                        i + 1, f->points[i]->name, text);
    }
    fputs("</ol>\n", f->out);
    if (f->left_out)
        fprintf(f->out, "<p class=\"faint\">Not drawn: %s with less time.</p>\n",
                prof_counted((int64_t)f->left_out, "kernel", "kernels").text);
}

static void put_figure(struct figure *f)
{
    set_axes(f);
    prof_html_print(
        f->out,
        "<figure class=\"roofline\">\n<figcaption>%s: what each kernel reached, under the roofs of "
        "the device. The larger the disc, the more time the kernel took; its colour says whether "
        "memory, arithmetic or something else limits it.</figcaption>\n<svg viewBox=\"0 0 %f %f\" "
        "role=\"group\" aria-label=\"Roofline\">\n",
        prof_report_device_label(prof_device(f->data->capture, f->device)), WIDTH, HEIGHT);
    put_svg_axes(f);
    put_roofs(f);
    for (size_t i = 0; i < f->count; i++) /* by time: small discs lie on large ones */
        put_point(f, i);
    fputs("</svg>\n<p class=\"tip\" aria-hidden=\"true\"></p>\n", f->out);
    put_svg_list(f);
    fputs("</figure>\n", f->out);
}

static void put_roofline_statements(FILE *out, const struct prof_report_data *data)
{
    struct prof_report_notes notes;
    prof_report_roofline_table.notes(data, &notes);
    if (!notes.count)
        return;
    fputs("<ul class=\"statements\">\n", out);
    for (size_t i = 0; i < notes.count; i++)
        prof_html_print(out, "<li>%s</li>\n", notes.text[i]);
    fputs("</ul>\n", out);
}

void prof_html_put_roofline(FILE *out, const struct prof_html_page *page)
{
    const struct prof_roofline *roofline = &page->data->roofline;
    int64_t seen[DEVICES];
    size_t devices = 0;
    for (size_t i = 0; i < roofline->count && devices < DEVICES; i++) {
        size_t d = 0;
        while (d < devices && seen[d] != roofline->points[i].device)
            d++;
        if (d < devices || !is_svg_drawable(&roofline->points[i]))
            continue;
        seen[devices++] = roofline->points[i].device;
        struct figure f = {.data = page->data, .out = out, .device = roofline->points[i].device};
        choose_svg_points(&f);
        put_figure(&f);
    }
    if (devices)
        put_roofline_statements(out, page->data);
}
