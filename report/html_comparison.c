/* What differs between this run and another one, as markup: how much time moved, metric by metric,
 * and which counts and bytes differ. One run against one run gives no verdict; the page says so. */
#include <math.h>
#include <stdlib.h>

#include "report/gate_words.h"
#include "report/html_markup.h"
#include "report/html_panels.h"

#define ROWS 25

enum prof_status prof_html_compare(struct prof_html_page *page, struct prof_capture *baseline,
                                   struct prof_error *err)
{
    struct prof_compare_options options = {0};
    struct prof_html_comparison *c = calloc(1, sizeof *c);
    if (!c)
        return prof_fail(err, PROF_NOMEM, "cannot compare: out of memory");
    page->comparison = c;
    c->baseline = prof_info(baseline);
    enum prof_status status = prof_run_extract(baseline, NULL, &c->runs[0], &c->why_not);
    if (!status)
        status = prof_run_extract(page->data->capture, NULL, &c->runs[1], &c->why_not);
    if (!status)
        status =
            prof_compare((struct prof_runs){&c->runs[0], 1}, (struct prof_runs){&c->runs[1], 1},
                         &options, &c->result, &c->why_not);
    c->compared = !status;
    if (!status)
        prof_comparison_by_move(&c->result);
    if (status == PROF_NOMEM || status == PROF_IO) { /* not a property of the two runs */
        *err = c->why_not;
        return status;
    }
    return PROF_OK;
}

void prof_html_compare_free(struct prof_html_page *page)
{
    struct prof_html_comparison *c = page->comparison;
    page->comparison = NULL;
    if (!c)
        return;
    prof_comparison_free(&c->result);
    prof_run_free(&c->runs[0]);
    prof_run_free(&c->runs[1]);
    free(c);
}

/* ---- markup ---------------------------------------------------------------------------------- */

/* Takes the text. */
static void put_taken(FILE *out, const char *tag, const char *attributes, char *text)
{
    prof_html_element(out, tag, attributes, text);
    free(text);
}

static void put_more_rows_html(FILE *out, size_t shown, size_t count)
{
    if (shown < count)
        fprintf(
            out,
            "<p class=\"faint\">%s of %s; all of them: <code>perfkit diff --top %zu</code></p>\n",
            prof_count((int64_t)shown).text, prof_count((int64_t)count).text, count);
}

static void put_time_change_row(FILE *out, const struct prof_compared *row, double most)
{
    bool slower = row->delta_ns > 0;
    double size = fabs(row->delta_ns);
    fprintf(out, "<tr class=\"%s\"><td class=\"share\"><span class=\"fill\" style=\"width:",
            slower ? "slower" : "faster");
    prof_html_real(out, most > 0 ? size / most * 96 : 0);
    fprintf(out,
            "%%\"></span><span class=\"figure\">%s%s</span></td><td>%s</td><td>%s</td><td>%s</td>",
            slower ? "+" : "-", prof_duration(size).text, prof_gate_time_change(row).text,
            prof_gate_value(row, row->base_value).text, prof_gate_value(row, row->cand_value).text);
    fprintf(out, "<td>%s</td>", prof_gate_events(row).text);
    put_taken(out, "td", "class=\"left name\"", prof_gate_subject_placed(row, 0));
    fputs("</tr>\n", out);
}

/* A body of the table for each family, so that nested times are not taken for a sum. */
static void put_family(FILE *out, const struct prof_comparison *c,
                       const struct prof_gate_times *times, double most)
{
    size_t count = 0, shown = 0;
    for (size_t i = 0; i < c->count; i++)
        count += c->rows[i].family == times->family && prof_gate_time_moved(&c->rows[i]);
    if (!count)
        return;
    fprintf(out, "<tbody><tr><th scope=\"rowgroup\" colspan=\"6\" class=\"left\">%s%s</th></tr>\n",
            times->title, count > ROWS ? ", those that moved most" : "");
    for (size_t i = 0; i < c->count && shown < ROWS; i++) {
        if (c->rows[i].family != times->family || !prof_gate_time_moved(&c->rows[i]))
            continue;
        put_time_change_row(out, &c->rows[i], most);
        shown++;
    }
    fputs("</tbody>\n", out);
}

