/* The dashboard of perfkit top: curves of each device, of memory and of iterations, and the
 * findings that cost most. Its lines are made from what was sampled and read before; drawing reads
 * nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "libprof/base/utf8.h"
#include "libprof/include/prof_memory.h"
#include "report/findings.h"
#include "tui/views.h"

#define LABEL 12

/* ---- samples --------------------------------------------------------------------------------- */

static struct tui_device_history *history_of(struct tui_dashboard *d, int64_t physical)
{
    for (size_t i = 0; i < d->device_count; i++)
        if (d->devices[i].device == physical)
            return &d->devices[i];
    if (d->device_count == TUI_DASHBOARD_DEVICES)
        return NULL;
    struct tui_device_history *history = &d->devices[d->device_count++];
    *history = (struct tui_device_history){.device = physical,
                                           .power_now_mw = PROF_UNKNOWN,
                                           .busy = NAN,
                                           .energy_from_j = NAN,
                                           .energy_j = NAN,
                                           .used_bytes = PROF_UNKNOWN,
                                           .total_bytes = PROF_UNKNOWN};
    return history;
}

static void push_sample(uint32_t values[TUI_SPARK], int64_t seconds, int64_t value)
{
    for (; seconds > 0; seconds--) {
        memmove(values, values + 1, (TUI_SPARK - 1) * sizeof *values);
        values[TUI_SPARK - 1] = value < 0 ? 0 : value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
    }
    if (value > 0 && value <= UINT32_MAX)
        values[TUI_SPARK - 1] = (uint32_t)value;
}

/* Streams side by side are busy once: more than a second is a second. */
static void sample_busy(struct tui_dashboard *d, const struct tui_model *model)
{
    for (size_t i = 0; i < d->device_count; i++)
        memset(d->devices[i].busy_us, 0, sizeof d->devices[i].busy_us);
    for (size_t i = 0; i < model->streams.count; i++) {
        const struct tui_stream *stream = &model->streams.data[i];
        const struct prof_device *device = tui_model_device(model, stream->values.device);
        struct tui_device_history *history = device ? history_of(d, device->physical) : NULL;
        for (int k = 0; history && k < TUI_SPARK; k++) {
            uint32_t sum = history->busy_us[k] + stream->spark_us[k];
            history->busy_us[k] = sum < 1000000 ? sum : 1000000;
        }
    }
}

static int64_t live_bytes_of(const struct tui_model *model, int64_t physical)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < model->memory.count; i++) {
        const struct prof_device *device = tui_model_device(model, model->memory.data[i].device);
        if (device && device->physical == physical)
            bytes = prof_add(bytes, model->memory.data[i].live_bytes);
    }
    return bytes;
}

void tui_dashboard_sample(struct tui_dashboard *d, const struct tui_model *model,
                          struct prof_nvml *nvml)
{
    /* What was before the first look is not known. */
    int64_t second = model->now_ns / 1000000000;
    int64_t passed = d->next_second ? second + 1 - d->next_second : 1;
    if (d->whole || !tui_model_is_live(model))
        return;
    sample_busy(d, model);
    push_sample(d->memory_kib, passed < TUI_SPARK ? passed : TUI_SPARK, model->live_bytes / 1024);
    for (size_t i = 0; i < d->device_count; i++)
        push_sample(d->devices[i].memory_kib, passed < TUI_SPARK ? passed : TUI_SPARK,
                    live_bytes_of(model, d->devices[i].device) / 1024);
    for (size_t i = 0; i < d->device_count && passed > 0; i++) {
        struct tui_device_history *history = &d->devices[i];
        const struct prof_device *device = tui_model_device(model, history->device);
        struct prof_nvml_reading r = prof_nvml_read(nvml, device ? device->uuid : NULL);
        history->power_now_mw = r.power_mw;
        push_sample(history->power_w, passed < TUI_SPARK ? passed : TUI_SPARK,
                    r.power_mw == PROF_UNKNOWN ? 0 : r.power_mw / 1000);
        if (r.energy_mj != PROF_UNKNOWN && isnan(history->energy_from_j))
            history->energy_from_j = (double)r.energy_mj / 1000;
        history->energy_j =
            r.energy_mj == PROF_UNKNOWN ? NAN : (double)r.energy_mj / 1000 - history->energy_from_j;
        history->used_bytes = r.used_bytes;
        history->total_bytes = r.total_bytes;
    }
    d->next_second = second + 1;
}

/* ---- the capture ----------------------------------------------------------------------------- */

