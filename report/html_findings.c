/* What the rules found, as markup: the worst at the top of the page in a line each, then all of
 * them with reason, remedy, price and the places where it is worst, each a link into the timeline.
 * Rules that were not checked are listed, folded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "report/findings.h"
#include "report/html.h"

#define TOP 3
#define FEW_PHASES 2 /* of a rule; the others are folded */
#define LINE 600

static void put_badge(FILE *out, enum prof_severity severity)
{
    const char *word = prof_report_severity(severity);
    prof_html_print(out, "<span class=\"badge %s\">%s</span> ", word, word);
}

void prof_html_put_top_findings(FILE *out, const struct prof_html_page *page)
{
    const struct prof_findings *findings = &page->data->findings;
    char line[LINE];
    if (findings->why_none)
        return;
    fputs("<h3 id=\"top-findings\">Top findings</h3>\n", out);
    if (!findings->count) {
        fputs("<p class=\"none\">No rule found anything worth 1 % of the time.</p>\n", out);
        return;
    }
    fputs("<ol class=\"top\">\n", out);
    size_t listed = 0;
    for (size_t i = 0; i < findings->count && listed < TOP; i++) {
        const struct prof_finding *finding = &findings->rows[i];
        if (!prof_report_finding_is_worst_phase(findings, finding))
            continue;
        listed++;
        fputs("<li>", out);
        put_badge(out, finding->severity);
        prof_html_print(out, "<a href=\"#finding-%zu\">%s</a>", i + 1, finding->rule->title);
        prof_report_finding_price(page->data, finding, line, sizeof line);
        prof_html_print(out, line[0] ? ": %s</li>\n" : "</li>\n", line);
    }
    fputs("</ol>\n", out);
    if (findings->count > listed)
        fprintf(out, "<p><a href=\"#findings\">All %s</a></p>\n",
                prof_counted((int64_t)findings->count, "finding", "findings").text);
}

/* ---- one finding ----------------------------------------------------------------------------- */

/* Words of ours, in which what is to be typed is between backticks. */
static void put_marked_text(FILE *out, const char *text)
{
    for (bool code = false; *text; code = !code) {
        size_t length = strcspn(text, "`");
        PROF_FREED char *piece = strndup(text, length);
        if (!piece)
            prof_note(PROF_NOMEM);
        else if (code || length)
            prof_html_print(out, code ? "<code>%s</code>" : "%s", piece);
        text += length + (text[length] == '`');
    }
}

static void put_finding_row(FILE *out, const char *term, const char *text)
{
    if (!text || !text[0])
        return;
    fprintf(out, "<dt>%s</dt><dd>", term);
    put_marked_text(out, text);
    fputs("</dd>\n", out);
}

/* A bar is read at a glance, the words beside it say the same. */
static void put_price(FILE *out, const struct prof_report_data *data,
                      const struct prof_finding *finding)
{
    char line[LINE];
    prof_report_finding_price(data, finding, line, sizeof line);
    if (!line[0])
        return;
    fputs("<p class=\"price\">", out);
    if (finding->bound_ns != PROF_UNKNOWN)
        prof_html_print(out,
                        "<span class=\"gauge\" aria-hidden=\"true\"><span "
                        "style=\"width:%f%%\"></span></span> ",
                        finding->bound_share > 1 ? 100 : finding->bound_share * 100);
    prof_html_print(out, "<b>%s</b></p>\n", line);
}

static void put_finding_numbers(FILE *out, const struct prof_finding *finding)
{
    if (!finding->number_count)
        return;
    fputs("<dt>Figures</dt><dd>", out);
    for (size_t i = 0; i < finding->number_count; i++) {
        const struct prof_number *number = &finding->numbers[i];
        fputs(i ? ", " : "", out);
        char label[64];
        prof_number_label(number, label, sizeof label);
        prof_html_print(out, "%s %s", label, prof_number_text(number).text);
    }
    fputs("</dd>\n", out);
}

static void put_place_link(FILE *out, int64_t start_ns, int64_t end_ns, int64_t stream,
                           int64_t thread, const char *text)
{
    prof_html_print(
        out, "<a href=\"#t=%lld,%lld\" data-stream=\"%lld\" data-thread=\"%lld\">%s</a>",
        (long long)start_ns, (long long)end_ns, (long long)stream, (long long)thread, text);
}