static void put_times(FILE *out, const struct prof_comparison *c)
{
    double most = 0;
    for (size_t i = 0; i < c->count; i++)
        if (prof_gate_time_moved(&c->rows[i]))
            most = fmax(most, fabs(c->rows[i].delta_ns));
    if (most <= 0)
        return;
    fputs("<div class=\"scroll\"><table id=\"comparison-times\"><caption>Times, per "
          "iteration</caption>\n"
          "<thead><tr><th scope=\"col\" class=\"plain\">Moved</th><th scope=\"col\" "
          "class=\"plain\">Change</th>"
          "<th scope=\"col\" class=\"plain\">Baseline</th><th scope=\"col\" class=\"plain\">This "
          "run</th>"
          "<th scope=\"col\" class=\"plain\">Per iteration</th>"
          "<th scope=\"col\" class=\"left plain\">Metric</th></tr></thead>\n",
          out);
    for (size_t i = 0; i < PROF_GATE_TIMES; i++)
        put_family(out, c, &prof_gate_times[i], most);
    fprintf(out, "</table></div>\n<p class=\"faint\">%s.</p>\n", prof_gate_times_note);
}

static void put_count_changes_html(FILE *out, const struct prof_comparison *c)
{
    size_t count = 0, shown = 0;
    for (size_t i = 0; i < c->count; i++)
        count += prof_gate_count_differs(&c->rows[i]);
    if (!count) {
        fputs("<p>Counts and bytes are the same.</p>\n", out);
        return;
    }
    fputs("<div class=\"scroll\"><table id=\"comparison-counts\"><caption>Counts and bytes that "
          "differ"
          "</caption>\n<thead><tr><th scope=\"col\" class=\"left plain\">Change</th>"
          "<th scope=\"col\" class=\"left plain\">Metric</th></tr></thead><tbody>\n",
          out);
    for (size_t i = 0; i < c->count && shown < ROWS; i++) {
        if (!prof_gate_count_differs(&c->rows[i]))
            continue;
        fputs("<tr>", out);
        put_taken(out, "td", "class=\"left\"", prof_gate_change(&c->rows[i]));
        put_taken(out, "td", "class=\"left name\"", prof_gate_subject_placed(&c->rows[i], 0));
        fputs("</tr>\n", out);
        shown++;
    }
    fputs("</tbody></table></div>\n", out);
    put_more_rows_html(out, shown, count);
}

static void put_environment_html(FILE *out, const struct prof_comparison *c)
{
    fputs("<ul class=\"statements\">\n", out);
    put_taken(out, "li", NULL, prof_gate_iteration(c));
    if (c->note && c->times_refused)
        prof_html_element(out, "li", "class=\"warning\"", c->note);
    for (size_t i = 0; i < c->difference_count; i++) {
        const struct prof_environment_difference *d = &c->differences[i];
        fputs("<li>", out);
        prof_html_text(out, d->name);
        fputs(": ", out);
        prof_html_text(out, d->base);
        fputs(" in the baseline, ", out);
        prof_html_text(out, d->cand);
        fprintf(out, " here%s</li>\n",
                d->level == PROF_ENVIRONMENT_HARD   ? ": <b>times cannot be compared</b>"
                : d->level == PROF_ENVIRONMENT_SOFT ? ", which may move times"
                                                    : "");
    }
    fputs("</ul>\n", out);
}

void prof_html_put_comparison(FILE *out, const struct prof_html_page *page)
{
    const struct prof_html_comparison *c = page->comparison;
    if (!c)
        return;
    fputs("<section id=\"comparison\" aria-labelledby=\"comparison-title\">"
          "<h2 id=\"comparison-title\">Comparison</h2>\n<p>This run against <code>",
          out);
    prof_html_text(out, c->baseline->path);
    fputs("</code> (<span class=\"mono short\">", out);
    prof_html_text(out, c->baseline->command);
    fputs("</span>). Two runs say what differed between them, not what will happen again: for that "
          "there are <code>perfkit ab</code> and <code>perfkit gate</code>.</p>\n",
          out);
    if (c->compared) {
        put_environment_html(out, &c->result);
        put_times(out, &c->result);
        put_count_changes_html(out, &c->result);
    } else {
        fputs("<p class=\"warning\">They cannot be compared: ", out);
        prof_html_text(out, c->why_not.message);
        fputs("</p>\n", out);
    }
    fputs("</section>\n", out);
}