/* The highest level of each part of the time. */
static void read_memory_curve(struct prof_capture *capture, const struct prof_filter *filter,
                              int64_t begin_ns, int64_t end_ns, uint32_t kib[TUI_SPARK])
{
    struct prof_memory_timeline memory;
    int64_t length = end_ns > begin_ns ? end_ns - begin_ns : 1;
    memset(kib, 0, TUI_SPARK * sizeof *kib);
    if (prof_memory_timeline(capture, filter, -1, 4 * TUI_SPARK, &memory, NULL))
        return;
    for (size_t i = 0; i < memory.count; i++) {
        int64_t until = i + 1 < memory.count ? memory.points[i + 1].time_ns : end_ns;
        int64_t first = (memory.points[i].time_ns - begin_ns) * TUI_SPARK / length;
        int64_t last = (until - begin_ns) * TUI_SPARK / length;
        uint32_t level = (uint32_t)fmin((double)memory.points[i].peak_bytes / 1024, UINT32_MAX);
        for (int64_t k = first < 0 ? 0 : first; k <= last && k < TUI_SPARK; k++)
            kib[k] = level > kib[k] ? level : kib[k];
    }
    prof_memory_timeline_free(&memory);
}

static void read_run_curves(struct tui_dashboard *d, struct prof_capture *capture,
                            const struct prof_filter *filter)
{
    struct prof_utilisation use;
    if (!prof_utilisation(capture, filter, 0, TUI_SPARK, &use, NULL)) {
        for (size_t i = 0; i < use.count; i++) {
            const struct prof_device *device = prof_device(capture, use.rows[i].device);
            struct tui_device_history *history =
                history_of(d, device ? device->physical : use.rows[i].device);
            if (history) {
                history->energy_j = use.rows[i].energy.joules;
                history->busy = use.rows[i].window_ns > 0
                                    ? (double)use.rows[i].busy_ns / (double)use.rows[i].window_ns
                                    : NAN;
                history->behind = prof_is_behind(&use.rows[i]);
            }
            for (size_t k = 0; history && use.rows[i].power_w && k < use.buckets; k++)
                history->power_w[k] =
                    use.rows[i].power_w[k] > 0 ? (uint32_t)use.rows[i].power_w[k] : 0;
            for (size_t k = 0; history && use.rows[i].busy_share && k < use.buckets; k++)
                history->busy_us[k] = isnan(use.rows[i].busy_share[k])
                                          ? 0
                                          : (uint32_t)(use.rows[i].busy_share[k] * 1e6);
        }
        read_memory_curve(capture, filter, use.begin_ns, use.end_ns, d->memory_kib);
        for (size_t i = 0; d->device_count > 1 && i < d->device_count; i++) {
            struct prof_filter of_device = filter ? *filter : (struct prof_filter){0};
            of_device.device = d->devices[i].device;
            read_memory_curve(capture, &of_device, use.begin_ns, use.end_ns,
                              d->devices[i].memory_kib);
        }
        prof_utilisation_free(&use);
    }
}

/* The last iterations of the series that takes most time, and why the slowest of all was slow. */
static void read_recent_iterations(struct tui_dashboard *d, const struct prof_iteration_list *list)
{
    const struct prof_iteration_series *series = NULL;
    memset(d->iteration_us, 0, sizeof d->iteration_us);
    memset(d->is_slow, 0, sizeof d->is_slow);
    d->iterations = 0;
    d->warm_up = 0;
    d->slow = 0;
    d->why[0] = '\0';
    for (size_t i = 0; i < list->series_count; i++)
        if (!series || list->series[i].total_ns > series->total_ns)
            series = &list->series[i];
    if (!series)
        return;
    int64_t all = series->count + series->warm_up, place = 0;
    size_t columns = all < TUI_SPARK ? (size_t)all : TUI_SPARK;
    for (size_t i = 0; i < list->count; i++) {
        const struct prof_iteration_row *row = &list->rows[i];
        if (&list->series[row->series] != series)
            continue;
        /* Of a whole run neighbours share a column, which is the longest's. */
        size_t from_end = d->whole ? columns - 1 - (size_t)(place * (int64_t)columns / all)
                                   : (size_t)(all - 1 - place);
        place++;
        if (from_end >= TUI_SPARK)
            continue;
        size_t k = TUI_SPARK - 1 - from_end;
        uint32_t us = (uint32_t)fmin((double)row->duration_ns / 1000 + 1, UINT32_MAX);
        d->iteration_us[k] = us > d->iteration_us[k] ? us : d->iteration_us[k];
        d->is_slow[k] |= row->slow;
        d->slow += row->slow;
        d->warm_up += row->warm_up;
    }
    d->iterations = d->whole ? (size_t)all : columns;
    d->median_ns = series->median_ns;
    const char *name = list->phases[series->phase].name;
    snprintf(d->iteration, sizeof d->iteration, "%.*s", (int)sizeof d->iteration - 1,
             name ? name : "period");
    if (list->why_count && list->whys[0].compared)
        snprintf(d->why, sizeof d->why, "Slowest: %s, usually %s: %.300s",
                 prof_duration_ns(list->whys[0].duration_ns).text,
                 prof_duration_ns(list->whys[0].usual_ns).text, list->whys[0].seen);
}

