/* Draws by gnuplot; see figures.h. The script reaches it in a file of our own and the picture comes
 * back through a pipe, so that gnuplot writes no file itself. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/format.h"
#include "libprof/base/utf8.h"
#include "report/figures.h"
#include "report/writers.h"

extern char **environ;

/* ---- what scripts share ---------------------------------------------------------------------- */

/* In single quotes gnuplot reads nothing but their end; quotes written twice, as its manual has it,
 * it does not always take. So they become the typographic ones. */
void prof_gnuplot_quoted(FILE *out, const char *text, size_t cells)
{
    PROF_FREED char *fitted = prof_report_fit(text, cells);
    fputc('\'', out);
    for (const char *c = fitted ? fitted : ""; *c; c++) {
        if (*c == '\'')
            fputs("\xe2\x80\x99", out);
        else
            fputc((unsigned char)*c < ' ' || *c == 0x7f ? ' ' : *c, out);
    }
    fputc('\'', out);
}

static void put_gnuplot_text(FILE *out, const char *text)
{
    fputs(text, out);
}

static void put_gnuplot_real(FILE *out, double value)
{
    char text[64];
    prof_print_real(text, value);
    fputs(text, out);
}

void prof_gnuplot_print(FILE *out, const char *format, ...)
{
    static const struct prof_quoting quoting = {put_gnuplot_text, put_gnuplot_real};
    va_list arguments;
    va_start(arguments, format);
    prof_print_quoted(out, &quoting, format, arguments);
    va_end(arguments);
}

/* A text at a place of the picture, 0 to 1 each. */
static void prof_gnuplot_text(FILE *out, double x, double y, const char *style, const char *text,
                              size_t cells)
{
    fputs("set label ", out);
    prof_gnuplot_quoted(out, text, cells);
    prof_gnuplot_print(out, " at screen %f, screen %f noenhanced %s\n", x, y, style);
}