/* Where it is worst; without single places the phase in which it was found. */
static void put_finding_locations(FILE *out, const struct prof_report_data *data,
                                  const struct prof_finding *finding)
{
    const struct prof_phase_row *phase =
        finding->phase < data->findings.phase_count ? &data->findings.phases[finding->phase] : NULL;
    char line[LINE];
    if (!finding->place_count && phase) {
        fputs("<dt>Where</dt><dd>", out);
        put_place_link(out, phase->begin_ns, phase->end_ns, 0, 0, "the analysed interval");
        fputs("</dd>\n", out);
    }
    if (!finding->place_count)
        return;
    fputs("<dt>Worst</dt><dd><ul class=\"places\">\n", out);
    for (size_t i = 0; i < finding->place_count; i++) {
        const struct prof_place *place = &finding->places[i];
        prof_report_finding_place(data, place, line, sizeof line);
        fputs("<li>", out);
        put_place_link(out, place->start_ns, prof_add(place->start_ns, place->duration_ns),
                       place->stream, place->thread, line);
        if (place->line[0])
            prof_html_print(out, ", %s <span class=\"mono\">%s</span>",
                            place->line_ends_it ? "before" : "at", place->line);
        fputs("</li>\n", out);
    }
    fputs("</ul></dd>\n", out);
}

/* Folded it is title, fix and what it saves. */
static void put_finding(FILE *out, const struct prof_report_data *data, size_t number)
{
    const struct prof_findings *findings = &data->findings;
    const struct prof_finding *finding = &findings->rows[number];
    struct prof_report_finding words;
    prof_report_describe_finding(data, finding, &words);
    prof_html_print(
        out,
        "<details class=\"finding %s\" id=\"finding-%zu\" aria-labelledby=\"finding-%zu-title\">\n"
        "<summary><h3 id=\"finding-%zu-title\">",
        prof_report_severity(finding->severity), number + 1, number + 1, number + 1);
    put_badge(out, finding->severity);
    prof_html_print(out, "%s <code>%s</code></h3>\n", finding->rule->title, finding->rule->id);
    put_price(out, data, finding);
    fputs("<p class=\"fix\">", out);
    put_marked_text(out, finding->fix);
    prof_html_print(out, "</p></summary>\n<p class=\"seen\">%s</p>\n<dl>\n", finding->seen);
    put_finding_row(out, "Why", finding->rule->why);
    put_finding_row(out, "With", words.with);
    put_finding_row(out, "Bound", words.bound);
    put_finding_row(out, "Net", words.net);
    put_finding_row(out, "Replay", words.replay);
    put_finding_numbers(out, finding);
    put_finding_locations(out, data, finding);
    fputs("</dl>\n</details>\n", out);
}

/* A finding, and folded behind it those of the same rule in phases where it costs less. Returns the
 * number of the next one. */
static size_t put_findings_of_rule(FILE *out, const struct prof_report_data *data, size_t number)
{
    const struct prof_findings *findings = &data->findings;
    size_t end = number + 1;
    while (end < findings->count && findings->rows[end].rule == findings->rows[number].rule &&
           !prof_report_finding_is_worst_phase(findings, &findings->rows[end]))
        end++;
    bool folds = findings->phase_count > 1 && end - number > FEW_PHASES;
    put_finding(out, data, number);
    if (folds)
        fprintf(out,
                "<details class=\"phases\"><summary>%s of this rule, phase by phase</summary>\n",
                prof_counted((int64_t)(end - number) - 1, "more finding", "more findings").text);
    for (size_t i = number + 1; i < end; i++)
        put_finding(out, data, i);
    fputs(folds ? "</details>\n" : "", out);
    return end;
}

static void put_abstentions(FILE *out, const struct prof_findings *findings)
{
    if (!findings->abstention_count)
        return;
    fprintf(out, "<details id=\"abstentions\"><summary>%s not checked</summary>\n<ul>\n",
            prof_counted((int64_t)findings->abstention_count, "rule", "rules").text);
    for (size_t i = 0; i < findings->abstention_count; i++)
        prof_html_print(out, "<li><code>%s</code>: %s</li>\n", findings->abstentions[i].rule->id,
                        findings->abstentions[i].why);
    fputs("</ul></details>\n", out);
}

void prof_html_put_findings(FILE *out, const struct prof_html_page *page)
{
    const struct prof_findings *findings = &page->data->findings;
    char line[LINE];
    if (findings->why_none) {
        prof_html_print(out, "<p class=\"none\">Nothing was analysed: %s.</p>\n",
                        findings->why_none);
        return;
    }
    prof_report_findings_analysed(findings, line, sizeof line);
    line[0] = 'A';
    if (findings->window_ns > 0)
        prof_html_print(
            out,
            "<p class=\"faint\">%s. What it saves is an upper bound; bounds add up to no more than "
            "that time. The order is by severity, causes before what only says where the time "
            "goes, "
            "then by what they likely save. <code>perfkit explain RULE</code> shows how each is "
            "computed.</p>\n",
            line);
    prof_report_overhead(page->data, line, sizeof line);
    if (line[0])
        prof_html_print(out, "<p class=\"faint\">Recording overhead: %s.</p>\n", line);
    if (!findings->count)
        fputs("<p class=\"none\">No rule found anything worth 1 % of the time.</p>\n", out);
    for (size_t i = 0; i < findings->count;)
        i = put_findings_of_rule(out, page->data, i);
    put_abstentions(out, findings);
}
