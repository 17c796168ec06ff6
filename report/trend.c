/* The page of a baseline's history: a chart of each metric that matters, a point for each session
 * (mean over its runs, a bar from the lowest to the highest), and the figures as a table. Metrics
 * are those of the last run: all of an iteration, the kernels, memcpys and ranges that take most
 * time, and counts and bytes summed by family. Whether a change is more than noise is for perfkit
 * gate. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/format.h"
#include "report/columns.h"
#include "report/gate.h"
#include "report/html.h"
#include "report/report.h"
#include "report/writers.h"

#define SESSIONS 400 /* the last so many */
#define MOST_OF_FAMILY 10
#define WIDTH 600.0
#define HEIGHT 120.0

struct value {
    double mean, low, high; /* NaN = the session does not have it */
    size_t runs;
};

/* What a chart shows: one metric, or with NULL the sum of its family. */
struct series {
    enum prof_metric_family family;
    const struct prof_metric *metric;
};

struct trend_page {
    const struct prof_trend *trend;
    size_t first; /* session */
    struct value *values;
    FILE *out;
};

/* ---- values ---------------------------------------------------------------------------------- */

static bool same_metric(const struct prof_metric *a, const struct prof_metric *b)
{
    return a->family == b->family && a->device == b->device &&
           !memcmp(a->grid, b->grid, sizeof a->grid) &&
           !memcmp(a->block, b->block, sizeof a->block) && !strcmp(a->name, b->name) &&
           !strcmp(a->place, b->place);
}

/* Of a typical iteration, as perfkit diff has it; what is of the whole run, of the run. NaN = not
 * known. */
static double metric_value(const struct prof_run *run, const struct prof_metric *metric)
{
    if (metric->family == PROF_METRIC_WALL || metric->family == PROF_METRIC_BUSY ||
        metric->family == PROF_METRIC_ENERGY)
        return metric->sketch.count > 0 ? exp(metric->sketch.log_mean) : NAN;
    if (!prof_metric_info(metric->family)->exact && metric->iteration_ns > 0)
        return metric->iteration_ns;
    if (metric->family == PROF_METRIC_PEAK_BYTES || metric->family == PROF_METRIC_LEAKED_BYTES)
        return (double)metric->outside;
    return run->iterations > 0 ? (double)metric->inside / (double)run->iterations : NAN;
}

static double run_value(const struct prof_run *run, const struct series *series)
{
    double sum = NAN;
    if (series->family == PROF_METRIC_IDLE)
        return fmax(0, run_value(run, &(struct series){PROF_METRIC_WALL, NULL}) -
                           run_value(run, &(struct series){PROF_METRIC_BUSY, NULL}));
    for (size_t i = 0; i < run->count; i++) {
        const struct prof_metric *metric = &run->metrics[i];
        if (metric->family != series->family ||
            (series->metric && !same_metric(metric, series->metric)))
            continue;
        sum = (isnan(sum) ? 0 : sum) + metric_value(run, metric);
    }
    return sum;
}

/* Of each session from the first on that is shown. */
static void read_session_values(const struct trend_page *p, const struct series *series)
{
    const struct prof_trend *t = p->trend;
    for (size_t s = p->first; s < t->session_count; s++) {
        struct value value = {NAN, INFINITY, -INFINITY, 0};
        double sum = 0;
        for (size_t i = 0; i < t->runs.count; i++) {
            const struct prof_run *run = &t->runs.data[i];
            double one = run->session == t->sessions[s].id ? run_value(run, series) : NAN;
            if (isnan(one))
                continue;
            sum += one;
            value.low = fmin(value.low, one);
            value.high = fmax(value.high, one);
            value.mean = sum / (double)++value.runs;
        }
        p->values[s - p->first] = value;
    }
}

PROF_ORDER(rising_value, double, PROF_COMPARE(*x, *y))

/* Median of the sessions before the last; NaN without. */
static double usual_value(const struct trend_page *p, size_t count)
{
    double known[SESSIONS];
    size_t n = 0;
    for (size_t i = 0; i + 1 < count; i++)
        if (!isnan(p->values[i].mean))
            known[n++] = p->values[i].mean;
    if (!n)
        return NAN;
    qsort(known, n, sizeof *known, rising_value);
    return (known[(n - 1) / 2] + known[n / 2]) / 2;
}