void prof_gnuplot_heading(FILE *out, const char *title, const char *below)
{
    prof_gnuplot_text(out, PROF_GNUPLOT_LEFT, 0.96, "font ',15'", title, 60);
    if (!*below)
        return;
    prof_gnuplot_text(out, PROF_GNUPLOT_LEFT, 0.92, "font ',10' tc rgb '" PROF_GNUPLOT_FAINT "'",
                      below, 110);
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* gnuplot with the script as its input; *picture is the reading end of its output. 0, or errno. */
static int start_gnuplot(int script, pid_t *child, int *picture)
{
    static char *const arguments[] = {"gnuplot", "-d", "-", NULL}; /* no settings of the user */
    posix_spawn_file_actions_t actions;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, script, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    int code = posix_spawnp(child, "gnuplot", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (code)
        close(ends[0]);
    *picture = ends[0];
    return code;
}

static bool copy_picture(int from, FILE *to, size_t *bytes)
{
    char block[1 << 16];
    for (;;) {
        ssize_t got = read(from, block, sizeof block);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0;
        *bytes += (size_t)got;
        if (fwrite(block, 1, (size_t)got, to) != (size_t)got)
            return false;
    }
}

static enum prof_status draw_with_gnuplot(int script, const char *otherwise, FILE *out,
                                          struct prof_error *err)
{
    pid_t child;
    int picture = -1, ending = 0;
    size_t bytes = 0;
    int code = start_gnuplot(script, &child, &picture);
    if (code) {
        errno = code;
        return code == ENOENT
                   ? prof_fail(err, PROF_UNSUPPORTED,
                               "gnuplot is not installed (Debian: gnuplot-nox): install it%s",
                               otherwise)
                   : prof_fail_errno(err, PROF_SYSTEM, "cannot start gnuplot");
    }
    bool copied = copy_picture(picture, out, &bytes);
    int why = errno;
    close(picture); /* before waiting: it may be writing still */
    while (waitpid(child, &ending, 0) < 0 && errno == EINTR)
        ;
    if (!copied) {
        errno = why;
        return prof_fail_errno(err, PROF_IO, "cannot write the figure");
    }
    if (!bytes || !WIFEXITED(ending) || WEXITSTATUS(ending))
        return prof_fail(err, PROF_SYSTEM, "gnuplot drew nothing%s", otherwise);
    return prof_report_flush(out, err);
}

/* A character that no font has is drawn in a PNG as its number, as large as the picture. So only
 * those stand in one that every font has (European letters, signs); the others are boxes. In an SVG
 * the reader's fonts decide. */
static void put_drawable(FILE *out, const char *text, size_t left)
{
    for (size_t bytes; left; text += bytes, left -= bytes) {
        uint32_t code = 0;
        bytes = prof_report_utf8(text, left, &code);
        bool drawn = code < 0x590 || (code >= 0x2000 && code < 0x2c00);
        if (bytes && drawn)
            fwrite(text, 1, bytes, out);
        else
            fputs(bytes ? "\xe2\x96\xa1" : "?", out);
        bytes = bytes ? bytes : 1;
    }
}

/* An unlinked file with the script, at its begin; -1 and *err. */
static int script_file(const char *script, const char *terminal, struct prof_error *err)
{
    FILE *file = tmpfile();
    if (!file) {
        prof_fail_errno(err, PROF_IO, "cannot make a temporary file for the figure");
        return -1;
    }
    fprintf(file, "set terminal %s size %d,%d noenhanced font 'Sans,11' background '#ffffff'\n",
            terminal, PROF_GNUPLOT_WIDTH, PROF_GNUPLOT_HEIGHT);
    if (!strcmp(terminal, "svg"))
        fputs(script, file);
    else
        put_drawable(file, script, strlen(script));
    int fd = prof_report_flush(file, err) ? -1 : fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
    if (fd < 0 && !err->status)
        prof_fail_errno(err, PROF_SYSTEM, "cannot draw the figure");
    if (fd >= 0)
        lseek(fd, 0, SEEK_SET);
    fclose(file);
    return fd;
}

enum prof_status prof_gnuplot_draw(const char *script, const char *terminal, const char *otherwise,
                                   FILE *out, struct prof_error *err)
{
    struct prof_error why = {0};
    int fd = script_file(script, terminal, &why);
    if (fd < 0) {
        if (err)
            *err = why;
        return why.status;
    }
    enum prof_status status = draw_with_gnuplot(fd, otherwise, out, err);
    close(fd);
    return status;
}

/* ---- the roofline ---------------------------------------------------------------------------- */

/* The roofline as a gnuplot script: both axes logarithmic, a line for each roof, a disc for each
 * kernel whose area is its share of the time, numbered, with a list of the numbers beside the plot.
 */

#define MOST_POINTS 15 /* that the list beside the plot has room for */
#define LEAST_SHARE                                                                                \
    0.002 /* of the time; one of them far away would stretch the axes for nothing                  \
           */
#define NAME_CELLS 34
#define TOGETHER 0.035 /* share of the plot within which two points are one to the eye */
#define LEFT PROF_GNUPLOT_LEFT
#define RIGHT 0.615 /* the list is beside the plot */
#define BOTTOM PROF_GNUPLOT_BOTTOM
#define TOP PROF_GNUPLOT_TOP

static const char *const colours[] = {
    [PROF_BOUND_NONE] = "#b0b0b0",     [PROF_BOUND_DRAM] = "#0072b2",
    [PROF_BOUND_L2] = "#56b4e9",       [PROF_BOUND_COMPUTE] = "#d55e00",
    [PROF_BOUND_LATENCY] = "#e69f00",  [PROF_BOUND_LAUNCH] = "#cc79a7",
    [PROF_BOUND_TRANSFER] = "#009e73", [PROF_BOUND_HOST] = "#707070",
};

struct figure {
    const struct prof_roofline *roofline;
    struct prof_capture *capture;
    FILE *out;
    int64_t device;
    const struct prof_roofline_point *points[MOST_POINTS];
    size_t count;
    size_t left_out; /* points of the device that could be drawn, and are not */
    double x_min, x_max, y_min, y_max;
};

/* ---- what is drawn --------------------------------------------------------------------------- */

enum prof_roof_level prof_report_roof_level(const struct prof_roofline_point *point)
{
    return point->roofs[PROF_ROOF_DRAM].intensity > 0 ? PROF_ROOF_DRAM : PROF_ROOF_L2;
}

static bool is_gnuplot_drawable(const struct prof_roofline_point *point)
{
    double x = point->roofs[prof_report_roof_level(point)].intensity;
    return x > 0 && isfinite(x) && point->flop_rate > 0 && isfinite(point->flop_rate);
}

static double share_of_time(const struct figure *f, const struct prof_roofline_point *point)
{
    double sum = 0;
    for (size_t i = 0; i < f->roofline->count; i++)
        if (f->roofline->points[i].device == f->device)
            sum += (double)f->roofline->points[i].time_ns;
    return sum > 0 ? (double)point->time_ns / sum : 0;
}

static void choose_points(struct figure *f)
{
    double best = -1;
    for (size_t i = 0; i < f->roofline->count; i++) {
        const struct prof_roofline_point *p = &f->roofline->points[i];
        double sum = 0;
        for (size_t j = i; is_gnuplot_drawable(p) && j < f->roofline->count; j++)
            if (f->roofline->points[j].device == p->device &&
                is_gnuplot_drawable(&f->roofline->points[j]))
                sum += (double)f->roofline->points[j].time_ns;
        if (is_gnuplot_drawable(p) && sum > best) {
            best = sum;
            f->device = p->device;
        }
        if (best >= 0 && i >= 64) /* points come by time: the first ones decide */
            break;
    }
    for (size_t i = 0; best >= 0 && i < f->roofline->count; i++) {
        const struct prof_roofline_point *p = &f->roofline->points[i];
        if (p->device != f->device || !is_gnuplot_drawable(p))
            continue;
        if (f->count < MOST_POINTS && (!f->count || share_of_time(f, p) >= LEAST_SHARE))
            f->points[f->count++] = p;
        else
            f->left_out++;
    }
}

static double device_ceiling(const struct figure *f, enum prof_ceiling_kind kind)
{
    const struct prof_ceiling *c = prof_ceiling_find(&f->roofline->ceilings, f->device, kind);
    return c ? c->value : NAN;
}

static double level_ceiling(const struct figure *f, enum prof_roof_level level)
{
    return prof_roof_ceiling(&f->roofline->ceilings, f->device, level);
}

/* FP32 always, the others where a point is held against them; where it is not known which one, the
 * tensor cores' too, so that the point is below something. */
static bool pipe_drawn(const struct figure *f, enum prof_ceiling_kind pipe)
{
    bool used = pipe == PROF_CEILING_FP32;
    for (size_t i = 0; i < f->count; i++)
        used |= f->points[i]->pipe == pipe ||
                (f->points[i]->pipe == PROF_CEILINGS && pipe == PROF_CEILING_TENSOR_FP16);
    return used && device_ceiling(f, pipe) > 0;
}

static double highest_gnuplot_pipe(const struct figure *f)
{
    double highest = NAN;
    for (enum prof_ceiling_kind k = PROF_CEILING_FP64; k <= PROF_CEILING_TENSOR_FP8; k++)
        if (pipe_drawn(f, k))
            highest = fmax(highest, device_ceiling(f, k));
    return highest;
}

static void include_x(struct figure *f, double x)
{
    if (x > 0 && isfinite(x)) {
        f->x_min = fmin(f->x_min, x);
        f->x_max = fmax(f->x_max, x);
    }
}

static void include_y(struct figure *f, double y)
{
    if (y > 0 && isfinite(y)) {
        f->y_min = fmin(f->y_min, y);
        f->y_max = fmax(f->y_max, y);
    }
}

/* Points and ridges, with room around them; bounded, since a capture may hold any number. */
static void choose_axes(struct figure *f)
{
    double top = highest_gnuplot_pipe(f);
    f->x_min = f->y_min = INFINITY;
    f->x_max = f->y_max = 0;
    for (size_t i = 0; i < f->count; i++) {
        for (int level = 0; level <= PROF_ROOF_L2; level++)
            include_x(f, f->points[i]->roofs[level].intensity);
        include_y(f, f->points[i]->flop_rate);
    }
    include_x(f, top / level_ceiling(f, PROF_ROOF_DRAM));
    include_x(f, top / level_ceiling(f, PROF_ROOF_L2));
    include_y(f, top);
    f->x_min = fmax(f->x_min / 4, 1e-6);
    f->x_max = fmax(fmin(f->x_max * 8, 1e9), f->x_min * 10);
    f->y_min = fmax(f->y_min / 6, 1e-3);
    f->y_max = fmax(fmin(f->y_max * 3, 1e21), f->y_min * 10);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void put_gnuplot_line(struct figure *f, double x0, double y0, double x1, double y1,
                             const char *style)
{
    prof_gnuplot_print(f->out, "set arrow from %f,%f to %f,%f nohead back %s\n", x0, y0, x1, y1,
                       style);
}

static void put_level(struct figure *f, enum prof_roof_level level, const char *style)
{
    double bandwidth = level_ceiling(f, level), top = highest_gnuplot_pipe(f);
    double x0 = fmax(f->x_min, f->y_min / bandwidth), x1 = f->x_max;
    if (!(bandwidth > 0))
        return;
    if (top > 0)
        x1 = fmin(x1, top / bandwidth);
    x1 = fmin(x1, f->y_max / bandwidth);
    if (x0 >= x1)
        return;
    put_gnuplot_line(f, x0, bandwidth * x0, x1, bandwidth * x1, style);
    double slope = (TOP - BOTTOM) * PROF_GNUPLOT_HEIGHT / log10(f->y_max / f->y_min) /
                   ((RIGHT - LEFT) * PROF_GNUPLOT_WIDTH / log10(f->x_max / f->x_min));
    double x = x0 * pow(x1 / x0, level == PROF_ROOF_DRAM ? 0.45 : 0.3);
    prof_gnuplot_print(f->out,
                       "set label '%s %s' at %f,%f noenhanced rotate by %d offset character "
                       "-0.4,0.7 font ',11'\n",
                       prof_roof_level_text(level), prof_rate(bandwidth).text, x, bandwidth * x,
                       (int)(atan(slope) * 180 / 3.14159265));
}

/* Of matrix products that are drawn, what the vendor's library reaches: less than the pipe. NaN
 * where none is. */
static double product_of(const struct figure *f, enum prof_ceiling_kind pipe)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->points[i]->pipe == pipe && f->points[i]->matmul_ceiling > 0)
            return f->points[i]->matmul_ceiling;
    return NAN;
}

/* ", matmul 52.0": room is scarce there, and the unit is most often that of the pipe. */
static void put_product_text(struct figure *f, double pipe, double product)
{
    struct prof_text whole = prof_flop_rate(pipe), text = prof_flop_rate(product);
    char *unit = strchr(text.text, ' ');
    const char *other = strchr(whole.text, ' ');
    if (unit && other && strcmp(unit, other) == 0)
        *unit = '\0';
    fprintf(f->out, ", matmul %s", text.text);
}

static void put_gnuplot_pipes(struct figure *f)
{
    double bandwidth = fmax(level_ceiling(f, PROF_ROOF_DRAM), level_ceiling(f, PROF_ROOF_L2));
    for (enum prof_ceiling_kind k = PROF_CEILING_FP64; k <= PROF_CEILING_TENSOR_FP8; k++) {
        double value = device_ceiling(f, k);
        if (!pipe_drawn(f, k) || value > f->y_max)
            continue;
        double x0 = bandwidth > 0 ? fmax(f->x_min, value / bandwidth) : f->x_min;
        if (x0 >= f->x_max)
            continue;
        put_gnuplot_line(f, x0, value, f->x_max, value, "lw 2 lc rgb '#404040'");
        const char *text = prof_ceiling_of(k).text, *tail = strstr(text, " multiply-add");
        fprintf(f->out, "set label '%.*s %s", (int)(tail ? tail - text : (ptrdiff_t)strlen(text)),
                text, prof_flop_rate(value).text);
        double product = product_of(f, k);
        if (product > f->y_min)
            put_product_text(f, value, product);
        prof_gnuplot_print(f->out,
                           "' at %f,%f noenhanced right offset character -0.5,0.6 font ',11'\n",
                           f->x_max, value);
        if (product > f->y_min)
            put_gnuplot_line(f, x0, product, f->x_max, product, "lw 1.5 dt 2 lc rgb '#404040'");
    }
}

/* ---- points ---------------------------------------------------------------------------------- */

/* The same kernel at L2, where counters measured it: a ring, tied to its disc. */
static void put_ties(struct figure *f)
{
    for (size_t i = 0; i < f->count; i++) {
        const struct prof_roofline_point *p = f->points[i];
        double dram = p->roofs[PROF_ROOF_DRAM].intensity, l2 = p->roofs[PROF_ROOF_L2].intensity;
        if (!(dram > 0) || !(l2 > 0))
            continue;
        char style[64];
        snprintf(style, sizeof style, "lw 1 dt 3 lc rgb '%s'", colours[p->bound]);
        put_gnuplot_line(f, dram, p->flop_rate, l2, p->flop_rate, style);
    }
}

/* A block of data, discs at DRAM or rings at L2; returns how many rows it has. */
static size_t put_point_block(struct figure *f, const char *name, enum prof_roof_level level)
{
    size_t rows = 0;
    fprintf(f->out, "$%s << END\n", name);
    for (size_t i = 0; i < f->count; i++) {
        double x = f->points[i]->roofs[level].intensity;
        if (!(x > 0))
            continue;
        const struct prof_roofline_point *p = f->points[i];
        prof_gnuplot_print(f->out, "%f %f %f 0x%s\n", x, p->flop_rate,
                           1.1 + 5.0 * sqrt(share_of_time(f, p)), colours[p->bound] + 1);
        rows++;
    }
    fputs("END\n", f->out);
    return rows;
}

/* How far two points are apart, as a share of the plot. */
static double point_distance(const struct figure *f, const struct prof_roofline_point *a,
                             const struct prof_roofline_point *b)
{
    double x = log(a->roofs[prof_report_roof_level(a)].intensity /
                   b->roofs[prof_report_roof_level(b)].intensity) /
               log(f->x_max / f->x_min);
    double y = log(a->flop_rate / b->flop_rate) / log(f->y_max / f->y_min);
    return hypot(x, y);
}

/* Points that lie on each other share one label: "2, 5". */
static void put_point_numbers(struct figure *f)
{
    bool told[MOST_POINTS] = {false};
    for (size_t i = 0; i < f->count; i++) {
        const struct prof_roofline_point *p = f->points[i];
        if (told[i])
            continue;
        fprintf(f->out, "set label '%zu", i + 1);
        for (size_t j = i + 1; j < f->count; j++) {
            if (told[j] || point_distance(f, p, f->points[j]) > TOGETHER)
                continue;
            told[j] = true;
            fprintf(f->out, ", %zu", j + 1);
        }
        prof_gnuplot_print(f->out, "' at %f,%f left offset character 0.9,0.55 front font ',10'\n",
                           p->roofs[prof_report_roof_level(p)].intensity, p->flop_rate);
    }
}

static void put_points(struct figure *f)
{
    static const char style[] = "ps variable lc rgb variable notitle";
    size_t discs = put_point_block(f, "discs", PROF_ROOF_DRAM),
           rings = put_point_block(f, "rings", PROF_ROOF_L2);
    put_point_numbers(f);
    fputs("plot ", f->out);
    if (discs)
        fprintf(f->out, "$discs using 1:2:3:4 with points pt 7 %s", style);
    if (rings)
        fprintf(f->out, "%s$rings using 1:2:3:4 with points pt 6 lw 2 %s",
                discs ? ", \\\n     " : "", style);
    fputc('\n', f->out);
}

/* ---- the list beside the plot ---------------------------------------------------------------- */

static void put_list_row(struct figure *f, size_t i, double y)
{
    const struct prof_roofline_point *p = f->points[i];
    char text[128], style[96];
    snprintf(style, sizeof style, "right font ',12' tc rgb '%s'", colours[p->bound]);
    snprintf(text, sizeof text, "%zu", i + 1);
    prof_gnuplot_text(f->out, RIGHT + 0.04, y, style, text, 8);
    prof_gnuplot_text(f->out, RIGHT + 0.05, y, "font ',11'", p->name ? p->name : "(no name)",
                      NAME_CELLS);
    bool near = p->bound >= PROF_BOUND_DRAM && p->bound <= PROF_BOUND_LATENCY;
    snprintf(text, sizeof text, "%s of the time, %s%s%s", prof_percent(share_of_time(f, p)).text,
             p->bound ? prof_bound_text(p->bound) : "not placed", near ? ", at " : "",
             near ? prof_percent(p->roof_share).text : "");
    prof_gnuplot_text(f->out, RIGHT + 0.05, y - 0.024, "font ',9' tc rgb '#606060'", text, 60);
}

static void put_gnuplot_list(struct figure *f)
{
    double y = TOP - 0.01;
    for (size_t i = 0; i < f->count; i++, y -= 0.053)
        put_list_row(f, i, y);
    char text[80];
    snprintf(text, sizeof text, "... and %zu more", f->left_out);
    if (f->left_out)
        prof_gnuplot_text(f->out, RIGHT + 0.05, y, "font ',10' tc rgb '#606060'", text, 60);
}

static void put_figure_title(struct figure *f)
{
    const struct prof_device *device = prof_device(f->capture, f->device);
    char source[64], text[160];
    bool known = prof_report_roof_source(&f->roofline->ceilings, f->device, source, sizeof source);
    bool product = false;
    for (size_t i = 0; i < f->count; i++)
        product |= f->points[i]->matmul_ceiling > 0;
    snprintf(text, sizeof text, "roofs %s; area: share of the time; rings: at L2%s",
             known ? source : "not known", product ? "; dashed: the library's matmul" : "");
    prof_gnuplot_heading(f->out, device && device->name ? device->name : "device n/a", text);
}

static void put_gnuplot_axes(struct figure *f)
{
    prof_gnuplot_print(
        f->out,
        "set encoding utf8\nset logscale xy\nset xrange [%f:%f]\nset yrange [%f:%f]\nset lmargin "
        "at "
        "screen %f\nset rmargin at screen %f\nset bmargin at screen %f\nset tmargin at screen %f\n"
        "set xlabel 'FLOP per byte of device memory'\nset ylabel 'FLOP/s' offset 0,0\n"
        "set format x '%%g'\nset format y '%%.0s %%c'\n" PROF_GNUPLOT_LOOK "unset key\n",
        f->x_min, f->x_max, f->y_min, f->y_max, LEFT, RIGHT, BOTTOM, TOP);
}

enum prof_status prof_report_roofline_script(const struct prof_roofline *roofline,
                                             struct prof_capture *capture, FILE *out,
                                             struct prof_error *err)
{
    struct figure f = {.roofline = roofline, .capture = capture, .out = out};
    choose_points(&f);
    if (!f.count)
        return prof_fail(
            err, PROF_NOTFOUND,
            "the roofline has nothing to draw: no kernel of this capture has both FLOP and bytes "
            "(declare them with perfkit/annotate.h, see docs/guide/roofline.md)");
    choose_axes(&f);
    put_gnuplot_axes(&f);
    put_figure_title(&f);
    put_level(&f, PROF_ROOF_DRAM, "lw 2.5 lc rgb '#0072b2'");
    put_level(&f, PROF_ROOF_L2, "lw 2.5 lc rgb '#56b4e9'");
    put_gnuplot_pipes(&f);
    put_ties(&f);
    put_gnuplot_list(&f);
    put_points(&f);
    return PROF_OK;
}

/* ---- the picture ----------------------------------------------------------------------------- */

enum prof_status prof_report_write_roofline_script(struct prof_capture *capture,
                                                   const struct prof_report_options *options,
                                                   FILE *out, struct prof_error *err)
{
    struct prof_roofline roofline;
    enum prof_status status =
        prof_roofline(capture, options ? options->filter : NULL,
                      options ? options->roofline : PROF_ROOFLINE_KERNELS, &roofline, err);
    status = status ?: prof_report_roofline_script(&roofline, capture, out, err);
    prof_roofline_free(&roofline);
    return status ? status : prof_report_flush(out, err);
}

static enum prof_status write_picture(struct prof_capture *capture,
                                      const struct prof_report_options *options,
                                      const char *terminal, FILE *out, struct prof_error *err)
{
    PROF_FREED char *script = NULL;
    size_t size;
    FILE *memory = prof_open_memory(&script, &size);
    enum prof_status status =
        memory ? prof_report_write_roofline_script(capture, options, memory, err) : PROF_NOMEM;
    if (!memory || (!prof_close_stream(memory) && !status))
        status = prof_fail(err, PROF_NOMEM, "cannot draw: out of memory");
    if (!status)
        status = prof_gnuplot_draw(script, terminal,
                                   ", or write OUT.gp and run gnuplot on that elsewhere", out, err);
    return status;
}

enum prof_status prof_report_write_roofline_svg(struct prof_capture *capture,
                                                const struct prof_report_options *options,
                                                FILE *out, struct prof_error *err)
{
    return write_picture(capture, options, "svg", out, err);
}

enum prof_status prof_report_write_roofline_png(struct prof_capture *capture,
                                                const struct prof_report_options *options,
                                                FILE *out, struct prof_error *err)
{
    return write_picture(capture, options, "pngcairo", out, err);
}