void tui_dashboard_read(struct tui_dashboard *d, struct prof_capture *tail,
                        const struct prof_filter *filter, bool whole)
{
    static const enum tui_style styles[] = {TUI_NORMAL, TUI_WARN, TUI_BAD};
    struct prof_findings findings;
    struct prof_iteration_list iterations;
    const struct prof_overview_parts parts = {
        .findings = &findings, .iterations = &iterations, .explain = {.slow = 1}};
    if (whole)
        read_run_curves(d, tail, filter);
    d->whole = whole;
    if (prof_overview(tail, filter, &parts, NULL))
        return;
    d->finding_count = 0;
    for (size_t i = 0; i < findings.count && d->finding_count < TUI_DASHBOARD_FINDINGS; i++) {
        const struct prof_finding *f = &findings.rows[i];
        char saves[200];
        if (!prof_report_finding_is_worst_phase(&findings, f))
            continue;
        prof_report_finding_saving(&findings, f, saves, sizeof saves);
        d->findings[d->finding_count].style = styles[f->severity];
        snprintf(d->findings[d->finding_count].text, sizeof d->findings[0].text, "%s%s%s%s: %s",
                 f->rule->title, *saves ? " (" : "", saves, *saves ? ")" : "", f->fix);
        d->finding_count++;
    }
    read_recent_iterations(d, &iterations);
    prof_iteration_list_free(&iterations);
    prof_findings_free(&findings);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static uint32_t largest_sample(const uint32_t values[TUI_SPARK])
{
    uint32_t most = 0;
    for (int i = 0; i < TUI_SPARK; i++)
        most = values[i] > most ? values[i] : most;
    return most;
}

static int curve_lines(const struct tui_dashboard *d)
{
    return (int)d->device_count + (d->iterations > 0) + (largest_sample(d->memory_kib) > 0);
}

/* Of power, and of memory where there are several devices. */
static int more_lines(const struct tui_dashboard *d)
{
    int lines = 0;
    for (size_t i = 0; i < d->device_count; i++)
        lines += (largest_sample(d->devices[i].power_w) > 0) +
                 (d->device_count > 1 && largest_sample(d->devices[i].memory_kib) > 0);
    return lines;
}

int tui_dashboard_lines(const struct tui_dashboard *d, int width, int height)
{
    int lines = curve_lines(d);
    if (height < TUI_DASHBOARD_HEIGHT)
        return height < TUI_DASHBOARD_CURVES ? 0 : lines < height / 8 ? lines : height / 8;
    lines += more_lines(d) + (d->why[0] != 0);
    lines += d->finding_count ? (int)d->finding_count + 1 : 0;
    for (size_t i = 0; i < d->finding_count; i++)
        lines += (int)strlen(d->findings[i].text) + 2 > width;
    lines += (int)strlen(d->why) + 2 > width;
    return !lines ? 0 : lines < height / 3 ? lines + 1 : height / 3;
}

static int curve_width(const struct tui_grid *grid)
{
    return grid->width >= 110 ? TUI_SPARK : grid->width - 56;
}

/* A curve of a whole run, whatever its width: each cell has the mean, or the largest, of the
 * samples that fall into it. Live it is the newest samples. `cells` has room for TUI_SPARK. */
static void fit_curve(const struct tui_grid *grid, bool whole, const uint32_t values[TUI_SPARK],
                      bool mean, uint32_t cells[TUI_SPARK])
{
    int width = curve_width(grid);
    memcpy(cells, values, TUI_SPARK * sizeof *cells);
    for (int i = 0; whole && i < width && width < TUI_SPARK; i++) {
        uint64_t sum = 0, most = 0;
        int from = i * TUI_SPARK / width, to = (i + 1) * TUI_SPARK / width;
        for (int k = from; k < to; k++) {
            sum += values[k];
            most = values[k] > most ? values[k] : most;
        }
        cells[TUI_SPARK - width + i] = (uint32_t)(mean ? sum / (uint64_t)(to - from) : most);
    }
}

/* A label, what it is now, and its curve at the right. */
static void draw_curve(struct tui_grid *grid, int y, const char *label, const char *now, double bar,
                       const uint32_t values[TUI_SPARK], double full)
{
    int spark = curve_width(grid), x = LABEL;
    tui_grid_put(grid, 0, y, LABEL - 1, TUI_NORMAL, label);
    if (!isnan(bar)) {
        tui_grid_put(grid, x, y, 1, TUI_NORMAL, "[");
        tui_grid_bar(grid, x + 1, y, 12, bar, TUI_BAR);
        tui_grid_put(grid, x + 13, y, 1, TUI_NORMAL, "]");
        x += 15;
    }
    int room = grid->width - spark - 1 - x;
    tui_grid_put(grid, x, y, room > 0 ? room : 0, TUI_NORMAL, now);
    if (spark > 8)
        tui_grid_spark(grid, grid->width - spark, y, spark, values, TUI_SPARK, full);
}

double tui_dashboard_busy(const struct tui_dashboard *d, const struct tui_model *model,
                          const struct tui_device_history *h)
{
    int64_t last = tui_last_second(model), first = tui_first_second(model);
    double sum = 0;
    if (d->whole)
        return h->busy;
    if (first <= last - TUI_SPARK) /* as far back as the curve goes */
        first = last - TUI_SPARK + 1;
    double length = (double)tui_recorded_ns(model, first * 1000000000, model->now_ns);
    for (int64_t second = first; second <= last; second++)
        sum += h->busy_us[TUI_SPARK - 1 - (last - second)];
    return length > 0 ? fmin(sum * 1e3 / length, 1) : NAN;
}

/* Of a second of which only a part was recorded, as if that went on. */
static void busy_curve(const struct tui_dashboard *d, const struct tui_model *model,
                       const struct tui_device_history *h, uint32_t values[TUI_SPARK])
{
    memcpy(values, h->busy_us, TUI_SPARK * sizeof *values);
    for (int k = 0; !d->whole && k < TUI_SPARK; k++) {
        int64_t begin = (tui_last_second(model) - (TUI_SPARK - 1 - k)) * 1000000000;
        int64_t recorded = tui_recorded_ns(model, begin, begin + 1000000000);
        if (recorded > 0)
            values[k] = (uint32_t)fmin(values[k] * 1e9 / (double)recorded, 1e6);
    }
}

static void draw_device(const struct tui_dashboard *d, const struct tui_model *model,
                        const struct tui_device_history *h, struct tui_grid *grid, int y)
{
    const struct prof_device *device = tui_model_device(model, h->device);
    double share = tui_dashboard_busy(d, model, h);
    char now[160];
    snprintf(now, sizeof now, "%s%s busy", d->whole && h->behind ? "at least " : "",
             prof_percent(share).text);
    if (h->power_now_mw != PROF_UNKNOWN)
        prof_append(now, sizeof now, "  %lld W", (long long)(h->power_now_mw / 1000));
    if (h->energy_j > 0)
        prof_append(now, sizeof now, "  %s", prof_joules(h->energy_j).text);
    if (h->used_bytes != PROF_UNKNOWN)
        prof_append(now, sizeof now, "  %s of %s", prof_bytes_of(h->used_bytes).text,
                    prof_bytes_of(h->total_bytes).text);
    uint32_t values[TUI_SPARK], cells[TUI_SPARK];
    busy_curve(d, model, h, values);
    fit_curve(grid, d->whole, values, true, cells);
    draw_curve(grid, y, device && device->title ? device->title : "device", now, share, cells, 1e6);
}

/* Lines that it takes. */
static int draw_power(const struct tui_dashboard *d, const struct tui_device_history *h,
                      struct tui_grid *grid, int y)
{
    uint32_t most = largest_sample(h->power_w), cells[TUI_SPARK];
    char now[80] = "";
    if (!most)
        return 0;
    if (h->power_now_mw != PROF_UNKNOWN)
        prof_append(now, sizeof now, "%lld W, ", (long long)(h->power_now_mw / 1000));
    prof_append(now, sizeof now, "at most %u W", most);
    fit_curve(grid, d->whole, h->power_w, true, cells);
    draw_curve(grid, y, "  power", now, NAN, cells, most);
    return 1;
}

/* Lines that it takes. */
static int draw_memory(const struct tui_dashboard *d, const struct tui_device_history *h,
                       struct tui_grid *grid, int y)
{
    uint32_t most = largest_sample(h->memory_kib), cells[TUI_SPARK];
    char now[80] = "";
    if (!most || d->device_count < 2)
        return 0;
    if (!d->whole)
        prof_append(now, sizeof now, "%s live, ",
                    prof_bytes_of((int64_t)h->memory_kib[TUI_SPARK - 1] * 1024).text);
    prof_append(now, sizeof now, "at most %s", prof_bytes_of((int64_t)most * 1024).text);
    fit_curve(grid, d->whole, h->memory_kib, false, cells);
    draw_curve(grid, y, "  memory", now, NAN, cells, most);
    return 1;
}

/* Where slow ones are in the curve they stand out, also without colours. Those of warm-up are in
 * the curve, and not among those counted, as in reports; the line says so where there is room. */
#define WARM_UP_WIDTH 13
static void draw_iterations(const struct tui_dashboard *d, struct tui_grid *grid, int y)
{
    char now[260];
    int spark = curve_width(grid);
    uint32_t most = largest_sample(d->iteration_us), cells[TUI_SPARK], slow[TUI_SPARK];
    char tail[120];
    int length = snprintf(tail, sizeof tail, ": median %s, %zu of %s%zu slow",
                          prof_duration(d->median_ns).text, d->slow, d->whole ? "" : "last ",
                          d->iterations - d->warm_up);
    int room = grid->width - spark - 1 - LABEL - length;
    if (d->warm_up && room >= (int)strlen(d->iteration) + WARM_UP_WIDTH)
        room -= snprintf(tail + length, sizeof tail - (size_t)length, ", %zu warm-up", d->warm_up);
    PROF_FREED char *name = prof_report_cut(d->iteration, room > 8 ? (size_t)room : 8);
    snprintf(now, sizeof now, "%s%s", name ? name : "", tail);
    /* Not to the top: what is usual leaves room for what is slow. */
    for (int i = 0; i < TUI_SPARK; i++)
        slow[i] = d->is_slow[i];
    bool whole = d->whole && d->iterations > (size_t)(spark > 0 ? spark : 0);
    fit_curve(grid, whole, slow, false, cells);
    memcpy(slow, cells, sizeof slow);
    fit_curve(grid, whole, d->iteration_us, false, cells);
    draw_curve(grid, y, "Iteration", now, NAN, cells,
               fmax(most, d->median_ns > 0 ? d->median_ns * 1.6e-3 : 0));
    for (int i = 0; spark > 8 && i < spark; i++)
        if (slow[TUI_SPARK - spark + i])
            tui_grid_style(grid, grid->width - spark + i, y, 1, TUI_BAD);
}

/* Over two lines at most; returns the next line. */
static int draw_wrapped(struct tui_grid *grid, int y, int end, enum tui_style style,
                        const char *text)
{
    for (int line = 0; *text && y < end && line < 2; line++) {
        size_t length = tui_line_length(text, grid->width - 2);
        char part[420];
        snprintf(part, sizeof part, "%.*s", (int)length, text);
        tui_grid_put(grid, line ? 2 : 0, y++, grid->width, line ? TUI_NORMAL : style, part);
        text += length;
        text += *text == ' ';
    }
    return y;
}

void tui_dashboard_draw(const struct tui_dashboard *d, const struct tui_model *model,
                        struct tui_grid *grid, int y, int lines)
{
    bool room = grid->height >= TUI_DASHBOARD_HEIGHT;
    int end = y + lines - room; /* an empty line below */
    bool more = room && curve_lines(d) + more_lines(d) <= lines - 1;
    uint32_t memory = largest_sample(d->memory_kib), cells[TUI_SPARK];
    char now[260];
    for (size_t i = 0; i < d->device_count && y < end; i++) {
        draw_device(d, model, &d->devices[i], grid, y++);
        if (more && y < end)
            y += draw_power(d, &d->devices[i], grid, y);
        if (more && y < end)
            y += draw_memory(d, &d->devices[i], grid, y);
    }
    if (memory && y < end) {
        snprintf(now, sizeof now, "%s live, peak %s", prof_bytes_of(model->live_bytes).text,
                 prof_bytes_of(model->peak_bytes).text);
        fit_curve(grid, d->whole, d->memory_kib, false, cells);
        draw_curve(grid, y++, "Memory", now, NAN, cells, memory);
    }
    if (d->iterations && y < end)
        draw_iterations(d, grid, y++);
    if (d->why[0] && y < end)
        y = draw_wrapped(grid, y, end, TUI_WARN, d->why);
    for (size_t i = 0; i < d->finding_count && y < end; i++)
        y = draw_wrapped(grid, y, end, d->findings[i].style, d->findings[i].text);
}