/* ---- a chart --------------------------------------------------------------------------------- */

static struct prof_text value_text(const struct series *series, double value)
{
    struct prof_compared row = {.family = series->family};
    return prof_gate_value(&row, value);
}

/* "session 12, 2026-11-02, commit 1a2b3c4, label 77" */
static void put_session_words(FILE *out, const struct prof_trend_session *session)
{
    char when[32];
    prof_report_when(session->saved_s * 1000000000, when, sizeof when);
    prof_html_print(out, "session %lld, %s", (long long)session->id, when);
    if (session->commit)
        prof_html_print(out, ", commit %s", session->commit);
    if (session->label)
        prof_html_print(out, ", label %s", session->label);
}

static void put_session_points(const struct trend_page *p, const struct series *series,
                               size_t count, double low, double high)
{
    FILE *out = p->out;
    double step = count > 1 ? (WIDTH - 20) / (double)(count - 1) : 0;
    bool pen = false;
    fputs("<path class=\"line\" d=\"", out);
    for (size_t i = 0; i < count; i++) {
        if (isnan(p->values[i].mean)) {
            pen = false;
            continue;
        }
        prof_html_print(out, pen ? "L%f %f" : "M%f %f", 10 + (double)i * step,
                        HEIGHT - (p->values[i].mean - low) / (high - low) * HEIGHT);
        pen = true;
    }
    fputs("\"></path>\n", out);
    for (size_t i = 0; i < count; i++) {
        const struct value *v = &p->values[i];
        double x = 10 + (double)i * step, scale = HEIGHT / (high - low);
        if (isnan(v->mean))
            continue;
        fputs("<g><title>", out);
        put_session_words(out, &p->trend->sessions[p->first + i]);
        fprintf(out, ": %s", value_text(series, v->mean).text);
        if (v->runs > 1)
            fprintf(out, " (%zu runs, %s to %s)", v->runs, value_text(series, v->low).text,
                    value_text(series, v->high).text);
        prof_html_print(out,
                        "</title><line x1=\"%f\" x2=\"%f\" y1=\"%f\" y2=\"%f\"></line>"
                        "<circle r=\"4\" cx=\"%f\" cy=\"%f\"></circle></g>\n",
                        x, x, HEIGHT - (v->high - low) * scale, HEIGHT - (v->low - low) * scale, x,
                        HEIGHT - (v->mean - low) * scale);
    }
}

static void put_figures(const struct trend_page *p, const struct series *series, size_t count)
{
    FILE *out = p->out;
    fputs("<details><summary>Figures</summary><div class=\"scroll\" "
          "tabindex=\"0\"><table><thead><tr><th "
          "class=\"plain\">Value</th><th class=\"plain\">Lowest</th><th class=\"plain\">Highest"
          "</th><th class=\"left plain\">Session</th></tr></thead><tbody>\n",
          out);
    for (size_t i = count; i-- > 0;) {
        const struct value *v = &p->values[i];
        if (isnan(v->mean))
            continue;
        fprintf(out, "<tr><td>%s</td><td>%s</td><td>%s</td><td class=\"left\">",
                value_text(series, v->mean).text, value_text(series, v->low).text,
                value_text(series, v->high).text);
        put_session_words(out, &p->trend->sessions[p->first + i]);
        fputs("</td></tr>\n", out);
    }
    fputs("</tbody></table></div></details>\n", out);
}

static void put_chart_title(const struct trend_page *p, const struct series *series, size_t count)
{
    const struct prof_metric_info *info = prof_metric_info(series->family);
    const struct prof_metric *m = series->metric;
    struct prof_compared row = {.family = series->family,
                                .cand = m,
                                .cand_name = m ? m->name : NULL,
                                .place = m ? m->place : NULL,
                                .match = PROF_MATCH_ADDED};
    PROF_FREED char *subject = prof_gate_subject(&row, 0);
    double last = p->values[count - 1].mean, usual = usual_value(p, count);
    prof_html_print(p->out, "<h3 class=\"short\">%s</h3><p class=\"faint\">%s: <b>%s</b>", subject,
                    info->exact || m ? "Last session" : info->text, value_text(series, last).text);
    if (usual > 0 && !isnan(last))
        fprintf(p->out, ", %s against %s, the median of the sessions before",
                prof_gate_percent(last / usual - 1).text, value_text(series, usual).text);
    fputs(".</p>\n", p->out);
}

struct scale {
    double low, high; /* of the values */
    double bottom, top;
    bool same; /* all are */
};

/* At least a tenth of the value is shown, so that noise does not look like a change. */
static struct scale chart_scale(const struct trend_page *p, size_t count)
{
    struct scale s = {.low = INFINITY, .high = -INFINITY};
    for (size_t i = 0; i < count; i++) {
        s.low = fmin(s.low, p->values[i].low);
        s.high = fmax(s.high, p->values[i].high);
    }
    double middle = (s.low + s.high) / 2, half = fmax((s.high - s.low) * 0.6, s.high * 0.05);
    s.bottom = middle - half < s.high * 0.3 ? 0 : middle - half;
    s.top = middle + half;
    s.same = s.high - s.low <= 1e-9 * s.high;
    return s;
}

/* Nothing for what no session has, or what is 0 in all. */
static void put_chart(const struct trend_page *p, const struct series *series)
{
    size_t count = p->trend->session_count - p->first;
    read_session_values(p, series);
    struct scale scale = chart_scale(p, count);
    if (!(scale.high > 0))
        return;
    fputs("<section class=\"trend\">", p->out);
    put_chart_title(p, series, count);
    fprintf(p->out, "<div class=\"ends\"><span>%s</span></div>\n",
            value_text(series, scale.top).text);
    fprintf(p->out,
            "<svg viewBox=\"0 -6 %g %g\" role=\"img\" aria-label=\"%s over sessions; the figures "
            "are below\">\n",
            WIDTH, HEIGHT + 12, prof_metric_info(series->family)->name);
    put_session_points(p, series, count, scale.bottom, scale.top);
    fprintf(p->out,
            "</svg>\n<div class=\"ends\"><span>%s</span><span>sessions %lld to %lld</span></div>\n",
            value_text(series, scale.bottom).text, (long long)p->trend->sessions[p->first].id,
            (long long)p->trend->sessions[p->trend->session_count - 1].id);
    put_figures(p, series, count);
    fputs("</section>\n", p->out);
}

/* ---- which ----------------------------------------------------------------------------------- */

static int most_time_of_metric(const void *a, const void *b)
{
    const struct prof_metric *const *x = a, *const *y = b;
    int order = PROF_COMPARE((*y)->iteration_ns, (*x)->iteration_ns);
    return order ? order : strcmp((*x)->name, (*y)->name);
}

/* Those of the last run that take most time. */
static enum prof_status put_largest(const struct trend_page *p, enum prof_metric_family family,
                                    const char *title, struct prof_error *err)
{
    const struct prof_run *last = &p->trend->runs.data[p->trend->runs.count - 1];
    PROF_FREED const struct prof_metric **list = malloc((last->count + 1) * sizeof *list);
    size_t count = 0;
    if (!list)
        return prof_out_of_memory(err);
    for (size_t i = 0; i < last->count; i++)
        if (last->metrics[i].family == family)
            list[count++] = &last->metrics[i];
    qsort(list, count, sizeof *list, most_time_of_metric);
    if (count)
        fprintf(p->out,
                "<h2>%s</h2>\n<p class=\"faint\">%sums of an iteration.</p>\n"
                "<div class=\"trends\">\n",
                title,
                count > MOST_OF_FAMILY ? "Those of the last run that take most time; s" : "S");
    for (size_t i = 0; i < count && i < MOST_OF_FAMILY; i++)
        put_chart(p, &(struct series){family, list[i]});
    fputs(count ? "</div>\n" : "", p->out);
    return PROF_OK;
}

/* Sums where a family has many members of one kind; a finding is none. */
static bool is_summed(enum prof_metric_family family)
{
    return prof_metric_info(family)->exact && family != PROF_METRIC_FINDING &&
           family != PROF_METRIC_REGISTERS && family != PROF_METRIC_SHARED_BYTES &&
           family != PROF_METRIC_LOCAL_BYTES && family != PROF_METRIC_RANGE_LAUNCHES;
}

/* A chart of what changed, and a sentence for what did not. */
static void put_counts(const struct trend_page *p)
{
    size_t count = p->trend->session_count - p->first, same = 0;
    fputs("<h2>Counts and bytes</h2>\n<p class=\"faint\">Sums of an iteration; peak-bytes and "
          "leaked-bytes of the run.",
          p->out);
    for (enum prof_metric_family family = 0; family < PROF_METRICS; family++) {
        struct series series = {family, NULL};
        if (!is_summed(family))
            continue;
        read_session_values(p, &series);
        struct scale scale = chart_scale(p, count);
        if (scale.high > 0 && scale.same)
            fprintf(p->out, "%s%s %s",
                    same++ ? ", " : " The same in all sessions: ", prof_metric_info(family)->name,
                    value_text(&series, scale.high).text);
    }
    fputs(same ? ".</p>\n<div class=\"trends\">\n" : "</p>\n<div class=\"trends\">\n", p->out);
    for (enum prof_metric_family family = 0; family < PROF_METRICS; family++) {
        struct series series = {family, NULL};
        if (!is_summed(family))
            continue;
        read_session_values(p, &series);
        if (!chart_scale(p, count).same)
            put_chart(p, &series);
    }
    fputs("</div>\n", p->out);
}

static enum prof_status put_charts(const struct trend_page *p, struct prof_error *err)
{
    static const enum prof_metric_family times[] = {PROF_METRIC_WALL, PROF_METRIC_BUSY,
                                                    PROF_METRIC_IDLE, PROF_METRIC_ENERGY};
    static const struct {
        enum prof_metric_family family;
        const char *title;
    } largest[] = {{PROF_METRIC_KERNEL, "Kernels"},
                   {PROF_METRIC_COPY, "Memcpy and memset"},
                   {PROF_METRIC_RANGE, "NVTX ranges"}};
    enum prof_status status = PROF_OK;
    fputs("<h2>Iteration</h2>\n<div class=\"trends\">\n", p->out);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        put_chart(p, &(struct series){times[i], NULL});
    fputs("</div>\n", p->out);
    put_counts(p);
    for (size_t i = 0; !status && i < sizeof largest / sizeof largest[0]; i++)
        status = put_largest(p, largest[i].family, largest[i].title, err);
    return status;
}

/* ---- the page -------------------------------------------------------------------------------- */

static void put_head(const struct trend_page *p)
{
    const struct prof_trend *t = p->trend;
    FILE *out = p->out;
    prof_html_print(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
        "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta "
        "name=\"color-scheme\" content=\"light dark\">\n<meta "
        "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'; img-src data:\">\n<link rel=\"icon\" href=\"data:,\">\n"
        "<title>%s: baseline</title>\n<style>\n",
        t->name);
    for (const struct prof_html_file *file = prof_html_files; file->name; file++)
        if (!strcmp(file->name, "style.css"))
            fwrite(file->bytes, 1, file->length, out);
    prof_html_print(out,
                    "</style>\n</head>\n<body>\n<header><h1>Baseline %s</h1>\n<p class=\"faint\">"
                    "%s, %s",
                    t->name, prof_counted((int64_t)t->session_count, "session", "sessions").text,
                    prof_counted((int64_t)t->runs.count, "run", "runs").text);
    if (p->first)
        fprintf(out, "; the last %d sessions are shown", SESSIONS);
    fputs(
        ". A point is a session: the mean of its runs, with a bar from the lowest to the highest. "
        "<code>perfkit gate</code> says what changed by more than noise.</p></header>\n<main>\n",
        out);
}

enum prof_status prof_trend_write_html(void *trend, FILE *out, struct prof_error *err)
{
    struct trend_page p = {.trend = trend, .out = out};
    if (!p.trend->runs.count)
        return prof_fail(err, PROF_INVALID, "the baseline has no runs: there is nothing to draw");
    p.first = p.trend->session_count > SESSIONS ? p.trend->session_count - SESSIONS : 0;
    p.values = malloc(SESSIONS * sizeof *p.values);
    if (!p.values)
        return prof_out_of_memory(err);
    put_head(&p);
    enum prof_status status = put_charts(&p, err);
    fputs("</main>\n</body>\n</html>\n", out);
    free(p.values);
    return status ? status : prof_report_flush(out, err);
}
